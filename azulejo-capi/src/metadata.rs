//! Storing key-values of arrays and groups.

use crate::error::{Failure, Result};
use azulejo_format::metadata::MetadataValue;

/// Stores what was put (`Some`) and deleted (`None`) in an array's metadata.
pub fn store_array(
    engine: &azulejo::Context, uri: &str, changes: Vec<(String, Option<MetadataValue>)>, time: Option<u64>,
) -> Result<()> {
    let _ = (engine, uri, changes, time);
    Err(Failure::unsupported("writing metadata"))
}
