//! The footer of a fragment metadata file (since v3).
//!
//! Page: *Fragment, Footer*.

use super::numbers::Decoding;
use super::section::{OptionalSection, Section, SectionOffsets, SectionRange};
use super::{Field, Numbers, Slots};
use crate::error::{DecodeError, Result};
use crate::range::{NdRectangle, Range};
use crate::schema::{ArraySchema, Domain};
use crate::version::FormatVersion;
use crate::wire::{ByteReader, ByteWriter};

/// The basic facts of a fragment, and where the rest of its metadata lies.
#[derive(Debug, Clone, PartialEq)]
pub struct Footer {
    /// The fragment's format version.
    pub version: FormatVersion,
    /// File name of its schema in `__schema`; `None` below v10, where the array has one schema.
    pub schema_name: Option<String>,
    /// Whether the fragment is dense (sparse fragments occur in old dense arrays too).
    pub dense: bool,
    /// The box around its cells.
    pub non_empty_domain: Option<NdRectangle>,
    /// Tiles of a sparse fragment; 0 if dense.
    pub sparse_tile_num: u64,
    /// Cells in the last tile of a sparse fragment.
    pub last_tile_cell_num: u64,
    /// Whether each cell has its own timestamp ([`Field::Timestamps`]).
    pub has_timestamps: bool,
    /// Whether each cell says when it was deleted ([`Field::DeleteTimestamps`],
    /// [`Field::DeleteConditions`]).
    pub has_delete_metadata: bool,
    /// Which fields the lists below are about.
    pub slots: Slots,
    /// Bytes of the data (or offsets) files, by slot.
    pub file_sizes: Numbers,
    /// Bytes of the var files, by slot; without zipped coordinates below v5.
    pub file_var_sizes: Numbers,
    /// Bytes of the validity files, by slot; empty below v7.
    pub file_validity_sizes: Numbers,
    /// Where the sections lie.
    pub sections: SectionOffsets,
    /// Optional sections (since v23).
    pub optional_sections: Vec<OptionalSection>,
    /// Where the footer begins in its metadata file, which is where the sections end; `None` if not
    /// known, as for footers from consolidated metadata.
    pub offset: Option<u64>,
}

/// The result of [`Footer::locate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocatedFooter<'a> {
    /// The footer is in the tail.
    Found {
        /// Where it begins in the file.
        offset: u64,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// Read the last this many bytes of the file instead.
    NeedMore(u64),
}

/// Where the sections of a fragment lie: see [`Footer::section_ranges`].
#[derive(Debug, Clone)]
pub struct SectionRanges<'f> {
    footer: &'f Footer,
    /// Where all sections begin, sorted.
    offsets: Vec<u64>,
}

impl SectionRanges<'_> {
    /// As [`Footer::section_range`].
    #[must_use]
    pub fn get(&self, section: Section) -> Option<SectionRange> {
        let start = self.footer.section_start(section)?;
        let next = self.offsets.partition_point(|offset| *offset <= start);
        let end = self.offsets.get(next).copied().or(self.footer.offset);
        Some(SectionRange { start, end })
    }
}

