//! From predicates to what the engine reads: ranges of dimensions, and a condition on cells.

use crate::columns::{Place, TableColumns};
use crate::predicate::Predicate;
use azulejo::condition::{Comparison, Condition};
use azulejo::format::schema::Dimension;
use azulejo::format::{ArraySchema, Physical, Range};
use azulejo::space::DimSelection;
use azulejo::{Array, Subarray};
use std::collections::HashSet;

/// Which cells a scan reads.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// None at all.
    Nothing,
    /// Those of a box that meet a condition.
    Cells {
        /// The box.
        subarray: Subarray,
        /// What the cells in it must meet.
        condition: Option<Condition>,
    },
}

impl Selection {
    /// The cells for which all predicates hold.
    pub fn of(predicates: &[Predicate], columns: &TableColumns, schema: &ArraySchema) -> Self {
        let dimensions = &schema.domain.dimensions;
        let mut ranges: Vec<Vec<Intervals>> = vec![Vec::new(); dimensions.len()];
        let mut conditions = Vec::new();
        // What several conjuncts say of one dimension is looked at as one.
        for predicate in predicates {
            let parts = match predicate {
                Predicate::And(parts) => parts.as_slice(),
                predicate => std::slice::from_ref(predicate),
            };
            for part in parts {
                if *part == Predicate::Constant(false) {
                    return Self::Nothing;
                }
                let d = part.dimension(columns);
                if let Some((d, dimension)) = d.and_then(|d| Some((d, dimensions.get(d)?)))
                    && let Some(found) = Intervals::of(part, dimension, domain_of(schema, d))
                    && let Some(known) = ranges.get_mut(d)
                {
                    if !found.exact {
                        conditions.extend(part.to_condition(columns));
                    }
                    known.push(found);
                    continue;
                }
                conditions.extend(part.to_condition(columns));
            }
        }
        let mut selections = Vec::with_capacity(ranges.len());
        for ((d, dimension), found) in dimensions.iter().enumerate().zip(ranges) {
            let Some(found) = Intervals::of_all(&found) else {
                selections.push(DimSelection::All);
                continue;
            };
            let ranges = found.ranges(dimension, domain_of(schema, d));
            if ranges.is_empty() {
                return Self::Nothing;
            }
            selections.push(DimSelection::Ranges(ranges));
        }
        let condition = conditions.into_iter().reduce(Condition::and);
        Self::Cells {
            subarray: Subarray::Box(selections),
            condition,
        }
    }

    /// What the cells must meet.
    pub fn condition(&self) -> Option<&Condition> {
        match self {
            Self::Nothing => None,
            Self::Cells { condition, .. } => condition.as_ref(),
        }
    }
}

/// Places along a dimension that were written, at most; of more, those next to each other are seen
/// as one. Whatever lies between two of them is looked at in vain.
const WRITTEN_SPANS: usize = 4096;

impl Selection {
    /// The same cells of a dense array, without what nobody wrote: its domain may be as large as it
    /// likes.
    #[must_use]
    pub fn within_written(self, array: &Array) -> Self {
        let Self::Cells {
            subarray: Subarray::Box(mut selections),
            condition,
        } = self
        else {
            return self;
        };
        let schema = array.schema();
        let dimensions = schema.domain.dimensions.iter().enumerate();
        for ((d, dimension), selection) in dimensions.zip(&mut selections) {
            let domain = domain_of(schema, d);
            let Some(all) = whole(dimension, domain) else {
                continue;
            };
            let all = Intervals::new(vec![all], true);
            let asked = match selection {
                DimSelection::All => Some(all.clone()),
                DimSelection::Ranges(ranges) => Intervals::of_ranges(ranges.iter(), dimension),
                DimSelection::Strided { .. } => None,
            };
            let boxes = array.fragments().iter();
            let boxes = boxes.filter_map(|f| f.footer().non_empty_domain.as_ref());
            let ranges = boxes.filter_map(|written| written.ranges.get(d));
            let written = Intervals::of_ranges(ranges, dimension);
            let (Some(asked), Some(written)) = (asked, written) else {
                continue;
            };
            let both = asked.and(&written.of_at_most(WRITTEN_SPANS));
            if both.spans.is_empty() {
                return Self::Nothing;
            }
            if both.spans != asked.spans {
                *selection = DimSelection::Ranges(both.ranges(dimension, domain));
            }
        }
        Self::Cells {
            subarray: Subarray::Box(selections),
            condition,
        }
    }
}

