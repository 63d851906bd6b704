//! Fragment metadata of v1 and v2: one generic tile with everything, instead of a footer and
//! sections.
//!
//! Page: *Fragment, Legacy Fragment metadata file*.

use super::rtree::{RTree, RTreeBuilder};
use super::section::SectionOffsets;
use super::tile_index::{TileOffsets, TileSizes};
use super::{Field, Footer, Numbers, Slots};
use crate::error::{DecodeError, Result};
use crate::range::{NdRectangle, Range, RangeRef};
use crate::schema::ArraySchema;
use crate::version::FormatVersion;
use crate::wire::{ByteReader, ByteWriter};

/// The metadata of a v1 or v2 fragment, as the footer and the sections that later versions have.
#[derive(Debug, Clone, PartialEq)]
pub struct LegacyMetadata {
    /// What a footer would say; it has no sections.
    pub footer: Footer,
    /// The tiles' boxes.
    pub rtree: RTree,
    /// Tiles in the data files, by slot.
    pub tile_offsets: Vec<TileOffsets>,
    /// Tiles in the var files, by slot, without coordinates.
    pub tile_var_offsets: Vec<TileOffsets>,
    /// Unfiltered sizes of the tiles in var files, by slot, without coordinates.
    pub tile_var_sizes: Vec<TileSizes>,
    /// First and last coordinates of each tile, which nothing uses.
    pub bounding_coords: Vec<u8>,
}

impl LegacyMetadata {
    /// Decodes the unfiltered generic tile. `dense`: whether the fragment has no `__coords.tdb`.
    pub fn decode(payload: &[u8], schema: &ArraySchema, dense: bool) -> Result<Self> {
        let mut r = ByteReader::new(payload);
        let version = FormatVersion::new(r.u32("fragment version")?, "fragment")?;
        if version.has_footer() {
            return Err(DecodeError::invalid(
                "fragment version",
                0,
                "it belongs in a footer",
            ));
        }
        let box_size = box_size(schema)?;
        let domain_len = r.u64("non-empty domain length")?;
        let non_empty_domain = match domain_len {
            0 => None,
            len if len == box_size as u64 => Some(NdRectangle {
                ranges: ranges(schema, r.bytes(box_size, "non-empty domain")?),
            }),
            len => {
                return Err(r.invalid(
                    "non-empty domain",
                    format!("it has {len} bytes, not {box_size}"),
                ));
            }
        };
        let num = r.u64("number of MBRs")?;
        let num = r.check_count(num, box_size as u64, "MBRs")?;
        let mut builder = RTreeBuilder::new(&schema.domain);
        for _ in 0..num {
            let ranges = ranges(schema, r.bytes(box_size, "MBR")?);
            let ranges: Vec<RangeRef<'_>> = ranges.iter().map(Range::as_ref).collect();
            builder.push(&ranges)?;
        }
        let coords = r.u64("number of bounding coordinates")?;
        let bounding_coords = r
            .bytes_u64(
                coords.saturating_mul(box_size as u64),
                "bounding coordinates",
            )?
            .to_vec();
        let slots = Slots::new(version, schema, false, false);
        let (all, var) = (slots.len(), slots.var_len(version));
        let tile_offsets = read_lists(&mut r, all, "tile offsets")?;
        let tile_var_offsets = read_lists(&mut r, var, "tile var offsets")?;
        let tile_var_sizes = read_lists(&mut r, var, "tile var sizes")?;
        let last_tile_cell_num = r.u64("last tile cell num")?;
        if !dense && last_tile_cell_num > schema.capacity {
            return Err(r.invalid("last tile cell num", format!("it is {last_tile_cell_num}")));
        }
        let file_sizes = r.u64s(all as u64, "file sizes")?;
        let file_var_sizes = r.u64s(var as u64, "file var sizes")?;
        r.finish("fragment metadata")?;
        let offsets = |lists: Vec<Vec<u64>>, sizes: &[u64]| -> Result<Vec<TileOffsets>> {
            lists
                .into_iter()
                .zip(sizes)
                .map(|(list, size)| TileOffsets::new(list, *size))
                .collect()
        };
        Ok(Self {
            tile_offsets: offsets(tile_offsets, &file_sizes)?,
            tile_var_offsets: offsets(tile_var_offsets, &file_var_sizes)?,
            tile_var_sizes: tile_var_sizes
                .into_iter()
                .map(|sizes| TileSizes { sizes })
                .collect(),
            rtree: builder.build(),
            bounding_coords,
            footer: Footer {
                version,
                schema_name: None,
                dense,
                non_empty_domain,
                sparse_tile_num: num as u64,
                last_tile_cell_num,
                has_timestamps: false,
                has_delete_metadata: false,
                slots,
                file_sizes: file_sizes.into(),
                file_var_sizes: file_var_sizes.into(),
                file_validity_sizes: Numbers::default(),
                sections: SectionOffsets::default(),
                optional_sections: Vec::new(),
                offset: None,
            },
        })
    }
}

