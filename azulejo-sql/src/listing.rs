//! The tables of a session, seen through what also opens files by their URLs.
//!
//! DataFusion's own view opens every table where only names and kinds are asked for, so that one that
//! cannot be read hides all others, and passes on no `DROP SCHEMA`.

use crate::error::Result;
use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::logical_expr::TableType;
use datafusion::prelude::SessionContext;
use std::sync::Arc;

/// A session whose queries open files by their URLs.
pub fn with_urls(session: SessionContext) -> SessionContext {
    let named = Arc::clone(session.state().catalog_list());
    let session = session.enable_url_table();
    let with_urls = Arc::clone(session.state().catalog_list());
    session.register_catalog_list(Arc::new(Catalogs { named, with_urls }));
    session
}

/// The catalogs of a session.
#[derive(Debug)]
struct Catalogs {
    named: Arc<dyn CatalogProviderList>,
    with_urls: Arc<dyn CatalogProviderList>,
}

impl CatalogProviderList for Catalogs {
    fn register_catalog(
        &self,
        name: String,
        catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        self.named.register_catalog(name, catalog)
    }

    fn catalog_names(&self) -> Vec<String> {
        self.named.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        Some(Arc::new(Catalog {
            named: self.named.catalog(name)?,
            with_urls: self.with_urls.catalog(name)?,
        }))
    }
}

/// A catalog.
#[derive(Debug)]
struct Catalog {
    named: Arc<dyn CatalogProvider>,
    with_urls: Arc<dyn CatalogProvider>,
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        self.named.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        Some(Arc::new(Schema {
            named: self.named.schema(name)?,
            with_urls: self.with_urls.schema(name)?,
        }))
    }

    fn register_schema(
        &self,
        name: &str,
        schema: Arc<dyn SchemaProvider>,
    ) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.named.register_schema(name, schema)
    }

    fn deregister_schema(
        &self,
        name: &str,
        cascade: bool,
    ) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.named.deregister_schema(name, cascade)
    }
}

/// A schema.
#[derive(Debug)]
struct Schema {
    named: Arc<dyn SchemaProvider>,
    with_urls: Arc<dyn SchemaProvider>,
}

#[async_trait]
impl SchemaProvider for Schema {
    fn owner_name(&self) -> Option<&str> {
        self.named.owner_name()
    }

    fn table_names(&self) -> Vec<String> {
        self.named.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.with_urls.table(name).await
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        self.named.table_type(name).await
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        self.named.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.named.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.named.table_exist(name)
    }
}
