//! A chunk's stored bytes as cells: decompressed, summed up, in this machine's order, unpacked.

use super::Result;
use super::directory::ByteOrder;
use super::image::{Compression, Image, Predictor, Sample};
use crate::error::FileError;
use crate::import::npy_file::half;
use std::io::Read;

/// The cells of a chunk of so many rows, as little-endian bytes. A chunk that holds more than it
/// should is cut off.
pub fn decode(image: &Image, stored: Vec<u8>, rows: u64) -> Result<Vec<u8>> {
    let row = image.row_bytes() as usize;
    let mut bytes = decompress(image.compression, stored, row * rows as usize)?;
    let samples = image.samples() as usize;
    let size = (image.sample.bits() / 8) as usize;
    match image.predictor {
        Predictor::Float => {
            let mut copy = vec![0; row];
            for row in bytes.chunks_exact_mut(row.max(1)) {
                sum(row, samples, 1, u8::wrapping_add);
                copy.copy_from_slice(row);
                gather(&copy, row, size);
            }
        }
        Predictor::None => swap(&mut bytes, image.order, image.sample),
        Predictor::Horizontal => {
            swap(&mut bytes, image.order, image.sample);
            for row in bytes.chunks_exact_mut(row.max(1)) {
                match size {
                    1 => sum(row, samples, 1, u8::wrapping_add),
                    2 => sum_of::<2>(row, samples, |a, b| {
                        u16::from_le_bytes(a)
                            .wrapping_add(u16::from_le_bytes(b))
                            .to_le_bytes()
                    }),
                    4 => sum_of::<4>(row, samples, |a, b| {
                        u32::from_le_bytes(a)
                            .wrapping_add(u32::from_le_bytes(b))
                            .to_le_bytes()
                    }),
                    _ => sum_of::<8>(row, samples, |a, b| {
                        u64::from_le_bytes(a)
                            .wrapping_add(u64::from_le_bytes(b))
                            .to_le_bytes()
                    }),
                }
            }
        }
    }
    Ok(match image.sample {
        Sample::Uint(bits) if !matches!(bits, 8 | 16 | 32 | 64) => {
            let cells = image.chunk.1 as usize * samples;
            let size = image.sample.datatype().size();
            unpack(&bytes, row, cells, bits, size)
        }
        Sample::Float(16) => {
            let reals = bytes.as_chunks::<2>().0.iter();
            reals
                .flat_map(|b| half(u16::from_le_bytes(*b)).to_le_bytes())
                .collect()
        }
        _ => bytes,
    })
}

/// `need` bytes of a compressed chunk.
fn decompress(compression: Compression, mut stored: Vec<u8>, need: usize) -> Result<Vec<u8>> {
    let out = match compression {
        Compression::None => {
            stored.truncate(need);
            stored
        }
        Compression::Deflate => first(flate2::bufread::ZlibDecoder::new(&stored[..]), need)?,
        Compression::Zstd => zstd(&stored, need)?,
        Compression::PackBits => pack_bits(&stored, need),
        Compression::Lzw => lzw(&stored, need)?,
    };
    match out.len() == need {
        true => Ok(out),
        false => Err(FileError::new(format!(
            "it holds {} bytes instead of {need}",
            out.len()
        ))),
    }
}

/// The first bytes that a decoder gives.
fn first(decoder: impl Read, need: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    decoder.take(need as u64).read_to_end(&mut out)?;
    Ok(out)
}

#[cfg(feature = "c-codecs")]
fn zstd(bytes: &[u8], need: usize) -> Result<Vec<u8>> {
    first(zstd::stream::read::Decoder::with_buffer(bytes)?, need)
}

#[cfg(not(feature = "c-codecs"))]
fn zstd(_: &[u8], _: usize) -> Result<Vec<u8>> {
    Err(FileError::new(
        "this program was built without the codecs in C and reads no Zstandard in TIFF",
    ))
}

fn lzw(bytes: &[u8], need: usize) -> Result<Vec<u8>> {
    use weezl::{BitOrder, LzwStatus, decode::Decoder};
    let mut decoder = Decoder::with_tiff_size_switch(BitOrder::Msb, 8);
    let mut out = vec![0; need];
    let (mut from, mut to) = (0, 0);
    while to < need {
        let (rest, room) = (bytes.get(from..), out.get_mut(to..));
        let done = decoder.decode_bytes(rest.unwrap_or_default(), room.unwrap_or_default());
        from += done.consumed_in;
        to += done.consumed_out;
        match done.status {
            Ok(LzwStatus::Ok) => {}
            Ok(LzwStatus::Done | LzwStatus::NoProgress) => break,
            Err(error) => return Err(FileError::new(error.to_string())),
        }
    }
    out.truncate(to);
    Ok(out)
}

/// A byte that is not negative is followed by one byte more than it says, others by the byte that
/// is there one time more than they are below zero; -128 means nothing.
fn pack_bits(mut bytes: &[u8], need: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while out.len() < need {
        let Some((head, rest)) = bytes.split_first() else {
            break;
        };
        bytes = rest;
        match *head as i8 {
            -128 => {}
            head @ 0.. => {
                let (run, rest) = bytes.split_at((head as usize + 1).min(bytes.len()));
                out.extend_from_slice(run);
                bytes = rest;
            }
            head => {
                if let Some((byte, rest)) = bytes.split_first() {
                    out.extend(std::iter::repeat_n(*byte, (1 - isize::from(head)) as usize));
                    bytes = rest;
                }
            }
        }
    }
    out.truncate(need);
    out
}

