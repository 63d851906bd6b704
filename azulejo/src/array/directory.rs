//! What lies in an array's folder, from the listings of its folders alone. Pure.
//!
//! Up to v11 fragments, commits and consolidated fragment metadata lie flat in the array's own
//! folder, since v12 each in a folder; an array that lived through both has both. Names that are
//! not the format's are passed by everywhere (the reference trips over those in `__schema`,
//! `__meta` and `__fragment_meta`).

use crate::storage::Entry;
use azulejo_format::path::{
    self, CommitEntry, DetailEntry, FRAGMENTS_FOLDER, LEGACY_SCHEMA_FILE, RootEntry, RootFolder,
    SchemaEntry,
};
use azulejo_format::timestamped_name::TimestampedName;

/// The listings that opening an array begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listings {
    /// The array's own folder.
    pub root: Vec<Entry>,
    /// `__schema`.
    pub schema: Vec<Entry>,
    /// `__commits`.
    pub commits: Vec<Entry>,
    /// `__fragment_meta`.
    pub fragment_meta: Vec<Entry>,
    /// `__meta`.
    pub metadata: Vec<Entry>,
}

/// A file or folder of the format with a time in its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedEntry {
    /// Path relative to the array, as listed.
    pub path: String,
    /// The parsed name, without suffix.
    pub name: TimestampedName,
}

impl NamedEntry {
    fn new(folder: Option<RootFolder>, entry: &Entry, name: TimestampedName) -> Self {
        let path = match folder {
            Some(folder) => format!("{}/{}", folder.name(), entry.name),
            None => entry.name.clone(),
        };
        Self { path, name }
    }

    /// The last component of the path.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.path
            .rsplit_once('/')
            .map_or(&*self.path, |(_, name)| name)
    }
}

/// Why a fragment that lies in the array's own folder may count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlatCommit {
    /// v5 to v11: it has an `.ok` file.
    File,
    /// v5 to v11: it counts if a consolidated commits file names it.
    Missing,
    /// Below v5: it counts if it has metadata.
    NotNeeded,
}

/// The folder of an array, sorted out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directory {
    /// Whether there is a `__array_schema.tdb`, older than all others.
    pub has_legacy_schema: bool,
    /// Schemas in `__schema`, oldest first.
    pub schemas: Vec<NamedEntry>,
    /// Fragment folders in the array's own folder.
    pub flat_fragments: Vec<(NamedEntry, FlatCommit)>,
    /// Commits of fragments in `__fragments`; the paths are those of the fragments.
    pub written: Vec<NamedEntry>,
    /// Delete commits, and update commits, which readers take for deletes.
    pub deletes: Vec<NamedEntry>,
    /// Consolidated commits.
    pub consolidated: Vec<NamedEntry>,
    /// Ignore files.
    pub ignores: Vec<NamedEntry>,
    /// What fragment consolidations replaced, flat or in `__commits`.
    pub vacuums: Vec<NamedEntry>,
    /// Replacements of fragments under way.
    pub replacements: Vec<NamedEntry>,
    /// Consolidated fragment metadata, flat or in `__fragment_meta`.
    pub fragment_meta: Vec<NamedEntry>,
    /// Array metadata.
    pub metadata: DetailFiles,
    /// What marks another kind of object; an array has none of it.
    pub other: Option<OtherObject>,
    /// Whether nothing at all lies there.
    pub is_empty: bool,
}

/// Something else than an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherObject {
    /// A group.
    Group,
    /// A key-value store of TileDB 1.x.
    KeyValueStore,
}

/// Files of `__meta` or `__group`, and the vacuum files among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DetailFiles {
    /// The files, oldest first.
    pub files: Vec<NamedEntry>,
    /// Vacuum files.
    pub vacuums: Vec<NamedEntry>,
}

impl DetailFiles {
    /// Sorts out the listing of `folder`.
    #[must_use]
    pub fn parse(folder: RootFolder, entries: &[Entry]) -> Self {
        let mut parsed = Self::default();
        for entry in entries.iter().filter(|entry| !entry.is_dir) {
            match DetailEntry::classify(&entry.name) {
                DetailEntry::Detail(name) => {
                    parsed
                        .files
                        .push(NamedEntry::new(Some(folder), entry, name));
                }
                DetailEntry::Vacuum(name) => {
                    parsed
                        .vacuums
                        .push(NamedEntry::new(Some(folder), entry, name));
                }
                DetailEntry::Partial | DetailEntry::Unknown => {}
            }
        }
        sort(&mut parsed.files);
        parsed
    }
}

