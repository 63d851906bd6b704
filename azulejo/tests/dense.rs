//! Dense reads of the packed arrays agree with each other: any window, order, stride, list of
//! points, budget or caller's buffer gives the cells that the whole array, read at once, has there.

mod support;

use azulejo::column::{ColumnMut, ColumnSet};
use azulejo::format::Range;
use azulejo::format::schema::TileAxis;
use azulejo::read::ReadOptions;
use azulejo::space::{DimSelection, Layout, PointColumn, Points, Subarray};
use azulejo::storage::Storage;
use azulejo::{Array, Config, Error};
use serde_json::Value;
use std::sync::Arc;
use support::{check, pack};

/// Numbers that look random and are the same on every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n.max(1)
    }
}

/// A dense array and all cells of its non-empty domain in row-major order.
struct Case {
    array: Array,
    axes: Vec<TileAxis>,
    /// First offset and number of offsets along each dimension.
    window: Vec<(u64, u64)>,
    all: ColumnSet,
}

impl Case {
    fn open(array: Array) -> Option<Self> {
        let schema = Arc::clone(array.schema());
        if !schema.is_dense() || schema.attributes.iter().any(|a| a.name.is_empty()) {
            return None;
        }
        let ned = array.non_empty_domain().expect("a domain")?;
        let axes: Vec<_> = schema
            .domain
            .dimensions
            .iter()
            .map(|d| d.axis().expect("integers"))
            .collect();
        let window: Vec<_> = axes
            .iter()
            .zip(&ned.ranges)
            .map(|(axis, range)| {
                axis.offsets_of(range)
                    .map(|(first, last)| (first, last - first + 1))
                    .expect("inside")
            })
            .collect();
        if window.iter().map(|w| w.1).product::<u64>() > 30_000 {
            return None;
        }
        let all = array
            .read(ReadOptions::new().subarray(Subarray::ranges(ned.ranges)))
            .expect("a plan");
        let all = all.read_all().expect("all cells");
        Some(Self {
            array,
            axes,
            window,
            all,
        })
    }

    /// The coordinate at a distance from the window's start.
    fn coordinate(&self, d: usize, at: u64) -> Vec<u8> {
        self.axes[d].coordinate(self.window[d].0 + at)
    }

    fn range(&self, d: usize, from: u64, to: u64) -> Range {
        Range::new(self.coordinate(d, from), self.coordinate(d, to))
    }

    /// The row-major number of a cell given by distances from the window's start.
    fn cell(&self, at: &[u64]) -> usize {
        at.iter().zip(&self.window).fold(0, |cell, (at, (_, len))| {
            cell * *len as usize + *at as usize
        })
    }

    /// Compares a result with the cells that it should have.
    fn same(&self, got: &ColumnSet, cells: &[usize], what: &str) {
        assert_eq!(got.cell_num, cells.len(), "{what}");
        for (column, all) in got.columns.iter().zip(&self.all.columns) {
            column.validate().expect("sound buffers");
            let (got, all) = (column.view(), all.view());
            for (i, cell) in cells.iter().enumerate() {
                assert_eq!(
                    got.cell(i),
                    all.cell(*cell),
                    "{what}: {}, cell {i}",
                    column.column_type.name
                );
                assert_eq!(
                    got.is_valid(i),
                    all.is_valid(*cell),
                    "{what}: {}, cell {i}",
                    column.column_type.name
                );
            }
        }
    }

