//! Dense arrays that were written over older ones of another domain, extent or order: fragments of
//! both count, and everything reads as the cells say that lie in the latest domain.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use azulejo::check::CheckOptions;
use azulejo::column::{ColumnBuilder, ColumnSet, ColumnType};
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::schema::{Dimension, Layout};
use azulejo::format::{ArraySchema, CellValNum, Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::read::aggregate::{Aggregate, AggregateValue};
use azulejo::space::{DimSelection, PointColumn, Points, Subarray};
use azulejo::write::WriteOptions;
use azulejo::{Array, Config, Context, TimeRange};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use support::model::Random;

type Cells = HashMap<Vec<i32>, i32>;

/// One schema: first and last coordinate and extent along each dimension, and the orders.
#[derive(Debug, Clone, PartialEq)]
struct Shape {
    axes: Vec<(i32, i32, i32)>,
    orders: (Layout, Layout),
}

impl Shape {
    fn random(random: &mut Random, dims: usize) -> Self {
        let axis = |random: &mut Random| {
            let low = random.below(12) as i32 - 6;
            let extent = random.below(5) as i32 + 1;
            (low, low + extent - 1 + random.below(12) as i32, extent)
        };
        let mut order = || random.pick(&[Layout::RowMajor, Layout::ColMajor]);
        let orders = (order(), order());
        Self {
            axes: (0..dims).map(|_| axis(random)).collect(),
            orders,
        }
    }

    /// Another schema of the same array: often one whose tiles lie where this one's do.
    fn next(&self, random: &mut Random) -> Self {
        if random.chance(40) {
            return Self::random(random, self.axes.len());
        }
        let mut next = self.clone();
        for (low, high, extent) in &mut next.axes {
            if random.chance(50) {
                *low += *extent * (random.below(5) as i32 - 2);
            }
            *high = *low + *extent - 1 + random.below(12) as i32;
        }
        if next == *self {
            self.next(random)
        } else {
            next
        }
    }

    fn create(&self, context: &Context, uri: &str, time: u64) {
        let mut builder = ArraySchema::dense()
            .tile_order(self.orders.0)
            .cell_order(self.orders.1)
            .attribute("a", Datatype::Int32)
            .var_attribute("s", Datatype::StringAscii);
        for (d, (low, high, extent)) in self.axes.iter().enumerate() {
            // Tiles may not reach past the type: far from it here.
            let dimension = Dimension::new(format!("d{d}"), *low..=*high).tile_extent(*extent);
            builder = builder.dimension_with(dimension);
        }
        context
            .array(uri)
            .create_at(builder.build().unwrap(), time)
            .unwrap();
    }

    fn write(
        &self,
        context: &Context,
        uri: &str,
        random: &mut Random,
        cells: &mut Cells,
        time: u64,
    ) {
        let ranges: Vec<(i32, i32)> = self
            .axes
            .iter()
            .map(|(low, high, _)| part(random, *low, *high))
            .collect();
        let (mut a, mut s) = (
            ColumnBuilder::new(ColumnType::new("a", Datatype::Int32)),
            ColumnBuilder::new(
                ColumnType::new("s", Datatype::StringAscii).with_cell_val_num(CellValNum::Var),
            ),
        );
        let coordinates: Vec<Vec<i32>> = ranges
            .iter()
            .map(|(low, high)| (*low..=*high).collect())
            .collect();
        for at in product(&coordinates, &order_of(Layout::RowMajor, ranges.len())) {
            let value = random.below(1000) as i32;
            a.append_cell(&value.to_le_bytes(), true);
            s.append_cell(value.to_string().as_bytes(), true);
            cells.insert(at, value);
        }
        let set = ColumnSet {
            cell_num: product(&coordinates, &order_of(Layout::RowMajor, ranges.len())).len(),
            columns: vec![a.finish(), s.finish()],
        };
        let ranges = ranges
            .iter()
            .map(|(low, high)| Range::of(*low, *high))
            .collect();
        let options = WriteOptions::new()
            .subarray(NdRectangle { ranges })
            .timestamp(time);
        let mut writer = context.array(uri).writer(options).unwrap();
        writer.write(&set).unwrap();
        writer.finish().unwrap();
    }
}

fn part(random: &mut Random, low: i32, high: i32) -> (i32, i32) {
    let a = low + random.below((high - low + 1) as usize) as i32;
    let b = low + random.below((high - low + 1) as usize) as i32;
    (a.min(b), a.max(b))
}

fn order_of(layout: Layout, dims: usize) -> Vec<usize> {
    match layout {
        Layout::ColMajor => (0..dims).rev().collect(),
        _ => (0..dims).collect(),
    }
}

/// All combinations, the dimensions from slowest to fastest in `order`.
fn product(coordinates: &[Vec<i32>], order: &[usize]) -> Vec<Vec<i32>> {
    let mut cells = vec![vec![0; coordinates.len()]];
    for &d in order {
        cells = cells
            .iter()
            .flat_map(|cell| {
                coordinates[d].iter().map(move |at| {
                    let mut cell = cell.clone();
                    cell[d] = *at;
                    cell
                })
            })
            .collect();
    }
    cells
}

/// Puts the files of one array into the folder of another.
fn write_over(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&target).unwrap();
            write_over(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn same(set: &ColumnSet, expected: &[Vec<i32>], cells: &Cells, what: &str) {
    assert_eq!(set.cell_num, expected.len(), "{what}");
    for (i, at) in expected.iter().enumerate() {
        let (a, s) = match cells.get(at) {
            Some(value) => (*value, value.to_string().into_bytes()),
            None => (i32::MIN, vec![0]),
        };
        assert_eq!(
            set.columns[0].view().cell(i),
            a.to_le_bytes(),
            "{what}: {at:?}"
        );
        assert_eq!(set.columns[1].view().cell(i), s, "{what}: {at:?}");
    }
}

/// Every kind of read of the array against the model.
fn check_reads(array: &Array, shape: &Shape, cells: &Cells, random: &mut Random, what: &str) {
    let dims = shape.axes.len();
    for _ in 0..4 {
        let several = random.chance(40);
        let ranges: Vec<Vec<(i32, i32)>> = shape
            .axes
            .iter()
            .map(|(low, high, _)| {
                let count = if several { random.below(3) + 1 } else { 1 };
                (0..count)
                    .map(|_| {
                        if random.chance(30) {
                            (*low, *high)
                        } else {
                            part(random, *low, *high)
                        }
                    })
                    .collect()
            })
            .collect();
        let coordinates: Vec<Vec<i32>> = ranges
            .iter()
            .map(|ranges| ranges.iter().flat_map(|(low, high)| *low..=*high).collect())
            .collect();
        let subarray = Subarray::Box(
            ranges
                .iter()
                .map(|ranges| {
                    DimSelection::Ranges(
                        ranges
                            .iter()
                            .map(|(low, high)| Range::of(*low, *high))
                            .collect(),
                    )
                })
                .collect(),
        );
        let layout = random.pick(&[Layout::RowMajor, Layout::ColMajor]);
        let expected = product(&coordinates, &order_of(layout, dims));
        let budget = random.pick(&[1 << 14, 1 << 20]);
        let options = ReadOptions::new()
            .fields(["a", "s"])
            .subarray(subarray.clone())
            .layout(layout)
            .memory_budget(budget);
        let what = format!("{what} {ranges:?} {layout:?}");
        let set = array.read(options.clone()).unwrap().read_all().unwrap();
        same(&set, &expected, cells, &what);

        // A condition leaves fill values where it does not hold.
        let limit = random.below(1000) as i32;
        let condition = Condition::compare("a", Comparison::Ge, limit.to_le_bytes());
        let matching: Cells = cells
            .iter()
            .filter(|(_, v)| **v >= limit)
            .map(|(k, v)| (k.clone(), *v))
            .collect();
        let set = array
            .read(options.clone().condition(condition.clone()))
            .unwrap()
            .read_all()
            .unwrap();
        same(&set, &expected, &matching, &what);

        for (options, cells) in [
            (options.clone(), cells),
            (options.condition(condition), &matching),
        ] {
            // A consolidation writes fill values where no fragment had cells, which then count.
            if array
                .fragments()
                .iter()
                .all(|f| f.time_range().start == f.time_range().end)
            {
                check_aggregates(array, options, &expected, cells, &what);
            }
        }
        // Points in any order.
        let mut points = expected;
        points.truncate(20);
        points.reverse();
        let column = |d: usize| PointColumn {
            data: points.iter().flat_map(|at| at[d].to_le_bytes()).collect(),
            offsets: None,
        };
        let subarray = Subarray::Points(Points {
            coordinates: (0..dims).map(column).collect(),
        });
        let options = ReadOptions::new().fields(["a", "s"]).subarray(subarray);
        let set = array.read(options).unwrap().read_all().unwrap();
        same(&set, &points, cells, &what);
    }
}

fn check_aggregates(
    array: &Array,
    options: ReadOptions,
    expected: &[Vec<i32>],
    cells: &Cells,
    what: &str,
) {
    let values: Vec<i32> = expected
        .iter()
        .filter_map(|at| cells.get(at))
        .copied()
        .collect();
    let asked = [
        Aggregate::Sum("a".into()),
        Aggregate::Min("a".into()),
        Aggregate::Max("a".into()),
    ];
    let found = array.aggregate(options, &asked).unwrap();
    let cell = |value: Option<&i32>| {
        value.map_or(AggregateValue::Null, |v| AggregateValue::Cell {
            datatype: Datatype::Int32,
            bytes: v.to_le_bytes().to_vec(),
        })
    };
    let sum = AggregateValue::Signed(values.iter().map(|v| i64::from(*v)).sum());
    assert_eq!(
        found,
        [sum, cell(values.iter().min()), cell(values.iter().max())],
        "{what}"
    );
}

#[test]
fn fragments_of_other_domains_read_as_their_cells() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..40 {
        let random = &mut Random(seed);
        let context = Context::new(Config::new().threads(2), None).unwrap();
        let path = |name: &str| folder.path().join(format!("{seed}-{name}"));
        let uri = |name: &str| path(name).to_str().unwrap().to_owned();
        let mut shape = Shape::random(random, random.0 as usize % 2 + 1);
        let (mut cells, mut time) = (Cells::new(), 1);
        let mut before = None;
        for round in 0..random.below(2) + 2 {
            let name = format!("part{round}");
            shape.create(&context, &uri(&name), time);
            for _ in 0..random.below(3) + 1 {
                time += 1;
                shape.write(&context, &uri(&name), random, &mut cells, time);
            }
            time += 1;
            fs::create_dir_all(path("array")).unwrap();
            write_over(&path(&name), &path("array"));
            let what = format!("seed {seed}, round {round}");
            let array = context.array(&uri("array")).open().unwrap();
            check_reads(&array, &shape, &cells, random, &what);
            let report = context
                .array(&uri("array"))
                .check(CheckOptions::new().deep(true))
                .unwrap();
            assert_eq!(report.findings, [], "{what}");

            // Cells outside the latest domain stay there for earlier times.
            if seed % 2 == 1 {
                shape = shape.next(random);
                continue;
            }
            let consolidated = context
                .array(&uri("array"))
                .consolidate(&FragmentOptions::default())
                .unwrap();
            assert!(consolidated.len() <= round + 1, "{what}");
            context
                .array(&uri("array"))
                .vacuum(Mode::Fragments, VacuumOptions::default())
                .unwrap();
            let array = context.array(&uri("array")).open().unwrap();
            check_reads(
                &array,
                &shape,
                &cells,
                random,
                &format!("{what}, consolidated"),
            );
            if let Some((shape, cells, time)) = &before {
                let array = context
                    .array(&uri("array"))
                    .open_at(TimeRange::until(*time))
                    .unwrap();
                check_reads(&array, shape, cells, random, &format!("{what}, earlier"));
            }
            before = Some((shape.clone(), cells.clone(), time - 1));
            shape = shape.next(random);
        }
    }
}
