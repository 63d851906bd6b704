//! Writes against a naive model of cells, and what writers refuse.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use azulejo::{Array, Config, Context};
use proptest::prelude::*;
use support::model::Case;

fn context() -> Context {
    Context::new(Config { threads: 2, ..Config::default() }, None).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn random_writes_read_back(seed: u64) {
        let context = context();
        let mut case = Case::new(seed);
        Array::create_at(&context, "mem://a", case.new.clone(), 1).unwrap();
        let mut timestamp = 1;
        for _ in 0..4 {
            // Of two writes with one timestamp the later wins.
            timestamp += seed >> 7 & 1;
            case.write(&context, "mem://a", timestamp);
            case.check(&context, "mem://a");
        }
    }
}
