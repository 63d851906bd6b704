//! Filter pipelines as people write them: `byteshuffle,zstd:5`.

use super::{Filter, Pipeline};
use std::fmt;
use std::str::FromStr;

/// Why a text is no pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineTextError(String);

impl fmt::Display for PipelineTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PipelineTextError {}

impl FromStr for Pipeline {
    type Err = PipelineTextError;

    /// Reads `none` or filters separated by commas, each with its option after a colon.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "none" || text.is_empty() {
            return Ok(Self::default());
        }
        let filters = text.split(',').map(filter).collect::<Result<_, _>>();
        Ok(Self {
            filters: filters.map_err(PipelineTextError)?,
            ..Self::default()
        })
    }
}

fn filter(text: &str) -> Result<Filter, String> {
    let (name, option) = match text.trim().split_once(':') {
        Some((name, option)) => (name, Some(option)),
        None => (text.trim(), None),
    };
    let number = |default: i32| match option {
        None => Ok(default),
        Some(option) => option
            .parse::<i32>()
            .map_err(|_| format!("{text:?}: {option:?} is not a level")),
    };
    let window = || match option {
        None => Ok(256),
        Some(option) => option
            .parse::<u32>()
            .map_err(|_| format!("{text:?}: {option:?} is not a window")),
    };
    let name = name.to_ascii_lowercase().replace('_', "-");
    let filter = match name.as_str() {
        "zstd" => Filter::Zstd { level: number(-1)? },
        "gzip" => Filter::Gzip { level: number(-1)? },
        "lz4" => Filter::Lz4 { level: number(-1)? },
        "bzip2" => Filter::Bzip2 { level: number(-1)? },
        "rle" => Filter::Rle { level: number(-1)? },
        "dictionary" => Filter::Dictionary { level: number(-1)? },
        "double-delta" => Filter::DoubleDelta {
            level: number(-1)?,
            reinterpret: None,
        },
        "delta" => Filter::Delta {
            level: number(-1)?,
            reinterpret: None,
        },
        "bit-width-reduction" => Filter::BitWidthReduction {
            max_window: window()?,
        },
        "positive-delta" => Filter::PositiveDelta {
            max_window: window()?,
        },
        "bitshuffle" => Filter::Bitshuffle,
        "byteshuffle" => Filter::Byteshuffle,
        "xor" => Filter::Xor,
        "md5" => Filter::ChecksumMd5,
        "sha256" => Filter::ChecksumSha256,
        _ => {
            return Err(format!(
                "{text:?} is not a filter: there are zstd, gzip, lz4, bzip2, rle, dictionary, double-delta, delta, \
                 bit-width-reduction, positive-delta, bitshuffle, byteshuffle, xor, md5, sha256, each perhaps with :LEVEL; \
                 others go into a schema"
            ));
        }
    };
    let takes_option = !matches!(
        filter,
        Filter::Bitshuffle
            | Filter::Byteshuffle
            | Filter::Xor
            | Filter::ChecksumMd5
            | Filter::ChecksumSha256
    );
    if option.is_some() && !takes_option {
        return Err(format!("{text:?}: {name} has no option"));
    }
    Ok(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Pipeline, PipelineTextError> {
        text.parse()
    }

    #[test]
    fn pipelines_are_read() {
        assert_eq!(parse("none").unwrap().filters, []);
        assert_eq!(
            parse("byteshuffle, zstd:9").unwrap().filters,
            [Filter::Byteshuffle, Filter::Zstd { level: 9 }]
        );
        assert_eq!(
            parse("bit_width_reduction:64").unwrap().filters,
            [Filter::BitWidthReduction { max_window: 64 }]
        );
        for text in ["zst", "zstd:x", "xor:3", "zstd,,rle"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
