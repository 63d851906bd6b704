//! `tiledb_dimension_t`.

use crate::attribute::cell_val_num;
use crate::boundary::{Bytes, In, Kind, Opaque, Out, Pointer, Ptr, Str, Text, capi, capi_free};
use crate::enums::{datatype, datatype_id};
use crate::error::{Failure, Result};
use crate::filter::FilterList;
use crate::strings::{Keep, StringHandle, lock};
use azulejo_format::filter::Pipeline;
use azulejo_format::range::compare;
use azulejo_format::schema::Dimension;
use azulejo_format::{CellValNum, Datatype, Range};
use std::cmp::Ordering;
use std::sync::{Arc, Mutex};

/// A dimension as its handles and those of its domains share it: filters set through one show in
/// the others.
pub type SharedDimension = Arc<Mutex<Dimension>>;

/// `tiledb_dimension_t`.
#[derive(Debug)]
pub struct DimensionHandle {
    dimension: SharedDimension,
    keep: Keep,
}

impl Kind for DimensionHandle {
    const NAME: &'static str = "dimension";
}

impl DimensionHandle {
    /// A handle on a dimension.
    pub fn new(dimension: SharedDimension) -> Self {
        Self {
            dimension,
            keep: Keep::default(),
        }
    }

    /// The dimension itself.
    pub fn shared(&self) -> SharedDimension {
        Arc::clone(&self.dimension)
    }

    /// The dimension as it is now.
    pub fn dimension(&self) -> Dimension {
        lock(&self.dimension).clone()
    }
}

fn is_nan(datatype: Datatype, bytes: &[u8]) -> bool {
    match datatype {
        Datatype::Float32 => bytes
            .first_chunk()
            .is_some_and(|b| f32::from_le_bytes(*b).is_nan()),
        Datatype::Float64 => bytes
            .first_chunk()
            .is_some_and(|b| f64::from_le_bytes(*b).is_nan()),
        _ => false,
    }
}

fn is_infinite(datatype: Datatype, bytes: &[u8]) -> bool {
    match datatype {
        Datatype::Float32 => bytes
            .first_chunk()
            .is_some_and(|b| f32::from_le_bytes(*b).is_infinite()),
        Datatype::Float64 => bytes
            .first_chunk()
            .is_some_and(|b| f64::from_le_bytes(*b).is_infinite()),
        _ => false,
    }
}

fn new_dimension(
    name: &str,
    datatype: Datatype,
    domain: &Bytes,
    extent: &Bytes,
) -> Result<Dimension> {
    let fail = |why: &str| {
        Err(Failure::new(format!(
            "Cannot create dimension '{name}'; {why}"
        )))
    };
    let allowed =
        datatype.is_integer() || datatype.is_real() || datatype.is_datetime() || datatype.is_time();
    if !allowed && datatype != Datatype::StringAscii {
        return fail(&format!(
            "Datatype '{datatype}' is not a valid Dimension Datatype"
        ));
    }
    if datatype == Datatype::StringAscii {
        if !domain.is_null() {
            return fail("a string dimension has no domain");
        }
        if !extent.is_null() {
            return fail("a string dimension has no tile extent");
        }
        return Ok(Dimension::string(name));
    }
    let size = datatype.size();
    if domain.is_null() {
        return fail("Domain not set");
    }
    let (start, end) = domain.get(2 * size)?.split_at(size);
    if is_nan(datatype, start) || is_nan(datatype, end) {
        return fail("Domain contains NaN");
    }
    if is_infinite(datatype, start) || is_infinite(datatype, end) {
        return fail("Domain contains infinity");
    }
    if compare(datatype, start, end) == Ordering::Greater {
        return fail(
            "Domain check failed; Upper domain bound should not be smaller than the lower one",
        );
    }
    // The reference keeps one value free, to count the cells.
    let low = |byte: u8| byte == 0;
    let is_whole = match datatype.is_real() {
        true => false,
        false if is_signed(datatype) => {
            start
                .split_last()
                .is_some_and(|(top, rest)| *top == 0x80 && rest.iter().copied().all(low))
                && end
                    .split_last()
                    .is_some_and(|(top, rest)| *top == 0x7f && rest.iter().all(|b| *b == 0xff))
        }
        false => start.iter().copied().all(low) && end.iter().all(|b| *b == 0xff),
    };
    if is_whole {
        return fail(
            "Domain check failed; the domain is the whole range of its type; leave out its last value",
        );
    }
    let tile_extent = if extent.is_null() {
        None
    } else {
        Some(extent.get(size)?.to_vec())
    };
    let dimension = Dimension {
        name: name.into(),
        datatype,
        cell_val_num: CellValNum::ONE,
        filters: Pipeline::default(),
        domain: Some(Range::new(start, end)),
        tile_extent,
    };
    check_extent(&dimension)?;
    Ok(dimension)
}

