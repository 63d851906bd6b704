use super::*;
use crate::column::{ColumnBuffers, ColumnBuilder};

fn aggregates() -> Vec<Aggregate> {
    ["count", "sum:a", "min:a", "max:a", "mean:a", "nulls:a"]
        .map(|t| t.parse().unwrap())
        .into()
}

fn column<const N: usize>(
    datatype: Datatype,
    cells: &[Option<[u8; N]>],
    nullable: bool,
) -> ColumnBuffers {
    let mut column_type = ColumnType::new("a", datatype);
    column_type.nullable = nullable;
    let mut column = ColumnBuilder::new(column_type);
    for cell in cells {
        column.append_cell(&cell.unwrap_or([0x77; N]), cell.is_some());
    }
    column.finish()
}

fn results(column: &ColumnBuffers, mask: Option<&[u8]>) -> Vec<AggregateValue> {
    let all = aggregates();
    let mut aggregator = Aggregator::new(column.column_type.clone(), &all).unwrap();
    aggregator.update(&column.view(), mask).unwrap();
    // In two parts, the same comes out.
    let half = column.cell_num / 2;
    let (left, right) = (column.slice(0..half), column.slice(half..column.cell_num));
    let mut parts = aggregator.fork();
    parts
        .update(&left.view(), mask.map(|m| &m[..half]))
        .unwrap();
    let mut other = aggregator.fork();
    other
        .update(&right.view(), mask.map(|m| &m[half..]))
        .unwrap();
    parts.merge(other);
    for aggregate in &all {
        let (a, b) = (parts.finish(aggregate), aggregator.finish(aggregate));
        assert_eq!(format!("{a:?}"), format!("{b:?}"), "{aggregate}");
    }
    all.iter().map(|a| aggregator.finish(a)).collect()
}

fn cell<const N: usize>(datatype: Datatype, bytes: [u8; N]) -> AggregateValue {
    AggregateValue::Cell {
        datatype,
        bytes: bytes.to_vec(),
    }
}

use AggregateValue::{Null, Real, Signed, Unsigned};

#[test]
fn nulls_and_masks_do_not_count() {
    let cells = [None, Some(3i32), None, Some(5), Some(-9)].map(|c| c.map(i32::to_le_bytes));
    let column = column(Datatype::Int32, &cells, true);
    let int = |v: i32| cell(Datatype::Int32, v.to_le_bytes());
    assert_eq!(
        results(&column, None),
        [
            Unsigned(5),
            Signed(-1),
            int(-9),
            int(5),
            Real(-1.0 / 3.0),
            Unsigned(2)
        ]
    );
    assert_eq!(
        results(&column, Some(&[1, 1, 0, 1, 0])),
        [
            Unsigned(3),
            Signed(8),
            int(3),
            int(5),
            Real(4.0),
            Unsigned(1)
        ]
    );
    assert_eq!(
        results(&column, Some(&[1, 0, 1, 0, 0])),
        [Unsigned(2), Null, Null, Null, Null, Unsigned(2)]
    );
    let none = ColumnBuffers::empty(ColumnType::new("a", Datatype::Int32));
    assert_eq!(
        results(&none, None),
        [Unsigned(0), Signed(0), Null, Null, Null, Unsigned(0)]
    );
}

#[test]
fn sums_stop_at_their_limits() {
    let column_of = |values: [i64; 3]| {
        column(
            Datatype::Int64,
            &values.map(|v| Some(v.to_le_bytes())),
            false,
        )
    };
    let results_of = |values| results(&column_of(values), None);
    assert_eq!(results_of([i64::MAX, 1, -5])[1], Signed(i64::MAX - 4));
    assert_eq!(results_of([i64::MAX, 1, 5])[1], Signed(i64::MAX));
    assert_eq!(results_of([i64::MIN, -1, -5])[1], Signed(i64::MIN));
    assert_eq!(
        results_of([i64::MAX, i64::MAX, i64::MAX])[4],
        Real(i64::MAX as f64)
    );
    let unsigned = column(Datatype::UInt64, &[Some([0xff; 8]), Some([1; 8])], false);
    assert_eq!(results(&unsigned, None)[1], Unsigned(u64::MAX));
    let bools = column(Datatype::Bool, &[Some([1]), Some([0]), Some([1])], false);
    assert_eq!(results(&bools, None)[1], Unsigned(2));
}

