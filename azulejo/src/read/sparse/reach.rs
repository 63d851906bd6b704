//! How far some bytes of cells reach, judging by the bounds of the tiles that hold them.
//!
//! Cells are taken to lie evenly between the bounds of their tile. Bounds are compared number after
//! number, and so a place between them is looked for: a row of space tiles may hold too much
//! already, then it is one of its columns, or the first coordinates in one.

use super::plan::PlannedTile;
use crate::space::cell_bound::{BoundPart, CellBound};
use crate::space::first_where;

/// A bound above `from` such that the cells from there up to it take about `target` bytes; `None` if
/// the tiles' bounds do not say.
///
/// For example tiles of 10 bytes from 0 to 9, 0 to 9 and 5 to 14: 15 bytes reach up to 6, below
/// which there are 7 of each of the first two and 2 of the third.
pub(super) fn next_bound(
    tiles: &[&PlannedTile],
    from: Option<&CellBound>,
    target: u64,
) -> Option<CellBound> {
    let reach = Reach::new(tiles)?;
    let from = from.map(numbers);
    let before = from.as_ref().map_or(0.0, |from| reach.below(from));
    let most = before + target as f64;
    let mut place: Vec<u64> = Vec::new();
    for &(low, high) in &reach.ranges {
        let at = |n: u64| [place.as_slice(), &[n]].concat();
        // The last place below which there is no more than that. The first one of all is behind
        // this place itself.
        let behind = first_where(low..high, |n| reach.below(&at(n + 1)) > most);
        place = at(behind);
        let left = most - reach.below(&place);
        if left < target as f64 / 16.0 {
            break;
        }
    }
    let is_behind = |place: &[u64]| from.as_ref().is_none_or(|from| place > from.as_slice());
    if !is_behind(&place) || reach.below(&place) <= before {
        // So little reaches nowhere: one step further.
        let last = place.last_mut()?;
        *last = last.checked_add(1)?;
    }
    is_behind(&place).then(|| CellBound::of_numbers(&place))
}

/// The leading numbers of a bound.
fn numbers(bound: &CellBound) -> Vec<u64> {
    let parts = bound.parts().map_while(|part| match part {
        BoundPart::Number(n) => Some(n),
        BoundPart::Text(_) | BoundPart::Infinity => None,
    });
    parts.collect()
}

/// Tiles between places that are lists of numbers.
struct Reach {
    spans: Vec<TileSpan>,
    /// The least and greatest number that tiles have at each place of their bounds.
    ranges: Vec<(u64, u64)>,
}

struct TileSpan {
    low: Vec<u64>,
    /// The first number in which the two bounds differ.
    split: usize,
    /// What lies between them from there on.
    from: f64,
    to: f64,
    bytes: f64,
}

impl Reach {
    fn new(tiles: &[&PlannedTile]) -> Option<Self> {
        let bounds = tiles.iter().map(|tile| {
            let (low, high) = (numbers(&tile.lower), numbers(&tile.upper));
            (low, high, tile.decoded as f64)
        });
        let bounds: Vec<_> = bounds.collect();
        let depth = bounds
            .iter()
            .map(|(low, high, _)| low.len().min(high.len()));
        let depth = depth.min().filter(|depth| *depth > 0)?;
        let range = |place: usize| {
            let numbers = bounds.iter().flat_map(|(low, high, _)| [low, high]);
            let numbers = || numbers.clone().filter_map(|n| n.get(place).copied());
            Some((numbers().min()?, numbers().max()?))
        };
        let ranges: Vec<(u64, u64)> = (0..depth).map_while(range).collect();
        let mut reach = Self {
            spans: Vec::with_capacity(bounds.len()),
            ranges,
        };
        for (mut low, high, bytes) in bounds {
            low.truncate(depth);
            let same = low.iter().zip(&high).take_while(|(a, b)| a == b).count();
            let split = same.min(depth - 1);
            let from = reach.value(&low, split, 0.0);
            // Behind all that begins with it.
            let to = reach.value(high.get(..depth)?, split, 1.0).max(from);
            reach.spans.push(TileSpan {
                low,
                split,
                from,
                to,
                bytes,
            });
        }
        Some(reach)
    }

