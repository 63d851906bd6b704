//! Query conditions.

use super::rest_capnp::{a_s_t_node, condition};
use super::words::{count, data};
use crate::error::{Failure, Result};
use azulejo_format::condition::{Comparison, Condition, FieldRef};
use azulejo_format::schema::ArraySchema;

const COMPARISONS: [(Comparison, &str); 8] = [
    (Comparison::Lt, "LT"),
    (Comparison::Le, "LE"),
    (Comparison::Gt, "GT"),
    (Comparison::Ge, "GE"),
    (Comparison::Eq, "EQ"),
    (Comparison::Ne, "NE"),
    (Comparison::AlwaysTrue, "ALWAYS_TRUE"),
    (Comparison::AlwaysFalse, "ALWAYS_FALSE"),
];

/// Writes a condition. Messages know no negation but in leaves, so it is pushed down to them.
pub fn write(from: &Condition, to: condition::Builder<'_>) -> Result<()> {
    write_node(&from.clone().pushed_down(), to.init_tree())
}

fn write_node(from: &Condition, mut to: a_s_t_node::Builder<'_>) -> Result<()> {
    let leaf = |to: &mut a_s_t_node::Builder<'_>, field: &FieldRef, op: &str| {
        to.set_field_name(field.name.as_str());
        to.set_use_enumeration(!field.raw);
        to.set_op(op);
    };
    match from {
        Condition::Compare { field, op, value } => {
            let found = COMPARISONS.iter().find(|(known, _)| known == op);
            leaf(&mut to, field, found.map_or("", |(_, name)| name));
            to.set_value(data(value)?);
        }
        Condition::IsNull { field, negated } => {
            leaf(&mut to, field, if *negated { "NE" } else { "EQ" });
            to.set_value(&[]);
        }
        Condition::In {
            field,
            negated,
            values,
        } => {
            leaf(&mut to, field, if *negated { "NOT_IN" } else { "IN" });
            let (mut bytes, mut offsets) = (Vec::new(), Vec::new());
            for value in values.iter() {
                offsets.extend((bytes.len() as u64).to_le_bytes());
                bytes.extend_from_slice(value);
            }
            to.set_value(data(&bytes)?);
            to.set_offsets(data(&offsets)?);
        }
        Condition::And(children) | Condition::Or(children) => {
            to.set_is_expression(true);
            let is_and = matches!(from, Condition::And(_));
            to.set_combination_op(if is_and { "AND" } else { "OR" });
            let mut list = to.init_children(count(children)?);
            for (index, child) in (0u32..).zip(children) {
                write_node(child, list.reborrow().get(index))?;
            }
        }
        Condition::Match { .. } => {
            return Err("Cannot serialize a test of a value's form".into());
        }
        Condition::Not(_) => return Err("Cannot serialize a negation".into()),
    }
    Ok(())
}

/// Reads a condition on an array.
pub fn read(from: condition::Reader<'_>, schema: &ArraySchema) -> Result<Condition> {
    if from.has_tree() {
        return read_node(from.get_tree()?, schema);
    }
    // Old clients send a list, all of which must hold.
    let mut all = Vec::new();
    for clause in from.get_clauses()? {
        let field = field(
            clause.get_field_name()?.to_str()?,
            clause.get_use_enumeration(),
        )?;
        all.push(comparison(
            field,
            clause.get_op()?.to_str()?,
            clause.get_value()?,
            schema,
        )?);
    }
    match (all.pop(), all.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(last), false) => {
            all.push(last);
            Ok(Condition::And(all))
        }
        (None, _) => Err("Cannot deserialize; a condition has neither a tree nor clauses".into()),
    }
}

fn field(name: &str, use_enumeration: bool) -> Result<FieldRef> {
    if name.is_empty() {
        return Err("Cannot deserialize; a condition is on a field without a name".into());
    }
    Ok(FieldRef {
        name: name.to_owned(),
        raw: !use_enumeration,
    })
}

/// A comparison with nothing asks for nulls, where the field's cells have a size.
fn comparison(field: FieldRef, op: &str, value: &[u8], schema: &ArraySchema) -> Result<Condition> {
    let found = COMPARISONS.iter().find(|(_, name)| *name == op);
    let (op, _) = *found
        .ok_or_else(|| Failure::new(format!("Cannot deserialize; {op:?} is no comparison")))?;
    let sized = schema
        .field(&field.name)
        .is_some_and(|index| !schema.is_var(index));
    if value.is_empty() && sized && matches!(op, Comparison::Eq | Comparison::Ne) {
        return Ok(Condition::IsNull {
            field,
            negated: op == Comparison::Ne,
        });
    }
    Ok(Condition::Compare {
        field,
        op,
        value: value.to_vec(),
    })
}

fn read_node(from: a_s_t_node::Reader<'_>, schema: &ArraySchema) -> Result<Condition> {
    if from.get_is_expression() {
        // The message's own limit of nesting bounds this.
        let mut children = Vec::new();
        for child in from.get_children()? {
            children.push(read_node(child, schema)?);
        }
        return match (from.get_combination_op()?.to_str()?, children.len()) {
            (_, 0) => Err("Cannot deserialize; a condition combines nothing".into()),
            ("AND", _) => Ok(Condition::And(children)),
            ("OR", _) => Ok(Condition::Or(children)),
            ("NOT", 1) => Ok(Condition::Not(Box::new(children.remove(0)))),
            (other, _) => Err(Failure::new(format!(
                "Cannot deserialize; {other:?} is no combination of conditions"
            ))),
        };
    }
    let field = field(from.get_field_name()?.to_str()?, from.get_use_enumeration())?;
    let (op, value) = (from.get_op()?.to_str()?, from.get_value()?);
    let negated = match op {
        "IN" => false,
        "NOT_IN" => true,
        _ => return comparison(field, op, value, schema),
    };
    let (offsets, []) = from.get_offsets()?.as_chunks::<8>() else {
        return Err("Cannot deserialize; the offsets of a set are no numbers of 8 bytes".into());
    };
    let starts = offsets.iter().map(|offset| u64::from_le_bytes(*offset));
    let ends = starts.clone().skip(1).chain([value.len() as u64]);
    let members: Option<Vec<&[u8]>> = starts
        .zip(ends)
        .map(|(start, end)| value.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?))
        .collect();
    let members =
        members.ok_or_else(|| Failure::new("Cannot deserialize; the offsets of a set leave it"))?;
    Ok(Condition::In {
        field,
        negated,
        values: members.into_iter().collect(),
    })
}
