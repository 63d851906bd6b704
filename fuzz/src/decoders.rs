//! Decoders: values from bytes, and the same values again from their own bytes.

use azulejo::format::commit::{
    ConsolidatedCommits, Delete, IgnoreList, Replacement, Update, VacuumList,
};
use azulejo::format::condition::Condition;
use azulejo::format::filter::{FilterContext, Pipeline, Scratch};
use azulejo::format::fragment::{
    ConsolidatedFragmentMetadata, Footer, FragmentStats, LegacyMetadata, ProcessedConditions,
    RTree, Slots, TileBounds, TileNullCounts, TileOffsets, TileSizes, TileSums,
};
use azulejo::format::group::GroupDetails;
use azulejo::format::schema::Enumeration;
use azulejo::format::tile::{Chunk, GenericTile, StoredBytes, TileDecoder, TileStep};
use azulejo::format::timestamped_name::TimestampedName;
use azulejo::format::wire::ByteReader;
use azulejo::format::{ArraySchema, CellValNum, Datatype, FormatVersion};
use azulejo::manifest::Manifest;

/// What one decoder may produce from fuzzed bytes.
pub const LIMIT: u64 = 1 << 24;

/// The payload of a schema file, of an enumeration, of a delete condition.
pub fn schema(data: &[u8]) {
    if let Ok(schema) = ArraySchema::decode(data) {
        let bytes = schema.encode();
        let decoded = ArraySchema::decode(&bytes).expect("an encoded schema decodes");
        assert_eq!(decoded.encode(), bytes);
    }
    let _ = Enumeration::decode(data);
    if let Ok(condition) = Condition::decode(data) {
        assert_eq!(Condition::decode(&condition.encode()), Ok(condition));
    }
    let _ = azulejo::format::metadata::decode(data);
}

/// A generic tile: header and body.
pub fn generic_tile(data: &[u8]) {
    if let Ok(tile) = GenericTile::decode(data, None, LIMIT) {
        assert!(tile.data.len() as u64 <= LIMIT);
    }
}

/// A schema payload behind its length as `u32`, then the bytes of any part of fragment metadata.
pub fn fragment_metadata(data: &[u8]) {
    let mut r = ByteReader::new(data);
    let Ok(len) = r.u32("length") else { return };
    let Ok(payload) = r.bytes_u64(len.into(), "schema") else {
        return;
    };
    let Ok(schema) = ArraySchema::decode(payload) else {
        return;
    };
    let part = r.rest();
    if let Ok(footer) = Footer::decode(part, &schema, None) {
        let _ = footer.encode(&schema);
    }
    let _ = LegacyMetadata::decode(part, &schema, true);
    let _ = LegacyMetadata::decode(part, &schema, false);
    if let Ok(tree) = RTree::decode(part, schema.version, &schema.domain) {
        let _ = tree.bounding_box();
    }
    let _ = TileOffsets::decode(part, LIMIT);
    let _ = TileSizes::decode(part);
    let _ = TileSums::decode(part);
    let _ = TileNullCounts::decode(part);
    let _ = ProcessedConditions::decode(part);
    for attribute in &schema.attributes {
        let _ = TileBounds::decode(part, attribute.datatype, attribute.cell_val_num);
    }
    let _ = FragmentStats::decode(part, Slots::new(schema.version, &schema, false, false));
}

/// The small files beside arrays and groups: lists of commits, members of groups, footers of many
/// fragments, and names.
pub fn small_files(data: &[u8]) {
    if let Ok(commits) = ConsolidatedCommits::decode(data) {
        let bytes = commits.encode();
        assert_eq!(ConsolidatedCommits::decode(&bytes), Ok(commits));
    }
    if let Ok(list) = VacuumList::decode(data) {
        assert_eq!(VacuumList::decode(&list.encode()), Ok(list));
    }
    if let Ok(list) = IgnoreList::decode(data) {
        assert_eq!(IgnoreList::decode(&list.encode()), Ok(list));
    }
    if let Ok(replacement) = Replacement::decode(data) {
        assert_eq!(Replacement::decode(&replacement.encode()), Ok(replacement));
    }
    if let Ok(delete) = Delete::decode(data) {
        assert_eq!(Delete::decode(&delete.encode()), Ok(delete));
    }
    if let Ok(update) = Update::decode(data) {
        assert_eq!(Update::decode(&update.encode()), Ok(update));
    }
    if let Ok(group) = GroupDetails::decode(data) {
        assert_eq!(GroupDetails::decode(&group.encode()), Ok(group));
    }
    if let Ok(footers) = ConsolidatedFragmentMetadata::decode(data) {
        let bytes = footers.encode();
        let again = ConsolidatedFragmentMetadata::decode(&bytes);
        // A footer ends where the next one begins: an empty one has no place of its own.
        if footers.footers.iter().all(|f| !f.footer.is_empty()) {
            assert_eq!(again, Ok(footers));
        }
    }
    if let Ok(name) = std::str::from_utf8(data) {
        let _ = TimestampedName::parse(name);
    }
}

