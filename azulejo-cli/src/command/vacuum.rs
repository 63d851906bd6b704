//! `azulejo vacuum`: removes what consolidation has replaced.

use super::fleet;
use super::ls::Shortener;
use super::schema::plural;
use crate::args::{ModeArg, VacuumArgs};
use crate::error::{CliError, Result};
use crate::output::table::{Align, Table};
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
    let arrays = fleet::arrays(session, &args.uri)?;
    let options = VacuumOptions::new().dry_run(args.dry_run);
    let done = fleet::each(session, &arrays, |context, uri| {
        context.array(uri).vacuum(mode, options)
    })?;
    let shorten = Shortener::new(&args.uri)?;
    let mut table = Table::new([
        ("array", Align::Left),
        ("fragments", Align::Right),
        ("files", Align::Right),
        ("size", Align::Right),
    ]);
    let (mut rows, mut failed) = (Vec::new(), None);
    for (uri, vacuumed) in arrays.iter().zip(done) {
        let uri = shorten.uri(uri);
        match vacuumed {
            Ok(vacuumed) => {
                table.row([
                    uri.clone(),
                    size::count(vacuumed.folders.len() as u64),
                    size::count(vacuumed.files.len() as u64),
                    size::text(vacuumed.bytes),
                ]);
                rows.push(json!({ "uri": uri, "vacuumed": json(&vacuumed) }));
            }
            Err(error) => {
                table.row([uri.as_str(), "?", "", &error.to_string()]);
                rows.push(json!({ "uri": uri, "error": error.to_string() }));
                failed.get_or_insert(error);
            }
        }
    }
    match session.output.json {
        true => session.output.write_json(&Json::Array(rows))?,
        false => super::schema::print(&mut session.output, &table)?,
    }
    failed.map_or(Ok(()), |error| Err(error.into()))
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
