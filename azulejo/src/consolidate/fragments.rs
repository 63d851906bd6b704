//! Many fragments into one: a read in global order, then a write.
//!
//! Cells of sparse arrays keep the time that they were written and deleted at, so that a reader of
//! any time still finds what was there then. The result takes the place of the fragments in three
//! steps: its files are written, it is committed, and a vacuum file says which fragments it
//! replaces. In between both count, which changes nothing where duplicates are not allowed: the
//! cells are equal. Where they are allowed, a [`Replacement`] holds the result back until all of it
//! is committed.

use super::ArrayFolder;
use super::choose::{Candidates, Choice, Chosen};
use super::tiler::{Shapes, SpaceTiles, Tiler, push_within};
use crate::array::{
    Array, ArrayHandle, ArrayLock, Attempts, FragmentSelection, OpenScope, Snapshot, TimeRange,
    finish_replacement,
};
use crate::cancel::Operation;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::read::{FillCell, Reader};
use crate::snapshots;
use crate::space::tile_grid::TileGrid;
use crate::space::{DimSelection, Subarray};
use crate::storage::Uri;
use crate::write::{FragmentSink, FragmentSpec, TileView, WrittenFragment};
use azulejo_format::commit::{Replacement, VacuumList};
use azulejo_format::path::{Suffix, fragment_path, fragment_version, suffixed_commit_path};
use azulejo_format::timestamped_name::{NameStyle, TimestampedName};
use azulejo_format::{FormatVersion, NdRectangle, Range};
use std::collections::{BTreeSet, HashSet};

/// How to consolidate fragments.
///
/// ```
/// use azulejo::consolidate::FragmentOptions;
/// let options = FragmentOptions::new().max_fragment_size(1 << 30).memory_budget(64 << 20);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FragmentOptions {
    /// Names (or URIs) of the fragments to be replaced by one; empty: they are chosen.
    pub fragments: Vec<String>,
    /// How they are chosen.
    pub choice: Choice,
    /// Only fragments that lie within this time are chosen.
    pub time: TimeRange,
    /// The result is split where a fragment would take more bytes; of dense arrays at whole rows of
    /// tiles.
    pub max_fragment_size: Option<u64>,
    /// Leaves out deleted cells and what they replaced, instead of keeping them with the time of
    /// their deletion: readers of earlier times do not find them any more.
    pub purge_deleted_cells: bool,
    /// Bytes of memory that it may take.
    pub memory_budget: u64,
}

impl Default for FragmentOptions {
    fn default() -> Self {
        Self {
            fragments: Vec::new(),
            choice: Choice::default(),
            time: TimeRange::ALL,
            max_fragment_size: None,
            purge_deleted_cells: false,
            memory_budget: 256 << 20,
        }
    }
}

impl FragmentOptions {
    /// Chosen fragments of all times, one result, deleted cells with the time of their deletion.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the fragments (or their URIs) to be replaced by one.
    #[must_use]
    pub fn fragments<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.fragments = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how fragments are chosen.
    #[must_use]
    pub fn choice(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self
    }

    /// Chooses only fragments that lie within this time.
    #[must_use]
    pub fn time(mut self, time: TimeRange) -> Self {
        self.time = time;
        self
    }

    /// Sets the bytes at which the result is split; `None`: never.
    #[must_use]
    pub fn max_fragment_size(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.max_fragment_size = bytes.into();
        self
    }

    /// Sets whether deleted cells, and what they replaced, are left out.
    #[must_use]
    pub fn purge_deleted_cells(mut self, purge: bool) -> Self {
        self.purge_deleted_cells = purge;
        self
    }

    /// Sets the bytes of memory that it may take.
    #[must_use]
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.memory_budget = bytes;
        self
    }
}

/// One round: what was replaced by what.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Merged {
    /// Names of the fragments that were replaced.
    pub old: Vec<String>,
    /// Names of those that took their place: one, several if a size was given, none if not a cell
    /// was left.
    pub new: Vec<String>,
    /// Cells in the new ones.
    pub cells: u64,
    /// Bytes of all their files.
    pub bytes: u64,
}

