//! Bringing back what an array was: a read of an earlier time, then a write.
//!
//! Nothing is destroyed: what [`ArrayHandle::restore`] writes is a change like any other, and every
//! moment before it reads as it did.

use super::FragmentOptions;
use super::merge::{Round, Written};
use super::plan::around;
use crate::array::{
    Array, ArrayHandle, ArrayLock, NewArray, OpenScope, Snapshot, TimeRange, encode_tile,
};
use crate::cancel::Operation;
use crate::clock;
use crate::condition::{Comparison, Condition};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::Uri;
use crate::write::WrittenFragment;
use crate::write::commit::{WrittenDelete, commit_at_once};
use azulejo_format::ArraySchema;
use azulejo_format::commit::Delete;
use azulejo_format::path::{LEGACY_SCHEMA_FILE, Suffix, suffixed_commit_path};
use azulejo_format::schema::Attribute;
use azulejo_format::timestamped_name::TimestampedName;

/// What a restoration changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Restored {
    /// Cells that are written: all that the array had.
    pub cells: u64,
    /// Names of the fragments with them.
    pub fragments: Vec<String>,
    /// Keys of key-values that are set or removed.
    pub keys: Vec<String>,
    /// Attributes of then that the array has no more, or with another type, or whose cells can no
    /// more be null: their values are not brought back.
    pub lost: Vec<String>,
}

impl ArrayHandle {
    /// What [`Self::restore`] would bring back of an array, but for the number of its cells.
    ///
    /// # Errors
    /// As [`Self::restore`].
    pub fn plan_restore(&self, timestamp: u64) -> Result<Restored> {
        Ok(Past::open(&self.context, &self.uri, timestamp)?
            .planned()?
            .0)
    }

    /// Makes an array what it was at a time (milliseconds since 1970-01-01 UTC), as a new change:
    /// cells and key-values, in the schema of now. Earlier moments read as before, this one
    /// included.
    ///
    /// All cells change at once. Key-values are a second step: a process that is killed between the
    /// two leaves those of now, which the same restoration brings back.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there was no array then; [`Error::Unsupported`] for a sparse array
    /// below format version 16, which has no deletes; [`Error::InvalidArgument`] where the values
    /// of an attribute stood for other labels than they do now; errors of reading and writing, which leave
    /// the cells as they are, or only the key-values.
    pub fn restore(&self, timestamp: u64) -> Result<Restored> {
        let Self { context, uri } = self;

        let context = &crate::manifest::without(context);
        let location = context.locate(&Uri::parse(uri)?)?;
        let lock = ArrayLock::wait(&location)?;
        let past = Past::open(context, uri, timestamp)?;
        let schema = past.now.schema();
        if !schema.is_dense() && !schema.version.has_deletes() {
            return Err(Error::Unsupported(format!(
                "{uri}: arrays of format version {} have no deletes; upgrade it first",
                schema.version
            )));
        }
        let (mut restored, mut changes) = past.planned()?;
        let operation = context.begin();
        let deleted = clock::next_timestamp();
        let written = clock::next_timestamp();
        let copied = past.copy(context, past.now.location(), &operation, written)?;
        restored.cells = copied.cells;
        restored.fragments = copied
            .fragments
            .iter()
            .map(|fragment| fragment.name().to_string())
            .collect();
        // What is deleted is what was there before the new cells.
        let delete = match schema.is_dense() {
            true => None,
            false => delete_of_all(context, &location, schema, deleted)?,
        };
        let new = Restoration {
            fragments: copied.fragments,
            delete,
        };
        new.commit(&location, &lock, &past.now)?;
        changes.commit()?;
        Ok(restored)
    }

    /// Copies an array as it was at a time (milliseconds since 1970-01-01 UTC): its schema of then,
    /// the cells and key-values, without their history.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there was no array then, [`Error::AlreadyExists`] if something lies
    /// at `to`; errors of reading and writing, which leave nothing there.
    pub fn copy_at(&self, timestamp: u64, to: &str) -> Result<u64> {
        self.copy_in(timestamp, to, false)
    }

