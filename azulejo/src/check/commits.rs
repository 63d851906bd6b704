//! Commits against the fragments that are there.

use super::files::files_below;
use super::fragments::{self, Whole};
use super::report::{Fix, RESTORE, Report, Severity};
use crate::array::directory::NamedEntry;
use crate::consolidate::ArrayFolder;
use crate::context::Context;
use crate::error::Result;
use azulejo_format::commit::VacuumList;
use azulejo_format::path::{
    COMMITS_FOLDER, FRAGMENT_METADATA_FILE, Suffix, commit_path, fragment_version, needs_commit,
};
use azulejo_format::timestamped_name::TimestampedName;
use std::collections::{BTreeSet, HashSet};

pub(super) fn check(
    context: &Context,
    uri: &str,
    folder: &ArrayFolder,
    report: &mut Report,
) -> Result<()> {
    let committed = folder.fragment_names()?;
    let present = folder.fragment_folders()?;
    let superseded: HashSet<String> = folder
        .lists_in_force()?
        .into_iter()
        .flat_map(|(_, names)| names)
        .collect();
    let under_way: HashSet<&str> = folder
        .files
        .replacements
        .iter()
        .flat_map(|(_, list)| &list.new)
        .map(String::as_str)
        .collect();
    missing_fragments(folder, &superseded, report)?;
    let whole =
        |name: &TimestampedName, path: &str| fragments::is_whole(context, uri, folder, name, path);
    let orphans = Orphans {
        folder,
        is_whole: &whole,
        committed: &committed,
        superseded: &superseded,
        under_way: &under_way,
    };
    let found_again = orphans.check(report)?;
    vacuums(
        folder,
        &committed,
        &found_again,
        &present.keys().map(String::as_str).collect(),
        report,
    );
    replacements(folder, &committed, report)?;
    consolidated(folder, report)
}

/// Commits of fragments whose folder is gone.
fn missing_fragments(
    folder: &ArrayFolder,
    superseded: &HashSet<String>,
    report: &mut Report,
) -> Result<()> {
    let present = folder.fragment_folders()?;
    let files = folder.commit_files();
    for fragment in folder.committed()?.fragments {
        let name = fragment.entry.file_name();
        if present.contains_key(name) {
            continue;
        }
        let commit = fragment_version(&fragment.entry.name)
            .ok()
            .and_then(|version| commit_path(&fragment.entry.name, version));
        let file = commit
            .as_deref()
            .and_then(|path| path.rsplit('/').next())
            .and_then(|name| files.get(name));
        let path = folder.path(
            file.or(commit.as_ref())
                .map_or(fragment.entry.path.as_str(), String::as_str),
        );
        let (severity, fix) = match (superseded.contains(name), file) {
            (true, Some(file)) => (Severity::Warning, Fix::Remove(vec![folder.path(file)])),
            (true, None) => (Severity::Warning, Fix::Advice("vacuum the array")),
            (false, _) => (
                Severity::Error,
                Fix::Advice(
                    "restore the fragment's folder from a backup, or delete the fragment; until then the array cannot be opened",
                ),
            ),
        };
        report.add(
            severity,
            path,
            "it commits a fragment whose folder is not there",
            fix,
        );
    }
    Ok(())
}

/// Looks at the folders of fragments that nobody committed.
struct Orphans<'a> {
    folder: &'a ArrayFolder,
    is_whole: &'a dyn Fn(&TimestampedName, &str) -> Result<Option<Whole>>,
    committed: &'a HashSet<String>,
    /// Names that vacuum files hide.
    superseded: &'a HashSet<String>,
    /// Names of the new fragments of consolidations that did not come to their end.
    under_way: &'a HashSet<&'a str>,
}

