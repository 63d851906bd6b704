//! From a condition tree to one that fits a schema.

use super::{BoundCondition, Condition, EnumerationLookup};
use crate::error::{Error, Result};
use azulejo_format::ArraySchema;

/// A bound tree without negations.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Constant(bool),
}

pub(super) fn bind(
    _condition: &Condition,
    _schema: &ArraySchema,
    _enumerations: EnumerationLookup<'_>,
    _negated: bool,
) -> Result<BoundCondition> {
    Err(Error::Internal("not yet".into()))
}

pub(super) fn for_fragment(bound: &BoundCondition, _schema: &ArraySchema) -> BoundCondition {
    bound.clone()
}
