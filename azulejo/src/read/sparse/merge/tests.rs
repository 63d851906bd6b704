//! Keys and merges against a naive model: cells as values, sorted by the rules as the format states
//! them.

use super::*;
use crate::column::FieldView;
use crate::space::cell_order::CellOrder;
use crate::space::keys::{KeyTile, RowSelection, build};
use crate::space::tile_grid::tests::{dimension, schema};
use azulejo_format::schema::{ArraySchema, Dimension, Layout};
use azulejo_format::{CellValNum, Datatype};
use proptest::prelude::*;
use std::cmp::Ordering;

/// One coordinate.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    I8(i8),
    I64(i64),
    U32(u32),
    F32(f32),
    F64(f64),
    Text(Vec<u8>),
}

const KINDS: usize = 6;

fn make_dimension(kind: usize, extent: bool) -> Dimension {
    let mut dimension = match kind {
        0 => dimension(Datatype::Int8, -128i8, 127, 100),
        1 => dimension(Datatype::Int64, i64::MIN, i64::MAX, 1 << 60),
        2 => dimension(Datatype::UInt32, 3u32, 1003, 10),
        3 => dimension(Datatype::Float32, -10.0f32, 10.0, 0.75),
        4 => dimension(Datatype::Float64, -1e9f64, 1e9, 1000.0),
        _ => Dimension {
            cell_val_num: CellValNum::Var,
            domain: None,
            tile_extent: None,
            ..dimension(Datatype::StringAscii, 0u8, 0, 0)
        },
    };
    if !extent {
        dimension.tile_extent = None;
    }
    dimension
}

fn value(kind: usize) -> BoxedStrategy<Value> {
    match kind {
        0 => any::<i8>().prop_map(Value::I8).boxed(),
        1 => prop_oneof![any::<i64>(), -5i64..5]
            .prop_map(Value::I64)
            .boxed(),
        2 => (3u32..1004).prop_map(Value::U32).boxed(),
        3 => prop_oneof![(-10.0f32..10.0), Just(-0.0), Just(0.0)]
            .prop_map(Value::F32)
            .boxed(),
        4 => (-1e9f64..1e9).prop_map(Value::F64).boxed(),
        _ => prop_oneof![
            "[ab]{0,3}".prop_map(String::into_bytes),
            "[ab]{6,10}".prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..10),
        ]
        .prop_map(Value::Text)
        .boxed(),
    }
}

impl Value {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::I8(v) => v.to_le_bytes().to_vec(),
            Self::I64(v) => v.to_le_bytes().to_vec(),
            Self::U32(v) => v.to_le_bytes().to_vec(),
            Self::F32(v) => v.to_le_bytes().to_vec(),
            Self::F64(v) => v.to_le_bytes().to_vec(),
            Self::Text(v) => v.clone(),
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::I8(a), Self::I8(b)) => a.cmp(b),
            (Self::I64(a), Self::I64(b)) => a.cmp(b),
            (Self::U32(a), Self::U32(b)) => a.cmp(b),
            (Self::F32(a), Self::F32(b)) => a.partial_cmp(b).unwrap(),
            (Self::F64(a), Self::F64(b)) => a.partial_cmp(b).unwrap(),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => unreachable!(),
        }
    }

    fn tile(&self) -> u64 {
        match self {
            Self::I8(v) => (i64::from(*v) + 128) as u64 / 100,
            Self::I64(v) => ((i128::from(*v) - i128::from(i64::MIN)) >> 60) as u64,
            Self::U32(v) => u64::from((v - 3) / 10),
            Self::F32(v) => ((v + 10.0) / 0.75) as u64,
            Self::F64(v) => ((v + 1e9) / 1000.0) as u64,
            Self::Text(_) => 0,
        }
    }
}

/// The order of the model.
fn model_compare(schema: &ArraySchema, layout: Layout, a: &[Value], b: &[Value]) -> Ordering {
    let dims = &schema.domain.dimensions;
    let along = |order: Layout| -> Vec<usize> {
        if order == Layout::ColMajor {
            (0..dims.len()).rev().collect()
        } else {
            (0..dims.len()).collect()
        }
    };
    let mut cell_order = layout;
    if layout == Layout::Global {
        for d in along(schema.tile_order) {
            if dims[d].tile_extent.is_some() && a[d].tile() != b[d].tile() {
                return a[d].tile().cmp(&b[d].tile());
            }
        }
        cell_order = schema.cell_order;
    }
    along(cell_order)
        .into_iter()
        .map(|d| a[d].compare(&b[d]))
        .find(|o| *o != Ordering::Equal)
        .unwrap_or(Ordering::Equal)
}

