//! Names, and the files that stand alone: schemas, enumerations, metadata, consolidated footers.

use super::report::{Fix, RESTORE, Report, Severity};
use crate::array::directory::Listings;
use crate::array::removal::UNFINISHED;
use crate::array::{Attempts, decode_at, is_claim, list, read_objects};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::object::is_unfinished;
use crate::storage::{Entry, is_temporary};
use azulejo_format::ArraySchema;
use azulejo_format::commit::VacuumList;
use azulejo_format::fragment::ConsolidatedFragmentMetadata;
use azulejo_format::path::{
    CommitEntry, DetailEntry, FRAGMENTS_FOLDER, LEGACY_SCHEMA_FILE, RootEntry, RootFolder,
    SchemaEntry, enumeration_path, fragment_entry, fragment_meta_entry,
};
use azulejo_format::schema::Enumeration;
use azulejo_format::tile::GenericTile;
use std::collections::BTreeSet;

pub(super) fn check(context: &Context, location: &Location, report: &mut Report) -> Result<()> {
    let listings = list(location)?;
    strangers(location, &listings, report)?;
    schemas(context, location, &listings, report)?;
    metadata(context, location, &listings, report)?;
    footers(context, location, &listings, report)
}

fn strangers(location: &Location, listings: &Listings, report: &mut Report) -> Result<()> {
    let is_note = |entry: &Entry| entry.name == UNFINISHED && !entry.is_dir;
    let being_made = listings.root.iter().any(is_note) && is_unfinished(location)?;
    let mut look = |folder: Option<RootFolder>, entry: &Entry, known: bool, harmful: bool| {
        report.files += u64::from(!entry.is_dir);
        if known {
            return;
        }
        let folder = folder.map_or(location.path.clone(), |folder| {
            location.path.join(folder.name())
        });
        let is_root = folder == location.path;
        let path = folder.join(&entry.name);
        if is_root && is_note(entry) && !being_made {
            let fix = Fix::Remove(vec![path.clone()]);
            report.add(
                Severity::Note,
                path,
                "what is left of an import that was cut short before this array was made in its place",
                fix,
            );
        } else if is_root && is_note(entry) {
            let advice = Fix::Advice("make it again of what it was made of, or delete it");
            report.add(
                Severity::Warning,
                path,
                "the array is being made, or was when its making was cut short: it may be a part of what it is to be",
                advice,
            );
        } else if is_temporary(&entry.name) {
            let fix = Fix::Remove(vec![path.clone()]);
            report.add(
                Severity::Warning,
                path,
                "what is left of a write that was cut short",
                fix,
            );
        } else if harmful {
            let advice = Fix::Advice("move it out of the array");
            report.add(
                Severity::Warning,
                path,
                "not a file of the format: other TileDB readers cannot open the array because of it",
                advice,
            );
        } else {
            let advice = Fix::Advice("nothing: readers pass it by");
            report.add(Severity::Note, path, "not part of the format", advice);
        }
    };
    for entry in &listings.root {
        look(
            None,
            entry,
            RootEntry::classify(&entry.name) != RootEntry::Unknown || is_lock(&entry.name),
            false,
        );
    }
    for entry in &listings.schema {
        let known = match SchemaEntry::classify(&entry.name) {
            SchemaEntry::Schema(_) => !entry.is_dir,
            SchemaEntry::Enumerations => entry.is_dir,
            SchemaEntry::Unknown => false,
        };
        look(Some(RootFolder::Schema), entry, known, true);
    }
    for entry in &listings.commits {
        look(
            Some(RootFolder::Commits),
            entry,
            CommitEntry::classify(&entry.name) != CommitEntry::Unknown,
            false,
        );
    }
    let has_fragments = listings
        .root
        .iter()
        .any(|entry| entry.is_dir && entry.name == FRAGMENTS_FOLDER);
    let inside = match has_fragments {
        true => location
            .storage
            .list(&location.path.join(FRAGMENTS_FOLDER))?,
        false => Vec::new(),
    };
    for entry in inside {
        // The files of fragments are counted with them.
        if !(entry.is_dir && fragment_entry(&entry.name).is_some()) {
            look(Some(RootFolder::Fragments), &entry, false, false);
        }
    }
    for entry in &listings.fragment_meta {
        look(
            Some(RootFolder::FragmentMeta),
            entry,
            fragment_meta_entry(&entry.name).is_some(),
            true,
        );
    }
    for entry in &listings.metadata {
        let known = !matches!(
            DetailEntry::classify(&entry.name),
            DetailEntry::Unknown | DetailEntry::Partial
        );
        look(Some(RootFolder::Metadata), entry, known, true);
    }
    Ok(())
}

fn is_lock(name: &str) -> bool {
    name == azulejo_format::path::LOCK_FILE || is_claim(name)
}

