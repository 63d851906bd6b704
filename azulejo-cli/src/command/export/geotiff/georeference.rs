//! Where a raster lies, as far as a dataset says.

use super::column;
use crate::error::Result;
use crate::geotiff::{Georeference, beside, keys};
use azulejo::Array;
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::metadata::{Metadata, MetadataValue};
use azulejo::format::schema::Layout as CellLayout;
use azulejo::format::{CellValNum, Datatype};
use azulejo::read::ReadOptions;
use azulejo::space::{DimSelection, Subarray};

/// Coordinates that are looked at.
const MOST_COORDINATES: u64 = 1 << 26;
/// Coordinates are evenly spaced if none is further off than this part of a step.
const UNEVEN: f64 = 1e-3;

/// Values as reals; `None` for what are no numbers.
fn reals(datatype: Datatype, bytes: &[u8]) -> Option<Vec<f64>> {
    if !datatype.is_integer() && !datatype.is_real() {
        return None;
    }
    Some(dispatch!(datatype.physical(), T => bytes
        .chunks_exact(T::SIZE)
        .map(|value| T::read(value).as_f64())
        .collect()))
}

/// A key's number.
pub fn real(value: &MetadataValue) -> Option<f64> {
    reals(value.datatype, value.get(0)?)?.first().copied()
}

/// What the attributes of `spatial_ref` and of the raster's variable say, and the coordinate system that no
/// GeoTIFF can name.
pub fn of(spatial: &Metadata, own: &Metadata) -> (Georeference, Option<String>) {
    let text = |name: &str| spatial.get(name).and_then(MetadataValue::as_text);
    let numbers = |name: &str| {
        let found = spatial.get(name);
        found
            .and_then(|value| reals(value.datatype, &value.data))
            .unwrap_or_default()
    };
    let is_point = own.get("AREA_OR_POINT").and_then(MetadataValue::as_text) == Some("Point");
    let mut unnamed = None;
    let stored = spatial
        .get(keys::GEO_KEYS)
        .filter(|value| value.datatype == Datatype::UInt16);
    let mut place = match stored {
        Some(stored) => Georeference {
            keys: stored
                .data
                .as_chunks::<2>()
                .0
                .iter()
                .map(|b| u16::from_le_bytes(*b))
                .collect(),
            doubles: numbers(keys::GEO_DOUBLES),
            ascii: text(keys::GEO_ASCII).unwrap_or_default().to_owned(),
            is_point,
            ..Georeference::default()
        },
        None => {
            let said: Vec<&str> = ["crs_wkt", "spatial_ref"]
                .into_iter()
                .filter_map(text)
                .collect();
            let named = said
                .iter()
                .find_map(|text| Georeference::named(text, is_point));
            if named.is_none() {
                let written = said.iter().find(|text| beside::is_wkt(text));
                unnamed = written.or(said.first()).map(|text| (*text).to_owned());
            }
            named.unwrap_or_default()
        }
    };
    place.tiepoints = numbers(keys::TIEPOINTS);
    let transform = text("GeoTransform").map(|text| {
        let numbers = text.split_whitespace().map(str::parse::<f64>);
        numbers.collect::<Result<Vec<f64>, _>>().unwrap_or_default()
    });
    place.transform = transform.and_then(|numbers| numbers.try_into().ok());
    (place, unnamed)
}

/// First coordinate and step of a variable of evenly spaced numbers; a step of zero if there is only
/// one. `None` for others.
pub fn line_of(array: &Array) -> Result<Option<(f64, f64)>> {
    let schema = array.schema();
    let ([_], [attribute]) = (&schema.domain.dimensions[..], &schema.attributes[..]) else {
        return Ok(None);
    };
    let (Some(current), Some(axis)) = (
        array.current_domain().and_then(|c| c.ranges.first()),
        schema
            .domain
            .dimensions
            .first()
            .and_then(azulejo::format::schema::Dimension::axis),
    ) else {
        return Ok(None);
    };
    let size = axis
        .offsets_of(current)
        .map_or(0, |(first, last)| last - first + 1);
    if size == 0 || size > MOST_COORDINATES || attribute.cell_val_num != CellValNum::ONE {
        return Ok(None);
    }
    let options = ReadOptions::new()
        .subarray(Subarray::Box(vec![DimSelection::Ranges(vec![
            current.clone(),
        ])]))
        .fields([attribute.name.clone()])
        .layout(CellLayout::RowMajor);
    let bytes = column(array, options, size as usize * attribute.datatype.size())?;
    let Some(values) = reals(attribute.datatype, &bytes) else {
        return Ok(None);
    };
    let (Some(first), Some(last)) = (values.first(), values.last()) else {
        return Ok(None);
    };
    let step = match values.len() {
        1 => 0.0,
        n => (last - first) / (n - 1) as f64,
    };
    let close = |(at, value): (usize, &f64)| {
        (first + at as f64 * step - value).abs() <= UNEVEN * step.abs()
    };
    let even = values.iter().enumerate().all(close) && step.is_finite();
    Ok(even.then_some((*first, step)))
}
