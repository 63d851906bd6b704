//! Unfiltering by codec, dense reads and sparse reads, of arrays that the library itself writes.
//! For changes: machines differ, and `cargo xtask versus` compares with the reference.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::condition::{Comparison, Condition};
use azulejo::format::filter::{Filter, FilterContext, Pipeline, Scratch};
use azulejo::format::schema::{ArraySchema, Attribute};
use azulejo::format::{CellValNum, Datatype, FormatVersion, Range};
use azulejo::read::ReadOptions;
use azulejo::space::{DimSelection, Layout};
use azulejo::write::WriteOptions;
use azulejo::{Array, Config, Context, Subarray};
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Cells along each dimension of the dense arrays.
const SIDE: i32 = 2_048;
/// Cells of the sparse arrays.
const CELLS: i64 = 500_000;
/// Length of each dimension of the sparse arrays.
const DOMAIN: i64 = 100_000;

const CODECS: &[&str] = &[
    "none",
    "zstd",
    "shuffle_zstd",
    "shuffle_lz4",
    "bitshuffle_zstd",
    "gzip",
    "delta",
];

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

fn main() {
    let dir = tempfile::tempdir().unwrap();
    FOLDER.set(dir.path().to_owned()).unwrap();
    divan::main();
}

fn pipeline(codec: &str) -> Pipeline {
    let zstd = Filter::Zstd { level: 3 };
    let filters = match codec {
        "none" => vec![],
        "zstd" => vec![zstd],
        "shuffle_zstd" => vec![Filter::Byteshuffle, zstd],
        "shuffle_lz4" => vec![Filter::Byteshuffle, Filter::Lz4 { level: 0 }],
        "bitshuffle_zstd" => vec![Filter::Bitshuffle, zstd],
        "gzip" => vec![Filter::Gzip { level: 6 }],
        _ => vec![Filter::DoubleDelta {
            level: 0,
            reinterpret: None,
        }],
    };
    Pipeline {
        filters,
        ..Pipeline::default()
    }
}

/// Numbers that grow with noise: compressible, but not for nothing.
fn noisy(n: usize) -> Vec<i32> {
    let mut state = 88_172_645_463_325_252_u64;
    (0..n as i32)
        .map(|i| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            i / 8 + (state % 16) as i32
        })
        .collect()
}

#[divan::bench(args = CODECS)]
fn unfilter(bencher: Bencher<'_, '_>, codec: &str) {
    let values = noisy(1 << 18);
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let pipeline = pipeline(codec);
    let ctx = FilterContext {
        version: FormatVersion::CURRENT,
        datatype: Datatype::Int32,
        cell_val_num: CellValNum::ONE,
        key: None,
    };
    let (mut stored, mut scratch) = (Vec::new(), Scratch::new());
    pipeline
        .encode_tile(&ctx, &data, None, &mut stored, &mut scratch)
        .unwrap();
    let mut out = vec![0; data.len()];
    bencher
        .counter(BytesCount::new(data.len()))
        .bench_local(|| {
            pipeline
                .decode_tile(&ctx, black_box(&stored), &mut out, &mut scratch)
                .unwrap();
        });
}

fn context() -> Context {
    Context::new(Config::default(), None).unwrap()
}

/// An array in the benchmark's folder, made on first use.
fn array(name: &str, make: impl FnOnce(&Context, &str)) -> Array {
    let path = FOLDER
        .get()
        .map_or(Path::new("."), PathBuf::as_path)
        .join(name);
    let (uri, context) = (path.to_str().unwrap(), context());
    if !path.exists() {
        make(&context, uri);
    }
    context.array(uri).open().unwrap()
}

fn dense(codec: &str) -> Array {
    array(&format!("dense_{codec}"), |context, uri| {
        let attribute =
            Attribute::new("a", Datatype::Int32, CellValNum::ONE).filters(pipeline(codec));
        let schema = ArraySchema::dense()
            .dimension("y", 0..=SIDE - 1, 512)
            .dimension("x", 0..=SIDE - 1, 512)
            .attribute_with(attribute)
            .build()
            .unwrap();
        context.array(uri).create(schema).unwrap();
        let cells = noisy(SIDE as usize * SIDE as usize);
        write(context, uri, [ColumnBuffers::of_values("a", cells)]);
    })
}

