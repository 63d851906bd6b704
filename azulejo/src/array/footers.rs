//! The footers of the fragments that count, as one batch of IO, or none where consolidated metadata
//! has them.

use super::fragment::NewFragment;
use super::objects::{decode_at, generic_tile};
use super::open::{FEW_TAILS, TAIL_LEN, Unread};
use super::schemas::Schemas;
use super::timeline::{CommittedFragment, PartialOverlap, select_fragments};
use super::{Contents, Fragment, TimeRange};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::{ReadRange, ReadRequest, StorePath, Tail, Tails, Waiting, shown_tails};
use azulejo_format::fragment::{
    ConsolidatedFragmentMetadata, Footer, LegacyMetadata, LocatedFooter,
};
use azulejo_format::path::{FRAGMENT_METADATA_FILE, LEGACY_SCHEMA_FILE, fragment_version};
use azulejo_format::timestamped_name::NameStyle;
use azulejo_format::{ArraySchema, DecodeError};
use bytes::Bytes;
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

/// Longer footers are asked for one by one: a damaged length must not cost all fragments that much.
const LONGEST_TOGETHER: u64 = 1 << 20;

/// From this many footers on they are decoded in parallel.
const PARALLEL_FOOTERS: usize = 32;

/// From this many fragments on a storage may show their footers instead of reading the ends of
/// their metadata files: the memory that these take, and the time to fill it, are more than what
/// they save later.
const MANY_FOOTERS: usize = 64;

/// Bytes that are shown at least, for footers that are longer than usual.
const SHOWN_LEN: u64 = 1024;

