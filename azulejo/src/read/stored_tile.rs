//! Where a tile of a field lies in the files of its fragment.

use crate::array::{Array, Fragment};
use crate::error::{Error, Result};
use crate::storage::{ReadRange, ReadRequest};
use azulejo_format::fragment::{Field, FilePart};
use std::ops::Range;

/// A stored tile: the filtered bytes of one part of one tile of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StoredTile {
    /// Index of the fragment in the array.
    pub fragment: usize,
    /// The field, as the fragment stores it.
    pub field: Field,
    /// Which of the field's files.
    pub part: FilePart,
    /// Index of the tile in the fragment.
    pub tile: u64,
}

impl StoredTile {
    /// Where it lies in its file.
    pub fn range(&self, array: &Array) -> Result<Range<u64>> {
        let fragment = fragment_of(array, self.fragment)?.loaded();
        fragment.stored_tile_range(self.field, self.part, self.tile)
    }

    /// Bytes that it takes in its file.
    pub fn len(&self, array: &Array) -> Result<u64> {
        let range = self.range(array)?;
        Ok(range.end.saturating_sub(range.start))
    }

    /// Its file, to be named in an error.
    pub fn path(&self, array: &Array) -> String {
        let path = fragment_of(array, self.fragment)
            .and_then(|fragment| fragment.data_path(self.field, self.part));
        path.map_or_else(|_| String::new(), |path| path.to_string())
    }

    /// What reads it.
    pub fn request(&self, array: &Array) -> Result<ReadRequest> {
        Ok(ReadRequest {
            path: fragment_of(array, self.fragment)?.data_path(self.field, self.part)?,
            range: ReadRange::Bytes(self.range(array)?),
        })
    }
}

/// A fragment by its index in the array.
pub(super) fn fragment_of(array: &Array, index: usize) -> Result<&Fragment> {
    let fragment = array.fragments().get(index);
    fragment.ok_or_else(|| Error::Internal(format!("no fragment {index}")))
}
