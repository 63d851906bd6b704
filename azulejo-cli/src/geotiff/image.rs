//! What an image is: its size, its samples, and how they lie in the file.

use super::Result;
use super::directory::{ByteOrder, Directory, tag};
use crate::error::FileError;
use azulejo::format::Datatype;

/// Rows and columns of a raster are fewer.
const MOST_SIDE: u64 = 1 << 30;
/// Strips that can be cut have about so many bytes.
const STRIP_BYTES: u64 = 1 << 20;
/// Bands are fewer.
const MOST_BANDS: u64 = 1 << 16;

/// The type of samples as the file stores them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// Not negative, of so many bits.
    Uint(u32),
    /// Whole numbers of 8, 16, 32 or 64 bits.
    Int(u32),
    /// Reals of 16, 32 or 64 bits.
    Float(u32),
}

impl Sample {
    /// Bits of a sample.
    pub fn bits(self) -> u32 {
        match self {
            Self::Uint(bits) | Self::Int(bits) | Self::Float(bits) => bits,
        }
    }

    /// The type of cells.
    pub fn datatype(self) -> Datatype {
        match self {
            Self::Uint(..=8) => Datatype::UInt8,
            Self::Uint(..=16) => Datatype::UInt16,
            Self::Uint(..=32) => Datatype::UInt32,
            Self::Uint(_) => Datatype::UInt64,
            Self::Int(..=8) => Datatype::Int8,
            Self::Int(..=16) => Datatype::Int16,
            Self::Int(..=32) => Datatype::Int32,
            Self::Int(_) => Datatype::Int64,
            Self::Float(..=32) => Datatype::Float32,
            Self::Float(_) => Datatype::Float64,
        }
    }

    fn new(format: u64, bits: u64) -> Option<Self> {
        let bits = u32::try_from(bits).ok()?;
        match (format, bits) {
            (1 | 4, 1..=32 | 64) => Some(Self::Uint(bits)),
            (2, 8 | 16 | 32 | 64) => Some(Self::Int(bits)),
            (3, 16 | 32 | 64) => Some(Self::Float(bits)),
            _ => None,
        }
    }
}

/// How chunks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// Lempel, Ziv and Welch.
    Lzw,
    /// zlib.
    Deflate,
    /// Runs of equal bytes.
    PackBits,
    /// Zstandard.
    Zstd,
}

impl Compression {
    fn new(number: u64) -> Result<Self> {
        let name = match number {
            1 => return Ok(Self::None),
            5 => return Ok(Self::Lzw),
            8 | 32946 => return Ok(Self::Deflate),
            32773 => return Ok(Self::PackBits),
            50000 => return Ok(Self::Zstd),
            2..=4 => "CCITT fax",
            6 | 7 => "JPEG",
            34712 => "JPEG 2000",
            34887 => "LERC",
            34925 => "LZMA",
            50001 => "WebP",
            50002 => "JPEG XL",
            _ => "an unknown one",
        };
        Err(FileError::new(format!(
            "its compression is {name} ({number}), which is not supported; `gdal_translate -co COMPRESS=ZSTD` makes a file that is"
        )))
    }
}

/// What chunks are before they are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Predictor {
    /// The samples.
    None,
    /// The differences to the samples on their left.
    Horizontal,
    /// The differences between bytes of reals, first bytes first.
    Float,
}

/// An image.
#[derive(Debug, Clone)]
pub struct Image {
    /// Columns.
    pub width: u64,
    /// Rows.
    pub height: u64,
    /// Samples of a pixel.
    pub bands: u64,
    /// Their type.
    pub sample: Sample,
    /// The order of their bytes.
    pub order: ByteOrder,
    /// How chunks are compressed.
    pub compression: Compression,
    /// What they are before.
    pub predictor: Predictor,
    /// Whether each band has chunks of its own.
    pub planar: bool,
    /// Whether chunks are tiles, which are all of the same size, or strips.
    pub tiled: bool,
    /// Rows and columns of a chunk.
    pub chunk: (u64, u64),
    /// Offset and length of the chunks: row by row, band by band.
    pub places: Vec<(u64, u64)>,
}