/// How a round ended.
enum Step {
    /// There is nothing to consolidate.
    Nothing,
    /// Fragments were replaced.
    Done(Merged),
    /// Another process has replaced the chosen fragments first.
    Overtaken,
}

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

impl ArrayHandle {
    /// Consolidates fragments, in rounds. Returns what each round did; none if there was nothing to
    /// do.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for fragments that do not exist or cannot be consolidated without
    /// changing what readers see, and for purging cells that a named snapshot may show;
    /// [`Error::Unsupported`] for an array of a version that is not written: upgrade it first;
    /// errors of reading and writing. An array that an error leaves behind reads as before.
    pub fn consolidate(&self, options: &FragmentOptions) -> Result<Vec<Merged>> {
        let Self { context, uri } = self;

        options.choice.check()?;
        // What the context keeps for later (idle buffers) belongs to the budget too.
        let context = &crate::manifest::without(context).within(options.memory_budget);
        let location = context.locate(&Uri::parse(uri)?)?;
        let operation = context.begin();
        if options.purge_deleted_cells
            && let Some(snapshot) = snapshots::list(&location)?.first()
        {
            return Err(Error::InvalidArgument(format!(
                "{uri}: the named snapshot {:?} may show cells that would be purged; remove it first",
                snapshot.name
            )));
        }
        let mut rounds = Vec::new();
        // Parts of a split result are not consolidated again.
        let mut done: BTreeSet<String> = BTreeSet::new();
        let mut attempts = Attempts::new();
        while rounds.len() < options.choice.steps as usize {
            operation.check()?;
            match round(context, uri, &location, options, &done, &operation) {
                Ok(Step::Nothing) => break,
                // Whoever was faster has done the work, or part of it: what is left is looked at
                // anew.
                Ok(Step::Overtaken) if attempts.another() => {}
                Ok(Step::Overtaken) if options.fragments.is_empty() => break,
                Ok(Step::Overtaken) => {
                    let what =
                        "fragments that were there a moment ago: another process has replaced them";
                    return Err(Error::NotFound {
                        uri: uri.to_owned(),
                        what,
                    });
                }
                Ok(Step::Done(merged)) => {
                    if merged.new.len() != 1 {
                        done.extend(merged.new.iter().chain(&merged.old).cloned());
                    }
                    let empty = merged.new.is_empty();
                    rounds.push(merged);
                    if (empty && !options.purge_deleted_cells) || !options.fragments.is_empty() {
                        break;
                    }
                    attempts = Attempts::new();
                }
                Err(Error::NotFound { .. }) if attempts.another() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(rounds)
    }
}

fn round(
    context: &Context,
    uri: &str,
    location: &Location,
    options: &FragmentOptions,
    done: &BTreeSet<String>,
    operation: &Operation,
) -> Result<Step> {
    let replacements = |folder: &ArrayFolder| folder.files.replacements.len();
    if replacements(&ArrayFolder::at(context, location)?) > 0 {
        let lock = ArrayLock::wait(location)?;
        ArrayFolder::at(context, location)?.finish_replacements(&lock)?;
    }
    let whole = context.array(uri).open()?;
    let version = whole.schema().version;
    if !version.is_writable() {
        return Err(Error::Unsupported(format!(
            "{}: fragments of arrays of format version {version} cannot be consolidated; upgrade the array first",
            location.path
        )));
    }
    let candidates = Candidates::new(&whole, options.time, done)?;
    let chosen = if options.fragments.is_empty() {
        candidates.next(&options.choice)?
    } else {
        Some(candidates.named(&options.fragments)?)
    };
    // One fragment is as good as its consolidation, unless deleted cells are to go.
    let chosen = match chosen.filter(|chosen| chosen.fragments.len() > 1) {
        None if options.purge_deleted_cells => candidates.with_deleted_cells(&options.fragments)?,
        chosen => chosen,
    };
    let Some(chosen) = chosen else {
        return Ok(Step::Nothing);
    };
    let old: Vec<&TimestampedName> = chosen
        .fragments
        .iter()
        .filter_map(|i| Some(whole.fragments().get(*i)?.timestamped_name()))
        .collect();
    let names: HashSet<String> = chosen
        .fragments
        .iter()
        .filter_map(|i| Some(whole.fragments().get(*i)?.name().to_owned()))
        .collect();
    let name = name_of(&whole, &chosen, version);
    let scope = OpenScope {
        fragments: Some(names.clone()),
        schema: Some(chosen.schema.clone()),
        ..OpenScope::default()
    };
    let open = || Snapshot::open_scope(context, &Uri::parse(uri)?, TimeRange::ALL, &scope)?.array();
    let array = open()?;
    if array.fragments().len() != chosen.fragments.len() {
        return Ok(Step::Overtaken);
    }
    let first = name.t_start;
    let sparse = !array.schema().is_dense();
    let deletes = sparse
        && version.has_deletes()
        && !options.purge_deleted_cells
        && (array
            .deletes()
            .iter()
            .any(|delete| delete.timestamp >= first)
            || array
                .fragments()
                .iter()
                .any(|fragment| fragment.has_delete_metadata()));
    let round = Round {
        context,
        array: &array,
        location,
        options,
        version,
        schema_name: &chosen.schema,
        timestamps: sparse && version.may_count_in_part(),
        delete_metadata: deletes,
        operation,
    };
    let written = if sparse {
        round.sparse(&name)
    } else {
        round.dense(&name, &chosen.bounds)
    };
    let written = match written {
        // Files that vanish because another process has replaced and vacuumed their fragments are
        // no fault.
        Err(Error::NotFound { .. }) if open()?.fragments().len() != chosen.fragments.len() => {
            return Ok(Step::Overtaken);
        }
        written => written?,
    };
    let merged = Merged {
        old: old.iter().map(ToString::to_string).collect(),
        new: written
            .fragments
            .iter()
            .map(|fragment| fragment.name().to_string())
            .collect(),
        cells: written.cells,
        bytes: written
            .fragments
            .iter()
            .map(WrittenFragment::stored_size)
            .sum(),
    };
    if written.fragments.is_empty() {
        // Not a cell is left, and a fragment cannot be empty: the old ones stay, for readers of
        // earlier times, unless those are not to find deleted cells either.
        if options.purge_deleted_cells {
            let gone = FragmentSelection::Named(&merged.old);
            context.array(uri).delete_fragments(gone)?;
        }
        return Ok(Step::Done(merged));
    }
    Ok(if commit(&array, &old, written)? {
        Step::Done(merged)
    } else {
        Step::Overtaken
    })
}

/// The name of the result: its time is that of the fragments together, its place among names of the
/// same time just behind theirs.
fn name_of(array: &Array, chosen: &Chosen, version: FormatVersion) -> TimestampedName {
    let names = || {
        chosen
            .fragments
            .iter()
            .filter_map(|i| Some(array.fragments().get(*i)?.timestamped_name()))
    };
    let start = names().map(|name| name.t_start).min().unwrap_or(0);
    let end = names().map(|name| name.t_end).max().unwrap_or(0);
    let mut name = TimestampedName::versioned(start, end, version.number());
    let rivals = array.fragments().iter().any(|fragment| {
        let other = fragment.timestamped_name();
        (other.t_start, other.t_end) == (start, end)
    });
    if let (true, Some(last)) = (rivals, names().next_back()) {
        // Behind the last of them, before any other: a little more than its identifier.
        let digits = (last.style == NameStyle::Versioned && last.uuid.len() == 32)
            .then(|| u128::from_str_radix(&last.uuid, 16).ok())
            .flatten();
        let fresh = u128::from_str_radix(name.uuid.get(24..).unwrap_or("1"), 16).unwrap_or(1) | 1;
        if let Some(more) = digits.and_then(|digits| digits.checked_add(fresh)) {
            name.uuid = format!("{more:032x}");
        }
    }
    name
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
    fn read_budget(&self) -> u64 {
        (self.options.memory_budget / 2).max(1)
    }

    fn push_limit(&self) -> usize {
        usize::try_from(self.options.memory_budget / 8).unwrap_or(usize::MAX)
    }

    pub fn sparse(&self, name: &TimestampedName) -> Result<Written> {
        let mut written = Written::default();
        let result = self.copy_sparse(name, &mut written);
        written.or_discard(result)
    }

    fn copy_sparse(&self, name: &TimestampedName, written: &mut Written) -> Result<()> {
        let mut sink = FragmentSink::new(self.context, self.spec(name.clone(), None))?;
        let fields = sink.fields().to_vec();
        let reader = Reader::stored(self.array, &fields, &Subarray::all(), self.read_budget())?;
        let capacity = usize::try_from(self.array.schema().capacity).unwrap_or(usize::MAX);
        let mut tiler = Tiler::new(Shapes::Capacity(capacity), self.push_limit());
        let limit = self.options.max_fragment_size;
        let mut pushed = 0u64;
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
                pushed += share * gone.len() as u64 / rest.len().max(1) as u64;
                written.cells += gone.iter().map(|tile| tile.cell_num).sum::<u64>();
                if !left.is_empty() {
                    let next =
                        FragmentSink::new(self.context, self.spec(self.next_name(name), None))?;
                    let full = std::mem::replace(&mut sink, next);
                    pushed = 0;
                    written.fragments.push(full.finish()?);
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
            written.fragments.push(sink.finish()?);
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

    /// The box expanded to whole tiles, as far as cells can be read.
    fn readable(&self, grid: &TileGrid, part: &[(u64, u64)]) -> Option<Vec<(u64, u64)>> {
        let current = self.array.current_domain();
        let mut read = Vec::with_capacity(part.len());
        for (d, (axis, (low, high))) in grid.axes().iter().zip(part).enumerate() {
            let mut low = axis.tile_start(axis.tile_of(*low))?;
            let mut high = axis.tile_end(axis.tile_of(*high))?;
            if let Some(range) = current.and_then(|current| current.ranges.get(d)) {
                let (first, last) = axis.offsets_of(range)?;
                (low, high) = (low.max(first), high.min(last));
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

/// Makes the new fragments count in the place of the old ones; `false`, and nothing is left of the
/// new ones, if another process has replaced some of the old ones meanwhile.
fn commit(array: &Array, old: &[&TimestampedName], written: Written) -> Result<bool> {
    let location = array.location();
    // Another process may have consolidated or vacuumed the same fragments meanwhile. None can
    // between the look and the commit.
    let lock = ArrayLock::wait(location)?;
    let now = ArrayFolder::at(array.context(), location)?;
    let counting = now.fragment_names()?;
    let gone: HashSet<String> = now
        .lists_in_force()?
        .into_iter()
        .flat_map(|(_, names)| names)
        .collect();
    if old
        .iter()
        .map(ToString::to_string)
        .any(|name| !counting.contains(&name) || gone.contains(&name))
        || !lock.is_held()
    {
        for fragment in written.fragments {
            fragment.discard()?;
        }
        return Ok(false);
    }
    let Some(first) = written
        .fragments
        .first()
        .map(|fragment| fragment.name().clone())
    else {
        return Ok(true);
    };
    let version = fragment_version(&first)
        .map_err(|e| Error::decode(location.path.join(&first.to_string()).to_string(), e))?;
    let mut paths = Vec::with_capacity(old.len());
    for name in old {
        let of = fragment_version(name).map_err(|e| Error::decode(name.to_string(), e))?;
        let path = fragment_path(name, of);
        paths.push(match version.has_relative_vacuum_names() {
            true => format!("/{path}"),
            false => location.path.join(&path).to_string(),
        });
    }
    let held_back = array.schema().allows_dups && version.has_subdirectories();
    let replacement = Replacement {
        new: written
            .fragments
            .iter()
            .map(|fragment| fragment.name().to_string())
            .collect(),
        old: paths,
    };
    if held_back {
        let path = suffixed_commit_path(&first, Suffix::Replacement);
        location
            .storage
            .put(&location.path.join(&path), replacement.encode().into())?;
    }
    for fragment in written.fragments {
        fragment.commit()?;
    }
    if held_back {
        finish_replacement(location, &first, &replacement)?;
        return Ok(true);
    }
    let vacuum = VacuumList {
        uris: replacement.old,
    };
    let path = match version.has_subdirectories() {
        true => suffixed_commit_path(&first, Suffix::Vacuum),
        false => format!("{first}{}", Suffix::Vacuum.text()),
    };
    location
        .storage
        .put(&location.path.join(&path), vacuum.encode().into())?;
    Ok(true)
}
