//! A dense array as virtual Zarr, version 3: metadata and chunks as they are asked for.
//!
//! The root is a group with the array's key-values; each attribute of one number a cell is a Zarr
//! array in it. Index 0 of each axis is the low end of the domain, or of the current domain where
//! there is one. A space tile is a chunk; of large tiles, a part.

use super::Answer;
use super::files::refusal;
use crate::error::{CliError, Result};
use crate::import::dataset::EMPTY_DIMS;
use crate::output::drawing::base64;
use crate::value;
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::schema::{Attribute, Enumeration, TileAxis};
use azulejo::format::{CellValNum, Datatype, Physical, Range};
use azulejo::json::{number_json, value_json};
use azulejo::space::DimSelection;
use azulejo::{Array, ReadOptions, Subarray};
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a chunk, about: readers want many small ones rather than a few large ones.
const CHUNK_BYTES: u64 = 4 << 20;
/// Coordinates that readers of JSON count exactly.
const MOST_COORDINATES: u64 = 1 << 53;

/// An array as Zarr.
#[derive(Debug)]
pub struct ZarrView {
    array: Array,
    axes: Vec<Axis>,
    /// The labels of attributes that have some, by the attribute's name.
    labels: BTreeMap<String, Arc<Enumeration>>,
    /// Attributes that can be null, of whose cells some have the value that stands for null.
    mistaken: Mutex<BTreeSet<String>>,
}

/// Part of a dimension, cut into chunks.
#[derive(Debug)]
struct Axis {
    name: String,
    tiles: TileAxis,
    /// The offset in the domain of index 0.
    first: u64,
    /// Coordinates.
    size: u64,
    /// Coordinates of a chunk.
    chunk: u64,
}

impl ZarrView {
    /// The view of a dense array.
    ///
    /// # Errors
    /// A sparse array, or one of more coordinates than Zarr's readers can count, of which nothing
    /// was written.
    pub fn new(array: Array) -> Result<Self> {
        if !array.schema().is_dense() {
            return Err(CliError::usage(format!(
                "{} is sparse, and only dense arrays can be shown as Zarr",
                array.uri()
            )));
        }
        let written = array.non_empty_domain()?;
        let current = array.current_domain();
        let empty = array.metadata()?.get(EMPTY_DIMS);
        let empty = empty
            .filter(|_| written.is_none())
            .and_then(|value| value.as_text());
        let empty: Vec<&str> = empty.unwrap_or_default().split(';').collect();
        let mut axes = Vec::new();
        for (i, dimension) in array.schema().domain.dimensions.iter().enumerate() {
            let none = || CliError::usage(format!("dimension {:?} has no range", dimension.name));
            let tiles = dimension.axis().ok_or_else(none)?;
            let (mut first, mut last) = match current.and_then(|c| c.ranges.get(i)) {
                Some(range) => tiles.offsets_of(range).ok_or_else(none)?,
                None => (0, tiles.last_offset()),
            };
            if last - first >= MOST_COORDINATES {
                let range = written.as_ref().and_then(|w| w.ranges.get(i));
                let range = range.and_then(|range| tiles.offsets_of(range)).ok_or_else(|| {
                    CliError::usage(format!(
                        "dimension {:?} has more coordinates than Zarr's readers count, and nothing was written",
                        dimension.name
                    ))
                })?;
                // It begins with a whole tile, so that chunks are tiles.
                let tile = tiles.tile_start(tiles.tile_of(range.0)).unwrap_or(range.0);
                (first, last) = (first.max(tile), range.1);
            }
            // No domain can say that there are no coordinates yet.
            let size = match empty.contains(&dimension.name.as_str()) {
                true => 0,
                false => last - first + 1,
            };
            let tile = u64::try_from(tiles.extent()).unwrap_or(u64::MAX);
            axes.push(Axis {
                name: dimension.name.clone(),
                tiles,
                first,
                size,
                chunk: tile.min(size.max(1)),
            });
        }
        cut(&mut axes);
        let mut labels = BTreeMap::new();
        for attribute in &array.schema().attributes {
            if let Some(name) = &attribute.enumeration {
                labels.insert(attribute.name.clone(), array.enumeration(name)?);
            }
        }
        Ok(Self {
            array,
            axes,
            labels,
            mistaken: Mutex::default(),
        })
    }

