//! The place of a group: what can be done with it before it is open.

use super::Group;
use crate::array::TimeRange;
use crate::context::Context;
use crate::error::Result;
use crate::snapshots;
use crate::storage::{Waiting, block_on};

/// The place where a group lies, or is to lie: what [`Context::group`] gives.
///
/// Making one reads nothing; each method looks at what lies there when it is called.
#[derive(Debug, Clone)]
#[must_use]
pub struct GroupHandle {
    pub(crate) context: Context,
    pub(crate) uri: String,
}

impl Context {
    /// The group at a URI or path. Nothing is read: there may be none yet.
    pub fn group(&self, uri: &str) -> GroupHandle {
        GroupHandle {
            context: self.clone(),
            uri: uri.to_owned(),
        }
    }
}

impl GroupHandle {
    /// The context that it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Where the group lies, as given.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Opens the group as it is now.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) if there is no group,
    /// [`Error::Encryption`](crate::Error::Encryption) for a missing, wrong or unneeded key.
    pub fn open(&self) -> Result<Group> {
        self.open_at(TimeRange::ALL)
    }

    /// Opens the group with only what was written within `time_range`.
    ///
    /// # Errors
    /// As [`Self::open`]; [`Error::InvalidArgument`](crate::Error::InvalidArgument) for an empty
    /// range.
    pub fn open_at(&self, time_range: TimeRange) -> Result<Group> {
        let read =
            |uri: &str, time| block_on(Group::read_as(&self.context, uri, time, Waiting::Blocks));
        let found = read(&self.uri, time_range);
        snapshots::or_named(&self.context, &self.uri, found, |uri, at| {
            let time_range = TimeRange {
                end: time_range.end.min(at),
                ..time_range
            };
            read(uri, time_range)
        })
    }

    /// As [`Self::open_at`], for an executor; named snapshots are not looked for.
    ///
    /// # Errors
    /// As [`Self::open_at`].
    #[cfg(feature = "stream")]
    pub async fn open_at_async(&self, time_range: TimeRange) -> Result<Group> {
        Group::read_as(&self.context, &self.uri, time_range, Waiting::Polls).await
    }
}
