//! The tags that say of a raster what its attributes do.

use super::Raster;
use super::georeference::real;
use crate::geotiff::{TagValue, keys, tag};
use azulejo::format::Datatype;
use azulejo::format::metadata::MetadataValue;
use std::collections::BTreeMap;

/// The tags of a raster of so many bands, besides those of its layout.
pub fn of(raster: &Raster, bands: u64) -> BTreeMap<u16, TagValue> {
    let datatype = raster.attribute.datatype;
    let mut tags = raster.place.tags();
    let text = |name: &str| raster.keys.get(name).and_then(MetadataValue::as_text);
    for (number, name) in keys::TEXTS {
        if let Some(found) = text(name) {
            tags.insert(number, TagValue::Ascii(found.to_owned()));
        }
    }
    if let Some(missing) = missing(raster) {
        let said = crate::value::text(datatype, &missing).to_lowercase();
        tags.insert(tag::GDAL_NODATA, TagValue::Ascii(said));
    }
    if !tags.contains_key(&tag::GDAL_METADATA)
        && let Some(said) = scale_and_offset(raster, bands)
    {
        tags.insert(tag::GDAL_METADATA, TagValue::Ascii(said));
    }
    tags.extend(colours(raster, bands));
    tags
}

/// The bytes of a missing cell.
fn missing(raster: &Raster) -> Option<Vec<u8>> {
    let (attribute, datatype) = (&raster.attribute, raster.attribute.datatype);
    match raster.keys.get("_FillValue") {
        Some(value) if value.datatype.size() == datatype.size() => Some(value.data.clone()),
        Some(_) => None,
        None => Some(attribute.fill_value.clone()).filter(|fill| *fill != datatype.default_fill()),
    }
}

/// Scale and offset as GDAL's metadata have them: for each band.
fn scale_and_offset(raster: &Raster, bands: u64) -> Option<String> {
    let number = |name: &str| raster.keys.get(name).and_then(real);
    let (scale, offset) = (number("scale_factor"), number("add_offset"));
    if scale.is_none() && offset.is_none() {
        return None;
    }
    let items = (0..bands).flat_map(|band| {
        [("OFFSET", "offset", offset), ("SCALE", "scale", scale)].map(|(name, role, value)| {
            value.map_or_else(String::new, |value| {
                format!(
                    "  <Item name=\"{name}\" sample=\"{band}\" role=\"{role}\">{value}</Item>\n"
                )
            })
        })
    });
    let items = items.collect::<String>();
    Some(format!("<GDALMetadata>\n{items}</GDALMetadata>\n"))
}

/// Whether bands are colours.
fn colours(raster: &Raster, bands: u64) -> BTreeMap<u16, TagValue> {
    let numbers = |name: &str| {
        let value = raster.keys.get(name)?;
        let numbers = value.data.as_chunks::<2>().0.iter();
        Some(
            numbers
                .map(|b| u16::from_le_bytes(*b))
                .collect::<Vec<u16>>(),
        )
    };
    match (numbers(keys::COLOR_MAP), raster.attribute.datatype, bands) {
        (Some(colours), Datatype::UInt8, 1) if colours.len() == 3 * 256 => BTreeMap::from([
            (tag::PHOTOMETRIC, TagValue::Short(vec![3])),
            (tag::COLOR_MAP, TagValue::Short(colours)),
        ]),
        (_, Datatype::UInt8, 3 | 4) => {
            // Most programs take three bands of bytes for colours.
            let extra = numbers(keys::EXTRA_SAMPLES).unwrap_or_default();
            let extra = match extra.len() as u64 == bands - 3 {
                true => extra,
                false => vec![0; bands as usize - 3],
            };
            BTreeMap::from([
                (tag::PHOTOMETRIC, TagValue::Short(vec![2])),
                (tag::EXTRA_SAMPLES, TagValue::Short(extra)),
            ])
        }
        _ => BTreeMap::new(),
    }
}
