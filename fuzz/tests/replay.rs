//! A short, deterministic fuzz run on stable Rust: every committed input, then mutations of it.

use std::path::Path;

/// Mutations of each input.
const MUTATIONS: u64 = 400;

fn replay(name: &str, target: fn(&[u8])) {
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
        for _ in 0..MUTATIONS {
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

#[test]
fn schema() {
    replay("schema", azulejo_fuzz::schema);
}

#[test]
fn generic_tile() {
    replay("generic_tile", azulejo_fuzz::generic_tile);
}

#[test]
fn fragment_metadata() {
    replay("fragment_metadata", azulejo_fuzz::fragment_metadata);
}

#[test]
fn filters() {
    replay("filters", azulejo_fuzz::filters);
}

#[test]
fn manifest() {
    replay("manifest", azulejo_fuzz::manifest);
}

#[test]
fn whole_array() {
    replay("whole_array", azulejo_fuzz::whole_array);
}

#[test]
fn small_files() {
    replay("small_files", azulejo_fuzz::small_files);
}

#[test]
fn tile_chunks() {
    replay("tile_chunks", azulejo_fuzz::tile_chunks);
}
