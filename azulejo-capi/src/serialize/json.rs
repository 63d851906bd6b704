//! The JSON form of messages, which Cap'n Proto defines: 64-bit integers are strings, bytes lists
//! of numbers, pointers that are not set are left out, and of a union only what it holds is there.

use crate::error::{Failure, Result};
use capnp::introspect::{Type, TypeVariant};
use capnp::{dynamic_list, dynamic_struct, dynamic_value};
use serde_json::Value;
use std::fmt::Write;

/// Writes a message.
pub fn write(message: dynamic_value::Reader<'_>) -> Result<Vec<u8>> {
    let mut out = String::new();
    write_value(message, &mut out)?;
    Ok(out.into_bytes())
}

fn write_value(value: dynamic_value::Reader<'_>, out: &mut String) -> Result<()> {
    use dynamic_value::Reader as R;
    match value {
        R::Void => out.push_str("null"),
        R::Bool(value) => out.push_str(if value { "true" } else { "false" }),
        R::Int8(value) => write_display(value, out),
        R::Int16(value) => write_display(value, out),
        R::Int32(value) => write_display(value, out),
        R::UInt8(value) => write_display(value, out),
        R::UInt16(value) => write_display(value, out),
        R::UInt32(value) => write_display(value, out),
        R::Int64(value) => write_display(format_args!("\"{value}\""), out),
        R::UInt64(value) => write_display(format_args!("\"{value}\""), out),
        R::Float32(value) => write_float(value.into(), &value.to_string(), out),
        R::Float64(value) => write_float(value, &value.to_string(), out),
        R::Text(text) => out.push_str(&Value::from(text.to_str()?).to_string()),
        R::Data(bytes) => write_list(bytes.iter().map(|byte| R::UInt8(*byte)), out)?,
        R::Struct(value) => write_struct(value, out)?,
        R::List(list) => {
            let mut all = Vec::new();
            for value in list {
                all.push(value?);
            }
            write_list(all.into_iter(), out)?;
        }
        R::Enum(_) | R::AnyPointer(_) | R::Capability(_) => {
            return Err("Cannot serialize; the message has no JSON form".into());
        }
    }
    Ok(())
}

fn write_display(value: impl std::fmt::Display, out: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(out, "{value}");
}

/// What JSON has no number for is a string.
fn write_float(value: f64, text: &str, out: &mut String) {
    match value {
        _ if value.is_nan() => out.push_str("\"NaN\""),
        _ if value == f64::INFINITY => out.push_str("\"Infinity\""),
        _ if value == f64::NEG_INFINITY => out.push_str("\"-Infinity\""),
        _ => out.push_str(text),
    }
}

fn write_list<'a>(
    values: impl Iterator<Item = dynamic_value::Reader<'a>>,
    out: &mut String,
) -> Result<()> {
    out.push('[');
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_value(value, out)?;
    }
    out.push(']');
    Ok(())
}

fn write_struct(value: dynamic_struct::Reader<'_>, out: &mut String) -> Result<()> {
    let held = value.which()?.map(|field| field.get_index());
    out.push('{');
    let mut first = true;
    for field in value.get_schema().get_fields()? {
        let in_union = field.get_proto().get_discriminant_value()
            != capnp::schema_capnp::field::NO_DISCRIMINANT;
        if (in_union && held != Some(field.get_index())) || !value.has(field)? {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push(',');
        }
        write_display(
            format_args!("\"{}\":", field.get_proto().get_name()?.to_str()?),
            out,
        );
        write_value(value.get(field)?, out)?;
    }
    out.push('}');
    Ok(())
}

/// Reads a message into its structure; names that it does not have are passed by.
pub fn read(bytes: &[u8], message: dynamic_value::Builder<'_>) -> Result<()> {
    // Some callers count a NUL behind the text.
    let text = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| Failure::new(format!("Cannot deserialize; this is no JSON: {error}")))?;
    match message {
        dynamic_value::Builder::Struct(message) => read_struct(&value, message),
        _ => Err(wrong("message")),
    }
}

fn wrong(what: &str) -> Failure {
    Failure::new(format!(
        "Cannot deserialize; the {what} is not what the message has there"
    ))
}

