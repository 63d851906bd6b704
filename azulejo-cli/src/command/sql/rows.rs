//! Rows on their way out.

use crate::args::CatFormat;
use crate::error::Result;
use crate::output::BatchWriter;
use crate::output::moments;
use crate::output::table::{Align, Table};
use crate::session::Session;
use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::SchemaRef;
use std::io::{BufWriter, Stdout, Write};

/// Rows of a table that are laid out together.
const TABLE_PAGE: usize = 2000;

/// What writes the rows of one statement.
pub enum Rows {
    /// A table that fits the terminal.
    Table {
        /// The rows that are to be laid out together.
        page: Table,
        /// How many these are.
        laid_out: usize,
        /// How many came before.
        before: usize,
        schema: SchemaRef,
    },
    /// Any other format.
    Stream(Box<BatchWriter<BufWriter<Stdout>>>),
    /// None: the statement has no columns, as those that make tables and views. An empty header would
    /// stand before the rows of the next one.
    Nothing,
}

impl Rows {
    /// Begins to write.
    pub fn new(format: CatFormat, schema: &SchemaRef) -> Result<Self> {
        let out = || BufWriter::with_capacity(1 << 16, std::io::stdout());
        if schema.fields().is_empty() {
            return Ok(Self::Nothing);
        }
        Ok(match format {
            CatFormat::Table => Self::Table {
                page: page(schema),
                laid_out: 0,
                before: 0,
                schema: SchemaRef::clone(schema),
            },
            CatFormat::Csv => Self::Stream(Box::new(BatchWriter::csv(out(), schema)?)),
            CatFormat::Ndjson => Self::Stream(Box::new(BatchWriter::ndjson(out()))),
            CatFormat::Arrow => Self::Stream(Box::new(BatchWriter::arrow_stream(out(), schema)?)),
        })
    }

    /// Writes a batch.
    pub fn write(&mut self, session: &mut Session, batch: &RecordBatch) -> Result<()> {
        let Self::Table {
            page,
            laid_out,
            before,
            schema,
        } = self
        else {
            let Self::Stream(writer) = self else {
                return Ok(());
            };
            session.output.flush()?;
            return writer.write(batch);
        };
        let options = FormatOptions::new().with_null("null");
        let batch = moments::readable(batch)?;
        let columns = batch.columns().iter();
        let columns = columns
            .map(|column| Ok(ArrayFormatter::try_new(column, &options)?))
            .collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            let cells = columns
                .iter()
                .map(|column| Ok(column.value(row).try_to_string()?));
            page.row(cells.collect::<Result<Vec<_>>>()?);
            *laid_out += 1;
            if *laid_out == TABLE_PAGE {
                let full = std::mem::replace(page, self::page(schema));
                *before += *laid_out;
                *laid_out = 0;
                show(session, &full)?;
            }
        }
        Ok(())
    }

    /// Writes what is left.
    pub fn finish(self, session: &mut Session) -> Result<()> {
        match self {
            Self::Table {
                page,
                laid_out,
                before,
                ..
            } => {
                if laid_out > 0 || before == 0 {
                    show(session, &page)?;
                }
                Ok(())
            }
            Self::Stream(writer) => writer.finish(),
            Self::Nothing => Ok(()),
        }
    }
}

fn page(schema: &SchemaRef) -> Table {
    Table::new(schema.fields().iter().map(|field| {
        let align = match field.data_type().is_numeric() {
            true => Align::Right,
            false => Align::Left,
        };
        (field.name().clone(), align)
    }))
}

fn show(session: &mut Session, page: &Table) -> Result<()> {
    let rendered = page.render(session.output.width(), session.output.has_colours());
    session.output.write_all(rendered.text.as_bytes())?;
    session.output.flush()?;
    if !rendered.hidden.is_empty() {
        let names = rendered.hidden.join(", ");
        session.output.note(&format!("too narrow for {names}"));
    }
    Ok(())
}
