//! Sort keys: the cells of a batch as integers whose order is the cells' order.
//!
//! Each segment of the order gives a column of numbers: coordinates and tile indices counted from
//! the least in the batch, positions on the Hilbert curve, strings by their rank among those of the
//! batch. The columns are packed into one integer a cell, the deciding one on top; behind them
//! follow the cell's tile and its place in it, so that an integer alone says which cell it is, and
//! equal coordinates keep the order of the tiles. Where the columns do not fit, a key holds their
//! leading bits, and behind them the rank of its cell among the few that share these ([`ties`]).

mod bound;
mod columns;
mod row_selection;
mod text;
mod ties;
mod word;

pub(crate) use row_selection::{KeyTile, RowSelection};
pub(crate) use word::{CellBits, Word};

use crate::column::FieldView;
use crate::error::{Error, Result};
use crate::space::cell_bound::CellBound;
use crate::space::cell_order::{CellOrder, DimensionOrder, Segment, TileSplit};
use crate::space::hilbert::HilbertCurve;
use crate::space::ordinal::Ordinal;
use azulejo_format::dispatch;
use bound::Limit;
use columns::{KeyColumn, KeyInput, KeySource, value};
use rayon::prelude::*;
use text::rank_strings;
use ties::Ties;
use word::width;

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

/// Makes the keys of tiles, those within `[from, to)` if bounds are given.
pub(crate) fn build(
    order: &CellOrder,
    tiles: &[KeyTile<'_>],
    from: Option<&CellBound>,
    to: Option<&CellBound>,
) -> Result<KeySet> {
    build_within(order, tiles, from, to, &|_| [true, true])
}

/// The same, where `cuts` says by slot whether each of the bounds is one for the cells of a tile.
pub(crate) fn build_within(
    order: &CellOrder,
    tiles: &[KeyTile<'_>],
    from: Option<&CellBound>,
    to: Option<&CellBound>,
    cuts: &(dyn Fn(u32) -> [bool; 2] + Sync),
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
    let bounds = KeyBounds { from, to, cuts };
    let room = |bits: u32| bits.checked_sub(cell_bits.total());
    let fits = |bits: u32| room(bits).is_some_and(|room| all <= room);
    // Looking for ties costs more than wide keys do: a merge drops what their leading bits share.
    let keys = if fits(u64::BITS) {
        Keys::Narrow(keys_of(&batch, &Ties::none(all), cell_bits, bounds))
    } else if fits(u128::BITS) {
        Keys::Wide(keys_of(&batch, &Ties::none(all), cell_bits, bounds))
    } else if let Some(ties) = room(u64::BITS).and_then(|room| ties::find_few::<u64>(&batch, room))
    {
        Keys::Narrow(keys_of(&batch, &ties, cell_bits, bounds))
    } else {
        let ties = ties::find::<u128>(&batch, room(u128::BITS).unwrap_or(0));
        Keys::Wide(keys_of(&batch, &ties, cell_bits, bounds))
    };
    Ok(KeySet {
        keys,
        cell_bits,
        non_ascii,
    })
}

/// Between which bounds cells have keys, and for which slots each of them counts.
#[derive(Clone, Copy)]
struct KeyBounds<'a> {
    from: Option<&'a CellBound>,
    to: Option<&'a CellBound>,
    cuts: &'a (dyn Fn(u32) -> [bool; 2] + Sync),
}

/// The keys of each tile's cells that lie within `[from, to)`, as far as bounds are given.
fn keys_of<W: Word>(
    input: &KeyInput<'_>,
    ties: &Ties,
    bits: CellBits,
    KeyBounds { from, to, cuts }: KeyBounds<'_>,
) -> Vec<Vec<W>> {
    let limit = |bound: &CellBound| Limit::<W>::new(input, bound, ties.prefix());
    let (from, to) = (from.map(limit), to.map(limit));
    let low = bits.total() + ties.bits();
    let of_tile = |t: usize| {
        let slot = input.tiles.get(t).map_or(0, |tile| u64::from(tile.slot));
        let mut keys = input.pack(t, ties.prefix(), &|first, block, out| {
            ties.append(t, first, out);
            block.for_each(out, |out: &mut W, cell| {
                *out = out.append(bits.slot, slot).append(bits.place, cell as u64);
            });
        });
        let [cut_below, cut_above] = input.tiles.get(t).map_or([true; 2], |tile| cuts(tile.slot));
        let from = from.as_ref().filter(|_| cut_below);
        let to = to.as_ref().filter(|_| cut_above);
        if from.is_some() || to.is_some() {
            let mut i = 0;
            keys.retain(|key: &W| {
                let lead = key.drop_low(low);
                let below = |limit: &Limit<W>| limit.is_above(input, lead, (t, i));
                let within = !from.is_some_and(below) && to.is_none_or(below);
                i += 1;
                within
            });
        }
        keys
    };
    (0..input.tiles.len())
        .into_par_iter()
        .map(of_tile)
        .collect()
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
