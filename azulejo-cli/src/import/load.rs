//! The second look: values into columns, columns into the array.
//!
//! Sparse cells are gathered up to a quarter of the memory budget, then sorted and written as one
//! fragment, so that a file larger than memory becomes several fragments. Dense cells in the
//! array's own order are written in slabs of whole tiles. Dense cells that come with coordinates in
//! any order are brought into place slab by slab, for which a file whose array is larger than the
//! budget is read once per slab; what has no rows there stays unwritten, where it can.

use super::batch::Batch;
use super::duplicates::{self, File, LeftOut};
use super::grid::Grid;
use super::options_at;
use super::plan::{Plan, Shape};
use super::slab::{Gaps, Slab};
use super::source::Source;
use super::target::Target;
use crate::args::OnDuplicate;
use crate::error::{CliError, Result};
use crate::session::Session;
use azulejo::Array;
use azulejo::format::NdRectangle;
use azulejo::format::range::compare;
use azulejo::format::schema::ArraySchema;
use azulejo::write::{WriteLayout, WriteOptions};

/// A file is read no more often than this.
const MOST_SLABS: i128 = 10_000;

/// What was loaded.
#[derive(Debug, Clone, Copy, Default)]
pub struct Loaded {
    /// Rows that became cells.
    pub cells: u64,
    /// Cells of a dense array without a row that were written all the same, with fill values.
    pub filled: u64,
}

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
    /// Whether other cells may be there already, which are not to be overwritten by nothing.
    pub append: bool,
    /// Whether cells of a dense array that have no row may get fill values, however many they are.
    pub fill: bool,
    /// What becomes of rows with the same coordinates, where the array keeps one cell for each.
    pub on_duplicate: Option<OnDuplicate>,
    /// The rows that are left out of a sparse array, where they are known already.
    pub left_out: Option<LeftOut>,
    /// Whether the fragments wait for the caller to commit them.
    pub waits: bool,
}

impl Loader<'_> {
    /// Writes all cells. The names of the fragments written so far are in `written`, whether it
    /// succeeds or not.
    pub fn load(&self, array: &Array, plan: &Plan, written: &mut Vec<String>) -> Result<Loaded> {
        let options = match self.waits {
            true => options_at(self.at).uncommitted(),
            false => options_at(self.at),
        };
        if plan.rows == 0 {
            return Ok(Loaded::default());
        }
        let all = |cells| Loaded { cells, filled: 0 };
        match &plan.shape {
            Shape::Sparse => self.sparse(array, plan, &options, written).map(all),
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
                let cells = self.grid(array, plan, &grid, &options.layout(layout), written);
                cells.map(all)
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

    fn note_left_out(&self, rows: u64) {
        if rows > 0 {
            self.session.output.note(&format!(
                "{} rows are left out, of which there are others with the same coordinates",
                crate::size::count(rows)
            ));
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
            (false, wish) => match &self.left_out {
                Some(left_out) => left_out.clone(),
                None => {
                    let file = File::new("", self.source, self.size, &plan.targets);
                    let found = duplicates::find(self.session, &[file], plan.rows, wish)?;
                    found.into_iter().next().unwrap_or_default()
                }
            },
            (true, Some(_)) => {
                return Err(CliError::usage(
                    "--on-duplicate: the array keeps all cells with the same coordinates",
                ));
            }
            (true, None) => LeftOut::default(),
        };
        self.note_left_out(left_out.len());
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
    ) -> Result<Loaded> {
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
        let gaps = self.gaps(plan, grid);
        let wish = self.on_duplicate.unwrap_or(OnDuplicate::Error);
        let row = |row| self.source.row_text(self.session, row);
        let same = |first, second| duplicates::same_place(&row(first), &row(second));
        let (mut done, mut loaded, mut rows) = (0, Loaded::default(), 0);
        let mut placed = 0;
        while done < grid.len() {
            let steps = match grid.whole_tiles(done, most) {
                0 => most.min(grid.len() - done),
                whole => whole,
            };
            let mut slab = Slab::new(grid, done, steps, plan);
            self.source
                .read(self.session, &plan.targets, self.size, &mut |row, set| {
                    rows = rows.max(row + set.cell_num as u64);
                    slab.take(row, &set, (wish, &same))
                })?;
            placed += slab.rows();
            let boxes = slab.finish(schema, &gaps, (wish, &same))?;
            loaded.cells += boxes.rows;
            loaded.filled += boxes.filled;
            for (bounds, set) in &boxes.boxes {
                let mut writer = array.writer(options.clone())?;
                writer.write_box(bounds, set)?;
                written.extend(writer.finish()?);
            }
            done += steps;
        }
        // Each row lies in one slab: the box is that of all rows.
        if placed != rows {
            return Err(CliError::Format(format!(
                "{} of the {} rows found no place in the box that the first look gave: did the file change?",
                crate::size::count(rows.saturating_sub(placed)),
                crate::size::count(rows)
            )));
        }
        self.note_left_out(placed - loaded.cells);
        Ok(loaded)
    }

    /// What becomes of cells without a row, where they are not left unwritten.
    fn gaps(&self, plan: &Plan, grid: &Grid) -> Gaps {
        let cells = grid.cells().unwrap_or(u64::MAX);
        let gaps = cells.saturating_sub(plan.rows);
        if self.fill || (!self.append && gaps <= plan.rows) {
            return Gaps::Fill;
        }
        let count = match gaps {
            // There are several rows for a cell.
            0 => "some".to_owned(),
            gaps => crate::size::count(gaps),
        };
        let then = match self.append {
            true => "they would be written over by fill values; --fill allows it",
            false => "--sparse keeps only the rows, --fill stores fill values, which count as data",
        };
        Gaps::Refuse(format!(
            "the rows do not fill their box: {count} of its {} cells have none; {then}",
            crate::size::count(cells)
        ))
    }
}

/// About how many bytes a cell of a slab takes, its place included.
fn slab_bytes_per_cell(schema: &ArraySchema) -> u64 {
    let attribute = |a: &azulejo::format::schema::Attribute| a.cell_size().unwrap_or(32) as u64 + 8;
    16 + 2 * schema.attributes.iter().map(attribute).sum::<u64>()
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
