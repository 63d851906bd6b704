//! `tiledb_vfs_t` and `tiledb_vfs_fh_t`: files as the engine's storages have them.

use crate::boundary::{
    Bytes, In, Kind, Opaque, Out, OutBytes, Ptr, Text, capi, capi_callback, capi_free,
};
use crate::config::{Config, Settings};
use crate::error::{Failure, Result};
use crate::strings::{lock, to_c};
use azulejo::Error;
use azulejo::context::Location;
use azulejo::format::path::LOCK_FILE;
use azulejo::storage::{
    Entry, ObjectScheme, ReadInto, ReadRange, ReadRequest, StorePath, Upload, Uri,
};
use std::collections::HashMap;
use std::ffi::{CString, OsStr, c_char};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// `tiledb_vfs_t`.
#[derive(Debug)]
pub struct Vfs {
    settings: Settings,
    engine: azulejo::Context,
}

impl Kind for Vfs {
    const NAME: &'static str = "vfs";
}

/// `tiledb_vfs_fh_t`.
#[derive(Debug)]
pub struct FileHandle {
    state: Mutex<File>,
}

impl Kind for FileHandle {
    const NAME: &'static str = "vfs_fh";
}

#[derive(Debug)]
enum File {
    Reading(Reading),
    Writing(Location, Option<Box<dyn Upload>>),
    Closed,
}

/// A file that is read. Where each request takes its time, short reads bring what follows too: many
/// callers read byte by byte.
#[derive(Debug)]
struct Reading {
    location: Location,
    /// Bytes of the file as it was opened.
    size: u64,
    /// Reads of fewer bytes bring so many.
    ahead: u64,
    /// What was brought last, and where it lies in the file.
    held: Option<(u64, bytes::Bytes)>,
}

impl Reading {
    fn new(location: Location, size: u64, settings: &Settings) -> Result<Self> {
        let is_far = location.path.object_parts().is_some();
        let ahead = match is_far {
            true => settings.number("vfs.read_ahead_size")?,
            false => 0,
        };
        Ok(Self {
            location,
            size,
            ahead,
            held: None,
        })
    }

    /// The bytes from `offset` to `end`, if these are few. What cannot be brought with what follows
    /// it (the file may be shorter now) is for the caller to read.
    fn short(&mut self, offset: u64, end: u64) -> Option<bytes::Bytes> {
        if end <= offset || end - offset >= self.ahead || end > self.size {
            return None;
        }
        let has =
            |held: &(u64, bytes::Bytes)| held.0 <= offset && end - held.0 <= held.1.len() as u64;
        let held = match self.held.take().filter(has) {
            Some(held) => held,
            None => {
                let last = self.size.min(offset.saturating_add(self.ahead));
                let request = ReadRequest {
                    path: self.location.path.clone(),
                    range: ReadRange::Bytes(offset..last),
                };
                let read = self.location.storage.read(&[request]).ok()?;
                (offset, read.into_iter().next()?)
            }
        };
        // At most as many bytes as there are in memory.
        let (from, to) = ((offset - held.0) as usize, (end - held.0) as usize);
        let found = (to <= held.1.len()).then(|| held.1.slice(from..to));
        self.held = Some(held);
        found
    }
}

/// A callback of `tiledb_vfs_ls`: 1 to go on, 0 to stop, -1 for an error.
type ListCallback = Option<extern "C-unwind" fn(*const c_char, Opaque) -> i32>;
/// A callback of `tiledb_vfs_ls_recursive`.
type RecursiveCallback = Option<extern "C-unwind" fn(*const c_char, usize, u64, Opaque) -> i32>;
/// A callback of `tiledb_vfs_ls_recursive_v2`.
type RecursiveCallback2 =
    Option<extern "C-unwind" fn(*const c_char, usize, u64, u8, Opaque) -> i32>;

/// Before so many bytes are read it is asked whether there are so many.
const LARGE_READ: u64 = 1 << 20;

/// So many folders are listed with another one where that takes no longer.
const LISTED_AHEAD: usize = 63;

const READ: i32 = 0;
const WRITE: i32 = 1;
const APPEND: i32 = 2;

impl Vfs {
    fn locate(&self, uri: &str) -> Result<Location> {
        Ok(self.engine.locate(&Uri::parse(uri)?)?)
    }
}

/// What lies at a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    File(u64),
    Folder,
}

