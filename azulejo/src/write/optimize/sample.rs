//! Pieces of the tiles that some cells make.

use super::super::buffer::FieldBuffer;
use super::super::dense::{self, DenseBox};
use super::super::input::{FieldShape, Input, dimensions_of};
use super::super::sort::{CellSequence, DuplicateRule, sort_cells};
use super::super::validate::{self, Bounds};
use crate::column::FieldView;
use crate::error::{Error, Result};
use crate::space::Layout;
use crate::space::cell_order::CellOrder;
use azulejo_format::filter::FilterContext;
use azulejo_format::{ArraySchema, CellValNum, Datatype, NdRectangle};

/// Cells that are brought in order, at most: the first ones.
const SORTED: usize = 1 << 22;
/// Tiles that are looked at, at even distances.
const PIECES: usize = 8;
/// Bytes of a field that are looked at in a tile: two chunks.
pub(super) const PIECE_BYTES: usize = 2 * 64 * 1024;
/// Bytes of all fields of a piece, where there are many.
const ROW_BYTES: usize = 4 << 20;
/// How much more is looked at of texts, for which it counts how many different ones a whole tile has.
const OF_TEXTS: usize = 8;
/// Cells of a piece, where cells are large: fewer would say nothing.
const FEWEST: usize = 256;
/// Bytes of texts and offsets of a tile, at most, where they may be encoded together: these are one
/// chunk, which has 4 GiB at most, and is filtered by one thread.
const ENCODED_BYTES: u64 = 256 << 20;

/// What kind of values are filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// Numbers: integers, reals, times, flags.
    Numbers,
    /// Texts that can hold their own offsets, in tiles of a size for it.
    Strings,
    /// All else.
    Bytes,
    /// Whether cells are null.
    Validity,
}

/// Pieces of tiles, in their order: of each, all fields.
#[derive(Debug)]
pub(super) struct Sample {
    pieces: Vec<Vec<FieldBuffer>>,
    contexts: Vec<FilterContext<'static>>,
    /// Cells of a tile.
    tile_cells: u64,
}

/// What goes to one kind of a field's files.
#[derive(Debug)]
pub(super) struct Part<'s> {
    pub kind: ValueKind,
    pub context: FilterContext<'static>,
    /// The bytes of each piece; where cells of strings begin.
    pub tiles: Vec<(&'s [u8], Option<&'s [u64]>)>,
}

impl Part<'_> {
    /// Cells that vary in length.
    pub fn texts(&self) -> usize {
        let texts = |(_, starts): &(&[u8], Option<&[u64]>)| starts.map_or(0, <[u64]>::len);
        self.tiles.iter().map(texts).sum()
    }

    /// As much of each piece as is looked at of other values.
    pub fn beginnings(&self) -> Self {
        let beginnings = self.tiles.iter().map(|&(data, starts)| match starts {
            Some(starts) => {
                let cells = starts.partition_point(|start| *start <= PIECE_BYTES as u64);
                let end = starts
                    .get(cells)
                    .map_or(data.len(), |start| *start as usize);
                (data.get(..end).unwrap_or(data), starts.get(..cells))
            }
            None => (data.get(..PIECE_BYTES).unwrap_or(data), None),
        });
        Self {
            tiles: beginnings.collect(),
            ..*self
        }
    }

    /// Bytes of them.
    fn bytes(&self) -> usize {
        self.tiles.iter().map(|(data, _)| data.len()).sum()
    }
}

/// What filters are told of a field's values.
pub(super) fn context(schema: &ArraySchema, shape: &FieldShape) -> FilterContext<'static> {
    FilterContext {
        version: schema.version,
        datatype: shape.datatype,
        cell_val_num: shape.cell_val_num,
        key: None,
    }
}

