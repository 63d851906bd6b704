//! Opening an array: listings, then schemas and commits, each as one batch of IO. The fragments'
//! footers are another step.

use super::again::Attempts;
use super::commit_files::CommitFiles;
use super::directory::{DetailFiles, Directory, Listings, NamedEntry, OtherObject};
use super::objects::{decode_at, generic_tile, read_objects_as};
use super::schemas::Schemas;
use super::timeline::{
    Committed, CommittedFragment, DeleteFile, PartialOverlap, replaced, select_deletes,
    select_fragments, select_schema,
};
use super::{DeleteCommit, TimeRange};
use crate::cancel::Operation;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::{StorePath, Tail, Uri, Waiting, block_on};
use azulejo_format::commit::{Delete, Update, VacuumList};
use azulejo_format::path::{FRAGMENT_METADATA_FILE, RootFolder, Suffix, fragment_version};
use azulejo_format::{ArraySchema, FormatVersion};
use bytes::Bytes;
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Bytes read from the end of a fragment's metadata file, where they cost little. Footers are a
/// tenth of that; the rest is often all of the metadata that a small fragment has.
pub(super) const TAIL_LEN: u64 = 8192;

/// Of more fragments than this only the footers are read, where bytes travel over a network.
pub(super) const FEW_TAILS: usize = 8;

/// An array whose folders were listed, and whose schemas and commits were read.
pub(super) struct Opened {
    pub location: Location,
    /// The time asked for; an open end is the time when the folders had been listed.
    pub time: TimeRange,
    pub schemas: Schemas,
    pub metadata_files: DetailFiles,
    pub unread: Unread,
}

/// What commits say of fragments that were not looked at.
#[derive(Debug)]
pub(super) struct Unread {
    pub committed: Committed,
    /// Vacuum files and what they name.
    pub vacuums: Vec<(NamedEntry, VacuumList)>,
    pub deletes: Vec<DeleteCommit>,
    /// Consolidated fragment metadata: paths relative to the array, and generic tiles.
    pub fragment_meta: Vec<(String, Bytes)>,
    /// Ends of metadata files that were read beside the schemas.
    pub tails: HashMap<StorePath, Tail>,
}

impl Unread {
    /// The names of the fragments and deletes that count at a time, oldest first; `None` if the
    /// fragments would have to tell.
    pub(super) fn names(&self, time: TimeRange, dense: bool) -> Option<(Vec<String>, Vec<String>)> {
        let partial = PartialOverlap::of(dense);
        let selected = select_fragments(
            &self.committed,
            &self.vacuums,
            time,
            partial,
            &HashSet::new(),
        );
        let current = selected.current.iter();
        let fragments = current.map(|&i| {
            let fragment = self.committed.fragments.get(i)?;
            let is_certain = !fragment.uncertain && time.contains(&fragment.entry.name);
            is_certain.then(|| fragment.entry.file_name().to_owned())
        });
        let deletes = self.deletes.iter().map(|delete| delete.name.clone());
        Some((fragments.collect::<Option<_>>()?, deletes.collect()))
    }

    /// Whether a fragment that was made of several lies in a time in part, and does not count in it.
    pub(super) fn has_replaced_in_part(&self, time: TimeRange, dense: bool) -> bool {
        let fragments = self.committed.fragments.iter().map(|f| &f.entry.name);
        fragments
            .filter(|name| time.overlaps(name) && !time.contains(name))
            .any(|name| {
                dense || !fragment_version(name).is_ok_and(FormatVersion::may_count_in_part)
            })
    }
}

/// What to open of an array instead of all that counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OpenScope {
    /// File names of the fragments that count; others do not. `None`: all.
    pub fragments: Option<HashSet<String>>,
    /// Names of the deletes that count; others do not. `None`: all.
    pub deletes: Option<HashSet<String>>,
    /// Fragments that count though no commit says so.
    pub uncommitted: Vec<NamedEntry>,
    /// File name of the schema to take for the latest.
    pub schema: Option<String>,
    /// Whether fragments count that were replaced.
    pub superseded: bool,
    /// Whether only the schemas are looked at: no fragments, deletes, metadata.
    pub schemas_only: bool,
}

