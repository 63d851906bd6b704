//! From a plan to columns: tiles are loaded in groups and copied to where the plan says.

use super::bands::{FetchedTiles, Layer, SPAN_GAP_BYTES, fill_layers};
use super::mask::{fill_masked, matching, refilled};
use super::plan::{BatchPlan, DensePlan, TileTask};
use super::{DenseCondition, field_in};
use crate::array::{Array, Fragment};
use crate::buffer_pool::BufferPool;
use crate::cancel::Operation;
use crate::column::{ColumnBuffers, ColumnSet, FieldView, Tile, repeat_cell};
use crate::error::{Error, Result};
use crate::read::BoundField;
use crate::read::decode::{
    Cells, PARALLEL_BYTES, StoredPart, TileRequest, fixed_parts, load_into, stored_tiles,
};
use crate::read::fetch::{StoredTile, fetch};
use crate::read::gather::{each, split};
use crate::read::output::fixed::{FixedBuffer, FixedOut};
use crate::read::prefetch::Prefetch;
use crate::space::copy::{copy_cells, copy_lengths, copy_var, fill_cells};
use arrow_buffer::MutableBuffer;
use azulejo_format::ArraySchema;
use azulejo_format::fragment::Field;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Executes plans.
pub(super) struct Assembler<'a> {
    pub array: &'a Array,
    pub plan: &'a DensePlan,
    pub fields: &'a [BoundField],
    /// How many of the fields are results; the others are for the condition.
    pub asked: usize,
    pub condition: Option<&'a DenseCondition>,
    pub pool: &'a BufferPool,
    /// Bytes that tiles may take, stored and unfiltered.
    pub tile_bytes: u64,
    /// Tiles that were asked for before.
    pub prefetch: Option<&'a Prefetch>,
    /// The read, which can be cancelled.
    pub operation: &'a Operation,
}

fn beyond() -> Error {
    Error::Internal("a batch beyond the address space".into())
}

