//! How near dense writes come to what the machine gives: beside them what a write cannot do without,
//! each step alone in a loop of its own on all cores. Cells are taken from the caller's memory tile
//! by tile, chunk after chunk into a buffer that stays in a cache, and shuffled there; there they are
//! counted (least, greatest, sum), and there the codec works, with a context for each thread. Then as
//! many bytes as were stored go from such a buffer to a file, and last the device is waited for. The
//! steps on the processor add up; the device may work beside them.

use super::{CHUNK, Codec, SIDE, TILE, add, create, data_file, on_all_cores, shuffled, timed};
use crate::Outcome;
use azulejo::Context;
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::filter::{Filter, FilterContext, Pipeline, Scratch};
use azulejo::format::{CellValNum, Datatype, FormatVersion};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Fewer rounds than of reads: each waits for the device.
const ROUNDS: usize = 5;

/// What a codec's write and its steps took, in seconds.
#[derive(Debug, Clone, Copy)]
struct Times {
    write: f64,
    take: f64,
    count: f64,
    codec: f64,
    store: f64,
    last: f64,
}

impl Times {
    const NEVER: Self = Self {
        write: f64::INFINITY,
        take: f64::INFINITY,
        count: f64::INFINITY,
        codec: f64::INFINITY,
        store: f64::INFINITY,
        last: f64::INFINITY,
    };

    fn best(self, other: Self) -> Self {
        Self {
            write: self.write.min(other.write),
            take: self.take.min(other.take),
            count: self.count.min(other.count),
            codec: self.codec.min(other.codec),
            store: self.store.min(other.store),
            last: self.last.min(other.last),
        }
    }

    /// What the processor does.
    fn steps(self) -> f64 {
        self.take + self.count + self.codec + self.store
    }
}

/// Measures and prints the shares.
pub(super) fn run(
    context: &Context,
    dir: &Path,
    cells: &[f32],
    bytes: &[u8],
    tiles: &[Vec<u8>],
) -> Outcome {
    println!(
        "\n{:20} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>9} {:>9}",
        "writes, ms", "ours", "take", "count", "codec", "store", "device", "of steps", "of all"
    );
    let columns = ColumnSet::of([ColumnBuffers::of_values("v", cells.to_vec())])
        .map_err(|e| e.to_string())?;
    for codec in Codec::ALL {
        let mut best = Times::NEVER;
        let shuffled: Vec<Vec<u8>> = match codec.shuffles() {
            true => tiles.iter().map(|tile| shuffled_tile(tile)).collect(),
            false => tiles.to_vec(),
        };
        for _ in 0..ROUNDS {
            let uri = create(context, dir, codec)?;
            let write = timed(|| add(context, &uri, &columns))?;
            let file = data_file(&uri)?;
            let stored = file.metadata().map_err(|e| e.to_string())?.len();
            let own = dir.join("stored");
            let times = Times {
                write,
                take: timed(|| take(codec, bytes))?,
                count: timed(|| count(tiles))?,
                codec: timed(|| compress(codec, &shuffled))?,
                store: timed(|| store(&own, stored))?,
                last: timed(|| {
                    let file = File::open(&own).map_err(|e| e.to_string())?;
                    file.sync_all().map_err(|e| e.to_string())
                })?,
            };
            std::fs::remove_file(&own).map_err(|e| e.to_string())?;
            best = best.best(times);
        }
        let ms = |seconds: f64| format!("{:.0}", seconds * 1000.0);
        let share = |seconds: f64| format!("{:.0} %", seconds / best.write * 100.0);
        println!(
            "{:20} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>9} {:>9}",
            codec.name(),
            ms(best.write),
            ms(best.take),
            ms(best.count),
            ms(best.codec),
            ms(best.store),
            ms(best.last),
            share(best.steps()),
            share(best.steps() + best.last)
        );
    }
    Ok(())
}

/// A tile whose chunks are shuffled.
fn shuffled_tile(tile: &[u8]) -> Vec<u8> {
    tile.chunks(CHUNK).flat_map(shuffled).collect()
}

/// Does work for each tile by number, on all cores; threads have a state each.
fn each_tile<S>(
    state: impl Fn() -> Result<S, String> + Sync,
    work: impl Fn(&mut S, usize) -> Outcome + Sync,
) -> Outcome {
    let next = AtomicUsize::new(0);
    let tiles = (SIDE / TILE) * (SIDE / TILE);
    on_all_cores(|| {
        let mut state = state()?;
        loop {
            let tile = next.fetch_add(1, Ordering::Relaxed);
            if tile >= tiles {
                return Ok(());
            }
            work(&mut state, tile)?;
        }
    })
}

