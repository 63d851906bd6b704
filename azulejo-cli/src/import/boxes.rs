//! The boxes of a slab that have rows. Where they are few, only they are written, and what lies
//! between them stays unwritten.

use std::ops::Range;

/// A box in a slab: from where to where on each side.
pub type Part = Vec<Range<usize>>;

/// Boxes, disjoint and in no order, that hold all cells with a row and no other; `None` if it would
/// take more than `most`. `rows` are the cells of a slab in row-major order, 0 where there is no
/// row, `sides` its lengths.
pub fn parts(rows: &[u32], sides: &[usize], most: usize) -> Option<Vec<Part>> {
    let (&_, inner) = sides.split_first()?;
    if inner.is_empty() {
        return runs(rows, most);
    }
    let step = inner.iter().product::<usize>().max(1);
    let mut ended: Vec<Part> = Vec::new();
    // Those that reach to the slice before.
    let mut open: Vec<Part> = Vec::new();
    for (at, slice) in rows.chunks_exact(step).enumerate() {
        let found = parts(slice, inner, most)?;
        let mut reaching = Vec::with_capacity(found.len());
        for part in found {
            let before = open.iter().position(|open| open[1..] == part[..]);
            let part = match before {
                Some(before) => {
                    let mut longer = open.swap_remove(before);
                    longer[0].end = at + 1;
                    longer
                }
                None => std::iter::once(at..at + 1).chain(part).collect(),
            };
            reaching.push(part);
        }
        ended.append(&mut open);
        open = reaching;
        if ended.len() + open.len() > most {
            return None;
        }
    }
    ended.append(&mut open);
    Some(ended)
}

/// The parts of a line.
fn runs(rows: &[u32], most: usize) -> Option<Vec<Part>> {
    let mut found: Vec<Part> = Vec::new();
    let mut from = 0;
    for same in rows.chunk_by(|a, b| (*a == 0) == (*b == 0)) {
        let range = from..from + same.len();
        from = range.end;
        if same.first() != Some(&0) {
            if found.len() == most {
                return None;
            }
            found.push(vec![range]);
        }
    }
    Some(found)
}

/// Where the cells of a part lie in the slab, in row-major order.
pub fn places(part: &Part, sides: &[usize]) -> Vec<usize> {
    let sides = part.iter().zip(sides);
    sides.fold(vec![0], |places, (range, side)| {
        let on = |place: usize| range.clone().map(move |at| place * side + at);
        places.into_iter().flat_map(on).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Boxes of a picture: `#` is a row.
    fn of(picture: &str, sides: &[usize], most: usize) -> Option<Vec<Part>> {
        let rows: Vec<u32> = picture.chars().map(|c| u32::from(c == '#')).collect();
        let found = parts(&rows, sides, most)?;
        let mut covered = vec![0; rows.len()];
        for place in found.iter().flat_map(|part| places(part, sides)) {
            covered[place] += 1;
        }
        assert_eq!(covered, rows, "{picture}: {found:?}");
        Some(found)
    }

    #[test]
    fn boxes_hold_all_rows_once() {
        assert_eq!(of("####", &[4], 1), Some(vec![vec![0..4]]));
        assert_eq!(of("##.#", &[4], 2).unwrap().len(), 2);
        assert_eq!(of("##.#", &[4], 1), None);
        assert_eq!(of("....", &[2, 2], 0), Some(Vec::new()));
        assert_eq!(of("######", &[2, 3], 1), Some(vec![vec![0..2, 0..3]]));
        assert_eq!(of("##.##.", &[2, 3], 1), Some(vec![vec![0..2, 0..2]]));
        // A step: two boxes; a ring: four.
        assert_eq!(of("###.##", &[2, 3], 2).unwrap().len(), 2);
        assert_eq!(of("####.####", &[3, 3], 4).unwrap().len(), 4);
        assert_eq!(of("####.####", &[3, 3], 3), None);
        assert_eq!(
            of("##..##..", &[2, 2, 2], 1),
            Some(vec![vec![0..2, 0..1, 0..2]])
        );
    }

    #[test]
    fn any_pattern_is_covered() {
        for bits in 0u32..1 << 12 {
            let picture: String = (0..12)
                .map(|bit| if bits >> bit & 1 == 1 { '#' } else { '.' })
                .collect();
            for sides in [&[12][..], &[3, 4], &[2, 3, 2]] {
                assert!(of(&picture, sides, 12).is_some());
            }
        }
    }
}
