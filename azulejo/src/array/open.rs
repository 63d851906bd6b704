//! Opening an array: listings, then schemas and commits, then the fragments' footers, each as one batch of IO.

use super::directory::{Directory, Listings, NamedEntry, OtherObject};
use super::fragment::NewFragment;
use super::sections::short_read_is_corrupt;
use super::timeline::{
    Committed, CommittedFragment, PartialOverlap, committed, replaced, select_deletes, select_fragments,
    select_schema,
};
use super::{DeleteCommit, Fragment, Inner, TimeRange};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::{ReadRange, ReadRequest, StorePath, Tail, Tails, Uri, shown_tails};
use crate::tile_cache::TileCache;
use azulejo_format::commit::{ConsolidatedCommits, Delete, IgnoreList, Replacement, VacuumList};
use azulejo_format::fragment::{ConsolidatedFragmentMetadata, Footer, LegacyMetadata, LocatedFooter};
use azulejo_format::path::{FRAGMENT_METADATA_FILE, LEGACY_SCHEMA_FILE, RootFolder, fragment_version};
use azulejo_format::tile::GenericTile;
use azulejo_format::timestamped_name::NameStyle;
use azulejo_format::{ArraySchema, DecodeError};
use bytes::Bytes;
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Bytes read from the end of a fragment's metadata file, where they cost little. Footers are a tenth of that; the rest is
/// often all of the metadata that a small fragment has.
const TAIL_LEN: u64 = 8192;

/// Of more fragments than this only the footers are read, where bytes travel over a network.
const FEW_TAILS: usize = 8;

/// Longer footers are asked for one by one: a damaged length must not cost all fragments that much.
const LONGEST_TOGETHER: u64 = 1 << 20;

/// From this many footers on they are decoded in parallel.
const PARALLEL_FOOTERS: usize = 32;

/// From this many fragments on a storage may show their footers instead of reading the ends of their metadata files: the
/// memory that these take, and the time to fill it, are more than what they save later.
const MANY_FOOTERS: usize = 64;

/// Bytes that are shown at least, for footers that are longer than usual.
const SHOWN_LEN: u64 = 1024;

/// What must be known before the first fragment can be looked at.
struct Opening<'a> {
    context: &'a Context,
    location: &'a Location,
    time: TimeRange,
    schemas: BTreeMap<String, Arc<ArraySchema>>,
    latest: Arc<ArraySchema>,
    latest_name: String,
    /// Ends of metadata files that were read beside the schemas.
    tails: HashMap<StorePath, Tail>,
}

/// What to open of an array instead of all that counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    /// File names of the fragments that count; others do not. `None`: all.
    pub fragments: Option<HashSet<String>>,
    /// File name of the schema to take for the latest.
    pub schema: Option<String>,
    /// Whether fragments count that were replaced.
    pub superseded: bool,
    /// Whether only the schemas are looked at: no fragments, deletes, metadata.
    pub schemas_only: bool,
}

/// Files that a listing has named can be gone when they are read: vacuums go on beside readers. So often it is tried.
const ATTEMPTS: usize = 5;

/// Opens the array at `uri`.
pub(super) fn open(context: &Context, uri: &Uri, time: TimeRange, part: &Part) -> Result<Inner> {
    let mut attempt = 1;
    let operation = context.begin();
    loop {
        operation.check()?;
        let location = crate::manifest::locate(context, uri)?;
        let listed = if part.schemas_only { list_schemas(&location) } else { list(&location) };
        let directory = Directory::parse(&listed?);
        if !directory.is_array() {
            return Err(no_array(&location, &directory));
        }
        operation.check()?;
        match open_listed(context, uri.clone(), location.clone(), time, part, &directory) {
            Err(Error::NotFound { .. }) if attempt < ATTEMPTS => attempt += 1,
            result => return result,
        }
    }
}

