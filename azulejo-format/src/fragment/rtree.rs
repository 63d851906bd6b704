//! R-trees: the boxes (MBRs) around a sparse fragment's tiles, and around groups of them.
//!
//! Level 0 is the root's, the last level's boxes are the tiles'. Box `i` of a level covers boxes
//! `i * fanout` to `(i + 1) * fanout - 1` of the next. A level is kept as one buffer a dimension,
//! so that a search compares plain arrays of one type.
//!
//! Page: *Fragment, R-Tree*.

mod overlap;

pub use overlap::{DimensionRanges, TileOverlap};

use super::footer::read_var_range;
use crate::datatype::Datatype;
use crate::error::{DecodeError, Result};
use crate::range::{NdRectangle, Range, RangeRef, compare};
use crate::schema::Domain;
use crate::version::FormatVersion;
use crate::wire::{ByteReader, ByteWriter};
use std::cmp::Ordering;

/// The R-tree of a fragment; without levels in dense fragments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RTree {
    fanout: u32,
    datatypes: Vec<Datatype>,
    levels: Vec<Level>,
}

/// Boxes of one level.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Level {
    len: usize,
    /// By dimension; each holds `len` ranges.
    bounds: Vec<Bounds>,
}

/// The ranges of one dimension in one level.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Bounds {
    /// Lower and upper bounds in turn, each `size` bytes.
    Fixed { size: usize, bytes: Vec<u8> },
    /// Lower and upper bounds in turn; `ends[i]` is where the `i`th ends.
    Var { bytes: Vec<u8>, ends: Vec<usize> },
}

impl Bounds {
    fn new(domain: &Domain, dimension: usize) -> Self {
        let size = domain
            .dimensions
            .get(dimension)
            .and_then(|d| d.cell_val_num.cell_size(d.datatype));
        match size {
            Some(size) => Self::Fixed {
                size,
                bytes: Vec::new(),
            },
            None => Self::Var {
                bytes: Vec::new(),
                ends: Vec::new(),
            },
        }
    }

    fn empty_like(&self) -> Self {
        match self {
            Self::Fixed { size, .. } => Self::Fixed {
                size: *size,
                bytes: Vec::new(),
            },
            Self::Var { .. } => Self::Var {
                bytes: Vec::new(),
                ends: Vec::new(),
            },
        }
    }

    fn push(&mut self, range: RangeRef<'_>) {
        match self {
            Self::Fixed { bytes, .. } => {
                bytes.extend_from_slice(range.start);
                bytes.extend_from_slice(range.end);
            }
            Self::Var { bytes, ends } => {
                bytes.extend_from_slice(range.start);
                ends.push(bytes.len());
                bytes.extend_from_slice(range.end);
                ends.push(bytes.len());
            }
        }
    }

    fn get(&self, i: usize) -> Option<RangeRef<'_>> {
        match self {
            Self::Fixed { size, bytes } => {
                let at = i.checked_mul(2 * size)?;
                let (start, end) = bytes
                    .get(at..at.checked_add(2 * size)?)?
                    .split_at_checked(*size)?;
                Some(RangeRef { start, end })
            }
            Self::Var { bytes, ends } => {
                let middle = i.checked_mul(2)?;
                let begin = if i == 0 { 0 } else { *ends.get(middle - 1)? };
                let (middle, end) = (*ends.get(middle)?, *ends.get(middle + 1)?);
                Some(RangeRef {
                    start: bytes.get(begin..middle)?,
                    end: bytes.get(middle..end)?,
                })
            }
        }
    }

    /// The range around ranges `from..to`. Of equal bounds the last is taken, as the reference
    /// does: it tells -0.0 from 0.0.
    fn union(&self, from: usize, to: usize, datatype: Datatype) -> Option<RangeRef<'_>> {
        let mut union = self.get(from)?;
        for i in from + 1..to {
            let range = self.get(i)?;
            if compare(datatype, range.start, union.start) != Ordering::Greater {
                union.start = range.start;
            }
            if compare(datatype, range.end, union.end) != Ordering::Less {
                union.end = range.end;
            }
        }
        Some(union)
    }
}

impl RTree {
    /// Boxes under one box in the trees that TileDB writes.
    pub const FANOUT: u32 = 10;

    /// The tree of a fragment without tiles to search (dense ones).
    #[must_use]
    pub fn empty(domain: &Domain) -> Self {
        Self {
            fanout: Self::FANOUT,
            datatypes: datatypes(domain),
            levels: Vec::new(),
        }
    }

