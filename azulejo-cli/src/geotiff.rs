//! Reading and writing GeoTIFF: rasters of bands, rows and columns, with their place on the earth.
//!
//! A reader of our own rather than the crate `tiff`, which is made for pictures: it drops bands
//! beyond those of a colour, refuses palettes and tiles that were never written, inverts what is
//! darker where it is greater, and opens no file of more than 131,072 tiles. What is not supported
//! is refused by name.

pub mod beside;
mod chunks;
mod codec;
mod directory;
mod georeference;
mod image;
pub mod keys;
mod writer;

pub use chunks::{Chunks, Region};
pub use directory::{Directory, Tag, tag};
pub use georeference::Georeference;
pub use image::Image;
pub use writer::{Layout, TagValue, Writer};

use crate::error::FileError;
use std::path::Path;

/// The result of reading a file.
pub type Result<T, E = FileError> = std::result::Result<T, E>;

/// Whether a file's name says that it is a TIFF.
pub fn is_tiff(file: &Path) -> bool {
    let ending = file.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|e| ["tif", "tiff", "gtiff"].contains(&e.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::{Cursor, Write};

    /// A file of numbered cells of these bytes.
    fn written(layout: Layout) -> (Vec<u8>, Vec<u8>) {
        let (down, across) = layout.grid();
        let cell = |band: u64, row: u64, column: u64| {
            let number = band * 1000 + row * layout.width + column;
            let bytes = match (layout.format, layout.size) {
                (3, 4) => (number as f32).to_le_bytes().to_vec(),
                (3, _) => (number as f64).to_le_bytes().to_vec(),
                _ => number.to_le_bytes().to_vec(),
            };
            bytes.into_iter().take(layout.size)
        };
        let mut writer = Writer::new(Cursor::new(Vec::new()), layout).unwrap();
        let mut plain = Vec::new();
        for band in 0..layout.bands {
            for (row, column) in
                (0..layout.height).flat_map(|r| (0..layout.width).map(move |c| (r, c)))
            {
                plain.extend(cell(band, row, column));
            }
            for (down, across) in (0..down).flat_map(|d| (0..across).map(move |a| (d, a))) {
                let mut tile = Vec::new();
                for row in 0..layout.tile {
                    for column in 0..layout.tile {
                        tile.extend(cell(
                            band,
                            down * layout.tile + row,
                            across * layout.tile + column,
                        ));
                    }
                }
                writer.tile(&layout.encode(tile).unwrap()).unwrap();
            }
        }
        let tags = BTreeMap::from([(tag::GDAL_NODATA, TagValue::Ascii("-1".to_owned()))]);
        (writer.finish(tags).unwrap().into_inner(), plain)
    }

    /// All cells of a file.
    fn read(bytes: &[u8]) -> Result<Vec<u8>> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(bytes)?;
        let mut opened = std::fs::File::open(file.path())?;
        let (directory, _) = Directory::first(&mut opened)?;
        let image = Image::new(&directory)?;
        Georeference::new(&directory)?;
        let mut chunks = Chunks::new(&image, file.path(), 1 << 20)?;
        let region = Region {
            bands: (0, image.bands),
            rows: (0, image.height.min(1 << 10)),
            columns: (0, image.width.min(1 << 10)),
        };
        if region.cells() > 1 << 22 {
            return Err(FileError::new("it is too large for this test"));
        }
        let fill = vec![0; image.sample.datatype().size()];
        Ok(chunks.read(region, &fill, 2)?.unwrap_or_default())
    }

    #[test]
    fn what_is_written_is_read() {
        for (format, size) in [
            (1, 1),
            (1, 2),
            (1, 4),
            (1, 8),
            (2, 2),
            (2, 8),
            (3, 4),
            (3, 8),
        ] {
            for (height, width, bands, tile) in [(1, 1, 1, 16), (17, 40, 3, 16), (64, 33, 2, 32)] {
                let layout = Layout {
                    height,
                    width,
                    bands,
                    size,
                    format,
                    tile,
                };
                let (bytes, plain) = written(layout);
                assert!(read(&bytes).unwrap() == plain, "{layout:?}");
            }
        }
    }

    #[test]
    fn damaged_files_are_errors_or_other_cells() {
        let layout = Layout {
            height: 20,
            width: 20,
            bands: 2,
            size: 2,
            format: 1,
            tile: 16,
        };
        let (bytes, _) = written(layout);
        // The header and the directory, byte for byte; the cells between here and there.
        let directory = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
        let places = (0..8)
            .chain((8..directory).step_by(41))
            .chain(directory - 200..bytes.len());
        for place in places {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[place] = value;
                let _ = read(&damaged);
            }
        }
        for length in (0..bytes.len()).step_by(7) {
            assert!(read(&bytes[..length]).is_err(), "{length}");
        }
    }
}
