//! The second look: values into columns, columns into the array.
//!
//! Sparse cells are gathered up to a quarter of the memory budget, then sorted and written as one
//! fragment, so that a file larger than memory becomes several fragments. Dense cells in the
//! array's own order are written in slabs of whole tiles. Dense cells that come with coordinates in
//! any order are brought into place slab by slab, for which a file whose array is larger than the
//! budget is read once per slab.

use super::batch::Batch;
use super::duplicates::{self, LeftOut};
use super::grid::Grid;
use super::plan::{Plan, Shape};
use super::source::Source;
use super::table_file::integer;
use super::target::Target;
use crate::args::OnDuplicate;
use crate::error::{CliError, Result};
use crate::session::Session;
use azulejo::column::{ColumnBuilder, ColumnSet};
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::range::compare;
use azulejo::format::schema::{ArraySchema, FieldIndex};
use azulejo::format::{Datatype, NdRectangle};
use azulejo::write::{WriteLayout, WriteOptions};
use azulejo::{Array, ColumnBuffers};

/// A file is read no more often than this.
const MOST_SLABS: i128 = 10_000;

/// Writes the cells of a file.
#[derive(Debug)]
pub struct Loader<'a> {
    /// Settings, threads, progress.
    pub session: &'a Session,
    /// The file.
    pub source: &'a Source<'a>,
    /// Its size.
    pub size: u64,
    /// The time of the write.
    pub at: Option<u64>,
    /// Whether other cells may be there already: then boxes must be full, so that none is
    /// overwritten by nothing.
    pub append: bool,
    /// What becomes of rows with the same coordinates, where the array keeps one cell for each.
    pub on_duplicate: Option<OnDuplicate>,
}

