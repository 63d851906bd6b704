//! What `meta` takes.

use super::TimeArgs;
use super::time::parse_last;
use azulejo::format::Datatype;
use clap::{Args, Subcommand};

/// What `meta` takes.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct MetaArgs {
    /// Change it.
    #[command(subcommand)]
    pub change: Option<MetaChange>,
    /// Path or URI of an array or group
    #[arg(required = true)]
    pub uri: Option<String>,
    /// Only this key, and its bare value
    pub key: Option<String>,
    /// When to look at it.
    #[command(flatten)]
    pub time: TimeArgs,
}

/// Changes of metadata.
#[derive(Debug, Clone, Subcommand)]
pub enum MetaChange {
    /// Set a key to a value, or to several
    Set {
        /// Path or URI of an array or group
        uri: String,
        /// The key
        key: String,
        /// The value; bytes as hexadecimal digits. None for a key without a value
        #[arg(allow_negative_numbers = true)]
        values: Vec<String>,
        /// The type, such as INT32 [default: INT64, FLOAT64 or STRING_UTF8, whichever fits]
        #[arg(long = "type", value_name = "TYPE", value_parser = parse_datatype)]
        datatype: Option<Datatype>,
        /// From this time on: milliseconds since 1970 or a UTC date
        #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = parse_last)]
        at: Option<u64>,
    },
    /// Remove keys
    #[command(alias = "remove")]
    Rm {
        /// Path or URI of an array or group
        uri: String,
        /// The keys
        #[arg(required = true)]
        keys: Vec<String>,
        /// From this time on: milliseconds since 1970 or a UTC date
        #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = parse_last)]
        at: Option<u64>,
    },
}

fn parse_datatype(text: &str) -> Result<Datatype, String> {
    Datatype::from_name(text)
        .ok_or_else(|| format!("{text:?} is not a datatype, such as INT32 or STRING_UTF8"))
}
