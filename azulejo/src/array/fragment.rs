//! A fragment: its footer, and the parts of its metadata that are loaded when they are needed.

use super::TimeRange;
use super::sections::Sections;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::StorePath;
use azulejo_format::fragment::{
    Field, FilePart, Footer, LegacyMetadata, TileBounds, TileNullCounts, TileOffsets, TileSums,
    data_file_name,
};
use azulejo_format::path::FRAGMENT_METADATA_FILE;
use azulejo_format::timestamped_name::TimestampedName;
use azulejo_format::{ArraySchema, DecodeError, FormatVersion, NdRectangle};
use bytes::Bytes;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// What is known about the values of each tile of a field.
#[derive(Debug, Clone, Copy, Default)]
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

/// One fragment of an open array. Parts of its metadata are loaded on first use, from any thread;
/// to load many at once, use [`Fragment::preload`] or [`Array::preload`](super::Array::preload)
/// first.
#[derive(Debug)]
pub struct Fragment {
    pub(super) context: Context,
    location: Location,
    name: TimestampedName,
    schema: Arc<ArraySchema>,
    /// Attributes whose labels were others than those that the array has now.
    relabelled: Arc<[String]>,
    footer: Footer,
    /// The footer's box without NaN, if it has any.
    beyond_nan: Option<Box<NdRectangle>>,
    tile_num: u64,
    /// Cells of a whole tile: a space tile of a dense fragment, the capacity of a sparse one.
    tile_cells: u64,
    has_consolidated_footer: bool,
    metadata_size: OnceLock<u64>,
    /// The last bytes of the metadata file, from which the footer was read.
    metadata_tail: Bytes,
    sections: OnceLock<Box<Sections>>,
}

/// What opening an array has found out about a fragment.
pub(super) struct NewFragment {
    pub context: Context,
    pub location: Location,
    pub name: TimestampedName,
    pub schema: Arc<ArraySchema>,
    pub relabelled: Arc<[String]>,
    pub has_consolidated_footer: bool,
    pub metadata_size: Option<u64>,
    pub metadata_tail: Bytes,
}

impl Fragment {
    /// A fragment with a footer.
    pub(super) fn new(new: NewFragment, footer: Footer) -> Result<Self, DecodeError> {
        let (tile_num, tile_cells) = if footer.dense {
            dense_tiles(footer.non_empty_domain.as_ref(), &new.schema)?
        } else {
            (footer.sparse_tile_num, new.schema.capacity)
        };
        // Every tile takes an entry in the tile offsets, which nobody could hold.
        if tile_num.checked_mul(tile_cells.max(8)).is_none() {
            return Err(DecodeError::invalid(
                "fragment",
                0,
                format!("{tile_num} tiles are too many"),
            ));
        }
        let NewFragment {
            context,
            location,
            name,
            schema,
            relabelled,
            has_consolidated_footer,
            metadata_size,
            metadata_tail,
        } = new;
        let domain = footer.non_empty_domain.as_ref();
        let beyond_nan = domain.and_then(|domain| schema.domain.without_nan(domain));
        Ok(Self {
            context,
            location,
            name,
            beyond_nan: beyond_nan.map(Box::new),
            schema,
            relabelled,
            footer,
            tile_num,
            tile_cells,
            has_consolidated_footer,
            metadata_size: metadata_size.map(OnceLock::from).unwrap_or_default(),
            metadata_tail,
            sections: OnceLock::new(),
        })
    }

    /// A v1 or v2 fragment, all of whose metadata was read at once.
    pub(super) fn legacy(new: NewFragment, metadata: LegacyMetadata) -> Result<Self, DecodeError> {
        let mut fragment = Self::new(new, metadata.footer.clone())?;
        let tiles = fragment.tile_num;
        let stored = |field: &Field| fragment.stores(*field);
        let wrong = fragment.footer.slots.fields().filter(stored).find(|field| {
            let len = |offsets: Option<&TileOffsets>| offsets.map_or(0, TileOffsets::len) as u64;
            len(metadata.offsets(*field)) != tiles
                || (field.is_var(&fragment.schema)
                    && (len(metadata.var_offsets(*field)) != tiles
                        || metadata
                            .var_sizes(*field)
                            .map_or(0, |sizes| sizes.sizes.len())
                            as u64
                            != tiles))
        });
        if let Some(field) = wrong {
            let reason =
                format!("{field:?} has another number of tiles than the fragment's {tiles}");
            return Err(DecodeError::invalid("tile offsets", 0, reason));
        }
        let dimensions = fragment.schema.domain.dimensions.len();
        fragment.sections = OnceLock::from(Box::new(Sections::of_legacy(metadata, dimensions)));
        Ok(fragment)
    }

