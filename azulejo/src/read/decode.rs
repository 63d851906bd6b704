//! From stored tiles to cells: decoded in parallel over tiles and chunks, straight into their
//! place.

mod tasks;
mod tile_shape;

use super::stored_tile::StoredTile;
use crate::array::Array;
use crate::buffer_pool::{BufferPool, PoolBuffer};
use crate::column::Tile;
use crate::error::{Error, Result};
use azulejo_format::datatype::CellValNum;
use azulejo_format::filter::{FilterContext, Pipeline, StringWords};
use azulejo_format::fragment::Field;
use azulejo_format::tile::{coords_are_split, var_offsets};
use bytes::Bytes;
use std::collections::HashMap;
use tasks::{DecodeTask, FilteredTile, TilePiece, run};
pub(super) use tasks::{PARALLEL_BYTES, with_scratch};
use tile_shape::TileShape;
pub(super) use tile_shape::stored_tiles;
pub use tile_shape::{Cells, TileRequest};
pub(super) use tile_shape::{StoredPart, fixed_parts, holds_words, load_cost, pipeline_of};

/// Where decoded cells go instead of into a tile of their own: slices as long as the tile's data
/// and validity.
#[derive(Debug, Default)]
pub(super) struct DecodeTarget<'o> {
    pub data: Option<&'o mut [u8]>,
    pub validity: Option<&'o mut [u8]>,
    /// Takes the words of a tile of strings that holds their offsets; its data are then the index of
    /// a word a cell, a little-endian `u32`, and it has no offsets.
    pub words: Option<&'o mut StringWords>,
}

/// Bytes of the index of a word.
pub(super) const WORD_ID: usize = 4;

/// Tiles that are to be decoded together.
pub(super) struct TileBatch<'a> {
    array: &'a Array,
    requests: &'a [TileRequest],
    shapes: Vec<TileShape<'a>>,
    /// Each once.
    stored: Vec<StoredTile>,
}

