//! What the engine does not have yet.
#![allow(missing_docs, clippy::needless_pass_by_value, clippy::unused_self)]

use azulejo::format::metadata::Metadata;
use azulejo::{Context, Error, Result, TimeRange};

pub struct Member {
    pub name: String,
    pub uri: String,
}
pub struct Group {
    members: Vec<Member>,
    metadata: Metadata,
}
impl Group {
    pub fn open(context: &Context, uri: &str) -> Result<Self> {
        Self::open_at(context, uri, TimeRange::ALL)
    }
    pub fn open_at(_: &Context, _: &str, _: TimeRange) -> Result<Self> {
        Err(Error::Unsupported("groups are not there yet".into()))
    }
    pub fn metadata(&self) -> Result<&Metadata> {
        Ok(&self.metadata)
    }
    pub fn members(&self) -> &[Member] {
        &self.members
    }
}
