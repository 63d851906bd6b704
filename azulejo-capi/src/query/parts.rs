//! The parts that the reference divides a dense selection into when it is estimated not to fit the
//! caller's buffers: pure arithmetic over offsets from the start of the domain.
//!
//! Whole ranges are taken while they fit. A single range that does not is halved along the first
//! dimension of the layout that has more than one coordinate; in global order it is first cut where
//! tiles end. Several ranges count in the layout's order, and a part of them is a slab: all ranges
//! of the fastest dimension.

#[cfg(test)]
mod tests;

use crate::error::Result;

/// Offsets of the first and the last coordinate.
pub type Span = (u64, u64);

/// Ranges along each dimension.
pub type Part = Vec<Vec<Span>>;

/// How a selection is walked through.
#[derive(Debug, Clone)]
pub struct Walk {
    /// Dimensions from the slowest to the fastest of the cells of one box.
    pub cells: Vec<usize>,
    /// In global order: dimensions from the slowest to the fastest of the tiles, and tile extents.
    pub tiles: Option<(Vec<usize>, Vec<u64>)>,
}

/// What is known of a part before it is read.
pub trait Estimate {
    /// Whether the ranges, each a box, fit together with those that were added since `clear`.
    fn add(&mut self, ranges: &[Span]) -> Result<bool>;
    /// Forgets what was added.
    fn clear(&mut self);
    /// Whether a part fits, cells that nobody wrote included.
    fn fits(&mut self, part: &Part) -> Result<bool>;
}

/// The part that is being read.
#[derive(Debug, Clone)]
struct Current {
    part: Part,
    /// Boxes of the selection that it is made of, by their number.
    first: u64,
    last: u64,
    /// Whether it came of dividing a part with several ranges.
    divided: bool,
}

/// What pieces were divided from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pieces {
    /// One box of the selection.
    Box,
    /// A slab of several.
    Slab,
}

/// How far the walk is.
#[derive(Debug)]
pub struct Parts {
    walk: Walk,
    ranges: Part,
    /// The first box that no part has yet.
    start: u64,
    /// Pieces of one box that are left, the next one last.
    single: Vec<Part>,
    /// Pieces of a slab that are left, the next one last.
    multi: Vec<Part>,
    current: Option<Current>,
    /// The current part could not be divided further: it comes again.
    again: bool,
}

/// The number of cells of a part.
pub fn cells(part: &Part) -> u64 {
    let along = part.iter().map(|ranges| {
        let lengths = ranges.iter().map(|(low, high)| high - low + 1);
        lengths.fold(0, u64::saturating_add)
    });
    along.fold(1, u64::saturating_mul)
}

fn is_unary(part: &Part) -> bool {
    part.iter()
        .all(|ranges| matches!(ranges.as_slice(), [(low, high)] if low == high))
}

fn is_box(part: &Part) -> bool {
    part.iter().all(|ranges| ranges.len() == 1)
}

/// The two sides of a box that ends along a dimension at an offset.
fn cut(part: &Part, dimension: usize, at: u64) -> Option<(Part, Part)> {
    let (mut left, mut right) = (part.clone(), part.clone());
    left.get_mut(dimension)?.first_mut()?.1 = at;
    right.get_mut(dimension)?.first_mut()?.0 = at + 1;
    Some((left, right))
}

impl Parts {
    /// At the start of a selection that has cells.
    pub fn new(walk: Walk, ranges: Part) -> Self {
        Self {
            walk,
            ranges,
            start: 0,
            single: Vec::new(),
            multi: Vec::new(),
            current: None,
            again: false,
        }
    }

    fn num(&self, dimension: usize) -> u64 {
        self.ranges.get(dimension).map_or(1, |r| r.len() as u64)
    }

    /// The number of boxes: combinations of ranges.
    pub fn box_num(&self) -> u64 {
        (0..self.ranges.len())
            .map(|d| self.num(d))
            .fold(1, u64::saturating_mul)
    }

    /// The cells of the selection; `None` if they cannot be counted.
    pub fn whole(&self) -> Option<u64> {
        Some(cells(&self.ranges)).filter(|cells| *cells < u64::MAX)
    }

    /// Which range along each dimension a box has.
    fn place(&self, mut number: u64) -> Vec<u64> {
        let mut at = vec![0; self.ranges.len()];
        for d in self.walk.cells.iter().rev() {
            if let Some(at) = at.get_mut(*d) {
                *at = number % self.num(*d);
            }
            number /= self.num(*d);
        }
        at
    }

    fn number(&self, place: &[u64]) -> u64 {
        let at = |d: &usize| place.get(*d).copied().unwrap_or(0);
        (self.walk.cells.iter()).fold(0, |number, d| number * self.num(*d) + at(d))
    }

