//! Work on pieces of a slice, on all threads.

use crate::context::Context;
use crate::error::Result;
use rayon::prelude::*;

/// Work is divided into at least so many tasks, if it has as many items: pieces are large, and one may
/// take much longer than another.
const TASKS: usize = 256;

/// Cuts a slice into pieces of these lengths; what is missing is left out.
pub(super) fn split<T>(mut slice: &mut [T], lens: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    lens.map(|len| {
        slice
            .split_off_mut(..len.min(slice.len()))
            .unwrap_or_default()
    })
    .collect()
}

/// Bytes of which pieces are given away, in their order.
pub(super) struct UnusedBytes<'o> {
    /// Bytes in front of those that are left.
    at: usize,
    rest: &'o mut [u8],
}

impl<'o> UnusedBytes<'o> {
    pub fn new(rest: &'o mut [u8]) -> Self {
        Self { at: 0, rest }
    }

    /// Gives the bytes from `start` on away; `None` if they are gone or not there.
    pub fn take(&mut self, start: usize, len: usize) -> Option<&'o mut [u8]> {
        let skipped = start.checked_sub(self.at)?;
        let (_, rest) = std::mem::take(&mut self.rest).split_at_mut_checked(skipped)?;
        let (taken, rest) = rest.split_at_mut_checked(len)?;
        (self.at, self.rest) = (start + len, rest);
        Some(taken)
    }
}

/// Runs `work` for each item: on all threads if there are several. Who cancels the context ends it
/// before the next item.
pub(super) fn each<I: Send, R: Send>(
    context: &Context,
    items: Vec<I>,
    work: impl Fn(I) -> Result<R> + Send + Sync,
) -> Result<Vec<R>> {
    if items.len() < 2 {
        return items.into_iter().map(work).collect();
    }
    let most = items.len().div_ceil(TASKS);
    let operation = context.begin();
    context.install(|| {
        let items = items.into_par_iter().with_max_len(most);
        items
            .map(|item| operation.check().and_then(|()| work(item)))
            .collect()
    })
}
