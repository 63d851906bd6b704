//! Filtering of tiles, in parallel.
