//! An array at a time: which schemas, fragments and deletes count, and where everything lies.

mod add_label;
mod again;
mod boxes;
mod commit_files;
mod condition;
mod create;
mod delete;
mod delete_commit;
mod delete_fragments;
pub(crate) mod directory;
mod evolve;
mod footers;
mod fragment;
mod fragment_files;
mod handle;
mod head;
mod hold;
mod load;
mod loaded;
mod lock;
mod metadata;
mod metadata_write;
mod objects;
mod open;
mod pinned;
mod relabel;
pub(crate) mod removal;
mod schemas;
mod sections;
mod snapshot;
mod tile_object;
mod time_range;
pub(crate) mod timeline;

pub use add_label::NewLabel;
pub(crate) use again::{Attempts, Reopening, holds_all_of};
pub use azulejo_format::schema::NewArray;
pub(crate) use commit_files::CommitFiles;
pub use delete_commit::DeleteCommit;
pub use delete_fragments::{DeletedFragments, FragmentSelection};
pub(crate) use fragment::dense_tiles;
pub use fragment::{Fragment, TileStats};
pub use handle::ArrayHandle;
pub(crate) use head::Head;
pub use hold::ArrayHold;
pub(crate) use lock::{ArrayLock, finish_replacement, is_claim, remove_claims, replacement_path};
pub(crate) use metadata::{read_details, read_metadata};
pub use metadata_write::MetadataWriter;
pub(crate) use objects::{decode_at, generic_tile, read_objects, short_read_is_corrupt};
pub(crate) use open::{OpenScope, list};
pub use pinned::PinnedSnapshot;
pub(crate) use relabel::{Relabelled, relabelled};
pub(crate) use schemas::legacy_schema;
pub use snapshot::Snapshot;
pub(crate) use tile_object::{
    check_still_there, clean_up_unseen, encode_tile, may_come_late, put_if_there, put_tile_if_there,
};
pub use time_range::TimeRange;

use crate::condition::BoundCondition;
use crate::error::Result;
use crate::storage::{StorePath, Waiting, block_on};
use azulejo_format::fragment::Section;
use azulejo_format::{ArraySchema, NdRectangle};
use boxes::FragmentBoxes;
use schemas::Schemas;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

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
    /// Those that the fragments are of: where they were looked at once more, as a vacuum was faster, not
    /// the snapshot's own.
    schemas: Arc<Schemas>,
    fragments: Arc<[Fragment]>,
    deletes: Vec<DeleteCommit>,
    to_vacuum: Vec<StorePath>,
    /// Where the fragments lie, from the first read on.
    boxes: OnceLock<FragmentBoxes>,
}

impl Contents {
    /// The names of the fragments and deletes, oldest first.
    fn names(&self) -> (Vec<String>, Vec<String>) {
        let fragments = self.fragments.iter().map(|f| f.name().to_owned());
        let deletes = self.deletes.iter().map(|delete| delete.name.clone());
        (fragments.collect(), deletes.collect())
    }
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

    /// The schemas, by file name, that the fragments are of: the same ones in memory, which those of
    /// [`Self::schemas`](Snapshot::schemas) may not be.
    pub(crate) fn schemas_of_fragments(&self) -> &BTreeMap<String, Arc<ArraySchema>> {
        &self.contents.schemas.all
    }

    /// The schema that a delete means, and the delete as it means it; `None` where it fits none.
    pub(crate) fn meant(
        &self,
        delete: &DeleteCommit,
    ) -> Option<(&Arc<ArraySchema>, BoundCondition)> {
        self.contents.schemas.meant(delete)
    }

    /// The attributes of a fragment whose labels are others than in a schema that a delete
    /// [means](Self::meant).
    pub(crate) fn relabelled_beside(
        &self,
        fragment: &Fragment,
        meant: &Arc<ArraySchema>,
    ) -> Arc<[String]> {
        let schemas = &self.contents.schemas;
        schemas.relabelled_beside(fragment.schema(), meant)
    }

    /// Folders of fragments that a consolidation has replaced and that could be vacuumed.
    #[must_use]
    pub fn fragments_to_vacuum(&self) -> &[StorePath] {
        &self.contents.to_vacuum
    }

    /// The same open array, whose reads can be cancelled without those of others:
    /// [`Context::cancel_handle`](crate::Context::cancel_handle) of the result's context ends what
    /// was begun through the result.
    #[must_use]
    pub fn cancellable(&self) -> Self {
        Self {
            snapshot: self.snapshot.cancellable(),
            contents: Arc::clone(&self.contents),
        }
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
        load::load(self.context(), wanted, load::Derive::Known, waiting).await
    }

    /// The box around all cells written, `None` if there are none. As fragments say: where libtiledb
    /// has written NaN for a coordinate, a range may be NaN to NaN.
    pub fn non_empty_domain(&self) -> Result<Option<NdRectangle>> {
        let fragments = || self.fragments().iter();
        if !fragments().any(Fragment::has_nan_bounds) {
            return Ok(self.boxes().around().cloned());
        }
        let told = fragments().filter_map(|fragment| fragment.footer().non_empty_domain.as_ref());
        let boxes = FragmentBoxes::new(&self.schema().domain, told.enumerate());
        Ok(boxes.around().cloned())
    }

    /// The fragments with cells whose box `meets`, ascending, with these boxes. A box around one
    /// that meets must meet, too: of very many fragments most are never looked at.
    pub(crate) fn fragments_meeting(
        &self,
        meets: impl Fn(&NdRectangle) -> bool,
    ) -> Vec<(usize, &NdRectangle)> {
        let box_of = |number: usize| self.fragments().get(number)?.reach();
        self.boxes().meeting(box_of, meets)
    }

    fn boxes(&self) -> &FragmentBoxes {
        self.contents.boxes.get_or_init(|| {
            let fragments = self.fragments().iter().enumerate();
            let boxes = fragments.filter_map(|(i, fragment)| Some((i, fragment.reach()?)));
            FragmentBoxes::new(&self.schema().domain, boxes)
        })
    }
}
