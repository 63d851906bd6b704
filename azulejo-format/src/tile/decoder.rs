//! A stored tile, chunk after chunk, without IO: the decoder says which bytes it needs next.
//!
//! A chunk's header says how long the chunk is, so that the next header is found without what lies
//! between: of a tile of which few cells are wanted, little more than their chunks is read.

use super::chunk::{CHUNK_COUNT_LEN, Chunk, ChunkHeader, parse_chunk_count};
use crate::error::{DecodeError, Result};
use std::ops::Range;

/// Some bytes of a stored tile: what has been read of it so far, or all of it.
#[derive(Debug, Clone, Copy)]
pub struct StoredBytes<'s> {
    start: u64,
    bytes: &'s [u8],
}

impl<'s> StoredBytes<'s> {
    /// The bytes of a tile from its byte `start` on.
    #[must_use]
    pub fn new(start: u64, bytes: &'s [u8]) -> Self {
        Self { start, bytes }
    }

    /// All bytes of a tile.
    #[must_use]
    pub fn whole(bytes: &'s [u8]) -> Self {
        Self::new(0, bytes)
    }

    fn get(&self, range: Range<u64>) -> Option<&'s [u8]> {
        let at = |offset: u64| usize::try_from(offset.checked_sub(self.start)?).ok();
        self.bytes.get(at(range.start)?..at(range.end)?)
    }
}

/// Where a chunk lies in its stored tile, and where its cells belong in the unfiltered one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkPlace {
    header: ChunkHeader,
    output: u64,
    body: u64,
}

impl ChunkPlace {
    /// The bytes of the unfiltered tile that the chunk holds.
    #[must_use]
    pub fn output(&self) -> Range<u64> {
        self.output..self.output + u64::from(self.header.original_len)
    }

    /// The bytes of the stored tile behind the chunk's header.
    #[must_use]
    pub fn body(&self) -> Range<u64> {
        self.body..self.body + self.header.body_len()
    }

    /// Whether the chunk is as long as it was before filtering, with nothing in front of it:
    /// without filters its body is its cells.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.header.metadata_len == 0 && self.header.filtered_len == self.header.original_len
    }
}

/// What comes next in a stored tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TileStep<'s> {
    /// Bytes are needed.
    NeedsRange {
        /// Which bytes of the stored tile. Those of a chunk may take the next header along, without
        /// which the next step would need a read of its own.
        range: Range<u64>,
        /// The chunk that they are for; `None` if they are for headers.
        chunk: Option<ChunkPlace>,
    },
    /// A chunk to be unfiltered.
    Chunk(Chunk<'s>),
    /// No other chunk holds wanted cells.
    Done,
}

/// Finds the wanted chunks of a stored tile.
///
/// Give [`Self::step`] what has been read of the tile. Where it needs other bytes it says so; read
/// these and call it again. No chunk depends on another: unfilter them in any order, on any thread.
///
/// Nothing is allocated, and every length is checked against that of the stored tile before it is
/// asked for.
#[derive(Debug, Clone)]
pub struct TileDecoder<'w> {
    stored_len: u64,
    /// Bytes of the unfiltered tile, if known.
    original_len: Option<u64>,
    /// Wanted cells that lie behind the chunks so far, and bytes of a cell.
    wanted: Option<(&'w [Range<u64>], u64)>,
    /// Where the next header is.
    at: u64,
    /// Chunks to come; `None` before their number was read.
    left: Option<u64>,
    /// Unfiltered bytes of the chunks so far.
    output: u64,
    /// A wanted chunk that was not handed out yet.
    pending: Option<ChunkPlace>,
}

impl<'w> TileDecoder<'w> {
    /// A decoder of all chunks of a tile that is stored in `stored_len` bytes.
    #[must_use]
    pub fn new(stored_len: u64) -> Self {
        Self {
            stored_len,
            original_len: None,
            wanted: None,
            at: CHUNK_COUNT_LEN as u64,
            left: None,
            output: 0,
            pending: None,
        }
    }

    /// Holds the chunks to be `original_len` unfiltered bytes together.
    #[must_use]
    pub fn sized(self, original_len: u64) -> Self {
        Self {
            original_len: Some(original_len),
            ..self
        }
    }

    /// Leaves out chunks that hold none of the cells in `spans` (ascending and disjoint) of
    /// `cell_size` bytes each, and what lies behind the last of them.
    #[must_use]
    pub fn wanting(self, spans: &'w [Range<u64>], cell_size: usize) -> Self {
        Self {
            wanted: Some((spans, cell_size as u64)),
            ..self
        }
    }

