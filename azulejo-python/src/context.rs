//! A context, and what can be done with places.

use crate::array::{Array, Bounds};
use crate::batches;
use crate::buffer::slice;
use crate::error::raised;
use crate::head::Head;
use crate::hold::Hold;
use crate::work;
use arrow_array::ffi_stream::ArrowArrayStreamReader;
use azulejo::array::PinnedSnapshot;
use azulejo::arrow::ArrowImporter;
use azulejo::check::CheckOptions;
use azulejo::column::ColumnView;
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::filter::EncryptionKey;
use azulejo::format::metadata::{Metadata, MetadataValue};
use azulejo::format::schema::SchemaEvolution;
use azulejo::format::{Datatype, NdRectangle, Range};
use azulejo::group::{NewMember, ObjectType};
use azulejo::json::{SchemaDocument, attribute_from_json, enumeration_from_json};
use azulejo::storage::StorePath;
use azulejo::write::column_types;
use azulejo::write::optimize::{Goal, SampleCells, choose_filters, sample_bytes};
use azulejo::{ColumnSet, Config, Error, TimeRange, WriteLayout, WriteOptions};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};
use serde_json::Value as Json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Whether there is a setting of this name.
#[pyfunction]
pub fn knows_setting(name: &str) -> bool {
    Config::knows(name)
}

/// It takes longer than this to list so many files that looking at them takes a while.
const MANY_FILES: Duration = Duration::from_millis(10);

/// Arrays that are opened at once.
const OPEN_AT_ONCE: usize = 8;

/// Now, in milliseconds since 1970; later than every earlier write of this process.
#[pyfunction]
pub fn next_timestamp() -> u64 {
    azulejo::clock::next_timestamp()
}

/// The names of all settings.
#[pyfunction]
pub fn setting_names() -> Vec<&'static str> {
    let own = [
        "sm.mem.total_budget",
        "sm.compute_concurrency_level",
        "sm.tile_cache_size",
    ];
    let own = own.into_iter().chain([Config::DECODED_CACHE]);
    own.chain(azulejo::storage::StoreSettings::names())
        .collect()
}

/// Key-values as Python has them: key -> (datatype, bytes).
pub fn metadata_dict<'py>(py: Python<'py>, metadata: &Metadata) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in metadata {
        dict.set_item(key, (value.datatype.name(), PyBytes::new(py, &value.data)))?;
    }
    Ok(dict)
}

/// Columns of a write: name, values, offsets, validity.
type Columns = Vec<(
    String,
    PyBuffer<u8>,
    Option<PyBuffer<u64>>,
    Option<PyBuffer<u8>>,
)>;

fn goal_of(name: &str) -> PyResult<Goal> {
    name.parse().map_err(PyValueError::new_err)
}

fn no_field(name: &str) -> Error {
    Error::SchemaMismatch(format!("there is no field {name:?}"))
}

/// An array that was opened, what it is made of, its key-values.
type Opened<'py> = (Array, Head, Bound<'py, PyDict>);

/// Changes of key-values: key, and datatype and bytes, or nothing to remove it.
type Changes = Vec<(String, Option<(String, Vec<u8>)>)>;

/// Settings, threads and a key.
#[pyclass(frozen)]
#[derive(Debug)]
pub struct Context {
    context: azulejo::Context,
}

impl Context {
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&azulejo::Context) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        // Ctrl-C ends this work and no other.
        let context = self.context.cancellable();
        work::run(py, &context.cancel_handle(), || work(&context))
    }

    /// As [`Self::run`], for what looks at a few small files.
    fn run_small<T: Send>(
        &self,
        py: Python<'_>,
        uri: &str,
        work: impl FnOnce(&azulejo::Context) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        match work::is_near(uri) {
            true => work::run_short(py, || work(&self.context)),
            false => self.run(py, work),
        }
    }
}

fn json(text: &str) -> Result<Json, Error> {
    serde_json::from_str(text).map_err(|e| Error::InvalidArgument(format!("JSON: {e}")))
}

pub fn rectangle(ranges: Vec<Bounds>) -> NdRectangle {
    let ranges = ranges
        .into_iter()
        .map(|(start, end)| Range::new(start, end));
    NdRectangle {
        ranges: ranges.collect(),
    }
}

fn mode_of(name: &str) -> PyResult<Mode> {
    let found = Mode::ALL.into_iter().find(|mode| mode.name() == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = Mode::ALL.into_iter().map(Mode::name).collect();
        PyValueError::new_err(format!("mode is one of {}, not {name:?}", names.join(", ")))
    })
}