    /// Decodes the unfiltered section of a fragment of `version`.
    pub fn decode(payload: &[u8], version: FormatVersion, domain: &Domain) -> Result<Self> {
        let mut r = ByteReader::new(payload);
        let heads = !version.has_separate_dimensions();
        if heads {
            let num = r.u32("R-tree dimension number")?;
            if num as usize != domain.dimensions.len() {
                return Err(DecodeError::invalid(
                    "R-tree dimension number",
                    0,
                    format!("it is {num}"),
                ));
            }
        }
        let fanout = r.u32("R-tree fanout")?;
        if heads {
            r.u8("R-tree datatype")?;
        }
        let level_num = r.u32("R-tree levels")?;
        let level_num = r.check_count(level_num.into(), 8, "R-tree levels")?;
        let mut levels: Vec<Level> = Vec::new();
        for _ in 0..level_num {
            let at = r.offset();
            let level = Level::decode(&mut r, domain)?;
            // Of nothing there could be any number in a few bytes.
            if level.len == 0 && level_num > 1 {
                return Err(DecodeError::invalid("R-tree level", at, "it is empty"));
            }
            let parents = levels.last().map(|l| l.len);
            if parents.is_some_and(|parents| {
                fanout == 0 || parents != level.len.div_ceil(fanout as usize)
            }) {
                return Err(DecodeError::invalid(
                    "R-tree level",
                    at,
                    format!("{} boxes do not fit the level above", level.len),
                ));
            }
            levels.push(level);
        }
        r.finish("R-tree")?;
        Ok(Self {
            fanout,
            datatypes: datatypes(domain),
            levels,
        })
    }

    /// The tree where ranges with NaN for a bound hold everything along their dimension, as
    /// [`Domain::without_nan`]. Boxes above such a tile may be too small: they are made anew.
    pub fn without_nan(self, domain: &Domain) -> Result<Self> {
        let reals = (self.datatypes.iter().enumerate()).filter(|(_, datatype)| datatype.is_real());
        let tiles = || 0..self.tile_num();
        let has_nan = |(d, datatype): (usize, &Datatype)| {
            tiles().any(|tile| (self.tile_range(tile, d)).is_some_and(|r| r.has_nan(*datatype)))
        };
        if !reals.into_iter().any(has_nan) {
            return Ok(self);
        }
        let mut builder = RTreeBuilder::new(domain);
        for tile in tiles() {
            let Some(mbr) = self.mbr(tile) else {
                return Ok(self);
            };
            let mbr = domain.without_nan(&mbr).unwrap_or(mbr);
            let ranges: Vec<_> = mbr.ranges.iter().map(Range::as_ref).collect();
            builder.push(&ranges)?;
        }
        Ok(builder.build())
    }

    /// Encodes the section, unfiltered, for a fragment of `version`.
    #[must_use]
    pub fn encode(&self, version: FormatVersion) -> Vec<u8> {
        let mut w = ByteWriter::new();
        let heads = !version.has_separate_dimensions();
        if heads {
            w.u32(u32::try_from(self.datatypes.len()).unwrap_or(u32::MAX));
        }
        w.u32(self.fanout);
        if heads {
            w.u8(self.datatypes.first().map_or(0, |datatype| datatype.id()));
        }
        w.u32(u32::try_from(self.levels.len()).unwrap_or(u32::MAX));
        for level in &self.levels {
            level.encode(&mut w);
        }
        w.into_bytes()
    }

    /// Levels, from the root's down.
    #[must_use]
    pub fn height(&self) -> usize {
        self.levels.len()
    }

    /// Boxes of a level.
    #[must_use]
    pub fn level_len(&self, level: usize) -> usize {
        self.levels.get(level).map_or(0, |level| level.len)
    }

    /// Boxes of the last level: the fragment's tiles.
    #[must_use]
    pub fn tile_num(&self) -> usize {
        self.levels.last().map_or(0, |level| level.len)
    }

    /// The range of one dimension of box `i` of a level.
    #[must_use]
    pub fn range(&self, level: usize, i: usize, dimension: usize) -> Option<RangeRef<'_>> {
        self.levels.get(level)?.bounds.get(dimension)?.get(i)
    }

    /// The range of one dimension of a tile's box.
    #[must_use]
    pub fn tile_range(&self, tile: usize, dimension: usize) -> Option<RangeRef<'_>> {
        self.levels.last()?.bounds.get(dimension)?.get(tile)
    }

    /// The box of a tile.
    #[must_use]
    pub fn mbr(&self, tile: usize) -> Option<NdRectangle> {
        let ranges = (0..self.datatypes.len()).map(|d| Some(self.tile_range(tile, d)?.to_owned()));
        Some(NdRectangle {
            ranges: ranges.collect::<Option<_>>()?,
        })
    }

    /// The box around all tiles; `None` without tiles.
    #[must_use]
    pub fn bounding_box(&self) -> Option<NdRectangle> {
        let root = self.levels.first()?;
        let ranges = self.datatypes.iter().zip(&root.bounds);
        let ranges =
            ranges.map(|(datatype, bounds)| Some(bounds.union(0, root.len, *datatype)?.to_owned()));
        Some(NdRectangle {
            ranges: ranges.collect::<Option<_>>()?,
        })
    }
}

