//! What a tile's statistics say about a condition.

use super::Comparison;
use super::bind::{Leaf, Node, SetMembers, Test};
use azulejo_format::datatype::{Native, dispatch};
use std::cmp::Ordering;

/// An answer that may be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tri {
    /// Every cell meets the condition.
    AllTrue,
    /// No cell meets it.
    AllFalse,
    /// The cells must be looked at.
    Unknown,
}

/// Statistics of one field over one tile, as far as they are known and can be trusted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TileFieldStats<'a> {
    /// Cells in the tile.
    pub cell_num: u64,
    /// The least value of the cells that are not null, as bytes of the field; `None` if unknown.
    /// For reals, knowing it means that no cell is NaN.
    pub min: Option<&'a [u8]>,
    /// The greatest such value.
    pub max: Option<&'a [u8]>,
    /// The bounds are those of the text before each cell's first zero byte
    /// (`StatsTrust::UpToZeroByte`).
    pub up_to_zero_byte: bool,
    /// Null cells; 0 for fields that cannot be null; `None` if unknown.
    pub null_count: Option<u64>,
}

impl Tri {
    const fn of(answer: bool) -> Self {
        if answer {
            Self::AllTrue
        } else {
            Self::AllFalse
        }
    }

    const fn not(self) -> Self {
        match self {
            Self::AllTrue => Self::AllFalse,
            Self::AllFalse => Self::AllTrue,
            Self::Unknown => Self::Unknown,
        }
    }
}

pub(super) fn prune<'a>(node: &Node, stats: &dyn Fn(usize) -> Option<TileFieldStats<'a>>) -> Tri {
    match node {
        Node::Constant(answer) => Tri::of(*answer),
        Node::Leaf(leaf) => {
            stats(leaf.field).map_or(Tri::Unknown, |stats| prune_leaf(leaf, &stats))
        }
        Node::And(children) => combine(children, stats, Tri::AllFalse),
        Node::Or(children) => combine(children, stats, Tri::AllTrue),
    }
}

/// Of several answers: `settles` wins, else an unknown one, else they all agree.
fn combine<'a>(
    children: &[Node],
    stats: &dyn Fn(usize) -> Option<TileFieldStats<'a>>,
    settles: Tri,
) -> Tri {
    let mut answer = settles.not();
    for child in children {
        match prune(child, stats) {
            child if child == settles => return settles,
            Tri::Unknown => answer = Tri::Unknown,
            _ => {}
        }
    }
    answer
}

fn prune_leaf(leaf: &Leaf, stats: &TileFieldStats<'_>) -> Tri {
    if stats.cell_num == 0 {
        return Tri::Unknown;
    }
    let nulls = match stats.null_count {
        Some(0) => Tri::AllFalse,
        Some(n) if n == stats.cell_num => Tri::AllTrue,
        _ => Tri::Unknown,
    };
    let values = match &leaf.test {
        Test::Null => return nulls,
        Test::NotNull => return nulls.not(),
        // The bounds of a tile of nulls mean nothing.
        _ if nulls == Tri::AllTrue => return Tri::AllFalse,
        Test::Number {
            first_of_many: true,
            ..
        } => Tri::Unknown,
        // NaN has a place in SQL's order; bounds that are known say that no cell is NaN.
        Test::Number {
            total: true,
            value,
            physical,
            ..
        } if dispatch!(*physical, T => is_nan::<T>(value)) => Tri::Unknown,
        Test::Number {
            physical,
            op,
            value,
            ..
        } => {
            dispatch!(*physical, T => prune_number::<T>(*op, value, stats))
        }
        // Bounds that are known say that no cell is NaN.
        Test::Nan { physical, negated } => {
            match dispatch!(*physical, T => bounds::<T>(stats).is_some()) {
                true => Tri::of(*negated),
                false => Tri::Unknown,
            }
        }
        // Its beginning is compared besides.
        Test::Like { .. } => Tri::Unknown,
        Test::Bytes { op, value } => prune_bytes(*op, value, stats),
        Test::Set {
            members,
            negated,
            physical,
        } => {
            let outside = match (members, physical) {
                (SetMembers::Few { values, .. }, Some(physical)) => {
                    dispatch!(*physical, T => all_outside::<T>(&mut values.iter(), stats))
                }
                (SetMembers::Many { values, .. }, Some(physical)) => {
                    dispatch!(*physical, T => all_outside::<T>(&mut values.iter(), stats))
                }
                (SetMembers::FewStrings(values), _) => values.iter().all(|v| is_outside(v, stats)),
                (SetMembers::Strings(values), _) => values.iter().all(|v| is_outside(v, stats)),
                _ => false,
            };
            match (outside, negated) {
                (true, false) => Tri::AllFalse,
                (true, true) => Tri::AllTrue,
                (false, _) => Tri::Unknown,
            }
        }
    };
    // Null cells fail the test whatever the others do.
    if values == Tri::AllTrue && nulls != Tri::AllFalse {
        Tri::Unknown
    } else {
        values
    }
}

