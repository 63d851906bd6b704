//! Parquet and Arrow IPC: files of record batches, which state their types.

use super::arrow;
use super::arrow_lengths;
use super::input::Input;
use super::profile::{Bounds, Labels, Profile};
use super::target::Target;
use super::{Look, parse};
use crate::error::{CliError, Result};
use crate::progress::Progress;
use crate::value::integer;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use azulejo::column::ColumnType;
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::{CellValNum, Datatype};
use azulejo::{ColumnBuffers, ColumnSet, Context};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

/// Rows of a Parquet batch.
const BATCH_ROWS: usize = 64 << 10;

/// A Parquet or Arrow file.
#[derive(Debug)]
pub struct TableFile<'a> {
    input: &'a Input,
    kind: Kind,
    schema: SchemaRef,
    names: Vec<String>,
}

#[derive(Debug)]
enum Kind {
    Parquet(ArrowReaderMetadata),
    ArrowFile,
    ArrowStream,
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch>>>;

impl<'a> TableFile<'a> {
    /// A Parquet file.
    pub fn parquet(input: &'a Input) -> Result<Self> {
        let file = input.reader()?;
        let load = || {
            ArrowReaderMetadata::load(&file, Default::default()).and_then(without_odd_dictionaries)
        };
        let metadata = caught(load).ok_or_else(|| damaged(&input.name))?;
        let metadata = metadata.map_err(|e| input.error(e))?;
        let schema = metadata.schema().clone();
        Ok(Self::new(input, Kind::Parquet(metadata), schema))
    }

    /// An Arrow IPC file or stream: the first bytes tell.
    pub fn arrow(input: &'a Input) -> Result<Self> {
        let mut file = input.reader()?;
        let mut magic = Vec::new();
        (&mut file)
            .take(6)
            .read_to_end(&mut magic)
            .map_err(|e| input.io_error(e))?;
        if magic.starts_with(b"FEA1") {
            return Err(input.error(
                "Feather of version 1 is not read; pandas and pyarrow write version 2 unless told otherwise",
            ));
        }
        let fits = match magic == *b"ARROW1" {
            true => arrow_lengths::file_fits(&mut file, input.size),
            false => arrow_lengths::stream_fits(&mut file, input.size),
        };
        if !fits.map_err(|e| input.io_error(e))? {
            return Err(damaged(&input.name));
        }
        file.seek(SeekFrom::Start(0))
            .map_err(|e| input.io_error(e))?;
        let open = || -> Result<(Kind, SchemaRef)> {
            let file = BufReader::new(file);
            if magic == *b"ARROW1" {
                let reader = FileReader::try_new(file, None).map_err(|e| input.error(e))?;
                return Ok((Kind::ArrowFile, reader.schema()));
            }
            let reader = StreamReader::try_new(file, None).map_err(|e| input.error(e))?;
            Ok((Kind::ArrowStream, reader.schema()))
        };
        let (kind, schema) = caught(open).ok_or_else(|| damaged(&input.name))??;
        Ok(Self::new(input, kind, schema))
    }

    fn new(input: &'a Input, kind: Kind, schema: SchemaRef) -> Self {
        let names = schema.fields().iter().map(|f| f.name().clone()).collect();
        Self {
            input,
            kind,
            schema,
            names,
        }
    }

    /// The names of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// What the columns wanted hold. Only those are read of which the schema and the statistics do
    /// not say enough.
    pub fn profile(
        &self,
        context: &Context,
        look: &Look,
        progress: &Progress,
    ) -> Result<Vec<Profile>> {
        let mut states = Vec::new();
        for (at, field) in self.schema.fields().iter().enumerate() {
            if look.wants(field.name()) {
                let column = Look::column(look, field.name());
                states.push(
                    State::new(at, field, column).map_err(|reason| self.input.error(reason))?,
                );
            }
        }
        let known = self.known_rows();
        for state in &mut states {
            state.nulls_known =
                !self.schema.field(state.at).is_nullable() || self.null_free(state.at);
        }
        let columns: Vec<usize> = states
            .iter()
            .filter(|s| s.must_be_read())
            .map(|s| s.at)
            .collect();
        let mut rows = 0;
        if columns.is_empty()
            && let Some(known) = known
        {
            rows = known;
        } else {
            for batch in self.batches(&columns)? {
                let batch = batch?;
                let mut reading: Vec<(&mut State, &ArrayRef)> = states
                    .iter_mut()
                    .filter(|state| columns.contains(&state.at))
                    .zip(batch.columns())
                    .collect();
                let looked: Result<(), String> = context.install(|| {
                    use rayon::iter::{IntoParallelRefMutIterator, ParallelIterator};
                    reading
                        .par_iter_mut()
                        .try_for_each(|(state, array)| state.look(array, rows))
                });
                looked.map_err(|reason| self.input.error(reason))?;
                rows += batch.num_rows() as u64;
                crate::interrupt::check()?;
                progress.advance(rows, rows, "looking at");
            }
        }
        Ok(states.into_iter().map(|state| state.finish(rows)).collect())
    }

