//! Enumerations.

use super::rest_capnp::enumeration;
use super::words::{data, datatype_of};
use crate::attribute::cell_val_num;
use crate::error::{Failure, Result};
use azulejo_format::schema::Enumeration;

/// Writes an enumeration.
pub fn write(from: &Enumeration, mut to: enumeration::Builder<'_>) -> Result<()> {
    to.set_name(from.name.as_str());
    to.set_path_name(from.file_name.as_str());
    to.set_type(from.datatype.name());
    to.set_cell_val_num(from.cell_val_num.id());
    to.set_ordered(from.ordered);
    if !from.data.is_empty() {
        to.set_data(data(&from.data)?);
    }
    if !from.offsets.is_empty() {
        let offsets: Vec<u8> = from.offsets.iter().flat_map(|o| o.to_le_bytes()).collect();
        to.set_offsets(data(&offsets)?);
    }
    Ok(())
}

/// Reads an enumeration.
pub fn read(from: enumeration::Reader<'_>) -> Result<Enumeration> {
    let offsets = from.get_offsets()?;
    if !offsets.len().is_multiple_of(8) {
        return Err(Failure::new(
            "Cannot deserialize; the offsets of an enumeration are no numbers of 8 bytes",
        ));
    }
    let enumeration = Enumeration {
        name: from.get_name()?.to_str()?.to_owned(),
        file_name: from.get_path_name()?.to_str()?.to_owned(),
        datatype: datatype_of(from.get_type()?)?,
        cell_val_num: cell_val_num(from.get_cell_val_num())?,
        ordered: from.get_ordered(),
        data: from.get_data()?.to_vec(),
        offsets: offsets
            .as_chunks::<8>()
            .0
            .iter()
            .map(|offset| u64::from_le_bytes(*offset))
            .collect(),
    };
    enumeration.check()?;
    Ok(enumeration)
}
