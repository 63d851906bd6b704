//! An open array.

use crate::error::raised;
use crate::reader::{Reader, columns};
use crate::work;
use azulejo::Error;
use azulejo::array::{PinnedSnapshot, Snapshot};
use azulejo::format::{NdRectangle, Range};
use azulejo::json::SchemaDocument;
use azulejo::read::ReadOptions;
use azulejo::read::aggregate::{Aggregate, AggregateValue};
use azulejo::space::{DimSelection, Layout, PointColumn, Points, Subarray};
use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::sync::OnceLock;

/// Bytes of the least and the greatest coordinate.
pub type Bounds = (Vec<u8>, Vec<u8>);

/// The same as Python has them.
type PyBounds<'py> = Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>;

/// Coordinates of points along a dimension, with offsets if they are text.
type PointData = (Vec<u8>, Option<Vec<u64>>);

/// What is selected along a dimension: everything, ranges, or every so many coordinates of a range.
#[derive(FromPyObject)]
enum Selected {
    Strided(Vec<u8>, Vec<u8>, u64),
    Ranges(Vec<Bounds>),
}

/// What is read: the same for cells and aggregates.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Query {
    ranges: Option<Vec<Option<Selected>>>,
    points: Option<Vec<PointData>>,
    fields: Vec<String>,
    condition: Option<String>,
    order: String,
    memory: Option<u64>,
    matching_only: bool,
    limit: Option<u64>,
    /// Bytes that are decoded of each fragment at most, if the caller knows.
    work: Option<u64>,
}

/// An open array: what it was at a time.
#[pyclass(frozen)]
#[derive(Debug)]
pub struct Array {
    snapshot: Snapshot,
    /// With its fragments, once they were looked at.
    opened: OnceLock<azulejo::Array>,
    /// Reached without a network.
    near: bool,
    /// Whether to look at its fragments is over at once.
    few: bool,
    /// Cells of all fragments, counted once: there may be very many.
    cells: OnceLock<u64>,
}

/// Bytes that a cell of a sparse array may have.
const CELL: u64 = 64;

impl Array {
    /// An array that was just opened.
    pub fn new(array: azulejo::Array, near: bool) -> Self {
        Self {
            snapshot: Snapshot::clone(&array),
            opened: OnceLock::from(array),
            near,
            few: true,
            cells: OnceLock::new(),
        }
    }

    /// An array whose fragments are looked at when something is first asked of them.
    pub fn unread(snapshot: Snapshot, near: bool, few: bool) -> Self {
        Self {
            snapshot,
            opened: OnceLock::new(),
            near,
            few,
            cells: OnceLock::new(),
        }
    }

    /// The engine's array.
    pub fn engine(&self, py: Python<'_>) -> PyResult<&azulejo::Array> {
        if let Some(array) = self.opened.get() {
            return Ok(array);
        }
        let array = self.look(py, self.near && self.few, Snapshot::array_to_read)?;
        // Of two threads the first one's counts.
        Ok(self.opened.get_or_init(|| array))
    }

    /// Whether a query reads so little that it is over at once.
    fn is_short(&self, array: &azulejo::Array, query: &Query) -> bool {
        let bytes = match query.work {
            Some(bytes) => bytes.saturating_mul(array.fragments().len() as u64),
            None => self.cells(array).saturating_mul(CELL),
        };
        self.near && bytes <= work::SMALL
    }

    /// Cells of all fragments.
    fn cells(&self, array: &azulejo::Array) -> u64 {
        *self.cells.get_or_init(|| {
            array.fragments().iter().fold(0, |cells, fragment| {
                cells.saturating_add(fragment.cell_num())
            })
        })
    }

