//! Named snapshots: moments of an array or group that have a name.
//!
//! A snapshot is a small file beside the object, `__azulejo/snapshots/NAME`, which holds a time;
//! the reference passes it by. An array or group opens at it as `uri@NAME`. Where a consolidation
//! has replaced what a snapshot shows, a [vacuum](crate::array::ArrayHandle::vacuum) leaves that
//! alone. Beside the names, `__azulejo/shown/NAME` lists the fragments that an array showed when the
//! name was given, by which a [check](crate::array::ArrayHandle::check) finds what is gone.

use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::{ReadRange, ReadRequest, StorePath, Uri};
use azulejo_format::path::MANIFEST_FOLDER;

/// The folder of snapshots in that of manifests.
const FOLDER: &str = "snapshots";
/// The folder of lists of fragments, beside it.
const SHOWN_FOLDER: &str = "shown";
/// A list of fragments is not longer.
const LONGEST_LIST: u64 = 256 << 20;
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

/// The folder of an object's snapshots.
pub(crate) fn folder_of(object: &StorePath) -> StorePath {
    object.join(MANIFEST_FOLDER).join(FOLDER)
}

/// The list of the fragments that a snapshot shows.
pub(crate) fn shown_path(object: &StorePath, name: &str) -> StorePath {
    object.join(MANIFEST_FOLDER).join(SHOWN_FOLDER).join(name)
}

/// Names of the fragments that a snapshot showed when it was made; `None` if nobody wrote them
/// down.
pub(crate) fn shown(location: &Location, name: &str) -> Result<Option<Vec<String>>> {
    let request = ReadRequest {
        path: shown_path(&location.path, name),
        range: ReadRange::AtMost(LONGEST_LIST),
    };
    match location.storage.read(&[request]) {
        Ok(mut read) => {
            let bytes = read.pop().unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            Ok(Some(text.lines().map(str::to_owned).collect()))
        }
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The snapshot of that name, if there is one.
pub(crate) fn find(location: &Location, name: &str) -> Result<Option<NamedSnapshot>> {
    let path = folder_of(&location.path).join(name);
    let request = ReadRequest {
        path: path.clone(),
        // A little more than is looked at.
        range: ReadRange::AtMost(1 << 20),
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
pub(crate) fn check_name(name: &str) -> Result<()> {
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

/// The content of a snapshot's file.
pub(crate) fn encode(at: u64, made: u64) -> String {
    format!("{MARK}\nat {at}\nmade {made}\n")
}

/// The moment that a snapshot of the array or group at `uri` names.
pub(crate) fn time_of(context: &Context, uri: &str, name: &str) -> Result<u64> {
    check_name(name)?;
    let location = context.locate(&Uri::parse(uri)?)?;
    match find(&location, name)? {
        Some(snapshot) => Ok(snapshot.at),
        None => Err(not_found(uri, name)),
    }
}

pub(crate) fn not_found(uri: &str, name: &str) -> Error {
    Error::NotFound {
        uri: format!("{uri}@{name}"),
        what: "a named snapshot",
    }
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
    open(object, time_of(context, object, name)?)
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
