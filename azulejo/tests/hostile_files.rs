//! Files that were put into an array to do harm: huge ones, and links out of it.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]

use azulejo::check::CheckOptions;
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::{ArraySchema, Datatype};
use azulejo::group::NewMember;
use azulejo::read::ReadOptions;
use azulejo::storage::{LocalStorage, Storage, Uri};
use azulejo::write::WriteOptions;
use azulejo::{Config, Context, Error, Result};
use bytes::Bytes;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

fn context() -> Context {
    let config = Config::new().threads(1).memory_budget(64 << 20);
    Context::new(config, None).unwrap()
}

fn write(context: &Context, uri: &str, x: i64) -> Result<()> {
    let mut writer = context.array(uri).writer(WriteOptions::new())?;
    let columns = [
        ColumnBuffers::of_values("x", vec![x]),
        ColumnBuffers::of_values("a", vec![7i32]),
    ];
    writer.write(&ColumnSet::of(columns).unwrap())?;
    writer.finish().map(drop)
}

/// An array with two fragments in a folder.
fn array(context: &Context, folder: &Path) -> String {
    let uri = folder.join("array").to_str().unwrap().to_owned();
    let schema = ArraySchema::sparse()
        .dimension("x", 0i64..=99, 10)
        .attribute("a", Datatype::Int32);
    context.array(&uri).create(schema.build().unwrap()).unwrap();
    write(context, &uri, 1).unwrap();
    write(context, &uri, 2).unwrap();
    uri
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn file_in(folder: &Path) -> PathBuf {
    let mut files = files_in(folder);
    files.retain(|path| path.is_file());
    files.remove(0)
}

#[test]
fn what_is_larger_than_memory_may_be_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let context = context();
    for size in [1u64 << 40, 2 << 30] {
        let uri = array(&context, &folder.path().join(size.to_string()));
        let schema = file_in(&Path::new(&uri).join("__schema"));
        File::options()
            .write(true)
            .open(schema)
            .unwrap()
            .set_len(size)
            .unwrap();
        let opened = context.array(&uri).open().map(drop);
        assert!(matches!(opened, Err(Error::Budget { .. })), "{opened:?}");
        assert!(write(&context, &uri, 3).is_err());
        assert!(context.array(&uri).check(CheckOptions::default()).is_err());
    }

    let uri = array(&context, &folder.path().join("commits"));
    context.array(&uri).consolidate_commits().unwrap();
    let commits = files_in(&Path::new(&uri).join("__commits"));
    let all = commits
        .iter()
        .find(|path| path.extension().is_some_and(|e| e == "con"));
    let all = File::options().write(true).open(all.unwrap()).unwrap();
    all.set_len(1 << 40).unwrap();
    let opened = context.array(&uri).open().map(drop);
    assert!(matches!(opened, Err(Error::Budget { .. })), "{opened:?}");
    let vacuumed = context
        .array(&uri)
        .vacuum(Mode::Commits, VacuumOptions::default());
    assert!(
        matches!(vacuumed, Err(Error::Budget { .. })),
        "{vacuumed:?}"
    );
}

