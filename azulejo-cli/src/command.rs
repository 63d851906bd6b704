//! The commands, one file each.

mod agg;
mod as_tiledb;
mod cat;
mod check;
mod consolidate;
mod create;
mod delete;
mod evolve;
mod export;
mod fleet;
mod fragments;
mod group;
mod history;
mod import;
mod info;
mod ls;
mod maintain;
mod manifest;
mod meta;
mod policy;
mod quickstart;
mod restore;
mod schema;
mod serve;
mod shell;
mod snapshot;
#[cfg(feature = "sql")]
mod sql;
mod survey;
mod transfer;
mod tree;
mod vacuum;

use crate::args::{Cli, Command};
use crate::error::{CliError, NO_SCHEMA, Result, UNFINISHED_COPY, UNFINISHED_DELETION};
use crate::session::Session;
use azulejo::group::ObjectType;
use azulejo::storage::Uri;

/// Runs the command asked for.
pub fn run(cli: Cli) -> Result<()> {
    let mut session = Session::new(&cli.global)?;
    let done = dispatch(&mut session, cli.command).map_err(|error| blame(&session, error));
    let done = done.and_then(|()| session.output.finish());
    if cli.global.stats {
        anstream::eprintln!("{}", session.context.io_stats());
    }
    done
}

/// Tells a part that an object lacks, which is damage, from an object that is not there.
fn blame(session: &Session, error: CliError) -> CliError {
    let CliError::Engine(azulejo::Error::NotFound { uri, what }) = &error else {
        return error;
    };
    let Ok(whole) = Uri::parse(uri) else {
        return error;
    };
    let mut folder = whole.path().parent();
    let mut below = whole.path().name().to_owned();
    while let Some(path) = folder {
        let text = path.to_string();
        if below.starts_with("__")
            && let Ok(Some(found)) = session.context.object(&text).object_type()
        {
            let uri = uri.clone();
            let object = match found {
                ObjectType::Array => "array",
                ObjectType::Group => "group",
            };
            return CliError::Missing { uri, what, object };
        }
        below = path.name().to_owned();
        folder = path.parent();
    }
    let absent = |what| -> CliError {
        let uri = uri.clone();
        azulejo::Error::NotFound { uri, what }.into()
    };
    match session.context.object(uri).object_type() {
        Ok(Some(ObjectType::Group)) if what_is_no_array(&error) => {
            absent("it is a group, not an array")
        }
        // Something else is missing: what lies beside it may be of one that was there before.
        Ok(Some(_)) if !what_is_no_array(&error) => error,
        _ if has_remains(session, &whole) => absent(UNFINISHED_DELETION),
        // Its schema comes last of all.
        _ if matches!(session.context.object(uri).unfinished_copy(), Ok(Some(_))) => {
            absent(UNFINISHED_COPY)
        }
        _ if has_commits(session, &whole) => CliError::Missing {
            uri: whole.path().join("__schema").to_string(),
            what: NO_SCHEMA,
            object: "array",
        },
        _ => error,
    }
}

/// Whether an array was looked for, and nothing else.
fn what_is_no_array(error: &CliError) -> bool {
    matches!(error, CliError::Engine(azulejo::Error::NotFound { what, .. }) if what.contains("there is no schema"))
}

/// Whether a deletion has left something in a folder: its schema went first.
fn has_remains(session: &Session, whole: &Uri) -> bool {
    let Ok(location) = session.context.locate(whole) else {
        return false;
    };
    let found = location
        .storage
        .find(&location.path, &["__azulejo_deleted"]);
    found.is_ok_and(|found| !found.is_empty())
}

/// Whether a folder without a schema has been an array: something was committed there.
fn has_commits(session: &Session, whole: &Uri) -> bool {
    let Ok(location) = session.context.locate(whole) else {
        return false;
    };
    let listed = |folder: &str| location.storage.list(&location.path.join(folder));
    let has_schema =
        listed("__schema").is_ok_and(|entries| entries.iter().any(|entry| !entry.is_dir));
    !has_schema && listed("__commits").is_ok_and(|entries| !entries.is_empty())
}

/// Runs a command in a session.
fn dispatch(session: &mut Session, command: Command) -> Result<()> {
    match command {
        Command::Quickstart(args) => quickstart::run(session, &args),
        Command::Info(args) => info::run(session, &args),
        Command::Schema(args) => schema::run(session, &args),
        Command::Ls(args) => ls::run(session, &args),
        Command::Tree(args) => tree::run(session, &args),
        Command::Fragments(args) => fragments::run(session, &args),
        Command::History(args) => history::run(session, &args),
        Command::Snapshot(args) => snapshot::run(session, &args),
        Command::Restore(args) => restore::run(session, &args),
        Command::Meta(args) => meta::run(session, &args),
        Command::Cat(args) => cat::run(session, &args),
        Command::Export(args) => export::run(session, &args),
        Command::Import(args) => import::run(session, &args.with_place()?),
        Command::Agg(args) => agg::run(session, &args),
        #[cfg(feature = "sql")]
        Command::Sql(args) => sql::run(session, &args),
        #[cfg(feature = "distributed")]
        Command::Worker(args) => sql::worker::run(session, &args),
        Command::Consolidate(args) => consolidate::run(session, &args),
        Command::Maintain(args) => maintain::run(session, &args),
        Command::Check(args) => check::run(session, &args),
        Command::Manifest(args) => manifest::run(session, &args),
        Command::Serve(args) => serve::run(session, &args),
        Command::View(args) => serve::view(session, &args),
        Command::Vacuum(args) => vacuum::run(session, &args),
        Command::Create(args) => create::run(session, &args),
        Command::Evolve(args) => evolve::run(session, &args),
        Command::Upgrade(args) => evolve::upgrade(session, &args),
        Command::Delete(args) => delete::run(session, &args),
        Command::Group(args) => group::run(session, &args),
        Command::Copy(args) => transfer::copy(session, &args),
        Command::Move(args) => transfer::rename(session, &args),
        Command::AsTiledb(args) => as_tiledb::run(session, &args),
        Command::Completions(args) => shell::completions(session, &args),
        Command::Man(args) => shell::man(session, &args),
    }
}
