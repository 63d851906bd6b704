//! Making fragments count: the last step of a write.

use crate::array::{clean_up_unseen, put_if_there};
use crate::context::Location;
use crate::error::{Error, Result};
use crate::storage::StorePath;
use azulejo_format::FormatVersion;
use azulejo_format::commit::{ConsolidatedCommit, ConsolidatedCommits};
use azulejo_format::fragment::Footer;
use azulejo_format::path::{FRAGMENT_METADATA_FILE, Suffix, commit_path, suffixed_commit_path};
use azulejo_format::timestamped_name::TimestampedName;
use bytes::Bytes;

/// A fragment whose files are all on storage, and that does not count yet. Dropped, it stays as a
/// folder that readers ignore.
#[derive(Debug)]
pub struct WrittenFragment {
    pub(super) location: Location,
    pub(super) folder: StorePath,
    /// File name of the schema of its cells.
    pub(super) schema_name: String,
    pub(super) name: TimestampedName,
    pub(super) version: FormatVersion,
    pub(super) footer: Footer,
    pub(super) metadata_size: u64,
}

impl WrittenFragment {
    /// The fragment's name.
    #[must_use]
    pub fn name(&self) -> &TimestampedName {
        &self.name
    }

    /// The fragment's folder.
    #[must_use]
    pub fn folder(&self) -> &StorePath {
        &self.folder
    }

    /// What its footer says: the box around its cells, the number of its tiles, the sizes of its
    /// files.
    #[must_use]
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// Bytes of all its files.
    #[must_use]
    pub fn stored_size(&self) -> u64 {
        let Footer {
            file_sizes,
            file_var_sizes,
            file_validity_sizes,
            ..
        } = &self.footer;
        let files = file_sizes
            .iter()
            .chain(file_var_sizes)
            .chain(file_validity_sizes);
        files.sum::<u64>() + self.metadata_size
    }

    /// Makes the fragment part of the array, at once and as a whole.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the array was deleted or moved meanwhile, or another one was made in its
    /// place, and errors of the storage. Where it still works, the files are then removed, unless the commit is there all the same.
    pub fn commit(self) -> Result<TimestampedName> {
        let path = commit_path(&self.name, self.version)
            .ok_or_else(|| Error::Internal(format!("fragment {} has no commit file", self.name)))?;
        let commit = self.location.path.join(&path);
        let storage = &self.location.storage;
        self.check_whole().inspect_err(|_| {
            // It was not asked for, so it never counts. The first error is the one to report.
            let _ = storage.delete(std::slice::from_ref(&self.folder));
        })?;
        let schema = seen(&self.schema_name, self.version);
        put_if_there(&self.location, schema, &path, Bytes::new()).inspect_err(|error| {
            let folder = std::slice::from_ref(&self.folder);
            clean_up_unseen(&**storage, &commit, folder, error);
        })?;
        Ok(self.name)
    }

    /// An error if its files are gone, where that costs little to ask: an array whose commits name a
    /// fragment that is not there cannot be opened.
    ///
    /// # Errors
    /// [`Error::NotFound`], and errors of the storage.
    pub(super) fn check_whole(&self) -> Result<()> {
        let storage = &self.location.storage;
        if storage.locking().is_none() {
            return Ok(());
        }
        match storage.size(&self.folder.join(FRAGMENT_METADATA_FILE)) {
            Err(Error::NotFound { .. }) => Err(Error::NotFound {
                uri: self.folder.to_string(),
                what: "the fragment: it was removed while it was written, as a repair does with what it takes for left over",
            }),
            found => found.map(drop),
        }
    }

    /// Removes the fragment's files.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn discard(self) -> Result<()> {
        self.location.storage.delete(&[self.folder])
    }
}

/// The schema by which an array is known, if each has names of its own for them.
fn seen(schema_name: &str, version: FormatVersion) -> Option<&str> {
    version.has_schema_evolution().then_some(schema_name)
}

/// Makes several fragments of an array that has a schema of this file name count by one file: readers
/// see all of them or none. `folders` go where that fails, unless the file is there all the same.
///
/// # Errors
/// As [`WrittenFragment::commit`].
pub(super) fn commit_together(
    location: &Location,
    schema_name: &str,
    names: &[TimestampedName],
    version: FormatVersion,
    folders: &[StorePath],
) -> Result<()> {
    commit_listed(location, schema_name, names, version, &|whole, error| {
        clean_up_unseen(&*location.storage, whole, folders, error);
    })
}

