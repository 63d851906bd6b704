//! What writes say of a coordinate beyond its dimension's domain: the words that programs know.

use crate::dump;
use crate::error::Failure;
use azulejo::column::ColumnView;
use azulejo_format::range::compare;
use azulejo_format::schema::{ArraySchema, Dimension};
use std::cmp::Ordering;

/// Why a write of cells failed: its first coordinate beyond the domain if there is one, else the
/// engine's reason, which begins with `before`.
pub fn told(
    schema: &ArraySchema,
    cells: &[ColumnView<'_>],
    before: &str,
    error: &azulejo::Error,
) -> Failure {
    let found = match error {
        azulejo::Error::InvalidArgument(_) => first(schema, cells),
        _ => None,
    };
    Failure::new(found.unwrap_or_else(|| format!("{before}{error}")))
}

fn first(schema: &ArraySchema, cells: &[ColumnView<'_>]) -> Option<String> {
    let dimensions = schema.domain.dimensions.iter().enumerate();
    let outside = dimensions.filter_map(|(d, dimension)| {
        let column = cells
            .iter()
            .find(|c| *c.column_type.name == *dimension.name)?;
        let cell = (0..column.cells.cell_num)
            .find(|cell| is_outside(dimension, column.cells.cell(*cell)))?;
        Some((cell, d, dimension, column.cells.cell(cell)))
    });
    let (.., dimension, value) = outside.min_by_key(|(cell, d, ..)| (*cell, *d))?;
    let domain = dimension.domain.as_ref()?;
    let text = |bytes: &[u8]| dump::value(dimension.datatype, bytes);
    Some(format!(
        "[TileDB::Dimension] Error: Dimension: Coordinate {} is out of domain bounds [{}, {}] on \
         dimension '{}'",
        text(value),
        text(&domain.start),
        text(&domain.end),
        dimension.name
    ))
}

fn is_outside(dimension: &Dimension, value: &[u8]) -> bool {
    let Some(domain) = dimension.domain.as_ref().filter(|_| !dimension.is_var()) else {
        return false;
    };
    let order = |a: &[u8], b: &[u8]| compare(dimension.datatype, a, b);
    order(value, &domain.start) == Ordering::Less || order(value, &domain.end) == Ordering::Greater
}
