//! Groups.

use super::message::{self, Format};
use super::rest_capnp::{array_metadata, group, group_member};
use super::words::count;
use super::{metadata, settings};
use crate::boundary::{In, Out, Ptr, capi};
use crate::buffer::Buffer;
use crate::config::Settings;
use crate::error::{Failure, Result};
use crate::group::{GroupContent, GroupHandle};
use azulejo::group::{Member, ObjectType};

fn write(from: &GroupContent, to_settings: &Settings, mut to: group::Builder<'_>) -> Result<()> {
    settings::write(to_settings, to.reborrow().init_config())?;
    let mut details = to.init_group();
    if !from.members.is_empty() {
        let mut list = details.reborrow().init_members(count(&from.members)?);
        for (index, member) in (0u32..).zip(&from.members) {
            write_member(member, list.reborrow().get(index));
        }
    }
    if !from.metadata.is_empty() {
        metadata::write(&from.metadata, details.init_metadata())?;
    }
    Ok(())
}

fn write_member(from: &Member, mut to: group_member::Builder<'_>) {
    to.set_type(match from.object_type {
        Some(ObjectType::Array) => "ARRAY",
        Some(ObjectType::Group) => "GROUP",
        None => "INVALID",
    });
    let uri = match from.relative {
        true => from.uri.clone(),
        false => crate::uri::absolute(&from.location),
    };
    to.set_relative(from.relative);
    let last = uri
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    to.set_name(from.name.as_deref().unwrap_or(last));
    to.set_uri(uri.as_str());
}

fn read_member(from: group_member::Reader<'_>) -> Result<Member> {
    if !from.has_uri() || !from.has_type() {
        return Err("Incomplete group member type in deserialization, missing uri or type".into());
    }
    let object_type = match from.get_type()?.to_str()? {
        "ARRAY" => Some(ObjectType::Array),
        "GROUP" => Some(ObjectType::Group),
        "INVALID" => None,
        other => {
            return Err(Failure::new(format!(
                "Cannot deserialize; {other:?} is no type of a group member"
            )));
        }
    };
    let uri = from.get_uri()?.to_str()?.to_owned();
    let name = from.get_name()?.to_str()?;
    Ok(Member {
        name: (!name.is_empty()).then(|| name.to_owned()),
        location: uri.clone(),
        uri,
        relative: from.get_relative(),
        object_type,
    })
}

fn read(from: group::Reader<'_>) -> Result<(Option<Settings>, Option<GroupContent>)> {
    let own = match from.has_config() {
        true => Some(settings::read(from.get_config()?)?),
        false => None,
    };
    if !from.has_group() {
        return Ok((own, None));
    }
    let details = from.get_group()?;
    let mut members = Vec::new();
    for member in details.get_members()? {
        members.push(read_member(member)?);
    }
    let metadata = match details.has_metadata() {
        true => metadata::read(details.get_metadata()?)?,
        false => Vec::new(),
    };
    Ok((own, Some(GroupContent { members, metadata })))
}

capi! {
    /// A message with an open group.
    fn tiledb_serialize_group(ctx, group: In<GroupHandle>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>) {
        let _ = client_side;
        let group = group.get()?;
        let (content, settings) = (group.content()?, ctx.settings_with(group.settings().as_ref()));
        let bytes = message::encode::<group::Owned>(Format::of(kind)?, |to| write(&content, &settings, to))?;
        buffer.give(Buffer::of(bytes))?;
    }

    /// Gives an open group the members and key-values of a message: to be seen or, of a group that
    /// is open for writing, to be stored in the place of those that it has.
    fn tiledb_deserialize_group(ctx, buffer: In<Buffer>, kind: i32, client_side: i32, group: In<GroupHandle>) {
        let _ = client_side;
        let bytes = buffer.get()?.bytes()?;
        let (settings, content) = message::decode::<group::Owned, _>(Format::of(kind)?, &bytes, read)?;
        group.get()?.tell(settings, content)?;
    }

    /// A message with a group's key-values.
    fn tiledb_serialize_group_metadata(ctx, group: In<GroupHandle>, kind: i32, buffer: Out<Ptr<Buffer>>) {
        let content = group.get()?.content()?;
        let bytes = message::encode::<array_metadata::Owned>(
            Format::of(kind)?, |to| metadata::write(&content.metadata, to)
        )?;
        buffer.give(Buffer::of(bytes))?;
    }

    /// Gives an open group the key-values of a message.
    fn tiledb_deserialize_group_metadata(ctx, group: In<GroupHandle>, kind: i32, buffer: In<Buffer>) {
        let bytes = buffer.get()?.bytes()?;
        let changes = message::decode::<array_metadata::Owned, _>(Format::of(kind)?, &bytes, metadata::read)?;
        group.get()?.tell_metadata(changes)?;
    }
}