    /// The attributes whose nulls cannot be told from values in the chunks that were asked for.
    pub fn mistaken(&self) -> Vec<String> {
        let mistaken = self.mistaken.lock().unwrap_or_else(PoisonError::into_inner);
        mistaken.iter().cloned().collect()
    }

    /// The attributes whose cells are indices of labels.
    pub fn labelled(&self) -> impl Iterator<Item = &str> {
        self.labels.keys().map(String::as_str)
    }

    /// What lies under a key such as `zarr.json`, `a/zarr.json` or `a/c/0/1`.
    pub fn answer(&self, key: &[String]) -> Answer {
        let parts: Vec<&str> = key.iter().map(String::as_str).collect();
        let found = match parts.as_slice() {
            ["zarr.json"] => self.group().map(Some),
            [name, "zarr.json"] => Ok(self.attribute(name).map(|(a, kind)| self.metadata(a, kind))),
            [name, "c", index @ ..] => self.chunk(name, index),
            _ => Ok(None),
        };
        match found {
            Ok(Some(answer)) => answer,
            Ok(None) => Answer::error(404, "there is no such key"),
            Err(error) => refusal(&error),
        }
        // Readers such as neuroglancer come from pages of their own; the token is in the URL.
        .with("Access-Control-Allow-Origin", "*")
    }

    /// The Zarr arrays: names and types.
    pub fn arrays(&self) -> impl Iterator<Item = (String, &'static str)> {
        let attributes = self.array.schema().attributes.iter();
        attributes.filter_map(|attribute| Some((name_of(attribute), data_type(attribute)?)))
    }

    fn attribute(&self, name: &str) -> Option<(&Attribute, &'static str)> {
        let mut attributes = self.array.schema().attributes.iter();
        let attribute = attributes.find(|attribute| name_of(attribute) == name)?;
        Some((attribute, data_type(attribute)?))
    }

    fn group(&self) -> azulejo::Result<Answer> {
        let mut attributes = Map::new();
        for (key, value) in self.array.metadata()? {
            let shape = match value.count() {
                1 => CellValNum::ONE,
                _ => CellValNum::Var,
            };
            attributes.insert(key.clone(), value_json(value.datatype, shape, &value.data));
        }
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
        Ok(Answer::file(
            "application/json",
            group.to_string().into_bytes(),
        ))
    }

