//! What the columns of an Arrow table become in an array.

use crate::error::raised;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use azulejo::Error;
use azulejo::arrow::ArrowFields;
use azulejo::arrow::arrow_schema::Schema;
use azulejo::format::{ArraySchema, CellValNum};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A field: name, datatype, values a cell (`None`: any number), whether it has nulls.
type Field = (String, &'static str, Option<u32>, bool);

/// No column has this name: dimensions are chosen later.
const NO_COLUMN: &str = "\0";

/// The fields that the columns of a table become: of a capsule of Arrow's C schema or C stream
/// interface, which stays as it is.
#[pyfunction]
pub fn arrow_fields(py: Python<'_>, capsule: &Bound<'_, PyCapsule>) -> PyResult<Vec<Field>> {
    let schema = match capsule.pointer_checked(Some(c"arrow_schema")) {
        Ok(pointer) => schema_at(pointer.cast().as_ptr())?,
        Err(_) => {
            let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
            schema_of_stream(stream.cast().as_ptr())?
        }
    };
    let new = ArraySchema::sparse()
        .dimension(NO_COLUMN, 0i64..=0, 1)
        .arrow_fields(&schema)
        .and_then(|builder| {
            let built = builder.build();
            built.map_err(|error| Error::SchemaMismatch(error.to_string()))
        })
        .map_err(|error| raised(py, &error))?;
    let field = |attribute: azulejo::format::schema::Attribute| {
        let values = match attribute.cell_val_num {
            CellValNum::Var => None,
            CellValNum::Fixed(n) => Some(n),
        };
        (
            attribute.name,
            attribute.datatype.name(),
            values,
            attribute.nullable,
        )
    };
    Ok(new.schema.attributes.into_iter().map(field).collect())
}

fn parsed(schema: &FFI_ArrowSchema) -> PyResult<Schema> {
    Schema::try_from(schema).map_err(|e| PyValueError::new_err(e.to_string()))
}

#[expect(
    unsafe_code,
    reason = "Arrow's C schema interface, looked at in a capsule"
)]
fn schema_at(pointer: *const FFI_ArrowSchema) -> PyResult<Schema> {
    // SAFETY: a capsule of this name holds such a schema, and keeps it while we look.
    parsed(unsafe { &*pointer })
}

#[expect(
    unsafe_code,
    reason = "Arrow's C stream interface, asked for its schema in a capsule"
)]
fn schema_of_stream(pointer: *mut FFI_ArrowArrayStream) -> PyResult<Schema> {
    // SAFETY: a capsule of this name holds such a stream. One that was taken out of it before has
    // neither function. The schema may be asked for any number of times, and is then ours.
    let (code, schema) = unsafe {
        let (Some(_), Some(ask)) = ((*pointer).release, (*pointer).get_schema) else {
            return Err(PyValueError::new_err("this Arrow stream was read already"));
        };
        let mut schema = FFI_ArrowSchema::empty();
        (ask(pointer, &raw mut schema), schema)
    };
    match code {
        0 => parsed(&schema),
        code => Err(PyValueError::new_err(format!(
            "the Arrow stream has no schema: error {code}"
        ))),
    }
}