impl Footer {
    /// Finds the footer of a metadata file in `tail`, its last bytes (64 KiB are usually enough).
    ///
    /// `version` is the one in the fragment's name; names without one belong to v3 or v4, for which
    /// v3 will do. Below v10 the length of the footer may follow from the schema, which there is
    /// always the array's only one; from v10 on `schema` is not looked at.
    pub fn locate<'a>(
        tail: &'a [u8],
        file_size: u64,
        version: FormatVersion,
        schema: Option<&ArraySchema>,
    ) -> Result<LocatedFooter<'a>> {
        const WHAT: &str = "fragment metadata footer";
        if !version.has_footer() {
            return Err(DecodeError::invalid(
                WHAT,
                0,
                "format versions below 3 have none",
            ));
        }
        let (len, trailer) = if version.has_schema_evolution() {
            (None, 8)
        } else {
            let schema = schema.ok_or_else(|| {
                DecodeError::invalid(WHAT, 0, "below format version 10 it needs a schema")
            })?;
            fixed_len(version, schema).map_or((None, 8), |len| (Some(len), 0))
        };
        let len = match len {
            Some(len) => len,
            None => match tail.last_chunk::<8>() {
                Some(bytes) => u64::from_le_bytes(*bytes),
                None if (tail.len() as u64) < file_size => {
                    return Ok(LocatedFooter::NeedMore(file_size.min(8)));
                }
                None => return Err(truncated(8, tail)),
            },
        };
        let from_end = len.checked_add(trailer).filter(|n| *n <= file_size);
        let Some(from_end) = from_end else {
            return Err(truncated(len, tail));
        };
        let offset = file_size - from_end;
        let start = usize::try_from(from_end)
            .ok()
            .and_then(|n| tail.len().checked_sub(n));
        let Some(start) = start else {
            return Ok(LocatedFooter::NeedMore(from_end));
        };
        let trailer = usize::try_from(trailer).unwrap_or(0);
        let bytes = tail
            .get(start..tail.len() - trailer)
            .ok_or_else(|| truncated(len, tail))?;
        Ok(LocatedFooter::Found { offset, bytes })
    }

    /// How many bytes at the end of a metadata file are the footer and what follows it, where the
    /// bounds of var-length dimensions have 64 bytes: a guess that is right for fragments of
    /// `schema` that follow one another, whose schema has a name of `schema_name_len` bytes.
    /// `consolidated` ones may have a timestamp a cell.
    #[must_use]
    pub fn usual_len(
        version: FormatVersion,
        schema: &ArraySchema,
        schema_name_len: usize,
        consolidated: bool,
    ) -> u64 {
        let timestamps = consolidated && version.has_cell_timestamps();
        let slots = Slots::new(version, schema, timestamps, false);
        let (all, var) = (slots.len() as u64, slots.var_len(version) as u64);
        let domain: u64 = schema.domain.dimensions.iter().fold(0, |sum, dimension| {
            let size = dimension.cell_val_num.cell_size(dimension.datatype);
            sum + size.map_or(16 + 64, |size| 2 * size as u64)
        });
        let validity = if version.has_nullable() { 2 * all } else { 0 };
        let stats = if version.has_tile_stats() { 4 * all } else { 0 };
        let name = if version.has_schema_evolution() {
            8 + schema_name_len as u64
        } else {
            0
        };
        let flags =
            u64::from(version.has_cell_timestamps()) + u64::from(version.has_delete_metadata());
        let more = 8 * (u64::from(version.has_fragment_stats()) + u64::from(version.has_deletes()));
        let optional = if version.has_optional_sections() {
            4 + 12 + 16 * schema.domain.dimensions.len() as u64
        } else {
            0
        };
        let trailer = if has_length(version, schema) { 8 } else { 0 };
        // Version, dense, null domain, tile num, last tile cell num, R-tree; the lists; the rest.
        let lists = 8 * (2 * all + 3 * var + validity + stats);
        4 + 1 + 1 + 8 + 8 + 8 + domain + lists + name + flags + more + optional + trailer
    }

    /// The name of the schema that [`Self::decode`] needs; `None` below v10, where the array has
    /// only one.
    pub fn peek_schema_name(bytes: &[u8]) -> Result<Option<&str>> {
        let mut r = ByteReader::new(bytes);
        let version = FormatVersion::new(r.u32("fragment version")?, "fragment")?;
        read_schema_name(&mut r, version)
    }

    /// Decodes the bytes of a footer. `offset` is where they begin in the fragment's own metadata
    /// file, if known.
    pub fn decode(bytes: &[u8], schema: &ArraySchema, offset: Option<u64>) -> Result<Self> {
        let mut r = ByteReader::new(bytes);
        let version = FormatVersion::new(r.u32("fragment version")?, "fragment")?;
        if !version.has_footer() {
            return Err(DecodeError::invalid(
                "fragment version",
                0,
                "format versions below 3 have no footer",
            ));
        }
        let schema_name = read_schema_name(&mut r, version)?.map(str::to_owned);
        let dense = r.flag("dense")?;
        let non_empty_domain = read_non_empty_domain(&mut r, &schema.domain)?;
        let sparse_tile_num = r.u64("sparse tile num")?;
        let at = r.offset();
        let last_tile_cell_num = r.u64("last tile cell num")?;
        if !dense && last_tile_cell_num > schema.capacity {
            return Err(DecodeError::invalid(
                "last tile cell num",
                at,
                format!(
                    "{last_tile_cell_num} cells in a tile of {}",
                    schema.capacity
                ),
            ));
        }
        let has_timestamps = version.has_cell_timestamps() && r.flag("includes timestamps")?;
        let has_delete_metadata =
            version.has_delete_metadata() && r.flag("includes delete metadata")?;
        let slots = Slots::new(version, schema, has_timestamps, has_delete_metadata);
        let (all, var) = (slots.len() as u64, slots.var_len(version) as u64);
        let validity = if version.has_nullable() { all } else { 0 };
        let stats = if version.has_tile_stats() { all } else { 0 };
        let mut lists = Decoding::new(&r, 1 + 2 * all + 3 * var + 2 * validity + 4 * stats);
        let mut read = |len, what| lists.read(&mut r, len, what);
        let sizes = [
            read(all, "file sizes")?,
            read(var, "file var sizes")?,
            read(validity, "file validity sizes")?,
        ];
        let rtree = read(1, "R-tree offset")?;
        let offsets = [
            read(all, "offsets of tile offsets")?,
            read(var, "offsets of tile var offsets")?,
            read(var, "offsets of tile var sizes")?,
            read(validity, "offsets of tile validity offsets")?,
            read(stats, "offsets of tile mins")?,
            read(stats, "offsets of tile maxs")?,
            read(stats, "offsets of tile sums")?,
            read(stats, "offsets of tile null counts")?,
        ];
        let lists = lists.finish();
        let [file_sizes, file_var_sizes, file_validity_sizes] =
            sizes.map(|range| lists.list(range));
        let [
            tile_offsets,
            tile_var_offsets,
            tile_var_sizes,
            tile_validity_offsets,
            mins,
            maxs,
            sums,
            nulls,
        ] = offsets.map(|range| lists.list(range));
        let mut sections = SectionOffsets {
            rtree: lists.list(rtree).first().copied().unwrap_or_default(),
            tile_offsets,
            tile_var_offsets,
            tile_var_sizes,
            tile_validity_offsets,
            tile_mins: mins,
            tile_maxs: maxs,
            tile_sums: sums,
            tile_null_counts: nulls,
            fragment_stats: None,
            processed_conditions: None,
        };
        if version.has_fragment_stats() && !(version.may_lack_fragment_stats() && r.is_empty()) {
            sections.fragment_stats = Some(r.u64("offset of fragment statistics")?);
        }
        if version.has_deletes() {
            sections.processed_conditions = Some(r.u64("offset of processed conditions")?);
        }
        let optional_sections = if version.has_optional_sections() {
            read_optional_sections(&mut r, schema.domain.dimensions.len())?
        } else {
            Vec::new()
        };
        r.finish("fragment metadata footer")?;
        let footer = Self {
            version,
            schema_name,
            dense,
            non_empty_domain,
            sparse_tile_num,
            last_tile_cell_num,
            has_timestamps,
            has_delete_metadata,
            slots,
            file_sizes,
            file_var_sizes,
            file_validity_sizes,
            sections,
            optional_sections,
            offset,
        };
        footer.check_offsets()?;
        Ok(footer)
    }

    /// Encodes the footer. At the end of a metadata file [`Self::encode_trailer`] follows.
    pub fn encode(&self, schema: &ArraySchema) -> Result<Vec<u8>> {
        let mut w = ByteWriter::new();
        w.u32(self.version.number());
        if self.version.has_schema_evolution() {
            let name = self.schema_name.as_deref().unwrap_or_default();
            if name.is_empty() {
                return Err(DecodeError::invalid(
                    "fragment schema name",
                    4,
                    "it is empty",
                ));
            }
            w.text64(name);
        }
        w.flag(self.dense);
        write_non_empty_domain(&mut w, self.non_empty_domain.as_ref(), &schema.domain)?;
        w.u64(self.sparse_tile_num);
        w.u64(self.last_tile_cell_num);
        if self.version.has_cell_timestamps() {
            w.flag(self.has_timestamps);
        }
        if self.version.has_delete_metadata() {
            w.flag(self.has_delete_metadata);
        }
        let sections = &self.sections;
        let (all, var) = (self.slots.len(), self.slots.var_len(self.version));
        let validity = if self.version.has_nullable() { all } else { 0 };
        let stats = if self.version.has_tile_stats() {
            all
        } else {
            0
        };
        let lists: [(&[u64], usize); 12] = [
            (&self.file_sizes, all),
            (&self.file_var_sizes, var),
            (&self.file_validity_sizes, validity),
            (&[sections.rtree], 1),
            (&sections.tile_offsets, all),
            (&sections.tile_var_offsets, var),
            (&sections.tile_var_sizes, var),
            (&sections.tile_validity_offsets, validity),
            (&sections.tile_mins, stats),
            (&sections.tile_maxs, stats),
            (&sections.tile_sums, stats),
            (&sections.tile_null_counts, stats),
        ];
        for (list, len) in lists {
            if list.len() != len {
                return Err(DecodeError::invalid(
                    "fragment metadata footer",
                    w.len(),
                    format!("a list has {} entries, {len} belong there", list.len()),
                ));
            }
            w.u64s(list);
        }
        if self.version.has_fragment_stats() {
            if let Some(offset) = sections.fragment_stats {
                w.u64(offset);
            } else if !self.version.may_lack_fragment_stats() {
                return Err(DecodeError::invalid(
                    "offset of fragment statistics",
                    w.len(),
                    "it is missing",
                ));
            }
        }
        if self.version.has_deletes() {
            w.u64(sections.processed_conditions.ok_or_else(|| {
                DecodeError::invalid("offset of processed conditions", w.len(), "it is missing")
            })?);
        }
        if self.version.has_optional_sections() {
            write_optional_sections(&mut w, &self.optional_sections);
        }
        Ok(w.into_bytes())
    }

    /// What follows a footer of `len` bytes at the end of a metadata file: its length, or nothing
    /// (below v10 unless a dimension is var-length).
    #[must_use]
    pub fn encode_trailer(version: FormatVersion, schema: &ArraySchema, len: u64) -> Vec<u8> {
        if has_length(version, schema) {
            len.to_le_bytes().to_vec()
        } else {
            Vec::new()
        }
    }

    /// Tells a footer from consolidated metadata the size of the fragment's own metadata file, so
    /// that the last section has an end.
    pub fn set_file_size(&mut self, file_size: u64, schema: &ArraySchema) -> Result<()> {
        let len = self.encode(schema)?.len() as u64;
        let trailer = if has_length(self.version, schema) {
            8
        } else {
            0
        };
        let offset = file_size
            .checked_sub(len + trailer)
            .ok_or(DecodeError::Truncated {
                what: "fragment metadata file",
                offset: 0,
                need: len + trailer,
                have: file_size,
            })?;
        self.offset = Some(offset);
        self.check_offsets()
    }

    /// Where a section lies; `None` if the fragment has no such section.
    ///
    /// The range holds the section's generic tile from its start, but may be longer than it: some
    /// writers leave other bytes behind it, even a second copy of all sections. Offsets are checked
    /// against the file's size.
    #[must_use]
    pub fn section_range(&self, section: Section) -> Option<SectionRange> {
        let start = self.section_start(section)?;
        let end = self
            .all_offsets()
            .filter(|offset| *offset > start)
            .min()
            .or(self.offset);
        Some(SectionRange { start, end })
    }

    /// As [`Self::section_range`] for many sections, of which each looks at all others there.
    #[must_use]
    pub fn section_ranges(&self) -> SectionRanges<'_> {
        let mut offsets: Vec<u64> = self.all_offsets().collect();
        // In the order in which they are listed they are nearly sorted.
        offsets.sort();
        SectionRanges {
            footer: self,
            offsets,
        }
    }

    /// Where a section begins; `None` if the fragment has no such section.
    #[must_use]
    pub fn section_start(&self, section: Section) -> Option<u64> {
        // What v11 writers put in the place of statistics, if anything, leads nowhere.
        let leads_nowhere =
            section == Section::FragmentStats && self.version.may_lack_fragment_stats();
        if !self.version.has_footer() || leads_nowhere {
            return None;
        }
        if let Section::GlobalOrderMins(d) = section {
            self.global_order_bounds()?.0.get(d).copied()
        } else if let Section::GlobalOrderMaxs(d) = section {
            self.global_order_bounds()?.1.get(d).copied()
        } else {
            self.sections.get(section, self.slots)
        }
    }

    /// Size in bytes of the field's data file (its offsets file if the field is var-length).
    #[must_use]
    pub fn file_size(&self, field: Field) -> Option<u64> {
        self.file_sizes.get(self.slots.of(field)?).copied()
    }

    /// Size in bytes of the field's var file.
    #[must_use]
    pub fn file_var_size(&self, field: Field) -> Option<u64> {
        self.file_var_sizes.get(self.slots.of(field)?).copied()
    }

    /// Size in bytes of the field's validity file.
    #[must_use]
    pub fn file_validity_size(&self, field: Field) -> Option<u64> {
        self.file_validity_sizes.get(self.slots.of(field)?).copied()
    }

    /// Cells in a tile of a **sparse** fragment of `capacity`; 0 for a tile that it has not. All
    /// tiles of a dense fragment have the cells of a space tile.
    #[must_use]
    pub fn sparse_tile_cell_num(&self, tile: u64, capacity: u64) -> u64 {
        let Some(last) = self.sparse_tile_num.checked_sub(1) else {
            return 0;
        };
        match tile.cmp(&last) {
            std::cmp::Ordering::Less => capacity,
            // Some writers store 0 for a full tile.
            std::cmp::Ordering::Equal if self.last_tile_cell_num == 0 => capacity,
            std::cmp::Ordering::Equal => self.last_tile_cell_num,
            std::cmp::Ordering::Greater => 0,
        }
    }

    /// Cells in a **sparse** fragment of `capacity`.
    #[must_use]
    pub fn sparse_cell_num(&self, capacity: u64) -> u64 {
        let Some(last) = self.sparse_tile_num.checked_sub(1) else {
            return 0;
        };
        last.saturating_mul(capacity)
            .saturating_add(self.sparse_tile_cell_num(last, capacity))
    }

    /// Whether data files exist for one file a dimension or one for all of them.
    #[must_use]
    pub fn coordinate_fields(&self) -> Vec<Field> {
        match (self.dense, self.slots.dimension_num()) {
            (true, _) => Vec::new(),
            (false, 0) => vec![Field::ZippedCoords],
            (false, n) => (0..n).map(Field::Dimension).collect(),
        }
    }

    fn global_order_bounds(&self) -> Option<(&[u64], &[u64])> {
        self.optional_sections
            .iter()
            .find_map(|section| match section {
                OptionalSection::TileGlobalOrderBounds { mins, maxs } => {
                    Some((mins.as_slice(), maxs.as_slice()))
                }
                OptionalSection::Unknown { .. } => None,
            })
    }

    fn all_offsets(&self) -> impl Iterator<Item = u64> {
        let (mins, maxs) = self.global_order_bounds().unwrap_or_default();
        let stats = self
            .sections
            .fragment_stats
            .filter(|_| !self.version.may_lack_fragment_stats());
        self.sections
            .all()
            .chain(stats)
            .chain(mins.iter().copied())
            .chain(maxs.iter().copied())
    }

    fn check_offsets(&self) -> Result<()> {
        let Some(end) = self.offset else {
            return Ok(());
        };
        match self.all_offsets().find(|offset| *offset > end) {
            None => Ok(()),
            Some(bad) => Err(DecodeError::invalid(
                "fragment metadata footer",
                0,
                format!("a section starts at byte {bad}, behind the footer at {end}"),
            )),
        }
    }
}

