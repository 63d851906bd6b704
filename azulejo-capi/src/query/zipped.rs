//! `__coords`: the coordinates of all dimensions in one buffer, cell by cell, as clients of old
//! releases ask for them.
//!
//! The engine knows columns only: the buffer is taken apart before a write and put together after a
//! read. All dimensions must have one type of fixed length.

use super::buffers::{FieldBuffers, Place};
use crate::error::{Failure, Result};
use azulejo_format::schema::ArraySchema;

/// The name of the buffer.
pub const NAME: &str = "__coords";

/// Whether the coordinates of an array can be zipped.
pub fn possible(schema: &ArraySchema) -> bool {
    let mut types = schema
        .domain
        .dimensions
        .iter()
        .map(|d| (d.datatype, d.is_var()));
    let first = types.next();
    first.is_some_and(|(_, var)| !var) && types.all(|other| Some(other) == first)
}

/// The buffers of a submission, with a buffer of its own for each dimension in place of the zipped
/// one.
#[derive(Debug)]
pub struct Unzipped {
    /// All buffers but the zipped one; those of the dimensions come last.
    pub buffers: Vec<FieldBuffers>,
    zipped: Option<Place>,
    /// Bytes of a coordinate.
    width: usize,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    bytes: Vec<u8>,
    size: Box<u64>,
}

impl Unzipped {
    /// Room for what a read will find.
    pub fn to_read(schema: &ArraySchema, buffers: &[FieldBuffers]) -> Result<Self> {
        Self::new(schema, buffers, |place, dimensions, width, _| {
            vec![0; place.capacity() / (dimensions * width).max(1) * width]
        })
    }

    /// The coordinates that a write brings.
    pub fn to_write(schema: &ArraySchema, buffers: &[FieldBuffers]) -> Result<Self> {
        Self::new(schema, buffers, |place, dimensions, width, dimension| {
            let cells = place.bytes().chunks_exact((dimensions * width).max(1));
            let values =
                cells.filter_map(|cell| cell.get(dimension * width..(dimension + 1) * width));
            values.flatten().copied().collect()
        })
    }

    fn new(
        schema: &ArraySchema,
        buffers: &[FieldBuffers],
        part: impl Fn(&Place, usize, usize, usize) -> Vec<u8>,
    ) -> Result<Self> {
        let mut all = Self {
            buffers: buffers.to_vec(),
            zipped: None,
            width: 0,
            parts: Vec::new(),
        };
        let dimensions = &schema.domain.dimensions;
        let Some(at) = buffers.iter().position(|b| b.name == NAME) else {
            return Ok(all);
        };
        let place = all.buffers.remove(at).data;
        let place =
            place.ok_or_else(|| Failure::new("the zipped coordinates have no data buffer"))?;
        if dimensions
            .iter()
            .any(|d| all.buffers.iter().any(|b| b.name == d.name))
        {
            return Err("Cannot submit query; zipped and separate coordinates are both set".into());
        }
        all.width = dimensions.first().map_or(0, |d| d.datatype.size());
        for (i, dimension) in dimensions.iter().enumerate() {
            let mut bytes = part(&place, dimensions.len(), all.width, i);
            let mut size = Box::new(bytes.len() as u64);
            let data = Some(Place::new(bytes.as_mut_ptr(), &raw mut *size)?);
            // The heap memory of both stays where it is when the part is moved.
            all.parts.push(Part { bytes, size });
            let name = dimension.name.clone();
            all.buffers.push(FieldBuffers {
                name,
                data,
                offsets: None,
                validity: None,
            });
        }
        all.zipped = Some(place);
        Ok(all)
    }

    /// Puts together what was read.
    pub fn zip(&self) {
        let Some(place) = &self.zipped else { return };
        let cell = self.width * self.parts.len();
        let mut written = 0;
        for (i, part) in self.parts.iter().enumerate() {
            let len = usize::try_from(*part.size)
                .unwrap_or(0)
                .min(part.bytes.len());
            let values = part
                .bytes
                .get(..len)
                .unwrap_or_default()
                .chunks_exact(self.width.max(1));
            written = values.len() * cell;
            for (value, slot) in values.zip(place.bytes_mut().chunks_exact_mut(cell.max(1))) {
                if let Some(slot) = slot.get_mut(i * self.width..(i + 1) * self.width) {
                    slot.copy_from_slice(value);
                }
            }
        }
        place.set_size(written);
    }
}
