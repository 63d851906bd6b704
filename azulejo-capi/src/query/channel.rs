//! Channels and aggregates: `tiledb_query_channel_t`, `tiledb_channel_operator_t`,
//! `tiledb_channel_operation_t`.

use super::{QueryHandle, Shared};
use crate::boundary::{Handle, In, InOut, Kind, OK, Out, Ptr, Text, capi};
use crate::ctx::Context;
use crate::error::{Failure, Result};
use azulejo::column::{ColumnBuffers, ColumnBuilder, ColumnType};
use azulejo::read::aggregate::{Aggregate, AggregateValue};
use azulejo_format::schema::{ArraySchema, FieldIndex};
use azulejo_format::{CellValNum, Datatype, Physical};
use std::sync::Arc;

/// `tiledb_channel_operator_t`: what can be computed of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "named after the C objects")]
pub enum Operator {
    Sum,
    Mean,
    Min,
    Max,
    NullCount,
}

impl Kind for Operator {
    const NAME: &'static str = "channel_operator";
}

/// `tiledb_channel_operation_t`: what is to be computed.
#[derive(Debug, Clone)]
pub struct Operation {
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Count,
    Of(Operator, String),
}

impl Kind for Operation {
    const NAME: &'static str = "channel_operation";
}

/// `tiledb_query_channel_t`: the one channel of a query.
#[derive(Debug)]
pub struct Channel {
    query: Arc<Shared>,
}

impl Kind for Channel {
    const NAME: &'static str = "query_channel";
}

impl Channel {
    /// The channel of a query.
    pub fn new(query: Arc<Shared>) -> Self {
        Self { query }
    }
}

/// A pointer to what never changes or moves.
#[repr(transparent)]
#[derive(Debug)]
pub struct Fixed<T: 'static>(&'static Handle<T>);

impl<T> Clone for Fixed<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Fixed<T> {}

static SUM: Handle<Operator> = Handle::fixed(&Operator::Sum);
static MEAN: Handle<Operator> = Handle::fixed(&Operator::Mean);
static MIN: Handle<Operator> = Handle::fixed(&Operator::Min);
static MAX: Handle<Operator> = Handle::fixed(&Operator::Max);
static NULL_COUNT: Handle<Operator> = Handle::fixed(&Operator::NullCount);
static COUNT: Handle<Operation> = Handle::fixed(&Operation { what: What::Count });

/// Declares C's data symbols and the functions that give the same pointers.
macro_rules! fixed {
    ($($symbol:ident, $get:ident: $type:ty = $value:ident;)*) => {$(
        #[doc = "What `"]
        #[doc = stringify!($get)]
        #[doc = "` gives."]
        #[unsafe(no_mangle)]
        pub static $symbol: Fixed<$type> = Fixed(&$value);

        capi! {
            #[doc = "The operator or operation of that name."]
            fn $get(ctx, out: Out<Option<Fixed<$type>>>) { out.set(Some(Fixed(&$value)))?; }
        }
    )*};
}

fixed! {
    tiledb_channel_operator_sum, tiledb_channel_operator_sum_get: Operator = SUM;
    tiledb_channel_operator_mean, tiledb_channel_operator_mean_get: Operator = MEAN;
    tiledb_channel_operator_min, tiledb_channel_operator_min_get: Operator = MIN;
    tiledb_channel_operator_max, tiledb_channel_operator_max_get: Operator = MAX;
    tiledb_channel_operator_null_count, tiledb_channel_operator_null_count_get: Operator = NULL_COUNT;
    tiledb_aggregate_count, tiledb_aggregate_count_get: Operation = COUNT;
}

/// An aggregate that a query computes, and the name of its result.
#[derive(Debug, Clone)]
pub struct NamedAggregate {
    /// The name of the buffers that take it.
    pub name: String,
    /// What to compute.
    pub aggregate: Aggregate,
    /// What it comes as.
    pub column_type: ColumnType,
}

