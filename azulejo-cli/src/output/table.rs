//! Tables that fit a terminal.

use std::fmt::Write as _;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The widest that a cell gets while others need the room.
const FAIR_WIDTH: usize = 40;
/// Characters between two columns.
const GAP: usize = 2;

/// How a column's text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table in memory: a heading and rows of text.
#[derive(Debug, Clone, Default)]
pub struct Table {
    names: Vec<String>,
    aligns: Vec<Align>,
    /// Columns whose cells are not shortened, because other commands take them.
    whole: Vec<bool>,
    rows: Vec<Vec<String>>,
}

/// A table as text, and what did not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The lines, each with its line end.
    pub text: String,
    /// Names of the columns left out.
    pub hidden: Vec<String>,
}

impl Table {
    /// A table with these columns.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = (S, Align)>) -> Self {
        let (names, aligns): (Vec<String>, Vec<Align>) = columns
            .into_iter()
            .map(|(name, align)| (one_line(&name.into()), align))
            .unzip();
        Self {
            whole: vec![false; names.len()],
            names,
            aligns,
            rows: Vec::new(),
        }
    }

    /// Keeps the cells of a column whole.
    pub fn keep_whole(mut self, name: &str) -> Self {
        for (column, whole) in self.names.iter().zip(&mut self.whole) {
            *whole |= column == name;
        }
        self
    }

    /// Adds a row. Control characters are shown, not obeyed: stored text may hold any.
    pub fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(
            cells
                .into_iter()
                .map(|cell| one_line(cell.as_ref()))
                .collect(),
        );
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as text, no wider than `width`: first wide cells are shortened, then the last
    /// columns left out.
    pub fn render(&self, width: Option<usize>, styled: bool) -> Rendered {
        let mut widths: Vec<usize> = self.names.iter().map(|name| name.width()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let fixed = &self.whole;
        let shown = width.map_or(widths.len(), |width| fit(&mut widths, fixed, width));
        let mut text = String::new();
        let (bold, plain) = if styled {
            ("\u{1b}[1m", "\u{1b}[0m")
        } else {
            ("", "")
        };
        text.push_str(bold);
        self.line(&mut text, &self.names, &widths[..shown]);
        text.insert_str(text.len() - 1, plain);
        for row in &self.rows {
            self.line(&mut text, row, &widths[..shown]);
        }
        Rendered {
            text,
            hidden: self.names[shown..].to_vec(),
        }
    }

    /// The table as text with a line for each cell that is not empty: where columns do not fit
    /// beside each other.
    pub fn render_down(&self) -> String {
        let width = self
            .names
            .iter()
            .map(|name| name.width())
            .max()
            .unwrap_or(0);
        let mut text = String::new();
        for (at, row) in self.rows.iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            let full = self
                .names
                .iter()
                .zip(row)
                .filter(|(_, cell)| !cell.is_empty());
            for (name, cell) in full {
                let padding = width - name.width();
                // Writing to a string cannot fail.
                let _ = write!(text, "{name}{:padding$}  {cell}", "");
                text.truncate(text.trim_end_matches(' ').len());
                text.push('\n');
            }
        }
        text
    }

    fn line(&self, text: &mut String, cells: &[String], widths: &[usize]) {
        let last = widths.len().saturating_sub(1);
        for (at, (cell, &width)) in cells.iter().zip(widths).enumerate() {
            let cell = shorten(cell, width);
            let padding = width.saturating_sub(cell.width());
            let right = self.aligns.get(at) == Some(&Align::Right);
            let (before, after) = if right { (padding, 0) } else { (0, padding) };
            // No blanks at the end of a line.
            let after = if at == last { 0 } else { after + GAP };
            // Writing to a string cannot fail.
            let _ = write!(text, "{:before$}{cell}{:after$}", "", "");
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
}

/// Shrinks widths to fit; returns how many columns stay.
fn fit(widths: &mut [usize], fixed: &[bool], width: usize) -> usize {
    let total =
        |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    let mut shown = widths.len();
    // Take from the widest columns what there is too much, down to a fair width.
    while total(&widths[..shown]) > width {
        let excess = total(&widths[..shown]) - width;
        let free = widths[..shown].iter().zip(fixed);
        let free = free.filter(|(_, fixed)| !**fixed);
        let widest = free.map(|(width, _)| *width).max().unwrap_or(0);
        if widest <= FAIR_WIDTH {
            if shown == 1 {
                break;
            }
            shown -= 1;
            continue;
        }
        for (column, fixed) in widths[..shown].iter_mut().zip(fixed) {
            if *column == widest && !fixed {
                *column = widest.saturating_sub(excess).max(FAIR_WIDTH);
                break;
            }
        }
    }
    // A single column is cut to the terminal at last, and room left over goes to the columns that
    // lack it.
    if let [only] = &mut widths[..shown] {
        *only = (*only).min(width.max(1));
    }
    shown
}

/// Cuts text to a width, with an ellipsis at its end.
pub fn shorten(text: &str, width: usize) -> std::borrow::Cow<'_, str> {
    if text.width() <= width {
        return text.into();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > width {
            break;
        }
        used += w;
        out.push(c);
    }
    out.push('…');
    out.into()
}

/// Text on one line: control characters as escapes.
pub fn one_line(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    text.chars()
        .flat_map(|c| {
            if c.is_control() {
                c.escape_default().collect()
            } else {
                vec![c]
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([
            ("x", Align::Right),
            ("name", Align::Left),
            ("note", Align::Left),
        ]);
        table.row([
            "1",
            "é日本",
            "a long note that goes on and on and on and on and on",
        ]);
        table.row(["-100", "b\n\u{1b}[31m", ""]);
        table
    }

    #[test]
    fn columns_line_up() {
        let expected = "   x  name           note\n   \
                        1  é日本          a long note that goes on and on and on and on and on\n\
                        -100  b\\n\\u{1b}[31m\n";
        assert_eq!(
            table().render(None, false),
            Rendered {
                text: expected.into(),
                hidden: vec![]
            }
        );
    }

    #[test]
    fn a_table_fits_its_width() {
        for width in 1..100 {
            let rendered = table().render(Some(width), false);
            let widest = rendered
                .text
                .lines()
                .map(UnicodeWidthStr::width)
                .max()
                .unwrap();
            assert!(widest <= width.max(1), "{width}: {rendered:?}");
        }
        let narrow = table().render(Some(30), false);
        assert_eq!(narrow.hidden, ["note"]);
        let shortened = table().render(Some(65), false);
        assert!(
            shortened.hidden.is_empty() && shortened.text.contains('…'),
            "{shortened:?}"
        );
    }
}
