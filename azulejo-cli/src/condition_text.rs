//! Conditions as people write them.

use crate::value;
use azulejo::format::condition::{Comparison, Condition};
use azulejo::format::schema::ArraySchema;

/// What a delete has taken, from what it stores: which cells stay.
pub fn deleted(kept: &Condition, schema: &ArraySchema) -> String {
    text(
        &Condition::Not(Box::new(kept.clone())).pushed_down(),
        schema,
    )
}

/// A condition in the grammar of `--where`.
pub fn text(condition: &Condition, schema: &ArraySchema) -> String {
    let datatype = |name: &str| {
        schema
            .field(name)
            .and_then(|field| schema.type_of(field))
            .map(|(datatype, _)| datatype)
    };
    let literal = |name: &str, bytes: &[u8]| match datatype(name) {
        Some(of) if of.is_text() || of.is_datetime() || of.is_time() => {
            format!("{:?}", value::text(of, bytes))
        }
        Some(of) => value::text(of, bytes),
        None => azulejo::json::hex(bytes),
    };
    match condition {
        Condition::Compare { field, op, value } => {
            let op = match op {
                Comparison::Lt => "<",
                Comparison::Le => "<=",
                Comparison::Gt => ">",
                Comparison::Ge => ">=",
                Comparison::Eq => "=",
                Comparison::Ne => "!=",
                Comparison::AlwaysTrue => return "true".to_owned(),
                Comparison::AlwaysFalse => return "false".to_owned(),
            };
            format!("{} {op} {}", field.name, literal(&field.name, value))
        }
        Condition::In {
            field,
            values,
            negated,
        } => {
            let list: Vec<String> = values.iter().map(|v| literal(&field.name, v)).collect();
            let not = if *negated { "not " } else { "" };
            format!("{} {not}in ({})", field.name, list.join(", "))
        }
        Condition::IsNull { field, negated } => {
            let not = if *negated { "not " } else { "" };
            format!("{} is {not}null", field.name)
        }
        Condition::And(children) => join(children, " and ", schema),
        Condition::Or(children) => join(children, " or ", schema),
        Condition::Not(child) => format!("not ({})", text(child, schema)),
    }
}

fn join(children: &[Condition], word: &str, schema: &ArraySchema) -> String {
    let parts = children.iter().map(|child| match child {
        Condition::And(_) | Condition::Or(_) => format!("({})", text(child, schema)),
        _ => text(child, schema),
    });
    parts.collect::<Vec<_>>().join(word)
}
