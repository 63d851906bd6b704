//! The chunks of an array, read and decoded within a budget.

use super::Result;
use super::codec::checked;
use super::element::Kind;
use super::metadata::{ArrayMetadata, Shard};
use super::places::{Boxes, chunks_of};
use crate::error::FileError;
use crate::import::npy_file::{half, utf8_of};
use rayon::prelude::*;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A chunk's file may be this much longer than what it holds, and a little.
const OVERHEAD: u64 = 1 << 20;
/// Bytes that a cell of any length takes beside its own.
const VAR_CELL: u64 = 48;

/// So many boxes are looked through in no time.
const FEW_BOXES: u64 = 256;
/// Boxes of files that are kept in a list before what is there twice is left out.
const MANY_INDICES: usize = 1 << 20;

/// The chunks of an array.
#[derive(Debug)]
pub struct ChunkStore<'a> {
    array: &'a ArrayMetadata,
    folder: &'a Path,
    /// Bytes that a box may take.
    budget: u64,
    /// Bytes that a chunk takes once it is decoded (of texts, may take).
    chunk_bytes: usize,
    /// The indices of the shards of a box.
    indices: Mutex<HashMap<Vec<u64>, Arc<Index>>>,
    /// The files of chunks that are there, counted in row-major order, where that is known.
    there: Option<Vec<u64>>,
}

/// Where the chunks of a shard lie: offset and length, in row-major order. `None` if there is no
/// such shard.
type Index = Option<Vec<(u64, u64)>>;

/// The cells of a box, in row-major order.
#[derive(Debug, PartialEq)]
pub enum Cells {
    /// Of a fixed length, one after another.
    Fixed(Vec<u8>),
    /// Of any length.
    Var(Vec<Vec<u8>>),
}

/// The first coordinate and the length of a box along each axis, and its cells.
pub type FilledBox = (Vec<(u64, u64)>, Cells);

/// A decoded chunk.
enum Chunk {
    Missing,
    Fixed(Vec<u8>),
    Var(Vec<Vec<u8>>),
}

impl<'a> ChunkStore<'a> {
    /// The chunks of the array in a folder; `budget` bytes are for a box of them.
    ///
    /// # Errors
    /// Chunks that are larger.
    pub fn new(array: &'a ArrayMetadata, folder: &'a Path, budget: u64) -> Result<Self> {
        let each = match array.element.is_var() {
            true => VAR_CELL + array.element.size as u64,
            false => array.element.size as u64,
        };
        let needs = array.chunk_cells().checked_mul(each);
        let fits = needs.filter(|bytes| *bytes <= budget / 2);
        let Some(bytes) = fits.and_then(|bytes| usize::try_from(bytes).ok()) else {
            let needs = needs.map_or("more than can be counted".to_owned(), crate::size::text);
            return Err(FileError::new(format!(
                "a chunk holds {needs}, which the memory budget has no room for: see --memory"
            )));
        };
        let chunk_bytes = match array.element.size {
            0 => usize::try_from(budget / 4).unwrap_or(usize::MAX),
            _ => bytes / each as usize * array.element.size,
        };
        Ok(Self {
            array,
            folder,
            budget,
            chunk_bytes,
            indices: Mutex::default(),
            there: None,
        })
    }

    /// Chunks that a box may have.
    pub fn most_chunks(&self) -> u64 {
        let each = self.array.chunk_cells() * self.cell_bytes() as u64;
        (self.budget / each.max(1)).max(1)
    }

    /// Bytes of a cell (of those of any length, about).
    fn cell_bytes(&self) -> usize {
        let (datatype, _) = self.array.element.cell();
        match self.array.element.is_var() {
            true => VAR_CELL as usize + self.array.element.size,
            false => datatype.size(),
        }
    }

