//! Undoing a pipeline: from stored chunks to cells.

use super::codecs::Codecs;
use super::compression::Compressor;
use super::growth::Growth;
use super::open_chunk::OpenChunk;
use super::parts::{PartList, decode_each, original_len};
use super::scratch::sized;
use super::step::{FilterStep, Transform};
use super::strings::{EncodedStrings, StringEncoding};
use super::word_sink::StringWords;
use super::{Filter, FilterContext, Pipeline, Scratch, aes_gcm, byteshuffle};
use crate::error::{DecodeError, Result};
use crate::filter::checksum::Checksum;
use crate::tile::{Chunk, TileDecoder};
use crate::wire::ByteReader;

impl Pipeline {
    /// Undoes the filters of one chunk, straight into `out`, which must be [`Chunk::original_len`]
    /// bytes long.
    ///
    /// Chunks do not depend on each other: decode any of them, on any thread. String tiles that
    /// hold their own offsets ([`Self::keeps_offsets_in_data`]) need [`Self::decode_string_tile`].
    pub fn decode_chunk(
        &self,
        ctx: &FilterContext<'_>,
        chunk: &Chunk<'_>,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        if out.len() != chunk.original_len as usize {
            let reason = format!("it holds {} bytes, not {}", chunk.original_len, out.len());
            return Err(DecodeError::invalid("chunk", 0, reason));
        }
        let len = out.len() as u64;
        self.undo(ctx, chunk, 0, Goal::Fill(out), len, scratch)
            .map(|_| ())
    }

    /// Undoes the filters of one chunk, whose cells are then to be put in place by
    /// [`OpenChunk::copy_to`].
    ///
    /// As [`Self::decode_chunk`], where cells go to more than one place.
    pub fn open_chunk<'a>(
        &self,
        ctx: &FilterContext<'_>,
        chunk: &Chunk<'a>,
        scratch: &'a mut Scratch,
    ) -> Result<OpenChunk<'a>> {
        let len = chunk.original_len as usize;
        let mut steps = self.steps(ctx).enumerate();
        let first = steps.find(|(_, step)| *step != FilterStep::Skip);

        // 1. All filters but byteshuffle, where that is the first: its planes go to their places
        // later.
        if let Some((i, FilterStep::Transform(Transform::Byteshuffle { value_size }))) = first
            && len.is_multiple_of(value_size)
        {
            let (planes, metadata_at) =
                self.undo(ctx, chunk, i + 1, Goal::Scratch, len as u64, scratch)?;
            let mut m = ByteReader::new(metadata_at.bytes(chunk, &scratch.metadata[0]));
            let planes_len = planes.bytes(chunk, &scratch.data[0]).len();
            if byteshuffle::is_one_part(planes_len, &mut m)? {
                check_len(planes_len, len)?;
                let bytes = planes.bytes(chunk, &scratch.data[0]);
                return Ok(OpenChunk::new(bytes, value_size));
            }
        }

        // 2. Otherwise all of them.
        let (cells, _) = self.undo(ctx, chunk, 0, Goal::Scratch, len as u64, scratch)?;
        let bytes = cells.bytes(chunk, &scratch.data[0]);
        check_len(bytes.len(), len)?;
        Ok(OpenChunk::new(bytes, 1))
    }

    /// Undoes the filters of all chunks of a stored tile; `out` must be as long as the unfiltered
    /// tile.
    pub fn decode_tile(
        &self,
        ctx: &FilterContext<'_>,
        stored: &[u8],
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let chunks = TileDecoder::new(stored.len() as u64).sized(out.len() as u64);
        let mut rest = out;
        for chunk in chunks.chunks(stored) {
            let chunk = chunk?;
            // No chunk leaves the tile.
            let (place, later) = rest.split_at_mut(chunk.original_len as usize);
            self.decode_chunk(ctx, &chunk, place, scratch)?;
            rest = later;
        }
        Ok(())
    }

    /// Undoes the filters of a string tile that holds its own offsets
    /// ([`Self::keeps_offsets_in_data`]), into `data` (as long as the unfiltered tile) and
    /// `offsets` (one a cell, in order and within the data).
    pub fn decode_string_tile(
        &self,
        ctx: &FilterContext<'_>,
        stored: &[u8],
        data: &mut [u8],
        offsets: &mut [u64],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let chunk = only_chunk(stored, Some(data.len() as u64))?;
        let len = data.len() as u64 + offsets.len() as u64 * 8;
        let strings = self.undo_to_strings(ctx, &chunk, len, scratch)?;
        strings.header.check(data.len(), offsets.len())?;
        strings.decode(data, offsets)
    }

    /// As [`Self::decode_string_tile`], to words: each string that differs is made once, and `ids`,
    /// one a cell, take which of them it is, as little-endian numbers. The unfiltered tile is
    /// `data_len` bytes long.
    pub fn decode_string_words(
        &self,
        ctx: &FilterContext<'_>,
        stored: &[u8],
        data_len: usize,
        ids: &mut [[u8; 4]],
        scratch: &mut Scratch,
    ) -> Result<StringWords> {
        let chunk = only_chunk(stored, Some(data_len as u64))?;
        let len = (data_len as u64).saturating_add(ids.len() as u64 * 8);
        let strings = self.undo_to_strings(ctx, &chunk, len, scratch)?;
        strings.header.check(data_len, ids.len())?;
        strings.decode_words(data_len, ids)
    }

    /// As [`Self::decode_string_tile`], where the sizes are not known: makes data and offsets of at
    /// most `limit` bytes each.
    pub fn decode_string_tile_owned(
        &self,
        ctx: &FilterContext<'_>,
        stored: &[u8],
        limit: u64,
        scratch: &mut Scratch,
    ) -> Result<(Vec<u8>, Vec<u64>)> {
        let chunk = only_chunk(stored, None)?;
        let data_len = u64::from(chunk.original_len);
        let len = data_len.min(limit).saturating_add(limit);
        let strings = self.undo_to_strings(ctx, &chunk, len, scratch)?;
        let cells = strings.header.cells()?;
        let what = "string tile";
        for asked in [data_len, cells as u64 * 8] {
            if asked > limit {
                return Err(DecodeError::LimitExceeded { what, asked, limit });
            }
        }
        let too_large = |_| DecodeError::LimitExceeded {
            what,
            asked: data_len,
            limit,
        };
        let mut data = vec![0; usize::try_from(data_len).map_err(too_large)?];
        let mut offsets = vec![0; cells];
        strings.header.check(data.len(), cells)?;
        strings.decode(&mut data, &mut offsets)?;
        Ok((data, offsets))
    }

    /// Undoes all filters but the first of a chunk of strings with their offsets, at most `len` bytes
    /// together.
    fn undo_to_strings<'a>(
        &'a self,
        ctx: &FilterContext<'_>,
        chunk: &Chunk<'a>,
        len: u64,
        scratch: &'a mut Scratch,
    ) -> Result<EncodedStrings<'a>> {
        let encoding = self.filters.first().and_then(StringEncoding::of);
        let Some(encoding) = encoding else {
            let reason = "its first filter encodes no strings";
            return Err(DecodeError::invalid("filter pipeline", 0, reason));
        };
        let (data_at, metadata_at) = self.undo(ctx, chunk, 1, Goal::Scratch, len, scratch)?;
        let data = data_at.bytes(chunk, &scratch.data[0]);
        let metadata = metadata_at.bytes(chunk, &scratch.metadata[0]);
        EncodedStrings::read(encoding, data, metadata)
    }

    /// Undoes the filters of a chunk, which was `len` bytes before the first filter, from the last
    /// down to that at place `first`. Returns where data and metadata lie (in the first of two
    /// scratch buffers each, unless they are the stored ones).
    fn undo(
        &self,
        ctx: &FilterContext<'_>,
        chunk: &Chunk<'_>,
        first: usize,
        goal: Goal<'_>,
        len: u64,
        scratch: &mut Scratch,
    ) -> Result<(DataAt, MetadataAt)> {
        // Each filter is looked at once: there may be many, and a tile has many chunks.
        let mut steps = std::mem::take(&mut scratch.steps);
        steps.clear();
        let mut growth = Growth::of(len);
        steps.extend(self.steps(ctx).map(|step| {
            let before = growth;
            growth = growth.behind(step);
            (step, before.most(len))
        }));
        let undone = self.undo_steps(ctx, chunk, first, goal, &steps, scratch);
        scratch.steps = steps;
        undone
    }

    /// As [`Self::undo`]; `steps` are all filters, each with the most that there was before it.
    fn undo_steps(
        &self,
        ctx: &FilterContext<'_>,
        chunk: &Chunk<'_>,
        first: usize,
        goal: Goal<'_>,
        steps: &[(FilterStep, Growth)],
        scratch: &mut Scratch,
    ) -> Result<(DataAt, MetadataAt)> {
        let places = || steps.iter().enumerate().skip(first);
        let last_to_change = places()
            .find(|(_, (step, _))| step.changes_data())
            .map_or(usize::MAX, |(i, _)| i);
        let mut undoing = Undoing {
            chunk,
            goal,
            limit: Growth::NONE,
            scratch,
            data: DataAt::Stored,
            metadata: MetadataAt::Stored(0),
            is_last: false,
        };
        for (i, (step, limit)) in places().rev() {
            let name = self.filters.get(i).map_or(aes_gcm::NAME, Filter::name);
            undoing.is_last = i == last_to_change;
            undoing.limit = *limit;
            match *step {
                FilterStep::Skip => {}
                FilterStep::Check(checksum) => undoing.check(checksum)?,
                FilterStep::Transform(Transform::Webp(_)) if i > 0 => {
                    return Err(DecodeError::filter(name, "it is not the first filter"));
                }
                FilterStep::Transform(transform) => undoing.transform(name, &transform)?,
                FilterStep::Compress(compressor) => {
                    undoing.parts(name, Compressor::ENTRY_LEN, |codecs, input, out, _| {
                        compressor.decompress(input, out, codecs)
                    })?;
                }
                FilterStep::Encrypt => {
                    let cipher = aes_gcm::cipher(ctx.key)?;
                    undoing.parts(name, aes_gcm::ENTRY_LEN, |_, input, out, entry| {
                        aes_gcm::decrypt(&cipher, input, out, entry)
                    })?;
                }
            }
        }
        undoing.finish()
    }
}

