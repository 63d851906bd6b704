//! Whole arrays in memory, opened, read, checked and maintained, whatever their files hold.

use crate::decoders::LIMIT;
use crate::made::{self, Dice};
use azulejo::check::CheckOptions;
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::wire::ByteReader;
use azulejo::read::ReadOptions;
use azulejo::storage::{LocalStorage, MemoryStorage, Storage, StorePath};
use azulejo::{Config, Context, TimeRange};
use bytes::Bytes;
use std::sync::Arc;

/// A folder of files: name behind its length as `u16`, content behind its length as `u32`, again
/// and again.
pub fn whole_array(data: &[u8]) {
    let mut files = Vec::new();
    let mut r = ByteReader::new(data);
    while let Ok(len) = r.u16("name length") {
        let Ok(name) = r.text(len.into(), "name") else {
            break;
        };
        let Ok(len) = r.u32("length") else { break };
        let Ok(content) = r.bytes_u64(len.into(), "content") else {
            break;
        };
        files.push((name.to_owned(), content.to_vec()));
    }
    let _ = look(&files);
}

/// A recipe for an array, then changes of its files; the array is read, then changed and
/// maintained. Metadata is not compressed: what is changed is what the decoders see.
pub fn made_array(data: &[u8]) {
    let recipe = data.get(..made::RECIPE_LEN).unwrap_or_default();
    let Some(mut files) = made::files(recipe) else {
        return;
    };
    let mut dice = Dice::new(data.get(made::RECIPE_LEN..).unwrap_or_default());
    let changed = !dice.is_empty();
    made::change(&mut files, &mut dice);
    let cells = look(&files);
    // A generator of arrays that nobody can read would find nothing.
    if let (Err(error), false) = (cells, changed) {
        panic!("a valid array cannot be read: {error}");
    }
    maintain(&files);
}

/// A context whose memory holds an array `a` of these files.
fn context(files: &[(String, Vec<u8>)]) -> azulejo::Result<Context> {
    let memory = MemoryStorage::new();
    for (name, content) in files {
        let path = StorePath::memory(&format!("a/{name}"));
        let _ = memory.put(&path, Bytes::copy_from_slice(content));
    }
    let config = Config::new().memory_budget(LIMIT).threads(1);
    let local = Arc::new(LocalStorage::new());
    Context::with_storages(config, None, local, Arc::new(memory))
}

/// Opens and reads; how many cells there were.
fn look(files: &[(String, Vec<u8>)]) -> azulejo::Result<usize> {
    let array = context(files)?.array("mem://a").open()?;
    let _ = array.metadata();
    let _ = array.non_empty_domain();
    let _ = array.enumerations();
    let mut cells = 0;
    // A domain may be huge: a few batches show as much as all of them.
    for batch in array.read(ReadOptions::new())?.take(3) {
        cells += batch?.cell_num;
    }
    Ok(cells)
}

/// What changes an array, on one that may be damaged.
fn maintain(files: &[(String, Vec<u8>)]) {
    let Ok(context) = context(files) else {
        return;
    };
    let array = context.array("mem://a");
    let condition = Condition::compare("a0", Comparison::Lt, 3i32.to_le_bytes());
    let _ = array.delete_cells(&condition, None);
    let mut options = FragmentOptions::new();
    options.memory_budget = LIMIT;
    let _ = array.consolidate(&options);
    let _ = array.consolidate_commits();
    let _ = array.consolidate_fragment_metadata();
    let _ = array.consolidate_metadata(TimeRange::ALL);
    for mode in [Mode::Fragments, Mode::Commits, Mode::FragmentMetadata] {
        let _ = array.vacuum(mode, VacuumOptions::default());
    }
    let _ = array.check(CheckOptions::default());
}

/// A folder as [`whole_array`] takes it.
#[must_use]
pub fn pack_folder(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, content) in files {
        out.extend((name.len() as u16).to_le_bytes());
        out.extend(name.as_bytes());
        out.extend((content.len() as u32).to_le_bytes());
        out.extend(content);
    }
    out
}
