//! Dimension labels: values that stand for the coordinates of a dimension, kept in a small array of
//! their own.

mod search;

use crate::array::Array;
use crate::column::ColumnSet;
use crate::error::{Error, Result};
use crate::read::{ReadOptions, Reader};
use crate::space::{DimSelection, Subarray};
use azulejo_format::datatype::{CellValNum, Datatype};
use azulejo_format::range::compare;
use azulejo_format::schema::{ArraySchema, DataOrder, Dimension, DimensionLabel, TileAxis};
use azulejo_format::{DecodeError, Range};
use search::{Direction, SearchBounds};
use std::cmp::Ordering;

/// Cells that one step of a search reads together.
const BLOCK_CELLS: u64 = 4096;

/// A dimension label of an open array, with the array that holds its values.
///
/// ```no_run
/// # fn main() -> azulejo::Result<()> {
/// use azulejo::format::Range;
/// use azulejo::space::{DimSelection, Subarray};
/// use azulejo::{Array, Config, Context};
/// let array = Context::new(Config::default(), None)?.array("weather").open()?;
/// let label = array.label("height")?;
/// let rows = label.ranges(&[Range::of(1.5f64, 20.0)])?;
/// let mut selection = vec![DimSelection::All; array.schema().domain.ndim()];
/// selection[label.dimension()] = DimSelection::Ranges(rows);
/// let subarray = Subarray::Box(selection);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Label {
    reference: DimensionLabel,
    array: Array,
    /// The label's array has one.
    dimension: Dimension,
}

impl Array {
    /// Opens a dimension label and the array that holds its values, at the time of this array.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if there is no such label, or its array is not what this array's
    /// schema says; [`Error::NotFound`] if its array is gone.
    pub fn label(&self, name: &str) -> Result<Label> {
        let reference = self
            .schema()
            .dimension_label(name)
            .cloned()
            .ok_or_else(|| {
                Error::SchemaMismatch(format!(
                    "{}: there is no dimension label {name:?}",
                    self.uri()
                ))
            })?;
        let array = self.open_label(name)?;
        check(&reference, self.schema(), array.schema()).map_err(|reason| {
            Error::SchemaMismatch(format!(
                "{}: dimension label {name:?}: {reason}",
                self.uri()
            ))
        })?;
        let dimension = array.schema().domain.dimensions.first().cloned();
        let dimension =
            dimension.ok_or_else(|| Error::Internal("a label without a dimension".into()))?;
        Ok(Label {
            reference,
            array,
            dimension,
        })
    }

    /// The ranges of a dimension whose labels lie in `ranges`: [`Label::ranges`] of
    /// [`Self::label`].
    ///
    /// # Errors
    /// Those of both.
    pub fn label_ranges(&self, name: &str, ranges: &[Range]) -> Result<Vec<Range>> {
        self.label(name)?.ranges(ranges)
    }
}

