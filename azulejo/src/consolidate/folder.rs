//! The folder of an array as maintenance looks at it: all of its commit files, whatever their time.

use crate::array::directory::{Directory, FlatCommit, Listings, NamedEntry};
use crate::array::timeline::{Committed, committed};
use crate::array::{TimeRange, decode_at, finish_replacement, list, read_objects};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::StorePath;
use azulejo_format::commit::{
    ConsolidatedCommit, ConsolidatedCommits, IgnoreList, Replacement, VacuumList, last_component,
};
use azulejo_format::path::{COMMITS_FOLDER, Suffix, fragment_path, fragment_version};
use azulejo_format::timestamped_name::TimestampedName;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A snapshot of the commits of an array.
#[derive(Debug)]
pub(crate) struct ArrayFolder {
    pub location: Location,
    pub listings: Listings,
    pub directory: Directory,
    /// Vacuum files with their lists.
    pub vacuums: Vec<(NamedEntry, VacuumList)>,
    /// Replacements under way.
    pub replacements: Vec<(NamedEntry, Replacement)>,
    /// Consolidated commits, not decoded.
    pub consolidated: Vec<(NamedEntry, Bytes)>,
    pub ignores: Vec<IgnoreList>,
}

/// Files that a listing has named can be gone when they are read. So often it is tried.
const ATTEMPTS: usize = 5;

impl ArrayFolder {
    /// Lists an array's folder and reads its commits.
    pub fn at(context: &Context, location: &Location) -> Result<Self> {
        let mut attempt = 1;
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
            match Self::read(context, location, listings, directory) {
                Err(Error::NotFound { .. }) if attempt < ATTEMPTS => attempt += 1,
                read => return read,
            }
        }
    }

    fn read(
        context: &Context,
        location: &Location,
        listings: Listings,
        directory: Directory,
    ) -> Result<Self> {
        let lists = [
            &directory.vacuums,
            &directory.replacements,
            &directory.consolidated,
            &directory.ignores,
        ];
        let paths = lists
            .iter()
            .copied()
            .flatten()
            .map(|entry| entry.path.as_str());
        let mut read = read_objects(context, location, paths)?.into_iter();
        let mut take = |entries: &[NamedEntry]| -> Vec<(NamedEntry, Bytes)> {
            entries
                .iter()
                .cloned()
                .zip(read.by_ref().take(entries.len()))
                .collect()
        };
        let (vacuums, replacements) = (take(&directory.vacuums), take(&directory.replacements));
        let (consolidated, ignores) = (take(&directory.consolidated), take(&directory.ignores));
        let vacuums = vacuums.into_iter().map(|(entry, bytes)| {
            let list = decode_at(location, &entry.path, VacuumList::decode(&bytes))?;
            Ok((entry, list))
        });
        let replacements = replacements.into_iter().map(|(entry, bytes)| {
            let list = decode_at(location, &entry.path, Replacement::decode(&bytes))?;
            Ok((entry, list))
        });
        let ignores = ignores
            .iter()
            .map(|(entry, bytes)| decode_at(location, &entry.path, IgnoreList::decode(bytes)));
        Ok(Self {
            location: location.clone(),
            vacuums: vacuums.collect::<Result<_>>()?,
            replacements: replacements.collect::<Result<_>>()?,
            ignores: ignores.collect::<Result<_>>()?,
            consolidated,
            listings,
            directory,
        })
    }

    /// The path of something in the array.
    pub fn path(&self, relative: &str) -> StorePath {
        self.location.path.join(relative)
    }

    /// File names in consolidated commits that no longer count.
    pub fn ignored(&self) -> HashSet<&str> {
        self.ignores
            .iter()
            .flat_map(|list| &list.uris)
            .map(|uri| last_component(uri))
            .collect()
    }

    /// The consolidated commits files, decoded.
    pub fn decoded(&self) -> Result<Vec<ConsolidatedCommits<'_>>> {
        let decode = |(entry, bytes): &'_ (NamedEntry, Bytes)| {
            decode_at(
                &self.location,
                &entry.path,
                ConsolidatedCommits::decode(bytes),
            )
            .map(|_| ())
        };
        self.consolidated.iter().try_for_each(decode)?;
        // Checked above; borrowing through the closure would tie the result to it.
        Ok(self
            .consolidated
            .iter()
            .filter_map(|(_, bytes)| ConsolidatedCommits::decode(bytes).ok())
            .collect())
    }

    /// The commits in consolidated files that count, by file name.
    pub fn consolidated_commits(&self) -> Result<BTreeMap<&str, ConsolidatedCommit<'_>>> {
        let ignored = self.ignored();
        let mut commits = BTreeMap::new();
        for (entry, bytes) in &self.consolidated {
            let decoded = decode_at(
                &self.location,
                &entry.path,
                ConsolidatedCommits::decode(bytes),
            )?;
            for commit in decoded.commits {
                if !ignored.contains(commit.name()) {
                    commits.entry(commit.name()).or_insert(commit);
                }
            }
        }
        Ok(commits)
    }

    /// Commits that have a file of their own: its path in the array by its name.
    pub fn commit_files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        for entry in &self.directory.written {
            let name = format!("{}{}", entry.file_name(), Suffix::Write.text());
            files.insert(name.clone(), format!("{COMMITS_FOLDER}/{name}"));
        }
        for entry in &self.directory.deletes {
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
        Ok(committed(&self.directory, &self.decoded()?, &self.ignores))
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
            .vacuums
            .iter()
            .map(|(entry, list)| (entry, list.names().map(String::from).collect()));
        let done = self
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

    /// Ends replacements whose new fragments are all committed: writes their vacuum files and
    /// removes them. Returns whether there were any.
    pub fn finish_replacements(&self) -> Result<bool> {
        let names = self.fragment_names()?;
        let mut any = false;
        for (entry, list) in &self.replacements {
            if list.new.iter().all(|name| names.contains(name)) {
                finish_replacement(&self.location, &entry.name, list)?;
                any = true;
            }
        }
        Ok(any)
    }

    /// Whether there may be files of this library's own.
    pub fn has_sidecars(&self) -> bool {
        let mut root = self.listings.root.iter();
        root.any(|entry| entry.name == azulejo_format::path::MANIFEST_FOLDER)
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
