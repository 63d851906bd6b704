//! Key-values of an array or a group: what one file changes, and the sum of all files. Page: *Array
//! Metadata*.

use crate::datatype::Datatype;
use crate::error::{DecodeError, Result};
use crate::wire::{ByteReader, ByteWriter};
use std::collections::BTreeMap;

/// The value of a key: any number of values of one datatype.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MetadataValue {
    /// The type of the values.
    pub datatype: Datatype,
    /// The values' little-endian bytes, one after another; empty for a key that was put without a
    /// value.
    pub data: Vec<u8>,
}

impl MetadataValue {
    /// A value from its bytes, which must be a whole number of values of `datatype`.
    #[must_use]
    pub fn new(datatype: Datatype, data: impl Into<Vec<u8>>) -> Self {
        Self {
            datatype,
            data: data.into(),
        }
    }

    /// The number of values (for text, of code units). TileDB's own functions report 1, with a null
    /// pointer, for none.
    #[must_use]
    pub fn count(&self) -> usize {
        self.data.len() / self.datatype.size()
    }

    /// The bytes of the value at an index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let size = self.datatype.size();
        let start = index.checked_mul(size)?;
        self.data.get(start..start.checked_add(size)?)
    }

    /// The value as text, if it is UTF-8 or ASCII text, or characters.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        let is_text = matches!(
            self.datatype,
            Datatype::StringAscii | Datatype::StringUtf8 | Datatype::Char
        );
        is_text.then(|| std::str::from_utf8(&self.data).ok())?
    }
}

/// One entry of a metadata file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MetadataEntry {
    /// The key.
    pub key: String,
    /// What it is set to; `None` deletes it.
    pub value: Option<MetadataValue>,
}

/// The key-values at a time, by key.
pub type Metadata = BTreeMap<String, MetadataValue>;

/// Reads the entries of a file from the unfiltered payload of its generic tile.
pub fn decode(bytes: &[u8]) -> Result<Vec<MetadataEntry>> {
    let r = &mut ByteReader::new(bytes);
    let mut entries = Vec::new();
    while !r.is_empty() {
        let len = r.u32("metadata key length")?;
        let key = r.text(len.into(), "metadata key")?;
        let value = if r.flag("metadata deletion")? {
            None
        } else {
            let at = r.offset();
            let datatype = Datatype::from_id(r.u8("metadata value type")?, at)?;
            if datatype == Datatype::Any {
                return Err(DecodeError::invalid(
                    "metadata value type",
                    at,
                    "a value cannot be of type ANY",
                ));
            }
            let count = r.u32("metadata value count")?;
            let data = r.bytes_u64(u64::from(count) * datatype.size() as u64, "metadata value")?;
            Some(MetadataValue::new(datatype, data))
        };
        entries.push(MetadataEntry { key, value });
    }
    Ok(entries)
}

/// Writes entries as the payload of a generic tile. No entries give no bytes: then no file is to be
/// written.
#[must_use]
pub fn encode(entries: &[MetadataEntry]) -> Vec<u8> {
    let mut w = ByteWriter::new();
    for MetadataEntry { key, value } in entries {
        w.text32(key);
        w.flag(value.is_none());
        if let Some(value) = value {
            w.u8(value.datatype.id());
            w.u32(u32::try_from(value.count()).unwrap_or(u32::MAX));
            w.bytes(&value.data);
        }
    }
    w.into_bytes()
}

/// Sums up files in the order of their time: of a key's entries the last one counts.
pub fn merge(files: impl IntoIterator<Item = Vec<MetadataEntry>>) -> Metadata {
    let mut metadata = Metadata::new();
    for MetadataEntry { key, value } in files.into_iter().flatten() {
        match value {
            Some(value) => metadata.insert(key, value),
            None => metadata.remove(&key),
        };
    }
    metadata
}

/// The entries that write `metadata` afresh, as consolidation does.
#[must_use]
pub fn to_entries(metadata: Metadata) -> Vec<MetadataEntry> {
    metadata
        .into_iter()
        .map(|(key, value)| MetadataEntry {
            key,
            value: Some(value),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, datatype: Datatype, data: &[u8]) -> MetadataEntry {
        MetadataEntry {
            key: key.to_owned(),
            value: Some(MetadataValue::new(datatype, data)),
        }
    }

    fn delete(key: &str) -> MetadataEntry {
        MetadataEntry {
            key: key.to_owned(),
            value: None,
        }
    }

    fn sample() -> Vec<MetadataEntry> {
        vec![
            put("text", Datatype::StringUtf8, "azulejo".as_bytes()),
            put("empty", Datatype::StringUtf8, b""),
            put("two", Datatype::Float64, &[0; 16]),
            delete("gone"),
            put("", Datatype::StringUtf16, &[65, 0]),
        ]
    }

    #[test]
    fn entries_come_back() {
        let entries = sample();
        let bytes = encode(&entries);
        assert_eq!(decode(&bytes).unwrap(), entries);
        assert_eq!(bytes[..16], *b"\x04\0\0\0text\0\x0c\x07\0\0\0az");
        assert_eq!(decode(&[]).unwrap(), []);
        let value = entries[2].value.as_ref().unwrap();
        assert_eq!(
            (value.count(), value.get(1), value.get(2)),
            (2, Some(&[0; 8][..]), None)
        );
        assert_eq!(value.get(usize::MAX), None);
        assert_eq!(
            entries[0].value.as_ref().unwrap().as_text(),
            Some("azulejo")
        );
    }

    #[test]
    fn later_files_win_and_deletions_delete() {
        let files = [
            vec![
                put("a", Datatype::Int8, &[1]),
                put("b", Datatype::Int8, &[1]),
            ],
            vec![delete("a"), put("b", Datatype::Int16, &[2, 0])],
            vec![put("c", Datatype::Int8, &[3]), delete("never there")],
        ];
        let metadata = merge(files);
        let expected = [
            put("b", Datatype::Int16, &[2, 0]),
            put("c", Datatype::Int8, &[3]),
        ];
        assert_eq!(to_entries(metadata), expected);
    }

    #[test]
    fn damage_is_an_error_or_a_value() {
        let whole = encode(&sample());
        let ends: Vec<usize> = (0..=5).map(|n| encode(&sample()[..n]).len()).collect();
        for len in 0..whole.len() {
            assert_eq!(
                decode(&whole[..len]).is_ok(),
                ends.contains(&len),
                "cut at {len}"
            );
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                let _ = decode(&bytes);
            }
        }
        let mut bytes = encode(&[put("k", Datatype::Int64, &[0; 8])]);
        bytes[7..11].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(
            decode(&bytes),
            Err(DecodeError::Truncated {
                need: 0x7_ffff_fff8,
                ..
            })
        ));
    }
}
