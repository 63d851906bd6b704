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
mod files;
mod fragments;
mod names;
mod repair;
mod report;
mod snapshots;

pub use repair::Repaired;
pub use report::{CheckOptions, Finding, Fix, Report, Severity};

use crate::array::{ArrayHandle, Attempts, OpenScope, Snapshot, TimeRange, list};
use crate::consolidate::ArrayFolder;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::Uri;

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
        let mut attempts = Attempts::new();
        loop {
            let before = list(&location)?;
            let report = self.check_once(context, &location, options)?;
            let is_error = |finding: &Finding| finding.severity == Severity::Error;
            // What a vacuum has removed meanwhile is not missing: it is looked at anew.
            let is_wrong = report.findings.iter().any(is_error);
            if !is_wrong || before == list(&location)? || !attempts.another() {
                return Ok(report);
            }
        }
    }

    fn check_once(
        &self,
        context: &Context,
        location: &Location,
        options: CheckOptions,
    ) -> Result<Report> {
        let uri = &self.uri;
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
        names::check(context, location, &mut report)?;
        let folder = match ArrayFolder::at(context, location) {
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
        snapshots::check(self, &folder, &mut report)?;
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
