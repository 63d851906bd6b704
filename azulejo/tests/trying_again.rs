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

fn stopped_everywhere(
    operation: &Operation,
    before: Before,
    failure: Failure,
    wrong: &mut Vec<String>,
) -> usize {
    let (name, _, run) = operation;
    let (as_before, as_after) = {
        let context = of(&Arc::new(MemoryStorage::new()));
        prepare(before, &place(&context));
        let as_before = look(&context);
        run(&place(&context)).unwrap();
        (as_before, look(&context))
    };
    let mut stops = 0;
    for after in 0.. {
        let memory = Arc::new(MemoryStorage::new());
        let sound = of(&memory);
        prepare(before, &place(&sound));
        let storage = FailingStorage::new(Arc::clone(&memory) as Arc<dyn Storage>, after, failure);
        let failing = context(LocalStorage::new(), Arc::new(storage.clone()));
        let result = run(&place(&failing));
        if !storage.has_failed() {
            result.unwrap();
            break;
        }
        stops += 1;
        let found = look(&sound);
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
                Error::AlreadyExists { .. } | Error::NotFound { .. } | Error::InvalidArgument(_),
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
    stops
}

fn check(failure: Failure) {
    let mut wrong = Vec::new();
    let mut stops = 0;
    for operation in OPERATIONS {
        for before in operation.1 {
            stops += stopped_everywhere(operation, *before, failure, &mut wrong);
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

#[test]
fn what_a_crash_has_cut_short_is_done_or_can_be_done() {
    check(Failure::Crash);
}

#[test]
fn what_a_failing_call_has_cut_short_is_done_or_can_be_done() {
    check(Failure::Once);
}

#[test]
fn what_a_call_that_fails_late_has_cut_short_is_done_or_can_be_done() {
    check(Failure::Late);
}
