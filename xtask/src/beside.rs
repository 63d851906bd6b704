//! `cargo xtask interop beside`: one of our operations stands still before one of its storage calls,
//! while libtiledb does something from start to end.
//!
//! Afterwards both engines see what they see when the two come one after the other, in one of the two
//! orders; or ours says that it was too late, and only theirs has happened. libtiledb writes, deletes,
//! puts key-values, edits groups and reads: its consolidations and vacuums know nothing of our lock.

use crate::folders::{Folder, copy};
use crate::reference::Told;
use crate::support::operations::{Before, OPERATIONS, Operation, Place, prepare};
use crate::support::stepped::{Gate, Role, SteppedStorage};
use azulejo::check::{CheckOptions, Severity};
use azulejo::read::ReadOptions;
use azulejo::storage::{LocalStorage, MemoryStorage, Storage};
use azulejo::{Config, Context, TimeRange};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What there is before, and what libtiledb does there.
const BASES: [(Before, &[&str]); 6] = [
    (Before::Sparse, ON_SPARSE),
    (Before::Duplicates, ON_SPARSE),
    (Before::Merged, ON_SPARSE),
    (Before::OneCommit, ON_SPARSE),
    (Before::Dense, &["write", "metadata", "read"]),
    (
        Before::Group,
        &["edit group", "group metadata", "read group"],
    ),
];
const ON_SPARSE: &[&str] = &["write", "delete cells", "metadata", "read"];

/// Options: `--every N` (one of so many stops is tried; 1), `--seed N` (which of them, and which pairs
/// come first), `--seconds N` (no more pairs then).
pub fn run(options: &[&str]) -> crate::Outcome {
    let (mut every, mut seed, mut seconds) = (1usize, 1u64, u64::MAX);
    for pair in options.chunks(2) {
        let [name, number] = pair else {
            return Err("interop beside [--every N] [--seed N] [--seconds N]".into());
        };
        let number: u64 = number.parse().map_err(|e| format!("{number}: {e}"))?;
        match *name {
            "--every" => every = usize::try_from(number.max(1)).unwrap_or(1),
            "--seed" => seed = number,
            "--seconds" => seconds = number,
            _ => return Err(format!("{name}: no such option")),
        }
    }
    let mut pairs = Vec::new();
    for (before, theirs) in BASES {
        let changes = OPERATIONS.iter().filter(|(_, on, _)| on.contains(&before));
        let mut ours: Vec<Ours> = changes.map(Ours::Change).collect();
        if before != Before::Group {
            ours.push(Ours::Read);
        }
        for ours in ours {
            pairs.extend(theirs.iter().map(|theirs| (before, ours, *theirs)));
        }
    }
    let start = usize::try_from(seed).unwrap_or(0) * 7 % pairs.len();
    pairs.rotate_left(start);
    let mut matrix = Matrix {
        folder: Folder::quick("beside").map_err(|e| e.to_string())?,
        peer: Told::start("beside.py", &[])?,
        every,
        phase: usize::try_from(seed).unwrap_or(0),
        runs: 0,
        doubled: 0,
        wrong: Vec::new(),
    };
    let begun = Instant::now();
    let mut done = 0;
    for (before, ours, theirs) in &pairs {
        if begun.elapsed() > Duration::from_secs(seconds) {
            break;
        }
        matrix.pair(*before, *ours, theirs)?;
        done += 1;
    }
    println!(
        "beside libtiledb: {} runs of {done} of {} pairs in {:.0} s; in {} of them it saw cells twice, between the commit and \
         the vacuum file of a consolidation",
        matrix.runs,
        pairs.len(),
        begun.elapsed().as_secs_f64(),
        matrix.doubled,
    );
    match matrix.wrong.as_slice() {
        [] if matrix.runs > 0 => Ok(()),
        [] => Err("nothing was tried".into()),
        wrong => Err(format!("{} are wrong:\n{}", wrong.len(), wrong.join("\n"))),
    }
}

/// What stands still.
#[derive(Clone, Copy)]
enum Ours {
    Change(&'static Operation),
    /// Opens the array and reads it.
    Read,
}

impl Ours {
    fn name(self) -> &'static str {
        match self {
            Self::Change((name, ..)) => name,
            Self::Read => "read",
        }
    }

    fn run(self, place: &Place<'_>) -> Result<Value, String> {
        match self {
            Self::Change((_, _, change)) => change(place).map(|()| Value::Null),
            Self::Read => look_at_array(place.context, &place.at("array")),
        }
        .map_err(|e| e.to_string())
    }
}

