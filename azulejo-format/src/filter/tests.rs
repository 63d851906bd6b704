//! Whole pipelines: known tiles, random chains in all versions, damage.

#[cfg(all(feature = "c-codecs", feature = "pure-rust"))]
mod codecs;
mod known_tiles;
mod old_zstd;

use super::growth::Growth;
use super::{EncryptionKey, Filter, FilterContext, Pipeline, Scratch};
use crate::datatype::{CellValNum, Datatype};
use crate::error::DecodeError;
use crate::tile::{Chunk, TileDecoder, var_offsets};
use crate::version::FormatVersion;
use crate::wire::ByteReader;
use known_tiles::{KNOWN_TILES, KnownTile};
use proptest::collection::vec;
use proptest::prelude::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .map(|c| (c as char).to_digit(16).unwrap() as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn v22() -> FormatVersion {
    FormatVersion::new(22, "test").unwrap()
}

fn context(
    version: FormatVersion,
    datatype: Datatype,
    cell_val_num: CellValNum,
) -> FilterContext<'static> {
    FilterContext {
        version,
        datatype,
        cell_val_num,
        key: None,
    }
}

fn pipeline(filters: impl Into<Vec<Filter>>) -> Pipeline {
    Pipeline {
        filters: filters.into(),
        ..Pipeline::default()
    }
}

fn chunks(stored: &[u8]) -> Result<Vec<Chunk<'_>>, DecodeError> {
    TileDecoder::new(stored.len() as u64)
        .chunks(stored)
        .collect()
}

/// Decodes a tile of known size, with its offsets where it holds them.
fn decode(
    pipeline: &Pipeline,
    ctx: &FilterContext<'_>,
    stored: &[u8],
    len: usize,
    cells: usize,
) -> Result<(Vec<u8>, Option<Vec<u64>>), DecodeError> {
    let mut scratch = Scratch::new();
    let mut data = vec![0xaa; len];
    if !pipeline.keeps_offsets_in_data(ctx) {
        pipeline.decode_tile(ctx, stored, &mut data, &mut scratch)?;
        for chunk in &chunks(stored)? {
            let expected = &data[chunk.output_offset as usize..chunk.output_end() as usize];
            let mut opened = pipeline.open_chunk(ctx, chunk, &mut scratch)?;
            for streams in [false, true] {
                let mut copied = vec![0xaa; expected.len()];
                // In two pieces, cut at a whole value of any type.
                let (low, high) = copied.split_at_mut(expected.len() / 2 / 16 * 16);
                opened.copy_to(0, low, streams)?;
                opened.copy_to(low.len(), high, streams)?;
                assert_eq!(copied, expected);
            }
            assert!(opened.as_bytes().is_none_or(|bytes| bytes == expected));
        }
        return Ok((data, None));
    }
    let mut offsets = vec![u64::MAX; cells];
    pipeline.decode_string_tile(ctx, stored, &mut data, &mut offsets, &mut scratch)?;
    let owned = pipeline.decode_string_tile_owned(ctx, stored, 1 << 30, &mut scratch)?;
    assert_eq!(owned, (data.clone(), offsets.clone()));
    let words = decode_words(pipeline, ctx, stored, len, cells, &mut scratch)?;
    assert_eq!(words, (data.clone(), offsets.clone()));
    Ok((data, Some(offsets)))
}

/// A tile of strings that holds its offsets, decoded to words, and these put one behind another.
fn decode_words(
    pipeline: &Pipeline,
    ctx: &FilterContext<'_>,
    stored: &[u8],
    len: usize,
    cells: usize,
    scratch: &mut Scratch,
) -> Result<(Vec<u8>, Vec<u64>), DecodeError> {
    let mut ids = vec![[0xaa; 4]; cells];
    let words = pipeline.decode_string_words(ctx, stored, len, &mut ids, scratch)?;
    assert!(words.len() == words.places.len() && words.is_empty() == words.places.is_empty());
    let words: Vec<&[u8]> = words.iter().collect();
    let (mut data, mut offsets) = (Vec::new(), Vec::new());
    for id in ids {
        offsets.push(data.len() as u64);
        data.extend_from_slice(words[u32::from_le_bytes(id) as usize]);
    }
    Ok((data, offsets))
}