/// Numbers of whole bytes from the file's order into that in which they are read on.
fn swap(bytes: &mut [u8], order: ByteOrder, sample: Sample) {
    let bits = sample.bits();
    // Those of three bytes are unpacked, for which the highest bits stand first.
    let turned = match bits {
        16 | 32 | 64 => order == ByteOrder::Big,
        24 => order == ByteOrder::Little,
        _ => false,
    };
    if turned {
        bytes
            .chunks_exact_mut((bits / 8) as usize)
            .for_each(<[u8]>::reverse);
    }
}

/// Adds to each value the one a pixel before it.
fn sum<T: Copy>(row: &mut [T], samples: usize, step: usize, add: impl Fn(T, T) -> T) {
    let back = samples * step;
    for at in back..row.len() {
        let (before, rest) = row.split_at_mut(at);
        if let (Some(left), Some(own)) = (before.get(at - back), rest.first_mut()) {
            *own = add(*own, *left);
        }
    }
}

fn sum_of<const N: usize>(
    row: &mut [u8],
    samples: usize,
    add: impl Fn([u8; N], [u8; N]) -> [u8; N],
) {
    sum(row.as_chunks_mut::<N>().0, samples, 1, add);
}

/// Reals of which all first bytes stand first.
fn gather(planes: &[u8], row: &mut [u8], size: usize) {
    let reals = row.len() / size;
    for (at, real) in row.chunks_exact_mut(size).enumerate() {
        for (byte, out) in real.iter_mut().rev().enumerate() {
            *out = planes.get(byte * reals + at).copied().unwrap_or_default();
        }
    }
}

/// Numbers of some bits, the first of which are the highest of a byte; rows begin with a byte.
fn unpack(bytes: &[u8], row: usize, cells: usize, bits: u32, size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() / row.max(1) * cells * size);
    for row in bytes.chunks_exact(row.max(1)) {
        let (mut held, mut have) = (0u64, 0);
        let mut row = row.iter();
        for _ in 0..cells {
            while have < bits {
                held = held << 8 | u64::from(row.next().copied().unwrap_or_default());
                have += 8;
            }
            have -= bits;
            let number = held >> have & ((1 << bits) - 1);
            out.extend(number.to_le_bytes().into_iter().take(size));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_bytes() {
        let packed = [
            0xfe, 0xaa, 0x02, 0x80, 0x00, 0x2a, 0xfd, 0xaa, 0x80, 0x00, 0x22,
        ];
        let plain = [
            0xaa, 0xaa, 0xaa, 0x80, 0x00, 0x2a, 0xaa, 0xaa, 0xaa, 0xaa, 0x22,
        ];
        assert_eq!(pack_bits(&packed, 11), plain);
        assert_eq!(pack_bits(&packed, 4), plain[..4]);
        assert_eq!(pack_bits(&[5, 1], 9), [1]);
        assert_eq!(pack_bits(&[0xff], 9), [0; 0]);
    }

    #[test]
    fn numbers_of_some_bits() {
        assert_eq!(
            unpack(&[0b1010_0000, 0b0100_0000], 1, 3, 1, 1),
            [1, 0, 1, 0, 1, 0]
        );
        assert_eq!(
            unpack(&[0xab, 0xcd, 0xef], 3, 2, 12, 2),
            [0xbc, 0x0a, 0xef, 0x0d]
        );
    }

    #[test]
    fn numbers_of_three_bytes_have_the_order_of_the_file() {
        for (order, mut bytes) in [
            (ByteOrder::Little, [0x56, 0x34, 0x12, 1, 0, 0]),
            (ByteOrder::Big, [0x12, 0x34, 0x56, 0, 0, 1]),
        ] {
            swap(&mut bytes, order, Sample::Uint(24));
            assert_eq!(
                unpack(&bytes, 6, 2, 24, 4),
                [0x56, 0x34, 0x12, 0, 1, 0, 0, 0],
                "{order:?}"
            );
        }
    }

    #[test]
    fn reals_by_bytes() {
        let mut row = [0; 8];
        // 1.0 and 2.0: 3f800000, 40000000.
        gather(&[0x3f, 0x40, 0x80, 0, 0, 0, 0, 0], &mut row, 4);
        assert_eq!(row[..4], 1f32.to_le_bytes());
        assert_eq!(row[4..], 2f32.to_le_bytes());
    }

    #[test]
    fn sums_go_by_bands() {
        let mut row = [1u8, 10, 1, 1, 255, 1];
        sum(&mut row, 2, 1, u8::wrapping_add);
        assert_eq!(row, [1, 10, 2, 11, 1, 12]);
    }

    #[test]
    fn hostile_chunks_are_errors() {
        for compression in [
            Compression::Deflate,
            Compression::Lzw,
            Compression::Zstd,
            Compression::PackBits,
        ] {
            for bytes in [vec![], vec![0xff; 40], (0..200).collect::<Vec<u8>>()] {
                // Runs of bytes may happen to be long enough; nothing else is made of nothing.
                let found = decompress(compression, bytes.clone(), 1 << 16);
                assert!(found.is_err(), "{compression:?} {bytes:?}");
            }
        }
    }
}
