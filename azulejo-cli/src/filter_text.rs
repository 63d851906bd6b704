//! Filter pipelines for people.
#![warn(clippy::wildcard_enum_match_arm)]

use azulejo::format::Datatype;
use azulejo::format::filter::{Filter, Pipeline};
use azulejo::json::webp_format_name;

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
            let format = webp_format_name(*input_format);
            if *lossless {
                format!("webp {format} lossless")
            } else {
                format!("webp {format} quality {quality}")
            }
        }
        Filter::Delta { reinterpret, .. } => delta("delta", reinterpret),
    }
}