fn truncated(need: u64, tail: &[u8]) -> DecodeError {
    DecodeError::Truncated {
        what: "fragment metadata footer",
        offset: 0,
        need,
        have: tail.len() as u64,
    }
}

/// Whether the footer's length follows the footer.
fn has_length(version: FormatVersion, schema: &ArraySchema) -> bool {
    version.has_schema_evolution() || fixed_len(version, schema).is_none()
}

/// Length of a footer below v10, which only var-length dimensions leave open.
fn fixed_len(version: FormatVersion, schema: &ArraySchema) -> Option<u64> {
    let slots = Slots::new(version, schema, false, false);
    let (all, var) = (slots.len() as u64, slots.var_len(version) as u64);
    let mut domain = 0u64;
    for dimension in &schema.domain.dimensions {
        domain += 2 * dimension.cell_val_num.cell_size(dimension.datatype)? as u64;
    }
    let validity = if version.has_nullable() { 2 * all } else { 0 };
    // version, dense, null domain, domain, sparse tile num, last tile cell num; R-tree; the lists
    Some(4 + 1 + 1 + domain + 8 + 8 + 8 + 8 * (2 * all + 3 * var + validity))
}

fn read_schema_name<'a>(r: &mut ByteReader<'a>, version: FormatVersion) -> Result<Option<&'a str>> {
    if !version.has_schema_evolution() {
        return Ok(None);
    }
    let len = r.u64("fragment schema name length")?;
    if len == 0 {
        return Err(r.invalid("fragment schema name", "it is empty"));
    }
    r.str(len, "fragment schema name").map(Some)
}

