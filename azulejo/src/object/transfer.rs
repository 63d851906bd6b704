//! Moving and copying arrays and groups.

use super::{ObjectHandle, find};
use crate::array::removal::{
    REMAINS, UNFINISHED, UNFINISHED_COPY, finish_deletion, hide, is_full, remains,
};
use crate::array::{ArrayLock, is_claim, remove_claims};
use crate::config::ManifestUse;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::object_type::ObjectType;
use crate::storage::{Entry, ReadRange, ReadRequest, StorePath, Uri, is_temporary, path_in};
use azulejo_format::path::{
    COMMITS_FOLDER, ENUMERATIONS_FOLDER, FRAGMENTS_FOLDER, GROUP_DETAILS_FOLDER,
    LEGACY_SCHEMA_FILE, METADATA_FOLDER, RootEntry, SCHEMA_FOLDER,
};
use azulejo_format::timestamped_name::TimestampedName;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

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
        let (begun, moved) = (Note::begun(&from_uri), Note::moved(&from_uri));
        if Note::at(&target)?.as_ref() != Some(&moved) {
            find(context, from)?;
            refuse_other(&target, &begun, &to_uri)?;
        }
        let location = context.locate(&from_uri)?;
        let lock = ArrayLock::wait(&location)?;
        // Others may have moved or deleted it, or made another one, until now.
        if Note::at(&target)?.as_ref() == Some(&moved) {
            return resume_move(&location, &target, &to_uri);
        }
        find(context, from)?;
        refuse_other(&target, &begun, &to_uri)?;
        if Note::at(&target)?.is_none() && moves_at_once(&location, &from_uri, &target, &to_uri) {
            FileTree::refuse_unlisted(&location, "")?;
            match location.storage.rename(&location.path, &target.path) {
                // Two file systems.
                Err(Error::Storage { source, .. })
                    if source.kind() == std::io::ErrorKind::CrossesDevices => {}
                renamed => {
                    renamed?;
                    return match lock.is_claim() {
                        true => remove_claims(&target),
                        false => Ok(()),
                    };
                }
            }
        }
        let _making = Making::wait(&target, &begun, &to_uri)?;
        copy(context, &from_uri, &location, &target, || {
            moved.put(&target)
        })?;
        // Who was overtaken does not know what lies there now; the same move goes on from here.
        lock.confirm(&location)?;
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
        // Who can list what lies there has it copied by the storage itself, if that can.
        let plain = context.locate(&from_uri)?;
        let location = match context.config().manifest {
            ManifestUse::Fallback if Arc::ptr_eq(&plain.storage, &target.storage) => plain,
            _ => location,
        };
        let note = Note::begun(&from_uri);
        let free = refuse_other(&target, &note, &to_uri)
            .and_then(|()| Making::wait(&target, &note, &to_uri));
        let _making = match free {
            Err(Error::AlreadyExists { .. }) if is_copied(&location, &target)? => return Ok(()),
            free => free?,
        };
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
    /// What was left of the same `source` is deleted first. `timestamp` is the time that the array's
    /// schema is going to have, by which it is told from one that somebody else makes there. A group
    /// has none: one that has members is whole, or somebody else's, and so is an array in its place.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if anything else lies there.
    pub fn begin_making(&self, source: &str, timestamp: Option<u64>) -> Result<()> {
        let uri = Uri::parse(&self.uri)?;
        let target = self.context.locate(&uri)?;
        if ObjectType::at(&target)?.is_some() {
            let left = Note::of_unfinished(&target)?;
            if left.is_none_or(|note| note.source != source) {
                return Err(Error::AlreadyExists {
                    uri: uri.to_string(),
                });
            }
            self.delete(false)?;
        }
        let note = Note {
            source: source.to_owned(),
            is_whole: false,
            made_at: timestamp,
        };
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
        Ok(Note::of_unfinished(&target)?.map(|note| note.source))
    }
}

/// Whether what lies in a place is what a note there says is being made.
pub(crate) fn is_unfinished(location: &Location) -> Result<bool> {
    Ok(Note::of_unfinished(location)?.is_some())
}

