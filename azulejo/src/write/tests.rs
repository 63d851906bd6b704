//! What a writer refuses at once.

use super::{WriteOptions, Writer};
use crate::Context;
use crate::storage::Uri;
use azulejo_format::{ArraySchema, FormatVersion};
use std::sync::Arc;

#[test]
fn old_arrays_want_an_upgrade_first() {
    let context = Context::new(Default::default(), None).unwrap();
    let new = ArraySchema::sparse().dimension("x", 0i64..=99, 10).build();
    let mut schema = new.unwrap().schema;
    schema.version = FormatVersion::new(6, "schema").unwrap();
    let location = context.locate(&Uri::parse("mem://old").unwrap()).unwrap();
    let (schema, name) = (Arc::new(schema), "s".to_owned());
    let error = Writer::with_schema(&context, location, schema, name, WriteOptions::new());
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("version 6") && error.contains("upgrade"),
        "{error}"
    );
}
