//! Storing key-values of arrays and groups.

use crate::error::Result;
use azulejo::array::MetadataWriter;
use azulejo_format::metadata::{Metadata, MetadataValue};

/// What was put (`Some`) and deleted (`None`), in that order.
pub type Changes = Vec<(String, Option<MetadataValue>)>;

/// Stores changes as one file.
pub fn store(writer: MetadataWriter, changes: Changes, time: Option<u64>) -> Result<()> {
    let mut writer = match time {
        Some(time) => writer.at(time),
        None => writer,
    };
    for (key, value) in changes {
        match value {
            Some(value) => writer.put(key, value)?,
            None => writer.remove(key),
        };
    }
    Ok(writer.commit()?)
}

/// What key-values become by changes.
pub fn apply(metadata: &mut Metadata, changes: Changes) {
    for (key, value) in changes {
        match value {
            Some(value) => metadata.insert(key, value),
            None => metadata.remove(&key),
        };
    }
}
