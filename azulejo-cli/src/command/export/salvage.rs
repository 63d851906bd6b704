//! Cells of an array that is damaged here and there: what cannot be read is narrowed down and left
//! out.
//!
//! A box that cannot be read is cut in two along its first long side, so that what is read keeps
//! its order, until it reads or is a single coordinate. Of a side of several ranges first some are
//! parted from the others.

use crate::error::{CliError, Result};
use crate::interrupt;
use crate::selection::Selection;
use crate::session::Session;
use crate::value;
use crate::value::integer;
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::range::compare;
use azulejo::format::schema::Dimension;
use azulejo::format::{Physical, Range};
use azulejo::read::ReadOptions;
use azulejo::space::{DimSelection, Layout, Subarray};
use azulejo::{Array, ColumnSet};

/// Boxes that are told before the rest is only counted.
const TOLD: usize = 10;
/// Boxes that are looked at before it is given up.
const MOST_BOXES: u64 = 100_000;
/// Cuts of one dimension: enough for as many ranges as memory holds, and for every integer.
const MOST_CUTS: u32 = 128;

/// Gives all batches that can be read to `take`, in order, and says what cannot; the number of cells.
pub fn each_batch(
    session: &Session,
    array: &Array,
    selection: &Selection,
    take: &mut dyn FnMut(ColumnSet) -> Result<()>,
) -> Result<u64> {
    let Some(options) = selection.options.clone() else {
        return Ok(0);
    };
    if selection.limit.is_some() {
        return Err(CliError::usage("--skip-damaged has no --limit"));
    }
    if matches!(options.layout, Layout::ColMajor | Layout::Global) {
        return Err(CliError::usage(
            "--skip-damaged goes by rows: a box that cannot be read is cut along its first side",
        ));
    }
    let mut salvage = Salvage {
        array,
        options: &options,
        room: session.context.config().memory_budget / 4,
        take,
        cells: 0,
        boxes: 0,
        lost: Vec::new(),
        lost_num: 0,
    };
    salvage.read(&sides(array, &options)?, 0)?;
    for text in &salvage.lost {
        session
            .output
            .note(&format!("damaged, and left out: {text}"));
    }
    let told = salvage.lost.len() as u64;
    if salvage.lost_num > told {
        session
            .output
            .note(&format!("and {} places more", salvage.lost_num - told));
    }
    Ok(salvage.cells)
}

/// The ranges of a selection along each dimension.
fn sides(array: &Array, options: &ReadOptions) -> Result<Vec<Vec<Range>>> {
    let refused = || CliError::usage("--skip-damaged takes boxes: no --points and no --step");
    let dimensions = &array.schema().domain.dimensions;
    let whole = |at: usize, dimension: &Dimension| -> Result<Range> {
        let written = array.non_empty_domain()?;
        let range = written.and_then(|written| written.ranges.get(at).cloned());
        range
            .or_else(|| dimension.domain.clone())
            .ok_or_else(|| CliError::usage("nothing is written there"))
    };
    let sides: Vec<Vec<Range>> = match &options.subarray {
        Subarray::Box(selections) => dimensions
            .iter()
            .enumerate()
            .zip(selections)
            .map(|((at, dimension), selection)| match selection {
                DimSelection::All => Ok(vec![whole(at, dimension)?]),
                DimSelection::Ranges(ranges) => Ok(ranges.clone()),
                DimSelection::Strided { .. } => Err(refused()),
            })
            .collect::<Result<_>>()?,
        Subarray::Points(_) => return Err(refused()),
    };
    // Cells of a sparse array come once, however often ranges name them: but along its only
    // dimension, in the order of ranges.
    let repeats = array.schema().is_dense()
        || (dimensions.len() == 1 && matches!(options.layout, Layout::RowMajor | Layout::ColMajor));
    let sides = sides.into_iter().zip(dimensions);
    let sides = sides.map(|(side, dimension)| match repeats {
        true => side,
        false => united(dimension, side),
    });
    Ok(sides.collect())
}

/// Ranges with those joined that share coordinates, by where they begin.
fn united(dimension: &Dimension, mut ranges: Vec<Range>) -> Vec<Range> {
    let order = |a: &[u8], b: &[u8]| compare(dimension.datatype, a, b);
    // Of text an end that is empty is none.
    let is_open = |range: &Range| dimension.is_var() && range.end.is_empty();
    ranges.sort_by(|a, b| order(&a.start, &b.start));
    let mut united: Vec<Range> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match united.last_mut() {
            Some(last) if is_open(last) || order(&range.start, &last.end).is_le() => {
                if !is_open(last) && (is_open(&range) || order(&range.end, &last.end).is_gt()) {
                    last.end = range.end;
                }
            }
            _ => united.push(range),
        }
    }
    united
}

struct Salvage<'a> {
    array: &'a Array,
    options: &'a ReadOptions,
    /// Bytes of a box that is held until all of it is read.
    room: u64,
    take: &'a mut dyn FnMut(ColumnSet) -> Result<()>,
    cells: u64,
    boxes: u64,
    lost: Vec<String>,
    lost_num: u64,
}