    fn metadata(&self, attribute: &Attribute, data_type: &'static str) -> Answer {
        let along = |value: fn(&Axis) -> Json| self.axes.iter().map(value).collect::<Json>();
        let bytes = match attribute.datatype.size() {
            1 => json!({"name": "bytes"}),
            _ => json!({"name": "bytes", "configuration": {"endian": "little"}}),
        };
        let mut attributes = json!({
            "tiledb_datatype": attribute.datatype.name(),
            "tiledb_origin": along(Axis::origin),
        });
        if let Some(units) = cf_units(attribute.datatype) {
            attributes["units"] = units.into();
            attributes["calendar"] = "proleptic_gregorian".into();
        }
        let fill = fill_value(attribute);
        if attribute.nullable {
            attributes["_FillValue"] = match attribute.datatype.is_real() {
                true => base64(&real_bytes(&attribute.fill_value)).into(),
                false => fill.clone(),
            };
        }
        if let Some(labels) = self.labels.get(&attribute.name) {
            attributes["flag_values"] = (0..labels.len()).collect();
            attributes["flag_meanings"] = meanings(labels).into();
        }
        let metadata = json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": along(|axis| axis.size.into()),
            "data_type": data_type,
            "chunk_grid": {
                "name": "regular",
                "configuration": {"chunk_shape": along(|axis| axis.chunk.into())},
            },
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": fill,
            "codecs": [bytes],
            "dimension_names": along(|axis| axis.name.as_str().into()),
            "attributes": attributes,
        });
        Answer::file("application/json", metadata.to_string().into_bytes())
    }

    /// The cells of a chunk, row by row; those outside the array have the fill value.
    fn chunk(&self, name: &str, index: &[&str]) -> azulejo::Result<Option<Answer>> {
        let Some((attribute, _)) = self.attribute(name) else {
            return Ok(None);
        };
        let number = |text: &&str| text.parse::<u64>().ok();
        let index: Option<Vec<u64>> = index.iter().map(number).collect();
        let Some(places) = index.and_then(|index| self.places(&index)) else {
            return Ok(None);
        };
        let range = |(axis, (start, cells)): (&Axis, &(u64, u64))| {
            let [low, high] = [*start, start + cells - 1];
            let range = Range::new(axis.tiles.coordinate(low), axis.tiles.coordinate(high));
            DimSelection::Ranges(vec![range])
        };
        let subarray = Subarray::Box(self.axes.iter().zip(&places).map(range).collect());
        let options = ReadOptions::new()
            .subarray(subarray)
            .fields([attribute.name.as_str()]);
        let cells = self.array.read(options)?.read_all()?;
        let Some(column) = cells.columns.into_iter().next() else {
            return Ok(None);
        };
        let size = attribute.datatype.size();
        let mut data = column.data.to_vec();
        let mut alike = false;
        for (cell, valid) in data
            .chunks_exact_mut(size)
            .zip(column.validity.iter().flat_map(|v| v.iter()))
        {
            if *valid == 0 {
                cell.copy_from_slice(&attribute.fill_value);
            } else {
                alike |= cell == attribute.fill_value;
            }
        }
        // Whoever reads reals takes NaN for nothing anyway.
        if alike && !is_nan(attribute) {
            let mut mistaken = self.mistaken.lock().unwrap_or_else(PoisonError::into_inner);
            mistaken.insert(attribute.name.clone());
        }
        let have: Vec<u64> = places.iter().map(|(_, cells)| *cells).collect();
        let want: Vec<u64> = self.axes.iter().map(|axis| axis.chunk).collect();
        let body = pad(data, &attribute.fill_value, &have, &want);
        Ok(Some(Answer::file("application/octet-stream", body)))
    }

    /// First offset and number of coordinates of a chunk along each axis, if there is such a chunk.
    fn places(&self, index: &[u64]) -> Option<Vec<(u64, u64)>> {
        if index.len() != self.axes.len() {
            return None;
        }
        let place = |(axis, at): (&Axis, &u64)| {
            let start = at.checked_mul(axis.chunk)?;
            let rest = axis.size.checked_sub(start).filter(|rest| *rest > 0)?;
            Some((axis.first + start, rest.min(axis.chunk)))
        };
        self.axes.iter().zip(index).map(place).collect()
    }
}

impl Axis {
    /// The coordinate that index 0 stands for.
    fn origin(&self) -> Json {
        number_json(self.tiles.physical(), &self.tiles.coordinate(self.first))
    }
}

/// Halves chunks along the first axes until they are small enough.
fn cut(axes: &mut [Axis]) {
    let bytes = |axes: &[Axis]| {
        let cells = axes.iter().map(|axis| axis.chunk);
        cells.fold(8u64, u64::saturating_mul)
    };
    for i in 0..axes.len() {
        while bytes(axes) > CHUNK_BYTES
            && let Some(axis) = axes.get_mut(i)
            && axis.chunk > 1
        {
            axis.chunk = axis.chunk.div_ceil(2);
        }
    }
}

/// Attributes may have no name, keys must.
fn name_of(attribute: &Attribute) -> String {
    match attribute.name.as_str() {
        "" => "_".to_owned(),
        name => name.to_owned(),
    }
}

/// Zarr's type of an attribute, if it has one: datetimes are their ticks.
fn data_type(attribute: &Attribute) -> Option<&'static str> {
    let datatype = attribute.datatype;
    if attribute.cell_val_num != CellValNum::ONE || datatype.is_string() || datatype.is_opaque() {
        return None;
    }
    Some(match (datatype, datatype.physical()) {
        (Datatype::Bool, _) => "bool",
        (_, Physical::I8) => "int8",
        (_, Physical::U8) => "uint8",
        (_, Physical::I16) => "int16",
        (_, Physical::U16) => "uint16",
        (_, Physical::I32) => "int32",
        (_, Physical::U32) => "uint32",
        (_, Physical::I64) => "int64",
        (_, Physical::U64) => "uint64",
        (_, Physical::F32) => "float32",
        (_, Physical::F64) => "float64",
    })
}

