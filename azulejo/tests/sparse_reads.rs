//! Sparse arrays of the packed corpus, read in every order, with little memory, and in parts: all
//! must agree with one full read, which `fixtures.rs` compares with the reference's.

mod support;

use azulejo::format::Range;
use azulejo::format::datatype::Datatype;
use azulejo::format::filter::EncryptionKey;
use azulejo::format::range::compare;
use azulejo::format::schema::ArraySchema;
use azulejo::read::ReadOptions;
use azulejo::space::{DimSelection, Layout, PointColumn, Points};
use azulejo::storage::Storage;
use azulejo::{Array, ColumnSet, Config, Context, Error, Subarray};
use bytes::Bytes;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use support::often::every;
use support::{check, pack};

/// A cell: its fields' bytes, `None` for nulls; dimensions first.
type Row = Vec<Option<Vec<u8>>>;

fn rows(batches: &[ColumnSet]) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in batches {
        let mut columns: Vec<_> = batch.columns.iter().map(|c| c.cells()).collect();
        for _ in 0..batch.cell_num {
            rows.push(
                columns
                    .iter_mut()
                    .map(|c| {
                        c.next()
                            .expect("as many cells as the batch")
                            .map(<[u8]>::to_vec)
                    })
                    .collect(),
            );
        }
    }
    rows
}

fn read(array: &Array, options: ReadOptions) -> Result<(Vec<Row>, usize), Error> {
    let batches = array.read(options)?.collect::<Result<Vec<_>, _>>()?;
    assert!(
        batches.iter().all(|batch| batch.cell_num > 0),
        "no batch is empty"
    );
    Ok((rows(&batches), batches.len()))
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows
}

fn compare_coordinate(datatype: Datatype, a: &[u8], b: &[u8]) -> Ordering {
    if datatype.is_string() {
        let signed = |text: &[u8]| text.iter().map(|b| b.cast_signed()).collect::<Vec<_>>();
        return signed(a).cmp(&signed(b));
    }
    compare(datatype, a, b)
}

fn is_in_order(schema: &ArraySchema, layout: Layout, rows: &[Row]) -> bool {
    let mut dims: Vec<usize> = (0..schema.domain.dimensions.len()).collect();
    if layout == Layout::ColMajor {
        dims.reverse();
    }
    rows.windows(2).all(|pair| {
        let decided = dims.iter().map(|&d| {
            let at = |row: usize| pair[row][d].as_deref().unwrap_or_default();
            compare_coordinate(schema.domain.dimensions[d].datatype, at(0), at(1))
        });
        decided.into_iter().find(|o| *o != Ordering::Equal) != Some(Ordering::Greater)
    })
}

