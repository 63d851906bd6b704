//! Values that a statement stores: as they are, or not at all.
//!
//! DataFusion casts them to the types of columns, and casts cut what these have no room for: 1.7 became
//! 1 in a column of whole numbers, half past a second that second, noon its day. What would be another
//! value afterwards is refused here. Who wants it cut says so: by `CAST`, `round` or `date_trunc`. Reals
//! become the nearest ones that there are, unless that is infinite.
//!
//! Moments that a query gives, such as `now()`, have more digits than anybody wrote. They go where
//! PostgreSQL and DuckDB put them: to their day, or to the nearest tick of a coarser unit.

use crate::error::Result;
use crate::table::ArrayTable;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, GenericListArray, OffsetSizeTrait};
use datafusion::arrow::compute::kernels::cmp::distinct;
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::{Alias, Cast, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, DmlStatement, Expr, ExprSchemable, LogicalPlan, Projection, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Values, Volatility, WriteOp, lit,
};
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    CaseWhen, CastKind, Expr as SqlExpr, SetExpr, Statement as SqlStatement, Value,
};
use std::sync::{Arc, LazyLock};

/// Casts that a statement says of values that it stores are not those that storing them takes: they
/// are put where plans tell them apart.
pub fn keep_casts(statement: &mut SqlStatement) {
    match statement {
        SqlStatement::Insert(insert) => {
            // Of other queries the casts lie in plans of their own.
            if let Some(query) = &mut insert.source
                && let SetExpr::Values(values) = query.body.as_mut()
            {
                let all = values.rows.iter_mut().flat_map(|row| &mut row.content);
                all.for_each(keep_cast);
            }
        }
        SqlStatement::Update(update) => {
            let all = update.assignments.iter_mut();
            all.for_each(|set| keep_cast(&mut set.value));
        }
        _ => {}
    }
}

fn keep_cast(value: &mut SqlExpr) {
    let is_cast = |value: &SqlExpr| {
        let mut value = value;
        while let SqlExpr::Nested(inner) = value {
            value = inner;
        }
        let cast = |kind: &CastKind| matches!(kind, CastKind::Cast | CastKind::DoubleColon);
        matches!(value, SqlExpr::Cast { kind, .. } if cast(kind))
    };
    if is_cast(value) {
        let said = std::mem::replace(value, SqlExpr::value(Value::Null));
        *value = SqlExpr::Case {
            case_token: AttachedToken::empty(),
            end_token: AttachedToken::empty(),
            operand: None,
            conditions: vec![CaseWhen {
                condition: SqlExpr::value(Value::Boolean(true)),
                result: said,
            }],
            else_result: None,
        };
    }
}

/// A plan whose changes store values as they are, or end with an error.
///
/// # Errors
/// Constant values that would become others.
pub fn as_they_are(plan: LogicalPlan) -> Result<LogicalPlan> {
    let checked = plan.transform_down(|plan| {
        let LogicalPlan::Dml(change) = plan else {
            return Ok(Transformed::no(plan));
        };
        let stores = match change.op {
            WriteOp::Insert(_) => true,
            // Of other tables DataFusion plans updates, by what stands in them.
            WriteOp::Update => {
                let provider = source_as_provider(&change.target)?;
                provider.downcast_ref::<ArrayTable>().is_some()
            }
            _ => false,
        };
        if !stores {
            return Ok(Transformed::no(LogicalPlan::Dml(change)));
        }
        let rows = Arc::new(rows_of(&change.input)?);
        let change = DmlStatement::new(change.table_name, change.target, change.op, rows);
        let change = LogicalPlan::Dml(change);
        Ok(Transformed::new(change, true, TreeNodeRecursion::Jump))
    });
    Ok(checked?.data)
}

