//! Coordinates as rows and columns of pixels.

use crate::error::{CliError, Result};
use azulejo::ColumnBuffers;
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::schema::Dimension;

/// The pixels along the longer side of a picture of sparse cells.
const USUAL: usize = 512;
/// Sides whose lengths differ more are of unlike things.
const MOST_UNLIKE: f64 = 4.0;

/// A dimension's coordinates as numbers of pixels.
#[derive(Debug, Clone)]
pub struct Bins {
    whole: bool,
    low: f64,
    high: f64,
    count: usize,
}

impl Bins {
    /// Nothing is known of the coordinates yet.
    pub fn new(dimension: &Dimension) -> Result<Self> {
        if dimension.datatype.is_string() || dimension.is_var() {
            return Err(CliError::usage(format!(
                "{:?} holds text, which has no place in a picture; choose two others with --dims",
                dimension.name
            )));
        }
        Ok(Self {
            whole: !dimension.datatype.is_real(),
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            count: 1,
        })
    }

    /// Takes in coordinates.
    pub fn widen(&mut self, column: &ColumnBuffers) {
        for value in numbers(column) {
            self.low = self.low.min(value);
            self.high = self.high.max(value);
        }
    }

    /// How many different coordinates there can be; infinitely many reals.
    fn span(&self) -> f64 {
        match self.whole {
            true => (self.high - self.low + 1.0).max(1.0),
            false => f64::INFINITY,
        }
    }

    /// Cuts what was taken in into so many pixels.
    pub fn cut(&mut self, count: usize) {
        self.count = count;
    }

    /// The pixel of each coordinate.
    pub fn places(&self, column: &ColumnBuffers) -> impl Iterator<Item = usize> {
        let length = match self.whole {
            true => self.high - self.low + 1.0,
            false => self.high - self.low,
        };
        let (low, count) = (self.low, self.count);
        numbers(column).into_iter().map(move |value| {
            let at = match length > 0.0 {
                true => (value - low) / length * count as f64,
                false => 0.0,
            };
            (at as usize).min(count - 1)
        })
    }
}

fn numbers(column: &ColumnBuffers) -> Vec<f64> {
    fn run<T: Native>(column: &ColumnBuffers) -> Vec<f64> {
        let cells = column.data.chunks_exact(T::SIZE);
        cells.map(|bytes| T::read(bytes).as_f64()).collect()
    }
    dispatch!(column.column_type.datatype.physical(), T => run::<T>(column))
}

/// Rows and columns of a picture: a pixel a coordinate where that fits, no more than `most` (width
/// and height).
pub fn sizes(bins: &[Bins], most: Option<(usize, usize)>) -> Result<(usize, usize)> {
    let [down, across] = bins else {
        return Err(CliError::usage("a picture shows two dimensions"));
    };
    let (width, height) = most.unwrap_or((USUAL, USUAL));
    let (tall, wide) = (down.high - down.low, across.high - across.low);
    let fits = down.span() <= height as f64 && across.span() <= width as f64;
    if fits {
        return Ok((down.span() as usize, across.span() as usize));
    }
    let ratio = tall / wide;
    if !ratio.is_finite() || !(1.0 / MOST_UNLIKE..=MOST_UNLIKE).contains(&ratio) {
        let side = |bins: &Bins, most: usize| (bins.span().min(most as f64) as usize).max(1);
        return Ok((side(down, height), side(across, width)));
    }
    let part = (width as f64 / wide).min(height as f64 / tall);
    let side = |length: f64| ((length * part).round() as usize).max(1);
    Ok((side(tall).min(height), side(wide).min(width)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo::column::{ColumnBuilder, ColumnType};
    use azulejo::format::Datatype;

    fn bins(whole: bool, low: f64, high: f64) -> Bins {
        Bins {
            whole,
            low,
            high,
            count: 1,
        }
    }

    #[test]
    fn small_wholes_have_a_pixel_each_and_others_their_proportions() {
        let sizes = |a, b, most| sizes(&[a, b], most).unwrap();
        assert_eq!(
            sizes(bins(true, 0.0, 9.0), bins(true, -5.0, 5.0), None),
            (10, 11)
        );
        assert_eq!(
            sizes(bins(false, 0.0, 1.0), bins(false, 0.0, 2.0), None),
            (256, 512)
        );
        assert_eq!(
            sizes(bins(false, 0.0, 1.0), bins(false, 0.0, 1e6), Some((80, 40))),
            (40, 80)
        );
        assert_eq!(
            sizes(bins(true, 3.0, 3.0), bins(false, 0.0, 1e6), Some((80, 40))),
            (1, 80)
        );
    }

    #[test]
    fn coordinates_have_their_pixels() {
        let mut column = ColumnBuilder::new(ColumnType::new("x", Datatype::Int32));
        for value in [0i32, 4, 5, 9] {
            column.append_cell(&value.to_le_bytes(), true);
        }
        let column = column.finish();
        let mut x = bins(true, f64::INFINITY, f64::NEG_INFINITY);
        x.widen(&column);
        x.cut(2);
        assert_eq!(x.places(&column).collect::<Vec<_>>(), [0, 0, 1, 1]);
    }
}
