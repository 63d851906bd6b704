//! Manifests: what lies in an array or group, written down in a file, for readers who cannot list
//! folders.
//!
//! Opening begins with listings. A plain web server has none, and some who may read a bucket may
//! not list it. A manifest is a sidecar, `__azulejo/manifest` in the folder of an array or group,
//! that holds these listings as they were at a moment: names, sizes, the time. TileDB's other
//! readers and writers pass the folder by.
//!
//! A manifest is made by [`ObjectHandle::write_manifests`] and is never made anew by writes to the
//! array, so that it can be stale. Where a folder can be listed the listing counts and the manifest
//! is not even read ([`ManifestUse::Fallback`]): it hides nothing there, and
//! [`ObjectHandle::manifest_state`] tells how it differs. Where it cannot,
//! [`Snapshot::listed_at`](crate::array::Snapshot::listed_at) says which moment is shown. Whatever
//! changes an array never uses a manifest.
//!
//! [`ObjectHandle::write_manifests`]: crate::object::ObjectHandle::write_manifests
//! [`ObjectHandle::manifest_state`]: crate::object::ObjectHandle::manifest_state

mod sidecar;
mod storage;
mod tree;

pub use tree::{Change, ManifestState, Manifests, WrittenManifest};

use crate::config::ManifestUse;
use crate::context::{Context, Location};
use crate::error::Result;
use crate::storage::{Entry, Uri};
use std::collections::BTreeMap;
use std::sync::Arc;
use storage::ManifestStorage;

/// The sidecar of an array or group, relative to its folder.
pub const MANIFEST_FILE: &str = "__azulejo/manifest";

/// The listings of an array or group at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// When the listings were begun, in milliseconds since 1970-01-01 UTC: all that was committed
    /// before is in them.
    pub made: u64,
    /// By path relative to the object (empty for its own folder): what lies in a folder, sorted by
    /// name. Folders of nested objects, such as the arrays of dimension labels and members of a
    /// group, are named in what holds them and have manifests of their own.
    pub folders: BTreeMap<String, Vec<Entry>>,
}

impl Manifest {
    /// Files that it names.
    #[must_use]
    pub fn file_num(&self) -> usize {
        self.folders
            .values()
            .flatten()
            .filter(|entry| !entry.is_dir)
            .count()
    }

    /// The size in bytes of a file, if the manifest names it with one; `path` is relative to the
    /// object.
    #[must_use]
    pub fn size_of(&self, path: &str) -> Option<u64> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let entries = self.folders.get(folder)?;
        let at = entries
            .binary_search_by(|entry| entry.name.as_str().cmp(name))
            .ok()?;
        entries.get(at).filter(|entry| !entry.is_dir)?.size
    }
}

/// Where something lies that is to be read: its listings come from a manifest where the settings
/// say so.
pub(crate) fn locate(context: &Context, uri: &Uri) -> Result<Location> {
    let Location { storage, path } = context.locate(uri)?;
    let storage = match context.config().manifest {
        ManifestUse::Never => storage,
        wanted => {
            let limit = context.config().memory_budget;
            Arc::new(ManifestStorage::new(storage, path.clone(), wanted, limit))
        }
    };
    Ok(Location { storage, path })
}

/// The context of those who change an array: they list, whatever the settings say, for what a stale
/// manifest does not name would be lost to them.
pub(crate) fn without(context: &Context) -> Context {
    if context.config().manifest == ManifestUse::Never {
        return context.clone();
    }
    let config = context.config().clone().manifest(ManifestUse::Never);
    context.derive(config, context.key().cloned())
}
