//! Statistics: the functions are there and remember whether they are on; this library counts nothing yet.

use crate::boundary::{InOut, Opaque, Out, Pointer, capi_plain};
use crate::strings::{lock, to_c};
use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

static ENABLED: AtomicBool = AtomicBool::new(false);
/// Strings handed out, by their addresses.
static OWNED: Mutex<Option<HashMap<usize, CString>>> = Mutex::new(None);

/// A string that the caller frees with `tiledb_stats_free_str`.
pub fn owned_text(text: &str) -> Pointer<c_char> {
    let text = to_c(text);
    let pointer = text.as_ptr();
    lock(&OWNED).get_or_insert_with(HashMap::new).insert(pointer as usize, text);
    Pointer(pointer)
}

/// Frees what [`owned_text`] handed out; other pointers are left alone.
pub fn free_text(pointer: &InOut<Pointer<c_char>>) {
    if let Ok(Pointer(text)) = pointer.get() {
        if let Some(owned) = lock(&OWNED).as_mut() {
            owned.remove(&(text as usize));
        }
        let _ = pointer.set(Pointer::default());
    }
}

/// What statistics look like: names the library that gathers them.
fn json() -> &'static str {
    "[\n  {\n    \"timers\": {\n    },\n    \"counters\": {\n    }\n  }\n]\n"
}

capi_plain! {
    /// Turns statistics on.
    fn tiledb_stats_enable() {
        ENABLED.store(true, Ordering::Relaxed);
    }

    /// Turns statistics off.
    fn tiledb_stats_disable() {
        ENABLED.store(false, Ordering::Relaxed);
    }

    /// Whether statistics are on.
    fn tiledb_stats_is_enabled(enabled: Out<u8>) {
        enabled.set(ENABLED.load(Ordering::Relaxed).into())?;
    }

    /// Back to zero.
    fn tiledb_stats_reset() {}

    /// Statistics as a string, which `tiledb_stats_free_str` frees.
    fn tiledb_stats_dump_str(out: Out<Pointer<c_char>>) {
        out.set(owned_text(json()))?;
    }

    /// Statistics as a string, which `tiledb_stats_free_str` frees.
    fn tiledb_stats_raw_dump_str(out: Out<Pointer<c_char>>) {
        out.set(owned_text(json()))?;
    }

    /// Frees a string of statistics.
    fn tiledb_stats_free_str(out: InOut<Pointer<c_char>>) {
        free_text(&out);
    }

    /// Writes statistics to a `FILE*`.
    fn tiledb_stats_dump(out: Opaque) {
        out.put_text(json())?;
    }

    /// Writes statistics to a `FILE*`.
    fn tiledb_stats_raw_dump(out: Opaque) {
        out.put_text(json())?;
    }
}
