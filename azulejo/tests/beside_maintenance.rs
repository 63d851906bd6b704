//! Readers and late writes beside maintenance: one of the two stands still before each of its
//! storage calls in turn, while the other runs from start to end.
//!
//! A reader that finds gone what it was about to read begins again by itself, and finds what there
//! was at some moment between its start and its end. A consolidation changes nothing that is seen,
//! whatever is committed while it merges.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]

mod support;

use azulejo::check::{CheckOptions, Severity};
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::{Choice, FragmentOptions, Mode, VacuumOptions};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{Attribute, SchemaEvolution};
use azulejo::format::{ArraySchema, CellValNum, Datatype, NdRectangle, Range};
use azulejo::group::{NewMember, ObjectType};
use azulejo::read::ReadOptions;
use azulejo::read::aggregate::Aggregate;
use azulejo::storage::{MemoryStorage, Storage};
use azulejo::write::WriteOptions;
use azulejo::{Context, Result, Subarray, TimeRange};
use std::sync::Arc;
use support::contexts::of_one_thread as context;
use support::stepped::{Gate, Role, SteppedStorage};

const URI: &str = "mem://array";

/// What an array is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sparse,
    Duplicates,
    Dense,
}

const KINDS: [Kind; 3] = [Kind::Sparse, Kind::Duplicates, Kind::Dense];

fn create(context: &Context, kind: Kind) {
    let schema = match kind {
        Kind::Dense => ArraySchema::dense(),
        _ => ArraySchema::sparse().allows_duplicates(kind == Kind::Duplicates),
    };
    let schema = schema
        .dimension("x", 0i64..=29, 10)
        .attribute("a", Datatype::Int64);
    context
        .array(URI)
        .create_at(schema.build().unwrap(), 1)
        .unwrap();
}

/// Cells from `from` to `to`, all of value `a`.
fn write(context: &Context, kind: Kind, (from, to): (i64, i64), a: i64, time: u64) {
    let x: Vec<i64> = (from..=to).collect();
    let mut options = WriteOptions::new().timestamp(time);
    let mut columns = vec![ColumnBuffers::of_values("a", vec![a; x.len()])];
    if kind == Kind::Dense {
        let ranges = vec![Range::of(from, to)];
        options = options.subarray(NdRectangle { ranges });
    } else {
        columns.push(ColumnBuffers::of_values("x", x));
    }
    let mut writer = context.array(URI).writer(options).unwrap();
    let extra = writer.schema().attributes.len() > 1;
    if extra {
        let cells = (to - from + 1) as usize;
        columns.push(ColumnBuffers::of_values("b", vec![0u8; cells]));
    }
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    writer.finish().unwrap();
}

fn put(context: &Context, key: &str, time: u64) {
    let mut writer = context.array(URI).change_metadata().unwrap().at(time);
    let value = MetadataValue::new(Datatype::Int8, [1]);
    writer.put(key, value).unwrap();
    writer.commit().unwrap();
}

fn delete_cells(context: &Context, kind: Kind, x: i64) {
    if kind != Kind::Dense {
        let condition = Condition::compare("x", Comparison::Eq, x.to_le_bytes());
        context.array(URI).delete_cells(&condition, None).unwrap();
    }
}

fn evolve(context: &Context) {
    let evolution = SchemaEvolution {
        add_attributes: vec![Attribute::new("b", Datatype::UInt8, CellValNum::ONE)],
        ..SchemaEvolution::default()
    };
    context.array(URI).evolve(&evolution, Some(35)).unwrap();
}

/// All that there is of it becomes one, and what was there before goes.
fn merge_and_vacuum(context: &Context) {
    let array = context.array(URI);
    array.consolidate(&FragmentOptions::new()).unwrap();
    array.consolidate_commits().unwrap();
    array.consolidate_fragment_metadata().unwrap();
    array.consolidate_metadata(TimeRange::ALL).unwrap();
    for mode in [
        Mode::Fragments,
        Mode::Commits,
        Mode::FragmentMetadata,
        Mode::ArrayMetadata,
    ] {
        array.vacuum(mode, VacuumOptions::default()).unwrap();
    }
}

