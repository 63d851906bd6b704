//! What lies where in the folder of an array or a group, judged by names alone.
//!
//! Up to v11 fragments, commits and consolidated fragment metadata lie flat in the array's folder;
//! since v12 each has a folder. An array that lived through both has both. Pages: *Array File
//! Hierarchy*, *Group File Hierarchy*.

use crate::error::Result;
use crate::timestamped_name::{NameStyle, TimestampedName};
use crate::version::FormatVersion;

/// The schema of an array written before v10; older than any in [`SCHEMA_FOLDER`].
pub const LEGACY_SCHEMA_FILE: &str = "__array_schema.tdb";
/// The schema of a key-value store, as TileDB 1.x kept them beside arrays.
pub const LEGACY_KV_SCHEMA_FILE: &str = "__kv_schema.tdb";
/// A lock file of TileDB 1.x; it means nothing.
pub const LOCK_FILE: &str = "__lock.tdb";
/// Metadata of a fragment, in its folder.
pub const FRAGMENT_METADATA_FILE: &str = "__fragment_metadata.tdb";
/// Marks a folder as a group.
pub const GROUP_FILE: &str = "__tiledb_group.tdb";
/// Details of a group: its members.
pub const GROUP_DETAILS_FOLDER: &str = "__group";
/// Schemas (v10 and later).
pub const SCHEMA_FOLDER: &str = "__schema";
/// Enumerations, in [`SCHEMA_FOLDER`].
pub const ENUMERATIONS_FOLDER: &str = "__enumerations";
/// Fragments (v12 and later).
pub const FRAGMENTS_FOLDER: &str = "__fragments";
/// Commits (v12 and later).
pub const COMMITS_FOLDER: &str = "__commits";
/// Consolidated fragment metadata (v12 and later).
pub const FRAGMENT_META_FOLDER: &str = "__fragment_meta";
/// Key-values of an array or group.
pub const METADATA_FOLDER: &str = "__meta";
/// Arrays of dimension labels.
pub const LABELS_FOLDER: &str = "__labels";
/// Where Azulejo keeps a manifest. Not part of the format, whose readers pass it by.
pub const MANIFEST_FOLDER: &str = "__azulejo";
/// How names of the small files begin, in an array's folder, by which those who change the array on
/// stores without locks take turns. A number follows. Other libraries pass them by.
pub const CLAIM: &str = "__azulejo_claim.";
/// Ends the names of data files.
pub const DATA_SUFFIX: &str = ".tdb";

/// A suffix of a timestamped name that says what the file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Suffix {
    /// `.ok`: a fragment of v5 to v11 is committed.
    Ok,
    /// `.wrt`: a fragment of v12 or later is committed.
    Write,
    /// `.del`: a delete condition.
    Delete,
    /// `.upd`: an update condition.
    Update,
    /// `.vac`: what a consolidation replaced.
    Vacuum,
    /// `.con`: several commits in one file.
    Consolidated,
    /// `.ign`: commits in `.con` files that no longer count.
    Ignore,
    /// `.meta`: footers of several fragments in one file.
    FragmentMetadata,
    /// `.tmp`: a file that its writer has not finished.
    Partial,
    /// `.replaces`: which fragments take the place of which, while the first are being committed.
    /// Not part of the format, whose readers pass it by; see
    /// [`Replacement`](crate::commit::Replacement).
    Replacement,
}

impl Suffix {
    const ALL: [Self; 10] = [
        Self::Ok,
        Self::Write,
        Self::Delete,
        Self::Update,
        Self::Vacuum,
        Self::Consolidated,
        Self::Ignore,
        Self::FragmentMetadata,
        Self::Partial,
        Self::Replacement,
    ];

    /// The suffix with its dot.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Ok => ".ok",
            Self::Write => ".wrt",
            Self::Delete => ".del",
            Self::Update => ".upd",
            Self::Vacuum => ".vac",
            Self::Consolidated => ".con",
            Self::Ignore => ".ign",
            Self::FragmentMetadata => ".meta",
            Self::Partial => ".tmp",
            Self::Replacement => ".replaces",
        }
    }
}

/// A timestamped name and the suffix behind it, or `None` for any other name.
#[must_use]
pub fn split_suffix(name: &str) -> Option<(TimestampedName, Option<Suffix>)> {
    let (stem, suffix) = match name.find('.') {
        None => (name, None),
        Some(dot) => {
            let (stem, text) = name.split_at(dot);
            (
                stem,
                Some(Suffix::ALL.into_iter().find(|s| s.text() == text)?),
            )
        }
    };
    Some((TimestampedName::parse(stem).ok()?, suffix))
}

