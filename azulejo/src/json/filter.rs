//! Filter pipelines as JSON.
#![warn(clippy::wildcard_enum_match_arm)]

use crate::error::{Error, Result as EngineResult};
use azulejo_format::Datatype;
use azulejo_format::filter::{Filter, Pipeline};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipelineJson {
    chunk_size: u32,
    filters: Vec<FilterJson>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "filter", rename_all = "snake_case", deny_unknown_fields)]
enum FilterJson {
    None,
    Gzip {
        level: i32,
    },
    Zstd {
        level: i32,
    },
    Lz4 {
        level: i32,
    },
    Rle {
        level: i32,
    },
    Bzip2 {
        level: i32,
    },
    DoubleDelta {
        level: i32,
        reinterpret: Option<String>,
    },
    BitWidthReduction {
        max_window: u32,
    },
    Bitshuffle,
    Byteshuffle,
    PositiveDelta {
        max_window: u32,
    },
    #[serde(rename = "aes256_gcm")]
    Aes256Gcm,
    ChecksumMd5,
    #[serde(rename = "checksum_sha256")]
    ChecksumSha256,
    Dictionary {
        level: i32,
    },
    FloatScale {
        scale: Json,
        offset: Json,
        byte_width: u64,
    },
    Xor,
    Webp {
        quality: f32,
        input_format: String,
        lossless: bool,
        y_extent: u16,
        x_extent: u16,
    },
    Delta {
        level: i32,
        reinterpret: Option<String>,
    },
}

const WEBP_FORMATS: [&str; 5] = ["none", "rgb", "bgr", "rgba", "bgra"];

impl PipelineJson {
    pub fn encode(pipeline: &Pipeline) -> Self {
        Self {
            chunk_size: pipeline.max_chunk_size,
            filters: pipeline.filters.iter().map(FilterJson::encode).collect(),
        }
    }

    pub fn decode(&self) -> Result<Pipeline, String> {
        Ok(Pipeline {
            max_chunk_size: self.chunk_size,
            filters: self
                .filters
                .iter()
                .map(FilterJson::decode)
                .collect::<Result<_, _>>()?,
        })
    }
}

/// A pipeline of filters as a schema's document has it.
///
/// # Errors
/// None that filters can cause.
pub fn pipeline_json(pipeline: &Pipeline) -> EngineResult<Json> {
    let encoded = serde_json::to_value(PipelineJson::encode(pipeline));
    encoded.map_err(|e| Error::Internal(e.to_string()))
}

impl FilterJson {
    fn encode(filter: &Filter) -> Self {
        let name = |datatype: &Option<Datatype>| datatype.map(|d| d.name().to_owned());
        match filter {
            Filter::None => Self::None,
            Filter::Gzip { level } => Self::Gzip { level: *level },
            Filter::Zstd { level } => Self::Zstd { level: *level },
            Filter::Lz4 { level } => Self::Lz4 { level: *level },
            Filter::Rle { level } => Self::Rle { level: *level },
            Filter::Bzip2 { level } => Self::Bzip2 { level: *level },
            Filter::DoubleDelta { level, reinterpret } => Self::DoubleDelta {
                level: *level,
                reinterpret: name(reinterpret),
            },
            Filter::BitWidthReduction { max_window } => Self::BitWidthReduction {
                max_window: *max_window,
            },
            Filter::Bitshuffle => Self::Bitshuffle,
            Filter::Byteshuffle => Self::Byteshuffle,
            Filter::PositiveDelta { max_window } => Self::PositiveDelta {
                max_window: *max_window,
            },
            Filter::Aes256Gcm => Self::Aes256Gcm,
            Filter::ChecksumMd5 => Self::ChecksumMd5,
            Filter::ChecksumSha256 => Self::ChecksumSha256,
            Filter::Dictionary { level } => Self::Dictionary { level: *level },
            Filter::FloatScale {
                scale,
                offset,
                byte_width,
            } => Self::FloatScale {
                scale: super::value::float_json(*scale),
                offset: super::value::float_json(*offset),
                byte_width: *byte_width,
            },
            Filter::Xor => Self::Xor,
            Filter::Webp {
                quality,
                input_format,
                lossless,
                y_extent,
                x_extent,
            } => Self::Webp {
                quality: *quality,
                input_format: WEBP_FORMATS
                    .get(usize::from(*input_format))
                    .unwrap_or(&"none")
                    .to_string(),
                lossless: *lossless,
                y_extent: *y_extent,
                x_extent: *x_extent,
            },
            Filter::Delta { level, reinterpret } => Self::Delta {
                level: *level,
                reinterpret: name(reinterpret),
            },
        }
    }

    fn decode(&self) -> Result<Filter, String> {
        let datatype = |name: &Option<String>| match name {
            None => Ok(None),
            Some(name) => Datatype::from_name(name)
                .map(Some)
                .ok_or_else(|| format!("{name:?} is not a datatype")),
        };
        let float = |json: &Json| -> Result<f64, String> {
            let bytes =
                super::value::from_json(Datatype::Float64, azulejo_format::CellValNum::ONE, json)?;
            Ok(bytes
                .first_chunk()
                .map_or(0.0, |chunk| f64::from_le_bytes(*chunk)))
        };
        Ok(match self {
            Self::None => Filter::None,
            Self::Gzip { level } => Filter::Gzip { level: *level },
            Self::Zstd { level } => Filter::Zstd { level: *level },
            Self::Lz4 { level } => Filter::Lz4 { level: *level },
            Self::Rle { level } => Filter::Rle { level: *level },
            Self::Bzip2 { level } => Filter::Bzip2 { level: *level },
            Self::DoubleDelta { level, reinterpret } => Filter::DoubleDelta {
                level: *level,
                reinterpret: datatype(reinterpret)?,
            },
            Self::BitWidthReduction { max_window } => Filter::BitWidthReduction {
                max_window: *max_window,
            },
            Self::Bitshuffle => Filter::Bitshuffle,
            Self::Byteshuffle => Filter::Byteshuffle,
            Self::PositiveDelta { max_window } => Filter::PositiveDelta {
                max_window: *max_window,
            },
            Self::Aes256Gcm => Filter::Aes256Gcm,
            Self::ChecksumMd5 => Filter::ChecksumMd5,
            Self::ChecksumSha256 => Filter::ChecksumSha256,
            Self::Dictionary { level } => Filter::Dictionary { level: *level },
            Self::FloatScale {
                scale,
                offset,
                byte_width,
            } => Filter::FloatScale {
                scale: float(scale)?,
                offset: float(offset)?,
                byte_width: *byte_width,
            },
            Self::Xor => Filter::Xor,
            Self::Webp {
                quality,
                input_format,
                lossless,
                y_extent,
                x_extent,
            } => Filter::Webp {
                quality: *quality,
                input_format: WEBP_FORMATS
                    .iter()
                    .position(|name| name == input_format)
                    .and_then(|at| u8::try_from(at).ok())
                    .ok_or_else(|| {
                        format!("{input_format:?} is not one of {}", WEBP_FORMATS.join(", "))
                    })?,
                lossless: *lossless,
                y_extent: *y_extent,
                x_extent: *x_extent,
            },
            Self::Delta { level, reinterpret } => Filter::Delta {
                level: *level,
                reinterpret: datatype(reinterpret)?,
            },
        })
    }
}

/// The name of a pixel format of the WebP filter: `rgb`, `bgra`; `none` for a number that is none.
#[must_use]
pub fn webp_format_name(input_format: u8) -> &'static str {
    WEBP_FORMATS
        .get(usize::from(input_format))
        .copied()
        .unwrap_or("none")
}