/// The second line of one that is to be moved, once all of the copy is there.
const IS_WHOLE: &str = "whole";
/// What the second line of one begins with that says of which time an array's schema is.
const MADE_AT: &str = "made at ";
/// More bytes than a note can have.
const MAX_NOTE: u64 = 1 << 20;

/// What such a file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    source: String,
    /// Whether only the original is left to be deleted.
    is_whole: bool,
    /// The time of the schema of an array that is being made.
    made_at: Option<u64>,
}

impl Note {
    fn begun(source: &Uri) -> Self {
        Self::of(source.to_string(), false)
    }

    fn of(source: String, is_whole: bool) -> Self {
        Self {
            source,
            is_whole,
            made_at: None,
        }
    }

    fn moved(source: &Uri) -> Self {
        Self::of(source.to_string(), true)
    }

    /// About a copy of what an object was at a time.
    pub fn of_past(source: &Uri, timestamp: u64) -> Self {
        Self::of(format!("{source} as of {timestamp}"), false)
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
        let made_at = rest.strip_prefix(MADE_AT);
        Ok(Some(Self {
            made_at: made_at.and_then(|time| time.parse().ok()),
            ..Self::of(source.to_owned(), rest == IS_WHOLE)
        }))
    }

    /// What is noted in a place of something that is being made, if that is what lies there, or nothing
    /// does yet.
    fn of_unfinished(location: &Location) -> Result<Option<Self>> {
        match Self::at_path(location, UNFINISHED)? {
            Some(note) if note.is_about_what_is_at(location)? => Ok(Some(note)),
            _ => Ok(None),
        }
    }

    /// Whether what lies in a place is what the note there says is being made, or nothing yet. Another
    /// library may have made something in a place where an import was killed, and leaves the note
    /// alone.
    fn is_about_what_is_at(&self, location: &Location) -> Result<bool> {
        let Location { storage, path } = location;
        match (ObjectType::at(location)?, self.made_at) {
            (None, _) => Ok(true),
            // It gets its members when all of them are there: then it is whole, or another's.
            (Some(ObjectType::Group), None) => storage.is_empty(&path.join(GROUP_DETAILS_FOLDER)),
            (Some(ObjectType::Group), Some(_)) | (Some(ObjectType::Array), None) => Ok(false),
            (Some(ObjectType::Array), Some(time)) => {
                let schemas = storage.list(&path.join(SCHEMA_FOLDER))?;
                let names = schemas
                    .iter()
                    .filter_map(|entry| TimestampedName::parse(&entry.name).ok());
                let names: Vec<_> = names.collect();
                if names.iter().any(|name| name.t_start == time) {
                    return Ok(true);
                }
                // Enumerations come before the schema that names them, and cells behind it.
                let has_cells = || -> Result<bool> {
                    let is_empty = storage.is_empty(&path.join(FRAGMENTS_FOLDER))?;
                    Ok(!is_empty || !storage.find(path, &[LEGACY_SCHEMA_FILE])?.is_empty())
                };
                Ok(names.is_empty() && !has_cells()?)
            }
        }
    }

    pub fn put(&self, target: &Location) -> Result<()> {
        self.put_at(target, UNFINISHED_COPY)
    }

    fn put_at(&self, target: &Location, name: &str) -> Result<()> {
        let mut text = self.source.clone();
        if self.is_whole {
            text = format!("{text}\n{IS_WHOLE}");
        } else if let Some(time) = self.made_at {
            text = format!("{text}\n{MADE_AT}{time}");
        }
        let path = target.path.join(name);
        target.storage.put(&path, text.into_bytes().into())
    }

    pub fn remove(target: &Location) -> Result<()> {
        target.storage.delete(&[target.path.join(UNFINISHED_COPY)])
    }

    /// Notes that a copy begins, in the place of what is left of the same one. `refuse_other` has been
    /// asked before. Who makes something else there comes before that, or finds the note.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if anything else lies there.
    pub fn begin_anew(&self, target: &Location, uri: &Uri) -> Result<()> {
        let _making = Making::wait(target, self, uri)?;
        let Location { storage, path } = target;
        let mut left = storage.list(path)?;
        // The note goes when it is written anew.
        left.retain(|entry| !is_claim(&entry.name) && entry.name != UNFINISHED_COPY);
        let left = left.into_iter().map(|entry| path.join(&entry.name));
        storage.delete(&left.collect::<Vec<_>>())?;
        self.put(target)
    }
}

