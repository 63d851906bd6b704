//! What arrays cost on an object store: so many requests and no more.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::schema::ArraySchema;
use azulejo::format::{Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::space::DimSelection;
use azulejo::storage::{IoCounts, IoOp, ObjectStorage, Uri};
use azulejo::write::WriteOptions;
use azulejo::{Array, Config, Context, Subarray};
use std::sync::Arc;

const URI: &str = "s3://bucket/some/array";
/// Cells that each write appends.
const STEP: i32 = 10;

struct Cloud {
    context: Context,
    storage: ObjectStorage,
}

/// Requests by kind: list, get, head, put and parts, delete and all others.
type Counts = [u64; 5];

fn counts(io: &IoCounts) -> Counts {
    let rest = [IoOp::Delete, IoOp::Copy, IoOp::Other].map(|op| io.requests(op));
    [
        io.requests(IoOp::List),
        io.requests(IoOp::Get),
        io.requests(IoOp::Head),
        io.requests(IoOp::Put) + io.requests(IoOp::Multipart),
        rest.iter().sum(),
    ]
}

impl Cloud {
    fn new(fragments: i32) -> Self {
        Self::with(fragments, Config::new().threads(2))
    }

    fn with(fragments: i32, config: Config) -> Self {
        let storage = ObjectStorage::in_memory();
        let context = Context::new(config, None).unwrap();
        let root = Uri::parse("s3://bucket").unwrap();
        let context = context
            .with_storage_at(&root, Arc::new(storage.clone()))
            .unwrap();
        let schema = ArraySchema::dense()
            .dimension("x", 0..=99_999, STEP)
            .attribute("a", Datatype::Int32)
            .attribute("b", Datatype::Float64)
            .build()
            .unwrap();
        context.array(URI).create(schema).unwrap();
        let cloud = Self { context, storage };
        (0..fragments).for_each(|i| cloud.append(i));
        cloud
    }

    fn append(&self, place: i32) {
        let box_ = NdRectangle {
            ranges: vec![Range::of(place * STEP, place * STEP + STEP - 1)],
        };
        let options = WriteOptions::new().subarray(box_);
        let mut writer = self.context.array(URI).writer(options).unwrap();
        let a = ColumnBuffers::of_values("a", vec![place; STEP as usize]);
        let b = ColumnBuffers::of_values("b", vec![f64::from(place); STEP as usize]);
        writer.write(&ColumnSet::of([a, b]).unwrap()).unwrap();
        writer.finish().unwrap();
    }

    /// The requests of some work.
    fn cost<T>(&self, work: impl FnOnce() -> T) -> (T, Counts) {
        let before = self.storage.io_stats();
        let result = work();
        (result, counts(&self.storage.io_stats().since(&before)))
    }

    fn open(&self) -> Array {
        self.context.array(URI).open().unwrap()
    }
}

fn cells(array: &Array, first: i32, last: i32) -> usize {
    let range = DimSelection::Ranges(vec![Range::of(first, last)]);
    let options = ReadOptions::new().subarray(Subarray::Box(vec![range]));
    array.read(options).unwrap().read_all().unwrap().cell_num as usize
}

#[test]
fn opening_lists_three_folders_and_reads_each_footer_once() {
    for fragments in [1, 100] {
        let cloud = Cloud::new(fragments);
        let (array, cost) = cloud.cost(|| cloud.open());
        assert_eq!(array.fragments().len(), fragments as usize);
        assert_eq!(
            cost,
            [3, 1 + fragments as u64, 0, 0, 0],
            "{fragments} fragments"
        );
    }
}

#[test]
fn an_empty_array_takes_listings_and_its_schema() {
    let cloud = Cloud::new(0);
    assert_eq!(cloud.cost(|| cloud.open()).1, [3, 1, 0, 0, 0]);
}

#[test]
fn a_small_slice_takes_a_request_a_file() {
    for fragments in [1, 100] {
        let cloud = Cloud::new(fragments);
        let array = cloud.open();
        let (read, cost) = cloud.cost(|| cells(&array, 3, 5));
        assert_eq!(read, 3);
        assert_eq!(
            cost,
            [0, 2, 0, 0, 0],
            "{fragments} fragments: one for each attribute"
        );
    }
}

#[test]
fn a_full_read_takes_a_request_a_file() {
    for fragments in [1, 100] {
        let cloud = Cloud::new(fragments);
        let array = cloud.open();
        let (read, cost) = cloud.cost(|| cells(&array, 0, fragments * 10 - 1));
        assert_eq!(read, fragments as usize * 10);
        assert_eq!(
            cost,
            [0, 2 * fragments as u64, 0, 0, 0],
            "one for each attribute of each fragment"
        );
    }
}

#[test]
fn an_append_lists_one_folder_and_looks_at_no_fragment() {
    for fragments in [1, 100] {
        let cloud = Cloud::new(fragments);
        let ((), cost) = cloud.cost(|| cloud.append(fragments));
        assert_eq!(
            cost,
            [1, 1, 0, 4, 0],
            "{fragments} fragments: schema; two files, metadata, commit"
        );
    }
}

#[test]
fn with_2000_fragments_nothing_is_read_twice() {
    let cloud = Cloud::new(2_000);
    let before = cloud.storage.io_stats();
    let (array, cost) = cloud.cost(|| cloud.open());
    assert_eq!(
        (array.fragments().len(), cost),
        (2_000, [3, 2_001, 0, 0, 0]),
        "a request a footer"
    );
    let bytes = cloud.storage.io_stats().since(&before).bytes(IoOp::Get);
    assert!(bytes < 2_000 * 1_000, "{bytes}: footers and no more");
    let (read, cost) = cloud.cost(|| cells(&array, 9_995, 10_004));
    assert_eq!(
        (read, cost),
        (10, [0, 4, 0, 0, 0]),
        "two attributes of two fragments"
    );
    let (read, cost) = cloud.cost(|| cells(&array, 0, 19_999));
    assert_eq!((read, cost), (20_000, [0, 4_000, 0, 0, 0]));
    let ((), cost) = cloud.cost(|| cloud.append(2_000));
    assert_eq!(cost, [1, 1, 0, 4, 0]);
}

#[test]
fn a_tree_of_folders_is_one_listing() {
    let cloud = Cloud::new(20);
    let copy = "s3://bucket/some/copy";
    let ((), cost) = cloud.cost(|| cloud.context.object(URI).copy_to(copy).unwrap());
    let files = 1 + 20 * 4;
    assert_eq!(
        cost,
        [13, 1, 2, 4, files + 2],
        "what lies there, twice; whether the target is free, a whole copy or an unfinished one, or a deletion to be finished; the note of that; \
         and the claim of the place: as many for any number of files"
    );
    assert_eq!(
        cloud.context.array(copy).open().unwrap().fragments().len(),
        20
    );
    let (_, cost) = cloud.cost(|| cloud.context.object(URI).write_manifests().unwrap());
    assert!(cost[0] <= 3, "{cost:?}");
}

#[test]
fn consolidated_metadata_is_one_request_for_2000_fragments() {
    let cloud = Cloud::new(2_000);
    cloud
        .context
        .array(URI)
        .consolidate_fragment_metadata()
        .unwrap();
    cloud.context.array(URI).consolidate_commits().unwrap();
    let (array, cost) = cloud.cost(|| cloud.open());
    assert_eq!(array.fragments().len(), 2_000);
    assert_eq!(
        cost,
        [4, 3, 0, 0, 0],
        "the schema, all footers, all commits"
    );
    let (read, cost) = cloud.cost(|| cells(&array, 3, 5));
    assert_eq!(read, 3);
    assert!(cost[1] <= 4 && cost[0] == 0, "{cost:?}");
}

#[test]
fn a_cache_answers_what_was_read_before() {
    let cloud = Cloud::with(5, Config::new().threads(2).tile_cache(10 << 20));
    assert_eq!(
        cloud.cost(|| cells(&cloud.open(), 3, 25)).1,
        [3, 5 + 3 * 2, 0, 0, 0],
        "the writes know the schema"
    );
    let (read, cost) = cloud.cost(|| cells(&cloud.open(), 3, 25));
    assert_eq!(
        (read, cost),
        (23, [3, 0, 0, 0, 0]),
        "what may have changed is listed again"
    );
    cloud.append(5);
    let (read, cost) = cloud.cost(|| cells(&cloud.open(), 3, 55));
    assert_eq!(
        (read, cost),
        (53, [3, 1 + 3 * 2, 0, 0, 0]),
        "what is new is read"
    );
}
