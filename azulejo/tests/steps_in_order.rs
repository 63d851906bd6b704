//! The order of the steps of maintenance, by the changes of files that a storage has recorded.
//!
//! Our readers would see the same cells if a vacuum file came before the commit of what it is about,
//! or if a vacuum began with it: they look whether what replaces a fragment is there. Others do not.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]

mod support;

use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::storage::{FileChange, LocalStorage, MemoryStorage};
use azulejo::{Context, TimeRange};
use std::path::Path;
use std::sync::Arc;
use support::operations::{Before, Place, context, prepare};

/// Changes of files that something makes, on an array in a folder.
fn changes(
    before: Before,
    first: impl Fn(&Place<'_>),
    recorded: impl Fn(&Place<'_>),
) -> Vec<FileChange> {
    let folder = tempfile::tempdir().unwrap();
    let root = format!("{}/", folder.path().to_str().unwrap());
    let place = |context: &Context, run: &dyn Fn(&Place<'_>)| {
        run(&Place {
            context,
            root: &root,
        });
    };
    let plain = context(LocalStorage::new(), Arc::new(MemoryStorage::new()));
    place(&plain, &|place| prepare(before, place));
    place(&plain, &first);
    let (storage, log) = LocalStorage::watched();
    let watched = context(storage, Arc::new(MemoryStorage::new()));
    place(&watched, &recorded);
    let changes = log.lock().unwrap().clone();
    assert!(!changes.is_empty());
    changes
}

/// Where changes come to names that end so, or lie in such a folder: the first and the last.
fn span(changes: &[FileChange], is_meant: impl Fn(&str) -> bool) -> (usize, usize) {
    let names = |change: &FileChange| -> Vec<String> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        match change {
            FileChange::MakeFolder(path)
            | FileChange::Create(path)
            | FileChange::Write(path, _)
            | FileChange::SyncFile(path)
            | FileChange::Remove(path)
            | FileChange::RemoveFolder(path) => vec![text(path)],
            // Syncing a folder changes nothing that is seen.
            FileChange::SyncFolder(_) => Vec::new(),
            FileChange::Rename(from, to) | FileChange::Link(from, to) => {
                vec![text(from), text(to)]
            }
        }
    };
    let met: Vec<usize> = (0..changes.len())
        .filter(|i| names(&changes[*i]).iter().any(|name| is_meant(name)))
        .collect();
    match (met.first(), met.last()) {
        (Some(first), Some(last)) => (*first, *last),
        _ => panic!("nothing of that kind in {changes:#?}"),
    }
}

fn ends(suffix: &'static str) -> impl Fn(&str) -> bool {
    move |name| name.ends_with(suffix)
}

fn array_of(place: &Place<'_>) -> azulejo::array::ArrayHandle {
    place.context.array(&place.at("array"))
}

fn consolidate(place: &Place<'_>) {
    let merged = array_of(place).consolidate(&FragmentOptions::new());
    assert!(!merged.unwrap().is_empty());
}

fn vacuum(place: &Place<'_>, mode: Mode) {
    let removed = array_of(place).vacuum(mode, VacuumOptions::default());
    assert!(!removed.unwrap().files.is_empty(), "{mode:?}");
}

#[test]
fn fragments_are_whole_before_their_commit_and_committed_before_the_vacuum_file() {
    for before in [Before::Sparse, Before::Dense] {
        let changes = changes(before, |_| {}, consolidate);
        let cells = span(&changes, |name| {
            name.contains("/__fragments/") && name.ends_with(".tdb")
        });
        let commit = span(&changes, ends(".wrt"));
        let vacuum = span(&changes, ends(".vac"));
        assert!(cells.1 < commit.0, "{before:?}: {changes:#?}");
        assert!(commit.1 < vacuum.0, "{before:?}: {changes:#?}");
    }
}

/// Where both would be seen, what holds the new one back comes first and goes last.
#[test]
fn a_replacement_is_there_from_before_the_commit_until_behind_the_vacuum_file() {
    let changes = changes(Before::Duplicates, |_| {}, consolidate);
    let commit = span(&changes, ends(".wrt"));
    let vacuum = span(&changes, ends(".vac"));
    let replacement = span(&changes, |name| {
        name.contains("/__commits/") && ![".wrt", ".vac"].iter().any(|s| name.ends_with(s))
    });
    assert!(replacement.0 < commit.0, "{changes:#?}");
    assert!(commit.1 < vacuum.0, "{changes:#?}");
    assert!(vacuum.1 < replacement.1, "{changes:#?}");
    let gone = |change: &FileChange| matches!(change, FileChange::Remove(_));
    assert!(gone(&changes[replacement.1]), "{changes:#?}");
}

#[test]
fn a_vacuum_removes_commits_then_folders_then_what_tells_of_them() {
    for before in [Before::Sparse, Before::Duplicates, Before::Dense] {
        let changes = changes(before, consolidate, |place| vacuum(place, Mode::Fragments));
        let commits = span(&changes, ends(".wrt"));
        let folders = span(&changes, |name| name.contains("/__fragments/"));
        let vacuum = span(&changes, ends(".vac"));
        assert!(commits.1 < folders.0, "{before:?}: {changes:#?}");
        assert!(folders.1 < vacuum.0, "{before:?}: {changes:#?}");
    }
}

/// Commits in a merged file cannot be removed: an ignore file says that they do not count.
#[test]
fn an_ignore_file_comes_before_the_folders_that_it_is_about_go() {
    let changes = changes(Before::OneCommit, consolidate, |place| {
        vacuum(place, Mode::Fragments);
    });
    let ignore = span(&changes, ends(".ign"));
    let folders = span(&changes, |name| name.contains("/__fragments/"));
    let vacuum = span(&changes, ends(".vac"));
    assert!(ignore.1 < folders.0, "{changes:#?}");
    assert!(folders.1 < vacuum.0, "{changes:#?}");
}

#[test]
fn of_vacuum_files_the_oldest_goes_first() {
    let again = |place: &Place<'_>| {
        consolidate(place);
        place.write(60, 60).unwrap();
        consolidate(place);
    };
    let changes = changes(Before::Sparse, again, |place| {
        vacuum(place, Mode::Fragments);
    });
    let removed = changes.iter().filter_map(|change| match change {
        FileChange::Remove(path) => {
            let name = path.file_name()?.to_str()?.to_owned();
            name.ends_with(".vac").then_some(name)
        }
        _ => None,
    });
    let removed: Vec<String> = removed.collect();
    let until = |name: &String| -> u64 { name.split('_').nth(3).unwrap().parse().unwrap() };
    assert_eq!(removed.iter().map(until).collect::<Vec<_>>(), [30, 60]);
}