impl Orphans<'_> {
    /// Names of those that replaced others which their vacuum files hide still: with their commits
    /// all is well again.
    fn check(&self, report: &mut Report) -> Result<HashSet<String>> {
        let mut found_again = HashSet::new();
        for (name, relative) in self.folder.fragment_folders()? {
            let path = self.folder.path(&relative);
            let files = files_below(&self.folder.location, &path)?;
            report.files += files.len() as u64;
            let parsed = TimestampedName::parse(&name);
            let legacy = parsed.as_ref().is_ok_and(|n| !needs_commit(n));
            let whole = files
                .iter()
                .any(|(file, _)| file.name() == FRAGMENT_METADATA_FILE);
            let counts = self.committed.contains(&name) && (whole || !legacy);
            if counts || self.under_way.contains(name.as_str()) {
                continue;
            }
            let bytes: u64 = files.iter().map(|(_, size)| *size).sum();
            let size = format!("{} files, {bytes} bytes", files.len());
            let kind = match &parsed {
                Ok(parsed) if whole => (self.is_whole)(parsed, &relative)?.map(|w| (parsed, w)),
                _ => None,
            };
            let commit = parsed.as_ref().ok().and_then(|parsed| {
                let version = fragment_version(parsed).ok()?;
                Some(self.folder.path(&commit_path(parsed, version)?))
            });
            let never = |rest: &str| format!("a fragment that was never committed: {size}{rest}");
            let (severity, what, fix) = match (kind, commit) {
                // What a vacuum left when it was cut short, or hidden without a replacement.
                _ if self.superseded.contains(&name) => (
                    Severity::Warning,
                    format!("what is left of a fragment that was replaced: {size}"),
                    match self.is_replaced(&name) {
                        true => Fix::Remove(vec![path.clone()]),
                        false => Fix::Advice(RESTORE),
                    },
                ),
                (Some((_, Whole::Write)), commit) => (
                    Severity::Warning,
                    never("; all of it is there"),
                    Fix::Uncommitted {
                        folder: path.clone(),
                        commit,
                    },
                ),
                (Some((_, Whole::Consolidation)), Some(commit)) if self.hides(&name) => {
                    found_again.insert(name.clone());
                    (
                        Severity::Error,
                        format!(
                            "a consolidation whose commit was lost, and with it all cells: {size}"
                        ),
                        Fix::Finish {
                            path: commit,
                            body: Vec::new(),
                            remove: Vec::new(),
                        },
                    )
                }
                (Some((parsed, Whole::Consolidation)), Some(commit))
                    if !self.has_sources(parsed) =>
                {
                    (
                        Severity::Error,
                        format!(
                            "a consolidation without a commit, and what it came of is gone: {size}, the only copy of its cells"
                        ),
                        Fix::Lost {
                            folder: path.clone(),
                            commit,
                        },
                    )
                }
                _ => (
                    Severity::Warning,
                    never(""),
                    Fix::Uncommitted {
                        folder: path.clone(),
                        commit: None,
                    },
                ),
            };
            report.add(severity, path, what, fix);
        }
        Ok(found_again)
    }

    /// Whether what replaced a fragment counts.
    fn is_replaced(&self, name: &str) -> bool {
        let mut vacuums = self.folder.files.vacuums.iter();
        vacuums.any(|(entry, list)| {
            list.names().any(|named| named == name) && {
                let stem = stem(entry);
                self.committed.contains(stem) || self.superseded.contains(stem)
            }
        })
    }

    /// Whether there is a vacuum file of a fragment's name: its commit was there before.
    fn hides(&self, name: &str) -> bool {
        let mut vacuums = self.folder.files.vacuums.iter();
        vacuums.any(|(entry, _)| stem(entry) == name)
    }

    /// Whether a fragment counts that a consolidation of this name may have come of.
    fn has_sources(&self, of: &TimestampedName) -> bool {
        let counts = |name: &&String| !self.superseded.contains(*name);
        let mut counting = self.committed.iter().filter(counts);
        counting.any(|name| {
            TimestampedName::parse(name)
                .is_ok_and(|name| of.t_start <= name.t_start && name.t_end <= of.t_end)
        })
    }
}

/// The name of the fragment that a vacuum file is about.
fn stem(entry: &NamedEntry) -> &str {
    entry.file_name().split('.').next().unwrap_or_default()
}

