//! `azulejo check`: verifies an array, and mends what can be mended.

use super::fleet;
use super::ls::Shortener;
use super::schema::plural;
use crate::args::{CheckArgs, FailOn};
use crate::error::{CliError, Result};
use crate::output::table::{Align, Table};
use crate::session::Session;
use crate::size;
use azulejo::check::{CheckOptions, Finding, Fix, Repaired, Report, Severity};
use serde_json::{Value as Json, json};
use std::io::Write;

/// Runs the command.
pub fn run(session: &mut Session, args: &CheckArgs) -> Result<()> {
    let mut options = CheckOptions::new().deep(args.deep);
    options.memory_budget = session.memory.unwrap_or(options.memory_budget);
    if args.recursive {
        return every(session, args, options);
    }
    let report = session.work(|context| context.array(&args.uri).check(options))?;
    let mut repaired = None;
    if session.output.json {
        if !args.dry_run {
            repaired = mend(session, args, &report)?;
        }
        session
            .output
            .write_json(&report_json(&report, repaired.as_ref(), args.deep))?;
    } else {
        print(session, &report)?;
        if args.repair || args.adopt {
            repaired = repair(session, args, &report)?;
        }
    }
    let mended = |finding: &&Finding| {
        repaired
            .as_ref()
            .is_none_or(|repaired| !repaired.done.contains(*finding))
    };
    let left = |severity| {
        let of = report.findings.iter().filter(|f| f.severity == severity);
        of.filter(mended).count()
    };
    let (errors, warnings) = (left(Severity::Error), left(Severity::Warning));
    let what = match args.fail_on {
        _ if errors > 0 => plural(errors, "error"),
        FailOn::Warning if warnings > 0 => plural(warnings, "warning"),
        FailOn::Error | FailOn::Warning => return Ok(()),
    };
    Err(CliError::Damaged(format!("{}: {what} found", args.uri)))
}

/// Checks every array of a group or folder: a row for each.
fn every(session: &mut Session, args: &CheckArgs, options: CheckOptions) -> Result<()> {
    let arrays = fleet::arrays(session, &args.uri)?;
    let options = options.memory_budget(options.memory_budget / fleet::AT_ONCE as u64);
    let checked = fleet::each(session, &arrays, |context, uri| {
        context.array(uri).check(options)
    })?;
    let shorten = Shortener::new(&args.uri)?;
    let mut table = Table::new([
        ("array", Align::Left),
        ("errors", Align::Right),
        ("warnings", Align::Right),
        ("notes", Align::Right),
        ("fragments", Align::Right),
        ("files", Align::Right),
    ]);
    let (mut rows, mut bad) = (Vec::new(), 0);
    for (uri, checked) in arrays.iter().zip(&checked) {
        let uri = shorten.uri(uri);
        match checked {
            Ok(report) => {
                let count = |severity| {
                    let of = report.findings.iter().filter(|f| f.severity == severity);
                    of.count()
                };
                let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
                let fails = errors > 0 || args.fail_on == FailOn::Warning && warnings > 0;
                bad += usize::from(fails);
                rows.push(json!({ "uri": uri, "report": report_json(report, None, args.deep) }));
                let numbers = [errors, warnings, count(Severity::Note)].map(|n| n as u64);
                let numbers = numbers.into_iter().chain([report.fragments, report.files]);
                table.row([uri].into_iter().chain(numbers.map(size::count)));
            }
            Err(error) => {
                bad += 1;
                rows.push(json!({ "uri": uri, "error": error.to_string() }));
                table.row([uri.as_str(), "?", "", "", "", &error.to_string()]);
            }
        }
    }
    match session.output.json {
        true => session.output.write_json(&Json::Array(rows))?,
        false => super::schema::print(&mut session.output, &table)?,
    }
    match bad {
        0 => Ok(()),
        _ => Err(CliError::Damaged(format!(
            "{}: {} of {} not sound",
            args.uri,
            plural(bad, "array"),
            arrays.len()
        ))),
    }
}

/// Does what was asked for.
fn mend(session: &Session, args: &CheckArgs, report: &Report) -> Result<Option<Repaired>> {
    let context = &session.context;
    Ok(match (args.repair, args.adopt) {
        (true, _) => Some(context.array(&args.uri).repair(report)?),
        (_, true) => Some(context.array(&args.uri).adopt(report)?),
        _ => None,
    })
}

/// Whether what was asked for does something about a finding.
fn can_mend(args: &CheckArgs, fix: &Fix) -> bool {
    match fix {
        Fix::Uncommitted { commit, .. } => args.repair || commit.is_some(),
        Fix::Remove(_) | Fix::Finish { .. } => args.repair,
        _ => false,
    }
}

