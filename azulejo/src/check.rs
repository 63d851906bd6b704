//! Verifying an array: is everything there that its files say, and nothing else?
//!
//! [`ArrayHandle::check`] looks at names, commits, schemas, metadata, and each fragment's footer,
//! sections, files and their sizes. Asked to look deep, it decodes every chunk of every tile, which
//! verifies checksums, and holds cells against their order, their boxes and their statistics. What
//! it finds are values ([`Finding`]); [`ArrayHandle::repair`] mends those that can be mended
//! without losing anything: it removes what no reader counts and finishes what a crash has cut
//! short.
//!
//! A write under way looks like one that a crash has cut short. Repair an array only while nobody
//! writes to it.

mod cells;
mod commits;
mod fragments;
mod names;
mod repair;

pub(crate) use names::is_temporary;
pub use repair::Repaired;

use crate::array::{ArrayHandle, OpenScope, Snapshot, TimeRange};
use crate::consolidate::ArrayFolder;
use crate::context::Location;
use crate::error::{Error, Result};
use crate::storage::{StorePath, Uri};

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
        /// The commit that [`ArrayHandle::adopt`] writes, if all of the fragment is there.
        commit: Option<StorePath>,
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

    fn add(&mut self, severity: Severity, path: StorePath, what: impl Into<String>, fix: Fix) {
        self.findings.push(Finding {
            severity,
            path,
            what: what.into(),
            fix,
        });
    }

    /// Adds an error, with what it says.
    fn broken(&mut self, path: StorePath, error: &Error, advice: &'static str) {
        self.add(
            Severity::Error,
            path,
            error.to_string(),
            Fix::Advice(advice),
        );
    }
}

/// Advice for bytes that cannot be had back.
const RESTORE: &str = "restore it from a backup";

impl ArrayHandle {
    /// Checks an array.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no array, [`Error::Encryption`] for a missing, wrong or
    /// unneeded key, and errors of the storage other than missing files. What is wrong with the
    /// array is no error but a finding.
    pub fn check(&self, options: CheckOptions) -> Result<Report> {
        let Self { context, uri } = self;

        let context = &crate::manifest::without(context);
        let location = context.locate(&Uri::parse(uri)?)?;
        let mut report = Report::default();
        // A wrong key would make every file look damaged.
        let head = OpenScope {
            fragments: Some(Default::default()),
            ..OpenScope::default()
        };
        if let Err(error @ (Error::Encryption { .. } | Error::NotFound { .. })) =
            Snapshot::open_scope(context, &Uri::parse(uri)?, TimeRange::ALL, &head)
        {
            return Err(error);
        }
        names::check(context, &location, &mut report)?;
        let folder = match ArrayFolder::at(context, &location) {
            Ok(folder) => folder,
            Err(error @ Error::Corrupt { .. }) => {
                let path = location.path.join(azulejo_format::path::COMMITS_FOLDER);
                report.broken(
                path,
                &error,
                "remove or restore the file that is named; until then the array cannot be opened",
            );
                return Ok(sorted(report));
            }
            Err(error) => return Err(error),
        };
        commits::check(context, uri, &folder, &mut report)?;
        fragments::check(context, uri, &folder, options, &mut report)?;
        Ok(sorted(report))
    }
}

fn sorted(mut report: Report) -> Report {
    report.findings.sort_by(|a, b| {
        b.severity
            .cmp(&a.severity)
            .then_with(|| a.path.cmp(&b.path))
    });
    report
}

/// All files below a folder, with their sizes.
fn files_below(location: &Location, folder: &StorePath) -> Result<Vec<(StorePath, u64)>> {
    let mut files = Vec::new();
    for (below, entries) in location.storage.list_tree(folder)? {
        for entry in entries.iter().filter(|entry| !entry.is_dir) {
            let path = folder.join(&below).join(&entry.name);
            let size = match entry.size {
                Some(size) => size,
                None => location.storage.size(&path)?,
            };
            files.push((path, size));
        }
    }
    Ok(files)
}
