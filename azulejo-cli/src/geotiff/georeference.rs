//! Where a raster lies on the earth: GDAL's six numbers, and the code of its coordinate system.

use super::directory::{Directory, Tag, tag};
use super::{Result, TagValue};
use crate::error::FileError;
use std::collections::BTreeMap;

/// GeoTIFF's key for whether cells are areas or points.
const RASTER_TYPE: u16 = 1025;
/// Its keys for coordinate systems of the globe and of the plane.
const GEOGRAPHIC: u16 = 2048;
const PROJECTED: u16 = 3072;
/// What stands for a system that has no code.
const USER_DEFINED: u16 = 32767;

/// Where a raster lies.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Georeference {
    /// x of the corner, what a column and what a row adds to it; then the same of y.
    pub transform: Option<[f64; 6]>,
    /// Whether cells are points: the transform then belongs to corners all the same.
    pub is_point: bool,
    /// The keys' own numbers, reals and texts.
    pub keys: Vec<u16>,
    /// The keys' reals.
    pub doubles: Vec<f64>,
    /// The keys' texts.
    pub ascii: String,
    /// Points of the raster and where they lie: six numbers each, where these do not make a
    /// transform.
    pub tiepoints: Vec<f64>,
}

impl Georeference {
    /// That of an image.
    pub fn new(directory: &Directory) -> Result<Self> {
        let reals = |number| -> Result<Vec<f64>> {
            let found = directory.get(number).map(|found| {
                let reals = found.reals();
                reals.ok_or_else(|| FileError::new(format!("tag {number} holds no reals")))
            });
            Ok(found.transpose()?.unwrap_or_default())
        };
        let keys = directory
            .numbers(tag::GEO_KEY_DIRECTORY)?
            .unwrap_or_default();
        let keys = keys
            .into_iter()
            .map(u16::try_from)
            .collect::<Result<Vec<_>, _>>();
        let keys = keys.map_err(|_| FileError::new("its keys are no numbers of two bytes"))?;
        let ascii = directory.get(tag::GEO_ASCII_PARAMS).and_then(Tag::text);
        let mut found = Self {
            keys,
            doubles: reals(tag::GEO_DOUBLE_PARAMS)?,
            ascii: ascii.unwrap_or_default(),
            ..Self::default()
        };
        found.is_point = found.key(RASTER_TYPE) == Some(2);
        let matrix = reals(tag::MODEL_TRANSFORMATION)?;
        let (scale, points) = (reals(tag::MODEL_PIXEL_SCALE)?, reals(tag::MODEL_TIEPOINT)?);
        let transform = match (&matrix[..], &scale[..], &points[..]) {
            ([a, b, _, x, d, e, _, y, ..], ..) => Some([*x, *a, *b, *y, *d, *e]),
            (_, [dx, dy, ..], [i, j, _, x, y, _, ..]) if *dx != 0.0 && *dy != 0.0 => {
                let dy = -dy.abs();
                Some([x - i * dx, *dx, 0.0, y - j * dy, 0.0, dy])
            }
            _ => None,
        };
        found.transform = transform.filter(|all| all.iter().all(|n| n.is_finite()));
        if let (true, Some(all)) = (found.is_point, &mut found.transform) {
            all[0] -= all[1] * 0.5 + all[2] * 0.5;
            all[3] -= all[4] * 0.5 + all[5] * 0.5;
        }
        if found.transform.is_none() {
            found.tiepoints = points;
        }
        Ok(found)
    }

    /// A key's number, if it stands in the directory itself.
    fn key(&self, number: u16) -> Option<u16> {
        let (_, entries) = self.keys.as_chunks::<4>().0.split_first()?;
        let found = entries
            .iter()
            .find(|entry| entry[0] == number && entry[1] == 0);
        found.map(|entry| entry[3])
    }

