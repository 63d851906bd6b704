//! What both sides do.

/// The arrays, as `versus_data.py` names them.
pub const ARRAYS: &[&str] =
    &["dense_raw", "dense_zstd", "dense_shuffle_lz4", "sparse", "sparse_20", "sparse_20_dups", "fragments"];

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
    /// Whether dimensions are read too.
    pub coordinates: bool,
}

/// A side of the comparison.
pub trait Engine {
    /// Runs a phase: cells read, their checksum, and the seconds that the checksum took.
    fn run(&mut self, phase: &Phase) -> Result<(u64, u64, f64), String>;
}

/// A checksum that does not depend on the order of cells, so that any layout can be compared.
pub fn checksum(bytes: &[u8]) -> u64 {
    let words = bytes.as_chunks::<4>().0;
    words
        .iter()
        .fold(0_u64, |sum, w| sum.wrapping_add(u64::from(u32::from_le_bytes(*w)).wrapping_mul(0x9e37_79b9)))
}

/// The phases of an array.
pub fn of(array: &str) -> Vec<Phase> {
    let dense = array.starts_with("dense");
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = move |below: i64| -> i64 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as i64
    };
    let phase =
        |name, order, boxes| Phase { name, reopen: false, order, boxes, below: None, coordinates: !dense };
    let everything = vec![vec![]];
    if dense {
        let side = 128;
        let mut cubes = |n: usize, edge: i64| -> Vec<Vec<[i64; 2]>> {
            (0..n)
                .map(|_| {
                    (0..3)
                        .map(|_| {
                            let x = random(side - edge + 1);
                            [x, x + edge - 1]
                        })
                        .collect()
                })
                .collect()
        };
        return vec![
            phase("full", Order::Row, everything.clone()),
            phase("full_global", Order::Global, everything),
            phase("windows", Order::Row, cubes(100, 32)),
            phase("cells", Order::Row, cubes(500, 1)),
        ];
    }
    let mut squares = |n: usize, edge: i64| -> Vec<Vec<[i64; 2]>> {
        (0..n)
            .map(|_| {
                (0..2)
                    .map(|_| {
                        let x = random(100_000 - edge + 1);
                        [x, x + edge - 1]
                    })
                    .collect()
            })
            .collect()
    };
    if array == "fragments" {
        let mut open = phase("open_and_box", Order::Unordered, squares(1, 500));
        open.order = Order::Row;
        open.reopen = true;
        return vec![open, phase("box", Order::Row, squares(1, 500))];
    }
    let mut out = vec![
        phase("row", Order::Row, everything.clone()),
        phase("col", Order::Col, everything.clone()),
        phase("global", Order::Global, everything.clone()),
        phase("unordered", Order::Unordered, everything.clone()),
        phase("boxes", Order::Unordered, squares(50, 2_000)),
        Phase { below: Some(100), ..phase("condition", Order::Unordered, everything) },
    ];
    if array == "sparse_20" {
        out.push(Phase { reopen: true, ..phase("open_and_box", Order::Unordered, squares(1, 100)) });
    }
    out
}
