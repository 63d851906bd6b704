//! `azulejo group`: making groups and changing their members.

use crate::args::{AddArgs, GroupArgs, GroupCommand, TypeArg};
use crate::error::Result;
use crate::session::Session;
use azulejo::Error;
use azulejo::group::{NewMember, ObjectType};
use serde_json::json;
use std::io::Write;

/// Runs the command.
pub fn run(session: &mut Session, args: &GroupArgs) -> Result<()> {
    let (done, uri) = match &args.command {
        GroupCommand::Create { uri } => {
            let group = session.context.group(uri);
            match group.create() {
                // By this command, which then was cut short.
                Err(Error::AlreadyExists { .. }) if is_empty(session, uri)? => {}
                created => created?,
            }
            ("created", uri)
        }
        GroupCommand::Add(args) => {
            add(session, args)?;
            ("added to", &args.group)
        }
        GroupCommand::Rm { group, members } => {
            let mut editor = session.context.group(group).edit()?;
            members
                .iter()
                .try_for_each(|member| editor.remove(member))?;
            editor.commit()?;
            ("removed from", group)
        }
    };
    if session.output.json {
        let members = session.context.group(uri).open()?.members().len();
        return session
            .output
            .write_json(&json!({ "group": uri, "members": members }));
    }
    Ok(writeln!(session.output, "{done} {uri}")?)
}

fn is_empty(session: &Session, uri: &str) -> Result<bool> {
    match session.context.group(uri).open() {
        Err(Error::NotFound { .. } | Error::Encryption { .. }) => Ok(false),
        group => {
            let group = group?;
            Ok(group.members().is_empty() && group.metadata()?.is_empty())
        }
    }
}

fn add(session: &Session, args: &AddArgs) -> Result<()> {
    let mut member = if args.relative {
        NewMember::relative(&args.member)
    } else {
        NewMember::at(&args.member)
    };
    if let Some(name) = &args.name {
        member = member.named(name);
    }
    if let Some(object_type) = args.object_type {
        member = member.typed(match object_type {
            TypeArg::Array => ObjectType::Array,
            TypeArg::Group => ObjectType::Group,
        });
    }
    if args.replace {
        member = member.replacing();
    }
    let mut editor = session.context.group(&args.group).edit()?;
    editor.add(member)?;
    Ok(editor.commit()?)
}
