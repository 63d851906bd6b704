//! Columns of numbers, packed into keys block by block.

use super::row_selection::{KeyTile, RowSelection};
use super::word::Word;
use crate::column::FieldView;
use crate::space::cell_order::{CellOrder, TileSplit};
use crate::space::ordinal::Ordinal;
use azulejo_format::dispatch;

/// One column of numbers.
#[derive(Debug)]
pub(super) struct KeyColumn {
    pub(super) bits: u32,
    pub(super) source: KeySource,
}

#[derive(Debug)]
pub(super) enum KeySource {
    /// Ordinals of a dimension, counted from `base`.
    Ordinal { dimension: usize, base: u64 },
    /// Indices of space tiles along a dimension, counted from `base`.
    TileIndex {
        dimension: usize,
        split: TileSplit,
        base: u64,
    },
    /// Places within the space tile along a dimension whose tile index comes before.
    Place { dimension: usize, split: TileSplit },
    /// Positions on the Hilbert curve, by tile and cell, counted from `base`.
    Hilbert { positions: Vec<Vec<u64>>, base: u64 },
    /// Coordinates that are equal wherever the columns before are.
    Implied,
    /// Ranks of strings, by tile and cell; `distinct` are the strings in order, each by tile and
    /// cell.
    Text {
        dimension: usize,
        ranks: Vec<Vec<u32>>,
        distinct: Vec<(u32, u32)>,
    },
}

/// Cells that get keys together, and the columns of these.
pub(super) struct KeyInput<'a> {
    pub(super) order: &'a CellOrder,
    pub(super) tiles: &'a [KeyTile<'a>],
    pub(super) columns: &'a [KeyColumn],
}

impl KeyInput<'_> {
    /// The first `prefix` bits of the columns of a tile's cells; `behind` them may append more to the
    /// keys of some cells, of which the first is the tile's selected cell of that number.
    ///
    /// For example x from 5 to 8 takes 2 bits and y from 100 to 131 takes 5; two tiles of 1,000
    /// cells take 1 and 10 more. The cell at (6, 103), the seventh of the second tile, has the key
    /// 01 00011 1 0000000110.
    pub(super) fn pack<W: Word>(
        &self,
        t: usize,
        prefix: u32,
        behind: &dyn Fn(usize, &Block<'_>, &mut [W]),
    ) -> Vec<W> {
        let Some(tile) = self.tiles.get(t) else {
            return Vec::new();
        };
        let cells = tile.rows.len();
        let mut out = Vec::with_capacity(cells);
        // Block by block through all columns: what was written last is still in the fastest cache.
        while out.len() < cells {
            let first = out.len();
            out.resize(cells.min(first + BLOCK), W::default());
            let out = out.get_mut(first..).unwrap_or_default();
            let block = Block::of(tile.rows, first, out.len());
            let mut left = prefix;
            for column in self.columns {
                let taken = column.bits.min(left);
                left -= taken;
                if taken > 0 {
                    let shape = (taken, column.bits - taken);
                    pack_column(self.order, column, t, tile, (first, &block), shape, out);
                }
            }
            behind(first, &block, out);
        }
        out
    }

    /// How many columns lie in the first `prefix` bits with all of theirs: the others tell apart
    /// what these bits do not.
    pub(super) fn whole_columns(&self, prefix: u32) -> usize {
        let mut sum = 0;
        let whole = self.columns.iter().take_while(|column| {
            sum += column.bits;
            sum <= prefix
        });
        whole.count()
    }

    /// The number of a cell, by its place among the selected ones of its tile, in a column.
    pub(super) fn number(&self, column: &KeyColumn, (t, i): (usize, usize)) -> u64 {
        let mut number = [0u64];
        if let Some(tile) = self.tiles.get(t) {
            let block = Block::of(tile.rows, i, 1);
            pack_column(
                self.order,
                column,
                t,
                tile,
                (i, &block),
                (column.bits, 0),
                &mut number,
            );
        }
        number[0]
    }
}

#[inline]
pub(super) fn value<T: Ordinal>(data: &[u8], cell: usize) -> T {
    T::read(data.get(cell * T::SIZE..).unwrap_or(&[]))
}

