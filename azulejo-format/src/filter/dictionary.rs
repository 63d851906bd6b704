//! Dictionary: strings as indices into a list of the distinct ones. Page: *Filters, Dictionary
//! Encoding*.
//!
//! The metadata hold the width of an index, the width of a string length, the bytes of the
//! dictionary (`u32`) and the dictionary: length and bytes of each string in order of first
//! appearance. The data are the indices. Numbers inside dictionary and data are big-endian.

use super::string_sink::{StringSink, Width, Words};
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
    sink: &mut impl StringSink,
) -> Result<()> {
    let id_width = Width::read(metadata, "dictionary, width of indices")?;
    let words = Words::read(metadata)?;
    // A number cut short has no place among the others.
    if !input.len().is_multiple_of(id_width.id().into()) {
        let reason = format!("{} bytes are no indices", input.len());
        return Err(DecodeError::filter(NAME, reason));
    }
    match id_width {
        Width::One => sink.push_words(words, input.iter().map(|id| usize::from(*id))),
        Width::Two => {
            let ids = input.as_chunks().0.iter();
            sink.push_words(
                words,
                ids.map(|id| u16::from_le_bytes(*id).swap_bytes().into()),
            )
        }
        Width::Four => {
            let ids = input.as_chunks().0.iter();
            sink.push_words(
                words,
                ids.map(|id| u32::from_le_bytes(*id).swap_bytes() as usize),
            )
        }
        Width::Eight => {
            let ids = input
                .as_chunks()
                .0
                .iter()
                .map(|id| u64::from_le_bytes(*id).swap_bytes());
            // No dictionary has so many words.
            sink.push_words(
                words,
                ids.map(|id| usize::try_from(id).unwrap_or(usize::MAX)),
            )
        }
    }
}

impl<'a> Words<'a> {
    /// Reads the width of lengths, and the dictionary.
    fn read(metadata: &mut ByteReader<'a>) -> Result<Self> {
        let len_width = Width::read(metadata, "dictionary, width of string lengths")?;
        let len = metadata.u32("dictionary, length")?;
        let dictionary = metadata.bytes(len as usize, "dictionary")?;
        let mut r = ByteReader::new(dictionary);
        let (mut places, mut longest) = (Vec::new(), 0);
        while !r.is_empty() {
            let len = len_width.get(&mut r, "dictionary string length")?;
            let at = r.offset() as u32;
            let word = r.bytes_u64(len, "dictionary string")?;
            // Both lie within the dictionary, whose length has 32 bits.
            places.push((at, word.len() as u32));
            longest = longest.max(word.len());
        }
        Ok(Self {
            dictionary,
            places,
            longest,
        })
    }
}

