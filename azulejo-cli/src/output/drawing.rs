//! Pictures in a terminal: with characters, or in the protocols that some terminals have.

use super::canvas::Canvas;
use crate::error::Result;
use clap::ValueEnum;
use std::fmt::Write as _;

/// How a terminal is given a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Graphics {
    /// Pixels if the terminal is known to take them, else characters
    Auto,
    /// Characters of half a block, two pixels in each
    Blocks,
    /// The protocol of kitty, which WezTerm, Ghostty and Konsole have too
    Kitty,
    /// Sixels, which xterm -ti vt340, foot, mlterm and others have
    Sixel,
}

impl Graphics {
    /// What the terminal says of itself in the environment.
    pub fn of_terminal(variable: impl Fn(&str) -> Option<String>) -> Self {
        let holds = |name: &str, words: &[&str]| {
            let value = variable(name).unwrap_or_default().to_ascii_lowercase();
            words.iter().any(|word| value.contains(word))
        };
        // Multiplexers pass neither on.
        if variable("TMUX").is_some() || holds("TERM", &["screen", "tmux"]) {
            return Self::Blocks;
        }
        if variable("KITTY_WINDOW_ID").is_some()
            || variable("KONSOLE_VERSION").is_some()
            || holds("TERM", &["kitty", "ghostty"])
            || holds("TERM_PROGRAM", &["wezterm", "ghostty"])
        {
            return Self::Kitty;
        }
        match holds("TERM", &["sixel", "mlterm", "foot", "vt340"]) {
            true => Self::Sixel,
            false => Self::Blocks,
        }
    }

    /// Pixels for each character across and down.
    pub fn pixels_per_character(self) -> (usize, usize) {
        match self {
            Self::Auto | Self::Blocks => (1, 2),
            // What most fonts have at least.
            Self::Kitty | Self::Sixel => (8, 16),
        }
    }
}

/// A picture for a terminal; with colours if `styled`, else characters are shades.
pub fn draw(canvas: &Canvas, graphics: Graphics, styled: bool) -> Result<String> {
    match graphics {
        Graphics::Auto | Graphics::Blocks => Ok(blocks(canvas, styled)),
        Graphics::Kitty => kitty(canvas),
        Graphics::Sixel => Ok(sixel(canvas)),
    }
}

fn blocks(canvas: &Canvas, styled: bool) -> String {
    let pixel = |row: usize, column: usize| match canvas.pixel(row, column) {
        [.., 0] => None,
        [r, g, b, _] => Some([r, g, b]),
    };
    let mut out = String::new();
    for row in (0..canvas.height()).step_by(2) {
        for column in 0..canvas.width() {
            let (top, bottom) = (pixel(row, column), pixel(row + 1, column));
            if styled {
                out.push_str(&match (top, bottom) {
                    (None, None) => "\u{1b}[0m ".to_owned(),
                    (Some(t), None) => format!("\u{1b}[0;38;2;{};{};{}m▀", t[0], t[1], t[2]),
                    (None, Some(b)) => format!("\u{1b}[0;38;2;{};{};{}m▄", b[0], b[1], b[2]),
                    (Some(t), Some(b)) => {
                        format!(
                            "\u{1b}[0;38;2;{};{};{};48;2;{};{};{}m▀",
                            t[0], t[1], t[2], b[0], b[1], b[2]
                        )
                    }
                });
                continue;
            }
            let lights: Vec<u32> = [top, bottom]
                .iter()
                .flatten()
                .map(|p| p.iter().map(|&v| u32::from(v)).sum::<u32>() / 3)
                .collect();
            out.push(match lights.len() {
                0 => ' ',
                n => {
                    [' ', '░', '▒', '▓', '█'][(lights.iter().sum::<u32>() / n as u32 / 52) as usize]
                }
            });
        }
        out.push_str(if styled { "\u{1b}[0m\n" } else { "\n" });
    }
    out
}

/// A PNG file in pieces of base64, as kitty wants them.
fn kitty(canvas: &Canvas) -> Result<String> {
    let mut file = Vec::new();
    canvas.write_png(&mut file)?;
    let text = base64(&file);
    let mut out = String::new();
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(4096).collect();
    for (at, piece) in pieces.iter().enumerate() {
        let first = if at == 0 { "a=T,f=100," } else { "" };
        let more = u8::from(at + 1 < pieces.len());
        let piece = String::from_utf8_lossy(piece);
        // Writing to a string cannot fail.
        let _ = write!(out, "\u{1b}_G{first}m={more};{piece}\u{1b}\\");
    }
    out.push('\n');
    Ok(out)
}

