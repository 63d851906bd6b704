//! Creating groups, and changing their members and key-values.

use super::{Group, GroupHandle, Member, ObjectType};
use crate::array::removal::UNFINISHED_COPY;
use crate::array::{ArrayLock, MetadataWriter, TimeRange, put_tile_if_there};
use crate::clock;
use crate::error::{Error, Result};
use crate::storage::{Uri, put_first};
use azulejo_format::group::{GroupDetails, GroupMember, GroupVersion, MemberKind};
use azulejo_format::path::{GROUP_FILE, RootFolder, group_details_path};
use azulejo_format::timestamped_name::TimestampedName;
use bytes::Bytes;
use std::collections::BTreeMap;

/// A member to be added to a group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct NewMember {
    uri: String,
    relative: bool,
    name: Option<String>,
    object_type: Option<ObjectType>,
    replaces: Replaces,
}

/// Which members of the same key a new one takes the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replaces {
    None,
    /// Those that the group had before it was changed.
    Earlier,
    Any,
}

impl NewMember {
    /// A member anywhere: a path or URI, which is stored whole.
    pub fn at(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            relative: false,
            name: None,
            object_type: None,
            replaces: Replaces::None,
        }
    }

    /// A member in the group's folder, or below: `path` is taken from there. It stays a member when
    /// the group is moved as a whole. On local disks `..` leads out of the folder, as in the
    /// reference: such a member stays one when both are moved.
    pub fn relative(path: impl Into<String>) -> Self {
        Self {
            relative: true,
            ..Self::at(path)
        }
    }

    /// With a name in the group.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// With a type; nobody looks then whether anything lies there.
    pub fn typed(mut self, object_type: ObjectType) -> Self {
        self.object_type = Some(object_type);
        self
    }

    /// In the place of a member of the same name (or, without one, URI), if there is one.
    pub fn replacing(mut self) -> Self {
        self.replaces = Replaces::Any;
        self
    }

    /// As [`Self::replacing`], but not in the place of one that the same [`GroupEditor`] has added.
    pub fn replacing_earlier(mut self) -> Self {
        self.replaces = Replaces::Earlier;
        self
    }
}

/// Changes to a group's members. They are written together by [`Self::commit`]; dropped, they are
/// forgotten.
#[derive(Debug, Clone)]
#[must_use]
pub struct GroupEditor {
    group: Group,
    timestamp: Option<u64>,
    /// By key.
    changes: BTreeMap<String, GroupMember>,
}

impl GroupHandle {
    /// Creates an empty group.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if an array or group lies there, or an unfinished copy of one, or
    /// another one has made it at the same time, where the storage can tell who is the first.
    pub fn create(&self) -> Result<()> {
        self.create_in(false)
    }

    /// As [`Self::create`]; `copying`: in a place that the caller has noted to be that of a copy.
    pub(crate) fn create_in(&self, copying: bool) -> Result<()> {
        let uri = Uri::parse(&self.uri)?;
        let location = self.context.locate(&uri)?;
        crate::array::removal::finish_deletion(&location)?;
        let taken = || Error::AlreadyExists {
            uri: uri.to_string(),
        };
        let storage = &location.storage;
        let refuse_if_taken = || {
            let has_note =
                || Ok::<_, Error>(!storage.find(&location.path, &[UNFINISHED_COPY])?.is_empty());
            match ObjectType::at(&location)?.is_some() || !copying && has_note()? {
                true => Err(taken()),
                false => Ok(()),
            }
        };
        // Nothing is locked in what others have made.
        refuse_if_taken()?;
        // Two who both see that nothing is there would make a group and an array of one folder.
        let lock = ArrayLock::wait_to_make(&location)?;
        refuse_if_taken()?;
        lock.confirm(&location)?;
        storage.make_folder(&location.path.join(RootFolder::Metadata.name()))?;
        // Of two who make it at once, one has made it.
        match put_first(&**storage, &location.path.join(GROUP_FILE), Bytes::new()) {
            Err(Error::AlreadyExists { .. }) => return Err(taken()),
            written => written?,
        }
        storage.make_folder(&location.path.join(RootFolder::GroupDetails.name()))
    }

