//! Filters of a new array, chosen by what they make of some of its cells.
//!
//! ```
//! use azulejo::column::{ColumnBuffers, ColumnSet};
//! use azulejo::format::datatype::Datatype;
//! use azulejo::format::schema::NewArray;
//! use azulejo::format::ArraySchema;
//! use azulejo::write::optimize::{SampleCells, Goal, choose_filters};
//! use azulejo::{Config, Context};
//!
//! let context = Context::new(Config::default(), None)?;
//! let mut array = ArraySchema::sparse()
//!     .dimension("x", 0i64..=999_999, 1_000)
//!     .attribute("a", Datatype::Int32)
//!     .build()?;
//! let cells = ColumnSet::of([
//!     ColumnBuffers::of_values("x", (0i64..50_000).collect()),
//!     ColumnBuffers::of_values("a", (0i32..50_000).map(|i| i % 7).collect()),
//! ])?;
//! choose_filters(&context, &mut array, &SampleCells::of(&cells), Goal::Balanced, &|_| false)?;
//! assert!(!array.schema.attributes[0].filters.filters.is_empty());
//! context.array("mem://chosen").create(array)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The cells are brought into the array's order and cut into tiles as a write does it, some of the
//! tiles are filtered by each pipeline that makes sense for the field (`candidates`), and of these
//! the goal takes one: by the bytes that come of it, and by the time that it takes to undo the
//! filters, which is reckoned and not measured (`cost`). So the same cells give the same filters.

mod candidates;
mod cost;
mod goal;
mod place;
mod sample;
#[cfg(test)]
mod tests;
mod texts;
mod usual;

pub use goal::Goal;
pub use usual::{usual_filters, usual_offsets_filters};

use super::fields_of;
use super::input::{self, FieldShape};
use crate::column::{ColumnBuffers, ColumnSet, ColumnView};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::space::tile_grid::TileGrid;

use azulejo_format::NdRectangle;
use azulejo_format::filter::Pipeline;
use azulejo_format::schema::{ArraySchema, ArrayType, NewArray};
use place::Place;
use rayon::prelude::*;
use sample::{Part, Sample, ValueKind};
use std::borrow::Cow;

/// Cells of an array that is to be made: in any order, with their coordinates; of a dense one also
/// those of a box.
#[derive(Debug)]
pub struct SampleCells<'a> {
    columns: Vec<ColumnView<'a>>,
    subarray: Option<&'a NdRectangle>,
    columns_first: bool,
}

impl<'a> SampleCells<'a> {
    /// Columns of attributes and of dimensions. Of a dense array without those of dimensions the cells
    /// are taken to follow one another as the array has them, unless [`Self::in_box`] says otherwise.
    #[must_use]
    pub fn of(cells: &'a ColumnSet) -> Self {
        Self::of_views(cells.columns.iter().map(ColumnBuffers::as_view).collect())
    }

    /// As [`Self::of`], of cells in memory of the caller's.
    #[must_use]
    pub fn of_views(columns: Vec<ColumnView<'a>>) -> Self {
        Self {
            columns,
            subarray: None,
            columns_first: false,
        }
    }

    /// The box of a dense array that the cells fill, in row-major order; with `columns_first` in
    /// column-major order.
    #[must_use]
    pub fn in_box(self, subarray: &'a NdRectangle, columns_first: bool) -> Self {
        Self {
            subarray: Some(subarray),
            columns_first,
            ..self
        }
    }
}

/// Bytes of cells that show what filters make of them, once they are in order.
const SAMPLE_BYTES: u64 = 64 << 20;

/// Chooses the filters of all fields of a new array by some of its cells, except of those that
/// `keeps` names: fields, and `@offsets` and `@validity` for those of the whole array. Without cells
/// all stay as they are.
///
/// # Errors
/// [`crate::Error::SchemaMismatch`] and [`crate::Error::InvalidArgument`] for cells that could not be
/// written to the array.
pub fn choose_filters(
    context: &Context,
    array: &mut NewArray,
    cells: &SampleCells<'_>,
    goal: Goal,
    keeps: &(dyn Fn(&str) -> bool + Sync),
) -> Result<()> {
    let keeps = |place: Place, name: &str| {
        (array.schema.is_dense() && matches!(place, Place::Dimension(_))) || keeps(name)
    };
    let schema = &*as_given(&array.schema, cells);
    let shapes = FieldShape::of_all(schema, &fields_of(schema))?;
    let ones = input::all_valid(&shapes, &cells.columns);
    let chosen = context.install(|| {
        let input = input::bind(schema, &shapes, &cells.columns, &ones)?;
        let place = (cells.subarray, cells.columns_first);
        let sample = Sample::new(schema, &shapes, &input, place, tile_cells(&array.schema))?;
        Ok::<_, Error>(choose(schema, &shapes, &sample, goal, &keeps))
    })?;
    put(array, chosen);
    Ok(())
}

