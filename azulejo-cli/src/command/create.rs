//! `azulejo create`: an empty array from a schema.

use super::schema::show;
use crate::args::CreateArgs;
use crate::error::{CliError, Result};
use crate::session::Session;
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
    match args.at {
        Some(time) => session.context.array(&args.uri).create_at(array, time)?,
        None => session.context.array(&args.uri).create(array)?,
    }
    if session.output.json {
        return session.output.write_json(&json!({ "created": args.uri }));
    }
    Ok(writeln!(session.output, "created {}", args.uri)?)
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
