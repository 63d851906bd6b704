//! Where the encoder cuts a tile into chunks. Page: *Filter Pipeline, Main Structure*.

use super::{Filter, FilterContext, Pipeline};

impl Pipeline {
    /// Where the encoder cuts a tile of `len` bytes into chunks, which [`Self::encode_chunk`]
    /// filters one by one: their ends, in bytes of the unfiltered tile.
    ///
    /// Cells of fixed size are never cut. Variable-length cells are not either since version 11:
    /// `offsets` says where each starts, counted from the first. Where strings hold their own
    /// offsets, or a picture is made, the tile is one chunk; so it is where the chunk size is 0.
    #[must_use]
    pub fn chunk_ends(
        &self,
        ctx: &FilterContext<'_>,
        len: usize,
        offsets: Option<&[u64]>,
    ) -> Vec<usize> {
        chunk_ends(self, ctx, len, offsets)
    }
}

/// See [`Pipeline::chunk_ends`].
pub(super) fn chunk_ends(
    pipeline: &Pipeline,
    ctx: &FilterContext<'_>,
    len: usize,
    offsets: Option<&[u64]>,
) -> Vec<usize> {
    let mut ends = all_chunk_ends(pipeline, ctx, len, offsets);
    // The delta filters store a first value: they have no form for an empty chunk. A tile may have
    // no chunks at all.
    if pipeline
        .filters
        .iter()
        .any(|filter| matches!(filter, Filter::Delta { .. } | Filter::DoubleDelta { .. }))
    {
        let mut start = 0;
        ends.retain(|end| std::mem::replace(&mut start, *end) != *end);
    }
    ends
}

fn all_chunk_ends(
    pipeline: &Pipeline,
    ctx: &FilterContext<'_>,
    len: usize,
    offsets: Option<&[u64]>,
) -> Vec<usize> {
    let has = |wanted: fn(&Filter) -> bool| pipeline.filters.iter().any(wanted);
    let is_picture = has(|filter| matches!(filter, Filter::Webp { .. }));
    if pipeline.max_chunk_size == 0 || is_picture || pipeline.keeps_offsets_in_data(ctx) {
        return vec![len];
    }
    let cell_size = ctx.cell_size();
    let size = len.min(pipeline.max_chunk_size as usize);
    let size = (size / cell_size * cell_size).max(cell_size);
    if len == size {
        return vec![len];
    }
    match offsets {
        Some(offsets) if ctx.version.keeps_cells_whole() => var_chunk_ends(size, len, offsets),
        _ => (1..=len.div_ceil(size).max(1))
            .map(|n| (n * size).min(len))
            .collect(),
    }
}

/// Chunks of whole cells of about `size` bytes: a cell that does not fit goes in all the same while
/// the chunk is at most half full, or where the chunk stays within 150%; else it begins a new one
/// (and ends it, where it is longer than `size`).
fn var_chunk_ends(size: usize, len: usize, offsets: &[u64]) -> Vec<usize> {
    let (size, len) = (size as u64, len as u64);
    let (half, most) = (size / 2, size + size / 2);
    let base = offsets.first().copied().unwrap_or(0);
    let relative = |offset: &u64| offset.saturating_sub(base).min(len);
    let mut starts = vec![0u64];
    let mut current = 0;
    let ends = offsets
        .iter()
        .skip(1)
        .map(relative)
        .chain(std::iter::once(len));
    for (cell, (start, end)) in offsets.iter().map(relative).zip(ends).enumerate() {
        let cell_len = end.saturating_sub(start);
        let with_cell = current + cell_len;
        if with_cell <= size {
            current = with_cell;
            continue;
        }
        if current <= half || with_cell <= most {
            starts.push(end);
            current = 0;
        } else {
            starts.push(start);
            current = cell_len;
            if cell_len > size {
                if cell + 1 != offsets.len() {
                    starts.push(end);
                }
                current = 0;
            }
        }
    }
    // A cell that ended the last chunk leaves an empty one behind it, as in the reference.
    starts
        .iter()
        .skip(1)
        .copied()
        .chain(std::iter::once(len))
        .map(|end| end as usize)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(size: usize, cells: &[usize]) -> Vec<usize> {
        let mut at = 0;
        let offsets: Vec<u64> = cells
            .iter()
            .map(|len| {
                at += len;
                (at - len) as u64
            })
            .collect();
        var_chunk_ends(size, at, &offsets)
    }

    #[test]
    fn cells_follow_the_50_and_150_percent_rule() {
        // Up to half full a cell may overflow.
        assert_eq!(ends(100, &[50, 400, 10]), [450, 460]);
        // Then only up to 150%.
        assert_eq!(ends(100, &[60, 90, 10]), [150, 160]);
        assert_eq!(ends(100, &[60, 91, 9]), [60, 160]);
        // A long cell gets a chunk of its own.
        assert_eq!(ends(100, &[60, 300, 10]), [60, 360, 370]);
        assert_eq!(ends(100, &[60, 300]), [60, 360]);
        // Offsets count from the first.
        assert_eq!(var_chunk_ends(100, 160, &[7, 67, 158]), [60, 160]);
        // An overflowing cell at the end leaves an empty chunk.
        assert_eq!(ends(100, &[40, 60, 10]), [110, 110]);
    }
}
