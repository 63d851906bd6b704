//! An array at a time: which schemas, fragments and deletes count, and where everything lies.

mod fragment;

pub use fragment::{Fragment, TileStats};

use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::Uri;
use azulejo_format::condition::Condition;
use azulejo_format::fragment::Section;
use azulejo_format::schema::Enumeration;
use azulejo_format::{ArraySchema, NdRectangle};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A span of time in milliseconds since 1970-01-01 UTC, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimeRange {
    /// First millisecond.
    pub start: u64,
    /// Last millisecond.
    pub end: u64,
}

impl TimeRange {
    /// All of time.
    pub const ALL: Self = Self { start: 0, end: u64::MAX };

    /// Everything up to and including a millisecond.
    #[must_use]
    pub const fn until(end: u64) -> Self {
        Self { start: 0, end }
    }
}

impl Default for TimeRange {
    fn default() -> Self {
        Self::ALL
    }
}

/// A delete: cells written before its time that meet its condition do not exist.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteCommit {
    /// File name as fragments list it in their processed conditions, such as `__commits/__1_1_ab..cd_22.del`.
    pub name: String,
    /// Milliseconds since 1970; cells with a later timestamp stay.
    pub timestamp: u64,
    /// Which cells are gone.
    pub condition: Condition,
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
    schemas: BTreeMap<String, Arc<ArraySchema>>,
    fragments: Vec<Fragment>,
    deletes: Vec<DeleteCommit>,
}

impl Array {
    /// Opens an array as it is now.
    pub fn open(context: &Context, uri: &str) -> Result<Self> {
        Self::open_at(context, uri, TimeRange::ALL)
    }

    /// Opens an array with only what was written within `time_range`.
    pub fn open_at(_context: &Context, _uri: &str, _time_range: TimeRange) -> Result<Self> {
        Err(Error::Unsupported("opening is not there yet".into()))
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

    /// The time that it was opened at.
    #[must_use]
    pub fn time_range(&self) -> TimeRange {
        self.inner.time_range
    }

    /// The latest schema at that time.
    #[must_use]
    pub fn schema(&self) -> &Arc<ArraySchema> {
        &self.inner.schema
    }

    /// All schemas that were read, by file name.
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

    /// Loads sections of fragments (by index in [`Self::fragments`]) that are not loaded yet, in one batch of reads.
    /// Sections that a fragment does not have are skipped.
    pub fn preload(&self, _sections: &[(usize, Section)]) -> Result<()> {
        Err(Error::Unsupported("preload is not there yet".into()))
    }

    /// The box around all cells written, `None` if there are none.
    pub fn non_empty_domain(&self) -> Result<Option<NdRectangle>> {
        Err(Error::Unsupported("not there yet".into()))
    }

    /// An enumeration of the latest schema, by its name; loaded once.
    pub fn enumeration(&self, _name: &str) -> Result<Arc<Enumeration>> {
        Err(Error::Unsupported("not there yet".into()))
    }
}
