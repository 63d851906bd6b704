//! Arrays and groups as a whole: deleting, moving and copying them.

mod delete;
mod transfer;

pub use delete::{delete, plan_deletion};
pub use transfer::{copy, copy_file, rename};

use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::group::ObjectType;
use crate::storage::Uri;

/// An array or a group, and where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Where it lies.
    pub uri: String,
    /// What it is.
    pub object_type: ObjectType,
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
