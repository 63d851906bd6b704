//! Pipelines and filter options as stored. Page: *Filter Pipeline*.

use super::{Filter, Pipeline};
use crate::datatype::Datatype;
use crate::error::{DecodeError, Result};
use crate::version::FormatVersion;
use crate::wire::{ByteReader, ByteWriter};

/// The id of the type that means "no reinterpretation" in the options of the delta filters.
const ANY: u8 = Datatype::Any.id();

/// The compressor number that the options of the compressing filters repeat: it differs from the
/// filter id for two of them.
fn compressor_id(filter_id: u8) -> u8 {
    match filter_id {
        14 => 7,
        19 => 8,
        id => id,
    }
}

impl Pipeline {
    /// Decodes a pipeline stored in a structure of `version`: chunk size, number of filters,
    /// filters.
    pub fn decode(r: &mut ByteReader<'_>, version: FormatVersion) -> Result<Self> {
        let max_chunk_size = r.u32("filter pipeline, max chunk size")?;
        let count = r.u32("filter pipeline, number of filters")?;
        // A filter is at least its id and the length of its options.
        let count = r.check_count(count.into(), 5, "filter pipeline")?;
        if count > Self::MAX_FILTERS {
            return Err(r.invalid(
                "filter pipeline",
                format!("{count} filters, more than {}", Self::MAX_FILTERS),
            ));
        }
        let filters = (0..count)
            .map(|_| Filter::decode(r, version))
            .collect::<Result<_>>()?;
        Ok(Self {
            max_chunk_size,
            filters,
        })
    }

    /// Encodes the pipeline for a structure of `version`.
    pub fn encode(&self, w: &mut ByteWriter, version: FormatVersion) {
        w.u32(self.max_chunk_size);
        w.u32(u32::try_from(self.filters.len()).unwrap_or(u32::MAX));
        for filter in &self.filters {
            filter.encode(w, version);
        }
    }
}

impl Filter {
    /// Decodes one filter of a pipeline: id, length of the options, options.
    pub fn decode(r: &mut ByteReader<'_>, version: FormatVersion) -> Result<Self> {
        let offset = r.offset();
        let id = r.u8("filter id")?;
        let len = r.u32("filter options, length")?;
        let options_offset = r.offset();
        let options = r.bytes(len as usize, "filter options")?;
        let mut o = ByteReader::new(options);
        let Some(mut filter) = Self::of_id(id) else {
            return Err(DecodeError::UnknownId {
                what: "filter",
                id: id.into(),
                offset,
            });
        };
        filter.read_options(&mut o, options_offset, version)?;
        o.finish("filter options").map_err(|_| {
            let reason = format!("{} bytes too many for filter {id}", o.remaining());
            DecodeError::invalid("filter options", options_offset, reason)
        })?;
        Ok(filter)
    }

    /// Whether options of `version` say which type the values are taken as.
    fn has_reinterpret(&self, version: FormatVersion) -> bool {
        matches!(self, Self::DoubleDelta { .. }) && version.double_delta_has_reinterpret()
            || matches!(self, Self::Delta { .. }) && version.delta_has_reinterpret()
    }

