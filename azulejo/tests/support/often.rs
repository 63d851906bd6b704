//! How densely tests try what could be tried everywhere.

/// One of how many stops is tried: of so many, or of as many as `AZULEJO_EVERY` says (1: all of them).
pub fn every(usual: usize) -> usize {
    std::env::var("AZULEJO_EVERY").map_or(usual, |every| every.parse().expect("a number"))
}