/// The rows of a change, as they are.
fn rows_of(rows: &LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(rows) = rows else {
        return Ok(rows.clone());
    };
    let names = rows.schema.fields().iter();
    let names: Vec<&str> = names.map(|field| field.name().as_str()).collect();
    let input = match rows.input.as_ref() {
        LogicalPlan::Values(values) => {
            // What the columns of values are called is said above.
            let of = |column: Column| {
                let is_it = |expr: &Expr| match expr {
                    Expr::Alias(alias) => matches!(&*alias.expr, Expr::Column(c) if *c == column),
                    expr => matches!(expr, Expr::Column(c) if *c == column),
                };
                let at = rows.expr.iter().position(is_it);
                at.and_then(|at| names.get(at).copied())
                    .unwrap_or("a value")
            };
            let of: Vec<&str> = values.schema.columns().into_iter().map(of).collect();
            let none = DFSchema::empty();
            let row = |row: &Vec<Expr>| {
                let cells = row.iter().cloned().zip(&of);
                let cells = cells.map(|(cell, name)| as_cast(cell, &none, name));
                cells.collect::<Result<Vec<_>>>()
            };
            let checked = values.values.iter().map(row).collect::<Result<Vec<_>>>()?;
            Arc::new(LogicalPlan::Values(Values {
                schema: Arc::clone(&values.schema),
                values: checked,
            }))
        }
        _ => Arc::clone(&rows.input),
    };
    let exprs = rows.expr.iter().cloned().zip(names);
    let exprs = exprs.map(|(expr, name)| as_cast(expr, rows.input.schema(), name));
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    let schema = Arc::clone(&rows.schema);
    let rows = Projection::try_new_with_schema(exprs, input, schema)?;
    Ok(LogicalPlan::Projection(rows))
}

/// An expression whose outermost cast is one that storing it takes.
fn as_cast(expr: Expr, schema: &DFSchema, name: &str) -> Result<Expr> {
    match expr {
        Expr::Alias(Alias {
            expr,
            relation,
            name: alias,
            metadata,
        }) => {
            let expr = as_cast(*expr, schema, name)?;
            let alias = Alias::new(expr, relation, alias).with_metadata(metadata);
            Ok(Expr::Alias(alias))
        }
        Expr::Cast(Cast { expr, field }) => assigned(*expr, field.data_type(), schema, name),
        expr => Ok(expr),
    }
}

/// A value that a statement has for a column of a type: as it is, but for times that are not written there
/// (of other columns, of the clock). Of these a day has no time of day, and a coarser unit has the nearest
/// tick, as PostgreSQL and DuckDB have it.
///
/// # Errors
/// Those of [`as_it_is`].
pub fn assigned(value: Expr, kind: &DataType, schema: &DFSchema, name: &str) -> Result<Expr> {
    use DataType as D;
    if let Ok(own) = value.get_type(schema)
        && !is_written(&value)?
    {
        match (&own, kind) {
            (D::Timestamp(..), D::Date32) => return value.cast_to(kind, schema),
            (D::Timestamp(..), D::Timestamp(..) | D::Time32(_) | D::Time64(_))
            | (D::Time32(_) | D::Time64(_), D::Time32(_) | D::Time64(_))
                if is_coarser(&own, kind) =>
            {
                return call(&NEAREST, value, kind, name);
            }
            _ => {}
        }
    }
    as_it_is(value, kind, schema, name)
}