    /// Reads the options of the filter, which begin at `offset` of their structure.
    fn read_options(
        &mut self,
        o: &mut ByteReader<'_>,
        offset: usize,
        version: FormatVersion,
    ) -> Result<()> {
        let id = self.id();
        let has_reinterpret = self.has_reinterpret(version);
        match self {
            Self::None
            | Self::Bitshuffle
            | Self::Byteshuffle
            | Self::Aes256Gcm
            | Self::ChecksumMd5
            | Self::ChecksumSha256
            | Self::Xor => {}
            Self::Gzip { level }
            | Self::Zstd { level }
            | Self::Lz4 { level }
            | Self::Rle { level }
            | Self::Bzip2 { level }
            | Self::Dictionary { level } => *level = read_level(o, id, offset)?,
            Self::DoubleDelta { level, reinterpret } | Self::Delta { level, reinterpret } => {
                *level = read_level(o, id, offset)?;
                // Options of some writers carry the type in versions that do not define it yet.
                if has_reinterpret || !o.is_empty() {
                    let type_id = o.u8("reinterpret datatype")?;
                    if type_id != ANY {
                        *reinterpret = Some(Datatype::from_id(type_id, offset + 5)?);
                    }
                }
            }
            Self::BitWidthReduction { max_window } | Self::PositiveDelta { max_window } => {
                *max_window = o.u32("max window")?;
            }
            Self::FloatScale {
                scale,
                offset,
                byte_width,
            } => {
                *scale = o.f64("scale")?;
                *offset = o.f64("offset")?;
                *byte_width = o.u64("byte width")?;
            }
            Self::Webp {
                quality,
                input_format,
                lossless,
                y_extent,
                x_extent,
            } => {
                *quality = o.f32("quality")?;
                *input_format = o.u8("input format")?;
                *lossless = o.flag("lossless")?;
                *y_extent = o.u16("y extent")?;
                *x_extent = o.u16("x extent")?;
                // A C structure is stored, padded to its alignment.
                o.bytes(o.remaining().min(2), "padding")?;
            }
        }
        Ok(())
    }

    /// Encodes the filter for a structure of `version`.
    pub fn encode(&self, w: &mut ByteWriter, version: FormatVersion) {
        let mut o = ByteWriter::new();
        match *self {
            Self::None
            | Self::Bitshuffle
            | Self::Byteshuffle
            | Self::Aes256Gcm
            | Self::ChecksumMd5
            | Self::ChecksumSha256
            | Self::Xor => {}
            Self::Gzip { level }
            | Self::Zstd { level }
            | Self::Lz4 { level }
            | Self::Rle { level }
            | Self::Bzip2 { level }
            | Self::Dictionary { level } => {
                o.u8(compressor_id(self.id()));
                o.i32(level);
            }
            Self::DoubleDelta { level, reinterpret } | Self::Delta { level, reinterpret } => {
                o.u8(compressor_id(self.id()));
                o.i32(level);
                // A type that the version does not define is stored all the same: without it data
                // is lost.
                if self.has_reinterpret(version) || reinterpret.is_some() {
                    o.u8(reinterpret.map_or(ANY, Datatype::id));
                }
            }
            Self::BitWidthReduction { max_window } | Self::PositiveDelta { max_window } => {
                o.u32(max_window);
            }
            Self::FloatScale {
                scale,
                offset,
                byte_width,
            } => {
                o.f64(scale);
                o.f64(offset);
                o.u64(byte_width);
            }
            Self::Webp {
                quality,
                input_format,
                lossless,
                y_extent,
                x_extent,
            } => {
                o.f32(quality);
                o.u8(input_format);
                o.flag(lossless);
                o.u16(y_extent);
                o.u16(x_extent);
                o.u16(0);
            }
        }
        w.u8(self.id());
        w.u32(u32::try_from(o.len()).unwrap_or(u32::MAX));
        w.bytes(&o.into_bytes());
    }
}

