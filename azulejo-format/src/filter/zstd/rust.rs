//! The codec in Rust.

use super::{NAME, effective_level};
use crate::error::{DecodeError, Result};
use structured_zstd::decoding::FrameDecoder;
use structured_zstd::encoding::{CompressionLevel, compress_slice_to_vec};

/// A decoder, made when it is first needed.
#[derive(Default)]
pub(in crate::filter) struct Codec {
    decoder: Option<FrameDecoder>,
}

impl Codec {
    /// Fills `out` from frames of exactly so many bytes.
    pub(in crate::filter) fn decompress(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        if let Some(release) = unread_release(input) {
            let reason = format!(
                "a frame of Zstandard {release}, which the C library alone reads: build with the \
                 feature `c-codecs`"
            );
            return Err(DecodeError::filter(NAME, reason));
        }
        let decoder = self.decoder.get_or_insert_with(FrameDecoder::new);
        let want = out.len();
        match decoder.decode_all(input, out) {
            Ok(len) if len == want => Ok(()),
            Ok(len) => Err(DecodeError::filter(
                NAME,
                format!("{len} bytes instead of {want}"),
            )),
            Err(error) => {
                // What it knows of the frame may be half of it.
                self.decoder = None;
                Err(DecodeError::filter(NAME, error.to_string()))
            }
        }
    }

    /// Appends the frame of `input`.
    #[expect(clippy::unnecessary_wraps, reason = "the C library can fail")]
    pub(in crate::filter) fn compress(
        &mut self,
        level: i32,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let level = CompressionLevel::from_level(effective_level(level));
        out.extend_from_slice(&compress_slice_to_vec(input, level));
        Ok(())
    }
}

/// The old release that wrote a frame, if it is one that is not read here.
fn unread_release(frame: &[u8]) -> Option<&'static str> {
    match frame.first_chunk::<4>()? {
        // The first one wrote its magic number with its high byte first.
        [0xfd, 0x2f, 0xb5, 0x1e] => Some("0.1"),
        [0x22, 0xb5, 0x2f, 0xfd] => Some("0.2"),
        [0x23, 0xb5, 0x2f, 0xfd] => Some("0.3"),
        [0x24, 0xb5, 0x2f, 0xfd] => Some("0.4"),
        _ => None,
    }
}
