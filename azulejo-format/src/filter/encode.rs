//! Running a pipeline: from cells to stored chunks.

use super::checksum::Checksum;
use super::chunking::chunk_ends;
use super::codecs::Codecs;
use super::growth::Growth;
use super::step::{FilterStep, Transform};
use super::strings::{self, StringEncoding};
use super::{Filter, FilterContext, Pipeline, Scratch, aes_gcm};
use crate::error::{DecodeError, Result};
use crate::tile::{ChunkHeader, encode_chunk_count, var_offsets};

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
    /// number of its chunks ([`encode_chunk_count`]) and the chunks; they do not depend on each
    /// other.
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
        let offsets_len = offsets.map_or(0, |offsets| offsets.len() as u64 * 8);
        let len = chunk.len() as u64 + offsets_len;
        let mut filtering = Filtering::new(chunk, scratch);

        let mut growth = Growth::of(len);
        for (i, step) in self.steps(ctx).enumerate() {
            let filter = self.filters.get(i);
            let name = filter.map_or(aes_gcm::NAME, Filter::name);
            growth = growth.behind(step);
            let encoding = filter.and_then(StringEncoding::of);
            match (step, offsets) {
                (FilterStep::Skip, _) => {
                    filtering.has_part &= !filtering.input().is_empty();
                    continue;
                }
                (FilterStep::Check(checksum), _) => {
                    filtering.check(checksum);
                    continue;
                }
                (_, Some(offsets)) if i == 0 => {
                    filtering.strings(name, encoding, offsets)?;
                }
                (_, Some(_)) if encoding.is_some() => {
                    let reason = "strings can be encoded once, by the first filter";
                    return Err(DecodeError::filter(name, reason));
                }
                (FilterStep::Transform(transform), _) => filtering.transform(&transform)?,
                (FilterStep::Compress(compressor), _) => {
                    filtering.parts(|codecs, part, metadata, data| {
                        compressor.compress_part(name, part, metadata, data, codecs)
                    })?;
                }
                (FilterStep::Encrypt, _) => {
                    let cipher = aes_gcm::cipher(ctx.key)?;
                    filtering.parts(|_, part, metadata, data| {
                        aes_gcm::encrypt(&cipher, part, metadata, data)
                    })?;
                }
            }
            filtering.filtered(growth.most(len))?;
        }

        let (metadata, filtered) = filtering.finish();
        let header = ChunkHeader {
            original_len,
            filtered_len: u32::try_from(filtered.len()).map_err(too_long)?,
            metadata_len: u32::try_from(metadata.len()).map_err(too_long)?,
        };
        out.extend(header.encode());
        out.extend_from_slice(metadata);
        out.extend_from_slice(filtered);
        Ok(())
    }
}

/// A chunk on its way through its filters: each takes from the first of two scratch buffers and
/// fills the second.
struct Filtering<'f> {
    chunk: &'f [u8],
    codecs: &'f mut Codecs,
    data: &'f mut [Vec<u8>; 2],
    metadata: &'f mut [Vec<u8>; 2],
    part_lens: &'f mut [Vec<usize>; 2],
    /// Whether a filter made new data.
    in_scratch: bool,
    /// Whether the data are a part: the reference drops an empty buffer where a filter only hands
    /// it on.
    has_part: bool,
}

impl<'f> Filtering<'f> {
    fn new(chunk: &'f [u8], scratch: &'f mut Scratch) -> Self {
        let Scratch {
            skip_checksum_validation: _,
            codecs,
            data,
            metadata,
            part_lens,
            steps: _,
        } = scratch;
        metadata.iter_mut().for_each(Vec::clear);
        part_lens.iter_mut().for_each(Vec::clear);
        Self {
            chunk,
            codecs,
            data,
            metadata,
            part_lens,
            in_scratch: false,
            has_part: true,
        }
    }

    fn input(&self) -> &[u8] {
        if self.in_scratch {
            &self.data[0]
        } else {
            self.chunk
        }
    }

