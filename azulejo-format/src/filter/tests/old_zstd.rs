//! Frames of Zstandard before 0.8, which old writers left with a system's library.

use super::super::zstd;
use crate::filter::Scratch;

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
    let codecs = &mut Scratch::new().codecs;
    for (release, frame) in FRAMES {
        let mut out = vec![0; 800];
        zstd::decompress(frame, &mut out, codecs).unwrap();
        assert_eq!(out, cells(), "{release}");
        for len in [0, 1, 799, 801, 4000] {
            let decoded = zstd::decompress(frame, &mut vec![0; len], codecs);
            assert!(decoded.is_err(), "{release}, {len} bytes");
        }
    }
}

#[test]
fn damaged_old_frames_are_errors_or_values() {
    let codecs = &mut Scratch::new().codecs;
    let mut out = vec![0; 800];
    for (_, frame) in FRAMES {
        for at in 0..frame.len() {
            let _ = zstd::decompress(&frame[..at], &mut out, codecs);
            let mut damaged = frame.to_vec();
            for value in [
                0,
                0xff,
                frame[at] ^ 1,
                frame[at] ^ 0x80,
                frame[at].wrapping_add(7),
            ] {
                damaged[at] = value;
                let _ = zstd::decompress(&damaged, &mut out, codecs);
            }
        }
    }
}
