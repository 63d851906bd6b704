//! Storing key-values of arrays and groups.

use crate::error::Result;
use azulejo::array::MetadataWriter;
use azulejo_format::metadata::{Metadata, MetadataValue};
use std::ops::Bound;

/// What was put (`Some`) and deleted (`None`), in that order.
pub type Changes = Vec<(String, Option<MetadataValue>)>;

/// Stores changes as one file.
pub fn store(writer: MetadataWriter, changes: Changes, time: Option<u64>) -> Result<()> {
    let mut writer = match time {
        Some(time) => writer.at(time),
        None => writer,
    };
    for (key, value) in changes {
        match value {
            Some(value) => writer.put(key, value)?,
            None => writer.remove(key),
        };
    }
    Ok(writer.commit()?)
}

/// What key-values become by changes.
pub fn apply(metadata: &mut Metadata, changes: Changes) {
    for (key, value) in changes {
        match value {
            Some(value) => metadata.insert(key, value),
            None => metadata.remove(&key),
        };
    }
}

/// Which key-value a caller that asks for one after the other got last, and its position.
pub type Cursor = Option<(usize, String)>;

/// The key-value at a position in the order of keys. The one behind the last is found at once: there
/// may be very many.
pub fn at<'a>(
    all: &'a Metadata,
    index: u64,
    last: &mut Cursor,
) -> Option<(&'a String, &'a MetadataValue)> {
    let index = usize::try_from(index).ok()?;
    let found = match last {
        Some((before, key)) if before.checked_add(1) == Some(index) => {
            let behind = (Bound::Excluded(key.as_str()), Bound::Unbounded);
            all.range::<str, _>(behind).next()
        }
        _ => all.iter().nth(index),
    }?;
    *last = Some((index, found.0.clone()));
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo_format::Datatype;

    #[test]
    fn positions_in_any_order() {
        let value = MetadataValue::new(Datatype::UInt8, vec![1]);
        let all: Metadata = ["a", "b", "c", "d"]
            .map(|key| (key.to_owned(), value.clone()))
            .into();
        let mut last = Cursor::default();
        let asked = [0, 1, 2, 3, 4, 1, 2, 0, 0, 3, u64::MAX, 1];
        let found = asked.map(|index| at(&all, index, &mut last).map(|(key, _)| key.as_str()));
        let names = ["a", "b", "c", "d", "", "b", "c", "a", "a", "d", "", "b"];
        assert_eq!(found, names.map(|name| (!name.is_empty()).then_some(name)));
    }
}