/// The bytes of a file, if there is one.
fn file_size(location: &Location) -> Result<Option<u64>> {
    match location.storage.size(&location.path) {
        Ok(size) => Ok(Some(size)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn look(location: &Location) -> Result<Found> {
    if let Some(size) = file_size(location)? {
        return Ok(Found::File(size));
    }
    Ok(match location.storage.is_folder(&location.path)? {
        true => Found::Folder,
        false => Found::Nothing,
    })
}

fn read_all(location: &Location) -> Result<bytes::Bytes> {
    let request = ReadRequest {
        path: location.path.clone(),
        range: ReadRange::All,
    };
    let read = location.storage.read(&[request])?;
    Ok(read.into_iter().next().unwrap_or_default())
}

fn size_of(location: &Location, entry: &Entry) -> Result<u64> {
    match entry.size {
        Some(size) if !entry.is_dir => Ok(size),
        _ if entry.is_dir => Ok(0),
        _ => Ok(location.storage.size(&location.path.join(&entry.name))?),
    }
}

/// Everything below a folder, folders before what lies in them, listed as it is asked for.
///
/// Links to folders are named and not entered: they may lead back, or to all there is.
struct Walk {
    /// What is left of each folder that was entered, with where it lies; the innermost is the last.
    open: Vec<(Location, std::vec::IntoIter<Entry>)>,
    /// The folder to enter next.
    next: Option<Location>,
    /// Listings of folders to enter later: object stores give many in the time of one.
    ahead: HashMap<String, Vec<Entry>>,
}

/// What a walk comes by.
struct Below {
    location: Location,
    is_dir: bool,
    /// A folder elsewhere.
    is_linked: bool,
    size: u64,
}

impl Walk {
    fn new(folder: Location) -> Self {
        Self {
            open: Vec::new(),
            next: Some(folder),
            ahead: HashMap::new(),
        }
    }

    /// What a folder holds, and ahead of their time what some of those behind it in theirs hold.
    fn list(&mut self, folder: &Location) -> Result<Vec<Entry>> {
        if folder.path.object_parts().is_none() {
            return Ok(folder.storage.list(&folder.path)?);
        }
        if let Some(entries) = self.ahead.remove(folder.path.as_str()) {
            return Ok(entries);
        }
        let mut paths = vec![folder.path.clone()];
        if let Some((parent, entries)) = self.open.last() {
            let folders = entries.as_slice().iter().filter(|entry| entry.is_dir);
            let folders = folders.map(|entry| parent.path.join(&entry.name));
            paths.extend(folders.take(LISTED_AHEAD));
        }
        let mut listed = folder.storage.list_all(&paths)?.into_iter();
        let own = listed.next().unwrap_or_default();
        let names = paths.iter().skip(1).map(|path| path.as_str().to_owned());
        self.ahead.extend(names.zip(listed));
        Ok(own)
    }

    fn step(&mut self) -> Result<Option<Below>> {
        if let Some(folder) = self.next.take() {
            let entries = self.list(&folder)?;
            self.open.push((folder, entries.into_iter()));
        }
        while let Some((folder, entries)) = self.open.last_mut() {
            let Some(entry) = entries.next() else {
                self.open.pop();
                continue;
            };
            let size = size_of(folder, &entry)?;
            let location = folder.join(&entry.name);
            let is_linked = entry.is_dir && is_link(&location);
            self.next = (entry.is_dir && !is_linked).then(|| location.clone());
            return Ok(Some(Below {
                location,
                is_dir: entry.is_dir,
                is_linked,
                size,
            }));
        }
        Ok(None)
    }
}

impl Iterator for Walk {
    type Item = Result<Below>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

/// URI, size, and whether it is a folder.
type Named = (CString, u64, bool);

/// What of a local folder has names that are not UTF-8, which no path of the engine's can say; if
/// `deep`, with all that lies below these.
fn unspeakable(folder: &Location, deep: bool) -> Result<Vec<Named>> {
    if folder.path.scheme() != "file" {
        return Ok(Vec::new());
    }
    let path = folder.path.to_string();
    // That of the root ends with a slash.
    let uri = path.strip_suffix('/').unwrap_or(&path).as_bytes();
    let mut found = Vec::new();
    let speakable = |name: &OsStr| name.to_str().is_some();
    list_bytes(uri, folder.path.as_native(), &speakable, deep, &mut found)
        .map_err(|error| Failure::new(format!("Cannot list '{}'; {error}", folder.path)))?;
    Ok(found)
}

/// What a local folder holds but for some names; if `deep`, with all that lies below. As in other
/// listings, links to folders are not entered, and those that lead nowhere passed by.
fn list_bytes(
    uri: &[u8],
    folder: &Path,
    but_for: &dyn Fn(&OsStr) -> bool,
    deep: bool,
    found: &mut Vec<Named>,
) -> std::io::Result<()> {
    let children = match std::fs::read_dir(folder) {
        // A file holds nothing either.
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            return Ok(());
        }
        children => children?,
    };
    for child in children {
        let child = child?;
        let name = child.file_name();
        if but_for(&name) {
            continue;
        }
        let path = child.path();
        let Ok(kind) = std::fs::metadata(&path) else {
            continue;
        };
        let uri = [uri, b"/", name.as_encoded_bytes()].concat();
        let size = if kind.is_dir() { 0 } else { kind.len() };
        let named = CString::new(uri.clone()).unwrap_or_default();
        found.push((named, size, kind.is_dir()));
        let is_link = || std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink());
        if deep && kind.is_dir() && !is_link() {
            list_bytes(&uri, &path, &|_| false, deep, found)?;
        }
    }
    Ok(())
}

/// Whether a link of the local file system lies there; no other storage has such.
pub fn is_link(location: &Location) -> bool {
    location.path.scheme() == "file"
        && std::fs::symlink_metadata(location.path.as_native())
            .is_ok_and(|found| found.is_symlink())
}

fn open(location: Location, mode: i32, settings: &Settings) -> Result<File> {
    let found = look(&location)?;
    match (mode, found) {
        (READ, Found::File(size)) => Ok(File::Reading(Reading::new(location, size, settings)?)),
        (READ, _) => Err(Failure::new(format!(
            "Cannot open file '{}'; File does not exist",
            location.path
        ))),
        (WRITE | APPEND, Found::Folder) => Err(Failure::new(format!(
            "Cannot open file '{}'; it is a folder",
            location.path
        ))),
        (WRITE | APPEND, found) => {
            if mode == APPEND
                && found != Found::Nothing
                && let Some(appending) = location.storage.appending()
            {
                let more = appending.append(&location.path)?;
                return Ok(File::Writing(location, Some(more)));
            }
            // Where objects cannot grow they are written anew.
            let before = if mode == APPEND && found != Found::Nothing {
                Some(read_all(&location)?)
            } else {
                None
            };
            if found != Found::Nothing {
                location
                    .storage
                    .delete(std::slice::from_ref(&location.path))?;
            }
            let mut upload = location.storage.upload(&location.path)?;
            if let Some(before) = before {
                upload.write(&before)?;
            }
            Ok(File::Writing(location, Some(upload)))
        }
        _ => Err(Failure::new(format!("{mode} is no mode of opening a file"))),
    }
}

fn close(file: &mut File) -> Result<()> {
    if matches!(file, File::Closed) {
        return Err("Cannot close file; it is closed".into());
    }
    if let File::Writing(_, upload) = file
        && let Some(upload) = upload.take()
    {
        upload.finish()?;
    }
    *file = File::Closed;
    Ok(())
}

impl Drop for FileHandle {
    fn drop(&mut self) {
        // A handle freed without closing keeps what was written, as the reference does.
        let _ = close(&mut lock(&self.state));
    }
}

/// Copies a file, over another if there is one: that one stays until all of the new one is there.
///
/// TileDB-Py up to 0.34 copies the lock file of an array with its fragments, though arrays have none
/// since format version 12: that is nothing to copy.
fn copy_file(from: &Location, to: &Location) -> Result<()> {
    if from.path == to.path {
        return match look(from)? {
            Found::File(_) => Ok(()),
            Found::Folder | Found::Nothing => Err(missing("copy", from)),
        };
    }
    refuse_folder(to)?;
    if from.path.name() == LOCK_FILE
        && matches!(from.storage.size(&from.path), Err(Error::NotFound { .. }))
    {
        return Ok(());
    }
    match azulejo::object::copy_file(from, to, None) {
        Err(Error::AlreadyExists { .. }) => {
            static COPIES: AtomicU64 = AtomicU64::new(0);
            let number = COPIES.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}.copy-{}-{number}", to.path.name(), std::process::id());
            let parent = to
                .path
                .parent()
                .ok_or_else(|| Failure::new("a copy needs a name"))?;
            let aside = Location {
                storage: to.storage.clone(),
                path: parent.join(&name),
            };
            azulejo::object::copy_file(from, &aside, None)?;
            put_in_place(&aside, to)
        }
        result => Ok(result?),
    }
}

/// Moves a file within its storage, over another if there is one: that one stays until all of the
/// new one is there.
fn put_in_place(from: &Location, to: &Location) -> Result<()> {
    let storage = &to.storage;
    if storage.replace(&from.path, &to.path)? {
        return Ok(());
    }
    if storage.copy_here(&from.path, &to.path)? {
        return Ok(storage.delete(std::slice::from_ref(&from.path))?);
    }
    Ok(storage.rename(&from.path, &to.path)?)
}

/// Moves a file, over another if there is one.
fn move_file(from: &Location, to: &Location) -> Result<()> {
    if from.path == to.path {
        return match look(from)? {
            Found::File(_) => Ok(()),
            Found::Folder | Found::Nothing => Err(missing("move", from)),
        };
    }
    let nearness = Nearness::of(from, to, "move_file")?;
    refuse_folder(to)?;
    from.storage.size(&from.path)?;
    if nearness == Nearness::OtherBucket {
        copy_file(from, to)?;
        return Ok(from.storage.delete(std::slice::from_ref(&from.path))?);
    }
    put_in_place(from, to)
}

/// Moves a folder.
fn move_folder(from: &Location, to: &Location) -> Result<()> {
    if from.path == to.path {
        return match look(from)? {
            Found::Folder => Ok(()),
            Found::File(_) | Found::Nothing => Err(missing("move", from)),
        };
    }
    refuse_inside(from, to)?;
    if Nearness::of(from, to, "move_dir")? == Nearness::SameStorage {
        return Ok(from.storage.rename(&from.path, &to.path)?);
    }
    if look(to)? != Found::Nothing {
        return Err(Failure::new(format!(
            "Cannot move to '{}'; it is there already",
            to.path
        )));
    }
    copy_folder(from, to)?;
    Ok(from.storage.delete(std::slice::from_ref(&from.path))?)
}

/// Copies a folder with all that it holds.
fn copy_folder(from: &Location, to: &Location) -> Result<()> {
    if look(from)? != Found::Folder {
        return Err(Failure::new(format!(
            "Cannot copy '{}'; it is no folder",
            from.path
        )));
    }
    if from.path == to.path {
        return Ok(());
    }
    // All is looked at before anything is written, which may lie in the folder itself.
    let all = Walk::new(from.clone()).collect::<Result<Vec<Below>>>()?;
    if let Some(link) = all.iter().find(|below| below.is_linked) {
        return Err(Failure::new(format!(
            "Cannot copy '{}'; links to folders are not copied",
            link.location.path
        )));
    }
    let folders = all.iter().filter(|below| below.is_dir);
    for folder in std::iter::once(from).chain(folders.map(|below| &below.location)) {
        if let Some(found) = folder.storage.unlisted(&folder.path)? {
            return Err(Failure::new(format!(
                "Cannot copy '{found}'; links that lead nowhere and names that are not UTF-8 are not copied"
            )));
        }
    }
    to.storage.make_folder(&to.path)?;
    for below in &all {
        let path = &below.location.path;
        let target = to.join(path.relative_to(&from.path).unwrap_or_default());
        if below.is_dir {
            target.storage.make_folder(&target.path)?;
        } else {
            copy_file(&below.location, &target)?;
        }
    }
    Ok(())
}

/// The error of what is not there.
fn missing(what: &str, location: &Location) -> Failure {
    Failure::new(format!(
        "Cannot {what} '{}'; there is no such file or folder",
        location.path
    ))
}

/// A folder is not moved into itself.
fn refuse_inside(from: &Location, to: &Location) -> Result<()> {
    if to.path.relative_to(&from.path).is_some() {
        return Err(Failure::new(format!(
            "Cannot move '{}' into itself, to '{}'",
            from.path, to.path
        )));
    }
    Ok(())
}

/// How two locations lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nearness {
    /// A storage can rename one to the other.
    SameStorage,
    /// Another bucket of the same service.
    OtherBucket,
}

