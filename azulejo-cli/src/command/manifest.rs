//! `azulejo manifest`: what lies in an array or group, for readers who cannot list folders.

use super::schema::plural;
use crate::args::ManifestArgs;
use crate::error::{CliError, Result};
use crate::moment::timestamp_text;
use crate::session::Session;
use crate::size;
use azulejo::object::{Change, ManifestState, Manifests, WrittenManifest};
use serde_json::{Value as Json, json};
use std::io::Write;

/// Changes that are shown.
const SHOWN_CHANGES: usize = 20;

/// Runs the command.
pub fn run(session: &mut Session, args: &ManifestArgs) -> Result<()> {
    if args.check {
        return check(session, &args.uri);
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