    /// Goes on as far as the bytes `at_hand` allow.
    ///
    /// # Errors
    /// Lengths that contradict each other, the stored tile's or the unfiltered one's.
    pub fn step<'s>(&mut self, at_hand: StoredBytes<'s>) -> Result<TileStep<'s>> {
        let left = match self.left {
            Some(left) => left,
            None => {
                let len = CHUNK_COUNT_LEN as u64;
                self.check_stored(0, len, "tile, number of chunks")?;
                let Some(bytes) = at_hand.get(0..len) else {
                    let range = 0..self.stored_len.min(len + ChunkHeader::LEN as u64);
                    return Ok(TileStep::NeedsRange { range, chunk: None });
                };
                let left = parse_chunk_count(bytes, self.stored_len)?;
                self.left = Some(left);
                left
            }
        };
        let place = match self.pending {
            Some(place) => place,
            None => match self.next_wanted(left, at_hand)? {
                Found::Chunk(place) => *self.pending.insert(place),
                Found::Header(range) => {
                    return Ok(TileStep::NeedsRange { range, chunk: None });
                }
                Found::End => return Ok(TileStep::Done),
            },
        };
        let body = place.body();
        match at_hand.get(body.clone()) {
            Some(bytes) => {
                self.pending = None;
                Chunk::new(place.header, place.output, bytes).map(TileStep::Chunk)
            }
            None => {
                let is_last = self.left == Some(0);
                let header = if is_last { 0 } else { ChunkHeader::LEN as u64 };
                Ok(TileStep::NeedsRange {
                    range: body.start..self.stored_len.min(body.end + header),
                    chunk: Some(place),
                })
            }
        }
    }

    /// Goes on behind the chunk that the last step needs, which the caller has put in place.
    pub fn pass_chunk(&mut self) {
        self.pending = None;
    }

    /// The chunks of a tile that lies in memory as a whole.
    pub fn chunks<'s>(mut self, stored: &'s [u8]) -> impl Iterator<Item = Result<Chunk<'s>>> {
        let mut is_done = false;
        std::iter::from_fn(move || {
            if is_done {
                return None;
            }
            let chunk = match self.step(StoredBytes::whole(stored)) {
                Ok(TileStep::Chunk(chunk)) => return Some(Ok(chunk)),
                Ok(TileStep::Done) => None,
                Ok(TileStep::NeedsRange { range, .. }) => Some(Err(DecodeError::Truncated {
                    what: "tile",
                    offset: usize::try_from(range.start).unwrap_or(usize::MAX),
                    need: range.end - range.start,
                    have: (stored.len() as u64).saturating_sub(range.start),
                })),
                Err(error) => Some(Err(error)),
            };
            is_done = true;
            chunk
        })
    }

    /// The next chunk that holds wanted cells, of `left` chunks to come.
    fn next_wanted(&mut self, mut left: u64, at_hand: StoredBytes<'_>) -> Result<Found> {
        loop {
            let wanted = self.next_span();
            // The header behind the last wanted chunk would cost a read; behind the tile's last
            // chunk nothing may be.
            let is_inside = self.original_len.is_none_or(|len| self.output < len);
            if wanted.as_ref().is_some_and(Range::is_empty) && is_inside {
                return Ok(Found::End);
            }
            if left == 0 {
                self.check_end()?;
                return Ok(Found::End);
            }
            let header_len = ChunkHeader::LEN as u64;
            self.check_stored(self.at, header_len, "chunk header")?;
            let range = self.at..self.at + header_len;
            let Some(bytes) = at_hand.get(range.clone()) else {
                return Ok(Found::Header(range));
            };
            let place = ChunkPlace {
                header: ChunkHeader::parse(bytes)?,
                output: self.output,
                body: range.end,
            };
            self.check_stored(place.body, place.header.body_len(), "chunk")?;
            self.at = place.body().end;
            self.output = self.output.saturating_add(place.header.original_len.into());
            if self.original_len.is_some_and(|len| self.output > len) {
                return Err(self.wrong_len());
            }
            left -= 1;
            self.left = Some(left);
            if wanted.is_none_or(|span| span.start < self.output) {
                return Ok(Found::Chunk(place));
            }
        }
    }

    /// The bytes of the first wanted span that does not end within the chunks so far: an empty
    /// range behind all others if there is none; `None` if all bytes are wanted.
    fn next_span(&mut self) -> Option<Range<u64>> {
        let (spans, cell_size) = self.wanted.as_mut()?;
        while let Some((span, rest)) = spans.split_first() {
            let [start, end] = [span.start, span.end].map(|cell| cell.saturating_mul(*cell_size));
            if end > self.output && start < end {
                return Some(start..end);
            }
            *spans = rest;
        }
        Some(u64::MAX..u64::MAX)
    }

    fn check_stored(&self, at: u64, need: u64, what: &'static str) -> Result<()> {
        let have = self.stored_len.saturating_sub(at);
        if need <= have {
            return Ok(());
        }
        Err(DecodeError::Truncated {
            what,
            offset: usize::try_from(at).unwrap_or(usize::MAX),
            need,
            have,
        })
    }

    /// Behind the last chunk the tile must end, stored and unfiltered.
    fn check_end(&self) -> Result<()> {
        if self.original_len.is_some_and(|len| self.output != len) {
            return Err(self.wrong_len());
        }
        if self.at != self.stored_len {
            let reason = format!("{} bytes follow its chunks", self.stored_len - self.at);
            let offset = usize::try_from(self.at).unwrap_or(usize::MAX);
            return Err(DecodeError::invalid("tile", offset, reason));
        }
        Ok(())
    }

    fn wrong_len(&self) -> DecodeError {
        let reason = format!(
            "its chunks hold {} bytes, not {}",
            self.output,
            self.original_len.unwrap_or(self.output)
        );
        DecodeError::invalid("tile", 0, reason)
    }
}