    /// Begins to change a group's members.
    ///
    /// ```
    /// # use azulejo::format::ArraySchema;
    /// # use azulejo::group::NewMember;
    /// # use azulejo::{Config, Context};
    /// # let context = Context::new(Config::default(), None)?;
    /// context.group("mem://plates").create()?;
    /// let new = ArraySchema::sparse().dimension("x", 0i32..=9, 10).build()?;
    /// context.array("mem://plates/raw").create(new)?;
    /// let mut editor = context.group("mem://plates").edit()?;
    /// editor.add(NewMember::relative("raw").named("raw data"))?;
    /// editor.commit()?;
    /// assert_eq!(context.group("mem://plates").open()?.members()[0].location, "mem://plates/raw");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::open`], and [`Error::InvalidArgument`] by the name of a moment.
    pub fn edit(&self) -> Result<GroupEditor> {
        let group = self.open()?;
        group.refuse_moment()?;
        Ok(group.into_editor(None))
    }

    /// Begins to change a group as it was at a time (milliseconds since 1970-01-01 UTC), which the
    /// changes will have.
    ///
    /// # Errors
    /// As [`Self::open_at`].
    pub fn edit_at(&self, timestamp: u64) -> Result<GroupEditor> {
        let group = self.open_at(TimeRange::until(timestamp))?;
        group.refuse_moment()?;
        Ok(group.into_editor(Some(timestamp)))
    }

    /// Begins to change a group's key-values.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn change_metadata(&self) -> Result<MetadataWriter> {
        self.open()?.change_metadata()
    }
}

impl Group {
    /// Begins to change this group's members. The changes will have the time `timestamp`
    /// (milliseconds since 1970-01-01 UTC), or that of the commit.
    pub fn into_editor(self, timestamp: Option<u64>) -> GroupEditor {
        GroupEditor {
            group: self,
            timestamp,
            changes: BTreeMap::new(),
        }
    }

    /// Begins to change this group's key-values.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it was deleted meanwhile, [`Error::InvalidArgument`] if it was opened by
    /// the name of a moment.
    pub fn change_metadata(&self) -> Result<MetadataWriter> {
        self.refuse_moment()?;
        self.check_exists()?;
        Ok(MetadataWriter::new(
            &self.context,
            self.location.clone(),
            None,
        ))
    }

    /// Nothing is written where a group was deleted: its folder would be there again, and be no
    /// group.
    fn check_exists(&self) -> Result<()> {
        match ObjectType::at(&self.location)? {
            Some(_) => Ok(()),
            None => Err(Error::NotFound {
                uri: self.uri.to_string(),
                what: "a group",
            }),
        }
    }
}

