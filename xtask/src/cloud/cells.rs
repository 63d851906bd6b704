//! The arrays of these tests, and what their cells hold: every cell's values follow from its
//! coordinate.

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::{ArraySchema, Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::space::DimSelection;
use azulejo::write::WriteOptions;
use azulejo::{Array, Context, Result, Subarray};
use std::collections::BTreeMap;

/// Last coordinate of the arrays with all fields.
pub const LAST: i64 = 999;
/// Last coordinate of arrays of many fragments, and cells of each of them.
pub const MANY_LAST: i64 = 3_999_999;
/// Cells of each fragment there.
pub const MANY_CELLS: i64 = 100;

/// By coordinate: attribute `a`, attribute `s`.
pub type Cells = BTreeMap<i64, (i32, String)>;

/// The number of a cell.
pub fn number(x: i64) -> i32 {
    i32::try_from(x * 31 % 101).unwrap_or(0)
}

/// The text of a cell, of any length from 1 on.
pub fn text(x: i64) -> String {
    format!("{}{x}", "é".repeat(usize::try_from(x % 5).unwrap_or(0)))
}

/// What the cells at these coordinates hold.
pub fn expected(coordinates: impl IntoIterator<Item = i64>) -> Cells {
    coordinates
        .into_iter()
        .map(|x| (x, (number(x), text(x))))
        .collect()
}

/// Creates an array with the dimension `x` and the attributes `a` and `s`.
pub fn create(context: &Context, uri: &str, dense: bool) -> Result<()> {
    let schema = if dense {
        ArraySchema::dense()
    } else {
        ArraySchema::sparse()
    };
    let schema = schema
        .dimension("x", 0..=LAST, 10)
        .attribute("a", Datatype::Int32);
    context.array(uri).create(
        schema
            .var_attribute("s", Datatype::StringUtf8)
            .build()
            .map_err(refused)?,
    )
}

/// Creates a dense array with the attribute `a` alone, for many fragments.
pub fn create_many(context: &Context, uri: &str) -> Result<()> {
    let schema = ArraySchema::dense().dimension("x", 0..=MANY_LAST, MANY_CELLS);
    context.array(uri).create(
        schema
            .attribute("a", Datatype::Int32)
            .build()
            .map_err(refused)?,
    )
}

fn refused(error: impl std::fmt::Display) -> azulejo::Error {
    azulejo::Error::Internal(error.to_string())
}

fn box_of(first: i64, last: i64) -> Range {
    Range::new(first.to_le_bytes().to_vec(), last.to_le_bytes().to_vec())
}

/// Writes the cells at these coordinates, which follow each other in a dense array, as one
/// fragment.
pub fn write(context: &Context, uri: &str, coordinates: &[i64]) -> Result<()> {
    let schema = context.array(uri).open()?.schema().clone();
    write_known(
        context,
        uri,
        coordinates,
        schema.is_dense(),
        schema.attributes.len() > 1,
    )
}

/// As [`write()`], for an array that is known: nothing is read but what writing reads.
pub fn write_known(
    context: &Context,
    uri: &str,
    coordinates: &[i64],
    dense: bool,
    has_text: bool,
) -> Result<()> {
    let mut options = WriteOptions::new();
    let mut columns = Vec::new();
    match (dense, coordinates.first(), coordinates.last()) {
        (true, Some(first), Some(last)) => {
            options = options.subarray(NdRectangle {
                ranges: vec![box_of(*first, *last)],
            });
        }
        _ => columns.push(ColumnBuffers::of_values("x", coordinates.to_vec())),
    }
    columns.push(ColumnBuffers::of_values(
        "a",
        coordinates.iter().map(|x| number(*x)).collect(),
    ));
    if has_text {
        columns.push(ColumnBuffers::of_strings(
            "s",
            coordinates.iter().map(|x| text(*x)),
        ));
    }
    let mut writer = context.array(uri).writer(options)?;
    writer.write(&ColumnSet::of(columns)?)?;
    writer.finish()?;
    Ok(())
}

/// Reads the cells of an array with all fields: those of a dense one from `first` to `last`.
pub fn read(context: &Context, uri: &str, first: i64, last: i64) -> Result<Cells> {
    read_of(&context.array(uri).open()?, first, last)
}

/// As [`read`], of an open array.
pub fn read_of(array: &Array, first: i64, last: i64) -> Result<Cells> {
    let within = Subarray::Box(vec![DimSelection::Ranges(vec![box_of(first, last)])]);
    let set = array
        .read(ReadOptions::new().fields(["x", "a", "s"]).subarray(within))?
        .read_all()?;
    let missing = || azulejo::Error::Internal("a column is missing".into());
    let coordinates = set
        .column("x")
        .and_then(|c| c.values::<i64>())
        .ok_or_else(missing)?;
    let numbers = set
        .column("a")
        .and_then(|c| c.values::<i32>())
        .ok_or_else(missing)?;
    let texts = set.column("s").ok_or_else(missing)?.strings();
    let texts = texts.map(|s| s.and_then(|s| s.ok()).unwrap_or_default().to_owned());
    Ok(coordinates
        .iter()
        .zip(numbers)
        .zip(texts)
        .map(|((x, a), s)| (*x, (*a, s)))
        .collect())
}

/// Sum and number of the cells of an array with the attribute `a`, from `first` to `last`.
pub fn sum_of(array: &Array, first: i64, last: i64) -> Result<(i64, u64)> {
    let set = array.read(attribute_of(first, last))?.read_all()?;
    let column = set.column("a").and_then(|c| c.values::<i32>());
    let values = column.ok_or_else(|| azulejo::Error::Internal("a column is missing".into()))?;
    Ok((
        values.iter().map(|v| i64::from(*v)).sum(),
        values.len() as u64,
    ))
}

/// A read of the attribute of the cells from the first to the last.
pub fn attribute_of(first: i64, last: i64) -> ReadOptions {
    let within = Subarray::Box(vec![DimSelection::Ranges(vec![box_of(first, last)])]);
    ReadOptions::new().fields(["a"]).subarray(within)
}

/// What [`sum_of`] must give where all cells are written.
pub fn expected_sum(first: i64, last: i64) -> (i64, u64) {
    (
        (first..=last).map(|x| i64::from(number(x))).sum(),
        (last - first + 1).unsigned_abs(),
    )
}

/// Whether two sets of cells are the same; what is different, if not.
pub fn compare(found: &Cells, expected: &Cells) -> crate::Outcome {
    if found == expected {
        return Ok(());
    }
    let missing: Vec<_> = expected
        .iter()
        .filter(|(x, cell)| found.get(x) != Some(cell))
        .take(5)
        .collect();
    let more: Vec<_> = found
        .keys()
        .filter(|x| !expected.contains_key(x))
        .take(5)
        .collect();
    Err(format!(
        "{} cells instead of {}; missing or other: {missing:?}; too many: {more:?}",
        found.len(),
        expected.len()
    ))
}
