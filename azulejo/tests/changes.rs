//! Changing arrays: evolution, upgrades, deletes of cells and fragments, metadata over time. All in
//! memory.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]

use azulejo::array::{DeletedFragments, FragmentSelection};
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::{Choice, FragmentOptions, Mode, VacuumOptions};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{Attribute, Enumeration, SchemaBuilder, SchemaEvolution};
use azulejo::format::{ArraySchema, CellValNum, Datatype, FormatVersion, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::space::DimSelection;
use azulejo::storage::Uri;
use azulejo::write::WriteOptions;
use azulejo::{Array, Config, Context, Error, Subarray, TimeRange};
use std::sync::Arc;

const URI: &str = "mem://array";

fn context() -> Context {
    Context::new(Config::new().threads(2), None).unwrap()
}

/// A sparse array along `x` with the attribute `a`, of the time 1.
fn sparse() -> SchemaBuilder {
    ArraySchema::sparse()
        .dimension("x", 0i64..=999, 100)
        .attribute("a", Datatype::Int32)
}

fn create(context: &Context, builder: SchemaBuilder) {
    context
        .array(URI)
        .create_at(builder.build().unwrap(), 1)
        .unwrap();
}

/// Writes cells from `first` on, whose `a` is their coordinate.
fn write(context: &Context, first: i64, count: i64, time: u64) {
    let x: Vec<i64> = (first..first + count).collect();
    let a: Vec<i32> = x.iter().map(|&x| i32::try_from(x).unwrap()).collect();
    write_columns(
        context,
        [
            ColumnBuffers::of_values("x", x),
            ColumnBuffers::of_values("a", a),
        ],
        time,
    );
}

fn write_columns(context: &Context, columns: impl IntoIterator<Item = ColumnBuffers>, time: u64) {
    let mut writer = context
        .array(URI)
        .writer(WriteOptions::new().timestamp(time))
        .unwrap();
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    writer.finish().unwrap();
}

fn at(context: &Context, time: u64) -> Array {
    context.array(URI).open_at(TimeRange::until(time)).unwrap()
}

/// The coordinates that a read at a time gives.
fn coordinates(context: &Context, time: u64) -> Vec<i64> {
    let cells = at(context, time)
        .read(ReadOptions::new().fields(["x"]))
        .unwrap()
        .read_all()
        .unwrap();
    cells.column("x").unwrap().values::<i64>().unwrap().to_vec()
}

fn parse(context: &Context, text: &str) -> Condition {
    let array = context.array(URI).open().unwrap();
    array.condition(text).unwrap()
}

fn files(context: &Context, folder: &str) -> Vec<String> {
    let location = context.locate(&Uri::parse(URI).unwrap()).unwrap();
    let listed = location.storage.list(&location.path.join(folder)).unwrap();
    listed.into_iter().map(|entry| entry.name).collect()
}

#[test]
fn cells_without_an_attribute_meet_no_test_of_it() {
    let context = context();
    create(&context, sparse());
    write(&context, 0, 3, 10);
    let evolution = SchemaEvolution {
        add_attributes: vec![Attribute::new("b", Datatype::Int32, CellValNum::ONE)],
        ..SchemaEvolution::default()
    };
    context.array(URI).evolve(&evolution, Some(20)).unwrap();
    let columns = [
        ColumnBuffers::of_values("x", vec![7i64]),
        ColumnBuffers::of_values("a", vec![7i32]),
        ColumnBuffers::of_values("b", vec![7i32]),
    ];
    write_columns(&context, columns, 30);
    // So it is in libtiledb, also of what no cell that has the attribute fails.
    for (text, expected) in [
        ("b is not null", &[7i64][..]),
        ("not b is null", &[7]),
        ("b is null", &[]),
        ("b is not null or a = 1", &[1, 7]),
        ("a is not null", &[0, 1, 2, 7]),
    ] {
        let options = ReadOptions::new().fields(["x"]);
        let options = options.condition(parse(&context, text));
        let cells = at(&context, 99).read(options).unwrap().read_all().unwrap();
        let found = cells.column("x").unwrap().values::<i64>().unwrap();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn attributes_come_and_go_over_time() {
    let context = context();
    create(&context, sparse());
    write(&context, 0, 3, 10);
    let mut added = Attribute::new("b", Datatype::Float64, CellValNum::ONE).nullable();
    added.fill_value = 0.5f64.to_le_bytes().to_vec();
    let evolution = SchemaEvolution {
        add_attributes: vec![added],
        ..SchemaEvolution::default()
    };
    let planned = context.array(URI).plan_evolution(&evolution).unwrap();
    assert_eq!(at(&context, 99).schema().attributes.len(), 1);
    context.array(URI).evolve(&evolution, Some(20)).unwrap();
    assert_eq!(**at(&context, 99).schema(), planned);
    let columns = [
        ColumnBuffers::of_values("x", vec![7i64]),
        ColumnBuffers::of_values("a", vec![7i32]),
        ColumnBuffers::of_options("b", vec![Some(7f64)]),
    ];
    write_columns(&context, columns, 30);
    let drop = SchemaEvolution {
        drop_attributes: vec!["a".to_owned()],
        ..SchemaEvolution::default()
    };
    context.array(URI).evolve(&drop, Some(40)).unwrap();
    let names = |time: u64| -> Vec<String> {
        at(&context, time)
            .schema()
            .attributes
            .iter()
            .map(|a| a.name.clone())
            .collect()
    };
    assert_eq!(
        (names(19), names(20), names(40)),
        (
            vec!["a".into()],
            vec!["a".into(), "b".into()],
            vec!["b".into()]
        )
    );
    let cells = at(&context, 40)
        .read(ReadOptions::new().fields(["b"]))
        .unwrap()
        .read_all()
        .unwrap();
    let b = cells.column("b").unwrap();
    assert_eq!(
        b.cells().map(|cell| cell.is_some()).collect::<Vec<_>>(),
        [false, false, false, true]
    );

    for time in [40, 39, 0] {
        let error = context
            .array(URI)
            .evolve(&evolution, Some(time))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(URI) && (error.contains("b") || error.contains("later")),
            "{error}"
        );
    }
    let fresh = SchemaEvolution {
        add_attributes: vec![Attribute::new("c", Datatype::Int8, CellValNum::ONE)],
        ..SchemaEvolution::default()
    };
    let error = context
        .array(URI)
        .evolve(&fresh, Some(39))
        .unwrap_err()
        .to_string();
    assert!(error.contains("40") && error.contains("later"), "{error}");
    context.array(URI).evolve(&fresh, Some(41)).unwrap();
    assert_eq!(files(&context, "__schema").len(), 4);
}

#[test]
fn arrays_of_today_evolve_at_any_time() {
    let context = context();
    context
        .array(URI)
        .create(sparse().build().unwrap())
        .unwrap();
    let attributes = || {
        let array = context.array(URI).open().unwrap();
        array
            .schema()
            .attributes
            .iter()
            .map(|attribute| attribute.name.clone())
            .collect::<Vec<_>>()
    };
    let add = |name: &str| SchemaEvolution {
        add_attributes: vec![Attribute::new(name, Datatype::Int8, CellValNum::ONE)],
        ..SchemaEvolution::default()
    };
    // What libtiledb 2.30 shows after each.
    context.array(URI).evolve(&add("b"), Some(2)).unwrap();
    assert_eq!(attributes(), ["a", "b"]);
    context.array(URI).evolve(&add("c"), Some(9)).unwrap();
    assert_eq!(attributes(), ["a", "b", "c"]);
    assert!(context.array(URI).evolve(&add("d"), Some(10)).is_err());
    assert_eq!(attributes(), ["a", "b", "c"]);
}

#[test]
fn a_change_of_now_follows_whatever_time_the_one_before_had() {
    let context = context();
    create(&context, sparse());
    let add = |name: &str| SchemaEvolution {
        add_attributes: vec![Attribute::new(name, Datatype::Int8, CellValNum::ONE)],
        ..SchemaEvolution::default()
    };
    // As text, by which the reference orders schemas, these are behind any time of day: it would go on
    // showing them.
    context.array(URI).evolve(&add("b"), Some(29)).unwrap();
    context.array(URI).evolve(&add("c"), None).unwrap();
    context.array(URI).evolve(&add("d"), Some(99)).unwrap();
    context.array(URI).evolve(&add("e"), None).unwrap();
    let mut times: Vec<i64> = files(&context, "__schema")
        .iter()
        .filter_map(|name| name.split('_').nth(2)?.parse().ok())
        .collect();
    times.sort_unstable();
    assert_eq!(times, [1, 29, 30, 99, 990]);
    let array = context.array(URI).open().unwrap();
    assert_eq!(array.schema().attributes.len(), 5);
}

/// An attribute that came back with cells of another size, of values that are counted otherwise, or
/// that can be null: what was written before is none of it.
#[test]
fn an_attribute_of_another_type_has_no_cells_from_before() {
    let types = [
        (Datatype::Int8, CellValNum::ONE, false),
        (Datatype::Float64, CellValNum::ONE, false),
        (Datatype::UInt32, CellValNum::ONE, false),
        (Datatype::Int32, CellValNum::Fixed(2), false),
        (Datatype::Int32, CellValNum::Var, false),
        (Datatype::StringUtf8, CellValNum::Var, true),
        (Datatype::Int32, CellValNum::ONE, true),
    ];
    for (datatype, number, nullable) in types {
        let context = context();
        create(&context, sparse());
        write(&context, 0, 3, 10);
        let evolve = |evolution, time| context.array(URI).evolve(&evolution, Some(time));
        let drop = SchemaEvolution {
            drop_attributes: vec!["a".to_owned()],
            ..SchemaEvolution::default()
        };
        evolve(drop, 20).unwrap();
        let mut other = Attribute::new("a", datatype, number);
        other.nullable = nullable;
        let add = SchemaEvolution {
            add_attributes: vec![other.clone()],
            ..SchemaEvolution::default()
        };
        evolve(add, 30).unwrap();
        let read = |options: ReadOptions| {
            let array = at(&context, 40);
            array.read(options).unwrap().read_all().unwrap()
        };
        let cells = read(ReadOptions::new());
        let a = cells.column("a").unwrap();
        assert_eq!(&*a.data, other.fill_value.repeat(3), "{datatype:?}");
        let nulls = a.validity.as_deref().map(<[u8]>::to_vec);
        assert_eq!(nulls, nullable.then(|| vec![0; 3]), "{datatype:?}");
        // No test of it is true, for what they were nor for what they read as.
        let mut tests = vec![Condition::is_null("a")];
        if number != CellValNum::Fixed(2)
            && (datatype, number) != (Datatype::Int32, CellValNum::Var)
        {
            let compare = |value| Condition::compare("a", Comparison::Ge, value);
            tests.push(compare(vec![0; datatype.size()]));
            tests.push(compare(datatype.default_fill()));
        }
        for condition in tests {
            assert_eq!(read(ReadOptions::new().condition(condition)).cell_num, 0);
        }
        // Opened as it was, it has what was written then.
        let before = at(&context, 15).read(ReadOptions::new()).unwrap();
        let before = before.read_all().unwrap();
        assert_eq!(
            before.column("a").unwrap().values::<i32>().unwrap(),
            [0, 1, 2]
        );
    }
}

#[test]
fn enumerations_are_added_extended_and_dropped() {
    let context = context();
    create(&context, sparse());
    let words = Enumeration::of_strings("words", Datatype::StringUtf8, false, ["a"]).unwrap();
    let used = Attribute::new("w", Datatype::Int8, CellValNum::ONE).enumerated("words");
    let add = SchemaEvolution {
        add_enumerations: vec![words.clone()],
        add_attributes: vec![used],
        ..SchemaEvolution::default()
    };
    context.array(URI).evolve(&add, Some(2)).unwrap();
    let more = SchemaEvolution {
        extend_enumerations: vec![words.extend(["b"]).unwrap()],
        // The reference cannot do this: it does not load what it does not extend.
        add_attributes: vec![
            Attribute::new("v", Datatype::Int8, CellValNum::ONE).enumerated("words"),
        ],
        ..SchemaEvolution::default()
    };
    context.array(URI).evolve(&more, Some(3)).unwrap();
    assert_eq!(at(&context, 2).enumeration("words").unwrap().len(), 1);
    assert_eq!(at(&context, 3).enumeration("words").unwrap().len(), 2);
    let drop = |attributes: &[&str]| SchemaEvolution {
        drop_attributes: attributes.iter().map(|&name| name.to_owned()).collect(),
        drop_enumerations: vec!["words".to_owned()],
        ..SchemaEvolution::default()
    };
    let before = files(&context, "__schema/__enumerations").len();
    let error = context
        .array(URI)
        .evolve(&drop(&["w"]), Some(4))
        .unwrap_err()
        .to_string();
    assert!(error.contains("in use"), "{error}");
    context
        .array(URI)
        .evolve(&drop(&["w", "v"]), Some(4))
        .unwrap();
    assert!(at(&context, 4).schema().enumerations.is_empty());
    assert_eq!(files(&context, "__schema/__enumerations").len(), before);
}

#[test]
fn the_current_domain_grows() {
    let context = context();
    create(&context, sparse().current_domain([Range::of(0i64, 9)]));
    let to = |end: i64| SchemaEvolution {
        expand_current_domain: Some(NdRectangle {
            ranges: vec![Range::of(0i64, end)],
        }),
        ..SchemaEvolution::default()
    };
    assert!(context.array(URI).evolve(&to(8), Some(2)).is_err());
    context.array(URI).evolve(&to(99), Some(2)).unwrap();
    assert_eq!(
        at(&context, 1).current_domain().unwrap().ranges,
        [Range::of(0i64, 9)]
    );
    assert_eq!(
        at(&context, 2).current_domain().unwrap().ranges,
        [Range::of(0i64, 99)]
    );
}

#[test]
fn a_current_domain_that_is_set_later_hides_what_lies_outside() {
    let context = context();
    create(&context, sparse());
    write(&context, 5, 10, 10);
    let to = |start: i64, end: i64| SchemaEvolution {
        expand_current_domain: Some(NdRectangle {
            ranges: vec![Range::of(start, end)],
        }),
        ..SchemaEvolution::default()
    };
    context.array(URI).evolve(&to(7, 9), Some(20)).unwrap();
    assert_eq!(coordinates(&context, 19), (5..15).collect::<Vec<_>>());
    assert_eq!(coordinates(&context, 20), [7, 8, 9]);
    let outside =
        ReadOptions::new().subarray(Subarray::Box(vec![DimSelection::Ranges(vec![Range::of(
            5i64, 8,
        )])]));
    assert!(at(&context, 20).read(outside).is_err());
    // Consolidation keeps them for a domain that grows.
    write(&context, 8, 1, 30);
    context
        .array(URI)
        .consolidate(&FragmentOptions::default())
        .unwrap();
    context.array(URI).evolve(&to(6, 12), Some(40)).unwrap();
    assert_eq!(
        coordinates(&context, u64::MAX),
        (6..=12).collect::<Vec<_>>()
    );
}

#[test]
fn old_arrays_are_upgraded_and_evolved() {
    for (version, upgrades) in [(7, true), (10, false), (12, true), (16, true), (21, false)] {
        let context = context();
        let version = FormatVersion::new(version, "test").unwrap();
        create(&context, sparse().version(version));
        write(&context, 0, 3, 10);
        assert_eq!(at(&context, 99).schema().version, version);
        if upgrades {
            assert!(context.array(URI).upgrade(Some(20)).unwrap());
            assert!(!context.array(URI).upgrade(None).unwrap());
        } else {
            let fresh = SchemaEvolution {
                add_attributes: vec![
                    Attribute::new("c", Datatype::Int8, CellValNum::ONE).nullable(),
                ],
                ..SchemaEvolution::default()
            };
            context.array(URI).evolve(&fresh, Some(20)).unwrap();
            let drop = SchemaEvolution {
                drop_attributes: vec!["c".to_owned()],
                ..SchemaEvolution::default()
            };
            context.array(URI).evolve(&drop, Some(21)).unwrap();
        }
        assert_eq!(at(&context, 99).schema().version, FormatVersion::CURRENT);
        assert_eq!(at(&context, 15).fragments()[0].version(), version);
        write(&context, 2, 3, 30);
        assert_eq!(
            at(&context, 99).fragments()[1].version(),
            FormatVersion::CURRENT
        );
        assert_eq!(coordinates(&context, 99), [0, 1, 2, 3, 4], "{version}");
        assert_eq!(coordinates(&context, 15), [0, 1, 2], "{version}");
        context
            .array(URI)
            .delete_cells(&parse(&context, "a > 3"), Some(40))
            .unwrap();
        assert_eq!(coordinates(&context, 99), [0, 1, 2, 3], "{version}");
    }
}

#[test]
fn fragments_from_before_evolution_keep_their_attributes() {
    let context = context();
    create(
        &context,
        sparse().version(FormatVersion::new(9, "test").unwrap()),
    );
    let fresh = |name: &str| SchemaEvolution {
        add_attributes: vec![Attribute::new(name, Datatype::Int8, CellValNum::ONE)],
        ..SchemaEvolution::default()
    };
    write(&context, 0, 3, 10);
    let error = context
        .array(URI)
        .evolve(&fresh("b"), Some(20))
        .unwrap_err();
    assert!(
        matches!(&error, Error::Unsupported(text) if text.contains("consolidate")),
        "{error}"
    );
    let words = Enumeration::of_strings("words", Datatype::StringUtf8, false, ["a"]).unwrap();
    let add = SchemaEvolution {
        add_enumerations: vec![words],
        ..SchemaEvolution::default()
    };
    context.array(URI).evolve(&add, Some(20)).unwrap();
    context
        .array(URI)
        .delete_fragments(FragmentSelection::Within(TimeRange::ALL))
        .unwrap();
    context.array(URI).evolve(&fresh("b"), Some(30)).unwrap();
}

#[test]
fn cells_are_deleted_from_a_time_on() {
    let context = context();
    create(&context, sparse());
    write(&context, 0, 5, 10);
    let name = context
        .array(URI)
        .delete_cells(&parse(&context, "a in (1, 3)"), Some(20))
        .unwrap();
    assert!(
        name.starts_with("__20_20_") && name.ends_with("_22"),
        "{name}"
    );
    assert_eq!(files(&context, "__commits").len(), 2);
    write(&context, 3, 1, 30);
    assert_eq!(coordinates(&context, 19), [0, 1, 2, 3, 4]);
    assert_eq!(coordinates(&context, 20), [0, 2, 4]);
    assert_eq!(coordinates(&context, 30), [0, 2, 3, 4]);
    let error = context
        .array(URI)
        .delete_cells(&Condition::is_null("b"), None)
        .unwrap_err();
    assert!(matches!(error, Error::SchemaMismatch(_)), "{error}");
}

#[test]
fn deletes_mean_the_fields_of_their_time() {
    let context = context();
    create(&context, sparse().attribute("b", Datatype::Int32));
    let columns = [
        ColumnBuffers::of_values("x", (0..5i64).collect()),
        ColumnBuffers::of_values("a", (0..5i32).collect()),
        ColumnBuffers::of_values("b", vec![0i32; 5]),
    ];
    write_columns(&context, columns, 10);
    context
        .array(URI)
        .delete_cells(&parse(&context, "a in (1, 3)"), Some(20))
        .unwrap();
    let drop = SchemaEvolution {
        drop_attributes: vec!["a".to_owned()],
        ..SchemaEvolution::default()
    };
    context.array(URI).evolve(&drop, Some(30)).unwrap();
    assert_eq!(coordinates(&context, 30), [0, 2, 4]);
    for (datatype, time) in [(Datatype::Float32, 40), (Datatype::StringAscii, 60)] {
        let other = Attribute::new("a", datatype, CellValNum::ONE);
        let add = SchemaEvolution {
            add_attributes: vec![other],
            ..SchemaEvolution::default()
        };
        context.array(URI).evolve(&add, Some(time)).unwrap();
        assert_eq!(coordinates(&context, time), [0, 2, 4]);
        context.array(URI).evolve(&drop, Some(time + 10)).unwrap();
    }
    context
        .array(URI)
        .consolidate(&FragmentOptions::default())
        .unwrap();
    context
        .array(URI)
        .vacuum(Mode::Fragments, VacuumOptions::default())
        .unwrap();
    assert_eq!(coordinates(&context, 99), [0, 2, 4]);
    // By an attribute that came later than the time that the delete is given.
    let add = SchemaEvolution {
        add_attributes: vec![Attribute::new("late", Datatype::Int32, CellValNum::ONE)],
        ..SchemaEvolution::default()
    };
    context.array(URI).evolve(&add, Some(99)).unwrap();
    context
        .array(URI)
        .delete_cells(&parse(&context, "late = 1 and x = 0"), Some(25))
        .unwrap();
    assert_eq!(coordinates(&context, 100), [2, 4]);
}

#[test]
fn a_delete_at_an_earlier_time_means_the_schema_of_then() {
    let context = context();
    let words = |words: [&str; 2]| {
        Enumeration::of_strings("words", Datatype::StringUtf8, false, words).unwrap()
    };
    let attribute = |name: &str, datatype| Attribute::new(name, datatype, CellValNum::ONE);
    let colour = || attribute("w", Datatype::UInt8).enumerated("words");
    let builder = sparse()
        .enumeration(words(["red", "green"]))
        .attribute_with(colour())
        .attribute_with(attribute("b", Datatype::Int32));
    create(&context, builder);
    let columns = [
        ColumnBuffers::of_values("x", (0..3i64).collect()),
        ColumnBuffers::of_values("a", vec![0i32; 3]),
        ColumnBuffers::of_values("w", vec![0u8, 1, 0]),
        ColumnBuffers::of_values("b", vec![5i32, 6, 7]),
    ];
    write_columns(&context, columns, 2);
    let drop = SchemaEvolution {
        drop_attributes: ["w", "a", "b"].map(str::to_owned).to_vec(),
        drop_enumerations: vec!["words".to_owned()],
        add_attributes: vec![attribute("c", Datatype::Int8)],
        ..SchemaEvolution::default()
    };
    context.array(URI).evolve(&drop, Some(10)).unwrap();
    let add = SchemaEvolution {
        add_enumerations: vec![words(["green", "red"])],
        add_attributes: vec![colour(), attribute("a", Datatype::Float64)],
        ..SchemaEvolution::default()
    };
    context.array(URI).evolve(&add, Some(20)).unwrap();
    let then = |text: &str| at(&context, 5).condition(text).unwrap();
    let array = context.array(URI);
    array
        .delete_cells(&then("w = 'red' and x < 2"), Some(5))
        .unwrap();
    assert_eq!(coordinates(&context, 6), [1, 2], "labels of then");
    array.delete_cells(&then("b = 7"), Some(6)).unwrap();
    assert_eq!(coordinates(&context, 7), [1], "an attribute of then");
    array.delete_cells(&then("a = 0"), Some(7)).unwrap();
    assert_eq!(coordinates(&context, 8), [0i64; 0], "the type of then");
    assert_eq!(coordinates(&context, 4), [0, 1, 2]);
}

/// Indices of labels that were dropped are none of those that came in their place.
#[test]
fn cells_do_not_take_the_labels_that_came_later() {
    let words = |name: &str, words: &[&str]| {
        Enumeration::of_strings(name, Datatype::StringUtf8, false, words.iter().copied()).unwrap()
    };
    let colour = |of: &str| {
        let attribute = Attribute::new("w", Datatype::UInt8, CellValNum::ONE);
        attribute.enumerated(of)
    };
    for (dense, name) in [
        (false, "words"),
        (false, "others"),
        (true, "words"),
        (true, "others"),
    ] {
        let context = context();
        let builder = match dense {
            true => ArraySchema::dense(),
            false => ArraySchema::sparse(),
        };
        let builder = builder
            .dimension("x", 0i64..=9, 5)
            .attribute("a", Datatype::Int32)
            .enumeration(words("words", &["red"]))
            .attribute_with(colour("words"));
        create(&context, builder);
        let write = |first: i64, indices: &[u8], time: u64| {
            let mut columns = vec![
                ColumnBuffers::of_values("a", vec![7i32; indices.len()]),
                ColumnBuffers::of_values("w", indices.to_vec()),
            ];
            let last = first + indices.len() as i64 - 1;
            let mut options = WriteOptions::new().timestamp(time);
            if dense {
                options = options.subarray(NdRectangle {
                    ranges: vec![Range::of(first, last)],
                });
            } else {
                columns.push(ColumnBuffers::of_values("x", (first..=last).collect()));
            }
            let mut writer = context.array(URI).writer(options).unwrap();
            writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
            writer.finish().unwrap();
        };
        let array = context.array(URI);
        write(0, &[0, 0], 10);
        // More labels are the same ones.
        let more = SchemaEvolution {
            extend_enumerations: vec![words("words", &["red"]).extend(["green"]).unwrap()],
            ..SchemaEvolution::default()
        };
        array.evolve(&more, Some(20)).unwrap();
        write(2, &[1], 21);
        let read = |time: u64, condition: Option<&str>| -> Vec<u8> {
            let array = at(&context, time);
            let mut options = ReadOptions::new().fields(["w"]).matching_only();
            if let Some(text) = condition {
                options = options.condition(array.condition(text).unwrap());
            }
            let cells = array.read(options).unwrap().read_all().unwrap();
            let read = cells.column("w").unwrap().values::<u8>().unwrap();
            read.to_vec()
        };
        assert_eq!(read(25, None), [0, 0, 1]);
        assert_eq!(read(25, Some("w = 'red'")), [0, 0]);
        let drop = SchemaEvolution {
            drop_attributes: vec!["w".to_owned()],
            drop_enumerations: vec!["words".to_owned()],
            ..SchemaEvolution::default()
        };
        array.evolve(&drop, Some(30)).unwrap();
        let add = SchemaEvolution {
            add_enumerations: vec![words(name, &["x", "y", "z"])],
            add_attributes: vec![colour(name)],
            ..SchemaEvolution::default()
        };
        array.evolve(&add, Some(40)).unwrap();
        write(3, &[1, 2], 41);
        assert_eq!(read(50, None), [255, 255, 255, 1, 2]);
        assert_eq!(read(50, Some("w = 'y'")), [1]);
        assert_eq!(read(50, Some("w = 'x'")), [0; 0]);
        assert_eq!(read(25, None), [0, 0, 1]);
        let all = FragmentOptions::new().choice(Choice::new().amplification(100.0));
        array.consolidate(&all).unwrap();
        array
            .vacuum(Mode::Fragments, VacuumOptions::default())
            .unwrap();
        // Those before are merged among themselves.
        assert_eq!(at(&context, 50).fragments().len(), 2);
        assert_eq!(read(50, None), [255, 255, 255, 1, 2]);
        assert_eq!(read(50, Some("w = 'z'")), [2]);
        assert_eq!(read(25, None), [0, 0, 1]);
    }
}

/// The labels of [`colour`].
fn words(words: &[&str]) -> Enumeration {
    let words = words.iter().copied();
    Enumeration::of_strings("words", Datatype::StringUtf8, false, words).unwrap()
}

/// An attribute `w` with labels.
fn colour() -> Attribute {
    Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("words")
}

/// An array with labels.
fn create_coloured(context: &Context, labels: &[&str]) {
    let builder = ArraySchema::sparse()
        .dimension("x", 0i64..=9, 5)
        .attribute("a", Datatype::Int32)
        .enumeration(words(labels))
        .attribute_with(colour());
    create(context, builder);
}

/// Cells of the labels of these numbers, from a coordinate on.
fn write_colours(context: &Context, first: i64, indices: &[u8], time: u64) {
    let last = first + indices.len() as i64 - 1;
    let columns = [
        ColumnBuffers::of_values("a", vec![7i32; indices.len()]),
        ColumnBuffers::of_values("w", indices.to_vec()),
        ColumnBuffers::of_values("x", (first..=last).collect()),
    ];
    write_columns(context, columns, time);
}

/// Drops labels and their attribute, which come back with others.
fn relabel(context: &Context, labels: &[&str], dropped: u64, added: u64) {
    let drop = SchemaEvolution {
        drop_attributes: vec!["w".to_owned()],
        drop_enumerations: vec!["words".to_owned()],
        ..SchemaEvolution::default()
    };
    let array = context.array(URI);
    array.evolve(&drop, Some(dropped)).unwrap();
    let add = SchemaEvolution {
        add_enumerations: vec![words(labels)],
        add_attributes: vec![colour()],
        ..SchemaEvolution::default()
    };
    array.evolve(&add, Some(added)).unwrap();
}

/// The numbers of the labels that the cells had at a time.
fn colours(context: &Context, time: u64) -> Vec<u8> {
    let options = ReadOptions::new().fields(["w"]);
    let cells = at(context, time).read(options).unwrap();
    let cells = cells.read_all().unwrap();
    let read = cells.column("w").unwrap().values::<u8>().unwrap();
    read.to_vec()
}

/// An attribute is dropped with its labels and comes back: with the old ones and more, numbers mean
/// what they meant. With others, a delete by a new label takes no cell of an old one.
#[test]
fn labels_that_come_back_are_the_same_and_others_are_not_deleted() {
    for (labels, before, expected) in [
        (["red", "green", "blue"], [0u8, 1], vec![1u8, 1]),
        (["x", "y", "z"], [255, 255], vec![255, 255, 1]),
    ] {
        let context = context();
        create_coloured(&context, &["red", "green"]);
        let write =
            |first: i64, indices: &[u8], time: u64| write_colours(&context, first, indices, time);
        let read = |time: u64| colours(&context, time);
        let array = context.array(URI);
        write(0, &[0, 1], 10);
        let drop = SchemaEvolution {
            drop_attributes: vec!["w".to_owned()],
            drop_enumerations: vec!["words".to_owned()],
            ..SchemaEvolution::default()
        };
        array.evolve(&drop, Some(20)).unwrap();
        let add = SchemaEvolution {
            add_enumerations: vec![words(&labels)],
            add_attributes: vec![colour()],
            ..SchemaEvolution::default()
        };
        array.evolve(&add, Some(30)).unwrap();
        write(2, &[0, 1, 2], 40);
        assert_eq!(read(45)[..2], before);
        let first = format!("w = '{}' or w = '{}'", labels[0], labels[2]);
        let now = at(&context, 45);
        let deleted = now.condition(&first).unwrap();
        array.delete_cells(&deleted, Some(50)).unwrap();
        assert_eq!(read(60), expected, "{labels:?}");
        // Nor does it where other labels come in the place of both.
        context.object(URI).copy_to("mem://third").unwrap();
        let third = context.array("mem://third");
        third.evolve(&drop, Some(61)).unwrap();
        let left = || {
            let options = ReadOptions::new().fields(["a"]);
            let cells = third.open().unwrap().read(options).unwrap();
            cells.read_all().unwrap().cell_num
        };
        assert_eq!(left(), expected.len(), "{labels:?}, without labels");
        let others = SchemaEvolution {
            add_enumerations: vec![words(&["k"])],
            add_attributes: vec![colour()],
            ..SchemaEvolution::default()
        };
        third.evolve(&others, Some(62)).unwrap();
        assert_eq!(left(), expected.len(), "{labels:?}");
        // The schema goes on; what the delete means stays.
        let more = SchemaEvolution {
            add_attributes: vec![Attribute::new("b", Datatype::Int32, CellValNum::ONE)],
            ..SchemaEvolution::default()
        };
        array.evolve(&more, Some(70)).unwrap();
        assert_eq!(read(80), expected, "{labels:?}");
        let all = FragmentOptions::new().choice(Choice::new().amplification(100.0));
        array.consolidate(&all).unwrap();
        array
            .vacuum(Mode::Fragments, VacuumOptions::default())
            .unwrap();
        assert_eq!(read(80), expected, "{labels:?}");
        // Fragments of the old labels alone are merged in their own schema.
        assert_eq!(read(15), [0, 1]);
    }
}

/// A delete by a label that there is not takes all cells of the labels of its time, and none that was
/// written under others.
#[test]
fn deletes_by_no_label_take_no_cell_of_other_labels() {
    let context = context();
    create_coloured(&context, &["red"]);
    let write = |x: i64, time: u64| write_colours(&context, x, &[0], time);
    let array = context.array(URI);
    write(0, 10);
    relabel(&context, &["x", "y"], 20, 30);
    write(1, 40);
    assert_eq!(coordinates(&context, 45), [0, 1]);
    let others = at(&context, 45).condition("w != 'none'").unwrap();
    array.delete_cells(&others, Some(50)).unwrap();
    assert_eq!(coordinates(&context, 60), [0]);
}

/// What deletes mean by labels holds for all fragments, also where a vacuum was faster than whoever
/// looks at them.
#[test]
fn deletes_by_labels_leave_others_where_fragments_were_looked_at_again() {
    let context = context();
    create_coloured(&context, &["red"]);
    // So many that opening does not read their ends beside the schemas.
    for x in 0..8 {
        write_colours(&context, x, &[0], 10 + u64::try_from(x).unwrap());
    }
    relabel(&context, &["x", "y"], 20, 30);
    write_colours(&context, 8, &[0, 1], 40);
    let array = context.array(URI);
    let of_x = at(&context, 45).condition("w = 'x'").unwrap();
    array.delete_cells(&of_x, Some(50)).unwrap();
    let snapshot = array.snapshot().unwrap();
    let all = at(&context, 60);
    let names = all.fragments().iter().map(|f| f.name().to_owned());
    let two = FragmentOptions::new().fragments(names.take(2));
    assert_eq!(array.consolidate(&two).unwrap().len(), 1);
    array
        .vacuum(Mode::Fragments, VacuumOptions::default())
        .unwrap();
    let left = snapshot.array().unwrap();
    assert_eq!(left.fragments().len(), 8);
    let cells = left.read(ReadOptions::new().fields(["x"])).unwrap();
    let cells = cells.read_all().unwrap();
    let found = cells.column("x").unwrap().values::<i64>().unwrap();
    assert_eq!(found, [0, 1, 2, 3, 4, 5, 6, 7, 9]);
}

/// Labels are dropped and come back as fewer ones, of which an extension makes all that there were: at
/// every moment a consolidation leaves what the cells read as.
#[test]
fn labels_that_come_back_little_by_little_are_the_same_at_every_moment() {
    let context = context();
    create_coloured(&context, &["red", "green", "blue"]);
    let write =
        |first: i64, indices: &[u8], time: u64| write_colours(&context, first, indices, time);
    let array = context.array(URI);
    write(0, &[0, 1, 2], 10);
    relabel(&context, &["red", "green"], 20, 30);
    write(3, &[1], 31);
    let more = words(&["red", "green"]).extend(["blue", "x"]).unwrap();
    let more = SchemaEvolution {
        extend_enumerations: vec![more],
        ..SchemaEvolution::default()
    };
    array.evolve(&more, Some(40)).unwrap();
    write(4, &[3], 41);
    let read = |time: u64| colours(&context, time);
    let seen = || [15, 35, 50].map(read);
    let before = seen();
    assert_eq!(before[0], [0, 1, 2]);
    assert_eq!(before[1], [255, 255, 255, 1]);
    assert_eq!(before[2], [0, 1, 2, 1, 3]);
    // Brought back, cells would have labels that they did not have at that time.
    for (time, is_possible) in [(15, true), (35, false), (50, true)] {
        assert_eq!(array.plan_restore(time).is_ok(), is_possible, "{time}");
    }
    let all = FragmentOptions::new().choice(Choice::new().amplification(100.0));
    array.consolidate(&all).unwrap();
    array
        .vacuum(Mode::Fragments, VacuumOptions::default())
        .unwrap();
    assert_eq!(seen(), before);
    assert_eq!(at(&context, 50).fragments().len(), 2);
}

#[test]
fn merged_cells_of_an_upgraded_array_keep_their_moments() {
    let context = context();
    create(
        &context,
        sparse().version(FormatVersion::new(12, "test").unwrap()),
    );
    write(&context, 0, 2, 1);
    write(&context, 1, 2, 4);
    let array = context.array(URI);
    let all = Choice::new().amplification(100.0);
    let all = FragmentOptions::new().choice(all);
    assert_eq!(array.consolidate(&all).unwrap().len(), 1);
    assert!(array.upgrade(Some(5)).unwrap());
    let seen = || [2, 4, 7, 9].map(|time| coordinates(&context, time));
    let object = context.object(URI);
    object.create_snapshot("early", Some(2)).unwrap();
    // The merged fragment has no times: what it has replaced shows what there was between them.
    let kept = array.vacuum(Mode::Fragments, VacuumOptions::default());
    assert_eq!(kept.unwrap().kept.len(), 2);
    write(&context, 5, 1, 7);
    write(&context, 2, 4, 9);
    let before = seen();
    assert_eq!(before[0], [0, 1]);
    assert_eq!(before[3], [0, 1, 2, 3, 4, 5]);
    // It ends where nothing else lies: its cells are merged with later ones.
    assert_eq!(array.consolidate(&all).unwrap().len(), 1);
    assert_eq!(seen(), before);
    assert_eq!(at(&context, 99).fragments().len(), 1);
    object.remove_snapshot("early").unwrap();
}

#[test]
fn merged_cells_without_times_stay_apart_from_late_ones() {
    let context = context();
    create(
        &context,
        sparse().version(FormatVersion::new(12, "test").unwrap()),
    );
    write(&context, 0, 2, 1);
    write(&context, 1, 2, 4);
    let array = context.array(URI);
    let all = Choice::new().amplification(100.0);
    let all = FragmentOptions::new().choice(all);
    assert_eq!(array.consolidate(&all).unwrap().len(), 1);
    let merged = at(&context, 9).fragments()[0].name().to_owned();
    assert!(array.upgrade(Some(5)).unwrap());
    write(&context, 1, 1, 3);
    write(&context, 7, 1, 8);
    let names: Vec<_> = at(&context, 9)
        .fragments()
        .iter()
        .map(|f| f.name().to_owned())
        .collect();
    assert_eq!(names.len(), 3);
    let error = array
        .consolidate(&FragmentOptions::new().fragments(names))
        .unwrap_err();
    assert!(
        matches!(&error, Error::InvalidArgument(text) if text.contains("have no times")),
        "{error}"
    );
    array.consolidate(&all).unwrap();
    let left = at(&context, 9);
    assert!(left.fragments().iter().any(|f| f.name() == merged));
    assert_eq!(coordinates(&context, 9), [0, 1, 2, 7]);
}

#[test]
fn deletes_compare_labels_and_test_for_null() {
    let context = context();
    let words =
        Enumeration::of_strings("words", Datatype::StringUtf8, true, ["a", "b", "c"]).unwrap();
    let builder = sparse()
        .enumeration(words)
        .attribute_with(Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("words"))
        .attribute_with(Attribute::new("n", Datatype::Float64, CellValNum::ONE).nullable())
        .attribute_with(Attribute::new("s", Datatype::StringUtf8, CellValNum::Var).nullable());
    create(&context, builder);
    let columns = [
        ColumnBuffers::of_values("x", (0..6i64).collect()),
        ColumnBuffers::of_values("a", vec![0i32; 6]),
        ColumnBuffers::of_values("w", vec![0u8, 1, 2, 0, 1, 2]),
        ColumnBuffers::of_options(
            "n",
            vec![Some(1f64), None, Some(f64::NAN), Some(0.0), None, Some(2.0)],
        ),
        ColumnBuffers::of_optional_strings(
            "s",
            [Some(""), Some("x"), None, None, Some("y"), Some("")],
        ),
    ];
    write_columns(&context, columns, 10);
    for (text, left) in [
        ("w = \"b\"", vec![0, 2, 3, 5]),
        ("w >= \"b\"", vec![0, 3]),
        ("w in (\"a\", \"nothing\")", vec![1, 2, 4, 5]),
        ("w != \"nothing\"", vec![]),
        ("n is null", vec![0, 2, 3, 5]),
        ("s is null", vec![0, 1, 4, 5]),
        ("n is null and w = \"b\" or x = 5", vec![0, 2, 3]),
    ] {
        let name = context
            .array(URI)
            .delete_cells(&parse(&context, text), Some(20))
            .unwrap();
        assert_eq!(coordinates(&context, 20), left, "{text}");
        let location = context.locate(&Uri::parse(URI).unwrap()).unwrap();
        location
            .storage
            .delete(&[location.path.join(&format!("__commits/{name}.del"))])
            .unwrap();
    }
    let error = context
        .array(URI)
        .delete_cells(&parse(&context, "n is not null"), None)
        .unwrap_err();
    assert!(error.to_string().contains("not null"), "{error}");
    let pair = Attribute::new("pair", Datatype::Int8, CellValNum::Fixed(2)).nullable();
    let add = SchemaEvolution {
        add_attributes: vec![pair],
        ..SchemaEvolution::default()
    };
    context.array(URI).evolve(&add, Some(30)).unwrap();
    let before = files(&context, "__commits");
    let error = context
        .array(URI)
        .delete_cells(&parse(&context, "pair is null"), None)
        .unwrap_err();
    assert!(error.to_string().contains("pair"), "{error}");
    assert_eq!(files(&context, "__commits"), before);
}

#[test]
fn what_cannot_have_deletes_says_so() {
    let context = context();
    let dense = ArraySchema::dense()
        .dimension("x", 0i64..=9, 10)
        .attribute("a", Datatype::Int32);
    context
        .array("mem://dense")
        .create(dense.build().unwrap())
        .unwrap();
    let all = Condition::compare("a", Comparison::Ge, 0i32.to_le_bytes());
    let error = context
        .array("mem://dense")
        .delete_cells(&all, None)
        .unwrap_err();
    assert!(error.to_string().contains("dense"), "{error}");
    create(
        &context,
        sparse().version(FormatVersion::new(15, "test").unwrap()),
    );
    let error = context.array(URI).delete_cells(&all, None).unwrap_err();
    assert!(
        matches!(error, Error::Unsupported(_)) && error.to_string().contains("upgrade"),
        "{error}"
    );
}

#[test]
fn fragments_are_deleted_by_time_or_name() {
    let context = context();
    create(&context, sparse());
    for (i, time) in [(0, 10), (1, 20), (2, 30)] {
        write(&context, i, 1, time);
    }
    let within = FragmentSelection::Within(TimeRange { start: 15, end: 25 });
    let planned = context.array(URI).plan_fragment_deletion(within).unwrap();
    assert_eq!(coordinates(&context, 99), [0, 1, 2]);
    assert_eq!(
        context.array(URI).delete_fragments(within).unwrap(),
        planned
    );
    assert_eq!(planned.deleted.len(), 1);
    assert_eq!(coordinates(&context, 99), [0, 2]);
    assert_eq!(
        (
            files(&context, "__fragments").len(),
            files(&context, "__commits").len()
        ),
        (2, 2)
    );
    let mut names = files(&context, "__fragments");
    names.push("__1_1_x_22".to_owned());
    let error = context
        .array(URI)
        .delete_fragments(FragmentSelection::Named(&names))
        .unwrap_err();
    assert!(error.to_string().contains("__1_1_x_22"), "{error}");
    assert_eq!(coordinates(&context, 99), [0, 2]);
    names.pop();
    let wholly: Vec<String> = names
        .iter()
        .map(|name| format!("{URI}/__fragments/{name}/"))
        .collect();
    context
        .array(URI)
        .delete_fragments(FragmentSelection::Named(&wholly))
        .unwrap();
    assert_eq!(coordinates(&context, 99), [0i64; 0]);
    let nothing = context
        .array(URI)
        .delete_fragments(FragmentSelection::Within(TimeRange::ALL))
        .unwrap();
    assert_eq!(nothing, DeletedFragments::default());
}

#[test]
fn consolidated_fragments_and_commits_are_deleted_too() {
    use azulejo::consolidate::FragmentOptions;
    for commits in [false, true] {
        let context = context();
        create(&context, sparse());
        for (i, time) in [(0, 10), (1, 20), (2, 30)] {
            write(&context, i, 1, time);
        }
        let time = TimeRange { start: 5, end: 25 };
        context
            .array(URI)
            .consolidate(&FragmentOptions::new().time(time))
            .unwrap();
        if commits {
            context.array(URI).consolidate_commits().unwrap();
        }
        let part = FragmentSelection::Within(TimeRange::until(15));
        let planned = context.array(URI).plan_fragment_deletion(part).unwrap();
        // What was consolidated still holds the cell.
        assert_eq!((planned.deleted.len(), planned.kept_in_part.len()), (1, 1));
        let all = FragmentSelection::Within(TimeRange::until(25));
        let deleted = context.array(URI).delete_fragments(all).unwrap();
        assert_eq!((deleted.deleted.len(), deleted.kept_in_part.len()), (3, 0));
        for time in [10, 20, 99] {
            let left: &[i64] = if time == 99 { &[2] } else { &[] };
            assert_eq!(coordinates(&context, time), left, "{commits} {time}");
        }
        let has = |suffix: &str| {
            files(&context, "__commits")
                .iter()
                .any(|name| name.ends_with(suffix))
        };
        assert_eq!((has(".ign"), has(".vac")), (true, false), "{commits}");
    }
}

#[test]
fn metadata_changes_are_one_file_a_commit() {
    let context = context();
    create(&context, sparse());
    let value = |n: u8| MetadataValue::new(Datatype::UInt8, [n]);
    let mut writer = context.array(URI).change_metadata().unwrap().at(10);
    writer
        .put("a", value(1))
        .unwrap()
        .put("b", value(2))
        .unwrap();
    writer.commit().unwrap();
    let mut writer = context.array(URI).change_metadata().unwrap().at(20);
    writer
        .put("a", value(3))
        .unwrap()
        .remove("b")
        .remove("never there");
    writer.commit().unwrap();
    context
        .array(URI)
        .change_metadata()
        .unwrap()
        .commit()
        .unwrap();
    assert_eq!(files(&context, "__meta").len(), 2);
    let keys = |time| {
        at(&context, time)
            .metadata()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (keys(9).len(), keys(10).len(), keys(20)),
        (0, 2, vec!["a".to_owned()])
    );
    context
        .array(URI)
        .change_metadata()
        .unwrap()
        .put("z", MetadataValue::new(Datatype::StringUtf8, ""))
        .unwrap()
        .commit()
        .unwrap();
    context
        .array(URI)
        .change_metadata()
        .unwrap()
        .remove("a")
        .commit()
        .unwrap();
    let array = context.array(URI).open().unwrap();
    assert_eq!(array.metadata().unwrap().keys().collect::<Vec<_>>(), ["z"]);
    for bad in [
        MetadataValue::new(Datatype::Any, [1]),
        MetadataValue::new(Datatype::Int32, [1, 2, 3]),
    ] {
        let error = context
            .array(URI)
            .change_metadata()
            .unwrap()
            .put("key", bad)
            .unwrap_err();
        assert!(
            matches!(&error, Error::InvalidArgument(text) if text.contains("key")),
            "{error}"
        );
    }
}

#[test]
fn all_changes_are_encrypted_where_the_array_is() {
    let key = || azulejo::format::filter::EncryptionKey::new(*b"0123456789abcdeF0123456789abcdeF");
    let memory: Arc<dyn azulejo::storage::Storage> =
        Arc::new(azulejo::storage::MemoryStorage::new());
    let with = |key| {
        let local: Arc<dyn azulejo::storage::Storage> =
            Arc::new(azulejo::storage::LocalStorage::new());
        Context::with_storages(Config::new().threads(1), key, local, Arc::clone(&memory)).unwrap()
    };
    let context = with(Some(key()));
    create(&context, sparse());
    write(&context, 0, 3, 10);
    let words = Enumeration::of_strings("words", Datatype::StringUtf8, false, ["a"]).unwrap();
    let add = SchemaEvolution {
        add_enumerations: vec![words],
        ..SchemaEvolution::default()
    };
    context.array(URI).evolve(&add, Some(20)).unwrap();
    context
        .array(URI)
        .change_metadata()
        .unwrap()
        .put("k", MetadataValue::new(Datatype::Int8, [1]))
        .unwrap()
        .commit()
        .unwrap();
    context
        .array(URI)
        .delete_cells(&parse(&context, "a = 1"), Some(30))
        .unwrap();
    assert_eq!(coordinates(&context, 99), [0, 2]);
    assert_eq!(
        context.array(URI).open().unwrap().metadata().unwrap().len(),
        1
    );
    assert_eq!(at(&context, 99).enumeration("words").unwrap().len(), 1);
    // Without the key nothing is written in the clear.
    let open = with(None);
    let before = files(&context, "__meta").len() + files(&context, "__commits").len();
    assert!(matches!(
        open.array(URI).change_metadata(),
        Err(Error::Encryption { .. })
    ));
    assert!(matches!(
        open.array(URI).evolve(&add, None),
        Err(Error::Encryption { .. })
    ));
    let all = Condition::compare("a", Comparison::Ge, 0i32.to_le_bytes());
    assert!(matches!(
        open.array(URI).delete_cells(&all, None),
        Err(Error::Encryption { .. })
    ));
    assert_eq!(
        files(&context, "__meta").len() + files(&context, "__commits").len(),
        before
    );
}

#[test]
fn nothing_is_restored_under_other_labels() {
    let words = |words: &[&str]| {
        Enumeration::of_strings("words", Datatype::StringUtf8, false, words).unwrap()
    };
    let attribute = || Attribute::new("w", Datatype::UInt8, CellValNum::ONE);
    for (now, restores) in [
        (Some(vec!["red", "green", "blue"]), true),
        (Some(vec!["green", "red"]), false),
        (None, false),
    ] {
        let context = context();
        let builder = sparse().enumeration(words(&["red", "green"]));
        create(
            &context,
            builder.attribute_with(attribute().enumerated("words")),
        );
        let columns = [
            ColumnBuffers::of_values("x", vec![1i64, 2]),
            ColumnBuffers::of_values("a", vec![0i32; 2]),
            ColumnBuffers::of_values("w", vec![0u8, 1]),
        ];
        write_columns(&context, columns, 2);
        let array = context.array(URI);
        let drop = SchemaEvolution {
            drop_attributes: vec!["w".to_owned()],
            drop_enumerations: vec!["words".to_owned()],
            ..SchemaEvolution::default()
        };
        array.evolve(&drop, Some(10)).unwrap();
        let add = SchemaEvolution {
            add_attributes: vec![match &now {
                Some(_) => attribute().enumerated("words"),
                None => attribute(),
            }],
            add_enumerations: now.iter().map(|now| words(now)).collect(),
            ..SchemaEvolution::default()
        };
        array.evolve(&add, Some(20)).unwrap();
        match array.restore(5) {
            Ok(restored) => assert!(restores && restored.lost.is_empty(), "{now:?}"),
            Err(error) => {
                let refused =
                    matches!(&error, Error::InvalidArgument(text) if text.contains("labels"));
                assert!(!restores && refused, "{now:?}: {error}");
            }
        }
    }
}

#[test]
fn values_that_may_no_more_be_null_are_not_restored() {
    let context = context();
    let attribute = || Attribute::new("n", Datatype::Int32, CellValNum::ONE);
    create(&context, sparse().attribute_with(attribute().nullable()));
    let columns = [
        ColumnBuffers::of_values("x", vec![1i64, 2]),
        ColumnBuffers::of_values("a", vec![0i32; 2]),
        ColumnBuffers::of_options("n", vec![Some(7i32), None]),
    ];
    write_columns(&context, columns, 2);
    let array = context.array(URI);
    let drop = SchemaEvolution {
        drop_attributes: vec!["n".to_owned()],
        ..SchemaEvolution::default()
    };
    array.evolve(&drop, Some(10)).unwrap();
    let add = SchemaEvolution {
        add_attributes: vec![attribute()],
        ..SchemaEvolution::default()
    };
    array.evolve(&add, Some(20)).unwrap();
    assert_eq!(array.restore(5).unwrap().lost, ["n"]);
}

/// libtiledb reads no cell of an array with a delete whose set has not a byte.
#[test]
fn no_delete_stores_a_set_without_bytes() {
    let words = Enumeration::of_strings("words", Datatype::StringUtf8, true, ["a", "b"]).unwrap();
    for (text, left) in [
        ("s in []", vec![0, 1, 2]),
        ("s not in []", vec![]),
        ("a in [] or x = 1", vec![0, 2]),
        ("s in ['']", vec![1, 2]),
        ("s in ['', '']", vec![1, 2]),
        ("not (s in [''])", vec![0]),
        ("w in ['nothing']", vec![0, 1, 2]),
    ] {
        let context = context();
        let builder = sparse()
            .enumeration(words.clone())
            .attribute_with(
                Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("words"),
            )
            .var_attribute("s", Datatype::StringUtf8);
        create(&context, builder);
        let columns = [
            ColumnBuffers::of_values("x", (0..3i64).collect()),
            ColumnBuffers::of_values("a", vec![0i32; 3]),
            ColumnBuffers::of_values("w", vec![0u8, 1, 0]),
            ColumnBuffers::of_strings("s", ["", "x", "y"]),
        ];
        write_columns(&context, columns, 10);
        let condition = parse(&context, text);
        context
            .array(URI)
            .delete_cells(&condition, Some(20))
            .unwrap();
        assert_eq!(coordinates(&context, 20), left, "{text}");
        let array = at(&context, 20);
        let mut todo = vec![&array.deletes()[0].kept];
        while let Some(condition) = todo.pop() {
            match condition {
                Condition::In { values, .. } => {
                    assert!(values.iter().any(|value| !value.is_empty()), "{text}");
                }
                Condition::And(children) | Condition::Or(children) => todo.extend(children),
                _ => {}
            }
        }
    }
}
