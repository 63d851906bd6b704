//! Copying what an array or a group was at a time.

use super::transfer::{Note, refuse_other, target_uri};
use super::{ObjectHandle, find};
use crate::array::TimeRange;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::group::{Group, NewMember};
use crate::object_type::ObjectType;
use crate::storage::Uri;
use std::collections::HashSet;

/// What a copy of an earlier time holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CopiedPast {
    /// Arrays and groups that were copied.
    pub objects: usize,
    /// Cells in them.
    pub cells: u64,
    /// Members of groups that were not there at the time, or are gone now: the copy does not name
    /// them.
    pub missing: Vec<String>,
    /// Members that lie outside the group's folder: the copy names them where they are.
    pub elsewhere: Vec<String>,
}

impl ObjectHandle {
    /// Copies an array or a group as it was at a time (milliseconds since 1970-01-01 UTC), without
    /// its history: arrays in their schema of then, groups with the members of then that lie in
    /// their folder, theirs included.
    ///
    /// An error leaves nothing at `to`; a process that was killed leaves an
    /// [unfinished copy](Self::unfinished_copy), which the same copy begins anew.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there was no such array then, [`Error::AlreadyExists`] if something
    /// lies at `to`; errors of reading and writing.
    pub fn copy_at(&self, timestamp: u64, to: &str) -> Result<CopiedPast> {
        let context = &crate::manifest::without(&self.context);
        let (from_uri, _, found) = find(context, &self.uri)?;
        let to_uri = target_uri(&from_uri, to)?;
        let target = context.locate(&to_uri)?;
        if found == ObjectType::Group {
            was_there(context, &self.uri, timestamp)?;
        }
        let note = Note::of_past(&from_uri, timestamp);
        refuse_other(&target, &note, &to_uri)?;
        note.begin_anew(&target, &to_uri)?;
        let mut copied = CopiedPast::default();
        copy(context, &self.uri, found, timestamp, &target, &mut copied)
            .and_then(|()| Note::remove(&target))
            .inspect_err(|error| {
                // The first error is the one to report.
                let _ = match error {
                    // Somebody who has not seen the note was faster.
                    Error::AlreadyExists { uri } if *uri == to_uri.to_string() => {
                        Note::remove(&target)
                    }
                    // Nothing else lay there before.
                    _ => target.storage.delete(std::slice::from_ref(&target.path)),
                };
            })?;
        Ok(copied)
    }
}

/// An error if a group shows nothing at a time, and does later: when it was made is not stored.
fn was_there(context: &Context, uri: &str, timestamp: u64) -> Result<()> {
    let is_empty = |group: &Group| -> Result<bool> {
        Ok(group.members().is_empty() && group.metadata()?.is_empty())
    };
    let group = context.group(uri);
    let then = group.open_at(TimeRange::until(timestamp))?;
    match then.has_details() && is_empty(&then)? && !is_empty(&group.open()?)? {
        true => Err(Error::NotFound {
            uri: uri.to_owned(),
            what: "a group with anything in it at that time",
        }),
        false => Ok(()),
    }
}

fn copy(
    context: &Context,
    from: &str,
    found: ObjectType,
    timestamp: u64,
    to: &Location,
    copied: &mut CopiedPast,
) -> Result<()> {
    match found {
        ObjectType::Array => {
            let cells = context
                .array(from)
                .copy_in(timestamp, &to.path.to_string(), true)?;
            copied.cells = copied.cells.saturating_add(cells);
        }
        ObjectType::Group => {
            let group = context.group(from).open_at(TimeRange::until(timestamp))?;
            copy_group(context, &group, timestamp, to, copied)?;
        }
    }
    copied.objects += 1;
    Ok(())
}

fn copy_group(
    context: &Context,
    group: &Group,
    timestamp: u64,
    to: &Location,
    copied: &mut CopiedPast,
) -> Result<()> {
    let base = &group.location().path;
    let (mut members, mut done) = (Vec::new(), HashSet::new());
    for (name, uri) in places(context, group)? {
        let path = Uri::parse(&uri)?.path().clone();
        // What leads out of the folder would lead out of the copy, too.
        let inside = path
            .relative_to(base)
            .filter(|inside| !inside.is_empty() && inside.split('/').all(|part| part != ".."));
        let member = match inside {
            None => {
                copied.elsewhere.push(uri.clone());
                let found = context.object(&uri).object_type()?;
                let member = NewMember::at(&uri);
                match found {
                    Some(found) => member.typed(found),
                    None => {
                        copied.missing.push(uri);
                        continue;
                    }
                }
            }
            Some(inside) => {
                let Some(found) = context.object(&uri).object_type()? else {
                    copied.missing.push(uri);
                    continue;
                };
                if done.insert(inside.to_owned()) {
                    // One that was made later in the place of another.
                    match copy(context, &uri, found, timestamp, &to.join(inside), copied) {
                        Err(Error::NotFound { .. }) => {
                            to.storage.delete(&[to.path.join(inside)])?;
                            copied.missing.push(uri);
                            continue;
                        }
                        done => done?,
                    }
                }
                NewMember::relative(inside).typed(found)
            }
        };
        members.push(match name {
            Some(name) => member.named(name),
            None => member,
        });
    }
    // The group is there when its members are.
    let new = context.group(&to.path.to_string());
    new.create_in(true)?;
    let mut editor = new.edit()?;
    for member in members {
        editor.add(member)?;
    }
    editor.commit()?;
    let mut changes = new.change_metadata()?;
    for (key, value) in &group.metadata()? {
        changes.put(key.clone(), value.clone())?;
    }
    changes.commit()
}

/// The members of a group with their names. One that has never stored any has those that lie in its
/// folder.
fn places(context: &Context, group: &Group) -> Result<Vec<(Option<String>, String)>> {
    if group.has_details() {
        let members = group.members().iter();
        let named = members.map(|member| (member.name.clone(), member.location.clone()));
        return Ok(named.collect());
    }
    let mut places = Vec::new();
    for entry in context.object(&group.uri().to_string()).walk(1)? {
        let entry = entry?;
        if entry.object_type.is_some() {
            places.push((None, entry.uri));
        }
    }
    Ok(places)
}
