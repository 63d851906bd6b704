//! Filter pipelines as JSON.

use azulejo::format::Datatype;
use azulejo::format::filter::{Filter, Pipeline};
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
                scale: crate::value::float_json(*scale),
                offset: crate::value::float_json(*offset),
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
                crate::value::from_json(Datatype::Float64, azulejo::format::CellValNum::ONE, json)?;
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

/// A pipeline in one line: `bitshuffle, zstd level 3`; empty for no filters.
pub fn pipeline_text(pipeline: &Pipeline) -> String {
    pipeline
        .filters
        .iter()
        .map(filter_text)
        .collect::<Vec<_>>()
        .join(", ")
}

fn filter_text(filter: &Filter) -> String {
    let level = |name: &str, level: i32| {
        if level == -1 {
            name.to_owned()
        } else {
            format!("{name} level {level}")
        }
    };
    let delta = |name: &str, reinterpret: &Option<Datatype>| match reinterpret {
        Some(datatype) => format!("{name} as {datatype}"),
        None => name.to_owned(),
    };
    match filter {
        Filter::None => "none".into(),
        Filter::Gzip { level: l } => level("gzip", *l),
        Filter::Zstd { level: l } => level("zstd", *l),
        Filter::Lz4 { .. } => "lz4".into(),
        Filter::Rle { .. } => "rle".into(),
        Filter::Bzip2 { level: l } => level("bzip2", *l),
        Filter::DoubleDelta { reinterpret, .. } => delta("double-delta", reinterpret),
        Filter::BitWidthReduction { max_window } => {
            format!("bit-width-reduction window {max_window}")
        }
        Filter::Bitshuffle => "bitshuffle".into(),
        Filter::Byteshuffle => "byteshuffle".into(),
        Filter::PositiveDelta { max_window } => format!("positive-delta window {max_window}"),
        Filter::Aes256Gcm => "aes-256-gcm".into(),
        Filter::ChecksumMd5 => "md5".into(),
        Filter::ChecksumSha256 => "sha256".into(),
        Filter::Dictionary { .. } => "dictionary".into(),
        Filter::FloatScale {
            scale,
            offset,
            byte_width,
        } => {
            format!("float-scale *{scale} +{offset} in {byte_width} bytes")
        }
        Filter::Xor => "xor".into(),
        Filter::Webp {
            quality,
            input_format,
            lossless,
            ..
        } => {
            let format = WEBP_FORMATS
                .get(usize::from(*input_format))
                .unwrap_or(&"none");
            if *lossless {
                format!("webp {format} lossless")
            } else {
                format!("webp {format} quality {quality}")
            }
        }
        Filter::Delta { reinterpret, .. } => delta("delta", reinterpret),
    }
}
