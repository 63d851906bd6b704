//! From batches of cells to tiles of the size that a fragment keeps.

use crate::column::{ColumnBuffers, ColumnBuilder, ColumnSet, FieldView};
use crate::error::{Error, Result};
use crate::read::FillCell;
use crate::space::tile_grid::TileGrid;
use crate::write::{FragmentSink, TileView};
use std::ops::Range;

/// The tiles that cells are cut into.
#[derive(Debug)]
pub(super) enum Shapes {
    /// Sparse: this many cells each.
    Capacity(usize),
    /// Dense: space tiles, one after another.
    Space(Box<SpaceTiles>),
}

/// The space tiles of a dense fragment in tile order, each with the part of it that cells come for.
#[derive(Debug)]
pub(super) struct SpaceTiles {
    grid: TileGrid,
    /// First and last offset of what is read, along each dimension.
    read: Vec<(u64, u64)>,
    first: Vec<u64>,
    last: Vec<u64>,
    /// The tile that comes next, `None` after the last.
    next: Option<Vec<u64>>,
    fills: Vec<FillCell>,
}

/// Part of a space tile.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TilePart {
    /// First cell along each dimension, within the tile.
    start: Vec<u64>,
    /// Cells along each dimension.
    len: Vec<u64>,
}

impl SpaceTiles {
    /// The tiles of a box of offsets that is whole tiles but where it is cut by what can be read.
    pub fn new(grid: TileGrid, read: Vec<(u64, u64)>, fills: Vec<FillCell>) -> Self {
        let first: Vec<u64> = grid
            .axes()
            .iter()
            .zip(&read)
            .map(|(axis, (start, _))| axis.tile_of(*start))
            .collect();
        let last = grid
            .axes()
            .iter()
            .zip(&read)
            .map(|(axis, (_, end))| axis.tile_of(*end))
            .collect();
        Self {
            next: Some(first.clone()),
            grid,
            read,
            first,
            last,
            fills,
        }
    }

    /// The part of the next tile that cells come for.
    fn part(&self) -> Option<TilePart> {
        let tile = self.next.as_ref()?;
        let mut part = TilePart {
            start: Vec::new(),
            len: Vec::new(),
        };
        for (d, axis) in self.grid.axes().iter().enumerate() {
            let (start, end) = (
                axis.tile_start(*tile.get(d)?)?,
                axis.tile_end(*tile.get(d)?)?,
            );
            let (low, high) = *self.read.get(d)?;
            let (low, high) = (start.max(low), end.min(high));
            part.start.push(low - start);
            part.len.push(high.checked_sub(low)? + 1);
        }
        Some(part)
    }

    fn advance(&mut self) {
        let Some(tile) = &mut self.next else { return };
        for &d in self.grid.tile_order().iter().rev() {
            let (Some(at), Some(first), Some(last)) =
                (tile.get_mut(d), self.first.get(d), self.last.get(d))
            else {
                continue;
            };
            if *at < *last {
                *at += 1;
                return;
            }
            *at = *first;
        }
        self.next = None;
    }

