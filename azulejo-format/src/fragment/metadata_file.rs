//! A whole fragment metadata file (since v3): its sections one behind the other, and the footer
//! that says where they lie.
//!
//! Readers of arrays take the footer and the sections that they need; writers, and whoever looks at
//! all of a fragment, have the whole file. Page: *Fragment, Fragment Metadata file*.

use super::section::{OptionalSection, Section, SectionOffsets};
use super::{
    Field, Footer, FragmentStats, LocatedFooter, Numbers, ProcessedConditions, RTree, TileBounds,
    TileNullCounts, TileOffsets, TileSizes, TileSums,
};
use crate::error::{DecodeError, Result};
use crate::filter::{EncryptionKey, Scratch};
use crate::schema::ArraySchema;
use crate::tile::GenericTile;
use crate::version::FormatVersion;

/// All that a fragment metadata file says.
#[derive(Debug, Clone, PartialEq)]
pub struct FragmentMetadata {
    /// The footer. [`Self::encode`] sets where the sections and itself lie; the rest of it is
    /// written as it is.
    pub footer: Footer,
    /// The boxes of the tiles; empty if dense.
    pub rtree: RTree,
    /// By slot.
    pub fields: Vec<FieldMetadata>,
    /// Since v12 (and never rightly in v11, where nothing is written).
    pub stats: FragmentStats,
    /// Since v16.
    pub processed_conditions: ProcessedConditions,
    /// The first and the last coordinates of each tile in global order, by dimension (optional,
    /// since v23); empty where the file has none.
    pub global_order: Vec<(TileBounds, TileBounds)>,
}

/// What is known about the tiles of one field. Fields without a file of some kind have offsets all
/// the same, all of them zero: the reference writes one for each tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldMetadata {
    /// Tiles of the data file, or of the offsets file if the field is var-length.
    pub offsets: TileOffsets,
    /// Tiles of the var file.
    pub var_offsets: TileOffsets,
    /// Unfiltered sizes of the tiles of the var file.
    pub var_sizes: TileSizes,
    /// Tiles of the validity file (since v7).
    pub validity_offsets: TileOffsets,
    /// Least values (since v11); without entries for fields that have none.
    pub mins: TileBounds,
    /// Greatest values (since v11); without entries for fields that have none.
    pub maxs: TileBounds,
    /// Sums (since v11); without entries for fields that have none.
    pub sums: TileSums,
    /// Null counts (since v11); without entries for fields that cannot be null.
    pub null_counts: TileNullCounts,
}

impl FieldMetadata {
    /// The metadata of a field in a fragment without tiles.
    #[must_use]
    pub fn empty(field: Field, schema: &ArraySchema) -> Self {
        let bounds = match field
            .layout(schema)
            .map(|(datatype, n)| n.cell_size(datatype))
        {
            Some(None) => TileBounds::Var {
                offsets: Vec::new(),
                values: Vec::new(),
            },
            Some(Some(cell_size)) => TileBounds::Fixed {
                cell_size,
                values: Vec::new(),
            },
            None => TileBounds::Fixed {
                cell_size: 1,
                values: Vec::new(),
            },
        };
        Self {
            offsets: TileOffsets::default(),
            var_offsets: TileOffsets::default(),
            var_sizes: TileSizes::default(),
            validity_offsets: TileOffsets::default(),
            mins: bounds.clone(),
            maxs: bounds,
            sums: TileSums::default(),
            null_counts: TileNullCounts::default(),
        }
    }
}

/// The sections of a fragment of `version`, in the order in which writers put them, by kind.
fn order(version: FormatVersion, dimensions: usize) -> Vec<SectionKind> {
    let mut kinds = vec![SectionKind::RTree];
    kinds.extend([
        SectionKind::Field(Section::TileOffsets),
        SectionKind::Field(Section::TileVarOffsets),
        SectionKind::Field(Section::TileVarSizes),
    ]);
    if version.has_nullable() {
        kinds.push(SectionKind::Field(Section::TileValidityOffsets));
    }
    if version.has_tile_stats() {
        kinds.extend([
            SectionKind::Field(Section::TileMins),
            SectionKind::Field(Section::TileMaxs),
        ]);
        kinds.extend((0..dimensions).map(SectionKind::GlobalOrderMins));
        kinds.extend((0..dimensions).map(SectionKind::GlobalOrderMaxs));
        kinds.extend([
            SectionKind::Field(Section::TileSums),
            SectionKind::Field(Section::TileNullCounts),
        ]);
    }
    if version.has_fragment_stats() && !version.may_lack_fragment_stats() {
        kinds.push(SectionKind::Stats);
    }
    // One version before footers say where it is.
    if version.has_delete_metadata() {
        kinds.push(SectionKind::Conditions);
    }
    kinds
}