/// Makes several fragments count by one file. Where that fails, `failed` is told which file it was, and
/// why.
///
/// # Errors
/// As [`WrittenFragment::commit`].
pub(super) fn commit_listed(
    location: &Location,
    schema_name: &str,
    names: &[TimestampedName],
    version: FormatVersion,
    failed: &dyn Fn(&StorePath, &Error),
) -> Result<()> {
    let names: Vec<(&TimestampedName, FormatVersion)> =
        names.iter().map(|name| (name, version)).collect();
    let schema = seen(schema_name, version);
    put_consolidated(location, schema, &names, None, failed)
}

/// A delete that does not count yet.
pub(crate) struct WrittenDelete {
    /// Its name.
    pub name: TimestampedName,
    /// The bytes of its file.
    pub tile: Bytes,
}

/// Makes fragments count, and a delete, by one file, in an array of this version that has a schema of
/// this file name: readers see all of that or nothing.
///
/// # Errors
/// As [`WrittenFragment::commit`].
pub(crate) fn commit_at_once(
    location: &Location,
    (schema_name, version): (&str, FormatVersion),
    fragments: &[WrittenFragment],
    delete: Option<&WrittenDelete>,
) -> Result<()> {
    let folders: Vec<StorePath> = fragments.iter().map(|f| f.folder.clone()).collect();
    let names: Vec<_> = fragments.iter().map(|f| (&f.name, f.version)).collect();
    let schema = seen(schema_name, version);
    put_consolidated(location, schema, &names, delete, &|whole, error| {
        clean_up_unseen(&*location.storage, whole, &folders, error);
    })
}

fn put_consolidated(
    location: &Location,
    schema: Option<&str>,
    fragments: &[(&TimestampedName, FormatVersion)],
    delete: Option<&WrittenDelete>,
    failed: &dyn Fn(&StorePath, &Error),
) -> Result<()> {
    let uris: Vec<String> = fragments
        .iter()
        .filter_map(|(name, version)| commit_path(name, *version))
        .collect();
    let commits = uris.iter().map(|uri| ConsolidatedCommit::Fragment { uri });
    let of_delete = delete.map(|of| (suffixed_commit_path(&of.name, Suffix::Delete), &of.tile));
    let deletes = of_delete
        .iter()
        .map(|(uri, tile)| ConsolidatedCommit::Delete { uri, tile });
    let body = ConsolidatedCommits {
        commits: commits.chain(deletes).collect(),
    }
    .encode();
    let names: Vec<&TimestampedName> = (fragments.iter().map(|(name, _)| *name))
        .chain(delete.map(|of| &of.name))
        .collect();
    let first = names.iter().map(|name| name.t_start).min().unwrap_or(0);
    let last = names.iter().map(|name| name.t_end).max().unwrap_or(0);
    let version = names.iter().find_map(|name| name.version).unwrap_or(0);
    let name = TimestampedName::versioned(first, last, version);
    let path = suffixed_commit_path(&name, Suffix::Consolidated);
    put_if_there(location, schema, &path, body.into()).inspect_err(|error| {
        failed(&location.path.join(&path), error);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::context::Context;
    use azulejo_format::ArraySchema;

    #[test]
    fn what_is_restored_is_not_committed_to_another_array() {
        let context = Context::new(Config::default(), None).unwrap();
        let new = ArraySchema::sparse().dimension("x", 0i32..=9, 10);
        let place = context.array("mem://a");
        place.create(new.build().unwrap()).unwrap();
        let array = place.snapshot().unwrap();
        let version = array.schema().version;
        let delete = WrittenDelete {
            name: TimestampedName::versioned(5, 5, version.number()),
            tile: Bytes::from_static(b"tile"),
        };
        let location = array.location();
        let commit = |schema: &str| commit_at_once(location, (schema, version), &[], Some(&delete));
        let commits = || {
            let folder = location.path.join("__commits");
            location.storage.list(&folder).unwrap().len()
        };
        let refused = commit("__1_1_0123456789abcdef0123456789abcdef").unwrap_err();
        assert!(matches!(refused, Error::NotFound { .. }), "{refused}");
        assert_eq!(commits(), 0);
        commit(array.schema_name()).unwrap();
        assert_eq!(commits(), 1);
    }
}
