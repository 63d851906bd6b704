//! What a fragment's metadata knows for certain of the values in a tile.

use super::TileFacts;
use crate::array::Fragment;
use crate::read::tile_statistics::trusted_stats;
use azulejo_format::datatype::{Native, dispatch};
use azulejo_format::fragment::{Field, Section, TileSum};

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
) -> TileFacts<'_> {
    let schema = fragment.schema();
    let mut facts = TileFacts {
        cell_num,
        null_count: (!field.is_nullable(schema)).then_some(0),
        ..TileFacts::default()
    };
    let (Some((datatype, cell_val_num)), Some(stats)) =
        (field.layout(schema), trusted_stats(fragment, field, tile))
    else {
        return facts;
    };
    facts.null_count = stats.null_count;
    (facts.min, facts.max) = (stats.min, stats.max);
    if stats.up_to_zero_byte {
        // Cells that agree up to a zero byte are kept apart here. The one stored is the least of
        // them if nothing follows; it is the greatest of them if nothing can follow.
        let whole = |bytes: &&[u8]| !bytes.contains(&0);
        facts.min = stats.min.filter(whole);
        facts.max = stats.max.filter(whole).filter(|_| !cell_val_num.is_var());
        facts.max_up_to_zero = stats.max.filter(whole).filter(|_| cell_val_num.is_var());
    }
    // A sum that reached its limit may have come back from there, and shows nothing of it.
    if let (Some(min), Some(max), Some(sum)) = (facts.min, facts.max, stats.sum) {
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
    facts
}

/// How far from 0 values get.
fn farthest<T: Native>(min: &[u8], max: &[u8]) -> f64 {
    T::read(min).as_f64().abs().max(T::read(max).as_f64().abs())
}