impl Sample {
    /// Takes pieces of the tiles, of `tile_cells` each, that a write of these cells would make.
    pub fn new(
        schema: &ArraySchema,
        shapes: &[FieldShape],
        input: &Input<'_>,
        (subarray, columns_first): (Option<&NdRectangle>, bool),
        tile_cells: u64,
    ) -> Result<Self> {
        let contexts = shapes.iter().map(|shape| context(schema, shape)).collect();
        let cells = (ROW_BYTES / input.bytes_per_cell()).clamp(FEWEST, PIECE_BYTES);
        let tile = usize::try_from(tile_cells).unwrap_or(usize::MAX).max(1);
        let sampler = Sampler {
            shapes,
            input,
            cells,
            texts: (cells * OF_TEXTS).min(tile.max(cells)),
        };
        let pieces = match (schema.is_dense(), subarray) {
            _ if input.cell_num == 0 => Vec::new(),
            (false, _) => sampler.sparse(schema)?,
            (true, Some(subarray)) => {
                let space = DenseBox::new(schema, Bounds::Domain, Some(subarray))?;
                let layout = match columns_first {
                    true => Layout::ColMajor,
                    false => Layout::RowMajor,
                };
                match dense::some_tiles(&space, shapes, input, layout, PIECES)? {
                    tiles if tiles.is_empty() => sampler.as_given(PIECE_BYTES)?,
                    tiles => sampler.cut(&tiles)?,
                }
            }
            (true, None) => sampler.as_given(PIECE_BYTES)?,
        };
        Ok(Self {
            pieces,
            contexts,
            tile_cells,
        })
    }

    /// The values of a field.
    pub fn values(&self, field: usize, shape: &FieldShape) -> Option<Part<'_>> {
        let plain = shape.datatype.is_string()
            || shape.datatype.is_byte()
            || matches!(shape.datatype, Datatype::Any);
        let kind = match plain {
            true if is_text(shape) => ValueKind::Strings,
            true => ValueKind::Bytes,
            false => ValueKind::Numbers,
        };
        let starts = |buffer: &FieldBuffer| buffer.offsets.len().saturating_sub(1);
        let part = self.part(kind, *self.contexts.get(field)?, field, |buffer| {
            let offsets = buffer.offsets.get(..starts(buffer));
            let offsets = offsets.filter(|_| shape.is_var());
            (!buffer.data.is_empty()).then_some((&*buffer.data, offsets))
        });
        part.map(|part| match part.kind {
            ValueKind::Strings if self.tile_bytes(&part) > ENCODED_BYTES => Part {
                kind: ValueKind::Bytes,
                ..part
            },
            _ => part,
        })
    }

    /// Bytes of texts like these and their offsets in a tile.
    fn tile_bytes(&self, part: &Part<'_>) -> u64 {
        let text = part.bytes().div_ceil(part.texts().max(1)) + size_of::<u64>();
        self.tile_cells.saturating_mul(text as u64)
    }

    /// The offsets of a field whose cells vary in length.
    pub fn offsets(&self, field: usize) -> Option<Part<'_>> {
        let context = self.contexts.get(field)?;
        if context.cell_val_num != CellValNum::Var {
            return None;
        }
        self.part(ValueKind::Numbers, context.offsets(), field, |buffer| {
            let starts = buffer.offsets.get(..buffer.offsets.len().checked_sub(1)?)?;
            (!starts.is_empty()).then(|| (arrow_buffer::ToByteSlice::to_byte_slice(starts), None))
        })
    }

    /// The validity of a field that can be null.
    pub fn validity(&self, field: usize) -> Option<Part<'_>> {
        let context = self.contexts.get(field)?.validity();
        self.part(ValueKind::Validity, context, field, |buffer| {
            (!buffer.validity.is_empty()).then_some((&*buffer.validity, None))
        })
    }

    fn part<'s>(
        &'s self,
        kind: ValueKind,
        context: FilterContext<'static>,
        field: usize,
        tile: impl Fn(&'s FieldBuffer) -> Option<(&'s [u8], Option<&'s [u64]>)>,
    ) -> Option<Part<'s>> {
        let fields = self.pieces.iter().filter_map(|fields| fields.get(field));
        let tiles: Vec<_> = fields.filter_map(tile).collect();
        (!tiles.is_empty()).then_some(Part {
            kind,
            context,
            tiles,
        })
    }
}

struct Sampler<'a> {
    shapes: &'a [FieldShape],
    input: &'a Input<'a>,
    /// Cells of a piece, at most; of fields of texts more.
    cells: usize,
    /// Texts of a piece, at most.
    texts: usize,
}