impl Label {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.reference.name
    }

    /// Index of the dimension that it labels.
    #[must_use]
    pub fn dimension(&self) -> usize {
        usize::try_from(self.reference.dimension).unwrap_or(usize::MAX)
    }

    /// The order of the labels along the dimension.
    #[must_use]
    pub fn order(&self) -> DataOrder {
        self.reference.order
    }

    /// Type of a label.
    #[must_use]
    pub fn datatype(&self) -> Datatype {
        self.reference.datatype
    }

    /// What the array's schema says of it.
    #[must_use]
    pub fn reference(&self) -> &DimensionLabel {
        &self.reference
    }

    /// The array that holds the labels: one dimension, like the labelled one, and an attribute.
    #[must_use]
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// Reads coordinates (first column) and their labels (second column), in the order of the
    /// coordinates. [`DimSelection::All`] selects all that were written.
    ///
    /// # Errors
    /// Those of reading an array.
    pub fn read(&self, selection: DimSelection) -> Result<ColumnSet> {
        match self.reader(selection)? {
            Some(reader) => reader.read_all(),
            None => self
                .array
                .read(self.options(DimSelection::Ranges(Vec::new())))?
                .read_all(),
        }
    }

    /// The ranges of the dimension whose labels lie in label ranges (both ends included): what to
    /// select with.
    ///
    /// Ordered labels give one range for each label range, in their order. Unordered ones, which
    /// the reference does not search, give as many as there are runs of coordinates.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a range whose bounds are no values of the label's type or
    /// which ends before it starts, for a range that holds no label, and if no labels were written;
    /// [`Error::Corrupt`] if ordered labels leave coordinates out or are out of order from one
    /// fragment to the next.
    pub fn ranges(&self, ranges: &[Range]) -> Result<Vec<Range>> {
        for range in ranges {
            self.check_range(range)?;
        }
        let Some(written) = self
            .array
            .non_empty_domain()?
            .and_then(|mut domain| domain.ranges.pop())
        else {
            return Err(self.refused("it is empty"));
        };
        let direction = match self.order() {
            DataOrder::Increasing => Direction::Increasing,
            DataOrder::Decreasing => Direction::Decreasing,
            DataOrder::Unordered => return self.unordered(ranges),
        };
        let axis = self
            .dimension
            .axis()
            .filter(|_| self.array.schema().is_dense())
            .ok_or_else(|| {
                Error::Unsupported(format!(
                    "{}: ordered labels need a dense array of integers",
                    self.array.uri()
                ))
            })?;
        let (low, high) = axis
            .offsets_of(&written)
            .ok_or_else(|| self.corrupt("labels outside the domain"))?;
        let mut cells = Blocks {
            label: self,
            axis,
            last: high,
            first: low,
            loaded: Vec::new(),
        };
        let typed = |a: &[u8], b: &[u8]| self.compare(a, b);
        self.check_seams(&mut cells, &axis, direction)?;
        let mut found = Vec::with_capacity(ranges.len());
        for range in ranges {
            let bounds = SearchBounds { low, high };
            let span = search::find(bounds, direction, range, &typed, &mut |offset| {
                cells.value(offset)
            })?;
            let (start, end) = span.ok_or_else(|| self.refused("the range contains no values"))?;
            found.push(Range::new(axis.coordinate(start), axis.coordinate(end)));
        }
        Ok(found)
    }

    /// Compares two labels.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.reference.cell_val_num == CellValNum::Var {
            a.cmp(b)
        } else {
            compare(self.datatype(), a, b)
        }
    }

    fn check_range(&self, range: &Range) -> Result<()> {
        if self.reference.cell_val_num != CellValNum::Var {
            let size = self.datatype().size();
            if range.start.len() != size || range.end.len() != size {
                let datatype = self.datatype().name();
                return Err(self.refused(&format!(
                    "a range needs two values of type {datatype}, {size} bytes each"
                )));
            }
            // Not equal to itself but by the order, which puts it last.
            let nan = |value: &[u8]| match (self.datatype(), value) {
                (Datatype::Float32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).is_nan(),
                (Datatype::Float64, value) => value
                    .try_into()
                    .is_ok_and(|v| f64::from_le_bytes(v).is_nan()),
                _ => false,
            };
            if nan(&range.start) || nan(&range.end) {
                return Err(self.refused("a range cannot begin or end with NaN"));
            }
        }
        if self.compare(&range.start, &range.end) == Ordering::Greater {
            return Err(self.refused("a range ends before it starts"));
        }
        Ok(())
    }

    /// Coordinates and labels.
    fn options(&self, selection: DimSelection) -> ReadOptions {
        let fields = [
            self.dimension.name.clone(),
            self.reference.attribute.clone(),
        ];
        ReadOptions::new()
            .subarray(Subarray::Box(vec![selection]))
            .fields(fields)
    }

    /// A reader of the selected labels; `None` if all are selected and there are none.
    fn reader(&self, selection: DimSelection) -> Result<Option<Reader>> {
        let selection = match selection {
            DimSelection::All => match self.array.non_empty_domain()? {
                Some(domain) => DimSelection::Ranges(domain.ranges),
                None => return Ok(None),
            },
            selection => selection,
        };
        self.array.read(self.options(selection)).map(Some)
    }

    /// Looks at every label.
    fn unordered(&self, ranges: &[Range]) -> Result<Vec<Range>> {
        let axis = self.dimension.axis();
        let mut runs: Vec<Vec<Range>> = vec![Vec::new(); ranges.len()];
        let Some(written) = self.array.non_empty_domain()? else {
            return Err(self.refused("it is empty"));
        };
        // Between fragments there may be coordinates that have none.
        let options = self.options(DimSelection::Ranges(written.ranges));
        for batch in self.array.read(options.matching_only())? {
            let batch = batch?;
            let [coordinates, labels] = batch.columns.as_slice() else {
                return Err(Error::Internal(
                    "a label was read with other columns".into(),
                ));
            };
            let (coordinates, labels) = (coordinates.view(), labels.view());
            for cell in 0..batch.cell_num {
                let value = labels.cell(cell);
                for (range, runs) in ranges.iter().zip(&mut runs) {
                    let inside = self.compare(&range.start, value) != Ordering::Greater
                        && self.compare(value, &range.end) != Ordering::Greater;
                    if inside {
                        extend(runs, coordinates.cell(cell), axis.as_ref());
                    }
                }
            }
        }
        if runs.iter().any(Vec::is_empty) {
            return Err(self.refused("the range contains no values"));
        }
        Ok(runs.into_iter().flatten().collect())
    }

    /// Checks what a search relies on and no single writer could see to: that the fragments leave
    /// no gap, and that labels are in order where one fragment ends and the next begins.
    fn check_seams(
        &self,
        cells: &mut Blocks<'_>,
        axis: &TileAxis,
        direction: Direction,
    ) -> Result<()> {
        let written = self
            .array
            .fragments()
            .iter()
            .filter_map(|f| f.footer().non_empty_domain.as_ref());
        let mut spans: Vec<(u64, u64)> = written
            .filter_map(|domain| axis.offsets_of(domain.ranges.first()?))
            .collect();
        spans.sort_unstable();
        let Some(mut seams) = search::seams(&spans) else {
            return Err(self.corrupt("there are coordinates without a label"));
        };
        seams.dedup();
        for before in seams {
            let (a, b) = (cells.value(before)?, cells.value(before + 1)?);
            if direction.of(self.compare(&a, &b)) != Ordering::Less {
                return Err(self.corrupt("the labels of different fragments are out of order"));
            }
        }
        Ok(())
    }

    fn refused(&self, reason: &str) -> Error {
        Error::InvalidArgument(format!(
            "dimension label {:?} of {}: {reason}",
            self.name(),
            self.array.uri()
        ))
    }

    fn corrupt(&self, reason: &str) -> Error {
        let source = DecodeError::invalid("dimension label", 0, reason);
        Error::Corrupt {
            uri: self.array.uri().to_string(),
            source,
        }
    }
}

