//! New fragments in the place of old ones.
//!
//! The result takes it in three steps: its files are written, it is committed, and a vacuum file
//! says which fragments it replaces. In between both count, which changes nothing where duplicates
//! are not allowed: the cells are equal. Where they are allowed, a [`Replacement`] holds the result
//! back until all of it is committed.

use super::ArrayFolder;
use super::choose::Chosen;
use super::merge::Written;
use super::plan::overlap;
use crate::array::{Array, ArrayLock, OpenScope, Snapshot, TimeRange, finish_replacement};
use crate::error::{Error, Result};
use crate::storage::StorePath;
use azulejo_format::commit::{Replacement, VacuumList};
use azulejo_format::path::{
    Suffix, commit_path, fragment_path, fragment_version, suffixed_commit_path,
};
use azulejo_format::timestamped_name::{NameStyle, TimestampedName};
use azulejo_format::{FormatVersion, NdRectangle};
use std::collections::HashSet;

/// The name of the result: its time is that of the fragments together, its place among names of the
/// same time just behind theirs.
pub(super) fn name_of(array: &Array, chosen: &Chosen, version: FormatVersion) -> TimestampedName {
    let names = || {
        chosen
            .fragments
            .iter()
            .filter_map(|i| Some(array.fragments().get(*i)?.timestamped_name()))
    };
    let start = names().map(|name| name.t_start).min().unwrap_or(0);
    let end = names().map(|name| name.t_end).max().unwrap_or(0);
    let mut name = TimestampedName::versioned(start, end, version.number());
    let rivals = array.fragments().iter().any(|fragment| {
        let other = fragment.timestamped_name();
        (other.t_start, other.t_end) == (start, end)
    });
    if let (true, Some(last)) = (rivals, names().next_back()) {
        // Behind the last of them, before any other: a little more than its identifier.
        let digits = (last.style == NameStyle::Versioned && last.uuid.len() == 32)
            .then(|| u128::from_str_radix(&last.uuid, 16).ok())
            .flatten();
        let fresh = u128::from_str_radix(name.uuid.get(24..).unwrap_or("1"), 16).unwrap_or(1) | 1;
        if let Some(more) = digits.and_then(|digits| digits.checked_add(fresh)) {
            name.uuid = format!("{more:032x}");
        }
    }
    name
}

/// What is replaced.
pub(super) struct Replaced<'a> {
    /// The array as it was when they were chosen, with all that counted then.
    pub whole: &'a Array,
    /// The chosen ones, oldest first.
    pub old: Vec<&'a TimestampedName>,
    /// The box around them.
    pub bounds: &'a NdRectangle,
}

