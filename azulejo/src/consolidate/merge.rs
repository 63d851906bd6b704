//! Many fragments into one: a read in global order, then a write.
//!
//! Cells of sparse arrays keep the time that they were written and deleted at, so that a reader of
//! any time still finds what was there then. What is written does not count yet.

use super::options::FragmentOptions;
use super::tiler::{Shapes, SpaceTiles, Tiler, push_within};
use super::versions::Versions;
use crate::array::Array;
use crate::cancel::Operation;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::read::{FillCell, Reader};
use crate::space::tile_grid::TileGrid;
use crate::space::{DimSelection, Subarray};
use crate::write::{FragmentSink, FragmentSpec, TileView, WrittenFragment};
use azulejo_format::timestamped_name::TimestampedName;
use azulejo_format::{FormatVersion, NdRectangle, Range};

/// What the read of a round has at most beyond half of the memory.
const MORE_FOR_READING: u64 = 2 << 20;

/// What the read and the write of a round have in common.
pub(super) struct Round<'a> {
    pub context: &'a Context,
    pub array: &'a Array,
    /// The array that the fragments are for.
    pub location: &'a Location,
    pub options: &'a FragmentOptions,
    pub version: FormatVersion,
    pub schema_name: &'a str,
    pub timestamps: bool,
    pub delete_metadata: bool,
    pub operation: &'a Operation,
}

/// Fragments written and not yet committed.
#[derive(Default)]
pub(super) struct Written {
    pub fragments: Vec<WrittenFragment>,
    pub cells: u64,
}

/// What came of a merge.
pub(super) enum Merge {
    Written(Written),
    /// Nothing: memory holds the tiles of so many of the fragments at a time.
    AtOnce(usize),
}

