//! Arrays whose schema is given: by a file, or because the array is there already.

use super::Look;
use super::grid;
use super::load;
use super::npy_file::Turn;
use super::plan::{self, Plan, Shape};
use super::profile::Profile;
use super::source::Source;
use super::target::Target;
use crate::args::PlaceArgs;
use crate::error::{CliError, Result};
use crate::selection::names_among;
use crate::session::Session;
use crate::size;
use crate::value::{self, Bound};
use azulejo::Array;
use azulejo::column::ColumnType;
use azulejo::format::range::compare;
use azulejo::format::schema::{
    ArraySchema, Attribute, CurrentDomain, Dimension, Enumeration, FieldIndex, NewArray,
    SchemaEvolution,
};
use azulejo::format::{NdRectangle, Range};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Looks at a file for an array with this schema, if anything must be known beforehand: the number
/// of rows for dense arrays, and, where labels can be added, the labels.
pub fn look(
    session: &Session,
    source: &mut Source<'_>,
    size: u64,
    columns: Option<Vec<String>>,
    schema: &ArraySchema,
    append: bool,
) -> Result<Vec<Profile>> {
    let look = label_look(source, columns, schema, append);
    let is_field = |name: &str| schema.field(name).is_some();
    let columns = names_among(look.columns.as_deref().unwrap_or_default(), is_field);
    // Columns that are no fields are looked for, so that a slip of the pen does not go unnoticed.
    let others = append || !columns.iter().all(|name| is_field(name));
    let keys_unknown = others && source.names().is_empty();
    if !schema.is_dense() && look.enumerate.is_empty() && !keys_unknown {
        source.assume_keys(
            schema
                .fields()
                .map(|field| schema.name_of(field).to_owned()),
        );
        return Ok(Vec::new());
    }
    profiles(session, source, size, &look, schema)
}

/// Looks at a file for an array with this schema. Keys that no line of JSON has are missing in all of
/// them.
pub fn profiles(
    session: &Session,
    source: &mut Source<'_>,
    size: u64,
    look: &Look,
    schema: &ArraySchema,
) -> Result<Vec<Profile>> {
    let profiles = source.profile(session, look, size)?;
    // Rows of a dense array need no coordinates.
    let fields = schema.fields().filter(|field| match field {
        FieldIndex::Dimension(_) => !schema.is_dense(),
        FieldIndex::Attribute(_) => true,
    });
    let names = fields.map(|field| schema.name_of(field));
    let missing = names.filter(|name| plan::column_of(source.names(), name).is_none());
    let missing: Vec<String> = missing.map(str::to_owned).collect();
    source.add_keys(missing);
    if !profiles.is_empty() {
        return Ok(profiles);
    }
    // Lines without any key, such as those of a day on which nothing happened.
    let mut rows = 0;
    source.read(session, &[], size, &mut |first, set| {
        rows = first + set.cell_num as u64;
        Ok(())
    })?;
    Ok(vec![Profile::of_rows(rows)])
}

/// A look that finds out how many rows there are and, to add to an array, the labels.
pub fn label_look(
    source: &Source<'_>,
    columns: Option<Vec<String>>,
    schema: &ArraySchema,
    append: bool,
) -> Look {
    let labelled = schema
        .attributes
        .iter()
        .filter(|a| append && a.enumeration.is_some());
    Look {
        columns,
        cut: source.names().is_empty(),
        enumerate: labelled.map(|a| a.name.clone()).collect(),
        labelled: true,
        ..Look::default()
    }
}