impl Replaced<'_> {
    /// Makes the new fragments count in the place of the old ones; `false`, and nothing is left of
    /// the new ones, if they may not any more: another process has replaced some of the old ones, or
    /// has committed one between them.
    pub fn by(&self, written: Written) -> Result<bool> {
        let location = self.whole.location();
        // None can replace, vacuum or delete them between the look and the commit.
        let lock = ArrayLock::wait(location)?;
        let now = ArrayFolder::at(self.whole.context(), location)?;
        if !self.are_still_there(&now)? || self.has_one_in_between(&now, &[])? || !lock.is_held() {
            for fragment in written.fragments {
                fragment.discard()?;
            }
            return Ok(false);
        }
        self.commit(written)
    }

    fn are_still_there(&self, now: &ArrayFolder) -> Result<bool> {
        let counting = now.fragment_names()?;
        let gone = replaced_names(now)?;
        let mut old = self.old.iter().map(ToString::to_string);
        Ok(old.all(|name| counting.contains(&name) && !gone.contains(&name)))
    }

    /// Whether a fragment was committed since they were chosen that would not have been passed over:
    /// its time is that of an earlier moment, where a long write began. The result itself is none. See
    /// [`in_between`](super::choose::Candidates), which has looked at those before.
    fn has_one_in_between(&self, now: &ArrayFolder, own: &[TimestampedName]) -> Result<bool> {
        let schema = self.whole.schema();
        let (Some(first), Some(last)) = (self.old.first(), self.old.last()) else {
            return Ok(false);
        };
        if Chosen::are_timed(schema) {
            return Ok(false);
        }
        let known = self
            .whole
            .fragments()
            .iter()
            .map(|fragment| fragment.name());
        let known: HashSet<&str> = known.collect();
        let gone = replaced_names(now)?;
        let is_between = |name: &TimestampedName| {
            name.cmp_by_time(last).is_lt() && (schema.is_dense() || name.cmp_by_time(first).is_gt())
        };
        let committed = now.committed()?.fragments.into_iter();
        let new: HashSet<String> = committed
            .filter(|fragment| {
                is_between(&fragment.entry.name) && !own.contains(&fragment.entry.name)
            })
            .map(|fragment| fragment.entry.file_name().to_owned())
            .filter(|name| !known.contains(name.as_str()) && !gone.contains(name))
            .collect();
        if new.is_empty() {
            return Ok(false);
        }
        let scope = OpenScope {
            fragments: Some(new),
            ..OpenScope::default()
        };
        let (context, uri) = (self.whole.context(), self.whole.uri());
        let new = Snapshot::open_scope(context, uri, TimeRange::ALL, &scope)?.array()?;
        Ok(new.fragments().iter().any(|fragment| {
            let bounds = fragment.footer().non_empty_domain.as_ref();
            overlap(schema, Some(self.bounds), bounds)
        }))
    }

    /// The steps, of which a crash may leave out the last ones.
    fn commit(&self, written: Written) -> Result<bool> {
        let location = self.whole.location();
        let Some(first) = written
            .fragments
            .first()
            .map(|fragment| fragment.name().clone())
        else {
            return Ok(true);
        };
        let version = fragment_version(&first)
            .map_err(|e| Error::decode(location.path.join(&first.to_string()).to_string(), e))?;
        let mut paths = Vec::with_capacity(self.old.len());
        for name in &self.old {
            let of = fragment_version(name).map_err(|e| Error::decode(name.to_string(), e))?;
            let path = fragment_path(name, of);
            paths.push(match version.has_relative_vacuum_names() {
                true => format!("/{path}"),
                false => location.path.join(&path).to_string(),
            });
        }
        let held_back = self.whole.schema().allows_dups && version.has_subdirectories();
        let replacement = Replacement {
            new: written
                .fragments
                .iter()
                .map(|fragment| fragment.name().to_string())
                .collect(),
            old: paths,
        };
        if held_back {
            let path = suffixed_commit_path(&first, Suffix::Replacement);
            location
                .storage
                .put(&location.path.join(&path), replacement.encode().into())?;
        }
        let mut names = Vec::with_capacity(written.fragments.len());
        for fragment in written.fragments {
            names.push(fragment.commit()?);
        }
        if held_back {
            finish_replacement(location, &first, &replacement)?;
            return Ok(true);
        }
        let vacuum = VacuumList {
            uris: replacement.old,
        };
        let path = match version.has_subdirectories() {
            true => suffixed_commit_path(&first, Suffix::Vacuum),
            false => format!("{first}{}", Suffix::Vacuum.text()),
        };
        let vacuum_file = location.path.join(&path);
        location.storage.put(&vacuum_file, vacuum.encode().into())?;
        // Writers have no lock: what was committed between the look and the vacuum file, from which
        // on the old ones do not count, is seen now.
        if !Chosen::are_timed(self.whole.schema()) {
            let now = ArrayFolder::at(self.whole.context(), location)?;
            if self.has_one_in_between(&now, &names)? {
                self.take_back(&vacuum_file, &names)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes what was just committed: without the vacuum file the old ones count again, which
    /// hold the same cells.
    fn take_back(&self, vacuum_file: &StorePath, names: &[TimestampedName]) -> Result<()> {
        let location = self.whole.location();
        let path = |path: String| location.path.join(&path);
        let (mut commits, mut folders) = (Vec::new(), Vec::new());
        for name in names {
            let version = fragment_version(name)
                .map_err(|e| Error::decode(path(name.to_string()).to_string(), e))?;
            commits.extend(commit_path(name, version).map(path));
            folders.push(path(fragment_path(name, version)));
        }
        location.storage.delete(std::slice::from_ref(vacuum_file))?;
        location.storage.delete(&commits)?;
        location.storage.delete(&folders)
    }
}

/// Names of fragments that others have taken the place of.
fn replaced_names(now: &ArrayFolder) -> Result<HashSet<String>> {
    let lists = now.lists_in_force()?.into_iter();
    Ok(lists.flat_map(|(_, names)| names).collect())
}
