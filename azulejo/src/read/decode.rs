//! From stored tiles to cells: decoded in parallel over tiles and chunks, straight into their
//! place.

use super::fetch::{self, Fetched, StoredTile, fetch, stored_field};
use super::prefetch::Prefetch;
use crate::array::Array;
use crate::buffer_pool::{BufferPool, PoolBuffer};
use crate::column::Tile;
use crate::error::{Error, Result};
use azulejo_format::datatype::CellValNum;
use azulejo_format::filter::{FilterContext, Pipeline, Scratch};
use azulejo_format::fragment::{Field, FilePart};
use azulejo_format::schema::FieldIndex;
use azulejo_format::tile::{Chunk, TileDecoder, coords_are_split, var_offsets};
use azulejo_format::{ArraySchema, DecodeError};
use rayon::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// DecodeWork on fewer bytes than this stays on the calling thread: waking another costs more.
pub(super) const PARALLEL_BYTES: usize = 128 * 1024;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// Runs work with what this thread keeps for unfiltering.
pub(super) fn with_scratch<R>(work: impl FnOnce(&mut Scratch) -> R) -> R {
    SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => work(&mut scratch),
        Err(_) => work(&mut Scratch::new()),
    })
}

/// Which cells of a tile are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cells {
    /// All of them.
    All,
    /// Those in these ranges, ascending and disjoint; only the chunks that hold them are decoded.
    Spans(Vec<Range<u64>>),
}

/// One field of one tile of one fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileRequest {
    /// Index of the fragment in [`Array::fragments`].
    pub fragment: usize,
    /// The field. Dimensions of fragments with zipped coordinates are split out of these.
    pub field: Field,
    /// Index of the tile in the fragment.
    pub tile: u64,
    /// Which cells of it.
    pub cells: Cells,
}

/// Where decoded cells go instead of into a tile of their own: slices as long as the tile's data
/// and validity.
#[derive(Debug, Default)]
pub(super) struct DecodeTarget<'o> {
    pub data: Option<&'o mut [u8]>,
    pub validity: Option<&'o mut [u8]>,
}

/// Reads the stored tiles as one batch and decodes them in parallel; results in the order of the
/// requests.
///
/// Errors with [`Error::Corrupt`] naming file and tile if sizes disagree with the fragment's
/// metadata, and with [`Error::Budget`] if stored and decoded tiles together exceed the pool's load
/// limit.
pub fn load_tiles(
    array: &Array,
    requests: &[TileRequest],
    pool: &BufferPool,
) -> Result<Vec<Arc<Tile>>> {
    let tiles = load_into(array, requests, Vec::new(), pool, None)?;
    Ok(tiles.into_iter().map(Arc::new).collect())
}

/// As [`load_tiles`]; `targets` (none, or one a request) take what would otherwise go into the
/// tiles, whose buffers then stay empty. What was prefetched is taken from there.
pub(super) fn load_into(
    array: &Array,
    requests: &[TileRequest],
    mut targets: Vec<DecodeTarget<'_>>,
    pool: &BufferPool,
    prefetch: Option<&Prefetch>,
) -> Result<Vec<Tile>> {
    targets.resize_with(requests.len(), DecodeTarget::default);
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
    check_load(array, requests, &shapes, &stored, pool)?;
    let fetched = fetch(array, &stored, pool, prefetch)?;

    let mut building: Vec<TileBuilder<'_>> = shapes
        .iter()
        .zip(targets)
        .map(|(shape, target)| TileBuilder::new(shape, target, pool))
        .collect();
    let mut tasks = Vec::new();
    let mut zipped = Vec::new();
    for ((request, shape), tile) in requests.iter().zip(&shapes).zip(&mut building) {
        if shape.zipped {
            zipped.push(shape.place);
        }
        add_tasks(request, shape, tile, &fetched, &mut tasks)?;
    }
    run(array, tasks)?;
    if !zipped.is_empty() {
        unzip(
            array,
            requests,
            &shapes,
            &mut building,
            &fetched,
            zipped,
            pool,
        )?;
    }

    // Of partly wanted var-length tiles the offsets say which bytes are needed.
    let mut tasks = Vec::new();
    for ((request, shape), tile) in requests.iter().zip(&shapes).zip(&mut building) {
        if shape.var.is_some() && !shape.in_data {
            finish_offsets(shape, tile, &fetched)?;
        }
        if let (Some(var), Cells::Spans(spans), false) = (&shape.var, &request.cells, shape.in_data)
        {
            let offsets = tile.offsets.as_deref().unwrap_or(&[]);
            let bytes = spans.iter().filter_map(|s| {
                let at = |cell: u64| {
                    usize::try_from(cell)
                        .ok()
                        .and_then(|c| offsets.get(c))
                        .copied()
                };
                Some(at(s.start)?..at(s.end)?)
            });
            let bytes: Vec<_> = bytes.collect();
            let from = fetched_at(&fetched, var.place)?;
            let part = FilteredTile {
                from,
                ctx: shape.ctx,
                pipeline: shape.pipeline(),
            };
            part.add_chunks(Some(&bytes), 1, &mut tile.data, &mut tasks)?;
        }
    }
    run(array, tasks)?;
    Ok(building
        .into_iter()
        .zip(&shapes)
        .map(|(tile, shape)| tile.finish(shape))
        .collect())
}

