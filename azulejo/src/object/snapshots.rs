//! Named snapshots of an array, or of a group and its members: making, listing, removing them.

use super::ObjectHandle;
use crate::array::ArrayLock;
use crate::clock;
use crate::consolidate::ArrayFolder;
use crate::context::Location;
use crate::error::{Error, Result};
use crate::object_type::ObjectType;
use crate::snapshots::{self, NamedSnapshot};
use crate::storage::Uri;
use std::collections::HashSet;

impl ObjectHandle {
    /// Gives a moment (milliseconds since 1970-01-01 UTC; now unless given) a name: of an array, or
    /// of a group and all its members, theirs included. Returns the URIs of those that have it now.
    ///
    /// # Errors
    /// [`Error::NotFound`] if nothing lies there, [`Error::AlreadyExists`] if one of them has a
    /// snapshot of that name, [`Error::InvalidArgument`] for a name that is none.
    pub fn create_snapshot(&self, name: &str, at: Option<u64>) -> Result<Vec<String>> {
        snapshots::check_name(name)?;
        // A time of its own: what is written next, in this very millisecond, is not shown.
        let made = clock::next_timestamp();
        let at = at.unwrap_or(made);
        let objects = self.with_members()?;
        for (uri, location) in &objects {
            if snapshots::find(location, name)?.is_some() {
                return Err(Error::AlreadyExists {
                    uri: format!("{uri}@{name}"),
                });
            }
        }
        let body = snapshots::encode(at, made);
        for (uri, location) in &objects {
            let Location { storage, path } = location;
            // A vacuum between the two would remove what the snapshot shows: of an array, or of a
            // group's key-values.
            let lock = match ObjectType::at(location)? {
                Some(_) => Some(ArrayLock::wait(location)?),
                None => None,
            };
            if snapshots::find(location, name)?.is_some() {
                return Err(Error::AlreadyExists {
                    uri: format!("{uri}@{name}"),
                });
            }
            self.note_shown(location, name, at)?;
            if let Some(lock) = &lock {
                lock.confirm(location)?;
            }
            storage.make_folder(&snapshots::folder_of(path))?;
            storage.put(
                &snapshots::folder_of(path).join(name),
                body.clone().into_bytes().into(),
            )?;
        }
        Ok(objects.into_iter().map(|(uri, _)| uri).collect())
    }

    /// The snapshots, by time.
    ///
    /// # Errors
    /// [`Error::NotFound`] if nothing lies there, [`Error::Corrupt`] for a file that is none.
    pub fn snapshots(&self) -> Result<Vec<NamedSnapshot>> {
        let uri = Uri::parse(&self.uri)?;
        let location = crate::manifest::locate(&self.context, &uri)?;
        present(&location, &uri)?;
        snapshots::list(&location)
    }

    /// As [`Self::snapshots`], for an executor, of an object that is there.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a file that is none.
    #[cfg(feature = "stream")]
    pub async fn snapshots_async(&self) -> Result<Vec<NamedSnapshot>> {
        let location = crate::manifest::locate(&self.context, &Uri::parse(&self.uri)?)?;
        snapshots::list_as(&location, crate::storage::Waiting::Polls).await
    }

    /// Removes the name of a moment, of a group with that of all members that have it. Nothing else
    /// is removed: the next vacuum may.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such snapshot.
    pub fn remove_snapshot(&self, name: &str) -> Result<Vec<String>> {
        snapshots::check_name(name)?;
        let mut removed = Vec::new();
        for (uri, location) in self.with_members()? {
            if snapshots::find(&location, name)?.is_some() {
                let Location { storage, path } = &location;
                storage.delete(&[snapshots::folder_of(path).join(name)])?;
                storage.delete(&[snapshots::shown_path(path, name)])?;
                removed.push(uri);
            }
        }
        match removed.is_empty() {
            true => Err(snapshots::not_found(&self.uri, name)),
            false => Ok(removed),
        }
    }

    /// The moment that a snapshot names.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of that name.
    pub fn snapshot_time(&self, name: &str) -> Result<u64> {
        snapshots::time_of(&self.context, &self.uri, name)
    }

    /// Writes down what an array shows at a time.
    fn note_shown(&self, location: &Location, name: &str, at: u64) -> Result<()> {
        if ObjectType::at(location)? != Some(ObjectType::Array) {
            return Ok(());
        }
        let names = ArrayFolder::at(&self.context, location)?.shown_at(at)?;
        let path = snapshots::shown_path(&location.path, name);
        let Location { storage, .. } = location;
        if let Some(folder) = path.parent() {
            storage.make_folder(&folder)?;
        }
        storage.put(&path, (names.join("\n") + "\n").into_bytes().into())
    }

    /// The object, and of a group all members that are there.
    fn with_members(&self) -> Result<Vec<(String, Location)>> {
        let (mut objects, mut seen) = (Vec::new(), HashSet::new());
        let mut todo = vec![self.uri.clone()];
        while let Some(text) = todo.pop() {
            let uri = Uri::parse(&text)?;
            let location = self.context.locate(&uri)?;
            if !seen.insert(location.path.without_steps()) {
                continue;
            }
            let found = match present(&location, &uri) {
                Err(Error::NotFound { .. }) if !objects.is_empty() => continue,
                found => found?,
            };
            if found == ObjectType::Group {
                let group = self.context.group(&text).open()?;
                todo.extend(group.members().iter().map(|m| m.location.clone()));
            }
            objects.push((uri.to_string(), location));
        }
        Ok(objects)
    }
}

fn present(location: &Location, uri: &Uri) -> Result<ObjectType> {
    ObjectType::at(location)?.ok_or_else(|| Error::NotFound {
        uri: uri.to_string(),
        what: "an array or a group",
    })
}
