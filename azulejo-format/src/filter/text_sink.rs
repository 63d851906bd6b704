//! Decoded strings as texts: one behind another, and where each begins.

use super::string_sink::{StringRoom, StringSink, Words};
use crate::error::Result;

/// Where texts go: data and offsets of known sizes, both to be filled.
pub(super) struct TextSink<'a> {
    data: &'a mut [u8],
    offsets: &'a mut [u64],
    data_at: usize,
    cells: usize,
    room: StringRoom,
}

/// Words of no more bytes are copied with what lies behind them, so that the length of a copy is
/// known beforehand.
const MOST_COPIED: usize = 64;

impl<'a> TextSink<'a> {
    pub(super) fn new(filter: &'static str, data: &'a mut [u8], offsets: &'a mut [u64]) -> Self {
        let room = StringRoom {
            filter,
            bytes: data.len(),
            cells: offsets.len(),
        };
        Self {
            data,
            offsets,
            data_at: 0,
            cells: 0,
            room,
        }
    }

    /// Checks that every byte and every offset was written.
    pub(super) fn finish(self) -> Result<()> {
        self.room.check(self.data_at, self.cells)
    }

    /// Appends the words of indices, of which none is longer than `N` bytes; 0: of any length.
    /// `bytes` are the dictionary and `N` bytes behind it.
    ///
    /// `N` bytes are copied where there is room for them: what follows a word is overwritten by the
    /// next one.
    fn push_words_by<const N: usize>(
        &mut self,
        words: &Words<'_>,
        bytes: &[u8],
        ids: impl ExactSizeIterator<Item = usize>,
    ) -> Result<()> {
        let offsets = self.offsets.get_mut(self.cells..).unwrap_or_default();
        if ids.len() > offsets.len() {
            return Err(self.room.too_many());
        }
        let (data, mut at) = (&mut *self.data, self.data_at);
        let cells = ids.len();
        for (id, offset) in ids.zip(offsets) {
            let Some(&(start, len)) = words.places.get(id) else {
                return Err(self.room.unknown(id, words));
            };
            let (start, len) = (start as usize, len as usize);
            *offset = at as u64;
            let copied = match N {
                0 => None,
                _ => data.get_mut(at..at + N).zip(bytes.get(start..start + N)),
            };
            if let Some((place, word)) = copied {
                place.copy_from_slice(word);
            } else {
                let place = data.get_mut(at..at + len);
                let word = bytes.get(start..start + len);
                let Some((place, word)) = place.zip(word) else {
                    return Err(self.room.too_many());
                };
                place.copy_from_slice(word);
            }
            // Within the data: of this word no more than was copied.
            at += len;
        }
        self.data_at = at;
        self.cells += cells;
        Ok(())
    }
}

impl StringSink for TextSink<'_> {
    #[inline]
    fn push_run(&mut self, string: &[u8], run: u64) -> Result<()> {
        let run = usize::try_from(run).unwrap_or(usize::MAX);
        let cells_end = self.cells.checked_add(run);
        let data_end = string
            .len()
            .checked_mul(run)
            .and_then(|len| self.data_at.checked_add(len));
        let (Some(cells_end), Some(data_end)) = (cells_end, data_end) else {
            return Err(self.room.too_many());
        };
        let (Some(offsets), Some(data)) = (
            self.offsets.get_mut(self.cells..cells_end),
            self.data.get_mut(self.data_at..data_end),
        ) else {
            return Err(self.room.too_many());
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

    fn push_words(
        &mut self,
        words: Words<'_>,
        ids: impl ExactSizeIterator<Item = usize>,
    ) -> Result<()> {
        let mut bytes = Vec::with_capacity(words.dictionary.len() + MOST_COPIED);
        bytes.extend_from_slice(words.dictionary);
        bytes.extend([0; MOST_COPIED]);
        match words.longest {
            0..=8 => self.push_words_by::<8>(&words, &bytes, ids),
            9..=16 => self.push_words_by::<16>(&words, &bytes, ids),
            17..=32 => self.push_words_by::<32>(&words, &bytes, ids),
            33..=MOST_COPIED => self.push_words_by::<MOST_COPIED>(&words, &bytes, ids),
            _ => self.push_words_by::<0>(&words, &bytes, ids),
        }
    }
}
