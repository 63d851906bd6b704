//! Writing cells: from columns to committed fragments.
//!
//! ```
//! use azulejo::column::{ColumnBuffers, ColumnSet};
//! use azulejo::format::ArraySchema;
//! use azulejo::format::datatype::Datatype;
//! use azulejo::write::{WriteOptions, Writer};
//! use azulejo::{Array, Config, Context, Reader};
//! use azulejo::read::ReadOptions;
//!
//! let context = Context::new(Config::default(), None)?;
//! let schema = ArraySchema::sparse()
//!     .dimension("x", 0i64..=999, 100)
//!     .attribute("a", Datatype::Float64)
//!     .build()?;
//! context.array("mem://cells").create(schema)?;
//!
//! let mut writer = context.array("mem://cells").writer(WriteOptions::new())?;
//! writer.write(&ColumnSet::of([
//!     ColumnBuffers::of_values("x", vec![7i64, 3]),
//!     ColumnBuffers::of_values("a", vec![0.7, 0.3]),
//! ])?)?;
//! writer.finish()?;
//!
//! let array = context.array("mem://cells").open()?;
//! let cells = array.read(ReadOptions::new())?.read_all()?;
//! assert_eq!(cells.columns[1].values::<f64>(), Some(&[0.3, 0.7][..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One line from columns to disk: the columns are matched to the schema and checked (`validate`),
//! brought into the array's order (`sort`, `dense`), cut into tiles, which go through statistics
//! and filters into the files of a fragment ([`FragmentSink`]), which counts once its commit file
//! is there ([`WrittenFragment::commit`]), the last step of all.

mod buffer;
pub(crate) mod commit;
mod dense;
mod external_sort;
mod filter;
pub(crate) mod fragment;
mod fragments;
mod global;
mod input;
mod labels;
mod metadata;
pub mod optimize;
mod options;
mod sort;
mod sparse;
pub(crate) mod stats;
#[cfg(test)]
mod tests;
pub(crate) mod tile_view;
mod uncommitted;
mod validate;

pub(crate) use commit::WrittenFragment;
pub(crate) use fragment::{FragmentSink, FragmentSpec};
pub use options::{Duplicates, WriteLayout, WriteOptions};
pub(crate) use tile_view::TileView;

use crate::array::{ArrayHandle, Head, Snapshot, TimeRange};
use crate::clock;
use crate::column::{ColumnBuffers, ColumnSet, ColumnType, ColumnView};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::space::Layout;
#[cfg(feature = "arrow")]
use crate::storage::Uri;
use azulejo_format::fragment::Field;
use azulejo_format::schema::Enumeration;
use azulejo_format::timestamped_name::TimestampedName;
use azulejo_format::{ArraySchema, NdRectangle};
use dense::DenseBox;
use fragments::{Fragments, Split, Target};
use global::GlobalWrite;
use input::{FieldShape, Input, dimensions_of};
use sort::DuplicateRule;
use std::sync::Arc;
use validate::Bounds;

/// The most bytes of tiles that are made at a time: more would only leave the caches.
const BAND_BYTES: u64 = 16 << 20;

/// Writes cells to an array.
///
/// [`WriteLayout::Row`], [`WriteLayout::Col`] and [`WriteLayout::Unordered`]: each
/// [`Writer::write`] makes a fragment, which counts when the call returns. [`WriteLayout::Global`]:
/// all calls together make one, which counts when [`Writer::finish`] returns; a writer that is
/// dropped before leaves nothing.
#[derive(Debug)]
pub struct Writer {
    context: Context,
    target: Target,
    options: WriteOptions,
    layout: WriteLayout,
    shapes: Vec<FieldShape>,
    global: Option<GlobalWrite>,
    failed: bool,
    written: Vec<String>,
}

impl ArrayHandle {
    /// Prepares to write to the array, in the version of its schema.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no array, [`Error::Unsupported`] for an array of a version
    /// below 7, [`Error::InvalidArgument`] for options that make no sense for it.
    pub fn writer(&self, options: WriteOptions) -> Result<Writer> {
        // Fragments are not looked at: a write takes no longer when there are many.
        let look = || Head::open_at(&self.context, &self.uri, schema_time(&options));
        let head = self.context.begin().runs(look)?;
        let name = head.schema_file();
        Writer::with_schema(&self.context, head.location, head.schema, name, options)
    }
}

