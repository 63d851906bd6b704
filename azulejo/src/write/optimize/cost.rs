//! What a pipeline costs a reader: bytes to bring, and the time to undo filters.

use super::goal::Goal;
use super::sample::Part;
use azulejo_format::filter::{Filter, FilterContext, Pipeline, Scratch};
use rayon::prelude::*;

/// A copy: what nothing to undo costs, too. Nanoseconds a byte, as all rates here.
///
/// Measured once (`cargo bench -p azulejo --bench filters` prints them anew) and kept, so that the same
/// cells give the same filters everywhere. Between machines their proportions change less than clocks
/// vary on one.
const COPY: f64 = 0.03;

/// What an offset takes behind its filters: it becomes a number, and is held against the others.
const OFFSET_CHECK: f64 = 0.7;

/// What undoing a dictionary takes for each text.
const WORD: f64 = 1.1;

/// What undoing a filter takes for each byte before it; `size` is that of a value before it, `planes`
/// whether a filter in front of it has put the bytes (or bits) of values together.
fn rate_of(filter: &Filter, size: usize, planes: bool, before: usize, behind: usize) -> f64 {
    let (size, ratio) = (size.max(1) as f64, behind as f64 / before.max(1) as f64);
    match filter {
        // Blocks that do not get smaller are stored as they are.
        Filter::Zstd { .. } if ratio > 0.98 => 0.08,
        // Few matches: what counts are the bytes between them.
        Filter::Zstd { .. } if planes => 0.08 + 0.6 * ratio,
        // A match every value or two, as soon as they differ at all.
        Filter::Zstd { .. } => (0.05 + 8.0 * ratio).min(0.7),
        Filter::Lz4 { .. } if ratio > 0.98 => 0.05,
        Filter::Lz4 { .. } if planes => 0.12,
        Filter::Lz4 { .. } => 0.25,
        Filter::Byteshuffle => 0.04,
        Filter::Bitshuffle => 0.08,
        Filter::Xor | Filter::Delta { .. } => 0.4 / size,
        Filter::DoubleDelta { .. } => 1.7 / size,
        Filter::BitWidthReduction { .. } => 0.3 / size,
        Filter::Rle { .. } => 0.1 + ratio,
        // Beside what each text takes ([`WORD`]): the copies, and the list of words.
        Filter::Dictionary { .. } => 0.01 + 0.1 * ratio,
        _ => COPY,
    }
}

/// The candidate with the least cost for all parts.
pub(super) fn best(candidates: Vec<Pipeline>, parts: &[Part<'_>], goal: Goal) -> Option<Pipeline> {
    let costs: Vec<Option<f64>> = candidates
        .par_iter()
        .map_init(Scratch::new, |scratch, pipeline| {
            let cost = |part: &Part<'_>| of(pipeline, part, goal, scratch);
            parts.iter().map(cost).sum()
        })
        .collect();
    let mut best: Option<(f64, Pipeline)> = None;
    for (pipeline, cost) in candidates.into_iter().zip(costs) {
        // Of what is as good, the first: the simplest.
        if let Some(cost) = cost
            && best.as_ref().is_none_or(|(least, _)| cost < *least)
        {
            best = Some((cost, pipeline));
        }
    }
    best.map(|(_, pipeline)| pipeline)
}

/// The cost of what a pipeline stores of a part, in nanoseconds; `None` where it cannot store it.
pub(super) fn of(
    pipeline: &Pipeline,
    part: &Part<'_>,
    goal: Goal,
    scratch: &mut Scratch,
) -> Option<f64> {
    let lens = lens(pipeline, part, scratch)?;
    let stored = *lens.last()?;
    let (mut time, mut planes) = (COPY * *lens.first()? as f64, false);
    let steps = pipeline.with_input_types(part.context.datatype);
    for ((filter, datatype), pair) in steps.zip(lens.windows(2)) {
        let &[before, behind] = pair else { continue };
        time += rate_of(filter, datatype.size(), planes, before, behind) * before as f64;
        if matches!(filter, Filter::Dictionary { .. }) {
            time += part.texts() as f64 * WORD;
        }
        planes |= matches!(
            filter,
            Filter::Byteshuffle | Filter::Bitshuffle | Filter::DoubleDelta { .. }
        );
    }
    Some(time + goal.byte_price() * stored as f64)
}

/// The cost of texts and of their offsets, where these are filtered by `offsets`.
pub(super) fn with_offsets(
    (pipeline, part): (&Pipeline, &Part<'_>),
    (offsets_pipeline, offsets): (&Pipeline, &Part<'_>),
    goal: Goal,
    scratch: &mut Scratch,
) -> Option<f64> {
    let cost = of(pipeline, part, goal, scratch)?;
    if pipeline.keeps_offsets_in_data(&part.context) {
        return Some(cost);
    }
    let beside = of(offsets_pipeline, offsets, goal, scratch)?;
    Some(cost + beside + part.texts() as f64 * OFFSET_CHECK)
}

/// Bytes of a part before the first filter and behind each; the offsets that strings keep count.
fn lens(pipeline: &Pipeline, part: &Part<'_>, scratch: &mut Scratch) -> Option<Vec<usize>> {
    let context = &part.context;
    let raw = part.tiles.iter().map(|(data, offsets)| {
        let offsets = offsets.filter(|_| pipeline.keeps_offsets_in_data(context));
        data.len() + offsets.map_or(0, |offsets| offsets.len() * 8)
    });
    let mut lens = vec![raw.sum::<usize>()];
    // Each step alone would need what the filters hand on to each other: one more filter at a time
    // does it, too.
    for filters in 1..=pipeline.filters.len() {
        let first = Pipeline {
            filters: pipeline.filters.get(..filters)?.to_vec(),
            ..*pipeline
        };
        lens.push(stored(&first, context, part, scratch)?);
    }
    Some(lens)
}

/// Bytes that a part is stored in.
fn stored(
    pipeline: &Pipeline,
    context: &FilterContext<'_>,
    part: &Part<'_>,
    scratch: &mut Scratch,
) -> Option<usize> {
    let mut out = Vec::new();
    for (data, offsets) in &part.tiles {
        pipeline
            .encode_tile(context, data, *offsets, &mut out, scratch)
            .ok()?;
    }
    Some(out.len())
}
