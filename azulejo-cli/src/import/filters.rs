//! The filter pipelines that are chosen where none is named.

use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::{CellValNum, Datatype};

/// The level of Zstandard that is chosen: most of what higher ones gain, at a fraction of their
/// time.
const ZSTD: Filter = Filter::Zstd { level: 3 };

/// The filters chosen for a field: shuffled bytes of numbers compress better, bytes and texts are
/// compressed as they are.
pub fn chosen(datatype: Datatype, cell_val_num: CellValNum) -> Pipeline {
    let numbers = datatype.size() > 1 && !datatype.is_string() && (cell_val_num != CellValNum::Var);
    let filters = if numbers {
        vec![Filter::Byteshuffle, ZSTD]
    } else {
        vec![ZSTD]
    };
    Pipeline {
        filters,
        ..Pipeline::default()
    }
}

/// The filters chosen for offsets: texts of similar lengths have nearly equal differences.
pub fn chosen_offsets() -> Pipeline {
    let filters = vec![
        Filter::DoubleDelta {
            level: -1,
            reinterpret: None,
        },
        ZSTD,
    ];
    Pipeline {
        filters,
        ..Pipeline::default()
    }
}
