//! Groups and folders as schemas: their arrays are the tables, the groups and folders in them
//! schemas of their own.

use crate::error::{Result, external, of_engine};
use crate::table::{ArrayTable, TableOptions, blocking};
use async_trait::async_trait;
use azulejo::Context;
use azulejo::group::ObjectType;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::TableType;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The schema of a catalog that holds the arrays which lie in the place itself.
pub const OWN_SCHEMA: &str = "public";

/// A group, or a folder with arrays and groups in it, as it was when it was opened.
#[derive(Debug)]
pub struct ArrayCatalog {
    schemas: BTreeMap<String, Arc<ArraySchemaProvider>>,
}

/// The arrays of a group or folder.
#[derive(Debug)]
pub struct ArraySchemaProvider {
    context: Context,
    options: TableOptions,
    /// Where each array lies, by name.
    arrays: BTreeMap<String, String>,
}

/// What lies in a group or folder: names, URIs and types.
type Children = Vec<(String, String, ObjectType)>;

impl ArrayCatalog {
    /// The catalog of a group or folder: its arrays in the schema `public`, those of the groups and
    /// folders in it in schemas of their names.
    ///
    /// # Errors
    /// Errors of listing, and of reading groups.
    pub fn open(context: &Context, uri: &str, options: TableOptions) -> Result<Self> {
        let children = children(context, uri).map_err(external)?;
        let schema = |children: &Children| {
            let array = |(name, uri, kind): &(String, String, ObjectType)| {
                (*kind == ObjectType::Array).then(|| (name.clone(), uri.clone()))
            };
            Arc::new(ArraySchemaProvider {
                context: context.clone(),
                options,
                arrays: children.iter().filter_map(array).collect(),
            })
        };
        let mut schemas = BTreeMap::from([(OWN_SCHEMA.to_owned(), schema(&children))]);
        for (name, uri, kind) in &children {
            if *kind == ObjectType::Group {
                let inside = self::children(context, uri).map_err(external)?;
                schemas.insert(name.clone(), schema(&inside));
            }
        }
        Ok(Self { schemas })
    }
}

impl CatalogProvider for ArrayCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.schemas.keys().cloned().collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let schema = self.schemas.get(name)?;
        Some(Arc::clone(schema) as Arc<dyn SchemaProvider>)
    }
}

#[async_trait]
impl SchemaProvider for ArraySchemaProvider {
    fn table_names(&self) -> Vec<String> {
        self.arrays.keys().cloned().collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let Some(uri) = self.arrays.get(name) else {
            return Ok(None);
        };
        let (place, options) = (self.context.array(uri), self.options);
        match blocking(move || Ok(ArrayTable::open(place, options))).await? {
            Ok(table) => Ok(Some(Arc::new(table))),
            // It has gone since the catalog was opened.
            Err(error) if matches!(of_engine(&error), Some(azulejo::Error::NotFound { .. })) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Without opening it: whoever lists tables need not be able to read all of them.
    async fn table_type(&self, name: &str) -> Result<Option<TableType>, DataFusionError> {
        Ok(self.table_exist(name).then_some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.arrays.contains_key(name)
    }
}

/// The arrays and groups in a group or folder.
fn children(context: &Context, uri: &str) -> azulejo::Result<Children> {
    match context.group(uri).open() {
        Ok(group) => {
            let mut children = Vec::new();
            for member in group.members() {
                let kind = match member.object_type {
                    Some(kind) => Some(kind),
                    None => context.object(&member.location).object_type()?,
                };
                let last = member.key().rsplit('/').next().unwrap_or_default();
                if let Some(kind) = kind {
                    children.push((last.to_owned(), member.location.clone(), kind));
                }
            }
            Ok(children)
        }
        Err(azulejo::Error::NotFound { .. }) => {
            let mut children = Vec::new();
            for entry in context.object(uri).list()? {
                children.push((entry.name, entry.uri, entry.object_type));
            }
            Ok(children)
        }
        Err(error) => Err(error),
    }
}