/// Where the data are after some filters were undone.
#[derive(Debug, Clone, Copy)]
enum DataAt {
    Stored,
    /// In the first scratch buffer, so many bytes.
    Scratch(usize),
    Out,
}

impl DataAt {
    /// The bytes, where they were not to be put in their final place; `scratch` is the first
    /// scratch buffer.
    fn bytes<'a>(self, chunk: &Chunk<'a>, scratch: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Scratch(len) => scratch.get(..len).unwrap_or_default(),
            Self::Stored | Self::Out => chunk.data,
        }
    }
}

/// Where the metadata not yet used begin.
#[derive(Debug, Clone, Copy)]
enum MetadataAt {
    Stored(usize),
    /// From here, up to there.
    Scratch(usize, usize),
}

impl MetadataAt {
    /// The metadata; `scratch` is the first scratch buffer.
    fn bytes<'a>(self, chunk: &Chunk<'a>, scratch: &'a [u8]) -> &'a [u8] {
        let bytes = match self {
            Self::Stored(at) => chunk.metadata.get(at..),
            Self::Scratch(at, len) => scratch.get(at..len),
        };
        bytes.unwrap_or_default()
    }

    fn advanced(self, by: usize) -> Self {
        match self {
            Self::Stored(at) => Self::Stored(at + by),
            Self::Scratch(at, len) => Self::Scratch(at + by, len),
        }
    }
}

