//! The raster itself as a variable, and its cells as they are read from the file.

use super::{SPATIAL_REF, array, text};
use crate::error::{FileError, Result};
use crate::geotiff::{Chunks, Directory, Georeference, Image, Region, Tag, keys, tag};
use crate::import::dataset::{
    ATTRIBUTE, CellSource, MOST_FILL, PutBox, Variable, budget, fixed_column,
};
use crate::interrupt;
use crate::session::Session;
use azulejo::column::ColumnType;
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::Attribute;
use azulejo::format::{CellValNum, Datatype};
use azulejo::write::optimize::usual_filters;
use std::path::{Path, PathBuf};

/// The variable's name.
const DATA: &str = "band_data";
/// Tiles of arrays have at least and about so many rows and columns.
const LEAST_SIDE: u64 = 128;
const SIDE: u64 = 512;

/// The variable of the raster's cells.
pub fn variable(
    directory: &Directory,
    image: Image,
    place: &Georeference,
    path: &Path,
    notes: &mut Vec<String>,
) -> Result<Variable> {
    let datatype = image.sample.datatype();
    let mut said = Vec::new();
    let mut put = |key: &str, value: MetadataValue| {
        said.push((format!("{ATTRIBUTE}{DATA}.{key}"), value));
    };
    put("grid_mapping", text(SPATIAL_REF));
    if !place.keys.is_empty() {
        let kind = if place.is_point { "Point" } else { "Area" };
        put("AREA_OR_POINT", text(kind));
    }
    for (number, name) in keys::TEXTS {
        if let Some(found) = directory.get(number).and_then(Tag::text) {
            put(name, text(&found));
        }
    }
    let metadata = directory.get(tag::GDAL_METADATA).and_then(Tag::text);
    for (role, key, nothing) in [
        ("scale", "scale_factor", 1.0),
        ("offset", "add_offset", 0.0),
    ] {
        let numbers = metadata.as_deref().map(|metadata| of_role(metadata, role));
        match numbers.as_deref() {
            None | Some([]) => {}
            Some([first, rest @ ..])
                if rest.len() as u64 + 1 == image.bands && rest.iter().all(|n| n == first) =>
            {
                if *first != nothing {
                    put(
                        key,
                        MetadataValue::new(Datatype::Float64, first.to_le_bytes().to_vec()),
                    );
                }
            }
            Some(_) => notes.push(format!(
                "bands have a {role} of their own, which is left out"
            )),
        }
    }
    for (number, key) in [
        (tag::COLOR_MAP, keys::COLOR_MAP),
        (tag::EXTRA_SAMPLES, keys::EXTRA_SAMPLES),
    ] {
        let numbers = directory.numbers(number);
        let numbers = numbers
            .map_err(|e| e.of(path.display()))?
            .unwrap_or_default();
        if numbers.iter().any(|number| *number != 0) {
            let bytes = numbers
                .iter()
                .flat_map(|number| (*number as u16).to_le_bytes());
            let value = MetadataValue::new(Datatype::UInt16, bytes.collect::<Vec<u8>>());
            put(key, value);
        }
    }
    let nodata = directory.get(tag::GDAL_NODATA).and_then(Tag::text);
    let fill = nodata
        .as_deref()
        .and_then(|nodata| fill_of(datatype, nodata));
    match (&nodata, &fill) {
        (_, Some(fill)) => put("_FillValue", MetadataValue::new(datatype, fill.clone())),
        (Some(nodata), None) => notes.push(format!(
            "the value for missing cells, {nodata}, is none of {datatype}, and left out"
        )),
        (None, None) => {}
    }
    let side = |chunk: u64, size: u64| {
        let side = match chunk {
            LEAST_SIDE.. if image.tiled => chunk,
            _ => chunk * (SIDE / chunk).max(1),
        };
        // Strips are as wide as the image.
        let side = if image.tiled { side } else { side.min(SIDE) };
        side.min(size).max(1)
    };
    let extents = [
        1,
        side(image.chunk.0, image.height),
        side(image.chunk.1, image.width),
    ];
    let shape = [image.bands, image.height, image.width];
    let mut own = Attribute::new(DATA, datatype, CellValNum::ONE)
        .filters(usual_filters(datatype, CellValNum::ONE));
    if let Some(fill) = &fill {
        own = own.fill_value(fill.clone());
    }
    let array = array(&["band", "y", "x"], &shape, &extents, own)?;
    let own = array.schema.attributes.first();
    let missing = fill.unwrap_or_else(|| vec![0; datatype.size()]);
    let cells = Raster {
        may_be_left_out: own.is_some_and(|own| own.fill_value == missing),
        image,
        path: path.to_owned(),
        extents: [extents[1], extents[2]],
        missing,
    };
    Ok(Variable {
        path: DATA.to_owned(),
        array,
        keys: said,
        cells: Box::new(cells),
    })
}

