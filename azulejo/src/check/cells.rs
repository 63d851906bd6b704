//! Every cell of a fragment: decoded, and held against its order, its box and its statistics.

use super::report::{CheckOptions, Fix, RESTORE, Report, Severity};
use crate::array::{Array, Fragment};
use crate::column::FieldView;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::read::load::load_tiles;
use crate::read::{BufferPool, Cells, Tile, TileRequest};
use crate::space::cell_order::CellOrder;
use crate::space::keys::{self, KeyTile, Keys, RowSelection, Word};
use crate::space::tile_grid::TileGrid;
use crate::space::{FragmentGrid, Layout};
use crate::write::stats::{StatsKind, TileSummary, summarize};
use azulejo_format::CellValNum;
use azulejo_format::fragment::{Field, StatsTrust, SumKind, TileSum};
use azulejo_format::range::compare;
use azulejo_format::schema::FieldIndex;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// How often each tile of a fragment is looked at: for its coordinates, and for each other field.
pub(super) fn looks(fragment: &Fragment) -> u64 {
    let others = stored(fragment)
        .filter(|field| !matches!(field, Field::Dimension(_)))
        .count();
    1 + others as u64
}

fn stored(fragment: &Fragment) -> impl Iterator<Item = Field> {
    let stored = |field: &Field| fragment.stores(*field) && !matches!(field, Field::ZippedCoords);
    fragment.footer().slots.fields().filter(stored)
}

/// Looks at every cell; `told` is how many looks at a tile are done.
pub(super) fn check(
    context: &Context,
    array: &Array,
    index: usize,
    options: CheckOptions,
    report: &mut Report,
    told: &dyn Fn(u64),
) -> Result<()> {
    let Some(fragment) = array.fragments().get(index) else {
        return Ok(());
    };
    let pool = BufferPool::of_budget(options.memory_budget);
    let written = WrittenCells::new(fragment)?;
    let fields = stored(fragment);
    let mut done = 0;
    let dims = fragment.schema().domain.dimensions.len();
    let coordinates: Vec<Field> = if fragment.is_dense() {
        Vec::new()
    } else {
        (0..dims).map(Field::Dimension).collect()
    };
    let alone = stands_alone(array, index);
    let mut order = Order::new(fragment, alone);
    let operation = context.begin();
    let mut tile = 0;
    while tile < fragment.tile_num() {
        operation.check()?;
        let end = group_end(fragment, &coordinates, tile, options.memory_budget / 8)?;
        if !coordinates.is_empty() {
            match load(array, index, &coordinates, tile..end, &pool) {
                Ok(columns) => {
                    boxes(fragment, &columns, tile, report)?;
                    if keeps_coordinates(fragment) {
                        order.look_at(context, &columns, tile, report)?;
                    }
                }
                Err(error) => damaged(fragment, coordinates[0], error, report)?,
            }
        }
        report.cells += (tile..end).map(|t| written.count(fragment, t)).sum::<u64>();
        done += end - tile;
        told(done);
        tile = end;
    }
    for field in fields.filter(|field| !matches!(field, Field::Dimension(_))) {
        let mut tile = 0;
        while tile < fragment.tile_num() {
            operation.check()?;
            let end = group_end(fragment, &[field], tile, options.memory_budget / 8)?;
            match load(array, index, &[field], tile..end, &pool) {
                Ok(columns) => {
                    for (t, loaded) in (tile..end).zip(columns.first().into_iter().flatten()) {
                        statistics(fragment, field, t, loaded, &written, report)?;
                    }
                }
                Err(error) => damaged(fragment, field, error, report)?,
            }
            done += end - tile;
            told(done);
            tile = end;
        }
    }
    Ok(())
}

