//! `azulejo quickstart`.
use crate::args::QuickstartArgs;
use crate::error::{CliError, Result};
use crate::session::Session;
/// Runs the command.
pub fn run(_session: &mut Session, _args: &QuickstartArgs) -> Result<()> {
    Err(CliError::usage("not yet"))
}
