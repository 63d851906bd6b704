//! Conditions against a naive evaluation cell by cell, and the cases in which the reference's
//! answers are known.

use super::parse::parse;
use super::*;
use crate::column::{ColumnBuffers, ColumnBuilder, ColumnType};
use azulejo_format::schema::{
    ArrayType, Attribute, CurrentDomain, Dimension, Domain, Enumeration, EnumerationRef, Layout,
};
use azulejo_format::{CellValNum, Datatype, FormatVersion, Range};
use proptest::prelude::*;

fn attribute(
    name: &str,
    datatype: Datatype,
    cell_val_num: CellValNum,
    nullable: bool,
) -> Attribute {
    Attribute {
        nullable,
        ..Attribute::new(name, datatype, cell_val_num)
    }
}

fn schema(attributes: Vec<Attribute>) -> ArraySchema {
    let dimension = Dimension {
        name: "d".into(),
        datatype: Datatype::Int32,
        cell_val_num: CellValNum::ONE,
        filters: Default::default(),
        domain: Some(Range::of(0i32, 99)),
        tile_extent: None,
    };
    ArraySchema {
        version: FormatVersion::new(22, "schema").unwrap(),
        array_type: ArrayType::Sparse,
        allows_dups: true,
        tile_order: Layout::RowMajor,
        cell_order: Layout::RowMajor,
        capacity: 10,
        coords_filters: Default::default(),
        offsets_filters: Default::default(),
        validity_filters: Default::default(),
        domain: Domain {
            dimensions: vec![dimension],
        },
        attributes,
        dimension_labels: vec![],
        enumerations: vec![EnumerationRef {
            name: "e".into(),
            file_name: "e".into(),
        }],
        current_domain: CurrentDomain::default(),
    }
}

fn everything() -> ArraySchema {
    use CellValNum as N;
    use Datatype as D;
    let mut attributes = vec![
        attribute("i", D::Int32, N::ONE, true),
        attribute("u", D::UInt8, N::ONE, false),
        attribute("f", D::Float64, N::ONE, false),
        attribute("g", D::Float32, N::ONE, false),
        attribute("s", D::StringAscii, N::Var, true),
        attribute("t", D::StringUtf8, N::Fixed(3), false),
        attribute("c", D::Char, N::Fixed(3), false),
        attribute("day", D::DateTimeDay, N::ONE, false),
        attribute("ns", D::DateTimeNano, N::ONE, false),
        attribute("yes", D::Bool, N::ONE, false),
        attribute("blob", D::Blob, N::Var, true),
        attribute("many", D::Int32, N::Fixed(2), false),
        attribute("odd name", D::Int64, N::ONE, false),
        attribute("e", D::Int8, N::ONE, true),
        attribute("unordered", D::UInt16, N::ONE, false),
    ];
    attributes[13].enumeration = Some("e".into());
    attributes[14].enumeration = Some("plain".into());
    schema(attributes)
}

fn labels(name: &str) -> Result<Arc<Enumeration>> {
    let ordered = name == "e";
    Ok(Arc::new(
        Enumeration::of_strings(name, Datatype::StringUtf8, ordered, ["lo", "mid", "hi"]).unwrap(),
    ))
}

