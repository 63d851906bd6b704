//! What a partition reads in pieces: between them it looks again at filters that change, or ends as it has
//! all rows that are wanted.

use azulejo::format::Range;
use azulejo::space::DimSelection;
use azulejo::{Array, Result, Subarray};
use std::collections::VecDeque;

/// Cells of a piece, at most, where tiles are small.
const CELLS_A_PIECE: u64 = 1 << 18;

/// Cells of the first piece, at least.
const FEW_CELLS: u64 = 1 << 10;

/// Parts of which pieces are made, at most.
const PARTS: u64 = 256;

/// Cuts a selection of about so many cells, from its beginning or from its end. The first piece is
/// short, as it may teach which of the others need not be read; each is as long as all before it.
///
/// # Errors
/// Those of [`Array::split`].
pub fn pieces(
    array: &Array,
    selection: &Subarray,
    cells: u64,
    backwards: bool,
) -> Result<VecDeque<Subarray>> {
    let wanted = (cells / FEW_CELLS + 1).min(PARTS);
    let mut parts = array.split(selection, usize::try_from(wanted).unwrap_or(1))?;
    if backwards {
        parts.reverse();
    }
    let share = cells / (parts.len() as u64).max(1) + 1;
    let most = usize::try_from(CELLS_A_PIECE / share).unwrap_or(usize::MAX);
    let (mut pieces, mut rest) = (VecDeque::new(), parts.as_mut_slice());
    let mut done = 0;
    while !rest.is_empty() {
        let len = done.min(most).max(1).min(rest.len());
        let (now, later) = rest.split_at_mut(len);
        if backwards {
            now.reverse();
        }
        match joined(selection, now) {
            Some(piece) => pieces.push_back(piece),
            None => pieces.extend(now.iter().cloned()),
        }
        done += len;
        rest = later;
    }
    Ok(pieces)
}

/// The same for cells that come in an order which begins with a dimension: pieces that follow one another
/// along it. `None` where the selection cannot be cut so.
///
/// # Errors
/// Those of [`Array::split`].
pub fn ordered_pieces(
    array: &Array,
    selection: &Subarray,
    cells: u64,
    dimension: usize,
) -> Result<Option<VecDeque<Subarray>>> {
    let pieces = pieces(array, selection, cells, false)?;
    let boxes = pieces.iter().map(|piece| match piece {
        Subarray::Box(selections) => Some(selections),
        Subarray::Points(_) => None,
    });
    let Some(boxes) = boxes.collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let Some(first) = boxes.first() else {
        return Ok(None);
    };
    // Parts ascend along the dimension that they are cut along: it must be this one, and no other.
    let mut others = (0..first.len()).filter(|d| *d != dimension);
    let alike = others.all(|d| boxes.iter().all(|b| b.get(d) == first.get(d)));
    Ok((boxes.len() > 1 && alike).then_some(pieces))
}

