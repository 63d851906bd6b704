//! From an array's cells to a picture: which of them, where, in which colours.

mod bins;
mod sides;

pub use sides::{Sides, sides};

use crate::args::{OrderArg, PictureArgs, ScaleArg, SelectionArgs, Span};
use crate::cells::each_batch;
use crate::columns::Columns;
use crate::error::{CliError, Result};
use crate::output::canvas::Canvas;
use crate::output::colour_map::ColourMap;
use crate::output::picture::{Colour, Missing, Sample, Scale, each_value};
use crate::output::raster::Raster;
use crate::selection::{Coordinates, Selection, names_of, select};
use crate::session::Session;
use azulejo::format::schema::{FieldIndex, shown_names};
use azulejo::{Array, ColumnBuffers, ColumnSet};
use bins::Bins;

/// What a picture is made of.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The array.
    pub array: &'a Array,
    /// Which of its cells.
    pub cells: &'a SelectionArgs,
    /// What it looks like.
    pub look: &'a PictureArgs,
}

/// One attribute of a box of a dense array: a cell a place.
#[derive(Debug)]
pub struct Plane {
    /// What to read.
    pub selection: Selection,
    /// Rows and columns.
    pub sides: Sides,
    /// How cells become pixels.
    pub colour: Colour,
    /// Cells that show nothing.
    pub missing: Missing,
}

