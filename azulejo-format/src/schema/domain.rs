//! The domain. Page: *Array Schema, Domain*.

use super::Dimension;
use crate::datatype::Datatype;
use crate::error::Result;
use crate::range::{NdRectangle, Range, compare};
use crate::version::FormatVersion;
use crate::wire::{ByteReader, ByteWriter};

/// The dimensions of an array, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Domain {
    /// The dimensions.
    pub dimensions: Vec<Dimension>,
}

impl Domain {
    /// A box where a range with NaN for a bound holds everything along its dimension; `None` if it
    /// has no such range.
    ///
    /// Where libtiledb's comparisons begin with NaN, which it stores as a coordinate, a range is NaN
    /// to NaN, whatever else lies there.
    #[must_use]
    pub fn without_nan(&self, told: &NdRectangle) -> Option<NdRectangle> {
        let kinds = || self.dimensions.iter().map(|dimension| dimension.datatype);
        let mut ranges = told.ranges.iter().zip(kinds());
        if !ranges.any(|(range, datatype)| range.as_ref().has_nan(datatype)) {
            return None;
        }
        let ranges = told.ranges.iter().zip(kinds());
        let ranges = ranges.map(|(range, datatype)| match range.as_ref().has_nan(datatype) {
            true => Range::of_everything(datatype),
            false => range.clone(),
        });
        Some(NdRectangle {
            ranges: ranges.collect(),
        })
    }

    /// The box around boxes of this domain; `None` if there are none.
    #[must_use]
    pub fn around<'a>(
        &self,
        boxes: impl IntoIterator<Item = &'a NdRectangle>,
    ) -> Option<NdRectangle> {
        let mut boxes = boxes.into_iter();
        let mut around = boxes.next()?.clone();
        for more in boxes {
            let ranges = around.ranges.iter_mut().zip(&more.ranges);
            for ((range, more), dimension) in ranges.zip(&self.dimensions) {
                if compare(dimension.datatype, &more.start, &range.start).is_lt() {
                    range.start.clone_from(&more.start);
                }
                if compare(dimension.datatype, &more.end, &range.end).is_gt() {
                    range.end.clone_from(&more.end);
                }
            }
        }
        Some(around)
    }

    /// The number of dimensions.
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.dimensions.len()
    }

    /// The index of the dimension with a name.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.dimensions.iter().position(|d| d.name == name)
    }

    /// Reads the domain of a schema of `version`.
    pub(super) fn decode(r: &mut ByteReader<'_>, version: FormatVersion) -> Result<Self> {
        let shared = if version.has_separate_dimensions() {
            None
        } else {
            let at = r.offset();
            Some(Datatype::from_id(r.u8("domain datatype")?, at)?)
        };
        let count = r.u32("number of dimensions")?;
        // A dimension has at least a name's length, a domain or its size, and a flag.
        let count = r.check_count(count.into(), 7, "dimensions")?;
        let dimensions = (0..count)
            .map(|_| Dimension::decode(r, version, shared))
            .collect::<Result<_>>()?;
        Ok(Self { dimensions })
    }

    /// Writes the domain as a schema of `version` holds it.
    pub(super) fn encode(&self, w: &mut ByteWriter, version: FormatVersion) {
        if !version.has_separate_dimensions() {
            w.u8(self
                .dimensions
                .first()
                .map_or(Datatype::Int32, |d| d.datatype)
                .id());
        }
        w.u32(u32::try_from(self.dimensions.len()).unwrap_or(u32::MAX));
        for dimension in &self.dimensions {
            dimension.encode(w, version);
        }
    }
}
