//! The sections of fragment metadata that are loaded, for as long as the array is open.

use azulejo_format::fragment::{
    FragmentStats, LegacyMetadata, ProcessedConditions, RTree, Section, Slots, TileBounds,
    TileNullCounts, TileOffsets, TileSizes, TileSums,
};
use std::sync::OnceLock;

/// Sections that a fragment has loaded.
#[derive(Debug, Default)]
pub(super) struct Sections {
    pub rtree: OnceLock<RTree>,
    pub stats: OnceLock<FragmentStats>,
    pub conditions: OnceLock<ProcessedConditions>,
    /// By slot.
    pub fields: Vec<FieldSections>,
    /// By dimension.
    pub global_order: Vec<(OnceLock<TileBounds>, OnceLock<TileBounds>)>,
}

/// Sections of one field.
#[derive(Debug, Default)]
pub(super) struct FieldSections {
    pub offsets: OnceLock<TileOffsets>,
    pub var_offsets: OnceLock<TileOffsets>,
    pub var_sizes: OnceLock<TileSizes>,
    pub validity_offsets: OnceLock<TileOffsets>,
    pub mins: OnceLock<TileBounds>,
    pub maxs: OnceLock<TileBounds>,
    pub sums: OnceLock<TileSums>,
    pub null_counts: OnceLock<TileNullCounts>,
}

impl Sections {
    /// None loaded yet, for a fragment with these slots.
    pub fn new(slots: Slots, dimensions: usize) -> Self {
        let mut sections = Self::default();
        sections
            .fields
            .resize_with(slots.len(), FieldSections::default);
        sections
            .global_order
            .resize_with(dimensions, Default::default);
        sections
    }

    /// Everything that a v1 or v2 fragment has.
    pub fn of_legacy(metadata: LegacyMetadata, dimensions: usize) -> Self {
        let sections = Self::new(metadata.footer.slots, dimensions);
        let empty = FieldSections::default();
        let slot = |i: usize| sections.fields.get(i).unwrap_or(&empty);
        for (i, offsets) in metadata.tile_offsets.into_iter().enumerate() {
            put(&slot(i).offsets, offsets);
        }
        for (i, offsets) in metadata.tile_var_offsets.into_iter().enumerate() {
            put(&slot(i).var_offsets, offsets);
        }
        for (i, sizes) in metadata.tile_var_sizes.into_iter().enumerate() {
            put(&slot(i).var_sizes, sizes);
        }
        put(&sections.rtree, metadata.rtree);
        put(&sections.conditions, ProcessedConditions::default());
        sections
    }

    /// The bounds in global order of a dimension's tiles: first and last coordinates.
    pub fn global_order(&self, dimension: usize) -> Option<(&TileBounds, &TileBounds)> {
        let (mins, maxs) = self.global_order.get(dimension)?;
        mins.get().zip(maxs.get())
    }

    /// Whether a section is loaded; `None` if the fragment cannot have it.
    pub fn is_loaded(&self, section: Section, slots: Slots) -> Option<bool> {
        let field = |field| self.fields.get(slots.of(field)?);
        Some(match section {
            Section::RTree => self.rtree.get().is_some(),
            Section::FragmentStats => self.stats.get().is_some(),
            Section::ProcessedConditions => self.conditions.get().is_some(),
            Section::TileOffsets(f) => field(f)?.offsets.get().is_some(),
            Section::TileVarOffsets(f) => field(f)?.var_offsets.get().is_some(),
            Section::TileVarSizes(f) => field(f)?.var_sizes.get().is_some(),
            Section::TileValidityOffsets(f) => field(f)?.validity_offsets.get().is_some(),
            Section::TileMins(f) => field(f)?.mins.get().is_some(),
            Section::TileMaxs(f) => field(f)?.maxs.get().is_some(),
            Section::TileSums(f) => field(f)?.sums.get().is_some(),
            Section::TileNullCounts(f) => field(f)?.null_counts.get().is_some(),
            Section::GlobalOrderMins(d) => self.global_order.get(d)?.0.get().is_some(),
            Section::GlobalOrderMaxs(d) => self.global_order.get(d)?.1.get().is_some(),
        })
    }
}

/// Sets a value unless another thread was faster with the same one.
pub(super) fn put<T>(cell: &OnceLock<T>, value: T) {
    let _ = cell.set(value);
}
