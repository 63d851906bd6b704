use super::*;
use crate::column::ColumnType;
use crate::config::Config;
use azulejo_format::filter::{Filter, Scratch};
use azulejo_format::{CellValNum, Datatype};

fn context() -> Context {
    Context::new(Config::default(), None).unwrap()
}

/// Numbers that nothing compresses.
fn noise(n: usize) -> Vec<u64> {
    let mut state = 88_172_645_463_325_252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..n).map(|_| next()).collect()
}

fn texts(name: &str, texts: &[String]) -> ColumnBuffers {
    ColumnBuffers::of_strings(name, texts.iter().map(String::as_str))
}

/// The filters chosen for an attribute of a sparse array along `x`.
fn chosen(column: ColumnBuffers, nullable: bool, goal: Goal) -> NewArray {
    let kind = column.column_type.clone();
    let cell_num = column.cell_num;
    let mut attribute =
        azulejo_format::schema::Attribute::new("a", kind.datatype, kind.cell_val_num);
    attribute.nullable = nullable;
    let mut array = ArraySchema::sparse()
        .dimension("x", 0i64..=9_999_999, 1_000_000)
        .attribute_with(attribute)
        .build()
        .unwrap();
    let cells = ColumnSet::of([
        ColumnBuffers::of_values("x", (0..cell_num as i64).collect()),
        column,
    ])
    .unwrap();
    choose_filters(
        &context(),
        &mut array,
        &SampleCells::of(&cells),
        goal,
        &|_| false,
    )
    .unwrap();
    array
}

fn attribute(array: &NewArray) -> &Pipeline {
    &array.schema.attributes[0].filters
}

#[test]
fn what_cannot_shrink_is_stored_as_it_is() {
    for goal in [Goal::Balanced, Goal::Speed] {
        let array = chosen(ColumnBuffers::of_values("a", noise(50_000)), false, goal);
        assert_eq!(attribute(&array), &Pipeline::default(), "{goal}");
        // Consecutive coordinates take next to nothing.
        let x = &array.schema.domain.dimensions[0].filters;
        assert!(
            !x.filters.is_empty() && *x != candidates::named_none(),
            "{goal}: {x:?}"
        );
    }
}

#[test]
fn a_dimension_without_filters_says_so() {
    let mut array = ArraySchema::sparse()
        .dimension("x", 0u64..=u64::MAX - 1_000, 1_000)
        .attribute("a", Datatype::UInt64)
        .build()
        .unwrap();
    let x = noise(50_000)
        .into_iter()
        .map(|n| n >> 1)
        .collect::<Vec<_>>();
    // In any order: neighbours differ by 2^48 or so.
    let cells = ColumnSet::of([
        ColumnBuffers::of_values("x", x.iter().map(|n| n.wrapping_mul(31) >> 1).collect()),
        ColumnBuffers::of_values("a", x),
    ])
    .unwrap();
    choose_filters(
        &context(),
        &mut array,
        &SampleCells::of(&cells),
        Goal::Speed,
        &|_| false,
    )
    .unwrap();
    let dimension = &array.schema.domain.dimensions[0].filters;
    assert!(
        !dimension.filters.is_empty(),
        "it would have those of the coordinates"
    );
    array.schema.check().unwrap();
}

#[test]
fn few_texts_become_a_dictionary_and_their_offsets_go_with_them() {
    let words: Vec<String> = noise(60_000)
        .iter()
        .map(|n| format!("place number {}", n % 40))
        .collect();
    let array = chosen(texts("a", &words), false, Goal::Size);
    let first = attribute(&array).filters.first();
    assert!(
        matches!(first, Some(Filter::Dictionary { .. })),
        "{first:?}"
    );
    // No offsets are stored: they say nothing about the filters of others.
    assert_eq!(array.schema.offsets_filters, untouched().offsets_filters);
}

fn untouched() -> ArraySchema {
    let array = ArraySchema::sparse()
        .dimension("x", 0i64..=9, 1)
        .attribute("a", Datatype::Int8)
        .build();
    array.unwrap().schema
}

