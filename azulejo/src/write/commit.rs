//! Making a fragment count: the last step of a write.

use crate::context::Location;
use crate::error::{Error, Result};
use crate::storage::StorePath;
use azulejo_format::FormatVersion;
use azulejo_format::fragment::Footer;
use azulejo_format::path::commit_path;
use azulejo_format::timestamped_name::TimestampedName;
use bytes::Bytes;

/// A fragment whose files are all on storage, and that does not count yet. Dropped, it stays as a
/// folder that readers ignore.
#[derive(Debug)]
pub struct WrittenFragment {
    pub(super) location: Location,
    pub(super) folder: StorePath,
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
    /// Errors of the storage; the fragment then does not count, and its files are removed where the
    /// storage still works.
    pub fn commit(self) -> Result<TimestampedName> {
        let path = commit_path(&self.name, self.version)
            .ok_or_else(|| Error::Internal(format!("fragment {} has no commit file", self.name)))?;
        let commit = self.location.path.join(&path);
        let storage = &self.location.storage;
        if let Err(error) = storage.put(&commit, Bytes::new()) {
            // The commit may be there although the storage says it failed. Only when it is surely
            // not may the files go.
            if storage.delete(std::slice::from_ref(&commit)).is_ok() {
                let _ = storage.delete(std::slice::from_ref(&self.folder));
            }
            return Err(error);
        }
        Ok(self.name)
    }

    /// Removes the fragment's files.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn discard(self) -> Result<()> {
        self.location.storage.delete(&[self.folder])
    }
}
