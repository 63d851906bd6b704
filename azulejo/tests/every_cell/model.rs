//! What an array must show, by a model that knows nothing of files: every cell that was written, with
//! its time, and every delete.

use std::collections::BTreeMap;

/// Cells along each of two dimensions.
pub const SIDE: i64 = 8;
/// What a dense cell shows that nobody wrote.
pub const FILL: i32 = i32::MIN;

/// Kinds of arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Sparse,
    Duplicates,
    Dense,
}

/// Coordinates and value.
pub type Cell = (i64, i64, i32);

/// Which cells a delete takes: it is written as a condition.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    XBelow(i64),
    ValueBelow(i32),
}

impl Rule {
    fn takes(self, (x, _, value): Cell) -> bool {
        match self {
            Self::XBelow(bound) => x < bound,
            Self::ValueBelow(bound) => value < bound,
        }
    }
}

/// A write, or what a consolidation has made of several.
#[derive(Debug, Clone)]
pub struct Fragment {
    pub name: String,
    pub start: u64,
    pub end: u64,
    /// Cells with the times at which they were written; of dense arrays those of a box.
    pub cells: Vec<(u64, Cell)>,
    /// By index, what has replaced it.
    pub replaced_by: Option<usize>,
    /// Deleted or vacuumed.
    pub is_gone: bool,
}

/// All that was done to an array.
#[derive(Debug, Clone)]
pub struct Model {
    pub kind: Kind,
    pub fragments: Vec<Fragment>,
    pub deletes: Vec<(u64, Rule)>,
}

impl Model {
    pub fn new(kind: Kind) -> Self {
        let (fragments, deletes) = Default::default();
        Self {
            kind,
            fragments,
            deletes,
        }
    }

    pub fn write(&mut self, name: String, time: u64, cells: &[Cell]) {
        self.fragments.push(Fragment {
            name,
            start: time,
            end: time,
            cells: cells.iter().map(|cell| (time, *cell)).collect(),
            replaced_by: None,
            is_gone: false,
        });
    }

    /// Deletes the fragments that lie within a time, those that were replaced too.
    pub fn delete_fragments(&mut self, start: u64, end: u64) {
        let within = |f: &&mut Fragment| start <= f.start && f.end <= end;
        self.fragments
            .iter_mut()
            .filter(within)
            .for_each(|f| f.is_gone = true);
    }

    /// The fragments of these names were replaced by one.
    pub fn merge(&mut self, name: String, replaced: &[String]) {
        let index = self.fragments.len();
        let mut old = Vec::new();
        for fragment in &mut self.fragments {
            if replaced.contains(&fragment.name) {
                fragment.replaced_by = Some(index);
                old.push(fragment.clone());
            }
        }
        old.sort_by_key(|fragment| fragment.start);
        let start = old.iter().map(|f| f.start).min().unwrap_or_default();
        let end = old.iter().map(|f| f.end).max().unwrap_or_default();
        let cells: Vec<_> = old.into_iter().flat_map(|f| f.cells).collect();
        let cells = match self.kind {
            Kind::Dense => in_a_box(&cells, end),
            _ => cells,
        };
        self.fragments.push(Fragment {
            name,
            start,
            end,
            cells,
            replaced_by: None,
            is_gone: false,
        });
    }

    /// What was replaced is no longer there.
    pub fn vacuum(&mut self) {
        for fragment in &mut self.fragments {
            fragment.is_gone |= fragment.replaced_by.is_some();
        }
    }

    /// All cells that a reader of that time sees, sorted; of dense arrays the whole domain.
    pub fn at(&self, time: u64) -> Vec<Cell> {
        match self.kind {
            Kind::Dense => self.dense_at(time),
            _ => self.sparse_at(time),
        }
    }

    fn sparse_at(&self, time: u64) -> Vec<Cell> {
        let fragments = self.fragments.iter();
        let there = fragments.filter(|f| !f.is_gone && f.replaced_by.is_none());
        let written = there.flat_map(|f| f.cells.iter().copied());
        let is_deleted = |at: u64, cell: Cell| {
            let mut deletes = self.deletes.iter();
            deletes.any(|(then, rule)| at <= *then && *then <= time && rule.takes(cell))
        };
        let mut seen: Vec<_> = written.filter(|(at, _)| *at <= time).collect();
        if self.kind == Kind::Sparse {
            // The latest stays, and what it has replaced does not come back when it is deleted.
            seen.sort_by_key(|(at, _)| *at);
            let latest: BTreeMap<_, _> = seen
                .iter()
                .map(|(at, cell)| ((cell.0, cell.1), (*at, *cell)))
                .collect();
            seen = latest.into_values().collect();
        }
        seen.retain(|(at, cell)| !is_deleted(*at, *cell));
        let mut cells: Vec<_> = seen.into_iter().map(|(_, cell)| cell).collect();
        cells.sort_unstable();
        cells
    }

    fn dense_at(&self, time: u64) -> Vec<Cell> {
        let is_seen = |f: &Fragment| !f.is_gone && f.end <= time;
        let mut there: Vec<&Fragment> = self
            .fragments
            .iter()
            .filter(|f| {
                is_seen(f)
                    && f.replaced_by
                        .is_none_or(|new| self.fragments[new].end > time)
            })
            .collect();
        there.sort_by_key(|fragment| fragment.start);
        let mut grid: BTreeMap<(i64, i64), i32> = (0..SIDE)
            .flat_map(|x| (0..SIDE).map(move |y| ((x, y), FILL)))
            .collect();
        for (_, (x, y, value)) in there.iter().flat_map(|f| f.cells.iter()) {
            grid.insert((*x, *y), *value);
        }
        grid.into_iter()
            .map(|((x, y), value)| (x, y, value))
            .collect()
    }
}

/// Dense fragments are boxes: the one around them all, gaps filled.
fn in_a_box(cells: &[(u64, Cell)], time: u64) -> Vec<(u64, Cell)> {
    let bounds = |of: fn(&Cell) -> i64| {
        let all = cells.iter().map(|(_, cell)| of(cell));
        (all.clone().min().unwrap_or(0), all.max().unwrap_or(-1))
    };
    let ((left, right), (low, high)) = (bounds(|c| c.0), bounds(|c| c.1));
    let mut grid: BTreeMap<(i64, i64), i32> = (left..=right)
        .flat_map(|x| (low..=high).map(move |y| ((x, y), FILL)))
        .collect();
    for (_, (x, y, value)) in cells {
        grid.insert((*x, *y), *value);
    }
    grid.into_iter()
        .map(|((x, y), value)| (time, (x, y, value)))
        .collect()
}
