//! Where a file's bytes go: through a compressor, if its name asks for one.

use crate::error::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// How a file is compressed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// `.gz`
    Gzip,
    /// `.zst`
    Zstd,
}

impl Packing {
    /// What the ending of a name says, and the name without that ending.
    pub fn of(file: &Path) -> (Option<Self>, PathBuf) {
        let packing = match file.extension().and_then(|e| e.to_str()) {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => return (None, file.to_path_buf()),
        };
        (Some(packing), file.with_extension(""))
    }
}

/// An output that many hands can hold: the one that keeps it ends it.
#[derive(Clone)]
pub struct Out(Arc<Mutex<Inner>>);

enum Inner {
    Plain(Box<dyn Write + Send>),
    Gzip(Box<GzEncoder<Box<dyn Write + Send>>>),
    #[cfg(feature = "c-codecs")]
    Zstd(Box<zstd::stream::write::Encoder<'static, Box<dyn Write + Send>>>),
    Ended,
}

impl Out {
    /// Begins to write.
    pub fn new(to: Box<dyn Write + Send>, packing: Option<Packing>) -> Result<Self> {
        let inner = match packing {
            None => Inner::Plain(to),
            Some(Packing::Gzip) => {
                Inner::Gzip(Box::new(GzEncoder::new(to, Compression::default())))
            }
            Some(Packing::Zstd) => zstd(to)?,
        };
        Ok(Self(Arc::new(Mutex::new(inner))))
    }

    /// Writes what ends the file.
    pub fn finish(self) -> Result<()> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut to = match std::mem::replace(&mut *inner, Inner::Ended) {
            Inner::Plain(to) => to,
            Inner::Gzip(encoder) => encoder.finish()?,
            #[cfg(feature = "c-codecs")]
            Inner::Zstd(encoder) => encoder.finish()?,
            Inner::Ended => return Ok(()),
        };
        Ok(to.flush()?)
    }
}

#[cfg(feature = "c-codecs")]
fn zstd(to: Box<dyn Write + Send>) -> Result<Inner> {
    Ok(Inner::Zstd(Box::new(zstd::stream::write::Encoder::new(
        to, 0,
    )?)))
}

#[cfg(not(feature = "c-codecs"))]
fn zstd(_: Box<dyn Write + Send>) -> Result<Inner> {
    Err(crate::error::CliError::usage(
        "this program was built without the codecs in C and writes no .zst files",
    ))
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *inner {
            Inner::Plain(to) => to.write(bytes),
            Inner::Gzip(encoder) => encoder.write(bytes),
            #[cfg(feature = "c-codecs")]
            Inner::Zstd(encoder) => encoder.write(bytes),
            Inner::Ended => Err(Error::new(ErrorKind::BrokenPipe, "the file is ended")),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *inner {
            Inner::Plain(to) => to.flush(),
            // A compressor would begin anew at each flush; it is flushed when it ends.
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_name_compressors() {
        let of = |name: &str| Packing::of(Path::new(name));
        assert_eq!(of("a.csv"), (None, "a.csv".into()));
        assert_eq!(of("a.csv.gz"), (Some(Packing::Gzip), "a.csv".into()));
        assert_eq!(of("a.csv.zst").0, Some(Packing::Zstd));
    }
}
