//! An array at a time: which schemas, fragments and deletes count, and where everything lies.

pub mod clock;
mod commit_files;
mod create;
mod delete;
mod delete_fragments;
pub(crate) mod directory;
mod evolve;
mod footers;
mod fragment;
mod handle;
mod head;
mod loaded;
mod lock;
mod metadata;
mod metadata_write;
mod open;
mod pinned;
mod sections;
mod snapshot;
mod tile_object;
pub(crate) mod timeline;

pub use azulejo_format::schema::NewArray;
pub(crate) use commit_files::{Attempts, CommitFiles, finish_replacement};
pub use delete_fragments::{DeletedFragments, FragmentSelection};
pub(crate) use fragment::dense_tiles;
pub use fragment::{Fragment, TileStats};
pub use handle::ArrayHandle;
pub(crate) use head::Head;
pub(crate) use lock::ArrayLock;
pub(crate) use metadata::{read_details, read_metadata};
pub use metadata_write::MetadataWriter;
pub(crate) use open::{OpenScope, decode_at, legacy_schema, list, read_objects};
pub use pinned::PinnedSnapshot;
pub(crate) use sections::short_read_is_corrupt;
pub use snapshot::Snapshot;
pub(crate) use tile_object::{clean_up_unseen, put_if_there, put_tile_if_there};

use crate::error::{Error, Result};
use crate::storage::{StorePath, Waiting, block_on};
use azulejo_format::NdRectangle;
use azulejo_format::condition::Condition;
use azulejo_format::fragment::Section;
use azulejo_format::range::compare;
use std::cmp::Ordering;
use std::ops::Deref;
use std::sync::Arc;

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
    pub const ALL: Self = Self {
        start: 0,
        end: u64::MAX,
    };

    /// Everything up to and including a millisecond.
    #[must_use]
    pub const fn until(end: u64) -> Self {
        Self { start: 0, end }
    }

    /// This range with a fixed end, which must not be before its start.
    fn not_empty(self) -> Result<Self> {
        let Self { start, end } = self.resolved();
        if start > end {
            return Err(Error::InvalidArgument(format!(
                "a time range from {start} to {end} is empty"
            )));
        }
        Ok(Self { start, end })
    }

    /// With a fixed end: what carries a time in the future does not count yet.
    pub(crate) fn resolved(self) -> Self {
        Self {
            end: if self.end == u64::MAX {
                clock::now()
            } else {
                self.end
            },
            ..self
        }
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
    /// File name as fragments list it in their processed conditions, such as
    /// `__commits/__1_1_ab..cd_22.del`.
    pub name: String,
    /// Milliseconds since 1970; cells with a later timestamp stay.
    pub timestamp: u64,
    /// Which cells **stay**: the stored condition is the negation of what the user asked to delete.
    pub kept: Condition,
}

/// An array as it was at a time, with its fragments: an immutable snapshot, cheap to clone and to
/// share between threads.
///
/// All that a [`Snapshot`] tells, it tells as well.
#[derive(Debug, Clone)]
pub struct Array {
    snapshot: Snapshot,
    contents: Arc<Contents>,
}

/// The fragments of an array, and what counts beside them.
#[derive(Debug)]
struct Contents {
    fragments: Arc<[Fragment]>,
    deletes: Vec<DeleteCommit>,
    to_vacuum: Vec<StorePath>,
}

impl Deref for Array {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.snapshot
    }
}

impl Array {
    /// The fragments, oldest first: where two hold a cell, the later in the list wins.
    #[must_use]
    pub fn fragments(&self) -> &[Fragment] {
        &self.contents.fragments
    }

    /// The deletes at that time, oldest first.
    #[must_use]
    pub fn deletes(&self) -> &[DeleteCommit] {
        &self.contents.deletes
    }

    /// Folders of fragments that a consolidation has replaced and that could be vacuumed.
    #[must_use]
    pub fn fragments_to_vacuum(&self) -> &[StorePath] {
        &self.contents.to_vacuum
    }

    /// Loads sections of fragments (by index in [`Self::fragments`]) that are not loaded yet, in
    /// one batch of reads. Sections that a fragment does not have are skipped.
    pub fn preload(&self, wanted: &[(usize, Section)]) -> Result<()> {
        block_on(self.load(wanted, Waiting::Blocks))
    }

    /// As [`Self::preload`], for an executor.
    ///
    /// # Errors
    /// As [`Self::preload`].
    #[cfg(feature = "stream")]
    pub async fn preload_async(&self, wanted: &[(usize, Section)]) -> Result<()> {
        self.load(wanted, Waiting::Polls).await
    }

    /// As [`Self::preload`], by whoever waits.
    pub(crate) async fn load(&self, wanted: &[(usize, Section)], waiting: Waiting) -> Result<()> {
        let fragment =
            |&(i, section): &(usize, Section)| Some((self.contents.fragments.get(i)?, section));
        let wanted = wanted.iter().filter_map(fragment);
        sections::load(self.context(), wanted, sections::Derive::Known, waiting).await
    }

    /// The box around all cells written, `None` if there are none.
    pub fn non_empty_domain(&self) -> Result<Option<NdRectangle>> {
        let dimensions = &self.schema().domain.dimensions;
        let mut domain: Option<NdRectangle> = None;
        for more in self
            .fragments()
            .iter()
            .filter_map(|f| f.footer().non_empty_domain.as_ref())
        {
            let Some(domain) = &mut domain else {
                domain = Some(more.clone());
                continue;
            };
            for ((range, more), dimension) in
                domain.ranges.iter_mut().zip(&more.ranges).zip(dimensions)
            {
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
}
