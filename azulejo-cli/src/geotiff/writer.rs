//! Writing a file: tiles as they come, then the directory that says where they lie.

use super::directory::tag;
use std::collections::BTreeMap;
use std::io::{Result, Seek, SeekFrom, Write};

/// Files that could become longer have places of eight bytes.
const CLASSIC_BYTES: u128 = 3 << 30;

/// What a raster is like in the file.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Rows.
    pub height: u64,
    /// Columns.
    pub width: u64,
    /// Bands, each with tiles of its own.
    pub bands: u64,
    /// Bytes of a cell.
    pub size: usize,
    /// 1: not negative, 2: signed, 3: reals.
    pub format: u16,
    /// Rows and columns of a tile, both multiples of 16.
    pub tile: u64,
}

impl Layout {
    /// Tiles down and across.
    pub fn grid(&self) -> (u64, u64) {
        (
            self.height.div_ceil(self.tile),
            self.width.div_ceil(self.tile),
        )
    }

    /// Bytes of a tile.
    pub fn tile_bytes(&self) -> usize {
        (self.tile * self.tile) as usize * self.size
    }

    /// Which predictor helps: not all readers know that of whole numbers of eight bytes.
    fn predictor(&self) -> u16 {
        match (self.format, self.size) {
            (3, _) => 3,
            (_, 8) => 1,
            _ => 2,
        }
    }

    /// The stored bytes of a tile of little-endian cells.
    pub fn encode(&self, mut cells: Vec<u8>) -> Result<Vec<u8>> {
        let row = self.tile as usize * self.size;
        let mut copy = vec![0; row];
        for row in cells.chunks_exact_mut(row.max(1)) {
            match (self.predictor(), self.size) {
                (3, size) => {
                    copy.copy_from_slice(row);
                    scatter(&copy, row, size);
                    differences::<1>(row, |a, b| [a[0].wrapping_sub(b[0])]);
                }
                (2, 1) => differences::<1>(row, |a, b| [a[0].wrapping_sub(b[0])]),
                (2, 2) => differences::<2>(row, |a, b| {
                    u16::from_le_bytes(a)
                        .wrapping_sub(u16::from_le_bytes(b))
                        .to_le_bytes()
                }),
                (2, _) => differences::<4>(row, |a, b| {
                    u32::from_le_bytes(a)
                        .wrapping_sub(u32::from_le_bytes(b))
                        .to_le_bytes()
                }),
                _ => {}
            }
        }
        let level = flate2::Compression::new(6);
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
        encoder.write_all(&cells)?;
        encoder.finish()
    }
}

/// All first bytes of reals, the highest, then all second ones.
fn scatter(reals: &[u8], row: &mut [u8], size: usize) {
    let count = reals.len() / size;
    for (at, real) in reals.chunks_exact(size).enumerate() {
        for (plane, byte) in real.iter().rev().enumerate() {
            if let Some(out) = row.get_mut(plane * count + at) {
                *out = *byte;
            }
        }
    }
}

/// Takes from each value the one before it.
fn differences<const N: usize>(row: &mut [u8], less: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    let mut before = [0; N];
    for value in row.as_chunks_mut::<N>().0 {
        let own = *value;
        *value = less(own, before);
        before = own;
    }
}

/// Values of a tag to be written.
#[derive(Debug, Clone)]
pub enum TagValue {
    /// Numbers of two bytes.
    Short(Vec<u16>),
    /// Numbers of four bytes.
    Long(Vec<u32>),
    /// Numbers of eight bytes.
    Long8(Vec<u64>),
    /// Reals of eight bytes.
    Double(Vec<f64>),
    /// Text.
    Ascii(String),
}

impl TagValue {
    /// The type's number, how many values, and their bytes.
    fn bytes(&self) -> (u16, u64, Vec<u8>) {
        match self {
            Self::Short(all) => (
                3,
                all.len() as u64,
                all.iter().flat_map(|n| n.to_le_bytes()).collect(),
            ),
            Self::Long(all) => (
                4,
                all.len() as u64,
                all.iter().flat_map(|n| n.to_le_bytes()).collect(),
            ),
            Self::Long8(all) => (
                16,
                all.len() as u64,
                all.iter().flat_map(|n| n.to_le_bytes()).collect(),
            ),
            Self::Double(all) => (
                12,
                all.len() as u64,
                all.iter().flat_map(|n| n.to_le_bytes()).collect(),
            ),
            Self::Ascii(text) => {
                let mut bytes: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
                bytes.push(0);
                (2, bytes.len() as u64, bytes)
            }
        }
    }
}

