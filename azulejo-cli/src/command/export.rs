//! `azulejo export`: cells to a file.

use crate::args::{ExportArgs, ExportFormat, OrderArg};
use crate::cells::each_batch;
use crate::columns::Columns;
use crate::error::{CliError, Result};
use crate::output::BatchWriter;
use crate::output::colour_map::ColourMap;
use crate::output::npy::NpyWriter;
use crate::output::picture::{Colour, Scale};
use crate::output::png::PngWriter;
use crate::output::temp_file::TempFile;
use crate::selection::{Coordinates, Selection, select};
use crate::session::Session;
use crate::size;
use crate::terminal::Output;
use azulejo::format::schema::Domain;
use azulejo::{Array, ColumnBuffers, ColumnSet};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// Runs the command.
pub fn run(session: &mut Session, args: &ExportArgs) -> Result<()> {
    let format = match args.format {
        Some(format) => format,
        None => format_of(&args.file)?,
    };
    let to_stdout = args.file == Path::new("-");
    if to_stdout
        && Output::is_terminal()
        && !matches!(format, ExportFormat::Csv | ExportFormat::Ndjson)
    {
        return Err(CliError::usage(
            "bytes are no sight for a terminal; redirect them: > file",
        ));
    }
    if !to_stdout && args.file.exists() && !args.force {
        return Err(CliError::usage(format!(
            "{} exists; --force replaces it",
            args.file.display()
        )));
    }
    let array = session.open(&args.uri, &args.time)?;
    let file = match to_stdout {
        true => TempFile::new(&std::env::temp_dir().join("standard output"))?,
        false => TempFile::new(&args.file)?,
    };
    let cells = match format {
        ExportFormat::Npy => npy(session, &array, args, &file)?,
        ExportFormat::Png => png(session, &array, args, &file)?,
        _ => batches(session, &array, args, format, &file)?,
    };
    let bytes = match to_stdout {
        true => file.pour(std::io::stdout().lock())?,
        false => file.publish()?,
    };
    if session.output.json && !to_stdout {
        let file = args.file.display().to_string();
        return session
            .output
            .write_json(&json!({ "file": file, "cells": cells, "bytes": bytes }));
    }
    let file: &dyn std::fmt::Display = match to_stdout {
        true => &"standard output",
        false => &args.file.display(),
    };
    session.output.note(&format!(
        "{file}: {} cells, {}",
        size::count(cells),
        size::text(bytes)
    ));
    Ok(())
}

fn format_of(file: &Path) -> Result<ExportFormat> {
    let ending = file
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or_default()
        .to_ascii_lowercase();
    Ok(match ending.as_str() {
        "parquet" | "pq" => ExportFormat::Parquet,
        "arrow" | "feather" | "ipc" => ExportFormat::Arrow,
        "csv" => ExportFormat::Csv,
        "ndjson" | "jsonl" => ExportFormat::Ndjson,
        "npy" => ExportFormat::Npy,
        "png" => ExportFormat::Png,
        _ => {
            return Err(CliError::usage(format!(
                "{}: the ending names no format; use .parquet .arrow .csv .ndjson .npy .png, or --format",
                file.display()
            )));
        }
    })
}

/// Formats made of record batches. Text that turns out not to be UTF-8 is exported as bytes, from
/// the beginning.
fn batches(
    session: &Session,
    array: &Array,
    args: &ExportArgs,
    format: ExportFormat,
    file: &TempFile,
) -> Result<u64> {
    let coordinates = if args.columns.coords {
        Coordinates::Always
    } else {
        Coordinates::Sparse
    };
    let selection = select(array, &args.selection, coordinates)?;
    let columns = Columns::new(array, &selection.fields, args.columns.raw)?;
    let mut bytes = BTreeSet::new();
    loop {
        let columns = columns.as_bytes(&bytes);
        match write_batches(session, array, &selection, &columns, format, file)? {
            Written::All(cells) => return Ok(cells),
            Written::NotUtf8(at) => {
                let name = &columns.types()[at].name;
                session.output.note(&format!(
                    "{name:?} holds text that is not UTF-8: exported as bytes"
                ));
                bytes.insert(at);
            }
        }
    }
}

enum Written {
    All(u64),
    NotUtf8(usize),
}

fn write_batches(
    session: &Session,
    array: &Array,
    selection: &Selection,
    columns: &Columns,
    format: ExportFormat,
    file: &TempFile,
) -> Result<Written> {
    let converter = columns.converter()?;
    let schema = converter.schema();
    let out = file.writer()?;
    let mut writer = match format {
        ExportFormat::Arrow => BatchWriter::arrow_file(out, schema)?,
        ExportFormat::Csv => BatchWriter::csv(out, schema)?,
        ExportFormat::Ndjson => BatchWriter::ndjson(out),
        _ => BatchWriter::parquet(out, schema)?,
    };
    let progress = session.progress(selection.cell_num());
    let mut not_utf8 = None;
    let cells = each_batch(array, selection, &progress, |set| {
        not_utf8 = columns.not_utf8(&set);
        match not_utf8 {
            // Ends the read; the caller begins anew.
            Some(_) => Err(CliError::Format(String::new())),
            None => writer.write(&converter.convert(set)?),
        }
    });
    if let Some(at) = not_utf8 {
        return Ok(Written::NotUtf8(at));
    }
    let cells = cells?;
    writer.finish()?;
    Ok(Written::All(cells))
}

