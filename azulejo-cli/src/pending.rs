//! What the engine does not have yet; goes away piece by piece.
#![allow(missing_docs, clippy::needless_pass_by_value, clippy::unused_self)]

use azulejo::format::metadata::Metadata;
use azulejo::read::aggregate::{Aggregate, AggregateValue, Aggregator};
use azulejo::read::{ReadOptions, Reader};
use azulejo::{Array, Context, Error, Result, TimeRange};

fn missing<T>() -> Result<T> {
    Err(Error::Unsupported("not there yet".into()))
}

pub trait PendingArray {
    fn open_label(&self, name: &str) -> Result<Array>;
    fn metadata(&self) -> Result<Metadata>;
    fn aggregate(&self, options: &ReadOptions, wanted: &[Aggregate]) -> Result<Vec<AggregateValue>>;
}
impl PendingArray for Array {
    fn open_label(&self, _name: &str) -> Result<Array> {
        missing()
    }
    fn metadata(&self) -> Result<Metadata> {
        Ok(Metadata::new())
    }
    fn aggregate(&self, options: &ReadOptions, wanted: &[Aggregate]) -> Result<Vec<AggregateValue>> {
        let schema = self.schema();
        let mut fields: Vec<String> = wanted.iter().filter_map(|w| w.field().map(str::to_owned)).collect();
        fields.sort();
        fields.dedup();
        if fields.is_empty() {
            fields.push(schema.domain.dimensions[0].name.clone());
        }
        let mut aggregators: Vec<Aggregator> = Vec::new();
        let mut count = 0u64;
        let options = options.clone().fields(fields.clone());
        for batch in Reader::new(self, options)? {
            let batch = batch?;
            count += batch.cell_num as u64;
            for (at, column) in batch.columns.iter().enumerate() {
                if aggregators.len() <= at {
                    let mine = wanted.iter().filter(|w| w.field() == Some(&fields[at]));
                    aggregators.push(Aggregator::new(column.column_type.clone(), mine)?);
                }
                aggregators[at].update(&column.view(), None)?;
            }
        }
        Ok(wanted
            .iter()
            .map(|w| match w.field() {
                None => AggregateValue::Unsigned(count),
                Some(name) => fields
                    .iter()
                    .position(|f| f == name)
                    .and_then(|at| aggregators.get(at))
                    .map_or(AggregateValue::Null, |a| a.finish(w)),
            })
            .collect())
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
