//! A dense read's condition and the statistics of tiles.

use super::plan::BatchPlan;
use crate::array::Array;
use crate::condition::{BoundCondition, Tri};
use crate::error::Result;
use crate::read::tile_statistics::{stats_sections, verdict};
use azulejo_format::fragment::{Field, Section};
use std::collections::HashMap;

/// A condition that cells must meet, others read as fill values.
#[derive(Debug)]
pub(super) struct DenseCondition {
    pub condition: BoundCondition,
    /// What it means in each dense fragment that has all its fields, which are attributes: the
    /// statistics of tiles answer it.
    tests: HashMap<usize, (BoundCondition, Vec<Field>)>,
}

impl DenseCondition {
    /// A condition on the tiles of dense fragments, whose sections given back must be loaded then.
    pub fn new(
        array: &Array,
        whole: BoundCondition,
        fragments: impl Iterator<Item = usize>,
    ) -> (Self, Vec<(usize, Section)>) {
        let (mut tests, mut sections) = (HashMap::new(), Vec::new());
        for index in fragments {
            let Some(fragment) = array.fragments().get(index) else {
                continue;
            };
            let (schema, relabelled) = (fragment.schema(), fragment.relabelled());
            let condition = whole.for_fragment(schema, relabelled);
            let fields = condition.fields().iter().map(|name| fragment.field(name));
            let attribute =
                |field: Option<Field>| field.filter(|f| matches!(f, Field::Attribute(_)));
            let Some(fields) = fields.map(attribute).collect::<Option<Vec<Field>>>() else {
                continue;
            };
            for field in &fields {
                sections.extend(stats_sections(index, *field));
            }
            tests.insert(index, (condition, fields));
        }
        let condition = whole;
        (Self { condition, tests }, sections)
    }

    /// Makes cells of tiles of which none can meet the condition into cells that no fragment has:
    /// they read the same, and the tiles are not read.
    pub fn prune(&self, array: &Array, batch: &mut BatchPlan) -> Result<()> {
        let before = batch.tasks.len();
        let mut left = Vec::with_capacity(before);
        for task in std::mem::take(&mut batch.tasks) {
            if self.excludes(array, task.fragment, task.tile)? {
                batch.fills.append(&batch.copies, task.copies);
            } else {
                left.push(task);
            }
        }
        batch.pruned += before - left.len();
        batch.tasks = left;
        Ok(())
    }

    fn excludes(&self, array: &Array, index: usize, tile: u64) -> Result<bool> {
        let (Some((condition, fields)), Some(fragment)) =
            (self.tests.get(&index), array.fragments().get(index))
        else {
            return Ok(false);
        };
        let Ok(place) = usize::try_from(tile) else {
            return Ok(false);
        };
        let cells = fragment.tile_cell_num(tile);
        Ok(verdict(condition, fields, fragment, place, cells)? == Tri::AllFalse)
    }
}
