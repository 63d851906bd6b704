//! Copies between boxes of cells: from tiles in their cell order to output in any order.
//!
//! A copy is a nest of loops, one axis a dimension, with strides in cells on both sides.
//! Neighbouring axes that continue each other on both sides are joined, so that a whole tile in the
//! output's order is one run.

use crate::column::repeat_cell;
use crate::error::{Error, Result};
use std::ops::Range;

/// One loop of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    pub count: usize,
    /// Cells between neighbours in the output.
    pub out: usize,
    /// Cells between neighbours in the tile.
    pub src: usize,
}

/// A box of cells: where its first cell lies on both sides, and its axes in [`CopyList::axes`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copy {
    /// First cell in the output.
    pub out: usize,
    /// First cell in the tile.
    pub src: usize,
    axes: Range<usize>,
}

/// Copies and their axes, kept together so that a copy costs no allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CopyList {
    copies: Vec<Copy>,
    axes: Vec<Axis>,
}

/// Cells that are copied along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub out: usize,
    pub src: usize,
    pub axis: Axis,
}

impl CopyList {
    /// Adds a copy. `axes` run from the largest to the smallest distance in the output.
    pub fn push(&mut self, out: usize, src: usize, axes: impl Iterator<Item = Axis>) {
        let first = self.axes.len();
        for axis in axes {
            if axis.count == 1 {
                continue;
            }
            match self.axes.get_mut(first..).and_then(<[Axis]>::last_mut) {
                Some(last)
                    if last.out == axis.count * axis.out && last.src == axis.count * axis.src =>
                {
                    *last = Axis {
                        count: last.count * axis.count,
                        ..axis
                    };
                }
                _ => self.axes.push(axis),
            }
        }
        if self.axes.len() == first {
            self.axes.push(Axis {
                count: 1,
                out: 1,
                src: 1,
            });
        }
        let axes = first..self.axes.len();
        // The loop along which the tile is contiguous goes next to the innermost, so that both stay
        // in cache.
        if let Some(nest) = self.axes.get_mut(axes.clone())
            && let Some(inner) = nest.len().checked_sub(1)
            && let Some(contiguous) = nest.iter().position(|a| a.src == 1)
            && contiguous < inner
        {
            nest[contiguous..inner].rotate_left(1);
        }
        self.copies.push(Copy { out, src, axes });
    }

    /// Appends copies of another list.
    pub fn append(&mut self, other: &Self, range: Range<usize>) {
        for copy in other.get(range) {
            let first = self.axes.len();
            self.axes.extend_from_slice(other.axes(copy));
            self.copies.push(Copy {
                axes: first..self.axes.len(),
                ..copy.clone()
            });
        }
    }

    pub fn len(&self) -> usize {
        self.copies.len()
    }

    pub fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    pub fn get(&self, range: Range<usize>) -> &[Copy] {
        self.copies.get(range).unwrap_or(&[])
    }

    pub fn all(&self) -> &[Copy] {
        &self.copies
    }

    pub fn axes(&self, copy: &Copy) -> &[Axis] {
        self.axes.get(copy.axes.clone()).unwrap_or(&[])
    }

    /// Bytes of memory that the list takes.
    pub fn memory(&self) -> usize {
        self.copies.len() * size_of::<Copy>() + self.axes.len() * size_of::<Axis>()
    }

    /// Number of cells of a copy.
    pub fn cells(&self, copy: &Copy) -> usize {
        self.axes(copy).iter().map(|a| a.count).product()
    }

    /// The cells of the output from the first to the last that a copy writes.
    pub fn reach(&self, copy: &Copy) -> Range<usize> {
        copy.out..copy.out + extent(self.axes(copy))
    }

    /// A copy without the iterations of its largest distance that miss the cells `band` of the
    /// output: first cell in the tile, and axes.
    fn clip(&self, copy: &Copy, band: &Range<usize>) -> Option<(usize, Vec<Axis>)> {
        let mut axes = self.axes(copy).to_vec();
        let (at, _) = axes.iter().enumerate().max_by_key(|(_, a)| a.out)?;
        let axis = axes.remove(at);
        let kept = iterations(copy.out, extent(&axes), axis.out, axis.count, band);
        if kept.is_empty() {
            return None;
        }
        axes.push(Axis {
            count: kept.len(),
            ..axis
        });
        Some((copy.src + kept.start * axis.src, axes))
    }

    /// The run that a copy is, if both sides are contiguous.
    pub fn as_run(&self, copy: &Copy) -> Option<usize> {
        match self.axes(copy) {
            [
                Axis {
                    count,
                    out: 1,
                    src: 1,
                },
            ] => Some(*count),
            _ => None,
        }
    }

