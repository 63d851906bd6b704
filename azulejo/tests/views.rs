//! Texts as Arrow's views are the texts that come without.
#![cfg(feature = "arrow")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use azulejo::arrow::ArrowOptions;
use azulejo::arrow::arrow_array::cast::AsArray;
use azulejo::arrow::arrow_array::{Array as _, ArrayRef, RecordBatch};
use azulejo::arrow::arrow_schema::DataType;
use azulejo::column::{ColumnBuffers, ColumnBuilder, ColumnSet, ColumnType};
use azulejo::condition::{Comparison, Condition};
use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::schema::{ArraySchema, Attribute, SchemaEvolution};
use azulejo::format::{CellValNum, Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::write::WriteOptions;
use azulejo::{Array, Config, Context, Subarray};
use support::layouts::LAYOUTS;
use support::random::Random;

fn filters(filters: impl IntoIterator<Item = Filter>) -> Pipeline {
    Pipeline {
        filters: filters.into_iter().collect(),
        ..Pipeline::default()
    }
}

fn dictionary() -> Pipeline {
    filters([Filter::Dictionary { level: -1 }, Filter::Zstd { level: 1 }])
}

fn text(name: &str, datatype: Datatype) -> Attribute {
    Attribute::new(name, datatype, CellValNum::Var)
}

/// Texts of lengths around those that views hold themselves.
fn some_text(random: &mut Random, different: usize) -> String {
    let len = random.pick(&[0, 1, 4, 11, 12, 13, 64, 65, 200]);
    let letter = char::from(b'a' + random.below(different) as u8);
    letter.to_string().repeat(len)
}

fn column(
    random: &mut Random,
    name: &str,
    datatype: Datatype,
    nulls: bool,
    n: usize,
) -> ColumnBuffers {
    let mut kind = ColumnType::new(name, datatype).with_cell_val_num(CellValNum::Var);
    kind.nullable = nulls;
    let mut column = ColumnBuilder::new(kind);
    let different = random.pick(&[1, 3, 20]);
    let mut text = some_text(random, different);
    for _ in 0..n {
        // Some in a row are the same.
        if random.chance(70) {
            text = some_text(random, different);
        }
        column.append_cell(text.as_bytes(), !(nulls && random.chance(20)));
    }
    column.finish()
}

const DOMAIN: i64 = 300;

/// A random array: fragments that overlap, without an attribute at first, with deleted cells.
fn array(random: &mut Random, context: &Context, uri: &str, dense: bool) -> Array {
    let new = match dense {
        true => ArraySchema::dense(),
        false => ArraySchema::sparse()
            .capacity(random.pick(&[7, 40, 1000]))
            .allows_duplicates(random.chance(50)),
    };
    let rle = filters([Filter::Rle { level: -1 }, Filter::Zstd { level: 1 }]);
    let new = new
        .dimension("x", 0..=DOMAIN - 1, 50)
        .attribute_with(
            text("s", Datatype::StringUtf8)
                .nullable()
                .filters(dictionary()),
        )
        .attribute_with(text("a", Datatype::StringAscii).filters(dictionary()))
        .attribute_with(text("r", Datatype::StringAscii).filters(rle))
        .attribute_with(
            text("p", Datatype::StringUtf8).filters(filters([Filter::Zstd { level: 1 }])),
        )
        .attribute_with(text("b", Datatype::Blob).nullable())
        .build()
        .unwrap();
    let duplicates = new.schema.allows_dups;
    context.array(uri).create(new).unwrap();
    for fragment in 0..1 + random.below(4) {
        let later = fragment > 1;
        if fragment == 2 {
            let added = text("t", Datatype::StringUtf8)
                .fill_value("a fill value of some length")
                .filters(dictionary());
            let evolution = SchemaEvolution {
                add_attributes: vec![added],
                ..SchemaEvolution::default()
            };
            context.array(uri).evolve(&evolution, None).unwrap();
        }
        // A dense fragment has all cells of a range.
        let low = random.below(100) as i64;
        let high = if random.chance(50) {
            DOMAIN - 1
        } else {
            low + 150
        };
        let mut xs: Vec<i64> = match dense {
            true => (low..=high).collect(),
            false => (0..DOMAIN).filter(|_| random.chance(60)).collect(),
        };
        if duplicates && random.chance(50) {
            let again: Vec<i64> = xs.iter().copied().filter(|_| random.chance(30)).collect();
            xs.extend(again);
        }
        let n = xs.len();
        let mut columns = vec![
            column(random, "s", Datatype::StringUtf8, true, n),
            column(random, "a", Datatype::StringAscii, false, n),
            column(random, "r", Datatype::StringAscii, false, n),
            column(random, "p", Datatype::StringUtf8, false, n),
            column(random, "b", Datatype::Blob, true, n),
        ];
        if later {
            columns.push(column(random, "t", Datatype::StringUtf8, false, n));
        }
        if !dense {
            columns.push(ColumnBuffers::of_values("x", xs));
        }
        let options = match dense {
            true => WriteOptions::new().subarray(NdRectangle {
                ranges: vec![Range::of(low, high)],
            }),
            false => WriteOptions::new(),
        };
        let mut writer = context.array(uri).writer(options).unwrap();
        writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
        writer.finish().unwrap();
    }
    if !dense && random.chance(40) {
        let x = (random.below(DOMAIN as usize) as i64).to_le_bytes();
        let gone = Condition::compare("x", Comparison::Gt, x);
        context.array(uri).delete_cells(&gone, None).unwrap();
    }
    context.array(uri).open().unwrap()
}

fn within(range: Range) -> Subarray {
    Subarray::ranges([range])
}

fn options(random: &mut Random, array: &Array) -> ReadOptions {
    let dense = array.schema().is_dense();
    let mut options = ReadOptions::new();
    options = options.layout(match dense {
        true => random.pick(&LAYOUTS[..3]),
        false => random.pick(&LAYOUTS),
    });
    if random.chance(50) {
        let low = random.below(DOMAIN as usize) as i64;
        let high = low + random.below((DOMAIN - low) as usize) as i64;
        let range = Range::of(low, high);
        options = options.subarray(within(range));
    }
    if random.chance(40) {
        let field = random.pick(&["s", "a", "r", "p"]);
        let text = "b".repeat(random.pick(&[0, 1, 12, 13]));
        let operator = random.pick(&[Comparison::Ge, Comparison::Lt, Comparison::Ne]);
        options = options.condition(Condition::compare(field, operator, text.into_bytes()));
    }
    if random.chance(30) {
        options = options.limit(random.below(400) as u64);
    }
    if random.chance(50) {
        options = options.memory_budget(random.pick(&[300_000, 600_000]));
    }
    if random.chance(30) {
        options = options.batch_bytes(20_000);
    }
    if dense && random.chance(30) {
        options = options.matching_only();
    }
    options
}

type Texts = Vec<Option<Vec<u8>>>;

/// The cells of a column of texts or bytes; nothing of others.
fn texts(array: &ArrayRef) -> Texts {
    let text = |t: Option<&str>| t.map(|t| t.as_bytes().to_vec());
    match array.data_type() {
        DataType::LargeUtf8 => array.as_string::<i64>().iter().map(text).collect(),
        DataType::Utf8View => array.as_string_view().iter().map(text).collect(),
        DataType::LargeBinary => {
            let bytes = array.as_binary::<i64>().iter();
            bytes.map(|b| b.map(<[u8]>::to_vec)).collect()
        }
        DataType::BinaryView => {
            let bytes = array.as_binary_view().iter();
            bytes.map(|b| b.map(<[u8]>::to_vec)).collect()
        }
        _ => Vec::new(),
    }
}

fn all_texts(batches: &[RecordBatch]) -> Vec<Texts> {
    let mut all = Vec::new();
    for batch in batches {
        all.resize(batch.num_columns(), Texts::new());
        for (all, column) in all.iter_mut().zip(batch.columns()) {
            all.extend(texts(column));
        }
    }
    all
}

/// Whether a column of views has less memory for texts than the texts that do not fit in views.
fn shares(array: &ArrayRef) -> bool {
    let DataType::Utf8View = array.data_type() else {
        return false;
    };
    let array = array.as_string_view();
    let memory: usize = array.data_buffers().iter().map(|buffer| buffer.len()).sum();
    let long = array.iter().flatten().filter(|text| text.len() > 12);
    memory < long.map(str::len).sum()
}

#[test]
fn views_are_the_texts() {
    let dir = tempfile::tempdir().unwrap();
    // Of dense arrays and of sparse ones.
    let (mut sharing, mut several) = ([0, 0], [0, 0]);
    for seed in 0..40 {
        let random = &mut Random(seed);
        let dense = random.chance(40);
        let batched = random.chance(30);
        let config = Config::new().batched_reads(batched).threads(2);
        let context = Context::new(config, None).unwrap();
        let uri = dir.path().join(format!("{seed}"));
        let array = array(random, &context, uri.to_str().unwrap(), dense);
        for _ in 0..8 {
            let options = options(random, &array);
            let raw = random.chance(20);
            let read = |views: bool| -> Vec<RecordBatch> {
                let arrow = ArrowOptions::new().raw(raw).views(views);
                let reader = array.read(options.clone()).unwrap();
                let batches = reader.record_batches(arrow).unwrap();
                batches.map(Result::unwrap).collect()
            };
            let (plain, views) = (read(false), read(true));
            let rows = random.pick(&[1, 7, 100]);
            let arrow = ArrowOptions::new().raw(raw).views(true).rows(rows);
            let reader = array.read(options.clone()).unwrap();
            let batches = reader.record_batches(arrow).unwrap();
            let pieces: Vec<RecordBatch> = batches.map(Result::unwrap).collect();
            assert!(
                pieces
                    .iter()
                    .all(|piece| (1..=rows).contains(&piece.num_rows()))
            );
            assert_eq!(all_texts(&views), all_texts(&pieces), "{seed} {options:?}");
            assert_eq!(plain.len(), views.len());
            assert_eq!(all_texts(&plain), all_texts(&views), "{seed} {options:?}");
            several[usize::from(!dense)] += usize::from(views.len() > 1);
            for batch in &views {
                for (column, field) in batch.columns().iter().zip(batch.schema().fields()) {
                    let is_large = matches!(
                        field.data_type(),
                        DataType::LargeUtf8 | DataType::LargeBinary
                    );
                    assert!(!is_large && column.data_type() == field.data_type());
                    sharing[usize::from(!dense)] += usize::from(shares(column));
                }
            }
        }
    }
    assert!(
        several.iter().all(|reads| *reads > 10),
        "reads in several batches: {several:?}"
    );
    assert!(
        sharing.iter().all(|columns| *columns > 50),
        "columns whose texts are not written out: {sharing:?}"
    );
}

#[cfg(feature = "stream")]
#[test]
fn a_stream_gives_the_same_views() {
    use futures_core::Stream;
    use std::pin::pin;
    use std::task::{Context as TaskContext, Poll, Waker};
    for seed in 0..10 {
        let random = &mut Random(seed);
        let context = Context::new(Config::default(), None).unwrap();
        let array = array(random, &context, "mem://views", seed % 2 == 0);
        let options = options(random, &array);
        let mut arrow = ArrowOptions::new().views(true);
        if random.chance(50) {
            arrow = arrow.rows(40);
        }
        let reader = array.read(options.clone()).unwrap();
        let expected: Vec<RecordBatch> = reader
            .record_batches(arrow)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let mut stream = pin!(array.read_stream(options).record_batches(arrow));
        let mut cx = TaskContext::from_waker(Waker::noop());
        let mut found = Vec::new();
        loop {
            match stream.as_mut().poll_next(&mut cx) {
                Poll::Ready(Some(batch)) => found.push(batch.unwrap()),
                Poll::Ready(None) => break,
                Poll::Pending => std::thread::yield_now(),
            }
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn only_selected_cells_have_to_be_text() {
    let context = Context::new(Config::default(), None).unwrap();
    let new = ArraySchema::sparse()
        .capacity(4)
        .dimension("x", 0..=9i64, 10)
        .attribute_with(text("a", Datatype::StringAscii).filters(dictionary()))
        .build()
        .unwrap();
    context.array("mem://bytes").create(new).unwrap();
    let mut bytes = ColumnBuilder::new(
        ColumnType::new("a", Datatype::StringAscii).with_cell_val_num(CellValNum::Var),
    );
    let bad = b"\xff no text, and long enough to lie apart";
    for cell in [
        &b"good"[..],
        b"good and too long for a view",
        bad,
        b"good",
        bad,
        b"",
    ] {
        bytes.append_cell(cell, true);
    }
    let columns = [
        ColumnBuffers::of_values("x", (0..6i64).collect::<Vec<_>>()),
        bytes.finish(),
    ];
    let mut writer = context
        .array("mem://bytes")
        .writer(WriteOptions::new())
        .unwrap();
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    writer.finish().unwrap();
    let array = context.array("mem://bytes").open().unwrap();
    let read = |low: i64, high: i64, raw: bool, views: bool| -> Result<Vec<Texts>, String> {
        let range = Range::of(low, high);
        let options = ReadOptions::new().subarray(within(range));
        let batches = array.read(options.fields(["a"])).unwrap();
        let arrow = ArrowOptions::new().raw(raw).views(views);
        let batches: Result<Vec<RecordBatch>, _> = batches.record_batches(arrow).unwrap().collect();
        batches.map(|b| all_texts(&b)).map_err(|e| e.to_string())
    };
    let mut errors = 0;
    for low in 0..6 {
        for high in low..6 {
            for raw in [false, true] {
                let found = read(low, high, raw, true);
                assert_eq!(found, read(low, high, raw, false), "{low} {high} {raw}");
                errors += usize::from(found.is_err());
            }
        }
    }
    assert_eq!(errors, 16);
}
