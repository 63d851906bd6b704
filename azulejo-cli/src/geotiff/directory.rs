//! The directory of a file: what is said of the image, by numbered tags.

use super::Result;
use crate::error::FileError;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// The numbers of tags that are read or written.
pub mod tag {
    pub const NEW_SUBFILE_TYPE: u16 = 254;
    pub const IMAGE_WIDTH: u16 = 256;
    pub const IMAGE_LENGTH: u16 = 257;
    pub const BITS_PER_SAMPLE: u16 = 258;
    pub const COMPRESSION: u16 = 259;
    pub const PHOTOMETRIC: u16 = 262;
    pub const FILL_ORDER: u16 = 266;
    pub const DOCUMENT_NAME: u16 = 269;
    pub const IMAGE_DESCRIPTION: u16 = 270;
    pub const STRIP_OFFSETS: u16 = 273;
    pub const SAMPLES_PER_PIXEL: u16 = 277;
    pub const ROWS_PER_STRIP: u16 = 278;
    pub const STRIP_BYTE_COUNTS: u16 = 279;
    pub const PLANAR_CONFIGURATION: u16 = 284;
    pub const SOFTWARE: u16 = 305;
    pub const DATE_TIME: u16 = 306;
    pub const ARTIST: u16 = 315;
    pub const PREDICTOR: u16 = 317;
    pub const COLOR_MAP: u16 = 320;
    pub const TILE_WIDTH: u16 = 322;
    pub const TILE_LENGTH: u16 = 323;
    pub const TILE_OFFSETS: u16 = 324;
    pub const TILE_BYTE_COUNTS: u16 = 325;
    pub const EXTRA_SAMPLES: u16 = 338;
    pub const SAMPLE_FORMAT: u16 = 339;
    pub const COPYRIGHT: u16 = 33432;
    pub const MODEL_PIXEL_SCALE: u16 = 33550;
    pub const MODEL_TIEPOINT: u16 = 33922;
    pub const MODEL_TRANSFORMATION: u16 = 34264;
    pub const GEO_KEY_DIRECTORY: u16 = 34735;
    pub const GEO_DOUBLE_PARAMS: u16 = 34736;
    pub const GEO_ASCII_PARAMS: u16 = 34737;
    pub const GDAL_METADATA: u16 = 42112;
    pub const GDAL_NODATA: u16 = 42113;
}

/// Tags of an image are fewer.
const MOST_TAGS: u64 = 4096;
/// Images of a file are fewer.
const MOST_IMAGES: usize = 4096;
/// A tag's values have fewer bytes: places of 67 million tiles have as many.
const LONGEST: u64 = 512 << 20;

/// In which order bytes of numbers stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// The least first.
    Little,
    /// The greatest first.
    Big,
}

impl ByteOrder {
    /// A number of up to eight bytes.
    pub fn number(self, bytes: &[u8]) -> u64 {
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        match self {
            Self::Little => bytes.iter().rev().fold(0, add),
            Self::Big => bytes.iter().fold(0, add),
        }
    }
}

/// The values of a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    kind: u16,
    bytes: Vec<u8>,
    order: ByteOrder,
}

/// Bytes of a value of a type.
fn size_of(kind: u16) -> Option<u64> {
    Some(match kind {
        1 | 2 | 6 | 7 => 1,
        3 | 8 => 2,
        4 | 9 | 11 | 13 => 4,
        5 | 10 | 12 | 16..=18 => 8,
        _ => return None,
    })
}

impl Tag {
    /// Whole numbers that are not negative; `None` for others.
    pub fn numbers(&self) -> Option<Vec<u64>> {
        let size = match self.kind {
            1 | 3 | 4 | 13 | 16 | 18 => usize::try_from(size_of(self.kind)?).ok()?,
            _ => return None,
        };
        let values = self.bytes.chunks_exact(size);
        Some(values.map(|value| self.order.number(value)).collect())
    }