    fn one_box(&self, number: u64) -> Vec<Span> {
        let along = self.ranges.iter().zip(self.place(number));
        along
            .filter_map(|(ranges, at)| ranges.get(usize::try_from(at).ok()?).copied())
            .collect()
    }

    /// The slab from one box to another.
    fn slab(&self, first: u64, last: u64) -> Part {
        let ends = self.place(first).into_iter().zip(self.place(last));
        let along = self.ranges.iter().zip(ends);
        along
            .map(|(ranges, (first, last))| {
                let (first, last) = (
                    usize::try_from(first).unwrap_or(usize::MAX),
                    usize::try_from(last).unwrap_or(usize::MAX),
                );
                ranges.get(first..=last).unwrap_or_default().to_vec()
            })
            .collect()
    }

    /// The next part, or the same again if it could not be divided; `None` at the end.
    pub fn next(&mut self, estimate: &mut impl Estimate) -> Result<Option<&Part>> {
        if !self.again {
            self.advance(estimate)?;
        }
        Ok(self.current.as_ref().map(|current| &current.part))
    }

    /// What follows the part was read: the next one comes.
    pub fn done(&mut self) {
        self.again = false;
    }

    /// The current part did not fit: the first piece of it, or `None` if it cannot be divided.
    pub fn divide(&mut self, estimate: &mut impl Estimate) -> Result<Option<&Part>> {
        let Some(mut current) = self.current.take() else {
            return Ok(None);
        };
        let whole = if current.divided {
            true
        } else if current.first < current.last {
            // Seven tenths of the ranges.
            let count = (current.last - current.first + 1) as f64 * (1.0 - 0.3);
            current.last = current.first + (count as u64).max(1) - 1;
            let within = self.calibrate(current.first, &mut current.last);
            if within {
                self.start = current.last + 1;
                current.part = self.slab(current.first, current.last);
                self.current = Some(current);
                return Ok(self.current.as_ref().map(|current| &current.part));
            }
            true
        } else {
            false
        };
        if whole {
            if self.multi.is_empty() {
                self.start = current.first;
            }
            self.multi.push(current.part.clone());
            let divided = self.divide_next(Pieces::Slab);
            self.take(Pieces::Slab, current.first, current.last, divided, estimate)?;
        } else {
            if self.single.is_empty() {
                self.start = self.start.saturating_sub(1);
            }
            self.single.push(current.part.clone());
            let divided = self.divide_next(Pieces::Box);
            self.take(Pieces::Box, current.first, current.last, divided, estimate)?;
        }
        let part = self.current.as_ref().map(|current| &current.part);
        Ok(part.filter(|_| !self.again))
    }

    fn advance(&mut self, estimate: &mut impl Estimate) -> Result<()> {
        let (first, last) = (self.current.as_ref()).map_or((0, 0), |c| (c.first, c.last));
        if !self.single.is_empty() {
            return self.take(Pieces::Box, first, last, true, estimate);
        }
        if !self.multi.is_empty() {
            return self.take(Pieces::Slab, first, last, true, estimate);
        }
        let end = self.box_num();
        if self.start >= end {
            self.current = None;
            return Ok(());
        }
        let first = self.start;
        let mut next = first;
        estimate.clear();
        while next < end && estimate.add(&self.one_box(next))? {
            next += 1;
        }
        let found = next > first;
        if !found && self.walk.tiles.is_some() {
            self.single.push(self.slab(first, first));
            let divided = self.divide_next(Pieces::Box);
            return self.take(Pieces::Box, first, first, divided, estimate);
        }
        let mut last = if found { next - 1 } else { first };
        let within = self.calibrate(first, &mut last);
        if found && within {
            self.current = Some(Current {
                part: self.slab(first, last),
                first,
                last,
                divided: false,
            });
            self.start = last + 1;
            return Ok(());
        }
        self.multi.push(self.slab(first, last));
        let divided = self.divide_next(Pieces::Slab);
        self.take(Pieces::Slab, first, last, divided, estimate)
    }

    /// Takes the next piece, divided until it fits or is one cell.
    fn take(
        &mut self,
        of: Pieces,
        first: u64,
        last: u64,
        mut divided: bool,
        estimate: &mut impl Estimate,
    ) -> Result<()> {
        while divided && !top_fits(self.pieces(of), estimate)? {
            divided = self.divide_next(of);
        }
        let Some(part) = self.pieces(of).pop() else {
            return Ok(());
        };
        self.again = !divided;
        self.current = Some(Current {
            part,
            first,
            last,
            divided: of == Pieces::Slab,
        });
        if self.pieces(of).is_empty() {
            self.start = match of {
                Pieces::Box => self.start + 1,
                Pieces::Slab => last + 1,
            };
        }
        Ok(())
    }