/// The selection of a format that takes one attribute of a dense array, with its shape.
fn one_dense_attribute(
    array: &Array,
    args: &ExportArgs,
    format: &str,
) -> Result<(Selection, Vec<u64>)> {
    let schema = array.schema();
    if !schema.is_dense() {
        return Err(CliError::usage(format!(
            "{format} takes dense arrays and {} is sparse; export to .parquet, .arrow or .csv",
            args.uri
        )));
    }
    if args.selection.limit.is_some()
        || args.selection.cells.points.is_some()
        || args.columns.coords
    {
        return Err(CliError::usage(format!(
            "{format} has no --limit, --points or --coords"
        )));
    }
    if matches!(args.selection.order, OrderArg::Global | OrderArg::Unordered) {
        return Err(CliError::usage(format!(
            "{format} has no --order global or unordered"
        )));
    }
    let selection = select(array, &args.selection, Coordinates::Never)?;
    if selection.fields.len() != 1 {
        return Err(CliError::usage(format!(
            "{format} takes one attribute; choose it with --attrs: {}",
            schema
                .attributes
                .iter()
                .map(|a| a.name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        )));
    }
    match (&selection.options, selection.shape.clone()) {
        (Some(_), Some(shape)) => Ok((selection, shape)),
        _ => Err(CliError::usage(format!(
            "{}: nothing is written there; give a --range",
            args.uri
        ))),
    }
}

fn only_column(mut set: ColumnSet) -> Result<ColumnBuffers> {
    set.columns
        .pop()
        .ok_or_else(|| CliError::Format("the read gave no column".into()))
}

fn npy(session: &Session, array: &Array, args: &ExportArgs, file: &TempFile) -> Result<u64> {
    let (selection, shape) = one_dense_attribute(array, args, ".npy")?;
    let columns = Columns::new(array, &selection.fields, args.columns.raw)?;
    let columns_first = args.selection.order == OrderArg::Col;
    let mut writer = NpyWriter::new(file.writer()?, &columns.types()[0], &shape, columns_first)?;
    let progress = session.progress(selection.cell_num());
    let cells = each_batch(array, &selection, &progress, |set| {
        writer.write(&only_column(set)?)
    })?;
    writer.finish()?;
    Ok(cells)
}

fn png(session: &Session, array: &Array, args: &ExportArgs, file: &TempFile) -> Result<u64> {
    let (selection, shape) = one_dense_attribute(array, args, ".png")?;
    let (rows, columns) = sides(&array.schema().domain, &shape)?;
    if args.selection.order == OrderArg::Col {
        return Err(CliError::usage(
            ".png has no --order col: the first dimension goes down, the second to the right",
        ));
    }
    let types = Columns::new(array, &selection.fields, true)?;
    let column = &types.types()[0];
    let colour = match (Colour::of(column)?, args.picture.colours) {
        (Colour::Grey, Some(map)) if map != ColourMap::Grey => Colour::Mapped(map),
        (colour, _) => colour,
    };
    let fill = fill_value(array, &column.name);
    let mut scale = Scale::EMPTY;
    if let Some((low, high)) = args.picture.scale {
        scale = Scale { low, high };
    } else if matches!(colour, Colour::Grey | Colour::Mapped(_)) {
        let progress = session.progress(selection.cell_num());
        each_batch(array, &selection, &progress, |set| {
            scale.widen(&only_column(set)?, &fill);
            Ok(())
        })?;
    }
    let mut writer = PngWriter::new(file.writer()?, (rows, columns), colour, scale, fill)?;
    let progress = session.progress(selection.cell_num());
    let cells = each_batch(array, &selection, &progress, |set| {
        writer.write(&only_column(set)?)
    })?;
    writer.finish()?;
    Ok(cells)
}

/// Rows and columns of a picture: the two dimensions of which more than one coordinate is selected.
fn sides(domain: &Domain, shape: &[u64]) -> Result<(u64, u64)> {
    if let &[rows, columns] = shape {
        return Ok((rows, columns));
    }
    let long: Vec<(u64, &str)> = shape
        .iter()
        .zip(&domain.dimensions)
        .filter(|(length, _)| **length > 1)
        .map(|(length, dimension)| (*length, dimension.name.as_str()))
        .collect();
    match long[..] {
        [] => Ok((1, 1)),
        [(columns, _)] => Ok((1, columns)),
        [(rows, _), (columns, _)] => Ok((rows, columns)),
        _ => Err(CliError::usage(format!(
            "a picture shows two dimensions, and {} are selected: {}; fix the others, as in --range {}=0",
            long.len(),
            long.iter()
                .map(|(_, name)| *name)
                .collect::<Vec<_>>()
                .join(", "),
            long.first().map_or("", |(_, name)| name)
        ))),
    }
}

/// The fill value where it cannot be mistaken for data: the lowest or highest of its type, NaN, or
/// one chosen for it.
fn fill_value(array: &Array, name: &str) -> Vec<u8> {
    array
        .schema()
        .attributes
        .iter()
        .find(|a| a.name == name)
        .map_or_else(Vec::new, |attribute| {
            let ambiguous = attribute.datatype.size() == 1;
            if ambiguous {
                Vec::new()
            } else {
                attribute.fill_value.clone()
            }
        })
}
