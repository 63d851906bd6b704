//! `tiledb_group_t`.

use crate::array::{give_value, take_value};
use crate::boundary::{
    Bytes, In, InOut, Kind, Out, Pointer, Ptr, Str, Text, capi, capi_free, malloced_text,
};
use crate::config::{Config, Settings};
use crate::ctx::Context;
use crate::enums::{QueryType, datatype_id, query_type};
use crate::error::{Failure, Result};
use crate::metadata::Changes;
use crate::object::type_id;
use crate::strings::{Keep, StringHandle, lock};
use azulejo::array::TimeRange;
use azulejo::consolidate::VacuumOptions;
use azulejo::group::{Group, GroupEditor, Member, NewMember, ObjectType};
use azulejo::storage::{StorePath, Uri};
use azulejo_format::metadata::Metadata;
use std::ffi::c_char;
use std::fmt::Write;
use std::sync::Mutex;

/// `tiledb_group_t`.
#[derive(Debug)]
pub struct GroupHandle {
    uri: String,
    state: Mutex<State>,
    keep: Keep,
}

impl Kind for GroupHandle {
    const NAME: &'static str = "group";
}

#[derive(Debug, Default)]
struct State {
    settings: Option<Settings>,
    open: Option<Open>,
}

/// What messages say of a group.
#[derive(Debug)]
pub struct GroupContent {
    /// Its members.
    pub members: Vec<Member>,
    /// Its key-values, or those that are to be stored.
    pub metadata: Changes,
}

/// A group that is open.
#[derive(Debug)]
struct Open {
    kind: QueryType,
    engine: azulejo::Context,
    group: Group,
    metadata: Option<Metadata>,
    /// The members that a message said, in the place of the group's.
    told: Option<Vec<Member>>,
    editor: Option<GroupEditor>,
    changes: Changes,
    /// The time that changes get; `None` for now.
    time: Option<u64>,
    /// Which of the key-values was asked for last by its position.
    last: crate::metadata::Cursor,
}

impl Open {
    fn metadata(&mut self) -> Result<&Metadata> {
        if self.kind != QueryType::Read {
            return Err("Cannot get metadata; Group was not opened in read mode".into());
        }
        if self.metadata.is_none() {
            self.metadata = Some(self.group.metadata()?);
        }
        self.metadata
            .as_ref()
            .ok_or_else(|| Failure::new("metadata were not read"))
    }

    fn members(&self) -> Result<&[Member]> {
        if self.kind != QueryType::Read {
            return Err("Cannot get members; Group was not opened in read mode".into());
        }
        Ok(self.told.as_deref().unwrap_or_else(|| self.group.members()))
    }

    fn member(&self, key: &str) -> Result<&Member> {
        let members = self.members()?;
        let found = match &self.told {
            Some(_) => members.iter().find(|member| member.key() == key),
            None => self.group.member(key),
        };
        found.ok_or_else(|| Failure::new(format!("{key} does not exist in group")))
    }

    /// Takes over what a message says: all of it is stored at closing, if the group is open for
    /// that.
    fn tell(&mut self, content: GroupContent) -> Result<()> {
        let GroupContent { members, metadata } = content;
        self.tell_metadata(metadata)?;
        if self.kind == QueryType::Read {
            self.told = Some(members);
            return Ok(());
        }
        let old: Vec<String> = self
            .group
            .members()
            .iter()
            .map(|m| m.key().to_owned())
            .collect();
        for key in old
            .iter()
            .filter(|key| !members.iter().any(|m| m.key() == key.as_str()))
        {
            self.editor()?.remove(key)?;
        }
        for member in members {
            let mut new = match member.relative {
                true => NewMember::relative(member.uri),
                false => NewMember::at(member.uri),
            };
            if let Some(name) = member.name {
                new = new.named(name);
            }
            if let Some(kind) = member.object_type {
                new = new.typed(kind);
            }
            self.editor()?.add(new.replacing())?;
        }
        Ok(())
    }

    fn tell_metadata(&mut self, changes: Changes) -> Result<()> {
        if self.kind != QueryType::Read {
            self.changes()?.extend(changes);
            return Ok(());
        }
        let mut metadata = self.metadata()?.clone();
        crate::metadata::apply(&mut metadata, changes);
        (self.metadata, self.last) = (Some(metadata), None);
        Ok(())
    }

