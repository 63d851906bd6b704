//! Damaged arrays: every byte flipped, every file cut off at every length. A read gives an error or
//! cells; it never panics, hangs, or allocates beyond its budget.

#[path = "support/allocator.rs"]
mod allocator;
mod support;

use azulejo::read::ReadOptions;
use azulejo::storage::{MemoryStorage, Storage, StorePath};
use azulejo::{Config, Context};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use support::pack;

/// One test at a time: what is counted is its own.
static ALONE: Mutex<()> = Mutex::new(());

/// What a read may hold.
const BUDGET: u64 = 16 << 20;
/// What an open array may hold besides: its metadata.
const METADATA: u64 = 1 << 20;

/// Small arrays of every shape of the format: legacy metadata, footers of several ages, var-length,
/// deletes, timestamps.
const ARRAYS: &[&str] = &[
    "made/old/1.4.0/sparse1d_f64",
    "made/old/1.6.3/dense3d_col",
    "made/old/2.0.2/sparse1d_f64",
    "made/feat/2.12.3/deletes_consolidated",
    "made/feat/2.30.0/consolidate_timestamps",
];

/// What a read may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Opens and reads a damaged array; whether it read.
fn attempt(context: &Context, what: &dyn Fn() -> String) -> bool {
    // Where the machine is busy, or the process was stopped, it does not take long each time.
    let in_time = (0..3).find_map(|_| {
        let start = Instant::now();
        let read = attempt_once(context, what);
        (start.elapsed() < LIMIT).then_some(read)
    });
    in_time.unwrap_or_else(|| panic!("{}: takes longer than {LIMIT:?}", what()))
}

fn attempt_once(context: &Context, what: &dyn Fn() -> String) -> bool {
    let before = allocator::reset();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(
        || -> azulejo::Result<usize> {
            let array = context.array("mem://a").open()?;
            array.metadata()?;
            array.non_empty_domain()?;
            let mut cells = 0;
            // A damaged domain can be huge: a few batches suffice.
            for batch in array.read(ReadOptions::new())?.take(4) {
                cells += batch?.cell_num;
            }
            Ok(cells)
        },
    ));
    let outcome = outcome.unwrap_or_else(|_| panic!("{}: panicked", what()));
    let held = (allocator::peak() - before) as u64;
    assert!(held <= BUDGET + METADATA, "{}: held {held} bytes", what());
    outcome.is_ok()
}

/// Damaged forms of a file, with where the damage is.
type Damages<'a> = Box<dyn Iterator<Item = (usize, Vec<u8>)> + 'a>;

/// Applies `damage` (which gives all damaged forms of a file) to each file of each array.
fn damaged(damage: fn(&[u8]) -> Damages<'_>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let all = pack::files();
    let (mut read, mut refused) = (0, 0);
    for name in ARRAYS {
        let files: BTreeMap<String, Bytes> = all
            .iter()
            .filter_map(|(p, b)| {
                Some((
                    format!("a{}", p.strip_prefix(name).filter(|r| r.starts_with('/'))?),
                    b.clone(),
                ))
            })
            .collect();
        assert!(!files.is_empty(), "{name} is not in the pack");
        let memory = Arc::new(MemoryStorage::new());
        for (path, bytes) in &files {
            memory
                .put(&StorePath::memory(path), bytes.clone())
                .expect("memory takes it");
        }
        let config = Config::new().memory_budget(BUDGET).threads(1);
        let context = pack::context(config, None, Arc::clone(&memory) as Arc<dyn Storage>);
        assert!(
            attempt(&context, &|| format!("{name}, whole")),
            "{name} does not read when whole"
        );
        for (path, bytes) in &files {
            for (at, changed) in damage(bytes) {
                memory
                    .put(&StorePath::memory(path), changed.into())
                    .expect("memory takes it");
                let what = || format!("{name}: {path} damaged at {at}");
                if attempt(&context, &what) {
                    read += 1;
                } else {
                    refused += 1;
                }
            }
            memory
                .put(&StorePath::memory(path), bytes.clone())
                .expect("memory takes it");
        }
    }
    assert!(
        refused > 1000,
        "only {refused} damaged arrays were refused ({read} read): is the damage done?"
    );
}

#[test]
fn every_byte_flipped() {
    damaged(|bytes| {
        Box::new((0..bytes.len()).map(|at| {
            let mut changed = bytes.to_vec();
            changed[at] ^= 0xff;
            (at, changed)
        }))
    });
}

#[test]
fn every_file_cut_off_at_every_length() {
    damaged(|bytes| Box::new((0..bytes.len()).map(|at| (at, bytes[..at].to_vec()))));
}
