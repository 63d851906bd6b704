//! When `azulejo maintain` does what: numbers that an owner can change.

use crate::error::{CliError, Result};
use crate::settings::nearest;
use crate::size;
use std::path::Path;

/// When replaced fragments go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VacuumWhen {
    /// In the next run.
    Next,
    /// In the same run.
    Now,
    /// Not at all.
    Never,
}

/// When what is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// More fragments are consolidated.
    pub fragments: usize,
    /// Neighbours are consolidated together that differ in size by at most this ratio.
    pub size_ratio: f64,
    /// A consolidated fragment is split where it would be larger, in bytes.
    pub max_fragment_size: u64,
    /// More commit files become one.
    pub commits: usize,
    /// More footers become one file.
    pub footers: usize,
    /// More files of key-values become one.
    pub key_values: usize,
    /// When replaced fragments go.
    pub vacuum: VacuumWhen,
    /// Whether times stay that a vacuum would take: those within consolidated fragments of dense
    /// arrays, and of key-values.
    pub keep_history: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            fragments: 16,
            size_ratio: 0.1,
            max_fragment_size: 1 << 30,
            commits: 64,
            footers: 64,
            key_values: 16,
            vacuum: VacuumWhen::Next,
            keep_history: true,
        }
    }
}

/// The names of a policy's numbers.
const NAMES: [&str; 8] = [
    "fragments",
    "size-ratio",
    "max-fragment-size",
    "commits",
    "footers",
    "key-values",
    "vacuum",
    "history",
];

impl Policy {
    /// Reads a file of names and values, a line each; `#` begins a comment. What it does not name
    /// stays as it is by default.
    pub fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file).map_err(|e| CliError::io("read", file, e))?;
        Self::parse(&text)
            .map_err(|reason| CliError::usage(format!("{}, {reason}", file.display())))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut policy = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (name, value) = line
                .split_once(|c: char| c == '=' || c.is_whitespace())
                .unwrap_or((line, ""));
            let value = value.trim_start_matches(|c: char| c == '=' || c.is_whitespace());
            policy
                .set(name, value.trim())
                .map_err(|reason| format!("line {}: {reason}", number + 1))?;
        }
        Ok(policy)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let count = || {
            let number = value.parse::<usize>().ok().filter(|n| *n > 0);
            number.ok_or_else(|| format!("{name} is a number from 1 on, not {value:?}"))
        };
        match name {
            "fragments" => self.fragments = count()?,
            "commits" => self.commits = count()?,
            "footers" => self.footers = count()?,
            "key-values" => self.key_values = count()?,
            "max-fragment-size" => self.max_fragment_size = size::parse(value)?.max(1),
            "size-ratio" => {
                let ratio = value
                    .parse::<f64>()
                    .ok()
                    .filter(|r| (0.0..=1.0).contains(r));
                self.size_ratio = ratio
                    .ok_or_else(|| format!("{name} is a number from 0 to 1, not {value:?}"))?;
            }
            "vacuum" => {
                self.vacuum = match value {
                    "next" => VacuumWhen::Next,
                    "now" => VacuumWhen::Now,
                    "never" => VacuumWhen::Never,
                    _ => return Err(format!("vacuum is next, now or never, not {value:?}")),
                }
            }
            "history" => {
                self.keep_history = match value {
                    "keep" => true,
                    "drop" => false,
                    _ => return Err(format!("history is keep or drop, not {value:?}")),
                }
            }
            _ => {
                let near = match nearest(name, NAMES.into_iter()) {
                    Some(near) => format!("; did you mean {near}?"),
                    None => format!("; there are {}", NAMES.join(", ")),
                };
                return Err(format!("a policy has no {name:?}{near}"));
            }
        }
        Ok(())
    }

    /// The policy as a file.
    pub fn text(&self) -> String {
        let vacuum = match self.vacuum {
            VacuumWhen::Next => "next",
            VacuumWhen::Now => "now",
            VacuumWhen::Never => "never",
        };
        let history = if self.keep_history { "keep" } else { "drop" };
        format!(
            "# More fragments than this are consolidated,\n\
             fragments {}\n\
             # neighbours whose sizes differ by at most this ratio together, so that large ones are left alone,\n\
             size-ratio {}\n\
             # into fragments of at most this size.\n\
             max-fragment-size {}\n\
             # More commit files, footers and files of key-values than these become one file each.\n\
             commits {}\n\
             footers {}\n\
             key-values {}\n\
             # What was replaced goes in the next run, now, or never.\n\
             vacuum {vacuum}\n\
             # keep: times that a vacuum would take stay (those within consolidated fragments of dense arrays, and of\n\
             # key-values), and with them their files; drop: they go.\n\
             history {history}\n",
            self.fragments,
            self.size_ratio,
            self.max_fragment_size,
            self.commits,
            self.footers,
            self.key_values,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_a_file_of_names_and_values() {
        assert_eq!(
            Policy::parse(&Policy::default().text()),
            Ok(Policy::default())
        );
        let text = "fragments = 5 # few\n\nmax-fragment-size 2GiB\nvacuum now\nhistory drop\nsize-ratio 0.5\n";
        let policy = Policy::parse(text).unwrap();
        assert_eq!((policy.fragments, policy.max_fragment_size), (5, 2 << 30));
        assert_eq!(
            (policy.vacuum, policy.keep_history),
            (VacuumWhen::Now, false)
        );
        assert_eq!(Policy::parse(&policy.text()), Ok(policy));
        for (text, says) in [
            (
                "fragmnets 5",
                "line 1: a policy has no \"fragmnets\"; did you mean fragments?",
            ),
            (
                "\nsomething else",
                "line 2: a policy has no \"something\"; there are",
            ),
            ("fragments none", "a number from 1 on"),
            ("size-ratio 2", "from 0 to 1"),
            ("vacuum soon", "next, now or never"),
            ("history", "keep or drop"),
        ] {
            let error = Policy::parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
