//! Manifests: what lies in an array or group, written down in a file, for readers who cannot list
//! folders.
//!
//! Opening begins with listings. A plain web server has none, and some who may read a bucket may
//! not list it. A manifest is a sidecar, `__azulejo/manifest` in the folder of an array or group,
//! that holds these listings as they were at a moment: names, sizes, the time, and the contents of
//! the small files that opening reads (schemas, key-values, fragments' metadata), none of which ever
//! change. TileDB's other readers and writers pass the folder by.
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

mod contents;
mod sidecar;
mod storage;

pub(crate) use contents::fill;
pub use sidecar::{MANIFEST_FILE, Manifest};

use crate::config::ManifestUse;
use crate::context::{Context, Location};
use crate::error::Result;
use crate::storage::Uri;
use std::sync::Arc;
use storage::ManifestStorage;

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
