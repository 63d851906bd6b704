//! What the engine does not have yet; goes away piece by piece.
#![allow(missing_docs, clippy::needless_pass_by_value, clippy::unused_self)]

use arrow::array::RecordBatch;
use azulejo::format::metadata::Metadata;
use azulejo::{Array, ColumnSet, Context, Error, Result, TimeRange};

fn missing<T>() -> Result<T> {
    Err(Error::Unsupported("not there yet".into()))
}

pub trait PendingArray {
    fn open_label(&self, name: &str) -> Result<Array>;
    fn metadata(&self) -> Result<Metadata>;
}
impl PendingArray for Array {
    fn open_label(&self, _name: &str) -> Result<Array> {
        missing()
    }
    fn metadata(&self) -> Result<Metadata> {
        Ok(Metadata::new())
    }
}
pub trait PendingSet {
    fn into_record_batch(self) -> Result<RecordBatch>;
}
impl PendingSet for ColumnSet {
    fn into_record_batch(self) -> Result<RecordBatch> {
        missing()
    }
}
pub struct Member {
    pub name: String,
    pub uri: String,
}
pub struct Group {
    members: Vec<Member>,
}
impl Group {
    pub fn open(context: &Context, uri: &str) -> Result<Self> {
        Self::open_at(context, uri, TimeRange::ALL)
    }
    pub fn open_at(_: &Context, _: &str, _: TimeRange) -> Result<Self> {
        Ok(Self { members: vec![] })
    }
    pub fn metadata(&self) -> Result<Metadata> {
        missing()
    }
    pub fn members(&self) -> &[Member] {
        &self.members
    }
}
