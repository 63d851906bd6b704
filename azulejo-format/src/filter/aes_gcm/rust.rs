//! The cipher in Rust.

use super::lengths::{IV_LEN, TAG_LEN};
use crate::filter::EncryptionKey;
use aes_gcm::aead::generic_array::GenericArray;
use aes_gcm::{AeadInPlace, Aes256Gcm, KeyInit};

/// What a key makes.
pub(in crate::filter) struct Cipher(Aes256Gcm);

impl Cipher {
    pub(in crate::filter) fn new(key: &EncryptionKey) -> Option<Self> {
        Some(Self(Aes256Gcm::new(GenericArray::from_slice(key.bytes()))))
    }

    /// Encrypts in place; `None` for what is too long.
    pub(in crate::filter) fn seal(
        &self,
        iv: [u8; IV_LEN],
        part: &mut [u8],
    ) -> Option<[u8; TAG_LEN]> {
        let tag = self
            .0
            .encrypt_in_place_detached(GenericArray::from_slice(&iv), &[], part);
        tag.ok().map(Into::into)
    }

    /// Decrypts in place; `None` for what nobody with this key has encrypted so.
    pub(in crate::filter) fn open(
        &self,
        iv: [u8; IV_LEN],
        part: &mut [u8],
        tag: [u8; TAG_LEN],
    ) -> Option<()> {
        let (iv, tag) = (
            GenericArray::from_slice(&iv),
            GenericArray::from_slice(&tag),
        );
        self.0.decrypt_in_place_detached(iv, &[], part, tag).ok()
    }
}