    /// A selection, and which distances from the window's start it takes along each dimension.
    fn selection(&self, dice: &mut Dice, ascending: bool) -> (Vec<DimSelection>, Vec<Vec<u64>>) {
        let mut selections = Vec::new();
        let mut taken = Vec::new();
        for (d, (_, len)) in self.window.iter().enumerate() {
            let from = dice.below(*len);
            let to = from + dice.below(len - from);
            match dice.below(3) {
                0 => {
                    let step = 1 + dice.below(4);
                    selections.push(DimSelection::Strided {
                        range: self.range(d, from, to),
                        step,
                    });
                    taken.push((from..=to).step_by(step as usize).collect());
                }
                1 if !ascending => {
                    let again = dice.below(*len);
                    let ranges = vec![self.range(d, from, to), self.range(d, again, again)];
                    selections.push(DimSelection::Ranges(ranges));
                    taken.push((from..=to).chain([again]).collect());
                }
                _ => {
                    selections.push(DimSelection::Ranges(vec![self.range(d, from, to)]));
                    taken.push((from..=to).collect());
                }
            }
        }
        (selections, taken)
    }

    /// The cells of a cross product, dimensions from slowest to fastest in `order`.
    fn product(&self, taken: &[Vec<u64>], order: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut cells = vec![vec![0; taken.len()]];
        for d in order {
            cells = cells
                .iter()
                .flat_map(|cell| {
                    taken[d].iter().map(move |at| {
                        let mut cell = cell.clone();
                        cell[d] = *at;
                        cell
                    })
                })
                .collect();
        }
        cells.iter().map(|at| self.cell(at)).collect()
    }
}

/// Runs a check on every dense array of the pack that is small enough.
fn each_case(mut check: impl FnMut(&str, &Case, &mut Dice)) {
    let files = pack::files();
    let memory = pack::memory(&files, "made/");
    let keys: Value = serde_json::from_slice(&files["keys.json"]).expect("keys");
    let mut seen = 0;
    for path in files.keys() {
        let Some(name) = path
            .strip_prefix("expected/")
            .and_then(|p| p.strip_suffix(".json"))
        else {
            continue;
        };
        let key = check::key_of(name, &keys).expect("a key");
        let context = pack::context(
            Config::default(),
            key,
            Arc::clone(&memory) as Arc<dyn Storage>,
        );
        let Ok(array) = context.array(&format!("mem://{name}")).open() else {
            continue;
        };
        let Some(case) = Case::open(array) else {
            continue;
        };
        check(name, &case, &mut Dice(seen + 0x5eed));
        seen += 1;
    }
    let sparse_in_dense = pack::unpack(include_bytes!("fixtures/sparse_in_dense.tar.zst"));
    let context = pack::context(Config::default(), None, pack::memory(&sparse_in_dense, ""));
    for name in ["over", "only", "under", "cube"] {
        let array = context
            .array(&format!("mem://{name}"))
            .open()
            .expect("opens");
        let case = Case::open(array).expect("a small array");
        check(name, &case, &mut Dice(seen + 0x5eed));
        seen += 1;
    }
    assert!(seen > 100, "only {seen} dense arrays in the pack");
}

#[test]
fn windows_ranges_and_strides() {
    each_case(|name, case, dice| {
        let ndim = case.window.len();
        for layout in [Layout::RowMajor, Layout::ColMajor] {
            let (selections, taken) = case.selection(dice, false);
            let cells = match layout {
                Layout::ColMajor => case.product(&taken, (0..ndim).rev()),
                _ => case.product(&taken, 0..ndim),
            };
            let options = ReadOptions::new()
                .subarray(Subarray::Box(selections))
                .layout(layout);
            let got = case
                .array
                .read(options)
                .and_then(azulejo::Reader::read_all)
                .expect("cells");
            case.same(&got, &cells, name);
        }
    });
}

#[test]
fn points_keep_their_order() {
    each_case(|name, case, dice| {
        let mut coordinates = vec![PointColumn::default(); case.window.len()];
        let mut cells = Vec::new();
        for _ in 0..20 {
            let at: Vec<u64> = case
                .window
                .iter()
                .map(|(_, len)| dice.below(*len))
                .collect();
            for (d, column) in coordinates.iter_mut().enumerate() {
                column.data.extend(case.coordinate(d, at[d]));
            }
            cells.push(case.cell(&at));
        }
        let options = ReadOptions::new().subarray(Subarray::Points(Points { coordinates }));
        let got = case
            .array
            .read(options)
            .and_then(azulejo::Reader::read_all)
            .expect("cells");
        case.same(&got, &cells, name);
    });
}

