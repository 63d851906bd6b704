//! Dictionary: strings as indices into a list of the distinct ones. Page: *Filters, Dictionary
//! Encoding*.
//!
//! The metadata hold the width of an index, the width of a string length, the bytes of the
//! dictionary (`u32`) and the dictionary: length and bytes of each string in order of first
//! appearance. The data are the indices. Numbers inside dictionary and data are big-endian.

use super::string_sink::{StringSink, Width};
use crate::error::{DecodeError, Result};
use crate::wire::ByteReader;
use std::collections::HashMap;

pub(super) const NAME: &str = "DICTIONARY_ENCODING";

/// The error of a dictionary of other data than strings with their offsets.
pub(super) fn only_for_strings() -> DecodeError {
    let reason = "it works on variable-length strings only, as the first filter";
    DecodeError::filter(NAME, reason)
}

/// Unpacks strings; `metadata` stands at the widths.
pub(super) fn decode_strings(
    input: &[u8],
    metadata: &mut ByteReader<'_>,
    sink: &mut StringSink<'_>,
) -> Result<()> {
    let id_width = Width::read(metadata, "dictionary, width of indices")?;
    let len_width = Width::read(metadata, "dictionary, width of string lengths")?;
    let len = metadata.u32("dictionary, length")?;
    let mut r = ByteReader::new(metadata.bytes(len as usize, "dictionary")?);
    let mut words = Vec::new();
    while !r.is_empty() {
        let len = len_width.get(&mut r, "dictionary string length")?;
        words.push(r.bytes_u64(len, "dictionary string")?);
    }
    let mut r = ByteReader::new(input);
    while !r.is_empty() {
        let id = id_width.get(&mut r, "dictionary index")?;
        let word = usize::try_from(id)
            .ok()
            .and_then(|id| words.get(id))
            .ok_or_else(|| {
                DecodeError::filter(
                    NAME,
                    format!("index {id} into a dictionary of {}", words.len()),
                )
            })?;
        sink.push_run(word, 1)?;
    }
    Ok(())
}

/// Appends the indices of strings, and widths and dictionary to `metadata`.
pub(super) fn encode_strings<'a>(
    strings: impl Iterator<Item = &'a [u8]> + Clone,
    metadata: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut count = 0;
    let mut longest = 0;
    for string in strings.clone() {
        count += 1;
        longest = longest.max(string.len() as u64);
    }
    // The reference sizes indices for as many words as there are cells.
    let id_width = Width::for_value(count);
    let len_width = Width::for_value(longest);
    let mut ids = HashMap::new();
    let mut dictionary = Vec::new();
    for string in strings {
        let next = ids.len() as u64;
        let id = *ids.entry(string).or_insert_with(|| {
            len_width.put(string.len() as u64, &mut dictionary);
            dictionary.extend_from_slice(string);
            next
        });
        id_width.put(id, out);
    }
    let len = u32::try_from(dictionary.len())
        .map_err(|_| DecodeError::filter(NAME, "a dictionary of more than 4 GiB"))?;
    metadata.extend([id_width.id(), len_width.id()]);
    metadata.extend(len.to_le_bytes());
    metadata.extend(dictionary);
    Ok(())
}
