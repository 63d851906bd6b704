//! A GeoTIFF of a dense array of rows and columns, with bands before them or without; of a group, of
//! the variable that is one, with the coordinates and the `spatial_ref` beside it.

use super::place::Place;
use crate::args::ExportArgs;
use crate::error::{CliError, Result};
use crate::geotiff::{Georeference, Layout, TagValue, Writer, tag};
use crate::import::dataset::{ATTRIBUTE, budget};
use crate::import::geotiff as keys_of;
use crate::interrupt;
use crate::output::out::Packing;
use crate::picture::only_column;
use crate::session::Session;
use azulejo::format::metadata::{Metadata, MetadataValue};
use azulejo::format::schema::{Attribute, Layout as CellLayout, TileAxis};
use azulejo::format::{CellValNum, Datatype, Physical, Range};
use azulejo::group::ObjectType;
use azulejo::read::ReadOptions;
use azulejo::space::{DimSelection, Subarray};
use azulejo::{Array, ColumnSet};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};

/// Rows and columns of tiles, unless the raster is smaller.
const TILE: u64 = 256;
/// Coordinates that are looked at.
const MOST_COORDINATES: u64 = 1 << 26;
/// Coordinates are evenly spaced if none is further off than this part of a step.
const UNEVEN: f64 = 1e-3;

/// What is exported.
struct Raster {
    array: Array,
    attribute: Attribute,
    /// The attributes of the variable.
    keys: Metadata,
    /// Bands (if there are any), rows, columns: first coordinate and number.
    axes: Vec<(TileAxis, u64, u64)>,
    place: Georeference,
}

/// Writes the file; the number of cells.
pub fn write(
    session: &Session,
    args: &ExportArgs,
    place: &Place,
    packing: Option<Packing>,
) -> Result<u64> {
    let cells = &args.selection.cells;
    let part = cells.condition.is_some() || cells.points.is_some() || !cells.range.is_empty();
    let part = part || !cells.step.is_empty() || !cells.nearest.is_empty();
    if part || args.selection.limit.is_some() || args.skip_damaged {
        return Err(CliError::usage(
            "a GeoTIFF holds all cells: it has no selection",
        ));
    }
    let raster = Raster::find(session, args)?;
    let layout = raster.layout()?;
    let tags = raster.tags(session, layout.bands)?;
    // Where its tiles lie is known last and stands first.
    let failed = |e| CliError::io("write", &args.file, e);
    let beside = tempfile::tempfile().map_err(failed)?;
    let out = BufWriter::with_capacity(1 << 20, beside);
    let mut writer = Writer::new(out, layout).map_err(failed)?;
    raster.each_row(session, layout, |tiles| {
        let stored = session.context.install(|| {
            let stored = tiles.into_par_iter().map(|tile| layout.encode(tile));
            stored.collect::<std::io::Result<Vec<_>>>()
        });
        for tile in stored.map_err(failed)? {
            writer.tile(&tile).map_err(failed)?;
        }
        Ok(())
    })?;
    let out = writer.finish(tags).map_err(failed)?;
    let mut beside = out.into_inner().map_err(|e| failed(e.into_error()))?;
    beside.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut whole = place.out(packing)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        interrupt::check()?;
        match beside.read(&mut buffer).map_err(failed)? {
            0 => break,
            n => whole.write_all(buffer.get(..n).unwrap_or_default())?,
        }
    }
    whole.flush()?;
    whole.finish()?;
    Ok(layout.bands * layout.height * layout.width)
}

impl Raster {
    fn find(session: &Session, args: &ExportArgs) -> Result<Self> {
        let wished = args.selection.attrs.as_deref();
        let wanted = |name: &str| wished.is_none_or(|wished| wished.iter().any(|w| w == name));
        let uri = &args.uri;
        if session.context.object(uri).object_type()? != Some(ObjectType::Group) {
            let array = session.open(uri, &args.time)?;
            let found = candidates(&array).into_iter().filter(|a| wanted(&a.name));
            let attribute = only(uri, found.map(|a| (a.name.clone(), a)).collect())?;
            return Self::new(array, attribute, &BTreeMap::new());
        }
        let group = session
            .context
            .group(uri)
            .open_at(args.time.range(&session.context, uri)?)?;
        let (mut members, mut found) = (BTreeMap::new(), Vec::new());
        for member in group.members() {
            if member.object_type == Some(ObjectType::Group) {
                continue;
            }
            let array = session.open(&member.location, &args.time)?;
            for attribute in candidates(&array) {
                if wanted(member.key()) || wanted(&attribute.name) {
                    found.push((member.key().to_owned(), (array.clone(), attribute)));
                }
            }
            members.insert(member.key().to_owned(), array);
        }
        let (array, attribute) = only(uri, found)?;
        Self::new(array, attribute, &members)
    }

