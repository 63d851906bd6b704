//! Opening an array: listings, then schemas and commits, each as one batch of IO. The fragments'
//! footers are another step.

use super::again::{Attempts, SCHEMA_OF_A_FRAGMENT};
use super::commit_files::CommitFiles;
use super::directory::{DetailFiles, Directory, Listings, NamedEntry, OtherObject, sort_schemas};
use super::objects::{decode_at, generic_tile, read_objects_as};
use super::relabel::{Relabelled, relabelled};
use super::timeline::{
    Committed, CommittedFragment, DeleteFile, PartialOverlap, replaced, select_deletes,
    select_fragments, select_schema,
};
use super::{DeleteCommit, TimeRange};
use crate::cancel::Operation;
use crate::condition::{BoundCondition, FieldRef};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::{StorePath, Tail, Uri, Waiting, block_on};
use azulejo_format::commit::{Delete, Update, VacuumList};
use azulejo_format::path::{
    FRAGMENT_METADATA_FILE, LEGACY_SCHEMA_FILE, RootFolder, Suffix, enumeration_path,
    fragment_version,
};
use azulejo_format::schema::Enumeration;
use azulejo_format::timestamped_name::TimestampedName;
use azulejo_format::{ArraySchema, DecodeError, FormatVersion};
use bytes::Bytes;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
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

/// The schemas of an array.
#[derive(Debug)]
pub(super) struct Schemas {
    /// By file name.
    pub all: BTreeMap<String, Arc<ArraySchema>>,
    /// The one that counts.
    pub latest: Arc<ArraySchema>,
    /// File name of the one that counts.
    pub latest_name: String,
    /// Attributes whose labels were others than those of the one that counts, of each schema that has
    /// such.
    relabelled: Vec<Relabelled>,
    /// The files of labels of which it may be that the earlier begin the later, which was not looked at.
    unlike: BTreeSet<(String, String)>,
    /// Of each other schema that deletes by labels mean the schemas that have other labels than it.
    earlier: Vec<(Arc<ArraySchema>, Vec<Relabelled>)>,
}

impl Schemas {
    /// The schemas of an array, one of which counts.
    pub(super) fn new(
        all: BTreeMap<String, Arc<ArraySchema>>,
        latest: Arc<ArraySchema>,
        latest_name: String,
    ) -> Self {
        let mut unlike = BTreeSet::new();
        let mut ask = |then: &str, now: &str| {
            unlike.insert((then.to_owned(), now.to_owned()));
            false
        };
        Self {
            relabelled: relabelled(&all, &latest_name, &mut ask),
            unlike,
            earlier: Vec::new(),
            latest,
            latest_name,
            all,
        }
    }

    /// Takes those labels for the same that begin those of the schema that counts, or of one that a
    /// delete means, which a look at them tells: few arrays have any to be looked at.
    async fn compare_labels(
        &mut self,
        context: &Context,
        location: &Location,
        deletes: &[DeleteCommit],
        waiting: Waiting,
    ) -> Result<()> {
        let meant = self.meant_by(deletes);
        let mut pairs = std::mem::take(&mut self.unlike);
        if meant.is_empty() && pairs.is_empty() {
            return Ok(());
        }
        for name in &meant {
            let mut ask = |then: &str, now: &str| {
                pairs.insert((then.to_owned(), now.to_owned()));
                false
            };
            relabelled(&self.all, name, &mut ask);
        }
        let same = match pairs.is_empty() {
            true => HashSet::new(),
            false => labels_that_begin(context, location, &pairs, waiting).await?,
        };
        let mut extends = |then: &str, now: &str| {
            let pair = (then.to_owned(), now.to_owned());
            same.contains(&pair)
        };
        let earlier = meant.iter().filter_map(|name| {
            let others = relabelled(&self.all, name, &mut extends);
            Some((Arc::clone(self.all.get(name)?), others))
        });
        let earlier = earlier.collect();
        self.relabelled = relabelled(&self.all, &self.latest_name, &mut extends);
        self.earlier = earlier;
        Ok(())
    }

    /// The file names of the schemas before the one that counts, or after it, that deletes mean which
    /// test what has labels in any of them.
    fn meant_by(&self, deletes: &[DeleteCommit]) -> BTreeSet<String> {
        if self.all.len() < 2 || deletes.is_empty() {
            return BTreeSet::new();
        }
        let attributes = self.all.values().flat_map(|schema| &schema.attributes);
        let labelled = attributes.filter(|attribute| attribute.enumeration.is_some());
        let labelled: HashSet<&str> = labelled.map(|attribute| attribute.name.as_str()).collect();
        let is_labelled = |field: &&FieldRef| labelled.contains(field.name.as_str());
        let meant: HashSet<*const ArraySchema> = deletes
            .iter()
            .filter(|delete| delete.kept.fields().iter().any(is_labelled))
            .filter_map(|delete| self.meant(delete))
            .map(|(schema, _)| Arc::as_ptr(schema))
            .collect();
        let others = self.all.iter().filter(|(name, schema)| {
            **name != self.latest_name && meant.contains(&Arc::as_ptr(schema))
        });
        others.map(|(name, _)| name.clone()).collect()
    }

