//! Aggregates of a query: tiles answered from metadata first, then the cells of the others.

use super::tile_facts::{sections, tile_facts};
use super::{Aggregate, AggregateValue, Aggregator};
use crate::array::{Array, Fragment, Reopening};
use crate::column::{ColumnBuffers, ColumnSet};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::read::bind::{bind, same_field};
use crate::read::budget::SMALL_BATCH_BYTES;
use crate::read::dense::DenseReader;
use crate::read::fetch::{Waiting, block_on};
use crate::read::output::{Output, own_columns};
use crate::read::sparse::SparseReader;
use crate::read::whole_tiles::{WholeTile, WholeTiles};
use crate::read::{BoundOptions, ReadOptions};
use crate::space::Layout;
use azulejo_format::fragment::Section;
use rayon::prelude::*;
use std::collections::BTreeSet;

/// Cells that one task looks at.
const CELLS_A_TASK: usize = 1 << 17;

/// As [`Array::aggregate`], by whoever waits; from the beginning where files were vacuumed meanwhile.
async fn aggregate(
    array: &Array,
    options: ReadOptions,
    aggregates: &[Aggregate],
    waiting: Waiting,
) -> Result<Vec<AggregateValue>> {
    let aggregating = async {
        let mut opened = Reopening::of(array);
        loop {
            let options = options.clone();
            let values = aggregate_once(opened.array(), options, aggregates, waiting).await;
            if let Some(values) = opened.settled(values, waiting).await {
                return values;
            }
        }
    };
    array.context().begin().drives(aggregating).await
}

async fn aggregate_once(
    array: &Array,
    options: ReadOptions,
    aggregates: &[Aggregate],
    waiting: Waiting,
) -> Result<Vec<AggregateValue>> {
    let mut names: Vec<String> = Vec::new();
    for name in aggregates.iter().filter_map(Aggregate::field) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    let dense = array.schema().is_dense();
    let unread = names.is_empty();
    if unread {
        // Something has to be read where cells are to be counted: what the condition looks at is
        // read anyway.
        let condition = options.condition.as_ref();
        let tested = condition.and_then(|c| c.fields().first().map(|f| f.name.clone()));
        let dimension = array.schema().dimension(0).map(|d| d.name.clone());
        names.extend(tested.or(dimension));
    }
    let conditional = options.condition.is_some();
    // Which cells are the first is a matter of their order, and nothing else is.
    let layout = match options.limit {
        Some(_) => options.layout,
        None => Layout::Unordered,
    };
    // Of a batch nothing stays.
    let bytes = options.batch_bytes.unwrap_or(u64::MAX);
    let bytes = bytes.min(SMALL_BATCH_BYTES);
    let options = options.fields(names).layout(layout).batch_bytes(bytes);
    let mut bound = bind(array, &options, waiting).await?;
    let mut totals = Totals::new(&bound, if unread { &[] } else { aggregates })?;
    let mut limit = bound.limit;
    if dense && !conditional {
        // Every cell of a dense array exists, written or not.
        let cells = bound.subarray.cell_num(array.schema());
        let cells = cells.and_then(|cells| u64::try_from(cells).ok());
        let cells = match (cells, limit) {
            (Some(cells), most) => {
                let first = most.map_or(cells, |most| most.min(cells));
                limit = Some(first).filter(|first| *first < cells);
                first
            }
            (None, Some(limit)) => limit,
            (None, None) => {
                return Err(Error::Unsupported("2^64 cells or more are selected".into()));
            }
        };
        totals.all_cells = Some(cells);
        if unread {
            return Ok(totals.finish(aggregates));
        }
    }
    // Cells that nobody wrote have no values, though without a condition they are among the first.
    bound.matching_only = limit.is_none() || conditional;
    if let Some(most) = limit {
        take_first(array, &bound, most, &mut totals, waiting).await?;
    } else if dense {
        let mut reader = DenseReader::new(array, &bound, waiting).await?;
        while let Some((cells, mask, _)) = reader
            .next_cells(u64::MAX, true, false, Some(&mut totals))
            .await?
        {
            totals.update(array.context(), &cells.into_cells()?, Some(&mask), false)?;
        }
    } else {
        let mut reader = SparseReader::new(array, &bound, waiting).await?;
        totals.may_read_apart = true;
        reader.take_whole(&mut totals).await?;
        while let Some(batch) = reader.next(Output::own(u64::MAX)).await? {
            totals.update(array.context(), &own_columns(batch)?, None, false)?;
        }
        if !totals.later.is_empty() {
            let fields = totals.fields.iter().filter(|of| of.unknown);
            let fields = fields.map(|of| of.aggregator.column_type.name.to_string());
            let options = options.clone().fields(fields);
            let bound = &bind(array, &options, waiting).await?;
            let mut reader = SparseReader::new(array, bound, waiting).await?;
            reader.keep_only(&totals.later);
            let mut left = totals.later_cells;
            while let Some(batch) = reader.next(Output::own(u64::MAX)).await? {
                let batch = own_columns(batch)?;
                left = left.saturating_sub(batch.cell_num as u64);
                totals.update(array.context(), &batch, None, true)?;
            }
            if left > 0 {
                return Err(Error::Internal(format!(
                    "{left} cells of whole tiles are gone"
                )));
            }
        }
    }
    Ok(totals.finish(aggregates))
}