/// Reads an array in many ways; the number of reads that took several batches.
fn check_array(array: &Array, seed: u64) -> Result<usize, Error> {
    let schema = array.schema();
    let (full, _) = read(array, ReadOptions::new().layout(Layout::Unordered))?;
    let full = sorted(full);
    let mut several = 0;
    for layout in [Layout::RowMajor, Layout::ColMajor, Layout::Global] {
        let (ordered, _) = read(array, ReadOptions::new().layout(layout))?;
        assert!(
            layout == Layout::Global || is_in_order(schema, layout, &ordered),
            "{} {layout:?}",
            array.uri()
        );
        for budget in [3_000, 12_000, 60_000] {
            match read(
                array,
                ReadOptions::new().layout(layout).memory_budget(budget),
            ) {
                Ok((again, batches)) => {
                    several += usize::from(batches > 1);
                    assert_eq!(
                        again,
                        ordered,
                        "{} {layout:?} in {budget} bytes",
                        array.uri()
                    );
                }
                Err(Error::Budget { .. }) if budget < 60_000 => {}
                Err(e) => return Err(e),
            }
        }
        assert_eq!(sorted(ordered), full, "{} {layout:?}", array.uri());
    }
    let mut random = seed | 1;
    let mut next = move |below: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % below
    };
    if full.is_empty() {
        return Ok(several);
    }
    let dims = &schema.domain.dimensions;
    let coordinate = |row: &Row, d: usize| row[d].clone().unwrap_or_default();
    for round in 0..6 {
        let mut selections = Vec::new();
        for (d, dimension) in dims.iter().enumerate() {
            let mut ranges = Vec::new();
            for _ in 0..[1, 1, 3][next(3)] {
                let (mut a, mut b) = (
                    coordinate(&full[next(full.len())], d),
                    coordinate(&full[next(full.len())], d),
                );
                if compare(dimension.datatype, &a, &b) == Ordering::Greater {
                    std::mem::swap(&mut a, &mut b);
                }
                ranges.push(Range::new(a, b));
            }
            selections.push(if next(4) == 0 {
                DimSelection::All
            } else {
                DimSelection::Ranges(ranges)
            });
        }
        let inside = |row: &&Row| {
            selections
                .iter()
                .enumerate()
                .all(|(d, selection)| match selection {
                    DimSelection::Ranges(ranges) => ranges.iter().any(|range| {
                        let (value, datatype) = (coordinate(row, d), dims[d].datatype);
                        let open = datatype.is_string() && range.end.is_empty();
                        compare(datatype, &range.start, &value) != Ordering::Greater
                            && (open || compare(datatype, &value, &range.end) != Ordering::Greater)
                    }),
                    _ => true,
                })
        };
        let want: Vec<Row> = full.iter().filter(inside).cloned().collect();
        let layout = [Layout::Unordered, Layout::RowMajor, Layout::Global][round % 3];
        if let (Layout::RowMajor, [DimSelection::Ranges(ranges)]) = (layout, &selections[..]) {
            // Range after range, which repeats what they share.
            let options = |ranges: &[Range]| {
                let subarray = Subarray::Box(vec![DimSelection::Ranges(ranges.to_vec())]);
                ReadOptions::new().layout(layout).subarray(subarray)
            };
            let mut each = Vec::new();
            for range in ranges {
                each.extend(read(array, options(std::slice::from_ref(range)))?.0);
            }
            for options in [options(ranges), options(ranges).memory_budget(60_000)] {
                assert_eq!(read(array, options)?.0, each, "{} {ranges:?}", array.uri());
            }
            assert!(want.iter().all(|row| each.contains(row)), "{}", array.uri());
            continue;
        }
        let options = ReadOptions::new()
            .layout(layout)
            .subarray(Subarray::Box(selections.clone()));
        assert_eq!(
            sorted(read(array, options)?.0),
            want,
            "{} {selections:?}",
            array.uri()
        );
    }
    // Some cells, and coordinates mixed from several, as points.
    let picked: Vec<Vec<Vec<u8>>> = (0..5)
        .map(|i| {
            let base = next(full.len());
            (0..dims.len())
                .map(|d| coordinate(&full[if i < 3 { base } else { next(full.len()) }], d))
                .collect()
        })
        .collect();
    let coordinates = dims.iter().enumerate().map(|(d, dimension)| {
        let values: Vec<&[u8]> = picked.iter().map(|p| p[d].as_slice()).collect();
        let ends = values.iter().scan(0u64, |at, v| {
            *at += v.len() as u64;
            Some(*at)
        });
        let offsets = dimension
            .cell_val_num
            .is_var()
            .then(|| std::iter::once(0).chain(ends).collect());
        PointColumn {
            data: values.concat(),
            offsets,
        }
    });
    let points = Points {
        coordinates: coordinates.collect(),
    };
    let same = |a: &[u8], b: &[u8], d: usize| compare(dims[d].datatype, a, b) == Ordering::Equal;
    let is_point = |row: &&Row| {
        picked
            .iter()
            .any(|p| (0..dims.len()).all(|d| same(&coordinate(row, d), &p[d], d)))
    };
    let want: Vec<Row> = full.iter().filter(is_point).cloned().collect();
    let options = ReadOptions::new()
        .layout(Layout::Global)
        .subarray(Subarray::Points(points));
    assert_eq!(
        sorted(read(array, options)?.0),
        want,
        "{} {picked:?}",
        array.uri()
    );
    Ok(several)
}

/// Reads one of `every` so many sparse arrays of the pack, which `open` finds by name, in many ways.
fn check_all(
    files: &BTreeMap<String, Bytes>,
    every: usize,
    open: impl Fn(&str, Option<EncryptionKey>) -> Array,
) {
    let keys: Value = serde_json::from_slice(&files["keys.json"]).expect("keys");
    let (mut arrays, mut several) = (0, 0);
    for (path, bytes) in files {
        let Some(name) = path
            .strip_prefix("expected/")
            .and_then(|p| p.strip_suffix(".json"))
        else {
            continue;
        };
        let json: Value = serde_json::from_slice(bytes).expect("JSON");
        let sparse = json["schema"]["array_type"] == "sparse" && json["readable"] != false;
        if !sparse {
            continue;
        }
        arrays += 1;
        if arrays % every != 0 {
            continue;
        }
        let array = open(name, check::key_of(name, &keys).expect("a key"));
        several +=
            check_array(&array, arrays as u64 * 7919).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    assert!(arrays > 200, "only {arrays} sparse arrays in the pack");
    assert!(
        several > 200 / every,
        "only {several} reads took several batches"
    );
}

#[test]
fn all_ways_to_read_a_sparse_array_agree() {
    let files = pack::files();
    let memory = pack::memory(&files, "made/");
    check_all(&files, 1, |name, key| {
        let context = pack::context(
            Config::default(),
            key,
            Arc::clone(&memory) as Arc<dyn Storage>,
        );
        context.array(&format!("mem://{name}")).open().expect(name)
    });
}

#[test]
fn all_ways_to_read_a_sparse_array_from_local_files_agree() {
    let files = pack::files();
    let folder = tempfile::tempdir().expect("a folder");
    for (path, bytes) in files.iter().filter(|(path, _)| path.starts_with("made/")) {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }
    // The same as in memory but for where the bytes come from.
    check_all(&files, every(3), |name, key| {
        let context = Context::new(Config::default(), key).expect("a context");
        context
            .array(&folder.path().join(name).to_string_lossy())
            .open()
            .expect(name)
    });
}
