//! Conditions with the meaning that SQL engines give them.

use super::Condition;
use super::bind::{BoundTree, EnumerationLookup, Test, bind, compact, never_null};
use super::evaluate::of_fill;
use crate::error::Result;
use azulejo_format::schema::Attribute;
use azulejo_format::{ArraySchema, Physical};
use std::sync::Arc;

/// Binds with the meaning of SQL; the schema stays with the result for its fill values.
pub(super) fn bind_sql(
    condition: &Condition,
    schema: &Arc<ArraySchema>,
    enumerations: EnumerationLookup<'_>,
) -> Result<BoundTree> {
    let bound = bind(condition, schema, enumerations, false)?;
    let root = bound.root.settled(&|leaf| never_null(&bound, leaf));
    let mut bound = compact(&bound.fields, &bound.types, root);
    bound.root.visit(&mut |leaf| {
        if let Test::Number {
            physical: Physical::F32 | Physical::F64,
            total,
            ..
        } = &mut leaf.test
        {
            *total = true;
        }
    });
    bound.sql = Some(Arc::clone(schema));
    Ok(bound)
}

/// As [`for_fragment`](super::bind::for_fragment) with the meaning of SQL: cells of a field that the fragment does not have,
/// or has with another type or other labels, are what they read as, the fill value.
pub(super) fn with_fills(
    bound: &BoundTree,
    latest: &Arc<ArraySchema>,
    fragment: &ArraySchema,
    relabelled: &[String],
) -> BoundTree {
    let missing = |(name, present): (&Arc<str>, bool)| {
        let attribute = || latest.attributes.iter().find(|a| a.name == **name);
        if present { None } else { attribute() }
    };
    let fields = bound.fields.iter().zip(bound.present(fragment, relabelled));
    let missing: Vec<Option<&Attribute>> = fields.map(missing).collect();
    if missing.iter().all(Option::is_none) {
        return bound.clone();
    }
    let root = bound.root.settled(&|leaf| {
        let attribute = missing.get(leaf.field).copied().flatten()?;
        Some(of_fill(leaf, attribute))
    });
    let mut settled = compact(&bound.fields, &bound.types, root);
    settled.sql = Some(Arc::clone(latest));
    settled
}
