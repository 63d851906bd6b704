//! `azulejo create`: an empty array from a schema.

use super::schema::show;
use crate::args::CreateArgs;
use crate::error::{CliError, Result};
use crate::session::Session;
use azulejo::Error;
use azulejo::format::schema::NewArray;
use azulejo::json::SchemaDocument;
use serde_json::json;
use std::io::{Read, Write};
use std::path::Path;

/// Runs the command.
pub fn run(session: &mut Session, args: &CreateArgs) -> Result<()> {
    let array = read_schema(&args.schema)?;
    if args.dry_run {
        array
            .check()
            .map_err(|error| in_document(&args.schema, &error.to_string()))?;
        let document = SchemaDocument::from(array);
        if session.output.json {
            return session.output.write_json(&document.to_json()?);
        }
        return show(&mut session.output, &document);
    }
    let place = session.context.array(&args.uri);
    let wanted = SchemaDocument::from(array.clone());
    let created = match args.at {
        Some(time) => place.create_at(array, time),
        None => place.create(array),
    };
    match created {
        // By this command, which then was cut short.
        Err(Error::AlreadyExists { .. }) if is_new(session, &args.uri, &wanted)? => {}
        created => created?,
    }
    if session.output.json {
        return session.output.write_json(&json!({ "created": args.uri }));
    }
    Ok(writeln!(session.output, "created {}", args.uri)?)
}

/// Whether an array with just this schema lies there, to which nothing was added.
fn is_new(session: &Session, uri: &str, wanted: &SchemaDocument) -> Result<bool> {
    let array = match session.context.array(uri).open() {
        // A group, or an array of another key.
        Err(Error::NotFound { .. } | Error::Encryption { .. }) => return Ok(false),
        array => array?,
    };
    Ok(array.fragments().is_empty()
        && array.metadata()?.is_empty()
        && SchemaDocument::of(&array)?.to_json()? == wanted.to_json()?)
}

fn read_schema(file: &Path) -> Result<NewArray> {
    let text = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|e| CliError::io("read", file, e))?;
        text
    } else {
        std::fs::read_to_string(file).map_err(|e| CliError::io("read", file, e))?
    };
    let json = serde_json::from_str(&text).map_err(|e| in_document(file, &e.to_string()))?;
    SchemaDocument::from_json(&json)
        .and_then(SchemaDocument::into_new_array)
        .map_err(|error| in_document(file, &error.to_string()))
}

fn in_document(file: &Path, reason: &str) -> CliError {
    CliError::usage(format!("{}: {reason}", file.display()))
}
