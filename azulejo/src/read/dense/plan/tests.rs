use super::*;
use crate::space::tile_grid::tests::{dimension, schema};
use crate::space::{DimSelection, Layout, dimension_order};
use azulejo_format::{Datatype, Range as Bounds};
use proptest::prelude::*;

const SIDE: i16 = 23;

fn selection() -> impl Strategy<Value = DimSelection> {
    let range = (0..SIDE, 0..SIDE).prop_map(|(a, b)| Bounds::of(a.min(b) - 5, a.max(b) - 5));
    prop_oneof![
        Just(DimSelection::All),
        proptest::collection::vec(range.clone(), 1..4).prop_map(DimSelection::Ranges),
        (range, 1u64..9).prop_map(|(range, step)| DimSelection::Strided { range, step }),
    ]
}

fn layout() -> impl Strategy<Value = Layout> {
    prop_oneof![Just(Layout::RowMajor), Just(Layout::ColMajor)]
}

/// A plan over a domain of -5..18 along each dimension.
fn plan(
    extents: &[i16],
    orders: (Layout, Layout),
    selection: &[DimSelection],
    fragments: &[Vec<(u64, u64)>],
) -> DensePlan {
    let dims: Vec<_> = extents
        .iter()
        .map(|e| dimension(Datatype::Int16, -5i16, SIDE - 6, *e))
        .collect();
    let schema = schema(dims, orders.0, orders.1);
    let grid = TileGrid::new(&schema).unwrap();
    let selection = schema
        .domain
        .dimensions
        .iter()
        .zip(grid.axes())
        .zip(selection)
        .map(|((d, axis), s)| AxisSelection::resolve(d, axis, s, None).unwrap())
        .collect();
    let sources = fragments
        .iter()
        .enumerate()
        .map(|(fragment, bounds)| {
            let grid = FragmentGrid::new(&grid, bounds.clone()).unwrap();
            DenseFragment { fragment, grid }
        })
        .collect();
    DensePlan {
        grid,
        selection,
        sources,
    }
}

/// The cell of a fragment's tile that holds offsets.
fn cell_of(plan: &DensePlan, source: usize, offsets: &[u64]) -> (u64, usize) {
    let extents = plan.grid.extents();
    let tile: Vec<u64> = offsets.iter().zip(extents).map(|(o, e)| o / e).collect();
    let cell: u64 = offsets
        .iter()
        .zip(extents)
        .zip(plan.grid.cell_strides())
        .map(|((o, e), s)| o % e * s)
        .sum();
    (plan.sources[source].grid.tile_index(&tile), cell as usize)
}

#[test]
fn hidden_tiles_are_not_read() {
    let whole = vec![(0, 22), (0, 22)];
    let fragments = [whole.clone(), vec![(0, 11), (0, 22)], vec![(3, 3), (4, 9)]];
    let plan = plan(
        &[4, 6],
        (Layout::RowMajor, Layout::RowMajor),
        &[DimSelection::All, DimSelection::All],
        &fragments,
    );
    let batch = plan.batch(plan.everything(), &[0, 1], 0).unwrap();
    let tiles = |source| batch.tasks.iter().filter(|s| s.fragment == source).count();
    assert_eq!((tiles(0), tiles(1), tiles(2)), (3 * 4, 3 * 4, 2));
    assert!(batch.fills.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn every_cell_comes_from_the_latest_fragment(
        dims in proptest::collection::vec((1i16..9, selection(), 0.0f64..1.0, 0.0f64..1.0), 1..4),
        orders in (layout(), layout(), layout()),
        fragments in proptest::collection::vec(proptest::collection::vec((0u64..23, 0u64..23), 3), 0..5),
    ) {
        let extents: Vec<i16> = dims.iter().map(|d| d.0).collect();
        let selections: Vec<_> = dims.iter().map(|d| d.1.clone()).collect();
        let fragments: Vec<Vec<(u64, u64)>> = fragments.iter().map(|f| {
            f[..dims.len()].iter().map(|(a, b)| (*a.min(b), *a.max(b))).collect()
        }).collect();
        let plan = plan(&extents, (orders.0, orders.1), &selections, &fragments);
        let order = dimension_order(orders.2, dims.len());
        let window: PositionBox = plan.selection.iter().zip(&dims).map(|(s, d)| {
            let at = |f: f64| (s.len() as f64 * f) as u64;
            at(d.2.min(d.3))..at(d.2.max(d.3)).max(at(d.2.min(d.3)) + 1).min(s.len())
        }).collect();
        let batch = plan.batch(window.clone(), &order, 0).unwrap();
        let mut seen: Vec<Option<Option<(usize, u64, usize)>>> = vec![None; batch.cells];
        for task in &batch.tasks {
            for copy in batch.copies.get(task.copies.clone()) {
                batch.copies.rows(copy, &(0..batch.cells), &mut |row| {
                    for i in 0..row.axis.count {
                        let cell = (task.fragment, task.tile, row.src + i * row.axis.src);
                        assert!(seen[row.out + i * row.axis.out].replace(Some(cell)).is_none());
                    }
                    Ok(())
                }).unwrap();
            }
        }
        for copy in batch.fills.all() {
            batch.fills.rows(copy, &(0..batch.cells), &mut |row| {
                for i in 0..row.axis.count {
                    assert!(seen[row.out + i * row.axis.out].replace(None).is_none());
                }
                Ok(())
            }).unwrap();
        }
        prop_assert_eq!(batch.tasks.iter().map(|s| (s.fragment, s.tile)).collect::<std::collections::HashSet<_>>().len(), batch.tasks.len());
        for (out, seen) in seen.iter().enumerate() {
            let offsets: Vec<u64> = (0..dims.len()).map(|d| {
                let stride = batch.boxes[0].strides[d];
                let count = (window[d].end - window[d].start) as usize;
                plan.selection[d].offset_at(window[d].start + (out / stride % count) as u64)
            }).collect();
            let winner = fragments.iter().rposition(|f| f.iter().zip(&offsets).all(|((lo, hi), o)| lo <= o && o <= hi));
            let wanted = winner.map(|source| {
                let (tile, cell) = cell_of(&plan, source, &offsets);
                (source, tile, cell)
            });
            prop_assert_eq!(*seen, Some(wanted));
        }
    }
}
