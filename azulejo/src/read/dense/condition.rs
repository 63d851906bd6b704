//! A dense read's condition and the statistics of tiles.

use super::plan::{BatchPlan, TileTask};
use crate::array::Array;
use crate::condition::{BoundCondition, Tri};
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
    pub fn prune(&self, array: &Array, batch: &mut BatchPlan) {
        let tasks = std::mem::take(&mut batch.tasks).into_iter();
        let (out, left): (Vec<_>, Vec<_>) = tasks.partition(|task| self.excludes(array, task));
        batch.pruned += out.len();
        batch.tasks = left;
        for task in out {
            batch.fills.append(&batch.copies, task.copies);
        }
    }

    fn excludes(&self, array: &Array, task: &TileTask) -> bool {
        let (Some((condition, fields)), Some(fragment), Ok(tile)) = (
            self.tests.get(&task.fragment),
            array.fragments().get(task.fragment),
            usize::try_from(task.tile),
        ) else {
            return false;
        };
        let cells = fragment.tile_cell_num(task.tile);
        verdict(condition, fields, fragment, tile, cells) == Tri::AllFalse
    }
}
