//! Dimension labels that the reference does not make: outside the array that they label, and
//! without an order.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::datatype::{CellValNum, Datatype};
use azulejo::format::schema::{DataOrder, DimensionLabel};
use azulejo::format::tile::GenericTile;
use azulejo::format::{ArraySchema, NdRectangle, Range};
use azulejo::storage::Uri;
use azulejo::write::{WriteLayout, WriteOptions};
use azulejo::{Array, Config, Context, Error};

/// The label of each coordinate from 0.
const HEIGHTS: [f64; 10] = [3.5, 1.0, 7.25, 1.0, 1.5, -2.0, 9.0, 8.0, 3.5, 3.0];

fn write(context: &Context, uri: &str, cells: impl IntoIterator<Item = ColumnBuffers>) {
    let mut writer = context.array(uri).writer(WriteOptions::new()).unwrap();
    writer.write(&ColumnSet::of(cells).unwrap()).unwrap();
    writer.finish().unwrap();
}

/// Stores a schema that no writer makes.
fn put(context: &Context, uri: &str, schema: &ArraySchema) {
    let location = context.locate(&Uri::parse(uri).unwrap()).unwrap();
    let path = location
        .path
        .join("__schema/__1_1_0123456789abcdef0123456789abcdef");
    let tile = GenericTile::encode(&schema.encode(), schema.version, None).unwrap();
    location.storage.put(&path, tile.into()).unwrap();
}

/// A dense array whose label lies elsewhere: unordered, in an array of its own that is `sparse` or
/// not.
fn labelled(sparse: bool) -> (Context, Array) {
    let context = Context::new(Config::default(), None).unwrap();
    let builder = if sparse {
        ArraySchema::sparse()
    } else {
        ArraySchema::dense()
    };
    let heights = builder
        .dimension("i", 0i32..=9, 4)
        .attribute("h", Datatype::Float64)
        .build()
        .unwrap();
    context
        .array("mem://elsewhere/heights")
        .create(heights)
        .unwrap();
    let labels = ColumnBuffers::of_values("h", HEIGHTS.to_vec());
    let coordinates = sparse.then(|| ColumnBuffers::of_values("i", (0i32..10).collect()));
    write(
        &context,
        "mem://elsewhere/heights",
        [labels].into_iter().chain(coordinates),
    );

    let mut schema = ArraySchema::dense()
        .dimension("x", 0i32..=9, 5)
        .attribute("v", Datatype::Int32)
        .build()
        .unwrap()
        .schema;
    schema.dimension_labels.push(DimensionLabel {
        dimension: 0,
        order: DataOrder::Unordered,
        name: "height".into(),
        relative: false,
        uri: "mem://elsewhere/heights".into(),
        attribute: "h".into(),
        datatype: Datatype::Float64,
        cell_val_num: CellValNum::ONE,
        external: true,
    });
    put(&context, "mem://main", &schema);
    let array = context.array("mem://main").open().unwrap();
    (context, array)
}

#[test]
fn labels_without_an_order_outside_the_array() {
    for sparse in [false, true] {
        let (_context, array) = labelled(sparse);
        let label = array.label("height").unwrap();
        assert_eq!(
            (label.order(), label.reference().external),
            (DataOrder::Unordered, true)
        );
        assert_eq!(label.array().uri().to_string(), "mem://elsewhere/heights");
        let all = label.read(azulejo::space::DimSelection::All).unwrap();
        assert_eq!(all.columns[1].values::<f64>(), Some(&HEIGHTS[..]));
        for (low, high) in [
            (1.0, 1.0),
            (-2.0, 3.5),
            (9.0, 9.0),
            (-10.0, 10.0),
            (3.25, 8.5),
        ] {
            let found = array
                .label_ranges("height", &[Range::of(low, high)])
                .unwrap();
            let mut selected = Vec::new();
            for range in &found {
                let (first, last) = range.bounds::<i32>();
                selected.extend(first..=last);
            }
            let wanted = (0i32..)
                .zip(HEIGHTS)
                .filter(|(_, h)| (low..=high).contains(h))
                .map(|(i, _)| i);
            assert_eq!(selected, wanted.collect::<Vec<_>>(), "{low} to {high}");
            // Neighbours make one range.
            assert!(
                found
                    .windows(2)
                    .all(|two| two[0].bounds::<i32>().1 + 1 < two[1].bounds::<i32>().0)
            );
        }
        // Several ranges of labels, each with its own ranges of coordinates, in their order.
        let found = array
            .label_ranges("height", &[Range::of(9.0, 9.0), Range::of(1.0, 1.0)])
            .unwrap();
        assert_eq!(
            found,
            [Range::of(6i32, 6), Range::of(1i32, 1), Range::of(3i32, 3)]
        );
    }
}

