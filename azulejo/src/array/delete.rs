//! Deleting cells by a condition.

use super::head::Head;
use super::tile_object::put_tile_if_there;
use super::timeline::CommittedFragment;
use super::{Array, ArrayHandle, Contents, DeleteCommit};
use crate::clock;
use crate::condition::{BoundCondition, Comparison, Condition, EnumerationLookup, FieldRef};
use crate::error::{Error, Result};
use azulejo_format::ArraySchema;
use azulejo_format::commit::{Delete, Update, UpdateValue};
use azulejo_format::path::{Suffix, fragment_version, suffixed_commit_path};
use azulejo_format::schema::Attribute;
use azulejo_format::timestamped_name::TimestampedName;
use std::sync::{Arc, OnceLock};

impl ArrayHandle {
    /// Deletes the cells of a sparse array that meet a condition and were written until `timestamp`
    /// (milliseconds since 1970-01-01 UTC; now unless given). Opened at a time before, the array
    /// still has them. Returns the delete's name.
    ///
    /// Nothing is rewritten: readers leave the cells out from now on, and a consolidation that
    /// purges removes them. Cells that are null where the condition compares are deleted too, as in
    /// the reference; so are all cells of fragments without an attribute that the condition
    /// compares.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a dense array, and for deleting where something is *not*
    /// null, which cannot be stored. [`Error::Unsupported`] for an array below format version 16,
    /// [`Error::SchemaMismatch`] for a condition that does not fit the schema.
    pub fn delete_cells(&self, condition: &Condition, timestamp: Option<u64>) -> Result<String> {
        let delete = |kept| Delete { kept }.encode();
        self.put_condition(condition, timestamp, Suffix::Delete, delete)
    }

    /// Stores new values for the cells of a sparse array that meet a condition, which nobody
    /// applies: for readers the cells are gone, as after [`Self::delete_cells`]. For the C API,
    /// which has such queries as an experiment.
    ///
    /// # Errors
    /// As [`Self::delete_cells`].
    #[doc(hidden)]
    pub fn put_update(
        &self,
        condition: &Condition,
        values: Vec<UpdateValue>,
        timestamp: Option<u64>,
    ) -> Result<String> {
        let update = |kept| Update { kept, values }.encode();
        self.put_condition(condition, timestamp, Suffix::Update, update)
    }

    /// Commits a file that holds the condition of the cells that stay.
    fn put_condition(
        &self,
        condition: &Condition,
        timestamp: Option<u64>,
        suffix: Suffix,
        encode: impl FnOnce(Condition) -> Vec<u8>,
    ) -> Result<String> {
        let Self { context, uri } = self;

        let head = Head::open(context, uri)?;
        let refuse = |reason: &str| Error::InvalidArgument(format!("{}: {reason}", head.uri));
        let lookup = |name: &str| head.enumeration(context, name).map(Arc::new);
        let kept = stored_condition(condition, &head.uri.to_string(), &head.schema, &lookup)?;
        let time = timestamp.unwrap_or_else(clock::next_timestamp);
        let merged = |fragment: &&CommittedFragment| {
            let name = &fragment.entry.name;
            let tells = fragment_version(name).is_ok_and(|version| version.may_count_in_part());
            !tells && name.t_start < name.t_end && (name.t_start..name.t_end).contains(&time)
        };
        if let Some(fragment) = head
            .commits(context)?
            .committed
            .fragments
            .iter()
            .find(merged)
        {
            return Err(refuse(&format!(
                "nobody can tell which cells of the consolidated fragment {} were written until {time}; delete at \
                 another time",
                fragment.entry.name
            )));
        }
        let name = TimestampedName::versioned(time, time, head.schema.version.number());
        let path = suffixed_commit_path(&name, suffix);
        put_tile_if_there(context, &head.location, &path, &encode(kept))?;
        Ok(name.to_string())
    }
}

impl Array {
    /// The array as [`ArrayHandle::delete_cells`] would leave it for readers: to see what goes
    /// before it goes. Nothing is written.
    ///
    /// # Errors
    /// As [`ArrayHandle::delete_cells`].
    pub fn after_deleting(&self, condition: &Condition, timestamp: Option<u64>) -> Result<Self> {
        let lookup = |name: &str| self.enumeration(name);
        let uri = self.uri().to_string();
        let kept = stored_condition(condition, &uri, self.schema(), &lookup)?;
        let timestamp = timestamp.unwrap_or(self.time_range().end);
        let name = TimestampedName::versioned(timestamp, timestamp, self.schema().version.number());
        let mut deletes = self.deletes().to_vec();
        let at = deletes.partition_point(|delete| delete.timestamp <= timestamp);
        deletes.insert(
            at,
            DeleteCommit {
                name: suffixed_commit_path(&name, Suffix::Delete),
                timestamp,
                kept,
            },
        );
        Ok(Self {
            snapshot: self.snapshot.clone(),
            contents: Arc::new(Contents {
                fragments: Arc::clone(&self.contents.fragments),
                deletes,
                to_vacuum: self.contents.to_vacuum.clone(),
                boxes: OnceLock::new(),
            }),
        })
    }
}

