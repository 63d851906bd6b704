//! Moving and copying arrays and groups.

use super::{ObjectHandle, find};
use crate::array::ArrayLock;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::group::ObjectType;
use crate::storage::{ReadRange, ReadRequest, Uri, path_in};
use azulejo_format::path::COMMITS_FOLDER;
use std::collections::{HashMap, HashSet};

/// Bytes of a large object that are held at a time.
const PIECE: u64 = 8 << 20;

impl ObjectHandle {
    /// Moves an array or a group, with all that lies in its folder. Groups elsewhere that have it
    /// as a member are not told.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is neither an array nor a group, [`Error::AlreadyExists`] if
    /// something lies at `to`.
    pub fn rename_to(&self, to: &str) -> Result<()> {
        let Self { context, uri: from } = self;

        let (from_uri, location, _) = find(&crate::manifest::without(context), from)?;
        let (to_uri, target) = target(context, &from_uri, to)?;
        let _lock = ArrayLock::wait(&location);
        let begun = source_of(&target)?.is_some();
        if !begun && std::mem::discriminant(&from_uri) == std::mem::discriminant(&to_uri) {
            return location.storage.rename(&location.path, &target.path);
        }
        self.copy_to(to)?;
        location
            .storage
            .delete(std::slice::from_ref(&location.path))
    }

    /// Copies an array or a group, with all that lies in its folder, foreign files included, to the
    /// same kind of storage or another. Members of a group that lie elsewhere are not copied; the
    /// copy names them as the original does.
    ///
    /// The copy is there once all of it is. What others write meanwhile may be in it or not. An
    /// error leaves nothing at `to`; a process that was killed leaves an
    /// [unfinished copy](Self::unfinished_copy), which the same copy goes on with.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is neither an array nor a group, [`Error::AlreadyExists`] if
    /// something else lies at `to`.
    pub fn copy_to(&self, to: &str) -> Result<()> {
        let Self { context, uri: from } = self;

        let (from_uri, location, _) = find(context, from)?;
        let (_, target) = target(context, &from_uri, to)?;
        let tree = FileTree::of(&location)?;
        let there = already_copied(&target, &tree)?;
        let note = target.join(UNFINISHED_COPY);
        let source = from_uri.to_string();
        note.storage.put(&note.path, source.into_bytes().into())?;
        let make = |markers: bool| {
            let mut folders = tree
                .folders
                .iter()
                .filter(|folder| is_marker(folder) == markers);
            folders.try_for_each(|folder| target.storage.make_folder(&target.path.join(folder)))
        };
        let mut done = 0;
        let operation = context.begin();
        let mut copy_file = |(file, size): &(String, Option<u64>)| {
            operation.check()?;
            context.report("files", done, tree.files.len() as u64);
            done += 1;
            if there.contains(file) {
                return Ok(());
            }
            copy_file(&location.join(file), &target.join(file), *size)
        };
        let mut write = || -> Result<()> {
            make(false)?;
            let (markers, files): (Vec<_>, Vec<_>) =
                tree.files.iter().partition(|(file, _)| is_marker(file));
            files.into_iter().try_for_each(&mut copy_file)?;
            make(true)?;
            markers.into_iter().try_for_each(&mut copy_file)?;
            note.storage.delete(std::slice::from_ref(&note.path))
        };
        write().inspect_err(|_| {
            // Nothing else lay there before. The first error is the one to report.
            let _ = target.storage.delete(std::slice::from_ref(&target.path));
        })
    }

    /// Of which object the folder is an unfinished copy, if it is one.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn unfinished_copy(&self) -> Result<Option<String>> {
        source_of(&self.context.locate(&Uri::parse(&self.uri)?)?)
    }

    /// Deletes an unfinished copy with all that lies in its folder.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none.
    pub fn delete_unfinished_copy(&self) -> Result<()> {
        let location = self.context.locate(&Uri::parse(&self.uri)?)?;
        if source_of(&location)?.is_none() {
            return Err(Error::NotFound {
                uri: self.uri.clone(),
                what: "an unfinished copy",
            });
        }
        location
            .storage
            .delete(std::slice::from_ref(&location.path))
    }
}

/// The file that says of which object a folder is to become a copy.
const UNFINISHED_COPY: &str = "__azulejo_copy";

