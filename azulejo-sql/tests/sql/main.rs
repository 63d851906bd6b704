//! SQL on arrays.

mod at_once;
mod attacks;
mod corpus;
#[cfg(feature = "distributed")]
mod distributed;
mod documentation;
mod edges;
#[cfg(feature = "flight-sql")]
mod flight_sql;
mod io_plan;
mod keys;
mod lists;
mod mytile;
/// The packed fixtures of the engine's tests.
#[path = "../../../azulejo/tests/support/pack.rs"]
mod pack;
mod random_sql;
mod support;
mod tables;
mod types;
mod writing;
