//! Conditions with the meaning that SQL engines give them.

use super::Condition;
use super::bind::{BoundTree, EnumerationLookup, Test, bind, compact};
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
    let mut bound = bind(condition, schema, enumerations, false)?;
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
/// or has with another type, are what they read as, the fill value.
pub(super) fn with_fills(
    bound: &BoundTree,
    latest: &Arc<ArraySchema>,
    fragment: &ArraySchema,
) -> BoundTree {
    let missing = |name: &Arc<str>| {
        let attribute = latest.attributes.iter().find(|a| a.name == **name)?;
        let type_of = |a: &Attribute| (a.datatype, a.cell_val_num, a.nullable);
        let stored = fragment.attributes.iter().find(|a| a.name == **name);
        let same = stored.is_some_and(|stored| type_of(stored) == type_of(attribute));
        (!same).then_some(attribute)
    };
    let missing: Vec<Option<&Attribute>> = bound.fields.iter().map(missing).collect();
    if missing.iter().all(Option::is_none) {
        return bound.clone();
    }
    let root = bound.root.settled(&|leaf| {
        let attribute = missing.get(leaf.field).copied().flatten()?;
        Some(of_fill(leaf, attribute))
    });
    let mut settled = compact(&bound.fields, &bound.shapes, root);
    settled.sql = Some(Arc::clone(latest));
    settled
}
