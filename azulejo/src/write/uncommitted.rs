//! Fragments that many processes have written and that count together.
//!
//! Each process writes with [`WriteOptions::uncommitted`](super::WriteOptions::uncommitted) and
//! hands on the names that [`Writer::finish`](super::Writer::finish) returns. One of them commits all
//! that succeeded. What was written and is never named, because a process has died, stays a folder
//! that readers pass by.

use super::commit::commit_listed;
use crate::array::{ArrayHandle, Head, may_come_late, put_if_there};
use crate::error::{Error, Result};
use crate::storage::StorePath;
use azulejo_format::FormatVersion;
use azulejo_format::path::{
    FRAGMENT_METADATA_FILE, commit_path, fragment_entry, fragment_path, fragment_version,
};
use azulejo_format::timestamped_name::TimestampedName;
use bytes::Bytes;
use std::collections::{BTreeMap, HashSet};

impl ArrayHandle {
    /// Makes fragments that were written with
    /// [`uncommitted`](crate::write::WriteOptions::uncommitted) count, by one file: readers see all
    /// of them or none. Fragments that count already stay as they are; a name given twice counts
    /// once.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for what is no name of a fragment, [`Error::NotFound`] for a
    /// fragment that is not there or was not written to its end; none counts then. Where a network
    /// brings no answer they may count later: to commit them again does no harm.
    pub fn commit_fragments(&self, names: &[String]) -> Result<()> {
        let head = Head::open(&self.context, &self.uri)?;
        let fragments = parse(names)?;
        let (location, schema) = (&head.location, head.schema_file());
        for (name, version) in &fragments {
            let folder = location.path.join(&fragment_path(name, *version));
            // Written last of all its files, and whole or not at all.
            location
                .storage
                .size(&folder.join(FRAGMENT_METADATA_FILE))?;
        }
        let names: Vec<TimestampedName> = fragments.iter().map(|(name, _)| name.clone()).collect();
        let failed = |commit: &StorePath, error: &Error| {
            if location.storage.locking().is_none() && may_come_late(commit, error) {
                let names = names.iter().map(ToString::to_string);
                self.context.unanswered().extend(names);
            }
        };
        match fragments.as_slice() {
            [] => Ok(()),
            [(name, version)] => {
                let path =
                    commit_path(name, *version).ok_or_else(|| no_fragment(&name.to_string()))?;
                let put = put_if_there(location, Some(&schema), &path, Bytes::new());
                put.inspect_err(|error| failed(&location.path.join(&path), error))
            }
            [(_, version), ..] => commit_listed(location, &schema, &names, *version, &failed),
        }
    }

    /// Removes fragments that were written with
    /// [`uncommitted`](crate::write::WriteOptions::uncommitted) and are not to count.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a fragment that counts already, or may count later, as its commit was
    /// sent through the same context and not answered; nothing is removed then.
    pub fn discard_fragments(&self, names: &[String]) -> Result<()> {
        let (_lock, head) = Head::locked(&self.context, &self.uri)?;
        let commits = head.commits(&self.context)?;
        let counting: HashSet<&str> = (commits.committed.fragments.iter())
            .map(|fragment| fragment.entry.file_name())
            .collect();
        let fragments = parse(names)?;
        let mut folders: Vec<StorePath> = Vec::with_capacity(fragments.len());
        for (name, version) in &fragments {
            let written = name.to_string();
            if self.context.unanswered().contains(&written) {
                return Err(Error::InvalidArgument(format!(
                    "{}: the commit of the fragment {name} was sent and not answered; it may count later",
                    self.uri
                )));
            }
            if counting.contains(written.as_str()) {
                return Err(Error::InvalidArgument(format!(
                    "{}: the fragment {name} counts already; delete it instead",
                    self.uri
                )));
            }
            folders.push(head.location.path.join(&fragment_path(name, *version)));
        }
        head.location.storage.delete(&folders)
    }
}

/// The fragments of these names, each once, oldest first.
fn parse(names: &[String]) -> Result<Vec<(TimestampedName, FormatVersion)>> {
    let mut found = BTreeMap::new();
    for text in names {
        let name = fragment_entry(text).ok_or_else(|| no_fragment(text))?;
        let version = fragment_version(&name).map_err(|_| no_fragment(text))?;
        if !version.has_subdirectories() {
            return Err(no_fragment(text));
        }
        found.insert((name.t_start, name.t_end, text), (name.clone(), version));
    }
    Ok(found.into_values().collect())
}

fn no_fragment(name: &str) -> Error {
    Error::InvalidArgument(format!("{name:?} is no fragment that waits for its commit"))
}