fn write(context: &Context, uri: &str, columns: impl IntoIterator<Item = ColumnBuffers>) {
    let mut writer = context.array(uri).writer(WriteOptions::new()).unwrap();
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    writer.finish().unwrap();
}

fn sparse(fragments: i64) -> Array {
    array(&format!("sparse_{fragments}"), |context, uri| {
        let schema = ArraySchema::sparse()
            .dimension("y", 0..=DOMAIN - 1, 1_000)
            .dimension("x", 0..=DOMAIN - 1, 1_000)
            .attribute_with(
                Attribute::new("a", Datatype::Int32, CellValNum::ONE).filters(pipeline("zstd")),
            )
            .build()
            .unwrap();
        context.array(uri).create(schema).unwrap();
        for fragment in 0..fragments {
            // A step without a common factor with the domain's size: no cell comes twice.
            let cells = (0..CELLS / fragments)
                .map(|i| (i * fragments + fragment) * 7_919_999_873 % (DOMAIN * DOMAIN));
            let cells: Vec<i64> = cells.collect();
            write(
                context,
                uri,
                [
                    ColumnBuffers::of_values(
                        "y",
                        cells.iter().map(|c| c / DOMAIN).collect::<Vec<i64>>(),
                    ),
                    ColumnBuffers::of_values(
                        "x",
                        cells.iter().map(|c| c % DOMAIN).collect::<Vec<i64>>(),
                    ),
                    ColumnBuffers::of_values("a", noisy(cells.len())),
                ],
            );
        }
    })
}

/// Reads batch after batch.
fn read(array: &Array, options: ReadOptions) -> usize {
    array
        .read(options)
        .unwrap()
        .map(|batch| black_box(batch.unwrap()).cell_num)
        .sum()
}

fn bench_read(bencher: Bencher<'_, '_>, array: &Array, options: &ReadOptions) {
    let cells = read(array, options.clone());
    bencher
        .counter(ItemsCount::new(cells))
        .bench_local(|| read(array, options.clone()));
}

#[divan::bench(args = CODECS)]
fn dense_full(bencher: Bencher<'_, '_>, codec: &str) {
    bench_read(bencher, &dense(codec), &ReadOptions::new());
}

fn square<T: azulejo::format::datatype::Native>(low: T, high: T) -> Subarray {
    Subarray::Box(vec![DimSelection::Ranges(vec![Range::of(low, high)]); 2])
}

#[divan::bench(args = ["none", "zstd"])]
fn dense_window(bencher: Bencher<'_, '_>, codec: &str) {
    bench_read(
        bencher,
        &dense(codec),
        &ReadOptions::new().subarray(square(400, 655)),
    );
}

#[divan::bench(args = ["none", "zstd"])]
fn dense_cell(bencher: Bencher<'_, '_>, codec: &str) {
    bench_read(
        bencher,
        &dense(codec),
        &ReadOptions::new().subarray(square(777, 777)),
    );
}

const ORDERS: &[&str] = &["row", "col", "global", "unordered"];

fn order(name: &str) -> Layout {
    match name {
        "row" => Layout::RowMajor,
        "col" => Layout::ColMajor,
        "global" => Layout::Global,
        _ => Layout::Unordered,
    }
}

#[divan::bench(args = ORDERS, consts = [1, 10])]
fn sparse_full<const FRAGMENTS: i64>(bencher: Bencher<'_, '_>, name: &str) {
    bench_read(
        bencher,
        &sparse(FRAGMENTS),
        &ReadOptions::new().layout(order(name)),
    );
}

#[divan::bench(consts = [1, 10])]
fn sparse_box<const FRAGMENTS: i64>(bencher: Bencher<'_, '_>) {
    bench_read(
        bencher,
        &sparse(FRAGMENTS),
        &ReadOptions::new().subarray(square(40_000i64, 49_999)),
    );
}

#[divan::bench(consts = [1, 10])]
fn sparse_condition<const FRAGMENTS: i64>(bencher: Bencher<'_, '_>) {
    let few = Condition::compare("a", Comparison::Lt, 100i32.to_le_bytes());
    bench_read(
        bencher,
        &sparse(FRAGMENTS),
        &ReadOptions::new().layout(Layout::Unordered).condition(few),
    );
}
