//! A dense query, and from its plans to cells: tiles are loaded in groups and copied to where the
//! plan says.

use super::bands::{FetchedTiles, Layer, SPAN_GAP_BYTES, fill_layers};
use super::condition::DenseCondition;
use super::mask_fill::{fill_masked, refilled};
use super::overlay::OverlaidFragment;
use super::plan::{BatchPlan, DensePlan, TileTask, field_in};
use crate::array::{Array, Fragment};
use crate::cancel::Operation;
use crate::column::{BatchColumn, FieldView, repeat_cell};
use crate::error::{Error, Result};
use crate::read::BoundField;
use crate::read::budget::Budget;
use crate::read::decode::{Cells, StoredPart, fixed_parts, stored_tiles};
use crate::read::fetch::Fetcher;
use crate::read::output::{FieldOut, FixedBuffer, FixedOut};
use crate::read::stored_tile::StoredTile;
use crate::space::copy::{CopyList, fill_cells};
use azulejo_format::DecodeError;
use azulejo_format::fragment::Field;
use std::ops::Range;

/// What a dense read asks: bound once, before any tile is looked at.
#[derive(Debug)]
pub(super) struct DenseQuery {
    pub array: Array,
    pub plan: DensePlan,
    /// Fragments whose tiles are not those of the grid, oldest first.
    pub overlaid: Vec<OverlaidFragment>,
    /// The columns asked for, then those that only the condition needs.
    pub fields: Vec<BoundField>,
    /// How many were asked for.
    pub asked: usize,
    pub condition: Option<DenseCondition>,
    /// Dimensions from slowest to fastest, in the result (in a tile, for global order).
    pub order: Vec<usize>,
    pub budget: Budget,
    pub fetcher: Fetcher,
    /// The read, which can be cancelled.
    pub operation: Operation,
}

/// What becomes of cells that do not match the condition.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unmatched {
    /// They read as fill values.
    Fill,
    /// They stay as they are: the mask tells.
    Stay,
}

impl DenseQuery {
    /// Fills memory for the fields asked for; makes columns of some, and tells which cells match the
    /// condition, if there is one. `words`: whether texts may come as words.
    pub async fn cells(
        &self,
        batch: &BatchPlan,
        outs: Vec<FieldOut<'_>>,
        unmatched: Unmatched,
        words: bool,
    ) -> Result<(Vec<Option<BatchColumn>>, Option<Vec<u8>>)> {
        // 1. Memory for the fields of the condition.
        let others = self.fields.get(self.asked..).unwrap_or(&[]);
        let buffer = |field| FixedBuffer::new(field, batch.cells, self.fetcher.pool());
        let mut buffers = others.iter().map(buffer).collect::<Result<Vec<_>>>()?;
        let more = others.iter().zip(&mut buffers);
        let mut outs: Vec<FieldOut<'_>> = outs
            .into_iter()
            .chain(more.map(|(field, buffer)| FieldOut::own(field, buffer)))
            .collect();

        // 2. Cells of fixed length, all fields at once, and then var-length ones.
        let fixed = outs.iter_mut().filter_map(|out| match out {
            FieldOut::Fixed(out) => Some(out),
            _ => None,
        });
        self.fixed(batch, fixed.collect()).await?;
        let mut columns = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            self.operation.check()?;
            columns.push(if words && self.as_words(batch, field, unmatched) {
                Some(BatchColumn::Words(self.word_column(batch, field).await?))
            } else if field.column_type.is_var() {
                Some(BatchColumn::Cells(self.var_column(batch, field).await?))
            } else {
                None
            });
        }

