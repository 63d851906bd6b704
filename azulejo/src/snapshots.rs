//! Named snapshots: moments of an array or group that have a name.
//!
//! A snapshot is a small file beside the object, `__azulejo/snapshots/NAME`, which holds a time;
//! the reference passes it by. An array or group opens at it as `uri@NAME`. Where a consolidation
//! has replaced what a snapshot shows, a [vacuum](crate::array::ArrayHandle::vacuum) leaves that
//! alone.

use crate::array::clock;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::group::ObjectType;
use crate::object::ObjectHandle;
use crate::storage::{ReadRange, ReadRequest, StorePath, Uri};
use azulejo_format::path::MANIFEST_FOLDER;
use std::collections::HashSet;

/// The folder of snapshots in that of manifests.
const FOLDER: &str = "snapshots";
/// What a file begins with.
const MARK: &str = "azulejo snapshot 1";
/// Longer names make no file.
const LONGEST_NAME: usize = 200;
/// A file is not longer.
const LONGEST_FILE: usize = 1024;

/// A moment of an array or group that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedSnapshot {
    /// The name.
    pub name: String,
    /// The moment: milliseconds since 1970-01-01 UTC, that millisecond included.
    pub at: u64,
    /// When it was given the name.
    pub made: u64,
}

impl ObjectHandle {
    /// Gives a moment (milliseconds since 1970-01-01 UTC; now unless given) a name: of an array, or
    /// of a group and all its members, theirs included. Returns the URIs of those that have it now.
    ///
    /// # Errors
    /// [`Error::NotFound`] if nothing lies there, [`Error::AlreadyExists`] if one of them has a
    /// snapshot of that name, [`Error::InvalidArgument`] for a name that is none.
    pub fn create_snapshot(&self, name: &str, at: Option<u64>) -> Result<Vec<String>> {
        check_name(name)?;
        let made = clock::now();
        let at = at.unwrap_or(made);
        let objects = self.with_members()?;
        for (uri, location) in &objects {
            if find(location, name)?.is_some() {
                return Err(Error::AlreadyExists {
                    uri: format!("{uri}@{name}"),
                });
            }
        }
        let body = format!("{MARK}\nat {at}\nmade {made}\n");
        for (_, location) in &objects {
            let Location { storage, path } = location;
            storage.make_folder(&folder_of(path))?;
            storage.put(
                &folder_of(path).join(name),
                body.clone().into_bytes().into(),
            )?;
        }
        Ok(objects.into_iter().map(|(uri, _)| uri).collect())
    }

    /// The snapshots, by time.
    ///
    /// # Errors
    /// [`Error::NotFound`] if nothing lies there, [`Error::Corrupt`] for a file that is none.
    pub fn snapshots(&self) -> Result<Vec<NamedSnapshot>> {
        let uri = Uri::parse(&self.uri)?;
        let location = self.context.locate(&uri)?;
        present(&location, &uri)?;
        list(&location)
    }

    /// Removes the name of a moment, of a group with that of all members that have it. Nothing else
    /// is removed: the next vacuum may.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such snapshot.
    pub fn remove_snapshot(&self, name: &str) -> Result<Vec<String>> {
        check_name(name)?;
        let mut removed = Vec::new();
        for (uri, location) in self.with_members()? {
            if find(&location, name)?.is_some() {
                location
                    .storage
                    .delete(&[folder_of(&location.path).join(name)])?;
                removed.push(uri);
            }
        }
        match removed.is_empty() {
            true => Err(Error::NotFound {
                uri: format!("{}@{name}", self.uri),
                what: "a named snapshot",
            }),
            false => Ok(removed),
        }
    }

    /// The moment that a snapshot names.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of that name.
    pub fn snapshot_time(&self, name: &str) -> Result<u64> {
        check_name(name)?;
        let location = self.context.locate(&Uri::parse(&self.uri)?)?;
        match find(&location, name)? {
            Some(snapshot) => Ok(snapshot.at),
            None => Err(Error::NotFound {
                uri: format!("{}@{name}", self.uri),
                what: "a named snapshot",
            }),
        }
    }

    /// The object, and of a group all members that are there.
    fn with_members(&self) -> Result<Vec<(String, Location)>> {
        let (mut objects, mut seen) = (Vec::new(), HashSet::new());
        let mut todo = vec![self.uri.clone()];
        while let Some(text) = todo.pop() {
            let uri = Uri::parse(&text)?;
            let location = self.context.locate(&uri)?;
            if !seen.insert(uri.to_string()) {
                continue;
            }
            let found = match present(&location, &uri) {
                Err(Error::NotFound { .. }) if !objects.is_empty() => continue,
                found => found?,
            };
            if found == ObjectType::Group {
                let group = self.context.group(&text).open()?;
                todo.extend(group.members().iter().map(|m| m.location.clone()));
            }
            objects.push((uri.to_string(), location));
        }
        Ok(objects)
    }
}