fn open_listed(
    context: &Context,
    uri: Uri,
    location: Location,
    time: TimeRange,
    part: &Part,
    directory: &Directory,
) -> Result<Inner> {
    let likely = likely_fragments(&location, time, part, directory);
    let (mut opening, files) = if likely.is_empty() {
        read_files(context, &location, time, directory)?
    } else {
        let (files, tails) = context.install(|| {
            rayon::join(
                || read_files(context, &location, time, directory),
                || location.storage.read_tails(&likely, TAIL_LEN),
            )
        });
        let (mut opening, files) = files?;
        // What has failed is tried again when it turns out to be needed.
        opening.tails = likely.into_iter().zip(tails.unwrap_or_default()).collect();
        (opening, files)
    };
    if let Some(name) = &part.schema {
        opening.latest = opening.schema_named(name).map_err(|e| Error::decode(uri.to_string(), e))?;
    }
    let mut vacuums: Vec<(&NamedEntry, VacuumList)> = files.vacuums;
    let consolidated: Vec<ConsolidatedCommits<'_>> = files
        .consolidated
        .iter()
        .map(|(entry, bytes)| decode_at(&location, &entry.path, ConsolidatedCommits::decode(bytes)))
        .collect::<Result<_>>()?;
    let mut committed = committed(directory, &consolidated, &files.ignores);
    vacuums.extend(files.replacements.into_iter().map(|(entry, list)| (entry, replaced(&committed, list))));
    if part.superseded {
        vacuums.clear();
    }
    if let Some(names) = &part.fragments {
        committed.fragments.retain(|fragment| names.contains(fragment.entry.file_name()));
    }
    let deletes = opening.deletes(&committed, &files.deletes)?;
    let payloads = opening.consolidated_payloads(&files.fragment_meta)?;
    let footers = opening.consolidated_footers(&files.fragment_meta, &payloads)?;
    let partial =
        if opening.latest.is_dense() { PartialOverlap::Excluded } else { PartialOverlap::WithTimestamps };
    // What was loaded of each committed fragment; inside it nothing, if it turned out not to be one.
    let mut loaded: Vec<Option<Option<Box<Fragment>>>> = Vec::new();
    loaded.resize_with(committed.fragments.len(), || None);
    let mut without_timestamps = HashSet::new();
    let current = loop {
        let selected = select_fragments(&committed, &vacuums, time, partial, &without_timestamps);
        let missing: Vec<usize> = selected.current.iter().copied().filter(|i| loaded[*i].is_none()).collect();
        let chosen: Vec<&CommittedFragment> = missing.iter().map(|&i| &committed.fragments[i]).collect();
        for (i, fragment) in missing.into_iter().zip(opening.fragments(&chosen, &footers)?) {
            loaded[i] = Some(fragment);
        }
        // A consolidated fragment whose cells have no timestamps counts as a whole or not at all; without it, what it
        // replaced counts again.
        let before = without_timestamps.len();
        for fragment in selected.current.iter().filter_map(|i| loaded[*i].as_ref()?.as_deref()) {
            let range = fragment.time_range();
            let inside = time.start <= range.start && range.end <= time.end;
            if !inside && !fragment.has_timestamps() {
                without_timestamps.insert(fragment.timestamped_name().to_string());
            }
        }
        if without_timestamps.len() == before {
            break selected.current;
        }
    };
    let fragments =
        current.iter().filter_map(|i| loaded[*i].take().flatten().map(|fragment| *fragment)).collect();
    let whole = select_fragments(&committed, &vacuums, time, PartialOverlap::Excluded, &HashSet::new());
    let to_vacuum =
        whole.superseded.iter().map(|&i| location.path.join(&committed.fragments[i].entry.path)).collect();
    let Opening { schemas, latest, latest_name, .. } = opening;
    Ok(Inner {
        context: context.clone(),
        uri,
        time_range: time,
        schema: latest,
        schema_name: latest_name,
        schemas,
        fragments,
        deletes,
        to_vacuum,
        metadata_files: directory.metadata.clone(),
        metadata: Default::default(),
        enumerations: Default::default(),
        tiles: TileCache::new(context.decoded_cache()),
        location,
    })
}

