//! WebP: a tile of `UINT8` as a picture. Page: *Filters, WebP*.
//!
//! libwebp where it is compiled in, otherwise a decoder in Rust.
//!
//! The metadata are those of [`super::shuffle`], with the length of the WebP file.

mod options;

#[cfg(feature = "webp")]
pub(super) mod library;
#[cfg(all(feature = "pure-rust", any(test, not(feature = "webp"))))]
pub(super) mod rust;

#[cfg(feature = "webp")]
use library as codec;
#[cfg(all(feature = "pure-rust", not(feature = "webp")))]
use rust as codec;

pub(super) use options::Webp;

use crate::error::{DecodeError, Result};
use crate::wire::ByteReader;
use options::NAME;

/// What stands in for the library that is left out.
#[cfg(not(any(feature = "webp", feature = "pure-rust")))]
mod codec {
    use super::{DecodeError, Result, Webp};

    const UNSUPPORTED: DecodeError = DecodeError::Unsupported {
        what: "the WEBP filter",
        reason: "build with the feature `webp`, or with `pure-rust` to read",
    };

    pub(super) fn decode(_: Webp, _: &[u8], _: &mut [u8]) -> Result<()> {
        Err(UNSUPPORTED)
    }

    pub(super) fn encode(_: Webp, _: &[u8], _: &mut Vec<u8>) -> Result<()> {
        Err(UNSUPPORTED)
    }
}

impl Webp {
    /// Whether blue comes first in a pixel.
    #[cfg(any(feature = "webp", feature = "pure-rust"))]
    fn is_bgr(self) -> bool {
        matches!(self.format, 2 | 4)
    }

    /// Undoes the filter; the picture must fill `out`.
    pub(super) fn decode(
        self,
        input: &[u8],
        metadata: &mut ByteReader<'_>,
        out: &mut [u8],
    ) -> Result<()> {
        let lens = super::shuffle::part_lens(NAME, metadata, input.len())?;
        if lens.iter().count() != 1 {
            return Err(DecodeError::filter(
                NAME,
                "more than one picture in a chunk",
            ));
        }
        codec::decode(self, input, out)
    }

    /// Appends the picture to `out` and its length to `metadata`.
    pub(super) fn encode(
        self,
        input: &[u8],
        metadata: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        codec::encode(self, input, out)?;
        super::shuffle::push_one_part(out.len(), metadata);
        Ok(())
    }
}
