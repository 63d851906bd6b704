//! What `azulejo serve` and `azulejo view` take.

use super::TimeArgs;
use clap::Args;
use std::path::PathBuf;

/// What `serve` takes.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Path or URI of a dense array
    pub uri: String,
    /// As Zarr, version 3
    #[arg(long, required = true)]
    pub zarr: bool,
    /// The port on 127.0.0.1; 0 is any that is free
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// When to look at it.
    #[command(flatten)]
    pub time: TimeArgs,
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
