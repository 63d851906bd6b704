//! Variables of a file added behind those of a dataset that is there.

use super::dataset::{ATTRIBUTE, EMPTY_DIMS, Plan, Variable, write_options};
use crate::error::{CliError, Result};
use crate::session::Session;
use azulejo::Array;
use azulejo::array::ArrayHold;
use azulejo::format::schema::SchemaEvolution;
use azulejo::format::{NdRectangle, Range};
use std::collections::{BTreeMap, BTreeSet};

/// Attributes of variables that say what stored numbers mean: those of both must be the same.
const MEANINGS: [&str; 6] = [
    "units",
    "calendar",
    "scale_factor",
    "add_offset",
    "_FillValue",
    "_Unsigned",
];

/// A variable, and the array that it goes into.
struct Part<'a> {
    variable: &'a Variable,
    uri: String,
    array: Array,
    /// The dimension that grows, and where the new cells begin along it.
    axis: usize,
    first: u64,
}

/// What is added, and where; checked before anything is written. Until then nobody else adds to the
/// same arrays.
pub struct Append<'a> {
    parts: Vec<Part<'a>>,
    /// By URI.
    holds: BTreeMap<String, ArrayHold>,
}

impl<'a> Append<'a> {
    /// Prepares to add the variables of a plan behind the end of a dimension of what lies at `uri`
    /// (of a single array, behind the end of its first, unless another is named). Variables
    /// without that dimension stay as they are.
    ///
    /// # Errors
    /// Variables that are missing on either side, or of other types, dimensions, sizes or meanings.
    pub fn new(session: &Session, plan: &'a Plan, uri: &str, dim: Option<&str>) -> Result<Self> {
        let root = uri.trim_end_matches('/');
        if plan.groups.len() > 1 {
            return Err(CliError::usage(
                "--append: groups in groups are appended one by one: import each into its own",
            ));
        }
        let mut places = BTreeMap::new();
        if plan.groups.is_empty() {
            places.insert(String::new(), root.to_owned());
        } else {
            let group = session.context.group(root).open()?;
            let members = group.members().iter();
            places.extend(members.map(|m| (m.key().to_owned(), m.location.clone())));
        }
        let first = plan.variables.first().filter(|_| plan.groups.is_empty());
        let own = first.and_then(|v| v.array.schema.domain.dimensions.first());
        let Some(dim) = dim.or(own.map(|dimension| dimension.name.as_str())) else {
            return Err(CliError::usage(
                "--append: say along which dimension: --append-dim DIM",
            ));
        };
        let (mut found, mut holds) = (Vec::new(), BTreeMap::new());
        for variable in &plan.variables {
            let name = &variable.path;
            let place = places.remove(name).ok_or_else(|| {
                CliError::usage(format!("{root} has no variable {name:?} to append to"))
            })?;
            if let Some(axis) = variable.array.schema.domain.index_of(dim) {
                found.push((variable, place, axis));
            }
        }
        // Everybody takes them in this order.
        let uris: BTreeSet<&String> = found.iter().map(|(_, place, _)| place).collect();
        for uri in uris {
            holds.insert(uri.clone(), session.context.array(uri).hold()?);
        }
        let mut parts = Vec::new();
        for (variable, place, axis) in found {
            let name = &variable.path;
            let array = session.context.array(&place).open()?;
            let said = |reason: String| CliError::usage(format!("--append: {name:?}: {reason}"));
            let first = compare(variable, &array, axis).map_err(said)?;
            parts.push(Part {
                variable,
                uri: place,
                array,
                axis,
                first,
            });
        }
        if parts.is_empty() {
            return Err(CliError::usage(format!(
                "--append: no variable has the dimension {dim:?}"
            )));
        }
        for (name, place) in places {
            let array = session.context.array(&place).open();
            if array.is_ok_and(|array| array.schema().domain.index_of(dim).is_some()) {
                return Err(CliError::usage(format!(
                    "--append: {name:?} of {root} has the dimension {dim:?}, and the file has no such variable"
                )));
            }
        }
        let first = parts.first().map_or(0, |part| part.first);
        match parts.iter().all(|part| part.first == first) {
            true => Ok(Self { parts, holds }),
            false => Err(CliError::usage(format!(
                "--append: the variables of {root} end at different places along {dim:?}"
            ))),
        }
    }

    /// How many arrays get cells.
    pub fn arrays(&self) -> usize {
        self.parts.len()
    }

