//! Named snapshots: moments of an array or group that have a name.
//!
//! A snapshot is a small file beside the object, `__azulejo/snapshots/NAME`, which holds a time;
//! the reference passes it by. An array or group opens at it as `uri@NAME`. Where a consolidation
//! has replaced what a snapshot shows, a [vacuum](crate::array::ArrayHandle::vacuum) leaves that
//! alone. Beside the names, `__azulejo/shown/NAME` lists the fragments that an array showed when the
//! name was given, by which a [check](crate::array::ArrayHandle::check) finds what is gone.

use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::{ReadRange, ReadRequest, StorePath, Uri, Waiting, block_on};
use azulejo_format::path::MANIFEST_FOLDER;

/// The folder of snapshots in that of manifests.
const FOLDER: &str = "snapshots";
/// The folder of lists of fragments, beside it.
const SHOWN_FOLDER: &str = "shown";
/// A list of fragments is not longer.
const LONGEST_LIST: u64 = 256 << 20;
/// That folder in an object's own: what [`folder_of`] adds.
pub(crate) const LISTED_FOLDER: &str = "__azulejo/snapshots";
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
    block_on(list_as(location, Waiting::Blocks))
}

/// As [`list`]: a listing, then all files at once.
pub(crate) async fn list_as(location: &Location, waiting: Waiting) -> Result<Vec<NamedSnapshot>> {
    let folder = folder_of(&location.path);
    let listed = waiting.list(&*location.storage, vec![folder]).await?;
    let entries = listed.into_iter().flatten();
    let names: Vec<String> = entries
        .filter(|entry| !entry.is_dir && check_name(&entry.name).is_ok())
        .map(|entry| entry.name)
        .collect();
    let requests = names.iter().map(|name| request(location, name)).collect();
    let mut snapshots = Vec::with_capacity(names.len());
    match waiting.read(&*location.storage, requests).await {
        Ok(read) => {
            for (name, bytes) in names.iter().zip(read) {
                snapshots.push(decoded(location, name, &bytes)?);
            }
        }
        // One was removed meanwhile.
        Err(Error::NotFound { .. }) => {
            for name in &names {
                snapshots.extend(find_as(location, name, waiting).await?);
            }
        }
        Err(error) => return Err(error),
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
    block_on(find_as(location, name, Waiting::Blocks))
}

async fn find_as(
    location: &Location,
    name: &str,
    waiting: Waiting,
) -> Result<Option<NamedSnapshot>> {
    let requests = vec![request(location, name)];
    match waiting.read(&*location.storage, requests).await {
        Ok(mut read) => decoded(location, name, &read.pop().unwrap_or_default()).map(Some),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn request(location: &Location, name: &str) -> ReadRequest {
    ReadRequest {
        path: folder_of(&location.path).join(name),
        // A little more than is looked at.
        range: ReadRange::AtMost(1 << 20),
    }
}

fn decoded(location: &Location, name: &str, bytes: &[u8]) -> Result<NamedSnapshot> {
    parse(name, bytes).ok_or_else(|| {
        let source = azulejo_format::DecodeError::invalid("named snapshot", 0, "it says no time");
        let path = folder_of(&location.path).join(name);
        Error::decode(path.to_string(), source)
    })
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
    block_on(time_of_as(context, uri, name, Waiting::Blocks))
}

async fn time_of_as(context: &Context, uri: &str, name: &str, waiting: Waiting) -> Result<u64> {
    check_name(name)?;
    let location = crate::manifest::locate(context, &Uri::parse(uri)?)?;
    match find_as(&location, name, waiting).await? {
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

/// What `uri@NAME` names, if `uri` as it is was found to name nothing: the object and the moment.
pub(crate) async fn named<T>(
    context: &Context,
    uri: &str,
    found: &Result<T>,
    waiting: Waiting,
) -> Result<Option<(String, u64)>> {
    let Some((object, name)) = split(uri) else {
        return Ok(None);
    };
    match found {
        Err(Error::NotFound { .. }) => {
            let at = time_of_as(context, object, name, waiting).await?;
            Ok(Some((object.to_owned(), at)))
        }
        // Where nothing can be listed, and there is no manifest: perhaps because nothing is there.
        Err(Error::Unsupported(_)) => {
            let at = time_of_as(context, object, name, waiting).await;
            Ok(at.ok().map(|at| (object.to_owned(), at)))
        }
        _ => Ok(None),
    }
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
