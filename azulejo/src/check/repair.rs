//! Mending what can be mended without losing anything.

use super::report::{CheckOptions, Finding, Fix, Report};
use crate::array::ArrayHandle;
use crate::error::Result;
use crate::storage::Uri;

/// What a repair has done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Repaired {
    /// Findings that are mended.
    pub done: Vec<Finding>,
    /// Findings that are no longer as the report says: somebody writes to the array.
    pub changed: Vec<Finding>,
}

impl ArrayHandle {
    /// Mends the findings of a report that can be mended: see [`Fix`]. What is found no more, or
    /// found otherwise than when the report was made, is left alone.
    ///
    /// Nobody may write to the array meanwhile: a write under way looks like one that was cut
    /// short.
    ///
    /// # Errors
    /// Those of [`Self::check`] and of the storage. A repair that fails can be repeated.
    pub fn repair(&self, report: &Report) -> Result<Repaired> {
        let Self { context, uri } = self;

        let location = context.locate(&Uri::parse(uri)?)?;
        let now = self.check(CheckOptions::default())?;
        let mut repaired = Repaired::default();
        for finding in &report.findings {
            if matches!(finding.fix, Fix::Advice(_) | Fix::Lost { .. }) {
                continue;
            }
            if !now.findings.contains(finding) {
                repaired.changed.push(finding.clone());
                continue;
            }
            match &finding.fix {
                Fix::Advice(_) | Fix::Lost { .. } => {}
                Fix::Uncommitted { folder, .. } => {
                    location.storage.delete(std::slice::from_ref(folder))?;
                }
                Fix::Remove(paths) => {
                    for path in paths {
                        location.storage.delete(std::slice::from_ref(path))?;
                    }
                }
                Fix::Finish { path, body, remove } => {
                    location.storage.put(path, body.clone().into())?;
                    location.storage.delete(remove)?;
                }
            }
            repaired.done.push(finding.clone());
        }
        Ok(repaired)
    }

    /// Makes the fragments of a report count that have no commit and of which all is there: their
    /// cells are part of the array then, as of the fragment's time. What is found otherwise than
    /// when the report was made is left alone.
    ///
    /// # Errors
    /// Those of [`Self::check`] and of the storage.
    pub fn adopt(&self, report: &Report) -> Result<Repaired> {
        let Self { context, uri } = self;

        let location = context.locate(&Uri::parse(uri)?)?;
        let now = self.check(CheckOptions::default())?;
        let mut adopted = Repaired::default();
        for finding in &report.findings {
            let commit = match &finding.fix {
                Fix::Uncommitted { commit, .. } => commit.as_ref(),
                Fix::Lost { commit, .. } => Some(commit),
                _ => None,
            };
            let Some(commit) = commit else {
                continue;
            };
            if !now.findings.contains(finding) {
                adopted.changed.push(finding.clone());
                continue;
            }
            location.storage.put(commit, Vec::new().into())?;
            adopted.done.push(finding.clone());
        }
        Ok(adopted)
    }

    /// Removes the fragments of a report that have no commit, those included that counted once and
    /// are the only copy of their cells. What is found otherwise than when the report was made is
    /// left alone.
    ///
    /// # Errors
    /// Those of [`Self::check`] and of the storage.
    pub fn discard_uncommitted(&self, report: &Report) -> Result<Repaired> {
        let Self { context, uri } = self;

        let location = context.locate(&Uri::parse(uri)?)?;
        let now = self.check(CheckOptions::default())?;
        let mut discarded = Repaired::default();
        for finding in &report.findings {
            let (Fix::Uncommitted { folder, .. } | Fix::Lost { folder, .. }) = &finding.fix else {
                continue;
            };
            if !now.findings.contains(finding) {
                discarded.changed.push(finding.clone());
                continue;
            }
            location.storage.delete(std::slice::from_ref(folder))?;
            discarded.done.push(finding.clone());
        }
        Ok(discarded)
    }
}
