//! `cargo xtask fuzz-corpus DIR`: inputs for the fuzz targets, taken from real arrays of a corpus.

use crate::{Outcome, root};
use azulejo::format::commit::{
    ConsolidatedCommit, ConsolidatedCommits, IgnoreList, Replacement, VacuumList,
};
use azulejo::format::filter::{Filter, FilterContext, Pipeline, Scratch};
use azulejo::format::fragment::{ConsolidatedFooter, ConsolidatedFragmentMetadata};
use azulejo::format::group::{GroupDetails, GroupMember, GroupVersion, MemberKind};
use azulejo::format::schema::FieldIndex;
use azulejo::format::tile::GenericTile;
use azulejo::format::wire::ByteWriter;
use azulejo::format::{ArraySchema, CellValNum, Datatype, FormatVersion};
use azulejo::manifest::Manifest;
use azulejo::storage::Entry;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Arrays of every age and shape, small.
const ARRAYS: &[&str] = &[
    "made/old/1.4.0/sparse1d_f64",
    "made/old/1.6.3/dense3d_col",
    "made/old/2.0.2/sparse_str",
    "made/old/2.2.9/sparse_types",
    "made/old/2.8.3/dense2d",
    "made/old/2.30.0/dense_filters",
    "made/old/2.30.0/sparse_types",
    "made/feat/2.12.3/deletes_consolidated",
    "made/feat/2.30.0/consolidate_timestamps",
    "made/feat/2.30.0/deletes_string_and_nulls",
    "made/feat/2.30.0/dimension_labels",
];

/// Inputs larger than this are left out: mutations of them find little.
const LARGEST: usize = 16 << 10;

/// Writes `fuzz/corpus/<target>/`.
pub fn write(dir: &Path) -> Outcome {
    let target = root().join("fuzz/corpus");
    let _ = std::fs::remove_dir_all(&target);
    let mut count = 0;
    let mut keep = |name: &str, input: &[u8]| -> Outcome {
        if input.len() > LARGEST {
            return Ok(());
        }
        count += 1;
        let folder = target.join(name);
        std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
        std::fs::write(folder.join(format!("{count:03}")), input).map_err(|e| e.to_string())
    };
    for array in ARRAYS {
        let at = dir.join(array);
        let mut files = Vec::new();
        find(&at, &mut files);
        files.sort();
        let read = |p: &PathBuf| std::fs::read(p).map_err(|e| format!("{}: {e}", p.display()));
        let name_of = |p: &PathBuf| {
            p.strip_prefix(&at)
                .map(|p| p.to_string_lossy().replace('\\', "/"))
                .unwrap_or_default()
        };
        let Some(schema_file) = files.iter().find(|p| {
            let name = name_of(p);
            name == "__array_schema.tdb"
                || (name.starts_with("__schema/") && !name.contains("__enumerations"))
        }) else {
            return Err(format!("{array}: no schema"));
        };
        let stored = read(schema_file)?;
        keep("generic_tile", &stored)?;
        let payload = GenericTile::decode(&stored, None, 1 << 24)
            .map_err(|e| e.to_string())?
            .data;
        keep("schema", &payload)?;
        let schema = ArraySchema::decode(&payload).map_err(|e| e.to_string())?;
        let mut folder = ByteWriter::new();
        for path in &files {
            let (name, content) = (name_of(path), read(path)?);
            folder.u16(u16::try_from(name.len()).map_err(|e| e.to_string())?);
            folder.bytes(name.as_bytes());
            folder.u32(u32::try_from(content.len()).map_err(|e| e.to_string())?);
            folder.bytes(&content);
            if name.ends_with(".del")
                || name.contains("__enumerations/")
                || name.contains("__meta/")
            {
                keep("generic_tile", &content)?;
                if let Ok(tile) = GenericTile::decode(&content, None, 1 << 24) {
                    keep("schema", &tile.data)?;
                }
            }
            if name.ends_with("__fragment_metadata.tdb") {
                let part =
                    GenericTile::decode(&content, None, 1 << 24).map_or(content.clone(), |tile| {
                        if schema.version.has_footer() {
                            content.clone()
                        } else {
                            tile.data
                        }
                    });
                // The footer lies at the end; its length is among its last bytes in most versions.
                for len in [part.len(), part.len().min(400), part.len().min(200)] {
                    let mut w = ByteWriter::new();
                    w.u32(u32::try_from(payload.len()).map_err(|e| e.to_string())?);
                    w.bytes(&payload);
                    w.bytes(&part[part.len() - len..]);
                    keep("fragment_metadata", &w.into_bytes())?;
                }
            }
            if let Some(tile) = data_tile(&schema, &name, &content) {
                keep("filters", &tile)?;
            }
        }
        keep("whole_array", &folder.into_bytes())?;
    }
    let sidecar = sidecar()?;
    keep("manifest", &sidecar)?;
    keep(
        "manifest",
        &GenericTile::decode(&sidecar, None, 1 << 24)
            .map_err(|e| e.to_string())?
            .data,
    )?;
    for file in small_files() {
        keep("small_files", &file)?;
    }
    // Read with nothing ahead and far ahead, all cells and every third.
    for (ahead, wanted) in [(0, 0xff), (100, 0b0100_1001)] {
        keep(
            "tile_chunks",
            &[&[ahead, wanted], tile()?.as_slice()].concat(),
        )?;
    }
    println!("fuzz/corpus: {count} inputs");
    Ok(())
}