impl KnownTile {
    fn pipeline(&self) -> Pipeline {
        let bytes = hex(self.filters);
        let mut r = ByteReader::new(&bytes);
        let mut filters = Vec::new();
        while !r.is_empty() {
            filters.push(Filter::decode(&mut r, v22()).unwrap());
        }
        pipeline(filters)
    }

    fn context(&self) -> FilterContext<'static> {
        let values = if self.values == 0 {
            CellValNum::Var
        } else {
            CellValNum::Fixed(self.values)
        };
        context(v22(), self.datatype, values)
    }

    /// The cells as written and, for strings, their offsets.
    fn cells(&self) -> (Vec<u8>, Option<Vec<u64>>) {
        if self.values > 0 {
            return (hex(self.cells), None);
        }
        let mut data = Vec::new();
        let mut offsets = Vec::new();
        for string in self.cells.split('|') {
            offsets.push(data.len() as u64);
            data.extend(string.as_bytes());
        }
        (data, Some(offsets))
    }
}

#[test]
fn tiles_of_the_reference_are_read_and_written_byte_by_byte() {
    for tile in KNOWN_TILES {
        if cfg!(not(feature = "webp")) && tile.name == "WEBP" {
            continue;
        }
        let (pipeline, ctx) = (tile.pipeline(), tile.context());
        let (cells, offsets) = tile.cells();
        let want = if tile.read.is_empty() {
            cells.clone()
        } else {
            hex(tile.read)
        };
        let count = offsets.as_ref().map_or(0, Vec::len);

        let read = decode(&pipeline, &ctx, &hex(tile.stored), want.len(), count);
        assert_eq!(read, Ok((want.clone(), offsets.clone())), "{}", tile.name);

        let mut written = Vec::new();
        pipeline
            .encode_tile(
                &ctx,
                &cells,
                offsets.as_deref(),
                &mut written,
                &mut Scratch::new(),
            )
            .unwrap();
        if tile.same_bytes {
            assert_eq!(written, hex(tile.stored), "{}", tile.name);
        }
        let again = decode(&pipeline, &ctx, &written, want.len(), count);
        assert_eq!(again, Ok((want, offsets)), "{}", tile.name);
    }
}

#[test]
fn a_damaged_tile_is_an_error_or_a_value() {
    let mut scratch = Scratch::new();
    for tile in KNOWN_TILES {
        let (pipeline, ctx) = (tile.pipeline(), tile.context());
        let (cells, offsets) = tile.cells();
        let len = if tile.read.is_empty() {
            cells.len()
        } else {
            hex(tile.read).len()
        };
        let count = offsets.as_ref().map_or(0, Vec::len);
        let stored = hex(tile.stored);
        for cut in 0..stored.len() {
            assert!(
                decode(&pipeline, &ctx, &stored[..cut], len, count).is_err(),
                "{} cut at {cut}",
                tile.name
            );
        }
        for at in 0..stored.len() {
            for with in [0, 1, 0x7f, 0x80, 0xff, stored[at] ^ 0x10] {
                let mut damaged = stored.clone();
                damaged[at] = with;
                let mut data = vec![0; len];
                let mut places = vec![0; count];
                if pipeline.keeps_offsets_in_data(&ctx) {
                    let read = pipeline.decode_string_tile(
                        &ctx,
                        &damaged,
                        &mut data,
                        &mut places,
                        &mut scratch,
                    );
                    if read.is_ok() {
                        var_offsets::validate(&places, len as u64).unwrap();
                    }
                    let words = decode_words(&pipeline, &ctx, &damaged, len, count, &mut scratch);
                    assert_eq!(words.ok(), read.ok().map(|()| (data, places)));
                    let _ =
                        pipeline.decode_string_tile_owned(&ctx, &damaged, 1 << 20, &mut scratch);
                } else {
                    let _ = pipeline.decode_tile(&ctx, &damaged, &mut data, &mut scratch);
                }
            }
        }
    }
}

