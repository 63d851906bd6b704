//! Cells of a 2-D dense attribute as pixels.

use super::colour_map::ColourMap;
use crate::error::{CliError, Result};
use azulejo::ColumnBuffers;
use azulejo::column::ColumnType;
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::{CellValNum, Datatype};

/// How cells become pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Grey and alpha: two bytes a pixel, scaled from the least value to the greatest; missing
    /// cells are transparent.
    Grey,
    /// Colours of a map and alpha: four bytes a pixel, scaled likewise.
    Mapped(ColourMap),
    /// The cells' own three bytes.
    Rgb,
    /// The cells' own four bytes.
    Rgba,
}

impl Colour {
    /// How the cells of a column are shown.
    pub fn of(column: &ColumnType) -> Result<Self> {
        let number = !(column.datatype.is_string() || column.datatype.is_byte());
        match column.cell_val_num {
            CellValNum::ONE if number && column.datatype != Datatype::Any => Ok(Self::Grey),
            CellValNum::Fixed(3) if column.datatype == Datatype::UInt8 => Ok(Self::Rgb),
            CellValNum::Fixed(4) if column.datatype == Datatype::UInt8 => Ok(Self::Rgba),
            _ => Err(CliError::usage(format!(
                "{:?} makes no picture: it takes one number a cell, or 3 or 4 of UINT8 as colours",
                column.name
            ))),
        }
    }

    /// Bytes of a pixel.
    pub fn bytes(self) -> usize {
        match self {
            Self::Grey => 2,
            Self::Rgb => 3,
            Self::Mapped(_) | Self::Rgba => 4,
        }
    }
}

/// The least and the greatest value of the cells that count: not null, not NaN, not the fill value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// The least value, shown black.
    pub low: f64,
    /// The greatest value, shown white.
    pub high: f64,
}

impl Scale {
    /// A scale without values yet.
    pub const EMPTY: Self = Self {
        low: f64::INFINITY,
        high: f64::NEG_INFINITY,
    };

    /// Widens the scale to a column's cells.
    pub fn widen(&mut self, cells: &ColumnBuffers, fill: &[u8]) {
        fn run<T: Native>(scale: &mut Scale, cells: &ColumnBuffers, fill: &[u8]) {
            each::<T>(cells, fill, |value| {
                if let Some(value) = value {
                    scale.low = scale.low.min(value);
                    scale.high = scale.high.max(value);
                }
            });
        }
        dispatch!(cells.column_type.datatype.physical(), T => run::<T>(self, cells, fill));
    }

    fn grey(self, value: f64) -> u8 {
        (self.share(value) * 255.0).round() as u8
    }

    /// Where a value lies between the least and the greatest: 0 to 1.
    fn share(self, value: f64) -> f64 {
        if self.high > self.low {
            // Halves first, so that the span of huge values does not overflow.
            let span = self.high / 2.0 - self.low / 2.0;
            ((value / 2.0 - self.low / 2.0) / span).clamp(0.0, 1.0)
        } else {
            0.5
        }
    }
}

/// Calls `take` with each cell, `None` for one that is missing: null, NaN, infinite, or the fill
/// value.
fn each<T: Native>(cells: &ColumnBuffers, fill: &[u8], mut take: impl FnMut(Option<f64>)) {
    let validity = cells.validity.as_deref();
    for (cell, bytes) in cells.data.chunks_exact(T::SIZE).enumerate() {
        let valid = validity.is_none_or(|v| v.get(cell).is_some_and(|&b| b != 0));
        let value = T::read(bytes).as_f64();
        take((valid && bytes != fill && value.is_finite()).then_some(value));
    }
}

/// Appends the pixels of a column's cells. `fill` is the fill value where it means that nothing was
/// written.
pub fn append_pixels(
    out: &mut Vec<u8>,
    cells: &ColumnBuffers,
    fill: &[u8],
    colour: Colour,
    scale: Scale,
) {
    fn grey<T: Native>(out: &mut Vec<u8>, cells: &ColumnBuffers, fill: &[u8], scale: Scale) {
        each::<T>(cells, fill, |value| {
            out.extend(value.map_or([0, 0], |value| [scale.grey(value), 255]));
        });
    }
    fn mapped<T: Native>(
        out: &mut Vec<u8>,
        cells: &ColumnBuffers,
        fill: &[u8],
        scale: Scale,
        map: ColourMap,
    ) {
        each::<T>(cells, fill, |value| {
            out.extend(value.map_or([0; 4], |value| {
                let [r, g, b] = map.colour(scale.share(value));
                [r, g, b, 255]
            }));
        });
    }
    match colour {
        Colour::Mapped(map) => {
            dispatch!(cells.column_type.datatype.physical(), T => mapped::<T>(out, cells, fill, scale, map));
        }
        Colour::Grey => {
            dispatch!(cells.column_type.datatype.physical(), T => grey::<T>(out, cells, fill, scale));
        }
        Colour::Rgb | Colour::Rgba => out.extend_from_slice(&cells.data),
    }
}

