//! AES-256-GCM, the last filter of every tile of an encrypted array. Page: *Tile, Encryption
//! Filters*.
//!
//! Each part has a random IV and a tag of its own, kept in the part list. The library of TLS where C
//! is compiled in, otherwise the cipher in Rust, which takes some five times as long.

mod lengths;
#[cfg(feature = "c-codecs")]
mod library;
#[cfg(all(feature = "pure-rust", any(test, not(feature = "c-codecs"))))]
mod rust;

#[cfg(feature = "c-codecs")]
pub(super) use library::Cipher;
#[cfg(not(feature = "c-codecs"))]
pub(super) use rust::Cipher;

use super::key::EncryptionKey;
use crate::error::{DecodeError, Result};
use lengths::{IV_LEN, TAG_LEN};

/// The filter's name.
pub(super) const NAME: &str = "AES_256_GCM";

/// Bytes of an entry in the part list: two lengths, IV, tag.
pub(super) const ENTRY_LEN: usize = 8 + IV_LEN + TAG_LEN;

/// The cipher of a key.
pub(super) fn cipher(key: Option<&EncryptionKey>) -> Result<Cipher> {
    let key = key.ok_or(DecodeError::Decrypt {
        reason: "the data are encrypted and no key is given",
    })?;
    Cipher::new(key).ok_or(DecodeError::Decrypt {
        reason: "the cipher does not take the key",
    })
}

/// Decrypts a part into `out`, which must be as long; `entry` holds IV and tag.
pub(super) fn decrypt(cipher: &Cipher, input: &[u8], out: &mut [u8], entry: &[u8]) -> Result<()> {
    if input.len() != out.len() {
        return Err(DecodeError::Decrypt {
            reason: "lengths of a part do not agree",
        });
    }
    let Some((iv, rest)) = entry.split_first_chunk::<IV_LEN>() else {
        return Err(DecodeError::Decrypt {
            reason: "lengths of a part do not agree",
        });
    };
    let Some(tag) = rest.first_chunk::<TAG_LEN>() else {
        return Err(DecodeError::Decrypt {
            reason: "a part without a tag",
        });
    };
    out.copy_from_slice(input);
    cipher.open(*iv, out, *tag).ok_or(DecodeError::Decrypt {
        reason: "the key is wrong or the data are damaged",
    })
}

/// Appends the encrypted part to `out` and its entry to `metadata`.
pub(super) fn encrypt(
    cipher: &Cipher,
    input: &[u8],
    metadata: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut iv = [0; IV_LEN];
    getrandom::fill(&mut iv)
        .map_err(|e| DecodeError::filter(NAME, format!("no random numbers: {e}")))?;
    let at = out.len();
    out.extend_from_slice(input);
    let part = out.get_mut(at..).unwrap_or_default();
    let tag = cipher
        .seal(iv, part)
        .ok_or_else(|| DecodeError::filter(NAME, "a part is too long"))?;
    let len = u32::try_from(input.len())
        .map_err(|_| DecodeError::filter(NAME, "a part of more than 4 GiB"))?;
    metadata.extend(len.to_le_bytes());
    metadata.extend(len.to_le_bytes());
    metadata.extend(iv);
    metadata.extend_from_slice(&tag);
    Ok(())
}

#[cfg(all(test, feature = "c-codecs", feature = "pure-rust"))]
mod tests {
    use super::*;

    /// What either has encrypted both decrypt, and nothing else.
    #[test]
    fn both_ciphers_are_one() {
        let key = EncryptionKey::new([7; 32]);
        let (library, rust) = (
            library::Cipher::new(&key).unwrap(),
            rust::Cipher::new(&key).unwrap(),
        );
        for len in [0usize, 1, 15, 16, 17, 1_000, 65_536, 1 << 20] {
            let (plain, iv) = (
                (0..len).map(|i| (i * 31) as u8).collect::<Vec<_>>(),
                [len as u8; IV_LEN],
            );
            let (mut one, mut other) = (plain.clone(), plain.clone());
            let tag = library.seal(iv, &mut one).unwrap();
            assert_eq!(
                (Some(tag), &one),
                (rust.seal(iv, &mut other), &other),
                "{len}"
            );
            let mut wrong = tag;
            wrong[3] ^= 1;
            assert_eq!(library.open(iv, &mut one.clone(), wrong), None, "{len}");
            assert_eq!(rust.open(iv, &mut one.clone(), wrong), None, "{len}");
            assert_eq!(
                (library.open(iv, &mut one, tag), &one),
                (Some(()), &plain),
                "{len}"
            );
            assert_eq!(
                (rust.open(iv, &mut other, tag), &other),
                (Some(()), &plain),
                "{len}"
            );
        }
    }
}