#[test]
fn checksums_find_every_damaged_bit_of_the_data() {
    for filter in [Filter::ChecksumMd5, Filter::ChecksumSha256] {
        let pipeline = pipeline([Filter::Byteshuffle, filter]);
        let ctx = context(v22(), Datatype::Int32, CellValNum::ONE);
        let cells: Vec<u8> = (0..40).collect();
        let mut stored = Vec::new();
        let mut scratch = Scratch::new();
        pipeline
            .encode_tile(&ctx, &cells, None, &mut stored, &mut scratch)
            .unwrap();
        // The digests, the metadata of the shuffle and the data; in front are lengths.
        for at in stored.len() - cells.len()..stored.len() {
            for bit in 0..8 {
                let mut damaged = stored.clone();
                damaged[at] ^= 1 << bit;
                let mut out = vec![0; cells.len()];
                let read = pipeline.decode_tile(&ctx, &damaged, &mut out, &mut scratch);
                assert!(
                    matches!(read, Err(DecodeError::Checksum { .. })),
                    "{read:?}"
                );
                let mut careless = Scratch {
                    skip_checksum_validation: true,
                    ..Scratch::new()
                };
                pipeline
                    .decode_tile(&ctx, &damaged, &mut out, &mut careless)
                    .unwrap();
            }
        }
    }
}

#[test]
fn encryption_follows_from_the_key() {
    let key = EncryptionKey::new([7; 32]);
    let pipeline = pipeline([
        Filter::BitWidthReduction { max_window: 256 },
        Filter::Byteshuffle,
    ]);
    let cells: Vec<u8> = (0..200_000u32)
        .flat_map(|i| (i / 3).to_le_bytes())
        .collect();
    let plain = context(v22(), Datatype::UInt32, CellValNum::ONE);
    let ctx = FilterContext {
        key: Some(&key),
        ..plain
    };
    let mut scratch = Scratch::new();
    let mut stored = Vec::new();
    pipeline
        .encode_tile(&ctx, &cells, None, &mut stored, &mut scratch)
        .unwrap();
    let mut out = vec![0; cells.len()];
    pipeline
        .decode_tile(&ctx, &stored, &mut out, &mut scratch)
        .unwrap();
    assert_eq!(out, cells);
    // The same, as generic tiles name it.
    let mut named = pipeline.clone();
    named.filters.push(Filter::Aes256Gcm);
    named
        .decode_tile(&ctx, &stored, &mut out, &mut scratch)
        .unwrap();
    let without = named.decode_tile(&plain, &stored, &mut out, &mut scratch);
    assert!(matches!(without, Err(DecodeError::Decrypt { .. })));
    let other = EncryptionKey::new([8; 32]);
    let wrong = FilterContext {
        key: Some(&other),
        ..plain
    };
    let read = pipeline.decode_tile(&wrong, &stored, &mut out, &mut scratch);
    assert!(matches!(read, Err(DecodeError::Decrypt { .. })));
    // Two tiles never share an IV.
    let mut again = Vec::new();
    pipeline
        .encode_tile(&ctx, &cells, None, &mut again, &mut scratch)
        .unwrap();
    assert_ne!(stored, again);
}

#[test]
fn a_chunk_that_promises_gigabytes_gets_none() {
    // One chunk of 4 original bytes whose part list says that 4 GiB were compressed.
    let mut stored = 1u64.to_le_bytes().to_vec();
    let metadata: Vec<u8> = [0u32, 1, u32::MAX, 5]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();
    for len in [4u32, 5, metadata.len() as u32] {
        stored.extend(len.to_le_bytes());
    }
    stored.extend(&metadata);
    stored.extend([0; 5]);
    let ctx = context(v22(), Datatype::Int32, CellValNum::ONE);
    let zstd = || Filter::Zstd { level: 3 };
    let read = |filters: Vec<Filter>| {
        pipeline(filters).decode_tile(&ctx, &stored, &mut [0; 4], &mut Scratch::new())
    };
    assert!(matches!(
        read(vec![zstd()]),
        Err(DecodeError::Filter { .. })
    ));
    assert!(matches!(
        read(vec![Filter::Byteshuffle, zstd()]),
        Err(DecodeError::LimitExceeded {
            asked: 0xffff_ffff,
            ..
        })
    ));
}

