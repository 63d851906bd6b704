//! Valid arrays from a recipe of a few bytes, and changes of their files.

use crate::plain;
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::FragmentOptions;
use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{Attribute, Enumeration, Layout};
use azulejo::format::{ArraySchema, CellValNum, Datatype, FormatVersion, NdRectangle, Range};
use azulejo::storage::{LocalStorage, MemoryStorage, ReadRange, ReadRequest, Storage, StorePath};
use azulejo::write::WriteOptions;
use azulejo::{Config, Context, TimeRange};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Bytes of a recipe.
pub const RECIPE_LEN: usize = 8;
/// Recipes whose files are kept.
const KEPT: usize = 4096;

/// Names in an array and contents.
pub type Files = Vec<(String, Vec<u8>)>;

/// Choices made by bytes; zeros when they are over.
pub struct Dice<'d>(&'d [u8]);

impl<'d> Dice<'d> {
    /// Takes its choices from these bytes.
    #[must_use]
    pub fn new(bytes: &'d [u8]) -> Self {
        Self(bytes)
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        match self.0 {
            [first, rest @ ..] => {
                self.0 = rest;
                *first
            }
            [] => 0,
        }
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        let number = usize::from(self.byte()) << 8 | usize::from(self.byte());
        number % end.max(1)
    }

    fn bytes(&mut self, len: usize) -> &'d [u8] {
        let (first, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        first
    }
}

/// The files of the array that a recipe makes, its metadata plain; `None` for a recipe that no
/// schema allows.
#[must_use]
pub fn files(recipe: &[u8]) -> Option<Files> {
    static MADE: LazyLock<Mutex<HashMap<Vec<u8>, Option<Files>>>> = LazyLock::new(Mutex::default);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if made.len() > KEPT {
        made.clear();
    }
    made.entry(recipe.to_vec())
        .or_insert_with(|| make(&mut Dice::new(recipe)).map(|files| plain_files(&files)))
        .clone()
}

fn plain_files(files: &Files) -> Files {
    let schemas: HashMap<&str, ArraySchema> = files
        .iter()
        .filter_map(|(name, content)| {
            let name = name.strip_prefix("__schema/")?;
            let tile = azulejo::format::tile::GenericTile::decode(content, None, 1 << 20).ok()?;
            Some((name, ArraySchema::decode(&tile.data).ok()?))
        })
        .collect();
    // Where footers are consolidated, they say where the sections lie that were there then.
    let is_consolidated = files.iter().any(|(name, _)| name.ends_with(".meta"));
    let plain = |(name, content): &(String, Vec<u8>)| {
        let content = if name.ends_with("__fragment_metadata.tdb") {
            if is_consolidated {
                return (name.clone(), content.clone());
            }
            let mut all = schemas.values();
            all.find_map(|schema| plain::fragment_metadata(content, schema))
                .unwrap_or_else(|| content.clone())
        } else {
            plain::file(content)
        };
        (name.clone(), content)
    };
    files.iter().map(plain).collect()
}

/// A pipeline of filters that suits the type or not.
fn filters(dice: &mut Dice<'_>) -> Pipeline {
    let filter = match dice.byte() % 24 {
        0 => Filter::Gzip { level: 1 },
        1 => Filter::Zstd { level: 1 },
        2 => Filter::Lz4 { level: 1 },
        3 => Filter::Rle { level: 0 },
        4 => Filter::Bzip2 { level: 1 },
        5 => Filter::DoubleDelta {
            level: 0,
            reinterpret: None,
        },
        6 => Filter::BitWidthReduction { max_window: 8 },
        7 => Filter::Bitshuffle,
        8 => Filter::Byteshuffle,
        9 => Filter::PositiveDelta { max_window: 16 },
        10 => Filter::ChecksumMd5,
        11 => Filter::ChecksumSha256,
        12 => Filter::Dictionary { level: 0 },
        13 => Filter::Xor,
        14 => Filter::Delta {
            level: 0,
            reinterpret: None,
        },
        _ => return Pipeline::default(),
    };
    Pipeline {
        filters: vec![filter],
        ..Pipeline::default()
    }
}

/// Types of attributes and how many values a cell of them has.
const ATTRIBUTES: [(Datatype, CellValNum); 6] = [
    (Datatype::Int32, CellValNum::ONE),
    (Datatype::UInt8, CellValNum::ONE),
    (Datatype::Float64, CellValNum::ONE),
    (Datatype::StringUtf8, CellValNum::Var),
    (Datatype::Int16, CellValNum::Var),
    (Datatype::UInt8, CellValNum::Fixed(3)),
];