/// What came of a box.
enum Outcome {
    Read(Vec<ColumnSet>),
    TooLarge,
    Damaged(CliError),
}

impl Salvage<'_> {
    fn read(&mut self, sides: &[Vec<Range>], depth: u32) -> Result<()> {
        interrupt::check()?;
        self.boxes += 1;
        if self.boxes > MOST_BOXES {
            return Err(CliError::Damaged(
                "too much of the array is damaged to find out what is not".into(),
            ));
        }
        let why = match self.try_box(sides)? {
            Outcome::Read(batches) => {
                for batch in batches {
                    self.cells += batch.cell_num as u64;
                    (self.take)(batch)?;
                }
                return Ok(());
            }
            Outcome::TooLarge => None,
            Outcome::Damaged(error) => Some(error),
        };
        let dimensions = &self.array.schema().domain.dimensions;
        let most = MOST_CUTS * u32::try_from(dimensions.len()).unwrap_or(1);
        let cut = dimensions
            .iter()
            .zip(sides)
            .enumerate()
            .filter(|_| depth < most)
            .find_map(|(at, (dimension, side))| Some((at, parts(dimension, side)?)));
        if let Some((at, parts)) = cut {
            for side in parts {
                let mut part = sides.to_vec();
                part[at] = side;
                self.read(&part, depth + 1)?;
            }
            return Ok(());
        }
        let Some(why) = why else {
            return Err(CliError::usage(
                "a single coordinate holds more cells than there is memory for; give more with --memory",
            ));
        };
        self.lost_num += 1;
        if self.lost.len() < TOLD {
            let show = |(dimension, side): (&Dimension, &Vec<Range>)| {
                let text = |bytes: &[u8]| value::text(dimension.datatype, bytes);
                let ranges = side.iter().map(|range| match range.start == range.end {
                    true => text(&range.start),
                    false => format!("{} to {}", text(&range.start), text(&range.end)),
                });
                let ranges: Vec<String> = ranges.collect();
                format!("{} {}", dimension.name, ranges.join(" and "))
            };
            let place: Vec<String> = dimensions.iter().zip(sides).map(show).collect();
            self.lost.push(format!("{} ({why})", place.join(", ")));
        }
        Ok(())
    }

    fn try_box(&self, sides: &[Vec<Range>]) -> Result<Outcome> {
        let selections = sides.iter().cloned().map(DimSelection::Ranges);
        let options = self
            .options
            .clone()
            .subarray(Subarray::Box(selections.collect()));
        let read = || -> Result<Option<Vec<ColumnSet>>> {
            let (mut batches, mut bytes) = (Vec::new(), 0);
            for batch in self.array.read(options)? {
                let batch = batch?;
                bytes += batch.memory_size() as u64;
                if bytes > self.room {
                    return Ok(None);
                }
                batches.push(batch);
            }
            Ok(Some(batches))
        };
        match read() {
            Ok(Some(batches)) => Ok(Outcome::Read(batches)),
            Ok(None) => Ok(Outcome::TooLarge),
            // Damaged bytes, or a file that is not there.
            Err(error) if matches!(error.exit_code(), 3 | 4) => Ok(Outcome::Damaged(error)),
            Err(error) => Err(error),
        }
    }
}

/// A side in two: some of its ranges and the others, or its only range; `None` for a single
/// coordinate, and for a range of text.
fn parts(dimension: &Dimension, side: &[Range]) -> Option<[Vec<Range>; 2]> {
    match side {
        [only] => Some(halves(dimension, only)?.map(|half| vec![half])),
        [_, _, ..] => {
            let (some, others) = side.split_at(side.len() / 2);
            Some([some.to_vec(), others.to_vec()])
        }
        [] => None,
    }
}

/// A range in two; `None` for a single coordinate, and for text.
fn halves(dimension: &Dimension, range: &Range) -> Option<[Range; 2]> {
    fn whole<T: Native>(
        range: &Range,
        middle: impl Fn(T, T) -> Option<(T, T)>,
    ) -> Option<[Range; 2]> {
        let (low, high) = (T::read(&range.start), T::read(&range.end));
        let (end, start) = middle(low, high)?;
        Some([Range::of(low, end), Range::of(start, high)])
    }
    if dimension.datatype.is_string() || dimension.is_var() {
        return None;
    }
    match dimension.datatype.physical() {
        Physical::F32 => whole::<f32>(range, |low, high| {
            let middle = low / 2.0 + high / 2.0;
            (low < high && middle < high).then(|| (middle, middle.next_up()))
        }),
        Physical::F64 => whole::<f64>(range, |low, high| {
            let middle = low / 2.0 + high / 2.0;
            (low < high && middle < high).then(|| (middle, middle.next_up()))
        }),
        physical => dispatch!(physical, T => whole::<T>(range, |low, high| {
            let (low, high) = (integer(low), integer(high));
            let middle = low + (high - low).div_euclid(2);
            (low < high).then(|| {
                let of = |value: i128| T::read(&value.to_le_bytes()[..T::SIZE]);
                (of(middle), of(middle + 1))
            })
        })),
    }
}
