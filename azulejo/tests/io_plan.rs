//! What reads ask of storage: so many ranges and bytes and no more.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::check::{CheckOptions, Severity};
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::consolidate::FragmentOptions;
use azulejo::format::condition::{Comparison, Condition};
use azulejo::format::schema::{ArraySchema, Attribute, Enumeration};
use azulejo::format::{CellValNum, Datatype, Range};
use azulejo::read::ReadOptions;
use azulejo::space::{DimSelection, Layout};
use azulejo::storage::{LocalStorage, MemoryStorage, RequestLog, RequestLogStorage};
use azulejo::write::WriteOptions;
use azulejo::{Config, Context, Subarray};
use std::sync::Arc;

/// Cells along each dimension of a dense array's tile: 1 MiB of 4-byte cells, in 16 chunks.
const TILE: i32 = 512;
/// A chunk and the header of the next.
const CHUNK: u64 = 64 * 1024 + 12;

struct Logged {
    _dir: tempfile::TempDir,
    context: Context,
    log: RequestLog,
    uri: String,
}

impl Logged {
    fn new() -> Self {
        Self::with(Config::new().decoded_cache(0))
    }

    fn with(config: Config) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let storage = RequestLogStorage::new(Arc::new(LocalStorage::new()));
        let log = storage.log();
        let config = config.threads(2);
        let context = Context::with_storages(
            config,
            None,
            Arc::new(storage),
            Arc::new(MemoryStorage::new()),
        )
        .unwrap();
        let uri = dir.path().join("array").to_str().unwrap().to_owned();
        Self {
            _dir: dir,
            context,
            log,
            uri,
        }
    }

    fn write(&self, columns: impl IntoIterator<Item = ColumnBuffers>) {
        let mut writer = self
            .context
            .array(&self.uri)
            .writer(WriteOptions::new())
            .unwrap();
        writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
        writer.finish().unwrap();
    }

    /// Ranges and bytes that opening takes, then those of a read (its metadata included), then
    /// those of the same again.
    fn requests(&self, options: &ReadOptions) -> [(usize, u64); 3] {
        let _ = self.log.take();
        let taken = || {
            let counts = (self.log.read_num(), self.log.bytes_read());
            let _ = self.log.take();
            counts
        };
        let array = self.context.array(&self.uri).open().unwrap();
        let opened = taken();
        let read = || {
            let cells = array.read(options.clone()).unwrap().read_all().unwrap();
            assert!(cells.cell_num > 0);
            taken()
        };
        [opened, read(), read()]
    }
}

fn dense() -> Logged {
    let logged = Logged::new();
    let schema = ArraySchema::dense()
        .dimension("y", 0..=2 * TILE - 1, TILE)
        .dimension("x", 0..=2 * TILE - 1, TILE)
        .attribute("a", Datatype::Int32)
        .attribute("b", Datatype::Int32)
        .build()
        .unwrap();
    logged.context.array(&logged.uri).create(schema).unwrap();
    let cells = || (0..4 * TILE * TILE).collect::<Vec<i32>>();
    logged.write([
        ColumnBuffers::of_values("a", cells()),
        ColumnBuffers::of_values("b", cells()),
    ]);
    logged
}

fn window(y: [i32; 2], x: [i32; 2]) -> Subarray {
    Subarray::Box(
        [y, x]
            .iter()
            .map(|r| DimSelection::Ranges(vec![Range::of(r[0], r[1])]))
            .collect(),
    )
}

#[test]
fn opening_reads_one_schema_and_one_footer() {
    let [(ranges, bytes), ..] = dense().requests(&ReadOptions::new().fields(["a"]));
    assert_eq!(ranges, 2, "the schema and the fragment's footer");
    assert!(bytes < 16 * 1024, "{bytes} bytes");
}

#[test]
fn a_cell_of_a_large_raw_tile_takes_headers_and_itself() {
    let logged = dense();
    // The first row of the tile's fourth chunk: three headers are passed.
    let row = 3 * (16_384 / TILE);
    let options = ReadOptions::new()
        .fields(["a"])
        .subarray(window([row, row], [7, 7]));
    let [_, (metadata_and_cell, _), (ranges, bytes)] = logged.requests(&options);
    assert_eq!(
        metadata_and_cell, ranges,
        "where the tiles lie came with the footer"
    );
    assert_eq!(ranges, 5, "the first header, three others and the cell");
    assert!(bytes <= 4 * 512 + 4, "{bytes} bytes");
}