fn make(dice: &mut Dice<'_>) -> Option<Files> {
    let memory = Arc::new(MemoryStorage::new());
    let config = Config::new().memory_budget(1 << 24).threads(1);
    let local = Arc::new(LocalStorage::new());
    let context = Context::with_storages(config, None, local, memory.clone()).ok()?;
    let shape = dice.byte();
    let (dense, two, text) = (shape & 1 == 1, shape & 2 > 0, shape & 4 > 0);
    let schema = match dense {
        true => ArraySchema::dense(),
        false => ArraySchema::sparse()
            .capacity(2 + u64::from(shape >> 6))
            .allows_duplicates(shape & 8 > 0),
    };
    let mut schema = match (dense, text) {
        (false, true) => schema.string_dimension("x"),
        _ => schema.dimension("x", 0i32..=9, 4),
    };
    if two {
        schema = schema.dimension("y", 0u8..=3, 2);
    }
    let orders = [Layout::RowMajor, Layout::ColMajor, Layout::Hilbert];
    let kind = dice.byte();
    let order = orders[usize::from(kind % 3)];
    if !(dense && order == Layout::Hilbert) {
        schema = schema.cell_order(order);
    }
    let old = [22u32, 21, 20, 18, 16, 14, 12, 10];
    let version = FormatVersion::new(old[usize::from(kind >> 5)], "recipe").ok()?;
    schema = schema.version(version);
    let mut columns = Vec::new();
    for i in 0..1 + usize::from(kind >> 3 & 1) {
        let choice = dice.byte();
        // The first is what conditions ask for.
        let which = usize::from(choice & 7).min(5) * i;
        let (datatype, values) = ATTRIBUTES[which];
        let mut attribute = Attribute::new(format!("a{i}"), datatype, values);
        attribute.nullable = choice & 8 > 0 && i > 0;
        let words = i == 1 && which == 1 && version.number() >= 20;
        if words {
            let all = Enumeration::of_strings("words", Datatype::StringAscii, false, ["a", "b"]);
            schema = schema.enumeration(all.ok()?);
            attribute = attribute.enumerated("words");
        }
        columns.push((which, attribute.nullable));
        schema = schema.attribute_with(attribute.filters(filters(dice)));
    }
    let array = context.array("mem://a");
    array.create_at(schema.build().ok()?, 1).ok()?;
    let after = dice.byte();
    for time in 0..1 + u64::from(after & 1) {
        let cells = match (dense, two) {
            (true, true) => 40,
            (true, false) => 10,
            _ => 5,
        };
        let mut set: Vec<_> = (0..)
            .zip(&columns)
            .map(|(i, c)| column(i, *c, cells))
            .collect();
        let mut options = WriteOptions::new().timestamp(10 + time);
        if dense {
            let mut ranges = vec![Range::of(0i32, 9)];
            ranges.extend(two.then(|| Range::of(0u8, 3)));
            options = options.subarray(NdRectangle { ranges });
        } else {
            let x = (0..cells).map(|i| (i * 3 + time as usize) % 10);
            set.push(match text {
                true => ColumnBuffers::of_strings("x", x.map(|x| format!("t{x}"))),
                false => ColumnBuffers::of_values("x", x.map(|x| x as i32).collect()),
            });
            if two {
                set.push(ColumnBuffers::of_values(
                    "y",
                    (0..cells).map(|i| i as u8 % 4).collect(),
                ));
            }
        }
        let mut writer = array.writer(options).ok()?;
        writer.write(&ColumnSet::of(set).ok()?).ok()?;
        writer.finish().ok()?;
    }
    if after & 2 > 0 {
        let mut writer = array.change_metadata().ok()?.at(20);
        let value = MetadataValue::new(Datatype::Int32, 7i32.to_le_bytes());
        writer.put("key", value).ok()?;
        writer.commit().ok()?;
    }
    if after & 4 > 0 && !dense && version.number() >= 16 {
        let condition = Condition::compare("a0", Comparison::Lt, 2i32.to_le_bytes());
        array.delete_cells(&condition, Some(30)).ok()?;
    }
    if after & 8 > 0 {
        array.consolidate(&FragmentOptions::new()).ok()?;
    }
    if after & 16 > 0 {
        array.consolidate_commits().ok()?;
    }
    if after & 32 > 0 {
        array.consolidate_fragment_metadata().ok()?;
    }
    if after & 64 > 0 {
        array.consolidate_metadata(TimeRange::ALL).ok()?;
    }
    Some(all_files(&memory))
}

