//! Which pipelines are tried for a field.
//!
//! Only what writes any later cell too: positive delta refuses values that fall, run lengths of
//! values may grow threefold. And only what loses nothing.

use super::goal::Goal;
use super::sample::ValueKind;
use azulejo_format::filter::{Filter, FilterContext, Pipeline};

const LZ4: Filter = Filter::Lz4 { level: -1 };
const RLE: Filter = Filter::Rle { level: -1 };
const DICTIONARY: Filter = Filter::Dictionary { level: -1 };
const DELTA: Filter = Filter::Delta {
    level: -1,
    reinterpret: None,
};
const DOUBLE_DELTA: Filter = Filter::DoubleDelta {
    level: -1,
    reinterpret: None,
};
/// Windows of some hundred values: their heads count for nothing then.
const NARROW: Filter = Filter::BitWidthReduction { max_window: 4096 };

const fn zstd(level: i32) -> Filter {
    Filter::Zstd { level }
}

/// Levels of Zstandard: higher ones only where nothing but size counts. Reading takes as long.
fn levels(goal: Goal) -> &'static [i32] {
    match goal {
        Goal::Size => &[3, 9, 15],
        Goal::Balanced => &[1, 3],
        Goal::Speed => &[1],
    }
}

/// No filter, said by name.
pub(super) fn named_none() -> Pipeline {
    pipeline(&[Filter::None])
}

fn pipeline(filters: &[Filter]) -> Pipeline {
    Pipeline {
        filters: filters.to_vec(),
        ..Pipeline::default()
    }
}

/// The pipelines to try, simplest first; all of them fit the type.
pub(super) fn of(kind: ValueKind, ctx: &FilterContext<'_>, goal: Goal) -> Vec<Pipeline> {
    let compressors: Vec<Filter> = std::iter::once(LZ4)
        .chain(levels(goal).iter().map(|&level| zstd(level)))
        .collect();
    let mut found: Vec<Vec<Filter>> = vec![Vec::new()];
    let mut with = |before: &[Filter], alone: bool| {
        if alone {
            found.push(before.to_vec());
        }
        for last in &compressors {
            found.push(before.iter().chain([last]).cloned().collect());
        }
    };
    with(&[], false);
    match kind {
        ValueKind::Validity => with(&[RLE], true),
        ValueKind::Strings => with(&[DICTIONARY], true),
        ValueKind::Numbers => {
            let (real, wide) = (ctx.datatype.is_real(), ctx.datatype.size() > 1);
            if wide {
                with(&[Filter::Byteshuffle], false);
                with(&[Filter::Bitshuffle], false);
            }
            if real {
                with(&[Filter::Xor, Filter::Byteshuffle], false);
            } else {
                with(&[NARROW], true);
            }
            // They have no form for nothing, which a tile of empty cells is.
            if !real && wide && !ctx.cell_val_num.is_var() {
                with(&[DELTA, Filter::Byteshuffle], false);
                with(&[DOUBLE_DELTA], true);
            }
        }
        ValueKind::Bytes => {}
    }
    found
        .iter()
        .map(|filters| pipeline(filters))
        .filter(|pipeline| pipeline.check(ctx.datatype, ctx.cell_val_num).is_ok())
        .collect()
}
