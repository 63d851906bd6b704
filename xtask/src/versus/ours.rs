//! Our side.

use super::phases::{Engine, Order, Phase, checksum};
use azulejo::format::Range;
use azulejo::format::condition::{Comparison, Condition};
use azulejo::read::{ReadOptions, Reader};
use azulejo::space::{DimSelection, Layout};
use azulejo::{Array, Config, Context, Subarray};
use std::time::Instant;

/// An array opened by Azulejo.
pub struct Azulejo {
    context: Context,
    uri: String,
    array: Array,
}

impl Azulejo {
    pub fn new(uri: &str) -> Result<Self, String> {
        let context = Context::new(Config::default(), None).map_err(|e| e.to_string())?;
        let array = Array::open(&context, uri).map_err(|e| e.to_string())?;
        Ok(Self { context, uri: uri.into(), array })
    }
}

impl Engine for Azulejo {
    fn run(&mut self, phase: &Phase) -> Result<(u64, u64, f64), String> {
        let (mut cells, mut sum, mut summing) = (0, 0_u64, 0.0);
        if phase.reopen {
            self.array = Array::open(&self.context, &self.uri).map_err(|e| e.to_string())?;
        }
        let layout = match phase.order {
            Order::Row => Layout::RowMajor,
            Order::Col => Layout::ColMajor,
            Order::Global => Layout::Global,
            Order::Unordered => Layout::Unordered,
        };
        for bounds in &phase.boxes {
            let mut options = ReadOptions::new().layout(layout);
            if !bounds.is_empty() {
                let range = |&[lo, hi]: &[i64; 2]| {
                    let narrow = !phase.coordinates;
                    if narrow { Range::of(lo as i32, hi as i32) } else { Range::of(lo, hi) }
                };
                options = options.subarray(Subarray::Box(
                    bounds.iter().map(|b| DimSelection::Ranges(vec![range(b)])).collect(),
                ));
            }
            if let Some(below) = phase.below {
                options = options.condition(Condition::compare("b", Comparison::Lt, below.to_le_bytes()));
            }
            for batch in Reader::new(&self.array, options).map_err(|e| e.to_string())? {
                let batch = batch.map_err(|e| e.to_string())?;
                cells += batch.cell_num as u64;
                let start = Instant::now();
                for column in &batch.columns {
                    sum = sum.wrapping_add(checksum(&column.data));
                }
                summing += start.elapsed().as_secs_f64();
            }
        }
        Ok((cells, sum, summing))
    }
}