    /// A whole tile out of the cells of its part; the other cells hold the fill value.
    fn expand(&self, part: &TilePart, columns: Vec<ColumnBuffers>) -> Result<Vec<ColumnBuffers>> {
        let order = self.grid.cell_order();
        let extents: Vec<u64> = order.iter().map(|d| self.grid.extents()[*d]).collect();
        let start: Vec<u64> = order.iter().map(|d| part.start[*d]).collect();
        let len: Vec<u64> = order.iter().map(|d| part.len[*d]).collect();
        let Some((&row_extent, outer)) = extents.split_last() else {
            return Ok(columns);
        };
        let (row_start, row_len) = (start[outer.len()] as usize, len[outer.len()] as usize);
        let rows: u64 = outer.iter().product();
        let mut expanded = Vec::with_capacity(columns.len());
        for (column, fill) in columns.iter().zip(&self.fills) {
            let view = column.view();
            let mut builder = ColumnBuilder::new(column.column_type.clone());
            let mut taken = 0;
            for row in 0..rows {
                let (mut rest, mut inside) = (row, true);
                for (d, extent) in outer.iter().enumerate().rev() {
                    let at = rest % extent;
                    rest /= extent;
                    inside &= start[d] <= at && at < start[d] + len[d];
                }
                if !inside {
                    builder.append_repeated(&fill.bytes, fill.valid, row_extent as usize);
                    continue;
                }
                builder.append_repeated(&fill.bytes, fill.valid, row_start);
                builder.append_view(&view, taken..taken + row_len)?;
                taken += row_len;
                builder.append_repeated(
                    &fill.bytes,
                    fill.valid,
                    row_extent as usize - row_start - row_len,
                );
            }
            expanded.push(builder.finish());
        }
        Ok(expanded)
    }
}

impl Shapes {
    /// Cells that the next tile takes; `None` after the last tile.
    fn cells(&self) -> Option<usize> {
        match self {
            Self::Capacity(cells) => Some(*cells),
            Self::Space(tiles) => {
                let part = tiles.part()?;
                usize::try_from(
                    part.len
                        .iter()
                        .try_fold(1u64, |n, len| n.checked_mul(*len))?,
                )
                .ok()
            }
        }
    }

    /// Whether the next tile has other cells than come for it.
    fn is_cut(&self) -> bool {
        match self {
            Self::Capacity(_) => false,
            Self::Space(tiles) => tiles
                .part()
                .is_none_or(|part| part.len != tiles.grid.extents()),
        }
    }

    /// The next tile's cells, whole, from those that came; then the one after it is next.
    fn finish(&mut self, columns: Vec<ColumnBuffers>) -> Result<Vec<ColumnBuffers>> {
        match self {
            Self::Capacity(_) => Ok(columns),
            Self::Space(tiles) => {
                let part = tiles.part();
                let cut = part.filter(|part| part.len != tiles.grid.extents());
                let whole = match cut {
                    Some(part) => tiles.expand(&part, columns)?,
                    None => columns,
                };
                tiles.advance();
                Ok(whole)
            }
        }
    }

    fn skip(&mut self) {
        if let Self::Space(tiles) = self {
            tiles.advance();
        }
    }
}

/// Cuts batches into tiles and pushes them.
#[derive(Debug)]
pub(super) struct Tiler {
    shapes: Shapes,
    /// Cells of a tile that is not whole yet.
    begun: Option<Vec<ColumnBuilder>>,
    /// Bytes of tiles pushed at a time.
    push_limit: usize,
}

/// Cells of one tile.
enum TilerPiece {
    Slice(Range<usize>),
    Built(Vec<ColumnBuffers>),
}

impl Tiler {
    pub fn new(shapes: Shapes, push_limit: usize) -> Self {
        Self {
            shapes,
            begun: None,
            push_limit: push_limit.max(1),
        }
    }

