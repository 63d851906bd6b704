//! Cutting a result into batches: each a box of positions, contiguous in the order asked for.

use super::plan::PositionBox;
use crate::error::Result;

/// Cuts a box into smaller ones that follow each other in an order of dimensions.
#[derive(Debug, Clone, Default)]
pub(super) struct Cutter {
    whole: PositionBox,
    order: Vec<usize>,
    /// Where the next box begins; `None` at the end.
    at: Option<Vec<u64>>,
}

impl Cutter {
    /// Cuts `whole` along `order`, dimensions from slowest to fastest.
    pub fn new(whole: PositionBox, order: &[usize]) -> Self {
        let at = (!whole.iter().any(std::ops::Range::is_empty))
            .then(|| whole.iter().map(|r| r.start).collect());
        Self {
            whole,
            order: order.to_vec(),
            at,
        }
    }

    /// Whether nothing is left.
    pub fn is_done(&self) -> bool {
        self.at.is_none()
    }

    /// The next box of at most `max_cells` cells for which `fits` gives a value, with that value.
    /// `None` if not even a single cell fits. `align` takes a dimension and a range of positions
    /// and says where best to end instead: behind its start and not behind its end.
    ///
    /// For example the box 0..4 by 0..10, rows first. With at most 25 cells it is cut into the rows
    /// 0..2 and 2..4; with at most 7 into the cells 0..7 of the first row, its cells 7..10, the
    /// cells 0..7 of the second, and so on.
    pub fn next<T>(
        &mut self,
        max_cells: u64,
        fits: &mut dyn FnMut(&PositionBox) -> Result<Option<T>>,
        align: &dyn Fn(usize, std::ops::Range<u64>) -> u64,
    ) -> Result<Option<(PositionBox, T)>> {
        let Some(at) = &self.at else { return Ok(None) };
        // Boxes can be wide only where the dimensions that vary faster stand at their start.
        let first = self
            .order
            .iter()
            .rposition(|&d| at[d] != self.whole[d].start)
            .unwrap_or(0);
        for level in first..self.order.len() {
            let d = self.order[level];
            let faster = self.order.get(level + 1..).unwrap_or(&[]);
            let inner = faster.iter().try_fold(1u64, |n, &f| {
                n.checked_mul(self.whole[f].end - self.whole[f].start)
            });
            let left = self.whole[d].end - at[d];
            let mut count = left.min(inner.map_or(0, |inner| max_cells / inner));
            while count > 0 {
                let mut piece = self.whole.clone();
                for &slower in self.order.get(..level).unwrap_or(&[]) {
                    piece[slower] = at[slower]..at[slower] + 1;
                }
                piece[d] = at[d]..at[d] + count;
                if count < left {
                    let end = align(d, piece[d].clone());
                    if end > at[d] && end < piece[d].end {
                        count = end - at[d];
                        piece[d].end = end;
                    }
                }
                if let Some(value) = fits(&piece)? {
                    self.advance(level, count);
                    return Ok(Some((piece, value)));
                }
                count /= 2;
            }
        }
        Ok(None)
    }

    fn advance(&mut self, level: usize, count: u64) {
        let Some(at) = &mut self.at else { return };
        let mut step = count;
        for &d in self.order[..=level].iter().rev() {
            at[d] += step;
            if at[d] < self.whole[d].end {
                return;
            }
            at[d] = self.whole[d].start;
            step = 1;
        }
        self.at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cuts_prefer_the_ends_of_tiles() {
        let mut cutter = Cutter::new(vec![0..100, 0..10], &[0, 1]);
        let align = |d: usize, r: std::ops::Range<u64>| if d == 0 { r.end / 7 * 7 } else { r.end };
        let (piece, ()) = cutter
            .next(300, &mut |_| Ok(Some(())), &align)
            .unwrap()
            .unwrap();
        assert_eq!(piece, [0..28, 0..10]);
        let mut limit = |p: &PositionBox| Ok((p[0].end - p[0].start <= 9).then_some(()));
        let (piece, ()) = cutter.next(300, &mut limit, &align).unwrap().unwrap();
        assert_eq!(piece, [28..35, 0..10]);
        assert!(
            cutter
                .next(0, &mut |_| Ok(Some(())), &align)
                .unwrap()
                .is_none()
        );
        assert!(!cutter.is_done());
    }

    proptest! {
        #[test]
        fn boxes_follow_each_other(
            lens in proptest::collection::vec((0u64..4, 1u64..9), 1..4),
            limits in proptest::collection::vec(1u64..60, 1..20),
            reverse: bool,
        ) {
            let whole: PositionBox = lens.iter().map(|(a, n)| *a..a + n).collect();
            let mut order: Vec<usize> = (0..lens.len()).collect();
            if reverse {
                order.reverse();
            }
            let cells = |piece: &PositionBox| {
                let mut cells = vec![vec![0; lens.len()]];
                for &d in &order {
                    cells = cells.iter().flat_map(|c| piece[d].clone().map(move |p| {
                        let mut c = c.clone();
                        c[d] = p;
                        c
                    })).collect();
                }
                cells
            };
            let mut cutter = Cutter::new(whole.clone(), &order);
            let mut seen = Vec::new();
            for limit in limits.iter().cycle() {
                if cutter.is_done() {
                    break;
                }
                let (piece, ()) = cutter.next(*limit, &mut |_| Ok(Some(())), &|_, r| r.end).unwrap().unwrap();
                let mut part = cells(&piece);
                prop_assert!(part.len() as u64 <= *limit && !part.is_empty());
                seen.append(&mut part);
            }
            prop_assert_eq!(seen, cells(&whole));
        }
    }
}
