//! Decoders: values from bytes, and the same values again from their own bytes.

use azulejo::format::commit::{
    ConsolidatedCommits, Delete, IgnoreList, Replacement, Update, VacuumList,
};
use azulejo::format::condition::Condition;
use azulejo::format::filter::{EncryptionKey, FilterContext, Pipeline, Scratch};
use azulejo::format::fragment::{
    ConsolidatedFragmentMetadata, Footer, FragmentMetadata, FragmentStats, LegacyMetadata,
    LocatedFooter, ProcessedConditions, RTree, Section, Slots, SumKind, TileBounds, TileNullCounts,
    TileOffsets, TileSizes, TileSums,
};
use azulejo::format::group::GroupDetails;
use azulejo::format::schema::Enumeration;
use azulejo::format::tile::{
    Chunk, GenericTile, GenericTileHeader, StoredBytes, TileDecoder, TileStep,
};
use azulejo::format::timestamped_name::TimestampedName;
use azulejo::format::wire::ByteReader;
use azulejo::format::{ArraySchema, CellValNum, Datatype, FormatVersion};
use azulejo::manifest::Manifest;

/// What one decoder may produce from fuzzed bytes.
pub const LIMIT: u64 = 1 << 24;
/// What encrypted inputs are encrypted with.
pub const KEY: EncryptionKey = EncryptionKey::new(*b"0123456789abcdeF0123456789abcdeF");

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
    let mut r = ByteReader::new(data);
    if GenericTileHeader::decode(&mut r).is_ok() {
        chunks_of(r.rest(), data[0], data[data.len() - 1]);
    }
    for key in [None, Some(&KEY)] {
        if let Ok(tile) = GenericTile::decode(data, key, LIMIT) {
            assert!(tile.data.len() as u64 <= LIMIT);
            let bytes = GenericTile::encode(&tile.data, tile.header.version, key);
            if let Ok(bytes) = bytes {
                let again = GenericTile::decode(&bytes, key, LIMIT).expect("what was encoded");
                assert_eq!(again.data, tile.data);
            }
        }
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
    footers(part, &schema);
    for dense in [true, false] {
        if let Ok(legacy) = LegacyMetadata::decode(part, &schema, dense)
            && let Ok(bytes) = legacy.encode(&schema)
        {
            let again = LegacyMetadata::decode(&bytes, &schema, dense).expect("what was encoded");
            assert_eq!(again.encode(&schema), Ok(bytes));
        }
    }
    sections(part, &schema);
    if let Ok(all) = ConsolidatedFragmentMetadata::decode(part) {
        for footer in &all.footers {
            let _ = footer.name();
            footers(footer.footer, &schema);
        }
    }
    for key in [None, Some(&KEY)] {
        let whole = FragmentMetadata::decode(part, schema.version, &schema, key, LIMIT);
        if let Ok(mut whole) = whole
            && let Ok(bytes) = whole.encode(&schema, key)
        {
            let version = whole.footer.version;
            FragmentMetadata::decode(&bytes, version, &schema, key, u64::MAX)
                .expect("what was encoded");
        }
    }
}

/// A footer, by itself and at the end of a file.
fn footers(part: &[u8], schema: &ArraySchema) {
    let _ = Footer::peek_schema_name(part);
    let _ = Footer::locate(part, part.len() as u64, schema.version, None);
    // Of a file the last bytes alone, as many as are asked for.
    let mut tail = 0;
    while let Ok(LocatedFooter::NeedMore(more)) = Footer::locate(
        &part[part.len() - tail..],
        part.len() as u64,
        schema.version,
        Some(schema),
    ) {
        let more = usize::try_from(more).expect("no more than there is");
        assert!(tail < more && more <= part.len());
        tail = more;
    }
    let at_the_end = Footer::locate(part, part.len() as u64, schema.version, Some(schema));
    let (offset, bytes) = match at_the_end {
        Ok(LocatedFooter::Found { offset, bytes }) => (Some(offset), bytes),
        _ => (None, part),
    };
    for (offset, bytes) in [(offset, bytes), (None, part)] {
        let Ok(footer) = Footer::decode(bytes, schema, offset) else {
            continue;
        };
        for field in footer.slots.fields() {
            let sizes = [
                footer.file_size(field),
                footer.file_var_size(field),
                footer.file_validity_size(field),
            ];
            assert!(sizes[0].is_some(), "{field:?} has a file");
            for section in [Section::TileOffsets, Section::TileMins, Section::TileSums] {
                let _ = footer.section_range(section(field));
            }
        }
        let _ = (footer.sparse_cell_num(7), footer.sparse_tile_cell_num(3, 7));
        let _ = footer.section_range(Section::RTree);
        if let Ok(bytes) = footer.encode(schema) {
            let again = Footer::decode(&bytes, schema, None).expect("what was encoded");
            assert_eq!(again.encode(schema), Ok(bytes));
        }
    }
}

