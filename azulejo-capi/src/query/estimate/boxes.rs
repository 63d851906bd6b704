//! Estimates box by box: of each tile the share of its bounds that is selected.

use super::{Share, Sizes, meets_along, overlap, tiles_of_box};
use crate::error::Result;
use azulejo::Array;
use azulejo::array::Fragment;
use azulejo::space::{DimSelection, Subarray};
use azulejo_format::schema::{ArraySchema, FieldIndex};
use azulejo_format::{NdRectangle, Range};

/// Selections of more boxes than this are taken whole.
const MAX_BOXES: usize = 4096;

/// So many tiles are looked at, once for each box.
const MAX_LOOKS: u64 = 1 << 24;

/// A range along each dimension, `None` for all of it.
type OneBox<'a> = Vec<Option<&'a Range>>;

/// The boxes of a selection; `None` if there are too many.
fn boxes<'a>(schema: &ArraySchema, subarray: &'a Subarray) -> Option<Vec<OneBox<'a>>> {
    let Subarray::Box(selections) = subarray else {
        return None;
    };
    let mut boxes: Vec<OneBox<'a>> = vec![Vec::new()];
    for d in 0..schema.domain.ndim() {
        let ranges: Vec<Option<&Range>> = match selections.get(d).unwrap_or(&DimSelection::All) {
            DimSelection::All => vec![None],
            DimSelection::Ranges(ranges) => ranges.iter().map(Some).collect(),
            DimSelection::Strided { .. } => return None,
        };
        if boxes.len().saturating_mul(ranges.len()) > MAX_BOXES {
            return None;
        }
        let with = |one: &OneBox<'a>, range: Option<&'a Range>| -> OneBox<'a> {
            one.iter().copied().chain([range]).collect()
        };
        boxes = boxes
            .iter()
            .flat_map(|one| ranges.iter().map(move |range| with(one, *range)))
            .collect();
    }
    Some(boxes)
}

/// The sizes of a field; `None` where a selection is of so many parts, beside so many tiles, that it
/// is taken whole.
pub fn sizes(
    array: &Array,
    schema: &ArraySchema,
    field: FieldIndex,
    name: &str,
    subarray: &Subarray,
) -> Result<Option<Sizes>> {
    let tiles = array.fragments().iter().map(Fragment::tile_num);
    let tiles = tiles.fold(1, u64::saturating_add);
    let boxes = boxes(schema, subarray);
    let Some(boxes) = boxes.filter(|boxes| tiles.saturating_mul(boxes.len() as u64) <= MAX_LOOKS)
    else {
        return Ok(None);
    };
    let fragments = array.fragments().iter();
    let fragments: Vec<&Fragment> = fragments.filter(|f| meets(schema, f, subarray)).collect();
    let mut needed = Needed::default();
    for one in &boxes {
        needed.add(&of_box(&fragments, schema, field, name, one)?);
    }
    if schema.is_dense() {
        // Cells that nobody wrote are results too.
        let Some(cells) = subarray.cell_num(schema) else {
            return Ok(None);
        };
        needed.fill(schema, field, cells as f64);
    }
    let value = schema
        .type_of(field)
        .map_or(1, |(datatype, _)| datatype.size());
    let cell = schema.cell_size(field).unwrap_or(value) as u64;
    Ok(Some(needed.sizes(cell, schema.is_nullable(field))))
}

/// Whether along each dimension some range meets what a fragment holds. Where one does, the others are
/// estimated by the tiles that they take of it, whether cells were written there or not.
fn meets(schema: &ArraySchema, fragment: &Fragment, subarray: &Subarray) -> bool {
    let (Subarray::Box(selections), Some(written)) =
        (subarray, fragment.footer().non_empty_domain.as_ref())
    else {
        return true;
    };
    let all = selections.iter().zip(&written.ranges);
    let mut all = all.zip(&schema.domain.dimensions);
    all.all(|((selection, written), dimension)| {
        dimension.is_var() || meets_along(dimension, selection, written)
    })
}

