//! `cargo xtask versus ceilings`: how near dense reads come to what the machine gives.
//!
//! Beside full reads of one array with several filters, in turn: decompressing the same chunks with
//! the same libraries and nothing else, once into a buffer that stays in a cache and once into
//! memory as large as the result, and copying the raw cells out of the page cache and nothing else;
//! each on all cores into memory that was used before. Then what a read cannot do without, each
//! step alone in a loop of its own: the stored bytes from the page cache into a buffer that stays
//! in a cache, the codec there, and cells from such a buffer to their places in the result. With
//! all cores busy these add up. [`writes`] does the same for writes.

mod writes;

use crate::{Outcome, root};
use azulejo::column::{ColumnBuffers, ColumnMut, ColumnSet};
use azulejo::format::filter::{Filter, FilterContext, Pipeline, Scratch};
use azulejo::format::schema::{ArraySchema, Attribute};
use azulejo::format::tile::TileDecoder;
use azulejo::format::{CellValNum, Datatype, FormatVersion};
use azulejo::read::ReadOptions;
use azulejo::write::WriteOptions;
use azulejo::{Config, Context};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Cells along both dimensions, and of a tile.
const SIDE: usize = 8_000;
const TILE: usize = 500;
/// Bytes that filters work on at a time.
const CHUNK: usize = 64 << 10;
/// Bytes that a thread copies at a time.
const PIECE: usize = 1 << 20;
/// How often everything is measured; the best time counts.
const ROUNDS: usize = 7;

/// A codec and what comes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    None,
    Zstd,
    Lz4,
    ShuffleZstd,
    ShuffleLz4,
}

impl Codec {
    const ALL: [Self; 5] = [
        Self::None,
        Self::Zstd,
        Self::Lz4,
        Self::ShuffleZstd,
        Self::ShuffleLz4,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
            Self::ShuffleZstd => "byteshuffle, zstd",
            Self::ShuffleLz4 => "byteshuffle, lz4",
        }
    }

    fn filters(self) -> Vec<Filter> {
        let (zstd, lz4) = (Filter::Zstd { level: 3 }, Filter::Lz4 { level: 0 });
        match self {
            Self::None => vec![],
            Self::Zstd => vec![zstd],
            Self::Lz4 => vec![lz4],
            Self::ShuffleZstd => vec![Filter::Byteshuffle, zstd],
            Self::ShuffleLz4 => vec![Filter::Byteshuffle, lz4],
        }
    }

    /// What is left to undo when the codec is done.
    fn shuffles(self) -> bool {
        matches!(self, Self::ShuffleZstd | Self::ShuffleLz4)
    }

    /// What the codec makes of a chunk.
    fn compress(self, chunk: &[u8]) -> Result<Vec<u8>, String> {
        let zstd = |chunk: &[u8]| zstd::bulk::compress(chunk, 3).map_err(|e| e.to_string());
        match self {
            Self::None => Ok(chunk.to_vec()),
            Self::Zstd => zstd(chunk),
            Self::Lz4 => Ok(lz4_flex::block::compress(chunk)),
            Self::ShuffleZstd => zstd(&shuffled(chunk)),
            Self::ShuffleLz4 => Ok(lz4_flex::block::compress(&shuffled(chunk))),
        }
    }
}

/// The first bytes of all cells, then the second ones, and so on.
fn shuffled(chunk: &[u8]) -> Vec<u8> {
    (0..4)
        .flat_map(|byte| chunk.iter().skip(byte).step_by(4).copied())
        .collect()
}

