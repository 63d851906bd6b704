//! A tile painted on three days: pixel by pixel, as records that `import` takes.

use std::fmt::Write as _;

/// The tile after each day, a letter a pixel; an empty line parts the days.
const DAYS: &str = include_str!("../../../assets/tile.txt");

/// One day's work: the pixels of the box that changed, as JSON lines.
pub fn day(day: usize) -> String {
    let pictures: Vec<Vec<&[u8]>> = DAYS
        .split("\n\n")
        .map(|text| text.lines().map(str::as_bytes).collect())
        .collect();
    let empty = Vec::new();
    let before = day
        .checked_sub(1)
        .and_then(|before| pictures.get(before))
        .unwrap_or(&empty);
    let Some(after) = pictures.get(day) else {
        return String::new();
    };
    let pixels = || {
        after
            .iter()
            .enumerate()
            .flat_map(|(y, row)| (0..row.len()).map(move |x| (y, x)))
    };
    let at =
        |picture: &[&[u8]], y: usize, x: usize| picture.get(y).and_then(|row| row.get(x)).copied();
    let changed = || pixels().filter(|&(y, x)| at(before, y, x) != at(after, y, x));
    let (top, bottom) = span(changed().map(|(y, _)| y));
    let (left, right) = span(changed().map(|(_, x)| x));
    let mut lines = String::new();
    for (y, x) in
        pixels().filter(|&(y, x)| (top..=bottom).contains(&y) && (left..=right).contains(&x))
    {
        let [red, green, blue] = colour(at(after, y, x));
        let _ = writeln!(
            lines,
            "{{\"y\":{y},\"x\":{x},\"colour\":[{red},{green},{blue}]}}"
        );
    }
    lines
}

fn span(values: impl Iterator<Item = usize>) -> (usize, usize) {
    values.fold((usize::MAX, 0), |(least, most), value| {
        (least.min(value), most.max(value))
    })
}

fn colour(letter: Option<u8>) -> [u8; 3] {
    match letter {
        Some(b'#') => [24, 58, 140],
        Some(b'o') => [120, 160, 214],
        Some(b'*') => [232, 180, 46],
        _ => [244, 241, 230],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_day_paints_a_box() {
        let lines = [0, 1, 2].map(|d| day(d).lines().count());
        assert_eq!(lines[0], 40 * 40);
        assert!(lines[1] > lines[2] && lines[2] > 0, "{lines:?}");
        assert_eq!(
            day(0).lines().next(),
            Some("{\"y\":0,\"x\":0,\"colour\":[24,58,140]}")
        );
        assert_eq!(day(3), "");
    }
}
