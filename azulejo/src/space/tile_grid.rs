//! Space tiles of dense arrays.
