//! The command line of Azulejo.
#![forbid(unsafe_code)]

mod args;
mod cells;
mod columns;
mod command;
mod error;
mod files;
mod filter_text;
mod geotiff;
mod import;
mod interrupt;
mod label_columns;
mod moment;
mod object;
mod output;
mod picture;
mod progress;
mod selection;
mod serve;
mod session;
mod settings;
mod size;
mod sole;
mod terminal;
mod value;
mod zarr;

use args::{Cli, ColorArg};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    if let Some(color) = cli.global.color {
        let choice = match color {
            ColorArg::Auto => anstream::ColorChoice::Auto,
            ColorArg::Always => anstream::ColorChoice::Always,
            ColorArg::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
    let json = cli.global.json;
    match command::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error, json);
            ExitCode::from(error.exit_code())
        }
    }
}

/// Says what the command line lacks, or the help that was asked for.
fn refuse(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|word| word == "--json");
    if !json || !error.use_stderr() {
        error.exit();
    }
    let text = error.to_string();
    let lines = text.lines().map(str::trim);
    let about = lines.take_while(|line| !line.starts_with("tip:") && !line.starts_with("Usage:"));
    let message: Vec<&str> = about.filter(|line| !line.is_empty()).collect();
    let message = message.join(" ");
    let error = error::CliError::usage(message.trim_start_matches("error: "));
    report(&error, true);
    ExitCode::from(error.exit_code())
}

/// Says on standard error what went wrong and what can be done.
fn report(error: &error::CliError, json: bool) {
    if matches!(
        error,
        error::CliError::BrokenPipe | error::CliError::Ended(_)
    ) {
        return;
    }
    if json {
        let code = error.exit_code();
        let report = serde_json::json!({
            "error": { "message": error.to_string(), "hint": error.hint(), "exit_code": code },
        });
        eprintln!("{report}");
        return;
    }
    let red = anstyle::AnsiColor::Red.on_default().bold();
    anstream::eprintln!("{red}error:{red:#} {error}");
    if let Some(hint) = error.hint() {
        let bold = terminal::HEADING;
        anstream::eprintln!("{bold}hint:{bold:#} {hint}");
    }
}