/// Plans to fill an array with this schema, with the columns that were `chosen`. `place` says where
/// cells are already, and where those of the file go.
pub fn plan(
    session: &Session,
    source: &Source<'_>,
    size: u64,
    chosen: Option<&[String]>,
    profiles: &[Profile],
    array: NewArray,
    place: Option<&Place>,
) -> Result<Plan> {
    let schema = &array.schema;
    let enumerations: BTreeMap<&str, Arc<Enumeration>> = array
        .enumerations
        .iter()
        .map(|e| (e.name.as_str(), Arc::new(e.clone())))
        .collect();
    let enumeration = |name: &str| {
        let attribute = schema.attributes.iter().find(|a| a.name == name)?;
        enumerations.get(attribute.enumeration.as_deref()?).cloned()
    };
    let targets = plan::targets(schema, source.names(), chosen, &enumeration)?;
    // Without a look there is a file with rows, as far as is known.
    let rows = profiles.first().map_or(1, |p| p.rows);
    let dims = targets.iter().filter(|t| t.is_dimension).count();
    let shape = if !schema.is_dense() {
        Shape::Sparse
    } else if dims == schema.domain.ndim() {
        match load::data_box(session, source, size, schema, &targets)? {
            Some(bounds) => Shape::Coordinates(bounds),
            None => Shape::Coordinates(NdRectangle { ranges: Vec::new() }),
        }
    } else if dims == 0 {
        grid_shape(source, schema, rows, place)?
    } else {
        let missing = schema
            .domain
            .dimensions
            .iter()
            .find(|d| !targets.iter().any(|t| *t.column.name == *d.name));
        let missing = missing.map_or("", |d| &d.name);
        return Err(CliError::usage(format!(
            "the file has columns for some dimensions but none for {missing:?}: give all of them or none"
        )));
    };
    if let (Some(place), Shape::Grid { bounds, .. } | Shape::Coordinates(bounds)) = (place, &shape)
    {
        place.check(schema, bounds)?;
    }
    if let Source::Npy(file, name) = source {
        check_npy(&file.column_type(name), &targets)?;
    }
    Ok(Plan {
        array,
        targets,
        shape,
        rows,
        notes: Vec::new(),
    })
}

/// The box that rows without coordinates fill.
fn grid_shape(
    source: &Source<'_>,
    schema: &ArraySchema,
    rows: u64,
    place: Option<&Place>,
) -> Result<Shape> {
    let columns_first = matches!(source, Source::Npy(file, _) if file.fortran);
    let dimensions = &schema.domain.dimensions;
    let domain = || -> Option<Vec<Range>> {
        let current = schema.current_domain.ranges().map(<[Range]>::to_vec);
        current.or_else(|| dimensions.iter().map(|d| d.domain.clone()).collect())
    };
    let starts = || -> Option<Vec<i128>> {
        let domain = domain()?;
        Some(
            dimensions
                .iter()
                .zip(&domain)
                .map(|(d, range)| grid::integers(d, range).0)
                .collect(),
        )
    };
    let none = || CliError::usage("the array has a dimension without a domain");
    if let Source::Npy(file, _) = source {
        check_axes(&file.shape, dimensions.len())?;
    }
    // Rows are added behind those that are there.
    if let [dimension] = &dimensions[..] {
        let start = match place.and_then(|place| place.start(0, dimension, true)) {
            Some(start) => start,
            None => *starts().ok_or_else(none)?.first().unwrap_or(&0),
        };
        let end = start + i128::from(rows.max(1)) - 1;
        let whole = grid::integers(dimension, dimension.domain.as_ref().ok_or_else(none)?);
        if end > whole.1 {
            return Err(CliError::usage(format!(
                "{rows} rows from {start} on go beyond the domain of dimension {:?}, which ends at {}",
                dimension.name, whole.1
            )));
        }
        let bounds = NdRectangle {
            ranges: vec![grid::range(dimension, start, end)],
        };
        return Ok(Shape::Grid {
            bounds,
            columns_first,
        });
    }
    let ranges = match source {
        // An array in a file has a shape of its own.
        Source::Npy(file, _) => {
            let mut starts = starts().ok_or_else(none)?;
            if let Some(place) = place {
                let along = place.append_dim(schema)?;
                for (at, (start, dimension)) in starts.iter_mut().zip(dimensions).enumerate() {
                    *start = place.start(at, dimension, at == along).unwrap_or(*start);
                }
            }
            let range = |((d, start), &length): ((_, &i128), &u64)| {
                grid::range(d, *start, start + i128::from(length.max(1)) - 1)
            };
            dimensions
                .iter()
                .zip(&starts)
                .zip(&file.shape)
                .map(range)
                .collect()
        }
        _ => domain().ok_or_else(none)?,
    };
    let bounds = NdRectangle { ranges };
    grid::check_domain(schema, &bounds)?;
    let cells = grid::Grid::new(schema, &bounds, columns_first).cells();
    if cells != Some(rows) {
        let cells = cells.map_or("more".to_owned(), |cells| cells.to_string());
        return Err(CliError::usage(format!(
            "the file has no columns for the dimensions, and its {rows} rows are not the {cells} cells of the array's box"
        )));
    }
    Ok(Shape::Grid {
        bounds,
        columns_first,
    })
}