/// What comes in a reader's way, in its order.
const STEPS: [fn(&Context, Kind); 4] = [
    |context, kind| {
        write(context, kind, (5, 9), 4, 40);
        put(context, "later", 40);
    },
    |context, kind| delete_cells(context, kind, 2),
    |context, _| merge_and_vacuum(context),
    |context, kind| {
        delete_cells(context, kind, 3);
        merge_and_vacuum(context);
    },
];

/// The same where the schema gets an attribute meanwhile.
const EVOLVING: [fn(&Context, Kind); 2] = [
    |context, _| evolve(context),
    |context, kind| {
        write(context, kind, (5, 9), 4, 40);
        merge_and_vacuum(context);
    },
];

/// Fragments, key-values, and deletes that lie in files of their own and in a merged one.
fn prepare(context: &Context, kind: Kind) {
    create(context, kind);
    for (a, range) in [(1, (0, 9)), (2, (3, 7)), (3, (10, 29))] {
        write(context, kind, range, a, a as u64 * 10);
        put(context, &format!("k{a}"), a as u64 * 10);
    }
    delete_cells(context, kind, 0);
    context.array(URI).consolidate_commits().unwrap();
    delete_cells(context, kind, 1);
}

type Reading = (&'static str, fn(&Context) -> Result<String>);

const READINGS: &[Reading] = &[
    ("all at once", |context| {
        let array = context.array(URI).open()?;
        let cells = array.read(ReadOptions::new().fields(["a"]))?.read_all()?;
        Ok(format!("{:?}", sorted(&cells)))
    }),
    ("fragments looked at later", |context| {
        let array = context.array(URI).snapshot()?.array_to_read()?;
        let cells = array.read(ReadOptions::new().fields(["a"]))?.read_all()?;
        Ok(format!("{:?}", sorted(&cells)))
    }),
    ("batches", |context| {
        let array = context.array(URI).open()?;
        let options = ReadOptions::new().fields(["a"]).memory_budget(1 << 20);
        let mut all = Vec::new();
        for batch in array.read(options)? {
            all.extend(sorted(&batch?));
        }
        all.sort_unstable();
        Ok(format!("{all:?}"))
    }),
    ("aggregates", |context| {
        let array = context.array(URI).open()?;
        let wanted = [
            Aggregate::Count,
            Aggregate::Sum("a".into()),
            Aggregate::Max("a".into()),
        ];
        let values = array.aggregate(ReadOptions::new(), &wanted)?;
        Ok(format!("{values:?}"))
    }),
    ("a division", |context| {
        let array = context.array(URI).open()?;
        array.split(&Subarray::all(), 3).map(|_| String::new())
    }),
    ("key-values", |context| {
        let array = context.array(URI).open()?;
        let keys = array.metadata()?.keys();
        Ok(format!("{:?}", keys.collect::<Vec<_>>()))
    }),
    ("an own look at key-values", |context| {
        let snapshot = context.array(URI).snapshot()?;
        let keys = snapshot.metadata()?.keys();
        Ok(format!("{:?}", keys.collect::<Vec<_>>()))
    }),
];

fn sorted(cells: &ColumnSet) -> Vec<i64> {
    let mut values = cells.column("a").unwrap().values::<i64>().unwrap().to_vec();
    values.sort_unstable();
    values
}

/// Runs `first` up to its call `stop_at`, then `second`, then the rest of `first`; `None` if it has
/// not so many calls.
fn interleaved<T: Send, S>(
    memory: &Arc<MemoryStorage>,
    stop_at: usize,
    first: impl FnOnce(&Context) -> T + Send,
    second: impl FnOnce(&Context) -> S,
) -> Option<(T, S)> {
    let gate = Gate::new(stop_at);
    let view = |role| {
        let inner: Arc<dyn Storage> = Arc::clone(memory) as _;
        context(Arc::new(SteppedStorage::new(inner, &gate, role)))
    };
    let (view_first, view_second) = (view(Role::First), view(Role::Second));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let result = first(&view_first);
            gate.end();
            result
        });
        if !gate.wait_until_stopped() {
            running.join().unwrap();
            return None;
        }
        let second = second(&view_second);
        gate.release();
        Some((running.join().unwrap(), second))
    })
}

