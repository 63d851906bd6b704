//! NaN as a coordinate, which libtiledb stores: the boxes around such cells say nothing, and cells
//! beside them are read all the same.

mod support;

use azulejo::format::Range;
use azulejo::read::ReadOptions;
use azulejo::space::{DimSelection, Subarray};
use azulejo::{Array, Config};
use support::layouts::LAYOUTS;
use support::merged::merged;
use support::pack;

/// The real coordinate's bits, the whole one, and a value.
type Cell = (i64, i64, i32);

fn x(cell: &Cell) -> f64 {
    f64::from_bits(cell.0.cast_unsigned())
}

fn read(array: &Array, options: ReadOptions) -> Vec<Cell> {
    let options = options.fields(["x", "y", "a"]);
    let cells = array.read(options).expect("a read").read_all();
    let cells = cells.expect("cells");
    let xs = cells.columns[0].values::<f64>().expect("reals");
    let ys = cells.columns[1].values::<i64>().expect("numbers");
    let values = cells.columns[2].values::<i32>().expect("numbers");
    let xs = xs.iter().map(|x| x.to_bits().cast_signed());
    let cells = xs.zip(ys).zip(values);
    let mut cells: Vec<Cell> = cells.map(|((x, y), a)| (x, *y, *a)).collect();
    cells.sort_unstable();
    cells
}

/// Holds an array against its cells: all of them, and those of ranges.
fn holds(array: &Array, expected: &[Cell], name: &str) {
    for layout in LAYOUTS {
        let whole = ReadOptions::new().layout(layout);
        let found = read(array, whole.clone());
        let values = |cells: &[Cell]| {
            let mut values: Vec<i32> = cells.iter().map(|cell| cell.2).collect();
            values.sort_unstable();
            values
        };
        assert_eq!(values(&found), values(expected), "{name}: {layout:?}");
        for (low, high) in [(0.0, 5.0), (-3.0, 8.0), (-10.0, 10.0), (1.0, 1.0)] {
            let sides = vec![
                DimSelection::Ranges(vec![Range::of(low, high)]),
                DimSelection::All,
            ];
            let some = whole.clone().subarray(Subarray::Box(sides));
            let mut found = read(array, some);
            // Whether NaN lies in a tile that is wholly selected depends on its box.
            found.retain(|cell| !x(cell).is_nan());
            let inside = |cell: &&Cell| low <= x(cell) && x(cell) <= high;
            let wanted: Vec<Cell> = expected.iter().filter(inside).copied().collect();
            assert_eq!(found, wanted, "{name}: {layout:?}, {low} to {high}");
        }
    }
}

#[test]
fn cells_beside_nan_are_read() {
    let files = pack::unpack(include_bytes!("fixtures/nan_coordinates.tar.zst"));
    for name in ["rows", "columns", "twice"] {
        let json = &files[&format!("{name}.json")];
        let mut expected: Vec<Cell> = serde_json::from_slice(json).expect("JSON");
        expected.sort_unstable();
        let context = pack::context(Config::default(), None, pack::memory(&files, ""));
        let handle = context.array(&format!("mem://{name}"));
        let array = handle.open().expect("an array");
        let told = array.fragments()[0].footer().non_empty_domain.as_ref();
        let is_nan = told.expect("cells").ranges[0].bounds::<f64>().0.is_nan();
        assert!(is_nan, "{name}: {told:?}");
        holds(&array, &expected, name);
        holds(&merged(&handle), &expected, name);
    }
}

/// Sixteen fragments of a thousand cells each, five of which are at NaN: their tiles overlap, and are
/// read part after part where memory is short. Boxes do not tell of NaN.
#[test]
fn cells_at_nan_are_read_with_little_memory() {
    let files = pack::unpack(include_bytes!("fixtures/nan_many.tar.zst"));
    for name in ["rows", "curve"] {
        for budget in [100_000, 300_000, 1 << 30] {
            let config = Config::new().memory_budget(budget).threads(2);
            let context = pack::context(config, None, pack::memory(&files, ""));
            let handle = context.array(&format!("mem://{name}"));
            let all = |array: &Array, merged: bool| {
                for layout in LAYOUTS {
                    let options = ReadOptions::new().layout(layout).fields(["x", "a"]);
                    let cells = array.read(options).expect("a read").read_all();
                    let cells = cells.expect("cells");
                    let xs = cells.columns[0].values::<f64>().expect("reals");
                    let nan = xs.iter().filter(|x| x.is_nan()).count();
                    let mut values = cells.columns[1].values::<i32>().expect("numbers").to_vec();
                    values.sort_unstable();
                    let told = format!("{name}: {layout:?}, {budget} bytes, merged: {merged}");
                    assert_eq!(nan, 80, "{told}");
                    assert!(values.into_iter().eq(0..16_000), "{told}");
                    for (low, high) in [(0.0, 9.0), (25.0, 60.0), (95.0, 100.0)] {
                        let is_inside = |x: &&f64| low <= **x && **x <= high;
                        let side = DimSelection::Ranges(vec![Range::of(low, high)]);
                        let some = ReadOptions::new().layout(layout).fields(["x"]);
                        let some = some.subarray(Subarray::Box(vec![side]));
                        let found = array.read(some).expect("a read").read_all();
                        let found = found.expect("cells");
                        let found = found.columns[0].values::<f64>().expect("reals");
                        let found = found.iter().filter(is_inside).count();
                        assert_eq!(found, xs.iter().filter(is_inside).count(), "{told}");
                    }
                }
            };
            all(&handle.open().expect("an array"), false);
            all(&merged(&handle), true);
        }
    }
}