/// Measures and prints the shares.
pub fn run() -> Outcome {
    let dir = root().join("target/versus-ceilings");
    let cells = cells();
    let bytes: Vec<u8> = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
    let tiles = tiles(&bytes);
    let context = Context::new(Config::default(), None).map_err(|e| e.to_string())?;
    let mut out = vec![1; bytes.len()];
    println!(
        "{:20} {:>12} {:>12} {:>12} {:>12}",
        "filters", "of codec", "to memory", "of cache", "of steps"
    );
    for codec in Codec::ALL {
        let uri = create(&context, &dir, codec)?;
        let columns = ColumnSet::of([ColumnBuffers::of_values("v", cells.clone())]);
        add(&context, &uri, &columns.map_err(|e| e.to_string())?)?;
        let chunks: Vec<Vec<u8>> = tiles
            .iter()
            .flat_map(|tile| tile.chunks(CHUNK))
            .map(|chunk| codec.compress(chunk))
            .collect::<Result<_, _>>()?;
        let file = data_file(&uri)?;
        let mut best = [f64::INFINITY; 6];
        let tile = tiles.first().map_or(0, Vec::len);
        for _ in 0..ROUNDS {
            let times = [
                timed(|| read(&context, &uri, &mut out))?,
                timed(|| decompress(codec, &chunks, tile))?,
                timed(|| decompress_to_memory(codec, &chunks, tile, &mut out))?,
                timed(|| copy(&file, &mut out))?,
                timed(|| fetch(&file, tiles.len()))?,
                timed(|| place(codec, &bytes, &mut out))?,
            ];
            for (best, time) in best.iter_mut().zip(times) {
                *best = best.min(time);
            }
            read(&context, &uri, &mut out)?;
            if out != bytes {
                return Err(format!(
                    "{}: what was read is not what was written",
                    codec.name()
                ));
            }
        }
        let [read, in_cache, to_memory, cache, fetch, place] = best;
        let share = |time: f64, known: bool| {
            if known {
                format!("{:.0} %", time / read * 100.0)
            } else {
                "-".to_owned()
            }
        };
        let coded = codec != Codec::None;
        println!(
            "{:20} {:>12} {:>12} {:>12} {:>12}",
            codec.name(),
            share(in_cache, coded),
            share(to_memory, coded),
            share(cache, !coded),
            share(fetch + in_cache + place, coded)
        );
    }
    drop(out);
    writes::run(&context, &dir, &cells, &bytes, &tiles)?;
    std::fs::remove_dir_all(&dir).map_err(|e| e.to_string())
}

/// Cells as measurements have them: smooth, with noise in the last bits.
fn cells() -> Vec<f32> {
    let mut state = 88_172_645_463_325_252_u64;
    let row = |i: usize| 280.0 + 20.0 * (i as f64 * 0.001).sin();
    let column: Vec<f64> = (0..SIDE).map(|j| 10.0 * (j as f64 * 0.002).cos()).collect();
    let mut cells = Vec::with_capacity(SIDE * SIDE);
    for i in 0..SIDE {
        for along in &column {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            cells.push((row(i) + along) as f32 + (state % 64) as f32 * 0.015_625);
        }
    }
    cells
}

/// The bytes of each space tile.
fn tiles(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (row, part) = (SIDE * 4, TILE * 4);
    let places = (0..SIDE / TILE).flat_map(|y| (0..SIDE / TILE).map(move |x| (y, x)));
    let tile = |(y, x): (usize, usize)| {
        let rows = bytes.chunks_exact(row).skip(y * TILE).take(TILE);
        rows.flat_map(|cells| cells.iter().skip(x * part).take(part).copied())
            .collect()
    };
    places.map(tile).collect()
}

/// Makes an array without cells.
fn create(context: &Context, dir: &Path, codec: Codec) -> Result<PathBuf, String> {
    let uri = dir.join(codec.name().replace(", ", "_"));
    if uri.exists() {
        std::fs::remove_dir_all(&uri).map_err(|e| e.to_string())?;
    }
    std::fs::create_dir_all(dir).map_err(|e| e.to_string())?;
    let text = uri.to_str().ok_or("the folder's name is not text")?;
    let pipeline = Pipeline {
        filters: codec.filters(),
        ..Pipeline::default()
    };
    let (last, tile) = (SIDE as i64 - 1, TILE as i64);
    let schema = ArraySchema::dense()
        .dimension("y", 0..=last, tile)
        .dimension("x", 0..=last, tile)
        .attribute_with(Attribute::new("v", Datatype::Float32, CellValNum::ONE).filters(pipeline))
        .build()
        .map_err(|e| e.to_string())?;
    context
        .array(text)
        .create(schema)
        .map_err(|e| e.to_string())?;
    Ok(uri)
}