/// Parts that follow one another, but not all there are, as one; `None` where they were cut along
/// several dimensions.
fn joined(whole: &Subarray, parts: &[Subarray]) -> Option<Subarray> {
    let boxes = parts.iter().map(|part| match part {
        Subarray::Box(selections) => Some(selections),
        Subarray::Points(_) => None,
    });
    let boxes = boxes.collect::<Option<Vec<_>>>()?;
    let first = *boxes.first()?;
    let mut cut = (0..first.len()).filter(|&d| boxes.iter().any(|b| b.get(d) != first.get(d)));
    let Some(d) = cut.next() else {
        return Some(Subarray::Box(first.clone()));
    };
    if cut.next().is_some() {
        return None;
    }
    let mut ranges: Vec<Range> = Vec::new();
    for part in &boxes {
        match part.get(d)? {
            DimSelection::Ranges(own) => ranges.extend(own.iter().cloned()),
            DimSelection::All | DimSelection::Strided { .. } => return None,
        }
    }
    let Subarray::Box(selections) = whole else {
        return None;
    };
    let one_range = match selections.get(d).unwrap_or(&DimSelection::All) {
        DimSelection::All => true,
        DimSelection::Ranges(ranges) => ranges.len() == 1,
        DimSelection::Strided { .. } => return None,
    };
    if one_range && let (Some(from), Some(to)) = (ranges.first(), ranges.last()) {
        ranges = vec![Range::new(from.start.as_slice(), to.end.as_slice())];
    }
    let mut joined = first.clone();
    *joined.get_mut(d)? = DimSelection::Ranges(ranges);
    Some(Subarray::Box(joined))
}

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo::format::{ArraySchema, Datatype, NdRectangle};
    use azulejo::{ColumnBuffers, ColumnSet, Config, Context, ReadOptions, WriteOptions};

    type TestResult<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

    /// 4096 cells in tiles of 16: 1024 words along one dimension, of which each has four numbers.
    fn array(dense: bool) -> TestResult<Array> {
        let context = Context::new(Config::default(), None)?;
        let place = context.array("mem://pieces");
        let values = ColumnBuffers::of_values("v", (0..4096i32).collect::<Vec<_>>());
        if dense {
            let schema =
                ArraySchema::dense()
                    .dimension("y", 0i32..=63, 4)
                    .dimension("x", 0i32..=63, 4);
            place.create(schema.attribute("v", Datatype::Int32).build()?)?;
            let ranges = vec![Range::of(0i32, 63), Range::of(0i32, 63)];
            let mut writer = place.writer(WriteOptions::new().subarray(NdRectangle { ranges }))?;
            writer.write(&ColumnSet::of([values])?)?;
            writer.finish()?;
        } else {
            let schema = ArraySchema::sparse()
                .string_dimension("s")
                .dimension("i", 0i64..=9, 10);
            let schema = schema.attribute("v", Datatype::Int32).capacity(16);
            place.create(schema.build()?)?;
            let words: Vec<String> = (0..4096).map(|i| format!("{:04}", i / 4)).collect();
            let mut writer = place.writer(WriteOptions::new())?;
            writer.write(&ColumnSet::of([
                ColumnBuffers::of_strings("s", words.iter().map(String::as_str)),
                ColumnBuffers::of_values("i", (0..4096i64).map(|i| i % 4).collect::<Vec<_>>()),
                values,
            ])?)?;
            writer.finish()?;
        }
        Ok(place.open()?)
    }

    #[test]
    fn pieces_grow_and_select_every_cell_once() -> TestResult {
        for dense in [false, true] {
            let array = array(dense)?;
            let middle = match dense {
                true => vec![
                    DimSelection::Ranges(vec![Range::of(3i32, 30), Range::of(40i32, 60)]),
                    DimSelection::All,
                ],
                false => vec![
                    DimSelection::Ranges(vec![Range::new("0100", "0900")]),
                    DimSelection::Ranges(vec![Range::of(0i64, 1)]),
                ],
            };
            for whole in [Subarray::all(), Subarray::Box(middle)] {
                let values = |part: Subarray| -> TestResult<Vec<Vec<u8>>> {
                    let options = ReadOptions::new().subarray(part).fields(["v"]);
                    let cells = array.read(options)?.read_all()?;
                    let bytes = cells.columns.iter().flat_map(|c| c.data.as_chunks::<4>().0);
                    Ok(bytes.map(|value| value.to_vec()).collect())
                };
                let mut expected = values(whole.clone())?;
                expected.sort();
                for backwards in [false, true] {
                    // As if there were more cells: the more parts.
                    let pieces = pieces(&array, &whole, 1 << 20, backwards)?;
                    let cells = pieces
                        .into_iter()
                        .map(values)
                        .collect::<TestResult<Vec<_>>>()?;
                    let first = cells.first().map_or(0, Vec::len);
                    let longest = cells.iter().map(Vec::len).max().unwrap_or(0);
                    assert!(first * 4 < longest, "{first} {longest}");
                    assert!(dense || cells.len() < 20, "{}", cells.len());
                    let mut found = cells.concat();
                    if !dense && !backwards {
                        assert!(
                            found
                                .is_sorted_by_key(|v| i32::from_le_bytes([v[0], v[1], v[2], v[3]]))
                        );
                    }
                    found.sort();
                    assert_eq!(found, expected);
                }
            }
        }
        Ok(())
    }

    #[test]
    fn pieces_in_order_are_the_whole_in_order() -> TestResult {
        use azulejo::space::Layout;
        let mut cut = 0;
        for dense in [false, true] {
            let array = array(dense)?;
            for (dimension, layout) in [(0, Layout::RowMajor), (1, Layout::ColMajor)] {
                let values = |part: Subarray| -> TestResult<Vec<u8>> {
                    let options = ReadOptions::new().subarray(part).fields(["v"]);
                    let cells = array.read(options.layout(layout))?.read_all()?;
                    Ok(cells.columns.iter().flat_map(|c| c.data.to_vec()).collect())
                };
                let whole = Subarray::all();
                let Some(pieces) = ordered_pieces(&array, &whole, 4096, dimension)? else {
                    continue;
                };
                cut += 1;
                let first = pieces.front().cloned().map(values).transpose()?;
                let found = pieces
                    .into_iter()
                    .map(values)
                    .collect::<TestResult<Vec<_>>>()?;
                let expected = values(whole)?;
                assert_eq!(found.concat(), expected);
                assert!(first.is_some_and(|first| first.len() * 3 < expected.len()));
            }
        }
        assert!(cut >= 2, "{cut}");
        Ok(())
    }
}