/// Reads the footers of the fragments that count at a time.
pub(super) async fn read(
    context: &Context,
    location: &Location,
    schemas: &Arc<Schemas>,
    time: TimeRange,
    unread: &Unread,
    waiting: Waiting,
) -> Result<Contents> {
    let Unread {
        committed,
        vacuums,
        deletes,
        fragment_meta,
        tails,
    } = unread;
    let reader = FooterReader {
        context,
        location,
        schemas,
        tails,
        waiting,
    };
    let payloads = reader.consolidated_payloads(fragment_meta)?;
    let footers = reader.consolidated_footers(fragment_meta, &payloads)?;
    let partial = PartialOverlap::of(schemas.latest.is_dense());
    // What was loaded of each committed fragment; inside it nothing, if it turned out not to be
    // one.
    let mut loaded: Vec<Option<Option<Box<Fragment>>>> = Vec::new();
    loaded.resize_with(committed.fragments.len(), || None);
    let mut without_timestamps = HashSet::new();
    let current = loop {
        let selected = select_fragments(committed, vacuums, time, partial, &without_timestamps);
        let missing: Vec<usize> = selected
            .current
            .iter()
            .copied()
            .filter(|i| loaded[*i].is_none())
            .collect();
        let chosen: Vec<&CommittedFragment> =
            missing.iter().map(|&i| &committed.fragments[i]).collect();
        let found = reader.fragments(&chosen, &footers).await?;
        for (i, fragment) in missing.into_iter().zip(found) {
            loaded[i] = Some(fragment);
        }
        // A consolidated fragment whose cells have no timestamps counts as a whole or not at all;
        // without it, what it replaced counts again.
        let before = without_timestamps.len();
        for fragment in selected
            .current
            .iter()
            .filter_map(|i| loaded[*i].as_ref()?.as_deref())
        {
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
    let fragments = current
        .iter()
        .filter_map(|i| loaded[*i].take().flatten().map(|fragment| *fragment))
        .collect();
    let whole = select_fragments(
        committed,
        vacuums,
        time,
        PartialOverlap::Excluded,
        &HashSet::new(),
    );
    let to_vacuum = whole
        .superseded
        .iter()
        .map(|&i| location.path.join(&committed.fragments[i].entry.path))
        .collect();
    Ok(Contents {
        schemas: Arc::clone(schemas),
        fragments,
        deletes: deletes.clone(),
        to_vacuum,
        boxes: OnceLock::new(),
    })
}

/// What must be known before the first fragment can be looked at.
struct FooterReader<'a> {
    context: &'a Context,
    location: &'a Location,
    schemas: &'a Schemas,
    /// Ends of metadata files that were read beside the schemas.
    tails: &'a HashMap<StorePath, Tail>,
    waiting: Waiting,
}

/// Footers from consolidated fragment metadata, by fragment name.
type ConsolidatedFooters<'a> = HashMap<&'a str, &'a [u8]>;

impl FooterReader<'_> {
    /// The payloads of consolidated fragment metadata files.
    fn consolidated_payloads(&self, files: &[(String, Bytes)]) -> Result<Vec<Vec<u8>>> {
        let payload = |(path, bytes): &(String, Bytes)| {
            generic_tile(self.context, self.location, path, bytes)
        };
        files.iter().map(payload).collect()
    }

    /// Finds the footers in the payloads of consolidated fragment metadata files. Of several for
    /// one fragment the newest file's counts.
    fn consolidated_footers<'p>(
        &self,
        files: &[(String, Bytes)],
        payloads: &'p [Vec<u8>],
    ) -> Result<ConsolidatedFooters<'p>> {
        let mut footers = HashMap::new();
        for ((path, _), payload) in files.iter().zip(payloads) {
            let decoded = ConsolidatedFragmentMetadata::decode(payload);
            let decoded = decode_at(self.location, path, decoded)?.footers;
            footers.reserve(decoded.len());
            for footer in decoded {
                footers.entry(footer.name()).or_insert(footer.footer);
            }
        }
        Ok(footers)
    }

    /// Reads and decodes the footers of fragments; `None` for a folder below v5 that turns out not
    /// to be a fragment.
    async fn fragments(
        &self,
        chosen: &[&CommittedFragment],
        consolidated: &ConsolidatedFooters<'_>,
    ) -> Result<Vec<Option<Box<Fragment>>>> {
        let mut shown = self.shown_fragments(chosen, consolidated);
        let left: Vec<usize> = (0..chosen.len()).filter(|i| shown[*i].is_none()).collect();
        if left.len() == chosen.len() {
            return self.read_fragments(chosen, consolidated).await;
        }
        let others: Vec<&CommittedFragment> = left.iter().map(|i| chosen[*i]).collect();
        let read = self.read_fragments(&others, consolidated).await?;
        for (i, fragment) in left.into_iter().zip(read) {
            shown[i] = fragment;
        }
        Ok(shown)
    }

    /// Those of many fragments whose footers the storage shows, decoded on the way; nothing of
    /// others, nor of those that are not as they should be.
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
        let legacy = self.schemas.legacy();
        let path = |i: usize, text: &mut String| {
            let folder = chosen.get(i).map_or("", |fragment| &fragment.entry.path);
            text.extend([folder, "/", FRAGMENT_METADATA_FILE]);
        };
        let tails = Tails {
            folder: &self.location.path,
            count: chosen.len(),
            path: &path,
            len,
        };
        shown_tails(&*self.location.storage, tails, |i, tail, size| {
            let fragment = chosen.get(i)?;
            let version = fragment_version(&fragment.entry.name).ok()?;
            match Footer::locate(tail, size, version, legacy).ok()? {
                LocatedFooter::Found { offset, bytes } => self
                    .decode_found(fragment, bytes, offset, size, Bytes::new())
                    .map(Box::new)
                    .ok(),
                LocatedFooter::NeedMore(_) => None,
            }
        })
    }

    /// As [`Self::fragments`], step by step: all ends of files, then all footers.
    async fn read_fragments(
        &self,
        chosen: &[&CommittedFragment],
        consolidated: &ConsolidatedFooters<'_>,
    ) -> Result<Vec<Option<Box<Fragment>>>> {
        let mut sources = self.legacy_sources(chosen).await?;
        let prepare = |(fragment, source): (&&CommittedFragment, &mut FooterSource)| {
            if let (FooterSource::Tail(..), Some(footer)) =
                (&*source, consolidated.get(fragment.entry.file_name()))
            {
                // Writers have misplaced footers in consolidated metadata: the fragment's own
                // counts then.
                if let Ok(decoded) = self.decode_consolidated(fragment, footer) {
                    *source = FooterSource::Decoded(Box::new(decoded));
                }
            }
        };
        if consolidated.len() < PARALLEL_FOOTERS {
            chosen.iter().zip(&mut sources).for_each(prepare);
        } else {
            self.context.install(|| {
                chosen
                    .par_iter()
                    .zip(&mut sources)
                    .with_min_len(16)
                    .for_each(prepare);
            });
        }
        self.read_tails(chosen, &mut sources).await?;
        let decode = |(fragment, source): (&&CommittedFragment, FooterSource)| {
            let decoded = match source {
                FooterSource::Nothing => return Ok(None),
                FooterSource::Decoded(fragment) => return Ok(Some(fragment)),
                FooterSource::Tail(tail, size) => self.decode_tail(fragment, tail, size),
                FooterSource::Whole { bytes, dense } => {
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
        self.context.install(|| {
            chosen
                .par_iter()
                .zip(sources)
                .with_min_len(16)
                .map(decode)
                .collect()
        })
    }

    /// What to read of each fragment. Folders below v5 are listed: they have no commit that says
    /// they are whole, and v1 and v2 tell only by their files whether they are dense.
    async fn legacy_sources(&self, chosen: &[&CommittedFragment]) -> Result<Vec<FooterSource>> {
        let location = self.location;
        let uncertain = chosen.iter().filter(|fragment| fragment.uncertain);
        let folders: Vec<StorePath> = uncertain
            .map(|fragment| location.path.join(&fragment.entry.path))
            .collect();
        let listed = if folders.is_empty() {
            Vec::new()
        } else {
            self.waiting.list(&*location.storage, folders).await?
        };
        let mut listed = listed.into_iter();
        let source = |fragment: &&CommittedFragment| {
            if !fragment.uncertain {
                return FooterSource::Tail(Bytes::new(), 0);
            }
            let entries = listed.next().unwrap_or_default();
            let has = |name: &str| {
                entries
                    .iter()
                    .any(|entry| entry.name == name && !entry.is_dir)
            };
            if !has(FRAGMENT_METADATA_FILE) {
                FooterSource::Nothing
            } else if matches!(fragment.entry.name.style, NameStyle::UuidFirst { .. }) {
                FooterSource::Whole {
                    bytes: Bytes::new(),
                    dense: !has("__coords.tdb"),
                }
            } else {
                FooterSource::Tail(Bytes::new(), 0)
            }
        };
        Ok(chosen.iter().map(source).collect())
    }

    /// Reads the ends of metadata files, and whole ones of v1 and v2.
    async fn read_tails(
        &self,
        chosen: &[&CommittedFragment],
        sources: &mut [FooterSource],
    ) -> Result<()> {
        let storage = &self.location.storage;
        let (mut tails, mut wholes) = (Vec::new(), Vec::new());
        for (i, source) in sources.iter().enumerate() {
            match source {
                FooterSource::Tail(..) => tails.push(i),
                FooterSource::Whole { .. } => wholes.push(i),
                FooterSource::Decoded(_) | FooterSource::Nothing => {}
            }
        }
        let path = |&i: &usize| self.metadata_path(chosen[i]);
        tails.retain(|i| {
            let Some(tail) = self.tails.get(&path(i)) else {
                return true;
            };
            sources[*i] = FooterSource::Tail(tail.bytes.clone(), tail.object_size);
            self.lacking(chosen[*i], &tail.bytes, tail.object_size)
                .is_some()
        });
        let mut len = self.usual_footer(tails.iter().map(|i| chosen[*i]));
        if tails.len() <= FEW_TAILS || storage.latency().is_low() {
            len = len.max(TAIL_LEN);
        }
        // Those that are longer than usual are asked for again, together.
        while !tails.is_empty() {
            let paths: Vec<StorePath> = tails.iter().map(path).collect();
            let mut longer = Vec::new();
            let mut longest = 0;
            let read = self.waiting.read_tails(&**storage, paths, len).await?;
            for (i, tail) in tails.iter().zip(read) {
                let more = self
                    .lacking(chosen[*i], &tail.bytes, tail.object_size)
                    .filter(|more| *more > len);
                if let Some(more) = more.filter(|more| *more <= LONGEST_TOGETHER) {
                    longest = longest.max(more);
                    longer.push(*i);
                }
                sources[*i] = FooterSource::Tail(tail.bytes, tail.object_size);
            }
            (tails, len) = (longer, longest);
        }
        let requests: Vec<ReadRequest> = wholes
            .iter()
            .map(|i| ReadRequest {
                path: path(i),
                range: ReadRange::AtMost(self.context.config().memory_budget.max(LONGEST_TOGETHER)),
            })
            .collect();
        if !requests.is_empty() {
            let read = self.waiting.read(&**storage, requests).await?;
            for (i, read) in wholes.into_iter().zip(read) {
                if let FooterSource::Whole { bytes, .. } = &mut sources[i] {
                    *bytes = read;
                }
            }
        }
        Ok(())
    }

    /// Bytes at the end of metadata files that most of these fragments' footers take.
    fn usual_footer<'f>(&self, chosen: impl Iterator<Item = &'f CommittedFragment>) -> u64 {
        let consolidated = chosen
            .into_iter()
            .any(|f| f.entry.name.t_start != f.entry.name.t_end);
        let consolidated = consolidated && !self.schemas.latest.is_dense();
        let len = |(name, schema): (&String, &Arc<ArraySchema>)| {
            Footer::usual_len(schema.version, schema, name.len(), consolidated)
        };
        self.schemas.all.iter().map(len).max().unwrap_or(TAIL_LEN)
    }

    /// How many bytes at the end of a metadata file hold the footer, if `tail` does not. What is
    /// wrong with it is said when it is decoded.
    fn lacking(&self, fragment: &CommittedFragment, tail: &[u8], size: u64) -> Option<u64> {
        let legacy = self.schemas.legacy();
        match Footer::locate(
            tail,
            size,
            fragment_version(&fragment.entry.name).ok()?,
            legacy,
        ) {
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
        Fragment::new(
            self.new_fragment(fragment, schema, true, None, Bytes::new()),
            footer,
        )
    }

    fn decode_tail(
        &self,
        fragment: &CommittedFragment,
        tail: Bytes,
        size: u64,
    ) -> Result<Fragment, DecodeError> {
        let version = fragment_version(&fragment.entry.name)?;
        let legacy = self.schemas.legacy();
        let mut tail = tail;
        let located = match Footer::locate(&tail, size, version, legacy)? {
            LocatedFooter::NeedMore(len) => {
                tail = self.read_more(fragment, len)?;
                Footer::locate(&tail, size, version, legacy)?
            }
            found @ LocatedFooter::Found { .. } => found,
        };
        let LocatedFooter::Found { offset, bytes } = located else {
            return Err(DecodeError::invalid(
                "fragment metadata footer",
                0,
                "it has no end",
            ));
        };
        self.decode_found(fragment, bytes, offset, size, tail.clone())
    }

    /// A fragment from its footer, which lies at `offset` of a metadata file of `size` bytes that
    /// ends with `tail`.
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
        Fragment::new(
            self.new_fragment(fragment, schema, false, Some(size), tail),
            footer,
        )
    }

    /// A very long end of a metadata file: a rare case, so it is read alone.
    fn read_more(&self, fragment: &CommittedFragment, len: u64) -> Result<Bytes, DecodeError> {
        let path = self.metadata_path(fragment);
        let limit = self.context.config().memory_budget;
        if len > limit {
            return Err(DecodeError::LimitExceeded {
                what: "fragment metadata footer",
                asked: len,
                limit,
            });
        }
        let tails = self.location.storage.read_tails(&[path], len);
        let tail = tails.ok().and_then(|mut tails| tails.pop());
        tail.map(|tail| tail.bytes).ok_or_else(|| {
            DecodeError::invalid("fragment metadata footer", 0, "the file cannot be read")
        })
    }

    fn decode_legacy(
        &self,
        fragment: &CommittedFragment,
        payload: &[u8],
        dense: bool,
        size: u64,
    ) -> Result<Fragment, DecodeError> {
        let schema = self.schemas.named(LEGACY_SCHEMA_FILE)?;
        let metadata = LegacyMetadata::decode(payload, &schema, dense)?;
        Fragment::legacy(
            self.new_fragment(fragment, schema, false, Some(size), Bytes::new()),
            metadata,
        )
    }

    /// The schema that a footer names.
    fn schema_of(&self, footer: &[u8]) -> Result<Arc<ArraySchema>, DecodeError> {
        match Footer::peek_schema_name(footer)? {
            Some(name) => self.schemas.named(name),
            None => self.schemas.named(LEGACY_SCHEMA_FILE),
        }
    }

    fn metadata_path(&self, fragment: &CommittedFragment) -> StorePath {
        self.location
            .path
            .join(&fragment.entry.path)
            .join(FRAGMENT_METADATA_FILE)
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
            relabelled: self.schemas.relabelled(&schema),
            context: self.context.clone(),
            location: Location {
                storage: Arc::clone(&self.location.storage),
                path,
            },
            name: fragment.entry.name.clone(),
            schema,
            has_consolidated_footer,
            metadata_size,
            metadata_tail,
        }
    }
}

/// Where a fragment's footer comes from.
enum FooterSource {
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
    let reason = format!(
        "the footer says {}, the fragment's name another",
        footer.version
    );
    Err(DecodeError::invalid("fragment version", 0, reason))
}
