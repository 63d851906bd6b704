//! Running a pipeline: from stored chunks to cells and back.

use super::aes_gcm;
use super::checksum::Checksum;
use super::chunking::chunk_ends;
use super::compression::Compression;
use super::float_scale::FloatScale;
use super::open_chunk::OpenChunk;
use super::parts::{PartList, decode_each, original_len};
use super::scratch::sized;
use super::strings::{self, EncodedStrings};
use super::webp::Webp;
use super::{
    Filter, FilterContext, Pipeline, Scratch, bit_width_reduction, bitshuffle, byteshuffle,
    positive_delta, xor,
};
use crate::datatype::Datatype;
use crate::error::{DecodeError, Result};
use crate::tile::{Chunk, ChunkHeader, TileDecoder, encode_chunk_count, var_offsets};
use crate::wire::ByteReader;

/// What lies between two filters, or their metadata, may be so many times as long as the chunk, and
const MAX_GROWTH: u64 = 64;
/// so many bytes more. No sensible pipeline comes near; a hostile chunk could otherwise ask for 4
/// GiB.
const MAX_GROWTH_BYTES: u64 = 1 << 20;

/// How a filter takes part in a given chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Not at all.
    Passes,
    /// It looks at the data and leaves them.
    Checks,
    /// It makes new data.
    Transforms,
}

/// A filter at its place in a pipeline.
#[derive(Clone, Copy)]
struct Stage<'a> {
    filter: &'a Filter,
    /// The type of what the filter is given when data are written.
    datatype: Datatype,
    role: Role,
}

/// Where the data are after some filters were undone.
#[derive(Clone, Copy)]
enum Held {
    Stored,
    Scratch(usize),
    Out,
}

impl Held {
    /// The bytes, where they were not to be put in their final place; `scratch` is the first
    /// scratch buffer.
    fn bytes<'a>(self, chunk: &Chunk<'a>, scratch: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Scratch(len) => scratch.get(..len).unwrap_or_default(),
            Self::Stored | Self::Out => chunk.data,
        }
    }
}