#[test]
fn what_is_larger_together_than_memory_may_be_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let context = context();
    let uri = array(&context, folder.path());
    let schemas = Path::new(&uri).join("__schema");
    for number in 0..200 {
        let name = format!("__{number}_{number}_{number:032x}");
        let file = File::create_new(schemas.join(name)).unwrap();
        // Each is less than the context may take.
        file.set_len(48 << 20).unwrap();
    }
    let opened = context.array(&uri).open().map(drop);
    match opened {
        Err(Error::Budget { need, budget, .. }) => {
            assert!(need > budget && budget == 64 << 20, "{need}, {budget}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_is_made_behind_a_link_that_leads_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let outside = folder.path().join("outside");
    let link = folder.path().join("__commits").join("__1_1_x_22.wrt");
    fs::create_dir(link.parent().unwrap()).unwrap();
    symlink(&outside, &link).unwrap();
    let storage = LocalStorage::new();
    let path = Uri::parse(link.to_str().unwrap()).unwrap().path().clone();
    assert!(storage.put(&path, Bytes::new()).is_err());
    assert!(!outside.exists());
    fs::write(&outside, "mine").unwrap();
    assert!(storage.put(&path, Bytes::new()).is_err());
    assert_eq!(fs::read(&outside).unwrap(), b"mine");
    // In the place of a file it goes.
    fs::remove_file(&link).unwrap();
    for body in ["x", "", ""] {
        storage.put(&path, Bytes::from(body)).unwrap();
        assert_eq!(storage.size(&path).unwrap(), body.len() as u64);
    }
}

#[test]
fn what_only_claims_to_be_large_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let context = context();
    let uri = array(&context, folder.path());
    let fragment = files_in(&Path::new(&uri).join("__fragments")).remove(0);
    let data = File::options().write(true).open(file_in(&fragment));
    data.unwrap().set_len(1 << 40).unwrap();
    let target = folder.path().join("copy");
    let copied = context.object(&uri).copy_to(target.to_str().unwrap());
    match copied {
        Err(Error::InvalidArgument(text)) => {
            assert!(
                text.contains("__fragments") && text.contains("1099511627776"),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(!target.exists());
}

#[test]
fn links_out_of_an_array_change_nothing_there() {
    let folder = tempfile::tempdir().unwrap();
    let context = context();
    for linked in ["__commits", "__fragments", "__meta", "__fragment_meta"] {
        let place = folder.path().join(linked);
        let uri = array(&context, &place);
        let outside = place.join("outside");
        let inside = Path::new(&uri).join(linked);
        fs::rename(&inside, &outside).unwrap();
        symlink(&outside, &inside).unwrap();
        fs::write(outside.join("mine"), "mine").unwrap();
        let before = files_in(&outside);

        let array = context.array(&uri);
        let _ = write(&context, &uri, 3);
        let _ = array.consolidate(&FragmentOptions::default());
        let _ = array.consolidate_commits();
        let _ = array.consolidate_fragment_metadata();
        for mode in Mode::ALL {
            let _ = array.vacuum(mode, VacuumOptions::default());
        }
        assert_eq!(files_in(&outside), before, "{linked}");
        let _ = context.object(&uri).delete(false);
        assert_eq!(files_in(&outside), before, "{linked}");
    }
}

#[test]
fn no_walk_follows_links() {
    let folder = tempfile::tempdir().unwrap();
    let context = context();
    let uri = array(&context, folder.path());
    let fragment = files_in(&Path::new(&uri).join("__fragments")).remove(0);
    symlink("/", fragment.join("all")).unwrap();
    symlink(folder.path(), fragment.join("back")).unwrap();
    let report = context.array(&uri).check(CheckOptions::default()).unwrap();
    assert!(report.files < 100, "{report:?}");
    let copy = folder.path().join("copy");
    let copied = context.object(&uri).copy_to(copy.to_str().unwrap());
    assert!(matches!(copied, Err(Error::Unsupported(_))), "{copied:?}");
    assert!(!copy.exists());
}

/// All that a user may do with an array that may be anything.
fn try_all(context: &Context, uri: &str) -> Vec<Error> {
    let array = context.array(uri);
    let read = || array.open()?.read(ReadOptions::new())?.read_all().map(drop);
    let keys = || array.open()?.metadata().map(drop);
    let mut results = vec![
        read(),
        keys(),
        array.check(CheckOptions::default()).map(drop),
        array.consolidate_commits().map(drop),
        array.consolidate_fragment_metadata().map(drop),
        array.consolidate(&FragmentOptions::default()).map(drop),
        write(context, uri, 3),
    ];
    for mode in Mode::ALL {
        results.push(array.vacuum(mode, VacuumOptions::default()).map(drop));
    }
    results.into_iter().filter_map(Result::err).collect()
}

#[test]
fn a_folder_in_the_place_of_a_file_is_a_clear_error() {
    let place = tempfile::tempdir().unwrap();
    let context = context();
    let made = place.path().join("made");
    let uri = array(&context, &made);
    let handle = context.array(&uri);
    handle.consolidate(&FragmentOptions::default()).unwrap();
    handle.consolidate_commits().unwrap();
    handle.consolidate_fragment_metadata().unwrap();
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::from(&uri)];
    while let Some(folder) = folders.pop() {
        let (inner, found): (Vec<_>, Vec<_>) = files_in(&folder)
            .into_iter()
            .partition(|path| path.is_dir());
        folders.extend(inner);
        files.extend(found);
    }
    assert!(files.len() > 10, "{files:?}");
    for (number, file) in files.iter().enumerate() {
        let copy = place.path().join(format!("copy{number}"));
        context
            .object(&uri)
            .copy_to(copy.to_str().unwrap())
            .unwrap();
        let file = copy.join(file.strip_prefix(&uri).unwrap());
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        for error in try_all(&context, copy.to_str().unwrap()) {
            assert!(
                !matches!(error, Error::Internal(_)),
                "{}: {error}",
                file.display()
            );
        }
    }
}

#[test]
fn names_that_lead_out_of_an_array_reach_nothing() {
    let place = tempfile::tempdir().unwrap();
    let context = context();
    let uri = array(&context, place.path());
    let outside = array(&context, &place.path().join("outside"));
    let victim = Path::new(&outside);
    let fragment = files_in(&victim.join("__fragments")).remove(0);
    let name = fragment.file_name().unwrap().to_str().unwrap();
    let mine = files_in(&Path::new(&uri).join("__fragments")).remove(0);
    let mine = mine.file_name().unwrap().to_str().unwrap().to_owned();
    let all = |folder: &Path| {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for path in files_in(&folder) {
                found.push(path.clone());
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    };
    let before = all(victim);
    let lists = [
        format!("/../outside/array/__fragments/{name}\n"),
        format!("../outside/array/__fragments/{name}\n"),
        format!("{}\n", fragment.display()),
        format!("file://{}\n", fragment.display()),
        "/__fragments/..\n/..\n..\n/\n.\n".to_owned(),
        format!("__commits/../../outside/array/__commits/{name}.wrt\n"),
    ];
    for (number, list) in lists.iter().enumerate() {
        for suffix in ["vac", "ign", "con"] {
            let commits = Path::new(&uri).join("__commits");
            let stem = format!("__{number}_9_0123456789abcdef0123456789abcdef_22");
            // Of a fragment that is there, so that it counts.
            let stem = if suffix == "vac" { mine.clone() } else { stem };
            let file = commits.join(format!("{stem}.{suffix}"));
            fs::write(&file, list).unwrap();
            try_all(&context, &uri);
            assert_eq!(all(victim), before, "{suffix} {list:?}");
            let _ = fs::remove_file(&file);
        }
    }
    // Members are where a group says, and only their being named is deleted with it.
    context
        .group(place.path().join("group").to_str().unwrap())
        .create()
        .unwrap();
    let group = place.path().join("group").to_str().unwrap().to_owned();
    let mut editor = context.group(&group).edit().unwrap();
    editor.add(NewMember::relative("../outside/array")).unwrap();
    editor.add(NewMember::at(&outside)).unwrap();
    editor.commit().unwrap();
    context.object(&group).delete(false).unwrap();
    assert_eq!(all(victim), before);
    assert!(context.array(&outside).open().is_ok());
}