/// Adds a coordinate to the last run, or begins a new one.
fn extend(runs: &mut Vec<Range>, coordinate: &[u8], axis: Option<&TileAxis>) {
    if let (Some(last), Some(axis)) = (runs.last_mut(), axis)
        && let (Some(end), Some(next)) = (axis.offset_of(&last.end), axis.offset_of(coordinate))
        && next.checked_sub(end).is_some_and(|step| step <= 1)
    {
        last.end = coordinate.to_vec();
        return;
    }
    runs.push(Range::new(coordinate, coordinate));
}

/// Labels by offset, loaded in blocks that lie in one tile each.
struct Blocks<'a> {
    label: &'a Label,
    axis: TileAxis,
    first: u64,
    last: u64,
    /// First and last offset, and the cells, of each block.
    loaded: Vec<(u64, u64, ColumnSet)>,
}

impl Blocks<'_> {
    /// Blocks kept: enough for all steps of a search in 2^64 cells.
    const KEPT: usize = 64;

    /// The label at an offset that was written.
    fn value(&mut self, offset: u64) -> Result<Vec<u8>> {
        let missing = || Error::Internal(format!("no label at offset {offset}"));
        let inside = |(start, end, _): &(u64, u64, ColumnSet)| *start <= offset && offset <= *end;
        let at = match self.loaded.iter().position(inside) {
            Some(at) => at,
            None => {
                if self.loaded.len() == Self::KEPT {
                    self.loaded.remove(0);
                }
                self.loaded.push(self.load(offset)?);
                self.loaded.len() - 1
            }
        };
        let (start, _, cells) = self.loaded.get(at).ok_or_else(missing)?;
        let labels = cells.columns.get(1).ok_or_else(missing)?;
        let cell = usize::try_from(offset - start)
            .ok()
            .filter(|cell| *cell < cells.cell_num)
            .ok_or_else(missing)?;
        Ok(labels.view().cell(cell).to_vec())
    }

    fn load(&self, offset: u64) -> Result<(u64, u64, ColumnSet)> {
        let tile = self.axis.tile_of(offset);
        let tile_start = self.axis.tile_start(tile).unwrap_or(offset);
        let start = tile_start + (offset - tile_start) / BLOCK_CELLS * BLOCK_CELLS;
        let end = start
            .saturating_add(BLOCK_CELLS - 1)
            .min(self.axis.tile_end(tile).unwrap_or(offset));
        let (start, end) = (start.max(self.first), end.min(self.last));
        let range = Range::new(self.axis.coordinate(start), self.axis.coordinate(end));
        Ok((
            start,
            end,
            self.label.read(DimSelection::Ranges(vec![range]))?,
        ))
    }
}

/// Whether the array of a label is what the labelled array's schema says.
fn check(label: &DimensionLabel, schema: &ArraySchema, found: &ArraySchema) -> Result<(), String> {
    let [own] = found.domain.dimensions.as_slice() else {
        return Err(format!(
            "its array has {} dimensions instead of one",
            found.domain.ndim()
        ));
    };
    let labelled = usize::try_from(label.dimension)
        .ok()
        .and_then(|d| schema.domain.dimensions.get(d));
    let labelled = labelled.ok_or_else(|| format!("there is no dimension {}", label.dimension))?;
    if own.datatype != labelled.datatype || own.cell_val_num != labelled.cell_val_num {
        let (own, labelled) = (own.datatype.name(), labelled.datatype.name());
        return Err(format!(
            "the dimension of its array is of type {own}, the labelled one of type {labelled}"
        ));
    }
    let name = &label.attribute;
    let attribute = found
        .attributes
        .iter()
        .find(|attribute| attribute.name == *name);
    let attribute = attribute.ok_or_else(|| format!("its array has no attribute {name:?}"))?;
    if attribute.order != label.order {
        return Err(format!(
            "attribute {name:?} is {:?} instead of {:?}",
            attribute.order, label.order
        ));
    }
    if attribute.datatype != label.datatype || attribute.cell_val_num != label.cell_val_num {
        let (own, label) = (attribute.datatype.name(), label.datatype.name());
        return Err(format!(
            "attribute {name:?} is of type {own}, the label of type {label}"
        ));
    }
    Ok(())
}
