//! `azulejo fragments`: one row a fragment.

use super::schema::{plural, print, range_text};
use crate::args::ObjectArgs;
use crate::error::Result;
use crate::moment;
use crate::output::table::{Align, Table};
use crate::session::Session;
use crate::size;
use azulejo::fragment_info::FragmentDescription;
use azulejo::json::rectangle_json;
use serde_json::{Value as Json, json};
use std::io::Write;

/// Whether a fragment came from several others.
fn is_consolidated(fragment: &FragmentDescription<'_>) -> bool {
    let time = fragment.time_range();
    time.start != time.end || fragment.fragment().has_timestamps()
}

/// Runs the command.
pub fn run(session: &mut Session, args: &ObjectArgs) -> Result<()> {
    let array = session.open(&args.uri, &args.time)?;
    let info = array.fragment_info();
    if session.output.json {
        let rows = info
            .fragments()
            .map(|fragment| row_json(&fragment))
            .collect::<Result<Vec<Json>>>()?;
        return session.output.write_json(&Json::Array(rows));
    }
    if info.fragment_num() == 0 {
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
    ])
    .keep_whole("name");
    let mut bytes = 0u64;
    for fragment in info.fragments() {
        let kind = match (fragment.is_dense(), is_consolidated(&fragment)) {
            (true, false) => "dense",
            (true, true) => "dense, consolidated",
            (false, false) => "sparse",
            (false, true) => "sparse, consolidated",
        };
        let size = fragment.size()?;
        bytes = bytes.saturating_add(size);
        table.row([
            time_text(&fragment),
            size::count(fragment.cell_num()),
            size::text(size),
            size::count(fragment.tile_num()),
            fragment.version().to_string(),
            kind.to_owned(),
            domain_text(&fragment),
            fragment.name().to_owned(),
        ]);
    }
    let out = &mut session.output;
    print(out, &table)?;
    let cells = size::count(info.total_cell_num());
    writeln!(
        out,
        "{}, {cells} cells, {}",
        plural(info.fragment_num(), "fragment"),
        size::text(bytes)
    )?;
    Ok(())
}

/// When a fragment was written.
fn time_text(fragment: &FragmentDescription<'_>) -> String {
    let time = fragment.time_range();
    if time.start == time.end {
        moment::timestamp_text(time.start)
    } else {
        format!(
            "{} to {}",
            moment::timestamp_text(time.start),
            moment::timestamp_text(time.end)
        )
    }
}

fn domain_text(fragment: &FragmentDescription<'_>) -> String {
    let Some(rectangle) = fragment.non_empty_domain() else {
        return "empty".to_owned();
    };
    let dimensions = &fragment.schema().domain.dimensions;
    let ranges = dimensions.iter().zip(&rectangle.ranges);
    ranges
        .map(|(d, range)| range_text(d.datatype, range))
        .collect::<Vec<_>>()
        .join(" x ")
}

fn row_json(fragment: &FragmentDescription<'_>) -> Result<Json> {
    let time = fragment.time_range();
    let domain = &fragment.schema().domain;
    Ok(json!({
        "name": fragment.name(),
        "uri": fragment.uri(),
        "version": fragment.version().number(),
        "dense": fragment.is_dense(),
        "timestamps": [time.start, time.end],
        "consolidated": is_consolidated(fragment),
        "cell_timestamps": fragment.fragment().has_timestamps(),
        "delete_metadata": fragment.fragment().has_delete_metadata(),
        "consolidated_metadata": fragment.has_consolidated_metadata(),
        "cells": fragment.cell_num(),
        "tiles": fragment.tile_num(),
        "bytes": fragment.size()?,
        "schema": fragment.schema_name(),
        "non_empty_domain": fragment.non_empty_domain().map(|r| rectangle_json(domain, r)),
    }))
}
