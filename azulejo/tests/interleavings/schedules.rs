//! Two or three operations on one array at once, one call after another: whose call comes next, a
//! seed decides, at every call.
//!
//! What comes out is what they give one after the other, in some order; who says that it was too
//! late has done nothing.

use crate::support::contexts::of_one_thread as context;
use crate::support::random::Random;
use crate::support::scheduled::{Locks, Scheduled};
use crate::support::turns::Turns;
use crate::{Before, Matrix, Operation, Outcome, arrays, copy_of, with_claims};
use azulejo::storage::{MemoryStorage, Storage};
use azulejo::{Context, Error};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// How many there are at once, at most.
const MOST: usize = 3;

/// What comes of operations one after the other, once it was asked for.
struct Orders<'a> {
    matrix: &'a Matrix<'a>,
    context: Context,
    known: HashMap<Vec<usize>, Known>,
}

struct Known {
    outcome: Arc<Outcome>,
    /// All that lies there then, for those who come next.
    after: Option<MemoryStorage>,
}

impl Orders<'_> {
    /// The last one comes where those before it have left off.
    fn of(&mut self, order: &[usize]) -> Arc<Outcome> {
        if let Some(known) = self.known.get(order) {
            return Arc::clone(&known.outcome);
        }
        let matrix = self.matrix;
        let mut done = Vec::new();
        let ground = match order.split_last() {
            None => matrix.ground(),
            Some((_, before)) => {
                done.clone_from(&self.of(before).done);
                let left = self
                    .known
                    .get(before)
                    .and_then(|known| known.after.as_ref());
                (matrix.place)(left.expect("it was kept"))
            }
        };
        let context = self.context.with_memory(ground());
        if let Some((last, _)) = order.split_last() {
            done.push(matrix.operations[*last].1(&context).is_ok());
        }
        let after = (order.len() < MOST).then(|| copy_of(&*ground()));
        let seen = (matrix.look)(&context);
        let outcome = Arc::new(Outcome { seen, done });
        let known = Known {
            outcome: Arc::clone(&outcome),
            after,
        };
        self.known.insert(order.to_vec(), known);
        outcome
    }
}

/// What one of several at once does.
struct Task {
    number: usize,
    storage: Arc<dyn Storage>,
    turns: Arc<Turns>,
    operation: Operation,
}

/// Who does one thing after another, each at its turn.
struct Worker {
    tasks: Sender<Task>,
    errors: Receiver<Option<Error>>,
}

impl Worker {
    /// Its thread and its context serve all tasks, and end behind the last.
    fn start<'s>(scope: &'s Scope<'s, '_>) -> Self {
        let (tasks, given) = channel::<Task>();
        let (answer, errors) = channel();
        scope.spawn(move || {
            let own = context(Arc::new(MemoryStorage::new()));
            for task in given {
                let context = own.with_memory(task.storage);
                let work = || task.operation.1(&context).err();
                let error = task.turns.run(task.number, work);
                if answer.send(error).is_err() {
                    break;
                }
            }
        });
        Self { tasks, errors }
    }
}

/// All orders of some numbers.
fn permutations(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (i, first) in of.iter().enumerate() {
        let mut rest = of.to_vec();
        rest.remove(i);
        for mut order in permutations(&rest) {
            order.insert(0, *first);
            all.push(order);
        }
    }
    all
}

/// One schedule; what is wrong with its outcome.
fn play(orders: &mut Orders<'_>, workers: &[Worker; MOST], seed: u64) -> (usize, Option<String>) {
    let matrix = orders.matrix;
    let mut dice = Random(seed);
    let count = 2 + dice.below(MOST - 1);
    let chosen: Vec<usize> = (0..count)
        .map(|_| dice.below(matrix.operations.len()))
        .collect();
    // Few switches or many: each finds other things.
    let one_in = [1, 2, 5, 15][dice.below(4)];
    let ground = matrix.ground();
    let turns = Turns::new(seed, count, one_in);
    let locks = Locks::default();
    let running = || workers.iter().zip(&chosen).enumerate();
    for (number, (worker, operation)) in running() {
        let storage = Scheduled::new(ground(), &turns, number, &locks);
        let task = Task {
            number,
            storage: Arc::new(storage.with_claims(matrix.claims)),
            turns: Arc::clone(&turns),
            operation: *matrix.operations[*operation],
        };
        worker.tasks.send(task).expect("no panic");
    }
    let errors: Vec<_> = running()
        .map(|(_, (worker, _))| {
            let error = worker.errors.recv();
            error.unwrap_or_else(|_| {
                let names = chosen.iter().map(|i| matrix.operations[*i].0);
                panic!(
                    "{}, seed {seed}: {:?}",
                    matrix.name,
                    names.collect::<Vec<_>>()
                )
            })
        })
        .collect();
    let seen = (matrix.look)(&orders.context.with_memory(ground()));
    let done: Vec<bool> = errors.iter().map(Option::is_none).collect();
    // Most often it is as if each had come when it ended.
    let all = turns.ended();
    let successful: Vec<usize> = all.iter().copied().filter(|i| done[*i]).collect();
    let named = |order: &[usize]| order.iter().map(|i| chosen[*i]).collect::<Vec<_>>();
    let fits = permutations(&all).iter().any(|order| {
        let outcome = orders.of(&named(order));
        let as_done = order
            .iter()
            .zip(&outcome.done)
            .all(|(i, so)| done[*i] == *so);
        as_done && outcome.seen == seen
    }) || permutations(&successful).iter().any(|order| {
        let outcome = orders.of(&named(order));
        outcome.done.iter().all(|so| *so) && outcome.seen == seen
    });
    let wrong = (!fits).then(|| {
        let names: Vec<_> = chosen.iter().map(|i| matrix.operations[*i].0).collect();
        let ordered = permutations(&all);
        let ordered = ordered
            .iter()
            .map(|order| orders.of(&named(order)).seen.clone());
        format!(
            "{}, seed {seed}: {names:?}:\n  {errors:?}\n  seen {seen:#?}\n  none of {:#?}",
            matrix.name,
            ordered.collect::<Vec<_>>()
        )
    });
    (turns.switches(), wrong)
}

