//! What `sql` takes.

use super::CatFormat;
use clap::Args;
use std::path::PathBuf;

/// What `sql` takes.
#[derive(Debug, Args)]
pub struct SqlArgs {
    /// The query, or several with semicolons between them; without one a shell begins
    pub query: Option<String>,
    /// File of queries; - is standard input
    #[arg(long, short, value_name = "FILE", conflicts_with = "query")]
    pub file: Option<PathBuf>,
    /// An array under a name of its own; may be given several times
    #[arg(long, value_name = "NAME=URI")]
    pub table: Vec<String>,
    /// A group or folder as a catalog; may be given several times
    #[arg(long, value_name = "NAME=URI")]
    pub catalog: Vec<String>,
    /// Workers that queries run on: addresses of `azulejo worker`, separated by commas
    #[cfg(feature = "distributed")]
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub workers: Vec<String>,
    /// Partitions that a query is divided into [default: as many as threads]
    #[arg(long, value_name = "N")]
    pub partitions: Option<usize>,
    /// How to write rows [default: table on a terminal, csv elsewhere]
    #[arg(long, value_enum)]
    pub format: Option<CatFormat>,
}

/// What `worker` takes.
#[cfg(feature = "distributed")]
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// Where to listen; port 0 is any free one. Whoever can connect can read what this process can
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    pub listen: std::net::SocketAddr,
}