fn vacuums(
    folder: &ArrayFolder,
    committed: &HashSet<String>,
    found_again: &HashSet<String>,
    present: &HashSet<&str>,
    report: &mut Report,
) {
    let named: HashSet<&str> = folder
        .files
        .vacuums
        .iter()
        .flat_map(|(_, list)| list.names())
        .collect();
    for (entry, list) in &folder.files.vacuums {
        let path = folder.path(&entry.path);
        let left: Vec<&str> = list
            .names()
            .filter(|name| present.contains(name) || committed.contains(*name))
            .collect();
        let replacement = stem(entry);
        if found_again.contains(replacement) {
            continue;
        }
        if left.is_empty() {
            let fix = Fix::Remove(vec![path.clone()]);
            report.add(
                Severity::Note,
                path,
                "it names nothing that is still there",
                fix,
            );
        } else if !committed.contains(replacement) && !named.contains(replacement) {
            let what = format!(
                "it hides {} fragments, and the one that replaces them is not there",
                left.len()
            );
            let advice = "restore the fragment, or remove this file to have the hidden ones back";
            report.add(Severity::Error, path, what, Fix::Advice(advice));
        } else {
            let what = format!("{} fragments were replaced and are still there", left.len());
            report.add(Severity::Note, path, what, Fix::Advice("vacuum the array"));
        }
    }
}

/// Consolidations that were cut short while they committed.
fn replacements(
    folder: &ArrayFolder,
    committed: &HashSet<String>,
    report: &mut Report,
) -> Result<()> {
    let files = folder.commit_files();
    for (entry, list) in &folder.files.replacements {
        let path = folder.path(&entry.path);
        if list.new.iter().all(|name| committed.contains(name)) {
            let vacuum = VacuumList {
                uris: list.old.clone(),
            };
            let target = folder.path(&format!(
                "{COMMITS_FOLDER}/{}{}",
                entry.name,
                Suffix::Vacuum.text()
            ));
            let fix = Fix::Finish {
                path: target,
                body: vacuum.encode(),
                remove: vec![path.clone()],
            };
            let what =
                "a consolidation is done, but other readers still count what it has replaced";
            report.add(Severity::Warning, path, what, fix);
            continue;
        }
        // The old fragments count. What was committed of the new ones goes first, so that they
        // never count together.
        let mut remove = Vec::new();
        for name in &list.new {
            let commit = format!("{name}{}", Suffix::Write.text());
            remove.extend(files.get(&commit).map(|path| folder.path(path)));
        }
        let folders = folder.fragment_folders()?;
        remove.extend(
            list.new
                .iter()
                .filter_map(|name| folders.get(name))
                .map(|path| folder.path(path)),
        );
        remove.push(path.clone());
        report.add(
            Severity::Warning,
            path,
            "a consolidation was cut short",
            Fix::Remove(remove),
        );
    }
    Ok(())
}

/// Consolidated commits and the ignore files about them.
fn consolidated(folder: &ArrayFolder, report: &mut Report) -> Result<()> {
    let all: BTreeSet<String> = folder
        .decoded()?
        .iter()
        .flat_map(|file| &file.commits)
        .map(|commit| commit.name().to_owned())
        .collect();
    for (entry, list) in folder.directory.ignores.iter().zip(&folder.files.ignores) {
        let names = list
            .uris
            .iter()
            .map(|uri| azulejo_format::commit::last_component(uri));
        if names.clone().all(|name| !all.contains(name)) {
            let path = folder.path(&entry.path);
            let fix = Fix::Remove(vec![path.clone()]);
            report.add(
                Severity::Note,
                path,
                "it is about commits that are nowhere else",
                fix,
            );
        }
    }
    let double = folder
        .commit_files()
        .keys()
        .filter(|name| all.contains(*name))
        .count();
    if double > 0 || folder.files.consolidated.len() > 1 {
        let of = |entry: &NamedEntry| folder.path(&entry.path);
        let path = folder
            .files
            .consolidated
            .last()
            .map_or(folder.path(COMMITS_FOLDER), |(entry, _)| of(entry));
        let what = format!(
            "{double} commits have a file of their own too, and there are {} consolidated files",
            folder.files.consolidated.len()
        );
        report.add(
            Severity::Note,
            path,
            what,
            Fix::Advice("vacuum the commits"),
        );
    }
    // Deletes have a file each that must be whole.
    for entry in &folder.directory.deletes {
        if entry.name.t_start != entry.name.t_end {
            report.add(
                Severity::Warning,
                folder.path(&entry.path),
                "a delete has one time",
                Fix::Advice(RESTORE),
            );
        }
    }
    Ok(())
}
