//! What `agg` takes.

use super::{CellArgs, TimeArgs};
use clap::Args;

/// What `agg` takes.
#[derive(Debug, Args)]
pub struct AggArgs {
    /// Path or URI of an array
    pub uri: String,
    /// `count`, or one of sum, mean, min, max, nulls, stddev, distinct, median, histogram or a
    /// percentile such as p95 with a field: `sum:a`
    #[arg(required = true, value_name = "WHAT")]
    pub aggregates: Vec<String>,
    /// For each value of these fields; dates by `t:year`, `t:month`, `t:day`, `t:hour` or
    /// `t:minute`
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub by: Vec<String>,
    /// Leave NaN out
    #[arg(long)]
    pub skip_nan: bool,
    /// Parts of a histogram at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub bins: usize,
    /// When to look at it.
    #[command(flatten)]
    pub time: TimeArgs,
    /// Which cells.
    #[command(flatten)]
    pub selection: CellArgs,
}
