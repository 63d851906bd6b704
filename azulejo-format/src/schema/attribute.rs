//! An attribute. Page: *Array Schema, Attribute*.

use crate::datatype::{CellValNum, Datatype};
use crate::error::{DecodeError, Result};
use crate::filter::Pipeline;
use crate::version::FormatVersion;
use crate::wire::{ByteReader, ByteWriter};

/// Whether an attribute's values are known to be sorted (used by dimension labels).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DataOrder {
    /// No order.
    Unordered = 0,
    /// Increasing along the dimension.
    Increasing = 1,
    /// Decreasing along the dimension.
    Decreasing = 2,
}

/// One attribute of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// The name; empty for an anonymous attribute.
    pub name: String,
    /// The type of its values.
    pub datatype: Datatype,
    /// Values in a cell.
    pub cell_val_num: CellValNum,
    /// Whether cells can be null.
    pub nullable: bool,
    /// Filters of its data.
    pub filters: Pipeline,
    /// What unwritten cells read as: one whole cell (fixed), or any number of values (var).
    pub fill_value: Vec<u8>,
    /// Whether unwritten cells of a nullable attribute are valid.
    pub fill_validity: bool,
    /// The order of the data.
    pub order: DataOrder,
    /// Name of the enumeration that its values index.
    pub enumeration: Option<String>,
}

impl DataOrder {
    /// The order with an id read at `offset`.
    pub(super) fn from_id(id: u8, offset: usize) -> Result<Self> {
        match id {
            0 => Ok(Self::Unordered),
            1 => Ok(Self::Increasing),
            2 => Ok(Self::Decreasing),
            _ => Err(DecodeError::UnknownId {
                what: "data order",
                id: id.into(),
                offset,
            }),
        }
    }
}

impl Attribute {
    /// Bytes that the fill values of a schema may have together where the format stores none and
    /// they are made up (below v6).
    pub const MAX_IMPLIED_FILL: usize = 16 << 20;

    /// An attribute without filters that is not nullable, with the default fill value.
    #[must_use]
    pub fn new(name: impl Into<String>, datatype: Datatype, cell_val_num: CellValNum) -> Self {
        Self {
            name: name.into(),
            datatype,
            cell_val_num,
            nullable: false,
            filters: Pipeline::default(),
            fill_value: default_fill(datatype, cell_val_num),
            fill_validity: false,
            order: DataOrder::Unordered,
            enumeration: None,
        }
    }

    /// Whether cells vary in length.
    #[must_use]
    pub const fn is_var(&self) -> bool {
        self.cell_val_num.is_var()
    }

    /// Bytes of one cell; `None` where cells vary.
    #[must_use]
    pub fn cell_size(&self) -> Option<usize> {
        self.cell_val_num.cell_size(self.datatype)
    }

    /// Reads an attribute of a schema of `version`. Fill values that it only implies take from
    /// `implied`, the bytes that those of one schema may have.
    pub(super) fn decode(
        r: &mut ByteReader<'_>,
        version: FormatVersion,
        implied: &mut usize,
    ) -> Result<Self> {
        let name_len = r.u32("attribute name length")?;
        let name = r.text(name_len.into(), "attribute name")?;
        let at = r.offset();
        let datatype = Datatype::from_id(r.u8("attribute datatype")?, at)?;
        let at = r.offset();
        let cell_val_num = CellValNum::from_id(r.u32("attribute cell val num")?, at)?;
        let filters = Pipeline::decode(r, version)?;
        let fill_value = if version.has_fill_value() {
            let len = r.u64("fill value length")?;
            r.bytes_u64(len, "fill value")?.to_vec()
        } else {
            let size = cell_val_num.cell_size(datatype).unwrap_or(0);
            *implied = implied
                .checked_sub(size)
                .ok_or(DecodeError::LimitExceeded {
                    what: "fill value",
                    asked: size as u64,
                    limit: *implied as u64,
                })?;
            default_fill(datatype, cell_val_num)
        };
        let (nullable, fill_validity) = if version.has_nullable() {
            (r.flag("nullable")?, r.flag("fill value validity")?)
        } else {
            (false, false)
        };
        let order = if version.has_attribute_order() {
            let at = r.offset();
            DataOrder::from_id(r.u8("attribute order")?, at)?
        } else {
            DataOrder::Unordered
        };
        let enumeration = if version.has_enumerations() {
            let len = r.u32("enumeration name length")?;
            let name = r.text(len.into(), "enumeration name")?;
            (!name.is_empty()).then_some(name)
        } else {
            None
        };
        Ok(Self {
            name,
            datatype,
            cell_val_num,
            nullable,
            filters,
            fill_value,
            fill_validity,
            order,
            enumeration,
        })
    }

    /// Writes the attribute as a schema of `version` holds it; what that version lacks is left out.
    pub(super) fn encode(&self, w: &mut ByteWriter, version: FormatVersion) {
        w.text32(&self.name);
        w.u8(self.datatype.id());
        w.u32(self.cell_val_num.id());
        self.filters.encode(w, version);
        if version.has_fill_value() {
            w.u64(self.fill_value.len() as u64);
            w.bytes(&self.fill_value);
        }
        if version.has_nullable() {
            w.flag(self.nullable);
            w.flag(self.fill_validity);
        }
        if version.has_attribute_order() {
            w.u8(self.order as u8);
        }
        if version.has_enumerations() {
            w.text32(self.enumeration.as_deref().unwrap_or_default());
        }
    }
}

/// One cell of the datatype's default fill, or one value where cells vary.
pub(super) fn default_fill(datatype: Datatype, cell_val_num: CellValNum) -> Vec<u8> {
    let values = match cell_val_num {
        CellValNum::Fixed(n) => n as usize,
        CellValNum::Var => 1,
    };
    datatype.default_fill().repeat(values)
}

/// How messages show an attribute whose name is empty.
const NO_NAME: &str = "\"\" (no name)";

/// Names of fields as messages list them, for one attribute may have none: its name is empty then.
#[must_use]
pub fn shown_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let shown = names.into_iter().map(|name| match name {
        "" => NO_NAME,
        name => name,
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// One of them in quotation marks.
#[must_use]
pub fn quoted_name(name: &str) -> String {
    match name {
        "" => NO_NAME.to_owned(),
        name => format!("{name:?}"),
    }
}
