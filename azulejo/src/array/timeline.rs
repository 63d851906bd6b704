//! What of an array counts at a time: fragments, deletes, schema, metadata. Pure.

use super::TimeRange;
use super::directory::{Directory, FlatCommit, NamedEntry};
use azulejo_format::FormatVersion;
use azulejo_format::commit::{
    ConsolidatedCommit, ConsolidatedCommits, IgnoreList, Replacement, VacuumList, last_component,
};
use azulejo_format::path::{COMMITS_FOLDER, FRAGMENTS_FOLDER, fragment_version, split_suffix};
use azulejo_format::timestamped_name::TimestampedName;
use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};

/// Which fragments may count where they lie only partly within the time asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartialOverlap {
    /// None.
    Excluded,
    /// Those of versions whose cells tell when they were written.
    WithTimestamps,
}

impl PartialOverlap {
    /// Those of a dense or a sparse array.
    #[must_use]
    pub const fn of(dense: bool) -> Self {
        match dense {
            true => Self::Excluded,
            false => Self::WithTimestamps,
        }
    }
}

/// A fragment that exists: it is committed, or is of a version that needs no commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedFragment {
    /// Its folder and name.
    pub entry: NamedEntry,
    /// Whether nothing but its metadata file can tell that it exists (below v5).
    pub uncertain: bool,
}

/// A delete commit: a file of its own, or a part of a consolidated commits file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteFile {
    /// Path relative to the array of the commit as it was first written, which is what fragments
    /// list as processed.
    pub path: String,
    /// The parsed name.
    pub name: TimestampedName,
    /// The condition's generic tile, if it comes from a consolidated commits file; else the file is
    /// to be read.
    pub tile: Option<Vec<u8>>,
}

/// All fragments and deletes that exist, whatever their time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Committed {
    /// The fragments, ordered by time.
    pub fragments: Vec<CommittedFragment>,
    /// The deletes, ordered by time.
    pub deletes: Vec<DeleteFile>,
}

/// Brings commit files and consolidated commits together.
#[must_use]
pub fn committed(
    directory: &Directory,
    consolidated: &[ConsolidatedCommits<'_>],
    ignores: &[IgnoreList],
) -> Committed {
    let ignored: HashSet<&str> = ignores
        .iter()
        .flat_map(|list| &list.uris)
        .map(|uri| last_component(uri))
        .collect();
    let mut fragments = Vec::with_capacity(directory.written.len());
    let mut deletes: HashMap<String, DeleteFile> = HashMap::new();
    let mut flat_commits: HashSet<&str> = HashSet::new();
    for commit in consolidated.iter().flat_map(|file| &file.commits) {
        let file_name = commit.name();
        if ignored.contains(file_name) {
            continue;
        }
        let Some((name, _)) = split_suffix(file_name) else {
            continue;
        };
        match commit {
            ConsolidatedCommit::Fragment { .. } => match file_name.strip_suffix(".wrt") {
                Some(stem) => {
                    let entry = NamedEntry {
                        path: format!("{FRAGMENTS_FOLDER}/{stem}"),
                        name,
                    };
                    fragments.push(CommittedFragment {
                        entry,
                        uncertain: false,
                    });
                }
                None => {
                    flat_commits.insert(file_name.strip_suffix(".ok").unwrap_or(file_name));
                }
            },
            ConsolidatedCommit::Delete { tile, .. } => {
                let path = format!("{COMMITS_FOLDER}/{file_name}");
                deletes.insert(
                    path.clone(),
                    DeleteFile {
                        path,
                        name,
                        tile: Some(tile.to_vec()),
                    },
                );
            }
            // As in the reference, which leaves updates in files of their own.
            ConsolidatedCommit::Update { .. } => {}
        }
    }
    fragments.extend(directory.written.iter().map(|entry| CommittedFragment {
        entry: entry.clone(),
        uncertain: false,
    }));
    for (entry, commit) in &directory.flat_fragments {
        if *commit == FlatCommit::Missing && !flat_commits.contains(entry.path.as_str()) {
            continue;
        }
        let fragment = CommittedFragment {
            entry: entry.clone(),
            uncertain: *commit == FlatCommit::NotNeeded,
        };
        fragments.push(fragment);
    }
    for entry in &directory.deletes {
        let delete = DeleteFile {
            path: entry.path.clone(),
            name: entry.name.clone(),
            tile: None,
        };
        deletes.entry(entry.path.clone()).or_insert(delete);
    }
    // Mostly in order already, as listings are.
    fragments.sort_by(|a, b| {
        a.entry
            .name
            .cmp_by_time(&b.entry.name)
            .then_with(|| a.entry.path.cmp(&b.entry.path))
    });
    // One that has a file of its own and is in consolidated commits too, or in several of them, is
    // the same everywhere.
    fragments.dedup_by(|a, b| a.entry.path == b.entry.path);
    let mut deletes: Vec<_> = deletes.into_values().collect();
    deletes.sort_by(|a, b| a.name.cmp_by_time(&b.name));
    Committed { fragments, deletes }
}

/// What does not count while a replacement is under way: the old fragments once all new ones are
/// committed, the new ones before.
#[must_use]
pub fn replaced(committed: &Committed, replacement: Replacement) -> VacuumList {
    let exists = |name: &String| {
        committed
            .fragments
            .iter()
            .any(|f| f.entry.file_name() == name)
    };
    let done = replacement.new.iter().all(exists);
    VacuumList {
        uris: if done {
            replacement.old
        } else {
            replacement.new
        },
    }
}

/// The fragments that count, and those that a consolidation within the time has made superfluous.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selected {
    /// Indices into [`Committed::fragments`] of those that count, oldest first.
    pub current: Vec<usize>,
    /// Indices of those that could be vacuumed.
    pub superseded: Vec<usize>,
}