/// The end of the tiles from `start` on that fit in `budget` bytes; at least one.
fn group_end(fragment: &Fragment, fields: &[Field], start: u64, budget: u64) -> Result<u64> {
    let mut bytes = 0u64;
    let mut end = start;
    while end < fragment.tile_num() {
        for field in fields {
            let cell = match field.layout(fragment.schema()) {
                Some((datatype, CellValNum::Fixed(n))) => {
                    u64::from(n).saturating_mul(datatype.size() as u64)
                }
                _ => {
                    bytes = bytes.saturating_add(fragment.var_tile_size(*field, end)?);
                    8
                }
            };
            bytes = bytes.saturating_add((cell + 1).saturating_mul(fragment.tile_cell_num(end)));
        }
        if bytes > budget && end > start {
            break;
        }
        end += 1;
    }
    Ok(end)
}

/// The tiles of fields, by field.
fn load(
    array: &Array,
    index: usize,
    fields: &[Field],
    tiles: Range<u64>,
    pool: &BufferPool,
) -> Result<Vec<Vec<Arc<Tile>>>> {
    let mut columns = Vec::with_capacity(fields.len());
    for field in fields {
        let requests: Vec<TileRequest> = tiles
            .clone()
            .map(|tile| TileRequest {
                fragment: index,
                field: *field,
                tile,
                cells: Cells::All,
            })
            .collect();
        columns.push(load_tiles(array, &requests, pool)?);
    }
    Ok(columns)
}

/// Damage is a finding; that the storage or the memory do not suffice is an error.
fn damaged(fragment: &Fragment, field: Field, error: Error, report: &mut Report) -> Result<()> {
    match error {
        Error::Corrupt { .. } | Error::NotFound { .. } | Error::Encryption { .. } => {
            let part = fragment
                .parts(fragment.stored_field(field))
                .first()
                .map(|(part, _)| *part);
            let path = match part {
                Some(part) => fragment.data_path(fragment.stored_field(field), part)?,
                None => fragment.metadata_path(),
            };
            report.broken(path, &error, RESTORE);
            Ok(())
        }
        Error::Budget { .. } | Error::Unsupported(_) => {
            let advice = Fix::Advice("check again with more memory");
            report.add(
                Severity::Note,
                fragment.location().path.clone(),
                error.to_string(),
                advice,
            );
            Ok(())
        }
        // A storage that refuses, or a check that was interrupted.
        other => Err(other),
    }
}

/// Which cells of a dense fragment's tiles were written.
struct WrittenCells {
    grid: Option<(TileGrid, FragmentGrid)>,
}

impl WrittenCells {
    fn new(fragment: &Fragment) -> Result<Self> {
        let bounds = fragment
            .footer()
            .non_empty_domain
            .as_ref()
            .filter(|_| fragment.is_dense());
        let Some(bounds) = bounds else {
            return Ok(Self { grid: None });
        };
        let grid = TileGrid::new(fragment.schema())?;
        let offsets = grid.offsets_of(bounds);
        let tiles = offsets.and_then(|offsets| FragmentGrid::new(&grid, offsets));
        Ok(Self {
            grid: tiles.map(|tiles| (grid, tiles)),
        })
    }

    /// Whether all cells of a tile were written.
    fn is_whole(&self, tile: u64) -> bool {
        let Some((grid, tiles)) = &self.grid else {
            return true;
        };
        let mut rest = tile;
        for &d in grid.tile_order().iter().rev() {
            let (Some(axis), Some(&(low, high))) = (grid.axes().get(d), tiles.bounds().get(d))
            else {
                return false;
            };
            let count = (axis.tile_of(high) - axis.tile_of(low)).saturating_add(1);
            let at = axis.tile_of(low) + rest % count;
            rest /= count;
            let start = at.saturating_mul(grid.extents()[d]);
            if start < low || start.saturating_add(grid.extents()[d] - 1) > high {
                return false;
            }
        }
        true
    }

    fn count(&self, fragment: &Fragment, tile: u64) -> u64 {
        fragment.tile_cell_num(tile)
    }
}

