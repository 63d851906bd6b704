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

/// Where decoded strings go: data and offsets of known sizes, both to be filled.
pub(super) struct StringSink<'a> {
    data: &'a mut [u8],
    offsets: &'a mut [u64],
    data_at: usize,
    cells: usize,
    filter: &'static str,
}

impl<'a> StringSink<'a> {
    pub(super) fn new(filter: &'static str, data: &'a mut [u8], offsets: &'a mut [u64]) -> Self {
        Self {
            data,
            offsets,
            data_at: 0,
            cells: 0,
            filter,
        }
    }

    /// Appends `run` cells of the same string.
    #[inline]
    pub(super) fn push_run(&mut self, string: &[u8], run: u64) -> Result<()> {
        let run = usize::try_from(run).unwrap_or(usize::MAX);
        let cells_end = self.cells.checked_add(run);
        let data_end = string
            .len()
            .checked_mul(run)
            .and_then(|len| self.data_at.checked_add(len));
        let (Some(cells_end), Some(data_end)) = (cells_end, data_end) else {
            return Err(self.too_many());
        };
        let (Some(offsets), Some(data)) = (
            self.offsets.get_mut(self.cells..cells_end),
            self.data.get_mut(self.data_at..data_end),
        ) else {
            return Err(self.too_many());
        };
        let mut at = self.data_at as u64;
        for offset in offsets {
            *offset = at;
            at += string.len() as u64;
        }
        if !string.is_empty() {
            for place in data.chunks_exact_mut(string.len()) {
                place.copy_from_slice(string);
            }
        }
        self.cells = cells_end;
        self.data_at = data_end;
        Ok(())
    }

    /// The data, how many of them are filled, and the offsets that are not filled yet.
    pub(super) fn rest(&mut self) -> (&mut [u8], usize, &mut [u64]) {
        let offsets = self.offsets.get_mut(self.cells..).unwrap_or_default();
        (self.data, self.data_at, offsets)
    }

    /// `cells` more strings are where [`Self::rest`] has room for them: the data are filled up to
    /// `data_at`, which lies within them.
    pub(super) fn filled(&mut self, data_at: usize, cells: usize) {
        self.data_at = data_at;
        self.cells += cells;
    }

    #[cold]
    pub(super) fn too_many(&self) -> DecodeError {
        let reason = format!(
            "more than {} bytes in {} cells",
            self.data.len(),
            self.offsets.len()
        );
        DecodeError::filter(self.filter, reason)
    }

    /// Checks that every byte and every offset was written.
    pub(super) fn finish(self) -> Result<()> {
        if self.data_at == self.data.len() && self.cells == self.offsets.len() {
            return Ok(());
        }
        let reason = format!(
            "{} bytes in {} cells instead of {} in {}",
            self.data_at,
            self.cells,
            self.data.len(),
            self.offsets.len()
        );
        Err(DecodeError::filter(self.filter, reason))
    }
}