    /// As [`Self::copy_at`]; `noted`: to a place that the caller has noted to be that of a copy.
    pub(crate) fn copy_in(&self, timestamp: u64, to: &str, noted: bool) -> Result<u64> {
        let context = &self.context;
        let array = self.open_at(TimeRange::until(timestamp))?;
        was_there(&array, timestamp)?;
        let labels = array.labels().iter();
        let labels = labels
            .map(|label| array.open_label(&label.name))
            .collect::<Result<Vec<_>>>()?;
        let enumerations = array.enumerations()?;
        let new = NewArray {
            schema: array.schema().as_ref().clone().with_times_filters(),
            enumerations: enumerations.iter().map(|e| e.as_ref().clone()).collect(),
            label_schemas: labels
                .iter()
                .map(|label| label.schema().as_ref().clone())
                .collect(),
        };
        let target = context.array(to);
        target.create_in(&new, clock::next_timestamp(), noted)?;
        let copy = || -> Result<u64> {
            let target = context.array(to).open()?;
            let operation = context.begin();
            let mut cells = 0;
            for (label, of) in array.labels().iter().zip(&labels) {
                // An array elsewhere is the same one for both.
                if label.external {
                    continue;
                }
                let past = Past {
                    then: of.clone(),
                    now: target.open_label(&label.name)?,
                };
                past.copy_commit(context, &operation)?;
            }
            let past = Past {
                then: array.clone(),
                now: target,
            };
            cells += past.copy_commit(context, &operation)?;
            past.planned()?.1.commit()?;
            Ok(cells)
        };
        copy().inspect_err(|_| {
            // The first error is the one to report.
            let _ = context.object(to).delete(false);
        })
    }
}

/// An array then and now, or one and its copy.
struct Past {
    then: Array,
    now: Array,
}

impl Past {
    fn open(context: &Context, uri: &str, timestamp: u64) -> Result<Self> {
        let now = context.array(uri).open()?;
        let scope = OpenScope {
            schema: Some(now.schema_name().to_owned()),
            ..OpenScope::default()
        };
        let then = TimeRange::until(timestamp);
        let then = Snapshot::open_scope(context, &Uri::parse(uri)?, then, &scope)?.array()?;
        was_there(&then, timestamp)?;
        let of_then = context.array(uri).open_at(TimeRange::until(timestamp))?;
        same_labels(&of_then, &then, &now)?;
        Ok(Self { then, now })
    }

    /// What is to be brought back, and the changes of key-values.
    fn planned(&self) -> Result<(Restored, crate::array::MetadataWriter)> {
        let (then, now) = (self.then.metadata()?, self.now.metadata()?);
        let mut changes = self.now.change_metadata()?;
        let mut keys = Vec::new();
        for (key, value) in then {
            if now.get(key) != Some(value) {
                changes.put(key.clone(), value.clone())?;
                keys.push(key.clone());
            }
        }
        for key in now.keys() {
            if then.get(key).is_none() {
                changes.remove(key.clone());
                keys.push(key.clone());
            }
        }
        let mut schemas = self.now.schemas_around(self.then.time_range().end);
        let of_then = schemas.next().map_or(&[][..], |schema| &schema.attributes);
        let here = |attribute: &&Attribute| {
            let mut attributes = self.now.schema().attributes.iter();
            !attributes.any(|a| {
                a.name == attribute.name
                    && a.datatype == attribute.datatype
                    && a.cell_val_num == attribute.cell_val_num
                    && (a.nullable || !attribute.nullable)
            })
        };
        let restored = Restored {
            keys,
            lost: of_then
                .iter()
                .filter(here)
                .map(|a| a.name.clone())
                .collect(),
            ..Restored::default()
        };
        Ok((restored, changes))
    }

    /// Writes the cells of then into fragments below `location`, which do not count yet.
    fn copy(
        &self,
        context: &Context,
        location: &Location,
        operation: &Operation,
        timestamp: u64,
    ) -> Result<Written> {
        let schema = self.now.schema();
        let options = FragmentOptions::new().memory_budget(context.config().memory_budget);
        let round = Round {
            context,
            array: &self.then,
            location,
            options: &options,
            version: schema.version,
            schema_name: self.now.schema_name(),
            timestamps: false,
            delete_metadata: false,
            operation,
        };
        let name = TimestampedName::versioned(timestamp, timestamp, schema.version.number());
        if !schema.is_dense() {
            return match self.then.fragments() {
                [] => Ok(Written::default()),
                _ => operation.runs(|| round.sparse(&name)),
            };
        }
        // What was written since reads as it did too: as nothing, where it was.
        let (then, now) = (self.then.non_empty_domain()?, self.now.non_empty_domain()?);
        match around(schema, then.as_ref(), now.as_ref()) {
            Some(bounds) => operation.runs(|| round.dense(&name, &bounds)),
            None => Ok(Written::default()),
        }
    }