#[test]
fn coordinates_without_a_label_have_no_fill_value_for_one() {
    let (context, array) = labelled(false);
    let ranks = ArraySchema::dense()
        .dimension("i", 0i32..=9, 4)
        .attribute("h", Datatype::Int32)
        .build()
        .unwrap();
    context
        .array("mem://elsewhere/ranks")
        .create(ranks)
        .unwrap();
    for start in [0i32, 7] {
        let ranges = vec![Range::of(start, start + 1)];
        let mut writer = context
            .array("mem://elsewhere/ranks")
            .writer(WriteOptions::new().subarray(NdRectangle { ranges }))
            .unwrap();
        let labels = ColumnBuffers::of_values("h", vec![-start, 100 + start]);
        writer.write(&ColumnSet::of([labels]).unwrap()).unwrap();
        writer.finish().unwrap();
    }
    let mut schema = (**array.schema()).clone();
    let label = &mut schema.dimension_labels[0];
    label.uri = "mem://elsewhere/ranks".into();
    label.datatype = Datatype::Int32;
    put(&context, "mem://ranked", &schema);
    let array = context.array("mem://ranked").open().unwrap();
    let found = array
        .label_ranges("height", &[Range::of(i32::MIN, 0)])
        .unwrap();
    assert_eq!(found, [Range::of(0i32, 0), Range::of(7i32, 7)]);
}

#[test]
fn what_cannot_be_found_is_said() {
    let (context, array) = labelled(false);
    let nothing = array
        .label_ranges("height", &[Range::of(4.0, 5.0)])
        .unwrap_err();
    assert!(
        matches!(&nothing, Error::InvalidArgument(text) if text.contains("height")),
        "{nothing}"
    );
    let backwards = array.label_ranges("height", &[Range::of(5.0, 4.0)]);
    assert!(matches!(backwards, Err(Error::InvalidArgument(_))));
    let wrong_type = array.label_ranges("height", &[Range::of(1i32, 2)]);
    assert!(matches!(wrong_type, Err(Error::InvalidArgument(_))));
    assert!(matches!(
        array.label("depth"),
        Err(Error::SchemaMismatch(_))
    ));

    // The other array is gone, or another one has taken its place.
    context
        .array("mem://elsewhere/others")
        .create(
            ArraySchema::dense()
                .dimension("i", 0i32..=9, 4)
                .attribute("h", Datatype::Int32)
                .build()
                .unwrap(),
        )
        .unwrap();
    for (uri, gone) in [
        ("mem://elsewhere/nowhere", true),
        ("mem://elsewhere/others", false),
    ] {
        let mut schema = (**array.schema()).clone();
        schema.dimension_labels[0].uri = uri.into();
        let main = format!("mem://main-{gone}");
        put(&context, &main, &schema);
        let error = context
            .array(&main)
            .open()
            .unwrap()
            .label("height")
            .unwrap_err();
        match gone {
            true => assert!(matches!(error, Error::NotFound { .. }), "{error}"),
            false => assert!(matches!(error, Error::SchemaMismatch(_)), "{error}"),
        }
    }
}

/// A dense array with an increasing label along `x` and a decreasing one along `y`.
fn two_labels() -> Context {
    let context = Context::new(Config::default(), None).unwrap();
    let schema = ArraySchema::dense()
        .dimension("x", 0i32..=9, 5)
        .dimension("y", 0i32..=3, 2)
        .attribute("v", Datatype::Int32)
        .label(0, "height", DataOrder::Increasing, Datatype::Float64)
        .label(1, "depth", DataOrder::Decreasing, Datatype::Int64);
    context
        .array("mem://two")
        .create(schema.build().unwrap())
        .unwrap();
    context
}

