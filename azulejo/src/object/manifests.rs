//! Making manifests, and holding them against what is there.

use super::ObjectHandle;
use crate::clock;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::manifest::{MANIFEST_FILE, Manifest, fill, without};
use crate::object_type::ObjectType;
use crate::snapshots::LISTED_FOLDER;
use crate::storage::{Entry, ReadRange, ReadRequest, StorePath, Uri};
use azulejo_format::path::MANIFEST_FOLDER;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// A manifest that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenManifest {
    /// The array or group.
    pub uri: String,
    /// What it is.
    pub object_type: ObjectType,
    /// The moment that the manifest shows, in milliseconds since 1970-01-01 UTC.
    pub made: u64,
    /// Files that it names.
    pub files: usize,
    /// Its own size in bytes.
    pub bytes: usize,
}

/// Something that is not as a manifest says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A file or folder is there that the manifest does not name.
    Added(String),
    /// A file or folder that the manifest names is gone.
    Gone(String),
    /// A file has another size.
    Resized(String),
}

/// How a manifest compares with what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManifestState {
    /// The moment that the manifest shows, in milliseconds since 1970-01-01 UTC.
    pub made: u64,
    /// What has changed since, by paths relative to the object. Empty: the manifest is up to date.
    pub changes: Vec<Change>,
}

/// What [`write`] has done.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Manifests {
    /// The manifests, that of the object asked for first.
    pub written: Vec<WrittenManifest>,
    /// Members of groups that got none, such as those that are gone, and why.
    pub skipped: Vec<(String, Error)>,
}

impl ObjectHandle {
    /// Writes the manifest of an array or group, and those of the objects in its folder and, for
    /// groups, of all members wherever they lie. Existing ones are replaced.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is neither an array nor a group; errors of listing and writing.
    pub fn write_manifests(&self) -> Result<Manifests> {
        let context = without(&self.context);
        let (mut manifests, mut done) = (Manifests::default(), BTreeSet::new());
        let mut pending = write_below(&context, &self.uri, &mut done, &mut manifests.written)?;
        while let Some(member) = pending.pop() {
            match write_below(&context, &member, &mut done, &mut manifests.written) {
                Ok(members) => pending.extend(members),
                Err(error) => manifests.skipped.push((member, error)),
            }
        }
        Ok(manifests)
    }
}

/// Writes the manifests of the object at a URI and of those in its folder; returns the members of
/// groups among them.
fn write_below(
    context: &Context,
    uri: &str,
    done: &mut BTreeSet<StorePath>,
    written: &mut Vec<WrittenManifest>,
) -> Result<Vec<String>> {
    let location = context.locate(&Uri::parse(uri)?)?;
    if done.contains(&location.path.without_steps()) {
        return Ok(Vec::new());
    }
    let found = manifests(&location)?;
    if !found.iter().any(|(path, ..)| path.is_empty()) {
        return Err(Error::NotFound {
            uri: uri.to_owned(),
            what: "an array or a group",
        });
    }
    let mut members = Vec::new();
    for (path, object_type, mut manifest) in found {
        let object = location.path.join(&path);
        if !done.insert(object.without_steps()) {
            continue;
        }
        fill(&mut manifest, &location.join(&path))?;
        let bytes = manifest
            .encode()
            .map_err(|e| Error::decode(object.to_string(), e))?;
        let (made, files, size) = (manifest.made, manifest.file_num(), bytes.len());
        location
            .storage
            .make_folder(&object.join(MANIFEST_FOLDER))?;
        location
            .storage
            .put(&object.join(MANIFEST_FILE), Bytes::from(bytes))?;
        written.push(WrittenManifest {
            uri: object.to_string(),
            object_type,
            made,
            files,
            bytes: size,
        });
        if object_type == ObjectType::Group {
            let group = context.group(&object.to_string()).open()?;
            members.extend(group.members().iter().map(|member| member.location.clone()));
        }
    }
    Ok(members)
}

