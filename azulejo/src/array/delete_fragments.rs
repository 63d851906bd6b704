//! Deleting fragments, by a range of time or by name.

use super::head::{Commits, Head};
use super::tile_object::{gone, is_still_there};
use super::timeline::CommittedFragment;
use super::{ArrayHandle, TimeRange};
use crate::context::Location;
use crate::error::{Error, Result};
use crate::snapshots;
use crate::storage::StorePath;
use azulejo_format::FormatVersion;
use azulejo_format::commit::{ConsolidatedCommit, ConsolidatedCommits, IgnoreList, last_component};
use azulejo_format::path::{
    COMMITS_FOLDER, FRAGMENT_METADATA_FILE, Suffix, commit_path, fragment_version,
    suffixed_commit_path,
};
use azulejo_format::timestamped_name::TimestampedName;
use bytes::Bytes;
use std::collections::HashSet;

/// Which fragments to delete.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum FragmentSelection<'a> {
    /// Those with all of their time in a range; what consolidations have replaced included.
    Within(TimeRange),
    /// Those with these names (or URIs, of which the last component counts).
    Named(&'a [String]),
}

/// Fragments that were, or would be, deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DeletedFragments {
    /// Their names, oldest first.
    pub deleted: Vec<String>,
    /// Names of those that stay because only a part of their time lies in the range.
    pub kept_in_part: Vec<String>,
}

impl ArrayHandle {
    /// Deletes fragments for good, at all times.
    ///
    /// All go at one stroke: their commits move to a consolidated commits file, and one ignore file
    /// says that they do not count any more. Only fragments below format version 12 go one by one.
    /// A crash at any point leaves a readable array.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a name that the array does not have, and for a fragment that a
    /// [named snapshot](crate::snapshots) shows; nothing is deleted then.
    pub fn delete_fragments(&self, selection: FragmentSelection<'_>) -> Result<DeletedFragments> {
        let Self { context, uri } = self;

        let (lock, head) = Head::locked(context, uri)?;
        let mut commits = head.commits(context)?;
        let (first, _) = choose(&head, &commits, selection)?;
        refuse_shown(&head, &commits, &first)?;
        if !first.is_empty() {
            // Else the deletion of a new fragment would bring back what it has replaced.
            let Commits {
                committed, files, ..
            } = &mut commits;
            files.finish_replacements(&lock, &head.location, committed)?;
        }
        let (chosen, report) = choose(&head, &commits, selection)?;
        if !chosen.is_empty() {
            lock.confirm(&head.location)?;
            let written = delete(&head, &commits, &chosen)?;
            let Location { storage, path } = &head.location;
            // A group around it may have been moved meanwhile, whose lock is another one.
            if !is_still_there(&head.location, Some(&head.schema_file()))? {
                storage.delete(&written)?;
                storage.remove_empty_folder(&path.join(COMMITS_FOLDER))?;
                storage.remove_empty_folder(path)?;
                return Err(gone(&head.location));
            }
        }
        Ok(report)
    }

    /// What [`Self::delete_fragments`] would delete; deletes nothing.
    ///
    /// # Errors
    /// As [`Self::delete_fragments`].
    pub fn plan_fragment_deletion(
        &self,
        selection: FragmentSelection<'_>,
    ) -> Result<DeletedFragments> {
        let Self { context, uri } = self;

        let head = Head::open(context, uri)?;
        let commits = head.commits(context)?;
        let (chosen, report) = choose(&head, &commits, selection)?;
        refuse_shown(&head, &commits, &chosen)?;
        Ok(report)
    }
}

/// An error if a named snapshot shows one of these fragments.
fn refuse_shown(head: &Head, commits: &Commits, chosen: &[&CommittedFragment]) -> Result<()> {
    if chosen.is_empty() {
        return Ok(());
    }
    let timed = !head.schema.is_dense() && head.schema.version.may_count_in_part();
    for snapshot in snapshots::list(&head.location)? {
        let at = snapshot.at;
        let replaced = commits.files.vacuums.iter();
        let replaced = replaced.filter(|(entry, _)| entry.name.t_end <= at);
        let replaced: HashSet<&str> = replaced.flat_map(|(_, list)| list.names()).collect();
        let shown = chosen.iter().find(|fragment| {
            let name = &fragment.entry.name;
            let begins = if timed { name.t_start } else { name.t_end };
            begins <= at && !replaced.contains(fragment.entry.file_name())
        });
        if let Some(fragment) = shown {
            return Err(Error::InvalidArgument(format!(
                "{}: the named snapshot {:?} shows fragment {}; remove the snapshot first, or leave the fragment",
                head.uri,
                snapshot.name,
                fragment.entry.file_name()
            )));
        }
    }
    Ok(())
}

