//! Single values - coordinates, fill values, metadata - between bytes and JSON.

use azulejo_format::datatype::Native;
use azulejo_format::{CellValNum, Datatype, Physical};
use serde_json::{Value as Json, json};

/// Bytes as hexadecimal digits after `0x`.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 + 2 * bytes.len());
    out.push_str("0x");
    for byte in bytes {
        out.push_str(&format!("{byte:02x}"));
    }
    out
}

/// A cell as JSON, without loss: numbers as numbers (a cell of several values as an array), NaN and
/// infinities as strings, text as a string, datetimes as ticks, everything else as `{"hex": ".."}`.
pub fn value_json(datatype: Datatype, cell_val_num: CellValNum, bytes: &[u8]) -> Json {
    let exact = exact_json(datatype, cell_val_num, bytes);
    // What the pretty form would lose (a NaN's payload, a torn cell) keeps its bytes.
    match from_json(datatype, cell_val_num, &exact) {
        Ok(again) if again == bytes => exact,
        _ => hex_json(bytes),
    }
}

fn hex_json(bytes: &[u8]) -> Json {
    json!({ "hex": hex(bytes).split_off(2) })
}

fn exact_json(datatype: Datatype, cell_val_num: CellValNum, bytes: &[u8]) -> Json {
    if datatype.is_text() {
        return str::from_utf8(bytes).map_or_else(|_| hex_json(bytes), Into::into);
    }
    if datatype.is_opaque() {
        return hex_json(bytes);
    }
    let mut values = bytes
        .chunks_exact(datatype.size())
        .map(|value| number_json(datatype.physical(), value));
    match cell_val_num {
        CellValNum::Fixed(1) => values.next().unwrap_or(Json::Null),
        _ => Json::Array(values.collect()),
    }
}

/// One number as JSON; NaN and infinities, which JSON lacks, as strings.
pub fn number_json(physical: Physical, bytes: &[u8]) -> Json {
    match physical {
        Physical::I8 => i8::read(bytes).into(),
        Physical::I16 => i16::read(bytes).into(),
        Physical::I32 => i32::read(bytes).into(),
        Physical::I64 => i64::read(bytes).into(),
        Physical::U8 => u8::read(bytes).into(),
        Physical::U16 => u16::read(bytes).into(),
        Physical::U32 => u32::read(bytes).into(),
        Physical::U64 => u64::read(bytes).into(),
        Physical::F32 => {
            let value = f32::read(bytes);
            // 0.1 rather than 0.10000000149011612, where it reads back as the same bits.
            let short = value.to_string().parse::<f64>().unwrap_or(f64::from(value));
            float_json(if short as f32 == value {
                short
            } else {
                f64::from(value)
            })
        }
        Physical::F64 => float_json(f64::read(bytes)),
    }
}

/// A float as JSON.
pub fn float_json(value: f64) -> Json {
    if value.is_nan() {
        "NaN".into()
    } else if value.is_infinite() {
        (if value > 0.0 { "inf" } else { "-inf" }).into()
    } else {
        value.into()
    }
}

/// The inverse of [`value_json`].
///
/// # Errors
/// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for what is no value of the type.
pub fn value_from_json(
    datatype: Datatype,
    cell_val_num: CellValNum,
    value: &Json,
) -> crate::Result<Vec<u8>> {
    from_json(datatype, cell_val_num, value).map_err(crate::Error::InvalidArgument)
}

pub(super) fn from_json(
    datatype: Datatype,
    cell_val_num: CellValNum,
    value: &Json,
) -> Result<Vec<u8>, String> {
    let bad = || format!("{value} is not a value of {datatype}");
    if let Some(digits) = value.get("hex") {
        return digits.as_str().and_then(unhex).ok_or_else(bad);
    }
    if datatype.is_opaque() || datatype == Datatype::Char {
        return value
            .as_str()
            .map(|text| text.as_bytes().to_vec())
            .ok_or_else(bad);
    }
    let number = |value: &Json| number_from_json(datatype.physical(), value).ok_or_else(bad);
    match (value, cell_val_num) {
        (Json::Array(values), _) => {
            let cells: Result<Vec<Vec<u8>>, String> = values.iter().map(number).collect();
            Ok(cells?.concat())
        }
        _ => number(value),
    }
}

