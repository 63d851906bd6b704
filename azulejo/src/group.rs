//! Groups: folders that name arrays and other groups, wherever these lie.

mod edit;
mod handle;

pub use crate::object_type::ObjectType;
pub use edit::{GroupEditor, NewMember};
pub use handle::GroupHandle;

use crate::array::directory::DetailFiles;
use crate::array::{Attempts, TimeRange, holds_all_of, read_details, read_metadata};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::{Uri, Waiting, block_on};
use azulejo_format::group::{GroupDetails, GroupMember, GroupVersion, MemberKind, merge};
use azulejo_format::metadata::Metadata;
use azulejo_format::path::RootFolder;

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name in the group, if it was given one.
    pub name: Option<String>,
    /// Where it lies, as the group stores it.
    pub uri: String,
    /// Whether `uri` is relative to the group.
    pub relative: bool,
    /// What it was when it was added; `None` if that was not known then.
    pub object_type: Option<ObjectType>,
    /// Where it lies, whole: what [`Context::array`] and [`Context::group`] take.
    /// Nobody has looked whether anything lies there.
    pub location: String,
}

impl Member {
    /// What members are told apart by, and in the order of: the name, else the URI as stored.
    #[must_use]
    pub fn key(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.uri)
    }

    fn new(member: GroupMember, group: &Location) -> Self {
        let GroupMember {
            kind,
            relative,
            uri,
            name,
            ..
        } = member;
        let object_type = match kind {
            MemberKind::Unknown => None,
            MemberKind::Group => Some(ObjectType::Group),
            MemberKind::Array => Some(ObjectType::Array),
        };
        let location = if relative {
            group.path.join(&uri).to_string()
        } else {
            uri.clone()
        };
        Self {
            name,
            uri,
            relative,
            object_type,
            location,
        }
    }
}

/// A group as it was at a time.
#[derive(Debug, Clone)]
pub struct Group {
    context: Context,
    uri: Uri,
    location: Location,
    asked: TimeRange,
    /// As asked, with an end.
    time_range: TimeRange,
    has_details: bool,
    /// Whether it was opened by the name of a moment.
    of_moment: bool,
    /// That of the newest details at the time.
    details_version: Option<GroupVersion>,
    members: Vec<Member>,
    metadata_files: DetailFiles,
}

impl Group {
    /// Reads a group, by whoever waits.
    async fn read_as(
        context: &Context,
        uri: &str,
        asked: TimeRange,
        waiting: Waiting,
    ) -> Result<Self> {
        let uri = Uri::parse(uri)?;
        let mut attempts = Attempts::new();
        loop {
            let listed = ListedGroup::at(context, &uri, asked, waiting).await?;
            let details = listed.details(context, waiting).await;
            if !attempts.again(&details) {
                return Ok(listed.with(context, uri, asked, details?));
            }
        }
    }

    /// The same group, opened by the name of a moment.
    fn named(self) -> Self {
        Self {
            of_moment: true,
            ..self
        }
    }

    /// Refuses to change what was opened by the name of a moment: it would be of now.
    fn refuse_moment(&self) -> Result<()> {
        match self.of_moment {
            true => Err(Error::InvalidArgument(format!(
                "{}: it was opened as of a named snapshot, which cannot be changed; open it without that name",
                self.uri
            ))),
            false => Ok(()),
        }
    }

    /// The context that it was opened with.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Where it lies.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Its folder.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The moment that it shows, in milliseconds since 1970-01-01 UTC, if its folders were not
    /// listed but a [manifest](crate::manifest) was read: what was written later is not seen.
    #[must_use]
    pub fn listed_at(&self) -> Option<u64> {
        self.location.storage.listed_at()
    }

    /// The time that it was opened at; an open end is the time of opening.
    #[must_use]
    pub fn time_range(&self) -> TimeRange {
        self.time_range
    }

    /// Whether the group has ever stored members, at whatever time. Groups of TileDB before 2.8 do
    /// not: their members are what lies in their folder, see
    /// [`ObjectHandle::list`](crate::object::ObjectHandle::list).
    #[must_use]
    pub fn has_details(&self) -> bool {
        self.has_details
    }

    /// The members, ordered by [`Member::key`].
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The member of a name, or without a name and of this URI as stored.
    #[must_use]
    pub fn member(&self, key: &str) -> Option<&Member> {
        self.members
            .binary_search_by(|member| member.key().cmp(key))
            .ok()
            .and_then(|at| self.members.get(at))
    }

