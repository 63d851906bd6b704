//! Loading sections of fragment metadata when they are needed: one batch of reads for many fragments,
//! decoded in parallel.

use super::Fragment;
use super::fragment::TileStats;
use super::objects::short_read_is_corrupt;
use super::sections::{FieldSections, Sections, put};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::storage::{ReadRange, ReadRequest, Waiting, block_on};
use azulejo_format::DecodeError;
use azulejo_format::filter::Scratch;
use azulejo_format::fragment::{
    Field, FilePart, FragmentStats, ProcessedConditions, RTree, RTreeBuilder, Section,
    SectionRange, SectionRanges, TileBounds, TileNullCounts, TileOffsets, TileSizes, TileSums,
};
use azulejo_format::tile::GenericTile;
use bytes::Bytes;
use rayon::prelude::*;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::OnceLock;

impl Fragment {
    /// Loads sections that are not loaded yet in one batch of reads and decodes them in parallel.
    /// Sections that the fragment does not have are skipped.
    pub fn preload(&self, sections: &[Section]) -> Result<()> {
        self.preload_as(sections, Derive::Known)
    }

    /// As [`Self::preload`], but reads what is stored of sections that the footer tells of as well.
    pub(crate) fn preload_stored(&self, sections: &[Section]) -> Result<()> {
        self.preload_as(sections, Derive::Nothing)
    }

    fn preload_as(&self, sections: &[Section], derive: Derive) -> Result<()> {
        let wanted = sections.iter().map(|section| (self, *section));
        block_on(load(&self.context, wanted, derive, Waiting::Blocks))
    }

    /// The MBRs of a sparse fragment.
    pub fn rtree(&self) -> Result<&RTree> {
        self.load(Section::RTree)?;
        self.loaded().rtree()
    }

    /// Minima, maxima, sums and null counts of the field's tiles; `None` if the fragment has none
    /// (below v11, zipped coordinates) or the field is not in the fragment. How far they can be
    /// trusted: [`StatsTrust`](azulejo_format::fragment::StatsTrust).
    pub fn tile_stats(&self, field: Field) -> Result<Option<TileStats<'_>>> {
        self.preload(&[
            Section::TileMins(field),
            Section::TileMaxs(field),
            Section::TileSums(field),
            Section::TileNullCounts(field),
        ])?;
        Ok(self.loaded().tile_stats(field))
    }

    /// Min, max, sum and null count of whole fields; `None` if the fragment has none.
    pub fn stats(&self) -> Result<Option<&FragmentStats>> {
        self.load(Section::FragmentStats)?;
        Ok(self.sections().stats.get())
    }

    /// First and last coordinates in global order of the tiles along a dimension; `None` if the
    /// fragment does not keep them (below v23, dense).
    pub fn global_order_bounds(
        &self,
        dimension: usize,
    ) -> Result<Option<(&TileBounds, &TileBounds)>> {
        self.preload(&[
            Section::GlobalOrderMins(dimension),
            Section::GlobalOrderMaxs(dimension),
        ])?;
        Ok(self.sections().global_order(dimension))
    }

    /// Names of the delete commits that were applied when the fragment was written, relative to the
    /// array.
    pub fn processed_conditions(&self) -> Result<&[String]> {
        self.load(Section::ProcessedConditions)?;
        self.loaded().processed_conditions()
    }

    /// Where a tile lies in its file, filtered; checked against the file's size.
    pub fn stored_tile_range(&self, field: Field, part: FilePart, tile: u64) -> Result<Range<u64>> {
        self.load(match part {
            FilePart::Data => Section::TileOffsets(field),
            FilePart::Var => Section::TileVarOffsets(field),
            FilePart::Validity => Section::TileValidityOffsets(field),
        })?;
        self.loaded().stored_tile_range(field, part, tile)
    }

    /// Unfiltered bytes of a tile of a var-length field's values.
    pub fn var_tile_size(&self, field: Field, tile: u64) -> Result<u64> {
        self.load(Section::TileVarSizes(field))?;
        self.loaded().var_tile_size(field, tile)
    }

    /// Loads a section that is not loaded yet, if the fragment has it.
    fn load(&self, section: Section) -> Result<()> {
        match self.sections().is_loaded(section, self.footer().slots) {
            Some(false) => self.preload(&[section]),
            Some(true) | None => Ok(()),
        }
    }
}

impl Sections {
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
                let Ok(rtree) = builder.build().without_nan(&schema.domain) else {
                    return false;
                };
                put(&self.rtree, rtree);
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
                let rtree = rtree.without_nan(&schema.domain)?;
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
    let mut ranges = SectionFinder::default();
    for (i, (fragment, section)) in missing.iter().enumerate() {
        let range = ranges.of(fragment, *section);
        let Some(range) = range.and_then(|range| stored_range(fragment, range)) else {
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
        if fragment.footer().section_start(section).is_some()
            && fragment.sections().is_loaded(section, slots) == Some(false)
            && seen.insert((std::ptr::from_ref(fragment), section))
            && !(derive == Derive::Known && fragment.sections().derive(fragment, section))
        {
            missing.push((fragment, section));
        }
    }
    missing
}

/// Fields of a fragment from which on its sections are looked up in a sorted list.
const MANY_FIELDS: usize = 64;

/// Where sections lie, asked for one fragment after the other.
#[derive(Default)]
struct SectionFinder<'f> {
    /// Those of the fragment that was asked for last, where it has many.
    sorted: Option<(&'f Fragment, SectionRanges<'f>)>,
}

impl<'f> SectionFinder<'f> {
    fn of(&mut self, fragment: &'f Fragment, section: Section) -> Option<SectionRange> {
        let footer = fragment.footer();
        if footer.slots.len() < MANY_FIELDS {
            return footer.section_range(section);
        }
        let (of, ranges) = self
            .sorted
            .get_or_insert_with(|| (fragment, footer.section_ranges()));
        if !std::ptr::eq(*of, fragment) {
            (*of, *ranges) = (fragment, footer.section_ranges());
        }
        ranges.get(section)
    }
}

/// Asks for the sizes of metadata files whose last section has no known end.
async fn fetch_sizes(missing: &[(&Fragment, Section)], waiting: Waiting) -> Result<()> {
    let mut unknown: Vec<&Fragment> = Vec::new();
    let mut ranges = SectionFinder::default();
    for (fragment, section) in missing {
        let range = ranges.of(fragment, *section);
        let open = range.is_some_and(|range| range.end.is_none());
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
fn stored_range(fragment: &Fragment, range: SectionRange) -> Option<Range<u64>> {
    let end = range.end.or(fragment.known_metadata_size())?;
    Some(range.start..end.max(range.start))
}