    fn pieces(&mut self, of: Pieces) -> &mut Vec<Part> {
        match of {
            Pieces::Box => &mut self.single,
            Pieces::Slab => &mut self.multi,
        }
    }

    /// Divides the next piece; whether it could be.
    fn divide_next(&mut self, of: Pieces) -> bool {
        let halves = match of {
            Pieces::Box => self.single.last().and_then(|part| self.halves(part)),
            Pieces::Slab => self.multi.last().and_then(|part| self.portions(part)),
        };
        replace(self.pieces(of), halves)
    }

    /// The two portions of a slab; `None` for a cell.
    fn portions(&self, part: &Part) -> Option<(Part, Part)> {
        if is_box(part) {
            return self.halves(part);
        }
        let dimension = self.walk.cells.iter().copied().find(|d| {
            let ranges = part.get(*d).map(Vec::as_slice);
            !matches!(ranges, Some([(low, high)]) if low == high)
        })?;
        let ranges = part.get(dimension)?;
        if let [(low, high)] = ranges.as_slice() {
            return cut(part, dimension, low + (high - low) / 2);
        }
        let (left, right) = ranges.split_at((ranges.len() - 1) / 2 + 1);
        let with = |ranges: &[Span]| {
            let mut part = part.clone();
            *part.get_mut(dimension)? = ranges.to_vec();
            Some(part)
        };
        with(left).zip(with(right))
    }

    /// The halves of a box; `None` for a cell.
    fn halves(&self, part: &Part) -> Option<(Part, Part)> {
        if is_unary(part) {
            return None;
        }
        let span = |d: usize| part.get(d)?.first().copied();
        if let Some((dimensions, extents)) = &self.walk.tiles {
            for d in dimensions.iter().copied() {
                let ((low, high), extent) = span(d).zip(extents.get(d).copied())?;
                let apart = high / extent - low / extent;
                if apart != 0 {
                    let middle = low.saturating_add((apart / 2).max(1) * extent);
                    return cut(part, d, middle / extent * extent - 1);
                }
            }
        }
        let dimension = (self.walk.cells.iter().copied())
            .find(|d| span(*d).is_some_and(|(low, high)| low < high))?;
        let (low, high) = span(dimension)?;
        cut(part, dimension, low + (high - low) / 2)
    }

    /// Brings the last box of a part to where a slab ends; `false` if it must then be divided.
    fn calibrate(&self, first: u64, last: &mut u64) -> bool {
        if self.walk.tiles.is_some() {
            return true;
        }
        let (start, mut end) = (self.place(first), self.place(*last));
        let order = &self.walk.cells;
        let at = |place: &[u64], d: usize| place.get(d).copied().unwrap_or(0);
        for (level, major) in order.iter().enumerate() {
            let minor = order.get(level + 1..).unwrap_or_default();
            if minor.is_empty() {
                break;
            }
            let begins = minor.iter().all(|d| at(&start, *d) == 0);
            let ends = minor.iter().all(|d| at(&end, *d) == self.num(*d) - 1);
            let fill = |end: &mut Vec<u64>| {
                for d in minor {
                    if let Some(end) = end.get_mut(*d) {
                        *end = self.num(*d) - 1;
                    }
                }
            };
            let (low, high) = (at(&start, *major), at(&end, *major));
            if begins && ends {
                break;
            }
            if begins && low < high {
                if let Some(end) = end.get_mut(*major) {
                    *end -= 1;
                }
                fill(&mut end);
                break;
            }
            if !begins && low < high {
                if let Some(end) = end.get_mut(*major) {
                    *end = low;
                }
                fill(&mut end);
            }
        }
        let mut within = true;
        if let (true, Some(fastest)) = (order.len() > 1, order.last()) {
            let most = self.num(*fastest) - 1;
            if let Some(end) = end.get_mut(*fastest)
                && *end != most
            {
                *end = most;
                within = false;
            }
        }
        *last = self.number(&end);
        within
    }
}

fn top_fits(pieces: &[Part], estimate: &mut impl Estimate) -> Result<bool> {
    match pieces.last() {
        Some(part) => estimate.fits(part),
        None => Ok(true),
    }
}

/// Puts halves in the place of the last piece, if there are any.
fn replace(pieces: &mut Vec<Part>, halves: Option<(Part, Part)>) -> bool {
    let Some((left, right)) = halves else {
        return false;
    };
    pieces.pop();
    pieces.push(right);
    pieces.push(left);
    true
}
