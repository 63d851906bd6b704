//! The schemas of an array: those of its fragments, those that deletes mean, and which labels of them
//! differ.

use super::DeleteCommit;
use super::directory::sort_schemas;
use super::objects::{generic_tile, read_objects_as};
use super::relabel::{Relabelled, relabelled};
use crate::condition::{BoundCondition, FieldRef};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::Waiting;
use azulejo_format::path::{LEGACY_SCHEMA_FILE, enumeration_path};
use azulejo_format::schema::Enumeration;
use azulejo_format::timestamped_name::TimestampedName;
use azulejo_format::{ArraySchema, DecodeError};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// What an error is about where a fragment names a schema that was not listed.
pub(super) const SCHEMA_OF_A_FRAGMENT: &str = "fragment schema name";

/// The schemas of an array.
#[derive(Debug)]
pub(super) struct Schemas {
    /// By file name.
    pub all: BTreeMap<String, Arc<ArraySchema>>,
    /// The one that counts.
    pub latest: Arc<ArraySchema>,
    /// File name of the one that counts.
    pub latest_name: String,
    /// Attributes whose labels were others than those of the one that counts, of each schema that has
    /// such.
    relabelled: Vec<Relabelled>,
    /// The files of labels of which it may be that the earlier begin the later, which was not looked at.
    unlike: BTreeSet<(String, String)>,
    /// Of each other schema that deletes by labels mean the schemas that have other labels than it.
    earlier: Vec<(Arc<ArraySchema>, Vec<Relabelled>)>,
}

impl Schemas {
    /// The schemas of an array, one of which counts.
    pub(super) fn new(
        all: BTreeMap<String, Arc<ArraySchema>>,
        latest: Arc<ArraySchema>,
        latest_name: String,
    ) -> Self {
        let mut unlike = BTreeSet::new();
        let mut ask = |then: &str, now: &str| {
            unlike.insert((then.to_owned(), now.to_owned()));
            false
        };
        Self {
            relabelled: relabelled(&all, &latest_name, &mut ask),
            unlike,
            earlier: Vec::new(),
            latest,
            latest_name,
            all,
        }
    }

    /// Takes those labels for the same that begin those of the schema that counts, or of one that a
    /// delete means, which a look at them tells: few arrays have any to be looked at.
    pub(super) async fn compare_labels(
        &mut self,
        context: &Context,
        location: &Location,
        deletes: &[DeleteCommit],
        waiting: Waiting,
    ) -> Result<()> {
        let meant = self.meant_by(deletes);
        let mut pairs = std::mem::take(&mut self.unlike);
        if meant.is_empty() && pairs.is_empty() {
            return Ok(());
        }
        for name in &meant {
            let mut ask = |then: &str, now: &str| {
                pairs.insert((then.to_owned(), now.to_owned()));
                false
            };
            relabelled(&self.all, name, &mut ask);
        }
        let same = match pairs.is_empty() {
            true => HashSet::new(),
            false => labels_that_begin(context, location, &pairs, waiting).await?,
        };
        let mut extends = |then: &str, now: &str| {
            let pair = (then.to_owned(), now.to_owned());
            same.contains(&pair)
        };
        let earlier = meant.iter().filter_map(|name| {
            let others = relabelled(&self.all, name, &mut extends);
            Some((Arc::clone(self.all.get(name)?), others))
        });
        let earlier = earlier.collect();
        self.relabelled = relabelled(&self.all, &self.latest_name, &mut extends);
        self.earlier = earlier;
        Ok(())
    }

    /// The file names of the schemas before the one that counts, or after it, that deletes mean which
    /// test what has labels in any of them.
    fn meant_by(&self, deletes: &[DeleteCommit]) -> BTreeSet<String> {
        if self.all.len() < 2 || deletes.is_empty() {
            return BTreeSet::new();
        }
        let attributes = self.all.values().flat_map(|schema| &schema.attributes);
        let labelled = attributes.filter(|attribute| attribute.enumeration.is_some());
        let labelled: HashSet<&str> = labelled.map(|attribute| attribute.name.as_str()).collect();
        let is_labelled = |field: &&FieldRef| labelled.contains(field.name.as_str());
        let meant: HashSet<*const ArraySchema> = deletes
            .iter()
            .filter(|delete| delete.kept.fields().iter().any(is_labelled))
            .filter_map(|delete| self.meant(delete))
            .map(|(schema, _)| Arc::as_ptr(schema))
            .collect();
        let others = self.all.iter().filter(|(name, schema)| {
            **name != self.latest_name && meant.contains(&Arc::as_ptr(schema))
        });
        others.map(|(name, _)| name.clone()).collect()
    }

    /// The schema that a delete means, and the delete as it means it: a delete means the fields that
    /// the array had when it was written, which may have been dropped since, or replaced by others of
    /// the same names. At times of their own choice programs delete by fields that came later.
    pub(super) fn meant(
        &self,
        delete: &DeleteCommit,
    ) -> Option<(&Arc<ArraySchema>, BoundCondition)> {
        // What is stored are the numbers of labels.
        let enumerations = |name: &str| {
            let text = format!("the labels {name:?} of a delete that was stored");
            Err(Error::Internal(text))
        };
        self.around(delete.timestamp).find_map(|schema| {
            let bound = BoundCondition::bind(&delete.kept, schema, &enumerations);
            Some((schema, bound.ok()?))
        })
    }