    /// Does what looks at the array's metadata; Ctrl-C ends it, and nothing else that is read of it.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Snapshot) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.look(py, self.near, work)
    }

    fn look<T: Send>(
        &self,
        py: Python<'_>,
        short: bool,
        work: impl FnOnce(&Snapshot) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        match short {
            true => work::run_short(py, || work(&self.snapshot)),
            false => {
                let snapshot = self.snapshot.cancellable();
                work::run(py, &snapshot.context().cancel_handle(), || work(&snapshot))
            }
        }
    }

    /// Does what takes a while: Ctrl-C ends it, and nothing else that is read of the array.
    fn run_long<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&azulejo::Array) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let array = self.engine(py)?.cancellable();
        work::run(py, &array.context().cancel_handle(), || work(&array))
    }

    /// What it shows, without a look at anything and without waiting for anybody.
    fn inherited_pin(&self) -> Option<PinnedSnapshot> {
        match self.opened.get() {
            Some(array) => Some(array.pin()),
            None => self.snapshot.pin_unread(),
        }
    }

    fn options(&self, py: Python<'_>, query: Query) -> PyResult<ReadOptions> {
        let layout = match query.order.as_str() {
            "row" => Layout::RowMajor,
            "col" => Layout::ColMajor,
            "global" => Layout::Global,
            "unordered" => Layout::Unordered,
            other => {
                let orders = "'row', 'col', 'global' or 'unordered'";
                return Err(PyValueError::new_err(format!(
                    "order is {orders}, not {other:?}"
                )));
            }
        };
        let mut options = ReadOptions::new()
            .fields(query.fields)
            .layout(layout)
            .subarray(subarray(query.ranges, query.points));
        if let Some(text) = &query.condition {
            let condition = self.run(py, |snapshot| snapshot.condition(text))?;
            options = options.condition(condition);
        }
        if let Some(memory) = query.memory {
            options = options.memory_budget(memory);
        }
        if let Some(cells) = query.limit {
            options = options.limit(cells);
        }
        Ok(if query.matching_only {
            options.matching_only()
        } else {
            options
        })
    }
}

fn subarray(ranges: Option<Vec<Option<Selected>>>, points: Option<Vec<PointData>>) -> Subarray {
    if let Some(points) = points {
        let column = |(data, offsets)| PointColumn { data, offsets };
        let coordinates = points.into_iter().map(column).collect();
        return Subarray::Points(Points { coordinates });
    }
    let selection = |selected| match selected {
        None => DimSelection::All,
        Some(Selected::Ranges(ranges)) => {
            let range = |(start, end): Bounds| Range::new(start, end);
            DimSelection::Ranges(ranges.into_iter().map(range).collect())
        }
        Some(Selected::Strided(start, end, step)) => DimSelection::Strided {
            range: Range::new(start, end),
            step,
        },
    };
    Subarray::Box(
        ranges
            .unwrap_or_default()
            .into_iter()
            .map(selection)
            .collect(),
    )
}

/// A box as Python has it: bytes of the bounds of each dimension.
fn bounds<'py>(py: Python<'py>, rectangle: &NdRectangle) -> PyBounds<'py> {
    let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
    let pair = |range: &Range| (bytes(&range.start), bytes(&range.end));
    rectangle.ranges.iter().map(pair).collect()
}