    /// Cells of the rows of some copies, the shortest row's: 0 if a row's cells do not follow one
    /// another on both sides.
    pub fn row_len(&self, copies: &[Copy]) -> usize {
        let lens = copies.iter().map(|copy| match self.axes(copy).last() {
            Some(Axis {
                count,
                out: 1,
                src: 1,
            }) => *count,
            _ => 0,
        });
        lens.min().unwrap_or(0)
    }

    /// Calls `each` with the rows of a copy, as far as they lie in the cells `band` of the output.
    pub fn rows(
        &self,
        copy: &Copy,
        band: &Range<usize>,
        each: &mut dyn FnMut(Row) -> Result<()>,
    ) -> Result<()> {
        self.rows_within(
            copy,
            &Window {
                out: band.clone(),
                src: 0..usize::MAX,
            },
            each,
        )
    }

    /// Calls `each` with the rows of a copy, as far as they lie in a window on both sides.
    pub fn rows_within(
        &self,
        copy: &Copy,
        window: &Window,
        each: &mut dyn FnMut(Row) -> Result<()>,
    ) -> Result<()> {
        walk(self.axes(copy), copy.out, copy.src, window, each)
    }

    /// The cells of a tile that copies take to the cells `band` of the output (and maybe some
    /// more), as few ascending ranges: gaps of up to `gap` cells are closed.
    pub fn spans(&self, copies: &[Copy], band: &Range<usize>, gap: usize) -> Vec<Range<u64>> {
        let mut spans: Vec<Range<u64>> = Vec::new();
        for copy in copies {
            let Some((src, mut axes)) = self.clip(copy, band) else {
                continue;
            };
            axes.sort_by_key(|a| a.src);
            let mut run = 1usize;
            let mut outer = Vec::new();
            for axis in axes {
                let length = (axis.count - 1) * axis.src + run;
                if axis.src <= run + gap {
                    run = length;
                } else {
                    outer.push(axis);
                }
            }
            let mut starts = vec![src];
            for axis in outer {
                if starts.len().saturating_mul(axis.count) > 1 << 16 {
                    run += (axis.count - 1) * axis.src;
                } else {
                    starts = starts
                        .iter()
                        .flat_map(|s| (0..axis.count).map(move |i| s + i * axis.src))
                        .collect();
                }
            }
            spans.extend(starts.into_iter().map(|s| s as u64..(s + run) as u64));
        }
        spans.sort_by_key(|s| s.start);
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(spans.len());
        for span in spans {
            match merged.last_mut() {
                Some(last) if span.start <= last.end.saturating_add(gap as u64) => {
                    last.end = last.end.max(span.end);
                }
                _ => merged.push(span),
            }
        }
        merged
    }
}

/// Which cells are at hand on both sides of a copy.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    /// Cells of the output.
    pub out: Range<usize>,
    /// Cells of the tile.
    pub src: Range<usize>,
}

/// Cells from the first to the last that a nest of loops touches in the output.
fn extent(axes: &[Axis]) -> usize {
    1 + axes.iter().map(|a| (a.count - 1) * a.out).sum::<usize>()
}

/// As [`extent`], in the tile.
fn extent_in_tile(axes: &[Axis]) -> usize {
    1 + axes.iter().map(|a| (a.count - 1) * a.src).sum::<usize>()
}

/// The iterations of a loop that can touch cells of `window`: the first touches the `reach` cells
/// from `start` on, each other one those `stride` cells further.
fn iterations(
    start: usize,
    reach: usize,
    stride: usize,
    count: usize,
    window: &Range<usize>,
) -> Range<usize> {
    let first = if start + reach > window.start {
        0
    } else {
        (window.start - start - reach) / stride + 1
    };
    let last = if window.end <= start {
        0
    } else {
        ((window.end - start - 1) / stride + 1).min(count)
    };
    first..last
}

