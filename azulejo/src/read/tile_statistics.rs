//! What is known for certain of the values in a tile.

use crate::array::Fragment;
use crate::condition::TileFieldStats;
use crate::error::Result;
use azulejo_format::fragment::{Field, Section, StatsTrust, SumKind, TileSum};
use azulejo_format::schema::FieldIndex;

/// The sections of a fragment's metadata that [`field_stats`] of an attribute looks at.
pub(super) fn stats_sections(fragment: usize, field: Field) -> [(usize, Section); 4] {
    let sections = [
        Section::TileMins(field),
        Section::TileMaxs(field),
        Section::TileSums(field),
        Section::TileNullCounts(field),
    ];
    sections.map(|section| (fragment, section))
}

/// What is known for certain about a field's values in a tile.
pub(super) fn field_stats(
    fragment: &Fragment,
    field: Field,
    tile: usize,
    cell_num: u64,
) -> Result<Option<TileFieldStats<'_>>> {
    if let Field::Dimension(d) = field {
        let Some(range) = fragment.loaded().rtree()?.tile_range(tile, d) else {
            return Ok(None);
        };
        let bounds = TileFieldStats {
            cell_num,
            min: Some(range.start),
            max: Some(range.end),
            null_count: Some(0),
            up_to_zero_byte: false,
        };
        // NaN coordinates leave no trace in a box; and it holds them as they were before filters.
        let schema = fragment.schema();
        let real = field
            .layout(schema)
            .is_none_or(|(datatype, _)| datatype.is_real());
        let kept = schema.filters_of(FieldIndex::Dimension(d)).keeps_values();
        return Ok((!real && kept).then_some(bounds));
    }
    let nullable = field.is_nullable(fragment.schema());
    let Some(stats) = fragment.loaded().tile_stats(field) else {
        return Ok(None);
    };
    let (schema, version, dense) = (
        fragment.schema(),
        fragment.footer().version,
        fragment.is_dense(),
    );
    // Writers count no nulls in var-length fields without min and max.
    let counted = StatsTrust::in_null_counts(field, schema, version, dense);
    let null_count = match stats.null_counts {
        _ if !nullable => Some(0),
        Some(counts) if counted => counts.counts.get(tile).copied(),
        _ => None,
    };
    let trust = StatsTrust::of(field, schema, version, dense);
    let trusted = match trust {
        StatsTrust::Exact | StatsTrust::UpToZeroByte => true,
        StatsTrust::IfSumIsFinite => stats.sums.is_some_and(|sums| {
            let kind = field
                .layout(fragment.schema())
                .and_then(|(datatype, num)| SumKind::of(datatype, num));
            kind.and_then(|kind| sums.get(tile, kind))
                .is_some_and(|sum| match sum {
                    TileSum::Real(sum) => sum.abs() < f64::MAX,
                    TileSum::Signed(_) | TileSum::Unsigned(_) => true,
                })
        }),
        StatsTrust::Untrusted => false,
    };
    let known = trusted && null_count.is_some_and(|nulls| nulls < cell_num);
    Ok(Some(TileFieldStats {
        cell_num,
        min: stats.mins.filter(|_| known).and_then(|mins| mins.get(tile)),
        max: stats.maxs.filter(|_| known).and_then(|maxs| maxs.get(tile)),
        null_count,
        up_to_zero_byte: trust == StatsTrust::UpToZeroByte,
    }))
}
