//! Consolidation, vacuum and check: whatever is done to the files, every reader of every time sees
//! the same cells; so it is if the work stops at any operation.

mod support;

use azulejo::check::{self, CheckOptions, Fix, Severity};
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::consolidate::{Choice, FragmentOptions, Mode, VacuumOptions};
use azulejo::format::ArraySchema;
use azulejo::format::Range;
use azulejo::format::datatype::Datatype;
use azulejo::format::metadata::MetadataValue;
use azulejo::read::ReadOptions;
use azulejo::storage::{LocalStorage, MemoryStorage, Storage, StorePath};
use azulejo::write::WriteOptions;
use azulejo::{Config, Context, Error, TimeRange};
use std::sync::Arc;
use support::failing::{FailingStorage, Failure};
use support::often::every;

const URI: &str = "mem://array";

/// So little memory that the tiles of the fragments of [`history`] are merged some at a time.
const IN_PARTS: u64 = 1280;

/// What kind of array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sparse,
    Duplicates,
    Dense,
}

const KINDS: [Kind; 3] = [Kind::Sparse, Kind::Duplicates, Kind::Dense];

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn context(memory: &Arc<MemoryStorage>) -> Context {
    on(Arc::clone(memory) as Arc<dyn Storage>)
}

fn on(memory: Arc<dyn Storage>) -> Context {
    let config = Config::new().threads(1);
    Context::with_storages(config, None, Arc::new(LocalStorage::new()), memory).expect("a context")
}

fn copy(memory: &MemoryStorage) -> Arc<MemoryStorage> {
    let twin = MemoryStorage::new();
    let mut folders = vec![StorePath::memory("array")];
    while let Some(folder) = folders.pop() {
        twin.make_folder(&folder).expect("a folder");
        for entry in memory.list(&folder).expect("a list") {
            let path = folder.join(&entry.name);
            if entry.is_dir {
                folders.push(path);
                continue;
            }
            let request = azulejo::storage::ReadRequest {
                path: path.clone(),
                range: azulejo::storage::ReadRange::All,
            };
            let body = memory.read(&[request]).expect("bytes").remove(0);
            twin.put(&path, body).expect("a file");
        }
    }
    Arc::new(twin)
}

fn schema(kind: Kind) -> ArraySchema {
    let builder = if kind == Kind::Dense {
        ArraySchema::dense()
    } else {
        ArraySchema::sparse()
    };
    let builder = builder
        .dimension("x", 0i64..=17, 5)
        .dimension("y", -4i64..=13, 4)
        .attribute("a", Datatype::Int32)
        .var_attribute("s", Datatype::StringUtf8)
        .capacity(7);
    let builder = if kind == Kind::Duplicates {
        builder.allows_duplicates(true)
    } else {
        builder
    };
    builder.build().expect("a schema").schema
}

/// Writes some cells.
fn write(context: &Context, kind: Kind, dice: &mut Dice, time: u64) {
    let options = WriteOptions::new().timestamp(time);
    let (options, count, coordinates) = if kind == Kind::Dense {
        let mut span = |low: i64, high: i64| {
            let a = low + dice.roll((high - low + 1) as u64) as i64;
            (a, a + dice.roll((high - a + 1) as u64) as i64)
        };
        let (x, y) = (span(0, 17), span(-4, 13));
        let ranges = vec![Range::of(x.0, x.1), Range::of(y.0, y.1)];
        let count = (x.1 - x.0 + 1) * (y.1 - y.0 + 1);
        (
            options.subarray(azulejo::format::NdRectangle { ranges }),
            count,
            None,
        )
    } else {
        let mut places: Vec<(i64, i64)> = (0..1 + dice.roll(20))
            .map(|_| (dice.roll(18) as i64, dice.roll(18) as i64 - 4))
            .collect();
        places.sort_unstable();
        places.dedup();
        (options, places.len() as i64, Some(places))
    };
    let mut columns = vec![
        ColumnBuffers::of_values(
            "a",
            (0..count)
                .map(|_| dice.roll(100) as i32)
                .collect::<Vec<_>>(),
        ),
        ColumnBuffers::of_strings(
            "s",
            (0..count).map(|i| "s".repeat(dice.roll(4) as usize) + &format!("{time}-{i}")),
        ),
    ];
    if let Some(places) = coordinates {
        columns.push(ColumnBuffers::of_values(
            "x",
            places.iter().map(|p| p.0).collect::<Vec<_>>(),
        ));
        columns.push(ColumnBuffers::of_values(
            "y",
            places.iter().map(|p| p.1).collect::<Vec<_>>(),
        ));
    }
    let mut writer = context.array(URI).writer(options).expect("a writer");
    writer
        .write(&ColumnSet::of(columns).expect("columns"))
        .expect("cells are written");
    writer.finish().expect("they count");
}