fn parsed(text: &str) -> Condition {
    parse(text, &everything(), &labels).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// A column of cells; `None` for null.
fn column(schema: &ArraySchema, name: &str, cells: &[Option<Vec<u8>>]) -> ColumnBuffers {
    let a = schema.attributes.iter().find(|a| a.name == name).unwrap();
    let mut column_type = ColumnType::new(name, a.datatype).with_cell_val_num(a.cell_val_num);
    column_type.nullable = a.nullable;
    let mut column = ColumnBuilder::new(column_type);
    for cell in cells {
        column.append_cell(cell.as_deref().unwrap_or(&[]), cell.is_some());
    }
    column.finish()
}

/// Which of the cells of the one field that a condition looks at meet it.
fn matching(text: &str, cells: &[Option<Vec<u8>>]) -> Vec<usize> {
    let schema = everything();
    let bound = BoundCondition::bind(&parsed(text), &schema, &labels).unwrap();
    let mut mask = vec![1; cells.len()];
    let columns: Vec<_> = bound
        .fields()
        .iter()
        .map(|f| column(&schema, f, cells))
        .collect();
    let views: Vec<_> = columns.iter().map(ColumnBuffers::view).collect();
    bound.evaluate(&views, &mut mask).unwrap();
    (0..cells.len()).filter(|i| mask[*i] == 1).collect()
}

fn values<const N: usize>(cells: impl IntoIterator<Item = [u8; N]>) -> Vec<Option<Vec<u8>>> {
    cells.into_iter().map(|c| Some(c.to_vec())).collect()
}

fn strings(cells: &[&str]) -> Vec<Option<Vec<u8>>> {
    cells.iter().map(|c| Some(c.as_bytes().to_vec())).collect()
}

/// Asserts which cells meet each condition.
fn check(cells: &[Option<Vec<u8>>], cases: &[(&str, &[usize])]) {
    for (text, expected) in cases {
        assert_eq!(matching(text, cells), *expected, "{text}");
    }
}

#[test]
fn null_cells_meet_neither_a_test_nor_its_negation() {
    let cells: Vec<_> = [Some(1), None, Some(5), None, Some(3), Some(4i32)]
        .map(|v| v.map(|v| v.to_le_bytes().to_vec()))
        .into();
    check(
        &cells,
        &[
            ("i > 3", &[2, 5]),
            ("not (i > 3)", &[0, 4]),
            ("i = 3", &[4]),
            ("i != 3", &[0, 2, 5]),
            ("not i == 3", &[0, 2, 5]),
            ("not i <> 3", &[4]),
            ("i in (1, 5)", &[0, 2]),
            ("i not in [1, 5]", &[4, 5]),
            ("not (i in (1, 5))", &[4, 5]),
            ("i is null", &[1, 3]),
            ("i is not null", &[0, 2, 4, 5]),
            ("not i is null", &[0, 2, 4, 5]),
            ("i = null", &[1, 3]),
            ("i > 3 or i is null", &[1, 2, 3, 5]),
            ("not (i > 3 or i = 1)", &[4]),
            ("not (i > 3 and i < 5)", &[0, 2, 4]),
            ("1 < i and 4 >= i", &[4, 5]),
            ("i in ()", &[]),
            ("i not in ()", &[0, 2, 4, 5]),
            ("true", &[0, 1, 2, 3, 4, 5]),
            ("i > 100 or false", &[]),
        ],
    );
}

#[test]
fn reals_compare_as_numbers_and_sets_by_their_bits() {
    let cells = values([1.0, f64::NAN, -0.0, 0.0, f64::INFINITY, 3.5].map(f64::to_le_bytes));
    check(
        &cells,
        &[
            ("f > 0.5", &[0, 4, 5]),
            ("f != 1", &[1, 2, 3, 4, 5]),
            ("f == 0", &[2, 3]),
            ("f in (0.0)", &[3]),
            ("f in (-0.0)", &[2]),
            ("f not in (0.0, 1)", &[1, 2, 4, 5]),
            ("f < 1e9", &[0, 2, 3, 5]),
            ("not f < 1e+9", &[4]),
            ("f <= -0", &[2, 3]),
            ("f = nan", &[]),
            ("f in (nan)", &[1]),
            ("f = inf", &[4]),
            ("f < -inf", &[]),
        ],
    );
}

#[test]
fn strings_compare_byte_by_byte() {
    let cells = strings(&["", "a", "ab", "b", "zz", "B", "é"]);
    check(
        &cells,
        &[
            ("s == ''", &[0]),
            ("s != ''", &[1, 2, 3, 4, 5, 6]),
            ("s < 'b'", &[0, 1, 2, 5]),
            ("s >= 'ab'", &[2, 3, 4, 6]),
            ("s in ('a', \"zz\")", &[1, 4]),
            ("s not in ('a')", &[0, 2, 3, 4, 5, 6]),
            ("s > 'zz'", &[6]),
            ("s = '\\xc3\\xa9'", &[6]),
            ("s = '\\u{e9}'", &[6]),
        ],
    );
    check(
        &strings(&["abc", "ab\0", "b\0\0", "\0\0\0"]),
        &[
            ("t = 'ab'", &[1]),
            ("t < 'abc'", &[1, 3]),
            ("t in ('b', 'abc', 'longer')", &[0, 2]),
            ("t = 'abcd'", &[]),
        ],
    );
}

#[test]
fn fixed_chars_compare_by_the_first_as_a_signed_number() {
    let cells =
        [b"abc", b"ab\0", b"b\0\0", b"\0\0\0", b"abd", b"\xffz\0"].map(|c| Some(c.to_vec()));
    check(
        &cells,
        &[
            ("c == 'abc'", &[0, 1, 4]),
            ("c = 'ab'", &[0, 1, 4]),
            ("c < 'abd'", &[3, 5]),
            ("c > 'a'", &[2]),
            ("c in ('abc')", &[0]),
            ("c != 'abc'", &[2, 3, 5]),
        ],
    );
}

#[test]
fn labels_stand_for_their_indices() {
    let mut cells = values([0i8, 1, 2, 1].map(i8::to_le_bytes));
    cells[1] = None;
    check(
        &cells,
        &[
            ("e = 'mid'", &[3]),
            ("e != 'mid'", &[0, 2]),
            ("e < 'hi'", &[0, 3]),
            ("e >= 'mid'", &[2, 3]),
            ("e = 'zz'", &[]),
            ("e != 'zz'", &[0, 2, 3]),
            ("e < 'zz'", &[]),
            ("e > 'zz'", &[]),
            ("not e < 'zz'", &[]),
            ("not e = 'zz'", &[0, 2, 3]),
            ("e in ('lo', 'zz')", &[0]),
            ("e not in ('lo', 'zz')", &[2, 3]),
            ("e in ('zz')", &[]),
            ("e not in ('zz')", &[0, 2, 3]),
            ("e is null", &[1]),
            ("raw(e) >= 1", &[2, 3]),
        ],
    );
    let bound = BoundCondition::bind(&parsed("unordered < 'hi'"), &everything(), &labels);
    assert!(bound.unwrap_err().to_string().contains("without an order"));
    check(
        &values([0u16, 1, 2].map(u16::to_le_bytes)),
        &[("unordered = 'hi'", &[2])],
    );
}

#[test]
fn dates_and_booleans() {
    let cells = values([18_262i64, 18_628, i64::MIN].map(i64::to_le_bytes));
    check(
        &cells,
        &[
            ("day > '2020-01-01'", &[1]),
            ("day >= '2020-01-01'", &[0, 1]),
            ("day = 18262", &[0]),
            ("day = 'NaT'", &[2]),
            ("day in ('2021-01-01')", &[1]),
        ],
    );
    check(
        &values([[1u8], [0], [1]]),
        &[
            ("yes = true", &[0, 2]),
            ("yes = 0", &[1]),
            ("yes in (true)", &[0, 2]),
        ],
    );
    check(
        &values([[1u8], [2], [250]]),
        &[
            ("u >= 0x02", &[1, 2]),
            ("u in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)", &[0, 1]),
        ],
    );
}

#[test]
fn numbers_that_a_type_cannot_hold_are_compared_all_the_same() {
    let cells = values([[0u8], [1], [2], [255]]);
    let (all, none): (&[usize], &[usize]) = (&[0, 1, 2, 3], &[]);
    check(
        &cells,
        &[
            ("u < 300", all),
            ("u <= 300", all),
            ("300 > u", all),
            ("u > 300", none),
            ("u >= 256", none),
            ("u = 300", none),
            ("u != 300", all),
            ("not u != 300", none),
            ("u > -1", all),
            ("u >= -0.5", all),
            ("u < -1", none),
            ("u <= -1e40", none),
            ("u < inf", all),
            ("u > '-5'", all),
            ("u < 1.5", &[0, 1]),
            ("u <= 1.5", &[0, 1]),
            ("u > 1.5", &[2, 3]),
            ("u >= 1.5", &[2, 3]),
            ("u < 255.5", all),
            ("u = 1.5", none),
            ("u in (1, 1.5, 300, -1)", &[1]),
            ("u not in (1, 1.5, 300)", &[0, 2, 3]),
            ("u between -5 and 1.5", &[0, 1]),
            ("u not between 0.5 and 300", &[0]),
        ],
    );
    let mut cells = values([1i32, -7].map(i32::to_le_bytes));
    cells.push(None);
    check(
        &cells,
        &[
            ("i < 3000000000", &[0, 1]),
            ("not i < 3000000000", &[]),
            ("i != 3000000000", &[0, 1]),
            ("i > -9999999999", &[0, 1]),
            ("i = 9999999999", &[]),
            ("i is distinct from 9999999999", &[0, 1, 2]),
        ],
    );
    check(
        &values([0, 5, i64::MIN].map(i64::to_le_bytes)),
        &[
            ("ns < 9999-12-31", &[0, 1, 2]),
            ("ns < '9999'", &[0, 1, 2]),
            ("ns > 1500", &[0, 1]),
            ("ns >= '1500-01-01T12:00'", &[0, 1]),
            ("ns < 1500-06", &[2]),
            ("ns = 9999", &[]),
            ("ns between 1500 and 9999", &[0, 1]),
            ("ns in (1500-01-01, 1970-01-01T00:00:00.000000005)", &[1]),
        ],
    );
    let format = |text: &str| format(&parsed(text), &everything(), &labels).unwrap();
    assert_eq!(format("u < 300"), "u <= 255");
    assert_eq!(format("u > 300"), "u > 255");
    assert_eq!(format("u > 1.5"), "u > 1");
}

#[test]
fn null_is_distinct_from_values_and_flags_stand_alone() {
    let mut cells = values([1i32, 5].map(i32::to_le_bytes));
    cells.push(None);
    check(
        &cells,
        &[
            ("i is distinct from 5", &[0, 2]),
            ("i is not distinct from 5", &[1]),
            ("not i IS DISTINCT FROM 5", &[1]),
            ("i is distinct from null", &[0, 1]),
            ("i is not distinct from null", &[2]),
            ("i is distinct from 5 or false", &[0, 2]),
        ],
    );
    check(
        &values([1.0, f64::NAN].map(f64::to_le_bytes)),
        &[
            ("f is distinct from nan", &[0]),
            ("f is not distinct from nan", &[1]),
            ("f is distinct from 1", &[1]),
        ],
    );
    check(
        &values([[1u8], [0]]),
        &[
            ("yes", &[0]),
            ("not yes", &[1]),
            ("(yes) and yes", &[0]),
            ("yes or not yes", &[0, 1]),
            ("yes or yes is distinct from true", &[0, 1]),
        ],
    );
}

#[test]
fn nan_can_be_asked_for() {
    let cells = values([1.0, f64::NAN, -f64::NAN, f64::INFINITY].map(f64::to_le_bytes));
    check(
        &cells,
        &[
            ("f is nan", &[1, 2]),
            ("f is not nan", &[0, 3]),
            ("not f is nan", &[0, 3]),
            ("f is nan or f > 1", &[1, 2, 3]),
        ],
    );
    let cells = values([1.0, f32::from_bits(0x7f80_0001)].map(f32::to_le_bytes));
    check(&cells, &[("g is nan", &[1]), ("g is not nan", &[0])]);
}

#[test]
fn text_has_a_pattern() {
    let cells: Vec<_> = ["apple", "apricot", "a%b", "", "Ape", "plum", "ap"]
        .iter()
        .map(|text| Some(text.as_bytes().to_vec()))
        .chain([None])
        .collect();
    check(
        &cells,
        &[
            ("s like 'ap%'", &[0, 1, 6]),
            ("s not like 'ap%'", &[2, 3, 4, 5]),
            ("not s like 'ap%'", &[2, 3, 4, 5]),
            ("s like '%p%'", &[0, 1, 4, 5, 6]),
            ("s not like '%p%'", &[2, 3]),
            ("s like 'ap%e'", &[0]),
            ("s not like 'ap%e'", &[1, 2, 3, 4, 5, 6]),
            ("s like '_p%'", &[0, 1, 4, 6]),
            (r"s like 'a\%b'", &[2]),
            (r"s like 'a\\%b'", &[2]),
            ("s like '%!%%' escape '!'", &[2]),
            ("s like '%'", &[0, 1, 2, 3, 4, 5, 6]),
            ("s not like '%'", &[]),
            ("s like ''", &[3]),
            ("s like 'plum'", &[5]),
        ],
    );
    // What comparisons can say is told by them: deletes store it, tiles are passed over by it.
    for (text, same) in [
        ("s like 'ap%'", "s >= \"ap\" and s < \"aq\""),
        ("s like 'ap'", "s = \"ap\""),
        ("e like '%i%'", "e in (\"mid\", \"hi\")"),
    ] {
        let written = format(&parsed(text), &everything(), &labels).unwrap();
        assert_eq!(written, same);
        assert_eq!(parsed(text).unstorable(), None);
    }
    assert!(parsed("u > 1 and s like '%x'").unstorable().is_some());
    check(
        &strings(&["abc", "ab\0", "b\0\0", "\0\0\0", "\u{e9}b"]),
        &[
            ("t like 'ab'", &[1]),
            ("t like 'a%'", &[0, 1]),
            ("t like '__'", &[1, 4]),
            ("t like ''", &[3]),
        ],
    );
    check(
        &strings(&["abc", "ab\0"]),
        &[("c like 'ab'", &[1]), ("c like 'a%'", &[0, 1])],
    );
}

/// The last nanosecond that the type can say is 2262-04-11T23:47:16.854775807.
#[test]
fn the_last_day_that_a_type_can_say_is_all_of_it() {
    let midnight =
        crate::column::datetime::parse_ticks("2262-04-11", Datatype::DateTimeNano).unwrap();
    let cells = values([midnight - 1, midnight, midnight + 1, i64::MAX].map(i64::to_le_bytes));
    check(
        &cells,
        &[
            ("ns = 2262-04-11", &[1, 2, 3]),
            ("ns != 2262-04-11", &[0]),
            ("ns <= '2262-04-11'", &[0, 1, 2, 3]),
            ("ns > '2262-04-11'", &[]),
            ("ns = 2262-04", &[0, 1, 2, 3]),
            ("ns in (2262)", &[0, 1, 2, 3]),
            ("ns = '2262-04-11T23:47:16'", &[3]),
        ],
    );
    let literal = |text: &str| literal::Literal::Time(text.to_owned());
    for (text, datatype, last) in [
        ("1970", Datatype::DateTimeAtto, Some(i64::MAX)),
        ("1970-01-01T00:00", Datatype::DateTimeAtto, Some(i64::MAX)),
        ("1970-01-01", Datatype::DateTimeFemto, Some(i64::MAX)),
        ("1970-01-01T00:00:00.0", Datatype::DateTimeSecond, None),
        ("1970-01-01T00:00:00", Datatype::DateTimeMinute, None),
        ("1970-01-01", Datatype::DateTimeDay, None),
        ("9999", Datatype::DateTimeYear, None),
    ] {
        assert_eq!(
            literal(text).period_end(datatype),
            last,
            "{text} {datatype}"
        );
    }
}

/// Dates and times without quotes, and what each stands for, against instants in milliseconds.
#[test]
fn dates_need_no_quotes_and_are_all_of_their_time() {
    let second =
        |text: &str| crate::column::datetime::parse_ticks(text, Datatype::DateTimeNano).unwrap();
    let instants = [
        "2024-04-30T23:59:59.999999999",
        "2024-05-01T00:00:00",
        "2024-05-01T10:29:59.999999999",
        "2024-05-01T10:30:00",
        "2024-05-01T10:30:59.999999999",
        "2024-05-01T10:31:00",
        "2024-05-31T23:59:59.999999999",
        "2024-06-01T00:00:00",
        "2025-01-01T00:00:00",
    ];
    let ticks = instants.map(second);
    let cells = values(ticks.map(i64::to_le_bytes));
    for (text, first, last) in [
        (
            "2024",
            "2024-01-01T00:00:00",
            "2024-12-31T23:59:59.999999999",
        ),
        (
            "2024-05",
            "2024-05-01T00:00:00",
            "2024-05-31T23:59:59.999999999",
        ),
        (
            "2024-05-01",
            "2024-05-01T00:00:00",
            "2024-05-01T23:59:59.999999999",
        ),
        (
            "2024-05-01T10:30",
            "2024-05-01T10:30:00",
            "2024-05-01T10:30:59.999999999",
        ),
        (
            "2024-05-01T12:30+02:00",
            "2024-05-01T10:30:00",
            "2024-05-01T10:30:59.999999999",
        ),
        (
            "2024-05-01T10:30:00Z",
            "2024-05-01T10:30:00",
            "2024-05-01T10:30:00.999999999",
        ),
        (
            "2024-05-01T10:30:00.0",
            "2024-05-01T10:30:00",
            "2024-05-01T10:30:00.099999999",
        ),
    ] {
        let (first, last) = (second(first), second(last));
        let which = |holds: &dyn Fn(i64) -> bool| -> Vec<usize> {
            (0..ticks.len()).filter(|&at| holds(ticks[at])).collect()
        };
        for written in [text.to_owned(), format!("'{text}'")] {
            let inside = which(&|tick| (first..=last).contains(&tick));
            let outside = which(&|tick| !(first..=last).contains(&tick));
            let at = |condition: &str| matching(&condition.replace('D', &written), &cells);
            assert_eq!(at("ns = D"), inside, "{written}");
            assert_eq!(at("ns != D"), outside, "{written}");
            assert_eq!(at("ns in (D)"), inside, "{written}");
            assert_eq!(at("ns not in (D)"), outside, "{written}");
            assert_eq!(at("ns between D and D"), inside, "{written}");
            assert_eq!(at("ns not between D and D"), outside, "{written}");
            assert_eq!(at("ns < D"), which(&|tick| tick < first), "{written}");
            assert_eq!(at("D >= ns"), which(&|tick| tick <= last), "{written}");
            assert_eq!(at("ns > D"), which(&|tick| tick > last), "{written}");
            assert_eq!(at("ns >= D"), which(&|tick| tick >= first), "{written}");
        }
    }
    check(&cells, &[("ns = @1714521600000000000", &[1])]);
    check(
        &values([18_262i64, 2024, 19_844].map(i64::to_le_bytes)),
        &[
            ("day = @2024", &[1]),
            ("day >= 2024", &[2]),
            ("day = 2024-05-01", &[2]),
            ("day in (2020, 1975-07-18)", &[0, 1]),
        ],
    );
}

#[test]
fn attributes_that_a_fragment_lacks_fail_every_test() {
    let schema = everything();
    let old = tests::schema(vec![attribute(
        "u",
        Datatype::UInt8,
        CellValNum::ONE,
        false,
    )]);
    let of = |text: &str| {
        BoundCondition::bind(&parsed(text), &schema, &labels)
            .unwrap()
            .for_fragment(&old, &[])
    };
    assert_eq!(of("i = 7").constant(), Some(false));
    assert_eq!(of("not i = 7").constant(), Some(false));
    assert_eq!(of("i is null").constant(), Some(false));
    assert_eq!(of("u > 1 and i = 7").constant(), Some(false));
    assert_eq!(of("u > 1 or i = 7").fields(), ["u".into()]);
    // So does one that every cell of the attribute meets: that of a label that there is not, or of null
    // where none can be.
    for text in [
        "f is not null",
        "not f is null",
        "f != null",
        "unordered != 'zz'",
        "not unordered = 'zz'",
        "unordered not in ('zz')",
    ] {
        assert_eq!(of(text).constant(), Some(false), "{text}");
        let all = BoundCondition::bind(&parsed(text), &schema, &labels).unwrap();
        let all = all.for_fragment(&schema, &[]);
        assert_eq!(all.constant(), Some(true), "{text}");
    }
    let mut mask = [1, 1];
    let cells = column(&schema, "u", &values([[1u8], [2]]));
    of("i = 7 or u > 1 or s = 'x'")
        .evaluate(&[cells.view()], &mut mask)
        .unwrap();
    assert_eq!(mask, [0, 1]);
    // A field that came back with another type is not the same.
    let other = tests::schema(vec![attribute(
        "u",
        Datatype::Int64,
        CellValNum::ONE,
        false,
    )]);
    let bound = BoundCondition::bind(&parsed("u > 1"), &schema, &labels).unwrap();
    assert_eq!(bound.for_fragment(&other, &[]).constant(), Some(false));
    // Nor one with other labels.
    assert_eq!(bound.for_fragment(&schema, &[]).constant(), None);
    let relabelled = ["u".to_owned()];
    let bound = bound.for_fragment(&schema, &relabelled);
    assert_eq!(bound.constant(), Some(false));
}

#[test]
fn deletes_keep_the_cells_of_the_negation() {
    let schema = everything();
    let bound = BoundCondition::bind_negated(&parsed("i > 4"), &schema, &labels).unwrap();
    let cells = column(
        &schema,
        "i",
        &[
            Some(5i32.to_le_bytes().to_vec()),
            None,
            Some(vec![4, 0, 0, 0]),
        ],
    );
    let mut mask = [1, 1, 1];
    bound.evaluate(&[cells.view()], &mut mask).unwrap();
    assert_eq!(mask, [0, 0, 1]);
    // Stored null tests are comparisons with nothing.
    let stored = Condition::compare("i", Comparison::Eq, vec![]);
    let bound = BoundCondition::bind(&stored, &schema, &labels).unwrap();
    let mut mask = [1, 1, 1];
    bound.evaluate(&[cells.view()], &mut mask).unwrap();
    assert_eq!(mask, [0, 1, 0]);
}

#[test]
fn conditions_that_do_not_fit_are_refused() {
    let schema = everything();
    let refused = |condition: &Condition| {
        BoundCondition::bind(condition, &schema, &labels)
            .expect_err("bound")
            .to_string()
    };
    assert!(
        refused(&Condition::compare("zzz", Comparison::Eq, [0])).contains("the array has d, i, u")
    );
    assert!(refused(&Condition::compare("i", Comparison::Eq, [0])).contains("1 bytes"));
    assert!(refused(&Condition::is_in("i", [[0u8]])).contains("1 bytes"));
    assert!(
        refused(&Condition::compare("many", Comparison::Eq, [0; 8])).contains("several values")
    );
    assert!(refused(&Condition::compare("blob", Comparison::Lt, [0])).contains("null"));
    assert!(BoundCondition::bind(&Condition::is_null("blob"), &schema, &labels).is_ok());
    // Cells that do not fit are an error, not a panic.
    let bound = BoundCondition::bind(&parsed("i > 3"), &schema, &labels).unwrap();
    let short = column(&schema, "u", &values([[1u8]]));
    assert!(bound.evaluate(&[short.view()], &mut [1]).is_err());
    assert!(bound.evaluate(&[], &mut [1]).is_err());
    assert!(
        bound
            .evaluate(&[column(&schema, "i", &[None]).view()], &mut [1, 1])
            .is_err()
    );
}

#[test]
fn mistakes_are_shown_in_their_place() {
    for (text, says) in [
        ("", "the condition ends too early"),
        ("i >", "ends too early: expected a value"),
        ("i > 3 and", "expected the name of a field"),
        ("i > 3 u = 2", "at character 7"),
        ("(i > 3", "closing parenthesis"),
        ("i > 3)", "expected `and`, `or` or the end"),
        ("u > nan", "not a whole number"),
        ("yes = 300", "does not fit BOOL"),
        ("i is distinct 3", "expected `from`"),
        ("i is distinct from", "expected a value"),
        ("u and i = 3", "a comparison"),
        ("s > 3", "write it in quotes"),
        ("s = x", "strings stand in quotes"),
        ("s = 'x", "not closed"),
        ("s = '\\q'", "no escape"),
        ("i = 'x'", "is a string"),
        ("nothing = 1", "there is no field \"nothing\""),
        ("day = '2020-13-01'", "no such value"),
        ("i betwixt 1 and 2", "expected a comparison"),
        ("i between 1 or 2", "`and` and the upper value"),
        ("i is 3", "expected `null`"),
        ("i is nan", "expected `null`"),
        ("i like 'x%'", "is no text"),
        ("s like 3", "stands in quotes"),
        ("s like 'x' escape 'xy'", "one character"),
        ("s = 2024-05-01", "write it in quotes"),
        ("i = 2024-05-01", "is a date or time"),
        ("i = @5", "number of ticks"),
        ("day = 2024-13-01", "no such value"),
        ("i < null", "use `is null`"),
        ("i in 3", "a list"),
        ("i # 3", "means nothing"),
        ("i = 12abc", "not a number"),
        ("f = 1.2.3", "not a number"),
    ] {
        let error = parse(text, &everything(), &labels)
            .expect_err(text)
            .to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
    let error = parse("s = \"é\" and u > 'x'", &everything(), &labels)
        .unwrap_err()
        .to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(
        lines[2].find('^').unwrap(),
        2 + "s = \"e\" and u > ".len(),
        "{error}"
    );
    for deep in [
        "(".repeat(100_000),
        "not ".repeat(100_000),
        "raw(".repeat(100_000),
    ] {
        assert!(parse(&deep, &everything(), &labels).is_err());
    }
}

/// A leaf over one of a few fields, with a value that often occurs.
fn leaf() -> impl Strategy<Value = Condition> {
    let op = prop_oneof![
        Just(Comparison::Lt),
        Just(Comparison::Le),
        Just(Comparison::Gt),
        Just(Comparison::Ge),
        Just(Comparison::Eq),
        Just(Comparison::Ne)
    ];
    let value = prop_oneof![
        (-3i32..4).prop_map(|v| ("i", v.to_le_bytes().to_vec())),
        (0u8..5).prop_map(|v| ("u", vec![v])),
        prop_oneof![Just(f64::NAN), Just(-0.0), (-2..3).prop_map(f64::from)]
            .prop_map(|v| ("f", v.to_le_bytes().to_vec())),
        "[ab]{0,2}".prop_map(|v| ("s", v.into_bytes())),
        prop_oneof![Just("lo"), Just("mid"), Just("hi"), Just("zz")].prop_map(|v| ("e", v.into())),
        (0i64..3).prop_map(|v| ("odd name", v.to_le_bytes().to_vec())),
        (18_000i64..18_003).prop_map(|v| ("day", v.to_le_bytes().to_vec())),
    ];
    let set = (
        value.clone(),
        proptest::collection::vec(0u8..4, 0..14),
        any::<bool>(),
    );
    prop_oneof![
        3 => (value, op).prop_map(|((name, value), op)| Condition::compare(name, op, value)),
        1 => set.prop_map(|((name, value), others, negated)| {
            let mut values = vec![value];
            if name == "u" {
                values.extend(others.into_iter().map(|v| vec![v]));
            }
            Condition::In { field: name.into(), negated, values: values.into_iter().collect() }
        }),
        1 => any::<bool>().prop_map(|negated| Condition::Match {
            field: "f".into(),
            negated,
            form: Form::Nan,
        }),
        1 => ("[%_][ab%_]{0,2}|[ab][_%][ab]", any::<bool>()).prop_map(|(pattern, negated)| {
            Condition::Match { field: "s".into(), negated, form: Form::Like(pattern.into_bytes()) }
        }),
        1 => (prop_oneof![Just("i"), Just("s"), Just("u"), Just("e")], any::<bool>())
            .prop_map(|(name, negated)| Condition::IsNull { field: name.into(), negated }),
    ]
}

fn tree() -> impl Strategy<Value = Condition> {
    leaf().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Condition::And),
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Condition::Or),
            inner.prop_map(|c| Condition::Not(Box::new(c))),
        ]
    })
}

