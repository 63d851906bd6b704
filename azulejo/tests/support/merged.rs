//! An array whose fragments are one.

use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::{Array, ArrayHandle};

/// Merges all fragments and removes them.
pub fn merged(handle: &ArrayHandle) -> Array {
    handle
        .consolidate(&FragmentOptions::default())
        .expect("a consolidation");
    handle
        .vacuum(Mode::Fragments, VacuumOptions::default())
        .expect("a vacuum");
    let array = handle.open().expect("an array");
    assert_eq!(array.fragments().len(), 1);
    array
}