/// Coordinates against the R-tree.
fn boxes(
    fragment: &Fragment,
    columns: &[Vec<Arc<Tile>>],
    start: u64,
    report: &mut Report,
) -> Result<()> {
    let tree = fragment.rtree()?;
    for (d, tiles) in columns.iter().enumerate() {
        let Some(dimension) = fragment.schema().domain.dimensions.get(d) else {
            continue;
        };
        // Boxes are those of coordinates before the filters.
        if !fragment
            .schema()
            .filters_of(FieldIndex::Dimension(d))
            .keeps_values()
        {
            continue;
        }
        let kind = StatsKind::of(Field::Dimension(d), fragment.schema());
        for (tile, loaded) in (start..).zip(tiles) {
            let all = 0..loaded.cell_num;
            let summary = summarize(&kind, &loaded.view(), std::slice::from_ref(&all))?;
            let Some(range) = usize::try_from(tile)
                .ok()
                .and_then(|tile| tree.tile_range(tile, d))
            else {
                continue;
            };
            let outside = compare(dimension.datatype, &summary.min, range.start) == Ordering::Less
                || compare(dimension.datatype, &summary.max, range.end) == Ordering::Greater;
            if outside && loaded.cell_num > 0 {
                let what = format!(
                    "tile {tile}: cells lie outside its box along dimension {:?}: reads may miss them",
                    dimension.name
                );
                report.add(
                    Severity::Error,
                    fragment.metadata_path(),
                    what,
                    Fix::Advice(REWRITE),
                );
            }
        }
    }
    Ok(())
}

/// Whether coordinates read as they were sorted.
fn keeps_coordinates(fragment: &Fragment) -> bool {
    let schema = fragment.schema();
    let mut dimensions = (0..schema.domain.dimensions.len()).map(FieldIndex::Dimension);
    dimensions.all(|field| schema.filters_of(field).keeps_values())
}

/// Advice where the cells are there and what is said about them is wrong.
const REWRITE: &str = "read the fragment's cells and write them again, or restore it from a backup";

/// Cells must follow each other in global order.
struct Order<'a> {
    fragment: &'a Fragment,
    order: CellOrder,
    /// The last tile looked at, for the cells that follow.
    before: Option<Vec<Arc<Tile>>>,
    found: bool,
    /// Whether nothing but the order of some results depends on that of the cells.
    alone: bool,
}

/// Whether readers never merge a fragment's cells with those of others in a way that their order
/// matters for: duplicates are cells of their own, or no other fragment lies where this one does.
fn stands_alone(array: &Array, index: usize) -> bool {
    let schema = array.schema();
    let bounds = |i: usize| array.fragments().get(i)?.reach();
    let overlap = |other: usize| {
        let (Some(a), Some(b)) = (bounds(index), bounds(other)) else {
            return false;
        };
        let mut dimensions = a
            .ranges
            .iter()
            .zip(&b.ranges)
            .zip(&schema.domain.dimensions);
        dimensions.all(|((a, b), dimension)| a.as_ref().overlaps(b.as_ref(), dimension.datatype))
    };
    let mut others = (0..array.fragments().len()).filter(|other| *other != index);
    schema.allows_dups || !others.any(overlap)
}

impl<'a> Order<'a> {
    fn new(fragment: &'a Fragment, alone: bool) -> Self {
        let mut order = CellOrder::new(fragment.schema(), Layout::Global);
        if let Some(bounds) = fragment.reach() {
            let bounds: Vec<(&[u8], &[u8])> = bounds
                .ranges
                .iter()
                .map(|r| (r.start.as_slice(), r.end.as_slice()))
                .collect();
            order = order.within(&bounds);
        }
        Self {
            fragment,
            order,
            before: None,
            found: false,
            alone,
        }
    }