/// A column of one of [`ATTRIBUTES`].
fn column(i: usize, (which, nullable): (usize, bool), cells: usize) -> ColumnBuffers {
    let name = format!("a{i}");
    let all = 0..cells;
    match (which, nullable) {
        (0, false) => ColumnBuffers::of_values(name, all.map(|i| i as i32).collect()),
        (0, true) => ColumnBuffers::of_options(name, all.map(|i| (i > 1).then_some(i as i32))),
        (1, false) => ColumnBuffers::of_values(name, all.map(|i| i as u8 % 2).collect()),
        (1, true) => ColumnBuffers::of_options(name, all.map(|i| (i > 1).then_some(1u8))),
        (2, false) => ColumnBuffers::of_values(name, all.map(|i| i as f64).collect()),
        (2, true) => ColumnBuffers::of_options(name, all.map(|i| (i > 1).then_some(0.5f64))),
        (3, false) => ColumnBuffers::of_strings(name, all.map(|i| "ab".repeat(i % 4))),
        (3, true) => {
            ColumnBuffers::of_optional_strings(name, all.map(|i| (i > 1).then_some("text")))
        }
        (4, _) => ColumnBuffers::of_lists(name, all.map(|i| vec![i as i16; i % 3])),
        _ => {
            let values = all.flat_map(|i| [i as u8; 3]).collect();
            ColumnBuffers::of_cells(name, values, 3).expect("three values a cell")
        }
    }
}

fn all_files(memory: &MemoryStorage) -> Files {
    let root = StorePath::memory("a");
    let mut files = Vec::new();
    for (folder, entries) in memory.list_tree(&root).unwrap_or_default() {
        for entry in entries.iter().filter(|entry| !entry.is_dir) {
            let name = match folder.as_str() {
                "" => entry.name.clone(),
                folder => format!("{folder}/{}", entry.name),
            };
            let path = StorePath::memory(&format!("a/{name}"));
            let range = ReadRange::All;
            let request = ReadRequest { path, range };
            let content = memory.read(&[request]).ok().and_then(|mut all| all.pop());
            files.push((
                name,
                content.map(|bytes| bytes.to_vec()).unwrap_or_default(),
            ));
        }
    }
    files
}

/// Values that lengths, offsets and counts are wrong by.
const NUMBERS: [u64; 12] = [
    0,
    1,
    2,
    7,
    0x7f,
    0xff,
    0x7fff,
    0xffff_ffff,
    0x7fff_ffff,
    1 << 40,
    i64::MAX as u64,
    u64::MAX,
];

/// Changes files as the dice say.
pub fn change(files: &mut Files, dice: &mut Dice<'_>) {
    while !dice.is_empty() && !files.is_empty() {
        let (what, at) = (dice.byte(), dice.below(files.len()));
        let other = dice.below(files.len());
        let copied = files[other].1.clone();
        let (name, content) = &mut files[at];
        let place = dice.below(content.len() + 1);
        match what % 12 {
            0..3 => {
                let value = dice.byte();
                if let Some(byte) = content.get_mut(place) {
                    *byte = value;
                }
            }
            3 => {
                if let Some(byte) = content.get_mut(place) {
                    *byte ^= 1 << (what >> 5);
                }
            }
            4..7 => {
                let number = NUMBERS[dice.below(NUMBERS.len())].to_le_bytes();
                let width = [1, 2, 4, 8][usize::from(what >> 6)];
                let end = (place + width).min(content.len());
                content[place..end].copy_from_slice(&number[..end - place]);
            }
            7 => {
                let len = 1 + dice.below(8);
                let new = dice.bytes(len).to_vec();
                content.splice(place..place, new);
            }
            8 => {
                let end = (place + 1 + dice.below(8)).min(content.len());
                content.drain(place..end);
            }
            9 => content.truncate(place),
            10 => {
                let name = name.clone();
                // Files in the places of others, and files that are gone.
                if what & 0x80 > 0 {
                    files.remove(at);
                } else {
                    files.retain(|(n, _)| *n != name);
                    files.push((name, copied));
                }
            }
            _ => {
                // Another time, another version, another kind.
                let new = dice.byte();
                let mut bytes = std::mem::take(name).into_bytes();
                if let Some(byte) = bytes
                    .len()
                    .checked_sub(1 + place % 40)
                    .and_then(|i| bytes.get_mut(i))
                {
                    *byte = new & 0x7f;
                }
                *name = String::from_utf8_lossy(&bytes).into_owned();
            }
        }
    }
}
