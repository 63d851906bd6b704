//! `azulejo snapshot`: names of moments.

use super::schema::{plural, print};
use crate::args::{SnapshotArgs, SnapshotCommand};
use crate::error::Result;
use crate::moment::timestamp_text;
use crate::output::table::{Align, Table};
use crate::session::Session;
use serde_json::{Value as Json, json};
use std::io::Write;

/// Runs the command.
pub fn run(session: &mut Session, args: &SnapshotArgs) -> Result<()> {
    match &args.command {
        SnapshotCommand::Create { uri, name, at } => {
            let at = at.as_ref();
            let at = at.map(|at| at.last(&session.context, uri)).transpose()?;
            let objects = session.context.object(uri).create_snapshot(name, at)?;
            let at = session.context.object(uri).snapshot_time(name)?;
            if session.output.json {
                let json = json!({ "name": name, "at": at, "objects": objects });
                return session.output.write_json(&json);
            }
            let moment = timestamp_text(at);
            match objects.len() {
                1 => writeln!(session.output, "{uri}@{name} is {uri} as of {moment}")?,
                n => writeln!(
                    session.output,
                    "{uri}@{name} is {uri} as of {moment}, with all of its {}",
                    plural(n - 1, "member")
                )?,
            }
            Ok(())
        }
        SnapshotCommand::List { uri } => list(session, uri),
        SnapshotCommand::Remove { uri, name } => {
            let objects = session.context.object(uri).remove_snapshot(name)?;
            if session.output.json {
                let json = json!({ "name": name, "removed_from": objects });
                return session.output.write_json(&json);
            }
            Ok(writeln!(
                session.output,
                "removed {name} from {}",
                plural(objects.len(), "object")
            )?)
        }
    }
}

fn list(session: &mut Session, uri: &str) -> Result<()> {
    let snapshots = session.context.object(uri).snapshots()?;
    if session.output.json {
        let rows = snapshots
            .iter()
            .map(|s| json!({ "name": s.name, "at": s.at, "made": s.made }));
        let rows: Vec<Json> = rows.collect();
        return session.output.write_json(&Json::Array(rows));
    }
    if snapshots.is_empty() {
        session.output.note("no named snapshots");
        return Ok(());
    }
    let mut table = Table::new(["name", "at", "made"].map(|name| (name, Align::Left)));
    for snapshot in &snapshots {
        table.row([
            snapshot.name.clone(),
            timestamp_text(snapshot.at),
            timestamp_text(snapshot.made),
        ]);
    }
    print(&mut session.output, &table)
}
