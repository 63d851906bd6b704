//! `azulejo worker`: takes parts of other machines' queries.

use super::{PATIENCE, environment, error_of, runtime};
use crate::args::WorkerArgs;
use crate::error::{CliError, Result};
use crate::interrupt;
use crate::session::Session;
use std::io::Write;
use tokio::net::TcpListener;

/// Runs the command, until it is interrupted.
pub fn run(session: &mut Session, args: &WorkerArgs) -> Result<()> {
    let runtime = runtime()?;
    let environment = environment(session)?;
    let ended = runtime.block_on(async {
        let listener = TcpListener::bind(args.listen)
            .await
            .map_err(|error| CliError::usage(format!("--listen {}: {error}", args.listen)))?;
        let line = format!("listening on {}\n", listener.local_addr()?);
        session.output.write_all(line.as_bytes())?;
        session.output.flush()?;
        let serving =
            azulejo_sql::distributed::serve_worker(&session.context, environment, listener);
        tokio::select! {
            served = serving => served.map_err(error_of),
            () = interrupt::wished() => interrupt::check(),
        }
    });
    runtime.shutdown_timeout(PATIENCE);
    ended
}