#[test]
fn the_goals_differ_as_they_say() {
    // Steps of a walk: they shrink by a third.
    let mut at = 0i64;
    let walk: Vec<i64> = noise(200_000)
        .iter()
        .map(|n| {
            at += (n % 2_000) as i64 - 1_000;
            at
        })
        .collect();
    let column = || ColumnBuffers::of_values("a", walk.clone());
    let cost = |goal: Goal| {
        let array = chosen(column(), false, goal);
        let shape = &FieldShape::of_all(&array.schema, &fields_of(&array.schema)).unwrap()[0];
        let bytes: Vec<u8> = walk.iter().flat_map(|n| n.to_le_bytes()).collect();
        let part = Part {
            kind: ValueKind::Numbers,
            context: sample::context(&array.schema, shape),
            tiles: vec![(&bytes, None)],
        };
        let of = |goal| cost::of(attribute(&array), &part, goal, &mut Scratch::new()).unwrap();
        [of(Goal::Size), of(Goal::Balanced), of(Goal::Speed)]
    };
    let [size, balanced, speed] = Goal::ALL.map(cost);
    assert!(
        size[0] <= balanced[0] && size[0] <= speed[0],
        "{size:?} {balanced:?} {speed:?}"
    );
    assert!(
        balanced[1] <= size[1] * 1.02 && balanced[1] <= speed[1] * 1.02,
        "{size:?} {balanced:?} {speed:?}"
    );
    assert!(
        speed[2] <= size[2] * 1.02 && speed[2] <= balanced[2] * 1.02,
        "{size:?} {balanced:?} {speed:?}"
    );
}

#[test]
fn the_same_cells_choose_the_same() {
    let column = || {
        ColumnBuffers::of_values(
            "a",
            noise(30_000)
                .iter()
                .map(|n| n % 1_000)
                .collect::<Vec<u64>>(),
        )
    };
    let first = chosen(column(), false, Goal::Balanced);
    for _ in 0..3 {
        assert_eq!(first, chosen(column(), false, Goal::Balanced));
    }
}

#[test]
fn no_cells_change_nothing_and_few_do_not_fail() {
    for n in [0usize, 1, 2, 3] {
        for goal in Goal::ALL {
            let array = chosen(
                ColumnBuffers::of_values("a", vec![f64::NAN; n]),
                false,
                goal,
            );
            array.schema.check().unwrap();
            if n == 0 {
                assert_eq!(attribute(&array), &Pipeline::default());
            }
            chosen(ColumnBuffers::of_values("a", vec![7i8; n]), false, goal);
            chosen(texts("a", &vec![String::new(); n]), false, goal);
            chosen(texts("a", &vec!["long ".repeat(2_000_000); n]), false, goal);
        }
    }
}

#[test]
fn cells_that_could_not_be_written_are_refused() {
    let mut array = ArraySchema::sparse()
        .dimension("x", 0i64..=9, 1)
        .attribute("a", Datatype::Int32)
        .build()
        .unwrap();
    let before = array.clone();
    let outside = ColumnSet::of([
        ColumnBuffers::of_values("x", vec![3i64, 10]),
        ColumnBuffers::of_values("a", vec![1i32, 2]),
    ])
    .unwrap();
    assert!(
        choose_filters(
            &context(),
            &mut array,
            &SampleCells::of(&outside),
            Goal::Size,
            &|_| false
        )
        .is_err()
    );
    let lacking = ColumnSet::of([ColumnBuffers::of_values("x", vec![3i64])]).unwrap();
    assert!(
        choose_filters(
            &context(),
            &mut array,
            &SampleCells::of(&lacking),
            Goal::Size,
            &|_| false
        )
        .is_err()
    );
    assert_eq!(array, before);
}

#[test]
fn what_is_kept_stays() {
    let mut array = ArraySchema::sparse()
        .dimension("x", 0i64..=99_999, 1_000)
        .attribute("a", Datatype::Int32)
        .build()
        .unwrap();
    let cells = ColumnSet::of([
        ColumnBuffers::of_values("x", (0i64..10_000).collect()),
        ColumnBuffers::of_values("a", (0i32..10_000).collect()),
    ])
    .unwrap();
    choose_filters(
        &context(),
        &mut array,
        &SampleCells::of(&cells),
        Goal::Size,
        &|name| name == "a",
    )
    .unwrap();
    assert_eq!(array.schema.attributes[0].filters, Pipeline::default());
    assert_ne!(
        array.schema.domain.dimensions[0].filters,
        Pipeline::default()
    );
}