impl Snapshot {
    /// Prepares to write to the array with the schema that it was opened with, whatever the latest
    /// one is.
    ///
    /// # Errors
    /// As [`ArrayHandle::writer`], and [`Error::InvalidArgument`] if it was opened by the name of a
    /// moment.
    pub fn writer(&self, options: WriteOptions) -> Result<Writer> {
        self.refuse_moment()?;
        let (schema, name) = (Arc::clone(self.schema()), self.schema_name().to_owned());
        let location = self.location().clone();
        Writer::with_schema(self.context(), location, schema, name, options)
    }
}

impl Writer {
    /// A writer to the array at a location whose schema is known: its file name in `__schema` is
    /// `schema_name`.
    fn with_schema(
        context: &Context,
        location: Location,
        schema: Arc<ArraySchema>,
        schema_name: String,
        options: WriteOptions,
    ) -> Result<Self> {
        if !schema.version.is_writable() {
            return Err(Error::Unsupported(format!(
                "{}: the array has format version {}, which cannot be written to any more; upgrade the array first",
                location.path, schema.version
            )));
        }
        if options.uncommitted && !schema.version.has_subdirectories() {
            return Err(Error::Unsupported(format!(
                "{}: fragments of arrays of format version {} cannot be committed together; upgrade the array first",
                location.path, schema.version
            )));
        }
        let layout = layout_of(&schema, &options)?;
        if let Some((first, last)) = options.timestamps
            && first > last
        {
            return Err(Error::InvalidArgument(format!(
                "a write from {first} to {last} ends before it starts"
            )));
        }
        let mut shapes = FieldShape::of_all(&schema, &fields_of(&schema))?;
        for shape in &mut shapes {
            shape.torn = options.torn_values && !shape.dimension;
        }
        let target = Target {
            location,
            schema,
            schema_name,
        };
        let context = context.clone();
        Ok(Self {
            context,
            target,
            options,
            layout,
            shapes,
            global: None,
            failed: false,
            written: Vec::new(),
        })
    }

    /// The schema that cells must fit.
    #[must_use]
    pub fn schema(&self) -> &Arc<ArraySchema> {
        &self.target.schema
    }

    /// The columns that a write takes, in the order attributes, dimensions. Enumerations are not
    /// looked up: they are those given, matched by name.
    #[must_use]
    pub fn column_types(&self, enumerations: &[Arc<Enumeration>]) -> Vec<ColumnType> {
        column_types(self.schema(), enumerations)
    }

    /// Prepares to turn record batches into columns for this writer; enumerations are read where
    /// attributes have some.
    ///
    /// ```no_run
    /// # use azulejo::{Context, WriteOptions, Writer};
    /// # fn f(context: &Context, batches: Vec<arrow_array::RecordBatch>) -> azulejo::Result<()> {
    /// let mut writer = context.array("cells").writer(WriteOptions::new())?;
    /// let importer = writer.importer()?;
    /// for batch in &batches {
    ///     writer.write(&importer.convert(batch)?)?;
    /// }
    /// writer.finish()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of reading the enumerations.
    #[cfg(feature = "arrow")]
    pub fn importer(&self) -> Result<crate::column::arrow::ArrowImporter> {
        let enumerations = if self
            .schema()
            .attributes
            .iter()
            .any(|a| a.enumeration.is_some())
        {
            let time = schema_time(&self.options);
            let uri = Uri::from_path(self.target.location.path.clone());
            let context = crate::manifest::without(&self.context);
            Snapshot::open_uri(&context, &uri, time)?.enumerations()?
        } else {
            Vec::new()
        };
        Ok(crate::column::arrow::ArrowImporter::new(
            self.column_types(&enumerations),
        ))
    }

    /// Writes cells: one column for each attribute and, for sparse arrays, for each dimension, in
    /// any order of the columns.
    ///
    /// No cells are no error, and no fragment; for a dense box there must be as many as it has.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] for columns that do not fit the schema; [`Error::InvalidArgument`]
    /// for cells outside the domain or the current domain, of equal coordinates, or out of order,
    /// naming the first; errors of the storage. Nothing of the call is written then.
    pub fn write(&mut self, cells: &ColumnSet) -> Result<()> {
        self.write_views(&views(cells))
    }

