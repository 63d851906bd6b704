//! The files that claims are.

use crate::context::Location;
use crate::error::{Error, Result};
use crate::storage::{ReadRange, ReadRequest, StorePath};
use azulejo_format::path::CLAIM;
use bytes::Bytes;

/// More bytes than a claim has.
const MAX_CLAIM: u64 = 4096;
/// A number's successor is at most this much larger.
const LARGEST_STEP: u32 = u32::MAX;

/// The number of the claim that something in an array's folder is.
pub(super) fn number_of(name: &str) -> Option<u64> {
    let number: u64 = name.strip_prefix(CLAIM)?.parse().ok()?;
    // Each number has one name.
    (name.len() == CLAIM.len() + number.checked_ilog10().unwrap_or(0) as usize + 1)
        .then_some(number)
}

pub(super) fn path_of(location: &Location, number: u64) -> StorePath {
    location.path.join(&format!("{CLAIM}{number}"))
}

/// What a claim says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Body {
    /// Who has written it: a name that nobody else ever has.
    pub owner: String,
    /// How often it was renewed.
    pub count: u64,
    /// Whether its owner has done with it.
    pub is_free: bool,
    /// By how much the next number is larger. Nobody can guess it: who has not read this file,
    /// but another one of its number in an array that is gone, goes on elsewhere.
    pub step: u32,
    /// The replacement that was decided and is maybe not carried out: the name of a fragment.
    pub decided: Option<String>,
}

impl Body {
    /// One by somebody who has just begun.
    pub fn new(owner: &str) -> Self {
        let random = uuid::Uuid::new_v4().as_u128() as u32;
        Self {
            owner: owner.to_owned(),
            count: 0,
            is_free: false,
            step: random.clamp(1, LARGEST_STEP),
            decided: None,
        }
    }

    pub fn encode(&self) -> Bytes {
        let Self {
            owner,
            count,
            is_free,
            step,
            decided,
        } = self;
        let state = if *is_free { "free" } else { "held" };
        let decided = decided.as_deref().unwrap_or_default();
        format!("{owner}\n{count}\n{state}\n{step}\n{decided}\n").into()
    }

    /// What cannot be understood is a claim whose owner says nothing any more.
    pub fn decode(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let mut lines = text.lines();
        let owner = lines.next().unwrap_or_default().to_owned();
        let count = lines.next().and_then(|line| line.parse().ok());
        let is_free = lines.next() == Some("free");
        let step: Option<u32> = lines.next().and_then(|line| line.parse().ok());
        let decided = lines.next().filter(|line| !line.is_empty());
        Self {
            owner,
            count: count.unwrap_or(0),
            is_free,
            step: step.unwrap_or(1).max(1),
            decided: decided.map(String::from),
        }
    }

    /// The number of the claim after the one, of this number, that says this.
    pub fn successor_of(&self, location: &Location, number: u64) -> Result<u64> {
        number.checked_add(self.step.into()).ok_or_else(|| {
            let path = path_of(location, number);
            Error::InvalidArgument(format!(
                "{path}: no claim has a larger number; remove this file while nobody changes the array"
            ))
        })
    }
}

/// The numbers of the claims that there are, in their order, and whether there is anything else.
pub(super) fn claims(location: &Location) -> Result<(Vec<u64>, bool)> {
    let entries = location.storage.list(&location.path)?;
    let mut numbers: Vec<u64> = entries.iter().filter_map(|e| number_of(&e.name)).collect();
    numbers.sort_unstable();
    let others = numbers.len() < entries.len();
    Ok((numbers, others))
}

/// A claim's bytes; `None` if it is not there.
pub(super) fn read(location: &Location, number: u64) -> Result<Option<Bytes>> {
    let request = ReadRequest {
        path: path_of(location, number),
        range: ReadRange::AtMost(MAX_CLAIM),
    };
    match location.storage.read(&[request]) {
        Ok(mut read) => Ok(read.pop()),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn delete(location: &Location, numbers: &[u64]) -> Result<()> {
    if numbers.is_empty() {
        return Ok(());
    }
    let paths = numbers.iter().map(|number| path_of(location, *number));
    location.storage.delete(&paths.collect::<Vec<_>>())
}
