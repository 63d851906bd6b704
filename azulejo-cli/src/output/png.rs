//! Pictures as PNG files, written row by row.

use super::picture::{Colour, Missing, Scale, append_pixels};
use crate::error::{CliError, Result};
use azulejo::ColumnBuffers;
use png::{BitDepth, ColorType, Encoder, EncodingError, StreamWriter};
use std::io::Write;

/// The most pixels along a side: more do not fit PNG.
const MAX_SIDE: u64 = i32::MAX as u64;

/// A PNG file being written.
pub struct PngWriter<W: Write + 'static> {
    stream: StreamWriter<'static, W>,
    colour: Colour,
    scale: Scale,
    missing: Missing,
    bytes_left: u64,
    pixels: Vec<u8>,
}

impl<W: Write + 'static> PngWriter<W> {
    /// Begins a picture of `rows` times `columns` pixels.
    pub fn new(
        out: W,
        (rows, columns): (u64, u64),
        colour: Colour,
        scale: Scale,
        missing: Missing,
    ) -> Result<Self> {
        let side = |pixels: u64| {
            u32::try_from(pixels).ok().filter(|&n| n > 0 && u64::from(n) <= MAX_SIDE).ok_or_else(|| {
                CliError::usage(format!(
                    "a picture of {columns} by {rows} pixels cannot be made; narrow it with --range or --step"
                ))
            })
        };
        let mut encoder = Encoder::new(out, side(columns)?, side(rows)?);
        encoder.set_color(match colour {
            Colour::Grey => ColorType::GrayscaleAlpha,
            Colour::Rgb => ColorType::Rgb,
            Colour::Mapped(_) | Colour::Rgba => ColorType::Rgba,
        });
        encoder.set_depth(BitDepth::Eight);
        let stream = encoder
            .write_header()
            .and_then(png::Writer::into_stream_writer)
            .map_err(failed)?;
        let bytes_left = rows
            .saturating_mul(columns)
            .saturating_mul(colour.bytes() as u64);
        Ok(Self {
            stream,
            colour,
            scale,
            missing,
            bytes_left,
            pixels: Vec::new(),
        })
    }

    /// Writes the pixels of a batch.
    pub fn write(&mut self, cells: &ColumnBuffers) -> Result<()> {
        self.pixels.clear();
        append_pixels(
            &mut self.pixels,
            cells,
            &self.missing,
            self.colour,
            self.scale,
        );
        self.bytes_left = self
            .bytes_left
            .checked_sub(self.pixels.len() as u64)
            .ok_or_else(|| {
                CliError::Format("the read gave more cells than the picture has pixels".into())
            })?;
        Ok(self.stream.write_all(&self.pixels)?)
    }

    /// Writes what ends the file.
    pub fn finish(self) -> Result<()> {
        if self.bytes_left > 0 {
            return Err(CliError::Format(
                "the read gave fewer cells than the picture has pixels".into(),
            ));
        }
        self.stream.finish().map_err(failed)
    }
}

fn failed(error: EncodingError) -> CliError {
    match error {
        EncodingError::IoError(source) => source.into(),
        other => CliError::Format(other.to_string()),
    }
}