fn source_of(location: &Location) -> Result<Option<String>> {
    let Location { storage, path } = location;
    if storage.find(path, &[UNFINISHED_COPY])?.is_empty() {
        return Ok(None);
    }
    let request = ReadRequest {
        path: path.join(UNFINISHED_COPY),
        range: ReadRange::All,
    };
    let text = storage.read(&[request])?.pop().unwrap_or_default();
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// The files that an unfinished copy has as a whole: a file gets its name when all of it is there.
/// What the original does not have is removed.
fn already_copied(target: &Location, tree: &FileTree) -> Result<HashSet<String>> {
    if source_of(target)?.is_none() {
        return Ok(HashSet::new());
    }
    let wanted: HashMap<&str, Option<u64>> = tree
        .files
        .iter()
        .map(|(file, size)| (file.as_str(), *size))
        .collect();
    let mut there = HashSet::new();
    let mut stale = Vec::new();
    for (file, size) in FileTree::of(target)?.files {
        match wanted.get(file.as_str()) {
            Some(original) if size.is_some() && size == *original => {
                there.insert(file);
            }
            Some(_) => {}
            None => stale.push(target.path.join(&file)),
        }
    }
    target.storage.delete(&stale)?;
    Ok(there)
}

/// Where something is to go; nothing may lie there but an unfinished copy of it.
fn target(context: &Context, from: &Uri, to: &str) -> Result<(Uri, Location)> {
    let uri = Uri::parse(to)?;
    let (source, path) = (from.path(), uri.path());
    if source == path || path.relative_to(source).is_some() || source.relative_to(path).is_some() {
        return Err(Error::InvalidArgument(format!(
            "{from} cannot go to {uri}: one lies in the other"
        )));
    }
    let location = context.locate(&uri)?;
    let taken = !location.storage.list(&location.path)?.is_empty()
        || location.storage.size(&location.path).is_ok();
    if taken && source_of(&location)?.as_deref() != Some(from.to_string().as_str()) {
        Err(Error::AlreadyExists {
            uri: uri.to_string(),
        })
    } else {
        Ok((uri, location))
    }
}

/// Everything below a folder, as relative paths.
#[derive(Debug, Default)]
struct FileTree {
    folders: Vec<String>,
    /// In the order in which they are to be written, with their sizes in bytes where these are
    /// known.
    files: Vec<(String, Option<u64>)>,
}

impl FileTree {
    fn of(location: &Location) -> Result<Self> {
        // Commits come before fragments in it, by name or level by level: every one listed has its
        // fragment.
        let listed = location.storage.list_tree(&location.path)?;
        let known: HashSet<&str> = listed.iter().map(|(folder, _)| folder.as_str()).collect();
        for (folder, entries) in &listed {
            for entry in entries.iter().filter(|entry| entry.is_dir) {
                let inner = path_in(folder, &entry.name);
                if !known.contains(inner.as_str()) {
                    return Err(Error::Unsupported(format!(
                        "{}: links to folders are not copied",
                        location.path.join(&inner)
                    )));
                }
            }
        }
        let mut tree = Self::default();
        for (folder, entries) in listed {
            let inside = |name: &str| path_in(&folder, name);
            let files = entries.iter().filter(|entry| !entry.is_dir);
            tree.files
                .extend(files.map(|entry| (inside(&entry.name), entry.size)));
            if !folder.is_empty() {
                tree.folders.push(folder);
            }
        }
        tree.files.sort_by_key(|(file, _)| rank(file));
        Ok(tree)
    }
}

/// When a file is to be written: commits behind fragments, inner objects before outer ones. What
/// makes objects exist is written after all of that, in this order too.
fn rank(file: &str) -> (usize, std::cmp::Reverse<usize>) {
    let commit = file.split('/').any(|part| part == COMMITS_FOLDER) || file.ends_with(".ok");
    (
        usize::from(commit),
        std::cmp::Reverse(file.split('/').count()),
    )
}

/// Whether a file or folder makes an object exist.
fn is_marker(path: &str) -> bool {
    path.split('/')
        .any(|part| ObjectType::MARKERS.contains(&part))
}

/// Copies one file, a piece at a time, and never a part of it: small ones, and those of object
/// stores, take the place of a file at `to`. Its size in bytes is asked for if it is not given.
///
/// # Errors
/// [`Error::NotFound`] if there is no such file; [`Error::AlreadyExists`] if it is not small and a
/// local file lies at `to`.
pub fn copy_file(from: &Location, to: &Location, size: Option<u64>) -> Result<()> {
    let (source, target) = (&from.path, &to.path);
    let size = match size {
        Some(size) => size,
        None => from.storage.size(source)?,
    };
    let read = |range| -> Result<bytes::Bytes> {
        let request = ReadRequest {
            path: source.clone(),
            range,
        };
        let read = from.storage.read(&[request])?.pop();
        read.ok_or_else(|| Error::Internal(format!("{source} was not read")))
    };
    if size <= PIECE {
        return to.storage.put(target, read(ReadRange::All)?);
    }
    let mut upload = to.storage.upload(target)?;
    let mut start = 0;
    while start < size {
        let end = size.min(start.saturating_add(PIECE));
        upload.write(&read(ReadRange::Bytes(start..end))?)?;
        start = end;
    }
    upload.finish()
}
