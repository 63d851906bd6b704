//! Changing an array's schema: evolution, and upgrading its format version.

use super::create::{make_folders, remove_empty_folders};
use super::directory::sort_schemas;
use super::head::{Commits, Head};
use super::tile_object::{check_still_there, clean_up_unseen, put_tile, put_tile_if_there};
use super::timeline::CommittedFragment;
use super::{ArrayHandle, ArrayLock};
use crate::clock;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use azulejo_format::ArraySchema;
use azulejo_format::path::{LEGACY_SCHEMA_FILE, enumeration_path, fragment_version, schema_path};
use azulejo_format::schema::{Enumeration, SchemaEvolution};
use azulejo_format::timestamped_name::TimestampedName;
use std::collections::HashSet;

/// How often a timestamp of our own is taken anew if another process has just written a schema of
/// the same time.
const ATTEMPTS: usize = 20;

impl ArrayHandle {
    /// Evolves the schema, from `timestamp` on (milliseconds since 1970-01-01 UTC; now unless
    /// given). Opened at a time before, the array has its old schema. Fragments stay as they are:
    /// attributes added read as their fill value in older fragments, attributes dropped are no
    /// longer read.
    ///
    /// The new schema is of format version 22 (or newer, if the array is): programs too old for it
    /// cannot open the array any more.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for changes that contradict the schema or break a rule, and for a
    /// timestamp that is not after the schema's. [`Error::Unsupported`] for other attributes in an
    /// array with fragments below format version 10, which TileDB could not read any more.
    pub fn evolve(&self, evolution: &SchemaEvolution, timestamp: Option<u64>) -> Result<()> {
        let Self { context, uri } = self;

        let begun = clock::now();
        let (lock, head) = Head::locked(context, uri)?;
        let name = next_name(&head, timestamp);
        name.and_then(|name| evolve_to(context, &lock, &head, evolution, &name))
            .map_err(|error| beside_another(error, &head, begun))
    }

    /// As [`Self::evolve`], by who holds the array's lock.
    pub(super) fn evolve_locked(
        &self,
        lock: &ArrayLock,
        evolution: &SchemaEvolution,
        timestamp: Option<u64>,
    ) -> Result<()> {
        let head = Head::open(&self.context, &self.uri)?;
        let name = next_name(&head, timestamp)?;
        evolve_to(&self.context, lock, &head, evolution, &name)
    }

    /// As [`Self::evolve`], at any time: a schema of a time before the latest one's never is the
    /// latest, and only those see it who open the array at a time between the two.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for changes that contradict the latest schema or break a rule.
    pub fn evolve_at(&self, evolution: &SchemaEvolution, timestamp: u64) -> Result<()> {
        let Self { context, uri } = self;

        let begun = clock::now();
        let (lock, head) = Head::locked(context, uri)?;
        let name = TimestampedName::unversioned(timestamp, timestamp);
        evolve_to(context, &lock, &head, evolution, &name)
            .map_err(|error| beside_another(error, &head, begun))
    }

    /// What [`Self::evolve`] would make of the schema; writes nothing.
    ///
    /// # Errors
    /// As [`Self::evolve`].
    pub fn plan_evolution(&self, evolution: &SchemaEvolution) -> Result<ArraySchema> {
        let Self { context, uri } = self;

        let head = Head::open(context, uri)?;
        check_fragments(context, &head, evolution)?;
        next_schema(context, &head, evolution)?
            .map_err(|error| Error::InvalidArgument(format!("cannot evolve {}: {error}", head.uri)))
    }

    /// Upgrades the array to format version 22, from `timestamp` on (now unless given). Fragments
    /// stay as they are; new ones are written in the new version. Returns whether there was
    /// anything to do.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a timestamp that is not after the schema's.
    pub fn upgrade(&self, timestamp: Option<u64>) -> Result<bool> {
        let Self { context, uri } = self;

        let (lock, head) = Head::locked(context, uri)?;
        // Merged cells have times that may decrease, which some filters do not take. Who made the
        // array before version 10 may have zipped coordinates in it.
        let zipped = match head.schema.check_times_filters(false) {
            Ok(()) => false,
            Err(_) => {
                let Location { storage, path } = &head.location;
                !storage.find(path, &[LEGACY_SCHEMA_FILE])?.is_empty()
            }
        };
        let Some(upgraded) = head.schema.upgraded(zipped) else {
            return Ok(false);
        };
        let name = next_name(&head, timestamp)?;
        lock.confirm(&head.location)?;
        put_next(context, &head, &upgraded, &name)?;
        Ok(true)
    }
}

/// Stores a schema behind those that an array has, as long as it is there: a group around it may have
/// been moved meanwhile, whose lock is another one.
pub(super) fn put_next(
    context: &Context,
    head: &Head,
    next: &ArraySchema,
    name: &TimestampedName,
) -> Result<()> {
    let (location, latest) = (&head.location, head.schema_file());
    // No folders are made where it was.
    check_still_there(location, Some(&latest))?;
    make_folders(location)?;
    let path = schema_path(name, next.version);
    put_tile_if_there(context, location, Some(&latest), &path, &next.encode()).inspect_err(
        |error| {
            if let Error::NotFound { .. } = error {
                // The first error is the one to report.
                let _ = remove_empty_folders(location);
            }
        },
    )
}