fn read_non_empty_domain(r: &mut ByteReader<'_>, domain: &Domain) -> Result<Option<NdRectangle>> {
    let null = r.flag("null non-empty domain")?;
    let mut ranges = Vec::with_capacity(domain.dimensions.len());
    for dimension in &domain.dimensions {
        let (bytes, start) = match dimension.cell_val_num.cell_size(dimension.datatype) {
            Some(size) => (r.bytes(size.saturating_mul(2), "non-empty domain")?, size),
            // Writers leave values for fixed-size dimensions only.
            None if null => (&[][..], 0),
            None => read_var_range(r, "non-empty domain")?,
        };
        let (start, end) = bytes.split_at_checked(start).unwrap_or_default();
        ranges.push(Range::new(start, end));
    }
    Ok((!null).then_some(NdRectangle { ranges }))
}

/// Reads a var-length range: its bytes and the length of its lower bound, which is at most theirs.
pub(super) fn read_var_range<'a>(
    r: &mut ByteReader<'a>,
    what: &'static str,
) -> Result<(&'a [u8], usize)> {
    let len = r.u64(what)?;
    let start = r.u64(what)?;
    if start > len {
        return Err(r.invalid(
            what,
            format!("a lower bound of {start} bytes in a range of {len}"),
        ));
    }
    let bytes = r.bytes_u64(len, what)?;
    Ok((bytes, usize::try_from(start).unwrap_or(bytes.len())))
}

