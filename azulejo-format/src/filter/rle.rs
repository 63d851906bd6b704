//! RLE: run lengths of cells, and of strings. Pages: *Tile, Compression Filters*; string form:
//! *Filter Pipeline*.
//!
//! Cells: each run is the cell's bytes and its length as big-endian `u16`. Strings (which keep
//! their offsets, see [`Pipeline::keeps_offsets_in_data`](super::Pipeline::keeps_offsets_in_data)):
//! each run is its length, the string's length (both big-endian, of a width that the metadata
//! names) and the string.

use super::string_sink::{StringSink, Width};
use crate::error::{DecodeError, Result};
use crate::wire::ByteReader;

pub(super) const NAME: &str = "RLE";

/// Fills `out` from runs of cells of `cell_size` bytes.
pub(super) fn decompress(cell_size: usize, input: &[u8], out: &mut [u8]) -> Result<()> {
    let runs = input.chunks_exact(cell_size + 2);
    if !runs.remainder().is_empty() {
        return Err(DecodeError::filter(
            NAME,
            format!("{} bytes are no runs of {cell_size}", input.len()),
        ));
    }
    let mut out = out;
    for run in runs {
        let Some((cell, len)) = run.split_last_chunk::<2>() else {
            continue;
        };
        let len = usize::from(len[0]) << 8 | usize::from(len[1]);
        let Some((place, rest)) = out.split_at_mut_checked(len * cell_size) else {
            return Err(DecodeError::filter(NAME, "runs longer than the part"));
        };
        fill(place, cell);
        out = rest;
    }
    if out.is_empty() {
        Ok(())
    } else {
        Err(DecodeError::filter(NAME, "runs shorter than the part"))
    }
}

/// Repeats `cell` over `place`, whose length is a multiple of the cell's.
fn fill(place: &mut [u8], cell: &[u8]) {
    fn fill_cells<const N: usize>(place: &mut [u8], cell: &[u8]) {
        if let Some(cell) = cell.first_chunk::<N>() {
            place.as_chunks_mut::<N>().0.fill(*cell);
        }
    }
    match cell.len() {
        1 => fill_cells::<1>(place, cell),
        2 => fill_cells::<2>(place, cell),
        4 => fill_cells::<4>(place, cell),
        8 => fill_cells::<8>(place, cell),
        len => place
            .chunks_exact_mut(len.max(1))
            .for_each(|target| target.copy_from_slice(cell)),
    }
}

/// Appends the runs of cells of `cell_size` bytes.
pub(super) fn compress(cell_size: usize, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if !input.len().is_multiple_of(cell_size) {
        let reason = format!("{} bytes are no whole cells of {cell_size}", input.len());
        return Err(DecodeError::filter(NAME, reason));
    }
    match cell_size {
        1 => compress_cells(input, out),
        2 => compress_cells(input.as_chunks::<2>().0, out),
        4 => compress_cells(input.as_chunks::<4>().0, out),
        8 => compress_cells(input.as_chunks::<8>().0, out),
        _ => {
            let mut rest = input;
            while !rest.is_empty() {
                let (cell, _) = rest.split_at(cell_size);
                let run = rest
                    .chunks_exact(cell_size)
                    .take(MAX_RUN)
                    .take_while(|next| *next == cell)
                    .count();
                push_run(cell, run, out);
                rest = rest.get(run * cell_size..).unwrap_or_default();
            }
        }
    }
    Ok(())
}

/// The longest run that its two bytes can count.
const MAX_RUN: usize = 65_535;

/// A cell of known size.
trait Cell: Copy + PartialEq {
    fn bytes(&self) -> &[u8];
}

impl Cell for u8 {
    fn bytes(&self) -> &[u8] {
        std::slice::from_ref(self)
    }
}

impl<const N: usize> Cell for [u8; N] {
    fn bytes(&self) -> &[u8] {
        self
    }
}

fn compress_cells<C: Cell>(mut cells: &[C], out: &mut Vec<u8>) {
    /// Cells that are compared without a branch in between.
    const STRIDE: usize = 32;
    while let Some(cell) = cells.first() {
        let longest = cells.get(..MAX_RUN).unwrap_or(cells);
        let same = |stride: &&[C]| stride.iter().fold(true, |same, next| same & (next == cell));
        let whole = longest.chunks_exact(STRIDE).take_while(same).count() * STRIDE;
        let rest = longest.get(whole..).unwrap_or_default();
        let run = whole + rest.iter().take_while(|next| *next == cell).count();
        push_run(cell.bytes(), run, out);
        cells = cells.get(run..).unwrap_or_default();
    }
}

fn push_run(cell: &[u8], len: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(cell);
    out.extend([(len >> 8) as u8, (len & 0xff) as u8]);
}

/// Unpacks runs of strings; `metadata` stands at the widths.
pub(super) fn decode_strings(
    input: &[u8],
    metadata: &mut ByteReader<'_>,
    sink: &mut impl StringSink,
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
    let Some(mut current) = strings.next() else {
        return;
    };
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