/// Where the data are to go when all filters are undone.
enum Goal<'a> {
    Fill(&'a mut [u8]),
    KeepInScratch,
}

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
        let limit = growth_limit(out.len() as u64);
        self.undo(ctx, chunk, 0, Goal::Fill(out), limit, scratch)
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
        let limit = growth_limit(len as u64);
        let mut stages = (0..self.stage_count(ctx)).map(|i| (i, self.stage(ctx, i)));
        let first = stages.find(|(_, stage)| stage.role != Role::Passes);
        let mut value_size = 1;
        let mut held = None;
        if let Some((
            i,
            Stage {
                filter: Filter::Byteshuffle,
                datatype,
                ..
            },
        )) = first
            && len.is_multiple_of(datatype.size())
        {
            let (planes, metadata_at) =
                self.undo(ctx, chunk, i + 1, Goal::KeepInScratch, limit, scratch)?;
            let mut m = ByteReader::new(metadata_at.bytes(chunk, &scratch.metadata[0]));
            if byteshuffle::is_one_part(planes.bytes(chunk, &scratch.data[0]).len(), &mut m)? {
                value_size = datatype.size();
                held = Some(planes);
            }
        }
        let held = match held {
            Some(held) => held,
            None => {
                self.undo(ctx, chunk, 0, Goal::KeepInScratch, limit, scratch)?
                    .0
            }
        };
        let bytes = held.bytes(chunk, &scratch.data[0]);
        if bytes.len() != len {
            let reason = format!("{} bytes where the chunk has {len}", bytes.len());
            return Err(DecodeError::invalid("chunk data", 0, reason));
        }
        Ok(OpenChunk::new(bytes, value_size))
    }

    /// Whether chunks are stored as they are: no filter changes or checks them.
    #[must_use]
    pub fn stores_as_is(&self, ctx: &FilterContext<'_>) -> bool {
        (0..self.stage_count(ctx)).all(|i| self.stage(ctx, i).role == Role::Passes)
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
        let limit = growth_limit(data.len() as u64 + offsets.len() as u64 * 8);
        let strings = self.undo_to_strings(ctx, &chunk, limit, scratch)?;
        strings.header.check(data.len(), offsets.len())?;
        strings.decode(data, offsets)
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
        let growth = growth_limit(data_len.min(limit).saturating_add(limit));
        let strings = self.undo_to_strings(ctx, &chunk, growth, scratch)?;
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

    /// Undoes all filters but the first of a chunk of strings with their offsets.
    fn undo_to_strings<'a>(
        &'a self,
        ctx: &FilterContext<'_>,
        chunk: &Chunk<'a>,
        limit: u64,
        scratch: &'a mut Scratch,
    ) -> Result<EncodedStrings<'a>> {
        let Some(filter @ (Filter::Rle { .. } | Filter::Dictionary { .. })) = self.filters.first()
        else {
            return Err(DecodeError::invalid(
                "filter pipeline",
                0,
                "its first filter encodes no strings",
            ));
        };
        let (held, metadata_at) = self.undo(ctx, chunk, 1, Goal::KeepInScratch, limit, scratch)?;
        let data = held.bytes(chunk, &scratch.data[0]);
        EncodedStrings::read(filter, data, metadata_at.bytes(chunk, &scratch.metadata[0]))
    }

    /// The filter at place `i`; behind the last one encryption, where the context has a key.
    fn stage<'a>(&'a self, ctx: &FilterContext<'_>, i: usize) -> Stage<'a> {
        let before = self.filters.get(..i).unwrap_or(&self.filters);
        let datatype = before.iter().fold(ctx.datatype, |datatype, filter| {
            filter.output_datatype(datatype)
        });
        let filter = self.filters.get(i).unwrap_or(&Filter::Aes256Gcm);
        let role = match filter {
            Filter::None => Role::Passes,
            Filter::BitWidthReduction { .. }
                if !bit_width_reduction::works_on(datatype, ctx.version) =>
            {
                Role::Passes
            }
            Filter::PositiveDelta { .. } if !positive_delta::works_on(datatype, ctx.version) => {
                Role::Passes
            }
            Filter::ChecksumMd5 | Filter::ChecksumSha256 => Role::Checks,
            _ => Role::Transforms,
        };
        Stage {
            filter,
            datatype,
            role,
        }
    }

    /// Filters that run, implied encryption included.
    fn stage_count(&self, ctx: &FilterContext<'_>) -> usize {
        let implied = ctx.key.is_some() && !self.filters.contains(&Filter::Aes256Gcm);
        self.filters.len() + usize::from(implied)
    }

    /// Undoes the filters of a chunk from the last down to that at place `first`. Returns where
    /// data and metadata lie (in the first of two scratch buffers each, unless they are the stored
    /// ones).
    fn undo(
        &self,
        ctx: &FilterContext<'_>,
        chunk: &Chunk<'_>,
        first: usize,
        mut goal: Goal<'_>,
        limit: u64,
        scratch: &mut Scratch,
    ) -> Result<(Held, MetadataAt)> {
        let Scratch {
            skip_checksum_validation,
            codecs,
            data,
            metadata,
            ..
        } = scratch;
        let mut held = Held::Stored;
        let mut metadata_at = MetadataAt::Stored(0);
        let within = |what, len: u64| {
            if len > limit {
                return Err(DecodeError::LimitExceeded {
                    what,
                    asked: len,
                    limit,
                });
            }
            Ok(len as usize)
        };
        let last_to_transform = (first..self.stage_count(ctx))
            .find(|i| self.stage(ctx, *i).role == Role::Transforms)
            .unwrap_or(usize::MAX);

        for i in (first..self.stage_count(ctx)).rev() {
            let stage = self.stage(ctx, i);
            if stage.role == Role::Passes {
                continue;
            }
            let [data_from, data_to] = &mut *data;
            let [metadata_from, metadata_to] = &mut *metadata;
            let mut m = ByteReader::new(metadata_at.bytes(chunk, metadata_from));

            if stage.role == Role::Checks {
                let input = match (held, &goal) {
                    (Held::Stored, _) => chunk.data,
                    (Held::Scratch(len), _) => data_from.get(..len).unwrap_or_default(),
                    (Held::Out, Goal::Fill(out)) => &**out,
                    (Held::Out, Goal::KeepInScratch) => &[],
                };
                let kind = match stage.filter {
                    Filter::ChecksumMd5 => Checksum::Md5,
                    _ => Checksum::Sha256,
                };
                kind.verify(input, &mut m, *skip_checksum_validation)?;
                metadata_at = metadata_at.advanced(m.offset());
                continue;
            }

            let input = match held {
                Held::Stored => chunk.data,
                Held::Scratch(len) => data_from.get(..len).unwrap_or_default(),
                // Only the last filter to transform writes there.
                Held::Out => {
                    return Err(DecodeError::filter(
                        stage.filter.name(),
                        "nothing is left to undo",
                    ));
                }
            };
            let mut parts = None;
            let len = match stage.filter {
                Filter::BitWidthReduction { .. } => bit_width_reduction::decoded_len(&m)? as u64,
                Filter::FloatScale { .. } => float_scale(stage).decoded_len(input.len())? as u64,
                Filter::Webp { .. } if i == 0 => chunk.original_len.into(),
                Filter::Webp { .. } => {
                    return Err(DecodeError::filter("WEBP", "it is not the first filter"));
                }
                Filter::Aes256Gcm => original_len(
                    parts
                        .insert(PartList::read(&mut m, aes_gcm::ENTRY_LEN)?)
                        .data(),
                ),
                filter if filter.is_compressor() => {
                    original_len(parts.insert(PartList::read(&mut m, 8)?).data())
                }
                _ => input.len() as u64,
            };
            let (target, to_scratch) = match &mut goal {
                Goal::Fill(out) if i == last_to_transform => {
                    if len != out.len() as u64 {
                        let reason = format!("{len} bytes where the chunk has {}", out.len());
                        return Err(DecodeError::filter(stage.filter.name(), reason));
                    }
                    (&mut **out, false)
                }
                _ => (sized(data_to, within("filtered data", len)?), true),
            };

            if let Some(parts) = parts {
                // These filters took the metadata of those before them into the data.
                let metadata_len = within("filtered metadata", original_len(parts.metadata()))?;
                let metadata_target = sized(metadata_to, metadata_len);
                let name = stage.filter.name();
                if let Some(mut compression) =
                    Compression::of(stage.filter, stage.datatype, ctx, codecs)
                {
                    let mut decode =
                        |input: &[u8], out: &mut [u8], _: &[u8]| compression.decompress(input, out);
                    let rest =
                        decode_each(name, parts.metadata(), input, metadata_target, &mut decode)?;
                    decode_each(name, parts.data(), rest, target, &mut decode)?;
                } else {
                    let cipher = aes_gcm::cipher(ctx.key)?;
                    let decode = |input: &[u8], out: &mut [u8], entry: &[u8]| {
                        aes_gcm::decrypt(&cipher, input, out, entry)
                    };
                    let rest = decode_each(name, parts.metadata(), input, metadata_target, decode)?;
                    decode_each(name, parts.data(), rest, target, decode)?;
                }
                metadata.swap(0, 1);
                metadata_at = MetadataAt::Scratch(0, metadata_len);
            } else {
                let size = stage.datatype.size();
                match stage.filter {
                    Filter::BitWidthReduction { .. } => {
                        bit_width_reduction::decode(stage.datatype, input, &mut m, target)?;
                    }
                    Filter::PositiveDelta { .. } => {
                        positive_delta::decode(stage.datatype, input, &mut m, target)?;
                    }
                    Filter::Byteshuffle => byteshuffle::decode(size, input, &mut m, target)?,
                    Filter::Bitshuffle => bitshuffle::decode(size, input, &mut m, target)?,
                    Filter::Xor => xor::decode(stage.datatype, input, &mut m, target)?,
                    Filter::FloatScale { .. } => {
                        float_scale(stage).decode(input, &mut m, target)?;
                    }
                    _ => webp(stage.filter)?.decode(input, &mut m, target)?,
                }
                metadata_at = metadata_at.advanced(m.offset());
            }
            if to_scratch {
                data.swap(0, 1);
                held = Held::Scratch(len as usize);
            } else {
                held = Held::Out;
            }
        }

        if let (Goal::Fill(out), Held::Stored) = (goal, held) {
            if out.len() != chunk.data.len() {
                let reason = format!(
                    "{} bytes where the chunk has {}",
                    chunk.data.len(),
                    out.len()
                );
                return Err(DecodeError::invalid("chunk data", 0, reason));
            }
            out.copy_from_slice(chunk.data);
        }
        Ok((held, metadata_at))
    }
}

