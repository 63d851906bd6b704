//! libzstd.

use super::{NAME, effective_level};
use crate::error::{DecodeError, Result};
use zstd_safe::{CCtx, DCtx};

/// Contexts, made when they are first needed.
#[derive(Default)]
pub(in crate::filter) struct Codec {
    decompress: Option<DCtx<'static>>,
    compress: Option<CCtx<'static>>,
}

impl Codec {
    /// Fills `out` from frames of exactly so many bytes. Whatever they declare, no more is written
    /// than there is room for, and contexts are of fixed size.
    pub(in crate::filter) fn decompress(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let context = match &mut self.decompress {
            Some(context) => context,
            empty => empty.insert(DCtx::try_create().ok_or_else(out_of_memory)?),
        };
        let want = out.len();
        match context.decompress(out, input) {
            Ok(len) if len == want => Ok(()),
            Ok(len) => Err(DecodeError::filter(
                NAME,
                format!("{len} bytes instead of {want}"),
            )),
            Err(code) => Err(DecodeError::filter(NAME, zstd_safe::get_error_name(code))),
        }
    }

    /// Appends the frame of `input`.
    pub(in crate::filter) fn compress(
        &mut self,
        level: i32,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let context = match &mut self.compress {
            Some(context) => context,
            empty => empty.insert(CCtx::try_create().ok_or_else(out_of_memory)?),
        };
        let at = out.len();
        out.resize(at + zstd_safe::compress_bound(input.len()), 0);
        let place = out.get_mut(at..).unwrap_or_default();
        let len = context
            .compress(place, input, effective_level(level))
            .map_err(|code| DecodeError::filter(NAME, zstd_safe::get_error_name(code)))?;
        out.truncate(at + len);
        Ok(())
    }
}

fn out_of_memory() -> DecodeError {
    DecodeError::filter(NAME, "out of memory")
}
