//! `azulejo meta`: the key-values of an array or group.

use super::schema::print;
use crate::args::MetaArgs;
use crate::error::{CliError, Result};
use crate::output::table::{Align, Table};
use crate::session::Session;
use crate::value;
use azulejo::format::CellValNum;
use azulejo::format::metadata::{Metadata, MetadataValue};
use azulejo::group::{Group, ObjectType, object_type};
use serde_json::{Value as Json, json};
use std::io::Write;

/// Runs the command.
pub fn run(session: &mut Session, args: &MetaArgs) -> Result<()> {
    let metadata = match object_type(&session.context, &args.uri)? {
        Some(ObjectType::Group) => {
            Group::open_at(&session.context, &args.uri, args.time.range())?.metadata()?
        }
        Some(ObjectType::Array) | None => session.open(&args.uri, &args.time)?.metadata()?.clone(),
    };
    if let Some(key) = &args.key {
        let Some(value) = metadata.get(key) else {
            return Err(CliError::usage(format!("{}: there is no key {key:?}", args.uri)));
        };
        if session.output.json {
            return session.output.write_json(&entry_json(value));
        }
        return Ok(writeln!(session.output, "{}", value_text(value))?);
    }
    if session.output.json {
        return session.output.write_json(&metadata_json(&metadata));
    }
    if metadata.is_empty() {
        session.output.note("no metadata");
        return Ok(());
    }
    let mut table = Table::new([("key", Align::Left), ("type", Align::Left), ("value", Align::Left)]);
    for (key, value) in &metadata {
        table.row([key.clone(), value.datatype.to_string(), value_text(value)]);
    }
    print(&mut session.output, &table)
}

/// A value as people read it.
pub fn value_text(value: &MetadataValue) -> String {
    if value.data.is_empty() {
        return String::new();
    }
    value::text(value.datatype, &value.data)
}

/// All keys as one JSON object.
pub fn metadata_json(metadata: &Metadata) -> Json {
    Json::Object(metadata.iter().map(|(key, value)| (key.clone(), entry_json(value))).collect())
}

fn entry_json(value: &MetadataValue) -> Json {
    let one = value.count() == 1;
    let cell_val_num = if one { CellValNum::ONE } else { CellValNum::Var };
    json!({
        "datatype": value.datatype.name(),
        "count": value.count(),
        "value": value::json(value.datatype, cell_val_num, &value.data),
    })
}