    fn editor(&mut self) -> Result<&mut GroupEditor> {
        let why = "Cannot change members; Group was not opened in write or modify_exclusive mode";
        self.editor.as_mut().ok_or_else(|| Failure::new(why))
    }

    fn changes(&mut self) -> Result<&mut Changes> {
        if self.editor.is_none() {
            return Err(
                "Cannot put metadata; Group was not opened in write or modify_exclusive mode"
                    .into(),
            );
        }
        Ok(&mut self.changes)
    }

    /// Stores what was changed; what could not be stored is there for another try.
    fn flush(&mut self) -> Result<()> {
        if let Some(editor) = &self.editor {
            editor.clone().commit()?;
            // These members are stored.
            self.editor = Some(self.group.clone().into_editor(self.time));
        }
        if !self.changes.is_empty() {
            let writer = self.group.change_metadata()?;
            crate::metadata::store(writer, self.changes.clone(), self.time)?;
            self.changes.clear();
        }
        Ok(())
    }
}

impl GroupHandle {
    /// What messages say of the group, which must be open.
    pub fn content(&self) -> Result<GroupContent> {
        self.with(|open| {
            if open.kind != QueryType::Read {
                return Ok(GroupContent {
                    members: open.group.members().to_vec(),
                    metadata: open.changes.clone(),
                });
            }
            let metadata = open.metadata()?.clone().into_iter();
            Ok(GroupContent {
                metadata: metadata.map(|(key, value)| (key, Some(value))).collect(),
                members: open.members()?.to_vec(),
            })
        })
    }

    /// Takes over what a message says.
    pub fn tell(&self, settings: Option<Settings>, content: Option<GroupContent>) -> Result<()> {
        if let Some(settings) = settings {
            lock(&self.state).settings = Some(settings);
        }
        match content {
            Some(content) => self.with(|open| open.tell(content)),
            None => Ok(()),
        }
    }

    /// Takes over key-values of a message.
    pub fn tell_metadata(&self, changes: Changes) -> Result<()> {
        self.with(|open| open.tell_metadata(changes))
    }

    /// Its own settings, if it has some.
    pub fn settings(&self) -> Option<Settings> {
        lock(&self.state).settings.clone()
    }

    fn with<R>(&self, body: impl FnOnce(&mut Open) -> Result<R>) -> Result<R> {
        let mut state = lock(&self.state);
        body(
            state
                .open
                .as_mut()
                .ok_or_else(|| Failure::new("Group is not open"))?,
        )
    }
}

fn open(ctx: &Context, handle: &GroupHandle, kind: QueryType) -> Result<()> {
    let mut state = lock(&handle.state);
    if state.open.is_some() {
        return Err("Cannot open group; Group already open".into());
    }
    let settings = ctx.settings_with(state.settings.as_ref());
    let engine = ctx.engine_with(state.settings.as_ref())?;
    let range = TimeRange {
        start: settings.number("sm.group.timestamp_start")?,
        end: settings.number("sm.group.timestamp_end")?,
    };
    let time = (range.end != u64::MAX).then_some(range.end);
    let missing = |error| match error {
        azulejo::Error::NotFound { uri, .. } => Failure::new(format!(
            "[TileDB::Group] Error: Cannot open group; Group does not exist. ({uri})"
        )),
        other => Failure::from(other),
    };
    // What is changed is the group as it was at the end of the range.
    let is_empty = range.start > range.end;
    let range = if kind == QueryType::Read || is_empty {
        range
    } else {
        TimeRange::until(range.end)
    };
    let group = engine.group(&handle.uri).open_at(range).map_err(missing)?;
    let editor = match kind {
        QueryType::Read => None,
        QueryType::Write | QueryType::ModifyExclusive => Some(group.clone().into_editor(time)),
        QueryType::Delete | QueryType::Update => {
            return Err("Cannot open group; Invalid query type".into());
        }
    };
    state.open = Some(Open {
        kind,
        engine,
        group,
        metadata: None,
        told: None,
        editor,
        changes: Changes::new(),
        time,
        last: None,
    });
    Ok(())
}

