//! A dimension. Page: *Array Schema, Dimension*.

use crate::datatype::{CellValNum, Datatype};
use crate::error::Result;
use crate::filter::Pipeline;
use crate::range::Range;
use crate::version::FormatVersion;
use crate::wire::{ByteReader, ByteWriter};

/// One dimension of a domain.
#[derive(Debug, Clone, PartialEq)]
pub struct Dimension {
    /// The name; empty for an anonymous dimension.
    pub name: String,
    /// The type of its coordinates.
    pub datatype: Datatype,
    /// 1, or var for strings.
    pub cell_val_num: CellValNum,
    /// Filters of its coordinates; empty means the schema's `coords_filters`.
    pub filters: Pipeline,
    /// The inclusive domain; `None` for string dimensions.
    pub domain: Option<Range>,
    /// The tile extent's bytes, if there is one. Integer extents are to be taken as unsigned: see
    /// [`TileAxis`](super::TileAxis).
    pub tile_extent: Option<Vec<u8>>,
}

impl Dimension {
    /// Whether coordinates vary in length (strings).
    #[must_use]
    pub const fn is_var(&self) -> bool {
        self.cell_val_num.is_var()
    }

    /// Bytes of one coordinate; `None` for strings.
    #[must_use]
    pub fn coord_size(&self) -> Option<usize> {
        self.cell_val_num.cell_size(self.datatype)
    }

    /// Reads a dimension of a schema of `version`; `shared` is the type of all dimensions, which v1
    /// to v4 store once.
    pub(super) fn decode(
        r: &mut ByteReader<'_>,
        version: FormatVersion,
        shared: Option<Datatype>,
    ) -> Result<Self> {
        let name_len = r.u32("dimension name length")?;
        let name = r.text(name_len.into(), "dimension name")?;
        let (datatype, cell_val_num, filters, domain_size) = match shared {
            Some(datatype) => (
                datatype,
                CellValNum::ONE,
                Pipeline::default(),
                2 * datatype.size() as u64,
            ),
            None => {
                let at = r.offset();
                let datatype = Datatype::from_id(r.u8("dimension datatype")?, at)?;
                let at = r.offset();
                let cell_val_num = CellValNum::from_id(r.u32("dimension cell val num")?, at)?;
                let filters = Pipeline::decode(r, version)?;
                (datatype, cell_val_num, filters, r.u64("domain size")?)
            }
        };
        let domain = if domain_size == 0 {
            None
        } else {
            let value_size = datatype.size();
            if domain_size != 2 * value_size as u64 {
                return Err(r.invalid(
                    "domain size",
                    format!("{domain_size} bytes for two values of {datatype}"),
                ));
            }
            Some(Range::new(
                r.bytes(value_size, "domain start")?,
                r.bytes(value_size, "domain end")?,
            ))
        };
        // Any other byte than 0 means null, as the reference reads it.
        let tile_extent = match r.u8("null tile extent")? {
            0 => Some(r.bytes(datatype.size(), "tile extent")?.to_vec()),
            _ => None,
        };
        Ok(Self {
            name,
            datatype,
            cell_val_num,
            filters,
            domain,
            tile_extent,
        })
    }

    /// Writes the dimension as a schema of `version` holds it.
    pub(super) fn encode(&self, w: &mut ByteWriter, version: FormatVersion) {
        w.text32(&self.name);
        let (start, end): (&[u8], &[u8]) = self
            .domain
            .as_ref()
            .map_or((&[], &[]), |range| (&range.start, &range.end));
        if version.has_separate_dimensions() {
            w.u8(self.datatype.id());
            w.u32(self.cell_val_num.id());
            self.filters.encode(w, version);
            w.u64(start.len() as u64 + end.len() as u64);
        }
        w.bytes(start);
        w.bytes(end);
        w.flag(self.tile_extent.is_none());
        w.bytes(self.tile_extent.as_deref().unwrap_or_default());
    }
}
