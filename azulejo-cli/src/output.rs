//! Cells in the formats that `cat` and `export` write.

pub mod canvas;
pub mod colour_map;
pub mod csv;
pub mod digits;
pub mod drawing;
pub mod moments;
pub mod npy;
pub mod out;
pub mod parquet_file;
pub mod picture;
pub mod png;
pub mod raster;
pub mod table;
pub mod temp_file;

use crate::error::Result;
use crate::interrupt;
use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_json::writer::{LineDelimited, WriterBuilder};
use arrow_schema::SchemaRef;
use parquet_file::ParquetWriter;
use std::io::Write;

/// Rows that are formatted at a time, a fraction of a second's work.
const PIECE: usize = 1 << 14;

/// A file of record batches being written.
pub enum BatchWriter<W: Write + Send> {
    /// Comma-separated or tab-separated values.
    Csv(csv::CsvWriter<W>),
    /// A JSON object a line.
    Ndjson(arrow_json::Writer<W, LineDelimited>),
    /// An Arrow IPC stream.
    ArrowStream(StreamWriter<W>),
    /// An Arrow IPC file.
    ArrowFile(FileWriter<W>),
    /// A Parquet file.
    Parquet(ParquetWriter<W>),
}

impl<W: Write + Send> BatchWriter<W> {
    /// Begins a CSV file with its header line.
    pub fn csv(out: W, schema: &SchemaRef) -> Result<Self> {
        Ok(Self::Csv(csv::CsvWriter::new(out, schema)?))
    }

    /// Begins a file of tab-separated values with its header line.
    pub fn tsv(out: W, schema: &SchemaRef) -> Result<Self> {
        let writer = csv::CsvWriter::separated(out, schema, '\t')?;
        Ok(Self::Csv(writer))
    }

    /// Begins a file of JSON lines.
    pub fn ndjson(out: W) -> Self {
        Self::Ndjson(WriterBuilder::new().with_explicit_nulls(true).build(out))
    }

    /// Begins an Arrow stream.
    pub fn arrow_stream(out: W, schema: &SchemaRef) -> Result<Self> {
        Ok(Self::ArrowStream(StreamWriter::try_new(out, schema)?))
    }

    /// Begins an Arrow file.
    pub fn arrow_file(out: W, schema: &SchemaRef) -> Result<Self> {
        Ok(Self::ArrowFile(FileWriter::try_new(out, schema)?))
    }

    /// Begins a Parquet file.
    pub fn parquet(out: W, schema: &SchemaRef) -> Result<Self> {
        Ok(Self::Parquet(ParquetWriter::new(out, schema)?))
    }

    /// Writes one batch, in pieces between which it can be interrupted where the format knows no
    /// batches.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if matches!(self, Self::ArrowStream(_) | Self::ArrowFile(_)) {
            return self.piece(batch);
        }
        for from in (0..batch.num_rows()).step_by(PIECE) {
            interrupt::check()?;
            self.piece(&batch.slice(from, PIECE.min(batch.num_rows() - from)))?;
        }
        Ok(())
    }

    fn piece(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Self::Csv(writer) => writer.write(&moments::readable(batch)?)?,
            Self::Ndjson(writer) => writer.write(&moments::readable(batch)?)?,
            Self::ArrowStream(writer) => writer.write(batch)?,
            Self::ArrowFile(writer) => writer.write(batch)?,
            Self::Parquet(writer) => writer.write(batch)?,
        }
        Ok(())
    }

    /// Writes what ends the file.
    pub fn finish(self) -> Result<()> {
        match self {
            Self::Csv(writer) => writer.finish()?,
            Self::Ndjson(mut writer) => {
                writer.finish()?;
                writer.into_inner().flush()?;
            }
            Self::ArrowStream(mut writer) => {
                writer.finish()?;
                writer.get_mut().flush()?;
            }
            Self::ArrowFile(mut writer) => {
                writer.finish()?;
                writer.get_mut().flush()?;
            }
            Self::Parquet(writer) => writer.finish()?,
        }
        Ok(())
    }
}
