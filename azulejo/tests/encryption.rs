//! An encrypted array on every way that writes: nothing of it is readable without the key, a wrong
//! key is an error that says so and changes nothing, and no error nor any `Debug` form shows a key.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]

mod support;

use azulejo::array::FragmentSelection;
use azulejo::check::{CheckOptions, Severity};
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::filter::EncryptionKey;
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{Attribute, DataOrder, Enumeration, SchemaEvolution};
use azulejo::format::{ArraySchema, CellValNum, Datatype, FormatVersion};
use azulejo::read::ReadOptions;
use azulejo::storage::{LocalStorage, MemoryStorage, ReadRange, ReadRequest, Storage, StorePath};
use azulejo::write::{WriteLayout, WriteOptions};
use azulejo::{Config, Context, Error, Result, TimeRange};
use std::sync::Arc;

const URI: &str = "mem://array";
const KEY: &[u8; 32] = b"0123456789abcdeF0123456789abcdeF";
const WRONG: &[u8; 32] = b"wrong key, wrong key, wrong key!";
/// What stands in cells, labels and metadata.
const SECRET: &str = "the-secret-of-the-tile";

fn context(memory: &Arc<MemoryStorage>, key: Option<&[u8; 32]>) -> Context {
    let config = Config::new().threads(1);
    let memory = Arc::clone(memory) as Arc<dyn Storage>;
    let key = key.map(|key| EncryptionKey::new(*key));
    Context::with_storages(config, key, Arc::new(LocalStorage::new()), memory).unwrap()
}

/// No text holds a key, in letters, bytes or digits.
fn shows_no_key(text: &str) {
    for key in [KEY, WRONG] {
        let letters = String::from_utf8_lossy(key).into_owned();
        let list = |sep: &str| {
            key[..6]
                .iter()
                .map(u8::to_string)
                .collect::<Vec<_>>()
                .join(sep)
        };
        let digits: String = key[..8].iter().map(|b| format!("{b:02x}")).collect();
        for form in [
            letters[..8].to_owned(),
            list(", "),
            list(","),
            digits.clone(),
            digits.to_uppercase(),
        ] {
            assert!(!text.contains(&form), "{form} in: {text}");
        }
    }
}

fn columns(first: i64, more: bool) -> ColumnSet {
    let cells = 50;
    let mut columns = vec![
        ColumnBuffers::of_values("x", (first..first + cells).collect::<Vec<_>>()),
        ColumnBuffers::of_strings("s", (0..cells).map(|i| format!("{SECRET} {i}"))),
        ColumnBuffers::of_values("e", (0..cells).map(|i| (i % 2) as u8).collect::<Vec<_>>()),
    ];
    if more {
        columns.push(ColumnBuffers::of_strings(
            "n",
            (0..cells).map(|i| format!("{SECRET} {i}")),
        ));
    }
    ColumnSet::of(columns).unwrap()
}

fn labels(name: &str) -> Enumeration {
    Enumeration::of_strings(name, Datatype::StringUtf8, true, [SECRET, "b"]).unwrap()
}

fn create(context: &Context) -> Result<()> {
    let new = ArraySchema::sparse()
        .dimension("x", 0i64..=9_999, 100)
        .var_attribute("s", Datatype::StringUtf8)
        .enumeration(labels("words"))
        .attribute_with(Attribute::new("e", Datatype::UInt8, CellValNum::ONE).enumerated("words"))
        .capacity(16);
    // As old as evolution and deletes go, so that there is something to upgrade.
    context.array(URI).create(
        new.version(FormatVersion::new(21, "test").unwrap())
            .build()
            .unwrap(),
    )
}

fn write(context: &Context, first: i64, layout: WriteLayout, more: bool) -> Result<()> {
    let mut writer = context
        .array(URI)
        .writer(WriteOptions::new().layout(layout))?;
    shows_no_key(&format!("{writer:?}"));
    let cells = columns(first, more);
    if layout == WriteLayout::Global {
        for part in [0..20, 20..50] {
            writer.write(&cells.slice(part))?;
        }
        shows_no_key(&format!("{writer:?}"));
    } else {
        writer.write(&cells)?;
    }
    writer.finish().map(drop)
}

