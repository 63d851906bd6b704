//! Submitting writes and deletes.

use super::State;
use crate::array::OpenArray;
use crate::error::{Failure, Result};

/// What a write has made so far.
#[derive(Debug, Default)]
pub struct WriteState {
    /// URIs and times of the fragments.
    pub fragments: Vec<(String, (u64, u64))>,
}

/// Writes what the caller's buffers hold.
pub fn submit(state: &mut State, open: &OpenArray) -> Result<()> {
    let _ = (state, open);
    Err(Failure::unsupported("writing"))
}

/// Ends a write in global order: what was written counts from now on.
pub fn finalize(state: &mut State, open: &OpenArray) -> Result<()> {
    let _ = (state, open);
    Ok(())
}

/// Deletes the cells that meet the query's condition.
pub fn delete(state: &mut State, open: &OpenArray) -> Result<()> {
    let _ = (state, open);
    Err(Failure::unsupported("deleting cells"))
}
