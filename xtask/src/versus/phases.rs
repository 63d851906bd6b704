//! What both sides do.

use std::path::Path;

/// The arrays, as `versus_data.py` names them.
pub const ARRAYS: &[&str] = &[
    "dense_raw",
    "dense_zstd",
    "dense_shuffle_lz4",
    "sparse",
    "sparse_20",
    "sparse_20_dups",
    "fragments",
];

/// How large the arrays are.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Cells along each dimension of dense arrays.
    side: i64,
    /// Cells of sparse arrays, all of them of one fragment or of twenty.
    cells: i64,
    /// Fragments of 50 cells.
    fragments: i64,
}

impl Scale {
    /// As the arrays' maker wrote it down.
    pub fn read(dir: &Path) -> Result<Self, String> {
        let path = dir.join("done");
        let text =
            std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let numbers: Vec<i64> = text
            .split_whitespace()
            .filter_map(|n| n.parse().ok())
            .collect();
        match numbers.as_slice() {
            &[side, cells, fragments] => Ok(Self {
                side,
                cells,
                fragments,
            }),
            _ => Err(format!("{}: three numbers expected", path.display())),
        }
    }

    /// Cells of the largest result that an array can give.
    pub fn most_cells(self, array: &str) -> usize {
        let cells = match array {
            _ if is_dense(array) => self.side.pow(3),
            "fragments" => self.fragments * 50,
            _ => self.cells,
        };
        usize::try_from(cells).unwrap_or(0)
    }
}

/// Whether an array is dense.
pub fn is_dense(array: &str) -> bool {
    array.starts_with("dense")
}

/// The columns that are read, with the bytes of a cell.
pub fn columns(array: &str) -> &'static [(&'static str, usize)] {
    if is_dense(array) {
        &[("a", 4)]
    } else {
        &[("x", 8), ("y", 8), ("a", 8), ("b", 4)]
    }
}

/// The caller's memory: by column its name and room for the largest result. Both sides get the
/// same.
pub type Buffers = Vec<(&'static str, Vec<u8>)>;

/// Memory for an array's columns, already touched: its first use would cost more than many a read.
pub fn buffers(array: &str, scale: Scale) -> Buffers {
    let cells = scale.most_cells(array);
    columns(array)
        .iter()
        .map(|(name, size)| (*name, vec![1; cells * size]))
        .collect()
}

/// An order of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Row,
    Col,
    Global,
    Unordered,
}

/// One timed piece of work.
#[derive(Debug, Clone)]
pub struct Phase {
    pub name: &'static str,
    /// Whether the array is opened in the time.
    pub reopen: bool,
    pub order: Order,
    /// Each box is a query: inclusive bounds a dimension. No bounds: everything.
    pub boxes: Vec<Vec<[i64; 2]>>,
    /// Only cells with `b` below this.
    pub below: Option<i32>,
    /// Whether we give batches in memory of our own; the reference knows none and fills buffers as
    /// ever.
    pub batches: bool,
}

/// A side of the comparison.
pub trait Engine {
    /// Runs a phase: cells read, their checksum, and the seconds that the checksum took.
    fn run(&mut self, phase: &Phase) -> Result<(u64, u64, f64), String>;
}

/// A checksum that does not depend on the order of cells, so that any layout can be compared.
pub fn checksum(bytes: &[u8]) -> u64 {
    let words = bytes.as_chunks::<4>().0;
    words.iter().fold(0_u64, |sum, w| {
        sum.wrapping_add(u64::from(u32::from_le_bytes(*w)).wrapping_mul(0x9e37_79b9))
    })
}

/// The phases of an array.
pub fn of(array: &str, scale: Scale) -> Vec<Phase> {
    let mut state = 88_172_645_463_325_252_u64;
    // Boxes of a given edge in a cube of a given side.
    let mut boxes = |n: usize, dims: usize, side: i64, edge: i64| -> Vec<Vec<[i64; 2]>> {
        let mut range = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let low = (state % (side - edge + 1) as u64) as i64;
            [low, low + edge - 1]
        };
        (0..n)
            .map(|_| (0..dims).map(|_| range()).collect())
            .collect()
    };
    let phase = |name, order, boxes| Phase {
        name,
        reopen: false,
        order,
        boxes,
        below: None,
        batches: false,
    };
    if is_dense(array) {
        let side = scale.side;
        let everything = boxes(1, 3, side, side);
        return vec![
            phase("full", Order::Row, everything.clone()),
            Phase {
                batches: true,
                ..phase("full_batches", Order::Row, everything.clone())
            },
            phase("full_global", Order::Global, everything),
            phase("windows", Order::Row, boxes(100, 3, side, 32)),
            phase("cells", Order::Row, boxes(500, 3, side, 1)),
        ];
    }
    let side = 100_000;
    let everything = vec![vec![]];
    let open = Phase {
        reopen: true,
        ..phase("open", Order::Row, vec![])
    };
    if array == "fragments" {
        let few = boxes(1, 2, side, 500);
        return vec![
            open,
            Phase {
                reopen: true,
                ..phase("open_and_box", Order::Row, few.clone())
            },
            phase("box", Order::Row, few),
            phase("unordered", Order::Unordered, everything.clone()),
            phase("row", Order::Row, everything),
        ];
    }
    let few = boxes(50, 2, side, 2_000);
    vec![
        open,
        phase("row", Order::Row, everything.clone()),
        Phase {
            batches: true,
            ..phase("row_batches", Order::Row, everything.clone())
        },
        phase("col", Order::Col, everything.clone()),
        phase("global", Order::Global, everything.clone()),
        phase("unordered", Order::Unordered, everything.clone()),
        phase("boxes", Order::Unordered, few.clone()),
        phase("boxes_row", Order::Row, few),
        phase("cells", Order::Unordered, boxes(200, 2, side, 10)),
        Phase {
            below: Some(100),
            ..phase("condition", Order::Unordered, everything)
        },
    ]
}
