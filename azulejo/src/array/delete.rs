//! Deleting cells by a condition.

use super::head::Head;
use super::tile_object::put_tile;
use super::timeline::CommittedFragment;
use super::{Array, clock};
use crate::condition::{BoundCondition, Comparison, Condition};
use crate::context::Context;
use crate::error::{Error, Result};
use azulejo_format::ArraySchema;
use azulejo_format::commit::Delete;
use azulejo_format::path::{Suffix, fragment_version, suffixed_commit_path};
use azulejo_format::timestamped_name::TimestampedName;
use std::sync::Arc;

impl Array {
    /// Deletes the cells of a sparse array that meet a condition and were written until `timestamp` (milliseconds since
    /// 1970-01-01 UTC; now unless given). Opened at a time before, the array still has them. Returns the delete's name.
    ///
    /// Nothing is rewritten: readers leave the cells out from now on, and a consolidation that purges removes them. Cells
    /// that are null where the condition compares are deleted too, as in the reference; so are all cells of fragments
    /// without an attribute that the condition compares.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a dense array and for what cannot be stored: comparing an enumerated attribute by
    /// index, deleting where something is *not* null. [`Error::Unsupported`] for an array below format version 16,
    /// [`Error::SchemaMismatch`] for a condition that does not fit the schema.
    pub fn delete_cells(
        context: &Context,
        uri: &str,
        condition: &Condition,
        timestamp: Option<u64>,
    ) -> Result<String> {
        let head = Head::open(context, uri)?;
        let refuse = |reason: &str| Error::InvalidArgument(format!("{}: {reason}", head.uri));
        if head.schema.is_dense() {
            return Err(refuse("cells of a dense array cannot be deleted; write other values"));
        }
        if !head.schema.version.has_deletes() {
            return Err(Error::Unsupported(format!(
                "{}: arrays of format version {} have no deletes; upgrade it first",
                head.uri, head.schema.version
            )));
        }
        let lookup = |name: &str| head.enumeration(context, name).map(Arc::new);
        BoundCondition::bind_negated(condition, &head.schema, &lookup)?;
        let by_index =
            |name: &str| head.schema.attributes.iter().any(|a| a.name == name && a.enumeration.is_some());
        if let Some(field) = condition.fields().iter().find(|field| field.raw && by_index(&field.name)) {
            let name = &field.name;
            return Err(refuse(&format!("a delete must compare {name:?} with labels, not with indices")));
        }
        let mut kept = Delete::of(condition.clone()).kept;
        spell_out_nulls(&mut kept, &head, context)?;
        let time = timestamp.unwrap_or_else(clock::next_timestamp);
        let merged = |fragment: &&CommittedFragment| {
            let name = &fragment.entry.name;
            let tells = fragment_version(name).is_ok_and(|version| version.may_count_in_part());
            !tells && name.t_start < name.t_end && (name.t_start..name.t_end).contains(&time)
        };
        if let Some(fragment) = head.commits()?.committed.fragments.iter().find(merged) {
            return Err(refuse(&format!(
                "nobody can tell which cells of the consolidated fragment {} were written until {time}; delete at \
                 another time",
                fragment.entry.name
            )));
        }
        let name = TimestampedName::versioned(time, time, head.schema.version.number());
        let path = suffixed_commit_path(&name, Suffix::Delete);
        put_tile(context, &head.location, &path, &Delete { kept }.encode())?;
        Ok(name.to_string())
    }
}

/// Null tests are stored as comparisons with an empty value, which no reader tells from those (and the reference does not
/// open arrays that have them on fixed-length attributes). That something is not null can be said otherwise: it equals a
/// value, or it does not.
fn spell_out_nulls(condition: &mut Condition, head: &Head, context: &Context) -> Result<()> {
    match condition {
        Condition::IsNull { field, negated: true } => {
            let value = some_value(&head.schema, &field.name, &|name| {
                head.enumeration(context, name).map(|e| e.value(0).map(<[u8]>::to_vec))
            })?;
            let compare = |op| Condition::compare(field.clone(), op, value.clone());
            *condition = Condition::Or(vec![compare(Comparison::Eq), compare(Comparison::Ne)]);
            Ok(())
        }
        Condition::IsNull { field, negated: false } => Err(Error::InvalidArgument(format!(
            "{}: a delete of the cells where {:?} is not null cannot be stored; compare it with values",
            head.uri, field.name
        ))),
        Condition::And(children) | Condition::Or(children) => {
            children.iter_mut().try_for_each(|child| spell_out_nulls(child, head, context))
        }
        Condition::Not(child) => spell_out_nulls(child, head, context),
        Condition::Compare { .. } | Condition::In { .. } => Ok(()),
    }
}

/// Any value that a field can be compared with.
fn some_value(
    schema: &ArraySchema,
    name: &str,
    first_label: &dyn Fn(&str) -> Result<Option<Vec<u8>>>,
) -> Result<Vec<u8>> {
    let attribute = schema.attributes.iter().find(|attribute| attribute.name == name);
    let size = schema.field(name).and_then(|field| schema.cell_size(field)).unwrap_or(0);
    match attribute.and_then(|attribute| attribute.enumeration.as_deref()) {
        None => Ok(vec![0; size]),
        Some(enumeration) => first_label(enumeration)?.ok_or_else(|| {
            Error::InvalidArgument(format!("the enumeration {enumeration:?} of {name:?} has no values"))
        }),
    }
}
