//! Values of a dimension's type: tile extents, domains, ranges.

use super::rest_capnp::{dimension::tile_extent, domain_array, subarray_ranges};
use super::words::{count, data};
use crate::error::{Failure, Result};
use azulejo_format::schema::Dimension;
use azulejo_format::{Datatype, Physical, Range};

/// Values of a machine type out of their bytes.
macro_rules! numbers {
    ($type:ty, $bytes:expr) => {
        $bytes
            .as_chunks::<{ size_of::<$type>() }>()
            .0
            .iter()
            .map(|bytes| <$type>::from_le_bytes(*bytes))
    };
}

/// For each machine type: its name, the list of it, the scalar of it.
macro_rules! each_type {
    ($($physical:ident, $type:ty, $init:ident, $has:ident, $get:ident, $set:ident, $which:ident;)*) => {
        /// Writes the values whose bytes these are.
        pub fn write_array(datatype: Datatype, bytes: &[u8], to: domain_array::Builder<'_>) -> Result<()> {
            match datatype.physical() {$(
                Physical::$physical => {
                    let values: Vec<$type> = numbers!($type, bytes).collect();
                    let mut list = to.$init(count(&values)?);
                    for (index, value) in (0u32..).zip(values) {
                        list.set(index, value);
                    }
                }
            )*}
            Ok(())
        }

        /// The bytes of the values; none if the list of their type is not set.
        pub fn read_array(datatype: Datatype, from: domain_array::Reader<'_>) -> Result<Vec<u8>> {
            Ok(match datatype.physical() {$(
                Physical::$physical if from.$has() => {
                    from.$get()?.iter().flat_map(<$type>::to_le_bytes).collect()
                }
            )*
                _ => Vec::new(),
            })
        }

        /// Writes a tile extent.
        pub fn write_extent(datatype: Datatype, bytes: &[u8], mut to: tile_extent::Builder<'_>) {
            match datatype.physical() {$(
                Physical::$physical => if let Some(value) = numbers!($type, bytes).next() {
                    to.$set(value);
                }
            )*}
        }

        /// A tile extent's bytes.
        pub fn read_extent(datatype: Datatype, from: tile_extent::Reader<'_>) -> Result<Vec<u8>> {
            use tile_extent::Which;
            match (datatype.physical(), from.which()?) {
                $((Physical::$physical, Which::$which(value)) => Ok(value.to_le_bytes().to_vec()),)*
                _ => Err("Cannot deserialize; a tile extent has another type than its dimension".into()),
            }
        }
    };
}

each_type! {
    I8, i8, init_int8, has_int8, get_int8, set_int8, Int8;
    U8, u8, init_uint8, has_uint8, get_uint8, set_uint8, Uint8;
    I16, i16, init_int16, has_int16, get_int16, set_int16, Int16;
    U16, u16, init_uint16, has_uint16, get_uint16, set_uint16, Uint16;
    I32, i32, init_int32, has_int32, get_int32, set_int32, Int32;
    U32, u32, init_uint32, has_uint32, get_uint32, set_uint32, Uint32;
    I64, i64, init_int64, has_int64, get_int64, set_int64, Int64;
    U64, u64, init_uint64, has_uint64, get_uint64, set_uint64, Uint64;
    F32, f32, init_float32, has_float32, get_float32, set_float32, Float32;
    F64, f64, init_float64, has_float64, get_float64, set_float64, Float64;
}

/// The two bounds of a fixed-size type, of which `bytes` holds both.
pub fn halves(datatype: Datatype, bytes: &[u8]) -> Result<Range> {
    let size = datatype.size();
    match bytes.split_at_checked(size) {
        Some((start, end)) if end.len() == size => Ok(Range::new(start, end)),
        _ => Err(Failure::new(format!(
            "Cannot deserialize; {} bytes are no range of {datatype}",
            bytes.len()
        ))),
    }
}

/// Writes the ranges of a dimension. The bounds of strings lie behind each other, and the message
/// says how long the first one is.
pub fn write_ranges(
    dimension: &Dimension,
    ranges: &[Range],
    mut to: subarray_ranges::Builder<'_>,
) -> Result<()> {
    to.set_type(dimension.datatype.name());
    let mut sizes = to.reborrow().init_buffer_sizes(count(ranges)?);
    for (index, range) in (0u32..).zip(ranges) {
        sizes.set(index, (range.start.len() + range.end.len()) as u64);
    }
    let mut starts = to.reborrow().init_buffer_start_sizes(count(ranges)?);
    for (index, range) in (0u32..).zip(ranges) {
        let start = if dimension.is_var() {
            range.start.len()
        } else {
            0
        };
        starts.set(index, start as u64);
    }
    let bounds = ranges.iter().flat_map(|range| [&range.start, &range.end]);
    let buffer: Vec<u8> = bounds.flatten().copied().collect();
    to.set_buffer(data(&buffer)?);
    Ok(())
}

/// Reads the ranges of a dimension.
pub fn read_ranges(dimension: &Dimension, from: subarray_ranges::Reader<'_>) -> Result<Vec<Range>> {
    let buffer = from.get_buffer()?;
    if !from.has_buffer_sizes() {
        // Old clients send one range.
        return Ok(vec![halves(dimension.datatype, buffer)?]);
    }
    let (sizes, starts) = (from.get_buffer_sizes()?, from.get_buffer_start_sizes()?);
    let mut ranges = Vec::with_capacity(sizes.len() as usize);
    let mut at = 0usize;
    for (index, size) in (0u32..).zip(sizes) {
        let bytes = usize::try_from(size)
            .ok()
            .and_then(|size| buffer.get(at..at.checked_add(size)?))
            .ok_or_else(|| Failure::new("Cannot deserialize; ranges leave their buffer"))?;
        at += bytes.len();
        ranges.push(if dimension.is_var() {
            let start = starts.try_get(index).unwrap_or(0);
            let halves = usize::try_from(start)
                .ok()
                .and_then(|start| bytes.split_at_checked(start));
            let (start, end) = halves
                .ok_or_else(|| Failure::new("Cannot deserialize; a range leaves its buffer"))?;
            Range::new(start, end)
        } else {
            halves(dimension.datatype, bytes)?
        });
    }
    Ok(ranges)
}
