//! Schemas and values as JSON, without loss.
//!
//! `docs/schema-json.md` describes the form. [`SchemaDocument`] is a schema with everything that an
//! array needs; [`value_json`] and [`value_from_json`] do the same for single values, such as fill
//! values and the entries of a metadata.

mod filter;
mod schema;
#[cfg(test)]
mod tests;
mod value;

pub use filter::{pipeline_json, webp_format_name};
pub use schema::{
    SchemaDocument, array_type_name, attribute_from_json, enumeration_from_json, layout_name,
    order_name, rectangle_json,
};
pub use value::{float_json, hex, number_json, unhex, value_from_json, value_json};