/// Whether a value stands in the statement, or comes as a parameter.
pub fn is_written(value: &Expr) -> Result<bool> {
    let mut comes = false;
    let mut is_parameter = false;
    value.apply(|part| {
        is_parameter |= matches!(part, Expr::Placeholder(_));
        comes |= match part {
            Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_) => true,
            Expr::ScalarFunction(call) => call.func.signature().volatility != Volatility::Immutable,
            _ => false,
        };
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(is_parameter || !comes)
}

/// A call of one of the functions that plans store values by.
fn call(function: &Arc<ScalarUDF>, value: Expr, kind: &DataType, name: &str) -> Result<Expr> {
    let none = ScalarValue::try_from(kind)?;
    let args = vec![value, lit(none), lit(name)];
    let call = ScalarFunction::new_udf(Arc::clone(function), args);
    Ok(Expr::ScalarFunction(call))
}

/// A value for a column of a type, as it is.
///
/// # Errors
/// Those of casts that there are none of; a constant that would become another value.
pub fn as_it_is(value: Expr, kind: &DataType, schema: &DFSchema, name: &str) -> Result<Expr> {
    if let Expr::Literal(constant, _) = &value {
        // What cannot be cast at all says so where it is.
        if let Ok(stored) = constant.cast_to(kind)
            && may_change(&constant.data_type(), kind)
        {
            check(&constant.to_array()?, &stored.to_array()?, name)?;
        }
        return value.cast_to(kind, schema);
    }
    let open = value.exists(|part| Ok(matches!(part, Expr::Placeholder(_))))?;
    let changes = match value.get_type(schema) {
        // That of a parameter which a query gives is not known yet.
        Ok(own) => own != *kind && (open || own.is_null() || may_change(&own, kind)),
        Err(_) => open,
    };
    match changes {
        true => call(&AS_IT_IS, value, kind, name),
        false => value.cast_to(kind, schema),
    }
}

/// Whether a value of a type may be another one once it has been cast.
fn may_change(from: &DataType, to: &DataType) -> bool {
    use DataType as D;
    match (from, to) {
        (from, to) if from == to => false,
        (D::Dictionary(_, from), to) => may_change(from, to),
        (from, D::Dictionary(_, to)) => may_change(from, to),
        (D::List(from) | D::LargeList(from) | D::FixedSizeList(from, _), to) => match to {
            D::List(to) | D::LargeList(to) | D::FixedSizeList(to, _) => {
                may_change(from.data_type(), to.data_type())
            }
            _ => false,
        },
        (from, to) if from.is_floating() || from.is_decimal() => {
            to.is_numeric() || matches!(to, D::Boolean | D::Timestamp(..) | D::Duration(_))
        }
        (from, D::Boolean) => from.is_integer(),
        (from, to) if is_text(from) => {
            let moment = matches!(to, D::Timestamp(..) | D::Date32);
            to.is_floating() || moment || is_time(to)
        }
        (D::Timestamp(..), D::Timestamp(..))
        | (D::Duration(_), D::Duration(_))
        | (D::Timestamp(..) | D::Time32(_) | D::Time64(_), D::Time32(_) | D::Time64(_)) => {
            is_coarser(from, to)
        }
        (D::Timestamp(..) | D::Date64, D::Date32 | D::Date64)
        | (D::Date64, D::Timestamp(..))
        | (D::Interval(_), D::Duration(_)) => true,
        _ => false,
    }
}

/// The unit of times.
fn unit_of(kind: &DataType) -> Option<TimeUnit> {
    match kind {
        DataType::Timestamp(unit, _)
        | DataType::Duration(unit)
        | DataType::Time32(unit)
        | DataType::Time64(unit) => Some(*unit),
        _ => None,
    }
}

/// Whether ticks of one type are parts of those of another one.
fn is_coarser(from: &DataType, to: &DataType) -> bool {
    let ticks_of = |kind| unit_of(kind).map(ticks);
    ticks_of(from) > ticks_of(to)
}

const SECONDS_A_DAY: i64 = 86_400;

/// Ticks of a second.
fn ticks(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

fn is_text(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// Whether these are times of a day.
fn is_time(kind: &DataType) -> bool {
    matches!(kind, DataType::Time32(_) | DataType::Time64(_))
}

/// A cast in which what there is none of is null.
fn cast_safely(values: &ArrayRef, kind: &DataType) -> Result<ArrayRef> {
    let options = CastOptions {
        safe: true,
        ..CastOptions::default()
    };
    Ok(cast_with_options(values, kind, &options)?)
}

/// That values are what they were before a cast.
fn check(before: &ArrayRef, after: &ArrayRef, name: &str) -> Result<()> {
    use DataType as D;
    if let D::Dictionary(_, kind) = before.data_type() {
        return check(&cast_safely(before, kind)?, after, name);
    }
    if let D::Dictionary(_, kind) = after.data_type() {
        return check(before, &cast_safely(after, kind)?, name);
    }
    if let (Some(was), Some(is)) = (items(before), items(after)) {
        // Behind lists that are null there may be items, of which a cast keeps some or none.
        let has_null = before.null_count() > 0 || after.null_count() > 0;
        return match (has_null, was.len() == is.len()) {
            (false, true) => check(&was, &is, name),
            (false, false) => Ok(()),
            (true, _) => (0..before.len())
                .filter(|&row| before.is_valid(row) && after.is_valid(row))
                .try_for_each(|row| check(&before.slice(row, 1), &after.slice(row, 1), name)),
        };
    }
    let Some(changed) = changed(before, after)? else {
        return Ok(());
    };
    Err(DataFusionError::Plan(format!(
        "{name}: {} would become {}; CAST (or round, date_trunc) says that it is to be cut",
        array_value_to_string(before, changed)?,
        array_value_to_string(after, changed)?,
    )))
}

/// The items of lists, without those of other rows that they are a part of.
fn items(lists: &ArrayRef) -> Option<ArrayRef> {
    match lists.data_type() {
        DataType::List(_) => Some(items_of(lists.as_list::<i32>())),
        DataType::LargeList(_) => Some(items_of(lists.as_list::<i64>())),
        DataType::FixedSizeList(..) => Some(Arc::clone(lists.as_fixed_size_list().values())),
        _ => None,
    }
}

fn items_of<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> ArrayRef {
    let offsets = lists.value_offsets();
    let first = offsets.first().map_or(0, |offset| offset.as_usize());
    let end = offsets.last().map_or(0, |offset| offset.as_usize());
    lists.values().slice(first, end - first)
}

/// The first row in which a value is another one.
fn changed(before: &ArrayRef, after: &ArrayRef) -> Result<Option<usize>> {
    use DataType as D;
    let (from, to) = (before.data_type(), after.data_type());
    if !may_change(from, to) {
        return Ok(None);
    }
    if to.is_floating() {
        // Of text that reads as infinite what it says is looked at: it may say just that.
        let says_infinite = |row: usize| {
            is_text(from)
                && array_value_to_string(before, row)
                    .is_ok_and(|text| text.to_ascii_lowercase().contains("inf"))
        };
        let was = cast_safely(before, &D::Float64)?;
        let is = cast_safely(after, &D::Float64)?;
        let (was, is) = (
            was.as_primitive::<Float64Type>(),
            is.as_primitive::<Float64Type>(),
        );
        let lost = |&row: &usize| {
            let beyond = was.is_valid(row) && is.is_valid(row) && is.value(row).is_infinite();
            beyond && (was.value(row).is_finite() || is_text(from) && !says_infinite(row))
        };
        return Ok((0..was.len()).find(lost));
    }
    if is_text(from) {
        // Years that nanoseconds do not reach have microseconds.
        for unit in [TimeUnit::Nanosecond, TimeUnit::Microsecond] {
            let zone = match to {
                D::Timestamp(_, zone) => zone.clone(),
                _ => None,
            };
            let fine = match is_time(to) {
                true => D::Time64(unit),
                false => D::Timestamp(unit, zone),
            };
            let (was, is) = (cast_safely(before, &fine)?, cast_safely(after, &fine)?);
            let differ = distinct(&was, &is)?;
            // A number alone is one of the column's ticks.
            let is_ticks = |row: usize| {
                is_time(to)
                    && array_value_to_string(before, row).is_ok_and(|text| !text.contains(':'))
            };
            let known = |row: &usize| was.is_valid(*row) && is.is_valid(*row) && !is_ticks(*row);
            let row = (0..differ.len()).find(|row| differ.value(*row) && known(row));
            if row.is_some() {
                return Ok(row);
            }
        }
        return Ok(None);
    }
    if from.is_floating() {
        let again = cast_safely(after, from)?;
        // -0.0 is 0.
        let was = cast_safely(before, &D::Float64)?;
        let is = cast_safely(&again, &D::Float64)?;
        let mut pairs = was.as_primitive::<Float64Type>().iter();
        let is = is.as_primitive::<Float64Type>();
        let mut others = is.iter();
        return Ok(pairs.position(|was| was != others.next().flatten()));
    }
    if matches!(from, D::Timestamp(..)) && is_time(to) {
        return changed(&time_of_day(before)?, after);
    }
    if let (D::Timestamp(unit, Some(_)), D::Timestamp(..)) = (from, to) {
        // A cast to another zone leaves the instant, one from none to a zone does not.
        let instant = D::Timestamp(*unit, None);
        let (was, is) = (
            cast_safely(before, &instant)?,
            cast_safely(after, &instant)?,
        );
        let differ = distinct(&was, &is)?;
        return Ok((0..differ.len()).find(|row| differ.value(*row)));
    }
    let again = cast_safely(after, from)?;
    let differ = distinct(before, &again)?;
    Ok((0..differ.len()).find(|row| differ.value(*row)))
}

/// The times of day of moments, in the unit of these; of other times these.
fn time_of_day(times: &ArrayRef) -> Result<ArrayRef> {
    match times.data_type() {
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second | TimeUnit::Millisecond => {
                cast_safely(times, &DataType::Time32(*unit))
            }
            TimeUnit::Microsecond | TimeUnit::Nanosecond => {
                cast_safely(times, &DataType::Time64(*unit))
            }
        },
        _ => Ok(Arc::clone(times)),
    }
}

/// Times of a unit as the nearest ticks of a coarser one, in their own: of two the one that is farther from
/// 1970, and of a day the last one at most.
fn nearest(times: &ArrayRef, kind: &DataType) -> Result<ArrayRef> {
    use DataType as D;
    let times = match is_time(kind) {
        true => time_of_day(times)?,
        false => Arc::clone(times),
    };
    let own = times.data_type().clone();
    let (Some(from), Some(to)) = (unit_of(&own).map(ticks), unit_of(kind).map(ticks)) else {
        return Ok(times);
    };
    let last = match is_time(&own) {
        true => SECONDS_A_DAY * to - 1,
        false => i64::MAX,
    };
    let tick = from / to;
    if tick < 2 {
        return Ok(times);
    }
    // Of times of a day there are numbers of their own width alone.
    let number = match own {
        D::Time32(_) => D::Int32,
        _ => D::Int64,
    };
    let numbers = cast_safely(&cast_safely(&times, &number)?, &D::Int64)?;
    let numbers = numbers.as_primitive::<Int64Type>();
    let numbers = numbers.unary::<_, Int64Type>(|number| {
        let (whole, rest) = (number / tick, number % tick);
        let on = match rest.abs() >= tick - rest.abs() {
            true => rest.signum(),
            false => 0,
        };
        (whole + on).min(last).saturating_mul(tick)
    });
    let numbers = cast_safely(&(Arc::new(numbers) as ArrayRef), &number)?;
    cast_safely(&numbers, &own)
}

/// What plans call.
static AS_IT_IS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(Storing::udf(false)));

/// What they call for times that are not written in statements.
static NEAREST: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(Storing::udf(true)));

