//! Rows with the same coordinates, where an array keeps one cell for each.

use super::source::Source;
use super::target::Target;
use crate::args::OnDuplicate;
use crate::error::{CliError, Result};
use crate::session::Session;
use crate::value;
use azulejo::ColumnSet;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hasher};

/// Bytes that a row takes while others like it are looked for.
const OF_A_ROW: u64 = 56;

/// The rows that are left out, ascending and counted from 0.
#[derive(Debug, Clone, Default)]
pub struct LeftOut(Vec<u64>);

impl LeftOut {
    /// How many they are.
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// The runs of rows that stay, of so many that begin with `first`.
    pub fn kept(&self, first: u64, count: usize) -> Vec<std::ops::Range<usize>> {
        let from = self.0.partition_point(|row| *row < first);
        let to = self.0.partition_point(|row| *row < first + count as u64);
        let mut runs = Vec::new();
        let mut start = 0;
        for row in self.0.get(from..to).unwrap_or(&[]) {
            let at = (row - first) as usize;
            if start < at {
                runs.push(start..at);
            }
            start = at + 1;
        }
        if start < count {
            runs.push(start..count);
        }
        runs
    }
}

/// Two hashes of a row's coordinates: that two of them agree by chance is not to be expected.
fn hash(dims: &ColumnSet, row: usize) -> u128 {
    let mut hashes = [DefaultHasher::new(), DefaultHasher::new()];
    hashes[1].write_u8(1);
    for column in &dims.columns {
        let bytes = value::told_apart(column.column_type.datatype, column.view().cell(row));
        for hash in &mut hashes {
            hash.write_usize(bytes.len());
            hash.write(bytes);
        }
    }
    let [a, b] = hashes.map(|hash| hash.finish());
    u128::from(a) << 64 | u128::from(b)
}

/// A file whose rows go into an array beside those of others.
#[derive(Debug)]
pub struct File<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it holds.
    pub source: &'a Source<'a>,
    /// Its size.
    pub size: u64,
    /// Its columns of coordinates.
    pub dims: Vec<Target>,
}

impl<'a> File<'a> {
    /// A file that is imported as a plan says.
    pub fn new(name: &'a str, source: &'a Source<'a>, size: u64, targets: &[Target]) -> Self {
        let dims = targets.iter().filter(|target| target.is_dimension);
        Self {
            name,
            source,
            size,
            dims: dims.cloned().collect(),
        }
    }
}

