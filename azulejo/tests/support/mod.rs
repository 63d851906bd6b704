//! What the fixture tests and the interop tasks share.
#![allow(dead_code, reason = "each test binary uses a part")]

pub mod cells;
pub mod check;
pub mod contexts;
pub mod disk;
pub mod facts;
pub mod failing;
pub mod faulty;
pub mod interleaved;
pub mod layouts;
pub mod merged;
pub mod model;
pub mod often;
pub mod operations;
pub mod pack;
pub mod random;
pub mod rewrite;
pub mod scheduled;
pub mod stepped;
pub mod turns;
