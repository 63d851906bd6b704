//! Progress of long work, on standard error and on a terminal only.

use crate::size;
use azulejo::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::IsTerminal;
use std::time::Duration;

/// A progress line; drawn only after a moment, so that quick work shows none.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    bytes: Cell<u64>,
}

impl Progress {
    /// A line for `total` cells, if that is known. Draws nothing when `quiet` or when standard
    /// error is no terminal.
    pub fn new(total: Option<u64>, quiet: bool) -> Self {
        if quiet || !std::io::stderr().is_terminal() {
            return Self::none();
        }
        let target = ProgressDrawTarget::stderr_with_hz(8);
        let (bar, template) = match total {
            Some(total) => (
                ProgressBar::with_draw_target(Some(total), target),
                "{bar:30.cyan/dim} {percent:>3}%  {msg}  {eta} left",
            ),
            None => (
                ProgressBar::with_draw_target(None, target),
                "{spinner:.cyan} {msg}  {elapsed}",
            ),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━━─"));
        }
        bar.set_message("reading");
        bar.enable_steady_tick(Duration::from_millis(250));
        Self {
            bar,
            bytes: Cell::new(0),
        }
    }

    /// A context that tells this line how far its consolidations, vacuums, checks and copies have
    /// come.
    pub fn of_work(&self, context: &Context) -> Context {
        if self.bar.is_hidden() {
            return context.clone();
        }
        let bar = self.bar.clone();
        bar.set_message("starting");
        context.observed(move |progress| {
            bar.set_length(progress.total);
            bar.set_position(progress.done);
            let (done, total) = (size::count(progress.done), size::count(progress.total));
            bar.set_message(format!("{done} of {total} {}", progress.unit));
        })
    }

    /// No line at all.
    pub fn none() -> Self {
        Self {
            bar: ProgressBar::hidden(),
            bytes: Cell::new(0),
        }
    }

    /// So many cells are done altogether, with so many bytes more.
    pub fn add(&self, cells: u64, bytes: u64) {
        self.bytes.set(self.bytes.get() + bytes);
        self.bar.set_position(cells);
        self.bar.set_message(format!(
            "{} cells, {}",
            size::count(cells),
            size::text(self.bytes.get())
        ));
    }

    /// `position` of the total is done, with so many rows.
    pub fn advance(&self, position: u64, rows: u64, what: &str) {
        self.bar.set_position(position);
        self.bar
            .set_message(format!("{what} {} rows", size::count(rows)));
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