    /// Writes; the number of cells. They count when all of them are there.
    pub fn write(self, session: &Session, at: Option<u64>) -> Result<u64> {
        let total = self.parts.iter().map(|part| part.variable.cells()).sum();
        let progress = session.progress(Some(total));
        let (mut written, mut done) = (Vec::new(), 0);
        let result = self.parts.iter().try_for_each(|part| {
            let (options, behind) = (write_options(at).uncommitted(), (part.axis, part.first));
            let write =
                |done| (part.variable).write(session, &part.uri, options, Some(behind), done);
            let names = write(&mut |cells| {
                done += cells;
                progress.advance(done, done, "importing");
            })?;
            written.push((&part.uri, names));
            Ok(())
        });
        // First all cells, then all sizes: a dataset is as long as the shortest of its arrays.
        let result = result.and_then(|()| {
            written.iter().try_for_each(|(uri, names)| {
                let hold = self.holds.get(*uri);
                hold.map_or(Ok(()), |hold| Ok(hold.commit_fragments(names)?))
            })
        });
        if let Err(error) = result {
            drop(self.holds);
            for (uri, names) in &written {
                // What counts already lies beyond the end, and is written over by the next append.
                let _ = session.context.array(uri).discard_fragments(names);
            }
            return Err(error);
        }
        for part in &self.parts {
            if let Some(hold) = self.holds.get(&part.uri) {
                part.grow(hold, at)?;
            }
        }
        Ok(total)
    }
}

impl Part<'_> {
    fn grow(&self, hold: &ArrayHold, at: Option<u64>) -> Result<()> {
        let Some(current) = self
            .array
            .current_domain()
            .filter(|_| self.variable.cells() > 0)
        else {
            return Ok(());
        };
        let mut ranges = current.ranges.clone();
        let size = sizes(&self.variable.array.schema).get(self.axis).copied();
        let (Some(range), Some(size)) = (ranges.get_mut(self.axis), size) else {
            return Ok(());
        };
        *range = Range::of(0i64, (self.first + size - 1) as i64);
        let evolution = SchemaEvolution {
            expand_current_domain: Some(NdRectangle { ranges }),
            ..SchemaEvolution::default()
        };
        Ok(hold.evolve(&evolution, at)?)
    }
}

/// Lengths of the axes of an array of ours: its current domain begins at 0.
fn sizes(schema: &azulejo::format::schema::ArraySchema) -> Vec<u64> {
    let ranges = schema.current_domain.ranges().unwrap_or_default();
    let last = ranges.iter().map(|range| range.end.as_slice().try_into());
    last.map(|end| end.map_or(0, |end| i64::from_le_bytes(end).unsigned_abs() + 1))
        .collect()
}

/// Where the cells of a variable begin along an axis of the array that they go into.
fn compare(variable: &Variable, array: &Array, axis: usize) -> Result<u64, String> {
    let (new, old) = (&variable.array.schema, array.schema());
    let names = |schema: &azulejo::format::schema::ArraySchema| -> Vec<String> {
        let dimensions = schema.domain.dimensions.iter();
        dimensions.map(|dimension| dimension.name.clone()).collect()
    };
    if names(new) != names(old) || !old.is_dense() {
        return Err(format!(
            "its dimensions are {}, and those that are there {}",
            names(new).join(", "),
            names(old).join(", ")
        ));
    }
    let (Some(own), [there]) = (new.attributes.first(), &old.attributes[..]) else {
        return Err("the array that is there has several attributes".to_owned());
    };
    let alike = own.datatype == there.datatype
        && own.cell_val_num == there.cell_val_num
        && !there.nullable
        && there.enumeration.is_none();
    if !alike {
        return Err(format!(
            "its cells are {}, and those that are there {}",
            own.datatype, there.datatype
        ));
    }
    if own.fill_value != there.fill_value {
        return Err("its fill value is another than that of the array".to_owned());
    }
    let keys = array.metadata().map_err(|e| e.to_string())?;
    for meaning in MEANINGS {
        let before = keys.get(&format!("{ATTRIBUTE}{}.{meaning}", there.name));
        let key = format!("{ATTRIBUTE}{}.{meaning}", own.name);
        let mut found = variable.keys.iter().filter(|(name, _)| *name == key);
        if before != found.next().map(|(_, value)| value) {
            return Err(format!(
                "its {meaning} is another than there, so that its numbers mean something else; in Python `xr.open_zarr(..).azulejo.to(.., append_dim=..)` translates them"
            ));
        }
    }
    let axes = old.domain.dimensions.iter();
    let plain = axes.clone().all(|dimension| {
        let domain = dimension.domain.as_ref();
        domain.is_some_and(|domain| domain.start == 0i64.to_le_bytes())
    });
    let before = sizes(old);
    if !plain || before.len() != new.domain.dimensions.len() {
        return Err("the array that is there has no current domain that begins at 0".to_owned());
    }
    for (at, (new, before)) in sizes(new).iter().zip(&before).enumerate() {
        if at != axis && new != before {
            return Err(format!("its axes are {new} long where {before} are there"));
        }
    }
    let empty = keys.get(EMPTY_DIMS).is_some();
    let written = array.non_empty_domain().map_err(|e| e.to_string())?;
    match before.get(axis) {
        Some(_) if empty && written.is_none() => Ok(0),
        Some(size) => Ok(*size),
        None => Err("it has no such axis".to_owned()),
    }
}