/// An array with a history whose times have one to three digits, and the times worth looking at.
fn history(kind: Kind, seed: u64, writes: u64) -> (Arc<MemoryStorage>, Vec<u64>) {
    let memory = Arc::new(MemoryStorage::new());
    let context = context(&memory);
    let mut dice = Dice(seed);
    context
        .array(URI)
        .create_at(schema(kind), 1)
        .expect("it is made");
    let mut time = 2 + dice.roll(8);
    let mut times = vec![1];
    for _ in 0..writes {
        write(&context, kind, &mut dice, time);
        times.extend([time - 1, time]);
        if kind != Kind::Dense && dice.roll(3) == 0 {
            let text = format!("a < {}", dice.roll(40));
            let array = context.array(URI).open().expect("it opens");
            let condition = array.condition(&text).expect("a condition");
            let later = time + dice.roll(2);
            context
                .array(URI)
                .delete_cells(&condition, Some(later))
                .expect("cells are deleted");
            times.push(later);
            time = later;
        }
        time += 1 + dice.roll(40);
    }
    times.push(time);
    (memory, times)
}

/// The cells at a time, in an order that does not depend on how they are stored.
fn cells(memory: &Arc<MemoryStorage>, time: u64) -> Vec<String> {
    let array = context(memory)
        .array(URI)
        .open_at(TimeRange::until(time))
        .expect("it opens");
    let set = array
        .read(ReadOptions::new())
        .and_then(azulejo::Reader::read_all)
        .expect("it reads");
    let mut rows: Vec<String> = (0..set.cell_num)
        .map(|i| {
            set.columns
                .iter()
                .map(|c| format!("{:?};", c.view().cell(i)))
                .collect()
        })
        .collect();
    if !array.schema().is_dense() {
        rows.sort();
    }
    rows
}

fn all_cells(memory: &Arc<MemoryStorage>, times: &[u64]) -> Vec<Vec<String>> {
    times.iter().map(|time| cells(memory, *time)).collect()
}

fn options(dice: &mut Dice) -> FragmentOptions {
    let mut options = FragmentOptions::new().memory_budget(1 << (17 + dice.roll(8)));
    match dice.roll(4) {
        0 => {
            options.choice = Choice::new().fragments(2, 2 + dice.roll(3) as u32);
        }
        1 => options.max_fragment_size = Some(500 + dice.roll(2000)),
        2 => {
            options.time = TimeRange {
                start: dice.roll(60),
                end: 60 + dice.roll(200),
            }
        }
        _ => {}
    }
    options.choice.amplification = 1000.0;
    options
}