/// Where the cells of a file go that are added to an array.
#[derive(Debug)]
pub struct Place {
    /// The box around what is written.
    written: Option<NdRectangle>,
    /// The boxes of the fragments.
    boxes: Vec<NdRectangle>,
    append_dim: Option<String>,
    /// By dimension.
    offsets: Vec<Option<i128>>,
    overwrite: bool,
}

impl Place {
    /// As the options say.
    pub fn new(array: &Array, args: &PlaceArgs) -> Result<Self> {
        let domain = &array.schema().domain;
        let mut offsets = vec![None; domain.ndim()];
        for text in &args.offset {
            let wrong = |reason: &str| CliError::usage(format!("--offset {text}: {reason}"));
            let (name, value) = text.split_once('=').ok_or_else(|| wrong("write DIM=N"))?;
            let at = domain.index_of(name);
            let Some((dimension, offset)) =
                at.and_then(|at| Some((domain.dimensions.get(at)?, offsets.get_mut(at)?)))
            else {
                return Err(wrong("the array has no such dimension"));
            };
            if !array.schema().is_dense() {
                return Err(wrong(
                    "rows of a sparse array go where their coordinates say",
                ));
            }
            let value = value::parse(dimension.datatype, value, Bound::Low)
                .map_err(|reason| wrong(&reason))?;
            *offset = Some(grid::integers(dimension, &Range::new(value.clone(), value)).0);
        }
        let boxes = array
            .fragments()
            .iter()
            .filter_map(|fragment| fragment.footer().non_empty_domain.clone());
        Ok(Self {
            written: array.non_empty_domain()?,
            boxes: boxes.collect(),
            append_dim: args.append_dim.clone(),
            offsets,
            overwrite: args.overwrite,
        })
    }

    /// The dimension along which to go on.
    fn append_dim(&self, schema: &ArraySchema) -> Result<usize> {
        let Some(name) = &self.append_dim else {
            return Ok(0);
        };
        schema.domain.index_of(name).ok_or_else(|| {
            CliError::usage(format!(
                "--append-dim {name}: the array has no such dimension"
            ))
        })
    }

    /// Where to begin along a dimension; `None`: where the domain does.
    fn start(&self, at: usize, dimension: &Dimension, along: bool) -> Option<i128> {
        if let Some(offset) = self.offsets.get(at).copied().flatten() {
            return Some(offset);
        }
        if !along || self.overwrite {
            return None;
        }
        let range = self.written.as_ref()?.ranges.get(at)?;
        Some(grid::integers(dimension, range).1 + 1)
    }

