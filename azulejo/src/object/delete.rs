//! Deleting arrays and groups.

use super::{Object, ObjectHandle, find};
use crate::array::removal::{delete_one, remains};
use crate::array::{ArrayHandle, ArrayLock};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::group::Group;
use crate::object_type::ObjectType;
use crate::storage::Uri;
use std::collections::HashSet;

impl ObjectHandle {
    /// Deletes an array or a group, for good and at all times. Files that are not the format's
    /// stay, and so does the folder then. With `recursive` a group's members are deleted first,
    /// wherever they lie, and theirs; without, members stay.
    ///
    /// Returns what was deleted, in that order. What a crash leaves can be deleted again, and is
    /// deleted by who makes another object in its place.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is neither an array nor a group.
    pub fn delete(&self, recursive: bool) -> Result<Vec<Object>> {
        let context = &crate::manifest::without(&self.context);
        let plan = self.plan_deletion(recursive)?;
        for object in &plan {
            let (_, location, _) = find_or_remains(context, &object.uri)?;
            let lock = ArrayLock::wait(&location)?;
            let (_, location, object_type) = find_or_remains(context, &object.uri)?;
            // Else another one may lie there, made since by who has overtaken this process.
            lock.confirm(&location)?;
            delete_one(&location, object_type)?;
        }
        Ok(plan)
    }

    /// What [`Self::delete`] would delete; deletes nothing. Members that are not there are left
    /// out.
    ///
    /// # Errors
    /// As [`Self::delete`].
    pub fn plan_deletion(&self, recursive: bool) -> Result<Vec<Object>> {
        let context = &crate::manifest::without(&self.context);
        let (uri, location, object_type) = find_or_remains(context, &self.uri)?;
        let mut plan = Vec::new();
        let mut seen = HashSet::from([location.path.without_steps()]);
        // Each group is followed by its members: reversed, members come before the groups that name
        // them.
        let mut todo = vec![Object {
            uri: uri.to_string(),
            object_type,
        }];
        while let Some(object) = todo.pop() {
            if recursive && object.object_type == ObjectType::Group {
                let group = match context.group(&object.uri).open() {
                    // Its members were deleted before it.
                    Err(Error::NotFound { .. }) => None,
                    group => Some(group?),
                };
                for member in group.iter().flat_map(Group::members) {
                    let (uri, location, object_type) =
                        match find_or_remains(context, &member.location) {
                            Err(Error::NotFound { .. }) => continue,
                            found => found?,
                        };
                    if seen.insert(location.path.without_steps()) {
                        let uri = uri.to_string();
                        todo.push(Object { uri, object_type });
                    }
                }
            }
            plan.push(object);
        }
        plan.reverse();
        Ok(plan)
    }
}

/// As [`find`], also of what a deletion that was cut short has left.
fn find_or_remains(context: &Context, uri: &str) -> Result<(Uri, Location, ObjectType)> {
    match find(context, uri) {
        Err(error @ Error::NotFound { .. }) => {
            let uri = Uri::parse(uri)?;
            let location = context.locate(&uri)?;
            match remains(&location)? {
                Some(object_type) => Ok((uri, location, object_type)),
                None => Err(error),
            }
        }
        found => found,
    }
}

impl ArrayHandle {
    /// Deletes the array, for good and at all times. Files that are not the format's stay, and so
    /// does the folder then. A crash leaves an array that can be deleted again.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no array;
    /// [`Error::InvalidArgument`] if it is a group.
    pub fn delete(&self) -> Result<()> {
        let context = crate::manifest::without(&self.context);
        match find(&context, &self.uri)? {
            (_, _, ObjectType::Array) => context.object(&self.uri).delete(false).map(drop),
            (uri, ..) => Err(Error::InvalidArgument(format!(
                "{uri} is a group, no array"
            ))),
        }
    }
}
