//! Record batches of a stream that comes once.

use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use azulejo::Error;
use azulejo::arrow::arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The batches of a capsule's stream, which it has no more afterwards.
#[expect(
    unsafe_code,
    reason = "Arrow's C stream interface, taken from a capsule"
)]
pub fn taken(stream: &Bound<'_, PyCapsule>) -> PyResult<FFI_ArrowArrayStream> {
    let pointer = stream.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: a capsule of this name holds such a stream, which is ours once it is moved out; what
    // stays behind is marked as released.
    Ok(unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) })
}

/// What went wrong with a batch.
pub fn error(error: ArrowError) -> Error {
    Error::InvalidArgument(error.to_string())
}

/// A stream whose batches are kept, so that they can be looked at before they are written.
#[pyclass(frozen)]
#[derive(Debug)]
pub struct Batches {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Batches {
    #[new]
    fn new(py: Python<'_>, stream: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let stream = taken(stream)?;
        // Others go on meanwhile: the stream may be a query of theirs, or need Python on another thread.
        let collected = py.detach(|| {
            let reader = ArrowArrayStreamReader::try_new(stream)?;
            let schema = reader.schema();
            let batches = reader.collect::<Result<_, _>>()?;
            Ok::<_, ArrowError>(Self { schema, batches })
        });
        collected.map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// The batches, as often as they are asked for.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__(
        &self,
        py: Python<'_>,
        requested_schema: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyCapsule>> {
        // Who asks for another one gets what there is, as the interface allows.
        drop(requested_schema);
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        let batches = RecordBatchIterator::new(batches, SchemaRef::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        Ok(PyCapsule::new_with_value(py, stream, c"arrow_array_stream")?.unbind())
    }
}
