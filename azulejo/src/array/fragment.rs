//! A fragment: its footer, and the parts of its metadata that are loaded when they are needed.

use crate::array::TimeRange;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::StorePath;
use azulejo_format::ArraySchema;
use azulejo_format::fragment::{
    Field, FilePart, Footer, FragmentStats, RTree, Section, TileBounds, TileNullCounts, TileSums,
};
use std::ops::Range;
use std::sync::Arc;

/// What is known about the values of each tile of a field.
#[derive(Debug, Clone, Copy)]
pub struct TileStats<'a> {
    /// The least value of each tile.
    pub mins: Option<&'a TileBounds>,
    /// The greatest value of each tile.
    pub maxs: Option<&'a TileBounds>,
    /// The sum of each tile.
    pub sums: Option<&'a TileSums>,
    /// Null cells in each tile.
    pub null_counts: Option<&'a TileNullCounts>,
}

/// One fragment of an open array. Parts of its metadata are loaded on first use, from any thread; to load many at once,
/// use [`Fragment::preload`] or [`Array::preload`](super::Array::preload) first.
#[derive(Debug)]
pub struct Fragment {
    context: Context,
    location: Location,
    name: String,
    time_range: TimeRange,
    schema: Arc<ArraySchema>,
    footer: Footer,
}

impl Fragment {
    /// Its folder's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its folder.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The schema that it was written with.
    #[must_use]
    pub fn schema(&self) -> &Arc<ArraySchema> {
        &self.schema
    }

    /// The basic facts (of v1 and v2 fragments too, which have no footer on disk).
    #[must_use]
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// Whether it is a dense fragment.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.footer.dense
    }

    /// When its cells were written.
    #[must_use]
    pub fn time_range(&self) -> TimeRange {
        self.time_range
    }

    /// Whether each cell has its own timestamp.
    #[must_use]
    pub fn has_timestamps(&self) -> bool {
        self.footer.has_timestamps
    }

    /// Whether each cell says when and by which condition it was deleted.
    #[must_use]
    pub fn has_delete_metadata(&self) -> bool {
        self.footer.has_delete_metadata
    }

    /// The field with this attribute or dimension name **in this fragment**: `None` if the fragment's schema does not
    /// have it, and its cells read as the fill value. A dimension is [`Field::Dimension`] in every version, also where
    /// the fragment stores [`Field::ZippedCoords`].
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Field> {
        let attribute = self.schema.attributes.iter().position(|a| a.name == name).map(Field::Attribute);
        attribute.or_else(|| {
            self.schema.domain.dimensions.iter().position(|d| d.name == name).map(Field::Dimension)
        })
    }

    /// Number of data tiles. Of a dense fragment: the space tiles that its non-empty domain touches.
    #[must_use]
    pub fn tile_num(&self) -> u64 {
        0
    }

    /// Cells in a tile; 0 for a tile that does not exist. Of a dense fragment: those of a whole space tile.
    #[must_use]
    pub fn tile_cell_num(&self, _tile: u64) -> u64 {
        0
    }

    /// Loads sections that are not loaded yet in one batch of reads and decodes them in parallel. Sections that the
    /// fragment does not have are skipped.
    pub fn preload(&self, _sections: &[Section]) -> Result<()> {
        self.missing()
    }

    /// The MBRs of a sparse fragment.
    pub fn rtree(&self) -> Result<&RTree> {
        self.missing()
    }

    /// Minima, maxima, sums and null counts of the field's tiles; `None` if the fragment has none (below v11, zipped
    /// coordinates) or the field is not in the fragment.
    pub fn tile_stats(&self, _field: Field) -> Result<Option<TileStats<'_>>> {
        self.missing()
    }

    /// Min, max, sum and null count of whole fields; `None` if the fragment has none.
    pub fn stats(&self) -> Result<Option<&FragmentStats>> {
        self.missing()
    }

    /// Names of the delete commits that were applied when the fragment was written.
    pub fn processed_conditions(&self) -> Result<&[String]> {
        self.missing()
    }

    /// The file that holds a part of a field. [`Error::Internal`] for a field that the fragment does not store.
    pub fn data_path(&self, _field: Field, _part: FilePart) -> Result<StorePath> {
        self.missing()
    }

    /// Where a tile lies in its file, filtered; checked against the file's size.
    pub fn stored_tile_range(&self, _field: Field, _part: FilePart, _tile: u64) -> Result<Range<u64>> {
        self.missing()
    }

    /// Unfiltered bytes of a tile of a var-length field's values.
    pub fn var_tile_size(&self, _field: Field, _tile: u64) -> Result<u64> {
        self.missing()
    }

    fn missing<T>(&self) -> Result<T> {
        let _ = &self.context;
        Err(Error::Unsupported("not there yet".into()))
    }
}