fn type_name(object_type: ObjectType) -> &'static str {
    match object_type {
        ObjectType::Array => "array",
        ObjectType::Group => "group",
    }
}

fn write_options(
    layout: Option<&str>,
    subarray: Option<Vec<Bounds>>,
    at: Option<u64>,
    uncommitted: bool,
) -> PyResult<WriteOptions> {
    let mut options = WriteOptions::new();
    if uncommitted {
        options = options.uncommitted();
    }
    options = match layout {
        None => options,
        Some("row") => options.layout(WriteLayout::Row),
        Some("col") => options.layout(WriteLayout::Col),
        Some("global") => options.layout(WriteLayout::Global),
        Some("unordered") => options.layout(WriteLayout::Unordered),
        Some(other) => {
            return Err(PyValueError::new_err(format!(
                "{other:?} is no order to write in"
            )));
        }
    };
    if let Some(subarray) = subarray {
        options = options.subarray(rectangle(subarray));
    }
    Ok(match at {
        Some(at) => options.timestamp(at),
        None => options,
    })
}

#[pymethods]
impl Context {
    #[new]
    #[pyo3(signature = (settings, key=None, beside=None))]
    fn new(
        py: Python<'_>,
        settings: Vec<(String, String)>,
        key: Option<Vec<u8>>,
        beside: Option<&Bound<'_, Self>>,
    ) -> PyResult<Self> {
        let mut config = Config::default();
        let made = settings
            .iter()
            .try_for_each(|(name, value)| config.set(name, value))
            .and_then(|()| {
                let key = match key {
                    None => None,
                    Some(key) => {
                        let key: [u8; 32] = key.try_into().map_err(|key: Vec<u8>| {
                            Error::InvalidArgument(format!("a key has 32 bytes, not {}", key.len()))
                        })?;
                        Some(EncryptionKey::new(key))
                    }
                };
                match beside {
                    Some(other) => Ok(other.get().context.beside(config, key)),
                    None => azulejo::Context::new(config, key),
                }
            });
        let context = made.map_err(|error| raised(py, &error))?;
        Ok(Self { context })
    }

