//! The parts of fragment metadata that are read when they are needed: one batch of reads for many
//! fragments, decoded in parallel, kept for as long as the array is open.

use super::Fragment;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::storage::{ReadRange, ReadRequest, Waiting};
use azulejo_format::DecodeError;
use azulejo_format::filter::Scratch;
use azulejo_format::fragment::{
    Field, FragmentStats, LegacyMetadata, ProcessedConditions, RTree, RTreeBuilder, Section, Slots,
    TileBounds, TileNullCounts, TileOffsets, TileSizes, TileSums,
};
use azulejo_format::tile::GenericTile;
use bytes::Bytes;
use rayon::prelude::*;
use std::collections::HashSet;
use std::ops::Range;
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
    global_order: Vec<(OnceLock<TileBounds>, OnceLock<TileBounds>)>,
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

    /// Fills in a section that follows from the footer, so that it need not be read: the only tile
    /// of a fragment begins with its file, and its box is the fragment's. Returns whether it does.
    fn derive(&self, fragment: &Fragment, section: Section) -> bool {
        let (footer, schema) = (fragment.footer(), fragment.schema());
        if fragment.tile_num() != 1 {
            return false;
        }
        let derived = |field: Field,
                       cell: fn(&FieldSections) -> &OnceLock<TileOffsets>,
                       size: Option<u64>| {
            let slot = footer
                .slots
                .of(field)
                .and_then(|slot| self.fields.get(slot));
            let offsets = size.and_then(|size| TileOffsets::new(vec![0], size).ok());
            match (slot, offsets) {
                (Some(sections), Some(offsets)) if fragment.stores(field) => {
                    put(cell(sections), offsets);
                    true
                }
                _ => false,
            }
        };
        match section {
            Section::RTree if !footer.dense => {
                let Some(domain) = &footer.non_empty_domain else {
                    return false;
                };
                let ranges: Vec<_> = domain
                    .ranges
                    .iter()
                    .map(azulejo_format::Range::as_ref)
                    .collect();
                let mut builder = RTreeBuilder::new(&schema.domain);
                if builder.push(&ranges).is_err() {
                    return false;
                }
                put(&self.rtree, builder.build());
                true
            }
            Section::TileOffsets(f) => derived(f, |s| &s.offsets, footer.file_size(f)),
            Section::TileVarOffsets(f) if f.is_var(schema) => {
                derived(f, |s| &s.var_offsets, footer.file_var_size(f))
            }
            Section::TileValidityOffsets(f) if f.is_nullable(schema) => {
                derived(f, |s| &s.validity_offsets, footer.file_validity_size(f))
            }
            _ => false,
        }
    }

    /// Decodes a section and keeps it, having checked that it is about as many tiles as the
    /// fragment has.
    fn decode(
        &self,
        fragment: &Fragment,
        section: Section,
        payload: &[u8],
    ) -> Result<(), DecodeError> {
        let footer = fragment.footer();
        let schema = fragment.schema();
        let tiles = fragment.tile_num();
        let check = |what: &'static str, len: usize, may_lack: bool| {
            if len as u64 == tiles || (may_lack && len == 0) {
                return Ok(());
            }
            let reason = format!("it is about {len} tiles, but the fragment has {tiles}");
            Err(DecodeError::invalid(what, 0, reason))
        };
        let size = |size: Option<u64>| size.unwrap_or(0);
        let none = FieldSections::default();
        let field = |field| {
            footer
                .slots
                .of(field)
                .and_then(|slot| self.fields.get(slot))
                .unwrap_or(&none)
        };
        let bounds = |f| {
            let (datatype, cell_val_num) = Field::layout(f, schema).ok_or_else(|| {
                DecodeError::invalid("tile bounds", 0, "the schema has no such field")
            })?;
            TileBounds::decode(payload, datatype, cell_val_num)
        };
        match section {
            Section::RTree => {
                let rtree = RTree::decode(payload, footer.version, &schema.domain)?;
                if !footer.dense {
                    check("R-tree", rtree.tile_num(), false)?;
                }
                put(&self.rtree, rtree);
            }
            Section::FragmentStats => {
                put(&self.stats, FragmentStats::decode(payload, footer.slots)?);
            }
            Section::ProcessedConditions => {
                put(&self.conditions, ProcessedConditions::decode(payload)?);
            }
            Section::TileOffsets(f) => {
                let offsets = TileOffsets::decode(payload, size(footer.file_size(f)))?;
                check("tile offsets", offsets.len(), !fragment.stores(f))?;
                put(&field(f).offsets, offsets);
            }
            Section::TileVarOffsets(f) => {
                let offsets = TileOffsets::decode(payload, size(footer.file_var_size(f)))?;
                check(
                    "tile var offsets",
                    offsets.len(),
                    !(fragment.stores(f) && f.is_var(schema)),
                )?;
                put(&field(f).var_offsets, offsets);
            }
            Section::TileVarSizes(f) => {
                let sizes = TileSizes::decode(payload)?;
                check(
                    "tile var sizes",
                    sizes.sizes.len(),
                    !(fragment.stores(f) && f.is_var(schema)),
                )?;
                put(&field(f).var_sizes, sizes);
            }
            Section::TileValidityOffsets(f) => {
                let offsets = TileOffsets::decode(payload, size(footer.file_validity_size(f)))?;
                let needed = fragment.stores(f) && f.is_nullable(schema);
                check("tile validity offsets", offsets.len(), !needed)?;
                put(&field(f).validity_offsets, offsets);
            }
            Section::TileMins(f) => {
                let mins = bounds(f)?;
                check("tile mins", mins.len(), true)?;
                put(&field(f).mins, mins);
            }
            Section::TileMaxs(f) => {
                let maxs = bounds(f)?;
                check("tile maxs", maxs.len(), true)?;
                put(&field(f).maxs, maxs);
            }
            Section::TileSums(f) => {
                let sums = TileSums::decode(payload)?;
                check("tile sums", sums.bits.len(), true)?;
                put(&field(f).sums, sums);
            }
            Section::TileNullCounts(f) => {
                let counts = TileNullCounts::decode(payload)?;
                check("tile null counts", counts.counts.len(), true)?;
                put(&field(f).null_counts, counts);
            }
            Section::GlobalOrderMins(d) | Section::GlobalOrderMaxs(d) => {
                let decoded = bounds(Field::Dimension(d))?;
                check("tile bounds in global order", decoded.len(), false)?;
                if let Some((mins, maxs)) = self.global_order.get(d) {
                    put(
                        if matches!(section, Section::GlobalOrderMins(_)) {
                            mins
                        } else {
                            maxs
                        },
                        decoded,
                    );
                }
            }
        }
        Ok(())
    }
}

