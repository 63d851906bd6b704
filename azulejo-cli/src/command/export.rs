//! `azulejo export`: cells to a file.

mod geotiff;
mod place;
mod salvage;
mod zarr;

use crate::args::{ExportArgs, ExportFormat, OrderArg, SelectionArgs};
use crate::cells::{Cells, each_batch};
use crate::columns::Columns;
use crate::command::cat::{note_bytes, readable};
use crate::error::{CliError, Result};
use crate::output::BatchWriter;
use crate::output::npy::NpyWriter;
use crate::output::out::{Out, Packing};
use crate::output::png::PngWriter;
use crate::picture::{Plane, Subject, only_column};
use crate::selection::{Coordinates, Selection, select};
use crate::session::Session;
use crate::size;
use crate::terminal::Output;
use azulejo::format::schema::shown_names;
use azulejo::{Array, ColumnSet};
use place::Place;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::Path;
use zarr::Version;

/// Runs the command.
pub fn run(session: &mut Session, args: &ExportArgs) -> Result<()> {
    let (packing, plain) = Packing::of(&args.file);
    let format = match args.format {
        Some(format) => format,
        None => format_of(&plain)?,
    };
    let to_stdout = args.file == Path::new("-");
    if to_stdout
        && Output::is_terminal()
        && !matches!(
            format,
            ExportFormat::Csv | ExportFormat::Tsv | ExportFormat::Ndjson
        )
    {
        return Err(CliError::usage(
            "bytes are no sight for a terminal; redirect them: > file",
        ));
    }
    let zarr = match format {
        ExportFormat::Zarr => Some(Version::V3),
        ExportFormat::Zarr2 => Some(Version::V2),
        _ => None,
    };
    if let Some(version) = zarr {
        if packing.is_some() {
            return Err(CliError::usage(
                "a Zarr store is a folder, which is not compressed as a whole: leave out the .gz or .zst",
            ));
        }
        return folder(session, args, version, to_stdout);
    }
    if args.skip_damaged && matches!(format, ExportFormat::Npy | ExportFormat::Png) {
        return Err(CliError::usage(
            "--skip-damaged leaves cells out, which .npy and .png cannot; export to .parquet, .arrow, .csv or .ndjson",
        ));
    }
    session.output.flush()?;
    let place = Place::new(session, &args.file, args.force)?;
    let in_file = |error: CliError| match to_stdout {
        true => error,
        false => error.in_file(&args.file),
    };
    let (cells, beside) = match format {
        ExportFormat::Geotiff => geotiff::write(session, args, &place, packing),
        _ => array(session, args, format, &place, packing).map(|cells| (cells, None)),
    }
    .map_err(in_file)?;
    let bytes = place.publish(session)?;
    beside.map_or(Ok(()), geotiff::Beside::publish)?;
    let file = args.file.display().to_string();
    if session.output.json && !to_stdout {
        return session
            .output
            .write_json(&json!({ "file": file, "cells": cells, "bytes": bytes }));
    }
    let bytes = bytes.map_or_else(String::new, |bytes| format!(", {}", size::text(bytes)));
    let file = if to_stdout { "standard output" } else { &file };
    session
        .output
        .note(&format!("{file}: {} cells{bytes}", size::count(cells)));
    Ok(())
}

/// Exports cells of an array; their number.
fn array(
    session: &mut Session,
    args: &ExportArgs,
    format: ExportFormat,
    place: &Place,
    packing: Option<Packing>,
) -> Result<u64> {
    let array = session.open(&args.uri, &args.time)?;
    session.output.flush()?;
    match format {
        ExportFormat::Npy => npy(session, &array, args, place, packing),
        ExportFormat::Png => png(session, &array, args, place, packing),
        _ => batches(session, &array, args, format, place, packing),
    }
}