/// The numbers that GDAL's metadata say of bands by items of a role.
fn of_role(metadata: &str, role: &str) -> Vec<f64> {
    let mark = format!("role=\"{role}\"");
    let items = metadata.split("<Item").skip(1);
    let found = items.filter_map(|item| {
        let (head, rest) = item.split_once('>')?;
        let (text, _) = rest.split_once('<')?;
        head.contains(&mark)
            .then(|| text.trim().parse().ok())
            .flatten()
    });
    found.collect()
}

/// The value of a type that a text means; `None` if the type has no such value.
fn fill_of(datatype: Datatype, text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let whole = || {
        let parsed = text.parse::<i128>().ok();
        // Some writers say -9999.0 of whole numbers.
        parsed.or_else(|| {
            let real = text.parse::<f64>().ok()?;
            (real.fract() == 0.0 && real.abs() < 2f64.powi(63)).then_some(real as i128)
        })
    };
    let bytes = |size: usize, low: i128, high: i128| {
        let number = whole().filter(|n| (low..=high).contains(n))?;
        Some(number.to_le_bytes().get(..size)?.to_vec())
    };
    match datatype {
        Datatype::UInt8 => bytes(1, 0, u8::MAX.into()),
        Datatype::UInt16 => bytes(2, 0, u16::MAX.into()),
        Datatype::UInt32 => bytes(4, 0, u32::MAX.into()),
        Datatype::UInt64 => bytes(8, 0, u64::MAX.into()),
        Datatype::Int8 => bytes(1, i8::MIN.into(), i8::MAX.into()),
        Datatype::Int16 => bytes(2, i16::MIN.into(), i16::MAX.into()),
        Datatype::Int32 => bytes(4, i32::MIN.into(), i32::MAX.into()),
        Datatype::Int64 => bytes(8, i64::MIN.into(), i64::MAX.into()),
        Datatype::Float32 => {
            let real = text.parse::<f64>().ok()?;
            Some((real as f32).to_le_bytes().to_vec())
        }
        _ => Some(text.parse::<f64>().ok()?.to_le_bytes().to_vec()),
    }
}

/// The cells of an image.
#[derive(Debug)]
struct Raster {
    image: Image,
    path: PathBuf,
    /// Rows and columns of the array's tiles.
    extents: [u64; 2],
    /// What cells of chunks hold that are not in the file.
    missing: Vec<u8>,
    may_be_left_out: bool,
}

impl Raster {
    fn of<R>(&self, result: crate::geotiff::Result<R>) -> Result<R> {
        Ok(result.map_err(|e| e.of(self.path.display()))?)
    }

    /// Bands, rows and columns that are read at once: whole tiles of the array, about `most` bytes.
    fn steps(&self, most: u64) -> [u64; 3] {
        let size = self.image.sample.datatype().size() as u64;
        let [rows, columns] = self.extents;
        let tile = rows * columns * size;
        let times = |each: u64, all: u64| (most / each.max(1)).clamp(1, all.max(1));
        // All bands of a place, as they may lie side by side in the file; then its whole rows.
        let bands = times(tile, self.image.bands);
        let across = times(tile * bands, self.image.width.div_ceil(columns));
        let down = times(tile * bands * across, self.image.height.div_ceil(rows));
        [bands, rows * down, columns * across]
    }
}