/// Says of a refusal that another one has just changed the schema, if that is so: what was asked for
/// may have fitted the one before.
fn beside_another(error: Error, head: &Head, begun: u64) -> Error {
    let latest = head.schema_name.as_ref().map(|name| name.t_end);
    match (error, latest) {
        (Error::InvalidArgument(text), Some(latest))
            if begun < latest && latest <= clock::now() =>
        {
            Error::InvalidArgument(format!(
                "{text} (another one has changed the schema meanwhile: look at it, and try again)"
            ))
        }
        (error, _) => error,
    }
}

/// Stores an evolved schema under a name.
fn evolve_to(
    context: &Context,
    lock: &ArrayLock,
    head: &Head,
    evolution: &SchemaEvolution,
    name: &TimestampedName,
) -> Result<()> {
    let bad = |error| Error::InvalidArgument(format!("cannot evolve {}: {error}", head.uri));
    let next = next_schema(context, head, evolution)?.map_err(bad)?;
    check_fragments(context, head, evolution)?;
    let new = || {
        evolution
            .add_enumerations
            .iter()
            .chain(&evolution.extend_enumerations)
    };
    let write = || -> Result<()> {
        for enumeration in new() {
            let path = enumeration_path(&enumeration.file_name);
            put_tile(context, &head.location, &path, &enumeration.encode())?;
        }
        lock.confirm(&head.location)?;
        put_next(context, head, &next, name)
    };
    write().inspect_err(|error| {
        let schema = head.location.path.join(&schema_path(name, next.version));
        let path = |e: &Enumeration| head.location.path.join(&enumeration_path(&e.file_name));
        let parts: Vec<_> = new().map(path).collect();
        clean_up_unseen(&*head.location.storage, &schema, &parts, error);
    })
}

/// Applies an evolution. The outer error is one of reading.
fn next_schema(
    context: &Context,
    head: &Head,
    evolution: &SchemaEvolution,
) -> Result<Result<ArraySchema, azulejo_format::schema::SchemaError>> {
    let schema = head.schema.to_change();
    let extended = evolution.extend_enumerations.iter().map(|e| &e.name);
    let referred = evolution
        .add_attributes
        .iter()
        .filter_map(|a| a.enumeration.as_ref());
    let mut names: Vec<&String> = extended
        .chain(referred)
        .filter(|name| schema.enumeration(name).is_some())
        .collect();
    names.sort();
    names.dedup();
    let loaded: Vec<Enumeration> = names
        .into_iter()
        .map(|name| head.enumeration(context, name))
        .collect::<Result<_>>()?;
    Ok(evolution.apply(&schema, &loaded))
}

/// Fragments that do not say which schema they were written with are taken to have the latest one's
/// attributes: by the reference, which then fails to open the array.
fn check_fragments(context: &Context, head: &Head, evolution: &SchemaEvolution) -> Result<()> {
    if evolution.add_attributes.is_empty() && evolution.drop_attributes.is_empty() {
        return Ok(());
    }
    let Commits {
        committed, files, ..
    } = head.commits(context)?;
    let vacuums = files.vacuums.iter();
    let replaced: HashSet<&str> = vacuums.flat_map(|(_, list)| list.names()).collect();
    let counts = |fragment: &&CommittedFragment| !replaced.contains(fragment.entry.file_name());
    for fragment in committed.fragments.iter().filter(counts) {
        let name = &fragment.entry.name;
        let version = fragment_version(name).map_err(|e| {
            Error::decode(head.location.path.join(&fragment.entry.path).to_string(), e)
        })?;
        if !version.has_schema_evolution() {
            return Err(Error::Unsupported(format!(
                "{}: the fragment {name} is of format version {version}, and TileDB could not open the array any more \
                 if its attributes changed; consolidate and vacuum it first",
                head.uri
            )));
        }
    }
    Ok(())
}

/// The least time that is later than another both as a number and, as the reference orders schemas, as
/// text.
fn following(time: u64) -> Option<u64> {
    let next = time.checked_add(1)?;
    match next.to_string().len() == time.to_string().len() {
        true => Some(next),
        false => time.checked_mul(10),
    }
}

/// A name for the next schema. It sorts behind the latest one's: the new schema would otherwise
/// never be the latest.
pub(super) fn next_name(head: &Head, timestamp: Option<u64>) -> Result<TimestampedName> {
    let attempts = if timestamp.is_some() { 1 } else { ATTEMPTS };
    let comes_last = |time: u64| {
        let name = TimestampedName::unversioned(time, time);
        let mut names = head.schema_names.clone();
        names.push(name.clone());
        sort_schemas(&mut names, |name| name);
        match names.last() {
            Some(last) if *last != name => Err(last.t_end),
            _ => Ok(name),
        }
    };
    let mut taken = 0;
    for _ in 0..attempts {
        match comes_last(timestamp.unwrap_or_else(clock::next_timestamp)) {
            Ok(name) => return Ok(name),
            Err(latest) => taken = latest,
        }
    }
    // Schemas of times of the caller's own, such as 20 and 30, which sort behind every time of day:
    // the new one has such a time too.
    if timestamp.is_none()
        && let Some(time) = following(taken).filter(|time| *time <= clock::next_timestamp())
        && let Ok(name) = comes_last(time)
    {
        return Ok(name);
    }
    Err(Error::InvalidArgument(format!(
        "{}: the array's schema is of the time {taken}; a new schema must have a later timestamp (as text, where one is a time of day and \
         another is not)",
        head.uri
    )))
}
