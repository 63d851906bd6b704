//! From tiles and slabs to columns: copies of whole runs, parallel over disjoint parts of the output.

use super::unfilter::Tile;
use crate::column::{ColumnBuffers, ColumnType};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::space::CellSlab;
use azulejo_format::schema::Attribute;
use std::sync::Arc;

/// What cells read as that no fragment has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FillCell {
    /// The bytes of one cell.
    pub bytes: Vec<u8>,
    /// Whether the cell counts as valid, if the field is nullable.
    pub valid: bool,
}

impl FillCell {
    /// The fill of an attribute.
    #[must_use]
    pub fn of(attribute: &Attribute) -> Self {
        Self { bytes: attribute.fill_value.clone(), valid: attribute.fill_validity }
    }
}

/// Makes a column of the cells that `slabs` name, in their order.
///
/// `tiles[slab.tile]` is the field's tile; `None` where the fragment has no such field, whose cells then read as `fill`.
pub fn gather_slabs(
    context: &Context,
    slabs: &[CellSlab],
    tiles: &[Option<Arc<Tile>>],
    column_type: &ColumnType,
    fill: &FillCell,
) -> Result<ColumnBuffers> {
    let _ = (context, slabs, tiles, column_type, fill);
    Err(Error::Unsupported("columns are not gathered yet".into()))
}