/// Cells of a dense array in its order, in a box, and with their coordinates: the same filters.
#[test]
fn dense_cells_come_in_three_ways() {
    let make = || {
        ArraySchema::dense()
            .dimension("y", 0i64..=199, 50)
            .dimension("x", 0i64..=199, 50)
            .attribute("a", Datatype::Int64)
            .build()
            .unwrap()
    };
    let values: Vec<i64> = (0..40_000).map(|i| i / 200 * 1_000_000 + i % 200).collect();
    let bounds = NdRectangle {
        ranges: vec![azulejo_format::Range::of(0i64, 199i64); 2],
    };
    let alone = ColumnSet::of([ColumnBuffers::of_values("a", values.clone())]).unwrap();
    let placed = ColumnSet::of([
        ColumnBuffers::of_values("y", (0..40_000i64).map(|i| i / 200).collect()),
        ColumnBuffers::of_values("x", (0..40_000i64).map(|i| i % 200).collect()),
        ColumnBuffers::of_values("a", values),
    ])
    .unwrap();
    let mut found = Vec::new();
    for cells in [
        SampleCells::of(&alone),
        SampleCells::of(&alone).in_box(&bounds, false),
        SampleCells::of(&placed),
    ] {
        let mut array = make();
        choose_filters(&context(), &mut array, &cells, Goal::Balanced, &|_| false).unwrap();
        assert_eq!(array.schema.domain, make().schema.domain);
        assert_ne!(array.schema.attributes[0].filters, Pipeline::default());
        found.push(array);
    }
    assert_eq!(found[1], found[2]);
    let two = ColumnSet::of([ColumnBuffers::of_values("a", vec![1i64, 2])]).unwrap();
    let wrong = SampleCells::of(&two).in_box(&bounds, false);
    assert!(choose_filters(&context(), &mut make(), &wrong, Goal::Size, &|_| false).is_err());
}

/// Whatever is chosen by some cells can store quite other ones.
#[test]
fn later_cells_can_be_stored_whatever_was_chosen() {
    let kinds = [
        Datatype::Int8,
        Datatype::UInt8,
        Datatype::Int16,
        Datatype::UInt32,
        Datatype::Int64,
        Datatype::UInt64,
        Datatype::Float32,
        Datatype::Float64,
        Datatype::DateTimeMilli,
        Datatype::TimeNano,
        Datatype::Bool,
        Datatype::Char,
        Datatype::Blob,
        Datatype::StringAscii,
        Datatype::StringUtf8,
        Datatype::StringUtf16,
        Datatype::Any,
    ];
    let context = context();
    for datatype in kinds {
        for cell_val_num in [CellValNum::ONE, CellValNum::Fixed(3), CellValNum::Var] {
            if datatype == Datatype::Any && cell_val_num != CellValNum::Var {
                continue;
            }
            for (i, goal) in Goal::ALL.into_iter().enumerate() {
                let size = datatype.size();
                let column = |seed: usize, cells: usize| {
                    let byte = |j: usize| {
                        if seed == 0 {
                            (j / (size * 9)) as u8 & 1
                        } else {
                            (noise(7)[j % 7] >> (j % 57)) as u8
                        }
                    };
                    let len = |cell: usize| match cell_val_num {
                        CellValNum::Var => (cell * 7 % 5) * size,
                        CellValNum::Fixed(n) => n as usize * size,
                    };
                    let mut offsets = vec![0u64];
                    offsets.extend((0..cells).scan(0, |end, cell| {
                        *end += len(cell) as u64;
                        Some(*end)
                    }));
                    let bytes: Vec<u8> = (0..*offsets.last().unwrap() as usize).map(byte).collect();
                    ColumnBuffers {
                        column_type: ColumnType {
                            name: "a".into(),
                            datatype,
                            cell_val_num,
                            nullable: true,
                            enumeration: None,
                        },
                        cell_num: cells,
                        data: arrow_buffer::Buffer::from_vec(bytes),
                        offsets: cell_val_num
                            .is_var()
                            .then(|| arrow_buffer::Buffer::from_vec(offsets)),
                        validity: Some(arrow_buffer::Buffer::from_vec(
                            (0..cells)
                                .map(|c| u8::from(c % (3 + seed) != 0))
                                .collect::<Vec<_>>(),
                        )),
                    }
                };
                let array = chosen(column(0, 9_000), true, goal);
                let uri = format!(
                    "mem://{datatype}-{}-{i}",
                    u8::from(cell_val_num.is_var()) + 2 * u8::from(cell_val_num == CellValNum::ONE)
                );
                context.array(&uri).create(array).unwrap();
                let given = column(1, 5_000);
                let mut writer = context
                    .array(&uri)
                    .writer(crate::WriteOptions::new())
                    .unwrap();
                let x = ColumnBuffers::of_values("x", (0i64..5_000).collect());
                let cells = ColumnSet::of([x, given]).unwrap();
                writer.write(&cells).unwrap();
                writer.finish().unwrap();
                let read = context
                    .array(&uri)
                    .open()
                    .unwrap()
                    .read(crate::ReadOptions::new())
                    .unwrap()
                    .read_all()
                    .unwrap();
                let stored = read
                    .columns
                    .iter()
                    .find(|c| *c.column_type.name == *"a")
                    .unwrap();
                assert_eq!(
                    (stored.data.as_slice(), &stored.validity),
                    (cells.columns[1].data.as_slice(), &cells.columns[1].validity),
                    "{datatype} {cell_val_num:?} {goal}"
                );
            }
        }
    }
}

