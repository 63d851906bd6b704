//! The file of a manifest: a generic tile, as schemas are kept in, compressed and with a SHA-256 of
//! what it holds.
//!
//! | part | bytes |
//! |---|---|
//! | mark | 4: `AZMF` |
//! | version | 4: 2, or 1 without contents of files |
//! | moment, milliseconds since 1970 | 8 |
//! | number of folders | 8 |
//! | each folder, sorted: length of its path | 4 |
//! | its path | |
//! | its number of entries | 8 |
//! | each entry, sorted: length of its name | 4 |
//! | its name | |
//! | 0 a folder, 1 a file, 2 a file of a known size | 1 |
//! | that size | 8 |
//! | version 2: number of files whose contents follow | 8 |
//! | each of them, sorted: length of its path | 4 |
//! | its path | |
//! | its size | 8 |
//! | its bytes | |

use crate::storage::Entry;
use azulejo_format::filter::{Filter, FilterContext, Pipeline, Scratch};
use azulejo_format::tile::{GenericTile, GenericTileHeader};
use azulejo_format::wire::{ByteReader, ByteWriter};
use azulejo_format::{CellValNum, Datatype, DecodeError, FormatVersion};
use bytes::Bytes;
use std::collections::BTreeMap;

/// The sidecar of an array or group, relative to its folder.
pub const MANIFEST_FILE: &str = "__azulejo/manifest";

/// The listings of an array or group at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// When the listings were begun, in milliseconds since 1970-01-01 UTC: all that was committed
    /// before is in them.
    pub made: u64,
    /// By path relative to the object (empty for its own folder): what lies in a folder, sorted by
    /// name. Folders of nested objects, such as the arrays of dimension labels and members of a
    /// group, are named in what holds them and have manifests of their own.
    pub folders: BTreeMap<String, Vec<Entry>>,
    /// By path relative to the object: all bytes of small files that opening reads and that never
    /// change, so that it need not ask for them. Each is named in `folders` with its size.
    pub contents: BTreeMap<String, Bytes>,
}

impl Manifest {
    /// Files that it names.
    #[must_use]
    pub fn file_num(&self) -> usize {
        self.folders
            .values()
            .flatten()
            .filter(|entry| !entry.is_dir)
            .count()
    }

    /// The size in bytes of a file, if the manifest names it with one; `path` is relative to the
    /// object.
    #[must_use]
    pub fn size_of(&self, path: &str) -> Option<u64> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let entries = self.folders.get(folder)?;
        let at = entries
            .binary_search_by(|entry| entry.name.as_str().cmp(name))
            .ok()?;
        entries.get(at).filter(|entry| !entry.is_dir)?.size
    }
}

const MARK: [u8; 4] = *b"AZMF";
const VERSION: u32 = 2;
/// Of those without contents, which earlier releases read too.
const BARE_VERSION: u32 = 1;

/// Names repeat from folder to folder, so that chunks are long.
const CHUNK_SIZE: u32 = 8 << 20;

/// Bytes that a folder or an entry takes at least.
const MIN_FOLDER: u64 = 12;
const MIN_ENTRY: u64 = 5;
const MIN_CONTENT: u64 = 12;

impl Manifest {
    /// Decodes a sidecar; `limit` bounds the bytes of its content.
    ///
    /// # Errors
    /// Damaged bytes, those of another version, or more than `limit`.
    pub fn decode(bytes: &[u8], limit: u64) -> Result<Self, DecodeError> {
        let tile = GenericTile::decode(bytes, None, limit)?;
        if !tile
            .header
            .filters
            .filters
            .contains(&Filter::ChecksumSha256)
        {
            return Err(DecodeError::invalid("manifest", 0, "it has no checksum"));
        }
        Self::decode_content(&tile.data)
    }

