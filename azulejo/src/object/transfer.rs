//! Moving and copying arrays and groups.

use super::{ObjectHandle, find};
use crate::array::removal::{UNFINISHED, UNFINISHED_COPY, finish_deletion, hide};
use crate::array::{ArrayLock, is_claim, remove_claims};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::object_type::ObjectType;
use crate::storage::{ReadRange, ReadRequest, Uri, is_temporary, path_in};
use azulejo_format::path::COMMITS_FOLDER;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Bytes of a large object that are held at a time.
const PIECE: u64 = 8 << 20;

impl ObjectHandle {
    /// Moves an array or a group, with all that lies in its folder. Groups elsewhere that have it
    /// as a member are not told.
    ///
    /// Within one file system it moves at once. Elsewhere it is copied, then deleted; a process
    /// that was killed leaves one of them, or both, and the same move goes on.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is neither an array nor a group, [`Error::AlreadyExists`] if
    /// something lies at `to`.
    pub fn rename_to(&self, to: &str) -> Result<()> {
        let Self { context, uri: from } = self;

        let context = &crate::manifest::without(context);
        let from_uri = Uri::parse(from)?;
        let to_uri = target_uri(&from_uri, to)?;
        let target = context.locate(&to_uri)?;
        if Note::at(&target)? == Some(Note::moved(&from_uri)) {
            return finish_move(&context.locate(&from_uri)?, &target);
        }
        let (_, location, _) = find(context, from)?;
        let lock = ArrayLock::wait(&location)?;
        let begun = Note::at(&target)?.is_some();
        if !begun && std::mem::discriminant(&from_uri) == std::mem::discriminant(&to_uri) {
            refuse_taken(&target, &to_uri)?;
            location.storage.rename(&location.path, &target.path)?;
            return match lock.is_claim() {
                true => remove_claims(&target),
                false => Ok(()),
            };
        }
        refuse_other(&target, &Note::begun(&from_uri), &to_uri)?;
        let note = Note::moved(&from_uri);
        copy(context, &from_uri, &location, &target, || note.put(&target))?;
        finish_move(&location, &target)
    }

    /// Copies an array or a group, with all that lies in its folder, foreign files included, to the
    /// same kind of storage or another. Members of a group that lie elsewhere are not copied; the
    /// copy names them as the original does.
    ///
    /// The copy is there once all of it is. What others write meanwhile may be in it or not. An
    /// error leaves nothing at `to`; a process that was killed leaves an
    /// [unfinished copy](Self::unfinished_copy), which the same copy goes on with. Where all of the
    /// copy lies already, nothing is left to do.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is neither an array nor a group, [`Error::AlreadyExists`] if
    /// something else lies at `to`.
    pub fn copy_to(&self, to: &str) -> Result<()> {
        let Self { context, uri: from } = self;

        let (from_uri, location, _) = find(context, from)?;
        let to_uri = target_uri(&from_uri, to)?;
        let target = context.locate(&to_uri)?;
        match refuse_other(&target, &Note::begun(&from_uri), &to_uri) {
            Err(Error::AlreadyExists { .. }) if is_copied(&location, &target)? => return Ok(()),
            free => free?,
        }
        copy(context, &from_uri, &location, &target, || {
            Note::remove(&target)
        })
    }

