//! Columns as Arrow arrays.