/// Where the metadata not yet used begin.
#[derive(Clone, Copy)]
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

fn growth_limit(original_len: u64) -> u64 {
    original_len
        .saturating_mul(MAX_GROWTH)
        .saturating_add(MAX_GROWTH_BYTES)
}

fn float_scale(stage: Stage<'_>) -> FloatScale {
    let float_size = stage.datatype.size();
    match *stage.filter {
        Filter::FloatScale {
            scale,
            offset,
            byte_width,
        } => FloatScale {
            scale,
            offset,
            byte_width,
            float_size,
        },
        _ => FloatScale {
            scale: 1.0,
            offset: 0.0,
            byte_width: 8,
            float_size,
        },
    }
}

fn webp(filter: &Filter) -> Result<Webp> {
    match *filter {
        Filter::Webp {
            quality,
            input_format,
            lossless,
            y_extent,
            x_extent,
        } => Ok(Webp {
            quality,
            format: input_format,
            lossless,
            rows: y_extent,
            row_len: x_extent,
        }),
        _ => Err(DecodeError::filter(filter.name(), "it cannot stand here")),
    }
}

impl Pipeline {
    /// Filters a tile and appends it as it is stored to `out`.
    ///
    /// `data` are the cells. Variable-length data need `offsets`, where each cell starts: chunks
    /// then hold whole cells, and strings are encoded with them where
    /// [`Self::keeps_offsets_in_data`] says so (the offsets file then gets
    /// a tile of no chunks, [`encode_chunk_count`]).
    pub fn encode_tile(
        &self,
        ctx: &FilterContext<'_>,
        data: &[u8],
        offsets: Option<&[u64]>,
        out: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        if let Some(offsets) = offsets {
            var_offsets::validate(offsets, data.len() as u64)?;
        }
        let in_data = if self.keeps_offsets_in_data(ctx) {
            offsets
        } else {
            None
        };
        let ends = chunk_ends(self, ctx, data.len(), offsets);
        encode_chunk_count(ends.len(), out);
        let mut start = 0;
        for end in ends {
            let chunk = data.get(start..end).unwrap_or_default();
            self.encode_chunk(ctx, chunk, in_data, out, scratch)?;
            start = end;
        }
        Ok(())
    }

