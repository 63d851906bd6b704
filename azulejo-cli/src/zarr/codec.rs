//! Codecs between bytes: how a chunk's bytes are compressed, checked and shuffled.

use super::Result;
use super::blosc;
use super::metadata::{member_of, named};
use crate::error::FileError;
use serde_json::Value as Json;
use std::io::Read;

/// Codecs in the order in which a writer applies them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pipeline {
    /// The codecs.
    pub codecs: Vec<BytesCodec>,
}

/// A codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytesCodec {
    /// One or more members of gzip.
    Gzip,
    /// A zlib stream.
    Zlib,
    /// Frames of Zstandard.
    Zstd,
    /// The length in four bytes, then a block of LZ4.
    Lz4,
    /// Bzip2.
    Bzip2,
    /// A frame of Blosc, version 1.
    Blosc,
    /// The bytes, then their CRC-32C.
    Crc32c,
    /// The first bytes of all elements, then the second, and so on.
    Shuffle(usize),
}

/// A compressor of version 2.
pub fn compressor_v2(json: &Json) -> Result<BytesCodec> {
    let id = member_of(json, "id").as_str().unwrap_or_default();
    simple(id).ok_or_else(|| FileError::new(format!("the compressor {id:?} is not supported")))
}

/// A filter of version 2.
pub fn filter_v2(json: &Json) -> Result<BytesCodec> {
    let id = member_of(json, "id").as_str().unwrap_or_default();
    let found = match id {
        "shuffle" => shuffle(member_of(json, "elementsize")),
        id => simple(id),
    };
    found.ok_or_else(|| FileError::new(format!("the filter {id:?} is not supported")))
}

fn simple(id: &str) -> Option<BytesCodec> {
    Some(match id {
        "gzip" => BytesCodec::Gzip,
        "zlib" => BytesCodec::Zlib,
        "zstd" => BytesCodec::Zstd,
        "lz4" => BytesCodec::Lz4,
        "bz2" => BytesCodec::Bzip2,
        "blosc" => BytesCodec::Blosc,
        _ => return None,
    })
}

fn shuffle(size: &Json) -> Option<BytesCodec> {
    let size = usize::try_from(size.as_u64().unwrap_or(4)).ok()?;
    (1..=256)
        .contains(&size)
        .then_some(BytesCodec::Shuffle(size))
}

/// The codecs between bytes at the end of a list of version 3.
pub fn bytes_codecs_v3(codecs: &[Json]) -> Result<Vec<BytesCodec>> {
    let read = |codec: &Json| {
        let (name, configuration) = named(codec);
        let found = match name {
            "crc32c" => Some(BytesCodec::Crc32c),
            "gzip" | "zstd" | "blosc" => simple(name),
            "numcodecs.shuffle" => shuffle(member_of(configuration, "elementsize")),
            name => name.strip_prefix("numcodecs.").and_then(simple),
        };
        found.ok_or_else(|| FileError::new(format!("the codec {name:?} is not supported")))
    };
    codecs.iter().map(read).collect()
}

impl Pipeline {
    /// A chunk's bytes, which are no more than `most`.
    pub fn decode(&self, mut bytes: Vec<u8>, most: usize) -> Result<Vec<u8>> {
        // What lies between two codecs is at most a little more than the chunk.
        let room = most.saturating_add(most / 64).saturating_add(1 << 12);
        for (at, codec) in self.codecs.iter().enumerate().rev() {
            let most = if at == 0 { most } else { room };
            bytes = codec.decode(bytes, most).map_err(|e| e.of(codec.name()))?;
        }
        Ok(bytes)
    }
}

impl BytesCodec {
    const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
            Self::Bzip2 => "bz2",
            Self::Blosc => "blosc",
            Self::Crc32c => "crc32c",
            Self::Shuffle(_) => "shuffle",
        }
    }

    fn decode(self, bytes: Vec<u8>, most: usize) -> Result<Vec<u8>> {
        match self {
            Self::Gzip => unpack(flate2::bufread::MultiGzDecoder::new(&bytes[..]), most),
            Self::Zlib => zlib(&bytes, most),
            Self::Zstd => zstd(&bytes, most),
            Self::Lz4 => {
                let (length, block) = bytes
                    .split_first_chunk::<4>()
                    .ok_or_else(|| FileError::new("it ends early"))?;
                lz4(block, u32::from_le_bytes(*length) as usize, most)
            }
            Self::Bzip2 => unpack(bzip2::bufread::MultiBzDecoder::new(&bytes[..]), most),
            Self::Blosc => blosc::decode(&bytes, most),
            Self::Crc32c => checked(bytes),
            Self::Shuffle(size) => Ok(unshuffled(&bytes, size)),
        }
    }
}

