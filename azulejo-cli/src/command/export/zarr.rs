//! A folder of Zarr, version 3 or 2: of a dense array, or of a group of them as xarray's datasets lie in
//! TileDB (a member is a variable, what begins with `__tiledb_attr.` its attributes).

use crate::args::{ExportArgs, TimeArgs};
use crate::error::{CliError, Result};
use crate::interrupt;
use crate::output::drawing::base64;
use crate::serve::zarr::ZarrView;
use crate::session::Session;
use azulejo::Array;
use azulejo::format::metadata::Metadata;
use azulejo::format::{CellValNum, Datatype};
use azulejo::group::ObjectType;
use azulejo::json::value_json;
use serde_json::{Map, Value as Json, json};
use std::path::Path;

/// The dimension of a variable that has none.
const SCALAR: &str = "__scalar";
/// What keys of variables begin with.
const ATTRIBUTE: &str = "__tiledb_attr.";

/// The versions of Zarr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `.zarray`, `.zgroup` and `.zattrs`.
    V2,
    /// `zarr.json`.
    V3,
}

/// Writes a folder; the number of cells in it. Nothing is there before all of it is.
pub fn write(session: &Session, args: &ExportArgs, version: Version) -> Result<u64> {
    let (uri, time, folder) = (args.uri.as_str(), &args.time, args.file.as_path());
    if folder.exists() && !args.force {
        return Err(CliError::usage(format!(
            "{} exists; --force replaces it",
            folder.display()
        )));
    }
    let failed = |e| CliError::io("write", folder, e);
    let beside = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let made = tempfile::Builder::new()
        .prefix(".azulejo-")
        .tempdir_in(beside)
        .map_err(failed)?;
    let root = made.path().join("zarr");
    std::fs::create_dir(&root).map_err(failed)?;
    let cells = match session.context.object(uri).object_type()? {
        Some(ObjectType::Group) => dataset(session, uri, time, (&root, version))?,
        _ => {
            let array = session.open(uri, time)?;
            let attributes = plain_keys(array.metadata()?);
            put_group(&root, version, attributes)?;
            variables(session, &array, None, (&root, version))?
        }
    };
    if folder.exists() {
        std::fs::rename(folder, made.path().join("before")).map_err(failed)?;
    }
    std::fs::rename(&root, folder).map_err(failed)?;
    Ok(cells)
}

/// Writes the metadata of a group.
fn put_group(root: &Path, version: Version, attributes: Map<String, Json>) -> Result<()> {
    match version {
        Version::V3 => {
            let group = json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes });
            put(root, "zarr.json", &group.to_string())
        }
        Version::V2 => {
            put(root, ".zgroup", &json!({ "zarr_format": 2 }).to_string())?;
            put(root, ".zattrs", &Json::Object(attributes).to_string())
        }
    }
}

/// Writes the metadata of an array, which are those of version 3, and in version 2 its fill value.
fn put_array(folder: &Path, version: Version, mut metadata: Json, fill: &Json) -> Result<()> {
    if version == Version::V3 {
        return put(folder, "zarr.json", &metadata.to_string());
    }
    let name = metadata["data_type"].as_str().unwrap_or_default();
    let kind = match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "bool" => "|b1".to_owned(),
        other => {
            let bits: u32 = name[other.len()..].parse().unwrap_or_default();
            let order = if bits == 8 { '|' } else { '<' };
            let kind = other.chars().next().unwrap_or('V');
            format!("{order}{kind}{}", bits / 8)
        }
    };
    let array = json!({
        "zarr_format": 2,
        "shape": metadata["shape"],
        "chunks": metadata["chunk_grid"]["configuration"]["chunk_shape"],
        "dtype": kind,
        "compressor": null,
        "filters": null,
        "order": "C",
        "fill_value": fill,
        "dimension_separator": ".",
    });
    put(folder, ".zarray", &array.to_string())?;
    let mut attributes = metadata["attributes"].take();
    if let Some(attributes) = attributes.as_object_mut() {
        // The array's own says it.
        attributes.shift_remove("_FillValue");
        attributes.insert(
            "_ARRAY_DIMENSIONS".to_owned(),
            metadata["dimension_names"].take(),
        );
    }
    put(folder, ".zattrs", &attributes.to_string())
}

/// The members of a group as variables.
fn dataset(
    session: &Session,
    uri: &str,
    time: &TimeArgs,
    (root, version): (&Path, Version),
) -> Result<u64> {
    let group_of = session
        .context
        .group(uri)
        .open_at(time.range(&session.context, uri)?)?;
    let attributes = plain_keys(&group_of.metadata()?);
    put_group(root, version, attributes)?;
    let mut cells = 0;
    for member in group_of.members() {
        let name = member.key();
        if member.object_type == Some(ObjectType::Group) {
            session
                .output
                .note(&format!("{name:?} is a group, and left out"));
            continue;
        }
        let array = session.open(&member.location, time)?;
        cells += variables(session, &array, Some(name), (root, version))?;
    }
    Ok(cells)
}

