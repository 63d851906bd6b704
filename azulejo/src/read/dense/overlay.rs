//! Fragments of dense arrays whose tiles are not those of the array's grid: their cells are laid
//! over a plan one by one.
//!
//! Early versions could write sparse fragments to dense arrays; and where an array was written over
//! another one, older fragments may lie in tiles of another extent, origin or order.

use super::plan::{BatchPlan, DensePlan, PlacedBox, TileTask};
use crate::column::Tile;
use crate::error::{Error, Result};
use crate::space::copy::{Axis, CopyList};
use crate::space::{FragmentGrid, TileGrid};
use std::collections::HashMap;

/// Such a fragment.
#[derive(Debug, Clone)]
pub(super) struct OverlaidFragment {
    /// Index in the array's fragments.
    pub fragment: usize,
    /// First and last offset of its non-empty domain, along each dimension.
    pub bounds: Vec<(u64, u64)>,
    pub coordinates: Coordinates,
}

/// Where the coordinates of a fragment's cells come from.
#[derive(Debug, Clone)]
pub(super) enum Coordinates {
    /// They are stored, as in every sparse fragment.
    Stored,
    /// A dense fragment's follow from the grid of its schema.
    Computed(Box<OwnGrid>),
}

/// The grid of a fragment's schema, and its tiles there.
#[derive(Debug, Clone)]
pub(super) struct OwnGrid {
    pub grid: TileGrid,
    pub tiles: FragmentGrid,
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

/// A plan that cells of such fragments are laid over, each where no later fragment has a cell.
pub(super) struct Overlay<'a> {
    plan: &'a DensePlan,
    batch: BatchPlan,
    /// Fragments and their tiles.
    tasks: Vec<(usize, u64)>,
    /// By cell of the batch.
    origins: Vec<Origin>,
    changed: bool,
}

impl<'a> Overlay<'a> {
    /// Where the cells of a batch come from before any is overlaid.
    pub fn new(plan: &'a DensePlan, batch: BatchPlan) -> Result<Self> {
        let nothing = Origin {
            task: Origin::FILL,
            cell: 0,
        };
        let mut origins = vec![nothing; batch.cells];
        for (index, task) in batch.tasks.iter().enumerate() {
            for copy in batch.copies_of(task) {
                batch.copies.rows(copy, &(0..batch.cells), &mut |row| {
                    for i in 0..row.axis.count {
                        let place = origins.get_mut(row.out + i * row.axis.out);
                        *place.ok_or_else(beyond)? = Origin {
                            task: index,
                            cell: row.src + i * row.axis.src,
                        };
                    }
                    Ok(())
                })?;
            }
        }
        Ok(Self {
            plan,
            tasks: batch.tasks.iter().map(|s| (s.fragment, s.tile)).collect(),
            batch,
            origins,
            changed: false,
        })
    }

    /// Whether a fragment may have cells of the batch: then they have to be added.
    pub fn touches(&self, source: &OverlaidFragment) -> bool {
        self.batch.boxes.iter().any(|placed| {
            let axes = self.plan.selection.iter().zip(&placed.positions);
            let mut axes = axes.zip(&source.bounds);
            axes.all(|((selection, positions), (low, high))| {
                selection.runs().iter().any(|run| {
                    run.position < positions.end
                        && positions.start < run.position.saturating_add(run.count)
                        && run.start <= *high
                        && *low <= run.last()
                })
            })
        })
    }

    /// The plan with the cells that were added.
    pub fn finish(self) -> BatchPlan {
        if self.changed {
            rebuild(self.batch, &self.tasks, &self.origins)
        } else {
            self.batch
        }
    }

    /// Puts one cell in its place, if no later fragment has one there.
    fn put(&mut self, out: usize, fragment: usize, origin: Origin) -> Result<()> {
        let place = self.origins.get_mut(out).ok_or_else(beyond)?;
        let newer = self
            .tasks
            .get(place.task)
            .is_some_and(|(f, _)| *f > fragment);
        if !newer {
            *place = origin;
            self.changed = true;
        }
        Ok(())
    }

