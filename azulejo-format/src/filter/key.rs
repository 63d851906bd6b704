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

    /// A key as people keep it, in a file or a variable: its 32 bytes, or 64 hexadecimal digits. A
    /// line end behind either does not count.
    #[must_use]
    pub fn from_written(bytes: &[u8]) -> Option<Self> {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // Bytes that end in a line end are a key as they are.
        [bytes, line]
            .into_iter()
            .find_map(|raw| Self::from_slice(raw).ok())
            .or_else(|| Self::from_digits(str::from_utf8(line).ok()?))
    }

    fn from_digits(digits: &str) -> Option<Self> {
        if digits.len() != 2 * Self::LEN {
            return None;
        }
        let mut key = [0; Self::LEN];
        for (i, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(digits.get(2 * i..2 * i + 2)?, 16).ok()?;
        }
        Some(Self(key))
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

    #[test]
    fn keys_are_bytes_or_digits() {
        let written_key = EncryptionKey::from_written;
        let key = EncryptionKey::new(*b"0123456789abcdeF0123456789abcdeF");
        assert!(written_key(b"0123456789abcdeF0123456789abcdeF").unwrap() == key);
        assert!(written_key(b"0123456789abcdeF0123456789abcdeF\n").unwrap() == key);
        assert!(
            written_key(b"3031323334353637383961626364654630313233343536373839616263646546\r\n")
                .unwrap()
                == key
        );
        // 32 bytes that end in a line end are a key as they are.
        assert!(written_key(b"0123456789abcdeF0123456789abcde\n").is_some());
        for bytes in [&b""[..], b"short", &[b'z'; 64], &[b'0'; 33]] {
            assert!(written_key(bytes).is_none());
        }
    }
}
