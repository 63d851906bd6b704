//! Files of an array with nothing compressed in their metadata, so that a change of a byte on disk
//! is a change of what a decoder sees.

use crate::decoders::LIMIT;
use azulejo::format::ArraySchema;
use azulejo::format::filter::{FilterContext, Pipeline, Scratch};
use azulejo::format::fragment::{Footer, LocatedFooter, Numbers, OptionalSection};
use azulejo::format::tile::{GenericTile, GenericTileHeader};
use azulejo::format::wire::ByteWriter;
use azulejo::format::{CellValNum, Datatype};
use std::collections::BTreeMap;

/// The generic tile of these data, without filters.
#[must_use]
pub fn tile(header: &GenericTileHeader, data: &[u8]) -> Option<Vec<u8>> {
    let mut header = header.clone();
    header.filters = Pipeline::default();
    header.tile_size = data.len() as u64;
    header.encrypted = false;
    let context = FilterContext {
        version: header.version,
        datatype: Datatype::Char,
        cell_val_num: CellValNum::ONE,
        key: None,
    };
    let mut stored = Vec::new();
    let filters = &header.filters;
    filters
        .encode_tile(&context, data, None, &mut stored, &mut Scratch::new())
        .ok()?;
    header.persisted_size = stored.len() as u64;
    let mut w = ByteWriter::new();
    header.encode(&mut w);
    w.bytes(&stored);
    Some(w.into_bytes())
}

/// A file that is one generic tile, plain; others as they are.
#[must_use]
pub fn file(content: &[u8]) -> Vec<u8> {
    let plain = |content: &[u8]| {
        let whole = GenericTile::decode(content, None, LIMIT).ok()?;
        (whole.consumed == content.len()).then(|| tile(&whole.header, &whole.data))?
    };
    plain(content).unwrap_or_else(|| content.to_vec())
}

/// A fragment's metadata file with plain sections, and the footer that leads to them.
#[must_use]
pub fn fragment_metadata(content: &[u8], schema: &ArraySchema) -> Option<Vec<u8>> {
    let version = schema.version;
    let LocatedFooter::Found { offset, bytes } =
        Footer::locate(content, content.len() as u64, version, Some(schema)).ok()?
    else {
        return None;
    };
    let mut footer = Footer::decode(bytes, schema, Some(offset)).ok()?;
    let (mut out, mut moved) = (Vec::new(), BTreeMap::new());
    let mut at = 0;
    while at < offset as usize {
        let section = GenericTile::decode(content.get(at..)?, None, LIMIT).ok()?;
        moved.insert(at as u64, out.len() as u64);
        out.extend(tile(&section.header, &section.data)?);
        at += section.consumed;
    }
    let new = |old: &u64| moved.get(old).copied().unwrap_or(*old);
    let all = |numbers: &Numbers| numbers.iter().map(new).collect::<Numbers>();
    let sections = &mut footer.sections;
    sections.rtree = new(&sections.rtree);
    sections.tile_offsets = all(&sections.tile_offsets);
    sections.tile_var_offsets = all(&sections.tile_var_offsets);
    sections.tile_var_sizes = all(&sections.tile_var_sizes);
    sections.tile_validity_offsets = all(&sections.tile_validity_offsets);
    sections.tile_mins = all(&sections.tile_mins);
    sections.tile_maxs = all(&sections.tile_maxs);
    sections.tile_sums = all(&sections.tile_sums);
    sections.tile_null_counts = all(&sections.tile_null_counts);
    sections.fragment_stats = sections.fragment_stats.as_ref().map(new);
    sections.processed_conditions = sections.processed_conditions.as_ref().map(new);
    for section in &mut footer.optional_sections {
        if let OptionalSection::TileGlobalOrderBounds { mins, maxs } = section {
            for offset in mins.iter_mut().chain(maxs) {
                *offset = new(offset);
            }
        }
    }
    let footer = footer.encode(schema).ok()?;
    let len = footer.len() as u64;
    out.extend(footer);
    out.extend(Footer::encode_trailer(version, schema, len));
    Some(out)
}
