//! The core of the Python package `azulejo-db`: thin classes over the engine, which the Python side
//! of the package dresses up.

#![expect(
    clippy::needless_pass_by_value,
    reason = "pyo3 hands what it has taken from Python over by value"
)]

mod array;
mod batches;
mod buffer;
mod context;
#[cfg(feature = "datafusion")]
mod datafusion;
mod error;
mod fields;
mod head;
mod hold;
mod reader;
mod work;

// A dependency that is named is linked whole, and its C functions are exported beside Python's
// entry point: `azulejo_db.as_tiledb` lends them to packages that were built for libtiledb.
#[cfg(target_os = "linux")]
use azulejo_capi as _;
use pyo3::prelude::*;

/// The extension module `azulejo_db._core`.
#[pymodule]
#[pyo3(name = "_core")]
fn core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let threading = module.py().import("threading")?;
    let current = threading.call_method0("current_thread")?;
    if current.is(&threading.call_method0("main_thread")?) {
        work::note_main_thread();
    }
    module.add_class::<context::Context>()?;
    module.add_class::<array::Array>()?;
    module.add_class::<hold::Hold>()?;
    module.add_class::<reader::Reader>()?;
    module.add_class::<batches::Batches>()?;
    module.add_class::<buffer::Buffer>()?;
    module.add_function(wrap_pyfunction!(fields::arrow_fields, module)?)?;
    module.add_function(wrap_pyfunction!(context::knows_setting, module)?)?;
    module.add_function(wrap_pyfunction!(context::setting_names, module)?)?;
    module.add_function(wrap_pyfunction!(context::next_timestamp, module)?)?;
    #[cfg(feature = "datafusion")]
    {
        module.add_function(wrap_pyfunction!(datafusion::datafusion_version, module)?)?;
        module.add_function(wrap_pyfunction!(datafusion::datafusion_table, module)?)?;
    }
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
