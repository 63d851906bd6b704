//! The library that TLS brings along, in assembler: it uses whatever the processor has for it.

use super::lengths::{IV_LEN, TAG_LEN};
use crate::filter::EncryptionKey;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};

/// What a key makes.
pub(in crate::filter) struct Cipher(LessSafeKey);

impl Cipher {
    pub(in crate::filter) fn new(key: &EncryptionKey) -> Option<Self> {
        let key = UnboundKey::new(&AES_256_GCM, key.bytes()).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    /// Encrypts in place; `None` for what is too long.
    pub(in crate::filter) fn seal(
        &self,
        iv: [u8; IV_LEN],
        part: &mut [u8],
    ) -> Option<[u8; TAG_LEN]> {
        let nonce = Nonce::assume_unique_for_key(iv);
        let tag = self.0.seal_in_place_separate_tag(nonce, Aad::empty(), part);
        tag.ok()?.as_ref().try_into().ok()
    }

    /// Decrypts in place; `None` for what nobody with this key has encrypted so.
    pub(in crate::filter) fn open(
        &self,
        iv: [u8; IV_LEN],
        part: &mut [u8],
        tag: [u8; TAG_LEN],
    ) -> Option<()> {
        let nonce = Nonce::assume_unique_for_key(iv);
        let opened =
            self.0
                .open_in_place_separate_tag(nonce, Aad::empty(), Tag::from(tag), part, 0..);
        opened.ok().map(drop)
    }
}
