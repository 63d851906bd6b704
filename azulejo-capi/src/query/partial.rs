//! Unordered writes whose fields come with several submissions:
//! `sm.allow_separate_attribute_writes`.
//!
//! The first submission brings all coordinates. What was submitted is kept, for callers may free
//! their buffers; the fragment is written with the submission that brings the last field.

use super::write::{Given, column_type, coordinates};
use super::{OffsetsFormat, State};
use crate::array::OpenArray;
use crate::error::{Failure, Result};
use azulejo::column::{ColumnBuffers, ColumnView};
use azulejo_format::schema::{ArraySchema, Layout};

/// The columns that were submitted so far.
#[derive(Debug, Default)]
pub struct Partial {
    columns: Vec<ColumnBuffers>,
}

impl Partial {
    /// Whether a query writes this way.
    pub fn applies(state: &State, schema: &ArraySchema) -> bool {
        state.layout == Layout::Unordered
            && !schema.is_dense()
            && state.settings.flag("sm.allow_separate_attribute_writes")
    }

    /// Whether a field was submitted.
    pub fn has(&self, name: &str) -> bool {
        self.columns
            .iter()
            .any(|column| *column.column_type.name == *name)
    }

    /// Whether fields were submitted, but not all of them.
    pub fn is_under_way(&self) -> bool {
        !self.columns.is_empty()
    }

    /// Keeps the fields that are new among the buffers; whether all are there now.
    pub fn add(
        &mut self,
        buffers: &[super::FieldBuffers],
        open: &OpenArray,
        format: OffsetsFormat,
    ) -> Result<bool> {
        let schema = open.snapshot().schema();
        let fields = || {
            let dimensions = schema.domain.dimensions.iter().map(|d| &d.name);
            dimensions.chain(schema.attributes.iter().map(|a| &a.name))
        };
        if !self.is_under_way() {
            for dimension in &schema.domain.dimensions {
                if !buffers.iter().any(|b| b.name == dimension.name) {
                    return Err(Failure::new(format!(
                        "Query: [check_buffer_names] Dimension buffer {} is not set",
                        dimension.name
                    )));
                }
            }
        }
        let known = self
            .columns
            .first()
            .map(|column| column.cell_num)
            .or_else(|| coordinates(buffers, schema));
        let mut new = Vec::new();
        for field in buffers
            .iter()
            .filter(|b| fields().any(|name| *name == b.name) && !self.has(&b.name))
        {
            let kind = column_type(schema, &field.name)?;
            new.push(Given::new(kind, field, format, known)?.keep()?);
        }
        let cells = self
            .columns
            .iter()
            .chain(&new)
            .map(|column| column.cell_num);
        let counts: Vec<usize> = cells.collect();
        if counts.iter().any(|count| Some(count) != counts.first()) {
            return Err("Cannot write; the fields have different numbers of cells".into());
        }
        self.columns.append(&mut new);
        Ok(fields().all(|name| self.has(name)))
    }

    /// All columns.
    pub fn views(&self) -> Vec<ColumnView<'_>> {
        self.columns.iter().map(ColumnBuffers::as_view).collect()
    }
}