    /// Gives the columns of all rows to `take`, batch by batch, with the number of the first row.
    pub fn read(
        &self,
        context: &Context,
        targets: &[Target],
        progress: &Progress,
        take: &mut dyn FnMut(u64, ColumnSet) -> Result<()>,
    ) -> Result<()> {
        let sources: BTreeSet<usize> = targets.iter().map(|t| t.source).collect();
        let columns: Vec<usize> = sources.iter().copied().collect();
        let position = |target: &Target| {
            columns
                .iter()
                .position(|&c| c == target.source)
                .unwrap_or(0)
        };
        let mut row = 0;
        for batch in self.batches(&columns)? {
            let batch = batch?;
            let read = context.install(|| {
                let column =
                    |target: &Target| arrow::column(batch.column(position(target)), target);
                targets
                    .par_iter()
                    .map(column)
                    .collect::<Result<Vec<ColumnBuffers>, _>>()
            });
            let columns = read.map_err(|e| {
                let mut error = e.at(&self.input.name, 0, row);
                error.line = None;
                CliError::from(error)
            })?;
            let cell_num = batch.num_rows();
            take(row, ColumnSet { cell_num, columns })?;
            row += cell_num as u64;
            crate::interrupt::check()?;
            progress.advance(row, row, "importing");
        }
        Ok(())
    }

    /// The number of rows, where the file says it.
    pub fn known_rows(&self) -> Option<u64> {
        match &self.kind {
            Kind::Parquet(metadata) => {
                u64::try_from(metadata.metadata().file_metadata().num_rows()).ok()
            }
            _ => None,
        }
    }

    /// Whether the statistics say that nothing is missing in a column.
    fn null_free(&self, column: usize) -> bool {
        let Kind::Parquet(metadata) = &self.kind else {
            return false;
        };
        let leaf = |i: usize| metadata.parquet_schema().get_column_root_idx(i) == column;
        let leaves: Vec<usize> = (0..metadata.parquet_schema().num_columns())
            .filter(|&i| leaf(i))
            .collect();
        let [leaf] = leaves[..] else { return false };
        metadata.metadata().row_groups().iter().all(|group| {
            let statistics = group.columns().get(leaf).and_then(|c| c.statistics());
            statistics.and_then(|s| s.null_count_opt()) == Some(0)
        })
    }

    /// The batches of some columns.
    fn batches(&self, columns: &[usize]) -> Result<Batches> {
        let begun = caught(|| self.begin(columns));
        let batches = begun.ok_or_else(|| damaged(&self.input.name))??;
        Ok(Box::new(Caught {
            batches: Some(batches),
            name: self.input.name.clone(),
        }))
    }

