//! The delete conditions that a consolidated fragment has already applied (since v16).
//!
//! Page: *Fragment, Tile Processed Conditions*.

use crate::error::Result;
use crate::wire::{ByteReader, ByteWriter};

/// File names of delete commits, sorted;
/// [`Field::DeleteConditions`](super::Field::DeleteConditions) indexes them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessedConditions {
    /// The names, such as `__commits/__1_1_ab..cd_22.del`, relative to the array.
    pub names: Vec<String>,
}

impl ProcessedConditions {
    /// The last of the names where no two cells of a consolidated fragment have the same coordinates.
    ///
    /// No delete commit is called so, so that it means nothing to who does not know it. Who does
    /// needs neither coordinates nor timestamps to know which cells count.
    pub const EACH_CELL_ONCE: &str = "__azulejo_each_cell_once";

    /// Decodes the unfiltered section.
    pub fn decode(payload: &[u8]) -> Result<Self> {
        let mut r = ByteReader::new(payload);
        let num = r.u64("number of processed conditions")?;
        let num = r.check_count(num, 8, "processed conditions")?;
        let mut names = Vec::with_capacity(num);
        for _ in 0..num {
            let len = r.u64("processed condition length")?;
            names.push(r.text(len, "processed condition")?);
        }
        r.finish("processed conditions")?;
        Ok(Self { names })
    }

    /// Encodes the section, unfiltered.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut w = ByteWriter::new();
        w.u64(self.names.len() as u64);
        for name in &self.names {
            w.text64(name);
        }
        w.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::sample::damage;

    #[test]
    fn round_trip_and_damage() {
        let conditions = ProcessedConditions {
            names: vec![
                "__commits/__1_1_ab_22.del".into(),
                String::new(),
                "__2_2_cd_22.del".into(),
            ],
        };
        let bytes = conditions.encode();
        assert_eq!(ProcessedConditions::decode(&bytes).unwrap(), conditions);
        damage(&bytes, ProcessedConditions::decode);
    }
}
