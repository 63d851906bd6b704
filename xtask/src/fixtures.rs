//! `cargo xtask fixtures DIR`: packs the `made/` part of a corpus, with its expectations, into the
//! repository.
//!
//! The arrays were made by `azulejo/tests/fixtures/tools/`; the pack is what `cargo test` reads.

use crate::support::cells;
use crate::{Outcome, expected, root};
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
    tar.append_dir_all("made", dir.join("made")).map_err(text)?;
    append_expectations(&mut tar, dir, Path::new("expected/made"))?;
    tar.append_path_with_name(dir.join("keys.json"), "keys.json")
        .map_err(text)?;
    tar.into_inner()
        .and_then(zstd::Encoder::finish)
        .map_err(text)?;
    let size = std::fs::metadata(&target).map_err(text)?.len();
    println!("{PACK}: {size} bytes");
    Ok(())
}

/// JSON as it is; Parquet as plain cells, so that the tests of the engine need no Parquet.
fn append_expectations<W: std::io::Write>(
    tar: &mut tar::Builder<W>,
    dir: &Path,
    part: &Path,
) -> Outcome {
    let text = |e: std::io::Error| format!("{}: {e}", part.display());
    let mut entries: Vec<_> = std::fs::read_dir(dir.join(part))
        .map_err(text)?
        .flatten()
        .map(|e| e.file_name())
        .collect();
    entries.sort();
    for name in entries {
        let relative = part.join(name);
        let path = dir.join(&relative);
        match path.extension().and_then(|e| e.to_str()) {
            None | Some(_) if path.is_dir() => append_expectations(tar, dir, &relative)?,
            Some("json") => tar.append_path_with_name(&path, &relative).map_err(text)?,
            Some("parquet") => {
                let cells = expected::parquet_cells(std::fs::read(&path).map_err(text)?.into())?;
                let bytes = cells::encode(&cells);
                let mut header = tar::Header::new_gnu();
                header.set_size(bytes.len() as u64);
                header.set_mode(0o644);
                tar.append_data(
                    &mut header,
                    relative.with_extension("cells"),
                    bytes.as_slice(),
                )
                .map_err(text)?;
            }
            _ => return Err(format!("{}: neither JSON nor Parquet", path.display())),
        }
    }
    Ok(())
}