/// An extent must be positive, and neither it nor the last tile may leave the type.
fn check_extent(dimension: &Dimension) -> Result<()> {
    let (Some(extent), Some(domain)) = (&dimension.tile_extent, &dimension.domain) else {
        return Ok(());
    };
    let fail = |why: &str| {
        Err(Failure::new(format!(
            "Dimension: Tile extent check failed on dimension '{}'; {why}",
            dimension.name
        )))
    };
    let datatype = dimension.datatype;
    if datatype.is_real() {
        let zero = vec![0; datatype.size()];
        if is_nan(datatype, extent) || compare(datatype, extent, &zero) != Ordering::Greater {
            return fail("Tile extent must not be 0");
        }
        let range = |bytes: &[u8]| -> f64 {
            match (bytes.first_chunk::<8>(), bytes.first_chunk::<4>()) {
                (Some(b), _) => f64::from_le_bytes(*b),
                (None, Some(b)) => f32::from_le_bytes(*b).into(),
                _ => 0.0,
            }
        };
        if range(extent) > range(&domain.end) - range(&domain.start) + 1.0 {
            return fail("Tile extent exceeds the domain range");
        }
        return Ok(());
    }
    let unsigned = |bytes: &[u8]| {
        let mut wide = [0u8; 8];
        wide[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
        u64::from_le_bytes(wide)
    };
    let number = unsigned(extent);
    let signed = is_signed(datatype);
    let negative = signed && extent.last().is_some_and(|b| b & 0x80 != 0);
    if number == 0 || negative {
        return fail("Tile extent must not be 0");
    }
    if let Some(axis) = dimension.axis() {
        if u128::from(number) > axis.cells() {
            return fail("Tile extent exceeds dimension domain range");
        }
        // The last tile must end within the type. As in the reference, this counts for the widest
        // types alone.
        let max: i128 = if signed {
            i64::MAX.into()
        } else {
            u64::MAX.into()
        };
        let start: i128 = if signed {
            sign_extended(&domain.start)
        } else {
            unsigned(&domain.start).into()
        };
        let tiles = axis.cells().div_ceil(u128::from(number));
        let end = start + i128::try_from(tiles * u128::from(number)).unwrap_or(i128::MAX) - 1;
        if end > max {
            return fail(
                "Tile extent check failed; domain max expanded to multiple of tile extent exceeds max value representable by domain type. Reduce domain max by 1 tile extent to allow for expansion.",
            );
        }
    }
    Ok(())
}

fn is_signed(datatype: Datatype) -> bool {
    !matches!(
        datatype,
        Datatype::UInt8 | Datatype::UInt16 | Datatype::UInt32 | Datatype::UInt64
    )
}

fn sign_extended(bytes: &[u8]) -> i128 {
    let fill = if bytes.last().is_some_and(|b| b & 0x80 != 0) {
        0xff
    } else {
        0
    };
    let mut wide = [fill; 16];
    let len = bytes.len().min(16);
    wide[..len].copy_from_slice(&bytes[..len]);
    i128::from_le_bytes(wide)
}

capi! {
    /// A dimension. `dim_domain` is two values, `tile_extent` one or null; both are null for
    /// strings.
    fn tiledb_dimension_alloc(
        ctx, name: Text, id: i32, dim_domain: Bytes, tile_extent: Bytes, dim: Out<Ptr<DimensionHandle>>
    ) {
        let dimension = new_dimension(name.get()?, datatype(id)?, &dim_domain, &tile_extent)?;
        dim.give(DimensionHandle::new(Arc::new(Mutex::new(dimension))))?;
    }

    /// The filters of the dimension's coordinates: a copy of the list.
    fn tiledb_dimension_set_filter_list(ctx, dim: In<DimensionHandle>, list: In<FilterList>) {
        let dim = dim.get()?;
        let (filters, mut dimension) = (list.get()?.pipeline(), lock(&dim.dimension));
        crate::filter::check_types(&filters, dimension.datatype, &format!("dimension '{}'", dimension.name))?;
        if dimension.is_var() {
            filters.check(dimension.datatype, dimension.cell_val_num).map_err(|e| Failure::new(e.to_string()))?;
        }
        dimension.filters = filters;
    }

    /// The number of values in a coordinate: 1, or `UINT32_MAX` for strings.
    fn tiledb_dimension_set_cell_val_num(ctx, dim: In<DimensionHandle>, num: u32) {
        let mut dimension = lock(&dim.get()?.dimension);
        let given = cell_val_num(num)?;
        if given != dimension.cell_val_num {
            return Err(Failure::new(format!(
                "Cannot set non-variable number of values per coordinate for a string dimension, or more than one \
                 for dimension '{}'", dimension.name
            )));
        }
        dimension.cell_val_num = given;
    }

    /// A copy of the filters.
    fn tiledb_dimension_get_filter_list(ctx, dim: In<DimensionHandle>, list: Out<Ptr<FilterList>>) {
        list.give(FilterList::new(dim.get()?.dimension().filters))?;
    }

    /// The number of values in a coordinate.
    fn tiledb_dimension_get_cell_val_num(ctx, dim: In<DimensionHandle>, num: Out<u32>) {
        num.set(lock(&dim.get()?.dimension).cell_val_num.id())?;
    }

    /// The name; it lives as long as the handle.
    fn tiledb_dimension_get_name(ctx, dim: In<DimensionHandle>, name: Out<Str>) {
        let dim = dim.get()?;
        name.set(dim.keep.text(&lock(&dim.dimension).name))?;
    }

    /// The type of coordinates.
    fn tiledb_dimension_get_type(ctx, dim: In<DimensionHandle>, id: Out<i32>) {
        id.set(datatype_id(lock(&dim.get()?.dimension).datatype))?;
    }

    /// Two values, which live as long as the handle; null for strings.
    fn tiledb_dimension_get_domain(ctx, dim: In<DimensionHandle>, domain: Out<Pointer>) {
        let dim = dim.get()?;
        let range = lock(&dim.dimension).domain.clone();
        domain.set(range.map_or_else(Pointer::default, |r| dim.keep.bytes(&[r.start, r.end].concat())))?;
    }

    /// The tile extent, which lives as long as the handle; null if there is none.
    fn tiledb_dimension_get_tile_extent(ctx, dim: In<DimensionHandle>, extent: Out<Pointer>) {
        let dim = dim.get()?;
        let bytes = lock(&dim.dimension).tile_extent.clone();
        extent.set(bytes.map_or_else(Pointer::default, |bytes| dim.keep.bytes(&bytes)))?;
    }

    /// The dimension as text for people.
    fn tiledb_dimension_dump_str(ctx, dim: In<DimensionHandle>, out: Out<Ptr<StringHandle>>) {
        out.give(StringHandle::new(crate::dump::dimension(&dim.get()?.dimension())))?;
    }

    /// The dimension as text for people, to a `FILE*`. A name that libtiledb had until 2.29.
    fn tiledb_dimension_dump(ctx, dim: In<DimensionHandle>, out: Opaque) {
        out.put_text(&crate::dump::dimension(&dim.get()?.dimension()))?;
    }
}

capi_free! {
    fn tiledb_dimension_free(DimensionHandle);
}
