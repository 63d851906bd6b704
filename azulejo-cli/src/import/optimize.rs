//! Filters chosen by the file's own cells.

use super::batch::Batch;
use super::dataset;
use super::grid::Grid;
use super::plan::{Plan, Shape};
use super::source::Source;
use super::target::Target;
use crate::args::FieldArgs;
use crate::error::{CliError, Result};
use crate::session::Session;
use azulejo::column::ColumnSet;
use azulejo::format::NdRectangle;
use azulejo::format::schema::{ArraySchema, FieldIndex};
use azulejo::write::optimize::{Goal, SampleCells, choose_filters, sample_bytes};

/// Fewer rows say little of those that will be added to them.
const FEW_ROWS: u64 = 100;

/// Chooses the filters of a planned array by the first cells of the file that it is planned for. Those
/// that `--filter` names (`NAME=..`) stay, and all where there are few rows, unless `--optimize` asks
/// for it.
pub fn choose(
    session: &Session,
    source: &Source<'_>,
    size: u64,
    plan: &mut Plan,
    fields: &FieldArgs,
) -> Result<()> {
    let goal = fields.goal();
    let named = |name: &str| {
        let names = fields
            .filters
            .iter()
            .filter_map(|text| text.split_once('='));
        names.into_iter().any(|(given, _)| given == name)
    };
    let schema = &plan.array.schema;
    let keeps = |name: &str| {
        // Filters of the coordinates are those of all dimensions without their own.
        named(name) || (schema.domain.index_of(name).is_some() && named("@coords"))
    };
    let few = fields.optimize.is_none() && plan.rows < FEW_ROWS;
    if few || !chooses_any(schema, &keeps) {
        return Ok(());
    }
    let most = sample_bytes(&session.context);
    let grid = match &plan.shape {
        Shape::Grid {
            bounds,
            columns_first,
        } => Some((Grid::new(schema, bounds, *columns_first), *columns_first)),
        Shape::Sparse | Shape::Coordinates(_) => None,
    };
    let mut batch = first_cells(session, source, size, plan, grid.is_some(), most)?;
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
    let mut by =
        |cells: &SampleCells<'_>| choose_filters(&session.context, &mut array, cells, goal, &keeps);
    match &steps {
        Some((bounds, steps @ 1.., step, columns_first)) => {
            let cells = u64::try_from(*steps)
                .unwrap_or(u64::MAX)
                .saturating_mul(*step);
            let cells = batch.take(cells)?;
            by(&SampleCells::of(&cells).in_box(bounds, *columns_first))?;
        }
        _ => by(&SampleCells::of(&batch.take_all()?))?,
    }
    plan.array = array;
    Ok(())
}

/// Whether there is anything whose filters are not kept, so that cells are worth a look.
fn chooses_any(schema: &ArraySchema, keeps: &dyn Fn(&str) -> bool) -> bool {
    let mut var = false;
    let mut nullable = false;
    let mut any = false;
    for field in schema.fields() {
        // Nobody stores the coordinates of a dense array.
        if schema.is_dense() && matches!(field, FieldIndex::Dimension(_)) {
            continue;
        }
        let of = schema.type_of(field);
        var |= of.is_some_and(|(_, cell_val_num)| cell_val_num.is_var());
        nullable |= schema.is_nullable(field);
        any |= !keeps(schema.name_of(field));
    }
    any || (var && !keeps("@offsets")) || (nullable && !keeps("@validity"))
}

/// Cells from the file's beginning, about `most` bytes.
fn first_cells(
    session: &Session,
    source: &Source<'_>,
    size: u64,
    plan: &Plan,
    attributes_only: bool,
    most: u64,
) -> Result<Batch> {
    let targets: Vec<Target> = plan
        .targets
        .iter()
        .filter(|target| !(attributes_only && target.is_dimension))
        .cloned()
        .collect();
    let mut batch = Batch::default();
    let mut enough = false;
    let read = source.read(session, &targets, size, &mut |_, set| {
        batch.push(set);
        enough = batch.bytes >= most;
        go_on(!enough)
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
    let (mut seen, mut found, mut enough) = (0, None, false);
    let read = variable.cells.each_box(session, &mut |bounds, set| {
        seen += 1;
        if differ(&set) {
            found = Some((dataset::box_at(bounds, None), set));
        }
        enough = found.is_some() || seen == BOXES;
        go_on(!enough)
    });
    match enough {
        true => Ok(found),
        false => read.map(|()| None),
    }
}

/// An error where a read is not to go on: it ends the read, and nobody sees it.
fn go_on(more: bool) -> Result<()> {
    match more {
        true => Ok(()),
        false => Err(CliError::usage("enough cells were looked at")),
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

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo::format::schema::Attribute;
    use azulejo::format::{CellValNum, Datatype};

    #[test]
    fn nothing_is_chosen_where_all_filters_are_named() {
        let text = Attribute::new("s", Datatype::StringUtf8, CellValNum::Var);
        let dense = ArraySchema::dense()
            .dimension("x", 0i32..=9, 4)
            .attribute("a", Datatype::Int8)
            .attribute_with(text)
            .build()
            .unwrap();
        let chooses = |names: &[&str]| chooses_any(&dense.schema, &|name| names.contains(&name));
        assert!(!chooses(&["a", "s", "@offsets"]));
        for names in [&["a", "s"][..], &["a", "@offsets"], &["x"]] {
            assert!(chooses(names), "{names:?}");
        }
    }
}
