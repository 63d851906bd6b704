//! Sorting with less memory than the keys of all cells take: part of the order at a time.
//!
//! Cells that lie between two bounds of the order are taken out of the whole write, sorted and
//! stored; then those of the next part. The parts follow each other, so that the tiles are those
//! that sorting all cells at once gives. Each part costs a look at every cell.

use super::sort::{CellSequence, DuplicateRule, KeyedCells, RUN, RUN_BITS};
use crate::column::FieldView;
use crate::error::Result;
use crate::space::cell_bound::CellBound;
use crate::space::cell_order::CellOrder;
use crate::space::keys::RowSelection;
use azulejo_format::ArraySchema;

/// Bytes that sorting takes a cell: keys of at most 16 bytes twice over, less what the first copy
/// has freed, and its place.
const NUMBER_BYTES: u64 = 28;
/// And where strings have to be ranked.
const TEXT_BYTES: u64 = 72;
/// Cells looked at to tell where a part ends, for each part.
const SAMPLES: usize = 64;
/// A part of so many times the cells that it should have is cut again.
const TOLERANCE: usize = 2;

/// Bytes that sorting takes a cell, at most.
pub(super) fn sort_bytes(order: &CellOrder) -> u64 {
    if order
        .dimensions()
        .iter()
        .any(|dimension| dimension.is_string())
    {
        TEXT_BYTES
    } else {
        NUMBER_BYTES
    }
}

/// The cells of a write, part of the order after part.
pub(super) struct ExternalSort<'a> {
    schema: &'a ArraySchema,
    order: &'a CellOrder,
    dimensions: &'a [FieldView<'a>],
    cell_num: usize,
    rule: DuplicateRule,
    /// Cells of a part.
    part: usize,
    /// The parts that are left, the next one last: bounds from which and up to which.
    left: Vec<(CellBound, CellBound)>,
}

impl<'a> ExternalSort<'a> {
    /// Parts of about `part` cells each, never less than a run.
    pub fn new(
        schema: &'a ArraySchema,
        order: &'a CellOrder,
        dimensions: &'a [FieldView<'a>],
        cell_num: usize,
        rule: DuplicateRule,
        part: usize,
    ) -> Self {
        let part = part.max(RUN);
        let mut sort = Self {
            schema,
            order,
            dimensions,
            cell_num,
            rule,
            part,
            left: Vec::new(),
        };
        let parts = cell_num.div_ceil(part);
        let sample = sort.sample(cell_num, parts.saturating_mul(SAMPLES), |cell| cell);
        let mut bounds = vec![CellBound::LOWEST];
        bounds.extend(sample.into_iter().skip(SAMPLES).step_by(SAMPLES));
        bounds.push(CellBound::highest());
        bounds.dedup();
        let pairs = bounds.iter().zip(bounds.iter().skip(1));
        sort.left = pairs
            .rev()
            .map(|(from, to)| (from.clone(), to.clone()))
            .collect();
        sort
    }

    /// The cells of the next part, in order; `None` after the last.
    ///
    /// # Errors
    /// Those of [`super::sort::sort_cells`].
    pub fn next(&mut self) -> Result<Option<Vec<u32>>> {
        while let Some((from, to)) = self.left.pop() {
            let divisible = self.part.saturating_mul(TOLERANCE);
            let (rows, count, whole) = self.pick(&from, &to, divisible)?;
            if !whole {
                if let Some(middle) = self.middle(&rows, &from) {
                    self.left.push((middle.clone(), to));
                    self.left.push((from, middle));
                    continue;
                }
                // Cells of one coordinate: they stay together, whatever memory they take.
                let (rows, count, _) = self.pick(&from, &to, usize::MAX)?;
                return self.sorted(&rows, count).map(Some);
            }
            if count > 0 {
                return self.sorted(&rows, count).map(Some);
            }
        }
        Ok(None)
    }

    fn sorted(&self, rows: &[RowSelection], count: usize) -> Result<Vec<u32>> {
        let keys = KeyedCells::selected(self.order, self.dimensions, rows)?;
        Ok(match keys.sort(self.schema, self.dimensions, self.rule)? {
            CellSequence::Sorted(cells) => cells,
            CellSequence::AsGiven => {
                let mut cells = Vec::with_capacity(count);
                cells.extend(cells_of(rows));
                cells
            }
        })
    }

    /// The cells between two bounds, by run, and how many they are. Stops at `most`, which is told.
    fn pick(
        &self,
        from: &CellBound,
        to: &CellBound,
        most: usize,
    ) -> Result<(Vec<RowSelection>, usize, bool)> {
        let piece = (self.part / RUN).max(1) * RUN;
        let mut rows: Vec<RowSelection> = Vec::with_capacity(self.cell_num.div_ceil(RUN));
        let mut count = 0;
        for start in (0..self.cell_num).step_by(piece) {
            let end = self.cell_num.min(start + piece);
            let keys = KeyedCells::within(
                self.order,
                self.dimensions,
                start..end,
                Some(from),
                Some(to),
            )?
            .cells();
            let mut runs = vec![Vec::new(); (end - start).div_ceil(RUN)];
            for run in keys.chunk_by(|a, b| a >> RUN_BITS == b >> RUN_BITS) {
                let Some(first) = run.first() else { continue };
                if let Some(list) = runs.get_mut((first >> RUN_BITS) as usize) {
                    *list = run.iter().map(|cell| cell & (RUN as u32 - 1)).collect();
                }
            }
            rows.extend(runs.into_iter().map(RowSelection::List));
            count += keys.len();
            if count > most && end < self.cell_num {
                return Ok((rows, count, false));
            }
        }
        Ok((rows, count, count <= most))
    }

    /// A bound that parts these cells, all of which are at or behind `from`; `None` if they have
    /// one coordinate.
    fn middle(&self, rows: &[RowSelection], from: &CellBound) -> Option<CellBound> {
        let cells: Vec<u32> = cells_of(rows).collect();
        let sample = self.sample(cells.len(), SAMPLES, |i| {
            cells.get(i).map_or(0, |cell| *cell as usize)
        });
        let middle = sample.get(sample.len() / 2).filter(|middle| *middle > from);
        middle
            .or_else(|| sample.iter().find(|bound| *bound > from))
            .cloned()
    }

    /// The bounds of some of `len` cells, in order.
    fn sample(&self, len: usize, count: usize, cell: impl Fn(usize) -> usize) -> Vec<CellBound> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let bounds = (0..count.min(len)).map(|_| {
            // Places without a rhythm that the cells may have, too.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let place = usize::try_from((u128::from(state) * len as u128) >> 64).unwrap_or(0);
            let cell = cell(place);
            let coordinates: Vec<&[u8]> =
                self.dimensions.iter().map(|view| view.cell(cell)).collect();
            self.order.cell_bound(&coordinates)
        });
        let mut bounds: Vec<CellBound> = bounds.collect();
        bounds.sort_unstable();
        bounds
    }
}