    fn copy_commit(&self, context: &Context, operation: &Operation) -> Result<u64> {
        let time = clock::next_timestamp();
        let written = self.copy(context, self.now.location(), operation, time)?;
        let cells = written.cells;
        written.commit()?;
        Ok(cells)
    }
}

/// An error if values of then, which say where labels stand, would show other labels now, or labels
/// that the cells did not have then. `brought` has the cells of then in the schema of now.
fn same_labels(then: &Array, brought: &Array, now: &Array) -> Result<()> {
    let have_others = |array: &Array, name: &str| -> Vec<bool> {
        let fragments = array.fragments().iter();
        let others = fragments.map(|f| f.relabelled().iter().any(|other| other == name));
        others.collect()
    };
    for attribute in &then.schema().attributes {
        let mut others = now.schema().attributes.iter();
        let Some(other) = others.find(|other| {
            other.name == attribute.name
                && other.datatype == attribute.datatype
                && other.cell_val_num == attribute.cell_val_num
        }) else {
            continue;
        };
        let same = match (&attribute.enumeration, &other.enumeration) {
            (None, None) => true,
            (Some(before), Some(after)) => {
                let (before, after) = (then.enumeration(before)?, now.enumeration(after)?);
                after.values_begin_with(&before)
                    && have_others(then, &attribute.name) == have_others(brought, &attribute.name)
            }
            _ => false,
        };
        if !same {
            return Err(Error::InvalidArgument(format!(
                "{}: the labels of {:?} are others now than they were; copy the array as it was instead",
                now.uri(),
                attribute.name
            )));
        }
    }
    Ok(())
}

/// An error if there was no array at a time: neither a schema nor a fragment is as old.
fn was_there(array: &Array, timestamp: u64) -> Result<()> {
    let is_then = |name: &String| {
        name == LEGACY_SCHEMA_FILE
            || TimestampedName::parse(name).is_ok_and(|name| name.t_end <= timestamp)
    };
    match array.schemas().keys().any(is_then) || !array.fragments().is_empty() {
        true => Ok(()),
        false => Err(Error::NotFound {
            uri: array.uri().to_string(),
            what: "an array at that time",
        }),
    }
}

/// The cells of a restoration, and what takes away those that were there before.
struct Restoration {
    fragments: Vec<WrittenFragment>,
    delete: Option<WrittenDelete>,
}

impl Restoration {
    /// Makes all of it count by one file: with a part of it there would be cells twice, or none.
    /// What cannot be committed is removed.
    fn commit(self, location: &Location, lock: &ArrayLock, now: &Snapshot) -> Result<()> {
        let Self { fragments, delete } = self;
        if fragments.is_empty() && delete.is_none() {
            return Ok(());
        }
        lock.confirm(location).inspect_err(|_| {
            let folders: Vec<_> = fragments.iter().map(|f| f.folder().clone()).collect();
            // The first error is the one to report.
            let _ = location.storage.delete(&folders);
        })?;
        if fragments.len() > 1 || delete.is_some() {
            let array = (now.schema_name(), now.schema().version);
            return commit_at_once(location, array, &fragments, delete.as_ref());
        }
        // No other file is needed for one, and old versions have none for several.
        let mut fragments = fragments.into_iter();
        fragments.try_for_each(|fragment| fragment.commit().map(drop))
    }
}

/// What deletes all cells of a sparse array that were written until a time.
fn delete_of_all(
    context: &Context,
    location: &Location,
    schema: &ArraySchema,
    timestamp: u64,
) -> Result<Option<WrittenDelete>> {
    let Some(dimension) = schema.domain.dimensions.first() else {
        return Ok(None);
    };
    // What stays is less and more than a value.
    let value = match dimension.cell_val_num.is_var() {
        true => b"a".to_vec(),
        false => vec![0; dimension.datatype.size()],
    };
    let compare = |op| Condition::compare(dimension.name.as_str(), op, value.clone());
    let kept = Condition::And(vec![compare(Comparison::Lt), compare(Comparison::Gt)]);
    let name = TimestampedName::versioned(timestamp, timestamp, schema.version.number());
    let path = suffixed_commit_path(&name, Suffix::Delete);
    let tile = encode_tile(context, location, &path, &Delete { kept }.encode())?;
    Ok(Some(WrittenDelete { name, tile }))
}