    fn new(array: Array, attribute: Attribute, members: &BTreeMap<String, Array>) -> Result<Self> {
        let keys = attributes(&array, &attribute.name)?;
        let written = array.non_empty_domain()?;
        let mut axes = Vec::new();
        for (at, dimension) in array.schema().domain.dimensions.iter().enumerate() {
            let none = || CliError::usage(format!("dimension {:?} has no range", dimension.name));
            let axis = dimension.axis().ok_or_else(none)?;
            let range = |all: Option<&azulejo::format::NdRectangle>| {
                let range = all.and_then(|all| all.ranges.get(at));
                range.and_then(|range| axis.offsets_of(range))
            };
            let current = range(array.current_domain());
            let (first, last) = current
                .or_else(|| range(written.as_ref()))
                .ok_or_else(none)?;
            axes.push((axis, first, last - first + 1));
        }
        let spatial = keys.get("grid_mapping").and_then(MetadataValue::as_text);
        let spatial = spatial.unwrap_or("spatial_ref").to_owned();
        let spatial = match members.get(&spatial) {
            Some(member) => attributes(member, &spatial)?,
            None => Metadata::new(),
        };
        let mut place = georeference(&spatial, &keys);
        let dimensions = &array.schema().domain.dimensions;
        let names: Vec<&str> = dimensions.iter().rev().map(|d| d.name.as_str()).collect();
        let line = |name: Option<&&str>| match name.and_then(|name| members.get(*name)) {
            Some(member) => line_of(member),
            None => Ok(None),
        };
        let (x, y) = (line(names.first())?, line(names.get(1))?);
        place.settle(x, y);
        Ok(Self {
            array,
            attribute,
            keys,
            axes,
            place,
        })
    }

    fn layout(&self) -> Result<Layout> {
        let mut axes = self.axes.iter().rev().map(|(_, _, size)| *size);
        let (width, height) = (axes.next().unwrap_or(1), axes.next().unwrap_or(1));
        let bands = axes.next().unwrap_or(1);
        if width > i32::MAX as u64 || height > i32::MAX as u64 || bands > u16::MAX.into() {
            return Err(CliError::usage(format!(
                "{bands} bands of {height} rows and {width} columns are more than a TIFF holds"
            )));
        }
        let datatype = self.attribute.datatype;
        let format = match datatype.physical() {
            Physical::U8 | Physical::U16 | Physical::U32 | Physical::U64 => 1,
            Physical::I8 | Physical::I16 | Physical::I32 | Physical::I64 => 2,
            Physical::F32 | Physical::F64 => 3,
        };
        let tile = width.max(height).next_multiple_of(16).min(TILE);
        let size = datatype.size();
        Ok(Layout {
            height,
            width,
            bands,
            size,
            format,
            tile,
        })
    }

    /// Gives the tiles of each row of tiles (of parts of it, where it is long), band after band.
    fn each_row(
        &self,
        session: &Session,
        layout: Layout,
        mut put: impl FnMut(Vec<Vec<u8>>) -> Result<()>,
    ) -> Result<()> {
        let (down, across) = layout.grid();
        let most = (budget(session) / 4) as usize / layout.tile_bytes().max(1);
        let at_once = (most as u64).clamp(1, across.max(1));
        let cells = layout.bands * layout.height * layout.width;
        let progress = session.progress(Some(cells));
        let mut done = 0;
        for band in 0..layout.bands {
            for row in 0..down {
                let first = row * layout.tile;
                let rows = (first, layout.tile.min(layout.height - first));
                for part in 0..across.div_ceil(at_once) {
                    interrupt::check()?;
                    let first = part * at_once * layout.tile;
                    let columns = (first, (at_once * layout.tile).min(layout.width - first));
                    let cells = self.read([(band, 1), rows, columns])?;
                    put(tiles(&cells, layout, rows.1, columns.1))?;
                    done += rows.1 * columns.1;
                    progress.advance(done, cells.len() as u64, "exporting");
                }
            }
        }
        Ok(())
    }