    /// Its folder's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.location.path.name()
    }

    /// The parsed name.
    #[must_use]
    pub fn timestamped_name(&self) -> &TimestampedName {
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

    /// Attributes of [`Self::schema`] that had other labels than the array's attributes of the same
    /// names: those have no cells here.
    pub(crate) fn relabelled(&self) -> &[String] {
        &self.relabelled
    }

    /// The format version that it was written in.
    #[must_use]
    pub fn version(&self) -> FormatVersion {
        self.footer.version
    }

    /// The basic facts (of v1 and v2 fragments too, which have no footer on disk).
    #[must_use]
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// The box that its cells lie in: that of the footer, unless that has NaN for a bound and says
    /// nothing.
    #[must_use]
    pub fn reach(&self) -> Option<&NdRectangle> {
        let told = self.footer.non_empty_domain.as_ref();
        self.beyond_nan.as_deref().or(told)
    }

    /// Whether the footer's box has NaN for a bound.
    pub(super) fn has_nan_bounds(&self) -> bool {
        self.beyond_nan.is_some()
    }

    /// Whether it is a dense fragment.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.footer.dense
    }

    /// When its cells were written.
    #[must_use]
    pub fn time_range(&self) -> TimeRange {
        TimeRange {
            start: self.name.t_start,
            end: self.name.t_end,
        }
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

    /// Whether its footer came from consolidated fragment metadata.
    #[must_use]
    pub fn has_consolidated_footer(&self) -> bool {
        self.has_consolidated_footer
    }

    /// The field with this attribute or dimension name **in this fragment**: `None` if the
    /// fragment's schema does not have it, and its cells read as the fill value. A dimension is
    /// [`Field::Dimension`] in every version, also where the fragment stores
    /// [`Field::ZippedCoords`] (see [`Self::stored_field`]).
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Field> {
        let attribute = self
            .schema
            .attributes
            .iter()
            .position(|a| a.name == name)
            .map(Field::Attribute);
        attribute.or_else(|| self.schema.domain.index_of(name).map(Field::Dimension))
    }

    /// The field whose files hold `field`: [`Field::ZippedCoords`] for the dimensions of fragments
    /// below v5.
    #[must_use]
    pub fn stored_field(&self, field: Field) -> Field {
        match field {
            Field::Dimension(_) if !self.version().has_separate_dimensions() => Field::ZippedCoords,
            field => field,
        }
    }

    /// Whether the fragment has files for a field: dense ones have none for coordinates.
    #[must_use]
    pub fn stores(&self, field: Field) -> bool {
        self.footer.slots.of(field).is_some()
            && match field {
                Field::Attribute(_) => true,
                Field::Dimension(_) => !self.footer.dense,
                Field::ZippedCoords => {
                    !self.footer.dense && !self.version().has_separate_dimensions()
                }
                Field::Timestamps => self.footer.has_timestamps,
                Field::DeleteTimestamps | Field::DeleteConditions => {
                    self.footer.has_delete_metadata
                }
            }
    }

    /// Number of data tiles. Of a dense fragment: the space tiles that its non-empty domain
    /// touches.
    #[must_use]
    pub fn tile_num(&self) -> u64 {
        self.tile_num
    }

    /// Cells in a tile; 0 for a tile that does not exist. Of a dense fragment: those of a whole
    /// space tile.
    #[must_use]
    pub fn tile_cell_num(&self, tile: u64) -> u64 {
        if !self.footer.dense {
            return self.footer.sparse_tile_cell_num(tile, self.schema.capacity);
        }
        if tile < self.tile_num {
            self.tile_cells
        } else {
            0
        }
    }

    /// Cells in all tiles. Of a dense fragment: those of its space tiles, wherever the non-empty
    /// domain ends.
    #[must_use]
    pub fn cell_num(&self) -> u64 {
        if !self.footer.dense {
            return self.footer.sparse_cell_num(self.schema.capacity);
        }
        self.tile_num.saturating_mul(self.tile_cells)
    }

    /// The file that holds a part of a field. [`Error::Internal`] for a field that the fragment's
    /// schema does not have.
    pub fn data_path(&self, field: Field, part: FilePart) -> Result<StorePath> {
        match data_file_name(field, part, &self.schema, self.footer.version) {
            Some(name) => Ok(self.location.path.join(&name)),
            None => Err(Error::Internal(format!(
                "{}: there is no file of {field:?}",
                self.location.path
            ))),
        }
    }

    /// Size in bytes of the metadata file.
    pub fn metadata_size(&self) -> Result<u64> {
        match self.metadata_size.get() {
            Some(size) => Ok(*size),
            None => {
                let size = self.location.storage.size(&self.metadata_path())?;
                Ok(*self.metadata_size.get_or_init(|| size))
            }
        }
    }

    /// The metadata file.
    #[must_use]
    pub fn metadata_path(&self) -> StorePath {
        self.location.path.join(FRAGMENT_METADATA_FILE)
    }

    pub(super) fn sections(&self) -> &Sections {
        let new = || {
            Box::new(Sections::new(
                self.footer.slots,
                self.schema.domain.dimensions.len(),
            ))
        };
        self.sections.get_or_init(new)
    }

    pub(super) fn known_metadata_size(&self) -> Option<u64> {
        self.metadata_size.get().copied()
    }

    pub(super) fn set_metadata_size(&self, size: u64) {
        self.metadata_size.get_or_init(|| size);
    }

    /// Bytes of the metadata file that opening the array has already read.
    pub(super) fn cached_metadata(&self, range: &Range<u64>) -> Option<Bytes> {
        let size = *self.metadata_size.get()?;
        let start = size.checked_sub(self.metadata_tail.len() as u64)?;
        let from = usize::try_from(range.start.checked_sub(start)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(start)?).ok()?;
        (from <= to && to <= self.metadata_tail.len()).then(|| self.metadata_tail.slice(from..to))
    }
}

