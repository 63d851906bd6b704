//! A folder of Zarr, version 3 or 2: of a dense array, or of a group of them as xarray's datasets lie in
//! TileDB (a member is a variable, what begins with `__tiledb_attr.` its attributes).

use crate::args::{ExportArgs, TimeArgs};
use crate::command::serve::mistaken_note;
use crate::error::{CliError, Result};
use crate::interrupt;
use crate::output::drawing::base64;
use crate::serve::zarr::{ZarrView, real_bytes};
use crate::session::Session;
use azulejo::Array;
use azulejo::format::metadata::Metadata;
use azulejo::format::{CellValNum, Datatype};
use azulejo::group::ObjectType;
use azulejo::json::value_json;
use serde_json::{Map, Value as Json, json};
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path};

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
    if folder.exists() && !may_be_replaced(folder) {
        return Err(CliError::usage(format!(
            "{} is there and holds no Zarr; --force replaces only that",
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
            let source = Variables::new(session, array, None)?;
            let named = folders(&[(None, source.folder_names())])?;
            put_group(&root, version, attributes)?;
            let folders = named.first().map_or(&[][..], Vec::as_slice);
            source.write(session, folders, (&root, version))?
        }
    };
    let before = made.path().join("before");
    let replaces = folder.exists();
    if replaces {
        std::fs::rename(folder, &before).map_err(failed)?;
    }
    if let Err(error) = std::fs::rename(&root, folder) {
        if replaces {
            std::fs::rename(&before, folder).map_err(failed)?;
        }
        return Err(failed(error));
    }
    Ok(cells)
}

/// Whether what is there is a store of Zarr, or an empty folder: anything else, the array itself
/// among it, is nothing that an export has written.
fn may_be_replaced(folder: &Path) -> bool {
    let is_zarr = ["zarr.json", ".zgroup", ".zarray"]
        .iter()
        .any(|name| folder.join(name).is_file());
    is_zarr || std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
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
    let mut members = Vec::new();
    for member in group_of.members() {
        let name = member.key();
        if member.object_type == Some(ObjectType::Group) {
            session
                .output
                .note(&format!("{name:?} is a group, and left out"));
            continue;
        }
        let array = session.open(&member.location, time)?;
        members.push(Variables::new(session, array, Some(name))?);
    }
    let names: Vec<_> = (members.iter())
        .map(|member| (member.member, member.folder_names()))
        .collect();
    let mut cells = 0;
    for (member, folders) in members.iter().zip(folders(&names)?) {
        cells += member.write(session, &folders, (root, version))?;
    }
    Ok(cells)
}

/// The attributes of an array that become Zarr's arrays.
struct Variables<'a> {
    array: Array,
    /// Its key in a group.
    member: Option<&'a str>,
    view: ZarrView,
    names: Vec<String>,
}

impl<'a> Variables<'a> {
    /// Those of an array, and a note of those that are left out.
    fn new(session: &Session, array: Array, member: Option<&'a str>) -> Result<Self> {
        let view = ZarrView::new(array.clone())?;
        let names: Vec<String> = view.arrays().map(|(name, _)| name).collect();
        if names.is_empty() && member.is_none() {
            return Err(CliError::usage(
                "no attribute has one number a cell, and text is not written to Zarr yet: the store would be empty",
            ));
        }
        for attribute in &array.schema().attributes {
            let name = &attribute.name;
            if !name.is_empty() && !names.contains(name) {
                session.output.note(&format!(
                    "{name:?} holds no numbers, and is left out: text is not written to Zarr yet"
                ));
            }
        }
        for name in view
            .labelled()
            .filter(|name| names.iter().any(|n| n == name))
        {
            session.output.note(&format!(
                "{name:?} has labels: their indices are written, and the labels as flag_meanings"
            ));
        }
        Ok(Self {
            array,
            member,
            view,
            names,
        })
    }

    /// The names of its variables, by which their folders go.
    fn folder_names(&self) -> Vec<String> {
        let schema = self.array.schema();
        let names = self.names.iter().map(|name| match name.strip_suffix('_') {
            // The labels of a dimension.
            Some(label) if self.member.is_some() && schema.domain.index_of(label).is_some() => {
                label.to_owned()
            }
            _ => name.clone(),
        });
        names.collect()
    }

