//! Cells that are stored as they are: read from their file to their rows, with no copy on the way.

use crate::error::Result;
use crate::read::parallel::UnusedBytes;
use crate::space::copy::{Copy, CopyList, Window};
use std::io::IoSliceMut;
use std::ops::Range;

/// Shorter rows are read together and copied: a piece of a read costs about as much as copying so
/// many bytes.
const SHORTEST_ROW: usize = 256;

/// Unwanted bytes between rows, up to this number, are read along, as another read costs more.
const GAP: usize = 4 * 1024;

/// One read of bytes that lie together in a chunk, and the places where they go.
#[derive(Debug)]
pub(super) struct ScatteredRead<'o> {
    /// Bytes of the chunk.
    pub bytes: Range<usize>,
    /// Places one after another, together as long as `bytes`.
    pub pieces: Vec<IoSliceMut<'o>>,
}

/// Whether cells of `size` bytes are worth reading to their rows, from a tile of `len` bytes: rows
/// are long, or few and far apart.
pub(super) fn is_worthwhile(list: &CopyList, copies: &[Copy], size: usize, len: usize) -> bool {
    let row = list.row_len(copies);
    let rows = || {
        copies
            .iter()
            .map(|copy| list.cells(copy) / row)
            .sum::<usize>()
    };
    row > 0 && (row.saturating_mul(size) >= SHORTEST_ROW || rows().saturating_mul(GAP) < len)
}

/// The reads that take a chunk's cells (`window.src`) to their rows in `out`, the bytes of the
/// cells `window.out`; `spare`, as long as the chunk, takes what lies between them.
///
/// `None` if the rows do not ascend on both sides, so that no safe slicing serves them.
///
/// For example two rows of 100 cells of 4 bytes, the first at cell 10 of the chunk, the second 150
/// cells behind it: one read of the bytes 40..1040 in three pieces, of which the one in the middle
/// goes to `spare`. Were they 5,000 cells apart, it would be two reads.
pub(super) fn scattered_reads<'o>(
    list: &CopyList,
    copies: &[Copy],
    window: &Window,
    out: &'o mut [u8],
    size: usize,
    spare: &'o mut [u8],
) -> Result<Option<Vec<ScatteredRead<'o>>>> {
    let rows = window.src.len() / list.row_len(copies).max(1) + 3;
    let mut reads = Reads {
        reads: Vec::new(),
        rows,
        out: UnusedBytes::new(out),
        spare,
        ascend: true,
    };
    for copy in copies {
        list.rows_within(copy, window, &mut |row| {
            let from = (row.src - window.src.start) * size;
            let place = (row.out - window.out.start) * size;
            reads.ascend = reads.ascend && reads.push(from, place, row.axis.count * size).is_some();
            Ok(())
        })?;
    }
    Ok(reads.ascend.then_some(reads.reads))
}

struct Reads<'o> {
    reads: Vec<ScatteredRead<'o>>,
    /// About how many there are.
    rows: usize,
    out: UnusedBytes<'o>,
    spare: &'o mut [u8],
    ascend: bool,
}

impl Reads<'_> {
    /// Adds `len` bytes of the chunk; `None` if they lie before others on either side.
    fn push(&mut self, from: usize, place: usize, len: usize) -> Option<()> {
        let place = IoSliceMut::new(self.out.take(place, len)?);
        let end = self.reads.last().map_or(0, |read| read.bytes.end);
        let gap = from.checked_sub(end)?;
        match self.reads.last_mut() {
            Some(last) if gap <= GAP => {
                if gap > 0 {
                    let unwanted = self.spare.split_off_mut(..gap)?;
                    last.pieces.push(IoSliceMut::new(unwanted));
                }
                last.pieces.push(place);
                last.bytes.end = from + len;
            }
            _ => {
                let mut pieces =
                    Vec::with_capacity(if self.reads.is_empty() { self.rows } else { 4 });
                pieces.push(place);
                self.reads.push(ScatteredRead {
                    bytes: from..from + len,
                    pieces,
                });
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::copy::Axis;

    /// Rows of `row` cells, `apart` cells from one another in the tile and `2 * row` in the output.
    fn rows(count: usize, row: usize, apart: usize) -> CopyList {
        let mut list = CopyList::default();
        let axes = [
            Axis {
                count,
                out: 2 * row,
                src: apart,
            },
            Axis {
                count: row,
                out: 1,
                src: 1,
            },
        ];
        list.push(0, 10, axes.into_iter());
        list
    }

    #[test]
    fn rows_are_read_together_unless_they_lie_far_apart() {
        let mut out = vec![0; 4 * 400];
        let mut spare = vec![0; 1 << 20];
        let window = Window {
            out: 0..400,
            src: 0..1 << 18,
        };
        let list = rows(2, 100, 150);
        let near = scattered_reads(&list, list.all(), &window, &mut out, 4, &mut spare)
            .unwrap()
            .unwrap();
        let lens: Vec<usize> = near[0].pieces.iter().map(|piece| piece.len()).collect();
        assert_eq!(
            (near.len(), near[0].bytes.clone(), lens),
            (1, 40..1040, vec![400, 200, 400])
        );
        let list = rows(2, 100, 5000);
        let far = scattered_reads(&list, list.all(), &window, &mut out, 4, &mut spare)
            .unwrap()
            .unwrap();
        let bytes: Vec<Range<usize>> = far.iter().map(|read| read.bytes.clone()).collect();
        assert_eq!(bytes, [40..440, 20_040..20_440]);
        assert!(is_worthwhile(&list, list.all(), 4, 0));
        assert!(!is_worthwhile(&list, list.all(), 2, 2 * GAP));
        assert!(is_worthwhile(&list, list.all(), 2, 2 * GAP + 1));
    }

    #[test]
    fn rows_that_do_not_ascend_are_refused() {
        let mut list = rows(1, 100, 0);
        let twice = list.clone();
        list.append(&twice, 0..1);
        let mut out = vec![0; 800];
        let mut spare = vec![0; 4096];
        let window = Window {
            out: 0..200,
            src: 0..1000,
        };
        assert!(
            scattered_reads(&list, list.all(), &window, &mut out, 4, &mut spare)
                .unwrap()
                .is_none()
        );
    }
}
