//! All targets under libFuzzer: `AZULEJO_FUZZ_TARGET` says which.
#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<azulejo_fuzz::Target> = LazyLock::new(|| {
    let wanted = std::env::var("AZULEJO_FUZZ_TARGET").unwrap_or_default();
    let mut targets = azulejo_fuzz::TARGETS.iter();
    targets.find(|(name, _)| *name == wanted).map_or_else(
        || panic!("AZULEJO_FUZZ_TARGET={wanted:?} is no target"),
        |(_, target)| *target,
    )
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
