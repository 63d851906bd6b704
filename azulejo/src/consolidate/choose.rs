//! Which fragments are consolidated next.

use super::plan::{around, overlap};
use crate::array::{Array, Fragment, Relabelled, TimeRange, relabelled};
use crate::error::{Error, Result};
use crate::fragment_info::FragmentDescription;
use crate::space::tiled_alike;
use azulejo_format::fragment::Field;
use azulejo_format::schema::TileAxis;
use azulejo_format::{ArraySchema, NdRectangle};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// How fragments are chosen where they are not named: of the runs of fragments that follow each
/// other in time, the longest that is allowed; of several as long, the smallest in bytes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// At most this many rounds, each of which replaces some fragments by one.
    pub steps: u32,
    /// A round takes at least this many fragments (all, if there are fewer).
    pub min_fragments: u32,
    /// And at most this many.
    pub max_fragments: u32,
    /// The smaller of two neighbours must be at least this part of the larger, in bytes: 0 to 1.
    pub size_ratio: f64,
    /// Dense: the box around the fragments may have at most this many times the cells of the
    /// fragments.
    pub amplification: f64,
    /// Dense: only fragments of which each, in the order in which they were written, makes one box
    /// with those before it. In any other box there are cells that nobody wrote: they are stored as
    /// fill values, and count as written from then on.
    pub no_gaps: bool,
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            steps: u32::MAX,
            min_fragments: u32::MAX,
            max_fragments: u32::MAX,
            size_ratio: 0.0,
            amplification: 1.0,
            no_gaps: false,
        }
    }
}

impl Choice {
    /// All fragments, in one round.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many rounds there are at most.
    #[must_use]
    pub fn steps(mut self, most: u32) -> Self {
        self.steps = most;
        self
    }

    /// Sets how many fragments a round takes, at least and at most.
    #[must_use]
    pub fn fragments(mut self, least: u32, most: u32) -> Self {
        (self.min_fragments, self.max_fragments) = (least, most);
        self
    }

    /// Sets what part of its larger neighbour a fragment must have at least, in bytes: 0 to 1.
    #[must_use]
    pub fn size_ratio(mut self, least: f64) -> Self {
        self.size_ratio = least;
        self
    }

    /// Sets how many times the cells of dense fragments the box around them may have.
    #[must_use]
    pub fn amplification(mut self, most: f64) -> Self {
        self.amplification = most;
        self
    }

    /// Leaves dense fragments apart whose box has cells that none of them wrote.
    #[must_use]
    pub fn no_gaps(mut self) -> Self {
        self.no_gaps = true;
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        let wrong = |text: &str| Err(Error::InvalidArgument(text.to_owned()));
        if self.min_fragments > self.max_fragments {
            return wrong("the least number of fragments of a round is greater than the greatest");
        }
        if !(0.0..=1.0).contains(&self.size_ratio) {
            return wrong("the size ratio must lie between 0 and 1");
        }
        if self.amplification.is_nan() || self.amplification < 0.0 {
            return wrong("the amplification must not be negative");
        }
        Ok(())
    }
}

/// Fragments to be replaced by one, and what is known of that.
#[derive(Debug, Clone)]
pub(super) struct Chosen {
    /// Indices into the array's fragments, ascending.
    pub fragments: Vec<usize>,
    /// The box around them.
    pub bounds: NdRectangle,
    /// File name of the schema that the result has: one with all the attributes that they have.
    pub schema: String,
}

impl Chosen {
    /// Whether cells keep their own time, so that fragments between chosen ones do not matter.
    pub fn are_timed(schema: &ArraySchema) -> bool {
        !schema.is_dense() && schema.version.may_count_in_part()
    }
}

/// Whether a fragment without the times of its cells, which was consolidated below format version
/// 15, meets others in time, or deletes. Readers order it by where it begins and see it from where
/// it ends. The cells of a consolidated fragment have one time for both, which is the end: right
/// only where nothing else lies between the two.
fn is_out_of_order(array: &Array, index: usize, fragment: &Fragment) -> bool {
    let time = fragment.time_range();
    if time.start == time.end || fragment.stores(Field::Timestamps) {
        return false;
    }
    let mut others = array.fragments().iter().enumerate();
    let mut deletes = array.deletes().iter();
    others.any(|(i, other)| {
        let other = other.time_range();
        i != index && time.start < other.end && other.start <= time.end
    }) || deletes.any(|delete| (time.start..time.end).contains(&delete.timestamp))
}