    /// The cells of a box, row by row.
    fn read(&self, part: [(u64, u64); 3]) -> Result<Vec<u8>> {
        let part = part.get(3 - self.axes.len()..).unwrap_or_default();
        let ranges = self
            .axes
            .iter()
            .zip(part)
            .map(|((axis, low, _), (first, size))| {
                let first = low + first;
                let range = Range::new(axis.coordinate(first), axis.coordinate(first + size - 1));
                DimSelection::Ranges(vec![range])
            });
        let options = ReadOptions::new()
            .subarray(Subarray::Box(ranges.collect()))
            .fields([self.attribute.name.clone()])
            .layout(CellLayout::RowMajor);
        let expected = part.iter().map(|(_, n)| *n as usize).product::<usize>();
        column(
            &self.array,
            options,
            expected * self.attribute.datatype.size(),
        )
    }

    fn tags(&self, session: &Session, bands: u64) -> Result<BTreeMap<u16, TagValue>> {
        let mut tags = self.place.tags();
        let text = |name: &str| self.keys.get(name).and_then(MetadataValue::as_text);
        for (number, name) in keys_of::TEXTS {
            if let Some(found) = text(name) {
                tags.insert(number, TagValue::Ascii(found.to_owned()));
            }
        }
        let datatype = self.attribute.datatype;
        let missing = match self.keys.get("_FillValue") {
            Some(value) if value.datatype.size() == datatype.size() => Some(value.data.clone()),
            Some(_) => None,
            None => {
                Some(self.attribute.fill_value.clone()).filter(|f| *f != datatype.default_fill())
            }
        };
        if let Some(missing) = missing {
            let said = crate::value::text(datatype, &missing).to_lowercase();
            tags.insert(tag::GDAL_NODATA, TagValue::Ascii(said));
        }
        let number = |name: &str| self.keys.get(name).and_then(real_of);
        let (scale, offset) = (number("scale_factor"), number("add_offset"));
        if !tags.contains_key(&tag::GDAL_METADATA) && (scale.is_some() || offset.is_some()) {
            let items = (0..bands).flat_map(|band| {
                [("OFFSET", "offset", offset), ("SCALE", "scale", scale)].map(|(name, role, value)| {
                    value.map_or_else(String::new, |value| {
                        format!("  <Item name=\"{name}\" sample=\"{band}\" role=\"{role}\">{value}</Item>\n")
                    })
                })
            });
            let said = format!(
                "<GDALMetadata>\n{}</GDALMetadata>\n",
                items.collect::<String>()
            );
            tags.insert(tag::GDAL_METADATA, TagValue::Ascii(said));
        }
        let numbers = |name: &str| {
            let value = self.keys.get(name)?;
            let numbers = value.data.as_chunks::<2>().0.iter();
            Some(
                numbers
                    .map(|b| u16::from_le_bytes(*b))
                    .collect::<Vec<u16>>(),
            )
        };
        match (numbers(keys_of::COLOR_MAP), datatype, bands) {
            (Some(colours), Datatype::UInt8, 1) if colours.len() == 3 * 256 => {
                tags.insert(tag::PHOTOMETRIC, TagValue::Short(vec![3]));
                tags.insert(tag::COLOR_MAP, TagValue::Short(colours));
            }
            (_, Datatype::UInt8, 3 | 4) => {
                // Most programs take three bands of bytes for colours.
                tags.insert(tag::PHOTOMETRIC, TagValue::Short(vec![2]));
                let extra = numbers(keys_of::EXTRA_SAMPLES).unwrap_or_default();
                let extra = match extra.len() as u64 == bands - 3 {
                    true => extra,
                    false => vec![0; bands as usize - 3],
                };
                tags.insert(tag::EXTRA_SAMPLES, TagValue::Short(extra));
            }
            _ => {}
        }
        if self.place.transform.is_none() && self.place.tiepoints.is_empty() {
            session.output.note(
                "there are no evenly spaced coordinates: the file does not say where it lies",
            );
        }
        Ok(tags)
    }
}

/// The one that is meant.
fn only<T>(uri: &str, found: Vec<(String, T)>) -> Result<T> {
    let names: Vec<String> = found.iter().map(|(name, _)| name.clone()).collect();
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some((_, one)), None) => Ok(one),
        (None, _) => Err(CliError::usage(format!(
            "{uri}: there is no dense array of rows and columns of numbers, with or without bands before them"
        ))),
        (Some(_), Some(_)) => Err(CliError::usage(format!(
            "GeoTIFF takes one variable; choose it with --attrs: {}",
            names.join(", ")
        ))),
    }
}

/// Attributes that can be exported.
fn candidates(array: &Array) -> Vec<Attribute> {
    let schema = array.schema();
    if !schema.is_dense() || !matches!(schema.domain.dimensions.len(), 2 | 3) {
        return Vec::new();
    }
    let plain = |a: &&Attribute| {
        let number = (a.datatype.is_integer() || a.datatype.is_real()) && a.enumeration.is_none();
        number && a.cell_val_num == CellValNum::ONE && !a.nullable
    };
    schema.attributes.iter().filter(plain).cloned().collect()
}