type Step = (&'static str, fn(&Context) -> Result<()>);

/// Everything that changes an array, in an order that works.
const STEPS: &[Step] = &[
    ("write", |c| write(c, 0, WriteLayout::Unordered, false)),
    ("stream", |c| write(c, 100, WriteLayout::Global, false)),
    ("upgrade", |c| c.array(URI).upgrade(None).map(drop)),
    ("metadata", |c| {
        c.array(URI)
            .change_metadata()?
            .put(
                "key",
                MetadataValue::new(Datatype::StringUtf8, SECRET.as_bytes()),
            )?
            .commit()
    }),
    ("more metadata", |c| {
        c.array(URI)
            .change_metadata()?
            .put(
                "other",
                MetadataValue::new(Datatype::StringUtf8, SECRET.as_bytes()),
            )?
            .commit()
    }),
    ("evolution", |c| {
        let evolution = SchemaEvolution {
            add_enumerations: vec![labels("more")],
            add_attributes: vec![Attribute::new("n", Datatype::StringUtf8, CellValNum::Var)],
            ..SchemaEvolution::default()
        };
        c.array(URI).evolve(&evolution, None)
    }),
    ("write again", |c| {
        write(c, 200, WriteLayout::Unordered, true)
    }),
    ("delete cells", |c| {
        let condition = Condition::compare("s", Comparison::Eq, format!("{SECRET} 7").into_bytes());
        c.array(URI).delete_cells(&condition, None).map(drop)
    }),
    ("write the last time", |c| {
        write(c, 300, WriteLayout::Global, true)
    }),
    ("consolidate commits", |c| {
        c.array(URI).consolidate_commits().map(drop)
    }),
    ("consolidate footers", |c| {
        c.array(URI).consolidate_fragment_metadata().map(drop)
    }),
    ("consolidate metadata", |c| {
        c.array(URI).consolidate_metadata(TimeRange::ALL).map(drop)
    }),
    ("delete fragments", |c| {
        let array = c.array(URI).open()?;
        let last: Vec<String> = array
            .fragments()
            .iter()
            .rev()
            .take(1)
            .map(|f| f.name().to_owned())
            .collect();
        c.array(URI)
            .delete_fragments(FragmentSelection::Named(&last))
            .map(drop)
    }),
    ("consolidate", |c| {
        let rounds = c.array(URI).consolidate(&FragmentOptions::default())?;
        assert_eq!(rounds.len(), 1);
        Ok(())
    }),
    ("vacuum", |c| {
        let modes = [
            Mode::Commits,
            Mode::Fragments,
            Mode::FragmentMetadata,
            Mode::ArrayMetadata,
        ];
        modes.into_iter().try_for_each(|mode| {
            c.array(URI)
                .vacuum(mode, VacuumOptions::default())
                .map(drop)
        })
    }),
    ("copy", |c| c.object(URI).copy_to("mem://copy")),
];

/// Steps that read nothing which is encrypted.
const BLIND: &[&str] = &["consolidate commits", "vacuum", "copy", "delete fragments"];

fn files(memory: &MemoryStorage) -> Vec<(StorePath, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![StorePath::memory("")];
    while let Some(folder) = folders.pop() {
        for entry in memory.list(&folder).unwrap() {
            let path = folder.join(&entry.name);
            if entry.is_dir {
                folders.push(path);
            } else {
                let request = ReadRequest {
                    path: path.clone(),
                    range: ReadRange::All,
                };
                found.push((path, memory.read(&[request]).unwrap().remove(0).to_vec()));
            }
        }
    }
    found.sort();
    found
}

fn look(context: &Context) -> Result<(ColumnSet, usize)> {
    let array = context.array(URI).open()?;
    shows_no_key(&format!(
        "{context:?} {array:?} {:?}",
        array.fragment_info()
    ));
    array.enumerations()?;
    Ok((
        array.read(ReadOptions::new())?.read_all()?,
        array.metadata()?.len(),
    ))
}

#[test]
fn every_way_that_writes() {
    let memory = Arc::new(MemoryStorage::new());
    let right = context(&memory, Some(KEY));
    create(&right).unwrap();
    for (name, step) in STEPS {
        for key in [None, Some(WRONG)] {
            let before = files(&memory);
            let others = context(&memory, key);
            let refused = look(&others).unwrap_err();
            assert!(
                matches!(refused, Error::Encryption { .. }),
                "{name}: {refused:?}"
            );
            assert!(refused.to_string().contains(URI), "{name}: {refused}");
            shows_no_key(&format!("{refused} {refused:?}"));
            if BLIND.contains(name) {
                continue;
            }
            match step(&others) {
                Err(error @ Error::Encryption { .. }) => {
                    assert!(error.to_string().contains("mem://array"), "{name}: {error}");
                    shows_no_key(&format!("{error} {error:?}"));
                }
                other => panic!("{name} with the key {:?}: {other:?}", key.is_some()),
            }
            assert!(files(&memory) == before, "{name}: something has changed");
            let error = others
                .array(URI)
                .check(CheckOptions::default())
                .unwrap_err();
            assert!(matches!(error, Error::Encryption { .. }), "{error:?}");
        }
        step(&right).unwrap_or_else(|error| panic!("{name}: {error}"));
        let report = right
            .array(URI)
            .check(CheckOptions::new().deep(true))
            .unwrap();
        assert!(
            report.worst() <= Some(Severity::Note),
            "{name}: {:?}",
            report.findings
        );
        for (path, bytes) in files(&memory) {
            let readable = bytes
                .windows(10)
                .any(|part| part == &SECRET.as_bytes()[..10]);
            assert!(!readable, "{name}: {path} can be read without the key");
        }
    }
    let (cells, metadata) = look(&right).unwrap();
    // Three writes of 50 each are left, without one cell each.
    assert_eq!((cells.cell_num, metadata), (3 * 49, 2));
    let copy = right
        .array("mem://copy")
        .open()
        .unwrap()
        .read(ReadOptions::new())
        .unwrap()
        .read_all()
        .unwrap();
    assert!(copy == cells);
}

#[test]
fn labels_are_encrypted_with_their_array() {
    let memory = Arc::new(MemoryStorage::new());
    let right = context(&memory, Some(KEY));
    let new = ArraySchema::dense()
        .dimension("x", 0i32..=9, 5)
        .attribute("a", Datatype::Int32);
    let new = new
        .label(0, "name", DataOrder::Increasing, Datatype::Float64)
        .build()
        .unwrap();
    right.array(URI).create(new).unwrap();
    let array = right.array(URI).open().unwrap();
    let label = array.open_label("name").unwrap();
    let uri = label.uri().to_string();
    let refused = context(&memory, Some(WRONG))
        .array(&uri)
        .open()
        .unwrap_err();
    assert!(matches!(refused, Error::Encryption { .. }), "{refused:?}");
}

#[test]
fn a_key_for_an_array_that_is_not_encrypted() {
    let memory = Arc::new(MemoryStorage::new());
    create(&context(&memory, None)).unwrap();
    let with = context(&memory, Some(KEY));
    for (name, step) in &STEPS[..1] {
        let error = step(&with).unwrap_err();
        assert!(
            matches!(error, Error::Encryption { .. }),
            "{name}: {error:?}"
        );
        shows_no_key(&error.to_string());
    }
}
