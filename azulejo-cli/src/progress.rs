//! Progress of long work, on standard error and on a terminal only.

use crate::args::ProgressArg;
use crate::size;
use anstream::{AutoStream, ColorChoice};
use azulejo::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A progress line; drawn only after a moment, so that quick work shows none.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// Whether the bar shows, once a moment has passed.
    shows: bool,
    bytes: Cell<u64>,
    lines: Option<Lines>,
}

/// Work that takes less shows no bar.
const MOMENT: Duration = Duration::from_millis(400);

/// What a bar looks like.
fn template(knows_total: bool, colours: bool) -> &'static str {
    match (knows_total, colours) {
        (true, true) => "{bar:30.cyan/dim} {percent:>3}%  {msg}  {eta} left",
        (true, false) => "{bar:30} {percent:>3}%  {msg}  {eta} left",
        (false, true) => "{spinner:.cyan} {msg}  {elapsed}",
        (false, false) => "{spinner} {msg}  {elapsed}",
    }
}

/// A line every few seconds.
#[derive(Debug, Clone)]
struct Lines(Arc<Mutex<Instant>>);

impl Default for Lines {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Lines {
    const EVERY: Duration = Duration::from_secs(2);

    fn say(&self, text: impl FnOnce() -> String) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= Self::EVERY {
            *last = Instant::now();
            anstream::eprintln!("{}", text());
        }
    }
}

impl Progress {
    /// A line for `total` cells, if that is known. A bar shows on a terminal only.
    pub fn new(total: Option<u64>, how: ProgressArg) -> Self {
        match how {
            ProgressArg::Plain => {
                let mut lines = Self::none();
                lines.lines = Some(Lines::default());
                return lines;
            }
            ProgressArg::Bar if std::io::stderr().is_terminal() => {}
            ProgressArg::Bar | ProgressArg::None => return Self::none(),
        }
        let colours = AutoStream::choice(&std::io::stderr()) != ColorChoice::Never;
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template(total.is_some(), colours)) {
            bar.set_style(style.progress_chars("━━─"));
        }
        bar.set_message("reading");
        let late = bar.downgrade();
        std::thread::spawn(move || {
            std::thread::sleep(MOMENT);
            if let Some(bar) = late.upgrade().filter(|bar| !bar.is_finished()) {
                bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
                bar.enable_steady_tick(Duration::from_millis(250));
            }
        });
        Self {
            bar,
            shows: true,
            bytes: Cell::new(0),
            lines: None,
        }
    }

    /// A context that tells this line how far its consolidations, vacuums, checks and copies have
    /// come.
    pub fn of_work(&self, context: &Context) -> Context {
        if let Some(lines) = self.lines.clone() {
            return context.observed(move |progress| {
                lines.say(|| {
                    let (done, total) = (size::count(progress.done), size::count(progress.total));
                    format!("{done} of {total} {}", progress.unit)
                });
            });
        }
        if !self.shows {
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
            shows: false,
            bytes: Cell::new(0),
            lines: None,
        }
    }

    /// So many cells are done altogether, with so many bytes more.
    pub fn add(&self, cells: u64, bytes: u64) {
        self.bytes.set(self.bytes.get() + bytes);
        if let Some(lines) = &self.lines {
            lines.say(|| format!("{} cells", size::count(cells)));
        }
        self.bar.set_position(cells);
        self.bar.set_message(format!(
            "{} cells, {}",
            size::count(cells),
            size::text(self.bytes.get())
        ));
    }

    /// `position` of the total is done, with so many rows.
    pub fn advance(&self, position: u64, rows: u64, what: &str) {
        if let Some(lines) = &self.lines {
            lines.say(|| format!("{what} {} rows", size::count(rows)));
        }
        self.bar.set_position(position);
        self.bar
            .set_message(format!("{what} {} rows", size::count(rows)));
    }

    /// Says `text`, which is made only where somebody sees it.
    #[cfg(feature = "sql")]
    pub fn say(&self, text: impl Fn() -> String) {
        if let Some(lines) = &self.lines {
            lines.say(&text);
        }
        if self.shows {
            self.bar.set_message(text());
        }
    }

    /// Does what writes to a terminal itself: the line is not there meanwhile.
    #[cfg(feature = "sql")]
    pub fn aside<R>(&self, work: impl FnOnce() -> R) -> R {
        self.bar.suspend(work)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_left_out_where_nobody_wants_them() {
        for knows_total in [true, false] {
            let plain = template(knows_total, false);
            assert!(ProgressStyle::with_template(plain).is_ok());
            assert!(!plain.contains("cyan") && template(knows_total, true).contains("cyan"));
        }
    }

    #[test]
    fn plain_lines_come_every_few_seconds() {
        let lines = Lines::default();
        let said = Cell::new(0);
        let say = || {
            lines.say(|| {
                said.set(said.get() + 1);
                "1 of 2 cells".to_owned()
            });
        };
        say();
        assert_eq!(said.get(), 0);
        let before = Instant::now().checked_sub(Lines::EVERY).unwrap();
        *lines.0.lock().unwrap() = before;
        say();
        say();
        assert_eq!(said.get(), 1);
    }
}
