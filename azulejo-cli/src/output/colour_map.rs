//! Colours for numbers.

use clap::ValueEnum;

/// How a number from the least to the greatest is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColourMap {
    /// Black to white
    Grey,
    /// Dark blue over green to yellow, evenly to the eye
    Viridis,
    /// Black over red to light yellow, evenly to the eye
    Magma,
    /// Blue over white to red, for values on both sides of a middle
    Diverging,
}

/// Coefficients of a polynomial of the sixth degree for each of red, green and blue, which is close
/// to the table that Matplotlib has.
type Polynomial = [[f64; 3]; 7];

const VIRIDIS: Polynomial = [
    [0.277_727_327, 0.005_407_345, 0.334_099_805],
    [0.105_093_043, 1.404_613_530, 1.384_590_163],
    [-0.330_861_829, 0.214_847_559, 0.095_095_163],
    [-4.634_230_499, -5.799_100_973, -19.332_440_956],
    [6.228_269_936, 14.179_933_367, 56.690_552_601],
    [4.776_384_998, -13.745_145_378, -65.353_032_633],
    [-5.435_455_856, 4.645_852_612, 26.312_435_250],
];

const MAGMA: Polynomial = [
    [-0.002_136_485, -0.000_749_655, -0.005_386_128],
    [0.251_660_541, 0.677_523_244, 2.494_026_599],
    [8.353_717_279, -3.577_719_515, 0.314_467_903],
    [-27.668_733_086, 14.264_730_781, -13.649_213_188],
    [52.176_139_812, -27.943_606_072, 12.944_169_442],
    [-50.768_525_365, 29.046_582_821, 4.234_152_994],
    [18.655_705_066, -11.489_773_520, -5.601_961_509],
];

impl ColourMap {
    /// The colour of a number from 0 to 1.
    pub fn colour(self, at: f64) -> [u8; 3] {
        let byte = |value: f64| (value * 255.0).round().clamp(0.0, 255.0) as u8;
        let polynomial = |of: &Polynomial| {
            let channel = |c: usize| {
                let value = of.iter().rev().fold(0.0, |sum, row| sum * at + row[c]);
                byte(value)
            };
            [channel(0), channel(1), channel(2)]
        };
        match self {
            Self::Grey => [byte(at); 3],
            Self::Viridis => polynomial(&VIRIDIS),
            Self::Magma => polynomial(&MAGMA),
            Self::Diverging => {
                // Each half goes straight from its end to white.
                let (end, share) = match at < 0.5 {
                    true => ([0.13, 0.30, 0.70], 1.0 - 2.0 * at),
                    false => ([0.70, 0.09, 0.13], 2.0 * at - 1.0),
                };
                end.map(|end| byte(1.0 + (end - 1.0) * share))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_those_of_the_tables() {
        let near = |a: [u8; 3], b: [u8; 3]| a.iter().zip(&b).all(|(a, b)| a.abs_diff(*b) <= 6);
        assert!(near(ColourMap::Viridis.colour(0.0), [68, 1, 84]));
        assert!(near(ColourMap::Viridis.colour(0.5), [33, 145, 140]));
        assert!(near(ColourMap::Viridis.colour(1.0), [253, 231, 37]));
        assert!(near(ColourMap::Magma.colour(0.0), [0, 0, 4]));
        assert!(near(ColourMap::Magma.colour(0.5), [183, 55, 121]));
        assert!(near(ColourMap::Magma.colour(1.0), [252, 253, 191]));
        assert_eq!(ColourMap::Diverging.colour(0.5), [255; 3]);
        assert_eq!(ColourMap::Grey.colour(1.0), [255; 3]);
    }

    #[test]
    fn brightness_rises_evenly() {
        for map in [ColourMap::Viridis, ColourMap::Magma, ColourMap::Grey] {
            let light = |step: u32| {
                let [r, g, b] = map.colour(f64::from(step) / 32.0).map(f64::from);
                0.2126 * r + 0.7152 * g + 0.0722 * b
            };
            assert!(
                (1..=32).all(|step| light(step) > light(step - 1)),
                "{map:?}"
            );
        }
    }
}
