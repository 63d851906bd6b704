//! Frames of Blosc, version 1: blocks, each compressed in one or several streams and shuffled.

use super::Result;
use super::codec::{lz4, unshuffled, zlib, zstd};
use crate::error::FileError;

/// Bytes before the places of the blocks.
const HEADER: usize = 16;
/// Elements of more bytes are not split into streams.
const MOST_SPLITS: usize = 16;
/// Streams of fewer bytes neither.
const LEAST_STREAM: usize = 128;
/// Distances of the codec `blosclz` beyond which it counts with two bytes.
const FAR: usize = 8191;

fn short() -> FileError {
    FileError::new("it ends early")
}

fn number(bytes: &[u8], at: usize) -> Result<usize> {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>);
    let number = bytes.map(|b| u32::from_le_bytes(*b)).ok_or_else(short)?;
    usize::try_from(number).map_err(|_| short())
}

/// What a frame holds, which is no more than `most` bytes.
pub fn decode(bytes: &[u8], most: usize) -> Result<Vec<u8>> {
    let Some(&[version, _, flags, size]) = bytes.first_chunk::<4>() else {
        return Err(short());
    };
    if version == 0 || version > 2 {
        return Err(FileError::new(format!(
            "frames of version {version} are not supported"
        )));
    }
    let (size, length) = (usize::from(size).max(1), number(bytes, 4)?);
    let block = number(bytes, 8)?;
    if length > most {
        return Err(FileError::new("it holds more than a chunk"));
    }
    if length == 0 {
        return Ok(Vec::new());
    }
    if flags & 2 != 0 {
        let raw = bytes.get(HEADER..).and_then(|raw| raw.get(..length));
        return raw.map(<[u8]>::to_vec).ok_or_else(short);
    }
    if block == 0 {
        return Err(FileError::new("its blocks have no bytes"));
    }
    // Room for it only once there is a place for each block.
    let blocks = length.div_ceil(block);
    if bytes.len() < HEADER.saturating_add(blocks.saturating_mul(4)) {
        return Err(short());
    }
    let mut out = Vec::new();
    for at in 0..blocks {
        let own = block.min(length - out.len());
        let whole = own == block;
        let split =
            flags & 0x10 == 0 && whole && size <= MOST_SPLITS && block / size >= LEAST_STREAM;
        let streams = if split { size } else { 1 };
        let mut from = number(bytes, HEADER + at * 4)?;
        let mut data = Vec::new();
        for _ in 0..streams {
            let stored = number(bytes, from)?;
            let start = from.checked_add(4).ok_or_else(short)?;
            let end = start.checked_add(stored).ok_or_else(short)?;
            let stream = bytes.get(start..end).ok_or_else(short)?;
            decode_stream(flags >> 5, stream, own / streams, &mut data)?;
            from = end;
        }
        if data.len() != own {
            return Err(FileError::new(
                "a block has not the length that it should have",
            ));
        }
        if flags & 1 != 0 && size > 1 {
            data = unshuffled(&data, size);
        } else if flags & 4 != 0 {
            data = bits_unshuffled(data, size);
        }
        out.extend(data);
    }
    Ok(out)
}

/// Adds what a stream holds: `length` bytes.
fn decode_stream(codec: u8, stream: &[u8], length: usize, out: &mut Vec<u8>) -> Result<()> {
    if stream.len() == length {
        out.extend_from_slice(stream);
        return Ok(());
    }
    let data = match codec {
        0 => blosclz(stream, length)?,
        1 => lz4(stream, length, length)?,
        2 => {
            let stated = snap::raw::decompress_len(stream);
            if stated != Ok(length) {
                return Err(FileError::new("a stream of Snappy has another length"));
            }
            let mut decoder = snap::raw::Decoder::new();
            let data = decoder.decompress_vec(stream);
            data.map_err(|e| FileError::new(e.to_string()))?
        }
        3 => zlib(stream, length)?,
        4 => zstd(stream, length)?,
        other => return Err(FileError::new(format!("its codec {other} is not known"))),
    };
    if data.len() != length {
        return Err(FileError::new(
            "a stream has not the length that it should have",
        ));
    }
    out.extend(data);
    Ok(())
}

/// Bits of elements brought together again; blocks of other than whole eights of elements are not
/// shuffled.
fn bits_unshuffled(bytes: Vec<u8>, size: usize) -> Vec<u8> {
    let elements = bytes.len() / size;
    if elements == 0 || !elements.is_multiple_of(8) {
        return bytes;
    }
    let row = elements / 8;
    let mut out = bytes.clone();
    out.iter_mut().take(elements * size).for_each(|b| *b = 0);
    for (plane, bits) in bytes.chunks_exact(row).take(size * 8).enumerate() {
        let (part, bit) = (plane / 8, plane % 8);
        for (eight, set) in bits.iter().enumerate() {
            for within in 0..8 {
                if let Some(to) = out.get_mut((eight * 8 + within) * size + part) {
                    *to |= (set >> within & 1) << bit;
                }
            }
        }
    }
    out
}