fn write_non_empty_domain(
    w: &mut ByteWriter,
    value: Option<&NdRectangle>,
    domain: &Domain,
) -> Result<()> {
    w.flag(value.is_none());
    for (i, dimension) in domain.dimensions.iter().enumerate() {
        let size = dimension.cell_val_num.cell_size(dimension.datatype);
        let range = match value {
            Some(value) => value.ranges.get(i).ok_or_else(|| {
                DecodeError::invalid(
                    "non-empty domain",
                    w.len(),
                    format!("no range for dimension {i}"),
                )
            })?,
            None => &Range::new(vec![0; size.unwrap_or(0)], vec![0; size.unwrap_or(0)]),
        };
        match size {
            Some(size) if range.start.len() != size || range.end.len() != size => {
                return Err(DecodeError::invalid(
                    "non-empty domain",
                    w.len(),
                    format!("the bounds of dimension {i} are not {size} bytes long"),
                ));
            }
            Some(_) => {}
            None if value.is_none() => continue,
            None => {
                w.u64((range.start.len() + range.end.len()) as u64);
                w.u64(range.start.len() as u64);
            }
        }
        w.bytes(&range.start);
        w.bytes(&range.end);
    }
    Ok(())
}

/// Id of the optional section that holds the offsets of tile global order bounds.
const TILE_GLOBAL_ORDER_BOUNDS: u64 = 0;

