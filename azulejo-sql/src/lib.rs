//! SQL on TileDB arrays: an array is a table of [DataFusion](https://docs.rs/datafusion)'s, its
//! dimensions and attributes are the columns, its cells the rows.
//!
#![cfg_attr(feature = "datafusion", doc = "```")]
#![cfg_attr(not(feature = "datafusion"), doc = "```ignore")]
//! # use azulejo::format::{ArraySchema, Datatype};
//! # use azulejo::{ColumnBuffers, ColumnSet, Config, Context, WriteOptions};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let context = Context::new(Config::default(), None)?;
//! let stations = context.array("mem://stations");
//! stations.create(
//!     ArraySchema::sparse()
//!         .dimension("id", 0i64..=9_999, 1_000)
//!         .attribute("height", Datatype::Float64)
//!         .build()?,
//! )?;
//! let mut writer = stations.writer(WriteOptions::new())?;
//! writer.write(&ColumnSet::of([
//!     ColumnBuffers::of_values("id", vec![7i64, 3]),
//!     ColumnBuffers::of_values("height", vec![2_956.0, 4.0]),
//! ])?)?;
//! writer.finish()?;
//!
//! let session = azulejo_sql::session(&context);
//! session.register_table("stations", azulejo_sql::table(&stations)?)?;
//! let high = session.sql("SELECT id FROM stations WHERE height > 1000").await?;
//! assert_eq!(high.count().await?, 1);
//! # Ok(())
//! # }
//! ```
//!
//! All of it stands behind the feature `datafusion`, as DataFusion takes longer to compile than all
//! else in the workspace.
//!
//! | file | what it does |
//! |---|---|
//! | `table` | the table: which filters it takes, how it is divided, what it is made of |
//! | `columns` | its columns, and how their values lie in the array |
//! | `filters`, `predicate`, `selection` | from `WHERE` to ranges of dimensions and conditions on cells |
//! | `scan`, `part_stream` | the plan's leaf, and what each of its partitions does |
//! | `statistics` | what plans may know before |
//! | `time_travel`, `metadata_tables` | tables as they were; what there is to know of an array |
//! | `external_table`, `catalog`, `functions`, `tile_rule` | `CREATE EXTERNAL TABLE`; groups and folders as catalogs; what arrays ask for |
//! | `write`, `write_dense`, `delete`, `delete_rows`, `change_rule`, `change` | `INSERT`, `UPDATE`, `DELETE`, `TRUNCATE` |
//! | `alter_table` | `ALTER TABLE`: attributes that come and go |
//! | `expressions` | how the rules for tiles and times go through the expressions of plans |
//! | `time_rule` | times beside moments of finer units, and of years that nanoseconds do not reach |
//! | `time_of_day` | spans that tables show as times of day |
//! | `aliased_delete` | `DELETE FROM t AS u` |
//! | `default_values`, `insert_query` | `DEFAULT` among the values of an `INSERT`; values within its query |
//! | `stored`, `prepared` | values that would become others where they are stored, or as parameters of `EXECUTE`: refused |
//! | `exact_rule` | whole numbers that changes compute: within their type |
//! | `forgotten` | clauses that are read and that plans would pass over: refused |
//! | `extremes`, `label_rule` | `min` and `max` of reals in groups; joins by labels that are numbers |
//! | `set_rule`, `membership_rule`, `set_operations` | `ANY` and `ALL`; `NOT IN` beside nulls; `EXCEPT ALL` |
//! | `listing` | tables beside files that are opened by their URLs |
//! | `target` | arrays that these name by their URIs |
//! | `table_key` | keys of single tables |
//! | `create_table`, `new_array` | `CREATE TABLE .. AS SELECT`, `COPY .. TO`: arrays made of rows; what options say of them |
//! | `distributed` | queries over many machines |
//! | `flight_sql` | tables for other programs, over Arrow Flight SQL |
//! | `foreign` | tables for the DataFusion of another library |
//! | `yield_rule`, `giving_up` | joins that can be cancelled; work that ends when nobody waits for it |
//! | `aggregate` | counts, sums, least and greatest values that the engine computes from metadata |
#![cfg(feature = "datafusion")]

mod aggregate;
mod aliased_delete;
mod alter_table;
mod catalog;
mod change;
mod change_rule;
mod columns;
mod create_table;
mod default_values;
mod delete;
mod delete_rows;
mod dialect;
#[cfg(feature = "distributed")]
pub mod distributed;
mod error;
mod exact_rule;
mod expressions;
mod external_table;
mod extremes;
mod filters;
#[cfg(feature = "flight-sql")]
pub mod flight_sql;
#[cfg(feature = "ffi")]
pub mod foreign;
mod forgotten;
mod functions;
mod giving_up;
mod innermost;
mod insert_query;
mod label_rule;
mod listing;
mod membership_rule;
mod metadata_tables;
mod new_array;
mod part_stream;
mod pieces;
mod predicate;
mod prepared;
mod scan;
mod selection;
mod session;
mod set_operations;
mod set_rule;
mod statistics;
mod stored;
mod table;
mod table_key;
mod target;
mod tile_rule;
mod time_of_day;
mod time_rule;
mod time_travel;
mod write;
mod write_dense;
mod yield_rule;

pub use aggregate::AggregateRule;
pub use catalog::{ArrayCatalog, ArraySchemaProvider, OWN_SCHEMA};
pub use change_rule::ChangeRule;
pub use external_table::ArrayTableFactory;
pub use scan::ArrayScan;
pub use session::{
    ends_statement, run, session, session_in, session_of_tables, session_with, sql, statements,
    statements_while,
};
pub use table::{ArrayTable, CellsAPartition, TableOptions};
pub use yield_rule::YieldRule;

use azulejo::ArrayHandle;
use std::sync::Arc;

/// The table of an array as it is when each query begins.
///
/// A session that is not one of [`session`]'s should set
/// `datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown` to false. Scans take filters while
/// they run, and those of DataFusion 55 for `min` and `max` leave out rows that `max(a), min(b + 1)`
/// and its like need.
///
/// # Errors
/// Those of opening the array.
pub fn table(place: &ArrayHandle) -> datafusion::error::Result<Arc<ArrayTable>> {
    Ok(Arc::new(ArrayTable::open(
        place.clone(),
        TableOptions::new(),
    )?))
}