    /// Refuses to write over cells unless it is asked for.
    fn check(&self, schema: &ArraySchema, bounds: &NdRectangle) -> Result<()> {
        let asked = self.overwrite || self.offsets.iter().any(Option::is_some);
        if asked || bounds.ranges.is_empty() {
            return Ok(());
        }
        let overlaps = |other: &&NdRectangle| {
            let mut sides = schema
                .domain
                .dimensions
                .iter()
                .zip(&other.ranges)
                .zip(&bounds.ranges);
            sides.all(|((dimension, a), b)| {
                let (a, b) = (grid::integers(dimension, a), grid::integers(dimension, b));
                a.0 <= b.1 && b.0 <= a.1
            })
        };
        let Some(written) = self.boxes.iter().find(overlaps) else {
            return Ok(());
        };
        let text = |rectangle: &NdRectangle| -> String {
            let sides = schema.domain.dimensions.iter().zip(&rectangle.ranges);
            let sides = sides.map(|(dimension, range)| {
                format!(
                    "{}={}:{}",
                    dimension.name,
                    value::text(dimension.datatype, &range.start),
                    value::text(dimension.datatype, &range.end)
                )
            });
            sides.collect::<Vec<_>>().join(" ")
        };
        Err(CliError::usage(format!(
            "the file's cells ({}) would lie over cells that are there ({}); --overwrite allows it, --offset DIM=N \
             puts them elsewhere",
            text(bounds),
            text(written)
        )))
    }
}

/// What of a file an array has no place for.
#[derive(Debug, Default)]
pub struct Misfits {
    /// Columns without a field.
    pub columns: Vec<String>,
    /// Labels that enumerations lack, by attribute.
    pub labels: Vec<(String, Vec<String>)>,
}

impl Misfits {
    /// Looks for them. Columns that the user did not choose are none.
    pub fn of(
        source: &Source<'_>,
        chosen: Option<&[String]>,
        plan: &Plan,
        evolution: &SchemaEvolution,
    ) -> Self {
        let used = |at: usize| plan.targets.iter().any(|target| target.source == at);
        let wanted = |name: &String| chosen.is_none_or(|chosen| chosen.contains(name));
        let columns = source.names().iter().enumerate();
        let columns = columns
            .filter(|(at, name)| !used(*at) && wanted(name))
            .map(|(_, name)| name.clone());
        let mut labels = Vec::new();
        for target in &plan.targets {
            let Some(old) = &target.column.enumeration else {
                continue;
            };
            let extended = evolution
                .extend_enumerations
                .iter()
                .find(|e| e.name == old.name);
            if let Some(extended) = extended {
                let new = extended.values().skip(old.len());
                let new = new.map(|label| value::text(extended.datatype, label));
                labels.push((target.column.name.to_string(), new.collect()));
            }
        }
        Self {
            columns: columns.collect(),
            labels,
        }
    }

    /// One line for each kind.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.columns.is_empty() {
            let (noun, verb) = match self.columns.len() {
                1 => ("column", "goes"),
                _ => ("columns", "go"),
            };
            lines.push(format!(
                "{noun} {} of the file {verb} nowhere: the array has no such field",
                self.columns.join(", ")
            ));
        }
        for (attribute, labels) in &self.labels {
            let shown = labels
                .iter()
                .take(10)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            let more = match labels.len() {
                0..=10 => String::new(),
                n => format!(" and {} more", n - 10),
            };
            lines.push(format!(
                "attribute {attribute:?} has no labels {shown}{more} yet"
            ));
        }
        lines
    }
}

/// An array in a file has as many axes as the array that it goes into; a single number has the one
/// cell of a single axis.
fn check_axes(lengths: &[u64], dimensions: usize) -> Result<()> {
    if lengths.len() == dimensions || lengths.is_empty() && dimensions == 1 {
        return Ok(());
    }
    let lengths: Vec<String> = lengths.iter().map(u64::to_string).collect();
    Err(CliError::usage(format!(
        "the array in the file is {}, and the array has {dimensions} dimension{}",
        match lengths.is_empty() {
            true => "a single number".to_owned(),
            false => format!("{} long", lengths.join(" x ")),
        },
        if dimensions == 1 { "" } else { "s" }
    )))
}

fn check_npy(column: &ColumnType, targets: &[Target]) -> Result<()> {
    let [target] = targets else {
        return Err(CliError::usage(
            "an .npy file fills arrays with one attribute",
        ));
    };
    if Turn::of(column, &target.column, false).is_some() {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "the file holds {}, attribute {:?} {}",
        column.datatype, target.column.name, target.column.datatype
    )))
}

