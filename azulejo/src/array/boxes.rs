//! Which of an array's fragments a selection can meet: their boxes in a tree, so that of very many
//! fragments most are never looked at.

use azulejo_format::datatype::Native;
use azulejo_format::schema::{Dimension, Domain};
use azulejo_format::{NdRectangle, dispatch};

/// Members of a group.
const FAN: usize = if cfg!(test) { 3 } else { 32 };

/// Boxes of fragments, in groups of such as lie near each other along one dimension.
#[derive(Debug)]
pub(super) struct FragmentBoxes {
    /// Numbers of the fragments with cells, group after group.
    fragments: Vec<u32>,
    /// Boxes around [`FAN`] fragments each, then around as many of these boxes, and so on; the last
    /// level has one.
    levels: Vec<Vec<NdRectangle>>,
}

impl FragmentBoxes {
    /// Of fragments with cells: their numbers and boxes.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "an array has fewer than 2^32 fragments"
    )]
    pub fn new<'a>(
        domain: &Domain,
        boxes: impl IntoIterator<Item = (usize, &'a NdRectangle)>,
    ) -> Self {
        let mut boxes: Vec<(usize, &NdRectangle)> = boxes.into_iter().collect();
        if boxes.len() > FAN {
            sort(domain, &mut boxes);
        }
        let fragments = boxes.iter().map(|(number, _)| *number as u32).collect();
        let groups = boxes.chunks(FAN);
        let groups = groups.filter_map(|group| domain.around(group.iter().map(|(_, of)| *of)));
        let mut level: Vec<NdRectangle> = groups.collect();
        let mut levels = Vec::new();
        while level.len() > 1 {
            let above = level.chunks(FAN).filter_map(|group| domain.around(group));
            let above = above.collect();
            levels.push(std::mem::replace(&mut level, above));
        }
        levels.push(level);
        Self { fragments, levels }
    }

    /// The box around all of them.
    pub fn around(&self) -> Option<&NdRectangle> {
        self.levels.last()?.first()
    }

    /// The fragments whose box `meets`, ascending, with that box, which `box_of` gives. A box around
    /// one that meets must meet, too.
    ///
    /// For example 100,000 fragments of a day each, asked for one day: 98 boxes at most around
    /// 1,024 of them, 32 around 32 and 32 of a day are looked at.
    pub fn meeting<'a>(
        &self,
        box_of: impl Fn(usize) -> Option<&'a NdRectangle>,
        meets: impl Fn(&NdRectangle) -> bool,
    ) -> Vec<(usize, &'a NdRectangle)> {
        let mut members: Vec<usize> = vec![0];
        for level in self.levels.iter().rev() {
            members.retain(|group| level.get(*group).is_some_and(&meets));
            let below = members
                .iter()
                .flat_map(|group| group * FAN..(group + 1) * FAN);
            members = below.collect();
        }
        let fragments = members
            .iter()
            .filter_map(|place| self.fragments.get(*place));
        let with_box = fragments.filter_map(|&number| {
            let number = number as usize;
            Some((number, box_of(number)?))
        });
        let mut met: Vec<_> = with_box.filter(|(_, of)| meets(of)).collect();
        met.sort_unstable_by_key(|(number, _)| *number);
        met
    }
}

/// Sorts boxes along the dimension of which each takes the least part.
fn sort(domain: &Domain, boxes: &mut [(usize, &NdRectangle)]) {
    let mut best: Option<(f64, Vec<f64>)> = None;
    for (d, dimension) in domain.dimensions.iter().enumerate() {
        let of = |bounds: &NdRectangle| {
            let range = bounds.ranges.get(d)?;
            Some((place(dimension, &range.start), place(dimension, &range.end)))
        };
        let ends: Vec<(f64, f64)> = boxes
            .iter()
            .map(|(_, bounds)| of(bounds).unwrap_or_default())
            .collect();
        let least = ends.iter().map(|end| end.0).fold(f64::INFINITY, f64::min);
        let most = ends
            .iter()
            .map(|end| end.1)
            .fold(f64::NEG_INFINITY, f64::max);
        let widths: f64 = ends.iter().map(|(low, high)| high - low).sum();
        let part = widths / (most - least);
        // A dimension along which all lie at one place tells nothing.
        if part.is_finite() && best.as_ref().is_none_or(|(least, _)| part < *least) {
            best = Some((part, ends.iter().map(|(low, high)| low + high).collect()));
        }
    }
    let Some((_, places)) = best else { return };
    let mut sorted: Vec<(f64, (usize, &NdRectangle))> =
        places.into_iter().zip(boxes.iter().copied()).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (place, (_, sorted)) in boxes.iter_mut().zip(sorted) {
        *place = sorted;
    }
}