    /// The EPSG code of its coordinate system.
    pub fn epsg(&self) -> Option<u16> {
        let code = |key| {
            self.key(key)
                .filter(|code| *code != 0 && *code != USER_DEFINED)
        };
        match self.key(PROJECTED) {
            // A system of the plane names that of the globe too.
            Some(USER_DEFINED) => None,
            _ => code(PROJECTED).or_else(|| code(GEOGRAPHIC)),
        }
    }

    /// The keys of a coordinate system that is named by its code, `EPSG:CODE` or at the end of a
    /// text in WKT.
    pub fn named(text: &str, is_point: bool) -> Option<Self> {
        let text = text.trim();
        let (code, geographic) = match text.strip_prefix("EPSG:") {
            // Those of the globe have such numbers, but for a few that are hardly used.
            Some(code) => (code, code.len() == 4 && code.starts_with('4')),
            None => {
                let places = ["AUTHORITY[\"EPSG\",", "ID[\"EPSG\","]
                    .map(|mark| text.rfind(mark).and_then(|at| text.get(at + mark.len()..)));
                let rest = places.into_iter().flatten().next()?;
                let code = rest.trim_start_matches('"');
                let end = code.find(|c: char| !c.is_ascii_digit())?;
                // The code of the whole is the last thing that is said.
                let tail = code.get(end..)?.trim_start_matches('"').trim_end();
                if tail.chars().any(|c| c != ']') || tail.len() != 2 {
                    return None;
                }
                let globe = ["GEOGCS", "GEOGCRS", "GEODCRS"];
                (
                    code.get(..end)?,
                    globe.iter().any(|name| text.starts_with(name)),
                )
            }
        };
        let code = code.parse::<u16>().ok()?;
        let (model, key) = if geographic {
            (2, GEOGRAPHIC)
        } else {
            (1, PROJECTED)
        };
        let raster = if is_point { 2 } else { 1 };
        let entries = [
            [1, 1, 0, 3],
            [1024, 0, 1, model],
            [RASTER_TYPE, 0, 1, raster],
            [key, 0, 1, code],
        ];
        Some(Self {
            keys: entries.concat(),
            is_point,
            ..Self::default()
        })
    }

    /// Takes the place that coordinates say (first and step, `None` where they say none), unless the
    /// transform says just that: it is more exact, but of another part of a raster it is wrong.
    pub fn settle(&mut self, x: Option<(f64, f64)>, y: Option<(f64, f64)>) {
        let (Some(x), Some(y)) = (x, y) else {
            return;
        };
        let agrees = |(first, step): (f64, f64), (own, own_step): (f64, f64)| {
            let near = 1e-3 * own_step.abs();
            (first - own).abs() <= near
                && (step == 0.0 || (step - own_step).abs() <= 1e-6 * own_step.abs())
        };
        if self.transform.is_some() && agrees(x, self.axis(true)) && agrees(y, self.axis(false)) {
            return;
        }
        // Of a single row or column the step is what the transform says.
        let [_, dx, _, _, _, dy] = self.transform.unwrap_or_default();
        let step = |own: f64, before: f64| if own == 0.0 { before } else { own };
        let (dx, dy) = (step(x.1, dx), step(y.1, dy));
        let known = dx != 0.0 && dy != 0.0;
        self.transform = known.then_some([x.0 - dx * 0.5, dx, 0.0, y.0 - dy * 0.5, 0.0, dy]);
    }

