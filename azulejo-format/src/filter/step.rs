//! What a filter does with a chunk: the one place where filters become work.

use super::checksum::Checksum;
use super::compression::Compressor;
use super::float_scale::FloatScale;
use super::webp::Webp;
use super::{
    Filter, FilterContext, Pipeline, bit_width_reduction, bitshuffle, byteshuffle, positive_delta,
    xor,
};
use crate::datatype::Datatype;
use crate::error::Result;
use crate::wire::ByteReader;

/// The work of one filter at its place in a pipeline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum FilterStep {
    /// Nothing: the data stay as they are.
    Skip,
    /// Looks at the data and the metadata so far, and leaves both.
    Check(Checksum),
    /// Makes new data, and puts metadata of its own in front of those so far.
    Transform(Transform),
    /// Makes new data of the data and of the metadata so far, one part each.
    Compress(Compressor),
    /// As [`Self::Compress`], with the array's key.
    Encrypt,
}

/// A filter that makes values of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Transform {
    BitWidthReduction { datatype: Datatype, max_window: u32 },
    PositiveDelta { datatype: Datatype, max_window: u32 },
    Byteshuffle { value_size: usize },
    Bitshuffle { value_size: usize },
    Xor { datatype: Datatype },
    FloatScale(FloatScale),
    Webp(Webp),
}

impl FilterStep {
    /// The work of `filter` on values of `datatype`.
    pub(super) fn of(filter: &Filter, datatype: Datatype, ctx: &FilterContext<'_>) -> Self {
        let value_size = datatype.size();
        let version = ctx.version;
        match *filter {
            Filter::None => Self::Skip,
            Filter::Gzip { level } => Self::Compress(Compressor::Gzip { level }),
            Filter::Zstd { level } => Self::Compress(Compressor::Zstd { level }),
            Filter::Lz4 { level: _ } => Self::Compress(Compressor::Lz4),
            // Run lengths count cells of the tile, whatever the filters before have made of them.
            Filter::Rle { level: _ } => Self::Compress(Compressor::Rle {
                cell_size: ctx.cell_size(),
            }),
            Filter::Bzip2 { level } => Self::Compress(Compressor::Bzip2 { level }),
            Filter::DoubleDelta {
                level: _,
                reinterpret,
            } => Self::Compress(Compressor::DoubleDelta(reinterpret.unwrap_or(datatype))),
            Filter::BitWidthReduction { max_window } => {
                let transform = Transform::BitWidthReduction {
                    datatype,
                    max_window,
                };
                transform.where_it(bit_width_reduction::works_on(datatype, version))
            }
            Filter::Bitshuffle => Self::Transform(Transform::Bitshuffle { value_size }),
            Filter::Byteshuffle => Self::Transform(Transform::Byteshuffle { value_size }),
            Filter::PositiveDelta { max_window } => {
                let transform = Transform::PositiveDelta {
                    datatype,
                    max_window,
                };
                transform.where_it(positive_delta::works_on(datatype, version))
            }
            Filter::Aes256Gcm => Self::Encrypt,
            Filter::ChecksumMd5 => Self::Check(Checksum::Md5),
            Filter::ChecksumSha256 => Self::Check(Checksum::Sha256),
            Filter::Dictionary { level: _ } => Self::Compress(Compressor::Dictionary),
            Filter::FloatScale {
                scale,
                offset,
                byte_width,
            } => Self::Transform(Transform::FloatScale(FloatScale {
                scale,
                offset,
                byte_width,
                float_size: value_size,
            })),
            Filter::Xor => Self::Transform(Transform::Xor { datatype }),
            Filter::Webp {
                quality,
                input_format,
                lossless,
                y_extent,
                x_extent,
            } => Self::Transform(Transform::Webp(Webp {
                quality,
                format: input_format,
                lossless,
                rows: y_extent,
                row_len: x_extent,
            })),
            Filter::Delta {
                level: _,
                reinterpret,
            } => Self::Compress(Compressor::Delta(reinterpret.unwrap_or(datatype))),
        }
    }

    /// Whether the filter makes new data.
    pub(super) fn changes_data(self) -> bool {
        match self {
            Self::Skip | Self::Check(_) => false,
            Self::Transform(_) | Self::Compress(_) | Self::Encrypt => true,
        }
    }
}

