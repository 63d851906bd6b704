//! An array that has nothing but the schemas of a message: what a client of a server works with.

use crate::error::{Failure, Result};
use crate::schema::SchemaContent;
use azulejo::array::Snapshot;
use azulejo::storage::{MemoryStorage, Uri};
use azulejo_format::FormatVersion;
use azulejo_format::fragment::FragmentMetadata;
use azulejo_format::path::{
    FRAGMENT_METADATA_FILE, SCHEMA_FOLDER, commit_path, enumeration_path, fragment_path,
};
use azulejo_format::tile::GenericTile;
use azulejo_format::timestamped_name::TimestampedName;
use std::sync::Arc;

/// Files of fragments to put into an array in memory.
#[derive(Debug, Default)]
pub struct Files {
    fragments: Vec<(TimestampedName, FormatVersion, FragmentMetadata)>,
}

impl Files {
    /// Adds a fragment, of which there is nothing but its metadata.
    pub fn fragment(
        &mut self,
        name: &TimestampedName,
        version: FormatVersion,
        metadata: FragmentMetadata,
    ) {
        self.fragments.push((name.clone(), version, metadata));
    }
}

const URI: &str = "azulejo-message://array";

/// Opens an array in memory with these schemas, of which `latest` names one, and these fragments.
pub fn in_memory(
    engine: &azulejo::Context,
    latest: &str,
    schemas: &[SchemaContent],
    files: Files,
) -> Result<Snapshot> {
    let engine = engine.with_scheme("azulejo-message", Arc::new(MemoryStorage::new()))?;
    let location = engine.locate(&Uri::parse(URI)?)?;
    let put_bytes = |path: &str, bytes: Vec<u8>| -> Result<()> {
        Ok(location
            .storage
            .put(&location.path.join(path), bytes.into())?)
    };
    let put = |path: &str, payload: &[u8]| -> Result<()> {
        let tile = GenericTile::encode(payload, FormatVersion::CURRENT, engine.key())?;
        put_bytes(path, tile)
    };
    for content in schemas {
        for enumeration in &content.enumerations {
            put(
                &enumeration_path(&enumeration.file_name),
                &enumeration.encode(),
            )?;
        }
        let name = file_name(&content.name).ok_or_else(|| {
            Failure::new("Cannot deserialize; the array of the message has a schema without a name")
        })?;
        put(&format!("{SCHEMA_FOLDER}/{name}"), &content.schema.encode())?;
    }
    for (name, version, mut metadata) in files.fragments {
        let schema = schemas
            .iter()
            .find(|each| Some(&each.name) == metadata.footer.schema_name.as_ref())
            .or(schemas.first())
            .ok_or_else(|| Failure::new("Cannot deserialize; a fragment has no schema"))?;
        let file = metadata.encode(&schema.schema, engine.key())?;
        let folder = fragment_path(&name, version);
        put_bytes(&format!("{folder}/{FRAGMENT_METADATA_FILE}"), file)?;
        if let Some(commit) = commit_path(&name, version) {
            put_bytes(&commit, Vec::new())?;
        }
    }
    let snapshot = engine.array(URI).snapshot()?;
    if snapshot.schema_name() != latest {
        return Err(
            "Cannot deserialize; the array of the message has a newer schema than its latest"
                .into(),
        );
    }
    Ok(snapshot)
}

/// The name of a schema's file: two times and letters, nothing that leaves its folder.
fn file_name(name: &str) -> Option<&str> {
    let fine = name.len() <= 128
        && name.starts_with("__")
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    fine.then_some(name)
}