impl Loader<'_> {
    /// Writes all cells; the number of them. The names of the fragments written so far are in
    /// `written`, whether it succeeds or not.
    pub fn load(&self, array: &Array, plan: &Plan, written: &mut Vec<String>) -> Result<u64> {
        let options = match self.at {
            Some(at) => WriteOptions::new().timestamp(at),
            None => WriteOptions::new(),
        };
        if plan.rows == 0 {
            return Ok(0);
        }
        match &plan.shape {
            Shape::Sparse => self.sparse(array, plan, &options, written),
            Shape::Grid {
                bounds,
                columns_first,
            } => {
                let grid = Grid::new(array.schema(), bounds, *columns_first);
                let layout = if *columns_first {
                    WriteLayout::Col
                } else {
                    WriteLayout::Row
                };
                self.grid(array, plan, &grid, &options.layout(layout), written)
            }
            Shape::Coordinates(bounds) => {
                let grid = Grid::new(array.schema(), bounds, false);
                self.coordinates(
                    array,
                    plan,
                    &grid,
                    &options.layout(WriteLayout::Row),
                    written,
                )
            }
        }
    }

    fn share(&self) -> u64 {
        (self.session.context.config().memory_budget / 4).max(1)
    }

    fn sparse(
        &self,
        array: &Array,
        plan: &Plan,
        options: &WriteOptions,
        written: &mut Vec<String>,
    ) -> Result<u64> {
        let (mut batch, mut cells, share) = (Batch::default(), 0, self.share());
        let left_out = match (array.schema().allows_dups, self.on_duplicate) {
            (false, wish) => duplicates::find(self.session, self.source, self.size, plan, wish)?,
            (true, Some(_)) => {
                return Err(CliError::usage(
                    "--on-duplicate: the array keeps all cells with the same coordinates",
                ));
            }
            (true, None) => LeftOut::default(),
        };
        if left_out.len() > 0 {
            self.session.output.note(&format!(
                "{} rows are left out, of which there are others with the same coordinates",
                crate::size::count(left_out.len())
            ));
        }
        let mut write = |batch: &mut Batch| -> Result<()> {
            let set = batch.take_all()?;
            cells += set.cell_num as u64;
            let mut writer = array.writer(options.clone())?;
            writer.write(&set)?;
            written.extend(writer.finish()?);
            Ok(())
        };
        self.source
            .read(self.session, &plan.targets, self.size, &mut |first, set| {
                if left_out.len() == 0 {
                    batch.push(set);
                } else {
                    for rows in left_out.kept(first, set.cell_num) {
                        batch.push(set.slice(rows));
                    }
                }
                if batch.bytes >= share {
                    write(&mut batch)
                } else {
                    Ok(())
                }
            })?;
        if batch.cells > 0 {
            write(&mut batch)?;
        }
        Ok(cells)
    }

    fn grid(
        &self,
        array: &Array,
        plan: &Plan,
        grid: &Grid,
        options: &WriteOptions,
        written: &mut Vec<String>,
    ) -> Result<u64> {
        let targets: Vec<Target> = plan
            .targets
            .iter()
            .filter(|t| !t.is_dimension)
            .cloned()
            .collect();
        let step = grid.step_cells().filter(|&cells| cells > 0);
        let step =
            step.ok_or_else(|| CliError::usage("the array has more cells than can be counted"))?;
        let (mut batch, mut done, share) = (Batch::default(), 0i128, self.share());
        let mut write = |batch: &mut Batch, done: &mut i128, steps: i128| -> Result<()> {
            let cells = u64::try_from(steps)
                .unwrap_or(u64::MAX)
                .saturating_mul(step);
            let set = batch.take(cells)?;
            let mut writer = array.writer(options.clone())?;
            writer.write_box(&grid.slab(*done, steps), &set)?;
            written.extend(writer.finish()?);
            *done += steps;
            Ok(())
        };
        self.source
            .read(self.session, &targets, self.size, &mut |_, set| {
                batch.push(set);
                if batch.bytes < share {
                    return Ok(());
                }
                let steps = i128::from(batch.cells / step);
                let whole = grid.whole_tiles(done, steps);
                // A row of tiles that does not fit is cut rather than waited for.
                let steps = if whole > 0 || batch.bytes < 2 * share {
                    whole
                } else {
                    steps
                };
                if steps > 0 {
                    write(&mut batch, &mut done, steps)
                } else {
                    Ok(())
                }
            })?;
        let left = i128::from(batch.cells / step);
        if left > 0 {
            write(&mut batch, &mut done, left)?;
        }
        if done != grid.len() || batch.cells > 0 {
            return Err(CliError::Format(
                "the file changed while it was read".into(),
            ));
        }
        Ok(u64::try_from(done).unwrap_or(u64::MAX).saturating_mul(step))
    }

    fn coordinates(
        &self,
        array: &Array,
        plan: &Plan,
        grid: &Grid,
        options: &WriteOptions,
        written: &mut Vec<String>,
    ) -> Result<u64> {
        let schema = array.schema();
        let cell_bytes = slab_bytes_per_cell(schema);
        let too_many = || {
            CliError::usage(
                "the array has more cells than can be counted; --sparse keeps only the rows",
            )
        };
        let step = grid
            .step_cells()
            .filter(|&cells| cells > 0)
            .ok_or_else(too_many)?;
        let most = i128::from((self.share() / cell_bytes / step).max(1));
        if grid.len() / most > MOST_SLABS {
            return Err(CliError::usage(format!(
                "a dense array of this box would have {} cells for {} rows; --sparse keeps only the rows",
                grid.cells()
                    .map_or("uncountable".to_owned(), crate::size::count),
                crate::size::count(plan.rows)
            )));
        }
        let (mut done, mut cells) = (0, 0);
        while done < grid.len() {
            let steps = match grid.whole_tiles(done, most) {
                0 => most.min(grid.len() - done),
                whole => whole,
            };
            let mut slab = Slab::new(grid, done, steps, plan);
            self.source
                .read(self.session, &plan.targets, self.size, &mut |row, set| {
                    slab.take(row, &set)
                })?;
            let wish = self.on_duplicate.unwrap_or(OnDuplicate::Error);
            let same =
                |first, second| duplicates::same_place(self.session, self.source, first, second);
            cells += slab.rows();
            let set = slab.finish(schema, step, self.append, (wish, &same))?;
            if let Some(set) = set {
                let mut writer = array.writer(options.clone())?;
                writer.write_box(&grid.slab(done, steps), &set)?;
                written.extend(writer.finish()?);
            }
            done += steps;
        }
        Ok(cells)
    }
}

