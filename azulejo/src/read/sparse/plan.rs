//! Which tiles a sparse read needs, in which order, and which of them have to be merged with each
//! other.
//!
//! Tiles are found by the R-trees and thinned out by their statistics. In the order asked for, a
//! tile's cells lie between two bounds; tiles whose bounds do not meet are independent. They make
//! *clusters*, which follow one another in the result. Where a cluster's cells are stored in the
//! order asked for, nothing needs to be compared: its coordinates are not even read, unless they
//! are asked for.

use super::query::{FragmentQuery, SparseQuery};
use super::tile_cells::runs;
use crate::array::Fragment;
use crate::column::{FieldView, Tile};
use crate::condition::Tri;
use crate::error::{Error, Result};
use crate::read::load::load;
use crate::read::tile_statistics::verdict;
use crate::read::{Cells, TileRequest};
use crate::space::cell_bound::{BoundPart, CellBound};
use crate::space::cell_order::{CellOrder, Segment};
use crate::space::is_number;
use azulejo_format::fragment::{Field, RTree};
use azulejo_format::range::RangeRef;
use std::collections::BTreeSet;
use std::ops::Range;

/// A tile that may hold results.
#[derive(Debug, Clone)]
pub(super) struct PlannedTile {
    /// Index in [`SparseQuery::fragments`].
    pub(super) part: usize,
    /// Index in the fragment.
    pub(super) tile: usize,
    /// Number of cells.
    pub(super) cell_num: u32,
    /// Dimensions by whose coordinates cells must be selected.
    pub(super) dimensions: Vec<usize>,
    /// Conditions to be evaluated, by index in the fragment's tests.
    pub(super) tests: Vec<usize>,
    /// Statistics say that no cell is a result, though some may replace others.
    pub(super) no_results: bool,
    /// Bytes that the tile takes in a batch, as far as is known beforehand.
    pub(super) cost: u64,
    /// Bytes of its cells alone, decoded: of all fields that are looked at, once.
    pub(super) decoded: u64,
    /// Below all its cells.
    pub(super) lower: CellBound,
    /// Not below any of its cells.
    pub(super) upper: CellBound,
}

/// Tiles that have to be looked at together, or that are independent and need no keys.
#[derive(Debug, Clone)]
pub(super) struct Cluster {
    /// By index in [`SparsePlan::tiles`].
    pub(super) tiles: Range<usize>,
    /// Whether cells have to be brought in order.
    pub(super) keyed: bool,
}

impl Cluster {
    /// Tiles that follow one another and need no keys: a cluster each.
    fn singles(tiles: Range<usize>) -> impl Iterator<Item = Self> {
        tiles.map(|tile| Self {
            tiles: tile..tile + 1,
            keyed: false,
        })
    }
}

/// From where on, and below where, cells are wanted.
pub(super) type CellBounds = (Option<CellBound>, Option<CellBound>);

/// Bytes that tiles take.
pub(super) fn cost_of(tiles: &[&PlannedTile]) -> u64 {
    let costs = tiles.iter().map(|tile| tile.cost);
    costs.fold(0, u64::saturating_add)
}

/// Tiles of one batch that follow others in the result.
#[derive(Debug, Clone)]
pub(super) struct Portion<'a> {
    /// The tiles; in the order of the result where they are not keyed.
    pub tiles: Vec<&'a PlannedTile>,
    /// Whether cells have to be brought in order.
    pub keyed: bool,
    /// Only cells from this bound on, and below that one.
    pub bounds: CellBounds,
}

/// What to read, in the order of the result.
#[derive(Debug, Default)]
pub(super) struct SparsePlan {
    pub(super) tiles: Vec<PlannedTile>,
    pub(super) clusters: Vec<Cluster>,
}

impl SparsePlan {
    /// Plans a query.
    pub(super) async fn new(query: &SparseQuery) -> Result<Self> {
        query.load_boxes().await?;
        let mut parts: Vec<Vec<PlannedTile>> = Vec::with_capacity(query.fragments.len());
        for (part, of) in query.fragments.iter().enumerate() {
            parts.push(tiles_of(query, part, of)?);
        }
        let used = query.fragments.iter().zip(&parts);
        let used = used.filter(|(_, tiles)| !tiles.is_empty());
        let used: BTreeSet<usize> = used.map(|(of, _)| of.index).collect();
        query.load_offsets(&used).await?;
        let independent = query.fragments.iter().all(|of| !of.merges);
        let sequence = independent && (query.any_order || (query.as_stored && used.len() <= 1));
        for (of, tiles) in query.fragments.iter().zip(&mut parts) {
            let fragment = query.fragment(of)?;
            let costs = TileCosts::new(query, of, fragment, !sequence);
            for tile in tiles.iter_mut() {
                (tile.cost, tile.decoded) = costs.of(fragment, tile)?;
            }
            if !sequence {
                let tree = fragment.loaded().rtree()?;
                for tile in tiles.iter_mut() {
                    bound(&query.order, tree, tile);
                }
                if follow_one_another(query, tree, tiles) {
                    tighten(tiles);
                }
            }
        }
        let mut tiles: Vec<PlannedTile> = parts.into_iter().flatten().collect();
        if sequence {
            let clusters = Cluster::singles(0..tiles.len()).collect();
            return Ok(Self { tiles, clusters });
        }
        sort(&mut tiles);
        let clusters = clusters(query, &tiles)?;
        Ok(Self { tiles, clusters })
    }