/// Writes the cells of an array.
fn add(context: &Context, uri: &Path, columns: &ColumnSet) -> Outcome {
    let mut writer = context
        .array(&uri.to_string_lossy())
        .writer(WriteOptions::new())
        .map_err(|e| e.to_string())?;
    writer.write(columns).map_err(|e| e.to_string())?;
    writer.finish().map(drop).map_err(|e| e.to_string())
}

/// The file with the cells of the only fragment.
fn data_file(uri: &Path) -> Result<File, String> {
    let fragments = std::fs::read_dir(uri.join("__fragments")).map_err(|e| e.to_string())?;
    let fragment = fragments.flatten().next().ok_or("no fragment")?;
    File::open(fragment.path().join("a0.tdb")).map_err(|e| e.to_string())
}

fn timed(work: impl FnOnce() -> Outcome) -> Result<f64, String> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

/// Opens the array and reads it.
fn read(context: &Context, uri: &Path, out: &mut [u8]) -> Outcome {
    let array = context
        .array(&uri.to_string_lossy())
        .open()
        .map_err(|e| e.to_string())?;
    let mut reader = array.read(ReadOptions::new()).map_err(|e| e.to_string())?;
    let mut columns = [ColumnMut {
        data: out,
        offsets: None,
        validity: None,
    }];
    let progress = reader.read_into(&mut columns).map_err(|e| e.to_string())?;
    if progress.complete {
        Ok(())
    } else {
        Err("the read is not complete".into())
    }
}

/// Does `work` on all cores and returns the first error.
fn on_all_cores(work: impl Fn() -> Outcome + Sync) -> Outcome {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(&work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| "a thread died".to_owned())?)
    })
}

/// Decompresses a chunk.
fn decompress_chunk(
    codec: Codec,
    chunk: &[u8],
    out: &mut [u8],
    zstd: &mut zstd::bulk::Decompressor<'_>,
) -> Result<usize, String> {
    match codec {
        Codec::None => {
            out[..chunk.len()].copy_from_slice(chunk);
            Ok(chunk.len())
        }
        Codec::Lz4 | Codec::ShuffleLz4 => {
            lz4_flex::block::decompress_into(chunk, out).map_err(|e| e.to_string())
        }
        Codec::Zstd | Codec::ShuffleZstd => zstd
            .decompress_to_buffer(chunk, out)
            .map_err(|e| e.to_string()),
    }
}

/// Decompresses the chunks of tiles of so many bytes, each thread into one buffer.
fn decompress(codec: Codec, chunks: &[Vec<u8>], tile: usize) -> Outcome {
    let next = AtomicUsize::new(0);
    let by_tile = tile.div_ceil(CHUNK).max(1);
    on_all_cores(|| {
        let mut buffer = vec![1; CHUNK];
        let mut zstd = zstd::bulk::Decompressor::new().map_err(|e| e.to_string())?;
        while let Some(tile) = chunks
            .chunks(by_tile)
            .nth(next.fetch_add(1, Ordering::Relaxed))
        {
            for chunk in tile {
                decompress_chunk(codec, chunk, &mut buffer, &mut zstd)?;
                std::hint::black_box(&buffer);
            }
        }
        Ok(())
    })
}

/// As [`decompress`], one chunk behind another into `out`.
fn decompress_to_memory(codec: Codec, chunks: &[Vec<u8>], tile: usize, out: &mut [u8]) -> Outcome {
    let work = std::sync::Mutex::new(
        out.chunks_mut(tile)
            .zip(chunks.chunks(tile.div_ceil(CHUNK).max(1))),
    );
    on_all_cores(|| {
        let mut zstd = zstd::bulk::Decompressor::new().map_err(|e| e.to_string())?;
        loop {
            let next = work.lock().map_err(|_| "a thread died")?.next();
            let Some((mut out, chunks)) = next else {
                return Ok(());
            };
            for chunk in chunks {
                let len = decompress_chunk(codec, chunk, out, &mut zstd)?;
                out = out.split_at_mut(len).1;
            }
        }
    })
}