/// One row of cells of the fields that [`leaf`] uses; `None` for null.
type Row = (Option<i32>, u8, f64, Option<String>, Option<i8>, i64, i64);

fn row() -> impl Strategy<Value = Row> {
    (
        proptest::option::of(-3i32..4),
        0u8..5,
        prop_oneof![1 => Just(f64::NAN), 1 => Just(-0.0), 6 => (-2..3).prop_map(f64::from)],
        proptest::option::of("[ab]{0,2}"),
        proptest::option::of(0i8..3),
        0i64..3,
        18_000i64..18_003,
    )
}

fn cell(row: &Row, name: &str) -> Option<Vec<u8>> {
    match name {
        "i" => row.0.map(|v| v.to_le_bytes().to_vec()),
        "u" => Some(vec![row.1]),
        "f" => Some(row.2.to_le_bytes().to_vec()),
        "s" => row.3.as_ref().map(|v| v.clone().into_bytes()),
        "e" => row.4.map(|v| v.to_le_bytes().to_vec()),
        "odd name" => Some(row.5.to_le_bytes().to_vec()),
        _ => Some(row.6.to_le_bytes().to_vec()),
    }
}

/// What the condition means for one cell, written down as plainly as it can be.
fn naive(condition: &Condition, row: &Row, negate: bool) -> bool {
    use std::cmp::Ordering;
    match condition {
        Condition::And(c) if !negate => c.iter().all(|c| naive(c, row, false)),
        Condition::And(c) => c.iter().any(|c| naive(c, row, true)),
        Condition::Or(c) if !negate => c.iter().any(|c| naive(c, row, false)),
        Condition::Or(c) => c.iter().all(|c| naive(c, row, true)),
        Condition::Not(c) => naive(c, row, !negate),
        Condition::IsNull { field, negated } => {
            cell(row, &field.name).is_none() != (*negated != negate)
        }
        Condition::Match {
            field,
            negated,
            form,
        } => match (form, cell(row, &field.name)) {
            (_, None) => false,
            (Form::Nan, _) => row.2.is_nan() != (*negated != negate),
            (Form::Like(pattern), Some(cell)) => {
                fn like(pattern: &[u8], text: &[u8]) -> bool {
                    match pattern {
                        [] => text.is_empty(),
                        [b'%', rest @ ..] => (0..=text.len()).any(|at| like(rest, &text[at..])),
                        [b'_', rest @ ..] => !text.is_empty() && like(rest, &text[1..]),
                        [c, rest @ ..] => text.first() == Some(c) && like(rest, &text[1..]),
                    }
                }
                like(pattern, &cell) != (*negated != negate)
            }
        },
        Condition::Compare { field, op, value } => {
            let op = if negate { op.negated() } else { *op };
            let Some(cell) = cell(row, &field.name) else {
                return false;
            };
            let order = match field.name.as_str() {
                "i" => row
                    .0
                    .unwrap()
                    .cmp(&i32::from_le_bytes(value[..].try_into().unwrap()))
                    .into(),
                "f" => row
                    .2
                    .partial_cmp(&f64::from_le_bytes(value[..].try_into().unwrap())),
                "u" | "s" => cell.cmp(value).into(),
                "e" => match ["lo", "mid", "hi"]
                    .iter()
                    .position(|l| l.as_bytes() == value)
                {
                    Some(index) => (cell[0] as usize).cmp(&index).into(),
                    None => return op == Comparison::Ne,
                },
                _ => i64::from_le_bytes(cell[..].try_into().unwrap())
                    .cmp(&i64::from_le_bytes(value[..].try_into().unwrap()))
                    .into(),
            };
            match op {
                Comparison::Lt => order == Some(Ordering::Less),
                Comparison::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
                Comparison::Gt => order == Some(Ordering::Greater),
                Comparison::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
                Comparison::Eq => order == Some(Ordering::Equal),
                _ => order != Some(Ordering::Equal),
            }
        }
        Condition::In {
            field,
            negated,
            values,
        } => {
            let Some(cell) = cell(row, &field.name) else {
                return false;
            };
            let cell = if field.name == "e" {
                ["lo", "mid", "hi"][cell[0] as usize].as_bytes().to_vec()
            } else {
                cell
            };
            values.iter().any(|v| v == cell) != (*negated != negate)
        }
    }
}