/// The bounds of a dimension: of the part of the domain in use, if one is set.
fn domain_of(schema: &ArraySchema, d: usize) -> Option<&Range> {
    let current = schema
        .current_domain
        .ranges()
        .and_then(|ranges| ranges.get(d));
    let dimension = schema.domain.dimensions.get(d);
    current.or_else(|| dimension.and_then(|dimension| dimension.domain.as_ref()))
}

/// Coordinates along a dimension: spans that ascend and do not touch.
#[derive(Debug, Clone, PartialEq)]
struct Intervals {
    spans: Vec<(Bound, Bound)>,
    /// Whether they hold no other coordinates than those asked for.
    exact: bool,
}

/// A coordinate, or the place behind all coordinates.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Bound {
    /// A number in the order of the dimension: neighbours differ by 1.
    Number(i128),
    /// A string.
    Text(Vec<u8>),
    /// Behind all strings.
    Endless,
}

impl Intervals {
    fn new(mut spans: Vec<(Bound, Bound)>, exact: bool) -> Self {
        spans.retain(|(start, end)| start <= end);
        spans.sort();
        let mut joined: Vec<(Bound, Bound)> = Vec::with_capacity(spans.len());
        for (start, end) in spans {
            match joined.last_mut() {
                Some(last)
                    if start <= last.1 || next(&last.1).is_some_and(|next| next == start) =>
                {
                    last.1 = last.1.clone().max(end);
                }
                _ => joined.push((start, end)),
            }
        }
        Self {
            spans: joined,
            exact,
        }
    }

    /// The coordinates for which a predicate about one dimension holds, or more.
    fn of(predicate: &Predicate, dimension: &Dimension, domain: Option<&Range>) -> Option<Self> {
        let all = whole(dimension, domain)?;
        let of = |inner: &Predicate| Self::of(inner, dimension, domain);
        Some(match predicate {
            Predicate::Constant(true) => Self::new(vec![all], true),
            Predicate::Constant(false) => Self::new(Vec::new(), true),
            Predicate::IsNull { .. } => return None,
            Predicate::And(parts) => {
                let all = Self::new(vec![all], true);
                let each = [Some(all)].into_iter().chain(parts.iter().map(of));
                Self::of_all(&each.collect::<Option<Vec<_>>>()?)?
            }
            Predicate::Or(parts) => {
                let parts = parts.iter().map(of).collect::<Option<Vec<_>>>()?;
                let exact = parts.iter().all(|part| part.exact);
                Self::new(
                    parts.into_iter().flat_map(|part| part.spans).collect(),
                    exact,
                )
            }
            Predicate::Compare { op, value, .. } => {
                let at = bound(dimension, value)?;
                let below = || (all.0.clone(), before(&at, dimension));
                let above = || next(&at).map(|next| (next, all.1.clone()));
                // Strings have no neighbour below.
                let exact =
                    !matches!(at, Bound::Text(_)) || !matches!(op, Comparison::Lt | Comparison::Ne);
                let spans = match op {
                    Comparison::Eq => vec![(at.clone(), at.clone())],
                    Comparison::Le => vec![(all.0.clone(), at.clone())],
                    Comparison::Ge => vec![(at.clone(), all.1.clone())],
                    Comparison::Lt => vec![below()],
                    Comparison::Gt => above().into_iter().collect(),
                    Comparison::Ne => [below()].into_iter().chain(above()).collect(),
                    Comparison::AlwaysTrue | Comparison::AlwaysFalse => return None,
                };
                Self::new(spans, exact)
            }
            Predicate::In {
                values,
                negated: false,
                ..
            } => {
                let point = |value: &Vec<u8>| {
                    let at = bound(dimension, value)?;
                    Some((at.clone(), at))
                };
                Self::new(values.iter().map(point).collect::<Option<_>>()?, true)
            }
            Predicate::In { values, column, .. } => {
                let differs = |value: &Vec<u8>| Predicate::Compare {
                    column: *column,
                    op: Comparison::Ne,
                    value: value.clone(),
                };
                of(&Predicate::And(values.iter().map(differs).collect()))?
            }
        })
    }