#[test]
fn a_window_of_a_raw_tile_takes_its_rows_and_what_lies_between() {
    let logged = dense();
    // Rows 16 to 79 of a tile lie in its first three chunks of 32 rows each.
    let options = ReadOptions::new().subarray(window([16, 79], [100, 131]));
    let [_, _, (ranges, bytes)] = logged.requests(&options);
    assert_eq!(
        ranges,
        2 * 6,
        "for each attribute three headers and the rows in three chunks"
    );
    assert!(bytes <= 2 * (2 * CHUNK + 4 * 512), "{bytes} bytes");
    // Everything of one attribute: no byte twice.
    let [_, _, (_, bytes)] = logged.requests(&ReadOptions::new().fields(["b"]));
    let tile = 8 + 16 * CHUNK;
    assert!(bytes <= 4 * (tile + CHUNK), "{bytes} bytes of {}", 4 * tile);
}

#[test]
fn tiles_that_cannot_meet_a_condition_are_not_read() {
    let logged = dense();
    let below = Condition::compare("a", Comparison::Lt, 100i32.to_le_bytes());
    let options = ReadOptions::new().fields(["b"]).condition(below);
    let array = logged.context.array(&logged.uri).open().unwrap();
    let cells = array.read(options.clone()).unwrap().read_all().unwrap();
    let b = cells.columns[0].values::<i32>().unwrap();
    assert_eq!(b.len(), 4 * (TILE * TILE) as usize);
    assert!(
        (0..)
            .zip(b)
            .all(|(i, b)| *b == if i < 100 { i } else { i32::MIN })
    );
    let [_, _, (_, bytes)] = logged.requests(&options);
    let tile = 8 + 16 * CHUNK;
    assert!(
        bytes <= 2 * (tile + 32 * 512),
        "{bytes} bytes where one tile of each attribute has {tile}"
    );
}

#[test]
fn what_every_cell_meets_takes_no_look_at_cells() {
    let logged = Logged::new();
    let words = Enumeration::of_strings("words", Datatype::StringUtf8, false, ["red"]).unwrap();
    let word = Attribute::new("w", Datatype::Int32, CellValNum::ONE);
    let schema = ArraySchema::dense()
        .dimension("y", 0..=TILE - 1, TILE)
        .dimension("x", 0..=TILE - 1, TILE)
        .enumeration(words)
        .attribute_with(word.enumerated("words"))
        .attribute("b", Datatype::Int32)
        .build()
        .unwrap();
    logged.context.array(&logged.uri).create(schema).unwrap();
    let cells = (0..TILE * TILE).collect::<Vec<i32>>();
    logged.write([
        ColumnBuffers::of_values("w", vec![0i32; cells.len()]),
        ColumnBuffers::of_values("b", cells),
    ]);
    let array = logged.context.array(&logged.uri).open().unwrap();
    let whole = ReadOptions::new().fields(["b"]);
    let other = array.condition("w != 'a word that there is not'").unwrap();
    let [_, _, plain] = logged.requests(&whole);
    let [_, _, tested] = logged.requests(&whole.condition(other));
    assert_eq!(tested, plain);
}

#[test]
fn what_is_never_null_takes_no_look_at_cells() {
    let logged = dense();
    let array = logged.context.array(&logged.uri).open().unwrap();
    let whole = ReadOptions::new().fields(["b"]);
    let not_null = array.condition("a is not null").unwrap();
    let [_, _, (_, plain)] = logged.requests(&whole);
    let [_, _, (_, tested)] = logged.requests(&whole.condition(not_null));
    // The cells of the other attribute are as many bytes again.
    assert!(2 * tested < 3 * plain, "{tested} bytes, {plain} without");
}

/// Every tenth cell; ten rows are a data tile of 1,000 cells.
fn sparse(config: Config) -> Logged {
    let logged = Logged::with(config);
    let schema = ArraySchema::sparse()
        .dimension("y", 0i64..=999, 10)
        .dimension("x", 0i64..=999, 1_000)
        .attribute("a", Datatype::Float64)
        .capacity(1_000)
        .build()
        .unwrap();
    logged.context.array(&logged.uri).create(schema).unwrap();
    let cells: Vec<i64> = (0..100_000).map(|i| i * 10).collect();
    logged.write([
        ColumnBuffers::of_values("y", cells.iter().map(|c| c / 1_000).collect::<Vec<i64>>()),
        ColumnBuffers::of_values("x", cells.iter().map(|c| c % 1_000).collect::<Vec<i64>>()),
        ColumnBuffers::of_values("a", cells.iter().map(|c| *c as f64).collect::<Vec<f64>>()),
    ]);
    logged
}

