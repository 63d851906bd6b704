//! Arguments of the commands that maintain arrays.

use super::TimeArgs;
use crate::size;
use azulejo::consolidate::Mode;
use clap::{Args, ValueEnum};

/// What is consolidated or vacuumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// Cells: many fragments become one
    Fragments,
    /// Footers of fragments: opening reads one file
    FragmentMeta,
    /// Commit files: opening lists fewer
    Commits,
    /// Key-values of an array
    ArrayMeta,
    /// Key-values of a group
    GroupMeta,
}

impl ModeArg {
    /// What of an array it is; `None` for the key-values of a group.
    pub fn of_array(self) -> Option<Mode> {
        match self {
            Self::Fragments => Some(Mode::Fragments),
            Self::FragmentMeta => Some(Mode::FragmentMetadata),
            Self::Commits => Some(Mode::Commits),
            Self::ArrayMeta => Some(Mode::ArrayMetadata),
            Self::GroupMeta => None,
        }
    }

    /// The name that TileDB's settings give it.
    pub fn name(self) -> &'static str {
        self.of_array().map_or("group_meta", Mode::name)
    }
}

/// Arguments of `azulejo consolidate`.
#[derive(Debug, Clone, Args)]
pub struct ConsolidateArgs {
    /// Path or URI of an array (or of a group, with --mode group-meta or --recursive)
    pub uri: String,
    /// Every array of a group or folder
    #[arg(long, short)]
    pub recursive: bool,
    /// What to consolidate
    #[arg(long, value_enum, default_value = "fragments")]
    pub mode: ModeArg,
    /// When
    #[command(flatten)]
    pub time: TimeArgs,
    /// How
    #[command(flatten)]
    pub choice: ChoiceArgs,
    /// Print which fragments would best be consolidated together into fragments of this size, and
    /// do nothing
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub plan: Option<u64>,
    /// Vacuum afterwards
    #[arg(long, conflicts_with = "plan")]
    pub vacuum: bool,
}

/// How fragments are chosen.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Choice of fragments")]
pub struct ChoiceArgs {
    /// A fragment to consolidate; repeat it for each
    #[arg(long = "fragment", value_name = "NAME")]
    pub fragments: Vec<String>,
    /// Split the result where a fragment would be larger
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub max_fragment_size: Option<u64>,
    /// Leave deleted cells out for good, also for readers of earlier times
    #[arg(long)]
    pub purge_deleted_cells: bool,
    /// At most this many rounds
    #[arg(long, value_name = "N")]
    pub steps: Option<u32>,
    /// At least this many fragments a round
    #[arg(long, value_name = "N")]
    pub min_fragments: Option<u32>,
    /// At most this many fragments a round
    #[arg(long, value_name = "N")]
    pub max_fragments: Option<u32>,
    /// Neighbours differ in size by at most this ratio, 0 to 1
    #[arg(long, value_name = "RATIO")]
    pub size_ratio: Option<f64>,
    /// Dense: how many times the cells of the fragments the box around them may have
    #[arg(long, value_name = "FACTOR")]
    pub amplification: Option<f64>,
    /// Dense: leave fragments apart whose box has cells that none of them wrote, which would be
    /// stored as fill values and count as written
    #[arg(long, conflicts_with = "fragments")]
    pub no_gaps: bool,
}

/// Arguments of `azulejo vacuum`.
#[derive(Debug, Clone, Args)]
pub struct VacuumArgs {
    /// Path or URI of an array (or of a group, with --mode group-meta or --recursive)
    pub uri: String,
    /// Every array of a group or folder
    #[arg(long, short)]
    pub recursive: bool,
    /// What to vacuum
    #[arg(long, value_enum, default_value = "fragments")]
    pub mode: ModeArg,
    /// Only say what would be removed
    #[arg(long)]
    pub dry_run: bool,
}
