//! MD5 and SHA-256 checksums. Page: *Tile, Checksum Filters*.
//!
//! The data pass unchanged. The metadata begin with the number of metadata checksums and data
//! checksums (`u32`), then for each the number of bytes that it covers (`u64`) and the digest; the
//! metadata of earlier filters follow.

use crate::error::{DecodeError, Result};
use crate::wire::ByteReader;
use md5::Md5;
use sha2::{Digest, Sha256};

/// The two kinds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Checksum {
    Md5,
    Sha256,
}

impl Checksum {
    fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha256 => "SHA-256",
        }
    }

    fn digest_len(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha256 => 32,
        }
    }

    fn matches(self, bytes: &[u8], digest: &[u8]) -> bool {
        match self {
            Self::Md5 => Md5::digest(bytes).as_slice() == digest,
            Self::Sha256 => Sha256::digest(bytes).as_slice() == digest,
        }
    }

    fn push(self, bytes: &[u8], out: &mut Vec<u8>) {
        out.extend((bytes.len() as u64).to_le_bytes());
        match self {
            Self::Md5 => out.extend_from_slice(&Md5::digest(bytes)),
            Self::Sha256 => out.extend_from_slice(&Sha256::digest(bytes)),
        }
    }

    /// Compares the checksums of `data` and of the metadata behind the checksums, at which
    /// `metadata` stands afterwards.
    pub(super) fn verify(
        self,
        data: &[u8],
        metadata: &mut ByteReader<'_>,
        skip: bool,
    ) -> Result<()> {
        let num_metadata = u64::from(metadata.u32("number of metadata checksums")?);
        let num_data = u64::from(metadata.u32("number of data checksums")?);
        let entry_len = 8 + self.digest_len() as u64;
        let of_metadata = metadata.bytes_u64(num_metadata * entry_len, "metadata checksums")?;
        let of_data = metadata.bytes_u64(num_data * entry_len, "data checksums")?;
        if skip {
            return Ok(());
        }
        self.verify_parts(of_metadata, metadata.rest())?;
        self.verify_parts(of_data, data)
    }

    fn verify_parts(self, entries: &[u8], bytes: &[u8]) -> Result<()> {
        let mut r = ByteReader::new(bytes);
        for entry in entries.chunks_exact(8 + self.digest_len()) {
            let mut entry = ByteReader::new(entry);
            let len = entry.u64("checksum, number of bytes")?;
            let part = r.bytes_u64(len, "bytes of a checksum")?;
            if !self.matches(part, entry.rest()) {
                return Err(DecodeError::Checksum {
                    filter: self.name(),
                });
            }
        }
        // Bytes that no checksum covers could be damaged unseen.
        if r.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Checksum {
                filter: self.name(),
            })
        }
    }

    /// Appends the checksums of parts to `out`.
    pub(super) fn encode<'a>(
        self,
        metadata: impl ExactSizeIterator<Item = &'a [u8]>,
        data: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) {
        out.extend((metadata.len() as u32).to_le_bytes());
        out.extend(u32::from(data.is_some()).to_le_bytes());
        for part in metadata {
            self.push(part, out);
        }
        if let Some(data) = data {
            self.push(data, out);
        }
    }
}
