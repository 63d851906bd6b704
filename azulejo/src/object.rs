//! Arrays and groups as a whole: finding, deleting, moving and copying them, their manifests and
//! named snapshots.

mod delete;
mod folder;
mod manifests;
mod past;
mod snapshots;
mod transfer;
mod walk;

pub use folder::FolderEntry;
pub use manifests::{Change, ManifestState, Manifests, WrittenManifest};
pub use past::CopiedPast;
pub use transfer::copy_file;
pub(crate) use transfer::is_unfinished;
pub use walk::{Walk, WalkEntry};

use crate::context::{Context, Location};
use crate::error::{Error, Result};
pub use crate::object_type::ObjectType;
use crate::storage::Uri;

/// An array or a group, and where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Object {
    /// Where it lies.
    pub uri: String,
    /// What it is.
    pub object_type: ObjectType,
}

/// The place of an array or a group: what [`Context::object`] gives, where either may lie.
///
/// Making one reads nothing; each method looks at what lies there when it is called.
#[derive(Debug, Clone)]
#[must_use]
pub struct ObjectHandle {
    pub(crate) context: Context,
    pub(crate) uri: String,
}

impl Context {
    /// Whatever lies at a URI or path. Nothing is read.
    pub fn object(&self, uri: &str) -> ObjectHandle {
        ObjectHandle {
            context: self.clone(),
            uri: uri.to_owned(),
        }
    }
}

impl ObjectHandle {
    /// The context that it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Where it lies, as given.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }
}

/// Finds the object at a URI.
fn find(context: &Context, uri: &str) -> Result<(Uri, Location, ObjectType)> {
    let uri = Uri::parse(uri)?;
    let location = crate::manifest::locate(context, &uri)?;
    match ObjectType::at(&location)? {
        Some(object_type) => Ok((uri, location, object_type)),
        None => Err(Error::NotFound {
            uri: uri.to_string(),
            what: "an array or a group",
        }),
    }
}

#[cfg(test)]
mod tests;
