//! `azulejo agg`.
use crate::args::AggArgs;
use crate::error::{CliError, Result};
use crate::session::Session;
/// Runs the command.
pub fn run(_session: &mut Session, _args: AggArgs) -> Result<()> {
    Err(CliError::usage("not yet"))
}
