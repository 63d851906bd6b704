//! Bounds between batches as keys.

use super::{Column, KeyTile, Source, Word, total};
use crate::space::cell_order::{BoundPart, CellBound, text_key};

/// A bound in the making: what was packed so far, and whether it still agrees with the bound.
struct Packing {
    value: u128,
    /// The remaining columns may be anything: the value is the least key that is not below the
    /// bound.
    decided: bool,
    /// No key reaches the bound.
    above_all: bool,
}

/// The least key not below a bound, with `low` zero bits at its end; `None` if every key of the
/// batch is below it.
pub(super) fn key_of_bound<W: Word>(
    tiles: &[KeyTile<'_>],
    columns: &[Column],
    bound: &CellBound,
    low: u32,
) -> Option<W> {
    let mut parts = bound.parts().iter();
    let packing = pack_bound(tiles, columns, &mut parts);
    if packing.above_all {
        return None;
    }
    let width = total(columns);
    // One more than the highest key: the increment below may have carried out of the columns.
    if width < 128 && packing.value >> width != 0 {
        return None;
    }
    let high = (packing.value >> 64) as u64;
    #[expect(clippy::cast_possible_truncation, reason = "split in two halves")]
    let word = W::default()
        .append(if W::BITS > 64 { 64 } else { 0 }, high)
        .append(64.min(W::BITS), packing.value as u64);
    Some(shift(word, low))
}

fn shift<W: Word>(word: W, bits: u32) -> W {
    word.append(bits, 0)
}

fn pack_bound<'b>(
    tiles: &[KeyTile<'_>],
    columns: &[Column],
    parts: &mut impl Iterator<Item = &'b BoundPart>,
) -> Packing {
    let mut packing = Packing {
        value: 0,
        decided: false,
        above_all: false,
    };
    for column in columns {
        let most = if column.bits == 0 {
            0
        } else {
            u64::MAX >> (64 - column.bits)
        };
        let next = |packing: &mut Packing, place: Place| match place {
            Place::At(value) if value <= most => {
                packing.value = append(packing.value, column.bits, value);
            }
            Place::Before(value) if value <= most => {
                packing.value = append(packing.value, column.bits, value);
                packing.decided = true;
            }
            // All keys that agree so far are below the bound: continue with the next prefix.
            Place::At(_) | Place::Before(_) | Place::Above => match packing.value.checked_add(1) {
                Some(value) if packing.value != 0 || column_is_not_first(columns, column) => {
                    packing.value = append(value, column.bits, 0);
                    packing.decided = true;
                }
                _ => packing.above_all = true,
            },
        };
        if packing.decided {
            packing.value = append(packing.value, column.bits, 0);
            continue;
        }
        if let Source::Fold {
            inner, distinct, ..
        } = &column.source
        {
            let inside = pack_bound(tiles, inner, parts);
            let place = if inside.above_all {
                Place::Above
            } else {
                let rank = distinct.partition_point(|d| *d < inside.value);
                let exact = !inside.decided && distinct.get(rank) == Some(&inside.value);
                if exact {
                    Place::At(rank as u64)
                } else {
                    Place::rank(rank, distinct.len())
                }
            };
            next(&mut packing, place);
        } else {
            let place = match (parts.next(), &column.source) {
                (None, _) => Place::Before(0),
                (Some(BoundPart::Infinity), _) => Place::Above,
                (
                    Some(BoundPart::Number(n)),
                    Source::Ordinal { base, .. } | Source::TileIndex { base, .. },
                ) => n.checked_sub(*base).map_or(Place::Before(0), Place::At),
                (Some(BoundPart::Number(n)), Source::Place { split, .. }) => {
                    Place::At(split.place(*n))
                }
                (Some(BoundPart::Number(n)), Source::Hilbert(_)) => Place::At(*n),
                // The bound is that of a cell, which has these coordinates if it is at this
                // position.
                (Some(BoundPart::Number(_)), Source::Implied) => Place::At(0),
                (
                    Some(BoundPart::Text(key)),
                    Source::Text {
                        dimension,
                        distinct,
                        ..
                    },
                ) => {
                    let text = |&(tile, cell): &(u32, u32)| {
                        let view = tiles
                            .get(tile as usize)
                            .and_then(|t| t.coordinates.get(*dimension));
                        text_key(view.map_or(&[], |view| view.cell(cell as usize)))
                    };
                    let rank = distinct.partition_point(|at| text(at) < *key);
                    let exact = distinct.get(rank).is_some_and(|at| text(at) == *key);
                    if exact {
                        Place::At(rank as u64)
                    } else {
                        Place::rank(rank, distinct.len())
                    }
                }
                (Some(_), _) => Place::Before(0),
            };
            next(&mut packing, place);
        }
        if packing.above_all {
            break;
        }
    }
    packing
}

/// Where a bound lies among the values of a column.
enum Place {
    /// At this value.
    At(u64),
    /// Below this value and above the one before.
    Before(u64),
    /// Above all values.
    Above,
}

impl Place {
    fn rank(rank: usize, len: usize) -> Self {
        if rank < len {
            Self::Before(rank as u64)
        } else {
            Self::Above
        }
    }
}

fn append(value: u128, bits: u32, low: u64) -> u128 {
    if bits >= 128 {
        u128::from(low)
    } else {
        value << bits | u128::from(low)
    }
}

fn column_is_not_first(columns: &[Column], column: &Column) -> bool {
    columns
        .first()
        .is_some_and(|first| !std::ptr::eq(first, column))
}
