//! `tiledb_query_condition_t`.

use crate::boundary::{Bytes, In, Kind, Out, Ptr, Text, capi, capi_free};
use crate::error::{Failure, Result};
use crate::strings::lock;
use azulejo_format::condition::{Comparison, Condition, FieldRef};
use std::sync::Mutex;

/// `tiledb_query_condition_t`.
#[derive(Debug, Default)]
pub struct ConditionHandle {
    condition: Mutex<Option<Condition>>,
}

impl Kind for ConditionHandle {
    const NAME: &'static str = "query_condition";
}

const IN: i32 = 6;
const NOT_IN: i32 = 7;

impl ConditionHandle {
    fn new(condition: Condition) -> Self {
        Self {
            condition: Mutex::new(Some(condition)),
        }
    }

    /// The condition; an error if it was not initialized.
    pub fn condition(&self) -> Result<Condition> {
        lock(&self.condition)
            .clone()
            .ok_or_else(|| Failure::new("the query condition is not initialized"))
    }
}

fn comparison(op: i32) -> Result<Comparison> {
    Ok(match op {
        0 => Comparison::Lt,
        1 => Comparison::Le,
        2 => Comparison::Gt,
        3 => Comparison::Ge,
        4 => Comparison::Eq,
        5 => Comparison::Ne,
        253 => return Err("Invalid use of internal operation: ALWAYS_TRUE".into()),
        254 => return Err("Invalid use of internal operation: ALWAYS_FALSE".into()),
        _ => {
            return Err(Failure::new(format!(
                "{op} is no comparison of a query condition"
            )));
        }
    })
}

fn set_membership(name: &str, data: &[u8], offsets: &[u64], op: i32) -> Result<Condition> {
    let negated = match op {
        IN => false,
        NOT_IN => true,
        _ => return Err("a set membership test needs the operator IN or NOT_IN".into()),
    };
    let ends = offsets.iter().skip(1).copied().chain([data.len() as u64]);
    let values: Option<Vec<&[u8]>> = offsets
        .iter()
        .zip(ends)
        .map(|(start, end)| data.get(usize::try_from(*start).ok()?..usize::try_from(end).ok()?))
        .collect();
    let values =
        values.ok_or_else(|| Failure::new("the offsets of a set leave its data or go back"))?;
    Ok(match Condition::is_in(name, values) {
        Condition::In { field, values, .. } => Condition::In {
            field,
            negated,
            values,
        },
        other => other,
    })
}

/// Lets every leaf take values of enumerated attributes as labels or as the indices stored.
fn set_raw(condition: &mut Condition, raw: bool) {
    match condition {
        Condition::Compare { field, .. }
        | Condition::IsNull { field, .. }
        | Condition::In { field, .. }
        | Condition::Match { field, .. } => {
            *field = FieldRef {
                name: std::mem::take(&mut field.name),
                raw,
            };
        }
        Condition::And(all) | Condition::Or(all) => {
            all.iter_mut().for_each(|each| set_raw(each, raw));
        }
        Condition::Not(inner) => set_raw(inner, raw),
    }
}

capi! {
    /// A condition that says nothing yet.
    fn tiledb_query_condition_alloc(ctx, cond: Out<Ptr<ConditionHandle>>) {
        cond.give(ConditionHandle::default())?;
    }

    /// A test whether a field's value is in a set (or not). `data` holds the members, `offsets`
    /// where each starts.
    fn tiledb_query_condition_alloc_set_membership(
        ctx, name: Text, data: Bytes, data_size: u64, offsets: Bytes, offsets_size: u64, op: i32,
        cond: Out<Ptr<ConditionHandle>>
    ) {
        if !offsets_size.is_multiple_of(8) {
            return Err("the size of the offsets of a set is no multiple of 8".into());
        }
        let offsets = offsets.get_u64s(offsets_size / 8)?;
        cond.give(ConditionHandle::new(set_membership(name.get()?, data.get64(data_size)?, &offsets, op)?))?;
    }

    /// A comparison of a field with a value; a null pointer as value asks whether the field is
    /// null.
    fn tiledb_query_condition_init(ctx, cond: In<ConditionHandle>, name: Text, value: Bytes, size: u64, op: i32) {
        let mut condition = lock(&cond.get()?.condition);
        if condition.is_some() {
            return Err("Cannot reinitialize query condition".into());
        }
        let (name, op) = (name.get()?, comparison(op)?);
        let made = match op {
            Comparison::Eq | Comparison::Ne if value.is_null() => {
                Condition::IsNull { field: name.into(), negated: op == Comparison::Ne }
            }
            _ if value.is_null() && size > 0 => return Err(Failure::null("condition value")),
            _ if value.is_null() => {
                return Err("Null values can only be used with equality operators.".into());
            }
            _ => Condition::compare(name, op, value.get64(size)?),
        };
        *condition = Some(made);
    }

    /// Both, either, or the opposite of the left one.
    fn tiledb_query_condition_combine(
        ctx, left: In<ConditionHandle>, right: In<ConditionHandle>, op: i32, out: Out<Ptr<ConditionHandle>>
    ) {
        let first = left.get()?.condition()?;
        let combined = match op {
            0 => first.and(right.get()?.condition()?),
            1 => first.or(right.get()?.condition()?),
            2 => {
                if right.opt()?.is_some() {
                    return Err("Cannot combine query conditions; the negation takes one condition".into());
                }
                Condition::Not(Box::new(first))
            }
            _ => return Err(Failure::new(format!("{op} is no combination of query conditions"))),
        };
        out.give(ConditionHandle::new(combined))?;
    }

    /// The opposite.
    fn tiledb_query_condition_negate(ctx, cond: In<ConditionHandle>, out: Out<Ptr<ConditionHandle>>) {
        out.give(ConditionHandle::new(Condition::Not(Box::new(cond.get()?.condition()?))))?;
    }

    /// Whether values of enumerated attributes are labels (as at first) or the indices stored.
    fn tiledb_query_condition_set_use_enumeration(ctx, cond: In<ConditionHandle>, use_enumeration: i32) {
        if let Some(condition) = lock(&cond.get()?.condition).as_mut() {
            set_raw(condition, use_enumeration == 0);
        }
    }
}

capi_free! {
    fn tiledb_query_condition_free(ConditionHandle);
}
