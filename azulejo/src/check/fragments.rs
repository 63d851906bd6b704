//! Fragments: footers, sections, files.

use super::cells;
use super::report::{CheckOptions, Fix, RESTORE, Report, Severity};
use crate::array::directory::NamedEntry;
use crate::array::{Array, Fragment, OpenScope, Snapshot, TimeRange};
use crate::consolidate::ArrayFolder;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::storage::Uri;
use azulejo_format::fragment::{Section, data_file_name};
use azulejo_format::path::FRAGMENT_METADATA_FILE;
use azulejo_format::timestamped_name::TimestampedName;
use std::collections::{BTreeMap, HashSet};

pub(super) fn check(
    context: &Context,
    uri: &str,
    folder: &ArrayFolder,
    options: CheckOptions,
    report: &mut Report,
) -> Result<()> {
    let uri = Uri::parse(uri)?;
    // Fragments from the future too.
    let ever = TimeRange::until(u64::MAX - 1);
    let open = |names: Option<HashSet<String>>| {
        let scope = OpenScope {
            fragments: names,
            superseded: true,
            ..OpenScope::default()
        };
        Snapshot::open_scope(context, &uri, ever, &scope)?.array()
    };
    let present = folder.fragment_folders()?;
    let committed = folder.fragment_names()?;
    let all: HashSet<String> = committed
        .into_iter()
        .filter(|name| present.contains_key(name))
        .collect();
    match open(Some(all.clone())) {
        Ok(array) => fragments(context, &array, folder, options, report),
        Err(Error::Corrupt { .. } | Error::NotFound { .. }) => {
            // One at a time, to find out which of them it is.
            let mut names: Vec<String> = all.into_iter().collect();
            names.sort();
            for name in names {
                match open(Some(HashSet::from([name.clone()]))) {
                    Ok(array) => fragments(context, &array, folder, options, report)?,
                    Err(
                        error @ (Error::Corrupt { .. }
                        | Error::NotFound { .. }
                        | Error::Encryption { .. }),
                    ) => {
                        report.fragments += 1;
                        let path = folder.path(present.get(&name).map_or("", String::as_str));
                        report.broken(path.join(FRAGMENT_METADATA_FILE), &error, RESTORE);
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Of what kind a fragment is that nobody committed, and of which all is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    /// A write of its own.
    Write,
    /// What came of other fragments.
    Consolidation,
}

/// Looks whether all of a fragment that nobody committed is there; `None` if not.
pub(super) fn is_whole(
    context: &Context,
    uri: &str,
    folder: &ArrayFolder,
    name: &TimestampedName,
    path: &str,
) -> Result<Option<Whole>> {
    let entry = NamedEntry {
        path: path.to_owned(),
        name: name.clone(),
    };
    let scope = OpenScope {
        fragments: Some(HashSet::from([entry.file_name().to_owned()])),
        uncommitted: vec![entry],
        superseded: true,
        ..OpenScope::default()
    };
    let ever = TimeRange::until(u64::MAX - 1);
    let opened = Snapshot::open_scope(context, &Uri::parse(uri)?, ever, &scope)
        .and_then(|snapshot| snapshot.array());
    let array = match opened {
        Ok(array) => array,
        Err(Error::Corrupt { .. } | Error::NotFound { .. } | Error::Encryption { .. }) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let [fragment] = array.fragments() else {
        return Ok(None);
    };
    let mut found = Report::default();
    files(fragment, folder, &mut found)?;
    let read = match sections(fragment, &mut found) {
        Err(Error::Corrupt { .. } | Error::NotFound { .. } | Error::Encryption { .. }) => false,
        read => read.map(|()| true)?,
    };
    let whole = read && found.worst() != Some(Severity::Error);
    let merged = name.t_start != name.t_end || fragment.has_timestamps();
    Ok(whole.then_some(match merged {
        true => Whole::Consolidation,
        false => Whole::Write,
    }))
}

fn fragments(
    context: &Context,
    array: &Array,
    folder: &ArrayFolder,
    options: CheckOptions,
    report: &mut Report,
) -> Result<()> {
    // Looking at cells takes most of the time by far, and that goes with the tiles and their
    // fields.
    let weight = |fragment: &Fragment| match options.deep {
        true => fragment.tile_num().saturating_mul(cells::looks(fragment)),
        false => 1,
    };
    let total = array
        .fragments()
        .iter()
        .map(weight)
        .fold(0, u64::saturating_add);
    let unit = if options.deep { "tiles" } else { "fragments" };
    let mut before = 0u64;
    let operation = context.begin();
    let mut look = |index: usize, fragment: &Fragment| -> Result<()> {
        context.report(unit, before, total);
        operation.check()?;
        report.fragments += 1;
        files(fragment, folder, report)?;
        match sections(fragment, report) {
            Ok(()) if options.deep => {
                let told = |tiles: u64| context.report(unit, before.saturating_add(tiles), total);
                cells::check(context, array, index, options, report, &told)?;
            }
            Ok(()) => {}
            Err(
                error @ (Error::Corrupt { .. } | Error::NotFound { .. } | Error::Encryption { .. }),
            ) => {
                report.broken(fragment.metadata_path(), &error, RESTORE);
            }
            Err(error) => return Err(error),
        }
        before = before.saturating_add(weight(fragment));
        Ok(())
    };
    for (index, fragment) in array.fragments().iter().enumerate() {
        operation.runs(|| look(index, fragment))?;
    }
    context.report(unit, total, total);
    Ok(())
}

/// Files and their sizes against the footer.
fn files(fragment: &Fragment, folder: &ArrayFolder, report: &mut Report) -> Result<()> {
    let location = fragment.location();
    let entries = folder.location.storage.list(&location.path)?;
    let mut present: BTreeMap<&str, Option<u64>> = entries
        .iter()
        .map(|entry| (entry.name.as_str(), entry.size))
        .collect();
    present.remove(FRAGMENT_METADATA_FILE);
    for field in fragment
        .footer()
        .slots
        .fields()
        .filter(|field| fragment.stores(*field))
    {
        for (part, size) in fragment.parts(field) {
            let Some(name) = data_file_name(field, part, fragment.schema(), fragment.version())
            else {
                continue;
            };
            let path = location.path.join(&name);
            // Some listings do not tell sizes.
            let have = match present.remove(name.as_str()) {
                Some(None) => Some(Some(location.storage.size(&path)?)),
                have => have,
            };
            match (have, size) {
                // A file without bytes need not be there.
                (None, Some(0) | None) => {}
                (None, Some(size)) => report.add(
                    Severity::Error,
                    path,
                    format!("it is not there; the fragment's metadata give it {size} bytes"),
                    Fix::Advice(RESTORE),
                ),
                (Some(Some(have)), Some(size)) if have < size => report.add(
                    Severity::Error,
                    path,
                    format!(
                        "it has {have} bytes of the {size} that the fragment's metadata give it"
                    ),
                    Fix::Advice(RESTORE),
                ),
                (Some(Some(have)), Some(size)) if have > size => report.add(
                    Severity::Warning,
                    path,
                    format!("it has {have} bytes where the fragment's metadata give it {size}"),
                    Fix::Advice("nothing: readers do not look behind the end"),
                ),
                _ => {}
            }
        }
    }
    for name in present.into_keys() {
        let advice = Fix::Advice("nothing: readers pass it by");
        report.add(
            Severity::Note,
            location.path.join(name),
            "not a file of this fragment",
            advice,
        );
    }
    Ok(())
}

/// Decodes all sections, which checks them against each other and the file sizes.
fn sections(fragment: &Fragment, report: &mut Report) -> Result<()> {
    let mut wanted = vec![Section::FragmentStats, Section::ProcessedConditions];
    if !fragment.is_dense() {
        wanted.push(Section::RTree);
    }
    for field in fragment
        .footer()
        .slots
        .fields()
        .filter(|field| fragment.stores(*field))
    {
        wanted.push(Section::TileOffsets(field));
        if field.is_var(fragment.schema()) {
            wanted.extend([Section::TileVarOffsets(field), Section::TileVarSizes(field)]);
        }
        if field.is_nullable(fragment.schema()) {
            wanted.push(Section::TileValidityOffsets(field));
        }
        if fragment.version().has_tile_stats() {
            wanted.extend([
                Section::TileMins(field),
                Section::TileMaxs(field),
                Section::TileSums(field),
                Section::TileNullCounts(field),
            ]);
        }
    }
    fragment.preload_stored(&wanted)?;
    if fragment.is_dense() {
        return Ok(());
    }
    let bounds = fragment.rtree()?.bounding_box();
    let known = fragment.footer().non_empty_domain.as_ref();
    let differ = match (&bounds, known) {
        // NaN as a bound says nothing.
        (Some(a), Some(b)) => fragment.schema().domain.without_nan(a).is_none() && a != b,
        (a, b) => a.is_some() != b.is_some() && fragment.tile_num() > 0,
    };
    if differ {
        report.add(
            Severity::Error,
            fragment.metadata_path(),
            "the non-empty domain is not the box around the tiles: reads may miss cells",
            Fix::Advice("consolidate the fragment with another, or restore it from a backup"),
        );
    }
    Ok(())
}
