//! Random changes of an array beside a model that knows every cell: one after another, and two or
//! three at once, as a seed decides at every storage call. What is read at several times is what the
//! model says.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]

#[path = "every_cell/model.rs"]
mod model;
mod support;

use azulejo::array::FragmentSelection;
use azulejo::check::{CheckOptions, Severity};
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::{Choice, FragmentOptions, Mode, VacuumOptions};
use azulejo::format::schema::NewArray;
use azulejo::format::{ArraySchema, Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::storage::{MemoryStorage, Storage};
use azulejo::write::WriteOptions;
use azulejo::{Context, Error, Result, TimeRange};
use model::{Cell, Kind, Model, Rule, SIDE};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::contexts::of_one_thread as context;
use support::random::Random;
use support::scheduled::{Locks, Scheduled};
use support::turns::Turns;

const URI: &str = "mem://array";
/// Times of what there is before others come at once.
const BASE_ENDS: u64 = 40;
/// The last time of anything.
const LAST: u64 = 1000;

/// A change.
#[derive(Debug, Clone)]
enum Change {
    Write { time: u64, cells: Vec<Cell> },
    DeleteCells { time: u64, rule: Rule },
    DeleteFragments { start: u64, end: u64 },
    Consolidate(FragmentOptions),
    ConsolidateCommits,
    ConsolidateFooters,
    Vacuum(Mode),
}

fn new_array(kind: Kind) -> NewArray {
    let schema = match kind {
        Kind::Dense => ArraySchema::dense(),
        // Tiles of few cells, so that there are several.
        _ => ArraySchema::sparse()
            .capacity(3)
            .allows_duplicates(kind == Kind::Duplicates),
    };
    let schema = schema
        .dimension("x", 0..=SIDE - 1, 3)
        .dimension("y", 0..=SIDE - 1, 5)
        .attribute("a", Datatype::Int32)
        .var_attribute("s", Datatype::StringUtf8);
    schema.build().unwrap()
}

fn text(value: i32) -> String {
    "ab".repeat((value % 4) as usize) + &value.to_string()
}

/// Writes cells; the fragment's name.
fn write(context: &Context, kind: Kind, time: u64, cells: &[Cell]) -> Result<String> {
    let mut options = WriteOptions::new().timestamp(time);
    let a: Vec<i32> = cells.iter().map(|cell| cell.2).collect();
    let mut columns = vec![
        ColumnBuffers::of_strings("s", a.iter().map(|value| text(*value))),
        ColumnBuffers::of_values("a", a),
    ];
    if kind == Kind::Dense {
        let (first, last) = (cells[0], cells[cells.len() - 1]);
        let ranges = vec![Range::of(first.0, last.0), Range::of(first.1, last.1)];
        options = options.subarray(NdRectangle { ranges });
    } else {
        columns.push(ColumnBuffers::of_values(
            "x",
            cells.iter().map(|c| c.0).collect(),
        ));
        columns.push(ColumnBuffers::of_values(
            "y",
            cells.iter().map(|c| c.1).collect(),
        ));
    }
    let mut writer = context.array(URI).writer(options)?;
    writer.write(&ColumnSet::of(columns)?)?;
    Ok(writer.finish()?.remove(0))
}

/// Makes a change; the name of what was written.
fn make(context: &Context, kind: Kind, change: &Change) -> Result<Option<String>> {
    let array = context.array(URI);
    match change {
        Change::Write { time, cells } => return write(context, kind, *time, cells).map(Some),
        Change::DeleteCells { time, rule } => {
            let condition = match rule {
                Rule::XBelow(x) => Condition::compare("x", Comparison::Lt, x.to_le_bytes()),
                Rule::ValueBelow(v) => Condition::compare("a", Comparison::Lt, v.to_le_bytes()),
            };
            array.delete_cells(&condition, Some(*time))?;
        }
        Change::DeleteFragments { start, end } => {
            let (start, end) = (*start, *end);
            array.delete_fragments(FragmentSelection::Within(TimeRange { start, end }))?;
        }
        Change::Consolidate(options) => drop(array.consolidate(options)?),
        Change::ConsolidateCommits => drop(array.consolidate_commits()?),
        Change::ConsolidateFooters => drop(array.consolidate_fragment_metadata()?),
        Change::Vacuum(mode) => drop(array.vacuum(*mode, VacuumOptions::default())?),
    }
    Ok(None)
}

/// All cells at a time, sorted.
fn read(context: &Context, kind: Kind, time: u64) -> Vec<Cell> {
    let array = context.array(URI).open_at(TimeRange::until(time)).unwrap();
    let fields: &[&str] = match kind {
        Kind::Dense => &["a", "s"],
        _ => &["x", "y", "a", "s"],
    };
    let options = ReadOptions::new().fields(fields.iter().copied());
    let set = array.read(options).unwrap().read_all().unwrap();
    let a = set.column("a").unwrap().values::<i32>().unwrap().to_vec();
    let mut cells: Vec<Cell> = match kind {
        Kind::Dense => {
            let places = (0..SIDE).flat_map(|x| (0..SIDE).map(move |y| (x, y)));
            places.zip(a).map(|((x, y), value)| (x, y, value)).collect()
        }
        _ => {
            let of = |name: &str| set.column(name).unwrap().values::<i64>().unwrap().to_vec();
            let (x, y) = (of("x"), of("y"));
            (0..a.len()).map(|i| (x[i], y[i], a[i])).collect()
        }
    };
    // The text of each cell is that of its value.
    let s = set.column("s").unwrap();
    let offsets = s.offsets.as_ref().unwrap().typed_data::<u64>();
    for (i, (_, _, value)) in cells.iter().enumerate() {
        let found = &s.data[offsets[i] as usize..offsets[i + 1] as usize];
        let wanted = if *value == model::FILL {
            vec![0]
        } else {
            text(*value).into_bytes()
        };
        assert_eq!(found, wanted, "cell {i}, {value}");
    }
    cells.sort_unstable();
    cells
}

/// Times that may tell states apart.
fn times(random: &mut Random, from: u64) -> Vec<u64> {
    let mut times: Vec<u64> = (0..4)
        .map(|_| from + random.below((LAST - from) as usize) as u64)
        .collect();
    times.push(LAST);
    times
}

fn no_errors(context: &Context) {
    let report = context.array(URI).check(CheckOptions::default()).unwrap();
    let errors: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
}

/// Chooses changes: each has a time of its own, and each cell a value of its own.
struct Chooser {
    random: Random,
    kind: Kind,
    value: i32,
    taken: BTreeSet<u64>,
}

impl Chooser {
    fn new(seed: u64, kind: Kind) -> Self {
        Self {
            random: Random(seed),
            kind,
            value: 0,
            taken: BTreeSet::new(),
        }
    }

    /// A time that nothing else has, in this range.
    fn time(&mut self, from: u64, to: u64) -> u64 {
        loop {
            let time = from + self.random.below((to - from) as usize) as u64;
            if self.taken.insert(time) {
                return time;
            }
        }
    }

    fn cells(&mut self) -> Vec<Cell> {
        let mut place = || self.random.below(SIDE as usize) as i64;
        let places: Vec<(i64, i64)> = if self.kind == Kind::Dense {
            let (a, b, c, d) = (place(), place(), place(), place());
            (a.min(b)..=a.max(b))
                .flat_map(|x| (c.min(d)..=c.max(d)).map(move |y| (x, y)))
                .collect()
        } else {
            (0..1 + place()).map(|_| (place(), place())).collect()
        };
        let mut seen = BTreeSet::new();
        let is_new = |place: &(i64, i64)| seen.insert(*place) || self.kind == Kind::Duplicates;
        let places: Vec<_> = places.into_iter().filter(is_new).collect();
        let cells = places.into_iter().map(|(x, y)| {
            self.value += 1;
            (x, y, self.value)
        });
        cells.collect()
    }

    fn write(&mut self, from: u64, to: u64) -> Change {
        let time = self.time(from, to);
        let cells = self.cells();
        Change::Write { time, cells }
    }

    fn delete_cells(&mut self, from: u64, to: u64) -> Change {
        let time = self.time(from, to);
        let rule = match self.random.below(2) {
            0 => Rule::XBelow(self.random.below(SIDE as usize) as i64),
            _ => Rule::ValueBelow(self.random.below(self.value.max(1) as usize) as i32),
        };
        Change::DeleteCells { time, rule }
    }

    fn delete_fragments(&mut self, from: u64, to: u64) -> Change {
        let mut time = || from + self.random.below((to - from) as usize) as u64;
        let (a, b) = (time(), time());
        let (start, end) = (a.min(b), a.max(b));
        Change::DeleteFragments { start, end }
    }

    /// Of fragments within a time.
    fn consolidate(&mut self, end: u64) -> Change {
        let mut choice = Choice::new().amplification(100.0);
        if self.random.chance(50) {
            choice = choice.fragments(2, 3);
        }
        let options = FragmentOptions::new().choice(choice);
        Change::Consolidate(options.time(TimeRange { start: 0, end }))
    }

    /// What changes no cell.
    fn upkeep(&mut self) -> Change {
        match self.random.below(5) {
            0 => Change::ConsolidateCommits,
            1 => Change::ConsolidateFooters,
            2 => Change::Vacuum(Mode::Commits),
            3 => Change::Vacuum(Mode::FragmentMetadata),
            _ => Change::Vacuum(Mode::Fragments),
        }
    }
}

/// Names of the fragments that a reader of now has.
fn names(context: &Context) -> BTreeSet<String> {
    let array = context.array(URI).open().unwrap();
    let names = array
        .fragments()
        .iter()
        .map(|fragment| fragment.name().to_string());
    names.collect()
}

/// Makes a change, and the model's of it.
fn follow(context: &Context, model: &mut Model, change: &Change) {
    let before = names(context);
    let name = make(context, model.kind, change).unwrap_or_else(|e| panic!("{change:?}: {e}"));
    match change {
        Change::Write { time, cells } => model.write(name.unwrap(), *time, cells),
        Change::DeleteCells { time, rule } => model.deletes.push((*time, *rule)),
        Change::DeleteFragments { start, end } => model.delete_fragments(*start, *end),
        Change::Consolidate(_) => {
            // Which were merged is the engine's to choose; what they hold is not.
            let after = names(context);
            let new: Vec<_> = after.difference(&before).cloned().collect();
            let old: Vec<_> = before.difference(&after).cloned().collect();
            assert!(
                new.len() <= 1 && new.is_empty() == old.is_empty(),
                "{new:?} {old:?}"
            );
            if let Some(new) = new.into_iter().next() {
                model.merge(new, &old);
            }
        }
        Change::Vacuum(Mode::Fragments) => model.vacuum(),
        _ => {}
    }
}

/// Changes one after another; the model is asked behind each.
fn one_after_another(kind: Kind, seed: u64) {
    let context = context(Arc::new(MemoryStorage::new()));
    context.array(URI).create_at(new_array(kind), 1).unwrap();
    let mut chooser = Chooser::new(seed, kind);
    let mut model = Model::new(kind);
    let mut latest = 2;
    let mut done = Vec::new();
    for _ in 0..4 + chooser.random.below(10) {
        // Dense cells have the time of their fragment: what comes late lies above what was merged.
        let (from, to) = match kind {
            Kind::Dense => (latest, latest + 20),
            _ => (2, LAST),
        };
        let change = match chooser.random.below(20) {
            0..8 => chooser.write(from, to),
            8..11 if kind != Kind::Dense => chooser.delete_cells(2, LAST),
            11..13 => chooser.delete_fragments(2, LAST),
            13..16 => chooser.consolidate(LAST),
            _ => chooser.upkeep(),
        };
        if let Change::Write { time, .. } = change {
            latest = latest.max(time + 1);
        }
        done.push(change.clone());
        follow(&context, &mut model, &change);
        for time in times(&mut chooser.random, 1) {
            let (found, wanted) = (read(&context, kind, time), model.at(time));
            assert_eq!(found, wanted, "{kind:?}, seed {seed}, at {time}: {done:#?}");
        }
    }
    no_errors(&context);
}

/// What each of some users does, one after another.
type Work = Vec<Vec<Change>>;

/// Two or three who come at once, each with changes of its own.
fn at_once(kind: Kind, claims: bool, seed: u64) -> usize {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let alone = context(Arc::clone(&storage));
    alone.array(URI).create_at(new_array(kind), 1).unwrap();
    let mut chooser = Chooser::new(seed, kind);
    let mut model = Model::new(kind);
    let mut base_time = 2;
    for _ in 0..2 + chooser.random.below(3) {
        let change = chooser.write(base_time, base_time + 8);
        base_time += 8;
        follow(&alone, &mut model, &change);
    }
    if chooser.random.chance(30) {
        let change = chooser.consolidate(BASE_ENDS);
        follow(&alone, &mut model, &change);
    }
    let users = 2 + chooser.random.below(2);
    let mut deletes_fragments = true;
    let work: Work = (0..users)
        .map(|_| {
            let count = 1 + chooser.random.below(4);
            let change = |_| {
                let from = if kind == Kind::Dense { BASE_ENDS } else { 2 };
                match chooser.random.below(20) {
                    0..6 => chooser.write(from, LAST),
                    6..9 if kind != Kind::Dense => chooser.delete_cells(from, LAST),
                    9..11 if std::mem::take(&mut deletes_fragments) => {
                        chooser.delete_fragments(from, LAST)
                    }
                    // Of dense arrays, what may not be merged with it.
                    11..15 if kind == Kind::Dense => chooser.consolidate(BASE_ENDS),
                    11..15 => chooser.consolidate(LAST),
                    _ => chooser.upkeep(),
                }
            };
            (0..count).map(change).collect()
        })
        .collect();
    let one_in = [1, 2, 5, 15][chooser.random.below(4)];
    let (turns, locks) = (Turns::new(seed, users, one_in), Locks::default());
    let results: Vec<Vec<Result<Option<String>>>> = std::thread::scope(|scope| {
        let running: Vec<_> = work
            .iter()
            .enumerate()
            .map(|(number, changes)| {
                let storage = Scheduled::new(Arc::clone(&storage), &turns, number, &locks);
                let context = context(Arc::new(storage.with_claims(claims)));
                let turns = &turns;
                let make = move |change| make(&context, kind, change);
                scope.spawn(move || turns.run(number, || changes.iter().map(make).collect()))
            })
            .collect();
        running
            .into_iter()
            .map(|one| one.join().expect("no panic"))
            .collect()
    });
    let said = format!("{kind:?}, claims {claims}, seed {seed}: {work:#?} {results:?}");
    let possible = possible(&model, &work, &results, &said);
    let from = if kind == Kind::Dense { BASE_ENDS } else { 1 };
    let times = times(&mut chooser.random, from);
    // As they have left it, and once more with all merged and vacuumed.
    for is_settled in [false, true] {
        if is_settled && kind != Kind::Dense {
            alone
                .array(URI)
                .consolidate(&FragmentOptions::new())
                .unwrap();
            alone
                .array(URI)
                .vacuum(Mode::Fragments, VacuumOptions::default())
                .unwrap();
        }
        let found: Vec<_> = times.iter().map(|time| read(&alone, kind, *time)).collect();
        let fits = |model: &Model| {
            times
                .iter()
                .zip(&found)
                .all(|(time, found)| model.at(*time) == *found)
        };
        assert!(
            possible.iter().any(fits),
            "settled {is_settled}, at {times:?}: {found:?}\n  not {:?}\n{said}",
            possible
                .iter()
                .map(|m| times.iter().map(|t| m.at(*t)).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        );
        no_errors(&alone);
    }
    turns.switches()
}

/// What may have come of it. Writes and deletes by a condition have times of their own, so that their
/// order says nothing. A delete of fragments takes what lies within its time, unless it was merged
/// with others by then, or came later: each fragment wholly or not.
fn possible(
    base: &Model,
    work: &Work,
    results: &[Vec<Result<Option<String>>>],
    said: &str,
) -> Vec<Model> {
    let mut model = base.clone();
    let mut deleted = None;
    for (user, (changes, results)) in work.iter().zip(results).enumerate() {
        for (step, (change, result)) in changes.iter().zip(results).enumerate() {
            match (change, result) {
                (Change::Write { time, cells }, Ok(name)) => {
                    model.write(name.clone().unwrap(), *time, cells);
                }
                (Change::DeleteCells { time, rule }, Ok(_)) => model.deletes.push((*time, *rule)),
                (Change::DeleteFragments { start, end }, Ok(_)) => {
                    deleted = Some((user, step, *start, *end));
                }
                (_, Ok(_)) => {}
                // Who takes something away may be too late.
                (Change::Consolidate(_) | Change::DeleteFragments { .. }, Err(error)) => assert!(
                    matches!(error, Error::InvalidArgument(_) | Error::NotFound { .. }),
                    "{error}: {said}"
                ),
                (_, Err(error)) => panic!("{error}: {said}"),
            }
        }
    }
    let Some((user, step, start, end)) = deleted else {
        return vec![model];
    };
    let merges = work
        .iter()
        .flatten()
        .any(|change| matches!(change, Change::Consolidate(_)));
    // Written by the same user before, or by nobody of these.
    let own = work[user][..step].iter().filter_map(|change| match change {
        Change::Write { time, .. } => Some(*time),
        _ => None,
    });
    let own: Vec<u64> = own.collect();
    let (mut certain, mut open) = (Vec::new(), Vec::new());
    for (i, fragment) in model.fragments.iter().enumerate() {
        if start <= fragment.start && fragment.end <= end {
            let was_there = i < base.fragments.len() || own.contains(&fragment.start);
            let is_certain = was_there && !merges;
            if is_certain { &mut certain } else { &mut open }.push(i);
        }
    }
    for i in certain {
        model.fragments[i].is_gone = true;
    }
    let ways = 0..1u32 << open.len();
    let way = |way: u32| {
        let mut model = model.clone();
        for (bit, i) in open.iter().enumerate() {
            model.fragments[*i].is_gone |= way >> bit & 1 == 1;
        }
        model
    };
    ways.map(way).collect()
}

/// So many seeds, or as many as fit in so many seconds: `AZULEJO_SECONDS`; from `AZULEJO_SEED` on.
fn for_seeds(name: &str, usual: u64, play: impl Fn(u64) -> usize) {
    let number = |name: &str| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    let seconds = number("AZULEJO_SECONDS").map(Duration::from_secs);
    let first = number("AZULEJO_SEED").unwrap_or(1);
    let (begun, mut count, mut sum) = (Instant::now(), 0, 0);
    for seed in first.. {
        let is_enough = match seconds {
            Some(seconds) => begun.elapsed() >= seconds,
            None => count >= usual,
        };
        if is_enough {
            break;
        }
        sum += play(seed);
        count += 1;
    }
    let seconds = begun.elapsed().as_secs_f64();
    eprintln!("{name}: {count} seeds, {sum} switches, {seconds:.1} s");
}

fn in_order(kind: Kind) {
    for_seeds(&format!("{kind:?}"), 30, |seed| {
        one_after_another(kind, seed);
        0
    });
}

#[test]
fn changes_of_a_sparse_array() {
    in_order(Kind::Sparse);
}

#[test]
fn changes_of_an_array_with_duplicates() {
    in_order(Kind::Duplicates);
}

#[test]
fn changes_of_a_dense_array() {
    in_order(Kind::Dense);
}

#[test]
fn changes_at_once() {
    for kind in [Kind::Sparse, Kind::Duplicates, Kind::Dense] {
        for claims in [false, true] {
            let name = format!("{kind:?}, claims {claims}, at once");
            for_seeds(&name, 15, |seed| at_once(kind, claims, seed));
        }
    }
}