/// The metadata files of a few fragments that count as far as names tell: they can be read beside the schemas, which would
/// tell how long a footer is. None where reads begin at once, and where commits are more than names.
fn likely_fragments(
    location: &Location,
    time: TimeRange,
    part: &Part,
    directory: &Directory,
) -> Vec<StorePath> {
    let Directory { written, flat_fragments, .. } = directory;
    let lists = [&directory.consolidated, &directory.ignores, &directory.vacuums, &directory.replacements];
    let is_plain = lists.iter().all(|list| list.is_empty())
        && directory.fragment_meta.is_empty()
        && flat_fragments.is_empty();
    if !is_plain || part.schemas_only || written.len() > FEW_TAILS || location.storage.has_cheap_reads() {
        return Vec::new();
    }
    let counts = |entry: &&NamedEntry| {
        time.contains(&entry.name)
            && part.fragments.as_ref().is_none_or(|names| names.contains(entry.file_name()))
    };
    let path = |entry: &NamedEntry| location.path.join(&entry.path).join(FRAGMENT_METADATA_FILE);
    written.iter().filter(counts).map(path).collect()
}

/// Lists the array's folders: those that nearly every array has at once, the others if the array's own folder has them.
pub(crate) fn list(location: &Location) -> Result<Listings> {
    let path = |folder: RootFolder| location.path.join(folder.name());
    let first = [location.path.clone(), path(RootFolder::Schema), path(RootFolder::Commits)];
    let mut listed = location.storage.list_all(&first)?.into_iter();
    let mut next = || listed.next().unwrap_or_default();
    let mut listings = Listings { root: next(), schema: next(), commits: next(), ..Listings::default() };
    let has =
        |folder: &RootFolder| listings.root.iter().any(|entry| entry.is_dir && entry.name == folder.name());
    let others: Vec<RootFolder> =
        [RootFolder::FragmentMeta, RootFolder::Metadata].into_iter().filter(has).collect();
    if !others.is_empty() {
        let paths: Vec<StorePath> = others.iter().map(|folder| path(*folder)).collect();
        for (folder, entries) in others.into_iter().zip(location.storage.list_all(&paths)?) {
            match folder {
                RootFolder::FragmentMeta => listings.fragment_meta = entries,
                _ => listings.metadata = entries,
            }
        }
    }
    Ok(listings)
}

/// Lists what tells of the array's schemas.
fn list_schemas(location: &Location) -> Result<Listings> {
    let paths = [location.path.clone(), location.path.join(RootFolder::Schema.name())];
    let mut listed = location.storage.list_all(&paths)?.into_iter();
    let mut next = || listed.next().unwrap_or_default();
    Ok(Listings { root: next(), schema: next(), ..Listings::default() })
}

pub(super) fn no_array(location: &Location, directory: &Directory) -> Error {
    let uri = location.path.to_string();
    let what = match directory.other {
        Some(OtherObject::Group) => "it is a group, not an array",
        Some(OtherObject::KeyValueStore) => {
            return Error::Unsupported(format!("{uri}: key-value stores of TileDB 1.x are not supported"));
        }
        None if directory.is_empty => "there is no such folder, or it is empty",
        None => "no array: there is no schema in __schema, nor __array_schema.tdb",
    };
    Error::NotFound { uri, what }
}

