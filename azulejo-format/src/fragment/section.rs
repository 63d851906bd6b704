//! The parts of a fragment metadata file and where the footer says they are.

use super::{Field, Numbers, Slots};

/// One generic tile of a fragment metadata file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Section {
    /// The MBRs of a sparse fragment's tiles: [`RTree`](super::RTree).
    RTree,
    /// Where each tile starts in the field's data file (offsets file if var):
    /// [`TileOffsets`](super::TileOffsets).
    TileOffsets(Field),
    /// Where each tile starts in the field's var file: [`TileOffsets`](super::TileOffsets).
    TileVarOffsets(Field),
    /// Unfiltered bytes of each tile of the field's var file: [`TileSizes`](super::TileSizes).
    TileVarSizes(Field),
    /// Where each tile starts in the field's validity file (since v7):
    /// [`TileOffsets`](super::TileOffsets).
    TileValidityOffsets(Field),
    /// The least value of each tile (since v11): [`TileBounds`](super::TileBounds).
    TileMins(Field),
    /// The greatest value of each tile (since v11): [`TileBounds`](super::TileBounds).
    TileMaxs(Field),
    /// The sum of each tile (since v11): [`TileSums`](super::TileSums).
    TileSums(Field),
    /// The number of nulls in each tile (since v11): [`TileNullCounts`](super::TileNullCounts).
    TileNullCounts(Field),
    /// Min, max, sum and null count of whole fields (since v11):
    /// [`FragmentStats`](super::FragmentStats).
    FragmentStats,
    /// Names of delete commits that were applied (since v16):
    /// [`ProcessedConditions`](super::ProcessedConditions).
    ProcessedConditions,
    /// The first coordinates of each tile in global order, of one dimension (optional, v23): laid
    /// out as [`TileBounds`](super::TileBounds).
    GlobalOrderMins(usize),
    /// The last coordinates of each tile in global order, of one dimension (optional, v23).
    GlobalOrderMaxs(usize),
}

/// Where a section lies in the metadata file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SectionRange {
    /// Byte offset of the generic tile.
    pub start: u64,
    /// Byte offset behind it; `None` for the last section of a footer whose file size is not known
    /// (see [`Footer::set_file_size`](super::Footer::set_file_size)).
    pub end: Option<u64>,
}

/// Byte offsets of the sections, by slot where there is one a field; empty where the version has
/// none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SectionOffsets {
    /// [`Section::RTree`].
    pub rtree: u64,
    /// [`Section::TileOffsets`].
    pub tile_offsets: Numbers,
    /// [`Section::TileVarOffsets`]; without zipped coordinates below v5.
    pub tile_var_offsets: Numbers,
    /// [`Section::TileVarSizes`]; without zipped coordinates below v5.
    pub tile_var_sizes: Numbers,
    /// [`Section::TileValidityOffsets`].
    pub tile_validity_offsets: Numbers,
    /// [`Section::TileMins`].
    pub tile_mins: Numbers,
    /// [`Section::TileMaxs`].
    pub tile_maxs: Numbers,
    /// [`Section::TileSums`].
    pub tile_sums: Numbers,
    /// [`Section::TileNullCounts`].
    pub tile_null_counts: Numbers,
    /// [`Section::FragmentStats`].
    pub fragment_stats: Option<u64>,
    /// [`Section::ProcessedConditions`].
    pub processed_conditions: Option<u64>,
}

impl SectionOffsets {
    /// The offset of a section, optional sections apart.
    #[must_use]
    pub fn get(&self, section: Section, slots: Slots) -> Option<u64> {
        let of = |list: &[u64], field| list.get(slots.of(field)?).copied();
        match section {
            Section::RTree => Some(self.rtree),
            Section::TileOffsets(f) => of(&self.tile_offsets, f),
            Section::TileVarOffsets(f) => of(&self.tile_var_offsets, f),
            Section::TileVarSizes(f) => of(&self.tile_var_sizes, f),
            Section::TileValidityOffsets(f) => of(&self.tile_validity_offsets, f),
            Section::TileMins(f) => of(&self.tile_mins, f),
            Section::TileMaxs(f) => of(&self.tile_maxs, f),
            Section::TileSums(f) => of(&self.tile_sums, f),
            Section::TileNullCounts(f) => of(&self.tile_null_counts, f),
            Section::FragmentStats => self.fragment_stats,
            Section::ProcessedConditions => self.processed_conditions,
            Section::GlobalOrderMins(_) | Section::GlobalOrderMaxs(_) => None,
        }
    }

    /// All offsets but that of the fragment statistics, in no particular order.
    pub(crate) fn all(&self) -> impl Iterator<Item = u64> {
        let lists = [
            &self.tile_offsets,
            &self.tile_var_offsets,
            &self.tile_var_sizes,
            &self.tile_validity_offsets,
            &self.tile_mins,
            &self.tile_maxs,
            &self.tile_sums,
            &self.tile_null_counts,
        ];
        lists
            .into_iter()
            .flatten()
            .copied()
            .chain([self.rtree])
            .chain(self.processed_conditions)
    }
}

/// An optional section of a footer (since v23).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionalSection {
    /// Where the first and last coordinates of tiles are kept, by dimension (id 0).
    TileGlobalOrderBounds {
        /// Offsets of [`Section::GlobalOrderMins`].
        mins: Vec<u64>,
        /// Offsets of [`Section::GlobalOrderMaxs`].
        maxs: Vec<u64>,
    },
    /// A section that this crate does not know, kept as it is.
    Unknown {
        /// Its id.
        id: u64,
        /// Its bytes.
        data: Vec<u8>,
    },
}
