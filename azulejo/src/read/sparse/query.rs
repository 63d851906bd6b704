//! What a sparse read asks of each fragment: bound once, before any tile is looked at.

use super::selection::Selection;
use crate::array::{Array, DeleteCommit, Fragment, TimeRange};
use crate::cancel::Operation;
use crate::condition::{BoundCondition, Meaning};
use crate::error::{Error, Result};
use crate::read::bind::same_field;
use crate::read::budget::Budget;
use crate::read::fetch::{FetchStrategy, Fetcher, Waiting};
use crate::read::stored_tile::fragment_of;
use crate::read::tile_statistics::stats_sections;
use crate::read::{BoundField, BoundOptions};
use crate::space::cell_order::CellOrder;
use crate::space::{DimSelection, Layout, Subarray};
use azulejo_format::fragment::{Field, Section};
use azulejo_format::range::compare;
use azulejo_format::{ArraySchema, NdRectangle, Range};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A condition that cells of one fragment must meet to be results.
#[derive(Debug)]
pub(super) struct CellTest {
    pub(super) condition: BoundCondition,
    /// The condition's fields, in its order.
    pub(super) fields: Vec<Field>,
    /// Only cells with a timestamp up to this one are tested, others pass.
    pub(super) until: Option<u64>,
    /// The delete that it comes from, by index in [`Array::deletes`].
    pub(super) delete: Option<usize>,
}

/// What is asked of one fragment.
#[derive(Debug)]
pub(super) struct FragmentQuery {
    /// Index in [`Array::fragments`].
    pub(super) index: usize,
    /// Whether its cells may replace or be replaced by cells of other fragments, or of itself.
    pub(super) merges: bool,
    /// Whether its cells may replace each other.
    pub(super) repeats: bool,
    /// Cells whose timestamp lies outside do not exist.
    pub(super) within: Option<TimeRange>,
    /// Cells deleted at or before this time are gone.
    pub(super) deleted_until: Option<u64>,
    /// Conditions, tested after duplicates are gone.
    pub(super) tests: Vec<CellTest>,
    /// The columns asked for; `None` where the fragment has no such field.
    pub(super) fields: Vec<Option<Field>>,
}

impl FragmentQuery {
    /// Fields that the tests look at, some more than once.
    pub(super) fn tested_fields(&self) -> impl Iterator<Item = Field> {
        self.tests.iter().flat_map(|test| &test.fields).copied()
    }

    /// Whether some test needs the cells' timestamps.
    pub(super) fn tests_timestamps(&self) -> bool {
        self.within.is_some() || self.tests.iter().any(|test| test.until.is_some())
    }

    /// Whether the cells' timestamps may be looked at, if the fragment has any.
    pub(super) fn looks_at_timestamps(&self, query: &SparseQuery) -> bool {
        self.merges || self.tests_timestamps() || query.times
    }
}

/// A bound query.
#[derive(Debug)]
pub(super) struct SparseQuery {
    pub(super) array: Array,
    pub(super) fields: Vec<BoundField>,
    pub(super) budget: Budget,
    pub(super) fetcher: Fetcher,
    pub(super) selection: Selection,
    /// The order asked for, within the box around all cells that take part.
    pub(super) order: CellOrder,
    /// The order of cells in fragments, within the same box.
    pub(super) stored_order: CellOrder,
    /// Whether fragments are known to hold cells in the order asked for.
    pub(super) as_stored: bool,
    /// Whether any order of the result will do.
    pub(super) any_order: bool,

    /// Whether of cells of equal coordinates those of the latest fragment come first. Where
    /// duplicates are dropped the first stays; where they are not, the reference orders them so in
    /// its global order, and its row-major and column-major sort leaves few cells as the fragments
    /// follow each other.
    pub(super) latest_first: bool,
    /// Whether the cells' timestamps are asked for: then every version of a cell is a result, the
    /// latest first.
    pub(super) versions: bool,
    /// Whether the cells' timestamps are asked for.
    pub(super) times: bool,
    /// Whether it is asked when and by which condition cells were deleted: then deleted ones are
    /// results too.
    pub(super) deletions: bool,
    /// The fragments that take part, ascending.
    pub(super) fragments: Vec<FragmentQuery>,
    /// The read, which can be cancelled.
    pub(super) operation: Operation,
}