impl CellSource for Raster {
    fn cells(&self) -> u64 {
        (self.image.bands * self.image.height).saturating_mul(self.image.width)
    }

    fn check(&self, session: &Session) -> Result<()> {
        let chunks = self.of(Chunks::new(&self.image, &self.path, budget(session)))?;
        let missing = (self.image.places.len() as u64).saturating_sub(chunks.there());
        let bytes = u128::from(missing) * self.image.chunk_bytes();
        match !self.may_be_left_out && bytes > u128::from(MOST_FILL) {
            true => self.of(Err(FileError::new(format!(
                "{missing} of its chunks are not there, and would have to be written"
            )))),
            false => Ok(()),
        }
    }

    fn each_box(&self, session: &Session, put: PutBox<'_>) -> Result<()> {
        let budget = budget(session);
        let mut chunks = self.of(Chunks::new(&self.image, &self.path, budget))?;
        let threads = session.context.threads();
        let column = ColumnType::new(DATA, self.image.sample.datatype());
        let [bands, rows, columns] = self.steps(budget / 2);
        let parts = |size: u64, step: u64| {
            (0..size.div_ceil(step)).map(move |at| (at * step, step.min(size - at * step)))
        };
        for rows in parts(self.image.height, rows) {
            for columns in parts(self.image.width, columns) {
                for bands in parts(self.image.bands, bands) {
                    interrupt::check()?;
                    let region = Region {
                        bands,
                        rows,
                        columns,
                    };
                    let read = || chunks.read(region, &self.missing, threads);
                    let cells = match self.of(session.context.install(read))? {
                        Some(cells) => cells,
                        // Cells that nobody wrote read as the fill value anyway.
                        None if self.may_be_left_out => continue,
                        None => self.missing.repeat(region.cells() as usize),
                    };
                    put(&[bands, rows, columns], fixed_column(column.clone(), cells))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_found_in_the_metadata() {
        let said = "<GDALMetadata>\n  <Item name=\"x\">role=\"scale\"</Item>\n  <Item name=\"SCALE\" sample=\"0\" role=\"scale\">0.5</Item><Item name=\"OFFSET\" sample=\"0\" role=\"offset\">-2</Item>";
        assert_eq!(of_role(said, "scale"), [0.5]);
        assert_eq!(of_role(said, "offset"), [-2.0]);
        assert_eq!(of_role("<Item role=\"scale\"", "scale"), [0.0; 0]);
    }

    #[test]
    fn values_for_missing_cells_are_of_the_type_or_none() {
        assert_eq!(
            fill_of(Datatype::Int16, "-9999").unwrap(),
            (-9999i16).to_le_bytes()
        );
        assert_eq!(
            fill_of(Datatype::Int32, " -9999.0 ").unwrap(),
            (-9999i32).to_le_bytes()
        );
        assert_eq!(
            fill_of(Datatype::UInt64, "18446744073709551615").unwrap(),
            [255; 8]
        );
        assert_eq!(
            fill_of(Datatype::Float32, "-3.4e38").unwrap(),
            (-3.4e38f32).to_le_bytes()
        );
        let nan = fill_of(Datatype::Float64, "nan").unwrap();
        assert!(f64::from_le_bytes(nan.try_into().unwrap()).is_nan());
        for (datatype, text) in [
            (Datatype::UInt8, "-9999"),
            (Datatype::UInt8, "256"),
            (Datatype::Int64, "1e40"),
            (Datatype::Int16, "0.5"),
            (Datatype::Float32, "none"),
        ] {
            assert_eq!(fill_of(datatype, text), None, "{text}");
        }
    }
}