/// The URI and the snapshot that `uri@NAME` names; `None` for what names none.
pub(crate) fn split(uri: &str) -> Option<(&str, &str)> {
    let (object, name) = uri.rsplit_once('@')?;
    let named = !object.is_empty() && !object.ends_with('/') && check_name(name).is_ok();
    named.then_some((object, name))
}

/// The snapshots of what lies at a location, by time.
pub(crate) fn list(location: &Location) -> Result<Vec<NamedSnapshot>> {
    let folder = folder_of(&location.path);
    let mut snapshots = Vec::new();
    for entry in location.storage.list(&folder)? {
        if !entry.is_dir && check_name(&entry.name).is_ok() {
            snapshots.extend(find(location, &entry.name)?);
        }
    }
    snapshots.sort_by(|a, b| a.at.cmp(&b.at).then_with(|| a.name.cmp(&b.name)));
    Ok(snapshots)
}

fn present(location: &Location, uri: &Uri) -> Result<ObjectType> {
    ObjectType::at(location)?.ok_or_else(|| Error::NotFound {
        uri: uri.to_string(),
        what: "an array or a group",
    })
}

fn folder_of(object: &StorePath) -> StorePath {
    object.join(MANIFEST_FOLDER).join(FOLDER)
}

fn find(location: &Location, name: &str) -> Result<Option<NamedSnapshot>> {
    let path = folder_of(&location.path).join(name);
    let request = ReadRequest {
        path: path.clone(),
        range: ReadRange::All,
    };
    let bytes = match location.storage.read(&[request]) {
        Ok(mut read) => read.pop().unwrap_or_default(),
        Err(Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let snapshot = parse(name, &bytes).ok_or_else(|| {
        let source = azulejo_format::DecodeError::invalid("named snapshot", 0, "it says no time");
        Error::decode(path.to_string(), source)
    })?;
    Ok(Some(snapshot))
}

fn parse(name: &str, bytes: &[u8]) -> Option<NamedSnapshot> {
    let text = str::from_utf8(bytes.get(..LONGEST_FILE).unwrap_or(bytes)).ok()?;
    let mut lines = text.lines();
    if lines.next() != Some(MARK) {
        return None;
    }
    let at = lines.next()?.strip_prefix("at ")?.parse().ok()?;
    let made = lines.next()?.strip_prefix("made ")?.parse().ok()?;
    Some(NamedSnapshot {
        name: name.to_owned(),
        at,
        made,
    })
}

/// A name is a file's on every storage, and no time.
fn check_name(name: &str) -> Result<()> {
    let mut characters = name.chars();
    let first = characters.next().is_some_and(|c| c.is_ascii_alphabetic());
    let rest = characters.all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    if first && rest && name.len() <= LONGEST_NAME {
        return Ok(());
    }
    Err(Error::InvalidArgument(format!(
        "{name:?} is no name of a snapshot: letters, digits, `.`, `_` and `-`, a letter first"
    )))
}

/// Opens what `uri@NAME` names with `open`, if `uri` as it is names nothing.
pub(crate) fn or_named<T>(
    context: &Context,
    uri: &str,
    found: Result<T>,
    open: impl FnOnce(&str, u64) -> Result<T>,
) -> Result<T> {
    let (Err(Error::NotFound { .. }), Some((object, name))) = (&found, split(uri)) else {
        return found;
    };
    open(object, context.object(object).snapshot_time(name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_files() {
        assert_eq!(split("a/b@v1"), Some(("a/b", "v1")));
        assert_eq!(
            split("abfss://c@acc/x@y-2.0"),
            Some(("abfss://c@acc/x", "y-2.0"))
        );
        for uri in ["a/b", "a@", "@v", "a@1", "a@b/c", "a@b c", "x/@v"] {
            assert_eq!(split(uri), None, "{uri}");
        }
        let good = b"azulejo snapshot 1\nat 17\nmade 18\n";
        assert_eq!(parse("v", good).map(|s| (s.at, s.made)), Some((17, 18)));
        for bad in [
            &b""[..],
            b"azulejo snapshot 2\nat 17\nmade 18\n",
            b"azulejo snapshot 1\nat x\n",
            b"\xff",
        ] {
            assert_eq!(parse("v", bad), None);
        }
    }
}