#[test]
fn a_chunk_is_given_no_more_memory_than_its_filters_can_have_made() {
    // What cannot be compressed, through filters that make it longer.
    let cells: Vec<u8> = (0..3_000_000u32).map(|i| (i * 7) as u8).collect();
    let ctx = context(v22(), Datatype::UInt16, CellValNum::ONE);
    let window = |max_window| Filter::BitWidthReduction { max_window };
    let (rle, lz4) = (Filter::Rle { level: 0 }, Filter::Lz4 { level: 1 });
    for filters in [
        vec![rle.clone(), lz4.clone()],
        vec![rle.clone(), rle.clone(), rle.clone(), lz4.clone()],
        vec![window(2), lz4.clone()],
        vec![rle.clone(), window(256), lz4.clone()],
        vec![lz4.clone(), lz4.clone(), Filter::Bzip2 { level: 1 }],
    ] {
        let pipeline = Pipeline {
            max_chunk_size: cells.len() as u32,
            ..pipeline(filters.clone())
        };
        let mut stored = Vec::new();
        pipeline
            .encode_tile(&ctx, &cells, None, &mut stored, &mut Scratch::new())
            .unwrap();
        let mut read = vec![0; cells.len()];
        pipeline
            .decode_tile(&ctx, &stored, &mut read, &mut Scratch::new())
            .unwrap();
        assert!(read == cells, "{filters:?}");
        // Who says that there were more bytes in between than there can be is not believed. The list
        // of parts begins behind the number of chunks and three lengths.
        let mut wrong = stored;
        let len = cells.len() as u64;
        let steps = pipeline.steps(&ctx).take(filters.len() - 1);
        let most = steps.fold(Growth::of(len), Growth::behind).most(len);
        assert!(most.data < 30 * cells.len() as u64, "{filters:?}: {most:?}");
        let claimed = most.data as u32 + 1;
        let metadata_parts = u32::from_le_bytes(*wrong[20..].first_chunk().unwrap());
        let at = 28 + 8 * metadata_parts as usize;
        wrong[at..at + 4].copy_from_slice(&claimed.to_le_bytes());
        let refused = pipeline.decode_tile(&ctx, &wrong, &mut read, &mut Scratch::new());
        let asked = u64::from(claimed);
        assert!(
            matches!(refused, Err(DecodeError::LimitExceeded { asked: a, .. }) if a == asked),
            "{filters:?}: {refused:?}"
        );
    }
}

/// As many filters as there can be, and many small chunks: each filter is looked at once a chunk.
#[test]
fn many_filters_take_no_more_than_their_own_time() {
    let begun = std::time::Instant::now();
    let ctx = context(v22(), Datatype::UInt8, CellValNum::ONE);
    let pipeline = Pipeline {
        max_chunk_size: 1,
        ..pipeline(vec![Filter::Xor; Pipeline::MAX_FILTERS])
    };
    let cells: Vec<u8> = (0..2_000u32).map(|i| (i * 7) as u8).collect();
    let (mut stored, mut scratch) = (Vec::new(), Scratch::new());
    pipeline
        .encode_tile(&ctx, &cells, None, &mut stored, &mut scratch)
        .unwrap();
    let mut read = vec![0; cells.len()];
    pipeline
        .decode_tile(&ctx, &stored, &mut read, &mut scratch)
        .unwrap();
    assert!(read == cells);
    // A second or so; it was minutes.
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
}

#[test]
fn dictionaries_may_be_large() {
    // Different words, which lie in the metadata of the filter; most of a tile, and all of it.
    let ctx = context(v22(), Datatype::StringAscii, CellValNum::Var);
    let dictionary = Filter::Dictionary { level: -1 };
    let zstd = Filter::Zstd { level: 1 };
    for filters in [
        vec![dictionary.clone()],
        vec![dictionary.clone(), zstd.clone()],
        vec![dictionary, Filter::ChecksumMd5, zstd],
    ] {
        for len in [1, 12, 16] {
            let words = (0..200_000u32).map(|i| match len {
                1 => format!("{}", i % 256),
                len => format!("{i:0>len$}"),
            });
            let (mut data, mut offsets) = (Vec::new(), Vec::new());
            for word in words {
                offsets.push(data.len() as u64);
                data.extend(word.as_bytes());
            }
            let pipeline = pipeline(filters.clone());
            let mut stored = Vec::new();
            pipeline
                .encode_tile(
                    &ctx,
                    &data,
                    Some(&offsets),
                    &mut stored,
                    &mut Scratch::new(),
                )
                .unwrap();
            let read = decode(&pipeline, &ctx, &stored, data.len(), offsets.len());
            assert!(read == Ok((data, Some(offsets))), "{filters:?}, {len}");
        }
    }
}