/// An entry of an array's or group's own folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootEntry {
    /// [`LEGACY_SCHEMA_FILE`].
    LegacySchema,
    /// [`LEGACY_KV_SCHEMA_FILE`].
    LegacyKvSchema,
    /// [`GROUP_FILE`].
    GroupMarker,
    /// A folder of the format.
    Folder(RootFolder),
    /// The folder of a fragment of v1 to v11. Below v5 ([`needs_commit`]) it counts if it holds
    /// [`FRAGMENT_METADATA_FILE`], from v5 on if it is committed.
    LegacyFragment(TimestampedName),
    /// The commit of a fragment of v5 to v11.
    LegacyCommit(TimestampedName),
    /// What a consolidation of old fragments replaced.
    LegacyVacuum(TimestampedName),
    /// Consolidated fragment metadata of v3 to v11.
    LegacyFragmentMetadata(TimestampedName),
    /// Not part of the format: readers pass it by.
    Unknown,
}

/// A folder of the format in an array's or group's own folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RootFolder {
    /// [`SCHEMA_FOLDER`].
    Schema,
    /// [`FRAGMENTS_FOLDER`].
    Fragments,
    /// [`COMMITS_FOLDER`].
    Commits,
    /// [`FRAGMENT_META_FOLDER`].
    FragmentMeta,
    /// [`METADATA_FOLDER`].
    Metadata,
    /// [`LABELS_FOLDER`].
    Labels,
    /// [`GROUP_DETAILS_FOLDER`].
    GroupDetails,
    /// [`MANIFEST_FOLDER`].
    Manifest,
}

impl RootFolder {
    /// The folder's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Schema => SCHEMA_FOLDER,
            Self::Fragments => FRAGMENTS_FOLDER,
            Self::Commits => COMMITS_FOLDER,
            Self::FragmentMeta => FRAGMENT_META_FOLDER,
            Self::Metadata => METADATA_FOLDER,
            Self::Labels => LABELS_FOLDER,
            Self::GroupDetails => GROUP_DETAILS_FOLDER,
            Self::Manifest => MANIFEST_FOLDER,
        }
    }
}

impl RootEntry {
    /// Tells what an entry with this name is (a trailing slash does not matter).
    #[must_use]
    pub fn classify(name: &str) -> Self {
        match name.trim_end_matches('/') {
            LEGACY_SCHEMA_FILE => Self::LegacySchema,
            LEGACY_KV_SCHEMA_FILE => Self::LegacyKvSchema,
            GROUP_FILE => Self::GroupMarker,
            SCHEMA_FOLDER => Self::Folder(RootFolder::Schema),
            FRAGMENTS_FOLDER => Self::Folder(RootFolder::Fragments),
            COMMITS_FOLDER => Self::Folder(RootFolder::Commits),
            FRAGMENT_META_FOLDER => Self::Folder(RootFolder::FragmentMeta),
            METADATA_FOLDER => Self::Folder(RootFolder::Metadata),
            LABELS_FOLDER => Self::Folder(RootFolder::Labels),
            GROUP_DETAILS_FOLDER => Self::Folder(RootFolder::GroupDetails),
            MANIFEST_FOLDER => Self::Folder(RootFolder::Manifest),
            name => match split_suffix(name) {
                Some((name, None)) => Self::LegacyFragment(name),
                Some((name, Some(Suffix::Ok))) => Self::LegacyCommit(name),
                Some((name, Some(Suffix::Vacuum))) => Self::LegacyVacuum(name),
                Some((name, Some(Suffix::FragmentMetadata))) => Self::LegacyFragmentMetadata(name),
                _ => Self::Unknown,
            },
        }
    }
}

/// Whether a fragment with this name counts only with a commit beside it (v5 and later).
#[must_use]
pub fn needs_commit(fragment: &TimestampedName) -> bool {
    fragment.version.is_some()
}

/// The format version that a fragment's name tells. Names of v3 and v4 do not tell which (nor those
/// of v1 and v2), but no structure differs between the two.
///
/// # Errors
/// [`DecodeError::UnsupportedVersion`](crate::DecodeError::UnsupportedVersion) for a version that
/// does not exist.
pub fn fragment_version(fragment: &TimestampedName) -> Result<FormatVersion> {
    let number = match (fragment.version, fragment.style) {
        (Some(number), _) => number,
        (None, NameStyle::UuidFirst { .. }) => 2,
        (None, _) => 4,
    };
    FormatVersion::new(number, "fragment")
}

/// An entry of [`COMMITS_FOLDER`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitEntry {
    /// A fragment with this name is committed.
    Write(TimestampedName),
    /// A delete condition.
    Delete(TimestampedName),
    /// An update condition.
    Update(TimestampedName),
    /// What a consolidation replaced.
    Vacuum(TimestampedName),
    /// Consolidated commits.
    Consolidated(TimestampedName),
    /// Commits that no longer count.
    Ignore(TimestampedName),
    /// Fragments that take the place of others ([`Suffix::Replacement`]).
    Replacement(TimestampedName),
    /// Not part of the format: readers pass it by.
    Unknown,
}

