//! What there is: catalogs, schemas, tables, keys, types, and what the server can do.

use super::Limits;
use super::session::SharedSession;
use crate::error::Result as SqlResult;
use crate::table::ArrayTable;
use arrow_flight::sql::metadata::{
    SqlInfoData, SqlInfoDataBuilder, XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder,
};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetPrimaryKeys, CommandGetTables, Nullable,
    Searchable, SqlInfo, SqlSupportedTransaction, XdbcDataType,
};
use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::DataFusionError;
use std::sync::Arc;
use tonic::Status;

/// The only type of tables.
pub const TABLE: &str = "TABLE";
/// The schema that DataFusion adds to each catalog.
const INFORMATION_SCHEMA: &str = "information_schema";

/// What clients ask about.
pub struct Metadata {
    session: SharedSession,
    /// What the server can do.
    pub info: SqlInfoData,
    /// The types of columns.
    pub types: XdbcTypeInfoData,
}

/// A table by the names of where it is.
#[derive(Clone)]
struct Place {
    catalog: String,
    schema: String,
    table: String,
    provider: Arc<dyn SchemaProvider>,
}

/// A column of a table's key, numbered from 1.
struct KeyColumn {
    place: Place,
    name: String,
    number: i32,
}

impl Metadata {
    pub fn new(session: SharedSession, writable: bool, limits: Limits) -> SqlResult<Self> {
        let external = |error| DataFusionError::External(Box::new(error));
        Ok(Self {
            session,
            info: info(writable, limits).build().map_err(external)?,
            types: types().build().map_err(external)?,
        })
    }

    pub fn catalogs(&self, query: CommandGetCatalogs) -> Result<RecordBatch, Status> {
        let mut catalogs = query.into_builder();
        for name in self.session.catalog_names() {
            catalogs.append(name);
        }
        Ok(catalogs.build()?)
    }

    pub fn schemas(&self, query: CommandGetDbSchemas) -> Result<RecordBatch, Status> {
        let mut schemas = query.into_builder();
        for catalog in self.session.catalog_names() {
            for schema in self.schema_names(&catalog) {
                schemas.append(&catalog, schema);
            }
        }
        Ok(schemas.build()?)
    }

    /// The tables, with their schemas as they are sent if they are asked for. A table that does not
    /// open is listed without columns, so that one that is damaged does not hide the others.
    pub async fn tables(
        &self,
        query: CommandGetTables,
        sent: &(dyn Fn(&SchemaRef) -> SchemaRef + Sync),
    ) -> Result<RecordBatch, Status> {
        let named = query.table_name_filter_pattern.clone();
        let with_columns = query.include_schema;
        // Of patterns without signs only the very table is opened.
        let wanted = |place: &Place| match &named {
            Some(name) if !name.contains(['%', '_']) => place.table == *name,
            _ => true,
        };
        let mut tables = query.into_builder();
        for place in self.places().into_iter().filter(wanted) {
            let mut columns = Arc::new(Schema::empty());
            if with_columns && let Ok(Some(table)) = place.provider.table(&place.table).await {
                columns = sent(&table.schema());
            }
            tables.append(&place.catalog, &place.schema, &place.table, TABLE, &columns)?;
        }
        Ok(tables.build()?)
    }

    /// The dimensions of an array without duplicates.
    pub async fn primary_keys(&self, query: CommandGetPrimaryKeys) -> Result<RecordBatch, Status> {
        let fits =
            |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|w| w == name);
        let mut found: Vec<KeyColumn> = Vec::new();
        for place in self.places() {
            let asked = place.table == query.table
                && fits(&query.catalog, &place.catalog)
                && fits(&query.db_schema, &place.schema);
            if !asked {
                continue;
            }
            let table = place.provider.table(&place.table).await;
            let table = table.map_err(|error| super::running::status(&error))?;
            let keys = table.iter().flat_map(key_of).zip(1..);
            found.extend(keys.map(|(name, number)| KeyColumn {
                place: place.clone(),
                name,
                number,
            }));
        }
        let text = |of: &dyn Fn(&KeyColumn) -> Option<String>| -> ArrayRef {
            Arc::new(StringArray::from_iter(found.iter().map(of)))
        };
        let columns = vec![
            text(&|key| Some(key.place.catalog.clone())),
            text(&|key| Some(key.place.schema.clone())),
            text(&|key| Some(key.place.table.clone())),
            text(&|key| Some(key.name.clone())),
            text(&|_| None),
            Arc::new(Int32Array::from_iter_values(
                found.iter().map(|key| key.number),
            )) as ArrayRef,
        ];
        let batch = RecordBatch::try_new(primary_key_schema(), columns);
        batch.map_err(|error| Status::internal(error.to_string()))
    }

    fn schema_names(&self, catalog: &str) -> Vec<String> {
        let catalog = self.session.catalog(catalog);
        let names = catalog.map(|catalog| catalog.schema_names());
        let mut names = names.unwrap_or_default();
        names.retain(|name| name != INFORMATION_SCHEMA);
        names
    }

    fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for catalog in self.session.catalog_names() {
            for schema in self.schema_names(&catalog) {
                let provider = self.session.catalog(&catalog);
                let Some(provider) = provider.and_then(|found| found.schema(&schema)) else {
                    continue;
                };
                places.extend(provider.table_names().into_iter().map(|table| Place {
                    catalog: catalog.clone(),
                    schema: schema.clone(),
                    table,
                    provider: Arc::clone(&provider),
                }));
            }
        }
        places
    }
}

