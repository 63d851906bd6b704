//! Sort keys: the cells of a batch as integers whose order is the cells' order.
//!
//! Each segment of the order gives a column of numbers: coordinates and tile indices counted from
//! the least in the batch, positions on the Hilbert curve, strings by their rank among those of the
//! batch. The columns are packed into one integer a cell, the deciding one on top; behind them
//! follow the cell's tile and its place in it, so that an integer alone says which cell it is, and
//! equal coordinates keep the order of the tiles. Where the columns do not fit, a key holds their
//! leading bits, and behind them the rank of its cell among the few that share these ([`ties`]).

mod bound;
mod text;
mod ties;

use crate::column::FieldView;
use crate::error::{Error, Result};
use crate::space::cell_order::{CellBound, CellOrder, DimensionOrder, Segment, TileSplit};
use crate::space::hilbert::HilbertCurve;
use crate::space::ordinal::Ordinal;
use azulejo_format::dispatch;
use bound::Limit;
use rayon::prelude::*;
use text::rank_strings;
use ties::Ties;

/// Which cells of a tile take part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowSelection {
    /// The first this many: all of the tile's.
    All(u32),
    /// These, ascending.
    List(Vec<u32>),
}

impl RowSelection {
    /// Number of cells.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::All(n) => *n as usize,
            Self::List(list) => list.len(),
        }
    }

    /// One byte for each of `cells` cells: whether it takes part.
    pub(crate) fn mask(&self, cells: usize) -> Vec<u8> {
        let Self::List(list) = self else {
            return vec![1; cells];
        };
        let mut mask = vec![0; cells];
        for &cell in list {
            if let Some(m) = mask.get_mut(cell as usize) {
                *m = 1;
            }
        }
        mask
    }

    /// Of as many cells as there are flags those that have `true`.
    pub(crate) fn flagged(flags: impl ExactSizeIterator<Item = bool>) -> Self {
        let cells = flags.len();
        let mut list = vec![0; cells];
        let mut count = 0;
        // Without a branch: whether a cell is selected is hard to foresee.
        for (cell, flag) in (0u32..).zip(flags) {
            if let Some(place) = list.get_mut(count) {
                *place = cell;
            }
            count += usize::from(flag);
        }
        if count == cells {
            return Self::All(u32::try_from(cells).unwrap_or(u32::MAX));
        }
        list.truncate(count);
        list.shrink_to_fit();
        Self::List(list)
    }

    /// The cells whose bytes are not 0.
    pub(crate) fn of_mask(mask: &[u8]) -> Self {
        let count = mask.iter().filter(|m| **m != 0).count();
        if count > mask.len() / 16 {
            return Self::flagged(mask.iter().map(|m| *m != 0));
        }
        // Most words are 0.
        let mut list = Vec::with_capacity(count);
        let (words, rest) = mask.as_chunks::<8>();
        let mut first = 0;
        for word in words.iter().map(<[u8; 8]>::as_slice).chain([rest]) {
            if word != [0; 8] {
                list.extend(
                    (first..)
                        .zip(word)
                        .filter(|(_, m)| **m != 0)
                        .map(|(cell, _)| cell),
                );
            }
            first += 8;
        }
        if mask.is_empty() {
            Self::All(0)
        } else {
            Self::List(list)
        }
    }

    /// Calls `f` with the place in the output and the cell, for each cell.
    #[inline]
    fn for_each(&self, mut f: impl FnMut(usize, usize)) {
        match self {
            Self::All(n) => (0..*n as usize).for_each(|i| f(i, i)),
            Self::List(list) => list
                .iter()
                .enumerate()
                .for_each(|(i, &cell)| f(i, cell as usize)),
        }
    }
}

/// A tile whose cells get keys.
#[derive(Debug, Clone)]
pub(crate) struct KeyTile<'a> {
    /// Coordinates by dimension.
    pub(crate) coordinates: Vec<FieldView<'a>>,
    /// The cells that take part.
    pub(crate) rows: &'a RowSelection,
    /// What stands for the tile in keys; less means first among cells of equal coordinates.
    pub(crate) slot: u32,
}

