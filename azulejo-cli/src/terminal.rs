//! Where output goes: standard output with or without colours, JSON, the width of a terminal.

use crate::error::Result;
use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use std::io::{BufWriter, IsTerminal, StdoutLock, Write};

/// Names of things: columns, keys.
pub const NAME: Style = AnsiColor::Cyan.on_default();
/// Headings.
pub const HEADING: Style = Style::new().bold();
/// What matters less.
pub const FAINT: Style = Style::new().dimmed();

/// Standard output of one command.
#[derive(Debug)]
pub struct Output {
    out: BufWriter<AutoStream<StdoutLock<'static>>>,
    /// Whether JSON was asked for.
    pub json: bool,
    /// Whether notes and progress are unwanted.
    pub quiet: bool,
}

impl Output {
    /// Standard output; colours only on a terminal and unless `NO_COLOR` is set.
    pub fn new(json: bool, quiet: bool) -> Self {
        let out = BufWriter::with_capacity(64 * 1024, AutoStream::auto(std::io::stdout().lock()));
        Self { out, json, quiet }
    }

    /// The terminal's width in characters; `None` if standard output is none. `COLUMNS` counts
    /// before all.
    pub fn width(&self) -> Option<usize> {
        let set = std::env::var("COLUMNS")
            .ok()
            .and_then(|text| text.parse().ok())
            .filter(|&width| width > 0);
        if !Self::is_terminal() {
            return set;
        }
        set.or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)))
    }

    /// The terminal's height in lines; `None` if standard output is none. `LINES` counts before
    /// all.
    pub fn height(&self) -> Option<usize> {
        let set = std::env::var("LINES")
            .ok()
            .and_then(|text| text.parse().ok())
            .filter(|&height| height > 0);
        if !Self::is_terminal() {
            return set;
        }
        set.or_else(|| terminal_size::terminal_size().map(|(_, height)| usize::from(height.0)))
    }

    /// Whether standard output is a terminal.
    pub fn is_terminal() -> bool {
        std::io::stdout().is_terminal()
    }

    /// Whether styles show.
    pub fn has_colours(&self) -> bool {
        self.out.get_ref().current_choice() != anstream::ColorChoice::Never
    }

    /// Writes a value as indented JSON.
    pub fn write_json(&mut self, value: &serde_json::Value) -> Result<()> {
        self.out.flush()?;
        // Past the filter of escape sequences, which takes control characters out of strings.
        let mut out = BufWriter::with_capacity(64 * 1024, std::io::stdout());
        serde_json::to_writer_pretty(&mut out, value)?;
        writeln!(out)?;
        Ok(out.flush()?)
    }

    /// Writes a heading line.
    pub fn heading(&mut self, text: &str) -> Result<()> {
        Ok(writeln!(self.out, "{HEADING}{text}{HEADING:#}")?)
    }

    /// A note on standard error, unless quiet.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            anstream::eprintln!("{FAINT}{text}{FAINT:#}");
        }
    }

    /// Everything must be out before the exit code is chosen.
    pub fn finish(mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