    fn begin(&self, columns: &[usize]) -> Result<Batches> {
        let file = self.input.reader()?;
        let name = self.input.name.clone();
        let wrong = move |e: &dyn std::fmt::Display| CliError::Format(format!("{name}: {e}"));
        Ok(match &self.kind {
            Kind::Parquet(metadata) => {
                let builder =
                    ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
                let mask =
                    ProjectionMask::roots(metadata.parquet_schema(), columns.iter().copied());
                let reader = builder
                    .with_projection(mask)
                    .with_batch_size(BATCH_ROWS)
                    .build();
                let reader = reader.map_err(|e| self.input.error(e))?;
                Box::new(reader.map(move |batch| batch.map_err(|e| wrong(&e))))
            }
            Kind::ArrowFile => {
                let reader: FileReader<BufReader<File>> = FileReader::try_new(
                    BufReader::with_capacity(1 << 20, file),
                    Some(columns.to_vec()),
                )
                .map_err(|e| self.input.error(e))?;
                Box::new(reader.map(move |batch| batch.map_err(|e| wrong(&e))))
            }
            Kind::ArrowStream => {
                let reader: StreamReader<BufReader<File>> = StreamReader::try_new(
                    BufReader::with_capacity(1 << 20, file),
                    Some(columns.to_vec()),
                )
                .map_err(|e| self.input.error(e))?;
                Box::new(reader.map(move |batch| batch.map_err(|e| wrong(&e))))
            }
        })
    }
}

/// Batches of a reader that panics over some of the bytes that are damaged.
struct Caught {
    batches: Option<Batches>,
    /// The file's name.
    name: String,
}

impl Iterator for Caught {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batches = self.batches.as_mut()?;
        match caught(|| batches.next()) {
            Some(next) => next,
            None => {
                // It is in no state that anybody knows.
                self.batches = None;
                Some(Err(damaged(&self.name)))
            }
        }
    }
}

fn damaged(name: &str) -> CliError {
    CliError::Format(format!(
        "{name}: the file is damaged, so that its reader gave up"
    ))
}

thread_local! {
    /// Whether a panic of this thread is told by who catches it.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// What comes of work that may panic; `None` if it did.
fn caught<R>(work: impl FnOnce() -> R) -> Option<R> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                others(panic);
            }
        }));
    });
    let before = IS_CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(before);
    done.ok()
}

/// The same, with columns read as plain values that the file says were dictionaries, where the reader
/// cannot make them: it would report damage, or panic.
fn without_odd_dictionaries(
    metadata: ArrowReaderMetadata,
) -> parquet::errors::Result<ArrowReaderMetadata> {
    let is_odd = |field: &FieldRef| match field.data_type() {
        DataType::Dictionary(_, values) => matches!(
            **values,
            DataType::Boolean
                | DataType::Float16
                | DataType::FixedSizeBinary(_)
                | DataType::Decimal32(..)
                | DataType::Decimal64(..)
                | DataType::Decimal128(..)
                | DataType::Decimal256(..)
        ),
        _ => false,
    };
    let schema = metadata.schema();
    if !schema.fields().iter().any(is_odd) {
        return Ok(metadata);
    }
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Dictionary(_, values) if is_odd(field) => {
            Arc::new(Field::clone(field).with_data_type(DataType::clone(values)))
        }
        _ => Arc::clone(field),
    });
    let plain = Schema::new_with_metadata(fields.collect::<Fields>(), schema.metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(plain));
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)
}

/// What a look at one column is for.
#[derive(Debug, Clone, Copy)]
pub struct ColumnLook {
    /// Its bounds are needed.
    pub bounds: bool,
    /// How many different texts to remember.
    pub labels: usize,
}

impl Look {
    fn column(&self, name: &str) -> ColumnLook {
        let dim = self.dims.iter().any(|d| d == name);
        ColumnLook {
            bounds: dim || self.narrow,
            labels: if self.enumerates(name) {
                Self::MOST_LABELS
            } else {
                0
            },
        }
    }
}

/// What is known of a column so far.
struct State {
    at: usize,
    name: String,
    datatype: Datatype,
    cell_val_num: CellValNum,
    dictionary: bool,
    ordered: bool,
    look: ColumnLook,
    nulls_known: bool,
    nulls: u64,
    first_null: Option<u64>,
    bounds: Option<Bounds>,
    labels: Labels,
    ascii: bool,
    bytes: u64,
    note: Option<String>,
}

impl State {
    fn new(at: usize, field: &Field, look: ColumnLook) -> Result<Self, String> {
        let (datatype, cell_val_num, note) = arrow::natural_type(field)?;
        // Lists and nested values have no labels.
        let dictionary = matches!(field.data_type(), DataType::Dictionary(..));
        let limit = if dictionary {
            Look::MOST_LABELS
        } else {
            look.labels
        };
        Ok(Self {
            at,
            name: field.name().clone(),
            datatype,
            cell_val_num,
            dictionary,
            ordered: field.dict_is_ordered().unwrap_or(false),
            look,
            nulls_known: false,
            nulls: 0,
            first_null: None,
            bounds: None,
            labels: Labels::new(limit),
            ascii: true,
            bytes: 0,
            note,
        })
    }