impl<'a> TileBatch<'a> {
    pub fn new(array: &'a Array, requests: &'a [TileRequest]) -> Result<Self> {
        let mut stored = Vec::with_capacity(requests.len());
        let mut places = HashMap::new();
        let mut place_of = |tile: StoredTile| {
            *places.entry(tile).or_insert_with(|| {
                stored.push(tile);
                stored.len() - 1
            })
        };
        let shapes = requests
            .iter()
            .map(|r| TileShape::new(array, r, &mut place_of))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            array,
            requests,
            shapes,
            stored,
        })
    }

    /// The stored tiles that have to be there.
    pub fn needs(&self) -> &[StoredTile] {
        &self.stored
    }

    /// Checks that stored and decoded tiles together stay within `limit` bytes.
    pub fn check(&self, limit: u64) -> Result<()> {
        let decoded = self.shapes.iter().map(TileShape::memory);
        let mut need = decoded.fold(0, u64::saturating_add);
        for tile in &self.stored {
            need = need.saturating_add(tile.len(self.array)?);
        }
        if need <= limit {
            return Ok(());
        }
        let fragment = self.requests.first().map(|request| request.fragment);
        let fragment = fragment.and_then(|index| self.array.fragments().get(index));
        let name = fragment.map_or("", |fragment| fragment.name());
        let count = self.requests.len();
        Err(Error::Budget {
            what: format!("loading {count} tiles of fragment {name}"),
            need,
            budget: limit,
        })
    }

    /// Decodes what [`Self::needs`] names, whose bytes are given in that order. `targets` (none, or
    /// one a request) take what would otherwise go into the tiles, whose buffers then stay empty.
    ///
    /// For example a tile of the strings "ab", "" and "c" of which the last is wanted: first the
    /// offsets 0, 2 and 2 are decoded, to which the length 3 is added; they say that the values'
    /// bytes 2..3 are needed, and only the chunk that holds these is decoded.
    pub fn decode(
        &self,
        bytes: &[Bytes],
        mut targets: Vec<DecodeTarget<'_>>,
        pool: &BufferPool,
    ) -> Result<Vec<Tile>> {
        let bytes: Vec<&[u8]> = bytes.iter().map(AsRef::as_ref).collect();
        targets.resize_with(self.requests.len(), DecodeTarget::default);
        let builders = self.shapes.iter().zip(targets);
        let mut builders: Vec<TileBuilder<'_>> = builders
            .map(|(shape, target)| TileBuilder::new(shape, target, pool))
            .collect();

        // 1. Everything that can be decoded at once.
        let mut tasks = Vec::new();
        for ((request, shape), tile) in self.requests.iter().zip(&self.shapes).zip(&mut builders) {
            self.add_tasks(request, shape, tile, &bytes, &mut tasks)?;
        }
        run(self.array, tasks)?;

        // 2. Zipped coordinates, out of which dimensions are split.
        self.unzip(&mut builders, &bytes, pool)?;

        // 3. Of partly wanted var-length tiles the offsets say which bytes are needed.
        let mut tasks = Vec::new();
        for ((request, shape), tile) in self.requests.iter().zip(&self.shapes).zip(&mut builders) {
            let Some(var) = shape.var.filter(|_| !shape.in_data) else {
                continue;
            };
            self.finish_offsets(shape, var.len, tile)?;
            let Cells::Spans(spans) = &request.cells else {
                continue;
            };
            let offsets = tile.offsets.as_deref().unwrap_or(&[]);
            let offset = |cell: u64| offsets.get(usize::try_from(cell).ok()?).copied();
            let wanted = spans
                .iter()
                .filter_map(|s| Some(offset(s.start)?..offset(s.end)?));
            let wanted: Vec<_> = wanted.collect();
            let values = self.filtered(&bytes, var.place, shape.ctx, shape.pipeline())?;
            values.add_chunks(Some(&wanted), 1, &mut tile.data, &mut tasks)?;
        }
        run(self.array, tasks)?;

        let tiles = builders.into_iter().zip(&self.shapes);
        Ok(tiles.map(|(tile, shape)| tile.finish(shape)).collect())
    }

    /// A stored tile and how it was filtered.
    fn filtered<'t>(
        &'t self,
        bytes: &[&'t [u8]],
        place: usize,
        ctx: FilterContext<'t>,
        pipeline: &'t Pipeline,
    ) -> Result<FilteredTile<'t>> {
        let (Some(tile), Some(bytes)) = (self.stored.get(place), bytes.get(place)) else {
            return Err(Error::Internal("a stored tile was not fetched".into()));
        };
        Ok(FilteredTile {
            array: self.array,
            tile,
            bytes,
            ctx,
            pipeline,
        })
    }

    /// Everything of a tile that can be decoded at once.
    fn add_tasks<'t>(
        &'t self,
        request: &TileRequest,
        shape: &'t TileShape<'_>,
        tile: &'t mut TileBuilder<'_>,
        bytes: &[&'t [u8]],
        tasks: &mut Vec<DecodeTask<'t>>,
    ) -> Result<()> {
        let spans = match &request.cells {
            Cells::All => None,
            Cells::Spans(spans) => Some(spans.as_slice()),
        };
        let (ctx, pipeline) = (shape.ctx, shape.pipeline());
        if let (Some(place), Some(own)) = (shape.validity, &mut tile.validity) {
            let filters = &shape.schema.validity_filters;
            let stored = self.filtered(bytes, place, ctx.validity(), filters)?;
            let out = out_of(&mut tile.target.validity, own);
            stored.add_chunks(spans, 1, out, tasks)?;
        }
        let Some(var) = shape.var else {
            if shape.zipped {
                return Ok(());
            }
            let out = out_of(&mut tile.target.data, &mut tile.data);
            let stored = self.filtered(bytes, shape.place, ctx, pipeline)?;
            return stored.add_chunks(spans, shape.cell_size, out, tasks);
        };
        let values = self.filtered(bytes, var.place, ctx, pipeline)?;
        if let Some(words) = &mut tile.target.words {
            if !shape.in_data {
                return Err(Error::Internal("a tile that holds no words".into()));
            }
            let ids = out_of(&mut tile.target.data, &mut tile.data);
            let (len, ids) = (var.len, ids.as_chunks_mut().0);
            tasks.push(values.task(TilePiece::Words { len, ids, words }));
            return Ok(());
        }
        if shape.in_data {
            let offsets = tile.offsets.as_deref_mut();
            if let Some((end, offsets)) = offsets.and_then(<[u64]>::split_last_mut) {
                *end = var.len as u64;
                let data = &mut *tile.data;
                tasks.push(values.task(TilePiece::Strings { data, offsets }));
            }
            return Ok(());
        }
        let filters = &shape.schema.offsets_filters;
        let offsets = self.filtered(bytes, shape.place, ctx.offsets(), filters)?;
        offsets.add_chunks(None, 8, &mut tile.offset_bytes, tasks)?;
        match spans {
            None => values.add_chunks(None, 1, &mut tile.data, tasks),
            Some(_) => Ok(()),
        }
    }

    /// Turns the decoded offsets of a tile into numbers, one more than cells, and checks them.
    fn finish_offsets(
        &self,
        shape: &TileShape<'_>,
        len: usize,
        tile: &mut TileBuilder<'_>,
    ) -> Result<()> {
        let offsets = tile.offsets.as_deref_mut();
        let Some((end, starts)) = offsets.and_then(<[u64]>::split_last_mut) else {
            return Ok(());
        };
        *end = len as u64;
        var_offsets::decode(&tile.offset_bytes, starts)
            .and_then(|()| var_offsets::validate(starts, *end))
            .map_err(|source| match self.stored.get(shape.place) {
                Some(stored) => Error::decode(stored.path(self.array), source),
                None => Error::Internal(source.to_string()),
            })?;
        tile.offset_bytes = PoolBuffer::default();
        Ok(())
    }

    /// Decodes tiles of zipped coordinates, each once, and copies the dimensions asked for out of
    /// them.
    fn unzip(
        &self,
        builders: &mut [TileBuilder<'_>],
        bytes: &[&[u8]],
        pool: &BufferPool,
    ) -> Result<()> {
        let zipped = self.shapes.iter().filter(|shape| shape.zipped);
        let mut places: Vec<usize> = zipped.map(|shape| shape.place).collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            let here = |shape: &TileShape<'_>| shape.zipped && shape.place == place;
            let Some(shape) = self.shapes.iter().find(|shape| here(shape)) else {
                continue;
            };
            let dim_num = shape.schema.domain.dimensions.len();
            let len = shape.cell_num.checked_mul(dim_num);
            let len = len.and_then(|cells| cells.checked_mul(shape.cell_size));
            let len = len.ok_or_else(|| Error::Internal("coordinates beyond memory".into()))?;
            let ctx = FilterContext {
                cell_val_num: CellValNum::Fixed(u32::try_from(dim_num).unwrap_or(u32::MAX)),
                ..shape.ctx
            };

            let (mut decoded, mut tasks) = (pool.take(len), Vec::new());
            let stored = self.filtered(bytes, place, ctx, shape.pipeline())?;
            stored.add_chunks(None, 1, &mut decoded, &mut tasks)?;
            run(self.array, tasks)?;

            let split = coords_are_split(ctx.version, shape.pipeline());
            let tiles = self.requests.iter().zip(&self.shapes).zip(&mut *builders);
            for ((request, shape), tile) in tiles.filter(|((_, shape), _)| here(shape)) {
                let Field::Dimension(d) = request.field else {
                    continue;
                };
                let out = out_of(&mut tile.target.data, &mut tile.data);
                copy_dimension(&decoded, d, split, (shape.cell_size, dim_num), out);
            }
        }
        Ok(())
    }
}

