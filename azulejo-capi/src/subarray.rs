//! `tiledb_subarray_t`: ranges to read from or write to.

use crate::array::{ArrayHandle, OpenArray};
use crate::boundary::{Bytes, In, Kind, Out, OutBytes, Pointer, Ptr, Str, Text, capi, capi_free};
use crate::config::Config;
use crate::error::{Failure, Result};
use crate::strings::{Keep, lock};
use azulejo::array::Snapshot;
use azulejo::space::{DimSelection, Subarray};
use azulejo_format::datatype::{Native, dispatch};
use azulejo_format::range::compare;
use azulejo_format::schema::{ArraySchema, Dimension};
use azulejo_format::{Datatype, Range};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::{Arc, Mutex};

/// `tiledb_subarray_t`.
#[derive(Debug)]
pub struct SubarrayHandle {
    state: Mutex<Ranges>,
    keep: Keep,
}

impl Kind for SubarrayHandle {
    const NAME: &'static str = "subarray";
}

/// The ranges of a subarray.
#[derive(Debug, Clone)]
pub struct Ranges {
    schema: Arc<ArraySchema>,
    array: Snapshot,
    /// For each dimension; none set stands for the whole domain.
    dimensions: Vec<Vec<Range>>,
    /// For each dimension, a label and ranges of its values.
    labels: Vec<Option<(String, Vec<Range>)>>,
    /// Whether neighbouring ranges become one.
    coalesce: bool,
    /// Whether a range outside the domain is an error; it is cut to the domain otherwise.
    strict: bool,
}

impl SubarrayHandle {
    /// A handle on a copy of ranges.
    pub fn new(ranges: Ranges) -> Self {
        Self {
            state: Mutex::new(ranges),
            keep: Keep::default(),
        }
    }

    /// The ranges as they are now.
    pub fn ranges(&self) -> Ranges {
        lock(&self.state).clone()
    }
}

fn strict(value: Option<&str>) -> Result<bool> {
    match value {
        Some("error") => Ok(true),
        Some("warn") | None => Ok(false),
        Some(other) => Err(Failure::new(format!(
            "sm.read_range_oob is {other:?}; it must be \"warn\" or \"error\""
        ))),
    }
}

/// The coordinate that follows; `None` at the end of the type and where there is none.
fn successor(datatype: Datatype, bytes: &[u8]) -> Option<Vec<u8>> {
    fn next<T: Native>(bytes: &[u8], signed: bool) -> Option<Vec<u8>> {
        let mut wide = [if signed && bytes.last()? & 0x80 != 0 {
            0xff
        } else {
            0
        }; 16];
        wide.get_mut(..T::SIZE)?
            .copy_from_slice(bytes.get(..T::SIZE)?);
        let next = i128::from_le_bytes(wide) + 1;
        let bits = 8 * u32::try_from(T::SIZE).ok()?;
        let max = if signed {
            (1i128 << (bits - 1)) - 1
        } else {
            (1i128 << bits) - 1
        };
        (next <= max)
            .then(|| next.to_le_bytes().get(..T::SIZE).map(<[u8]>::to_vec))
            .flatten()
    }
    if datatype.is_string() || datatype.is_real() {
        return None;
    }
    let signed = !matches!(
        datatype,
        Datatype::UInt8 | Datatype::UInt16 | Datatype::UInt32 | Datatype::UInt64 | Datatype::Bool
    );
    dispatch!(datatype.physical(), T => next::<T>(bytes, signed))
}

fn is_nan(datatype: Datatype, bytes: &[u8]) -> bool {
    match datatype {
        Datatype::Float32 => bytes
            .first_chunk()
            .is_some_and(|b| f32::from_le_bytes(*b).is_nan()),
        Datatype::Float64 => bytes
            .first_chunk()
            .is_some_and(|b| f64::from_le_bytes(*b).is_nan()),
        _ => false,
    }
}

/// What is wrong with a range in itself.
fn fault(datatype: Datatype, is_var: bool, range: &Range) -> Option<String> {
    if is_nan(datatype, &range.start) || is_nan(datatype, &range.end) {
        return Some("Cannot add range; Range contains NaN".into());
    }
    // The reference does not compare the bounds of strings.
    let falls = !is_var && compare(datatype, &range.start, &range.end) == Ordering::Greater;
    falls.then(|| {
        format!(
            "Cannot add range; Lower range bound {} cannot be larger than the higher bound {}",
            crate::dump::value(datatype, &range.start),
            crate::dump::value(datatype, &range.end)
        )
    })
}

