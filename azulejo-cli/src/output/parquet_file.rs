//! Parquet files, in types that other programs read as what they are.

use crate::error::{CliError, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMillisecondType, TimestampSecondType};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::io::Write;
use std::sync::Arc;

/// Bytes of a row group under way at which it is written out.
const ROW_GROUP_BYTES: usize = 128 << 20;

/// A Parquet file being written.
pub struct ParquetWriter<W: Write + Send> {
    writer: ArrowWriter<W>,
    /// The columns as the file has them.
    schema: SchemaRef,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Begins a file for batches of a schema.
    pub fn new(out: W, schema: &SchemaRef) -> Result<Self> {
        let fields = schema.fields().iter().map(|field| {
            let kept = stored_type(field.data_type());
            Field::clone(field).with_data_type(kept)
        });
        let schema =
            Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone());
        let schema = Arc::new(schema);
        let properties = WriterProperties::builder()
            .set_compression(compression())
            .set_created_by(concat!("azulejo ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        Ok(Self {
            writer: ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties))?,
            schema,
        })
    }

    /// Writes one batch.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| stored(column, field));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        self.writer.write(&batch)?;
        if self.writer.in_progress_size() >= ROW_GROUP_BYTES {
            self.writer.flush()?;
        }
        Ok(())
    }

    /// Writes what ends the file.
    pub fn finish(self) -> Result<()> {
        self.writer.into_inner()?.flush()?;
        Ok(())
    }
}

/// Zstandard; Snappy where its library in C is left out.
fn compression() -> Compression {
    if cfg!(feature = "c-codecs") {
        Compression::ZSTD(ZstdLevel::default())
    } else {
        Compression::SNAPPY
    }
}

/// The type in which Parquet keeps a column. It has no times that are counted in seconds (they would
/// be plain integers), and nobody reads dictionaries of bytes of a fixed length.
fn stored_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Timestamp(TimeUnit::Second, zone) => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        DataType::Dictionary(_, values) if matches!(**values, DataType::FixedSizeBinary(_)) => {
            DataType::clone(values)
        }
        other => other.clone(),
    }
}

/// A column in the type of a field of the file.
fn stored(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    if column.data_type() == field.data_type() {
        return Ok(Arc::clone(column));
    }
    let Some(seconds) = column.as_primitive_opt::<TimestampSecondType>() else {
        return Ok(cast(column, field.data_type())?);
    };
    let millis: PrimitiveArray<TimestampMillisecondType> = seconds.try_unary(|tick| match tick {
        // No time, in any unit.
        i64::MIN => Ok(tick),
        _ => tick.checked_mul(1000).ok_or_else(|| {
            CliError::Format(format!(
                "column {:?}: {tick} seconds are more than Parquet's milliseconds can say; Arrow and CSV keep them",
                field.name()
            ))
        }),
    })?;
    let millis = match field.data_type() {
        DataType::Timestamp(_, Some(zone)) => millis.with_timezone(Arc::clone(zone)),
        _ => millis,
    };
    Ok(Arc::new(millis))
}