impl CommitEntry {
    /// Tells what a file with this name is.
    #[must_use]
    pub fn classify(name: &str) -> Self {
        match split_suffix(name) {
            Some((name, Some(Suffix::Write))) => Self::Write(name),
            Some((name, Some(Suffix::Delete))) => Self::Delete(name),
            Some((name, Some(Suffix::Update))) => Self::Update(name),
            Some((name, Some(Suffix::Vacuum))) => Self::Vacuum(name),
            Some((name, Some(Suffix::Consolidated))) => Self::Consolidated(name),
            Some((name, Some(Suffix::Ignore))) => Self::Ignore(name),
            Some((name, Some(Suffix::Replacement))) => Self::Replacement(name),
            _ => Self::Unknown,
        }
    }
}

/// An entry of [`SCHEMA_FOLDER`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaEntry {
    /// A schema.
    Schema(TimestampedName),
    /// [`ENUMERATIONS_FOLDER`].
    Enumerations,
    /// Not part of the format.
    Unknown,
}

impl SchemaEntry {
    /// Tells what an entry with this name is (a trailing slash does not matter).
    #[must_use]
    pub fn classify(name: &str) -> Self {
        match name.trim_end_matches('/') {
            ENUMERATIONS_FOLDER => Self::Enumerations,
            name => match split_suffix(name) {
                Some((name, None)) => Self::Schema(name),
                _ => Self::Unknown,
            },
        }
    }
}

/// An entry of [`METADATA_FOLDER`] or [`GROUP_DETAILS_FOLDER`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DetailEntry {
    /// Key-values, or group details.
    Detail(TimestampedName),
    /// What a consolidation replaced.
    Vacuum(TimestampedName),
    /// Not finished by its writer: to be passed by.
    Partial,
    /// Not part of the format.
    Unknown,
}

impl DetailEntry {
    /// Tells what a file with this name is.
    #[must_use]
    pub fn classify(name: &str) -> Self {
        match split_suffix(name) {
            Some((name, None)) => Self::Detail(name),
            Some((name, Some(Suffix::Vacuum))) => Self::Vacuum(name),
            Some((_, Some(Suffix::Partial))) => Self::Partial,
            _ => Self::Unknown,
        }
    }
}

/// The name of the fragment that a folder in [`FRAGMENTS_FOLDER`] holds; `None` for what is not
/// part of the format.
#[must_use]
pub fn fragment_entry(name: &str) -> Option<TimestampedName> {
    match split_suffix(name.trim_end_matches('/')) {
        Some((name, None)) => Some(name),
        _ => None,
    }
}

/// The name of a file in [`FRAGMENT_META_FOLDER`]; `None` for what is not part of the format.
#[must_use]
pub fn fragment_meta_entry(name: &str) -> Option<TimestampedName> {
    match split_suffix(name) {
        Some((name, Some(Suffix::FragmentMetadata))) => Some(name),
        _ => None,
    }
}

/// Path of a fragment's folder, relative to its array.
#[must_use]
pub fn fragment_path(name: &TimestampedName, version: FormatVersion) -> String {
    if version.has_subdirectories() {
        format!("{FRAGMENTS_FOLDER}/{name}")
    } else {
        name.to_string()
    }
}

/// Path of the file that commits a fragment, relative to its array; `None` below v5, where
/// fragments have none.
#[must_use]
pub fn commit_path(name: &TimestampedName, version: FormatVersion) -> Option<String> {
    if version.has_subdirectories() {
        Some(format!("{COMMITS_FOLDER}/{name}{}", Suffix::Write.text()))
    } else if version.has_separate_dimensions() {
        Some(format!("{name}{}", Suffix::Ok.text()))
    } else {
        None
    }
}

/// Path of a commit other than a fragment's (delete, update, vacuum, ..), relative to its array.
#[must_use]
pub fn suffixed_commit_path(name: &TimestampedName, suffix: Suffix) -> String {
    format!("{COMMITS_FOLDER}/{name}{}", suffix.text())
}

/// Path of a schema of `version`, relative to its array. Below v10 there is one, whatever the name.
#[must_use]
pub fn schema_path(name: &TimestampedName, version: FormatVersion) -> String {
    if version.has_schema_evolution() {
        format!("{SCHEMA_FOLDER}/{name}")
    } else {
        LEGACY_SCHEMA_FILE.to_owned()
    }
}

/// Path of an enumeration's file, relative to its array.
#[must_use]
pub fn enumeration_path(file_name: &str) -> String {
    format!("{SCHEMA_FOLDER}/{ENUMERATIONS_FOLDER}/{file_name}")
}

