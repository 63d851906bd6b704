//! Sort keys: the cells of a batch as integers whose order is the cells' order.
//!
//! Each segment of the order gives a column of numbers: coordinates and tile indices counted from
//! the least in the batch, positions on the Hilbert curve, strings by their rank among those of the
//! batch. The columns are packed into one integer a cell, the deciding one on top; behind them
//! follow the cell's tile and its place in it, so that an integer alone says which cell it is, and
//! equal coordinates keep the order of the tiles. Where the columns do not fit in 128 bits, the
//! leading ones are replaced by the rank of their combination.

mod bound;
mod text;

use crate::column::FieldView;
use crate::error::{Error, Result};
use crate::space::cell_order::{CellBound, CellOrder, DimensionOrder, Segment, TileSplit};
use crate::space::hilbert::HilbertCurve;
use crate::space::ordinal::Ordinal;
use azulejo_format::dispatch;
use bound::key_of_bound;
use rayon::prelude::*;
use text::rank_strings;

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
        // Without a branch: whether a cell is taken is hard to foresee.
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
struct Column {
    bits: u32,
    source: Source,
}

#[derive(Debug)]
enum Source {
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
    /// Positions on the Hilbert curve, by tile and cell.
    Hilbert(Vec<Vec<u64>>),
    /// Coordinates that are equal wherever the columns before are.
    Implied,
    /// Ranks of strings, by tile and cell; `distinct` are the strings in order, each by tile and
    /// cell.
    Text {
        dimension: usize,
        ranks: Vec<Vec<u32>>,
        distinct: Vec<(u32, u32)>,
    },
    /// Ranks of the combinations of some columns.
    Fold {
        inner: Vec<Column>,
        ranks: Vec<Vec<u32>>,
        distinct: Vec<u128>,
    },
}

