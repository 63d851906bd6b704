//! From the engine's aggregates to SQL's answers.

use super::Wanted;
use crate::scan::ArrayScan;
use crate::selection::Selection;
use azulejo::condition::{Comparison, Condition};
use azulejo::format::Physical;
use azulejo::read::aggregate::{Aggregate, AggregateValue};
use azulejo::{Array, ReadOptions, Subarray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;

/// What answers may take.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Bytes that a read may hold.
    pub read: u64,
    /// Bytes of the cells that are looked at together.
    pub batch: u64,
}

/// The answers; `None` where SQL's may be others.
pub fn row(
    scan: &ArrayScan,
    wanted: &[Wanted],
    memory: Memory,
) -> azulejo::Result<Option<Vec<ScalarValue>>> {
    let Selection::Cells { subarray, .. } = scan.selection() else {
        return Ok(Some(wanted.iter().map(|w| nothing(w, scan)).collect()));
    };
    let array = scan.array();
    let dense = array.schema().is_dense();
    // The engine counts with 64 bits what there is room for between cells that were written.
    let cells = subarray.cell_num(array.schema());
    if dense && cells.is_none_or(|cells| u64::try_from(cells).is_err()) {
        return Ok(None);
    }
    // 1. What to ask the engine for. Sums tell whether there is NaN; null counts, whether there is
    //    anything.
    let mut asked: Vec<Aggregate> = Vec::new();
    let mut ask = |aggregate: Aggregate| {
        if !asked.contains(&aggregate) {
            asked.push(aggregate);
        }
    };
    for want in wanted {
        let Some(field) = want.field().map(str::to_owned) else {
            continue;
        };
        ask(Aggregate::NullCount(field.clone()));
        match want {
            Wanted::Rows | Wanted::Values(_) => {}
            Wanted::Sum(_) => ask(Aggregate::Sum(field)),
            Wanted::Least(_, real) | Wanted::Greatest(_, real) => {
                if *real {
                    ask(Aggregate::Sum(field.clone()));
                }
                ask(match want {
                    Wanted::Least(..) => Aggregate::Min(field),
                    _ => Aggregate::Max(field),
                });
            }
        }
    }
    let options = options_of(scan, subarray, memory);
    let mut rows = None;
    if !dense {
        asked.push(Aggregate::Count);
    } else {
        rows = Some(dense_rows(scan, memory)?);
    }
    let values = match asked.is_empty() {
        true => Vec::new(),
        false => array.aggregate(options, &asked)?,
    };
    let found = |aggregate: &Aggregate| {
        let at = asked.iter().position(|asked| asked == aggregate)?;
        values.get(at)
    };
    let count = |value: Option<&AggregateValue>| match value {
        Some(AggregateValue::Unsigned(count)) => Some(*count),
        _ => None,
    };
    let Some(rows) = rows.or_else(|| count(found(&Aggregate::Count))) else {
        return Ok(None);
    };

    // 2. The answers as SQL has them.
    let mut row = Vec::with_capacity(wanted.len());
    for want in wanted {
        let Some(field) = want.field() else {
            row.push(ScalarValue::Int64(i64::try_from(rows).ok()));
            continue;
        };
        let Some(nulls) = count(found(&Aggregate::NullCount(field.to_owned()))) else {
            return Ok(None);
        };
        let values = rows.saturating_sub(nulls);
        let answer = match want {
            _ if values == 0 => Some(nothing(want, scan)),
            Wanted::Rows | Wanted::Values(_) => {
                Some(ScalarValue::Int64(i64::try_from(values).ok()))
            }
            Wanted::Sum(_) => sum(found(&Aggregate::Sum(field.to_owned()))),
            Wanted::Least(_, real) | Wanted::Greatest(_, real) => {
                let finite =
                    !real || found(&Aggregate::Sum(field.to_owned())).is_some_and(is_finite);
                let bound = match want {
                    Wanted::Least(..) => Aggregate::Min(field.to_owned()),
                    _ => Aggregate::Max(field.to_owned()),
                };
                finite
                    .then(|| found(&bound).and_then(|value| scalar(value, want, scan)))
                    .flatten()
            }
        };
        match answer {
            Some(answer) => row.push(answer),
            None => return Ok(None),
        }
    }
    Ok(Some(row))
}

/// What the engine is asked for.
fn options_of(scan: &ArrayScan, subarray: &Subarray, memory: Memory) -> ReadOptions {
    scan.read_options(subarray.clone())
        .memory_budget(memory.read)
        .batch_bytes(memory.batch)
}

/// The number of cells of a dense array that were written, are selected and meet the condition.
fn dense_rows(scan: &ArrayScan, memory: Memory) -> azulejo::Result<u64> {
    let (array, Selection::Cells { subarray, .. }) = (scan.array(), scan.selection()) else {
        return Ok(0);
    };
    if scan.condition().is_none()
        && let Some(rows) = one_box(array, subarray)
    {
        return Ok(rows);
    }
    // Cells that nobody wrote meet no condition, not even one that says nothing.
    let mut options = options_of(scan, subarray, memory);
    if options.condition.is_none() {
        let dimension = array.schema().domain.dimensions.first();
        let name = dimension.map_or("", |dimension| dimension.name.as_str());
        options.condition = Some(Condition::compare(name, Comparison::AlwaysTrue, Vec::new()));
    }
    match array.aggregate(options, &[Aggregate::Count])?.first() {
        Some(AggregateValue::Unsigned(rows)) => Ok(*rows),
        _ => Err(azulejo::Error::Internal("a count that is no number".into())),
    }
}