/// A kind of section; those of fields come in a row, by slot.
#[derive(Clone, Copy)]
enum SectionKind {
    RTree,
    Field(fn(Field) -> Section),
    GlobalOrderMins(usize),
    GlobalOrderMaxs(usize),
    Stats,
    Conditions,
}

impl FragmentMetadata {
    /// Decodes a whole metadata file of a fragment of `version` (from its name).
    ///
    /// `limit` bounds each section in bytes.
    ///
    /// # Errors
    /// Damage; a missing or wrong key; a version without a footer.
    pub fn decode(
        file: &[u8],
        version: FormatVersion,
        schema: &ArraySchema,
        key: Option<&EncryptionKey>,
        limit: u64,
    ) -> Result<Self> {
        let LocatedFooter::Found { offset, bytes } =
            Footer::locate(file, file.len() as u64, version, Some(schema))?
        else {
            let reason = "the footer does not fit into it";
            return Err(DecodeError::invalid("fragment metadata file", 0, reason));
        };
        let footer = Footer::decode(bytes, schema, Some(offset))?;
        let mut scratch = Scratch::new();
        let ranges = footer.section_ranges();
        let mut payload = |section| -> Result<Option<Vec<u8>>> {
            let Some(range) = ranges.get(section) else {
                return Ok(None);
            };
            let at = usize::try_from(range.start).ok();
            let bytes = at.and_then(|at| file.get(at..)).unwrap_or_default();
            GenericTile::decode_with(bytes, key, limit, &mut scratch).map(|tile| Some(tile.data))
        };
        let slots = footer.slots;
        let rtree = match payload(Section::RTree)? {
            Some(bytes) => RTree::decode(&bytes, footer.version, &schema.domain)?,
            None => RTree::empty(&schema.domain),
        };
        let mut fields = Vec::with_capacity(slots.len());
        for field in slots.fields() {
            let mut metadata = FieldMetadata::empty(field, schema);
            let size = |size: Option<u64>| size.unwrap_or(0);
            let layout = field.layout(schema);
            let bounds = |bytes: Option<Vec<u8>>, empty: &TileBounds| match (bytes, layout) {
                (Some(bytes), Some((datatype, n))) => TileBounds::decode(&bytes, datatype, n),
                _ => Ok(empty.clone()),
            };
            if let Some(bytes) = payload(Section::TileOffsets(field))? {
                metadata.offsets = TileOffsets::decode(&bytes, size(footer.file_size(field)))?;
            }
            if let Some(bytes) = payload(Section::TileVarOffsets(field))? {
                metadata.var_offsets =
                    TileOffsets::decode(&bytes, size(footer.file_var_size(field)))?;
            }
            if let Some(bytes) = payload(Section::TileVarSizes(field))? {
                metadata.var_sizes = TileSizes::decode(&bytes)?;
            }
            if let Some(bytes) = payload(Section::TileValidityOffsets(field))? {
                metadata.validity_offsets =
                    TileOffsets::decode(&bytes, size(footer.file_validity_size(field)))?;
            }
            metadata.mins = bounds(payload(Section::TileMins(field))?, &metadata.mins)?;
            metadata.maxs = bounds(payload(Section::TileMaxs(field))?, &metadata.maxs)?;
            if let Some(bytes) = payload(Section::TileSums(field))? {
                metadata.sums = TileSums::decode(&bytes)?;
            }
            if let Some(bytes) = payload(Section::TileNullCounts(field))? {
                metadata.null_counts = TileNullCounts::decode(&bytes)?;
            }
            fields.push(metadata);
        }
        let stats = match payload(Section::FragmentStats)? {
            Some(bytes) => FragmentStats::decode(&bytes, slots)?,
            None => FragmentStats::default(),
        };
        let processed_conditions = match payload(Section::ProcessedConditions)? {
            Some(bytes) => ProcessedConditions::decode(&bytes)?,
            None => ProcessedConditions::default(),
        };
        let mut global_order = Vec::new();
        for (i, dimension) in schema.domain.dimensions.iter().enumerate() {
            let bounds = |bytes: Vec<u8>| {
                TileBounds::decode(&bytes, dimension.datatype, dimension.cell_val_num)
            };
            let mins = payload(Section::GlobalOrderMins(i))?
                .map(bounds)
                .transpose()?;
            let maxs = payload(Section::GlobalOrderMaxs(i))?
                .map(bounds)
                .transpose()?;
            global_order.extend(mins.zip(maxs));
        }
        Ok(Self {
            footer,
            rtree,
            fields,
            stats,
            processed_conditions,
            global_order,
        })
    }