impl Directory {
    /// Sorts out the listings.
    #[must_use]
    pub fn parse(listings: &Listings) -> Self {
        let mut directory = Self {
            is_empty: listings.root.is_empty(),
            ..Self::default()
        };
        let mut committed = std::collections::HashSet::new();
        for entry in &listings.root {
            match RootEntry::classify(&entry.name) {
                RootEntry::LegacySchema if !entry.is_dir => directory.has_legacy_schema = true,
                RootEntry::LegacyKvSchema if !entry.is_dir => {
                    directory.other = Some(OtherObject::KeyValueStore);
                }
                RootEntry::GroupMarker | RootEntry::Folder(RootFolder::GroupDetails) => {
                    directory.other = Some(OtherObject::Group);
                }
                RootEntry::LegacyFragment(name) if entry.is_dir => {
                    let commit = if path::needs_commit(&name) {
                        FlatCommit::Missing
                    } else {
                        FlatCommit::NotNeeded
                    };
                    directory
                        .flat_fragments
                        .push((NamedEntry::new(None, entry, name), commit));
                }
                RootEntry::LegacyCommit(_) => {
                    committed.insert(stem(&entry.name));
                }
                RootEntry::LegacyVacuum(name) => {
                    directory.vacuums.push(NamedEntry::new(None, entry, name));
                }
                RootEntry::LegacyFragmentMetadata(name) => {
                    directory
                        .fragment_meta
                        .push(NamedEntry::new(None, entry, name));
                }
                _ => {}
            }
        }
        for (fragment, commit) in &mut directory.flat_fragments {
            if *commit == FlatCommit::Missing && committed.contains(fragment.path.as_str()) {
                *commit = FlatCommit::File;
            }
        }
        for entry in listings.schema.iter().filter(|entry| !entry.is_dir) {
            if let SchemaEntry::Schema(name) = SchemaEntry::classify(&entry.name) {
                directory
                    .schemas
                    .push(NamedEntry::new(Some(RootFolder::Schema), entry, name));
            }
        }
        sort_schemas(&mut directory.schemas, |schema| &schema.name);
        for entry in listings.commits.iter().filter(|entry| !entry.is_dir) {
            let folder = Some(RootFolder::Commits);
            let (list, name) = match CommitEntry::classify(&entry.name) {
                CommitEntry::Write(name) => {
                    let path = format!("{FRAGMENTS_FOLDER}/{}", stem(&entry.name));
                    directory.written.push(NamedEntry { path, name });
                    continue;
                }
                CommitEntry::Delete(name) | CommitEntry::Update(name) => {
                    (&mut directory.deletes, name)
                }
                CommitEntry::Vacuum(name) => (&mut directory.vacuums, name),
                CommitEntry::Consolidated(name) => (&mut directory.consolidated, name),
                CommitEntry::Ignore(name) => (&mut directory.ignores, name),
                CommitEntry::Replacement(name) => (&mut directory.replacements, name),
                CommitEntry::Unknown => continue,
            };
            list.push(NamedEntry::new(folder, entry, name));
        }
        for entry in listings.fragment_meta.iter().filter(|entry| !entry.is_dir) {
            if let Some(name) = path::fragment_meta_entry(&entry.name) {
                directory.fragment_meta.push(NamedEntry::new(
                    Some(RootFolder::FragmentMeta),
                    entry,
                    name,
                ));
            }
        }
        // The newest first: it holds the most footers, and the first of several counts.
        sort(&mut directory.fragment_meta);
        directory.fragment_meta.reverse();
        directory.metadata = DetailFiles::parse(RootFolder::Metadata, &listings.metadata);
        directory
    }

    /// Whether an array lies there.
    #[must_use]
    pub fn is_array(&self) -> bool {
        self.has_legacy_schema || !self.schemas.is_empty()
    }

    /// Paths of all schemas relative to the array, oldest first, each with the name that fragments
    /// know it by.
    pub fn schema_files(&self) -> impl Iterator<Item = (&str, &str)> {
        let legacy = self
            .has_legacy_schema
            .then_some((LEGACY_SCHEMA_FILE, LEGACY_SCHEMA_FILE));
        legacy.into_iter().chain(
            self.schemas
                .iter()
                .map(|schema| (schema.path.as_str(), schema.file_name())),
        )
    }
}

/// Times of day are at least this many milliseconds; the least number of 13 digits.
const TIMES_OF_DAY: u64 = 1_000_000_000_000;

/// Orders schemas, the latest last: by time, but by text where times of day and others are mixed.
/// libtiledb always orders by text. It creates arrays at the time of day and lets programs evolve
/// them at times of their choice, 2 say, which sort behind.
pub(crate) fn sort_schemas<S>(schemas: &mut [S], name: impl Fn(&S) -> &TimestampedName) {
    let of_day = schemas
        .iter()
        .filter(|schema| name(schema).t_end >= TIMES_OF_DAY)
        .count();
    if of_day == 0 || of_day == schemas.len() {
        schemas.sort_by(|a, b| name(a).cmp_by_time(name(b)));
    } else {
        schemas.sort_by_cached_key(|schema| name(schema).to_string());
    }
}

fn sort(entries: &mut [NamedEntry]) {
    entries.sort_by(|a, b| {
        a.name
            .cmp_by_time(&b.name)
            .then_with(|| a.path.cmp(&b.path))
    });
}

