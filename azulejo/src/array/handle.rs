//! The place of an array: what can be done with it before it is open.

use super::{Array, OpenScope, Snapshot, TimeRange};
use crate::context::Context;
use crate::error::Result;
use crate::snapshots;
use crate::storage::{Uri, Waiting, block_on};

/// The place where an array lies, or is to lie: what [`Context::array`] gives.
///
/// Making one reads nothing; each method looks at what lies there when it is called. Cheap to
/// clone, and any number of them may work on one array.
///
/// ```
/// use azulejo::format::{ArraySchema, Datatype};
/// use azulejo::{Config, Context};
///
/// let context = Context::new(Config::default(), None)?;
/// let place = context.array("mem://grid");
/// place.create(
///     ArraySchema::dense()
///         .dimension("x", 0i32..=99, 10)
///         .attribute("v", Datatype::Float64)
///         .build()?,
/// )?;
/// assert!(place.open()?.schema().is_dense());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ArrayHandle {
    pub(crate) context: Context,
    pub(crate) uri: String,
}

impl Context {
    /// The array at a URI or path. Nothing is read: there may be none yet.
    pub fn array(&self, uri: &str) -> ArrayHandle {
        ArrayHandle {
            context: self.clone(),
            uri: uri.to_owned(),
        }
    }
}

impl ArrayHandle {
    /// The context that it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Where the array lies, as given.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Opens the array as it is now, or, at `uri@NAME`, as a
    /// [named snapshot](crate::snapshots) shows it.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) if there is no array,
    /// [`Error::Encryption`](crate::Error::Encryption) for a missing, wrong or unneeded key.
    pub fn open(&self) -> Result<Array> {
        self.open_at(TimeRange::ALL)
    }

    /// Opens the array with only what was written within `time_range`.
    ///
    /// # Errors
    /// As [`Self::open`]; [`Error::InvalidArgument`](crate::Error::InvalidArgument) for an empty
    /// range.
    pub fn open_at(&self, time_range: TimeRange) -> Result<Array> {
        block_on(self.open_as(time_range, Waiting::Blocks))
    }

    /// As [`Self::open`], for an executor: the same requests, and nobody blocks while the storage
    /// answers.
    ///
    /// # Errors
    /// As [`Self::open`].
    #[cfg(feature = "stream")]
    pub async fn open_async(&self) -> Result<Array> {
        self.open_at_async(TimeRange::ALL).await
    }

    /// As [`Self::open_at`], for an executor.
    ///
    /// # Errors
    /// As [`Self::open_at`].
    #[cfg(feature = "stream")]
    pub async fn open_at_async(&self, time_range: TimeRange) -> Result<Array> {
        self.open_as(time_range, Waiting::Polls).await
    }

    /// Opens the array, which is one operation.
    async fn open_as(&self, time_range: TimeRange, waiting: Waiting) -> Result<Array> {
        let opening = self.open_named(time_range, waiting);
        self.context.begin().drives(opening).await
    }

    async fn open_named(&self, time_range: TimeRange, waiting: Waiting) -> Result<Array> {
        let found = self.open_exactly(&self.uri, time_range, waiting).await;
        let named = snapshots::named(&self.context, &self.uri, &found, waiting).await?;
        match named {
            Some((uri, at)) => {
                let time_range = time_range.cut_at(at);
                let array = self.open_exactly(&uri, time_range, waiting).await;
                array.map(Array::named)
            }
            None => found,
        }
    }

    async fn open_exactly(&self, uri: &str, time: TimeRange, waiting: Waiting) -> Result<Array> {
        let uri = Uri::parse(uri)?;
        let scope = OpenScope::default();
        Snapshot::open_array(&self.context, &uri, time, &scope, waiting).await
    }

    /// The array's schemas, key-values and commits as they are now. Its fragments are not looked
    /// at, of which there may be thousands.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.snapshot_at(TimeRange::ALL)
    }

    /// As [`Self::snapshot`], with only what was written within `time_range`.
    ///
    /// # Errors
    /// As [`Self::open_at`].
    pub fn snapshot_at(&self, time_range: TimeRange) -> Result<Snapshot> {
        let open = |uri: &str, time| Snapshot::open_uri(&self.context, &Uri::parse(uri)?, time);
        let found = open(&self.uri, time_range);
        let named = snapshots::named(&self.context, &self.uri, &found, Waiting::Blocks);
        match block_on(named)? {
            Some((uri, at)) => open(&uri, time_range.cut_at(at)).map(Snapshot::named),
            None => found,
        }
    }

    /// The array's schemas alone, which is all that writing takes: the snapshot has no fragments,
    /// cells or key-values to read.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn snapshot_to_write(&self) -> Result<Snapshot> {
        Snapshot::open_to_write(&self.context, &self.uri)
    }
}
