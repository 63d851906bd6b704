//! The tables of a session, seen through what also opens files by their URLs.
//!
//! DataFusion's own view opens every table where only names and kinds are asked for, so that one that
//! cannot be read hides all others, and passes on no `DROP SCHEMA`.

use crate::error::Result;
use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::TableReference;
use datafusion::logical_expr::TableType;
use datafusion::prelude::SessionContext;
use std::sync::{Arc, RwLock};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// A session whose queries open files by their URLs.
pub fn with_urls(session: SessionContext) -> SessionContext {
    let named = Arc::clone(session.state().catalog_list());
    let session = session.enable_url_table();
    let with_urls = Arc::clone(session.state().catalog_list());
    session.register_catalog_list(Arc::new(Catalogs {
        named,
        with_urls,
        replacing: Replacing::default(),
        altering: Arc::default(),
    }));
    session
}

/// Waits until no other statement of a session alters tables, and keeps others from it.
pub async fn altering(session: &SessionContext) -> Option<OwnedMutexGuard<()>> {
    let catalogs = Arc::clone(session.state().catalog_list());
    let altering = Arc::clone(&catalogs.downcast_ref::<Catalogs>()?.altering);
    Some(altering.lock_owned().await)
}

/// Puts a table in the place of another, of which no query finds none.
///
/// # Errors
/// That the schema takes no tables.
pub fn replace(
    session: &SessionContext,
    reference: &TableReference,
    table: Arc<dyn TableProvider>,
) -> Result<()> {
    let catalogs = Arc::clone(session.state().catalog_list());
    let ours = catalogs.downcast_ref::<Catalogs>();
    let _replacing = ours.map(|catalogs| catalogs.replacing.write());
    session.deregister_table(reference.clone())?;
    session.register_table(reference.clone(), table)?;
    Ok(())
}

/// Held while a table takes the place of another: schemas have no call that does both.
type Replacing = Arc<RwLock<()>>;

/// The catalogs of a session.
#[derive(Debug)]
struct Catalogs {
    named: Arc<dyn CatalogProviderList>,
    with_urls: Arc<dyn CatalogProviderList>,
    replacing: Replacing,
    altering: Arc<Mutex<()>>,
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
            replacing: Arc::clone(&self.replacing),
        }))
    }
}

/// A catalog.
#[derive(Debug)]
struct Catalog {
    named: Arc<dyn CatalogProvider>,
    with_urls: Arc<dyn CatalogProvider>,
    replacing: Replacing,
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        self.named.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        Some(Arc::new(Schema {
            named: self.named.schema(name)?,
            with_urls: self.with_urls.schema(name)?,
            replacing: Arc::clone(&self.replacing),
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
    replacing: Replacing,
}

#[async_trait]
impl SchemaProvider for Schema {
    fn owner_name(&self) -> Option<&str> {
        self.named.owner_name()
    }

    fn table_names(&self) -> Vec<String> {
        let _whole = self.replacing.read();
        self.named.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = self.named.table(name).await? {
            return Ok(Some(table));
        }
        // Another one may just be taking its place.
        drop(self.replacing.read());
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
        let _whole = self.replacing.read();
        self.named.table_exist(name)
    }
}