/// What is known of a tile before it is read.
struct TileShape<'a> {
    schema: &'a ArraySchema,
    field: Field,
    ctx: FilterContext<'a>,
    /// Index of the stored data (offsets if var-length) among the fetched tiles.
    place: usize,
    var: Option<VarShape>,
    validity: Option<usize>,
    cell_num: usize,
    cell_size: usize,
    /// The offsets lie inside the data.
    in_data: bool,
    zipped: bool,
}

#[derive(Clone, Copy)]
struct VarShape {
    place: usize,
    len: usize,
}

impl<'a> TileShape<'a> {
    fn new(
        array: &'a Array,
        request: &TileRequest,
        place_of: &mut dyn FnMut(StoredTile) -> usize,
    ) -> Result<Self> {
        let Some(fragment) = array.fragments().get(request.fragment) else {
            return Err(Error::Internal(format!("no fragment {}", request.fragment)));
        };
        let schema: &ArraySchema = fragment.schema();
        let field = stored_field(array, request.fragment, request.field);
        let Some((datatype, cell_val_num)) = field.layout(schema) else {
            return Err(Error::Internal(format!(
                "fragment {} has no field {field:?}",
                fragment.name()
            )));
        };
        let version = fragment.footer().version;
        let ctx = FilterContext {
            version,
            datatype,
            cell_val_num,
            key: array.context().key(),
        };
        let beyond = || {
            let reason = "its cells exceed the address space".to_owned();
            Error::decode(fragment.name(), DecodeError::invalid("tile", 0, reason))
        };
        let cell_num =
            usize::try_from(fragment.tile_cell_num(request.tile)).map_err(|_| beyond())?;
        let mut place = |part| {
            place_of(StoredTile {
                fragment: request.fragment,
                field,
                part,
                tile: request.tile,
            })
        };
        let zipped = field == Field::ZippedCoords && request.field != field;
        let cell_size = if zipped {
            datatype.size()
        } else {
            cell_val_num.cell_size(datatype).unwrap_or(0)
        };
        cell_num.checked_mul(cell_size.max(8)).ok_or_else(beyond)?;
        let var = if cell_val_num.is_var() {
            let len = usize::try_from(fragment.var_tile_size(field, request.tile)?)
                .map_err(|_| beyond())?;
            Some(VarShape {
                place: place(FilePart::Var),
                len,
            })
        } else {
            None
        };
        let mut shape = Self {
            schema,
            field,
            ctx,
            place: 0,
            var,
            validity: field.is_nullable(schema).then(|| place(FilePart::Validity)),
            cell_num,
            cell_size,
            in_data: false,
            zipped,
        };
        shape.in_data = var.is_some() && shape.pipeline().keeps_offsets_in_data(&ctx);
        // The offsets file then has nothing to tell.
        shape.place = if shape.in_data {
            usize::MAX
        } else {
            place(FilePart::Data)
        };
        Ok(shape)
    }

