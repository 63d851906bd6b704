//! What a check is told, and what it finds.

use crate::error::Error;
use crate::storage::StorePath;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Takes space or time, and changes nothing that is read.
    Note,
    /// Does no harm now, and could: what a crash has left, what another reader trips over.
    Warning,
    /// Cells or metadata are lost, wrong or unreadable.
    Error,
}

impl Severity {
    /// `note`, `warning` or `error`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What would mend something.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fix {
    /// Nothing that can be done without knowing more; the text says what the owner can do.
    Advice(&'static str),
    /// Removing these, in this order: no reader counts them.
    Remove(Vec<StorePath>),
    /// Removing a fragment that nobody counts, or writing the commit that makes it count.
    Uncommitted {
        /// The fragment's folder.
        folder: StorePath,
        /// The commit that [`ArrayHandle::adopt`](crate::array::ArrayHandle::adopt) writes, if all of the fragment is there.
        commit: Option<StorePath>,
    },
    /// Writing the commit of a fragment that counted once, or removing it; a repair does neither.
    Lost {
        /// The fragment's folder.
        folder: StorePath,
        /// The commit that [`ArrayHandle::adopt`](crate::array::ArrayHandle::adopt) writes.
        commit: StorePath,
    },
    /// Writing this file, then removing those.
    Finish {
        /// The file.
        path: StorePath,
        /// Its content.
        body: Vec<u8>,
        /// What goes afterwards.
        remove: Vec<StorePath>,
    },
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file or folder.
    pub path: StorePath,
    /// What is wrong with it.
    pub what: String,
    /// What can be done.
    pub fix: Fix,
}

/// How to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckOptions {
    /// Decode and look at every cell.
    pub deep: bool,
    /// Bytes of memory that looking at cells may take.
    pub memory_budget: u64,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            deep: false,
            memory_budget: 256 << 20,
        }
    }
}

impl CheckOptions {
    /// Files and metadata, not cells; 256 MiB.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether every cell is decoded and looked at.
    #[must_use]
    pub fn deep(mut self, deep: bool) -> Self {
        self.deep = deep;
        self
    }

    /// Sets the bytes of memory that looking at cells may take.
    #[must_use]
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.memory_budget = bytes;
        self
    }
}

/// What a check has seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Report {
    /// What is not as it should be, the worst first.
    pub findings: Vec<Finding>,
    /// Fragments looked at, replaced ones included.
    pub fragments: u64,
    /// Files looked at.
    pub files: u64,
    /// Cells decoded; 0 unless the check was deep. A cell counts once, however many fields it has.
    pub cells: u64,
}

impl Report {
    /// The worst severity found.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    pub(super) fn add(
        &mut self,
        severity: Severity,
        path: StorePath,
        what: impl Into<String>,
        fix: Fix,
    ) {
        self.findings.push(Finding {
            severity,
            path,
            what: what.into(),
            fix,
        });
    }

    /// Adds an error, with what it says.
    pub(super) fn broken(&mut self, path: StorePath, error: &Error, advice: &'static str) {
        self.add(
            Severity::Error,
            path,
            error.to_string(),
            Fix::Advice(advice),
        );
    }
}

/// Advice for bytes that cannot be had back.
pub(super) const RESTORE: &str = "restore it from a backup";
