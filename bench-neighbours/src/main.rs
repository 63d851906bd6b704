//! A dense array of 384^3 `float32` in chunks of 64^3, raw and with Zstandard, beside `zarrs`, in
//! turn: a write, a full read, 100 blocks of 32^3, 100 lines along the first axis (a series at a
//! point). Every read gives memory of its own, on both sides.
//!
//! usage: bench-neighbours FOLDER > rust.json; then run_python.py FOLDER rust.json. `cargo xtask
//! versus zarr` does both.

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::schema::{ArraySchema, Attribute};
use azulejo::format::{CellValNum, Datatype, Range};
use azulejo::read::ReadOptions;
use azulejo::space::DimSelection;
use azulejo::write::WriteOptions;
use azulejo::{Config, Context, Subarray};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use zarrs::array::codec::ZstdCodec;
use zarrs::array::{ArrayBuilder, ArraySubset, data_type};
use zarrs::filesystem::FilesystemStore;

type Outcome<T> = Result<T, Box<dyn Error>>;

const SIDE: usize = 384;
const CHUNK: usize = 64;
const BLOCK: usize = 32;
const ROUNDS: usize = 5;

fn cells() -> Vec<f32> {
    let mut random = Random(88_172_645_463_325_252);
    let wave = |i: usize, step: f64| 20.0 * (i as f64 * step).sin();
    let mut cells = Vec::with_capacity(SIDE * SIDE * SIDE);
    for z in 0..SIDE {
        for y in 0..SIDE {
            for x in 0..SIDE {
                let smooth = 280.0 + wave(z, 0.01) + wave(y, 0.02) + wave(x, 0.005);
                let noise = (random.next() % 8) as f64;
                cells.push((((smooth * 64.0).round() + noise) / 64.0) as f32);
            }
        }
    }
    cells
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// What is read: where each starts, and how many cells it has along each axis.
type Boxes = Vec<[(usize, usize); 3]>;

fn blocks() -> Boxes {
    let mut random = Random(42);
    let mut side = || (random.next() as usize % (SIDE - BLOCK), BLOCK);
    (0..100).map(|_| [side(), side(), side()]).collect()
}

fn lines() -> Boxes {
    let mut random = Random(43);
    let mut place = || (random.next() as usize % SIDE, 1);
    (0..100).map(|_| [(0, SIDE), place(), place()]).collect()
}

/// Bytes of the files below a folder.
fn stored(path: &Path) -> Outcome<f64> {
    let mut bytes = 0.0;
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => stored(&entry.path())?,
            false => entry.metadata()?.len() as f64,
        };
    }
    Ok(bytes)
}

fn sum(cells: &[f32]) -> f64 {
    cells.iter().map(|cell| f64::from(*cell)).sum()
}