impl SparseQuery {
    pub(super) async fn new(
        array: &Array,
        options: &BoundOptions,
        waiting: Waiting,
    ) -> Result<Self> {
        let schema = array.schema();
        let bounded = within_current_domain(array, options);
        // In SQL a comparison is one of what cells read as, and nothing else.
        let written = || match options.meaning {
            Meaning::TileDb => array.non_empty_domain(),
            Meaning::Sql => Ok(None),
        };
        let subarray = bounded.as_ref().unwrap_or(&options.subarray);
        let selection = Selection::new(subarray, schema, written)?;
        let mut boxes = array.fragments_meeting(|bounds| selection.meets(bounds));
        let is_dense = |index: usize| array.fragments().get(index).is_some_and(Fragment::is_dense);
        boxes.retain(|(index, _)| !is_dense(*index));
        let dims = schema.domain.dimensions.len();
        if let Some((index, _)) = boxes.iter().find(|(_, bounds)| bounds.ranges.len() != dims) {
            let name = array.fragments().get(*index).map_or("", Fragment::name);
            return Err(Error::Internal(format!(
                "the box of fragment {name} does not fit the domain"
            )));
        }
        let around = schema
            .domain
            .around(boxes.iter().map(|(_, bounds)| *bounds));
        let around = around.unwrap_or_default();
        let bounds: Vec<(&[u8], &[u8])> = around
            .ranges
            .iter()
            .map(|r| (r.start.as_slice(), r.end.as_slice()))
            .collect();
        let within = |layout: Layout| CellOrder::new(schema, layout).within(&bounds);
        let streams = FetchStrategy::of(array) == FetchStrategy::Streaming;
        let cache = if streams { array.tiles().limit() } else { 0 };
        let budget = Budget::sparse(options.memory_budget, options.batch_bytes, cache, !streams);
        let pool = array.context().buffers().with_load_limit(budget.total);
        let fetcher = Fetcher::new(array, waiting, pool).counted(&options.counts);
        let asked = |field: Field| options.fields.iter().any(|bound| bound.field == field);
        let versions = options.versions && asked(Field::Timestamps);
        let deletions = asked(Field::DeleteTimestamps);
        let deletes = !array.deletes().is_empty() || deletions;
        let consolidated = |(index, _): &&(usize, _)| {
            array.fragments().get(*index).is_some_and(|fragment| {
                let merges = !schema.allows_dups && fragment.has_timestamps();
                merges || (deletes && fragment.has_delete_metadata())
            })
        };
        let sections = boxes.iter().filter(consolidated);
        // Their boxes come with it: planning wants them next.
        let sections = sections.flat_map(|(index, _)| {
            [Section::ProcessedConditions, Section::RTree].map(|section| (*index, section))
        });
        fetcher.metadata(&sections.collect::<Vec<_>>()).await?;
        let repeating = repeating(array, &boxes, versions)?;
        let merging = merging(array, &boxes, &repeating);
        let condition = options.bound_condition(array)?;
        let deletes = array.deletes().iter().map(|of| bind_delete(array, of));
        let deletes: Vec<BoundDelete> = deletes.collect::<Result<_>>()?;
        let fragments = boxes
            .iter()
            .zip(merging.into_iter().zip(repeating))
            .map(|((index, _), cells)| {
                let conditions = (condition.as_ref(), deletes.as_slice());
                bind_fragment(array, options, conditions, *index, cells)
            })
            .collect::<Result<Vec<_>>>()?;
        let (order, stored_order) = (within(options.layout), within(Layout::Global));
        Ok(Self {
            array: array.clone(),
            fields: options.fields.clone(),
            budget,
            fetcher,
            selection,
            as_stored: order == stored_order && !order.is_stored_otherwise(),
            order,
            stored_order,
            any_order: options.layout == Layout::Unordered,
            latest_first: !schema.allows_dups
                || matches!(options.layout, Layout::Global | Layout::Unordered),
            times: asked(Field::Timestamps),
            versions,
            deletions,
            fragments,
            operation: array.context().begin(),
        })
    }

    /// The fragment of a fragment query.
    pub(super) fn fragment(&self, of: &FragmentQuery) -> Result<&Fragment> {
        fragment_of(&self.array, of.index)
    }

    /// The index in [`Array::fragments`] of one of [`Self::fragments`].
    pub(super) fn index_of(&self, part: usize) -> usize {
        self.fragments.get(part).map_or(usize::MAX, |of| of.index)
    }

