//! What plans may know of an array before it is read.
//!
//! Numbers are exact only where nothing can make them wrong: no filter, no limit, no deletes, no
//! fragments that show only some of their cells, no duplicates that are dropped. Everything else is
//! an estimate; exact aggregates are another matter (`aggregate`).

use crate::columns::{Place, TableColumn, TableColumns};
use crate::scan::ArrayScan;
use crate::selection::Selection;
use azulejo::Array;
use azulejo::array::Fragment;
use azulejo::format::Range;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};

/// The number of cells in all fragments, each counted wherever it is stored.
pub fn stored_cells(array: &Array) -> u64 {
    let cells = array.fragments().iter().map(Fragment::cell_num);
    cells.fold(0, u64::saturating_add)
}

/// The number of rows of an array's table.
fn rows(array: &Array, unwritten: bool) -> Precision<usize> {
    let schema = array.schema();
    if schema.is_dense() {
        let written = array.non_empty_domain().ok().flatten();
        let ranges = written.map(|domain| domain.ranges).unwrap_or_default();
        let subarray = match unwritten {
            true => azulejo::Subarray::all(),
            false if ranges.is_empty() => return Precision::Exact(0),
            false => azulejo::Subarray::ranges(ranges),
        };
        let cells = subarray
            .cell_num(schema)
            .and_then(|cells| usize::try_from(cells).ok());
        return cells.map_or(Precision::Absent, Precision::Inexact);
    }
    let Ok(cells) = usize::try_from(stored_cells(array)) else {
        return Precision::Absent;
    };
    let counts_all = schema.allows_dups
        && array.deletes().is_empty()
        && schema.current_domain.ranges().is_none()
        && array.fragments().iter().all(|fragment| {
            !fragment.is_dense() && !fragment.has_timestamps() && !fragment.has_delete_metadata()
        });
    match counts_all {
        true => Precision::Exact(cells),
        false => Precision::Inexact(cells),
    }
}

/// What is known of a table.
pub fn of_array(array: &Array, columns: &TableColumns, unwritten: bool) -> Statistics {
    let num_rows = rows(array, unwritten);
    let domain = array.non_empty_domain().ok().flatten();
    let of_column = |(index, column): (usize, &TableColumn)| {
        let mut known = ColumnStatistics::new_unknown();
        if let (Place::Dimension(d), Some(domain)) = (column.place, &domain)
            && let (Some(range), Some(data_type)) = (domain.ranges.get(d), columns.data_type(index))
        {
            known.null_count = Precision::Inexact(0);
            if let Some((least, greatest)) = bounds(range, data_type) {
                known.min_value = Precision::Inexact(least);
                known.max_value = Precision::Inexact(greatest);
            }
        }
        known
    };
    let column_statistics = columns.all().iter().enumerate().map(of_column).collect();
    let mut statistics = Statistics {
        num_rows,
        total_byte_size: Precision::Absent,
        column_statistics,
    };
    statistics.calculate_total_byte_size(columns.schema());
    statistics
}

/// What is known of the rows that a scan brings.
pub fn of_scan(scan: &ArrayScan, partition: Option<usize>) -> Statistics {
    let all = of_array(scan.array(), scan.columns(), scan.unwritten());
    let mut known = all.project(Some(&scan.projection().to_vec()));
    let whole = match scan.selection() {
        Selection::Nothing => {
            known.num_rows = Precision::Exact(0);
            return known.to_inexact();
        }
        Selection::Cells {
            subarray: azulejo::Subarray::Box(selections),
            condition: None,
        } => {
            let all = |selection: &azulejo::space::DimSelection| {
                matches!(selection, azulejo::space::DimSelection::All)
            };
            selections.iter().all(all)
        }
        Selection::Cells { .. } => false,
    };
    if !whole || partition.is_some() || scan.is_narrowed() {
        known = known.to_inexact();
    }
    if partition.is_some()
        && let Some(rows) = known.num_rows.get_value()
    {
        known.num_rows = Precision::Inexact(rows / scan.partitions());
    }
    known
}

/// The least and the greatest coordinate as Arrow shows them; none where these are other numbers.
fn bounds(range: &Range, data_type: &DataType) -> Option<(ScalarValue, ScalarValue)> {
    let scalar = |bytes: &[u8]| {
        Some(match data_type {
            DataType::Int8 => ScalarValue::Int8(Some(i8::from_le_bytes(*bytes.first_chunk()?))),
            DataType::Int16 => ScalarValue::Int16(Some(i16::from_le_bytes(*bytes.first_chunk()?))),
            DataType::Int32 => ScalarValue::Int32(Some(i32::from_le_bytes(*bytes.first_chunk()?))),
            DataType::Int64 => ScalarValue::Int64(Some(i64::from_le_bytes(*bytes.first_chunk()?))),
            DataType::UInt8 => ScalarValue::UInt8(Some(*bytes.first()?)),
            DataType::UInt16 => {
                ScalarValue::UInt16(Some(u16::from_le_bytes(*bytes.first_chunk()?)))
            }
            DataType::UInt32 => {
                ScalarValue::UInt32(Some(u32::from_le_bytes(*bytes.first_chunk()?)))
            }
            DataType::UInt64 => {
                ScalarValue::UInt64(Some(u64::from_le_bytes(*bytes.first_chunk()?)))
            }
            DataType::Utf8View => {
                ScalarValue::Utf8View(Some(str::from_utf8(bytes).ok()?.to_owned()))
            }
            _ => return None,
        })
    };
    Some((scalar(&range.start)?, scalar(&range.end)?))
}
