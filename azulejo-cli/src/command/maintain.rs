//! `azulejo maintain`: finds out what an array needs, and does it.

use super::fleet::{self, Done, Objects};
use super::policy::{Policy, VacuumWhen};
use super::schema::plural;
use super::survey::Survey;
use crate::args::MaintainArgs;
use crate::error::Result;
use crate::output::table::Align;
use crate::session::Session;
use crate::size;
use azulejo::array::ArrayHandle;
use azulejo::consolidate::{Choice, FragmentOptions, Mode, VacuumOptions};
use azulejo::{Context, TimeRange};
use serde_json::{Value as Json, json};
use std::io::Write;

/// Memory that consolidation takes unless told otherwise.
const MEMORY: u64 = 256 << 20;

/// Something that an array needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Consolidate(Mode),
    Vacuum(Mode),
}

impl Step {
    fn name(self) -> String {
        let (verb, mode) = match self {
            Self::Consolidate(mode) => ("consolidate", mode),
            Self::Vacuum(mode) => ("vacuum", mode),
        };
        format!("{verb} {}", mode.name())
    }
}

/// What an array needs, in this order, and why.
fn plan(survey: &Survey, policy: &Policy) -> Vec<(Step, String)> {
    let mut steps = Vec::new();
    let vacuums = policy.vacuum != VacuumWhen::Never;
    let forgets = survey.forgets && policy.keep_history;
    if survey.replaced > 0 && vacuums && !forgets {
        let why = format!("{} replaced", plural(survey.replaced, "fragment"));
        steps.push((Step::Vacuum(Mode::Fragments), why));
    }
    if survey.pieces.len() > policy.fragments {
        let bytes: u64 = survey.pieces.iter().map(|piece| piece.bytes).sum();
        let mut why = format!(
            "{} of {}",
            plural(survey.pieces.len(), "fragment"),
            size::text(bytes / survey.pieces.len() as u64)
        );
        let gain = survey.gain();
        if gain >= 1.5 {
            why = format!("{why}, reads about {gain:.0} times slower than need be");
        }
        steps.push((Step::Consolidate(Mode::Fragments), why));
        if policy.vacuum == VacuumWhen::Now && !forgets {
            let why = "what was replaced".to_owned();
            steps.push((Step::Vacuum(Mode::Fragments), why));
        }
    }
    let mut files = |mode: Mode, number: usize, limit: usize, what: &str, vacuum: bool| {
        if number > limit {
            steps.push((Step::Consolidate(mode), format!("{number} {what}")));
            if vacuum {
                steps.push((Step::Vacuum(mode), "what was replaced".to_owned()));
            }
        }
    };
    files(
        Mode::Commits,
        survey.commits,
        policy.commits,
        "commit files",
        vacuums,
    );
    files(
        Mode::FragmentMetadata,
        survey.footers,
        policy.footers,
        "footers",
        vacuums,
    );
    files(
        Mode::ArrayMetadata,
        survey.key_values,
        policy.key_values,
        "files of key-values",
        vacuums && !policy.keep_history,
    );
    steps
}

/// Runs the command.
pub fn run(session: &mut Session, args: &MaintainArgs) -> Result<()> {
    let policy = match &args.policy {
        Some(file) => Policy::read(file)?,
        None => Policy::default(),
    };
    if args.show_policy {
        return Ok(session.output.write_all(policy.text().as_bytes())?);
    }
    let uri = args.uri.as_deref().unwrap_or_default();
    if !args.recursive {
        // Opening tells best what lies there instead of an array.
        session.context.array(uri).snapshot()?;
    }
    let memory = session.memory.unwrap_or(MEMORY) / fleet::AT_ONCE as u64;
    let columns = ["needs", "why", "done"].map(|name| (name, Align::Left));
    let columns = if args.dry_run {
        &columns[..2]
    } else {
        &columns[..]
    };
    let of = Objects::Arrays;
    let done = fleet::each(session, uri, of, columns, |context, uri| {
        maintain(context, uri, &policy, memory, args.dry_run)
    })?;
    done.or_first_error()
}