/// What a stream of Blosc's own codec holds: runs of literals, and matches of three bytes and more
/// with what came before.
fn blosclz(stream: &[u8], length: usize) -> Result<Vec<u8>> {
    let mut out: Vec<u8> = Vec::with_capacity(length);
    let mut input = stream.iter();
    let mut control = usize::from(input.next().ok_or_else(short)? & 31);
    loop {
        if control < 32 {
            let run = control + 1;
            let rest = input.as_slice();
            let literals = rest.get(..run).ok_or_else(short)?;
            out.extend_from_slice(literals);
            input = rest.get(run..).unwrap_or_default().iter();
        } else {
            let mut run = (control >> 5) - 1;
            let mut distance = (control & 31) << 8;
            if run == 6 {
                loop {
                    let more = *input.next().ok_or_else(short)?;
                    run += usize::from(more);
                    if more != 255 {
                        break;
                    }
                }
            }
            let low = *input.next().ok_or_else(short)?;
            if low == 255 && distance == 31 << 8 {
                let [high, low] = [input.next(), input.next()].map(|b| b.map(|b| usize::from(*b)));
                let (high, low) = high.zip(low).ok_or_else(short)?;
                distance = (high << 8) + low + FAR;
            } else {
                distance += usize::from(low);
            }
            let from = out.len().checked_sub(distance + 1);
            let from = from.ok_or_else(|| FileError::new("a match begins before the data"))?;
            if run + 3 > length.saturating_sub(out.len()) {
                return Err(FileError::new("a stream holds more than it should"));
            }
            for at in from..from + run + 3 {
                let byte = out.get(at).copied().ok_or_else(short)?;
                out.push(byte);
            }
        }
        if out.len() > length {
            return Err(FileError::new("a stream holds more than it should"));
        }
        match input.next() {
            Some(next) => control = usize::from(*next),
            None => return Ok(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_lie_are_refused() {
        let frame = |flags: u8, length: u32, block: u32, rest: &[u8]| {
            let mut bytes = vec![2, 1, flags, 4];
            for number in [length, block, 16 + rest.len() as u32] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend(rest);
            bytes
        };
        assert_eq!(decode(&frame(2, 3, 3, &[7, 8, 9]), 3).unwrap(), [7, 8, 9]);
        assert!(decode(&frame(2, 4, 4, &[7, 8, 9]), 4).is_err());
        assert!(decode(&frame(2, u32::MAX, 1, &[]), 100).is_err());
        assert!(decode(&frame(0, 100, 0, &[0; 40]), 100).is_err());
        assert!(decode(&frame(0, 100, 1, &[0; 40]), 100).is_err());
        let mut far = vec![20, 0, 0, 0];
        far.extend(u32::MAX.to_le_bytes());
        for codec in 0..8 {
            assert!(decode(&frame(codec << 5, 100, 100, &far), 100).is_err());
        }
        for cut in 0..16 {
            assert!(decode(&frame(2, 3, 3, &[7, 8, 9])[..cut], 3).is_err());
        }
    }

    #[test]
    fn matches_and_literals() {
        // Two literals, a match of 5 at distance 2, one literal.
        assert_eq!(
            blosclz(&[1, 7, 8, 3 << 5, 1, 0, 9], 8).unwrap(),
            [7, 8, 7, 8, 7, 8, 7, 9]
        );
        assert!(blosclz(&[1, 7, 8, 3 << 5, 2, 0, 9], 8).is_err());
        assert!(blosclz(&[1, 7, 8, 3 << 5, 1, 0, 9], 6).is_err());
        assert!(blosclz(&[5, 7], 8).is_err());
        assert!(blosclz(&[0, 7, 0xff, 255, 255], 1 << 20).is_err());
    }

    #[test]
    fn bits_come_together() {
        // Eight elements of a byte: bit 0 is set in the first, bit 7 in the last.
        assert_eq!(
            bits_unshuffled(vec![1, 0, 0, 0, 0, 0, 0, 0x80], 1),
            [1, 0, 0, 0, 0, 0, 0, 0x80]
        );
        assert_eq!(
            bits_unshuffled(vec![0, 0x81, 0, 0, 0, 0, 0, 0], 1),
            [2, 0, 0, 0, 0, 0, 0, 2]
        );
        assert_eq!(bits_unshuffled(vec![1, 2, 3], 1), [1, 2, 3]);
    }
}
