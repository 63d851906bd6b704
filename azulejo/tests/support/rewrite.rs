//! Fragments written by the reference, taken apart and written again.

use azulejo::Array;
use azulejo::array::Fragment;
use azulejo::format::filter::EncryptionKey;
use azulejo::format::fragment::{Footer, FragmentMetadata, LocatedFooter, SectionOffsets};
use azulejo::format::path::FRAGMENT_METADATA_FILE;
use azulejo::format::tile::{GenericTile, GenericTileHeader};
use azulejo::storage::{ReadRange, ReadRequest};
use bytes::Bytes;

const LIMIT: u64 = 1 << 30;

/// The bytes of a fragment's metadata file.
pub fn metadata_file(fragment: &Fragment) -> Bytes {
    let path = fragment.location().path.join(FRAGMENT_METADATA_FILE);
    let request = ReadRequest { path, range: ReadRange::All };
    fragment.location().storage.read(&[request]).expect("it has metadata").remove(0)
}

/// The sections of a metadata file, one behind the other: what each header says (sizes apart) and the unfiltered bytes;
/// and the footer with all offsets of sections set to 0. Two files with equal parts differ in the zlib encoder only.
pub struct Parts {
    /// The sections.
    pub sections: Vec<(GenericTileHeader, Vec<u8>)>,
    /// The footer.
    pub footer: Footer,
}

/// Cuts a file where its footer says. `None` for files with other bytes between the sections, as some writers left them.
pub fn parts(file: &[u8], fragment: &Fragment, key: Option<&EncryptionKey>) -> Option<Parts> {
    let schema = fragment.schema();
    let found = Footer::locate(file, file.len() as u64, fragment.version(), Some(schema)).expect("a footer");
    let LocatedFooter::Found { offset, bytes } = found else { panic!("the file is whole") };
    let mut footer = Footer::decode(bytes, schema, Some(offset)).expect("a footer");
    footer.sections = SectionOffsets::default();
    footer.optional_sections.clear();
    footer.offset = None;
    let mut sections = Vec::new();
    let mut at = 0;
    while at < offset as usize {
        let tile = GenericTile::decode(&file[at..offset as usize], key, LIMIT).ok()?;
        at += tile.consumed;
        let mut header = tile.header;
        header.persisted_size = 0;
        // The reference marks sections with its own newest version, whatever the fragment's.
        header.version = fragment.version();
        sections.push((header, tile.data));
    }
    Some(Parts { sections, footer })
}

/// Takes the metadata of a fragment apart and puts it together again: the same parts must come out.
pub fn metadata_round_trip(array: &Array, fragment: &Fragment) -> Result<bool, String> {
    let key = array.context().key();
    let (schema, version) = (fragment.schema(), fragment.version());
    let file = metadata_file(fragment);
    let mut metadata =
        FragmentMetadata::decode(&file, version, schema, key, LIMIT).map_err(|e| e.to_string())?;
    let again = metadata.encode(schema, key).map_err(|e| e.to_string())?;
    let decoded = FragmentMetadata::decode(&again, version, schema, key, LIMIT).map_err(|e| e.to_string())?;
    if decoded != metadata {
        return Err("what was encoded decodes to something else".into());
    }
    let Some(expected) = parts(&file, fragment, key) else { return Ok(false) };
    let found = parts(&again, fragment, key).ok_or("other bytes between sections")?;
    compare(&expected, &found).map(|()| true)
}

/// The first difference.
pub fn compare(expected: &Parts, found: &Parts) -> Result<(), String> {
    if expected.footer != found.footer {
        return Err(format!("footer {:?} instead of {:?}", found.footer, expected.footer));
    }
    for (i, (e, f)) in expected.sections.iter().zip(&found.sections).enumerate() {
        if e != f {
            return Err(format!("section {i}: {f:?} instead of {e:?}"));
        }
    }
    let (e, f) = (expected.sections.len(), found.sections.len());
    if e == f { Ok(()) } else { Err(format!("{f} sections instead of {e}")) }
}
