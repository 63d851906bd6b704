//! The metadata of a fragment under construction: what is collected tile by tile, and the file made
//! of it.

use super::filter::StoredColumn;
use super::stats::{FragmentSummary, StatsKind, TileSummary};
use super::tile_view::TileView;
use crate::column::FieldView;
use azulejo_format::fragment::{
    Field, FieldMetadata, FieldStats, FilePart, Footer, FragmentMetadata, FragmentStats,
    OptionalSection, ProcessedConditions, RTree, RTreeBuilder, SectionOffsets, Slots, TileBounds,
    TileNullCounts, TileOffsets, TileSizes, TileSums,
};
use azulejo_format::range::RangeRef;
use azulejo_format::{ArraySchema, CellValNum, Datatype, DecodeError, FormatVersion, NdRectangle};

/// What a fragment has collected about the tiles of one field.
#[derive(Debug)]
struct FieldTiles {
    mins: TileBounds,
    maxs: TileBounds,
    sums: Vec<u64>,
    null_counts: Vec<u64>,
    var_sizes: Vec<u64>,
    /// First and last cells in global order.
    order: Option<(TileBounds, TileBounds)>,
    summary: FragmentSummary,
}

/// What a fragment has collected about its tiles.
#[derive(Debug)]
pub(super) struct Collected {
    columns: Vec<FieldTiles>,
    rtree: Option<RTreeBuilder>,
    pub tile_num: u64,
    pub last_tile_cell_num: u64,
}

/// The tiles of one data file.
#[derive(Debug, Default)]
pub(super) struct FileTiles {
    /// Where each tile starts.
    pub offsets: Vec<u64>,
    /// Bytes so far.
    pub size: u64,
}

/// What the footer says beside what was collected.
pub(super) struct Facts<'f> {
    pub schema: &'f ArraySchema,
    pub schema_name: &'f str,
    pub version: FormatVersion,
    pub slots: Slots,
    pub dense_domain: Option<&'f NdRectangle>,
    pub timestamps: bool,
    pub delete_metadata: bool,
    pub processed_conditions: &'f [String],
}

impl Collected {
    pub fn new(
        columns: &[StoredColumn],
        schema: &ArraySchema,
        version: FormatVersion,
        dense: bool,
    ) -> Self {
        let fields = columns.iter().map(|column| {
            let FieldMetadata { mins, maxs, .. } = FieldMetadata::empty(column.field, schema);
            let ordered = column.stats.is_dimension && version.has_optional_sections();
            FieldTiles {
                order: ordered.then(|| (mins.clone(), maxs.clone())),
                mins,
                maxs,
                sums: Vec::new(),
                null_counts: Vec::new(),
                var_sizes: Vec::new(),
                summary: FragmentSummary::new(),
            }
        });
        let rtree = (!dense).then(|| RTreeBuilder::new(&schema.domain));
        Self {
            columns: fields.collect(),
            rtree,
            tile_num: 0,
            last_tile_cell_num: 0,
        }
    }

    /// Adds a tile: its statistics are given by column.
    pub fn push(
        &mut self,
        columns: &[StoredColumn],
        tile: &TileView<'_>,
        summaries: &[TileSummary],
    ) -> Result<(), DecodeError> {
        for (((field, column), view), summary) in self
            .columns
            .iter_mut()
            .zip(columns)
            .zip(&tile.fields)
            .zip(summaries)
        {
            field.push(&column.stats, view, summary, tile.cell_num);
        }
        if let Some(rtree) = &mut self.rtree {
            let dimensions = columns
                .iter()
                .zip(summaries)
                .filter(|(column, _)| column.stats.is_dimension);
            let ranges: Vec<RangeRef<'_>> = dimensions
                .map(|(_, s)| RangeRef {
                    start: &s.min,
                    end: &s.max,
                })
                .collect();
            rtree.push(&ranges)?;
        }
        self.tile_num += 1;
        self.last_tile_cell_num = tile.cell_num;
        Ok(())
    }