/// The selected cells of an array whose cells were all written in one box.
fn one_box(array: &Array, subarray: &Subarray) -> Option<u64> {
    let [fragment] = array.fragments() else {
        return None;
    };
    let written = fragment.footer().non_empty_domain.as_ref()?;
    let Subarray::Box(selections) = subarray else {
        return None;
    };
    if !fragment.is_dense() {
        return None;
    }
    let dimensions = array.schema().domain.dimensions.iter().enumerate();
    let mut cells = 1u64;
    for (d, dimension) in dimensions {
        let axis = dimension.axis()?;
        let (first, last) = axis.offsets_of(written.ranges.get(d)?)?;
        let current = array
            .schema()
            .current_domain
            .ranges()
            .and_then(|ranges| ranges.get(d));
        let (first, last) = match current.map(|range| axis.offsets_of(range)) {
            Some(within) => {
                let within = within?;
                (first.max(within.0), last.min(within.1))
            }
            None => (first, last),
        };
        let count = |from: u64, to: u64| {
            let (from, to) = (from.max(first), to.min(last));
            if from <= to { to - from + 1 } else { 0 }
        };
        let along = match selections.get(d) {
            None | Some(azulejo::space::DimSelection::All) => count(first, last),
            Some(azulejo::space::DimSelection::Ranges(ranges)) => {
                let spans = ranges.iter().filter_map(|range| axis.offsets_of(range));
                spans.map(|(from, to)| count(from, to)).sum()
            }
            Some(azulejo::space::DimSelection::Strided { .. }) => return None,
        };
        cells = cells.checked_mul(along)?;
    }
    Some(cells)
}

/// The answer over no values.
fn nothing(want: &Wanted, scan: &ArrayScan) -> ScalarValue {
    match want {
        Wanted::Rows | Wanted::Values(_) => ScalarValue::Int64(Some(0)),
        Wanted::Sum(field) | Wanted::Least(field, _) | Wanted::Greatest(field, _) => {
            let index = scan.columns().index_of(field);
            let data_type = index.and_then(|index| scan.columns().data_type(index));
            let data_type = data_type.unwrap_or(&DataType::Null);
            ScalarValue::try_from(data_type).unwrap_or(ScalarValue::Null)
        }
    }
}

/// A sum that has not reached the end of its type: there ours stays, and SQL's wraps around.
fn sum(value: Option<&AggregateValue>) -> Option<ScalarValue> {
    match value? {
        AggregateValue::Signed(sum) if *sum != i64::MIN && *sum != i64::MAX => {
            Some(ScalarValue::Int64(Some(*sum)))
        }
        AggregateValue::Unsigned(sum) if *sum != u64::MAX => Some(ScalarValue::UInt64(Some(*sum))),
        AggregateValue::Real(sum) => Some(ScalarValue::Float64(Some(*sum))),
        _ => None,
    }
}

/// A finite sum has no NaN in it, which the engine takes for neither least nor greatest.
fn is_finite(sum: &AggregateValue) -> bool {
    matches!(sum, AggregateValue::Real(sum) if sum.is_finite())
}

/// The least or greatest value as Arrow shows it.
fn scalar(value: &AggregateValue, want: &Wanted, scan: &ArrayScan) -> Option<ScalarValue> {
    let AggregateValue::Cell { datatype, bytes } = value else {
        return None;
    };
    let index = scan.columns().index_of(want.field()?)?;
    let data_type = scan.columns().data_type(index)?;
    if *data_type == DataType::Utf8View {
        return Some(ScalarValue::Utf8View(Some(
            String::from_utf8(bytes.clone()).ok()?,
        )));
    }
    Some(match (datatype.physical(), data_type) {
        (Physical::I64, DataType::Int64) | (_, DataType::Timestamp(..) | DataType::Duration(_)) => {
            let ticks = ScalarValue::Int64(Some(i64::from_le_bytes(*bytes.first_chunk()?)));
            ticks.cast_to(data_type).ok()?
        }
        (Physical::I8, _) => ScalarValue::Int8(Some(i8::from_le_bytes(*bytes.first_chunk()?))),
        (Physical::I16, _) => ScalarValue::Int16(Some(i16::from_le_bytes(*bytes.first_chunk()?))),
        (Physical::I32, _) => ScalarValue::Int32(Some(i32::from_le_bytes(*bytes.first_chunk()?))),
        (Physical::U8, _) => ScalarValue::UInt8(Some(*bytes.first()?)),
        (Physical::U16, _) => ScalarValue::UInt16(Some(u16::from_le_bytes(*bytes.first_chunk()?))),
        (Physical::U32, _) => ScalarValue::UInt32(Some(u32::from_le_bytes(*bytes.first_chunk()?))),
        (Physical::U64, _) => ScalarValue::UInt64(Some(u64::from_le_bytes(*bytes.first_chunk()?))),
        (Physical::F32, _) => ScalarValue::Float32(Some(f32::from_le_bytes(*bytes.first_chunk()?))),
        (Physical::F64, _) => ScalarValue::Float64(Some(f64::from_le_bytes(*bytes.first_chunk()?))),
        (Physical::I64, _) => return None,
    })
}
