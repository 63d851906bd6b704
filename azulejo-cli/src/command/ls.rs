//! `azulejo ls`: arrays and groups in a folder or group.

use super::schema::print;
use crate::args::PathArgs;
use crate::error::Result;
use crate::output::table::{Align, Table};
use crate::session::Session;
use crate::terminal::Output;
use azulejo::group::{Group, ObjectType, WalkEntry};
use azulejo::storage::Uri;
use serde_json::{Value as Json, json};

/// Something that is listed.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name in the group, or its folder's name.
    pub name: String,
    /// What it is; `None` for a mere folder.
    pub kind: Option<ObjectType>,
    /// Where it lies.
    pub uri: String,
}

impl Row {
    /// What it is, in a word.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            Some(ObjectType::Array) => "array",
            Some(ObjectType::Group) => "group",
            None => "folder",
        }
    }

    /// As JSON.
    pub fn json(&self) -> Json {
        json!({ "name": self.name, "kind": self.kind_name(), "uri": self.uri })
    }
}

/// Runs the command.
pub fn run(session: &mut Session, args: &PathArgs) -> Result<()> {
    let rows = match session.context.object(&args.uri).object_type()? {
        kind @ Some(ObjectType::Array) => {
            vec![Row {
                name: Uri::parse(&args.uri)?.path().name().to_owned(),
                kind,
                uri: args.uri.clone(),
            }]
        }
        _ => {
            let shorten = Shortener::new(&args.uri)?;
            let entries = session.context.object(&args.uri).walk(1)?;
            let rows: azulejo::Result<Vec<Row>> =
                entries.map(|entry| Ok(shorten.row(&entry?))).collect();
            rows?
        }
    };
    if session.output.json {
        let rows: Vec<Json> = rows.iter().map(Row::json).collect();
        return session.output.write_json(&Json::Array(rows));
    }
    if rows.is_empty() {
        session.output.note("nothing there");
    }
    print_rows(&mut session.output, &rows)
}

/// Writes URIs as the user would: below the path that was given.
#[derive(Debug)]
pub struct Shortener {
    typed: String,
    whole: String,
}

impl Shortener {
    /// For what lies below the URI as typed.
    pub fn new(typed: &str) -> Result<Self> {
        let whole = Uri::parse(typed)?.to_string();
        Ok(Self {
            typed: typed.trim_end_matches('/').to_owned(),
            whole: whole.trim_end_matches('/').to_owned(),
        })
    }

    /// A URI below the start, as the user would write it.
    pub fn uri(&self, uri: &str) -> String {
        match uri
            .strip_prefix(&self.whole)
            .and_then(|rest| rest.strip_prefix('/'))
        {
            Some(rest) if self.typed == "." => rest.to_owned(),
            Some(rest) => format!("{}/{rest}", self.typed),
            None => uri.to_owned(),
        }
    }

    /// An entry of a walk.
    pub fn row(&self, entry: &WalkEntry) -> Row {
        Row {
            name: entry.name.clone(),
            kind: entry.object_type,
            uri: self.uri(&entry.uri),
        }
    }
}

/// The members of a group.
pub fn members(group: &Group, uri: &str) -> Result<Vec<Row>> {
    let shorten = Shortener::new(uri)?;
    let rows = group.members().iter().map(|member| Row {
        name: member.key().to_owned(),
        kind: member.object_type,
        uri: shorten.uri(&member.location),
    });
    Ok(rows.collect())
}

/// Prints rows as a table.
pub fn print_rows(out: &mut Output, rows: &[Row]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut table = Table::new([
        ("kind", Align::Left),
        ("name", Align::Left),
        ("uri", Align::Left),
    ]);
    for row in rows {
        table.row([row.kind_name(), &row.name, &row.uri]);
    }
    print(out, &table)
}