    /// Loads the parts of metadata that planning looks at.
    pub(super) async fn load_boxes(&self) -> Result<()> {
        let mut sections: Vec<(usize, Section)> = Vec::new();
        for of in &self.fragments {
            sections.push((of.index, Section::RTree));
            let tested = of.tested_fields();
            let attributes = tested.filter(|field| matches!(field, Field::Attribute(_)));
            let attributes: BTreeSet<Field> = attributes.collect();
            let stats = attributes.into_iter();
            sections.extend(stats.flat_map(|field| stats_sections(of.index, field)));
        }
        self.fetcher.metadata(&sections).await
    }

    /// Loads the parts of metadata that say where the tiles of fields lie.
    pub(super) async fn load_offsets(&self, fragments: &BTreeSet<usize>) -> Result<()> {
        let dims = self.array.schema().domain.dimensions.len();
        let mut fields: Vec<(usize, Field)> = Vec::new();
        let used = self.fragments.iter();
        for of in used.filter(|of| fragments.contains(&of.index)) {
            let fragment = self.fragment(of)?;
            let results = of.fields.iter().flatten().copied();
            let results = results.chain(of.tested_fields());
            let times = fragment.has_timestamps() && of.looks_at_timestamps(self);
            let times = times.then_some(Field::Timestamps);
            let deletes = fragment
                .has_delete_metadata()
                .then_some(Field::DeleteTimestamps);
            let needed = results.chain((0..dims).map(Field::Dimension)).chain(times);
            fields.extend(needed.chain(deletes).map(|field| (of.index, field)));
        }
        self.fetcher.tile_offsets(fields).await
    }
}

/// Whether each fragment can hold cells with coordinates that another one of its cells has too, where
/// that matters: to who asks for all versions always.
fn repeating(array: &Array, boxes: &[(usize, &NdRectangle)], versions: bool) -> Result<Vec<bool>> {
    if array.schema().allows_dups {
        return Ok(vec![false; boxes.len()]);
    }
    let repeats = boxes.iter().map(|(index, _)| {
        let fragment = fragment_of(array, *index)?;
        Ok(match versions {
            true => fragment.has_timestamps(),
            false => fragment.loaded().may_repeat_cells()?,
        })
    });
    repeats.collect()
}

/// Whether each fragment can hold cells with coordinates that another cell of the array has too, where
/// that matters. `repeating` says so of each by itself.
fn merging(array: &Array, boxes: &[(usize, &NdRectangle)], repeating: &[bool]) -> Vec<bool> {
    let schema = array.schema();
    let mut merges = repeating.to_vec();
    if schema.allows_dups {
        return merges;
    }
    let dimensions = &schema.domain.dimensions;
    let Some(slowest) = dimensions.first().map(|d| d.datatype) else {
        return merges;
    };
    let first = |i: usize| boxes[i].1.ranges.first();
    let start = |i: usize| first(i).map_or(&[][..], |range| &range.start);
    let end = |i: usize| first(i).map_or(&[][..], |range| &range.end);
    let mut by_start: Vec<usize> = (0..boxes.len()).collect();
    by_start.sort_by(|a, b| compare(slowest, start(*a), start(*b)));
    for (at, &a) in by_start.iter().enumerate() {
        let later = by_start.iter().skip(at + 1);
        for &b in later.take_while(|b| compare(slowest, start(**b), end(a)) != Ordering::Greater) {
            if merges[a] && merges[b] {
                continue;
            }
            let ranges = boxes[a].1.ranges.iter().zip(&boxes[b].1.ranges);
            let mut ranges = ranges.zip(dimensions);
            if ranges.all(|((x, y), d)| x.as_ref().overlaps(y.as_ref(), d.datatype)) {
                (merges[a], merges[b]) = (true, true);
            }
        }
    }
    merges
}

/// A delete of which it is known what it means.
struct BoundDelete {
    condition: BoundCondition,
    /// The schema of its time.
    schema: Arc<ArraySchema>,
}

/// A delete means the fields that the array had when it was written: since then they may have been
/// dropped, or replaced by others of the same names.
fn bind_delete(array: &Array, delete: &DeleteCommit) -> Result<BoundDelete> {
    let enumerations = |name: &str| array.enumeration(name);
    let (schema, condition) = match array.meant(delete) {
        Some(meant) => meant,
        None => {
            let bound = BoundCondition::bind(&delete.kept, array.schema(), &enumerations)?;
            (array.schema(), bound)
        }
    };
    let schema = Arc::clone(schema);
    Ok(BoundDelete { condition, schema })
}

