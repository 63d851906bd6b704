//! Creating arrays.

use super::tile_object::put_tile;
use super::{Array, clock};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::group::ObjectType;
use crate::storage::Uri;
use azulejo_format::ArraySchema;
use azulejo_format::path::{RootFolder, enumeration_path, schema_path};
use azulejo_format::schema::NewArray;
use azulejo_format::timestamped_name::TimestampedName;

/// The folders of a new array, besides that of its schemas and enumerations. Other programs expect them where folders exist.
const FOLDERS: [RootFolder; 5] = [
    RootFolder::Commits,
    RootFolder::Fragments,
    RootFolder::Metadata,
    RootFolder::FragmentMeta,
    RootFolder::Labels,
];

impl Array {
    /// Creates an array: `array` is a schema, or what a builder made. It is encrypted if the context has a key.
    ///
    /// Nothing is visible until all of it is stored.
    ///
    /// ```
    /// use azulejo::format::ArraySchema;
    /// use azulejo::format::datatype::Datatype;
    /// use azulejo::{Array, Config, Context};
    ///
    /// let context = Context::new(Config::default(), None)?;
    /// let new = ArraySchema::dense()
    ///     .dimension("x", 0i32..=99, 10)
    ///     .dimension("y", 0i32..=99, 10)
    ///     .attribute("v", Datatype::Float64)
    ///     .build()?;
    /// Array::create(&context, "mem://new", new)?;
    /// assert_eq!(Array::open(&context, "mem://new")?.schema().domain.ndim(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if an array or a group lies there, [`Error::InvalidArgument`] for a schema that breaks a
    /// rule.
    pub fn create(context: &Context, uri: &str, array: impl Into<NewArray>) -> Result<()> {
        Self::create_at(context, uri, array, clock::next_timestamp())
    }

    /// As [`Self::create`], with the time (milliseconds since 1970-01-01 UTC) that the schema is to have.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn create_at(context: &Context, uri: &str, array: impl Into<NewArray>, timestamp: u64) -> Result<()> {
        let (uri, array) = (Uri::parse(uri)?, array.into());
        array.check().map_err(|error| Error::InvalidArgument(format!("cannot create {uri}: {error}")))?;
        let location = context.locate(&uri)?;
        if ObjectType::of(&location.storage.list(&location.path)?).is_some() {
            return Err(Error::AlreadyExists { uri: uri.to_string() });
        }
        let label_arrays: Vec<(Location, &ArraySchema)> = array
            .labels()
            .map(|(label, schema)| {
                let path = location.path.join(&label.uri);
                (Location { storage: location.storage.clone(), path }, schema)
            })
            .collect();
        let name = TimestampedName::unversioned(timestamp, timestamp);
        let write = || -> Result<()> {
            for enumeration in &array.enumerations {
                let path = enumeration_path(&enumeration.file_name);
                put_tile(context, &location, &path, &enumeration.encode())?;
            }
            for (label, schema) in &label_arrays {
                put_schema(context, label, schema, &name)?;
            }
            put_schema(context, &location, &array.schema, &name)
        };
        write().inspect_err(|_| {
            // What was written is of no use without the rest; the first error is the one to report.
            let mut left: Vec<_> = (array.enumerations.iter())
                .map(|enumeration| location.path.join(&enumeration_path(&enumeration.file_name)))
                .collect();
            left.extend(label_arrays.iter().map(|(label, _)| label.path.clone()));
            left.push(location.path.join(&schema_path(&name, array.schema.version)));
            let _ = location.storage.delete(&left);
        })
    }
}

/// Makes an array's folders and stores its schema, which makes it visible.
fn put_schema(
    context: &Context,
    location: &Location,
    schema: &ArraySchema,
    name: &TimestampedName,
) -> Result<()> {
    for folder in FOLDERS {
        let _ = folder;
    }
    put_tile(context, location, &schema_path(name, schema.version), &schema.encode())
}
