//! Comparisons with values at the ends of every type, in dimensions and attributes: what an array
//! takes as a filter selects the rows for which the expression is true.

use super::support::{REALS, TestResult, refused, rows, rows_of, text};
use azulejo::column::{ColumnBuilder, ColumnType};
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::filter::Pipeline;
use azulejo::format::schema::{Attribute, Dimension, Enumeration, SchemaEvolution};
use azulejo::format::{ArraySchema, CellValNum, Datatype, Range};
use azulejo::{ArrayHandle, ColumnSet, Config, Context, WriteOptions};
use azulejo_sql::{ArrayTable, session, table};
use datafusion::arrow::array::{RecordBatch, cast::AsArray};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::catalog::TableProvider;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{
    Expr, Operator, TableProviderFilterPushDown, binary_expr, col, lit,
};
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use std::sync::Arc;

const OPERATORS: [Operator; 6] = [
    Operator::Eq,
    Operator::NotEq,
    Operator::Lt,
    Operator::LtEq,
    Operator::Gt,
    Operator::GtEq,
];

/// Cells of a type, which lie at its ends and around what Arrow can show of it.
fn values(datatype: Datatype, number: CellValNum) -> Vec<Vec<u8>> {
    if number.is_var() {
        let words: [&[u8]; 7] = [b"", b"\0", b"a", b"a\0", b"ab", b"b", b"\x7f\x7f"];
        return words.map(<[u8]>::to_vec).into();
    }
    if number != CellValNum::ONE {
        return [b"abc", b"ab\0", b"b\0\0", b"~~~"]
            .map(|word| word.to_vec())
            .into();
    }
    match datatype {
        Datatype::Float64 => {
            return REALS
                .iter()
                .map(|real| real.to_le_bytes().to_vec())
                .collect();
        }
        Datatype::Float32 => {
            let singles = REALS.map(|real| real.clamp(-3e38, 3e38) as f32);
            return singles.map(|real| real.to_le_bytes().to_vec()).into();
        }
        Datatype::Bool => return vec![vec![0], vec![1], vec![2]],
        _ => {}
    }
    let (low, high) = ends(datatype);
    let mut numbers = vec![low, low + 1, -7, -1, 0, 1, 100, high - 1, high];
    if datatype.is_datetime() || datatype.is_time() {
        for scale in [60, 3_600, 7 * 86_400] {
            numbers.extend([high / scale, high / scale + 1, low / scale, low / scale - 1]);
        }
        numbers.extend([i128::from(i32::MAX), i128::from(i32::MAX) + 1, 54_321]);
    }
    numbers.retain(|n| (low..=high).contains(n));
    numbers.sort_unstable();
    numbers.dedup();
    numbers.iter().map(|n| bytes(datatype, *n)).collect()
}

/// The least and the greatest integer of a type.
fn ends(datatype: Datatype) -> (i128, i128) {
    let (low, high) = dispatch!(datatype.physical(), T => {
        (T::LOWEST.to_string(), T::HIGHEST.to_string())
    });
    (low.parse().unwrap_or(0), high.parse().unwrap_or(0))
}

/// An integer as it is stored.
fn bytes(datatype: Datatype, number: i128) -> Vec<u8> {
    number.to_le_bytes()[..datatype.size()].to_vec()
}

/// Whether dimensions have the type.
fn is_dimension(datatype: Datatype, number: CellValNum) -> bool {
    match datatype {
        Datatype::StringAscii => number.is_var(),
        Datatype::Bool | Datatype::Blob => false,
        _ => number == CellValNum::ONE && !datatype.is_string(),
    }
}