/// Selects the fragments that count at `time`.
///
/// A fragment counts if all of its time lies in `time` and no vacuum file, itself in `time`, names
/// it. Partly overlapping fragments (and their vacuum files) count where `partial` lets them,
/// unless they are in `without_timestamps`. `vacuums` are all vacuum files with their lists.
#[must_use]
pub fn select_fragments(
    committed: &Committed,
    vacuums: &[(impl Borrow<NamedEntry>, VacuumList)],
    time: TimeRange,
    partial: PartialOverlap,
    without_timestamps: &HashSet<String>,
) -> Selected {
    let counts = |name: &TimestampedName| {
        time.contains(name)
            || (partial == PartialOverlap::WithTimestamps
                && fragment_version(name).is_ok_and(FormatVersion::may_count_in_part)
                && time.overlaps(name)
                && !without_timestamps.contains(&name.to_string()))
    };
    // Lists hold relative paths, absolute paths of another time and place, or names: names are what
    // they share.
    let superseded: HashSet<&str> = vacuums
        .iter()
        .filter(|(entry, _)| counts(&entry.borrow().name))
        .flat_map(|(_, list)| list.uris.iter().map(|uri| last_component(uri)))
        .collect();
    let mut selected = Selected::default();
    for (i, fragment) in committed
        .fragments
        .iter()
        .enumerate()
        .filter(|(_, f)| counts(&f.entry.name))
    {
        if superseded.contains(fragment.entry.file_name()) {
            selected.superseded.push(i);
        } else {
            selected.current.push(i);
        }
    }
    selected
}

/// Selects the files of `__meta` or `__group` that count at `time`: those inside it that no vacuum
/// file inside it names.
#[must_use]
pub fn select_details<'a>(
    files: &'a [NamedEntry],
    vacuums: &[(&NamedEntry, VacuumList)],
    time: TimeRange,
) -> Vec<&'a NamedEntry> {
    let superseded: HashSet<&str> = vacuums
        .iter()
        .filter(|(entry, _)| time.contains(&entry.name))
        .flat_map(|(_, list)| list.uris.iter().map(|uri| last_component(uri)))
        .collect();
    files
        .iter()
        .filter(|file| time.contains(&file.name) && !superseded.contains(file.file_name()))
        .collect()
}

/// The deletes that count at `time`, oldest first.
pub fn select_deletes(committed: &Committed, time: TimeRange) -> impl Iterator<Item = &DeleteFile> {
    committed
        .deletes
        .iter()
        .filter(move |delete| time.contains(&delete.name))
}

/// The file name of the schema at the end of `time`: the newest until then; the oldest of all if
/// there was none yet, because an array may hold fragments older than its first schema.
#[must_use]
pub fn select_schema(directory: &Directory, time: TimeRange) -> Option<&str> {
    let newest = directory
        .schemas
        .iter()
        .rev()
        .find(|schema| schema.name.t_end <= time.end);
    newest
        .map(NamedEntry::file_name)
        .or_else(|| directory.schema_files().next().map(|(_, name)| name))
}

impl TimeRange {
    /// Whether all of a name's time lies inside.
    pub(super) fn contains(self, name: &TimestampedName) -> bool {
        self.start <= name.t_start && name.t_end <= self.end
    }

    /// Whether some of a name's time lies inside.
    pub(super) fn overlaps(self, name: &TimestampedName) -> bool {
        name.t_start <= self.end && self.start <= name.t_end
    }
}

#[cfg(test)]
mod tests {
    use super::super::directory::Listings;
    use super::*;
    use crate::storage::Entry;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn entry(name: &str) -> Entry {
        Entry {
            name: name.trim_end_matches('/').to_owned(),
            is_dir: name.ends_with('/'),
            size: None,
        }
    }

