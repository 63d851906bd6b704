//! The same behind the code for object stores: no folders, no renames, conditional puts.

use crate::schedules::play_all;
use crate::{
    Before, Ground, KINDS, MAKE_ARRAY, Matrix, arrays, check_one_makes_it, check_pairs, copy_to,
    every, groups, look_at_schemas, makers, with_claims,
};
use azulejo::storage::{MemoryStorage, ObjectStorage, Storage};
use std::sync::Arc;

fn objects(base: &MemoryStorage) -> Ground {
    let bucket: Arc<dyn Storage> = Arc::new(ObjectStorage::in_memory());
    copy_to(base, &*bucket);
    Box::new(move || Arc::clone(&bucket))
}

fn in_a_bucket(matrix: Matrix<'_>) -> Matrix<'_> {
    let mut matrix = with_claims(matrix);
    matrix.name.push_str(", bucket");
    matrix.place = objects;
    matrix
}

#[test]
fn pairs_on_an_array() {
    for (before, duplicates) in KINDS {
        let mut matrix = in_a_bucket(arrays(before, duplicates));
        matrix.every = every(61);
        check_pairs(&matrix);
    }
}

#[test]
fn pairs_on_a_group() {
    let mut matrix = in_a_bucket(groups());
    matrix.every = every(9);
    check_pairs(&matrix);
}

#[test]
fn one_makes_a_new_array() {
    check_one_makes_it(&in_a_bucket(makers(&MAKE_ARRAY, look_at_schemas)));
}

#[test]
fn any_schedule() {
    play_all(&in_a_bucket(arrays(Before::Plain, true)), 50);
}