/// The statistics that a writer would store for a column; none where a real is NaN.
fn stats(column: &ColumnBuffers) -> (Option<Vec<u8>>, Option<Vec<u8>>, u64) {
    let datatype = column.column_type.datatype;
    let mut cells: Vec<&[u8]> = column.cells().flatten().collect();
    let nulls = (column.cell_num - cells.len()) as u64;
    cells.sort_by(|a, b| azulejo_format::range::compare(datatype, a, b));
    if datatype == Datatype::Float64 && column.values::<f64>().unwrap().iter().any(|v| v.is_nan()) {
        return (None, None, nulls);
    }
    (
        cells.first().map(|c| c.to_vec()),
        cells.last().map(|c| c.to_vec()),
        nulls,
    )
}

proptest! {
    #[test]
    fn masks_and_pruning_agree_with_the_naive_meaning(
        condition in tree(),
        rows in proptest::collection::vec(row(), 1..20),
        hidden in proptest::collection::vec(any::<bool>(), 20),
    ) {
        let schema = everything();
        for negate in [false, true] {
            let bound = if negate {
                BoundCondition::bind_negated(&condition, &schema, &labels).unwrap()
            } else {
                BoundCondition::bind(&condition, &schema, &labels).unwrap()
            };
            let columns: Vec<_> = bound
                .fields()
                .iter()
                .map(|f| column(&schema, f, &rows.iter().map(|r| cell(r, f)).collect::<Vec<_>>()))
                .collect();
            let views: Vec<_> = columns.iter().map(ColumnBuffers::view).collect();
            let expected: Vec<u8> = rows.iter().map(|r| u8::from(naive(&condition, r, negate))).collect();
            let mut mask = vec![1; rows.len()];
            bound.evaluate(&views, &mut mask).unwrap();
            prop_assert_eq!(&mask, &expected);
            // What was masked before stays masked.
            let mut mask: Vec<u8> = hidden[..rows.len()].iter().map(|h| u8::from(*h)).collect();
            bound.evaluate(&views, &mut mask).unwrap();
            for (i, m) in mask.iter().enumerate() {
                prop_assert_eq!(*m, u8::from(hidden[i]) & expected[i]);
            }
            let stats: Vec<_> = columns.iter().map(stats).collect();
            let answer = bound.prune(&|field| {
                let (min, max, nulls) = &stats[field];
                Some(TileFieldStats {
                    cell_num: rows.len() as u64,
                    min: min.as_deref(),
                    max: max.as_deref(),
                    up_to_zero_byte: field % 2 == 0 && bound.fields()[field].starts_with('s'),
                    null_count: Some(*nulls),
                })
            });
            match answer {
                Tri::AllTrue => prop_assert!(expected.iter().all(|e| *e == 1)),
                Tri::AllFalse => prop_assert!(expected.iter().all(|e| *e == 0)),
                Tri::Unknown => {}
            }
            prop_assert_eq!(bound.prune(&|_| None) , match bound.constant() {
                Some(true) => Tri::AllTrue,
                Some(false) => Tri::AllFalse,
                None => Tri::Unknown,
            });
        }
    }

    #[test]
    fn text_round_trips(condition in tree()) {
        let schema = everything();
        let text = format(&condition, &schema, &labels).unwrap();
        // Patterns and tests that comparisons can say are read as those.
        prop_assume!(!text.contains("is not nan") && !text.contains(" like \"%\"") && !text.contains(" like \"%%"));
        let back = parse(&text, &schema, &labels);
        prop_assert!(back.is_ok(), "{}: {}", text, back.unwrap_err());
        // Single children lose their combination; what is written again is the same.
        prop_assert_eq!(format(&back.unwrap(), &schema, &labels).unwrap().replace(['(', ')'], ""), text.replace(['(', ')'], ""));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z0-9 ()'\"`\\\\<>=!,.+-]{0,40}|\\PC{0,20}") {
        let _ = parse(&text, &everything(), &labels);
    }

    #[test]
    fn strings_with_zero_bytes_prune_safely(
        cells in proptest::collection::vec(proptest::collection::vec(0u8..3, 0..4), 1..6),
        value in proptest::collection::vec(0u8..3, 0..4),
        negated in any::<bool>(),
    ) {
        let schema = everything();
        let text = |cell: &Vec<u8>| cell.split(|b| *b == 0).next().unwrap().to_vec();
        let min = cells.iter().map(text).min().unwrap();
        let max = cells.iter().map(text).max().unwrap();
        for condition in [
            Condition::compare("s", Comparison::Lt, value.clone()),
            Condition::compare("s", Comparison::Le, value.clone()),
            Condition::compare("s", Comparison::Eq, value.clone()),
            Condition::is_in("s", [&value]),
        ] {
            let condition = if negated { Condition::Not(Box::new(condition)) } else { condition };
            let bound = BoundCondition::bind(&condition, &schema, &labels).unwrap();
            let column = column(&schema, "s", &cells.iter().cloned().map(Some).collect::<Vec<_>>());
            let mut mask = vec![1; cells.len()];
            bound.evaluate(&[column.view()], &mut mask).unwrap();
            let stats = TileFieldStats {
                cell_num: cells.len() as u64,
                min: Some(&min),
                max: Some(&max),
                up_to_zero_byte: true,
                null_count: Some(0),
            };
            match bound.prune(&|_| Some(stats)) {
                Tri::AllTrue => prop_assert!(mask.iter().all(|m| *m == 1)),
                Tri::AllFalse => prop_assert!(mask.iter().all(|m| *m == 0)),
                Tri::Unknown => {}
            }
        }
    }
}
