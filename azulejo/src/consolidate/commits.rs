//! Many commit files into one.

use super::ArrayFolder;
use crate::array::{
    ArrayHandle, ArrayLock, Attempts, OpenScope, Snapshot, TimeRange, generic_tile, put_if_there,
    read_objects,
};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::{StorePath, Uri};
use azulejo_format::commit::{ConsolidatedCommit, ConsolidatedCommits};
use azulejo_format::path::{Suffix, split_suffix, suffixed_commit_path};
use azulejo_format::timestamped_name::TimestampedName;
use bytes::Bytes;
use std::collections::{BTreeMap, HashSet};

impl ArrayHandle {
    /// Writes one file that stands for all commits of an array, so that opening it lists fewer.
    /// Returns it, or `None` if one file stands for all commits already.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for an array of a version that keeps no commits of this kind: upgrade
    /// it first.
    pub fn consolidate_commits(&self) -> Result<Option<StorePath>> {
        let Self { context, uri } = self;

        let context = &crate::manifest::without(context);
        let location = context.locate(&Uri::parse(uri)?)?;
        let lock = ArrayLock::wait(&location)?;
        let scope = OpenScope {
            fragments: Some(HashSet::new()),
            ..OpenScope::default()
        };
        let array = Snapshot::open_scope(context, &Uri::parse(uri)?, TimeRange::ALL, &scope)?;
        let version = array.schema().version;
        if !version.has_subdirectories() {
            return Err(Error::Unsupported(format!(
                "{}: commits of arrays of format version {version} cannot be consolidated; upgrade the array first",
                location.path
            )));
        }
        let folder = ArrayFolder::at(context, &location)?;
        let mut consolidated = folder.consolidated_commits()?;
        let files = folder.commit_files();
        let new: BTreeMap<&str, &str> = files
            .iter()
            .filter(|(name, _)| !consolidated.contains_key(name.as_str()))
            .map(|(name, path)| (name.as_str(), path.as_str()))
            .collect();
        let total = consolidated.len() + new.len();
        if total == 0
            || folder
                .decoded()?
                .iter()
                .any(|file| is_whole(file, &consolidated, total))
        {
            return Ok(None);
        }
        let is_delete = |name: &str| name.ends_with(Suffix::Delete.text());
        let deletes: Vec<(&str, &str)> = new
            .iter()
            .filter(|(name, _)| is_delete(name))
            .map(|(name, path)| (*name, *path))
            .collect();
        let tiles = read_deletes(context, &location, &deletes)?;
        for (name, path) in new.iter().filter(|(name, _)| !is_delete(name)) {
            consolidated.insert(name, ConsolidatedCommit::Fragment { uri: path });
        }
        for ((name, path), tile) in deletes.iter().zip(&tiles) {
            consolidated.insert(name, ConsolidatedCommit::Delete { uri: path, tile });
        }
        let names: Vec<TimestampedName> = consolidated
            .keys()
            .filter_map(|name| Some(split_suffix(name)?.0))
            .collect();
        let file = ConsolidatedCommits {
            commits: in_order(consolidated),
        };
        // The span of all names, not that of the first and the last in some order: it must not end
        // before it starts.
        let start = names.iter().map(|name| name.t_start).min().unwrap_or(0);
        let end = names.iter().map(|name| name.t_end).max().unwrap_or(0);
        let name = TimestampedName::versioned(start, end, version.number());
        let path = suffixed_commit_path(&name, Suffix::Consolidated);
        lock.confirm(&location)?;
        // A group around it may have been moved meanwhile, whose lock is another one.
        let schema = Some(array.schema_name());
        put_if_there(&location, schema, &path, file.encode().into())?;
        Ok(Some(location.path.join(&path)))
    }
}

/// The files of deletes as they are, once each of them is whole: libtiledb writes them in place.
fn read_deletes(
    context: &Context,
    location: &Location,
    deletes: &[(&str, &str)],
) -> Result<Vec<Bytes>> {
    let paths = || deletes.iter().map(|(_, path)| *path);
    let read = || {
        let tiles = read_objects(context, location, paths())?;
        for (path, tile) in paths().zip(&tiles) {
            generic_tile(context, location, path, tile)?;
        }
        Ok(tiles)
    };

    let mut attempts = Attempts::new();
    loop {
        let tiles = read();
        if !attempts.again(&tiles) {
            return tiles;
        }
    }
}

/// Whether a file holds all `total` commits that count, and no other.
pub(super) fn is_whole(
    file: &ConsolidatedCommits<'_>,
    counting: &BTreeMap<&str, ConsolidatedCommit<'_>>,
    total: usize,
) -> bool {
    let names: HashSet<&str> = file.commits.iter().map(ConsolidatedCommit::name).collect();
    names.len() == total && names.iter().all(|name| counting.contains_key(name))
}

/// Commits by the time in their names.
fn in_order<'a>(commits: BTreeMap<&'a str, ConsolidatedCommit<'a>>) -> Vec<ConsolidatedCommit<'a>> {
    let mut commits: Vec<_> = commits
        .into_iter()
        .map(|(name, commit)| (split_suffix(name), name, commit))
        .collect();
    commits.sort_by(|(a, a_name, _), (b, b_name, _)| match (a, b) {
        (Some((a, _)), Some((b, _))) => a.cmp_by_time(b).then(a_name.cmp(b_name)),
        _ => a_name.cmp(b_name),
    });
    commits.into_iter().map(|(_, _, commit)| commit).collect()
}
