//! What is loaded of a fragment's metadata: a view that cannot read storage.

use super::Fragment;
use super::fragment::TileStats;
use super::sections::FieldSections;
use crate::error::{Error, Result};
use azulejo_format::DecodeError;
use azulejo_format::fragment::{Field, FilePart, ProcessedConditions, RTree, Section};
use std::ops::Range;
use std::sync::OnceLock;

/// The sections of a fragment's metadata that are loaded.
///
/// What is stored but was not loaded is [`Error::Internal`]: whoever looks at it has to say
/// beforehand that it will.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadedMetadata<'a> {
    fragment: &'a Fragment,
}

impl Fragment {
    /// What is loaded of the metadata.
    pub(crate) fn loaded(&self) -> LoadedMetadata<'_> {
        LoadedMetadata { fragment: self }
    }
}

impl<'a> LoadedMetadata<'a> {
    /// The MBRs of a sparse fragment.
    pub(crate) fn rtree(self) -> Result<&'a RTree> {
        self.section(&self.fragment.sections().rtree, Section::RTree)?
            .ok_or_else(|| self.lacks("R-tree"))
    }

    /// As far as they are loaded, minima, maxima, sums and null counts of the field's tiles; `None`
    /// if the fragment has none (below v11, zipped coordinates) or the field is not in the
    /// fragment.
    pub(crate) fn tile_stats(self, field: Field) -> Option<TileStats<'a>> {
        let loaded = self.field(field)?;
        self.fragment.version().has_tile_stats().then(|| TileStats {
            mins: loaded.mins.get(),
            maxs: loaded.maxs.get(),
            sums: loaded.sums.get(),
            null_counts: loaded.null_counts.get(),
        })
    }

    /// Names of the delete commits that were applied when the fragment was written, relative to the
    /// array.
    pub(crate) fn processed_conditions(self) -> Result<&'a [String]> {
        let cell = &self.fragment.sections().conditions;
        let loaded = self.section(cell, Section::ProcessedConditions)?;
        Ok(loaded.map_or(&[], |conditions| &conditions.names))
    }

    /// Whether cells may have the coordinates of other cells of the fragment, as far as the array
    /// does not allow that anyway: a consolidation keeps the versions of a cell, and seldom says that
    /// there are none. Needs [`Section::ProcessedConditions`] where cells have timestamps.
    pub(crate) fn may_repeat_cells(self) -> Result<bool> {
        let once = |name: &String| name == ProcessedConditions::EACH_CELL_ONCE;
        Ok(self.fragment.has_timestamps() && !self.processed_conditions()?.iter().any(once))
    }

    /// Where a tile lies in its file, filtered; checked against the file's size.
    pub(crate) fn stored_tile_range(
        self,
        field: Field,
        part: FilePart,
        tile: u64,
    ) -> Result<Range<u64>> {
        let loaded = self.field(field).ok_or_else(|| self.not_stored(field))?;
        let offsets = match part {
            FilePart::Data => self.section(&loaded.offsets, Section::TileOffsets(field)),
            FilePart::Var => self.section(&loaded.var_offsets, Section::TileVarOffsets(field)),
            FilePart::Validity => self.section(
                &loaded.validity_offsets,
                Section::TileValidityOffsets(field),
            ),
        }?;
        let range = offsets.and_then(|offsets| offsets.range(usize::try_from(tile).ok()?));
        range.ok_or_else(|| self.lacks("entry for a tile in the tile offsets"))
    }

    /// Unfiltered bytes of a tile of a var-length field's values.
    pub(crate) fn var_tile_size(self, field: Field, tile: u64) -> Result<u64> {
        let loaded = self.field(field).ok_or_else(|| self.not_stored(field))?;
        let sizes = self.section(&loaded.var_sizes, Section::TileVarSizes(field))?;
        let size = sizes.and_then(|sizes| sizes.sizes.get(usize::try_from(tile).ok()?).copied());
        size.ok_or_else(|| self.lacks("entry for a tile in the tile sizes"))
    }

    fn field(self, field: Field) -> Option<&'a FieldSections> {
        let slot = self.fragment.footer().slots.of(field)?;
        self.fragment.sections().fields.get(slot)
    }

    /// A section; `None` if the fragment does not have it.
    fn section<T>(self, cell: &'a OnceLock<T>, section: Section) -> Result<Option<&'a T>> {
        match cell.get() {
            None if self.fragment.footer().section_start(section).is_some() => {
                let path = self.fragment.metadata_path();
                Err(Error::Internal(format!(
                    "{path}: {section:?} was not loaded"
                )))
            }
            loaded => Ok(loaded),
        }
    }

    fn not_stored(self, field: Field) -> Error {
        let path = &self.fragment.location().path;
        Error::Internal(format!("{path}: {field:?} is not stored"))
    }

    fn lacks(self, what: &'static str) -> Error {
        let source = DecodeError::invalid("fragment metadata", 0, format!("it has no {what}"));
        Error::Corrupt {
            uri: self.fragment.metadata_path().to_string(),
            source,
        }
    }
}
