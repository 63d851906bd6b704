//! Sequences of calls of the C API, on arrays in memory, with any handles in any order.
//!
//! A C caller keeps to a contract: pointers are null or to memory of the size that it says. So
//! every pointer is to room of its own, larger than any number that is passed along; handles are
//! those that the library gave, of any kind, freed or not.
//!
//! What pointers lead to may be read as a name, and a name may be a path on disk. None leads out of a
//! folder of its own: words are one name each, and what is not a word begins with a byte that is no
//! character of a path's own ([`fill`]).
#![allow(unsafe_code, reason = "what is called is a C API")]

use crate::capi::{self, Ctx, FUNCTIONS, Function, invoke};
use crate::made::Dice;
use std::ffi::CStr;
use std::sync::{LazyLock, Once};

/// Bytes of the room behind a pointer.
const ROOM: usize = 4096;
/// Calls of a sequence.
const MOST: usize = 60;
/// Handles at hand.
const HANDLES: usize = 24;

/// Parts of names of functions that are not called: those that take arrays of pointers, functions,
/// `FILE*`, pointers to several words, or print, or change the process or what lies on its disk.
const LEFT_OUT: &[&str] = &[
    "_dump",
    "_async",
    "_walk",
    "_ls",
    "_list_",
    "set_log",
    "consolidate_fragments",
    "delete_fragments_list",
    "callback",
    "filestore",
    "vfs",
    "stats",
    "heap_profiler",
    "save_to_file",
    "load_from_file",
    "profile",
    "deserialize",
    "handle_",
    "cancel",
    "ctx_free",
    "ctx_alloc",
    "buffer_set_data",
    "consolidation_plan_create_with_mbr",
];

/// Parts of names of functions whose last pointer gets a handle.
const GIVING: &[&str] = &[
    "_alloc",
    "_load",
    "get_schema",
    "get_domain",
    "attribute_from",
    "dimension_from",
    "filter_list",
    "filter_from",
    "get_config",
    "get_subarray",
    "get_array",
    "get_default_channel",
    "create_unary_aggregate",
    "get_field",
    "field_channel",
    "get_enumeration",
    "current_domain_create",
    "clone",
    "combine",
    "negate",
    "extend",
];

/// What pointers begin with: names in memory, and of files in the target's folder.
const WORDS: [&CStr; 12] = [
    c"",
    c"a",
    c"b",
    c"x",
    c"mem://a",
    c"mem://b",
    c"mem://a/b",
    c"__timestamps",
    c"sm.memory_budget",
    c"10",
    c"row-major",
    c"fragments",
];

static CALLED: LazyLock<Vec<&'static Function>> = LazyLock::new(|| {
    let all = FUNCTIONS.iter();
    all.filter(|f| !LEFT_OUT.iter().any(|part| f.name.contains(part)))
        .collect()
});

static FREEING: LazyLock<Vec<&'static Function>> = LazyLock::new(|| {
    let all = FUNCTIONS.iter();
    all.filter(|f| f.name.ends_with("_free") && f.letters == "p" && f.name != "tiledb_ctx_free")
        .collect()
});

/// Room that lives until the sequence is over, for a library that keeps pointers to it.
struct Rooms(Vec<Box<[u64]>>);

impl Rooms {
    fn room(&mut self, fill: impl FnOnce(&mut [u8])) -> *mut u64 {
        let mut room = vec![0u64; ROOM / 8].into_boxed_slice();
        let mut bytes = [0u8; 64];
        fill(&mut bytes);
        for (word, chunk) in room.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(chunk.try_into().unwrap_or_default());
        }
        let pointer = room.as_mut_ptr();
        self.0.push(room);
        pointer
    }
}

/// The bytes of one call: `choices`, one for each parameter, as [`calls`] takes them.
///
/// # Panics
/// For a function that is not called.
#[must_use]
pub fn encode(name: &str, choices: &[u8]) -> Vec<u8> {
    let index = CALLED.iter().position(|f| f.name == name);
    let index = index.unwrap_or_else(|| panic!("{name} is not called"));
    assert_eq!(CALLED[index].letters.len(), choices.len(), "{name}");
    let mut bytes = vec![(index >> 8) as u8, index as u8];
    bytes.extend(choices);
    bytes
}