fn is_nan<T: Native>(value: &[u8]) -> bool {
    T::read(value).as_f64().is_nan()
}

/// Both bounds as numbers, if they are known and in order.
fn bounds<T: Native>(stats: &TileFieldStats<'_>) -> Option<(T, T)> {
    let (min, max) = (stats.min?, stats.max?);
    if min.len() != T::SIZE || max.len() != T::SIZE || stats.up_to_zero_byte {
        return None;
    }
    let (min, max) = (T::read(min), T::read(max));
    // Not so for NaN.
    (min <= max).then_some((min, max))
}

fn prune_number<T: Native>(op: Comparison, value: &[u8], stats: &TileFieldStats<'_>) -> Tri {
    let Some((min, max)) = bounds::<T>(stats) else {
        return Tri::Unknown;
    };
    let value = T::read(value);
    let (all, none) = match op {
        Comparison::Lt => (max < value, min >= value),
        Comparison::Le => (max <= value, min > value),
        Comparison::Gt => (min > value, max <= value),
        Comparison::Ge => (min >= value, max < value),
        Comparison::Eq => (min == value && max == value, value < min || value > max),
        Comparison::Ne => (value < min || value > max, min == value && max == value),
        Comparison::AlwaysTrue => (true, false),
        Comparison::AlwaysFalse => (false, true),
    };
    match (all, none) {
        (true, _) => Tri::AllTrue,
        (_, true) => Tri::AllFalse,
        _ => Tri::Unknown,
    }
}

fn all_outside<T: Native>(
    members: &mut dyn Iterator<Item = &u64>,
    stats: &TileFieldStats<'_>,
) -> bool {
    let Some((min, max)) = bounds::<T>(stats) else {
        return false;
    };
    for member in members {
        let value = T::read(&member.to_le_bytes());
        if value >= min && value <= max {
            return false;
        }
    }
    true
}

/// Where a string lies, seen from all cells of a tile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StringPlace {
    /// Less than every cell.
    Below,
    /// Greater than every cell.
    Above,
    /// At most as great as every cell.
    AtMin,
    /// At least as great as every cell.
    AtMax,
    /// Equal to every cell.
    Only,
    Unknown,
}

fn place(value: &[u8], stats: &TileFieldStats<'_>) -> StringPlace {
    let (Some(min), Some(max)) = (stats.min, stats.max) else {
        return StringPlace::Unknown;
    };
    if stats.up_to_zero_byte {
        // A cell c with text t before its first zero byte has t <= c, so that the least text bounds
        // all cells from below. Above the greatest text m there may be m, a zero byte and anything:
        // only a string whose own text is greater than m is greater than that.
        let (min, max) = (text(min), text(max));
        if min > max {
            return StringPlace::Unknown;
        }
        return match (value.cmp(min), text(value).cmp(max)) {
            (Ordering::Less, _) => StringPlace::Below,
            (_, Ordering::Greater) => StringPlace::Above,
            (Ordering::Equal, _) => StringPlace::AtMin,
            _ => StringPlace::Unknown,
        };
    }
    if min > max {
        return StringPlace::Unknown;
    }
    match (value.cmp(min), value.cmp(max)) {
        (Ordering::Less, _) => StringPlace::Below,
        (_, Ordering::Greater) => StringPlace::Above,
        (Ordering::Equal, Ordering::Equal) => StringPlace::Only,
        (Ordering::Equal, _) => StringPlace::AtMin,
        (_, Ordering::Equal) => StringPlace::AtMax,
        _ => StringPlace::Unknown,
    }
}

fn is_outside(value: &[u8], stats: &TileFieldStats<'_>) -> bool {
    matches!(place(value, stats), StringPlace::Below | StringPlace::Above)
}

/// A string up to its first zero byte.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or(bytes)
}

fn prune_bytes(op: Comparison, value: &[u8], stats: &TileFieldStats<'_>) -> Tri {
    use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
    match (op, place(value, stats)) {
        (Gt | Ge | Ne, StringPlace::Below)
        | (Lt | Le | Ne, StringPlace::Above)
        | (Ge, StringPlace::AtMin)
        | (Le, StringPlace::AtMax)
        | (Ge | Le | Eq, StringPlace::Only) => Tri::AllTrue,
        (Lt | Le | Eq, StringPlace::Below)
        | (Gt | Ge | Eq, StringPlace::Above)
        | (Lt, StringPlace::AtMin)
        | (Gt, StringPlace::AtMax)
        | (Lt | Gt | Ne, StringPlace::Only) => Tri::AllFalse,
        _ => Tri::Unknown,
    }
}