    fn directory(root: &[String], commits: &[String]) -> Directory {
        let entries = |names: &[String]| names.iter().map(|name| entry(name)).collect();
        Directory::parse(&Listings {
            root: entries(root),
            commits: entries(commits),
            ..Listings::default()
        })
    }

    fn names(committed: &Committed, indices: &[usize]) -> Vec<String> {
        indices
            .iter()
            .map(|&i| committed.fragments[i].entry.path.clone())
            .collect()
    }

    fn until(start: u64, end: u64) -> TimeRange {
        TimeRange { start, end }
    }

    /// Names of the fragments that count.
    fn current(
        committed: &Committed,
        vacuums: &[(&NamedEntry, VacuumList)],
        time: TimeRange,
        partial: PartialOverlap,
    ) -> Vec<String> {
        names(
            committed,
            &select_fragments(committed, vacuums, time, partial, &HashSet::new()).current,
        )
    }

    #[test]
    fn commits_of_all_ages_count() {
        let root = [
            format!("__{A}_1/"),
            format!("__2_2_{A}/"),
            format!("__3_3_{A}_9/"),
            format!("__3_3_{A}_9.ok"),
            format!("__4_4_{A}_9/"),
            format!("__5_5_{A}_9/"),
        ];
        let commits = [
            format!("__6_6_{A}_22.wrt"),
            format!("__7_7_{A}_22.wrt"),
            format!("__9_9_{A}_22.del"),
        ];
        let directory = directory(&root, &commits);
        let delete = format!("__commits/__8_8_{A}_22.del");
        let text = format!(
            "__5_5_{A}_9.ok\n__commits/__6_6_{A}_22.wrt\n__commits/__10_10_{A}_22.wrt\n\
             __commits/__11_11_{A}_22.wrt\n{delete}\n\x02\0\0\0\0\0\0\0ab"
        );
        let consolidated = [ConsolidatedCommits::decode(text.as_bytes()).unwrap()];
        let ignores = [IgnoreList {
            uris: vec![format!("__commits/__11_11_{A}_22.wrt")],
        }];
        let committed = committed(&directory, &consolidated, &ignores);
        let found: Vec<_> = committed
            .fragments
            .iter()
            .map(|f| (f.entry.path.clone(), f.uncertain))
            .collect();
        assert_eq!(
            found,
            [
                (format!("__{A}_1"), true),
                (format!("__2_2_{A}"), true),
                (format!("__3_3_{A}_9"), false),
                (format!("__5_5_{A}_9"), false),
                (format!("__fragments/__6_6_{A}_22"), false),
                (format!("__fragments/__7_7_{A}_22"), false),
                (format!("__fragments/__10_10_{A}_22"), false),
            ]
        );
        let deletes: Vec<_> = committed
            .deletes
            .iter()
            .map(|d| (d.path.clone(), d.tile.clone()))
            .collect();
        assert_eq!(
            deletes,
            [
                (delete, Some(b"ab".to_vec())),
                (format!("__commits/__9_9_{A}_22.del"), None)
            ]
        );
        assert_eq!(select_deletes(&committed, until(9, 9)).count(), 1);
        assert_eq!(select_deletes(&committed, until(0, 7)).count(), 0);
    }