/// Cells of one tile by dimension.
struct Columns {
    data: Vec<Vec<u8>>,
    offsets: Vec<Vec<u64>>,
}

impl Columns {
    fn of(cells: &[Vec<Value>], dims: usize) -> Self {
        let mut columns = Self {
            data: vec![Vec::new(); dims],
            offsets: vec![vec![0]; dims],
        };
        for cell in cells {
            for (d, value) in cell.iter().enumerate() {
                columns.data[d].extend(value.bytes());
                columns.offsets[d].push(columns.data[d].len() as u64);
            }
        }
        columns
    }

    fn views(&self, schema: &ArraySchema) -> Vec<FieldView<'_>> {
        let view = |(d, dimension): (usize, &Dimension)| {
            let var = dimension.cell_val_num.is_var();
            FieldView {
                cell_num: self.offsets[d].len() - 1,
                data: &self.data[d],
                offsets: var.then_some(self.offsets[d].as_slice()),
                validity: None,
                cell_size: if var { 0 } else { dimension.datatype.size() },
            }
        };
        schema
            .domain
            .dimensions
            .iter()
            .enumerate()
            .map(view)
            .collect()
    }
}

#[derive(Debug, Clone)]
struct Case {
    schema: ArraySchema,
    layout: Layout,
    tiles: Vec<Vec<Vec<Value>>>,
    selected: Vec<RowSelection>,
    results: Vec<Option<Vec<u8>>>,
    times: Vec<Vec<u64>>,
    duplicates: u8,
    /// Only cells from the first to before the second of these, if given.
    bounds: (Option<usize>, Option<usize>),
}

fn case() -> impl Strategy<Value = Case> {
    let orders = || prop_oneof![Just(Layout::RowMajor), Just(Layout::ColMajor)];
    let layouts = prop_oneof![
        Just(Layout::RowMajor),
        Just(Layout::ColMajor),
        Just(Layout::Global)
    ];
    (
        prop::collection::vec((0..KINDS, any::<bool>()), 1..6),
        orders(),
        orders(),
        layouts,
    )
        .prop_flat_map(|(dims, tile_order, cell_order, layout)| {
            let kinds: Vec<usize> = dims.iter().map(|(kind, _)| *kind).collect();
            let schema = schema(
                dims.iter()
                    .map(|(kind, e)| make_dimension(*kind, *e))
                    .collect(),
                tile_order,
                cell_order,
            );
            let cell: Vec<BoxedStrategy<Value>> = kinds.into_iter().map(value).collect();
            // A small stock of cells, so that many are equal.
            let stock = prop::collection::vec(cell, 1..12);
            let picks = prop::collection::vec(
                prop::collection::vec(any::<prop::sample::Index>(), 1..20),
                1..5,
            );
            let bound = || prop::option::of(0usize..50);
            (
                stock,
                picks,
                any::<u64>(),
                0u8..3,
                any::<bool>(),
                (bound(), bound()),
            )
                .prop_map(move |(stock, picks, seed, duplicates, sorted, bounds)| {
                    let tiles: Vec<Vec<Vec<Value>>> = picks
                        .iter()
                        .map(|tile| {
                            tile.iter()
                                .map(|i| stock[i.index(stock.len())].clone())
                                .collect()
                        })
                        .collect();
                    let mut case = Case {
                        schema: schema.clone(),
                        layout,
                        tiles,
                        selected: Vec::new(),
                        results: Vec::new(),
                        times: Vec::new(),
                        duplicates,
                        bounds,
                    };
                    let mut random = seed;
                    let mut next = move || {
                        random = random
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1);
                        random >> 33
                    };
                    for tile in &mut case.tiles {
                        if sorted {
                            let schema = &case.schema;
                            tile.sort_by(|a, b| model_compare(schema, Layout::Global, a, b));
                        }
                        let n = tile.len() as u32;
                        let list = (0..n).filter(|_| next() % 4 > 0).collect();
                        case.selected.push(if next() % 2 == 0 {
                            RowSelection::All(n)
                        } else {
                            RowSelection::List(list)
                        });
                        let mask = (0..n).map(|_| u8::from(next() % 3 > 0)).collect();
                        case.results.push((next() % 2 == 0).then_some(mask));
                        case.times.push((0..n).map(|_| next() % 3).collect());
                    }
                    case
                })
        })
}

