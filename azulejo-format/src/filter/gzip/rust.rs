//! The codec in Rust.

use super::{NAME, effective_level};
use crate::error::{DecodeError, Result};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Streams, made when they are first needed.
#[derive(Default)]
pub(in crate::filter) struct Codec {
    inflate: Option<Decompress>,
    /// With the level that it was made for.
    deflate: Option<(u32, Compress)>,
}

impl Codec {
    /// Fills `out` from a zlib stream of exactly so many bytes.
    pub(in crate::filter) fn decompress(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let stream = self.inflate.get_or_insert_with(|| Decompress::new(true));
        stream.reset(true);
        let want = out.len();
        match stream.decompress(input, out, FlushDecompress::Finish) {
            Ok(Status::StreamEnd) if stream.total_out() == want as u64 => Ok(()),
            Ok(Status::StreamEnd | Status::Ok | Status::BufError) => {
                let reason = format!("the stream does not end after {want} bytes");
                Err(DecodeError::filter(NAME, reason))
            }
            Err(error) => Err(DecodeError::filter(
                NAME,
                format!("{want} bytes expected: {error}"),
            )),
        }
    }

    /// Appends the zlib stream of `input`.
    pub(in crate::filter) fn compress(
        &mut self,
        level: i32,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let level = effective_level(level)?;
        let stream = match &mut self.deflate {
            Some((of, stream)) if *of == level => stream,
            other => {
                let new = Compress::new(Compression::new(level), true);
                &mut other.insert((level, new)).1
            }
        };
        stream.reset();
        // A block header in every 16 KiB at most, and the frame.
        out.reserve(input.len() + input.len() / 1000 + 64);
        loop {
            let read = usize::try_from(stream.total_in()).unwrap_or(usize::MAX);
            let rest = input.get(read..).unwrap_or_default();
            let status = stream
                .compress_vec(rest, out, FlushCompress::Finish)
                .map_err(|e| DecodeError::filter(NAME, e.to_string()))?;
            if status == Status::StreamEnd {
                return Ok(());
            }
            out.reserve(4096);
        }
    }
}
