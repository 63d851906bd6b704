//! Which fragments are about to take the place of which (`.replaces`): our own addition to
//! `__commits`, which other readers pass by.
//!
//! The format has no way to make a fragment count and others not at one stroke: between the commit
//! of a consolidated fragment and its vacuum file both count, which shows where duplicates are
//! allowed. A replacement is written before the first commit and removed after the vacuum file;
//! while it is there, readers that know it count either the old fragments, or, once all new ones
//! are committed, the new ones.

use super::{join_lines, last_component, lines};
use crate::error::{DecodeError, Result};

/// A change of fragments under way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replacement {
    /// Names of the new fragments.
    pub new: Vec<String>,
    /// URIs of the old ones, as a [`VacuumList`](super::VacuumList) holds them.
    pub old: Vec<String>,
}

impl Replacement {
    /// Decodes the file: one fragment a line, a new one behind `+`, an old one behind `-`.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut replacement = Self::default();
        for line in lines(bytes, "replacement")? {
            match (line.strip_prefix('+'), line.strip_prefix('-')) {
                (Some(new), _) => replacement.new.push(new.to_owned()),
                (_, Some(old)) => replacement.old.push(old.to_owned()),
                _ => {
                    return Err(DecodeError::invalid(
                        "replacement",
                        0,
                        "a line begins with neither + nor -",
                    ));
                }
            }
        }
        Ok(replacement)
    }

    /// Encodes the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let new = self.new.iter().map(|name| format!("+{name}"));
        join_lines(
            &new.chain(self.old.iter().map(|uri| format!("-{uri}")))
                .collect::<Vec<_>>(),
        )
    }

    /// Names of the old fragments, without the paths before them.
    pub fn old_names(&self) -> impl Iterator<Item = &str> {
        self.old.iter().map(|uri| last_component(uri))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_damage() {
        let replacement = Replacement {
            new: vec!["__1_2_ab_22".into()],
            old: vec![
                "/__fragments/__1_1_cd_22".into(),
                "/__fragments/__2_2_ef_22".into(),
            ],
        };
        let bytes = replacement.encode();
        assert_eq!(Replacement::decode(&bytes).unwrap(), replacement);
        assert_eq!(
            replacement.old_names().collect::<Vec<_>>(),
            ["__1_1_cd_22", "__2_2_ef_22"]
        );
        assert!(Replacement::decode(b"__1_1_cd_22\n").is_err());
        assert!(Replacement::decode(b"+\xff\n").is_err());
        assert_eq!(Replacement::decode(b"").unwrap(), Replacement::default());
    }
}