impl Transform {
    fn where_it(self, works: bool) -> FilterStep {
        if works {
            FilterStep::Transform(self)
        } else {
            FilterStep::Skip
        }
    }

    /// Bytes of the data before the filter, of which `input_len` came behind it, in a chunk of
    /// `chunk_len`. `metadata` stand at the filter's own.
    pub(super) fn decoded_len(
        &self,
        input_len: usize,
        metadata: &ByteReader<'_>,
        chunk_len: u32,
    ) -> Result<u64> {
        match self {
            Self::BitWidthReduction { .. } => {
                bit_width_reduction::decoded_len(metadata).map(|len| len as u64)
            }
            Self::FloatScale(scale) => scale.decoded_len(input_len).map(|len| len as u64),
            // It takes the cells themselves.
            Self::Webp(_) => Ok(chunk_len.into()),
            Self::PositiveDelta { .. }
            | Self::Byteshuffle { .. }
            | Self::Bitshuffle { .. }
            | Self::Xor { .. } => Ok(input_len as u64),
        }
    }

    /// Undoes the filter; `metadata` stand behind its own afterwards.
    pub(super) fn decode(
        &self,
        input: &[u8],
        metadata: &mut ByteReader<'_>,
        out: &mut [u8],
    ) -> Result<()> {
        match *self {
            Self::BitWidthReduction { datatype, .. } => {
                bit_width_reduction::decode(datatype, input, metadata, out)
            }
            Self::PositiveDelta { datatype, .. } => {
                positive_delta::decode(datatype, input, metadata, out)
            }
            Self::Byteshuffle { value_size } => {
                byteshuffle::decode(value_size, input, metadata, out)
            }
            Self::Bitshuffle { value_size } => bitshuffle::decode(value_size, input, metadata, out),
            Self::Xor { datatype } => xor::decode(datatype, input, metadata, out),
            Self::FloatScale(scale) => scale.decode(input, metadata, out),
            Self::Webp(webp) => webp.decode(input, metadata, out),
        }
    }

    /// Puts the filtered data into `out`, which is empty unless [`Self::overwrites`], and appends
    /// the filter's metadata.
    pub(super) fn encode(
        &self,
        input: &[u8],
        metadata: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match *self {
            Self::BitWidthReduction {
                datatype,
                max_window,
            } => bit_width_reduction::encode(datatype, max_window, input, metadata, out),
            Self::PositiveDelta {
                datatype,
                max_window,
            } => positive_delta::encode(datatype, max_window, input, metadata, out),
            Self::Byteshuffle { value_size } => {
                byteshuffle::encode(value_size, input, metadata, out);
                Ok(())
            }
            Self::Bitshuffle { value_size } => {
                bitshuffle::encode(value_size, input, metadata, out);
                Ok(())
            }
            Self::Xor { datatype } => xor::encode(datatype, input, metadata, out),
            Self::FloatScale(scale) => scale.encode(input, metadata, out),
            Self::Webp(webp) => webp.encode(input, metadata, out),
        }
    }

    /// Whether [`Self::encode`] overwrites all of `out`, so that it need not be cleared, after
    /// which it would be zeroed again.
    pub(super) fn overwrites(&self) -> bool {
        match self {
            Self::Byteshuffle { .. } | Self::Bitshuffle { .. } | Self::Xor { .. } => true,
            Self::BitWidthReduction { .. }
            | Self::PositiveDelta { .. }
            | Self::FloatScale(_)
            | Self::Webp(_) => false,
        }
    }
}

impl Pipeline {
    /// The work of all filters that run, in order; behind the last one encryption, where the context
    /// has a key and no filter does it.
    pub(super) fn steps(&self, ctx: &FilterContext<'_>) -> impl Iterator<Item = FilterStep> {
        let implied = ctx.key.is_some() && !self.filters.contains(&Filter::Aes256Gcm);
        self.with_input_types(ctx.datatype)
            .map(move |(filter, datatype)| FilterStep::of(filter, datatype, ctx))
            .chain(implied.then_some(FilterStep::Encrypt))
    }

    /// Whether chunks are stored as they are: no filter changes or checks them.
    #[must_use]
    pub fn stores_as_is(&self, ctx: &FilterContext<'_>) -> bool {
        self.steps(ctx).all(|step| step == FilterStep::Skip)
    }
}
