//! Removing what consolidations have made superfluous.
//!
//! The order is such that an array reads the same after every step: what hides old fragments (their
//! vacuum file) goes last, what makes them count (their commits) first.

use super::commits::is_whole;
use super::folder::folder_of;
use super::{ArrayFolder, Mode};
use crate::array::TimeRange;
use crate::array::directory::{DetailFiles, NamedEntry};
use crate::array::{ArrayHandle, ArrayLock, OpenScope, Snapshot, decode_at, read_objects};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::group::{GroupHandle, ObjectType};
use crate::snapshots::{self, NamedSnapshot};
use crate::storage::{StorePath, Uri};
use azulejo_format::FormatVersion;
use azulejo_format::commit::{IgnoreList, VacuumList};
use azulejo_format::path::{
    FRAGMENT_METADATA_FILE, METADATA_FOLDER, RootFolder, Suffix, commit_path, fragment_version,
    needs_commit, suffixed_commit_path,
};
use azulejo_format::timestamped_name::TimestampedName;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// How to vacuum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct VacuumOptions {
    /// Only find out what would be removed.
    pub dry_run: bool,
    /// Do not find out how many bytes that is, which takes a question a file: [`Vacuumed::bytes`]
    /// is 0.
    pub without_bytes: bool,
}

impl VacuumOptions {
    /// Removes, and counts the bytes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether it only finds out what would be removed.
    #[must_use]
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// Sets whether bytes are not counted.
    #[must_use]
    pub fn without_bytes(mut self, without_bytes: bool) -> Self {
        self.without_bytes = without_bytes;
        self
    }
}

/// What a vacuum has removed, or would remove.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Vacuumed {
    /// Files, in the order of their removal.
    pub files: Vec<StorePath>,
    /// Folders of fragments, which go with the files in them.
    pub folders: Vec<StorePath>,
    /// Bytes of all of them, unless nobody wants to know.
    pub bytes: u64,
    /// What stays though a vacuum file names it.
    pub kept: Vec<Kept>,
    /// Whether nothing was touched.
    pub dry_run: bool,
}

/// Something that a vacuum has left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// What.
    pub path: StorePath,
    /// Why.
    pub reason: &'static str,
}

/// Files and folders that are deleted in one call of the storage, between which a vacuum can be
/// cancelled.
const DELETED_AT_ONCE: usize = 500;

/// Steps of a vacuum, in order.
#[derive(Debug, Default)]
struct Steps {
    /// A file that is written first.
    written: Option<(StorePath, Vec<u8>)>,
    steps: Vec<Vec<StorePath>>,
    result: Vacuumed,
}

impl Steps {
    fn files(&mut self, files: Vec<StorePath>) {
        self.result.files.extend(files.iter().cloned());
        self.steps.push(files);
    }

    fn run(
        self,
        context: &Context,
        location: &Location,
        options: VacuumOptions,
    ) -> Result<Vacuumed> {
        let mut result = self.result;
        result.dry_run = options.dry_run;
        if !options.without_bytes {
            result.bytes = bytes_of(location, &result)?;
        }
        if !options.dry_run {
            if let Some((path, body)) = self.written {
                location.storage.put(&path, body.into())?;
            }
            let total = self.steps.iter().map(Vec::len).sum::<usize>() as u64;
            let mut done = 0;
            let operation = context.begin();
            for some in self
                .steps
                .iter()
                .flat_map(|step| step.chunks(DELETED_AT_ONCE))
            {
                context.report("files", done, total);
                operation.check()?;
                location.storage.delete(some)?;
                done += some.len() as u64;
            }
        }
        Ok(result)
    }
}

/// Bytes of what is about to be removed.
fn bytes_of(location: &Location, result: &Vacuumed) -> Result<u64> {
    let storage = &location.storage;
    // Another process may be removing the same.
    let size = |path: &StorePath| match storage.size(path) {
        Err(Error::NotFound { .. }) => Ok(0),
        size => size,
    };
    let mut bytes = 0u64;
    for path in &result.files {
        bytes = bytes.saturating_add(size(path)?);
    }
    for folder in &result.folders {
        for entry in storage.list(folder)? {
            bytes = bytes.saturating_add(match entry.size {
                Some(size) => size,
                None => size(&folder.join(&entry.name))?,
            });
        }
    }
    Ok(bytes)
}

