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

    /// How many boxes there are.
    pub fn number(&self) -> u64 {
        let along = self.along();
        along.fold(1, u64::saturating_mul)
    }

    /// The boxes that cells of chunks lie in, counted in their order: of those from one place up to
    /// another, and with it.
    pub fn around(&self, low: &[u64], high: &[u64]) -> Vec<u64> {
        let mut found = vec![0u64];
        let sides = low.iter().zip(high).zip(&self.steps).zip(self.along());
        for (((low, high), step), along) in sides {
            let places = low / step..=(high / step).min(along.saturating_sub(1));
            let inside = |at: u64| places.clone().map(move |place| at * along + place);
            found = found.into_iter().flat_map(inside).collect();
        }
        found
    }

    /// The first chunk, and the number of chunks, along each axis of one of the boxes.
    pub fn sides(&self, mut index: u64) -> Vec<(u64, u64)> {
        let along: Vec<u64> = self.along().collect();
        let mut sides = Vec::with_capacity(along.len());
        for ((along, step), count) in along.iter().zip(&self.steps).zip(&self.counts).rev() {
            let first = index % along.max(&1) * step;
            index /= along.max(&1);
            sides.push((first, (*step).min(count - first)));
        }
        sides.reverse();
        sides
    }

    /// Boxes along each axis.
    fn along(&self) -> impl Iterator<Item = u64> {
        let axes = self.counts.iter().zip(&self.steps);
        axes.map(|(count, step)| count.div_ceil(*step))
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
            let boxes = Boxes::new(&counts, most);
            assert_eq!(boxes.number(), boxes.clone().count() as u64);
            for (index, sides) in boxes.clone().enumerate() {
                let index = index as u64;
                assert_eq!(boxes.sides(index), sides);
                for chunk in chunks_of(&sides) {
                    assert_eq!(boxes.around(&chunk, &chunk), [index]);
                }
            }
            let ends: Vec<u64> = counts.iter().map(|n| n - 1).collect();
            let all = boxes.around(&vec![0; counts.len()], &ends);
            assert!(all.into_iter().eq(0..boxes.number()));
            seen.sort();
            seen.dedup();
            assert_eq!(seen.len() as u64, counts.iter().product::<u64>());
        }
        assert_eq!(Boxes::new(&[], 5).count(), 1);
        assert_eq!(Boxes::new(&[3, 0], 5).count(), 0);
        assert_eq!(Boxes::new(&[3, 4], 8).next().unwrap(), [(0, 2), (0, 4)]);
    }
}