    /// The schema that a delete means, and the delete as it means it: a delete means the fields that
    /// the array had when it was written, which may have been dropped since, or replaced by others of
    /// the same names. At times of their own choice programs delete by fields that came later.
    pub(super) fn meant(
        &self,
        delete: &DeleteCommit,
    ) -> Option<(&Arc<ArraySchema>, BoundCondition)> {
        // What is stored are the numbers of labels.
        let enumerations = |name: &str| {
            let text = format!("the labels {name:?} of a delete that was stored");
            Err(Error::Internal(text))
        };
        self.around(delete.timestamp).find_map(|schema| {
            let bound = BoundCondition::bind(&delete.kept, schema, &enumerations);
            Some((schema, bound.ok()?))
        })
    }

    /// All schemas: the one that was the latest at a time, those before it, newest first, then
    /// those after it, oldest first.
    pub(super) fn around(&self, time: u64) -> impl Iterator<Item = &Arc<ArraySchema>> {
        let named = self
            .all
            .iter()
            .filter_map(|(name, schema)| Some((TimestampedName::parse(name).ok()?, schema)));
        let mut named: Vec<_> = named.collect();
        sort_schemas(&mut named, |(name, _)| name);
        let legacy = self.all.get(LEGACY_SCHEMA_FILE);
        let then = named
            .iter()
            .rposition(|(name, _)| name.t_end <= time)
            .map_or(0, |at| at + 1);
        let after = named.split_off(then).into_iter().map(|(_, schema)| schema);
        named
            .into_iter()
            .rev()
            .map(|(_, schema)| schema)
            .chain(legacy)
            .chain(after)
    }

    /// The attributes of a schema whose labels are others than in another one, which counts or is meant
    /// by a delete. Both are of [`Self::all`], not equal ones of another look at the array.
    pub(super) fn relabelled_beside(
        &self,
        schema: &Arc<ArraySchema>,
        other: &Arc<ArraySchema>,
    ) -> Arc<[String]> {
        if Arc::ptr_eq(other, &self.latest) {
            return self.relabelled(schema);
        }
        let mut earlier = self.earlier.iter();
        let beside = earlier.find(|(of, _)| Arc::ptr_eq(of, other));
        let mut beside = beside.into_iter().flat_map(|(_, list)| list);
        let found = beside.find(|(of, _)| Arc::ptr_eq(of, schema));
        found
            .map(|(_, others)| Arc::clone(others))
            .unwrap_or_default()
    }

    /// The attributes of a schema whose labels were others.
    pub(super) fn relabelled(&self, schema: &Arc<ArraySchema>) -> Arc<[String]> {
        let mut known = self.relabelled.iter();
        let known = known.find(|(of, _)| Arc::ptr_eq(of, schema));
        match known {
            Some((_, others)) => Arc::clone(others),
            None => Arc::default(),
        }
    }

    /// The schema that a footer names.
    pub(super) fn named(&self, name: &str) -> Result<Arc<ArraySchema>, DecodeError> {
        self.all.get(name).cloned().ok_or_else(|| {
            DecodeError::invalid(
                SCHEMA_OF_A_FRAGMENT,
                0,
                format!("the array has no schema {name:?}"),
            )
        })
    }

    /// The schema of fragments below format version 10, which name none.
    pub(super) fn legacy(&self) -> Option<&ArraySchema> {
        legacy_schema(&self.all)
    }
}

/// Of pairs of files of labels those of which the first begins the second.
async fn labels_that_begin(
    context: &Context,
    location: &Location,
    pairs: &BTreeSet<(String, String)>,
    waiting: Waiting,
) -> Result<HashSet<(String, String)>> {
    let files: BTreeSet<&String> = pairs.iter().flat_map(|(a, b)| [a, b]).collect();
    let paths: Vec<String> = files.iter().map(|file| enumeration_path(file)).collect();
    let wanted = paths.iter().map(String::as_str);
    let mut read: Vec<Option<Bytes>> = Vec::with_capacity(paths.len());
    match read_objects_as(context, location, wanted, waiting).await {
        Ok(all) => read.extend(all.into_iter().map(Some)),
        Err(Error::NotFound { .. }) => {
            for path in &paths {
                let one = [path.as_str()].into_iter();
                read.push(
                    match read_objects_as(context, location, one, waiting).await {
                        Ok(one) => one.into_iter().next(),
                        // Labels that are gone are not those of now; who asks for these hears of it.
                        Err(Error::NotFound { .. }) => None,
                        Err(error) => return Err(error),
                    },
                );
            }
        }
        // Whether they are the same nobody can tell then, and either might be wrong.
        Err(error) => return Err(error),
    }
    let mut known = HashMap::new();
    for ((file, path), bytes) in files.iter().zip(&paths).zip(&read) {
        let Some(bytes) = bytes else {
            continue;
        };
        // Those that are damaged are not taken for the same; who asks for them hears of it.
        let payload = generic_tile(context, location, path, bytes);
        if let Some(labels) = payload.ok().and_then(|p| Enumeration::decode(&p).ok()) {
            known.insert(file.as_str(), labels);
        }
    }
    let begins = |(then, now): &&(String, String)| {
        let both = known.get(then.as_str()).zip(known.get(now.as_str()));
        both.is_some_and(|(then, now)| now.values_begin_with(then))
    };
    Ok(pairs.iter().filter(begins).cloned().collect())
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

/// The schema of fragments below format version 10, which name none.
pub(crate) fn legacy_schema(schemas: &BTreeMap<String, Arc<ArraySchema>>) -> Option<&ArraySchema> {
    schemas.get(LEGACY_SCHEMA_FILE).map(|schema| &**schema)
}
