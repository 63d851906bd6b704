//! `cargo xtask cloud matrix`: of two operations on one array in a bucket, each from a client of its
//! own, the first stands still before one of its requests while the second runs from start to end.
//!
//! The same as `azulejo/tests/interleavings.rs`, on a real server, whose conditional puts are all that
//! keeps the two apart. A seed chooses pairs and stops, as many as there is time for.

use super::{Stage, s3_context, s3_uri};
use crate::Outcome;
use crate::beside::look_at_array;
use crate::support::operations::{Before, OPERATIONS, Operation, Place, prepare};
use crate::support::random::Random;
use crate::support::stepped::{Gate, Role, SteppedStorage};
use azulejo::storage::{Storage, Uri};
use azulejo::{Context, Error};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What there is before.
const BASES: [Before; 6] = [
    Before::Sparse,
    Before::Duplicates,
    Before::Merged,
    Before::OneCommit,
    Before::Dense,
    Before::Group,
];
/// They take many steps in a bucket, which a write beside them does not see: that is not promised.
const WHOLE: [&str; 3] = ["move", "delete array", "delete group"];
/// Stops that are tried of each pair.
const STOPS: usize = 8;
/// No operation has as many requests.
const MOST_REQUESTS: usize = 120;

/// Options: `--seconds N` (60), `--seed N` (1).
pub fn run(stage: &Stage, options: &[&str]) -> Outcome {
    let (mut seconds, mut seed) = (60, 1);
    for pair in options.chunks(2) {
        let number = |text: &str| text.parse::<u64>().map_err(|e| format!("{text}: {e}"));
        match pair {
            ["--seconds", n] => seconds = number(n)?,
            ["--seed", n] => seed = number(n)?,
            _ => return Err("cloud matrix [--seconds N] [--seed N]".into()),
        }
    }
    let sound = s3_context(stage.sound.address, &[])?;
    let bucket = Uri::parse(&s3_uri("")).map_err(|e| e.to_string())?;
    let storage = sound.locate(&bucket).map_err(|e| e.to_string())?.storage;
    if storage.exclusive().is_none() || storage.locking().is_some() {
        return Err("the server cannot tell who is the first to write an object".into());
    }
    let mut matrix = Matrix {
        sound,
        bucket,
        storage,
        laid: 0,
        runs: 0,
    };
    let mut random = Random(seed);
    let (begun, mut pairs, mut wrong) = (Instant::now(), 0, Vec::new());
    while begun.elapsed() < Duration::from_secs(seconds) {
        let before = random.pick(&BASES);
        let on =
            |operation: &&Operation| operation.1.contains(&before) && !WHOLE.contains(&operation.0);
        let all: Vec<&Operation> = OPERATIONS.iter().filter(on).collect();
        let pair = [random.pick(&all), random.pick(&all)];
        pairs += 1;
        super::servers::gets_on();
        wrong.extend(matrix.pair(before, pair, &mut random)?);
    }
    println!(
        "cloud matrix: {} runs of {pairs} pairs, seed {seed}, {:.0} s, {} wrong",
        matrix.runs,
        begun.elapsed().as_secs_f64(),
        wrong.len()
    );
    match wrong.as_slice() {
        [] => Ok(()),
        wrong => Err(wrong.join("\n")),
    }
}

/// What the two operations say, if they fail.
type Errors = [Option<Error>; 2];

/// Whether each operation has succeeded, and what is seen afterwards.
#[derive(Debug, PartialEq)]
struct Came {
    done: [bool; 2],
    seen: Value,
}

struct Matrix {
    sound: Context,
    bucket: Uri,
    storage: Arc<dyn Storage>,
    laid: usize,
    runs: usize,
}

impl Matrix {
    /// What there is before, in a place of its own; what names there begin with.
    fn lay(&mut self, before: Before) -> String {
        self.laid += 1;
        let root = s3_uri(&format!("matrix/{}/", self.laid));
        let context = &self.sound;
        prepare(
            before,
            &Place {
                context,
                root: &root,
            },
        );
        root
    }

