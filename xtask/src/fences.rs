//! `cargo xtask fences`: the dependency rules of ARCHITECTURE.md, held by looking at the sources.

mod modules;

use crate::Outcome;
use modules::Modules;
use std::path::{Path, PathBuf};

/// A rule: what must not occur in which files.
struct Fence {
    /// What the rule keeps.
    reason: &'static str,
    /// Folders or files that it holds in, relative to the root.
    inside: &'static [&'static str],
    /// Folders or files in there that it does not hold in.
    except: &'static [&'static str],
    /// Text that must not occur in code (comments apart).
    forbidden: &'static [&'static str],
}

const FENCES: &[Fence] = &[
    Fence {
        reason: "the format crate does no IO, threads or async",
        inside: &["azulejo-format/src"],
        except: &[],
        forbidden: &[
            "std::fs",
            "std::net",
            "std::thread",
            "std::process",
            "rayon",
            "tokio",
            "object_store",
        ],
    },
    Fence {
        reason: "only storage/ touches files (platform.rs: how a file is read at a position)",
        inside: &["azulejo/src"],
        except: &["azulejo/src/storage", "azulejo/src/platform.rs"],
        forbidden: &["std::fs", "tokio", "object_store::"],
    },
    Fence {
        reason: "rayon only in context, array, storage and the CPU stages of reads and writes",
        inside: &["azulejo/src"],
        except: &[
            "azulejo/src/context.rs",
            "azulejo/src/context",
            "azulejo/src/array.rs",
            "azulejo/src/array",
            "azulejo/src/storage",
            "azulejo/src/read",
            "azulejo/src/space/keys.rs",
            "azulejo/src/space/keys",
            "azulejo/src/write",
        ],
        forbidden: &["rayon"],
    },
    Fence {
        reason: "no version number outside the format crate: ask for a capability",
        inside: &["azulejo/src", "azulejo-cli/src"],
        except: &[],
        forbidden: &[
            "version.number() <",
            "version.number() >",
            "version.number() ==",
            "version().number() <",
            "version().number() >",
            "version().number() ==",
        ],
    },
    Fence {
        reason: "format versions are decoded, not made up, outside the format crate (a schema as JSON names its own)",
        inside: &["azulejo/src", "azulejo-cli/src"],
        except: &["azulejo/src/json/schema.rs"],
        forbidden: &["FormatVersion::new("],
    },
    Fence {
        reason: "reading does not know the edges above it",
        inside: &[
            "azulejo/src/read",
            "azulejo/src/read.rs",
            "azulejo/src/space",
            "azulejo/src/column",
            "azulejo/src/condition",
        ],
        except: &[],
        forbidden: &[
            "crate::group",
            "crate::fragment_info",
            "crate::write",
            "crate::consolidate",
        ],
    },
    Fence {
        reason: "planning, selection, merging and decoding do no IO: what is fetched, the drivers ask for",
        inside: &["azulejo/src/read", "azulejo/src/read.rs"],
        except: &[
            "azulejo/src/read/fetch.rs",
            "azulejo/src/read/prefetch.rs",
            "azulejo/src/read/stored_tile.rs",
        ],
        forbidden: &[
            "crate::storage",
            "location()",
            ".preload(",
            "fragment.rtree(",
            "fragment.tile_stats(",
            "fragment.var_tile_size(",
            "fragment.stored_tile_range(",
            "fragment.processed_conditions(",
        ],
    },
    Fence {
        reason: "writing does not read: consolidation does both",
        inside: &["azulejo/src/write", "azulejo/src/write.rs"],
        except: &[],
        forbidden: &["crate::read", "crate::group", "crate::consolidate"],
    },
    Fence {
        reason: "storage knows nothing of arrays",
        inside: &["azulejo/src/storage", "azulejo/src/storage.rs"],
        except: &[],
        forbidden: &[
            "crate::array",
            "crate::read",
            "crate::column",
            "crate::space",
            "azulejo_format::schema",
        ],
    },
    Fence {
        reason: "the order of stages is known to the reader alone: stages do not call the reader",
        inside: &[
            "azulejo/src/space",
            "azulejo/src/condition",
            "azulejo/src/column",
        ],
        except: &[],
        forbidden: &["read::Reader", "read::load_tiles"],
    },
];

/// The crates in which a type name stands for one thing and no modules use each other in a circle,
/// and the names of types of which a build has one of several.
const CRATES: &[(&str, &[&str])] = &[
    ("azulejo", &[]),
    // A codec, and the cipher, is a library in C or a crate in Rust.
    ("azulejo-format", &["Cipher", "Codec"]),
];

/// Checks every fence; the error lists each breach with its line.
pub fn check(root: &Path) -> Outcome {
    let mut breaches = Vec::new();
    let mut files_seen = 0;
    for fence in FENCES {
        let mut files = Vec::new();
        for place in fence.inside {
            rust_files(&root.join(place), &mut files);
        }
        for file in files {
            let relative = file.strip_prefix(root).unwrap_or(&file).to_path_buf();
            let tests = relative.ends_with("tests.rs");
            if tests || fence.except.iter().any(|e| relative.starts_with(e)) {
                continue;
            }
            files_seen += 1;
            let text =
                std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            for (number, line) in without_tests(&text).lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                if let Some(word) = fence.forbidden.iter().find(|w| code.contains(**w)) {
                    breaches.push(format!(
                        "{}:{}: `{word}`: {}",
                        relative.display(),
                        number + 1,
                        fence.reason
                    ));
                }
            }
        }
    }
    if files_seen == 0 {
        return Err("no source file found: the fences stand in the wrong place".into());
    }
    for (crate_folder, alternatives) in CRATES {
        let src = root.join(crate_folder).join("src");
        let mut files = Vec::new();
        rust_files(&src, &mut files);
        let modules = Modules::read(&src, &files)?;
        breaches.extend(modules.names_of_several(alternatives));
        breaches.extend(modules.circles());
    }
    if breaches.is_empty() {
        println!("fences: {} rules hold", FENCES.len() + 2);
        return Ok(());
    }
    Err(breaches.join("\n"))
}

/// The code before a file's unit tests, which may do as they like.
fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default()
}

fn rust_files(place: &Path, out: &mut Vec<PathBuf>) {
    if place.is_file() {
        out.push(place.to_path_buf());
        return;
    }
    let Ok(entries) = std::fs::read_dir(place) else {
        return;
    };
    for path in entries.flatten().map(|e| e.path()) {
        if path.is_dir() || path.extension().is_some_and(|e| e == "rs") {
            rust_files(&path, out);
        }
    }
}