/// Whether a folder gets another name at once, with all that lies in it: where folders are more
/// than parts of names, as such storages alone can lock them. Elsewhere a move of many files that
/// is cut short would leave two halves.
fn moves_at_once(location: &Location, from: &Uri, target: &Location, to: &Uri) -> bool {
    let has_folders = |location: &Location| location.storage.locking().is_some();
    std::mem::discriminant(from) == std::mem::discriminant(to)
        && from.path().scheme() == to.path().scheme()
        && has_folders(location)
        && has_folders(target)
}

/// The place of a copy, at which nobody else copies or makes anything as long as this lives.
struct Making {
    _lock: ArrayLock,
}

impl Making {
    /// Waits for whoever makes something there. `refuse_other` has been asked before, and what was
    /// deleted there is gone.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if anything but the copy lies there then that a note is about.
    fn wait(target: &Location, own: &Note, uri: &Uri) -> Result<Self> {
        let lock = ArrayLock::wait_to_make(target)?;
        match Note::at(target)? {
            Some(note) if note == *own => {}
            _ => refuse_entries(target, uri)?,
        }
        Ok(Self { _lock: lock })
    }
}

/// How often a copy begins anew beside vacuums.
const COPY_ATTEMPTS: usize = 16;

/// Copies all that lies in a folder, then does `last`. The caller holds the place of the copy.
///
/// What makes the copy exist is written last, and only if all is still there that was copied: a
/// vacuum beside it may have taken away some of the files, and what they were replaced by came too
/// late for the listing.
fn copy(
    context: &Context,
    from_uri: &Uri,
    location: &Location,
    target: &Location,
    last: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let mut tree = FileTree::of(location).inspect_err(|_| {
        // The lock may have made it. The first error is the one to report.
        let _ = target.storage.remove_empty_folder(&target.path);
    })?;
    let write = || -> Result<()> {
        for _ in 0..COPY_ATTEMPTS {
            let missing = match copy_parts(context, from_uri, location, target, &tree) {
                // Maybe it went before it was copied.
                Err(error @ Error::NotFound { .. }) => Some(error),
                copied => copied.map(|()| None)?,
            };
            let now = FileTree::of(location)?;
            if now.has_all_of(&tree) {
                if let Some(error) = missing {
                    return Err(error);
                }
                copy_markers(context, location, target, &tree)?;
                return last();
            }
            tree = now;
        }
        Err(Error::Storage {
            op: "copy",
            uri: location.path.to_string(),
            source: std::io::Error::other("its files were replaced as fast as they were copied"),
        })
    };
    write().inspect_err(|_| {
        // Nothing else lay there before. The first error is the one to report.
        let _ = target.storage.delete(std::slice::from_ref(&target.path));
    })
}

/// Copies all but what makes objects exist.
fn copy_parts(
    context: &Context,
    from_uri: &Uri,
    location: &Location,
    target: &Location,
    tree: &FileTree,
) -> Result<()> {
    let there = already_copied(target, tree)?;
    Note::begun(from_uri).put(target)?;
    tree.make_folders(target, false)?;
    let (mut done, operation) = (0, context.begin());
    let total = tree.files.len() as u64;
    // Where nothing comes here, files of any size are copied side by side.
    let most = match waits(location) || waits(target) {
        true if Arc::ptr_eq(&location.storage, &target.storage) => LARGEST_COPIED_THERE,
        true => PIECE,
        false => 0,
    };
    let mut files = tree.files.iter().peekable();
    while files.peek().is_some() {
        operation.check()?;
        context.report("files", done, total);
        let mut together = FilesTogether::default();
        while let Some((file, size)) = files.next_if(|(file, size)| {
            let here = is_marker(file) || there.contains(file);
            here || together.takes(file, *size, most)
        }) {
            done += 1;
            if !is_marker(file) && !there.contains(file) {
                together.add(file, *size);
            }
        }
        operation.runs(|| together.copy(location, target))?;
    }
    Ok(())
}

/// Whether a storage answers over a network, where a file after the other would be nothing but
/// waiting.
fn waits(location: &Location) -> bool {
    let storage = &location.storage;
    !storage.latency().is_low() && storage.locking().is_none()
}

