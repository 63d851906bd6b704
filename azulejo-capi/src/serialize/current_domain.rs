//! Current domains.

use super::rest_capnp::current_domain;
use super::values::{read_ranges, write_ranges};
use super::words::{count, datatype_of};
use crate::error::{Failure, Result};
use azulejo_format::schema::{CurrentDomain, Dimension};
use azulejo_format::{Datatype, NdRectangle, Range};

/// Writes a current domain of an array with these dimensions.
pub fn write(
    from: &CurrentDomain,
    dimensions: &[Dimension],
    mut to: current_domain::Builder<'_>,
) -> Result<()> {
    to.set_version(0);
    let Some(ranges) = from.ranges() else {
        to.set_empty_current_domain(());
        return Ok(());
    };
    to.set_type("NDRECTANGLE");
    let mut list = to.init_nd_rectangle().init_ndranges(count(ranges)?);
    for ((index, range), dimension) in (0u32..).zip(ranges).zip(dimensions) {
        write_ranges(
            dimension,
            std::slice::from_ref(range),
            list.reborrow().get(index),
        )?;
    }
    Ok(())
}

/// The types of the dimensions that a message says.
pub fn types(from: current_domain::Reader<'_>) -> Result<Vec<Datatype>> {
    let mut types = Vec::new();
    if let current_domain::Which::NdRectangle(rectangle) = from.which()? {
        for each in rectangle?.get_ndranges()? {
            types.push(datatype_of(each.get_type()?)?);
        }
    }
    Ok(types)
}

/// Reads a current domain. The message itself says the types of its dimensions.
pub fn read(from: current_domain::Reader<'_>) -> Result<CurrentDomain> {
    if from.get_version() != 0 {
        return Err("Cannot deserialize; the current domain is of a newer version".into());
    }
    let rectangle = match from.which()? {
        current_domain::Which::EmptyCurrentDomain(()) => return Ok(CurrentDomain::Empty),
        current_domain::Which::NdRectangle(rectangle) => rectangle?,
    };
    let mut ranges: Vec<Range> = Vec::new();
    for each in rectangle.get_ndranges()? {
        let datatype = datatype_of(each.get_type()?)?;
        let dimension = Dimension::of_type("", datatype);
        match <[Range; 1]>::try_from(read_ranges(&dimension, each)?) {
            Ok([range]) => ranges.push(range),
            Err(other) => {
                return Err(Failure::new(format!(
                    "Cannot deserialize; a dimension of a current domain has {} ranges",
                    other.len()
                )));
            }
        }
    }
    Ok(CurrentDomain::NdRectangle(NdRectangle { ranges }))
}
