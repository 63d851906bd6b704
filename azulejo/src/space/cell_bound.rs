//! Bounds between cells, as bytes that compare as the bounds do.
#![expect(
    clippy::big_endian_bytes,
    reason = "numbers compare as their bytes do, the highest first"
)]

use std::fmt;

/// Before the eight bytes of a number.
const NUMBER: u8 = 1;
/// Before the bytes of a text.
const TEXT: u8 = 2;
/// Above all that begins with one of the others.
const INFINITY: u8 = u8::MAX;
/// Follows a zero in a text. Two zeros are its end, so that what a text goes on with is above it.
const ZERO_OF_TEXT: u8 = u8::MAX;

/// A bound on the cells of a box, comparable with other bounds of the same order.
///
/// A bound is a list of parts, one for each segment of a [`CellOrder`](super::cell_order::CellOrder)
/// or fewer. Plans hold two for every tile, so they are kept in as few bytes as compare right: a
/// number as its bytes, the highest first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CellBound(Vec<u8>);

/// The bound in one segment. The variants' order matters: nothing is above [`BoundPart::Infinity`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoundPart {
    /// A tile index, or the ordinal of a coordinate.
    Number(u64),
    /// A string, each byte with its sign bit flipped.
    Text(Vec<u8>),
    /// Above everything.
    Infinity,
}

impl CellBound {
    /// Below every cell.
    pub const LOWEST: Self = Self(Vec::new());

    /// Above every cell.
    #[must_use]
    pub fn highest() -> Self {
        Self::from_iter([BoundPart::Infinity])
    }

    /// Below all cells whose first segments are these numbers, above all cells before them.
    #[must_use]
    pub fn of_numbers(numbers: &[u64]) -> Self {
        numbers.iter().copied().map(BoundPart::Number).collect()
    }

    /// The parts, by segment; a bound of fewer parts is below all that agree with it so far.
    pub fn parts(&self) -> impl Iterator<Item = BoundPart> + '_ {
        let mut rest = self.0.as_slice();
        std::iter::from_fn(move || {
            let (part, behind) = first_part(rest)?;
            rest = behind;
            Some(part)
        })
    }
}

impl FromIterator<BoundPart> for CellBound {
    fn from_iter<I: IntoIterator<Item = BoundPart>>(parts: I) -> Self {
        let mut bytes = Vec::new();
        for part in parts {
            match part {
                BoundPart::Number(n) => {
                    bytes.push(NUMBER);
                    bytes.extend(n.to_be_bytes());
                }
                BoundPart::Text(key) => {
                    bytes.push(TEXT);
                    for byte in key {
                        bytes.push(byte);
                        bytes.extend((byte == 0).then_some(ZERO_OF_TEXT));
                    }
                    bytes.extend([0, 0]);
                }
                BoundPart::Infinity => bytes.push(INFINITY),
            }
        }
        bytes.shrink_to_fit();
        Self(bytes)
    }
}

/// The part that some bytes begin with, and the bytes behind it.
fn first_part(bytes: &[u8]) -> Option<(BoundPart, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    match *kind {
        NUMBER => {
            let (number, rest) = rest.split_first_chunk()?;
            Some((BoundPart::Number(u64::from_be_bytes(*number)), rest))
        }
        TEXT => {
            let (mut key, mut rest) = (Vec::new(), rest);
            loop {
                match rest {
                    [0, 0, behind @ ..] => return Some((BoundPart::Text(key), behind)),
                    [0, _, behind @ ..] => {
                        key.push(0);
                        rest = behind;
                    }
                    [byte, behind @ ..] => {
                        key.push(*byte);
                        rest = behind;
                    }
                    [] => return None,
                }
            }
        }
        _ => Some((BoundPart::Infinity, rest)),
    }
}

impl fmt::Debug for CellBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part() -> impl Strategy<Value = BoundPart> {
        prop_oneof![
            prop_oneof![0..4u64, Just(u64::MAX), any::<u64>()].prop_map(BoundPart::Number),
            Just(BoundPart::Infinity),
        ]
    }

    fn text() -> impl Strategy<Value = BoundPart> {
        let byte = prop_oneof![Just(0u8), Just(1), Just(254), Just(255), any::<u8>()];
        let text = proptest::collection::vec(byte, 0..4).prop_map(BoundPart::Text);
        prop_oneof![8 => text, 1 => Just(BoundPart::Infinity)]
    }

    /// Numbers around a text: all bounds of an order have parts of the same kinds.
    fn parts() -> impl Strategy<Value = Vec<BoundPart>> {
        (part(), text(), part(), 0..4usize).prop_map(|(a, b, c, len)| {
            let mut parts = vec![a, b, c];
            parts.truncate(len);
            parts
        })
    }

    proptest! {
        #[test]
        fn bytes_compare_as_the_parts(a in parts(), b in parts()) {
            let bound = |parts: &[BoundPart]| parts.iter().cloned().collect::<CellBound>();
            prop_assert_eq!(a.cmp(&b), bound(&a).cmp(&bound(&b)), "{:?} {:?}", a, b);
            prop_assert_eq!(bound(&a).parts().collect::<Vec<_>>(), a);
        }
    }

    #[test]
    fn nothing_is_outside_of_the_lowest_and_the_highest() {
        let parts = [BoundPart::Number(u64::MAX), BoundPart::Text(b"z".to_vec())];
        let bound: CellBound = parts.into_iter().collect();
        assert!(CellBound::LOWEST < bound && bound < CellBound::highest());
        assert_eq!(bound.0.len(), 9 + 4);
    }
}
