//! `azulejo consolidate`: many fragments or files become few.

use super::fleet::{self, Done, Objects};
use super::schema::plural;
use super::vacuum;
use crate::args::{ChoiceArgs, ConsolidateArgs, ModeArg};
use crate::error::{CliError, Result};
use crate::output::table::Align;
use crate::session::Session;
use crate::size;
use azulejo::TimeRange;
use azulejo::consolidate::{FragmentOptions, Merged, VacuumOptions};
use azulejo::storage::StorePath;
use serde_json::{Value as Json, json};
use std::io::Write;

/// Memory that consolidation takes unless told otherwise.
const MEMORY: u64 = 256 << 20;

/// Runs the command.
pub fn run(session: &mut Session, args: &ConsolidateArgs) -> Result<()> {
    let time = args.time.range(&session.context, &args.uri)?;
    if args.recursive {
        return every(session, args, time);
    }
    if let Some(fragment_size) = args.plan {
        let array = session.open(&args.uri, &args.time)?;
        let plan = array.consolidation_plan(fragment_size)?;
        if session.output.json {
            return session.output.write_json(&json!({ "nodes": plan.nodes }));
        }
        if plan.nodes.is_empty() {
            session.output.note("nothing to consolidate");
        }
        for (i, node) in plan.nodes.iter().enumerate() {
            writeln!(
                session.output,
                "{}: {}",
                i + 1,
                plural(node.len(), "fragment")
            )?;
            for name in node {
                writeln!(session.output, "  {name}")?;
            }
        }
        return Ok(());
    }
    let result = match args.mode {
        ModeArg::Fragments => {
            let options = options(session, &args.choice, time);
            let rounds = session.work(|context| context.array(&args.uri).consolidate(&options))?;
            Outcome::Rounds(rounds)
        }
        mode => {
            if args.choice.is_set() {
                return Err(CliError::usage(
                    "a choice of fragments goes with --mode fragments only",
                ));
            }
            let context = &session.context;
            Outcome::File(match mode {
                ModeArg::ArrayMeta => context.array(&args.uri).consolidate_metadata(time)?,
                ModeArg::GroupMeta => context.group(&args.uri).consolidate_metadata(time)?,
                _ if time != TimeRange::ALL => {
                    return Err(CliError::usage(
                        "a time goes with --mode fragments, array-meta and group-meta only",
                    ));
                }
                ModeArg::Commits => context.array(&args.uri).consolidate_commits()?,
                ModeArg::FragmentMeta | ModeArg::Fragments => {
                    context.array(&args.uri).consolidate_fragment_metadata()?
                }
            })
        }
    };
    let vacuumed = match args.vacuum {
        true => Some(vacuum::vacuum(session, &args.uri, args.mode, false)?),
        false => None,
    };
    if session.output.json {
        let mut json = result.json(args.mode);
        if let (Some(vacuumed), Json::Object(json)) = (&vacuumed, &mut json) {
            json.insert("vacuumed".into(), vacuum::json(vacuumed));
        }
        return session.output.write_json(&json);
    }
    result.print(session, args.choice.purge_deleted_cells)?;
    vacuumed.map_or(Ok(()), |vacuumed| vacuum::print(session, &vacuumed))
}

/// Consolidates every array of a group or folder: a row for each.
fn every(session: &mut Session, args: &ConsolidateArgs, time: TimeRange) -> Result<()> {
    let Some(mode) = args.mode.of_array().filter(|_| args.plan.is_none()) else {
        return Err(CliError::usage(
            "--plan and --mode group-meta are of one object",
        ));
    };
    if args.choice.is_set() && args.mode != ModeArg::Fragments {
        return Err(CliError::usage(
            "a choice of fragments goes with --mode fragments only",
        ));
    }
    let mut options = options(session, &args.choice, time);
    options.memory_budget /= fleet::AT_ONCE as u64;
    let columns = [("done", Align::Left)];
    let of = Objects::Arrays;
    let done = fleet::each(session, &args.uri, of, &columns, |context, uri| {
        let array = context.array(uri);
        let outcome = match args.mode {
            ModeArg::Fragments => Outcome::Rounds(array.consolidate(&options)?),
            ModeArg::ArrayMeta | ModeArg::GroupMeta => {
                Outcome::File(array.consolidate_metadata(time)?)
            }
            ModeArg::Commits => Outcome::File(array.consolidate_commits()?),
            ModeArg::FragmentMeta => Outcome::File(array.consolidate_fragment_metadata()?),
        };
        if args.vacuum {
            array.vacuum(mode, VacuumOptions::default())?;
        }
        Ok(Done {
            cells: vec![outcome.words()],
            json: ("consolidated", outcome.json(args.mode)),
            unsound: false,
        })
    })?;
    done.or_first_error()
}

