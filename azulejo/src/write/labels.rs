//! Cells and the labels of their dimensions in one call.

use super::dense::DenseBox;
use super::{WriteLayout, WriteOptions, Writer, input, validate};
use crate::array::Snapshot;
use crate::clock;
use crate::column::{ColumnBuffers, ColumnSet};
use crate::error::{Error, Result};
use crate::storage::Uri;
use azulejo_format::{NdRectangle, Range};
use std::sync::Arc;

impl Writer {
    /// Writes a box of a dense array, in row-major or column-major order, and labels of its
    /// dimensions, all at one time. A column of `labels` is named like a dimension label and holds
    /// a label for each coordinate of the box along its dimension.
    ///
    /// The labels are written first: whoever sees the cells sees their labels.
    ///
    /// ```
    /// # use azulejo::column::{ColumnBuffers, ColumnSet};
    /// # use azulejo::format::{ArraySchema, Datatype, Range, schema::DataOrder};
    /// # use azulejo::write::{WriteOptions, Writer};
    /// # use azulejo::{Array, Config, Context};
    /// # let context = Context::new(Config::default(), None)?;
    /// let schema = ArraySchema::dense()
    ///     .dimension("row", 0i32..=2, 3)
    ///     .attribute("a", Datatype::Int32)
    ///     .label(0, "height", DataOrder::Increasing, Datatype::Float64)
    ///     .build()?;
    /// context.array("mem://labelled").create(schema)?;
    /// let mut writer = context.array("mem://labelled").writer(WriteOptions::new())?;
    /// let cells = ColumnSet::of([ColumnBuffers::of_values("a", vec![1, 2, 3])])?;
    /// writer.write_labelled(&cells, &[ColumnBuffers::of_values("height", vec![0.5, 1.5, 9.0])])?;
    /// writer.finish()?;
    ///
    /// let array = context.array("mem://labelled").open()?;
    /// assert_eq!(array.label_ranges("height", &[Range::of(1.0, 10.0)])?, [Range::of(1, 2)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::write`], and for labels that do not exist, of another number, or out of order,
    /// before any cell is written; [`Error::InvalidArgument`] for sparse arrays and in other
    /// orders.
    pub fn write_labelled(&mut self, cells: &ColumnSet, labels: &[ColumnBuffers]) -> Result<()> {
        if !matches!(self.layout, WriteLayout::Row | WriteLayout::Col) {
            return Err(Error::InvalidArgument(
                "labels go with cells of a dense array in row-major or column-major order; otherwise write them to their own \
                 array, which `Array::open_label` opens"
                    .into(),
            ));
        }
        let subarray = self.options.subarray.clone();
        self.check_box(subarray.as_ref(), cells)?;
        let time = self.options.timestamps.unwrap_or_else(|| {
            let now = clock::next_timestamp();
            (now, now)
        });
        let arrays = self.label_writers(subarray.as_ref(), labels, time)?;
        for (mut writer, values) in arrays {
            writer.write(&values)?;
            writer.finish()?;
        }
        let given = self.options.timestamps.replace(time);
        let written = self.write(cells);
        self.options.timestamps = given;
        written
    }

    /// What [`Self::write`] would refuse.
    fn check_box(&self, subarray: Option<&NdRectangle>, cells: &ColumnSet) -> Result<()> {
        let views = super::views(cells);
        let ones = input::all_valid(&self.shapes, &views);
        let input = input::bind(self.schema(), &self.shapes, &views, &ones)?;
        validate::check_attribute_order(self.schema(), &self.shapes, &input, None)?;
        let space = DenseBox::new(self.schema(), self.bounds(), subarray)?;
        if space.cells != input.cell_num as u64 {
            return Err(Error::InvalidArgument(format!(
                "{} cells were given, but the box has {}",
                input.cell_num, space.cells
            )));
        }
        Ok(())
    }

    /// A writer for each label, and its values as the label's array has them.
    fn label_writers(
        &self,
        subarray: Option<&NdRectangle>,
        labels: &[ColumnBuffers],
        time: (u64, u64),
    ) -> Result<Vec<(Self, ColumnSet)>> {
        let schema = Arc::clone(self.schema());
        let space = DenseBox::new(&schema, self.bounds(), subarray)?;
        let uri = Uri::from_path(self.target.location.path.clone());
        let array =
            Snapshot::open_uri(&self.context, &uri, super::schema_time(&self.options))?.array()?;
        let mut writers = Vec::with_capacity(labels.len());
        for (i, values) in labels.iter().enumerate() {
            let name = &*values.column_type.name;
            if labels
                .iter()
                .take(i)
                .any(|other| *other.column_type.name == *name)
            {
                return Err(Error::SchemaMismatch(format!(
                    "there are two columns of the label {name:?}"
                )));
            }
            let holder = array.open_label(name)?;
            let reference = schema
                .dimension_label(name)
                .filter(|_| holder.schema().is_dense());
            let reference = reference.ok_or_else(|| {
                Error::Unsupported(format!(
                    "dimension label {name:?} is kept in a sparse array; write it there, with its coordinates"
                ))
            })?;
            let d = usize::try_from(reference.dimension).unwrap_or(usize::MAX);
            let range =
                space
                    .grid
                    .axes()
                    .get(d)
                    .zip(space.bounds.get(d))
                    .map(|(axis, (first, last))| {
                        (
                            Range::new(axis.coordinate(*first), axis.coordinate(*last)),
                            (last - first).saturating_add(1),
                        )
                    });
            let (range, count) = range.ok_or_else(|| {
                Error::SchemaMismatch(format!("label {name:?} labels no dimension"))
            })?;
            if values.cell_num as u64 != count {
                return Err(Error::InvalidArgument(format!(
                    "{} labels {name:?} were given, but the box has {count} coordinates along dimension {:?}",
                    values.cell_num,
                    schema
                        .domain
                        .dimensions
                        .get(d)
                        .map_or("", |dimension| dimension.name.as_str())
                )));
            }
            let mut column = values.clone();
            column.column_type.name = reference.attribute.as_str().into();
            let options = WriteOptions::new()
                .layout(WriteLayout::Row)
                .timestamps(time.0, time.1);
            let ranges = vec![range];
            let writer = holder.writer(options.subarray(NdRectangle { ranges }))?;
            let set = ColumnSet::of([column])?;
            // Out of order, they are refused before anything is written.
            writer.check_box(writer.options.subarray.as_ref(), &set)?;
            writers.push((writer, set));
        }
        Ok(writers)
    }
}