    /// What lies at a URI: `array`, `group` or nothing.
    fn object_type(&self, py: Python<'_>, uri: &str) -> PyResult<Option<&'static str>> {
        let found = self.run_small(py, uri, |context| context.object(uri).object_type())?;
        Ok(found.map(type_name))
    }

    /// Opens an array.
    fn open(&self, py: Python<'_>, uri: &str, start: u64, end: u64) -> PyResult<Array> {
        let time = TimeRange { start, end };
        let context = self.context.cancellable();
        let cancel = context.cancel_handle();
        if !work::is_near(uri) {
            let array = work::run(py, &cancel, || context.array(uri).open_at(time))?;
            return Ok(Array::new(array, false));
        }
        let begun = Instant::now();
        let snapshot = work::run_short(py, || context.array(uri).snapshot_at(time))?;
        // What was quickly listed has few fragments.
        let array = match begun.elapsed() < MANY_FILES {
            true => work::run_short(py, || snapshot.array()),
            false => work::run(py, &cancel, || snapshot.array()),
        };
        Ok(Array::new(array?, true))
    }

    /// Opens arrays, several at once unless that is soon done: each with what it is made of and its
    /// key-values. Their fragments are looked at when something is first asked of them.
    fn open_each<'py>(
        &self,
        py: Python<'py>,
        uris: Vec<String>,
        start: u64,
        end: u64,
    ) -> PyResult<Vec<Opened<'py>>> {
        let time = TimeRange { start, end };
        let open = |context: &azulejo::Context, uri: &String| {
            let begun = Instant::now();
            let snapshot = context.array(uri).snapshot_at(time)?;
            let few = begun.elapsed() < MANY_FILES;
            let head = Head::of(&snapshot)?;
            let metadata = snapshot.metadata()?.clone();
            let near = work::is_near(uri);
            // Whoever wants to know its size asks for the box around all cells: of all arrays here, and
            // not of one after another later.
            let array = match Head::grows_unseen(&snapshot) {
                true => Array::new(snapshot.array()?, near),
                false => Array::unread(snapshot, near, few),
            };
            Ok((array, head, metadata))
        };
        let mut opened = Vec::with_capacity(uris.len());
        let near = uris.iter().all(|uri| work::is_near(uri));
        if near {
            // Some fifty arrays take less than what threads cost where others are at work too.
            let (begun, context) = (Instant::now(), self.context.cancellable());
            let soon = uris.iter().take_while(|_| begun.elapsed() < MANY_FILES);
            opened = work::run_short(py, || soon.map(|uri| open(&context, uri)).collect())?;
        }
        let left = uris.get(opened.len()..).unwrap_or_default();
        if !left.is_empty() {
            let threads = match near {
                true => std::thread::available_parallelism().map_or(1, usize::from),
                // They wait for answers.
                false => OPEN_AT_ONCE,
            };
            opened.extend(self.run(py, |context| {
                work::each(left, threads.min(OPEN_AT_ONCE), |uri| open(context, uri))
            })?);
        }
        opened
            .into_iter()
            .map(|(array, head, metadata)| Ok((array, head, metadata_dict(py, &metadata)?)))
            .collect()
    }

    /// Opens an array with just the fragments that another one has shown: its `pin`.
    fn open_pinned(&self, py: Python<'_>, uri: &str, pin: &[u8]) -> PyResult<Array> {
        let array = self.run(py, |context| {
            let pinned = PinnedSnapshot::decode(pin).map_err(|e| Error::decode(uri, e))?;
            context.array(uri).open_pinned(&pinned)
        })?;
        Ok(Array::new(array, work::is_near(uri)))
    }

    /// Creates an array of a schema in JSON.
    #[pyo3(signature = (uri, schema, at=None))]
    fn create(&self, py: Python<'_>, uri: &str, schema: &str, at: Option<u64>) -> PyResult<()> {
        self.run_small(py, uri, |context| {
            let new = SchemaDocument::from_json(&json(schema)?)?.into_new_array()?;
            match at {
                Some(at) => context.array(uri).create_at(new, at),
                None => context.array(uri).create(new),
            }
        })
    }

    /// A schema whose filters suit these columns, which fill a box if the array is dense.
    #[pyo3(signature = (schema, goal, columns, subarray=None))]
    fn optimized(
        &self,
        py: Python<'_>,
        schema: &str,
        goal: &str,
        columns: Columns,
        subarray: Option<Vec<Bounds>>,
    ) -> PyResult<String> {
        let goal = goal_of(goal)?;
        let subarray = subarray.map(rectangle);
        let mut parts = Vec::with_capacity(columns.len());
        for (name, data, offsets, validity) in &columns {
            let offsets = offsets.as_ref().map(slice).transpose()?;
            let validity = validity.as_ref().map(slice).transpose()?;
            parts.push((name, slice(data)?, offsets, validity));
        }
        self.run(py, move |context| {
            let mut new = SchemaDocument::from_json(&json(schema)?)?.into_new_array()?;
            let types = column_types(&new.schema, &[]);
            let mut views = Vec::with_capacity(parts.len());
            for (name, data, offsets, validity) in parts {
                let kind = types.iter().find(|kind| *kind.name == **name);
                let kind = kind.ok_or_else(|| no_field(name))?;
                views.push(ColumnView::new(kind.clone(), data, offsets, validity)?);
            }
            let mut cells = SampleCells::of_views(views);
            if let Some(subarray) = &subarray {
                cells = cells.in_box(subarray, false);
            }
            choose_filters(context, &mut new, &cells, goal, &|_| false)?;
            Ok(SchemaDocument::from(new).to_json()?.to_string())
        })
    }

    /// A schema whose filters suit what an Arrow stream brings first.
    fn optimized_arrow(
        &self,
        py: Python<'_>,
        schema: &str,
        goal: &str,
        stream: &Bound<'_, PyCapsule>,
    ) -> PyResult<String> {
        let goal = goal_of(goal)?;
        let stream = batches::taken(stream)?;
        self.run(py, move |context| {
            let mut new = SchemaDocument::from_json(&json(schema)?)?.into_new_array()?;
            let labels: Vec<_> = new.enumerations.iter().cloned().map(Arc::new).collect();
            let importer = ArrowImporter::new(column_types(&new.schema, &labels));
            let (most, mut sets, mut bytes) = (sample_bytes(context), Vec::new(), 0);
            for batch in ArrowArrayStreamReader::try_new(stream).map_err(batches::error)? {
                let set = importer.convert(&batch.map_err(batches::error)?)?;
                bytes += set.memory_size() as u64;
                sets.push(set);
                if bytes >= most {
                    break;
                }
            }
            if !sets.is_empty() {
                let cells = ColumnSet::concat(&sets)?;
                choose_filters(context, &mut new, &SampleCells::of(&cells), goal, &|_| {
                    false
                })?;
            }
            Ok(SchemaDocument::from(new).to_json()?.to_string())
        })
    }

    /// Evolves an array's schema: attributes (JSON) to add, names to drop, enumerations (JSON) to
    /// add, the current domain.
    #[pyo3(signature = (uri, add, drop, enumerations, expand=None, at=None))]
    fn evolve(
        &self,
        py: Python<'_>,
        uri: &str,
        add: Vec<String>,
        drop: Vec<String>,
        enumerations: Vec<String>,
        expand: Option<Vec<Bounds>>,
        at: Option<u64>,
    ) -> PyResult<()> {
        self.run_small(py, uri, |context| {
            let attribute = |text: &String| attribute_from_json(&json(text)?);
            let enumeration = |text: &String| enumeration_from_json(&json(text)?);
            let mut evolution = SchemaEvolution {
                add_attributes: add.iter().map(attribute).collect::<Result<_, _>>()?,
                drop_attributes: drop,
                expand_current_domain: expand.map(rectangle),
                ..SchemaEvolution::default()
            };
            if !enumerations.is_empty() {
                let array = context.array(uri).open()?;
                for text in &enumerations {
                    let given = enumeration(text)?;
                    match array.schema().enumeration(&given.name) {
                        // With the labels that are there before the new ones, which the engine checks.
                        Some(_) => evolution.extend_enumerations.push(given),
                        None => evolution.add_enumerations.push(given),
                    }
                }
            }
            context.array(uri).evolve(&evolution, at)
        })
    }

    /// The same context, whose long pieces of work call back with what is counted, how many are
    /// done, and how many there are.
    fn observed(&self, callback: Py<PyAny>) -> Self {
        let context = self.context.observed(move |progress| {
            Python::attach(|py| {
                let told = callback.call1(py, (progress.unit, progress.done, progress.total));
                if let Err(error) = told {
                    // The work goes on: who watches it does not decide about it.
                    error.write_unraisable(py, Some(callback.bind(py)));
                }
            });
        });
        Self { context }
    }

    /// Makes fragments that were written `uncommitted` count, all at once.
    fn commit_fragments(&self, py: Python<'_>, uri: &str, names: Vec<String>) -> PyResult<()> {
        self.run_small(py, uri, |context| {
            context.array(uri).commit_fragments(&names)
        })
    }

    /// Waits until nobody else changes what an array consists of, and keeps them from it.
    fn hold(&self, py: Python<'_>, uri: &str) -> PyResult<Hold> {
        let array = self.context.array(uri);
        work::run_alone(py, move || array.hold()).map(Hold::new)
    }

    /// Removes fragments that were written `uncommitted` and are not to count.
    fn discard_fragments(&self, py: Python<'_>, uri: &str, names: Vec<String>) -> PyResult<()> {
        let array = self.context.array(uri);
        work::run_alone(py, move || array.discard_fragments(&names))
    }

    /// Writes columns of memory that Python has. Returns the fragments' names.
    #[pyo3(signature = (uri, columns, layout=None, subarray=None, at=None, uncommitted=false))]
    fn write(
        &self,
        py: Python<'_>,
        uri: &str,
        columns: Columns,
        layout: Option<&str>,
        subarray: Option<Vec<Bounds>>,
        at: Option<u64>,
        uncommitted: bool,
    ) -> PyResult<Vec<String>> {
        let options = write_options(layout, subarray, at, uncommitted)?;
        let mut parts = Vec::with_capacity(columns.len());
        for (name, data, offsets, validity) in &columns {
            let offsets = offsets.as_ref().map(slice).transpose()?;
            let validity = validity.as_ref().map(slice).transpose()?;
            parts.push((name, slice(data)?, offsets, validity));
        }
        let bytes: usize = parts.iter().map(|(_, data, ..)| data.len()).sum();
        let write = move |context: &azulejo::Context| {
            let mut writer = context.array(uri).writer(options)?;
            let types = writer.column_types(&[]);
            let mut views = Vec::with_capacity(parts.len());
            for (name, data, offsets, validity) in parts {
                let kind = types
                    .iter()
                    .find(|kind| *kind.name == **name)
                    .ok_or_else(|| {
                        Error::SchemaMismatch(format!("{uri}: there is no field {name:?}"))
                    })?;
                views.push(ColumnView::new(kind.clone(), data, offsets, validity)?);
            }
            writer.write_views(&views)?;
            writer.finish()
        };
        match bytes as u64 <= work::SMALL {
            true => self.run_small(py, uri, write),
            false => self.run(py, write),
        }
    }

    /// Writes what an Arrow stream brings, as one write. Returns the fragments' names.
    #[pyo3(signature = (uri, stream, at=None, uncommitted=false))]
    fn write_arrow(
        &self,
        py: Python<'_>,
        uri: &str,
        stream: &Bound<'_, PyCapsule>,
        at: Option<u64>,
        uncommitted: bool,
    ) -> PyResult<(u64, Vec<String>)> {
        let options = write_options(None, None, at, uncommitted)?;
        let stream = batches::taken(stream)?;
        self.run(py, move |context| {
            let batches = ArrowArrayStreamReader::try_new(stream).map_err(batches::error)?;
            let mut writer = context.array(uri).writer(options)?;
            let importer = writer.importer()?;
            let mut sets = Vec::new();
            for batch in batches {
                sets.push(importer.convert(&batch.map_err(batches::error)?)?);
            }
            let cells = match sets.len() {
                0 => return Ok((0, Vec::new())),
                1 => sets.swap_remove(0),
                _ => ColumnSet::concat(&sets)?,
            };
            writer.write(&cells)?;
            Ok((cells.cell_num as u64, writer.finish()?))
        })
    }

    /// Deletes the cells that meet a condition. Returns the delete's name.
    #[pyo3(signature = (uri, condition, at=None))]
    fn delete_cells(
        &self,
        py: Python<'_>,
        uri: &str,
        condition: &str,
        at: Option<u64>,
    ) -> PyResult<String> {
        self.run(py, |context| {
            let place = context.array(uri);
            let condition = place.snapshot()?.condition(condition)?;
            place.delete_cells(&condition, at)
        })
    }

    /// Deletes an array or a group. Returns the URIs of what went.
    fn delete(&self, py: Python<'_>, uri: &str, recursive: bool) -> PyResult<Vec<String>> {
        let gone = self.run(py, |context| context.object(uri).delete(recursive))?;
        Ok(gone.into_iter().map(|object| object.uri).collect())
    }

    /// Moves or copies an array or a group.
    fn transfer(&self, py: Python<'_>, old: &str, new: &str, copy: bool) -> PyResult<()> {
        self.run(py, |context| {
            let object = context.object(old);
            if copy {
                object.copy_to(new)
            } else {
                object.rename_to(new)
            }
        })
    }

    /// Consolidates. Returns what was replaced by what, or the file written.
    #[pyo3(signature = (uri, mode, fragments, max_fragment_size=None, purge=false, memory=None))]
    fn consolidate<'py>(
        &self,
        py: Python<'py>,
        uri: &str,
        mode: &str,
        fragments: Vec<String>,
        max_fragment_size: Option<u64>,
        purge: bool,
        memory: Option<u64>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mode = mode_of(mode)?;
        if mode == Mode::Fragments {
            let mut options = FragmentOptions::new()
                .fragments(fragments)
                .max_fragment_size(max_fragment_size)
                .purge_deleted_cells(purge);
            options.memory_budget = memory.unwrap_or(options.memory_budget);
            let rounds = self.run(py, |context| context.array(uri).consolidate(&options))?;
            return rounds
                .into_iter()
                .map(|round| {
                    let dict = PyDict::new(py);
                    dict.set_item("old", round.old)?;
                    dict.set_item("new", round.new)?;
                    dict.set_item("cells", round.cells)?;
                    dict.set_item("bytes", round.bytes)?;
                    Ok(dict)
                })
                .collect();
        }
        let written = self.run(py, |context| {
            let place = context.array(uri);
            match mode {
                Mode::Commits => place.consolidate_commits(),
                Mode::ArrayMetadata => place.consolidate_metadata(TimeRange::ALL),
                Mode::FragmentMetadata | Mode::Fragments => place.consolidate_fragment_metadata(),
            }
        })?;
        written
            .into_iter()
            .map(|path| {
                let dict = PyDict::new(py);
                dict.set_item("written", path.to_string())?;
                Ok(dict)
            })
            .collect()
    }

    /// Removes what consolidations have replaced. Returns the paths and their bytes.
    fn vacuum(
        &self,
        py: Python<'_>,
        uri: &str,
        mode: &str,
        dry_run: bool,
    ) -> PyResult<(Vec<String>, u64)> {
        let mode = mode_of(mode)?;
        let options = VacuumOptions::new().dry_run(dry_run);
        let vacuumed = self.run(py, |context| context.array(uri).vacuum(mode, options))?;
        let paths = vacuumed
            .files
            .iter()
            .chain(&vacuumed.folders)
            .map(StorePath::to_string);
        Ok((paths.collect(), vacuumed.bytes))
    }

    /// Checks an array. Returns severity, path and description of each finding.
    fn check(
        &self,
        py: Python<'_>,
        uri: &str,
        deep: bool,
    ) -> PyResult<Vec<(&'static str, String, String)>> {
        let options = CheckOptions::new().deep(deep);
        let report = self.run(py, |context| context.array(uri).check(options))?;
        let row = |finding: azulejo::check::Finding| {
            (
                finding.severity.name(),
                finding.path.to_string(),
                finding.what,
            )
        };
        Ok(report.findings.into_iter().map(row).collect())
    }

    /// Changes key-values of an array or a group.
    #[pyo3(signature = (uri, group, changes, at=None))]
    fn change_metadata(
        &self,
        py: Python<'_>,
        uri: &str,
        group: bool,
        changes: Changes,
        at: Option<u64>,
    ) -> PyResult<()> {
        self.run_small(py, uri, |context| {
            let mut writer = match group {
                true => context.group(uri).change_metadata()?,
                false => context.array(uri).change_metadata()?,
            };
            if let Some(at) = at {
                writer = writer.at(at);
            }
            for (key, value) in changes {
                match value {
                    None => writer.remove(key),
                    Some((name, data)) => {
                        let datatype = Datatype::from_name(&name).ok_or_else(|| {
                            Error::InvalidArgument(format!("{name:?} is no datatype"))
                        })?;
                        writer.put(key, MetadataValue::new(datatype, data))?
                    }
                };
            }
            writer.commit()
        })
    }

    /// Creates a group.
    fn create_group(&self, py: Python<'_>, uri: &str) -> PyResult<()> {
        self.run_small(py, uri, |context| context.group(uri).create())
    }

    /// A group's members (key, location, type) and key-values.
    #[expect(clippy::type_complexity, reason = "Python takes it apart at once")]
    fn group<'py>(
        &self,
        py: Python<'py>,
        uri: &str,
        start: u64,
        end: u64,
    ) -> PyResult<(
        Vec<(String, String, Option<&'static str>)>,
        Bound<'py, PyDict>,
    )> {
        let time = TimeRange { start, end };
        let (group, metadata) = self.run_small(py, uri, |context| {
            let group = context.group(uri).open_at(time)?;
            let metadata = group.metadata()?;
            Ok((group, metadata))
        })?;
        let members = group.members().iter().map(|member| {
            let object_type = member.object_type.map(type_name);
            (
                member.key().to_owned(),
                member.location.clone(),
                object_type,
            )
        });
        Ok((members.collect(), metadata_dict(py, &metadata)?))
    }

    /// Adds members (URI, relative, name) to a group and removes others by name.
    #[pyo3(signature = (uri, add, remove, at=None))]
    fn edit_group(
        &self,
        py: Python<'_>,
        uri: &str,
        add: Vec<(String, bool, Option<String>)>,
        remove: Vec<String>,
        at: Option<u64>,
    ) -> PyResult<()> {
        self.run_small(py, uri, |context| {
            let place = context.group(uri);
            let mut editor = match at {
                Some(at) => place.edit_at(at)?,
                None => place.edit()?,
            };
            for name in &remove {
                editor.remove(name)?;
            }
            for (uri, relative, name) in add {
                let member = match relative {
                    true => NewMember::relative(uri),
                    false => NewMember::at(uri),
                };
                editor.add(match name {
                    Some(name) => member.named(name),
                    None => member,
                })?;
            }
            editor.commit()
        })
    }

    /// Makes these (path below the group's folder, name) all members of a group, in one step.
    /// Returns where the members before lie.
    fn replace_members(
        &self,
        py: Python<'_>,
        uri: &str,
        members: Vec<(String, String)>,
    ) -> PyResult<Vec<String>> {
        self.run_small(py, uri, |context| {
            let mut editor = context.group(uri).edit()?;
            for (path, name) in members {
                editor.add(NewMember::relative(path).named(name).replacing())?;
            }
            let before = editor.commit_alone()?;
            Ok(before.into_iter().map(|member| member.location).collect())
        })
    }
}