/// Path of a file of key-values, relative to its array or group.
#[must_use]
pub fn metadata_path(name: &TimestampedName) -> String {
    format!("{METADATA_FOLDER}/{name}")
}

/// Path of a file of group details, relative to its group.
#[must_use]
pub fn group_details_path(name: &TimestampedName) -> String {
    format!("{GROUP_DETAILS_FOLDER}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn an_arrays_own_folder_mixes_both_ages() {
        let old = TimestampedName::parse(&format!("__1_2_{ID}_9")).unwrap();
        assert_eq!(
            RootEntry::classify(LEGACY_SCHEMA_FILE),
            RootEntry::LegacySchema
        );
        assert_eq!(
            RootEntry::classify("__schema/"),
            RootEntry::Folder(RootFolder::Schema)
        );
        assert_eq!(
            RootEntry::classify(&format!("{old}/")),
            RootEntry::LegacyFragment(old.clone())
        );
        assert_eq!(
            RootEntry::classify(&format!("{old}.ok")),
            RootEntry::LegacyCommit(old.clone())
        );
        assert_eq!(
            RootEntry::classify(&format!("{old}.vac")),
            RootEntry::LegacyVacuum(old.clone())
        );
        assert_eq!(
            RootEntry::classify(&format!("{old}.meta")),
            RootEntry::LegacyFragmentMetadata(old)
        );
        let oldest = RootEntry::classify(&format!("__{ID}_1561492235844"));
        assert!(matches!(&oldest, RootEntry::LegacyFragment(name) if !needs_commit(name)));
        let version = |name: &str| {
            fragment_version(&TimestampedName::parse(name).unwrap())
                .unwrap()
                .number()
        };
        assert_eq!(
            [
                format!("__{ID}_7"),
                format!("__1_2_{ID}"),
                format!("__1_2_{ID}_9")
            ]
            .map(|n| version(&n)),
            [2, 4, 9]
        );
        assert!(fragment_version(&TimestampedName::versioned(1, 2, 24)).is_err());
        for other in [
            "",
            ".",
            "..",
            "x",
            "__x",
            "__lock.tdb",
            "__1_2_x.wrt",
            "__1_2_x.ok.ok",
            "__1_2_x.",
        ] {
            assert_eq!(RootEntry::classify(other), RootEntry::Unknown, "{other}");
        }
        for folder in [
            RootFolder::Schema,
            RootFolder::Fragments,
            RootFolder::Commits,
            RootFolder::FragmentMeta,
            RootFolder::Metadata,
            RootFolder::Labels,
            RootFolder::GroupDetails,
            RootFolder::Manifest,
        ] {
            assert_eq!(
                RootEntry::classify(folder.name()),
                RootEntry::Folder(folder)
            );
        }
    }

    #[test]
    fn subfolders_have_their_own_kinds() {
        let name = TimestampedName::versioned(1, 2, 22);
        assert_eq!(
            CommitEntry::classify(&format!("{name}.wrt")),
            CommitEntry::Write(name.clone())
        );
        assert_eq!(
            CommitEntry::classify(&format!("{name}.ign")),
            CommitEntry::Ignore(name.clone())
        );
        assert_eq!(
            CommitEntry::classify(&format!("{name}.ok")),
            CommitEntry::Unknown
        );
        assert_eq!(CommitEntry::classify("sidecar"), CommitEntry::Unknown);
        assert_eq!(
            SchemaEntry::classify(ENUMERATIONS_FOLDER),
            SchemaEntry::Enumerations
        );
        assert_eq!(
            DetailEntry::classify(&format!("{name}.vac")),
            DetailEntry::Vacuum(name.clone())
        );
        assert_eq!(
            DetailEntry::classify(&format!("{name}.tmp")),
            DetailEntry::Partial
        );
        assert_eq!(fragment_entry(&name.to_string()), Some(name.clone()));
        assert_eq!(fragment_entry(&format!("{name}.wrt")), None);
        assert_eq!(fragment_meta_entry(&format!("{name}.meta")), Some(name));
    }

    #[test]
    fn what_is_written_is_found_again() {
        for version in FormatVersion::all() {
            let name = TimestampedName::versioned(1, 2, version.number());
            let path = fragment_path(&name, version);
            match path.strip_prefix("__fragments/") {
                Some(inner) => assert_eq!(fragment_entry(inner).as_ref(), Some(&name)),
                None => assert_eq!(
                    RootEntry::classify(&path),
                    RootEntry::LegacyFragment(name.clone())
                ),
            }
            let Some(commit) = commit_path(&name, version) else {
                assert!(version.number() < 5);
                continue;
            };
            match commit.strip_prefix("__commits/") {
                Some(inner) => assert_eq!(CommitEntry::classify(inner), CommitEntry::Write(name)),
                None => assert_eq!(RootEntry::classify(&commit), RootEntry::LegacyCommit(name)),
            }
        }
    }
}