fn plain(memory: &Arc<MemoryStorage>) -> Context {
    context(Arc::clone(memory) as Arc<dyn Storage>)
}

fn readers_beside(steps: &[fn(&Context, Kind)]) {
    let mut runs = 0;
    for kind in KINDS {
        for (name, read) in READINGS {
            // What there is at each moment.
            let memory = Arc::new(MemoryStorage::new());
            prepare(&plain(&memory), kind);
            let mut moments = vec![read(&plain(&memory)).unwrap()];
            for step in steps {
                step(&plain(&memory), kind);
                moments.push(read(&plain(&memory)).unwrap());
            }
            for stop_at in 0.. {
                let memory = Arc::new(MemoryStorage::new());
                prepare(&plain(&memory), kind);
                let all = |context: &Context| steps.iter().for_each(|step| step(context, kind));
                let Some((found, ())) = interleaved(&memory, stop_at, read, all) else {
                    break;
                };
                runs += 1;
                let found = found.unwrap_or_else(|e| format!("error: {e}"));
                assert!(
                    moments.contains(&found),
                    "{kind:?}, {name} stopped at {stop_at}: {found}, not one of {moments:#?}"
                );
            }
        }
    }
    assert!(runs > 60, "{runs}");
}

#[test]
fn readers_beside_all_that_removes() {
    readers_beside(&STEPS);
}

#[test]
fn readers_beside_an_evolution_and_what_removes() {
    readers_beside(&EVOLVING);
}

/// Nothing that a vacuum removes is missing to a check that began before.
#[test]
fn a_check_beside_a_vacuum_finds_no_errors() {
    let mut runs = 0;
    for kind in KINDS {
        for stop_at in 0.. {
            let memory = Arc::new(MemoryStorage::new());
            prepare(&plain(&memory), kind);
            let check = |context: &Context| context.array(URI).check(CheckOptions::default());
            let all = |context: &Context| STEPS.iter().for_each(|step| step(context, kind));
            let Some((report, ())) = interleaved(&memory, stop_at, check, all) else {
                break;
            };
            runs += 1;
            let errors = report.unwrap().findings;
            let errors = errors.iter().filter(|f| f.severity == Severity::Error);
            let errors: Vec<_> = errors.collect();
            assert!(
                errors.is_empty(),
                "{kind:?} stopped at {stop_at}: {errors:#?}"
            );
        }
    }
    assert!(runs > 30, "{runs}");
}

#[test]
fn readers_of_a_group_beside_its_vacuum() {
    let add = |context: &Context, name: &str| {
        let mut editor = context.group(URI).edit().unwrap();
        let member = NewMember::at(format!("mem://elsewhere/{name}")).named(name);
        editor.add(member.typed(ObjectType::Array)).unwrap();
        editor.commit().unwrap();
    };
    let put = |context: &Context, key: &str| {
        let mut writer = context.group(URI).change_metadata().unwrap();
        let value = MetadataValue::new(Datatype::Int8, [1]);
        writer.put(key, value).unwrap();
        writer.commit().unwrap();
    };
    let look = |context: &Context| -> Result<String> {
        let group = context.group(URI).open()?;
        let members: Vec<_> = group.members().iter().map(|m| m.name.clone()).collect();
        let keys: Vec<_> = group.metadata()?.keys().cloned().collect();
        Ok(format!("{members:?} {keys:?}"))
    };
    let mut runs = 0;
    for stop_at in 0.. {
        let memory = Arc::new(MemoryStorage::new());
        let before = plain(&memory);
        before.group(URI).create().unwrap();
        add(&before, "a");
        ["k", "l"].iter().for_each(|key| put(&before, key));
        let merge = |context: &Context| {
            let group = context.group(URI);
            group.consolidate_metadata(TimeRange::ALL).unwrap();
            group.vacuum_metadata(VacuumOptions::default()).unwrap();
        };
        let Some((seen, ())) = interleaved(&memory, stop_at, look, merge) else {
            break;
        };
        runs += 1;
        assert_eq!(seen.unwrap(), look(&before).unwrap(), "at {stop_at}");
    }
    assert!(runs > 4, "{runs}");
}