#[test]
fn twins_of_merged_commits_go_before_what_is_ignored_is_forgotten() {
    let ignored = |place: &Place<'_>| {
        consolidate(place);
        vacuum(place, Mode::Fragments);
        array_of(place).consolidate_commits().unwrap();
    };
    let changes = changes(Before::OneCommit, ignored, |place| {
        vacuum(place, Mode::Commits);
    });
    let merged = span(&changes, ends(".con"));
    let ignores = span(&changes, ends(".ign"));
    assert!(merged.1 < ignores.0, "{changes:#?}");
}

#[test]
fn key_values_go_before_what_says_that_they_were_merged() {
    let merge = |place: &Place<'_>| {
        array_of(place)
            .consolidate_metadata(TimeRange::ALL)
            .unwrap();
    };
    let written = changes(Before::Sparse, |_| {}, merge);
    let merged = span(&written, |name| {
        name.contains("/__meta/") && !name.ends_with(".vac")
    });
    let list = span(&written, ends(".vac"));
    assert!(merged.1 < list.0, "{written:#?}");

    let removed = changes(Before::Sparse, merge, |place| {
        vacuum(place, Mode::ArrayMetadata);
    });
    let files = span(&removed, |name| {
        name.contains("/__meta/") && !name.ends_with(".vac")
    });
    let list = span(&removed, ends(".vac"));
    assert!(files.1 < list.0, "{removed:#?}");
}