    fn pipeline(&self) -> &'a Pipeline {
        match self.field {
            Field::Attribute(i) => self.schema.filters_of(FieldIndex::Attribute(i)),
            Field::Dimension(i) => self.schema.filters_of(FieldIndex::Dimension(i)),
            _ => &self.schema.coords_filters,
        }
    }

    fn data_len(&self) -> usize {
        self.var.map_or(self.cell_num * self.cell_size, |v| v.len)
    }

    /// Bytes of the decoded tile.
    fn memory(&self) -> u64 {
        let offsets = if self.var.is_some() {
            (self.cell_num as u64 + 1).saturating_mul(16)
        } else {
            0
        };
        let validity = if self.validity.is_some() {
            self.cell_num as u64
        } else {
            0
        };
        (self.data_len() as u64)
            .saturating_add(offsets)
            .saturating_add(validity)
    }
}

/// One stored tile of a fixed-length field: its values, or their validity.
pub(super) struct StoredPart<'a> {
    pub tile: StoredTile,
    /// Where it lies in its file.
    pub range: Range<u64>,
    pub ctx: FilterContext<'a>,
    pub pipeline: &'a Pipeline,
    /// Whether the stored chunks are the cells themselves.
    pub stores_as_is: bool,
    pub cell_num: usize,
    /// Bytes of a cell.
    pub cell_size: usize,
}

impl StoredPart<'_> {
    /// Bytes of the unfiltered tile.
    pub fn len(&self) -> Result<usize> {
        let len = self.cell_num.checked_mul(self.cell_size);
        len.ok_or_else(|| Error::Internal("a tile beyond the address space".into()))
    }
}

/// The stored tiles of a fixed-length field of a tile: values, and validity if it is nullable.
pub(super) fn fixed_parts<'a>(
    array: &'a Array,
    fragment: usize,
    field: Field,
    tile: u64,
) -> Result<(StoredPart<'a>, Option<StoredPart<'a>>)> {
    let request = TileRequest {
        fragment,
        field,
        tile,
        cells: Cells::All,
    };
    let mut stored = Vec::new();
    let shape = TileShape::new(array, &request, &mut |tile| {
        stored.push(tile);
        stored.len() - 1
    })?;
    let part = |place: usize, ctx: FilterContext<'a>, pipeline: &'a Pipeline, cell_size| {
        let tile = *stored
            .get(place)
            .ok_or_else(|| Error::Internal("a tile that is not stored".into()))?;
        let range = array
            .fragments()
            .get(fragment)
            .ok_or_else(|| Error::Internal(format!("no fragment {fragment}")))?
            .stored_tile_range(tile.field, tile.part, tile.tile)?;
        let stores_as_is = pipeline.stores_as_is(&ctx);
        Ok::<_, Error>(StoredPart {
            tile,
            range,
            ctx,
            pipeline,
            stores_as_is,
            cell_num: shape.cell_num,
            cell_size,
        })
    };
    let values = part(shape.place, shape.ctx, shape.pipeline(), shape.cell_size)?;
    let validity = shape
        .validity
        .map(|place| {
            part(
                place,
                shape.ctx.validity(),
                &shape.schema.validity_filters,
                1,
            )
        })
        .transpose()?;
    Ok((values, validity))
}

/// The stored tiles that loading a request reads.
pub(super) fn stored_tiles(
    array: &Array,
    request: &TileRequest,
    stored: &mut Vec<StoredTile>,
) -> Result<()> {
    TileShape::new(array, request, &mut |tile| {
        stored.push(tile);
        0
    })?;
    Ok(())
}

/// Bytes that loading a request takes: decoded, and stored.
pub(super) fn load_cost(array: &Array, request: &TileRequest) -> Result<u64> {
    let mut stored = Vec::new();
    let shape = TileShape::new(array, request, &mut |tile| {
        stored.push(tile);
        0
    })?;
    let mut cost = shape.memory();
    for tile in &stored {
        cost = cost.saturating_add(fetch::stored_len(array, tile)?);
    }
    Ok(cost)
}

