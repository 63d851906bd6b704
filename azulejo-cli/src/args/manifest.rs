//! What `azulejo manifest` takes, and the option that says when manifests are read.

use azulejo::config::ManifestUse;
use clap::{Args, ValueEnum};

/// An array or group.
#[derive(Debug, Args)]
pub struct ManifestArgs {
    /// Path or URI of an array or group, or with --recursive of a folder
    pub uri: String,
    /// Every array and group of a folder
    #[arg(long, short)]
    pub recursive: bool,
    /// Compare the manifest with what is there instead; exit code 1 if it is stale or missing
    #[arg(long)]
    pub check: bool,
}

/// When a manifest is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ManifestUseArg {
    /// Never
    Never,
    /// Where folders cannot be listed
    Fallback,
    /// Wherever there is one; what was written since is not seen
    Always,
}

impl From<ManifestUseArg> for ManifestUse {
    fn from(wanted: ManifestUseArg) -> Self {
        match wanted {
            ManifestUseArg::Never => Self::Never,
            ManifestUseArg::Fallback => Self::Fallback,
            ManifestUseArg::Always => Self::Always,
        }
    }
}