impl Subject<'_> {
    /// Whether the cells fill a box.
    pub fn is_plane(&self) -> bool {
        self.array.schema().is_dense() && self.cells.cells.condition.is_none()
    }

    fn mapped(&self, colour: Colour) -> Colour {
        match (colour, self.look.colours) {
            (Colour::Grey, Some(map)) if map != ColourMap::Grey => Colour::Mapped(map),
            (colour, _) => colour,
        }
    }

    fn refuse_limits(&self) -> Result<()> {
        let cells = self.cells;
        if cells.limit.is_some() || cells.cells.points.is_some() {
            return Err(CliError::usage("a picture has no --limit or --points"));
        }
        if cells.order.is_some() {
            return Err(CliError::usage(
                "a picture has no --order: the first dimension goes down and the second across, or as --dims says",
            ));
        }
        Ok(())
    }

    /// The attribute to show: the one named, or the only one.
    fn attribute(&self) -> Result<Option<String>> {
        let schema = self.array.schema();
        let attributes: Vec<&str> = schema.attributes.iter().map(|a| a.name.as_str()).collect();
        let shown = shown_names(attributes.iter().copied());
        let named = self.cells.attrs.as_deref();
        let named = named.map(|parts| names_of(schema, parts));
        match (named.as_deref(), &attributes[..]) {
            (Some([name]), _) => match schema.field(name) {
                Some(FieldIndex::Attribute(_)) => Ok(Some(name.clone())),
                _ => Err(CliError::usage(format!(
                    "there is no attribute {name:?}; there are {shown}"
                ))),
            },
            (None, _) if !schema.is_dense() => Ok(None),
            (None, [only]) => Ok(Some((*only).to_owned())),
            _ => Err(CliError::usage(format!(
                "a picture takes one attribute; choose it with --attrs: {shown}"
            ))),
        }
    }

    fn missing(&self, name: &str) -> Missing {
        Missing {
            fill: fill_value(self.array, name),
            masks: self.look.mask.clone(),
        }
    }

    /// The box that is shown of a dense array.
    pub fn plane(&self) -> Result<Plane> {
        self.refuse_limits()?;
        let name = self.attribute()?.unwrap_or_default();
        let cells = SelectionArgs {
            attrs: Some(vec![name.clone()]),
            ..self.cells.clone()
        };
        let selection = select(self.array, &cells, Coordinates::Never)?;
        let shape = selection
            .shape
            .as_deref()
            .filter(|_| selection.options.is_some());
        let shape = shape.ok_or_else(|| {
            CliError::usage("nothing is written there; give a --range to see fill values")
        })?;
        let sides = sides(
            &self.array.schema().domain,
            shape,
            self.look.dims.as_deref(),
        )?;
        let types = Columns::new(self.array, &selection.fields, true)?;
        let colour = self.mapped(Colour::of(&types.types()[0])?);
        let missing = self.missing(&name);
        Ok(Plane {
            selection,
            sides,
            colour,
            missing,
        })
    }

    /// The scale of a plane, for which its cells are read unless it is given.
    pub fn scale_of(&self, session: &Session, plane: &Plane) -> Result<Scale> {
        let wanted = self.look.scale;
        if !matches!(plane.colour, Colour::Grey | Colour::Mapped(_)) {
            return Ok(Scale::EMPTY);
        }
        scale(wanted, |take| {
            let progress = session.progress(plane.selection.cell_num());
            each_batch(self.array, &plane.selection, &progress, |set| {
                each_value(&only_column(set)?, &plane.missing, |value| {
                    value.into_iter().for_each(&mut *take);
                });
                Ok(())
            })?;
            Ok(())
        })
    }

    /// The picture in memory, no larger than `most` pixels across and down; and the number of cells
    /// in it.
    pub fn canvas(&self, session: &Session, most: Option<(usize, usize)>) -> Result<(Canvas, u64)> {
        let most = match (most, self.look.size) {
            (Some(most), Some(size)) => Some((most.0.min(size.0), most.1.min(size.1))),
            (most, size) => most.or(size),
        };
        let (raster, colour, log, cells) = match self.is_plane() {
            true => {
                let plane = self.plane()?;
                let (raster, cells) = self.raster_of_plane(session, &plane, most)?;
                (raster, plane.colour, false, cells)
            }
            false => self.raster_of_cells(session, most)?,
        };
        let mut wanted = self.look.scale;
        if wanted.is_none() && log {
            wanted = Some(ScaleArg {
                span: Span::All,
                log,
            });
        }
        let scale = match colour {
            Colour::Rgb | Colour::Rgba => Scale::EMPTY,
            Colour::Grey | Colour::Mapped(_) => scale(wanted, |take| {
                raster.values().into_iter().for_each(take);
                Ok(())
            })?,
        };
        let mut canvas = raster.canvas(colour, scale);
        if self.look.up {
            canvas = canvas.turned_up();
        }
        if self.look.bar {
            let map = match colour {
                Colour::Grey => ColourMap::Grey,
                Colour::Mapped(map) => map,
                Colour::Rgb | Colour::Rgba => {
                    return Err(CliError::usage(
                        "--bar: cells that are colours have no scale",
                    ));
                }
            };
            canvas = canvas.with_bar(map, scale);
        }
        Ok((canvas, cells))
    }

    fn raster_of_plane(
        &self,
        session: &Session,
        plane: &Plane,
        most: Option<(usize, usize)>,
    ) -> Result<(Raster, u64)> {
        let Sides {
            rows,
            columns,
            turned,
        } = plane.sides;
        let (height, width) = fitting(rows, columns, most);
        let channels = match plane.colour {
            Colour::Rgb => 3,
            Colour::Rgba => 4,
            Colour::Grey | Colour::Mapped(_) => 1,
        };
        let mut raster = new_raster(session, (height, width), channels)?;
        let mut at = 0u64;
        let progress = session.progress(plane.selection.cell_num());
        let cells = each_batch(self.array, &plane.selection, &progress, |set| {
            let column = only_column(set)?;
            let mut place = || {
                let (row, across) = match turned {
                    false => (at / columns.max(1), at % columns.max(1)),
                    true => (at % rows.max(1), at / rows.max(1)),
                };
                at += 1;
                let scaled = |at: u64, of: u64, to: u64| {
                    (u128::from(at) * u128::from(to) / u128::from(of.max(1))) as usize
                };
                (scaled(row, rows, height), scaled(across, columns, width))
            };
            if channels > 1 {
                let validity = column.validity.as_deref();
                for (cell, bytes) in column.data.chunks_exact(channels).enumerate() {
                    let (row, across) = place();
                    if validity.is_none_or(|v| v.get(cell).is_some_and(|&b| b != 0)) {
                        let values: Vec<f64> = bytes.iter().map(|&b| f64::from(b)).collect();
                        raster.add(row, across, &values);
                    }
                }
                return Ok(());
            }
            each_value(&column, &plane.missing, |value| {
                let (row, across) = place();
                if let Some(value) = value {
                    raster.add(row, across, &[value]);
                }
            });
            Ok(())
        })?;
        Ok((raster, cells))
    }

    /// Cells at any places: of a sparse array, or of a dense one that meet a condition. Without an
    /// attribute what is shown is how many there are, on a logarithmic scale.
    fn raster_of_cells(
        &self,
        session: &Session,
        most: Option<(usize, usize)>,
    ) -> Result<(Raster, Colour, bool, u64)> {
        self.refuse_limits()?;
        let domain = &self.array.schema().domain;
        let dims = sides::two(domain, self.look.dims.as_deref())?;
        let attribute = self.attribute()?;
        let mut fields: Vec<String> = dims
            .iter()
            .map(|&at| domain.dimensions[at].name.clone())
            .collect();
        let selection = |fields: &[String]| -> Result<Selection> {
            let cells = SelectionArgs {
                attrs: Some(fields.to_vec()),
                order: match self.array.schema().is_dense() {
                    true => Some(OrderArg::Row),
                    false => Some(OrderArg::Unordered),
                },
                ..self.cells.clone()
            };
            let mut selection = select(self.array, &cells, Coordinates::Never)?;
            if self.array.schema().is_dense() {
                selection.options = selection
                    .options
                    .map(azulejo::read::ReadOptions::matching_only);
            }
            Ok(selection)
        };
        let coordinates = selection(&fields)?;
        let mut bins: Vec<Bins> = dims
            .iter()
            .map(|&at| Bins::new(&domain.dimensions[at]))
            .collect::<Result<_>>()?;
        let progress = session.progress(coordinates.cell_num());
        each_batch(self.array, &coordinates, &progress, |set| {
            for (bins, column) in bins.iter_mut().zip(&set.columns) {
                bins.widen(column);
            }
            Ok(())
        })?;
        let sizes = bins::sizes(&bins, most)?;
        for (bins, size) in bins.iter_mut().zip([sizes.0, sizes.1]) {
            bins.cut(size);
        }
        let mut colour = Colour::Grey;
        let mut missing = Missing::default();
        if let Some(name) = &attribute {
            let types = Columns::new(self.array, std::slice::from_ref(name), true)?;
            colour = Colour::of(&types.types()[0])?;
            if !matches!(colour, Colour::Grey) {
                return Err(CliError::usage(format!(
                    "{name:?}: cells that are colours make a picture of a box of a dense array only, without --where"
                )));
            }
            missing.masks.clone_from(&self.look.mask);
            fields.push(name.clone());
        }
        let read = selection(&fields)?;
        let mut raster = new_raster(session, (sizes.0 as u64, sizes.1 as u64), 1)?;
        let progress = session.progress(read.cell_num());
        let cells = each_batch(self.array, &read, &progress, |set| {
            let [down, across, values @ ..] = &set.columns[..] else {
                return Ok(());
            };
            let (down, across) = (bins[0].places(down), bins[1].places(across));
            let mut places = down.zip(across);
            match values {
                [values] => each_value(values, &missing, |value| {
                    if let (Some((row, column)), Some(value)) = (places.next(), value) {
                        raster.add(row, column, &[value]);
                    }
                }),
                _ => places.for_each(|(row, column)| raster.add(row, column, &[0.0])),
            }
            Ok(())
        })?;
        if cells == 0 {
            return Err(CliError::usage("there are no cells to make a picture of"));
        }
        let density = attribute.is_none();
        if density {
            raster = raster.into_density();
        }
        Ok((raster, self.mapped(colour), density, cells))
    }
}

