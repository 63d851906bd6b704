//! What a fragment's metadata knows for certain of the values in a tile.

use super::TileFacts;
use crate::array::Fragment;
use crate::error::Result;
use azulejo_format::datatype::{Native, dispatch};
use azulejo_format::fragment::{Field, Section, StatsTrust, SumKind, TileSum};

/// The sections of metadata that [`tile_facts`] looks at; without those about `values` only what
/// counts nulls.
pub(super) fn sections(fragment: &Fragment, field: Field, values: bool) -> Vec<Section> {
    if !matches!(field, Field::Attribute(_)) || !fragment.footer().version.has_tile_stats() {
        return Vec::new();
    }
    let mut sections = Vec::new();
    if values {
        sections.extend([
            Section::TileMins(field),
            Section::TileMaxs(field),
            Section::TileSums(field),
        ]);
    }
    if field.is_nullable(fragment.schema()) {
        sections.push(Section::TileNullCounts(field));
    }
    sections
}

/// What is known of the cells of a tile of a field; of a dense fragment's tile only if it lies in
/// the non-empty domain.
pub(super) fn tile_facts(
    fragment: &Fragment,
    field: Field,
    tile: usize,
    cell_num: u64,
) -> Result<TileFacts<'_>> {
    let schema = fragment.schema();
    let (version, dense) = (fragment.footer().version, fragment.is_dense());
    let nullable = field.is_nullable(schema);
    let mut facts = TileFacts {
        cell_num,
        null_count: (!nullable).then_some(0),
        sum: None,
        min: None,
        max: None,
    };
    if !matches!(field, Field::Attribute(_)) {
        return Ok(facts);
    }
    let Some(stats) = fragment.loaded().tile_stats(field) else {
        return Ok(facts);
    };
    let Some((datatype, cell_val_num)) = field.layout(schema) else {
        return Ok(facts);
    };
    if nullable && StatsTrust::in_null_counts(field, schema, version, dense) {
        facts.null_count = stats
            .null_counts
            .and_then(|counts| counts.counts.get(tile).copied());
    }
    let kind = SumKind::of(datatype, cell_val_num);
    let sum = kind.and_then(|kind| stats.sums?.get(tile, kind));
    let mins = stats.mins.and_then(|mins| mins.get(tile));
    let maxs = stats.maxs.and_then(|maxs| maxs.get(tile));
    match StatsTrust::of(field, schema, version, dense) {
        StatsTrust::Untrusted => return Ok(facts),
        StatsTrust::Exact => (facts.min, facts.max) = (mins, maxs),
        StatsTrust::IfSumIsFinite => {
            if sum.is_some_and(|sum| !sum.may_have_overflowed()) {
                (facts.min, facts.max) = (mins, maxs);
            }
        }
        StatsTrust::UpToZeroByte => {
            // Cells that agree up to a zero byte are kept apart here. The one stored is the least
            // of them if nothing follows; it is the greatest of them if nothing can follow.
            let whole = |bytes: &&[u8]| !bytes.contains(&0);
            facts.min = mins.filter(whole);
            facts.max = maxs.filter(whole).filter(|_| !cell_val_num.is_var());
        }
    }
    // A sum that reached its limit may have come back from there, and shows nothing of it.
    if let (Some(min), Some(max), Some(sum)) = (facts.min, facts.max, sum) {
        let far = dispatch!(datatype.physical(), T => farthest::<T>(min, max));
        let limit = match sum {
            TileSum::Signed(_) => i64::MAX as f64,
            TileSum::Unsigned(_) => u64::MAX as f64,
            TileSum::Real(_) => f64::MAX,
        };
        // The margin is for the rounding of these very numbers.
        if far * (cell_num as f64) < limit * 0.999 {
            facts.sum = Some(sum);
        }
    }
    Ok(facts)
}

/// How far from 0 values get.
fn farthest<T: Native>(min: &[u8], max: &[u8]) -> f64 {
    T::read(min).as_f64().abs().max(T::read(max).as_f64().abs())
}