/// Best times by phase, and the bytes that are stored.
#[derive(Default)]
struct Times(BTreeMap<&'static str, f64>);

impl Times {
    fn time<T>(&mut self, phase: &'static str, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let start = Instant::now();
        let result = work()?;
        let seconds = start.elapsed().as_secs_f64();
        let best = self.0.entry(phase).or_insert(f64::INFINITY);
        *best = best.min(seconds);
        Ok(result)
    }
}

fn main() -> Outcome<()> {
    let dir = std::env::args().nth(1).ok_or("a folder is missing")?;
    let cells = cells();
    let total = sum(&cells);
    let mut found = BTreeMap::new();
    for codec in ["raw", "zstd"] {
        let (mut ours, mut theirs) = (Times::default(), Times::default());
        for _ in 0..ROUNDS {
            let a = azulejo(&dir, codec, &cells, total, &mut ours)?;
            let b = zarrs(&dir, codec, &cells, total, &mut theirs)?;
            if (a - b).abs() > 1e-6 * a.abs() {
                return Err(format!("blocks and lines of {codec}: {a} and {b}").into());
            }
        }
        found.insert(codec, [("azulejo", ours.0), ("zarrs", theirs.0)]);
    }
    for (codec, sides) in &found {
        for (side, times) in sides {
            for (phase, seconds) in times {
                println!(
                    "{{\"codec\":\"{codec}\",\"side\":\"{side}\",\"phase\":\"{phase}\",\"seconds\":{seconds}}}"
                );
            }
        }
    }
    Ok(())
}

fn fresh(path: &str) -> Outcome<()> {
    if Path::new(path).exists() {
        std::fs::remove_dir_all(path)?;
    }
    Ok(())
}

fn azulejo(dir: &str, codec: &str, cells: &[f32], total: f64, times: &mut Times) -> Outcome<f64> {
    let uri = format!("{dir}/{codec}.tiledb");
    fresh(&uri)?;
    let context = Context::new(Config::default(), None)?;
    let filters = if codec == "raw" {
        vec![]
    } else {
        vec![Filter::Zstd { level: 3 }]
    };
    let attribute = Attribute::new("a", Datatype::Float32, CellValNum::ONE).filters(Pipeline {
        filters,
        ..Pipeline::default()
    });
    let (last, tile) = (SIDE as i32 - 1, CHUNK as i32);
    let schema = ArraySchema::dense()
        .dimension("z", 0..=last, tile)
        .dimension("y", 0..=last, tile)
        .dimension("x", 0..=last, tile)
        .attribute_with(attribute)
        .build()?;
    context.array(&uri).create(schema)?;
    let columns = ColumnSet::of([ColumnBuffers::of_values("a", cells.to_vec())])?;
    times.time("write, durable", || {
        let mut writer = context.array(&uri).writer(WriteOptions::new())?;
        writer.write(&columns)?;
        Ok(writer.finish()?)
    })?;
    let array = context.array(&uri).open()?;
    let read =
        |options: ReadOptions| -> Outcome<ColumnSet> { Ok(array.read(options)?.read_all()?) };
    let sum_of = |set: &ColumnSet| sum(set.columns[0].data.typed_data());
    let all = times.time("full read", || read(ReadOptions::new()))?;
    if sum_of(&all) != total {
        return Err("not what was written".into());
    }
    let mut sums = 0.0;
    for (phase, boxes) in [("100 blocks", blocks()), ("100 lines", lines())] {
        let some = times.time(phase, || {
            let boxes = boxes.into_iter().map(|sides| {
                let range = |(low, cells): (usize, usize)| {
                    DimSelection::Ranges(vec![Range::of(low as i32, (low + cells - 1) as i32)])
                };
                let subarray = Subarray::Box(sides.map(range).to_vec());
                read(ReadOptions::new().subarray(subarray))
            });
            boxes.collect::<Outcome<Vec<_>>>()
        })?;
        sums += some.iter().map(sum_of).sum::<f64>();
    }
    times.0.insert("stored", stored(Path::new(&uri))?);
    Ok(sums)
}

fn zarrs(dir: &str, codec: &str, cells: &[f32], total: f64, times: &mut Times) -> Outcome<f64> {
    let path = format!("{dir}/{codec}.zarr");
    fresh(&path)?;
    let store = Arc::new(FilesystemStore::new(&path)?);
    let (side, chunk) = (SIDE as u64, CHUNK as u64);
    let mut builder =
        ArrayBuilder::new(vec![side; 3], vec![chunk; 3], data_type::float32(), 0.0f32);
    if codec != "raw" {
        builder.bytes_to_bytes_codecs(vec![Arc::new(ZstdCodec::new(3, false))]);
    }
    let array = builder.build(store, "/")?;
    array.store_metadata()?;
    let everything = ArraySubset::new_with_shape(vec![side; 3]);
    let start = Instant::now();
    times.time(
        "write",
        || Ok(array.store_array_subset(&everything, cells)?),
    )?;
    let written = start.elapsed().as_secs_f64();
    let start = Instant::now();
    sync(Path::new(&path))?;
    let durable = written + start.elapsed().as_secs_f64();
    let best = times.0.entry("write, durable").or_insert(f64::INFINITY);
    *best = best.min(durable);
    let all = times.time("full read", || {
        Ok(array.retrieve_array_subset::<Vec<f32>>(&everything)?)
    })?;
    if sum(&all) != total {
        return Err("not what was written".into());
    }
    let mut sums = 0.0;
    for (phase, boxes) in [("100 blocks", blocks()), ("100 lines", lines())] {
        let some = times.time(phase, || {
            let boxes = boxes.into_iter().map(|sides| {
                let ranges = sides.map(|(low, cells)| low as u64..(low + cells) as u64);
                Ok(array
                    .retrieve_array_subset::<Vec<f32>>(&ArraySubset::new_with_ranges(&ranges))?)
            });
            boxes.collect::<Outcome<Vec<_>>>()
        })?;
        sums += some.iter().map(|cells| sum(cells)).sum::<f64>();
    }
    times.0.insert("stored", stored(Path::new(&path))?);
    Ok(sums)
}

/// Waits until all files below a folder are on the device, several at a time.
fn sync(path: &Path) -> Outcome<()> {
    fn files(path: &Path, out: &mut Vec<std::path::PathBuf>) -> Outcome<()> {
        for entry in std::fs::read_dir(path)? {
            let path = entry?.path();
            if path.is_dir() {
                files(&path, out)?;
            }
            out.push(path);
        }
        Ok(())
    }
    let mut all = Vec::new();
    files(path, &mut all)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = all
            .chunks(all.len().div_ceil(8))
            .map(|some| {
                scope.spawn(|| {
                    some.iter()
                        .try_for_each(|path| std::fs::File::open(path)?.sync_all())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .map_err(|_| "a thread died")?
                .map_err(Into::into)
        })
    })
}
