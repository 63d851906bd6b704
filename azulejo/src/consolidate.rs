//! Maintenance: many fragments become few, many files one, and what was replaced goes away.
//!
//! Consolidation adds files and removes none: whoever reads sees the same cells as before. It is
//! [`ArrayHandle::consolidate`] for fragments, and its sisters for commits, footers and key-values.
//! [`ArrayHandle::vacuum`] removes what a consolidation has made superfluous. Every step leaves an
//! array that reads as before it or as after it; a step that a crash has cut short is finished by
//! the next one.
//!
//! [`ArrayHandle::consolidate`]: crate::array::ArrayHandle::consolidate
//! [`ArrayHandle::vacuum`]: crate::array::ArrayHandle::vacuum
//!
//! | replaced | by | which is said by |
//! |---|---|---|
//! | fragments | a fragment `__t1_t2_..` | its `.vac` file |
//! | commit files | a `.con` file | its content |
//! | footers of fragments | a `.meta` file | its content |
//! | metadata files | one `__t1_t2_..` | its `.vac` file |
//!
//! One at a time changes an array, on a machine (by a lock); while
//! cells are merged, others go on. Pages: *Consolidated Commits File*,
//! *Vacuum File*, *Ignore File*, *Consolidated Fragment Metadata File*.

mod choose;
mod commits;
mod folder;
mod fragment_metadata;
mod fragments;
mod merge;
mod metadata;
mod options;
mod past;
mod plan;
mod replace;
mod tiler;
mod vacuum;
mod versions;

pub use choose::Choice;
pub use fragments::Merged;
pub use options::FragmentOptions;
pub use past::Restored;
pub use plan::ConsolidationPlan;
pub use vacuum::{Kept, VacuumOptions, Vacuumed};

pub(crate) use folder::ArrayFolder;

/// What is consolidated or vacuumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Fragments: their cells.
    Fragments,
    /// Footers of fragments.
    FragmentMetadata,
    /// Commit files.
    Commits,
    /// Key-values.
    ArrayMetadata,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Fragments,
        Self::FragmentMetadata,
        Self::Commits,
        Self::ArrayMetadata,
    ];

    /// The name that TileDB's settings give it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fragments => "fragments",
            Self::FragmentMetadata => "fragment_meta",
            Self::Commits => "commits",
            Self::ArrayMetadata => "array_meta",
        }
    }
}