/// Takes the cells of all tiles out of rows, a chunk at a time, and shuffles them.
fn take(codec: Codec, bytes: &[u8]) -> Outcome {
    let shuffle = Pipeline {
        filters: vec![Filter::Byteshuffle],
        ..Pipeline::default()
    };
    let ctx = FilterContext {
        version: FormatVersion::CURRENT,
        datatype: Datatype::Float32,
        cell_val_num: CellValNum::ONE,
        key: None,
    };
    let (row, part) = (SIDE * 4, TILE * 4);
    let state = || {
        Ok((
            vec![0u8; CHUNK],
            Vec::with_capacity(2 * CHUNK),
            Scratch::new(),
        ))
    };
    each_tile(state, |(chunk, shuffled, scratch), tile| {
        let (top, left) = (tile / (SIDE / TILE) * TILE, tile % (SIDE / TILE) * part);
        let end = TILE * part;
        for start in (0..end).step_by(CHUNK) {
            let len = CHUNK.min(end - start);
            let mut at = start;
            while at < start + len {
                let (y, x) = (at / part, at % part);
                let run = (part - x).min(start + len - at);
                let from = (top + y) * row + left + x;
                chunk[at - start..at - start + run].copy_from_slice(&bytes[from..from + run]);
                at += run;
            }
            if codec.shuffles() {
                shuffled.clear();
                shuffle
                    .encode_chunk(&ctx, &chunk[..len], None, shuffled, scratch)
                    .map_err(|e| e.to_string())?;
            }
            std::hint::black_box((&chunk, &shuffled));
        }
        Ok(())
    })
}

/// The least, the greatest and the sum of a tile's cells, out of a chunk that stays in a cache.
fn count(tiles: &[Vec<u8>]) -> Outcome {
    const LANES: usize = 8;
    let first = tiles.first().ok_or("no tile")?;
    each_tile(
        || Ok(()),
        |(), _| {
            let (mut least, mut most) = ([f32::MAX; LANES], [f32::MIN; LANES]);
            let mut sum = [0f64; LANES];
            for start in (0..first.len()).step_by(CHUNK) {
                // The same chunk again: it stays in a cache.
                let chunk = &first[..CHUNK.min(first.len() - start)];
                let (cells, _) = std::hint::black_box(chunk).as_chunks::<4>();
                for cells in cells.as_chunks::<LANES>().0 {
                    for (lane, cell) in cells.iter().enumerate() {
                        let cell = f32::from_le_bytes(*cell);
                        least[lane] = least[lane].min(cell);
                        most[lane] = most[lane].max(cell);
                        sum[lane] += f64::from(cell);
                    }
                }
            }
            std::hint::black_box((least, most, sum));
            Ok(())
        },
    )
}

/// Compresses the chunks of all tiles, which are shuffled already, each thread into one buffer.
fn compress(codec: Codec, tiles: &[Vec<u8>]) -> Outcome {
    let state = || {
        let zstd = zstd::bulk::Compressor::new(3).map_err(|e| e.to_string())?;
        Ok((zstd, vec![0u8; 2 * CHUNK]))
    };
    each_tile(state, |(zstd, out), tile| {
        for chunk in tiles[tile].chunks(CHUNK) {
            match codec {
                Codec::None => {}
                Codec::Zstd | Codec::ShuffleZstd => {
                    zstd.compress_to_buffer(chunk, out.as_mut_slice())
                        .map_err(|e| e.to_string())?;
                }
                Codec::Lz4 | Codec::ShuffleLz4 => {
                    lz4_flex::block::compress_into(chunk, out).map_err(|e| e.to_string())?;
                }
            }
            std::hint::black_box(&out);
        }
        Ok(())
    })
}

/// Writes so many bytes to a new file, out of buffers that stay in a cache.
fn store(path: &Path, bytes: u64) -> Outcome {
    let file = File::create(path).map_err(|e| e.to_string())?;
    let piece = 8 * CHUNK as u64;
    let next = AtomicUsize::new(0);
    on_all_cores(|| {
        let buffer = vec![7u8; 8 * CHUNK];
        loop {
            let start = next.fetch_add(1, Ordering::Relaxed) as u64 * piece;
            if start >= bytes {
                return Ok(());
            }
            let len = usize::try_from(piece.min(bytes - start)).map_err(|e| e.to_string())?;
            file.write_all_at(&buffer[..len], start)
                .map_err(|e| e.to_string())?;
        }
    })
}
