//! `azulejo ls`: arrays and groups in a folder or group.

use super::schema::print;
use crate::args::PathArgs;
use crate::error::Result;
use crate::output::table::{Align, Table};
use crate::session::Session;
use crate::terminal::Output;
use azulejo::group::{Group, ObjectType};
use azulejo::object::WalkEntry;
use azulejo::storage::Uri;
use serde_json::{Value as Json, json};

/// Something that is listed.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name in the group, or its folder's name; a member need not have one.
    pub name: Option<String>,
    /// What it is; `None` for a mere folder.
    pub kind: Option<ObjectType>,
    /// Where it lies.
    pub uri: String,
    /// Whether it is what a copy that was killed has left.
    pub unfinished: bool,
}

impl Row {
    /// What it is, in a word.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            Some(ObjectType::Array) => "array",
            Some(ObjectType::Group) => "group",
            None if self.unfinished => "unfinished copy",
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
    let rows = match session.object_type(&args.uri)? {
        kind @ Some(ObjectType::Array) => {
            vec![Row {
                name: Some(Uri::parse(&args.uri)?.path().name().to_owned()),
                kind,
                uri: args.uri.clone(),
                unfinished: false,
            }]
        }
        Some(ObjectType::Group) => {
            let group = session.context.group(&args.uri).open()?;
            // Its members may lie anywhere, or be gone.
            match group.has_details() {
                true => members(&group, &args.uri)?,
                false => below(session, &args.uri)?,
            }
        }
        None => below(session, &args.uri)?,
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

/// What lies in a folder.
fn below(session: &Session, uri: &str) -> Result<Vec<Row>> {
    let shorten = Shortener::new(uri)?;
    let mut rows = Vec::new();
    for entry in session.context.object(uri).walk(1)? {
        let mut row = shorten.row(&entry?);
        row.unfinished = row.kind.is_none()
            && session
                .context
                .object(&row.uri)
                .unfinished_copy()?
                .is_some();
        rows.push(row);
    }
    Ok(rows)
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
            name: Some(entry.name.clone()),
            kind: entry.object_type,
            uri: self.uri(&entry.uri),
            unfinished: false,
        }
    }
}

/// The members of a group.
pub fn members(group: &Group, uri: &str) -> Result<Vec<Row>> {
    let shorten = Shortener::new(uri)?;
    let rows = group.members().iter().map(|member| Row {
        name: member.name.clone(),
        kind: member.object_type,
        uri: shorten.uri(&member.location),
        unfinished: false,
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
    ])
    .keep_whole("uri");
    for row in rows {
        let name = row.name.as_deref().unwrap_or("-");
        table.row([row.kind_name(), name, &row.uri]);
    }
    print(out, &table)
}
