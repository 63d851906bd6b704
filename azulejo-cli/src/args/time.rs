//! Time travel.

use crate::error::{CliError, Result};
use crate::moment;
use azulejo::{Context, TimeRange};
use clap::Args;
use std::str::FromStr;

/// A moment: a time, or the name of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// The first and the last millisecond that it names.
    Time(u64, u64),
    /// A named snapshot.
    Named(String),
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match moment::parse_timestamp(text) {
            Ok((first, last)) => Ok(Self::Time(first, last)),
            Err(_) if text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                Ok(Self::Named(text.to_owned()))
            }
            Err(reason) => Err(reason),
        }
    }
}

impl When {
    /// The last millisecond that it names, of what lies at a URI.
    pub fn last(&self, context: &Context, uri: &str) -> Result<u64> {
        Ok(match self {
            Self::Time(_, last) => *last,
            Self::Named(name) => context.object(uri).snapshot_time(name)?,
        })
    }
}

/// Time travel.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Time travel")]
pub struct TimeArgs {
    /// As it was at this time: milliseconds since 1970, a UTC date (2024-05-01 means the end of
    /// that day), `now`, `yesterday`, -1h (also s, m, d, w), or the name of a snapshot
    #[arg(long, value_name = "T", allow_hyphen_values = true, conflicts_with_all = ["from", "to"])]
    pub at: Option<When>,
    /// Only what was written at this time or later
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = parse_first)]
    pub from: Option<u64>,
    /// Only what was written up to and including this time
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = parse_last)]
    pub to: Option<u64>,
}

impl TimeArgs {
    /// The time range asked for, of what lies at a URI.
    pub fn range(&self, context: &Context, uri: &str) -> Result<TimeRange> {
        let at = self.at.as_ref();
        let at = at.map(|at| at.last(context, uri)).transpose()?;
        between(self.from, at.or(self.to))
    }
}

/// The times from one to another, both included.
///
/// # Errors
/// If the first lies after the other.
pub fn between(from: Option<u64>, to: Option<u64>) -> Result<TimeRange> {
    let range = TimeRange {
        start: from.unwrap_or(0),
        end: to.unwrap_or(u64::MAX),
    };
    match range.start <= range.end {
        true => Ok(range),
        false => Err(CliError::usage("--from lies after --to")),
    }
}

pub(super) fn parse_first(text: &str) -> Result<u64, String> {
    moment::parse_timestamp(text).map(|(first, _)| first)
}

pub(super) fn parse_last(text: &str) -> Result<u64, String> {
    moment::parse_timestamp(text).map(|(_, last)| last)
}