    /// Adds the cells of a tile, whose coordinates are given by dimension.
    pub fn add_stored(
        &mut self,
        source: &OverlaidFragment,
        tile: u64,
        coordinates: &[Tile],
    ) -> Result<()> {
        let plan = self.plan;
        let task = self.tasks.len();
        self.tasks.push((source.fragment, tile));
        let cell_num = coordinates.iter().map(|t| t.cell_num).min().unwrap_or(0);
        for cell in 0..cell_num {
            let offset = |d: usize| {
                let column = coordinates.get(d)?;
                plan.grid.axes().get(d)?.offset_of(column.view().cell(cell))
            };
            let offsets: Option<Vec<u64>> = (0..plan.grid.ndim()).map(offset).collect();
            let Some(offsets) = offsets else { continue };
            let boxes = self.batch.boxes.iter();
            let outs = boxes.flat_map(|placed| places(plan, placed, &offsets));
            for out in outs.collect::<Vec<usize>>() {
                self.put(out, source.fragment, Origin { task, cell })?;
            }
        }
        Ok(())
    }

    /// Adds the cells of a dense fragment, whose coordinates follow from its own grid, cell by cell of
    /// each box.
    ///
    /// For example one dimension, tiles of five cells from offset 0 on, and the box 3..7: its
    /// positions come from the cells 3 and 4 of tile 0 and the cells 0 and 1 of tile 1, which makes
    /// two tasks.
    pub fn add_computed(&mut self, fragment: usize, own: &OwnGrid) -> Result<()> {
        let plan = self.plan;
        let mut tasks: HashMap<u64, usize> = HashMap::new();
        for placed in self.batch.boxes.clone() {
            // By dimension: of each position what it adds to the cell's place in the box, to the
            // index of its tile in the fragment and to its place in the tile.
            let parts = placed.positions.iter().enumerate().map(|(d, positions)| {
                let (axis, theirs) = (&plan.grid.axes()[d], &own.grid.axes()[d]);
                let place = |position: u64| {
                    let offset = theirs.offset_in(axis, plan.selection[d].offset_at(position))?;
                    let (tile, cell) = own.tiles.place(&own.grid, d, offset)?;
                    let out = (position - positions.start) as usize * placed.strides[d];
                    Some((out, tile, cell))
                };
                positions.clone().filter_map(place).collect()
            });
            let parts: Vec<Vec<(usize, u64, u64)>> = parts.collect();
            let cells: usize = parts.iter().map(Vec::len).product();
            for index in 0..cells {
                let (mut rest, mut out, mut tile, mut cell) = (index, placed.base, 0, 0);
                for part in &parts {
                    let (more, of_tile, of_cell) = part[rest % part.len()];
                    rest /= part.len();
                    out += more;
                    tile += of_tile;
                    cell += of_cell as usize;
                }
                let next = self.tasks.len();
                let task = *tasks.entry(tile).or_insert(next);
                if task == next {
                    self.tasks.push((fragment, tile));
                }
                self.put(out, fragment, Origin { task, cell })?;
            }
        }
        Ok(())
    }
}

fn beyond() -> Error {
    Error::Internal("a cell of an overlaid fragment lies outside the result".into())
}

/// The cells of a batch at which offsets are selected.
fn places(plan: &DensePlan, placed: &PlacedBox, offsets: &[u64]) -> Vec<usize> {
    let mut found = vec![placed.base];
    for (d, offset) in offsets.iter().enumerate() {
        let positions = &placed.positions[d];
        let mut next = Vec::new();
        plan.selection[d].positions_of(*offset, positions.start, positions.end, |position| {
            let out = position as usize * placed.strides[d];
            next.extend(found.iter().map(|before| before + out));
        });
        found = next;
    }
    found
}

/// A plan of runs of cells that come from one tile and follow each other in it.
fn rebuild(batch: BatchPlan, tiles: &[(usize, u64)], origins: &[Origin]) -> BatchPlan {
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
    rebuilt
}