impl GroupEditor {
    /// The group as it was before the changes.
    #[must_use]
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Adds a member.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if there is a member of that name, [`Error::NotFound`] if neither
    /// an array nor a group lies there and no type was given, [`Error::InvalidArgument`] for a
    /// relative path that leaves the group, and for the group itself.
    pub fn add(&mut self, member: NewMember) -> Result<()> {
        let NewMember {
            uri,
            relative,
            name,
            object_type: known,
            replaces,
        } = member;
        let refuse = |reason: &str| {
            Err(Error::InvalidArgument(format!(
                "cannot add {uri:?}: {reason}"
            )))
        };
        if name.as_deref() == Some("") {
            return refuse("a name cannot be empty; leave it out");
        }
        let (stored, location) = if relative {
            let group = &self.group.location.path;
            let path = plain(&uri).unwrap_or_default();
            // In other storages the reference takes `..` for a name like any other.
            let outside = group.scheme() != "file" && path.split('/').any(|part| part == "..");
            if path.is_empty() || outside {
                return refuse(
                    "a relative member lies in the group's folder; give its path from there",
                );
            }
            let location = group.join(&path);
            (path, Some(location))
        } else {
            match Uri::parse(&uri) {
                Ok(parsed) => (parsed.path().to_string(), Some(parsed.path().clone())),
                // A place of a kind that only others know, such as a service's: who says what it is
                // may list it.
                Err(_) if known.is_some() && uri.contains("://") => (uri.clone(), None),
                Err(error) => return Err(error),
            }
        };
        let group = self.group.location.path.without_steps();
        if location
            .as_ref()
            .is_some_and(|path| path.without_steps() == group)
        {
            return refuse("a group cannot be a member of itself");
        }
        let place = location.map_or_else(|| stored.clone(), |path| path.to_string());
        let found = match known {
            Some(known) => known,
            None => match self.group.context.object(&place).object_type()? {
                Some(found) => found,
                None => {
                    let what =
                        "neither an array nor a group; say which it will be to add it all the same";
                    return Err(Error::NotFound { uri: place, what });
                }
            },
        };
        let kind = match found {
            ObjectType::Array => MemberKind::Array,
            ObjectType::Group => MemberKind::Group,
        };
        let version = self.version();
        let member = GroupMember {
            version,
            kind,
            relative,
            uri: stored,
            name,
            deleted: false,
        };
        let key = member.key().to_owned();
        let taken = match self.changes.get(&key) {
            Some(change) => !change.deleted && replaces != Replaces::Any,
            None => self.group.member(&key).is_some() && replaces == Replaces::None,
        };
        if taken {
            return Err(Error::AlreadyExists {
                uri: format!("{}: a member {key:?}", self.group.uri),
            });
        }
        self.changes.insert(key, member);
        Ok(())
    }

    /// Removes the member of a name; without a name, of a URI as stored or whole. What it names
    /// stays where it is.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such member, [`Error::InvalidArgument`] if several have
    /// that URI.
    pub fn remove(&mut self, name_or_uri: &str) -> Result<()> {
        // As it was given when it was added.
        let path = plain(name_or_uri).filter(|path| self.has(path, true));
        let name_or_uri: &str = match (self.has(name_or_uri, false), &path) {
            (false, Some(path)) => path,
            _ => name_or_uri,
        };
        if let Some(change) = self.changes.get(name_or_uri) {
            let added_only = !change.deleted && self.group.member(name_or_uri).is_none();
            if added_only {
                self.changes.remove(name_or_uri);
                return Ok(());
            }
        }
        let found = match self.group.member(name_or_uri) {
            Some(member) => member,
            None => self.member_at(name_or_uri)?,
        };
        let removal = GroupMember {
            deleted: true,
            ..self.stored(found)
        };
        self.changes.insert(removal.key().to_owned(), removal);
        Ok(())
    }

