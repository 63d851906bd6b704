//! Checks of cells, which name the first one that fails.

use super::input::{FieldShape, Input};
use crate::column::{FieldView, datetime};
use crate::error::{Error, Result};
use azulejo_format::datatype::{Native, dispatch};
use azulejo_format::range::{Range, compare};
use azulejo_format::schema::{DataOrder, Dimension};
use azulejo_format::{ArraySchema, Datatype};
use rayon::prelude::*;
use std::cmp::Ordering;

/// Cells that one thread looks at in a row.
const RUN: usize = 1 << 16;

/// Begins the message about cells, or a box, beyond the current domain: clients know these words.
pub(super) const OUTSIDE_CURRENT_DOMAIN: &str =
    "Cells are written outside of the defined current domain. ";

/// What cells may not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bounds {
    /// The domain.
    Domain,
    /// The current domain, which lies in the domain.
    CurrentDomain,
}

/// Checks that coordinates lie in the domain and, if that bounds them, the current domain; NaN lies
/// in none. `dimensions` holds one view a dimension.
///
/// # Errors
/// [`Error::InvalidArgument`] naming the first cell that does not.
pub(super) fn check_domain(
    schema: &ArraySchema,
    bounds: Bounds,
    dimensions: &[FieldView<'_>],
) -> Result<()> {
    let current = match bounds {
        Bounds::Domain => None,
        Bounds::CurrentDomain => schema.current_domain.ranges(),
    };
    let all = schema.domain.dimensions.iter().zip(dimensions).enumerate();
    let domain = all.clone().filter_map(|(d, (dimension, view))| {
        let range = dimension.domain.as_ref()?;
        outside(dimension, range, view).map(|cell| (cell, d, range))
    });
    let (found, what, known) = match domain.min_by_key(|(cell, d, _)| (*cell, *d)) {
        Some(found) => (Some(found), "domain", ""),
        None => {
            let current = all.filter_map(|(d, (dimension, view))| {
                let range = current?.get(d)?;
                outside(dimension, range, view).map(|cell| (cell, d, range))
            });
            (
                current.min_by_key(|(cell, d, _)| (*cell, *d)),
                "current domain",
                OUTSIDE_CURRENT_DOMAIN,
            )
        }
    };
    let Some((cell, d, range)) = found else {
        return Ok(());
    };
    let (name, datatype) = schema
        .dimension(d)
        .map_or(("", Datatype::Int8), |dimension| {
            (&dimension.name, dimension.datatype)
        });
    Err(Error::InvalidArgument(format!(
        "{known}cell {cell} {} lies outside the {what} [{}, {}] of dimension {name:?}",
        describe_cell(schema, dimensions, cell),
        describe_value(datatype, &range.start),
        describe_value(datatype, &range.end),
    )))
}

/// The first cell of a dimension that is not within a range.
fn outside(dimension: &Dimension, range: &Range, view: &FieldView<'_>) -> Option<usize> {
    fn number<T: Native>(range: &Range, data: &[u8]) -> Option<usize> {
        let (low, high) = range.bounds::<T>();
        let inside = |value: &[u8]| {
            let value = T::read(value);
            // NaN compares with nothing, so it is outside.
            value >= low && value <= high
        };
        let run = RUN * T::SIZE;
        data.par_chunks(run)
            .enumerate()
            .find_map_first(|(i, data)| {
                // All at once: that loop has no branches.
                let all = data
                    .chunks_exact(T::SIZE)
                    .fold(true, |all, value| all & inside(value));
                let place = || data.chunks_exact(T::SIZE).position(|value| !inside(value));
                if all {
                    None
                } else {
                    place().map(|cell| i * RUN + cell)
                }
            })
    }
    if dimension.is_var() {
        if range.start.is_empty() && range.end.is_empty() {
            return None;
        }
        let below = |a: &[u8], b: &[u8]| compare(dimension.datatype, a, b) == Ordering::Less;
        return (0..view.cell_num).into_par_iter().find_first(|&cell| {
            let text = view.cell(cell);
            below(text, &range.start) || (!range.end.is_empty() && below(&range.end, text))
        });
    }
    let data = view
        .data
        .get(..view.cell_num * view.cell_size)
        .unwrap_or(view.data);
    dispatch!(dimension.datatype.physical(), T => number::<T>(range, data))
}

/// Checks the values of attributes that the schema says are ordered (those of dimension labels).
/// `before` holds the values of the cell before the first, one a field, if there is one.
///
/// # Errors
/// [`Error::InvalidArgument`] naming the attribute and the first cell out of order.
pub(super) fn check_attribute_order(
    schema: &ArraySchema,
    shapes: &[FieldShape],
    input: &Input<'_>,
    before: Option<&[Vec<u8>]>,
) -> Result<()> {
    for (field, (shape, view)) in shapes
        .iter()
        .zip(&input.fields)
        .enumerate()
        .filter(|(_, (shape, _))| !shape.dimension)
    {
        let order = schema
            .attributes
            .iter()
            .find(|a| a.name == shape.name)
            .map(|a| a.order);
        let wrong = match order {
            Some(DataOrder::Increasing) => Ordering::Greater,
            Some(DataOrder::Decreasing) => Ordering::Less,
            _ => continue,
        };
        let is_wrong =
            |before: &[u8], cell: usize| compare(shape.datatype, before, view.cell(cell)) == wrong;
        let is_first_wrong = view.cell_num > 0
            && before
                .and_then(|values| values.get(field))
                .is_some_and(|value| is_wrong(value, 0));
        let found = match is_first_wrong {
            true => Some(0),
            false => (1..view.cell_num).find(|&cell| is_wrong(view.cell(cell - 1), cell)),
        };
        if let Some(cell) = found {
            return Err(Error::InvalidArgument(format!(
                "attribute {:?}: cell {cell} is out of order, as the schema wants {} values",
                shape.name,
                if wrong == Ordering::Greater {
                    "increasing"
                } else {
                    "decreasing"
                }
            )));
        }
    }
    Ok(())
}

/// The coordinates of a cell, such as `(rows=5, cols=-3)`.
pub(super) fn describe_cell(
    schema: &ArraySchema,
    dimensions: &[FieldView<'_>],
    cell: usize,
) -> String {
    let coordinates: Vec<&[u8]> = dimensions.iter().map(|view| view.cell(cell)).collect();
    describe_coordinates(schema, &coordinates)
}

/// Coordinates as text.
pub(super) fn describe_coordinates<B: AsRef<[u8]>>(
    schema: &ArraySchema,
    coordinates: &[B],
) -> String {
    let parts: Vec<String> = schema
        .domain
        .dimensions
        .iter()
        .zip(coordinates)
        .map(|(dimension, value)| {
            let value = describe_value(dimension.datatype, value.as_ref());
            if dimension.name.is_empty() {
                value
            } else {
                format!("{}={value}", dimension.name)
            }
        })
        .collect();
    format!("({})", parts.join(", "))
}

fn describe_value(datatype: Datatype, bytes: &[u8]) -> String {
    fn number<T: Native>(bytes: &[u8]) -> String {
        format!("{:?}", T::read(bytes))
    }
    if datatype.is_string() {
        let text: String = String::from_utf8_lossy(bytes).chars().take(100).collect();
        return format!("{text:?}");
    }
    if (datatype.is_datetime() || datatype.is_time())
        && let Some(ticks) = bytes.first_chunk()
    {
        return datetime::format_ticks(i64::from_le_bytes(*ticks), datatype);
    }
    dispatch!(datatype.physical(), T => number::<T>(bytes))
}