fn read_optional_sections(r: &mut ByteReader<'_>, dim_num: usize) -> Result<Vec<OptionalSection>> {
    let num = r.u32("number of optional sections")?;
    let num = r.check_count(num.into(), 12, "optional sections")?;
    let mut sections = Vec::with_capacity(num);
    for _ in 0..num {
        let id = r.u64("optional section id")?;
        let len = r.u32("optional section length")?;
        let at = r.offset();
        let data = r.bytes_u64(len.into(), "optional section")?;
        if id != TILE_GLOBAL_ORDER_BOUNDS {
            sections.push(OptionalSection::Unknown {
                id,
                data: data.to_vec(),
            });
            continue;
        }
        let mut values = ByteReader::new(data);
        let mins = values.u64s(dim_num as u64, "tile global order mins")?;
        let maxs = values.u64s(dim_num as u64, "tile global order maxs")?;
        if !values.is_empty() {
            return Err(DecodeError::invalid(
                "optional section",
                at,
                "too long for its dimensions",
            ));
        }
        sections.push(OptionalSection::TileGlobalOrderBounds { mins, maxs });
    }
    Ok(sections)
}

fn write_optional_sections(w: &mut ByteWriter, sections: &[OptionalSection]) {
    w.u32(u32::try_from(sections.len()).unwrap_or(u32::MAX));
    for section in sections {
        match section {
            OptionalSection::TileGlobalOrderBounds { mins, maxs } => {
                w.u64(TILE_GLOBAL_ORDER_BOUNDS);
                w.u32(u32::try_from(8 * (mins.len() + maxs.len())).unwrap_or(u32::MAX));
                w.u64s(mins);
                w.u64s(maxs);
            }
            OptionalSection::Unknown { id, data } => {
                w.u64(*id);
                w.u32(u32::try_from(data.len()).unwrap_or(u32::MAX));
                w.bytes(data);
            }
        }
    }
}

#[cfg(test)]
mod tests;
