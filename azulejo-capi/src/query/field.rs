//! `tiledb_query_field_t`: what a query knows of a field or an aggregate.

use super::channel::Channel;
use super::zipped;
use super::{QueryHandle, Shared};
use crate::boundary::{In, InOut, Kind, OK, Out, Ptr, Text, capi};
use crate::ctx::Context;
use crate::enums::datatype_id;
use crate::error::{Failure, Result};
use azulejo::column::ColumnType;
use azulejo_format::Datatype;
use azulejo_format::schema::FieldIndex;
use std::sync::Arc;

/// `tiledb_query_field_t`.
#[derive(Debug)]
pub struct QueryField {
    query: Arc<Shared>,
    origin: i32,
    column_type: ColumnType,
}

impl Kind for QueryField {
    const NAME: &'static str = "query_field";
}

const ATTRIBUTE: i32 = 0;
const DIMENSION: i32 = 1;
const AGGREGATE: i32 = 2;

fn find(query: &Arc<Shared>, name: &str) -> Result<(i32, ColumnType)> {
    let schema = query.schema();
    if name == "__timestamps" {
        return Ok((ATTRIBUTE, ColumnType::new(name, Datatype::UInt64)));
    }
    if name == zipped::NAME
        && zipped::possible(schema)
        && let Some(dimension) = schema.dimension(0)
    {
        return Ok((DIMENSION, ColumnType::new(name, dimension.datatype)));
    }
    if let Some(field) = schema.field(name) {
        let origin = if matches!(field, FieldIndex::Attribute(_)) {
            ATTRIBUTE
        } else {
            DIMENSION
        };
        let (datatype, num) = schema
            .type_of(field)
            .ok_or_else(|| Failure::new("a field without a type"))?;
        let mut column_type = ColumnType::new(name, datatype).with_cell_val_num(num);
        column_type.nullable = schema.is_nullable(field);
        return Ok((origin, column_type));
    }
    let state = query.state();
    let found = state
        .aggregates
        .iter()
        .find(|aggregate| aggregate.name == name);
    let found = found.ok_or_else(|| Failure::new(format!("There is no field {name}")))?;
    Ok((AGGREGATE, found.column_type.clone()))
}

capi! {
    /// What is known of a field or an aggregate of a query.
    fn tiledb_query_get_field(ctx, query: In<QueryHandle>, name: Text, field: Out<Ptr<QueryField>>) {
        let query = query.get()?.shared();
        let (origin, column_type) = find(&query, name.get()?)?;
        field.give(QueryField { query, origin, column_type })?;
    }

    /// The type of values.
    fn tiledb_field_datatype(ctx, field: In<QueryField>, id: Out<i32>) {
        id.set(datatype_id(field.get()?.column_type.datatype))?;
    }

    /// The number of values in a cell.
    fn tiledb_field_cell_val_num(ctx, field: In<QueryField>, num: Out<u32>) {
        num.set(field.get()?.column_type.cell_val_num.id())?;
    }

    /// Whether cells can be null.
    fn tiledb_field_get_nullable(ctx, field: In<QueryField>, nullable: Out<u8>) {
        nullable.set(field.get()?.column_type.nullable.into())?;
    }

    /// Attribute, dimension or aggregate.
    fn tiledb_field_origin(ctx, field: In<QueryField>, origin: Out<i32>) {
        origin.set(field.get()?.origin)?;
    }

    /// The channel that it comes through.
    fn tiledb_field_channel(ctx, field: In<QueryField>, channel: Out<Ptr<Channel>>) {
        channel.give(Channel::new(Arc::clone(&field.get()?.query)))?;
    }
}

/// Frees a field.
#[unsafe(no_mangle)]
pub extern "C" fn tiledb_query_field_free(ctx: In<Context>, field: InOut<Ptr<QueryField>>) -> i32 {
    let _ = ctx;
    field.free();
    OK
}
