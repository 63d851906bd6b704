//! Bytes as eight rows of bits: the inner part of bitshuffle.
//!
//! Row `b` holds the bit `b` of every byte, eight bytes' bits in a byte, the first lowest.

use super::lanes::{load, merge, split, store, transpose_bits};

/// From bytes to eight rows, of the lowest bits to the highest; the length is a multiple of eight.
pub(super) fn split_bits(plane: &[u8], rows: &mut [u8]) {
    let row_len = plane.len() / 8;
    if row_len == 0 {
        return;
    }
    let mut row = rows.chunks_exact_mut(row_len);
    let mut rows: [&mut [u8]; 8] = std::array::from_fn(|_| row.next().unwrap_or_default());
    let mut done = wide::split_bits(plane, &mut rows);
    for block in plane.get(done..).unwrap_or_default().as_chunks::<128>().0 {
        let from = block.as_chunks::<16>().0;
        let lanes = split::<8>(std::array::from_fn(|n| transpose_bits(load(&from[n]))));
        for (row, lane) in rows.iter_mut().zip(lanes) {
            if let Some(to) = row
                .get_mut(done / 8..)
                .and_then(|row| row.first_chunk_mut())
            {
                store(lane, to);
            }
        }
        done += 128;
    }
    for group in plane.get(done..).unwrap_or_default().as_chunks::<8>().0 {
        for (bit, row) in rows.iter_mut().enumerate() {
            row[done / 8] = (0..8).fold(0, |byte, n| byte | (group[n] >> bit & 1) << n);
        }
        done += 8;
    }
}

/// From eight rows of bits to bytes; the length is a multiple of eight.
pub(super) fn merge_bits(rows: &[u8], plane: &mut [u8]) {
    let row_len = plane.len() / 8;
    if row_len == 0 {
        return;
    }
    let mut row = rows.chunks_exact(row_len);
    let rows: [&[u8]; 8] = std::array::from_fn(|_| row.next().unwrap_or_default());
    let mut done = wide::merge_bits(&rows, plane);
    let (blocks, last) = plane
        .get_mut(done..)
        .unwrap_or_default()
        .as_chunks_mut::<128>();
    for block in blocks {
        let lane = |bit: usize| {
            rows[bit]
                .get(done / 8..)
                .and_then(|row| row.first_chunk())
                .map(load)
        };
        let Some(lanes) = all_of(lane) else { break };
        for (to, lane) in block
            .as_chunks_mut::<16>()
            .0
            .iter_mut()
            .zip(merge::<8>(lanes))
        {
            store(transpose_bits(lane), to);
        }
        done += 128;
    }
    for group in last.as_chunks_mut::<8>().0 {
        *group = std::array::from_fn(|n| {
            rows.iter()
                .enumerate()
                .fold(0, |byte, (bit, row)| byte | (row[done / 8] >> n & 1) << bit)
        });
        done += 8;
    }
}

/// Eight items, if all of them exist.
#[inline]
fn all_of<T: Copy>(item: impl Fn(usize) -> Option<T>) -> Option<[T; 8]> {
    let first = item(0)?;
    let mut all = [first; 8];
    for (i, place) in all.iter_mut().enumerate().skip(1) {
        *place = item(i)?;
    }
    Some(all)
}