    /// The tiles of a cluster.
    pub(super) fn tiles_of(&self, cluster: &Cluster) -> &[PlannedTile] {
        let tiles = self.tiles.get(cluster.tiles.clone());
        tiles.unwrap_or_default()
    }

    /// Those of a cluster's tiles that may have cells from a bound on.
    pub(super) fn remaining(
        &self,
        cluster: &Cluster,
        from: Option<&CellBound>,
    ) -> Vec<&PlannedTile> {
        let tiles = self.tiles_of(cluster).iter();
        let has_some = |tile: &&PlannedTile| from.is_none_or(|from| tile.upper >= *from);
        tiles.filter(has_some).collect()
    }

    /// Whether more can be known of where a cluster's tiles lie: along a Hilbert curve their boxes
    /// do not bound them.
    pub(super) fn may_be_refined(&self, query: &SparseQuery, cluster: usize) -> bool {
        let Some(cluster) = self.clusters.get(cluster).filter(|cluster| cluster.keyed) else {
            return false;
        };
        let mut tiles = self.tiles_of(cluster).iter();
        query.order.segments().first() == Some(&Segment::Hilbert)
            && query.order == query.stored_order
            && !query.order.is_stored_anyhow()
            && tiles.any(|tile| tile.lower == CellBound::LOWEST)
    }

    /// Looks at the first and last cells of a cluster's tiles. The cluster may fall into several.
    ///
    /// For example a tile whose first cell lies at the position 17 of the curve and whose last at
    /// 40: of its box nothing followed for its place in the order, now it lies between the two.
    pub(super) async fn refine(&mut self, query: &SparseQuery, cluster: usize) -> Result<()> {
        let Some(Cluster { tiles: range, .. }) = self.clusters.get(cluster).cloned() else {
            return Ok(());
        };
        let dims = query.order.dimensions().len();
        let mut rest = self.tiles.get_mut(range.clone()).unwrap_or_default();
        while !rest.is_empty() {
            let mut cost = 0u64;
            let fitting = rest.iter().take_while(|tile| {
                cost = cost.saturating_add(tile.cost);
                cost <= query.budget.tiles
            });
            let group = fitting.count().max(1);
            let (group, others) = rest.split_at_mut(group);
            let mut requests = Vec::with_capacity(group.len() * dims);
            for tile in group.iter() {
                let last = u64::from(tile.cell_num).saturating_sub(1);
                let ends = Cells::Spans(runs([0..1, last..last + 1].into_iter()));
                let (fragment, tile) = (query.index_of(tile.part), tile.tile as u64);
                requests.extend(TileRequest::coordinates(fragment, tile, dims, &ends));
            }
            let loaded = load(&query.fetcher, &requests, Vec::new()).await?;
            for (tile, columns) in group.iter_mut().zip(loaded.chunks(dims)) {
                let views: Vec<FieldView<'_>> = columns.iter().map(Tile::view).collect();
                let position = |cell: u32| {
                    let cells = views.iter().map(|view| view.cell(cell as usize));
                    let bound = query.order.cell_bound(&cells.collect::<Vec<_>>());
                    bound.parts().next()
                };
                // Cells of one position may be in any order.
                let last = position(tile.cell_num.saturating_sub(1));
                let first = position(0);
                // Where libtiledb has put NaN they may lie the other way round.
                let (least, most) = (first.clone().min(last.clone()), first.max(last));
                tile.lower = least.into_iter().collect();
                tile.upper = most.into_iter().chain([BoundPart::Infinity]).collect();
            }
            rest = others;
        }
        let start = range.start;
        let tiles = self.tiles.get_mut(range).unwrap_or_default();
        sort(tiles);
        let parts = clusters(query, tiles)?;
        let parts = parts.into_iter().map(|part| Cluster {
            tiles: start + part.tiles.start..start + part.tiles.end,
            ..part
        });
        self.clusters.splice(cluster..=cluster, parts);
        Ok(())
    }
}

