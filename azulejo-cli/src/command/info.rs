//! `azulejo info`: what an array or group is.

use super::meta::metadata_json;
use super::schema::{attributes, dimensions, orders, plural, print, title};
use super::survey::Survey;
use crate::args::ObjectArgs;
use crate::error::Result;
use crate::moment;
use crate::object::{self, DiskUsage};
use crate::output::table::{Align, Table, shorten};
use crate::session::Session;
use crate::size;
use azulejo::Array;
use azulejo::fragment_info::FragmentInfo;
use azulejo::group::ObjectType;
use azulejo::json::{SchemaDocument, rectangle_json};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::io::Write;

/// Metadata entries that are shown.
const SHOWN_ENTRIES: usize = 10;
/// Characters of a value that are shown.
const SHOWN_CHARACTERS: usize = 60;

/// Runs the command.
pub fn run(session: &mut Session, args: &ObjectArgs) -> Result<()> {
    match session.object_type(&args.uri)? {
        Some(ObjectType::Group) => group(session, args),
        // What is no array gets the error that says so.
        Some(ObjectType::Array) | None => array(session, args),
    }
}

fn array(session: &mut Session, args: &ObjectArgs) -> Result<()> {
    let array = session.open(&args.uri, &args.time)?;
    let fragments = array.fragment_info();
    let usage = object::disk_usage(array.location())?;
    let written = array.non_empty_domain()?;
    let metadata = array.metadata()?;
    let manifest = Shown::of(session, &args.uri, array.listed_at())?;
    let advice = Survey::of(&array)?.advice();
    let unfinished = session.context.object(&args.uri).unfinished();
    let unfinished = unfinished.ok().flatten();
    if session.output.json {
        let versions: BTreeSet<u32> = fragments
            .fragments()
            .map(|f| f.version().number())
            .collect();
        let written = written
            .as_ref()
            .map(|r| rectangle_json(&array.schema().domain, r));
        return session.output.write_json(&json!({
            "kind": "array",
            "uri": args.uri,
            "encrypted": array.context().key().is_some(),
            "schema": SchemaDocument::of(&array)?.to_json()?,
            "schema_versions": array.schemas().len(),
            "non_empty_domain": written,
            "fragments": fragments.fragment_num(),
            "fragment_versions": versions,
            "fragment_cells": fragments.total_cell_num(),
            "timestamps": timestamps(&fragments),
            "deletes": array.deletes().len(),
            "metadata": metadata_json(metadata),
            "files": usage.files,
            "bytes": usage.bytes,
            "manifest": manifest.json(),
            "advice": advice,
            "unfinished": unfinished,
        }));
    }
    let schema = array.schema();
    let out = &mut session.output;
    writeln!(out, "{}", args.uri)?;
    writeln!(out, "{}", title(schema))?;
    dimensions(
        out,
        schema,
        written
            .as_ref()
            .map(|rectangle| rectangle.ranges.as_slice()),
    )?;
    attributes(out, schema)?;
    orders(out, schema)?;
    contents(out, &array, &fragments, usage)?;
    if let Some(advice) = advice {
        writeln!(out, "advice             {advice}")?;
    }
    if let Some(source) = unfinished {
        writeln!(
            out,
            "unfinished         the {source} is under way or was cut short: only a part of it may be here"
        )?;
    }
    manifest.print(out)?;
    let shown = metadata.iter().take(SHOWN_ENTRIES);
    if !metadata.is_empty() {
        writeln!(out)?;
        out.heading(&format!("Metadata, {}", plural(metadata.len(), "key")))?;
        let mut table = Table::new([
            ("key", Align::Left),
            ("type", Align::Left),
            ("value", Align::Left),
        ]);
        for (key, value) in shown {
            table.row([
                key.clone(),
                value.datatype.to_string(),
                shorten(&super::meta::value_text(value), SHOWN_CHARACTERS).into_owned(),
            ]);
        }
        print(out, &table)?;
    }
    if metadata.len() > SHOWN_ENTRIES {
        writeln!(out, "... `azulejo meta` shows all")?;
    }
    Ok(())
}

