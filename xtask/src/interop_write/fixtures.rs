//! Arrays of old releases of TileDB: the packed fixtures of the engine's tests.

use crate::root;
use azulejo::format::ArraySchema;
use azulejo::format::filter::Filter;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::LazyLock;

/// Path in the pack to bytes.
static FILES: LazyLock<BTreeMap<String, Vec<u8>>> = LazyLock::new(|| read().unwrap_or_default());

fn read() -> std::io::Result<BTreeMap<String, Vec<u8>>> {
    let packed = std::fs::read(root().join("azulejo/tests/fixtures/made.tar.zst"))?;
    let mut tar = tar::Archive::new(zstd::Decoder::new(packed.as_slice())?);
    let mut files = BTreeMap::new();
    for entry in tar.entries()? {
        let mut entry = entry?;
        if entry.header().entry_type().is_file() {
            let path = entry.path()?.to_string_lossy().replace('\\', "/");
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            files.insert(path, bytes);
        }
    }
    Ok(files)
}

/// The objects in the pack.
pub fn names() -> Vec<String> {
    let name = |path: &String| {
        Some(
            path.strip_prefix("expected/")?
                .strip_suffix(".json")?
                .to_owned(),
        )
    };
    FILES
        .keys()
        .filter_map(name)
        .filter(|name| !name.contains("__labels"))
        .collect()
}

/// Whether an object is encrypted, with the key that all have.
pub fn is_encrypted(name: &str) -> bool {
    name.contains("_enc")
}

/// Unpacks one into a new folder.
pub fn unpack(name: &str, folder: &Path) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(folder);
    let prefix = format!("{name}/");
    for (path, bytes) in FILES.range(prefix.clone()..) {
        let Some(relative) = path.strip_prefix(&prefix) else {
            break;
        };
        let target = folder.join(relative);
        let parent = target.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&target, bytes))
            .map_err(|e| format!("{}: {e}", target.display()))?;
    }
    Ok(())
}

/// Whether the generator of cells and the naive model can do with it.
pub fn is_suitable(schema: &ArraySchema) -> bool {
    // Pictures, and values that must increase.
    let special = |f: &Filter| matches!(f, Filter::Webp { .. } | Filter::PositiveDelta { .. });
    let mut attributes = schema.attributes.iter();
    let plain = attributes.all(|a| !a.filters.filters.iter().any(special) && !a.name.is_empty());
    let cells = schema
        .domain
        .dimensions
        .iter()
        .try_fold(1u128, |n, d| n.checked_mul(d.axis()?.cells()));
    plain
        && schema.current_domain.ranges().is_none()
        && (!schema.is_dense() || cells.is_some_and(|n| n <= 5000))
}
