//! `azulejo completions` and `azulejo man`: what shells and `man` need.

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::error::{CliError, Result};
use crate::session::Session;
use clap::CommandFactory;
use std::io::Write;

/// Runs `completions`.
pub fn completions(session: &mut Session, args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "azulejo", &mut script);
    Ok(session.output.write_all(&script)?)
}

/// Runs `man`.
pub fn man(session: &mut Session, args: &ManArgs) -> Result<()> {
    let command = Cli::command();
    match &args.folder {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|e| CliError::io("create", folder, e))?;
            clap_mangen::generate_to(command, folder)
                .map_err(|e| CliError::io("write pages to", folder, e))
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            Ok(session.output.write_all(&page)?)
        }
    }
}