/// A name without its suffix.
fn stem(name: &str) -> &str {
    name.split_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    fn files(names: &[String]) -> Vec<Entry> {
        let entry = |name: &String| match name.strip_suffix('/') {
            Some(name) => Entry {
                name: name.to_owned(),
                is_dir: true,
                size: Some(0),
            },
            None => Entry {
                name: name.clone(),
                is_dir: false,
                size: None,
            },
        };
        names.iter().map(entry).collect()
    }

    fn paths(entries: &[NamedEntry]) -> Vec<&str> {
        entries.iter().map(|e| e.path.as_str()).collect()
    }

    #[test]
    fn both_ages_in_one_array() {
        let listings = Listings {
            root: files(&[
                "__array_schema.tdb".into(),
                "__lock.tdb".into(),
                "__schema/".into(),
                "__commits/".into(),
                "__fragments/".into(),
                format!("__{ID}_7/"),
                format!("__1_1_{ID}/"),
                format!("__2_2_{ID}_9/"),
                format!("__2_2_{ID}_9.ok"),
                format!("__3_3_{ID}_9/"),
                // No folder, so no fragment.
                format!("__4_4_{ID}_9.ok"),
                format!("__5_5_{ID}_9"),
                format!("__2_3_{ID}_9.vac"),
                format!("__2_3_{ID}_9.meta"),
                "notes.txt".into(),
                "__mine/".into(),
            ]),
            schema: files(&[
                format!("__10_10_{ID}"),
                format!("__9_9_{ID}"),
                "__enumerations/".into(),
                ".DS_Store".into(),
            ]),
            commits: files(&[
                format!("__6_6_{ID}_22.wrt"),
                format!("__7_7_{ID}_22.del"),
                format!("__7_7_{ID}_22.upd"),
                format!("__6_7_{ID}_22.con"),
                format!("__6_7_{ID}_22.ign"),
                format!("__6_7_{ID}_22.vac"),
                "sidecar".into(),
            ]),
            fragment_meta: files(&[format!("__1_8_{ID}_22.meta"), "x.meta".into()]),
            metadata: files(&[
                format!("__10_10_{ID}"),
                format!("__9_9_{ID}"),
                format!("__9_10_{ID}.vac"),
                format!("__11_11_{ID}.tmp"),
                "x".into(),
            ]),
        };
        let directory = Directory::parse(&listings);
        assert!(directory.is_array() && directory.other.is_none() && !directory.is_empty);
        let schemas: Vec<_> = directory.schema_files().map(|(path, _)| path).collect();
        assert_eq!(
            schemas,
            [
                "__array_schema.tdb",
                &format!("__schema/__9_9_{ID}"),
                &format!("__schema/__10_10_{ID}")
            ]
        );
        let flat: Vec<_> = directory
            .flat_fragments
            .iter()
            .map(|(e, c)| (e.path.clone(), *c))
            .collect();
        assert_eq!(
            flat,
            [
                (format!("__{ID}_7"), FlatCommit::NotNeeded),
                (format!("__1_1_{ID}"), FlatCommit::NotNeeded),
                (format!("__2_2_{ID}_9"), FlatCommit::File),
                (format!("__3_3_{ID}_9"), FlatCommit::Missing),
            ]
        );
        assert_eq!(
            paths(&directory.written),
            [format!("__fragments/__6_6_{ID}_22")]
        );
        assert_eq!(
            paths(&directory.deletes),
            [
                format!("__commits/__7_7_{ID}_22.del"),
                format!("__commits/__7_7_{ID}_22.upd")
            ]
        );
        assert_eq!(
            paths(&directory.consolidated),
            [format!("__commits/__6_7_{ID}_22.con")]
        );
        assert_eq!(
            paths(&directory.ignores),
            [format!("__commits/__6_7_{ID}_22.ign")]
        );
        assert_eq!(
            paths(&directory.vacuums),
            [
                format!("__2_3_{ID}_9.vac"),
                format!("__commits/__6_7_{ID}_22.vac")
            ]
        );
        assert_eq!(
            paths(&directory.fragment_meta),
            [
                format!("__2_3_{ID}_9.meta"),
                format!("__fragment_meta/__1_8_{ID}_22.meta")
            ]
        );
        assert_eq!(
            paths(&directory.metadata.files),
            [format!("__meta/__9_9_{ID}"), format!("__meta/__10_10_{ID}")]
        );
        assert_eq!(
            paths(&directory.metadata.vacuums),
            [format!("__meta/__9_10_{ID}.vac")]
        );
    }

    #[test]
    fn other_objects_are_known() {
        let parse = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&n| n.to_owned()).collect();
            Directory::parse(&Listings {
                root: files(&names),
                ..Listings::default()
            })
        };
        assert!(parse(&[]).is_empty);
        assert_eq!(parse(&["__group/"]).other, Some(OtherObject::Group));
        assert_eq!(
            parse(&["__tiledb_group.tdb"]).other,
            Some(OtherObject::Group)
        );
        assert_eq!(
            parse(&["__kv_schema.tdb"]).other,
            Some(OtherObject::KeyValueStore)
        );
        let folder = parse(&["x", "__schema/"]);
        assert!(!folder.is_array() && folder.other.is_none() && !folder.is_empty);
    }
}
