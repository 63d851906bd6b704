//! How many answers are waited for one after another where each takes long: on a clock that only
//! answers move.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::config::ManifestUse;
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{ArraySchema, NewArray};
use azulejo::format::{Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::space::DimSelection;
use azulejo::storage::{
    Entry, Latency, MemoryStorage, Pending, PendingList, PendingRead, PendingTails, RandomAccess,
    ReadInto, ReadRequest, Storage, StorageLayer, StorePath, Tail,
};
use azulejo::write::WriteOptions;
use azulejo::{Array, Config, Context, Result, Subarray};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const URI: &str = "far://array";

/// The time, in round trips: what was asked for at 3 is there at 4, whatever else was asked for
/// with it.
#[derive(Debug, Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn answer<T>(&self, answer: impl FnOnce() -> T) -> T {
        let asked = self.now();
        let answer = answer();
        self.0.fetch_max(asked + 1, Ordering::SeqCst);
        answer
    }

    /// What is under way moves the clock when somebody waits for it.
    fn pending<T: Send + 'static>(&self, answer: Pending<T>) -> Pending<T> {
        let (clock, asked) = (self.clone(), self.now());
        answer.then(move |answer| {
            clock.0.fetch_max(asked + 1, Ordering::SeqCst);
            answer
        })
    }
}

/// Memory as far away as a bucket.
#[derive(Debug, Default)]
struct Far {
    inner: MemoryStorage,
    clock: Clock,
}

impl StorageLayer for Far {
    fn inner(&self) -> &dyn Storage {
        &self.inner
    }

    fn latency(&self) -> Latency {
        Latency::High
    }

    fn random_access(&self) -> Option<&dyn RandomAccess> {
        None
    }

    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>> {
        self.clock.answer(|| self.inner.list(dir))
    }

    fn find(&self, dir: &StorePath, names: &[&str]) -> Result<Vec<Entry>> {
        self.clock.answer(|| self.inner.find(dir, names))
    }

    fn list_all(&self, dirs: &[StorePath]) -> Result<Vec<Vec<Entry>>> {
        self.clock.answer(|| self.inner.list_all(dirs))
    }

    fn list_tree(&self, dir: &StorePath) -> Result<Vec<(String, Vec<Entry>)>> {
        self.clock.answer(|| self.inner.list_tree(dir))
    }

    fn size(&self, path: &StorePath) -> Result<u64> {
        self.clock.answer(|| self.inner.size(path))
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        self.clock.answer(|| self.inner.read(requests))
    }

    fn read_tails(&self, paths: &[StorePath], len: u64) -> Result<Vec<Tail>> {
        self.clock.answer(|| self.inner.read_tails(paths, len))
    }

    fn read_into(&self, requests: &mut [ReadInto<'_>]) -> Result<()> {
        self.clock.answer(|| self.inner.read_into(requests))
    }

    fn start_list(&self, dirs: Vec<StorePath>) -> PendingList {
        self.clock.pending(self.inner.start_list(dirs))
    }

    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead {
        self.clock.pending(self.inner.start_read(requests))
    }

    fn start_read_tails(&self, paths: Vec<StorePath>, len: u64) -> PendingTails {
        self.clock.pending(self.inner.start_read_tails(paths, len))
    }
}

struct Place {
    context: Context,
    clock: Clock,
}

impl Place {
    fn new(schema: NewArray) -> Self {
        let far = Far::default();
        let clock = far.clock.clone();
        let context = Context::new(Config::new().threads(2), None).unwrap();
        let context = context.with_scheme("far", Arc::new(far)).unwrap();
        context.array(URI).create(schema).unwrap();
        Self { context, clock }
    }

    /// The round trips of some work.
    fn rounds<T>(&self, work: impl FnOnce() -> T) -> (T, u64) {
        let before = self.clock.now();
        let result = work();
        (result, self.clock.now() - before)
    }