    fn must_be_read(&self) -> bool {
        !self.nulls_known || self.look.bounds || self.dictionary || self.look.labels > 0
    }

    fn look(&mut self, array: &ArrayRef, first_row: u64) -> Result<(), String> {
        if let Some(nulls) = array.logical_nulls().filter(|n| n.null_count() > 0) {
            let first = (0..nulls.len())
                .find(|&row| nulls.is_null(row))
                .unwrap_or(0);
            self.first_null.get_or_insert(first_row + first as u64);
            self.nulls += nulls.null_count() as u64;
        }
        if let Some(dictionary) = array.as_any_dictionary_opt() {
            let target = Target::new(self.column_type().with_nulls(), 0, false);
            let values = arrow::column(dictionary.values(), &target).map_err(|e| e.reason)?;
            for value in values.cells().flatten() {
                self.labels.add(value);
                self.ascii &= value.is_ascii();
            }
        } else if parse::is_text(self.datatype) && (self.look.bounds || self.look.labels > 0) {
            let text = cast(array, &DataType::LargeUtf8).map_err(|e| e.to_string())?;
            for value in text.as_string::<i64>().iter().flatten() {
                self.labels.add(value.as_bytes());
                self.ascii &= value.is_ascii();
                self.bytes += value.len() as u64;
            }
        } else if self.look.bounds
            && self.cell_val_num == CellValNum::ONE
            && !parse::is_bytes(self.datatype)
        {
            let target = Target::new(self.column_type().with_nulls(), 0, false);
            let values = arrow::column(array, &target).map_err(|e| e.reason)?;
            dispatch!(self.datatype.physical(), T => widen::<T>(&mut self.bounds, &values, self.datatype));
        }
        Ok(())
    }

    fn column_type(&self) -> ColumnType {
        ColumnType::new("", self.datatype).with_cell_val_num(self.cell_val_num)
    }

    fn finish(self, rows: u64) -> Profile {
        let labelled = self.dictionary || self.look.labels > 0 && parse::is_text(self.datatype);
        let labels = labelled.then_some(self.labels);
        Profile {
            name: self.name,
            datatype: self.datatype,
            cell_val_num: self.cell_val_num,
            rows,
            nulls: self.nulls,
            first_null: self.first_null,
            bounds: self.bounds,
            labels,
            dictionary: self.dictionary,
            ordered_labels: self.ordered,
            ascii: self.ascii,
            bytes: self.bytes,
            stated: true,
            note: self.note,
        }
    }
}

fn widen<T: Native>(bounds: &mut Option<Bounds>, values: &ColumnBuffers, datatype: Datatype) {
    let mut least_and_greatest: Option<(T, T)> = None;
    let view = values.view();
    for (cell, bytes) in values.data.chunks_exact(T::SIZE).enumerate() {
        let value = T::read(bytes);
        // NaN is not equal to itself.
        if !view.is_valid(cell) || value.partial_cmp(&value).is_none() {
            continue;
        }
        let (low, high) = least_and_greatest.get_or_insert((value, value));
        if value < *low {
            *low = value;
        }
        if value > *high {
            *high = value;
        }
    }
    let Some((low, high)) = least_and_greatest else {
        return;
    };
    let found = if datatype.is_real() {
        Bounds::Real(low.as_f64(), high.as_f64())
    } else {
        Bounds::Integer(integer(low), integer(high))
    };
    *bounds = Some(bounds.map_or(found, |bounds| bounds.union(found)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_panics_over_is_an_error() {
        let panics = || -> Option<Result<RecordBatch>> { panic!("damaged bytes") };
        let mut caught = Caught {
            batches: Some(Box::new(std::iter::from_fn(panics))),
            name: "a.arrow".to_owned(),
        };
        let error = caught.next().map(Result::unwrap_err).unwrap();
        assert!(error.to_string().starts_with("a.arrow: "), "{error}");
        assert!(caught.next().is_none());
    }
}