/// Reads a file's first bytes into `out`, as far as there are so many.
fn copy(file: &File, out: &mut [u8]) -> Outcome {
    let len = usize::try_from(file.metadata().map_err(|e| e.to_string())?.len())
        .map_err(|e| e.to_string())?;
    let len = len.min(out.len());
    let pieces = std::sync::Mutex::new(out.split_at_mut(len).0.chunks_mut(PIECE).enumerate());
    on_all_cores(|| {
        loop {
            let piece = pieces.lock().map_err(|_| "a thread died")?.next();
            let Some((i, piece)) = piece else {
                return Ok(());
            };
            file.read_exact_at(piece, (i * PIECE) as u64)
                .map_err(|e| e.to_string())?;
        }
    })
}

/// Reads a file in so many pieces, each into a buffer that stays in a cache.
fn fetch(file: &File, pieces: usize) -> Outcome {
    let len = file.metadata().map_err(|e| e.to_string())?.len();
    let piece = len.div_ceil(pieces.max(1) as u64).max(1);
    let next = AtomicUsize::new(0);
    on_all_cores(|| {
        let mut buffer = vec![1; CHUNK];
        loop {
            let start = next.fetch_add(1, Ordering::Relaxed) as u64 * piece;
            if start >= len {
                return Ok(());
            }
            let end = len.min(start + piece);
            for at in (start..end).step_by(CHUNK) {
                let part = CHUNK.min((end - at) as usize);
                file.read_exact_at(&mut buffer[..part], at)
                    .map_err(|e| e.to_string())?;
            }
        }
    })
}

/// What filters are told of the cells.
fn filtered() -> FilterContext<'static> {
    FilterContext {
        version: FormatVersion::CURRENT,
        datatype: Datatype::Float32,
        cell_val_num: CellValNum::ONE,
        key: None,
    }
}

/// Puts cells to the places of all tiles in `out`, from a chunk that stays in a cache and is
/// decompressed.
fn place(codec: Codec, cells: &[u8], out: &mut [u8]) -> Outcome {
    let filters = if codec.shuffles() {
        vec![Filter::Byteshuffle]
    } else {
        vec![]
    };
    let pipeline = Pipeline {
        filters,
        ..Pipeline::default()
    };
    let ctx = filtered();
    let mut stored = Vec::new();
    let chunk = cells.get(..CHUNK).unwrap_or(cells);
    pipeline
        .encode_tile(&ctx, chunk, None, &mut stored, &mut Scratch::new())
        .map_err(|e| e.to_string())?;
    let mut chunks = TileDecoder::new(stored.len() as u64).chunks(&stored);
    let (Some(Ok(chunk)), None) = (chunks.next(), chunks.next()) else {
        return Err("the chunk is not one".into());
    };
    let (row, part) = (SIDE * 4, TILE * 4);
    let bands = std::sync::Mutex::new(out.chunks_mut(row * TILE));
    on_all_cores(|| {
        let mut scratch = Scratch::new();
        loop {
            let band = bands.lock().map_err(|_| "a thread died")?.next();
            let Some(band) = band else { return Ok(()) };
            for left in (0..row).step_by(part) {
                let mut at = 0;
                while at < TILE * part {
                    let mut open = pipeline
                        .open_chunk(&ctx, &chunk, &mut scratch)
                        .map_err(|e| e.to_string())?;
                    let end = (at + CHUNK).min(TILE * part);
                    let start = at;
                    while at < end {
                        let (y, x) = (at / part, at % part);
                        let len = (part - x).min(end - at);
                        let cells = &mut band[y * row + left + x..][..len];
                        open.copy_to(at - start, cells, true)
                            .map_err(|e| e.to_string())?;
                        at += len;
                    }
                }
            }
        }
    })
}
