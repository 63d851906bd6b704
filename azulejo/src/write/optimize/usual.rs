//! Filters that are good for most cells, for arrays of which no cells are known.

use azulejo_format::filter::{Filter, Pipeline};
use azulejo_format::{CellValNum, Datatype};

/// The level of Zstandard that is usual: most of what higher ones gain, at a fraction of their time.
const ZSTD: Filter = Filter::Zstd { level: 3 };

/// The usual filters of a field: shuffled bytes of numbers compress better and are decompressed in
/// less time, bytes and texts are compressed as they are.
#[must_use]
pub fn usual_filters(datatype: Datatype, cell_val_num: CellValNum) -> Pipeline {
    let numbers = datatype.size() > 1 && !datatype.is_string() && cell_val_num != CellValNum::Var;
    of(match numbers {
        true => vec![Filter::Byteshuffle, ZSTD],
        false => vec![ZSTD],
    })
}

/// The usual filters of offsets: texts of similar lengths have nearly equal differences.
#[must_use]
pub fn usual_offsets_filters() -> Pipeline {
    let differences = Filter::DoubleDelta {
        level: -1,
        reinterpret: None,
    };
    of(vec![differences, ZSTD])
}

fn of(filters: Vec<Filter>) -> Pipeline {
    Pipeline {
        filters,
        ..Pipeline::default()
    }
}