    /// Filters one chunk of a tile and appends it as it is stored to `out`. A stored tile is the
    /// number of its chunks as `u64` and the chunks; they do not depend on each other.
    ///
    /// `offsets`, where each cell starts, belong to strings that keep them
    /// ([`Self::keeps_offsets_in_data`]) only.
    pub fn encode_chunk(
        &self,
        ctx: &FilterContext<'_>,
        chunk: &[u8],
        offsets: Option<&[u64]>,
        out: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let too_long = |_| DecodeError::invalid("chunk", 0, "longer than 4 GiB");
        let original_len = u32::try_from(chunk.len()).map_err(too_long)?;
        let limit = growth_limit(
            chunk.len() as u64 + offsets.map_or(0, |offsets| offsets.len() as u64 * 8),
        );
        let Scratch {
            codecs,
            data,
            metadata,
            part_lens,
            ..
        } = scratch;
        metadata.iter_mut().for_each(Vec::clear);
        part_lens.iter_mut().for_each(Vec::clear);
        let mut in_scratch = false;
        // The reference drops an empty buffer where a filter only hands it on.
        let mut has_part = true;

        for i in 0..self.stage_count(ctx) {
            let stage = self.stage(ctx, i);
            let [data_from, data_to] = &mut *data;
            let [metadata_from, metadata_to] = &mut *metadata;
            let [lens_from, lens_to] = &mut *part_lens;
            let input = if in_scratch {
                data_from.as_slice()
            } else {
                chunk
            };
            if stage.role == Role::Passes {
                has_part &= !input.is_empty();
                continue;
            }
            metadata_to.clear();
            lens_to.clear();
            let old_parts = || PartSlices {
                bytes: metadata_from,
                lens: lens_from.iter(),
            };
            let part = has_part.then_some(input);

            if stage.role == Role::Checks {
                let kind = match stage.filter {
                    Filter::ChecksumMd5 => Checksum::Md5,
                    _ => Checksum::Sha256,
                };
                kind.encode(old_parts(), part, metadata_to);
                keep_old_parts(metadata_to, lens_to, metadata_from, lens_from);
                metadata.swap(0, 1);
                part_lens.swap(0, 1);
                has_part &= !input.is_empty();
                continue;
            }

            let compresses = stage.filter.is_compressor();
            if let (Some(_), 1.., Filter::Rle { .. } | Filter::Dictionary { .. }) =
                (offsets, i, stage.filter)
            {
                return Err(DecodeError::filter(
                    stage.filter.name(),
                    "strings can be encoded once, by the first filter",
                ));
            }
            // Filters that keep the length overwrite what is there; clearing it would have it
            // zeroed again.
            if !matches!(
                stage.filter,
                Filter::Byteshuffle | Filter::Bitshuffle | Filter::Xor
            ) {
                data_to.clear();
            }
            if let (Some(offsets), 0) = (offsets, i) {
                strings::encode(stage.filter, input, offsets, metadata_to, data_to)?;
                lens_to.push(metadata_to.len());
            } else if compresses || *stage.filter == Filter::Aes256Gcm {
                metadata_to.extend((lens_from.len() as u32).to_le_bytes());
                metadata_to.extend(u32::from(has_part).to_le_bytes());
                if let Some(mut compression) =
                    Compression::of(stage.filter, stage.datatype, ctx, codecs)
                {
                    for part in old_parts().chain(part) {
                        compression.compress_part(part, metadata_to, data_to)?;
                    }
                } else {
                    let cipher = aes_gcm::cipher(ctx.key)?;
                    for part in old_parts().chain(part) {
                        aes_gcm::encrypt(&cipher, part, metadata_to, data_to)?;
                    }
                }
                lens_to.push(metadata_to.len());
            } else {
                let (datatype, size) = (stage.datatype, stage.datatype.size());
                match *stage.filter {
                    Filter::BitWidthReduction { max_window } => {
                        bit_width_reduction::encode(
                            datatype,
                            max_window,
                            input,
                            metadata_to,
                            data_to,
                        )?;
                    }
                    Filter::PositiveDelta { max_window } => {
                        positive_delta::encode(datatype, max_window, input, metadata_to, data_to)?;
                    }
                    Filter::Byteshuffle => byteshuffle::encode(size, input, metadata_to, data_to),
                    Filter::Bitshuffle => bitshuffle::encode(size, input, metadata_to, data_to),
                    Filter::Xor => xor::encode(datatype, input, metadata_to, data_to)?,
                    Filter::FloatScale { .. } => {
                        float_scale(stage).encode(input, metadata_to, data_to)?;
                    }
                    _ => webp(stage.filter)?.encode(input, metadata_to, data_to)?,
                }
                keep_old_parts(metadata_to, lens_to, metadata_from, lens_from);
            }
            // What could not be read again must not be written.
            for len in [data_to.len(), metadata_to.len()] {
                if len as u64 > limit {
                    let what = "filtered chunk";
                    return Err(DecodeError::LimitExceeded {
                        what,
                        asked: len as u64,
                        limit,
                    });
                }
            }
            data.swap(0, 1);
            metadata.swap(0, 1);
            part_lens.swap(0, 1);
            in_scratch = true;
            has_part = true;
        }

        let filtered = if in_scratch {
            data[0].as_slice()
        } else {
            chunk
        };
        let filtered_len = u32::try_from(filtered.len()).map_err(too_long)?;
        let metadata_len = u32::try_from(metadata[0].len()).map_err(too_long)?;
        out.extend(
            ChunkHeader {
                original_len,
                filtered_len,
                metadata_len,
            }
            .encode(),
        );
        out.extend_from_slice(&metadata[0]);
        out.extend_from_slice(filtered);
        Ok(())
    }
}

/// The parts of metadata, newest filter first.
struct PartSlices<'a> {
    bytes: &'a [u8],
    lens: std::slice::Iter<'a, usize>,
}

impl<'a> Iterator for PartSlices<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (part, rest) = self.bytes.split_at_checked(*self.lens.next()?)?;
        self.bytes = rest;
        Some(part)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.lens.size_hint()
    }
}

impl ExactSizeIterator for PartSlices<'_> {}

/// Ends the new part of metadata and appends the old ones.
fn keep_old_parts(to: &mut Vec<u8>, lens_to: &mut Vec<usize>, from: &[u8], lens_from: &[usize]) {
    lens_to.push(to.len());
    to.extend_from_slice(from);
    lens_to.extend_from_slice(lens_from);
}