/// About how many bytes a cell of a slab takes, its place included.
fn slab_bytes_per_cell(schema: &ArraySchema) -> u64 {
    let attribute = |a: &azulejo::format::schema::Attribute| a.cell_size().unwrap_or(32) as u64 + 8;
    16 + 2 * schema.attributes.iter().map(attribute).sum::<u64>()
}

/// The cells of a slab of a dense array, as they come.
struct Slab<'a> {
    grid: &'a Grid,
    done: i128,
    steps: i128,
    dims: Vec<usize>,
    attributes: Vec<usize>,
    datatypes: Vec<Datatype>,
    columns: Vec<ColumnBuilder>,
    /// Position in the slab and row of the file of each cell taken.
    places: Vec<(u64, u64)>,
}

impl<'a> Slab<'a> {
    fn new(grid: &'a Grid, done: i128, steps: i128, plan: &Plan) -> Self {
        let which = |dimension: bool| {
            let found = plan
                .targets
                .iter()
                .enumerate()
                .filter(move |(_, t)| t.is_dimension == dimension);
            found.map(|(at, _)| at).collect::<Vec<_>>()
        };
        let attributes = which(false);
        // The dimensions in the order of the domain.
        let mut dims = which(true);
        dims.sort_by_key(|&at| {
            plan.array
                .schema
                .domain
                .index_of(&plan.targets[at].column.name)
        });
        let columns = attributes
            .iter()
            .map(|&at| ColumnBuilder::new(plan.targets[at].column.clone()))
            .collect();
        let datatypes = dims
            .iter()
            .map(|&at| plan.targets[at].column.datatype)
            .collect();
        Self {
            grid,
            done,
            steps,
            dims,
            attributes,
            datatypes,
            columns,
            places: Vec::new(),
        }
    }

    fn rows(&self) -> u64 {
        self.places.len() as u64
    }

    fn take(&mut self, first_row: u64, set: &ColumnSet) -> Result<()> {
        let coordinates: Vec<Vec<i128>> = (self.dims.iter().zip(&self.datatypes))
            .map(|(&at, datatype)| dispatch!(datatype.physical(), T => integers::<T>(&set.columns[at])))
            .collect();
        let mut cell = vec![0; coordinates.len()];
        let mut run: Option<std::ops::Range<usize>> = None;
        for row in 0..set.cell_num {
            for (to, from) in cell.iter_mut().zip(&coordinates) {
                *to = from[row];
            }
            let position = self.grid.position(self.done, self.steps, &cell);
            if let Some(position) = position {
                self.places.push((position, first_row + row as u64));
            }
            match (&mut run, position) {
                (Some(run), Some(_)) => run.end = row + 1,
                (None, Some(_)) => run = Some(row..row + 1),
                (Some(_), None) => self.append(set, run.take())?,
                (None, None) => {}
            }
        }
        self.append(set, run)
    }

    fn append(&mut self, set: &ColumnSet, rows: Option<std::ops::Range<usize>>) -> Result<()> {
        let Some(rows) = rows else { return Ok(()) };
        for (column, &at) in self.columns.iter_mut().zip(&self.attributes) {
            column.append_view(&set.columns[at].view(), rows.clone())?;
        }
        Ok(())
    }

