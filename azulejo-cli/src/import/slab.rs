//! A slab of a dense array, whose rows come in any order.

use super::boxes;
use super::grid::Grid;
use super::plan::Plan;
use crate::args::OnDuplicate;
use crate::error::{CliError, Result};
use crate::value::integer;
use azulejo::ColumnBuffers;
use azulejo::column::{ColumnBuilder, ColumnSet};
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::schema::{ArraySchema, FieldIndex};
use azulejo::format::{Datatype, NdRectangle};

/// As many boxes of a slab are written each for itself, at most.
const MOST_PARTS: usize = 16;

/// What becomes of cells without a row, where those with one lie in more boxes than are written one
/// by one.
#[derive(Debug, Clone)]
pub enum Gaps {
    /// They get the fill value, and count as data from then on.
    Fill,
    /// Nothing is imported, for this reason.
    Refuse(String),
}

/// What a slab becomes.
#[derive(Debug)]
pub struct Boxes {
    /// Boxes and their cells.
    pub boxes: Vec<(NdRectangle, ColumnSet)>,
    /// How many of these cells have a row.
    pub rows: u64,
    /// How many have none, but fill values.
    pub filled: u64,
}

/// What becomes of rows with the same coordinates, and the error where there must be none.
pub type OfSame<'s> = (OnDuplicate, &'s dyn Fn(u64, u64) -> CliError);

/// Rows that are held beside as many as there are cells before those are let go that others have
/// taken the place of.
const SPARE_ROWS: usize = 1 << 16;

/// The cells of a slab of a dense array, as they come.
pub struct Slab<'a> {
    grid: &'a Grid,
    done: i128,
    steps: i128,
    dims: Vec<usize>,
    attributes: Vec<usize>,
    datatypes: Vec<Datatype>,
    columns: Vec<ColumnBuilder>,
    /// Position in the slab and row of the file of each cell taken.
    places: Vec<(u64, u64)>,
    /// Rows that were taken and let go again.
    let_go: u64,
}

impl<'a> Slab<'a> {
    /// An empty slab of `steps` steps along the grid's slow axis from `done` on.
    pub fn new(grid: &'a Grid, done: i128, steps: i128, plan: &Plan) -> Self {
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
            let_go: 0,
        }
    }

    /// The number of rows taken.
    pub fn rows(&self) -> u64 {
        self.places.len() as u64 + self.let_go
    }

    /// Takes the rows that lie in it; the first of them is row `first_row` of the file.
    pub fn take(&mut self, first_row: u64, set: &ColumnSet, of_same: OfSame<'_>) -> Result<()> {
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
        self.append(set, run)?;
        let most = self.cells()?.saturating_mul(2).saturating_add(SPARE_ROWS);
        match self.places.len() > most {
            true => self.let_go(of_same),
            false => Ok(()),
        }
    }

    /// The number of its cells.
    fn cells(&self) -> Result<usize> {
        let sides = self.grid.sides(self.steps);
        let cells = sides.and_then(|sides| {
            let mut sides = sides.iter();
            sides.try_fold(1usize, |n, side| n.checked_mul(*side))
        });
        cells.ok_or_else(|| CliError::usage("a slab has too many cells"))
    }

    /// Lets go of the rows that others have taken the place of: a file may have any number of them.
    fn let_go(&mut self, of_same: OfSame<'_>) -> Result<()> {
        let mut kept = self.filling(self.cells()?, of_same)?;
        kept.retain(|row| *row != 0);
        kept.sort_unstable();
        let kept: Vec<usize> = kept.iter().map(|row| *row as usize - 1).collect();
        self.let_go += (self.places.len() - kept.len()) as u64;
        self.places = kept.iter().map(|&row| self.places[row]).collect();
        let columns = std::mem::take(&mut self.columns).into_iter();
        let fewer = columns.map(|column| {
            let all = column.finish();
            let view = all.view();
            let mut fewer = ColumnBuilder::with_capacity(all.column_type.clone(), kept.len(), 0);
            for &row in &kept {
                fewer.append_cell(view.cell(row), view.is_valid(row));
            }
            fewer
        });
        self.columns = fewer.collect();
        Ok(())
    }

    fn append(&mut self, set: &ColumnSet, rows: Option<std::ops::Range<usize>>) -> Result<()> {
        let Some(rows) = rows else { return Ok(()) };
        for (column, &at) in self.columns.iter_mut().zip(&self.attributes) {
            column.append_view(&set.columns[at].view(), rows.clone())?;
        }
        Ok(())
    }

    /// The row that fills each cell of the slab in row-major order, counted from 1 in the order in
    /// which they were taken; 0 where there is none.
    fn filling(&self, cells: usize, (wish, same): OfSame<'_>) -> Result<Vec<u32>> {
        let mut rows = vec![0u32; cells];
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
        Ok(rows)
    }

    /// The boxes that its rows fill, or all of it where they are many.
    pub fn finish(self, schema: &ArraySchema, gaps: &Gaps, of_same: OfSame<'_>) -> Result<Boxes> {
        let mut boxes = Boxes {
            boxes: Vec::new(),
            rows: 0,
            filled: 0,
        };
        if self.places.is_empty() {
            return Ok(boxes);
        }
        let rows = self.filling(self.cells()?, of_same)?;
        boxes.rows = rows.iter().filter(|row| **row != 0).count() as u64;
        let sides = self.grid.sides(self.steps).unwrap_or_default();
        let parts = boxes::parts(&rows, &sides, MOST_PARTS);
        let columns: Vec<ColumnBuffers> = self
            .columns
            .into_iter()
            .map(ColumnBuilder::finish)
            .collect();
        match (parts, gaps) {
            (Some(parts), _) => {
                for part in parts {
                    let places = boxes::places(&part, &sides);
                    let rows: Vec<u32> = places.iter().map(|&place| rows[place]).collect();
                    let bounds = self.grid.part(self.done, &part);
                    let cells = cells_of(&rows, &columns, schema);
                    boxes.boxes.push((bounds, cells));
                }
            }
            (None, Gaps::Refuse(why)) => return Err(CliError::usage(why.clone())),
            (None, Gaps::Fill) => {
                boxes.filled = rows.len() as u64 - boxes.rows;
                let bounds = self.grid.slab(self.done, self.steps);
                let cells = cells_of(&rows, &columns, schema);
                boxes.boxes.push((bounds, cells));
            }
        }
        Ok(boxes)
    }
}

/// The rows with these numbers, counted from 1; fill values for 0.
fn cells_of(rows: &[u32], columns: &[ColumnBuffers], schema: &ArraySchema) -> ColumnSet {
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
        let mut builder =
            ColumnBuilder::with_capacity(column.column_type.clone(), rows.len(), column.data.len());
        for &row in rows {
            match (row as usize).checked_sub(1) {
                Some(row) => builder.append_cell(view.cell(row), view.is_valid(row)),
                None => builder.append_cell(fill, valid),
            }
        }
        builder.finish()
    });
    ColumnSet {
        cell_num: rows.len(),
        columns: columns.collect(),
    }
}

fn integers<T: Native>(column: &ColumnBuffers) -> Vec<i128> {
    column
        .data
        .chunks_exact(T::SIZE)
        .map(|bytes| integer(T::read(bytes)))
        .collect()
}