    /// Cuts a batch, and gives its whole tiles to `push`, some at a time with their bytes.
    pub fn add(
        &mut self,
        batch: &ColumnSet,
        push: &mut dyn FnMut(&[TileView<'_>], u64) -> Result<()>,
    ) -> Result<()> {
        let mut pieces: Vec<TilerPiece> = Vec::new();
        let mut bytes = 0u64;
        let mut at = 0;
        let cell_bytes = batch.memory_size() / batch.cell_num.max(1);
        while at < batch.cell_num {
            let cells = self
                .shapes
                .cells()
                .filter(|cells| *cells > 0)
                .ok_or_else(|| Error::Internal("more cells than the tiles take".into()))?;
            let have = self
                .begun
                .as_ref()
                .and_then(|columns| columns.first())
                .map_or(0, |c| c.cell_num);
            let take = (cells - have).min(batch.cell_num - at);
            if take == cells && !self.shapes.is_cut() {
                pieces.push(TilerPiece::Slice(at..at + take));
                self.shapes.skip();
                bytes += (take * cell_bytes) as u64;
            } else {
                let begun = self.begun.get_or_insert_with(|| {
                    batch
                        .columns
                        .iter()
                        .map(|c| ColumnBuilder::new(c.column_type.clone()))
                        .collect()
                });
                for (builder, column) in begun.iter_mut().zip(&batch.columns) {
                    builder.append_view(&column.view(), at..at + take)?;
                }
                if have + take == cells {
                    let built = self.begun.take().unwrap_or_default();
                    let whole = self
                        .shapes
                        .finish(built.into_iter().map(ColumnBuilder::finish).collect())?;
                    bytes += whole.iter().map(|c| c.memory_size() as u64).sum::<u64>();
                    pieces.push(TilerPiece::Built(whole));
                }
            }
            at += take;
            if bytes >= self.push_limit as u64 {
                send(batch, &pieces, bytes, push)?;
                pieces.clear();
                bytes = 0;
            }
        }
        send(batch, &pieces, bytes, push)
    }

    /// Gives the last tile to `push`, if there is one that is not whole.
    pub fn finish(
        mut self,
        push: &mut dyn FnMut(&[TileView<'_>], u64) -> Result<()>,
    ) -> Result<()> {
        if let Some(begun) = self.begun.take() {
            if matches!(self.shapes, Shapes::Space(_)) {
                return Err(Error::Internal("fewer cells than the tiles take".into()));
            }
            let built: Vec<ColumnBuffers> = begun.into_iter().map(ColumnBuilder::finish).collect();
            let bytes = built.iter().map(|c| c.memory_size() as u64).sum();
            send(
                &ColumnSet::default(),
                &[TilerPiece::Built(built)],
                bytes,
                push,
            )?;
        }
        Ok(())
    }
}

fn send(
    batch: &ColumnSet,
    pieces: &[TilerPiece],
    bytes: u64,
    push: &mut dyn FnMut(&[TileView<'_>], u64) -> Result<()>,
) -> Result<()> {
    let mut tiles = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let fields: Vec<FieldView<'_>> = match piece {
            TilerPiece::Slice(cells) => batch
                .columns
                .iter()
                .map(|column| {
                    let cut = column.view().slice(cells.clone());
                    cut.ok_or_else(|| Error::Internal("a batch lacks cells".into()))
                })
                .collect::<Result<_>>()?,
            TilerPiece::Built(columns) => columns.iter().map(ColumnBuffers::view).collect(),
        };
        let cell_num = fields.first().map_or(0, |field| field.cell_num as u64);
        tiles.push(TileView {
            cell_num,
            fields,
            written: None,
        });
    }
    if tiles.is_empty() {
        Ok(())
    } else {
        push(&tiles, bytes)
    }
}

/// Pushes tiles into a sink, one at a time where the fragment is about to reach `limit` bytes.
/// Returns how many went in before it would have grown beyond it: the others belong into the next
/// fragment.
pub(super) fn push_within(
    sink: &mut FragmentSink,
    tiles: &[TileView<'_>],
    bytes: u64,
    limit: Option<u64>,
    ratio: f64,
) -> Result<usize> {
    let Some(limit) = limit else {
        sink.push(tiles)?;
        return Ok(tiles.len());
    };
    let stored = |bytes: u64| (bytes as f64 * ratio) as u64;
    if sink.stored_size().saturating_add(stored(bytes)) <= limit {
        sink.push(tiles)?;
        return Ok(tiles.len());
    }
    let each = bytes / tiles.len().max(1) as u64;
    for (done, tile) in tiles.iter().enumerate() {
        if sink.tile_num() > 0 && sink.stored_size().saturating_add(stored(each)) > limit {
            return Ok(done);
        }
        sink.push(std::slice::from_ref(tile))?;
    }
    Ok(tiles.len())
}
