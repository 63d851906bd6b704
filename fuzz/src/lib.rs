//! Fuzz targets: what libFuzzer calls, and what the replay test calls on stable Rust.
//!
//! A target takes any bytes and must neither panic, hang nor allocate beyond its limit. Where
//! decoding succeeds, encoding and decoding again must give the same value.

use azulejo::format::condition::Condition;
use azulejo::format::filter::{FilterContext, Pipeline, Scratch};
use azulejo::format::fragment::{
    Footer, FragmentStats, LegacyMetadata, ProcessedConditions, RTree, Slots, TileBounds,
    TileNullCounts, TileOffsets, TileSizes, TileSums,
};
use azulejo::format::schema::Enumeration;
use azulejo::format::tile::{GenericTile, TileDecoder};
use azulejo::format::wire::ByteReader;
use azulejo::format::{ArraySchema, CellValNum, Datatype, FormatVersion};
use azulejo::manifest::Manifest;
use azulejo::read::ReadOptions;
use azulejo::storage::{LocalStorage, MemoryStorage, Storage, StorePath};
use azulejo::{Config, Context};
use bytes::Bytes;
use std::sync::Arc;

/// What one decoder may produce from fuzzed bytes.
const LIMIT: u64 = 1 << 24;

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
    let mut offsets = vec![0; 16];
    let _ = pipeline.decode_string_tile(&ctx, stored, &mut out, &mut offsets, &mut Scratch::new());
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

/// A folder of files: name behind its length as `u16`, content behind its length as `u32`, again
/// and again.
pub fn whole_array(data: &[u8]) {
    let memory = MemoryStorage::new();
    let mut r = ByteReader::new(data);
    while let Ok(len) = r.u16("name length") {
        let Ok(name) = r.text(len.into(), "name") else {
            break;
        };
        let Ok(len) = r.u32("length") else { break };
        let Ok(content) = r.bytes_u64(len.into(), "content") else {
            break;
        };
        let _ = memory.put(
            &StorePath::memory(&format!("a/{name}")),
            Bytes::copy_from_slice(content),
        );
    }
    let config = Config {
        memory_budget: LIMIT,
        threads: 1,
        ..Config::default()
    };
    let Ok(context) = Context::with_storages(
        config,
        None,
        Arc::new(LocalStorage::new()),
        Arc::new(memory),
    ) else {
        return;
    };
    let Ok(array) = context.array("mem://a").open() else {
        return;
    };
    let _ = array.metadata();
    let _ = array.non_empty_domain();
    let mut cells = 0;
    if let Ok(reader) = array.read(ReadOptions::new()) {
        // A domain may be huge: a few batches show as much as all of them.
        for batch in reader.take(3) {
            let Ok(batch) = batch else { break };
            cells += batch.cell_num;
        }
    }
    std::hint::black_box(cells);
}

/// A folder as [`whole_array`] takes it.
#[must_use]
pub fn pack_folder(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, content) in files {
        out.extend((name.len() as u16).to_le_bytes());
        out.extend(name.as_bytes());
        out.extend((content.len() as u32).to_le_bytes());
        out.extend(content);
    }
    out
}