fn number_from_json(physical: Physical, value: &Json) -> Option<Vec<u8>> {
    fn integer<T: Native + TryFrom<i64> + TryFrom<u64>>(value: &Json) -> Option<Vec<u8>> {
        let number = match value.as_i64() {
            Some(number) => T::try_from(number).ok()?,
            None => T::try_from(value.as_u64()?).ok()?,
        };
        Some(bytes_of(number))
    }
    let float = || match value {
        Json::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "inf" => Some(f64::INFINITY),
            "-inf" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => value.as_f64(),
    };
    match physical {
        Physical::I8 => integer::<i8>(value),
        Physical::I16 => integer::<i16>(value),
        Physical::I32 => integer::<i32>(value),
        Physical::I64 => integer::<i64>(value),
        Physical::U8 => integer::<u8>(value),
        Physical::U16 => integer::<u16>(value),
        Physical::U32 => integer::<u32>(value),
        Physical::U64 => integer::<u64>(value),
        Physical::F32 => float().map(|v| bytes_of(v as f32)),
        Physical::F64 => float().map(bytes_of),
    }
}

fn bytes_of<T: Native>(value: T) -> Vec<u8> {
    let mut out = vec![0; T::SIZE];
    value.write(&mut out);
    out
}

/// Bytes from hexadecimal digits.
pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    (0..digits.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(digits.get(i..i + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_every_bit() {
        let one = CellValNum::ONE;
        let two = CellValNum::Fixed(2);
        let cases: Vec<(Datatype, CellValNum, Vec<u8>)> = vec![
            (Datatype::UInt64, one, u64::MAX.to_le_bytes().to_vec()),
            (
                Datatype::Int64,
                two,
                [i64::MIN, i64::MAX]
                    .iter()
                    .flat_map(|v| v.to_le_bytes())
                    .collect(),
            ),
            (Datatype::Float32, one, 0.1f32.to_le_bytes().to_vec()),
            (Datatype::Float32, one, f32::NAN.to_le_bytes().to_vec()),
            (Datatype::Float32, one, (-0.0f32).to_le_bytes().to_vec()),
            (
                Datatype::Float64,
                one,
                0x7ff8_0000_0000_0001u64.to_le_bytes().to_vec(),
            ),
            (
                Datatype::Float64,
                one,
                f64::NEG_INFINITY.to_le_bytes().to_vec(),
            ),
            (Datatype::Float64, one, 5e-324f64.to_le_bytes().to_vec()),
            (Datatype::Char, one, vec![0x80]),
            (Datatype::StringUtf8, CellValNum::Var, "\0".into()),
            (Datatype::StringAscii, CellValNum::Var, vec![0xff, 0xfe]),
            (Datatype::StringUtf16, CellValNum::Var, vec![1, 2]),
            (Datatype::Blob, CellValNum::Var, vec![]),
            (Datatype::Int32, CellValNum::Var, vec![]),
            (Datatype::DateTimeDay, one, (-7i64).to_le_bytes().to_vec()),
        ];
        for (datatype, cell_val_num, bytes) in cases {
            let value = value_json(datatype, cell_val_num, &bytes);
            let text = serde_json::to_string(&value).unwrap();
            let again: Json = serde_json::from_str(&text).unwrap();
            assert_eq!(
                from_json(datatype, cell_val_num, &again).unwrap(),
                bytes,
                "{datatype} {text}"
            );
        }
        assert_eq!(
            value_json(Datatype::Float32, one, &0.1f32.to_le_bytes()),
            json!(0.1)
        );
        assert!(from_json(Datatype::UInt8, one, &json!(256)).is_err());
        assert!(from_json(Datatype::UInt8, one, &json!("x")).is_err());
        assert!(from_json(Datatype::UInt8, one, &json!({"hex": "0"})).is_err());
    }
}