        // 3. The condition.
        let views = outs
            .iter()
            .zip(&columns)
            .map(|(out, column)| match (out, column) {
                (_, Some(BatchColumn::Cells(column))) => Ok(column.view()),
                // The condition does not look at it.
                (_, Some(BatchColumn::Words(column))) => Ok(column.ids.view()),
                (FieldOut::Fixed(out), None) => Ok(out.view(batch.cells)),
                _ => Err(Error::Internal("a field without memory".into())),
            });
        let mask = match &self.condition {
            Some(condition) => {
                let views = views.collect::<Result<Vec<FieldView<'_>>>>()?;
                Some(self.mask(condition, batch, &views)?)
            }
            None => None,
        };
        let fills = |mask: &&Vec<u8>| unmatched == Unmatched::Fill && mask.contains(&0);
        if let Some(mask) = mask.as_ref().filter(fills) {
            let asked = self.fields.iter().zip(&mut outs).zip(&mut columns);
            for ((field, out), column) in asked.take(self.asked) {
                match (out, column) {
                    (_, Some(BatchColumn::Cells(column))) => {
                        *column = refilled(column, field, mask)?;
                    }
                    // Coordinates stay as they are.
                    (FieldOut::Fixed(out), None) if matches!(field.field, Field::Attribute(_)) => {
                        let validity = out.validity.as_deref_mut();
                        fill_masked(self.array.context(), mask, &field.fill, out.data, validity)?;
                    }
                    _ => {}
                }
            }
        }
        columns.truncate(self.asked);
        Ok((columns, mask))
    }

    /// Asks for the tiles of a batch in the order in which [`Self::cells`] takes them.
    pub fn prefetch(&self, batch: &BatchPlan) -> Result<()> {
        let room = self.budget.prefetch;
        let attributes = self
            .fields
            .iter()
            .filter(|field| matches!(field.field, Field::Attribute(_)));
        let (var, fixed): (Vec<&BoundField>, Vec<_>) =
            attributes.partition(|f| f.column_type.is_var());
        let _ = self.ahead(batch, &self.groups(batch, &fixed)?, &fixed, room)?;
        for field in var {
            self.fetcher
                .prefetch(&self.stored(&batch.tasks, &[field])?, room);
        }
        Ok(())
    }

    /// Asks for the tiles of groups in their order, as long as there is room: `room` bytes for those
    /// of the first. Returns of how many groups all was asked for.
    fn ahead(
        &self,
        batch: &BatchPlan,
        groups: &[Range<usize>],
        fields: &[&BoundField],
        mut room: u64,
    ) -> Result<usize> {
        for (i, group) in groups.iter().enumerate() {
            let tasks = batch.tasks.get(group.clone()).unwrap_or(&[]);
            let stored = self.stored(tasks, fields)?;
            if !self.fetcher.prefetch(&stored, room) {
                return Ok(i);
            }
            room = self.budget.prefetch;
        }
        Ok(groups.len())
    }

    /// Fills fixed-length columns.
    async fn fixed(&self, batch: &BatchPlan, mut outs: Vec<&mut FixedOut<'_>>) -> Result<()> {
        for out in &mut outs {
            if let Field::Dimension(d) = out.field.field {
                self.coordinates(batch, d, out.data);
            } else if !batch.fills.is_empty() {
                fill(batch, &batch.fills, 0..batch.fills.len(), out)?;
            }
        }
        outs.retain(|out| matches!(out.field.field, Field::Attribute(_)));
        if outs.is_empty() {
            return Ok(());
        }
        if self.fetcher.streams() {
            return self.fill(batch, &batch.tasks, &mut outs, None);
        }
        // Stored tiles are read in large batches, each while the one before is unfiltered.
        let fields: Vec<&BoundField> = outs.iter().map(|out| out.field).collect();
        let groups = self.groups(batch, &fields)?;
        // The first group of which something may not have been asked for.
        let mut asked = 0;
        for (i, group) in groups.iter().enumerate() {
            self.operation.check()?;
            let tasks = batch.tasks.get(group.clone()).unwrap_or(&[]);
            let stored = self.stored(tasks, &fields)?;
            let fetched = self.fetcher.fetch(&stored).await?;
            // The next one has room even where one tile is all of it, others where these have left
            // room.
            let room = match asked <= i + 1 {
                true => self.budget.tiles,
                false => self.budget.prefetch,
            };
            asked = asked.max(i + 1);
            let later = groups.get(asked..).unwrap_or(&[]);
            asked += self.ahead(batch, later, &fields, room)?;
            let fetched: FetchedTiles = stored.into_iter().zip(fetched).collect();
            self.fill(batch, tasks, &mut outs, Some(&fetched))?;
        }
        Ok(())
    }

    /// Fills the cells that some tiles have.
    fn fill(
        &self,
        batch: &BatchPlan,
        tasks: &[TileTask],
        outs: &mut [&mut FixedOut<'_>],
        fetched: Option<&FetchedTiles>,
    ) -> Result<()> {
        let layers = self.layers(batch, tasks, outs)?;
        let threads = self.threads(&layers);
        fill_layers(&self.fetcher, batch, tasks, layers, fetched, threads)
    }

    /// Threads that may each hold a tile within the memory budget.
    fn threads(&self, layers: &[Layer<'_, '_>]) -> usize {
        let tiles = layers.iter().flat_map(|layer| layer.tiles.iter().flatten());
        let cost = |part: &StoredPart<'_>| {
            (part.range.end - part.range.start).saturating_add(part.len() as u64)
        };
        let most = tiles.map(cost).max().unwrap_or(0).max(1);
        let room = usize::try_from(self.budget.tiles / most).unwrap_or(usize::MAX);
        self.array.context().threads().min(room).max(1)
    }

    /// Cuts the tasks of a batch into groups that are fetched together.
    fn groups(&self, batch: &BatchPlan, fields: &[&BoundField]) -> Result<Vec<Range<usize>>> {
        let mut groups: Vec<Range<usize>> = Vec::new();
        let mut cost = 0u64;
        for (i, task) in batch.tasks.iter().enumerate() {
            let mut more = 0u64;
            for field in fields {
                more = more.saturating_add(task.load_cost(&self.array, field)?);
            }
            cost = cost.saturating_add(more);
            match groups.last_mut() {
                Some(group) if cost <= self.budget.group => group.end = i + 1,
                _ => {
                    groups.push(i..i + 1);
                    cost = more;
                }
            }
        }
        Ok(groups)
    }

    /// The stored tiles of fields of some tasks.
    fn stored(&self, tasks: &[TileTask], fields: &[&BoundField]) -> Result<Vec<StoredTile>> {
        let mut stored = Vec::new();
        for field in fields {
            for task in tasks {
                if let Some(request) = task.request(&self.array, field, Cells::All) {
                    stored_tiles(&self.array, &request, &mut stored)?;
                }
            }
        }
        Ok(stored)
    }

    /// The buffers to fill, and the stored tiles that they are filled from; what has no tile is
    /// filled at once.
    fn layers<'a, 'o>(
        &'a self,
        batch: &BatchPlan,
        tasks: &[TileTask],
        outs: &'o mut [&mut FixedOut<'_>],
    ) -> Result<Vec<Layer<'a, 'o>>> {
        let mut layers = Vec::with_capacity(outs.len());
        for out in outs {
            let mut values = Vec::with_capacity(tasks.len());
            let mut validities = Vec::with_capacity(tasks.len());
            for task in tasks {
                let Some(field) = field_in(&self.array, task.fragment, out.field) else {
                    fill(batch, &batch.copies, task.copies.clone(), out)?;
                    values.push(None);
                    validities.push(None);
                    continue;
                };
                let (value, validity) = fixed_parts(&self.array, task.fragment, field, task.tile)?;
                self.check(task, value.cell_num)?;
                if let (None, Some(out)) = (&validity, &mut out.validity) {
                    let copies = batch.copies_of(task);
                    fill_cells(&batch.copies, copies, &[1], out, &(0..batch.cells))?;
                }
                values.push(Some(value));
                validities.push(validity);
            }
            let cell_size = out.field.column_type.cell_size();
            layers.push(Layer {
                out: &mut *out.data,
                cell_size,
                tiles: values,
            });
            if let Some(out) = &mut out.validity {
                layers.push(Layer {
                    out,
                    cell_size: 1,
                    tiles: validities,
                });
            }
        }
        Ok(layers)
    }

    fn dense(&self, task: &TileTask) -> Option<&Fragment> {
        let fragment = self.array.fragments().get(task.fragment);
        fragment.filter(|fragment| fragment.is_dense())
    }

    /// Tiles of dense fragments must have as many cells as their schema's.
    pub fn check(&self, task: &TileTask, cell_num: usize) -> Result<()> {
        let Some(fragment) = self.dense(task) else {
            return Ok(());
        };
        let expected = fragment.tile_cell_num(task.tile);
        if cell_num as u64 == expected {
            return Ok(());
        }
        let reason = format!("tile {} has {cell_num} cells, not {expected}", task.tile);
        let source = DecodeError::invalid("tile", 0, reason);
        Err(Error::decode(fragment.name(), source))
    }

    /// Which cells of a task's tile are needed.
    pub fn wanted(&self, batch: &BatchPlan, task: &TileTask, cell_size: usize) -> Cells {
        let whole = self.dense(task).map(|f| f.tile_cell_num(task.tile));
        if whole.is_none_or(|whole| batch.cells_of(task) >= whole) {
            return Cells::All;
        }
        let (copies, all) = (batch.copies_of(task), 0..batch.cells);
        let gap = SPAN_GAP_BYTES / cell_size.max(1);
        Cells::Spans(batch.copies.spans(copies, &all, gap))
    }

    /// Writes the coordinates along a dimension.
    fn coordinates(&self, batch: &BatchPlan, d: usize, out: &mut [u8]) {
        let (axis, selection) = (&self.plan.grid.axes()[d], &self.plan.selection[d]);
        let size = out.len().checked_div(batch.cells).unwrap_or(1);
        let mut value = vec![0; size];
        for placed in &batch.boxes {
            let Some(out) = out.get_mut(placed.base * size..(placed.base + placed.cells) * size)
            else {
                continue;
            };
            let positions = placed.positions[d].clone();
            let block = (placed.strides[d] * size).max(1);
            let cycle = (positions.end - positions.start) as usize * block;
            let (first, rest) = out.split_at_mut(cycle.min(out.len()));
            for (run, position) in first.chunks_mut(block).zip(positions) {
                axis.write_coordinate(selection.offset_at(position), &mut value);
                repeat_cell(run, &value);
            }
            // The cycle repeats for every position of the slower dimensions.
            repeat_cell(rest, first);
        }
    }
}

/// Writes a field's fill value to the places of copies.
fn fill(
    batch: &BatchPlan,
    list: &CopyList,
    copies: Range<usize>,
    out: &mut FixedOut<'_>,
) -> Result<()> {
    let (copies, all) = (list.get(copies), 0..batch.cells);
    let fill = &out.field.fill;
    fill_cells(list, copies, &fill.bytes, out.data, &all)?;
    match &mut out.validity {
        Some(validity) => fill_cells(list, copies, &[u8::from(fill.valid)], validity, &all),
        None => Ok(()),
    }
}
