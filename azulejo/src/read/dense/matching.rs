//! Which cells of a batch match the condition: looked at on all cores, piece by piece.

use super::assemble::DenseQuery;
use super::condition::DenseCondition;
use super::plan::BatchPlan;
use crate::column::FieldView;
use crate::condition::BoundCondition;
use crate::error::{Error, Result};
use crate::read::parallel::each;
use crate::read::stored_tile::fragment_of;
use azulejo_format::ArraySchema;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Cells that are looked at at a time: their columns stay in a cache.
const PIECE: usize = 1 << 15;

impl DenseQuery {
    /// Which cells match the condition, one byte each; `views` are the cells of all fields, in
    /// their order.
    pub fn mask(
        &self,
        condition: &DenseCondition,
        batch: &BatchPlan,
        views: &[FieldView<'_>],
    ) -> Result<Vec<u8>> {
        let evaluate = |condition: &BoundCondition| -> Result<Vec<u8>> {
            let view = |name: &Arc<str>| {
                let mut fields = self.fields.iter().zip(views);
                let view = fields.find(|(field, _)| field.column_type.name == *name);
                let view = view.map(|(_, view)| *view);
                view.ok_or_else(|| Error::Internal(format!("no column {name}")))
            };
            let views = condition.fields().iter().map(view);
            let views = views.collect::<Result<Vec<_>>>()?;
            let short =
                || Error::Internal("a column of a condition is shorter than the others".into());
            let mut mask = vec![1; batch.cells];
            let pieces = mask.chunks_mut(PIECE).enumerate().collect();
            each(self.array.context(), pieces, |(i, mask)| {
                let cells = i * PIECE..i * PIECE + mask.len();
                let views = views.iter().map(|view| view.slice(cells.clone()));
                let views: Option<Vec<_>> = views.collect();
                condition.evaluate(&views.ok_or_else(short)?, mask)
            })?;
            Ok(mask)
        };
        let mut mask = evaluate(&condition.condition)?;
        if condition.condition.tests_fills() {
            return Ok(mask);
        }
        // Cells of fragments that lack an attribute do not read as its fill value: tests of it are
        // false for them.
        let mut others: HashMap<*const ArraySchema, Vec<u8>> = HashMap::new();
        for task in &batch.tasks {
            let fragment = fragment_of(&self.array, task.fragment)?;
            let (schema, relabelled) = (fragment.schema(), fragment.relabelled());
            if condition.condition.fits(schema, relabelled) {
                continue;
            }
            let other = match others.entry(Arc::as_ptr(schema)) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let condition = condition.condition.for_fragment(schema, relabelled);
                    entry.insert(evaluate(&condition)?)
                }
            };
            for copy in batch.copies_of(task) {
                batch.copies.rows(copy, &(0..batch.cells), &mut |row| {
                    for i in 0..row.axis.count {
                        let at = row.out + i * row.axis.out;
                        if let (Some(to), Some(from)) = (mask.get_mut(at), other.get(at)) {
                            *to = *from;
                        }
                    }
                    Ok(())
                })?;
            }
        }
        Ok(mask)
    }
}