/// What an aggregate of a field comes as; the error says why the field has none.
fn result_type(schema: &ArraySchema, name: &str, what: &What) -> Result<(Aggregate, ColumnType)> {
    let number = |datatype| ColumnType::new(name, datatype);
    let What::Of(operator, field) = what else {
        return Ok((Aggregate::Count, number(Datatype::UInt64)));
    };
    let found = schema.field(field);
    let found = found.ok_or_else(|| {
        Failure::new(format!(
            "Cannot aggregate field '{field}'; the array has no such field"
        ))
    })?;
    let (datatype, num) = schema
        .type_of(found)
        .unwrap_or((Datatype::Any, CellValNum::Var));
    let nullable = matches!(found, FieldIndex::Attribute(_)) && schema.is_nullable(found);
    let text = datatype.is_string() || datatype == Datatype::Char;
    let one = num == CellValNum::ONE;
    let refuse = |why: &str| {
        Err(Failure::new(format!(
            "Cannot aggregate field '{field}'; {why}"
        )))
    };
    let mut result = match operator {
        Operator::NullCount if !nullable => {
            return refuse("NULL_COUNT aggregates must only be requested for nullable attributes.");
        }
        Operator::NullCount => {
            return Ok((
                Aggregate::NullCount(field.clone()),
                number(Datatype::UInt64),
            ));
        }
        Operator::Sum | Operator::Mean if text => {
            return refuse("SUM and MEAN aggregates are not supported for string fields.");
        }
        Operator::Sum | Operator::Mean if !one => {
            return refuse(
                "SUM and MEAN aggregates are not supported for attributes with cell_val_num greater than one.",
            );
        }
        Operator::Mean => number(Datatype::Float64),
        Operator::Sum => number(match datatype.physical() {
            Physical::F32 | Physical::F64 => Datatype::Float64,
            Physical::U8 | Physical::U16 | Physical::U32 | Physical::U64 => Datatype::UInt64,
            _ => Datatype::Int64,
        }),
        Operator::Min | Operator::Max if !one && !text => {
            return refuse(
                "MIN and MAX aggregates are not supported for attributes with cell_val_num greater than one.",
            );
        }
        Operator::Min | Operator::Max => number(datatype).with_cell_val_num(num),
    };
    result.nullable = nullable;
    let field = field.clone();
    let aggregate = match operator {
        Operator::Sum => Aggregate::Sum(field),
        Operator::Mean => Aggregate::Mean(field),
        Operator::Min => Aggregate::Min(field),
        Operator::Max => Aggregate::Max(field),
        Operator::NullCount => Aggregate::NullCount(field),
    };
    Ok((aggregate, result))
}

/// Words for what is computed, as messages have them.
const WORDS: [(Operator, &str); 5] = [
    (Operator::Sum, "SUM"),
    (Operator::Mean, "MEAN"),
    (Operator::Min, "MIN"),
    (Operator::Max, "MAX"),
    (Operator::NullCount, "NULL_COUNT"),
];

impl NamedAggregate {
    /// The word for what is computed, and the field that it is of.
    pub fn words(&self) -> (&'static str, Option<&str>) {
        match &self.aggregate {
            Aggregate::Count => ("COUNT", None),
            Aggregate::Sum(field) => ("SUM", Some(field)),
            Aggregate::Mean(field) => ("MEAN", Some(field)),
            Aggregate::Min(field) => ("MIN", Some(field)),
            Aggregate::Max(field) => ("MAX", Some(field)),
            Aggregate::NullCount(field) => ("NULL_COUNT", Some(field)),
            _ => ("", None),
        }
    }

