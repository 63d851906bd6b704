//! Creating arrays.

use super::removal::{UNFINISHED_COPY, finish_deletion};
use super::tile_object::{clean_up_unseen, put_tile};
use super::{ArrayHandle, ArrayLock};
use crate::clock;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::object_type::ObjectType;
use crate::storage::{Entry, StorePath, Uri, is_temporary};
use azulejo_format::ArraySchema;
use azulejo_format::fragment::shared_file_name;
use azulejo_format::path::{
    ENUMERATIONS_FOLDER, LEGACY_SCHEMA_FILE, RootFolder, SCHEMA_FOLDER, enumeration_path,
    schema_path,
};
use azulejo_format::schema::NewArray;
use azulejo_format::timestamped_name::TimestampedName;

/// The folders of a new array, besides that of its schemas and enumerations. Other programs expect
/// them where folders exist.
const FOLDERS: [RootFolder; 5] = [
    RootFolder::Commits,
    RootFolder::Fragments,
    RootFolder::Metadata,
    RootFolder::FragmentMeta,
    RootFolder::Labels,
];

impl ArrayHandle {
    /// Creates an array: `array` is a schema, or what a builder made. It is encrypted if the
    /// context has a key.
    ///
    /// Nothing is visible until all of it is stored.
    ///
    /// ```
    /// use azulejo::format::ArraySchema;
    /// use azulejo::format::datatype::Datatype;
    /// use azulejo::{Config, Context};
    ///
    /// let context = Context::new(Config::default(), None)?;
    /// let new = ArraySchema::dense()
    ///     .dimension("x", 0i32..=99, 10)
    ///     .dimension("y", 0i32..=99, 10)
    ///     .attribute("v", Datatype::Float64)
    ///     .build()?;
    /// context.array("mem://new").create(new)?;
    /// assert_eq!(context.array("mem://new").open()?.schema().domain.ndim(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if an array or a group lies there, or an unfinished copy of one;
    /// [`Error::InvalidArgument`] for a schema that breaks a rule.
    pub fn create(&self, array: impl Into<NewArray>) -> Result<()> {
        self.create_at(array, clock::next_timestamp())
    }

    /// As [`Self::create`], with the time (milliseconds since 1970-01-01 UTC) that the schema is to
    /// have.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn create_at(&self, array: impl Into<NewArray>, timestamp: u64) -> Result<()> {
        self.create_in(&array.into(), timestamp, false)
    }

    /// As [`Self::create_at`]; `copying`: in a place that the caller has noted to be that of a copy.
    pub(crate) fn create_in(&self, array: &NewArray, timestamp: u64, copying: bool) -> Result<()> {
        let Self { context, uri } = self;

        let uri = Uri::parse(uri)?;
        array
            .check()
            .map_err(|error| Error::InvalidArgument(format!("cannot create {uri}: {error}")))?;
        if let Some(name) = shared_file_name(&array.schema, array.schema.version) {
            return Err(Error::InvalidArgument(format!(
                "cannot create {uri}: two files of its fragments would be named {name} in format version {}",
                array.schema.version
            )));
        }
        let location = context.locate(&uri)?;
        finish_deletion(&location)?;
        let refuse_if_taken = || match is_taken(&location, copying)? {
            true => Err(Error::AlreadyExists {
                uri: uri.to_string(),
            }),
            false => Ok(()),
        };
        // Nothing is locked in what others have made.
        refuse_if_taken()?;
        // Two who both see that nothing is there would both make an array, with two schemas.
        let lock = ArrayLock::wait_to_make(&location)?;
        refuse_if_taken()?;
        let label_arrays: Vec<(Location, &ArraySchema)> = array
            .labels()
            .map(|(label, schema)| {
                let path = location.path.join(&label.uri);
                (
                    Location {
                        storage: location.storage.clone(),
                        path,
                    },
                    schema,
                )
            })
            .collect();
        let name = TimestampedName::unversioned(timestamp, timestamp);
        let labels = location.path.join(RootFolder::Labels.name());
        let is_inside = |path: &StorePath| {
            path.relative_to(&labels)
                .is_some_and(|inner| inner.split('/').all(|part| !matches!(part, "" | "..")))
        };
        // What somebody has left who did not come to the end would count beside the new schemas.
        for (label, _) in &label_arrays {
            if is_inside(&label.path) && !label.storage.is_empty(&label.path)? {
                lock.confirm(&location)?;
                label.storage.delete(std::slice::from_ref(&label.path))?;
            }
        }
        let write = || -> Result<()> {
            for enumeration in &array.enumerations {
                let path = enumeration_path(&enumeration.file_name);
                put_tile(context, &location, &path, &enumeration.encode())?;
            }
            for (label, schema) in &label_arrays {
                put_schema(context, label, schema, &name)?;
            }
            lock.confirm(&location)?;
            put_schema(context, &location, &array.schema, &name)
        };
        write().inspect_err(|error| {
            let mut left: Vec<_> = (array.enumerations.iter())
                .map(|enumeration| {
                    location
                        .path
                        .join(&enumeration_path(&enumeration.file_name))
                })
                .collect();
            // Who was overtaken may find that another one makes labels in the same folders.
            let is_alone = !lock.is_claim() && location.storage.locking().is_some();
            left.extend(label_arrays.iter().map(|(label, schema)| {
                match is_alone && is_inside(&label.path) {
                    true => label.path.clone(),
                    false => label.path.join(&schema_path(&name, schema.version)),
                }
            }));
            let schema = location
                .path
                .join(&schema_path(&name, array.schema.version));
            clean_up_unseen(&*location.storage, &schema, &left, error);
        })
    }
}