#[test]
fn labels_are_written_with_their_cells() {
    let context = two_labels();
    let rows = |first: i32, last: i32| NdRectangle {
        ranges: vec![Range::of(first, last), Range::of(0i32, 3)],
    };
    let cells = |n: i32| {
        ColumnSet::of([ColumnBuffers::of_values(
            "v",
            (0..n * 4).collect::<Vec<_>>(),
        )])
        .unwrap()
    };
    let heights = |from: i32, n: i32| {
        ColumnBuffers::of_values(
            "height",
            (from..from + n)
                .map(|i| f64::from(i) / 2.0)
                .collect::<Vec<_>>(),
        )
    };
    let depths = || ColumnBuffers::of_values("depth", vec![40i64, 30, 20, 10]);
    let write = |rows: NdRectangle, cells: ColumnSet, labels: &[ColumnBuffers]| {
        let mut writer = context
            .array("mem://two")
            .writer(WriteOptions::new().subarray(rows))
            .unwrap();
        writer
            .write_labelled(&cells, labels)
            .and_then(|()| writer.finish())
    };
    let fragments = || {
        let array = context.array("mem://two").open().unwrap();
        let of = |name: &str| array.open_label(name).unwrap().fragments().len();
        [array.fragments().len(), of("height"), of("depth")]
    };
    let wrong = [
        (
            vec![heights(0, 4), depths()],
            "4 labels \"height\" were given, but the box has 5",
        ),
        (
            vec![
                heights(0, 5),
                ColumnBuffers::of_values("depth", vec![1i64, 2, 3, 4]),
            ],
            "depth",
        ),
        (vec![heights(0, 5), heights(0, 5)], "two columns"),
        (
            vec![ColumnBuffers::of_values("width", vec![1.0; 5])],
            "\"width\"",
        ),
        (
            vec![
                heights(0, 5),
                ColumnBuffers::of_values("depth", vec![1.0f64; 4]),
            ],
            "FLOAT64",
        ),
    ];
    for (labels, says) in wrong {
        let error = write(rows(0, 4), cells(5), &labels)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(says) || error.contains("order"),
            "{says}: {error}"
        );
        assert_eq!(fragments(), [0, 0, 0], "{says}");
    }
    assert!(write(rows(0, 4), cells(4), &[heights(0, 5)]).is_err());
    assert_eq!(fragments(), [0, 0, 0]);

    write(rows(0, 4), cells(5), &[depths(), heights(0, 5)]).unwrap();
    write(rows(5, 9), cells(5), &[heights(5, 5)]).unwrap();
    assert_eq!(fragments(), [2, 2, 1]);
    let array = context.array("mem://two").open().unwrap();
    assert_eq!(
        array
            .label_ranges("height", &[Range::of(1.0f64, 3.2)])
            .unwrap(),
        [Range::of(2i32, 6)]
    );
    assert_eq!(
        array
            .label_ranges("depth", &[Range::of(10i64, 30)])
            .unwrap(),
        [Range::of(1i32, 3)]
    );
    let times = |array: &Array| {
        array
            .fragments()
            .iter()
            .map(|f| f.time_range())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        times(&array),
        times(&array.open_label("height").unwrap()),
        "all at one time"
    );
}

#[test]
fn labels_keep_their_order_from_call_to_call() {
    let context = two_labels();
    let array = context.array("mem://two").open().unwrap();
    let depths = array.open_label("depth").unwrap();
    let name = depths.schema().attributes[0].name.clone();
    let options = WriteOptions::new()
        .layout(WriteLayout::Global)
        .subarray(NdRectangle {
            ranges: vec![Range::of(0i32, 3)],
        });
    let mut writer = depths.writer(options).unwrap();
    let mut write = |values: Vec<i64>| {
        writer.write(&ColumnSet::of([ColumnBuffers::of_values(&*name, values)]).unwrap())
    };
    write(vec![40, 30]).unwrap();
    write(vec![]).unwrap();
    let error = write(vec![35, 20]).unwrap_err().to_string();
    assert!(error.contains("cell 0 is out of order"), "{error}");
    // What was refused has changed nothing.
    write(vec![20, 10]).unwrap();
    writer.finish().unwrap();
    let array = context.array("mem://two").open().unwrap();
    let found = array
        .label_ranges("depth", &[Range::of(10i64, 30)])
        .unwrap();
    assert_eq!(found, [Range::of(1i32, 3)]);
}
