//! Replacements that were decided, carried out: by who decided, or by whoever holds the lock after
//! them.

use super::super::tile_object::put_if_there;
use crate::context::Location;
use crate::error::{Error, Result};
use crate::storage::{ReadRange, ReadRequest, StorePath};
use azulejo_format::commit::{Replacement, VacuumList};
use azulejo_format::path::{
    FRAGMENT_METADATA_FILE, Suffix, commit_path, fragment_path, fragment_version,
    suffixed_commit_path,
};
use azulejo_format::timestamped_name::TimestampedName;
use bytes::Bytes;

/// More bytes than the file of a replacement has.
const MAX_REPLACEMENT: u64 = 256 << 20;

/// A fragment that a replacement brings.
struct New {
    folder: StorePath,
    commit: String,
}

impl New {
    fn is_whole(&self, location: &Location) -> Result<bool> {
        let found = (location.storage).find(&self.folder, &[FRAGMENT_METADATA_FILE])?;
        Ok(!found.is_empty())
    }
}

/// New fragments that have been committed.
#[derive(Default)]
pub(super) struct CarriedOut(Vec<New>);

/// Commits the new fragments of a replacement, and ends it. Nothing happens if that was done
/// before, or cannot be done because some of them are not whole.
pub(super) fn carry_out(location: &Location, name: &TimestampedName) -> Result<CarriedOut> {
    let path = path_of(location, name);
    let request = ReadRequest {
        path: path.clone(),
        range: ReadRange::AtMost(MAX_REPLACEMENT),
    };
    let bytes = match location.storage.read(&[request]) {
        Ok(mut read) => read.pop().unwrap_or_default(),
        Err(Error::NotFound { .. }) => return Ok(CarriedOut::default()),
        Err(error) => return Err(error),
    };
    if bytes.len() as u64 >= MAX_REPLACEMENT {
        return Err(Error::InvalidArgument(format!(
            "{path}: no replacement has so many bytes"
        )));
    }
    let failed = |e| Error::decode(path.to_string(), e);
    let replacement = Replacement::decode(&bytes).map_err(failed)?;
    let mut new = Vec::with_capacity(replacement.new.len());
    for name in &replacement.new {
        let name = TimestampedName::parse(name).map_err(failed)?;
        let version = fragment_version(&name).map_err(failed)?;
        let folder = location.path.join(&fragment_path(&name, version));
        let Some(commit) = commit_path(&name, version) else {
            return Ok(CarriedOut::default());
        };
        let fragment = New { folder, commit };
        if !fragment.is_whole(location)? {
            return Ok(CarriedOut::default());
        }
        new.push(fragment);
    }
    for fragment in &new {
        put_if_there(location, None, &fragment.commit, Bytes::new())?;
    }
    finish_replacement(location, name, &replacement)?;
    Ok(CarriedOut(new))
}

impl CarriedOut {
    /// Takes back what came too late: others have done it before, and gone on, so that the
    /// fragment was replaced itself and is no more. The caller holds the lock.
    pub fn take_back_late(&self, location: &Location) -> Result<()> {
        for fragment in &self.0 {
            if !fragment.is_whole(location)? {
                let commit = location.path.join(&fragment.commit);
                location.storage.delete(&[commit])?;
            }
        }
        Ok(())
    }
}

/// The file of a replacement.
pub(crate) fn path_of(location: &Location, name: &TimestampedName) -> StorePath {
    (location.path).join(&suffixed_commit_path(name, Suffix::Replacement))
}

/// Writes the vacuum file of a replacement and removes the replacement.
pub(crate) fn finish_replacement(
    location: &Location,
    name: &TimestampedName,
    list: &Replacement,
) -> Result<VacuumList> {
    let vacuum = VacuumList {
        uris: list.old.clone(),
    };
    let vacuum_file = (location.path).join(&suffixed_commit_path(name, Suffix::Vacuum));
    let storage = &location.storage;
    storage.put(&vacuum_file, vacuum.encode().into())?;
    storage.delete(&[path_of(location, name)])?;
    Ok(vacuum)
}