    /// Writes the changes as one file. Without changes nothing is written.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the group was deleted meanwhile, [`Error::Storage`].
    pub fn commit(mut self) -> Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        self.group.refuse_moment()?;
        // What it writes makes a group of any folder: nobody may delete or move this one meanwhile.
        let lock = ArrayLock::wait(&self.group.location)?;
        self.group.check_exists()?;
        if self.timestamp.is_none() && self.version() == GroupVersion::V1 {
            // A complete list: of what is there now, whoever has changed it since.
            self.look_again()?;
            lock.confirm(&self.group.location)?;
        }
        self.write(self.timestamp.unwrap_or_else(clock::next_timestamp))
    }

    /// Makes the members that were added all that the group has, in one step: readers see those
    /// before, or these. Returns those before, whoever added them and when; what they name stays
    /// where it is.
    ///
    /// Of several that do this at once each takes the place of the one before: no two return the
    /// same member, and members of two are never mixed.
    ///
    /// # Errors
    /// As [`Self::commit`]. [`Error::InvalidArgument`] for a group at an earlier time.
    pub fn commit_alone(mut self) -> Result<Vec<Member>> {
        if self.timestamp.is_some() {
            return Err(Error::InvalidArgument(
                "members are replaced as of now, not at another time".to_owned(),
            ));
        }
        self.group.refuse_moment()?;
        let lock = ArrayLock::wait(&self.group.location)?;
        self.look_again()?;
        self.changes.retain(|_, change| !change.deleted);
        let before = self.group.members.clone();
        for member in &before {
            if !self.changes.contains_key(member.key()) {
                let gone = GroupMember {
                    deleted: true,
                    ..self.stored(member)
                };
                self.changes.insert(gone.key().to_owned(), gone);
            }
        }
        if !self.changes.is_empty() {
            // Later than what another process has written in this very millisecond.
            let seen = self.group.time_range.end;
            let mut time = clock::next_timestamp();
            while time <= seen {
                time = clock::next_timestamp();
            }
            // Who was overtaken meanwhile would take away members that it has not seen.
            lock.confirm(&self.group.location)?;
            self.write(time)?;
        }
        Ok(before)
    }

    fn look_again(&mut self) -> Result<()> {
        let handle = self.group.context.group(&self.group.uri.to_string());
        self.group = handle.open()?;
        Ok(())
    }

    /// Writes the file of the changes; the caller holds the lock.
    fn write(&self, time: u64) -> Result<()> {
        let version = self.version();
        let members = match version {
            GroupVersion::V2 => self.changes.values().cloned().collect(),
            // A file of version 1 is complete, and cannot say that something is gone.
            GroupVersion::V1 => {
                let mut all: BTreeMap<String, GroupMember> = (self.group.members.iter())
                    .map(|member| (member.key().to_owned(), self.stored(member)))
                    .collect();
                for (key, change) in &self.changes {
                    if change.deleted {
                        all.remove(key)
                    } else {
                        all.insert(key.clone(), change.clone())
                    };
                }
                all.into_values().collect()
            }
        };
        let name = TimestampedName::versioned(time, time, version.number());
        let Group {
            context, location, ..
        } = &self.group;
        location
            .storage
            .make_folder(&location.path.join(RootFolder::GroupDetails.name()))?;
        let payload = GroupDetails { version, members }.encode();
        put_tile_if_there(
            context,
            location,
            None,
            &group_details_path(&name),
            &payload,
        )
    }

    /// Details go on in the version that the newest ones have: readers of version 1 take the last
    /// file for all.
    fn version(&self) -> GroupVersion {
        self.group.details_version.unwrap_or(GroupVersion::V2)
    }

    fn stored(&self, member: &Member) -> GroupMember {
        let kind = match member.object_type {
            None => MemberKind::Unknown,
            Some(ObjectType::Group) => MemberKind::Group,
            Some(ObjectType::Array) => MemberKind::Array,
        };
        let Member {
            name,
            uri,
            relative,
            ..
        } = member.clone();
        GroupMember {
            version: self.version(),
            kind,
            relative,
            uri,
            name,
            deleted: false,
        }
    }

    /// Whether there is a member of a key, which may have to be a relative path.
    fn has(&self, key: &str, as_path: bool) -> bool {
        match self.changes.get(key) {
            Some(change) => !as_path || change.relative && change.name.is_none(),
            None => (self.group.member(key))
                .is_some_and(|found| !as_path || found.relative && found.name.is_none()),
        }
    }

    fn member_at(&self, uri: &str) -> Result<&Member> {
        let (whole, path) = (Uri::parse(uri)?.to_string(), plain(uri));
        let is_it = |member: &&Member| {
            member.uri.trim_end_matches('/') == uri.trim_end_matches('/')
                || member.relative && path.is_some() && plain(&member.uri) == path
                || Uri::parse(&member.location).is_ok_and(|location| location.to_string() == whole)
        };
        let mut found = self.group.members.iter().filter(is_it);
        match (found.next(), found.next()) {
            (Some(member), None) => Ok(member),
            (None, _) => Err(Error::NotFound {
                uri: format!("{}: {uri}", self.group.uri),
                what: "a member of the group",
            }),
            (Some(_), Some(_)) => Err(Error::InvalidArgument(format!(
                "{}: there are multiple members with the same URI, please remove by name. ({uri})",
                self.group.uri
            ))),
        }
    }
}

/// A relative path without the parts that say nothing; `None` for whole ones.
fn plain(path: &str) -> Option<String> {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    let is_whole = path.starts_with('/') || path.contains("://");
    (!is_whole).then(|| parts.collect::<Vec<_>>().join("/"))
}
