//! What those who change an array need to know of it: its latest schema, and which fragments and
//! deletes are committed. Fragments are not looked at.

use super::again::Attempts;
use super::commit_files::CommitFiles;
use super::directory::{Directory, Listings};
use super::objects::{decode_at, read_objects};
use super::open::no_array;
use super::tile_object::read_tile;
use super::timeline::{Committed, committed, select_schema};
use super::{ArrayLock, TimeRange};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::{Entry, Uri};
use azulejo_format::ArraySchema;
use azulejo_format::path::{LEGACY_SCHEMA_FILE, RootFolder, enumeration_path};
use azulejo_format::schema::Enumeration;
use azulejo_format::timestamped_name::TimestampedName;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

/// An array's latest schema, whatever its time.
#[derive(Debug)]
pub(crate) struct Head {
    /// Where the array lies.
    pub uri: Uri,
    /// Its folder.
    pub location: Location,
    /// The latest schema.
    pub schema: Arc<ArraySchema>,
    /// The name of the latest schema's file, unless it is the one of versions before 10, which has
    /// no time.
    pub schema_name: Option<TimestampedName>,
    /// The names of all schemas' files but the one of those versions.
    pub schema_names: Vec<TimestampedName>,
    /// The array's own folder, once it was listed.
    root: OnceLock<Vec<Entry>>,
}

/// All commits of an array.
#[derive(Debug)]
pub(crate) struct Commits {
    /// Fragments and deletes that exist.
    pub committed: Committed,
    /// The files that say so.
    pub files: CommitFiles,
    /// Names of the commits in consolidated commits files, with their suffixes.
    pub consolidated: HashSet<String>,
}

impl Head {
    /// Reads the latest schema, which also shows whether the context's key is the array's.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no array, [`Error::Encryption`] for a missing, wrong or
    /// unneeded key.
    pub fn open(context: &Context, uri: &str) -> Result<Self> {
        Self::open_at(context, uri, TimeRange::ALL)
    }

    /// Whether the schema at a time may be another one than the latest.
    pub fn schemas_differ_at(&self, time: u64) -> bool {
        let latest = self.schema_name.as_ref();
        latest.is_some_and(|latest| time < latest.t_end)
    }

    /// As [`Self::open`], while nobody else changes what the array consists of.
    pub fn locked(context: &Context, uri: &str) -> Result<(ArrayLock, Self)> {
        let location = context.locate(&Uri::parse(uri)?)?;
        let lock = ArrayLock::wait(&location)?;
        Ok((lock, Self::open(context, uri)?))
    }

    /// As [`Self::open`], with the schema at the end of `time`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_at(context: &Context, uri: &str, time: TimeRange) -> Result<Self> {
        let uri = Uri::parse(uri)?;
        let location = context.locate(&uri)?;
        let schema = location
            .storage
            .list(&location.path.join(RootFolder::Schema.name()))?;
        let mut directory = Directory::parse(&Listings {
            schema: schema.clone(),
            ..Listings::default()
        });
        let root = OnceLock::new();
        // A schema in the array's own folder is older than all others.
        if !directory
            .schemas
            .iter()
            .any(|schema| schema.name.t_end <= time.end)
        {
            let entries = location.storage.list(&location.path)?;
            directory = Directory::parse(&Listings {
                root: entries.clone(),
                schema,
                ..Listings::default()
            });
            let _ = root.set(entries);
        }
        let latest = select_schema(&directory, time);
        let found = directory
            .schema_files()
            .find(|(_, name)| Some(*name) == latest);
        let Some((path, name)) = found else {
            return Err(no_array(&location, &directory));
        };
        let payload = read_tile(context, &location, path)?;
        let schema = Arc::new(decode_at(&location, path, ArraySchema::decode(&payload))?);
        let schema_name = directory
            .schemas
            .iter()
            .find(|s| s.file_name() == name)
            .map(|s| s.name.clone());
        let schema_names = directory
            .schemas
            .into_iter()
            .map(|schema| schema.name)
            .collect();
        Ok(Self {
            uri,
            location,
            schema,
            schema_name,
            schema_names,
            root,
        })
    }

    /// The file name of the schema.
    #[must_use]
    pub fn schema_file(&self) -> String {
        self.schema_name
            .as_ref()
            .map_or_else(|| LEGACY_SCHEMA_FILE.to_owned(), ToString::to_string)
    }

    /// Reads an enumeration of the schema.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if the schema has no such enumeration.
    pub fn enumeration(&self, context: &Context, name: &str) -> Result<Enumeration> {
        let reference = self.schema.enumeration(name).ok_or_else(|| {
            Error::SchemaMismatch(format!("{}: there is no enumeration {name:?}", self.uri))
        })?;
        let path = enumeration_path(&reference.file_name);
        let payload = read_tile(context, &self.location, &path)?;
        decode_at(&self.location, &path, Enumeration::decode(&payload))
    }

    /// Reads all commits.
    pub fn commits(&self, context: &Context) -> Result<Commits> {
        let mut attempts = Attempts::new();
        let mut commits = self.commits_beside(context, self.root.get());
        while attempts.again(&commits) {
            commits = self.commits_beside(context, None);
        }
        commits
    }

    /// All commits, of an array whose own folder was listed already or is listed with them.
    fn commits_beside(&self, context: &Context, root: Option<&Vec<Entry>>) -> Result<Commits> {
        let location = &self.location;
        let mut paths = vec![location.path.join(RootFolder::Commits.name())];
        if root.is_none() {
            paths.push(location.path.clone());
        }
        let mut listed = location.storage.list_all(&paths)?.into_iter();
        let commits = listed.next().unwrap_or_default();
        let root = match root {
            Some(root) => root.clone(),
            None => listed.next().unwrap_or_default(),
        };
        let _ = self.root.set(root.clone());
        let directory = Directory::parse(&Listings {
            root,
            commits,
            ..Listings::default()
        });
        let entries = CommitFiles::entries(&directory, TimeRange::ALL);
        let paths = entries.map(|entry| entry.path.as_str());
        let mut read = read_objects(context, location, paths)?.into_iter();
        let files = CommitFiles::decode(location, &directory, TimeRange::ALL, &mut read)?;
        let decoded = files.decoded(location)?;
        let names = decoded.iter().flat_map(|file| &file.commits);
        let consolidated = names.map(|commit| commit.name().to_owned()).collect();
        let committed = committed(&directory, &decoded, &files.ignores);
        drop(decoded);
        Ok(Commits {
            committed,
            files,
            consolidated,
        })
    }
}
