//! AES-256-GCM, the last filter of every tile of an encrypted array. Page: *Tile, Encryption
//! Filters*.
//!
//! Each part has a random IV and a tag of its own, kept in the part list.

use super::key::EncryptionKey;
use crate::error::{DecodeError, Result};
use aes_gcm::aead::generic_array::GenericArray;
use aes_gcm::{AeadInPlace, Aes256Gcm, KeyInit};

/// The filter's name.
pub(super) const NAME: &str = "AES_256_GCM";

/// Bytes of an entry in the part list: two lengths, IV, tag.
pub(super) const ENTRY_LEN: usize = 8 + IV_LEN + TAG_LEN;
const IV_LEN: usize = 12;
const TAG_LEN: usize = 16;

/// The cipher of a key.
pub(super) fn cipher(key: Option<&EncryptionKey>) -> Result<Aes256Gcm> {
    let key = key.ok_or(DecodeError::Decrypt {
        reason: "the data are encrypted and no key is given",
    })?;
    Ok(Aes256Gcm::new(GenericArray::from_slice(key.bytes())))
}

/// Decrypts a part into `out`, which must be as long; `entry` holds IV and tag.
pub(super) fn decrypt(
    cipher: &Aes256Gcm,
    input: &[u8],
    out: &mut [u8],
    entry: &[u8],
) -> Result<()> {
    let (Some((iv, tag)), true) = (entry.split_at_checked(IV_LEN), input.len() == out.len()) else {
        return Err(DecodeError::Decrypt {
            reason: "lengths of a part do not agree",
        });
    };
    let Some(tag) = tag.get(..TAG_LEN) else {
        return Err(DecodeError::Decrypt {
            reason: "a part without a tag",
        });
    };
    out.copy_from_slice(input);
    cipher
        .decrypt_in_place_detached(
            GenericArray::from_slice(iv),
            &[],
            out,
            GenericArray::from_slice(tag),
        )
        .map_err(|_| DecodeError::Decrypt {
            reason: "the key is wrong or the data are damaged",
        })
}

/// Appends the encrypted part to `out` and its entry to `metadata`.
pub(super) fn encrypt(
    cipher: &Aes256Gcm,
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
        .encrypt_in_place_detached(GenericArray::from_slice(&iv), &[], part)
        .map_err(|_| DecodeError::filter(NAME, "a part is too long"))?;
    let len = u32::try_from(input.len())
        .map_err(|_| DecodeError::filter(NAME, "a part of more than 4 GiB"))?;
    metadata.extend(len.to_le_bytes());
    metadata.extend(len.to_le_bytes());
    metadata.extend(iv);
    metadata.extend_from_slice(&tag);
    Ok(())
}
