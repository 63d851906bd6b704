//! The key-values of an array or group in one file.

use crate::array::directory::{DetailFiles, Directory, NamedEntry};
use crate::array::{
    ArrayHandle, ArrayLock, Attempts, OpenScope, Snapshot, TimeRange, decode_at, list,
    put_if_there, read_details,
};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::group::{GroupHandle, ObjectType};
use crate::storage::{StorePath, Uri, Waiting, block_on};
use azulejo_format::FormatVersion;
use azulejo_format::commit::VacuumList;
use azulejo_format::metadata::{self as format, MetadataEntry};
use azulejo_format::path::{METADATA_FOLDER, RootFolder, Suffix, metadata_path};
use azulejo_format::tile::GenericTile;
use azulejo_format::timestamped_name::TimestampedName;
use std::collections::{BTreeMap, HashSet};

impl ArrayHandle {
    /// Writes the key-values that an array got within `time` into one file. Returns it, or `None`
    /// if there are not two files.
    ///
    /// # Errors
    /// Those of opening the array and of the storage.
    pub fn consolidate_metadata(&self, time: TimeRange) -> Result<Option<StorePath>> {
        let Self { context, uri } = self;

        let context = &crate::manifest::without(context);
        let location = context.locate(&Uri::parse(uri)?)?;
        let lock = ArrayLock::wait(&location)?;
        let scope = OpenScope {
            fragments: Some(HashSet::new()),
            ..OpenScope::default()
        };
        let array = Snapshot::open_scope(context, &Uri::parse(uri)?, TimeRange::ALL, &scope)?;
        let owner = MetadataOwner {
            relative: array.schema().version.has_relative_vacuum_names(),
            schema: Some(array.schema_name()),
        };
        let files = || Ok(Directory::parse(&list(&location)?).metadata);
        consolidate(context, &location, &lock, files, time, owner)
    }
}

impl GroupHandle {
    /// Writes the key-values that a group got within `time` into one file. Returns it, or `None` if
    /// there are not two files.
    ///
    /// # Errors
    /// Those of opening the group and of the storage.
    pub fn consolidate_metadata(&self, time: TimeRange) -> Result<Option<StorePath>> {
        let Self { context, uri } = self;

        let context = &crate::manifest::without(context);
        let location = context.locate(&Uri::parse(uri)?)?;
        let lock = ArrayLock::wait(&location)?;
        if context.object(uri).object_type()? != Some(ObjectType::Group) {
            // Opening tells best what lies there instead.
            context.group(uri).open()?;
        }
        let folder = location.path.join(METADATA_FOLDER);
        let files = || {
            let entries = location.storage.list(&folder)?;
            Ok(DetailFiles::parse(RootFolder::Metadata, &entries))
        };
        let owner = MetadataOwner {
            relative: false,
            schema: None,
        };
        consolidate(context, &location, &lock, files, time, owner)
    }
}

/// Whose key-values they are.
#[derive(Clone, Copy)]
struct MetadataOwner<'a> {
    /// Whether vacuum files name files by paths in the object.
    relative: bool,
    /// The file name of a schema, of an array.
    schema: Option<&'a str>,
}

/// Writes what counts of the files that `list` finds into one.
fn consolidate(
    context: &Context,
    location: &Location,
    lock: &ArrayLock,
    list: impl Fn() -> Result<DetailFiles>,
    time: TimeRange,
    owner: MetadataOwner<'_>,
) -> Result<Option<StorePath>> {
    let time = time.resolved();
    let mut attempts = Attempts::new();
    let (files, details) = loop {
        let files = list()?;
        let reading = read_details(context, location, &files, time, Waiting::Blocks);
        let details = block_on(reading);
        if !attempts.again(&details) {
            break (files, details?);
        }
    };
    if details.len() < 2 {
        return Ok(None);
    }
    let names: Vec<&NamedEntry> = details
        .iter()
        .filter_map(|(path, _)| files.files.iter().find(|entry| entry.path == *path))
        .collect();
    let start = names
        .iter()
        .map(|entry| entry.name.t_start)
        .min()
        .unwrap_or(0);
    let end = names
        .iter()
        .map(|entry| entry.name.t_end)
        .max()
        .unwrap_or(0);
    // A deletion of what an older file sets must stay; where there is none, it has done its work.
    let older = files.files.iter().any(|entry| {
        entry.name.t_start < start && !names.iter().any(|used| used.path == entry.path)
    });
    let mut entries: BTreeMap<String, MetadataEntry> = BTreeMap::new();
    for (path, payload) in &details {
        for entry in decode_at(location, path, format::decode(payload))? {
            entries.insert(entry.key.clone(), entry);
        }
    }
    let entries: Vec<MetadataEntry> = entries
        .into_values()
        .filter(|entry| older || entry.value.is_some())
        .collect();
    if entries.is_empty() {
        // A file without entries is none; the old ones stay.
        return Ok(None);
    }
    let name = TimestampedName::unversioned(start, end);
    let path = metadata_path(&name);
    let wrong = |e| Error::decode(location.path.join(&path).to_string(), e);
    let tile = GenericTile::encode(
        &format::encode(&entries),
        FormatVersion::CURRENT,
        context.key(),
    )
    .map_err(wrong)?;
    let uris = details.iter().map(|(path, _)| match owner.relative {
        true => format!("/{path}"),
        false => location.path.join(path).to_string(),
    });
    let list = VacuumList {
        uris: uris.collect(),
    };
    let target = location.path.join(&path);
    // Whoever has overtaken this process may have merged these files, and removed them.
    lock.confirm(location)?;
    put_if_there(location, owner.schema, &path, tile.into())?;
    let vacuum = location
        .path
        .join(&format!("{path}{}", Suffix::Vacuum.text()));
    location.storage.put(&vacuum, list.encode().into())?;
    Ok(Some(target))
}
