//! Conditions as text.

use super::{Condition, EnumerationLookup};
use crate::error::{Error, Result};
use azulejo_format::ArraySchema;

/// Reads a condition such as `a > 3 and b in ("x", "y") and c is null`.
pub fn parse(_text: &str, _schema: &ArraySchema, _enumerations: EnumerationLookup<'_>) -> Result<Condition> {
    Err(Error::Internal("not yet".into()))
}

/// Writes a condition as [`parse`] reads it.
pub fn format(
    _condition: &Condition,
    _schema: &ArraySchema,
    _enumerations: EnumerationLookup<'_>,
) -> Result<String> {
    Err(Error::Internal("not yet".into()))
}
