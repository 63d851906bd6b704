//! Cells that wait to be written.

use crate::error::Result;
use azulejo::{ColumnBuffers, ColumnSet};
use std::collections::VecDeque;

/// Parts of columns, in order.
#[derive(Debug, Default)]
pub struct Batch {
    parts: VecDeque<ColumnSet>,
    /// Number of cells.
    pub cells: u64,
    /// Bytes that they take.
    pub bytes: u64,
}

impl Batch {
    /// Adds cells at the end.
    pub fn push(&mut self, set: ColumnSet) {
        if set.cell_num > 0 {
            self.cells += set.cell_num as u64;
            self.bytes += set.memory_size() as u64;
            self.parts.push_back(set);
        }
    }

    /// Takes the first `cells` cells out.
    pub fn take(&mut self, cells: u64) -> Result<ColumnSet> {
        let mut taken: Vec<ColumnSet> = Vec::new();
        let mut left = usize::try_from(cells).unwrap_or(usize::MAX);
        while left > 0
            && let Some(set) = self.parts.pop_front()
        {
            if set.cell_num > left {
                self.parts.push_front(set.slice(left..set.cell_num));
                taken.push(set.slice(0..left));
                break;
            }
            left -= set.cell_num;
            taken.push(set);
        }
        self.cells = self.parts.iter().map(|set| set.cell_num as u64).sum();
        self.bytes = self.parts.iter().map(|set| set.memory_size() as u64).sum();
        join(taken)
    }

    /// Takes all cells out.
    pub fn take_all(&mut self) -> Result<ColumnSet> {
        self.take(self.cells)
    }
}

/// One set of many; each column's parts are let go as soon as they are joined, so that little is
/// held twice.
fn join(sets: Vec<ColumnSet>) -> Result<ColumnSet> {
    let cell_num = sets.iter().map(|set| set.cell_num).sum();
    let mut columns: Vec<Vec<ColumnBuffers>> = Vec::new();
    for set in sets {
        columns.resize_with(set.columns.len().max(columns.len()), Vec::new);
        for (parts, column) in columns.iter_mut().zip(set.columns) {
            parts.push(column);
        }
    }
    let joined = columns
        .into_iter()
        .map(|parts| ColumnBuffers::concat(&parts.iter().collect::<Vec<_>>()));
    Ok(ColumnSet {
        cell_num,
        columns: joined.collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(values: Vec<i32>) -> ColumnSet {
        ColumnSet {
            cell_num: values.len(),
            columns: vec![ColumnBuffers::of_values("a", values)],
        }
    }

    #[test]
    fn cells_come_out_in_order() {
        let mut batch = Batch::default();
        for values in [vec![1, 2, 3], vec![], vec![4], vec![5, 6]] {
            batch.push(set(values));
        }
        let values = |set: &ColumnSet| set.columns[0].values::<i32>().unwrap().to_vec();
        assert_eq!((batch.cells, batch.bytes), (6, 24));
        assert_eq!(values(&batch.take(2).unwrap()), [1, 2]);
        assert_eq!(values(&batch.take(3).unwrap()), [3, 4, 5]);
        assert_eq!((batch.cells, batch.bytes), (1, 4));
        assert_eq!(values(&batch.take_all().unwrap()), [6]);
        assert_eq!(batch.take_all().unwrap().cell_num, 0);
    }
}
