//! Groups and folders as schemas: their arrays are the tables, the groups and folders in them
//! schemas of their own.

use crate::error::{Result, external, of_engine};
use crate::table::{ArrayTable, TableOptions, blocking};
use async_trait::async_trait;
use azulejo::Context;
use azulejo::group::ObjectType;
use azulejo::storage::Uri;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::TableType;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;

/// The schema of a catalog that holds the arrays which lie in the place itself.
pub const OWN_SCHEMA: &str = "public";

/// How deep groups in groups are looked at. Whoever made some that lie in themselves has meant it
/// otherwise.
const DEPTH: usize = 16;

/// Groups that are read at the same time.
const AT_ONCE: usize = 16;

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
    /// The group or folder, where it could not be read: whoever asks for an array of it is told why.
    unread: Option<String>,
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
    /// folders in it in schemas of their names, and those of groups in groups in schemas with the names
    /// of both, a slash between them. A member is called by the last part of its key, or, where another
    /// one's is the same, by the whole key. A group that is met again further in is passed by there. One
    /// that cannot be read is a schema without tables; whoever asks for one of them is told the reason.
    ///
    /// # Errors
    /// Errors of reading the group or folder itself; arrays beside a group that is called `public` (a mere
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
                unread: None,
            })
        };
        let unreadable = |uri: String| {
            Arc::new(ArraySchemaProvider {
                context: context.clone(),
                options,
                arrays: BTreeMap::new(),
                unread: Some(uri),
            })
        };
        let mut schemas = BTreeMap::from([(OWN_SCHEMA.to_owned(), schema(&own))]);
        let mut level: Vec<(String, String, Vec<Child>)> = Vec::new();
        let mut unread: Vec<(String, String)> = Vec::new();
        for (name, group) in named(&own, ObjectType::Group) {
            match folders.remove(&group.uri) {
                // Nobody has called it a schema, and the arrays beside it have that one.
                Some(_) if name == OWN_SCHEMA && own.iter().any(is_array) => {}
                Some(inside) => level.push((name, group.uri.clone(), inside)),
                None => unread.push((name, group.uri.clone())),
            }
        }
        let mut seen = BTreeSet::from([whole(uri)]);
        seen.extend(level.iter().map(|(_, uri, _)| whole(uri)));
        seen.extend(unread.iter().map(|(_, uri)| whole(uri)));
        for _ in 0..DEPTH {
            let found = children_of_all(context, &unread);
            for ((name, uri), inside) in std::mem::take(&mut unread).into_iter().zip(found) {
                match inside {
                    Ok(inside) => level.push((name, uri, inside)),
                    // A member that is no longer there.
                    Err(azulejo::Error::NotFound { .. }) => {}
                    // It hides nothing that can be read.
                    Err(_) => {
                        schemas.entry(name).or_insert_with(|| unreadable(uri));
                    }
                }
            }
            for (name, place, inside) in std::mem::take(&mut level) {
                if let Some(hidden) = schemas.insert(name.clone(), schema(&inside))
                    && let Some(array) = hidden.arrays.values().next()
                {
                    return Err(DataFusionError::Plan(format!(
                        "{uri}: both {place} and {array} would be in the schema {name:?}: give the group another name",
                    )));
                }
                for (of, group) in named(&inside, ObjectType::Group) {
                    if seen.insert(whole(&group.uri)) {
                        unread.push((format!("{name}/{of}"), group.uri.clone()));
                    }
                }
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
            if let Some(unread) = self.unread.clone() {
                let context = self.context.clone();
                blocking(move || children(&context, &unread)).await?;
            }
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

/// A URI as all that name the same place have it.
fn whole(uri: &str) -> String {
    let parsed = Uri::parse(uri);
    parsed.map_or_else(
        |_| uri.trim_end_matches('/').to_owned(),
        |uri| uri.path().without_steps().to_string(),
    )
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
                // Whoever asks for what lies in it is told so.
                Err(_) => ObjectType::Group,
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

/// The arrays and groups in each of some groups or folders, by their URIs.
fn children_of_all(
    context: &Context,
    groups: &[(String, String)],
) -> Vec<azulejo::Result<Vec<Child>>> {
    let mut all = Vec::with_capacity(groups.len());
    for some in groups.chunks(AT_ONCE) {
        thread::scope(|scope| {
            let read = |(_, uri): &(String, String)| children(context, uri);
            let under_way = some.iter().map(|group| scope.spawn(move || read(group)));
            let under_way: Vec<_> = under_way.collect();
            all.extend(under_way.into_iter().map(|reading| {
                let read = reading.join();
                read.unwrap_or_else(|_| Err(azulejo::Error::Internal("a group is not read".into())))
            }));
        });
    }
    all
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
            // Whoever asks for it is told why nobody can tell what it is.
            None => {
                let object_type = context.object(&member.location).object_type();
                object_type.unwrap_or(Some(ObjectType::Array))
            }
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
