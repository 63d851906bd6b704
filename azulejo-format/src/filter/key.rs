//! The key of an encrypted array.

use crate::error::{DecodeError, Result};

/// The 32 bytes that AES-256-GCM encrypts an array with. They never show up in `Debug` output or
/// errors.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptionKey([u8; Self::LEN]);

impl EncryptionKey {
    /// Bytes of a key.
    pub const LEN: usize = 32;

    /// A key from its bytes.
    #[must_use]
    pub const fn new(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// A key from a slice, which must be 32 bytes long.
    pub fn from_slice(bytes: &[u8]) -> Result<Self> {
        match bytes.try_into() {
            Ok(bytes) => Ok(Self(bytes)),
            Err(_) => Err(DecodeError::Decrypt {
                reason: "an AES-256 key is 32 bytes long",
            }),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

impl std::str::FromStr for EncryptionKey {
    type Err = DecodeError;

    /// A key from the bytes of a text, as TileDB takes it.
    fn from_str(text: &str) -> Result<Self> {
        Self::from_slice(text.as_bytes())
    }
}

impl std::fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EncryptionKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_32_bytes_and_stays_secret() {
        let key: EncryptionKey = "0123456789abcdeF0123456789abcdeF".parse().unwrap();
        assert_eq!(key.bytes().len(), 32);
        assert!(!format!("{key:?}").contains("0123"));
        let error = "secret".parse::<EncryptionKey>().unwrap_err();
        assert!(!error.to_string().contains("secret"));
    }
}
