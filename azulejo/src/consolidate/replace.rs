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
use crate::array::{
    Array, ArrayLock, OpenScope, Snapshot, TimeRange, finish_replacement, replacement_path,
};
use crate::context::Location;
use crate::error::{Error, Result};
use crate::snapshots;
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
    /// Whether cells that earlier moments show are left out.
    pub purged: bool,
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
        if !self.are_still_there(&now)? || self.has_one_in_between(&now, &[])? {
            return discard(written);
        }
        if self.purged
            && let Err(error) = refuse_named(location)
        {
            discard(written)?;
            return Err(error);
        }
        self.commit(written, lock)
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
        Ok(new
            .fragments()
            .iter()
            .any(|fragment| overlap(schema, Some(self.bounds), fragment.reach())))
    }

    /// The steps, of which a crash may leave out the last ones.
    fn commit(&self, written: Written, lock: ArrayLock) -> Result<bool> {
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
        let replacement = Replacement {
            new: (written.fragments.iter())
                .map(|fragment| fragment.name().to_string())
                .collect(),
            old: paths,
        };
        let names: Vec<TimestampedName> = (written.fragments.iter())
            .map(|fragment| fragment.name().clone())
            .collect();
        let vacuum_file = location.path.join(&match version.has_subdirectories() {
            true => suffixed_commit_path(&first, Suffix::Vacuum),
            false => format!("{first}{}", Suffix::Vacuum.text()),
        });
        let lock = if lock.is_claim() && version.has_subdirectories() {
            match decide(location, lock, written, &first, &replacement)? {
                Some(lock) => lock,
                None => return Ok(false),
            }
        } else if !lock.decide(None)? {
            return discard(written);
        } else {
            let held_back = self.whole.schema().allows_dups && version.has_subdirectories();
            self.commit_at_once(written, &first, replacement, held_back, &vacuum_file)?;
            lock
        };
        // Writers have no lock: what was committed between the look and the vacuum file, from which
        // on the old ones do not count, is seen now.
        let schema = self.whole.schema();
        if !schema.allows_dups && !Chosen::are_timed(schema) {
            let now = ArrayFolder::at(self.whole.context(), location)?;
            if self.has_one_in_between(&now, &names)? && lock.is_held() {
                self.take_back(&vacuum_file, &names)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Where nobody else can get the lock before these steps have ended.
    fn commit_at_once(
        &self,
        written: Written,
        first: &TimestampedName,
        replacement: Replacement,
        held_back: bool,
        vacuum_file: &StorePath,
    ) -> Result<()> {
        let location = self.whole.location();
        let storage = &location.storage;
        if held_back {
            let path = replacement_path(location, first);
            storage.put(&path, replacement.encode().into())?;
        }
        for fragment in written.fragments {
            fragment.commit()?;
        }
        if held_back {
            return finish_replacement(location, first, &replacement).map(drop);
        }
        let vacuum = VacuumList {
            uris: replacement.old,
        };
        storage.put(vacuum_file, vacuum.encode().into())
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

/// Where the lock may pass to others in the midst of these steps: one of them decides, which nobody
/// can whose lock has passed on, and the others may be made by whoever has it. Returns the lock;
/// `None`, and nothing is left of the new fragments, if others had it.
fn decide(
    location: &Location,
    lock: ArrayLock,
    written: Written,
    first: &TimestampedName,
    replacement: &Replacement,
) -> Result<Option<ArrayLock>> {
    let path = replacement_path(location, first);
    location.storage.put(&path, replacement.encode().into())?;
    if matches!(lock.decide(Some(first)), Ok(true)) {
        // From here on nothing is cleaned up after an error: it may count.
        return lock.carry_out(location, first).map(Some);
    }
    // Maybe it is decided all the same. Who has the lock anew has carried it out then.
    drop(lock);
    let lock = ArrayLock::wait(location)?;
    match location.storage.size(&path) {
        Err(Error::NotFound { .. }) => Ok(Some(lock)),
        Err(error) => Err(error),
        Ok(_) => {
            location.storage.delete(&[path])?;
            discard(written)?;
            Ok(None)
        }
    }
}

/// An error if a moment has a name, which may show cells that would be purged. The caller holds the
/// lock if none is to get one from then on.
pub(super) fn refuse_named(location: &Location) -> Result<()> {
    match snapshots::list(location)?.first() {
        None => Ok(()),
        Some(snapshot) => Err(Error::InvalidArgument(format!(
            "{}: the named snapshot {:?} may show cells that would be purged; remove it first",
            location.path, snapshot.name
        ))),
    }
}

fn discard(written: Written) -> Result<bool> {
    for fragment in written.fragments {
        fragment.discard()?;
    }
    Ok(false)
}

/// Names of fragments that others have taken the place of.
fn replaced_names(now: &ArrayFolder) -> Result<HashSet<String>> {
    let lists = now.lists_in_force()?.into_iter();
    Ok(lists.flat_map(|(_, names)| names).collect())
}