/// BatchTile and place of the cells that the model gives.
fn model(case: &Case) -> Vec<(u32, u32)> {
    let mut cells: Vec<(u32, u32)> = Vec::new();
    for (slot, selected) in case.selected.iter().enumerate() {
        match selected {
            RowSelection::All(n) => cells.extend((0..*n).map(|place| (slot as u32, place))),
            RowSelection::List(list) => {
                cells.extend(list.iter().map(|&place| (slot as u32, place)));
            }
        }
    }
    let value = |cell: &(u32, u32)| &case.tiles[cell.0 as usize][cell.1 as usize];
    let time = |cell: &(u32, u32)| case.times[cell.0 as usize][cell.1 as usize];
    let compare = |a: &(u32, u32), b: &(u32, u32)| {
        model_compare(&case.schema, case.layout, value(a), value(b))
    };
    cells.sort_by(|a, b| compare(a, b).then(a.cmp(b)));
    let (from, to) = bounds(case);
    cells.retain(|cell| {
        from.is_none_or(|b| {
            model_compare(&case.schema, case.layout, value(cell), b) != Ordering::Less
        }) && to.is_none_or(|b| {
            model_compare(&case.schema, case.layout, value(cell), b) == Ordering::Less
        })
    });
    let mut result: Vec<(u32, u32)> = Vec::new();
    for equal in cells.chunk_by(|a, b| compare(a, b) == Ordering::Equal) {
        match case.duplicates {
            0 => result.extend(equal),
            1 => result.push(equal[0]),
            _ => {
                let latest = equal.iter().map(time).max().unwrap();
                result.extend(equal.iter().find(|cell| time(cell) == latest));
            }
        }
    }
    result.retain(|cell| {
        case.results[cell.0 as usize]
            .as_ref()
            .is_none_or(|results| results[cell.1 as usize] == 1)
    });
    result
}

/// The cells that the case's bounds are taken from.
fn bounds(case: &Case) -> (Option<&Vec<Value>>, Option<&Vec<Value>>) {
    let all: Vec<&Vec<Value>> = case.tiles.iter().flatten().collect();
    let select = |i: Option<usize>| i.map(|i| all[i % all.len()]);
    (select(case.bounds.0), select(case.bounds.1))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]
    #[test]
    fn merges_give_what_the_model_gives(case in case()) {
        let order = CellOrder::new(&case.schema, case.layout);
        let dims = case.schema.domain.dimensions.len();
        let columns: Vec<Columns> = case.tiles.iter().map(|cells| Columns::of(cells, dims)).collect();
        let tiles: Vec<KeyTile<'_>> = columns.iter().zip(&case.selected).enumerate().map(|(slot, (columns, selected))| {
            KeyTile { coordinates: columns.views(&case.schema), rows: selected, slot: slot as u32 }
        }).collect();
        let bound = |cell: Option<&Vec<Value>>| cell.map(|cell| {
            let bytes: Vec<Vec<u8>> = cell.iter().map(Value::bytes).collect();
            order.lower_bound(&bytes.iter().map(Vec::as_slice).collect::<Vec<_>>())
        });
        let (from, to) = bounds(&case);
        let set = build(&order, &tiles, bound(from).as_ref(), bound(to).as_ref()).unwrap();
        let time = |slot: u32, place: u32| case.times[slot as usize][place as usize];
        let duplicates = match case.duplicates {
            0 => MergeRule::Keep,
            1 => MergeRule::First,
            _ => MergeRule::Latest(&time),
        };
        let results: Vec<Option<&[u8]>> = case.results.iter().map(Option::as_deref).collect();
        let slabs = merge(set, duplicates, &results);
        let cells: Vec<(u32, u32)> = slabs.iter()
            .flat_map(|slab| (0..slab.len).map(|i| (slab.tile, slab.start as u32 + i))).collect();
        prop_assert_eq!(cells, model(&case));
    }
}
