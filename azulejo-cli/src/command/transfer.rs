//! `azulejo copy` and `azulejo move`: arrays and groups as a whole.

use crate::args::TransferArgs;
use crate::error::Result;
use crate::session::Session;
use serde_json::json;
use std::io::Write;

/// Runs `copy`.
pub fn copy(session: &mut Session, args: &TransferArgs) -> Result<()> {
    session.work(|context| context.object(&args.from).copy_to(&args.to))?;
    done(session, args, "copied")
}

/// Runs `move`.
pub fn rename(session: &mut Session, args: &TransferArgs) -> Result<()> {
    session.work(|context| context.object(&args.from).rename_to(&args.to))?;
    session
        .output
        .note("groups elsewhere that name it are not told");
    done(session, args, "moved")
}

fn done(session: &mut Session, args: &TransferArgs, verb: &str) -> Result<()> {
    if session.output.json {
        return session
            .output
            .write_json(&json!({ verb: args.from, "to": args.to }));
    }
    Ok(writeln!(
        session.output,
        "{verb} {} to {}",
        args.from, args.to
    )?)
}
