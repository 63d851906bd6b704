//! Writes against a naive model.