#[test]
fn nan_counts_in_sums_only() {
    let column_of = |values: &[f64]| {
        let cells: Vec<_> = values.iter().map(|v| Some(v.to_le_bytes())).collect();
        column(Datatype::Float64, &cells, false)
    };
    let some = results(&column_of(&[f64::NAN, 1.0, 3.0, 2.0]), None);
    assert!(matches!(some[1], Real(sum) if sum.is_nan()));
    assert_eq!(some[2], cell(Datatype::Float64, 1f64.to_le_bytes()));
    assert_eq!(some[3], cell(Datatype::Float64, 3f64.to_le_bytes()));
    let none = results(&column_of(&[f64::NAN]), None);
    assert_eq!(none[2], cell(Datatype::Float64, f64::NAN.to_le_bytes()));
}

#[test]
fn strings_have_bounds_and_no_sums() {
    let kind = ColumnType::new("a", Datatype::StringAscii).with_cell_val_num(CellValNum::Var);
    let mut column = ColumnBuilder::new(kind.clone());
    for text in ["b", "", "zz", "a", "\u{e9}"] {
        column.append_cell(text.as_bytes(), true);
    }
    let column = column.finish();
    let (min, max) = (Aggregate::Min("a".into()), Aggregate::Max("a".into()));
    let mut aggregator = Aggregator::new(kind.clone(), [&min, &max]).unwrap();
    aggregator
        .update(&column.view(), Some(&[1, 0, 1, 1, 0]))
        .unwrap();
    assert_eq!(aggregator.finish(&min), cell(Datatype::StringAscii, *b"a"));
    assert_eq!(aggregator.finish(&max), cell(Datatype::StringAscii, *b"zz"));
    let error = Aggregator::new(kind, [&Aggregate::Sum("a".into())])
        .unwrap_err()
        .to_string();
    assert_eq!(error, "a (STRING_ASCII) has no sum or mean");
    let one = ColumnType::new("a", Datatype::Char);
    assert!(Aggregator::new(one.clone(), [&min, &max]).is_ok());
    assert!(Aggregator::new(one, [&Aggregate::Mean("a".into())]).is_err());
    let many = ColumnType::new("a", Datatype::Int32).with_cell_val_num(CellValNum::Fixed(2));
    assert!(Aggregator::new(many.clone(), [&min]).is_err());
    assert!(Aggregator::new(many, [&Aggregate::NullCount("a".into())]).is_ok());
}

#[test]
fn tiles_are_taken_by_their_statistics() {
    let all = aggregates();
    let mut aggregator =
        Aggregator::new(ColumnType::new("a", Datatype::Int32).with_nulls(), &all).unwrap();
    let (min, max) = ((-3i32).to_le_bytes(), 9i32.to_le_bytes());
    let facts = TileFacts {
        cell_num: 10,
        sum: Some(TileSum::Signed(12)),
        min: Some(&min),
        max: Some(&max),
        max_up_to_zero: None,
        null_count: Some(4),
    };
    assert!(aggregator.update_from_stats(&facts));
    for lacking in [
        TileFacts { sum: None, ..facts },
        TileFacts {
            sum: Some(TileSum::Signed(i64::MAX)),
            ..facts
        },
        TileFacts { min: None, ..facts },
        TileFacts {
            max: Some(&[1, 2]),
            ..facts
        },
        TileFacts {
            null_count: None,
            ..facts
        },
        TileFacts {
            null_count: Some(11),
            ..facts
        },
    ] {
        assert!(!aggregator.update_from_stats(&lacking), "{lacking:?}");
    }
    // Bounds of nulls mean nothing.
    assert!(aggregator.update_from_stats(&TileFacts {
        null_count: Some(10),
        sum: None,
        ..facts
    }));
    let int = |bytes| cell(Datatype::Int32, bytes);
    let found: Vec<_> = all.iter().map(|a| aggregator.finish(a)).collect();
    assert_eq!(
        found,
        [
            Unsigned(20),
            Signed(12),
            int(min),
            int(max),
            Real(2.0),
            Unsigned(14)
        ]
    );
}

#[test]
fn aggregates_as_text() {
    for aggregate in aggregates() {
        assert_eq!(
            aggregate.to_string().parse::<Aggregate>().unwrap(),
            aggregate
        );
    }
    assert!(
        "sum"
            .parse::<Aggregate>()
            .unwrap_err()
            .to_string()
            .contains("sum:FIELD")
    );
    assert!(
        "median:a"
            .parse::<Aggregate>()
            .unwrap_err()
            .to_string()
            .contains("no aggregate")
    );
    assert_eq!(
        "sum:a:b".parse::<Aggregate>().unwrap(),
        Aggregate::Sum("a:b".into())
    );
}
