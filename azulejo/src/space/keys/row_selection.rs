//! Which cells of tiles take part.

use crate::column::FieldView;

/// Which cells of a tile take part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowSelection {
    /// The first this many: all of the tile's.
    All(u32),
    /// These, ascending.
    List(Vec<u32>),
}

impl RowSelection {
    /// Number of cells.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::All(n) => *n as usize,
            Self::List(list) => list.len(),
        }
    }

    /// One byte for each of `cells` cells: whether it takes part.
    pub(crate) fn mask(&self, cells: usize) -> Vec<u8> {
        let Self::List(list) = self else {
            return vec![1; cells];
        };
        let mut mask = vec![0; cells];
        for &cell in list {
            if let Some(m) = mask.get_mut(cell as usize) {
                *m = 1;
            }
        }
        mask
    }

    /// Of as many cells as there are flags those that have `true`.
    pub(crate) fn flagged(flags: impl ExactSizeIterator<Item = bool>) -> Self {
        let cells = flags.len();
        let mut list = vec![0; cells];
        let mut count = 0;
        // Without a branch: whether a cell is selected is hard to foresee.
        for (cell, flag) in (0u32..).zip(flags) {
            if let Some(place) = list.get_mut(count) {
                *place = cell;
            }
            count += usize::from(flag);
        }
        if count == cells {
            return Self::All(u32::try_from(cells).unwrap_or(u32::MAX));
        }
        list.truncate(count);
        list.shrink_to_fit();
        Self::List(list)
    }

    /// The cells whose bytes are not 0.
    pub(crate) fn of_mask(mask: &[u8]) -> Self {
        let count = mask.iter().filter(|m| **m != 0).count();
        if count > mask.len() / 16 {
            return Self::flagged(mask.iter().map(|m| *m != 0));
        }
        // Most words are 0.
        let mut list = Vec::with_capacity(count);
        let (words, rest) = mask.as_chunks::<8>();
        let mut first = 0;
        for word in words.iter().map(<[u8; 8]>::as_slice).chain([rest]) {
            if word != [0; 8] {
                list.extend(
                    (first..)
                        .zip(word)
                        .filter(|(_, m)| **m != 0)
                        .map(|(cell, _)| cell),
                );
            }
            first += 8;
        }
        if mask.is_empty() {
            Self::All(0)
        } else {
            Self::List(list)
        }
    }

    /// Calls `f` with the place in the output and the cell, for each cell.
    #[inline]
    pub(super) fn for_each(&self, mut f: impl FnMut(usize, usize)) {
        match self {
            Self::All(n) => (0..*n as usize).for_each(|i| f(i, i)),
            Self::List(list) => list
                .iter()
                .enumerate()
                .for_each(|(i, &cell)| f(i, cell as usize)),
        }
    }
}

/// A tile whose cells get keys.
#[derive(Debug, Clone)]
pub(crate) struct KeyTile<'a> {
    /// Coordinates by dimension.
    pub(crate) coordinates: Vec<FieldView<'a>>,
    /// The cells that take part.
    pub(crate) rows: &'a RowSelection,
    /// What stands for the tile in keys; less means first among cells of equal coordinates.
    pub(crate) slot: u32,
}
