//! Delete commits (`.del`). Page: *Delete Commit File*, which does not say that the stored
//! condition is negated.

use crate::condition::Condition;
use crate::error::Result;

/// Deletes cells that were written before it.
///
/// What is stored is the condition of the cells that **stay**: the negation of the one that the
/// user gave, pushed down to its leaves. A null cell meets no comparison, so a delete that looks at
/// a nullable field deletes its null cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    /// Cells that meet this are kept, all others are deleted. Evaluate it as it is. Enumerated
    /// attributes are compared with indices, not with labels.
    pub kept: Condition,
}

impl Delete {
    /// Deletes the cells that meet `condition`, whose values of enumerated attributes are indices.
    #[must_use]
    pub fn of(condition: Condition) -> Self {
        Self {
            kept: (!condition).pushed_down().taken_raw(),
        }
    }

    /// Decodes the unfiltered payload of the file's generic tile.
    pub fn decode(payload: &[u8]) -> Result<Self> {
        Ok(Self {
            kept: Condition::decode(payload)?.taken_raw(),
        })
    }

    /// Encodes the payload, unfiltered.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.kept.encode()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::{Comparison, FieldRef};
    use crate::fragment::sample::damage;

    #[test]
    fn the_negation_is_stored() {
        let compare = |op| Condition::compare(FieldRef::raw("a"), op, 7i32.to_le_bytes());
        let delete =
            Delete::of(compare(Comparison::Gt).and(Condition::is_in(FieldRef::raw("s"), ["x"])));
        let not_in = Condition::In {
            field: FieldRef::raw("s"),
            negated: true,
            values: ["x"].into_iter().collect(),
        };
        assert_eq!(delete.kept, compare(Comparison::Le).or(not_in).taken_raw());
        assert!(delete.kept.fields().iter().all(|field| field.raw));
        let bytes = delete.encode();
        assert_eq!(Delete::decode(&bytes).unwrap(), delete);
        damage(&bytes, Delete::decode);
    }

    #[test]
    fn a_commit_of_the_reference() {
        // What libtiledb 2.30 stores for a delete where `a not in [1, 3]`: the members, as an IN.
        let bytes = [
            &[1, 6, 1, 0, 0, 0, b'a', 8, 0, 0, 0, 0, 0, 0, 0][..],
            &[1, 0, 0, 0, 3, 0, 0, 0],
            &[16, 0, 0, 0, 0, 0, 0, 0],
            &[0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0],
        ]
        .concat();
        let members = || [1i32.to_le_bytes(), 3i32.to_le_bytes()];
        assert_eq!(
            Delete::decode(&bytes).unwrap(),
            Delete::of(!Condition::is_in(FieldRef::raw("a"), members()))
        );
        assert_eq!(
            Delete::of(!Condition::is_in(FieldRef::raw("a"), members())).encode(),
            bytes
        );
    }
}
