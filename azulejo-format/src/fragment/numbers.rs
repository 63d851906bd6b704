//! Lists of numbers in footers.

use crate::error::Result;
use crate::wire::ByteReader;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Numbers of a footer, most often one a slot: a slice that can be appended to.
///
/// Lists that were decoded together share their memory: a footer has a dozen of them, and an array
/// may have thousands of footers.
#[derive(Clone)]
pub struct Numbers(Memory);

#[derive(Clone)]
enum Memory {
    Own(Vec<u64>),
    Shared {
        all: Arc<[u64]>,
        start: u32,
        len: u32,
    },
}

impl Numbers {
    /// Appends a number.
    pub fn push(&mut self, number: u64) {
        if let Memory::Shared { .. } = self.0 {
            self.0 = Memory::Own(self.to_vec());
        }
        if let Memory::Own(own) = &mut self.0 {
            own.push(number);
        }
    }
}

impl Deref for Numbers {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match &self.0 {
            Memory::Own(own) => own,
            Memory::Shared { all, start, len } => {
                let start = *start as usize;
                all.get(start..start + *len as usize).unwrap_or_default()
            }
        }
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self(Memory::Own(Vec::new()))
    }
}

impl From<Vec<u64>> for Numbers {
    fn from(numbers: Vec<u64>) -> Self {
        Self(Memory::Own(numbers))
    }
}

impl FromIterator<u64> for Numbers {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        Self(Memory::Own(numbers.into_iter().collect()))
    }
}

impl<'a> IntoIterator for &'a Numbers {
    type Item = &'a u64;
    type IntoIter = std::slice::Iter<'a, u64>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Numbers {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Numbers {}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Several lists while they are being decoded.
pub(super) struct Decoding {
    all: Vec<u64>,
}

impl Decoding {
    /// For lists of about so many numbers together that `r` holds.
    pub fn new(r: &ByteReader<'_>, len: u64) -> Self {
        let fit = usize::try_from(len)
            .unwrap_or(usize::MAX)
            .min(r.remaining() / 8);
        Self {
            all: Vec::with_capacity(fit),
        }
    }

    /// Reads a list; says where [`Decoded::list`] finds it.
    pub fn read(
        &mut self,
        r: &mut ByteReader<'_>,
        len: u64,
        what: &'static str,
    ) -> Result<Range<usize>> {
        let bytes = r.bytes_u64(len.saturating_mul(8), what)?;
        let start = self.all.len();
        self.all.extend(
            bytes
                .as_chunks::<8>()
                .0
                .iter()
                .map(|b| u64::from_le_bytes(*b)),
        );
        Ok(start..self.all.len())
    }

    /// All lists are read.
    pub fn finish(self) -> Decoded {
        Decoded {
            all: self.all.into(),
        }
    }
}

/// Lists that were decoded together.
pub(super) struct Decoded {
    all: Arc<[u64]>,
}

impl Decoded {
    /// One of the lists.
    pub fn list(&self, range: Range<usize>) -> Numbers {
        match (u32::try_from(range.start), u32::try_from(range.len())) {
            _ if range.is_empty() => Numbers::default(),
            (Ok(start), Ok(len)) => Numbers(Memory::Shared {
                all: Arc::clone(&self.all),
                start,
                len,
            }),
            _ => Numbers::from(self.all.get(range).unwrap_or_default().to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_share_memory_until_they_are_changed() {
        let bytes: Vec<u8> = (1..=5u64).flat_map(u64::to_le_bytes).collect();
        let mut r = ByteReader::new(&bytes);
        let mut lists = Decoding::new(&r, u64::MAX);
        let [a, b, c] = [2, 0, 3].map(|len| lists.read(&mut r, len, "list").unwrap());
        assert!(lists.read(&mut r, 1, "list").is_err());
        assert!(lists.read(&mut r, u64::MAX, "list").is_err());
        let decoded = lists.finish();
        let (mut a, b, c) = (decoded.list(a), decoded.list(b), decoded.list(c));
        assert_eq!(
            (&*a, &*b, &*c),
            ([1, 2].as_slice(), [].as_slice(), [3, 4, 5].as_slice())
        );
        assert_eq!(a, Numbers::from(vec![1, 2]));
        a.push(9);
        assert_eq!((&*a, &*c), ([1, 2, 9].as_slice(), [3, 4, 5].as_slice()));
        assert_eq!(format!("{a:?} {b:?}"), "[1, 2, 9] []");
        assert_eq!(a.into_iter().sum::<u64>(), 12);
    }
}