/// The attributes of an array as Zarr's arrays.
fn variables(
    session: &Session,
    array: &Array,
    member: Option<&str>,
    (root, version): (&Path, Version),
) -> Result<u64> {
    let keys = array.metadata()?.clone();
    let schema = array.schema();
    let left_out: Vec<&str> = schema.attributes.iter().map(|a| a.name.as_str()).collect();
    let view = ZarrView::new(array.clone())?;
    let names: Vec<String> = view.arrays().map(|(name, _)| name).collect();
    for name in left_out {
        if !name.is_empty() && !names.iter().any(|known| known == name) {
            session.output.note(&format!(
                "{name:?} holds no numbers, and is left out: text is not written to Zarr yet"
            ));
        }
    }
    let mut cells = 0;
    for name in &names {
        let ask = |parts: &[String]| {
            let mut key = vec![name.clone()];
            key.extend_from_slice(parts);
            let answer = view.answer(&key);
            match answer.status {
                200 => Ok(answer.body),
                _ => Err(CliError::Format(
                    String::from_utf8_lossy(&answer.body).into_owned(),
                )),
            }
        };
        let metadata = ask(&["zarr.json".to_owned()])?;
        let mut metadata: Json = serde_json::from_slice(&metadata)
            .map_err(|e| CliError::Format(format!("{name}: {e}")))?;
        let lengths = |at: &Json| -> Vec<u64> {
            let items = at.as_array().map_or(&[][..], Vec::as_slice);
            items.iter().filter_map(Json::as_u64).collect()
        };
        let shape = lengths(&metadata["shape"]);
        let chunk = lengths(&metadata["chunk_grid"]["configuration"]["chunk_shape"]);
        let scalar = schema.domain.dimensions.len() == 1
            && schema.domain.dimensions.iter().all(|d| d.name == SCALAR);
        if member.is_some() {
            let mut attributes = attributes_of(&keys, name, &metadata);
            // Those of moments that are no numbers in the array, unless the variable has its own.
            for key in ["units", "calendar"] {
                if let Some(value) = metadata["attributes"].get(key) {
                    attributes.entry(key).or_insert_with(|| value.clone());
                }
            }
            metadata["attributes"] = attributes.into();
            if scalar {
                metadata["shape"] = json!([]);
                metadata["dimension_names"] = json!([]);
                metadata["chunk_grid"]["configuration"]["chunk_shape"] = json!([]);
            }
        }
        let own = match name.strip_suffix('_') {
            Some(label) if member.is_some() && schema.domain.index_of(label).is_some() => label,
            _ => name,
        };
        let folder = root.join(own);
        let fill = keys.get(&format!("{ATTRIBUTE}{name}._FillValue"));
        let fill = fill.map_or(Json::Null, |v| json_of(v.datatype, v.count(), &v.data));
        let fill = match fill.as_str() {
            Some("inf") => "Infinity".into(),
            Some("-inf") => "-Infinity".into(),
            _ => fill,
        };
        put_array(&folder, version, metadata, &fill)?;
        for index in places(&shape, &chunk) {
            interrupt::check()?;
            let mut key = vec!["c".to_owned()];
            key.extend(index.iter().map(u64::to_string));
            let body = ask(&key)?;
            let path = match (version, scalar && member.is_some()) {
                (Version::V3, true) => "c".to_owned(),
                (Version::V3, false) => key.join("/"),
                (Version::V2, true) => "0".to_owned(),
                (Version::V2, false) => key.get(1..).unwrap_or_default().join("."),
            };
            put(&folder, &path, &body)?;
        }
        cells += shape.iter().product::<u64>();
    }
    Ok(cells)
}

/// The chunks of an array, each by its place along the axes.
fn places(shape: &[u64], chunk: &[u64]) -> Vec<Vec<u64>> {
    let counts = shape
        .iter()
        .zip(chunk)
        .map(|(n, c)| n.div_ceil((*c).max(1)));
    let mut places = vec![Vec::new()];
    for count in counts {
        places = places
            .into_iter()
            .flat_map(|before: Vec<u64>| {
                (0..count).map(move |at| {
                    let mut place = before.clone();
                    place.push(at);
                    place
                })
            })
            .collect();
    }
    places
}

/// Key-values that are not for readers of TileDB.
fn plain_keys(metadata: &Metadata) -> Map<String, Json> {
    let plain = metadata
        .iter()
        .filter(|(key, _)| !key.starts_with("__tiledb_") && !key.starts_with("__azulejo_"));
    plain
        .map(|(key, value)| {
            (
                key.clone(),
                json_of(value.datatype, value.count(), &value.data),
            )
        })
        .collect()
}

fn json_of(datatype: Datatype, count: usize, data: &[u8]) -> Json {
    let shape = match count {
        1 => CellValNum::ONE,
        _ => CellValNum::Var,
    };
    value_json(datatype, shape, data)
}

/// The attributes of a variable. xarray writes the fill values of reals as their bytes.
fn attributes_of(keys: &Metadata, name: &str, array: &Json) -> Map<String, Json> {
    let prefix = format!("{ATTRIBUTE}{name}.");
    let mut attributes = Map::new();
    for (key, value) in keys {
        let Some(own) = key.strip_prefix(&prefix) else {
            continue;
        };
        let real = array["data_type"]
            .as_str()
            .is_some_and(|t| t.starts_with("float"));
        let json = match own == "_FillValue" && real && value.datatype.is_real() {
            true => base64(&real_bytes(&value.data)).into(),
            false => json_of(value.datatype, value.count(), &value.data),
        };
        attributes.insert(own.to_owned(), json);
    }
    attributes
}

/// A real as the bytes of one of eight, which xarray has for those of four too.
fn real_bytes(data: &[u8]) -> Vec<u8> {
    match data.first_chunk::<4>() {
        Some(bytes) if data.len() == 4 => {
            f64::from(f32::from_le_bytes(*bytes)).to_le_bytes().to_vec()
        }
        _ => data.to_vec(),
    }
}

/// Writes a file below a folder.
fn put(folder: &Path, path: &str, bytes: &(impl AsRef<[u8]> + ?Sized)) -> Result<()> {
    let file = folder.join(path);
    let failed = |e| CliError::io("write", &file, e);
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    std::fs::write(&file, bytes.as_ref()).map_err(failed)
}