/// Files that are copied side by side.
#[derive(Debug, Default)]
struct FilesTogether<'a> {
    files: Vec<(&'a str, Option<u64>)>,
    bytes: u64,
    rank: Option<(usize, std::cmp::Reverse<usize>)>,
}

/// Files that are copied side by side, at most.
const MOST_TOGETHER: usize = 64;

impl<'a> FilesTogether<'a> {
    /// Whether another file is copied beside these, which have `most` bytes then at most. Those of
    /// another rank come later.
    fn takes(&self, file: &str, size: Option<u64>, most: u64) -> bool {
        self.files.is_empty()
            || most > 0
                && self.files.len() < MOST_TOGETHER
                && self.rank == Some(rank(file))
                && size.is_some_and(|size| self.bytes.saturating_add(size) <= most)
    }

    fn add(&mut self, file: &'a str, size: Option<u64>) {
        self.rank = Some(rank(file));
        // One whose size is not known stays alone, as one that is too large does.
        self.bytes = self.bytes.saturating_add(size.unwrap_or(u64::MAX));
        self.files.push((file, size));
    }

    fn copy(&self, from: &Location, to: &Location) -> Result<()> {
        match self.files.as_slice() {
            [] => Ok(()),
            [(file, size)] => copy_file(&from.join(file), &to.join(file), *size),
            files => {
                let pairs: Vec<(StorePath, StorePath)> = files
                    .iter()
                    .map(|(file, _)| (from.path.join(file), to.path.join(file)))
                    .collect();
                if Arc::ptr_eq(&from.storage, &to.storage) && to.storage.copy_all_here(&pairs)? {
                    return Ok(());
                }
                if self.bytes > PIECE {
                    // More than is to be held at a time.
                    return files.iter().try_for_each(|(file, size)| {
                        copy_file(&from.join(file), &to.join(file), *size)
                    });
                }
                let whole = pairs.iter().map(|(path, _)| ReadRequest {
                    path: path.clone(),
                    // A listing may be wrong.
                    range: ReadRange::AtMost(PIECE),
                });
                let bodies = from.storage.read(&whole.collect::<Vec<_>>())?;
                let mut targets = pairs.iter().map(|(_, path)| path).zip(bodies);
                if !waits(to) {
                    return targets.try_for_each(|(path, body)| to.storage.put(path, body));
                }
                let mut uploads = Vec::with_capacity(pairs.len());
                for (path, body) in targets {
                    let mut upload = to.storage.upload(path)?;
                    upload.write(&body)?;
                    uploads.push(upload);
                }
                to.storage.finish_all(uploads)
            }
        }
    }
}

/// Copies what makes objects exist.
fn copy_markers(
    context: &Context,
    location: &Location,
    target: &Location,
    tree: &FileTree,
) -> Result<()> {
    tree.make_folders(target, true)?;
    let operation = context.begin();
    let mut markers = tree.files.iter().filter(|(file, _)| is_marker(file));
    markers.try_for_each(|(file, size)| {
        operation.runs(|| copy_file(&location.join(file), &target.join(file), *size))
    })
}

/// Goes on with a move whose copy was whole before: to be deleted is the original alone, not what
/// somebody has made in its place. The caller holds the lock of the original.
///
/// It is the original, or what is left of it, if the copy has all of it, or if it has all of the
/// copy (and more that was added since) but for files of cells, which may have [made
/// room](make_room): names of schemas, fragments and key-values are never given twice.
fn resume_move(location: &Location, target: &Location, to: &Uri) -> Result<()> {
    let is_hidden = ObjectType::at(location)?.is_none() && remains(location)?.is_some();
    let is_original = || -> Result<bool> {
        let original = SizedFiles::new(location, FileTree::of(location)?)?;
        let copy = SizedFiles::new(target, FileTree::of(target)?)?;
        let is_left = |file: &str| original.sizes.contains_key(file) || !is_of_fragment(file);
        Ok(original.are_in(&copy)? || copy.only(is_left).are_in(&original)?)
    };
    if is_hidden || is_original()? {
        return finish_move(location, target);
    }
    Note::remove(target)?;
    Err(Error::AlreadyExists {
        uri: to.to_string(),
    })
}

