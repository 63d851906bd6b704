//! What undoing a filter takes: the rates of `write/optimize/cost.rs`, measured anew. Prints, for each
//! filter behind kinds of data, nanoseconds for each byte before it and what became of the bytes; for
//! texts, which are decoded with their offsets, nanoseconds and bytes for each text.

#![expect(clippy::print_stdout, reason = "a table for who runs it")]

use azulejo::format::filter::{FilterContext, Pipeline, Scratch};
use azulejo::format::tile::var_offsets;
use azulejo::format::{CellValNum, Datatype, FormatVersion};
use azulejo::write::optimize::usual_offsets_filters;
use std::time::Instant;

/// Pipelines to undo; those of which each is another with one filter more show what that filter takes.
const PIPELINES: [&str; 19] = [
    "none",
    "lz4",
    "zstd:1",
    "zstd:3",
    "zstd:9",
    "byteshuffle",
    "byteshuffle,lz4",
    "byteshuffle,zstd:1",
    "byteshuffle,zstd:3",
    "bitshuffle",
    "bitshuffle,lz4",
    "bitshuffle,zstd:1",
    "xor",
    "delta",
    "delta,byteshuffle,lz4",
    "double-delta",
    "double-delta,zstd:1",
    "bit-width-reduction:4096",
    "bit-width-reduction:4096,zstd:1",
];
const CHUNKS: usize = 16;
const CHUNK: usize = 65_536;

fn main() {
    let mut state = 1u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let values = CHUNK / 8 * CHUNKS;
    let mut at = 0;
    let kinds: [(&str, Datatype, Vec<u64>); 7] = [
        (
            "sorted",
            Datatype::Int64,
            (0..values)
                .map(|_| {
                    at += random() % 2;
                    at
                })
                .collect(),
        ),
        (
            "11 bits",
            Datatype::Int64,
            (0..values).map(|_| random() % 2_048).collect(),
        ),
        (
            "31 bits",
            Datatype::Int64,
            (0..values).map(|_| random() % (1 << 31)).collect(),
        ),
        ("constant", Datatype::Int64, vec![7; values]),
        (
            "measured",
            Datatype::Float64,
            (0..values)
                .map(|_| ((random() % 100_000) as f64 / 1_000.0).to_bits())
                .collect(),
        ),
        (
            "noise",
            Datatype::Float64,
            (0..values)
                .map(|_| (random() as f64 / 7.3).sqrt().to_bits())
                .collect(),
        ),
        (
            "13 bits",
            Datatype::Int32,
            (0..values)
                .map(|_| (random() % 10_000) | ((random() % 10_000) << 32))
                .collect(),
        ),
    ];
    println!(
        "{:10} {:34} {:>7} {:>9} {:>9}",
        "data", "filters", "ns/byte", "stored", "encode"
    );
    for (name, datatype, data) in &kinds {
        let bytes: Vec<u8> = data.iter().flat_map(|n| n.to_le_bytes()).collect();
        let ctx = FilterContext {
            version: FormatVersion::CURRENT,
            datatype: *datatype,
            cell_val_num: CellValNum::ONE,
            key: None,
        };
        for text in PIPELINES {
            let pipeline: Pipeline = text.parse().expect("filters");
            if pipeline.check(*datatype, CellValNum::ONE).is_err() {
                continue;
            }
            let (mut scratch, mut stored) = (Scratch::new(), Vec::new());
            let encode = best(|| {
                stored.clear();
                pipeline
                    .encode_tile(&ctx, &bytes, None, &mut stored, &mut scratch)
                    .expect("encodes");
            });
            // One chunk's place: it stays in a cache, as what reads it next has it.
            let mut out = vec![0; bytes.len()];
            let decode = best(|| {
                pipeline
                    .decode_tile(&ctx, &stored, &mut out, &mut scratch)
                    .expect("decodes");
            });
            assert_eq!(out, bytes);
            let per = |seconds: f64| seconds * 1e9 / bytes.len() as f64;
            println!(
                "{name:10} {text:34} {:7.3} {:9.4} {:9.3}",
                per(decode),
                stored.len() as f64 / bytes.len() as f64,
                per(encode)
            );
        }
    }
    texts(random);
}

/// Filters of texts; offsets that these do not hold are filtered as usual.
fn texts(mut random: impl FnMut() -> u64) {
    const TEXTS: usize = 65_536;
    let mut of = |different: u64, len: usize| -> Vec<String> {
        let text = |n: u64| format!("{n:0len$}");
        (0..TEXTS).map(|_| text(random() % different)).collect()
    };
    let kinds = [
        ("100 of 5", of(100, 5)),
        ("1000 of 12", of(1_000, 12)),
        ("10000 of 12", of(10_000, 12)),
        ("20 of 100", of(20, 100)),
        ("others", of(u64::MAX, 12)),
    ];
    println!(
        "\n{:11} {:34} {:>7} {:>9} {:>9}",
        "texts", "filters", "ns/text", "stored", "encode"
    );
    let ctx = FilterContext {
        version: FormatVersion::CURRENT,
        datatype: Datatype::StringUtf8,
        cell_val_num: CellValNum::Var,
        key: None,
    };
    let beside = usual_offsets_filters();
    for (name, texts) in &kinds {
        let data = texts.concat();
        let ends = texts.iter().scan(0, |end, text| {
            let start = *end;
            *end += text.len() as u64;
            Some(start)
        });
        let offsets: Vec<u64> = ends.collect();
        let bytes: Vec<u8> = offsets.iter().flat_map(|n| n.to_le_bytes()).collect();
        for text in ["zstd:3", "lz4", "dictionary", "dictionary,zstd:3"] {
            let pipeline: Pipeline = text.parse().expect("filters");
            let keeps = pipeline.keeps_offsets_in_data(&ctx);
            let (mut scratch, mut stored, mut apart) = (Scratch::new(), Vec::new(), Vec::new());
            let encode = best(|| {
                stored.clear();
                apart.clear();
                pipeline
                    .encode_tile(
                        &ctx,
                        data.as_bytes(),
                        Some(&offsets),
                        &mut stored,
                        &mut scratch,
                    )
                    .expect("encodes");
                if !keeps {
                    beside
                        .encode_tile(&ctx.offsets(), &bytes, None, &mut apart, &mut scratch)
                        .expect("encodes");
                }
            });
            let mut out = vec![0; data.len()];
            let (mut found, mut raw) = (vec![0; TEXTS], vec![0; bytes.len()]);
            let decode = best(|| match keeps {
                true => pipeline
                    .decode_string_tile(&ctx, &stored, &mut out, &mut found, &mut scratch)
                    .expect("decodes"),
                false => pipeline
                    .decode_tile(&ctx, &stored, &mut out, &mut scratch)
                    .and_then(|()| {
                        beside.decode_tile(&ctx.offsets(), &apart, &mut raw, &mut scratch)
                    })
                    .and_then(|()| var_offsets::decode(&raw, &mut found))
                    .and_then(|()| var_offsets::validate(&found, data.len() as u64))
                    .expect("decodes"),
            });
            assert!(out == data.as_bytes() && found == offsets);
            println!(
                "{name:11} {text:34} {:7.2} {:9.3} {:9.2}",
                decode * 1e9 / TEXTS as f64,
                (stored.len() + apart.len()) as f64 / TEXTS as f64,
                encode * 1e9 / TEXTS as f64
            );
        }
    }
}

/// The best of some runs, in seconds.
fn best(mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..15 {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}
