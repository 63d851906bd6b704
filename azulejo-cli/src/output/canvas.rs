//! A picture in memory: red, green, blue and alpha of each pixel.

use super::colour_map::ColourMap;
use super::digits;
use super::picture::Scale;
use crate::error::{CliError, Result};
use png::{BitDepth, ColorType, Encoder};
use std::io::Write;

/// Nothing.
pub const CLEAR: [u8; 4] = [0; 4];
const INK: [u8; 4] = [128, 128, 128, 255];
/// Height of the bar that shows the scale, and room around it.
const BAR: usize = 10;
const GAP: usize = 4;
/// A bar that is narrower has no room for its numbers.
const LEAST_BAR: usize = 100;

/// Pixels, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canvas {
    width: usize,
    pixels: Vec<[u8; 4]>,
}

impl Canvas {
    /// Pixels in rows of `width`.
    pub fn new(width: usize, pixels: Vec<[u8; 4]>) -> Self {
        Self { width, pixels }
    }

    /// Pixels in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.pixels.len() / self.width.max(1)
    }

    /// A pixel; [`CLEAR`] outside.
    pub fn pixel(&self, row: usize, column: usize) -> [u8; 4] {
        match column < self.width {
            true => {
                let at = row
                    .checked_mul(self.width)
                    .and_then(|at| at.checked_add(column));
                at.and_then(|at| self.pixels.get(at))
                    .copied()
                    .unwrap_or(CLEAR)
            }
            false => CLEAR,
        }
    }

    fn set(&mut self, row: usize, column: usize, pixel: [u8; 4]) {
        if let Some(to) = self.pixels.get_mut(row * self.width + column)
            && column < self.width
        {
            *to = pixel;
        }
    }

    /// The same with the first row at the bottom.
    pub fn turned_up(mut self) -> Self {
        let height = self.height();
        for row in 0..height / 2 {
            let other = height - 1 - row;
            for column in 0..self.width {
                self.pixels
                    .swap(row * self.width + column, other * self.width + column);
            }
        }
        self
    }

    /// The same with a bar below it, from the colour of the least value to that of the greatest,
    /// and these two in numbers.
    pub fn with_bar(self, map: ColourMap, scale: Scale) -> Self {
        let (height, width) = (self.height(), self.width.max(LEAST_BAR));
        let rows = height + GAP + BAR + 2 + digits::HEIGHT;
        let mut out = Self::new(width, vec![CLEAR; width * rows]);
        for row in 0..height {
            for column in 0..self.width {
                out.set(row, column, self.pixel(row, column));
            }
        }
        for column in 0..width {
            let [r, g, b] = map.colour(column as f64 / (width - 1) as f64);
            for row in 0..BAR {
                out.set(height + GAP + row, column, [r, g, b, 255]);
            }
        }
        let top = height + GAP + BAR + 2;
        let (low, high) = (number(scale.low), number(scale.high));
        for (text, right) in [(low, false), (high, true)] {
            let left = match right {
                true => width.saturating_sub(digits::width(&text)),
                false => 0,
            };
            for (row, column) in digits::dots(&text) {
                out.set(top + row, left + column, INK);
            }
        }
        out
    }

    /// Writes it as a PNG file.
    pub fn write_png(&self, out: impl Write) -> Result<()> {
        let failed = |e: png::EncodingError| match e {
            png::EncodingError::IoError(source) => CliError::from(source),
            other => CliError::Format(other.to_string()),
        };
        let side = |pixels: usize| {
            u32::try_from(pixels)
                .ok()
                .filter(|n| (1..=i32::MAX as u32).contains(n))
                .ok_or_else(|| CliError::usage("a picture without pixels cannot be made"))
        };
        let mut encoder = Encoder::new(out, side(self.width)?, side(self.height())?);
        encoder.set_color(ColorType::Rgba);
        encoder.set_depth(BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(failed)?;
        writer
            .write_image_data(self.pixels.as_flattened())
            .map_err(failed)?;
        writer.finish().map_err(failed)
    }
}

/// A number in at most four digits.
fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (1e-3..1e6).contains(&size) {
        let digits = (3.0 - size.max(1e-3).log10().floor()).clamp(0.0, 6.0) as usize;
        let text = format!("{value:.digits$}");
        return match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        };
    }
    format!("{value:.3e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_goes_below() {
        let canvas = Canvas::new(2, vec![[1, 2, 3, 255]; 4]);
        let scale = Scale::linear(0.0, 12.5);
        let with = canvas.clone().with_bar(ColourMap::Grey, scale);
        assert_eq!((with.width(), with.height()), (100, 2 + 4 + 10 + 2 + 7));
        assert_eq!(with.pixel(1, 1), [1, 2, 3, 255]);
        assert_eq!(with.pixel(1, 2), CLEAR);
        assert_eq!(with.pixel(8, 0), [0, 0, 0, 255]);
        assert_eq!(with.pixel(8, 99), [255; 4]);
        assert!((0..7).any(|row| (60..100).any(|x| with.pixel(18 + row, x) == INK)));
        let mut file = Vec::new();
        with.write_png(&mut file).unwrap();
        assert!(Canvas::new(0, vec![]).write_png(&mut file).is_err());
    }

    #[test]
    fn rows_turn_up() {
        let canvas = Canvas::new(1, vec![[1; 4], [2; 4], [3; 4]]).turned_up();
        assert_eq!(canvas, Canvas::new(1, vec![[3; 4], [2; 4], [1; 4]]));
    }

    #[test]
    fn numbers_are_short() {
        let numbers = [0.0, 12.5, -273.15, 1e9, 100_000.0, 0.25];
        assert_eq!(
            numbers.map(number),
            ["0", "12.5", "-273.1", "1.000e9", "100000", "0.25"]
        );
    }
}
