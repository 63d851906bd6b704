//! Fixed-length cells of dense tiles to where they belong: read, unfiltered and copied chunk after
//! chunk.
//!
//! The output is cut into bands of consecutive cells, each for one thread, where tiles end if
//! possible. For its band a thread takes tile after tile and of each only the chunks that hold
//! wanted cells: a chunk is read, unfiltered into a small buffer that stays in cache, and copied,
//! so that all memory that is touched once is the output. A chunk whose cells follow one another in
//! the output too is unfiltered there.

use super::plan::{BatchPlan, TileTask};
use super::scatter;
use super::stored::{ReadWindow, Stored, StoredTileBytes, corrupt, in_file};
use crate::array::short_read_is_corrupt;
use crate::buffer_pool::PoolBuffer;
use crate::error::{Error, Result};
use crate::read::decode::{PARALLEL_BYTES, StoredPart, with_scratch};
use crate::read::fetch::{Fetcher, TileFile};
use crate::read::parallel::{UnusedBytes, each};
use crate::read::stored_tile::StoredTile;
use crate::space::copy::{self, copy_part, place_rows};
use azulejo_format::filter::Scratch;
use azulejo_format::tile::{Chunk, ChunkPlace, TileDecoder, TileStep};
use bytes::Bytes;
use std::collections::HashMap;
use std::ops::Range;

/// Stored chunks are about this long, so wanted cells closer than a fraction of it share chunks
/// anyway.
pub(super) const SPAN_GAP_BYTES: usize = 16 * 1024;

/// Chunks are about this long unless an array says otherwise.
const CHUNK_BYTES: usize = 64 * 1024;

/// Shorter rows are unfiltered together and then copied.
const SHORTEST_ROW: usize = 128;

/// Output from this size on is written past the caches, which could not keep it anyway.
const STREAMED_BYTES: usize = 32 << 20;

/// Bands for each thread, so that a thread that is held up does not hold up the others.
const BANDS_PER_THREAD: usize = 4;

/// One buffer of the output: the values or the validity of a field.
pub(super) struct Layer<'a, 'o> {
    pub out: &'o mut [u8],
    /// Bytes of a cell.
    pub cell_size: usize,
    /// The stored tile of each task; `None` where there is nothing to do.
    pub tiles: Vec<Option<StoredPart<'a>>>,
}

/// Stored tiles that were fetched as a batch.
pub(super) type FetchedTiles = HashMap<StoredTile, Bytes>;

/// Fills the cells that some tasks of a batch have. `fetched` holds their stored tiles, unless
/// threads stream.
pub(super) fn fill_layers(
    fetcher: &Fetcher,
    batch: &BatchPlan,
    tasks: &[TileTask],
    mut layers: Vec<Layer<'_, '_>>,
    fetched: Option<&FetchedTiles>,
    threads: usize,
) -> Result<()> {
    let widest = layers.iter().map(|layer| layer.cell_size).max();
    let streams = layers.iter().map(|layer| layer.out.len()).sum::<usize>() >= STREAMED_BYTES;
    let bands = bands(batch, tasks, widest.unwrap_or(1), threads);
    let outside = || Error::Internal("a band lies outside the output".into());
    let mut work = Vec::with_capacity(bands.len() * layers.len());
    for layer in &mut layers {
        let (cell_size, tiles) = (layer.cell_size, layer.tiles.as_slice());
        let mut out = UnusedBytes::new(layer.out);
        for band in &bands {
            let (start, len) = (band.cells.start * cell_size, band.cells.len() * cell_size);
            let out = out.take(start, len).ok_or_else(outside)?;
            work.push((band, out, cell_size, tiles));
        }
    }
    let operation = fetcher.array().context().begin();
    let run = |(band, out, cell_size, tiles): (&OutputBand, &mut [u8], usize, &[Option<_>])| {
        with_scratch(|scratch| {
            let mut filler = Filler {
                fetcher,
                batch,
                band: &band.cells,
                out,
                cell_size,
                streams,
                scratch,
                window: ReadWindow::default(),
                buffer: PoolBuffer::default(),
            };
            let mut file: Option<TileFile> = None;
            for &task in &band.tasks {
                operation.check()?;
                let part: Option<&StoredPart<'_>> = tiles.get(task).and_then(Option::as_ref);
                if let (Some(part), Some(task)) = (part, tasks.get(task)) {
                    filler.tile(part, task, fetched, &mut file)?;
                }
            }
            Ok(())
        })
    };
    match threads {
        // One tile is all that the budget allows.
        0 | 1 => work.into_iter().try_for_each(run),
        _ => each(fetcher.array().context(), work, run).map(drop),
    }
}

