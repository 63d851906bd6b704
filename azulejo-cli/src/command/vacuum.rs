//! `azulejo vacuum`: removes what consolidation has replaced.

use super::fleet::{self, Done, Objects};
use super::schema::plural;
use crate::args::{ModeArg, VacuumArgs};
use crate::error::{CliError, Result};
use crate::output::table::Align;
use crate::session::Session;
use crate::size;
use azulejo::consolidate::{VacuumOptions, Vacuumed};
use serde_json::{Value as Json, json};
use std::io::Write;

/// Runs the command.
pub fn run(session: &mut Session, args: &VacuumArgs) -> Result<()> {
    if args.recursive {
        return every(session, args);
    }
    let vacuumed = vacuum(session, &args.uri, args.mode, args.dry_run)?;
    if session.output.json {
        return session.output.write_json(&json(&vacuumed));
    }
    print(session, &vacuumed)
}

/// Vacuums every array of a group or folder: a row for each.
fn every(session: &mut Session, args: &VacuumArgs) -> Result<()> {
    let Some(mode) = args.mode.of_array() else {
        return Err(CliError::usage("--mode group-meta is of one group"));
    };
    let options = VacuumOptions::new().dry_run(args.dry_run);
    let columns = ["fragments", "files", "size"].map(|name| (name, Align::Right));
    let of = Objects::Arrays;
    let done = fleet::each(session, &args.uri, of, &columns, |context, uri| {
        let vacuumed = context.array(uri).vacuum(mode, options)?;
        Ok(Done {
            cells: vec![
                size::count(vacuumed.folders.len() as u64),
                size::count(vacuumed.files.len() as u64),
                size::text(vacuumed.bytes),
            ],
            json: ("vacuumed", json(&vacuumed)),
            unsound: false,
        })
    })?;
    done.or_first_error()
}

/// Vacuums.
pub fn vacuum(session: &Session, uri: &str, mode: ModeArg, dry_run: bool) -> Result<Vacuumed> {
    session.work(|context| {
        let options = VacuumOptions::new().dry_run(dry_run);
        match mode.of_array() {
            Some(mode) => context.array(uri).vacuum(mode, options),
            None => context.group(uri).vacuum_metadata(options),
        }
    })
}

/// What was removed, for programs.
pub fn json(vacuumed: &Vacuumed) -> Json {
    let paths = |paths: &[azulejo::storage::StorePath]| -> Vec<String> {
        paths.iter().map(ToString::to_string).collect()
    };
    let kept: Vec<Json> = vacuumed
        .kept
        .iter()
        .map(|kept| json!({ "path": kept.path.to_string(), "reason": kept.reason }))
        .collect();
    json!({
        "dry_run": vacuumed.dry_run,
        "files": paths(&vacuumed.files),
        "folders": paths(&vacuumed.folders),
        "bytes": vacuumed.bytes,
        "kept": kept,
    })
}

/// What was removed, for people.
pub fn print(session: &mut Session, vacuumed: &Vacuumed) -> Result<()> {
    if vacuumed.files.is_empty() && vacuumed.folders.is_empty() {
        session.output.note("nothing to vacuum");
    } else {
        if vacuumed.dry_run {
            for path in vacuumed.folders.iter().chain(&vacuumed.files) {
                writeln!(session.output, "{path}")?;
            }
        }
        let (files, folders) = (
            plural(vacuumed.files.len(), "file"),
            plural(vacuumed.folders.len(), "fragment"),
        );
        let verb = if vacuumed.dry_run {
            "would remove"
        } else {
            "removed"
        };
        writeln!(
            session.output,
            "{verb} {folders} and {files}, {}",
            size::text(vacuumed.bytes)
        )?;
    }
    for kept in &vacuumed.kept {
        session
            .output
            .note(&format!("{} stays: {}", kept.path, kept.reason));
    }
    Ok(())
}