/// About where a coordinate lies: only how well boxes are grouped depends on it.
fn place(dimension: &Dimension, coordinate: &[u8]) -> f64 {
    fn number<T: Native>(coordinate: &[u8]) -> f64 {
        T::read(coordinate).as_f64()
    }
    if dimension.is_var() {
        let bytes = coordinate.iter().chain(std::iter::repeat(&0)).take(8);
        return bytes.fold(0.0, |sum, byte| sum * 256.0 + f64::from(*byte));
    }
    dispatch!(dimension.datatype.physical(), T => number::<T>(coordinate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo_format::{ArraySchema, Datatype, Range};
    use proptest::prelude::*;

    fn domain() -> Domain {
        let schema = ArraySchema::sparse()
            .dimension("x", 0i64..=1_000, 10)
            .dimension("y", -1.0f64..=1.0, 1.0)
            .attribute("a", Datatype::Int32);
        schema.build().unwrap().schema.domain
    }

    fn of(x: (i64, i64), y: (i64, i64)) -> NdRectangle {
        let real = |y: i64| y as f64 / 1_000.0;
        NdRectangle {
            ranges: vec![
                Range::of(x.0, x.0 + x.1),
                Range::of(real(y.0), real(y.0 + y.1)),
            ],
        }
    }

    proptest! {
        #[test]
        fn the_fragments_that_meet_are_found(
            boxes in proptest::collection::vec(((0i64..900, 0i64..60), (-900i64..800, 0i64..90)), 0..80),
            asked in ((0i64..900, 0i64..99), (-900i64..800, 0i64..99)),
        ) {
            let domain = domain();
            // Every third fragment has no cells.
            let boxes: Vec<NdRectangle> = boxes.into_iter().map(|(x, y)| of(x, y)).collect();
            let numbered = || boxes.iter().enumerate().map(|(i, of)| (i * 3, of));
            let asked = of(asked.0, asked.1);
            let meets = |bounds: &NdRectangle| {
                let ranges = bounds.ranges.iter().zip(&asked.ranges).zip(&domain.dimensions);
                ranges.into_iter().all(|((a, b), d)| a.as_ref().overlaps(b.as_ref(), d.datatype))
            };
            let tree = FragmentBoxes::new(&domain, numbered());
            let box_of = |number: usize| boxes.get(number / 3);
            let expected: Vec<_> = numbered().filter(|(_, of)| meets(of)).collect();
            prop_assert_eq!(tree.meeting(box_of, meets), expected);
            prop_assert_eq!(tree.around().cloned(), domain.around(&boxes));
        }
    }

    #[test]
    fn of_many_most_are_never_looked_at() {
        let domain = domain();
        let boxes: Vec<NdRectangle> = (0..900).map(|i| of((i * 7 % 900, 0), (0, 5))).collect();
        let tree = FragmentBoxes::new(&domain, boxes.iter().enumerate());
        let asked = of((444, 0), (0, 9));
        let looked = std::cell::Cell::new(0);
        let meets = |bounds: &NdRectangle| {
            looked.set(looked.get() + 1);
            let x = (bounds.ranges.first(), asked.ranges.first());
            matches!(x, (Some(a), Some(b)) if a.as_ref().overlaps(b.as_ref(), Datatype::Int64))
        };
        let found = tree.meeting(|number| boxes.get(number), meets);
        assert_eq!(found.len(), 1);
        assert!(looked.get() < 60, "{}", looked.get());
    }
}