    /// The cells of the slab in row-major order, unwritten ones with their fill values; `None` if
    /// it has no rows.
    fn finish(
        self,
        schema: &ArraySchema,
        step: u64,
        full: bool,
        (wish, same): (OnDuplicate, &dyn Fn(u64, u64) -> CliError),
    ) -> Result<Option<ColumnSet>> {
        let cells = u64::try_from(self.steps)
            .unwrap_or(u64::MAX)
            .saturating_mul(step);
        if self.places.is_empty() {
            return Ok(None);
        }
        let cell_num =
            usize::try_from(cells).map_err(|_| CliError::usage("a slab has too many cells"))?;
        // For each cell the row that fills it, from 1.
        let mut rows = vec![0u32; cell_num];
        for (at, (position, row)) in self.places.iter().enumerate() {
            let slot = &mut rows[*position as usize];
            match wish {
                _ if *slot == 0 => {}
                OnDuplicate::First => continue,
                OnDuplicate::Last => {}
                OnDuplicate::Error => {
                    return Err(same(self.places[*slot as usize - 1].1, *row));
                }
            }
            *slot =
                u32::try_from(at + 1).map_err(|_| CliError::usage("a slab has too many rows"))?;
        }
        if full && let Some(missing) = rows.iter().position(|&row| row == 0) {
            return Err(CliError::Format(format!(
                "the rows do not fill their box of the array (cell {missing} of it is missing), and what is there already would \
                 be overwritten by fill values"
            )));
        }
        let columns: Vec<ColumnBuffers> = self
            .columns
            .into_iter()
            .map(ColumnBuilder::finish)
            .collect();
        let columns = columns.iter().map(|column| {
            let name = &column.column_type.name;
            let attribute = schema.field(name).and_then(|field| match field {
                FieldIndex::Attribute(at) => schema.attribute(at),
                FieldIndex::Dimension(_) => None,
            });
            let (fill, valid) = attribute.map_or((&[][..], true), |a| {
                (&a.fill_value[..], a.fill_validity || !a.nullable)
            });
            let view = column.view();
            let mut builder = ColumnBuilder::with_capacity(
                column.column_type.clone(),
                cell_num,
                column.data.len(),
            );
            for &row in &rows {
                match (row as usize).checked_sub(1) {
                    Some(row) => builder.append_cell(view.cell(row), view.is_valid(row)),
                    None => builder.append_cell(fill, valid),
                }
            }
            builder.finish()
        });
        Ok(Some(ColumnSet {
            cell_num,
            columns: columns.collect(),
        }))
    }
}

fn integers<T: Native>(column: &ColumnBuffers) -> Vec<i128> {
    column
        .data
        .chunks_exact(T::SIZE)
        .map(|bytes| integer(T::read(bytes)))
        .collect()
}

/// The box that the coordinates of a file span; `None` without rows. Text counts from the least to
/// the greatest.
pub fn data_box(
    session: &Session,
    source: &Source<'_>,
    size: u64,
    schema: &ArraySchema,
    targets: &[Target],
) -> Result<Option<NdRectangle>> {
    let mut dims: Vec<Target> = targets.iter().filter(|t| t.is_dimension).cloned().collect();
    dims.sort_by_key(|target| schema.domain.index_of(&target.column.name));
    let mut bounds: Vec<Option<(Vec<u8>, Vec<u8>)>> = vec![None; dims.len()];
    source.read(session, &dims, size, &mut |_, set| {
        for (bounds, column) in bounds.iter_mut().zip(&set.columns) {
            let datatype = column.column_type.datatype;
            for cell in column.cells().flatten() {
                let (low, high) = bounds.get_or_insert_with(|| (cell.to_vec(), cell.to_vec()));
                if compare(datatype, cell, low).is_lt() {
                    cell.clone_into(low);
                } else if compare(datatype, cell, high).is_gt() {
                    cell.clone_into(high);
                }
            }
        }
        Ok(())
    })?;
    let ranges: Option<Vec<_>> = bounds.into_iter().collect();
    Ok(ranges.map(|ranges| NdRectangle {
        ranges: ranges
            .into_iter()
            .map(|(low, high)| azulejo::format::Range::new(low, high))
            .collect(),
    }))
}
