//! Power failures: every change of files that an operation makes is recorded, and after each of them
//! all is rebuilt that the disk may have then, by the letter of POSIX (`support/disk.rs`).
//!
//! While an operation is under way everything is as before or as after it; once it has reported
//! that it is done, everything is as after it. Where all is as before, the same operation works.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]
#![expect(clippy::print_stdout, reason = "how much was looked at")]

mod support;

use azulejo::Context;
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::read::ReadOptions;
use azulejo::storage::{LocalStorage, MemoryStorage, Storage, StorePath};
use azulejo::write::WriteOptions;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use support::disk::{Disk, Files};
use support::operations::{Before, OPERATIONS, Operation, Place, context, look, prepare};

/// States of one moment that are looked at if there are more; `AZULEJO_POWER_STATES` says otherwise.
fn most_states() -> usize {
    let text = std::env::var("AZULEJO_POWER_STATES");
    text.ok().and_then(|text| text.parse().ok()).unwrap_or(24)
}

/// The files in memory. What one says of where they were is made to say where they are.
fn memory_of(files: &Files, root: &Path) -> Context {
    let memory = MemoryStorage::new();
    let root = format!("file://{}/", root.to_str().unwrap());
    for (path, bytes) in files {
        let mut bytes = bytes.clone();
        if path.ends_with("__azulejo_copy") {
            let text = String::from_utf8(bytes).unwrap();
            bytes = text.replace(&root, "mem://").into_bytes();
        }
        Storage::put(&memory, &StorePath::memory(path), bytes.into()).unwrap();
    }
    context(LocalStorage::new(), Arc::new(memory))
}

/// Everything that a disk has now.
fn all_of(root: &Path) -> Files {
    let (mut states, all) = Disk::of(root).states(1, 0);
    assert!(all && states.len() == 1);
    states.remove(0)
}

#[derive(Debug, Default)]
struct Count {
    states: usize,
    moments: usize,
    in_part: usize,
    wrong: Vec<String>,
}

fn cut_everywhere(operation: &Operation, before: Before, count: &mut Count) {
    let (name, _, run) = operation;
    let folder = tempfile::tempdir().unwrap();
    let root_text = format!("{}/", folder.path().to_str().unwrap());
    let plain = context(LocalStorage::new(), Arc::new(MemoryStorage::new()));
    let place = |context| Place {
        context,
        root: &root_text,
    };
    prepare(before, &place(&plain));
    let mut disk = Disk::of(folder.path());
    let as_before = look(&memory_of(&all_of(folder.path()), folder.path()));

    let (storage, log) = LocalStorage::watched();
    let watched = context(storage, Arc::new(MemoryStorage::new()));
    run(&place(&watched)).unwrap();
    drop(watched);
    let as_after = look(&memory_of(&all_of(folder.path()), folder.path()));
    let changes = log.lock().unwrap().clone();

    let mut looked_at = HashSet::new();
    for done in 0..=changes.len() {
        let all_done = done == changes.len();
        let (states, all) = disk.states(most_states(), done as u64);
        count.moments += 1;
        count.in_part += usize::from(!all);
        for files in states {
            let mut hasher = DefaultHasher::new();
            (&files, all_done).hash(&mut hasher);
            if !looked_at.insert(hasher.finish()) {
                continue;
            }
            count.states += 1;
            let context = memory_of(&files, folder.path());
            let seen = look(&context);
            let mut fault = None;
            if seen != as_after && (all_done || seen != as_before) {
                fault = Some(format!("seen {seen:#?}"));
            } else if seen != as_after {
                let memory = Place {
                    context: &context,
                    root: "mem://",
                };
                let again = run(&memory);
                let seen = look(&context);
                if again.is_err() || seen != as_after {
                    fault = Some(format!("made again: {again:?} {seen:#?}"));
                }
            }
            if let Some(fault) = fault {
                let names: Vec<&String> = files.keys().collect();
                count.wrong.push(format!(
                    "{name} on {before:?}, after {done} of {} changes, {:?}:\n  {fault}\n  not {as_before:#?}\n  \
                     nor {as_after:#?}\n  files {names:#?}",
                    changes.len(),
                    done.checked_sub(1).map(|i| &changes[i]),
                ));
                break;
            }
        }
        if let Some(change) = changes.get(done) {
            disk.apply(folder.path(), change);
        }
    }
}

fn check(of: impl Fn(Before) -> bool) {
    let mut count = Count::default();
    for operation in OPERATIONS {
        for before in operation.1.iter().filter(|before| of(**before)) {
            cut_everywhere(operation, *before, &mut count);
        }
    }
    let Count {
        states,
        moments,
        in_part,
        wrong,
    } = count;
    println!("{states} states of {moments} moments, of {in_part} not all that there are");
    assert!(states > 40, "{states}");
    assert!(
        wrong.is_empty(),
        "{} of {states}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn new_objects_and_groups() {
    check(|before| matches!(before, Before::Nothing | Before::Group));
}

#[test]
fn sparse_arrays() {
    check(|before| matches!(before, Before::Sparse | Before::Duplicates));
}

#[test]
fn arrays_with_replaced_fragments_and_with_one_commits_file() {
    check(|before| matches!(before, Before::Merged | Before::OneCommit));
}

#[test]
fn dense_arrays() {
    check(|before| before == Before::Dense);
}

/// What one process has written lasts before another can commit it.
#[test]
fn fragments_that_wait_for_their_commit() {
    let folder = tempfile::tempdir().unwrap();
    let root = format!("{}/", folder.path().to_str().unwrap());
    let plain = context(LocalStorage::new(), Arc::new(MemoryStorage::new()));
    let before = Place {
        context: &plain,
        root: &root,
    };
    prepare(Before::Dense, &before);
    let mut disk = Disk::of(folder.path());

    let (storage, log) = LocalStorage::watched();
    let watched = context(storage, Arc::new(MemoryStorage::new()));
    let array = watched.array(&before.at("array"));
    let options = WriteOptions::new().timestamp(50).uncommitted();
    let mut writer = array.writer(options).unwrap();
    let columns = [ColumnBuffers::of_values("a", vec![9i32; 20])];
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    let names = writer.finish().unwrap();

    let changes = log.lock().unwrap().clone();
    assert!(!changes.is_empty());
    for change in &changes {
        disk.apply(folder.path(), change);
    }
    let (states, all) = disk.states(most_states(), 0);
    assert!(all, "everything is settled, so there is one way only");
    for files in &states {
        let context = memory_of(files, folder.path());
        let array = context.array("mem://array");
        array.commit_fragments(&names).unwrap();
        let cells = array.open().unwrap().read(ReadOptions::new()).unwrap();
        let cells = cells.read_all().unwrap();
        assert_eq!(cells.column("a").unwrap().values::<i32>().unwrap(), [9; 20]);
    }
}
