//! Cells as pixels: which colours, from which values, and what is missing.

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

/// The values that get the first and the last colour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// The least value, shown black.
    pub low: f64,
    /// The greatest value, shown white.
    pub high: f64,
    /// Whether equal ratios, not differences, look alike; nothing up to 0 shows then.
    log: bool,
}

impl Scale {
    /// A scale without values yet.
    pub const EMPTY: Self = Self {
        low: f64::INFINITY,
        high: f64::NEG_INFINITY,
        log: false,
    };

    /// A scale between two values.
    pub fn linear(low: f64, high: f64) -> Self {
        Self {
            low,
            high,
            log: false,
        }
    }

    /// The same, or a logarithmic one.
    #[must_use]
    pub fn with_log(self, log: bool) -> Self {
        Self { log, ..self }
    }

    /// Whether a value can be shown.
    pub fn takes(self, value: f64) -> bool {
        value.is_finite() && (!self.log || value > 0.0)
    }

    /// Widens the scale to a value.
    pub fn widen(&mut self, value: f64) {
        if self.takes(value) {
            self.low = self.low.min(value);
            self.high = self.high.max(value);
        }
    }

    /// Where a value lies between the least and the greatest: 0 to 1. `None` for what is not shown.
    pub fn share(self, value: f64) -> Option<f64> {
        if !self.takes(value) {
            return None;
        }
        let part = |value: f64, low: f64, high: f64| {
            // Halves first, so that the span of huge values does not overflow.
            let span = high / 2.0 - low / 2.0;
            match span > 0.0 {
                true => ((value / 2.0 - low / 2.0) / span).clamp(0.0, 1.0),
                false => 0.5,
            }
        };
        Some(match self.log && self.low > 0.0 {
            true => part(value.ln(), self.low.ln(), self.high.ln()),
            false => part(value, self.low, self.high),
        })
    }
}

/// Some of many values, evenly taken: enough for percentiles.
#[derive(Debug)]
pub struct Sample {
    values: Vec<f64>,
    every: u64,
    seen: u64,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            every: 1,
            seen: 0,
        }
    }
}

impl Sample {
    /// No more values than this are kept.
    const MOST: usize = 1 << 22;

    /// Takes a value, or passes it over.
    pub fn take(&mut self, value: f64) {
        if self.seen.is_multiple_of(self.every) {
            if self.values.len() == Self::MOST {
                let mut at = 0;
                self.values.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.every *= 2;
            }
            if self.seen.is_multiple_of(self.every) {
                self.values.push(value);
            }
        }
        self.seen += 1;
    }

    /// The scale between two percentiles.
    pub fn scale(mut self, low: f64, high: f64) -> Scale {
        self.values.sort_unstable_by(f64::total_cmp);
        let at = |percent: f64| {
            let last = self.values.len().saturating_sub(1);
            let at = (percent / 100.0 * last as f64).round() as usize;
            self.values.get(at.min(last)).copied()
        };
        match (at(low), at(high)) {
            (Some(low), Some(high)) => Scale::linear(low, high),
            _ => Scale::EMPTY,
        }
    }
}

/// Which cells are missing besides null, NaN and infinite ones.
#[derive(Debug, Clone, Default)]
pub struct Missing {
    /// The fill value, where it means that nothing was written; empty otherwise.
    pub fill: Vec<u8>,
    /// Values that stand for nothing.
    pub masks: Vec<f64>,
}

/// Calls `take` with each cell, `None` for one that is missing.
pub fn each_value(cells: &ColumnBuffers, missing: &Missing, mut take: impl FnMut(Option<f64>)) {
    fn run<T: Native>(
        cells: &ColumnBuffers,
        missing: &Missing,
        take: &mut impl FnMut(Option<f64>),
    ) {
        let validity = cells.validity.as_deref();
        for (cell, bytes) in cells.data.chunks_exact(T::SIZE).enumerate() {
            let valid = validity.is_none_or(|v| v.get(cell).is_some_and(|&b| b != 0));
            let value = T::read(bytes).as_f64();
            let there = valid
                && value.is_finite()
                && bytes != missing.fill
                && !missing.masks.contains(&value);
            take(there.then_some(value));
        }
    }
    dispatch!(cells.column_type.datatype.physical(), T => run::<T>(cells, missing, &mut take));
}

/// Appends the pixels of a column's cells.
pub fn append_pixels(
    out: &mut Vec<u8>,
    cells: &ColumnBuffers,
    missing: &Missing,
    colour: Colour,
    scale: Scale,
) {
    match colour {
        Colour::Mapped(map) => each_value(cells, missing, |value| {
            let share = value.and_then(|value| scale.share(value));
            out.extend(share.map_or([0; 4], |share| {
                let [r, g, b] = map.colour(share);
                [r, g, b, 255]
            }));
        }),
        Colour::Grey => each_value(cells, missing, |value| {
            let share = value.and_then(|value| scale.share(value));
            out.extend(share.map_or([0, 0], |share| [(share * 255.0).round() as u8, 255]));
        }),
        Colour::Rgb | Colour::Rgba => out.extend_from_slice(&cells.data),
    }
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
        let cells = floats(&[-1.0, 0.0, 1.0, f32::NAN, 7.0, 5.0]);
        let missing = Missing {
            fill: 7.0f32.to_le_bytes().to_vec(),
            masks: vec![5.0],
        };
        let mut scale = Scale::EMPTY;
        each_value(&cells, &missing, |value| {
            value.into_iter().for_each(|value| scale.widen(value));
        });
        assert_eq!(scale, Scale::linear(-1.0, 1.0));
        let mut pixels = Vec::new();
        append_pixels(&mut pixels, &cells, &missing, Colour::Grey, scale);
        assert_eq!(pixels, [0, 255, 128, 255, 255, 255, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Scale::linear(f64::MIN, f64::MAX).share(f64::MAX), Some(1.0));
        assert_eq!(Scale::linear(5.0, 5.0).share(5.0), Some(0.5));
        let log = Scale::linear(1.0, 100.0).with_log(true);
        assert_eq!(
            [1.0, 10.0, 100.0].map(|v| log.share(v)),
            [0.0, 0.5, 1.0].map(Some)
        );
        assert_eq!(log.share(0.0), None);
    }

    #[test]
    fn samples_are_even_and_bounded() {
        let mut sample = Sample::default();
        let many = 3 * Sample::MOST as u64;
        (0..many).for_each(|value| sample.take(value as f64));
        assert!(sample.values.len() <= Sample::MOST);
        assert!(
            sample
                .values
                .windows(2)
                .all(|pair| pair[1] - pair[0] == sample.every as f64)
        );
        let scale = sample.scale(10.0, 90.0);
        let share = |value: f64| value / many as f64;
        assert!((share(scale.low) - 0.1).abs() < 1e-3 && (share(scale.high) - 0.9).abs() < 1e-3);
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
}
