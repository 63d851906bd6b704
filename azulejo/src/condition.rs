//! Conditions on cells: binding a tree to a schema, evaluating it over columns, pruning tiles by
//! their statistics, and reading it from text.
//!
//! A [`Condition`] holds bytes of the fields' own types (for an enumerated attribute: of the
//! enumeration's type). Binding checks names and types, turns labels into indices, pushes negations
//! down to the comparisons and leaves a tree that evaluates column by column.
//!
//! Meaning, as in the reference: a comparison or set test with a null cell is false, and so is its
//! negation (`not a > 3` is `a <= 3`); NaN meets nothing but `!=` and `not in`; a test of an
//! attribute that a fragment does not have is false.

mod bind;
mod evaluate;
mod like;
mod literal;
mod parse;
mod prune;
mod sql;
#[cfg(test)]
mod tests;
mod token;

pub use azulejo_format::condition::{Comparison, Condition, FieldRef, Form, ValueSet};
pub use bind::EnumerationLookup;
pub(crate) use bind::unknown_field;
pub use parse::format;
pub(crate) use parse::parse;
pub(crate) use prune::{TileFieldStats, Tri};

use crate::column::FieldView;
use crate::error::Result;
use azulejo_format::ArraySchema;
use std::sync::Arc;

/// What a condition means where engines differ. Null cells are no difference: they fail every
/// comparison, and its negation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Meaning {
    /// As in the reference: NaN meets nothing but `!=` and `not in`; tests of an attribute that a
    /// fragment does not have are false.
    #[default]
    TileDb,
    /// As in SQL engines that compare with Arrow: reals have IEEE 754's total order, in which NaN
    /// without a sign lies above all numbers and equals itself, and -0.0 equals 0.0 (sets compare
    /// bytes); cells of an attribute that a fragment does not have are what they read as, its fill
    /// value.
    Sql,
}

/// A condition that fits a schema, ready to run over cells.
#[derive(Debug, Clone)]
pub(crate) struct BoundCondition(bind::BoundTree);

impl BoundCondition {
    /// Binds a condition to the array's schema. Labels of enumerated attributes become indices; the
    /// lookup is called for those enumerations only.
    ///
    /// # Errors
    /// A field that does not exist, a value whose size does not fit the field, a comparison that
    /// the type does not have, `<` and the like on an enumeration without order.
    pub fn bind(
        condition: &Condition,
        schema: &ArraySchema,
        enumerations: EnumerationLookup<'_>,
    ) -> Result<Self> {
        bind::bind(condition, schema, enumerations, false).map(Self)
    }

    /// As [`Self::bind`], with a meaning.
    ///
    /// # Errors
    /// Those of [`Self::bind`].
    pub fn bind_as(
        condition: &Condition,
        meaning: Meaning,
        schema: &Arc<ArraySchema>,
        enumerations: EnumerationLookup<'_>,
    ) -> Result<Self> {
        match meaning {
            Meaning::TileDb => Self::bind(condition, schema, enumerations),
            Meaning::Sql => sql::bind_sql(condition, schema, enumerations).map(Self),
        }
    }

    /// Whether cells that a fragment lacks are tested by what they read as.
    pub fn tests_fills(&self) -> bool {
        self.0.sql.is_some()
    }

    /// Binds the negation, pushed down to the comparisons: cells for which a comparison is neither
    /// true nor false (nulls) meet neither a condition nor its negation. Delete commits store the
    /// negation of what their user wrote, and are bound as they are.
    ///
    /// # Errors
    /// Those of [`Self::bind`].
    pub fn bind_negated(
        condition: &Condition,
        schema: &ArraySchema,
        enumerations: EnumerationLookup<'_>,
    ) -> Result<Self> {
        bind::bind(condition, schema, enumerations, true).map(Self)
    }

    /// The same condition for the cells of one fragment: tests of attributes that its schema lacks
    /// (or has with another type, or among those that are `relabelled`) are false, or answered by
    /// their fill values. The result's [`Self::fields`] are those still needed: ask it, not the
    /// original, which views to bring.
    #[must_use]
    pub fn for_fragment(&self, schema: &ArraySchema, relabelled: &[String]) -> Self {
        Self(match &self.0.sql {
            Some(latest) => sql::with_fills(&self.0, latest, schema, relabelled),
            None => bind::for_fragment(&self.0, schema, relabelled),
        })
    }

    /// What a delete keeps of the cells of a fragment that has other labels under some attributes
    /// than the delete means: no test of these takes a cell away.
    pub(crate) fn keeping(&self, relabelled: &[String]) -> Self {
        Self(bind::keeping(&self.0, relabelled))
    }

    /// Whether a fragment of this schema has the cells of all fields that are tested.
    pub(crate) fn fits(&self, fragment: &ArraySchema, relabelled: &[String]) -> bool {
        self.0.present(fragment, relabelled).all(|present| present)
    }

    /// Names of the fields whose cells [`Self::evaluate`] looks at, each once.
    #[must_use]
    pub fn fields(&self) -> &[Arc<str>] {
        &self.0.fields
    }

    /// The outcome if it is the same for every cell.
    #[must_use]
    pub fn constant(&self) -> Option<bool> {
        match self.0.root {
            bind::Node::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Clears `mask` (one byte a cell, 0 or 1) for the cells that do not meet the condition.
    ///
    /// `views` are the cells of [`Self::fields`], in that order, all as long as the mask. Bytes
    /// already 0 stay 0.
    ///
    /// # Errors
    /// Views that do not fit the fields.
    pub fn evaluate(&self, views: &[FieldView<'_>], mask: &mut [u8]) -> Result<()> {
        evaluate::evaluate(&self.0.root, views, mask)
    }

    /// What statistics alone say about a tile. `stats` is asked by index into [`Self::fields`];
    /// `None` if nothing about that field is known or trusted.
    #[must_use]
    pub fn prune<'a>(&self, stats: &dyn Fn(usize) -> Option<TileFieldStats<'a>>) -> Tri {
        prune::prune(&self.0.root, stats)
    }
}