fn walk(
    axes: &[Axis],
    out: usize,
    src: usize,
    window: &Window,
    each: &mut dyn FnMut(Row) -> Result<()>,
) -> Result<()> {
    let Some((axis, inner)) = axes.split_first() else {
        return Ok(());
    };
    let inside = |start: usize, reach: usize, window: &Range<usize>| {
        start >= window.start && start + reach <= window.end
    };
    if inside(out, extent(axes), &window.out) && inside(src, extent_in_tile(axes), &window.src) {
        return walk_all(*axis, inner, out, src, each);
    }
    let by_out = iterations(out, extent(inner), axis.out, axis.count, &window.out);
    let by_src = iterations(
        src,
        extent_in_tile(inner),
        axis.src,
        axis.count,
        &window.src,
    );
    let (first, last) = (by_out.start.max(by_src.start), by_out.end.min(by_src.end));
    if first >= last {
        return Ok(());
    }
    if inner.is_empty() {
        let axis = Axis {
            count: last - first,
            ..*axis
        };
        return each(Row {
            out: out + first * axis.out,
            src: src + first * axis.src,
            axis,
        });
    }
    for i in first..last {
        walk(inner, out + i * axis.out, src + i * axis.src, window, each)?;
    }
    Ok(())
}

/// All rows of a nest of loops.
fn walk_all(
    axis: Axis,
    inner: &[Axis],
    out: usize,
    src: usize,
    each: &mut dyn FnMut(Row) -> Result<()>,
) -> Result<()> {
    let Some((next, rest)) = inner.split_first() else {
        return each(Row { out, src, axis });
    };
    if axis.src == 1 && next.src != 1 && rest.is_empty() {
        return transpose(axis, *next, out, src, each);
    }
    for i in 0..axis.count {
        walk_all(*next, rest, out + i * axis.out, src + i * axis.src, each)?;
    }
    Ok(())
}

/// Rows in blocks: the tile is contiguous along `a`, the output along `b`.
fn transpose(
    a: Axis,
    b: Axis,
    out: usize,
    src: usize,
    each: &mut dyn FnMut(Row) -> Result<()>,
) -> Result<()> {
    const BLOCK: usize = 32;
    for from in (0..a.count).step_by(BLOCK) {
        for at in (0..b.count).step_by(BLOCK) {
            let axis = Axis {
                count: BLOCK.min(b.count - at),
                ..b
            };
            for i in from..(from + BLOCK).min(a.count) {
                each(Row {
                    out: out + i * a.out + at * b.out,
                    src: src + i * a.src + at * b.src,
                    axis,
                })?;
            }
        }
    }
    Ok(())
}

fn beyond() -> Error {
    Error::Internal("a copy leaves its tile or the output".into())
}

/// Copies fixed-size cells of a tile (`src`) to the cells `band` of the output, whose bytes `out`
/// are.
pub(crate) fn copy_cells(
    list: &CopyList,
    copies: &[Copy],
    src: &[u8],
    out: &mut [u8],
    band: &Range<usize>,
    cell_size: usize,
) -> Result<()> {
    copy_part(list, copies, (src, 0..usize::MAX), out, band, cell_size)
}

/// As [`copy_cells`], where only some of the tile's cells are at hand: `src` are the bytes of the
/// cells `cells`.
pub(crate) fn copy_part(
    list: &CopyList,
    copies: &[Copy],
    (src, cells): (&[u8], Range<usize>),
    out: &mut [u8],
    band: &Range<usize>,
    cell_size: usize,
) -> Result<()> {
    let window = Window {
        out: band.clone(),
        src: cells,
    };
    match cell_size {
        1 => copy_of::<1>(list, copies, src, out, &window, 1),
        2 => copy_of::<2>(list, copies, src, out, &window, 2),
        4 => copy_of::<4>(list, copies, src, out, &window, 4),
        8 => copy_of::<8>(list, copies, src, out, &window, 8),
        16 => copy_of::<16>(list, copies, src, out, &window, 16),
        n => copy_of::<0>(list, copies, src, out, &window, n),
    }
}

