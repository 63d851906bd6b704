//! Arguments of `azulejo as-tiledb`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `azulejo as-tiledb`.
#[derive(Debug, Clone, Args)]
pub struct AsTiledbArgs {
    /// The library that `cargo xtask install-capi` installs [default: $AZULEJO_LIBRARY, or what
    /// lies beside this program]
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}
