//! `azulejo check`: verifies an array, and mends what can be mended.

use super::fleet::{self, Done, Objects};
use super::schema::plural;
use super::survey::Survey;
use crate::args::{CheckArgs, FailOn};
use crate::error::{CliError, Result};
use crate::output::table::Align;
use crate::session::Session;
use crate::size;
use azulejo::Context;
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
    let advice = advice(&session.context, &args.uri, &report)?;
    let mut repaired = None;
    if session.output.json {
        if !args.dry_run {
            repaired = mend(session, args, &report)?;
        }
        session.output.write_json(&report_json(
            &report,
            repaired.as_ref(),
            args.deep,
            advice.as_deref(),
        ))?;
    } else {
        print(session, &report)?;
        if let Some(advice) = advice {
            writeln!(session.output, "advice: {advice}")?;
        }
        if args.repair || args.adopt || args.discard {
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

/// What would make reads faster, of an array that can be read.
fn advice(context: &Context, uri: &str, report: &Report) -> Result<Option<String>> {
    if report.worst() == Some(Severity::Error) {
        return Ok(None);
    }
    Ok(Survey::of(&context.array(uri).open()?)?.advice())
}

/// Checks every array of a group or folder: a row for each.
fn every(session: &mut Session, args: &CheckArgs, options: CheckOptions) -> Result<()> {
    let options = options.memory_budget(options.memory_budget / fleet::AT_ONCE as u64);
    let names = ["errors", "warnings", "notes", "fragments", "files"];
    let columns = names.map(|name| (name, Align::Right));
    let of = Objects::Arrays;
    let done = fleet::each(session, &args.uri, of, &columns, |context, uri| {
        let report = context.array(uri).check(options)?;
        let count = |severity| {
            let of = report.findings.iter().filter(|f| f.severity == severity);
            of.count() as u64
        };
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        let notes = count(Severity::Note);
        let numbers = [errors, warnings, notes, report.fragments, report.files];
        Ok(Done {
            cells: numbers.map(size::count).to_vec(),
            json: ("report", report_json(&report, None, args.deep, None)),
            unsound: errors > 0 || args.fail_on == FailOn::Warning && warnings > 0,
        })
    })?;
    match done.unsound {
        0 => Ok(()),
        bad => Err(CliError::Damaged(format!(
            "{}: {} of {} not sound",
            args.uri,
            plural(bad, "array"),
            done.objects
        ))),
    }
}

/// Does what was asked for.
fn mend(session: &Session, args: &CheckArgs, report: &Report) -> Result<Option<Repaired>> {
    let context = &session.context;
    let array = context.array(&args.uri);
    Ok(match (args.repair, args.adopt, args.discard) {
        (true, ..) => Some(array.repair(report)?),
        (_, true, _) => Some(array.adopt(report)?),
        (.., true) => Some(array.discard_uncommitted(report)?),
        _ => None,
    })
}

/// Whether what was asked for does something about a finding.
fn can_mend(args: &CheckArgs, fix: &Fix) -> bool {
    match fix {
        Fix::Uncommitted { commit, .. } => args.repair || args.discard || commit.is_some(),
        Fix::Lost { .. } => args.adopt || args.discard,
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
            Fix::Lost { .. } => writeln!(
                out,
                "  what to do: --adopt makes it count, --discard removes it for good"
            )?,
            Fix::Finish { .. } => writeln!(out, "  what to do: --repair finishes it")?,
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
        let verb = match (args.repair, args.adopt) {
            (true, _) => "repair",
            (_, true) => "adopt",
            _ => "discard",
        };
        session.output.note(&format!("nothing to {verb}"));
        return Ok(None);
    }
    let verb = if args.dry_run { "would" } else { "will" };
    for finding in &mendable {
        match &finding.fix {
            Fix::Uncommitted {
                commit: Some(commit),
                ..
            }
            | Fix::Lost { commit, .. }
                if args.adopt =>
            {
                writeln!(session.output, "{verb} write {commit}")?;
            }
            Fix::Uncommitted { folder, .. } | Fix::Lost { folder, .. } => {
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
    let done = match (args.repair, args.adopt) {
        (true, _) => format!("repaired {}", plural(done, "finding")),
        (_, true) => format!("adopted {}", plural(done, "fragment")),
        _ => format!("discarded {}", plural(done, "fragment")),
    };
    writeln!(session.output, "{done}")?;
    for finding in &repaired.changed {
        session.output.note(&format!(
            "{} has changed meanwhile and was left alone",
            finding.path
        ));
    }
    Ok(Some(repaired))
}

fn report_json(
    report: &Report,
    repaired: Option<&Repaired>,
    deep: bool,
    advice: Option<&str>,
) -> Json {
    let findings: Vec<Json> = report.findings.iter().map(finding_json).collect();
    json!({
        "fragments": report.fragments,
        "files": report.files,
        // Nobody has counted unless every cell was looked at.
        "cells": deep.then_some(report.cells),
        "worst": report.worst().map(Severity::name),
        "findings": findings,
        "advice": advice,
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
        Fix::Lost { folder, commit } => {
            json!({ "discard": [folder.to_string()], "adopt": commit.to_string() })
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