impl Ranges {
    /// The whole domain of an array.
    pub fn new(array: &OpenArray, coalesce: bool, oob: Option<&str>) -> Result<Self> {
        let schema = array.shown_schema();
        let count = schema.domain.ndim();
        Ok(Self {
            array: array.snapshot().clone(),
            dimensions: vec![Vec::new(); count],
            labels: vec![None; count],
            schema,
            coalesce,
            strict: strict(oob)?,
        })
    }

    fn dimension(&self, index: usize) -> Result<&Dimension> {
        self.schema
            .dimension(index)
            .ok_or_else(|| Failure::new("Cannot add range; Invalid dimension index"))
    }

    fn index_of(&self, name: &str) -> Result<usize> {
        let found = self.schema.domain.index_of(name);
        found.ok_or_else(|| Failure::new(format!("Invalid dimension name '{name}'")))
    }

    fn add(&mut self, index: usize, mut range: Range) -> Result<()> {
        let dimension = self.dimension(index)?.clone();
        let fail = |why: &str| {
            Err(Failure::new(format!(
                "Cannot add range to dimension '{}'; {why}",
                dimension.name
            )))
        };
        if self.labels.get(index).is_some_and(Option::is_some) {
            return fail("A range is already set on a dimension label for this dimension");
        }
        let datatype = dimension.datatype;
        if let Some(fault) = fault(datatype, dimension.is_var(), &range) {
            return fail(&fault);
        }
        if let Some(domain) = &dimension.domain {
            let less = |a: &[u8], b: &[u8]| compare(datatype, a, b) == Ordering::Less;
            if less(&range.start, &domain.start) || less(&domain.end, &range.end) {
                if self.strict {
                    // With all digits: a few of them may tell the two apart.
                    let text = |bytes: &[u8]| crate::dump::value(datatype, bytes);
                    return fail(&format!(
                        "Range [{}, {}] is out of domain bounds [{}, {}]",
                        text(&range.start),
                        text(&range.end),
                        text(&domain.start),
                        text(&domain.end)
                    ));
                }
                for bound in [&mut range.start, &mut range.end] {
                    if less(bound, &domain.start) {
                        bound.clone_from(&domain.start);
                    } else if less(&domain.end, bound) {
                        bound.clone_from(&domain.end);
                    }
                }
            }
        }
        let Some(ranges) = self.dimensions.get_mut(index) else {
            return fail("Invalid dimension index");
        };
        if self.coalesce
            && let Some(last) = ranges.last_mut()
            && successor(datatype, &last.end).is_some_and(|next| next == range.start)
        {
            last.end = range.end;
        } else {
            ranges.push(range);
        }
        Ok(())
    }

    fn add_label(&mut self, name: &str, range: Range) -> Result<()> {
        let label = self.schema.dimension_label(name);
        let label =
            label.ok_or_else(|| Failure::new(format!("there is no dimension label '{name}'")))?;
        let index = label.dimension as usize;
        if let Some(fault) = fault(label.datatype, label.cell_val_num.is_var(), &range) {
            return Err(Failure::new(format!(
                "Cannot add label range to '{name}'; {fault}"
            )));
        }
        let taken = self
            .dimensions
            .get(index)
            .is_some_and(|ranges| !ranges.is_empty());
        if taken {
            return Err(Failure::new(
                "Cannot add label range; a range is already set on the dimension of this label",
            ));
        }
        match self.labels.get_mut(index) {
            Some(slot @ None) => *slot = Some((name.into(), vec![range])),
            Some(Some((known, ranges))) if known == name => ranges.push(range),
            _ => {
                return Err(
                    "Cannot add label range; another label of the dimension has ranges already"
                        .into(),
                );
            }
        }
        Ok(())
    }