    /// The aggregate that a message names.
    pub fn of_words(
        schema: &ArraySchema,
        name: &str,
        word: &str,
        field: Option<&str>,
    ) -> Result<Self> {
        let operator = WORDS.iter().find(|(_, known)| *known == word);
        let what = match (word, operator, field) {
            ("COUNT", _, _) => What::Count,
            (_, Some((operator, _)), Some(field)) => What::Of(*operator, field.to_owned()),
            _ => {
                return Err(Failure::new(format!(
                    "Cannot deserialize; {word:?} is no aggregate"
                )));
            }
        };
        let (aggregate, column_type) = result_type(schema, name, &what)?;
        Ok(Self {
            name: name.into(),
            aggregate,
            column_type,
        })
    }
}

/// The column of one cell that an aggregate's value makes.
pub fn to_column(aggregate: &NamedAggregate, value: &AggregateValue) -> ColumnBuffers {
    let mut column = ColumnBuilder::new(aggregate.column_type.clone());
    let real = aggregate.column_type.datatype == Datatype::Float64;
    let (bytes, valid) = match value {
        AggregateValue::Unsigned(value) => (value.to_le_bytes().to_vec(), true),
        AggregateValue::Signed(value) => (value.to_le_bytes().to_vec(), true),
        AggregateValue::Real(value) => (value.to_le_bytes().to_vec(), true),
        AggregateValue::Cell { bytes, .. } => (bytes.clone(), true),
        // Without a value the reference leaves 0 (reals: NaN for a mean of nothing).
        _ => {
            let mean = matches!(aggregate.aggregate, Aggregate::Mean(_));
            let zero = if mean && real && !aggregate.column_type.nullable {
                f64::NAN.to_le_bytes().to_vec()
            } else {
                vec![0; aggregate.column_type.cell_size()]
            };
            (zero, false)
        }
    };
    column.append_cell(&bytes, valid);
    column.finish()
}

capi! {
    /// The channel that every cell of a query goes through.
    fn tiledb_query_get_default_channel(ctx, query: In<QueryHandle>, channel: Out<Ptr<Channel>>) {
        channel.give(Channel::new(query.get()?.shared()))?;
    }

    /// An aggregate of a field.
    fn tiledb_create_unary_aggregate(
        ctx, query: In<QueryHandle>, operator: In<Operator>, field: Text, operation: Out<Ptr<Operation>>
    ) {
        let query = query.get()?.shared();
        if query.state().is_started() {
            return Err("Cannot create aggregate; the query was submitted already".into());
        }
        let what = What::Of(*operator.get()?, field.get()?.to_owned());
        result_type(query.schema(), "", &what)?;
        operation.give(Operation { what })?;
    }

    /// Lets a query compute an aggregate; the result comes in buffers of this name.
    fn tiledb_channel_apply_aggregate(ctx, channel: In<Channel>, name: Text, operation: In<Operation>) {
        let (query, name) = (&channel.get()?.query, name.get()?);
        let (aggregate, column_type) = result_type(query.schema(), name, &operation.get()?.what)?;
        let mut state = query.state();
        if state.is_started() {
            return Err("Cannot apply aggregate; the query was submitted already".into());
        }
        if state.aggregates.iter().any(|other| other.name == name) {
            return Err(Failure::new(format!("Cannot apply aggregate; there is one of the name '{name}' already")));
        }
        state.aggregates.push(NamedAggregate { name: name.into(), aggregate, column_type });
    }
}

/// Frees an operation; the count, which is nobody's, is left alone.
#[unsafe(no_mangle)]
pub extern "C" fn tiledb_aggregate_free(ctx: In<Context>, operation: InOut<Ptr<Operation>>) -> i32 {
    let _ = ctx;
    if operation.get().is_ok_and(|pointer| !pointer.is(&COUNT)) {
        operation.free();
    }
    OK
}

/// Frees a channel.
#[unsafe(no_mangle)]
pub extern "C" fn tiledb_query_channel_free(ctx: In<Context>, channel: InOut<Ptr<Channel>>) -> i32 {
    let _ = ctx;
    channel.free();
    OK
}
