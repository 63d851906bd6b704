//! Rows that are long enough to be read or unfiltered straight into the result: raw and shuffled
//! tiles of several chunks in local files, overlapping fragments, any window and order; and files
//! that end early or lie about their chunks.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use azulejo::column::{ColumnBuffers, ColumnMut, ColumnSet};
use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::schema::{ArraySchema, Attribute};
use azulejo::format::{CellValNum, Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::space::{DimSelection, Layout, Subarray};
use azulejo::write::WriteOptions;
use azulejo::{Config, Context, Error};
use std::path::{Path, PathBuf};

fn context() -> Context {
    Context::new(Config::default(), None).unwrap()
}

fn create(uri: &Path, side: i64, tile: i64, filters: &[Filter]) {
    let pipeline = Pipeline {
        filters: filters.to_vec(),
        ..Pipeline::default()
    };
    let schema = ArraySchema::dense()
        .dimension("y", 0..=side - 1, tile)
        .dimension("x", 0..=side - 1, tile)
        .attribute_with(Attribute::new("v", Datatype::Int32, CellValNum::ONE).filters(pipeline))
        .build()
        .unwrap();
    context()
        .array(uri.to_str().unwrap())
        .create(schema)
        .unwrap();
}

fn write(uri: &Path, rows: Range, columns: Range, cells: Vec<i32>) {
    let set = ColumnSet::of([ColumnBuffers::of_values("v", cells)]).unwrap();
    let options = WriteOptions::new().subarray(NdRectangle {
        ranges: vec![rows, columns],
    });
    let mut writer = context()
        .array(uri.to_str().unwrap())
        .writer(options)
        .unwrap();
    writer.write(&set).unwrap();
    writer.finish().unwrap();
}

fn values(bytes: &[u8]) -> Vec<i32> {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|value| i32::from_le_bytes(*value))
        .collect()
}

fn data_files(uri: &Path) -> Vec<PathBuf> {
    let fragments = std::fs::read_dir(uri.join("__fragments")).unwrap();
    fragments
        .map(|fragment| fragment.unwrap().path().join("a0.tdb"))
        .collect()
}

const CHAINS: [&[Filter]; 4] = [
    &[],
    &[Filter::Byteshuffle, Filter::Lz4 { level: 0 }],
    &[Filter::Byteshuffle],
    &[
        Filter::ChecksumMd5,
        Filter::Byteshuffle,
        Filter::Zstd { level: 1 },
    ],
];

#[test]
fn any_window_of_overlapping_fragments_is_what_was_written() {
    const SIDE: usize = 700;
    let dir = tempfile::tempdir().unwrap();
    for (i, filters) in CHAINS.into_iter().enumerate() {
        let uri = dir.path().join(format!("a{i}"));
        create(&uri, SIDE as i64, 300, filters);
        let mut model: Vec<i32> = (0..SIDE * SIDE).map(|cell| cell as i32 * 3).collect();
        let all = Range::of(0i64, SIDE as i64 - 1);
        write(&uri, all.clone(), all, model.clone());
        let (top, left, height, width) = (250, 33, 210, 500);
        let patch: Vec<i32> = (0..height * width).map(|cell| -(cell as i32)).collect();
        for (row, cells) in patch.chunks_exact(width).enumerate() {
            let start = (top + row) * SIDE + left;
            model[start..start + width].copy_from_slice(cells);
        }
        let along = |start: usize, len: usize| Range::of(start as i64, (start + len) as i64 - 1);
        write(&uri, along(top, height), along(left, width), patch);

        let array = context().array(uri.to_str().unwrap()).open().unwrap();
        let mut seed = 7usize;
        let mut below = |n: usize| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        for query in 0..60 {
            let mut taken: Vec<Vec<usize>> = Vec::new();
            let mut selections = Vec::new();
            for _ in 0..2 {
                let from = below(SIDE);
                let to = from + below(SIDE - from);
                let step = if below(3) == 0 { 1 + below(40) } else { 1 };
                taken.push((from..=to).step_by(step).collect());
                let range = Range::of(from as i64, to as i64);
                selections.push(DimSelection::Strided {
                    range,
                    step: step as u64,
                });
            }
            let layout = [Layout::RowMajor, Layout::ColMajor][below(4) / 3];
            let mut want: Vec<i32> = Vec::new();
            match layout {
                Layout::RowMajor => taken[0].iter().for_each(|y| {
                    want.extend(taken[1].iter().map(|x| model[y * SIDE + x]));
                }),
                _ => taken[1].iter().for_each(|x| {
                    want.extend(taken[0].iter().map(|y| model[y * SIDE + x]));
                }),
            }
            let options = ReadOptions::new()
                .subarray(Subarray::Box(selections))
                .layout(layout);
            let mut out = vec![0xee; want.len() * 4];
            let mut reader = array.read(options).unwrap();
            let mut columns = [ColumnMut {
                data: &mut out,
                offsets: None,
                validity: None,
            }];
            assert!(reader.read_into(&mut columns).unwrap().complete);
            assert!(values(&out) == want, "chain {i}, query {query}, {layout:?}");
        }
    }
}