/// An array whose dimension `x` has the type, if it can have; its attribute `a` does.
fn make(place: &ArrayHandle, datatype: Datatype, number: CellValNum) -> TestResult {
    let values = values(datatype, number);
    let typed = is_dimension(datatype, number);
    let mut coordinates: Vec<Vec<u8>> = match (typed, datatype.is_real()) {
        (true, true) => {
            let finite = |bytes: &&Vec<u8>| {
                dispatch!(datatype.physical(), T => {
                    let text = T::read(bytes).to_string();
                    !matches!(text.as_str(), "NaN" | "inf" | "-inf" | "-0")
                })
            };
            values.iter().filter(finite).cloned().collect()
        }
        (true, false) => {
            let last = bytes(datatype, ends(datatype).1);
            values
                .iter()
                .filter(|value| **value != last)
                .cloned()
                .collect()
        }
        (false, _) => (0..values.len() as i64)
            .map(|i| i.to_le_bytes().to_vec())
            .collect(),
    };
    coordinates.dedup();
    let kind = if typed { datatype } else { Datatype::Int64 };
    // All but the greatest number: one tile has as many cells as its extent can say.
    let domain = match kind.is_real() {
        true => dispatch!(kind.physical(), T => Range::of(T::LOWEST, T::HIGHEST)),
        false => {
            let (low, high) = ends(kind);
            Range::new(bytes(kind, low), bytes(kind, high - 1))
        }
    };
    let dimension = Dimension {
        name: "x".into(),
        datatype: kind,
        cell_val_num: if typed { number } else { CellValNum::ONE },
        filters: Pipeline::default(),
        domain: (!kind.is_string()).then_some(domain),
        tile_extent: None,
    };
    let mut attribute = Attribute::new("a", datatype, number);
    attribute.nullable = true;
    let schema = ArraySchema::sparse()
        .dimension_with(dimension)
        .attribute_with(attribute)
        .capacity(3);
    place.create(schema.build()?)?;
    let x =
        ColumnType::new("x", kind).with_cell_val_num(if typed { number } else { CellValNum::ONE });
    let mut a = ColumnType::new("a", datatype).with_cell_val_num(number);
    a.nullable = true;
    let (mut x, mut a) = (ColumnBuilder::new(x), ColumnBuilder::new(a));
    for (i, coordinate) in coordinates.iter().enumerate() {
        x.append_cell(coordinate, true);
        let value = values.get((i * 2 + 1) % values.len()).ok_or("no values")?;
        a.append_cell(value, i % 5 != 4);
    }
    let mut writer = place.writer(WriteOptions::new())?;
    writer.write(&ColumnSet::of([x.finish(), a.finish()])?)?;
    writer.finish()?;
    Ok(())
}

/// What is asked of a column, with the values that it may have.
fn filters(name: &str, values: &[ScalarValue]) -> Vec<Expr> {
    let mut filters = vec![col(name).is_null(), col(name).is_not_null()];
    for value in values {
        for operator in OPERATORS {
            filters.push(binary_expr(col(name), operator, lit(value.clone())));
        }
        filters.push(!col(name).gt(lit(value.clone())));
        filters.push(lit(value.clone()).lt(col(name)));
    }
    for pair in values.windows(2) {
        let (low, high) = (lit(pair[0].clone()), lit(pair[1].clone()));
        filters.push(col(name).between(low.clone(), high.clone()));
        filters.push(col(name).not_between(low.clone(), high.clone()));
        filters.push(col(name).in_list(vec![low.clone(), high.clone()], false));
        filters.push(col(name).in_list(vec![low, high], true));
    }
    filters
}

/// Sorted rows.
fn sorted(batches: &[RecordBatch]) -> TestResult<Vec<String>> {
    let mut rows = text(batches)?;
    rows.sort();
    Ok(rows)
}

/// Holds what the array selects against what the expression says of each row; how many filters the
/// array takes.
async fn check(session: &SessionContext, table: &Arc<ArrayTable>) -> TestResult<usize> {
    let whole = session
        .read_table(Arc::new(rows_of(table)?))?
        .collect()
        .await?;
    let whole = whole.first().ok_or("no rows")?;
    let schema = DFSchema::try_from(table.schema())?;
    let state = session.state();
    let mut taken = 0;
    for (name, column) in ["x", "a"].into_iter().zip(whole.columns()) {
        let mut values = Vec::new();
        for row in 0..column.len() {
            values.push(ScalarValue::try_from_array(column, row)?);
        }
        for filter in filters(name, &values) {
            let support = table.supports_filters_pushdown(&[&filter])?;
            if support != [TableProviderFilterPushDown::Exact] {
                continue;
            }
            taken += 1;
            let plan = table
                .scan(&state, None, std::slice::from_ref(&filter), None)
                .await?;
            let found = sorted(&collect(plan, session.task_ctx()).await?)?;
            let expr = session.create_physical_expr(filter.clone(), &schema)?;
            let is_true = expr.evaluate(whole)?.into_array(whole.num_rows())?;
            let wanted = sorted(&[filter_record_batch(whole, is_true.as_boolean())?])?;
            assert_eq!(found, wanted, "{filter} of {:?}", column.data_type());
        }
    }
    Ok(taken)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_select_what_they_say_at_the_ends_of_types() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context);
    let (mut taken, mut types) = (0, 0);
    for datatype in Datatype::ALL {
        let numbers: &[CellValNum] = match datatype {
            Datatype::StringAscii | Datatype::StringUtf8 | Datatype::Char => {
                &[CellValNum::Var, CellValNum::Fixed(3)]
            }
            _ if datatype.is_string() || datatype == Datatype::Any => &[],
            Datatype::Blob | Datatype::GeomWkb | Datatype::GeomWkt => &[CellValNum::Var],
            _ => &[CellValNum::ONE],
        };
        for number in numbers {
            let place = context.array(&format!("mem://{}-{}", datatype.name(), types));
            make(&place, datatype, *number).map_err(|error| format!("{datatype:?}: {error}"))?;
            let found = check(&session, &table(&place)?).await;
            taken += found.map_err(|error| format!("{datatype:?} {number:?}: {error}"))?;
            types += 1;
        }
    }
    assert!(
        types > 40 && taken > 4_000,
        "{taken} filters of {types} types"
    );
    Ok(())
}