    /// The ranges of a dimension as they count: the whole domain if none were set.
    fn effective(&self, index: usize) -> Result<Cow<'_, [Range]>> {
        let ranges = self
            .dimensions
            .get(index)
            .ok_or_else(|| Failure::new("Invalid dimension index"))?;
        // Ranges of labels become ranges of the dimension when the query is submitted.
        if !ranges.is_empty() || self.labels.get(index).is_some_and(Option::is_some) {
            return Ok(Cow::Borrowed(ranges));
        }
        let current = self
            .schema
            .current_domain
            .ranges()
            .and_then(|ranges| ranges.get(index));
        let domain = current.or(self.dimension(index)?.domain.as_ref());
        Ok(match domain {
            Some(domain) => Cow::Borrowed(std::slice::from_ref(domain)),
            None => Cow::Owned(vec![Range::default()]),
        })
    }

    fn range(&self, index: usize, at: u64) -> Result<Range> {
        let ranges = self.effective(index)?;
        let found = usize::try_from(at)
            .ok()
            .and_then(|at| ranges.get(at).cloned());
        found.ok_or_else(|| Failure::new("Cannot get range; Invalid range index"))
    }

    /// A range of a dimension of strings.
    fn var_range(&self, index: usize, at: u64) -> Result<Range> {
        let dimension = self.dimension(index)?;
        if !dimension.is_var() {
            return Err(Failure::new(format!(
                "Cannot get var range size; Dimension {} is not var sized",
                dimension.name
            )));
        }
        self.range(index, at)
    }

    fn label(&self, name: &str) -> Result<&[Range]> {
        let mut labels = self.labels.iter().flatten();
        let found = labels.find(|(known, _)| known == name);
        found.map(|(_, ranges)| ranges.as_slice()).ok_or_else(|| {
            Failure::new(format!("there are no ranges of a dimension label '{name}'"))
        })
    }

    /// Turns ranges of labels into ranges of their dimensions.
    pub fn resolve(&mut self) -> Result<()> {
        for (ranges, label) in self.dimensions.iter_mut().zip(&self.labels) {
            if let Some((name, labels)) = label
                && ranges.is_empty()
            {
                *ranges = self.array.array()?.label_ranges(name, labels)?;
            }
        }
        Ok(())
    }

    /// Whether some dimension has ranges of labels.
    pub fn has_labels(&self) -> bool {
        self.labels.iter().any(Option::is_some)
    }

    /// What the engine is to read.
    pub fn subarray(&self) -> Result<Subarray> {
        let mut resolved = self.clone();
        resolved.resolve()?;
        resolved.bound()?;
        let selection = |(index, mut ranges): (usize, Vec<Range>)| {
            if ranges.is_empty() {
                return DimSelection::All;
            }
            if self.schema.dimension(index).is_some_and(Dimension::is_var) {
                // To the engine a range of strings without an end is open; here it ends before it
                // starts, and holds nothing.
                ranges.retain(|range| range.start <= range.end);
            }
            DimSelection::Ranges(ranges)
        };
        Ok(Subarray::Box(
            resolved
                .dimensions
                .into_iter()
                .enumerate()
                .map(selection)
                .collect(),
        ))
    }

    /// Bounds ranges by a current domain that the array's schema was given after opening; the
    /// engine knows of one that was there before.
    fn bound(&mut self) -> Result<()> {
        if self.schema.current_domain == self.array.schema().current_domain {
            return Ok(());
        }
        let Some(current) = self.schema.current_domain.ranges() else {
            return Ok(());
        };
        for (index, bounds) in current.iter().enumerate() {
            let Some(ranges) = self.dimensions.get_mut(index) else {
                continue;
            };
            if bounds.start.is_empty() && bounds.end.is_empty() {
                // All strings.
                continue;
            }
            if ranges.is_empty() {
                ranges.push(bounds.clone());
                continue;
            }
            let Some(dimension) = self.schema.dimension(index) else {
                continue;
            };
            let less = |a: &[u8], b: &[u8]| compare(dimension.datatype, a, b) == Ordering::Less;
            let outside = |r: &Range| less(&r.start, &bounds.start) || less(&bounds.end, &r.end);
            if self.schema.is_dense() && ranges.iter().any(outside) {
                return Err("A range was set outside of the current domain.".into());
            }
            ranges.retain(|r| !less(&r.end, &bounds.start) && !less(&bounds.end, &r.start));
            if ranges.is_empty() {
                return Err("All ranges lie outside of the current domain.".into());
            }
            for range in ranges {
                if less(&range.start, &bounds.start) {
                    range.start.clone_from(&bounds.start);
                }
                if less(&bounds.end, &range.end) {
                    range.end.clone_from(&bounds.end);
                }
            }
        }
        Ok(())
    }

    /// One range for each dimension, for writing; an error if some dimension has more.
    pub fn single(&self) -> Result<Vec<Range>> {
        (0..self.dimensions.len())
            .map(|index| match &*self.effective(index)? {
                [range] => Ok(range.clone()),
                _ => Err("Write failed: multi-range dense writes are not supported".into()),
            })
            .collect()
    }

    /// The ranges of each dimension as they count, and whether none were set.
    pub fn content(&self) -> Result<Vec<(Vec<Range>, bool)>> {
        let of = |index: usize| {
            let set = self
                .dimensions
                .get(index)
                .is_some_and(|ranges| !ranges.is_empty());
            Ok((self.effective(index)?.into_owned(), !set))
        };
        (0..self.dimensions.len()).map(of).collect()
    }

    /// Takes over the ranges of a message; `None` for a dimension of which all is meant.
    pub fn tell(&mut self, ranges: Vec<Option<Vec<Range>>>, coalesce: bool) -> Result<()> {
        if ranges.len() != self.dimensions.len() {
            return Err(
                "Cannot deserialize; a subarray has other dimensions than its array".into(),
            );
        }
        self.coalesce = false;
        self.dimensions.iter_mut().for_each(Vec::clear);
        for (index, ranges) in ranges.into_iter().enumerate() {
            for range in ranges.into_iter().flatten() {
                self.add(index, range)?;
            }
        }
        self.coalesce = coalesce;
        Ok(())
    }

    /// Labels with ranges of their values, by dimension.
    pub fn labels(&self) -> impl Iterator<Item = (usize, &str, &[Range])> {
        let labels = self.labels.iter().enumerate();
        labels.filter_map(|(index, label)| {
            label
                .as_ref()
                .map(|(name, ranges)| (index, name.as_str(), ranges.as_slice()))
        })
    }

    /// Adds a range of a label's values.
    pub fn tell_label(&mut self, name: &str, range: Range) -> Result<()> {
        self.add_label(name, range)
    }

    /// Whether neighbouring ranges become one.
    pub fn coalesces(&self) -> bool {
        self.coalesce
    }

    /// Whether no range was set.
    pub fn is_default(&self) -> bool {
        self.dimensions.iter().all(Vec::is_empty) && self.labels.iter().all(Option::is_none)
    }

    /// The number of combinations of ranges.
    pub fn range_num(&self) -> u64 {
        self.dimensions
            .iter()
            .map(|ranges| ranges.len().max(1) as u64)
            .product()
    }
}