/// Whether an array or group lies there, or somebody else's copy that is not whole: who goes on with
/// that takes away what it does not know. A `__schema` without schemas is what a crash while creating
/// leaves.
fn is_taken(location: &Location, copying: bool) -> Result<bool> {
    let entries = location.storage.list(&location.path)?;
    let is_note = |entry: &Entry| entry.name == UNFINISHED_COPY && !entry.is_dir;
    if !copying && entries.iter().any(is_note) {
        return Ok(true);
    }
    Ok(match ObjectType::of(&entries) {
        None => false,
        Some(ObjectType::Group) => true,
        Some(ObjectType::Array) => {
            let is_schema = |entry: &Entry| entry.name == LEGACY_SCHEMA_FILE && !entry.is_dir;
            let schemas = location.storage.list(&location.path.join(SCHEMA_FOLDER))?;
            let mut schemas = schemas.iter().filter(|entry| !entry.is_dir);
            // Older versions wrote enumerations under such names first.
            entries.iter().any(is_schema) || schemas.any(|entry| !is_temporary(&entry.name))
        }
    })
}

/// Makes those of an array's folders that are missing.
pub(super) fn make_folders(location: &Location) -> Result<()> {
    let Location { storage, path } = location;
    for folder in FOLDERS {
        storage.make_folder(&path.join(folder.name()))?;
    }
    storage.make_folder(&path.join(SCHEMA_FOLDER).join(ENUMERATIONS_FOLDER))
}

/// Makes those of an array's folders that are missing and stores a schema, which makes it visible.
pub(super) fn put_schema(
    context: &Context,
    location: &Location,
    schema: &ArraySchema,
    name: &TimestampedName,
) -> Result<()> {
    make_folders(location)?;
    put_tile(
        context,
        location,
        &schema_path(name, schema.version),
        &schema.encode(),
    )
}

