//! What an array is at a time, short of its fragments.

use super::again::{Attempts, holds_all_of, is_outlived_by, is_overtaken};
use super::directory::DetailFiles;
use super::metadata::read_metadata;
use super::objects::{decode_at, generic_tile, read_objects_as};
use super::open::{self, OpenScope, Opened, Unread};
use super::schemas::Schemas;
use super::{Array, Contents, TimeRange, footers};
use crate::cancel::Operation;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::{Uri, Waiting, block_on};
use crate::tile_cache::TileCache;
use azulejo_format::metadata::Metadata;
use azulejo_format::path::enumeration_path;
use azulejo_format::schema::{CurrentDomain, DimensionLabel, Enumeration, EnumerationRef};
use azulejo_format::timestamped_name::TimestampedName;
use azulejo_format::{ArraySchema, NdRectangle};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};

/// An array as it was at a time: its schemas, key-values and commits. Its fragments, of which there
/// may be thousands, are looked at when [`Self::array`] is first called; to see a schema or a
/// key-value takes none of them.
///
/// Immutable, cheap to clone and to share between threads.
#[derive(Debug, Clone)]
pub struct Snapshot {
    inner: Arc<SnapshotInner>,
    /// What reads through this handle belong to: the context of opening, or a part of it that is
    /// cancelled alone.
    context: Context,
    /// Whether reads that find files gone show the same cells or none.
    stays: bool,
    /// Whether it was opened by the name of a moment, at which nothing can be written any more.
    of_moment: bool,
}

#[derive(Debug)]
struct SnapshotInner {
    uri: Uri,
    location: Location,
    asked: TimeRange,
    /// As asked, with an end.
    time_range: TimeRange,
    scope: OpenScope,
    schemas: Arc<Schemas>,
    metadata_files: DetailFiles,
    metadata: OnceLock<Metadata>,
    /// By file name.
    enumerations: Mutex<HashMap<String, Arc<Enumeration>>>,
    tiles: TileCache,
    fragments: Mutex<KnownFragments>,
}

/// What is known of an array's fragments.
#[derive(Debug)]
enum KnownFragments {
    /// What commits say.
    Unread(Arc<Unread>),
    Read(Arc<Contents>),
}

impl Snapshot {
    /// Opens an array whose URI is parsed already.
    ///
    /// # Errors
    /// As [`ArrayHandle::open_at`].
    pub(crate) fn open_uri(context: &Context, uri: &Uri, time_range: TimeRange) -> Result<Self> {
        Self::open_scope(context, uri, time_range, &OpenScope::default())
    }

    /// Opens an array to be written to: its schemas alone, so that it does not matter how many
    /// fragments there are. It has no fragments, cells or metadata to read.
    ///
    /// # Errors
    /// As [`ArrayHandle::open`].
    pub(crate) fn open_to_write(context: &Context, uri: &str) -> Result<Self> {
        let context = &crate::manifest::without(context);
        let scope = OpenScope {
            fragments: Some(HashSet::new()),
            schemas_only: true,
            ..OpenScope::default()
        };
        // The latest schema counts, also one of a clock that goes ahead of this machine's.
        let ever = TimeRange::until(u64::MAX - 1);
        Self::open_scope(context, &Uri::parse(uri)?, ever, &scope)
    }

    /// Opens a part of an array.
    pub(crate) fn open_scope(
        context: &Context,
        uri: &Uri,
        time_range: TimeRange,
        scope: &OpenScope,
    ) -> Result<Self> {
        block_on(Self::open_as(
            context,
            uri,
            time_range,
            scope,
            Waiting::Blocks,
        ))
    }

    /// Opens an array, by whoever waits.
    pub(super) async fn open_as(
        context: &Context,
        uri: &Uri,
        asked: TimeRange,
        scope: &OpenScope,
        waiting: Waiting,
    ) -> Result<Self> {
        let Opened {
            location,
            time: time_range,
            schemas,
            metadata_files,
            unread,
        } = open::open(context, uri, asked, scope, waiting).await?;
        let inner = SnapshotInner {
            uri: uri.clone(),
            location,
            asked,
            time_range,
            scope: scope.clone(),
            schemas: Arc::new(schemas),
            metadata_files,
            metadata: OnceLock::new(),
            enumerations: Mutex::default(),
            tiles: context.decoded_cache(),
            fragments: Mutex::new(KnownFragments::Unread(Arc::new(unread))),
        };
        Ok(Self {
            inner: Arc::new(inner),
            context: context.clone(),
            stays: false,
            of_moment: false,
        })
    }

