//! Where incomplete reads of dense arrays end: where the reference ends them. Clients count on it.
//!
//! A part of the selection ([`Parts`]) says how many cells a submission gives. The cells themselves
//! come from one reader, in the order of the whole selection.

use super::buffers::{FieldBuffers, OffsetsFormat};
use super::estimate::{self, Share};
use super::parts::{self, Estimate, Part, Parts, Span, Walk};
use crate::array::OpenArray;
use crate::error::Result;
use azulejo::Array;
use azulejo::array::Fragment;
use azulejo::space::{DimSelection, Layout, Subarray};
use azulejo_format::schema::{ArraySchema, FieldIndex, TileAxis};
use azulejo_format::{NdRectangle, Range};

/// Bytes of a field's buffers, or that its cells take.
#[derive(Debug, Clone, Copy, Default)]
struct Bytes {
    /// Values of fixed length, or offsets.
    fixed: f64,
    /// Values of variable length.
    values: f64,
    validity: f64,
}

impl Bytes {
    fn within(&self, room: &Self) -> bool {
        self.fixed <= room.fixed && self.values <= room.values && self.validity <= room.validity
    }
}

/// A field that is read.
#[derive(Debug)]
struct Field {
    name: String,
    attribute: bool,
    /// Bytes of a cell, of its offset if its length varies.
    fixed: u64,
    var: bool,
    nullable: bool,
    /// Bytes of a fill value of variable length.
    fill: u64,
    /// What the buffers had room for at first.
    room: Bytes,
}

/// Selections of more boxes, or of more in all fragments together, fill the buffers: looking at all
/// of them before takes too long.
const MAX_LOOKS: u64 = 1 << 14;

/// How far a read is.
#[derive(Debug)]
pub struct Progress {
    array: Array,
    axes: Vec<TileAxis>,
    fields: Vec<Field>,
    /// What the boxes of a part take together.
    added: Vec<Bytes>,
    /// The fragments that the selection meets, by their place.
    met: Vec<usize>,
    parts: Parts,
}

impl Progress {
    /// `None` for arrays and selections that are read another way: such reads fill the buffers.
    pub fn new(
        open: &OpenArray,
        subarray: &Subarray,
        layout: Layout,
        buffers: &[&FieldBuffers],
    ) -> Result<Option<Self>> {
        let schema = open.snapshot().schema();
        let Subarray::Box(selections) = subarray else {
            return Ok(None);
        };
        if !schema.is_dense() || buffers.is_empty() {
            return Ok(None);
        }
        let (Some(walk), Some((axes, ranges)), Some(fields)) = (
            walk(schema, layout),
            along_axes(schema, selections),
            buffers
                .iter()
                .map(|b| field(schema, b))
                .collect::<Option<Vec<Field>>>(),
        ) else {
            return Ok(None);
        };
        let array = open.array()?;
        let met = met(&array, &axes, &ranges);
        let parts = Parts::new(walk, ranges);
        let boxes = parts.box_num();
        if layout == Layout::Global && boxes > 1 {
            return Ok(None);
        }
        let var = fields.iter().any(|field| field.var);
        let looks = boxes.saturating_mul(array.fragments().len() as u64);
        if !var && parts.whole().is_some_and(|cells| known_fit(&fields, cells)) {
            // All of it fits.
            return Ok(None);
        }
        if (var || boxes > 1) && (boxes > MAX_LOOKS || looks > MAX_LOOKS) {
            return Ok(None);
        }
        Ok(Some(Self {
            array,
            axes,
            added: vec![Bytes::default(); fields.len()],
            fields,
            met,
            parts,
        }))
    }

    /// How many cells the next submission is to give; `None` if the buffers have no room for them,
    /// and `usize::MAX` behind the last part.
    pub fn cells(
        &mut self,
        buffers: &[&FieldBuffers],
        format: OffsetsFormat,
    ) -> Result<Option<usize>> {
        let most = room_now(&self.fields, buffers, format);
        self.walk(|parts, estimate| {
            let mut part = parts.next(estimate)?.map(parts::cells);
            while part.is_some_and(|cells| cells > most) {
                part = match parts.divide(estimate)?.map(parts::cells) {
                    None => return Ok(None),
                    divided => divided,
                };
            }
            Ok(Some(part.unwrap_or(u64::MAX)))
        })
        .map(at_most)
    }

    /// Values of variable length took more than was thought, so that only `fit` cells had room: how
    /// many are to be given; `None` if the part cannot be divided.
    pub fn fewer(&mut self, fit: usize) -> Result<Option<usize>> {
        self.walk(|parts, estimate| {
            loop {
                match parts.divide(estimate)?.map(parts::cells) {
                    Some(cells) if cells > fit as u64 => {}
                    found => return Ok(found),
                }
            }
        })
        .map(at_most)
    }

    /// The part was given.
    pub fn done(&mut self) {
        self.parts.done();
    }