    /// The coordinates of ranges; `None` if some are not of the dimension's type.
    fn of_ranges<'a>(
        ranges: impl Iterator<Item = &'a Range>,
        dimension: &Dimension,
    ) -> Option<Self> {
        let span = |range: &Range| {
            Some((
                bound(dimension, &range.start)?,
                bound(dimension, &range.end)?,
            ))
        };
        Some(Self::new(ranges.map(span).collect::<Option<_>>()?, true))
    }

    /// These coordinates in so many spans at most, with what lies between some of them: where that
    /// is least.
    fn of_at_most(self, most: usize) -> Self {
        let joins = self.spans.len().saturating_sub(most.max(1));
        if joins == 0 {
            return self;
        }
        let ends = self.spans.iter().zip(self.spans.iter().skip(1));
        let mut gaps: Vec<(i128, usize)> = ends
            .map(|(before, after)| gap(&before.1, &after.0))
            .zip(1..)
            .collect();
        gaps.select_nth_unstable(joins - 1);
        gaps.truncate(joins);
        let joined: HashSet<usize> = gaps.into_iter().map(|(_, index)| index).collect();
        let mut spans: Vec<(Bound, Bound)> = Vec::with_capacity(most);
        for (index, span) in self.spans.into_iter().enumerate() {
            match spans.last_mut() {
                Some(last) if joined.contains(&index) => last.1 = span.1,
                _ => spans.push(span),
            }
        }
        Self {
            spans,
            exact: false,
        }
    }

    /// The coordinates that all of some hold; `None` of none. One after another, each would be held
    /// against whatever those before it have left, which takes as long as their number squared.
    fn of_all(each: &[Self]) -> Option<Self> {
        match each {
            [] => None,
            [one] => Some(one.clone()),
            each => {
                let (some, others) = each.split_at(each.len() / 2);
                Some(Self::of_all(some)?.and(&Self::of_all(others)?))
            }
        }
    }

    /// The coordinates of both.
    fn and(&self, other: &Self) -> Self {
        let mut spans = Vec::new();
        let (mut a, mut b) = (self.spans.iter().peekable(), other.spans.iter().peekable());
        while let (Some(left), Some(right)) = (a.peek(), b.peek()) {
            let start = (&left.0).max(&right.0).clone();
            let end = (&left.1).min(&right.1).clone();
            if left.1 < right.1 {
                a.next();
            } else {
                b.next();
            }
            spans.push((start, end));
        }
        Self::new(spans, self.exact && other.exact)
    }

    /// The spans as ranges within the domain.
    fn ranges(&self, dimension: &Dimension, domain: Option<&Range>) -> Vec<Range> {
        let Some(all) = whole(dimension, domain) else {
            return Vec::new();
        };
        let within = self.and(&Self::new(vec![all], true));
        let range = |(start, end): &(Bound, Bound)| {
            Range::new(bytes(dimension, start), bytes(dimension, end))
        };
        let ranges = within.spans.iter().map(range);
        // An endless range of strings must begin somewhere: without bounds it would be that of the
        // empty string.
        let whole =
            |range: &Range| dimension.is_var() && range.start.is_empty() && range.end.is_empty();
        let endless = within
            .spans
            .first()
            .is_some_and(|span| span.1 == Bound::Endless);
        ranges
            .flat_map(|range| match whole(&range) && endless {
                true => vec![Range::new("", ""), Range::new([0], "")],
                false => vec![range],
            })
            .collect()
    }
}

/// All coordinates of a dimension.
fn whole(dimension: &Dimension, domain: Option<&Range>) -> Option<(Bound, Bound)> {
    if dimension.is_var() {
        let start = domain
            .map(|domain| domain.start.clone())
            .unwrap_or_default();
        let end = domain
            .map(|domain| domain.end.clone())
            .filter(|end| !end.is_empty());
        return Some((Bound::Text(start), end.map_or(Bound::Endless, Bound::Text)));
    }
    let domain = domain?;
    Some((
        bound(dimension, &domain.start)?,
        bound(dimension, &domain.end)?,
    ))
}

