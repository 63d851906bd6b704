//! Tiles that stand alone: a header says all that is needed to undo the filters. Schemas,
//! enumerations, metadata, group details, commit conditions and the parts of fragment metadata are
//! kept in them. Page: *Generic Tile*.

use super::TileDecoder;
use crate::datatype::{CellValNum, Datatype};
use crate::error::{DecodeError, Result};
use crate::filter::{EncryptionKey, Filter, FilterContext, Pipeline, Scratch};
use crate::version::FormatVersion;
use crate::wire::{ByteReader, ByteWriter};

/// What stands before the data of a generic tile.
#[derive(Debug, Clone, PartialEq)]
pub struct GenericTileHeader {
    /// The version that the filters were written in.
    pub version: FormatVersion,
    /// Bytes of the filtered tile behind the header.
    pub persisted_size: u64,
    /// Bytes of the unfiltered data.
    pub tile_size: u64,
    /// The type of the data.
    pub datatype: Datatype,
    /// Bytes of a cell.
    pub cell_size: u64,
    /// Whether the data is encrypted (AES-256-GCM).
    pub encrypted: bool,
    /// The filters, that for encryption included.
    pub filters: Pipeline,
}

/// A generic tile with its filters undone.
#[derive(Debug, Clone, PartialEq)]
pub struct GenericTile {
    /// The header.
    pub header: GenericTileHeader,
    /// The unfiltered data.
    pub data: Vec<u8>,
    /// Bytes that the tile takes where it was read from, header included.
    pub consumed: usize,
}

impl GenericTileHeader {
    /// Bytes of the header before the filters, whose length the last field gives.
    pub const BASE_SIZE: usize = 34;

    /// The header of data that the reference writes in generic tiles: characters, compressed by
    /// GZIP of level 1. `persisted_size` is 0 until the data is filtered.
    #[must_use]
    pub fn new(version: FormatVersion, tile_size: u64, encrypted: bool) -> Self {
        let mut filters = Pipeline {
            filters: vec![Filter::Gzip { level: 1 }],
            ..Pipeline::default()
        };
        if encrypted {
            filters.filters.push(Filter::Aes256Gcm);
        }
        Self {
            version,
            persisted_size: 0,
            tile_size,
            datatype: Datatype::Char,
            cell_size: 1,
            encrypted,
            filters,
        }
    }

    /// Reads a header; the filtered data follows.
    pub fn decode(r: &mut ByteReader<'_>) -> Result<Self> {
        let version = FormatVersion::new(r.u32("generic tile version")?, "generic tile")?;
        let persisted_size = r.u64("generic tile persisted size")?;
        let tile_size = r.u64("generic tile size")?;
        let at = r.offset();
        let datatype = Datatype::from_id(r.u8("generic tile datatype")?, at)?;
        let cell_size = r.u64("generic tile cell size")?;
        let at = r.offset();
        let encrypted = match r.u8("generic tile encryption type")? {
            0 => false,
            1 => true,
            id => {
                return Err(DecodeError::UnknownId {
                    what: "encryption type",
                    id: id.into(),
                    offset: at,
                });
            }
        };
        let len = r.u32("generic tile filters length")?;
        let at = r.offset();
        let filters = r.bytes_u64(len.into(), "generic tile filters")?;
        let pipeline = &mut ByteReader::new(filters);
        let filters = Pipeline::decode(pipeline, version)?;
        pipeline.finish("generic tile filters")?;
        if encrypted && !filters.filters.contains(&Filter::Aes256Gcm) {
            return Err(DecodeError::invalid(
                "generic tile filters",
                at,
                "encrypted without the filter for it",
            ));
        }
        Ok(Self {
            version,
            persisted_size,
            tile_size,
            datatype,
            cell_size,
            encrypted,
            filters,
        })
    }

    /// Writes the header.
    pub fn encode(&self, w: &mut ByteWriter) {
        w.u32(self.version.number());
        w.u64(self.persisted_size);
        w.u64(self.tile_size);
        w.u8(self.datatype.id());
        w.u64(self.cell_size);
        w.u8(u8::from(self.encrypted));
        let mut filters = ByteWriter::new();
        self.filters.encode(&mut filters, self.version);
        w.u32(u32::try_from(filters.len()).unwrap_or(u32::MAX));
        w.bytes(&filters.into_bytes());
    }

