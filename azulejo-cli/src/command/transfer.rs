//! `azulejo copy` and `azulejo move`: arrays and groups as a whole.

use crate::args::{CopyArgs, TransferArgs};
use crate::error::Result;
use crate::session::Session;
use crate::sole::Sole;
use serde_json::json;
use std::io::Write;

/// Runs `copy`.
pub fn copy(session: &mut Session, args: &CopyArgs) -> Result<()> {
    let places = &args.places;
    let _sole = Sole::at(&places.to)?;
    let Some(at) = &args.at else {
        session.work(|context| context.object(&places.from).copy_to(&places.to))?;
        return done(session, places, "copied");
    };
    let at = at.last(&session.context, &places.from)?;
    let copied = session.work(|context| context.object(&places.from).copy_at(at, &places.to))?;
    for member in &copied.missing {
        session.output.note(&format!(
            "{member} was not there then, and is no member of the copy"
        ));
    }
    for member in &copied.elsewhere {
        session.output.note(&format!(
            "{member} lies outside the group: the copy names it as it is now"
        ));
    }
    if session.output.json {
        return session.output.write_json(&json!({
            "copied": places.from,
            "to": places.to,
            "at": at,
            "objects": copied.objects,
            "cells": copied.cells,
            "missing": copied.missing,
            "elsewhere": copied.elsewhere,
        }));
    }
    done(session, places, "copied")
}

/// Runs `move`.
pub fn rename(session: &mut Session, args: &TransferArgs) -> Result<()> {
    let _sole = Sole::at(&args.to)?;
    session.work(|context| context.object(&args.from).rename_to(&args.to))?;
    session
        .output
        .note("groups elsewhere that name it are not told");
    done(session, args, "moved")
}

fn done(session: &mut Session, args: &TransferArgs, verb: &str) -> Result<()> {
    if session.output.json {
        return session
            .output
            .write_json(&json!({ verb: args.from, "to": args.to }));
    }
    Ok(writeln!(
        session.output,
        "{verb} {} to {}",
        args.from, args.to
    )?)
}
