//! Group details: the members of a group. Page: *Group*.
//!
//! A details file of version 1 holds all members; one of version 2 holds additions and removals,
//! and all files count.

use crate::error::{DecodeError, Result};
use crate::wire::{ByteReader, ByteWriter};
use std::collections::BTreeMap;

/// What a member of a group is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MemberKind {
    /// Not known when it was added.
    Unknown = 0,
    /// A group.
    Group = 1,
    /// An array.
    Array = 2,
}

impl MemberKind {
    fn from_id(id: u8, offset: usize) -> Result<Self> {
        match id {
            0 => Ok(Self::Unknown),
            1 => Ok(Self::Group),
            2 => Ok(Self::Array),
            _ => Err(DecodeError::UnknownId {
                what: "group member type",
                id: id.into(),
                offset,
            }),
        }
    }
}

/// The version of group details, and of a member in them: apart from the format versions of arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum GroupVersion {
    /// Up to TileDB 2.18: details are complete.
    V1 = 1,
    /// Details are changes, members can be deleted.
    V2 = 2,
}

impl GroupVersion {
    fn decode(r: &mut ByteReader<'_>, what: &'static str) -> Result<Self> {
        match r.u32(what)? {
            1 => Ok(Self::V1),
            2 => Ok(Self::V2),
            found => Err(DecodeError::UnsupportedVersion {
                what,
                found,
                max: 2,
            }),
        }
    }

    /// The number as stored, and as the names of details files end.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }
}

/// A member of a group, or its removal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupMember {
    /// The version it is stored in.
    pub version: GroupVersion,
    /// What it is.
    pub kind: MemberKind,
    /// Whether `uri` is relative to the group.
    pub relative: bool,
    /// Where it lies.
    pub uri: String,
    /// Its name in the group, if it has one.
    pub name: Option<String>,
    /// Whether this removes it.
    pub deleted: bool,
}

impl GroupMember {
    /// What members are told apart by: the name, else the URI.
    #[must_use]
    pub fn key(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.uri)
    }

    fn decode(r: &mut ByteReader<'_>) -> Result<Self> {
        let version = GroupVersion::decode(r, "group member")?;
        let at = r.offset();
        let kind = MemberKind::from_id(r.u8("group member type")?, at)?;
        let relative = r.flag("group member is relative")?;
        let len = r.u64("group member URI length")?;
        let uri = r.text(len, "group member URI")?;
        let name = if r.flag("group member has a name")? {
            let len = r.u64("group member name length")?;
            Some(r.text(len, "group member name")?)
        } else {
            None
        };
        let deleted = if version >= GroupVersion::V2 {
            r.flag("group member is deleted")?
        } else {
            false
        };
        Ok(Self {
            version,
            kind,
            relative,
            uri,
            name,
            deleted,
        })
    }

    fn encode(&self, w: &mut ByteWriter) {
        w.u32(self.version.number());
        w.u8(self.kind as u8);
        w.flag(self.relative);
        w.text64(&self.uri);
        w.flag(self.name.is_some());
        if let Some(name) = &self.name {
            w.text64(name);
        }
        if self.version >= GroupVersion::V2 {
            w.flag(self.deleted);
        }
    }
}

/// One file of group details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupDetails {
    /// Whether the file is complete (V1) or holds changes (V2).
    pub version: GroupVersion,
    /// The members, or changes.
    pub members: Vec<GroupMember>,
}

impl GroupDetails {
    /// Reads a file from the unfiltered payload of its generic tile.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let r = &mut ByteReader::new(bytes);
        let version = GroupVersion::decode(r, "group details")?;
        let count = r.u64("number of group members")?;
        // A member is at least a version, a type, two flags and the length of a URI.
        let count = r.check_count(count, 15, "group members")?;
        let members = (0..count)
            .map(|_| GroupMember::decode(r))
            .collect::<Result<_>>()?;
        r.finish("group details")?;
        Ok(Self { version, members })
    }

    /// Writes the file as the payload of a generic tile.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut w = ByteWriter::new();
        w.u32(self.version.number());
        w.u64(self.members.len() as u64);
        for member in &self.members {
            member.encode(&mut w);
        }
        w.into_bytes()
    }
}

/// The members at a time, by [`GroupMember::key`].
pub type Members = BTreeMap<String, GroupMember>;

/// Sums up files in the order of their time. A file of version 1 replaces what was before; of an
/// entry's changes in files of version 2 the last one counts.
pub fn merge(files: impl IntoIterator<Item = GroupDetails>) -> Members {
    let mut members = Members::new();
    for file in files {
        if file.version == GroupVersion::V1 {
            members.clear();
        }
        for member in file.members {
            if member.deleted {
                members.remove(member.key());
            } else {
                members.insert(member.key().to_owned(), member);
            }
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(version: GroupVersion, name: Option<&str>, uri: &str, deleted: bool) -> GroupMember {
        let name = name.map(str::to_owned);
        GroupMember {
            version,
            kind: MemberKind::Array,
            relative: true,
            uri: uri.to_owned(),
            name,
            deleted,
        }
    }

    fn samples() -> [GroupDetails; 3] {
        use GroupVersion::{V1, V2};
        let members = vec![
            member(V1, Some("a"), "arrays/a", false),
            member(V1, None, "b", false),
        ];
        let v1 = GroupDetails {
            version: V1,
            members,
        };
        let members = vec![
            member(V2, Some("a"), "arrays/a", false),
            member(V2, None, "b", true),
        ];
        let v2 = GroupDetails {
            version: V2,
            members,
        };
        // Libraries that append to old groups put new members into old details.
        let mixed = GroupDetails {
            version: V1,
            members: vec![member(V2, Some("n"), "n", false)],
        };
        [v1, v2, mixed]
    }

    #[test]
    fn details_come_back() {
        for details in samples() {
            assert_eq!(GroupDetails::decode(&details.encode()).unwrap(), details);
        }
        let bytes = samples()[0].encode();
        assert_eq!(
            bytes[..18],
            [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 1]
        );
    }

    #[test]
    fn complete_files_replace_and_changes_add_up() {
        let [v1, v2, mixed] = samples();
        let keys = |files: &[&GroupDetails]| -> Vec<String> {
            merge(files.iter().map(|&file| file.clone()))
                .into_keys()
                .collect()
        };
        assert_eq!(keys(&[&v1]), ["a", "b"]);
        assert_eq!(keys(&[&mixed, &v1, &v2]), ["a"]);
        assert_eq!(keys(&[&v1, &mixed]), ["n"]);
        let again = member(GroupVersion::V2, None, "b", false);
        let again = GroupDetails {
            version: GroupVersion::V2,
            members: vec![again],
        };
        assert_eq!(keys(&[&v2, &again]), ["a", "b"]);
    }

    #[test]
    fn damage_is_an_error_or_a_value() {
        for details in samples() {
            let whole = details.encode();
            for len in 0..whole.len() {
                assert!(GroupDetails::decode(&whole[..len]).is_err(), "cut at {len}");
            }
            for at in 0..whole.len() {
                for bit in 0..8 {
                    let mut bytes = whole.clone();
                    bytes[at] ^= 1 << bit;
                    let _ = GroupDetails::decode(&bytes);
                }
            }
        }
        let mut bytes = samples()[0].encode();
        bytes[4..12].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(matches!(
            GroupDetails::decode(&bytes),
            Err(DecodeError::Truncated { .. })
        ));
        bytes[0] = 3;
        assert!(matches!(
            GroupDetails::decode(&bytes),
            Err(DecodeError::UnsupportedVersion { found: 3, .. })
        ));
    }
}