    /// The array with its fragments, whose footers are read by the first call.
    ///
    /// A vacuum may have deleted fragments since the snapshot was made: what has replaced them is
    /// taken then, which holds the same cells.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for metadata that cannot be, [`Error::Storage`].
    pub fn array(&self) -> Result<Array> {
        self.array_within(Attempts::new())
    }

    /// As [`Self::array`], for a reader that was given nothing yet. Where fragments have gone into one
    /// that does not count at the time of the snapshot, it is the array as it is now, if it was opened
    /// as it was then: as an [`Array`] is read whose files are gone.
    ///
    /// # Errors
    /// As [`Self::array`].
    pub fn array_to_read(&self) -> Result<Array> {
        self.array().or_else(|error| {
            let again = is_overtaken(&error).then(|| block_on(self.reopened(Waiting::Blocks)));
            match again.flatten() {
                Some(Ok(now)) => Ok(now),
                _ => Err(error),
            }
        })
    }

    /// The names of the fragments and deletes that count, oldest first, without a look at the
    /// fragments and without waiting for anybody. `None` if the fragments would have to tell which of
    /// them count, or if another thread is looking at them.
    pub(super) fn names(&self) -> Option<(Vec<String>, Vec<String>)> {
        let fragments = match self.inner.fragments.try_lock() {
            Ok(fragments) => fragments,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        match &*fragments {
            KnownFragments::Read(contents) => Some(contents.names()),
            KnownFragments::Unread(unread) => {
                unread.names(self.time_range(), self.schema().is_dense())
            }
        }
    }

    /// As [`Self::array`], with so many attempts.
    pub(super) fn array_within(&self, attempts: Attempts) -> Result<Array> {
        let mut fragments = self
            .inner
            .fragments
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let contents = match &*fragments {
            KnownFragments::Read(contents) => Arc::clone(contents),
            KnownFragments::Unread(unread) => {
                let reading = self.read_contents(unread, attempts, Waiting::Blocks);
                let contents = Arc::new(block_on(reading)?);
                *fragments = KnownFragments::Read(Arc::clone(&contents));
                contents
            }
        };
        drop(fragments);
        Ok(Array {
            snapshot: self.clone(),
            contents,
        })
    }

    /// As [`Self::array`], for an executor. Whoever else asks meanwhile looks too.
    async fn array_polled(&self, attempts: Attempts) -> Result<Array> {
        let fragments = || {
            let fragments = self.inner.fragments.lock();
            fragments.unwrap_or_else(PoisonError::into_inner)
        };
        let unread = match &*fragments() {
            KnownFragments::Read(_) => None,
            KnownFragments::Unread(unread) => Some(Arc::clone(unread)),
        };
        if let Some(unread) = unread {
            let reading = self.read_contents(&unread, attempts, Waiting::Polls);
            let contents = reading.await?;
            *fragments() = KnownFragments::Read(Arc::new(contents));
        }
        self.array()
    }

    /// Opens it again as it is now, with the schema that it has, if it was opened as it was then:
    /// for a reader that has found files gone; as it was then, if it [stays](Array::staying). `None`
    /// for an array of another time, of chosen fragments, or whose attributes were dropped or changed
    /// since; for one that stays, where other fragments hold other cells.
    pub(super) async fn reopened(&self, waiting: Waiting) -> Option<Result<Array>> {
        let inner = &*self.inner;
        let (context, uri, mut asked) = (self.context(), &inner.uri, inner.asked);
        let mut scope = OpenScope::default();
        if asked.end != u64::MAX || inner.scope != scope {
            return None;
        }
        if self.stays {
            asked.end = inner.time_range.end;
        }
        let now = match Self::open_array(context, uri, asked, &scope, waiting).await {
            Ok(now) => now,
            Err(error) => return Some(Err(error)),
        };
        if self.stays && !self.has_cells_of(&now) {
            return None;
        }
        if now.schema_name() == self.schema_name() {
            return Some(Ok(now));
        }
        scope.schema = Some(self.schema_name().to_owned());
        let then = Self::open_array(context, uri, asked, &scope, waiting).await;
        let is_readable = |array: &Array| {
            let all = &array.snapshot.inner.schemas.all;
            is_outlived_by(self.schema_name(), self.schema(), all)
        };
        match then {
            Ok(then) if !is_readable(&then) => None,
            then => Some(then),
        }
    }

    /// Whether the fragments of the same array, opened again at the same time, hold the cells that
    /// these hold: those that are gone went into new ones, and nothing else came.
    fn has_cells_of(&self, now: &Array) -> bool {
        let (Some((then, deletes)), (now, deletes_now)) = (self.names(), now.contents.names())
        else {
            return false;
        };
        deletes == deletes_now && are_merged(&then, &now)
    }

    /// Opens an array with its fragments. Where a vacuum was faster, it is opened again: as it is
    /// then, if no time was asked for.
    pub(super) async fn open_array(
        context: &Context,
        uri: &Uri,
        asked: TimeRange,
        scope: &OpenScope,
        waiting: Waiting,
    ) -> Result<Array> {
        let mut attempts = Attempts::new();
        loop {
            let snapshot = Self::open_as(context, uri, asked, scope, waiting).await?;
            let once = match asked.end {
                u64::MAX => Attempts::one(),
                _ => Attempts::new(),
            };
            let array = match waiting {
                Waiting::Blocks => snapshot.array_within(once),
                Waiting::Polls => snapshot.array_polled(once).await,
            };
            if asked.end != u64::MAX || !attempts.again(&array) {
                return array;
            }
        }
    }

    /// The context that it was opened with, or the part of it that [`Array::cancellable`] made.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The same snapshot, whose reads can be cancelled without those of others, as in
    /// [`Array::cancellable`].
    #[must_use]
    pub fn cancellable(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            context: self.context.cancellable(),
            stays: self.stays,
            of_moment: self.of_moment,
        }
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

    /// The moment that it shows, in milliseconds since 1970-01-01 UTC, if its folders were not
    /// listed but a [manifest](crate::manifest) was read: what was written later is not seen.
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
        &self.inner.schemas.latest
    }