/// Deletes the original of a copy that is whole. The caller holds its lock.
fn finish_move(location: &Location, target: &Location) -> Result<()> {
    loop {
        match hide_all(location) {
            // Which may be why it is moved. Where nothing makes room it goes as where folders do not
            // move at once.
            Err(error) if is_full(&error) => {
                if !make_room(location, target)? {
                    break;
                }
            }
            hidden => break hidden?,
        }
    }
    copy_late(location, target)?;
    location
        .storage
        .delete(std::slice::from_ref(&location.path))?;
    Note::remove(target)
}

/// Takes away what makes an object exist, and those inside.
fn hide_all(location: &Location) -> Result<()> {
    if let Some(object_type) = ObjectType::at(location)? {
        hide(location, object_type)?;
    }
    for (inside, object_type) in objects_inside(location)? {
        hide(&inside, object_type)?;
    }
    Ok(())
}

/// Makes room on the disk of an original for the folders that hide it: the largest file of cells goes
/// that the copy has. Whether there was one.
fn make_room(location: &Location, target: &Location) -> Result<bool> {
    let copied: HashSet<String> = FileTree::of(target)?.names().collect();
    let mut tree = FileTree::of(location)?;
    tree.files
        .retain(|(file, _)| copied.contains(file) && is_of_fragment(file));
    let sizes = SizedFiles::new(location, tree)?.sizes;
    let Some((file, _)) = sizes.into_iter().max_by_key(|(_, size)| *size) else {
        return Ok(false);
    };
    location.storage.delete(&[location.path.join(&file)])?;
    Ok(true)
}

/// The arrays and groups that lie below an object's folder, where folders move at once: others add to
/// them by their own names.
fn objects_inside(location: &Location) -> Result<Vec<(Location, ObjectType)>> {
    if location.storage.locking().is_none() {
        return Ok(Vec::new());
    }
    let folders = location.storage.list_tree(&location.path)?.into_iter();
    let inside = folders.filter(|(folder, _)| !folder.is_empty() && !is_among_remains(folder));
    let objects = inside
        .filter_map(|(folder, entries)| Some((location.join(&folder), ObjectType::of(&entries)?)));
    Ok(objects.collect())
}

/// Copies what was added to the original, and to objects inside, while it was copied, until they were
/// hidden.
///
/// Where that can be, what counts is taken away from where it was added first: whoever has added it
/// looks whether the object is still there, takes back what it finds if not, and reports success
/// if that is gone. So each addition is either in the copy or reported as failed, not both.
fn copy_late(location: &Location, target: &Location) -> Result<()> {
    let copied: HashSet<String> = FileTree::of(target)?.names().collect();
    let late = |tree: FileTree| {
        let files = tree.files.into_iter();
        files.filter(|(file, _)| !copied.contains(&without_remains(file)))
    };
    let storage = &location.storage;
    if storage.locking().is_some() {
        let counts = |file: &str| counts(file) && !is_among_remains(file);
        for (file, _) in late(FileTree::of(location)?).filter(|(file, _)| counts(file)) {
            let taken = location.path.join(REMAINS).join(&file);
            match storage.rename(&location.path.join(&file), &taken) {
                Err(Error::NotFound { .. }) => {}
                // On a full disk it is copied from where it is.
                Err(error) if is_full(&error) => break,
                renamed => renamed?,
            }
        }
    }
    // Listed anew: fragments are there before what makes them count.
    for (file, size) in late(FileTree::of(location)?) {
        let to = target.join(&without_remains(&file));
        match copy_file(&location.join(&file), &to, size) {
            // Of a write that has given up.
            Err(Error::NotFound { .. } | Error::AlreadyExists { .. }) => {}
            copied => copied?,
        }
    }
    Ok(())
}

/// Whether a file or folder lies among what is left of an object.
fn is_among_remains(path: &str) -> bool {
    path.split('/').any(|part| part == REMAINS)
}

/// Where a file lay before it was put among what is left of an object.
fn without_remains(file: &str) -> String {
    let parts: Vec<&str> = file.split('/').filter(|part| *part != REMAINS).collect();
    parts.join("/")
}

