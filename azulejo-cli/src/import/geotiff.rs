//! A GeoTIFF as a dataset: the variable `band_data` of bands, rows and columns, the coordinates
//! `band`, `y` and `x` of their middles, and `spatial_ref`, as xarray's engine `rasterio` has them.

mod coordinates;
mod raster;

use super::dataset::{ATTRIBUTE, Plan, SCALAR, Variable};
use crate::error::{CliError, FileError, Result};
use crate::geotiff::{Directory, Georeference, Image, beside, keys};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{ArraySchema, Attribute, Dimension, NewArray};
use azulejo::format::{CellValNum, Datatype, Range};
use azulejo::write::optimize::usual_offsets_filters;
use coordinates::{Coordinates, coordinate};
use std::fs::File;
use std::path::Path;

/// The name of the variable that says where the raster lies.
const SPATIAL_REF: &str = "spatial_ref";

/// What a file becomes.
pub fn plan(path: &Path) -> Result<Plan> {
    let about = |e: FileError| e.of(path.display());
    let mut file = File::open(path).map_err(|e| CliError::io("read", path, e))?;
    let (directory, more) = Directory::first(&mut file).map_err(about)?;
    let image = Image::new(&directory).map_err(about)?;
    let place = Georeference::new(&directory).map_err(about)?;
    let mut plan = Plan::default();
    if more > 0 {
        plan.notes.push(match more {
            1 => "another image in the file is left out".to_owned(),
            n => format!("{n} other images in the file are left out"),
        });
    }
    plan.groups.push((String::new(), Vec::new()));
    let (columns, rows) = (image.width, image.height);
    plan.variables
        .push(coordinate("band", (1.0, 1.0), image.bands, true)?);
    if place.is_upright() && (place.transform.is_some() || place.tiepoints.is_empty()) {
        for (name, along, count) in [("y", false, rows), ("x", true, columns)] {
            plan.variables
                .push(coordinate(name, place.axis(along), count, false)?);
        }
    } else {
        plan.notes.push(
            "x and y are no straight axes: they have no coordinates; the file's own numbers are kept"
                .to_owned(),
        );
    }
    let beside = beside::read(path).map_err(|e| CliError::io("read", &beside::path_of(path), e))?;
    let (spatial_ref, notes) = spatial_ref(&place, beside.as_deref())?;
    plan.notes.extend(notes);
    plan.variables.push(spatial_ref);
    plan.variables.push(raster::variable(
        &directory,
        image,
        &place,
        path,
        &mut plan.notes,
    )?);
    Ok(plan)
}

/// The variable that says where the raster lies; `beside` is the coordinate system beside the file.
fn spatial_ref(place: &Georeference, beside: Option<&str>) -> Result<(Variable, Vec<String>)> {
    let mut said = Vec::new();
    let mut notes = Vec::new();
    let mut put = |key: &str, value: MetadataValue| {
        said.push((format!("{ATTRIBUTE}{SPATIAL_REF}.{key}"), value));
    };
    let reals = |reals: &[f64]| {
        let bytes: Vec<u8> = reals.iter().flat_map(|real| real.to_le_bytes()).collect();
        MetadataValue::new(Datatype::Float64, bytes)
    };
    match (beside, place.epsg()) {
        (Some(wkt), _) => put(SPATIAL_REF, text(wkt)),
        (None, Some(code)) => put(SPATIAL_REF, text(&format!("EPSG:{code}"))),
        (None, None) if !place.keys.is_empty() => notes.push(
            "its coordinate system has no EPSG code: its keys are kept, without a name".to_owned(),
        ),
        (None, None) => {}
    }
    if let Some(transform) = place.transform {
        let numbers: Vec<String> = transform.iter().map(|n| format!("{n:?}")).collect();
        put("GeoTransform", text(&numbers.join(" ")));
    }
    // What stands beside the file comes before its own keys.
    let keeps_keys = beside.is_none();
    if keeps_keys && !place.keys.is_empty() {
        let bytes: Vec<u8> = place
            .keys
            .iter()
            .flat_map(|key| key.to_le_bytes())
            .collect();
        put(keys::GEO_KEYS, MetadataValue::new(Datatype::UInt16, bytes));
    }
    if keeps_keys && !place.doubles.is_empty() {
        put(keys::GEO_DOUBLES, reals(&place.doubles));
    }
    if keeps_keys && !place.ascii.is_empty() {
        put(keys::GEO_ASCII, text(&place.ascii));
    }
    if !place.tiepoints.is_empty() {
        put(keys::TIEPOINTS, reals(&place.tiepoints));
    }
    let own = Attribute::new(SPATIAL_REF, Datatype::Int64, CellValNum::ONE);
    let array = ArraySchema::dense()
        .dimension_with(Dimension::new(SCALAR, 0i64..=0).tile_extent(1i64))
        .attribute_with(own)
        .current_domain(vec![Range::of(0i64, 0i64)])
        .build();
    let array = array.map_err(|e| CliError::Format(e.to_string()))?;
    let cells = Coordinates {
        attribute: SPATIAL_REF.to_owned(),
        line: (0.0, 0.0),
        count: 1,
        whole: true,
    };
    let variable = Variable {
        path: SPATIAL_REF.to_owned(),
        array,
        keys: said,
        cells: Box::new(cells),
    };
    Ok((variable, notes))
}

fn text(text: &str) -> MetadataValue {
    MetadataValue::new(Datatype::StringUtf8, text)
}

/// A dense array that can grow.
fn array(dims: &[&str], shape: &[u64], extents: &[u64], own: Attribute) -> Result<NewArray> {
    let mut builder = ArraySchema::dense().offsets_filters(usual_offsets_filters());
    let mut current = Vec::new();
    for ((dim, size), extent) in dims.iter().zip(shape).zip(extents) {
        // Sides of images are below 2^31.
        let (size, extent) = (*size as i64, *extent as i64);
        let dimension = Dimension::new(*dim, 0i64..=i64::MAX - 2 * extent);
        builder = builder.dimension_with(dimension.tile_extent(extent));
        current.push(Range::of(0i64, size - 1));
    }
    let array = builder.attribute_with(own).current_domain(current).build();
    array.map_err(|e| CliError::Format(e.to_string()))
}