/// What makes ticks moments again for readers that know the CF conventions, xarray among them; those
/// know no ticks as long as a month, nor shorter than a nanosecond.
fn cf_units(datatype: Datatype) -> Option<&'static str> {
    Some(match datatype {
        Datatype::DateTimeDay => "days since 1970-01-01",
        Datatype::DateTimeHour => "hours since 1970-01-01",
        Datatype::DateTimeMinute => "minutes since 1970-01-01",
        Datatype::DateTimeSecond => "seconds since 1970-01-01",
        Datatype::DateTimeMilli => "milliseconds since 1970-01-01",
        Datatype::DateTimeMicro => "microseconds since 1970-01-01",
        Datatype::DateTimeNano => "nanoseconds since 1970-01-01",
        _ => return None,
    })
}

fn fill_value(attribute: &Attribute) -> Json {
    let value = number_json(attribute.datatype.physical(), &attribute.fill_value);
    match (attribute.datatype, value.as_str()) {
        (Datatype::Bool, _) => (value != json!(0)).into(),
        (_, Some("inf")) => "Infinity".into(),
        (_, Some("-inf")) => "-Infinity".into(),
        _ => value,
    }
}

/// Labels as the CF conventions write them: between blanks, of which they have none themselves.
fn meanings(labels: &Enumeration) -> String {
    let labels = labels.values().map(|label| {
        let words = value::text(labels.datatype, label);
        match words.is_empty() {
            true => "_".to_owned(),
            false => words.replace(char::is_whitespace, "_"),
        }
    });
    labels.collect::<Vec<_>>().join(" ")
}

fn is_nan(attribute: &Attribute) -> bool {
    let datatype = attribute.datatype;
    datatype.is_real()
        && dispatch!(datatype.physical(), T => T::read(&attribute.fill_value).as_f64()).is_nan()
}

/// A real as the bytes of one of eight, as xarray has those of four too where it writes them as
/// base64.
pub fn real_bytes(data: &[u8]) -> Vec<u8> {
    match data.first_chunk::<4>() {
        Some(bytes) if data.len() == 4 => {
            f64::from(f32::from_le_bytes(*bytes)).to_le_bytes().to_vec()
        }
        _ => data.to_vec(),
    }
}

/// Cells of a box as the first of a larger one, whose others are `fill`; both row by row.
fn pad(data: Vec<u8>, fill: &[u8], have: &[u64], want: &[u64]) -> Vec<u8> {
    if have == want {
        return data;
    }
    // Both fit memory: a chunk has few bytes, and what there is of it was read.
    let (Some(row), Some(wide)) = (have.last(), want.last()) else {
        return data;
    };
    let size = fill.len();
    let cells: u64 = want.iter().product();
    let mut out = fill.repeat(cells as usize);
    for (number, cells) in data.chunks_exact(*row as usize * size).enumerate() {
        let (mut rest, mut place, mut stride) = (number as u64, 0, *wide);
        for (have, want) in have.iter().zip(want).rev().skip(1) {
            place += (rest % have) * stride;
            rest /= have;
            stride *= want;
        }
        let start = place as usize * size;
        if let Some(target) = out.get_mut(start..start + cells.len()) {
            target.copy_from_slice(cells);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_part_is_padded_to_a_whole_chunk() {
        let pad =
            |data: &[u8], have: &[u64], want: &[u64]| super::pad(data.to_vec(), &[9], have, want);
        assert_eq!(pad(&[1, 2, 3, 4], &[2, 2], &[2, 2]), [1, 2, 3, 4]);
        assert_eq!(
            pad(&[1, 2, 3, 4], &[2, 2], &[3, 3]),
            [1, 2, 9, 3, 4, 9, 9, 9, 9]
        );
        assert_eq!(pad(&[1, 2], &[2], &[3]), [1, 2, 9]);
        assert_eq!(
            pad(&[1, 2, 3, 4], &[2, 2, 1], &[2, 2, 2]),
            [1, 9, 2, 9, 3, 9, 4, 9]
        );
        assert_eq!(
            pad(&[1, 2], &[1, 1, 2], &[2, 2, 2]),
            [1, 2, 9, 9, 9, 9, 9, 9]
        );
    }
}