/// Bytes as base64.
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, at| {
            bits << 8 | u32::from(group.get(at).copied().unwrap_or(0))
        });
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at)) as usize & 63];
            out.push(if at <= group.len() {
                digit as char
            } else {
                '='
            });
        }
    }
    out
}

/// Steps of red, green and blue in a palette of 216 colours.
const STEPS: usize = 6;

/// Rows of six pixels at a time, colour by colour.
fn sixel(canvas: &Canvas) -> String {
    let colour = |row: usize, column: usize| -> Option<usize> {
        let [r, g, b, alpha] = canvas.pixel(row, column);
        let step = |value: u8| (usize::from(value) * (STEPS - 1) + 127) / 255;
        (alpha > 0).then(|| (step(r) * STEPS + step(g)) * STEPS + step(b))
    };
    let mut used = vec![false; STEPS * STEPS * STEPS];
    for row in 0..canvas.height() {
        for column in 0..canvas.width() {
            if let Some(colour) = colour(row, column) {
                used[colour] = true;
            }
        }
    }
    let mut out = format!("\u{1b}P0;1;0q\"1;1;{};{}", canvas.width(), canvas.height());
    for (colour, _) in used.iter().enumerate().filter(|(_, used)| **used) {
        let percent = |step: usize| step * 100 / (STEPS - 1);
        let (r, g, b) = (
            percent(colour / (STEPS * STEPS)),
            percent(colour / STEPS % STEPS),
            percent(colour % STEPS),
        );
        let _ = write!(out, "#{colour};2;{r};{g};{b}");
    }
    for top in (0..canvas.height()).step_by(6) {
        let mut bands: Vec<(usize, Vec<u8>)> = Vec::new();
        for (row, bit) in (top..top + 6).zip(0..6) {
            for column in 0..canvas.width() {
                let Some(colour) = colour(row, column) else {
                    continue;
                };
                let at = match bands.iter().position(|(known, _)| *known == colour) {
                    Some(at) => at,
                    None => {
                        bands.push((colour, vec![0; canvas.width()]));
                        bands.len() - 1
                    }
                };
                bands[at].1[column] |= 1 << bit;
            }
        }
        for (colour, dots) in bands {
            let _ = write!(out, "#{colour}");
            let mut at = 0;
            while at < dots.len() {
                let run = dots[at..].iter().take_while(|&&d| d == dots[at]).count();
                let sign = char::from(b'?' + dots[at]);
                let _ = match run {
                    1 => write!(out, "{sign}"),
                    run => write!(out, "!{run}{sign}"),
                };
                at += run;
            }
            out.push('$');
        }
        out.push('-');
    }
    out.push_str("\u{1b}\\\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canvas() -> Canvas {
        let (black, white) = ([0, 0, 0, 255], [255; 4]);
        Canvas::new(2, vec![black, white, black, white, [0; 4], [0; 4]])
    }

    #[test]
    fn a_drawing_has_half_as_many_lines_as_pixels() {
        assert_eq!(blocks(&canvas(), false), " █\n  \n");
        assert_eq!(blocks(&canvas(), true).lines().count(), 2);
    }

    #[test]
    fn base64_is_as_everywhere() {
        for (bytes, text) in [("", ""), ("M", "TQ=="), ("Ma", "TWE="), ("Man", "TWFu")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn sixels_are_runs_of_each_colour() {
        let text = sixel(&canvas());
        assert_eq!(
            text,
            "\u{1b}P0;1;0q\"1;1;2;3#0;2;0;0;0#215;2;100;100;100#0B?$#215?B$-\u{1b}\\\n"
        );
        let kitty = kitty(&canvas()).unwrap();
        assert!(kitty.starts_with("\u{1b}_Ga=T,f=100,m=0;iVBOR") && kitty.ends_with("\u{1b}\\\n"));
    }

    #[test]
    fn terminals_say_what_they_take() {
        let of = |known: &'static [(&str, &str)]| {
            Graphics::of_terminal(|name| {
                let found = known.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[("TERM", "xterm-256color")]), Graphics::Blocks);
        assert_eq!(of(&[("TERM", "xterm-kitty")]), Graphics::Kitty);
        assert_eq!(of(&[("TERM_PROGRAM", "WezTerm")]), Graphics::Kitty);
        assert_eq!(of(&[("TERM", "foot-extra")]), Graphics::Sixel);
        assert_eq!(of(&[("TERM", "foot"), ("TMUX", "1")]), Graphics::Blocks);
    }
}
