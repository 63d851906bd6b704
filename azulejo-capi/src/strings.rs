//! Strings and bytes handed out: `tiledb_string_t`, and values that live as long as the handle that they are asked of.

use crate::boundary::{In, InOut, Kind, Out, Pointer, Ptr, Str, capi_plain};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A C string; what follows a NUL is lost.
pub fn to_c(text: &str) -> CString {
    let end = text.bytes().position(|b| b == 0).unwrap_or(text.len());
    CString::new(&text.as_bytes()[..end]).unwrap_or_default()
}

/// Locks, also what a panic left locked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Values that stay where they are until the handle is freed. Equal values are kept once.
#[derive(Debug, Default)]
pub struct Keep {
    values: Mutex<HashMap<Vec<u8>, Box<[u64]>>>,
}

impl Keep {
    /// Keeps bytes, aligned for every type, a NUL behind them.
    pub fn bytes(&self, bytes: &[u8]) -> Pointer {
        let mut values = lock(&self.values);
        let kept = values.entry(bytes.to_vec()).or_insert_with(|| {
            let mut kept = vec![0u64; bytes.len() / 8 + 1].into_boxed_slice();
            for (word, chunk) in kept.iter_mut().zip(bytes.chunks(8)) {
                let mut raw = [0u8; 8];
                raw[..chunk.len()].copy_from_slice(chunk);
                *word = u64::from_le_bytes(raw);
            }
            kept
        });
        Pointer(kept.as_ptr().cast())
    }

    /// Keeps a string.
    pub fn text(&self, text: &str) -> Str {
        Pointer(self.bytes(text.as_bytes()).0.cast())
    }
}

/// `tiledb_string_t`.
#[derive(Debug)]
pub struct StringHandle {
    value: Vec<u8>,
}

impl Kind for StringHandle {
    const NAME: &'static str = "string";
}

impl StringHandle {
    /// A string to hand out; C gets its length too, but some callers rely on a NUL behind it.
    pub fn new(value: impl Into<Vec<u8>>) -> Self {
        let mut value = value.into();
        value.push(0);
        Self { value }
    }
}

capi_plain! {
    /// The string's bytes and their number; they live as long as the handle.
    fn tiledb_string_view(s: In<StringHandle>, data: Out<Str>, length: Out<usize>) {
        let s = s.get()?;
        data.set(Pointer(s.value.as_ptr().cast()))?;
        length.set(s.value.len() - 1)?;
    }

    /// Frees a string.
    fn tiledb_string_free(s: InOut<Ptr<StringHandle>>) {
        s.free();
    }
}
