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

/// What lies in a group or folder.
#[derive(Debug, Clone)]
struct Child {
    /// What the group calls it: the whole key of a member.
    key: String,
    uri: String,
    kind: ObjectType,
}

impl Child {
    /// What it is called in SQL where nothing else is called so.
    fn last_part(&self) -> &str {
        let key = self.key.trim_end_matches('/');
        key.rsplit('/').next().unwrap_or(key)
    }
}

/// The children of a kind by the names that tell them apart: the last parts of their keys, or, where
/// these are the same, their whole keys.
fn named(children: &[Child], kind: ObjectType) -> BTreeMap<String, &Child> {
    let all = || children.iter().filter(move |child| child.kind == kind);
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for child in all() {
        *times.entry(child.last_part()).or_default() += 1;
    }
    let name = |child: &Child| match times.get(child.last_part()) {
        Some(1) => child.last_part().to_owned(),
        _ => child.key.clone(),
    };
    all().map(|child| (name(child), child)).collect()
}

impl ArrayCatalog {
    /// The catalog of a group or folder: its arrays in the schema `public`, those of the groups and
    /// folders in it in schemas of their names. A member is called by the last part of its key, or,
    /// where another one's is the same, by the whole key.
    ///
    /// # Errors
    /// Errors of listing, and of reading groups; arrays beside a group that is called `public` (a mere
    /// folder of that name is left out).
    pub fn open(context: &Context, uri: &str, options: TableOptions) -> Result<Self> {
        let (own, mut folders) = children_and_folders(context, uri).map_err(external)?;
        let is_array = |child: &Child| child.kind == ObjectType::Array;
        let schema = |children: &[Child]| {
            let arrays = named(children, ObjectType::Array).into_iter();
            Arc::new(ArraySchemaProvider {
                context: context.clone(),
                options,
                arrays: arrays.map(|(name, of)| (name, of.uri.clone())).collect(),
            })
        };
        let mut schemas = BTreeMap::from([(OWN_SCHEMA.to_owned(), schema(&own))]);
        for (name, group) in named(&own, ObjectType::Group) {
            let inside = match folders.remove(&group.uri) {
                // Nobody has called it a schema, and the arrays beside it have that one.
                Some(_) if name == OWN_SCHEMA && own.iter().any(is_array) => continue,
                Some(inside) => inside,
                None => children(context, &group.uri).map_err(external)?,
            };
            let inside = schema(&inside);
            if let Some(hidden) = schemas.insert(name, inside)
                && let Some(array) = hidden.arrays.values().next()
            {
                return Err(DataFusionError::Plan(format!(
                    "{uri}: both {} and {array} would be in the schema {OWN_SCHEMA:?}: give the group another name",
                    group.uri
                )));
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

/// What lies in folders, by their URIs.
type Folders = BTreeMap<String, Vec<Child>>;

/// What lies in a group or folder, and in the mere folders among it: those in which arrays lie. Of a
/// group its members count, and nothing else.
fn children_and_folders(context: &Context, uri: &str) -> azulejo::Result<(Vec<Child>, Folders)> {
    let mut folders = Folders::new();
    if let Some(members) = members(context, uri)? {
        return Ok((members, folders));
    }
    let mut children = Vec::new();
    for entry in context.object(uri).walk(1)? {
        let entry = entry?;
        let kind = match entry.object_type {
            Some(kind) => kind,
            None => match listed(context, &entry.uri) {
                Ok(inside) if inside.iter().any(|of| of.kind == ObjectType::Array) => {
                    folders.insert(entry.uri.clone(), inside);
                    ObjectType::Group
                }
                // None of ours, or gone meanwhile.
                Ok(_) | Err(azulejo::Error::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            },
        };
        children.push(Child {
            key: entry.name,
            uri: entry.uri,
            kind,
        });
    }
    Ok((children, folders))
}

/// The arrays and groups in a group or folder.
fn children(context: &Context, uri: &str) -> azulejo::Result<Vec<Child>> {
    match members(context, uri)? {
        Some(members) => Ok(members),
        None => listed(context, uri),
    }
}

/// The members of a group; `None` where there is none.
fn members(context: &Context, uri: &str) -> azulejo::Result<Option<Vec<Child>>> {
    let group = match context.group(uri).open() {
        Ok(group) => group,
        Err(azulejo::Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut children = Vec::new();
    for member in group.members() {
        let kind = match member.object_type {
            Some(kind) => Some(kind),
            None => context.object(&member.location).object_type()?,
        };
        children.extend(kind.map(|kind| Child {
            key: member.key().to_owned(),
            uri: member.location.clone(),
            kind,
        }));
    }
    Ok(Some(children))
}

/// The arrays and groups that lie in a folder.
fn listed(context: &Context, uri: &str) -> azulejo::Result<Vec<Child>> {
    let entries = context.object(uri).list()?.into_iter();
    let children = entries.map(|entry| Child {
        key: entry.name,
        uri: entry.uri,
        kind: entry.object_type,
    });
    Ok(children.collect())
}