    /// Looks at the parts beside what is known of their sizes.
    fn walk<T>(&mut self, look: impl FnOnce(&mut Parts, &mut Sizes<'_>) -> Result<T>) -> Result<T> {
        let mut sizes = Sizes {
            array: &self.array,
            axes: &self.axes,
            fields: &self.fields,
            added: &mut self.added,
            met: &self.met,
            one: self.parts.box_num() == 1,
        };
        look(&mut self.parts, &mut sizes)
    }
}

fn at_most(cells: Option<u64>) -> Option<usize> {
    cells.map(|cells| usize::try_from(cells).unwrap_or(usize::MAX))
}

/// Cells that all buffers have room for now, values of variable length aside.
fn room_now(fields: &[Field], buffers: &[&FieldBuffers], format: OffsetsFormat) -> u64 {
    let rooms = fields.iter().zip(buffers).map(|(field, buffers)| {
        let capacity = |place: Option<super::Place>| place.map_or(0, |place| place.capacity());
        let cells = match field.var {
            true => (capacity(buffers.offsets) / format.width())
                .saturating_sub(usize::from(format.extra)),
            false => capacity(buffers.data) / usize::try_from(field.fixed).unwrap_or(1).max(1),
        };
        match field.nullable {
            true => cells.min(capacity(buffers.validity)),
            false => cells,
        }
    });
    rooms.min().unwrap_or(0) as u64
}

/// The order in which parts follow each other; `None` where the reference has none.
fn walk(schema: &ArraySchema, layout: Layout) -> Option<Walk> {
    let order = |layout: Layout| -> Option<Vec<usize>> {
        let dimensions = 0..schema.domain.ndim();
        match layout {
            Layout::RowMajor => Some(dimensions.collect()),
            Layout::ColMajor => Some(dimensions.rev().collect()),
            _ => None,
        }
    };
    if layout != Layout::Global {
        return Some(Walk {
            cells: order(layout)?,
            tiles: None,
        });
    }
    let axes = schema.domain.dimensions.iter().map(|d| d.axis());
    let extents = axes.map(|axis| Some(u64::try_from(axis?.extent()).unwrap_or(u64::MAX).max(1)));
    Some(Walk {
        cells: order(schema.cell_order)?,
        tiles: Some((order(schema.tile_order)?, extents.collect::<Option<_>>()?)),
    })
}

/// The axes, and the offsets of the selected ranges along each.
fn along_axes(schema: &ArraySchema, selections: &[DimSelection]) -> Option<(Vec<TileAxis>, Part)> {
    let current = schema.current_domain.ranges();
    let mut axes = Vec::new();
    let mut all = Vec::new();
    for (d, dimension) in schema.domain.dimensions.iter().enumerate() {
        let axis = dimension.axis()?;
        let ranges: Vec<Span> = match selections.get(d).unwrap_or(&DimSelection::All) {
            DimSelection::All => {
                let within = current.and_then(|ranges| ranges.get(d));
                vec![axis.offsets_of(within.or(dimension.domain.as_ref())?)?]
            }
            DimSelection::Ranges(ranges) => ranges
                .iter()
                .map(|range| axis.offsets_of(range))
                .collect::<Option<_>>()?,
            DimSelection::Strided { .. } => return None,
        };
        if ranges.is_empty() || ranges.iter().any(|(low, high)| low > high) {
            return None;
        }
        axes.push(axis);
        all.push(ranges);
    }
    Some((axes, all))
}

fn field(schema: &ArraySchema, buffers: &FieldBuffers) -> Option<Field> {
    let index = schema.field(&buffers.name)?;
    let (var, nullable) = (schema.is_var(index), schema.is_nullable(index));
    let fill = match index {
        FieldIndex::Attribute(index) => schema.attribute(index)?.fill_value.len() as u64,
        FieldIndex::Dimension(_) => 0,
    };
    let capacity = |place: Option<super::Place>| place.map_or(0.0, |p| p.capacity() as f64);
    let (fixed, values) = match var {
        true => (buffers.offsets, buffers.data),
        false => (buffers.data, None),
    };
    Some(Field {
        name: buffers.name.clone(),
        attribute: matches!(index, FieldIndex::Attribute(_)),
        fixed: schema.cell_size(index).map_or(8, |size| size as u64),
        var,
        nullable,
        fill,
        room: Bytes {
            fixed: capacity(fixed),
            values: capacity(values),
            validity: capacity(buffers.validity.filter(|_| nullable)),
        },
    })
}

/// Whether what is known of so many cells fits: all but values of variable length. Cells that no
/// fragment has are filled up.
fn known_fit(fields: &[Field], cells: u64) -> bool {
    let cells = cells as f64;
    fields.iter().all(|field| {
        let validity = if field.nullable { cells } else { 0.0 };
        cells * field.fixed as f64 <= field.room.fixed && validity <= field.room.validity
    })
}

/// The dense fragments that hold something within the bounds of some range along each dimension.
fn met(array: &Array, axes: &[TileAxis], part: &Part) -> Vec<usize> {
    let meets = |fragment: &Fragment| {
        let Some(written) = fragment.footer().non_empty_domain.as_ref() else {
            return false;
        };
        let mut along = axes.iter().zip(part).zip(&written.ranges);
        along.all(|((axis, ranges), written)| {
            axis.offsets_of(written).is_none_or(|(first, last)| {
                ranges
                    .iter()
                    .any(|(low, high)| *low <= last && first <= *high)
            })
        })
    };
    let fragments = array.fragments().iter().enumerate();
    fragments
        .filter(|(_, fragment)| fragment.is_dense() && meets(fragment))
        .map(|(at, _)| at)
        .collect()
}

/// What parts are estimated to take, beside the room that there was at first.
struct Sizes<'a> {
    array: &'a Array,
    axes: &'a [TileAxis],
    fields: &'a [Field],
    added: &'a mut Vec<Bytes>,
    met: &'a [usize],
    /// Whether the selection is one box.
    one: bool,
}