/// What was written before, and a write that began before the last of it and is committed later.
struct Late {
    kind: Kind,
    before: &'static [((i64, i64), u64)],
    late: ((i64, i64), u64),
}

const LATE: &[Late] = &[
    // Beneath what was written later, above what was written before.
    Late {
        kind: Kind::Dense,
        before: &[((0, 29), 10), ((0, 14), 20)],
        late: ((10, 19), 15),
    },
    // In a gap of the box, which is filled.
    Late {
        kind: Kind::Dense,
        before: &[((0, 9), 10), ((20, 29), 20)],
        late: ((10, 19), 15),
    },
    // The same, written before all others.
    Late {
        kind: Kind::Dense,
        before: &[((0, 9), 10), ((20, 29), 20)],
        late: ((5, 19), 5),
    },
    Late {
        kind: Kind::Sparse,
        before: &[((0, 9), 10), ((5, 14), 20)],
        late: ((3, 12), 15),
    },
    Late {
        kind: Kind::Duplicates,
        before: &[((0, 9), 10), ((5, 14), 20)],
        late: ((3, 12), 15),
    },
];

fn cells(context: &Context) -> Vec<i64> {
    let array = context.array(URI).open().unwrap();
    let cells = array.read(ReadOptions::new().fields(["a"])).unwrap();
    let cells = cells.read_all().unwrap();
    let mut values = cells.column("a").unwrap().values::<i64>().unwrap().to_vec();
    // Of sparse arrays with duplicates no order is promised.
    if array.schema().allows_dups {
        values.sort_unstable();
    }
    values
}

/// What there is when all is written in the order of time.
fn in_time(case: &Late) -> Vec<i64> {
    let context = plain(&Arc::new(MemoryStorage::new()));
    create(&context, case.kind);
    let mut all = case.before.to_vec();
    all.push(case.late);
    all.sort_by_key(|(_, time)| *time);
    for (range, time) in all {
        write(&context, case.kind, range, time as i64, time);
    }
    cells(&context)
}

#[test]
fn a_consolidation_hides_no_write_that_was_committed_before_it() {
    for (i, case) in LATE.iter().enumerate() {
        let Late {
            kind,
            before,
            late: (range, time),
        } = case;
        for named in [false, true] {
            let (mut runs, mut refused, mut late) = (0, 0, 0);
            let in_time = in_time(case);
            for stop_at in 0.. {
                let memory = Arc::new(MemoryStorage::new());
                let quiet = plain(&memory);
                create(&quiet, *kind);
                for (range, time) in *before {
                    write(&quiet, *kind, *range, *time as i64, *time);
                }
                let mut options = FragmentOptions::new().choice(Choice::new().amplification(3.0));
                if named {
                    let array = quiet.array(URI).open().unwrap();
                    options = options.fragments(array.fragments().iter().map(|f| f.name()));
                }
                let first = |context: &Context| context.array(URI).consolidate(&options);
                let second = |context: &Context| {
                    write(context, *kind, *range, *time as i64, *time);
                    cells(&quiet)
                };
                let Some((done, seen)) = interleaved(&memory, stop_at, first, second) else {
                    break;
                };
                runs += 1;
                let done = match (done, named) {
                    (Ok(_), _) => true,
                    (Err(_), true) => false,
                    (Err(error), false) => panic!("{i} stopped at {stop_at}: {error}"),
                };
                refused += usize::from(!done);
                // In the order of their times, or, if the consolidation was committed first, as it
                // was when the write had been committed.
                let found = cells(&quiet);
                assert!(
                    found == in_time || found == seen,
                    "{i} stopped at {stop_at}, done {done}: {found:?}, seen {seen:?}"
                );
                late += usize::from(found != in_time);
                // Behind the last look, and nowhere else.
                assert!(late == 0 || found != in_time, "{i} stopped at {stop_at}");
            }
            assert!(runs > 20, "{i}: {runs}");
            let must_refuse = named && *kind == Kind::Dense;
            assert_eq!(refused > 0, must_refuse, "{i}: {refused} of {runs}");
            assert!(late * 2 < runs, "{i}: {late} of {runs}");
        }
    }
}
