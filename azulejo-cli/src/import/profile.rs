//! What the first look at a file found out about a column.

use super::Look;
use azulejo::format::{CellValNum, Datatype};
use std::collections::HashSet;

/// A column of the file: what it holds and what that asks for.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The name in the file.
    pub name: String,
    /// The type that all values fit.
    pub datatype: Datatype,
    /// Values in a cell.
    pub cell_val_num: CellValNum,
    /// Number of rows.
    pub rows: u64,
    /// Rows without a value.
    pub nulls: u64,
    /// The first row without a value, from 0.
    pub first_null: Option<u64>,
    /// Least and greatest value.
    pub bounds: Option<Bounds>,
    /// The different texts, where they were counted.
    pub labels: Option<Labels>,
    /// Whether the file itself has labels and indices.
    pub dictionary: bool,
    /// Whether the labels have an order of their own: a dictionary of the file's.
    pub ordered_labels: bool,
    /// Whether all texts are ASCII.
    pub ascii: bool,
    /// Bytes of all texts.
    pub bytes: u64,
    /// Whether the file itself states the type: it is kept as it is.
    pub stated: bool,
    /// What the user should know.
    pub note: Option<String>,
}

impl Profile {
    /// So many rows, of no column.
    pub fn of_rows(rows: u64) -> Self {
        Self {
            name: String::new(),
            datatype: Datatype::StringUtf8,
            cell_val_num: CellValNum::Var,
            rows,
            nulls: rows,
            first_null: None,
            bounds: None,
            labels: None,
            dictionary: false,
            ordered_labels: false,
            ascii: true,
            bytes: 0,
            stated: false,
            note: None,
        }
    }
}

/// Least and greatest value of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bounds {
    /// Integers or ticks.
    Integer(i128, i128),
    /// Reals; NaN does not count.
    Real(f64, f64),
}

impl Bounds {
    /// What holds both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        match (self, other) {
            (Self::Integer(a, b), Self::Integer(c, d)) => Self::Integer(a.min(c), b.max(d)),
            (a, b) => {
                let ((a, b), (c, d)) = (a.reals(), b.reals());
                Self::Real(a.min(c), b.max(d))
            }
        }
    }

    /// As reals.
    #[must_use]
    pub fn reals(self) -> (f64, f64) {
        match self {
            Self::Integer(low, high) => (low as f64, high as f64),
            Self::Real(low, high) => (low, high),
        }
    }
}

/// Different texts, up to a limit.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    set: HashSet<Box<[u8]>>,
    /// In the file's own order, where it has one.
    pub order: Vec<Box<[u8]>>,
    limit: usize,
    bytes: usize,
    overflow: bool,
}

impl Labels {
    /// Bytes of all labels, where nobody has asked for them: what is longer is no label.
    const MOST_BYTES: usize = 1 << 20;

    /// None yet, and no more than `limit` to come.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            overflow: limit == 0,
            ..Self::default()
        }
    }

    /// Adds a text.
    #[inline]
    pub fn add(&mut self, text: &[u8]) {
        if self.overflow || self.set.contains(text) {
            return;
        }
        self.insert(text);
    }

    fn insert(&mut self, text: &[u8]) {
        self.bytes += text.len();
        let is_unasked = self.limit <= Look::FEW_LABELS + 1;
        if self.set.len() >= self.limit || is_unasked && self.bytes > Self::MOST_BYTES {
            self.overflow = true;
            self.set = HashSet::new();
            self.order = Vec::new();
            return;
        }
        self.set.insert(text.into());
        self.order.push(text.into());
    }

    /// Adds those of another part.
    pub fn merge(&mut self, other: &Self) {
        if other.overflow {
            self.overflow = true;
            self.set = HashSet::new();
            self.order = Vec::new();
            return;
        }
        for text in &other.order {
            self.add(text);
        }
    }

    /// How many; `None` if there are more than were counted.
    pub fn len(&self) -> Option<usize> {
        (!self.overflow).then_some(self.set.len())
    }

    /// The texts: sorted, or in the file's own order.
    pub fn texts(&self, own_order: bool) -> Vec<&[u8]> {
        let mut texts: Vec<&[u8]> = self.order.iter().map(AsRef::as_ref).collect();
        if !own_order {
            texts.sort_unstable();
        }
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_kept_as_labels_where_these_were_asked_for() {
        for (limit, kept) in [(Look::FEW_LABELS + 1, None), (Look::MOST_LABELS, Some(2))] {
            let mut labels = Labels::new(limit);
            labels.add(&vec![b'a'; Labels::MOST_BYTES]);
            assert_eq!(labels.len(), Some(1));
            labels.add(b"b");
            assert_eq!(labels.len(), kept);
        }
    }
}
