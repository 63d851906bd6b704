//! Update commits (`.upd`), which TileDB writes experimentally and whose values it never applies: its
//! readers take them for deletes. Page: *Update Commit File*.

use crate::condition::Condition;
use crate::error::Result;
use crate::wire::{ByteReader, ByteWriter};

/// New values for some cells. As in [`Delete`](super::Delete), the stored condition is negated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// Cells that meet this keep their values, all others get the new ones.
    pub kept: Condition,
    /// What they get.
    pub values: Vec<UpdateValue>,
}

/// The new value of one attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateValue {
    /// The attribute's name.
    pub field: String,
    /// The bytes of one cell.
    pub value: Vec<u8>,
}

impl Update {
    /// Decodes the unfiltered payload of the file's generic tile.
    pub fn decode(payload: &[u8]) -> Result<Self> {
        let mut r = ByteReader::new(payload);
        let kept = Condition::read(&mut r)?.taken_raw();
        let num = r.u64("number of update values")?;
        let num = r.check_count(num, 16, "update values")?;
        let mut values = Vec::with_capacity(num);
        for _ in 0..num {
            let len = r.u64("update field name length")?;
            let field = r.text(len, "update field name")?;
            let len = r.u64("update value length")?;
            let value = r.bytes_u64(len, "update value")?.to_vec();
            values.push(UpdateValue { field, value });
        }
        r.finish("update")?;
        Ok(Self { kept, values })
    }

    /// Encodes the payload, unfiltered.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut w = ByteWriter::new();
        self.kept.write(&mut w);
        w.u64(self.values.len() as u64);
        for UpdateValue { field, value } in &self.values {
            w.text64(field);
            w.u64(value.len() as u64);
            w.bytes(value);
        }
        w.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::{Comparison, FieldRef};
    use crate::fragment::sample::damage;

    #[test]
    fn round_trip_and_damage() {
        let value = |field: &str, value: &[u8]| UpdateValue {
            field: field.into(),
            value: value.into(),
        };
        let update = Update {
            kept: Condition::compare(FieldRef::raw("a"), Comparison::Gt, 7i32.to_le_bytes())
                .taken_raw(),
            values: vec![value("a", &[1, 2, 3, 4]), value("s", b"")],
        };
        let bytes = update.encode();
        assert_eq!(Update::decode(&bytes).unwrap(), update);
        damage(&bytes, Update::decode);
    }
}