impl Sampler<'_> {
    fn sparse(&self, schema: &ArraySchema) -> Result<Vec<Vec<FieldBuffer>>> {
        let cell_num = self.input.cell_num.min(SORTED);
        let mut dimensions = dimensions_of(self.shapes, self.input);
        for view in &mut dimensions {
            *view = view.slice(0..cell_num).ok_or_else(lacking)?;
        }
        // Keys are made of coordinates within the domain only.
        validate::check_domain(schema, Bounds::Domain, &dimensions)?;
        let capacity = usize::try_from(schema.capacity)
            .unwrap_or(usize::MAX)
            .max(1);
        let order = CellOrder::new(schema, Layout::Global);
        let rule = DuplicateRule::Allowed;
        match sort_cells(schema, &order, &dimensions, cell_num, rule)? {
            CellSequence::AsGiven => self.as_given(capacity),
            CellSequence::Sorted(sorted) => {
                let piece = |start: usize| {
                    let end = sorted
                        .len()
                        .min(start.saturating_add(capacity.min(self.texts)));
                    self.piece(sorted.get(start..end).unwrap_or_default())
                };
                starts(sorted.len(), capacity).map(piece).collect()
            }
        }
    }

    /// Cells that are in order as they are.
    fn as_given(&self, tile: usize) -> Result<Vec<Vec<FieldBuffer>>> {
        let piece = |start: usize| {
            let end = self
                .input
                .cell_num
                .min(start.saturating_add(tile.min(self.texts)));
            let cells: Vec<u32> = (start..end).filter_map(|i| u32::try_from(i).ok()).collect();
            self.piece(&cells)
        };
        starts(self.input.cell_num, tile).map(piece).collect()
    }

    /// The beginnings of tiles.
    fn cut(&self, tiles: &[Vec<FieldBuffer>]) -> Result<Vec<Vec<FieldBuffer>>> {
        let cut = |fields: &Vec<FieldBuffer>| {
            let fields = self.shapes.iter().zip(fields);
            let cut = |(shape, buffer): (&FieldShape, &FieldBuffer)| {
                let cells = match shape.is_var() {
                    true => buffer.offsets.len().saturating_sub(1),
                    false => buffer.data.len() / shape.cell_size().max(1),
                };
                let all: Vec<u32> = (0..cells.min(self.texts) as u32).collect();
                self.gathered(shape, &buffer.view(shape, cells), &all)
            };
            fields.map(cut).collect()
        };
        tiles.iter().map(cut).collect()
    }

    fn piece(&self, cells: &[u32]) -> Result<Vec<FieldBuffer>> {
        let fields = self.shapes.iter().zip(&self.input.fields);
        fields
            .map(|(shape, view)| self.gathered(shape, view, cells))
            .collect()
    }

    /// A field of the first of some cells, as many as make a piece; of one that is larger than that its
    /// beginning.
    fn gathered(
        &self,
        shape: &FieldShape,
        view: &FieldView<'_>,
        cells: &[u32],
    ) -> Result<FieldBuffer> {
        let (most, piece) = match is_text(shape) {
            true => (self.texts, PIECE_BYTES * OF_TEXTS),
            false => (self.cells, PIECE_BYTES),
        };
        let cells = cells.get(..most).unwrap_or(cells);
        let mut buffer = FieldBuffer::default();
        let Some(offsets) = view.offsets else {
            let most = (piece / shape.cell_size().max(1)).max(1);
            buffer.gather(view, cells.get(..most).unwrap_or(cells))?;
            return Ok(buffer);
        };
        let (mut bytes, mut most) = (0u64, 0);
        for &cell in cells {
            let cell = cell as usize;
            let Some(&[start, end]) = offsets.get(cell..cell + 2) else {
                return Err(lacking());
            };
            bytes += end - start;
            if bytes > piece as u64 {
                break;
            }
            most += 1;
        }
        if most > 0 {
            buffer.gather(view, cells.get(..most).unwrap_or(cells))?;
            return Ok(buffer);
        }
        if let Some(&cell) = cells.first() {
            let data = view.cell(cell as usize);
            let size = shape.datatype.size().max(1);
            let len = data.len().min(piece) / size * size;
            buffer
                .data
                .extend_from_slice(data.get(..len).unwrap_or_default());
            buffer.offsets.extend([0, len as u64]);
            buffer.validity.extend(view.validity.map(|_| 1));
        }
        Ok(buffer)
    }
}

/// Whether a field's cells are texts, which can hold their own offsets.
fn is_text(shape: &FieldShape) -> bool {
    shape.is_var() && matches!(shape.datatype, Datatype::StringAscii | Datatype::StringUtf8)
}

/// Where tiles begin that are looked at, of `cells` in tiles of `tile`.
fn starts(cells: usize, tile: usize) -> impl Iterator<Item = usize> {
    let tiles = cells.div_ceil(tile.max(1));
    let pieces = tiles.min(PIECES);
    (0..pieces).map(move |i| i * tiles / pieces.max(1) * tile)
}

fn lacking() -> Error {
    Error::Internal("a column lacks cells that it was found to have".into())
}
