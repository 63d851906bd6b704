//! A file, whatever its format.

use super::Look;
use super::date_format::DateFormat;
use super::infer::TextRules;
use super::input::Input;
use super::npy_file::{self, NpyFile, Turn};
use super::profile::Profile;
use super::table_file::TableFile;
use super::target::Target;
use super::text_file::{CsvOptions, TextFile};
use crate::args::{ImportArgs, ImportFormat};
use crate::error::{CliError, Result};
use crate::progress::Progress;
use crate::session::Session;
use azulejo::{ColumnSet, Context};

/// Bytes of a NumPy file that are read at a time.
const NPY_BYTES: usize = 16 << 20;

/// A file being imported.
#[derive(Debug)]
pub enum Source<'a> {
    /// CSV or JSON lines.
    Text(TextFile<'a>),
    /// Parquet or Arrow.
    Table(TableFile<'a>),
    /// NumPy, with the name that its values get.
    Npy(NpyFile<'a>, String),
}

/// The names in a list that was cut at its commas: as in the header of a CSV file, those with commas
/// stand in double quotes, and quotes in them are doubled.
fn quoted_names(parts: &[String]) -> Vec<String> {
    let mut names = Vec::new();
    let mut left = parts;
    while let Some((first, others)) = left.split_first() {
        // Of many names in no quotes none is joined with all that come after it.
        let most = if first.starts_with('"') {
            left.len()
        } else {
            0
        };
        let here = left;
        let mut starts = (1..=most).map(|len| here.split_at(len));
        let quoted = starts.find_map(|(start, rest)| Some((unquoted(&start.join(","))?, rest)));
        let (name, rest) = quoted.unwrap_or_else(|| (first.clone(), others));
        names.push(name);
        left = rest;
    }
    names
}

/// What stands in double quotes; `None` for what is not in quotes, or not to their end.
fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let single = inner.replace("\"\"", "");
    (!single.contains('"')).then(|| inner.replace("\"\"", "\""))
}

impl<'a> Source<'a> {
    /// Opens a file in the format that it has or is said to have.
    pub fn open(input: &'a Input, args: &ImportArgs) -> Result<Self> {
        let nulls = args.text.nulls.iter().map(|null| null.clone().into_bytes());
        let dates = args.text.date_format.as_deref().map(DateFormat::parse);
        let dates = dates
            .transpose()
            .map_err(|reason| CliError::usage(format!("--date-format: {reason}")))?;
        let rules = |quoted_numbers| TextRules {
            nulls: nulls.clone().collect(),
            quoted_numbers,
            dates: dates.clone(),
        };
        Ok(match input.format(args.format)? {
            ImportFormat::Csv => {
                let options = CsvOptions {
                    delimiter: args.text.delimiter,
                    quote: args.text.quote,
                    comment: args.text.comment,
                    skip: args.text.skip,
                    header: !args.text.no_header,
                    names: args.text.names.as_deref().map(quoted_names),
                };
                Self::Text(TextFile::csv(input, &options, rules(true))?)
            }
            ImportFormat::Ndjson => Self::Text(TextFile::lines(input, rules(false))?),
            ImportFormat::Parquet => Self::Table(TableFile::parquet(input)?),
            ImportFormat::Arrow => Self::Table(TableFile::arrow(input)?),
            ImportFormat::Zarr | ImportFormat::Geotiff => {
                return Err(input.error(
                    "Zarr and GeoTIFF are folders and files of this machine, imported by themselves",
                ));
            }
            ImportFormat::Npy => {
                let names = args.text.names.as_deref().map(quoted_names);
                let name = names.and_then(|names| names.into_iter().next());
                Self::Npy(
                    NpyFile::open(input)?,
                    name.unwrap_or_else(|| "value".to_owned()),
                )
            }
        })
    }

    /// What its columns hold.
    pub fn profile(&mut self, session: &Session, look: &Look, size: u64) -> Result<Vec<Profile>> {
        match self {
            Self::Text(file) => {
                let progress = session.progress(Some(size));
                file.profile(&session.context, look, &progress)
            }
            Self::Table(file) => {
                let progress = session.progress(file.known_rows());
                file.profile(&session.context, look, &progress)
            }
            Self::Npy(file, name) => Ok(vec![Profile {
                name: name.clone(),
                datatype: file.datatype,
                cell_val_num: file.cell_val_num,
                rows: file.cells().unwrap_or(0),
                nulls: 0,
                first_null: None,
                bounds: None,
                labels: None,
                dictionary: false,
                ordered_labels: false,
                ascii: false,
                bytes: 0,
                stated: true,
                note: None,
            }]),
        }
    }

    /// Takes it that JSON lines have these keys, where a look is not worth while. Other formats
    /// name their columns.
    pub fn assume_keys(&mut self, names: impl Iterator<Item = String>) {
        if let Self::Text(file) = self {
            file.assume_keys(names);
        }
    }

    /// Takes it that some lines of JSON may have these keys too.
    pub fn add_keys(&mut self, names: Vec<String>) {
        if let Self::Text(file) = self {
            file.add_keys(names);
        }
    }

    /// How messages name a row, counted from 0: by its line, where there are lines.
    pub fn row_text(&self, session: &Session, row: u64) -> String {
        let line = match self {
            Self::Text(file) => file.line_of(&session.context, row).ok(),
            Self::Table(_) | Self::Npy(..) => None,
        };
        line.unwrap_or_else(|| format!("row {}", row + 1))
    }

    /// The names of all columns; those of JSON lines are known after a look only.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Text(file) => file.names(),
            Self::Table(file) => file.names(),
            Self::Npy(_, name) => std::slice::from_ref(name),
        }
    }

    /// Gives the cells of `targets` to `take`, in the file's order, with the number of the first
    /// row.
    pub fn read(
        &self,
        session: &Session,
        targets: &[Target],
        size: u64,
        take: &mut dyn FnMut(u64, ColumnSet) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Text(file) => file.read(
                &session.context,
                targets,
                &session.progress(Some(size)),
                take,
            ),
            Self::Table(file) => file.read(
                &session.context,
                targets,
                &session.progress(file.known_rows()),
                take,
            ),
            Self::Npy(file, _) => read_npy(
                &session.context,
                file,
                targets,
                &session.progress(file.cells()),
                take,
            ),
        }
    }
}

fn read_npy(
    context: &Context,
    file: &NpyFile<'_>,
    targets: &[Target],
    progress: &Progress,
    take: &mut dyn FnMut(u64, ColumnSet) -> Result<()>,
) -> Result<()> {
    let Some(target) = targets.first() else {
        return Ok(());
    };
    let budget = usize::try_from(context.config().memory_budget / 8).unwrap_or(usize::MAX);
    let elements = file.column_type("");
    let turn = Turn::of(&elements, &target.column, true).ok_or_else(|| {
        CliError::usage(format!(
            "the file holds {}, which cannot become {}",
            elements.datatype, target.column.datatype
        ))
    })?;
    let at_once = (NPY_BYTES.min(budget) / elements.cell_size().max(1)).max(1) as u64;
    let cells = file.cells().unwrap_or(0);
    let mut reader = file.cells_reader()?;
    let mut row = 0;
    while row < cells {
        let count = at_once.min(cells - row) as usize;
        let data = reader.read(count)?;
        let column = npy_file::cells_of(&elements, target, &turn, data)
            .map_err(|error| file.error(row, error))?;
        take(
            row,
            ColumnSet {
                cell_num: count,
                columns: vec![column],
            },
        )?;
        row += count as u64;
        crate::interrupt::check()?;
        progress.advance(row, row, "importing");
    }
    Ok(())
}
