//! Deleting cells by a condition.

use super::head::Head;
use super::tile_object::put_tile_if_there;
use super::timeline::CommittedFragment;
use super::{Array, ArrayHandle, Contents, DeleteCommit, TimeRange};
use crate::clock;
use crate::condition::{BoundCondition, Comparison, Condition, EnumerationLookup, FieldRef};
use crate::error::{Error, Result};
use crate::storage::Uri;
use azulejo_format::ArraySchema;
use azulejo_format::commit::{Delete, Update, UpdateValue};
use azulejo_format::condition::MAX_DEPTH;
use azulejo_format::path::{Suffix, fragment_version, suffixed_commit_path};
use azulejo_format::schema::Attribute;
use azulejo_format::timestamped_name::TimestampedName;
use std::cmp::Reverse;
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
    /// Labels are stored as their indices, which cells are compared by, even those whose index stood
    /// for a label that was dropped before.
    ///
    /// The condition means the schema of that time, its labels of enumerations too; where it does
    /// not fit that one, the latest: so do readers take it.
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
        may_delete(&head.uri, &head.schema)?;
        let stored = |head: &Head| {
            let lookup = |name: &str| head.enumeration(context, name).map(Arc::new);
            stored_condition(condition, &head.uri.to_string(), &head.schema, &lookup)
        };
        let time = timestamp.unwrap_or_else(clock::next_timestamp);
        let then = match head.schemas_differ_at(time) {
            true => Some(Head::open_at(context, uri, TimeRange::until(time))?),
            false => None,
        };
        let kept = match then.as_ref().map(stored) {
            Some(Ok(kept)) => kept,
            Some(Err(_)) | None => stored(&head)?,
        };
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
        let schema = head.schema_file();
        put_tile_if_there(context, &head.location, Some(&schema), &path, &encode(kept))?;
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
        may_delete(self.uri(), self.schema())?;
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
                schemas: Arc::clone(&self.contents.schemas),
                fragments: Arc::clone(&self.contents.fragments),
                deletes,
                to_vacuum: self.contents.to_vacuum.clone(),
                boxes: OnceLock::new(),
            }),
        })
    }
}

/// An error if an array of this schema, its latest, has no deletes.
fn may_delete(uri: &Uri, schema: &ArraySchema) -> Result<()> {
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
    Ok(())
}

/// What a delete of the cells that meet `condition` stores: which cells stay.
fn stored_condition(
    condition: &Condition,
    uri: &str,
    schema: &ArraySchema,
    lookup: EnumerationLookup<'_>,
) -> Result<Condition> {
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
    compare_where_sets_have_no_bytes(&mut stored, schema);
    let mut kept = Delete::of(stored).kept;
    spell_out_nulls(&mut kept, uri, schema)?;
    put_newer_attributes_first(&mut kept, schema);
    if depth_of(&kept) > MAX_DEPTH {
        return Err(Error::InvalidArgument(format!(
            "{uri}: the condition of a delete is nested deeper than {MAX_DEPTH} levels, which nobody could read again; \
             delete in several steps"
        )));
    }
    // What is stored is compared with values, which not all types that can be null allow.
    BoundCondition::bind(&kept, schema, lookup)?;
    Ok(kept)
}

