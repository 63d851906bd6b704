//! Filters of texts that can hold their own offsets.
//!
//! Beginnings of tiles show what compresses words best. Whether a dictionary is worth it only whole
//! tiles show, as these have more words twice.

use super::cost;
use super::goal::Goal;
use super::sample::Part;
use azulejo_format::filter::{Pipeline, Scratch};

/// The candidate with the least cost: the best with a dictionary, or the best without one, whose
/// offsets are filtered beside it.
pub(super) fn best(
    candidates: Vec<Pipeline>,
    part: &Part<'_>,
    offsets: (&Pipeline, &Part<'_>),
    goal: Goal,
) -> Option<Pipeline> {
    let (with, without): (Vec<_>, Vec<_>) = candidates
        .into_iter()
        .partition(|pipeline| pipeline.keeps_offsets_in_data(&part.context));
    let beginnings = [part.beginnings()];
    let scratch = &mut Scratch::new();
    let cost = |pipeline: Pipeline| {
        let cost = cost::with_offsets((&pipeline, part), offsets, goal, scratch)?;
        Some((cost, pipeline))
    };
    let least = [without, with]
        .into_iter()
        .filter_map(|candidates| cost::best(candidates, &beginnings, goal))
        .filter_map(cost)
        .min_by(|(a, _), (b, _)| a.total_cmp(b));
    least.map(|(_, pipeline)| pipeline)
}
