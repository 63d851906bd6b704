//! Work on pieces of a slice, on all threads.

use crate::context::Context;
use crate::error::Result;
use rayon::prelude::*;

/// Cuts a slice into pieces of these lengths; what is missing is left out.
pub(super) fn split<T>(mut slice: &mut [T], lens: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    let mut pieces = Vec::new();
    for len in lens {
        let (piece, rest) = slice.split_at_mut(len.min(slice.len()));
        pieces.push(piece);
        slice = rest;
    }
    pieces
}

/// Runs `work` for each item: on all threads if there are several.
pub(super) fn each<I: Send, R: Send>(
    context: &Context,
    items: Vec<I>,
    work: impl Fn(I) -> Result<R> + Send + Sync,
) -> Result<Vec<R>> {
    if items.len() < 2 {
        return items.into_iter().map(work).collect();
    }
    context.install(|| items.into_par_iter().map(work).collect())
}