fn read_struct(value: &Value, mut message: dynamic_struct::Builder<'_>) -> Result<()> {
    let object = value.as_object().ok_or_else(|| wrong("object"))?;
    for (name, value) in object {
        let Some(field) = message.get_schema().find_field_by_name(name)? else {
            continue;
        };
        let kind = field.get_type();
        match kind.which() {
            TypeVariant::Void => message.set(field, dynamic_value::Reader::Void)?,
            _ if value.is_null() => {}
            TypeVariant::Struct(_) => match message.reborrow().init(field)? {
                dynamic_value::Builder::Struct(inner) => read_struct(value, inner)?,
                _ => return Err(wrong(name)),
            },
            TypeVariant::List(_) => {
                let values = value.as_array().ok_or_else(|| wrong(name))?;
                match message.reborrow().initn(field, len(values)?)? {
                    dynamic_value::Builder::List(list) => read_list(name, values, list)?,
                    _ => return Err(wrong(name)),
                }
            }
            TypeVariant::AnyPointer => {}
            _ => with_scalar(name, value, kind, |scalar| Ok(message.set(field, scalar)?))?,
        }
    }
    Ok(())
}

fn len(values: &[Value]) -> Result<u32> {
    // The most that a list of Cap'n Proto has.
    u32::try_from(values.len())
        .ok()
        .filter(|len| *len < 1 << 29)
        .ok_or_else(|| wrong("list"))
}

fn read_list(name: &str, values: &[Value], mut list: dynamic_list::Builder<'_>) -> Result<()> {
    let kind = list.element_type();
    for (index, value) in (0u32..).zip(values) {
        match kind.which() {
            TypeVariant::Struct(_) => match list.reborrow().get(index)? {
                dynamic_value::Builder::Struct(inner) => read_struct(value, inner)?,
                _ => return Err(wrong(name)),
            },
            TypeVariant::List(_) => {
                let values = value.as_array().ok_or_else(|| wrong(name))?;
                match list.reborrow().init(index, len(values)?)? {
                    dynamic_value::Builder::List(inner) => read_list(name, values, inner)?,
                    _ => return Err(wrong(name)),
                }
            }
            _ => with_scalar(name, value, kind, |scalar| Ok(list.set(index, scalar)?))?,
        }
    }
    Ok(())
}

/// Integers are numbers or strings of digits, whatever their width.
fn integer<T: TryFrom<i128>>(name: &str, value: &Value) -> Result<T> {
    let wide = match value {
        Value::String(text) => text.parse().ok(),
        _ => value
            .as_i64()
            .map(i128::from)
            .or_else(|| value.as_u64().map(i128::from))
            .or_else(|| whole(value.as_f64()?)),
    };
    wide.and_then(|wide| T::try_from(wide).ok())
        .ok_or_else(|| wrong(name))
}

/// A number that was written as a real one.
fn whole(value: f64) -> Option<i128> {
    (value.fract() == 0.0 && value.abs() < 1e18).then_some(value as i128)
}

fn float(name: &str, value: &Value) -> Result<f64> {
    match value {
        Value::String(text) => match text.as_str() {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            text => text.parse().map_err(|_| wrong(name)),
        },
        _ => value.as_f64().ok_or_else(|| wrong(name)),
    }
}

/// Hands out the value of a type that holds no others.
fn with_scalar(
    name: &str,
    value: &Value,
    kind: Type,
    set: impl FnOnce(dynamic_value::Reader<'_>) -> Result<()>,
) -> Result<()> {
    use dynamic_value::Reader as R;
    match kind.which() {
        TypeVariant::Bool => set(R::Bool(value.as_bool().ok_or_else(|| wrong(name))?)),
        TypeVariant::Int8 => set(R::Int8(integer(name, value)?)),
        TypeVariant::Int16 => set(R::Int16(integer(name, value)?)),
        TypeVariant::Int32 => set(R::Int32(integer(name, value)?)),
        TypeVariant::Int64 => set(R::Int64(integer(name, value)?)),
        TypeVariant::UInt8 => set(R::UInt8(integer(name, value)?)),
        TypeVariant::UInt16 => set(R::UInt16(integer(name, value)?)),
        TypeVariant::UInt32 => set(R::UInt32(integer(name, value)?)),
        TypeVariant::UInt64 => set(R::UInt64(integer(name, value)?)),
        TypeVariant::Float32 => set(R::Float32(float(name, value)? as f32)),
        TypeVariant::Float64 => set(R::Float64(float(name, value)?)),
        TypeVariant::Text => {
            let text = value.as_str().ok_or_else(|| wrong(name))?;
            set(R::Text(text.into()))
        }
        TypeVariant::Data => {
            let bytes: Vec<u8> = value
                .as_array()
                .ok_or_else(|| wrong(name))?
                .iter()
                .map(|byte| integer(name, byte))
                .collect::<Result<_>>()?;
            set(R::Data(&bytes))
        }
        _ => Err(wrong(name)),
    }
}
