//! Arguments of `azulejo group`.

use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `azulejo group`.
#[derive(Debug, Clone, Args)]
pub struct GroupArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: GroupCommand,
}

/// What can be done with groups.
#[derive(Debug, Clone, Subcommand)]
pub enum GroupCommand {
    /// Make an empty group
    Create {
        /// Path or URI of the group to make
        uri: String,
    },
    /// Add a member
    Add(AddArgs),
    /// Remove members from the group; what they name stays where it is
    #[command(alias = "remove")]
    Rm {
        /// Path or URI of a group
        group: String,
        /// Names of members; URIs of members without a name
        #[arg(required = true)]
        members: Vec<String>,
    },
}

/// Arguments of `azulejo group add`.
#[derive(Debug, Clone, Args)]
pub struct AddArgs {
    /// Path or URI of a group
    pub group: String,
    /// Path or URI of an array or group; with --relative, a path from the group's folder
    pub member: String,
    /// A name in the group
    #[arg(long)]
    pub name: Option<String>,
    /// Keep the path from the group's folder, so that both can be moved together
    #[arg(long)]
    pub relative: bool,
    /// What it is, for a member that is not there yet
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    pub object_type: Option<TypeArg>,
    /// Take the place of a member of that name
    #[arg(long)]
    pub replace: bool,
}

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TypeArg {
    /// An array
    Array,
    /// A group
    Group,
}