/// Where the data are to go when all filters are undone.
enum Goal<'g> {
    Fill(&'g mut [u8]),
    Scratch,
}

impl Goal<'_> {
    /// The place for the `len` bytes that a filter is undone to: the final one for the last filter,
    /// otherwise `buffer`.
    fn place<'p>(
        &'p mut self,
        is_last: bool,
        name: &'static str,
        len: u64,
        limit: u64,
        buffer: &'p mut Vec<u8>,
    ) -> Result<&'p mut [u8]> {
        match self {
            Self::Fill(out) if is_last => {
                if len != out.len() as u64 {
                    let reason = format!("{len} bytes where the chunk has {}", out.len());
                    return Err(DecodeError::filter(name, reason));
                }
                Ok(out)
            }
            Self::Fill(_) | Self::Scratch => {
                Ok(sized(buffer, within("filtered data", len, limit)?))
            }
        }
    }
}

/// A chunk on its way back through its filters.
struct Undoing<'u> {
    chunk: &'u Chunk<'u>,
    goal: Goal<'u>,
    /// The most that there was before the filter that is undone.
    limit: Growth,
    scratch: &'u mut Scratch,
    data: DataAt,
    metadata: MetadataAt,
    /// Whether no filter in front of this one makes new data.
    is_last: bool,
}

