//! What fragments an array has, and what is known about each without reading its cells.

use crate::array::{Array, Fragment, TimeRange};
use crate::error::{Error, Result};
use crate::storage::StorePath;
use azulejo_format::fragment::Section;
use azulejo_format::path::LEGACY_SCHEMA_FILE;
use azulejo_format::{ArraySchema, FormatVersion, NdRectangle};
use std::sync::Arc;

/// What an array consists of.
///
/// Only fragments whose whole time lies within the time asked for count here; reading also goes to
/// a consolidated fragment that does so in part, and takes from it the cells of that time.
#[derive(Debug, Clone)]
pub struct FragmentInfo {
    array: Array,
    /// Indices into the array's fragments.
    counted: Vec<usize>,
}

/// One fragment of an array.
#[derive(Debug, Clone, Copy)]
pub struct FragmentDescription<'a> {
    fragment: &'a Fragment,
}

/// Where a tile begins and ends in global order: coordinates, one for each dimension.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GlobalOrderBounds {
    /// Those of the tile's first cell.
    pub first: Vec<Vec<u8>>,
    /// Those of its last cell.
    pub last: Vec<Vec<u8>>,
}

impl Array {
    /// What is known about each fragment without reading its cells; this reads nothing.
    #[must_use]
    pub fn fragment_info(&self) -> FragmentInfo {
        let time = self.time_range();
        let inside = |fragment: &Fragment| {
            let own = fragment.time_range();
            time.start <= own.start && own.end <= time.end
        };
        let fragments = self.fragments().iter().enumerate();
        let counted = fragments
            .filter(|(_, fragment)| inside(fragment))
            .map(|(i, _)| i)
            .collect();
        FragmentInfo {
            array: self.clone(),
            counted,
        }
    }
}

impl FragmentInfo {
    /// The array.
    #[must_use]
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// Number of fragments.
    #[must_use]
    pub fn fragment_num(&self) -> usize {
        self.counted.len()
    }

    /// A fragment; `None` behind the last one.
    #[must_use]
    pub fn fragment(&self, index: usize) -> Option<FragmentDescription<'_>> {
        let fragment = self.array.fragments().get(*self.counted.get(index)?)?;
        Some(FragmentDescription::of(fragment))
    }

    /// The fragments, oldest first.
    pub fn fragments(&self) -> impl Iterator<Item = FragmentDescription<'_>> {
        (0..self.fragment_num()).filter_map(|index| self.fragment(index))
    }

    /// Sum of the fragments' cells, those included that a later fragment overwrites.
    #[must_use]
    pub fn total_cell_num(&self) -> u64 {
        self.fragments().fold(0, |total, fragment| {
            total.saturating_add(fragment.cell_num())
        })
    }

    /// Number of fragments whose footers are not in consolidated fragment metadata.
    #[must_use]
    pub fn unconsolidated_metadata_num(&self) -> usize {
        self.fragments()
            .filter(|fragment| !fragment.has_consolidated_metadata())
            .count()
    }

    /// Folders of fragments that a consolidation has replaced: what vacuuming would delete.
    #[must_use]
    pub fn to_vacuum(&self) -> &[StorePath] {
        self.array.fragments_to_vacuum()
    }

    /// Reads the MBRs of all sparse fragments in one batch, which they would otherwise read one by
    /// one when asked.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for damaged metadata.
    pub fn preload_mbrs(&self) -> Result<()> {
        let sparse = |i: &&usize| {
            self.array
                .fragments()
                .get(**i)
                .is_some_and(|f| !f.is_dense())
        };
        let wanted: Vec<_> = self
            .counted
            .iter()
            .filter(sparse)
            .map(|i| (*i, Section::RTree))
            .collect();
        self.array.preload(&wanted)
    }
}

impl<'a> FragmentDescription<'a> {
    pub(crate) fn of(fragment: &'a Fragment) -> Self {
        Self { fragment }
    }

