//! Fuzz targets: what libFuzzer calls, and what the replay test calls on stable Rust.
//!
//! A target takes any bytes and must neither panic, hang nor allocate beyond its limit. Where
//! decoding succeeds, encoding and decoding again must give the same value. `cargo xtask fuzz` runs
//! them under coverage guidance.

pub mod arrays;
#[cfg(feature = "calls")]
pub mod calls;
pub mod decoders;
pub mod made;
pub mod plain;
pub mod texts;

// The exported functions, as the library's own tests call them.
#[cfg(feature = "calls")]
#[path = "../../azulejo-capi/tests/capi/mod.rs"]
mod capi;

// Parsers of the command line, which is a program and no library.
#[path = "../../azulejo-cli/src/moment.rs"]
#[allow(dead_code, missing_docs)]
mod moment;
#[path = "../../azulejo-cli/src/selection/range_text.rs"]
#[allow(dead_code, missing_docs)]
mod range_text;
#[path = "../../azulejo-cli/src/size.rs"]
#[allow(dead_code, missing_docs)]
mod size;
#[path = "../../azulejo-cli/src/value.rs"]
#[allow(dead_code, missing_docs)]
mod value;

/// A target: any bytes.
pub type Target = fn(&[u8]);

/// All targets by name. Each has a folder of that name in `corpus/`.
pub const TARGETS: &[(&str, Target)] = &[
    ("schema", decoders::schema),
    ("generic_tile", decoders::generic_tile),
    ("fragment_metadata", decoders::fragment_metadata),
    ("small_files", decoders::small_files),
    ("tile_chunks", decoders::tile_chunks),
    ("filters", decoders::filters),
    ("manifest", decoders::manifest),
    ("texts", texts::texts),
    ("whole_array", arrays::whole_array),
    ("made_array", arrays::made_array),
    #[cfg(feature = "calls")]
    ("calls", calls::calls),
];