impl Undoing<'_> {
    fn check(&mut self, checksum: Checksum) -> Result<()> {
        let Scratch {
            skip_checksum_validation,
            data,
            metadata,
            ..
        } = &*self.scratch;
        let input = match (self.data, &self.goal) {
            (DataAt::Out, Goal::Fill(out)) => &**out,
            (DataAt::Stored | DataAt::Scratch(_) | DataAt::Out, _) => {
                self.data.bytes(self.chunk, &data[0])
            }
        };
        let mut m = ByteReader::new(self.metadata.bytes(self.chunk, &metadata[0]));
        checksum.verify(input, &mut m, *skip_checksum_validation)?;
        self.metadata = self.metadata.advanced(m.offset());
        Ok(())
    }

    fn transform(&mut self, name: &'static str, transform: &Transform) -> Result<()> {
        let Scratch { data, metadata, .. } = &mut *self.scratch;
        let [data_from, data_to] = data;
        let input = self.data.bytes(self.chunk, data_from);
        let mut m = ByteReader::new(self.metadata.bytes(self.chunk, &metadata[0]));
        let len = transform.decoded_len(input.len(), &m, self.chunk.original_len)?;
        let place = self
            .goal
            .place(self.is_last, name, len, self.limit.data, data_to)?;
        transform.decode(input, &mut m, place)?;
        self.metadata = self.metadata.advanced(m.offset());
        self.placed(len);
        Ok(())
    }

    /// Undoes a filter that took the metadata of those before it into its data, with `decode` for
    /// each part: input, output and the rest of its entry.
    fn parts(
        &mut self,
        name: &'static str,
        entry_len: usize,
        mut decode: impl FnMut(&mut Codecs, &[u8], &mut [u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Scratch {
            codecs,
            data,
            metadata,
            ..
        } = &mut *self.scratch;
        let [data_from, data_to] = data;
        let [metadata_from, metadata_to] = &mut *metadata;
        let input = self.data.bytes(self.chunk, data_from);
        let mut m = ByteReader::new(self.metadata.bytes(self.chunk, metadata_from));
        let parts = PartList::read(&mut m, entry_len)?;
        let len = original_len(parts.data());
        let place = self
            .goal
            .place(self.is_last, name, len, self.limit.data, data_to)?;
        let metadata_len = original_len(parts.metadata());
        let metadata_len = within("filtered metadata", metadata_len, self.limit.metadata)?;
        let metadata_place = sized(metadata_to, metadata_len);
        let mut decode =
            |input: &[u8], out: &mut [u8], entry: &[u8]| decode(codecs, input, out, entry);
        let rest = decode_each(name, parts.metadata(), input, metadata_place, &mut decode)?;
        decode_each(name, parts.data(), rest, place, &mut decode)?;
        metadata.swap(0, 1);
        self.metadata = MetadataAt::Scratch(0, metadata_len);
        self.placed(len);
        Ok(())
    }

    /// The data are where [`Goal::place`] had room for them.
    fn placed(&mut self, len: u64) {
        self.data = match self.goal {
            Goal::Fill(_) if self.is_last => DataAt::Out,
            Goal::Fill(_) | Goal::Scratch => {
                self.scratch.data.swap(0, 1);
                DataAt::Scratch(len as usize)
            }
        };
    }

    fn finish(self) -> Result<(DataAt, MetadataAt)> {
        if let (Goal::Fill(out), DataAt::Stored) = (self.goal, self.data) {
            check_len(self.chunk.data.len(), out.len())?;
            out.copy_from_slice(self.chunk.data);
        }
        Ok((self.data, self.metadata))
    }
}

fn within(what: &'static str, asked: u64, limit: u64) -> Result<usize> {
    if asked > limit {
        return Err(DecodeError::LimitExceeded { what, asked, limit });
    }
    Ok(asked as usize)
}

fn check_len(found: usize, len: usize) -> Result<()> {
    if found != len {
        let reason = format!("{found} bytes where the chunk has {len}");
        return Err(DecodeError::invalid("chunk data", 0, reason));
    }
    Ok(())
}

/// The chunk of a tile of strings with their offsets, which has no other.
fn only_chunk(stored: &[u8], original_len: Option<u64>) -> Result<Chunk<'_>> {
    let mut decoder = TileDecoder::new(stored.len() as u64);
    if let Some(len) = original_len {
        decoder = decoder.sized(len);
    }
    let mut chunks = decoder.chunks(stored);
    let first = chunks.next().transpose()?;
    let others = chunks.try_fold(0u64, |count, chunk| chunk.map(|_| count + 1))?;
    match first {
        Some(chunk) if others == 0 => Ok(chunk),
        first => {
            let count = others + u64::from(first.is_some());
            let reason = format!("{count} chunks of strings with offsets instead of one");
            Err(DecodeError::invalid("tile", 0, reason))
        }
    }
}