/// Number of space tiles that a dense fragment with this non-empty domain covers, and cells in
/// each.
pub(crate) fn dense_tiles(
    non_empty_domain: Option<&NdRectangle>,
    schema: &ArraySchema,
) -> Result<(u64, u64), DecodeError> {
    const WHAT: &str = "non-empty domain";
    let mut cells = 1u128;
    let mut tiles = 1u64;
    let ranges = non_empty_domain.map(|domain| &domain.ranges);
    for (i, dimension) in schema.domain.dimensions.iter().enumerate() {
        let axis = dimension.axis().ok_or_else(|| {
            DecodeError::invalid(
                WHAT,
                0,
                format!("dimension {:?} cannot be of a dense array", dimension.name),
            )
        })?;
        cells = cells.saturating_mul(axis.extent());
        let Some(ranges) = ranges else { continue };
        let offsets = ranges.get(i).and_then(|range| {
            let (start, end) = (axis.offset_of(&range.start)?, axis.offset_of(&range.end)?);
            (start <= end).then_some((start, end))
        });
        let (start, end) = offsets.ok_or_else(|| {
            DecodeError::invalid(
                WHAT,
                0,
                format!(
                    "it lies outside the domain of dimension {:?}",
                    dimension.name
                ),
            )
        })?;
        let count = (axis.tile_of(end) - axis.tile_of(start)).checked_add(1);
        tiles = count
            .and_then(|count| tiles.checked_mul(count))
            .ok_or_else(|| DecodeError::invalid(WHAT, 0, "it has more than 2^64 tiles"))?;
    }
    let cells = u64::try_from(cells)
        .map_err(|_| DecodeError::invalid(WHAT, 0, "a space tile has more than 2^64 cells"))?;
    Ok((if ranges.is_some() { tiles } else { 0 }, cells))
}