/// What choosing knows of an array.
pub(super) struct Candidates<'a> {
    array: &'a Array,
    /// Indices of those that may be chosen, ascending.
    pub members: Vec<usize>,
    /// Bytes, by index in the array.
    sizes: Vec<u64>,
    /// The file name of the latest schema.
    latest: String,
    /// The schemas that have other labels than the latest: those that came in the place of others keep
    /// cells apart, though they may begin with them now. At a time when they did not yet, the cells had
    /// none of them.
    relabelled: Vec<Relabelled>,
    /// Whether cells keep their own time, so that fragments between chosen ones do not matter.
    timed: bool,
}

impl<'a> Candidates<'a> {
    /// The fragments that lie within `time`, without those in `done`, those that reach into the
    /// future (of these only the cells of now would be read), and those whose cells have lost their
    /// order among others.
    pub fn new(array: &'a Array, time: TimeRange, done: &BTreeSet<String>) -> Result<Self> {
        let sizes = array.fragments().iter();
        let sizes = sizes
            .map(|fragment| FragmentDescription::of(fragment).size())
            .collect::<Result<Vec<_>>>()?;
        let timed = Chosen::are_timed(array.schema());
        let end = time.end.min(array.time_range().end);
        let inside = |f: &Fragment| time.start <= f.time_range().start && f.time_range().end <= end;
        let members = array.fragments().iter().enumerate();
        let members = members
            .filter(|(_, f)| inside(f) && !done.contains(f.name()))
            .filter(|(i, f)| !(timed && is_out_of_order(array, *i, f)))
            .map(|(i, _)| i)
            .collect();
        let latest = array.schema_name().to_owned();
        let schemas = array.schemas_of_fragments();
        Ok(Self {
            array,
            members,
            sizes,
            relabelled: relabelled(schemas, &latest, &mut |_, _| false),
            latest,
            timed,
        })
    }