/// The selection where dimensions that are not restricted are so by the current domain; `None` if
/// that makes no difference. Consolidation, which takes every version of a cell, takes also the
/// cells outside.
fn within_current_domain(array: &Array, options: &BoundOptions) -> Option<Subarray> {
    let schema = array.schema();
    let (Subarray::Box(selections), Some(limits), false) = (
        &options.subarray,
        schema.current_domain.ranges(),
        options.versions,
    ) else {
        return None;
    };
    let written = array.non_empty_domain().ok().flatten();
    let mut changed = false;
    let dimensions = schema.domain.dimensions.iter().enumerate().zip(limits);
    let bounded = dimensions.map(|((d, dimension), limits)| {
        let selection = selections.get(d).unwrap_or(&DimSelection::All);
        let less = |a: &[u8], b: &[u8]| compare(dimension.datatype, a, b) == Ordering::Less;
        let leaves = |written: &Range| {
            let open = dimension.is_var() && limits.end.is_empty();
            less(&written.start, &limits.start) || (!open && less(&limits.end, &written.end))
        };
        let written = written.as_ref().and_then(|bounds| bounds.ranges.get(d));
        match selection {
            DimSelection::All if written.is_some_and(leaves) => {
                changed = true;
                DimSelection::Ranges(vec![limits.clone()])
            }
            _ => selection.clone(),
        }
    });
    let bounded = Subarray::Box(bounded.collect());
    changed.then_some(bounded)
}

fn bind_fragment(
    array: &Array,
    options: &BoundOptions,
    (condition, deletes): (Option<&BoundCondition>, &[BoundDelete]),
    index: usize,
    (merges, repeats): (bool, bool),
) -> Result<FragmentQuery> {
    let fragment = fragment_of(array, index)?;
    let (opened, written) = (array.time_range(), fragment.time_range());
    let fields = options.fields.iter();
    let mut asked = fields.clone();
    let deletions = asked.any(|bound| bound.field == Field::DeleteTimestamps);
    let partly =
        fragment.has_timestamps() && (written.start < opened.start || written.end > opened.end);
    let mut query = FragmentQuery {
        index,
        merges,
        repeats,
        within: partly.then_some(opened),
        deleted_until: (fragment.has_delete_metadata() && !deletions).then_some(opened.end),
        tests: Vec::new(),
        fields: fields.map(|f| field_of(fragment, f)).collect(),
    };
    if let Some(condition) = condition {
        add_test(&mut query, fragment, condition, None, None)?;
    }
    let deletes = array.deletes().iter().zip(deletes);
    for (i, (delete, bound)) in deletes.enumerate() {
        if delete.timestamp < written.start {
            continue;
        }
        let applied = || fragment.loaded().processed_conditions();
        if fragment.has_delete_metadata() && applied()?.contains(&delete.name) {
            continue;
        }
        let later = fragment.has_timestamps() && delete.timestamp <= written.end;
        let until = later.then_some(delete.timestamp);
        let relabelled = array.relabelled_beside(fragment, &bound.schema);
        let kept = (!relabelled.is_empty()).then(|| bound.condition.keeping(&relabelled));
        let condition = kept.as_ref().unwrap_or(&bound.condition);
        add_test(&mut query, fragment, condition, until, Some(i))?;
    }
    Ok(query)
}

/// The field of a fragment that holds the cells of a column, if it has any.
fn field_of(fragment: &Fragment, bound: &BoundField) -> Option<Field> {
    match bound.field {
        Field::Attribute(_) | Field::Dimension(_) | Field::ZippedCoords => {
            same_field(fragment, &bound.column_type)
        }
        // Fragments that do not store them get them when their tiles are examined.
        Field::Timestamps | Field::DeleteTimestamps | Field::DeleteConditions => Some(bound.field),
    }
}

fn add_test(
    query: &mut FragmentQuery,
    fragment: &Fragment,
    bound: &BoundCondition,
    until: Option<u64>,
    delete: Option<usize>,
) -> Result<()> {
    // What deletes mean by labels has been seen to, and they are of indices as these are stored.
    let relabelled = match delete {
        None => fragment.relabelled(),
        Some(_) => &[],
    };
    let condition = bound.for_fragment(fragment.schema(), relabelled);
    if condition.constant() == Some(true) {
        return Ok(());
    }
    let field = |name: &Arc<str>| {
        fragment.field(name).ok_or_else(|| {
            Error::Internal(format!(
                "a condition on {name:?}, which the fragment does not have"
            ))
        })
    };
    let fields = condition.fields().iter().map(field);
    query.tests.push(CellTest {
        fields: fields.collect::<Result<_>>()?,
        condition,
        until,
        delete,
    });
    Ok(())
}