/// Exports to a folder of Zarr, whole arrays and groups.
fn folder(
    session: &mut Session,
    args: &ExportArgs,
    version: Version,
    to_stdout: bool,
) -> Result<()> {
    let cells = &args.selection.cells;
    let part = cells.condition.is_some() || cells.points.is_some() || !cells.range.is_empty();
    let part = part || !cells.step.is_empty() || !cells.nearest.is_empty();
    if to_stdout || part || args.selection.attrs.is_some() || args.selection.limit.is_some() {
        return Err(CliError::usage(
            "Zarr is a folder of all cells: it has no selection, and is no stream",
        ));
    }
    let cells = zarr::write(session, args, version).map_err(|e| e.in_file(&args.file))?;
    let file = args.file.display().to_string();
    if session.output.json {
        return session
            .output
            .write_json(&json!({ "file": file, "cells": cells }));
    }
    session
        .output
        .note(&format!("{file}: {} cells", size::count(cells)));
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
        "tsv" => ExportFormat::Tsv,
        "ndjson" | "jsonl" => ExportFormat::Ndjson,
        "npy" => ExportFormat::Npy,
        "png" => ExportFormat::Png,
        "zarr" => ExportFormat::Zarr,
        "tif" | "tiff" => ExportFormat::Geotiff,
        _ => {
            return Err(CliError::usage(format!(
                "{}: the ending names no format; use .parquet .arrow .csv .tsv .ndjson .npy .png .zarr .tif, or --format",
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
    place: &Place,
    packing: Option<Packing>,
) -> Result<u64> {
    let columns = &args.columns;
    let coordinates =
        if columns.coords || columns.labels || (args.skip_damaged && array.schema().is_dense()) {
            Coordinates::Always
        } else {
            Coordinates::Sparse
        };
    // Sparse cells come as they lie: sorting them all costs time and memory, and is there for those
    // who ask for it.
    let order = match args.selection.order {
        None if !array.schema().is_dense() && !args.skip_damaged => Some(OrderArg::Global),
        order => order,
    };
    let cells = SelectionArgs {
        order,
        ..args.selection.clone()
    };
    let selection = select(array, &cells, coordinates)?;
    let mut columns = Columns::new(array, &selection.fields, args.columns.raw)?;
    if args.columns.labels {
        columns = columns.with_labels(array, &selection.fields)?;
    }
    // What is wrong with a selection shows before any output.
    let begin = || match args.skip_damaged {
        true => Ok(None),
        false => Cells::new(array, &selection).map(Some),
    };
    let mut begun = begin()?;
    columns = readable(session, columns, begun.as_ref().and_then(Cells::first));
    let mut bytes = BTreeSet::new();
    loop {
        let columns = columns.as_bytes(&bytes);
        let what = Export {
            array,
            selection: &selection,
            columns: &columns,
            format,
        };
        match what.write(session, begun, place.out(packing)?)? {
            Written::All(cells) => return Ok(cells),
            Written::NotUtf8(at) => {
                let name = &columns.types()[at].name;
                if !place.begins_again() {
                    return Err(CliError::Format(format!(
                        "{name:?} holds text that is not UTF-8; --raw gives its bytes"
                    )));
                }
                note_bytes(session, &columns, at);
                bytes.insert(at);
                begun = begin()?;
            }
        }
    }
}

enum Written {
    All(u64),
    /// A column whose text is not UTF-8.
    NotUtf8(usize),
}

/// Cells to be written as record batches.
struct Export<'a> {
    array: &'a Array,
    selection: &'a Selection,
    columns: &'a Columns,
    format: ExportFormat,
}

impl Export<'_> {
    /// Writes the cells of a read that is begun; without one those that can be read of a damaged
    /// array.
    fn write(&self, session: &Session, begun: Option<Cells>, whole: Out) -> Result<Written> {
        let converter = self.columns.converter()?;
        let schema = converter.schema();
        let out = BufWriter::with_capacity(1 << 18, whole.clone());
        let mut writer = match self.format {
            ExportFormat::Arrow => BatchWriter::arrow_file(out, schema)?,
            ExportFormat::Csv => BatchWriter::csv(out, schema)?,
            ExportFormat::Tsv => BatchWriter::tsv(out, schema)?,
            ExportFormat::Ndjson => BatchWriter::ndjson(out),
            _ => BatchWriter::parquet(out, schema)?,
        };
        let progress = session.progress(self.selection.cell_num());
        let mut not_utf8 = None;
        let mut take = |set: ColumnSet| {
            let set = self.columns.labelled(set);
            not_utf8 = self.columns.not_utf8(&set);
            match not_utf8 {
                // Ends the read; the caller begins anew.
                Some(_) => Err(CliError::Format(String::new())),
                None => writer.write(&converter.convert(set)?),
            }
        };
        let cells = match begun {
            Some(cells) => cells.for_each(&progress, take),
            None => salvage::each_batch(session, self.array, self.selection, &mut take),
        };
        if let Some(at) = not_utf8 {
            return Ok(Written::NotUtf8(at));
        }
        let cells = cells?;
        writer.finish()?;
        whole.finish()?;
        Ok(Written::All(cells))
    }
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
    if matches!(
        args.selection.order,
        Some(OrderArg::Global | OrderArg::Unordered)
    ) {
        return Err(CliError::usage(format!(
            "{format} has no --order global or unordered"
        )));
    }
    let selection = select(array, &args.selection, Coordinates::Never)?;
    if selection.fields.len() != 1 {
        return Err(CliError::usage(format!(
            "{format} takes one attribute; choose it with --attrs: {}",
            shown_names(schema.attributes.iter().map(|a| a.name.as_str()))
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

fn npy(
    session: &Session,
    array: &Array,
    args: &ExportArgs,
    place: &Place,
    packing: Option<Packing>,
) -> Result<u64> {
    let (selection, shape) = one_dense_attribute(array, args, ".npy")?;
    let columns = Columns::new(array, &selection.fields, args.columns.raw)?;
    let columns_first = args.selection.order == Some(OrderArg::Col);
    let whole = place.out(packing)?;
    let out = BufWriter::with_capacity(1 << 20, whole.clone());
    let mut writer = NpyWriter::new(out, &columns.types()[0], &shape, columns_first)?;
    let progress = session.progress(selection.cell_num());
    let cells = each_batch(array, &selection, &progress, |set| {
        writer.write(&only_column(set)?)
    })?;
    writer.finish()?;
    whole.finish()?;
    Ok(cells)
}

fn png(
    session: &Session,
    array: &Array,
    args: &ExportArgs,
    place: &Place,
    packing: Option<Packing>,
) -> Result<u64> {
    let subject = Subject {
        array,
        cells: &args.selection,
        look: &args.picture,
    };
    if args.columns.coords {
        return Err(CliError::usage(".png has no --coords"));
    }
    // A picture of a box goes row by row from the array to the file, whatever its size.
    let look = &args.picture;
    let plain = subject.is_plane() && !look.bar && !look.up && look.size.is_none();
    if plain {
        let plane = subject.plane()?;
        if !plane.sides.turned {
            return plane_to_png(session, &subject, &plane, place.out(packing)?);
        }
    }
    let (canvas, cells) = subject.canvas(session, None)?;
    let whole = place.out(packing)?;
    let mut out = BufWriter::new(whole.clone());
    canvas.write_png(&mut out)?;
    out.flush()?;
    whole.finish()?;
    Ok(cells)
}

fn plane_to_png(
    session: &Session,
    subject: &Subject<'_>,
    plane: &Plane,
    whole: Out,
) -> Result<u64> {
    let scale = subject.scale_of(session, plane)?;
    let size = (plane.sides.rows, plane.sides.columns);
    let missing = plane.missing.clone();
    let out = BufWriter::with_capacity(1 << 20, whole.clone());
    let mut writer = PngWriter::new(out, size, plane.colour, scale, missing)?;
    let progress = session.progress(plane.selection.cell_num());
    let cells = each_batch(subject.array, &plane.selection, &progress, |set| {
        writer.write(&only_column(set)?)
    })?;
    writer.finish()?;
    whole.finish()?;
    Ok(cells)
}