/// Opens the array at `uri`. An open end of `time` is the time of opening.
pub(super) async fn open(
    context: &Context,
    uri: &Uri,
    time: TimeRange,
    scope: &OpenScope,
    waiting: Waiting,
) -> Result<Opened> {
    let operation = context.begin();
    let opening = open_for(&operation, context, uri, time, scope, waiting);
    operation.drives(opening).await
}

async fn open_for(
    operation: &Operation,
    context: &Context,
    uri: &Uri,
    time: TimeRange,
    scope: &OpenScope,
    waiting: Waiting,
) -> Result<Opened> {
    let mut attempts = Attempts::new();
    loop {
        operation.check()?;
        let location = crate::manifest::locate(context, uri)?;
        let listed = if scope.schemas_only {
            list_schemas(&location, waiting).await
        } else {
            list_as(&location, waiting).await
        };
        let directory = Directory::parse(&listed?);
        if !directory.is_array() {
            return Err(no_array(&location, &directory));
        }
        operation.check()?;
        // What was listed was written by now: a consolidation that has ended meanwhile, whose old
        // fragments may be gone, lies in this time as a whole.
        let time = time.resolved();
        let opened = open_listed(context, location, time, scope, &directory, waiting).await;
        if !attempts.again(&opened) {
            return opened;
        }
    }
}

async fn open_listed(
    context: &Context,
    location: Location,
    time: TimeRange,
    scope: &OpenScope,
    directory: &Directory,
    waiting: Waiting,
) -> Result<Opened> {
    // Ends of metadata files come beside the schemas. What has failed is tried again when it turns
    // out to be needed.
    let likely = likely_fragments(&location, time, scope, directory);
    let tails = (!likely.is_empty()).then(|| {
        let storage = &location.storage;
        storage.start_read_tails(likely.clone(), TAIL_LEN)
    });
    let files = read_files(context, &location, time, directory, waiting).await?;
    let tails = match tails {
        Some(tails) => tails.await.unwrap_or_default(),
        None => Vec::new(),
    };
    let tails = likely.into_iter().zip(tails).collect();
    let FetchedFiles {
        mut schemas,
        commits,
        deletes,
        fragment_meta,
    } = files;
    if let Some(name) = &scope.schema {
        let latest = schemas
            .named(name)
            .map_err(|e| Error::decode(location.path.to_string(), e))?;
        schemas = Schemas::new(schemas.all, latest, name.clone());
    }
    let mut committed = commits.committed(&location, directory)?;
    let CommitFiles {
        mut vacuums,
        replacements,
        ..
    } = commits;
    vacuums.extend(
        replacements
            .into_iter()
            .map(|(entry, list)| (entry, replaced(&committed, list))),
    );
    if scope.superseded {
        vacuums.clear();
    }
    let uncommitted = scope.uncommitted.iter().map(|entry| CommittedFragment {
        entry: entry.clone(),
        uncertain: false,
    });
    committed.fragments.extend(uncommitted);
    if let Some(names) = &scope.fragments {
        committed
            .fragments
            .retain(|fragment| names.contains(fragment.entry.file_name()));
    }
    let counts = |delete: &&DeleteFile| {
        let names = scope.deletes.as_ref();
        names.is_none_or(|names| names.contains(&delete.path))
    };
    let selected = select_deletes(&committed, time).filter(counts);
    let deletes = read_deletes(context, &location, selected, &deletes)?;
    if !scope.schemas_only {
        let compared = schemas.compare_labels(context, &location, &deletes, waiting);
        compared.await?;
    }
    let unread = Unread {
        committed,
        vacuums,
        deletes,
        fragment_meta,
        tails,
    };
    Ok(Opened {
        location,
        time,
        schemas,
        metadata_files: directory.metadata.clone(),
        unread,
    })
}