    /// The whole metadata. `files` give the tiles of each file, by index of its column and part.
    pub fn finish(
        self,
        facts: &Facts<'_>,
        columns: &[StoredColumn],
        files: Vec<((usize, FilePart), FileTiles)>,
    ) -> Result<FragmentMetadata, DecodeError> {
        let Facts {
            schema,
            version,
            slots,
            ..
        } = *facts;
        let tiles = usize::try_from(self.tile_num).unwrap_or(usize::MAX);
        let mut fields: Vec<FieldMetadata> = slots
            .fields()
            .map(|field| unused(field, schema, version, tiles))
            .collect();
        let mut stats: Vec<FieldStats> = slots
            .fields()
            .map(|field| unused_stats(field, schema))
            .collect();
        let mut sizes = [const { Vec::new() }; 3];
        sizes
            .iter_mut()
            .for_each(|sizes| sizes.resize(slots.len(), 0));
        let [file_sizes, file_var_sizes, file_validity_sizes] = &mut sizes;
        for ((column, part), file) in files {
            let Some(slot) = columns
                .get(column)
                .and_then(|column| slots.of(column.field))
            else {
                continue;
            };
            let (Some(field), size) = (fields.get_mut(slot), file.size) else {
                continue;
            };
            let (list, total) = match part {
                FilePart::Data => (&mut field.offsets, &mut *file_sizes),
                FilePart::Var => (&mut field.var_offsets, &mut *file_var_sizes),
                FilePart::Validity => (&mut field.validity_offsets, &mut *file_validity_sizes),
            };
            *list = TileOffsets::new(file.offsets, size)?;
            if let Some(total) = total.get_mut(slot) {
                *total = size;
            }
        }
        let mut global_order = Vec::new();
        for (column, collected) in columns.iter().zip(self.columns) {
            let Some(slot) = slots.of(column.field) else {
                continue;
            };
            let (Some(field), Some(stats)) = (fields.get_mut(slot), stats.get_mut(slot)) else {
                continue;
            };
            global_order.extend(collected.order);
            if !collected.var_sizes.is_empty() {
                field.var_sizes = TileSizes {
                    sizes: collected.var_sizes,
                };
            }
            if version.has_tile_stats() {
                field.mins = collected.mins;
                field.maxs = collected.maxs;
                field.sums = TileSums {
                    bits: collected.sums,
                };
                field.null_counts = TileNullCounts {
                    counts: collected.null_counts,
                };
                *stats = collected.summary.finish(&column.stats);
            }
        }
        let rtree = self
            .rtree
            .map_or_else(|| RTree::empty(&schema.domain), RTreeBuilder::build);
        let dense = facts.dense_domain.is_some();
        let non_empty_domain = facts.dense_domain.cloned().or_else(|| rtree.bounding_box());
        let [file_sizes, file_var_sizes, mut file_validity_sizes] = sizes;
        if !version.has_nullable() {
            file_validity_sizes.clear();
        }
        let has_stats = version.has_fragment_stats() && !version.may_lack_fragment_stats();
        let bounds = OptionalSection::TileGlobalOrderBounds {
            mins: Vec::new(),
            maxs: Vec::new(),
        };
        Ok(FragmentMetadata {
            footer: Footer {
                version,
                schema_name: version
                    .has_schema_evolution()
                    .then(|| facts.schema_name.to_owned()),
                dense,
                non_empty_domain,
                sparse_tile_num: if dense { 0 } else { self.tile_num },
                last_tile_cell_num: self.last_tile_cell_num,
                has_timestamps: facts.timestamps,
                has_delete_metadata: facts.delete_metadata,
                slots,
                file_sizes: file_sizes.into(),
                file_var_sizes: file_var_sizes.into(),
                file_validity_sizes: file_validity_sizes.into(),
                sections: SectionOffsets::default(),
                optional_sections: if global_order.is_empty() {
                    Vec::new()
                } else {
                    vec![bounds]
                },
                offset: None,
            },
            rtree,
            fields,
            stats: FragmentStats {
                fields: if has_stats { stats } else { Vec::new() },
            },
            processed_conditions: ProcessedConditions {
                names: facts.processed_conditions.to_vec(),
            },
            global_order,
        })
    }
}