fn check_load(
    array: &Array,
    requests: &[TileRequest],
    shapes: &[TileShape<'_>],
    stored: &[StoredTile],
    pool: &BufferPool,
) -> Result<()> {
    let mut need: u64 = shapes
        .iter()
        .map(TileShape::memory)
        .fold(0, u64::saturating_add);
    for tile in stored {
        need = need.saturating_add(fetch::stored_len(array, tile)?);
    }
    if need > pool.load_limit() {
        let name = requests
            .first()
            .and_then(|r| array.fragments().get(r.fragment))
            .map_or("", |f| f.name());
        let what = format!("loading {} tiles of fragment {name}", requests.len());
        return Err(Error::Budget {
            what,
            need,
            budget: pool.load_limit(),
        });
    }
    Ok(())
}

/// A tile whose buffers are being filled.
struct TileBuilder<'o> {
    target: DecodeTarget<'o>,
    data: PoolBuffer,
    offset_bytes: PoolBuffer,
    offsets: Option<Vec<u64>>,
    validity: Option<PoolBuffer>,
}

impl<'o> TileBuilder<'o> {
    fn new(shape: &TileShape<'_>, target: DecodeTarget<'o>, pool: &BufferPool) -> Self {
        let own = |given: bool, len: usize| {
            if given {
                PoolBuffer::default()
            } else {
                pool.take(len)
            }
        };
        let data = own(target.data.is_some(), shape.data_len());
        let validity = shape
            .validity
            .map(|_| own(target.validity.is_some(), shape.cell_num));
        let offsets = shape.var.is_some().then(|| vec![0; shape.cell_num + 1]);
        let separate = shape.var.is_some() && !shape.in_data;
        let offset_bytes = own(!separate, if separate { shape.cell_num * 8 } else { 0 });
        Self {
            target,
            data,
            offset_bytes,
            offsets,
            validity,
        }
    }

    fn finish(self, shape: &TileShape<'_>) -> Tile {
        Tile {
            data: self.data,
            offsets: self.offsets,
            validity: self.validity,
            cell_num: shape.cell_num,
            cell_size: shape.cell_size,
        }
    }
}

/// One piece of decoding: a chunk, or a string tile that holds its own offsets.
struct DecodeTask<'t> {
    ctx: FilterContext<'t>,
    pipeline: &'t Pipeline,
    from: &'t Fetched,
    work: DecodeWork<'t>,
}

enum DecodeWork<'t> {
    Chunk {
        chunk: Chunk<'t>,
        out: &'t mut [u8],
    },
    Strings {
        data: &'t mut [u8],
        offsets: &'t mut [u64],
    },
}

impl DecodeTask<'_> {
    fn bytes(&self) -> usize {
        match &self.work {
            DecodeWork::Chunk { out, .. } => out.len(),
            DecodeWork::Strings { data, offsets } => data.len() + offsets.len() * 8,
        }
    }

    fn run(self) -> Result<()> {
        let Self {
            ctx,
            pipeline,
            from,
            work,
        } = self;
        let decoded = with_scratch(|scratch| work.decode(pipeline, &ctx, &from.bytes, scratch));
        decoded.map_err(|source| Error::decode(from.path.to_string(), source))
    }
}

impl DecodeWork<'_> {
    fn decode(
        self,
        pipeline: &Pipeline,
        ctx: &FilterContext<'_>,
        stored: &[u8],
        scratch: &mut Scratch,
    ) -> Result<(), DecodeError> {
        match self {
            DecodeWork::Chunk { chunk, out } => pipeline.decode_chunk(ctx, &chunk, out, scratch),
            DecodeWork::Strings { data, offsets } => {
                pipeline.decode_string_tile(ctx, stored, data, offsets, scratch)
            }
        }
    }
}