fn maintain(
    context: &Context,
    uri: &str,
    policy: &Policy,
    memory: u64,
    dry_run: bool,
) -> azulejo::Result<Done> {
    let array = context.array(uri);
    let survey = Survey::of(&array.open()?)?;
    let steps = plan(&survey, policy);
    let mut done = Vec::new();
    if !dry_run {
        for (step, _) in &steps {
            done.push(act(&array, *step, policy, memory)?);
        }
    }
    let mut rows = Vec::new();
    for (at, (step, why)) in steps.iter().enumerate() {
        rows.push(json!({ "step": step.name(), "why": why, "done": done.get(at) }));
    }
    let join = |texts: Vec<String>| texts.join("; ");
    let needs = match steps.is_empty() {
        true => "nothing".to_owned(),
        false => join(steps.iter().map(|(step, _)| step.name()).collect()),
    };
    let mut cells = vec![
        needs,
        join(steps.iter().map(|(_, why)| why.clone()).collect()),
    ];
    if !dry_run {
        cells.push(join(done));
    }
    let json = json!({
        "fragments": survey.pieces.len(),
        "gain": survey.gain(),
        "steps": Json::Array(rows),
    });
    Ok(Done {
        cells,
        json: ("maintenance", json),
        unsound: false,
    })
}

/// Does a step; says what came of it.
fn act(array: &ArrayHandle, step: Step, policy: &Policy, memory: u64) -> azulejo::Result<String> {
    let written = |path: Option<_>| path.map_or("nothing to do", |_| "one file").to_owned();
    Ok(match step {
        Step::Consolidate(Mode::Fragments) => {
            let choice = Choice::new()
                .fragments(2, u32::MAX)
                .size_ratio(policy.size_ratio);
            let options = FragmentOptions::new()
                .choice(choice)
                .max_fragment_size(policy.max_fragment_size)
                .memory_budget(memory);
            let rounds = array.consolidate(&options)?;
            let old: usize = rounds.iter().map(|round| round.old.len()).sum();
            let new: usize = rounds.iter().map(|round| round.new.len()).sum();
            match old {
                0 => "nothing fits together".to_owned(),
                _ => format!("{old} became {new}"),
            }
        }
        Step::Consolidate(Mode::Commits) => written(array.consolidate_commits()?),
        Step::Consolidate(Mode::FragmentMetadata) => {
            written(array.consolidate_fragment_metadata()?)
        }
        Step::Consolidate(Mode::ArrayMetadata) => {
            written(array.consolidate_metadata(TimeRange::ALL)?)
        }
        Step::Vacuum(mode) => {
            let vacuumed = array.vacuum(mode, VacuumOptions::new())?;
            let kept = match vacuumed.kept.len() {
                0 => String::new(),
                kept => format!(", {kept} kept"),
            };
            format!("{} removed{kept}", size::text(vacuumed.bytes))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::survey::Piece;
    use super::*;

    fn survey(fragments: usize) -> Survey {
        let piece = |i: usize| Piece {
            name: i.to_string(),
            cells: 50,
            bytes: 3000,
        };
        Survey {
            pieces: (0..fragments).map(piece).collect(),
            files_of_fragment: 3,
            cell_bytes: 16,
            commits: fragments,
            footers: fragments,
            ..Survey::default()
        }
    }

    fn steps(survey: &Survey, policy: &Policy) -> Vec<String> {
        let steps = plan(survey, policy);
        steps.iter().map(|(step, _)| step.name()).collect()
    }

    #[test]
    fn what_is_needed_follows_from_numbers() {
        let policy = Policy::default();
        assert!(plan(&survey(16), &policy).is_empty());
        assert_eq!(steps(&survey(17), &policy), ["consolidate fragments"]);
        let now = Policy {
            vacuum: VacuumWhen::Now,
            ..Policy::default()
        };
        assert_eq!(
            steps(&survey(17), &now),
            ["consolidate fragments", "vacuum fragments"]
        );
        let many = steps(&survey(100), &policy);
        assert!(many.contains(&"vacuum commits".to_owned()), "{many:?}");
        // What the last run replaced goes in this one, unless times would go with it.
        let mut replaced = Survey {
            replaced: 3,
            ..survey(1)
        };
        assert_eq!(steps(&replaced, &policy), ["vacuum fragments"]);
        replaced.forgets = true;
        assert!(plan(&replaced, &policy).is_empty());
        let drop = Policy {
            keep_history: false,
            ..Policy::default()
        };
        assert_eq!(steps(&replaced, &drop), ["vacuum fragments"]);
        let never = Policy {
            vacuum: VacuumWhen::Never,
            keep_history: false,
            ..Policy::default()
        };
        assert!(plan(&replaced, &never).is_empty());
    }
}