    /// Numbers from one on as a single one: whole is the first of them, the others are fractions of
    /// their ranges. `rest` stands for what follows the last.
    fn value(&self, place: &[u64], first: usize, rest: f64) -> f64 {
        let ranges = self.ranges.iter().enumerate().skip(first).rev();
        ranges.fold(rest, |rest, (at, &(low, high))| {
            let Some(&n) = place.get(at) else { return 0.0 };
            if at == first {
                return n as f64 + rest;
            }
            (n.saturating_sub(low) as f64 + rest) / ((high - low) as f64 + 1.0)
        })
    }

    /// Bytes of the cells below a place.
    fn below(&self, place: &[u64]) -> f64 {
        let bytes = self.spans.iter().map(|span| {
            let before = place.iter().zip(&span.low).take(span.split);
            let order = before.map(|(a, b)| a.cmp(b)).find(|order| order.is_ne());
            match order {
                Some(std::cmp::Ordering::Less) => 0.0,
                Some(_) => span.bytes,
                None if place.len() <= span.split => 0.0,
                None => {
                    let at = self.value(place, span.split, 0.0);
                    let all = (span.to - span.from).max(f64::MIN_POSITIVE);
                    span.bytes * ((at - span.from) / all).clamp(0.0, 1.0)
                }
            }
        });
        bytes.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(low: &[u64], high: &[u64], bytes: u64) -> PlannedTile {
        PlannedTile {
            part: 0,
            tile: 0,
            cell_num: 1,
            dimensions: Vec::new(),
            tests: Vec::new(),
            no_results: false,
            cost: 0,
            decoded: bytes,
            lower: CellBound::of_numbers(low),
            upper: CellBound::of_numbers(high),
        }
    }

    fn reach(tiles: &[PlannedTile], from: Option<&[u64]>, target: u64) -> Option<CellBound> {
        let tiles: Vec<&PlannedTile> = tiles.iter().collect();
        let from = from.map(CellBound::of_numbers);
        next_bound(&tiles, from.as_ref(), target)
    }

    fn at(numbers: &[u64]) -> Option<CellBound> {
        Some(CellBound::of_numbers(numbers))
    }

    #[test]
    fn cells_lie_evenly_between_bounds() {
        let tiles = [
            tile(&[0], &[9], 10),
            tile(&[0], &[9], 10),
            tile(&[5], &[14], 10),
        ];
        assert_eq!(reach(&tiles, None, 15), at(&[6]));
        assert_eq!(reach(&tiles, Some(&[6]), 9), at(&[9]));
        assert_eq!(reach(&tiles, None, 100), at(&[14]), "all that is known");
        assert_eq!(reach(&tiles, Some(&[14]), 100), at(&[15]));
        assert_eq!(reach(&[], None, 100), None);
    }

    #[test]
    fn a_first_number_that_holds_too_much_is_divided() {
        let tiles = [tile(&[3, 0], &[3, 99], 1000), tile(&[3, 0], &[3, 99], 1000)];
        assert_eq!(reach(&tiles, None, 200), at(&[3, 10]));
        assert_eq!(reach(&tiles, Some(&[3, 10]), 200), at(&[3, 20]));
        // Over several rows: each of the three holds a third.
        let tiles = [tile(&[0, 0], &[2, 99], 3000)];
        assert_eq!(reach(&tiles, None, 1500), at(&[1, 50]));
        assert_eq!(reach(&tiles, None, 1000), at(&[1]));
    }

    #[test]
    fn every_step_is_one() {
        let tiles = [tile(&[0, 5], &[7, 5], 800), tile(&[3, 0], &[3, 9], 100_000)];
        for target in [0, 1, 10, 1000] {
            let mut from: Option<Vec<u64>> = None;
            for _ in 0..5 {
                let Some(to) = reach(&tiles, from.as_deref(), target) else {
                    break;
                };
                let to = numbers(&to);
                assert!(from.is_none_or(|from| to > from), "{target}");
                from = Some(to);
            }
        }
    }

    #[test]
    fn what_is_no_number_says_nothing() {
        let mut text = tile(&[0], &[9], 10);
        text.upper = CellBound::highest();
        assert_eq!(reach(&[text], None, 5), None);
    }
}