#[test]
fn batches_and_buffers_follow_each_other() {
    each_case(|name, case, dice| {
        for layout in [Layout::RowMajor, Layout::ColMajor, Layout::Global] {
            let (selections, _) = case.selection(dice, true);
            let options = || {
                ReadOptions::new()
                    .subarray(Subarray::Box(selections.clone()))
                    .layout(layout)
            };
            let whole = case
                .array
                .read(options())
                .and_then(azulejo::Reader::read_all)
                .expect("cells");
            // As little memory as the array can be read with.
            let mut budget = 512;
            loop {
                let read = case
                    .array
                    .read(options().memory_budget(budget))
                    .and_then(Iterator::collect::<Result<Vec<_>, _>>);
                match read {
                    Ok(batches) => {
                        assert!(batches.iter().all(|b| b.cell_num > 0));
                        assert!(
                            batches
                                .iter()
                                .all(|b| b.memory_size() as u64 <= budget * 2 + 4096),
                            "{name}"
                        );
                        let joined = ColumnSet::concat(&batches).expect("equal columns");
                        assert!(
                            joined.columns == whole.columns,
                            "{name}: batches differ from the whole"
                        );
                        break;
                    }
                    Err(Error::Budget { .. }) => budget *= 2,
                    Err(error) => panic!("{name}: {error}"),
                }
            }

            let mut reader = case.array.read(options()).expect("a plan");
            let types: Vec<_> = reader.column_types().cloned().collect();
            let mut room = 1 + dice.below(40) as usize;
            let mut cells = 0;
            loop {
                let mut buffers: Vec<_> = types
                    .iter()
                    .map(|t| {
                        (
                            vec![0; room * t.cell_size().max(3)],
                            vec![0; room],
                            vec![0; room],
                        )
                    })
                    .collect();
                let mut columns: Vec<_> = buffers
                    .iter_mut()
                    .zip(&types)
                    .map(|((data, offsets, validity), t)| ColumnMut {
                        data,
                        offsets: t.is_var().then_some(offsets.as_mut_slice()),
                        validity: t.nullable.then_some(validity.as_mut_slice()),
                    })
                    .collect();
                let progress = match reader.read_into(&mut columns) {
                    Ok(progress) => progress,
                    Err(Error::BufferTooSmall { .. }) => {
                        room *= 2;
                        continue;
                    }
                    Err(error) => panic!("{name}: {error}"),
                };
                for ((column, (data, offsets, validity)), written) in
                    whole.columns.iter().zip(&buffers).zip(&progress.written)
                {
                    let view = column.view();
                    for i in 0..progress.cells {
                        let start = if column.column_type.is_var() {
                            offsets[i] as usize
                        } else {
                            i * view.cell_size
                        };
                        let wanted = view.cell(cells + i);
                        assert!(start + wanted.len() <= written.data);
                        assert_eq!(&data[start..start + wanted.len()], wanted, "{name}");
                        assert!(
                            !column.column_type.nullable
                                || (validity[i] != 0) == view.is_valid(cells + i)
                        );
                    }
                }
                cells += progress.cells;
                if progress.complete {
                    break;
                }
                assert!(progress.cells > 0, "{name}");
            }
            assert_eq!(cells, whole.cell_num, "{name}");
        }
    });
}