fn choose<'a>(
    head: &Head,
    commits: &'a Commits,
    selection: FragmentSelection<'_>,
) -> Result<(Vec<&'a CommittedFragment>, DeletedFragments)> {
    let all = &commits.committed.fragments;
    let (mut chosen, mut kept_in_part) = (Vec::new(), Vec::new());
    match selection {
        FragmentSelection::Within(time) => {
            for fragment in all {
                let name = &fragment.entry.name;
                if time.contains(name) {
                    chosen.push(fragment);
                } else if time.overlaps(name) {
                    kept_in_part.push(fragment.entry.file_name().to_owned());
                }
            }
        }
        FragmentSelection::Named(names) => {
            let mut wanted: HashSet<&str> = names
                .iter()
                .map(|name| last_component(name.trim_end_matches('/')))
                .collect();
            chosen = all
                .iter()
                .filter(|fragment| wanted.remove(fragment.entry.file_name()))
                .collect();
            let mut missing: Vec<&str> = wanted.into_iter().collect();
            missing.sort_unstable();
            if let Some(name) = missing.first() {
                return Err(Error::InvalidArgument(format!(
                    "{}: there is no fragment {name:?}",
                    head.uri
                )));
            }
        }
    }
    let deleted = chosen
        .iter()
        .map(|fragment| fragment.entry.file_name().to_owned())
        .collect();
    Ok((
        chosen,
        DeletedFragments {
            deleted,
            kept_in_part,
        },
    ))
}

/// Deletes fragments; returns the files that were written.
fn delete(head: &Head, commits: &Commits, chosen: &[&CommittedFragment]) -> Result<Vec<StorePath>> {
    let (location, storage) = (&head.location, &head.location.storage);
    let at = |path: &str| location.path.join(path);
    // Files that make fragments exist: of old ones, which go one by one, and of others.
    let (mut old, mut files): (Vec<StorePath>, Vec<StorePath>) = Default::default();
    let (mut ignored, mut alone): (Vec<(&TimestampedName, String)>, Vec<String>) =
        Default::default();
    for fragment in chosen {
        let (path, name) = (&fragment.entry.path, &fragment.entry.name);
        let version = fragment_version(name).map_err(|e| Error::decode(at(path).to_string(), e))?;
        match commit_path(name, version) {
            Some(commit) if commits.consolidated.contains(last_component(&commit)) => {
                files.push(at(&commit));
                ignored.push((name, commit));
            }
            Some(commit) if version.has_subdirectories() && chosen.len() > 1 => {
                files.push(at(&commit));
                ignored.push((name, commit.clone()));
                alone.push(commit);
            }
            Some(commit) => old.push(at(&commit)),
            // Such a fragment exists as long as it has metadata.
            None => old.push(at(path).join(FRAGMENT_METADATA_FILE)),
        }
    }
    let start = ignored.iter().map(|(name, _)| name.t_start).min();
    let mut written = Vec::new();
    if let (Some(start), Some(end)) = (start, ignored.iter().map(|(name, _)| name.t_end).max()) {
        let name = || TimestampedName::versioned(start, end, FormatVersion::CURRENT.number());
        if !alone.is_empty() {
            let commits = alone
                .iter()
                .map(|uri| ConsolidatedCommit::Fragment { uri })
                .collect();
            let body = ConsolidatedCommits { commits }.encode();
            let file = at(&suffixed_commit_path(&name(), Suffix::Consolidated));
            storage.put(&file, Bytes::from(body))?;
            written.push(file);
        }
        // They still count, by the consolidated commits.
        storage.delete(&files)?;
        let list = IgnoreList {
            uris: ignored.into_iter().map(|(_, commit)| commit).collect(),
        };
        let file = at(&suffixed_commit_path(&name(), Suffix::Ignore));
        storage.put(&file, Bytes::from(list.encode()))?;
        written.push(file);
    }
    storage.delete(&old)?;
    let folders: Vec<StorePath> = chosen
        .iter()
        .map(|fragment| at(&fragment.entry.path))
        .collect();
    storage.delete(&folders)?;
    // A vacuum file hides what a deleted fragment replaced: it may go only once that is gone, too.
    let gone: HashSet<&str> = chosen
        .iter()
        .map(|fragment| fragment.entry.file_name())
        .collect();
    let left: HashSet<&str> = (commits.committed.fragments.iter())
        .map(|fragment| fragment.entry.file_name())
        .filter(|name| !gone.contains(name))
        .collect();
    let stale = commits.files.vacuums.iter().filter(|(entry, list)| {
        let stem = entry.file_name().split('.').next().unwrap_or_default();
        gone.contains(stem) && list.names().all(|name| !left.contains(name))
    });
    // So may what is left of a consolidation that never came to its end.
    let given_up = commits.files.replacements.iter().filter(|(_, list)| {
        let any = |name: &String| left.contains(name.as_str());
        !list.new.iter().any(any) && list.new.iter().any(|name| gone.contains(name.as_str()))
    });
    let files = stale
        .map(|(entry, _)| &entry.path)
        .chain(given_up.map(|(entry, _)| &entry.path));
    storage.delete(&files.map(|path| at(path)).collect::<Vec<_>>())?;
    Ok(written)
}