impl Assembler<'_> {
    /// The columns of a batch, cells that do not meet the condition as fill values.
    pub fn columns(&self, batch: &BatchPlan) -> Result<ColumnSet> {
        let (set, _) = self.read(batch, true)?;
        match &batch.order {
            Some(order) => set.pick(order),
            None => Ok(set),
        }
    }

    /// The columns of a batch with all cells as they are, and which of them meet the condition, if
    /// there is one.
    pub fn unmasked(&self, batch: &BatchPlan) -> Result<(ColumnSet, Option<Vec<u8>>)> {
        self.read(batch, false)
    }

    fn read(&self, batch: &BatchPlan, refills: bool) -> Result<(ColumnSet, Option<Vec<u8>>)> {
        let mut buffers = FixedBuffer::of(self.fields, batch.cells, self.pool)?;
        let outs = self
            .fields
            .iter()
            .zip(&mut buffers)
            .filter(|(f, _)| !f.column_type.is_var());
        self.fixed(
            batch,
            outs.map(|(field, buffer)| buffer.out(field)).collect(),
        )?;
        let mut var = Vec::with_capacity(self.fields.len());
        for field in self.fields {
            self.operation.check()?;
            var.push(
                field
                    .column_type
                    .is_var()
                    .then(|| self.var(batch, field))
                    .transpose()?,
            );
        }
        let views = var.iter().zip(&buffers).zip(self.fields);
        let views = views.map(|((var, buffer), field)| match var {
            Some(column) => column.view(),
            None => buffer.view(field, batch.cells),
        });
        let mask = self.mask(batch, &views.collect::<Vec<_>>())?;
        if let Some(mask) = mask.as_ref().filter(|mask| refills && mask.contains(&0)) {
            for ((field, buffer), var) in self
                .fields
                .iter()
                .zip(&mut buffers)
                .zip(&mut var)
                .take(self.asked)
            {
                match var {
                    Some(column) => *column = refilled(column, field, mask)?,
                    None => self.refill(mask, &mut buffer.out(field))?,
                }
            }
        }
        let columns = self.fields.iter().zip(buffers).zip(var).take(self.asked);
        let columns = columns.map(|((field, buffer), var)| {
            var.unwrap_or_else(|| buffer.into_column(field, batch.cells))
        });
        Ok((
            ColumnSet {
                cell_num: batch.cells,
                columns: columns.collect(),
            },
            mask,
        ))
    }

    /// Fills memory for the fields asked for, all of fixed length, cells that do not meet the
    /// condition with fill values.
    pub fn refilled_fixed(&self, batch: &BatchPlan, mut outs: Vec<FixedOut<'_>>) -> Result<()> {
        if self.condition.is_none() {
            return self.fixed(batch, outs);
        }
        let others = self.fields.get(self.asked..).unwrap_or(&[]);
        let mut buffers = FixedBuffer::of(others, batch.cells, self.pool)?;
        let more = others
            .iter()
            .zip(&mut buffers)
            .map(|(field, buffer)| buffer.out(field));
        self.fixed(
            batch,
            outs.iter_mut().map(FixedOut::again).chain(more).collect(),
        )?;
        let more = others
            .iter()
            .zip(&buffers)
            .map(|(field, buffer)| buffer.view(field, batch.cells));
        let views: Vec<FieldView<'_>> = outs
            .iter()
            .map(|out| out.view(batch.cells))
            .chain(more)
            .collect();
        let mask = self.mask(batch, &views)?;
        match mask.filter(|mask| mask.contains(&0)) {
            Some(mask) => outs.iter_mut().try_for_each(|out| self.refill(&mask, out)),
            None => Ok(()),
        }
    }

    /// Makes cells whose mask is 0 read as fill values; coordinates stay as they are.
    fn refill(&self, mask: &[u8], out: &mut FixedOut<'_>) -> Result<()> {
        match out.field.field {
            Field::Attribute(_) => {
                let FixedOut {
                    field,
                    data,
                    validity,
                } = out;
                fill_masked(
                    self.array.context(),
                    mask,
                    &field.fill,
                    data,
                    validity.as_deref_mut(),
                )
            }
            _ => Ok(()),
        }
    }

    /// Asks for the tiles of a batch in the order in which [`Self::unmasked`] takes them.
    pub fn start(&self, batch: &BatchPlan) -> Result<()> {
        let Some(ahead) = self.prefetch else {
            return Ok(());
        };
        let room = self.tile_bytes / 2;
        let attributes = self
            .fields
            .iter()
            .filter(|field| matches!(field.field, Field::Attribute(_)));
        let (var, fixed): (Vec<&BoundField>, Vec<_>) =
            attributes.partition(|f| f.column_type.is_var());
        for group in self.groups(batch, &fixed)? {
            ahead.start(
                self.array,
                &self.stored(batch.tasks.get(group).unwrap_or(&[]), &fixed)?,
                room,
            );
        }
        for field in var {
            let mut stored = Vec::new();
            for task in &batch.tasks {
                if let Some(field) = field_in(self.array, task.fragment, field) {
                    let request = TileRequest {
                        fragment: task.fragment,
                        field,
                        tile: task.tile,
                        cells: Cells::All,
                    };
                    stored_tiles(self.array, &request, &mut stored)?;
                }
            }
            ahead.start(self.array, &stored, room);
        }
        Ok(())
    }

    /// Fills fixed-length columns.
    pub fn fixed(&self, batch: &BatchPlan, mut outs: Vec<FixedOut<'_>>) -> Result<()> {
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
        if self.array.location().storage.latency().is_low() {
            let layers = self.layers(batch, &batch.tasks, &mut outs)?;
            let threads = self.threads(&layers);
            return fill_layers(
                self.array,
                self.pool,
                batch,
                &batch.tasks,
                layers,
                None,
                threads,
            );
        }
        // Elsewhere stored tiles are read in large batches, each while the one before is
        // unfiltered.
        let fields: Vec<&BoundField> = outs.iter().map(|out| out.field).collect();
        let groups = self.groups(batch, &fields)?;
        let mut fetched = match groups.first() {
            Some(first) => self.fetch(batch.tasks.get(first.clone()).unwrap_or(&[]), &fields)?,
            None => return Ok(()),
        };
        for (i, group) in groups.iter().enumerate() {
            self.operation.check()?;
            let tasks = batch.tasks.get(group.clone()).unwrap_or(&[]);
            let ahead = groups
                .get(i + 1)
                .and_then(|next| batch.tasks.get(next.clone()));
            let layers = self.layers(batch, tasks, &mut outs)?;
            let threads = self.threads(&layers);
            let (filled, next) = self.array.context().install(|| {
                rayon::join(
                    || {
                        fill_layers(
                            self.array,
                            self.pool,
                            batch,
                            tasks,
                            layers,
                            Some(&fetched),
                            threads,
                        )
                    },
                    || ahead.map(|tasks| self.fetch(tasks, &fields)).transpose(),
                )
            });
            filled?;
            fetched = next?.unwrap_or_default();
        }
        Ok(())
    }

    /// Threads that may each hold a tile within the memory budget.
    fn threads(&self, layers: &[Layer<'_, '_>]) -> usize {
        let tiles = layers.iter().flat_map(|layer| layer.tiles.iter().flatten());
        let cost = |part: &StoredPart<'_>| {
            (part.range.end - part.range.start).saturating_add(part.len().unwrap_or(0) as u64)
        };
        let most = tiles.map(cost).max().unwrap_or(0).max(1);
        let context = self.array.context();
        context
            .threads()
            .min(usize::try_from(self.tile_bytes / most).unwrap_or(usize::MAX))
            .max(1)
    }

    /// Cuts the tasks of a batch where their stored tiles exceed a quarter of what tiles may take.
    fn groups(&self, batch: &BatchPlan, fields: &[&BoundField]) -> Result<Vec<Range<usize>>> {
        let mut groups: Vec<Range<usize>> = Vec::new();
        let mut cost = 0u64;
        for (i, task) in batch.tasks.iter().enumerate() {
            let mut more = 0u64;
            for field in fields {
                more = more.saturating_add(task.load_cost(self.array, field)?);
            }
            cost = cost.saturating_add(more);
            match groups.last_mut() {
                Some(group) if cost <= self.tile_bytes / 4 => group.end = i + 1,
                _ => {
                    groups.push(i..i + 1);
                    cost = more;
                }
            }
        }
        Ok(groups)
    }

    /// The stored tiles of fixed-length fields of some tasks.
    fn stored(&self, tasks: &[TileTask], fields: &[&BoundField]) -> Result<Vec<StoredTile>> {
        let mut tiles = Vec::new();
        for field in fields {
            for task in tasks {
                if let Some(field) = field_in(self.array, task.fragment, field) {
                    let (values, validity) =
                        fixed_parts(self.array, task.fragment, field, task.tile)?;
                    tiles.push(values.tile);
                    tiles.extend(validity.map(|part| part.tile));
                }
            }
        }
        Ok(tiles)
    }

    /// Reads the stored tiles of some tasks as one batch.
    fn fetch(&self, tasks: &[TileTask], fields: &[&BoundField]) -> Result<FetchedTiles> {
        let tiles = self.stored(tasks, fields)?;
        let fetched = fetch(self.array, &tiles, self.pool, self.prefetch)?;
        Ok(tiles
            .into_iter()
            .zip(fetched)
            .map(|(tile, fetched)| (tile, fetched.bytes))
            .collect())
    }

    /// The buffers to fill, and the stored tiles that they are filled from; what has no tile is
    /// filled at once.
    fn layers<'a, 'o>(
        &'a self,
        batch: &BatchPlan,
        tasks: &[TileTask],
        outs: &'o mut [FixedOut<'_>],
    ) -> Result<Vec<Layer<'a, 'o>>> {
        let mut layers = Vec::with_capacity(outs.len());
        for out in outs {
            let mut values = Vec::with_capacity(tasks.len());
            let mut validities = Vec::with_capacity(tasks.len());
            for task in tasks {
                let Some(field) = field_in(self.array, task.fragment, out.field) else {
                    fill(batch, &batch.copies, task.copies.clone(), out)?;
                    values.push(None);
                    validities.push(None);
                    continue;
                };
                let (value, validity) = fixed_parts(self.array, task.fragment, field, task.tile)?;
                self.check(task, value.cell_num)?;
                if let (None, Some(out)) = (&validity, &mut out.validity) {
                    fill_cells(
                        &batch.copies,
                        batch.copies.get(task.copies.clone()),
                        &[1],
                        out,
                        &(0..batch.cells),
                    )?;
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
    fn check(&self, task: &TileTask, cell_num: usize) -> Result<()> {
        let Some(fragment) = self.dense(task) else {
            return Ok(());
        };
        let expected = fragment.tile_cell_num(task.tile);
        if cell_num as u64 != expected {
            let name = fragment.name();
            let reason = format!("tile {} has {cell_num} cells, not {expected}", task.tile);
            return Err(Error::decode(
                name,
                azulejo_format::DecodeError::invalid("tile", 0, reason),
            ));
        }
        Ok(())
    }

    /// Which cells of a task's tile are needed.
    fn wanted(&self, batch: &BatchPlan, task: &TileTask, cell_size: usize) -> Cells {
        let copies = batch.copies.get(task.copies.clone());
        let cells: usize = copies.iter().map(|c| batch.copies.cells(c)).sum();
        let whole = self.dense(task).map(|f| f.tile_cell_num(task.tile));
        if whole.is_none_or(|whole| cells as u64 >= whole) {
            return Cells::All;
        }
        Cells::Spans(batch.copies.spans(
            copies,
            &(0..batch.cells),
            SPAN_GAP_BYTES / cell_size.max(1),
        ))
    }

    /// Makes a column of var-length cells.
    fn var(&self, batch: &BatchPlan, field: &BoundField) -> Result<ColumnBuffers> {
        let mut requests = Vec::new();
        let mut loaded = Vec::new();
        let mut lacking = Vec::new();
        for task in &batch.tasks {
            match field_in(self.array, task.fragment, field) {
                Some(found) => {
                    let cells = self.wanted(batch, task, 8);
                    requests.push(TileRequest {
                        fragment: task.fragment,
                        field: found,
                        tile: task.tile,
                        cells,
                    });
                    loaded.push(task);
                }
                None => lacking.push(task),
            }
        }
        let tiles = load_into(self.array, &requests, Vec::new(), self.pool, self.prefetch)?;
        for (tile, task) in tiles.iter().zip(&loaded) {
            self.check(task, tile.cell_num)?;
        }
        let tiles: Vec<(&TileTask, &Tile)> = loaded.into_iter().zip(&tiles).collect();
        let context = self.array.context();
        let parts = if batch.cells.saturating_mul(16) < PARALLEL_BYTES {
            1
        } else {
            4
        };
        let bands = bands(&(0..batch.cells), parts);

        let mut offsets =
            MutableBuffer::from_len_zeroed((batch.cells + 1).checked_mul(8).ok_or_else(beyond)?);
        let placed = offsets.typed_data_mut::<u64>();
        let ends = placed.get_mut(1..).unwrap_or(&mut []);
        let fill_len = field.fill.bytes.len() as u64;
        if fill_len > 0 && !(batch.fills.is_empty() && lacking.is_empty()) {
            ends.fill(fill_len);
        }
        let pieces = split(ends, bands.iter().map(Range::len));
        each(
            context,
            bands.iter().zip(pieces).collect(),
            |(band, lens)| {
                for (task, tile) in &tiles {
                    let copies = batch.copies.get(task.copies.clone());
                    copy_lengths(
                        &batch.copies,
                        copies,
                        tile.offsets.as_deref().unwrap_or(&[]),
                        lens,
                        band,
                    )?;
                }
                Ok(())
            },
        )?;
        let mut sum = 0u64;
        for end in placed.iter_mut() {
            sum = sum.checked_add(*end).ok_or_else(beyond)?;
            *end = sum;
        }

        let mut data = MutableBuffer::from_len_zeroed(usize::try_from(sum).map_err(|_| beyond())?);
        let placed: &[u64] = placed;
        let bytes = |band: &Range<usize>| (placed[band.end] - placed[band.start]) as usize;
        let pieces = split(data.as_slice_mut(), bands.iter().map(bytes));
        each(
            context,
            bands.iter().zip(pieces).collect(),
            |(band, out)| {
                let placed = placed.get(band.start..=band.end).unwrap_or(&[]);
                for (task, tile) in &tiles {
                    let copies = batch.copies.get(task.copies.clone());
                    let source = (&*tile.data, tile.offsets.as_deref().unwrap_or(&[]));
                    copy_var(&batch.copies, copies, source, (&mut *out, placed), band)?;
                }
                if fill_len == 0 {
                    return Ok(());
                }
                let base = placed.first().copied().unwrap_or(0);
                let mut fill = |row: crate::space::copy::Row| {
                    for i in 0..row.axis.count {
                        let at = row.out - band.start + i * row.axis.out;
                        let start = (placed.get(at).ok_or_else(beyond)? - base) as usize;
                        let place = out
                            .get_mut(start..start + field.fill.bytes.len())
                            .ok_or_else(beyond)?;
                        place.copy_from_slice(&field.fill.bytes);
                    }
                    Ok(())
                };
                for copy in batch.fills.all() {
                    batch.fills.rows(copy, band, &mut fill)?;
                }
                for task in &lacking {
                    for copy in batch.copies.get(task.copies.clone()) {
                        batch.copies.rows(copy, band, &mut fill)?;
                    }
                }
                Ok(())
            },
        )?;

        let validity = if field.column_type.nullable {
            let mut validity = MutableBuffer::from_len_zeroed(batch.cells);
            let all = 0..batch.cells;
            let out = validity.as_slice_mut();
            let filled = [u8::from(field.fill.valid)];
            fill_cells(&batch.fills, batch.fills.all(), &filled, out, &all)?;
            for task in &lacking {
                fill_cells(
                    &batch.copies,
                    batch.copies.get(task.copies.clone()),
                    &filled,
                    out,
                    &all,
                )?;
            }
            for (task, tile) in &tiles {
                let copies = batch.copies.get(task.copies.clone());
                match &tile.validity {
                    Some(bytes) => copy_cells(&batch.copies, copies, bytes, out, &all, 1)?,
                    None => fill_cells(&batch.copies, copies, &[1], out, &all)?,
                }
            }
            Some(validity.into())
        } else {
            None
        };
        Ok(ColumnBuffers {
            column_type: field.column_type.clone(),
            cell_num: batch.cells,
            data: data.into(),
            offsets: Some(offsets.into()),
            validity,
        })
    }

    /// Writes the coordinates along a dimension.
    fn coordinates(&self, batch: &BatchPlan, d: usize, out: &mut [u8]) {
        let (Some(axis), Some(selection)) =
            (self.plan.grid.axes().get(d), self.plan.selection.get(d))
        else {
            return;
        };
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
            let (first, _) = out.split_at_mut(cycle.min(out.len()));
            for (run, position) in first.chunks_mut(block).zip(positions) {
                axis.write_coordinate(selection.offset_at(position), &mut value);
                repeat_cell(run, &value);
            }
            // The cycle repeats for every position of the slower dimensions.
            let mut filled = cycle;
            while filled < out.len() {
                let n = filled.min(out.len() - filled);
                let (done, todo) = out.split_at_mut(filled);
                todo[..n].copy_from_slice(&done[..n]);
                filled += n;
            }
        }
    }

    /// Which cells meet the condition, one byte each; `views` are the cells of all fields, in their
    /// order.
    fn mask(&self, batch: &BatchPlan, views: &[FieldView<'_>]) -> Result<Option<Vec<u8>>> {
        let Some(condition) = self.condition else {
            return Ok(None);
        };
        let evaluate = |condition: &crate::condition::BoundCondition| -> Result<Vec<u8>> {
            let view = |name: &Arc<str>| {
                let place = self
                    .fields
                    .iter()
                    .position(|field| field.column_type.name == *name);
                let view = place.and_then(|place| views.get(place));
                view.copied()
                    .ok_or_else(|| Error::Internal(format!("no column {name}")))
            };
            let views = condition
                .fields()
                .iter()
                .map(view)
                .collect::<Result<Vec<_>>>()?;
            matching(self.array.context(), condition, &views, batch.cells)
        };
        let mut mask = evaluate(&condition.condition)?;
        // Cells of fragments that lack an attribute do not read as its fill value: tests of it are
        // false for them.
        let mut others: HashMap<*const ArraySchema, Vec<u8>> = HashMap::new();
        for task in &batch.tasks {
            let Some(fragment) = self.array.fragments().get(task.fragment) else {
                continue;
            };
            let lacks = |name: &Arc<str>| fragment.field(name).is_none();
            if !condition.condition.fields().iter().any(lacks) {
                continue;
            }
            if let std::collections::hash_map::Entry::Vacant(entry) =
                others.entry(Arc::as_ptr(fragment.schema()))
            {
                entry.insert(evaluate(
                    &condition.condition.for_fragment(fragment.schema()),
                )?);
            }
            let Some(other) = others.get(&Arc::as_ptr(fragment.schema())) else {
                continue;
            };
            for copy in batch.copies.get(task.copies.clone()) {
                batch.copies.rows(copy, &(0..batch.cells), &mut |row| {
                    for i in 0..row.axis.count {
                        let at = row.out + i * row.axis.out;
                        if let (Some(to), Some(from)) = (mask.get_mut(at), other.get(at)) {
                            *to = *from;
                        }
                    }
                    Ok(())
                })?;
            }
        }
        Ok(Some(mask))
    }
}

/// Writes a field's fill value to the places of copies.
fn fill(
    batch: &BatchPlan,
    list: &crate::space::copy::CopyList,
    copies: Range<usize>,
    out: &mut FixedOut<'_>,
) -> Result<()> {
    let all = 0..batch.cells;
    fill_cells(
        list,
        list.get(copies.clone()),
        &out.field.fill.bytes,
        out.data,
        &all,
    )?;
    if let Some(validity) = &mut out.validity {
        fill_cells(
            list,
            list.get(copies),
            &[u8::from(out.field.fill.valid)],
            validity,
            &all,
        )?;
    }
    Ok(())
}

/// Cuts a range into at most `parts` of equal length.
fn bands(whole: &Range<usize>, parts: usize) -> Vec<Range<usize>> {
    let each = whole.len().div_ceil(parts).max(1);
    let starts = whole.clone().step_by(each);
    starts
        .map(|start| start..(start + each).min(whole.end))
        .collect()
}