/// The tiles of a fragment that may hold results, or cells that replace some, ascending.
fn tiles_of(query: &SparseQuery, part: usize, of: &FragmentQuery) -> Result<Vec<PlannedTile>> {
    let fragment = query.fragment(of)?;
    let tree = fragment.loaded().rtree()?;
    let (mut tiles, mut pruned) = (Vec::new(), 0);
    for (tile, dimensions) in query.selection.tiles(tree) {
        let cells = fragment.tile_cell_num(tile as u64);
        let cell_num = u32::try_from(cells).map_err(|_| {
            Error::Unsupported(format!(
                "tile {tile} of fragment {} has {cells} cells",
                fragment.name()
            ))
        })?;
        let mut tests = Vec::with_capacity(of.tests.len());
        let mut no_results = false;
        for (i, test) in of.tests.iter().enumerate() {
            match verdict(&test.condition, &test.fields, fragment, tile, cells) {
                Tri::AllTrue => {}
                Tri::AllFalse if test.until.is_none() && !query.deletions => no_results = true,
                Tri::AllFalse | Tri::Unknown => tests.push(i),
            }
        }
        if cell_num == 0 || (no_results && !of.merges) {
            pruned += usize::from(cell_num > 0);
            continue;
        }
        if no_results {
            tests.clear();
        }
        tiles.push(PlannedTile {
            part,
            tile,
            cell_num,
            dimensions,
            tests,
            no_results,
            cost: 0,
            decoded: 0,
            lower: CellBound::LOWEST,
            upper: CellBound::highest(),
        });
    }
    let counts = query.fetcher.counts();
    counts.add_tiles(tiles.len());
    counts.add_pruned(pruned);
    Ok(tiles)
}

/// Sorts tiles by their lower bounds.
fn sort(tiles: &mut [PlannedTile]) {
    tiles.sort_by(|a, b| (&a.lower, a.part, a.tile).cmp(&(&b.lower, b.part, b.tile)));
}

/// The ranges of a tile's coordinates, by dimension, if they are known.
fn sides<'t>(order: &CellOrder, tree: &'t RTree, tile: usize) -> Option<Vec<RangeRef<'t>>> {
    let dimensions = 0..order.dimensions().len();
    dimensions.map(|d| tree.tile_range(tile, d)).collect()
}

fn bound(order: &CellOrder, tree: &RTree, tile: &mut PlannedTile) {
    // Boxes of NaN say nothing.
    let numbers = |sides: &Vec<RangeRef<'_>>| {
        let mut sides = sides.iter().zip(order.dimensions());
        sides.all(|(range, dimension)| {
            !dimension.datatype.is_real() || is_number(range.start, range.end)
        })
    };
    if let Some(sides) = sides(order, tree, tile.tile).filter(numbers) {
        tile.lower = order.lower_bound(&sides.iter().map(|r| r.start).collect::<Vec<_>>());
        tile.upper = order.upper_bound(&sides.iter().map(|r| r.end).collect::<Vec<_>>());
    }
}

/// Whether a fragment's tiles follow one another in the order asked for. If the greatest string of
/// each tile is ASCII, so are those that decide between two tiles, and signed bytes order these alike.
fn follow_one_another(query: &SparseQuery, tree: &RTree, tiles: &[PlannedTile]) -> bool {
    let dimensions = query.order.dimensions().iter().enumerate();
    let texts: Vec<usize> = dimensions
        .filter_map(|(d, dimension)| dimension.is_string().then_some(d))
        .collect();
    let is_ascii = |tile: &PlannedTile| {
        let mut ranges = texts.iter().map(|d| tree.tile_range(tile.tile, *d));
        ranges.all(|range| range.is_some_and(|r| r.start.is_ascii() && r.end.is_ascii()))
    };
    let but_for_text = query.order == query.stored_order && !query.order.is_stored_anyhow();
    query.as_stored || but_for_text && tiles.iter().all(is_ascii)
}

/// Of tiles that follow one another none begins before its predecessor does, none ends after its
/// successor does.
fn tighten(tiles: &mut [PlannedTile]) {
    // Beside NaN they may lie in another order, or in none.
    let mut greatest = &CellBound::LOWEST;
    for tile in tiles.iter() {
        greatest = greatest.max(&tile.lower);
        if *greatest > tile.upper {
            return;
        }
    }
    let mut lower = CellBound::LOWEST;
    for tile in tiles.iter_mut() {
        if tile.lower < lower {
            tile.lower.clone_from(&lower);
        } else {
            lower.clone_from(&tile.lower);
        }
    }
    let mut upper = CellBound::highest();
    for tile in tiles.iter_mut().rev() {
        if tile.upper > upper {
            tile.upper.clone_from(&upper);
        } else {
            upper.clone_from(&tile.upper);
        }
    }
}