    fn check(&mut self, checksum: Checksum) {
        let is_empty = self.input().is_empty();
        let parts = self.begin(false);
        checksum.encode(parts.old, parts.data, parts.metadata_to);
        self.add_old_parts();
        self.metadata.swap(0, 1);
        self.part_lens.swap(0, 1);
        self.has_part &= !is_empty;
    }

    fn strings(
        &mut self,
        name: &'static str,
        encoding: Option<StringEncoding>,
        offsets: &[u64],
    ) -> Result<()> {
        let encoding = encoding
            .ok_or_else(|| DecodeError::filter(name, "RLE or dictionary must come before it"))?;
        let parts = self.begin(true);
        let (metadata, data) = (parts.metadata_to, parts.data_to);
        strings::encode(encoding, parts.input, offsets, metadata, data)?;
        let len = metadata.len();
        self.part_lens[1].push(len);
        Ok(())
    }

    fn transform(&mut self, transform: &Transform) -> Result<()> {
        let parts = self.begin(!transform.overwrites());
        transform.encode(parts.input, parts.metadata_to, parts.data_to)?;
        self.add_old_parts();
        Ok(())
    }

    /// Encodes the metadata and the data with `encode`, which appends the entry of each to the
    /// metadata.
    fn parts(
        &mut self,
        mut encode: impl FnMut(&mut Codecs, &[u8], &mut Vec<u8>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let parts = self.begin(true);
        let metadata = parts.metadata_to;
        metadata.extend((parts.old.len() as u32).to_le_bytes());
        metadata.extend(u32::from(parts.data.is_some()).to_le_bytes());
        for part in parts.old.chain(parts.data) {
            encode(parts.codecs, part, metadata, parts.data_to)?;
        }
        let len = metadata.len();
        self.part_lens[1].push(len);
        Ok(())
    }

    /// What a filter takes, and where it puts what it makes; `clears` the place for its data.
    fn begin(&mut self, clears: bool) -> FilterParts<'_> {
        let [data_from, data_to] = &mut *self.data;
        let [metadata_from, metadata_to] = &mut *self.metadata;
        let [lens_from, lens_to] = &mut *self.part_lens;
        metadata_to.clear();
        lens_to.clear();
        if clears {
            data_to.clear();
        }
        let input = if self.in_scratch {
            data_from.as_slice()
        } else {
            self.chunk
        };
        FilterParts {
            codecs: &mut *self.codecs,
            input,
            data: self.has_part.then_some(input),
            old: PartSlices {
                bytes: metadata_from,
                lens: lens_from.iter(),
            },
            metadata_to,
            data_to,
        }
    }

    /// Ends the new part of metadata and appends the old ones.
    fn add_old_parts(&mut self) {
        let [metadata_from, metadata_to] = &mut *self.metadata;
        let [lens_from, lens_to] = &mut *self.part_lens;
        lens_to.push(metadata_to.len());
        metadata_to.extend_from_slice(metadata_from);
        lens_to.extend_from_slice(lens_from);
    }

    /// What a filter made is what the next one takes.
    fn filtered(&mut self, limit: Growth) -> Result<()> {
        // What could not be read again must not be written.
        for (made, limit) in [(&self.data, limit.data), (&self.metadata, limit.metadata)] {
            let len = made[1].len();
            if len as u64 > limit {
                return Err(DecodeError::LimitExceeded {
                    what: "filtered chunk",
                    asked: len as u64,
                    limit,
                });
            }
        }
        self.data.swap(0, 1);
        self.metadata.swap(0, 1);
        self.part_lens.swap(0, 1);
        self.in_scratch = true;
        self.has_part = true;
        Ok(())
    }

    /// Metadata and data behind the last filter.
    fn finish(self) -> (&'f [u8], &'f [u8]) {
        let data = if self.in_scratch {
            self.data[0].as_slice()
        } else {
            self.chunk
        };
        (&self.metadata[0], data)
    }
}

/// What a filter takes and makes.
struct FilterParts<'p> {
    codecs: &'p mut Codecs,
    input: &'p [u8],
    /// The data, if they are a part.
    data: Option<&'p [u8]>,
    /// The metadata of the filters before.
    old: PartSlices<'p>,
    metadata_to: &'p mut Vec<u8>,
    data_to: &'p mut Vec<u8>,
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