    #[test]
    fn equal_times_are_ordered_by_the_rest_of_the_name() {
        let commits = [
            format!("__5_5_{B}_22.wrt"),
            format!("__5_5_{A}_22.wrt"),
            format!("__10_10_{A}_22.wrt"),
            format!("__5_6_{A}_22.wrt"),
        ];
        let committed = committed(&directory(&[], &commits), &[], &[]);
        let found = current(&committed, &[], TimeRange::ALL, PartialOverlap::Excluded);
        let expected = [
            format!("__fragments/__5_5_{A}_22"),
            format!("__fragments/__5_5_{B}_22"),
            format!("__fragments/__5_6_{A}_22"),
            format!("__fragments/__10_10_{A}_22"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn consolidated_fragments_replace_what_their_vacuum_file_names() {
        let (one, two, both) = (
            format!("__1_1_{A}_22"),
            format!("__2_2_{A}_22"),
            format!("__1_2_{A}_22"),
        );
        let commits = [
            format!("{one}.wrt"),
            format!("{two}.wrt"),
            format!("{both}.wrt"),
            format!("{both}.vac"),
        ];
        let directory = directory(&[], &commits);
        let committed = committed(&directory, &[], &[]);
        // One path of another place and time, one relative.
        let list = VacuumList {
            uris: vec![
                format!("file:///gone/array/__fragments/{one}"),
                format!("__fragments/{two}/"),
            ],
        };
        let vacuums = [(&directory.vacuums[0], list)];
        let path = |name: &String| format!("__fragments/{name}");
        for partial in [PartialOverlap::Excluded, PartialOverlap::WithTimestamps] {
            assert_eq!(
                current(&committed, &vacuums, until(0, 2), partial),
                [path(&both)]
            );
            assert_eq!(current(&committed, &vacuums, until(3, 9), partial), [""; 0]);
        }
        // In between, a dense array goes back to the originals; cells with timestamps make that
        // unnecessary.
        let excluded = PartialOverlap::Excluded;
        assert_eq!(
            current(&committed, &vacuums, until(0, 1), excluded),
            [path(&one)]
        );
        assert_eq!(
            current(&committed, &vacuums, until(2, 9), excluded),
            [path(&two)]
        );
        let partial = PartialOverlap::WithTimestamps;
        assert_eq!(
            current(&committed, &vacuums, until(0, 1), partial),
            [path(&both)]
        );
        assert_eq!(
            current(&committed, &vacuums, until(2, 9), partial),
            [path(&both)]
        );
        // It turned out to have no timestamps after all.
        let without = HashSet::from([both.clone()]);
        let selected = select_fragments(&committed, &vacuums, until(0, 1), partial, &without);
        assert_eq!(names(&committed, &selected.current), [path(&one)]);
        let selected =
            select_fragments(&committed, &vacuums, until(0, 2), excluded, &HashSet::new());
        assert_eq!(
            names(&committed, &selected.superseded),
            [path(&one), path(&two)]
        );
    }

    #[test]
    fn versions_without_cell_timestamps_never_count_in_part() {
        let commits = [format!("__1_5_{A}_14.wrt"), format!("__1_5_{A}_15.wrt")];
        let root = [format!("__1_5_{A}/")];
        let committed = committed(&directory(&root, &commits), &[], &[]);
        let partial = PartialOverlap::WithTimestamps;
        assert_eq!(
            current(&committed, &[], until(2, 3), partial),
            [format!("__fragments/__1_5_{A}_15")]
        );
    }

    #[test]
    fn the_schema_is_the_newest_of_its_time_or_the_oldest() {
        let schema = |names: &[&str], legacy: bool| {
            let schema = names
                .iter()
                .map(|name| entry(&format!("__{name}_{A}")))
                .collect();
            let root = if legacy {
                vec![entry("__array_schema.tdb")]
            } else {
                vec![]
            };
            Directory::parse(&Listings {
                root,
                schema,
                ..Listings::default()
            })
        };
        let directory = schema(&["100_100", "9_9", "20_20"], false);
        let at = |directory: &Directory, t| {
            select_schema(directory, TimeRange::until(t)).map(str::to_owned)
        };
        assert_eq!(at(&directory, u64::MAX), Some(format!("__100_100_{A}")));
        assert_eq!(at(&directory, 99), Some(format!("__20_20_{A}")));
        assert_eq!(at(&directory, 19), Some(format!("__9_9_{A}")));
        assert_eq!(at(&directory, 8), Some(format!("__9_9_{A}")));
        // Created at the time of day and evolved at others, which libtiledb 2.30 reads so.
        let evolved = schema(
            &["1763000000000_1763000000000", "2_2", "9_9", "10_10"],
            false,
        );
        for (time, shown) in [
            (u64::MAX, "9_9"),
            (15, "9_9"),
            (9, "9_9"),
            (8, "2_2"),
            (1, "10_10"),
        ] {
            assert_eq!(
                at(&evolved, time),
                Some(format!("__{shown}_{A}")),
                "at {time}"
            );
        }
        let mixed = schema(&["9_9"], true);
        assert_eq!(at(&mixed, 8), Some("__array_schema.tdb".to_owned()));
        assert_eq!(at(&mixed, 9), Some(format!("__9_9_{A}")));
        assert_eq!(
            at(&schema(&[], true), 0),
            Some("__array_schema.tdb".to_owned())
        );
        assert_eq!(at(&schema(&[], false), 0), None);
    }

    #[test]
    fn metadata_files_are_replaced_too() {
        let named = |path: &str| {
            let (name, _) = split_suffix(path.rsplit('/').next().unwrap()).unwrap();
            NamedEntry {
                path: path.to_owned(),
                name,
            }
        };
        let files = [
            named(&format!("__meta/__1_1_{A}")),
            named(&format!("__meta/__1_2_{A}")),
        ];
        let vacuum = named(&format!("__meta/__1_2_{A}.vac"));
        let list = VacuumList {
            uris: vec![format!("file:///gone/__meta/__1_1_{A}")],
        };
        let vacuums = [(&vacuum, list)];
        let found = |time| -> Vec<&str> {
            select_details(&files, &vacuums, time)
                .into_iter()
                .map(|f| f.path.as_str())
                .collect()
        };
        assert_eq!(found(TimeRange::ALL), [files[1].path.as_str()]);
        assert_eq!(found(until(0, 1)), [files[0].path.as_str()]);
        assert_eq!(found(until(2, 2)), [""; 0]);
    }
}
