//! Decoded strings as words: each distinct one once, and for each cell which one it is.

use super::string_sink::{StringRoom, StringSink, Words};
use crate::error::Result;

/// The words of a tile of strings: those of its dictionary or, of run lengths, one a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StringWords {
    /// The words' bytes; others may lie between them.
    pub bytes: Vec<u8>,
    /// Where each word begins in `bytes`, and how long it is: within them.
    pub places: Vec<(u32, u32)>,
}

impl StringWords {
    /// How many words there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The words in the order of their indices.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let word = |&(at, len): &(u32, u32)| {
            let (at, len) = (at as usize, len as usize);
            self.bytes.get(at..at + len).unwrap_or_default()
        };
        self.places.iter().map(word)
    }
}

/// Where words go: indices of a known number, all to be filled, and as many words as there are.
pub(super) struct WordSink<'a> {
    /// Little-endian indices of words.
    ids: &'a mut [[u8; 4]],
    words: StringWords,
    /// Bytes of the strings so far.
    bytes: usize,
    cells: usize,
    room: StringRoom,
}

impl<'a> WordSink<'a> {
    /// For strings of `bytes` bytes together.
    pub(super) fn new(filter: &'static str, bytes: usize, ids: &'a mut [[u8; 4]]) -> Self {
        let room = StringRoom {
            filter,
            bytes,
            cells: ids.len(),
        };
        Self {
            ids,
            words: StringWords::default(),
            bytes: 0,
            cells: 0,
            room,
        }
    }

    /// Checks that every index was written, and that the strings are as long as they were to be.
    pub(super) fn finish(self) -> Result<StringWords> {
        self.room.check(self.bytes, self.cells)?;
        Ok(self.words)
    }

    /// The index of the next word, and where it will begin.
    fn next(&self) -> Result<(u32, u32)> {
        let next = u32::try_from(self.words.len()).ok();
        let at = u32::try_from(self.words.bytes.len()).ok();
        next.zip(at).ok_or_else(|| self.room.too_many())
    }
}

impl StringSink for WordSink<'_> {
    #[inline]
    fn push_run(&mut self, string: &[u8], run: u64) -> Result<()> {
        if run == 0 {
            return Ok(());
        }
        let run = usize::try_from(run).unwrap_or(usize::MAX);
        let cells_end = self.cells.checked_add(run);
        let bytes = string
            .len()
            .checked_mul(run)
            .and_then(|len| self.bytes.checked_add(len))
            .filter(|bytes| *bytes <= self.room.bytes);
        let (id, at) = self.next()?;
        let ids = cells_end.and_then(|end| self.ids.get_mut(self.cells..end));
        let (Some(ids), Some(bytes)) = (ids, bytes) else {
            return Err(self.room.too_many());
        };
        // Strings come out of fewer than 4 GiB.
        self.words.places.push((at, string.len() as u32));
        self.words.bytes.extend_from_slice(string);
        self.cells += ids.len();
        self.bytes = bytes;
        ids.fill(id.to_le_bytes());
        Ok(())
    }

    fn push_words(
        &mut self,
        words: Words<'_>,
        ids: impl ExactSizeIterator<Item = usize>,
    ) -> Result<()> {
        let (first, at) = self.next()?;
        let places = self.ids.get_mut(self.cells..).unwrap_or_default();
        // Words take a byte of a dictionary, of less than 4 GiB, each.
        let fits = u32::try_from(words.dictionary.len())
            .is_ok_and(|len| first.checked_add(len).and(at.checked_add(len)).is_some());
        if ids.len() > places.len() || !fits {
            return Err(self.room.too_many());
        }
        let cells = ids.len();
        let mut bytes = self.bytes as u64;
        for (id, place) in ids.zip(places) {
            let Some(&(_, len)) = words.places.get(id) else {
                return Err(self.room.unknown(id, &words));
            };
            // Fewer than 2^32 cells of fewer than 2^32 bytes.
            bytes = bytes.saturating_add(len.into());
            *place = (first + id as u32).to_le_bytes();
        }
        if bytes > self.room.bytes as u64 {
            return Err(self.room.too_many());
        }
        self.cells += cells;
        self.bytes = bytes as usize;
        self.words.bytes.extend_from_slice(words.dictionary);
        if at == 0 {
            self.words.places = words.places;
        } else {
            let moved = words.places.iter().map(|(start, len)| (at + start, *len));
            self.words.places.extend(moved);
        }
        Ok(())
    }
}
