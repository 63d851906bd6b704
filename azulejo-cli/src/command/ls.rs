//! `azulejo ls`: arrays and groups in a folder or group.

use super::schema::print;
use crate::args::PathArgs;
use crate::error::{CliError, Result};
use crate::object::{self, Kind};
use crate::output::table::{Align, Table};
use crate::pending::Group;
use crate::session::Session;
use crate::terminal::Output;
use azulejo::Context;
use azulejo::context::Location;
use azulejo::format::path::RootEntry;
use serde_json::{Value as Json, json};

/// Something that `ls` lists.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name in the group, or its folder's name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Where it lies.
    pub uri: String,
}

impl Row {
    /// As JSON.
    pub fn json(&self) -> Json {
        json!({ "name": self.name, "kind": self.kind.name(), "uri": self.uri })
    }
}

/// Runs the command.
pub fn run(session: &mut Session, args: &PathArgs) -> Result<()> {
    let location = object::locate(&session.context, &args.uri)?;
    let rows = children(&session.context, &args.uri, &location)?;
    if session.output.json {
        let rows: Vec<Json> = rows.iter().map(Row::json).collect();
        return session.output.write_json(&Json::Array(rows));
    }
    if rows.is_empty() {
        session.output.note("nothing there");
    }
    print_rows(&mut session.output, &rows)
}

/// What lies in a folder or group; an array lists itself.
pub fn children(context: &Context, uri: &str, location: &Location) -> Result<Vec<Row>> {
    let (kind, entries) = object::look(location)?;
    match kind {
        Kind::Array => Ok(vec![Row { name: location.path.name().to_owned(), kind, uri: uri.to_owned() }]),
        Kind::Group => {
            let group = Group::open(context, uri)?;
            Ok(members(&group))
        }
        Kind::Folder if entries.is_empty() && !exists(location)? => {
            Err(CliError::Engine(azulejo::Error::NotFound {
                uri: uri.to_owned(),
                what: "array, group or folder",
            }))
        }
        Kind::Folder => {
            let mut rows = Vec::new();
            for entry in entries.iter().filter(|entry| entry.is_dir) {
                if RootEntry::classify(&entry.name) != RootEntry::Unknown || entry.name.starts_with('.') {
                    continue;
                }
                let folder = object::child(location, &entry.name);
                let kind = object::look(&folder)?.0;
                rows.push(Row { name: entry.name.clone(), kind, uri: join(uri, &entry.name) });
            }
            Ok(rows)
        }
    }
}

/// Whether the folder above lists this one: empty folders and missing ones list nothing alike.
fn exists(location: &Location) -> Result<bool> {
    let Some(parent) = location.path.parent() else { return Ok(true) };
    let name = location.path.name();
    Ok(location.storage.list(&parent)?.iter().any(|entry| entry.is_dir && entry.name == name))
}

/// The members of a group, by name.
pub fn members(group: &Group) -> Vec<Row> {
    group
        .members()
        .iter()
        .map(|member| Row { name: member.name.clone(), kind: Kind::Array, uri: member.uri.clone() })
        .collect()
}

/// A URI with a name behind it.
pub fn join(uri: &str, name: &str) -> String {
    let uri = uri.trim_end_matches('/');
    if uri == "." { name.to_owned() } else { format!("{uri}/{name}") }
}

/// Prints rows as a table.
pub fn print_rows(out: &mut Output, rows: &[Row]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut table = Table::new([("kind", Align::Left), ("name", Align::Left), ("uri", Align::Left)]);
    for row in rows {
        table.row([row.kind.name(), &row.name, &row.uri]);
    }
    print(out, &table)
}