/// What came of two operations: what each said, and what both engines saw afterwards.
#[derive(Debug)]
struct Came {
    ours: Result<Value, String>,
    theirs: Result<Value, String>,
    seen: Value,
}

impl Came {
    /// Whether it is the other one; of errors, that there is one.
    fn is(&self, other: &Self) -> bool {
        let same = |one: &Result<Value, String>, two: &Result<Value, String>| match (one, two) {
            (Ok(one), Ok(two)) => one == two,
            (Err(_), Err(_)) => true,
            _ => false,
        };
        same(&self.ours, &other.ours)
            && same(&self.theirs, &other.theirs)
            && self.seen == other.seen
    }
}

/// All pairs, and what was found.
struct Matrix {
    folder: Folder,
    peer: Told,
    every: usize,
    phase: usize,
    runs: usize,
    doubled: usize,
    wrong: Vec<String>,
}

fn context(local: Arc<dyn Storage>) -> Result<Context, String> {
    let memory = Arc::new(MemoryStorage::new());
    Context::with_storages(Config::new().threads(1), None, local, memory).map_err(|e| e.to_string())
}

fn on_files() -> Result<Context, String> {
    context(Arc::new(LocalStorage::new()))
}

impl Matrix {
    /// What the names of arrays begin with.
    fn root(&self) -> String {
        format!("{}/run/", self.folder.0.display())
    }

    /// What there is before, and nothing else.
    fn lay(&self, before: Before) -> crate::Outcome {
        let base = self.folder.0.join(format!("{before:?}"));
        let run = self.folder.0.join("run");
        let failed = |e: std::io::Error| format!("{}: {e}", run.display());
        if run.exists() {
            std::fs::remove_dir_all(&run).map_err(failed)?;
        }
        if !base.is_dir() {
            let context = on_files()?;
            let root = self.root();
            prepare(
                before,
                &Place {
                    context: &context,
                    root: &root,
                },
            );
            if before == Before::Group {
                // A member for libtiledb, which looks at it.
                prepare(
                    Before::Sparse,
                    &Place {
                        context: &context,
                        root: &root,
                    },
                );
                std::fs::rename(run.join("array"), run.join("member")).map_err(failed)?;
            }
            std::fs::rename(&run, &base).map_err(failed)?;
        }
        copy(&base, &run).map_err(failed)
    }

    fn theirs(&mut self, what: &str) -> Result<Value, String> {
        let command = json!({ "do": what, "root": self.root() });
        self.peer.ask(&command).map(|answer| answer["seen"].clone())
    }

    /// What both engines see.
    fn look(&mut self) -> Result<Value, String> {
        let theirs = self.theirs("look");
        let context = on_files()?;
        let root = self.root();
        let mut ours = Map::new();
        for name in ["array", "new/moved"] {
            let uri = format!("{root}{name}");
            match look_at_array(&context, &uri) {
                Ok(seen) => drop(ours.insert(name.into(), seen)),
                Err(azulejo::Error::NotFound { .. }) => {}
                Err(error) => drop(ours.insert(name.into(), error.to_string().into())),
            }
        }
        if let Ok(group) = context.group(&format!("{root}group")).open() {
            let mut names: Vec<_> = group.members().iter().map(|m| m.name.clone()).collect();
            names.sort();
            let keys = match group.metadata() {
                Ok(all) => json!(all.keys().map(|key| key.to_owned()).collect::<Vec<_>>()),
                Err(error) => error.to_string().into(),
            };
            ours.insert("group".into(), json!([names, keys]));
        }
        Ok(json!({ "ours": ours, "theirs": theirs.unwrap_or_else(Value::String) }))
    }

    /// One after the other.
    fn in_order(
        &mut self,
        before: Before,
        ours: Ours,
        theirs: &str,
        first: bool,
    ) -> Result<Came, String> {
        self.lay(before)?;
        let (context, root) = (on_files()?, self.root());
        let place = Place {
            context: &context,
            root: &root,
        };
        let early = first.then(|| ours.run(&place));
        let theirs = self.theirs(theirs);
        let ours = early.unwrap_or_else(|| ours.run(&place));
        let seen = self.look()?;
        Ok(Came { ours, theirs, seen })
    }

    /// Theirs alone.
    fn alone(&mut self, before: Before, theirs: &str) -> Result<Came, String> {
        self.lay(before)?;
        let theirs = self.theirs(theirs);
        let seen = self.look()?;
        Ok(Came {
            ours: Err("not done".into()),
            theirs,
            seen,
        })
    }

