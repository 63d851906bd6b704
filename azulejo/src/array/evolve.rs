//! Changing an array's schema: evolution, and upgrading its format version.

use super::create::put_schema;
use super::head::Head;
use super::tile_object::put_tile;
use super::{Array, clock};
use crate::context::Context;
use crate::error::{Error, Result};
use azulejo_format::ArraySchema;
use azulejo_format::path::enumeration_path;
use azulejo_format::schema::{Enumeration, SchemaEvolution};
use azulejo_format::timestamped_name::TimestampedName;
use std::cmp::Ordering;

/// How often a timestamp of our own is taken anew if another process has just written a schema of the same time.
const ATTEMPTS: usize = 20;

impl Array {
    /// Evolves the schema, from `timestamp` on (milliseconds since 1970-01-01 UTC; now unless given). Opened at a time
    /// before, the array has its old schema. Fragments stay as they are: attributes added read as their fill value in
    /// older fragments, attributes dropped are no longer read.
    ///
    /// The new schema is of format version 22 (or newer, if the array is): programs too old for it cannot open the array
    /// any more.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for changes that contradict the schema or break a rule, and for a timestamp that is
    /// not after the schema's.
    pub fn evolve(
        context: &Context,
        uri: &str,
        evolution: &SchemaEvolution,
        timestamp: Option<u64>,
    ) -> Result<()> {
        let head = Head::open(context, uri)?;
        let bad = |error| Error::InvalidArgument(format!("cannot evolve {}: {error}", head.uri));
        let next = next_schema(context, &head, evolution)?.map_err(bad)?;
        let name = next_name(&head, timestamp)?;
        let new = || evolution.add_enumerations.iter().chain(&evolution.extend_enumerations);
        let write = || -> Result<()> {
            for enumeration in new() {
                let path = enumeration_path(&enumeration.file_name);
                put_tile(context, &head.location, &path, &enumeration.encode())?;
            }
            put_schema(context, &head.location, &next, &name)
        };
        write().inspect_err(|_| {
            // No schema names them. The first error is the one to report.
            let path = |e: &Enumeration| head.location.path.join(&enumeration_path(&e.file_name));
            let _ = head.location.storage.delete(&new().map(path).collect::<Vec<_>>());
        })
    }

    /// What [`Self::evolve`] would make of the schema; writes nothing.
    ///
    /// # Errors
    /// As [`Self::evolve`].
    pub fn plan_evolution(context: &Context, uri: &str, evolution: &SchemaEvolution) -> Result<ArraySchema> {
        let head = Head::open(context, uri)?;
        next_schema(context, &head, evolution)?
            .map_err(|error| Error::InvalidArgument(format!("cannot evolve {}: {error}", head.uri)))
    }

    /// Upgrades the array to format version 22, from `timestamp` on (now unless given). Fragments stay as they are; new
    /// ones are written in the new version. Returns whether there was anything to do.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a timestamp that is not after the schema's.
    pub fn upgrade(context: &Context, uri: &str, timestamp: Option<u64>) -> Result<bool> {
        let head = Head::open(context, uri)?;
        let Some(upgraded) = head.schema.upgraded() else { return Ok(false) };
        let name = next_name(&head, timestamp)?;
        put_schema(context, &head.location, &upgraded, &name)?;
        Ok(true)
    }
}

/// Applies an evolution. The outer error is one of reading.
fn next_schema(
    context: &Context,
    head: &Head,
    evolution: &SchemaEvolution,
) -> Result<Result<ArraySchema, azulejo_format::schema::SchemaError>> {
    let schema = head.schema.upgraded().unwrap_or_else(|| (*head.schema).clone());
    let extended = evolution.extend_enumerations.iter().map(|e| &e.name);
    let referred = evolution.add_attributes.iter().filter_map(|a| a.enumeration.as_ref());
    let mut names: Vec<&String> =
        extended.chain(referred).filter(|name| schema.enumeration(name).is_some()).collect();
    names.sort();
    names.dedup();
    let loaded: Vec<Enumeration> =
        names.into_iter().map(|name| head.enumeration(context, name)).collect::<Result<_>>()?;
    Ok(evolution.apply(&schema, &loaded))
}

/// A name for the next schema. It sorts behind the latest one's: the new schema would otherwise never be the latest.
fn next_name(head: &Head, timestamp: Option<u64>) -> Result<TimestampedName> {
    let attempts = if timestamp.is_some() { 1 } else { ATTEMPTS };
    let mut taken = 0;
    for _ in 0..attempts {
        let time = timestamp.unwrap_or_else(clock::next_timestamp);
        let name = TimestampedName::unversioned(time, time);
        match &head.schema_name {
            Some(last) if last.cmp_by_time(&name) != Ordering::Less => taken = last.t_end,
            _ => return Ok(name),
        }
    }
    Err(Error::InvalidArgument(format!(
        "{}: the array's schema is of the time {taken}; a new schema must have a later timestamp",
        head.uri
    )))
}
