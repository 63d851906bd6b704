//! Everything below a folder or group, members of groups included.

use super::ObjectHandle;
use super::folder::{exists, subfolders};
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::group::Member;
use crate::object_type::ObjectType;
use crate::storage::{Entry, StorePath, Uri};
use std::collections::HashSet;

/// Something that a walk has come across.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalkEntry {
    /// Levels below the start, folders that are neither array nor group included; at least 1.
    pub depth: usize,
    /// A member's name (without one, the last component of its URI), or the name of the folder.
    pub name: String,
    /// Where it lies.
    pub uri: String,
    /// What it is; `None` for a mere folder, and for a member that is neither array nor group.
    pub object_type: Option<ObjectType>,
    /// Whether the walk has come by here before, by another way, and does not enter it again.
    pub repeated: bool,
}

/// An iterator over what lies below a folder or group: each entry before what lies in it, in the
/// order of names.
///
/// What cannot be read is an error in its place, after which the walk goes on.
#[derive(Debug)]
pub struct Walk {
    context: Context,
    max_depth: usize,
    /// What is still to be visited, the next one last.
    pending: Vec<PendingMember>,
    /// Places that were entered, without steps up: no circle goes on by growing longer paths. Groups
    /// may contain each other in circles, and the same group many times over.
    entered: HashSet<StorePath>,
}

#[derive(Debug)]
struct PendingMember {
    depth: usize,
    name: String,
    uri: String,
    /// What the member said that it is.
    stored_type: Option<ObjectType>,
}

impl ObjectHandle {
    /// Walks through everything below a folder or group, at most `max_depth` levels deep. A group
    /// is entered by its members, wherever they lie; one that has never stored any (TileDB before
    /// 2.8), like a mere folder, by what lies in it. Arrays are not entered. A folder that several
    /// ways lead to is entered once.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is nothing at the URI.
    pub fn walk(&self, max_depth: usize) -> Result<Walk> {
        let (context, uri) = (&self.context, Uri::parse(&self.uri)?);
        let location = crate::manifest::locate(context, &uri)?;
        let entries = location.storage.list(&location.path)?;
        if entries.is_empty() && !exists(&location)? {
            return Err(Error::NotFound {
                uri: uri.to_string(),
                what: "a folder, group or array",
            });
        }
        let mut walk = Walk {
            context: context.clone(),
            max_depth,
            pending: Vec::new(),
            entered: HashSet::new(),
        };
        walk.entered.insert(location.path.without_steps());
        walk.enter(&location, &entries, 0)?;
        Ok(walk)
    }
}

impl Walk {
    /// Visits one entry and puts what lies in it on the list.
    fn visit(&mut self, next: PendingMember) -> Result<WalkEntry> {
        let PendingMember {
            depth,
            name,
            uri,
            stored_type,
        } = next;
        let location = crate::manifest::locate(&self.context, &Uri::parse(&uri)?)?;
        if stored_type == Some(ObjectType::Array) {
            return Ok(WalkEntry {
                depth,
                name,
                uri,
                object_type: stored_type,
                repeated: false,
            });
        }
        let entries = location.storage.list(&location.path)?;
        let object_type = ObjectType::of(&entries);
        if let Some(ObjectType::Group) = stored_type
            && object_type.is_none()
        {
            return Err(Error::NotFound {
                uri,
                what: "a group that is a member of another",
            });
        }
        let mut entry = WalkEntry {
            depth,
            name,
            uri,
            object_type,
            repeated: false,
        };
        if object_type != Some(ObjectType::Array) {
            entry.repeated = !self.entered.insert(location.path.without_steps());
            if !entry.repeated && depth < self.max_depth {
                self.enter(&location, &entries, depth)?;
            }
        }
        Ok(entry)
    }

    /// Puts what lies in a folder of `depth` on the list.
    fn enter(&mut self, location: &Location, entries: &[Entry], depth: usize) -> Result<()> {
        let depth = depth + 1;
        if depth > self.max_depth {
            return Ok(());
        }
        let from = self.pending.len();
        match ObjectType::of(entries) {
            Some(ObjectType::Array) => return Ok(()),
            Some(ObjectType::Group) => {
                let group = self.context.group(&location.path.to_string()).open()?;
                if group.has_details() {
                    self.pending.extend(
                        group
                            .members()
                            .iter()
                            .map(|member| PendingMember::member(member, depth)),
                    );
                    self.pending[from..].reverse();
                    return Ok(());
                }
            }
            None => {}
        }
        self.pending
            .extend(
                subfolders(&location.path, entries).map(|(name, path)| PendingMember {
                    depth,
                    name: name.to_owned(),
                    uri: path.to_string(),
                    stored_type: None,
                }),
            );
        self.pending[from..].reverse();
        Ok(())
    }
}

impl PendingMember {
    fn member(member: &Member, depth: usize) -> Self {
        let last = |uri: &str| {
            uri.trim_end_matches('/')
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        let name = member.name.clone().unwrap_or_else(|| last(&member.uri));
        Self {
            depth,
            name,
            uri: member.location.clone(),
            stored_type: member.object_type,
        }
    }
}

impl Iterator for Walk {
    type Item = Result<WalkEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.pending.pop()?;
        Some(self.visit(next))
    }
}
