//! The current domain: the part of the domain in use. Page: *Array Schema, Current Domain*.

use super::Domain;
use crate::error::{DecodeError, Result};
use crate::range::{NdRectangle, Range};
use crate::wire::{ByteReader, ByteWriter};

/// The current domain of an array.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CurrentDomain {
    /// None is set: all of the domain counts.
    #[default]
    Empty,
    /// A hyperrectangle, one range a dimension.
    NdRectangle(NdRectangle),
}

/// The version of the structure, apart from the schema's (the format page says 1, every writer
/// writes 0).
const VERSION: u32 = 0;
/// The id of the one kind there is.
const ND_RECTANGLE: u8 = 0;

impl CurrentDomain {
    /// The ranges, one a dimension, if a current domain is set.
    #[must_use]
    pub fn ranges(&self) -> Option<&[Range]> {
        match self {
            Self::Empty => None,
            Self::NdRectangle(rectangle) => Some(&rectangle.ranges),
        }
    }

    /// Reads the current domain of an array with this domain.
    pub(super) fn decode(r: &mut ByteReader<'_>, domain: &Domain) -> Result<Self> {
        let at = r.offset();
        let found = r.u32("current domain version")?;
        if found > VERSION {
            return Err(DecodeError::invalid(
                "current domain version",
                at,
                format!("{found} is newer than {VERSION}"),
            ));
        }
        if r.flag("current domain is empty")? {
            return Ok(Self::Empty);
        }
        let at = r.offset();
        let kind = r.u8("current domain type")?;
        if kind != ND_RECTANGLE {
            return Err(DecodeError::UnknownId {
                what: "current domain type",
                id: kind.into(),
                offset: at,
            });
        }
        let mut ranges = Vec::with_capacity(domain.ndim());
        for dimension in &domain.dimensions {
            let (start, end) = match dimension.coord_size() {
                Some(size) => (size as u64, size as u64),
                None => {
                    let size = r.u64("current domain range size")?;
                    let start = r.u64("current domain range start size")?;
                    let end = size.checked_sub(start);
                    (
                        start,
                        end.ok_or_else(|| {
                            r.invalid("current domain range", "it starts behind its end")
                        })?,
                    )
                }
            };
            let start = r.bytes_u64(start, "current domain range start")?;
            ranges.push(Range::new(
                start,
                r.bytes_u64(end, "current domain range end")?,
            ));
        }
        Ok(Self::NdRectangle(NdRectangle { ranges }))
    }

    /// Writes the current domain of an array with this domain.
    pub(super) fn encode(&self, w: &mut ByteWriter, domain: &Domain) {
        w.u32(VERSION);
        w.flag(self.ranges().is_none());
        let Some(ranges) = self.ranges() else { return };
        w.u8(ND_RECTANGLE);
        for (dimension, range) in domain.dimensions.iter().zip(ranges) {
            if dimension.is_var() {
                w.u64(range.start.len() as u64 + range.end.len() as u64);
                w.u64(range.start.len() as u64);
            }
            w.bytes(&range.start);
            w.bytes(&range.end);
        }
    }
}
