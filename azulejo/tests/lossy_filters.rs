//! Filters that change values: conditions and aggregates speak of the cells as they read, and such
//! arrays are healthy.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use azulejo::check::CheckOptions;
use azulejo::column::{ColumnBuffers, ColumnBuilder, ColumnSet, ColumnType};
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::schema::{Attribute, Dimension};
use azulejo::format::tile::GenericTile;
use azulejo::format::{ArraySchema, CellValNum, Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::read::aggregate::{Aggregate, AggregateValue};
use azulejo::space::{DimSelection, Layout, PointColumn, Points, Subarray};
use azulejo::storage::Uri;
use azulejo::write::WriteOptions;
use azulejo::{Config, Context, Error, TimeRange};
use support::layouts::LAYOUTS;
use support::model::Random;

const URI: &str = "mem://a";
const CELLS: i32 = 60;

fn pipeline(random: &mut Random) -> Pipeline {
    let scale = Filter::FloatScale {
        scale: random.pick(&[0.5, 3.0, 0.01, 10.0]),
        offset: random.pick(&[0.0, -4.0, 0.3]),
        byte_width: random.pick(&[4, 8]),
    };
    let filters = match random.below(3) {
        0 => vec![scale],
        1 => vec![scale, Filter::Zstd { level: 1 }],
        _ => vec![Filter::Byteshuffle, Filter::ChecksumMd5],
    };
    Pipeline {
        filters,
        ..Pipeline::default()
    }
}

/// Writes an array of random reals (`f32` or `f64`), one value in tiles of five cells.
fn make(context: &Context, random: &mut Random, dense: bool) -> Datatype {
    let datatype = random.pick(&[Datatype::Float32, Datatype::Float64]);
    let nullable = random.chance(30);
    let mut attribute = Attribute::new("a", datatype, CellValNum::ONE).filters(pipeline(random));
    if nullable {
        attribute = attribute.nullable();
    }
    let builder = if dense {
        ArraySchema::dense()
    } else {
        ArraySchema::sparse()
    };
    let schema = builder
        .dimension_with(Dimension::new("d", 0..=CELLS - 1).tile_extent(5i32))
        .attribute_with(attribute)
        .capacity(5)
        .build()
        .unwrap();
    context.array(URI).create(schema).unwrap();
    for time in 1..random.below(2) as u64 + 2 {
        let mut kind = ColumnType::new("a", datatype);
        if nullable {
            kind = kind.with_nulls();
        }
        let mut values = ColumnBuilder::new(kind);
        let mut coordinates = ColumnBuilder::new(ColumnType::new("d", Datatype::Int32));
        // Values near each other in a tile, so that bounds of tiles say something.
        for d in 0..CELLS {
            let value = f64::from(d / 5 * 7) + random.below(700) as f64 / 100.0;
            let valid = !nullable || random.chance(80);
            match datatype {
                Datatype::Float32 => values.append_cell(&(value as f32).to_le_bytes(), valid),
                _ => values.append_cell(&value.to_le_bytes(), valid),
            }
            coordinates.append_cell(&d.to_le_bytes(), true);
        }
        let mut columns = vec![values.finish()];
        let mut options = WriteOptions::new().timestamp(time);
        if dense {
            options = options.subarray(NdRectangle {
                ranges: vec![Range::of(0, CELLS - 1)],
            });
        } else {
            columns.push(coordinates.finish());
        }
        let mut writer = context.array(URI).writer(options).unwrap();
        writer
            .write(&ColumnSet {
                cell_num: CELLS as usize,
                columns,
            })
            .unwrap();
        writer.finish().unwrap();
    }
    datatype
}

fn real(datatype: Datatype, bytes: &[u8]) -> f64 {
    match datatype {
        Datatype::Float32 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
        _ => f64::from_le_bytes(bytes.try_into().unwrap()),
    }
}

fn bytes(datatype: Datatype, value: f64) -> Vec<u8> {
    match datatype {
        Datatype::Float32 => (value as f32).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    }
}

fn values(datatype: Datatype, set: &ColumnSet) -> Vec<f64> {
    set.columns[0]
        .cells()
        .flatten()
        .map(|cell| real(datatype, cell))
        .collect()
}

fn context() -> Context {
    Context::new(Config::new().threads(1), None).unwrap()
}

#[test]
fn conditions_and_aggregates_are_those_of_decoded_cells() {
    for seed in 0..120 {
        let context = context();
        let random = &mut Random(seed);
        let dense = seed % 2 == 0;
        let datatype = make(&context, random, dense);
        let array = context.array(URI).open().unwrap();
        let options = || ReadOptions::new().fields(["a"]).matching_only();
        let all = values(
            datatype,
            &array
                .read(ReadOptions::new().fields(["a"]))
                .unwrap()
                .read_all()
                .unwrap(),
        );
        for _ in 0..12 {
            // Often a value that some cell has, and often one just beside.
            let mut limit = all[random.below(all.len())];
            if random.chance(50) {
                limit += random.pick(&[-0.1, 0.1, 0.001]);
            }
            let literal = bytes(datatype, limit);
            let limit = real(datatype, &literal);
            for op in [
                Comparison::Lt,
                Comparison::Le,
                Comparison::Gt,
                Comparison::Ge,
                Comparison::Eq,
                Comparison::Ne,
            ] {
                let holds = |v: &f64| match op {
                    Comparison::Lt => *v < limit,
                    Comparison::Le => *v <= limit,
                    Comparison::Gt => *v > limit,
                    Comparison::Ge => *v >= limit,
                    Comparison::Eq => *v == limit,
                    _ => *v != limit,
                };
                let condition = Condition::compare("a", op, literal.clone());
                let mut found = values(
                    datatype,
                    &array
                        .read(options().condition(condition))
                        .unwrap()
                        .read_all()
                        .unwrap(),
                );
                let mut expected: Vec<f64> = all.iter().copied().filter(holds).collect();
                found.sort_by(f64::total_cmp);
                expected.sort_by(f64::total_cmp);
                assert_eq!(found, expected, "seed {seed}: a {op:?} {limit}");
            }
        }
        let asked = ["sum:a", "min:a", "max:a"].map(|a| a.parse::<Aggregate>().unwrap());
        let found = array.aggregate(ReadOptions::new(), &asked).unwrap();
        let sum: f64 = all.iter().sum();
        let AggregateValue::Real(found_sum) = found[0] else {
            panic!("no sum")
        };
        assert!(
            (found_sum - sum).abs() < 1e-6 * sum.abs(),
            "seed {seed}: {found_sum} is not {sum}"
        );
        let cell = |value: f64| AggregateValue::Cell {
            datatype,
            bytes: bytes(datatype, value),
        };
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(found[1..], [cell(least), cell(most)], "seed {seed}");

        let deep = CheckOptions::new().deep(true);
        let report = context.array(URI).check(deep).unwrap();
        assert_eq!(report.findings, [], "seed {seed}");
    }
}

/// Pictures: lossy ones, and ones that lose nothing but the colours of what is transparent.
#[test]
fn pictures_are_what_they_read_as() {
    for (lossless, input_format, depth) in [(false, 1u8, 3u16), (true, 1, 3), (true, 3, 4)] {
        let context = context();
        let row = 8 * depth;
        let filter = Filter::Webp {
            quality: 30.0,
            input_format,
            lossless,
            y_extent: 8,
            x_extent: row,
        };
        let schema = ArraySchema::dense()
            .dimension_with(Dimension::new("y", 0u16..=15).tile_extent(8u16))
            .dimension_with(Dimension::new("x", 0u16..=2 * row - 1).tile_extent(row))
            .attribute_with(
                Attribute::new("a", Datatype::UInt8, CellValNum::ONE).filters(Pipeline {
                    filters: vec![filter],
                    ..Pipeline::default()
                }),
            )
            .build()
            .unwrap();
        context.array(URI).create(schema).unwrap();
        let mut random = Random(u64::from(depth));
        let mut column = ColumnBuilder::new(ColumnType::new("a", Datatype::UInt8));
        let cells = 16 * 2 * usize::from(row);
        for i in 0..cells {
            let transparent = input_format == 3 && i % 4 == 3;
            column.append_cell(
                &[if transparent {
                    0
                } else {
                    100 + random.below(60) as u8
                }],
                true,
            );
        }
        let mut writer = context.array(URI).writer(WriteOptions::new()).unwrap();
        writer
            .write(&ColumnSet {
                cell_num: cells,
                columns: vec![column.finish()],
            })
            .unwrap();
        writer.finish().unwrap();

        let array = context.array(URI).open().unwrap();
        let read = |options: ReadOptions| -> Vec<u8> {
            let set = array.read(options).unwrap().read_all().unwrap();
            set.columns[0]
                .cells()
                .flatten()
                .map(|cell| cell[0])
                .collect()
        };
        let all = read(ReadOptions::new());
        for limit in 0..=255u8 {
            let condition = Condition::compare("a", Comparison::Eq, [limit]);
            let found = read(ReadOptions::new().condition(condition).matching_only());
            let expected = all.iter().filter(|v| **v == limit).count();
            assert_eq!(
                found.len(),
                expected,
                "lossless {lossless}, format {input_format}, a = {limit}"
            );
        }
        let found = array
            .aggregate(ReadOptions::new(), &["sum:a".parse().unwrap()])
            .unwrap();
        let sum = all.iter().map(|v| u64::from(*v)).sum();
        assert_eq!(found, [AggregateValue::Unsigned(sum)]);
        let deep = CheckOptions::new().deep(true);
        assert_eq!(context.array(URI).check(deep).unwrap().findings, []);
    }
}

#[test]
fn coordinates_are_what_they_read_as() {
    let scale = Filter::FloatScale {
        scale: 1.0,
        offset: 0.0,
        byte_width: 4,
    };
    let filters = Pipeline {
        filters: vec![scale],
        ..Pipeline::default()
    };
    let schema = ArraySchema::sparse()
        .dimension_with(
            Dimension::new("x", 0.0..=1e6)
                .tile_extent(1000.0)
                .filters(filters),
        )
        .attribute("a", Datatype::Int32)
        .capacity(5)
        .build()
        .unwrap();
    let context = context();
    context.array(URI).create(schema).unwrap();
    // Boxes are of the coordinates that were written, which are 0.4 more than those that are read. Each
    // meets two of the other fragment.
    let cells = 400;
    for fragment in 0..2 {
        let places = (0..cells).map(|i| 2 * i + 5 * fragment);
        let columns = [
            ColumnBuffers::of_values(
                "x",
                places
                    .clone()
                    .map(|x| f64::from(x) + 0.4)
                    .collect::<Vec<_>>(),
            ),
            ColumnBuffers::of_values("a", places.collect::<Vec<i32>>()),
        ];
        let mut writer = context.array(URI).writer(WriteOptions::new()).unwrap();
        writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
        writer.finish().unwrap();
    }
    let array = context.array(URI).open().unwrap();
    let mut expected: Vec<i32> = (0..cells).flat_map(|i| [2 * i, 2 * i + 5]).collect();
    expected.sort_unstable();
    for layout in LAYOUTS {
        for memory in [1 << 30, 1 << 16, 1 << 14] {
            let options = ReadOptions::new().layout(layout).memory_budget(memory);
            let mut read: Vec<(f64, i32)> = Vec::new();
            for batch in array.read(options).unwrap() {
                let batch = batch.unwrap();
                let places = batch.columns[0].values::<f64>().unwrap();
                let values = batch.columns[1].values::<i32>().unwrap();
                read.extend(places.iter().copied().zip(values.iter().copied()));
            }
            if matches!(layout, Layout::RowMajor | Layout::ColMajor) {
                assert!(read.is_sorted_by_key(|cell| cell.0), "{layout:?}, {memory}");
            }
            read.sort_by_key(|cell| cell.1);
            let values: Vec<i32> = read.iter().map(|cell| cell.1).collect();
            assert_eq!(values, expected, "{layout:?}, {memory}");
            assert!(read.iter().all(|cell| cell.0 == f64::from(cell.1)));
        }
    }
    let bounds = [Aggregate::Min("x".into()), Aggregate::Max("x".into())];
    let found = array.aggregate(ReadOptions::new(), &bounds).unwrap();
    let value = |x: i32| AggregateValue::Cell {
        datatype: Datatype::Float64,
        bytes: f64::from(x).to_le_bytes().to_vec(),
    };
    assert_eq!(found, [value(0), value(2 * cells + 3)]);
}

fn scale() -> Filter {
    Filter::FloatScale {
        scale: 1.0,
        offset: 0.0,
        byte_width: 8,
    }
}

fn only(filter: Filter) -> Pipeline {
    Pipeline {
        filters: vec![filter],
        ..Pipeline::default()
    }
}

fn write_at(context: &Context, time: u64, cells: &[(f64, i32)]) {
    let columns = [
        ColumnBuffers::of_values("x", cells.iter().map(|cell| cell.0).collect::<Vec<_>>()),
        ColumnBuffers::of_values("a", cells.iter().map(|cell| cell.1).collect::<Vec<_>>()),
    ];
    let options = WriteOptions::new().timestamp(time);
    let mut writer = context.array(URI).writer(options).unwrap();
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    writer.finish().unwrap();
}

fn values_at(context: &Context, time: u64) -> Vec<i32> {
    let array = (context.array(URI))
        .open_at(TimeRange::until(time))
        .unwrap();
    let set = array.read(ReadOptions::new()).unwrap().read_all().unwrap();
    let mut values = set.columns[1].values::<i32>().unwrap().to_vec();
    values.sort_unstable();
    values
}

/// The filters of coordinates are those of the times of merged cells too.
#[test]
fn times_of_cells_survive_filters_of_coordinates() {
    for filter in [scale(), Filter::PositiveDelta { max_window: 1024 }] {
        let is_scale = filter == scale();
        let context = context();
        let builder = ArraySchema::sparse().attribute("a", Datatype::Int32);
        let builder = match is_scale {
            true => builder.dimension_with(Dimension::new("x", 0.0..=1e6).tile_extent(1000.0)),
            // No filter of reals.
            false => builder.dimension_with(
                Dimension::new("x", 0.0..=1e6)
                    .tile_extent(1000.0)
                    .filters(only(Filter::Zstd { level: 1 })),
            ),
        };
        let new = builder.coords_filters(only(filter)).build().unwrap();
        context.array(URI).create_at(new, 1).unwrap();
        write_at(&context, 10, &[(1.0, 1), (2.0, 2), (500.0, 3)]);
        write_at(&context, 20, &[(1.0, 11), (7.0, 12)]);
        write_at(&context, 30, &[(2.0, 21), (900.0, 22)]);
        let before: Vec<Vec<i32>> = [5, 10, 25, 30].map(|at| values_at(&context, at)).into();
        let array = context.array(URI);
        array.consolidate(&FragmentOptions::new()).unwrap();
        array
            .vacuum(Mode::Fragments, VacuumOptions::default())
            .unwrap();
        assert_eq!(array.open().unwrap().fragments().len(), 1);
        let after: Vec<Vec<i32>> = [5, 10, 25, 30].map(|at| values_at(&context, at)).into();
        assert_eq!(after, before, "{is_scale}");
    }
}

/// The reference takes any filters. Such an array is read, and its times are not written away; an
/// upgrade mends it.
#[test]
fn times_are_not_lost_in_arrays_of_others() {
    for (filter, name) in [
        (scale(), "SCALE_FLOAT"),
        (Filter::PositiveDelta { max_window: 1024 }, "POSITIVE_DELTA"),
    ] {
        let context = context();
        let x = Dimension::new("x", 0.0..=1e6).tile_extent(1000.0);
        let x = match name {
            "SCALE_FLOAT" => x,
            // No filter of reals.
            _ => x.filters(only(Filter::Zstd { level: 1 })),
        };
        let new = ArraySchema::sparse()
            .dimension_with(x)
            .attribute("a", Datatype::Int32)
            .build()
            .unwrap();
        let mut schema = new.schema;
        schema.coords_filters = only(filter);
        let location = context.locate(&Uri::parse(URI).unwrap()).unwrap();
        let path = (location.path).join("__schema/__1_1_0123456789abcdef0123456789abcdef");
        let tile = GenericTile::encode(&schema.encode(), schema.version, None).unwrap();
        location.storage.put(&path, tile.into()).unwrap();
        write_at(&context, 10, &[(1.0, 1), (2.0, 2)]);
        write_at(&context, 20, &[(1.0, 11), (3.0, 13)]);
        let before = [values_at(&context, 10), values_at(&context, 20)];
        let array = context.array(URI);
        let refused = array.consolidate(&FragmentOptions::new()).unwrap_err();
        assert!(matches!(refused, Error::Unsupported(_)), "{refused}");
        let refused = refused.to_string();
        assert!(
            refused.contains(name) && refused.contains("upgrade"),
            "{refused}"
        );
        assert_eq!(array.open().unwrap().fragments().len(), 2);
        assert!(array.upgrade(None).unwrap());
        assert!(!array.upgrade(None).unwrap());
        array.consolidate(&FragmentOptions::new()).unwrap();
        array
            .vacuum(Mode::Fragments, VacuumOptions::default())
            .unwrap();
        assert_eq!(array.open().unwrap().fragments().len(), 1);
        assert_eq!([values_at(&context, 10), values_at(&context, 20)], before);
    }
}

/// Cells of a tile lie in the order of the coordinates that were written, of which two read alike.
#[test]
fn texts_come_in_order_beside_coordinates_that_change() {
    let scale = Filter::FloatScale {
        scale: 1.0,
        offset: 0.0,
        byte_width: 4,
    };
    let filters = Pipeline {
        filters: vec![scale],
        ..Pipeline::default()
    };
    let x = Dimension::new("x", 0.0..=1e6)
        .tile_extent(1000.0)
        .filters(filters);
    let schema = ArraySchema::sparse()
        .dimension_with(x)
        .string_dimension("s")
        .attribute("a", Datatype::Int32)
        .build()
        .unwrap();
    let context = context();
    context.array(URI).create(schema).unwrap();
    let columns = [
        ColumnBuffers::of_values("x", vec![2.0, 2.25, 3.0]),
        ColumnBuffers::of_strings("s", ["b", "a", "c"]),
        ColumnBuffers::of_values("a", vec![1i32, 0, 2]),
    ];
    let mut writer = context.array(URI).writer(WriteOptions::new()).unwrap();
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    writer.finish().unwrap();
    let array = context.array(URI).open().unwrap();
    for layout in [Layout::RowMajor, Layout::Global] {
        let options = ReadOptions::new().layout(layout);
        let read = array.read(options).unwrap().read_all().unwrap();
        let [x, _, a] = &read.columns[..] else {
            panic!("three columns");
        };
        assert_eq!(x.values::<f64>(), Some(&[2.0, 2.0, 3.0][..]));
        assert_eq!(a.values::<i32>(), Some(&[0, 1, 2][..]), "{layout:?}");
    }
}

/// What a read shows at 3 is found at 3, in whatever tile it was written.
#[test]
fn coordinates_are_found_where_they_read() {
    let scale = Filter::FloatScale {
        scale: 1.0,
        offset: 0.0,
        byte_width: 4,
    };
    let filters = Pipeline {
        filters: vec![scale],
        ..Pipeline::default()
    };
    for capacity in [1, 2, 100] {
        let x = Dimension::new("x", 0.0..=1e6).tile_extent(1000.0);
        let schema = ArraySchema::sparse()
            .dimension_with(x.filters(filters.clone()))
            .dimension("y", 0i64..=9, 10)
            .attribute("a", Datatype::Int32)
            .capacity(capacity)
            .build()
            .unwrap();
        let context = context();
        context.array(URI).create(schema).unwrap();
        for cells in [[(2.25, 0), (3.4, 2)], [(2.6, 1), (7.0, 3)]] {
            let columns = [
                ColumnBuffers::of_values("x", cells.map(|cell| cell.0).to_vec()),
                ColumnBuffers::of_values("y", cells.map(|cell| i64::from(cell.1)).to_vec()),
                ColumnBuffers::of_values("a", cells.map(|cell| cell.1).to_vec()),
            ];
            let mut writer = context.array(URI).writer(WriteOptions::new()).unwrap();
            writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
            writer.finish().unwrap();
        }
        let array = context.array(URI).open().unwrap();
        let found = |subarray: Subarray| {
            let options = ReadOptions::new().fields(["a"]).subarray(subarray);
            let read = array.read(options).unwrap().read_all().unwrap();
            let mut values = read.columns[0].values::<i32>().unwrap().to_vec();
            values.sort_unstable();
            values
        };
        let between = |low: f64, high: f64| {
            let range = DimSelection::Ranges(vec![Range::of(low, high)]);
            found(Subarray::Box(vec![range]))
        };
        assert_eq!(between(2.0, 2.0), [0], "{capacity}");
        assert_eq!(between(3.0, 3.0), [1, 2], "{capacity}");
        assert_eq!(between(4.0, 6.0), [0; 0], "{capacity}");
        assert_eq!(between(6.5, 7.0), [3], "{capacity}");
        // All that was written lies in the box around it.
        assert_eq!(between(2.25, 7.0), [0, 1, 2, 3], "{capacity}");
        assert_eq!(between(2.25, 2.5), [0], "{capacity}");
        // What was written in a range and reads beside it does not.
        assert_eq!(between(3.2, 3.7), [0; 0], "{capacity}");
        assert_eq!(between(2.5, 6.9), [1, 2], "{capacity}");
        assert_eq!(between(3.1, 100.0), [3], "{capacity}");
        let column = |data: Vec<u8>| PointColumn {
            data,
            offsets: None,
        };
        let coordinates = vec![
            column([3.0f64, 2.0].map(f64::to_le_bytes).concat()),
            column([2i64, 1].map(i64::to_le_bytes).concat()),
        ];
        assert_eq!(
            found(Subarray::Points(Points { coordinates })),
            [2],
            "{capacity}"
        );
    }
}