/// Runs tasks on all threads, or here if they are few.
fn run(array: &Array, tasks: Vec<DecodeTask<'_>>) -> Result<()> {
    let bytes: usize = tasks.iter().map(DecodeTask::bytes).sum();
    if tasks.len() < 2 || bytes < PARALLEL_BYTES {
        return tasks.into_iter().try_for_each(DecodeTask::run);
    }
    array
        .context()
        .install(|| tasks.into_par_iter().try_for_each(DecodeTask::run))
}

/// Everything of a tile that can be decoded at once.
fn add_tasks<'t>(
    request: &TileRequest,
    shape: &'t TileShape<'_>,
    tile: &'t mut TileBuilder<'_>,
    fetched: &'t [Fetched],
    tasks: &mut Vec<DecodeTask<'t>>,
) -> Result<()> {
    let spans = match &request.cells {
        Cells::All => None,
        Cells::Spans(spans) => Some(spans.as_slice()),
    };
    if let Some(place) = shape.validity {
        let out: Option<&mut [u8]> = match &mut tile.target.validity {
            Some(out) => Some(out),
            None => tile.validity.as_deref_mut(),
        };
        let pipeline = &shape.schema.validity_filters;
        if let Some(out) = out {
            let part = FilteredTile {
                from: fetched_at(fetched, place)?,
                ctx: shape.ctx.validity(),
                pipeline,
            };
            part.add_chunks(spans, 1, out, tasks)?;
        }
    }
    if shape.zipped {
        return Ok(());
    }
    match shape.var {
        None => {
            let out = match &mut tile.target.data {
                Some(out) => &mut **out,
                None => &mut *tile.data,
            };
            let from = fetched_at(fetched, shape.place)?;
            FilteredTile {
                from,
                ctx: shape.ctx,
                pipeline: shape.pipeline(),
            }
            .add_chunks(spans, shape.cell_size, out, tasks)
        }
        Some(var) if shape.in_data => {
            let from = fetched_at(fetched, var.place)?;
            if let Some((end, starts)) = tile
                .offsets
                .as_deref_mut()
                .and_then(<[u64]>::split_last_mut)
            {
                *end = var.len as u64;
                let work = DecodeWork::Strings {
                    data: &mut tile.data,
                    offsets: starts,
                };
                tasks.push(DecodeTask {
                    ctx: shape.ctx,
                    pipeline: shape.pipeline(),
                    from,
                    work,
                });
            }
            Ok(())
        }
        Some(var) => {
            let pipeline = &shape.schema.offsets_filters;
            let out = &mut tile.offset_bytes;
            let from = fetched_at(fetched, shape.place)?;
            FilteredTile {
                from,
                ctx: shape.ctx.offsets(),
                pipeline,
            }
            .add_chunks(None, 8, out, tasks)?;
            if spans.is_none() {
                let from = fetched_at(fetched, var.place)?;
                let part = FilteredTile {
                    from,
                    ctx: shape.ctx,
                    pipeline: shape.pipeline(),
                };
                part.add_chunks(None, 1, &mut tile.data, tasks)?;
            }
            Ok(())
        }
    }
}

fn fetched_at(fetched: &[Fetched], place: usize) -> Result<&Fetched> {
    fetched
        .get(place)
        .ok_or_else(|| Error::Internal("a stored tile was not fetched".into()))
}

/// A stored tile and how it was filtered.
#[derive(Clone, Copy)]
struct FilteredTile<'t> {
    from: &'t Fetched,
    ctx: FilterContext<'t>,
    pipeline: &'t Pipeline,
}

