//! Fragments that are written in many places and committed together.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use azulejo::check::CheckOptions;
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::schema::{NewArray, SchemaEvolution};
use azulejo::format::{ArraySchema, Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::storage::{LockFolder, MemoryStorage, Storage, StorageLayer, StorePath};
use azulejo::write::WriteOptions;
use azulejo::{Config, Context, Error};
use bytes::Bytes;
use std::sync::{Arc, Mutex};

const URI: &str = "mem://array";

fn context() -> Context {
    Context::new(Config::default(), None).unwrap()
}

fn span(first: i64, last: i64) -> NdRectangle {
    NdRectangle {
        ranges: vec![Range::new(first.to_le_bytes(), last.to_le_bytes())],
    }
}

/// Ten cells of a row that can grow to a thousand.
fn row() -> NewArray {
    let schema = ArraySchema::dense().dimension("x", 0i64..=999, 10);
    let schema = schema.attribute("a", Datatype::Int32);
    schema.current_domain(span(0, 9).ranges).build().unwrap()
}

fn write(context: &Context, first: i64, values: Vec<i32>) -> azulejo::Result<Vec<String>> {
    let last = first + values.len() as i64 - 1;
    let options = WriteOptions::new().timestamp(7).uncommitted();
    let options = options.subarray(span(first, last));
    let mut writer = context.array(URI).writer(options)?;
    writer.write(&ColumnSet::of([ColumnBuffers::of_values("a", values)])?)?;
    writer.finish()
}

fn cells(context: &Context) -> Vec<i32> {
    let array = context.array(URI).open().unwrap();
    let cells = array.read(ReadOptions::new()).unwrap().read_all().unwrap();
    cells.column("a").unwrap().values::<i32>().unwrap().to_vec()
}

#[test]
fn they_count_once_they_are_committed_and_the_domain_has_grown() {
    let context = context();
    let array = context.array(URI);
    array.create(row()).unwrap();
    let mut names = write(&context, 0, vec![1; 10]).unwrap();
    // Beyond what the array has yet, but not beyond what it can have.
    names.extend(write(&context, 10, vec![2; 5]).unwrap());
    write(&context, 995, vec![3; 6]).unwrap_err();
    let orphan = write(&context, 0, vec![9; 10]).unwrap();
    assert_eq!(cells(&context), [i32::MIN; 10]);

    array.commit_fragments(&names).unwrap();
    assert_eq!(cells(&context), [1; 10]);
    let evolution = SchemaEvolution {
        expand_current_domain: Some(span(0, 14)),
        ..SchemaEvolution::default()
    };
    array.evolve(&evolution, None).unwrap();
    assert_eq!(cells(&context), [vec![1; 10], vec![2; 5]].concat());
    assert_eq!(context.array(URI).open().unwrap().fragments().len(), 2);

    // What was never named goes.
    array.discard_fragments(&orphan).unwrap();
    let report = array.check(CheckOptions::default()).unwrap();
    assert_eq!(report.findings, [], "{report:?}");

    // Once more changes nothing.
    array.commit_fragments(&names).unwrap();
    assert_eq!(context.array(URI).open().unwrap().fragments().len(), 2);
    assert_eq!(cells(&context), [vec![1; 10], vec![2; 5]].concat());
}

/// Who was killed between the commit and the growth leaves cells beyond the current domain: that is no
/// end of consolidating, and they are seen when the array has grown.
#[test]
fn consolidation_keeps_cells_beyond_the_current_domain() {
    for max_fragment_size in [None, Some(1)] {
        let context = context();
        let array = context.array(URI);
        array.create(row()).unwrap();
        let mut names = write(&context, 0, vec![1; 10]).unwrap();
        names.extend(write(&context, 10, vec![2; 15]).unwrap());
        array.commit_fragments(&names).unwrap();
        let mut options = FragmentOptions::default();
        options.max_fragment_size = max_fragment_size;
        let done = array.consolidate(&options).unwrap();
        assert_eq!(done.len(), 1);
        array
            .vacuum(Mode::Fragments, VacuumOptions::default())
            .unwrap();
        assert_eq!(cells(&context), [1; 10]);
        let evolution = SchemaEvolution {
            expand_current_domain: Some(span(0, 24)),
            ..SchemaEvolution::default()
        };
        array.evolve(&evolution, None).unwrap();
        assert_eq!(cells(&context), [vec![1; 10], vec![2; 15]].concat());
        let report = array.check(CheckOptions::default()).unwrap();
        assert_eq!(report.findings, [], "{report:?}");
    }
}

#[test]
fn what_is_missing_or_counts_already_is_refused() {
    let context = context();
    let array = context.array(URI);
    array.create(row()).unwrap();
    let one = write(&context, 0, vec![1; 10]).unwrap();
    let gone = write(&context, 0, vec![2; 10]).unwrap();
    array.discard_fragments(&gone).unwrap();
    let both = [one.clone(), gone].concat();
    let error = array.commit_fragments(&both).unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    assert_eq!(cells(&context), [i32::MIN; 10]);
    for name in [
        "",
        "..",
        "__1_1_x",
        "a/b",
        "__1_1_0123456789abcdef0123456789abcdef_9",
    ] {
        let error = array.commit_fragments(&[name.into()]).unwrap_err();
        assert!(
            matches!(error, Error::InvalidArgument(_)),
            "{name}: {error}"
        );
    }
    array.commit_fragments(&one).unwrap();
    let error = array.discard_fragments(&one).unwrap_err();
    assert!(error.to_string().contains("counts already"), "{error}");
    assert_eq!(cells(&context), [1; 10]);
    array.commit_fragments(&[]).unwrap();
}

/// A storage over a network that keeps commits to itself, and does not answer.
#[derive(Debug, Default)]
struct Silent {
    inner: MemoryStorage,
    /// What was sent, while it is so.
    sent: Mutex<Option<Vec<(StorePath, Bytes)>>>,
}

impl StorageLayer for Silent {
    fn inner(&self) -> &dyn Storage {
        &self.inner
    }

    fn locking(&self) -> Option<&dyn LockFolder> {
        None
    }

    fn put(&self, path: &StorePath, body: Bytes) -> azulejo::Result<()> {
        match &mut *self.sent.lock().unwrap() {
            Some(sent) if path.to_string().contains("/__commits/") => {
                sent.push((path.clone(), body));
                Err(Error::Storage {
                    op: "write",
                    uri: path.to_string(),
                    source: std::io::ErrorKind::TimedOut.into(),
                })
            }
            _ => self.inner.put(path, body),
        }
    }
}

#[test]
fn a_commit_that_arrives_late_finds_its_fragments() {
    for several in [false, true] {
        let silent = Arc::new(Silent::default());
        let local = Arc::new(MemoryStorage::new());
        let memory = Arc::clone(&silent);
        let context = Context::with_storages(Config::default(), None, local, memory).unwrap();
        let array = context.array(URI);
        array.create(row()).unwrap();
        let mut names = write(&context, 0, vec![1; 10]).unwrap();
        if several {
            names.extend(write(&context, 0, vec![2; 5]).unwrap());
        }
        *silent.sent.lock().unwrap() = Some(Vec::new());
        array.commit_fragments(&names).unwrap_err();
        let sent = silent.sent.lock().unwrap().take().unwrap();
        assert_eq!(sent.len(), 1);
        // Whoever gives up what he has written does not know.
        let error = array.discard_fragments(&names).unwrap_err();
        assert!(error.to_string().contains("may count later"), "{error}");
        assert_eq!(cells(&context), [i32::MIN; 10]);
        for (path, body) in sent {
            Storage::put(&silent.inner, &path, body).unwrap();
        }
        let found = cells(&context);
        assert_eq!(
            found.iter().filter(|cell| **cell > 0).count(),
            10,
            "{found:?}"
        );
        array.commit_fragments(&names).unwrap();
    }
}

/// Adds cells behind the end, however many others do; how often another one was faster.
fn append(context: &Context, uri: &str, values: &[i32]) -> usize {
    let array = context.array(uri);
    let end = || {
        let open = array.open().unwrap();
        let current = open.current_domain().unwrap();
        let end: [u8; 8] = current.ranges[0].end.as_slice().try_into().unwrap();
        i64::from_le_bytes(end)
    };
    let mut lost = 0;
    loop {
        let seen = end();
        let last = seen + values.len() as i64;
        let options = WriteOptions::new().uncommitted();
        let mut writer = array
            .writer(options.subarray(span(seen + 1, last)))
            .unwrap();
        let cells = ColumnBuffers::of_values("a", values.to_vec());
        writer.write(&ColumnSet::of([cells]).unwrap()).unwrap();
        let names = writer.finish().unwrap();
        let hold = array.hold().unwrap();
        if end() == seen {
            hold.commit_fragments(&names).unwrap();
            let evolution = SchemaEvolution {
                expand_current_domain: Some(span(0, last)),
                ..SchemaEvolution::default()
            };
            hold.evolve(&evolution, None).unwrap();
            return lost;
        }
        drop(hold);
        array.discard_fragments(&names).unwrap();
        lost += 1;
    }
}

#[test]
fn of_those_who_append_at_once_none_loses_a_cell() {
    let folder = tempfile::tempdir().unwrap();
    let local = folder.path().join("row").to_str().unwrap().to_owned();
    for uri in ["mem://row", &local] {
        let context = context();
        context.array(uri).create(row()).unwrap();
        let lost: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|thread| {
                    let context = context.clone();
                    scope.spawn(move || -> usize {
                        let of = |i| append(&context, uri, &[thread * 100 + i; 3]);
                        (0..12).map(of).sum()
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        let array = context.array(uri).open().unwrap();
        let read = array.read(ReadOptions::new()).unwrap().read_all().unwrap();
        let cells = read.column("a").unwrap().values::<i32>().unwrap().to_vec();
        let (old, new) = cells.split_at(10);
        assert_eq!(old, [i32::MIN; 10], "{uri}");
        let mut boxes: Vec<&[i32]> = new.chunks(3).collect();
        boxes.sort_unstable();
        let wanted: Vec<[i32; 3]> = (0..4)
            .flat_map(|thread| (0..12).map(move |i| [thread * 100 + i; 3]))
            .collect();
        assert_eq!(boxes, wanted, "{uri}: {lost} races were lost");
        let report = context.array(uri).check(CheckOptions::default()).unwrap();
        assert_eq!(report.findings, [], "{report:?}");
    }
}

#[test]
fn nobody_changes_what_is_held() {
    let context = context();
    let array = context.array(URI);
    array.create(row()).unwrap();
    let hold = array.hold().unwrap();
    let grown = |last| SchemaEvolution {
        expand_current_domain: Some(span(0, last)),
        ..SchemaEvolution::default()
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| context.array(URI).evolve(&grown(29), None));
        // It waits, however long this takes, and nothing but it does.
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!other.is_finished());
        write(&context, 0, vec![1; 10]).unwrap();
        hold.evolve(&grown(19), None).unwrap();
        assert_eq!(cells(&context).len(), 20);
        drop(hold);
        other.join().unwrap().unwrap();
    });
    assert_eq!(cells(&context).len(), 30);
    let error = context.array("mem://nothing").hold().unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
}
