//! The cells of a region of an image, within a budget.

use super::codec::decode;
use super::directory::bytes;
use super::{Image, Result};
use crate::error::FileError;
use rayon::prelude::*;
use std::fs::File;
use std::path::Path;

/// A stored chunk may be this much longer than what it holds, twice, and a little.
const OVERHEAD: u64 = 1 << 20;

/// A region: first and number of bands, rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Bands.
    pub bands: (u64, u64),
    /// Rows.
    pub rows: (u64, u64),
    /// Columns.
    pub columns: (u64, u64),
}

impl Region {
    /// The number of its cells.
    pub fn cells(&self) -> u64 {
        self.bands.1 * self.rows.1 * self.columns.1
    }
}

/// The chunks of an image in a file.
#[derive(Debug)]
pub struct Chunks<'a> {
    image: &'a Image,
    file: File,
    length: u64,
    budget: u64,
}

/// A chunk: its number, its row and column among chunks, and the first of its bands.
#[derive(Debug, Clone, Copy)]
struct Place {
    number: u64,
    down: u64,
    across: u64,
    band: u64,
}

impl<'a> Chunks<'a> {
    /// The chunks of an image; `budget` bytes are for those that are decoded at once.
    ///
    /// # Errors
    /// Chunks that are larger.
    pub fn new(image: &'a Image, path: &Path, budget: u64) -> Result<Self> {
        let needs = image.chunk_bytes();
        if needs > u128::from(budget / 3) {
            let needs = u64::try_from(needs)
                .map_or("more than can be counted".to_owned(), crate::size::text);
            return Err(FileError::new(format!(
                "a chunk holds {needs}, which the memory budget has no room for: see --memory"
            )));
        }
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self {
            image,
            file,
            length,
            budget,
        })
    }

    /// The cells of a region by bands, rows and columns, in little-endian order; `fill` where the
    /// file has no chunk. `None` if it has none of them at all.
    pub fn read(&mut self, region: Region, fill: &[u8], threads: usize) -> Result<Option<Vec<u8>>> {
        let mut out: Option<Vec<u8>> = None;
        let cells =
            usize::try_from(region.cells()).map_err(|_| FileError::new("it is too large"))?;
        let each = self.image.chunk_bytes().max(1);
        let fits = u128::from(self.budget) / (3 * each);
        let at_once = usize::try_from(fits)
            .unwrap_or(usize::MAX)
            .clamp(1, threads.max(1) * 2);
        let image = self.image;
        let places: Vec<Place> = self.places(region).collect();
        for places in places.chunks(at_once) {
            let mut stored = Vec::with_capacity(places.len());
            for place in places {
                if let Some(bytes) = self.stored(*place).map_err(|e| e.of(of(*place)))? {
                    stored.push((*place, bytes));
                }
            }
            let decoded: Vec<Result<(Place, Vec<u8>)>> = stored
                .into_par_iter()
                .map(|(place, bytes)| {
                    let cells = decode(image, bytes, image.rows_of(place.down));
                    Ok((place, cells.map_err(|e| e.of(of(place)))?))
                })
                .collect();
            for found in decoded {
                let (place, chunk) = found?;
                let out = out.get_or_insert_with(|| fill.repeat(cells));
                self.put(place, &chunk, region, out);
            }
        }
        Ok(out)
    }

    /// How many chunks the file has, of those that it could have.
    pub fn there(&self) -> u64 {
        self.image
            .places
            .iter()
            .filter(|(_, length)| *length > 0)
            .count() as u64
    }

    /// The chunks that a region touches.
    fn places(&self, region: Region) -> impl Iterator<Item = Place> + use<> {
        let (chunk, grid) = (self.image.chunk, self.image.grid());
        let touched = |(low, n): (u64, u64), chunk: u64| low / chunk..(low + n).div_ceil(chunk);
        let (rows, columns) = (
            touched(region.rows, chunk.0),
            touched(region.columns, chunk.1),
        );
        let (first, count) = region.bands;
        let bands = if self.image.planar {
            first..first + count
        } else {
            0..1
        };
        bands.flat_map(move |band| {
            let columns = columns.clone();
            rows.clone().flat_map(move |down| {
                columns.clone().map(move |across| Place {
                    number: (band * grid.0 + down) * grid.1 + across,
                    down,
                    across,
                    band,
                })
            })
        })
    }

    /// The stored bytes of a chunk, if it was ever written.
    fn stored(&mut self, place: Place) -> Result<Option<Vec<u8>>> {
        let found = self.image.places.get(place.number as usize).copied();
        let (offset, length) = found.unwrap_or_default();
        if length == 0 {
            return Ok(None);
        }
        let most = u64::try_from(2 * self.image.chunk_bytes()).unwrap_or(u64::MAX);
        if length > most.saturating_add(OVERHEAD) {
            return Err(FileError::new("it is longer than what it can hold"));
        }
        bytes(&mut self.file, self.length, offset, length).map(Some)
    }

    /// Puts the cells of a chunk where they belong in a region.
    fn put(&self, place: Place, chunk: &[u8], region: Region, out: &mut [u8]) {
        let image = self.image;
        let size = image.sample.datatype().size();
        let samples = image.samples() as usize;
        let (rows, columns) = image.chunk;
        // The part of the chunk that is in the region: first and end.
        let common = |(low, n): (u64, u64), first: u64, count: u64| {
            (low.max(first), (low + n).min(first + count))
        };
        let (top, bottom) = common(region.rows, place.down * rows, image.rows_of(place.down));
        let (left, right) = common(region.columns, place.across * columns, columns);
        let run = (right.saturating_sub(left)) as usize;
        let bands = match image.planar {
            true => place.band..place.band + 1,
            false => region.bands.0..region.bands.0 + region.bands.1,
        };
        for band in bands {
            let sample = if image.planar { 0 } else { band as usize };
            for row in top..bottom {
                let within = (row - place.down * rows) * columns + left - place.across * columns;
                let from = (within as usize * samples + sample) * size;
                let to = ((band - region.bands.0) * region.rows.1 + row - region.rows.0)
                    * region.columns.1
                    + left
                    - region.columns.0;
                let to = to as usize * size;
                let Some(out) = out.get_mut(to..to + run * size) else {
                    continue;
                };
                if samples == 1 {
                    if let Some(cells) = chunk.get(from..from + run * size) {
                        out.copy_from_slice(cells);
                    }
                    continue;
                }
                let pixels = chunk.get(from..).unwrap_or_default().chunks(size * samples);
                for (out, pixel) in out.chunks_exact_mut(size).zip(pixels) {
                    if let Some(cell) = pixel.get(..size) {
                        out.copy_from_slice(cell);
                    }
                }
            }
        }
    }
}

fn of(place: Place) -> String {
    format!(
        "chunk {} of row {}, band {}",
        place.across,
        place.down,
        place.band + 1
    )
}