/// Each section that the bytes may be.
fn sections(part: &[u8], schema: &ArraySchema) {
    if let Ok(tree) = RTree::decode(part, schema.version, &schema.domain) {
        let _ = tree.bounding_box();
        for level in 0..tree.height() {
            assert!(tree.range(level, tree.level_len(level), 0).is_none());
        }
        let bytes = tree.encode(schema.version);
        let again = RTree::decode(&bytes, schema.version, &schema.domain);
        let again = again.expect("what was encoded");
        assert_eq!(again.encode(schema.version), bytes);
        for tile in 0..tree.tile_num().min(64) {
            assert_eq!(again.mbr(tile), tree.mbr(tile));
        }
    }
    if let Ok(offsets) = TileOffsets::decode(part, LIMIT) {
        assert_eq!(
            TileOffsets::decode(&offsets.encode(), LIMIT).as_ref(),
            Ok(&offsets)
        );
        let ends = (0..offsets.len()).map(|tile| offsets.range(tile).expect("a tile").end);
        assert!(ends.max().is_none_or(|end| end <= LIMIT));
    }
    if let Ok(sizes) = TileSizes::decode(part) {
        assert_eq!(TileSizes::decode(&sizes.encode()).as_ref(), Ok(&sizes));
    }
    if let Ok(sums) = TileSums::decode(part) {
        for kind in [SumKind::Signed, SumKind::Unsigned, SumKind::Real] {
            let _ = sums.get(0, kind);
        }
        assert_eq!(TileSums::decode(&sums.encode()).as_ref(), Ok(&sums));
    }
    if let Ok(counts) = TileNullCounts::decode(part) {
        assert_eq!(
            TileNullCounts::decode(&counts.encode()).as_ref(),
            Ok(&counts)
        );
    }
    if let Ok(conditions) = ProcessedConditions::decode(part) {
        let again = ProcessedConditions::decode(&conditions.encode());
        assert_eq!(again, Ok(conditions));
    }
    let dimensions = schema.domain.dimensions.iter();
    let dimensions = dimensions.map(|d| (d.datatype, d.cell_val_num));
    let attributes = schema
        .attributes
        .iter()
        .map(|a| (a.datatype, a.cell_val_num));
    for (datatype, values) in dimensions.chain(attributes) {
        if let Ok(bounds) = TileBounds::decode(part, datatype, values) {
            let bytes = bounds.encode();
            let again = TileBounds::decode(&bytes, datatype, values).expect("what was encoded");
            assert_eq!(again.len(), bounds.len());
            for tile in 0..bounds.len().min(64) {
                assert_eq!(again.get(tile), bounds.get(tile));
            }
        }
    }
    for (timestamps, deletes) in [(false, false), (true, false), (true, true)] {
        let slots = Slots::new(schema.version, schema, timestamps, deletes);
        if let Ok(stats) = FragmentStats::decode(part, slots) {
            let again = FragmentStats::decode(&stats.encode(), slots);
            assert_eq!(again, Ok(stats));
        }
    }
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
    if let [ahead, wanted, stored @ ..] = data {
        chunks_of(stored, *ahead, *wanted);
    }
}

/// A stored tile is read in pieces and as a whole.
fn chunks_of(stored: &[u8], ahead: u8, wanted: u8) {
    // Of one that is cut off, nothing behind the end is read.
    let longer = TileDecoder::new(stored.len() as u64 + 5).chunks(stored);
    assert!(longer.last().is_some_and(|chunk| chunk.is_err()));
    let decoder = TileDecoder::new(stored.len() as u64);
    let whole: Result<Vec<_>, _> = decoder.clone().chunks(stored).collect();
    assert_eq!(in_pieces(decoder, stored, ahead), whole.clone().ok());
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
    let expected: Vec<_> = whole.iter().copied().filter(holds).collect();
    assert_eq!(in_pieces(decoder, stored, ahead), Some(expected));
    put_in_place(stored, &whole);
    // One that is larger or smaller is wrong.
    for wrong in [len + 1, len.wrapping_sub(1)] {
        let decoder = TileDecoder::new(stored.len() as u64).sized(wrong);
        assert!(decoder.chunks(stored).any(|chunk| chunk.is_err()));
    }
}

