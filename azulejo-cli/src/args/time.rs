//! Time travel.

use crate::moment;
use azulejo::TimeRange;
use clap::Args;

/// Time travel.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Time travel")]
pub struct TimeArgs {
    /// As it was at this time: milliseconds since 1970 or a UTC date (2024-05-01 means the end of
    /// that day)
    #[arg(long, value_name = "T", value_parser = parse_last, conflicts_with_all = ["from", "to"])]
    pub at: Option<u64>,
    /// Only what was written at this time or later
    #[arg(long, value_name = "T", value_parser = parse_first)]
    pub from: Option<u64>,
    /// Only what was written up to and including this time
    #[arg(long, value_name = "T", value_parser = parse_last)]
    pub to: Option<u64>,
}

impl TimeArgs {
    /// The time range asked for.
    pub fn range(&self) -> TimeRange {
        TimeRange {
            start: self.from.unwrap_or(0),
            end: self.at.or(self.to).unwrap_or(u64::MAX),
        }
    }
}

pub(super) fn parse_first(text: &str) -> Result<u64, String> {
    moment::parse_timestamp(text).map(|(first, _)| first)
}

pub(super) fn parse_last(text: &str) -> Result<u64, String> {
    moment::parse_timestamp(text).map(|(_, last)| last)
}
