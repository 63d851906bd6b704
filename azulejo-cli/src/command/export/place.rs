//! Where an export goes: a file, one in an object store, standard output.

use crate::error::{CliError, Result};
use crate::files;
use crate::output::out::{Out, Packing};
use crate::output::temp_file::TempFile;
use crate::session::Session;
use azulejo::context::Location;
use std::io::BufWriter;
use std::path::Path;
use tempfile::TempDir;

/// Where an export goes. But for standard output nothing is there before all of it is.
pub enum Place {
    /// Standard output, as the cells come.
    Stdout,
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
        if file.exists() && !force {
            return Err(refused());
        }
        Ok(Self::Local(TempFile::new(file)?))
    }

    /// Begins to write; from the beginning, if it was begun before.
    pub fn out(&self, packing: Option<Packing>) -> Result<Out> {
        let out: Box<dyn std::io::Write + Send> = match self {
            Self::Stdout => Box::new(BufWriter::with_capacity(1 << 16, std::io::stdout())),
            Self::Local(file) => Box::new(file.writer()?),
            Self::Remote(folder, _) => {
                let path = folder.path().join("file");
                let file =
                    std::fs::File::create(&path).map_err(|e| CliError::io("write", &path, e))?;
                Box::new(BufWriter::with_capacity(1 << 20, file))
            }
        };
        Out::new(out, packing)
    }

    /// Whether what was written can be written anew.
    pub fn begins_again(&self) -> bool {
        !matches!(self, Self::Stdout)
    }

    /// Lets the file appear; its size in bytes, where there is a file.
    pub fn publish(self, session: &Session) -> Result<Option<u64>> {
        match self {
            Self::Stdout => Ok(None),
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
