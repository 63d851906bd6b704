//! The options of the filter.

#[cfg(any(feature = "webp", feature = "pure-rust"))]
use crate::error::{DecodeError, Result};

pub(super) const NAME: &str = "WEBP";

/// The filter's options.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::filter) struct Webp {
    pub(in crate::filter) quality: f32,
    pub(in crate::filter) format: u8,
    pub(in crate::filter) lossless: bool,
    pub(in crate::filter) rows: u16,
    pub(in crate::filter) row_len: u16,
}

impl Webp {
    /// Bytes of a pixel.
    #[cfg(any(feature = "webp", feature = "pure-rust"))]
    pub(super) fn depth(self) -> Result<usize> {
        match self.format {
            1 | 2 => Ok(3),
            3 | 4 => Ok(4),
            0 => Err(DecodeError::filter(NAME, "its input format is not set")),
            id => {
                let reason = format!("unknown input format {id}");
                Err(DecodeError::filter(NAME, reason))
            }
        }
    }
}
