//! From the selection's arguments to what the engine reads.

mod label;
mod points;
pub mod range_text;

use crate::args::{CellArgs, OrderArg, SelectionArgs};
use crate::error::{CliError, Result};
use azulejo::Array;
use azulejo::format::schema::{Dimension, FieldIndex, Layout, shown_names};
use azulejo::format::{ArraySchema, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::space::{DimSelection, Subarray};
use range_text::{RangeText, parse_range};

/// What to read, and what is known of the result beforehand.
#[derive(Debug, Clone)]
pub struct Selection {
    /// For the engine; `None` if nothing was ever written and so nothing is selected.
    pub options: Option<ReadOptions>,
    /// The columns, in order.
    pub fields: Vec<String>,
    /// No more cells than this.
    pub limit: Option<u64>,
    /// Dense arrays, box selections: the number of coordinates along each dimension.
    pub shape: Option<Vec<u64>>,
}

impl Selection {
    /// Cells of the result, where that is known before reading.
    pub fn cell_num(&self) -> Option<u64> {
        let all = self
            .shape
            .as_ref()?
            .iter()
            .try_fold(1u64, |n, &d| n.checked_mul(d))?;
        Some(self.limit.map_or(all, |limit| all.min(limit)))
    }
}

/// Whether dimensions come before the attributes where the arguments do not name columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coordinates {
    /// For sparse arrays only.
    Sparse,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Turns arguments into a selection of `array`'s cells.
pub fn select(array: &Array, args: &SelectionArgs, coordinates: Coordinates) -> Result<Selection> {
    let schema = array.schema();
    let named = args.attrs.as_deref().map(|parts| names_of(schema, parts));
    let fields = fields(array, named.as_deref(), coordinates)?;
    let mut shape = None;
    let subarray = match &args.cells.points {
        Some(file) => Some(Subarray::Points(points::read(schema, file)?)),
        None => {
            let selections = box_selection(array, &args.cells)?;
            if let (true, Some(selections)) = (schema.is_dense(), &selections) {
                shape = Some(box_shape(&schema.domain.dimensions, selections)?);
            }
            selections.map(Subarray::Box)
        }
    };
    let options = match subarray {
        None => None,
        Some(subarray) => {
            let mut options = ReadOptions::new()
                .subarray(subarray)
                .fields(fields.clone())
                .layout(layout(array, args.order.unwrap_or_default())?);
            if let Some(text) = &args.cells.condition {
                options = options.condition(array.condition(text)?);
            }
            Some(options)
        }
    };
    Ok(Selection {
        options,
        fields,
        limit: args.limit,
        shape,
    })
}

fn layout(array: &Array, order: OrderArg) -> Result<Layout> {
    Ok(match order {
        OrderArg::Row => Layout::RowMajor,
        OrderArg::Col => Layout::ColMajor,
        OrderArg::Global => Layout::Global,
        // Dense cells have an order whatever one asks for.
        OrderArg::Unordered if array.schema().is_dense() => Layout::RowMajor,
        OrderArg::Unordered => Layout::Unordered,
    })
}

/// The fields that a list names which was cut at its commas.
pub fn names_of(schema: &ArraySchema, parts: &[String]) -> Vec<String> {
    names_among(parts, |name| schema.field(name).is_some())
}

/// The names in a list that was cut at its commas: what is not known by itself and is with what
/// follows has commas in its name.
pub fn names_among(parts: &[String], is_known: impl Fn(&str) -> bool) -> Vec<String> {
    let mut names = Vec::new();
    let mut left = parts;
    while let Some((first, others)) = left.split_first() {
        let here = left;
        let starts = (1..=here.len()).map(move |len| here.split_at(len));
        let mut joined = starts.map(|(start, rest)| (start.join(","), rest));
        let found = joined.find(|(name, _)| is_known(name));
        let (name, rest) = found.unwrap_or_else(|| (first.clone(), others));
        names.push(name);
        left = rest;
    }
    names
}

/// The columns: as named, otherwise dimensions (if wanted) and attributes.
fn fields(
    array: &Array,
    named: Option<&[String]>,
    coordinates: Coordinates,
) -> Result<Vec<String>> {
    let schema = array.schema();
    let mut dimensions: Vec<String> = schema
        .domain
        .dimensions
        .iter()
        .map(|d| d.name.clone())
        .collect();
    let mut attributes: Vec<String> = schema.attributes.iter().map(|a| a.name.clone()).collect();
    if let Some(named) = named {
        for name in named {
            if schema.field(name).is_none() {
                return Err(CliError::usage(format!(
                    "there is no attribute or dimension {name:?}; the attributes are {}, the dimensions {}",
                    shown_names(attributes.iter().map(String::as_str)),
                    dimensions.join(", ")
                )));
            }
        }
        if named
            .iter()
            .any(|name| matches!(schema.field(name), Some(FieldIndex::Dimension(_))))
        {
            return Ok(named.to_vec());
        }
        attributes = named.to_vec();
    }
    let with_dimensions = match coordinates {
        Coordinates::Always => true,
        Coordinates::Never => false,
        Coordinates::Sparse => !schema.is_dense(),
    };
    if !with_dimensions {
        dimensions.clear();
    }
    dimensions.extend(attributes);
    Ok(dimensions)
}

/// A selection per dimension; `None` if all is meant and nothing was ever written.
fn box_selection(array: &Array, args: &CellArgs) -> Result<Option<Vec<DimSelection>>> {
    let schema = array.schema();
    let dimensions = &schema.domain.dimensions;
    let mut ranges: Vec<Vec<Range>> = vec![Vec::new(); dimensions.len()];
    let mut given = vec![false; dimensions.len()];
    let written = if schema.is_dense() {
        written_within(array)?
    } else {
        None
    };
    for argument in &args.range {
        let (name, text) = split_assignment(argument, "--range", "DIM=LO:HI")?;
        if let Some(at) = dimensions.iter().position(|d| d.name == name) {
            let dimension = &dimensions[at];
            let range = parse_range(dimension.datatype, text)
                .map_err(|reason| CliError::usage(format!("--range {argument}: {reason}")))?;
            let from_first = range.low.as_ref().is_none_or(Vec::is_empty);
            if dimension.is_var() && from_first && range.high.is_none() {
                // All strings, which is no range: one without bounds holds the empty string.
                continue;
            }
            ranges[at].push(close(dimension, at, range, written.as_ref(), argument)?);
            given[at] = true;
        } else if let Some(label) = schema.dimension_label(name) {
            let at = label.dimension as usize;
            let found = label::ranges(array, label, text).map_err(|e| match e {
                CliError::Usage(reason) => CliError::usage(format!("--range {argument}: {reason}")),
                other => other,
            })?;
            if let Some(slot) = ranges.get_mut(at) {
                slot.extend(found);
                given[at] = true;
            }
        } else {
            return Err(no_dimension(array, name));
        }
    }
    for argument in &args.nearest {
        let (name, text) = split_assignment(argument, "--nearest", "LABEL=VALUE")?;
        let label = schema
            .dimension_label(name)
            .ok_or_else(|| no_dimension(array, name))?;
        let found = label::nearest(array, label, text).map_err(|e| match e {
            CliError::Usage(reason) => CliError::usage(format!("--nearest {argument}: {reason}")),
            other => other,
        })?;
        let at = label.dimension as usize;
        if let Some(slot) = ranges.get_mut(at) {
            slot.push(found);
            given[at] = true;
        }
    }
    let mut steps: Vec<Option<u64>> = vec![None; dimensions.len()];
    for argument in &args.step {
        let (name, text) = split_assignment(argument, "--step", "DIM=N")?;
        let at = dimensions
            .iter()
            .position(|d| d.name == name)
            .ok_or_else(|| no_dimension(array, name))?;
        let step = text.parse::<u64>().ok().filter(|&n| n > 0);
        let step = step.ok_or_else(|| {
            CliError::usage(format!("--step {argument}: N must be a number from 1"))
        })?;
        if steps[at].replace(step).is_some() {
            return Err(CliError::usage(format!("--step {name}: it is given twice")));
        }
    }
    if given.iter().all(|g| !g) && schema.is_dense() && written.is_none() {
        return Ok(None);
    }
    if given
        .iter()
        .zip(&ranges)
        .any(|(&given, ranges)| given && ranges.is_empty())
    {
        // Labels that match nothing.
        return Ok(None);
    }
    let mut selections = Vec::with_capacity(dimensions.len());
    for (at, (dimension, ranges)) in dimensions.iter().zip(ranges).enumerate() {
        let ranges = match (ranges.is_empty(), &written) {
            (true, Some(written)) => written.ranges.get(at).cloned().into_iter().collect(),
            _ => ranges,
        };
        selections.push(match steps[at] {
            None | Some(1) if ranges.is_empty() => DimSelection::All,
            None | Some(1) => DimSelection::Ranges(ranges),
            Some(step) => DimSelection::Strided {
                range: only_range(array, dimension, at, ranges)?,
                step,
            },
        });
    }
    Ok(Some(selections))
}

/// The box around what was written, within the domain: fragments of an array that was written over a
/// larger one leave it.
fn written_within(array: &Array) -> Result<Option<NdRectangle>> {
    let Some(written) = array.non_empty_domain()? else {
        return Ok(None);
    };
    let dimensions = &array.schema().domain.dimensions;
    let within = dimensions
        .iter()
        .zip(written.ranges)
        .map(|(dimension, range)| {
            let Some(axis) = dimension.axis() else {
                return Some(range);
            };
            let (first, last) = axis.offsets_of(&range)?;
            Some(Range::new(axis.coordinate(first), axis.coordinate(last)))
        });
    let ranges = within.collect::<Option<Vec<Range>>>();
    Ok(ranges.map(|ranges| NdRectangle { ranges }))
}

/// The one range that a step goes through.
fn only_range(
    array: &Array,
    dimension: &Dimension,
    at: usize,
    ranges: Vec<Range>,
) -> Result<Range> {
    let name = &dimension.name;
    let mut ranges = ranges.into_iter();
    match (ranges.next(), ranges.next()) {
        (Some(range), None) => Ok(range),
        (Some(_), Some(_)) => Err(CliError::usage(format!(
            "--step {name}: needs a single --range of {name}"
        ))),
        _ => {
            let written = written_within(array)?.and_then(|r| r.ranges.into_iter().nth(at));
            (written.or_else(|| dimension.domain.clone())).ok_or_else(|| {
                CliError::usage(format!("--step {name}: needs a --range of {name} too"))
            })
        }
    }
}

/// Replaces missing bounds: by what was written (dense), else by the domain's; strings stay open.
fn close(
    dimension: &Dimension,
    at: usize,
    text: RangeText,
    written: Option<&NdRectangle>,
    argument: &str,
) -> Result<Range> {
    let outer = written
        .and_then(|w| w.ranges.get(at))
        .or(dimension.domain.as_ref());
    let open =
        |bound: fn(&Range) -> &Vec<u8>| outer.map_or_else(Vec::new, |range| bound(range).clone());
    let low_given = text.low.is_some();
    let high_given = text.high.is_some();
    let start = text.low.unwrap_or_else(|| open(|r| &r.start));
    let end = text.high.unwrap_or_else(|| open(|r| &r.end));
    let unbounded = dimension.cell_val_num.is_var() && (!low_given || !high_given);
    if !unbounded && azulejo::format::range::compare(dimension.datatype, &start, &end).is_gt() {
        let show = |bytes: &[u8]| crate::value::text(dimension.datatype, bytes);
        return Err(CliError::usage(if low_given && high_given {
            format!(
                "--range {argument}: {} lies above {}",
                show(&start),
                show(&end)
            )
        } else {
            let (from, to) =
                outer.map_or_else(Default::default, |r| (show(&r.start), show(&r.end)));
            format!(
                "--range {argument}: nothing lies there; {:?} goes from {from} to {to}",
                dimension.name
            )
        }));
    }
    Ok(Range { start, end })
}

/// How many coordinates are selected along each dimension of a dense array.
fn box_shape(dimensions: &[Dimension], selections: &[DimSelection]) -> Result<Vec<u64>> {
    let count = |dimension: &Dimension, range: &Range| -> Result<u64> {
        let inside = dimension
            .domain
            .as_ref()
            .is_some_and(|domain| domain.as_ref().contains(range.as_ref(), dimension.datatype));
        let axis = dimension.axis().filter(|_| inside);
        let offsets = axis.as_ref().and_then(|axis| axis.offsets_of(range));
        let Some((first, last)) = offsets else {
            let show = |bytes: &[u8]| crate::value::text(dimension.datatype, bytes);
            let domain = dimension.domain.as_ref().map_or_else(String::new, |d| {
                format!(" from {} to {}", show(&d.start), show(&d.end))
            });
            return Err(CliError::usage(format!(
                "{} to {} lies outside the domain of {:?}{domain}",
                show(&range.start),
                show(&range.end),
                dimension.name
            )));
        };
        Ok((last - first).saturating_add(1))
    };
    (dimensions.iter().zip(selections))
        .map(|(dimension, selection)| match selection {
            DimSelection::All => dimension
                .domain
                .as_ref()
                .map_or(Ok(0), |domain| count(dimension, domain)),
            DimSelection::Ranges(ranges) => ranges.iter().try_fold(0u64, |n, range| {
                Ok(n.saturating_add(count(dimension, range)?))
            }),
            DimSelection::Strided { range, step } => Ok(count(dimension, range)?.div_ceil(*step)),
        })
        .collect()
}

fn split_assignment<'a>(argument: &'a str, option: &str, form: &str) -> Result<(&'a str, &'a str)> {
    argument
        .split_once('=')
        .ok_or_else(|| CliError::usage(format!("{option} {argument}: write {option} {form}")))
}

fn no_dimension(array: &Array, name: &str) -> CliError {
    let schema = array.schema();
    let mut names: Vec<&str> = schema
        .domain
        .dimensions
        .iter()
        .map(|d| d.name.as_str())
        .collect();
    names.extend(schema.dimension_labels.iter().map(|l| l.name.as_str()));
    CliError::usage(format!(
        "there is no dimension {name:?}; there are {}",
        names.join(", ")
    ))
}