impl Nearness {
    /// A storage takes the paths of others for its own, so moves between file systems are refused,
    /// as in the reference, before anything is touched.
    fn of(from: &Location, to: &Location, what: &str) -> Result<Self> {
        if from.path.scheme() != to.path.scheme() {
            return Err(Failure::unsupported(&format!(
                "{what} from {} to {}, another file system,",
                from.path, to.path
            )));
        }
        let bucket = |location: &Location| {
            let parts = location.path.object_parts();
            parts.map(|(_, bucket, _)| bucket.to_owned())
        };
        Ok(if bucket(from) == bucket(to) {
            Self::SameStorage
        } else {
            Self::OtherBucket
        })
    }
}

/// A file never takes the place of a folder with all that it holds.
pub fn refuse_folder(location: &Location) -> Result<()> {
    match look(location)? {
        Found::Folder => Err(Failure::new(format!("'{}' is a folder", location.path))),
        Found::File(_) | Found::Nothing => Ok(()),
    }
}

/// Whether a path is one of a web server.
fn is_web(path: &StorePath) -> bool {
    let scheme = path.object_parts().map(|(scheme, ..)| scheme);
    matches!(scheme, Some(ObjectScheme::Http | ObjectScheme::Https))
}

/// Whether there is the bucket of a URI. An object of it is asked for that it need not have: the
/// answer says which of the two is missing.
fn has_bucket(vfs: &Vfs, uri: &str) -> Result<bool> {
    let uri = Uri::parse(uri)?;
    let Some((scheme, bucket, _)) = uri.path().object_parts() else {
        return Ok(false);
    };
    if is_web(uri.path()) || !azulejo::storage::HAS_OBJECT_STORES {
        return Ok(false);
    }
    let request = ReadRequest {
        path: StorePath::object(scheme, bucket, "__azulejo_is_bucket"),
        range: ReadRange::All,
    };
    tells_of_bucket(vfs.engine.locate(&uri)?.storage.read(&[request]))
}

