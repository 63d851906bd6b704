//! Where an export goes: a file, one in an object store, standard output, a device or named pipe.

use crate::error::{CliError, Result};
use crate::files;
use crate::output::out::{Out, Packing};
use crate::output::temp_file::TempFile;
use crate::session::Session;
use azulejo::context::Location;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Where an export goes. But for streams nothing is there before all of it is.
pub enum Place {
    /// Standard output, as the cells come.
    Stdout,
    /// A device or a named pipe, likewise: a file must not take its place.
    Stream(PathBuf),
    /// A file of this machine.
    Local(TempFile),
    /// A file elsewhere, and the one that is sent there.
    Remote(TempDir, Location),
}

impl Place {
    /// Finds the place that a name means, and refuses to replace what is there unless `force`.
    pub fn new(session: &Session, file: &Path, force: bool) -> Result<Self> {
        if file == Path::new("-") {
            return Ok(Self::Stdout);
        }
        let refused = || CliError::usage(format!("{} exists; --force replaces it", file.display()));
        let remote = match file.to_str() {
            Some(name) => files::remote(&session.context, name)?,
            None => None,
        };
        if let Some(location) = remote {
            if !force && files::exists(&location)? {
                return Err(refused());
            }
            let folder = tempfile::tempdir()
                .map_err(|e| CliError::io("create a folder in", &std::env::temp_dir(), e))?;
            return Ok(Self::Remote(folder, location));
        }
        // A link stays, and what it leads to is replaced.
        let target = match file.is_symlink() {
            true => file.canonicalize().unwrap_or_else(|_| file.to_path_buf()),
            false => file.to_path_buf(),
        };
        match std::fs::metadata(&target) {
            Ok(there) if there.is_dir() => Err(CliError::usage(format!(
                "{} is a folder, not a file",
                file.display()
            ))),
            Ok(there) if !there.is_file() => Ok(Self::Stream(target)),
            Ok(_) if !force => Err(refused()),
            _ if !force => Ok(Self::Local(TempFile::new(&target)?.keeping_others())),
            _ => Ok(Self::Local(TempFile::new(&target)?)),
        }
    }

    /// Begins to write; from the beginning, if it was begun before.
    pub fn out(&self, packing: Option<Packing>) -> Result<Out> {
        let out: Box<dyn std::io::Write + Send> = match self {
            Self::Stdout => Box::new(BufWriter::with_capacity(1 << 16, std::io::stdout())),
            Self::Stream(path) => {
                let stream = File::options().write(true).open(path);
                let stream = stream.map_err(|e| CliError::io("write", path, e))?;
                Box::new(BufWriter::with_capacity(1 << 16, stream))
            }
            Self::Local(file) => Box::new(file.writer()?),
            Self::Remote(folder, _) => {
                let path = folder.path().join("file");
                let file = File::create(&path).map_err(|e| CliError::io("write", &path, e))?;
                Box::new(BufWriter::with_capacity(1 << 20, file))
            }
        };
        Out::new(out, packing)
    }

    /// Whether what was written can be written anew.
    pub fn begins_again(&self) -> bool {
        !matches!(self, Self::Stdout | Self::Stream(_))
    }

    /// Lets the file appear; its size in bytes, where there is a file.
    pub fn publish(self, session: &Session) -> Result<Option<u64>> {
        match self {
            Self::Stdout | Self::Stream(_) => Ok(None),
            Self::Local(file) => file.publish().map(Some),
            Self::Remote(folder, location) => {
                let path = folder.path().join("file");
                let size = std::fs::metadata(&path).map_err(|e| CliError::io("read", &path, e))?;
                files::send(&session.context, &path, &location)?;
                Ok(Some(size.len()))
            }
        }
    }
}