/// Cuts tiles, sorted by lower bound, where no bounds meet.
///
/// For example tiles from 0 to 9, 5 to 14 and 20 to 29: the first two are a cluster, the third
/// another. If all are of one fragment whose order is that asked for, or if any will do, each is a
/// cluster and nothing is compared.
fn clusters(query: &SparseQuery, tiles: &[PlannedTile]) -> Result<Vec<Cluster>> {
    let same_order = query.as_stored || query.any_order;
    let mut clusters = Vec::new();
    let mut start = 0;
    while let Some(first) = tiles.get(start) {
        let mut reach = &first.upper;
        let mut end = start + 1;
        while let Some(tile) = tiles.get(end).filter(|tile| tile.lower <= *reach) {
            reach = reach.max(&tile.upper);
            end += 1;
        }
        let members = tiles.get(start..end).unwrap_or_default();
        let one_fragment = members.iter().all(|tile| tile.part == first.part);
        let repeats = query.fragments.get(first.part).is_none_or(|of| of.repeats);
        if one_fragment
            && !repeats
            && (same_order || (members.len() == 1 && stored_in_order(query, first)?))
        {
            clusters.extend(Cluster::singles(start..end));
        } else {
            clusters.push(Cluster {
                tiles: start..end,
                keyed: true,
            });
        }
        start = end;
    }
    Ok(clusters)
}

/// Whether the cells of a tile are stored in the order asked for, though those of a fragment are
/// not.
fn stored_in_order(query: &SparseQuery, tile: &PlannedTile) -> Result<bool> {
    let Some(of) = query.fragments.get(tile.part) else {
        return Ok(false);
    };
    let tree = query.fragment(of)?.loaded().rtree()?;
    let Some(sides) = sides(&query.order, tree, tile.tile) else {
        return Ok(false);
    };
    let ranges: Vec<_> = sides.iter().map(|r| (r.start, r.end)).collect();
    let order = query.order.within(&ranges);
    Ok(order == query.stored_order.within(&ranges) && !order.is_stored_otherwise())
}

/// What cells and tiles of a fragment cost.
struct TileCosts {
    /// Bytes a cell.
    cell: u64,
    /// Those that hold what is decoded of it.
    decoded: u64,
    /// Var-length fields, each with how many times its values are in memory.
    var: Vec<(Field, u64)>,
}

impl TileCosts {
    /// Bytes of a cell's key and of the memory that sorting takes.
    const KEY: u64 = 40;

    fn new(query: &SparseQuery, of: &FragmentQuery, fragment: &Fragment, keyed: bool) -> Self {
        let schema = fragment.schema();
        let mut costs = Self {
            cell: 8,
            decoded: 0,
            var: Vec::new(),
        };
        let dims = schema.domain.dimensions.len();
        // Decoded tiles are in memory once, columns once more.
        let decoded = of
            .tested_fields()
            .chain(of.fields.iter().flatten().copied());
        let coordinates = (0..dims).map(Field::Dimension).filter(|_| keyed);
        let decoded: BTreeSet<Field> = decoded.chain(coordinates).collect();
        for &field in &decoded {
            let times = 1 + u64::from(of.fields.contains(&Some(field)));
            if field.is_var(schema) {
                costs.var.push((field, times));
            }
            let size = field.layout(schema).map_or(0, |(datatype, cell_val_num)| {
                cell_val_num.cell_size(datatype).unwrap_or(8)
            });
            let bytes = size as u64 + u64::from(field.is_nullable(schema));
            costs.cell += times * bytes;
            costs.decoded += bytes;
        }
        // Of every cell timestamps are made where the fragment has none, and so with deletions.
        let times = query.times || (fragment.has_timestamps() && of.looks_at_timestamps(query));
        let times = times && !decoded.contains(&Field::Timestamps);
        let deletes = fragment.has_delete_metadata();
        let deletes = deletes && !decoded.contains(&Field::DeleteTimestamps);
        let made = 8 * (u64::from(times) + u64::from(deletes));
        costs.cell += made;
        costs.decoded += made;
        if keyed {
            costs.cell += Self::KEY;
        }
        // Columns of fields that the fragment has not are filled.
        for (bound, field) in query.fields.iter().zip(&of.fields) {
            if field.is_none() {
                costs.cell += bound.fill.bytes.len() as u64 + 9;
            }
        }
        costs
    }

    /// [`PlannedTile::cost`] and [`PlannedTile::decoded`].
    fn of(&self, fragment: &Fragment, tile: &PlannedTile) -> Result<(u64, u64)> {
        let cells = u64::from(tile.cell_num);
        let mut cost = self.cell.saturating_mul(cells);
        let mut decoded = self.decoded.saturating_mul(cells);
        for (field, times) in &self.var {
            let size = fragment.loaded().var_tile_size(*field, tile.tile as u64)?;
            cost = cost.saturating_add(times.saturating_mul(size));
            decoded = decoded.saturating_add(size);
        }
        Ok((cost, decoded))
    }
}