/// Looks for rows with the same coordinates in all files, and leaves out what `wish` says; what is
/// left out comes file by file. Without a wish they are an error; where there are more rows than
/// there is memory for, of which `known` are known to come, they are then left to the writer, which
/// finds those that are near each other.
pub fn find(
    session: &Session,
    files: &[File<'_>],
    known: u64,
    wish: Option<OnDuplicate>,
) -> Result<Vec<LeftOut>> {
    let most = session.context.config().memory_budget / 2 / OF_A_ROW;
    let mut search = Search {
        wish: wish.unwrap_or(OnDuplicate::Error),
        most,
        seen: HashMap::new(),
        left_out: Vec::new(),
    };
    let mut starts = vec![0];
    let mut found = Found::All;
    if known > most {
        found = Found::Full;
    }
    for file in files.iter().take_while(|_| known <= most) {
        let start = starts.last().copied().unwrap_or(0);
        let mut end = start;
        let read = (file.source).read(session, &file.dims, file.size, &mut |first, set| {
            end = start + first + set.cell_num as u64;
            found = search.look(start + first, &set);
            match found {
                Found::All => Ok(()),
                // Ends the reading.
                _ => Err(CliError::Format(String::new())),
            }
        });
        if !matches!(found, Found::All) {
            break;
        }
        read?;
        starts.push(end);
    }
    match (found, wish) {
        (Found::All, _) => {}
        (Found::Same(first, second), _) => {
            return Err(same_place(
                &row_text(session, files, &starts, first),
                &row_text(session, files, &starts, second),
            ));
        }
        (Found::Full, Some(_)) => {
            let rows = known.max(most + 1);
            return Err(CliError::usage(format!(
                "--on-duplicate: to look for rows with the same coordinates among {}{} takes about {}; give it with --memory",
                if rows > known { "more than " } else { "" },
                crate::size::count(rows.min(known.max(most))),
                crate::size::text(2 * rows * OF_A_ROW)
            )));
        }
        (Found::Full, None) => {
            session.output.note(
                "rows with the same coordinates are looked for in parts of the file only: it is large for --memory",
            );
            return Ok(Vec::new());
        }
    }
    search.left_out.sort_unstable();
    Ok(by_file(&search.left_out, &starts))
}

/// The rows of each file among those of all; each file begins behind the one before it.
fn by_file(rows: &[u64], starts: &[u64]) -> Vec<LeftOut> {
    let files = starts.windows(2).map(|ends| {
        let at = |row: u64| rows.partition_point(|other| *other < row);
        let own = rows.get(at(ends[0])..at(ends[1])).unwrap_or(&[]);
        LeftOut(own.iter().map(|row| row - ends[0]).collect())
    });
    files.collect()
}

/// What a look for rows with the same coordinates has come to.
#[derive(Debug)]
enum Found {
    /// Whatever there is.
    All,
    /// Two of them, which is an error.
    Same(u64, u64),
    /// More rows than there is room for.
    Full,
}

/// The rows seen so far, counted over all files.
struct Search {
    wish: OnDuplicate,
    most: u64,
    seen: HashMap<u128, u64>,
    left_out: Vec<u64>,
}

impl Search {
    fn look(&mut self, first: u64, dims: &ColumnSet) -> Found {
        for at in 0..dims.cell_num {
            let row = first + at as u64;
            // Those left out take room too, less than the others.
            if (self.seen.len() + self.left_out.len()) as u64 >= self.most {
                return Found::Full;
            }
            match self.seen.entry(hash(dims, at)) {
                Entry::Vacant(slot) => {
                    slot.insert(row);
                }
                Entry::Occupied(mut slot) => match self.wish {
                    OnDuplicate::First => self.left_out.push(row),
                    OnDuplicate::Last => self.left_out.push(slot.insert(row)),
                    OnDuplicate::Error => return Found::Same(*slot.get(), row),
                },
            }
        }
        Found::All
    }
}

/// How messages name a row, counted over all files.
fn row_text(session: &Session, files: &[File<'_>], starts: &[u64], row: u64) -> String {
    let at = starts
        .partition_point(|start| *start <= row)
        .saturating_sub(1);
    let start = starts.get(at).copied().unwrap_or(0);
    match files.get(at) {
        Some(only) if files.len() == 1 => only.source.row_text(session, row - start),
        Some(file) => format!(
            "{}, {}",
            file.name,
            file.source.row_text(session, row - start)
        ),
        None => format!("row {}", row + 1),
    }
}

/// The error for two rows with the same coordinates.
pub fn same_place(first: &str, second: &str) -> CliError {
    CliError::Format(format!(
        "{first} and {second} have the same coordinates, and the array has one cell for them; --on-duplicate first or last \
         chooses one, and a new array with --sparse and without --unique keeps both"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo::column::{ColumnBuilder, ColumnType};
    use azulejo::format::Datatype;

    #[test]
    fn what_stays_are_the_rows_between_those_left_out() {
        let out = LeftOut(vec![3, 10, 11, 14]);
        assert_eq!(out.kept(0, 3), [0..3]);
        assert!(out.kept(3, 1).is_empty());
        assert_eq!(out.kept(9, 6), [0..1, 3..5]);
        assert_eq!(out.kept(20, 2), [0..2]);
    }

    #[test]
    fn what_is_left_out_comes_file_by_file() {
        let files = by_file(&[1, 4, 5, 9], &[0, 5, 5, 10]);
        let rows: Vec<&[u64]> = files.iter().map(|file| &file.0[..]).collect();
        assert_eq!(rows, [&[1, 4][..], &[], &[0, 4]]);
    }

    #[test]
    fn what_is_seen_keeps_to_its_room() {
        let column = |numbers: &[i64]| {
            let mut column = ColumnBuilder::new(ColumnType::new("x", Datatype::Int64));
            for number in numbers {
                column.append_cell(&number.to_le_bytes(), true);
            }
            ColumnSet {
                cell_num: numbers.len(),
                columns: vec![column.finish()],
            }
        };
        let mut search = Search {
            wish: OnDuplicate::Last,
            most: 4,
            seen: HashMap::new(),
            left_out: Vec::new(),
        };
        assert!(matches!(search.look(0, &column(&[7, 8])), Found::All));
        assert!(matches!(search.look(2, &column(&[7])), Found::All));
        assert_eq!(search.left_out, [0]);
        assert!(matches!(search.look(3, &column(&[9, 10])), Found::Full));
    }
}