    /// How many files of chunks there are, of those that there can be. A store of many chunks that
    /// are not there says by its shape alone how much is to be written.
    pub fn files(&self) -> Result<u64> {
        let mut todo = vec![(self.folder.to_owned(), 0)];
        let mut files = 0;
        while let Some((folder, depth)) = todo.pop() {
            let failed = |e: std::io::Error| FileError::new(e.to_string()).of(folder.display());
            for entry in std::fs::read_dir(&folder).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                match entry.file_type().map_err(failed)?.is_dir() {
                    true if depth <= super::metadata::MOST_AXES => {
                        todo.push((entry.path(), depth + 1));
                    }
                    true => {}
                    false => files += 1,
                }
            }
        }
        Ok(files)
    }

    /// The boxes in which chunks are, ascending, where there are so many boxes that a look at what is
    /// there is less work than one at all that there may be; no other chunks are looked for then.
    pub fn boxes_there(&mut self, boxes: &Boxes) -> Result<Option<Vec<u64>>> {
        if boxes.number() <= FEW_BOXES {
            return Ok(None);
        }
        let shard = self.array.shard.as_ref();
        let counts = self.array.chunk_counts();
        let of_file: Vec<u64> = match shard {
            Some(shard) => shard.chunks.clone(),
            None => vec![1; counts.len()],
        };
        let (mut there, mut found) = (Vec::new(), Vec::new());
        let mut most = MANY_INDICES;
        self.each_place(|place| {
            let (mut low, mut high, mut index) = (Vec::new(), Vec::new(), 0u64);
            for ((at, each), count) in place.iter().zip(&of_file).zip(&counts) {
                let Some(first) = at.checked_mul(*each).filter(|first| first < count) else {
                    // Beyond the array.
                    return;
                };
                low.push(first);
                high.push(first.saturating_add(each - 1).min(count - 1));
                index = index * count.div_ceil(*each) + at;
            }
            there.push(index);
            found.extend(boxes.around(&low, &high));
            if found.len() > most {
                found.sort_unstable();
                found.dedup();
                most = MANY_INDICES.max(2 * found.len());
            }
        })?;
        there.sort_unstable();
        found.sort_unstable();
        found.dedup();
        self.there = Some(there);
        Ok(Some(found))
    }

    /// Gives the places of all files of chunks, in any order.
    fn each_place(&self, mut take: impl FnMut(Vec<u64>)) -> Result<()> {
        let (keys, axes) = (self.array.keys, self.array.chunk.len());
        let mut todo = vec![(self.folder.to_owned(), String::new(), 0)];
        while let Some((folder, before, depth)) = todo.pop() {
            let failed = |e: std::io::Error| FileError::new(e.to_string()).of(folder.display());
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => return Err(failed(e)),
            };
            for entry in entries {
                let entry = entry.map_err(failed)?;
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                let name = format!("{before}{name}");
                match keys.place(&name, axes) {
                    Some(place) => take(place),
                    // Folders are parts of names, and may be links.
                    None if keys.separator == '/' && depth <= axes && entry.path().is_dir() => {
                        todo.push((entry.path(), format!("{name}/"), depth + 1));
                    }
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// Whether there may be a file of chunks in a place.
    fn may_be_there(&self, place: &[u64]) -> bool {
        let Some(there) = &self.there else {
            return true;
        };
        let counts = self.array.chunk_counts();
        let shard = self.array.shard.as_ref();
        let each = |axis: usize| shard.and_then(|shard| shard.chunks.get(axis).copied());
        let axes = place.iter().zip(&counts).enumerate();
        let index = axes.fold(0u64, |index, (axis, (at, count))| {
            index * count.div_ceil(each(axis).unwrap_or(1)) + at
        });
        there.binary_search(&index).is_ok()
    }

    /// Chunks in a file.
    pub fn chunks_of_a_file(&self) -> u64 {
        let shard = self.array.shard.as_ref();
        shard.map_or(1, |shard| shard.chunks.iter().product())
    }

    /// The cells of a box of chunks, first and number along each axis; `fill` where there are none.
    /// `None` if no chunk of it is there. Up to `threads` chunks are decoded side by side.
    pub fn read(
        &self,
        sides: &[(u64, u64)],
        fill: &[u8],
        threads: usize,
    ) -> Result<Option<FilledBox>> {
        let axes = sides.iter().zip(&self.array.chunk).zip(&self.array.shape);
        let bounds: Vec<(u64, u64)> = axes
            .map(|(((first, count), chunk), size)| {
                let low = first * chunk;
                (low, (count * chunk).min(size - low))
            })
            .collect();
        let cells = bounds.iter().map(|(_, n)| *n).product::<u64>();
        let cells = usize::try_from(cells).map_err(|_| FileError::new("a box is too large"))?;
        let mut out: Option<Cells> = None;
        let mut kept = 0u64;
        self.lock().clear();
        let chunks: Vec<Vec<u64>> = chunks_of(sides).collect();
        let fits = self.budget / (3 * self.chunk_bytes.max(1) as u64);
        let at_once = threads
            .min(usize::try_from(fits).unwrap_or(usize::MAX))
            .max(1);
        for places in chunks.chunks(at_once) {
            let decoded: Vec<Result<Chunk>> = places
                .par_iter()
                .map(|place| {
                    self.chunk(place)
                        .map_err(|e| e.of(format_args!("chunk {place:?}")))
                })
                .collect();
            for (place, chunk) in places.iter().zip(decoded) {
                let chunk = chunk?;
                if let Chunk::Var(texts) = &chunk {
                    kept += texts.iter().map(|t| t.len() as u64).sum::<u64>();
                    if kept > 2 * self.budget {
                        return Err(FileError::new(
                            "texts are longer than the memory budget has room for: see --memory",
                        ));
                    }
                }
                if matches!(chunk, Chunk::Missing) {
                    continue;
                }
                let out = out.get_or_insert_with(|| match self.array.element.is_var() {
                    true => Cells::Var(vec![fill.to_vec(); cells]),
                    false => Cells::Fixed(fill.repeat(cells)),
                });
                self.place(place, chunk, &bounds, out);
            }
        }
        Ok(out.map(|cells| (bounds, cells)))
    }

    /// Puts the cells of a chunk where they belong in a box.
    fn place(&self, place: &[u64], chunk: Chunk, bounds: &[(u64, u64)], out: &mut Cells) {
        let axes = self.array.chunk.len();
        // Steps along the axes in the chunk's bytes, and in the box.
        let mut from_step = vec![1usize; axes];
        let mut step = 1;
        for axis in self.array.order.iter().rev() {
            from_step[*axis] = step;
            step *= self.array.chunk[*axis] as usize;
        }
        let mut to_step = vec![1usize; axes];
        let mut step = 1;
        for (own, (_, size)) in to_step.iter_mut().zip(bounds).rev() {
            *own = step;
            step *= *size as usize;
        }
        // The part of the chunk that is in the array, and where it begins in the box.
        let mut sizes = Vec::with_capacity(axes);
        let mut start = 0;
        for (axis, at) in place.iter().enumerate() {
            let low = at * self.array.chunk[axis];
            let size = self.array.chunk[axis].min(self.array.shape[axis] - low);
            sizes.push(size as usize);
            start += (low - bounds[axis].0) as usize * to_step[axis];
        }
        let (row, run) = match sizes.last() {
            Some(last) => (*last, from_step[axes - 1]),
            None => (1, 1),
        };
        let mut at = vec![0usize; axes.saturating_sub(1)];
        let size = self.cell_bytes();
        let mut chunk = chunk;
        loop {
            let along =
                |steps: &[usize]| -> usize { at.iter().zip(steps).map(|(a, s)| a * s).sum() };
            let (from, to) = (along(&from_step), start + along(&to_step));
            match (&mut chunk, &mut *out) {
                (Chunk::Fixed(bytes), Cells::Fixed(out)) if run == 1 => {
                    out[to * size..(to + row) * size]
                        .copy_from_slice(&bytes[from * size..(from + row) * size]);
                }
                (Chunk::Fixed(bytes), Cells::Fixed(out)) => {
                    for i in 0..row {
                        let from = (from + i * run) * size;
                        out[(to + i) * size..][..size].copy_from_slice(&bytes[from..from + size]);
                    }
                }
                (Chunk::Var(texts), Cells::Var(out)) => {
                    for i in 0..row {
                        out[to + i] = std::mem::take(&mut texts[from + i * run]);
                    }
                }
                _ => {}
            }
            let mut axis = at.len();
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                at[axis] += 1;
                if at[axis] < sizes[axis] {
                    break;
                }
                at[axis] = 0;
            }
        }
    }

    fn chunk(&self, place: &[u64]) -> Result<Chunk> {
        let Some(stored) = self.stored(place)? else {
            return Ok(Chunk::Missing);
        };
        let element = self.array.element;
        let cells = self.array.chunk_cells() as usize;
        let mut bytes = self.array.pipeline.decode(stored, self.chunk_bytes)?;
        if element.size == 0 {
            return texts(&bytes, cells).map(Chunk::Var);
        }
        if bytes.len() != self.chunk_bytes {
            return Err(FileError::new(format!(
                "it holds {} bytes instead of {}",
                bytes.len(),
                self.chunk_bytes
            )));
        }
        if element.swap > 1 {
            bytes
                .chunks_exact_mut(element.swap)
                .for_each(<[u8]>::reverse);
        }
        let elements = bytes.chunks_exact(element.size);
        Ok(match element.kind {
            Kind::Half => {
                let reals = elements.map(|b| half(u16::from_le_bytes([b[0], b[1]])));
                Chunk::Fixed(reals.flat_map(f32::to_le_bytes).collect())
            }
            Kind::Utf32 => Chunk::Var(elements.map(|b| utf8_of(b).into_bytes()).collect()),
            Kind::Padded => Chunk::Var(
                elements
                    .map(|b| {
                        let end = b.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
                        b[..end].to_vec()
                    })
                    .collect(),
            ),
            Kind::Plain(_) | Kind::Text | Kind::Bytes => Chunk::Fixed(bytes),
        })
    }

    /// The stored bytes of a chunk, if it is there.
    fn stored(&self, place: &[u64]) -> Result<Option<Vec<u8>>> {
        let most = (self.chunk_bytes as u64).saturating_mul(2) + OVERHEAD;
        let Some(shard) = &self.array.shard else {
            if !self.may_be_there(place) {
                return Ok(None);
            }
            let path = self.folder.join(self.array.keys.name(place));
            return match open(&path)? {
                Some((file, size)) => part(file, 0, size, most).map(Some),
                None => Ok(None),
            };
        };
        let of: Vec<u64> = place
            .iter()
            .zip(&shard.chunks)
            .map(|(p, n)| p / n)
            .collect();
        if !self.may_be_there(&of) {
            return Ok(None);
        }
        let path = self.folder.join(self.array.keys.name(&of));
        let index = self.index(&of, shard, &path)?;
        let Some(index) = &*index else {
            return Ok(None);
        };
        let within = place.iter().zip(&shard.chunks);
        let at = within.fold(0, |at, (p, n)| at * n + p % n);
        let (offset, length) = index
            .get(at as usize)
            .copied()
            .unwrap_or((u64::MAX, u64::MAX));
        if (offset, length) == (u64::MAX, u64::MAX) {
            return Ok(None);
        }
        let Some((file, size)) = open(&path)? else {
            return Ok(None);
        };
        if offset.checked_add(length).is_none_or(|end| end > size) {
            return Err(FileError::new("its shard ends before it"));
        }
        part(file, offset, length, most).map(Some)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Vec<u64>, Arc<Index>>> {
        self.indices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of a shard.
    fn index(&self, place: &[u64], shard: &Shard, path: &Path) -> Result<Arc<Index>> {
        if let Some(index) = self.lock().get(place) {
            return Ok(Arc::clone(index));
        }
        let index = match open(path)? {
            None => None,
            Some((file, size)) => {
                let sum = if shard.checked { 4 } else { 0 };
                let length = shard.chunks.iter().product::<u64>() * 16 + sum;
                let from = match shard.index_at_end {
                    true => size.checked_sub(length),
                    false => (size >= length).then_some(0),
                };
                let from =
                    from.ok_or_else(|| FileError::new("its shard is too short for an index"))?;
                let mut bytes = part(file, from, length, length)?;
                if shard.checked {
                    bytes = checked(bytes).map_err(|e| e.of("the index of its shard"))?;
                }
                let numbers: Vec<u64> = bytes
                    .chunks_exact(8)
                    .map(|b| b.try_into().map_or(0, u64::from_le_bytes))
                    .collect();
                Some(
                    numbers
                        .chunks_exact(2)
                        .map(|pair| (pair[0], pair[1]))
                        .collect(),
                )
            }
        };
        let index = Arc::new(index);
        self.lock().insert(place.to_vec(), Arc::clone(&index));
        Ok(index)
    }
}

/// A file and its size, if it is there.
fn open(path: &Path) -> Result<Option<(File, u64)>> {
    let failed = |e: std::io::Error| FileError::new(e.to_string()).of(path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(e)),
    };
    let about = file.metadata().map_err(failed)?;
    match about.is_file() {
        true => Ok(Some((file, about.len()))),
        false => Err(FileError::new("it is no file").of(path.display())),
    }
}

/// A part of a file, if it is not more than `most` bytes.
fn part(mut file: File, from: u64, length: u64, most: u64) -> Result<Vec<u8>> {
    if length > most {
        return Err(FileError::new(format!(
            "its {length} bytes are more than its cells can take"
        )));
    }
    let failed = |e: std::io::Error| FileError::new(e.to_string());
    file.seek(SeekFrom::Start(from)).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err(FileError::new("its file ends early")),
    }
}

/// Texts as the codecs `vlen-utf8` and `vlen-bytes` store them: how many, then each with its length.
fn texts(bytes: &[u8], cells: usize) -> Result<Vec<Vec<u8>>> {
    let short = || FileError::new("its texts end early");
    let (count, mut rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
    if u32::from_le_bytes(*count) as usize != cells {
        return Err(FileError::new(
            "it holds another number of texts than cells",
        ));
    }
    // A text takes four bytes at least.
    if rest.len() / 4 < cells {
        return Err(short());
    }
    let mut texts = Vec::with_capacity(cells);
    for _ in 0..cells {
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        let length = u32::from_le_bytes(*length) as usize;
        let (text, after) = after.split_at_checked(length).ok_or_else(short)?;
        texts.push(text.to_vec());
        rest = after;
    }
    Ok(texts)
}