    /// The tags that say all this.
    pub fn tags(&self) -> BTreeMap<u16, TagValue> {
        let mut tags = BTreeMap::new();
        if let Some([mut x, dx, rx, mut y, ry, dy]) = self.transform {
            if self.is_point {
                x += dx * 0.5 + rx * 0.5;
                y += ry * 0.5 + dy * 0.5;
            }
            if dx > 0.0 && dy < 0.0 && self.is_upright() {
                tags.insert(tag::MODEL_PIXEL_SCALE, TagValue::Double(vec![dx, -dy, 0.0]));
                let point = vec![0.0, 0.0, 0.0, x, y, 0.0];
                tags.insert(tag::MODEL_TIEPOINT, TagValue::Double(point));
            } else {
                let matrix = [
                    [dx, rx, 0.0, x],
                    [ry, dy, 0.0, y],
                    [0.0; 4],
                    [0.0, 0.0, 0.0, 1.0],
                ];
                tags.insert(tag::MODEL_TRANSFORMATION, TagValue::Double(matrix.concat()));
            }
        } else if !self.tiepoints.is_empty() {
            tags.insert(
                tag::MODEL_TIEPOINT,
                TagValue::Double(self.tiepoints.clone()),
            );
        }
        let mut keys = self.keys.clone();
        if keys.is_empty() && self.is_point {
            keys = [[1, 1, 0, 1], [RASTER_TYPE, 0, 1, 2]].concat();
        }
        if !keys.is_empty() {
            tags.insert(tag::GEO_KEY_DIRECTORY, TagValue::Short(keys));
        }
        if !self.doubles.is_empty() {
            tags.insert(
                tag::GEO_DOUBLE_PARAMS,
                TagValue::Double(self.doubles.clone()),
            );
        }
        if !self.ascii.is_empty() {
            tags.insert(tag::GEO_ASCII_PARAMS, TagValue::Ascii(self.ascii.clone()));
        }
        tags
    }

    /// Whether x is the same for all rows, and y for all columns.
    pub fn is_upright(&self) -> bool {
        let transform = self.transform;
        transform.is_none_or(|[_, _, rx, _, ry, _]| rx == 0.0 && ry == 0.0)
    }

    /// First coordinate and step of the middles of columns (`true`) or rows.
    pub fn axis(&self, columns: bool) -> (f64, f64) {
        let [x, dx, rx, y, ry, dy] = self.transform.unwrap_or([0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
        match columns {
            true => (dx * 0.5 + rx * 0.5 + x, dx),
            false => (ry * 0.5 + dy * 0.5 + y, dy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_where_the_whole_system_is_named() {
        let code = |text: &str| Georeference::named(text, false).and_then(|named| named.epsg());
        assert_eq!(code("EPSG:32632"), Some(32632));
        assert_eq!(code("EPSG:4326"), Some(4326));
        let globe = "GEOGCS[\"WGS 84\",DATUM[\"WGS_1984\",AUTHORITY[\"EPSG\",\"6326\"]],AUTHORITY[\"EPSG\",\"4326\"]]";
        assert_eq!(code(globe), Some(4326));
        assert_eq!(
            Georeference::named(globe, true).unwrap().keys[4..8],
            [1024, 0, 1, 2]
        );
        assert_eq!(
            code("PROJCRS[\"x\",BASEGEOGCRS[\"y\",ID[\"EPSG\",4326]],ID[\"EPSG\",32633]]"),
            Some(32633)
        );
        // The part of a system is not the whole.
        assert_eq!(
            code(
                "PROJCS[\"own\",GEOGCS[\"WGS 84\",AUTHORITY[\"EPSG\",\"4326\"]],UNIT[\"metre\",1]]"
            ),
            None
        );
        assert_eq!(code("own"), None);
    }

    #[test]
    fn coordinates_win_over_a_transform_of_another_part() {
        let of = |transform| Georeference {
            transform,
            ..Georeference::default()
        };
        let exact = [300.0, 0.1, 0.0, 5001.0, 0.0, -0.1];
        let mut place = of(Some(exact));
        place.settle(Some((300.05, 0.1 + 1e-9)), Some((5000.95, -0.1)));
        assert_eq!(place.transform, Some(exact));
        place.settle(Some((310.05, 0.1)), Some((5000.95, 0.0)));
        let [x, dx, _, y, _, dy] = place.transform.unwrap();
        assert!((x - 310.0).abs() < 1e-9 && (y - 5001.0).abs() < 1e-9);
        assert_eq!((dx, dy), (0.1, -0.1));
        let mut none = of(None);
        none.settle(Some((1.0, 0.0)), Some((1.0, 2.0)));
        assert_eq!(none.transform, None);
    }
}
