//! Numbers in dots, five wide and seven high.

/// Rows of a character.
pub const HEIGHT: usize = 7;
const WIDTH: usize = 5;
/// Columns from one character to the next.
const STEP: usize = WIDTH + 1;

/// A row each, the leftmost dot in the highest of five bits.
fn rows(c: char) -> [u8; HEIGHT] {
    match c {
        '0' => [0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e],
        '1' => [0x04, 0x0c, 0x04, 0x04, 0x04, 0x04, 0x0e],
        '2' => [0x0e, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1f],
        '3' => [0x1f, 0x02, 0x04, 0x02, 0x01, 0x11, 0x0e],
        '4' => [0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02],
        '5' => [0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e],
        '6' => [0x06, 0x08, 0x10, 0x1e, 0x11, 0x11, 0x0e],
        '7' => [0x1f, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08],
        '8' => [0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e],
        '9' => [0x0e, 0x11, 0x11, 0x0f, 0x01, 0x02, 0x0c],
        '-' => [0, 0, 0, 0x1f, 0, 0, 0],
        '+' => [0, 0x04, 0x04, 0x1f, 0x04, 0x04, 0],
        '.' => [0, 0, 0, 0, 0, 0x0c, 0x0c],
        'e' => [0, 0, 0x0e, 0x11, 0x1f, 0x10, 0x0e],
        _ => [0; HEIGHT],
    }
}

/// Columns of a text.
pub fn width(text: &str) -> usize {
    (text.chars().count() * STEP).saturating_sub(1)
}

/// The dots of a text: row and column.
pub fn dots(text: &str) -> impl Iterator<Item = (usize, usize)> {
    text.chars().enumerate().flat_map(|(at, c)| {
        rows(c)
            .into_iter()
            .enumerate()
            .flat_map(move |(row, bits)| {
                let set = (0..WIDTH).filter(move |column| bits >> (WIDTH - 1 - column) & 1 == 1);
                set.map(move |column| (row, at * STEP + column))
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_its_width_and_every_mark_some_dots() {
        assert_eq!(width("-12"), 17);
        for c in "0123456789-+.e".chars() {
            assert!(dots(&c.to_string()).count() > 0, "{c}");
        }
        assert!(dots("88").all(|(row, column)| row < HEIGHT && column < width("88")));
    }
}