#[test]
fn results_larger_than_any_cache_are_what_was_written() {
    const SIDE: usize = 3000;
    let dir = tempfile::tempdir().unwrap();
    let uri = dir.path().join("a");
    create(&uri, SIDE as i64, 500, &[Filter::Byteshuffle]);
    let cells: Vec<i32> = (0..(SIDE * SIDE) as i32).collect();
    let all = Range::of(0i64, SIDE as i64 - 1);
    write(&uri, all.clone(), all, cells.clone());
    let array = context().array(uri.to_str().unwrap()).open().unwrap();
    // The caller's memory may begin anywhere.
    for shift in [0, 4, 1] {
        let mut out = vec![0xee; SIDE * SIDE * 4 + shift];
        let mut reader = array.read(ReadOptions::new()).unwrap();
        let mut columns = [ColumnMut {
            data: &mut out[shift..],
            offsets: None,
            validity: None,
        }];
        assert!(reader.read_into(&mut columns).unwrap().complete);
        assert!(values(&out[shift..]) == cells, "shifted by {shift}");
    }
}

#[test]
fn raw_tiles_that_end_early_or_lie_are_errors() {
    const SIDE: usize = 400;
    let dir = tempfile::tempdir().unwrap();
    let uri = dir.path().join("a");
    create(&uri, SIDE as i64, 200, &[]);
    let all = Range::of(0i64, SIDE as i64 - 1);
    write(&uri, all.clone(), all, (0..(SIDE * SIDE) as i32).collect());
    let [file] = data_files(&uri).try_into().unwrap();
    let whole = std::fs::read(&file).unwrap();
    let read = || -> Result<Vec<u8>, Error> {
        let array = context().array(uri.to_str().unwrap()).open()?;
        let mut out = vec![0xee; SIDE * SIDE * 4];
        let mut columns = [ColumnMut {
            data: &mut out,
            offsets: None,
            validity: None,
        }];
        array.read(ReadOptions::new())?.read_into(&mut columns)?;
        Ok(out)
    };
    let good = read().unwrap();
    let corrupt = |what: &str| match read() {
        Err(Error::Corrupt { uri, .. }) => assert!(uri.ends_with("a0.tdb"), "{what}: {uri}"),
        other => panic!("{what}: {:?}", other.map(|cells| cells == good)),
    };
    for len in [
        0,
        7,
        8,
        19,
        20,
        21,
        1000,
        65_556,
        65_560,
        65_568,
        70_000,
        whole.len() / 2,
        whole.len() - 1,
    ] {
        std::fs::write(&file, &whole[..len]).unwrap();
        corrupt(&format!("{len} bytes"));
    }
    // The number of chunks, and the lengths of the first two.
    for at in (0..8).chain(8..20).chain(65_556..65_568) {
        for bit in [0x01, 0x80] {
            let mut damaged = whole.clone();
            damaged[at] ^= bit;
            std::fs::write(&file, &damaged).unwrap();
            corrupt(&format!("byte {at} xor {bit:#x}"));
        }
    }
    std::fs::write(&file, &whole).unwrap();
    assert!(read().unwrap() == good);
}

#[test]
fn chunks_that_cut_cells_leave_those_before_them_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let uri = dir.path().join("a");
    let pipeline = Pipeline {
        max_chunk_size: 16,
        filters: Vec::new(),
    };
    let schema = ArraySchema::dense()
        .dimension("x", 0..=15i64, 16i64)
        .attribute_with(Attribute::new("v", Datatype::Int32, CellValNum::ONE).filters(pipeline))
        .build()
        .unwrap();
    context()
        .array(uri.to_str().unwrap())
        .create(schema)
        .unwrap();
    let cells: Vec<i32> = (100..116).collect();
    let set = ColumnSet::of([ColumnBuffers::of_values("v", cells.clone())]).unwrap();
    let mut writer = context()
        .array(uri.to_str().unwrap())
        .writer(WriteOptions::new())
        .unwrap();
    writer.write(&set).unwrap();
    writer.finish().unwrap();

    // Four chunks of four cells: the second becomes half a cell longer, the third shorter.
    let file = data_files(&uri).pop().unwrap();
    let stored = std::fs::read(&file).unwrap();
    assert_eq!((stored.len(), stored[0]), (8 + 4 * (12 + 16), 4));
    let cells_of = |chunk: usize| &stored[8 + chunk * 28 + 12..][..16];
    let data: Vec<u8> = (0..4).flat_map(cells_of).copied().collect();
    let mut cut = stored[..8].to_vec();
    let mut at = 0;
    for len in [16u32, 18, 14, 16] {
        cut.extend([len, len, 0].map(u32::to_le_bytes).as_flattened());
        cut.extend(&data[at..at + len as usize]);
        at += len as usize;
    }
    std::fs::write(&file, cut).unwrap();

    let array = context().array(uri.to_str().unwrap()).open().unwrap();
    for (from, to) in [(0i64, 15i64), (2, 9), (5, 7), (8, 12)] {
        let subarray = Subarray::Box(vec![DimSelection::Ranges(vec![Range::of(from, to)])]);
        let options = ReadOptions::new().subarray(subarray);
        let mut batches = array.read(options).unwrap();
        let batch = batches.next().unwrap().unwrap();
        assert_eq!(
            values(&batch.columns[0].data),
            cells[from as usize..=to as usize],
            "{from}..={to}"
        );
    }
}
