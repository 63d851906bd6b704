//! The files of an array's commits that are more than a name.

use super::directory::{Directory, NamedEntry};
use super::lock::finish_replacement;
use super::objects::decode_at;
use super::timeline::{Committed, committed};
use super::{ArrayLock, TimeRange};
use crate::context::Location;
use crate::error::Result;
use azulejo_format::commit::{ConsolidatedCommits, IgnoreList, Replacement, VacuumList};
use azulejo_format::path::{Suffix, suffixed_commit_path};
use bytes::Bytes;

/// Vacuum files, replacements under way, ignore files and consolidated commits: read together,
/// whoever needs them.
#[derive(Debug, Default)]
pub(crate) struct CommitFiles {
    /// Vacuum files with what they name.
    pub vacuums: Vec<(NamedEntry, VacuumList)>,
    /// Replacements under way.
    pub replacements: Vec<(NamedEntry, Replacement)>,
    pub ignores: Vec<IgnoreList>,
    /// Consolidated commits, not decoded: what is decoded borrows from them.
    pub consolidated: Vec<(NamedEntry, Bytes)>,
}

impl CommitFiles {
    /// The files to read, in the order in which [`Self::decode`] takes them; of vacuum files those
    /// with some of their time in `time`.
    pub fn entries(directory: &Directory, time: TimeRange) -> impl Iterator<Item = &NamedEntry> {
        let vacuums = directory.vacuums.iter();
        vacuums
            .filter(move |entry| time.overlaps(&entry.name))
            .chain(&directory.replacements)
            .chain(&directory.ignores)
            .chain(&directory.consolidated)
    }

    /// Takes the files' bytes, in the order of [`Self::entries`], from the front of what was read.
    pub fn decode(
        location: &Location,
        directory: &Directory,
        time: TimeRange,
        read: &mut impl Iterator<Item = Bytes>,
    ) -> Result<Self> {
        let counts = |entry: &&NamedEntry| time.overlaps(&entry.name);
        let mut files = Self::default();
        for (entry, bytes) in directory.vacuums.iter().filter(counts).zip(read.by_ref()) {
            let list = decode_at(location, &entry.path, VacuumList::decode(&bytes))?;
            files.vacuums.push((entry.clone(), list));
        }
        for (entry, bytes) in directory.replacements.iter().zip(read.by_ref()) {
            let list = decode_at(location, &entry.path, Replacement::decode(&bytes))?;
            files.replacements.push((entry.clone(), list));
        }
        for (entry, bytes) in directory.ignores.iter().zip(read.by_ref()) {
            let list = decode_at(location, &entry.path, IgnoreList::decode(&bytes))?;
            files.ignores.push(list);
        }
        let consolidated = directory.consolidated.iter().cloned();
        files.consolidated = consolidated.zip(read).collect();
        Ok(files)
    }

    /// The consolidated commits files, decoded.
    pub fn decoded(&self, location: &Location) -> Result<Vec<ConsolidatedCommits<'_>>> {
        let files = self.consolidated.iter();
        files
            .map(|(entry, bytes)| {
                decode_at(location, &entry.path, ConsolidatedCommits::decode(bytes))
            })
            .collect()
    }

    /// All that is committed.
    pub fn committed(&self, location: &Location, directory: &Directory) -> Result<Committed> {
        Ok(committed(
            directory,
            &self.decoded(location)?,
            &self.ignores,
        ))
    }

    /// Ends replacements whose new fragments are all committed: writes their vacuum files and
    /// removes them. Returns whether there were any.
    pub fn finish_replacements(
        &mut self,
        _lock: &ArrayLock,
        location: &Location,
        committed: &Committed,
    ) -> Result<bool> {
        let exists = |name: &String| {
            let mut fragments = committed.fragments.iter();
            fragments.any(|fragment| fragment.entry.file_name() == name)
        };
        let mut any = false;
        for (entry, list) in self
            .replacements
            .extract_if(.., |(_, list)| list.new.iter().all(exists))
        {
            let vacuum = finish_replacement(location, &entry.name, &list)?;
            let path = suffixed_commit_path(&entry.name, Suffix::Vacuum);
            self.vacuums.push((NamedEntry { path, ..entry }, vacuum));
            any = true;
        }
        Ok(any)
    }
}