/// What a delete of the cells that meet `condition` stores: which cells stay.
fn stored_condition(
    condition: &Condition,
    uri: &str,
    schema: &ArraySchema,
    lookup: EnumerationLookup<'_>,
) -> Result<Condition> {
    if schema.is_dense() {
        return Err(Error::InvalidArgument(format!(
            "{uri}: cells of a dense array cannot be deleted; write other values"
        )));
    }
    if !schema.version.has_deletes() {
        return Err(Error::Unsupported(format!(
            "{uri}: arrays of format version {} have no deletes; upgrade it first",
            schema.version
        )));
    }
    BoundCondition::bind_negated(condition, schema, lookup)?;
    if let Some(field) = condition.unstorable() {
        return Err(Error::InvalidArgument(format!(
            "{uri}: a delete stores comparisons only, which cannot say `is nan` or `like` with marks before the end \
             ({:?}); compare it with values",
            field.name
        )));
    }
    // Negations at the leaves: a label that is not there is told apart from its negation.
    let mut stored = condition.clone().pushed_down();
    replace_labels(&mut stored, schema, lookup)?;
    let mut kept = Delete::of(stored).kept;
    spell_out_nulls(&mut kept, uri, schema)?;
    // What is stored is compared with values, which not all types that can be null allow.
    BoundCondition::bind(&kept, schema, lookup)?;
    Ok(kept)
}

/// Turns labels of enumerated attributes into indices, which is what deletes store.
fn replace_labels(
    condition: &mut Condition,
    schema: &ArraySchema,
    enumerations: EnumerationLookup<'_>,
) -> Result<()> {
    let find = |field: &FieldRef| {
        let attribute = schema
            .attributes
            .iter()
            .find(|a| a.name == field.name && !field.raw)?;
        Some((attribute, attribute.enumeration.as_deref()?))
    };
    match condition {
        Condition::Compare { field, op, value } => {
            let Some((attribute, name)) = find(field) else {
                return Ok(());
            };
            let index = enumerations(name)?.index().get(value);
            if index.is_none() {
                *op = if *op == Comparison::Ne {
                    Comparison::AlwaysTrue
                } else {
                    Comparison::AlwaysFalse
                };
            }
            *value = index_bytes(attribute, index.unwrap_or(0));
        }
        Condition::In { field, values, .. } => {
            let Some((attribute, name)) = find(field) else {
                return Ok(());
            };
            let enumeration = enumerations(name)?;
            let known = enumeration.index();
            let indices = values.iter().filter_map(|label| known.get(label));
            *values = indices.map(|index| index_bytes(attribute, index)).collect();
        }
        Condition::And(children) | Condition::Or(children) => {
            children
                .iter_mut()
                .try_for_each(|child| replace_labels(child, schema, enumerations))?;
        }
        Condition::Not(child) => replace_labels(child, schema, enumerations)?,
        Condition::IsNull { .. } | Condition::Match { .. } => {}
    }
    Ok(())
}

/// An index in the bytes of an integer attribute, which is large enough for every index of its
/// enumeration.
fn index_bytes(attribute: &Attribute, index: u64) -> Vec<u8> {
    index
        .to_le_bytes()
        .into_iter()
        .take(attribute.datatype.size())
        .collect()
}

/// Null tests are stored as comparisons with an empty value, which no reader tells from those (and
/// the reference does not open arrays that have them on fixed-length attributes). That something is
/// not null can be said otherwise: it equals a value, or it does not.
fn spell_out_nulls(condition: &mut Condition, uri: &str, schema: &ArraySchema) -> Result<()> {
    match condition {
        Condition::IsNull {
            field,
            negated: true,
        } => {
            let size = schema
                .field(&field.name)
                .and_then(|at| schema.cell_size(at))
                .unwrap_or(0);
            let compare = |op| Condition::compare(field.clone(), op, vec![0; size]);
            *condition = Condition::Or(vec![compare(Comparison::Eq), compare(Comparison::Ne)]);
            Ok(())
        }
        Condition::IsNull {
            field,
            negated: false,
        } => Err(Error::InvalidArgument(format!(
            "{uri}: a delete of the cells where {:?} is not null cannot be stored; compare it with values",
            field.name
        ))),
        Condition::And(children) | Condition::Or(children) => children
            .iter_mut()
            .try_for_each(|child| spell_out_nulls(child, uri, schema)),
        Condition::Not(child) => spell_out_nulls(child, uri, schema),
        Condition::Compare { .. } | Condition::In { .. } | Condition::Match { .. } => Ok(()),
    }
}
