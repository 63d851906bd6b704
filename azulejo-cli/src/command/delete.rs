//! `azulejo delete`: cells, fragments, or whole arrays and groups.

use super::schema::plural;
use crate::args::{DeleteArgs, between};
use crate::error::{CliError, Result};
use crate::session::Session;
use crate::size;
use azulejo::array::{DeletedFragments, FragmentSelection};
use azulejo::format::condition::Condition;
use azulejo::read::ReadOptions;
use azulejo::read::aggregate::{Aggregate, AggregateValue};
use azulejo::space::Layout;
use azulejo::{Array, TimeRange};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::io::Write;

/// Runs the command.
pub fn run(session: &mut Session, args: &DeleteArgs) -> Result<()> {
    if let Some(text) = &args.condition {
        return cells(session, args, text);
    }
    let time = between(args.from, args.to)?;
    match (&args.fragments[..], args.from.or(args.to)) {
        ([], None) => objects(session, args),
        ([], Some(_)) => fragments(session, args, FragmentSelection::Within(time)),
        (names, _) => fragments(session, args, FragmentSelection::Named(names)),
    }
}

fn cells(session: &mut Session, args: &DeleteArgs, text: &str) -> Result<()> {
    let time = TimeRange::until(args.at.unwrap_or(u64::MAX));
    let array = session.context.array(&args.uri).open_at(time)?;
    let condition = array.condition(text)?;
    let going = Going::of(&array, &condition, args.at)?;
    let refusal = going.refusal(&array, &condition, text);
    if !args.dry_run
        && let Some(reason) = refusal
    {
        return Err(CliError::usage(format!("{reason}. Nothing was deleted")));
    }
    let name = match args.dry_run {
        true => None,
        false => Some(
            session
                .context
                .array(&args.uri)
                .delete_cells(&condition, args.at)?,
        ),
    };
    if session.output.json {
        return session.output.write_json(&json!({
            "dry_run": args.dry_run,
            "cells": going.matching,
            "refused": args.dry_run && refusal.is_some(),
            "other_cells": going.others(),
            "delete": name,
        }));
    }
    let verb = if args.dry_run {
        "would delete"
    } else {
        "deleted"
    };
    let cells = size::count(going.matching);
    let noun = if going.matching == 1 { "cell" } else { "cells" };
    writeln!(session.output, "{verb} {cells} {noun}")?;
    if let Some(reason) = refusal {
        session
            .output
            .note(&format!("it would be refused: {reason}"));
    }
    if let Some(name) = name {
        session.output.note(&format!("as {name}"));
    }
    Ok(())
}

/// What a delete takes.
#[derive(Debug, Clone, Copy)]
struct Going {
    /// Cells that meet the condition.
    matching: u64,
    /// Cells that would be gone.
    all: u64,
}

impl Going {
    fn of(array: &Array, condition: &Condition, at: Option<u64>) -> Result<Self> {
        let after = array.after_deleting(condition, at)?;
        let all = count(array, None)?.saturating_sub(count(&after, None)?);
        let matching = count(array, Some(condition.clone()))?;
        Ok(Self { matching, all })
    }

    /// Cells that would go although the condition is not true of them.
    fn others(self) -> u64 {
        self.all.saturating_sub(self.matching)
    }

    /// Why it must not be: what is stored of a delete says which cells stay, by comparisons, and a
    /// null meets none.
    fn refusal(self, array: &Array, condition: &Condition, text: &str) -> Option<String> {
        if self.others() == 0 {
            return None;
        }
        let (others, noun) = match self.others() {
            1 => ("1".to_owned(), "cell"),
            n => (size::count(n), "cells"),
        };
        let mut names = BTreeSet::new();
        fields(condition, &mut names);
        let nullable = |name: &&String| {
            let attributes = &array.schema().attributes;
            attributes.iter().any(|a| a.name == **name && a.nullable)
        };
        let nullable: Vec<&str> = names.iter().filter(nullable).map(String::as_str).collect();
        let Some(first) = nullable.first() else {
            let real = |name: &&String| {
                let attributes = &array.schema().attributes;
                attributes
                    .iter()
                    .any(|a| a.name == **name && a.datatype.is_real())
            };
            let nan = names.iter().find(real);
            let nan = nan.map_or_else(String::new, |name| format!("{name:?} is NaN in them, or "));
            return Some(format!(
                "{others} {noun} that do not meet the condition would go too: {nan}they were written before the array \
                 had all the attributes in it"
            ));
        };
        let tests: Vec<String> = nullable
            .iter()
            .map(|name| format!("{name} is null"))
            .collect();
        let tests = tests.join(" or ");
        Some(format!(
            "{others} {noun} where {first:?} is null would go too, which a stored delete cannot tell from those that \
             meet {text:?}; to delete them as well, write '({text}) or {tests}'; to keep them, name the cells that go by \
             their coordinates, as in '{} in (..)'",
            array
                .schema()
                .domain
                .dimensions
                .first()
                .map_or("", |dimension| dimension.name.as_str())
        ))
    }
}