    /// Encodes the whole file, in the footer's version, and sets the offsets in the footer.
    ///
    /// # Errors
    /// [`DecodeError::Invalid`] if lists lack entries that the version has.
    pub fn encode(&mut self, schema: &ArraySchema, key: Option<&EncryptionKey>) -> Result<Vec<u8>> {
        let version = self.footer.version;
        let slots = self.footer.slots;
        if self.fields.len() != slots.len() {
            let reason = format!("{} fields instead of {}", self.fields.len(), slots.len());
            return Err(DecodeError::invalid("fragment metadata file", 0, reason));
        }
        let mut writer = FileWriter {
            file: Vec::new(),
            version,
            key,
            last: Vec::new(),
            at: 0,
            scratch: Scratch::new(),
        };
        let mut offsets = SectionOffsets::default();
        let (mut mins, mut maxs) = (Vec::new(), Vec::new());
        for kind in order(version, self.global_order.len()) {
            match kind {
                SectionKind::RTree => offsets.rtree = writer.section(self.rtree.encode(version))?,
                SectionKind::Field(section) => {
                    for (field, metadata) in slots.fields().zip(&self.fields) {
                        let section = section(field);
                        if let Some((payload, list)) = metadata.payload(section, &mut offsets) {
                            list.push(writer.section(payload)?);
                        }
                    }
                }
                SectionKind::GlobalOrderMins(d) => {
                    let payload = self.global_order.get(d).map(|bounds| bounds.0.encode());
                    mins.push(writer.section(payload.unwrap_or_default())?);
                }
                SectionKind::GlobalOrderMaxs(d) => {
                    let payload = self.global_order.get(d).map(|bounds| bounds.1.encode());
                    maxs.push(writer.section(payload.unwrap_or_default())?);
                }
                SectionKind::Stats => {
                    offsets.fragment_stats = Some(writer.section(self.stats.encode())?);
                }
                SectionKind::Conditions => {
                    let start = writer.section(self.processed_conditions.encode())?;
                    offsets.processed_conditions = version.has_deletes().then_some(start);
                }
            }
        }
        if version.may_lack_fragment_stats() {
            // The reference writes an offset that leads nowhere.
            offsets.fragment_stats = Some(0);
        }
        self.footer.sections = offsets;
        for section in &mut self.footer.optional_sections {
            if let OptionalSection::TileGlobalOrderBounds {
                mins: old_mins,
                maxs: old_maxs,
            } = section
            {
                (*old_mins, *old_maxs) = (std::mem::take(&mut mins), std::mem::take(&mut maxs));
            }
        }
        let mut file = writer.file;
        self.footer.offset = Some(file.len() as u64);
        let footer = self.footer.encode(schema)?;
        file.extend_from_slice(&footer);
        file.extend(Footer::encode_trailer(version, schema, footer.len() as u64));
        Ok(file)
    }
}

impl FieldMetadata {
    /// The payload of a section of this field, and the list of offsets that it belongs to; `None`
    /// for sections that are of no field.
    fn payload<'o>(
        &self,
        section: Section,
        offsets: &'o mut SectionOffsets,
    ) -> Option<(Vec<u8>, &'o mut Numbers)> {
        Some(match section {
            Section::TileOffsets(_) => (self.offsets.encode(), &mut offsets.tile_offsets),
            Section::TileVarOffsets(_) => {
                (self.var_offsets.encode(), &mut offsets.tile_var_offsets)
            }
            Section::TileVarSizes(_) => (self.var_sizes.encode(), &mut offsets.tile_var_sizes),
            Section::TileValidityOffsets(_) => (
                self.validity_offsets.encode(),
                &mut offsets.tile_validity_offsets,
            ),
            Section::TileMins(_) => (self.mins.encode(), &mut offsets.tile_mins),
            Section::TileMaxs(_) => (self.maxs.encode(), &mut offsets.tile_maxs),
            Section::TileSums(_) => (self.sums.encode(), &mut offsets.tile_sums),
            Section::TileNullCounts(_) => {
                (self.null_counts.encode(), &mut offsets.tile_null_counts)
            }
            Section::RTree
            | Section::FragmentStats
            | Section::ProcessedConditions
            | Section::GlobalOrderMins(_)
            | Section::GlobalOrderMaxs(_) => return None,
        })
    }
}

/// A file under construction.
struct FileWriter<'k> {
    file: Vec<u8>,
    version: FormatVersion,
    key: Option<&'k EncryptionKey>,
    /// The payload written last, and where its generic tile starts: neighbouring sections are often
    /// equal (no nulls, no statistics), and compressing costs more than copying.
    last: Vec<u8>,
    at: usize,
    scratch: Scratch,
}

impl FileWriter<'_> {
    /// Appends a section and returns where it starts.
    fn section(&mut self, payload: Vec<u8>) -> Result<u64> {
        let start = self.file.len();
        // An encrypted tile must not occur twice: equal bytes would show that two plain texts are
        // equal.
        if start > 0 && self.key.is_none() && payload == self.last {
            self.file.extend_from_within(self.at..);
        } else {
            GenericTile::encode_with(
                &payload,
                self.version,
                self.key,
                &mut self.file,
                &mut self.scratch,
            )?;
            self.last = payload;
        }
        self.at = start;
        Ok(start as u64)
    }
}

#[cfg(test)]
mod tests;
