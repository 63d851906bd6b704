//! A read under way.

use crate::buffer::Buffer;
use crate::work;
use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use azulejo::arrow::ArrowOptions;
use azulejo::format::CellValNum;
use azulejo::{ColumnSet, Context, Error};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::sync::Mutex;

/// A read under way: an iterator of batches, each a dict of columns.
#[pyclass(frozen)]
#[derive(Debug)]
pub struct Reader {
    context: Context,
    /// `None` once it was given away or an error came.
    reader: Mutex<Option<azulejo::Reader>>,
}

impl Reader {
    /// A reader that was just begun.
    pub fn new(context: Context, reader: azulejo::Reader) -> Self {
        Self {
            context,
            reader: Mutex::new(Some(reader)),
        }
    }

    fn take(&self) -> PyResult<azulejo::Reader> {
        let mut reader = self.reader.lock().map_err(|_| spent())?;
        reader.take().ok_or_else(spent)
    }
}

fn spent() -> PyErr {
    PyRuntimeError::new_err("this reader was read already")
}

/// The columns of a batch: name -> (datatype, cell_val_num, nullable, data, offsets, validity).
fn columns(py: Python<'_>, set: ColumnSet) -> PyResult<(usize, Py<PyDict>)> {
    let columns = PyDict::new(py);
    for column in set.columns {
        let kind = column.column_type;
        let values = match kind.cell_val_num {
            CellValNum::Var => None,
            CellValNum::Fixed(n) => Some(n),
        };
        let labels = kind
            .enumeration
            .as_ref()
            .map(|enumeration| enumeration.name.clone());
        let buffers = (
            Buffer::new(column.data),
            column.offsets.map(Buffer::new),
            column.validity.map(Buffer::new),
        );
        columns.set_item(&*kind.name, (kind.datatype.name(), values, labels, buffers))?;
    }
    Ok((set.cell_num, columns.unbind()))
}

#[pymethods]
impl Reader {
    /// All that is left: the number of cells, and the columns.
    fn read_all(&self, py: Python<'_>) -> PyResult<(usize, Py<PyDict>)> {
        let reader = self.take()?;
        let set = work::run(py, &self.context, || reader.read_all())?;
        columns(py, set)
    }

    /// The next batch, `None` at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<(usize, Py<PyDict>)>> {
        let Ok(mut reader) = self.take() else {
            return Ok(None);
        };
        let (reader, batch) = work::run(py, &self.context, || {
            let batch = reader.next().transpose()?;
            Ok::<_, Error>((reader, batch))
        })?;
        let Some(batch) = batch else {
            return Ok(None);
        };
        if let Ok(mut place) = self.reader.lock() {
            *place = Some(reader);
        }
        columns(py, batch).map(Some)
    }

    /// The rest as a capsule of Arrow's C stream interface.
    fn arrow_stream(&self, py: Python<'_>) -> PyResult<Py<PyCapsule>> {
        let batches = self
            .take()?
            .record_batches(ArrowOptions::default())
            .map_err(|error| crate::error::raised(py, &error))?;
        let batches: Box<dyn RecordBatchReader + Send> = Box::new(batches);
        let stream = FFI_ArrowArrayStream::new(batches);
        let capsule = PyCapsule::new_with_value(py, stream, c"arrow_array_stream")?;
        Ok(capsule.unbind())
    }
}