/// RowSelection cells as they are counted in the write.
fn cells_of(rows: &[RowSelection]) -> impl Iterator<Item = u32> {
    rows.iter().zip(0u32..).flat_map(|(rows, run)| {
        let places = match rows {
            RowSelection::List(list) => list.as_slice(),
            RowSelection::All(_) => &[],
        };
        places.iter().map(move |place| run << RUN_BITS | place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Layout;
    use azulejo_format::Datatype;

    fn schema(dups: bool, layout: Layout) -> ArraySchema {
        let new = ArraySchema::sparse()
            .dimension("x", -500i32..=500, 7)
            .dimension("y", 0f64..=1.0, 0.25);
        let new = new
            .attribute("a", Datatype::Int32)
            .allows_duplicates(dups)
            .cell_order(layout);
        new.build().unwrap().schema
    }

    fn view(data: &[u8], size: usize) -> FieldView<'_> {
        FieldView {
            cell_num: data.len() / size,
            data,
            offsets: None,
            validity: None,
            cell_size: size,
        }
    }

    /// Sorts in parts and at once.
    fn both(
        x: &[i32],
        y: &[f64],
        rule: DuplicateRule,
        layout: Layout,
    ) -> (Vec<u32>, usize, Vec<u32>) {
        let schema = schema(rule == DuplicateRule::Allowed, layout);
        let order = CellOrder::new(&schema, Layout::Global);
        let x: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
        let y: Vec<u8> = y.iter().flat_map(|y| y.to_le_bytes()).collect();
        let dimensions = [view(&x, 4), view(&y, 8)];
        let cell_num = x.len() / 4;
        let mut sort = ExternalSort::new(&schema, &order, &dimensions, cell_num, rule, RUN);
        let (mut found, mut parts) = (Vec::new(), 0);
        while let Some(cells) = sort.next().unwrap() {
            found.extend(cells);
            parts += 1;
        }
        let whole =
            super::super::sort::sort_cells(&schema, &order, &dimensions, cell_num, rule).unwrap();
        let CellSequence::Sorted(whole) = whole else {
            panic!("they were given in order")
        };
        (found, parts, whole)
    }

    #[test]
    fn parts_follow_each_other_as_in_one_sort() {
        let n = 2 * RUN as u32 + 17;
        let mixed = |i: u32| i.wrapping_mul(0x9e37_79b9) >> 7;
        let x: Vec<i32> = (0..n).map(|i| (mixed(i) % 1001) as i32 - 500).collect();
        let y: Vec<f64> = (0..n)
            .map(|i| f64::from(mixed(i + n) % 10_007) / 10_007.0)
            .collect();
        use DuplicateRule::{Allowed, FirstStays};
        for (layout, rule) in [
            (Layout::RowMajor, Allowed),
            (Layout::ColMajor, FirstStays),
            (Layout::Hilbert, FirstStays),
        ] {
            let (found, parts, whole) = both(&x, &y, rule, layout);
            assert!(found == whole, "{layout:?} {rule:?}");
            assert!(parts > 1, "{parts} parts");
        }
    }

    #[test]
    fn cells_of_one_coordinate_stay_together() {
        let n = 3 * RUN;
        let x: Vec<i32> = (0..n)
            .map(|i| if i % 8 == 7 { i as i32 % 500 } else { -3 })
            .collect();
        let (found, parts, whole) =
            both(&x, &vec![0.5; n], DuplicateRule::Allowed, Layout::RowMajor);
        assert!(found == whole);
        assert!(parts > 1, "{parts} parts");
        let (found, _, whole) = both(
            &x,
            &vec![0.5; n],
            DuplicateRule::FirstStays,
            Layout::RowMajor,
        );
        assert!(found == whole);
    }
}