    fn fragment(&self, index: usize) -> Result<&'a Fragment> {
        let fragment = self.array.fragments().get(index);
        fragment.ok_or_else(|| Error::Internal("a fragment that the array does not have".into()))
    }

    /// Checks fragments that the caller has named.
    pub fn named(&self, names: &[String]) -> Result<Chosen> {
        let mut chosen = BTreeSet::new();
        for name in names {
            let name = name
                .trim_end_matches('/')
                .rsplit(['/', '\\'])
                .next()
                .unwrap_or_default();
            let index = self
                .array
                .fragments()
                .iter()
                .position(|f| f.name() == name)
                .ok_or_else(|| {
                    Error::InvalidArgument(format!(
                        "{}: there is no fragment {name:?} now",
                        self.array.uri()
                    ))
                })?;
            if self.fragment(index)?.time_range().end > self.array.time_range().end {
                return Err(Error::InvalidArgument(format!(
                    "{}: fragment {name:?} has cells of the future, which cannot be consolidated yet",
                    self.array.uri()
                )));
            }
            if self.timed && is_out_of_order(self.array, index, self.fragment(index)?) {
                return Err(Error::InvalidArgument(format!(
                    "{}: fragment {name:?} was consolidated before the array was upgraded, and its cells have no times \
                     by which those of others or deletes came before or after them",
                    self.array.uri()
                )));
            }
            chosen.insert(index);
        }
        let fragments: Vec<usize> = chosen.into_iter().collect();
        let bounds = self.bounds(&fragments)?;
        if let Some(other) = self.in_between(&fragments, &bounds) {
            return Err(Error::InvalidArgument(format!(
                "{}: fragment {} lies between the chosen ones in time and overlaps the box around them; choose it too",
                self.array.uri(),
                other.name()
            )));
        }
        let schema = self.schema_for(&fragments)?.ok_or_else(|| {
            Error::InvalidArgument(format!(
                "{}: no schema has all the attributes of the chosen fragments, so that consolidating them would lose \
                 what readers of earlier times see; choose those before or those after the change",
                self.array.uri()
            ))
        })?;
        Ok(Chosen {
            fragments,
            bounds,
            schema,
        })
    }

    /// An older fragment that is not chosen and may have cells where the chosen ones have deleted
    /// ones: without these its cells would come back.
    pub fn uncovered(&self, chosen: &Chosen) -> Option<&'a Fragment> {
        match self.array.schema().allows_dups {
            true => None,
            false => self.overlapping(&chosen.fragments, &chosen.bounds, 0),
        }
    }

    /// So many of the chosen ones that follow each other: of all such parts the smallest in bytes.
    pub fn part(&self, chosen: &Chosen, most: usize) -> Result<Chosen> {
        let parts = chosen.fragments.windows(most);
        let part = parts.min_by_key(|part| self.size_of(part));
        let fragments = part.unwrap_or(&chosen.fragments).to_vec();
        Ok(Chosen {
            bounds: self.bounds(&fragments)?,
            schema: self
                .schema_for(&fragments)?
                .unwrap_or_else(|| chosen.schema.clone()),
            fragments,
        })
    }

    /// The first fragment with cells that are deleted, or that may be: of `names`, or of all
    /// candidates.
    pub fn with_deleted_cells(&self, names: &[String]) -> Result<Option<Chosen>> {
        for &index in &self.members {
            let fragment = self.fragment(index)?;
            let named = names.is_empty() || names.iter().any(|name| name == fragment.name());
            if !named || !self.has_deleted_cells(fragment)? {
                continue;
            }
            let fragments = vec![index];
            let bounds = self.bounds(&fragments)?;
            if let Some(schema) = self.schema_for(&fragments)? {
                let chosen = Chosen {
                    fragments,
                    bounds,
                    schema,
                };
                if self.uncovered(&chosen).is_none() {
                    return Ok(Some(chosen));
                }
            }
        }
        Ok(None)
    }

    /// Whether a delete may have met cells of a fragment that are still in it. One that was
    /// consolidated names the deletes which it was cleared of.
    fn has_deleted_cells(&self, fragment: &Fragment) -> Result<bool> {
        if fragment.has_delete_metadata() {
            return Ok(true);
        }
        let since = fragment.time_range().start;
        let mut deletes = self
            .array
            .deletes()
            .iter()
            .filter(|delete| delete.timestamp >= since)
            .peekable();
        if self.array.schema().is_dense() || deletes.peek().is_none() {
            return Ok(false);
        }
        let cleared = fragment.processed_conditions()?;
        Ok(deletes.any(|delete| !cleared.contains(&delete.name)))
    }

    /// The next run of fragments; `None` if none is allowed.
    pub fn next(&self, choice: &Choice) -> Result<Option<Chosen>> {
        // Where an attribute was dropped or changed, those before and those after it are
        // consolidated apart.
        let mut start = 0;
        while start < self.members.len() {
            let mut end = start + 1;
            while end < self.members.len() {
                let run = self.members.get(start..=end).unwrap_or_default();
                let [.., before, next] = run else { break };
                let same = Arc::ptr_eq(
                    self.fragment(*before)?.schema(),
                    self.fragment(*next)?.schema(),
                );
                if !same && self.schema_for(run)?.is_none() {
                    break;
                }
                end += 1;
            }
            if let Some(chosen) = self.next_of(start..end, choice)? {
                return Ok(Some(chosen));
            }
            start = end;
        }
        Ok(None)
    }

    /// The next run of the candidates in `among`.
    fn next_of(&self, among: Range<usize>, choice: &Choice) -> Result<Option<Chosen>> {
        let total = among.len();
        let least = (choice.min_fragments as usize).min(total);
        let most = (choice.max_fragments as usize).min(total);
        let mut best: Vec<(usize, u64)> = Vec::new();
        let mut best_len = least.max(2);
        for start in among.clone() {
            if among.end - start < best_len {
                break;
            }
            let len = self.longest_run(start..among.end, most, choice)?;
            if len > best_len {
                best_len = len;
                best.clear();
            }
            if len >= best_len {
                best.push((start, 0));
            }
        }
        for (start, size) in &mut best {
            let run = self
                .members
                .get(*start..*start + best_len)
                .unwrap_or_default();
            *size = self.size_of(run);
        }
        // A later run is taken only if it is clearly smaller: writes of about one size are
        // consolidated from the front.
        let mut chosen: Option<(usize, u64)> = None;
        for (start, size) in best {
            if chosen.is_none_or(|(_, least)| (size as f64) < least as f64 / 1.25) {
                chosen = Some((start, size));
            }
        }
        let Some((start, _)) = chosen else {
            return Ok(None);
        };
        let fragments = self
            .members
            .get(start..start + best_len)
            .unwrap_or_default()
            .to_vec();
        let bounds = self.bounds(&fragments)?;
        let Some(schema) = self.schema_for(&fragments)? else {
            return Ok(None);
        };
        Ok(Some(Chosen {
            fragments,
            bounds,
            schema,
        }))
    }

    /// How many candidates from the first on may be consolidated together: each one more must be
    /// allowed.
    fn longest_run(&self, among: Range<usize>, most: usize, choice: &Choice) -> Result<usize> {
        let members = self.members.get(among).unwrap_or_default();
        let Some(&first) = members.first() else {
            return Ok(0);
        };
        let schema = self.array.schema();
        let mut bounds = self.fragment(first)?.reach().cloned();
        let mut cells = self.tile_cells(first)?;
        let mut run = vec![first];
        for pair in members.windows(2).take(most.saturating_sub(1)) {
            let [before, next] = pair else { break };
            let (a, b) = (self.size(*before) as f64, self.size(*next) as f64);
            let ratio = if a.max(b) > 0.0 {
                a.min(b) / a.max(b)
            } else {
                1.0
            };
            if ratio < choice.size_ratio {
                break;
            }
            let fragment = self.fragment(*next)?;
            let more = around(schema, bounds.as_ref(), fragment.reach());
            run.push(*next);
            let Some(more) = more else { break };
            if self.in_between(&run, &more).is_some() {
                run.pop();
                break;
            }
            if schema.is_dense() {
                cells += self.tile_cells(*next)?;
                let has_gap = || leaves_gap(schema, bounds.as_ref(), fragment.reach());
                if cell_num(schema, &more, false) > choice.amplification * cells
                    || choice.no_gaps && has_gap()
                {
                    run.pop();
                    break;
                }
            }
            bounds = Some(more);
        }
        Ok(run.len())
    }

    fn size(&self, index: usize) -> u64 {
        self.sizes.get(index).copied().unwrap_or(0)
    }

    fn size_of(&self, run: &[usize]) -> u64 {
        let sizes = run.iter().map(|index| self.size(*index));
        sizes.fold(0, u64::saturating_add)
    }

    /// Cells of the tiles of a dense fragment.
    fn tile_cells(&self, index: usize) -> Result<f64> {
        let bounds = self.fragment(index)?.footer().non_empty_domain.as_ref();
        Ok(bounds.map_or(0.0, |bounds| cell_num(self.array.schema(), bounds, true)))
    }

    fn bounds(&self, fragments: &[usize]) -> Result<NdRectangle> {
        let mut bounds: Option<NdRectangle> = None;
        for index in fragments {
            let more = self.fragment(*index)?.reach();
            bounds = around(self.array.schema(), bounds.as_ref(), more);
        }
        bounds.ok_or_else(|| {
            Error::InvalidArgument(format!("{}: the fragments are empty", self.array.uri()))
        })
    }

    /// A fragment that is not chosen and whose cells the result would hide, or be hidden by,
    /// wrongly.
    ///
    /// The result has one place in time where the chosen have many. A dense one also covers cells
    /// that none of them wrote.
    fn in_between(&self, chosen: &[usize], bounds: &NdRectangle) -> Option<&'a Fragment> {
        if self.timed {
            return None;
        }
        let from = match self.array.schema().is_dense() {
            true => 0,
            false => chosen.first().copied().unwrap_or(0),
        };
        self.overlapping(chosen, bounds, from)
    }

    /// The first fragment from an index on, older than the last of the chosen ones and none of them,
    /// that overlaps a box.
    fn overlapping(
        &self,
        chosen: &[usize],
        bounds: &NdRectangle,
        from: usize,
    ) -> Option<&'a Fragment> {
        let last = chosen.last().copied().unwrap_or(0);
        let fragments = self.array.fragments().iter().enumerate();
        let others = fragments
            .take(last)
            .skip(from)
            .filter(|(index, _)| chosen.binary_search(index).is_err());
        others
            .map(|(_, fragment)| fragment)
            .find(|fragment| overlap(self.array.schema(), Some(bounds), fragment.reach()))
    }

    fn schema_name(&self, index: usize) -> Result<String> {
        let of = self.fragment(index)?.schema();
        let mut schemas = self.array.schemas_of_fragments().iter();
        let found = schemas.find(|(_, schema)| Arc::ptr_eq(schema, of));
        let unknown =
            || Error::Internal("a fragment of a schema that the array does not have".into());
        found.map(|(name, _)| name.clone()).ok_or_else(unknown)
    }

    /// The schema that fragments can be brought into without losing an attribute: the latest, or
    /// that of the newest of them.
    fn schema_for(&self, fragments: &[usize]) -> Result<Option<String>> {
        let mut names = BTreeSet::new();
        for index in fragments {
            names.insert(self.schema_name(*index)?);
        }
        let newest = match fragments.last() {
            Some(last) => self.schema_name(*last)?,
            None => return Ok(None),
        };
        let schemas = self.array.schemas_of_fragments();
        let covers_all = |target_name: &String| {
            let Some(target) = schemas.get(target_name) else {
                return false;
            };
            let of_newest: Vec<Relabelled>;
            let others = match *target_name == self.latest {
                true => &self.relabelled,
                false => {
                    of_newest = relabelled(schemas, target_name, &mut |_, _| false);
                    &of_newest
                }
            };
            let is_other = |schema: &Arc<ArraySchema>| {
                let mut others = others.iter();
                others.any(|(other, _)| Arc::ptr_eq(other, schema))
            };
            names
                .iter()
                .filter_map(|name| schemas.get(name))
                .all(|schema| covers(target, schema) && !is_other(schema))
        };
        Ok([self.latest.clone(), newest].into_iter().find(covers_all))
    }
}