    /// Writes each into its folder; the number of cells.
    fn write(
        &self,
        session: &Session,
        folders: &[String],
        (root, version): (&Path, Version),
    ) -> Result<u64> {
        let (view, member) = (&self.view, self.member);
        let keys = self.array.metadata()?.clone();
        let schema = self.array.schema();
        let mut cells = 0;
        for (name, folder) in self.names.iter().zip(folders) {
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
                // Those of moments, nulls and labels, which are no numbers in the array, unless the variable has its own.
                for key in [
                    "units",
                    "calendar",
                    "_FillValue",
                    "flag_values",
                    "flag_meanings",
                ] {
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
            let folder = root.join(folder);
            // Nulls are the attribute's fill value.
            let of_nulls = match metadata["attributes"].get("_FillValue") {
                Some(_) => metadata["fill_value"].clone(),
                None => Json::Null,
            };
            let fill = keys.get(&format!("{ATTRIBUTE}{name}._FillValue"));
            let fill = fill.map_or(of_nulls, |v| json_of(v.datatype, v.count(), &v.data));
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
        for name in view.mistaken() {
            session.output.note(&mistaken_note(&name));
        }
        Ok(cells)
    }
}

/// The chunks of an array, each by its place along the axes, the last of which goes fastest.
fn places(shape: &[u64], chunk: &[u64]) -> impl Iterator<Item = Vec<u64>> {
    let axes = shape.iter().zip(chunk);
    let counts: Vec<u64> = axes.map(|(n, c)| n.div_ceil((*c).max(1))).collect();
    let first = (!counts.contains(&0)).then(|| vec![0; counts.len()]);
    std::iter::successors(first, move |place| {
        let mut next = place.clone();
        for (at, count) in next.iter_mut().zip(&counts).rev() {
            *at += 1;
            if *at < *count {
                return Some(next);
            }
            *at = 0;
        }
        None
    })
}

/// The folders of the attributes of some arrays, each with its key in the group: the attribute's
/// name, or where several have it that of the member.
///
/// # Errors
/// Names that are no folder's in the one that is written, and those that stay the same.
fn folders(arrays: &[(Option<&str>, Vec<String>)]) -> Result<Vec<Vec<String>>> {
    let all = arrays.iter().flat_map(|(_, names)| names);
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in all {
        *counts.entry(name).or_default() += 1;
    }
    let shared = |name: &str| counts.get(name).is_some_and(|count| *count > 1);
    let folder = |(key, names): &(Option<&str>, Vec<String>)| -> Vec<String> {
        let folder = |name: &String| match key {
            Some(key) if shared(name) && names.len() == 1 => (*key).to_owned(),
            Some(key) if shared(name) => format!("{key}_{name}"),
            _ => name.clone(),
        };
        names.iter().map(folder).collect()
    };
    let folders: Vec<Vec<String>> = arrays.iter().map(folder).collect();
    let mut taken = HashSet::new();
    for name in folders.iter().flatten() {
        if !is_folder(name) {
            return Err(CliError::usage(format!(
                "{name:?} cannot be the name of a folder beside others, in which Zarr would keep it"
            )));
        }
        if !taken.insert(name) {
            return Err(CliError::usage(format!(
                "two attributes would lie in the folder {name:?}: export their arrays one by one"
            )));
        }
    }
    Ok(folders)
}

/// Whether a name is that of a folder right below another, and of no file of Zarr's own.
fn is_folder(name: &str) -> bool {
    let own = ["zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"];
    let mut parts = Path::new(name).components();
    let only = matches!(parts.next(), Some(Component::Normal(part)) if part == name);
    only && parts.next().is_none() && !name.contains(['/', '\\', '\0']) && !own.contains(&name)
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

/// Writes a file below a folder.
fn put(folder: &Path, path: &str, bytes: &(impl AsRef<[u8]> + ?Sized)) -> Result<()> {
    let file = folder.join(path);
    let failed = |e| CliError::io("write", &file, e);
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    std::fs::write(&file, bytes.as_ref()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(arrays: &[(Option<&str>, &[&str])]) -> Option<Vec<Vec<String>>> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let arrays: Vec<_> = (arrays.iter())
            .map(|(key, names)| (*key, owned(names)))
            .collect();
        folders(&arrays).ok()
    }

    #[test]
    fn folders_have_names_of_their_own() {
        let names = named(&[
            (Some("a"), &["v"]),
            (Some("b"), &["v"]),
            (Some("c"), &["w"]),
        ]);
        assert_eq!(names.unwrap(), [["a"], ["b"], ["w"]]);
        let names = named(&[(Some("a"), &["v", "u"]), (Some("b"), &["v"])]);
        assert_eq!(names.unwrap(), [vec!["a_v", "u"], vec!["b"]]);
        // The member's name is that of another's attribute.
        assert_eq!(
            named(&[
                (Some("w"), &["v"]),
                (Some("b"), &["v"]),
                (Some("c"), &["w"])
            ]),
            None
        );
        for unsafe_name in ["..", ".", "", "a/b", "/etc", "../x", "a\\b", "zarr.json"] {
            assert_eq!(named(&[(None, &[unsafe_name])]), None, "{unsafe_name}");
        }
    }

    #[test]
    fn chunks_come_one_after_another() {
        let all: Vec<Vec<u64>> = places(&[3, 4], &[2, 2]).collect();
        assert_eq!(all, [[0, 0], [0, 1], [1, 0], [1, 1]]);
        assert_eq!(places(&[], &[]).collect::<Vec<_>>(), [vec![0u64; 0]]);
        assert_eq!(places(&[0, 4], &[1, 2]).count(), 0);
        assert_eq!(places(&[u64::MAX], &[1]).nth(3), Some(vec![3]));
    }
}
