//! A tile of a batch: which of its cells exist, are selected and are results.

use super::plan::PlannedTile;
use super::query::{CellTest, FragmentQuery, SparseQuery};
use super::tile_cells::{around, cut};
use crate::array::Fragment;
use crate::column::FieldView;
use crate::error::{Error, Result};
use crate::read::{Cells, Tile, TileRequest};
use crate::space::cell_bound::CellBound;
use crate::space::is_number;
use crate::space::keys::RowSelection;
use azulejo_format::fragment::{Field, RTree};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A share of a tile's cells that are few: their other coordinates are worth reading apart.
const FEW: f64 = 0.25;

/// A tile of a batch and what is known of its cells. Its place in the batch is its *slot*.
pub(super) struct BatchTile<'a> {
    pub(super) tile: &'a PlannedTile,
    pub(super) of: &'a FragmentQuery,
    pub(super) fragment: &'a Fragment,
    tree: &'a RTree,
    keyed: bool,
    /// Whether another batch needs some of its cells.
    pub(super) shared: bool,
    /// Decoded so far.
    pub(super) loaded: BTreeMap<Field, Arc<Tile>>,
    /// The cells that exist and are selected, before duplicates are gone.
    pub(super) selected: RowSelection,
    /// Which of them are results once duplicates are gone; `None`: all.
    pub(super) results: Option<Vec<u8>>,
    /// The places in the tile of the cells that are left, if the tile was compacted: then cells are
    /// counted among these.
    pub(super) places: Option<Vec<u32>>,
}

impl<'a> BatchTile<'a> {
    /// A tile of which nothing is loaded; `shared` as in [`Self::shared`].
    pub(super) fn new(
        query: &'a SparseQuery,
        tile: &'a PlannedTile,
        keyed: bool,
        shared: bool,
    ) -> Result<Self> {
        let lost = || Error::Internal("a tile of no fragment".into());
        let of = query.fragments.get(tile.part).ok_or_else(lost)?;
        let fragment = query.fragment(of)?;
        Ok(Self {
            tile,
            of,
            fragment,
            tree: fragment.loaded().rtree()?,
            keyed,
            shared,
            loaded: BTreeMap::new(),
            selected: RowSelection::All(tile.cell_num),
            results: None,
            places: None,
        })
    }

    /// Where a cell lies for whoever reads a part of the cells after another: at an end of its tile
    /// if it lies outside of the tile's bounds. Only NaN does, of which boxes do not tell; such a cell
    /// would be looked for where its tile is not any more.
    pub(super) fn place_of(&self, cell: CellBound) -> CellBound {
        let (lower, upper) = (&self.tile.lower, &self.tile.upper);
        if cell > *upper {
            upper.clone()
        } else if cell < *lower {
            lower.clone()
        } else {
            cell
        }
    }

    /// Whether one of the coordinates is NaN, as far as these are loaded.
    pub(super) fn has_nan(&self, query: &SparseQuery) -> bool {
        let dimensions = query.order.dimensions().iter().enumerate();
        let mut reals = dimensions.filter(|(_, dimension)| dimension.datatype.is_real());
        reals.any(|(d, dimension)| {
            let view: Option<FieldView<'_>> = self.view(Field::Dimension(d));
            let size = dimension.datatype.physical().size();
            view.is_some_and(|view| {
                let mut cells = view.data.chunks_exact(size);
                cells.any(|cell| !is_number(cell, cell))
            })
        })
    }

    pub(super) fn request(&self, field: Field, cells: Cells) -> TileRequest {
        TileRequest {
            fragment: self.of.index,
            field,
            tile: self.tile.tile as u64,
            cells,
        }
    }

    /// Whether the query selects only some of the tile's cells, or another batch needs them too.
    pub(super) fn is_partial(&self) -> bool {
        !self.tile.dimensions.is_empty() || self.shared
    }

    /// The field that a column of the query is in its fragment, if there is one.
    pub(super) fn field(&self, column: usize) -> Option<Field> {
        self.of.fields.get(column).copied().flatten()
    }