    fn look_at(
        &mut self,
        context: &Context,
        columns: &[Vec<Arc<Tile>>],
        start: u64,
        report: &mut Report,
    ) -> Result<()> {
        let count = columns.first().map_or(0, Vec::len);
        let mut tiles: Vec<Vec<&Arc<Tile>>> = Vec::with_capacity(count + 1);
        if let Some(before) = &self.before {
            tiles.push(before.iter().collect());
        }
        tiles.extend(
            (0..count).map(|t| columns.iter().filter_map(|column| column.get(t)).collect()),
        );
        let picked: Vec<RowSelection> = tiles
            .iter()
            .enumerate()
            .map(|(i, tile)| {
                let cells = tile
                    .first()
                    .map_or(0, |tile| u32::try_from(tile.cell_num).unwrap_or(u32::MAX));
                match (i, &self.before) {
                    (0, Some(_)) => RowSelection::List(vec![cells.saturating_sub(1)]),
                    _ => RowSelection::All(cells),
                }
            })
            .collect();
        let key_tiles: Vec<KeyTile<'_>> = (0u32..)
            .zip(tiles.iter().zip(&picked))
            .map(|(slot, (tile, picked))| {
                let coordinates: Vec<FieldView<'_>> = tile.iter().map(|tile| tile.view()).collect();
                KeyTile {
                    coordinates,
                    rows: picked,
                    slot,
                }
            })
            .collect();
        let set = context.install(|| keys::build(&self.order, &key_tiles, None, None))?;
        let low = set.cell_bits.total();
        let (disorder, double) = match &set.keys {
            Keys::Narrow(keys) => disorder(keys, low),
            Keys::Wide(keys) => disorder(keys, low),
        };
        let schema = self.fragment.schema();
        let may_repeat = schema.allows_dups || self.fragment.loaded().may_repeat_cells()?;
        let first = start - u64::from(self.before.is_some());
        // Cells may have another order in files (see `SparseQuery::as_stored`).
        let anyhow = set.non_ascii || self.order.is_stored_anyhow();
        if let (Some(tile), false, false) = (disorder, self.found, anyhow) {
            self.found = true;
            let tile = first + tile as u64;
            let what = format!("tile {tile}: its cells are not in global order");
            let path = self.fragment.location().path.clone();
            if self.alone {
                // Old writers left such. Reads find the same cells, sorted or, in global order, as
                // they lie.
                let advice = Fix::Advice("none needed: every read finds them");
                report.add(Severity::Note, path, what, advice);
            } else {
                report.add(Severity::Error, path, what, Fix::Advice(REWRITE));
            }
        }
        if let (Some(tile), false, false) = (double, self.found, may_repeat) {
            self.found = true;
            let what = format!(
                "tile {}: two cells have the same coordinates, which the array does not allow",
                first + tile as u64
            );
            report.add(
                Severity::Error,
                self.fragment.location().path.clone(),
                what,
                Fix::Advice(REWRITE),
            );
        }
        self.before = (count > 0).then(|| {
            columns
                .iter()
                .filter_map(|column| column.last().cloned())
                .collect()
        });
        Ok(())
    }
}

/// The first tiles with a key less than the one before it, and with one that is equal.
fn disorder<W: Word>(keys: &[Vec<W>], low: u32) -> (Option<usize>, Option<usize>) {
    let (mut less, mut equal) = (None, None);
    let mut before: Option<W> = None;
    for (tile, keys) in keys.iter().enumerate() {
        for key in keys {
            let key = key.drop_low(low);
            match before.map(|before| before.cmp(&key)) {
                Some(Ordering::Greater) => less = less.or(Some(tile)),
                Some(Ordering::Equal) => equal = equal.or(Some(tile)),
                _ => {}
            }
            before = Some(key);
        }
    }
    (less, equal)
}