    /// Of which object the folder is an unfinished copy, if it is one.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn unfinished_copy(&self) -> Result<Option<String>> {
        let note = Note::at(&self.context.locate(&Uri::parse(&self.uri)?)?)?;
        Ok(note.filter(|note| !note.is_whole).map(|note| note.source))
    }

    /// Deletes an unfinished copy with all that lies in its folder.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none.
    pub fn delete_unfinished_copy(&self) -> Result<()> {
        let location = self.context.locate(&Uri::parse(&self.uri)?)?;
        if Note::at(&location)?.is_none_or(|note| note.is_whole) {
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

impl ObjectHandle {
    /// Notes that an array is about to be made of something else, such as a file: should the
    /// process not live to [end](Self::end_making) it, the same begins again.
    ///
    /// What was left of the same `source` is deleted first.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if anything else lies there.
    pub fn begin_making(&self, source: &str) -> Result<()> {
        let uri = Uri::parse(&self.uri)?;
        let target = self.context.locate(&uri)?;
        let note = Note {
            source: source.to_owned(),
            is_whole: false,
        };
        if Note::at_path(&target, UNFINISHED)?.as_ref() == Some(&note) {
            if ObjectType::at(&target)?.is_some() {
                self.delete(false)?;
            }
        } else if ObjectType::at(&target)?.is_some() {
            return Err(Error::AlreadyExists {
                uri: uri.to_string(),
            });
        }
        note.put_at(&target, UNFINISHED)
    }

    /// Says that an array is whole that [`Self::begin_making`] has begun.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn end_making(&self) -> Result<()> {
        let target = self.context.locate(&Uri::parse(&self.uri)?)?;
        target.storage.delete(&[target.path.join(UNFINISHED)])
    }

    /// Of what an array was to be made that is not whole, if it is one.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn unfinished(&self) -> Result<Option<String>> {
        let target = self.context.locate(&Uri::parse(&self.uri)?)?;
        Ok(Note::at_path(&target, UNFINISHED)?.map(|note| note.source))
    }
}

/// The second line of one that is to be moved, once all of the copy is there.
const IS_WHOLE: &str = "whole";
/// More bytes than a note can have.
const MAX_NOTE: u64 = 1 << 20;

/// What such a file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    source: String,
    /// Whether only the original is left to be deleted.
    is_whole: bool,
}

impl Note {
    fn begun(source: &Uri) -> Self {
        let (source, is_whole) = (source.to_string(), false);
        Self { source, is_whole }
    }

    fn moved(source: &Uri) -> Self {
        let (source, is_whole) = (source.to_string(), true);
        Self { source, is_whole }
    }

    /// About a copy of what an object was at a time.
    pub fn of_past(source: &Uri, timestamp: u64) -> Self {
        let (source, is_whole) = (format!("{source} as of {timestamp}"), false);
        Self { source, is_whole }
    }

    fn at(location: &Location) -> Result<Option<Self>> {
        Self::at_path(location, UNFINISHED_COPY)
    }

    fn at_path(location: &Location, name: &str) -> Result<Option<Self>> {
        let Location { storage, path } = location;
        if storage.find(path, &[name])?.is_empty() {
            return Ok(None);
        }
        let request = ReadRequest {
            path: path.join(name),
            range: ReadRange::AtMost(MAX_NOTE),
        };
        let text = storage.read(&[request])?.pop().unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let (source, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let (source, is_whole) = (source.to_owned(), rest == IS_WHOLE);
        Ok(Some(Self { source, is_whole }))
    }

    pub fn put(&self, target: &Location) -> Result<()> {
        self.put_at(target, UNFINISHED_COPY)
    }

    fn put_at(&self, target: &Location, name: &str) -> Result<()> {
        let mut text = self.source.clone();
        if self.is_whole {
            text = format!("{text}\n{IS_WHOLE}");
        }
        let path = target.path.join(name);
        target.storage.put(&path, text.into_bytes().into())
    }

    pub fn remove(target: &Location) -> Result<()> {
        target.storage.delete(&[target.path.join(UNFINISHED_COPY)])
    }
}

/// Copies all that lies in a folder, then does `last`.
fn copy(
    context: &Context,
    from_uri: &Uri,
    location: &Location,
    target: &Location,
    last: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let tree = FileTree::of(location)?;
    let there = already_copied(target, &tree)?;
    Note::begun(from_uri).put(target)?;
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
        operation.runs(|| copy_file(&location.join(file), &target.join(file), *size))
    };
    let write = || -> Result<()> {
        make(false)?;
        let (markers, files): (Vec<_>, Vec<_>) =
            tree.files.iter().partition(|(file, _)| is_marker(file));
        files.into_iter().try_for_each(&mut copy_file)?;
        make(true)?;
        markers.into_iter().try_for_each(&mut copy_file)?;
        last()
    };
    write().inspect_err(|_| {
        // Nothing else lay there before. The first error is the one to report.
        let _ = target.storage.delete(std::slice::from_ref(&target.path));
    })
}