/// Whether a file of an object, or of one inside, counts by itself, as soon as it is there.
fn counts(file: &str) -> bool {
    const FOLDERS: [&str; 4] = [
        COMMITS_FOLDER,
        METADATA_FOLDER,
        GROUP_DETAILS_FOLDER,
        SCHEMA_FOLDER,
    ];
    let folder = file.rsplit('/').nth(1);
    folder.is_some_and(|folder| FOLDERS.contains(&folder)) || file.ends_with(".ok")
}

/// Whether a folder is a whole copy of another, as far as the names and sizes of files tell, and
/// the bytes of small ones.
fn is_copied(location: &Location, target: &Location) -> Result<bool> {
    if target.storage.unlisted(&target.path)?.is_some() {
        return Ok(false);
    }
    let (original, copy) = (FileTree::of(location)?, FileTree::of(target)?);
    if original.files.len() != copy.files.len() {
        return Ok(false);
    }
    SizedFiles::new(location, original)?.are_in(&SizedFiles::new(target, copy)?)
}

/// The files of a folder by their names, with their sizes in bytes. Notes about copies are no part of
/// them.
struct SizedFiles<'a> {
    location: &'a Location,
    sizes: BTreeMap<String, u64>,
}

impl<'a> SizedFiles<'a> {
    fn new(location: &'a Location, tree: FileTree) -> Result<Self> {
        let files = tree.files.into_iter();
        let files = files.filter(|(file, _)| file != UNFINISHED_COPY);
        let sized = files.map(|(file, size)| {
            let size = match size {
                Some(size) => size,
                None => location.storage.size(&location.path.join(&file))?,
            };
            Ok((file, size))
        });
        let sizes = sized.collect::<Result<_>>()?;
        Ok(Self { location, sizes })
    }

    /// Only some of them.
    fn only(mut self, keep: impl Fn(&str) -> bool) -> Self {
        self.sizes.retain(|file, _| keep(file));
        self
    }

    /// Whether another folder has all of them, as far as [`is_copied`] can tell.
    fn are_in(&self, other: &Self) -> Result<bool> {
        let mut sizes = self.sizes.iter();
        if sizes.any(|(file, size)| other.sizes.get(file) != Some(size)) {
            return Ok(false);
        }
        for (file, size) in &self.sizes {
            if self.beginning(file, *size)? != other.beginning(file, *size)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn beginning(&self, file: &str, size: u64) -> Result<Vec<Bytes>> {
        self.location.storage.read(&[ReadRequest {
            path: self.location.path.join(file),
            range: ReadRange::Bytes(0..size.min(COMPARED)),
        }])
    }
}

/// What stores copy by themselves, with one request, is not larger.
const LARGEST_COPIED_THERE: u64 = 5 << 30;

/// A file larger than this is not copied if less than one of so many of its bytes were written: no
/// array has such a file, and a few bytes of a hostile one would fill a disk.
const LARGEST_HOLLOW: u64 = 1 << 30;
const HOLLOW: u64 = 1024;

/// First bytes of files that are compared.
const COMPARED: u64 = 64 << 10;

/// The files that an unfinished copy has as a whole, where listings tell that: a file gets its name
/// when all of it is there. Others are removed, and what the original does not have.
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
            None if file == UNFINISHED_COPY => {}
            // Of a file of which nobody knows how much is there all is copied anew; a large one takes
            // no other's place.
            Some(_) | None => stale.push(target.path.join(&file)),
        }
    }
    target.storage.delete(&stale)?;
    Ok(there)
}

/// Where something is to go.
pub(super) fn target_uri(from: &Uri, to: &str) -> Result<Uri> {
    let uri = Uri::parse(to)?;
    let (source, path) = (from.path().without_steps(), uri.path().without_steps());
    if path.relative_to(&source).is_some() || source.relative_to(&path).is_some() {
        return Err(Error::InvalidArgument(format!(
            "{from} cannot go to {uri}: one lies in the other"
        )));
    }
    Ok(uri)
}

/// An error if something lies there. What was cut short at its first step is nothing.
fn refuse_taken(target: &Location, uri: &Uri) -> Result<()> {
    finish_deletion(target)?;
    refuse_entries(target, uri)
}

