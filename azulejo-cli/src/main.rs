//! The command line of Azulejo.
#![forbid(unsafe_code)]

mod args;
mod cells;
mod columns;
mod command;
mod error;
mod filter_text;
mod import;
mod interrupt;
mod moment;
mod object;
mod output;
mod progress;
mod selection;
mod session;
mod settings;
mod size;
mod terminal;
mod value;

use args::Cli;
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match command::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

/// Says on standard error what went wrong and what can be done.
fn report(error: &error::CliError) {
    if matches!(error, error::CliError::BrokenPipe) {
        return;
    }
    let red = anstyle::AnsiColor::Red.on_default().bold();
    anstream::eprintln!("{red}error:{red:#} {error}");
    if let Some(hint) = error.hint() {
        let bold = terminal::HEADING;
        anstream::eprintln!("{bold}hint:{bold:#} {hint}");
    }
}
