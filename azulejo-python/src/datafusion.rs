//! Arrays as tables in the Python wheel `datafusion`, which has a DataFusion of its own.

use crate::array::Array;
use azulejo_sql::foreign::{self, FFI_LogicalExtensionCodec};
use azulejo_sql::{ArrayTable, TableOptions};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::{Builder, Handle, Runtime};

/// What the capsule of the other side's codec is called.
const CODEC: &std::ffi::CStr = c"datafusion_logical_extension_codec";

/// What the capsule of a table is called.
const TABLE: &std::ffi::CStr = c"datafusion_table_provider";

/// The threads of one process on which scans wait for storage.
static RUNTIME: Mutex<Option<(u32, Runtime)>> = Mutex::new(None);

/// Those threads; after a fork there are none, and others begin.
fn runtime() -> std::io::Result<Handle> {
    let mut known = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, runtime)) = known.as_ref()
        && *owner == process
    {
        return Ok(runtime.handle().clone());
    }
    // To drop another process's would wait for threads that are not here.
    std::mem::forget(known.take());
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("azulejo-sql")
        .build()?;
    let (_, runtime) = known.insert((process, runtime));
    Ok(runtime.handle().clone())
}

/// The major version of DataFusion that a wheel must have to take our tables.
#[pyfunction]
pub fn datafusion_version() -> u64 {
    foreign::version()
}

/// The capsule of an array's table, for the session whose codec a capsule has. A table that is
/// `live` shows what has been written before each query, and takes rows; others stay as the array
/// is now.
#[pyfunction]
#[expect(unsafe_code, reason = "the codec of another library, from a capsule")]
pub fn datafusion_table<'py>(
    py: Python<'py>,
    array: &Bound<'py, Array>,
    codec: &Bound<'py, PyCapsule>,
    live: bool,
) -> PyResult<Bound<'py, PyCapsule>> {
    let pointer = codec.pointer_checked(Some(CODEC))?;
    // SAFETY: a capsule of this name holds such a codec; whoever calls has seen that it belongs to
    // our version of DataFusion, whose layout it then has.
    let codec: &FFI_LogicalExtensionCodec = unsafe { pointer.cast().as_ref() };
    let codec = codec.clone();
    let array = array.get().engine(py)?;
    let opened = py.detach(|| {
        // Of its own, so that Ctrl-C while the array is read ends no query.
        let context = array.context().cancellable();
        let place = context.array(&array.uri().to_string());
        match live {
            true => ArrayTable::open(place, TableOptions::new()),
            false => ArrayTable::open_pinned(place, &array.pin(), TableOptions::new()),
        }
    });
    let table = opened.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let runtime = runtime().map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let table = foreign::table_provider(Arc::new(table), codec, runtime);
    PyCapsule::new_with_value(py, table, TABLE)
}
