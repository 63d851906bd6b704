//! A short, deterministic fuzz run on stable Rust: every committed input, then mutations of it.

use azulejo_fuzz::TARGETS;
use std::path::Path;

/// Mutations of all inputs of a target together; each input gets its part, and one at least.
const MUTATIONS: u64 = 6_000;

fn replay(name: &str) {
    let target = TARGETS.iter().find(|(target, _)| *target == name);
    let (_, target) = target.expect("there is such a target");
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let mut inputs: Vec<_> = std::fs::read_dir(&dir)
        .expect("the corpus is committed")
        .flatten()
        .map(|e| e.path())
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "no input in {}", dir.display());
    let mutations = (MUTATIONS / inputs.len() as u64).max(1);
    for path in inputs {
        let input = std::fs::read(&path).expect("an input");
        target(&input);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..mutations {
            let mut mutated = input.clone();
            for _ in 0..1 + random() % 4 {
                if mutated.is_empty() {
                    break;
                }
                let at = (random() % mutated.len() as u64) as usize;
                match random() % 4 {
                    0 => mutated[at] ^= 1 << (random() % 8),
                    1 => mutated[at] = [0, 1, 0x7f, 0x80, 0xff][(random() % 5) as usize],
                    2 => mutated.truncate(at),
                    _ => {
                        let end = (at + 8).min(mutated.len());
                        mutated[at..end].fill(0xff);
                    }
                }
            }
            target(&mutated);
        }
    }
}

macro_rules! replays {
    ($($(#[$when:meta])? $name:ident)*) => {
        $(
            $(#[$when])?
            #[test]
            fn $name() {
                replay(stringify!($name));
            }
        )*

        #[test]
        fn every_target_is_replayed() {
            let names: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [$($(#[$when])? stringify!($name)),*]);
        }
    };
}
replays! {
    schema generic_tile fragment_metadata small_files tile_chunks filters manifest texts whole_array
    made_array #[cfg(feature = "calls")] calls
}
