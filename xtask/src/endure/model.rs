//! What a worker has written, and how it is found again.
//!
//! A worker owns blocks of cells, and every change that it makes is to a whole block: all of its
//! cells get one version, or all are deleted. So whoever reads, whenever, finds each block whole: a
//! mixture of versions is a torn write, fewer cells are lost ones, more are doubled ones. Blocks
//! of all workers lie in the same tiles.

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::{ArraySchema, Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::write::WriteOptions;
use azulejo::{Context, Subarray};
use std::collections::BTreeMap;

/// Cells of a block.
pub const CELLS: i64 = 16;
/// Blocks of a worker.
pub const BLOCKS: i64 = 40;
/// Processes.
pub const WORKERS: i64 = 4;
/// The attribute that comes and goes.
pub const EXTRA: &str = "e";
/// What a fixed cell reads that nobody wrote.
const FILL: i64 = i64::MIN;

/// The arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Sparse,
    Duplicates,
    Dense,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Sparse, Self::Duplicates, Self::Dense];

    /// The array's name below the run's folder.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sparse => "sparse",
            Self::Duplicates => "duplicates",
            Self::Dense => "dense",
        }
    }

    /// Creates the array.
    pub fn create(self, context: &Context, folder: &str) -> Result<(), String> {
        let last = CELLS * BLOCKS * WORKERS - 1;
        let schema = match self {
            Self::Dense => ArraySchema::dense(),
            Self::Sparse => ArraySchema::sparse().capacity(40),
            Self::Duplicates => ArraySchema::sparse().capacity(40).allows_duplicates(true),
        };
        // Tiles that no block fills, and none lies in alone.
        let schema = schema
            .dimension("x", 0..=last, 24)
            .attribute("b", Datatype::Int64)
            .attribute("v", Datatype::Int64)
            .var_attribute("s", Datatype::StringUtf8);
        let schema = schema.build().map_err(|e| e.to_string())?;
        let array = context.array(&self.uri(folder));
        array.create(schema).map_err(|e| e.to_string())?;
        match self {
            // A first fragment around all blocks: what is merged with it has no gaps, so that the
            // dense array is merged like the others, however few of its blocks were written.
            Self::Dense => write_nothing(context, &self.uri(folder)).map_err(|e| e.to_string()),
            Self::Sparse | Self::Duplicates => Ok(()),
        }
    }

    pub fn uri(self, folder: &str) -> String {
        format!("{folder}/{}", self.name())
    }
}

/// The text of a cell.
fn text(block: i64, version: i64, cell: i64) -> String {
    format!("{block}.{version}.{cell}")
}

/// The coordinate of a cell: blocks of different workers follow each other in a dense array, and
/// lie between one another in a sparse one.
fn coordinate(kind: Kind, block: i64, cell: i64) -> i64 {
    match kind {
        Kind::Dense => block * CELLS + cell,
        Kind::Sparse | Kind::Duplicates => {
            (block / WORKERS * CELLS + cell) * WORKERS + block % WORKERS
        }
    }
}

/// The block that worker `worker` has as its `index`-th.
pub fn block_of(worker: i64, index: i64) -> i64 {
    index * WORKERS + worker
}

/// Versions by block: blocks that are not there have none.
pub type Blocks = BTreeMap<i64, i64>;

/// Writes a block; returns the names of the fragments.
pub fn write(
    context: &Context,
    folder: &str,
    kind: Kind,
    block: i64,
    version: i64,
) -> azulejo::Result<Vec<String>> {
    let cells: Vec<i64> = (0..CELLS).collect();
    let mut options = WriteOptions::new();
    let mut columns = vec![
        ColumnBuffers::of_values("b", vec![block; cells.len()]),
        ColumnBuffers::of_values("v", vec![version; cells.len()]),
        ColumnBuffers::of_strings("s", cells.iter().map(|cell| text(block, version, *cell))),
    ];
    if kind == Kind::Dense {
        let (first, last) = (
            coordinate(kind, block, 0),
            coordinate(kind, block, CELLS - 1),
        );
        options = options.subarray(NdRectangle {
            ranges: vec![Range::of(first, last)],
        });
    } else {
        let x = cells.iter().map(|cell| coordinate(kind, block, *cell));
        columns.push(ColumnBuffers::of_values("x", x.collect()));
    }
    let mut writer = context.array(&kind.uri(folder)).writer(options)?;
    if writer.schema().attributes.iter().any(|a| a.name == EXTRA) {
        columns.push(ColumnBuffers::of_values(EXTRA, vec![version; cells.len()]));
    }
    writer.write(&ColumnSet::of(columns)?)?;
    writer.finish()
}

/// Writes what cells read that nobody wrote, into all cells of a dense array.
fn write_nothing(context: &Context, uri: &str) -> azulejo::Result<()> {
    let cells = CELLS * BLOCKS * WORKERS;
    let options = WriteOptions::new().subarray(NdRectangle {
        ranges: vec![Range::of(0, cells - 1)],
    });
    let mut writer = context.array(uri).writer(options)?;
    writer.write(&ColumnSet::of([
        ColumnBuffers::of_values("b", (0..cells).map(|_| FILL).collect()),
        ColumnBuffers::of_values("v", (0..cells).map(|_| FILL).collect()),
        ColumnBuffers::of_strings("s", (0..cells).map(|_| String::new())),
    ])?)?;
    writer.finish().map(drop)
}