/// A file that is being written. Its tiles must come in order: band after band, row after row.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    layout: Layout,
    big: bool,
    end: u64,
    places: Vec<(u64, u64)>,
}

impl<W: Write + Seek> Writer<W> {
    /// Begins a file; `out` is empty.
    pub fn new(mut out: W, layout: Layout) -> Result<Self> {
        let (down, across) = layout.grid();
        let tiles = u128::from(down * across) * u128::from(layout.bands);
        let big = tiles * (layout.tile_bytes() as u128 + 16) > CLASSIC_BYTES;
        // The place of the directory comes last.
        let header: &[u8] = match big {
            true => b"II\x2b\0\x08\0\0\0\0\0\0\0\0\0\0\0",
            false => b"II\x2a\0\0\0\0\0",
        };
        out.write_all(header)?;
        let end = header.len() as u64;
        Ok(Self {
            out,
            layout,
            big,
            end,
            places: Vec::new(),
        })
    }

    /// Adds the stored bytes of the next tile.
    pub fn tile(&mut self, stored: &[u8]) -> Result<()> {
        self.out.write_all(stored)?;
        self.places.push((self.end, stored.len() as u64));
        self.end += stored.len() as u64;
        Ok(())
    }

    /// Ends the file with these tags besides those of the layout.
    pub fn finish(mut self, more: BTreeMap<u16, TagValue>) -> Result<W> {
        let layout = self.layout;
        let bands = layout.bands as usize;
        let (long, short) = (
            |n: u64| TagValue::Long(vec![n as u32]),
            |n| TagValue::Short(vec![n]),
        );
        let shorts = |n: u16| TagValue::Short(vec![n; bands]);
        let places = std::mem::take(&mut self.places);
        let places = |of: fn(&(u64, u64)) -> u64| match self.big {
            true => TagValue::Long8(places.iter().map(of).collect()),
            false => TagValue::Long(places.iter().map(|place| of(place) as u32).collect()),
        };
        let mut tags = BTreeMap::from([
            (tag::IMAGE_WIDTH, long(layout.width)),
            (tag::IMAGE_LENGTH, long(layout.height)),
            (tag::BITS_PER_SAMPLE, shorts(layout.size as u16 * 8)),
            (tag::COMPRESSION, short(8)),
            (tag::PHOTOMETRIC, short(1)),
            (tag::SAMPLES_PER_PIXEL, short(layout.bands as u16)),
            (
                tag::PLANAR_CONFIGURATION,
                short(if bands > 1 { 2 } else { 1 }),
            ),
            (tag::PREDICTOR, short(layout.predictor())),
            (tag::TILE_WIDTH, long(layout.tile)),
            (tag::TILE_LENGTH, long(layout.tile)),
            (tag::TILE_OFFSETS, places(|place| place.0)),
            (tag::TILE_BYTE_COUNTS, places(|place| place.1)),
            (tag::SAMPLE_FORMAT, shorts(layout.format)),
        ]);
        if bands > 1 {
            tags.insert(tag::EXTRA_SAMPLES, TagValue::Short(vec![0; bands - 1]));
        }
        for (number, value) in more {
            match value {
                TagValue::Short(all) if all.is_empty() => tags.remove(&number),
                value => tags.insert(number, value),
            };
        }
        let (inline, count_size) = if self.big { (8, 8) } else { (4, 4) };
        let mut entries = Vec::new();
        for (number, value) in &tags {
            let (kind, count, mut bytes) = value.bytes();
            entries.extend(number.to_le_bytes());
            entries.extend(kind.to_le_bytes());
            entries.extend(count.to_le_bytes().into_iter().take(count_size));
            if bytes.len() > inline {
                self.pad()?;
                self.out.write_all(&bytes)?;
                let place = self.end;
                self.end += bytes.len() as u64;
                bytes = place.to_le_bytes().to_vec();
            }
            bytes.resize(inline, 0);
            entries.extend(bytes);
        }
        self.pad()?;
        let place = self.end;
        let count = (tags.len() as u64).to_le_bytes();
        let (head, at) = if self.big { (8, 8) } else { (2, 4) };
        self.out.write_all(count.get(..head).unwrap_or_default())?;
        self.out.write_all(&entries)?;
        self.out.write_all(&vec![0; inline])?;
        self.out.seek(SeekFrom::Start(at))?;
        self.out
            .write_all(place.to_le_bytes().get(..inline).unwrap_or_default())?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Values and directories begin at even places.
    fn pad(&mut self) -> Result<()> {
        if self.end % 2 == 1 {
            self.out.write_all(&[0])?;
            self.end += 1;
        }
        Ok(())
    }
}
