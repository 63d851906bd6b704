//! A dimension label: a small array that maps label values to indices of a dimension.
//!
//! Page: *Array Schema, Dimension Label*.

use super::DataOrder;
use crate::datatype::{CellValNum, Datatype};
use crate::error::Result;
use crate::wire::{ByteReader, ByteWriter};

/// One dimension label.
#[derive(Debug, Clone, PartialEq)]
pub struct DimensionLabel {
    /// Index of the dimension it labels.
    pub dimension: u32,
    /// Order of the label values.
    pub order: DataOrder,
    /// The label's name.
    pub name: String,
    /// Whether `uri` is relative to the array.
    pub relative: bool,
    /// Where the label's array lies.
    pub uri: String,
    /// The attribute of that array that holds the label values.
    pub attribute: String,
    /// Type of the label values.
    pub datatype: Datatype,
    /// Values in a label.
    pub cell_val_num: CellValNum,
    /// Whether the label's array lies outside this array.
    pub external: bool,
}

impl DimensionLabel {
    /// Reads a label. The bytes differ from the format page: the name's length is a `u32`, the
    /// order follows the attribute's name, and no domain is stored.
    pub(super) fn decode(r: &mut ByteReader<'_>) -> Result<Self> {
        let dimension = r.u32("labelled dimension")?;
        let name_len = r.u32("label name length")?;
        let name = r.text(name_len.into(), "label name")?;
        let relative = r.flag("label URI is relative")?;
        let uri_len = r.u64("label URI length")?;
        let uri = r.text(uri_len, "label URI")?;
        let attribute_len = r.u32("label attribute name length")?;
        let attribute = r.text(attribute_len.into(), "label attribute name")?;
        let at = r.offset();
        let order = DataOrder::from_id(r.u8("label order")?, at)?;
        let at = r.offset();
        let datatype = Datatype::from_id(r.u8("label datatype")?, at)?;
        let at = r.offset();
        let cell_val_num = CellValNum::from_id(r.u32("label cell val num")?, at)?;
        let external = r.flag("label is external")?;
        Ok(Self {
            dimension,
            order,
            name,
            relative,
            uri,
            attribute,
            datatype,
            cell_val_num,
            external,
        })
    }

    /// Writes the label.
    pub(super) fn encode(&self, w: &mut ByteWriter) {
        w.u32(self.dimension);
        w.text32(&self.name);
        w.flag(self.relative);
        w.text64(&self.uri);
        w.text32(&self.attribute);
        w.u8(self.order as u8);
        w.u8(self.datatype.id());
        w.u32(self.cell_val_num.id());
        w.flag(self.external);
    }
}