fn add(
    handle: &GroupHandle,
    uri: &str,
    relative: u8,
    name: Option<&str>,
    kind: Option<ObjectType>,
) -> Result<()> {
    handle.with(|open| {
        let name = name.filter(|name| !name.is_empty());
        // As in the reference, a member that was there before gives way.
        let member = if relative != 0 { NewMember::relative(uri) } else { NewMember::at(uri) };
        let mut member = member.replacing_earlier();
        if let Some(name) = name {
            member = member.named(name);
        }
        if let Some(kind) = kind {
            member = member.typed(kind);
        }
        open.editor()?.add(member).map_err(|error| match error {
            azulejo::Error::AlreadyExists { .. } => Failure::new(format!(
                "Cannot add group member {}, a member with the same name or URI has already been added.",
                name.unwrap_or(uri)
            )),
            other => other.into(),
        })
    })
}

fn give_member(member: &Member, uri: &Out<Ptr<StringHandle>>, id: &Out<i32>) -> Result<()> {
    id.set(type_id(member.object_type))?;
    uri.give(StringHandle::new(crate::uri::absolute(&member.location)))
}

/// The last part of a path.
fn last(uri: &str) -> &str {
    uri.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default()
}

/// A group and its tree, in the reference's layout.
fn text_of(handle: &GroupHandle, recursive: bool) -> Result<String> {
    handle.with(|open| {
        let uri = crate::uri::folder(&handle.uri);
        let mut text = format!("{} GROUP\n", last(&uri));
        let mut visited = vec![open.group.location().path.without_steps()];
        dump(&open.group, recursive, 0, &mut visited, &mut text);
        Ok(text)
    })
}

/// The tree of a group, in the reference's layout.
fn dump(
    group: &Group,
    recursive: bool,
    indents: usize,
    visited: &mut Vec<StorePath>,
    out: &mut String,
) {
    for member in group.members() {
        let kind = match member.object_type {
            Some(ObjectType::Array) => "ARRAY",
            Some(ObjectType::Group) => "GROUP",
            None => "INVALID",
        };
        let name = member.name.as_deref().unwrap_or_else(|| last(&member.uri));
        let _ = write!(out, "|{} {name} {kind}", "-".repeat(2 + 2 * indents));
        let place = Uri::parse(&member.location).map(|uri| uri.path().without_steps());
        let inside = (recursive && member.object_type == Some(ObjectType::Group))
            .then(|| place.ok())
            .flatten()
            .filter(|place| !visited.contains(place));
        let Some(place) = inside else {
            out.push('\n');
            continue;
        };
        match group.context().group(&member.location).open() {
            Ok(below) => {
                out.push('\n');
                visited.push(place);
                dump(&below, recursive, indents + 2, visited, out);
                visited.pop();
            }
            Err(_) => out.push_str(" (does not exist)\n"),
        }
    }
}

