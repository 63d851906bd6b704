//! What was written, cell by cell: a naive model of an array.

use super::random::Rng;
use crate::support::cells::Cells;
use azulejo::WriteLayout;
use azulejo::format::schema::{FieldIndex, Layout, TileAxis};
use azulejo::format::{ArraySchema, Range};
use std::collections::BTreeMap;

type Coordinates = Vec<Vec<u8>>;
type Row = BTreeMap<String, Option<Vec<u8>>>;

/// The writes of an array.
#[derive(Default)]
pub struct Model {
    writes: Vec<(u64, Vec<(Coordinates, Row)>)>,
    /// Something happened that the model does not follow.
    lost: bool,
    /// Only the latest cells are known.
    settled: bool,
}

impl Model {
    /// A write.
    pub fn add(
        &mut self,
        time: u64,
        coordinates: Vec<Coordinates>,
        columns: &BTreeMap<String, Vec<Option<Vec<u8>>>>,
    ) {
        let row = |i: usize| {
            columns
                .iter()
                .map(|(name, cells)| (name.clone(), cells[i].clone()))
                .collect()
        };
        let rows = coordinates
            .into_iter()
            .enumerate()
            .map(|(i, at)| (at, row(i)))
            .collect();
        self.writes.push((time, rows));
    }

    /// Deletes and evolution: from now on the engines are compared with each other only.
    pub fn forget(&mut self) {
        self.lost = true;
    }

    /// Consolidation: earlier times may show other cells.
    pub fn settle(&mut self) {
        self.settled = true;
    }

    /// The coordinates of some cell that was written.
    pub fn any(&self, rng: &mut Rng) -> Option<Coordinates> {
        let (_, rows) = self.writes.last()?;
        (!rows.is_empty()).then(|| rng.pick(rows).0.clone())
    }

    /// Whether some cell has an empty string as a coordinate.
    pub fn has_empty_coordinate(&self) -> bool {
        self.writes
            .iter()
            .flat_map(|(_, rows)| rows)
            .any(|(at, _)| at.iter().any(Vec::is_empty))
    }

    /// The cells at a time, if they are known: dense ones in row-major order, sparse ones in any.
    pub fn cells(
        &self,
        schema: &ArraySchema,
        fields: &[String],
        time: u64,
        last: bool,
    ) -> Result<Option<Vec<Cells>>, String> {
        if self.lost || (self.settled && !last) {
            return Ok(None);
        }
        let writes = self
            .writes
            .iter()
            .filter(|(t, _)| *t <= time)
            .flat_map(|(_, rows)| rows);
        let mut latest: BTreeMap<&Coordinates, &Row> = BTreeMap::new();
        let mut rows: Vec<(&Coordinates, Option<&Row>)> = Vec::new();
        for (at, row) in writes {
            latest.insert(at, row);
            rows.push((at, Some(row)));
        }
        let domain;
        if schema.is_dense() {
            let axes = axes(schema)?;
            let bounds: Vec<(u64, u64)> = axes.iter().map(|axis| (0, axis.last_offset())).collect();
            domain = box_cells(schema, &bounds, WriteLayout::Row)?;
            rows = domain
                .iter()
                .map(|at| (at, latest.get(at).copied()))
                .collect();
        } else if !schema.allows_dups {
            rows = latest
                .into_iter()
                .map(|(at, row)| (at, Some(row)))
                .collect();
        }
        let column = |name: &String| {
            let value = |(at, row): &(&Coordinates, Option<&Row>)| match schema.field(name) {
                Some(FieldIndex::Dimension(d)) => Some(at[d].clone()),
                Some(FieldIndex::Attribute(a)) => {
                    let attribute = &schema.attributes[a];
                    let fill = (!attribute.nullable || attribute.fill_validity)
                        .then(|| attribute.fill_value.clone());
                    row.map_or(fill, |row| row.get(name).cloned().flatten())
                }
                None => None,
            };
            Cells {
                name: name.clone(),
                values: rows.iter().map(value).collect(),
            }
        };
        Ok(Some(fields.iter().map(column).collect()))
    }
}

fn axes(schema: &ArraySchema) -> Result<Vec<TileAxis>, String> {
    let axis = |d: &azulejo::format::schema::Dimension| {
        d.axis().ok_or_else(|| format!("{} has no axis", d.name))
    };
    schema.domain.dimensions.iter().map(axis).collect()
}

/// First and last offset along each dimension, of whole tiles if that is wanted.
pub fn random_box(
    rng: &mut Rng,
    schema: &ArraySchema,
    whole_tiles: bool,
) -> Result<Vec<(u64, u64)>, String> {
    let mut bounds = Vec::new();
    for axis in axes(schema)? {
        let last = axis.last_offset();
        let (a, b) = if rng.chance(30) {
            (0, last)
        } else {
            (rng.below(last + 1), rng.below(last + 1))
        };
        let (low, high) = (a.min(b), a.max(b));
        bounds.push(if whole_tiles {
            let start = axis.tile_start(axis.tile_of(low)).ok_or("no tile")?;
            let end = axis.tile_end(axis.tile_of(high)).ok_or("no tile")?;
            (start, end)
        } else {
            (low, high)
        });
    }
    Ok(bounds)
}

/// Whether a box cuts no tile, be it at the domain's end.
pub fn is_of_whole_tiles(schema: &ArraySchema, bounds: &[(u64, u64)]) -> Result<bool, String> {
    let whole = |(axis, (low, high)): (TileAxis, &(u64, u64))| {
        axis.tile_start(axis.tile_of(*low)) == Some(*low)
            && u128::from(*high) % axis.extent() == axis.extent() - 1
    };
    Ok(axes(schema)?.into_iter().zip(bounds).all(whole))
}

/// The ranges of a box.
pub fn box_ranges(schema: &ArraySchema, bounds: &[(u64, u64)]) -> Result<Vec<Range>, String> {
    let range = |(axis, (low, high)): (TileAxis, &(u64, u64))| {
        Range::new(axis.coordinate(*low), axis.coordinate(*high))
    };
    Ok(axes(schema)?.into_iter().zip(bounds).map(range).collect())
}

/// The coordinates of a box's cells in the order of a layout.
pub fn box_cells(
    schema: &ArraySchema,
    bounds: &[(u64, u64)],
    layout: WriteLayout,
) -> Result<Vec<Coordinates>, String> {
    let axes = axes(schema)?;
    let mut offsets = vec![Vec::new()];
    for (low, high) in bounds {
        offsets = offsets
            .iter()
            .flat_map(|at: &Vec<u64>| (*low..=*high).map(|v| [at.as_slice(), &[v]].concat()))
            .collect();
    }
    let key = |at: &[u64], order: Layout| -> Vec<u64> {
        match order {
            Layout::ColMajor => at.iter().rev().copied().collect(),
            _ => at.to_vec(),
        }
    };
    match layout {
        WriteLayout::Col => offsets.sort_by_key(|at| key(at, Layout::ColMajor)),
        WriteLayout::Global => offsets.sort_by_key(|at| {
            let tile: Vec<u64> = axes
                .iter()
                .zip(at)
                .map(|(axis, o)| axis.tile_of(*o))
                .collect();
            (key(&tile, schema.tile_order), key(at, schema.cell_order))
        }),
        _ => {}
    }
    let coordinates = |at: &Vec<u64>| {
        axes.iter()
            .zip(at)
            .map(|(axis, o)| axis.coordinate(*o))
            .collect()
    };
    Ok(offsets.iter().map(coordinates).collect())
}