/// Where cells of a tile go: the target, if there is one.
fn out_of<'t>(target: &'t mut Option<&mut [u8]>, own: &'t mut PoolBuffer) -> &'t mut [u8] {
    match target {
        Some(out) => out,
        None => own,
    }
}

/// Copies a dimension out of coordinates, which are whole columns one after another where they are
/// `split`, else cell after cell.
fn copy_dimension(
    decoded: &[u8],
    d: usize,
    split: bool,
    (size, dim_num): (usize, usize),
    out: &mut [u8],
) {
    if split {
        let start = d * out.len();
        if let Some(column) = decoded.get(start..start + out.len()) {
            out.copy_from_slice(column);
        }
        return;
    }
    let cells = decoded.chunks_exact(size * dim_num);
    for (value, cell) in out.chunks_exact_mut(size).zip(cells) {
        if let Some(coordinate) = cell.get(d * size..(d + 1) * size) {
            value.copy_from_slice(coordinate);
        }
    }
}

/// A tile whose buffers are being filled.
struct TileBuilder<'o> {
    target: DecodeTarget<'o>,
    data: PoolBuffer,
    offset_bytes: PoolBuffer,
    offsets: Option<Vec<u64>>,
    validity: Option<PoolBuffer>,
    cell_size: usize,
}

impl<'o> TileBuilder<'o> {
    fn new(shape: &TileShape<'_>, target: DecodeTarget<'o>, pool: &BufferPool) -> Self {
        let own = |given: bool, len: usize| match given {
            true => PoolBuffer::default(),
            false => pool.take(len),
        };
        let as_words = target.words.is_some();
        let (len, cell_size) = match as_words {
            true => (shape.cell_num * WORD_ID, WORD_ID),
            false => (shape.data_len(), shape.cell_size),
        };
        let data = own(target.data.is_some(), len);
        let validity = shape
            .validity
            .map(|_| own(target.validity.is_some(), shape.cell_num));
        let offsets = shape.var.filter(|_| !as_words);
        let offsets = offsets.map(|_| vec![0; shape.cell_num + 1]);
        let separate = shape.var.is_some() && !shape.in_data;
        let offset_bytes = own(!separate, shape.cell_num * 8);
        Self {
            target,
            data,
            offset_bytes,
            offsets,
            validity,
            cell_size,
        }
    }

    fn finish(self, shape: &TileShape<'_>) -> Tile {
        Tile {
            data: self.data,
            offsets: self.offsets,
            validity: self.validity,
            cell_num: shape.cell_num,
            cell_size: self.cell_size,
        }
    }
}