/// A caller that reads the bodies of plain chunks to where their cells belong, and passes them.
fn put_in_place(stored: &[u8], chunks: &[Chunk<'_>]) {
    let mut decoder = TileDecoder::new(stored.len() as u64);
    let (mut range, mut left) = (0..0, chunks.iter());
    loop {
        let bytes = stored.get(range.start as usize..range.end as usize);
        let at_hand = StoredBytes::new(range.start, bytes.expect("a range of the tile"));
        let step = decoder.step(at_hand).expect("chunks were found before");
        match step {
            TileStep::Done => break,
            TileStep::Chunk(chunk) => assert_eq!(Some(&chunk), left.next()),
            TileStep::NeedsRange { range: next, chunk } => {
                range = next;
                if let Some(place) = chunk.filter(|place| place.is_plain()) {
                    let expected = left.next().expect("a chunk");
                    let body = place.body();
                    assert_eq!(
                        stored[body.start as usize..body.end as usize],
                        *expected.data
                    );
                    assert_eq!(
                        place.output(),
                        expected.output_offset..expected.output_end()
                    );
                    decoder.pass_chunk();
                }
            }
        }
    }
    assert_eq!(left.next(), None);
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

/// Version (and whether there is a key: 128), datatype, values a cell, a stored pipeline, then a
/// stored tile.
pub fn filters(data: &[u8]) {
    let mut r = ByteReader::new(data);
    let (Ok(version), Ok(datatype), Ok(values)) =
        (r.u8("version"), r.u8("datatype"), r.u8("values"))
    else {
        return;
    };
    let key = (version & 128 > 0).then_some(&KEY);
    let Ok(version) = FormatVersion::new((version & 127).into(), "fuzz") else {
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
        key,
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
        let mut shorter = vec![0; whole.len().saturating_sub(1)];
        let short = pipeline.decode_chunk(&ctx, &chunk, &mut shorter, &mut scratch);
        assert!(short.is_err() || whole.is_empty());
        let Ok(mut open) = pipeline.open_chunk(&ctx, &chunk, &mut scratch) else {
            continue;
        };
        assert!(decoded.is_ok());
        if let Some(bytes) = open.as_bytes() {
            assert_eq!(bytes, whole);
        }
        for streams in [false, true] {
            let mut opened = vec![0; whole.len()];
            // In two pieces, where a value ends there; whole values of eight bytes at most.
            let half = whole.len() / 16 * 8;
            let (first, second) = opened.split_at_mut(half);
            let copied = open
                .copy_to(0, first, streams)
                .and_then(|()| open.copy_to(half, second, streams));
            if copied.is_ok() {
                assert_eq!(opened, whole);
            }
        }
        assert!(open.copy_to(1, &mut vec![0; whole.len()], false).is_err() || whole.is_empty());
    }
    let owned = pipeline.decode_string_tile_owned(&ctx, stored, LIMIT, &mut scratch);
    let cells = owned.as_ref().map_or(16, |(_, offsets)| offsets.len());
    let mut offsets = vec![0; cells];
    let known = pipeline.decode_string_tile(&ctx, stored, &mut out, &mut offsets, &mut scratch);
    let mut ids = vec![[0; 4]; cells];
    let words = pipeline.decode_string_words(&ctx, stored, out.len(), &mut ids, &mut scratch);
    // Words are the same strings, or no strings either.
    assert_eq!(words.is_ok(), known.is_ok());
    if let Ok(words) = words {
        let words: Vec<&[u8]> = words.iter().collect();
        let ends = offsets.iter().skip(1).copied().chain([len]);
        for ((start, end), id) in offsets.iter().zip(ends).zip(ids) {
            let text = &out[*start as usize..end as usize];
            assert_eq!(words[u32::from_le_bytes(id) as usize], text);
        }
    }
    if let Ok((data, owned)) = owned {
        assert!(data.len() as u64 <= LIMIT && owned.len() as u64 * 8 <= LIMIT);
        // Between filters it may have less room.
        assert!(known.is_err() || data == out && owned == offsets);
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