/// The array as a plan takes it.
pub fn as_new(array: &Array) -> Result<NewArray> {
    let enumerations = array
        .enumerations()?
        .iter()
        .map(|e| e.as_ref().clone())
        .collect();
    Ok(NewArray {
        schema: array.schema().as_ref().clone(),
        enumerations,
        label_schemas: Vec::new(),
    })
}

/// What must change in an array before the file's cells fit in: new labels, a larger current
/// domain.
pub fn evolution(
    session: &Session,
    source: &Source<'_>,
    size: u64,
    profiles: &[Profile],
    plan: &Plan,
) -> Result<SchemaEvolution> {
    let schema = &plan.array.schema;
    let mut evolution = SchemaEvolution::default();
    for target in &plan.targets {
        let attribute = schema
            .attributes
            .iter()
            .find(|a| a.name == *target.column.name);
        if let Some(attribute) = attribute
            && let Some(enumeration) = &target.column.enumeration
        {
            let column = source.names().get(target.source);
            let profile = profiles.iter().find(|p| Some(&p.name) == column);
            if let Some(extended) = extended(enumeration, profile, attribute)? {
                evolution.extend_enumerations.push(extended);
            }
        }
    }
    let bounds = match &plan.shape {
        _ if plan.rows == 0 => None,
        Shape::Grid { bounds, .. } => Some(bounds.clone()),
        Shape::Coordinates(bounds) if bounds.ranges.is_empty() => None,
        Shape::Coordinates(bounds) => Some(bounds.clone()),
        Shape::Sparse if schema.current_domain == CurrentDomain::Empty => None,
        Shape::Sparse => load::data_box(session, source, size, schema, &plan.targets)?,
    };
    if let Some(bounds) = bounds {
        grid::check_domain(schema, &bounds)?;
        if let Some(current) = schema.current_domain.ranges() {
            let grown: Vec<Range> = (schema
                .domain
                .dimensions
                .iter()
                .zip(current)
                .zip(&bounds.ranges))
            .map(|((d, current), data)| {
                let least = |a: &[u8], b: &[u8]| compare(d.datatype, a, b).is_le();
                let start = if least(&current.start, &data.start) {
                    &current.start
                } else {
                    &data.start
                };
                let end = if least(&current.end, &data.end) {
                    &data.end
                } else {
                    &current.end
                };
                Range::new(start.clone(), end.clone())
            })
            .collect();
            if grown != current {
                evolution.expand_current_domain = Some(NdRectangle { ranges: grown });
            }
        }
    }
    Ok(evolution)
}

/// The enumeration with the labels of the file that it lacks; `None` if it lacks none.
fn extended(
    enumeration: &Enumeration,
    profile: Option<&Profile>,
    attribute: &Attribute,
) -> Result<Option<Enumeration>> {
    let Some(labels) = profile.and_then(|p| p.labels.as_ref()) else {
        return Ok(None);
    };
    if !super::parse::is_text(enumeration.datatype) || labels.len().is_none() {
        return Ok(None);
    }
    let index = enumeration.index();
    let own_order = profile.is_some_and(|p| p.dictionary);
    let new: Vec<&[u8]> = labels
        .texts(own_order)
        .into_iter()
        .filter(|l| index.get(l).is_none())
        .collect();
    if new.is_empty() {
        return Ok(None);
    }
    let count = (enumeration.len() + new.len()) as u64;
    if attribute.datatype.max_integer() < count - 1 {
        let (name, datatype) = (&attribute.name, attribute.datatype);
        return Err(CliError::usage(format!(
            "attribute {name:?}: {datatype} has no room for {} labels, as there would be; export the cells and import them \
             anew with --enumerate {name} --type {name}=UINT32, or --enumerate none",
            size::count(count)
        )));
    }
    enumeration.extend(new).map(Some).map_err(|e| {
        CliError::usage(format!(
            "attribute {:?}: its labels cannot be extended: {e}",
            attribute.name
        ))
    })
}
