//! Strings and bytes handed out: `tiledb_string_t`, and values that live as long as the handle that
//! they are asked of.

use crate::boundary::{In, InOut, Kind, Out, Pointer, Ptr, Str, capi_plain};
use std::collections::HashMap;
use std::ffi::CString;
use std::hash::{DefaultHasher, Hash, Hasher};
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
    values: Mutex<HashMap<Mark, Vec<Box<[u64]>>>>,
}

/// What tells values apart at a glance, also those of many megabytes: a hash of their length, first
/// and last bytes.
type Mark = u64;

fn mark(bytes: &[u8]) -> Mark {
    /// Values are told apart by so many bytes at each end.
    const END: usize = 2048;
    let mut hasher = DefaultHasher::new();
    bytes.len().hash(&mut hasher);
    bytes[..bytes.len().min(END)].hash(&mut hasher);
    bytes[bytes.len().saturating_sub(END)..].hash(&mut hasher);
    hasher.finish()
}

/// The first bytes, or all of them and zeros.
fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    std::array::from_fn(|i| bytes.get(i).copied().unwrap_or_default())
}

/// The bytes as words, of which the last one ends with a NUL.
fn words(bytes: &[u8]) -> Box<[u64]> {
    let (whole, rest) = bytes.as_chunks();
    let mut words = Vec::with_capacity(whole.len() + 1);
    words.extend(whole.iter().map(|word| u64::from_le_bytes(*word)));
    words.push(u64::from_le_bytes(padded(rest)));
    words.into()
}

/// Whether it is these bytes that are kept there.
fn holds(kept: &[u64], bytes: &[u8]) -> bool {
    let (whole, rest) = bytes.as_chunks();
    let ahead = kept.len() == whole.len() + 1
        && kept
            .iter()
            .zip(whole)
            .all(|(kept, word)| *kept == u64::from_le_bytes(*word));
    ahead && kept.last() == Some(&u64::from_le_bytes(padded(rest)))
}

impl Keep {
    /// Keeps bytes, aligned for every type, a NUL behind them.
    pub fn bytes(&self, bytes: &[u8]) -> Pointer {
        let mut values = lock(&self.values);
        let alike = values.entry(mark(bytes)).or_default();
        let at = alike
            .iter()
            .position(|kept| holds(kept, bytes))
            .unwrap_or_else(|| {
                alike.push(words(bytes));
                alike.len() - 1
            });
        Pointer(alike[at].as_ptr().cast())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_kept_once_and_others_apart() {
        let keep = Keep::default();
        let values: Vec<Vec<u8>> = (0..100u8).map(|i| (0..i).collect()).collect();
        let mut inner = vec![7; 1000];
        inner[500] = 8;
        let values: Vec<Vec<u8>> = values
            .into_iter()
            .chain([vec![7; 1000], inner, vec![9], vec![0, 0]])
            .collect();
        let pointers: Vec<*const u8> = values
            .iter()
            .map(|value| keep.bytes(value).0.cast())
            .collect();
        for (i, (value, pointer)) in values.iter().zip(&pointers).enumerate() {
            assert_eq!(keep.bytes(value).0.cast(), *pointer);
            assert_eq!(pointers.iter().position(|p| p == pointer), Some(i));
            assert!(pointer.addr().is_multiple_of(8));
            // SAFETY: the value, with a NUL behind it, is kept as long as `keep`.
            let kept = unsafe { std::slice::from_raw_parts(*pointer, value.len() + 1) };
            assert_eq!((&kept[..value.len()], kept[value.len()]), (&value[..], 0));
        }
    }
}
