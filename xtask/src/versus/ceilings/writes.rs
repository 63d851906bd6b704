//! How near dense writes come to what the machine gives: beside them what a write cannot do without,
//! each step alone in a loop of its own on all cores. Cells are taken from the caller's memory tile
//! by tile, chunk after chunk into a buffer that stays in a cache, and shuffled there; there they are
//! counted (least, greatest, sum), and there the codec works, with a context for each thread. Then as
//! many bytes as were stored go from such a buffer to a file, and last the device is waited for. The
//! steps on the processor add up; the device may work beside them, so its time is not among the
//! clock's. Both the clock and the processor's time are shown: the latter says something on a busy
//! machine too.

use super::{
    CHUNK, Codec, SIDE, TILE, add, create, data_file, filtered, on_all_cores, shuffled, timed,
};
use crate::Outcome;
use azulejo::Context;
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::filter::{Filter, Pipeline, Scratch};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Fewer rounds than of reads: each waits for the device.
const ROUNDS: usize = 5;

/// A write, its steps, and the device.
const PARTS: usize = 6;

/// Seconds of a part: by the clock the best round, on the processor (both cores together) of all
/// rounds.
#[derive(Debug, Clone, Copy)]
struct Spent {
    clock: f64,
    processor: f64,
}

impl Spent {
    const NOTHING: Self = Self {
        clock: f64::INFINITY,
        processor: 0.0,
    };

    fn add(&mut self, work: impl FnOnce() -> Outcome) -> Outcome {
        let before = processor_seconds()?;
        self.clock = self.clock.min(timed(work)?);
        self.processor += processor_seconds()? - before;
        Ok(())
    }
}

/// What the process has spent so far, as the system counts it: in hundredths.
fn processor_seconds() -> Result<f64, String> {
    let text = std::fs::read_to_string("/proc/self/stat").map_err(|e| e.to_string())?;
    // The program's name, in brackets, may hold spaces.
    let (_, fields) = text
        .rsplit_once(')')
        .ok_or("no statistics of the process")?;
    let spent = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = spent.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / 100.0)
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
        "\n{:20} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6} {:>6}",
        "writes, ms", "ours", "take", "count", "codec", "store", "device", "clock", "cpu"
    );
    let columns = ColumnSet::of([ColumnBuffers::of_values("v", cells.to_vec())])
        .map_err(|e| e.to_string())?;
    for codec in Codec::ALL {
        let mut spent = [Spent::NOTHING; PARTS];
        let shuffled: Vec<Vec<u8>> = match codec.shuffles() {
            true => tiles.iter().map(|tile| shuffled_tile(tile)).collect(),
            false => tiles.to_vec(),
        };
        for _ in 0..ROUNDS {
            let uri = create(context, dir, codec)?;
            let [ours, taken, counted, coded, stored, last] = &mut spent;
            ours.add(|| add(context, &uri, &columns))?;
            let file = data_file(&uri)?;
            let bytes_stored = file.metadata().map_err(|e| e.to_string())?.len();
            let own = dir.join("stored");
            taken.add(|| take(codec, bytes))?;
            counted.add(|| count(tiles))?;
            coded.add(|| compress(codec, &shuffled))?;
            stored.add(|| store(&own, bytes_stored))?;
            last.add(|| {
                let file = File::open(&own).map_err(|e| e.to_string())?;
                file.sync_all().map_err(|e| e.to_string())
            })?;
            std::fs::remove_file(&own).map_err(|e| e.to_string())?;
        }
        let show = |spent: &Spent| {
            let processor = spent.processor / ROUNDS as f64;
            format!("{:.0}/{:.0}", spent.clock * 1000.0, processor * 1000.0)
        };
        let [ours, steps @ .., last] = &spent;
        let clock: f64 = steps.iter().map(|step| step.clock).sum();
        let processor: f64 = steps.iter().chain([last]).map(|step| step.processor).sum();
        let shown: Vec<String> = spent
            .iter()
            .map(|spent| format!("{:>9}", show(spent)))
            .collect();
        println!(
            "{:20} {} {:>4.0} % {:>4.0} %",
            codec.name(),
            shown.join(" "),
            clock / ours.clock * 100.0,
            processor / ours.processor * 100.0
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
    let ctx = filtered();
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
