//! What there is to know about an array, as tables: its fragments, their tiles, its history.

use crate::error::{Result, external};
use azulejo::Array;
use azulejo::array::Fragment;
use azulejo::format::Range;
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, RecordBatch, StringArray, TimestampMillisecondArray, UInt64Array,
};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::datasource::MemTable;
use std::sync::Arc;

/// One row a fragment: `fragment`, `first`, `last` (when it was written), `dense`, `tiles`, `cells`,
/// `version`, `non_empty_domain`.
pub fn fragments(array: &Array) -> Result<Arc<dyn TableProvider>> {
    let of = array.fragments();
    let text = |get: &dyn Fn(&Fragment) -> String| -> ArrayRef {
        Arc::new(of.iter().map(|f| Some(get(f))).collect::<StringArray>())
    };
    let number = |get: &dyn Fn(&Fragment) -> u64| -> ArrayRef {
        Arc::new(of.iter().map(|f| Some(get(f))).collect::<UInt64Array>())
    };
    let domain = |fragment: &Fragment| {
        let domain = fragment.footer().non_empty_domain.as_ref();
        domain.map_or_else(String::new, |domain| shown(array, &domain.ranges))
    };
    table(vec![
        ("fragment", text(&|f| f.name().to_owned())),
        ("first", time(of.iter().map(|f| f.time_range().start))),
        ("last", time(of.iter().map(|f| f.time_range().end))),
        (
            "dense",
            Arc::new(
                of.iter()
                    .map(|f| Some(f.is_dense()))
                    .collect::<BooleanArray>(),
            ),
        ),
        ("tiles", number(&Fragment::tile_num)),
        ("cells", number(&Fragment::cell_num)),
        ("version", number(&|f| f.version().number().into())),
        ("non_empty_domain", text(&domain)),
    ])
}

/// One row a tile: `fragment`, `tile`, `cells`, and of sparse fragments `bounds`.
pub fn tiles(array: &Array) -> Result<Arc<dyn TableProvider>> {
    let (mut names, mut numbers, mut cells, mut bounds) = (vec![], vec![], vec![], vec![]);
    for fragment in array.fragments() {
        let tree = match fragment.is_dense() {
            true => None,
            false => Some(fragment.rtree().map_err(external)?),
        };
        for tile in 0..fragment.tile_num() {
            names.push(fragment.name().to_owned());
            numbers.push(tile);
            cells.push(fragment.tile_cell_num(tile));
            let bound = usize::try_from(tile).ok().and_then(|tile| tree?.mbr(tile));
            bounds.push(bound.map(|bound| shown(array, &bound.ranges)));
        }
    }
    table(vec![
        ("fragment", Arc::new(StringArray::from(names))),
        ("tile", Arc::new(UInt64Array::from(numbers))),
        ("cells", Arc::new(UInt64Array::from(cells))),
        ("bounds", Arc::new(StringArray::from(bounds))),
    ])
}

/// One row a change, oldest first: `at`, `change` (`write` or `delete`), `name`.
pub fn history(array: &Array) -> Result<Arc<dyn TableProvider>> {
    let writes = array.fragments().iter();
    let writes = writes.map(|f| (f.time_range().end, "write", f.name().to_owned()));
    let deletes = array
        .deletes()
        .iter()
        .map(|d| (d.timestamp, "delete", d.name.clone()));
    let mut changes: Vec<_> = writes.chain(deletes).collect();
    changes.sort();
    let text = |get: &dyn Fn(&(u64, &'static str, String)) -> String| -> ArrayRef {
        Arc::new(
            changes
                .iter()
                .map(|c| Some(get(c)))
                .collect::<StringArray>(),
        )
    };
    table(vec![
        ("at", time(changes.iter().map(|change| change.0))),
        ("change", text(&|change| change.1.to_owned())),
        ("name", text(&|change| change.2.clone())),
    ])
}

fn time(milliseconds: impl Iterator<Item = u64>) -> ArrayRef {
    let times = milliseconds.map(|time| i64::try_from(time).ok());
    Arc::new(times.collect::<TimestampMillisecondArray>())
}

fn table(columns: Vec<(&str, ArrayRef)>) -> Result<Arc<dyn TableProvider>> {
    let field =
        |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
}

/// Ranges as text, such as `x in 1..=5, y in 0..=9`.
fn shown(array: &Array, ranges: &[Range]) -> String {
    let subarray = azulejo::Subarray::ranges(ranges.iter().cloned());
    crate::selection::show(&subarray, array.schema())
}