impl ObjectHandle {
    /// Compares the manifest of an array or group with what is there; `None` if it has none.
    ///
    /// # Errors
    /// Errors of listing; [`Error::Corrupt`] for a damaged manifest.
    pub fn manifest_state(&self) -> Result<Option<ManifestState>> {
        let Self { context, uri } = self;

        let location = context.locate(&Uri::parse(uri)?)?;
        let path = location.path.join(MANIFEST_FILE);
        let read = location.storage.read(&[ReadRequest {
            path: path.clone(),
            range: ReadRange::AtMost(context.config().memory_budget),
        }]);
        let bytes = match read {
            Ok(read) => read.into_iter().next().unwrap_or_default(),
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let decoded = Manifest::decode(&bytes, context.config().memory_budget);
        let manifest = decoded.map_err(|e| Error::decode(path.to_string(), e))?;
        let now = manifests(&location)?
            .into_iter()
            .find(|(path, ..)| path.is_empty());
        let Some((_, _, now)) = now else {
            return Err(Error::NotFound {
                uri: uri.to_owned(),
                what: "an array or a group",
            });
        };
        Ok(Some(ManifestState {
            made: manifest.made,
            changes: changes(&manifest, &now),
        }))
    }
}

/// The manifests of all objects in a folder, the folder itself included, by relative path.
fn manifests(location: &Location) -> Result<Vec<(String, ObjectType, Manifest)>> {
    let made = clock::now();
    let tree = list_tree(location)?;
    let mut objects: BTreeMap<String, (ObjectType, Manifest)> = BTreeMap::new();
    for (path, entries) in &tree {
        if let Some(object_type) = ObjectType::of(entries) {
            objects.insert(
                path.clone(),
                (
                    object_type,
                    Manifest {
                        made,
                        folders: BTreeMap::new(),
                        contents: BTreeMap::new(),
                    },
                ),
            );
        }
    }
    for (path, entries) in tree {
        // The innermost object that the folder lies in.
        let mut object = path.as_str();
        while !objects.contains_key(object) && !object.is_empty() {
            object = object.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
        let inside = path
            .get(object.len()..)
            .unwrap_or_default()
            .trim_start_matches('/')
            .to_owned();
        if let Some((_, manifest)) = objects.get_mut(object) {
            manifest.folders.insert(inside, entries);
        }
    }
    Ok(objects
        .into_iter()
        .map(|(path, (object_type, manifest))| (path, object_type, manifest))
        .collect())
}

/// All folders below one, by relative path, without our own but for that of named snapshots.
fn list_tree(location: &Location) -> Result<BTreeMap<String, Vec<Entry>>> {
    let mut tree: BTreeMap<String, Vec<Entry>> = location
        .storage
        .list_tree(&location.path)?
        .into_iter()
        .collect();
    let is_own = |path: &str| path.split('/').any(|part| part == MANIFEST_FOLDER);
    let is_snapshots = |path: &str| match path.strip_suffix(LISTED_FOLDER) {
        Some(object) => object.is_empty() || object.ends_with('/'),
        None => false,
    };
    tree.retain(|path, _| !is_own(path) || is_snapshots(path));
    for entries in tree.values_mut() {
        entries.retain(|entry| !(entry.is_dir && entry.name == MANIFEST_FOLDER));
        // A bucket may have an object of a folder's name, which no path of an array leads to.
        entries.sort_by(|a, b| (&a.name, !a.is_dir).cmp(&(&b.name, !b.is_dir)));
        entries.dedup_by(|a, b| a.name == b.name);
    }
    Ok(tree)
}

fn changes(then: &Manifest, now: &Manifest) -> Vec<Change> {
    let names = |manifest: &Manifest| -> BTreeMap<String, (bool, Option<u64>)> {
        let path = |folder: &str, entry: &Entry| {
            StorePath::memory(folder)
                .join(&entry.name)
                .as_str()
                .to_owned()
        };
        let folders = manifest.folders.iter();
        folders
            .flat_map(|(folder, entries)| {
                entries
                    .iter()
                    .map(move |entry| (path(folder, entry), entry))
            })
            .map(|(path, entry)| (path, (entry.is_dir, entry.size.filter(|_| !entry.is_dir))))
            .collect()
    };
    let (then, now) = (names(then), names(now));
    let mut changes = Vec::new();
    for (path, (is_dir, size)) in &now {
        match then.get(path) {
            Some((was_dir, _)) if was_dir != is_dir => changes.push(Change::Added(path.clone())),
            Some((_, Some(before))) if size.is_some_and(|size| size != *before) => {
                changes.push(Change::Resized(path.clone()));
            }
            Some(_) => {}
            None => changes.push(Change::Added(path.clone())),
        }
    }
    changes.extend(
        then.keys()
            .filter(|path| !now.contains_key(*path))
            .cloned()
            .map(Change::Gone),
    );
    changes
}