fn range(low: i64, high: i64) -> DimSelection {
    DimSelection::Ranges(vec![Range::of(low, high)])
}

#[test]
fn a_sparse_box_takes_the_tiles_that_meet_it() {
    let logged = sparse(Config::new().decoded_cache(0));
    let box_ = Subarray::Box(vec![range(500, 504), range(0, 499)]);
    let [_, _, (ranges, bytes)] = logged.requests(&ReadOptions::new().subarray(box_));
    assert_eq!(ranges, 3, "one tile of each field");
    assert!(bytes <= 3 * (8_000 + 64), "{bytes} bytes");
    // All of a tile: which cells are selected is known without coordinates.
    let whole = Subarray::Box(vec![range(500, 509), DimSelection::All]);
    let [_, _, (ranges, _)] = logged.requests(&ReadOptions::new().fields(["a"]).subarray(whole));
    assert_eq!(ranges, 1, "the attribute alone");
}

#[test]
fn what_boxes_need_in_part_is_kept_for_the_next() {
    let logged = sparse(Config::default());
    let box_ = ReadOptions::new().subarray(Subarray::Box(vec![range(500, 504), range(0, 499)]));
    let [_, _, (ranges, _)] = logged.requests(&box_);
    assert_eq!(ranges, 0, "all tiles were there");
    // What is read as a whole is not kept.
    let [_, _, (ranges, _)] = logged.requests(&ReadOptions::new());
    assert!(ranges >= 3, "{ranges} ranges");
    // Nor is more than a sixteenth of what the query may hold: here less than a tile.
    let [_, _, (ranges, _)] = logged.requests(&box_.memory_budget(120_000));
    assert_eq!(ranges, 3);
}

/// The even cells of a row and then the odd ones, merged; `again` are written a third time.
fn merged(again: &[i64]) -> Logged {
    let logged = Logged::new();
    let schema = ArraySchema::sparse()
        .dimension("x", 0i64..=9_999, 10_000)
        .attribute("a", Datatype::Int64)
        .capacity(1_000)
        .build()
        .unwrap();
    let array = logged.context.array(&logged.uri);
    array.create(schema).unwrap();
    for part in 0..2 {
        let cells: Vec<i64> = (0..5_000).map(|cell| cell * 2 + part).collect();
        logged.write([
            ColumnBuffers::of_values("x", cells.clone()),
            ColumnBuffers::of_values("a", cells),
        ]);
    }
    if !again.is_empty() {
        logged.write([
            ColumnBuffers::of_values("x", again.to_vec()),
            ColumnBuffers::of_values("a", again.iter().map(|x| -x).collect::<Vec<i64>>()),
        ]);
    }
    array.consolidate(&FragmentOptions::default()).unwrap();
    let report = array.check(CheckOptions::default()).unwrap();
    let mut findings = report.findings.iter();
    assert!(findings.all(|finding| finding.severity == Severity::Note));
    logged
}

/// Where a consolidation has found no cell twice, its fragment says so, and is read as one that was
/// written at once is: without coordinates and timestamps that nobody asks for.
#[test]
fn a_merged_fragment_of_cells_once_written_takes_what_is_asked_for() {
    let column = 10_000 * 8;
    let values = |logged: &Logged, options: ReadOptions| {
        let array = logged.context.array(&logged.uri).open().unwrap();
        assert_eq!(array.fragments().len(), 1);
        let cells = array.read(options).unwrap().read_all().unwrap();
        cells.column("a").unwrap().values::<i64>().unwrap().to_vec()
    };
    let once = merged(&[]);
    let layouts = [Layout::Unordered, Layout::Global, Layout::RowMajor];
    for layout in layouts {
        let options = ReadOptions::new().fields(["a"]).layout(layout);
        let [_, _, (_, bytes)] = once.requests(&options);
        assert!(bytes <= column + 1_000, "{layout:?}: {bytes} bytes");
        assert!(values(&once, options).into_iter().eq(0..10_000));
    }
    // The first and last cell of a tile of the result, and one within.
    for again in [&[1_000][..], &[1_999], &[4_321], &[0, 9_999]] {
        let twice = merged(again);
        for layout in layouts {
            let options = ReadOptions::new().fields(["a"]).layout(layout);
            let [_, _, (_, bytes)] = twice.requests(&options);
            assert!(bytes > column + 10_000, "{layout:?}: {bytes} bytes");
            let latest = |x: i64| if again.contains(&x) { -x } else { x };
            let mut found = values(&twice, options);
            found.sort_unstable_by_key(|a| a.abs());
            assert!(found.into_iter().eq((0..10_000).map(latest)), "{again:?}");
        }
    }
}