    /// Reads the key-values at that time.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for damaged files, [`Error::Encryption`] for a wrong key.
    pub fn metadata(&self) -> Result<Metadata> {
        block_on(self.metadata_as(Waiting::Blocks))
    }

    /// As [`Self::metadata`], for an executor.
    ///
    /// # Errors
    /// As [`Self::metadata`].
    #[cfg(feature = "stream")]
    pub async fn metadata_async(&self) -> Result<Metadata> {
        self.metadata_as(Waiting::Polls).await
    }

    async fn metadata_as(&self, waiting: Waiting) -> Result<Metadata> {
        let context = &self.context;
        let (files, time) = (&self.metadata_files, self.time_range);
        let mut found = read_metadata(context, &self.location, files, time, waiting).await;
        let mut attempts = Attempts::new();
        while attempts.again(&found) {
            let now = ListedGroup::at(context, &self.uri, self.asked, waiting).await?;
            if !holds_all_of(self.asked, &now.metadata_files) {
                break;
            }
            let (files, time) = (&now.metadata_files, now.time_range);
            found = read_metadata(context, &now.location, files, time, waiting).await;
        }
        found
    }
}

/// A group whose folders were listed.
struct ListedGroup {
    location: Location,
    time_range: TimeRange,
    details_files: DetailFiles,
    metadata_files: DetailFiles,
}

impl ListedGroup {
    async fn at(context: &Context, uri: &Uri, asked: TimeRange, waiting: Waiting) -> Result<Self> {
        let time_range = asked.resolved();
        let location = crate::manifest::locate(context, uri)?;
        let folder = vec![location.path.clone()];
        let root = waiting.list(&*location.storage, folder).await?;
        let root = root.into_iter().next().unwrap_or_default();
        match ObjectType::of(&root) {
            Some(ObjectType::Group) => {}
            other => {
                let what = match other {
                    Some(_) => "a group; it is an array",
                    None if root.is_empty() => "a group; there is no such folder, or it is empty",
                    None => "a group; there is neither __group nor __tiledb_group.tdb",
                };
                return Err(Error::NotFound {
                    uri: uri.to_string(),
                    what,
                });
            }
        }
        let has = |folder: &RootFolder| {
            let mut entries = root.iter();
            entries.any(|entry| entry.is_dir && entry.name == folder.name())
        };
        let folders = [RootFolder::GroupDetails, RootFolder::Metadata];
        let folders: Vec<RootFolder> = folders.into_iter().filter(has).collect();
        let paths = folders.iter().map(|f| location.path.join(f.name()));
        let listed = waiting.list(&*location.storage, paths.collect()).await?;
        let files = |folder: RootFolder| {
            let at = folders.iter().position(|listed| *listed == folder);
            let entries = at.and_then(|at| listed.get(at)).map_or(&[][..], |e| e);
            DetailFiles::parse(folder, entries)
        };
        let (details_files, metadata_files) =
            (files(RootFolder::GroupDetails), files(RootFolder::Metadata));
        Ok(Self {
            location,
            time_range,
            details_files,
            metadata_files,
        })
    }

    /// The details that count, oldest first.
    async fn details(&self, context: &Context, waiting: Waiting) -> Result<Vec<GroupDetails>> {
        let (location, files) = (&self.location, &self.details_files);
        let read = read_details(context, location, files, self.time_range, waiting).await?;
        let decode = |(path, payload): (String, Vec<u8>)| {
            let decoded = GroupDetails::decode(&payload);
            decoded.map_err(|e| Error::decode(location.path.join(&path).to_string(), e))
        };
        read.into_iter().map(decode).collect()
    }

    fn with(
        self,
        context: &Context,
        uri: Uri,
        asked: TimeRange,
        details: Vec<GroupDetails>,
    ) -> Group {
        let details_version = details.last().map(|newest| newest.version);
        let members = merge(details).into_values();
        Group {
            context: context.clone(),
            uri,
            asked,
            time_range: self.time_range,
            has_details: !self.details_files.files.is_empty(),
            of_moment: false,
            details_version,
            members: members
                .map(|member| Member::new(member, &self.location))
                .collect(),
            metadata_files: self.metadata_files,
            location: self.location,
        }
    }
}

#[cfg(test)]
mod tests;