/// Function, then what it is called with, again and again.
///
/// # Panics
/// Without a folder of its own.
pub fn calls(data: &[u8]) {
    static FOLDER: Once = Once::new();
    FOLDER.call_once(|| {
        let folder = std::env::temp_dir().join(format!("azulejo-calls-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder of its own");
        std::env::set_current_dir(&folder).expect("that folder");
    });
    thread_local! {
        static CTX: Ctx = Ctx::with(&[
            (c"sm.compute_concurrency_level", c"1"),
            (c"sm.io_concurrency_level", c"1"),
            (c"sm.mem.total_budget", c"16777216"),
        ]);
    }
    CTX.with(|ctx| sequence(ctx, &mut Dice::new(data)));
}

fn sequence(ctx: &Ctx, dice: &mut Dice<'_>) {
    for uri in [c"mem://a", c"mem://b"] {
        capi::raw!(tiledb_object_remove, ctx.0, uri);
    }
    let mut rooms = Rooms(Vec::new());
    let mut handles: Vec<u64> = Vec::new();
    for _ in 0..MOST {
        if dice.is_empty() {
            break;
        }
        let f = CALLED[dice.below(CALLED.len())];
        let (mut last, mut before) = (std::ptr::null_mut(), 0);
        let mut words = Vec::new();
        for letter in f.letters.chars() {
            let choice = dice.byte();
            words.push(match letter {
                'c' => ctx.0 as u64,
                'h' => match handles.len() {
                    0 => 0,
                    // The latest handle is the likeliest to be of use.
                    n => handles[n - 1 - usize::from(choice) % n],
                },
                'p' if choice == 0xff => 0,
                'p' => {
                    last = rooms.room(|room| fill(room, f, choice, &handles));
                    // SAFETY: the room was just made.
                    before = unsafe { last.read() };
                    last as u64
                }
                _ => u64::from(choice),
            });
        }
        invoke(f.address, &words);
        let gives = GIVING.iter().any(|part| f.name.contains(part));
        if gives && !last.is_null() && !f.name.contains("non_empty") {
            // SAFETY: the room is there until the sequence is over.
            let given = unsafe { last.read_volatile() };
            // Addresses, and not what the room began with: also not a handle of which a number has
            // taken one half.
            let is_half = before >> 32 > 0 && before >> 32 == given >> 32;
            if given > 1 << 32 && given.is_multiple_of(8) && !is_word(given) && !is_half {
                handles.push(given);
            }
        }
        if handles.len() > HANDLES {
            free(handles.remove(0));
        }
    }
    handles.into_iter().rev().for_each(free);
}

/// Whether it is the beginning of one of the words.
fn is_word(given: u64) -> bool {
    let bytes = given.to_ne_bytes();
    bytes
        .iter()
        .all(|byte| *byte == 0 || byte.is_ascii_graphic())
}

fn fill(room: &mut [u8], f: &Function, choice: u8, handles: &[u64]) {
    let word = match choice {
        // What is freed is a handle or null: another word would be taken for an address.
        _ if f.name.ends_with("_free") => handles.get(usize::from(choice)).copied().or(Some(0)),
        // Where sizes are asked for, they are right.
        _ if f.name.ends_with("_buffer") && choice >= 32 => Some(u64::from(choice) * 8),
        0..64 => {
            let text = WORDS[usize::from(choice) % WORDS.len()].to_bytes();
            room[..text.len()].copy_from_slice(text);
            None
        }
        // No letter, point or slash: read as a name, it is a file in the target's folder.
        64..96 => Some(u64::from(choice - 64)),
        96..128 => Some(u64::from(choice) + 32),
        // Addresses are multiples of eight, which neither a point nor a slash is.
        128..192 => handles.get(usize::from(choice - 128)).copied(),
        _ => {
            // Two bounds: of a domain, of a range.
            room[8..16].copy_from_slice(&u64::from(choice).to_ne_bytes());
            Some(0)
        }
    };
    if let Some(word) = word {
        room[..8].copy_from_slice(&word.to_ne_bytes());
    }
}

/// Frees a handle whatever its kind: to the other functions it is none of theirs.
fn free(handle: u64) {
    for f in FREEING.iter() {
        let mut place = handle;
        invoke(f.address, &[std::ptr::from_mut(&mut place) as u64]);
        if place == 0 {
            return;
        }
    }
}