/// How many bytes are read at least at a time, which cells of two bytes are wanted (eight bits,
/// again and again), then a stored tile: read in pieces, it has the chunks that it has as a whole.
pub fn tile_chunks(data: &[u8]) {
    let [ahead, wanted, stored @ ..] = data else {
        return;
    };
    let decoder = TileDecoder::new(stored.len() as u64);
    let whole: Result<Vec<_>, _> = decoder.clone().chunks(stored).collect();
    assert_eq!(in_pieces(decoder, stored, *ahead), whole.clone().ok());
    let Ok(whole) = whole else { return };
    let len: u64 = whole
        .iter()
        .map(|chunk| u64::from(chunk.original_len))
        .sum();
    let spans: Vec<_> = (0..(len / 2).min(64))
        .filter(|cell| wanted >> (cell % 8) & 1 == 1)
        .map(|cell| cell..cell + 1)
        .collect();
    let decoder = TileDecoder::new(stored.len() as u64)
        .sized(len)
        .wanting(&spans, 2);
    let holds = |chunk: &Chunk<'_>| {
        spans
            .iter()
            .any(|span| span.start * 2 < chunk.output_end() && span.end * 2 > chunk.output_offset)
    };
    let expected: Vec<_> = whole.into_iter().filter(holds).collect();
    assert_eq!(in_pieces(decoder, stored, *ahead), Some(expected));
}

/// The chunks that a decoder finds where no more is read than it asks for, and `ahead` bytes.
fn in_pieces<'s>(
    mut decoder: TileDecoder<'_>,
    stored: &'s [u8],
    ahead: u8,
) -> Option<Vec<Chunk<'s>>> {
    let (mut start, mut end) = (0, 0);
    let mut chunks = Vec::new();
    loop {
        let at_hand = StoredBytes::new(start as u64, stored.get(start..end)?);
        match decoder.step(at_hand).ok()? {
            TileStep::Done => return Some(chunks),
            TileStep::Chunk(chunk) => chunks.push(chunk),
            TileStep::NeedsRange { range, .. } => {
                start = range.start as usize;
                end = (start + usize::from(ahead))
                    .min(stored.len())
                    .max(range.end as usize);
            }
        }
    }
}

/// Version, datatype, values a cell, a stored pipeline, then a stored tile.
pub fn filters(data: &[u8]) {
    let mut r = ByteReader::new(data);
    let (Ok(version), Ok(datatype), Ok(values)) =
        (r.u8("version"), r.u8("datatype"), r.u8("values"))
    else {
        return;
    };
    let Ok(version) = FormatVersion::new(version.into(), "fuzz") else {
        return;
    };
    let Ok(datatype) = Datatype::from_id(datatype, 1) else {
        return;
    };
    let cell_val_num = if values == 0 {
        CellValNum::Var
    } else {
        CellValNum::Fixed(values.into())
    };
    let Ok(pipeline) = Pipeline::decode(&mut r, version) else {
        return;
    };
    let stored = r.rest();
    let ctx = FilterContext {
        version,
        datatype,
        cell_val_num,
        key: None,
    };
    let chunks = TileDecoder::new(stored.len() as u64).chunks(stored);
    let lens = chunks.map(|chunk| chunk.map(|chunk| u64::from(chunk.original_len)));
    let Ok(len) = lens.sum::<Result<u64, _>>() else {
        return;
    };
    if len > LIMIT {
        return;
    }
    let mut out = vec![0; len as usize];
    let _ = pipeline.decode_tile(&ctx, stored, &mut out, &mut Scratch::new());
    let mut scratch = Scratch::new();
    for chunk in TileDecoder::new(stored.len() as u64)
        .chunks(stored)
        .flatten()
    {
        // Cells that go to their places one by one are those that go there at once.
        let mut whole = vec![0; chunk.original_len as usize];
        let decoded = pipeline.decode_chunk(&ctx, &chunk, &mut whole, &mut scratch);
        let mut opened = vec![0; whole.len()];
        let open = pipeline.open_chunk(&ctx, &chunk, &mut scratch);
        if let Ok(mut open) = open
            && open.copy_to(0, &mut opened, false).is_ok()
            && decoded.is_ok()
        {
            assert_eq!(opened, whole);
        }
    }
    let mut offsets = vec![0; 16];
    let _ = pipeline.decode_string_tile(&ctx, stored, &mut out, &mut offsets, &mut scratch);
    let owned = pipeline.decode_string_tile_owned(&ctx, stored, LIMIT, &mut scratch);
    if let Ok((data, offsets)) = owned {
        assert!(data.len() as u64 <= LIMIT && offsets.len() as u64 * 8 <= LIMIT);
    }
}

/// The sidecar with an array's listings.
pub fn manifest(data: &[u8]) {
    if let Ok(manifest) = Manifest::decode(data, LIMIT) {
        let bytes = manifest.encode().expect("what was decoded can be encoded");
        assert_eq!(Manifest::decode(&bytes, LIMIT), Ok(manifest));
    }
    // The checksum hides the decoder behind it from mutations: wrap them.
    if let Ok(manifest) = Manifest::decode_content(data) {
        let bytes = manifest.encode().expect("what was decoded can be encoded");
        assert_eq!(Manifest::decode(&bytes, u64::MAX), Ok(manifest));
    }
}
