//! The Hilbert curve as a finite automaton: some bits of every dimension a step.
//!
//! Skilling's transposition works from the highest bits down: what it has done to those above is,
//! to the bits below, an exchange of axes and an inversion of some. These are the automaton's
//! states; few can be reached. A step looks up what the next bits of all dimensions become, and the
//! state behind them.

use std::sync::OnceLock;

/// Most dimensions that there is a table for: with more, that of single bits no longer fits in the
/// nearest cache.
const MOST: usize = 4;

/// What the bits above have done to those below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CurveState {
    /// Which dimension lies on each axis.
    axes: [u8; MOST],
    /// Whether the bits of an axis are inverted.
    inverted: [bool; MOST],
    /// Whether the bits of the result are.
    odd: bool,
}

impl CurveState {
    const FIRST: Self = Self {
        axes: [0, 1, 2, 3],
        inverted: [false; MOST],
        odd: false,
    };

    /// One bit a dimension becomes one bit a dimension of the position, the first dimension's on
    /// top.
    fn step(mut self, dims: usize, bits: u32) -> (Self, u32) {
        let mut axes = [false; MOST];
        for ((axis, of), inverted) in axes.iter_mut().zip(self.axes).zip(self.inverted) {
            *axis = (bits >> (dims - 1).saturating_sub(usize::from(of)) & 1 != 0) != inverted;
        }
        // The exchanges and inversions that these bits ask for, as in `HilbertCurve::transpose`.
        let ([first_inverted, ..], [first, ..]) = (&mut self.inverted, axes);
        *first_inverted ^= first;
        for (axis, set) in axes.iter().enumerate().take(dims).skip(1) {
            if *set {
                self.inverted[0] ^= true;
            } else {
                self.axes.swap(0, axis);
                self.inverted.swap(0, axis);
            }
        }
        let (mut sum, mut out) = (self.odd, 0);
        for axis in axes.iter().take(dims) {
            sum ^= axis;
            out = out << 1 | u32::from(sum);
        }
        // The first axis counts in every bit of the result, and what comes of its inversion does
        // not depend on it: that is the result's.
        self.odd = sum ^ self.inverted[0];
        self.inverted[0] = false;
        (self, out)
    }
}

/// The automaton of a number of dimensions.
#[derive(Debug)]
pub(super) struct Table {
    /// Bits of a dimension that a step takes.
    step: u32,
    /// By state and bits, those of each dimension together and the first dimension's on top: the
    /// bits of the position, below the next state.
    entries: Vec<u16>,
    /// By the number of zero bits put before those of each dimension: the state that they lead to
    /// the first from.
    starts: Vec<u16>,
}

impl Table {
    /// The table for a number of dimensions, if there is one.
    pub(super) fn of(dims: usize) -> Option<&'static Self> {
        static TABLES: [OnceLock<Table>; 3] = [const { OnceLock::new() }; 3];
        let table = TABLES.get(dims.checked_sub(2)?)?;
        Some(table.get_or_init(|| Self::new(dims)))
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a few dozen states, a dozen bits"
    )]
    fn new(dims: usize) -> Self {
        let step = match dims {
            2 => 4u32,
            3 => 3,
            _ => 1,
        };
        let zero = |state: CurveState| state.step(dims, 0).0;
        // Zeros lead round in a circle, which ends where it began.
        let mut circle = vec![CurveState::FIRST];
        let mut state = zero(CurveState::FIRST);
        while state != CurveState::FIRST {
            circle.push(state);
            state = zero(state);
        }
        let starts =
            (0..step as usize).map(|zeros| (circle.len() - zeros % circle.len()) % circle.len());
        let starts = starts.map(|start| start as u16).collect();
        let mut states = circle;
        let mut entries = Vec::new();
        let mut next = 0;
        while let Some(&from) = states.get(next) {
            next += 1;
            for bits in 0..1u32 << (step * dims as u32) {
                let (mut state, mut out) = (from, 0u32);
                for level in (0..step).rev() {
                    let of = |d: u32| bits >> (step * (dims as u32 - 1 - d) + level) & 1;
                    let slice = (0..dims as u32).fold(0, |sum, d| sum << 1 | of(d));
                    let (after, position) = state.step(dims, slice);
                    (state, out) = (after, out << dims | position);
                }
                let place = states
                    .iter()
                    .position(|known| *known == state)
                    .unwrap_or_else(|| {
                        states.push(state);
                        states.len() - 1
                    });
                entries.push((place as u32) << (step * dims as u32) | out);
            }
        }
        let entries = entries.into_iter().map(|entry| entry as u16).collect();
        Self {
            step,
            entries,
            starts,
        }
    }

    /// The positions of cells, whose buckets have `bits` bits a dimension; `beyond` tells those of
    /// cells whose buckets have more.
    pub(super) fn positions<const D: usize>(
        &self,
        bits: u32,
        columns: [&[u64]; D],
        out: &mut [u64],
        beyond: impl Fn(&mut [u64; D]) -> u64,
    ) {
        let (step, wide) = (self.step, self.step * D as u32);
        let steps = bits.div_ceil(step);
        let start = self
            .starts
            .get((steps * step - bits) as usize)
            .copied()
            .unwrap_or(0);
        let (mask, low) = ((1u64 << (bits * D as u32)) - 1, (1u64 << step) - 1);
        for (i, out) in out.iter_mut().enumerate() {
            let x = columns.map(|column| column.get(i).copied().unwrap_or(0));
            // What is out of its domain may have bits above.
            if x.iter().fold(0, |all, x| all | x) >> bits != 0 {
                let mut x = x;
                *out = beyond(&mut x);
                continue;
            }
            let (mut state, mut position) = (u32::from(start), 0u64);
            for level in (0..steps).rev() {
                let place = x
                    .iter()
                    .fold(0, |place, x| place << step | (x >> (level * step) & low));
                let place = (state << wide) as usize | place as usize;
                let entry = u32::from(self.entries.get(place).copied().unwrap_or(0));
                position = position << wide | u64::from(entry & ((1 << wide) - 1));
                state = entry >> wide;
            }
            *out = position & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_states_can_be_reached() {
        for (dims, states) in [(2, 4), (3, 24), (4, 192)] {
            let table = Table::of(dims).unwrap();
            assert_eq!(
                table.entries.len() >> (table.step as usize * dims),
                states,
                "{dims} dimensions"
            );
        }
        assert!(Table::of(1).is_none() && Table::of(5).is_none());
    }
}
