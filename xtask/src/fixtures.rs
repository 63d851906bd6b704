//! `cargo xtask fixtures DIR`: packs the `made/` part of a corpus, with its expectations, into the repository.
//!
//! The arrays were made by `azulejo/tests/fixtures/tools/`; the pack is what `cargo test` reads.

use crate::{Outcome, root};
use std::path::Path;

/// Where the pack lies, from the root.
const PACK: &str = "azulejo/tests/fixtures/made.tar.zst";

/// Packs `DIR/made`, `DIR/expected/made` and `DIR/keys.json`.
pub fn pack(dir: &Path) -> Outcome {
    let text = |e: std::io::Error| e.to_string();
    let target = root().join(PACK);
    let file = std::fs::File::create(&target).map_err(|e| format!("{}: {e}", target.display()))?;
    let encoder = zstd::Encoder::new(file, 19).map_err(text)?;
    let mut tar = tar::Builder::new(encoder);
    tar.mode(tar::HeaderMode::Deterministic);
    for part in ["made", "expected/made"] {
        tar.append_dir_all(part, dir.join(part)).map_err(|e| format!("{part}: {e}"))?;
    }
    tar.append_path_with_name(dir.join("keys.json"), "keys.json").map_err(text)?;
    tar.into_inner().and_then(zstd::Encoder::finish).map_err(text)?;
    let size = std::fs::metadata(&target).map_err(text)?.len();
    println!("{PACK}: {size} bytes");
    Ok(())
}
