//! `cargo xtask interop read`: the reference writes random arrays and answers random queries;
//! Azulejo must answer the same.

use crate::support::cells::{self, Cells};
use crate::{Outcome, reference, root};
use azulejo::format::Range;
use azulejo::format::filter::EncryptionKey;
use azulejo::format::schema::Dimension;
use azulejo::read::{ReadOptions, Reader};
use azulejo::space::{DimSelection, Layout, PointColumn, Points};
use azulejo::{Array, Config, Context, Subarray, TimeRange};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Seeds that once failed, kept as regression cases with what they showed: always run first.
const REGRESSIONS: &[(u64, &str)] = &[
    (
        61,
        "stored delete conditions hold indices of an enumeration, not its labels",
    ),
    (162, "the same in an encrypted array, with a set of labels"),
];

#[derive(Deserialize)]
struct Column {
    name: String,
    var: bool,
    nullable: bool,
    lengths: [usize; 3],
}

#[derive(Deserialize)]
struct Query {
    array: String,
    seed: u64,
    number: u64,
    key: Option<String>,
    dense: bool,
    dups: bool,
    layout: String,
    t: Option<[u64; 2]>,
    condition: Option<String>,
    ranges: Vec<Vec<[String; 2]>>,
    /// For each dimension the label that its ranges are of.
    labels: Vec<Option<String>>,
    /// Instead of ranges: first, last, step along each dimension.
    steps: Option<Vec<(String, String, u64)>>,
    /// Instead of ranges: the coordinates of the points along each dimension.
    points: Option<Vec<Vec<String>>>,
    fields: Vec<String>,
    dims: Vec<String>,
    log: Vec<String>,
    cells: Option<usize>,
    columns: Option<Vec<Column>>,
    result: Option<String>,
}

/// Options: `--seed N`, `--count N`, `--keep` (leaves the arrays in `target/interop`).
pub fn run(options: &[&str]) -> Outcome {
    let value = |name: &str, default: u64| -> Result<u64, String> {
        match options.iter().position(|o| *o == name) {
            None => Ok(default),
            Some(i) => options
                .get(i + 1)
                .and_then(|v| v.parse().ok())
                .ok_or_else(|| format!("{name} wants a number")),
        }
    };
    // A new seed every day; the same all day, so that a failure can be met again at once.
    let today = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .map_or(0, |d| d.as_secs() / 86_400)
        * 10_000;
    let (seed, count) = (value("--seed", today)?, value("--count", 300)?);
    let python = reference::python()?;
    let mut bad = 0;
    for (regression, what) in REGRESSIONS {
        println!("regression: {what}");
        bad += batch(&python, *regression, 1, false)?;
    }
    bad += batch(&python, seed, count, options.contains(&"--keep"))?;
    if bad == 0 {
        Ok(())
    } else {
        Err(format!("{bad} queries are answered differently"))
    }
}

fn batch(python: &Path, seed: u64, count: u64, keep: bool) -> Result<usize, String> {
    let dir = root()
        .join("target")
        .join("interop")
        .join(format!("{seed}-{count}"));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
    let script = root().join("xtask/python/interop_read.py");
    reference::run(
        Command::new(python)
            .arg(script)
            .arg(&dir)
            .args(["--seed", &seed.to_string(), "--count", &count.to_string()])
            .stderr(std::process::Stdio::null()),
    )?;
    let lines = std::fs::read_to_string(dir.join("queries.jsonl")).map_err(|e| e.to_string())?;
    let (mut passed, mut refused, mut failed) = (0, 0, 0);
    let mut reasons: BTreeMap<String, u32> = BTreeMap::new();
    for line in lines.lines() {
        let query: Query = serde_json::from_str(line).map_err(|e| format!("{e}: {line}"))?;
        if query.result.is_none() {
            refused += 1;
            continue;
        }
        let outcome =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| answer(&dir, &query)))
                .unwrap_or_else(|_| Err("panicked".into()));
        match outcome {
            Ok(()) => passed += 1,
            Err(text) => {
                failed += 1;
                let short: String = text.chars().take(300).collect();
                *reasons.entry(short.chars().take(40).collect()).or_default() += 1;
                println!(
                    "seed {} query {} ({}{}, {}): {short}\n    condition {:?} at {:?}; steps {:?}",
                    query.seed,
                    query.number,
                    if query.dense { "dense" } else { "sparse" },
                    if query.dups { " dups" } else { "" },
                    query.layout,
                    query.condition,
                    query.t,
                    query.log
                );
            }
        }
    }
    println!(
        "interop read, seeds {seed} to {}: {passed} passed, {failed} failed, {refused} skipped",
        seed + count - 1
    );
    for (reason, n) in reasons.iter().filter(|_| failed > 20) {
        println!("  {n:5} {reason}");
    }
    if failed == 0 && !keep {
        let _ = std::fs::remove_dir_all(&dir);
    }
    Ok(failed)
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).map_err(|e| e.to_string()))
        .collect()
}