#[test]
fn chunks_decode_alone_and_in_any_order() {
    let pipeline = pipeline([Filter::Byteshuffle, Filter::Zstd { level: 1 }]);
    let ctx = context(v22(), Datatype::UInt16, CellValNum::Fixed(3));
    let cells: Vec<u8> = (0..99_999u32)
        .flat_map(|i| [i as u8, (i >> 6) as u8])
        .collect();
    let mut stored = Vec::new();
    let mut scratch = Scratch::new();
    pipeline
        .encode_tile(&ctx, &cells, None, &mut stored, &mut scratch)
        .unwrap();
    let chunks = chunks(&stored).unwrap();
    // 65,536 bytes are no whole cells of 6.
    assert!(
        chunks
            .iter()
            .rev()
            .skip(1)
            .all(|chunk| chunk.original_len == 65_532)
    );
    for chunk in chunks.iter().rev() {
        let mut out = vec![0; chunk.original_len as usize];
        pipeline
            .decode_chunk(&ctx, chunk, &mut out, &mut scratch)
            .unwrap();
        assert_eq!(
            out,
            cells[chunk.output_offset as usize..chunk.output_end() as usize]
        );
        assert!(
            pipeline
                .decode_chunk(&ctx, chunk, &mut out[1..], &mut scratch)
                .is_err()
        );
    }
}

#[test]
fn versions_decide_where_offsets_lie_and_what_is_reduced() {
    let v = |n| FormatVersion::new(n, "test").unwrap();
    let in_data = |filter: Filter, datatype| {
        let first = FormatVersion::all().find(|version| {
            pipeline([filter.clone()]).keeps_offsets_in_data(&context(
                *version,
                datatype,
                CellValNum::Var,
            ))
        });
        first.map(FormatVersion::number)
    };
    let (rle, dictionary) = (Filter::Rle { level: -1 }, Filter::Dictionary { level: -1 });
    assert_eq!(in_data(rle.clone(), Datatype::StringAscii), Some(12));
    assert_eq!(in_data(dictionary.clone(), Datatype::StringAscii), Some(13));
    assert_eq!(in_data(rle.clone(), Datatype::StringUtf8), Some(17));
    assert_eq!(in_data(dictionary, Datatype::StringUtf8), Some(17));
    assert_eq!(in_data(rle, Datatype::Blob), None);

    let len = |filter: Filter, version| {
        let mut stored = Vec::new();
        let cells: Vec<u8> = (0..64i64).flat_map(i64::to_le_bytes).collect();
        let ctx = context(v(version), Datatype::DateTimeDay, CellValNum::ONE);
        pipeline([filter])
            .encode_tile(&ctx, &cells, None, &mut stored, &mut Scratch::new())
            .unwrap();
        stored.len()
    };
    let reduce = Filter::BitWidthReduction { max_window: 1024 };
    assert_eq!(len(reduce.clone(), 19), 8 + 12 + 512);
    assert_eq!(len(reduce, 20), 8 + 12 + (8 + 13) + 64);
    assert_eq!(
        len(Filter::PositiveDelta { max_window: 1024 }, 19),
        8 + 12 + 512
    );
}

