//! What consolidating fragments is told.

use super::choose::Choice;
use crate::array::TimeRange;

/// How to consolidate fragments.
///
/// ```
/// use azulejo::consolidate::FragmentOptions;
/// let options = FragmentOptions::new().max_fragment_size(1 << 30).memory_budget(64 << 20);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FragmentOptions {
    /// Names (or URIs) of the fragments to be replaced by one; empty: they are chosen.
    pub fragments: Vec<String>,
    /// How they are chosen.
    pub choice: Choice,
    /// Only fragments that lie within this time are chosen.
    pub time: TimeRange,
    /// The result is split where a fragment would take more bytes; of dense arrays at whole rows of
    /// tiles.
    pub max_fragment_size: Option<u64>,
    /// Leaves out deleted cells and what they replaced, instead of keeping them with the time of
    /// their deletion: readers of earlier times do not find them any more.
    pub purge_deleted_cells: bool,
    /// Bytes of memory that it may take.
    pub memory_budget: u64,
}

impl Default for FragmentOptions {
    fn default() -> Self {
        Self {
            fragments: Vec::new(),
            choice: Choice::default(),
            time: TimeRange::ALL,
            max_fragment_size: None,
            purge_deleted_cells: false,
            memory_budget: 256 << 20,
        }
    }
}

impl FragmentOptions {
    /// Chosen fragments of all times, one result, deleted cells with the time of their deletion.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the fragments (or their URIs) to be replaced by one.
    #[must_use]
    pub fn fragments<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.fragments = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how fragments are chosen.
    #[must_use]
    pub fn choice(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self
    }

    /// Chooses only fragments that lie within this time.
    #[must_use]
    pub fn time(mut self, time: TimeRange) -> Self {
        self.time = time;
        self
    }

    /// Sets the bytes at which the result is split; `None`: never.
    #[must_use]
    pub fn max_fragment_size(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.max_fragment_size = bytes.into();
        self
    }

    /// Sets whether deleted cells, and what they replaced, are left out.
    #[must_use]
    pub fn purge_deleted_cells(mut self, purge: bool) -> Self {
        self.purge_deleted_cells = purge;
        self
    }

    /// Sets the bytes of memory that it may take.
    #[must_use]
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.memory_budget = bytes;
        self
    }
}