/// Removes those of an array's folders that hold nothing, and its own if that is all that it held: of
/// one that is not there any more.
pub(super) fn remove_empty_folders(location: &Location) -> Result<()> {
    let Location { storage, path } = location;
    for folder in FOLDERS {
        storage.remove_empty_folder(&path.join(folder.name()))?;
    }
    let schemas = path.join(SCHEMA_FOLDER);
    storage.remove_empty_folder(&schemas.join(ENUMERATIONS_FOLDER))?;
    storage.remove_empty_folder(&schemas)?;
    storage.remove_empty_folder(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use azulejo_format::datatype::{CellValNum, Datatype};
    use azulejo_format::filter::EncryptionKey;
    use azulejo_format::schema::{Attribute, DataOrder, Enumeration};

    fn context(key: Option<&[u8; 32]>) -> Context {
        Context::new(Config::default(), key.map(|key| EncryptionKey::new(*key))).unwrap()
    }

    fn new_array() -> NewArray {
        let words =
            Enumeration::of_strings("words", Datatype::StringUtf8, true, ["a", "b"]).unwrap();
        ArraySchema::dense()
            .dimension("x", 0i32..=99, 10)
            .enumeration(words)
            .attribute_with(
                Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("words"),
            )
            .label(0, "name", DataOrder::Increasing, Datatype::Float64)
            .build()
            .unwrap()
    }

    #[test]
    fn what_was_created_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let local = folder.path().join("new").to_str().unwrap().to_owned();
        for uri in ["mem://new", &local] {
            let context = context(None);
            let new = new_array();
            context.array(uri).create(new.clone()).unwrap();
            let array = context.array(uri).open().unwrap();
            assert_eq!(**array.schema(), new.schema);
            assert_eq!(
                array.schemas().keys().collect::<Vec<_>>(),
                [array.schema_name()]
            );
            assert_eq!(*array.enumeration("words").unwrap(), new.enumerations[0]);
            assert_eq!(
                **array.open_label("name").unwrap().schema(),
                new.label_schemas[0]
            );
            assert!(array.fragments().is_empty() && array.metadata().unwrap().is_empty());
            let again = context.array(uri).create(new).unwrap_err();
            assert!(matches!(again, Error::AlreadyExists { .. }), "{again}");
        }
        for folder_name in [
            "__commits",
            "__fragments",
            "__meta",
            "__fragment_meta",
            "__labels",
            "__schema",
        ] {
            assert!(
                folder.path().join("new").join(folder_name).is_dir(),
                "{folder_name}"
            );
        }
        assert_eq!(
            std::fs::read_dir(folder.path().join("new"))
                .unwrap()
                .count(),
            6
        );
    }

    #[test]
    fn labels_that_a_killed_process_has_left_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let local = folder.path().join("new").to_str().unwrap().to_owned();
        for uri in ["mem://new", &local] {
            let context = context(None);
            let location = context.locate(&Uri::parse(uri).unwrap()).unwrap();
            let other = ArraySchema::dense()
                .dimension("index", 0i32..=99, 10)
                .attribute("label", Datatype::Int64)
                .build()
                .unwrap()
                .schema;
            // It was to be of a later time.
            let name = TimestampedName::unversioned(9, 9);
            let left = Location {
                storage: location.storage.clone(),
                path: location
                    .path
                    .join(&new_array().schema.dimension_labels[0].uri),
            };
            put_schema(&context, &left, &other, &name).unwrap();
            context.array(uri).create_at(new_array(), 5).unwrap();
            let label = context
                .array(uri)
                .open()
                .unwrap()
                .open_label("name")
                .unwrap();
            assert_eq!(**label.schema(), new_array().label_schemas[0], "{uri}");
            assert_eq!(label.schemas().len(), 1, "{uri}");
        }
    }

    /// Contexts of their own lock as processes of their own do, on disk.
    #[test]
    fn one_of_several_makes_an_array() {
        let folder = tempfile::tempdir().unwrap();
        let shared = context(None);
        for round in 0..20 {
            let name = format!("new{round}");
            let uri = match round % 2 {
                0 => format!("mem://{name}"),
                _ => folder.path().join(name).to_str().unwrap().to_owned(),
            };
            let contexts: Vec<Context> = (0..4)
                .map(|_| match round % 2 {
                    0 => shared.clone(),
                    _ => context(None),
                })
                .collect();
            let start = std::sync::Barrier::new(contexts.len());
            let made: Vec<Result<()>> = std::thread::scope(|scope| {
                let create = |context: &Context| {
                    let place = context.array(&uri);
                    start.wait();
                    place.create(new_array())
                };
                let threads: Vec<_> = contexts
                    .iter()
                    .map(|context| scope.spawn(move || create(context)))
                    .collect();
                threads.into_iter().map(|t| t.join().unwrap()).collect()
            });
            assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 1);
            for error in made.iter().filter_map(|made| made.as_ref().err()) {
                assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
            }
            let array = contexts[0].array(&uri).open().unwrap();
            assert_eq!(array.schemas().len(), 1);
        }
    }

    #[test]
    fn keys_are_used_and_never_printed() {
        let key = b"0123456789abcdeF0123456789abcdeF";
        let encrypted = context(Some(key));
        let new = ArraySchema::sparse()
            .dimension("x", 0i64..=9, 2)
            .build()
            .unwrap();
        encrypted.array("mem://new").create(new).unwrap();
        let array = encrypted.array("mem://new").open().unwrap();
        let printed = format!("{array:?} {encrypted:?}");
        assert!(
            !printed.contains("0123456789abcdeF") && !printed.contains("48, 49, 50"),
            "{printed}"
        );
    }

    #[test]
    fn bad_schemas_leave_nothing_behind() {
        let context = context(None);
        let mut new = new_array();
        new.enumerations.clear();
        let error = context
            .array("mem://new")
            .create(new)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("mem://new") && error.contains("\"words\""),
            "{error}"
        );
        assert!(matches!(
            context.array("mem://new").open(),
            Err(Error::NotFound { .. })
        ));
    }

    #[test]
    fn what_a_crash_left_is_no_array() {
        let context = context(None);
        let location = context.locate(&Uri::parse("mem://new").unwrap()).unwrap();
        let left = location.path.join("__schema/__enumerations/x");
        location
            .storage
            .put(&left, bytes::Bytes::from_static(b"x"))
            .unwrap();
        context.array("mem://new").create(new_array()).unwrap();
        context.array("mem://new").open().unwrap();
    }

    #[test]
    fn times_are_the_callers() {
        let context = context(None);
        context
            .array("mem://new")
            .create_at(new_array(), 17)
            .unwrap();
        let array = context
            .array("mem://new")
            .open_at(crate::TimeRange::until(17))
            .unwrap();
        assert!(
            array.schema_name().starts_with("__17_17_"),
            "{}",
            array.schema_name()
        );
    }
}
