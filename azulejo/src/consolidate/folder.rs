//! The folder of an array as maintenance looks at it: all of its commit files, whatever their time.

use crate::array::directory::{Directory, FlatCommit, Listings, NamedEntry};
use crate::array::timeline::Committed;
use crate::array::{ArrayLock, Attempts, CommitFiles, TimeRange, list, read_objects};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::StorePath;
use azulejo_format::commit::{ConsolidatedCommit, ConsolidatedCommits, last_component};
use azulejo_format::path::{COMMITS_FOLDER, Suffix, fragment_path, fragment_version};
use azulejo_format::timestamped_name::TimestampedName;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A snapshot of the commits of an array.
#[derive(Debug)]
pub(crate) struct ArrayFolder {
    pub location: Location,
    pub listings: Listings,
    pub directory: Directory,
    pub files: CommitFiles,
}

impl ArrayFolder {
    /// Lists an array's folder and reads its commits.
    pub fn at(context: &Context, location: &Location) -> Result<Self> {
        let mut attempts = Attempts::new();
        loop {
            let listings = list(location)?;
            let directory = Directory::parse(&listings);
            if !directory.is_array() {
                let uri = location.path.to_string();
                return Err(Error::NotFound {
                    uri,
                    what: "an array: there is no schema",
                });
            }
            let read = Self::read(context, location, listings, directory);
            if !attempts.again(&read) {
                return read;
            }
        }
    }

    fn read(
        context: &Context,
        location: &Location,
        listings: Listings,
        directory: Directory,
    ) -> Result<Self> {
        let entries = CommitFiles::entries(&directory, TimeRange::ALL);
        let paths = entries.map(|entry| entry.path.as_str());
        let mut read = read_objects(context, location, paths)?.into_iter();
        let files = CommitFiles::decode(location, &directory, TimeRange::ALL, &mut read)?;
        Ok(Self {
            location: location.clone(),
            listings,
            directory,
            files,
        })
    }

    /// Whether there may be files of this library's own.
    pub fn has_sidecars(&self) -> bool {
        let mut root = self.listings.root.iter();
        root.any(|entry| entry.name == azulejo_format::path::MANIFEST_FOLDER)
    }

    /// The path of something in the array.
    pub fn path(&self, relative: &str) -> StorePath {
        self.location.path.join(relative)
    }

    /// File names in consolidated commits that no longer count.
    pub fn ignored(&self) -> HashSet<&str> {
        self.files
            .ignores
            .iter()
            .flat_map(|list| &list.uris)
            .map(|uri| last_component(uri))
            .collect()
    }

    /// The consolidated commits files, decoded.
    pub fn decoded(&self) -> Result<Vec<ConsolidatedCommits<'_>>> {
        self.files.decoded(&self.location)
    }

    /// The commits in consolidated files that count, by file name.
    pub fn consolidated_commits(&self) -> Result<BTreeMap<&str, ConsolidatedCommit<'_>>> {
        let ignored = self.ignored();
        let mut commits = BTreeMap::new();
        for decoded in self.decoded()? {
            for commit in decoded.commits {
                if !ignored.contains(commit.name()) {
                    commits.entry(commit.name()).or_insert(commit);
                }
            }
        }
        Ok(commits)
    }

    /// Commits that have a file of their own, which a consolidated one can replace: its path in the
    /// array by its name. Updates count only as files of their own.
    pub fn commit_files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        for entry in &self.directory.written {
            let name = format!("{}{}", entry.file_name(), Suffix::Write.text());
            files.insert(name.clone(), format!("{COMMITS_FOLDER}/{name}"));
        }
        let is_update = |entry: &&NamedEntry| entry.path.ends_with(Suffix::Update.text());
        for entry in self.directory.deletes.iter().filter(|e| !is_update(e)) {
            files.insert(entry.file_name().to_owned(), entry.path.clone());
        }
        for (entry, _) in self
            .directory
            .flat_fragments
            .iter()
            .filter(|(_, c)| *c == FlatCommit::File)
        {
            let name = format!("{}{}", entry.file_name(), Suffix::Ok.text());
            files.insert(name.clone(), name);
        }
        files
    }

    /// All that is committed.
    pub fn committed(&self) -> Result<Committed> {
        self.files.committed(&self.location, &self.directory)
    }

    /// Names of the fragments that are committed.
    pub fn fragment_names(&self) -> Result<HashSet<String>> {
        let committed = self.committed()?;
        Ok(committed
            .fragments
            .iter()
            .map(|f| f.entry.file_name().to_owned())
            .collect())
    }

    /// The vacuum files that count now, with what they name, those of finished replacements
    /// included.
    pub fn lists_in_force(&self) -> Result<Vec<(NamedEntry, Vec<String>)>> {
        let now = TimeRange::ALL.resolved().end;
        let names = self.fragment_names()?;
        let vacuums = self
            .files
            .vacuums
            .iter()
            .map(|(entry, list)| (entry, list.names().map(String::from).collect()));
        let done = self
            .files
            .replacements
            .iter()
            .filter(|(_, list)| list.new.iter().all(|name| names.contains(name)));
        let done = done.map(|(entry, list)| (entry, list.old_names().map(String::from).collect()));
        let in_force = vacuums
            .chain(done)
            .filter(|(entry, _): &(_, Vec<String>)| entry.name.t_end <= now);
        Ok(in_force
            .map(|(entry, names)| (entry.clone(), names))
            .collect())
    }

    /// Names of the fragments that the array may show at a time: those committed that begin by
    /// then, and were not replaced by then.
    pub fn shown_at(&self, at: u64) -> Result<Vec<String>> {
        let replaced = self.lists_in_force()?.into_iter();
        let replaced = replaced.filter(|(entry, _)| entry.name.t_end <= at);
        let replaced: HashSet<String> = replaced.flat_map(|(_, names)| names).collect();
        let committed = self.committed()?.fragments.into_iter();
        let begun = committed.filter(|fragment| fragment.entry.name.t_start <= at);
        let names = begun.map(|fragment| fragment.entry.file_name().to_owned());
        Ok(names.filter(|name| !replaced.contains(name)).collect())
    }

    /// Ends replacements whose new fragments are all committed. Returns whether there were any.
    pub fn finish_replacements(&mut self, lock: &ArrayLock) -> Result<bool> {
        let committed = self.committed()?;
        self.files
            .finish_replacements(lock, &self.location, &committed)
    }

    /// The entries of `__fragments` and of the array's own folder that are named like fragments:
    /// names and paths.
    pub fn fragment_folders(&self) -> Result<HashMap<String, String>> {
        let mut folders: HashMap<String, String> = HashMap::new();
        for (entry, _) in &self.directory.flat_fragments {
            folders.insert(entry.file_name().to_owned(), entry.path.clone());
        }
        let inner = azulejo_format::path::FRAGMENTS_FOLDER;
        for entry in self
            .location
            .storage
            .list(&self.path(inner))?
            .into_iter()
            .filter(|e| e.is_dir)
        {
            if azulejo_format::path::fragment_entry(&entry.name).is_some() {
                let path = format!("{inner}/{}", entry.name);
                folders.insert(entry.name, path);
            }
        }
        Ok(folders)
    }
}

/// The folder of a fragment, relative to its array, judged by its name; `None` for what is no
/// fragment's name.
pub(super) fn folder_of(name: &str) -> Option<(TimestampedName, String)> {
    let parsed = TimestampedName::parse(name).ok()?;
    let path = fragment_path(&parsed, fragment_version(&parsed).ok()?);
    Some((parsed, path))
}