impl ArrayHandle {
    /// Removes what consolidations of this kind have made superfluous. Readers that opened the
    /// array before the consolidation and still read fail; readers of a time within a dense
    /// consolidated fragment no longer find the cells of that time, unless a
    /// [named snapshot](crate::snapshots) shows them.
    ///
    /// # Errors
    /// Those of reading the array's folder and of the storage; a vacuum that fails can be repeated.
    /// [`Error::Corrupt`] and [`Error::NotFound`] if a fragment that has replaced others is damaged:
    /// those may be the last copies, and stay.
    pub fn vacuum(&self, mode: Mode, options: VacuumOptions) -> Result<Vacuumed> {
        let context = &crate::manifest::without(&self.context);
        let uri = &Uri::parse(&self.uri)?;
        let location = context.locate(uri)?;
        let lock = ArrayLock::wait(&location)?;
        let mut folder = ArrayFolder::at(context, &location)?;
        if mode == Mode::Fragments && !options.dry_run && folder.finish_replacements(&lock)? {
            folder = ArrayFolder::at(context, &location)?;
        }
        let shown = match folder.has_sidecars() {
            true => snapshots::list(&location)?,
            false => Vec::new(),
        };
        if mode == Mode::Fragments {
            verify_replacements(context, uri, &folder)?;
        }
        let steps = match mode {
            Mode::Fragments if shown.is_empty() => fragments(&folder, |_| false)?,
            Mode::Fragments => {
                let is_dense = self.snapshot_to_write()?.schema().is_dense();
                fragments(&folder, |replacement| {
                    (is_dense || !keeps_times(replacement)) && is_shown(&shown, replacement)
                })?
            }
            Mode::Commits => commits(&folder)?,
            Mode::FragmentMetadata => fragment_metadata(&folder),
            Mode::ArrayMetadata => {
                metadata(context, &location, &folder.directory.metadata, &shown)?
            }
        };
        if !options.dry_run {
            lock.confirm(&location)?;
        }
        steps.run(context, &location, options)
    }
}

impl GroupHandle {
    /// Removes files of key-values that a consolidation has made superfluous.
    ///
    /// # Errors
    /// Those of opening the group and of the storage. A vacuum that fails can be repeated.
    pub fn vacuum_metadata(&self, options: VacuumOptions) -> Result<Vacuumed> {
        let context = &crate::manifest::without(&self.context);
        let location = context.locate(&Uri::parse(&self.uri)?)?;
        let lock = ArrayLock::wait(&location)?;
        if ObjectType::at(&location)? != Some(ObjectType::Group) {
            // Opening tells best what lies there instead.
            self.open()?;
        }
        let entries = location
            .storage
            .list(&location.path.join(METADATA_FOLDER))?;
        let files = DetailFiles::parse(RootFolder::Metadata, &entries);
        let shown = snapshots::list(&location)?;
        let steps = metadata(context, &location, &files, &shown)?;
        if !options.dry_run {
            // Else a snapshot may have been named meanwhile that shows what is removed.
            lock.confirm(&location)?;
        }
        steps.run(context, &location, options)
    }
}