/// Takes in the first cells that count, in the order asked for, and no more than `left`.
async fn take_first(
    array: &Array,
    bound: &BoundOptions,
    mut left: u64,
    totals: &mut Totals,
    waiting: Waiting,
) -> Result<()> {
    if !array.schema().is_dense() {
        let mut reader = SparseReader::new(array, bound, waiting).await?;
        while left > 0 {
            let Some(batch) = reader.next(Output::own(left)).await? else {
                break;
            };
            let cells = own_columns(batch)?;
            let mut mask = vec![1; cells.cell_num];
            left -= keep_first(&mut mask, left);
            totals.update(array.context(), &cells, Some(&mask), false)?;
        }
        return Ok(());
    }
    let any = !bound.matching_only;
    let mut reader = DenseReader::new(array, bound, waiting).await?;
    while left > 0 {
        let most = if any { left } else { u64::MAX };
        let Some((cells, mut mask, walked)) = reader.next_cells(most, true, false, None).await?
        else {
            break;
        };
        left -= match any {
            true => walked.min(left),
            false => keep_first(&mut mask, left),
        };
        totals.update(array.context(), &cells.into_cells()?, Some(&mask), false)?;
    }
    Ok(())
}

/// Takes all cells but the first so many out of a mask; how many it has then.
fn keep_first(mask: &mut [u8], most: u64) -> u64 {
    let mut kept = 0;
    for cell in mask.iter_mut().filter(|cell| **cell != 0) {
        *cell = u8::from(kept < most);
        kept += u64::from(*cell);
    }
    kept
}

impl Array {
    /// Computes aggregates over the cells that `options` select; see
    /// [the module](crate::read::aggregate) for what counts. The fields of the options do not
    /// matter, and the layout only where there is a limit: then the first so many of the cells that
    /// count are taken, in that order.
    ///
    /// Tiles that are wholly selected, that no condition, delete or other fragment touches, and
    /// whose statistics are known for certain, are not read.
    ///
    /// # Errors
    /// Fields that do not exist or have no such aggregate; whatever goes wrong with reading.
    pub fn aggregate(
        &self,
        options: ReadOptions,
        aggregates: &[Aggregate],
    ) -> Result<Vec<AggregateValue>> {
        block_on(aggregate(self, options, aggregates, Waiting::Blocks))
    }

    /// As [`Self::aggregate`], for an executor.
    ///
    /// # Errors
    /// As [`Self::aggregate`].
    #[cfg(feature = "stream")]
    pub async fn aggregate_async(
        &self,
        options: ReadOptions,
        aggregates: &[Aggregate],
    ) -> Result<Vec<AggregateValue>> {
        aggregate(self, options, aggregates, Waiting::Polls).await
    }
}

/// What has been found of a field, and what metadata says of the tiles that are offered.
struct FieldTotal {
    aggregator: Aggregator,
    /// The greatest of the beginnings of tiles' greatest values: where it is known up to a zero byte.
    greatest: Option<Vec<u8>>,
    /// Whether the metadata of some tile does not say enough.
    unknown: bool,
}

/// What has been found so far.
struct Totals {
    /// Cells taken in.
    cells: u64,
    /// Cells selected, where that is known without looking.
    all_cells: Option<u64>,
    /// One for each field, in the order of the columns; none if only cells are counted.
    fields: Vec<FieldTotal>,
    /// Whether tiles of which only some fields are known may be read for the others alone.
    may_read_apart: bool,
    /// Those tiles, by fragment and index, and how many cells they have.
    later: BTreeSet<(usize, usize)>,
    later_cells: u64,
}

impl Totals {
    fn new(bound: &BoundOptions, aggregates: &[Aggregate]) -> Result<Self> {
        let fields = bound.fields.iter().filter(|_| !aggregates.is_empty());
        let fields = fields.map(|field| {
            let of = |a: &&Aggregate| a.field() == Some(&*field.column_type.name);
            let wanted = aggregates.iter().filter(of);
            Ok(FieldTotal {
                aggregator: Aggregator::new(field.column_type.clone(), wanted)?,
                greatest: None,
                unknown: false,
            })
        });
        Ok(Self {
            cells: 0,
            all_cells: None,
            fields: fields.collect::<Result<_>>()?,
            may_read_apart: false,
            later: BTreeSet::new(),
            later_cells: 0,
        })
    }