/// The files that the second batch has brought.
struct Files<'a> {
    vacuums: Vec<(&'a NamedEntry, VacuumList)>,
    replacements: Vec<(&'a NamedEntry, Replacement)>,
    ignores: Vec<IgnoreList>,
    consolidated: Vec<(&'a NamedEntry, Bytes)>,
    /// By path.
    deletes: HashMap<&'a str, Bytes>,
    fragment_meta: Vec<(&'a NamedEntry, Bytes)>,
}

/// Reads schemas, commits that are more than a name, and consolidated fragment metadata.
fn read_files<'a>(
    context: &'a Context,
    location: &'a Location,
    time: TimeRange,
    directory: &'a Directory,
) -> Result<(Opening<'a>, Files<'a>)> {
    let overlapping = |entry: &&NamedEntry| entry.name.t_start <= time.end && time.start <= entry.name.t_end;
    let vacuums: Vec<&NamedEntry> = directory.vacuums.iter().filter(overlapping).collect();
    let deletes: Vec<&NamedEntry> = directory.deletes.iter().filter(overlapping).collect();
    let schemas: Vec<(&str, &str)> = directory.schema_files().collect();
    let (ignores, consolidated) = (&directory.ignores, &directory.consolidated);
    let meta = &directory.fragment_meta;
    let replacements = &directory.replacements;
    let lists = [vacuums.clone(), deletes.clone()];
    let paths = schemas
        .iter()
        .map(|(path, _)| *path)
        .chain(lists.iter().flatten().map(|entry| entry.path.as_str()))
        .chain(
            ignores
                .iter()
                .chain(consolidated)
                .chain(meta)
                .chain(replacements)
                .map(|entry| entry.path.as_str()),
        );
    let mut read = read_objects(location, paths)?.into_iter();
    let mut take = |count: usize| -> Vec<Bytes> { read.by_ref().take(count).collect() };
    let schema_tiles = take(schemas.len());
    let vacuum_lists = take(vacuums.len());
    let delete_tiles = take(deletes.len());
    let ignore_lists = take(ignores.len());
    let consolidated_lists = take(consolidated.len());
    let meta_tiles = take(meta.len());
    let replacement_lists = take(replacements.len());

    let decode = |((path, name), bytes): (&(&str, &str), &Bytes)| -> Result<(String, Arc<ArraySchema>)> {
        let payload = generic_tile(context, location, path, bytes)?;
        let schema = decode_at(location, path, ArraySchema::decode(&payload))?;
        Ok(((*name).to_owned(), Arc::new(schema)))
    };
    let decoded: Result<BTreeMap<_, _>> = match schemas.len() {
        1 => schemas.iter().zip(&schema_tiles).map(decode).collect(),
        _ => context.install(|| schemas.par_iter().zip(&schema_tiles).map(decode).collect()),
    };
    let decoded = decoded?;
    let latest_name = select_schema(directory, time).unwrap_or_default().to_owned();
    let latest = decoded.get(&latest_name).cloned().ok_or_else(|| no_array(location, directory))?;
    let vacuums = vacuums
        .into_iter()
        .zip(&vacuum_lists)
        .map(|(entry, bytes)| Ok((entry, decode_at(location, &entry.path, VacuumList::decode(bytes))?)));
    let ignores = ignores
        .iter()
        .zip(&ignore_lists)
        .map(|(entry, bytes)| decode_at(location, &entry.path, IgnoreList::decode(bytes)));
    let replacements = replacements
        .iter()
        .zip(&replacement_lists)
        .map(|(entry, bytes)| Ok((entry, decode_at(location, &entry.path, Replacement::decode(bytes))?)));
    let files = Files {
        vacuums: vacuums.collect::<Result<_>>()?,
        replacements: replacements.collect::<Result<_>>()?,
        ignores: ignores.collect::<Result<_>>()?,
        consolidated: consolidated.iter().zip(consolidated_lists).collect(),
        deletes: deletes.iter().map(|entry| entry.path.as_str()).zip(delete_tiles).collect(),
        fragment_meta: meta.iter().zip(meta_tiles).collect(),
    };
    let tails = HashMap::new();
    Ok((Opening { context, location, time, schemas: decoded, latest, latest_name, tails }, files))
}

/// Footers from consolidated fragment metadata, by fragment name.
type ConsolidatedFooters<'a> = HashMap<&'a str, &'a [u8]>;

impl Opening<'_> {
    /// The conditions of the deletes that count.
    fn deletes(&self, committed: &Committed, files: &HashMap<&str, Bytes>) -> Result<Vec<DeleteCommit>> {
        let selected = select_deletes(committed, self.time);
        let decode = |delete: &super::timeline::DeleteFile| {
            let tile = delete.tile.as_deref().or_else(|| files.get(delete.path.as_str()).map(|b| &b[..]));
            let path = &delete.path;
            let payload = generic_tile(self.context, self.location, path, tile.unwrap_or_default())?;
            let kept = decode_at(self.location, path, Delete::decode(&payload))?.kept;
            Ok(DeleteCommit { name: path.clone(), timestamp: delete.name.t_start, kept })
        };
        selected.map(decode).collect()
    }

    /// The payloads of consolidated fragment metadata files.
    fn consolidated_payloads(&self, files: &[(&NamedEntry, Bytes)]) -> Result<Vec<Vec<u8>>> {
        let payload = |(entry, bytes): &(&NamedEntry, Bytes)| {
            generic_tile(self.context, self.location, &entry.path, bytes)
        };
        files.iter().map(payload).collect()
    }

    /// Finds the footers in the payloads of consolidated fragment metadata files. Of several for one fragment the newest
    /// file's counts.
    fn consolidated_footers<'p>(
        &self,
        files: &[(&NamedEntry, Bytes)],
        payloads: &'p [Vec<u8>],
    ) -> Result<ConsolidatedFooters<'p>> {
        let mut footers = HashMap::new();
        for ((entry, _), payload) in files.iter().zip(payloads) {
            let decoded = ConsolidatedFragmentMetadata::decode(payload);
            let decoded = decode_at(self.location, &entry.path, decoded)?.footers;
            footers.reserve(decoded.len());
            for footer in decoded {
                footers.entry(footer.name()).or_insert(footer.footer);
            }
        }
        Ok(footers)
    }

    /// Reads and decodes the footers of fragments; `None` for a folder below v5 that turns out not to be a fragment.
    fn fragments(
        &self,
        chosen: &[&CommittedFragment],
        consolidated: &ConsolidatedFooters<'_>,
    ) -> Result<Vec<Option<Box<Fragment>>>> {
        let mut shown = self.shown_fragments(chosen, consolidated);
        let left: Vec<usize> = (0..chosen.len()).filter(|i| shown[*i].is_none()).collect();
        if left.len() == chosen.len() {
            return self.read_fragments(chosen, consolidated);
        }
        let others: Vec<&CommittedFragment> = left.iter().map(|i| chosen[*i]).collect();
        for (i, fragment) in left.into_iter().zip(self.read_fragments(&others, consolidated)?) {
            shown[i] = fragment;
        }
        Ok(shown)
    }

    /// Those of many fragments whose footers the storage shows, decoded on the way; nothing of others, nor of those that
    /// are not as they should be.
    fn shown_fragments(
        &self,
        chosen: &[&CommittedFragment],
        consolidated: &ConsolidatedFooters<'_>,
    ) -> Vec<Option<Box<Fragment>>> {
        let certain = chosen.iter().all(|fragment| !fragment.uncertain);
        if !certain || chosen.len() < MANY_FOOTERS || !consolidated.is_empty() {
            return chosen.iter().map(|_| None).collect();
        }
        let len = self.usual_footer(chosen.iter().copied()).max(SHOWN_LEN);
        let legacy = legacy_schema(&self.schemas);
        let path = |i: usize, text: &mut String| {
            let folder = chosen.get(i).map_or("", |fragment| &fragment.entry.path);
            text.extend([folder, "/", FRAGMENT_METADATA_FILE]);
        };
        let tails = Tails { folder: &self.location.path, count: chosen.len(), path: &path, len };
        shown_tails(&*self.location.storage, tails, |i, tail, size| {
            let fragment = chosen.get(i)?;
            let version = fragment_version(&fragment.entry.name).ok()?;
            match Footer::locate(tail, size, version, legacy).ok()? {
                LocatedFooter::Found { offset, bytes } => {
                    self.decode_found(fragment, bytes, offset, size, Bytes::new()).map(Box::new).ok()
                }
                LocatedFooter::NeedMore(_) => None,
            }
        })
    }

    /// As [`Self::fragments`], step by step: all ends of files, then all footers.
    fn read_fragments(
        &self,
        chosen: &[&CommittedFragment],
        consolidated: &ConsolidatedFooters<'_>,
    ) -> Result<Vec<Option<Box<Fragment>>>> {
        let mut sources = self.legacy_sources(chosen)?;
        let prepare = |(fragment, source): (&&CommittedFragment, &mut Source)| {
            if let (Source::Tail(..), Some(footer)) = (&*source, consolidated.get(fragment.entry.file_name()))
            {
                // Writers have misplaced footers in consolidated metadata: the fragment's own counts then.
                if let Ok(decoded) = self.decode_consolidated(fragment, footer) {
                    *source = Source::Decoded(Box::new(decoded));
                }
            }
        };
        if consolidated.len() < PARALLEL_FOOTERS {
            chosen.iter().zip(&mut sources).for_each(prepare);
        } else {
            self.context.install(|| chosen.par_iter().zip(&mut sources).with_min_len(16).for_each(prepare));
        }
        self.read_tails(chosen, &mut sources)?;
        let decode = |(fragment, source): (&&CommittedFragment, Source)| {
            let decoded = match source {
                Source::Nothing => return Ok(None),
                Source::Decoded(fragment) => return Ok(Some(fragment)),
                Source::Tail(tail, size) => self.decode_tail(fragment, tail, size),
                Source::Whole { bytes, dense } => {
                    let path = format!("{}/{FRAGMENT_METADATA_FILE}", fragment.entry.path);
                    let payload = generic_tile(self.context, self.location, &path, &bytes)?;
                    self.decode_legacy(fragment, &payload, dense, bytes.len() as u64)
                }
            };
            decoded
                .map(|fragment| Some(Box::new(fragment)))
                .map_err(|e| Error::decode(self.metadata_path(fragment).to_string(), e))
        };
        if chosen.len() < PARALLEL_FOOTERS {
            return chosen.iter().zip(sources).map(decode).collect();
        }
        self.context.install(|| chosen.par_iter().zip(sources).with_min_len(16).map(decode).collect())
    }

    /// What to read of each fragment. Folders below v5 are listed: they have no commit that says they are whole, and v1
    /// and v2 tell only by their files whether they are dense.
    fn legacy_sources(&self, chosen: &[&CommittedFragment]) -> Result<Vec<Source>> {
        let storage = &self.location.storage;
        let list = |fragment: &&CommittedFragment| -> Result<Source> {
            if !fragment.uncertain {
                return Ok(Source::Tail(Bytes::new(), 0));
            }
            let entries = storage.list(&self.location.path.join(&fragment.entry.path))?;
            let has = |name: &str| entries.iter().any(|entry| entry.name == name && !entry.is_dir);
            Ok(if !has(FRAGMENT_METADATA_FILE) {
                Source::Nothing
            } else if matches!(fragment.entry.name.style, NameStyle::UuidFirst { .. }) {
                Source::Whole { bytes: Bytes::new(), dense: !has("__coords.tdb") }
            } else {
                Source::Tail(Bytes::new(), 0)
            })
        };
        if chosen.iter().all(|fragment| !fragment.uncertain) {
            return chosen.iter().map(list).collect();
        }
        self.context.install(|| chosen.par_iter().map(list).collect())
    }

    /// Reads the ends of metadata files, and whole ones of v1 and v2.
    fn read_tails(&self, chosen: &[&CommittedFragment], sources: &mut [Source]) -> Result<()> {
        let storage = &self.location.storage;
        let (mut tails, mut wholes) = (Vec::new(), Vec::new());
        for (i, source) in sources.iter().enumerate() {
            match source {
                Source::Tail(..) => tails.push(i),
                Source::Whole { .. } => wholes.push(i),
                Source::Decoded(_) | Source::Nothing => {}
            }
        }
        let path = |&i: &usize| self.metadata_path(chosen[i]);
        tails.retain(|i| {
            let Some(tail) = self.tails.get(&path(i)) else { return true };
            sources[*i] = Source::Tail(tail.bytes.clone(), tail.object_size);
            self.lacking(chosen[*i], &tail.bytes, tail.object_size).is_some()
        });
        let mut len = self.usual_footer(tails.iter().map(|i| chosen[*i]));
        if tails.len() <= FEW_TAILS || storage.has_cheap_reads() {
            len = len.max(TAIL_LEN);
        }
        // Those that are longer than usual are asked for again, together.
        while !tails.is_empty() {
            let paths: Vec<StorePath> = tails.iter().map(path).collect();
            let mut longer = Vec::new();
            let mut longest = 0;
            for (i, tail) in tails.iter().zip(storage.read_tails(&paths, len)?) {
                let more = self.lacking(chosen[*i], &tail.bytes, tail.object_size).filter(|more| *more > len);
                if let Some(more) = more.filter(|more| *more <= LONGEST_TOGETHER) {
                    longest = longest.max(more);
                    longer.push(*i);
                }
                sources[*i] = Source::Tail(tail.bytes, tail.object_size);
            }
            (tails, len) = (longer, longest);
        }
        let requests: Vec<ReadRequest> =
            wholes.iter().map(|i| ReadRequest { path: path(i), range: ReadRange::All }).collect();
        if !requests.is_empty() {
            for (i, read) in wholes.into_iter().zip(storage.read(&requests)?) {
                if let Source::Whole { bytes, .. } = &mut sources[i] {
                    *bytes = read;
                }
            }
        }
        Ok(())
    }

    /// Bytes at the end of metadata files that most of these fragments' footers take.
    fn usual_footer<'f>(&self, chosen: impl Iterator<Item = &'f CommittedFragment>) -> u64 {
        let consolidated = chosen.into_iter().any(|f| f.entry.name.t_start != f.entry.name.t_end);
        let consolidated = consolidated && !self.latest.is_dense();
        let len = |(name, schema): (&String, &Arc<ArraySchema>)| {
            Footer::usual_len(schema.version, schema, name.len(), consolidated)
        };
        self.schemas.iter().map(len).max().unwrap_or(TAIL_LEN)
    }

    /// How many bytes at the end of a metadata file hold the footer, if `tail` does not. What is wrong with it is said when
    /// it is decoded.
    fn lacking(&self, fragment: &CommittedFragment, tail: &[u8], size: u64) -> Option<u64> {
        let legacy = legacy_schema(&self.schemas);
        match Footer::locate(tail, size, fragment_version(&fragment.entry.name).ok()?, legacy) {
            Ok(LocatedFooter::NeedMore(len)) => Some(len),
            _ => None,
        }
    }

    fn decode_consolidated(
        &self,
        fragment: &CommittedFragment,
        bytes: &[u8],
    ) -> Result<Fragment, DecodeError> {
        let schema = self.schema_of(bytes)?;
        let footer = Footer::decode(bytes, &schema, None)?;
        check_version(fragment, &footer)?;
        Fragment::new(self.new_fragment(fragment, schema, true, None, Bytes::new()), footer)
    }

    fn decode_tail(
        &self,
        fragment: &CommittedFragment,
        tail: Bytes,
        size: u64,
    ) -> Result<Fragment, DecodeError> {
        let version = fragment_version(&fragment.entry.name)?;
        let legacy = legacy_schema(&self.schemas);
        let mut tail = tail;
        let located = match Footer::locate(&tail, size, version, legacy)? {
            LocatedFooter::NeedMore(len) => {
                tail = self.read_more(fragment, len)?;
                Footer::locate(&tail, size, version, legacy)?
            }
            found @ LocatedFooter::Found { .. } => found,
        };
        let LocatedFooter::Found { offset, bytes } = located else {
            return Err(DecodeError::invalid("fragment metadata footer", 0, "it has no end"));
        };
        self.decode_found(fragment, bytes, offset, size, tail.clone())
    }

    /// A fragment from its footer, which lies at `offset` of a metadata file of `size` bytes that ends with `tail`.
    fn decode_found(
        &self,
        fragment: &CommittedFragment,
        bytes: &[u8],
        offset: u64,
        size: u64,
        tail: Bytes,
    ) -> Result<Fragment, DecodeError> {
        let schema = self.schema_of(bytes)?;
        let footer = Footer::decode(bytes, &schema, Some(offset))?;
        check_version(fragment, &footer)?;
        Fragment::new(self.new_fragment(fragment, schema, false, Some(size), tail), footer)
    }

    /// A very long end of a metadata file: a rare case, so it is read alone.
    fn read_more(&self, fragment: &CommittedFragment, len: u64) -> Result<Bytes, DecodeError> {
        let path = self.metadata_path(fragment);
        let limit = self.context.config().memory_budget;
        if len > limit {
            return Err(DecodeError::LimitExceeded { what: "fragment metadata footer", asked: len, limit });
        }
        let tails = self.location.storage.read_tails(&[path], len);
        let tail = tails.ok().and_then(|mut tails| tails.pop());
        tail.map(|tail| tail.bytes)
            .ok_or_else(|| DecodeError::invalid("fragment metadata footer", 0, "the file cannot be read"))
    }

    fn decode_legacy(
        &self,
        fragment: &CommittedFragment,
        payload: &[u8],
        dense: bool,
        size: u64,
    ) -> Result<Fragment, DecodeError> {
        let schema = self.schema_named(LEGACY_SCHEMA_FILE)?;
        let metadata = LegacyMetadata::decode(payload, &schema, dense)?;
        Fragment::legacy(self.new_fragment(fragment, schema, false, Some(size), Bytes::new()), metadata)
    }

    /// The schema that a footer names.
    fn schema_of(&self, footer: &[u8]) -> Result<Arc<ArraySchema>, DecodeError> {
        match Footer::peek_schema_name(footer)? {
            Some(name) => self.schema_named(name),
            None => self.schema_named(LEGACY_SCHEMA_FILE),
        }
    }

    fn schema_named(&self, name: &str) -> Result<Arc<ArraySchema>, DecodeError> {
        self.schemas.get(name).cloned().ok_or_else(|| {
            DecodeError::invalid("fragment schema name", 0, format!("the array has no schema {name:?}"))
        })
    }

    fn metadata_path(&self, fragment: &CommittedFragment) -> StorePath {
        self.location.path.join(&fragment.entry.path).join(FRAGMENT_METADATA_FILE)
    }

    fn new_fragment(
        &self,
        fragment: &CommittedFragment,
        schema: Arc<ArraySchema>,
        has_consolidated_footer: bool,
        metadata_size: Option<u64>,
        metadata_tail: Bytes,
    ) -> NewFragment {
        let path = self.location.path.join(&fragment.entry.path);
        NewFragment {
            context: self.context.clone(),
            location: Location { storage: Arc::clone(&self.location.storage), path },
            name: fragment.entry.name.clone(),
            schema,
            has_consolidated_footer,
            metadata_size,
            metadata_tail,
        }
    }
}

