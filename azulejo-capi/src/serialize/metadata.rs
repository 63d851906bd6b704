//! Key-values of arrays and groups.

use super::rest_capnp::array_metadata;
use super::words::{data, datatype_of};
use crate::error::{Failure, Result};
use crate::metadata::Changes;
use azulejo_format::Datatype;
use azulejo_format::metadata::MetadataValue;
use std::collections::BTreeMap;

/// Writes key-values, of which those deleted have no value. The last of a key counts.
pub fn write(from: &Changes, to: array_metadata::Builder<'_>) -> Result<()> {
    let last: BTreeMap<&str, Option<&MetadataValue>> = from
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_ref()))
        .collect();
    let count = u32::try_from(last.len()).map_err(|_| Failure::new("too many key-values"))?;
    let mut list = to.init_entries(count);
    for (index, (key, value)) in (0u32..).zip(last) {
        let mut entry = list.reborrow().get(index);
        entry.set_key(key);
        entry.set_del(value.is_none());
        let nothing = MetadataValue::new(Datatype::Char, []);
        let value = value.unwrap_or(&nothing);
        entry.set_type(value.datatype.name());
        entry.set_value_num(u32::try_from(value.count()).unwrap_or(u32::MAX));
        entry.set_value(data(&value.data)?);
    }
    Ok(())
}

/// Reads key-values: what is put, and what is deleted.
pub fn read(from: array_metadata::Reader<'_>) -> Result<Changes> {
    let mut changes = Changes::new();
    for entry in from.get_entries()? {
        let key = entry.get_key()?.to_str()?.to_owned();
        let datatype = datatype_of(entry.get_type()?)?;
        let value = entry.get_value()?;
        if value.len() as u64 != datatype.size() as u64 * u64::from(entry.get_value_num()) {
            return Err(Failure::new(format!(
                "Error deserializing array metadata; value size sanity check failed for {key}."
            )));
        }
        let put = (!entry.get_del()).then(|| MetadataValue::new(datatype, value));
        changes.push((key, put));
    }
    Ok(changes)
}
