//! An array at a time: which schemas, fragments and deletes count, and where everything lies.

pub mod clock;
mod create;
mod delete;
mod delete_fragments;
pub mod directory;
mod evolve;
mod fragment;
mod head;
mod metadata;
mod metadata_write;
mod open;
mod sections;
mod tile_object;
pub mod timeline;

pub use azulejo_format::schema::NewArray;
pub use delete_fragments::{DeletedFragments, FragmentSelection};
pub(crate) use fragment::dense_tiles;
pub use fragment::{Fragment, TileStats};
pub(crate) use head::{Head, finish_replacement};
pub(crate) use metadata::{read_details, read_metadata};
pub use metadata_write::MetadataWriter;
pub(crate) use open::{Part, decode_at, legacy_schema, list, read_objects};
pub(crate) use sections::short_read_is_corrupt;
pub(crate) use tile_object::put_tile;

use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::{StorePath, Uri};
use crate::tile_cache::TileCache;
use azulejo_format::condition::Condition;
use azulejo_format::fragment::Section;
use azulejo_format::metadata::Metadata;
use azulejo_format::path::enumeration_path;
use azulejo_format::range::compare;
use azulejo_format::schema::{CurrentDomain, DimensionLabel, Enumeration, EnumerationRef};
use azulejo_format::{ArraySchema, NdRectangle};
use directory::DetailFiles;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A span of time in milliseconds since 1970-01-01 UTC, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimeRange {
    /// First millisecond.
    pub start: u64,
    /// Last millisecond; `u64::MAX` stands for the time of opening.
    pub end: u64,
}

impl TimeRange {
    /// Everything until now.
    pub const ALL: Self = Self { start: 0, end: u64::MAX };

    /// Everything up to and including a millisecond.
    #[must_use]
    pub const fn until(end: u64) -> Self {
        Self { start: 0, end }
    }

    /// With a fixed end: what carries a time in the future does not count yet.
    pub(crate) fn resolved(self) -> Self {
        Self { end: if self.end == u64::MAX { clock::now() } else { self.end }, ..self }
    }
}

impl Default for TimeRange {
    fn default() -> Self {
        Self::ALL
    }
}

/// A delete: cells written at its time or before do not exist unless they meet its condition.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteCommit {
    /// File name as fragments list it in their processed conditions, such as `__commits/__1_1_ab..cd_22.del`.
    pub name: String,
    /// Milliseconds since 1970; cells with a later timestamp stay.
    pub timestamp: u64,
    /// Which cells **stay**: the stored condition is the negation of what the user asked to delete.
    pub kept: Condition,
}

/// An array as it was at a time: an immutable snapshot, cheap to clone and to share between threads.
#[derive(Debug, Clone)]
pub struct Array {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    context: Context,
    uri: Uri,
    location: Location,
    time_range: TimeRange,
    schema: Arc<ArraySchema>,
    schema_name: String,
    schemas: BTreeMap<String, Arc<ArraySchema>>,
    fragments: Vec<Fragment>,
    deletes: Vec<DeleteCommit>,
    to_vacuum: Vec<StorePath>,
    metadata_files: DetailFiles,
    metadata: OnceLock<Metadata>,
    /// By file name.
    enumerations: Mutex<HashMap<String, Arc<Enumeration>>>,
    tiles: TileCache,
}

impl Array {
    /// Opens an array as it is now.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no array, [`Error::Encryption`] for a missing, wrong or unneeded key.
    pub fn open(context: &Context, uri: &str) -> Result<Self> {
        Self::open_at(context, uri, TimeRange::ALL)
    }