impl Level {
    fn new(domain: &Domain) -> Self {
        let bounds = (0..domain.dimensions.len()).map(|d| Bounds::new(domain, d));
        Self {
            len: 0,
            bounds: bounds.collect(),
        }
    }

    fn decode(r: &mut ByteReader<'_>, domain: &Domain) -> Result<Self> {
        let mut level = Self::new(domain);
        let num = r.u64("R-tree level length")?;
        let box_size = level.bounds.iter().fold(0u64, |sum, bounds| match bounds {
            Bounds::Fixed { size, .. } => sum.saturating_add(2 * *size as u64),
            Bounds::Var { .. } => sum.saturating_add(16),
        });
        level.len = r.check_count(num, box_size, "R-tree level")?;
        for bounds in &mut level.bounds {
            match bounds {
                Bounds::Fixed { size, bytes } => bytes.reserve_exact(2 * *size * level.len),
                Bounds::Var { ends, .. } => ends.reserve_exact(2 * level.len),
            }
        }
        for _ in 0..level.len {
            for bounds in &mut level.bounds {
                match bounds {
                    Bounds::Fixed { size, bytes } => {
                        bytes.extend_from_slice(r.bytes(2 * *size, "R-tree box")?);
                    }
                    Bounds::Var { bytes, ends } => {
                        let (range, start) = read_var_range(r, "R-tree box")?;
                        ends.push(bytes.len() + start);
                        bytes.extend_from_slice(range);
                        ends.push(bytes.len());
                    }
                }
            }
        }
        Ok(level)
    }

    fn encode(&self, w: &mut ByteWriter) {
        w.u64(self.len as u64);
        for i in 0..self.len {
            for bounds in &self.bounds {
                let Some(range) = bounds.get(i) else { continue };
                if let Bounds::Var { .. } = bounds {
                    w.u64((range.start.len() + range.end.len()) as u64);
                    w.u64(range.start.len() as u64);
                }
                w.bytes(range.start);
                w.bytes(range.end);
            }
        }
    }
}

fn datatypes(domain: &Domain) -> Vec<Datatype> {
    domain.dimensions.iter().map(|d| d.datatype).collect()
}

/// Builds an R-tree from the boxes of tiles, bottom up.
#[derive(Debug, Clone)]
pub struct RTreeBuilder {
    datatypes: Vec<Datatype>,
    tiles: Level,
}

impl RTreeBuilder {
    /// For tiles of a fragment with these dimensions.
    #[must_use]
    pub fn new(domain: &Domain) -> Self {
        Self {
            datatypes: datatypes(domain),
            tiles: Level::new(domain),
        }
    }

    /// Adds the box of the next tile: one range a dimension, bounds of the dimension's size.
    pub fn push(&mut self, ranges: &[RangeRef<'_>]) -> Result<()> {
        let fits = |(bounds, range): (&Bounds, &RangeRef<'_>)| match bounds {
            Bounds::Fixed { size, .. } => range.start.len() == *size && range.end.len() == *size,
            Bounds::Var { .. } => true,
        };
        if ranges.len() != self.tiles.bounds.len()
            || !self.tiles.bounds.iter().zip(ranges).all(fits)
        {
            return Err(DecodeError::invalid(
                "R-tree box",
                0,
                "it does not have the shape of the domain",
            ));
        }
        for (bounds, range) in self.tiles.bounds.iter_mut().zip(ranges) {
            bounds.push(*range);
        }
        self.tiles.len += 1;
        Ok(())
    }

    /// Adds the levels above.
    #[must_use]
    pub fn build(self) -> RTree {
        const FANOUT: usize = RTree::FANOUT as usize;
        let mut levels = vec![self.tiles];
        while let Some(below) = levels.last().filter(|level| level.len > 1) {
            let len = below.len.div_ceil(FANOUT);
            let mut bounds: Vec<Bounds> = below.bounds.iter().map(Bounds::empty_like).collect();
            for ((bounds, below_bounds), datatype) in
                bounds.iter_mut().zip(&below.bounds).zip(&self.datatypes)
            {
                for i in 0..len {
                    let to = ((i + 1) * FANOUT).min(below.len);
                    if let Some(range) = below_bounds.union(i * FANOUT, to, *datatype) {
                        bounds.push(range);
                    }
                }
            }
            levels.push(Level { len, bounds });
        }
        levels.reverse();
        if levels.first().is_some_and(|level| level.len == 0) {
            levels.clear();
        }
        RTree {
            fanout: RTree::FANOUT,
            datatypes: self.datatypes,
            levels,
        }
    }
}

#[cfg(test)]
mod tests;
