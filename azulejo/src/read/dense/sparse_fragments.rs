//! Sparse fragments of dense arrays, which early versions could write: their cells are laid over
//! a plan one by one.

use super::plan::{BatchPlan, DensePlan, PlacedBox, TileTask};
use crate::array::Array;
use crate::buffer_pool::BufferPool;
use crate::error::{Error, Result};
use crate::read::decode::{Cells, TileRequest, load_tiles};
use crate::space::copy::{Axis, CopyList};
use azulejo_format::fragment::Field;

/// A sparse fragment of a dense array.
#[derive(Debug, Clone)]
pub(super) struct SparseFragment {
    /// Index in the array's fragments.
    pub fragment: usize,
    /// First and last offset of its non-empty domain, along each dimension.
    pub bounds: Vec<(u64, u64)>,
}

/// Where an output cell comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Origin {
    /// Index among the tasks, [`Origin::FILL`] if no fragment has the cell.
    task: usize,
    cell: usize,
}

impl Origin {
    const FILL: usize = usize::MAX;
}

/// The plan with the cells of sparse fragments in it, each where no later fragment has a cell.
pub(super) fn overlay(
    array: &Array,
    plan: &DensePlan,
    sparse: &[SparseFragment],
    batch: BatchPlan,
    pool: &BufferPool,
) -> Result<BatchPlan> {
    let mut tasks: Vec<(usize, u64)> = batch.tasks.iter().map(|s| (s.fragment, s.tile)).collect();
    let mut origins = vec![
        Origin {
            task: Origin::FILL,
            cell: 0
        };
        batch.cells
    ];
    let beyond = || Error::Internal("a cell of a sparse fragment lies outside the result".into());
    for (index, task) in batch.tasks.iter().enumerate() {
        for copy in batch.copies.get(task.copies.clone()) {
            batch.copies.rows(copy, &(0..batch.cells), &mut |row| {
                for i in 0..row.axis.count {
                    let place = origins
                        .get_mut(row.out + i * row.axis.out)
                        .ok_or_else(beyond)?;
                    *place = Origin {
                        task: index,
                        cell: row.src + i * row.axis.src,
                    };
                }
                Ok(())
            })?;
        }
    }
    let mut changed = false;
    for source in sparse {
        let Some(fragment) = array.fragments().get(source.fragment) else {
            continue;
        };
        if !batch.boxes.iter().any(|placed| meets(plan, placed, source)) {
            continue;
        }
        for tile in 0..fragment.tile_num() {
            let request = |d| TileRequest {
                fragment: source.fragment,
                field: Field::Dimension(d),
                tile,
                cells: Cells::All,
            };
            let requests: Vec<_> = (0..plan.grid.ndim()).map(request).collect();
            let coordinates = load_tiles(array, &requests, pool)?;
            let task = tasks.len();
            tasks.push((source.fragment, tile));
            let cell_num = coordinates.iter().map(|t| t.cell_num).min().unwrap_or(0);
            for cell in 0..cell_num {
                let offset = |d: usize| {
                    let column = coordinates.get(d)?;
                    plan.grid.axes().get(d)?.offset_of(column.view().cell(cell))
                };
                let offsets: Option<Vec<u64>> = (0..plan.grid.ndim()).map(offset).collect();
                let Some(offsets) = offsets else { continue };
                for placed in &batch.boxes {
                    for out in places(plan, placed, &offsets) {
                        let place = origins.get_mut(out).ok_or_else(beyond)?;
                        let newer = tasks
                            .get(place.task)
                            .is_some_and(|(f, _)| *f > source.fragment);
                        if !newer {
                            *place = Origin { task, cell };
                            changed = true;
                        }
                    }
                }
            }
        }
    }
    if changed {
        rebuild(batch, &tasks, &origins)
    } else {
        Ok(batch)
    }
}

fn meets(plan: &DensePlan, placed: &PlacedBox, source: &SparseFragment) -> bool {
    plan.selection
        .iter()
        .zip(&placed.positions)
        .zip(&source.bounds)
        .all(|((selection, positions), (low, high))| {
            selection.runs().iter().any(|run| {
                run.position < positions.end
                    && positions.start < run.position.saturating_add(run.count)
                    && run.start <= *high
                    && *low <= run.last()
            })
        })
}

/// The cells of a batch at which offsets are selected.
fn places(plan: &DensePlan, placed: &PlacedBox, offsets: &[u64]) -> Vec<usize> {
    let mut found = vec![placed.base];
    for (d, offset) in offsets.iter().enumerate() {
        let positions = &placed.positions[d];
        let mut next = Vec::new();
        plan.selection[d].positions_of(*offset, positions.start, positions.end, |position| {
            next.extend(
                found
                    .iter()
                    .map(|out| out + position as usize * placed.strides[d]),
            );
        });
        found = next;
    }
    found
}

/// A plan of runs of cells that come from one tile and follow each other in it.
fn rebuild(batch: BatchPlan, tiles: &[(usize, u64)], origins: &[Origin]) -> Result<BatchPlan> {
    let mut runs: Vec<(usize, usize, usize, usize)> = Vec::new();
    for (out, origin) in origins.iter().enumerate() {
        match runs.last_mut() {
            Some((task, start, cell, count))
                if *task == origin.task
                    && *start + *count == out
                    && (origin.task == Origin::FILL || *cell + *count == origin.cell) =>
            {
                *count += 1;
            }
            _ => runs.push((origin.task, out, origin.cell, 1)),
        }
    }
    runs.sort_by_key(|run| run.0);
    let mut rebuilt = BatchPlan {
        boxes: batch.boxes,
        start: batch.start,
        cells: batch.cells,
        order: batch.order,
        ..BatchPlan::default()
    };
    let mut last = None;
    for (task, out, cell, count) in runs {
        let run = std::iter::once(Axis {
            count,
            out: 1,
            src: 1,
        });
        let Some(&(fragment, tile)) = tiles.get(task) else {
            rebuilt.fills.push(out, 0, run);
            continue;
        };
        let list: &mut CopyList = &mut rebuilt.copies;
        list.push(out, cell, run);
        let end = list.len();
        if last != Some(task) {
            rebuilt.tasks.push(TileTask {
                fragment,
                tile,
                copies: end - 1..end,
            });
            last = Some(task);
        } else if let Some(task) = rebuilt.tasks.last_mut() {
            task.copies.end = end;
        }
    }
    Ok(rebuilt)
}