/// Deletes the original of a copy that is whole.
fn finish_move(location: &Location, target: &Location) -> Result<()> {
    if let Some(object_type) = ObjectType::at(location)? {
        hide(location, object_type)?;
    }
    location
        .storage
        .delete(std::slice::from_ref(&location.path))?;
    Note::remove(target)
}

/// Whether a folder is a whole copy of another, as far as the names and sizes of files tell, and
/// the bytes of small ones.
fn is_copied(location: &Location, target: &Location) -> Result<bool> {
    let read = |location: &Location, file: &str, size: u64| {
        location.storage.read(&[ReadRequest {
            path: location.path.join(file),
            range: ReadRange::Bytes(0..size.min(COMPARED)),
        }])
    };
    let files = |location: &Location| -> Result<BTreeMap<String, u64>> {
        let files = FileTree::of(location)?.files.into_iter();
        let sized = files.map(|(file, size)| match size {
            Some(size) => Ok((file, size)),
            None => Ok((
                file.clone(),
                location.storage.size(&location.path.join(&file))?,
            )),
        });
        sized.collect()
    };
    let (original, copy) = (files(location)?, files(target)?);
    if original != copy {
        return Ok(false);
    }
    for (file, size) in original {
        if read(location, &file, size)? != read(target, &file, size)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A file larger than this is not copied if less than one of so many of its bytes were written: no
/// array has such a file, and a few bytes of a hostile one would fill a disk.
const LARGEST_HOLLOW: u64 = 1 << 30;
const HOLLOW: u64 = 1024;

/// First bytes of files that are compared.
const COMPARED: u64 = 64 << 10;

/// The files that an unfinished copy has as a whole: a file gets its name when all of it is there.
/// What the original does not have is removed.
fn already_copied(target: &Location, tree: &FileTree) -> Result<HashSet<String>> {
    if Note::at(target)?.is_none() {
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
            None if file == UNFINISHED_COPY => {}
            None => stale.push(target.path.join(&file)),
        }
    }
    target.storage.delete(&stale)?;
    Ok(there)
}

/// Where something is to go.
pub(super) fn target_uri(from: &Uri, to: &str) -> Result<Uri> {
    let uri = Uri::parse(to)?;
    let (source, path) = (from.path(), uri.path());
    if source == path || path.relative_to(source).is_some() || source.relative_to(path).is_some() {
        return Err(Error::InvalidArgument(format!(
            "{from} cannot go to {uri}: one lies in the other"
        )));
    }
    Ok(uri)
}

/// An error if something lies there. What was cut short at its first step is nothing.
fn refuse_taken(target: &Location, uri: &Uri) -> Result<()> {
    let Location { storage, path } = target;
    finish_deletion(target)?;
    let mut entries = storage.list(path)?;
    if entries.iter().any(|entry| !is_temporary(&entry.name)) || storage.size(path).is_ok() {
        return Err(Error::AlreadyExists {
            uri: uri.to_string(),
        });
    }
    let left = entries.drain(..).map(|entry| path.join(&entry.name));
    storage.delete(&left.collect::<Vec<_>>())
}

/// An error if anything but the unfinished copy lies there that a note is about.
pub(super) fn refuse_other(target: &Location, own: &Note, uri: &Uri) -> Result<()> {
    match Note::at(target)? {
        Some(note) if note == *own => Ok(()),
        _ => refuse_taken(target, uri),
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
            let files = entries.iter().filter(|e| !e.is_dir && !is_claim(&e.name));
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
/// local file lies at `to`; [`Error::InvalidArgument`] if it is large and nearly all of it was never
/// written: a copy would take up all that it only claims.
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
    if size > LARGEST_HOLLOW
        && let Some(stored) = from.storage.stored_size(source)?
        && stored < size / HOLLOW
    {
        return Err(Error::InvalidArgument(format!(
            "{source} claims {size} bytes and holds {stored}: it is not copied"
        )));
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
