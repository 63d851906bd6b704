//! What `azulejo serve` and `azulejo view` take.

use super::TimeArgs;
use clap::{ArgGroup, Args};
use std::path::PathBuf;

/// What `serve` takes.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("protocol").required(true)))]
pub struct ServeArgs {
    /// Path or URI of a dense array; for Flight SQL of arrays, groups and folders, under names of
    /// their own where they are written NAME=URI
    #[arg(required = true)]
    pub uri: Vec<String>,
    /// As Zarr, version 3
    #[arg(long, group = "protocol")]
    pub zarr: bool,
    /// As tables, over Arrow Flight SQL
    #[cfg(feature = "flight-sql")]
    #[arg(long, group = "protocol", conflicts_with_all = ["port", "at", "from", "to"])]
    pub flight_sql: bool,
    /// The port on 127.0.0.1; 0 is any that is free
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// When to look at it.
    #[command(flatten)]
    pub time: TimeArgs,
    /// How tables are served.
    #[cfg(feature = "flight-sql")]
    #[command(flatten)]
    pub tables: FlightSqlArgs,
}

/// How `serve --flight-sql` serves.
#[cfg(feature = "flight-sql")]
#[derive(Debug, Args)]
#[command(next_help_heading = "Flight SQL")]
pub struct FlightSqlArgs {
    /// Where to listen; port 0 is any free one
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:0",
        conflicts_with = "zarr"
    )]
    pub listen: std::net::SocketAddr,
    /// The token that clients send, alone in a file [default: one that is made up and printed]
    #[arg(long, value_name = "FILE", conflicts_with = "zarr")]
    pub token_file: Option<PathBuf>,
    /// The certificate, in PEM, with those that it stands on behind it
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        conflicts_with = "zarr"
    )]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's key, in PEM
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_cert",
        conflicts_with = "zarr"
    )]
    pub tls_key: Option<PathBuf>,
    /// Listen to other machines without TLS: whoever sees the traffic sees rows and the token
    #[arg(long, conflicts_with_all = ["zarr", "tls_cert"])]
    pub insecure: bool,
    /// Allow INSERT, UPDATE, DELETE and TRUNCATE
    #[arg(long, conflicts_with = "zarr")]
    pub writable: bool,
    /// Seconds that a query may take, until its last row is taken
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 300,
        conflicts_with = "zarr"
    )]
    pub query_time: u64,
    /// Queries at a time; further ones wait
    #[arg(long, value_name = "N", default_value_t = 8, conflicts_with = "zarr")]
    pub queries: usize,
    /// Bytes that the text of a statement may have; rows in bulk are no text
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 1 << 20,
        conflicts_with = "zarr"
    )]
    pub statement_size: usize,
}

/// What `view` takes.
#[derive(Debug, Args)]
pub struct ViewArgs {
    /// Path or URI of an array or group
    pub uri: String,
    /// The port on 127.0.0.1; 0 is any that is free
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Print the page's URL and do not open a browser
    #[arg(long)]
    pub no_browser: bool,
    /// A folder with the viewer's files (`cargo xtask web` makes target/web/site), for programs that
    /// were built without them
    #[arg(long, value_name = "FOLDER")]
    pub site: Option<PathBuf>,
}
