//! Patterns of text: `%` for any characters, `_` for one.

use azulejo_format::{CellValNum, Datatype};

/// A pattern, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    pieces: Vec<Piece>,
    /// Whether a character may have several bytes.
    utf8: bool,
    /// Whether zero bytes fill the end of cells.
    padded: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Byte(u8),
    One,
    Any,
}

impl Pattern {
    /// Reads a pattern for cells of a type. A backslash takes what follows as it is; at the end it
    /// is itself.
    pub fn parse(pattern: &[u8], datatype: Datatype, cell_val_num: CellValNum) -> Self {
        let mut pieces: Vec<Piece> = Vec::with_capacity(pattern.len());
        let mut bytes = pattern.iter().copied();
        while let Some(byte) = bytes.next() {
            match byte {
                // Two of them say no more than one, and take longer.
                b'%' if pieces.last() == Some(&Piece::Any) => {}
                b'%' => pieces.push(Piece::Any),
                b'_' => pieces.push(Piece::One),
                b'\\' => pieces.push(Piece::Byte(bytes.next().unwrap_or(b'\\'))),
                byte => pieces.push(Piece::Byte(byte)),
            }
        }
        Self {
            pieces,
            utf8: datatype == Datatype::StringUtf8,
            padded: !cell_val_num.is_var(),
        }
    }

    /// What all text of the pattern begins with.
    pub fn prefix(&self) -> Vec<u8> {
        let bytes = self.pieces.iter().map_while(|piece| match piece {
            Piece::Byte(byte) => Some(*byte),
            Piece::One | Piece::Any => None,
        });
        bytes.collect()
    }

    /// The text that alone has the pattern, if it has no marks.
    pub fn plain(&self) -> Option<Vec<u8>> {
        let prefix = self.prefix();
        (prefix.len() == self.pieces.len()).then_some(prefix)
    }

    /// The beginning that is all that the pattern asks for.
    pub fn only_prefix(&self) -> Option<Vec<u8>> {
        let prefix = self.prefix();
        (self.pieces.get(prefix.len()..) == Some(&[Piece::Any])).then_some(prefix)
    }

    /// Whether a cell's text has the pattern.
    pub fn matches(&self, cell: &[u8]) -> bool {
        let text = match self.padded {
            true => {
                let end = cell.iter().rposition(|&b| b != 0).map_or(0, |at| at + 1);
                cell.get(..end).unwrap_or(cell)
            }
            false => cell,
        };
        let (mut at, mut piece) = (0, 0);
        // Behind the last `%` met: its piece, and where in the text it was tried last.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let next = match (self.pieces.get(piece), text.get(at)) {
                (Some(Piece::Any), _) => {
                    retry = Some((piece + 1, at));
                    piece += 1;
                    continue;
                }
                (Some(Piece::Byte(wanted)), Some(found)) if wanted == found => Some(at + 1),
                (Some(Piece::One), Some(_)) => Some(self.step(text, at)),
                (None, None) => return true,
                _ => None,
            };
            match (next, retry) {
                (Some(next), _) => (at, piece) = (next, piece + 1),
                (None, Some((behind, from))) if from < text.len() => {
                    let from = self.step(text, from);
                    retry = Some((behind, from));
                    (at, piece) = (from, behind);
                }
                (None, _) => return false,
            }
        }
    }

    /// Where the character after the one at `at` begins.
    fn step(&self, text: &[u8], at: usize) -> usize {
        let rest = text.get(at + 1..).unwrap_or(&[]);
        let more = match self.utf8 {
            true => rest
                .iter()
                .take(3)
                .take_while(|&&b| b & 0xc0 == 0x80)
                .count(),
            false => 0,
        };
        at + 1 + more
    }
}

/// The least text above all that begins with this; `None` if there is none.
pub(super) fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let at = prefix.iter().rposition(|&b| b != 0xff)?;
    let mut end = prefix.get(..=at)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(pattern: &str) -> Pattern {
        Pattern::parse(pattern.as_bytes(), Datatype::StringUtf8, CellValNum::Var)
    }

    /// Said as plainly as it can be: over characters, by trying all.
    fn naive(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|at| naive(rest, &text[at..])),
            ['_', rest @ ..] => !text.is_empty() && naive(rest, &text[1..]),
            ['\\', c, rest @ ..] | [c, rest @ ..] => {
                text.first() == Some(c) && naive(rest, &text[1..])
            }
        }
    }

    proptest! {
        #[test]
        fn patterns_match_as_the_plain_meaning_says(
            pattern in "[aé%_]{0,4}(\\\\[%_a])?[aé%_]{0,4}",
            text in "[aé%_]{0,8}",
        ) {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = naive(&chars(&pattern), &chars(&text));
            prop_assert_eq!(of(&pattern).matches(text.as_bytes()), expected);
            let prefix = of(&pattern).prefix();
            if expected {
                prop_assert!(text.as_bytes().starts_with(&prefix));
                prop_assert!(successor(&prefix).is_none_or(|end| text.as_bytes() < &end[..]));
            }
        }

        #[test]
        fn any_bytes_are_matched_or_not(
            pattern in proptest::collection::vec(any::<u8>(), 0..12),
            cell in proptest::collection::vec(any::<u8>(), 0..12),
        ) {
            let _ = Pattern::parse(&pattern, Datatype::StringUtf8, CellValNum::Var).matches(&cell);
        }
    }

    #[test]
    fn forms_that_comparisons_can_say() {
        assert_eq!(of("a\\%").plain(), Some(b"a%".to_vec()));
        assert_eq!(of("a%").plain(), None);
        assert_eq!(of("a%%").only_prefix(), Some(b"a".to_vec()));
        assert_eq!(of("a%b").only_prefix(), None);
        assert_eq!(of("%").only_prefix(), Some(Vec::new()));
        assert_eq!(successor(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(successor(b"\xff"), None);
        let fixed = Pattern::parse(b"a_", Datatype::StringAscii, CellValNum::Fixed(4));
        assert!(fixed.matches(b"ab\0\0") && !fixed.matches(b"abc\0"));
    }
}