    /// The file name of [`Self::schema`], by which fragments know it.
    #[must_use]
    pub fn schema_name(&self) -> &str {
        &self.inner.schemas.latest_name
    }

    /// All schemas, by file name.
    #[must_use]
    pub fn schemas(&self) -> &BTreeMap<String, Arc<ArraySchema>> {
        &self.inner.schemas.all
    }

    /// All schemas: the one that was the latest at a time, those before it, newest first, then
    /// those after it, oldest first. A delete of that time means the first that it fits.
    pub fn schemas_around(&self, time: u64) -> impl Iterator<Item = &Arc<ArraySchema>> {
        self.inner.schemas.around(time)
    }

    /// Lets go of the decoded tiles that are kept for the next queries, for a caller who asks for
    /// no more: they would stay as long as a clone of the array or a reader does.
    pub fn release_tiles(&self) {
        self.inner.tiles.clear();
    }

    /// The tiles that are kept for the next queries.
    pub(crate) fn tiles(&self) -> &TileCache {
        &self.inner.tiles
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
        block_on(self.metadata_as(Waiting::Blocks))
    }

    /// As [`Self::metadata`], for an executor.
    ///
    /// # Errors
    /// As [`Self::metadata`].
    #[cfg(feature = "stream")]
    pub async fn metadata_async(&self) -> Result<&Metadata> {
        self.metadata_as(Waiting::Polls).await
    }