fn print(session: &mut Session, report: &Report) -> Result<()> {
    let out = &mut session.output;
    for finding in &report.findings {
        writeln!(out, "{}: {}", finding.severity.name(), finding.path)?;
        writeln!(out, "  {}", finding.what)?;
        match &finding.fix {
            Fix::Advice(advice) => writeln!(out, "  what to do: {advice}")?,
            Fix::Uncommitted {
                commit: Some(_), ..
            } => writeln!(
                out,
                "  what to do: --adopt makes it count, --repair removes it"
            )?,
            _ => {}
        }
    }
    let fragments = size::count(report.fragments);
    let seen = match report.cells {
        0 => format!(
            "{fragments} fragments and {} files",
            size::count(report.files)
        ),
        cells => format!(
            "{fragments} fragments and {} files, {} cells",
            size::count(report.files),
            size::count(cells)
        ),
    };
    let verdict = match report.worst() {
        None => "all is well".to_owned(),
        Some(_) => {
            let count = |severity| {
                report
                    .findings
                    .iter()
                    .filter(|f| f.severity == severity)
                    .count()
            };
            let of = [Severity::Error, Severity::Warning, Severity::Note];
            let counts = of
                .into_iter()
                .map(|s| (count(s), s))
                .filter(|(n, _)| *n > 0);
            counts
                .map(|(n, s)| plural(n, s.name()))
                .collect::<Vec<_>>()
                .join(", ")
        }
    };
    writeln!(out, "checked {seen}: {verdict}")?;
    Ok(())
}

/// Says what it will do, then does it.
fn repair(session: &mut Session, args: &CheckArgs, report: &Report) -> Result<Option<Repaired>> {
    let mendable: Vec<&Finding> = report
        .findings
        .iter()
        .filter(|finding| can_mend(args, &finding.fix))
        .collect();
    if mendable.is_empty() {
        let verb = if args.repair { "repair" } else { "adopt" };
        session.output.note(&format!("nothing to {verb}"));
        return Ok(None);
    }
    let verb = if args.dry_run { "would" } else { "will" };
    for finding in &mendable {
        match &finding.fix {
            Fix::Uncommitted {
                commit: Some(commit),
                ..
            } if args.adopt => writeln!(session.output, "{verb} write {commit}")?,
            Fix::Uncommitted { folder, .. } => {
                writeln!(session.output, "{verb} remove {folder}")?;
            }
            Fix::Remove(paths) => {
                for path in paths {
                    writeln!(session.output, "{verb} remove {path}")?;
                }
            }
            Fix::Finish { path, remove, .. } => {
                writeln!(session.output, "{verb} write {path}")?;
                for path in remove {
                    writeln!(session.output, "{verb} remove {path}")?;
                }
            }
            _ => {}
        }
    }
    if args.dry_run {
        return Ok(None);
    }
    session.output.flush()?;
    let Some(repaired) = mend(session, args, report)? else {
        return Ok(None);
    };
    let done = repaired.done.len();
    match args.repair {
        true => writeln!(session.output, "repaired {}", plural(done, "finding"))?,
        false => writeln!(session.output, "adopted {}", plural(done, "fragment"))?,
    }
    for finding in &repaired.changed {
        session.output.note(&format!(
            "{} has changed meanwhile and was left alone",
            finding.path
        ));
    }
    Ok(Some(repaired))
}

fn report_json(report: &Report, repaired: Option<&Repaired>, deep: bool) -> Json {
    let findings: Vec<Json> = report.findings.iter().map(finding_json).collect();
    json!({
        "fragments": report.fragments,
        "files": report.files,
        // Nobody has counted unless every cell was looked at.
        "cells": deep.then_some(report.cells),
        "worst": report.worst().map(Severity::name),
        "findings": findings,
        "repaired": repaired.map(|repaired| repaired.done.iter().map(finding_json).collect::<Vec<_>>()),
    })
}

fn finding_json(finding: &Finding) -> Json {
    let texts = |paths: &[azulejo::storage::StorePath]| -> Vec<String> {
        paths.iter().map(ToString::to_string).collect()
    };
    let fix = match &finding.fix {
        Fix::Advice(text) => json!({ "advice": text }),
        Fix::Remove(paths) => json!({ "remove": texts(paths) }),
        Fix::Uncommitted { folder, commit } => {
            json!({ "remove": [folder.to_string()], "adopt": commit.as_ref().map(ToString::to_string) })
        }
        Fix::Finish { path, remove, .. } => {
            json!({ "write": path.to_string(), "remove": texts(remove) })
        }
        other => json!({ "other": format!("{other:?}") }),
    };
    json!({
        "severity": finding.severity.name(),
        "object": finding.path.to_string(),
        "what": finding.what,
        "fix": fix,
    })
}