/// Sets a value unless another thread was faster with the same one.
fn put<T>(cell: &OnceLock<T>, value: T) {
    let _ = cell.set(value);
}

/// Below this many bytes sections are decoded on the caller's thread.
const PARALLEL_BYTES: usize = 32 * 1024;

/// Whether sections that follow from the footer are read all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Derive {
    /// They are not read.
    Known,
    /// What is stored is read, to be checked.
    Nothing,
}

/// Loads the sections that are not loaded yet and exist.
pub(super) async fn load<'a>(
    context: &Context,
    wanted: impl IntoIterator<Item = (&'a Fragment, Section)>,
    derive: Derive,
    waiting: Waiting,
) -> Result<()> {
    let missing = missing(wanted, derive);
    if missing.is_empty() {
        return Ok(());
    }
    fetch_sizes(&missing, waiting).await?;
    let mut tiles: Vec<Bytes> = vec![Bytes::new(); missing.len()];
    let (mut requests, mut places) = (Vec::new(), Vec::new());
    for (i, (fragment, section)) in missing.iter().enumerate() {
        let Some(range) = stored_range(fragment, *section) else {
            continue;
        };
        match fragment.cached_metadata(&range) {
            Some(bytes) => tiles[i] = bytes,
            None => {
                places.push(i);
                let path = fragment.metadata_path();
                requests.push(ReadRequest {
                    path,
                    range: ReadRange::Bytes(range),
                });
            }
        }
    }
    if let Some((fragment, _)) = missing.first().filter(|_| !requests.is_empty()) {
        let read = waiting.read(&*fragment.location().storage, requests).await;
        let read = read.map_err(short_read_is_corrupt)?;
        for (i, bytes) in places.into_iter().zip(read) {
            tiles[i] = bytes;
        }
    }
    let (key, limit) = (context.key(), context.config().memory_budget);
    let decode = |scratch: &mut Scratch,
                  ((fragment, section), bytes): (&(&Fragment, Section), &Bytes)| {
        let tile = GenericTile::decode_with(bytes, key, limit, scratch);
        let decoded =
            tile.and_then(|tile| fragment.sections().decode(fragment, *section, &tile.data));
        decoded.map_err(|e| Error::decode(fragment.metadata_path().to_string(), e))
    };
    let bytes: usize = tiles.iter().map(Bytes::len).sum();
    if missing.len() == 1 || bytes < PARALLEL_BYTES {
        let mut scratch = Scratch::new();
        return missing
            .iter()
            .zip(&tiles)
            .try_for_each(|item| decode(&mut scratch, item));
    }
    context.install(|| {
        let items = missing.par_iter().zip(&tiles).with_min_len(16);
        items.map_init(Scratch::new, decode).collect::<Result<()>>()
    })
}

