//! Our side: the caller's buffers are made once and reused, as on the other side.

use super::phases::{Buffers, Engine, Order, Phase, checksum, is_dense};
use azulejo::column::ColumnMut;
use azulejo::format::Range;
use azulejo::format::condition::{Comparison, Condition};
use azulejo::read::ReadOptions;
use azulejo::space::{DimSelection, Layout};
use azulejo::{Array, Config, Context, Subarray};
use std::time::Instant;

/// An array opened by Azulejo.
pub struct Azulejo {
    context: Context,
    uri: String,
    array: Array,
    dense: bool,
    buffers: Buffers,
}

impl Azulejo {
    pub fn new(name: &str, uri: &str, buffers: Buffers) -> Result<Self, String> {
        let context = Context::new(Config::default(), None).map_err(|e| e.to_string())?;
        let array = context.array(uri).open().map_err(|e| e.to_string())?;
        Ok(Self {
            context,
            uri: uri.into(),
            array,
            dense: is_dense(name),
            buffers,
        })
    }

    fn options(&self, phase: &Phase, bounds: &[[i64; 2]]) -> ReadOptions {
        let layout = match phase.order {
            Order::Row => Layout::RowMajor,
            Order::Col => Layout::ColMajor,
            Order::Global => Layout::Global,
            Order::Unordered => Layout::Unordered,
        };
        let mut options = ReadOptions::new().layout(layout);
        if !bounds.is_empty() {
            let range = |&[lo, hi]: &[i64; 2]| {
                if self.dense {
                    Range::of(lo as i32, hi as i32)
                } else {
                    Range::of(lo, hi)
                }
            };
            options = options.subarray(Subarray::Box(
                bounds
                    .iter()
                    .map(|b| DimSelection::Ranges(vec![range(b)]))
                    .collect(),
            ));
        }
        if let Some(below) = phase.below {
            options =
                options.condition(Condition::compare("b", Comparison::Lt, below.to_le_bytes()));
        }
        options
    }
}

impl Engine for Azulejo {
    fn run(&mut self, phase: &Phase) -> Result<(u64, u64, f64), String> {
        let (mut cells, mut sum, mut summing) = (0, 0_u64, 0.0);
        if phase.reopen {
            self.array = self
                .context
                .array(&self.uri)
                .open()
                .map_err(|e| e.to_string())?;
        }
        for bounds in &phase.boxes {
            let options = self.options(phase, bounds);
            let mut reader = self.array.read(options).map_err(|e| e.to_string())?;
            if phase.batches {
                for batch in reader {
                    let batch = batch.map_err(|e| e.to_string())?;
                    cells += batch.cell_num as u64;
                    let start = Instant::now();
                    for column in &batch.columns {
                        sum = sum.wrapping_add(checksum(&column.data));
                    }
                    summing += start.elapsed().as_secs_f64();
                }
                continue;
            }
            loop {
                let mut columns: Vec<ColumnMut<'_>> = (self.buffers.iter_mut())
                    .map(|(_, data)| ColumnMut {
                        data,
                        offsets: None,
                        validity: None,
                    })
                    .collect();
                let progress = reader.read_into(&mut columns).map_err(|e| e.to_string())?;
                cells += progress.cells as u64;
                let start = Instant::now();
                for ((_, data), written) in self.buffers.iter().zip(&progress.written) {
                    sum = sum.wrapping_add(checksum(data.get(..written.data).unwrap_or(data)));
                }
                summing += start.elapsed().as_secs_f64();
                if progress.complete {
                    break;
                }
            }
        }
        Ok((cells, sum, summing))
    }
}