/// Consecutive cells of the output, and the tasks that have some of them.
#[derive(Debug)]
struct OutputBand {
    cells: Range<usize>,
    /// In the order of their files.
    tasks: Vec<usize>,
    /// About how many bytes have to be unfiltered.
    bytes: usize,
}

impl OutputBand {
    fn join(&mut self, other: Self) {
        self.cells.end = self.cells.end.max(other.cells.end);
        self.tasks.extend(other.tasks);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Cuts the output into bands that share no tile, or, where these are too few, not many chunks.
///
/// For example two threads, which makes eight bands desirable. Eight large tiles that lie side by
/// side in the output are a band each. One tile that fills all of the output is cut at ends of
/// rows, into eight parts if it has 64 chunks; into two if it has only four.
fn bands(
    batch: &BatchPlan,
    tasks: &[TileTask],
    cell_size: usize,
    threads: usize,
) -> Vec<OutputBand> {
    let band_of = |(i, task): (usize, &TileTask)| {
        let copies = batch.copies_of(task);
        let reaches = copies.iter().map(|copy| batch.copies.reach(copy));
        let cells = reaches.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))?;
        let gap = SPAN_GAP_BYTES / cell_size.max(1);
        let spans = batch.copies.spans(copies, &cells, gap);
        // A cell costs its chunk.
        let bytes = spans.iter().fold(0usize, |sum, span| {
            let cells = usize::try_from(span.end - span.start).unwrap_or(usize::MAX);
            sum.saturating_add(cells.saturating_mul(cell_size).max(CHUNK_BYTES))
        });
        Some(OutputBand {
            cells,
            tasks: vec![i],
            bytes,
        })
    };
    let mut single: Vec<OutputBand> = tasks.iter().enumerate().filter_map(band_of).collect();
    single.sort_unstable_by_key(|band| band.cells.start);
    // Tiles that lie side by side in the output.
    let mut clusters: Vec<OutputBand> = Vec::new();
    for band in single {
        match clusters.last_mut() {
            Some(last) if band.cells.start < last.cells.end => last.join(band),
            _ => clusters.push(band),
        }
    }
    let bytes = clusters.iter().map(|cluster| cluster.bytes);
    let total = bytes.fold(0, usize::saturating_add);
    let wanted = match total < PARALLEL_BYTES {
        true => 1,
        false => threads * BANDS_PER_THREAD,
    };
    let some = clusters.len().max(1);
    let (needed, splits) = (threads.min(wanted).div_ceil(some), wanted.div_ceil(some));
    let row = match batch.boxes.as_slice() {
        [of] => of.strides.iter().copied().max().unwrap_or(1).max(1),
        _ => 1,
    };
    let mut bands: Vec<OutputBand> = Vec::new();
    for cluster in clusters {
        // A chunk that two bands need is unfiltered twice: few cuts, unless a thread would have
        // nothing to do.
        let chunks = cluster.bytes / cluster.tasks.len().max(1) / CHUNK_BYTES;
        let parts = splits.min(chunks / 8).max(needed.min(chunks / 2));
        if parts > 1 {
            let each = (cluster.cells.len() / parts).max(1).next_multiple_of(row);
            for start in cluster.cells.clone().step_by(each) {
                let cells = start..(start + each).min(cluster.cells.end);
                bands.push(OutputBand {
                    cells,
                    tasks: cluster.tasks.clone(),
                    bytes: cluster.bytes / parts,
                });
            }
            continue;
        }
        match bands.last_mut() {
            Some(last)
                if wanted == 1 || last.bytes.saturating_add(cluster.bytes) <= total / wanted =>
            {
                last.join(cluster);
            }
            _ => bands.push(cluster),
        }
    }
    for band in &mut bands {
        band.tasks
            .sort_unstable_by_key(|&task| tasks.get(task).map(|s| (s.fragment, s.tile)));
    }
    bands
}