    /// Ours stands still before a call; `None` if it has not so many.
    fn interleaved(
        &mut self,
        before: Before,
        ours: Ours,
        theirs: &str,
        stop_at: usize,
    ) -> Result<Option<Came>, String> {
        self.lay(before)?;
        let gate = Gate::new(stop_at);
        let stepped = SteppedStorage::new(Arc::new(LocalStorage::new()), &gate, Role::First);
        let (context, root) = (context(Arc::new(stepped))?, self.root());
        let both = std::thread::scope(|scope| {
            let run = || {
                let result = ours.run(&Place {
                    context: &context,
                    root: &root,
                });
                gate.end();
                result
            };
            let running = scope.spawn(run);
            if !gate.wait_until_stopped() {
                let _ = running.join();
                return None;
            }
            let theirs = self.theirs(theirs);
            gate.release();
            Some((running.join(), theirs))
        });
        let Some((ours, theirs)) = both else {
            return Ok(None);
        };
        let ours = ours.map_err(|_| "ours has panicked")?;
        let seen = self.look()?;
        Ok(Some(Came { ours, theirs, seen }))
    }

    fn pair(&mut self, before: Before, ours: Ours, theirs: &str) -> crate::Outcome {
        let orders = [
            self.in_order(before, ours, theirs, true)?,
            self.in_order(before, ours, theirs, false)?,
            self.alone(before, theirs)?,
        ];
        self.phase += 1;
        for stop_at in (self.phase % self.every..).step_by(self.every) {
            let Some(outcome) = self.interleaved(before, ours, theirs, stop_at)? else {
                break;
            };
            self.runs += 1;
            if orders.iter().any(|order| outcome.is(order)) {
                continue;
            }
            if is_doubled(before, ours, &outcome, &orders[0]) {
                self.doubled += 1;
                continue;
            }
            self.wrong.push(format!(
                "{before:?}: {} stopped at {stop_at}, libtiledb: {theirs}:\n  {outcome:?}\n  not {:?}\n  nor {:?}",
                ours.name(),
                orders[0],
                orders[1],
            ));
        }
        Ok(())
    }
}

/// Whether libtiledb has read cells twice while a consolidation stood between its commit and its
/// vacuum file, and all else is right. That is not promised.
fn is_doubled(before: Before, ours: Ours, outcome: &Came, order: &Came) -> bool {
    let cells = |seen: &Value| -> Option<Vec<String>> {
        let all = seen[3].as_array()?;
        Some(all.iter().map(ToString::to_string).collect())
    };
    let (Ok(seen), Ok(wanted)) = (&outcome.theirs, &order.theirs) else {
        return false;
    };
    let (Some(mut seen), Some(wanted)) = (cells(seen), cells(wanted)) else {
        return false;
    };
    let count = seen.len();
    seen.dedup();
    before == Before::Duplicates
        && ours.name() == "consolidate fragments"
        && outcome.seen == order.seen
        && seen == wanted
        && count > wanted.len()
}

/// Attributes, keys, cells at two times, and what is wrong with it.
pub fn look_at_array(context: &Context, uri: &str) -> azulejo::Result<Value> {
    let handle = context.array(uri);
    let now = handle.open()?;
    let mut names: Vec<_> = now
        .schema()
        .attributes
        .iter()
        .map(|a| a.name.clone())
        .collect();
    names.sort();
    let keys: Vec<String> = now.metadata()?.keys().map(|key| key.to_owned()).collect();
    let is_dense = now.schema().is_dense();
    let cells_of = |array: &azulejo::Array| -> azulejo::Result<Value> {
        let fields: &[&str] = if is_dense { &["a"] } else { &["x", "a"] };
        let cells = array
            .read(ReadOptions::new().fields(fields.iter().copied()))?
            .read_all()?;
        let values = |name: &str| cells.column(name).and_then(|column| column.values::<i32>());
        let a = values("a").unwrap_or_default().to_vec();
        let x = cells.column("x").and_then(|column| column.values::<i64>());
        Ok(match x {
            Some(x) => {
                let mut both: Vec<(i64, i32)> = x.iter().copied().zip(a).collect();
                both.sort_unstable();
                json!(both)
            }
            None => json!(a),
        })
    };
    let then = cells_of(&handle.open_at(TimeRange::until(25))?)?;
    let report = handle.check(CheckOptions::default())?;
    let errors = report
        .findings
        .iter()
        .filter(|f| f.severity == Severity::Error);
    let errors: Vec<_> = errors.map(|f| format!("{}: {}", f.path, f.what)).collect();
    Ok(json!([names, keys, then, cells_of(&now)?, errors]))
}