/// Cells whose keys are packed at a time.
const BLOCK: usize = if cfg!(test) { 3 } else { 512 };

/// Some of the selected cells of a tile.
pub(super) enum Block<'a> {
    /// From this one on.
    All(usize),
    /// These.
    List(&'a [u32]),
}

impl<'a> Block<'a> {
    /// `len` of the selected cells of a tile, from the `first` on.
    fn of(rows: &'a RowSelection, first: usize, len: usize) -> Self {
        match rows {
            RowSelection::All(_) => Self::All(first),
            RowSelection::List(list) => {
                Self::List(list.get(first..first + len).unwrap_or_default())
            }
        }
    }

    /// Calls `f` with each item of `out` and its cell.
    #[inline]
    pub(super) fn for_each<W>(&self, out: &mut [W], mut f: impl FnMut(&mut W, usize)) {
        match self {
            Self::All(first) => out
                .iter_mut()
                .enumerate()
                .for_each(|(i, out)| f(out, first + i)),
            Self::List(list) => out
                .iter_mut()
                .zip(*list)
                .for_each(|(out, &cell)| f(out, cell as usize)),
        }
    }
}

/// Appends the leading bits of a column's numbers to the keys of a block, whose first is the tile's
/// selected cell `first`: so many bits, after so many at the end were dropped.
fn pack_column<W: Word>(
    order: &CellOrder,
    column: &KeyColumn,
    t: usize,
    tile: &KeyTile<'_>,
    (first, block): (usize, &Block<'_>),
    (bits, drop): (u32, u32),
    out: &mut [W],
) {
    fn mapped<T: Ordinal, W: Word>(
        out: &mut [W],
        view: FieldView<'_>,
        block: &Block<'_>,
        bits: u32,
        map: impl Fn(T) -> u64,
    ) {
        match block {
            Block::All(first) => {
                let values = view
                    .data
                    .get(first * T::SIZE..)
                    .unwrap_or_default()
                    .chunks_exact(T::SIZE);
                for (out, value) in out.iter_mut().zip(values) {
                    *out = out.append(bits, map(T::read(value)));
                }
            }
            Block::List(_) => block.for_each(out, |out, cell| {
                *out = out.append(bits, map(value::<T>(view.data, cell)));
            }),
        }
    }
    fn given<W: Word, V: Copy + Into<u64>>(
        out: &mut [W],
        values: Option<&Vec<V>>,
        first: usize,
        bits: u32,
        map: impl Fn(u64) -> u64,
    ) {
        let values = values
            .and_then(|values| values.get(first..))
            .unwrap_or_default();
        for (out, value) in out.iter_mut().zip(values) {
            *out = out.append(bits, map((*value).into()));
        }
    }
    let of = |dimension: &usize| {
        let of = order.dimensions().get(*dimension)?;
        Some((of.datatype.physical(), *tile.coordinates.get(*dimension)?))
    };
    match &column.source {
        KeySource::Ordinal { dimension, base } => {
            let Some((physical, view)) = of(dimension) else {
                return;
            };
            dispatch!(physical, T => mapped::<T, W>(out, view, block, bits, |v| (v.ordinal() - base) >> drop));
        }
        KeySource::TileIndex {
            dimension,
            split,
            base,
        } => {
            let Some((physical, view)) = of(dimension) else {
                return;
            };
            dispatch!(physical, T => mapped::<T, W>(out, view, block, bits, |v| (split.index(v) - base) >> drop));
        }
        KeySource::Place { dimension, split } => {
            let Some((physical, view)) = of(dimension) else {
                return;
            };
            dispatch!(physical, T => mapped::<T, W>(out, view, block, bits, |v| split.place(v.ordinal()) >> drop));
        }
        KeySource::Implied => {}
        KeySource::Hilbert { positions, base } => {
            given(out, positions.get(t), first, bits, |v| (v - base) >> drop);
        }
        KeySource::Text { ranks, .. } => given(out, ranks.get(t), first, bits, |v| v >> drop),
    }
}
