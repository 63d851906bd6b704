//! Which two dimensions of an array a picture shows.

use crate::error::{CliError, Result};
use crate::selection::names_among;
use azulejo::format::schema::Domain;

/// Rows and columns of a picture of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sides {
    /// Cells down.
    pub rows: u64,
    /// Cells across.
    pub columns: u64,
    /// Whether cells in row-major order come column by column.
    pub turned: bool,
}

/// The sides of a box: the two dimensions named, or those of which more than one coordinate is
/// selected. The others have one.
pub fn sides(domain: &Domain, shape: &[u64], dims: Option<&[String]>) -> Result<Sides> {
    let name = |at: usize| domain.dimensions[at].name.as_str();
    let long: Vec<usize> = (0..shape.len()).filter(|&at| shape[at] > 1).collect();
    let (down, across) = match dims {
        Some(_) => {
            let [down, across] = two(domain, dims)?;
            (Some(down), Some(across))
        }
        None if shape.len() == 2 => (Some(0), Some(1)),
        None => match long[..] {
            [] => (None, None),
            [across] => (None, Some(across)),
            [down, across] => (Some(down), Some(across)),
            _ => (None, None),
        },
    };
    let hidden: Vec<usize> = long
        .iter()
        .copied()
        .filter(|at| Some(*at) != down && Some(*at) != across)
        .collect();
    if let [first, ..] = hidden[..] {
        let names: Vec<&str> = long.iter().map(|&at| name(at)).collect();
        // Those before it are many, and two of them can stay.
        return Err(CliError::usage(format!(
            "a picture shows two dimensions, and {} are selected: {}; fix the others, as in --range {}=0",
            long.len(),
            names.join(", "),
            name(first)
        )));
    }
    let length = |at: Option<usize>| at.map_or(1, |at| shape[at]);
    Ok(Sides {
        rows: length(down),
        columns: length(across),
        turned: matches!((down, across), (Some(down), Some(across)) if down > across),
    })
}

/// The two dimensions named, or the first two.
pub fn two(domain: &Domain, dims: Option<&[String]>) -> Result<[usize; 2]> {
    let count = domain.dimensions.len();
    let Some(dims) = dims else {
        return match count {
            0 | 1 => Err(CliError::usage(
                "a picture shows two dimensions, and the array has one",
            )),
            _ => Ok([0, 1]),
        };
    };
    let dims = names_among(dims, |name| domain.index_of(name).is_some());
    let [down, across] = dims.as_slice() else {
        return Err(CliError::usage("--dims takes two dimensions: DOWN,ACROSS"));
    };
    let find = |name: &String| {
        domain.index_of(name).ok_or_else(|| {
            let names: Vec<&str> = domain.dimensions.iter().map(|d| d.name.as_str()).collect();
            CliError::usage(format!(
                "--dims: there is no dimension {name:?}; there are {}",
                names.join(", ")
            ))
        })
    };
    match (find(down)?, find(across)?) {
        (down, across) if down == across => {
            Err(CliError::usage("--dims takes two different dimensions"))
        }
        (down, across) => Ok([down, across]),
    }
}