/// What was done.
enum Outcome {
    Rounds(Vec<Merged>),
    File(Option<StorePath>),
}

impl Outcome {
    /// In a few words.
    fn words(&self) -> String {
        match self {
            Self::Rounds(rounds) => {
                let count = |of: fn(&Merged) -> usize| rounds.iter().map(of).sum::<usize>();
                match count(|round| round.old.len()) {
                    0 => "nothing to do".to_owned(),
                    old => format!(
                        "{} became {}",
                        plural(old, "fragment"),
                        count(|round| round.new.len())
                    ),
                }
            }
            Self::File(None) => "nothing to do".to_owned(),
            Self::File(Some(_)) => "done".to_owned(),
        }
    }

    fn json(&self, mode: ModeArg) -> Json {
        match self {
            Self::Rounds(rounds) => {
                let rounds: Vec<Json> = rounds
                    .iter()
                    .map(|round| {
                        json!({ "old": round.old, "new": round.new, "cells": round.cells, "bytes": round.bytes })
                    })
                    .collect();
                json!({ "mode": mode.name(), "rounds": rounds })
            }
            Self::File(path) => {
                json!({ "mode": mode.name(), "written": path.as_ref().map(ToString::to_string) })
            }
        }
    }

    fn print(&self, session: &mut Session, purged: bool) -> Result<()> {
        match self {
            Self::Rounds(rounds) if rounds.is_empty() => {
                session.output.note("nothing to consolidate");
            }
            Self::File(None) => session.output.note("nothing to consolidate"),
            Self::Rounds(rounds) => {
                for round in rounds {
                    let (old, new) = (
                        plural(round.old.len(), "fragment"),
                        plural(round.new.len(), "fragment"),
                    );
                    let (cells, bytes) = (size::count(round.cells), size::text(round.bytes));
                    match round.new.is_empty() {
                        true if purged => {
                            writeln!(session.output, "{old} went: not a cell of them was left")?;
                        }
                        true => writeln!(session.output, "{old} stay: not a cell of them is left")?,
                        false => {
                            writeln!(session.output, "{old} became {new}: {cells} cells, {bytes}")?;
                        }
                    }
                }
            }
            Self::File(Some(path)) => writeln!(session.output, "wrote {path}")?,
        }
        Ok(())
    }
}

impl ChoiceArgs {
    fn is_set(&self) -> bool {
        !self.fragments.is_empty()
            || self.max_fragment_size.is_some()
            || self.purge_deleted_cells
            || self.steps.is_some()
            || self.min_fragments.is_some()
            || self.max_fragments.is_some()
            || self.size_ratio.is_some()
            || self.amplification.is_some()
            || self.no_gaps
    }
}

fn options(session: &Session, args: &ChoiceArgs, time: TimeRange) -> FragmentOptions {
    let mut options = FragmentOptions::new()
        .fragments(args.fragments.clone())
        .time(time)
        .max_fragment_size(args.max_fragment_size)
        .purge_deleted_cells(args.purge_deleted_cells)
        .memory_budget(session.memory.unwrap_or(MEMORY));
    let choice = &mut options.choice;
    choice.steps = args.steps.unwrap_or(choice.steps);
    choice.max_fragments = args.max_fragments.unwrap_or(choice.max_fragments);
    // All of them, unless fewer are asked for.
    choice.min_fragments = args
        .min_fragments
        .unwrap_or(choice.min_fragments.min(choice.max_fragments));
    choice.size_ratio = args.size_ratio.unwrap_or(choice.size_ratio);
    choice.amplification = args.amplification.unwrap_or(choice.amplification);
    choice.no_gaps = args.no_gaps;
    options
}
