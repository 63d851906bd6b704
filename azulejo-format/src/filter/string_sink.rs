//! Where decoded strings go, and the big-endian numbers beside them.

use crate::error::{DecodeError, Result};
use crate::wire::ByteReader;

/// Bytes of a big-endian number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    One,
    Two,
    Four,
    Eight,
}

impl Width {
    /// The smallest width that holds a value.
    pub(super) fn for_value(value: u64) -> Self {
        if value <= u8::MAX.into() {
            Self::One
        } else if value <= u16::MAX.into() {
            Self::Two
        } else if value <= u32::MAX.into() {
            Self::Four
        } else {
            Self::Eight
        }
    }

    /// A width as stored.
    pub(super) fn read(r: &mut ByteReader<'_>, what: &'static str) -> Result<Self> {
        let offset = r.offset();
        match r.u8(what)? {
            1 => Ok(Self::One),
            2 => Ok(Self::Two),
            4 => Ok(Self::Four),
            8 => Ok(Self::Eight),
            id => Err(DecodeError::UnknownId {
                what,
                id: id.into(),
                offset,
            }),
        }
    }

    /// As stored: the number of bytes.
    pub(super) fn id(self) -> u8 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    #[inline]
    pub(super) fn get(self, r: &mut ByteReader<'_>, what: &'static str) -> Result<u64> {
        Ok(match self {
            Self::One => r.u8(what)?.into(),
            Self::Two => r.u16(what)?.swap_bytes().into(),
            Self::Four => r.u32(what)?.swap_bytes().into(),
            Self::Eight => r.u64(what)?.swap_bytes(),
        })
    }

    #[inline]
    pub(super) fn put(self, value: u64, out: &mut Vec<u8>) {
        let bytes = value.swap_bytes().to_le_bytes();
        out.extend_from_slice(bytes.get(8 - usize::from(self.id())..).unwrap_or_default());
    }
}

/// The distinct strings.
pub(super) struct Words<'a> {
    /// As stored: lengths and words, one behind another.
    pub(super) dictionary: &'a [u8],
    /// Where each word begins in it, and how long it is: within the dictionary.
    pub(super) places: Vec<(u32, u32)>,
    /// The length of the longest word.
    pub(super) longest: usize,
}

/// Where the decoded strings of a tile go: room for so many cells and bytes, all to be filled.
pub(super) trait StringSink {
    /// Appends `run` cells of the same string.
    fn push_run(&mut self, string: &[u8], run: u64) -> Result<()>;

    /// Appends a cell for each index into the words of a dictionary.
    fn push_words(
        &mut self,
        words: Words<'_>,
        ids: impl ExactSizeIterator<Item = usize>,
    ) -> Result<()>;
}

/// The cells and bytes that there is room for, and what is wrong with others.
#[derive(Debug, Clone, Copy)]
pub(super) struct StringRoom {
    pub(super) filter: &'static str,
    pub(super) bytes: usize,
    pub(super) cells: usize,
}

impl StringRoom {
    #[cold]
    pub(super) fn too_many(self) -> DecodeError {
        let reason = format!("more than {} bytes in {} cells", self.bytes, self.cells);
        DecodeError::filter(self.filter, reason)
    }

    /// The error of an index that no word has.
    #[cold]
    pub(super) fn unknown(self, id: usize, words: &Words<'_>) -> DecodeError {
        let reason = format!("index {id} into a dictionary of {}", words.places.len());
        DecodeError::filter(self.filter, reason)
    }

    /// Checks that every byte and every cell is there.
    pub(super) fn check(self, bytes: usize, cells: usize) -> Result<()> {
        if bytes == self.bytes && cells == self.cells {
            return Ok(());
        }
        let reason = format!(
            "{bytes} bytes in {cells} cells instead of {} in {}",
            self.bytes, self.cells
        );
        Err(DecodeError::filter(self.filter, reason))
    }
}
