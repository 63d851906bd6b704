//! Rows with the same coordinates, where an array keeps one cell for each.

use super::plan::Plan;
use super::source::Source;
use super::target::Target;
use crate::args::OnDuplicate;
use crate::error::{CliError, Result};
use crate::session::Session;
use azulejo::ColumnSet;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hasher};

/// Bytes that a row takes while others like it are looked for.
const OF_A_ROW: u64 = 56;

/// The rows that are left out, ascending and counted from 0.
#[derive(Debug, Default)]
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
        let bytes = column.view().cell(row);
        for hash in &mut hashes {
            hash.write_usize(bytes.len());
            hash.write(bytes);
        }
    }
    let [a, b] = hashes.map(|hash| hash.finish());
    u128::from(a) << 64 | u128::from(b)
}

/// Looks for rows with the same coordinates in the whole file, and leaves out what `wish` says.
/// Without a wish they are an error; files that are too large to be looked through are then left to
/// the writer, which finds those that are near each other.
pub fn find(
    session: &Session,
    source: &Source<'_>,
    size: u64,
    plan: &Plan,
    wish: Option<OnDuplicate>,
) -> Result<LeftOut> {
    let dims: Vec<Target> = plan
        .targets
        .iter()
        .filter(|target| target.is_dimension)
        .cloned()
        .collect();
    let most = session.context.config().memory_budget / 2 / OF_A_ROW;
    if plan.rows > most {
        if wish.is_some() {
            return Err(CliError::usage(format!(
                "--on-duplicate: to look for rows with the same coordinates among {} takes about {}; give it with --memory",
                crate::size::count(plan.rows),
                crate::size::text(2 * plan.rows * OF_A_ROW)
            )));
        }
        session.output.note(
            "rows with the same coordinates are looked for in parts of the file only: it is large for --memory",
        );
        return Ok(LeftOut::default());
    }
    let mut seen: HashMap<u128, u64> = HashMap::new();
    let mut left_out = Vec::new();
    let mut same = None;
    let read = source.read(session, &dims, size, &mut |first, set| {
        for at in 0..set.cell_num {
            let row = first + at as u64;
            match seen.entry(hash(&set, at)) {
                Entry::Vacant(slot) => {
                    slot.insert(row);
                }
                Entry::Occupied(mut slot) => match wish.unwrap_or(OnDuplicate::Error) {
                    OnDuplicate::First => left_out.push(row),
                    OnDuplicate::Last => left_out.push(slot.insert(row)),
                    OnDuplicate::Error => {
                        same = Some((*slot.get(), row));
                        // Ends the reading.
                        return Err(CliError::Format(String::new()));
                    }
                },
            }
        }
        Ok(())
    });
    if let Some((first, second)) = same {
        return Err(same_place(session, source, first, second));
    }
    read?;
    left_out.sort_unstable();
    Ok(LeftOut(left_out))
}

/// The error for two rows, counted from 0, with the same coordinates.
pub fn same_place(session: &Session, source: &Source<'_>, first: u64, second: u64) -> CliError {
    CliError::Format(format!(
        "{} and {} have the same coordinates, and the array has one cell for them; --on-duplicate first or last \
         chooses one, and a new array with --sparse and without --unique keeps both",
        source.row_text(session, first),
        source.row_text(session, second)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_are_the_rows_between_those_left_out() {
        let out = LeftOut(vec![3, 10, 11, 14]);
        assert_eq!(out.kept(0, 3), [0..3]);
        assert!(out.kept(3, 1).is_empty());
        assert_eq!(out.kept(9, 6), [0..1, 3..5]);
        assert_eq!(out.kept(20, 2), [0..2]);
    }
}