    async fn metadata_as(&self, waiting: Waiting) -> Result<&Metadata> {
        if let Some(metadata) = self.inner.metadata.get() {
            return Ok(metadata);
        }
        let (inner, context) = (&*self.inner, self.context());
        let files = &inner.metadata_files;
        let time = inner.time_range;
        let mut found = read_metadata(context, self.location(), files, time, waiting).await;
        let mut attempts = Attempts::new();
        while attempts.again(&found) {
            let (uri, asked, scope) = (&inner.uri, inner.asked, &inner.scope);
            let now = open::open(context, uri, asked, scope, waiting).await?;
            // Another array has taken its place, or a merge goes beyond the time.
            let is_same = now.schemas.all.contains_key(self.schema_name());
            if !is_same || !holds_all_of(asked, &now.metadata_files) {
                break;
            }
            let files = &now.metadata_files;
            found = read_metadata(context, &now.location, files, now.time, waiting).await;
        }
        let metadata = found?;
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

    /// All enumerations of the latest schema, in its order; those not read yet are read in one
    /// batch.
    pub fn enumerations(&self) -> Result<Vec<Arc<Enumeration>>> {
        let names: Vec<&str> = self
            .schema()
            .enumerations
            .iter()
            .map(|e| e.name.as_str())
            .collect();
        self.load_enumerations(&names)
    }

    /// Enumerations of the latest schema, by their names; those not read yet are read in one batch.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if the schema has no enumeration of such a name.
    pub fn load_enumerations(&self, names: &[&str]) -> Result<Vec<Arc<Enumeration>>> {
        block_on(self.load_enumerations_as(names, Waiting::Blocks))
    }

    /// As [`Self::load_enumerations`], for an executor.
    ///
    /// # Errors
    /// As [`Self::load_enumerations`].
    #[cfg(feature = "stream")]
    pub async fn load_enumerations_async(&self, names: &[&str]) -> Result<Vec<Arc<Enumeration>>> {
        self.load_enumerations_as(names, Waiting::Polls).await
    }

    /// As [`Self::load_enumerations`], by whoever waits.
    pub(crate) async fn load_enumerations_as(
        &self,
        names: &[&str],
        waiting: Waiting,
    ) -> Result<Vec<Arc<Enumeration>>> {
        let find = |name: &&str| {
            self.schema().enumeration(name).ok_or_else(|| {
                Error::SchemaMismatch(format!("{}: there is no enumeration {name:?}", self.uri()))
            })
        };
        let wanted: Vec<&EnumerationRef> = names.iter().map(find).collect::<Result<_>>()?;
        let mut loaded = self
            .inner
            .enumerations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let missing: Vec<&EnumerationRef> = wanted
            .iter()
            .copied()
            .filter(|e| !loaded.contains_key(&e.file_name))
            .collect();
        let paths: Vec<String> = missing
            .iter()
            .map(|e| enumeration_path(&e.file_name))
            .collect();
        let location = self.location();
        let read = read_objects_as(
            self.context(),
            location,
            paths.iter().map(String::as_str),
            waiting,
        )
        .await?;
        for ((reference, path), bytes) in missing.into_iter().zip(&paths).zip(&read) {
            let payload = generic_tile(self.context(), location, path, bytes)?;
            let enumeration = Arc::new(decode_at(location, path, Enumeration::decode(&payload))?);
            loaded.insert(reference.file_name.clone(), enumeration);
        }
        let found = wanted
            .iter()
            .filter_map(|e| loaded.get(&e.file_name).cloned())
            .collect();
        self.inner
            .enumerations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(loaded);
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
    pub fn open_label(&self, name: &str) -> Result<Array> {
        let label = self.schema().dimension_label(name).ok_or_else(|| {
            Error::SchemaMismatch(format!(
                "{}: there is no dimension label {name:?}",
                self.uri()
            ))
        })?;
        let uri = if label.relative {
            Uri::from_path(self.location().path.join(&label.uri))
        } else {
            Uri::parse(&label.uri)?
        };
        Self::open_uri(self.context(), &uri, self.time_range())?.array()
    }

    async fn read_contents(
        &self,
        unread: &Unread,
        attempts: Attempts,
        waiting: Waiting,
    ) -> Result<Contents> {
        let operation = self.context().begin();
        let reading = self.read_contents_for(&operation, unread, attempts, waiting);
        operation.drives(reading).await
    }

    async fn read_contents_for(
        &self,
        operation: &Operation,
        unread: &Unread,
        mut attempts: Attempts,
        waiting: Waiting,
    ) -> Result<Contents> {
        let SnapshotInner {
            uri,
            location,
            time_range,
            scope,
            schemas,
            ..
        } = &*self.inner;
        let (context, time) = (self.context(), *time_range);
        let mut contents = footers::read(context, location, schemas, time, unread, waiting).await;
        while attempts.again(&contents) {
            operation.check()?;
            let Opened {
                location,
                schemas,
                unread,
                ..
            } = open::open(context, uri, time, scope, waiting).await?;
            // Another array has taken its place, or the cells have gone into a fragment that does not
            // count at this time: that they are gone is better said than passed over.
            if schemas.latest_name != self.schema_name()
                || unread.has_replaced_in_part(time, schemas.latest.is_dense())
            {
                break;
            }
            let schemas = Arc::new(schemas);
            contents = footers::read(context, &location, &schemas, time, &unread, waiting).await;
        }
        contents
    }
}

impl Snapshot {
    /// The same, which was opened by the name of a moment.
    pub(super) fn named(self) -> Self {
        Self {
            of_moment: true,
            ..self
        }
    }

    /// Refuses to write to what was opened by the name of a moment: it would be of now.
    pub(crate) fn refuse_moment(&self) -> Result<()> {
        match self.of_moment {
            true => Err(Error::InvalidArgument(format!(
                "{}: it was opened as of a named snapshot, to which nothing can be added; open it without that name",
                self.uri()
            ))),
            false => Ok(()),
        }
    }
}

impl Array {
    /// The same open array, opened by the name of a moment.
    pub(super) fn named(self) -> Self {
        Self {
            snapshot: self.snapshot.named(),
            contents: self.contents,
        }
    }

    /// The same open array, for several reads that must see the same cells. Where files are gone that
    /// a read wants, what they were merged into is read; where that holds other cells too, the read
    /// fails, and does not show the array as it is by then.
    #[must_use]
    pub fn staying(&self) -> Self {
        let snapshot = Snapshot {
            stays: true,
            ..self.snapshot.clone()
        };
        Self {
            snapshot,
            contents: Arc::clone(&self.contents),
        }
    }
}

/// Whether fragments (by their names) that are there now are those that were there, or were merged
/// from them: all that are gone are within new ones, and all new ones hold some that are gone.
fn are_merged(then: &[String], now: &[String]) -> bool {
    let missing = |of: &[String], from: &[String]| {
        let known: HashSet<&str> = from.iter().map(String::as_str).collect();
        let missing = of.iter().filter(|name| !known.contains(name.as_str()));
        let names = missing.map(|name| TimestampedName::parse(name).ok());
        names.collect::<Option<Vec<_>>>()
    };
    let (Some(gone), Some(came)) = (missing(then, now), missing(now, then)) else {
        return false;
    };
    let holds = |new: &TimestampedName, old: &TimestampedName| {
        new.t_start <= old.t_start && old.t_end <= new.t_end
    };
    gone.iter()
        .all(|old| came.iter().any(|new| holds(new, old)))
        && came
            .iter()
            .all(|new| gone.iter().any(|old| holds(new, old)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_merged_is_told_from_what_came() {
        let name = |start: u64, end: u64, which: u64| format!("__{start}_{end}_{which:032x}_22");
        let then = [name(1, 1, 1), name(2, 2, 2), name(3, 3, 3)];
        let merged = name(1, 2, 4);
        let is_same = |now: &[String]| are_merged(&then, now);
        assert!(is_same(&then));
        assert!(is_same(&[merged.clone(), name(3, 3, 3)]));
        assert!(is_same(&[name(1, 3, 5)]));
        // One is gone, or one came: at the same time, or between.
        assert!(!is_same(std::slice::from_ref(&merged)));
        assert!(!is_same(&[name(2, 3, 6)]));
        assert!(!is_same(&[merged, name(3, 3, 3), name(3, 3, 7)]));
        assert!(!is_same(&[&then[..], &[name(1, 1, 8)]].concat()));
        assert!(!is_same(&["nonsense".to_owned()]));
    }
}
