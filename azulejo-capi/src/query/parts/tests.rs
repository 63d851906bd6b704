use super::*;

/// Room for so many cells.
struct Room {
    most: u64,
    added: u64,
}

impl Estimate for Room {
    fn add(&mut self, ranges: &[Span]) -> Result<bool> {
        self.added += ranges
            .iter()
            .map(|(low, high)| high - low + 1)
            .product::<u64>();
        Ok(self.added <= self.most)
    }

    fn clear(&mut self) {
        self.added = 0;
    }

    fn fits(&mut self, part: &Part) -> Result<bool> {
        Ok(cells(part) <= self.most)
    }
}

fn steps(tiles: Option<u64>, ranges: Part, most: u64) -> Vec<u64> {
    let order: Vec<usize> = (0..ranges.len()).collect();
    let walk = Walk {
        tiles: tiles.map(|extent| (order.clone(), vec![extent; ranges.len()])),
        cells: order,
    };
    let (mut parts, mut room) = (Parts::new(walk, ranges), Room { most, added: 0 });
    let mut found = Vec::new();
    while let Some(part) = parts.next(&mut room).expect("no error") {
        found.push(cells(part));
        parts.done();
    }
    found
}

#[test]
fn parts_are_those_of_the_reference() {
    // Each seen there.
    assert_eq!(steps(None, vec![vec![(1, 34), (14, 28)]], 23), [17, 17, 15]);
    assert_eq!(steps(None, vec![vec![(1, 2), (4, 6)]], 4), [2, 3]);
    assert_eq!(steps(None, vec![vec![(9, 16)]], 7), [4, 4]);
    assert_eq!(steps(None, vec![vec![(0, 9)]], 2), [2, 1, 2, 2, 1, 2]);
    assert_eq!(steps(Some(5), vec![vec![(1, 27)]], 21), [9, 18]);
    assert_eq!(steps(Some(1), vec![vec![(2, 5)]], 2), [1, 1, 2]);
    assert_eq!(steps(Some(5), vec![vec![(0, 9)]], 6), [5, 5]);
}

#[test]
fn slabs_have_all_ranges_of_the_fastest_dimension() {
    let ranges = vec![vec![(0, 1), (3, 3)], vec![(0, 0), (2, 3)]];
    assert_eq!(steps(None, ranges.clone(), 5), [3, 3, 3]);
    assert_eq!(steps(None, ranges.clone(), 8), [6, 3]);
    assert_eq!(steps(None, ranges, 9), [9]);
}

#[test]
fn a_part_that_took_more_than_was_thought_is_divided() {
    let walk = Walk {
        cells: vec![0],
        tiles: None,
    };
    let mut parts = Parts::new(walk, vec![vec![(0, 7)]]);
    let mut room = Room { most: 8, added: 0 };
    assert_eq!(parts.next(&mut room).expect("no error").map(cells), Some(8));
    assert_eq!(
        parts.divide(&mut room).expect("no error").map(cells),
        Some(4)
    );
    assert_eq!(
        parts.divide(&mut room).expect("no error").map(cells),
        Some(2)
    );
    parts.done();
    assert_eq!(parts.next(&mut room).expect("no error").map(cells), Some(2));
    assert_eq!(
        parts.divide(&mut room).expect("no error").map(cells),
        Some(1)
    );
    // One cell is as small as parts get, and it comes again.
    assert_eq!(parts.divide(&mut room).expect("no error"), None);
    assert_eq!(parts.next(&mut room).expect("no error").map(cells), Some(1));
    parts.done();
    assert_eq!(parts.next(&mut room).expect("no error").map(cells), Some(1));
    assert_eq!(parts.next(&mut room).expect("no error").map(cells), Some(4));
    assert_eq!(parts.next(&mut room).expect("no error"), None);
}