/// As [`refuse_taken`], without a look at what is left of a deletion.
fn refuse_entries(target: &Location, uri: &Uri) -> Result<()> {
    let Location { storage, path } = target;
    let mut entries = storage.list(path)?;
    // A claim is of whoever wants to make something there.
    entries.retain(|entry| !is_claim(&entry.name));
    if entries.iter().any(|entry| !is_temporary(&entry.name))
        || storage.size(path).is_ok()
        || storage.unlisted(path)?.is_some()
    {
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
        let no_folders = location.storage.locking().is_none();
        for (folder, entries) in listed {
            Self::refuse_unlisted(location, &folder)?;
            let inside = |name: &str| path_in(&folder, name);
            let is_passing = |name: &str| is_claim(name) || is_temporary(name);
            let files = (entries.iter())
                .filter(|e| !(e.is_dir || is_passing(&e.name) || no_folders && is_mark(e)));
            tree.files
                .extend(files.map(|entry| (inside(&entry.name), entry.size)));
            if !folder.is_empty() {
                tree.folders.push(folder);
            }
        }
        tree.files.sort_by_key(|(file, _)| rank(file));
        Ok(tree)
    }

    /// An error if a folder holds what cannot be copied, as no path names it: an original is not
    /// deleted of which the copy lacks anything.
    fn refuse_unlisted(location: &Location, folder: &str) -> Result<()> {
        let path = match folder {
            "" => location.path.clone(),
            inner => location.path.join(inner),
        };
        match location.storage.unlisted(&path)? {
            None => Ok(()),
            Some(found) => Err(Error::Unsupported(format!(
                "{found}: links that lead nowhere and names that are not UTF-8 are neither copied \
                 nor moved"
            ))),
        }
    }

    fn names(self) -> impl Iterator<Item = String> {
        self.files.into_iter().map(|(file, _)| file)
    }

    /// Whether all files of an earlier listing are still there.
    fn has_all_of(&self, earlier: &Self) -> bool {
        let now: HashSet<&str> = self.files.iter().map(|(file, _)| file.as_str()).collect();
        earlier
            .files
            .iter()
            .all(|(file, _)| now.contains(file.as_str()))
    }

    /// Makes those of the folders that make objects exist, or all others.
    fn make_folders(&self, target: &Location, markers: bool) -> Result<()> {
        let mut folders = (self.folders.iter()).filter(|folder| is_marker(folder) == markers);
        folders.try_for_each(|folder| target.storage.make_folder(&target.path.join(folder)))
    }
}

/// Whether an object stands for a folder of the format in which nothing lies, where folders are only
/// parts of names: listings show it without the slash at its end, and nobody can read it by that name.
fn is_mark(entry: &Entry) -> bool {
    let is_folder = matches!(RootEntry::classify(&entry.name), RootEntry::Folder(_))
        || entry.name == ENUMERATIONS_FOLDER;
    entry.size == Some(0) && is_folder
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

/// Whether a file is one of a fragment's.
fn is_of_fragment(file: &str) -> bool {
    file.rsplit('/').skip(1).any(|part| {
        part == FRAGMENTS_FOLDER
            || matches!(RootEntry::classify(part), RootEntry::LegacyFragment(_))
    })
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
    let read = |range| -> Result<Bytes> {
        let request = ReadRequest {
            path: source.clone(),
            range,
        };
        let read = from.storage.read(&[request])?.pop();
        read.ok_or_else(|| Error::Internal(format!("{source} was not read")))
    };
    // Small ones too: where many are, each would come here and go back.
    if size <= LARGEST_COPIED_THERE
        && Arc::ptr_eq(&from.storage, &to.storage)
        && from.storage.copy_here(source, target)?
    {
        return Ok(());
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_a_change_count_is_known() {
        for file in [
            "__commits/__1_1_x_22.wrt",
            "a/__meta/__1_1_x",
            "a/__schema/__1_1_x",
            "__group/__1_1_x",
            "a/__1_1_x.ok",
        ] {
            assert!(counts(file), "{file}");
        }
        for file in [
            "__schema/__enumerations/x",
            "__fragments/__1_1_x_22/a0.tdb",
            "x",
        ] {
            assert!(!counts(file), "{file}");
        }
    }
}
