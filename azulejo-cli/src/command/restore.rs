//! `azulejo restore`: an array as it was, as a new change.

use crate::args::{OrderArg, RestoreArgs, SelectionArgs};
use crate::error::Result;
use crate::moment::timestamp_text;
use crate::selection::{Coordinates, select};
use crate::session::Session;
use crate::size;
use azulejo::consolidate::Restored;
use azulejo::read::aggregate::{Aggregate, AggregateValue};
use azulejo::{Array, TimeRange};
use serde_json::json;
use std::io::Write;

/// Runs the command.
pub fn run(session: &mut Session, args: &RestoreArgs) -> Result<()> {
    let at = args.at.last(&session.context, &args.uri)?;
    let then = || session.context.array(&args.uri);
    let mut restored = match args.dry_run {
        true => then().plan_restore(at)?,
        false => session.work(|context| context.array(&args.uri).restore(at))?,
    };
    let array = then().open_at(TimeRange::until(at))?;
    // Of a dense array whole tiles are written.
    if args.dry_run || array.schema().is_dense() {
        restored.cells = cells(&array)?;
    }
    let Restored {
        cells,
        fragments,
        keys,
        lost,
        ..
    } = &restored;
    if session.output.json {
        return session.output.write_json(&json!({
            "dry_run": args.dry_run,
            "at": at,
            "cells": cells,
            "fragments": fragments,
            "metadata": keys,
            "lost_attributes": lost,
        }));
    }
    let verb = match args.dry_run {
        true => "would be as it was",
        false => "is as it was",
    };
    let (cells, moment) = (size::count(*cells), timestamp_text(at));
    writeln!(
        session.output,
        "{} {verb} at {moment}: {cells} cells",
        args.uri
    )?;
    if !keys.is_empty() {
        session
            .output
            .note(&format!("metadata: {}", keys.join(", ")));
    }
    if !lost.is_empty() {
        session.output.note(&format!(
            "not brought back, because the array has no such attributes now: {}",
            lost.join(", ")
        ));
    }
    Ok(())
}

/// How many cells an array has: of a dense one those in the box around what is written.
fn cells(array: &Array) -> Result<u64> {
    let all = SelectionArgs {
        order: Some(OrderArg::Unordered),
        ..SelectionArgs::default()
    };
    let Some(options) = select(array, &all, Coordinates::Never)?.options else {
        return Ok(0);
    };
    match array.aggregate(options, &[Aggregate::Count])?.first() {
        Some(AggregateValue::Unsigned(cells)) => Ok(*cells),
        _ => Ok(0),
    }
}