/// Two bounds of a fixed-size dimension or label.
fn fixed(size: Option<usize>, start: &Bytes, end: &Bytes, stride: &Bytes) -> Result<Range> {
    if !stride.is_null() {
        return Err("Cannot add range; Setting range stride is currently unsupported".into());
    }
    let size = size.ok_or_else(|| Failure::new("Cannot add range; Range must be fixed-sized"))?;
    if start.is_null() || end.is_null() {
        return Err("Cannot add range; Invalid range".into());
    }
    Ok(Range::new(start.get(size)?, end.get(size)?))
}

fn variable(
    is_var: bool,
    start: &Bytes,
    start_size: u64,
    end: &Bytes,
    end_size: u64,
) -> Result<Range> {
    if !is_var {
        return Err("Cannot add range; Range must be variable-sized".into());
    }
    Ok(Range::new(start.get64(start_size)?, end.get64(end_size)?))
}

fn give_range(keep: &Keep, range: &Range, start: &Out<Pointer>, end: &Out<Pointer>) -> Result<()> {
    start.set(keep.bytes(&range.start))?;
    end.set(keep.bytes(&range.end))
}

capi! {
    /// All of an open array's domain.
    fn tiledb_subarray_alloc(ctx, array: In<ArrayHandle>, subarray: Out<Ptr<SubarrayHandle>>) {
        let open = array.get()?.open()?;
        // Ranges outside of the domain are errors until settings of its own say otherwise.
        subarray.give(SubarrayHandle::new(Ranges::new(&open, true, Some("error"))?))?;
    }

    /// Settings of its own.
    fn tiledb_subarray_set_config(ctx, subarray: In<SubarrayHandle>, config: In<Config>) {
        let settings = config.get()?.settings();
        lock(&subarray.get()?.state).strict = strict(settings.get("sm.read_range_oob").as_deref())?;
    }

    /// Whether neighbouring ranges become one.
    fn tiledb_subarray_set_coalesce_ranges(ctx, subarray: In<SubarrayHandle>, coalesce: i32) {
        let mut state = lock(&subarray.get()?.state);
        if !state.is_default() {
            return Err("non-default ranges have been set, cannot change coalesce_ranges setting!".into());
        }
        state.coalesce = coalesce != 0;
    }

    /// One range for each dimension, as pairs of values, in place of those that were set, of labels
    /// too; null for all of the domain.
    fn tiledb_subarray_set_subarray(ctx, subarray: In<SubarrayHandle>, values: Bytes) {
        let mut state = lock(&subarray.get()?.state);
        let dimensions = state.schema.domain.dimensions.clone();
        let first = dimensions.first().map(|d| d.datatype);
        if dimensions.iter().any(|d| d.is_var() || Some(d.datatype) != first) {
            return Err("Cannot set subarray; Function not applicable to heterogeneous or variable-sized domains".into());
        }
        let total: usize = dimensions.iter().filter_map(Dimension::coord_size).map(|size| 2 * size).sum();
        let mut rest = if values.is_null() { None } else { Some(values.get(total)?) };
        state.dimensions.iter_mut().for_each(Vec::clear);
        state.labels.fill(None);
        for (index, size) in dimensions.iter().filter_map(Dimension::coord_size).enumerate() {
            let Some((range, more)) = rest.and_then(|rest| rest.split_at_checked(2 * size)) else {
                break;
            };
            let (start, end) = range.split_at(size);
            state.add(index, Range::new(start, end))?;
            rest = Some(more);
        }
    }

    /// Adds a range of a fixed-size dimension.
    fn tiledb_subarray_add_range(ctx, subarray: In<SubarrayHandle>, index: u32, start: Bytes, end: Bytes, stride: Bytes) {
        let mut state = lock(&subarray.get()?.state);
        let range = fixed(state.dimension(index as usize)?.coord_size(), &start, &end, &stride)?;
        state.add(index as usize, range)?;
    }

    /// Adds a range of a fixed-size dimension by its name.
    fn tiledb_subarray_add_range_by_name(
        ctx, subarray: In<SubarrayHandle>, name: Text, start: Bytes, end: Bytes, stride: Bytes
    ) {
        let mut state = lock(&subarray.get()?.state);
        let index = state.index_of(name.get()?)?;
        let range = fixed(state.dimension(index)?.coord_size(), &start, &end, &stride)?;
        state.add(index, range)?;
    }

    /// Adds a range of a string dimension.
    fn tiledb_subarray_add_range_var(
        ctx, subarray: In<SubarrayHandle>, index: u32, start: Bytes, start_size: u64, end: Bytes, end_size: u64
    ) {
        let mut state = lock(&subarray.get()?.state);
        let range = variable(state.dimension(index as usize)?.is_var(), &start, start_size, &end, end_size)?;
        state.add(index as usize, range)?;
    }

    /// Adds a range of a string dimension by its name.
    fn tiledb_subarray_add_range_var_by_name(
        ctx, subarray: In<SubarrayHandle>, name: Text, start: Bytes, start_size: u64, end: Bytes, end_size: u64
    ) {
        let mut state = lock(&subarray.get()?.state);
        let index = state.index_of(name.get()?)?;
        let range = variable(state.dimension(index)?.is_var(), &start, start_size, &end, end_size)?;
        state.add(index, range)?;
    }

    /// Adds single coordinates of a fixed-size dimension.
    fn tiledb_subarray_add_point_ranges(ctx, subarray: In<SubarrayHandle>, index: u32, start: Bytes, count: u64) {
        let mut state = lock(&subarray.get()?.state);
        let size = state.dimension(index as usize)?.coord_size();
        let size = size.ok_or_else(|| Failure::new("Cannot add range; Range must be fixed-sized"))?;
        let total = count.checked_mul(size as u64).ok_or_else(|| Failure::new("too many points"))?;
        for point in start.get64(total)?.chunks_exact(size) {
            state.add(index as usize, Range::new(point, point))?;
        }
    }

    /// Adds single coordinates of a string dimension.
    fn tiledb_subarray_add_point_ranges_var(
        ctx, subarray: In<SubarrayHandle>, index: u32, start: Bytes, start_size: u64, offsets: Bytes, offsets_num: u64
    ) {
        let mut state = lock(&subarray.get()?.state);
        if !state.dimension(index as usize)?.is_var() {
            return Err("Cannot add range; Range must be variable-sized".into());
        }
        let data = start.get64(start_size)?;
        let starts = offsets.get_u64s(offsets_num)?;
        let ends = starts.iter().skip(1).copied().chain([start_size]);
        for (start, end) in starts.iter().zip(ends) {
            let point = data.get(usize::try_from(*start).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX));
            let point = point.ok_or_else(|| Failure::new("the offsets of point ranges leave the data"))?;
            state.add(index as usize, Range::new(point, point))?;
        }
    }

    /// The number of ranges of a dimension.
    fn tiledb_subarray_get_range_num(ctx, subarray: In<SubarrayHandle>, index: u32, num: Out<u64>) {
        num.set(lock(&subarray.get()?.state).effective(index as usize)?.len() as u64)?;
    }

    /// The number of ranges of a dimension by its name.
    fn tiledb_subarray_get_range_num_from_name(ctx, subarray: In<SubarrayHandle>, name: Text, num: Out<u64>) {
        let ranges = lock(&subarray.get()?.state);
        num.set(ranges.effective(ranges.index_of(name.get()?)?)?.len() as u64)?;
    }

    /// A range of a fixed-size dimension; the bounds live as long as the handle.
    fn tiledb_subarray_get_range(
        ctx, subarray: In<SubarrayHandle>, index: u32, at: u64, start: Out<Pointer>, end: Out<Pointer>, stride: Out<Pointer>
    ) {
        let handle = subarray.get()?;
        give_range(&handle.keep, &lock(&handle.state).range(index as usize, at)?, &start, &end)?;
        stride.set_if(Pointer::default());
    }

    /// A range of a fixed-size dimension by its name.
    fn tiledb_subarray_get_range_from_name(
        ctx, subarray: In<SubarrayHandle>, name: Text, at: u64, start: Out<Pointer>, end: Out<Pointer>, stride: Out<Pointer>
    ) {
        let handle = subarray.get()?;
        let ranges = lock(&handle.state);
        give_range(&handle.keep, &ranges.range(ranges.index_of(name.get()?)?, at)?, &start, &end)?;
        stride.set_if(Pointer::default());
    }

    /// Sizes of the bounds of a range of a string dimension.
    fn tiledb_subarray_get_range_var_size(
        ctx, subarray: In<SubarrayHandle>, index: u32, at: u64, start_size: Out<u64>, end_size: Out<u64>
    ) {
        let range = lock(&subarray.get()?.state).var_range(index as usize, at)?;
        start_size.set(range.start.len() as u64)?;
        end_size.set(range.end.len() as u64)?;
    }

    /// Sizes of the bounds of a range of a string dimension by its name.
    fn tiledb_subarray_get_range_var_size_from_name(
        ctx, subarray: In<SubarrayHandle>, name: Text, at: u64, start_size: Out<u64>, end_size: Out<u64>
    ) {
        let ranges = lock(&subarray.get()?.state);
        let range = ranges.var_range(ranges.index_of(name.get()?)?, at)?;
        start_size.set(range.start.len() as u64)?;
        end_size.set(range.end.len() as u64)?;
    }

    /// The bounds of a range of a string dimension, into memory of the caller's.
    fn tiledb_subarray_get_range_var(ctx, subarray: In<SubarrayHandle>, index: u32, at: u64, start: OutBytes, end: OutBytes) {
        let range = lock(&subarray.get()?.state).var_range(index as usize, at)?;
        start.write(&range.start)?;
        end.write(&range.end)?;
    }

    /// The bounds of a range of a string dimension by its name, into memory of the caller's.
    fn tiledb_subarray_get_range_var_from_name(
        ctx, subarray: In<SubarrayHandle>, name: Text, at: u64, start: OutBytes, end: OutBytes
    ) {
        let ranges = lock(&subarray.get()?.state);
        let range = ranges.var_range(ranges.index_of(name.get()?)?, at)?;
        start.write(&range.start)?;
        end.write(&range.end)?;
    }

    /// Adds a range of labels of fixed size.
    fn tiledb_subarray_add_label_range(
        ctx, subarray: In<SubarrayHandle>, name: Text, start: Bytes, end: Bytes, stride: Bytes
    ) {
        let mut state = lock(&subarray.get()?.state);
        let name = name.get()?;
        let label = state.schema.dimension_label(name);
        let label = label.ok_or_else(|| Failure::new(format!("there is no dimension label '{name}'")))?;
        let range = fixed(label.cell_val_num.cell_size(label.datatype), &start, &end, &stride)?;
        state.add_label(name, range)?;
    }

    /// Adds a range of string labels.
    fn tiledb_subarray_add_label_range_var(
        ctx, subarray: In<SubarrayHandle>, name: Text, start: Bytes, start_size: u64, end: Bytes, end_size: u64
    ) {
        let mut state = lock(&subarray.get()?.state);
        let name = name.get()?;
        let label = state.schema.dimension_label(name);
        let label = label.ok_or_else(|| Failure::new(format!("there is no dimension label '{name}'")))?;
        let range = variable(label.cell_val_num.is_var(), &start, start_size, &end, end_size)?;
        state.add_label(name, range)?;
    }

    /// The label that a dimension's ranges are of.
    fn tiledb_subarray_get_label_name(ctx, subarray: In<SubarrayHandle>, index: u32, name: Out<Str>) {
        let handle = subarray.get()?;
        let ranges = lock(&handle.state);
        let Some(Some((label, _))) = ranges.labels.get(index as usize) else {
            return Err("the dimension has no ranges of labels".into());
        };
        name.set(handle.keep.text(label))?;
    }

    /// Whether a dimension has ranges of labels.
    fn tiledb_subarray_has_label_ranges(ctx, subarray: In<SubarrayHandle>, index: u32, has: Out<i32>) {
        has.set(lock(&subarray.get()?.state).labels.get(index as usize).is_some_and(Option::is_some).into())?;
    }

    /// The number of ranges of a label.
    fn tiledb_subarray_get_label_range_num(ctx, subarray: In<SubarrayHandle>, name: Text, num: Out<u64>) {
        let (ranges, name) = (lock(&subarray.get()?.state), name.get()?);
        let found = match ranges.schema.dimension_label(name) {
            // A label that no range was added to has none.
            Some(_) => ranges.label(name).map_or(0, <[Range]>::len),
            None => ranges.label(name)?.len(),
        };
        num.set(found as u64)?;
    }

    /// A range of labels of fixed size; the bounds live as long as the handle.
    fn tiledb_subarray_get_label_range(
        ctx, subarray: In<SubarrayHandle>, name: Text, at: u64, start: Out<Pointer>, end: Out<Pointer>, stride: Out<Pointer>
    ) {
        let handle = subarray.get()?;
        let ranges = lock(&handle.state);
        give_range(&handle.keep, label_range(&ranges, name.get()?, at)?, &start, &end)?;
        stride.set_if(Pointer::default());
    }

    /// Sizes of the bounds of a range of string labels.
    fn tiledb_subarray_get_label_range_var_size(
        ctx, subarray: In<SubarrayHandle>, name: Text, at: u64, start_size: Out<u64>, end_size: Out<u64>
    ) {
        let ranges = lock(&subarray.get()?.state);
        let range = label_range(&ranges, name.get()?, at)?;
        start_size.set(range.start.len() as u64)?;
        end_size.set(range.end.len() as u64)?;
    }

    /// The bounds of a range of string labels, into memory of the caller's.
    fn tiledb_subarray_get_label_range_var(
        ctx, subarray: In<SubarrayHandle>, name: Text, at: u64, start: OutBytes, end: OutBytes
    ) {
        let ranges = lock(&subarray.get()?.state);
        let range = label_range(&ranges, name.get()?, at)?;
        start.write(&range.start)?;
        end.write(&range.end)?;
    }
}

fn label_range<'a>(ranges: &'a Ranges, name: &str, at: u64) -> Result<&'a Range> {
    let found = usize::try_from(at)
        .ok()
        .and_then(|at| ranges.label(name).ok()?.get(at));
    found.ok_or_else(|| {
        Failure::new(format!(
            "there is no range {at} of a dimension label '{name}'"
        ))
    })
}

capi_free! {
    fn tiledb_subarray_free(SubarrayHandle);
}