/// Reads a file that is one generic tile and decodes it; what is wrong is a finding.
fn tile<T>(
    context: &Context,
    location: &Location,
    path: &str,
    report: &mut Report,
    decode: impl Fn(&[u8]) -> Result<T, azulejo_format::DecodeError>,
) -> Result<Option<T>> {
    let read = || -> Result<T> {
        let bytes = read_objects(context, location, [path])?
            .pop()
            .unwrap_or_default();
        let limit = context.config().memory_budget;
        let tile = decode_at(
            location,
            path,
            GenericTile::decode(&bytes, context.key(), limit),
        )?;
        decode_at(location, path, decode(&tile.data))
    };
    // A file that libtiledb is writing is not damaged.
    let mut attempts = Attempts::new();
    let mut found = read();
    while attempts.again(&found) {
        found = read();
    }
    match found {
        Ok(value) => Ok(Some(value)),
        Err(
            error @ (Error::Corrupt { .. } | Error::Encryption { .. } | Error::NotFound { .. }),
        ) => {
            report.broken(location.path.join(path), &error, RESTORE);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn schemas(
    context: &Context,
    location: &Location,
    listings: &Listings,
    report: &mut Report,
) -> Result<()> {
    let mut paths: Vec<String> = Vec::new();
    if listings
        .root
        .iter()
        .any(|entry| entry.name == LEGACY_SCHEMA_FILE)
    {
        paths.push(LEGACY_SCHEMA_FILE.to_owned());
    }
    let named = listings.schema.iter().filter(|entry| !entry.is_dir);
    let named =
        named.filter(|entry| matches!(SchemaEntry::classify(&entry.name), SchemaEntry::Schema(_)));
    paths.extend(named.map(|entry| format!("{}/{}", RootFolder::Schema.name(), entry.name)));
    let mut enumerations: BTreeSet<String> = BTreeSet::new();
    for path in &paths {
        let Some(schema) = tile(context, location, path, report, ArraySchema::decode)? else {
            continue;
        };
        if let Err(reason) = schema.check() {
            report.add(
                Severity::Error,
                location.path.join(path),
                format!("the schema makes no sense: {reason}"),
                Fix::Advice(RESTORE),
            );
        }
        enumerations.extend(
            schema
                .enumerations
                .iter()
                .map(|e| enumeration_path(&e.file_name)),
        );
    }
    for path in &enumerations {
        report.files += 1;
        tile(context, location, path, report, Enumeration::decode)?;
    }
    Ok(())
}

fn metadata(
    context: &Context,
    location: &Location,
    listings: &Listings,
    report: &mut Report,
) -> Result<()> {
    let folder = RootFolder::Metadata.name();
    let present: BTreeSet<&str> = listings
        .metadata
        .iter()
        .map(|entry| entry.name.as_str())
        .collect();
    for entry in &listings.metadata {
        let path = format!("{folder}/{}", entry.name);
        match DetailEntry::classify(&entry.name) {
            DetailEntry::Detail(_) => {
                tile(
                    context,
                    location,
                    &path,
                    report,
                    azulejo_format::metadata::decode,
                )?;
            }
            DetailEntry::Vacuum(_) => {
                let bytes = read_objects(context, location, [path.as_str()])?
                    .pop()
                    .unwrap_or_default();
                let full = location.path.join(&path);
                match decode_at(location, &path, VacuumList::decode(&bytes)) {
                    Err(error) => {
                        report.broken(
                            full,
                            &error,
                            "remove it: the files that it names count again",
                        );
                    }
                    Ok(list) => {
                        let left = list.names().filter(|name| present.contains(name)).count();
                        let replacement = entry.name.trim_end_matches(".vac");
                        if left == 0 {
                            let fix = Fix::Remove(vec![full.clone()]);
                            report.add(
                                Severity::Note,
                                full,
                                "it names nothing that is still there",
                                fix,
                            );
                        } else if !present.contains(replacement) {
                            let what = format!(
                                "it hides {left} files, and the one that replaces them is not there"
                            );
                            let advice = Fix::Advice(
                                "remove it, and the key-values of these files are back",
                            );
                            report.add(Severity::Error, full, what, advice);
                        }
                    }
                }
            }
            DetailEntry::Partial | DetailEntry::Unknown => {}
        }
    }
    Ok(())
}

fn footers(
    context: &Context,
    location: &Location,
    listings: &Listings,
    report: &mut Report,
) -> Result<()> {
    let flat = listings.root.iter().filter(|entry| {
        matches!(
            RootEntry::classify(&entry.name),
            RootEntry::LegacyFragmentMetadata(_)
        )
    });
    let inner = listings
        .fragment_meta
        .iter()
        .filter(|entry| fragment_meta_entry(&entry.name).is_some());
    let inner = inner.map(|entry| format!("{}/{}", RootFolder::FragmentMeta.name(), entry.name));
    for path in flat.map(|entry| entry.name.clone()).chain(inner) {
        let mut found = Report::default();
        tile(context, location, &path, &mut found, |payload| {
            ConsolidatedFragmentMetadata::decode(payload).map(|_| ())
        })?;
        // The fragments have their footers themselves.
        for finding in found.findings {
            let fix = Fix::Remove(vec![finding.path.clone()]);
            report.add(Severity::Error, finding.path, finding.what, fix);
        }
    }
    Ok(())
}
