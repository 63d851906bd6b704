//! What is known for certain of the values in a tile.

use crate::array::Fragment;
use crate::condition::{BoundCondition, TileFieldStats, Tri};
use azulejo_format::fragment::{Field, Section, StatsTrust, SumKind, TileSum};
use azulejo_format::schema::FieldIndex;

/// The sections of a fragment's metadata that [`verdict`] looks at for an attribute.
pub(super) fn stats_sections(fragment: usize, field: Field) -> [(usize, Section); 4] {
    let sections = [
        Section::TileMins(field),
        Section::TileMaxs(field),
        Section::TileSums(field),
        Section::TileNullCounts(field),
    ];
    sections.map(|section| (fragment, section))
}

/// Statistics of a tile of a field, as far as their writer can be trusted.
#[derive(Clone, Copy, Default)]
pub(super) struct TrustedStats<'a> {
    /// The number of nulls.
    pub null_count: Option<u64>,
    /// The least value that is not null, if there is one.
    pub min: Option<&'a [u8]>,
    /// The greatest such value.
    pub max: Option<&'a [u8]>,
    /// What the values add up to, unless that came to its type's limit on the way.
    pub sum: Option<TileSum>,
    /// The bounds are those of the text before each cell's first zero byte.
    pub up_to_zero_byte: bool,
}

/// The stored statistics of a tile that can be trusted; `None` if there are none of the field. Those of
/// dimensions say nothing of NaN.
pub(super) fn trusted_stats(
    fragment: &Fragment,
    field: Field,
    tile: usize,
) -> Option<TrustedStats<'_>> {
    let (schema, dense) = (fragment.schema(), fragment.is_dense());
    if let Field::Dimension(d) = field {
        // The box of a sparse tile is the smallest one around its cells, as they were before filters.
        let kept = schema.filters_of(FieldIndex::Dimension(d)).keeps_values();
        let tree = (kept && !dense).then(|| fragment.loaded().rtree().ok());
        let range = tree.flatten()?.tile_range(tile, d)?;
        // NaN as a bound says nothing of the cells.
        let has_nan = schema
            .dimension(d)
            .is_some_and(|d| range.has_nan(d.datatype));
        return (!has_nan).then(|| TrustedStats {
            null_count: Some(0),
            min: Some(range.start),
            max: Some(range.end),
            ..TrustedStats::default()
        });
    }
    let stats = fragment.loaded().tile_stats(field)?;
    let version = fragment.footer().version;
    let (datatype, cell_val_num) = field.layout(schema)?;
    let mut trusted = TrustedStats::default();
    if !field.is_nullable(schema) {
        trusted.null_count = Some(0);
    } else if StatsTrust::in_null_counts(field, schema, version, dense) {
        let counts = stats.null_counts;
        trusted.null_count = counts.and_then(|counts| counts.counts.get(tile).copied());
    }
    let kind = SumKind::of(datatype, cell_val_num);
    let sum = kind.and_then(|kind| stats.sums?.get(tile, kind));
    let trust = StatsTrust::of(field, schema, version, dense);
    let believed = match trust {
        StatsTrust::Exact | StatsTrust::UpToZeroByte => true,
        StatsTrust::IfSumIsFinite => sum.is_some_and(|sum| !sum.may_have_overflowed()),
        StatsTrust::Untrusted => false,
    };
    if believed {
        trusted.min = stats.mins.and_then(|mins| mins.get(tile));
        trusted.max = stats.maxs.and_then(|maxs| maxs.get(tile));
        trusted.sum = sum;
        trusted.up_to_zero_byte = trust == StatsTrust::UpToZeroByte;
    }
    Some(trusted)
}

/// Whether all, no or some cells of a tile meet a condition on these fields, by what is known of it.
pub(super) fn verdict(
    condition: &BoundCondition,
    fields: &[Field],
    fragment: &Fragment,
    tile: usize,
    cell_num: u64,
) -> Tri {
    let stats = fields.iter();
    let stats = stats.map(|field| field_stats(fragment, *field, tile, cell_num));
    let stats: Vec<_> = stats.collect();
    condition.prune(&|i| stats.get(i).copied().flatten())
}

/// What is known for certain about a field's values in a tile, to compare with a condition.
fn field_stats(
    fragment: &Fragment,
    field: Field,
    tile: usize,
    cell_num: u64,
) -> Option<TileFieldStats<'_>> {
    let (datatype, _) = field.layout(fragment.schema())?;
    let may_have_nan = matches!(field, Field::Dimension(_)) && datatype.is_real();
    let stats = trusted_stats(fragment, field, tile).filter(|_| !may_have_nan)?;
    // Bounds of nothing but nulls mean nothing.
    let known = stats.null_count.is_some_and(|nulls| nulls < cell_num);
    Some(TileFieldStats {
        cell_num,
        min: stats.min.filter(|_| known),
        max: stats.max.filter(|_| known),
        null_count: stats.null_count,
        up_to_zero_byte: stats.up_to_zero_byte,
    })
}
