//! How chunks are gathered into boxes that are written at once.

/// Boxes of whole chunks that cover an array, one after another in row-major order.
#[derive(Debug, Clone)]
pub struct Boxes {
    /// Chunks of the array along each axis.
    counts: Vec<u64>,
    /// Chunks of a box along each axis.
    steps: Vec<u64>,
    /// The next box, counted in boxes.
    next: Option<Vec<u64>>,
}

impl Boxes {
    /// Boxes of at most `most` chunks (of one, if that is more): as many as there are along the last
    /// axes, so that a box is one run of cells where it can be.
    pub fn new(counts: &[u64], most: u64) -> Self {
        let mut steps = vec![1; counts.len()];
        let mut left = most.max(1);
        for (step, count) in steps.iter_mut().zip(counts).rev() {
            *step = left.min((*count).max(1));
            left /= *step;
            if *step < *count {
                break;
            }
        }
        Self {
            counts: counts.to_vec(),
            steps,
            next: (!counts.contains(&0)).then(|| vec![0; counts.len()]),
        }
    }
}

impl Iterator for Boxes {
    /// The first chunk, and the number of chunks, along each axis.
    type Item = Vec<(u64, u64)>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut place = self.next.take()?;
        let sides = place.iter().zip(&self.steps).zip(&self.counts);
        let found = sides.map(|((at, step), count)| (at * step, (*step).min(count - at * step)));
        let found = found.collect();
        for ((at, step), count) in place.iter_mut().zip(&self.steps).zip(&self.counts).rev() {
            *at += 1;
            if *at * step < *count {
                self.next = Some(place);
                break;
            }
            *at = 0;
        }
        Some(found)
    }
}

/// All chunks of a box, in row-major order.
pub fn chunks_of(sides: &[(u64, u64)]) -> impl Iterator<Item = Vec<u64>> {
    let counts: Vec<u64> = sides.iter().map(|(_, n)| *n).collect();
    let first: Vec<u64> = sides.iter().map(|(low, _)| *low).collect();
    Boxes::new(&counts, 1).map(move |place| {
        let within = place.iter().map(|(at, _)| at);
        within.zip(&first).map(|(at, low)| at + low).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_cover_each_chunk_once() {
        for (counts, most) in [
            (vec![3, 4, 5], 10),
            (vec![3, 4, 5], 7),
            (vec![7], 3),
            (vec![2, 2], 9),
            (vec![5, 1], 2),
        ] {
            let mut seen: Vec<Vec<u64>> = Vec::new();
            for sides in Boxes::new(&counts, most) {
                assert!(sides.iter().map(|s| s.1).product::<u64>() <= most);
                seen.extend(chunks_of(&sides));
            }
            assert_eq!(seen.len() as u64, counts.iter().product::<u64>());
            seen.sort();
            seen.dedup();
            assert_eq!(seen.len() as u64, counts.iter().product::<u64>());
        }
        assert_eq!(Boxes::new(&[], 5).count(), 1);
        assert_eq!(Boxes::new(&[3, 0], 5).count(), 0);
        assert_eq!(Boxes::new(&[3, 4], 8).next().unwrap(), [(0, 2), (0, 4)]);
    }
}
