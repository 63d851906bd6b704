//! The files of an object, as the viewer reads them: ranges and listings.

use super::{Answer, Asked};
use azulejo::Error;
use azulejo::context::Location;
use azulejo::storage::{ReadRange, ReadRequest, StorePath};
use serde_json::json;
use std::ops::Range;

/// Serves what lies at `root` and below: a folder's entries with `?list`, else a file.
pub fn answer(root: &Location, path: &[String], asked: &Asked) -> Answer {
    let place = root.join(&path.join("/"));
    if !stays_inside(&root.path, &place.path) {
        return Answer::error(403, "a link leads out of the object");
    }
    let found = match asked.query.as_str() {
        "list" => list(&place),
        _ => file(&place, asked.range),
    };
    found.unwrap_or_else(|error| refusal(&error))
}

/// Whether a local file is what its path says, and no link to something elsewhere.
fn stays_inside(root: &StorePath, place: &StorePath) -> bool {
    if place.scheme() != "file" {
        return true;
    }
    let real = |path: &StorePath| path.as_native().canonicalize().ok();
    match (real(root), real(place)) {
        (Some(root), Some(place)) => place.starts_with(root),
        // Nothing lies there, which the storage says.
        _ => true,
    }
}

fn list(place: &Location) -> azulejo::Result<Answer> {
    let entries = place.storage.list(&place.path)?;
    let entries: Vec<_> = entries
        .iter()
        .map(|entry| json!({"name": entry.name, "isDir": entry.is_dir, "size": entry.size}))
        .collect();
    let body = serde_json::Value::from(entries).to_string();
    Ok(Answer::file("application/json", body.into_bytes()))
}

fn file(place: &Location, range: Option<(Option<u64>, Option<u64>)>) -> azulejo::Result<Answer> {
    let size = place.storage.size(&place.path)?;
    let Some(asked) = range else {
        return Ok(Answer::file(
            "application/octet-stream",
            read(place, 0..size)?,
        ));
    };
    let range = match asked {
        (Some(from), to) => from..to.map_or(size, |to| size.min(to.saturating_add(1))),
        (None, last) => size.saturating_sub(last.unwrap_or(0))..size,
    };
    if range.is_empty() {
        let answer = Answer::error(416, "the file is shorter");
        return Ok(answer.with("Content-Range", format!("bytes */{size}")));
    }
    let content = format!("bytes {}-{}/{size}", range.start, range.end - 1);
    let answer = Answer {
        status: 206,
        ..Answer::file("application/octet-stream", read(place, range)?)
    };
    Ok(answer.with("Content-Range", content))
}

fn read(place: &Location, range: Range<u64>) -> azulejo::Result<Vec<u8>> {
    let request = ReadRequest {
        path: place.path.clone(),
        range: ReadRange::Bytes(range),
    };
    let read = place.storage.read(&[request])?;
    Ok(read.into_iter().next().unwrap_or_default().to_vec())
}

/// The status that tells programs what an error is.
pub fn refusal(error: &Error) -> Answer {
    let status = match error {
        Error::NotFound { .. } => 404,
        Error::Unsupported(_) => 501,
        _ => 502,
    };
    Answer::error(status, &error.to_string())
}