/// The columns of a table's key, in their order.
fn key_of(table: &Arc<dyn TableProvider>) -> Vec<String> {
    let schema = table.schema();
    let table = table.downcast_ref::<ArrayTable>();
    let key = table.map(ArrayTable::key).unwrap_or_default().iter();
    let columns = key.filter_map(|&column| schema.fields().get(column));
    columns.map(|field| field.name().clone()).collect()
}

fn texts(names: &[(&str, bool)]) -> Vec<Field> {
    let field = |(name, nullable): &(&str, bool)| Field::new(*name, DataType::Utf8, *nullable);
    names.iter().map(field).collect()
}

/// What the protocol says that primary keys look like.
pub fn primary_key_schema() -> SchemaRef {
    let mut fields = texts(&[
        ("catalog_name", true),
        ("db_schema_name", true),
        ("table_name", false),
        ("column_name", false),
        ("key_name", true),
    ]);
    fields.push(Field::new("key_sequence", DataType::Int32, false));
    Arc::new(Schema::new(fields))
}

/// What the protocol says that foreign keys look like.
pub fn foreign_key_schema() -> SchemaRef {
    let mut fields = texts(&[
        ("pk_catalog_name", true),
        ("pk_db_schema_name", true),
        ("pk_table_name", false),
        ("pk_column_name", false),
        ("fk_catalog_name", true),
        ("fk_db_schema_name", true),
        ("fk_table_name", false),
        ("fk_column_name", false),
    ]);
    fields.push(Field::new("key_sequence", DataType::Int32, false));
    fields.extend(texts(&[("fk_key_name", true), ("pk_key_name", true)]));
    fields.push(Field::new("update_rule", DataType::UInt8, false));
    fields.push(Field::new("delete_rule", DataType::UInt8, false));
    Arc::new(Schema::new(fields))
}

/// Arrays have none.
pub fn foreign_keys() -> RecordBatch {
    RecordBatch::new_empty(foreign_key_schema())
}

fn info(writable: bool, limits: Limits) -> SqlInfoDataBuilder {
    let time = i32::try_from(limits.time.as_millis()).unwrap_or(i32::MAX);
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "Azulejo");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, "1.3");
    info.append(SqlInfo::FlightSqlServerReadOnly, !writable);
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    let none = SqlSupportedTransaction::None as i32;
    info.append(SqlInfo::FlightSqlServerTransaction, none);
    info.append(SqlInfo::FlightSqlServerCancel, false);
    info.append(SqlInfo::FlightSqlServerBulkIngestion, writable);
    info.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, false);
    info.append(SqlInfo::FlightSqlServerStatementTimeout, time);
    info.append(SqlInfo::SqlDdlCatalog, false);
    info.append(SqlInfo::SqlDdlSchema, false);
    info.append(SqlInfo::SqlDdlTable, false);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    info.append(SqlInfo::SqlTransactionsSupported, false);
    info
}

/// The types that arrays' columns have, by the names that SQL has for them.
fn types() -> XdbcTypeInfoDataBuilder {
    use XdbcDataType as X;
    let all: [(&str, X, Option<i32>, Option<bool>); 18] = [
        ("BOOLEAN", X::XdbcBit, Some(1), None),
        ("TINYINT", X::XdbcTinyint, Some(3), Some(false)),
        ("SMALLINT", X::XdbcSmallint, Some(5), Some(false)),
        ("INTEGER", X::XdbcInteger, Some(10), Some(false)),
        ("BIGINT", X::XdbcBigint, Some(19), Some(false)),
        ("TINYINT UNSIGNED", X::XdbcTinyint, Some(3), Some(true)),
        ("SMALLINT UNSIGNED", X::XdbcSmallint, Some(5), Some(true)),
        ("INTEGER UNSIGNED", X::XdbcInteger, Some(10), Some(true)),
        ("BIGINT UNSIGNED", X::XdbcBigint, Some(20), Some(true)),
        ("REAL", X::XdbcReal, Some(7), Some(false)),
        ("DOUBLE", X::XdbcDouble, Some(15), Some(false)),
        ("VARCHAR", X::XdbcVarchar, None, None),
        ("BYTEA", X::XdbcVarbinary, None, None),
        ("DATE", X::XdbcDate, Some(10), None),
        ("TIME", X::XdbcTime, Some(18), None),
        ("TIMESTAMP", X::XdbcTimestamp, Some(29), None),
        ("INTERVAL", X::XdbcInterval, None, None),
        ("DECIMAL", X::XdbcDecimal, Some(38), Some(false)),
    ];
    let mut types = XdbcTypeInfoDataBuilder::new();
    for (name, data_type, size, unsigned) in all {
        let quoted = matches!(data_type, X::XdbcVarchar).then(|| "'".to_owned());
        types.append(XdbcTypeInfo {
            type_name: name.to_owned(),
            data_type,
            column_size: size,
            literal_prefix: quoted.clone(),
            literal_suffix: quoted,
            create_params: None,
            nullable: Nullable::NullabilityNullable,
            case_sensitive: true,
            searchable: Searchable::Full,
            unsigned_attribute: unsigned,
            fixed_prec_scale: false,
            auto_increment: None,
            local_type_name: None,
            minimum_scale: None,
            maximum_scale: None,
            sql_data_type: data_type,
            datetime_subcode: None,
            num_prec_radix: unsigned.map(|_| 10),
            interval_precision: None,
        });
    }
    types
}