    /// Reals.
    pub fn reals(&self) -> Option<Vec<f64>> {
        match self.kind {
            12 => {
                let values = self.bytes.chunks_exact(8);
                let real = |value| f64::from_bits(self.order.number(value));
                Some(values.map(real).collect())
            }
            11 => {
                let values = self.bytes.chunks_exact(4);
                let real = |value| f32::from_bits(self.order.number(value) as u32);
                Some(values.map(|value| real(value).into()).collect())
            }
            _ => None,
        }
    }

    /// Text, up to its first zero.
    pub fn text(&self) -> Option<String> {
        let bytes = (self.kind == 2).then_some(self.bytes.as_slice())?;
        let end = bytes.iter().position(|byte| *byte == 0);
        let bytes = bytes.get(..end.unwrap_or(bytes.len()))?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

/// What is said of an image.
#[derive(Debug, Clone)]
pub struct Directory {
    /// In which order bytes stand, of tags and cells alike.
    pub order: ByteOrder,
    tags: BTreeMap<u16, Tag>,
}

impl Directory {
    /// The directory of the first whole image, and how many more whole images there are: those
    /// that are others at a lower resolution, or say where others are transparent, do not count.
    pub fn first(file: &mut File) -> Result<(Self, usize)> {
        let (order, big, mut next) = header(file)?;
        let length = file.metadata()?.len();
        let (mut found, mut more) = (None, 0);
        let mut seen = HashSet::new();
        while next != 0 {
            if !seen.insert(next) || seen.len() > MOST_IMAGES {
                return Err(FileError::new("its images are linked in a circle"));
            }
            let wanted = found.is_none();
            let (directory, after) = read(file, order, big, length, next, wanted)?;
            let kind = directory.number(tag::NEW_SUBFILE_TYPE)?.unwrap_or(0);
            match (kind & 0b101, &found) {
                (0, None) => found = Some(directory),
                (0, Some(_)) => more += 1,
                _ => {}
            }
            next = after;
        }
        match found {
            Some(directory) => Ok((directory, more)),
            None => Err(FileError::new("there is no image in it")),
        }
    }

    /// A tag.
    pub fn get(&self, number: u16) -> Option<&Tag> {
        self.tags.get(&number)
    }

    /// Whole numbers of a tag, if it is there.
    pub fn numbers(&self, number: u16) -> Result<Option<Vec<u64>>> {
        let Some(tag) = self.get(number) else {
            return Ok(None);
        };
        let numbers = tag.numbers();
        numbers.map(Some).ok_or_else(|| bad(number))
    }

    /// The first of a tag's whole numbers.
    pub fn number(&self, number: u16) -> Result<Option<u64>> {
        match self.numbers(number)? {
            None => Ok(None),
            Some(numbers) => numbers
                .first()
                .copied()
                .map(Some)
                .ok_or_else(|| bad(number)),
        }
    }

    /// A tag's whole number, which must be there.
    pub fn required(&self, number: u16) -> Result<u64> {
        let found = self.number(number)?;
        found.ok_or_else(|| FileError::new(format!("tag {number} is missing")))
    }
}

fn bad(number: u16) -> FileError {
    FileError::new(format!("tag {number} has no such values as it should"))
}

/// The order of bytes, whether places have eight of them, and the first directory's place.
fn header(file: &mut File) -> Result<(ByteOrder, bool, u64)> {
    let mut bytes = [0; 16];
    let mut have = 0;
    file.seek(SeekFrom::Start(0))?;
    while have < bytes.len() {
        match file.read(bytes.get_mut(have..).unwrap_or_default())? {
            0 => break,
            n => have += n,
        }
    }
    let order = match bytes.get(..2) {
        Some(b"II") => ByteOrder::Little,
        Some(b"MM") => ByteOrder::Big,
        _ => return Err(FileError::new("it is no TIFF")),
    };
    let number = |from: usize, size: usize| {
        let part = bytes.get(from..from + size).filter(|_| from + size <= have);
        part.map(|part| order.number(part))
            .ok_or_else(|| FileError::new("the file is cut off"))
    };
    match number(2, 2)? {
        42 => Ok((order, false, number(4, 4)?)),
        43 if number(4, 2)? == 8 && number(6, 2)? == 0 => Ok((order, true, number(8, 8)?)),
        _ => Err(FileError::new("it is no TIFF, or of an unknown version")),
    }
}

/// A directory and the place of the next one. Only tags that are known are kept, and of images that
/// are not wanted only what kind they are.
fn read(
    file: &mut File,
    order: ByteOrder,
    big: bool,
    length: u64,
    place: u64,
    wanted: bool,
) -> Result<(Directory, u64)> {
    let (count_size, entry_size, place_size) = if big { (8, 20, 8) } else { (2, 12, 4) };
    let count = order.number(&bytes(file, length, place, count_size)?);
    if count > MOST_TAGS {
        return Err(FileError::new(format!("{count} tags are too many")));
    }
    let at = place + count_size;
    let all = bytes(file, length, at, count * entry_size + place_size)?;
    let (entries, after) = all.split_at((count * entry_size) as usize);
    let mut tags = BTreeMap::new();
    for entry in entries.chunks_exact(entry_size as usize) {
        let (head, value) = entry.split_at(entry.len() - place_size as usize);
        let (names, amount) = head.split_at(4);
        let (number, kind) = names.split_at(2);
        let (number, kind) = (order.number(number) as u16, order.number(kind) as u16);
        let (Some(size), true) = (size_of(kind), is_known(number, wanted)) else {
            continue;
        };
        let size = order.number(amount).checked_mul(size);
        let Some(size) = size.filter(|size| *size <= LONGEST) else {
            return Err(FileError::new(format!("tag {number} is too long")));
        };
        let bytes = match value.get(..usize::try_from(size).unwrap_or(usize::MAX)) {
            Some(inline) => inline.to_vec(),
            None => bytes(file, length, order.number(value), size)
                .map_err(|e| e.of(format_args!("tag {number}")))?,
        };
        tags.insert(number, Tag { kind, bytes, order });
    }
    Ok((Directory { order, tags }, order.number(after)))
}

fn is_known(number: u16, wanted: bool) -> bool {
    use tag::*;
    const KNOWN: [u16; 33] = [
        IMAGE_WIDTH,
        IMAGE_LENGTH,
        BITS_PER_SAMPLE,
        COMPRESSION,
        PHOTOMETRIC,
        FILL_ORDER,
        DOCUMENT_NAME,
        IMAGE_DESCRIPTION,
        STRIP_OFFSETS,
        SAMPLES_PER_PIXEL,
        ROWS_PER_STRIP,
        STRIP_BYTE_COUNTS,
        PLANAR_CONFIGURATION,
        SOFTWARE,
        DATE_TIME,
        ARTIST,
        PREDICTOR,
        COLOR_MAP,
        TILE_WIDTH,
        TILE_LENGTH,
        TILE_OFFSETS,
        TILE_BYTE_COUNTS,
        EXTRA_SAMPLES,
        SAMPLE_FORMAT,
        COPYRIGHT,
        MODEL_PIXEL_SCALE,
        MODEL_TIEPOINT,
        MODEL_TRANSFORMATION,
        GEO_KEY_DIRECTORY,
        GEO_DOUBLE_PARAMS,
        GEO_ASCII_PARAMS,
        GDAL_METADATA,
        GDAL_NODATA,
    ];
    number == NEW_SUBFILE_TYPE || (wanted && KNOWN.contains(&number))
}

/// Bytes of a file, all of which are there.
pub fn bytes(file: &mut File, length: u64, place: u64, size: u64) -> Result<Vec<u8>> {
    if place.checked_add(size).is_none_or(|end| end > length) {
        return Err(FileError::new("the file is cut off"));
    }
    let size = usize::try_from(size).map_err(|_| FileError::new("it is too long"))?;
    let mut bytes = vec![0; size];
    file.seek(SeekFrom::Start(place))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}
