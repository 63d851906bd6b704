//! Which fragments would best be consolidated together: those that overlap, and small ones whose
//! union meets no other.

use crate::array::Array;
use crate::error::Result;
use azulejo_format::{ArraySchema, NdRectangle};

/// Sets of fragments, each to be consolidated into fragments of about the size that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ConsolidationPlan {
    /// Names of the fragments of each set, the oldest of a set first. One that stands alone is to
    /// be split.
    pub nodes: Vec<Vec<String>>,
}

/// Fragments that belong together.
#[derive(Debug, Clone)]
struct PlanNode {
    /// Indices among those that count at the array's time.
    fragments: Vec<usize>,
    bounds: Option<NdRectangle>,
    size: u64,
}

impl Array {
    /// Plans the consolidation of an array into fragments of about `fragment_size` bytes. Fragments
    /// whose boxes overlap come together, whatever their size; so do fragments of at most half that
    /// size, where the box around them meets no others. Alone stand fragments of one and a half
    /// times that size and more. Fragments that are best left alone are not in the plan.
    ///
    /// # Errors
    /// Those of asking for the sizes of metadata files.
    pub fn consolidation_plan(&self, fragment_size: u64) -> Result<ConsolidationPlan> {
        let schema = self.schema();
        let info = self.fragment_info();
        let mut nodes: Vec<PlanNode> = Vec::with_capacity(info.fragment_num());
        for (i, fragment) in info.fragments().enumerate() {
            let bounds = fragment.fragment().reach().cloned();
            nodes.push(PlanNode {
                fragments: vec![i],
                bounds,
                size: fragment.size()?,
            });
        }
        join_overlapping(schema, &mut nodes);
        join_small(schema, &mut nodes, fragment_size / 2);
        let large = |node: &PlanNode| node.size as f64 >= 1.5 * fragment_size as f64;
        let (joined, single): (Vec<PlanNode>, Vec<PlanNode>) =
            nodes.into_iter().partition(|node| node.fragments.len() > 1);
        let chosen = joined.into_iter().chain(single.into_iter().filter(large));
        let names = |mut node: PlanNode| {
            node.fragments.sort_unstable();
            let name = |i: &usize| Some(info.fragment(*i)?.name().to_owned());
            node.fragments.iter().filter_map(name).collect()
        };
        Ok(ConsolidationPlan {
            nodes: chosen.map(names).collect(),
        })
    }
}

impl PlanNode {
    fn join(&mut self, schema: &ArraySchema, other: Self) {
        self.bounds = around(schema, self.bounds.as_ref(), other.bounds.as_ref());
        self.fragments.extend(other.fragments);
        self.size = self.size.saturating_add(other.size);
    }
}

/// Joins nodes until no two overlap.
fn join_overlapping(schema: &ArraySchema, nodes: &mut Vec<PlanNode>) {
    let mut at = 0;
    while at < nodes.len() {
        let meets =
            |a: &PlanNode, b: &PlanNode| overlap(schema, a.bounds.as_ref(), b.bounds.as_ref());
        let found = nodes
            .iter()
            .enumerate()
            .position(|(i, other)| i != at && nodes.get(at).is_some_and(|node| meets(node, other)));
        match found {
            // The earlier of the two grows, and is looked at again.
            Some(other) => {
                let (low, high) = (at.min(other), at.max(other));
                let taken = nodes.remove(high);
                if let Some(node) = nodes.get_mut(low) {
                    node.join(schema, taken);
                }
                at = low;
            }
            None => at += 1,
        }
    }
}

/// Joins nodes of at most `small` bytes where the box around them meets no third.
fn join_small(schema: &ArraySchema, nodes: &mut Vec<PlanNode>, small: u64) {
    let mut at = 0;
    while at < nodes.len() {
        let found = (at + 1..nodes.len()).find(|&other| {
            let (Some(a), Some(b)) = (nodes.get(at), nodes.get(other)) else {
                return false;
            };
            if a.size > small || b.size > small {
                return false;
            }
            let both = around(schema, a.bounds.as_ref(), b.bounds.as_ref());
            !nodes.iter().enumerate().any(|(i, third)| {
                i != at && i != other && overlap(schema, both.as_ref(), third.bounds.as_ref())
            })
        });
        match found {
            Some(other) => {
                let taken = nodes.remove(other);
                if let Some(node) = nodes.get_mut(at) {
                    node.join(schema, taken);
                }
                // Others before it may have become neighbours now.
                at = 0;
            }
            None => at += 1,
        }
    }
}

/// Whether two boxes share a cell; a box that is not known shares all.
pub(super) fn overlap(
    schema: &ArraySchema,
    a: Option<&NdRectangle>,
    b: Option<&NdRectangle>,
) -> bool {
    let (Some(a), Some(b)) = (a, b) else {
        return true;
    };
    let ranges = a
        .ranges
        .iter()
        .zip(&b.ranges)
        .zip(&schema.domain.dimensions);
    ranges
        .into_iter()
        .all(|((a, b), dimension)| a.as_ref().overlaps(b.as_ref(), dimension.datatype))
}

/// The box around two boxes.
pub(super) fn around(
    schema: &ArraySchema,
    a: Option<&NdRectangle>,
    b: Option<&NdRectangle>,
) -> Option<NdRectangle> {
    schema.domain.around(a.into_iter().chain(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::tile_grid::tests::{dimension, schema};
    use azulejo_format::schema::Layout;
    use azulejo_format::{Datatype, Range};

    fn node(index: usize, from: i32, to: i32, size: u64) -> PlanNode {
        let bounds = Some(NdRectangle {
            ranges: vec![Range::of(from, to)],
        });
        PlanNode {
            fragments: vec![index],
            bounds,
            size,
        }
    }

    fn line() -> ArraySchema {
        schema(
            vec![dimension(Datatype::Int32, 0i32, 999, 10)],
            Layout::RowMajor,
            Layout::RowMajor,
        )
    }

    fn sets(nodes: &[PlanNode]) -> Vec<Vec<usize>> {
        let mut sets: Vec<Vec<usize>> = nodes.iter().map(|node| node.fragments.clone()).collect();
        sets.iter_mut().for_each(|set| set.sort_unstable());
        sets.sort();
        sets
    }

    #[test]
    fn overlaps_spread() {
        // 0 and 2 meet only through 1.
        let mut nodes = vec![
            node(0, 0, 10, 1),
            node(1, 8, 30, 1),
            node(2, 25, 40, 1),
            node(3, 41, 50, 1),
        ];
        join_overlapping(&line(), &mut nodes);
        assert_eq!(sets(&nodes), [vec![0, 1, 2], vec![3]]);
    }

    #[test]
    fn small_ones_join_unless_a_third_lies_between() {
        let mut nodes = vec![
            node(0, 0, 9, 1),
            node(1, 20, 29, 100),
            node(2, 40, 49, 1),
            node(3, 60, 69, 1),
        ];
        join_small(&line(), &mut nodes, 10);
        assert_eq!(sets(&nodes), [vec![0], vec![1], vec![2, 3]]);
    }
}
