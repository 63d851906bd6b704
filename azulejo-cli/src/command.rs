//! The commands, one file each.

mod agg;
mod cat;
mod export;
mod fragments;
mod info;
mod ls;
mod meta;
mod quickstart;
mod schema;
mod tree;

use crate::args::{Cli, Command};
use crate::error::Result;
use crate::session::Session;

/// Runs the command asked for.
pub fn run(cli: Cli) -> Result<()> {
    let mut session = Session::new(&cli.global)?;
    match cli.command {
        Command::Quickstart(args) => quickstart::run(&mut session, &args),
        Command::Info(args) => info::run(&mut session, &args),
        Command::Schema(args) => schema::run(&mut session, &args),
        Command::Ls(args) => ls::run(&mut session, &args),
        Command::Tree(args) => tree::run(&mut session, &args),
        Command::Fragments(args) => fragments::run(&mut session, &args),
        Command::Meta(args) => meta::run(&mut session, &args),
        Command::Cat(args) => cat::run(&mut session, &args),
        Command::Export(args) => export::run(&mut session, &args),
        Command::Agg(args) => agg::run(&mut session, args),
    }?;
    session.output.finish()
}