fn contents(
    out: &mut crate::terminal::Output,
    array: &Array,
    fragments: &FragmentInfo,
    usage: DiskUsage,
) -> Result<()> {
    let cells = fragments.total_cell_num();
    let mut line = plural(fragments.fragment_num(), "fragment");
    if let Some((first, last)) = timestamps(fragments) {
        let versions: BTreeSet<u32> = fragments
            .fragments()
            .map(|f| f.version().number())
            .collect();
        let versions: Vec<String> = versions.iter().map(u32::to_string).collect();
        let versions = versions.join(", ");
        line = format!(
            "{line} of format version {versions}, {} cells",
            size::count(cells)
        );
        writeln!(out, "fragments          {line}")?;
        let first_text = moment::timestamp_text(first);
        if first == last {
            writeln!(out, "written            {first_text}")?;
        } else {
            writeln!(
                out,
                "written            {first_text} to {}",
                moment::timestamp_text(last)
            )?;
        }
    } else {
        writeln!(out, "fragments          none: nothing is written")?;
    }
    if array.schemas().len() > 1 {
        writeln!(
            out,
            "schema             evolved, {} versions",
            array.schemas().len()
        )?;
    }
    if !array.deletes().is_empty() {
        writeln!(out, "deletes            {}", array.deletes().len())?;
    }
    let files = plural(usize::try_from(usage.files).unwrap_or(usize::MAX), "file");
    writeln!(
        out,
        "on disk            {} in {files}",
        size::text(usage.bytes)
    )?;
    if array.context().key().is_some() {
        writeln!(out, "encryption         AES-256-GCM")?;
    }
    Ok(())
}

/// What is to be said of an object's manifest.
enum Shown {
    /// There is none.
    None,
    /// The object is shown as it says: nobody can tell what has changed since.
    Used(u64),
    /// Folders were listed; the manifest is as old as this and differs in so many places.
    Beside(u64, usize),
}

impl Shown {
    fn of(session: &Session, uri: &str, listed_at: Option<u64>) -> Result<Self> {
        if let Some(moment) = listed_at {
            return Ok(Self::Used(moment));
        }
        let state = session.context.object(uri).manifest_state()?;
        Ok(state.map_or(Self::None, |state| {
            Self::Beside(state.made, state.changes.len())
        }))
    }

    fn json(&self) -> Json {
        match self {
            Self::None => Json::Null,
            Self::Used(made) => json!({ "made": made, "used": true }),
            Self::Beside(made, changes) => {
                json!({ "made": made, "used": false, "changes": changes })
            }
        }
    }

    fn print(&self, out: &mut impl Write) -> Result<()> {
        match self {
            Self::None => {}
            Self::Used(made) => {
                let moment = moment::timestamp_text(*made);
                writeln!(
                    out,
                    "shown              as of {moment}, by its manifest; later writes are not seen"
                )?;
            }
            Self::Beside(made, 0) => {
                writeln!(
                    out,
                    "manifest           of {}, up to date",
                    moment::timestamp_text(*made)
                )?;
            }
            Self::Beside(made, changes) => {
                let (moment, changes) = (moment::timestamp_text(*made), plural(*changes, "change"));
                writeln!(
                    out,
                    "manifest           of {moment}, stale: {changes} since"
                )?;
            }
        }
        Ok(())
    }
}

/// The first and the last time that a fragment was written at.
fn timestamps(fragments: &FragmentInfo) -> Option<(u64, u64)> {
    let first = fragments.fragments().map(|f| f.time_range().start).min()?;
    Some((
        first,
        fragments.fragments().map(|f| f.time_range().end).max()?,
    ))
}

fn group(session: &mut Session, args: &ObjectArgs) -> Result<()> {
    let group = session
        .context
        .group(&args.uri)
        .open_at(args.time.range(&session.context, &args.uri)?)?;
    let members = super::ls::members(&group, &args.uri)?;
    let metadata = group.metadata()?;
    let usage = object::disk_usage(group.location())?;
    let manifest = Shown::of(session, &args.uri, group.listed_at())?;
    if session.output.json {
        let members: Vec<Json> = members.iter().map(super::ls::Row::json).collect();
        return session.output.write_json(&json!({
            "kind": "group",
            "uri": args.uri,
            "members": members,
            "metadata": metadata_json(&metadata),
            "files": usage.files,
            "bytes": usage.bytes,
            "manifest": manifest.json(),
        }));
    }
    let out = &mut session.output;
    writeln!(out, "{}", args.uri)?;
    let files = plural(usize::try_from(usage.files).unwrap_or(usize::MAX), "file");
    writeln!(
        out,
        "group, {}, {} in {files}",
        plural(members.len(), "member"),
        size::text(usage.bytes)
    )?;
    manifest.print(out)?;
    if !members.is_empty() {
        writeln!(out)?;
        out.heading("Members")?;
        super::ls::print_rows(out, &members)?;
    }
    if !metadata.is_empty() {
        writeln!(out)?;
        out.heading(&format!("Metadata, {}", plural(metadata.len(), "key")))?;
        let mut table = Table::new([
            ("key", Align::Left),
            ("type", Align::Left),
            ("value", Align::Left),
        ]);
        for (key, value) in &metadata {
            table.row([
                key.clone(),
                value.datatype.to_string(),
                shorten(&super::meta::value_text(value), SHOWN_CHARACTERS).into_owned(),
            ]);
        }
        print(out, &table)?;
    }
    Ok(())
}
