//! The codecs in C and those in Rust, each way between them.

use super::super::{gzip, webp, zstd};
use super::*;
use crate::filter::webp::Webp;

/// What compresses well, badly and not at all.
fn cells() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..3000),
        vec(0u8..3, 0..200_000),
        (any::<u8>(), 0usize..300_000).prop_map(|(byte, len)| vec![byte; len]),
        (1u32..5000, 0u32..60_000).prop_map(|(step, count)| {
            (0..count)
                .flat_map(|i| (i * step / 7).to_le_bytes())
                .collect()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn zstd_frames_go_both_ways(cells in cells(), level in -7i32..=12) {
        let (mut library, mut rust) = (zstd::library::Codec::default(), zstd::rust::Codec::default());
        let (mut from_library, mut from_rust) = (Vec::new(), Vec::new());
        library.compress(level, &cells, &mut from_library).unwrap();
        rust.compress(level, &cells, &mut from_rust).unwrap();
        let mut out = vec![0xaa; cells.len()];
        rust.decompress(&from_library, &mut out).unwrap();
        prop_assert!(out == cells);
        out.fill(0xaa);
        rust.decompress(&from_rust, &mut out).unwrap();
        prop_assert!(out == cells);
        out.fill(0xaa);
        library.decompress(&from_rust, &mut out).unwrap();
        prop_assert!(out == cells);
        // Frames follow one another.
        from_rust.extend_from_slice(&from_library);
        let mut twice = vec![0; 2 * cells.len()];
        rust.decompress(&from_rust, &mut twice).unwrap();
        prop_assert!(twice == [cells.as_slice(), &cells].concat());
        twice.push(0);
        prop_assert!(rust.decompress(&from_rust, &mut twice).is_err());
        if !cells.is_empty() {
            prop_assert!(rust.decompress(&from_library, &mut out[1..]).is_err());
        }
    }

    #[test]
    fn zlib_streams_go_both_ways(cells in cells(), level in -1i32..=9) {
        let (mut library, mut rust) = (gzip::library::Codec::default(), gzip::rust::Codec::default());
        let (mut from_library, mut from_rust) = (Vec::new(), Vec::new());
        library.compress(level, &cells, &mut from_library).unwrap();
        rust.compress(level, &cells, &mut from_rust).unwrap();
        let mut out = vec![0xaa; cells.len()];
        rust.decompress(&from_library, &mut out).unwrap();
        prop_assert!(out == cells);
        out.fill(0xaa);
        library.decompress(&from_rust, &mut out).unwrap();
        prop_assert!(out == cells);
        out.push(0);
        prop_assert!(rust.decompress(&from_library, &mut out).is_err());
        out.truncate(cells.len().saturating_sub(1));
        prop_assert!(cells.is_empty() || rust.decompress(&from_library, &mut out).is_err());
    }

    #[test]
    fn damaged_data_are_errors_or_values_of_the_codecs_in_rust(
        cells in vec(0u8..9, 0..4000), at in any::<prop::sample::Index>(), bits in 1u8.., cut in any::<bool>(),
    ) {
        let (mut frame, mut stream) = (Vec::new(), Vec::new());
        zstd::library::Codec::default().compress(3, &cells, &mut frame).unwrap();
        gzip::library::Codec::default().compress(6, &cells, &mut stream).unwrap();
        for bytes in [&mut frame, &mut stream] {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
            if cut {
                bytes.truncate(at);
            }
        }
        let (mut out, mut rust_out) = (vec![0; cells.len()], vec![0; cells.len()]);
        let mut rust = zstd::rust::Codec::default();
        let read = rust.decompress(&frame, &mut rust_out);
        if zstd::library::Codec::default().decompress(&frame, &mut out).is_ok() && read.is_ok() {
            prop_assert!(out == rust_out);
        }
        // What was wrong with one frame is not remembered with the next.
        let mut whole = Vec::new();
        rust.compress(1, &cells, &mut whole).unwrap();
        rust.decompress(&whole, &mut rust_out).unwrap();
        prop_assert!(rust_out == cells);

        let mut rust = gzip::rust::Codec::default();
        let read = rust.decompress(&stream, &mut rust_out);
        if gzip::library::Codec::default().decompress(&stream, &mut out).is_ok() && read.is_ok() {
            prop_assert!(out == rust_out);
        }
        let mut whole = Vec::new();
        rust.compress(1, &cells, &mut whole).unwrap();
        rust.decompress(&whole, &mut rust_out).unwrap();
        prop_assert!(rust_out == cells);
    }

    #[cfg(feature = "webp")]
    #[test]
    fn pictures_are_the_same_in_rust(
        format in 1u8..=4, lossless in any::<bool>(), quality in 0f32..100.0, (rows, width) in (1u16..40, 1u16..40),
        seed in vec(any::<u8>(), 64), damage in proptest::option::of((any::<prop::sample::Index>(), 1u8..)),
    ) {
        let depth = if format < 3 { 3 } else { 4 };
        let webp = Webp { quality, format, lossless, rows, row_len: width * depth };
        let len = usize::from(rows) * usize::from(width * depth);
        let cells: Vec<u8> = (0..len).map(|i| seed[i / 5 % 64].wrapping_add(i as u8)).collect();
        let mut picture = Vec::new();
        webp::library::encode(webp, &cells, &mut picture).unwrap();
        let (mut out, mut rust_out) = (vec![0; len], vec![0xaa; len]);
        if let Some((at, bits)) = damage {
            let at = at.index(picture.len());
            picture[at] ^= bits;
            let _ = webp::rust::decode(webp, &picture, &mut rust_out);
            return Ok(());
        }
        webp::library::decode(webp, &picture, &mut out).unwrap();
        webp::rust::decode(webp, &picture, &mut rust_out).unwrap();
        prop_assert_eq!(&out, &rust_out);
        // Pictures with alpha are read without it, and others with it.
        let other = Webp { format: (format + 1) % 4 + 1, ..webp };
        let len = len / usize::from(depth) * if other.format < 3 { 3 } else { 4 };
        let (mut out, mut rust_out) = (vec![0; len], vec![0xaa; len]);
        webp::library::decode(other, &picture, &mut out).unwrap();
        webp::rust::decode(other, &picture, &mut rust_out).unwrap();
        prop_assert_eq!(out, rust_out);
    }
}
