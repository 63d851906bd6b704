//! A file that appears under its name only when it is complete.

use crate::error::{CliError, Result};
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file being written beside its final place; dropped, it is gone.
#[derive(Debug)]
pub struct TempFile {
    file: NamedTempFile,
    target: PathBuf,
    /// Whether it may take the place of a file that is there by then.
    replaces: bool,
}

impl TempFile {
    /// Begins a file that will become `target`.
    pub fn new(target: &Path) -> Result<Self> {
        let folder = target
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".azulejo-").suffix(".part");
        // The usual rights of a new file, rather than the owner's only.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder
            .tempfile_in(folder)
            .map_err(|e| CliError::io("create a file in", folder, e))?;
        Ok(Self {
            file,
            target: target.to_path_buf(),
            replaces: true,
        })
    }

    /// The same, which takes nobody's place: what another process has put there meanwhile stays.
    pub fn keeping_others(self) -> Self {
        Self {
            replaces: false,
            ..self
        }
    }

    /// Where the bytes go, from the beginning.
    pub fn writer(&self) -> Result<BufWriter<File>> {
        let file = self
            .file
            .reopen()
            .map_err(|e| CliError::io("write", &self.target, e))?;
        // What was written before may be longer.
        file.set_len(0)
            .map_err(|e| CliError::io("write", &self.target, e))?;
        Ok(BufWriter::with_capacity(1 << 20, file))
    }

    /// Gives the file its name; its size in bytes. All writers must have been flushed.
    pub fn publish(self) -> Result<u64> {
        let Self {
            mut file,
            target,
            replaces,
        } = self;
        file.flush()
            .map_err(|e| CliError::io("write", &target, e))?;
        let size = file
            .as_file()
            .metadata()
            .map_err(|e| CliError::io("write", &target, e))?
            .len();
        let file = match replaces {
            true => file,
            false => match file.persist_noclobber(&target) {
                Ok(_) => return Ok(size),
                Err(e) if e.error.kind() == ErrorKind::AlreadyExists => {
                    return Err(CliError::usage(format!(
                        "{} has been made meanwhile; --force replaces it",
                        target.display()
                    )));
                }
                // Not every file system can tell in one step.
                Err(e) => e.file,
            },
        };
        file.persist(&target)
            .map_err(|e| CliError::io("write", &target, e.error))?;
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x.csv");
        let file = TempFile::new(&target).unwrap();
        let mut writer = file.writer().unwrap();
        writer.write_all(b"abc").unwrap();
        writer.flush().unwrap();
        assert!(!target.exists());
        assert_eq!(file.publish().unwrap(), 3);
        assert_eq!(std::fs::read(&target).unwrap(), b"abc");
        let late = TempFile::new(&target).unwrap().keeping_others();
        assert_eq!(late.publish().unwrap_err().exit_code(), 2);
        assert_eq!(std::fs::read(&target).unwrap(), b"abc");
        let dropped = TempFile::new(&target).unwrap();
        drop(dropped);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
