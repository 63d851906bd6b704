//! Runs of equal cells: what unwritten cells read as.

/// Fills `out` with repetitions of `cell`; a last part shorter than a cell takes the cell's first
/// bytes.
pub fn repeat_cell(out: &mut [u8], cell: &[u8]) {
    if cell.is_empty() {
        return;
    }
    if let [byte, rest @ ..] = cell
        && rest.iter().all(|b| b == byte)
    {
        out.fill(*byte);
        return;
    }
    let first = cell.len().min(out.len());
    out[..first].copy_from_slice(&cell[..first]);
    // Each step doubles the part that is already filled.
    let mut filled = first;
    while filled < out.len() {
        let n = filled.min(out.len() - filled);
        let (done, todo) = out.split_at_mut(filled);
        todo[..n].copy_from_slice(&done[..n]);
        filled += n;
    }
}

#[cfg(test)]
mod tests {
    use super::repeat_cell;

    #[test]
    fn fills_whole_and_partial_cells() {
        for cell in [
            vec![1u8],
            vec![1, 2],
            vec![1, 2, 3],
            vec![7; 8],
            (0..12).collect(),
        ] {
            for len in 0..50 {
                let mut out = vec![0xee; len];
                repeat_cell(&mut out, &cell);
                let expected: Vec<u8> = cell.iter().copied().cycle().take(len).collect();
                assert_eq!(out, expected, "{cell:?} in {len} bytes");
            }
        }
        let mut out = [1, 2];
        repeat_cell(&mut out, &[]);
        assert_eq!(out, [1, 2]);
    }
}
