//! Where results go: memory of their own, or the caller's.

pub(super) mod copy;
pub(super) mod fixed;
pub(super) mod var;
