//! Lengths that the format fixes.

/// Bytes of the random IV of a part.
pub const IV_LEN: usize = 12;
/// Bytes of a part's tag.
pub const TAG_LEN: usize = 16;
