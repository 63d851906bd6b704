//! `azulejo delete`: cells, fragments, or whole arrays and groups.

use super::schema::plural;
use crate::args::DeleteArgs;
use crate::error::{CliError, Result};
use crate::session::Session;
use crate::size;
use azulejo::array::{DeletedFragments, FragmentSelection};
use azulejo::format::condition::Condition;
use azulejo::read::ReadOptions;
use azulejo::space::Layout;
use azulejo::{Array, TimeRange};
use serde_json::{Value as Json, json};
use std::io::Write;

/// Runs the command.
pub fn run(session: &mut Session, args: &DeleteArgs) -> Result<()> {
    if let Some(text) = &args.condition {
        return cells(session, args, text);
    }
    let time = TimeRange {
        start: args.from.unwrap_or(0),
        end: args.to.unwrap_or(u64::MAX),
    };
    match (&args.fragments[..], args.from.or(args.to)) {
        ([], None) => objects(session, args),
        ([], Some(_)) => fragments(session, args, FragmentSelection::Within(time)),
        (names, _) => fragments(session, args, FragmentSelection::Named(names)),
    }
}

fn cells(session: &mut Session, args: &DeleteArgs, text: &str) -> Result<()> {
    let time = TimeRange::until(args.at.unwrap_or(u64::MAX));
    let array = session.context.array(&args.uri).open_at(time)?;
    let lookup = |name: &str| array.enumeration(name);
    let condition = azulejo::condition::parse(text, array.schema(), &lookup)?;
    if args.dry_run {
        let count = count(&array, condition)?;
        if session.output.json {
            return session
                .output
                .write_json(&json!({ "dry_run": true, "cells": count }));
        }
        return Ok(writeln!(
            session.output,
            "{} cells meet the condition",
            size::count(count)
        )?);
    }
    let name = session
        .context
        .array(&args.uri)
        .delete_cells(&condition, args.at)?;
    if session.output.json {
        return session
            .output
            .write_json(&json!({ "dry_run": false, "delete": name }));
    }
    Ok(writeln!(session.output, "deleted: {name}")?)
}

/// How many cells meet a condition. Null cells, which a delete takes too where it compares them,
/// are not among them.
fn count(array: &Array, condition: Condition) -> Result<u64> {
    let first = array
        .schema()
        .domain
        .dimensions
        .first()
        .map(|d| d.name.clone());
    let options = ReadOptions::new()
        .fields(first)
        .condition(condition)
        .layout(Layout::Unordered);
    let mut cells = 0;
    for batch in array.read(options)? {
        cells += batch?.cell_num as u64;
    }
    Ok(cells)
}

fn fragments(
    session: &mut Session,
    args: &DeleteArgs,
    selection: FragmentSelection<'_>,
) -> Result<()> {
    let context = &session.context;
    let DeletedFragments {
        deleted,
        kept_in_part,
    } = if args.dry_run {
        context.array(&args.uri).plan_fragment_deletion(selection)?
    } else {
        context.array(&args.uri).delete_fragments(selection)?
    };
    if session.output.json {
        let dry_run = args.dry_run;
        return session.output.write_json(
            &json!({ "dry_run": dry_run, "fragments": deleted, "kept_in_part": kept_in_part }),
        );
    }
    if args.dry_run {
        for name in &deleted {
            writeln!(session.output, "{name}")?;
        }
    }
    let verb = if args.dry_run {
        "would delete"
    } else {
        "deleted"
    };
    writeln!(
        session.output,
        "{verb} {}",
        plural(deleted.len(), "fragment")
    )?;
    for name in &kept_in_part {
        session
            .output
            .note(&format!("{name} stays: only a part of it is of that time"));
    }
    Ok(())
}

fn objects(session: &mut Session, args: &DeleteArgs) -> Result<()> {
    let plan = session
        .context
        .object(&args.uri)
        .plan_deletion(args.recursive)?;
    if !args.dry_run {
        if !args.yes {
            let what = match &plan[..] {
                [one] => format!("{} {}", one.object_type, one.uri),
                more => format!("{} with all members: {} objects", args.uri, more.len()),
            };
            return Err(CliError::usage(format!(
                "this would delete {what}, for good; --yes does it, --dry-run lists it (cells: --where, fragments: \
                 --from, --to, --fragment)"
            )));
        }
        session.context.object(&args.uri).delete(args.recursive)?;
    }
    let list: Vec<Json> = plan
        .iter()
        .map(|object| json!({ "uri": object.uri, "kind": object.object_type.to_string() }))
        .collect();
    if session.output.json {
        return session
            .output
            .write_json(&json!({ "dry_run": args.dry_run, "objects": list }));
    }
    let verb = if args.dry_run {
        "would delete"
    } else {
        "deleted"
    };
    for object in &plan {
        writeln!(
            session.output,
            "{verb} {} {}",
            object.object_type, object.uri
        )?;
    }
    Ok(())
}