/// A coordinate as a bound.
fn bound(dimension: &Dimension, value: &[u8]) -> Option<Bound> {
    if dimension.is_var() {
        return Some(Bound::Text(value.to_vec()));
    }
    if value.len() != dimension.datatype.size() {
        return None;
    }
    Some(Bound::Number(match dimension.datatype.physical() {
        Physical::I8 => i8::from_le_bytes(*value.first_chunk()?).into(),
        Physical::I16 => i16::from_le_bytes(*value.first_chunk()?).into(),
        Physical::I32 => i32::from_le_bytes(*value.first_chunk()?).into(),
        Physical::I64 => i64::from_le_bytes(*value.first_chunk()?).into(),
        Physical::U8 => u8::from_le_bytes(*value.first_chunk()?).into(),
        Physical::U16 => u16::from_le_bytes(*value.first_chunk()?).into(),
        Physical::U32 => u32::from_le_bytes(*value.first_chunk()?).into(),
        Physical::U64 => u64::from_le_bytes(*value.first_chunk()?).into(),
        // Of negative reals all bits but the sign turn around; -0.0 is 0.0.
        Physical::F32 => {
            let bits = (f32::from_le_bytes(*value.first_chunk()?) + 0.0)
                .to_bits()
                .cast_signed();
            (bits ^ ((bits >> 31) & i32::MAX)).into()
        }
        Physical::F64 => {
            let bits = (f64::from_le_bytes(*value.first_chunk()?) + 0.0)
                .to_bits()
                .cast_signed();
            (bits ^ ((bits >> 63) & i64::MAX)).into()
        }
    }))
}

/// The bytes of a bound that lies in the domain; none for an endless one.
fn bytes(dimension: &Dimension, bound: &Bound) -> Vec<u8> {
    let number = match bound {
        Bound::Endless => return Vec::new(),
        Bound::Text(text) => return text.clone(),
        Bound::Number(number) => *number,
    };
    match dimension.datatype.physical() {
        Physical::F32 => {
            let bits = number as i32;
            (bits ^ ((bits >> 31) & i32::MAX)).to_le_bytes().to_vec()
        }
        Physical::F64 => {
            let bits = number as i64;
            (bits ^ ((bits >> 63) & i64::MAX)).to_le_bytes().to_vec()
        }
        physical => {
            let bytes = number.to_le_bytes();
            bytes.get(..physical.size()).unwrap_or_default().to_vec()
        }
    }
}

/// How far apart two coordinates are; strings are all alike.
fn gap(before: &Bound, after: &Bound) -> i128 {
    match (before, after) {
        (Bound::Number(before), Bound::Number(after)) => after.saturating_sub(*before),
        _ => i128::MAX,
    }
}

/// The coordinate behind another.
fn next(bound: &Bound) -> Option<Bound> {
    match bound {
        Bound::Number(number) => Some(Bound::Number(number + 1)),
        Bound::Text(text) => Some(Bound::Text([text.as_slice(), &[0]].concat())),
        Bound::Endless => None,
    }
}

/// The coordinate before another, or that one where there is none.
fn before(bound: &Bound, dimension: &Dimension) -> Bound {
    match bound {
        // What would be -0.0 is 0.0.
        Bound::Number(0) if dimension.datatype.is_real() => Bound::Number(-2),
        Bound::Number(number) => Bound::Number(number - 1),
        other => other.clone(),
    }
}

/// What a box says of its dimensions, as predicates; `None` where they cannot say it.
pub fn predicates_of(subarray: &Subarray, columns: &TableColumns) -> Option<Vec<Predicate>> {
    let Subarray::Box(selections) = subarray else {
        return None;
    };
    let mut predicates = Vec::new();
    for (d, selection) in selections.iter().enumerate() {
        let column = columns
            .all()
            .iter()
            .position(|c| c.place == Place::Dimension(d))?;
        let is_text = columns.get(column)?.column_type.is_var();
        let ranges = match selection {
            DimSelection::All => continue,
            DimSelection::Ranges(ranges) => ranges,
            DimSelection::Strided { .. } => return None,
        };
        let within = |range: &Range| {
            let compare = |op, value: &[u8]| Predicate::Compare {
                column,
                op,
                value: value.to_vec(),
            };
            let endless = is_text && range.end.is_empty() && !range.start.is_empty();
            let end = (!endless).then(|| compare(Comparison::Le, &range.end));
            Predicate::all(
                [compare(Comparison::Ge, &range.start)]
                    .into_iter()
                    .chain(end),
            )
        };
        predicates.push(Predicate::any(ranges.iter().map(within)));
    }
    Some(predicates)
}

