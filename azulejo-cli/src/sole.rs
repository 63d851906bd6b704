//! One command of this machine at a time makes something at a place.
//!
//! An import or a copy that finds the beginnings of another takes them for what a process has left
//! that was killed, and begins again or goes on. So that two at once do not take each other for
//! dead, each holds a lock of the place that it works on: a file in the folder for temporary files,
//! named after the place.

use crate::error::{CliError, Result};
use azulejo::storage::Uri;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// A place that nobody else makes anything at, until this is dropped.
#[derive(Debug)]
pub struct Sole {
    held: Option<(File, PathBuf)>,
}

impl Sole {
    /// Takes a place for this command.
    ///
    /// # Errors
    /// If another command of this machine has it.
    pub fn at(uri: &str) -> Result<Self> {
        let path = Uri::parse(uri)?.path().to_string();
        let mut hasher = DefaultHasher::new();
        path.trim_end_matches('/').hash(&mut hasher);
        let name = format!("azulejo-{:016x}.lock", hasher.finish());
        let file = std::env::temp_dir().join(name);
        loop {
            let mut options = OpenOptions::new();
            // Where no lock can be had, there is none: it is the second line of defence.
            let Ok(lock) = options.create(true).truncate(false).write(true).open(&file) else {
                return Ok(Self { held: None });
            };
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(CliError::Format(format!(
                        "another azulejo is about to make {uri}: wait until it is done"
                    )));
                }
                Err(TryLockError::Error(_)) => return Ok(Self { held: None }),
            }
            // Whoever had it before may have removed the file that was opened here.
            if is_at(&lock, &file) {
                let held = Some((lock, file));
                return Ok(Self { held });
            }
        }
    }
}

impl Drop for Sole {
    fn drop(&mut self) {
        if let Some((lock, file)) = self.held.take() {
            let _ = std::fs::remove_file(file);
            drop(lock);
        }
    }
}

/// Whether an open file still has its name.
#[cfg(unix)]
fn is_at(open: &File, file: &PathBuf) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let (open, named) = (
        open.metadata().map(place),
        std::fs::metadata(file).map(place),
    );
    matches!((open, named), (Ok(open), Ok(named)) if open == named)
}

/// Whether an open file still has its name: what is open cannot be removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &PathBuf) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_to_one() {
        let uri = format!("mem://sole/{}", std::process::id());
        let first = Sole::at(&uri).unwrap();
        assert!(Sole::at(&uri).is_err());
        assert!(Sole::at(&format!("{uri}/other")).is_ok());
        drop(first);
        let again = Sole::at(&uri).unwrap();
        assert!(Sole::at(&format!("{uri}/")).is_err());
        drop(again);
    }
}