/// The attributes of a variable.
fn attributes(array: &Array, name: &str) -> Result<Metadata> {
    let prefix = format!("{ATTRIBUTE}{name}.");
    let keys = array.metadata()?.iter();
    let own = keys.filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?, value)));
    Ok(own
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect())
}

/// A key's number.
fn real_of(value: &MetadataValue) -> Option<f64> {
    let bytes = value.get(0)?;
    match value.datatype {
        Datatype::Float64 => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
        Datatype::Float32 => Some(f32::from_le_bytes(bytes.try_into().ok()?).into()),
        Datatype::Int64 => Some(i64::from_le_bytes(bytes.try_into().ok()?) as f64),
        _ => None,
    }
}

/// Where a raster lies, as far as its keys say.
fn georeference(spatial: &Metadata, own: &Metadata) -> Georeference {
    let text = |name: &str| spatial.get(name).and_then(MetadataValue::as_text);
    let reals = |name: &str| {
        let found = spatial
            .get(name)
            .filter(|value| value.datatype == Datatype::Float64);
        let numbers = found.map(|value| value.data.as_chunks::<8>().0.iter());
        numbers.map_or_else(Vec::new, |all| {
            all.map(|b| f64::from_le_bytes(*b)).collect()
        })
    };
    let is_point = own.get("AREA_OR_POINT").and_then(MetadataValue::as_text) == Some("Point");
    let keys = spatial
        .get(keys_of::GEO_KEYS)
        .filter(|v| v.datatype == Datatype::UInt16);
    let mut place = match keys {
        Some(keys) => Georeference {
            keys: keys
                .data
                .as_chunks::<2>()
                .0
                .iter()
                .map(|b| u16::from_le_bytes(*b))
                .collect(),
            doubles: reals(keys_of::GEO_DOUBLES),
            ascii: text(keys_of::GEO_ASCII).unwrap_or_default().to_owned(),
            is_point,
            ..Georeference::default()
        },
        None => {
            let named = ["crs_wkt", "spatial_ref"].into_iter().filter_map(text);
            let mut named = named.filter_map(|text| Georeference::named(text, is_point));
            named.next().unwrap_or_default()
        }
    };
    place.tiepoints = reals(keys_of::TIEPOINTS);
    let numbers = text("GeoTransform").map(|text| {
        let numbers = text.split_whitespace().map(str::parse::<f64>);
        numbers.collect::<Result<Vec<f64>, _>>().unwrap_or_default()
    });
    place.transform = numbers.and_then(|numbers| numbers.try_into().ok());
    place
}

/// First coordinate and step of a variable of evenly spaced numbers; a step of zero if there is only
/// one. `None` for others.
fn line_of(array: &Array) -> Result<Option<(f64, f64)>> {
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
    let values: Vec<f64> = match attribute.datatype {
        Datatype::Float64 => bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|b| f64::from_le_bytes(*b))
            .collect(),
        Datatype::Float32 => bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| f32::from_le_bytes(*b).into())
            .collect(),
        Datatype::Int64 => bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|b| i64::from_le_bytes(*b) as f64)
            .collect(),
        Datatype::Int32 => bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| i32::from_le_bytes(*b).into())
            .collect(),
        _ => return Ok(None),
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

/// All cells that a query gives, `size` bytes.
fn column(array: &Array, options: ReadOptions, size: usize) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(size);
    for batch in array.read(options)? {
        let batch: ColumnSet = batch?;
        out.extend_from_slice(&only_column(batch)?.data);
    }
    match out.len() == size {
        true => Ok(out),
        false => Err(CliError::Format(format!(
            "the read gave {} bytes instead of {size}",
            out.len()
        ))),
    }
}

/// Rows of cells cut into tiles, which are filled up with zeros.
fn tiles(cells: &[u8], layout: Layout, rows: u64, columns: u64) -> Vec<Vec<u8>> {
    let row = (columns as usize) * layout.size;
    let tile_row = layout.tile as usize * layout.size;
    let count = columns.div_ceil(layout.tile) as usize;
    let mut out = vec![vec![0; layout.tile_bytes()]; count];
    for (at, row) in cells
        .chunks_exact(row.max(1))
        .take(rows as usize)
        .enumerate()
    {
        for (tile, part) in out.iter_mut().zip(row.chunks(tile_row.max(1))) {
            let from = at * tile_row;
            if let Some(place) = tile.get_mut(from..from + part.len()) {
                place.copy_from_slice(part);
            }
        }
    }
    out
}
