//! What maintenance would do for an array, from the numbers and sizes of its fragments and files.

use super::schema::plural;
use crate::size;
use azulejo::Array;

/// A fragment, as far as maintenance cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its name.
    pub name: String,
    /// Cells in it.
    pub cells: u64,
    /// Bytes of its files.
    pub bytes: u64,
}

/// What an array consists of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Survey {
    /// The fragments that count, in the order of time.
    pub pieces: Vec<Piece>,
    /// Files of a fragment that a read of all fields opens.
    pub files_of_fragment: u64,
    /// Bytes of a cell, guessed where its length varies.
    pub cell_bytes: u64,
    /// Commit files that opening lists.
    pub commits: usize,
    /// Fragments of which opening reads the footer alone.
    pub footers: usize,
    /// Files of key-values.
    pub key_values: usize,
    /// Fragments that were replaced and are still there.
    pub replaced: usize,
    /// Whether a vacuum takes the times within what was consolidated.
    pub forgets: bool,
    /// Whether every file costs the way to a server.
    pub far: bool,
}

/// Bytes that a value of variable length is taken to have.
const VAR_BYTES: u64 = 16;

impl Survey {
    /// Looks at an array.
    pub fn of(array: &Array) -> azulejo::Result<Self> {
        let info = array.fragment_info();
        let mut pieces = Vec::new();
        for fragment in info.fragments() {
            pieces.push(Piece {
                name: fragment.name().to_owned(),
                cells: fragment.cell_num(),
                bytes: fragment.size()?,
            });
        }
        let schema = array.schema();
        let (mut files, mut cell_bytes) = (1, 0);
        let mut field = |size: Option<u64>, nullable: bool| {
            files += 1 + u64::from(size.is_none()) + u64::from(nullable);
            cell_bytes += size.unwrap_or(VAR_BYTES);
        };
        for attribute in &schema.attributes {
            let size = attribute.cell_size().map(|size| size as u64);
            field(size, attribute.nullable);
        }
        if !schema.is_dense() {
            for dimension in &schema.domain.dimensions {
                let fixed = !dimension.cell_val_num.is_var();
                field(fixed.then_some(dimension.datatype.size() as u64), false);
            }
        }
        let location = array.location();
        let files_in = |folder: &str| -> azulejo::Result<usize> {
            let entries = location.storage.list(&location.path.join(folder))?;
            Ok(entries.iter().filter(|entry| !entry.is_dir).count())
        };
        Ok(Self {
            pieces,
            files_of_fragment: files,
            cell_bytes,
            commits: files_in("__commits")?,
            footers: info.unconsolidated_metadata_num(),
            key_values: files_in("__meta")?,
            replaced: info.to_vacuum().len(),
            forgets: schema.is_dense(),
            far: !["file", "mem"].contains(&location.path.scheme()),
        })
    }

    /// How many times less time a read of everything would take if all fragments were one.
    ///
    /// A model, whose constants were measured on one machine with local files and taken from what a
    /// cloud answers in: reads of parts gain more or less, as they touch many fragments or few.
    pub fn gain(&self) -> f64 {
        // Milliseconds: of opening, of a file, of a megabyte of cells.
        let (fixed, file, megabyte) = match self.far {
            false => (11.0, 0.02, 3.3),
            true => (150.0, 1.25, 10.0),
        };
        let cells: u64 = self.pieces.iter().map(|piece| piece.cells).sum();
        let decoding = cells.saturating_mul(self.cell_bytes) as f64 / 1e6 * megabyte;
        let time = |fragments: usize| {
            fixed + decoding + file * (fragments as u64 * self.files_of_fragment) as f64
        };
        time(self.pieces.len()) / time(1)
    }

    /// What an owner is told, if it is worth a word.
    pub fn advice(&self) -> Option<String> {
        let gain = self.gain();
        let count = self.pieces.len();
        if count < 2 || gain < WORTH_A_WORD {
            return None;
        }
        let cells: u64 = self.pieces.iter().map(|piece| piece.cells).sum();
        Some(format!(
            "{} of {} cells: consolidate, and reads of all of it would be about {} times faster",
            plural(count, "fragment"),
            size::count(cells / count as u64),
            rounded(gain)
        ))
    }
}

/// Less is not worth the work.
const WORTH_A_WORD: f64 = 1.5;

/// No more digits than an estimate has.
fn rounded(gain: f64) -> String {
    if gain < 3.0 {
        return format!("{gain:.1}");
    }
    let magnitude = 10f64.powf(gain.log10().floor());
    let digits = if gain < 10.0 { 1.0 } else { magnitude };
    size::count(((gain / digits).round() * digits) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(fragments: usize, cells: u64) -> Survey {
        let piece = |i: usize| Piece {
            name: i.to_string(),
            cells,
            bytes: cells * 16,
        };
        Survey {
            pieces: (0..fragments).map(piece).collect(),
            files_of_fragment: 3,
            cell_bytes: 16,
            ..Survey::default()
        }
    }

    #[test]
    fn many_small_fragments_are_worth_a_word() {
        // What was measured: 2.9, 3.5 and 4.0 times for 500 fragments of 50 cells.
        let gain = survey(500, 50).gain();
        assert!((2.9..4.0).contains(&gain), "{gain}");
        let advice = survey(2000, 50).advice().unwrap();
        assert!(
            advice.starts_with("2,000 fragments of 50 cells: consolidate"),
            "{advice}"
        );
        assert_eq!(survey(1, 50).advice(), None);
        assert_eq!(survey(3, 50).advice(), None);
        assert_eq!(survey(20, 10_000_000).advice(), None);
        let far = Survey {
            far: true,
            ..survey(500, 50)
        };
        assert!(far.gain() > survey(500, 50).gain());
    }

    #[test]
    fn estimates_have_few_digits() {
        for (gain, text) in [
            (1.52, "1.5"),
            (3.4, "3"),
            (9.6, "10"),
            (14.0, "10"),
            (47.0, "50"),
            (1234.0, "1,000"),
        ] {
            assert_eq!(rounded(gain), text);
        }
    }
}