/// A box as text: the dimensions that are restricted, and how.
pub fn show(subarray: &Subarray, schema: &ArraySchema) -> String {
    const SHOWN: usize = 3;
    let Subarray::Box(selections) = subarray else {
        return "points".into();
    };
    let mut shown = Vec::new();
    for (selection, dimension) in selections.iter().zip(&schema.domain.dimensions) {
        let DimSelection::Ranges(ranges) = selection else {
            continue;
        };
        let text = |value: &[u8]| {
            let condition = Condition::compare(dimension.name.as_str(), Comparison::Eq, value);
            let none = |_: &str| Err(azulejo::Error::Internal("a dimension has no labels".into()));
            let text = azulejo::condition::format(&condition, schema, &none).unwrap_or_default();
            text.split_once(" = ")
                .map_or_else(String::new, |(_, value)| value.to_owned())
        };
        let range = |range: &Range| format!("{}..={}", text(&range.start), text(&range.end));
        let mut list: Vec<String> = ranges.iter().take(SHOWN).map(range).collect();
        if ranges.len() > SHOWN {
            list.push(format!("{} more", ranges.len() - SHOWN));
        }
        shown.push(format!("{} in {}", dimension.name, list.join(" or ")));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo::format::Datatype;

    fn numbers(spans: &[(i128, i128)]) -> Intervals {
        let bounds = |(start, end): &(i128, i128)| (Bound::Number(*start), Bound::Number(*end));
        Intervals::new(spans.iter().map(bounds).collect(), true)
    }

    #[test]
    fn spans_are_joined_where_least_lies_between_them() {
        let spans = [(0, 1), (10, 12), (14, 20), (100, 100), (103, 104)];
        for (most, expected) in [
            (5, spans.to_vec()),
            (4, vec![(0, 1), (10, 20), (100, 100), (103, 104)]),
            (3, vec![(0, 1), (10, 20), (100, 104)]),
            (2, vec![(0, 20), (100, 104)]),
            (1, vec![(0, 104)]),
        ] {
            let joined = numbers(&spans).of_at_most(most);
            assert_eq!(joined.spans, numbers(&expected).spans, "{most}");
            assert_eq!(joined.exact, most == spans.len());
        }
        assert_eq!(numbers(&[]).of_at_most(1), numbers(&[]));
    }

    /// What `NOT IN` leaves of a dimension.
    fn left(dimension: &Dimension, domain: Option<&Range>, values: Vec<Vec<u8>>) -> Intervals {
        let not_in = Predicate::In {
            column: 0,
            values,
            negated: true,
        };
        Intervals::of(&not_in, dimension, domain).expect("intervals")
    }

    #[test]
    fn points_that_are_left_out_leave_what_lies_between_them() {
        let dimension = Dimension::of_type("x", Datatype::Int64);
        let domain = Range::of(0i64, 99);
        let values = |points: &[i64]| points.iter().map(|p| p.to_le_bytes().to_vec()).collect();
        for points in [
            [].as_slice(),
            &[5],
            &[0],
            &[99, 0],
            &[7, 3, 7, 4, 200, -1],
            &[98, 1, 50, 49, 51, 2, 97],
        ] {
            let found = left(&dimension, Some(&domain), values(points));
            let one_by_one = points.iter().fold(numbers(&[(0, 99)]), |left, point| {
                let point = i128::from(*point);
                left.and(&numbers(&[(i128::MIN, point - 1), (point + 1, i128::MAX)]))
            });
            assert_eq!(found, one_by_one, "{points:?}");
        }
        // However many they are.
        let domain = Range::of(0i64, 1 << 20);
        let points: Vec<i64> = (1..=50_000).rev().map(|point| point * 2).collect();
        let found = left(&dimension, Some(&domain), values(&points));
        assert_eq!((found.spans.len(), found.exact), (50_001, true));

        let dimension = Dimension::of_type("k", Datatype::StringAscii);
        let text = |text: &str| Bound::Text(text.as_bytes().to_vec());
        let found = left(&dimension, None, vec![b"q".to_vec(), b"b".to_vec()]);
        // Nothing lies directly before a string: one that is left out is not left out of the ranges.
        assert_eq!(found.spans, [(text(""), Bound::Endless)]);
        assert!(!found.exact);
    }
}