/// An unsigned integer that keys are packed in.
pub(crate) trait Word:
    Copy + Ord + Send + Sync + Default + std::fmt::Debug + 'static
{
    /// Its width.
    const BITS: u32;
    /// `self` with `bits` bits more at the bottom, which hold `value`; the top bits that fall out
    /// are 0.
    fn append(self, bits: u32, value: u64) -> Self;
    /// The value without its last `bits` bits.
    fn drop_low(self, bits: u32) -> Self;
    /// The last `bits` bits, at most 64.
    fn low(self, bits: u32) -> u64;
    /// How many low bits to drop such that `bits` bits remain below those that both words share.
    fn common_shift(self, other: Self, bits: u32) -> u32;
}

impl Word for u64 {
    const BITS: u32 = 64;
    #[inline]
    fn append(self, bits: u32, value: u64) -> Self {
        if bits >= 64 {
            value
        } else {
            self << bits | value
        }
    }
    #[inline]
    fn drop_low(self, bits: u32) -> Self {
        if bits >= 64 { 0 } else { self >> bits }
    }
    #[inline]
    fn low(self, bits: u32) -> u64 {
        if bits >= 64 {
            self
        } else {
            self & ((1 << bits) - 1)
        }
    }
    #[inline]
    fn common_shift(self, other: Self, bits: u32) -> u32 {
        (Self::BITS - (self ^ other).leading_zeros()).saturating_sub(bits)
    }
}

impl Word for u128 {
    const BITS: u32 = 128;
    #[inline]
    fn append(self, bits: u32, value: u64) -> Self {
        self << bits | Self::from(value)
    }
    #[inline]
    fn drop_low(self, bits: u32) -> Self {
        self >> bits
    }
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
    fn low(self, bits: u32) -> u64 {
        (self as u64).low(bits)
    }
    #[inline]
    fn common_shift(self, other: Self, bits: u32) -> u32 {
        (Self::BITS - (self ^ other).leading_zeros()).saturating_sub(bits)
    }
}

/// How cells are written in the low bits of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellBits {
    /// Bits of the slot.
    pub(crate) slot: u32,
    /// Bits of the place in the tile.
    pub(crate) place: u32,
}

impl CellBits {
    /// Enough for these tiles.
    fn of(tiles: &[KeyTile<'_>]) -> Self {
        let slots = tiles.iter().map(|t| u64::from(t.slot)).max().unwrap_or(0);
        let places = tiles.iter().map(|t| match t.rows {
            RowSelection::All(n) => u64::from(n.saturating_sub(1)),
            RowSelection::List(list) => list.last().map_or(0, |&last| u64::from(last)),
        });
        Self {
            slot: width(slots),
            place: width(places.max().unwrap_or(0)),
        }
    }

    /// All low bits.
    pub(crate) const fn total(self) -> u32 {
        self.slot + self.place
    }

    /// Slot and place of a key.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "both were u32 when they were packed"
    )]
    pub(crate) fn cell<W: Word>(self, key: W) -> (u32, u32) {
        (
            key.drop_low(self.place).low(self.slot) as u32,
            key.low(self.place) as u32,
        )
    }
}

/// Keys of each tile, in the order of its cells.
#[derive(Debug)]
pub(crate) enum Keys {
    /// In 64 bits.
    Narrow(Vec<Vec<u64>>),
    /// In 128 bits.
    Wide(Vec<Vec<u128>>),
}

/// The keys of a batch and how to read them.
#[derive(Debug)]
pub(crate) struct KeySet {
    /// The keys, by tile.
    pub(crate) keys: Keys,
    /// Their low bits.
    pub(crate) cell_bits: CellBits,
    /// Whether a string holds a byte that is no ASCII: its order is not that of the R-tree's
    /// bounds.
    pub(crate) non_ascii: bool,
}