#[test]
fn unfit_filters_are_refused_for_new_schemas() {
    let check =
        |filters: Vec<Filter>, datatype, values| pipeline(filters).check(datatype, values).is_ok();
    let (one, var) = (CellValNum::ONE, CellValNum::Var);
    let delta = |reinterpret| Filter::Delta {
        level: -1,
        reinterpret,
    };
    let scale = |byte_width| Filter::FloatScale {
        scale: 0.1,
        offset: 0.0,
        byte_width,
    };
    assert!(!check(vec![delta(None)], Datatype::Float64, one));
    assert!(check(
        vec![delta(Some(Datatype::Int64))],
        Datatype::Float64,
        one
    ));
    assert!(!check(
        vec![delta(Some(Datatype::Int64))],
        Datatype::Float32,
        one
    ));
    assert!(check(vec![scale(2), delta(None)], Datatype::Float32, one));
    assert!(!check(vec![scale(2), scale(2)], Datatype::Float32, one));
    assert!(!check(vec![scale(3)], Datatype::Float32, one));
    assert!(check(
        vec![Filter::Xor, delta(None)],
        Datatype::Float64,
        one
    ));
    // Nothing else can be written with it, but dimensions of dense arrays, whose coordinates are
    // not stored, may have it.
    assert!(check(
        vec![Filter::Dictionary { level: -1 }],
        Datatype::Int32,
        one
    ));
    let rle = || Filter::Rle { level: -1 };
    assert!(check(
        vec![rle(), Filter::Byteshuffle],
        Datatype::StringUtf8,
        var
    ));
    assert!(!check(
        vec![Filter::Byteshuffle, rle()],
        Datatype::StringUtf8,
        var
    ));
    assert!(!check(vec![rle(), rle()], Datatype::StringAscii, var));
    assert!(!check(vec![Filter::Aes256Gcm], Datatype::Int32, one));
}

#[test]
fn strings_that_the_reference_truncates_survive() {
    // The reference does not count the last run's length, and writes 300 as 44.
    let mut data = b"a".repeat(5);
    let mut offsets: Vec<u64> = (0..5).collect();
    offsets.push(5);
    data.extend([b'b'; 300]);
    let ctx = context(v22(), Datatype::StringAscii, CellValNum::Var);
    let rle = pipeline([Filter::Rle { level: -1 }]);
    let mut stored = Vec::new();
    rle.encode_tile(
        &ctx,
        &data,
        Some(&offsets),
        &mut stored,
        &mut Scratch::new(),
    )
    .unwrap();
    assert_eq!(
        decode(&rle, &ctx, &stored, data.len(), 6),
        Ok((data, Some(offsets)))
    );
}

#[test]
fn second_differences_of_what_is_no_whole_number_of_values() {
    // What a compressor has made is stored as it is, the bytes behind the last whole value, too.
    let differences = || Filter::DoubleDelta {
        level: -1,
        reinterpret: None,
    };
    let mut scratch = Scratch::new();
    for datatype in [Datatype::Int16, Datatype::Int32, Datatype::UInt64] {
        let ctx = context(v22(), datatype, CellValNum::ONE);
        for compressor in [Filter::Zstd { level: -1 }, Filter::Gzip { level: 1 }] {
            for cells in 1..60u64 {
                let cells: Vec<u8> = (0..cells).flat_map(|i| (i * i).to_le_bytes()).collect();
                let chain = pipeline([Filter::Byteshuffle, compressor.clone(), differences()]);
                let mut stored = Vec::new();
                chain
                    .encode_tile(&ctx, &cells, None, &mut stored, &mut scratch)
                    .unwrap();
                let read = decode(&chain, &ctx, &stored, cells.len(), 0);
                assert_eq!(read, Ok((cells, None)));
            }
        }
    }
}

/// Any filter that takes `datatype`, in any place of a pipeline of fixed-size cells.
fn any_filter(datatype: Datatype) -> BoxedStrategy<Filter> {
    let reinterpret = prop::sample::select(vec![
        None,
        Some(Datatype::Int64),
        Some(Datatype::UInt8),
        Some(Datatype::Int16),
        Some(Datatype::UInt32),
    ]);
    prop_oneof![
        Just(Filter::None),
        (-1..10i32).prop_map(|level| Filter::Gzip { level }),
        (-7..10i32).prop_map(|level| Filter::Zstd { level }),
        Just(Filter::Lz4 { level: -1 }),
        Just(Filter::Rle { level: -1 }),
        (-1..10i32).prop_map(|level| Filter::Bzip2 { level }),
        reinterpret
            .clone()
            .prop_map(|reinterpret| Filter::DoubleDelta {
                level: -1,
                reinterpret
            }),
        reinterpret.prop_map(|reinterpret| Filter::Delta {
            level: -1,
            reinterpret
        }),
        (8..300u32).prop_map(|max_window| Filter::BitWidthReduction { max_window }),
        (8..300u32).prop_map(|max_window| Filter::PositiveDelta { max_window }),
        Just(Filter::Bitshuffle),
        Just(Filter::Byteshuffle),
        Just(Filter::ChecksumMd5),
        Just(Filter::ChecksumSha256),
        Just(Filter::Xor),
    ]
    .prop_filter("takes the type", move |filter| {
        filter.accepts_datatype(datatype)
    })
    .boxed()
}