/// A picture drawn with characters, two pixels one above the other in each: with colours if
/// `styled`, else with shades.
pub fn draw(pixels: &[u8], width: usize, colour: Colour, styled: bool) -> String {
    let rows: Vec<&[u8]> = pixels
        .chunks_exact((width * colour.bytes()).max(1))
        .collect();
    let pixel = |row: Option<&&[u8]>, x: usize| -> Option<[u8; 3]> {
        let bytes = row?.get(x * colour.bytes()..(x + 1) * colour.bytes())?;
        match *bytes {
            [grey, alpha] => (alpha > 0).then_some([grey; 3]),
            [r, g, b] => Some([r, g, b]),
            [r, g, b, alpha] => (alpha > 0).then_some([r, g, b]),
            _ => None,
        }
    };
    let mut out = String::new();
    for pair in rows.chunks(2) {
        for x in 0..width {
            let (top, bottom) = (pixel(pair.first(), x), pixel(pair.get(1), x));
            if styled {
                out.push_str(&match (top, bottom) {
                    (None, None) => "\u{1b}[0m ".to_owned(),
                    (Some(t), None) => format!("\u{1b}[0;38;2;{};{};{}m▀", t[0], t[1], t[2]),
                    (None, Some(b)) => format!("\u{1b}[0;38;2;{};{};{}m▄", b[0], b[1], b[2]),
                    (Some(t), Some(b)) => {
                        format!(
                            "\u{1b}[0;38;2;{};{};{};48;2;{};{};{}m▀",
                            t[0], t[1], t[2], b[0], b[1], b[2]
                        )
                    }
                });
            } else {
                let lights: Vec<u32> = [top, bottom]
                    .iter()
                    .flatten()
                    .map(|p| p.iter().map(|&v| u32::from(v)).sum::<u32>() / 3)
                    .collect();
                let shade = match lights.len() {
                    0 => ' ',
                    n => [' ', '░', '▒', '▓', '█']
                        [(lights.iter().sum::<u32>() / n as u32 / 52) as usize],
                };
                out.push(shade);
            }
        }
        out.push_str(if styled { "\u{1b}[0m\n" } else { "\n" });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo::column::ColumnBuilder;

    fn floats(values: &[f32]) -> ColumnBuffers {
        let mut builder = ColumnBuilder::new(ColumnType::new("a", Datatype::Float32));
        for value in values {
            builder.append_cell(&value.to_le_bytes(), true);
        }
        builder.finish()
    }

    #[test]
    fn values_are_scaled_and_missing_ones_transparent() {
        let cells = floats(&[-1.0, 0.0, 1.0, f32::NAN, 7.0]);
        let fill = 7.0f32.to_le_bytes();
        let mut scale = Scale::EMPTY;
        scale.widen(&cells, &fill);
        assert_eq!(
            scale,
            Scale {
                low: -1.0,
                high: 1.0
            }
        );
        let mut pixels = Vec::new();
        append_pixels(&mut pixels, &cells, &fill, Colour::Grey, scale);
        assert_eq!(pixels, [0, 255, 128, 255, 255, 255, 0, 0, 0, 0]);
        assert_eq!(
            Scale {
                low: f64::MIN,
                high: f64::MAX
            }
            .grey(f64::MAX),
            255
        );
        assert_eq!(
            Scale {
                low: 5.0,
                high: 5.0
            }
            .grey(5.0),
            128
        );
    }

    #[test]
    fn only_numbers_and_colours_make_a_picture() {
        let column =
            |datatype, n| ColumnType::new("a", datatype).with_cell_val_num(CellValNum::Fixed(n));
        assert_eq!(
            Colour::of(&column(Datatype::UInt8, 3)).unwrap(),
            Colour::Rgb
        );
        assert_eq!(
            Colour::of(&column(Datatype::UInt8, 4)).unwrap(),
            Colour::Rgba
        );
        assert_eq!(
            Colour::of(&column(Datatype::DateTimeDay, 1)).unwrap(),
            Colour::Grey
        );
        assert!(Colour::of(&column(Datatype::UInt16, 3)).is_err());
        assert!(Colour::of(&column(Datatype::StringAscii, 1)).is_err());
    }

    #[test]
    fn a_drawing_has_half_as_many_lines_as_pixels() {
        let pixels = [0, 255, 255, 255, 0, 255, 255, 255, 0, 0, 0, 0];
        assert_eq!(draw(&pixels, 2, Colour::Grey, false), " █\n  \n");
        assert_eq!(draw(&pixels, 2, Colour::Grey, true).lines().count(), 2);
    }
}
