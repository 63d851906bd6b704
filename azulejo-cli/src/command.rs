//! The commands, one file each.

mod agg;
mod cat;
mod check;
mod consolidate;
mod create;
mod delete;
mod evolve;
mod export;
mod fragments;
mod group;
mod import;
mod info;
mod ls;
mod manifest;
mod meta;
mod quickstart;
mod schema;
mod transfer;
mod tree;
mod vacuum;

use crate::args::{Cli, Command};
use crate::error::Result;
use crate::session::Session;

/// Runs the command asked for.
pub fn run(cli: Cli) -> Result<()> {
    let mut session = Session::new(&cli.global)?;
    let done = dispatch(&mut session, cli.command).and_then(|()| session.output.finish());
    if cli.global.stats {
        anstream::eprintln!("{}", session.context.io_stats());
    }
    done
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
        Command::Meta(args) => meta::run(session, &args),
        Command::Cat(args) => cat::run(session, &args),
        Command::Export(args) => export::run(session, &args),
        Command::Import(args) => import::run(session, &args),
        Command::Agg(args) => agg::run(session, args),
        Command::Consolidate(args) => consolidate::run(session, &args),
        Command::Check(args) => check::run(session, &args),
        Command::Manifest(args) => manifest::run(session, &args),
        Command::Vacuum(args) => vacuum::run(session, &args),
        Command::Create(args) => create::run(session, &args),
        Command::Evolve(args) => evolve::run(session, &args),
        Command::Upgrade(args) => evolve::upgrade(session, &args),
        Command::Delete(args) => delete::run(session, &args),
        Command::Group(args) => group::run(session, &args),
        Command::Copy(args) => transfer::copy(session, &args),
        Command::Move(args) => transfer::rename(session, &args),
    }
}