/// A chain of up to `len` filters that fit each other.
fn any_chain(datatype: Datatype, len: usize) -> BoxedStrategy<Vec<Filter>> {
    if len == 0 {
        return Just(Vec::new()).boxed();
    }
    prop_oneof![
        1 => Just(Vec::new()),
        6 => any_filter(datatype).prop_flat_map(move |filter| {
            any_chain(filter.output_datatype(datatype), len - 1).prop_map(move |mut rest| {
                rest.insert(0, filter.clone());
                rest
            })
        }),
    ]
    .boxed()
}

fn any_datatype() -> impl Strategy<Value = Datatype> {
    prop::sample::select(Datatype::ALL.to_vec())
}

fn any_version() -> impl Strategy<Value = FormatVersion> {
    prop::sample::select(FormatVersion::all().collect::<Vec<_>>())
}

/// Bytes of values that filters like (increasing, repeated) or not.
fn any_cells(cell_size: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 1..200).prop_map(move |bytes| {
            let len = bytes.len().next_multiple_of(cell_size);
            bytes.into_iter().cycle().take(len).collect()
        }),
        (1..3000usize, 1..9u64).prop_map(move |(count, step)| {
            (0..count as u64)
                .flat_map(|i| (i / 5 * step).to_le_bytes())
                .take(count.div_ceil(cell_size) * cell_size)
                .chain(std::iter::repeat(0))
                .take(count.div_ceil(cell_size) * cell_size)
                .collect()
        }),
    ]
}

/// Errors by which filters refuse data that they cannot express, as the reference does.
fn is_refusal(error: &DecodeError) -> bool {
    matches!(
        error,
        DecodeError::Filter { .. } | DecodeError::LimitExceeded { .. }
    )
}