fn subarray(array: &Array, query: &Query) -> Result<Subarray, String> {
    if let Some(points) = &query.points {
        let column =
            |(values, dimension): (&Vec<String>, &Dimension)| -> Result<PointColumn, String> {
                let values: Vec<Vec<u8>> =
                    values.iter().map(|v| unhex(v)).collect::<Result<_, _>>()?;
                let ends = values.iter().scan(0, |end, v| {
                    *end += v.len() as u64;
                    Some(*end)
                });
                let offsets = dimension
                    .cell_val_num
                    .is_var()
                    .then(|| std::iter::once(0).chain(ends).collect());
                Ok(PointColumn {
                    data: values.concat(),
                    offsets,
                })
            };
        let dimensions = &array.schema().domain.dimensions;
        let coordinates = points
            .iter()
            .zip(dimensions)
            .map(column)
            .collect::<Result<_, _>>()?;
        return Ok(Subarray::Points(Points { coordinates }));
    }
    if let Some(steps) = &query.steps {
        let strided = |(lo, hi, step): &(String, String, u64)| -> Result<DimSelection, String> {
            Ok(DimSelection::Strided {
                range: Range::new(unhex(lo)?, unhex(hi)?),
                step: *step,
            })
        };
        return Ok(Subarray::Box(
            steps.iter().map(strided).collect::<Result<_, _>>()?,
        ));
    }
    let mut dims = Vec::new();
    for (ranges, label) in query.ranges.iter().zip(&query.labels) {
        let ranges: Vec<Range> = ranges
            .iter()
            .map(|[lo, hi]| Ok(Range::new(unhex(lo)?, unhex(hi)?)))
            .collect::<Result<_, String>>()?;
        let ranges = match label {
            Some(label) => array
                .label_ranges(label, &ranges)
                .map_err(|e| e.to_string())?,
            None => ranges,
        };
        dims.push(if ranges.is_empty() {
            DimSelection::All
        } else {
            DimSelection::Ranges(ranges)
        });
    }
    Ok(Subarray::Box(dims))
}

fn answer(dir: &Path, query: &Query) -> Outcome {
    let key = query
        .key
        .as_ref()
        .map(|k| EncryptionKey::from_slice(k.as_bytes()))
        .transpose()
        .map_err(|e| e.to_string())?;
    let context = Context::new(Config::new().threads(2), key).map_err(|e| e.to_string())?;
    let uri = dir.join(&query.array).to_string_lossy().into_owned();
    let time = query
        .t
        .map_or(TimeRange::ALL, |[start, end]| TimeRange { start, end });
    let array = context
        .array(&uri)
        .open_at(time)
        .map_err(|e| e.to_string())?;
    let subarray = subarray(&array, query)?;
    let layout = match query.layout.as_str() {
        "row" => Layout::RowMajor,
        "col" => Layout::ColMajor,
        "global" => Layout::Global,
        _ => Layout::Unordered,
    };
    let mut options = ReadOptions::new()
        .fields(query.fields.clone())
        .layout(layout)
        .subarray(subarray);
    if let Some(text) = &query.condition {
        options = options.condition(array.condition(text).map_err(|e| e.to_string())?);
    }
    let set = array
        .read(options)
        .and_then(Reader::read_all)
        .map_err(|e| e.to_string())?;
    let expected = expected_cells(dir, query)?;
    if query.cells.is_some_and(|n| n != set.cell_num) {
        return Err(format!(
            "{} cells instead of {}",
            set.cell_num,
            query.cells.unwrap_or(0)
        ));
    }
    let found = cells::of_columns(&set);
    if layout == Layout::Unordered && !query.dense {
        return cells::compare_unordered(&expected, &found);
    }
    if query.dups {
        // Cells with equal coordinates have no order among themselves.
        let coordinates = |c: &[Cells]| {
            c.iter()
                .filter(|c| query.dims.contains(&c.name))
                .cloned()
                .collect::<Vec<_>>()
        };
        cells::compare(&coordinates(&expected), &coordinates(&found))?;
        return cells::compare_unordered(&expected, &found);
    }
    cells::compare(&expected, &found)
}

fn expected_cells(dir: &Path, query: &Query) -> Result<Vec<Cells>, String> {
    let name = query.result.as_deref().unwrap_or_default();
    let blob = std::fs::read(dir.join(name)).map_err(|e| format!("{name}: {e}"))?;
    let n = query.cells.unwrap_or(0);
    let mut rest = blob.as_slice();
    let mut out = Vec::new();
    for column in query.columns.iter().flatten() {
        let [data, offsets, validity] = column.lengths.map(|len| {
            let (head, tail) = rest.split_at(len);
            rest = tail;
            head
        });
        let starts: Vec<usize> = if column.var {
            let starts = offsets
                .as_chunks::<8>()
                .0
                .iter()
                .map(|b| u64::from_le_bytes(*b) as usize);
            starts.chain([data.len()]).collect()
        } else {
            let size = data.len().checked_div(n).unwrap_or(0);
            (0..=n).map(|i| i * size).collect()
        };
        let values = (0..n)
            .map(|i| {
                let null = column.nullable && validity[i] == 0;
                if null {
                    None
                } else {
                    Some(data[starts[i]..starts[i + 1]].to_vec())
                }
            })
            .collect();
        out.push(Cells {
            name: column.name.clone(),
            values,
        });
    }
    Ok(out)
}
