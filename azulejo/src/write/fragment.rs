//! The sink of cells: tiles go in, the files of a fragment come out.

use super::commit::WrittenFragment;
use crate::column::FieldView;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use azulejo_format::fragment::{Field, Slots};
use azulejo_format::timestamped_name::TimestampedName;
use azulejo_format::{ArraySchema, FormatVersion, NdRectangle};
use std::ops::Range;
use std::sync::Arc;

/// What a new fragment is to be.
#[derive(Debug, Clone)]
pub struct FragmentSpec {
    /// The array's folder.
    pub location: Location,
    /// The schema of the cells.
    pub schema: Arc<ArraySchema>,
    /// File name of that schema in `__schema`; not looked at below v10, where an array has one schema.
    pub schema_name: String,
    /// The fragment's name. Its version is the fragment's format version, 7 or later.
    pub name: TimestampedName,
    /// The box that was written, for a dense fragment; `None` makes a sparse one.
    pub dense_domain: Option<NdRectangle>,
    /// Whether each cell has its own timestamp ([`Field::Timestamps`]; since v14).
    pub timestamps: bool,
    /// Whether each cell says when and by which condition it was deleted ([`Field::DeleteTimestamps`],
    /// [`Field::DeleteConditions`]; since v15).
    pub delete_metadata: bool,
    /// Delete commits that are applied already: their file names as [`crate::array::DeleteCommit::name`], sorted.
    pub processed_conditions: Vec<String>,
}

/// The cells of one tile.
#[derive(Debug, Clone)]
pub struct TileView<'a> {
    /// Number of cells. A dense tile has those of a space tile, a sparse one the schema's capacity but for the last.
    pub cell_num: u64,
    /// One view a field, in the order of [`FragmentSink::fields`].
    pub fields: Vec<FieldView<'a>>,
    /// Dense: which cells were written, ascending and disjoint; the others hold filling and count in no statistics.
    /// `None` if all were.
    pub written: Option<Vec<Range<u64>>>,
}

/// Writes one fragment, tile by tile. Nothing counts as part of the array before [`WrittenFragment::commit`]; a sink that
/// is dropped unfinished removes its files.
#[derive(Debug)]
pub struct FragmentSink {
    context: Context,
    spec: FragmentSpec,
    version: FormatVersion,
    slots: Slots,
    fields: Vec<Field>,
}

impl FragmentSink {
    /// Makes the fragment's folder and starts its files.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a format version that cannot be written; errors of the storage.
    pub fn new(context: &Context, spec: FragmentSpec) -> Result<Self> {
        let version = azulejo_format::path::fragment_version(&spec.name)
            .map_err(|e| Error::decode(spec.name.to_string(), e))?;
        let slots = Slots::new(version, &spec.schema, spec.timestamps, spec.delete_metadata);
        let stored = |field: &Field| match field {
            Field::ZippedCoords => false,
            Field::Dimension(_) => spec.dense_domain.is_none(),
            _ => true,
        };
        let fields = slots.fields().filter(stored).collect();
        Ok(Self { context: context.clone(), spec, version, slots, fields })
    }

    /// The fields that a tile has, in the order of [`TileView::fields`]: attributes, dimensions (sparse), then, where asked
    /// for, timestamps and delete metadata.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Adds tiles: of a sparse fragment in global order, of a dense one in the tile order of the space tiles that its
    /// domain touches. They are filtered in parallel, so more at once are faster; all of them are held filtered until
    /// they are on storage.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for tiles of another shape than the fragment's; errors of filters and the storage.
    pub fn push(&mut self, tiles: &[TileView<'_>]) -> Result<()> {
        let _ = (tiles, &self.context, self.version, self.slots);
        Err(Error::Unsupported("writing".into()))
    }

    /// Tiles pushed so far.
    #[must_use]
    pub fn tile_num(&self) -> u64 {
        0
    }

    /// Bytes of data files so far.
    #[must_use]
    pub fn stored_size(&self) -> u64 {
        0
    }

    /// Ends all files and writes the fragment's metadata: everything is on storage, nothing counts yet.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if tiles are missing (a fragment holds at least one); errors of the storage.
    pub fn finish(self) -> Result<WrittenFragment> {
        Err(Error::Unsupported(format!("writing {}", self.spec.name)))
    }
}