fn any_fixed_case()
-> impl Strategy<Value = (FormatVersion, Datatype, u32, Vec<Filter>, Vec<u8>, bool)> {
    (any_version(), any_datatype(), 1..4u32).prop_flat_map(|(version, datatype, values)| {
        let cell_size = datatype.size() * values as usize;
        let rest = (any_chain(datatype, 5), any_cells(cell_size), any::<bool>());
        rest.prop_map(move |(chain, cells, encrypted)| {
            (version, datatype, values, chain, cells, encrypted)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_legal_chain_comes_back((version, datatype, values, chain, cells, encrypted) in any_fixed_case()) {
        let key = EncryptionKey::new([3; 32]);
        let ctx = FilterContext {
            key: encrypted.then_some(&key),
            ..context(version, datatype, CellValNum::Fixed(values))
        };
        let pipeline = Pipeline { max_chunk_size: 1000, filters: chain };
        let mut stored = Vec::new();
        match pipeline.encode_tile(&ctx, &cells, None, &mut stored, &mut Scratch::new()) {
            Ok(()) => prop_assert_eq!(decode(&pipeline, &ctx, &stored, cells.len(), 0), Ok((cells, None))),
            Err(error) => prop_assert!(is_refusal(&error), "{}", error),
        }
    }

    #[test]
    fn damage_anywhere_never_panics(
        (version, datatype, values, chain, cells, _) in any_fixed_case(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let ctx = context(version, datatype, CellValNum::Fixed(values));
        let pipeline = Pipeline { max_chunk_size: 1000, filters: chain };
        let mut stored = Vec::new();
        if pipeline.encode_tile(&ctx, &cells, None, &mut stored, &mut Scratch::new()).is_ok() {
            for (at, with) in damage {
                let at = at.index(stored.len());
                stored[at] = with;
            }
            let _ = decode(&pipeline, &ctx, &stored, cells.len(), 0);
        }
    }

    #[test]
    fn strings_and_their_offsets_come_back(
        version in any_version(),
        datatype in prop::sample::select(vec![Datatype::StringAscii, Datatype::StringUtf8, Datatype::Char, Datatype::Blob]),
        first in prop::sample::select(vec![
            Filter::Rle { level: -1 }, Filter::Dictionary { level: -1 }, Filter::Zstd { level: -1 },
            Filter::Delta { level: -1, reinterpret: None }, Filter::Bitshuffle,
        ]),
        rest in prop::sample::subsequence(
            vec![Filter::Zstd { level: 2 }, Filter::Byteshuffle, Filter::ChecksumMd5, Filter::Gzip { level: 1 }], 0..=4,
        ),
        strings in vec(prop_oneof!["[ab]{0,2}", ".{0,40}", "x{250,700}"], 1..60),
    ) {
        let ctx = context(version, datatype, CellValNum::Var);
        let mut filters = rest;
        filters.insert(0, first);
        let pipeline = Pipeline { max_chunk_size: 100, filters };
        let mut data = Vec::new();
        let mut offsets = Vec::new();
        for string in &strings {
            offsets.push(data.len() as u64);
            data.extend(string.as_bytes());
        }
        let mut stored = Vec::new();
        match pipeline.encode_tile(&ctx, &data, Some(&offsets), &mut stored, &mut Scratch::new()) {
            Ok(()) => {
                let kept = pipeline.keeps_offsets_in_data(&ctx).then(|| offsets.clone());
                prop_assert_eq!(decode(&pipeline, &ctx, &stored, data.len(), offsets.len()), Ok((data.clone(), kept)));
                if version.keeps_cells_whole() {
                    let chunks = chunks(&stored).unwrap();
                    let ends = |end| end == data.len() as u64 || offsets.contains(&end);
                    prop_assert!(chunks.iter().all(|chunk| ends(chunk.output_end())));
                }
            }
            Err(error) => {
                // A dictionary where offsets are kept apart: nothing that can be written.
                let dictionary = matches!(pipeline.filters[0], Filter::Dictionary { .. });
                prop_assert!(dictionary && !pipeline.keeps_offsets_in_data(&ctx), "{}", error);
            }
        }
    }
}

#[test]
fn the_table_of_filters_names_each_once() {
    let mut ids: Vec<u8> = Filter::ALL.iter().map(Filter::id).collect();
    ids.dedup();
    assert_eq!(ids.len(), Filter::ALL.len());
    for filter in Filter::ALL {
        assert_eq!(Filter::of_id(filter.id()), Some(filter));
    }
    assert_eq!(Filter::of_id(17), None);
}

#[test]
fn pipelines_that_lose_something_say_so() {
    let scaled = Filter::FloatScale {
        scale: 0.5,
        offset: 0.0,
        byte_width: 4,
    };
    assert!(pipeline([Filter::Byteshuffle, Filter::Xor]).keeps_values());
    assert!(!pipeline([scaled, Filter::Zstd { level: 1 }]).keeps_values());
    let picture = |lossless, input_format| Filter::Webp {
        quality: 100.0,
        input_format,
        lossless,
        y_extent: 4,
        x_extent: 16,
    };
    assert!(!pipeline([picture(false, 1)]).keeps_values());
    assert!(pipeline([picture(true, 2)]).keeps_values());
    assert!(!pipeline([picture(true, 3)]).keeps_values());
}

#[cfg(feature = "webp")]
#[test]
fn lossless_pictures_lose_the_colour_of_transparent_pixels() {
    let ctx = context(v22(), Datatype::UInt8, CellValNum::ONE);
    for input_format in 1..=4 {
        let filters = pipeline([Filter::Webp {
            quality: 100.0,
            input_format,
            lossless: true,
            y_extent: 4,
            x_extent: 48,
        }]);
        // Every fourth byte, which is alpha in the formats that have it, is zero.
        let cells: Vec<u8> = (0..192u8).map(|i| if i % 4 == 3 { 0 } else { i }).collect();
        let (mut stored, mut scratch) = (Vec::new(), Scratch::new());
        filters
            .encode_tile(&ctx, &cells, None, &mut stored, &mut scratch)
            .unwrap();
        let mut read = vec![0; cells.len()];
        filters
            .decode_tile(&ctx, &stored, &mut read, &mut scratch)
            .unwrap();
        assert_eq!(read == cells, filters.keeps_values(), "{input_format}");
    }
}