/// What a search for the next wanted chunk finds.
enum Found {
    Chunk(ChunkPlace),
    /// A header that is not at hand.
    Header(Range<u64>),
    End,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::encode_chunk_count;
    use proptest::prelude::*;

    fn stored(chunks: &[(u32, &[u8], &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_chunk_count(chunks.len(), &mut bytes);
        for (original_len, metadata, data) in chunks {
            let header = ChunkHeader {
                original_len: *original_len,
                filtered_len: data.len() as u32,
                metadata_len: metadata.len() as u32,
            };
            bytes.extend(header.encode());
            bytes.extend(*metadata);
            bytes.extend(*data);
        }
        bytes
    }

    fn all(bytes: &[u8], original_len: Option<u64>) -> Result<Vec<Chunk<'_>>> {
        let decoder = TileDecoder::new(bytes.len() as u64);
        match original_len {
            Some(len) => decoder.sized(len).chunks(bytes).collect(),
            None => decoder.chunks(bytes).collect(),
        }
    }

    #[test]
    fn chunks_are_found_and_placed() {
        let bytes = stored(&[(10, b"m", b"abc"), (0, b"", b""), (5, b"", b"defgh")]);
        let chunks = all(&bytes, Some(15)).unwrap();
        let placed: Vec<_> = chunks
            .iter()
            .map(|c| (c.output_offset, c.output_end(), c.data))
            .collect();
        assert_eq!(
            placed,
            [(0, 10, &b"abc"[..]), (10, 10, b""), (10, 15, b"defgh")]
        );
        assert_eq!(chunks[0].metadata, b"m");
        assert_eq!(all(&bytes, None), Ok(chunks));
        for wrong in [0, 9, 14, 16] {
            let error = all(&bytes, Some(wrong));
            assert!(matches!(error, Err(DecodeError::Invalid { .. })), "{wrong}");
        }
    }

    #[test]
    fn a_cut_or_hostile_tile_is_refused() {
        let bytes = stored(&[(10, b"m", b"abc"), (5, b"", b"defgh")]);
        for len in 0..bytes.len() {
            let cut = all(&bytes[..len], None);
            assert!(matches!(cut, Err(DecodeError::Truncated { .. })), "{len}");
            // Bytes that are promised and not there are asked for, then missed.
            let missing = TileDecoder::new(bytes.len() as u64).chunks(&bytes[..len]);
            let missing: Result<Vec<_>> = missing.collect();
            assert!(matches!(missing, Err(DecodeError::Truncated { .. })));
        }
        let mut long = bytes.clone();
        long.push(0);
        let long = all(&long, None);
        assert!(matches!(long, Err(DecodeError::Invalid { .. })));
        let mut many = bytes;
        many[..8].fill(0xff);
        let many = all(&many, None);
        assert!(matches!(many, Err(DecodeError::Truncated { .. })));
    }

    #[test]
    fn no_chunks_is_a_tile_too() {
        let mut bytes = Vec::new();
        encode_chunk_count(0, &mut bytes);
        assert_eq!(all(&bytes, Some(0)), Ok(vec![]));
    }

    #[test]
    fn lengths_of_a_tile_beyond_memory_do_not_overflow() {
        let mut decoder = TileDecoder::new(u64::MAX);
        let mut bytes = [0xff; 20];
        bytes[..8].copy_from_slice(&(u64::MAX / 12 - 1).to_le_bytes());
        let step = decoder.step(StoredBytes::whole(&bytes)).unwrap();
        let TileStep::NeedsRange { range, chunk } = step else {
            panic!("{step:?}");
        };
        assert_eq!(range, 20..20 + 2 * u64::from(u32::MAX) + 12);
        assert_eq!(chunk.unwrap().output(), 0..u64::from(u32::MAX));
    }

    /// Reads only what is needed, and at least `ahead` bytes at a time.
    fn streamed(
        mut decoder: TileDecoder<'_>,
        stored: &[u8],
        ahead: usize,
    ) -> (Vec<Range<u64>>, usize) {
        let (mut window, mut start) = (Vec::new(), 0);
        let (mut found, mut reads) = (Vec::new(), 0);
        loop {
            match decoder.step(StoredBytes::new(start, &window)).unwrap() {
                TileStep::Done => return (found, reads),
                TileStep::Chunk(chunk) => found.push(chunk.output_offset..chunk.output_end()),
                TileStep::NeedsRange { range, chunk } => {
                    reads += 1;
                    assert!(chunk.is_none_or(|c| c.body().start == range.start));
                    start = range.start;
                    let end = (start as usize + ahead).max(range.end as usize);
                    window = stored[start as usize..end.min(stored.len())].to_vec();
                }
            }
        }
    }

    #[test]
    fn a_chunk_takes_the_next_header_along() {
        let bytes = stored(&[(8, b"", b"abc"), (8, b"", b"def"), (8, b"", b"ghi")]);
        let decoder = TileDecoder::new(bytes.len() as u64).sized(24);
        // The number of chunks with the first header, then chunk after chunk.
        assert_eq!(streamed(decoder.clone(), &bytes, 0).1, 4);
        assert_eq!(streamed(decoder.clone(), &bytes, 100).1, 1);
        // What lies behind the last wanted chunk is not read: here 2 headers and a chunk.
        assert_eq!(
            streamed(decoder.wanting(&[5..6], 2), &bytes, 0),
            (vec![8..16], 3)
        );
    }

    #[test]
    fn a_chunk_that_the_caller_places_is_passed() {
        let bytes = stored(&[(3, b"", b"abc"), (3, b"x", b"de")]);
        let mut decoder = TileDecoder::new(bytes.len() as u64).sized(6);
        let step = decoder.step(StoredBytes::whole(&bytes[..20])).unwrap();
        let TileStep::NeedsRange {
            range,
            chunk: Some(place),
        } = step
        else {
            panic!("{step:?}");
        };
        assert_eq!((place.body(), place.is_plain()), (20..23, true));
        assert_eq!((place.output(), range), (0..3, 20..35));
        decoder.pass_chunk();
        let step = decoder.step(StoredBytes::whole(&bytes)).unwrap();
        assert!(matches!(step, TileStep::Chunk(c) if c.output_offset == 3 && c.metadata == b"x"));
        let end = decoder.step(StoredBytes::whole(&bytes));
        assert_eq!(end, Ok(TileStep::Done));
    }

    proptest! {
        #[test]
        fn wanted_chunks_are_those_that_hold_wanted_cells(
            lens in prop::collection::vec((0u32..6, 0usize..4, 0usize..9), 0..12),
            wanted in prop::collection::vec(any::<bool>(), 1..20),
            ahead in 0usize..60,
        ) {
            let bodies: Vec<_> = lens.iter().map(|(_, m, d)| (vec![1; *m], vec![2; *d])).collect();
            let chunks: Vec<_> = lens
                .iter()
                .zip(&bodies)
                .map(|((len, ..), (m, d))| (len * 3, m.as_slice(), d.as_slice()))
                .collect();
            let bytes = stored(&chunks);
            let total: u64 = lens.iter().map(|(len, ..)| u64::from(*len)).sum();
            let is_wanted = |cell: u64| wanted.get(cell as usize % wanted.len()) == Some(&true);
            let mut spans: Vec<Range<u64>> = Vec::new();
            for cell in (0..total).filter(|cell| is_wanted(*cell)) {
                match spans.last_mut() {
                    Some(span) if span.end == cell => span.end += 1,
                    _ => spans.push(cell..cell + 1),
                }
            }
            let decoder = TileDecoder::new(bytes.len() as u64).sized(total * 3);
            let whole: Vec<_> = decoder.clone().chunks(&bytes).map(Result::unwrap).collect();
            prop_assert_eq!(whole.len(), lens.len());
            let (streamed_all, _) = streamed(decoder.clone(), &bytes, ahead);
            prop_assert_eq!(streamed_all.len(), lens.len());

            let (found, _) = streamed(decoder.clone().wanting(&spans, 3), &bytes, ahead);
            let expected: Vec<_> = whole
                .iter()
                .map(|c| c.output_offset..c.output_end())
                .filter(|c| spans.iter().any(|s| s.start * 3 < c.end && s.end * 3 > c.start))
                .collect();
            prop_assert_eq!(&found, &expected);
            let in_memory = decoder.wanting(&spans, 3).chunks(&bytes);
            let in_memory: Vec<_> = in_memory.map(Result::unwrap).collect();
            prop_assert_eq!(in_memory.len(), expected.len());
        }
    }
}