/// What reading an object says of its bucket.
fn tells_of_bucket(read: std::result::Result<Vec<bytes::Bytes>, Error>) -> Result<bool> {
    match read {
        Ok(_) | Err(Error::NotFound { .. }) => Ok(true),
        Err(Error::Storage { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Buckets are neither made nor emptied here.
fn no_buckets(vfs: &In<Vfs>, uri: &Text) -> Result<()> {
    vfs.get()?;
    Err(Failure::unsupported(&format!("a bucket ({})", uri.get()?)))
}

capi! {
    /// Files, with settings of its own or those of the context.
    fn tiledb_vfs_alloc(ctx, config: In<Config>, vfs: Out<Ptr<Vfs>>) {
        let own = config.opt()?.map(Config::settings);
        let engine = ctx.engine_with(own.as_ref())?;
        vfs.give(Vfs { settings: ctx.settings_with(own.as_ref()), engine })?;
    }

    /// A copy of the settings.
    fn tiledb_vfs_get_config(ctx, vfs: In<Vfs>, config: Out<Ptr<Config>>) {
        config.give(Config::new(vfs.get()?.settings.clone()))?;
    }

    /// Not supported: there are no buckets.
    fn tiledb_vfs_create_bucket(ctx, vfs: In<Vfs>, uri: Text) { no_buckets(&vfs, &uri)?; }

    /// Not supported: there are no buckets.
    fn tiledb_vfs_remove_bucket(ctx, vfs: In<Vfs>, uri: Text) { no_buckets(&vfs, &uri)?; }

    /// Not supported: there are no buckets.
    fn tiledb_vfs_empty_bucket(ctx, vfs: In<Vfs>, uri: Text) { no_buckets(&vfs, &uri)?; }

    /// Whether a bucket holds nothing.
    fn tiledb_vfs_is_empty_bucket(ctx, vfs: In<Vfs>, uri: Text, is_empty: Out<i32>) {
        let location = vfs.get()?.locate(uri.get()?)?;
        let Some((scheme, bucket, _)) = location.path.object_parts() else {
            return no_buckets(&vfs, &uri);
        };
        let root = StorePath::object(scheme, bucket, "");
        is_empty.set(location.storage.is_empty(&root)?.into())?;
    }

    /// Whether there is a bucket.
    fn tiledb_vfs_is_bucket(ctx, vfs: In<Vfs>, uri: Text, is_bucket: Out<i32>) {
        is_bucket.set(has_bucket(vfs.get()?, uri.get()?)?.into())?;
    }

    /// Makes a folder.
    fn tiledb_vfs_create_dir(ctx, vfs: In<Vfs>, uri: Text) {
        let location = vfs.get()?.locate(uri.get()?)?;
        location.storage.make_folder(&location.path)?;
    }

    /// Whether there is a folder.
    fn tiledb_vfs_is_dir(ctx, vfs: In<Vfs>, uri: Text, is_dir: Out<i32>) {
        let location = vfs.get()?.locate(uri.get()?)?;
        // Web servers have no listings, but tell what is a file.
        let found = match is_web(&location.path) {
            true => look(&location)? == Found::Folder,
            false => location.storage.is_folder(&location.path)?,
        };
        is_dir.set(found.into())?;
    }

    /// Deletes a folder with all that it holds.
    fn tiledb_vfs_remove_dir(ctx, vfs: In<Vfs>, uri: Text) {
        let location = vfs.get()?.locate(uri.get()?)?;
        match look(&location)? {
            Found::Folder => {}
            // As in the reference: services delete what is not there too.
            Found::Nothing if location.path.object_parts().is_some() => return Ok(()),
            Found::File(_) | Found::Nothing => {
                return Err(Failure::new(format!("Failed to delete path '{}'; it is no folder", location.path)));
            }
        }
        location.storage.delete(std::slice::from_ref(&location.path))?;
    }

    /// Whether there is a file.
    fn tiledb_vfs_is_file(ctx, vfs: In<Vfs>, uri: Text, is_file: Out<i32>) {
        is_file.set(file_size(&vfs.get()?.locate(uri.get()?)?)?.is_some().into())?;
    }

    /// Deletes a file.
    fn tiledb_vfs_remove_file(ctx, vfs: In<Vfs>, uri: Text) {
        let location = vfs.get()?.locate(uri.get()?)?;
        match look(&location)? {
            Found::File(_) => {}
            Found::Nothing if location.path.object_parts().is_some() => return Ok(()),
            Found::Folder | Found::Nothing => {
                return Err(Failure::new(format!("Cannot delete file '{}'; there is none", location.path)));
            }
        }
        location.storage.delete(std::slice::from_ref(&location.path))?;
    }

    /// The size of all files in a folder and below.
    fn tiledb_vfs_dir_size(ctx, vfs: In<Vfs>, uri: Text, size: Out<u64>) {
        let location = vfs.get()?.locate(uri.get()?)?;
        if look(&location)? != Found::Folder {
            return Err(Failure::new(format!("Cannot get directory size; Input '{}' is not a directory", location.path)));
        }
        let total = below(location, Folders::Named)?.try_fold(0u64, |total, below| {
            Ok::<u64, Failure>(total.saturating_add(below?.1))
        })?;
        size.set(total)?;
    }

    /// The size of a file.
    fn tiledb_vfs_file_size(ctx, vfs: In<Vfs>, uri: Text, size: Out<u64>) {
        let location = vfs.get()?.locate(uri.get()?)?;
        size.set(location.storage.size(&location.path)?)?;
    }

    /// Moves a file, over another if there is one.
    fn tiledb_vfs_move_file(ctx, vfs: In<Vfs>, old: Text, new: Text) {
        let vfs = vfs.get()?;
        move_file(&vfs.locate(old.get()?)?, &vfs.locate(new.get()?)?)?;
    }

    /// Moves a folder.
    fn tiledb_vfs_move_dir(ctx, vfs: In<Vfs>, old: Text, new: Text) {
        let vfs = vfs.get()?;
        move_folder(&vfs.locate(old.get()?)?, &vfs.locate(new.get()?)?)?;
    }

    /// Copies a file, over another if there is one.
    fn tiledb_vfs_copy_file(ctx, vfs: In<Vfs>, old: Text, new: Text) {
        let vfs = vfs.get()?;
        copy_file(&vfs.locate(old.get()?)?, &vfs.locate(new.get()?)?)?;
    }

    /// Copies a folder with all that it holds.
    fn tiledb_vfs_copy_dir(ctx, vfs: In<Vfs>, old: Text, new: Text) {
        let vfs = vfs.get()?;
        copy_folder(&vfs.locate(old.get()?)?, &vfs.locate(new.get()?)?)?;
    }

    /// Opens a file: to be read, to be written anew, or to be added to.
    fn tiledb_vfs_open(ctx, vfs: In<Vfs>, uri: Text, mode: i32, fh: Out<Ptr<FileHandle>>) {
        let vfs = vfs.get()?;
        let file = open(vfs.locate(uri.get()?)?, mode, &vfs.settings)?;
        fh.give(FileHandle { state: Mutex::new(file) })?;
    }

    /// Closes a file; what was written lasts from now on.
    fn tiledb_vfs_close(ctx, fh: In<FileHandle>) {
        close(&mut lock(&fh.get()?.state))?;
    }

    /// Reads bytes of a file; it is an error if there are fewer. One that is being written shows
    /// what it holds so far, if it is a local file.
    fn tiledb_vfs_read(ctx, fh: In<FileHandle>, offset: u64, buffer: OutBytes, nbytes: u64) {
        let mut state = lock(&fh.get()?.state);
        let (location, reading) = match &mut *state {
            File::Reading(reading) => (reading.location.clone(), Some(reading)),
            File::Writing(location, _) => (location.clone(), None),
            File::Closed => return Err("Cannot read from file; the file is closed".into()),
        };
        let beyond = || Failure::new(format!("{nbytes} bytes from {offset} on are beyond the end of '{}'", location.path));
        let end = offset.checked_add(nbytes).ok_or_else(beyond)?;
        if nbytes >= LARGE_READ && end > location.storage.size(&location.path)? {
            return Err(beyond());
        }
        let out = buffer.slice(usize::try_from(nbytes).map_err(|_| beyond())?)?;
        if let Some(reading) = reading
            && let Some(bytes) = reading.short(offset, end)
        {
            out.copy_from_slice(&bytes);
            return Ok(());
        }
        location.storage.read_into(&mut [ReadInto { path: location.path, offset, out }])?;
    }

    /// Appends bytes to a file.
    fn tiledb_vfs_write(ctx, fh: In<FileHandle>, buffer: Bytes, nbytes: u64) {
        let bytes = buffer.get64(nbytes)?;
        match &mut *lock(&fh.get()?.state) {
            File::Writing(_, Some(upload)) => upload.write(bytes)?,
            _ => return Err("Cannot write to file; the file is not open for writing".into()),
        }
    }

    /// What was written to a local file can be read already; it lasts once the file is closed.
    fn tiledb_vfs_sync(ctx, fh: In<FileHandle>) {
        if matches!(&*lock(&fh.get()?.state), File::Closed) {
            return Err("Cannot sync file; it is closed".into());
        }
    }

    /// Creates an empty file where there is none.
    fn tiledb_vfs_touch(ctx, vfs: In<Vfs>, uri: Text) {
        let location = vfs.get()?.locate(uri.get()?)?;
        match look(&location)? {
            Found::Nothing => location.storage.put(&location.path, bytes::Bytes::new())?,
            Found::File(_) => {}
            Found::Folder => {
                return Err(Failure::new(format!("Cannot create file '{}'; it is a folder", location.path)));
            }
        }
    }

    /// Whether a file is closed.
    fn tiledb_vfs_fh_is_closed(ctx, fh: In<FileHandle>, is_closed: Out<i32>) {
        is_closed.set(matches!(&*lock(&fh.get()?.state), File::Closed).into())?;
    }
}

/// Whether the folders of object stores are named too: as in the reference, those who are not told
/// what is a folder get the objects alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Folders {
    Named,
    LeftOut,
}

/// What a walk comes by, and what of a folder it passes by for its name.
fn named(below: Below) -> Result<Vec<Named>> {
    let Below {
        location,
        is_dir,
        is_linked,
        size,
    } = below;
    let mut found = vec![(to_c(&location.path.to_string()), size, is_dir)];
    if is_dir && !is_linked {
        found.extend(unspeakable(&location, true)?);
    }
    Ok(found)
}

/// What lies in a folder and below. Services have no folders that could be missing.
fn below(folder: Location, folders: Folders) -> Result<impl Iterator<Item = Result<Named>>> {
    if folder.path.object_parts().is_none() && look(&folder)? != Found::Folder {
        return Err(Failure::new(format!(
            "Cannot list '{}'; there is no such folder",
            folder.path
        )));
    }
    let objects_alone = folders == Folders::LeftOut && folder.path.object_parts().is_some();
    let is_wanted = move |below: &Result<Below>| match below {
        Ok(below) => !(objects_alone && below.is_dir),
        Err(_) => true,
    };
    let first = unspeakable(&folder, true)?.into_iter().map(Ok);
    let rest = Walk::new(folder)
        .filter(is_wanted)
        .flat_map(|below| match below.and_then(named) {
            Ok(found) => found.into_iter().map(Ok).collect(),
            Err(failure) => vec![Err(failure)],
        });
    Ok(first.chain(rest))
}

capi_callback! {
    /// Calls back with what lies in a folder.
    fn tiledb_vfs_ls(ctx, vfs: In<Vfs>, path: Text, callback: ListCallback, data: Opaque) {
        callback.ok_or_else(|| Failure::null("callback"))?;
        let location = vfs.get()?.locate(path.get()?)?;
        let entries = location.storage.list(&location.path)?;
        let others = unspeakable(&location, false)?.into_iter().map(|(uri, ..)| uri);
        let uri = move |entry: Entry| to_c(&location.join(&entry.name).path.to_string());
        Ok(entries.into_iter().map(uri).chain(others).map(Ok))
    } => |each| callback.map_or(0, |callback| callback(each.as_ptr(), data));

    /// Calls back with all that lies in a folder and below, and with sizes.
    fn tiledb_vfs_ls_recursive(ctx, vfs: In<Vfs>, path: Text, callback: RecursiveCallback, data: Opaque) {
        callback.ok_or_else(|| Failure::null("callback"))?;
        below(vfs.get()?.locate(path.get()?)?, Folders::LeftOut)
    } => |each| callback.map_or(0, |callback| callback(each.0.as_ptr(), each.0.count_bytes(), each.1, data));

    /// Calls back with all that lies in a folder and below, with sizes and with what is a folder.
    fn tiledb_vfs_ls_recursive_v2(ctx, vfs: In<Vfs>, path: Text, callback: RecursiveCallback2, data: Opaque) {
        callback.ok_or_else(|| Failure::null("callback"))?;
        below(vfs.get()?.locate(path.get()?)?, Folders::Named)
    } => |each| {
        callback.map_or(0, |callback| callback(each.0.as_ptr(), each.0.count_bytes(), each.1, each.2.into(), data))
    };
}

capi_free! {
    fn tiledb_vfs_free(Vfs);
    fn tiledb_vfs_fh_free(FileHandle);
}

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo::storage::{MemoryStorage, Storage};
    use std::sync::Arc;

    #[test]
    fn folders_of_object_stores_are_named_to_those_who_can_tell() {
        let storage = Arc::new(MemoryStorage::new());
        let names = |root: &StorePath, folders: Folders| {
            let folder = Location {
                storage: Arc::<MemoryStorage>::clone(&storage),
                path: root.clone(),
            };
            let all: Result<Vec<_>> = below(folder, folders).and_then(|all| all.collect());
            let all = all.unwrap_or_default().into_iter();
            all.map(|(name, ..)| name.to_string_lossy().into_owned())
                .collect::<Vec<String>>()
        };
        let bucket = StorePath::object(ObjectScheme::S3, "bucket", "x");
        let memory = StorePath::memory("x");
        for root in [&bucket, &memory] {
            for file in ["a", "d/b", "d/e/c", "f/g/h"] {
                assert!(storage.put(&root.join(file), bytes::Bytes::new()).is_ok());
            }
        }
        assert_eq!(
            names(&bucket, Folders::LeftOut),
            ["a", "d/b", "d/e/c", "f/g/h"].map(|name| format!("s3://bucket/x/{name}"))
        );
        assert_eq!(
            names(&bucket, Folders::Named),
            ["a", "d", "d/b", "d/e", "d/e/c", "f", "f/g", "f/g/h"]
                .map(|name| format!("s3://bucket/x/{name}"))
        );
        assert_eq!(
            names(&memory, Folders::LeftOut),
            ["a", "d", "d/b", "d/e", "d/e/c", "f", "f/g", "f/g/h"]
                .map(|name| format!("mem://x/{name}"))
        );
    }

    #[test]
    fn what_reads_say_of_a_bucket() {
        let failed = |kind: ErrorKind| {
            Err(Error::Storage {
                op: "read",
                uri: "s3://bucket/a".into(),
                source: kind.into(),
            })
        };
        let missing = Err(Error::NotFound {
            uri: "s3://bucket/a".into(),
            what: "no such object",
        });
        let told = [
            Ok(Vec::new()),
            missing,
            failed(ErrorKind::NotFound),
            failed(ErrorKind::PermissionDenied),
        ]
        .map(|read| tells_of_bucket(read).ok());
        assert_eq!(told, [Some(true), Some(true), Some(false), None]);
    }

    #[test]
    fn short_reads_bring_what_follows() {
        let storage = Arc::new(MemoryStorage::new());
        let path = StorePath::memory("file");
        let all: Vec<u8> = (0..100).collect();
        let fill = |len: usize| {
            let bytes = bytes::Bytes::copy_from_slice(&all[..len]);
            storage.put(&path, bytes).map_err(Failure::from)
        };
        let mut file = Reading {
            location: Location {
                storage: Arc::<MemoryStorage>::clone(&storage),
                path: path.clone(),
            },
            size: 100,
            ahead: 40,
            held: None,
        };
        let mut read = |from: u64, to: u64| {
            let found = file.short(from, to);
            found.map(|bytes| bytes.to_vec())
        };
        let some = |from: usize, to: usize| Some(all[from..to].to_vec());
        assert!(fill(100).is_ok());
        assert_eq!(read(10, 11), some(10, 11));
        // What came along needs the file no more.
        assert!(storage.delete(std::slice::from_ref(&path)).is_ok());
        assert_eq!(read(11, 50), some(11, 50));
        assert_eq!(read(49, 50), some(49, 50));
        assert_eq!(read(49, 51), None, "it is gone");
        assert!(fill(100).is_ok());
        assert_eq!(read(95, 100), some(95, 100));
        assert_eq!(read(90, 96), some(90, 96));
        // Long reads, and those beyond the end, are for others.
        assert_eq!((read(0, 40), read(99, 101), read(5, 5)), (None, None, None));
        assert!(fill(20).is_ok());
        assert_eq!(read(30, 31), None, "it is shorter now");
    }
}
