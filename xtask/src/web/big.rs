//! A large array for tests and timings in browsers: 1 GB of cells, and the same as Zarr.

use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::schema::Attribute;
use azulejo::format::{ArraySchema, CellValNum, Datatype};
use azulejo::write::WriteLayout;
use azulejo::{ColumnBuffers, ColumnSet, Config, Context, WriteOptions};
use serde_json::json;
use std::fs;
use std::path::Path;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const SIDE: i32 = 16_384;
const TILE: i32 = 512;
const LEVEL: i32 = 1;

/// Writes the array `big`, of attribute `v` over `y` and `x`, into `folder`, and its manifest,
/// unless it is there. With `zarr` the same cells in chunks as large as its tiles as `big.zarr/v`.
pub fn write(folder: &Path, zarr: bool) -> Result<()> {
    let done = folder.join(if zarr { "big.both" } else { "big.done" });
    if done.exists() || folder.join("big.both").exists() {
        return Ok(());
    }
    for name in ["big", "big.zarr"] {
        let old = folder.join(name);
        if old.exists() {
            fs::remove_dir_all(old)?;
        }
    }
    fs::create_dir_all(folder)?;
    let context = Context::new(Config::default(), None)?;
    let uri = folder.join("big").to_string_lossy().into_owned();
    let filters = Pipeline {
        max_chunk_size: 4 << 20,
        filters: vec![Filter::Zstd { level: LEVEL }],
    };
    let value = Attribute::new("v", Datatype::Float32, CellValNum::ONE).filters(filters);
    let schema = ArraySchema::dense()
        .dimension("y", 0..=SIDE - 1, TILE)
        .dimension("x", 0..=SIDE - 1, TILE)
        .attribute_with(value)
        .build()?;
    context.array(&uri).create(schema)?;
    let chunks = folder.join("big.zarr/v/c");
    let options = WriteOptions::new().layout(WriteLayout::Global);
    let mut writer = context.array(&uri).writer(options)?;
    let mut random = 1;
    for row in 0..SIDE / TILE {
        for column in 0..SIDE / TILE {
            let cells = tile(row, column, &mut random);
            if zarr {
                let bytes: Vec<u8> = cells.iter().flat_map(|v| v.to_le_bytes()).collect();
                let row = chunks.join(row.to_string());
                fs::create_dir_all(&row)?;
                let stored = zstd::bulk::compress(&bytes, LEVEL)?;
                fs::write(row.join(column.to_string()), stored)?;
            }
            writer.write(&ColumnSet::of([ColumnBuffers::of_values("v", cells)])?)?;
        }
    }
    writer.finish()?;
    context.object(&uri).write_manifests()?;
    if zarr {
        fs::write(folder.join("big.zarr/v/zarr.json"), zarr_json().to_string())?;
    }
    fs::write(done, "")?;
    Ok(())
}

/// The cells of a tile: waves, and noise that does not compress.
fn tile(row: i32, column: i32, random: &mut u32) -> Vec<f32> {
    let mut cells = Vec::with_capacity((TILE * TILE) as usize);
    for y in row * TILE..(row + 1) * TILE {
        let across = (y as f32 / 700.0).sin() * 1_000.0;
        for x in column * TILE..(column + 1) * TILE {
            *random ^= *random << 13;
            *random ^= *random >> 17;
            *random ^= *random << 5;
            let noise = (*random >> 16) as f32 / 6_553.6;
            let wave = across * ((x / 8) as f32 / 110.0).cos();
            cells.push(wave + noise);
        }
    }
    cells
}

fn zarr_json() -> serde_json::Value {
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": [SIDE, SIDE],
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [TILE, TILE]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0.0,
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "zstd", "configuration": {"level": LEVEL, "checksum": false}},
        ],
        "attributes": {},
    })
}
