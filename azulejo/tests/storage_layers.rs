//! The contract of storages, through the layers that tests put before them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]

mod support;

use azulejo::storage::{LocalStorage, MemoryStorage, Storage, StorePath, Uri, conformance};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use support::failing::{FailingStorage, Failure};
use support::faulty::{Fault, FaultyStorage};
use support::stepped::{Gate, Role, SteppedStorage};

fn sound(inner: &Arc<dyn Storage>) -> [Box<dyn Storage>; 3] {
    [
        Box::new(FailingStorage::new(
            Arc::clone(inner),
            i64::MAX,
            Failure::Crash,
        )),
        Box::new(FaultyStorage::new(
            Arc::clone(inner),
            Fault::None(Arc::new(AtomicU64::new(0))),
        )),
        Box::new(SteppedStorage::new(
            Arc::clone(inner),
            &Gate::new(usize::MAX - 1),
            Role::First,
        )),
    ]
}

#[test]
fn layers_without_a_fault_meet_the_contract() {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    for layer in sound(&memory) {
        conformance::check(&*layer, &StorePath::memory("root"));
    }
    let folder = tempfile::tempdir().unwrap();
    let root = Uri::parse(folder.path().to_str().unwrap()).unwrap();
    let local: Arc<dyn Storage> = Arc::new(LocalStorage::new());
    for layer in sound(&local) {
        conformance::check(&*layer, &root.path().join("root"));
    }
}
