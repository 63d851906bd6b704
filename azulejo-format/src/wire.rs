//! Bounded little-endian reading and writing: the only place that touches raw offsets of
//! structures.
#![warn(clippy::indexing_slicing)]

use crate::error::{DecodeError, Result};

/// Reads a structure front to back; every error names the field and the offset.
#[derive(Debug, Clone)]
pub struct ByteReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

macro_rules! read_number {
    ($($name:ident -> $t:ty),*) => {$(
        #[doc = concat!("Reads a little-endian `", stringify!($t), "`.")]
        pub fn $name(&mut self, what: &'static str) -> Result<$t> {
            const N: usize = size_of::<$t>();
            let bytes = self.array::<N>(what)?;
            Ok(<$t>::from_le_bytes(bytes))
        }
    )*};
}

impl<'a> ByteReader<'a> {
    /// A reader at the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Offset of the next byte.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Bytes not read yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Whether all bytes were read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// The bytes not read yet, without reading them.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or(&[])
    }

    /// Borrows the next `len` bytes.
    pub fn bytes(&mut self, len: usize, what: &'static str) -> Result<&'a [u8]> {
        let end = self.at.checked_add(len);
        match end.and_then(|end| self.bytes.get(self.at..end)) {
            Some(slice) => {
                self.at += len;
                Ok(slice)
            }
            None => Err(DecodeError::Truncated {
                what,
                offset: self.at,
                need: len as u64,
                have: self.remaining() as u64,
            }),
        }
    }

    /// Borrows the next `len` bytes, where `len` came from the file.
    pub fn bytes_u64(&mut self, len: u64, what: &'static str) -> Result<&'a [u8]> {
        let fit = usize::try_from(len).map_err(|_| DecodeError::Truncated {
            what,
            offset: self.at,
            need: len,
            have: self.remaining() as u64,
        })?;
        self.bytes(fit, what)
    }

    /// Reads `N` bytes by value.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.bytes(N, what)?);
        Ok(out)
    }

    read_number!(u8 -> u8, u16 -> u16, u32 -> u32, u64 -> u64, i32 -> i32, i64 -> i64, f32 -> f32, f64 -> f64);

    /// Reads a one-byte flag; anything but 0 counts as true, as the reference reads it.
    pub fn flag(&mut self, what: &'static str) -> Result<bool> {
        Ok(self.u8(what)? != 0)
    }

    /// Reads `count` little-endian `u64`s; the bytes must be there before anything is allocated.
    pub fn u64s(&mut self, count: u64, what: &'static str) -> Result<Vec<u64>> {
        let need = count.saturating_mul(8);
        let bytes = self.bytes_u64(need, what)?;
        Ok(bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|b| u64::from_le_bytes(*b))
            .collect())
    }

    /// Reads `len` bytes as UTF-8 text.
    pub fn text(&mut self, len: u64, what: &'static str) -> Result<String> {
        self.str(len, what).map(str::to_owned)
    }

    /// Borrows `len` bytes as UTF-8 text.
    pub fn str(&mut self, len: u64, what: &'static str) -> Result<&'a str> {
        let offset = self.at;
        let bytes = self.bytes_u64(len, what)?;
        std::str::from_utf8(bytes).map_err(|_| DecodeError::invalid(what, offset, "not UTF-8"))
    }

    /// Checks that a count of items of at least `min_size` bytes each can be present, before
    /// allocating for it.
    pub fn check_count(&self, count: u64, min_size: u64, what: &'static str) -> Result<usize> {
        let need = count.saturating_mul(min_size.max(1));
        if need > self.remaining() as u64 {
            return Err(DecodeError::Truncated {
                what,
                offset: self.at,
                need,
                have: self.remaining() as u64,
            });
        }
        usize::try_from(count).map_err(|_| DecodeError::invalid(what, self.at, "count too large"))
    }

    /// An [`DecodeError::Invalid`] at the current offset.
    pub fn invalid(&self, what: &'static str, reason: impl Into<String>) -> DecodeError {
        DecodeError::invalid(what, self.at, reason)
    }

    /// Errors unless every byte was read.
    pub fn finish(&self, what: &'static str) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        Err(self.invalid(what, format!("{} bytes too many", self.remaining())))
    }
}

/// Writes a structure front to back; the mirror of [`ByteReader`].
#[derive(Debug, Clone, Default)]
pub struct ByteWriter {
    bytes: Vec<u8>,
}

macro_rules! write_number {
    ($($name:ident($t:ty)),*) => {$(
        #[doc = concat!("Appends a little-endian `", stringify!($t), "`.")]
        pub fn $name(&mut self, value: $t) {
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
    )*};
}

impl ByteWriter {
    /// An empty writer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    write_number!(
        u8(u8),
        u16(u16),
        u32(u32),
        u64(u64),
        i32(i32),
        i64(i64),
        f32(f32),
        f64(f64)
    );

    /// Appends a one-byte flag.
    pub fn flag(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// Appends bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends `u64`s.
    pub fn u64s(&mut self, values: &[u64]) {
        self.bytes.reserve(values.len() * 8);
        for value in values {
            self.u64(*value);
        }
    }

    /// Appends text behind its length as `u32`.
    pub fn text32(&mut self, text: &str) {
        self.u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
        self.bytes(text.as_bytes());
    }

    /// Appends text behind its length as `u64`.
    pub fn text64(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    /// Bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_written() {
        let mut w = ByteWriter::new();
        w.u8(7);
        w.u32(1 << 31);
        w.i64(-5);
        w.text32("tile");
        w.u64s(&[1, u64::MAX]);
        let bytes = w.into_bytes();
        let mut r = ByteReader::new(&bytes);
        assert_eq!(r.u8("a").unwrap(), 7);
        assert_eq!(r.u32("b").unwrap(), 1 << 31);
        assert_eq!(r.i64("c").unwrap(), -5);
        let len = r.u32("len").unwrap();
        assert_eq!(r.text(len.into(), "d").unwrap(), "tile");
        assert_eq!(r.u64s(2, "e").unwrap(), [1, u64::MAX]);
        r.finish("all").unwrap();
    }

    #[test]
    fn a_huge_length_is_an_error_and_allocates_nothing() {
        let mut r = ByteReader::new(&[0; 4]);
        assert!(matches!(
            r.u64s(u64::MAX, "x"),
            Err(DecodeError::Truncated {
                offset: 0,
                have: 4,
                ..
            })
        ));
        assert!(matches!(
            r.bytes_u64(u64::MAX, "x"),
            Err(DecodeError::Truncated { .. })
        ));
        assert!(matches!(
            r.check_count(5, 1, "x"),
            Err(DecodeError::Truncated { .. })
        ));
        assert!(matches!(
            r.finish("x"),
            Err(DecodeError::Invalid { offset: 0, .. })
        ));
    }
}