    fn open(&self) -> (Array, u64) {
        self.rounds(|| self.context.array(URI).open().unwrap())
    }
}

fn line() -> NewArray {
    let line = ArraySchema::dense().dimension("x", 0..=99_999, 10);
    line.attribute("a", Datatype::Int32).build().unwrap()
}

fn append(place: &Place, at: i32) {
    let cells = NdRectangle {
        ranges: vec![Range::of(at * 10, at * 10 + 9)],
    };
    let options = WriteOptions::new().subarray(cells);
    let mut writer = place.context.array(URI).writer(options).unwrap();
    let a = ColumnBuffers::of_values("a", vec![at; 10]);
    writer.write(&ColumnSet::of([a]).unwrap()).unwrap();
    writer.finish().unwrap();
}

fn read(array: &Array, ranges: Vec<Range>) -> u64 {
    let options = ReadOptions::new().subarray(Subarray::Box(vec![DimSelection::Ranges(ranges)]));
    array.read(options).unwrap().read_all().unwrap().cell_num as u64
}

#[test]
fn opening_takes_two_round_trips_and_a_slice_one_more() {
    let place = Place::new(line());
    append(&place, 0);
    let (array, rounds) = place.open();
    assert_eq!(
        rounds, 2,
        "listings; the schema beside the fragment's footer"
    );
    let (cells, rounds) = place.rounds(|| read(&array, vec![Range::of(3, 5)]));
    assert_eq!((cells, rounds), (3, 1));
    // The folder of key-values is listed once the array's own says that it is there.
    let mut writer = place.context.array(URI).change_metadata().unwrap();
    let value = MetadataValue::new(Datatype::StringUtf8, "v");
    writer.put("k", value).unwrap().commit().unwrap();
    let (array, rounds) = place.open();
    assert_eq!(rounds, 3);
    let (metadata, rounds) = place.rounds(|| array.metadata().unwrap().clone());
    assert_eq!((metadata.len(), rounds), (1, 1));
}

#[test]
fn consolidated_metadata_and_vacuum_files_take_one_more() {
    let place = Place::new(line());
    (0..3).for_each(|i| append(&place, i));
    let handle = place.context.array(URI);
    handle.consolidate_fragment_metadata().unwrap();
    let (array, rounds) = place.open();
    assert_eq!((array.fragments().len(), rounds), (3, 3));
    append(&place, 3);
    let (array, rounds) = place.open();
    assert_eq!(
        (array.fragments().len(), rounds),
        (4, 3),
        "the new footer is read beside those of before"
    );

    let place = Place::new(line());
    (0..3).for_each(|i| append(&place, i));
    let handle = place.context.array(URI);
    handle.consolidate(&FragmentOptions::default()).unwrap();
    let (array, rounds) = place.open();
    assert_eq!(
        (array.fragments().len(), rounds),
        (1, 3),
        "listings; the schema and what was replaced; the footer"
    );
}

#[test]
fn with_a_manifest_opening_takes_one_or_two() {
    let opening = |fragments| {
        let place = Place::new(line());
        (0..fragments).for_each(|i| append(&place, i));
        let object = place.context.object(URI);
        object.write_manifests().unwrap();
        let config = place.context.config().clone().manifest(ManifestUse::Always);
        let context = place.context.derive(config, None);
        let (array, rounds) = place.rounds(|| context.array(URI).open().unwrap());
        assert!(array.listed_at().is_some());
        assert_eq!(array.fragments().len(), fragments as usize);
        rounds
    };
    assert_eq!(opening(2), 1, "the manifest, which holds the rest");
    assert_eq!(
        opening(200),
        2,
        "the manifest; the footers, too many for it"
    );
}

#[test]
fn many_windows_of_one_call_are_one_wave() {
    let place = Place::new(line());
    (0..100).for_each(|i| append(&place, i));
    let (array, rounds) = place.open();
    assert!(rounds <= 3, "{rounds}: listings, the schema, footers");
    let windows: Vec<Range> = (0..100)
        .map(|i| Range::of(i * 10 + 2, i * 10 + 4))
        .collect();
    let (cells, rounds) = place.rounds(|| read(&array, windows));
    assert_eq!((cells, rounds), (300, 1));
}

#[test]
fn a_read_of_more_than_memory_keeps_as_much_under_way_as_at_its_begin() {
    let schema = ArraySchema::dense()
        .dimension("x", 0i64..=262_143, 4_096)
        .attribute("a", Datatype::Float64);
    let place = Place::new(schema.build().unwrap());
    let cells: Vec<f64> = (0..262_144).map(f64::from).collect();
    let box_ = NdRectangle {
        ranges: vec![Range::of(0i64, 262_143)],
    };
    let options = WriteOptions::new().subarray(box_);
    let mut writer = place.context.array(URI).writer(options).unwrap();
    let columns = [ColumnBuffers::of_values("a", cells.clone())];
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    writer.finish().unwrap();
    let (array, _) = place.open();
    // 64 tiles of 32 KiB, three of which are decoded together; an eighth of this is for those that
    // travel meanwhile.
    let options = ReadOptions::new().fields(["a"]).memory_budget(4 << 20);
    let (read, rounds) = place.rounds(|| array.read(options).unwrap().read_all().unwrap());
    assert!(read.column("a").unwrap().values::<f64>().unwrap() == cells);
    assert!(rounds <= 6, "{rounds}: 22 groups, five of them at a time");
}

/// 1,000 cells of two attributes, in so many fragments, merged if they are several.
fn thousand_cells(fragments: i64) -> Place {
    let schema = ArraySchema::sparse()
        .dimension("x", 0i64..=9_999, 1_000)
        .attribute("a", Datatype::Int32)
        .attribute("b", Datatype::Float64)
        .capacity(100);
    let place = Place::new(schema.build().unwrap());
    let handle = place.context.array(URI);
    for part in 0..fragments {
        let cells: Vec<i64> = (0..1_000).filter(|x| x % fragments == part).collect();
        let x = ColumnBuffers::of_values("x", cells.clone());
        let a = ColumnBuffers::of_values("a", cells.iter().map(|x| *x as i32).collect());
        let b = ColumnBuffers::of_values("b", cells.iter().map(|x| *x as f64).collect());
        let mut writer = handle.writer(WriteOptions::new()).unwrap();
        writer.write(&ColumnSet::of([x, a, b]).unwrap()).unwrap();
        writer.finish().unwrap();
    }
    if fragments > 1 {
        handle.consolidate(&FragmentOptions::default()).unwrap();
        let done = handle.vacuum(Mode::Fragments, VacuumOptions::default());
        done.unwrap();
    }
    place
}

#[test]
fn a_sparse_read_takes_one_and_a_condition_two() {
    for fragments in [1, 3] {
        let place = thousand_cells(fragments);
        let (array, _) = place.open();
        assert_eq!(array.fragments().len(), 1);
        let (all, rounds) =
            place.rounds(|| array.read(ReadOptions::new()).unwrap().read_all().unwrap());
        assert_eq!((all.cell_num, rounds), (1_000, 1));
        let condition = Condition::compare("a", Comparison::Eq, 77i32.to_le_bytes());
        let options = ReadOptions::new().condition(condition);
        let (some, rounds) = place.rounds(|| array.read(options).unwrap().read_all().unwrap());
        assert_eq!(some.cell_num, 1);
        assert!(rounds <= 2, "{rounds}: what is asked about, then the rest");
    }
}

#[test]
fn a_consolidation_of_all_fragments_opens_the_array_once() {
    let place = Place::new(line());
    (0..3).for_each(|i| append(&place, i));
    let handle = place.context.array(URI);
    let (done, all) = place.rounds(|| handle.consolidate(&FragmentOptions::default()).unwrap());
    assert_eq!(done.iter().map(|round| round.old.len()).sum::<usize>(), 3);

    let place = Place::new(line());
    (0..4).for_each(|i| append(&place, i));
    let handle = place.context.array(URI);
    let (array, _) = place.open();
    let names = array.fragments().iter().map(|f| f.name().to_owned());
    let some = FragmentOptions::new().fragments(names.take(3));
    let (done, some) = place.rounds(|| handle.consolidate(&some).unwrap());
    assert_eq!(done.iter().map(|round| round.old.len()).sum::<usize>(), 3);
    assert!(all < some, "{all} round trips, and {some} for a part");
}