    /// Decodes what the tile of a sidecar holds.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn decode_content(content: &[u8]) -> Result<Self, DecodeError> {
        let r = &mut ByteReader::new(content);
        if r.array::<4>("manifest mark")? != MARK {
            return Err(DecodeError::invalid("manifest", 0, "this is no manifest"));
        }
        let version = r.u32("manifest version")?;
        if !(BARE_VERSION..=VERSION).contains(&version) {
            return Err(r.invalid(
                "manifest version",
                format!("{version}; this release reads up to {VERSION}"),
            ));
        }
        let made = r.u64("manifest moment")?;
        let count = r.u64("manifest folders")?;
        let count = r.check_count(count, MIN_FOLDER, "manifest folders")?;
        let mut folders = BTreeMap::new();
        for _ in 0..count {
            let path = text(r, "manifest folder")?;
            if !path.is_empty() && !path.split('/').all(is_name) {
                return Err(r.invalid("manifest folder", format!("{path:?} leads elsewhere")));
            }
            if folders
                .last_key_value()
                .is_some_and(|(last, _)| *last >= path)
            {
                return Err(r.invalid("manifest folder", "not sorted"));
            }
            folders.insert(path, entries(r)?);
        }
        let mut manifest = Self {
            made,
            folders,
            contents: BTreeMap::new(),
        };
        if version != BARE_VERSION {
            manifest.contents = contents(r, &manifest)?;
        }
        r.finish("manifest")?;
        if !manifest.folders.contains_key("") {
            return Err(DecodeError::invalid(
                "manifest",
                0,
                "the folder of the object is missing",
            ));
        }
        Ok(manifest)
    }

    /// Encodes a sidecar.
    ///
    /// # Errors
    /// If a name is longer than 4 GiB.
    pub fn encode(&self) -> Result<Vec<u8>, DecodeError> {
        let mut w = ByteWriter::new();
        w.bytes(&MARK);
        w.u32(match self.contents.is_empty() {
            true => BARE_VERSION,
            false => VERSION,
        });
        w.u64(self.made);
        w.u64(self.folders.len() as u64);
        for (path, entries) in &self.folders {
            w.text32(path);
            w.u64(entries.len() as u64);
            for entry in entries {
                w.text32(&entry.name);
                match (entry.is_dir, entry.size) {
                    (true, _) => w.u8(0),
                    (false, None) => w.u8(1),
                    (false, Some(size)) => {
                        w.u8(2);
                        w.u64(size);
                    }
                }
            }
        }
        if !self.contents.is_empty() {
            w.u64(self.contents.len() as u64);
            for (path, bytes) in &self.contents {
                w.text32(path);
                w.u64(bytes.len() as u64);
                w.bytes(bytes);
            }
        }
        let data = w.into_bytes();
        let mut header = GenericTileHeader::new(FormatVersion::CURRENT, data.len() as u64, false);
        let filters = vec![Filter::Zstd { level: 9 }, Filter::ChecksumSha256];
        header.filters = Pipeline {
            max_chunk_size: CHUNK_SIZE,
            filters,
        };
        let context = FilterContext {
            version: header.version,
            datatype: Datatype::Char,
            cell_val_num: CellValNum::Fixed(1),
            key: None,
        };
        let mut stored = Vec::new();
        header
            .filters
            .encode_tile(&context, &data, None, &mut stored, &mut Scratch::new())?;
        header.persisted_size = stored.len() as u64;
        let mut w = ByteWriter::new();
        header.encode(&mut w);
        w.bytes(&stored);
        Ok(w.into_bytes())
    }
}

fn text(r: &mut ByteReader<'_>, what: &'static str) -> Result<String, DecodeError> {
    let len = r.u32(what)?;
    r.text(len.into(), what)
}

/// The contents of files, each of which the manifest names with its size.
fn contents(
    r: &mut ByteReader<'_>,
    manifest: &Manifest,
) -> Result<BTreeMap<String, Bytes>, DecodeError> {
    let count = r.u64("manifest contents")?;
    let count = r.check_count(count, MIN_CONTENT, "manifest contents")?;
    let mut contents = BTreeMap::new();
    for _ in 0..count {
        let path = text(r, "manifest content")?;
        let size = r.u64("manifest content size")?;
        if manifest.size_of(&path) != Some(size) {
            return Err(r.invalid(
                "manifest content",
                format!("{path:?} is no file of {size} bytes"),
            ));
        }
        if contents
            .last_key_value()
            .is_some_and(|(last, _)| *last >= path)
        {
            return Err(r.invalid("manifest content", "not sorted"));
        }
        let bytes = Bytes::copy_from_slice(r.bytes_u64(size, "manifest content")?);
        contents.insert(path, bytes);
    }
    Ok(contents)
}

/// Whether a path component names something in its folder.
fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

fn entries(r: &mut ByteReader<'_>) -> Result<Vec<Entry>, DecodeError> {
    let count = r.u64("manifest entries")?;
    // An entry in memory is larger than in the file, by a factor that is bounded.
    let count = r.check_count(count, MIN_ENTRY, "manifest entries")?;
    let mut entries: Vec<Entry> = Vec::new();
    for _ in 0..count {
        let name = text(r, "manifest entry")?;
        if !is_name(&name) {
            return Err(r.invalid("manifest entry", format!("{name:?} is no name")));
        }
        if entries.last().is_some_and(|last| last.name >= name) {
            return Err(r.invalid("manifest entry", "not sorted"));
        }
        let (is_dir, size) = match r.u8("manifest entry kind")? {
            0 => (true, Some(0)),
            1 => (false, None),
            2 => (false, Some(r.u64("manifest entry size")?)),
            kind => return Err(r.invalid("manifest entry kind", format!("{kind}"))),
        };
        entries.push(Entry { name, is_dir, size });
    }
    Ok(entries)
}