/// The functions that cast a value, their first argument, to the type of the second: if it stays what it
/// is, or to the nearest tick of a time; the third is what it is for.
pub fn functions() -> [ScalarUDF; 2] {
    [false, true].map(Storing::udf)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Storing {
    signature: Signature,
    /// Whether times become the nearest ones.
    nearest: bool,
}

impl Storing {
    fn udf(nearest: bool) -> ScalarUDF {
        ScalarUDF::from(Self {
            signature: Signature::any(3, Volatility::Immutable),
            nearest,
        })
    }
}

impl ScalarUDFImpl for Storing {
    fn name(&self) -> &str {
        match self.nearest {
            true => "stored_as_the_nearest",
            false => "stored_as_it_is",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [_, kind, _] => Ok(kind.clone()),
            _ => Err(DataFusionError::Plan(format!(
                "{} takes a value, one of the type that it is to have, and a name",
                self.name()
            ))),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let kind = args.return_field.data_type();
        let mut given = args.args.into_iter();
        let value = given
            .next()
            .ok_or_else(|| DataFusionError::Internal("a function without its argument".into()))?;
        let name = match given.nth(1) {
            Some(ColumnarValue::Scalar(name)) => name.try_as_str().flatten().map(str::to_owned),
            _ => None,
        };
        // Of one value one is looked at.
        let before = value.to_array(if is_one(&value) { 1 } else { args.number_rows })?;
        if self.nearest {
            let times = nearest(&before, kind)?;
            return match is_one(&value) {
                true => ColumnarValue::Scalar(ScalarValue::try_from_array(&times, 0)?),
                false => ColumnarValue::Array(times),
            }
            .cast_to(kind, None);
        }
        let stored = value.cast_to(kind, None)?;
        let after = stored.to_array(if is_one(&stored) { 1 } else { args.number_rows })?;
        check(&before, &after, name.as_deref().unwrap_or("a value"))?;
        Ok(stored)
    }
}

fn is_one(value: &ColumnarValue) -> bool {
    matches!(value, ColumnarValue::Scalar(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_to_the_nearest_tick() {
        let seconds = DataType::Timestamp(TimeUnit::Second, None);
        let clock = DataType::Time32(TimeUnit::Second);
        let of_nanos = |ticks| ScalarValue::TimestampNanosecond(ticks, None);
        let of_seconds = |ticks| ScalarValue::TimestampSecond(ticks, None);
        for (value, kind, expected) in [
            (of_nanos(Some(1_499_999_999)), &seconds, of_seconds(Some(1))),
            (of_nanos(Some(1_500_000_000)), &seconds, of_seconds(Some(2))),
            (of_nanos(Some(-499_999_999)), &seconds, of_seconds(Some(0))),
            (of_nanos(Some(-500_000_000)), &seconds, of_seconds(Some(-1))),
            (
                of_nanos(Some(-1_499_999_999)),
                &seconds,
                of_seconds(Some(-1)),
            ),
            (
                of_nanos(Some(i64::MIN)),
                &seconds,
                of_seconds(Some(i64::MIN / 1_000_000_000)),
            ),
            (
                of_nanos(Some(i64::MAX)),
                &seconds,
                of_seconds(Some(i64::MAX / 1_000_000_000)),
            ),
            (of_nanos(None), &seconds, of_seconds(None)),
            (
                ScalarValue::TimestampMillisecond(Some(86_401_500), None),
                &clock,
                ScalarValue::Time32Second(Some(2)),
            ),
            (
                ScalarValue::Time64Nanosecond(Some(86_399_600_000_000)),
                &clock,
                ScalarValue::Time32Second(Some(86_399)),
            ),
        ] {
            let times = nearest(&value.to_array().expect("a time"), kind).expect("its tick");
            let found = cast_safely(&times, kind).expect("a time of the other type");
            let found = ScalarValue::try_from_array(&found, 0).expect("one");
            assert_eq!(found, expected, "{value:?}");
        }
    }

    #[test]
    fn what_becomes_another_value_is_told() {
        use DataType as D;
        let seconds = || D::Timestamp(TimeUnit::Second, None);
        let told = |value: ScalarValue, kind: &DataType| {
            let before = value.to_array().expect("a value");
            let after = value.cast_to(kind).and_then(|after| after.to_array());
            let after = after.expect("one of the other type");
            check(&before, &after, "c").is_err()
        };
        for (value, kind, expected) in [
            (ScalarValue::from(1.7), D::Int32, true),
            (ScalarValue::from(2.0), D::Int32, false),
            (ScalarValue::from(-0.0), D::Int32, false),
            (ScalarValue::Float64(None), D::Int32, false),
            (ScalarValue::Decimal128(Some(17), 3, 1), D::Int64, true),
            (ScalarValue::Decimal128(Some(20), 3, 1), D::Int64, false),
            (ScalarValue::from(0.1), D::Float32, false),
            (ScalarValue::from(1e300), D::Float32, true),
            (ScalarValue::from(f64::INFINITY), D::Float32, false),
            (ScalarValue::from(f64::NAN), D::Float32, false),
            (ScalarValue::from("1e300"), D::Float32, true),
            (ScalarValue::from("inf"), D::Float32, false),
            (ScalarValue::from(5_i64), D::Boolean, true),
            (ScalarValue::from(1_i64), D::Boolean, false),
            (ScalarValue::from("2024-05-01 12:00:00.5"), seconds(), true),
            (ScalarValue::from("2024-05-01 12:00:00"), seconds(), false),
            (ScalarValue::from("9999-05-01 12:00:00.5"), seconds(), true),
            (ScalarValue::from("9999-05-01 12:00:00"), seconds(), false),
            (ScalarValue::from("2024-05-01 12:00:00"), D::Date32, true),
            (ScalarValue::from("2024-05-01"), D::Date32, false),
            (
                ScalarValue::TimestampMillisecond(Some(1_500), None),
                seconds(),
                true,
            ),
            (
                ScalarValue::TimestampMillisecond(Some(-2_000), None),
                seconds(),
                false,
            ),
            (
                ScalarValue::TimestampNanosecond(Some(2_000_000_000), Some("+02:00".into())),
                seconds(),
                false,
            ),
            (
                ScalarValue::TimestampNanosecond(Some(2_000_000_001), Some("+02:00".into())),
                seconds(),
                true,
            ),
            (
                ScalarValue::from("45000"),
                D::Time32(TimeUnit::Second),
                false,
            ),
            (
                ScalarValue::TimestampMillisecond(Some(86_401_500), None),
                D::Time32(TimeUnit::Second),
                true,
            ),
            (
                ScalarValue::TimestampMillisecond(Some(86_401_000), None),
                D::Time32(TimeUnit::Second),
                false,
            ),
            (ScalarValue::from(1.7), seconds(), true),
            (ScalarValue::from(2.0), seconds(), false),
            (
                ScalarValue::from("12:00:00.5"),
                D::Time32(TimeUnit::Second),
                true,
            ),
            (
                ScalarValue::from("12:00:00"),
                D::Time32(TimeUnit::Second),
                false,
            ),
            (
                ScalarValue::TimestampSecond(Some(86_401), None),
                D::Date32,
                true,
            ),
            (
                ScalarValue::DurationNanosecond(Some(1)),
                D::Duration(TimeUnit::Second),
                true,
            ),
        ] {
            assert_eq!(told(value.clone(), &kind), expected, "{value:?} as {kind}");
        }
    }
}