    /// As [`Self::write`], of cells that lie in memory of the caller's: they are not copied.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_views(&mut self, cells: &[ColumnView<'_>]) -> Result<()> {
        let subarray = self.options.subarray.clone();
        self.write_cells(subarray.as_ref(), cells)
    }

    /// Writes a box of a dense array other than the one of the options, in row-major or
    /// column-major order.
    ///
    /// # Errors
    /// As [`Self::write`]; [`Error::InvalidArgument`] in other orders.
    pub fn write_box(&mut self, subarray: &NdRectangle, cells: &ColumnSet) -> Result<()> {
        if !matches!(self.layout, WriteLayout::Row | WriteLayout::Col) {
            return Err(Error::InvalidArgument(
                "a box can be written in row-major and column-major order only".into(),
            ));
        }
        self.write_cells(Some(subarray), &views(cells))
    }

    fn write_cells(
        &mut self,
        subarray: Option<&NdRectangle>,
        cells: &[ColumnView<'_>],
    ) -> Result<()> {
        if self.failed {
            return Err(Error::InvalidArgument(
                "an earlier call of this writer failed; open another".into(),
            ));
        }
        let ones = input::all_valid(&self.shapes, cells);
        let context = self.context.clone();
        context.install(|| {
            let schema = Arc::clone(&self.target.schema);
            let input = input::bind(&schema, &self.shapes, cells, &ones)?;
            if !schema.is_dense() {
                let dimensions = dimensions_of(&self.shapes, &input);
                validate::check_domain(&schema, self.bounds(), &dimensions)?;
            }
            let before = self.global.as_ref().and_then(GlobalWrite::last_values);
            validate::check_attribute_order(&schema, &self.shapes, &input, before)?;
            if self.layout == WriteLayout::Global {
                self.append(&input)
            } else {
                self.write_one(subarray, &input)
            }
        })
    }

    /// A write that is done with this call.
    fn write_one(&mut self, subarray: Option<&NdRectangle>, input: &Input<'_>) -> Result<()> {
        let names = if self.target.schema.is_dense() {
            let space = DenseBox::new(&self.target.schema, self.bounds(), subarray)?;
            let parts = space.parts(self.options.max_fragment_size, input.bytes_per_cell());
            let mut fragments = self.fragments(Split::Parts(parts));
            let layout = if self.layout == WriteLayout::Col {
                Layout::ColMajor
            } else {
                Layout::RowMajor
            };
            let memory = (self.band_bytes(), self.budget());
            dense::write_ordered(&space, &self.shapes, input, layout, memory, &mut fragments)?;
            fragments.finish()?
        } else if input.cell_num == 0 {
            Vec::new()
        } else {
            let mut fragments = self.fragments(self.sparse_split());
            let (schema, rule) = (&self.target.schema, self.duplicate_rule());
            let memory = (self.band_bytes(), self.budget());
            sparse::write_unordered(schema, &self.shapes, input, rule, memory, &mut fragments)?;
            fragments.finish()?
        };
        self.note(&names);
        Ok(())
    }

    /// A part of a write in global order.
    fn append(&mut self, input: &Input<'_>) -> Result<()> {
        // How large cells are, calls without any have not told.
        let mut global = match self.global.take().filter(GlobalWrite::has_cells) {
            Some(global) => global,
            None => self.begin_global(input.bytes_per_cell())?,
        };
        let kept = match global.check(input) {
            Ok(kept) => kept,
            Err(error) => {
                self.global = Some(global);
                return Err(error);
            }
        };
        if let Err(error) = global.push(input, &kept) {
            self.failed = true;
            return Err(error);
        }
        self.global = Some(global);
        Ok(())
    }

    fn begin_global(&self, cell_bytes: usize) -> Result<GlobalWrite> {
        let (schema, band) = (&self.target.schema, self.band_bytes());
        if !schema.is_dense() {
            let fragments = self.fragments(self.sparse_split());
            return Ok(GlobalWrite::sparse(
                schema,
                &self.shapes,
                self.duplicate_rule(),
                band,
                fragments,
            ));
        }
        let space = DenseBox::new(schema, self.bounds(), self.options.subarray.as_ref())?;
        if !space.is_whole() {
            return Err(Error::InvalidArgument(
                "writes in global order take whole space tiles, but the box cuts some; write it in row-major order".into(),
            ));
        }
        let parts = space.parts(self.options.max_fragment_size, cell_bytes);
        let fragments = self.fragments(Split::Parts(parts));
        Ok(GlobalWrite::dense(
            schema,
            &self.shapes,
            space.tile_cells,
            space.cells,
            band,
            fragments,
        ))
    }

    /// Ends the write and returns the names of the fragments written, oldest first.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if cells of a dense box are missing in global order; errors of
    /// the storage.
    pub fn finish(mut self) -> Result<Vec<String>> {
        if self.failed {
            return Err(Error::InvalidArgument(
                "an earlier call of this writer failed; nothing was written".into(),
            ));
        }
        if let Some(global) = self.global.take() {
            let names = self.context.clone().install(|| global.finish())?;
            self.note(&names);
        }
        Ok(self.written)
    }

    fn note(&mut self, names: &[TimestampedName]) {
        self.written
            .extend(names.iter().map(TimestampedName::to_string));
    }

    fn fragments(&self, split: Split) -> Fragments {
        let timestamps = self.options.timestamps.unwrap_or_else(|| {
            let now = clock::next_timestamp();
            (now, now)
        });
        let uncommitted = self.options.uncommitted;
        Fragments::new(&self.context, &self.target, timestamps, uncommitted, split)
    }

    /// What cells may not leave.
    fn bounds(&self) -> Bounds {
        match self.options.uncommitted {
            true => Bounds::Domain,
            false => Bounds::CurrentDomain,
        }
    }

    fn sparse_split(&self) -> Split {
        Split::Size(self.options.max_fragment_size.unwrap_or(u64::MAX))
    }

    fn duplicate_rule(&self) -> DuplicateRule {
        match self.options.duplicates {
            _ if self.target.schema.allows_dups => DuplicateRule::Allowed,
            Duplicates::Unchecked => DuplicateRule::Allowed,
            Duplicates::Refuse => DuplicateRule::Refused,
            Duplicates::Dedup => DuplicateRule::FirstStays,
        }
    }

    fn budget(&self) -> u64 {
        self.options
            .memory_budget
            .unwrap_or_else(|| self.context.config().memory_budget)
    }

    fn band_bytes(&self) -> usize {
        usize::try_from((self.budget() / 8).min(BAND_BYTES)).unwrap_or(usize::MAX)
    }
}

