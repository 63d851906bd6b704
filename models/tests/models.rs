//! Every model, each a test.

use azulejo_models::models;

macro_rules! tested {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                models::$name();
            }
        )*
    };
}

tested! {
    an_answer_reaches_who_waits
    an_answer_that_never_comes_is_an_error
    an_answer_that_nobody_wants_is_dropped_once
    what_was_begun_before_is_cancelled
    a_part_and_its_whole_are_cancelled_at_once
    one_operation_is_cancelled_and_not_those_beside_it
    who_goes_while_it_is_cancelled_is_told_once_or_never
    a_tile_cache_keeps_to_its_limit
    a_buffer_has_one_owner
    prefetched_tiles_arrive
    a_failed_read_is_asked_for_again
    nothing_beats_behind_its_end
    all_is_done_once_side_by_side
    an_error_ends_what_is_side_by_side
}
