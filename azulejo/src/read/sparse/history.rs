//! What consolidation reads besides the cells: when each was written, when and by which delete it
//! was deleted.
//!
//! A consolidation that asks for [`Field::Timestamps`] gets every version of a cell, the latest
//! first; any other read gets the time of the version that counts. One that asks for
//! [`Field::DeleteTimestamps`] gets deleted cells too. Fragments that store neither get both made
//! here, as tiles.

use super::query::SparseQuery;
use super::tile::BatchTile;
use crate::error::Result;
use crate::read::{PoolBuffer, Tile};
use azulejo_format::fragment::Field;
use std::collections::HashMap;
use std::sync::Arc;

/// What delete metadata hold for cells that are not deleted, and for conditions that are none.
const NONE: u64 = u64::MAX;

impl BatchTile<'_> {
    /// Adds the timestamps of the cells, if the fragment does not store them: that from which on
    /// readers see it.
    pub(super) fn add_times(&mut self) -> Result<()> {
        if !self.fragment.stores(Field::Timestamps) {
            let times = vec![self.fragment.time_range().end; self.tile.cell_num as usize];
            self.loaded.insert(Field::Timestamps, tile_of(&times));
        }
        Ok(())
    }

    /// Adds when each cell was deleted, and by which of the array's deletes (by index): the first
    /// that it matches.
    pub(super) fn add_deletions(&mut self, query: &SparseQuery) -> Result<()> {
        let cells = self.tile.cell_num as usize;
        let (mut times, mut conditions) = (vec![NONE; cells], vec![NONE; cells]);
        let deletes = query.array.deletes();
        for test in self.tests() {
            let delete = test
                .delete
                .and_then(|index| Some((index, deletes.get(index)?)));
            let Some((index, delete)) = delete else {
                continue;
            };
            let views = self.tested(test)?;
            let mut stays = vec![1u8; cells];
            test.condition.evaluate(&views, &mut stays)?;
            if let Some(until) = test.until {
                for (stays, written) in stays.iter_mut().zip(self.times(Field::Timestamps)?) {
                    *stays |= u8::from(written > until);
                }
            }
            for ((time, condition), stays) in times.iter_mut().zip(&mut conditions).zip(stays) {
                if stays == 0 && *time == NONE {
                    (*time, *condition) = (delete.timestamp, index as u64);
                }
            }
        }
        if self.fragment.stores(Field::DeleteTimestamps) {
            let indices = self.condition_indices(query)?;
            let stored = self
                .times(Field::DeleteTimestamps)?
                .zip(self.times(Field::DeleteConditions)?);
            for ((time, condition), (stored_time, stored_condition)) in
                times.iter_mut().zip(&mut conditions).zip(stored)
            {
                if stored_time <= *time {
                    *time = stored_time;
                    *condition = indices.get(&stored_condition).copied().unwrap_or(NONE);
                }
            }
        }
        self.loaded.insert(Field::DeleteTimestamps, tile_of(&times));
        self.loaded
            .insert(Field::DeleteConditions, tile_of(&conditions));
        Ok(())
    }

    /// Indices into the array's deletes of the conditions that the fragment knows by its own
    /// indices.
    fn condition_indices(&self, query: &SparseQuery) -> Result<HashMap<u64, u64>> {
        let names = self.fragment.loaded().processed_conditions()?;
        let deletes = query.array.deletes();
        let index = |name: &String| deletes.iter().position(|delete| delete.name == *name);
        let known = names
            .iter()
            .enumerate()
            .filter_map(|(i, name)| Some((i as u64, index(name)? as u64)));
        Ok(known.collect())
    }
}

fn tile_of(values: &[u64]) -> Arc<Tile> {
    let data: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let cell_num = values.len();
    Arc::new(Tile {
        data: PoolBuffer::from(data),
        offsets: None,
        validity: None,
        cell_num,
        cell_size: 8,
    })
}