/// The fields that a write takes: attributes and, of sparse arrays, dimensions.
fn fields_of(schema: &ArraySchema) -> Vec<Field> {
    let attributes = (0..schema.attributes.len()).map(Field::Attribute);
    let dimensions = (0..schema.domain.ndim()).map(Field::Dimension);
    attributes
        .chain(dimensions.filter(|_| !schema.is_dense()))
        .collect()
}

/// The columns that a write to an array takes, in the order attributes, dimensions; its enumerations
/// are those given, matched by name.
#[must_use]
pub fn column_types(schema: &ArraySchema, enumerations: &[Arc<Enumeration>]) -> Vec<ColumnType> {
    let column_type = |field: &Field| {
        let (datatype, cell_val_num) = field.layout(schema)?;
        let (name, labels) = match *field {
            Field::Attribute(i) => {
                let attribute = schema.attribute(i)?;
                (&attribute.name, attribute.enumeration.as_ref())
            }
            Field::Dimension(i) => (&schema.dimension(i)?.name, None),
            _ => return None,
        };
        Some(ColumnType {
            name: name.as_str().into(),
            datatype,
            cell_val_num,
            nullable: field.is_nullable(schema),
            enumeration: labels
                .and_then(|name| enumerations.iter().find(|e| e.name == *name))
                .cloned(),
        })
    };
    fields_of(schema).iter().filter_map(column_type).collect()
}

fn views(cells: &ColumnSet) -> Vec<ColumnView<'_>> {
    cells.columns.iter().map(ColumnBuffers::as_view).collect()
}

/// The time that a write looks up its schema at.
fn schema_time(options: &WriteOptions) -> TimeRange {
    TimeRange::until(options.timestamps.map_or_else(clock::now, |(_, last)| last))
}

/// The order of the cells, if the array can be written in it.
fn layout_of(schema: &ArraySchema, options: &WriteOptions) -> Result<WriteLayout> {
    let refuse = |why: &str| Err(Error::InvalidArgument(why.to_owned()));
    let ordered = schema
        .attributes
        .iter()
        .any(|a| a.order != azulejo_format::schema::DataOrder::Unordered);
    let dense = schema.is_dense();
    if !dense && options.subarray.is_some() {
        return refuse("a box makes no sense for a sparse array: its cells have coordinates");
    }
    let usual = if dense {
        WriteLayout::Row
    } else {
        WriteLayout::Unordered
    };
    match (dense, options.layout.unwrap_or(usual)) {
        (true, WriteLayout::Unordered) => {
            refuse("dense arrays are written in row-major, column-major or global order")
        }
        (false, WriteLayout::Row | WriteLayout::Col) => {
            refuse("sparse arrays are written unordered or in global order")
        }
        (false, WriteLayout::Unordered) if ordered => {
            refuse("attributes with an order cannot be written unordered")
        }
        (_, layout) => Ok(layout),
    }
}