impl FieldTiles {
    fn push(
        &mut self,
        kind: &StatsKind,
        view: &FieldView<'_>,
        summary: &TileSummary,
        cell_num: u64,
    ) {
        if view.offsets.is_some() {
            let ends = view
                .offsets
                .and_then(|offsets| Some(offsets.last()? - offsets.first()?));
            self.var_sizes.push(ends.unwrap_or(0));
        }
        if kind.min_max {
            // A tile of only nulls has neither.
            let nothing = kind.nullable && summary.null_count == cell_num;
            let nothing_len = kind.cell_size.unwrap_or(0);
            for (bounds, value) in [
                (&mut self.mins, &summary.min),
                (&mut self.maxs, &summary.max),
            ] {
                if nothing {
                    push_zeros(bounds, nothing_len);
                } else {
                    push(bounds, value);
                }
            }
        }
        if kind.sum.is_some() {
            self.sums.push(summary.sum_bits);
        }
        if kind.nullable {
            self.null_counts.push(summary.null_count);
        }
        if let Some((firsts, lasts)) = &mut self.order {
            push(firsts, view.cell(0));
            push(lasts, view.cell(view.cell_num.saturating_sub(1)));
        }
        self.summary.add(kind, summary, cell_num);
    }
}

fn push(bounds: &mut TileBounds, value: &[u8]) {
    match bounds {
        TileBounds::Fixed { values, .. } => values.extend_from_slice(value),
        TileBounds::Var { offsets, values } => {
            offsets.push(values.len() as u64);
            values.extend_from_slice(value);
        }
    }
}

fn push_zeros(bounds: &mut TileBounds, len: usize) {
    match bounds {
        TileBounds::Fixed { values, .. } => values.resize(values.len() + len, 0),
        TileBounds::Var { offsets, values } => offsets.push(values.len() as u64),
    }
}

/// How the reference counts zipped coordinates, which no fragment has any more: as one value of the
/// first dimension.
fn zipped(schema: &ArraySchema) -> StatsKind {
    let datatype = schema
        .domain
        .dimensions
        .first()
        .map_or(Datatype::Any, |d| d.datatype);
    StatsKind::of_cells(datatype, CellValNum::ONE)
}

/// What is written about a field without files: zeros, one a tile.
fn unused(
    field: Field,
    schema: &ArraySchema,
    version: FormatVersion,
    tiles: usize,
) -> FieldMetadata {
    let mut metadata = FieldMetadata::empty(field, schema);
    let zeros = TileOffsets::new(vec![0; tiles], 0).unwrap_or_default();
    metadata.offsets = zeros.clone();
    metadata.var_offsets = zeros.clone();
    metadata.var_sizes = TileSizes {
        sizes: vec![0; tiles],
    };
    if version.has_nullable() {
        metadata.validity_offsets = zeros;
    }
    if version.has_tile_stats() && field == Field::ZippedCoords {
        let kind = zipped(schema);
        for bounds in [&mut metadata.mins, &mut metadata.maxs] {
            if let (TileBounds::Fixed { cell_size, values }, true) = (bounds, kind.min_max) {
                values.resize(tiles.saturating_mul(*cell_size), 0);
            }
        }
        if kind.sum.is_some() {
            metadata.sums = TileSums {
                bits: vec![0; tiles],
            };
        }
    }
    metadata
}

/// Statistics of a field without files over the whole fragment.
fn unused_stats(field: Field, schema: &ArraySchema) -> FieldStats {
    let kind = zipped(schema);
    if field != Field::ZippedCoords || !kind.min_max {
        return FieldStats::default();
    }
    let zero = vec![0; kind.cell_size.unwrap_or(0)];
    FieldStats {
        min: zero.clone(),
        max: zero,
        ..FieldStats::default()
    }
}