/// How deep combinations are nested.
fn depth_of(condition: &Condition) -> usize {
    let (mut deepest, mut todo) = (0, vec![(condition, 0)]);
    while let Some((condition, above)) = todo.pop() {
        deepest = deepest.max(above);
        match condition {
            Condition::And(children) | Condition::Or(children) => {
                todo.extend(children.iter().map(|child| (child, above + 1)));
                deepest = deepest.max(above + 1);
            }
            Condition::Not(child) => todo.push((child, above + 1)),
            Condition::Compare { .. }
            | Condition::In { .. }
            | Condition::IsNull { .. }
            | Condition::Match { .. } => {}
        }
    }
    deepest
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

/// Says by comparisons what sets without a byte say: libtiledb refuses to read those, and with them
/// every cell of the array.
fn compare_where_sets_have_no_bytes(condition: &mut Condition, schema: &ArraySchema) {
    match condition {
        Condition::In {
            field,
            negated,
            values,
        } if values.iter().all(<[u8]>::is_empty) => {
            let (op, value) = match (values.is_empty(), *negated) {
                (true, true) => (Comparison::AlwaysTrue, value_of_zeros(&field.name, schema)),
                (true, false) => (Comparison::AlwaysFalse, value_of_zeros(&field.name, schema)),
                (false, true) => (Comparison::Ne, Vec::new()),
                (false, false) => (Comparison::Eq, Vec::new()),
            };
            *condition = Condition::compare(field.clone(), op, value);
        }
        Condition::And(children) | Condition::Or(children) => {
            for child in children {
                compare_where_sets_have_no_bytes(child, schema);
            }
        }
        Condition::Not(child) => compare_where_sets_have_no_bytes(child, schema),
        Condition::In { .. }
        | Condition::Compare { .. }
        | Condition::IsNull { .. }
        | Condition::Match { .. } => {}
    }
}

/// A cell of a field for comparisons that do not look at it: of a field whose cells vary one value.
fn value_of_zeros(field: &str, schema: &ArraySchema) -> Vec<u8> {
    let at = schema.field(field);
    let size = at.and_then(|at| schema.cell_size(at));
    let one = at
        .and_then(|at| schema.type_of(at))
        .map(|(datatype, _)| datatype.size());
    vec![0; size.or(one).unwrap_or(0)]
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

/// Orders alternatives so that libtiledb evaluates them rightly: in fragments without the attribute
/// that a test compares it forgets the tests before it (those within an `and` are counted apart).
/// Attributes are added at the end of a schema, so a fragment lacks the last ones of them.
fn put_newer_attributes_first(condition: &mut Condition, schema: &ArraySchema) {
    match condition {
        Condition::And(children) => {
            for child in children {
                put_newer_attributes_first(child, schema);
            }
        }
        Condition::Or(children) => {
            let mut flat = Vec::with_capacity(children.len());
            for mut child in children.drain(..) {
                put_newer_attributes_first(&mut child, schema);
                match child {
                    Condition::Or(inner) => flat.extend(inner),
                    other => flat.push(other),
                }
            }
            flat.sort_by_key(|child| Reverse(newness(child, schema)));
            *children = flat;
        }
        Condition::Not(_)
        | Condition::Compare { .. }
        | Condition::In { .. }
        | Condition::IsNull { .. }
        | Condition::Match { .. } => {}
    }
}

/// Greater for tests of attributes that came later; zero for dimensions and for what is no test.
fn newness(condition: &Condition, schema: &ArraySchema) -> usize {
    let (Condition::Compare { field, .. } | Condition::In { field, .. }) = condition else {
        return 0;
    };
    let attribute = |a: &Attribute| a.name == field.name;
    schema
        .attributes
        .iter()
        .position(attribute)
        .map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo_format::{CellValNum, Datatype};

    #[test]
    fn tests_of_later_attributes_come_first_within_an_or() {
        let mut schema = ArraySchema::sparse().dimension("d", 0i32..=9, 10);
        for name in ["a", "b", "c"] {
            schema = schema.attribute_with(Attribute::new(name, Datatype::Int32, CellValNum::ONE));
        }
        let schema = schema.build().unwrap().schema;
        let test = |name: &str| Condition::compare(name, Comparison::Ne, 1i32.to_le_bytes());
        // What a delete keeps is the negation: a conjunction of what goes is stored as alternatives.
        let goes = test("d")
            .and(test("a"))
            .and(test("c").or(test("d")))
            .and(test("b"));
        let lookup = |_: &str| -> Result<_> { unreachable!("no attribute is enumerated") };
        let kept = stored_condition(&goes, "array", &schema, &lookup).unwrap();
        let Condition::Or(alternatives) = kept else {
            panic!("{kept:?}");
        };
        let names = alternatives.iter().map(|alternative| match alternative {
            Condition::Compare { field, .. } => &*field.name,
            Condition::And(_) => "and",
            other => panic!("{other:?}"),
        });
        assert_eq!(names.collect::<Vec<_>>(), ["b", "a", "d", "and"]);
    }
}