impl LegacyMetadata {
    /// Encodes the generic tile's payload, unfiltered.
    pub fn encode(&self, schema: &ArraySchema) -> Result<Vec<u8>> {
        let mut w = ByteWriter::new();
        let footer = &self.footer;
        w.u32(footer.version.number());
        match &footer.non_empty_domain {
            None => w.u64(0),
            Some(domain) => {
                w.u64(box_size(schema)? as u64);
                for range in &domain.ranges {
                    w.bytes(&range.start);
                    w.bytes(&range.end);
                }
            }
        }
        w.u64(self.rtree.tile_num() as u64);
        for tile in 0..self.rtree.tile_num() {
            for dimension in 0..schema.domain.dimensions.len() {
                if let Some(range) = self.rtree.tile_range(tile, dimension) {
                    w.bytes(range.start);
                    w.bytes(range.end);
                }
            }
        }
        w.u64((self.bounding_coords.len() / box_size(schema)?.max(1)) as u64);
        w.bytes(&self.bounding_coords);
        for offsets in self.tile_offsets.iter().chain(&self.tile_var_offsets) {
            w.bytes(&offsets.encode());
        }
        for sizes in &self.tile_var_sizes {
            w.bytes(&sizes.encode());
        }
        w.u64(footer.last_tile_cell_num);
        w.u64s(&footer.file_sizes);
        w.u64s(&footer.file_var_sizes);
        Ok(w.into_bytes())
    }

    /// Tiles of a field's data file.
    #[must_use]
    pub fn offsets(&self, field: Field) -> Option<&TileOffsets> {
        self.tile_offsets.get(self.footer.slots.of(field)?)
    }

    /// Tiles of a field's var file.
    #[must_use]
    pub fn var_offsets(&self, field: Field) -> Option<&TileOffsets> {
        self.tile_var_offsets.get(self.footer.slots.of(field)?)
    }

    /// Unfiltered sizes of the tiles of a field's var file.
    #[must_use]
    pub fn var_sizes(&self, field: Field) -> Option<&TileSizes> {
        self.tile_var_sizes.get(self.footer.slots.of(field)?)
    }
}

/// Bytes of one box: these versions have fixed-size dimensions only.
fn box_size(schema: &ArraySchema) -> Result<usize> {
    schema
        .domain
        .dimensions
        .iter()
        .try_fold(0usize, |sum, dimension| {
            let size = dimension
                .cell_val_num
                .cell_size(dimension.datatype)
                .ok_or_else(|| {
                    DecodeError::invalid("fragment version", 0, "it has no var-length dimensions")
                })?;
            Ok(sum.saturating_add(size.saturating_mul(2)))
        })
}

/// Cuts the bytes of a box, as long as [`box_size`] says, into ranges.
fn ranges(schema: &ArraySchema, mut bytes: &[u8]) -> Vec<Range> {
    let mut ranges = Vec::with_capacity(schema.domain.dimensions.len());
    for dimension in &schema.domain.dimensions {
        let size = dimension
            .cell_val_num
            .cell_size(dimension.datatype)
            .unwrap_or(0);
        let (start, rest) = bytes.split_at_checked(size).unwrap_or_default();
        let (end, rest) = rest.split_at_checked(size).unwrap_or_default();
        ranges.push(Range::new(start, end));
        bytes = rest;
    }
    ranges
}