/// The scale asked for, from values where it needs them.
fn scale(
    wanted: Option<ScaleArg>,
    values: impl FnOnce(&mut dyn FnMut(f64)) -> Result<()>,
) -> Result<Scale> {
    let ScaleArg { span, log } = wanted.unwrap_or(ScaleArg {
        span: Span::All,
        log: false,
    });
    let empty = Scale::EMPTY.with_log(log);
    match span {
        Span::Between(low, high) => Ok(Scale::linear(low, high).with_log(log)),
        Span::All => {
            let mut scale = empty;
            values(&mut |value| scale.widen(value))?;
            Ok(scale)
        }
        Span::Percentiles(low, high) => {
            let mut sample = Sample::default();
            values(&mut |value| {
                if empty.takes(value) {
                    sample.take(value);
                }
            })?;
            Ok(sample.scale(low, high).with_log(log))
        }
    }
}

/// Rows and columns of a picture of so many cells that is no larger, in its own proportions.
fn fitting(rows: u64, columns: u64, most: Option<(usize, usize)>) -> (u64, u64) {
    let Some((width, height)) = most else {
        return (rows, columns);
    };
    let (width, height) = (width.max(1) as f64, height.max(1) as f64);
    let part = (width / columns.max(1) as f64).min(height / rows.max(1) as f64);
    if part >= 1.0 {
        return (rows, columns);
    }
    let scaled = |side: u64| ((side as f64 * part).round() as u64).clamp(1, side.max(1));
    (scaled(rows), scaled(columns))
}

fn new_raster(session: &Session, (rows, columns): (u64, u64), channels: usize) -> Result<Raster> {
    let budget = session.context.config().memory_budget / 2;
    let side = |pixels: u64| usize::try_from(pixels).ok();
    match (side(rows), side(columns)) {
        (Some(rows_), Some(columns_)) if Raster::bytes(rows, columns, channels) <= budget => {
            Ok(Raster::new(rows_, columns_, channels))
        }
        _ => Err(CliError::usage(format!(
            "a picture of {columns} by {rows} pixels takes more memory than there is; make it smaller with --size, or \
             narrow it with --range or --step"
        ))),
    }
}

/// The only column of a result.
pub fn only_column(mut set: ColumnSet) -> Result<ColumnBuffers> {
    set.columns
        .pop()
        .ok_or_else(|| CliError::Format("the read gave no column".into()))
}

/// The fill value where it cannot be mistaken for data: the lowest or highest of its type, NaN, or
/// one chosen for it.
fn fill_value(array: &Array, name: &str) -> Vec<u8> {
    let mut attributes = array.schema().attributes.iter();
    match attributes.find(|a| a.name == name) {
        Some(attribute) if attribute.datatype.size() > 1 => attribute.fill_value.clone(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_keep_their_proportions() {
        assert_eq!(fitting(100, 200, None), (100, 200));
        assert_eq!(fitting(100, 200, Some((300, 300))), (100, 200));
        assert_eq!(fitting(100, 200, Some((50, 50))), (25, 50));
        assert_eq!(fitting(1, 1_000_000, Some((80, 40))), (1, 80));
    }
}