impl Round<'_> {
    fn spec(&self, name: TimestampedName, dense_domain: Option<NdRectangle>) -> FragmentSpec {
        FragmentSpec {
            location: self.location.clone(),
            schema: self.array.schema().clone(),
            schema_name: self.schema_name.to_owned(),
            name,
            dense_domain,
            timestamps: self.timestamps,
            delete_metadata: self.delete_metadata,
            // In the order of the array's deletes, whose indices the cells hold.
            processed_conditions: match self.version.has_deletes() {
                true => self
                    .array
                    .deletes()
                    .iter()
                    .map(|delete| delete.name.clone())
                    .collect(),
                false => Vec::new(),
            },
        }
    }

    /// Memory of the read; the rest is for the batch in work and the tiles on their way to storage.
    /// Of a little it has more than half, as it decodes tiles the more often the less it has.
    fn read_budget(&self) -> u64 {
        let budget = self.options.memory_budget;
        (budget / 2 + (budget / 8).min(MORE_FOR_READING)).max(1)
    }

    fn push_limit(&self) -> usize {
        usize::try_from(self.options.memory_budget / 8).unwrap_or(usize::MAX)
    }

    /// The cells of all fragments, or how many fragments can be merged at once.
    pub fn sparse_if_at_once(&self, name: &TimestampedName) -> Result<Merge> {
        let (sink, mut reader) = self.sparse_ends(name)?;
        let all = self.array.fragments().len();
        if all > 2
            && let Some(most) = reader.merged_at_once()?
        {
            return Ok(Merge::AtOnce(most.clamp(2, all - 1)));
        }
        self.copy_sparse(name, reader, sink).map(Merge::Written)
    }

    /// The cells of all fragments, however many there are.
    pub fn sparse(&self, name: &TimestampedName) -> Result<Written> {
        let (sink, reader) = self.sparse_ends(name)?;
        self.copy_sparse(name, reader, sink)
    }

    fn sparse_ends(&self, name: &TimestampedName) -> Result<(FragmentSink, Reader)> {
        let sink = FragmentSink::new(self.context, self.spec(name.clone(), None))?;
        let budget = self.read_budget();
        let reader = Reader::stored(self.array, sink.fields(), &Subarray::all(), budget)?;
        Ok((sink, reader))
    }

    fn copy_sparse(
        &self,
        name: &TimestampedName,
        reader: Reader,
        sink: FragmentSink,
    ) -> Result<Written> {
        let mut written = Written::default();
        let result = self.copy_cells(name, reader, sink, &mut written);
        written.or_discard(result)
    }

    fn copy_cells(
        &self,
        name: &TimestampedName,
        reader: Reader,
        mut sink: FragmentSink,
        written: &mut Written,
    ) -> Result<()> {
        let capacity = usize::try_from(self.array.schema().capacity).unwrap_or(usize::MAX);
        let mut tiler = Tiler::new(Shapes::Capacity(capacity), self.push_limit());
        let limit = self.options.max_fragment_size;
        let mut pushed = 0u64;
        let mut versions = Versions::new(sink.fields(), self.array.schema());
        let finish = |mut sink: FragmentSink, versions: &Versions| {
            if self.timestamps && versions.each_cell_once() {
                sink.mark_each_cell_once();
            }
            sink.finish()
        };
        let mut push = |tiles: &[TileView<'_>], bytes: u64| -> Result<()> {
            let mut rest = tiles;
            while !rest.is_empty() {
                let ratio = if pushed == 0 {
                    1.0
                } else {
                    sink.stored_size() as f64 / pushed as f64
                };
                let share = bytes * rest.len() as u64 / tiles.len().max(1) as u64;
                let done = push_within(&mut sink, rest, share, limit, ratio)?;
                let (gone, left) = rest.split_at(done);
                gone.iter().for_each(|tile| versions.look_at(tile));
                pushed += share * gone.len() as u64 / rest.len().max(1) as u64;
                written.cells += gone.iter().map(|tile| tile.cell_num).sum::<u64>();
                if !left.is_empty() {
                    let next =
                        FragmentSink::new(self.context, self.spec(self.next_name(name), None))?;
                    let full = std::mem::replace(&mut sink, next);
                    pushed = 0;
                    written.fragments.push(finish(full, &versions)?);
                    versions = Versions::new(sink.fields(), self.array.schema());
                }
                rest = left;
            }
            Ok(())
        };
        let total = self
            .array
            .fragments()
            .iter()
            .map(|f| f.cell_num())
            .fold(0, u64::saturating_add);
        let mut read = 0u64;
        for batch in reader {
            let batch = batch?;
            tiler.add(&batch, &mut push)?;
            read = read.saturating_add(batch.cell_num as u64);
            self.context.report("cells", read, total.max(read));
            self.operation.check()?;
        }
        tiler.finish(&mut push)?;
        if sink.tile_num() > 0 {
            written.fragments.push(finish(sink, &versions)?);
        }
        self.operation.check()
    }

    /// The name of another part of a split result.
    fn next_name(&self, name: &TimestampedName) -> TimestampedName {
        TimestampedName::versioned(name.t_start, name.t_end, self.version.number())
    }

    pub fn dense(&self, name: &TimestampedName, bounds: &NdRectangle) -> Result<Written> {
        let mut written = Written::default();
        let result = self.copy_dense(name, bounds, &mut written);
        written.or_discard(result)
    }

    fn copy_dense(
        &self,
        name: &TimestampedName,
        bounds: &NdRectangle,
        written: &mut Written,
    ) -> Result<()> {
        let schema = self.array.schema();
        let grid = TileGrid::new(schema)?;
        let outside = || Error::Internal("the box around the fragments leaves the domain".into());
        let offsets = grid.offsets_of(bounds).ok_or_else(outside)?;
        let fills: Vec<FillCell> = schema.attributes.iter().map(FillCell::of).collect();
        let cells_of = |part: &[(u64, u64)]| {
            part.iter().fold(1u64, |cells, (low, high)| {
                cells.saturating_mul((high - low).saturating_add(1))
            })
        };
        let total = cells_of(&offsets);
        let mut done = 0u64;
        for part in self.dense_parts(&grid, &offsets)? {
            let read = self.readable(&grid, &part).ok_or_else(outside)?;
            let coordinates = |offsets: &[(u64, u64)]| -> Vec<Range> {
                let axes = grid.axes().iter().zip(offsets);
                axes.map(|(axis, (low, high))| {
                    Range::new(axis.coordinate(*low), axis.coordinate(*high))
                })
                .collect()
            };
            let part_name = if written.fragments.is_empty() {
                name.clone()
            } else {
                self.next_name(name)
            };
            let domain = NdRectangle {
                ranges: coordinates(&part),
            };
            let mut sink = FragmentSink::new(self.context, self.spec(part_name, Some(domain)))?;
            let fields = sink.fields().to_vec();
            let selections = coordinates(&read)
                .into_iter()
                .map(|range| DimSelection::Ranges(vec![range]));
            let subarray = Subarray::Box(selections.collect());
            let reader = Reader::stored(self.array, &fields, &subarray, self.read_budget())?;
            let shapes =
                Shapes::Space(Box::new(SpaceTiles::new(grid.clone(), read, fills.clone())));
            let mut tiler = Tiler::new(shapes, self.push_limit());
            let mut push = |tiles: &[TileView<'_>], _: u64| {
                written.cells += tiles.iter().map(|tile| tile.cell_num).sum::<u64>();
                sink.push(tiles)
            };
            for batch in reader {
                let batch = batch?;
                tiler.add(&batch, &mut push)?;
                done = done.saturating_add(batch.cell_num as u64);
                self.context.report("cells", done, total.max(done));
                self.operation.check()?;
            }
            tiler.finish(&mut push)?;
            written.fragments.push(sink.finish()?);
        }
        self.operation.check()
    }

    /// The box expanded to whole tiles, as far as there can be cells: within the current domain, and
    /// within the box where that was written before the current domain was expanded to hold it.
    fn readable(&self, grid: &TileGrid, part: &[(u64, u64)]) -> Option<Vec<(u64, u64)>> {
        let current = self.array.current_domain();
        let mut read = Vec::with_capacity(part.len());
        for (d, (axis, part)) in grid.axes().iter().zip(part).enumerate() {
            let mut low = axis.tile_start(axis.tile_of(part.0))?;
            let mut high = axis.tile_end(axis.tile_of(part.1))?;
            if let Some(range) = current.and_then(|current| current.ranges.get(d)) {
                let (first, last) = axis.offsets_of(range)?;
                (low, high) = (low.max(first.min(part.0)), high.min(last.max(part.1)));
            }
            read.push((low, high));
        }
        Some(read)
    }

    /// The boxes of the fragments that the result is split into: whole rows of tiles along the
    /// slowest dimension.
    fn dense_parts(&self, grid: &TileGrid, offsets: &[(u64, u64)]) -> Result<Vec<Vec<(u64, u64)>>> {
        let (Some(limit), Some(&slowest)) =
            (self.options.max_fragment_size, grid.tile_order().first())
        else {
            return Ok(vec![offsets.to_vec()]);
        };
        let (Some(axis), Some(&(low, high))) = (grid.axes().get(slowest), offsets.get(slowest))
        else {
            return Ok(vec![offsets.to_vec()]);
        };
        let info = self.array.fragment_info();
        let size = info
            .fragments()
            .map(|fragment| fragment.size())
            .sum::<Result<u64>>()?;
        let (first, last) = (axis.tile_of(low), axis.tile_of(high));
        let rows = (last - first).saturating_add(1);
        // No more than the fragments take now, so not more than this a row.
        let row_size = (size / rows).max(1);
        let step = (limit / row_size).max(1);
        let mut parts = Vec::new();
        let mut row = first;
        while row <= last {
            let end = row.saturating_add(step - 1).min(last);
            let from = axis.tile_start(row).unwrap_or(low).max(low);
            let to = axis.tile_end(end).unwrap_or(high).min(high);
            let mut part = offsets.to_vec();
            if let Some(range) = part.get_mut(slowest) {
                *range = (from, to);
            }
            parts.push(part);
            let Some(next) = end.checked_add(1) else {
                break;
            };
            row = next;
        }
        Ok(parts)
    }
}

impl Written {
    /// Makes the fragments count.
    pub fn commit(self) -> Result<()> {
        for fragment in self.fragments {
            fragment.commit()?;
        }
        Ok(())
    }

    /// The fragments, or nothing of them if something went wrong.
    fn or_discard(self, result: Result<()>) -> Result<Self> {
        match result {
            Ok(()) => Ok(self),
            Err(error) => {
                for fragment in self.fragments {
                    // The first error is the one to tell; what stays is a folder that nobody
                    // counts.
                    let _ = fragment.discard();
                }
                Err(error)
            }
        }
    }
}