    /// Takes in the cells of a batch, all or those that the mask names, in parallel. `apart` says that
    /// the batch has only the fields that metadata does not say enough of, as the others are taken in.
    fn update(
        &mut self,
        context: &Context,
        batch: &ColumnSet,
        mask: Option<&[u8]>,
        apart: bool,
    ) -> Result<()> {
        if !apart {
            self.cells += mask.map_or(batch.cell_num as u64, super::count);
        }
        let fields = self.fields.iter_mut().filter(|of| !apart || of.unknown);
        for (FieldTotal { aggregator, .. }, column) in fields.zip(&batch.columns) {
            let found = context.install(|| column_total(aggregator, column, mask))?;
            aggregator.merge(found);
        }
        Ok(())
    }

    fn finish(&self, aggregates: &[Aggregate]) -> Vec<AggregateValue> {
        let value = |aggregate: &Aggregate| match aggregate.field() {
            None => AggregateValue::Unsigned(self.all_cells.unwrap_or(self.cells)),
            Some(name) => {
                let mut fields = self.fields.iter().map(|field| &field.aggregator);
                let of = fields.find(|of| &*of.column_type.name == name);
                of.map_or(AggregateValue::Null, |of| of.finish(aggregate))
            }
        };
        aggregates.iter().map(value).collect()
    }
}

impl WholeTiles for Totals {
    fn sections(&self, fragment: &Fragment) -> Vec<Section> {
        let wanted = self.fields.iter().filter_map(|of| {
            let field = same_field(fragment, &of.aggregator.column_type)?;
            Some(sections(fragment, field, of.aggregator.wants_values()))
        });
        wanted.flatten().collect()
    }

    fn see(&mut self, fragment: &Fragment, tile: WholeTile) {
        for of in &mut self.fields {
            let Some(field) = same_field(fragment, &of.aggregator.column_type) else {
                of.unknown = true;
                continue;
            };
            let facts = tile_facts(fragment, field, tile.tile, tile.cell_num);
            match of.aggregator.beginning_of_max(&facts) {
                Some(begins) if of.greatest.as_deref() < Some(begins) => {
                    of.greatest = Some(begins.to_vec());
                }
                Some(_) => {}
                None => of.unknown |= !of.aggregator.can_use(&facts),
            }
        }
    }

    /// Takes in a whole tile by its metadata, if that says enough, of all fields or of some.
    ///
    /// What a greatest value begins with is enough where another tile's begins with something
    /// greater: whatever follows a zero byte, that one is greater, and is looked at. For example
    /// `"a\0z"`, of which `a` is stored, beside `b`.
    fn take(&mut self, fragment: &Fragment, tile: WholeTile) -> Result<bool> {
        let mut facts = Vec::with_capacity(self.fields.len());
        let (mut all, mut some) = (true, false);
        for of in &self.fields {
            let (aggregator, unknown) = (&of.aggregator, of.unknown);
            let field = same_field(fragment, &aggregator.column_type);
            let mut known =
                field.map(|field| tile_facts(fragment, field, tile.tile, tile.cell_num));
            if let Some(known) = &mut known {
                let begins = aggregator.beginning_of_max(known);
                if begins.is_some() && begins < of.greatest.as_deref() {
                    known.max = begins;
                }
            }
            let known = known.filter(|known| aggregator.can_use(known));
            // A field that is known elsewhere, too, is read with all others.
            if known.is_none() && !unknown {
                return Ok(false);
            }
            all &= known.is_some();
            some |= !unknown;
            facts.push(known);
        }
        if !(all || some && self.may_read_apart) {
            return Ok(false);
        }
        for (of, facts) in self.fields.iter_mut().zip(&facts) {
            if let Some(facts) = facts.filter(|_| all || !of.unknown) {
                of.aggregator.update_from_stats(&facts);
            }
        }
        if !all {
            self.later.insert((tile.fragment, tile.tile));
            self.later_cells += tile.cell_num;
        }
        self.cells += tile.cell_num;
        Ok(true)
    }
}

fn column_total(
    aggregator: &Aggregator,
    column: &ColumnBuffers,
    mask: Option<&[u8]>,
) -> Result<Aggregator> {
    let view = column.view();
    let unfit = || Error::Internal(format!("column {} lacks cells", column.column_type.name));
    let starts: Vec<usize> = (0..column.cell_num).step_by(CELLS_A_TASK).collect();
    let parts = starts
        .into_par_iter()
        .map(|start| {
            let end = (start + CELLS_A_TASK).min(column.cell_num);
            let cells = view.slice(start..end).ok_or_else(unfit)?;
            let mask = mask
                .map(|mask| mask.get(start..end).ok_or_else(unfit))
                .transpose()?;
            let mut part = aggregator.fork();
            part.update(&cells, mask)?;
            Ok(part)
        })
        .collect::<Result<Vec<_>>>()?;
    // In order, so that sums of reals do not depend on which thread was faster.
    let mut total = aggregator.fork();
    parts.into_iter().for_each(|part| total.merge(part));
    Ok(total)
}
