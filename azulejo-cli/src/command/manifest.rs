//! `azulejo manifest`: what lies in an array or group, for readers who cannot list folders.

use super::fleet::{self, Done, Objects};
use super::schema::plural;
use crate::args::ManifestArgs;
use crate::error::{CliError, Result};
use crate::moment::timestamp_text;
use crate::output::table::Align;
use crate::session::Session;
use crate::size;
use azulejo::object::{Change, ManifestState, Manifests, WrittenManifest};
use serde_json::{Value as Json, json};
use std::io::Write;

/// Changes that are shown.
const SHOWN_CHANGES: usize = 20;

/// Runs the command.
pub fn run(session: &mut Session, args: &ManifestArgs) -> Result<()> {
    match (args.recursive, args.check) {
        (true, false) => return every(session, args),
        (true, true) => return check_every(session, args),
        (false, true) => return check(session, &args.uri),
        (false, false) => {}
    }
    let Manifests {
        written, skipped, ..
    } = session.context.object(&args.uri).write_manifests()?;
    for (member, error) in &skipped {
        session
            .output
            .note(&format!("{member} has no manifest: {error}"));
    }
    if session.output.json {
        let skipped: Vec<&str> = skipped.iter().map(|(member, _)| member.as_str()).collect();
        let written: Vec<Json> = written.iter().map(written_json).collect();
        return session
            .output
            .write_json(&json!({ "written": written, "skipped": skipped }));
    }
    for WrittenManifest {
        uri,
        files,
        bytes,
        made,
        ..
    } in &written
    {
        let (files, bytes) = (plural(*files, "file"), size::text(*bytes as u64));
        writeln!(
            session.output,
            "{uri}: {files} as of {}, {bytes}",
            timestamp_text(*made)
        )?;
    }
    Ok(())
}

/// Writes the manifests of every array and group of a folder: a row for each that lies in no group.
fn every(session: &mut Session, args: &ManifestArgs) -> Result<()> {
    let columns = ["manifests", "files", "size", "skipped"].map(|name| (name, Align::Right));
    let of = Objects::Outermost;
    let done = fleet::each(session, &args.uri, of, &columns, |context, uri| {
        let Manifests {
            written, skipped, ..
        } = context.object(uri).write_manifests()?;
        let sum = |of: fn(&WrittenManifest) -> usize| written.iter().map(of).sum::<usize>() as u64;
        let skipped: Vec<&str> = skipped.iter().map(|(member, _)| member.as_str()).collect();
        let rows: Vec<Json> = written.iter().map(written_json).collect();
        Ok(Done {
            cells: vec![
                size::count(written.len() as u64),
                size::count(sum(|written| written.files)),
                size::text(sum(|written| written.bytes)),
                size::count(skipped.len() as u64),
            ],
            json: ("manifests", json!({ "written": rows, "skipped": skipped })),
            unsound: false,
        })
    })?;
    done.or_first_error()
}

/// Compares the manifests of all arrays and groups with what is there.
fn check_every(session: &mut Session, args: &ManifestArgs) -> Result<()> {
    let columns = [("made", Align::Left), ("changes since", Align::Right)];
    let of = Objects::All;
    let done = fleet::each(session, &args.uri, of, &columns, |context, uri| {
        Ok(match context.object(uri).manifest_state()? {
            None => Done {
                cells: vec!["no manifest".to_owned(), String::new()],
                json: ("manifest", Json::Null),
                unsound: true,
            },
            Some(ManifestState { made, changes, .. }) => {
                let list: Vec<Json> = changes.iter().map(change_json).collect();
                Done {
                    cells: vec![timestamp_text(made), size::count(changes.len() as u64)],
                    json: ("manifest", json!({ "made": made, "changes": list })),
                    unsound: !changes.is_empty(),
                }
            }
        })
    })?;
    let (objects, stale) = (done.objects, done.unsound);
    done.or_first_error()?;
    match stale {
        0 => Ok(()),
        _ => Err(CliError::Stale(format!(
            "{stale} of {objects} manifests are stale or missing"
        ))),
    }
}

fn written_json(written: &WrittenManifest) -> Json {
    json!({
        "uri": written.uri,
        "kind": written.object_type.to_string(),
        "made": written.made,
        "files": written.files,
        "bytes": written.bytes,
    })
}

fn check(session: &mut Session, uri: &str) -> Result<()> {
    let Some(ManifestState { made, changes, .. }) = session.context.object(uri).manifest_state()?
    else {
        return Err(CliError::Stale(format!("{uri} has no manifest")));
    };
    let moment = timestamp_text(made);
    if session.output.json {
        let changes: Vec<Json> = changes.iter().map(change_json).collect();
        session
            .output
            .write_json(&json!({ "made": made, "changes": changes }))?;
    } else {
        for change in changes.iter().take(SHOWN_CHANGES) {
            let (verb, path) = words(change);
            writeln!(session.output, "{verb:<8} {path}")?;
        }
        if changes.len() > SHOWN_CHANGES {
            writeln!(
                session.output,
                "... and {} more",
                changes.len() - SHOWN_CHANGES
            )?;
        }
    }
    if changes.is_empty() {
        session
            .output
            .note(&format!("the manifest of {moment} is up to date"));
        return Ok(());
    }
    session.output.flush()?;
    Err(CliError::Stale(format!(
        "the manifest of {moment} is stale: {} since",
        plural(changes.len(), "change")
    )))
}

fn words(change: &Change) -> (&'static str, &str) {
    match change {
        Change::Added(path) => ("added", path),
        Change::Gone(path) => ("gone", path),
        Change::Resized(path) => ("resized", path),
    }
}

fn change_json(change: &Change) -> Json {
    let (what, path) = words(change);
    json!({ "change": what, "path": path })
}
