//! Variable-length strings that are filtered together with their offsets: what RLE and dictionary
//! encoding share.
//!
//! Their metadata begin with: number of metadata parts (0), number of data parts (1), bytes of the
//! strings, bytes of the encoded data, bytes of the offsets (all `u32`). Everything inside the
//! encoded data is big-endian.

use super::string_sink::StringSink;
use super::text_sink::TextSink;
use super::word_sink::{StringWords, WordSink};
use super::{Filter, dictionary, rle};
use crate::error::{DecodeError, Result};
use crate::wire::ByteReader;

/// How strings are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StringEncoding {
    RunLengths,
    Dictionary,
}

impl StringEncoding {
    /// The encoding that a filter is for strings, if it is one.
    pub(super) fn of(filter: &Filter) -> Option<Self> {
        if matches!(filter, Filter::Rle { .. }) {
            Some(Self::RunLengths)
        } else if matches!(filter, Filter::Dictionary { .. }) {
            Some(Self::Dictionary)
        } else {
            None
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::RunLengths => rle::NAME,
            Self::Dictionary => dictionary::NAME,
        }
    }
}

/// What precedes the filter's own metadata.
#[derive(Debug, Clone, Copy)]
pub(super) struct StringHeader {
    data_len: u32,
    encoded_len: u32,
    offsets_len: u32,
}

impl StringHeader {
    fn read(r: &mut ByteReader<'_>) -> Result<Self> {
        let offset = r.offset();
        let parts = (
            r.u32("number of metadata parts")?,
            r.u32("number of data parts")?,
        );
        if parts != (0, 1) {
            let reason = format!(
                "{} metadata parts and {} data parts instead of 0 and 1",
                parts.0, parts.1
            );
            return Err(DecodeError::invalid("string tile metadata", offset, reason));
        }
        Ok(Self {
            data_len: r.u32("bytes of the strings")?,
            encoded_len: r.u32("bytes of the encoded strings")?,
            offsets_len: r.u32("bytes of the offsets")?,
        })
    }

    fn write(self, metadata: &mut Vec<u8>) {
        for number in [0, 1, self.data_len, self.encoded_len, self.offsets_len] {
            metadata.extend(number.to_le_bytes());
        }
    }

    /// How many strings there are.
    pub(super) fn cells(self) -> Result<usize> {
        if !self.offsets_len.is_multiple_of(8) {
            let reason = format!("{} bytes are no offsets", self.offsets_len);
            return Err(DecodeError::invalid("string tile metadata", 16, reason));
        }
        Ok(self.offsets_len as usize / 8)
    }

    /// Checks the sizes that the tile states against those that the caller has made room for.
    pub(super) fn check(self, data_len: usize, cells: usize) -> Result<()> {
        if self.data_len as usize == data_len && self.cells()? == cells {
            return Ok(());
        }
        let reason = format!(
            "{} bytes and {} bytes of offsets, expected {data_len} bytes in {cells} cells",
            self.data_len, self.offsets_len
        );
        Err(DecodeError::invalid("string tile metadata", 8, reason))
    }
}

/// The encoded strings of a tile, all later filters undone.
pub(super) struct EncodedStrings<'a> {
    encoding: StringEncoding,
    pub(super) header: StringHeader,
    encoded: &'a [u8],
    metadata: ByteReader<'a>,
}

impl<'a> EncodedStrings<'a> {
    /// Reads the header of strings that were encoded so.
    pub(super) fn read(
        encoding: StringEncoding,
        data: &'a [u8],
        metadata: &'a [u8],
    ) -> Result<Self> {
        let mut metadata = ByteReader::new(metadata);
        let header = StringHeader::read(&mut metadata)?;
        let encoded =
            ByteReader::new(data).bytes(header.encoded_len as usize, "encoded strings")?;
        Ok(Self {
            encoding,
            header,
            encoded,
            metadata,
        })
    }

    /// Fills `data` and `offsets`.
    pub(super) fn decode(self, data: &mut [u8], offsets: &mut [u64]) -> Result<()> {
        let mut sink = TextSink::new(self.encoding.name(), data, offsets);
        self.decode_to(&mut sink)?;
        sink.finish()
    }

    /// Fills the indices of words; the strings have `bytes` bytes together.
    pub(super) fn decode_words(self, bytes: usize, ids: &mut [[u8; 4]]) -> Result<StringWords> {
        let mut sink = WordSink::new(self.encoding.name(), bytes, ids);
        self.decode_to(&mut sink)?;
        sink.finish()
    }

    fn decode_to(mut self, sink: &mut impl StringSink) -> Result<()> {
        let (encoded, metadata) = (self.encoded, &mut self.metadata);
        match self.encoding {
            StringEncoding::RunLengths => rle::decode_strings(encoded, metadata, sink),
            StringEncoding::Dictionary => dictionary::decode_strings(encoded, metadata, sink),
        }
    }
}

/// Appends the encoded strings of a tile, with (validated) `offsets`, to `out`; header and metadata
/// of the filter to `metadata`.
pub(super) fn encode(
    encoding: StringEncoding,
    data: &[u8],
    offsets: &[u64],
    metadata: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut own = Vec::new();
    let strings = cells(data, offsets);
    match encoding {
        StringEncoding::RunLengths => rle::encode_strings(strings, &mut own, out),
        StringEncoding::Dictionary => dictionary::encode_strings(strings, &mut own, out)?,
    }
    let len32 = |len: usize| {
        u32::try_from(len).map_err(|_| {
            DecodeError::filter(encoding.name(), "more than 4 GiB of strings or offsets")
        })
    };
    let header = StringHeader {
        data_len: len32(data.len())?,
        encoded_len: len32(out.len())?,
        offsets_len: len32(offsets.len() * 8)?,
    };
    header.write(metadata);
    metadata.extend_from_slice(&own);
    Ok(())
}

/// The strings of a tile by their (validated) offsets.
fn cells<'a>(data: &'a [u8], offsets: &'a [u64]) -> impl Iterator<Item = &'a [u8]> + Clone {
    let ends = offsets
        .iter()
        .skip(1)
        .copied()
        .chain(std::iter::once(data.len() as u64));
    offsets
        .iter()
        .zip(ends)
        .map(|(start, end)| data.get(*start as usize..end as usize).unwrap_or_default())
}
