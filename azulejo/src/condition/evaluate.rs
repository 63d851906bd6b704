//! Masks of cells that meet a condition: one pass over a column per test, dispatched once.

use super::Comparison;
use super::bind::{Leaf, Node, SetMembers, Test, little_endian};
use crate::column::FieldView;
use crate::error::{Error, Result};
use azulejo_format::Physical;
use azulejo_format::datatype::{Native, dispatch};
use azulejo_format::schema::Attribute;

/// Clears the bytes of `mask` for the cells that `node` does not hold for.
pub(super) fn evaluate(node: &Node, views: &[FieldView<'_>], mask: &mut [u8]) -> Result<()> {
    match node {
        Node::Constant(true) => Ok(()),
        Node::Constant(false) => {
            mask.fill(0);
            Ok(())
        }
        Node::Leaf(leaf) => evaluate_leaf(leaf, views, mask),
        Node::And(children) => {
            for child in children {
                evaluate(child, views, mask)?;
                if !any(mask) {
                    break;
                }
            }
            Ok(())
        }
        Node::Or(children) => {
            // `open` holds the cells for which no child has held so far; what a child holds for is
            // taken out.
            let mut open = mask.to_vec();
            let mut held = Vec::with_capacity(mask.len());
            for child in children {
                held.clear();
                held.extend_from_slice(&open);
                evaluate(child, views, &mut held)?;
                for (open, held) in open.iter_mut().zip(&held) {
                    *open &= !held;
                }
                if !any(&open) {
                    break;
                }
            }
            for (mask, open) in mask.iter_mut().zip(&open) {
                *mask &= !open;
            }
            Ok(())
        }
    }
}

fn any(mask: &[u8]) -> bool {
    mask.iter().any(|m| *m != 0)
}

fn evaluate_leaf(leaf: &Leaf, views: &[FieldView<'_>], mask: &mut [u8]) -> Result<()> {
    let unfit = || Error::Internal("a condition was given cells that do not fit its fields".into());
    let view = views.get(leaf.field).ok_or_else(unfit)?;
    let fits = match view.offsets {
        Some(offsets) => offsets.len() == mask.len() + 1,
        None => view
            .cell_size
            .checked_mul(mask.len())
            .is_some_and(|need| view.data.len() >= need),
    };
    if view.cell_num != mask.len() || view.validity.is_some_and(|v| v.len() != mask.len()) || !fits
    {
        return Err(unfit());
    }
    match &leaf.test {
        Test::Null => match view.validity {
            Some(validity) => keep_if(validity.iter(), mask, |v| *v == 0),
            None => mask.fill(0),
        },
        Test::NotNull => keep_valid(view, mask),
        Test::Number {
            physical,
            op,
            value,
            first_of_many,
            total,
        } => {
            let cell_size = view.cell_size;
            if view.offsets.is_some()
                || cell_size < physical.size()
                || (cell_size > physical.size() && !first_of_many)
            {
                return Err(unfit());
            }
            match (*total, physical) {
                (true, Physical::F32) => compare_keys(*op, value, view, mask, f32_key),
                (true, Physical::F64) => compare_keys(*op, value, view, mask, f64_key),
                _ => dispatch!(*physical, T => compare_numbers::<T>(*op, value, view, mask)),
            }
            keep_valid(view, mask);
        }
        Test::Bytes { op, value } => {
            keep_valid(view, mask);
            compare_bytes(*op, value, view, mask);
        }
        Test::Nan { physical, negated } => {
            if view.offsets.is_some() || view.cell_size != physical.size() {
                return Err(unfit());
            }
            match physical {
                Physical::F32 => keep_numbers::<f32>(view, mask, |c| c.is_nan() != *negated),
                _ => keep_numbers::<f64>(view, mask, |c| c.is_nan() != *negated),
            }
            keep_valid(view, mask);
        }
        Test::Like { pattern, negated } => {
            keep_valid(view, mask);
            keep_cells(view, mask, |cell| pattern.matches(cell) != *negated);
        }
        Test::Set {
            members, negated, ..
        } => {
            keep_valid(view, mask);
            match (members, view.offsets) {
                (SetMembers::Few { values, size }, None) if *size == view.cell_size => match size {
                    1 => few::<1>(values, *negated, view.data, mask),
                    2 => few::<2>(values, *negated, view.data, mask),
                    4 => few::<4>(values, *negated, view.data, mask),
                    _ => few::<8>(values, *negated, view.data, mask),
                },
                (SetMembers::Many { values, size }, None) if *size == view.cell_size => {
                    keep_cells(view, mask, |cell| {
                        values.binary_search(&little_endian(cell)).is_ok() != *negated
                    });
                }
                (SetMembers::FewStrings(values), _) => {
                    keep_cells(view, mask, |cell| {
                        values.iter().any(|v| **v == *cell) != *negated
                    });
                }
                (SetMembers::Strings(values), _) => {
                    keep_cells(view, mask, |cell| values.contains(cell) != *negated);
                }
                _ => return Err(unfit()),
            }
        }
    }
    Ok(())
}

#[inline]
fn keep_if<T>(values: impl Iterator<Item = T>, mask: &mut [u8], holds: impl Fn(T) -> bool) {
    for (mask, value) in mask.iter_mut().zip(values) {
        *mask &= u8::from(holds(value));
    }
}

/// Keeps the cells whose numbers pass a test: some at a step, which the compiler makes vector
/// comparisons of.
#[inline]
fn keep_numbers<T: Native>(view: &FieldView<'_>, mask: &mut [u8], holds: impl Fn(T) -> bool) {
    const STEP: usize = 16;
    if view.cell_size != T::SIZE {
        if view.cell_size > 0 {
            keep_if(
                view.data.chunks_exact(view.cell_size).map(T::read),
                mask,
                holds,
            );
        }
        return;
    }
    let (steps, rest) = mask.as_chunks_mut::<STEP>();
    let done = steps.len() * STEP * T::SIZE;
    for (mask, bytes) in steps.iter_mut().zip(view.data.chunks_exact(STEP * T::SIZE)) {
        let mut held = [0u8; STEP];
        for (held, cell) in held.iter_mut().zip(bytes.chunks_exact(T::SIZE)) {
            *held = u8::from(holds(T::read(cell)));
        }
        for (mask, held) in mask.iter_mut().zip(held) {
            *mask &= held;
        }
    }
    keep_if(
        view.data
            .get(done..)
            .unwrap_or_default()
            .chunks_exact(T::SIZE)
            .map(T::read),
        rest,
        holds,
    );
}

fn keep_valid(view: &FieldView<'_>, mask: &mut [u8]) {
    if let Some(validity) = view.validity {
        keep_if(validity.iter(), mask, |v| *v != 0);
    }
}

fn compare_numbers<T: Native>(op: Comparison, value: &[u8], view: &FieldView<'_>, mask: &mut [u8]) {
    let value = T::read(value);
    match op {
        Comparison::Lt => keep_numbers::<T>(view, mask, |c| c < value),
        Comparison::Le => keep_numbers::<T>(view, mask, |c| c <= value),
        Comparison::Gt => keep_numbers::<T>(view, mask, |c| c > value),
        Comparison::Ge => keep_numbers::<T>(view, mask, |c| c >= value),
        Comparison::Eq => keep_numbers::<T>(view, mask, |c| c == value),
        Comparison::Ne => keep_numbers::<T>(view, mask, |c| c != value),
        Comparison::AlwaysTrue => {}
        Comparison::AlwaysFalse => mask.fill(0),
    }
}

/// Compares reals by keys in the order that SQL engines give them.
fn compare_keys<T: Native, K: PartialOrd + Copy>(
    op: Comparison,
    value: &[u8],
    view: &FieldView<'_>,
    mask: &mut [u8],
    key: impl Fn(T) -> K,
) {
    let value = key(T::read(value));
    match op {
        Comparison::Lt => keep_numbers::<T>(view, mask, |c| key(c) < value),
        Comparison::Le => keep_numbers::<T>(view, mask, |c| key(c) <= value),
        Comparison::Gt => keep_numbers::<T>(view, mask, |c| key(c) > value),
        Comparison::Ge => keep_numbers::<T>(view, mask, |c| key(c) >= value),
        Comparison::Eq => keep_numbers::<T>(view, mask, |c| key(c) == value),
        Comparison::Ne => keep_numbers::<T>(view, mask, |c| key(c) != value),
        Comparison::AlwaysTrue => {}
        Comparison::AlwaysFalse => mask.fill(0),
    }
}

/// The place of a real in IEEE 754's total order, where -0.0 is 0.0.
#[inline]
fn f64_key(value: f64) -> i64 {
    // Adding 0.0 changes -0.0 alone. Of negative numbers all bits but the sign turn around.
    let bits = (value + 0.0).to_bits().cast_signed();
    bits ^ ((bits >> 63) & i64::MAX)
}

/// As [`f64_key`].
#[inline]
fn f32_key(value: f32) -> i32 {
    let bits = (value + 0.0).to_bits().cast_signed();
    bits ^ ((bits >> 31) & i32::MAX)
}

/// What a test says of an attribute's fill value.
pub(super) fn of_fill(leaf: &Leaf, attribute: &Attribute) -> bool {
    let data = attribute.fill_value.as_slice();
    let offsets = [0, data.len() as u64];
    let view = FieldView {
        data,
        offsets: attribute.is_var().then_some(&offsets[..]),
        validity: attribute
            .nullable
            .then_some(if attribute.fill_validity { &[1] } else { &[0] }),
        cell_num: 1,
        cell_size: attribute.cell_size().unwrap_or(0),
    };
    let mut mask = [1];
    let leaf = Leaf {
        field: 0,
        test: leaf.test.clone(),
    };
    evaluate_leaf(&leaf, &[view], &mut mask).is_ok() && mask == [1]
}

fn compare_bytes(op: Comparison, value: &[u8], view: &FieldView<'_>, mask: &mut [u8]) {
    match op {
        Comparison::Lt => keep_cells(view, mask, |c| c < value),
        Comparison::Le => keep_cells(view, mask, |c| c <= value),
        Comparison::Gt => keep_cells(view, mask, |c| c > value),
        Comparison::Ge => keep_cells(view, mask, |c| c >= value),
        Comparison::Eq => keep_cells(view, mask, |c| c == value),
        Comparison::Ne => keep_cells(view, mask, |c| c != value),
        Comparison::AlwaysTrue => {}
        Comparison::AlwaysFalse => mask.fill(0),
    }
}

/// Keeps the cells, still in the mask, whose bytes pass a test that costs more than skipping a
/// cell.
#[inline]
fn keep_cells(view: &FieldView<'_>, mask: &mut [u8], holds: impl Fn(&[u8]) -> bool) {
    if let Some(offsets) = view.offsets {
        for (mask, ends) in mask.iter_mut().zip(offsets.windows(2)) {
            if *mask != 0 {
                // Offsets that leave the data are ruled out where tiles are decoded; such a cell
                // would read as empty.
                let cell = view
                    .data
                    .get(ends[0] as usize..ends[1] as usize)
                    .unwrap_or(&[]);
                *mask = u8::from(holds(cell));
            }
        }
    } else if view.cell_size > 0 {
        for (mask, cell) in mask.iter_mut().zip(view.data.chunks_exact(view.cell_size)) {
            if *mask != 0 {
                *mask = u8::from(holds(cell));
            }
        }
    }
}

/// Set membership for a handful of numbers: one comparison each, without branches.
fn few<const N: usize>(members: &[u64], negated: bool, data: &[u8], mask: &mut [u8]) {
    let members: Vec<[u8; N]> = members
        .iter()
        .map(|m| {
            let mut bytes = [0; N];
            bytes.copy_from_slice(&m.to_le_bytes()[..N]);
            bytes
        })
        .collect();
    let (cells, _) = data.as_chunks::<N>();
    for (mask, cell) in mask.iter_mut().zip(cells) {
        let found = members
            .iter()
            .fold(false, |found, member| found | (cell == member));
        *mask &= u8::from(found != negated);
    }
}