/// Fails the test if something is wrong with an array, leftovers of replaced fragments apart.
fn is_sound(memory: &Arc<MemoryStorage>) {
    let report = context(memory)
        .array(URI)
        .check(CheckOptions::new().deep(true))
        .expect("a report");
    let bad: Vec<_> = report
        .findings
        .iter()
        .filter(|f| f.severity > Severity::Note)
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn no_reader_of_any_time_sees_a_consolidation() {
    let mut merged = 0;
    for seed in 0..14 {
        for kind in KINDS {
            let (memory, times) = history(kind, seed, 2 + seed % 7);
            let context = context(&memory);
            let before = all_cells(&memory, &times);
            let options = options(&mut Dice(seed + 99));
            let rounds = context
                .array(URI)
                .consolidate(&options)
                .expect("it is consolidated");
            merged += rounds.len();
            let what = format!("{kind:?}, seed {seed}, {options:?}");
            assert_eq!(all_cells(&memory, &times), before, "{what}");
            is_sound(&memory);
            context.array(URI).consolidate_commits().expect("commits");
            context
                .array(URI)
                .consolidate_fragment_metadata()
                .expect("fragment metadata");
            assert_eq!(all_cells(&memory, &times), before, "{what}");
            let dry = context
                .array(URI)
                .vacuum(Mode::Fragments, VacuumOptions::new().dry_run(true));
            assert_eq!(all_cells(&memory, &times), before, "{what}");
            let wet = context
                .array(URI)
                .vacuum(Mode::Fragments, VacuumOptions::default());
            let (dry, wet) = (dry.expect("a dry run"), wet.expect("a vacuum"));
            assert_eq!(
                (&dry.files, &dry.folders),
                (&wet.files, &wet.folders),
                "{what}"
            );
            for mode in [Mode::Commits, Mode::FragmentMetadata, Mode::ArrayMetadata] {
                context
                    .array(URI)
                    .vacuum(mode, VacuumOptions::default())
                    .expect("a vacuum");
            }
            // The past of a dense array goes with its fragments.
            let from = if kind == Kind::Dense {
                times.len() - 1
            } else {
                0
            };
            assert_eq!(
                all_cells(&memory, &times[from..]),
                before[from..],
                "{what}, vacuumed"
            );
            is_sound(&memory);
        }
    }
    assert!(merged > 25, "only {merged} rounds");
}

#[test]
fn purging_leaves_out_what_is_deleted_now() {
    for seed in 0..10 {
        for kind in [Kind::Sparse, Kind::Duplicates] {
            let (memory, times) = history(kind, seed, 5);
            let now = times[times.len() - 1];
            let before = cells(&memory, now);
            let options = FragmentOptions::new().purge_deleted_cells(true);
            let rounds = context(&memory)
                .array(URI)
                .consolidate(&options)
                .expect("it is consolidated");
            assert_eq!(cells(&memory, now), before, "{kind:?}, seed {seed}");
            context(&memory)
                .array(URI)
                .vacuum(Mode::Fragments, VacuumOptions::default())
                .expect("a vacuum");
            assert_eq!(cells(&memory, now), before, "{kind:?}, seed {seed}");
            if kind == Kind::Duplicates && !rounds[0].new.is_empty() {
                let array = context(&memory).array(URI).open().expect("it opens");
                let stored: u64 = array
                    .fragments()
                    .iter()
                    .map(azulejo::array::Fragment::cell_num)
                    .sum();
                assert_eq!(stored, before.len() as u64, "only what is left is stored");
            }
        }
    }
}

#[test]
fn many_small_fragments_take_little_memory() {
    let memory = Arc::new(MemoryStorage::new());
    let context = context(&memory);
    context
        .array(URI)
        .create_at(schema(Kind::Sparse), 1)
        .expect("it is made");
    let mut dice = Dice(5);
    for time in 2..150 {
        write(&context, Kind::Sparse, &mut dice, time);
    }
    let before = cells(&memory, 1000);
    let options = FragmentOptions::new().memory_budget(8 << 10);
    let rounds = context
        .array(URI)
        .consolidate(&options)
        .expect("it is consolidated");
    // In parts, each fragment of which is what the next ones begin with.
    assert!(rounds.len() > 2, "{} parts", rounds.len());
    assert!(rounds.iter().all(|part| part.new.len() == 1));
    let old: usize = rounds.iter().map(|part| part.old.len()).sum();
    assert_eq!(old, 148 + rounds.len() - 1);
    assert_eq!(open_fragments(&memory), 1);
    assert_eq!(cells(&memory, 1000), before);
    is_sound(&memory);
}

fn open_fragments(memory: &Arc<MemoryStorage>) -> usize {
    let array = context(memory).array(URI).open().expect("it opens");
    array.fragments().len()
}

#[test]
fn rounds_in_parts_are_like_rounds_at_once() {
    let mut parts = 0;
    for seed in 0..8 {
        for kind in [Kind::Sparse, Kind::Duplicates] {
            let (memory, times) = history(kind, seed, 16 + seed);
            let before = all_cells(&memory, &times);
            let mut options = FragmentOptions::new().memory_budget(IN_PARTS);
            let names: Vec<String> = {
                let array = context(&memory).array(URI).open().expect("it opens");
                let fragments = array.fragments().iter();
                fragments.map(|f| f.name().to_owned()).collect()
            };
            let mut left = 1;
            match seed % 4 {
                // The first one stays.
                1 => {
                    options = options.fragments(names[1..].to_vec());
                    left = 2;
                }
                2 => options.choice = Choice::new().steps(1),
                3 => options = options.max_fragment_size(600),
                _ => {}
            }
            let handle = context(&memory).array(URI);
            let rounds = handle.consolidate(&options).expect("it is consolidated");
            let what = format!("{kind:?}, seed {seed}: {rounds:?}");
            parts += rounds.len() - 1;
            let (last, first) = rounds.split_last().expect("a round");
            assert!(first.iter().all(|part| part.new.len() == 1), "{what}");
            if seed % 4 == 3 {
                assert!(last.new.len() > 1, "{what}");
                left = last.new.len();
            }
            assert_eq!(open_fragments(&memory), left, "{what}");
            assert_eq!(all_cells(&memory, &times), before, "{what}");
            is_sound(&memory);
            let vacuum = handle.vacuum(Mode::Fragments, VacuumOptions::default());
            vacuum.expect("a vacuum");
            assert_eq!(all_cells(&memory, &times), before, "{what}, vacuumed");
            is_sound(&memory);
        }
    }
    assert!(parts > 16, "only {parts} parts");
}

#[test]
fn purging_in_parts_leaves_out_what_is_deleted_now() {
    for kind in [Kind::Sparse, Kind::Duplicates] {
        let (memory, times) = history(kind, 4, 16);
        let now = times[times.len() - 1];
        let before = cells(&memory, now);
        let options = FragmentOptions::new()
            .purge_deleted_cells(true)
            .memory_budget(IN_PARTS);
        let rounds = context(&memory).array(URI).consolidate(&options);
        assert!(rounds.expect("it is consolidated").len() > 1);
        assert_eq!(cells(&memory, now), before, "{kind:?}");
        let array = context(&memory).array(URI).open().expect("it opens");
        let stored: u64 = (array.fragments().iter())
            .map(azulejo::array::Fragment::cell_num)
            .sum();
        let most = before.len() as u64;
        match kind {
            Kind::Duplicates => assert_eq!(stored, most, "only what is left is stored"),
            // And what was written over.
            _ => assert!(stored >= most),
        }
        is_sound(&memory);
    }
}

#[test]
fn purging_some_fragments_brings_back_no_cells_of_others() {
    for seed in 0..10 {
        let (memory, times) = history(Kind::Sparse, seed, 9);
        let now = times[times.len() - 1];
        let before = cells(&memory, now);
        let handle = context(&memory).array(URI);
        let mut options = FragmentOptions::new().purge_deleted_cells(true);
        options.choice = Choice::new().fragments(2, 3);
        handle.consolidate(&options).expect("it is consolidated");
        assert_eq!(cells(&memory, now), before, "seed {seed}");
        is_sound(&memory);
    }
    let (memory, times) = history(Kind::Sparse, 4, 16);
    let before = cells(&memory, times[times.len() - 1]);
    let array = context(&memory).array(URI).open().expect("it opens");
    let later = array
        .fragments()
        .iter()
        .skip(3)
        .map(|f| f.name().to_owned());
    let options = FragmentOptions::new()
        .purge_deleted_cells(true)
        .fragments(later);
    let refused = context(&memory).array(URI).consolidate(&options);
    let said = refused.expect_err("older ones are left out").to_string();
    assert!(said.contains("would come back"), "{said}");
    assert_eq!(cells(&memory, times[times.len() - 1]), before);
}

#[test]
fn a_round_in_parts_that_crashes_leaves_the_array_as_it_was() {
    // The little memory that makes parts makes many operations.
    let (memory, times) = history(Kind::Sparse, 5, 10);
    let options = FragmentOptions::new().memory_budget(IN_PARTS);
    let twin = copy(&memory);
    let rounds = context(&twin).array(URI).consolidate(&options);
    assert!(rounds.expect("it is consolidated").len() > 1);
    let work = |context: &Context| context.array(URI).consolidate(&options).map(drop);
    stopped(every(31), "a round in parts", &memory, &times, &work);
}

/// Stops `work` at one operation of `every`; afterwards the cells at all `times` must be those of before.
fn stopped(
    every: usize,
    what: &str,
    array: &Arc<MemoryStorage>,
    times: &[u64],
    work: &dyn Fn(&Context) -> azulejo::Result<()>,
) {
    let before = all_cells(array, times);
    let mut stops = 0;
    for after in (0..).step_by(every) {
        let memory = copy(array);
        let storage = FailingStorage::new(
            Arc::clone(&memory) as Arc<dyn Storage>,
            after,
            Failure::Crash,
        );
        let result = work(&on(Arc::new(storage.clone())));
        assert_eq!(
            all_cells(&memory, times),
            before,
            "{what}: stopped at operation {after}"
        );
        if !storage.has_failed() {
            result.expect("nothing failed");
            break;
        }
        stops += 1;
        // What is left is found, can be removed, and is in nobody's way.
        let context = context(&memory);
        let report = context
            .array(URI)
            .check(CheckOptions::default())
            .expect("a report");
        assert!(
            report.worst() < Some(Severity::Error),
            "{what}, operation {after}: {:#?}",
            report.findings
        );
        if after % 2 == 0 {
            let repaired = context.array(URI).repair(&report).expect("a repair");
            assert_eq!(repaired.changed, []);
            assert_eq!(
                all_cells(&memory, times),
                before,
                "{what}: repaired after operation {after}"
            );
            let again = context
                .array(URI)
                .check(CheckOptions::default())
                .expect("a report");
            assert!(
                again.worst() <= Some(Severity::Note),
                "{what}, operation {after}: {:#?}",
                again.findings
            );
        }
        work(&context).expect("the next time it works");
        assert_eq!(
            all_cells(&memory, times),
            before,
            "{what}: done again after operation {after}"
        );
    }
    assert!(stops > 0, "{what} does nothing");
}

#[test]
fn maintenance_that_crashes_leaves_the_array_as_it_was() {
    for kind in KINDS {
        let (memory, times) = history(kind, 3, 4);
        let fragments = |context: &Context| {
            let mut options = FragmentOptions::default();
            options.choice.amplification = 1000.0;
            context.array(URI).consolidate(&options).map(drop)
        };
        stopped(1, "fragments", &memory, &times, &fragments);
        let vacuum = |mode| {
            move |context: &Context| {
                context
                    .array(URI)
                    .vacuum(mode, VacuumOptions::default())
                    .map(drop)
            }
        };
        let commits = |context: &Context| context.array(URI).consolidate_commits().map(drop);
        stopped(1, "commits", &memory, &times, &commits);
        commits(&context(&memory)).expect("commits");
        fragments(&context(&memory)).expect("fragments");
        commits(&context(&memory)).expect("commits");
        context(&memory)
            .array(URI)
            .consolidate_fragment_metadata()
            .expect("footers");
        stopped(
            1,
            "vacuum of commits",
            &memory,
            &times,
            &vacuum(Mode::Commits),
        );
        vacuum(Mode::Commits)(&context(&memory)).expect("a vacuum");
        let now = &times[times.len() - 1..];
        stopped(
            1,
            "vacuum of fragments",
            &memory,
            now,
            &vacuum(Mode::Fragments),
        );
    }
}

#[test]
fn a_split_consolidation_that_crashes_shows_no_cell_twice() {
    let (memory, times) = history(Kind::Duplicates, 8, 6);
    let options = FragmentOptions::new().max_fragment_size(Some(300));
    let split = |context: &Context| context.array(URI).consolidate(&options).map(drop);
    let twin = copy(&memory);
    let rounds = context(&twin)
        .array(URI)
        .consolidate(&options)
        .expect("it is consolidated");
    assert!(rounds[0].new.len() > 1, "{rounds:?}");
    stopped(every(7), "a split result", &memory, &times, &split);
}

#[test]
fn key_values_are_summed_up() {
    let memory = Arc::new(MemoryStorage::new());
    let context = context(&memory);
    context
        .array(URI)
        .create(schema(Kind::Sparse))
        .expect("it is made");
    for i in 0..4u8 {
        let value = MetadataValue::new(Datatype::UInt8, vec![i]);
        context
            .array(URI)
            .change_metadata()
            .expect("a value")
            .put(format!("k{}", i % 2), value)
            .expect("a value")
            .commit()
            .expect("a value");
    }
    context
        .array(URI)
        .change_metadata()
        .expect("it goes")
        .remove("k0")
        .commit()
        .expect("it goes");
    let metadata = |memory: &Arc<MemoryStorage>| {
        self::context(memory)
            .array(URI)
            .open()
            .and_then(|a| a.metadata().cloned())
            .expect("key-values")
    };
    let before = metadata(&memory);
    assert_eq!(before.len(), 1);
    let work = |context: &Context| {
        context.array(URI).consolidate_metadata(TimeRange::ALL)?;
        context
            .array(URI)
            .vacuum(Mode::ArrayMetadata, VacuumOptions::default())
            .map(drop)
    };
    for after in 0.. {
        let twin = copy(&memory);
        let storage =
            FailingStorage::new(Arc::clone(&twin) as Arc<dyn Storage>, after, Failure::Crash);
        let done = work(&on(Arc::new(storage.clone()))).is_ok();
        assert_eq!(metadata(&twin), before, "stopped at operation {after}");
        work(&self::context(&twin)).expect("the next time it works");
        assert_eq!(metadata(&twin), before);
        if done {
            break;
        }
    }
    work(&context).expect("it works");
    assert_eq!(
        memory
            .list(&StorePath::memory("array/__meta"))
            .expect("a list")
            .len(),
        1
    );
    assert_eq!(
        context
            .array(URI)
            .consolidate_metadata(TimeRange::ALL)
            .expect("nothing to do"),
        None
    );
}

#[test]
fn a_plan_puts_overlapping_fragments_together() {
    let (memory, _) = history(Kind::Sparse, 1, 6);
    let array = context(&memory).array(URI).open().expect("it opens");
    let plan = array.consolidation_plan(1 << 20).expect("a plan");
    assert_eq!(plan.nodes.iter().map(Vec::len).sum::<usize>(), 6);
    let options = FragmentOptions::new().fragments(plan.nodes[0].clone());
    let rounds = context(&memory)
        .array(URI)
        .consolidate(&options)
        .expect("it is consolidated");
    assert_eq!(rounds[0].old.len(), plan.nodes[0].len());
    let gone = context(&memory).array(URI).consolidate(&options);
    assert!(
        matches!(gone, Err(Error::InvalidArgument(_))),
        "they are replaced: {gone:?}"
    );
}

#[test]
fn a_plan_of_an_earlier_time_names_the_fragments_of_that_time() {
    let memory = Arc::new(MemoryStorage::new());
    let context = context(&memory);
    let array = context.array(URI);
    array
        .create_at(schema(Kind::Sparse), 1)
        .expect("it is made");
    let write = |time| {
        let cells = ColumnSet::of([
            ColumnBuffers::of_values("x", vec![3i64]),
            ColumnBuffers::of_values("y", vec![4i64]),
            ColumnBuffers::of_values("a", vec![time as i32]),
            ColumnBuffers::of_strings("s", ["text"]),
        ]);
        let options = WriteOptions::new().timestamp(time);
        let mut writer = context.array(URI).writer(options).expect("a writer");
        writer.write(&cells.expect("columns")).expect("cells");
        writer.finish().expect("they count");
    };
    write(2);
    write(5);
    let all = FragmentOptions::new().choice(Choice::new().amplification(100.0));
    assert_eq!(array.consolidate(&all).expect("a fragment").len(), 1);
    let vacuumed = array.vacuum(Mode::Fragments, VacuumOptions::default());
    vacuumed.expect("it is vacuumed");
    // Late ones, between those that were merged.
    write(3);
    write(4);
    let then = array.open_at(TimeRange::until(4)).expect("it opens");
    let plan = then.consolidation_plan(1 << 20).expect("a plan");
    let times = |name: &String| name.split('_').nth(2).map(str::to_owned);
    let planned: Vec<_> = plan.nodes.iter().flatten().filter_map(times).collect();
    assert_eq!(planned, ["3", "4"], "{plan:?}");
}

#[test]
fn a_dense_choice_must_not_hide_what_lies_between() {
    let memory = Arc::new(MemoryStorage::new());
    let context = context(&memory);
    context
        .array(URI)
        .create_at(schema(Kind::Dense), 1)
        .expect("it is made");
    let mut dice = Dice(1);
    for time in [2, 3, 4] {
        let ranges = vec![Range::of(0i64, 17), Range::of(-4i64, 13)];
        let options = WriteOptions::new()
            .timestamp(time)
            .subarray(azulejo::format::NdRectangle { ranges });
        let values: Vec<i32> = (0..18 * 18).map(|_| dice.roll(100) as i32).collect();
        let texts = ColumnBuffers::of_strings("s", values.iter().map(i32::to_string));
        let set = ColumnSet::of([ColumnBuffers::of_values("a", values), texts]).expect("columns");
        let mut writer = context.array(URI).writer(options).expect("a writer");
        writer.write(&set).expect("cells");
        writer.finish().expect("they count");
    }
    let array = context.array(URI).open().expect("it opens");
    let name = |i: usize| array.fragments()[i].name().to_owned();
    let choose = |fragments| FragmentOptions::new().fragments(fragments);
    for chosen in [vec![name(0), name(2)], vec![name(1), name(2)]] {
        let refused = context.array(URI).consolidate(&choose(chosen));
        assert!(
            matches!(refused, Err(Error::InvalidArgument(_))),
            "{refused:?}"
        );
    }
    context
        .array(URI)
        .consolidate(&choose(vec![name(0), name(1)]))
        .expect("the first two are free");
}

#[test]
fn check_tells_what_is_wrong_and_mends_only_what_is_dead() {
    let (memory, times) = history(Kind::Sparse, 2, 3);
    let context = context(&memory);
    is_sound(&memory);
    let before = all_cells(&memory, &times);
    let root = StorePath::memory("array");
    let bytes = bytes::Bytes::from_static(b"x");
    // What a crash leaves, and strangers.
    let orphan = root.join("__fragments/__9_9_0123456789abcdef0123456789abcdef_22");
    for path in [
        orphan.join("a0.tdb"),
        root.join(".azulejo-0123456789abcdef0123456789abcdef.tmp"),
        root.join("notes.txt"),
        root.join("__schema/.DS_Store"),
    ] {
        memory.put(&path, bytes.clone()).expect("a file");
    }
    let report = context
        .array(URI)
        .check(CheckOptions::default())
        .expect("a report");
    let mends = |f: &&check::Finding| matches!(f.fix, Fix::Remove(_) | Fix::Uncommitted { .. });
    assert_eq!(report.findings.len(), 4, "{:#?}", report.findings);
    assert_eq!(report.findings.iter().filter(mends).count(), 2);
    assert_eq!(report.worst(), Some(Severity::Warning));
    context.array(URI).repair(&report).expect("a repair");
    assert_eq!(memory.list(&orphan).expect("a list"), []);
    assert_eq!(memory.size(&root.join("notes.txt")).expect("it stays"), 1);
    assert_eq!(all_cells(&memory, &times), before);

    // Damage in every file of a fragment is found, and nothing is done about it.
    let fragment = context.array(URI).open().expect("it opens").fragments()[0]
        .location()
        .path
        .clone();
    for entry in memory.list(&fragment).expect("a list") {
        for cut in [true, false] {
            let twin = copy(&memory);
            let path = fragment.join(&entry.name);
            match cut {
                true => twin.delete(std::slice::from_ref(&path)).expect("it goes"),
                false => twin.put(&path, bytes.clone()).expect("it is cut"),
            }
            let context = self::context(&twin);
            let report = context
                .array(URI)
                .check(CheckOptions::new().deep(true))
                .expect("a report");
            let found = |f: &check::Finding| {
                f.severity == Severity::Error && f.path == path && matches!(f.fix, Fix::Advice(_))
            };
            assert!(
                report.findings.iter().any(found),
                "{path}: {:#?}",
                report.findings
            );
            context.array(URI).repair(&report).expect("a repair");
            assert!(!twin.list(&fragment).expect("a list").is_empty());
        }
    }
}

#[test]
fn maintenance_of_what_is_no_array_says_so() {
    let memory = Arc::new(MemoryStorage::new());
    let context = context(&memory);
    assert!(matches!(
        context.array(URI).consolidate_commits(),
        Err(Error::NotFound { .. })
    ));
    let options = FragmentOptions::default();
    assert!(matches!(
        context.array(URI).consolidate(&options),
        Err(Error::NotFound { .. })
    ));
    for mode in Mode::ALL {
        let vacuumed = context.array(URI).vacuum(mode, VacuumOptions::default());
        assert!(matches!(vacuumed, Err(Error::NotFound { .. })), "{mode:?}");
    }
    let checked = context.array(URI).check(CheckOptions::default());
    assert!(matches!(checked, Err(Error::NotFound { .. })));
}

#[test]
fn strings_along_a_dimension_need_no_more_memory() {
    let memory = Arc::new(MemoryStorage::new());
    let context = context(&memory);
    let schema = ArraySchema::sparse()
        .string_dimension("s")
        .attribute("a", Datatype::Int32)
        .capacity(16)
        .build()
        .expect("a schema");
    context.array(URI).create_at(schema, 1).expect("it is made");
    let mut dice = Dice(9);
    for time in 2..62 {
        let mut names: Vec<String> = (0..30)
            .map(|_| format!("name {:03}", dice.roll(400)))
            .collect();
        names.sort();
        names.dedup();
        let values = ColumnBuffers::of_values(
            "a",
            names
                .iter()
                .map(|_| dice.roll(100) as i32)
                .collect::<Vec<_>>(),
        );
        let set = ColumnSet::of([ColumnBuffers::of_strings("s", &names), values]).expect("columns");
        let mut writer = context
            .array(URI)
            .writer(WriteOptions::new().timestamp(time))
            .expect("a writer");
        writer.write(&set).expect("cells");
        writer.finish().expect("they count");
    }
    let times = [2, 30, 61];
    let before = all_cells(&memory, &times);
    let options = FragmentOptions::new().memory_budget(48 << 10);
    context
        .array(URI)
        .consolidate(&options)
        .expect("it is consolidated");
    assert_eq!(all_cells(&memory, &times), before);
    is_sound(&memory);
}
