//! Whose filters are chosen.

use azulejo_format::fragment::Field;

/// Whose filters are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Attribute(usize),
    Dimension(usize),
    Offsets,
    Validity,
}

impl Place {
    /// That of a field's values, if filters are chosen for it.
    pub fn of(field: Field) -> Option<Self> {
        match field {
            Field::Attribute(i) => Some(Self::Attribute(i)),
            Field::Dimension(i) => Some(Self::Dimension(i)),
            _ => None,
        }
    }
}
