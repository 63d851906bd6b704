//! Pipes in place of an array's files: an error, and nobody waits for who might write into them.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::{ArraySchema, Datatype};
use azulejo::read::ReadOptions;
use azulejo::write::WriteOptions;
use azulejo::{Config, Context};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

fn context() -> Context {
    Context::new(Config::new().threads(2), None).unwrap()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Reads all there is of an array, on a thread that is waited for, though not for ever: by the
/// number of looks, as the process may be stopped meanwhile.
fn read(uri: &str) -> Result<usize, String> {
    let (sender, receiver) = channel();
    let uri = uri.to_owned();
    std::thread::spawn(move || {
        let cells = context().array(&uri).open().and_then(|array| {
            array.metadata()?;
            array.read(ReadOptions::new())?.read_all()
        });
        let _ = sender.send(
            cells
                .map(|cells| cells.cell_num)
                .map_err(|error| error.to_string()),
        );
    });
    let found = (0..600).find_map(|_| receiver.recv_timeout(Duration::from_millis(100)).ok());
    found.unwrap_or_else(|| panic!("it waits for ever"))
}

#[test]
fn a_pipe_is_no_file_of_an_array() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array");
    let uri = path.to_str().unwrap();
    let schema = ArraySchema::sparse()
        .dimension("x", 0i64..=99, 10)
        .attribute("a", Datatype::Int32);
    context()
        .array(uri)
        .create(schema.build().unwrap())
        .unwrap();
    let columns = [
        ColumnBuffers::of_values("x", (0..20i64).collect::<Vec<_>>()),
        ColumnBuffers::of_values("a", (0..20i32).collect::<Vec<_>>()),
    ];
    let mut writer = context().array(uri).writer(WriteOptions::new()).unwrap();
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    writer.finish().unwrap();
    context()
        .array(uri)
        .change_metadata()
        .unwrap()
        .put("key", MetadataValue::new(Datatype::Int8, [1]))
        .unwrap()
        .commit()
        .unwrap();
    let mut found = Vec::new();
    files(&path, &mut found);
    assert!(found.len() >= 6, "{found:?}");
    let aside = folder.path().join("aside");
    for file in found {
        fs::rename(&file, &aside).unwrap();
        let made = Command::new("mkfifo").arg(&file).status();
        if !made.is_ok_and(|made| made.success()) {
            eprintln!("SKIPPED: no pipes can be made here");
            return;
        }
        let read = read(uri);
        if file.extension().is_some_and(|extension| extension == "wrt") {
            assert_eq!(read, Ok(20), "of a commit only the name counts");
        } else {
            let told = read.unwrap_err();
            let name = file.file_name().unwrap().to_str().unwrap();
            assert!(
                told.contains(name) && told.contains("no regular file"),
                "{told}"
            );
        }
        fs::remove_file(&file).unwrap();
        fs::rename(&aside, &file).unwrap();
    }
    assert_eq!(read(uri), Ok(20));
}
