//! Which arrays this process has open: one that is open to be changed exclusively is open once.

use crate::error::{Failure, Result};
use crate::strings::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// An array that is open, by its URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opened {
    /// So many times.
    Shared(usize),
    /// Once.
    Exclusively,
}

static OPENED: Mutex<BTreeMap<String, Opened>> = Mutex::new(BTreeMap::new());

/// Says that an array is open, until it is dropped.
#[derive(Debug)]
pub struct Entry {
    uri: String,
}

impl Entry {
    /// For who works on an array beside others.
    ///
    /// # Errors
    /// If somebody has it exclusively.
    pub fn shared(uri: &str) -> Result<Self> {
        Self::new(uri, |before| match before {
            None => Some(Opened::Shared(1)),
            Some(Opened::Shared(times)) => Some(Opened::Shared(times + 1)),
            Some(Opened::Exclusively) => None,
        })
    }

    /// For who must be the only one.
    ///
    /// # Errors
    /// If anybody has it.
    pub fn exclusive(uri: &str) -> Result<Self> {
        Self::new(uri, |before| {
            before.is_none().then_some(Opened::Exclusively)
        })
    }

    fn new(uri: &str, next: impl FnOnce(Option<Opened>) -> Option<Opened>) -> Result<Self> {
        let uri = crate::uri::folder(uri);
        let mut opened = lock(&OPENED);
        let before = opened.get(&uri).copied();
        let Some(next) = next(before) else {
            let how = match before {
                Some(Opened::Exclusively) => "exclusively",
                _ => "already, and is to be changed exclusively",
            };
            return Err(Failure::new(format!(
                "[TileDB::Array] Error: Cannot open array; '{uri}' is open {how}; close it first"
            )));
        };
        opened.insert(uri.clone(), next);
        Ok(Self { uri })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut opened = lock(&OPENED);
        match opened.get_mut(&self.uri) {
            Some(Opened::Shared(times)) if *times > 1 => *times -= 1,
            _ => _ = opened.remove(&self.uri),
        }
    }
}
