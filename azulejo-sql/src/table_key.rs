//! The encryption key of one table, where it is not the session's.
//!
//! A key stands in a statement's options or arguments and goes into a context, which never shows it.
//! No message here repeats what was given for one.

use crate::error::Result;
use azulejo::Context;
use azulejo::format::filter::EncryptionKey;
use datafusion::error::DataFusionError;
use std::fs::File;
use std::io::Read;

/// What keys are called in options and arguments.
pub const NAMES: [&str; 2] = ["key", "key_file"];

/// More than any key file holds.
const MOST_BYTES: u64 = 2 * EncryptionKey::LEN as u64 + 3;

/// What a table says of its key.
#[derive(Clone, Default)]
pub struct TableKey(Option<EncryptionKey>);

impl TableKey {
    /// Takes what stands under one of [`NAMES`]: the key, or the file that has it.
    ///
    /// # Errors
    /// What is no key, files that cannot be read, and a second key.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let key = match name {
            "key" => EncryptionKey::from_written(value.as_bytes()),
            _ => EncryptionKey::from_written(&bytes_of(value)?),
        };
        let key = key.ok_or_else(|| {
            DataFusionError::Plan(format!(
                "{name}: a key is 32 bytes, or 64 hexadecimal digits"
            ))
        })?;
        match self.0.replace(key) {
            None => Ok(()),
            Some(_) => Err(DataFusionError::Plan("a key is given twice".into())),
        }
    }

    /// The context that opens the table: the session's, with this key if there is one.
    #[must_use]
    pub fn context(self, session: &Context) -> Context {
        match self.0 {
            None => session.clone(),
            Some(key) => session.derive(session.config().clone(), Some(key)),
        }
    }
}

fn bytes_of(file: &str) -> Result<Vec<u8>> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(file)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(bytes)
    };
    // What was given may be a key where a file was meant.
    read().map_err(|error| DataFusionError::Plan(format!("key_file: {error}")))
}
