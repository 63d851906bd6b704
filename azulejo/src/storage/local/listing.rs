//! What folders hold.

use super::error::{is_missing, storage_error};
use crate::error::Result;
use crate::storage::{Entry, StorePath, path_in};
use std::fs;
use std::path::Path;

/// What a folder holds, sorted by name, each with whether it is a link.
pub(super) fn children(dir: &StorePath) -> Result<Vec<(Entry, bool)>> {
    let failed = |source| storage_error("list", dir, source);
    let children = match fs::read_dir(dir.as_native()) {
        Ok(children) => children,
        Err(e) if is_missing(&e) => return Ok(Vec::new()),
        Err(e) => return Err(failed(e)),
    };
    let mut entries = Vec::new();
    for child in children {
        let child = child.map_err(failed)?;
        // Names that are not UTF-8 cannot be TileDB's.
        let Ok(name) = child.file_name().into_string() else {
            continue;
        };
        let mut kind = match child.file_type() {
            // Some file systems are asked for it, and it may be gone by then.
            Err(e) if is_missing(&e) => continue,
            kind => kind.map_err(failed)?,
        };
        let is_link = kind.is_symlink();
        if is_link {
            // A dangling link is nobody's file.
            let Ok(metadata) = fs::metadata(child.path()) else {
                continue;
            };
            kind = metadata.file_type();
        }
        let entry = Entry {
            name,
            is_dir: kind.is_dir(),
            size: kind.is_dir().then_some(0),
        };
        entries.push((entry, is_link));
    }
    // No two have the same name.
    entries.sort_unstable_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    Ok(entries)
}

/// What of a folder [`children`] passes over, if there is any: names that are not UTF-8, and links
/// that lead nowhere. A folder that is such a link itself is one.
pub(super) fn unlisted(dir: &StorePath) -> Result<Option<String>> {
    let failed = |source| storage_error("list", dir, source);
    let leads_nowhere = |path: &Path| {
        fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
            && fs::metadata(path).is_err()
    };
    let native = dir.as_native();
    let children = match fs::read_dir(native) {
        Ok(children) => children,
        Err(_) if leads_nowhere(native) => return Ok(Some(dir.to_string())),
        Err(e) if is_missing(&e) => return Ok(None),
        Err(e) => return Err(failed(e)),
    };
    for child in children {
        let child = child.map_err(failed)?;
        let is_link = match child.file_type() {
            Err(e) if is_missing(&e) => continue,
            kind => kind.map_err(failed)?.is_symlink(),
        };
        if child.file_name().to_str().is_none() || is_link && leads_nowhere(&child.path()) {
            return Ok(Some(child.path().display().to_string()));
        }
    }
    Ok(None)
}

/// A folder and all folders below it; see [`Storage::list_tree`](crate::storage::Storage::list_tree).
pub(super) fn list_tree(dir: &StorePath) -> Result<Vec<(String, Vec<Entry>)>> {
    let (mut tree, mut level) = (Vec::new(), vec![String::new()]);
    while !level.is_empty() {
        let mut below = Vec::new();
        for folder in level {
            let entries = children(&dir.join(&folder))?;
            // Links are named and not followed: they may lead back, or to all there is.
            let folders = entries
                .iter()
                .filter(|(entry, is_link)| entry.is_dir && !is_link);
            below.extend(folders.map(|(entry, _)| path_in(&folder, &entry.name)));
            tree.push((
                folder,
                entries.into_iter().map(|(entry, _)| entry).collect(),
            ));
        }
        level = below;
    }
    Ok(tree)
}

/// Those of some names that a folder has.
pub(super) fn find(dir: &StorePath, names: &[&str]) -> Result<Vec<Entry>> {
    let native = dir.to_native();
    let mut entries = Vec::new();
    for name in names {
        match fs::metadata(native.join(name)) {
            Ok(found) => entries.push(Entry {
                name: (*name).to_owned(),
                is_dir: found.is_dir(),
                size: found.is_dir().then_some(0),
            }),
            Err(e) if is_missing(&e) => {}
            // A link that leads nowhere is nobody's file, as in listings.
            Err(_)
                if fs::symlink_metadata(native.join(name))
                    .is_ok_and(|found| found.is_symlink()) => {}
            Err(e) => return Err(storage_error("look into", dir, e)),
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}