impl Column {
    /// Drops what only keys of bounds need.
    fn forget_combinations(&mut self) {
        if let Source::Fold {
            inner, distinct, ..
        } = &mut self.source
        {
            (*inner, *distinct) = (Vec::new(), Vec::new());
        }
    }
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
    let mut columns = columns(order, tiles, &mut non_ascii)?;
    while total(&columns) + cell_bits.total() > 128 {
        columns = fold(order, tiles, columns);
        if from.is_none() && to.is_none() {
            columns.iter_mut().for_each(Column::forget_combinations);
        }
    }
    fn keep<W: Word>(keys: &mut Vec<Vec<W>>, from: Option<Option<W>>, to: Option<Option<W>>) {
        if let Some(from) = from {
            keys.par_iter_mut()
                .for_each(|keys| keys.retain(|key| from.is_some_and(|from| *key >= from)));
        }
        if let Some(Some(to)) = to {
            keys.par_iter_mut()
                .for_each(|keys| keys.retain(|key| *key < to));
        }
    }
    fn all<W: Word>(
        order: &CellOrder,
        tiles: &[KeyTile<'_>],
        columns: &[Column],
        bits: CellBits,
        bounds: [Option<&CellBound>; 2],
    ) -> Vec<Vec<W>> {
        let mut keys: Vec<Vec<W>> = tiles
            .par_iter()
            .enumerate()
            .map(|(t, tile)| pack(order, columns, t, tile, Some(bits)))
            .collect();
        let limit = |bound: Option<&CellBound>| {
            bound.map(|b| key_of_bound(tiles, columns, b, bits.total()))
        };
        keep(&mut keys, limit(bounds[0]), limit(bounds[1]));
        keys
    }
    let narrow = total(&columns) + cell_bits.total() <= 64;
    let keys = if narrow {
        Keys::Narrow(all(order, tiles, &columns, cell_bits, [from, to]))
    } else {
        Keys::Wide(all(order, tiles, &columns, cell_bits, [from, to]))
    };
    Ok(KeySet {
        keys,
        cell_bits,
        non_ascii,
    })
}

fn total(columns: &[Column]) -> u32 {
    columns.iter().map(|c| c.bits).sum()
}

/// Columns for the order's segments, as narrow as the cells allow.
fn columns(order: &CellOrder, tiles: &[KeyTile<'_>], non_ascii: &mut bool) -> Result<Vec<Column>> {
    let mut columns = Vec::with_capacity(order.segments().len());
    let mut tiled = vec![false; order.dimensions().len()];
    let unfit = || Error::Internal("an order does not fit its domain".into());
    let mut implied = false;
    for segment in order.segments() {
        let column = match *segment {
            Segment::Hilbert => {
                let curve = order.curve().ok_or_else(unfit)?;
                let positions = hilbert_positions(order, curve, tiles);
                let most = positions
                    .par_iter()
                    .flat_map_iter(|run| run.iter().copied().max())
                    .max()
                    .unwrap_or(0);
                implied = positions_imply_coordinates(order, curve, tiles);
                Column {
                    bits: width(most),
                    source: Source::Hilbert(positions),
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
                Column {
                    bits: width(most - base),
                    source: Source::TileIndex {
                        dimension,
                        split,
                        base,
                    },
                }
            }
            Segment::Coordinate(_) if implied => Column {
                bits: 0,
                source: Source::Implied,
            },
            Segment::Coordinate(dimension) => {
                let of = order.dimensions().get(dimension).ok_or_else(unfit)?;
                if of.is_string() {
                    let (ranks, distinct) = rank_strings(dimension, tiles, non_ascii);
                    let bits = width((distinct.len() as u64).saturating_sub(1));
                    columns.push(Column {
                        bits,
                        source: Source::Text {
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
                        Column {
                            bits: width(extent - 1),
                            source: Source::Place { dimension, split },
                        }
                    }
                    _ => Column {
                        bits: width(most - base),
                        source: Source::Ordinal { dimension, base },
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

/// Packs the columns of one tile, with the cells in the low bits if asked for.
fn pack<W: Word>(
    order: &CellOrder,
    columns: &[Column],
    t: usize,
    tile: &KeyTile<'_>,
    bits: Option<CellBits>,
) -> Vec<W> {
    let cells = tile.rows.len();
    let mut out = Vec::with_capacity(cells);
    // Block by block through all columns: what was written last is still in the fastest cache.
    while out.len() < cells {
        let first = out.len();
        out.resize(cells.min(first + BLOCK), W::default());
        let out = out.get_mut(first..).unwrap_or_default();
        let rows = match tile.rows {
            RowSelection::All(_) => Block::All(first),
            RowSelection::List(list) => {
                Block::List(list.get(first..first + out.len()).unwrap_or_default())
            }
        };
        for column in columns.iter().filter(|column| column.bits > 0) {
            pack_column(order, column, t, tile, (first, &rows), out);
        }
        if let Some(bits) = bits {
            let slot = u64::from(tile.slot);
            rows.for_each(out, |out, cell| {
                *out = out.append(bits.slot, slot).append(bits.place, cell as u64);
            });
        }
    }
    out
}

/// Cells whose keys are packed at a time.
const BLOCK: usize = if cfg!(test) { 3 } else { 512 };

/// Some of the rows cells of a tile.
enum Block<'a> {
    /// From this one on.
    All(usize),
    /// These.
    List(&'a [u32]),
}

impl Block<'_> {
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

/// Appends a column's numbers to the keys of a block, whose first is the tile's rows cell
/// `first`.
fn pack_column<W: Word>(
    order: &CellOrder,
    column: &Column,
    t: usize,
    tile: &KeyTile<'_>,
    (first, block): (usize, &Block<'_>),
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
    ) {
        let values = values
            .and_then(|values| values.get(first..))
            .unwrap_or_default();
        for (out, value) in out.iter_mut().zip(values) {
            *out = out.append(bits, (*value).into());
        }
    }
    let bits = column.bits;
    let of = |dimension: &usize| {
        let of = order.dimensions().get(*dimension)?;
        Some((of.datatype.physical(), *tile.coordinates.get(*dimension)?))
    };
    match &column.source {
        Source::Ordinal { dimension, base } => {
            let Some((physical, view)) = of(dimension) else {
                return;
            };
            dispatch!(physical, T => mapped::<T, W>(out, view, block, bits, |v| v.ordinal() - base));
        }
        Source::TileIndex {
            dimension,
            split,
            base,
        } => {
            let Some((physical, view)) = of(dimension) else {
                return;
            };
            dispatch!(physical, T => mapped::<T, W>(out, view, block, bits, |v| split.index(v) - base));
        }
        Source::Place { dimension, split } => {
            let Some((physical, view)) = of(dimension) else {
                return;
            };
            dispatch!(physical, T => mapped::<T, W>(out, view, block, bits, |v| split.place(v.ordinal())));
        }
        Source::Implied => {}
        Source::Hilbert(positions) => given(out, positions.get(t), first, bits),
        Source::Text { ranks, .. } | Source::Fold { ranks, .. } => {
            given(out, ranks.get(t), first, bits);
        }
    }
}

/// Replaces as many leading columns as fit in 128 bits by the rank of their combination.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a batch has fewer than 2^32 cells"
)]
fn fold(order: &CellOrder, tiles: &[KeyTile<'_>], mut columns: Vec<Column>) -> Vec<Column> {
    let mut sum = 0;
    let fitting = columns.iter().take_while(|column| {
        sum += column.bits;
        sum <= 128
    });
    let rest = columns.split_off(fitting.count());
    let inner = columns;
    // Combinations are packed twice: that costs less than what holding them would take of memory.
    let packed = |t: usize, tile: &KeyTile<'_>| pack::<u128>(order, &inner, t, tile, None);
    let mut distinct = vec![0u128; tiles.iter().map(|tile| tile.rows.len()).sum()];
    let mut free = distinct.as_mut_slice();
    let mut places = Vec::with_capacity(tiles.len());
    for tile in tiles {
        let (place, later) = free.split_at_mut(tile.rows.len().min(free.len()));
        free = later;
        places.push(place);
    }
    places
        .into_par_iter()
        .zip(tiles)
        .enumerate()
        .for_each(|(t, (place, tile))| {
            for (place, number) in place.iter_mut().zip(packed(t, tile)) {
                *place = number;
            }
        });
    distinct.par_sort_unstable();
    distinct.dedup();
    let places = Places::of(&distinct);
    let ranks = |(t, tile)| {
        packed(t, tile)
            .into_iter()
            .map(|number| places.rank(number) as u32)
            .collect()
    };
    let ranks = tiles.par_iter().enumerate().map(ranks).collect();
    let bits = width((distinct.len() as u64).saturating_sub(1));
    let mut columns = vec![Column {
        bits,
        source: Source::Fold {
            inner,
            ranks,
            distinct,
        },
    }];
    columns.extend(rest);
    columns
}

/// Sorted distinct numbers, found by their leading bits.
struct Places<'a> {
    distinct: &'a [u128],
    least: u128,
    shift: u32,
    /// By leading bits of the distance from the least: how many numbers come before.
    starts: Vec<u32>,
}

impl<'a> Places<'a> {
    /// Bits of a distance that are looked up, at most; about as many as there are numbers.
    const MOST_BITS: u32 = 22;

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a batch has fewer than 2^32 cells; leading bits are few"
    )]
    fn of(distinct: &'a [u128]) -> Self {
        let least = distinct.first().copied().unwrap_or(0);
        let range = distinct.last().map_or(0, |most| most - least);
        let bits = width(distinct.len() as u64).min(Self::MOST_BITS);
        let shift = (u128::BITS - range.leading_zeros()).saturating_sub(bits);
        let mut starts = Vec::with_capacity((range >> shift) as usize + 2);
        for (i, number) in distinct.iter().enumerate() {
            let lead = ((number - least) >> shift) as usize;
            if lead >= starts.len() {
                starts.resize(lead + 1, i as u32);
            }
        }
        starts.push(distinct.len() as u32);
        Self {
            distinct,
            least,
            shift,
            starts,
        }
    }

    /// The place of one of the numbers.
    #[inline]
    fn rank(&self, number: u128) -> usize {
        let lead = (number.wrapping_sub(self.least) >> self.shift) as usize;
        let start = self.starts.get(lead).map_or(0, |start| *start as usize);
        let end = self
            .starts
            .get(lead + 1)
            .map_or(self.distinct.len(), |end| *end as usize);
        start
            + self
                .distinct
                .get(start..end)
                .map_or(0, |some| some.partition_point(|d| *d < number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_found_where_they_are(
            numbers in proptest::collection::btree_set(any::<u128>(), 1..50),
            shift in 0u32..128,
        ) {
            let mut numbers: Vec<u128> = numbers.into_iter().map(|n| n >> shift).collect();
            numbers.dedup();
            let places = Places::of(&numbers);
            for (i, number) in numbers.iter().enumerate() {
                prop_assert_eq!(places.rank(*number), i);
            }
        }
    }
}
