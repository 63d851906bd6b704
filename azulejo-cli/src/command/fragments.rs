//! `azulejo fragments`: one row a fragment.

use super::schema::{plural, print, range_text};
use crate::args::ObjectArgs;
use crate::error::Result;
use crate::moment;
use crate::object::{self, DiskUsage};
use crate::output::table::{Align, Table};
use crate::schema_json::encode_rectangle;
use crate::session::Session;
use crate::size;
use azulejo::Array;
use azulejo::array::Fragment;
use serde_json::{Value as Json, json};
use std::io::Write;

/// What is said about a fragment.
#[derive(Debug)]
pub struct FragmentRow<'a> {
    /// The fragment.
    pub fragment: &'a Fragment,
    /// Cells that it holds: of a dense fragment those of the tiles it touches.
    pub cells: u64,
    /// Its files.
    pub usage: DiskUsage,
}

impl<'a> FragmentRow<'a> {
    /// The fragments of an array, oldest first.
    pub fn all(array: &'a Array) -> Result<Vec<Self>> {
        array
            .fragments()
            .iter()
            .map(|fragment| {
                Ok(Self {
                    fragment,
                    cells: fragment.cell_num(),
                    usage: object::disk_usage(fragment.location())?,
                })
            })
            .collect()
    }

    /// Whether it came from several others.
    fn is_consolidated(&self) -> bool {
        let time = self.fragment.time_range();
        time.start != time.end || self.fragment.has_timestamps()
    }
}

/// Runs the command.
pub fn run(session: &mut Session, args: &ObjectArgs) -> Result<()> {
    let array = session.open(&args.uri, &args.time)?;
    let rows = FragmentRow::all(&array)?;
    if session.output.json {
        let rows: Vec<Json> = rows.iter().map(row_json).collect();
        return session.output.write_json(&Json::Array(rows));
    }
    if rows.is_empty() {
        session.output.note("no fragments");
        return Ok(());
    }
    let mut table = Table::new([
        ("written", Align::Left),
        ("cells", Align::Right),
        ("size", Align::Right),
        ("tiles", Align::Right),
        ("version", Align::Right),
        ("kind", Align::Left),
        ("domain", Align::Left),
        ("name", Align::Left),
    ]);
    for row in &rows {
        let fragment = row.fragment;
        let footer = fragment.footer();
        let kind = match (fragment.is_dense(), row.is_consolidated()) {
            (true, false) => "dense",
            (true, true) => "dense, consolidated",
            (false, false) => "sparse",
            (false, true) => "sparse, consolidated",
        };
        table.row([
            time_text(fragment),
            size::count(row.cells),
            size::text(row.usage.bytes),
            size::count(fragment.tile_num()),
            footer.version.to_string(),
            kind.to_owned(),
            domain_text(fragment),
            fragment.name().to_owned(),
        ]);
    }
    let out = &mut session.output;
    print(out, &table)?;
    let cells: u64 = rows.iter().fold(0, |n, row| n.saturating_add(row.cells));
    let bytes: u64 = rows.iter().map(|row| row.usage.bytes).sum();
    writeln!(out, "{}, {} cells, {}", plural(rows.len(), "fragment"), size::count(cells), size::text(bytes))?;
    Ok(())
}

/// When a fragment was written.
pub fn time_text(fragment: &Fragment) -> String {
    let time = fragment.time_range();
    if time.start == time.end {
        moment::timestamp_text(time.start)
    } else {
        format!("{} to {}", moment::timestamp_text(time.start), moment::timestamp_text(time.end))
    }
}

fn domain_text(fragment: &Fragment) -> String {
    let Some(rectangle) = &fragment.footer().non_empty_domain else { return "empty".to_owned() };
    let dimensions = &fragment.schema().domain.dimensions;
    let ranges = dimensions.iter().zip(&rectangle.ranges);
    ranges.map(|(d, range)| range_text(d.datatype, range)).collect::<Vec<_>>().join(" x ")
}

fn row_json(row: &FragmentRow<'_>) -> Json {
    let fragment = row.fragment;
    let schema = fragment.schema();
    let footer = fragment.footer();
    let time = fragment.time_range();
    json!({
        "name": fragment.name(),
        "uri": fragment.location().path.as_str(),
        "version": footer.version.number(),
        "dense": fragment.is_dense(),
        "timestamps": [time.start, time.end],
        "consolidated": row.is_consolidated(),
        "cell_timestamps": fragment.has_timestamps(),
        "delete_metadata": fragment.has_delete_metadata(),
        "cells": row.cells,
        "tiles": fragment.tile_num(),
        "files": row.usage.files,
        "bytes": row.usage.bytes,
        "schema": footer.schema_name,
        "non_empty_domain": footer.non_empty_domain.as_ref().map(|r| encode_rectangle(&schema.domain, r)),
    })
}