/// Whether cells of `other` lose nothing in `schema`. Of an array that was written over another one
/// of another domain, those outside of the latest are still there for readers of earlier times.
fn covers(schema: &ArraySchema, other: &ArraySchema) -> bool {
    std::ptr::eq(schema, other)
        || tiled_alike(schema, other)
            && other.attributes.iter().all(|theirs| {
                schema.attributes.iter().any(|ours| {
                    ours.name == theirs.name
                        && ours.datatype == theirs.datatype
                        && ours.cell_val_num == theirs.cell_val_num
                        && ours.nullable == theirs.nullable
                })
            })
}

/// Cells of a box, or of the space tiles that it touches. Too many for an integer is no error here.
fn cell_num(schema: &ArraySchema, bounds: &NdRectangle, whole_tiles: bool) -> f64 {
    let dimensions = schema.domain.dimensions.iter().zip(&bounds.ranges);
    dimensions
        .map(|(dimension, range)| {
            let Some(axis) = dimension.axis() else {
                return 1.0;
            };
            let Some((first, last)) = axis.offsets_of(range) else {
                return 1.0;
            };
            if !whole_tiles {
                return (last - first) as f64 + 1.0;
            }
            let tiles = (axis.tile_of(last) - axis.tile_of(first)) as f64 + 1.0;
            tiles * extent(&axis)
        })
        .product()
}

/// Whether the box around two boxes has cells that are in neither: it has none where one of them holds
/// the other, and where they follow each other along one dimension and are alike along all others.
fn leaves_gap(schema: &ArraySchema, a: Option<&NdRectangle>, b: Option<&NdRectangle>) -> bool {
    let (Some(a), Some(b)) = (a, b) else {
        return false;
    };
    let dimensions = schema.domain.dimensions.iter();
    let (mut holds, mut is_held) = (true, true);
    let (mut others, mut apart) = (0, false);
    for (dimension, (a, b)) in dimensions.zip(a.ranges.iter().zip(&b.ranges)) {
        let offsets = |axis: TileAxis| axis.offsets_of(a).zip(axis.offsets_of(b));
        let Some((a, b)) = dimension.axis().and_then(offsets) else {
            return true;
        };
        holds &= a.0 <= b.0 && b.1 <= a.1;
        is_held &= b.0 <= a.0 && a.1 <= b.1;
        others += usize::from(a != b);
        apart |= a.0.max(b.0) > a.1.min(b.1).saturating_add(1);
    }
    !holds && !is_held && (others > 1 || apart)
}

fn extent(axis: &TileAxis) -> f64 {
    axis.extent() as f64
}

#[cfg(test)]
mod tests;