/// Bytes of a new array's cells, at most, that are worth a look before [`choose_filters`].
#[must_use]
pub fn sample_bytes(context: &Context) -> u64 {
    SAMPLE_BYTES.min(context.config().memory_budget / 8)
}

/// Cells of a tile.
fn tile_cells(schema: &ArraySchema) -> u64 {
    match schema.is_dense() {
        true => TileGrid::new(schema).map_or(u64::MAX, |grid| grid.tile_cells()),
        false => schema.capacity,
    }
}

/// Gives an array the filters that were chosen.
fn put(array: &mut NewArray, chosen: Vec<(Place, Pipeline)>) {
    let schema = &mut array.schema;
    for (place, pipeline) in chosen {
        let filters = match place {
            Place::Attribute(i) => schema.attributes.get_mut(i).map(|a| &mut a.filters),
            Place::Dimension(i) => schema.domain.dimensions.get_mut(i).map(|d| &mut d.filters),
            Place::Offsets => Some(&mut schema.offsets_filters),
            Place::Validity => Some(&mut schema.validity_filters),
        };
        if let Some(filters) = filters {
            *filters = pipeline;
        }
    }
}

/// The schema in whose order the cells are brought: of a dense array whose cells come with their
/// coordinates a sparse one of the same order.
fn as_given<'s>(schema: &'s ArraySchema, cells: &SampleCells<'_>) -> Cow<'s, ArraySchema> {
    let dimension =
        |column: &ColumnView<'_>| schema.domain.index_of(&column.column_type.name).is_some();
    if !schema.is_dense() || !cells.columns.iter().any(dimension) {
        return Cow::Borrowed(schema);
    }
    let mut sparse = schema.clone();
    sparse.array_type = ArrayType::Sparse;
    sparse.allows_dups = true;
    // Tiles are large: what counts is the order within them.
    sparse.capacity = sample::PIECE_BYTES as u64;
    Cow::Owned(sparse)
}

/// The filters of each place that has cells and is not kept.
fn choose(
    schema: &ArraySchema,
    shapes: &[FieldShape],
    sample: &Sample,
    goal: Goal,
    keeps: &(dyn Fn(Place, &str) -> bool + Sync),
) -> Vec<(Place, Pipeline)> {
    let fields = fields_of(schema);
    let mut chosen: Vec<(Place, Pipeline)> = fields
        .par_iter()
        .zip(shapes)
        .enumerate()
        .filter_map(|(i, (field, shape))| {
            let place = Place::of(*field)?;
            if keeps(place, &shape.name) {
                return None;
            }
            let part = sample.values(i, shape)?;
            let candidates = candidates::of(part.kind, &part.context, goal);
            let best = match part.kind {
                ValueKind::Strings => {
                    let offsets = (&schema.offsets_filters, &sample.offsets(i)?);
                    texts::best(candidates, &part, offsets, goal)?
                }
                _ => cost::best(candidates, &[part], goal)?,
            };
            Some(match place {
                // It would have the filters of the coordinates.
                Place::Dimension(_) if best.filters.is_empty() => (place, candidates::named_none()),
                _ => (place, best),
            })
        })
        .collect();
    // Whether the strings hold their offsets is known only now.
    let in_data = |i: &usize| {
        let Some(place) = fields.get(*i).copied().and_then(Place::of) else {
            return false;
        };
        let found = chosen.iter().find(|(at, _)| *at == place);
        let (Some((_, pipeline)), Some(shape)) = (found, shapes.get(*i)) else {
            return false;
        };
        pipeline.keeps_offsets_in_data(&sample::context(schema, shape))
    };
    let offsets: Vec<Part<'_>> = (0..shapes.len())
        .filter(|i| !in_data(i))
        .filter_map(|i| sample.offsets(i))
        .collect();
    let validity: Vec<Part<'_>> = (0..shapes.len())
        .filter_map(|i| sample.validity(i))
        .collect();
    for (place, name, parts) in [
        (Place::Offsets, "@offsets", offsets),
        (Place::Validity, "@validity", validity),
    ] {
        if let Some(part) = parts.first()
            && !keeps(place, name)
            && let candidates = candidates::of(part.kind, &part.context, goal)
            && let Some(pipeline) = cost::best(candidates, &parts, goal)
        {
            chosen.push((place, pipeline));
        }
    }
    chosen
}
