//! Non-empty domains.

use super::message::{self, Format};
use super::rest_capnp::{non_empty_domain, non_empty_domain_list};
use super::values::{halves, read_array, write_array};
use super::words::count;
use crate::array::ArrayHandle;
use crate::boundary::{Bytes, In, Out, OutBytes, Ptr, capi};
use crate::buffer::Buffer;
use crate::error::{Failure, Result};
use azulejo_format::schema::{ArraySchema, Dimension};
use azulejo_format::{Datatype, NdRectangle, Range};

/// Writes a non-empty domain: the bounds of each dimension as bytes.
pub fn write(
    from: Option<&NdRectangle>,
    dimensions: &[Dimension],
    to: non_empty_domain_list::Builder<'_>,
) -> Result<()> {
    let Some(domain) = from else { return Ok(()) };
    let mut list = to.init_non_empty_domains(count(dimensions)?);
    for ((index, range), dimension) in (0u32..).zip(&domain.ranges).zip(dimensions) {
        let mut to = list.reborrow().get(index);
        let bounds = [range.start.as_slice(), range.end.as_slice()].concat();
        to.set_is_empty(bounds.is_empty());
        if bounds.is_empty() {
            continue;
        }
        write_array(
            Datatype::UInt8,
            &bounds,
            to.reborrow().init_non_empty_domain(),
        )?;
        if dimension.is_var() {
            to.init_sizes(1).set(0, range.start.len() as u64);
        }
    }
    Ok(())
}

/// Reads a non-empty domain of an array with these dimensions; `None` if the array is empty.
pub fn read(
    from: non_empty_domain_list::Reader<'_>,
    dimensions: &[Dimension],
) -> Result<Option<NdRectangle>> {
    let list = from.get_non_empty_domains()?;
    if list.is_empty() {
        return Ok(None);
    }
    if list.len() as usize != dimensions.len() {
        return Err("Cannot deserialize; a non-empty domain has other dimensions".into());
    }
    let mut ranges = Vec::with_capacity(dimensions.len());
    for (from, dimension) in list.iter().zip(dimensions) {
        let bytes = read_array(Datatype::UInt8, from.get_non_empty_domain()?)?;
        let sizes = from.get_sizes()?;
        ranges.push(match dimension.is_var() {
            false => halves(dimension.datatype, &bytes)?,
            true => {
                let start = sizes
                    .try_get(0)
                    .and_then(|start| bytes.split_at_checked(usize::try_from(start).ok()?));
                let (start, end) = start.ok_or_else(|| {
                    Failure::new("Cannot deserialize; a non-empty domain leaves its bytes")
                })?;
                Range::new(start, end)
            }
        });
    }
    Ok(Some(NdRectangle { ranges }))
}

/// The one type of all dimensions, which the form without a list needs.
fn one_type(schema: &ArraySchema) -> Result<(Datatype, usize)> {
    let dimensions = &schema.domain.dimensions;
    let first = dimensions.first().map_or(Datatype::Any, |d| d.datatype);
    if dimensions.iter().any(|d| d.is_var() || d.datatype != first) {
        return Err(
            "Cannot serialize; the dimensions are of different or variable-sized types".into(),
        );
    }
    Ok((first, 2 * dimensions.len() * first.size()))
}

capi! {
    /// A message with the bounds of all dimensions, which are of one fixed-size type.
    fn tiledb_serialize_array_nonempty_domain(
        ctx, array: In<ArrayHandle>, nonempty_domain: Bytes, is_empty: i32,
        kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>
    ) {
        let _ = client_side;
        let (datatype, size) = one_type(array.get()?.open()?.snapshot().schema())?;
        let bounds = match is_empty {
            0 => Some(nonempty_domain.get(size)?),
            _ => None,
        };
        let bytes = message::encode::<non_empty_domain::Owned>(Format::of(kind)?, |mut to| {
            to.set_is_empty(bounds.is_none());
            match bounds {
                Some(bounds) => write_array(datatype, bounds, to.init_non_empty_domain()),
                None => Ok(()),
            }
        })?;
        buffer.give(Buffer::of(bytes))?;
    }

    /// The bounds of all dimensions out of a message.
    fn tiledb_deserialize_array_nonempty_domain(
        ctx, array: In<ArrayHandle>, buffer: In<Buffer>, kind: i32,
        client_side: i32, nonempty_domain: OutBytes, is_empty: Out<i32>
    ) {
        let _ = client_side;
        let (datatype, size) = one_type(array.get()?.open()?.snapshot().schema())?;
        let bytes = buffer.get()?.bytes()?;
        let bounds = message::decode::<non_empty_domain::Owned, _>(Format::of(kind)?, &bytes, |from| {
            let empty = from.get_is_empty() || !from.has_non_empty_domain();
            Ok(match empty {
                true => None,
                false => Some(read_array(datatype, from.get_non_empty_domain()?)?),
            })
        })?;
        if let Some(bounds) = &bounds {
            if bounds.len() != size {
                return Err("Cannot deserialize; a non-empty domain has other dimensions".into());
            }
            nonempty_domain.write(bounds)?;
        }
        is_empty.set(bounds.is_none().into())?;
    }

    /// A message with the non-empty domain of an array that is open for reading.
    fn tiledb_serialize_array_non_empty_domain_all_dimensions(
        ctx, array: In<ArrayHandle>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>
    ) {
        let _ = client_side;
        let open = array.get()?.open_for_reading()?;
        let domain = open.non_empty_domain()?;
        let dimensions = &open.snapshot().schema().domain.dimensions;
        let bytes = message::encode::<non_empty_domain_list::Owned>(
            Format::of(kind)?, |to| write(domain.as_ref(), dimensions, to)
        )?;
        buffer.give(Buffer::of(bytes))?;
    }

    /// Lets an open array have the non-empty domain that a message says.
    fn tiledb_deserialize_array_non_empty_domain_all_dimensions(
        ctx, array: In<ArrayHandle>, buffer: In<Buffer>, kind: i32, client_side: i32
    ) {
        let _ = client_side;
        let open = array.get()?.open()?;
        let dimensions = &open.snapshot().schema().domain.dimensions;
        let bytes = buffer.get()?.bytes()?;
        let domain = message::decode::<non_empty_domain_list::Owned, _>(
            Format::of(kind)?, &bytes, |from| read(from, dimensions)
        )?;
        open.tell_non_empty_domain(domain);
    }
}