/// Literals that are no values of the column's type.
#[tokio::test]
async fn literals_of_other_types_compare_as_numbers() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    for datatype in [
        Datatype::Int8,
        Datatype::UInt8,
        Datatype::Int64,
        Datatype::UInt64,
        Datatype::Float32,
    ] {
        let place = context.array(&format!("mem://{}", datatype.name()));
        make(&place, datatype, CellValNum::ONE)?;
        let array = table(&place)?;
        let (ours, theirs) = (session(&context), session(&context));
        theirs.register_table("t", Arc::new(rows_of(&array)?))?;
        ours.register_table("t", array)?;
        for literal in [
            "300",
            "-1",
            "1.5",
            "-0.0",
            "1e30",
            "9223372036854775807",
            "18446744073709551615",
            "'7'",
        ] {
            for operator in ["=", "<>", "<", ">="] {
                let query = format!(
                    "SELECT x, a FROM t WHERE x {operator} {literal} OR a {operator} {literal}"
                );
                let found = match (rows(&ours, &query).await, rows(&theirs, &query).await) {
                    (Err(_), Err(_)) => continue,
                    (found, wanted) => (found?, wanted?),
                };
                let (mut found, mut wanted) = found;
                found.sort();
                wanted.sort();
                assert_eq!(found, wanted, "{datatype:?}: {query}");
            }
        }
    }
    Ok(())
}

/// Hours and minutes are both shown as seconds, and lie in an array as other numbers.
#[tokio::test]
async fn tables_notice_that_values_are_stored_in_another_way() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context);
    let place = context.array("mem://hours");
    let attribute = |name: &str, datatype| Attribute::new(name, datatype, CellValNum::ONE);
    let colours = |labels: &[&str]| {
        let labels = labels.iter().copied();
        Enumeration::of_strings("colours", Datatype::StringUtf8, false, labels)
    };
    let mut colour = attribute("colour", Datatype::UInt8);
    colour.enumeration = Some("colours".into());
    let red = colours(&["red"])?;
    let schema = ArraySchema::sparse()
        .dimension("id", 0i64..=99, 10)
        .attribute_with(colour)
        .attribute_with(attribute("t", Datatype::DateTimeHour))
        .enumeration(red.clone());
    place.create(schema.build()?)?;
    session.register_table("h", table(&place)?)?;
    let at_two = "SELECT id FROM h WHERE t = TIMESTAMP '1970-01-01T02:00:00'";
    let insert = "INSERT INTO h VALUES (1, 'red', TIMESTAMP '1970-01-01T02:00:00')";
    rows(&session, insert).await?;
    assert_eq!(rows(&session, at_two).await?, ["1"]);

    // More labels change no column.
    let more = SchemaEvolution {
        extend_enumerations: vec![red.extend(["green"])?],
        ..SchemaEvolution::default()
    };
    place.evolve(&more, None)?;
    assert_eq!(rows(&session, at_two).await?, ["1"]);

    let drop = SchemaEvolution {
        drop_attributes: vec!["t".into()],
        ..SchemaEvolution::default()
    };
    place.evolve(&drop, None)?;
    let add = SchemaEvolution {
        add_attributes: vec![attribute("t", Datatype::DateTimeMinute)],
        ..SchemaEvolution::default()
    };
    place.evolve(&add, None)?;
    let error = refused(&session, at_two).await;
    assert!(error.contains("schema has changed"), "{error}");
    session.deregister_table("h")?;
    session.register_table("h", table(&place)?)?;
    rows(&session, &insert.replace("(1,", "(2,")).await?;
    assert_eq!(rows(&session, at_two).await?, ["2"]);
    Ok(())
}