/// The conditions of deletes, and of updates: what these change nobody writes, so that readers leave
/// out the cells, as the reference does.
fn read_deletes<'a>(
    context: &Context,
    location: &Location,
    selected: impl Iterator<Item = &'a DeleteFile>,
    files: &HashMap<&str, Bytes>,
) -> Result<Vec<DeleteCommit>> {
    let decode = |delete: &DeleteFile| {
        let tile = delete
            .tile
            .as_deref()
            .or_else(|| files.get(delete.path.as_str()).map(|b| &b[..]));
        let path = &delete.path;
        let payload = generic_tile(context, location, path, tile.unwrap_or_default())?;
        let kept = match path.ends_with(Suffix::Update.text()) {
            true => decode_at(location, path, Update::decode(&payload))?.kept,
            false => decode_at(location, path, Delete::decode(&payload))?.kept,
        };
        Ok(DeleteCommit {
            name: path.clone(),
            timestamp: delete.name.t_start,
            kept,
        })
    };
    selected.map(decode).collect()
}

/// The metadata files of a few fragments that count as far as names tell: they can be read beside
/// the schemas, which would tell how long a footer is. None where reads begin at once, and where
/// commits are more than names.
fn likely_fragments(
    location: &Location,
    time: TimeRange,
    scope: &OpenScope,
    directory: &Directory,
) -> Vec<StorePath> {
    let Directory {
        written,
        flat_fragments,
        ..
    } = directory;
    let lists = [
        &directory.consolidated,
        &directory.ignores,
        &directory.vacuums,
        &directory.replacements,
    ];
    let is_plain = lists.iter().all(|list| list.is_empty()) && flat_fragments.is_empty();
    if !is_plain || scope.schemas_only || location.storage.latency().is_low() {
        return Vec::new();
    }
    // Those written before are in there.
    let consolidated = directory.fragment_meta.iter().map(|entry| entry.name.t_end);
    let consolidated = consolidated.max();
    let counts = |entry: &&NamedEntry| {
        time.contains(&entry.name)
            && consolidated.is_none_or(|until| entry.name.t_start > until)
            && scope
                .fragments
                .as_ref()
                .is_none_or(|names| names.contains(entry.file_name()))
    };
    let likely: Vec<&NamedEntry> = written.iter().filter(counts).collect();
    if likely.len() > FEW_TAILS {
        return Vec::new();
    }
    let path = |entry: &NamedEntry| location.path.join(&entry.path).join(FRAGMENT_METADATA_FILE);
    likely.into_iter().map(path).collect()
}

/// Lists the array's folders: those that nearly every array has at once, the others if the array's
/// own folder has them.
pub(crate) fn list(location: &Location) -> Result<Listings> {
    block_on(list_as(location, Waiting::Blocks))
}

/// As [`list`], by whoever waits.
async fn list_as(location: &Location, waiting: Waiting) -> Result<Listings> {
    let path = |folder: RootFolder| location.path.join(folder.name());
    let first = [
        location.path.clone(),
        path(RootFolder::Schema),
        path(RootFolder::Commits),
    ];
    let listed = waiting.list(&*location.storage, first.to_vec()).await?;
    let mut listed = listed.into_iter();
    let mut next = || listed.next().unwrap_or_default();
    let mut listings = Listings {
        root: next(),
        schema: next(),
        commits: next(),
        ..Listings::default()
    };
    let has = |folder: &RootFolder| {
        listings
            .root
            .iter()
            .any(|entry| entry.is_dir && entry.name == folder.name())
    };
    let others: Vec<RootFolder> = [RootFolder::FragmentMeta, RootFolder::Metadata]
        .into_iter()
        .filter(has)
        .collect();
    if !others.is_empty() {
        let paths: Vec<StorePath> = others.iter().map(|folder| path(*folder)).collect();
        let listed = waiting.list(&*location.storage, paths).await?;
        for (folder, entries) in others.into_iter().zip(listed) {
            match folder {
                RootFolder::FragmentMeta => listings.fragment_meta = entries,
                _ => listings.metadata = entries,
            }
        }
    }
    Ok(listings)
}

