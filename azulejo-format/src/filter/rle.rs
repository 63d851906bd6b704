//! RLE: run lengths of cells, and of strings. Pages: *Tile, Compression Filters*; string form: *Filter Pipeline*.
//!
//! Cells: each run is the cell's bytes and its length as big-endian `u16`. Strings (which keep their offsets, see
//! [`Pipeline::keeps_offsets_in_data`](super::Pipeline::keeps_offsets_in_data)): each run is its length, the string's length
//! (both big-endian, of a width that the metadata names) and the string.

use super::strings::{StringSink, Width};
use crate::error::{DecodeError, Result};
use crate::wire::ByteReader;

const NAME: &str = "RLE";

/// Fills `out` from runs of cells of `cell_size` bytes.
pub(super) fn decompress(cell_size: usize, input: &[u8], out: &mut [u8]) -> Result<()> {
    let runs = input.chunks_exact(cell_size + 2);
    if !runs.remainder().is_empty() {
        return Err(DecodeError::filter(NAME, format!("{} bytes are no runs of {cell_size}", input.len())));
    }
    let mut out = out;
    for run in runs {
        let Some((cell, len)) = run.split_last_chunk::<2>() else { continue };
        let len = usize::from(len[0]) << 8 | usize::from(len[1]);
        let Some((place, rest)) = out.split_at_mut_checked(len * cell_size) else {
            return Err(DecodeError::filter(NAME, "runs longer than the part"));
        };
        fill(place, cell);
        out = rest;
    }
    if out.is_empty() { Ok(()) } else { Err(DecodeError::filter(NAME, "runs shorter than the part")) }
}

/// Repeats `cell` over `place`, whose length is a multiple of the cell's.
fn fill(place: &mut [u8], cell: &[u8]) {
    if let [byte] = cell {
        place.fill(*byte);
        return;
    }
    for target in place.chunks_exact_mut(cell.len().max(1)) {
        target.copy_from_slice(cell);
    }
}

/// Appends the runs of cells of `cell_size` bytes.
pub(super) fn compress(cell_size: usize, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut cells = input.chunks_exact(cell_size);
    if !cells.remainder().is_empty() {
        let reason = format!("{} bytes are no whole cells of {cell_size}", input.len());
        return Err(DecodeError::filter(NAME, reason));
    }
    let Some(mut current) = cells.next() else { return Ok(()) };
    let mut len = 1u16;
    for cell in cells {
        if cell == current && len < u16::MAX {
            len += 1;
            continue;
        }
        push_run(current, len, out);
        (current, len) = (cell, 1);
    }
    push_run(current, len, out);
    Ok(())
}

fn push_run(cell: &[u8], len: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(cell);
    out.extend([(len >> 8) as u8, (len & 0xff) as u8]);
}

/// Unpacks runs of strings; `metadata` stands at the widths.
pub(super) fn decode_strings(
    input: &[u8],
    metadata: &mut ByteReader<'_>,
    sink: &mut StringSink<'_>,
) -> Result<()> {
    let run_width = Width::read(metadata, "RLE, width of run lengths")?;
    let len_width = Width::read(metadata, "RLE, width of string lengths")?;
    let mut r = ByteReader::new(input);
    while !r.is_empty() {
        let run = run_width.get(&mut r, "RLE run length")?;
        let len = len_width.get(&mut r, "RLE string length")?;
        let string = r.bytes_u64(len, "RLE string")?;
        sink.push_run(string, run)?;
    }
    Ok(())
}

/// Appends the runs of strings, and their widths to `metadata`.
pub(super) fn encode_strings<'a>(
    strings: impl Iterator<Item = &'a [u8]> + Clone,
    metadata: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    let mut longest_run = 0;
    let mut longest_string = 0;
    for_each_run(strings.clone(), |string, run| {
        longest_run = longest_run.max(run);
        longest_string = longest_string.max(string.len() as u64);
    });
    let run_width = Width::for_value(longest_run);
    let len_width = Width::for_value(longest_string);
    metadata.extend([run_width.id(), len_width.id()]);
    for_each_run(strings, |string, run| {
        run_width.put(run, out);
        len_width.put(string.len() as u64, out);
        out.extend_from_slice(string);
    });
}

fn for_each_run<'a>(mut strings: impl Iterator<Item = &'a [u8]>, mut f: impl FnMut(&'a [u8], u64)) {
    let Some(mut current) = strings.next() else { return };
    let mut run = 1u64;
    for string in strings {
        if string == current {
            run += 1;
        } else {
            f(current, run);
            (current, run) = (string, 1);
        }
    }
    f(current, run);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_split_at_65535() {
        let input = vec![7u8; 65_536];
        let mut out = Vec::new();
        compress(1, &input, &mut out).unwrap();
        assert_eq!(out, [7, 0xff, 0xff, 7, 0, 1]);
        let mut back = vec![0; input.len()];
        decompress(1, &out, &mut back).unwrap();
        assert_eq!(back, input);
    }

    #[test]
    fn runs_must_fit_exactly() {
        let runs = [1, 2, 0, 3];
        let mut out = [0; 6];
        decompress(2, &runs, &mut out).unwrap();
        assert_eq!(out, [1, 2, 1, 2, 1, 2]);
        assert!(decompress(2, &runs, &mut [0; 4]).is_err());
        assert!(decompress(2, &runs, &mut [0; 8]).is_err());
        assert!(decompress(3, &runs, &mut [0; 8]).is_err());
        assert!(compress(4, &[0; 6], &mut Vec::new()).is_err());
    }
}
