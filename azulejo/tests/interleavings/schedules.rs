//! Two or three operations on one array at once, one call after another: whose call comes next, a
//! seed decides, at every call.
//!
//! What comes out is what they give one after the other, in some order; who says that it was too
//! late has done nothing.

use crate::support::contexts::of_one_thread as context;
use crate::support::random::Random;
use crate::support::scheduled::{Locks, Scheduled};
use crate::support::turns::Turns;
use crate::{Before, Matrix, Outcome, arrays, in_order, with_claims};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What comes of operations one after the other, once it was asked for.
struct Orders<'a> {
    matrix: &'a Matrix<'a>,
    known: HashMap<Vec<usize>, Arc<Outcome>>,
}

impl Orders<'_> {
    fn of(&mut self, order: &[usize]) -> Arc<Outcome> {
        let matrix = self.matrix;
        let outcome = self.known.entry(order.to_vec()).or_insert_with(|| {
            let operations: Vec<_> = order.iter().map(|i| matrix.operations[*i]).collect();
            let all: Vec<usize> = (0..order.len()).collect();
            Arc::new(in_order(matrix, &operations, &all))
        });
        Arc::clone(outcome)
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
fn play(orders: &mut Orders<'_>, seed: u64) -> (usize, Option<String>) {
    let matrix = orders.matrix;
    let mut dice = Random(seed);
    let count = 2 + dice.below(2);
    let chosen: Vec<usize> = (0..count)
        .map(|_| dice.below(matrix.operations.len()))
        .collect();
    // Few switches or many: each finds other things.
    let one_in = [1, 2, 5, 15][dice.below(4)];
    let ground = matrix.ground();
    let turns = Turns::new(seed, count, one_in);
    let locks = Locks::default();
    let errors: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = chosen
            .iter()
            .enumerate()
            .map(|(number, operation)| {
                let storage = Scheduled::new(ground(), &turns, &locks);
                let context = context(Arc::new(storage.with_claims(matrix.claims)));
                let (turns, operation) = (&turns, matrix.operations[*operation]);
                scope.spawn(move || turns.run(number, || operation.1(&context).err()))
            })
            .collect();
        let results = running.into_iter();
        results.map(|one| one.join().expect("no panic")).collect()
    });
    let seen = (matrix.look)(&context(ground()));
    let done: Vec<bool> = errors.iter().map(Option::is_none).collect();
    let all: Vec<usize> = (0..count).collect();
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

/// So many schedules, or as many as fit in so many seconds: `AZULEJO_SECONDS`; from the seed
/// `AZULEJO_SEED` on.
pub fn play_all(matrix: &Matrix<'_>, usual: u64) {
    let number = |name: &str| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    let seconds = number("AZULEJO_SECONDS").map(Duration::from_secs);
    let first = number("AZULEJO_SEED").unwrap_or(1);
    let mut orders = Orders {
        matrix,
        known: HashMap::new(),
    };
    let begun = Instant::now();
    let (mut schedules, mut switches, mut wrong) = (0, 0, Vec::new());
    for seed in first.. {
        let is_enough = match seconds {
            Some(seconds) => begun.elapsed() >= seconds,
            None => schedules >= usual,
        };
        if is_enough || wrong.len() >= 5 {
            break;
        }
        let (more, problem) = play(&mut orders, seed);
        schedules += 1;
        switches += more;
        wrong.extend(problem);
    }
    eprintln!(
        "{}: {schedules} schedules, {switches} switches, {:.1} s",
        matrix.name,
        begun.elapsed().as_secs_f64()
    );
    assert!(switches as u64 > schedules, "nothing was interleaved");
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
