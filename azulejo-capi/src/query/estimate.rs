//! Estimated result sizes: upper bounds from the selection and from metadata.

use super::State;
use crate::array::OpenArray;
use crate::error::{Failure, Result};
use azulejo::space::Subarray;
use azulejo_format::fragment::Field;

/// Bytes of values, offsets and validity that a read of a field is estimated to give.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sizes {
    /// Values.
    pub data: u64,
    /// Offsets; 0 for fixed-length cells.
    pub offsets: u64,
    /// Validity; 0 for fields that cannot be null.
    pub validity: u64,
}

/// Estimates a field, which must be of the shape that the function is for.
pub fn sizes(state: &State, open: &OpenArray, name: &str, var: bool, nullable: bool) -> Result<Sizes> {
    let array = open.array();
    let schema = array.schema();
    let field = schema.field(name);
    let field = field.ok_or_else(|| {
        Failure::new(format!("Cannot get estimated result size; there is no field '{name}'"))
    })?;
    let is = |yes: bool, what: &'static str| if yes { what.to_owned() } else { format!("not {what}") };
    for (wanted, found, what) in
        [(var, schema.is_var(field), "var-sized"), (nullable, schema.is_nullable(field), "nullable")]
    {
        if wanted != found {
            return Err(Failure::new(format!(
                "Cannot get estimated result size; field '{name}' is {}",
                is(found, what)
            )));
        }
    }
    let subarray = match &state.subarray {
        Some(ranges) => ranges.subarray()?,
        None => Subarray::all(),
    };
    let stored: u64 = array.fragments().iter().map(azulejo::array::Fragment::cell_num).sum();
    let cells = if schema.is_dense() {
        let cells = subarray.cell_num(schema).and_then(|cells| u64::try_from(cells).ok());
        cells.ok_or_else(|| Failure::new("more cells than fit memory are selected"))?
    } else {
        stored
    };
    let mut sizes = Sizes::default();
    match schema.cell_size(field) {
        Some(size) => sizes.data = cells.saturating_mul(size as u64),
        None => {
            sizes.offsets = cells.saturating_mul(8);
            for fragment in array.fragments() {
                let Some(own) = fragment.field(name) else { continue };
                sizes.data = sizes.data.saturating_add(var_bytes(fragment, own)?);
            }
        }
    }
    if schema.is_nullable(field) {
        sizes.validity = cells;
    }
    Ok(sizes)
}

/// Bytes of all var-length values of a field of a fragment.
fn var_bytes(fragment: &azulejo::array::Fragment, field: Field) -> Result<u64> {
    let mut total = 0u64;
    for tile in 0..fragment.tile_num() {
        total = total.saturating_add(fragment.var_tile_size(field, tile)?);
    }
    Ok(total)
}
