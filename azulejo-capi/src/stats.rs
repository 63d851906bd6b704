//! Statistics: what contexts and queries count while statistics are on, as JSON in the reference's
//! shape and, where the same thing is counted, under its names.

mod storage;

pub use storage::CountingStorage;

use crate::boundary::{InOut, Opaque, Out, Pointer, capi_plain};
use crate::strings::{lock, to_c};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, c_char};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

static ENABLED: AtomicBool = AtomicBool::new(false);
/// Those of all contexts that there are.
static CONTEXTS: Mutex<Vec<Weak<Stats>>> = Mutex::new(Vec::new());
/// Strings handed out, by their addresses.
static OWNED: Mutex<Option<HashMap<usize, CString>>> = Mutex::new(None);

/// A string that the caller frees with `tiledb_stats_free_str`.
pub fn owned_text(text: &str) -> Pointer<c_char> {
    let text = to_c(text);
    let pointer = text.as_ptr();
    lock(&OWNED)
        .get_or_insert_with(HashMap::new)
        .insert(pointer as usize, text);
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

/// Whether statistics are on.
pub fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// What one context or query has counted.
#[derive(Debug, Default)]
pub struct Stats {
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    /// Seconds, and how often.
    timers: BTreeMap<String, (f64, u64)>,
    counters: BTreeMap<String, u64>,
}

impl Stats {
    /// Statistics that the dumps of all contexts show too.
    pub fn of_context() -> Arc<Self> {
        let stats = Arc::new(Self::default());
        let mut contexts = lock(&CONTEXTS);
        contexts.retain(|stats| stats.strong_count() > 0);
        contexts.push(Arc::downgrade(&stats));
        stats
    }

    /// Adds to a counter, if statistics are on.
    pub fn count(&self, name: &str, number: u64) {
        if is_enabled() {
            *lock(&self.counted)
                .counters
                .entry(format!("Context.{name}"))
                .or_default() += number;
        }
    }

    /// Adds to a timer, if statistics are on.
    pub fn time(&self, name: &str, time: Duration) {
        if is_enabled() {
            let mut counted = lock(&self.counted);
            let (seconds, times) = counted.timers.entry(format!("Context.{name}")).or_default();
            *seconds += time.as_secs_f64();
            *times += 1;
        }
    }

    fn reset(&self) {
        *lock(&self.counted) = Counted::default();
    }

    /// As JSON, each line behind `indent`; empty if nothing was counted.
    pub fn json(&self, indent: &str) -> String {
        let counted = lock(&self.counted);
        if counted.timers.is_empty() && counted.counters.is_empty() {
            return String::new();
        }
        let mut timers = Vec::new();
        for (name, (seconds, times)) in counted.timers.iter().rev() {
            timers.push(format!("{indent}    \"{name}.sum\": {seconds}"));
            timers.push(format!(
                "{indent}    \"{name}.avg\": {}",
                seconds / (*times).max(1) as f64
            ));
        }
        let counters: Vec<String> = counted
            .counters
            .iter()
            .rev()
            .map(|(name, number)| format!("{indent}    \"{name}\": {number}"))
            .collect();
        let mut json = format!("{indent}{{\n");
        for (what, lines) in [("timers", timers), ("counters", counters)] {
            let _ = writeln!(json, "{indent}  \"{what}\": {{");
            if !lines.is_empty() {
                let _ = writeln!(json, "{}", lines.join(",\n"));
            }
            let _ = writeln!(json, "{indent}  }},");
        }
        let _ = writeln!(
            json,
            "{indent}  \"library\": \"azulejo {}\"",
            env!("CARGO_PKG_VERSION")
        );
        json.push_str(indent);
        json.push('}');
        json
    }
}

/// Those of all contexts.
fn json() -> String {
    let contexts: Vec<Arc<Stats>> = lock(&CONTEXTS).iter().filter_map(Weak::upgrade).collect();
    let parts: Vec<String> = contexts
        .iter()
        .map(|stats| stats.json("  "))
        .filter(|json| !json.is_empty())
        .collect();
    format!("[\n{}\n]\n", parts.join(",\n"))
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
        enabled.set(is_enabled().into())?;
    }

    /// Back to zero.
    fn tiledb_stats_reset() {
        let contexts: Vec<Arc<Stats>> = lock(&CONTEXTS).iter().filter_map(Weak::upgrade).collect();
        contexts.iter().for_each(|stats| stats.reset());
    }

    /// Statistics as a string, which `tiledb_stats_free_str` frees.
    fn tiledb_stats_dump_str(out: Out<Pointer<c_char>>) {
        out.set(owned_text(&json()))?;
    }

    /// Statistics as a string, which `tiledb_stats_free_str` frees.
    fn tiledb_stats_raw_dump_str(out: Out<Pointer<c_char>>) {
        out.set(owned_text(&json()))?;
    }

    /// Frees a string of statistics.
    fn tiledb_stats_free_str(out: InOut<Pointer<c_char>>) {
        free_text(&out);
    }

    /// Writes statistics to a `FILE*`; to the standard output if it is null.
    fn tiledb_stats_dump(out: Opaque) {
        out.put_text(&json())?;
    }

    /// Writes statistics to a `FILE*`; to the standard output if it is null.
    fn tiledb_stats_raw_dump(out: Opaque) {
        out.put_text(&json())?;
    }
}
