//! TileDB arrays in browsers: what the JavaScript of the package `azulejo-web` calls.
//!
//! The package's own modules, in `js/`, fetch bytes and make typed arrays; this crate is the engine
//! between them. On other targets than WebAssembly only what is pure compiles, for its tests.

pub mod describe;
pub mod request;

#[cfg(target_family = "wasm")]
mod cancel;
#[cfg(target_family = "wasm")]
mod columns;
#[cfg(target_family = "wasm")]
mod failure;
#[cfg(target_family = "wasm")]
mod host;
#[cfg(target_family = "wasm")]
mod reading;
#[cfg(target_family = "wasm")]
mod session;
