//! `azulejo copy` and `azulejo move`: arrays and groups as a whole.

use crate::args::TransferArgs;
use crate::error::Result;
use crate::session::Session;
use azulejo::object;
use serde_json::json;
use std::io::Write;

/// Runs `copy`.
pub fn copy(session: &mut Session, args: &TransferArgs) -> Result<()> {
    session.work(|context| object::copy(context, &args.from, &args.to))?;
    done(session, args, "copied")
}

/// Runs `move`.
pub fn rename(session: &mut Session, args: &TransferArgs) -> Result<()> {
    session.work(|context| object::rename(context, &args.from, &args.to))?;
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
