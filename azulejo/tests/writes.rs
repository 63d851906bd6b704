//! Writes against a naive model of cells, and what writers refuse.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use azulejo::column::ColumnView;
use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::schema::{Attribute, Dimension};
use azulejo::format::{ArraySchema, CellValNum, Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::space::{Layout, Subarray};
use azulejo::write::{WriteLayout, WriteOptions};
use azulejo::{ColumnBuffers, ColumnSet, Config, Context, Error};
use proptest::prelude::*;
use support::model::Case;

fn context() -> Context {
    Context::new(Config::new().threads(2), None).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn random_writes_read_back(seed: u64) {
        let context = context();
        let mut case = Case::new(seed);
        context.array("mem://a").create_at(case.new.clone(), 1).unwrap();
        let mut timestamp = 1;
        for _ in 0..4 {
            // Of two writes with one timestamp the later wins.
            timestamp += seed >> 7 & 1;
            case.write(&context, "mem://a", timestamp);
            case.check(&context, "mem://a");
        }
    }
}

fn sparse(context: &Context, uri: &str) {
    let new = ArraySchema::sparse()
        .dimension("x", -5i64..=99, 10)
        .dimension_with(Dimension::new("t", -1.0f64..=1.0))
        .attribute_with(Attribute::new("a", Datatype::Float64, CellValNum::ONE))
        .attribute_with(Attribute::new("n", Datatype::Int32, CellValNum::ONE).nullable())
        .capacity(3)
        .build()
        .unwrap();
    context.array(uri).create(new).unwrap();
}

fn cells(x: Vec<i64>, t: Vec<f64>) -> ColumnSet {
    let (a, n) = (vec![0.5; x.len()], vec![Some(1i32); x.len()]);
    ColumnSet::of([
        ColumnBuffers::of_values("x", x),
        ColumnBuffers::of_values("t", t),
        ColumnBuffers::of_values("a", a),
        ColumnBuffers::of_options("n", n),
    ])
    .unwrap()
}

fn refusal(context: &Context, uri: &str, options: WriteOptions, set: &ColumnSet) -> Error {
    let mut writer = context.array(uri).writer(options).unwrap();
    let error = writer.write(set).unwrap_err();
    drop(writer);
    let array = context.array(uri).open().unwrap();
    assert!(
        array.fragments().is_empty(),
        "a refused write left something"
    );
    error
}

#[test]
fn memory_of_the_callers_is_written_as_columns_are() {
    let context = context();
    sparse(&context, "mem://a");
    let (x, t, a) = (
        [3i64.to_le_bytes(), 1i64.to_le_bytes()],
        [0.5f64.to_le_bytes(); 2],
        [7.5f64.to_le_bytes(); 2],
    );
    let (n, valid) = ([4i32.to_le_bytes(), 5i32.to_le_bytes()], [1u8, 0]);
    let mut writer = context
        .array("mem://a")
        .writer(WriteOptions::new())
        .unwrap();
    let types = writer.column_types(&[]);
    let column = |name: &str, data| {
        let column_type = types.iter().find(|t| &*t.name == name).unwrap().clone();
        ColumnView::new(column_type, data, None, (name == "n").then_some(&valid[..])).unwrap()
    };
    let columns = [
        column("t", t.as_flattened()),
        column("x", x.as_flattened()),
        column("n", n.as_flattened()),
        column("a", a.as_flattened()),
    ];
    writer.write_views(&columns).unwrap();
    writer.finish().unwrap();
    let array = context.array("mem://a").open().unwrap();
    let read = array
        .read(ReadOptions::new().fields(["x", "n", "a"]))
        .unwrap()
        .read_all()
        .unwrap();
    assert_eq!(read.columns[0].values::<i64>(), Some(&[1, 3][..]));
    assert_eq!(read.columns[1].validity.as_deref(), Some(&[0, 1][..]));
    assert_eq!(read.columns[1].values::<i32>().unwrap()[1], 4);
    assert_eq!(read.columns[2].values::<f64>(), Some(&[7.5, 7.5][..]));

    let short = ColumnView::new(types[0].clone(), &[0; 12], None, None).unwrap_err();
    assert!(
        short
            .to_string()
            .contains("does not match the number of cells"),
        "{short}"
    );
}

#[test]
fn bad_cells_are_named() {
    let context = context();
    sparse(&context, "mem://a");
    let unordered = WriteOptions::new;
    let global = || WriteOptions::new().layout(WriteLayout::Global);
    for (options, set, words) in [
        (
            unordered(),
            cells(vec![3, 100], vec![0.0; 2]),
            [
                "cell 1 (x=100, t=0.0)",
                "domain [-5, 99] of dimension \"x\"",
            ],
        ),
        (
            unordered(),
            cells(vec![3, -6], vec![2.0, 0.0]),
            [
                "cell 0 (x=3, t=2.0)",
                "domain [-1.0, 1.0] of dimension \"t\"",
            ],
        ),
        (
            unordered(),
            cells(vec![1, 2, 3], vec![0.0, f64::NAN, 0.0]),
            ["cell 1 (x=2, t=NaN)", "dimension \"t\""],
        ),
        (
            unordered(),
            cells(vec![9, 7, 9], vec![0.0, 0.0, -0.0]),
            ["cells 0 and 2", "(x=9, t=-0.0)"],
        ),
        (
            global(),
            cells(vec![9, 7, 8], vec![0.0; 3]),
            ["cell 1 (x=7, t=0.0)", "(x=9, t=0.0)"],
        ),
        (
            global(),
            cells(vec![7, 7, 8], vec![0.0; 3]),
            ["cell 1 (x=7, t=0.0)", "has the coordinates of"],
        ),
    ] {
        let error = refusal(&context, "mem://a", options, &set);
        let Error::InvalidArgument(text) = &error else {
            panic!("{error:?}")
        };
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
}

#[test]
fn bad_columns_are_named() {
    let context = context();
    sparse(&context, "mem://a");
    let whole = || cells(vec![1, 2], vec![0.0; 2]);
    let with = |i: usize, column: ColumnBuffers| {
        let mut set = whole();
        set.columns[i] = column;
        set
    };
    let mut missing = whole();
    missing.columns.remove(2);
    let mut extra = whole();
    extra
        .columns
        .push(ColumnBuffers::of_values("z", vec![1u8, 2]));
    let mut twice = whole();
    twice
        .columns
        .push(ColumnBuffers::of_values("x", vec![1i64, 2]));
    for (set, words) in [
        (missing, ["attribute \"a\" is missing", "\"x\""]),
        (extra, ["\"z\"", "no field"]),
        (twice, ["two columns", "\"x\""]),
        (
            with(0, ColumnBuffers::of_values("x", vec![1i32, 2])),
            ["INT32", "INT64"],
        ),
        (
            with(2, ColumnBuffers::of_values("a", vec![1i64, 2])),
            ["INT64", "FLOAT64"],
        ),
        (
            with(2, ColumnBuffers::of_strings("a", ["1", "2"])),
            ["STRING_UTF8", "FLOAT64"],
        ),
    ] {
        let error = refusal(&context, "mem://a", WriteOptions::new(), &set);
        let Error::SchemaMismatch(text) = &error else {
            panic!("{error:?}")
        };
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    let nulls = with(2, ColumnBuffers::of_options("a", [Some(1.0), None]));
    let error = refusal(&context, "mem://a", WriteOptions::new(), &nulls).to_string();
    assert!(
        error.contains("\"a\"") && error.contains("cell 1 is null"),
        "{error}"
    );
    let short = with(2, ColumnBuffers::of_values("a", vec![1.0]));
    let error = refusal(&context, "mem://a", WriteOptions::new(), &short).to_string();
    assert!(error.contains("\"a\" has 1 cells"), "{error}");
    // A nullable attribute takes a column that has no nulls.
    let mut writer = context
        .array("mem://a")
        .writer(WriteOptions::new())
        .unwrap();
    writer
        .write(&with(3, ColumnBuffers::of_values("n", vec![7i32, 8])))
        .unwrap();
    assert_eq!(writer.finish().unwrap().len(), 1);
}

#[test]
fn cells_outside_the_current_domain_are_refused() {
    let context = context();
    let new = ArraySchema::sparse()
        .dimension("x", 0i64..=99, 10)
        .current_domain(vec![Range::of(0i64, 49)])
        .build()
        .unwrap();
    context.array("mem://a").create(new).unwrap();
    let set = ColumnSet::of([ColumnBuffers::of_values("x", vec![3i64, 50])]).unwrap();
    let error = refusal(&context, "mem://a", WriteOptions::new(), &set).to_string();
    assert!(
        error.contains("cell 1 (x=50)") && error.contains("current domain [0, 49]"),
        "{error}"
    );
    // Clients know these words.
    let known = "Cells are written outside of the defined current domain.";
    assert!(error.contains(known), "{error}");
    let inside = ColumnSet::of([ColumnBuffers::of_values("x", vec![3i64, 49])]).unwrap();
    context
        .array("mem://a")
        .writer(WriteOptions::new())
        .unwrap()
        .write(&inside)
        .unwrap();

    let new = ArraySchema::dense()
        .dimension("x", 0i64..=99, 10)
        .attribute("a", Datatype::Int8);
    let new = new
        .current_domain(vec![Range::of(0i64, 49)])
        .build()
        .unwrap();
    context.array("mem://dense").create(new).unwrap();
    let set = ColumnSet::of([ColumnBuffers::of_values("a", vec![1i8, 2])]).unwrap();
    let at = |start, end| {
        WriteOptions::new().subarray(NdRectangle {
            ranges: vec![Range::of(start, end)],
        })
    };
    let error = refusal(&context, "mem://dense", at(49i64, 50), &set).to_string();
    assert!(error.contains(known) && error.contains("\"x\""), "{error}");
    context
        .array("mem://dense")
        .writer(at(48i64, 49))
        .unwrap()
        .write(&set)
        .unwrap();
}

#[test]
fn order_holds_across_calls() {
    let context = context();
    sparse(&context, "mem://a");
    let mut writer = context
        .array("mem://a")
        .writer(WriteOptions::new().layout(WriteLayout::Global))
        .unwrap();
    writer.write(&cells(vec![1, 2], vec![0.0; 2])).unwrap();
    for (x, word) in [
        (1, "in the global order"),
        (2, "has the coordinates of"),
        (2, "(x=2, t=0.0)"),
    ] {
        let error = writer
            .write(&cells(vec![x], vec![0.0]))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(word) || word == "equal" && error.contains("has the coordinates of"),
            "{error}"
        );
    }
    // What was refused changes nothing.
    writer
        .write(&cells(vec![2, 3, 4, 60], vec![0.5, 0.0, 0.0, 0.0]))
        .unwrap();
    assert_eq!(writer.finish().unwrap().len(), 1);
    let array = context.array("mem://a").open().unwrap();
    let read = array
        .read(ReadOptions::new().fields(["x"]))
        .unwrap()
        .read_all()
        .unwrap();
    assert_eq!(
        read.columns[0].values::<i64>(),
        Some(&[1, 2, 2, 3, 4, 60][..])
    );
}

#[test]
fn a_dimension_of_one_real_number_needs_no_extent() {
    let context = context();
    let new = ArraySchema::sparse()
        .dimension_with(Dimension::new("x", 3.5f64..=3.5))
        .dimension("y", 0i32..=99, 10)
        .attribute("a", Datatype::Int32)
        .build()
        .unwrap();
    context.array("mem://a").create(new).unwrap();
    for value in [1, 2] {
        let mut writer = context
            .array("mem://a")
            .writer(WriteOptions::new())
            .unwrap();
        let set = ColumnSet::of([
            ColumnBuffers::of_values("x", vec![3.5; 3]),
            ColumnBuffers::of_values("y", vec![40, 7, 20 + value]),
            ColumnBuffers::of_values("a", vec![value; 3]),
        ]);
        writer.write(&set.unwrap()).unwrap();
        writer.finish().unwrap();
    }
    let array = context.array("mem://a").open().unwrap();
    for layout in [Layout::RowMajor, Layout::ColMajor, Layout::Global] {
        let read = array
            .read(ReadOptions::new().layout(layout))
            .unwrap()
            .read_all()
            .unwrap();
        let values = |name: &str| {
            read.columns
                .iter()
                .find(|c| &*c.column_type.name == name)
                .unwrap()
                .values::<i32>()
        };
        assert_eq!(values("y"), Some(&[7, 21, 22, 40][..]), "{layout:?}");
        assert_eq!(values("a"), Some(&[2, 1, 2, 2][..]), "{layout:?}");
    }
}

#[test]
fn a_dropped_writer_leaves_nothing() {
    let context = context();
    sparse(&context, "mem://a");
    let mut writer = context
        .array("mem://a")
        .writer(WriteOptions::new().layout(WriteLayout::Global))
        .unwrap();
    writer
        .write(&cells((0..50).collect(), vec![0.0; 50]))
        .unwrap();
    drop(writer);
    let array = context.array("mem://a").open().unwrap();
    assert!(array.fragments().is_empty());
    let location = array.location();
    let left = location
        .storage
        .list(&location.path.join("__fragments"))
        .unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn empty_writes_are_none() {
    let context = context();
    sparse(&context, "mem://a");
    for layout in [WriteLayout::Unordered, WriteLayout::Global] {
        let mut writer = context
            .array("mem://a")
            .writer(WriteOptions::new().layout(layout))
            .unwrap();
        writer.write(&cells(Vec::new(), Vec::new())).unwrap();
        assert!(writer.finish().unwrap().is_empty());
        let writer = context
            .array("mem://a")
            .writer(WriteOptions::new().layout(layout))
            .unwrap();
        assert!(writer.finish().unwrap().is_empty());
    }
    assert!(
        context
            .array("mem://a")
            .open()
            .unwrap()
            .fragments()
            .is_empty()
    );
}

#[test]
fn the_later_of_two_equal_timestamps_wins() {
    let context = context();
    let new = ArraySchema::sparse()
        .dimension("x", 0u64..=u64::MAX - 1, 1 << 40)
        .attribute("a", Datatype::Int64);
    context
        .array("mem://a")
        .create_at(new.build().unwrap(), 1)
        .unwrap();
    for i in 0..40i64 {
        let mut writer = context
            .array("mem://a")
            .writer(WriteOptions::new().timestamp(5))
            .unwrap();
        let set = ColumnSet::of([
            ColumnBuffers::of_values("x", vec![u64::MAX - 1]),
            ColumnBuffers::of_values("a", vec![i]),
        ]);
        writer.write(&set.unwrap()).unwrap();
        let array = context.array("mem://a").open().unwrap();
        let read = array.read(ReadOptions::new()).unwrap().read_all().unwrap();
        assert_eq!(read.columns[1].values::<i64>(), Some(&[i][..]));
    }
}

fn dense(context: &Context, uri: &str) {
    let new = ArraySchema::dense()
        .dimension("x", -7i32..=12, 4)
        .dimension("y", 1i32..=6, 3)
        .attribute("a", Datatype::Int16)
        .build()
        .unwrap();
    context.array(uri).create(new).unwrap();
}

#[test]
fn dense_boxes_must_fit() {
    let context = context();
    dense(&context, "mem://a");
    let column = |n: usize| ColumnSet::of([ColumnBuffers::of_values("a", vec![1i16; n])]).unwrap();
    let area = |x: (i32, i32), y: (i32, i32)| NdRectangle {
        ranges: vec![Range::of(x.0, x.1), Range::of(y.0, y.1)],
    };
    let options = |x, y| WriteOptions::new().subarray(area(x, y));
    for (options, cells, word) in [
        (options((0, 1), (1, 2)), 3, "4 cells, but 3"),
        (options((0, 13), (1, 2)), 28, "domain"),
        (options((1, 0), (1, 2)), 4, "ends before it starts"),
        (
            options((-7, -1), (1, 6)).layout(WriteLayout::Global),
            42,
            "whole space tiles",
        ),
        (
            options((-7, -4), (1, 6)).layout(WriteLayout::Global),
            25,
            "the box has 24",
        ),
        (WriteOptions::new().memory_budget(10), 120, "space tile"),
    ] {
        let error = refusal(&context, "mem://a", options, &column(cells)).to_string();
        assert!(error.contains(word), "{error}");
    }
    let mut writer = context
        .array("mem://a")
        .writer(options((-7, -4), (1, 6)).layout(WriteLayout::Global))
        .unwrap();
    writer.write(&column(23)).unwrap();
    let error = writer.finish().unwrap_err().to_string();
    assert!(
        error.contains("after 23 cells") && error.contains("24"),
        "{error}"
    );
    let with_dimension = ColumnSet::of([
        ColumnBuffers::of_values("a", vec![1i16; 120]),
        ColumnBuffers::of_values("x", vec![1i32; 120]),
    ]);
    let error = refusal(
        &context,
        "mem://a",
        WriteOptions::new(),
        &with_dimension.unwrap(),
    )
    .to_string();
    assert!(error.contains("is a dimension"), "{error}");
    for layout in [WriteLayout::Unordered, WriteLayout::Row] {
        let uri = if layout == WriteLayout::Row {
            "mem://s"
        } else {
            "mem://a"
        };
        if layout == WriteLayout::Row {
            sparse(&context, uri);
        }
        assert!(
            context
                .array(uri)
                .writer(WriteOptions::new().layout(layout))
                .is_err()
        );
    }
    let mut writer = context
        .array("mem://a")
        .writer(WriteOptions::new())
        .unwrap();
    writer
        .write_box(&area((12, 12), (6, 6)), &column(1))
        .unwrap();
    writer
        .write_box(&area((-7, -7), (1, 2)), &column(2))
        .unwrap();
    assert_eq!(writer.finish().unwrap().len(), 2);
}

#[test]
fn few_large_cells_of_a_dense_tile_need_no_more_than_they_take() {
    let context = Context::new(Config::new().threads(2).memory_budget(32 << 20), None).unwrap();
    let new = ArraySchema::dense()
        .dimension("x", 0i64..=9_999, 1_000)
        .var_attribute("a", Datatype::StringUtf8)
        .build();
    let array = context.array("mem://a");
    array.create(new.unwrap()).unwrap();
    let large = "x".repeat(1 << 20);
    let cells = ColumnSet::of([ColumnBuffers::of_strings("a", [large.as_str(), "y"])]).unwrap();
    let mut writer = array.writer(WriteOptions::new()).unwrap();
    let rows = NdRectangle {
        ranges: vec![Range::of(999i64, 1_000i64)],
    };
    writer.write_box(&rows, &cells).unwrap();
    writer.finish().unwrap();
    let options = ReadOptions::new().subarray(Subarray::ranges(rows.ranges.clone()));
    let read = array.open().unwrap().read(options).unwrap();
    assert_eq!(
        read.read_all().unwrap().columns[0].data.len(),
        (1 << 20) + 1
    );
}

#[test]
fn large_writes_become_several_fragments_that_count_at_once() {
    let context = context();
    sparse(&context, "mem://a");
    let options = WriteOptions::new().max_fragment_size(300).timestamp(9);
    let mut writer = context.array("mem://a").writer(options).unwrap();
    writer
        .write(&cells((0..50).rev().collect(), vec![0.25; 50]))
        .unwrap();
    let names = writer.finish().unwrap();
    assert!(names.len() > 3, "{names:?}");
    let array = context.array("mem://a").open().unwrap();
    let mut found: Vec<String> = array
        .fragments()
        .iter()
        .map(|f| f.timestamped_name().to_string())
        .collect();
    found.sort();
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!(found, sorted);
    let location = array.location();
    let commits = location
        .storage
        .list(&location.path.join("__commits"))
        .unwrap();
    let [commit] = commits.as_slice() else {
        panic!("{commits:?}")
    };
    assert!(commit.name.ends_with(".con"));
    let read = array
        .read(ReadOptions::new().fields(["x"]))
        .unwrap()
        .read_all()
        .unwrap();
    assert_eq!(
        read.columns[0].values::<i64>(),
        Some(&(0..50).collect::<Vec<_>>()[..])
    );
}

/// How many fragments there are goes by the size of cells, of which a call without any says nothing.
#[test]
fn an_empty_first_call_does_not_count() {
    let context = context();
    let column = |n: usize| ColumnSet::of([ColumnBuffers::of_values("a", vec![1i16; n])]).unwrap();
    let fragments = ["mem://a", "mem://b"].map(|uri| {
        dense(&context, uri);
        let options = WriteOptions::new()
            .layout(WriteLayout::Global)
            .max_fragment_size(60);
        let mut writer = context.array(uri).writer(options).unwrap();
        if uri == "mem://a" {
            writer.write(&column(0)).unwrap();
        }
        writer.write(&column(60)).unwrap();
        writer.write(&column(0)).unwrap();
        writer.write(&column(60)).unwrap();
        writer.finish().unwrap().len()
    });
    assert_eq!(fragments[0], fragments[1]);
    assert!(fragments[0] > 2, "{fragments:?}");
}

#[test]
fn filters_that_do_not_fit_matter_where_cells_are_stored() {
    let context = context();
    let dictionary = || Pipeline {
        filters: vec![Filter::Dictionary { level: -1 }],
        ..Pipeline::default()
    };
    let schema = |dimension, attribute| {
        ArraySchema::dense()
            .dimension_with(
                Dimension::new("x", 0i32..=3)
                    .tile_extent(4i32)
                    .filters(dimension),
            )
            .attribute_with(
                Attribute::new("a", Datatype::Int16, CellValNum::ONE).filters(attribute),
            )
            .build()
            .unwrap()
    };
    let cells = ColumnSet::of([ColumnBuffers::of_values("a", vec![4i16, 3, 2, 1])]).unwrap();
    // Coordinates of dense arrays are not stored.
    context
        .array("mem://dense")
        .create(schema(dictionary(), Pipeline::default()))
        .unwrap();
    let mut writer = context
        .array("mem://dense")
        .writer(WriteOptions::new())
        .unwrap();
    writer.write(&cells).unwrap();
    writer.finish().unwrap();
    let array = context.array("mem://dense").open().unwrap();
    let read = array.read(ReadOptions::new()).unwrap().read_all().unwrap();
    assert_eq!(read.columns[0].values::<i16>(), Some(&[4, 3, 2, 1][..]));

    context
        .array("mem://numbers")
        .create(schema(Pipeline::default(), dictionary()))
        .unwrap();
    let error = refusal(&context, "mem://numbers", WriteOptions::new(), &cells).to_string();
    assert!(
        error.contains("tile 0 of \"a\"") && error.contains("DICTIONARY"),
        "{error}"
    );
}