fn read_lists(r: &mut ByteReader<'_>, num: usize, what: &'static str) -> Result<Vec<Vec<u64>>> {
    let num = r.check_count(num as u64, 8, what)?;
    let mut lists = Vec::with_capacity(num);
    for _ in 0..num {
        let len = r.u64(what)?;
        lists.push(r.u64s(len, what)?);
    }
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Datatype;
    use crate::fragment::Section;
    use crate::fragment::sample::{damage, schema};

    fn metadata(version: FormatVersion, schema: &ArraySchema, dense: bool) -> LegacyMetadata {
        let slots = Slots::new(version, schema, false, false);
        let mut builder = RTreeBuilder::new(&schema.domain);
        let tiles = if dense { 0 } else { 12 };
        for tile in 0..tiles {
            let ranges = [Range::of(tile, tile + 3), Range::of(-tile, tile)];
            builder.push(&ranges.each_ref().map(Range::as_ref)).unwrap();
        }
        let offsets = |size: u64| TileOffsets::new((0..12).map(|i| i * 4).collect(), size).unwrap();
        LegacyMetadata {
            footer: Footer {
                version,
                schema_name: None,
                dense,
                non_empty_domain: Some(NdRectangle {
                    ranges: vec![Range::of(0, 14), Range::of(-11, 11)],
                }),
                sparse_tile_num: tiles as u64,
                last_tile_cell_num: 7,
                has_timestamps: false,
                has_delete_metadata: false,
                slots,
                file_sizes: vec![100, 101, 102, 103].into(),
                file_var_sizes: vec![0, 90, 0].into(),
                file_validity_sizes: Numbers::default(),
                sections: SectionOffsets::default(),
                optional_sections: Vec::new(),
                offset: None,
            },
            rtree: builder.build(),
            tile_offsets: vec![offsets(100), offsets(101), offsets(102), offsets(103)],
            tile_var_offsets: vec![TileOffsets::default(), offsets(90), TileOffsets::default()],
            tile_var_sizes: vec![
                TileSizes::default(),
                TileSizes { sizes: vec![5; 12] },
                TileSizes::default(),
            ],
            bounding_coords: vec![1; tiles as usize * 16],
        }
    }

    #[test]
    fn round_trip_and_damage() {
        for version in FormatVersion::all().filter(|version| !version.has_footer()) {
            let schema = schema(version, &[Datatype::Int32, Datatype::Int32]);
            for dense in [false, true] {
                let metadata = metadata(version, &schema, dense);
                let bytes = metadata.encode(&schema).unwrap();
                let decoded = LegacyMetadata::decode(&bytes, &schema, dense).unwrap();
                assert_eq!(decoded, metadata);
                assert_eq!(
                    decoded.offsets(Field::ZippedCoords).unwrap().range(11),
                    Some(44..103)
                );
                assert_eq!(decoded.var_offsets(Field::ZippedCoords), None);
                assert_eq!(decoded.footer.section_range(Section::RTree), None);
                assert_eq!(
                    decoded.var_sizes(Field::Attribute(1)).unwrap().sizes.len(),
                    12
                );
                damage(&bytes, |bytes| {
                    LegacyMetadata::decode(bytes, &schema, dense)
                });
            }
        }
    }

    #[test]
    fn an_empty_domain_round_trips() {
        let version = FormatVersion::OLDEST;
        let schema = schema(version, &[Datatype::Int32, Datatype::Int32]);
        let mut metadata = metadata(version, &schema, true);
        metadata.footer.non_empty_domain = None;
        let bytes = metadata.encode(&schema).unwrap();
        assert_eq!(
            LegacyMetadata::decode(&bytes, &schema, true).unwrap(),
            metadata
        );
    }
}
