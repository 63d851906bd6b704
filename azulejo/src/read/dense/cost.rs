//! What batches of a dense read cost in memory.

use super::assemble::DenseQuery;
use super::plan::{BatchPlan, PositionBox, field_in};
use crate::error::{Error, Result};
use crate::read::budget::Budget;
use crate::read::stored_tile::fragment_of;

/// What batches cost in memory.
#[derive(Clone, Copy)]
pub(super) struct BatchCosts<'a> {
    pub query: &'a DenseQuery,
    pub budget: Budget,
}

impl DenseQuery {
    /// What batches cost, within all of the query's memory.
    pub fn costs(&self) -> BatchCosts<'_> {
        BatchCosts {
            query: self,
            budget: self.budget,
        }
    }
}

impl BatchCosts<'_> {
    /// Bytes of a result's cell, values of var-length cells apart.
    fn cell_bytes(&self) -> u64 {
        // Where cells are laid over a plan one by one.
        let overlaid = match self.query.overlaid.is_empty() {
            true => 0,
            false => 32,
        };
        let masked = u64::from(self.query.condition.is_some());
        let bytes = self.query.fields.iter().map(|field| {
            let kind = &field.column_type;
            let fixed = if kind.is_var() { 8 } else { kind.cell_size() };
            (fixed as u64).saturating_add(u64::from(kind.nullable))
        });
        bytes.fold(overlaid + masked, u64::saturating_add)
    }

    /// Cells that leave tiles their part of the budget.
    pub fn max_cells(&self) -> u64 {
        self.budget.result / self.cell_bytes().max(1)
    }

    pub fn too_small(&self) -> Error {
        let fields = self.query.fields.iter();
        let cells = fields.map(|f| f.column_type.cell_size() as u64);
        let tile = cells.max().unwrap_or(0);
        let need = tile
            .saturating_mul(self.query.plan.grid.tile_cells())
            .saturating_add(self.cell_bytes());
        let uri = self.query.array.uri();
        Error::Budget {
            what: format!("one cell of {uri} and the tile that holds it"),
            need: need.max(self.budget.total.saturating_add(1)),
            budget: self.budget.total,
        }
    }

    /// The plan of a box that follows `start` other cells, and its cost, if that fits in the budget
    /// after `spent` bytes.
    pub fn plan(
        &self,
        piece: &PositionBox,
        start: usize,
        spent: u64,
    ) -> Result<Option<(BatchPlan, u64)>> {
        // A plan itself takes memory: about 200 bytes a tile.
        let tiles = piece.iter().enumerate();
        let tiles = tiles.map(|(d, r)| self.query.plan.tiles_along(d, r));
        let tiles = tiles.fold(1u64, u64::saturating_mul);
        if tiles.saturating_mul(200) > self.budget.tiles && tiles > 1 {
            return Ok(None);
        }
        let plan = self
            .query
            .plan
            .batch(piece.clone(), &self.query.order, start)?;
        let cost = self.of(&plan)?;
        Ok((spent.saturating_add(cost) <= self.budget.total).then_some((plan, cost)))
    }

    /// An upper bound of the bytes that a batch holds at a time.
    pub fn of(&self, batch: &BatchPlan) -> Result<u64> {
        let DenseQuery {
            array,
            fields,
            plan,
            ..
        } = self.query;
        let cells = batch.boxes.iter().map(|of| of.cells as u64).sum::<u64>();
        let mut cost = cells
            .saturating_mul(self.cell_bytes())
            .saturating_add(batch.memory());
        let mut most = 0u64;
        // Of fixed-length fields at least one tile is at hand at a time.
        for field in fields.iter().filter(|f| !f.column_type.is_var()) {
            for task in &batch.tasks {
                most = most.max(task.load_cost(array, field)?);
            }
        }
        let repeats = !plan.is_ascending();
        for field in fields.iter().filter(|f| f.column_type.is_var()) {
            let mut loaded = 0u64;
            let fill = field.fill.bytes.len() as u64;
            cost = cost.saturating_add(fill.saturating_mul(cells));
            for task in &batch.tasks {
                loaded = loaded.saturating_add(task.load_cost(array, field)?);
                let Some(found) = field_in(array, task.fragment, field) else {
                    continue;
                };
                let fragment = fragment_of(array, task.fragment)?;
                let times = match &batch.order {
                    Some(_) => batch.most_taken(task)?,
                    None if repeats => task.copies.len() as u64,
                    None => 1,
                };
                let bytes = fragment.loaded().var_tile_size(found, task.tile)?;
                cost = cost.saturating_add(bytes.saturating_mul(times));
            }
            most = most.max(loaded);
        }
        // Cells that are read in another order are there twice when they are brought in theirs; no
        // tile is at hand then.
        if batch.order.is_some() {
            most = most.max(cost);
        }
        Ok(cost.saturating_add(most))
    }
}