/// Opens the array and reads all of it; every cell is looked at.
///
/// # Errors
/// `Err(Ok(..))`: the engine's error; `Err(Err(..))`: what is wrong with the cells.
pub fn read(
    context: &Context,
    folder: &str,
    kind: Kind,
) -> Result<Blocks, Result<azulejo::Error, String>> {
    let handle = context.array(&kind.uri(folder));
    loop {
        let array = handle.open().map_err(Ok)?;
        match read_opened(&array, kind) {
            // What was merged and vacuumed meanwhile lacks an attribute that it was opened with:
            // whoever wants to read has to look again what there is.
            Err(Ok(azulejo::Error::NotFound { .. }))
                if handle.open().map_err(Ok)?.schema_name() != array.schema_name() => {}
            found => return found,
        }
    }
}

fn read_opened(
    array: &azulejo::Array,
    kind: Kind,
) -> Result<Blocks, Result<azulejo::Error, String>> {
    let mut options = ReadOptions::new();
    if kind == Kind::Dense {
        let last = CELLS * BLOCKS * WORKERS - 1;
        options = options.subarray(Subarray::ranges([Range::of(0, last)]));
    }
    let mut fields = vec!["x", "b", "v", "s"];
    let has_extra = array.schema().attributes.iter().any(|a| a.name == EXTRA);
    if has_extra {
        fields.push(EXTRA);
    }
    let reader = array.read(options.fields(fields)).map_err(Ok)?;
    let cells = reader.read_all().map_err(Ok)?;
    blocks_of(kind, &cells, has_extra).map_err(Err)
}

/// The blocks that cells make; an error says which are not whole.
fn blocks_of(kind: Kind, cells: &ColumnSet, has_extra: bool) -> Result<Blocks, String> {
    let numbers = |name: &str| {
        let column = cells.column(name).ok_or(format!("no column {name}"))?;
        let values = column.values::<i64>().ok_or(format!("{name} is int64"))?;
        Ok::<Vec<i64>, String>(values.to_vec())
    };
    let (x, b, v) = (numbers("x")?, numbers("b")?, numbers("v")?);
    let extra = if has_extra {
        numbers(EXTRA)?
    } else {
        v.clone()
    };
    let texts = cells.column("s").ok_or("no column s")?.strings();
    let mut found: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
    for ((((x, b), v), s), e) in x.iter().zip(&b).zip(&v).zip(texts).zip(&extra) {
        if kind == Kind::Dense && (*b, *v) == (FILL, FILL) {
            continue;
        }
        let cell = (0..CELLS).find(|cell| coordinate(kind, *b, *cell) == *x);
        let s = s.and_then(Result::ok).unwrap_or_default();
        match cell {
            Some(cell) if s == text(*b, *v, cell) && (e == v || *e == FILL) => {
                found.entry(*b).or_default().push((*v, cell));
            }
            _ => {
                return Err(format!(
                    "cell {x}: block {b}, version {v}, {s:?}, extra {e}"
                ));
            }
        }
    }
    let mut blocks = Blocks::new();
    for (block, mut cells) in found {
        cells.sort_unstable();
        let version = cells.first().map_or(0, |(version, _)| *version);
        let whole: Vec<_> = (0..CELLS).map(|cell| (version, cell)).collect();
        if cells != whole {
            return Err(format!("block {block} is not whole: {cells:?}"));
        }
        blocks.insert(block, version);
    }
    Ok(blocks)
}

/// Where two states of blocks differ.
pub fn differences(found: &Blocks, wanted: &Blocks) -> Vec<String> {
    let blocks: std::collections::BTreeSet<_> = found.keys().chain(wanted.keys()).collect();
    let differing = blocks
        .into_iter()
        .filter(|block| found.get(block) != wanted.get(block));
    differing
        .map(|block| {
            let (found, wanted) = (found.get(block), wanted.get(block));
            format!("block {block}: version {found:?}, not {wanted:?}")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cells of a block, and what is made of them when something is done to them.
    fn seen(change: impl Fn(&mut Vec<(i64, i64)>)) -> Result<Blocks, String> {
        let mut cells: Vec<(i64, i64)> = (0..CELLS).map(|cell| (cell, 7)).collect();
        change(&mut cells);
        let set = ColumnSet::of([
            ColumnBuffers::of_values(
                "x",
                cells
                    .iter()
                    .map(|(cell, _)| coordinate(Kind::Sparse, 5, *cell))
                    .collect(),
            ),
            ColumnBuffers::of_values("b", vec![5i64; cells.len()]),
            ColumnBuffers::of_values("v", cells.iter().map(|(_, v)| *v).collect()),
            ColumnBuffers::of_strings("s", cells.iter().map(|(cell, v)| text(5, *v, *cell))),
        ]);
        blocks_of(Kind::Sparse, &set.expect("a set"), false)
    }

    #[test]
    fn lost_doubled_and_torn_cells_are_seen() {
        assert_eq!(seen(|_| {}), Ok(Blocks::from([(5, 7)])));
        assert_eq!(seen(Vec::clear), Ok(Blocks::new()));
        assert!(seen(|cells| cells.truncate(15)).is_err());
        assert!(seen(|cells| cells.push((3, 7))).is_err());
        assert!(seen(|cells| cells[4].1 = 6).is_err());
    }

    #[test]
    fn every_cell_has_a_place_of_its_own() {
        for kind in Kind::ALL {
            let blocks = BLOCKS * WORKERS;
            let mut all: Vec<i64> = (0..blocks)
                .flat_map(|block| (0..CELLS).map(move |cell| coordinate(kind, block, cell)))
                .collect();
            all.sort_unstable();
            assert_eq!(all, (0..blocks * CELLS).collect::<Vec<_>>());
        }
    }
}
