//! Filters chosen by the file's own cells (`--optimize`).

use super::batch::Batch;
use super::dataset;
use super::grid::Grid;
use super::plan::{Plan, Shape};
use super::source::Source;
use super::target::Target;
use crate::error::{CliError, Result};
use crate::session::Session;
use azulejo::column::ColumnSet;
use azulejo::format::NdRectangle;
use azulejo::write::optimize::{Goal, SampleCells, choose_filters};

/// Bytes of cells that are looked at, at most: those at the file's beginning, of which the places
/// that count are chosen once they are in order.
const SAMPLE: u64 = 64 << 20;

/// Chooses the filters of a planned array by the first cells of the file that it is planned for.
/// Those that `--filter` names (`NAME=..`) stay.
pub fn choose(
    session: &Session,
    source: &Source<'_>,
    size: u64,
    plan: &mut Plan,
    goal: Goal,
    filters: &[String],
) -> Result<()> {
    let named = |name: &str| {
        let names = filters.iter().filter_map(|text| text.split_once('='));
        names.into_iter().any(|(given, _)| given == name)
    };
    let schema = &plan.array.schema;
    let keeps = |name: &str| {
        // Filters of the coordinates are those of all dimensions without their own.
        named(name) || (schema.domain.index_of(name).is_some() && named("@coords"))
    };
    let grid = match &plan.shape {
        Shape::Grid {
            bounds,
            columns_first,
        } => Some((Grid::new(schema, bounds, *columns_first), *columns_first)),
        Shape::Sparse | Shape::Coordinates(_) => None,
    };
    let mut batch = first_cells(session, source, size, plan, grid.is_some())?;
    if batch.cells == 0 {
        return Ok(());
    }
    let steps = grid.as_ref().map(|(grid, columns_first)| {
        let step = grid.step_cells().unwrap_or(u64::MAX).max(1);
        let steps = i128::from(batch.cells / step);
        let whole = match grid.whole_tiles(0, steps) {
            0 => steps,
            whole => whole,
        };
        (grid.slab(0, whole), whole, step, *columns_first)
    });
    let mut array = plan.array.clone();
    match &steps {
        Some((bounds, steps @ 1.., step, columns_first)) => {
            let cells = u64::try_from(*steps)
                .unwrap_or(u64::MAX)
                .saturating_mul(*step);
            let cells = batch.take(cells)?;
            let cells = SampleCells::of(&cells).in_box(bounds, *columns_first);
            choose_filters(&session.context, &mut array, &cells, goal, &keeps)?;
        }
        _ => {
            let cells = batch.take_all()?;
            choose_filters(
                &session.context,
                &mut array,
                &SampleCells::of(&cells),
                goal,
                &keeps,
            )?;
        }
    }
    plan.array = array;
    Ok(())
}

/// Cells from the file's beginning.
fn first_cells(
    session: &Session,
    source: &Source<'_>,
    size: u64,
    plan: &Plan,
    attributes_only: bool,
) -> Result<Batch> {
    let targets: Vec<Target> = plan
        .targets
        .iter()
        .filter(|target| !(attributes_only && target.is_dimension))
        .cloned()
        .collect();
    let most = SAMPLE.min(session.context.config().memory_budget / 8);
    let mut batch = Batch::default();
    let mut enough = false;
    let read = source.read(session, &targets, size, &mut |_, set| {
        batch.push(set);
        enough = batch.bytes >= most;
        match enough {
            // Nobody sees it: it ends the read.
            true => Err(CliError::usage("enough cells were looked at")),
            false => Ok(()),
        }
    });
    match enough {
        true => Ok(batch),
        false => read.map(|()| batch),
    }
}

/// Boxes of a variable that are looked at, at most, until one has cells that differ.
const BOXES: usize = 16;

/// Chooses the filters of a dataset's variables by their own cells: those of the first box that are
/// not all the same, as the edges of images and of seas are. A variable without such a box keeps
/// its filters.
pub fn choose_for_dataset(session: &Session, plan: &mut dataset::Plan, goal: Goal) -> Result<()> {
    for variable in &mut plan.variables {
        let Some((bounds, cells)) = first_box_that_differs(session, variable)? else {
            continue;
        };
        choose_filters(
            &session.context,
            &mut variable.array,
            &SampleCells::of(&cells).in_box(&bounds, false),
            goal,
            &|_| false,
        )?;
    }
    Ok(())
}

/// A box of a variable whose cells are not all the same, and where it lies.
fn first_box_that_differs(
    session: &Session,
    variable: &dataset::Variable,
) -> Result<Option<(NdRectangle, ColumnSet)>> {
    let (mut seen, mut found) = (0, None);
    let read = variable.cells.each_box(session, &mut |bounds, set| {
        seen += 1;
        if differ(&set) {
            found = Some((dataset::box_at(bounds, None), set));
        }
        match found.is_some() || seen == BOXES {
            // Nobody sees it: it ends the read.
            true => Err(CliError::usage("enough cells were looked at")),
            false => Ok(()),
        }
    });
    match found.is_some() || seen == BOXES {
        true => Ok(found),
        false => read.map(|()| None),
    }
}

/// Whether two cells are not the same.
fn differ(cells: &ColumnSet) -> bool {
    cells.columns.iter().any(|column| {
        let data = column.data.as_slice();
        let size = column.column_type.cell_size().max(1);
        // Texts that follow one another count as one: a repeated one is no reason to look further.
        column.offsets.is_some()
            || data
                .get(size..)
                .is_some_and(|rest| rest != &data[..rest.len()])
    })
}