    /// The fragment itself.
    #[must_use]
    pub fn fragment(&self) -> &'a Fragment {
        self.fragment
    }

    /// The name of its folder.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.fragment.name()
    }

    /// Where it lies.
    #[must_use]
    pub fn uri(&self) -> String {
        self.fragment.location().path.to_string()
    }

    /// The format version that it was written in.
    #[must_use]
    pub fn version(&self) -> FormatVersion {
        self.fragment.version()
    }

    /// The schema that it was written with.
    #[must_use]
    pub fn schema(&self) -> &'a Arc<ArraySchema> {
        self.fragment.schema()
    }

    /// File name of that schema.
    #[must_use]
    pub fn schema_name(&self) -> &'a str {
        self.fragment
            .footer()
            .schema_name
            .as_deref()
            .unwrap_or(LEGACY_SCHEMA_FILE)
    }

    /// Whether it is dense.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.fragment.is_dense()
    }

    /// When its cells were written.
    #[must_use]
    pub fn time_range(&self) -> TimeRange {
        self.fragment.time_range()
    }

    /// The box around its cells; `None` if it has none.
    #[must_use]
    pub fn non_empty_domain(&self) -> Option<&'a NdRectangle> {
        self.fragment.footer().non_empty_domain.as_ref()
    }

    /// Number of cells stored. A dense fragment stores whole space tiles: the cells of these, not
    /// of the non-empty domain.
    #[must_use]
    pub fn cell_num(&self) -> u64 {
        self.fragment.cell_num()
    }

    /// Number of tiles.
    #[must_use]
    pub fn tile_num(&self) -> u64 {
        self.fragment.tile_num()
    }

    /// Number of MBRs: one a tile, none of a dense fragment.
    #[must_use]
    pub fn mbr_num(&self) -> u64 {
        if self.is_dense() { 0 } else { self.tile_num() }
    }

    /// The box around the cells of a tile of a sparse fragment. The first call reads the fragment's
    /// R-tree.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the fragment is dense or has no such tile, [`Error::Corrupt`]
    /// for damaged metadata.
    pub fn mbr(&self, tile: u64) -> Result<NdRectangle> {
        self.check_tile(tile)?;
        let rtree = self.fragment.rtree()?;
        let mbr = usize::try_from(tile).ok().and_then(|tile| rtree.mbr(tile));
        mbr.ok_or_else(|| Error::Internal(format!("{}: the R-tree has no tile {tile}", self.uri())))
    }

    /// The coordinates of the first and of the last cell in global order of a tile of a sparse
    /// fragment; `None` if the fragment does not store them (versions below 23).
    ///
    /// # Errors
    /// As [`Self::mbr`].
    pub fn global_order_bounds(&self, tile: u64) -> Result<Option<GlobalOrderBounds>> {
        self.check_tile(tile)?;
        let tile = usize::try_from(tile).unwrap_or(usize::MAX);
        let mut bounds = GlobalOrderBounds::default();
        for dimension in 0..self.schema().domain.dimensions.len() {
            let Some((mins, maxs)) = self.fragment.global_order_bounds(dimension)? else {
                return Ok(None);
            };
            let (Some(min), Some(max)) = (mins.get(tile), maxs.get(tile)) else {
                return Ok(None);
            };
            bounds.first.push(min.to_vec());
            bounds.last.push(max.to_vec());
        }
        Ok(Some(bounds))
    }

    /// Whether its footer is in consolidated fragment metadata.
    #[must_use]
    pub fn has_consolidated_metadata(&self) -> bool {
        self.fragment.has_consolidated_footer()
    }

    /// Bytes of its files: of the data files as its metadata gives them, and of the metadata file
    /// itself.
    ///
    /// # Errors
    /// [`Error::NotFound`] or [`Error::Storage`] if the size of the metadata file is not known yet
    /// and cannot be found out.
    pub fn size(&self) -> Result<u64> {
        let footer = self.fragment.footer();
        let files = footer
            .file_sizes
            .iter()
            .chain(&footer.file_var_sizes)
            .chain(&footer.file_validity_sizes);
        let data = files.fold(0u64, |sum, size| sum.saturating_add(*size));
        Ok(data.saturating_add(self.fragment.metadata_size()?))
    }

    fn check_tile(&self, tile: u64) -> Result<()> {
        if self.is_dense() {
            return Err(Error::InvalidArgument(format!(
                "{}: a dense fragment has no MBRs",
                self.uri()
            )));
        }
        if tile >= self.tile_num() {
            let tiles = self.tile_num();
            return Err(Error::InvalidArgument(format!(
                "{}: tile {tile} of {tiles} does not exist",
                self.uri()
            )));
        }
        Ok(())
    }
}