/// Bits that a number takes.
fn width(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// One column of numbers.
#[derive(Debug)]
struct KeyColumn {
    bits: u32,
    source: KeySource,
}

#[derive(Debug)]
enum KeySource {
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

/// Makes the keys of tiles, those within `[from, to)` if bounds are given.
pub(crate) fn build(
    order: &CellOrder,
    tiles: &[KeyTile<'_>],
    from: Option<&CellBound>,
    to: Option<&CellBound>,
) -> Result<KeySet> {
    let cell_bits = CellBits::of(tiles);
    let mut non_ascii = false;
    let columns = columns(order, tiles, &mut non_ascii)?;
    let batch = KeyInput {
        order,
        tiles,
        columns: &columns,
    };
    let all = total(&columns);
    let room = |bits: u32| bits.checked_sub(cell_bits.total());
    let narrow = match room(u64::BITS) {
        Some(room) if all <= room => Some(Ties::none(all)),
        Some(room) => ties::find_few::<u64>(&batch, room),
        None => None,
    };
    let bounds = [from, to];
    let keys = match narrow {
        Some(ties) => Keys::Narrow(batch.keys(&ties, cell_bits, bounds)),
        None => {
            let room = room(u128::BITS).unwrap_or(0);
            let ties = if all <= room {
                Ties::none(all)
            } else {
                ties::find::<u128>(&batch, room)
            };
            Keys::Wide(batch.keys(&ties, cell_bits, bounds))
        }
    };
    Ok(KeySet {
        keys,
        cell_bits,
        non_ascii,
    })
}

/// Cells that get keys together, and the columns of these.
struct KeyInput<'a> {
    order: &'a CellOrder,
    tiles: &'a [KeyTile<'a>],
    columns: &'a [KeyColumn],
}

impl KeyInput<'_> {
    /// The keys of each tile's cells that lie within `[from, to)`, as far as bounds are given.
    fn keys<W: Word>(
        &self,
        ties: &Ties,
        bits: CellBits,
        [from, to]: [Option<&CellBound>; 2],
    ) -> Vec<Vec<W>> {
        let limit = |bound: &CellBound| Limit::<W>::new(self, bound, ties.prefix());
        let (from, to) = (from.map(limit), to.map(limit));
        let low = bits.total() + ties.bits();
        let of_tile = |t: usize| {
            let mut keys = self.pack(t, ties.prefix(), Some((ties, bits)));
            if from.is_some() || to.is_some() {
                let mut i = 0;
                keys.retain(|key: &W| {
                    let lead = key.drop_low(low);
                    let below = |limit: &Limit<W>| limit.is_above(self, lead, (t, i));
                    let within =
                        !from.as_ref().is_some_and(&below) && to.as_ref().is_none_or(&below);
                    i += 1;
                    within
                });
            }
            keys
        };
        (0..self.tiles.len()).into_par_iter().map(of_tile).collect()
    }

    /// The first `prefix` bits of the columns of a tile's cells; behind them, if asked for, the
    /// ranks of ties and the cells themselves.
    fn pack<W: Word>(&self, t: usize, prefix: u32, behind: Option<(&Ties, CellBits)>) -> Vec<W> {
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
            if let Some((ties, bits)) = behind {
                ties.append(t, first, out);
                let slot = u64::from(tile.slot);
                block.for_each(out, |out, cell| {
                    *out = out.append(bits.slot, slot).append(bits.place, cell as u64);
                });
            }
        }
        out
    }

    /// How many columns lie in the first `prefix` bits with all of theirs: the others tell apart
    /// what these bits do not.
    fn whole_columns(&self, prefix: u32) -> usize {
        let mut sum = 0;
        let whole = self.columns.iter().take_while(|column| {
            sum += column.bits;
            sum <= prefix
        });
        whole.count()
    }

    /// The number of a cell, by its place among the selected ones of its tile, in a column.
    fn number(&self, column: &KeyColumn, (t, i): (usize, usize)) -> u64 {
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

fn total(columns: &[KeyColumn]) -> u32 {
    columns.iter().map(|c| c.bits).sum()
}

/// Columns for the order's segments, as narrow as the cells allow.
fn columns(
    order: &CellOrder,
    tiles: &[KeyTile<'_>],
    non_ascii: &mut bool,
) -> Result<Vec<KeyColumn>> {
    let mut columns = Vec::with_capacity(order.segments().len());
    let mut tiled = vec![false; order.dimensions().len()];
    let unfit = || Error::Internal("an order does not fit its domain".into());
    let mut implied = false;
    for segment in order.segments() {
        let column = match *segment {
            Segment::Hilbert => {
                let curve = order.curve().ok_or_else(unfit)?;
                let positions = hilbert_positions(order, curve, tiles);
                let ends = positions
                    .par_iter()
                    .filter_map(|run| run.iter().copied().min().zip(run.iter().copied().max()))
                    .reduce_with(|a, b| (a.0.min(b.0), a.1.max(b.1)));
                let (base, most) = ends.unwrap_or((0, 0));
                implied = positions_imply_coordinates(order, curve, tiles);
                KeyColumn {
                    bits: width(most - base),
                    source: KeySource::Hilbert { positions, base },
                }
            }
            Segment::Tile(dimension) => {
                let of = order.dimensions().get(dimension).ok_or_else(unfit)?;
                let Some(split) = of.split else { continue };
                if let Some(tiled) = tiled.get_mut(dimension) {
                    *tiled = true;
                }
                let Some((base, most)) = extremes(of, dimension, tiles, Some(split)) else {
                    continue;
                };
                KeyColumn {
                    bits: width(most - base),
                    source: KeySource::TileIndex {
                        dimension,
                        split,
                        base,
                    },
                }
            }
            Segment::Coordinate(_) if implied => KeyColumn {
                bits: 0,
                source: KeySource::Implied,
            },
            Segment::Coordinate(dimension) => {
                let of = order.dimensions().get(dimension).ok_or_else(unfit)?;
                if of.is_string() {
                    let (ranks, distinct) = rank_strings(dimension, tiles, non_ascii);
                    let bits = width((distinct.len() as u64).saturating_sub(1));
                    columns.push(KeyColumn {
                        bits,
                        source: KeySource::Text {
                            dimension,
                            ranks,
                            distinct,
                        },
                    });
                    continue;
                }
                let Some((base, most)) = extremes(of, dimension, tiles, None) else {
                    continue;
                };
                match of.split {
                    Some(split @ TileSplit::Integer { extent, .. })
                        if tiled.get(dimension) == Some(&true)
                            && width(extent - 1) < width(most - base) =>
                    {
                        KeyColumn {
                            bits: width(extent - 1),
                            source: KeySource::Place { dimension, split },
                        }
                    }
                    _ => KeyColumn {
                        bits: width(most - base),
                        source: KeySource::Ordinal { dimension, base },
                    },
                }
            }
        };
        columns.push(column);
    }
    Ok(columns)
}

/// The least and greatest ordinal (or tile index) of the cells along a dimension; `None` without
/// cells.
fn extremes(
    of: &DimensionOrder,
    dimension: usize,
    tiles: &[KeyTile<'_>],
    split: Option<TileSplit>,
) -> Option<(u64, u64)> {
    fn of_tile<T: Ordinal>(view: FieldView<'_>, rows: &RowSelection) -> Option<(u64, u64)> {
        let (mut least, mut most) = (u64::MAX, 0);
        let values = view.data.chunks_exact(T::SIZE);
        match rows {
            RowSelection::All(n) => {
                for value in values.take(*n as usize) {
                    let ordinal = T::read(value).ordinal();
                    least = least.min(ordinal);
                    most = most.max(ordinal);
                }
            }
            RowSelection::List(list) => {
                for &cell in list {
                    let ordinal = value::<T>(view.data, cell as usize).ordinal();
                    least = least.min(ordinal);
                    most = most.max(ordinal);
                }
            }
        }
        (least <= most).then_some((least, most))
    }
    fn indices<T: Ordinal>(
        view: FieldView<'_>,
        rows: &RowSelection,
        split: TileSplit,
    ) -> Option<(u64, u64)> {
        // Of floats ordinals tell nothing about tiles.
        if matches!(split, TileSplit::Integer { .. })
            && let Some(found) = split.extremes(of_tile::<T>(view, rows)?)
        {
            return Some(found);
        }
        let (mut least, mut most) = (u64::MAX, 0);
        rows.for_each(|_, cell| {
            let index = split.index(value::<T>(view.data, cell));
            least = least.min(index);
            most = most.max(index);
        });
        (least <= most).then_some((least, most))
    }
    tiles
        .par_iter()
        .filter_map(|tile| {
            let view = *tile.coordinates.get(dimension)?;
            match split {
                None => dispatch!(of.datatype.physical(), T => of_tile::<T>(view, tile.rows)),
                Some(split) => {
                    dispatch!(of.datatype.physical(), T => indices::<T>(view, tile.rows, split))
                }
            }
        })
        .reduce_with(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

#[inline]
fn value<T: Ordinal>(data: &[u8], cell: usize) -> T {
    T::read(data.get(cell * T::SIZE..).unwrap_or(&[]))
}

/// Whether cells of one position on the curve have equal coordinates.
fn positions_imply_coordinates(
    order: &CellOrder,
    curve: HilbertCurve,
    tiles: &[KeyTile<'_>],
) -> bool {
    fn numbers<T: Ordinal>(low: &[u8], high: &[u8]) -> (f64, f64) {
        (T::read(low).as_f64(), T::read(high).as_f64())
    }
    let whole = order
        .dimensions()
        .iter()
        .all(|of| !of.is_string() && of.datatype.physical().is_integer());
    let domains = order.dimensions().iter().map(|of| {
        let (low, high) = of.domain.as_ref()?;
        Some(dispatch!(of.datatype.physical(), T => numbers::<T>(low, high)))
    });
    let domains: Option<Vec<(f64, f64)>> = domains.collect();
    whole
        && domains.is_some_and(|domains| curve.tells_apart(domains.into_iter()))
        && order.dimensions().iter().enumerate().all(|(d, of)| {
            let Some((low, high)) = &of.domain else {
                return false;
            };
            extremes(of, d, tiles, None)
                .is_none_or(|(least, most)| of.ordinal(low) <= least && most <= of.ordinal(high))
        })
}

/// Cells whose positions are computed at a time, dimension by dimension.
const POSITIONS: usize = 1024;

fn hilbert_positions(
    order: &CellOrder,
    curve: HilbertCurve,
    tiles: &[KeyTile<'_>],
) -> Vec<Vec<u64>> {
    fn buckets<T: Ordinal>(
        curve: HilbertCurve,
        of: &DimensionOrder,
        view: FieldView<'_>,
        cells: impl Iterator<Item = usize>,
        out: &mut [u64],
    ) {
        let domain = of
            .domain
            .as_ref()
            .map_or((T::LOWEST, T::HIGHEST), |(low, high)| {
                (T::read(low), T::read(high))
            });
        for (out, cell) in out.iter_mut().zip(cells) {
            *out = curve.number_bucket(value::<T>(view.data, cell), domain);
        }
    }
    fn column(
        curve: HilbertCurve,
        of: &DimensionOrder,
        view: FieldView<'_>,
        cells: impl Iterator<Item = usize>,
        out: &mut [u64],
    ) {
        if of.is_string() {
            for (out, cell) in out.iter_mut().zip(cells) {
                *out = curve.string_bucket(view.cell(cell));
            }
        } else {
            dispatch!(of.datatype.physical(), T => buckets::<T>(curve, of, view, cells, out));
        }
    }
    let of_tile = |tile: &KeyTile<'_>| {
        let mut positions = vec![0u64; tile.rows.len()];
        let mut columns =
            vec![vec![0u64; POSITIONS.min(positions.len())]; order.dimensions().len()];
        for (piece, out) in positions.chunks_mut(POSITIONS).enumerate() {
            let first = piece * POSITIONS;
            let dimensions = order.dimensions().iter().zip(&tile.coordinates);
            for ((of, view), buckets) in dimensions.zip(&mut columns) {
                match tile.rows {
                    RowSelection::All(_) => {
                        column(curve, of, *view, first..first + out.len(), buckets);
                    }
                    RowSelection::List(list) => {
                        let cells = list.iter().skip(first).map(|&cell| cell as usize);
                        column(curve, of, *view, cells.take(out.len()), buckets);
                    }
                }
            }
            curve.positions(&columns, out);
        }
        positions
    };
    tiles.par_iter().map(of_tile).collect()
}

/// Cells whose keys are packed at a time.
const BLOCK: usize = if cfg!(test) { 3 } else { 512 };

/// Some of the selected cells of a tile.
enum Block<'a> {
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
    fn for_each<W>(&self, out: &mut [W], mut f: impl FnMut(&mut W, usize)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Layout;
    use azulejo_format::{ArraySchema, Datatype};
    use proptest::prelude::*;

    /// Three real dimensions, whose coordinates do not fit in a key together.
    fn order(cell_order: Layout) -> CellOrder {
        let new = ["x", "y", "z"]
            .iter()
            .fold(ArraySchema::sparse(), |new, name| {
                new.dimension(*name, -1000.0..=1000.0, 2000.0)
            });
        let new = new.attribute("a", Datatype::Int32).allows_duplicates(true);
        let schema = new.cell_order(cell_order).build().unwrap().schema;
        CellOrder::new(&schema, Layout::Global)
    }

    /// Numbers that crowd: some differ in their last bits alone, some are far from the rest.
    fn coordinate() -> impl Strategy<Value = f64> {
        (0usize..4, 0u64..40).prop_map(|(at, step)| {
            let start: f64 = [-1000.0, 0.1, 0.1, 999.0][at];
            f64::from_bits(start.to_bits() + step)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn keys_order_cells_that_crowd(
            hilbert: bool,
            tiles in proptest::collection::vec(
                proptest::collection::vec(([coordinate(), coordinate(), coordinate()], any::<bool>()), 1..60),
                1..4,
            ),
            all: bool,
            bounds in [proptest::option::of([coordinate(), coordinate(), coordinate()]), proptest::option::of([coordinate(), coordinate(), coordinate()])],
        ) {
            let order = order(if hilbert { Layout::Hilbert } else { Layout::RowMajor });
            let bound_of = |cell: &[f64; 3]| {
                let cell = cell.map(f64::to_le_bytes);
                order.cell_bound(&[&cell[0], &cell[1], &cell[2]])
            };
            let columns: Vec<[Vec<u8>; 3]> = tiles.iter().map(|tile| [0, 1, 2].map(|d| {
                tile.iter().flat_map(|(cell, _)| cell[d].to_le_bytes()).collect()
            })).collect();
            let rows: Vec<RowSelection> = tiles.iter().map(|tile| {
                RowSelection::flagged(tile.iter().map(|(_, wanted)| all || *wanted))
            }).collect();
            let key_tiles: Vec<KeyTile<'_>> = (0..tiles.len()).map(|t| KeyTile {
                coordinates: columns[t].iter().map(|data| FieldView {
                    cell_num: tiles[t].len(),
                    data,
                    offsets: None,
                    validity: None,
                    cell_size: 8,
                }).collect(),
                rows: &rows[t],
                slot: t as u32,
            }).collect();
            let [from, to] = bounds.each_ref().map(|bound| bound.as_ref().map(bound_of));
            let set = build(&order, &key_tiles, from.as_ref(), to.as_ref()).unwrap();

            let mut expected: Vec<(CellBound, (u32, u32))> = Vec::new();
            for (t, tile) in tiles.iter().enumerate() {
                rows[t].for_each(|_, cell| {
                    let bound = bound_of(&tile[cell].0);
                    if from.as_ref().is_none_or(|from| bound >= *from) && to.as_ref().is_none_or(|to| bound < *to) {
                        expected.push((bound, (t as u32, cell as u32)));
                    }
                });
            }
            expected.sort();
            fn sorted<W: Word>(keys: &[Vec<W>], bits: CellBits) -> Vec<((u32, u32), W)> {
                let mut keys = keys.concat();
                keys.sort();
                keys.into_iter().map(|key| (bits.cell(key), key.drop_low(bits.total()))).collect()
            }
            let total = set.cell_bits.total();
            let found: Vec<((u32, u32), u128)> = match set.keys {
                Keys::Narrow(keys) => sorted(&keys, set.cell_bits).into_iter().map(|(cell, key)| (cell, key.into())).collect(),
                Keys::Wide(keys) => sorted(&keys, set.cell_bits),
            };
            prop_assert!(total < 64);
            prop_assert_eq!(found.iter().map(|(cell, _)| *cell).collect::<Vec<_>>(), expected.iter().map(|(_, cell)| *cell).collect::<Vec<_>>());
            for (found, expected) in found.windows(2).zip(expected.windows(2)) {
                prop_assert_eq!(found[0].1 == found[1].1, expected[0].0 == expected[1].0);
            }
        }
    }
}