/// The sections that have to be read, each once.
fn missing<'a>(
    wanted: impl IntoIterator<Item = (&'a Fragment, Section)>,
    derive: Derive,
) -> Vec<(&'a Fragment, Section)> {
    let mut seen = HashSet::new();
    let mut missing: Vec<(&Fragment, Section)> = Vec::new();
    for (fragment, section) in wanted {
        let slots = fragment.footer().slots;
        if fragment.footer().section_range(section).is_some()
            && fragment.sections().is_loaded(section, slots) == Some(false)
            && seen.insert((std::ptr::from_ref(fragment), section))
            && !(derive == Derive::Known && fragment.sections().derive(fragment, section))
        {
            missing.push((fragment, section));
        }
    }
    missing
}

/// Asks for the sizes of metadata files whose last section has no known end.
async fn fetch_sizes(missing: &[(&Fragment, Section)], waiting: Waiting) -> Result<()> {
    let mut unknown: Vec<&Fragment> = Vec::new();
    for (fragment, section) in missing {
        let open = fragment
            .footer()
            .section_range(*section)
            .is_some_and(|range| range.end.is_none());
        if open && fragment.known_metadata_size().is_none() {
            unknown.push(fragment);
        }
    }
    unknown.dedup_by_key(|fragment| std::ptr::from_ref(*fragment));
    let Some(first) = unknown.first() else {
        return Ok(());
    };
    let paths: Vec<_> = unknown
        .iter()
        .map(|fragment| fragment.metadata_path())
        .collect();
    let storage = &*first.location().storage;
    for (fragment, tail) in unknown
        .iter()
        .zip(waiting.read_tails(storage, paths, 0).await?)
    {
        fragment.set_metadata_size(tail.object_size);
    }
    Ok(())
}

/// The bytes of a section. The last one may end with the file instead of before the footer, which
/// does not matter: a generic tile says how long it is.
fn stored_range(fragment: &Fragment, section: Section) -> Option<Range<u64>> {
    let range = fragment.footer().section_range(section)?;
    let end = range.end.or(fragment.known_metadata_size())?;
    Some(range.start..end.max(range.start))
}

/// A file that is shorter than another of the array says is damaged, or the other one is.
pub(crate) fn short_read_is_corrupt(error: Error) -> Error {
    match error {
        Error::Storage {
            op: "read",
            uri,
            source,
        } if source.kind() == std::io::ErrorKind::UnexpectedEof => {
            let source = DecodeError::invalid("file", 0, "it is shorter than the metadata says");
            Error::Corrupt { uri, source }
        }
        other => other,
    }
}