/// Lists what tells of the array's schemas.
async fn list_schemas(location: &Location, waiting: Waiting) -> Result<Listings> {
    let paths = [
        location.path.clone(),
        location.path.join(RootFolder::Schema.name()),
    ];
    let listed = waiting.list(&*location.storage, paths.to_vec()).await?;
    let mut listed = listed.into_iter();
    let mut next = || listed.next().unwrap_or_default();
    Ok(Listings {
        root: next(),
        schema: next(),
        ..Listings::default()
    })
}

pub(super) fn no_array(location: &Location, directory: &Directory) -> Error {
    let uri = location.path.to_string();
    let what = match directory.other {
        Some(OtherObject::Group) => "it is a group, not an array",
        Some(OtherObject::KeyValueStore) => {
            return Error::Unsupported(format!(
                "{uri}: key-value stores of TileDB 1.x are not supported"
            ));
        }
        None if directory.is_empty => "there is no such folder, or it is empty",
        None => "no array: there is no schema in __schema, nor __array_schema.tdb",
    };
    Error::NotFound { uri, what }
}

/// The files that the second batch has brought.
struct FetchedFiles<'a> {
    schemas: Schemas,
    commits: CommitFiles,
    /// By path.
    deletes: HashMap<&'a str, Bytes>,
    /// Paths relative to the array, and what they hold.
    fragment_meta: Vec<(String, Bytes)>,
}

/// Reads schemas, commits that are more than a name, and consolidated fragment metadata.
async fn read_files<'a>(
    context: &Context,
    location: &Location,
    time: TimeRange,
    directory: &'a Directory,
    waiting: Waiting,
) -> Result<FetchedFiles<'a>> {
    let schemas: Vec<(&str, &str)> = directory.schema_files().collect();
    let deletes = directory.deletes.iter();
    let deletes: Vec<&NamedEntry> = deletes.filter(|d| time.overlaps(&d.name)).collect();
    let meta = &directory.fragment_meta;
    let named = deletes.iter().copied().chain(meta);
    let paths: Vec<&str> = schemas
        .iter()
        .map(|(path, _)| *path)
        .chain(named.map(|entry| entry.path.as_str()))
        .chain(CommitFiles::entries(directory, time).map(|entry| entry.path.as_str()))
        .collect();
    let read = read_objects_as(context, location, paths, waiting).await?;
    let mut read = read.into_iter();
    let mut take = |count: usize| -> Vec<Bytes> { read.by_ref().take(count).collect() };
    let schema_tiles = take(schemas.len());
    let delete_tiles = take(deletes.len());
    let meta_tiles = take(meta.len());
    let commits = CommitFiles::decode(location, directory, time, &mut read)?;

    let decode =
        |((path, name), bytes): (&(&str, &str), &Bytes)| -> Result<(String, Arc<ArraySchema>)> {
            let payload = generic_tile(context, location, path, bytes)?;
            let schema = decode_at(location, path, ArraySchema::decode(&payload))?;
            Ok(((*name).to_owned(), Arc::new(schema)))
        };
    let decoded: Result<BTreeMap<_, _>> = match schemas.len() {
        1 => schemas.iter().zip(&schema_tiles).map(decode).collect(),
        _ => context.install(|| schemas.par_iter().zip(&schema_tiles).map(decode).collect()),
    };
    let decoded = decoded?;
    let latest_name = select_schema(directory, time)
        .unwrap_or_default()
        .to_owned();
    let latest = decoded
        .get(&latest_name)
        .cloned()
        .ok_or_else(|| no_array(location, directory))?;
    Ok(FetchedFiles {
        schemas: Schemas::new(decoded, latest, latest_name),
        commits,
        deletes: deletes
            .iter()
            .map(|entry| entry.path.as_str())
            .zip(delete_tiles)
            .collect(),
        fragment_meta: meta
            .iter()
            .map(|entry| entry.path.clone())
            .zip(meta_tiles)
            .collect(),
    })
}