/// The tiles of a fragment that a box meets, in the order in which they are added up.
fn shares(schema: &ArraySchema, fragment: &Fragment, one: &OneBox<'_>) -> Result<Vec<Share>> {
    let dimensions = &schema.domain.dimensions;
    if fragment.is_dense() {
        let ranges = one
            .iter()
            .zip(dimensions)
            .map(|(range, dimension)| range.or(dimension.domain.as_ref()).cloned());
        let Some(ranges) = ranges.collect() else {
            return Ok(Vec::new());
        };
        return Ok(tiles_of_box(fragment, &NdRectangle { ranges })?.unwrap_or_default());
    }
    let tree = fragment.rtree()?;
    let mut found = Vec::new();
    for tile in 0..fragment.tile_num() {
        let index = usize::try_from(tile).unwrap_or(usize::MAX);
        let mut share = 1.0;
        for (d, (range, dimension)) in one.iter().zip(dimensions).enumerate() {
            if let (Some(range), Some(bounds)) = (range, tree.tile_range(index, d)) {
                let along = overlap::share(dimension, range, bounds);
                // Where boxes meet, something is taken of the tile.
                let both: f64 = share * along;
                share = match along > 0.0 && share > 0.0 {
                    true => both.max(f64::from_bits(1)),
                    false => 0.0,
                };
            }
        }
        if share > 0.0 {
            found.push((tile, share));
        }
    }
    Ok(found)
}

/// Bytes, before they are rounded up.
#[derive(Debug, Clone, Copy, Default)]
struct Needed {
    /// Values of fixed length, or offsets.
    fixed: f64,
    /// Values of variable length, if there are any.
    values: Option<f64>,
    validity: f64,
}

impl Needed {
    fn add(&mut self, other: &Self) {
        self.fixed += other.fixed;
        self.validity += other.validity;
        self.values = match (self.values, other.values) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
    }

    /// At least what so many cells take that are filled up.
    fn fill(&mut self, schema: &ArraySchema, field: FieldIndex, cells: f64) {
        let each = schema.cell_size(field).unwrap_or(8) as f64;
        self.fixed = self.fixed.max(cells * each);
        if let (Some(values), FieldIndex::Attribute(index)) = (&mut self.values, field) {
            let fill = schema.attribute(index).map_or(0, |a| a.fill_value.len());
            *values = values.max(cells * fill as f64);
        }
        if schema.is_nullable(field) {
            self.validity = self.validity.max(cells);
        }
    }

    /// Room for one cell at least, if there is something: of `cell` bytes, or with a value of as many.
    fn sizes(&self, cell: u64, nullable: bool) -> Sizes {
        let up = |bytes: f64| bytes.ceil() as u64;
        let (fixed, validity) = (up(self.fixed), up(self.validity));
        let one = u64::from(nullable);
        match self.values.map(up) {
            Some(0) => Sizes::default(),
            Some(values) => Sizes {
                data: values.max(cell),
                offsets: fixed.max(8),
                validity: validity.max(one),
            },
            None if fixed > 0 && fixed < cell => Sizes {
                data: cell,
                offsets: 0,
                validity: one,
            },
            None => Sizes {
                data: fixed,
                offsets: 0,
                validity,
            },
        }
    }
}

/// What a box holds of a field: no more cells than it has coordinates, where these are counted and
/// appear once.
fn of_box(
    fragments: &[&Fragment],
    schema: &ArraySchema,
    field: FieldIndex,
    name: &str,
    one: &OneBox<'_>,
) -> Result<Needed> {
    let cell = schema.cell_size(field).unwrap_or(8) as f64;
    let nullable = schema.is_nullable(field);
    let value = schema
        .type_of(field)
        .map_or(1, |(datatype, _)| datatype.size()) as f64;
    let mut needed = Needed {
        values: schema.is_var(field).then_some(0.0),
        ..Needed::default()
    };
    for fragment in fragments {
        let own = fragment.field(name);
        if own.is_none() && matches!(field, FieldIndex::Attribute(_)) {
            continue;
        }
        for (tile, share) in shares(schema, fragment, one)? {
            let cells = fragment.tile_cell_num(tile) as f64;
            needed.fixed += cells * cell * share;
            if let (Some(values), Some(own)) = (&mut needed.values, own) {
                *values += fragment.var_tile_size(own, tile)? as f64 * share;
            }
            if nullable {
                let each = if needed.values.is_some() {
                    1.0
                } else {
                    cell / value
                };
                needed.validity += cells * each * share;
            }
        }
    }
    let counted = schema
        .domain
        .dimensions
        .iter()
        .zip(one)
        .map(|(dimension, range)| {
            let axis = dimension.axis()?;
            let whole = axis.cells() as f64;
            Some(range.map_or(whole, |range| {
                axis.offsets_of(range)
                    .map_or(whole, |(low, high)| (high - low) as f64 + 1.0)
            }))
        });
    let fixed = schema.domain.dimensions.iter().all(|d| !d.is_var());
    if !schema.allows_dups
        && fixed
        && let Some(cells) = counted.product::<Option<f64>>()
    {
        needed.fixed = needed.fixed.min(cells * cell);
        needed.validity = needed.validity.min(cells);
    }
    Ok(needed)
}
