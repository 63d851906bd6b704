//! What a pipeline must know of the field whose tile it filters.

use super::EncryptionKey;
use crate::datatype::{CellValNum, Datatype};
use crate::version::FormatVersion;

/// The tile that a pipeline works on.
///
/// | tile | datatype | cell val num |
/// |---|---|---|
/// | fixed-size data | the field's | the field's |
/// | var-size data | the field's | [`CellValNum::Var`] |
/// | offsets | `UINT64` | 1 |
/// | validity | `UINT8` | 1 |
/// | zipped coordinates (below v5) | the dimensions' | the number of dimensions |
/// | timestamps, delete metadata | `UINT64` | 1 |
/// | generic tile | its header's | cell size / datatype size |
#[derive(Debug, Clone, Copy)]
pub struct FilterContext<'a> {
    /// The version of the fragment (or of the generic tile).
    pub version: FormatVersion,
    /// The type of the tile's values.
    pub datatype: Datatype,
    /// Values in a cell.
    pub cell_val_num: CellValNum,
    /// The key of an encrypted array: AES-256-GCM then follows the last filter, unless the pipeline
    /// names it itself (as headers of generic tiles do).
    pub key: Option<&'a EncryptionKey>,
}

impl FilterContext<'_> {
    /// The context of an offsets tile in the same fragment.
    #[must_use]
    pub fn offsets(self) -> Self {
        Self {
            datatype: Datatype::UInt64,
            cell_val_num: CellValNum::ONE,
            ..self
        }
    }

    /// The context of a validity tile in the same fragment.
    #[must_use]
    pub fn validity(self) -> Self {
        Self {
            datatype: Datatype::UInt8,
            cell_val_num: CellValNum::ONE,
            ..self
        }
    }

    /// Bytes of a cell in the tile, those of a value where cells vary: what run lengths count and
    /// chunks are rounded to.
    pub(crate) fn cell_size(&self) -> usize {
        self.cell_val_num
            .cell_size(self.datatype)
            .unwrap_or(self.datatype.size())
            .max(1)
    }
}