/// `N` is the cell size, 0 if it is not known to the compiler.
fn copy_of<const N: usize>(
    list: &CopyList,
    copies: &[Copy],
    src: &[u8],
    out: &mut [u8],
    window: &Window,
    size: usize,
) -> Result<()> {
    for copy in copies {
        list.rows_within(copy, window, &mut |row| {
            let Axis {
                count,
                out: o,
                src: s,
            } = row.axis;
            let to = out
                .get_mut((row.out - window.out.start) * size..)
                .ok_or_else(beyond)?;
            let from = src
                .get((row.src - window.src.start) * size..)
                .ok_or_else(beyond)?;
            if (o, s) == (1, 1) {
                let to = to.get_mut(..count * size).ok_or_else(beyond)?;
                to.copy_from_slice(from.get(..count * size).ok_or_else(beyond)?);
                return Ok(());
            }
            let last = (count - 1) * size;
            if to.len() < last * o + size || from.len() < last * s + size {
                return Err(beyond());
            }
            let cells = to.chunks_mut(o * size).zip(from.chunks((s * size).max(1)));
            for (to, from) in cells.take(count) {
                if N > 0 {
                    if let (Some(to), Some(from)) =
                        (to.first_chunk_mut::<N>(), from.first_chunk::<N>())
                    {
                        *to = *from;
                    }
                } else if let (Some(to), Some(from)) = (to.get_mut(..size), from.get(..size)) {
                    to.copy_from_slice(from);
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// As [`copy_part`] for copies whose rows are contiguous on both sides ([`CopyList::row_len`]):
/// `fill` writes the bytes of the cells at hand, from a given one on, to where they belong.
pub(crate) fn place_rows(
    list: &CopyList,
    copies: &[Copy],
    window: &Window,
    out: &mut [u8],
    size: usize,
    fill: &mut dyn FnMut(usize, &mut [u8]) -> Result<()>,
) -> Result<()> {
    for copy in copies {
        list.rows_within(copy, window, &mut |row| {
            let to = (row.out - window.out.start) * size;
            let to = out
                .get_mut(to..to + row.axis.count * size)
                .ok_or_else(beyond)?;
            fill((row.src - window.src.start) * size, to)
        })?;
    }
    Ok(())
}

/// Writes one cell to all places of copies in the cells `band` of the output, whose bytes `out`
/// are.
pub(crate) fn fill_cells(
    list: &CopyList,
    copies: &[Copy],
    cell: &[u8],
    out: &mut [u8],
    band: &Range<usize>,
) -> Result<()> {
    let size = cell.len();
    for copy in copies {
        list.rows(copy, band, &mut |row| {
            let Axis { count, out: o, .. } = row.axis;
            let to = out
                .get_mut((row.out - band.start) * size..)
                .ok_or_else(beyond)?;
            if o == 1 {
                repeat_cell(to.get_mut(..count * size).ok_or_else(beyond)?, cell);
            } else {
                for to in to.chunks_mut((o * size).max(1)).take(count) {
                    to.get_mut(..size).ok_or_else(beyond)?.copy_from_slice(cell);
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Writes the lengths of var-length cells to `lens`, the cells `band` of the output.
pub(crate) fn copy_lengths(
    list: &CopyList,
    copies: &[Copy],
    offsets: &[u64],
    lens: &mut [u64],
    band: &Range<usize>,
) -> Result<()> {
    for copy in copies {
        list.rows(copy, band, &mut |row| {
            for i in 0..row.axis.count {
                let cell = row.src + i * row.axis.src;
                let Some(&[start, end]) = offsets.get(cell..cell + 2) else {
                    return Err(beyond());
                };
                *lens
                    .get_mut(row.out - band.start + i * row.axis.out)
                    .ok_or_else(beyond)? = end - start;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Copies the bytes of var-length cells. `placed` are the output's offsets of the cells `band` and
/// of its end, `out` the bytes from the first of them on.
pub(crate) fn copy_var(
    list: &CopyList,
    copies: &[Copy],
    (data, offsets): (&[u8], &[u64]),
    (out, placed): (&mut [u8], &[u64]),
    band: &Range<usize>,
) -> Result<()> {
    let base = placed.first().copied().unwrap_or(0);
    let mut copy_run = |cell: usize, count: usize, at: usize| -> Result<()> {
        let (Some(&start), Some(&end)) = (offsets.get(cell), offsets.get(cell + count)) else {
            return Err(beyond());
        };
        let to = (placed.get(at).ok_or_else(beyond)? - base) as usize;
        let bytes = data.get(start as usize..end as usize).ok_or_else(beyond)?;
        out.get_mut(to..to + bytes.len())
            .ok_or_else(beyond)?
            .copy_from_slice(bytes);
        Ok(())
    };
    for copy in copies {
        list.rows(copy, band, &mut |row| {
            let Axis { count, out, src } = row.axis;
            let at = row.out - band.start;
            if (out, src) == (1, 1) {
                return copy_run(row.src, count, at);
            }
            (0..count).try_for_each(|i| copy_run(row.src + i * src, 1, at + i * out))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Loops over a row-major output of `counts` cells that comes out of a column-major tile of
    /// `extents`.
    fn nest(counts: &[usize], extents: &[usize]) -> Vec<Axis> {
        (0..counts.len())
            .map(|d| Axis {
                count: counts[d],
                out: counts[d + 1..].iter().product(),
                src: extents[..d].iter().product(),
            })
            .collect()
    }

    #[test]
    fn whole_tiles_are_one_run() {
        let mut list = CopyList::default();
        let axes =
            [(4, 15, 15), (3, 5, 5), (5, 1, 1)].map(|(count, out, src)| Axis { count, out, src });
        list.push(7, 0, axes.into_iter());
        assert_eq!(list.as_run(&list.all()[0]), Some(60));
        list.push(
            0,
            0,
            [Axis {
                count: 1,
                out: 9,
                src: 3,
            }]
            .into_iter(),
        );
        assert_eq!(list.as_run(&list.all()[1]), Some(1));
        assert_eq!(
            list.spans(list.all(), &(0..usize::MAX), 0),
            std::slice::from_ref(&(0..60))
        );
    }

    #[test]
    fn spans_close_gaps() {
        let mut list = CopyList::default();
        let axes = [
            Axis {
                count: 3,
                out: 2,
                src: 10,
            },
            Axis {
                count: 2,
                out: 1,
                src: 1,
            },
        ];
        list.push(0, 5, axes.into_iter());
        assert_eq!(
            list.spans(list.all(), &(0..usize::MAX), 0),
            [5..7, 15..17, 25..27]
        );
        assert_eq!(
            list.spans(list.all(), &(0..usize::MAX), 8),
            std::slice::from_ref(&(5..27))
        );
    }

    proptest! {
        #[test]
        fn copies_agree_with_single_cells(
            shape in proptest::collection::vec((1usize..40, 0usize..3), 1..4),
            cut in 0.0f64..1.0,
            size in prop_oneof![Just(1usize), Just(3), Just(4), Just(8)],
        ) {
            let counts: Vec<usize> = shape.iter().map(|s| s.0).collect();
            let extents: Vec<usize> = shape.iter().map(|s| s.0 + s.1).collect();
            let axes = nest(&counts, &extents);
            let (cells, total): (usize, usize) = (extents.iter().product(), counts.iter().product());
            let tile: Vec<u8> = (0..cells * size).map(|i| (i % 251) as u8).collect();
            let mut naive = vec![0xee; total * size];
            for out in 0..total {
                let src: usize = axes.iter().map(|a| out / a.out % a.count * a.src).sum();
                naive[out * size..][..size].copy_from_slice(&tile[src * size..][..size]);
            }
            let mut list = CopyList::default();
            list.push(0, 0, axes.iter().copied());
            let middle = (total as f64 * cut) as usize;
            let mut out = vec![0xee; total * size];
            let (low, high) = out.split_at_mut(middle * size);
            copy_cells(&list, list.all(), &tile, low, &(0..middle), size).unwrap();
            let half = cells / 2;
            for part in [0..half, half..cells] {
                let bytes = &tile[part.start * size..part.end * size];
                copy_part(&list, list.all(), (bytes, part), high, &(middle..total), size).unwrap();
            }
            prop_assert_eq!(&out, &naive);
            let spans = list.spans(list.all(), &(middle..total), 5);
            for out in middle..total {
                let src: usize = axes.iter().map(|a| out / a.out % a.count * a.src).sum();
                prop_assert!(spans.iter().any(|s| s.contains(&(src as u64))));
            }
            let spans = list.spans(list.all(), &(0..usize::MAX), 5);
            for out in 0..total {
                let src: usize = axes.iter().map(|a| out / a.out % a.count * a.src).sum();
                prop_assert!(spans.iter().any(|s| s.contains(&(src as u64))));
            }

            let offsets: Vec<u64> = (0..=cells as u64).map(|c| c * (c + 1) / 2 % 7 + c * 7).collect();
            let bytes: Vec<u8> = (0..*offsets.last().unwrap()).map(|i| (i % 253) as u8).collect();
            let mut placed = vec![0; total + 1];
            copy_lengths(&list, list.all(), &offsets, &mut placed[1..], &(0..total)).unwrap();
            for i in 0..total {
                placed[i + 1] += placed[i];
            }
            let mut out = vec![0; placed[total] as usize];
            let (low, high) = out.split_at_mut(placed[middle] as usize);
            let source = (&bytes[..], &offsets[..]);
            copy_var(&list, list.all(), source, (low, &placed[..=middle]), &(0..middle)).unwrap();
            copy_var(&list, list.all(), source, (high, &placed[middle..]), &(middle..total)).unwrap();
            for i in 0..total {
                let src: usize = axes.iter().map(|a| i / a.out % a.count * a.src).sum();
                let wanted = &bytes[offsets[src] as usize..offsets[src + 1] as usize];
                prop_assert_eq!(&out[placed[i] as usize..placed[i + 1] as usize], wanted);
            }
        }
    }
}
