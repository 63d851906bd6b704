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
mod literal;
mod parse;
mod prune;
#[cfg(test)]
mod tests;

pub use azulejo_format::condition::{Comparison, Condition, FieldRef, ValueSet};
pub use parse::format;
pub(crate) use prune::{TileFieldStats, Tri};

use crate::array::Snapshot;
use crate::column::FieldView;
use crate::error::Result;
use azulejo_format::ArraySchema;
use azulejo_format::schema::Enumeration;
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

/// Finds an enumeration by its name, loading it if need be.
pub type EnumerationLookup<'a> = &'a dyn Fn(&str) -> Result<Arc<Enumeration>>;

impl Snapshot {
    /// Reads a condition on this array's cells from text, such as `a > 3 and b in ("x", "y") and c
    /// is null`. Enumerations are read if it compares labels.
    ///
    /// - Comparisons: `=` or `==`, `!=` or `<>`, `<`, `<=`, `>`, `>=`; `in (..)`, `not in (..)`;
    ///   `is null`, `is not null`.
    /// - `and`, `or`, `not` (or `&&`, `||`, `!`) and parentheses; `not` binds strongest, then
    ///   `and`. Keywords in any case.
    /// - Names stand as they are if they are words (letters, digits, `_`, `.`, not beginning with
    ///   a digit), else in backticks or quotes. `raw(name)` compares the stored index of an
    ///   enumerated attribute instead of its label.
    /// - Numbers: `-3`, `1_000`, `0xff`, `2.5e-3`, `inf`, `nan`; `true` and `false`; strings in
    ///   single or double quotes, with `\n \r \t \0 \\ \' \" \xFF \u{1F600}`, a doubled quote
    ///   standing for one; dates and times as strings (`'2020-01-31'`).
    ///
    /// ```
    /// # use azulejo::format::{ArraySchema, Datatype};
    /// # use azulejo::read::ReadOptions;
    /// # use azulejo::{Config, Context};
    /// # let context = Context::new(Config::default(), None)?;
    /// # let schema = ArraySchema::sparse().dimension("x", 0i64..=9, 10)
    /// #     .attribute("a", Datatype::Float64).build()?;
    /// # context.array("mem://cells").create(schema)?;
    /// let array = context.array("mem://cells").open()?;
    /// let options = ReadOptions::new().condition(array.condition("a > 0.5 and x != 7")?);
    /// assert_eq!(array.read(options)?.read_all()?.cell_num, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) that shows the place in the text;
    /// [`Error::SchemaMismatch`](crate::Error::SchemaMismatch) for names that the array lacks;
    /// errors of reading enumerations.
    pub fn condition(&self, text: &str) -> Result<Condition> {
        parse::parse(text, self.schema(), &|name| self.enumeration(name))
    }
}

/// A condition that fits a schema, ready to run over cells.
#[derive(Debug, Clone)]
pub(crate) struct BoundCondition {
    fields: Vec<Arc<str>>,
    shapes: Vec<bind::Shape>,
    root: bind::Node,
    /// With [`Meaning::Sql`]: the schema whose fill values cells have that a fragment lacks.
    sql: Option<Arc<ArraySchema>>,
}

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
        bind::bind(condition, schema, enumerations, false)
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
            Meaning::Sql => bind::bind_sql(condition, schema, enumerations),
        }
    }

    /// Whether cells that a fragment lacks are tested by what they read as.
    pub fn tests_fills(&self) -> bool {
        self.sql.is_some()
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
        bind::bind(condition, schema, enumerations, true)
    }

    /// The same condition for the cells of one fragment: tests of attributes that its schema lacks
    /// are false, or answered by their fill values. The result's [`Self::fields`] are those still needed: ask it, not the original,
    /// which views to bring.
    #[must_use]
    pub fn for_fragment(&self, schema: &ArraySchema) -> Self {
        bind::for_fragment(self, schema)
    }

    /// Names of the fields whose cells [`Self::evaluate`] looks at, each once.
    #[must_use]
    pub fn fields(&self) -> &[Arc<str>] {
        &self.fields
    }

    /// The outcome if it is the same for every cell.
    #[must_use]
    pub fn constant(&self) -> Option<bool> {
        match self.root {
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
        evaluate::evaluate(&self.root, views, mask)
    }

    /// What statistics alone say about a tile. `stats` is asked by index into [`Self::fields`];
    /// `None` if nothing about that field is known or trusted.
    #[must_use]
    pub fn prune<'a>(&self, stats: &dyn Fn(usize) -> Option<TileFieldStats<'a>>) -> Tri {
        prune::prune(&self.root, stats)
    }
}