/// The filters of texts of a sparse array along `x`, behind a look at them.
fn looked_at(words: &[String], datatype: Datatype, capacity: u64) -> Pipeline {
    let mut array = ArraySchema::sparse()
        .dimension("x", 0i64..=9_999_999, 1_000_000)
        .attribute_with(azulejo_format::schema::Attribute {
            filters: usual_filters(datatype, CellValNum::Var),
            ..azulejo_format::schema::Attribute::new("a", datatype, CellValNum::Var)
        })
        .offsets_filters(usual_offsets_filters())
        .capacity(capacity)
        .build()
        .unwrap();
    let before = array.schema.clone();
    let mut column = texts("a", words);
    column.column_type.datatype = datatype;
    let cells = ColumnSet::of([
        ColumnBuffers::of_values("x", (0..words.len() as i64).collect()),
        column,
    ])
    .unwrap();
    let of = SampleCells::of(&cells);
    let all = |_: &str| true;
    choose_filters(&context(), &mut array, &of, Goal::Balanced, &all).unwrap();
    assert_eq!(array.schema, before, "what is kept stays");
    let none = |_: &str| false;
    choose_filters(&context(), &mut array, &of, Goal::Balanced, &none).unwrap();
    array.schema.check().unwrap();
    array.schema.attributes[0].filters.clone()
}

#[test]
fn texts_that_repeat_have_a_dictionary() {
    let few = |count: u64| -> Vec<String> {
        let words = noise(60_000).into_iter();
        words.map(|n| format!("id{:010}", n % count)).collect()
    };
    for (words, datatype, capacity, repeats) in [
        (few(1), Datatype::StringUtf8, 10_000, true),
        (few(100), Datatype::StringUtf8, 10_000, true),
        (few(100), Datatype::StringAscii, 10_000, true),
        (few(1_000), Datatype::StringUtf8, 10_000, true),
        (few(u64::MAX), Datatype::StringUtf8, 10_000, false),
        // Small tiles have few of many words twice, large ones all of them.
        (few(10_000), Datatype::StringUtf8, 2_000, false),
        (few(10_000), Datatype::StringUtf8, 60_000, true),
        // These have no dictionaries.
        (few(100), Datatype::Char, 10_000, false),
        // A tile is one chunk, which would be too large.
        (few(100), Datatype::StringUtf8, 1 << 30, false),
        // Nothing is known.
        (Vec::new(), Datatype::StringUtf8, 10_000, false),
    ] {
        let chosen = looked_at(&words, datatype, capacity);
        let first = chosen.filters.first();
        assert_eq!(
            first == Some(&Filter::Dictionary { level: -1 }),
            repeats,
            "{:?} {datatype} {capacity}: {chosen:?}",
            words.first()
        );
    }
}