    pub(super) fn view(&self, field: Field) -> Option<FieldView<'_>> {
        self.loaded.get(&field).map(|tile| tile.view())
    }

    /// Fields that say which cells exist and are selected, and in which order.
    pub(super) fn key_fields(&self, query: &SparseQuery) -> Vec<Field> {
        let dimensions = match self.keyed {
            true => (0..query.order.dimensions().len()).collect(),
            false => self.tile.dimensions.clone(),
        };
        let dimensions = dimensions.into_iter();
        let mut fields: Vec<Field> = dimensions.map(Field::Dimension).collect();
        let decides = self.keyed && self.of.merges;
        if self.fragment.has_timestamps() && (decides || self.of.tests_timestamps() || query.times)
        {
            fields.push(Field::Timestamps);
        }
        fields
    }

    /// The conditions that its cells have to be tested by.
    pub(super) fn tests(&self) -> impl Iterator<Item = &'a CellTest> {
        let tests = self.tile.tests.iter();
        tests.filter_map(|test| self.of.tests.get(*test))
    }

    /// The cells of the fields of a condition.
    pub(super) fn tested(&self, test: &CellTest) -> Result<Vec<FieldView<'_>>> {
        let missing = || Error::Internal("a condition's field was not loaded".into());
        let fields = test.fields.iter();
        let views = fields.map(|field| self.view(*field).ok_or_else(missing));
        views.collect()
    }

    /// Fields that say which cells are results.
    pub(super) fn test_fields(&self, query: &SparseQuery) -> Vec<Field> {
        let tested = self.tests().flat_map(|test| &test.fields).copied();
        let is_deleted = self.of.deleted_until.is_some() && !self.tile.no_results;
        let deleted = is_deleted.then_some(Field::DeleteTimestamps);
        let stored = [Field::DeleteTimestamps, Field::DeleteConditions].into_iter();
        let stored = stored.filter(|field| query.deletions && self.fragment.stores(*field));
        tested.chain(deleted).chain(stored).collect()
    }

    /// The dimension whose coordinates leave few of the tile's cells, if there is one: it is looked
    /// at before the others are read.
    pub(super) fn selective_dimension(&self, query: &SparseQuery) -> Option<usize> {
        if self.key_fields(query).len() < 2 {
            return None;
        }
        let shares = self.tile.dimensions.iter().filter_map(|&d| {
            let range = self.tree.tile_range(self.tile.tile, d)?;
            Some((query.selection.share(d, range)?, d))
        });
        let least = shares.min_by(|a, b| a.0.total_cmp(&b.0));
        least.filter(|(share, _)| *share < FEW).map(|(_, d)| d)
    }

    /// The cells whose other coordinates are worth a look.
    pub(super) fn candidates(&self) -> Cells {
        match &self.selected {
            RowSelection::List(list) => around(list, self.tile.cell_num),
            RowSelection::All(_) => Cells::All,
        }
    }

    /// One byte a cell: whether it is selected.
    fn selected_mask(&self) -> Vec<u8> {
        self.selected.mask(self.tile.cell_num as usize)
    }

    /// Picks the cells that are selected along `dimensions`.
    pub(super) fn select_along(&mut self, query: &SparseQuery, dimensions: &[usize]) -> Result<()> {
        let selected = std::mem::replace(&mut self.selected, RowSelection::All(0));
        self.selected = query.selection.select(
            dimensions,
            &|d| self.view(Field::Dimension(d)),
            &|d| self.tree.tile_range(self.tile.tile, d),
            selected,
        )?;
        Ok(())
    }

    /// Picks the cells that are selected and were written while the array was open.
    pub(super) fn select(&mut self, query: &SparseQuery) -> Result<()> {
        if self.selected.len() == 0 {
            return Ok(());
        }
        self.select_along(query, &self.tile.dimensions)?;
        if let Some(within) = self.of.within {
            let mut mask = self.selected_mask();
            for (m, time) in mask.iter_mut().zip(self.times(Field::Timestamps)?) {
                *m &= u8::from(within.start <= time && time <= within.end);
            }
            self.selected = RowSelection::of_mask(&mask);
        }
        Ok(())
    }

    /// The values of a field of timestamps.
    pub(super) fn times(&self, field: Field) -> Result<impl Iterator<Item = u64> + '_> {
        let missing = || Error::Internal("timestamps were not loaded".into());
        let (times, _) = self.view(field).ok_or_else(missing)?.data.as_chunks();
        Ok(times.iter().map(|bytes| u64::from_le_bytes(*bytes)))
    }

    /// Finds the cells that are no results though they exist: deleted, or failing the query's
    /// condition.
    pub(super) fn test(&mut self) -> Result<()> {
        let no_results = self.tile.no_results;
        let deleted_until = self.of.deleted_until.filter(|_| !no_results);
        if self.tile.tests.is_empty() && deleted_until.is_none() && !no_results {
            return Ok(());
        }
        let mut mask = match no_results {
            true => vec![0; self.tile.cell_num as usize],
            false => self.selected_mask(),
        };
        if let Some(until) = deleted_until {
            for (m, time) in mask.iter_mut().zip(self.times(Field::DeleteTimestamps)?) {
                *m &= u8::from(time > until || time == u64::MAX);
            }
        }
        for test in self.tests() {
            let views = self.tested(test)?;
            match test.until {
                None => test.condition.evaluate(&views, &mut mask)?,
                Some(until) => {
                    let mut matching = mask.clone();
                    test.condition.evaluate(&views, &mut matching)?;
                    let times = self.times(Field::Timestamps)?;
                    for ((m, matches), time) in mask.iter_mut().zip(matching).zip(times) {
                        *m &= u8::from(matches != 0 || time > until);
                    }
                }
            }
        }
        if self.of.merges && self.keyed {
            self.results = Some(mask);
        } else {
            self.selected = RowSelection::of_mask(&mask);
        }
        Ok(())
    }

    /// Drops everything of the tile but the selected cells, which are at `places` among those left
    /// and get the order of these, and what is not needed of them.
    pub(super) fn compact(&mut self, query: &SparseQuery, places: Vec<u32>) {
        // Not decoded again: key fields, and those that `history` has made.
        let mut needed = self.key_fields(query);
        needed.extend(query.times.then_some(Field::Timestamps));
        if query.deletions {
            needed.extend([Field::DeleteTimestamps, Field::DeleteConditions]);
        }
        let wanted =
            |field: &Field| needed.contains(field) || self.of.fields.contains(&Some(*field));
        self.loaded
            .retain(|field, _| wanted(field) && !places.is_empty());
        for tile in self.loaded.values_mut() {
            *tile = Arc::new(cut(tile, &places));
        }
        if let Some(results) = &mut self.results {
            *results = places
                .iter()
                .map(|place| results.get(*place as usize).copied().unwrap_or(0))
                .collect();
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "fewer than the tile's cells"
        )]
        let all = RowSelection::All(places.len() as u32);
        self.selected = all;
        self.places = Some(match &self.places {
            None => places,
            Some(left) => places
                .iter()
                .filter_map(|at| left.get(*at as usize).copied())
                .collect(),
        });
    }
}