#[pymethods]
impl Array {
    /// The schema as JSON.
    fn schema(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |snapshot| {
            Ok(SchemaDocument::of(snapshot)?.to_json()?.to_string())
        })
    }

    /// The names of what it shows, for others to open it and see the same.
    fn pin<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let pinned = match self.inherited_pin() {
            Some(pinned) => pinned,
            None => self.engine(py)?.pin(),
        };
        Ok(PyBytes::new(py, &pinned.encode()))
    }

    /// The same, if it is known: in a fork's child, which has none of the threads that could look.
    fn known_pin<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        Some(PyBytes::new(py, &self.inherited_pin()?.encode()))
    }

    /// First and last millisecond of what it shows.
    #[getter]
    fn time_range(&self) -> (u64, u64) {
        let opened: Option<&Snapshot> = self.opened.get().map(|array| &**array);
        let time = opened.unwrap_or(&self.snapshot).time_range();
        (time.start, time.end)
    }

    /// The box around all cells written.
    fn non_empty_domain<'py>(&self, py: Python<'py>) -> PyResult<Option<PyBounds<'py>>> {
        let domain = self.engine(py)?.non_empty_domain();
        let domain = domain.map_err(|error| raised(py, &error))?;
        Ok(domain.map(|domain| bounds(py, &domain)))
    }

    /// The key-values: key -> (datatype, bytes).
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metadata = self.run(py, |snapshot| snapshot.metadata().cloned())?;
        crate::context::metadata_dict(py, &metadata)
    }

    /// Cells of all fragments: a query has no more.
    fn most_cells(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.cells(self.engine(py)?))
    }

    /// One dict a fragment, oldest first.
    fn fragments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let info = self.engine(py)?.fragment_info();
        let list = PyList::empty(py);
        for fragment in info.fragments() {
            let dict = PyDict::new(py);
            let time = fragment.time_range();
            py.check_signals()?;
            let size = self.run(py, |_| fragment.size())?;
            dict.set_item("name", fragment.name())?;
            dict.set_item("uri", fragment.uri())?;
            dict.set_item("timestamps", (time.start, time.end))?;
            dict.set_item("dense", fragment.is_dense())?;
            dict.set_item("cells", fragment.cell_num())?;
            dict.set_item("bytes", size)?;
            dict.set_item("version", fragment.version().number())?;
            dict.set_item(
                "domain",
                fragment.non_empty_domain().map(|domain| bounds(py, domain)),
            )?;
            list.append(dict)?;
        }
        Ok(list)
    }

    /// Begins a read.
    fn read(&self, py: Python<'_>, query: Query) -> PyResult<Reader> {
        let array = self.engine(py)?;
        let short = self.is_short(array, &query);
        let options = self.options(py, query)?;
        if short {
            let reader = work::run_short(py, || array.read(options))?;
            let cancel = reader.cancel_handle();
            return Ok(Reader::new(reader, cancel, short));
        }
        // Of its own, which also ends it between tiles.
        let array = array.cancellable();
        let cancel = array.context().cancel_handle();
        let reader = work::run(py, &cancel, || array.read(options))?;
        Ok(Reader::new(reader, cancel, short))
    }

    /// Reads everything: the number of cells, and the columns.
    fn read_all(&self, py: Python<'_>, query: Query) -> PyResult<(usize, Py<PyDict>)> {
        let array = self.engine(py)?;
        if !self.is_short(array, &query) {
            return self.read(py, query)?.read_all(py);
        }
        let options = self.options(py, query)?;
        let set = work::run_short(py, || array.read(options)?.read_all())?;
        columns(py, set)
    }

    /// Computes aggregates, such as `mean:a`. Least and greatest cells are (datatype, bytes).
    fn aggregate<'py>(
        &self,
        py: Python<'py>,
        aggregates: Vec<String>,
        query: Query,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let parsed: Result<Vec<Aggregate>, Error> =
            aggregates.iter().map(|text| text.parse()).collect();
        let parsed = parsed.map_err(|error| raised(py, &error))?;
        let options = self.options(py, query)?;
        let values = self.run_long(py, |array| array.aggregate(options, &parsed))?;
        let value = |value| -> PyResult<Bound<'py, PyAny>> {
            Ok(match value {
                AggregateValue::Null => py.None().into_bound(py),
                AggregateValue::Unsigned(n) => n.into_pyobject(py)?.into_any(),
                AggregateValue::Signed(n) => n.into_pyobject(py)?.into_any(),
                AggregateValue::Real(x) => x.into_pyobject(py)?.into_any(),
                AggregateValue::Cell { datatype, bytes } => {
                    (datatype.name(), PyBytes::new(py, &bytes))
                        .into_pyobject(py)?
                        .into_any()
                }
                other => return Err(PyNotImplementedError::new_err(format!("{other:?}"))),
            })
        };
        values.into_iter().map(value).collect()
    }
}
