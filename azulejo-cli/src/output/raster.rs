//! Cells gathered into the pixels of a picture: the mean of those that fall into each.

use super::canvas::{CLEAR, Canvas};
use super::colour_map::ColourMap;
use super::picture::{Colour, Scale};

/// Sums and numbers of cells, pixel by pixel.
#[derive(Debug, Clone)]
pub struct Raster {
    rows: usize,
    columns: usize,
    channels: usize,
    sums: Vec<f64>,
    counts: Vec<u32>,
}

impl Raster {
    /// Bytes of a raster of so many pixels.
    pub fn bytes(rows: u64, columns: u64, channels: usize) -> u64 {
        rows.saturating_mul(columns)
            .saturating_mul(8 * channels as u64 + 4 + 4)
    }

    /// No cells yet; `channels` values in each.
    pub fn new(rows: usize, columns: usize, channels: usize) -> Self {
        Self {
            rows,
            columns,
            channels,
            sums: vec![0.0; rows * columns * channels],
            counts: vec![0; rows * columns],
        }
    }

    /// Takes a cell. Pixels are in range: their makers see to it.
    pub fn add(&mut self, row: usize, column: usize, values: &[f64]) {
        let at = row * self.columns + column;
        if row >= self.rows || column >= self.columns || values.len() != self.channels {
            return;
        }
        self.counts[at] = self.counts[at].saturating_add(1);
        for (sum, value) in self.sums[at * self.channels..].iter_mut().zip(values) {
            *sum += value;
        }
    }

    /// The mean in each pixel that has cells; of one channel.
    fn means(&self) -> impl Iterator<Item = Option<f64>> {
        let sums = self.sums.iter().step_by(self.channels.max(1));
        sums.zip(&self.counts)
            .map(|(sum, &count)| (count > 0).then(|| sum / f64::from(count)))
    }

    /// The means of all pixels that have cells.
    pub fn values(&self) -> Vec<f64> {
        self.means().flatten().collect()
    }

    /// The number of cells in each pixel instead of their values.
    pub fn into_density(self) -> Self {
        Self {
            channels: 1,
            sums: self.counts.iter().map(|&count| f64::from(count)).collect(),
            counts: self.counts.iter().map(|&count| count.min(1)).collect(),
            ..self
        }
    }

    /// Its pixels.
    pub fn canvas(&self, colour: Colour, scale: Scale) -> Canvas {
        let pixels = match colour {
            Colour::Grey => self.coloured(ColourMap::Grey, scale),
            Colour::Mapped(map) => self.coloured(map, scale),
            Colour::Rgb | Colour::Rgba => {
                let sums = self.sums.chunks_exact(self.channels.max(1));
                let pixel = |(sums, &count): (&[f64], &u32)| {
                    if count == 0 {
                        return CLEAR;
                    }
                    let mut pixel = [0, 0, 0, 255];
                    for (to, sum) in pixel.iter_mut().zip(sums) {
                        *to = (sum / f64::from(count)).round().clamp(0.0, 255.0) as u8;
                    }
                    pixel
                };
                sums.zip(&self.counts).map(pixel).collect()
            }
        };
        Canvas::new(self.columns, pixels)
    }

    fn coloured(&self, map: ColourMap, scale: Scale) -> Vec<[u8; 4]> {
        let pixel = |value: Option<f64>| {
            let share = value.and_then(|value| scale.share(value));
            share.map_or(CLEAR, |share| {
                let [r, g, b] = map.colour(share);
                [r, g, b, 255]
            })
        };
        self.means().map(pixel).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_means_of_their_cells() {
        let mut raster = Raster::new(1, 3, 1);
        raster.add(0, 0, &[1.0]);
        raster.add(0, 0, &[3.0]);
        raster.add(0, 2, &[0.0]);
        raster.add(7, 7, &[9.0]);
        assert_eq!(raster.values(), [2.0, 0.0]);
        let canvas = raster.canvas(Colour::Grey, Scale::linear(0.0, 2.0));
        assert_eq!(canvas.pixel(0, 0), [255; 4]);
        assert_eq!(canvas.pixel(0, 1), CLEAR);
        assert_eq!(canvas.pixel(0, 2), [0, 0, 0, 255]);
        assert_eq!(raster.into_density().values(), [2.0, 1.0]);
        let mut raster = Raster::new(1, 1, 3);
        raster.add(0, 0, &[10.0, 20.0, 255.0]);
        let canvas = raster.canvas(Colour::Rgb, Scale::EMPTY);
        assert_eq!(canvas.pixel(0, 0), [10, 20, 255, 255]);
    }
}
