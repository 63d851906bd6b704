//! The filter pipelines that are chosen where none is named.

pub use azulejo::write::optimize::{
    usual_filters as chosen, usual_offsets_filters as chosen_offsets,
};