    /// Whether the key that is there is the kind that is needed.
    fn check_key(&self, key: Option<&EncryptionKey>) -> Result<()> {
        let reason = match (self.encrypted, key) {
            (true, None) => "the array is encrypted and no key was given",
            (false, Some(_)) => "a key was given for an array that is not encrypted",
            _ => return Ok(()),
        };
        Err(DecodeError::Decrypt { reason })
    }

    fn context<'a>(&self, key: Option<&'a EncryptionKey>) -> Result<FilterContext<'a>> {
        let value_size = self.datatype.size() as u64;
        let values = self.cell_size / value_size;
        let cell_val_num = u32::try_from(values)
            .ok()
            .filter(|n| *n > 0 && self.cell_size.is_multiple_of(value_size));
        let Some(cell_val_num) = cell_val_num.filter(|n| *n != CellValNum::VAR_ID) else {
            let reason = format!("{} bytes of {}", self.cell_size, self.datatype);
            return Err(DecodeError::invalid("generic tile cell size", 0, reason));
        };
        let cell_val_num = CellValNum::Fixed(cell_val_num);
        Ok(FilterContext {
            version: self.version,
            datatype: self.datatype,
            cell_val_num,
            key,
        })
    }
}

impl GenericTile {
    /// Reads the generic tile at the start of `bytes`, which may go on behind it, and undoes its
    /// filters.
    ///
    /// `limit` bounds the unfiltered data in bytes.
    ///
    /// # Errors
    /// [`DecodeError::Decrypt`] for a missing, unneeded or wrong key;
    /// [`DecodeError::LimitExceeded`]; damaged bytes.
    pub fn decode(bytes: &[u8], key: Option<&EncryptionKey>, limit: u64) -> Result<Self> {
        Self::decode_with(bytes, key, limit, &mut Scratch::new())
    }