/// Reads the options that all compressors have; `offset` is where they begin in their structure.
fn read_level(o: &mut ByteReader<'_>, id: u8, offset: usize) -> Result<i32> {
    let compressor = o.u8("compressor")?;
    if compressor != compressor_id(id) {
        let reason = format!("compressor {compressor} in the options of filter {id}");
        return Err(DecodeError::invalid("filter options", offset, reason));
    }
    o.i32("compression level")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_filter() -> Vec<Filter> {
        vec![
            Filter::None,
            Filter::Gzip { level: 6 },
            Filter::Zstd { level: -1 },
            Filter::Lz4 { level: -1 },
            Filter::Rle { level: -1 },
            Filter::Bzip2 { level: 9 },
            Filter::DoubleDelta {
                level: -1,
                reinterpret: None,
            },
            Filter::DoubleDelta {
                level: -1,
                reinterpret: Some(Datatype::Int64),
            },
            Filter::BitWidthReduction { max_window: 256 },
            Filter::Bitshuffle,
            Filter::Byteshuffle,
            Filter::PositiveDelta { max_window: 1024 },
            Filter::Aes256Gcm,
            Filter::ChecksumMd5,
            Filter::ChecksumSha256,
            Filter::Dictionary { level: -1 },
            Filter::FloatScale {
                scale: 0.5,
                offset: -3.0,
                byte_width: 2,
            },
            Filter::Xor,
            Filter::Webp {
                quality: 80.0,
                input_format: 3,
                lossless: true,
                y_extent: 7,
                x_extent: 12,
            },
            Filter::Delta {
                level: -1,
                reinterpret: None,
            },
            Filter::Delta {
                level: -1,
                reinterpret: Some(Datatype::UInt8),
            },
        ]
    }

    #[test]
    fn a_pipeline_of_every_filter_survives_every_version() {
        let pipeline = Pipeline {
            max_chunk_size: 12345,
            filters: every_filter(),
        };
        for version in FormatVersion::all() {
            let mut w = ByteWriter::new();
            pipeline.encode(&mut w, version);
            let bytes = w.into_bytes();
            let mut r = ByteReader::new(&bytes);
            assert_eq!(Pipeline::decode(&mut r, version).unwrap(), pipeline);
            r.finish("pipeline").unwrap();
            for len in 0..bytes.len() {
                assert!(
                    Pipeline::decode(&mut ByteReader::new(&bytes[..len]), version).is_err(),
                    "{len}"
                );
            }
            for at in 0..bytes.len() {
                for bit in 0..8 {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= 1 << bit;
                    let _ = Pipeline::decode(&mut ByteReader::new(&damaged), version);
                }
            }
        }
    }

    #[test]
    fn types_of_the_deltas_are_stored_since_19_and_20() {
        let len = |filter: Filter, version| {
            let mut w = ByteWriter::new();
            filter.encode(&mut w, FormatVersion::new(version, "test").unwrap());
            w.len()
        };
        let delta = Filter::Delta {
            level: -1,
            reinterpret: None,
        };
        let double_delta = Filter::DoubleDelta {
            level: -1,
            reinterpret: None,
        };
        assert_eq!([18, 19, 20].map(|v| len(delta.clone(), v)), [10, 11, 11]);
        assert_eq!(
            [18, 19, 20].map(|v| len(double_delta.clone(), v)),
            [10, 10, 11]
        );
    }

    #[test]
    fn too_many_filters_are_refused() {
        let encoded = |count| {
            let mut w = ByteWriter::new();
            Pipeline {
                filters: vec![Filter::None; count],
                ..Pipeline::default()
            }
            .encode(&mut w, FormatVersion::NEWEST);
            w.into_bytes()
        };
        let read =
            |count| Pipeline::decode(&mut ByteReader::new(&encoded(count)), FormatVersion::NEWEST);
        assert!(read(Pipeline::MAX_FILTERS).is_ok());
        assert!(matches!(
            read(Pipeline::MAX_FILTERS + 1),
            Err(DecodeError::Invalid { .. })
        ));
    }

    #[test]
    fn damaged_options_are_named() {
        // Zstandard whose options name another compressor.
        let mut r = ByteReader::new(&[2, 5, 0, 0, 0, 3, 0, 0, 0, 0]);
        assert!(matches!(
            Filter::decode(&mut r, FormatVersion::NEWEST),
            Err(DecodeError::Invalid {
                what: "filter options",
                offset: 5,
                ..
            })
        ));
        // Options of a filter that has none.
        let mut r = ByteReader::new(&[9, 1, 0, 0, 0, 7]);
        assert!(matches!(
            Filter::decode(&mut r, FormatVersion::NEWEST),
            Err(DecodeError::Invalid { .. })
        ));
        let mut r = ByteReader::new(&[17, 0, 0, 0, 0]);
        assert!(matches!(
            Filter::decode(&mut r, FormatVersion::NEWEST),
            Err(DecodeError::UnknownId {
                what: "filter",
                id: 17,
                offset: 0
            })
        ));
    }
}
