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
        block_on(self.open_as(time_range, Waiting::Blocks))
    }

    /// As [`Self::open_at`], for an executor.
    ///
    /// # Errors
    /// As [`Self::open_at`].
    #[cfg(feature = "stream")]
    pub async fn open_at_async(&self, time_range: TimeRange) -> Result<Group> {
        self.open_as(time_range, Waiting::Polls).await
    }

    async fn open_as(&self, time_range: TimeRange, waiting: Waiting) -> Result<Group> {
        let found = Group::read_as(&self.context, &self.uri, time_range, waiting).await;
        let named = snapshots::named(&self.context, &self.uri, &found, waiting).await?;
        match named {
            Some((uri, at)) => {
                let time_range = time_range.cut_at(at);
                let group = Group::read_as(&self.context, &uri, time_range, waiting).await;
                group.map(Group::named)
            }
            None => found,
        }
    }
}
