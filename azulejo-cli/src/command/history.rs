//! `azulejo history`: what has been done to an array, in one table.

use super::schema::{plural, print};
use crate::args::HistoryArgs;
use crate::error::Result;
use crate::moment::timestamp_text;
use crate::output::table::{Align, Table};
use crate::session::Session;
use crate::size;
use azulejo::array::Snapshot;
use azulejo::format::ArraySchema;
use azulejo::format::condition::Condition;
use azulejo::format::timestamped_name::TimestampedName;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

/// Something that was done.
#[derive(Debug)]
struct Event {
    first: u64,
    last: u64,
    what: &'static str,
    detail: String,
    cells: Option<u64>,
    bytes: Option<u64>,
}

/// Runs the command.
pub fn run(session: &mut Session, args: &HistoryArgs) -> Result<()> {
    let array = session.context.array(&args.uri).open()?;
    let mut events = schemas(&array);
    for fragment in array.fragment_info().fragments() {
        let time = fragment.time_range();
        let merged = time.start != time.end || fragment.fragment().has_timestamps();
        events.push(Event {
            first: time.start,
            last: time.end,
            what: if merged { "consolidation" } else { "write" },
            detail: fragment.name().to_owned(),
            cells: Some(fragment.cell_num()),
            bytes: Some(fragment.size()?),
        });
    }
    for path in array.fragments_to_vacuum() {
        if let Ok(name) = TimestampedName::parse(path.name()) {
            events.push(Event {
                first: name.t_start,
                last: name.t_end,
                what: "write, replaced",
                detail: path.name().to_owned(),
                cells: None,
                bytes: None,
            });
        }
    }
    for delete in array.deletes() {
        events.push(Event {
            first: delete.timestamp,
            last: delete.timestamp,
            what: "delete",
            detail: deleted(&array, delete.timestamp, &delete.kept),
            cells: None,
            bytes: None,
        });
    }
    events.extend(key_values(&array)?);
    for snapshot in session.context.object(&args.uri).snapshots()? {
        events.push(Event {
            first: snapshot.at,
            last: snapshot.at,
            what: "snapshot",
            detail: snapshot.name,
            cells: None,
            bytes: None,
        });
    }
    events.sort_by_key(|event| (event.last, event.first));
    if session.output.json {
        let rows: Vec<Json> = events.iter().map(row_json).collect();
        return session.output.write_json(&Json::Array(rows));
    }
    let mut table = Table::new([
        ("time", Align::Left),
        ("what", Align::Left),
        ("cells", Align::Right),
        ("size", Align::Right),
        ("detail", Align::Left),
    ])
    .keep_whole("detail");
    for event in &events {
        let time = match event.first == event.last {
            true => timestamp_text(event.last),
            false => format!(
                "{} to {}",
                timestamp_text(event.first),
                timestamp_text(event.last)
            ),
        };
        table.row([
            time,
            event.what.to_owned(),
            event.cells.map_or_else(String::new, size::count),
            event.bytes.map_or_else(String::new, size::text),
            event.detail.clone(),
        ]);
    }
    print(&mut session.output, &table)?;
    session
        .output
        .note("vacuums leave no trace; `--at T` shows the array at any of these times");
    Ok(())
}

fn row_json(event: &Event) -> Json {
    json!({
        "what": event.what,
        "first": event.first,
        "last": event.last,
        "cells": event.cells,
        "bytes": event.bytes,
        "detail": event.detail,
    })
}

/// What a delete has taken, from what it stores: which cells stay. It means the attributes of its
/// time, which may have been dropped since, or replaced by others of the same names.
fn deleted(array: &Snapshot, time: u64, kept: &Condition) -> String {
    let taken = Condition::Not(Box::new(kept.clone())).pushed_down();
    let lookup = |name: &str| array.enumeration(name);
    let shown = |schema: &ArraySchema| {
        let mut taken = taken.clone();
        plain(&mut taken, schema);
        azulejo::condition::format(&taken, schema, &lookup).ok()
    };
    array
        .schemas_around(time)
        .find_map(|schema| shown(schema))
        .unwrap_or_else(|| "a condition on attributes that are there no more".to_owned())
}

/// What is stored compares indices of labels; where there are no labels, plain values.
fn plain(condition: &mut Condition, schema: &ArraySchema) {
    match condition {
        Condition::Compare { field, .. }
        | Condition::In { field, .. }
        | Condition::IsNull { field, .. }
        | Condition::Match { field, .. } => {
            let mut attributes = schema.attributes.iter();
            field.raw = attributes.any(|a| a.name == field.name && a.enumeration.is_some());
        }
        Condition::And(children) | Condition::Or(children) => {
            children.iter_mut().for_each(|child| plain(child, schema));
        }
        Condition::Not(child) => plain(child, schema),
    }
}

/// Creation and evolutions.
fn schemas(array: &Snapshot) -> Vec<Event> {
    let named = array.schemas().iter();
    let named =
        named.filter_map(|(name, schema)| Some((TimestampedName::parse(name).ok()?, schema)));
    let mut named: Vec<_> = named.collect();
    named.sort_by(|(a, _), (b, _)| a.cmp_by_time(b));
    let mut events = Vec::new();
    let mut before: Option<&ArraySchema> = None;
    for (name, schema) in &named {
        events.push(Event {
            first: name.t_start,
            last: name.t_end,
            what: before.map_or("creation", |_| "evolution"),
            detail: before.map_or_else(
                || plural(schema.attributes.len(), "attribute"),
                |before| differences(before, schema),
            ),
            cells: None,
            bytes: None,
        });
        before = Some(schema);
    }
    events
}

/// What an evolution changed, in words.
fn differences(before: &ArraySchema, after: &ArraySchema) -> String {
    let names = |schema: &ArraySchema| -> BTreeSet<String> {
        schema.attributes.iter().map(|a| a.name.clone()).collect()
    };
    let labels = |schema: &ArraySchema| -> BTreeSet<String> {
        schema.enumerations.iter().map(|e| e.name.clone()).collect()
    };
    let mut parts = Vec::new();
    let mut compare = |what: &str, a: BTreeSet<String>, b: BTreeSet<String>| {
        for name in b.difference(&a) {
            parts.push(format!("+{what} {name}"));
        }
        for name in a.difference(&b) {
            parts.push(format!("-{what} {name}"));
        }
    };
    compare("attribute", names(before), names(after));
    compare("enumeration", labels(before), labels(after));
    if before.enumerations.iter().any(|e| {
        let now = after.enumerations.iter().find(|other| other.name == e.name);
        now.is_some_and(|now| now.file_name != e.file_name)
    }) {
        parts.push("labels added".to_owned());
    }
    if before.current_domain != after.current_domain {
        parts.push("current domain expanded".to_owned());
    }
    if before.version != after.version {
        parts.push(format!("format version {}", after.version));
    }
    parts.join(", ")
}

/// Changes of key-values.
fn key_values(array: &Snapshot) -> Result<Vec<Event>> {
    let location = array.location();
    let mut events = Vec::new();
    for entry in location.storage.list(&location.path.join("__meta"))? {
        if let Ok(name) = TimestampedName::parse(&entry.name) {
            events.push(Event {
                first: name.t_start,
                last: name.t_end,
                what: "metadata",
                detail: entry.name.clone(),
                cells: None,
                bytes: entry.size,
            });
        }
    }
    Ok(events)
}