    /// All schemas: the one that was the latest at a time, those before it, newest first, then
    /// those after it, oldest first.
    pub(super) fn around(&self, time: u64) -> impl Iterator<Item = &Arc<ArraySchema>> {
        let named = self
            .all
            .iter()
            .filter_map(|(name, schema)| Some((TimestampedName::parse(name).ok()?, schema)));
        let mut named: Vec<_> = named.collect();
        sort_schemas(&mut named, |(name, _)| name);
        let legacy = self.all.get(LEGACY_SCHEMA_FILE);
        let then = named
            .iter()
            .rposition(|(name, _)| name.t_end <= time)
            .map_or(0, |at| at + 1);
        let after = named.split_off(then).into_iter().map(|(_, schema)| schema);
        named
            .into_iter()
            .rev()
            .map(|(_, schema)| schema)
            .chain(legacy)
            .chain(after)
    }

    /// The attributes of a schema whose labels are others than in another one, which counts or is meant
    /// by a delete. Both are of [`Self::all`], not equal ones of another look at the array.
    pub(super) fn relabelled_beside(
        &self,
        schema: &Arc<ArraySchema>,
        other: &Arc<ArraySchema>,
    ) -> Arc<[String]> {
        if Arc::ptr_eq(other, &self.latest) {
            return self.relabelled(schema);
        }
        let mut earlier = self.earlier.iter();
        let beside = earlier.find(|(of, _)| Arc::ptr_eq(of, other));
        let mut beside = beside.into_iter().flat_map(|(_, list)| list);
        let found = beside.find(|(of, _)| Arc::ptr_eq(of, schema));
        found
            .map(|(_, others)| Arc::clone(others))
            .unwrap_or_default()
    }

    /// The attributes of a schema whose labels were others.
    pub(super) fn relabelled(&self, schema: &Arc<ArraySchema>) -> Arc<[String]> {
        let mut known = self.relabelled.iter();
        let known = known.find(|(of, _)| Arc::ptr_eq(of, schema));
        match known {
            Some((_, others)) => Arc::clone(others),
            None => Arc::default(),
        }
    }

    /// The schema that a footer names.
    pub(super) fn named(&self, name: &str) -> Result<Arc<ArraySchema>, DecodeError> {
        self.all.get(name).cloned().ok_or_else(|| {
            DecodeError::invalid(
                SCHEMA_OF_A_FRAGMENT,
                0,
                format!("the array has no schema {name:?}"),
            )
        })
    }

    /// The schema of fragments below format version 10, which name none.
    pub(super) fn legacy(&self) -> Option<&ArraySchema> {
        legacy_schema(&self.all)
    }
}

/// Of pairs of files of labels those of which the first begins the second.
async fn labels_that_begin(
    context: &Context,
    location: &Location,
    pairs: &BTreeSet<(String, String)>,
    waiting: Waiting,
) -> Result<HashSet<(String, String)>> {
    let files: BTreeSet<&String> = pairs.iter().flat_map(|(a, b)| [a, b]).collect();
    let paths: Vec<String> = files.iter().map(|file| enumeration_path(file)).collect();
    let wanted = paths.iter().map(String::as_str);
    let mut read: Vec<Option<Bytes>> = Vec::with_capacity(paths.len());
    match read_objects_as(context, location, wanted, waiting).await {
        Ok(all) => read.extend(all.into_iter().map(Some)),
        Err(Error::NotFound { .. }) => {
            for path in &paths {
                let one = [path.as_str()].into_iter();
                read.push(
                    match read_objects_as(context, location, one, waiting).await {
                        Ok(one) => one.into_iter().next(),
                        // Labels that are gone are not those of now; who asks for these hears of it.
                        Err(Error::NotFound { .. }) => None,
                        Err(error) => return Err(error),
                    },
                );
            }
        }
        // Whether they are the same nobody can tell then, and either might be wrong.
        Err(error) => return Err(error),
    }
    let mut known = HashMap::new();
    for ((file, path), bytes) in files.iter().zip(&paths).zip(&read) {
        let Some(bytes) = bytes else {
            continue;
        };
        // Those that are damaged are not taken for the same; who asks for them hears of it.
        let payload = generic_tile(context, location, path, bytes);
        if let Some(labels) = payload.ok().and_then(|p| Enumeration::decode(&p).ok()) {
            known.insert(file.as_str(), labels);
        }
    }
    let begins = |(then, now): &&(String, String)| {
        let both = known.get(then.as_str()).zip(known.get(now.as_str()));
        both.is_some_and(|(then, now)| now.values_begin_with(then))
    };
    Ok(pairs.iter().filter(begins).cloned().collect())
}

/// The schema of fragments below format version 10, which name none.
pub(crate) fn legacy_schema(schemas: &BTreeMap<String, Arc<ArraySchema>>) -> Option<&ArraySchema> {
    schemas.get(LEGACY_SCHEMA_FILE).map(|schema| &**schema)
}