/// Values against the tile's min, max, sum and null count, as far as these can be relied on.
fn statistics(
    fragment: &Fragment,
    field: Field,
    tile: u64,
    loaded: &Tile,
    written: &WrittenCells,
    report: &mut Report,
) -> Result<()> {
    let (schema, version, dense) = (fragment.schema(), fragment.version(), fragment.is_dense());
    let (Some(stats), Ok(index)) = (fragment.tile_stats(field)?, usize::try_from(tile)) else {
        return Ok(());
    };
    let whole = written.is_whole(tile);
    // Which cells of a partial tile count is a matter of the writer's version.
    if !whole {
        return Ok(());
    }
    let kind = StatsKind::of(field, schema);
    let all = 0..loaded.cell_num;
    let summary: TileSummary = summarize(&kind, &loaded.view(), std::slice::from_ref(&all))?;
    let mut wrong = |what: &str| {
        let name = field_name(fragment, field);
        let what = format!("tile {tile} of {name}: {what}");
        report.add(
            Severity::Error,
            fragment.metadata_path(),
            what,
            Fix::Advice(REWRITE),
        );
    };
    if StatsTrust::in_null_counts(field, schema, version, dense)
        && let Some(stored) = stats
            .null_counts
            .and_then(|counts| counts.counts.get(index))
        && *stored != summary.null_count
    {
        wrong("the number of nulls is not the stored one");
    }
    let values = summary.null_count < loaded.cell_num as u64;
    let trust = StatsTrust::of(field, schema, version, dense);
    let (Some((datatype, cell)), true) = (
        field.layout(schema),
        values && trust != StatsTrust::Untrusted,
    ) else {
        return Ok(());
    };
    let sum_kind = SumKind::of(datatype, cell);
    let stored_sum = stats
        .sums
        .zip(sum_kind)
        .and_then(|(sums, kind)| sums.get(index, kind));
    let finite = !matches!(stored_sum, Some(TileSum::Real(sum)) if !sum.is_finite() || sum.abs() >= f64::MAX);
    if trust == StatsTrust::IfSumIsFinite && !finite {
        return Ok(());
    }
    if let (Some(min), Some(max)) = (
        stats.mins.and_then(|m| m.get(index)),
        stats.maxs.and_then(|m| m.get(index)),
    ) {
        let outside = if trust == StatsTrust::UpToZeroByte {
            text(&summary.min) < text(min) || text(&summary.max) > text(max)
        } else {
            compare(datatype, &summary.min, min) == Ordering::Less
                || compare(datatype, &summary.max, max) == Ordering::Greater
        };
        if outside {
            wrong(
                "values lie outside the stored min and max: reads with a condition may miss them",
            );
        }
    }
    if let (Some(stored), Some(kind)) = (stored_sum, sum_kind)
        && !stored.may_have_overflowed()
    {
        let differs = match (stored, kind.sum(summary.sum_bits)) {
            // The order of additions is the writer's.
            (TileSum::Real(a), TileSum::Real(b)) => {
                (a - b).abs() > 1e-9 * (a.abs() + b.abs() + summary_scale(loaded))
            }
            (a, b) => a.bits() != b.bits(),
        };
        if differs {
            wrong("the sum is not the stored one: aggregates may be wrong");
        }
    }
    Ok(())
}

/// How large the sum of absolute values can be, roughly, so that cancellation is no finding.
fn summary_scale(tile: &Tile) -> f64 {
    let view = tile.view();
    match view.cell_size {
        8 => view
            .data
            .as_chunks::<8>()
            .0
            .iter()
            .map(|b| f64::from_le_bytes(*b).abs())
            .filter(|v| v.is_finite())
            .sum(),
        4 => view
            .data
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| f64::from(f32::from_le_bytes(*b)).abs())
            .filter(|v| v.is_finite())
            .sum(),
        _ => 0.0,
    }
}

/// Text up to its first zero byte.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn field_name(fragment: &Fragment, field: Field) -> String {
    match field {
        Field::Attribute(i) => fragment
            .schema()
            .attributes
            .get(i)
            .map_or(String::new(), |a| format!("{:?}", a.name)),
        Field::Timestamps => "the cells' timestamps".into(),
        Field::DeleteTimestamps | Field::DeleteConditions => "the delete metadata".into(),
        Field::Dimension(_) | Field::ZippedCoords => "the coordinates".into(),
    }
}