/// The schema of fragments below format version 10, which name none.
pub(crate) fn legacy_schema(schemas: &BTreeMap<String, Arc<ArraySchema>>) -> Option<&ArraySchema> {
    schemas.get(LEGACY_SCHEMA_FILE).map(|schema| &**schema)
}

/// Where a fragment's footer comes from.
enum Source {
    /// It is not a fragment.
    Nothing,
    /// Consolidated fragment metadata, where it was found.
    Decoded(Box<Fragment>),
    /// The end of its metadata file, and the size of that file.
    Tail(Bytes, u64),
    /// Its metadata file, v1 or v2.
    Whole { bytes: Bytes, dense: bool },
}

/// A name that tells its version must tell the footer's.
fn check_version(fragment: &CommittedFragment, footer: &Footer) -> Result<(), DecodeError> {
    let name = &fragment.entry.name;
    if name.version.is_none() || fragment_version(name)? == footer.version {
        return Ok(());
    }
    let reason = format!("the footer says {}, the fragment's name another", footer.version);
    Err(DecodeError::invalid("fragment version", 0, reason))
}

/// Reads whole objects in one batch.
pub(crate) fn read_objects<'a>(
    location: &Location,
    paths: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<Bytes>> {
    let requests: Vec<ReadRequest> = paths
        .into_iter()
        .map(|path| ReadRequest { path: location.path.join(path), range: ReadRange::All })
        .collect();
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    location.storage.read(&requests).map_err(short_read_is_corrupt)
}

/// The payload of a generic tile.
pub(crate) fn generic_tile(
    context: &Context,
    location: &Location,
    path: &str,
    bytes: &[u8],
) -> Result<Vec<u8>> {
    let tile = GenericTile::decode(bytes, context.key(), context.config().memory_budget);
    Ok(decode_at(location, path, tile)?.data)
}

/// Says which object an error is about.
pub(crate) fn decode_at<T>(location: &Location, path: &str, decoded: Result<T, DecodeError>) -> Result<T> {
    decoded.map_err(|source| Error::decode(location.path.join(path).to_string(), source))
}
