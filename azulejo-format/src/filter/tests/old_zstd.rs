//! Frames of Zstandard before 0.8, which old writers left with a system's library.

use super::super::zstd;

const FRAMES: [(&str, &[u8]); 7] = [
    ("0.1", include_bytes!("old_zstd/0.1.0.zst")),
    ("0.2", include_bytes!("old_zstd/0.2.2.zst")),
    ("0.3", include_bytes!("old_zstd/0.3.6.zst")),
    ("0.4", include_bytes!("old_zstd/0.4.7.zst")),
    ("0.5", include_bytes!("old_zstd/0.5.1.zst")),
    ("0.6", include_bytes!("old_zstd/0.6.2.zst")),
    ("0.7", include_bytes!("old_zstd/0.7.5.zst")),
];

fn cells() -> Vec<u8> {
    (0..200u32)
        .flat_map(|i| (i * i / 70 * 3).to_le_bytes())
        .collect()
}

#[test]
fn frames_of_every_old_release_are_read() {
    let codec = &mut zstd::Codec::default();
    for (release, frame) in FRAMES {
        let mut out = vec![0; 800];
        if cfg!(not(feature = "c-codecs")) && release < "0.5" {
            let error = codec.decompress(frame, &mut out).unwrap_err().to_string();
            assert!(error.contains(&format!("Zstandard {release}")), "{error}");
            continue;
        }
        codec.decompress(frame, &mut out).unwrap();
        assert_eq!(out, cells(), "{release}");
        for len in [0, 1, 799, 801, 4000] {
            let decoded = codec.decompress(frame, &mut vec![0; len]);
            assert!(decoded.is_err(), "{release}, {len} bytes");
        }
    }
}

#[test]
fn damaged_old_frames_are_errors_or_values() {
    let codec = &mut zstd::Codec::default();
    let mut out = vec![0; 800];
    for (_, frame) in FRAMES {
        for at in 0..frame.len() {
            let _ = codec.decompress(&frame[..at], &mut out);
            let mut damaged = frame.to_vec();
            for value in [
                0,
                0xff,
                frame[at] ^ 1,
                frame[at] ^ 0x80,
                frame[at].wrapping_add(7),
            ] {
                damaged[at] = value;
                let _ = codec.decompress(&damaged, &mut out);
            }
        }
    }
}