impl Image {
    /// The image that a directory describes.
    pub fn new(directory: &Directory) -> Result<Self> {
        let side = |number| match directory.required(number)? {
            size @ 1..MOST_SIDE => Ok(size),
            size => Err(FileError::new(format!(
                "{size} is no number of rows or columns"
            ))),
        };
        let (width, height) = (side(tag::IMAGE_WIDTH)?, side(tag::IMAGE_LENGTH)?);
        let bands = directory.number(tag::SAMPLES_PER_PIXEL)?.unwrap_or(1);
        if bands == 0 || bands > MOST_BANDS {
            return Err(FileError::new(format!("{bands} is no number of bands")));
        }
        let bits = alike(directory, tag::BITS_PER_SAMPLE)?.unwrap_or(1);
        let format = alike(directory, tag::SAMPLE_FORMAT)?.unwrap_or(1);
        let sample = Sample::new(format, bits).ok_or_else(|| {
            let kind = match format {
                1 | 4 => "whole numbers",
                2 => "signed numbers",
                3 => "reals",
                5 | 6 => "complex numbers",
                _ => "numbers of an unknown kind",
            };
            FileError::new(format!(
                "its samples are {kind} of {bits} bits, which is not supported"
            ))
        })?;
        let compression = Compression::new(directory.number(tag::COMPRESSION)?.unwrap_or(1))?;
        let predictor = match directory.number(tag::PREDICTOR)?.unwrap_or(1) {
            1 => Predictor::None,
            2 if matches!(sample.bits(), 8 | 16 | 32 | 64) => Predictor::Horizontal,
            3 if matches!(sample, Sample::Float(_)) => Predictor::Float,
            other => {
                return Err(FileError::new(format!(
                    "predictor {other} is not supported with samples of {bits} bits"
                )));
            }
        };
        // Without compression there is nothing to predict for, and readers do not.
        let predictor = match compression {
            Compression::Lzw | Compression::Deflate | Compression::Zstd => predictor,
            Compression::None | Compression::PackBits => Predictor::None,
        };
        if directory.number(tag::FILL_ORDER)?.unwrap_or(1) != 1 && sample.bits() % 8 != 0 {
            return Err(FileError::new(
                "its bits stand in reverse, which is not supported",
            ));
        }
        if directory.number(tag::PHOTOMETRIC)? == Some(6) {
            return Err(FileError::new(
                "its colours are YCbCr, which is not supported",
            ));
        }
        let planar = directory.number(tag::PLANAR_CONFIGURATION)? == Some(2) && bands > 1;
        let tiled = directory.get(tag::TILE_OFFSETS).is_some();
        let (chunk, offsets, counts) = if tiled {
            let chunk = (side(tag::TILE_LENGTH)?, side(tag::TILE_WIDTH)?);
            (chunk, tag::TILE_OFFSETS, tag::TILE_BYTE_COUNTS)
        } else {
            let rows = directory.number(tag::ROWS_PER_STRIP)?.unwrap_or(height);
            let chunk = (rows.clamp(1, height), width);
            (chunk, tag::STRIP_OFFSETS, tag::STRIP_BYTE_COUNTS)
        };
        let all = |number| {
            let found = directory.numbers(number)?;
            found.ok_or_else(|| FileError::new(format!("tag {number} is missing")))
        };
        let (offsets, counts) = (all(offsets)?, all(counts)?);
        let mut image = Self {
            width,
            height,
            bands,
            sample,
            order: directory.order,
            compression,
            predictor,
            planar,
            tiled,
            chunk,
            places: Vec::new(),
        };
        let (down, across) = image.grid();
        let planes = if planar { bands } else { 1 };
        // Sides are below 2^30, and bands below 2^17.
        let expected = u128::from(down * across) * u128::from(planes);
        if offsets.len() as u128 != expected || counts.len() as u128 != expected {
            return Err(FileError::new(format!(
                "it has {} and {} places of {expected} chunks",
                offsets.len(),
                counts.len()
            )));
        }
        image.places = offsets.into_iter().zip(counts).collect();
        image.cut_strips();
        Ok(image)
    }

    /// Rows that lie one after another in one strip need not be read at once.
    fn cut_strips(&mut self) {
        let row = self.row_bytes();
        let rows = (STRIP_BYTES / row).max(1);
        let whole = self.height.checked_mul(row);
        let one = !self.tiled && self.chunk.0 == self.height && rows < self.height;
        let plain = self.compression == Compression::None;
        let enough = self.places.iter().all(|(offset, length)| {
            whole.is_some_and(|whole| whole <= *length && offset.checked_add(whole).is_some())
        });
        // The places are counted by pieces then, of which a file has no more than bytes.
        if !(one && plain && enough) {
            return;
        }
        let height = self.height;
        let pieces = |(offset, _): (u64, u64)| {
            (0..height.div_ceil(rows)).map(move |at| {
                let first = at * rows;
                (offset + first * row, rows.min(height - first) * row)
            })
        };
        self.places = std::mem::take(&mut self.places)
            .into_iter()
            .flat_map(pieces)
            .collect();
        self.chunk.0 = rows;
    }

    /// Chunks down and across.
    pub fn grid(&self) -> (u64, u64) {
        let (rows, columns) = self.chunk;
        (self.height.div_ceil(rows), self.width.div_ceil(columns))
    }

    /// Samples that lie side by side for a pixel of a chunk.
    pub fn samples(&self) -> u64 {
        if self.planar { 1 } else { self.bands }
    }

    /// Rows of the chunk in a row of chunks.
    pub fn rows_of(&self, down: u64) -> u64 {
        match self.tiled {
            true => self.chunk.0,
            false => self.chunk.0.min(self.height - down * self.chunk.0),
        }
    }

    /// Bytes of a row of a chunk, as they are stored once they are decompressed.
    pub fn row_bytes(&self) -> u64 {
        // Below 2^30, 2^17 and 2^7.
        (self.chunk.1 * self.samples() * u64::from(self.sample.bits())).div_ceil(8)
    }

    /// Bytes of a chunk, stored or as cells, whichever are more.
    pub fn chunk_bytes(&self) -> u128 {
        let cells = u128::from(self.chunk.0) * u128::from(self.chunk.1 * self.samples());
        let cells = cells * self.sample.datatype().size() as u128;
        cells.max(u128::from(self.chunk.0) * u128::from(self.row_bytes()))
    }
}

/// The number that a tag has for all bands.
fn alike(directory: &Directory, number: u16) -> Result<Option<u64>> {
    let Some(numbers) = directory.numbers(number)? else {
        return Ok(None);
    };
    let first = numbers.first().copied();
    match numbers.iter().all(|n| Some(*n) == first) {
        true => Ok(first),
        false => Err(FileError::new(
            "its bands are of different types, which is not supported",
        )),
    }
}
