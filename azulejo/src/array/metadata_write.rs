//! Writing key-values of arrays and groups: one file a commit.

use super::head::Head;
use super::tile_object::{gone, is_still_there, put_tile_if_there};
use super::{ArrayHandle, Snapshot};
use crate::clock;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::object_type::ObjectType;
use azulejo_format::Datatype;
use azulejo_format::metadata::{MetadataEntry, MetadataValue, encode};
use azulejo_format::path::{RootFolder, metadata_path};
use azulejo_format::timestamped_name::TimestampedName;
use std::collections::BTreeMap;

/// Changes to the key-values of an array or group. They are written together by [`Self::commit`];
/// dropped, they are forgotten.
#[derive(Debug)]
#[must_use]
pub struct MetadataWriter {
    context: Context,
    location: Location,
    /// The file name of a schema of the array.
    schema: Option<String>,
    timestamp: Option<u64>,
    changes: BTreeMap<String, Option<MetadataValue>>,
}

impl MetadataWriter {
    /// A writer for an object that is known to be there, and to have the context's key; an array has
    /// a schema of this file name.
    pub(crate) fn new(context: &Context, location: Location, schema: Option<String>) -> Self {
        Self {
            context: context.clone(),
            location,
            schema,
            timestamp: None,
            changes: BTreeMap::new(),
        }
    }

    /// Gives the changes a time (milliseconds since 1970-01-01 UTC) other than that of the commit.
    pub fn at(mut self, timestamp: u64) -> Self {
        self.timestamp = Some(timestamp);
        self
    }

    /// Sets a key, whatever it was.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a value of type ANY, bytes that are not a whole number of
    /// values, and lengths that do not fit in 32 bits.
    pub fn put(&mut self, key: impl Into<String>, value: MetadataValue) -> Result<&mut Self> {
        let key = key.into();
        let refuse = |reason: &str| {
            Err(Error::InvalidArgument(format!(
                "metadata {key:?}: {reason}"
            )))
        };
        if value.datatype == Datatype::Any {
            return refuse("a value cannot be of type ANY");
        }
        if !value.data.len().is_multiple_of(value.datatype.size()) {
            return refuse("its bytes are not a whole number of values");
        }
        if u32::try_from(value.count()).is_err() || u32::try_from(key.len()).is_err() {
            return refuse("it is too long");
        }
        self.changes.insert(key, Some(value));
        Ok(self)
    }

    /// Removes a key; one that is not there is no error.
    pub fn remove(&mut self, key: impl Into<String>) -> &mut Self {
        self.changes.insert(key.into(), None);
        self
    }

    /// Writes the changes as one file; without changes nothing is written. Then there are none
    /// left; after an error they are, and can be committed again.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the array or group was deleted or moved meanwhile,
    /// [`Error::Storage`].
    pub fn commit(&mut self) -> Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let changes = self.changes.clone().into_iter();
        let entries: Vec<MetadataEntry> = changes
            .map(|(key, value)| MetadataEntry { key, value })
            .collect();
        let time = self.timestamp.unwrap_or_else(clock::next_timestamp);
        let storage = &self.location.storage;
        let schema = self.schema.as_deref();
        // No folder is made where it was.
        if schema.is_some() && !is_still_there(&self.location, schema)? {
            return Err(gone(&self.location));
        }
        storage.make_folder(&self.location.path.join(RootFolder::Metadata.name()))?;
        let path = metadata_path(&TimestampedName::unversioned(time, time));
        put_tile_if_there(
            &self.context,
            &self.location,
            schema,
            &path,
            &encode(&entries),
        )?;
        self.changes.clear();
        Ok(())
    }
}

impl Snapshot {
    /// Begins to change this array's key-values.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it was deleted meanwhile, [`Error::InvalidArgument`] if it was opened by
    /// the name of a moment.
    pub fn change_metadata(&self) -> Result<MetadataWriter> {
        self.refuse_moment()?;
        if ObjectType::at(self.location())?.is_none() {
            return Err(Error::NotFound {
                uri: self.uri().to_string(),
                what: "an array",
            });
        }
        Ok(MetadataWriter::new(
            self.context(),
            self.location().clone(),
            Some(self.schema_name().to_owned()),
        ))
    }
}

impl ArrayHandle {
    /// Begins to change an array's key-values.
    ///
    /// ```
    /// # use azulejo::format::{ArraySchema, Datatype};
    /// # use azulejo::format::metadata::MetadataValue;
    /// # use azulejo::{Config, Context};
    /// # let context = Context::new(Config::default(), None)?;
    /// # let new = ArraySchema::sparse().dimension("x", 0i32..=9, 10).build()?;
    /// # context.array("mem://a").create(new)?;
    /// let mut changes = context.array("mem://a").change_metadata()?;
    /// changes.put("unit", MetadataValue::new(Datatype::StringUtf8, "mm"))?;
    /// changes.remove("draft").commit()?;
    /// assert_eq!(context.array("mem://a").open()?.metadata()?["unit"].as_text(), Some("mm"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no array, [`Error::Encryption`] for a missing, wrong or
    /// unneeded key.
    pub fn change_metadata(&self) -> Result<MetadataWriter> {
        let head = Head::open(&self.context, &self.uri)?;
        let schema = head.schema_file();
        Ok(MetadataWriter::new(
            &self.context,
            head.location,
            Some(schema),
        ))
    }
}
