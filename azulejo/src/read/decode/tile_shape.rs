//! What is known of a tile before it is read.

use crate::array::{Array, Fragment};
use crate::error::{Error, Result};
use crate::read::stored_tile::{StoredTile, fragment_of};
use azulejo_format::filter::{FilterContext, Pipeline};
use azulejo_format::fragment::{Field, FilePart};
use azulejo_format::schema::FieldIndex;
use azulejo_format::{ArraySchema, DecodeError};
use std::ops::Range;

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

impl TileRequest {
    /// The coordinates of cells of a tile: a request a dimension.
    pub(in crate::read) fn coordinates(
        fragment: usize,
        tile: u64,
        dimensions: usize,
        cells: &Cells,
    ) -> impl Iterator<Item = Self> {
        (0..dimensions).map(move |d| Self {
            fragment,
            field: Field::Dimension(d),
            tile,
            cells: cells.clone(),
        })
    }
}

/// What is known of a tile before it is read.
pub(super) struct TileShape<'a> {
    pub schema: &'a ArraySchema,
    pub field: Field,
    pub ctx: FilterContext<'a>,
    /// Index of the stored data (offsets if var-length) among the fetched tiles.
    pub place: usize,
    pub var: Option<VarShape>,
    pub validity: Option<usize>,
    pub cell_num: usize,
    pub cell_size: usize,
    /// The offsets lie inside the data.
    pub in_data: bool,
    pub zipped: bool,
}

#[derive(Clone, Copy)]
pub(super) struct VarShape {
    pub place: usize,
    pub len: usize,
}

impl<'a> TileShape<'a> {
    pub fn new(
        array: &'a Array,
        request: &TileRequest,
        place_of: &mut dyn FnMut(StoredTile) -> usize,
    ) -> Result<Self> {
        let fragment = fragment_of(array, request.fragment)?;
        let schema: &ArraySchema = fragment.schema();
        let field = fragment.stored_field(request.field);
        let Some(ctx) = filter_context(array, fragment, field) else {
            return Err(Error::Internal(format!(
                "fragment {} has no field {field:?}",
                fragment.name()
            )));
        };
        let (datatype, cell_val_num) = (ctx.datatype, ctx.cell_val_num);
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
        let mut var = None;
        if cell_val_num.is_var() {
            let len = fragment.loaded().var_tile_size(field, request.tile)?;
            var = Some(VarShape {
                place: place(FilePart::Var),
                len: usize::try_from(len).map_err(|_| beyond())?,
            });
        }
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
        shape.place = match shape.in_data {
            true => usize::MAX,
            false => place(FilePart::Data),
        };
        Ok(shape)
    }

    /// With all stored tiles appended to a list.
    fn of(array: &'a Array, request: &TileRequest, stored: &mut Vec<StoredTile>) -> Result<Self> {
        Self::new(array, request, &mut |tile| {
            stored.push(tile);
            stored.len() - 1
        })
    }

    pub fn pipeline(&self) -> &'a Pipeline {
        pipeline_of(self.schema, self.field)
    }

    pub fn data_len(&self) -> usize {
        self.var.map_or(self.cell_num * self.cell_size, |v| v.len)
    }

    /// Bytes of the decoded tile.
    pub fn memory(&self) -> u64 {
        let cells = self.cell_num as u64;
        let offsets = self.var.map_or(0, |_| (cells + 1).saturating_mul(16));
        let validity = self.validity.map_or(0, |_| cells);
        (self.data_len() as u64)
            .saturating_add(offsets)
            .saturating_add(validity)
    }
}

/// One stored tile of a fixed-length field: its values, or their validity.
pub(in crate::read) struct StoredPart<'a> {
    pub tile: StoredTile,
    /// Where it lies in its file.
    pub range: Range<u64>,
    pub ctx: FilterContext<'a>,
    pub pipeline: &'a Pipeline,
    pub cell_num: usize,
    /// Bytes of a cell.
    pub cell_size: usize,
}

impl StoredPart<'_> {
    /// Bytes of the unfiltered tile: no more than can be addressed, as [`TileShape::new`] has checked.
    pub fn len(&self) -> usize {
        self.cell_num * self.cell_size
    }
}

/// The stored tiles of a fixed-length field of a tile: values, and validity if it is nullable.
pub(in crate::read) fn fixed_parts<'a>(
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
    let shape = TileShape::of(array, &request, &mut stored)?;
    let part = |place: usize, ctx: FilterContext<'a>, pipeline: &'a Pipeline, cell_size| {
        let tile = *stored
            .get(place)
            .ok_or_else(|| Error::Internal("a tile that is not stored".into()))?;
        let range = tile.range(array)?;
        Ok::<_, Error>(StoredPart {
            tile,
            range,
            ctx,
            pipeline,
            cell_num: shape.cell_num,
            cell_size,
        })
    };
    let values = part(shape.place, shape.ctx, shape.pipeline(), shape.cell_size)?;
    let filters = &shape.schema.validity_filters;
    let validity = shape
        .validity
        .map(|place| part(place, shape.ctx.validity(), filters, 1));
    Ok((values, validity.transpose()?))
}

/// How a stored field of a fragment was filtered, if there is such a field.
fn filter_context<'a>(
    array: &'a Array,
    fragment: &Fragment,
    field: Field,
) -> Option<FilterContext<'a>> {
    let (datatype, cell_val_num) = field.layout(fragment.schema())?;
    Some(FilterContext {
        version: fragment.footer().version,
        datatype,
        cell_val_num,
        key: array.context().key(),
    })
}

/// The filters of a stored field.
pub(in crate::read) fn pipeline_of(schema: &ArraySchema, field: Field) -> &Pipeline {
    match field {
        Field::Attribute(i) => schema.filters_of(FieldIndex::Attribute(i)),
        Field::Dimension(i) => schema.filters_of(FieldIndex::Dimension(i)),
        _ => &schema.coords_filters,
    }
}

/// Whether the tiles of a fragment's field are strings that can be decoded to words.
pub(in crate::read) fn holds_words(array: &Array, fragment: &Fragment, field: Field) -> bool {
    let field = fragment.stored_field(field);
    let pipeline = pipeline_of(fragment.schema(), field);
    filter_context(array, fragment, field).is_some_and(|ctx| pipeline.keeps_offsets_in_data(&ctx))
}

/// The stored tiles that loading a request reads.
pub(in crate::read) fn stored_tiles(
    array: &Array,
    request: &TileRequest,
    stored: &mut Vec<StoredTile>,
) -> Result<()> {
    TileShape::of(array, request, stored).map(drop)
}

/// Bytes that loading a request takes: decoded, and stored.
pub(in crate::read) fn load_cost(array: &Array, request: &TileRequest) -> Result<u64> {
    let mut stored = Vec::new();
    let shape = TileShape::of(array, request, &mut stored)?;
    let mut cost = shape.memory();
    for tile in &stored {
        cost = cost.saturating_add(tile.len(array)?);
    }
    Ok(cost)
}