/// Appends the indices of strings, and widths and dictionary to `metadata`.
pub(super) fn encode_strings<'a>(
    strings: impl Iterator<Item = &'a [u8]> + Clone,
    metadata: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let longest = strings.clone().map(<[u8]>::len).max().unwrap_or(0);
    let len_width = Width::for_value(longest as u64);
    let mut known = HashMap::new();
    let mut dictionary = Vec::new();
    let mut before = None;
    let ids: Vec<u64> = strings
        .map(|string| {
            let next = known.len() as u64;
            let id = match before {
                Some((same, id)) if same == string => id,
                _ => *known.entry(string).or_insert_with(|| {
                    len_width.put(string.len() as u64, &mut dictionary);
                    dictionary.extend_from_slice(string);
                    next
                }),
            };
            before = Some((string, id));
            id
        })
        .collect();
    // The reference sizes indices for as many words as there are cells, and reads any width.
    let id_width = Width::for_value((known.len() as u64).saturating_sub(1));
    out.reserve(ids.len() * usize::from(id_width.id()));
    for id in ids {
        id_width.put(id, out);
    }
    let len = u32::try_from(dictionary.len())
        .map_err(|_| DecodeError::filter(NAME, "a dictionary of more than 4 GiB"))?;
    metadata.extend([id_width.id(), len_width.id()]);
    metadata.extend(len.to_le_bytes());
    metadata.extend(dictionary);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::text_sink::TextSink;
    use crate::filter::word_sink::WordSink;

    /// Metadata and data of strings, with indices of a width.
    fn stored(words: &[&[u8]], ids: &[u64], id_width: Width) -> (Vec<u8>, Vec<u8>) {
        let (mut metadata, mut dictionary, mut data) = (vec![], vec![], vec![]);
        for word in words {
            Width::Two.put(word.len() as u64, &mut dictionary);
            dictionary.extend_from_slice(word);
        }
        metadata.extend([id_width.id(), Width::Two.id()]);
        metadata.extend((dictionary.len() as u32).to_le_bytes());
        metadata.extend(dictionary);
        for id in ids {
            id_width.put(*id, &mut data);
        }
        (metadata, data)
    }

    fn decoded(
        (metadata, data): &(Vec<u8>, Vec<u8>),
        bytes: usize,
        cells: usize,
    ) -> Result<(Vec<u8>, Vec<u64>)> {
        let (mut out, mut offsets) = (vec![0xaa; bytes], vec![u64::MAX; cells]);
        let mut sink = TextSink::new(NAME, &mut out, &mut offsets);
        let texts = decode_strings(data, &mut ByteReader::new(metadata), &mut sink)
            .and_then(|()| sink.finish());
        // As words the same, or an error too.
        let mut ids = vec![[0xaa; 4]; cells];
        let mut sink = WordSink::new(NAME, bytes, &mut ids);
        let words = decode_strings(data, &mut ByteReader::new(metadata), &mut sink)
            .and_then(|()| sink.finish());
        assert_eq!(words.is_ok(), texts.is_ok());
        texts?;
        let words = words?;
        let words: Vec<&[u8]> = words.iter().collect();
        let (mut text, mut at) = (Vec::new(), Vec::new());
        for id in ids {
            at.push(text.len() as u64);
            text.extend_from_slice(words[u32::from_le_bytes(id) as usize]);
        }
        assert_eq!((&text, &at), (&out, &offsets));
        Ok((out, offsets))
    }

    fn expected(words: &[&[u8]], ids: &[u64]) -> (Vec<u8>, Vec<u64>) {
        let (mut data, mut offsets) = (Vec::new(), Vec::new());
        for id in ids {
            offsets.push(data.len() as u64);
            data.extend_from_slice(words[*id as usize]);
        }
        (data, offsets)
    }

    #[test]
    fn indices_of_any_width_and_words_of_any_length_are_read() {
        let text: Vec<u8> = (0..200u8).collect();
        // The longest word decides how words are copied.
        for longest in [
            0, 1, 4, 7, 8, 9, 11, 12, 13, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200,
        ] {
            let words = [&text[..longest], &text[..longest / 2], &text[..0]];
            let ids: Vec<u64> = (0..50u64).map(|i| i * i % 3).collect();
            for width in [Width::One, Width::Two, Width::Four, Width::Eight] {
                for cells in [0, 1, 2, 3, 49, 50] {
                    let ids = &ids[..cells];
                    let stored = stored(&words, ids, width);
                    let (data, offsets) = expected(&words, ids);
                    let read = decoded(&stored, data.len(), cells);
                    assert_eq!(read, Ok((data.clone(), offsets)), "{longest} {width:?}");
                    // Room for another size is an error, not a part.
                    assert!(decoded(&stored, data.len() + 1, cells).is_err());
                    assert!(decoded(&stored, data.len(), cells + 1).is_err());
                    if cells > 0 {
                        assert!(decoded(&stored, data.len(), cells - 1).is_err());
                    }
                    if !data.is_empty() {
                        assert!(decoded(&stored, data.len() - 1, cells).is_err());
                    }
                }
            }
        }
    }

    #[test]
    fn indices_without_a_word_and_halves_of_indices_are_errors() {
        for width in [Width::One, Width::Two, Width::Four, Width::Eight] {
            let mut two = stored(&[b"a", b"bc"], &[0, 1, 2], width);
            assert!(decoded(&two, 5, 3).is_err());
            two = stored(&[b"a", b"bc"], &[0, 1], width);
            assert!(decoded(&two, 3, 2).is_ok());
            if width != Width::One {
                two.1.push(0);
                assert!(decoded(&two, 3, 2).is_err());
            }
        }
        let most = stored(&[b"a"], &[u64::MAX], Width::Eight);
        assert!(decoded(&most, 1, 1).is_err());
    }

    #[test]
    fn indices_are_as_wide_as_the_last_word_needs() {
        for (words, width) in [
            (1, Width::One),
            (256, Width::One),
            (257, Width::Two),
            (65_536, Width::Two),
            (65_537, Width::Four),
        ] {
            // Each twice in a row, and all of them twice.
            let texts: Vec<String> = (0..words * 4)
                .map(|i| format!("{}", i / 2 % words))
                .collect();
            let strings = texts.iter().map(String::as_bytes);
            let (mut metadata, mut data) = (Vec::new(), Vec::new());
            encode_strings(strings, &mut metadata, &mut data).unwrap();
            assert_eq!(metadata[0], width.id());
            assert_eq!(data.len(), texts.len() * usize::from(width.id()));
            let whole = texts.concat();
            let (read, offsets) = decoded(&(metadata, data), whole.len(), texts.len()).unwrap();
            assert!(read == whole.as_bytes());
            let lens = offsets.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(
                lens.eq(texts
                    .iter()
                    .rev()
                    .skip(1)
                    .rev()
                    .map(|text| text.len() as u64))
            );
        }
    }
}