/// Fills one band.
struct Filler<'f> {
    fetcher: &'f Fetcher,
    batch: &'f BatchPlan,
    band: &'f Range<usize>,
    /// The band's bytes.
    out: &'f mut [u8],
    cell_size: usize,
    /// Whether cells are best written past the caches.
    streams: bool,
    scratch: &'f mut Scratch,
    window: ReadWindow,
    /// Unfiltered cells on their way.
    buffer: PoolBuffer,
}

impl Filler<'_> {
    /// Takes what the band needs of one stored tile.
    fn tile(
        &mut self,
        part: &StoredPart<'_>,
        task: &TileTask,
        fetched: Option<&FetchedTiles>,
        file: &mut Option<TileFile>,
    ) -> Result<()> {
        let missing = || Error::Internal("a tile was not fetched".into());
        let stored = match fetched {
            Some(fetched) => Stored::Bytes(fetched.get(&part.tile).ok_or_else(missing)?),
            None => {
                let file = self.fetcher.open(&part.tile, file)?;
                if file.is_new() {
                    self.window.clear();
                }
                Stored::File(file)
            }
        };
        let mut window = std::mem::take(&mut self.window);
        let done = self.chunks(part, task, stored, &mut window);
        self.window = window;
        let path = || part.tile.path(self.fetcher.array());
        done.map_err(|error| in_file(short_read_is_corrupt(error), path))
    }

    /// Takes what the band needs of one stored tile, chunk by chunk.
    ///
    /// For example a tile of 100,000 cells of 4 bytes in chunks of 16,384 cells, of which the band
    /// wants 20,000 to 40,000. The first chunk's header is read and the chunk passed over; the
    /// second and the third are read and decoded, and their parts of those cells are copied; what
    /// follows is never looked at.
    fn chunks(
        &mut self,
        part: &StoredPart<'_>,
        task: &TileTask,
        stored: Stored<'_>,
        window: &mut ReadWindow,
    ) -> Result<()> {
        let (list, copies) = (&self.batch.copies, self.batch.copies_of(task));
        let size = self.cell_size;
        let spans = list.spans(copies, self.band, SPAN_GAP_BYTES / size.max(1));
        let wanted: u64 = spans.iter().map(|s| s.end - s.start).sum();
        let len = part.len();
        // Writers store tiles without cells in more than one way; none of them matters.
        if len == 0 || wanted == 0 {
            return Ok(());
        }
        let whole = wanted.saturating_mul(2) >= part.cell_num as u64;
        let scatters = part.pipeline.stores_as_is(&part.ctx)
            && matches!(stored, Stored::File(_))
            && scatter::is_worthwhile(list, copies, size, len);
        let (pool, range) = (self.fetcher.pool(), part.range.clone());
        let mut stored = StoredTileBytes::new(stored, window, pool, range, whole, scatters);
        let mut decoder = TileDecoder::new(part.range.end.saturating_sub(part.range.start))
            .sized(len as u64)
            .wanting(&spans, size);
        // Early versions cut cells in two: what follows the first chunk with a part of a cell is
        // put together before it is copied.
        let mut cut_cells: Option<(PoolBuffer, usize)> = None;
        loop {
            match decoder.step(stored.at_hand()).map_err(corrupt)? {
                TileStep::Done => break,
                TileStep::NeedsRange { range, chunk } => {
                    let plain = chunk.filter(|chunk| scatters && chunk.is_plain());
                    let whole = plain.and_then(|chunk| {
                        let cells = whole_cells(&chunk.output(), size)?;
                        cut_cells.is_none().then_some((chunk, cells))
                    });
                    if let Some((chunk, cells)) = whole
                        && self.scatter(task, &mut stored, &chunk, &range, &cells)?
                    {
                        decoder.pass_chunk();
                    } else {
                        stored.read(&range, chunk.is_some())?;
                    }
                }
                TileStep::Chunk(chunk) => {
                    let output = chunk.output_offset..chunk.output_end();
                    match whole_cells(&output, size).filter(|_| cut_cells.is_none()) {
                        Some(cells) => self.chunk(part, task, &chunk, cells)?,
                        None => {
                            let (start, end) = (output.start as usize, output.end as usize);
                            let (tile, _) = cut_cells
                                .get_or_insert_with(|| (pool.take(len), start.div_ceil(size)));
                            let out = tile.get_mut(start..end).unwrap_or_default();
                            part.pipeline
                                .decode_chunk(&part.ctx, &chunk, out, self.scratch)
                                .map_err(corrupt)?;
                        }
                    }
                }
            }
        }
        match cut_cells {
            Some((tile, first)) => {
                let bytes = tile.get(first * size..).unwrap_or_default();
                let cells = (bytes, first..part.cell_num);
                copy_part(list, copies, cells, self.out, self.band, size)
            }
            None => Ok(()),
        }
    }

    /// Reads a plain chunk, which holds the tile's cells `cells`, to its places; false if that
    /// cannot be.
    fn scatter(
        &mut self,
        task: &TileTask,
        stored: &mut StoredTileBytes<'_>,
        chunk: &ChunkPlace,
        needed: &Range<u64>,
        cells: &Range<usize>,
    ) -> Result<bool> {
        let (list, copies) = (&self.batch.copies, self.batch.copies_of(task));
        let window = copy::Window {
            out: self.band.clone(),
            src: cells.clone(),
        };
        let size = self.cell_size;
        let pool = self.fetcher.pool();
        let spare = pool.room(&mut self.buffer, cells.len() * size);
        match scatter::scattered_reads(list, copies, &window, self.out, size, spare)? {
            Some(reads) => stored.scatter(chunk, needed, reads).map(|()| true),
            None => Ok(false),
        }
    }

    /// Takes a chunk, which holds the tile's cells `cells`.
    fn chunk(
        &mut self,
        part: &StoredPart<'_>,
        task: &TileTask,
        chunk: &Chunk<'_>,
        cells: Range<usize>,
    ) -> Result<()> {
        let (list, size) = (&self.batch.copies, self.cell_size);
        let copies = self.batch.copies_of(task);
        if let [copy] = copies
            && let Some(run) = list.as_run(copy)
            && copy.src <= cells.start
            && cells.end <= copy.src + run
        {
            let start = copy.out + (cells.start - copy.src);
            if start >= self.band.start && start + cells.len() <= self.band.end {
                let from = (start - self.band.start) * size;
                let place = self
                    .out
                    .get_mut(from..from + cells.len() * size)
                    .unwrap_or_default();
                return part
                    .pipeline
                    .decode_chunk(&part.ctx, chunk, place, self.scratch)
                    .map_err(corrupt);
            }
        }
        let mut opened = part
            .pipeline
            .open_chunk(&part.ctx, chunk, self.scratch)
            .map_err(corrupt)?;
        if let Some(bytes) = opened.as_bytes() {
            return copy_part(list, copies, (bytes, cells), self.out, self.band, size);
        }
        if list.row_len(copies).saturating_mul(size) >= SHORTEST_ROW {
            let window = copy::Window {
                out: self.band.clone(),
                src: cells,
            };
            return place_rows(list, copies, &window, self.out, size, &mut |start, row| {
                opened.copy_to(start, row, self.streams).map_err(corrupt)
            });
        }
        let pool = self.fetcher.pool();
        let bytes = pool.room(&mut self.buffer, chunk.original_len as usize);
        opened.copy_to(0, bytes, false).map_err(corrupt)?;
        copy_part(list, copies, (bytes, cells), self.out, self.band, size)
    }
}

/// The cells of `size` bytes that a chunk with the bytes `output` of a tile holds, if it cuts none.
fn whole_cells(output: &Range<u64>, size: usize) -> Option<Range<usize>> {
    let (start, end) = (output.start as usize, output.end as usize);
    let whole = start.is_multiple_of(size) && end.is_multiple_of(size);
    whole.then(|| start / size..end / size)
}