/// Which schedules are played: from one seed on, every so many.
#[derive(Clone, Copy)]
struct Lane {
    first: u64,
    step: usize,
    /// So many of them, or those that fit until then.
    most: usize,
    until: Option<Instant>,
}

#[derive(Default)]
struct Tally {
    schedules: usize,
    switches: usize,
    orders: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.schedules += other.schedules;
        self.switches += other.switches;
        self.orders += other.orders;
        self.wrong.extend(other.wrong);
    }
}

/// One schedule after another.
fn play_lane(matrix: &Matrix<'_>, lane: Lane) -> Tally {
    let mut tally = Tally::default();
    let mut orders = Orders {
        matrix,
        context: context(Arc::new(MemoryStorage::new())),
        known: HashMap::new(),
    };
    std::thread::scope(|scope| {
        let workers = std::array::from_fn(|_| Worker::start(scope));
        for seed in (lane.first..).step_by(lane.step) {
            let is_enough = match lane.until {
                Some(until) => Instant::now() >= until,
                None => tally.schedules >= lane.most,
            };
            if is_enough || tally.wrong.len() >= 5 {
                break;
            }
            let (switches, problem) = play(&mut orders, &workers, seed);
            tally.schedules += 1;
            tally.switches += switches;
            tally.wrong.extend(problem);
        }
    });
    tally.orders = orders.known.len();
    tally
}

/// So many schedules, or as many as fit in so many seconds on all cores: `AZULEJO_SECONDS`; from
/// the seed `AZULEJO_SEED` on.
pub fn play_all(matrix: &Matrix<'_>, usual: usize) {
    // Else each write would wait for a millisecond of its own.
    #[cfg(feature = "testing")]
    azulejo::clock::stand_still();
    let number = |name: &str| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    let seconds = number("AZULEJO_SECONDS").map(Duration::from_secs);
    let first = number("AZULEJO_SEED").unwrap_or(1);
    let begun = Instant::now();
    // Few schedules share the cores with other tests.
    let lanes = match seconds {
        Some(_) => std::thread::available_parallelism().map_or(1, usize::from),
        None => 1,
    };
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (first..)
            .take(lanes)
            .map(|first| Lane {
                first,
                step: lanes,
                most: usual,
                until: seconds.map(|seconds| begun + seconds),
            })
            .map(|lane| scope.spawn(move || play_lane(matrix, lane)))
            .collect();
        for lane in lanes {
            tally.add(lane.join().expect("no panic"));
        }
    });
    let Tally {
        schedules,
        switches,
        orders,
        wrong,
    } = tally;
    let took = begun.elapsed().as_secs_f64();
    eprintln!(
        "{}: {schedules} schedules, {switches} switches, {orders} orders, {took:.1} s",
        matrix.name
    );
    assert!(switches > schedules, "nothing was interleaved");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn any_schedule_of_a_plain_array() {
    play_all(&arrays(Before::Plain, false), 300);
}

#[test]
fn any_schedule_of_an_array_with_duplicates() {
    play_all(&arrays(Before::Plain, true), 300);
}

#[test]
fn any_schedule_of_an_array_with_replaced_fragments() {
    play_all(&arrays(Before::Merged, true), 300);
}

#[test]
fn any_schedule_of_a_dense_array() {
    play_all(&arrays(Before::Dense, false), 300);
}

#[test]
fn any_schedule_with_claims() {
    play_all(&with_claims(arrays(Before::Plain, true)), 300);
}