impl Sizes<'_> {
    /// What the fragments' tiles say of a box.
    fn of_box(&self, spans: &[Span], met: &[usize]) -> Result<Vec<Bytes>> {
        let bounds =
            self.axes.iter().zip(spans).map(|(axis, (low, high))| {
                Range::new(axis.coordinate(*low), axis.coordinate(*high))
            });
        let bounds = NdRectangle {
            ranges: bounds.collect(),
        };
        let mut sizes = vec![Bytes::default(); self.fields.len()];
        let fragments = met.iter().filter_map(|at| self.array.fragments().get(*at));
        for fragment in fragments {
            let tiles: Vec<Share> = estimate::tiles_of_box(fragment, &bounds)?.unwrap_or_default();
            for (field, size) in self.fields.iter().zip(&mut sizes) {
                let own = fragment.field(&field.name);
                if field.attribute && own.is_none() {
                    continue;
                }
                for (tile, share) in &tiles {
                    let cells = fragment.tile_cell_num(*tile) as f64 * share;
                    size.fixed += cells * field.fixed as f64;
                    size.validity += if field.nullable { cells } else { 0.0 };
                    if let (true, Some(own)) = (field.var, own) {
                        size.values += fragment.var_tile_size(own, *tile)? as f64 * share;
                    }
                }
            }
        }
        let lengths = spans.iter().map(|(low, high)| (high - low + 1) as f64);
        let cells: f64 = lengths.product();
        for (field, size) in self.fields.iter().zip(&mut sizes) {
            size.fixed = size.fixed.min(cells * field.fixed as f64);
            size.validity = size.validity.min(cells);
        }
        Ok(sizes)
    }
}

impl Estimate for Sizes<'_> {
    fn clear(&mut self) {
        self.added.fill(Bytes::default());
    }

    fn add(&mut self, ranges: &[Span]) -> Result<bool> {
        if self.one {
            // What is known of it is divided alike whether it seems to fit or not.
            let cells = parts::cells(&ranges.iter().map(|span| vec![*span]).collect());
            if !known_fit(self.fields, cells) {
                return Ok(false);
            }
        }
        let sizes = self.of_box(ranges, self.met)?;
        let mut fits = true;
        for ((added, size), field) in self.added.iter_mut().zip(sizes).zip(self.fields) {
            added.fixed += size.fixed;
            added.values += size.values;
            added.validity += size.validity;
            fits &= added.within(&field.room);
        }
        Ok(fits)
    }

    fn fits(&mut self, part: &Part) -> Result<bool> {
        let known = known_fit(self.fields, parts::cells(part));
        if !known || self.fields.iter().all(|field| !field.var) {
            return Ok(known);
        }
        let met = met(self.array, self.axes, part);
        let mut values = vec![0.0; self.fields.len()];
        let mut at = vec![0; part.len()];
        loop {
            let spans: Option<Vec<Span>> = (part.iter().zip(&at))
                .map(|(ranges, at)| ranges.get(*at).copied())
                .collect();
            let sizes = self.of_box(&spans.unwrap_or_default(), &met)?;
            for (values, size) in values.iter_mut().zip(sizes) {
                *values += size.values;
            }
            let more = (part.iter().zip(&at)).rposition(|(ranges, at)| at + 1 < ranges.len());
            let Some(more) = more else {
                break;
            };
            for (d, at) in at.iter_mut().enumerate().skip(more) {
                *at = if d == more { *at + 1 } else { 0 };
            }
        }
        let cells = parts::cells(part) as f64;
        Ok(self.fields.iter().zip(values).all(|(field, values)| {
            let values = values.max(cells * field.fill as f64).ceil();
            !field.var || values <= field.room.values
        }))
    }
}
