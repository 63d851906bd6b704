//! BZIP2: one bzip2 stream a part. Page: *Tile, Compression Filters*.

use crate::error::{DecodeError, Result};
use bzip2::{Action, Compress, Compression, Decompress, Status};

const NAME: &str = "BZIP2";

/// Fills `out` from a stream of exactly so many bytes.
pub(super) fn decompress(input: &[u8], out: &mut [u8]) -> Result<()> {
    let mut stream = Decompress::new(false);
    loop {
        let (read, written) = (stream.total_in(), stream.total_out());
        let rest = input.get(count(read)..).unwrap_or_default();
        let place = out.get_mut(count(written)..).unwrap_or_default();
        let status = stream
            .decompress(rest, place)
            .map_err(|e| DecodeError::filter(NAME, e.to_string()))?;
        if status == Status::StreamEnd {
            break;
        }
        if stream.total_in() == read && stream.total_out() == written {
            let reason = format!("the stream does not end within {} bytes", out.len());
            return Err(DecodeError::filter(NAME, reason));
        }
    }
    if count(stream.total_out()) != out.len() {
        let reason = format!("{} bytes instead of {}", stream.total_out(), out.len());
        return Err(DecodeError::filter(NAME, reason));
    }
    Ok(())
}

/// Appends the stream of `input`.
pub(super) fn compress(level: i32, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
    // Block sizes are 1 to 9 times 100 kB; anything below means 1.
    let level = u32::try_from(level.max(1)).unwrap_or(1);
    if level > 9 {
        return Err(DecodeError::filter(
            NAME,
            format!("level {level} is above 9"),
        ));
    }
    let mut stream = Compress::new(Compression::new(level), 0);
    // The bound that bzip2 documents: one percent and 600 bytes.
    out.reserve(input.len() + input.len() / 100 + 601);
    loop {
        let rest = input.get(count(stream.total_in())..).unwrap_or_default();
        let status = stream
            .compress_vec(rest, out, Action::Finish)
            .map_err(|e| DecodeError::filter(NAME, e.to_string()))?;
        if status == Status::StreamEnd {
            return Ok(());
        }
        out.reserve(4096);
    }
}

fn count(total: u64) -> usize {
    usize::try_from(total).unwrap_or(usize::MAX)
}