/// All that a decoder gives, of which there must be no more than `most` bytes.
fn unpack(decoder: impl Read, most: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    decoder
        .take((most as u64).saturating_add(1))
        .read_to_end(&mut out)
        .map_err(|e| FileError::new(e.to_string()))?;
    match out.len() > most {
        true => Err(too_long()),
        false => Ok(out),
    }
}

fn too_long() -> FileError {
    FileError::new("it holds more than a chunk")
}

/// What a zlib stream holds.
pub(super) fn zlib(bytes: &[u8], most: usize) -> Result<Vec<u8>> {
    unpack(flate2::bufread::ZlibDecoder::new(bytes), most)
}

/// What frames of Zstandard hold.
#[cfg(feature = "c-codecs")]
pub(super) fn zstd(bytes: &[u8], most: usize) -> Result<Vec<u8>> {
    let decoder = zstd::stream::read::Decoder::with_buffer(bytes);
    unpack(decoder.map_err(|e| FileError::new(e.to_string()))?, most)
}

/// Nothing: the codec is not there.
#[cfg(not(feature = "c-codecs"))]
pub(super) fn zstd(_: &[u8], _: usize) -> Result<Vec<u8>> {
    Err(FileError::new(
        "this program was built without the codecs in C and reads no Zstandard in Zarr",
    ))
}

/// What a block of LZ4 holds: `length` bytes.
pub(super) fn lz4(block: &[u8], length: usize, most: usize) -> Result<Vec<u8>> {
    if length > most {
        return Err(too_long());
    }
    let out = lz4_flex::block::decompress(block, length);
    let out = out.map_err(|e| FileError::new(e.to_string()))?;
    match out.len() == length {
        true => Ok(out),
        false => Err(FileError::new("it ends early")),
    }
}

/// The bytes before their checksum.
pub(super) fn checked(mut bytes: Vec<u8>) -> Result<Vec<u8>> {
    let Some((data, sum)) = bytes.split_last_chunk::<4>() else {
        return Err(FileError::new("it ends early"));
    };
    if crc32c(data) != u32::from_le_bytes(*sum) {
        return Err(FileError::new(
            "the checksum is another: the chunk is damaged",
        ));
    }
    bytes.truncate(bytes.len() - 4);
    Ok(bytes)
}

/// CRC-32C (Castagnoli).
fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut at = 0;
        while at < 256 {
            let (mut sum, mut bit) = (at as u32, 0);
            while bit < 8 {
                sum = if sum & 1 == 1 {
                    (sum >> 1) ^ 0x82f6_3b78
                } else {
                    sum >> 1
                };
                bit += 1;
            }
            table[at] = sum;
            at += 1;
        }
        table
    };
    !bytes.iter().fold(!0u32, |sum, byte| {
        TABLE[((sum ^ u32::from(*byte)) & 0xff) as usize] ^ (sum >> 8)
    })
}

/// Bytes of elements brought together again; what is no whole element stays where it is.
pub(super) fn unshuffled(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let elements = bytes.len() / size;
    if size > 1 && elements > 0 {
        for (part, plane) in bytes.chunks_exact(elements).take(size).enumerate() {
            let places = out.iter_mut().skip(part).step_by(size);
            for (to, from) in places.zip(plane) {
                *to = *from;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_castagnolis() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        let mut bytes = b"123456789".to_vec();
        bytes.extend(0xe306_9283u32.to_le_bytes());
        assert_eq!(checked(bytes.clone()).unwrap(), b"123456789");
        bytes[0] ^= 1;
        assert!(checked(bytes).is_err());
        assert!(checked(vec![1, 2, 3]).is_err());
    }

    #[test]
    fn bytes_come_together() {
        assert_eq!(unshuffled(&[1, 3, 2, 4, 9], 2), [1, 2, 3, 4, 9]);
        assert_eq!(unshuffled(&[1, 2], 4), [1, 2]);
    }

    #[test]
    fn no_codec_gives_more_than_was_asked_for() {
        let zeros = vec![0u8; 100_000];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, &zeros).unwrap();
        let gzip = gzip.finish().unwrap();
        let decode = |codec: BytesCodec, bytes: &[u8], most| codec.decode(bytes.to_vec(), most);
        assert_eq!(decode(BytesCodec::Gzip, &gzip, 100_000).unwrap(), zeros);
        assert!(decode(BytesCodec::Gzip, &gzip, 99_999).is_err());
        assert!(decode(BytesCodec::Gzip, &gzip[..gzip.len() - 9], 100_000).is_err());
        let mut block = u32::MAX.to_le_bytes().to_vec();
        block.extend(lz4_flex::block::compress(&zeros));
        assert!(decode(BytesCodec::Lz4, &block, 100_000).is_err());
        for codec in ["gzip", "zlib", "zstd", "lz4", "bz2", "blosc"] {
            let codec = simple(codec).unwrap();
            for bytes in [&[][..], &[1], &[0xff; 40], &[0; 40]] {
                let _ = decode(codec, bytes, 1000);
            }
        }
    }
}
