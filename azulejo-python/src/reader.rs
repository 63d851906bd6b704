//! A read under way.

use crate::buffer::{self, Buffer};
use crate::work;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use azulejo::CancelHandle;
use azulejo::arrow::arrow_schema::{ArrowError, SchemaRef};
use azulejo::arrow::{ArrowOptions, RecordBatches};
use azulejo::column::ColumnMut;
use azulejo::format::CellValNum;
use azulejo::{ColumnSet, Error};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::sync::{Arc, Mutex};

/// A read under way: an iterator of batches, each a dict of columns.
#[pyclass(frozen)]
#[derive(Debug)]
pub struct Reader {
    cancel: CancelHandle,
    /// It is over at once.
    short: bool,
    /// `None` once it was given away or an error came.
    reader: Mutex<Option<azulejo::Reader>>,
    /// The engine's error that ended the stream which was made of it.
    failure: Failure,
}

type Failure = Arc<Mutex<Option<Error>>>;

/// Record batches whose consumers, on threads of their own and in other languages, get the text of an
/// error: the error itself is kept for the caller.
#[derive(Debug)]
struct Told<R> {
    batches: R,
    failure: Failure,
}

impl<R: RecordBatchReader> Iterator for Told<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let error = match self.batches.next()? {
            Err(ArrowError::ExternalError(error)) => error,
            other => return Some(other),
        };
        let text = error.to_string();
        if let (Ok(error), Ok(mut place)) = (error.downcast::<Error>(), self.failure.lock()) {
            *place = Some(*error);
        }
        Some(Err(ArrowError::ExternalError(text.into())))
    }
}

impl<R: RecordBatchReader> RecordBatchReader for Told<R> {
    fn schema(&self) -> SchemaRef {
        self.batches.schema()
    }
}

/// Where the cells of a field go: values, starts, validity.
type Memory = (PyBuffer<u8>, Option<PyBuffer<u64>>, Option<PyBuffer<u8>>);

impl Reader {
    /// A reader that was just begun, and what ends it and no other.
    pub fn new(reader: azulejo::Reader, cancel: CancelHandle, short: bool) -> Self {
        Self {
            cancel,
            short,
            reader: Mutex::new(Some(reader)),
            failure: Failure::default(),
        }
    }

    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        match self.short {
            true => work::run_short(py, work),
            false => work::run(py, &self.cancel, work),
        }
    }

    fn take(&self) -> PyResult<azulejo::Reader> {
        let mut reader = self.reader.lock().map_err(|_| spent())?;
        reader.take().ok_or_else(spent)
    }

    /// The rest as record batches.
    fn batches(&self, py: Python<'_>, views: bool, raw: bool) -> PyResult<Told<RecordBatches>> {
        let batches = self
            .take()?
            .record_batches(ArrowOptions::new().raw(raw).views(views).null_times(true))
            .map_err(|error| crate::error::raised(py, &error))?;
        Ok(Told {
            batches,
            failure: Arc::clone(&self.failure),
        })
    }

    fn put_back(&self, reader: azulejo::Reader) {
        if let Ok(mut place) = self.reader.lock() {
            *place = Some(reader);
        }
    }
}

fn spent() -> PyErr {
    PyRuntimeError::new_err("this reader was read already")
}

/// The columns of a batch: name -> (datatype, cell_val_num, nullable, data, offsets, validity).
pub fn columns(py: Python<'_>, set: ColumnSet) -> PyResult<(usize, Py<PyDict>)> {
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
    pub fn read_all(&self, py: Python<'_>) -> PyResult<(usize, Py<PyDict>)> {
        let reader = self.take()?;
        let set = self.run(py, || reader.read_all())?;
        columns(py, set)
    }

    /// The next batch, `None` at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<(usize, Py<PyDict>)>> {
        let Ok(mut reader) = self.take() else {
            return Ok(None);
        };
        let (reader, batch) = self.run(py, || {
            let batch = reader.next().transpose()?;
            Ok::<_, Error>((reader, batch))
        })?;
        let Some(batch) = batch else {
            return Ok(None);
        };
        self.put_back(reader);
        columns(py, batch).map(Some)
    }

    /// Ends the read from another thread: it raises `CancelledError`. No other read is concerned.
    fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Fills memory of the caller's: values, starts and validity of each field. Returns the number
    /// of cells, and whether these were all that are left.
    fn read_into(&self, py: Python<'_>, memory: Vec<Memory>) -> PyResult<(usize, bool)> {
        let mut parts = Vec::with_capacity(memory.len());
        for (data, offsets, validity) in &memory {
            parts.push(ColumnMut {
                data: buffer::slice_mut(data)?,
                offsets: offsets.as_ref().map(buffer::slice_mut).transpose()?,
                validity: validity.as_ref().map(buffer::slice_mut).transpose()?,
            });
        }
        let mut reader = self.take()?;
        let (reader, progress) = self.run(py, move || {
            let progress = reader.read_into(&mut parts)?;
            Ok::<_, Error>((reader, progress))
        })?;
        self.put_back(reader);
        Ok((progress.cells, progress.complete))
    }

    /// The rest as a capsule of Arrow's C stream interface; with `views`, text and bytes as views;
    /// `raw`: values as they are stored. What is no time (NaT) is null.
    fn arrow_stream(&self, py: Python<'_>, views: bool, raw: bool) -> PyResult<Py<PyCapsule>> {
        let stream = FFI_ArrowArrayStream::new(Box::new(self.batches(py, views, raw)?));
        let capsule = PyCapsule::new_with_value(py, stream, c"arrow_array_stream")?;
        Ok(capsule.unbind())
    }

    /// The exception of what ended that stream, if the engine did.
    fn failure(&self, py: Python<'_>) -> Option<PyErr> {
        let place = self.failure.lock().ok()?;
        place.as_ref().map(|error| crate::error::raised(py, error))
    }

    /// What that stream's batches are like, as a capsule of Arrow's C schema interface. Nothing is
    /// read, and nothing can be after this.
    fn arrow_schema(&self, py: Python<'_>, views: bool, raw: bool) -> PyResult<Py<PyCapsule>> {
        let schema = self.batches(py, views, raw)?.schema();
        let schema = FFI_ArrowSchema::try_from(schema.as_ref())
            .map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
        Ok(PyCapsule::new_with_value(py, schema, c"arrow_schema")?.unbind())
    }
}