    /// Opens an array with only what was written within `time_range`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_at(context: &Context, uri: &str, time_range: TimeRange) -> Result<Self> {
        Self::open_uri(context, &Uri::parse(uri)?, time_range)
    }

    /// Opens an array whose URI is parsed already.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_uri(context: &Context, uri: &Uri, time_range: TimeRange) -> Result<Self> {
        let time_range = time_range.resolved();
        if time_range.start > time_range.end {
            let TimeRange { start, end } = time_range;
            return Err(Error::InvalidArgument(format!("a time range from {start} to {end} is empty")));
        }
        Self::open_part(context, uri, time_range, &Part::default())
    }

    /// Opens an array to be written to: its schemas alone, so that it does not matter how many fragments there are. It has
    /// no fragments, cells or metadata to read.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_to_write(context: &Context, uri: &str) -> Result<Self> {
        let context = &crate::manifest::without(context);
        let part = Part { fragments: Some(HashSet::new()), schemas_only: true, ..Part::default() };
        // The latest schema counts, also one of a clock that goes ahead of this machine's.
        Ok(Self { inner: Arc::new(open::open(context, &Uri::parse(uri)?, TimeRange::ALL, &part)?) })
    }

    /// Opens a part of an array.
    pub(crate) fn open_part(
        context: &Context,
        uri: &Uri,
        time_range: TimeRange,
        part: &Part,
    ) -> Result<Self> {
        Ok(Self { inner: Arc::new(open::open(context, uri, time_range.resolved(), part)?) })
    }

    /// The context that it was opened with.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.inner.context
    }

    /// Where it lies.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.inner.uri
    }

    /// Its folder.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.inner.location
    }

    /// The moment that it shows, in milliseconds since 1970-01-01 UTC, if its folders were not listed but a
    /// [manifest](crate::manifest) was read: what was written later is not seen.
    #[must_use]
    pub fn listed_at(&self) -> Option<u64> {
        self.location().storage.listed_at()
    }

    /// The time that it was opened at; an open end is the time of opening.
    #[must_use]
    pub fn time_range(&self) -> TimeRange {
        self.inner.time_range
    }

    /// The latest schema at that time.
    #[must_use]
    pub fn schema(&self) -> &Arc<ArraySchema> {
        &self.inner.schema
    }

    /// The file name of [`Self::schema`], by which fragments know it.
    #[must_use]
    pub fn schema_name(&self) -> &str {
        &self.inner.schema_name
    }

    /// All schemas, by file name.
    #[must_use]
    pub fn schemas(&self) -> &BTreeMap<String, Arc<ArraySchema>> {
        &self.inner.schemas
    }

    /// The fragments, oldest first: where two hold a cell, the later in the list wins.
    #[must_use]
    pub fn fragments(&self) -> &[Fragment] {
        &self.inner.fragments
    }

    /// The deletes at that time, oldest first.
    #[must_use]
    pub fn deletes(&self) -> &[DeleteCommit] {
        &self.inner.deletes
    }

    /// Folders of fragments that a consolidation has replaced and that could be vacuumed.
    #[must_use]
    pub fn fragments_to_vacuum(&self) -> &[StorePath] {
        &self.inner.to_vacuum
    }

    /// Loads sections of fragments (by index in [`Self::fragments`]) that are not loaded yet, in one batch of reads.
    /// Sections that a fragment does not have are skipped.
    pub fn preload(&self, wanted: &[(usize, Section)]) -> Result<()> {
        let fragment = |&(i, section): &(usize, Section)| Some((self.inner.fragments.get(i)?, section));
        sections::preload(&self.inner.context, wanted.iter().filter_map(fragment), sections::Derive::Known)
    }

    /// Lets go of the decoded tiles that are kept for the next queries, for a caller who asks for no more: they would stay
    /// as long as a clone of the array or a reader does.
    pub fn release_tiles(&self) {
        self.inner.tiles.clear();
    }

    /// The tiles that are kept for the next queries.
    pub(crate) fn tiles(&self) -> &TileCache {
        &self.inner.tiles
    }

    /// The box around all cells written, `None` if there are none.
    pub fn non_empty_domain(&self) -> Result<Option<NdRectangle>> {
        let dimensions = &self.schema().domain.dimensions;
        let mut domain: Option<NdRectangle> = None;
        for more in self.fragments().iter().filter_map(|f| f.footer().non_empty_domain.as_ref()) {
            let Some(domain) = &mut domain else {
                domain = Some(more.clone());
                continue;
            };
            for ((range, more), dimension) in domain.ranges.iter_mut().zip(&more.ranges).zip(dimensions) {
                if compare(dimension.datatype, &more.start, &range.start) == Ordering::Less {
                    range.start.clone_from(&more.start);
                }
                if compare(dimension.datatype, &more.end, &range.end) == Ordering::Greater {
                    range.end.clone_from(&more.end);
                }
            }
        }
        Ok(domain)
    }

    /// The part of the domain in use, if one is set.
    #[must_use]
    pub fn current_domain(&self) -> Option<&NdRectangle> {
        match &self.schema().current_domain {
            CurrentDomain::Empty => None,
            CurrentDomain::NdRectangle(rectangle) => Some(rectangle),
        }
    }

    /// The key-values at that time; read once.
    pub fn metadata(&self) -> Result<&Metadata> {
        if let Some(metadata) = self.inner.metadata.get() {
            return Ok(metadata);
        }
        let metadata =
            read_metadata(self.context(), self.location(), &self.inner.metadata_files, self.time_range())?;
        Ok(self.inner.metadata.get_or_init(|| metadata))
    }

    /// An enumeration of the latest schema, by its name; read once.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if the schema has no such enumeration.
    pub fn enumeration(&self, name: &str) -> Result<Arc<Enumeration>> {
        let loaded = self.load_enumerations(&[name])?.pop();
        loaded.ok_or_else(|| Error::Internal(format!("enumeration {name:?} was not loaded")))
    }

    /// All enumerations of the latest schema, in its order; those not read yet are read in one batch.
    pub fn enumerations(&self) -> Result<Vec<Arc<Enumeration>>> {
        let names: Vec<&str> = self.schema().enumerations.iter().map(|e| e.name.as_str()).collect();
        self.load_enumerations(&names)
    }

    /// Enumerations of the latest schema, by their names; those not read yet are read in one batch.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if the schema has no enumeration of such a name.
    pub fn load_enumerations(&self, names: &[&str]) -> Result<Vec<Arc<Enumeration>>> {
        let find = |name: &&str| {
            self.schema().enumeration(name).ok_or_else(|| {
                Error::SchemaMismatch(format!("{}: there is no enumeration {name:?}", self.uri()))
            })
        };
        let wanted: Vec<&EnumerationRef> = names.iter().map(find).collect::<Result<_>>()?;
        let mut loaded = self.inner.enumerations.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let missing: Vec<&EnumerationRef> =
            wanted.iter().copied().filter(|e| !loaded.contains_key(&e.file_name)).collect();
        let paths: Vec<String> = missing.iter().map(|e| enumeration_path(&e.file_name)).collect();
        let location = self.location();
        let read = read_objects(location, paths.iter().map(String::as_str))?;
        for ((reference, path), bytes) in missing.into_iter().zip(&paths).zip(&read) {
            let payload = open::generic_tile(self.context(), location, path, bytes)?;
            let enumeration = Arc::new(decode_at(location, path, Enumeration::decode(&payload))?);
            loaded.insert(reference.file_name.clone(), enumeration);
        }
        let found = wanted.iter().filter_map(|e| loaded.get(&e.file_name).cloned()).collect();
        self.inner.enumerations.lock().unwrap_or_else(PoisonError::into_inner).extend(loaded);
        Ok(found)
    }

    /// The dimension labels of the latest schema.
    #[must_use]
    pub fn labels(&self) -> &[DimensionLabel] {
        &self.schema().dimension_labels
    }

    /// Opens the array that holds a dimension label, at the same time.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if there is no such label.
    pub fn open_label(&self, name: &str) -> Result<Self> {
        let label = self.schema().dimension_label(name).ok_or_else(|| {
            Error::SchemaMismatch(format!("{}: there is no dimension label {name:?}", self.uri()))
        })?;
        let uri = if label.relative {
            Uri::from_path(self.location().path.join(&label.uri))
        } else {
            Uri::parse(&label.uri)?
        };
        Self::open_uri(self.context(), &uri, self.time_range())
    }
}
