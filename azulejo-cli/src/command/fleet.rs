//! The same work on every array of a group or folder: a row for each, and what went wrong in its
//! row.

use super::ls::Shortener;
use super::schema::print;
use crate::error::{CliError, Result};
use crate::interrupt;
use crate::output::table::{Align, Table};
use crate::session::Session;
use azulejo::Context;
use azulejo::group::ObjectType;
use azulejo::storage::Uri;
use serde_json::{Value as Json, json};
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Deeper than anyone nests.
const MAX_DEPTH: usize = 256;
/// Objects that are worked on at a time.
pub const AT_ONCE: usize = 4;

/// What is worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objects {
    /// Arrays.
    Arrays,
    /// Arrays and groups.
    All,
    /// Arrays and groups that lie in no group.
    Outermost,
}

/// What became of one object.
#[derive(Debug)]
pub struct Done {
    /// What stands behind its URI, a text a column.
    pub cells: Vec<String>,
    /// The name and the value that it has in JSON.
    pub json: (&'static str, Json),
    /// Whether it is not as it should be.
    pub unsound: bool,
}

/// A place that could not be looked into, and why.
type Hidden = (String, azulejo::Error);

/// What became of all of them.
#[derive(Debug)]
pub struct Summary {
    /// Objects.
    pub objects: usize,
    /// Those that are not as they should be, or that nothing could be done with.
    pub unsound: usize,
    /// The first thing that went wrong.
    pub first_error: Option<azulejo::Error>,
}

impl Summary {
    /// Fails with the first thing that went wrong.
    pub fn or_first_error(self) -> Result<()> {
        self.first_error.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Works on every object below a URI, some at a time, and prints a row for each.
pub fn each(
    session: &mut Session,
    uri: &str,
    which: Objects,
    columns: &[(&str, Align)],
    work: impl Fn(&Context, &str) -> azulejo::Result<Done> + Sync,
) -> Result<Summary> {
    let (mut objects, hidden) = objects(session, uri, which)?;
    let mut done = in_parallel(session, &objects, work)?;
    for (uri, error) in hidden {
        objects.push(uri);
        done.push(Err(error));
    }
    let shorten = Shortener::new(uri)?;
    let mut outcome = Summary {
        objects: objects.len(),
        unsound: 0,
        first_error: None,
    };
    let failed = done.iter().any(Result::is_err);
    let first = match which {
        Objects::Arrays => ("array", Align::Left),
        Objects::All | Objects::Outermost => ("object", Align::Left),
    };
    let trouble = failed.then_some(("error", Align::Left));
    let columns = [first].into_iter().chain(columns.iter().copied());
    let width = columns.clone().count();
    let mut table = Table::new(columns.chain(trouble)).keep_whole(first.0);
    let mut rows = Vec::new();
    for (uri, done) in objects.iter().zip(done) {
        let uri = shorten.uri(uri);
        match done {
            Ok(row) => {
                outcome.unsound += usize::from(row.unsound);
                let (name, value) = row.json;
                rows.push(json!({ "uri": uri, name: value }));
                table.row([uri].into_iter().chain(row.cells));
            }
            Err(error) => {
                outcome.unsound += 1;
                let text = error.to_string();
                rows.push(json!({ "uri": uri, "error": text }));
                let mut cells = vec![uri];
                cells.resize(width, String::new());
                cells.push(text);
                table.row(cells);
                outcome.first_error.get_or_insert(error);
            }
        }
    }
    match session.output.json {
        true => session.output.write_json(&Json::Array(rows))?,
        false if rows.is_empty() => session.output.note("no arrays there"),
        false => print(&mut session.output, &table)?,
    }
    Ok(outcome)
}

/// The object at a URI, or all of a kind below it, members of groups included, each once; and what
/// could not be looked into, where there may be more.
fn objects(session: &Session, uri: &str, which: Objects) -> Result<(Vec<String>, Vec<Hidden>)> {
    let found = session.context.object(uri).object_type()?;
    let is_group = found == Some(ObjectType::Group);
    if found == Some(ObjectType::Array) || is_group && which == Objects::Outermost {
        return Ok((vec![uri.to_owned()], Vec::new()));
    }
    let mut objects: Vec<String> = Vec::new();
    if is_group && which == Objects::All {
        objects.push(uri.to_owned());
    }
    let mut seen: HashSet<String> = objects.iter().map(|uri| place(uri)).collect();
    let (mut inside, mut hidden) = (usize::MAX, Vec::new());
    for entry in session.context.object(uri).walk(MAX_DEPTH)? {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                // Others say it in their text.
                let place = match &error {
                    azulejo::Error::NotFound { uri, .. } => uri.clone(),
                    _ => uri.to_owned(),
                };
                hidden.push((place, error));
                continue;
            }
        };
        if which == Objects::Outermost && entry.depth > inside {
            continue;
        }
        inside = usize::MAX;
        let wanted = match entry.object_type {
            Some(ObjectType::Array) => true,
            Some(ObjectType::Group) => which != Objects::Arrays,
            None => false,
        };
        if wanted && entry.object_type == Some(ObjectType::Group) {
            inside = entry.depth;
        }
        if wanted && seen.insert(place(&entry.uri)) {
            objects.push(entry.uri);
        }
    }
    Ok((objects, hidden))
}

/// A text that is the same for all ways to a place.
fn place(uri: &str) -> String {
    let parsed = Uri::parse(uri);
    parsed.map_or_else(
        |_| uri.to_owned(),
        |uri| uri.path().without_steps().to_string(),
    )
}

/// Works on objects, some at a time; the results are in their order.
fn in_parallel<R: Send>(
    session: &Session,
    objects: &[String],
    work: impl Fn(&Context, &str) -> azulejo::Result<R> + Sync,
) -> Result<Vec<azulejo::Result<R>>> {
    let results: Vec<Mutex<Option<azulejo::Result<R>>>> =
        objects.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let context = &session.context;
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(objects.len()) {
            scope.spawn(|| {
                while interrupt::check().is_ok() {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(uri), Some(slot)) = (objects.get(at), results.get(at)) else {
                        break;
                    };
                    let result = work(context, uri);
                    if let Ok(mut slot) = slot.lock() {
                        *slot = Some(result);
                    }
                }
            });
        }
    });
    interrupt::check()?;
    let done = results
        .into_iter()
        .map(|slot| slot.into_inner().ok().flatten());
    done.map(|result| result.ok_or(CliError::Interrupted))
        .collect()
}
