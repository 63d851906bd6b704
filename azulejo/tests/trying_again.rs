//! Every operation stopped at every storage call, by a crash, by a call that fails, and by one that
//! fails after its work: afterwards everything is as before or as after, nothing is wrong that a
//! repair leaves, and the same operation finds its work done or does it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]

mod support;

use azulejo::check::{CheckOptions, Severity};
use azulejo::storage::{LocalStorage, MemoryStorage, Storage};
use azulejo::{Context, Error};
use std::sync::Arc;
use support::failing::{FailingStorage, Failure};
use support::operations::{Before, OPERATIONS, Operation, Place, context, look, prepare};

fn of(memory: &Arc<MemoryStorage>) -> Context {
    context(LocalStorage::new(), Arc::clone(memory) as Arc<dyn Storage>)
}

fn place(context: &Context) -> Place<'_> {
    let root = "mem://";
    Place { context, root }
}

/// What is wrong with the array after a repair.
fn errors_after_repair(context: &Context) -> Vec<String> {
    let array = context.array("mem://array");
    let Ok(report) = array.check(CheckOptions::default()) else {
        return Vec::new();
    };
    array.repair(&report).unwrap();
    let report = array.check(CheckOptions::default()).unwrap();
    let wrong = report
        .findings
        .iter()
        .filter(|found| found.severity != Severity::Note);
    wrong
        .map(|found| format!("{}: {}", found.path, found.what))
        .collect()
}

fn stopped_everywhere(operation: &Operation, before: Before, wrong: &mut Vec<String>) -> usize {
    let (name, _, run) = operation;
    let mut stops = 0;
    for failure in [Failure::Crash, Failure::Once, Failure::Late] {
        for after in 0.. {
            let memory = Arc::new(MemoryStorage::new());
            let sound = of(&memory);
            prepare(before, &place(&sound));
            let as_before = look(&sound);
            let storage =
                FailingStorage::new(Arc::clone(&memory) as Arc<dyn Storage>, after, failure);
            let failing = context(LocalStorage::new(), Arc::new(storage.clone()));
            let result = run(&place(&failing));
            if !storage.has_failed() {
                result.unwrap();
                break;
            }
            stops += 1;
            let found = look(&sound);
            let whole = Arc::new(MemoryStorage::new());
            let as_after = {
                let context = of(&whole);
                prepare(before, &place(&context));
                run(&place(&context)).unwrap();
                look(&context)
            };
            let mut fault = |what: String| {
                let stop = format!("{name} on {before:?}, {failure:?} at {after}");
                wrong.push(format!("{stop}: {what}"));
            };
            if found != as_before && found != as_after {
                fault(format!(
                    "{found:#?}\n  not {as_before:#?}\n  nor {as_after:#?}"
                ));
                continue;
            }
            let errors = errors_after_repair(&sound);
            if !errors.is_empty() || look(&sound) != found {
                fault(format!("repaired, and {errors:?}, {:#?}", look(&sound)));
                continue;
            }
            let again = run(&place(&sound));
            let is_done = found == as_after && as_after != as_before;
            match again {
                Ok(()) => {}
                // It says that there is nothing left to do.
                Err(
                    Error::AlreadyExists { .. }
                    | Error::NotFound { .. }
                    | Error::InvalidArgument(_),
                ) if is_done => {}
                Err(error) => fault(format!("made again: {error}")),
            }
            // What adds cells has added them twice, if it was asked to twice.
            let twice = is_done && *name == "append";
            if !twice && look(&sound) != as_after {
                fault(format!(
                    "made again: {:#?}\n  not {as_after:#?}",
                    look(&sound)
                ));
            }
        }
    }
    stops
}

#[test]
fn every_operation_is_done_or_can_be_done() {
    let mut wrong = Vec::new();
    let mut stops = 0;
    for operation in OPERATIONS {
        for before in operation.1 {
            stops += stopped_everywhere(operation, *before, &mut wrong);
        }
    }
    eprintln!("{stops} stops");
    assert!(stops > 500, "{stops}");
    assert!(
        wrong.is_empty(),
        "{} of {stops}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
