//! `azulejo agg`: aggregates.

use super::schema::print;
use crate::args::AggArgs;
use crate::error::{CliError, Result};
use crate::output::table::{Align, Table};
use crate::selection::{Coordinates, select};
use crate::session::Session;
use std::io::Write;

/// Runs the command.
pub fn run(session: &mut Session, args: AggArgs) -> Result<()> {
    let _ = (session, args);
    Err(CliError::usage("not yet"))
}
