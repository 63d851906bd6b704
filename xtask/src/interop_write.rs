//! `cargo xtask interop write`: Azulejo writes random arrays and the reference reads them; then
//! both take turns on one array.

mod dictionaries;
mod fixtures;
mod model;
mod peer;
mod random;
mod session;
mod turns;
mod verify;
mod writes;

use crate::{Outcome, root};
use peer::Peer;
use session::Session;
use std::path::Path;

/// Seeds that once failed, kept as regression cases with what they showed: always run first.
const REGRESSIONS: &[(Kind, u64, &str)] = &[];

/// What happens to an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Azulejo writes all of it.
    Alone,
    /// Azulejo appends to an array that an old release of TileDB wrote, from the fixtures.
    Append,
    /// Both engines write, delete, evolve, consolidate and vacuum.
    Turns,
}

/// Options: `--seed N`, `--count N` (arrays of Azulejo's alone), `--turns N` (arrays on which both
/// take turns).
pub fn run(options: &[&str]) -> Outcome {
    let value = |name: &str, default: u64| -> Result<u64, String> {
        match options.iter().position(|o| *o == name) {
            None => Ok(default),
            Some(i) => options
                .get(i + 1)
                .and_then(|v| v.parse().ok())
                .ok_or_else(|| format!("{name} wants a number")),
        }
    };
    // A new seed every day, as for `interop read`.
    let today = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .map_or(0, |d| d.as_secs() / 86_400)
        * 10_000;
    let (seed, count, turns) = (
        value("--seed", today)?,
        value("--count", 300)?,
        value("--turns", 60)?,
    );
    let dir = root()
        .join("target")
        .join("interop-write")
        .join(seed.to_string());
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
    let mut peer = Peer::new(&dir)?;
    let mut failed = 0;
    if let Err(text) = dictionaries::run(&dir, &mut peer) {
        println!("large dictionaries: {text}");
        failed += 1;
    }
    for (kind, regression, what) in REGRESSIONS {
        println!("regression: {what}");
        failed += usize::from(!one(&dir, &mut peer, *kind, *regression));
    }
    for (kind, number) in [
        (Kind::Alone, count),
        (Kind::Append, count / 3),
        (Kind::Turns, turns),
    ] {
        let bad = (seed..seed + number)
            .filter(|seed| !one(&dir, &mut peer, kind, *seed))
            .count();
        println!(
            "interop write, {kind:?}, seeds {seed} to {}: {bad} of {number} failed",
            (seed + number).saturating_sub(1)
        );
        failed += bad;
    }
    if failed == 0 {
        Ok(())
    } else {
        Err(format!("{failed} written arrays read differently"))
    }
}

/// Runs a seed; a failure is printed, and its array kept.
fn one(dir: &Path, peer: &mut Peer, kind: Kind, seed: u64) -> bool {
    let mut session = match Session::new(dir, kind, seed) {
        Ok(session) => session,
        Err(text) => {
            println!("{kind:?} seed {seed}: {text}");
            return false;
        }
    };
    let run = std::panic::AssertUnwindSafe(|| session.run(peer, kind));
    let outcome = std::panic::catch_unwind(run).unwrap_or_else(|_| Err("panicked".into()));
    match outcome {
        Ok(()) => {
            let _ = std::fs::remove_dir_all(&session.path);
            true
        }
        Err(text)
            if text.ends_with(peer::WRITE_CRASH)
                || (!session.ours && text.contains("the reference ")) =>
        {
            // It does not always read what it has written itself.
            println!("{kind:?} seed {seed}: {text}: passed over");
            true
        }
        Err(text) => {
            let short: String = text.chars().take(500).collect();
            println!(
                "{kind:?} seed {seed}: {short}\n    {}\n    {}",
                session.what(),
                session.log.join(", ")
            );
            false
        }
    }
}