/// Lists of commits, members of a group, footers of fragments, a name.
fn small_files() -> Vec<Vec<u8>> {
    let name = "__1_2_0123456789abcdef0123456789abcdef_22";
    let uris = vec![
        format!("__fragments/{name}"),
        format!("__commits/{name}.wrt"),
    ];
    let commit = format!("__commits/{name}.wrt");
    let commits = ConsolidatedCommits {
        commits: vec![
            ConsolidatedCommit::Fragment { uri: &commit },
            ConsolidatedCommit::Delete {
                uri: "__commits/__3_3_0123456789abcdef0123456789abcdef_22.del",
                tile: b"not a tile",
            },
        ],
    };
    let member = |version, named: bool| GroupMember {
        version,
        kind: MemberKind::Array,
        relative: named,
        uri: "a".into(),
        name: named.then(|| "b".into()),
        deleted: false,
    };
    let group = |version| GroupDetails {
        version,
        members: vec![member(version, true), member(version, false)],
    };
    let footers = ConsolidatedFragmentMetadata {
        footers: vec![ConsolidatedFooter {
            fragment: name,
            footer: b"not a footer",
        }],
    };
    vec![
        commits.encode(),
        VacuumList { uris: uris.clone() }.encode(),
        IgnoreList { uris: uris.clone() }.encode(),
        Replacement {
            new: vec![name.into()],
            old: uris,
        }
        .encode(),
        group(GroupVersion::V1).encode(),
        group(GroupVersion::V2).encode(),
        footers.encode(),
        name.into(),
    ]
}

/// A stored tile of several chunks.
fn tile() -> Result<Vec<u8>, String> {
    let pipeline = Pipeline {
        max_chunk_size: 16,
        filters: vec![Filter::ChecksumMd5],
    };
    let ctx = FilterContext {
        version: FormatVersion::CURRENT,
        datatype: Datatype::UInt16,
        cell_val_num: CellValNum::ONE,
        key: None,
    };
    let mut stored = Vec::new();
    pipeline
        .encode_tile(&ctx, &[7; 50], None, &mut stored, &mut Scratch::new())
        .map_err(|e| e.to_string())?;
    Ok(stored)
}

/// The manifest of an array in memory.
fn sidecar() -> Result<Vec<u8>, String> {
    let entry = |name: &str, size| Entry {
        name: name.into(),
        is_dir: size == 0,
        size: Some(size),
    };
    let id = "0123456789abcdef0123456789abcdef";
    let folders = BTreeMap::from([
        (
            String::new(),
            vec![entry("__commits", 0), entry("__schema", 0)],
        ),
        (
            "__commits".into(),
            vec![entry(&format!("__1_1_{id}_22.wrt"), 0), entry("x", 5)],
        ),
        ("__schema".into(), vec![entry(&format!("__1_1_{id}"), 170)]),
    ]);
    let contents = BTreeMap::from([("__commits/x".into(), Bytes::from_static(b"bytes"))]);
    let manifest = Manifest {
        made: 1,
        folders,
        contents,
    };
    manifest.encode().map_err(|e| e.to_string())
}

/// A data file of a fixed-length attribute, behind what the `filters` target wants to know of it.
fn data_tile(schema: &ArraySchema, name: &str, content: &[u8]) -> Option<Vec<u8>> {
    let file = name.rsplit('/').next()?.strip_suffix(".tdb")?;
    let index = match file.strip_prefix('a').and_then(|n| n.parse().ok()) {
        Some(index) => index,
        None => schema.attributes.iter().position(|a| a.name == file)?,
    };
    let attribute = schema.attributes.get(index)?;
    let pipeline = schema.filters_of(FieldIndex::Attribute(index));
    let version: FormatVersion = schema.version;
    let mut w = ByteWriter::new();
    w.u8(u8::try_from(version.number()).ok()?);
    w.u8(attribute.datatype.id());
    w.u8(if attribute.is_var() {
        0
    } else {
        u8::try_from(attribute.cell_val_num.id()).ok()?
    });
    pipeline.encode(&mut w, version);
    w.bytes(content);
    Some(w.into_bytes())
}

fn find(dir: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for path in entries.flatten().map(|e| e.path()) {
        if path.is_dir() {
            find(&path, out);
        } else {
            out.push(path);
        }
    }
}