/// The fields that a condition looks at.
fn fields(condition: &Condition, names: &mut BTreeSet<String>) {
    match condition {
        Condition::Compare { field, .. }
        | Condition::In { field, .. }
        | Condition::IsNull { field, .. }
        | Condition::Match { field, .. } => {
            names.insert(field.name.clone());
        }
        Condition::And(children) | Condition::Or(children) => {
            children.iter().for_each(|child| fields(child, names));
        }
        Condition::Not(child) => fields(child, names),
    }
}

/// How many cells meet a condition.
fn count(array: &Array, condition: Option<Condition>) -> Result<u64> {
    let mut options = ReadOptions::new().layout(Layout::Unordered);
    if let Some(condition) = condition {
        options = options.condition(condition);
    }
    match array.aggregate(options, &[Aggregate::Count])?.first() {
        Some(AggregateValue::Unsigned(cells)) => Ok(*cells),
        _ => Ok(0),
    }
}

fn fragments(
    session: &mut Session,
    args: &DeleteArgs,
    selection: FragmentSelection<'_>,
) -> Result<()> {
    let context = &session.context;
    let DeletedFragments {
        deleted,
        kept_in_part,
        ..
    } = if args.dry_run {
        context.array(&args.uri).plan_fragment_deletion(selection)?
    } else {
        context.array(&args.uri).delete_fragments(selection)?
    };
    if session.output.json {
        let dry_run = args.dry_run;
        return session.output.write_json(
            &json!({ "dry_run": dry_run, "fragments": deleted, "kept_in_part": kept_in_part }),
        );
    }
    if args.dry_run {
        for name in &deleted {
            writeln!(session.output, "{name}")?;
        }
    }
    let verb = if args.dry_run {
        "would delete"
    } else {
        "deleted"
    };
    writeln!(
        session.output,
        "{verb} {}",
        plural(deleted.len(), "fragment")
    )?;
    for name in &kept_in_part {
        session
            .output
            .note(&format!("{name} stays: only a part of it is of that time"));
    }
    Ok(())
}

fn objects(session: &mut Session, args: &DeleteArgs) -> Result<()> {
    if let Some(source) = session.context.object(&args.uri).unfinished_copy()? {
        return unfinished_copy(session, args, &source);
    }
    let plan = session
        .context
        .object(&args.uri)
        .plan_deletion(args.recursive)?;
    if !args.dry_run {
        if !args.yes {
            let what = match &plan[..] {
                [one] => format!("{} {}", one.object_type, one.uri),
                more => format!("{} with all members: {} objects", args.uri, more.len()),
            };
            return Err(CliError::usage(format!(
                "this would delete {what}, for good; --yes does it, --dry-run lists it (cells: --where, fragments: \
                 --from, --to, --fragment)"
            )));
        }
        session.context.object(&args.uri).delete(args.recursive)?;
    }
    let list: Vec<Json> = plan
        .iter()
        .map(|object| json!({ "uri": object.uri, "kind": object.object_type.to_string() }))
        .collect();
    if session.output.json {
        return session
            .output
            .write_json(&json!({ "dry_run": args.dry_run, "objects": list }));
    }
    let verb = if args.dry_run {
        "would delete"
    } else {
        "deleted"
    };
    for object in &plan {
        writeln!(
            session.output,
            "{verb} {} {}",
            object.object_type, object.uri
        )?;
    }
    Ok(())
}

/// What a copy that was killed has left.
fn unfinished_copy(session: &mut Session, args: &DeleteArgs, source: &str) -> Result<()> {
    let what = format!("the unfinished copy {} of {source}", args.uri);
    if !args.dry_run {
        if !args.yes {
            return Err(CliError::usage(format!(
                "this would delete {what}; --yes does it, and the same `azulejo copy` would go on with it"
            )));
        }
        session.context.object(&args.uri).delete_unfinished_copy()?;
    }
    if session.output.json {
        let list = [json!({ "uri": args.uri, "kind": "unfinished copy" })];
        return session
            .output
            .write_json(&json!({ "dry_run": args.dry_run, "objects": list }));
    }
    let verb = if args.dry_run {
        "would delete"
    } else {
        "deleted"
    };
    Ok(writeln!(session.output, "{verb} {what}")?)
}
