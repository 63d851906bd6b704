//! Dense arrays with sparse fragments in them, written by libtiledb 1.7: each cell is the one of
//! the latest fragment that has it, whatever the kind of the fragment.

mod support;

use azulejo::column::ColumnSet;
use azulejo::format::schema::TileAxis;
use azulejo::read::ReadOptions;
use azulejo::space::{DimSelection, Layout, PointColumn, Points, Subarray};
use azulejo::{Array, Config, Context, TimeRange};
use serde_json::Value;
use std::collections::BTreeMap;
use support::pack;

/// What a coordinate holds.
type Model = BTreeMap<Vec<i64>, (i32, Vec<u8>)>;

const NAMES: [&str; 4] = ["over", "only", "under", "cube"];

fn sample() -> (Context, BTreeMap<String, bytes::Bytes>) {
    let files = pack::unpack(include_bytes!("fixtures/sparse_in_dense.tar.zst"));
    let memory = pack::memory(&files, "");
    (pack::context(Config::default(), None, memory), files)
}

/// The cells after the first `writes` writes.
fn model(writes: &[Value]) -> Model {
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let mut model = Model::new();
    for write in writes {
        let (cells, a, s) = (list(&write["cells"]), list(&write["a"]), list(&write["s"]));
        for ((cell, a), s) in cells.iter().zip(a).zip(s) {
            let at = list(cell)
                .iter()
                .map(|v| v.as_i64().expect("a coordinate"))
                .collect();
            let text = s.as_str().expect("text").as_bytes().to_vec();
            model.insert(at, (a.as_i64().expect("a number") as i32, text));
        }
    }
    model
}

fn axes(array: &Array) -> Vec<TileAxis> {
    array
        .schema()
        .domain
        .dimensions
        .iter()
        .map(|d| d.axis().expect("integers"))
        .collect()
}

fn coordinate(array: &Array, d: usize, value: i64) -> Vec<u8> {
    let size = array.schema().domain.dimensions[d].datatype.size();
    value.to_le_bytes()[..size].to_vec()
}

/// Every coordinate of the domain, the last dimension fastest.
fn domain(array: &Array) -> Vec<Vec<i64>> {
    let value = |bytes: &[u8]| {
        let mut wide = [if bytes[bytes.len() - 1] > 127 { 255 } else { 0 }; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        i64::from_le_bytes(wide)
    };
    let mut all = vec![Vec::new()];
    for dimension in &array.schema().domain.dimensions {
        let domain = dimension.domain.as_ref().expect("a domain");
        let values = value(&domain.start)..=value(&domain.end);
        all = all
            .iter()
            .flat_map(|at| values.clone().map(move |v| [at.as_slice(), &[v]].concat()))
            .collect();
    }
    all
}

/// Compares a result with what the model has at these coordinates.
fn same(got: &ColumnSet, model: &Model, at: &[Vec<i64>], what: &str) {
    assert_eq!(got.cell_num, at.len(), "{what}");
    let [a, s] = &got.columns[..] else {
        panic!("{what}: not two columns")
    };
    for (i, at) in at.iter().enumerate() {
        let fill = (i32::MIN, vec![0x80]);
        let (number, text) = model.get(at).unwrap_or(&fill);
        assert_eq!(a.view().cell(i), number.to_le_bytes(), "{what} at {at:?}");
        assert_eq!(s.view().cell(i), text, "{what} at {at:?}");
    }
}

fn read(array: &Array, subarray: Subarray, layout: Layout, budget: u64) -> ColumnSet {
    let options = ReadOptions::new()
        .fields(["a", "s"])
        .subarray(subarray)
        .layout(layout);
    let reader = array.read(options.memory_budget(budget)).expect("a plan");
    let batches: Vec<ColumnSet> = reader.map(|batch| batch.expect("a batch")).collect();
    ColumnSet::concat(&batches).expect("one set")
}

#[test]
fn the_latest_fragment_wins_at_every_time() {
    let (context, files) = sample();
    for name in NAMES {
        let writes: Vec<Value> =
            serde_json::from_slice(&files[&format!("{name}.json")]).expect("JSON");
        let latest = context
            .array(&format!("mem://{name}"))
            .open()
            .expect("opens");
        let mut times: Vec<u64> = latest
            .fragments()
            .iter()
            .map(|f| f.timestamped_name().t_end)
            .collect();
        times.sort_unstable();
        assert_eq!(times.len(), writes.len());
        for (n, time) in times.iter().enumerate() {
            let array = context
                .array(&format!("mem://{name}"))
                .open_at(TimeRange::until(*time))
                .expect("opens");
            let all = vec![DimSelection::All; axes(&array).len()];
            let got = read(&array, Subarray::Box(all), Layout::RowMajor, 1 << 20);
            same(
                &got,
                &model(&writes[..=n]),
                &domain(&array),
                &format!("{name} after {} writes", n + 1),
            );
        }
    }
}

#[test]
fn windows_orders_strides_and_points() {
    let (context, files) = sample();
    for name in NAMES {
        let writes: Vec<Value> =
            serde_json::from_slice(&files[&format!("{name}.json")]).expect("JSON");
        let model = model(&writes);
        let array = context
            .array(&format!("mem://{name}"))
            .open()
            .expect("opens");
        let (axes, all) = (axes(&array), domain(&array));
        let (first, last) = (&all[0], &all[all.len() - 1]);
        for step in [1, 2, 3] {
            // From the second coordinate to the last but one, where there are as many.
            let bounds: Vec<(i64, i64)> = first
                .iter()
                .zip(last)
                .map(|(lo, hi)| (lo + 1, hi - 1))
                .collect();
            let selection = bounds
                .iter()
                .enumerate()
                .map(|(d, (lo, hi))| DimSelection::Strided {
                    range: azulejo::format::Range::new(
                        coordinate(&array, d, *lo),
                        coordinate(&array, d, *hi),
                    ),
                    step,
                });
            let subarray = Subarray::Box(selection.collect());
            let inside = |at: &&Vec<i64>| {
                at.iter()
                    .zip(&bounds)
                    .all(|(v, (lo, hi))| (lo..=hi).contains(&v) && (v - lo) % step as i64 == 0)
            };
            let mut wanted: Vec<Vec<i64>> = all.iter().filter(inside).cloned().collect();
            let got = read(&array, subarray.clone(), Layout::RowMajor, 1 << 20);
            same(
                &got,
                &model,
                &wanted,
                &format!("{name}, rows, every {step}"),
            );
            // A budget for a few cells gives the same in many batches.
            let got = read(&array, subarray.clone(), Layout::RowMajor, 4 << 10);
            same(
                &got,
                &model,
                &wanted,
                &format!("{name}, a small budget, every {step}"),
            );
            wanted.sort_by(|x, y| x.iter().rev().cmp(y.iter().rev()));
            let got = read(&array, subarray, Layout::ColMajor, 1 << 20);
            same(
                &got,
                &model,
                &wanted,
                &format!("{name}, columns, every {step}"),
            );
        }
        let points: Vec<Vec<i64>> = (0..40).map(|i| all[i * 7919 % all.len()].clone()).collect();
        let column = |d: usize| PointColumn {
            data: points
                .iter()
                .flat_map(|at| coordinate(&array, d, at[d]))
                .collect(),
            offsets: None,
        };
        let coordinates = (0..axes.len()).map(column).collect();
        let got = read(
            &array,
            Subarray::Points(Points { coordinates }),
            Layout::RowMajor,
            1 << 20,
        );
        same(&got, &model, &points, &format!("{name}, points"));
    }
}