capi! {
    /// Creates an empty group.
    fn tiledb_group_create(ctx, uri: Text) {
        let uri = uri.opt()?.ok_or_else(|| Failure::new("C API: argument `group_uri` may not be nullptr"))?;
        ctx.engine()?.group(uri).create().map_err(|error| match error {
            azulejo::Error::AlreadyExists { uri, .. } => {
                Failure::new(format!("Group: Cannot create group; Group '{uri}' already exists"))
            }
            other => other.into(),
        })?;
    }

    /// A handle on the group at a URI, which is not looked at before it is opened.
    fn tiledb_group_alloc(ctx, uri: Text, group: Out<Ptr<GroupHandle>>) {
        let uri = uri.get()?;
        if uri.is_empty() {
            return Err("Failed to allocate TileDB group API object; Invalid URI".into());
        }
        // It stays where it is now when the current folder changes.
        let uri = crate::uri::absolute(uri);
        group.give(GroupHandle { uri, state: Mutex::default(), keep: Keep::default() })?;
    }

    /// Opens the group.
    fn tiledb_group_open(ctx, group: In<GroupHandle>, kind: i32) {
        open(ctx, group.get()?, query_type(kind)?)?;
    }

    /// Stores what was changed and closes the group; it stays open if that fails.
    fn tiledb_group_close(ctx, group: In<GroupHandle>) {
        let mut state = lock(&group.get()?.state);
        if let Some(open) = &mut state.open {
            open.flush()?;
        }
        state.open = None;
    }

    /// Sets settings of the group's own; it must not be open.
    fn tiledb_group_set_config(ctx, group: In<GroupHandle>, config: In<Config>) {
        let mut state = lock(&group.get()?.state);
        if state.open.is_some() {
            return Err("Cannot set config; Group is open".into());
        }
        state.settings = Some(config.get()?.settings());
    }

    /// A copy of the group's settings.
    fn tiledb_group_get_config(ctx, group: In<GroupHandle>, config: Out<Ptr<Config>>) {
        let own = lock(&group.get()?.state).settings.clone();
        config.give(Config::new(ctx.settings_with(own.as_ref())))?;
    }

    /// Puts a key-value; it is stored when the group is closed.
    fn tiledb_group_put_metadata(ctx, group: In<GroupHandle>, key: Text, id: i32, num: u32, value: Bytes) {
        let entry = (key.get()?.to_owned(), Some(take_value(id, num, &value)?));
        group.get()?.with(|open| { open.changes()?.push(entry); Ok(()) })?;
    }

    /// Deletes a group, which must be open in exclusive mode; with `recursive` its members too.
    fn tiledb_group_delete_group(ctx, group: In<GroupHandle>, uri: Text, recursive: u8) {
        let (group, uri) = (group.get()?, uri.get()?);
        let engine = group.with(|open| {
            if open.kind != QueryType::ModifyExclusive {
                return Err("Query type must be MODIFY_EXCLUSIVE to delete a group.".into());
            }
            Ok(open.engine.clone())
        })?;
        let object = engine.object(uri);
        if object.object_type()? != Some(ObjectType::Group) {
            return Err(Failure::new(format!("Cannot delete group; Group does not exist. ({uri})")));
        }
        object.delete(recursive != 0)?;
        lock(&group.state).open = None;
    }

    /// Deletes a key-value when the group is closed.
    fn tiledb_group_delete_metadata(ctx, group: In<GroupHandle>, key: Text) {
        let key = key.get()?.to_owned();
        group.get()?.with(|open| { open.changes()?.push((key, None)); Ok(()) })?;
    }

    /// The value of a key, null if there is none; it lives as long as the handle.
    fn tiledb_group_get_metadata(ctx, group: In<GroupHandle>, key: Text, id: Out<i32>, num: Out<u32>, value: Out<Pointer>) {
        let (group, key) = (group.get()?, key.get()?);
        group.with(|open| give_value(&group.keep, open.metadata()?.get(key), &id, &num, &value))?;
    }

    /// The number of key-values.
    fn tiledb_group_get_metadata_num(ctx, group: In<GroupHandle>, num: Out<u64>) {
        num.set(group.get()?.with(|open| Ok(open.metadata()?.len() as u64))?)?;
    }

    /// A key-value by its position in the order of keys.
    fn tiledb_group_get_metadata_from_index(
        ctx, group: In<GroupHandle>, index: u64, key: Out<Str>, key_len: Out<u32>, id: Out<i32>, num: Out<u32>,
        value: Out<Pointer>
    ) {
        let group = group.get()?;
        group.with(|open| {
            let mut last = std::mem::take(&mut open.last);
            let found = crate::metadata::at(open.metadata()?, index, &mut last);
            let (name, found) = found.ok_or_else(|| Failure::new("Cannot get metadata; index out of bounds"))?;
            key.set(group.keep.text(name))?;
            key_len.set(u32::try_from(name.len()).unwrap_or(u32::MAX))?;
            give_value(&group.keep, Some(found), &id, &num, &value)?;
            open.last = last;
            Ok(())
        })?;
    }

    /// Whether there is a key, and its type; the place of the type stays as it is if there is none.
    fn tiledb_group_has_metadata_key(ctx, group: In<GroupHandle>, key: Text, id: InOut<i32>, has: Out<i32>) {
        let key = key.get()?;
        let found = group.get()?.with(|open| Ok(open.metadata()?.get(key).map(|value| value.datatype)))?;
        if let Some(datatype) = found {
            id.set(datatype_id(datatype))?;
        }
        has.set(found.is_some().into())?;
    }

    /// Adds a member; it is stored when the group is closed.
    fn tiledb_group_add_member(ctx, group: In<GroupHandle>, uri: Text, relative: u8, name: Text) {
        add(group.get()?, uri.get()?, relative, name.opt()?, None)?;
    }

    /// Adds a member whose type is known.
    fn tiledb_group_add_member_with_type(ctx, group: In<GroupHandle>, uri: Text, relative: u8, name: Text, id: i32) {
        let kind = match id {
            1 => ObjectType::Group,
            2 => ObjectType::Array,
            _ => return Err(Failure::new(format!("{id} is no type of a group member"))),
        };
        add(group.get()?, uri.get()?, relative, name.opt()?, Some(kind))?;
    }

    /// Removes a member by its name or URI; what it names stays.
    fn tiledb_group_remove_member(ctx, group: In<GroupHandle>, name: Text) {
        let name = name.get()?;
        group.get()?.with(|open| {
            Ok(open.editor()?.remove(name)?)
        })?;
    }

    /// The number of members.
    fn tiledb_group_get_member_count(ctx, group: In<GroupHandle>, count: Out<u64>) {
        count.set(group.get()?.with(|open| Ok(open.members()?.len() as u64))?)?;
    }

    /// A member by its position in the order of names.
    fn tiledb_group_get_member_by_index_v2(
        ctx, group: In<GroupHandle>, index: u64, uri: Out<Ptr<StringHandle>>, id: Out<i32>, name: Out<Ptr<StringHandle>>
    ) {
        group.get()?.with(|open| {
            let members = open.members()?;
            let found = usize::try_from(index).ok().and_then(|index| members.get(index));
            let found = found.ok_or_else(|| Failure::new(format!("there is no member {index} of {}", members.len())))?;
            if let Some(text) = &found.name {
                name.give(StringHandle::new(text.clone()))?;
            }
            give_member(found, &uri, &id)
        })?;
    }

    /// A member by its name.
    fn tiledb_group_get_member_by_name_v2(
        ctx, group: In<GroupHandle>, name: Text, uri: Out<Ptr<StringHandle>>, id: Out<i32>
    ) {
        let name = name.get()?;
        group.get()?.with(|open| {
            give_member(open.member(name)?, &uri, &id)
        })?;
    }

    /// Whether a member's URI is relative to the group.
    fn tiledb_group_get_is_relative_uri_by_name(ctx, group: In<GroupHandle>, name: Text, relative: Out<u8>) {
        let name = name.get()?;
        group.get()?.with(|open| {
            relative.set(open.member(name)?.relative.into())
        })?;
    }

    /// Whether the group is open.
    fn tiledb_group_is_open(ctx, group: In<GroupHandle>, is_open: Out<i32>) {
        is_open.set(lock(&group.get()?.state).open.is_some().into())?;
    }

    /// The URI; it lives as long as the handle.
    fn tiledb_group_get_uri(ctx, group: In<GroupHandle>, uri: Out<Str>) {
        let group = group.get()?;
        uri.set(group.keep.text(&crate::uri::absolute(&group.uri)))?;
    }

    /// What the group is open for.
    fn tiledb_group_get_query_type(ctx, group: In<GroupHandle>, kind: Out<i32>) {
        kind.set(group.get()?.with(|open| Ok(open.kind as i32))?)?;
    }

    /// The group's members as text for people.
    fn tiledb_group_dump_str_v2(ctx, group: In<GroupHandle>, out: Out<Ptr<StringHandle>>, recursive: u8) {
        out.give(StringHandle::new(text_of(group.get()?, recursive != 0)?))?;
    }

    /// The group's members as text for people, to be freed with `free`. A name that libtiledb had
    /// until 2.29.
    fn tiledb_group_dump_str(ctx, group: In<GroupHandle>, out: Out<Pointer<c_char>>, recursive: u8) {
        out.set(malloced_text(&text_of(group.get()?, recursive != 0)?))?;
    }

    /// Makes one file of a group's metadata.
    fn tiledb_group_consolidate_metadata(ctx, uri: Text, config: In<Config>) {
        let own = config.opt()?.map(Config::settings);
        let (engine, settings) = (ctx.engine_with(own.as_ref())?, ctx.settings_with(own.as_ref()));
        engine.group(uri.get()?).consolidate_metadata(crate::maintain::window(&settings)?)?;
    }

    /// Removes files of a group's metadata that a consolidation has replaced.
    fn tiledb_group_vacuum_metadata(ctx, uri: Text, config: In<Config>) {
        let own = config.opt()?.map(Config::settings);
        let engine = ctx.engine_with(own.as_ref())?;
        let options = VacuumOptions::new().without_bytes(true);
        engine.group(uri.get()?).vacuum_metadata(options)?;
    }
}

capi_free! {
    fn tiledb_group_free(GroupHandle);
}