impl<'t> FilteredTile<'t> {
    /// Decoding of the chunks that hold cells in `spans` (ascending; `None`: all), `cell_size` bytes
    /// each, of the unfiltered tile, which is as long as `out`.
    fn add_chunks(
        self,
        spans: Option<&[Range<u64>]>,
        cell_size: usize,
        out: &'t mut [u8],
        tasks: &mut Vec<DecodeTask<'t>>,
    ) -> Result<()> {
        let Self {
            from,
            ctx,
            pipeline,
        } = self;
        // Writers store tiles without cells in more than one way; none of them matters.
        if out.is_empty() {
            return Ok(());
        }
        let mut decoder = TileDecoder::new(from.bytes.len() as u64).sized(out.len() as u64);
        if let Some(spans) = spans {
            decoder = decoder.wanting(spans, cell_size);
        }
        let mut rest = out;
        let mut at = 0;
        for chunk in decoder.chunks(&from.bytes) {
            let chunk = chunk.map_err(|source| Error::decode(from.path.to_string(), source))?;
            // Chunks ascend, and none leaves the tile.
            let (_, from_chunk) = rest.split_at_mut((chunk.output_offset - at) as usize);
            let (place, later) = from_chunk.split_at_mut(chunk.original_len as usize);
            rest = later;
            at = chunk.output_end();
            tasks.push(DecodeTask {
                ctx,
                pipeline,
                from,
                work: DecodeWork::Chunk { chunk, out: place },
            });
        }
        Ok(())
    }
}

/// Turns the decoded offsets of a tile into numbers, one more than cells, and checks them.
fn finish_offsets(
    shape: &TileShape<'_>,
    tile: &mut TileBuilder<'_>,
    fetched: &[Fetched],
) -> Result<()> {
    let (Some(offsets), Some(var)) = (&mut tile.offsets, shape.var) else {
        return Ok(());
    };
    let Some((end, starts)) = offsets.split_last_mut() else {
        return Ok(());
    };
    *end = var.len as u64;
    var_offsets::decode(&tile.offset_bytes, starts)
        .and_then(|()| var_offsets::validate(starts, *end))
        .map_err(|source| match fetched.get(shape.place) {
            Some(from) => Error::decode(from.path.to_string(), source),
            None => Error::Internal(source.to_string()),
        })?;
    tile.offset_bytes = PoolBuffer::default();
    Ok(())
}

/// Decodes tiles of zipped coordinates, each once, and copies the dimensions asked for out of them.
fn unzip(
    array: &Array,
    requests: &[TileRequest],
    shapes: &[TileShape<'_>],
    building: &mut [TileBuilder<'_>],
    fetched: &[Fetched],
    mut places: Vec<usize>,
    pool: &BufferPool,
) -> Result<()> {
    places.sort_unstable();
    places.dedup();
    for place in places {
        let here = |shape: &TileShape<'_>| shape.zipped && shape.place == place;
        let Some(shape) = shapes.iter().find(|s| here(s)) else {
            continue;
        };
        let from = fetched_at(fetched, place)?;
        let dim_num = shape.schema.domain.dimensions.len();
        let len = shape
            .cell_num
            .checked_mul(dim_num)
            .and_then(|n| n.checked_mul(shape.cell_size));
        let mut decoded =
            pool.take(len.ok_or_else(|| Error::Internal("coordinates beyond memory".into()))?);
        let cell_val_num = CellValNum::Fixed(u32::try_from(dim_num).unwrap_or(u32::MAX));
        let ctx = FilterContext {
            cell_val_num,
            ..shape.ctx
        };
        let mut tasks = Vec::new();
        FilteredTile {
            from,
            ctx,
            pipeline: shape.pipeline(),
        }
        .add_chunks(None, ctx.datatype.size(), &mut decoded, &mut tasks)?;
        run(array, tasks)?;
        let split = coords_are_split(ctx.version, shape.pipeline());
        for ((request, shape), tile) in requests.iter().zip(shapes).zip(building.iter_mut()) {
            let Field::Dimension(d) = request.field else {
                continue;
            };
            if !here(shape) {
                continue;
            }
            let out = match &mut tile.target.data {
                Some(out) => &mut **out,
                None => &mut *tile.data,
            };
            let size = shape.cell_size;
            if split {
                let start = d * out.len();
                if let Some(column) = decoded.get(start..start + out.len()) {
                    out.copy_from_slice(column);
                }
            } else {
                for (value, cell) in out
                    .chunks_exact_mut(size)
                    .zip(decoded.chunks_exact(size * dim_num))
                {
                    if let Some(coordinate) = cell.get(d * size..(d + 1) * size) {
                        value.copy_from_slice(coordinate);
                    }
                }
            }
        }
    }
    Ok(())
}
