//! What lies in a folder: a group, an array, or neither.

use super::Result;
use super::metadata::{ArrayMetadata, member_of};
use crate::error::FileError;
use serde_json::{Map, Value as Json};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A file of metadata is not longer.
const LONGEST_METADATA: u64 = 16 << 20;
/// Groups do not lie deeper in each other.
const DEEPEST: usize = 32;

/// A group or an array.
#[derive(Debug)]
pub enum Node {
    /// A group.
    Group(Group),
    /// An array, in its folder.
    Array(Box<ArrayMetadata>, PathBuf),
}

/// A group.
#[derive(Debug)]
pub struct Group {
    /// Its attributes.
    pub attributes: Map<String, Json>,
    /// Its members, ordered by name.
    pub members: Vec<(String, Node)>,
}

/// Whether a folder looks like a store.
pub fn is_store(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).is_file();
    has("zarr.json") || has(".zarray") || has(".zgroup")
}

/// Reads the metadata of a store, down to the last of its arrays.
pub fn open(folder: &Path) -> Result<Node> {
    open_below(folder, 0)?.ok_or_else(|| {
        let reason = "there is no zarr.json, .zarray or .zgroup in it: it is no Zarr";
        FileError::new(reason).of(folder.display())
    })
}

fn open_below(folder: &Path, depth: usize) -> Result<Option<Node>> {
    if depth > DEEPEST {
        return Err(FileError::new("groups lie too deep in each other").of(folder.display()));
    }
    let about = |e: FileError| e.of(folder.display());
    if let Some(mut json) = read(&folder.join("zarr.json"))? {
        let format = member_of(&json, "zarr_format").as_u64();
        if format != Some(3) {
            return Err(about(FileError::new("zarr.json is not of version 3")));
        }
        let attributes = match json.get_mut("attributes").map(Json::take) {
            Some(Json::Object(attributes)) => attributes,
            None | Some(Json::Null) => Map::new(),
            Some(_) => return Err(about(FileError::new("its attributes are no object"))),
        };
        return match member_of(&json, "node_type").as_str() {
            Some("array") => {
                let array = ArrayMetadata::of_v3(&json, attributes).map_err(about)?;
                Ok(Some(Node::Array(Box::new(array), folder.to_owned())))
            }
            Some("group") => group(folder, attributes, depth).map(Some),
            _ => Err(about(FileError::new("it is neither an array nor a group"))),
        };
    }
    let attributes = || match read(&folder.join(".zattrs"))? {
        Some(Json::Object(attributes)) => Ok(attributes),
        None => Ok(Map::new()),
        Some(_) => Err(about(FileError::new(".zattrs is no object"))),
    };
    if let Some(json) = read(&folder.join(".zarray"))? {
        let array = ArrayMetadata::of_v2(&json, attributes()?).map_err(about)?;
        return Ok(Some(Node::Array(Box::new(array), folder.to_owned())));
    }
    match read(&folder.join(".zgroup"))? {
        Some(_) => group(folder, attributes()?, depth).map(Some),
        None => Ok(None),
    }
}

fn group(folder: &Path, attributes: Map<String, Json>, depth: usize) -> Result<Node> {
    let failed = |e: std::io::Error| FileError::new(e.to_string()).of(folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.path().is_dir() {
            let name = entry.file_name().into_string();
            names.push(name.map_err(|name| {
                FileError::new(format!("{name:?} is no text")).of(folder.display())
            })?);
        }
    }
    names.sort();
    let mut members = Vec::new();
    for name in names {
        if let Some(node) = open_below(&folder.join(&name), depth + 1)? {
            members.push((name, node));
        }
    }
    Ok(Node::Group(Group {
        attributes,
        members,
    }))
}

/// A file of JSON, if there is one.
fn read(file: &Path) -> Result<Option<Json>> {
    let about = |reason: String| FileError::new(reason).of(file.display());
    let opened = match std::fs::File::open(file) {
        Ok(opened) => opened,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(about(e.to_string())),
    };
    let mut bytes = Vec::new();
    opened
        .take(LONGEST_METADATA + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| about(e.to_string()))?;
    if bytes.len() as u64 > LONGEST_METADATA {
        return Err(about("it is too long for metadata".to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|_| about("it is no text".to_owned()))?;
    parse(&text).map(Some).map_err(|e| about(e.to_string()))
}

/// JSON as Python writes it: numbers may be NaN and infinite, which then are texts.
fn parse(text: &str) -> serde_json::Result<Json> {
    serde_json::from_str(text).or_else(|e| match plain(text) {
        Some(plain) => serde_json::from_str(&plain),
        None => Err(e),
    })
}

/// The text with quotes around NaN, Infinity and -Infinity where they stand alone.
fn plain(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut quoted, mut changed) = (text, false, false);
    while let Some(next) = rest.chars().next() {
        if quoted && next == '\\' {
            let end = rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at);
            out.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        let names = ["NaN", "-Infinity", "Infinity"];
        if let Some(name) = names.into_iter().find(|n| !quoted && rest.starts_with(n)) {
            out.extend(["\"", name, "\""]);
            rest = &rest[name.len()..];
            changed = true;
            continue;
        }
        quoted ^= next == '"';
        out.push(next);
        rest = &rest[next.len_utf8()..];
    }
    changed.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::parse;
    use serde_json::json;

    #[test]
    fn numbers_that_json_has_not_are_texts() {
        assert_eq!(
            parse(r#"{"a": NaN, "b": [-Infinity, "NaN, \" Infinity"]}"#).unwrap(),
            json!({"a": "NaN", "b": ["-Infinity", "NaN, \" Infinity"]})
        );
        assert!(parse("{\"a\": nan}").is_err());
        assert!(parse("{\"a\\").is_err());
    }
}