#[test]
fn coordinates_are_those_of_the_cells() {
    each_case(|name, case, dice| {
        let names: Vec<_> = case
            .array
            .schema()
            .domain
            .dimensions
            .iter()
            .map(|d| d.name.clone())
            .collect();
        if names.iter().any(String::is_empty) {
            return;
        }
        let (selections, taken) = case.selection(dice, false);
        let options = ReadOptions::new()
            .subarray(Subarray::Box(selections))
            .fields(names);
        let got = case
            .array
            .read(options)
            .and_then(azulejo::Reader::read_all)
            .expect("coordinates");
        let cells = case.product(&taken, 0..taken.len());
        assert_eq!(got.cell_num, cells.len(), "{name}");
        for (i, cell) in cells.iter().enumerate() {
            let at: Vec<u64> = got
                .columns
                .iter()
                .enumerate()
                .map(|(d, c)| {
                    case.axes[d].offset_of(c.view().cell(i)).expect("inside") - case.window[d].0
                })
                .collect();
            assert_eq!(case.cell(&at), *cell, "{name}");
        }
    });
}

#[test]
fn aggregates_of_any_selection_are_those_of_the_cells_it_reads() {
    use azulejo::read::aggregate::{Aggregate, AggregateValue};
    let mut compared = 0;
    each_case(|name, case, dice| {
        for round in 0..6 {
            let (selections, taken) = case.selection(dice, false);
            let cells = case.product(&taken, 0..taken.len());
            let what = format!("{name}, {selections:?}");
            let options = ReadOptions::new().subarray(Subarray::Box(selections));
            let options =
                options.layout([Layout::RowMajor, Layout::ColMajor, Layout::Global][round % 3]);
            for column in &case.all.columns {
                let kind = &column.column_type;
                let integer = kind.datatype.is_integer()
                    && kind.cell_val_num == azulejo::format::CellValNum::ONE;
                let attribute = case
                    .array
                    .schema()
                    .attributes
                    .iter()
                    .find(|a| *a.name == *kind.name);
                let Some(attribute) = attribute.filter(|_| integer) else {
                    continue;
                };
                let fill = wide(kind.datatype, &attribute.fill_value);
                // The engine alone knows which cells were written: fill values are no data.
                let values: Vec<i128> = cells
                    .iter()
                    .filter(|cell| column.view().is_valid(**cell))
                    .map(|cell| wide(kind.datatype, column.view().cell(*cell)))
                    .collect();
                if values.contains(&fill) {
                    continue;
                }
                let field = || kind.name.to_string();
                let asked = [
                    Aggregate::Count,
                    Aggregate::Sum(field()),
                    Aggregate::Max(field()),
                ];
                let found = case
                    .array
                    .aggregate(options.clone(), &asked)
                    .expect("an answer");
                assert_eq!(
                    found[0],
                    AggregateValue::Unsigned(cells.len() as u64),
                    "{what}"
                );
                let sum = values.iter().sum::<i128>();
                match found[1] {
                    AggregateValue::Signed(found) => assert_eq!(i128::from(found), sum, "{what}"),
                    AggregateValue::Unsigned(found) => assert_eq!(i128::from(found), sum, "{what}"),
                    ref other => assert!(values.is_empty() && kind.nullable, "{what}: {other:?}"),
                }
                let max = match &found[2] {
                    AggregateValue::Cell { bytes, .. } => Some(wide(kind.datatype, bytes)),
                    _ => None,
                };
                assert_eq!(max, values.iter().max().copied(), "{what}");
                compared += 1;
            }
        }
    });
    assert!(compared > 200, "only {compared}");
}

/// An integer of any type.
fn wide(datatype: azulejo::format::Datatype, bytes: &[u8]) -> i128 {
    fn read<T: azulejo::format::datatype::Native>(bytes: &[u8]) -> i128 {
        let value = T::read(bytes);
        let mut low = [0; 16];
        value.write(&mut low[..T::SIZE]);
        let negative = value < T::default();
        if negative {
            low[T::SIZE..].fill(0xff);
        }
        i128::from_le_bytes(low)
    }
    azulejo::format::datatype::dispatch!(datatype.physical(), T => read::<T>(bytes))
}