    fn look(&self, root: &str) -> Result<Value, String> {
        let mut seen = Vec::new();
        for name in ["array", "new/moved"] {
            seen.push(match look_at_array(&self.sound, &format!("{root}{name}")) {
                Ok(array) => array,
                Err(Error::NotFound { .. }) => Value::Null,
                // Without names that differ from place to place.
                Err(error) => error.to_string().replace(root, "").into(),
            });
        }
        if let Ok(group) = self.sound.group(&format!("{root}group")).open() {
            let mut names: Vec<_> = group.members().iter().map(|m| m.name.clone()).collect();
            names.sort();
            let keys = match group.metadata() {
                Ok(all) => json!(all.keys().map(|key| key.to_owned()).collect::<Vec<_>>()),
                Err(error) => error.to_string().replace(root, "").into(),
            };
            seen.push(json!([names, keys]));
        }
        Ok(json!(seen))
    }

    /// Those that are named, one after the other.
    fn in_order(
        &mut self,
        before: Before,
        pair: [&Operation; 2],
        order: &[usize],
    ) -> Result<Came, String> {
        let root = self.lay(before);
        let mut done = [false; 2];
        for &i in order {
            let context = &self.sound;
            done[i] = pair[i].2(&Place {
                context,
                root: &root,
            })
            .is_ok();
        }
        let seen = self.look(&root)?;
        Ok(Came { done, seen })
    }

    /// The first stopped before a request; `None` if it has not so many.
    fn interleaved(
        &mut self,
        before: Before,
        pair: [&Operation; 2],
        stop_at: usize,
    ) -> Result<Option<(Came, Errors)>, String> {
        let root = self.lay(before);
        let gate = Gate::new(stop_at);
        let view = |role| {
            let stepped = SteppedStorage::new(Arc::clone(&self.storage), &gate, role);
            let stepped = Arc::new(stepped.with_claims(true));
            self.sound
                .with_storage_at(&self.bucket, stepped)
                .map_err(|e| e.to_string())
        };
        let (first, second) = (view(Role::First)?, view(Role::Second)?);
        let run = |i: usize, context: &Context| {
            pair[i].2(&Place {
                context,
                root: &root,
            })
        };
        let errors = std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                let result = run(0, &first);
                gate.end();
                result
            });
            if !gate.wait_until_stopped() {
                let _ = running.join();
                return None;
            }
            let second = run(1, &second);
            gate.release();
            Some(running.join().map(|first| [first.err(), second.err()]))
        });
        let Some(errors) = errors else {
            return Ok(None);
        };
        let errors = errors.map_err(|_| "an operation has panicked")?;
        let done = [errors[0].is_none(), errors[1].is_none()];
        let seen = self.look(&root)?;
        Ok(Some((Came { done, seen }, errors)))
    }

    /// Some stops of a pair; what is wrong with them.
    fn pair(
        &mut self,
        before: Before,
        pair: [&Operation; 2],
        random: &mut Random,
    ) -> Result<Vec<String>, String> {
        let orders = [
            self.in_order(before, pair, &[0, 1])?,
            self.in_order(before, pair, &[1, 0])?,
        ];
        let alone = [
            self.in_order(before, pair, &[0])?,
            self.in_order(before, pair, &[1])?,
        ];
        let mut wrong = Vec::new();
        let mut end = MOST_REQUESTS;
        for _ in 0..STOPS {
            let stop_at = random.below(end);
            let Some((came, errors)) = self.interleaved(before, pair, stop_at)? else {
                end = stop_at.max(1);
                continue;
            };
            self.runs += 1;
            // Of two who edit a group in the same way, both may say that they have done it.
            let agree = before == Before::Group;
            let as_ordered = orders
                .iter()
                .any(|order| *order == came || agree && order.seen == came.seen);
            let as_alone =
                (0..2).any(|i| came.done[i] && !came.done[1 - i] && alone[i].seen == came.seen);
            if !as_ordered && !as_alone {
                wrong.push(format!(
                    "{before:?}: {} stopped at {stop_at}, {}: {errors:?}\n  {came:?}\n  not {:?}\n  nor {:?}",
                    pair[0].0, pair[1].0, orders[0], orders[1]
                ));
            }
        }
        Ok(wrong)
    }
}