    /// As [`Self::decode`], with codecs at hand: for many small tiles their tables cost more than
    /// the data.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn decode_with(
        bytes: &[u8],
        key: Option<&EncryptionKey>,
        limit: u64,
        scratch: &mut Scratch,
    ) -> Result<Self> {
        let r = &mut ByteReader::new(bytes);
        let header = GenericTileHeader::decode(r)?;
        header.check_key(key)?;
        let stored = r.bytes_u64(header.persisted_size, "generic tile data")?;
        let too_large = DecodeError::LimitExceeded {
            what: "generic tile size",
            asked: header.tile_size,
            limit,
        };
        let size = usize::try_from(header.tile_size).map_err(|_| too_large.clone())?;
        if header.tile_size > limit {
            return Err(too_large);
        }
        // The chunks must promise as much before that much is allocated.
        TileDecoder::new(header.persisted_size)
            .sized(header.tile_size)
            .chunks(stored)
            .try_for_each(|chunk| chunk.map(|_| ()))?;
        let mut data = vec![0; size];
        header
            .filters
            .decode_tile(&header.context(key)?, stored, &mut data, scratch)?;
        Ok(Self {
            header,
            data,
            consumed: r.offset(),
        })
    }

    /// Filters `data` and puts it behind a header, as the reference writes generic tiles in
    /// `version`.
    pub fn encode(
        data: &[u8],
        version: FormatVersion,
        key: Option<&EncryptionKey>,
    ) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        Self::encode_with(data, version, key, &mut bytes, &mut Scratch::new())?;
        Ok(bytes)
    }

    /// As [`Self::encode`], appended to `out`, with codecs at hand.
    pub fn encode_with(
        data: &[u8],
        version: FormatVersion,
        key: Option<&EncryptionKey>,
        out: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut header = GenericTileHeader::new(version, data.len() as u64, key.is_some());
        let mut stored = Vec::new();
        header
            .filters
            .encode_tile(&header.context(key)?, data, None, &mut stored, scratch)?;
        header.persisted_size = stored.len() as u64;
        let mut w = ByteWriter::new();
        header.encode(&mut w);
        out.extend_from_slice(&w.into_bytes());
        out.extend_from_slice(&stored);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 1 << 20;

    fn key() -> EncryptionKey {
        EncryptionKey::new(*b"0123456789abcdeF0123456789abcdeF")
    }

    fn sample() -> Vec<u8> {
        (0..200_000u32).map(|i| (i / 7 % 251) as u8).collect()
    }

    #[test]
    fn all_versions_come_back_with_and_without_a_key() {
        let key = key();
        for version in FormatVersion::all() {
            for (data, key) in [
                (sample(), None),
                (sample(), Some(&key)),
                (b"one".to_vec(), None),
                (vec![], None),
            ] {
                let mut bytes = GenericTile::encode(&data, version, key).unwrap();
                let len = bytes.len();
                bytes.extend_from_slice(b"what follows");
                let tile = GenericTile::decode(&bytes, key, LIMIT).unwrap();
                assert_eq!((tile.consumed, tile.header.version), (len, version));
                assert_eq!(tile.header.encrypted, key.is_some());
                assert!(tile.data == data);
            }
        }
    }

    #[test]
    fn the_header_is_laid_out_as_the_page_says() {
        let bytes = GenericTile::encode(b"abc", FormatVersion::CURRENT, None).unwrap();
        let base = GenericTileHeader::BASE_SIZE;
        assert_eq!(bytes[..4], [22, 0, 0, 0]);
        assert_eq!(bytes[4..12], (bytes.len() as u64 - 52).to_le_bytes());
        assert_eq!(bytes[12..20], 3u64.to_le_bytes());
        assert_eq!(bytes[20..base], [4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 18, 0, 0, 0]);
        assert_eq!(
            bytes[base..52],
            [0, 0, 1, 0, 1, 0, 0, 0, 1, 5, 0, 0, 0, 1, 1, 0, 0, 0]
        );
    }

    #[test]
    fn keys_that_do_not_fit_are_errors_that_say_so() {
        let key = key();
        let open = GenericTile::encode(b"abc", FormatVersion::CURRENT, None).unwrap();
        let closed = GenericTile::encode(b"abc", FormatVersion::CURRENT, Some(&key)).unwrap();
        let reason = |bytes: &[u8], key: Option<&EncryptionKey>| match GenericTile::decode(
            bytes, key, LIMIT,
        ) {
            Err(DecodeError::Decrypt { reason }) => reason,
            other => panic!("{other:?}"),
        };
        assert!(reason(&open, Some(&key)).contains("not encrypted"));
        assert!(reason(&closed, None).contains("no key"));
        reason(&closed, Some(&EncryptionKey::new([7; 32])));
    }

    #[test]
    fn sizes_meet_the_limit_before_memory_does() {
        let mut bytes = GenericTile::encode(&sample(), FormatVersion::CURRENT, None).unwrap();
        assert_eq!(
            GenericTile::decode(&bytes, None, 1000),
            Err(DecodeError::LimitExceeded {
                what: "generic tile size",
                asked: 200_000,
                limit: 1000
            })
        );
        bytes[12..20].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(GenericTile::decode(&bytes, None, u64::MAX).is_err());
        bytes[12..20].copy_from_slice(&(1u64 << 40).to_le_bytes());
        assert!(GenericTile::decode(&bytes, None, u64::MAX).is_err());
    }

    #[test]
    fn damage_is_an_error_or_a_value() {
        let key = key();
        for key in [None, Some(&key)] {
            let whole =
                GenericTile::encode(b"some text of a schema", FormatVersion::CURRENT, key).unwrap();
            for len in 0..whole.len() {
                assert!(
                    GenericTile::decode(&whole[..len], key, LIMIT).is_err(),
                    "cut at {len}"
                );
            }
            for at in 0..whole.len() {
                for bit in 0..8 {
                    let mut bytes = whole.clone();
                    bytes[at] ^= 1 << bit;
                    let _ = GenericTile::decode(&bytes, key, LIMIT);
                }
            }
        }
    }
}