/// An error if a fragment is not whole that took the place of what is about to go.
fn verify_replacements(context: &Context, uri: &Uri, folder: &ArrayFolder) -> Result<()> {
    let lists = folder.lists_in_force()?;
    let present = folder.fragment_folders()?;
    let superseded: HashSet<&str> = lists
        .iter()
        .flat_map(|(_, names)| names.iter().map(String::as_str))
        .collect();
    let times: Vec<&TimestampedName> = lists
        .iter()
        .filter(|(_, names)| names.iter().any(|name| present.contains_key(name)))
        .map(|(entry, _)| &entry.name)
        .collect();
    let takes_a_place = |name: &TimestampedName| {
        let mut times = times.iter();
        times.any(|time| time.t_start <= name.t_start && name.t_end <= time.t_end)
    };
    let committed = folder.committed()?.fragments.into_iter();
    let names: HashSet<String> = committed
        .filter(|fragment| takes_a_place(&fragment.entry.name))
        .map(|fragment| fragment.entry.file_name().to_owned())
        .filter(|name| !superseded.contains(name.as_str()))
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let scope = OpenScope {
        fragments: Some(names),
        ..OpenScope::default()
    };
    // Fragments from the future too.
    let ever = TimeRange::until(u64::MAX - 1);
    let opened = Snapshot::open_scope(context, uri, ever, &scope).and_then(|s| s.array());
    match opened {
        Ok(array) => array.fragments().iter().try_for_each(|f| f.verify_files()),
        // Whoever has not the key vacuums as others do: without a look.
        Err(Error::Encryption { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a named snapshot shows what a replacement of this time has replaced.
fn is_shown(shown: &[NamedSnapshot], replacement: &TimestampedName) -> bool {
    let mut moments = shown.iter().map(|snapshot| snapshot.at);
    moments.any(|at| replacement.t_start <= at && at < replacement.t_end)
}

/// Whether the cells of a sparse fragment that has replaced others keep their times, so that it
/// shows every moment that these did. The fragment's own version tells: arrays are upgraded.
fn keeps_times(replacement: &TimestampedName) -> bool {
    fragment_version(replacement).is_ok_and(FormatVersion::may_count_in_part)
}

/// Why something stays for a named snapshot.
const SHOWN: &str = "a named snapshot shows it";

/// Steps that remove fragments, but for those that something which `is_needed` names has replaced.
fn fragments(folder: &ArrayFolder, is_needed: impl Fn(&TimestampedName) -> bool) -> Result<Steps> {
    let mut steps = Steps::default();
    let lists = folder.lists_in_force()?;
    let committed = folder.fragment_names()?;
    let present = folder.fragment_folders()?;
    let superseded: HashSet<&str> = lists
        .iter()
        .flat_map(|(_, names)| names.iter().map(String::as_str))
        .collect();
    let consolidated = folder.consolidated_commits()?;
    let files = folder.commit_files();
    let mut done: BTreeMap<&str, (TimestampedName, String)> = BTreeMap::new();
    let mut vacuum_files = Vec::new();
    for (entry, names) in &lists {
        let stem = stem(entry.file_name());
        let left: Vec<(&str, (TimestampedName, String))> = names
            .iter()
            .filter_map(|name| Some((name.as_str(), folder_of(name)?)))
            .filter(|(name, _)| present.contains_key(*name) || committed.contains(*name))
            .collect();
        // What has replaced them is gone and was not replaced itself: these may be the last copies.
        if !left.is_empty() && !committed.contains(stem) && !superseded.contains(stem) {
            let reason = "the fragment that replaces it is not there";
            steps
                .result
                .kept
                .extend(left.iter().map(|(_, (_, path))| Kept {
                    path: folder.path(path),
                    reason,
                }));
            continue;
        }
        if is_needed(&entry.name) {
            let kept = left.iter().map(|(_, (_, path))| Kept {
                path: folder.path(path),
                reason: SHOWN,
            });
            steps.result.kept.extend(kept);
            continue;
        }
        done.extend(left);
        vacuum_files.push((entry, names));
    }
    let (mut commits, mut ignored, mut metadata_files, mut folders) =
        (vec![], vec![], vec![], vec![]);
    for (name, (parsed, path)) in &done {
        let version = fragment_version(parsed)
            .map_err(|e| Error::decode(folder.path(path).to_string(), e))?;
        if let Some(commit) = commit_path(parsed, version) {
            let file_name = commit.rsplit('/').next().unwrap_or_default();
            if let Some(path) = files.get(file_name) {
                commits.push(folder.path(path));
            } else if !version.has_subdirectories()
                && folder.listings.root.iter().any(|e| e.name == file_name)
            {
                commits.push(folder.path(&commit));
            }
            if let Some(listed) = consolidated.get(file_name) {
                ignored.push((parsed, listed.uri().to_owned()));
            }
        }
        if present.contains_key(*name) {
            // Without a commit only its metadata make it a fragment.
            if !needs_commit(parsed) {
                metadata_files.push(folder.path(path).join(FRAGMENT_METADATA_FILE));
            }
            folders.push(folder.path(path));
        }
    }
    if !ignored.is_empty() {
        let version = folder
            .directory
            .consolidated
            .iter()
            .filter_map(|entry| entry.name.version)
            .max();
        steps.written = Some(ignore_file(folder, version.unwrap_or_default(), &ignored));
    }
    steps.files(commits);
    steps.steps.push(metadata_files);
    steps.result.folders.clone_from(&folders);
    steps.steps.push(folders);
    // The oldest first: a file explains why the fragment that a later one names is gone.
    vacuum_files.sort_by(|(a, _), (b, _)| {
        a.name
            .t_end
            .cmp(&b.name.t_end)
            .then(b.name.t_start.cmp(&a.name.t_start))
    });
    // What is deleted in one step goes in any order.
    let (mut together, mut stems) = (Vec::new(), HashSet::new());
    for (entry, names) in vacuum_files {
        if !entry.path.ends_with(Suffix::Vacuum.text()) {
            continue;
        }
        if names.iter().any(|name| stems.contains(name.as_str())) {
            steps.files(std::mem::take(&mut together));
            stems.clear();
        }
        together.push(folder.path(&entry.path));
        stems.insert(stem(entry.file_name()));
    }
    steps.files(together);
    Ok(steps)
}

/// The file that says which commits in consolidated files no longer count.
fn ignore_file(
    folder: &ArrayFolder,
    version: u32,
    ignored: &[(&TimestampedName, String)],
) -> (StorePath, Vec<u8>) {
    let start = ignored
        .iter()
        .map(|(name, _)| name.t_start)
        .min()
        .unwrap_or(0);
    let end = ignored
        .iter()
        .map(|(name, _)| name.t_end)
        .max()
        .unwrap_or(0);
    let name = TimestampedName::versioned(start, end, version);
    let list = IgnoreList {
        uris: ignored.iter().map(|(_, uri)| uri.clone()).collect(),
    };
    (
        folder.path(&suffixed_commit_path(&name, Suffix::Ignore)),
        list.encode(),
    )
}

fn commits(folder: &ArrayFolder) -> Result<Steps> {
    let mut steps = Steps::default();
    let consolidated = folder.consolidated_commits()?;
    let files = folder.commit_files();
    // Whether a file counts is asked by name; its twin in a consolidated file stands for it.
    let twins = files
        .iter()
        .filter(|(name, _)| consolidated.contains_key(name.as_str()));
    let twins: Vec<StorePath> = twins.map(|(_, path)| folder.path(path)).collect();
    steps.files(twins);
    let total = consolidated.len();
    let decoded = folder.decoded()?;
    let whole = decoded
        .iter()
        .zip(&folder.files.consolidated)
        .rev()
        .find(|(file, _)| is_whole(file, &consolidated, total));
    if whole.is_none() && total > 0 {
        return Ok(steps);
    }
    let keep = whole.map(|(_, (entry, _))| entry.path.as_str());
    let others = folder
        .files
        .consolidated
        .iter()
        .map(|(entry, _)| entry)
        .filter(|e| Some(e.path.as_str()) != keep);
    let others: Vec<StorePath> = others.map(|entry| folder.path(&entry.path)).collect();
    let ignores: Vec<StorePath> = folder
        .directory
        .ignores
        .iter()
        .map(|e| folder.path(&e.path))
        .collect();
    // An ignore file must outlive every file that it is about.
    steps.files(others);
    steps.files(ignores);
    Ok(steps)
}

fn fragment_metadata(folder: &ArrayFolder) -> Steps {
    let mut steps = Steps::default();
    let files = &folder.directory.fragment_meta;
    let newest = files.iter().map(|entry| entry.name.t_end).max();
    let old = files
        .iter()
        .filter(|entry| Some(entry.name.t_end) != newest);
    let old: Vec<StorePath> = old.map(|entry| folder.path(&entry.path)).collect();
    steps.files(old);
    steps
}

fn metadata(
    context: &Context,
    location: &Location,
    files: &DetailFiles,
    shown: &[NamedSnapshot],
) -> Result<Steps> {
    let mut steps = Steps::default();
    let now = TimeRange::ALL.resolved().end;
    let vacuums: Vec<&NamedEntry> = files
        .vacuums
        .iter()
        .filter(|entry| entry.name.t_end <= now)
        .collect();
    let lists = read_objects(
        context,
        location,
        vacuums.iter().map(|entry| entry.path.as_str()),
    )?;
    let lists = vacuums.iter().zip(&lists).map(|(entry, bytes)| {
        let list = decode_at(location, &entry.path, VacuumList::decode(bytes))?;
        Ok((*entry, list.names().map(String::from).collect::<Vec<_>>()))
    });
    let lists: Vec<(&NamedEntry, Vec<String>)> = lists.collect::<Result<_>>()?;
    let present: BTreeMap<&str, &NamedEntry> = files
        .files
        .iter()
        .map(|entry| (entry.file_name(), entry))
        .collect();
    let superseded: HashSet<&str> = lists
        .iter()
        .flat_map(|(_, names)| names.iter().map(String::as_str))
        .collect();
    let (mut old, mut done) = (BTreeSet::new(), Vec::new());
    for (entry, names) in &lists {
        let stem = stem(entry.file_name());
        let left: Vec<&str> = names
            .iter()
            .filter_map(|name| present.get(name.as_str()))
            .map(|e| e.path.as_str())
            .collect();
        if !left.is_empty() && !present.contains_key(stem) && !superseded.contains(stem) {
            let reason = "the file that replaces it is not there";
            let kept = left.iter().map(|path| Kept {
                path: location.path.join(path),
                reason,
            });
            steps.result.kept.extend(kept);
            continue;
        }
        if is_shown(shown, &entry.name) {
            let kept = left.iter().map(|path| Kept {
                path: location.path.join(path),
                reason: SHOWN,
            });
            steps.result.kept.extend(kept);
            continue;
        }
        old.extend(left);
        done.push(*entry);
    }
    done.sort_by(|a, b| {
        a.name
            .t_end
            .cmp(&b.name.t_end)
            .then(b.name.t_start.cmp(&a.name.t_start))
    });
    let old: Vec<StorePath> = old
        .into_iter()
        .map(|path| location.path.join(path))
        .collect();
    steps.files(old);
    steps.files(
        done.into_iter()
            .map(|entry| location.path.join(&entry.path))
            .collect(),
    );
    Ok(steps)
}

fn stem(file_name: &str) -> &str {
    file_name
        .split_once('.')
        .map_or(file_name, |(stem, _)| stem)
}