/// 256 bytes at a time where the processor has AVX2: the two halves of a register work on
/// neighbouring blocks.
#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "measured on 64 KiB chunks of doubles: bitshuffling 1.7 GB/s against 0.8 with SSE2, on a busy machine"
)]
mod wide {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_loadu_si256, _mm256_packus_epi16,
        _mm256_permute2x128_si256, _mm256_set1_epi16, _mm256_set1_epi64x, _mm256_setzero_si256,
        _mm256_slli_epi64, _mm256_srli_epi16, _mm256_srli_epi64, _mm256_storeu_si256,
        _mm256_unpackhi_epi8, _mm256_unpacklo_epi8, _mm256_xor_si256,
    };

    /// As [`super::split_bits`], for as many bytes as it returns.
    pub(super) fn split_bits(plane: &[u8], rows: &mut [&mut [u8]; 8]) -> usize {
        if plane.len() < 256 || !std::is_x86_feature_detected!("avx2") {
            return 0;
        }
        // SAFETY: AVX2 was just detected.
        unsafe { split_blocks(plane, rows) }
    }

    /// As [`super::merge_bits`], for as many bytes as it returns.
    pub(super) fn merge_bits(rows: &[&[u8]; 8], plane: &mut [u8]) -> usize {
        if plane.len() < 256 || !std::is_x86_feature_detected!("avx2") {
            return 0;
        }
        // SAFETY: AVX2 was just detected.
        unsafe { merge_blocks(rows, plane) }
    }

    #[target_feature(enable = "avx2")]
    fn split_blocks(plane: &[u8], rows: &mut [&mut [u8]; 8]) -> usize {
        let blocks = plane.as_chunks::<256>().0;
        for (i, block) in blocks.iter().enumerate() {
            let from = block.as_chunks::<32>().0;
            let mut lanes = [_mm256_setzero_si256(); 8];
            for n in 0..4 {
                let (a, b) = (load(&from[n]), load(&from[4 + n]));
                lanes[2 * n] = transpose_bits(_mm256_permute2x128_si256::<0x20>(a, b));
                lanes[2 * n + 1] = transpose_bits(_mm256_permute2x128_si256::<0x31>(a, b));
            }
            let low = _mm256_set1_epi16(0xff);
            for _ in 0..3 {
                let from = lanes;
                for n in 0..4 {
                    let (a, b) = (from[2 * n], from[2 * n + 1]);
                    lanes[n] =
                        _mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
                    lanes[4 + n] =
                        _mm256_packus_epi16(_mm256_srli_epi16::<8>(a), _mm256_srli_epi16::<8>(b));
                }
            }
            for (row, lane) in rows.iter_mut().zip(lanes) {
                if let Some(to) = row.get_mut(32 * i..).and_then(|row| row.first_chunk_mut()) {
                    store(lane, to);
                }
            }
        }
        blocks.len() * 256
    }

    #[target_feature(enable = "avx2")]
    fn merge_blocks(rows: &[&[u8]; 8], plane: &mut [u8]) -> usize {
        let blocks = plane.as_chunks_mut::<256>().0;
        let count = blocks.len();
        for (i, block) in blocks.iter_mut().enumerate() {
            let mut lanes = [_mm256_setzero_si256(); 8];
            for (lane, row) in lanes.iter_mut().zip(rows) {
                match row.get(32 * i..).and_then(|row| row.first_chunk()) {
                    Some(from) => *lane = load(from),
                    None => return 256 * i,
                }
            }
            for _ in 0..3 {
                let from = lanes;
                for n in 0..4 {
                    lanes[2 * n] = _mm256_unpacklo_epi8(from[n], from[4 + n]);
                    lanes[2 * n + 1] = _mm256_unpackhi_epi8(from[n], from[4 + n]);
                }
            }
            let to = block.as_chunks_mut::<32>().0;
            for n in 0..4 {
                let (a, b) = (
                    transpose_bits(lanes[2 * n]),
                    transpose_bits(lanes[2 * n + 1]),
                );
                store(_mm256_permute2x128_si256::<0x20>(a, b), &mut to[n]);
                store(_mm256_permute2x128_si256::<0x31>(a, b), &mut to[4 + n]);
            }
        }
        count * 256
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8; 32]) -> __m256i {
        // SAFETY: 32 readable bytes, with no alignment asked for.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store(lane: __m256i, to: &mut [u8; 32]) {
        // SAFETY: 32 writable bytes, with no alignment asked for.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), lane) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn transpose_bits(x: __m256i) -> __m256i {
        let x = swap::<7>(x, 0x00aa_00aa_00aa_00aa);
        let x = swap::<14>(x, 0x0000_cccc_0000_cccc);
        swap::<28>(x, 0x0000_0000_f0f0_f0f0)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn swap<const BY: i32>(x: __m256i, mask: i64) -> __m256i {
        let t = _mm256_and_si256(
            _mm256_xor_si256(x, _mm256_srli_epi64::<BY>(x)),
            _mm256_set1_epi64x(mask),
        );
        _mm256_xor_si256(_mm256_xor_si256(x, t), _mm256_slli_epi64::<BY>(t))
    }
}

/// Nothing wider than a lane here.
#[cfg(not(target_arch = "x86_64"))]
mod wide {
    pub(super) fn split_bits(_: &[u8], _: &mut [&mut [u8]; 8]) -> usize {
        0
    }

    pub(super) fn merge_bits(_: &[&[u8]; 8], _: &mut [u8]) -> usize {
        0
    }
}
