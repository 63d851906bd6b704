//! Serialization: `tiledb_serialize_*`, `tiledb_deserialize_*` and the handlers of REST requests.
//!
//! `rest.capnp` says what messages look like; `message` writes and reads them, as Cap'n Proto or
//! as `json`. One file holds one message, both directions. What comes in is as hostile as what is
//! read from disk: see `message::decode`.

mod array;
mod condition;
mod current_domain;
mod domain;
mod enumeration;
mod evolution;
mod filter;
mod fragment;
mod group;
mod json;
mod memory;
mod message;
mod metadata;
mod query;
mod requests;
#[rustfmt::skip]
#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    missing_docs,
    unused_qualifications,
    reason = "made by capnpc: see rest.capnp"
)]
pub mod rest_capnp;
mod schema;
mod settings;
mod values;
mod words;

use crate::error::Result;
use crate::schema::SchemaContent;
use azulejo::array::Snapshot;

/// How the URIs of arrays begin that came with a message and lie nowhere.
pub const MESSAGE_SCHEME: &str = "azulejo-message://";

/// Opens an array in memory with the schemas of a message, of which `latest` names one.
pub fn in_memory(
    engine: &azulejo::Context,
    latest: &str,
    schemas: &[SchemaContent],
) -> Result<Snapshot> {
    memory::in_memory(engine, latest, schemas, memory::Files::default())
}
