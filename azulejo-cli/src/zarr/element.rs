//! Types of elements, as the two versions name them, and what cells they become.

use super::Result;
use super::metadata::member_of;
use crate::error::FileError;
use azulejo::format::{CellValNum, Datatype};
use serde_json::Value as Json;

/// Texts of a fixed length are not longer.
const MOST_CHARACTERS: usize = 1 << 20;

/// How an element lies in a chunk, and what cell it becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// What it holds.
    pub kind: Kind,
    /// Its bytes in a chunk; 0 if they vary.
    pub size: usize,
    /// Bytes of what is turned around; 1 if their order is ours.
    pub swap: usize,
}

/// What an element holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A value as cells have it.
    Plain(Datatype),
    /// A real of two bytes, which becomes one of four.
    Half,
    /// UTF-32, padded with zeros.
    Utf32,
    /// Bytes, padded with zeros.
    Padded,
    /// Text of any length.
    Text,
    /// Bytes of any length.
    Bytes,
}

impl Element {
    fn plain(datatype: Datatype) -> Self {
        Self {
            kind: Kind::Plain(datatype),
            size: datatype.size(),
            swap: 1,
        }
    }

    fn of(kind: Kind, size: usize) -> Self {
        Self {
            kind,
            size,
            swap: 1,
        }
    }

    /// The type of the cells, and how many values a cell has.
    pub fn cell(self) -> (Datatype, CellValNum) {
        match self.kind {
            Kind::Plain(datatype) => (datatype, CellValNum::ONE),
            Kind::Half => (Datatype::Float32, CellValNum::ONE),
            Kind::Utf32 | Kind::Text => (Datatype::StringUtf8, CellValNum::Var),
            Kind::Padded | Kind::Bytes => (Datatype::Blob, CellValNum::Var),
        }
    }

    /// Whether the cells vary in length.
    pub fn is_var(self) -> bool {
        self.cell().1 == CellValNum::Var
    }

    /// Of a `data_type` of version 3.
    pub fn of_v3(json: &Json) -> Result<Self> {
        let (name, configuration) = match json {
            Json::String(name) => (name.as_str(), &Json::Null),
            json => (
                member_of(json, "name").as_str().unwrap_or_default(),
                member_of(json, "configuration"),
            ),
        };
        let bytes = || {
            let length = member_of(configuration, "length_bytes").as_u64();
            let length = length.and_then(|n| usize::try_from(n).ok());
            length
                .filter(|n| (1..=4 * MOST_CHARACTERS).contains(n))
                .ok_or_else(|| {
                    FileError::new(format!("{name} has no length_bytes that make sense"))
                })
        };
        Ok(match name {
            "bool" => Self::plain(Datatype::Bool),
            "int8" => Self::plain(Datatype::Int8),
            "int16" => Self::plain(Datatype::Int16),
            "int32" => Self::plain(Datatype::Int32),
            "int64" => Self::plain(Datatype::Int64),
            "uint8" => Self::plain(Datatype::UInt8),
            "uint16" => Self::plain(Datatype::UInt16),
            "uint32" => Self::plain(Datatype::UInt32),
            "uint64" => Self::plain(Datatype::UInt64),
            "float16" => Self::of(Kind::Half, 2),
            "float32" => Self::plain(Datatype::Float32),
            "float64" => Self::plain(Datatype::Float64),
            "string" => Self::of(Kind::Text, 0),
            "bytes" | "variable_length_bytes" => Self::of(Kind::Bytes, 0),
            "fixed_length_utf32" => Self::of(Kind::Utf32, bytes()? / 4 * 4),
            "null_terminated_bytes" => Self::of(Kind::Padded, bytes()?),
            "numpy.datetime64" | "numpy.timedelta64" => {
                let unit = member_of(configuration, "unit")
                    .as_str()
                    .unwrap_or_default();
                if member_of(configuration, "scale_factor")
                    .as_u64()
                    .unwrap_or(1)
                    != 1
                {
                    return Err(FileError::new(format!("{name} in steps of several {unit}")));
                }
                let date = name == "numpy.datetime64";
                let datatype = crate::import::npy_file::tick_type(date, unit);
                Self::plain(
                    datatype.ok_or_else(|| FileError::new(format!("{name} of unit {unit:?}")))?,
                )
            }
            _ => {
                return Err(FileError::new(format!(
                    "elements of type {json} are not supported"
                )));
            }
        })
    }

    /// Of a `dtype` of version 2; `objects` is the filter that turns objects into bytes.
    pub fn of_v2(json: &Json, objects: Option<&str>) -> Result<Self> {
        let unknown = || FileError::new(format!("elements of type {json} are not supported"));
        let name = json.as_str().ok_or_else(unknown)?;
        if name == "|O" {
            return match objects {
                Some("vlen-utf8") => Ok(Self::of(Kind::Text, 0)),
                Some("vlen-bytes") => Ok(Self::of(Kind::Bytes, 0)),
                _ => Err(FileError::new(
                    "elements are Python's objects: only texts and bytes (vlen-utf8, vlen-bytes) are supported",
                )),
            };
        }
        let (order, rest) = name.split_at_checked(1).ok_or_else(unknown)?;
        let (kind, rest) = rest.split_at_checked(1).ok_or_else(unknown)?;
        let (size, unit) = match rest.split_once('[') {
            Some((size, unit)) => (size, unit.trim_end_matches(']')),
            None => (rest, ""),
        };
        let size: usize = size.parse().map_err(|_| unknown())?;
        let mut element = match (kind, size) {
            ("b", 1) => Self::plain(Datatype::Bool),
            ("i", 1) => Self::plain(Datatype::Int8),
            ("i", 2) => Self::plain(Datatype::Int16),
            ("i", 4) => Self::plain(Datatype::Int32),
            ("i", 8) => Self::plain(Datatype::Int64),
            ("u", 1) => Self::plain(Datatype::UInt8),
            ("u", 2) => Self::plain(Datatype::UInt16),
            ("u", 4) => Self::plain(Datatype::UInt32),
            ("u", 8) => Self::plain(Datatype::UInt64),
            ("f", 2) => Self::of(Kind::Half, 2),
            ("f", 4) => Self::plain(Datatype::Float32),
            ("f", 8) => Self::plain(Datatype::Float64),
            ("M" | "m", 8) => {
                let datatype = crate::import::npy_file::tick_type(kind == "M", unit);
                Self::plain(datatype.ok_or_else(unknown)?)
            }
            ("S", 1..=MOST_CHARACTERS) => Self::of(Kind::Padded, size),
            ("U", 1..=MOST_CHARACTERS) => Self::of(Kind::Utf32, size * 4),
            _ => return Err(unknown()),
        };
        if order == ">" {
            element.swap_bytes();
        }
        Ok(element)
    }

    /// Says that values lie the other way round in chunks.
    pub fn swap_bytes(&mut self) {
        self.swap = match self.kind {
            Kind::Plain(_) | Kind::Half => self.size,
            Kind::Utf32 => 4,
            Kind::Padded | Kind::Text | Kind::Bytes => 1,
        };
    }

    /// The bytes of a cell from JSON: a number, `"NaN"`, `"0x7fc00000"`; of text its bytes. `None`
    /// for what is no such value.
    pub fn value(self, json: &Json) -> Option<Vec<u8>> {
        let (datatype, _) = self.cell();
        if let (Kind::Padded | Kind::Bytes, Json::String(text)) = (self.kind, json) {
            // Bytes stand as base64 in metadata, of either version.
            let mut bytes = unbase64(text)?;
            if self.kind == Kind::Padded {
                let end = bytes.iter().rposition(|byte| *byte != 0);
                bytes.truncate(end.map_or(0, |end| end + 1));
            }
            return Some(bytes);
        }
        if self.is_var() {
            return match json {
                Json::Array(bytes) if self.kind == Kind::Bytes => {
                    let byte = |json: &Json| u8::try_from(json.as_u64()?).ok();
                    bytes.iter().map(byte).collect()
                }
                Json::String(text) => Some(text.as_bytes().to_vec()),
                Json::Number(n) if n.as_u64() == Some(0) => Some(Vec::new()),
                _ => None,
            };
        }
        if datatype == Datatype::Bool {
            let value = json.as_bool().or_else(|| json.as_u64().map(|n| n != 0))?;
            return Some(vec![u8::from(value)]);
        }
        if datatype.is_real() {
            let value = match json {
                Json::Number(number) => number.as_f64()?,
                Json::String(text) => match text.as_str() {
                    "NaN" => f64::NAN,
                    "Infinity" => f64::INFINITY,
                    "-Infinity" => f64::NEG_INFINITY,
                    hex => return self.bits(hex.strip_prefix("0x")?),
                },
                _ => return None,
            };
            return Some(match datatype {
                Datatype::Float32 => (value as f32).to_le_bytes().to_vec(),
                _ => value.to_le_bytes().to_vec(),
            });
        }
        let value = match json {
            Json::Number(n) => n
                .as_i64()
                .map(i128::from)
                .or_else(|| n.as_u64().map(i128::from))
                // Old stores have whole numbers as reals.
                .or_else(|| {
                    let real = n.as_f64().filter(|real| real.fract() == 0.0)?;
                    (real.abs() < 1e18).then_some(real as i128)
                })?,
            Json::String(text) if text == "NaT" => i128::from(i64::MIN),
            _ => return None,
        };
        let bytes = value.to_le_bytes();
        let (bytes, rest) = bytes.split_at_checked(self.size)?;
        // What does not fit the type is no value of it.
        let high = bytes.last()? & 0x80 != 0;
        let signed = i128::from_le_bytes(value.to_le_bytes()) < 0;
        let unsigned_type = matches!(
            datatype,
            Datatype::UInt8 | Datatype::UInt16 | Datatype::UInt32 | Datatype::UInt64
        );
        let fits = match (signed, unsigned_type) {
            (true, true) => false,
            (true, false) => high && rest.iter().all(|b| *b == 0xff),
            (false, true) => rest.iter().all(|b| *b == 0),
            (false, false) => !high && rest.iter().all(|b| *b == 0),
        };
        fits.then(|| bytes.to_vec())
    }

    /// The value of the bits that digits give, the highest first.
    fn bits(self, digits: &str) -> Option<Vec<u8>> {
        let mut bytes = azulejo::json::unhex(digits).filter(|b| b.len() == self.size)?;
        bytes.reverse();
        match (self.kind, &bytes[..]) {
            (Kind::Half, &[low, high]) => {
                let value = crate::import::npy_file::half(u16::from_le_bytes([low, high]));
                Some(value.to_le_bytes().to_vec())
            }
            _ => Some(bytes),
        }
    }
}

/// The bytes that base64 stands for; `None` for what is none.
pub fn unbase64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    // A single digit says no byte.
    if digits.len() % 4 == 1 || !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let (mut held, mut have, mut out) = (0u32, 0, Vec::with_capacity(digits.len() / 4 * 3));
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = held << 6 | u32::from(value);
        have += 6;
        if have >= 8 {
            have -= 8;
            out.push((held >> have) as u8);
            held &= (1 << have) - 1;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn types_have_names_in_both_versions() {
        let v3 = |json: Json| Element::of_v3(&json).ok();
        let v2 = |name: &str| Element::of_v2(&json!(name), None).ok();
        assert_eq!(v3(json!("int16")), v2("<i2"));
        assert_eq!(v3(json!("float64")), v2("<f8"));
        let date =
            json!({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}});
        assert_eq!(v3(date), v2("<M8[s]"));
        let swapped = v2(">M8[s]").unwrap();
        assert_eq!((swapped.size, swapped.swap), (8, 8));
        assert_eq!(v2(">U3").unwrap().swap, 4);
        for name in [
            "",
            "<",
            "<x4",
            "|V8",
            "<c8",
            "<M8",
            "|O",
            "<f16",
            "<U99999999999",
            "é",
        ] {
            assert_eq!(v2(name), None, "{name}");
        }
        for json in [
            json!("r16"),
            json!("complex64"),
            json!(1),
            json!({"name": "fixed_length_utf32"}),
        ] {
            assert!(v3(json.clone()).is_none(), "{json}");
        }
    }

    #[test]
    fn values_fit_their_types() {
        let value = |name: &str, json: Json| Element::of_v3(&json!(name)).unwrap().value(&json);
        assert_eq!(value("int8", json!(-128)), Some(vec![0x80]));
        assert_eq!(value("int8", json!(128)), None);
        assert_eq!(value("uint8", json!(255)), Some(vec![255]));
        assert_eq!(value("uint8", json!(-1)), None);
        assert_eq!(value("int16", json!(3.0)), Some(vec![3, 0]));
        assert_eq!(value("uint64", json!(u64::MAX)), Some(vec![255; 8]));
        assert_eq!(
            value("float32", json!("0x7fc00000")),
            Some(vec![0, 0, 0xc0, 0x7f])
        );
        assert_eq!(
            value("float16", json!("0x3c00")),
            Some(1f32.to_le_bytes().to_vec())
        );
        assert_eq!(
            value("float32", json!("-Infinity")),
            Some(f32::NEG_INFINITY.to_le_bytes().to_vec())
        );
        assert_eq!(value("float64", json!("0x7fc0")), None);
        assert_eq!(value("bool", json!(true)), Some(vec![1]));
        assert_eq!(value("string", json!("ab")), Some(b"ab".to_vec()));
        assert_eq!(value("int8", json!([1])), None);
        // As zarr-python writes them.
        assert_eq!(
            value("variable_length_bytes", json!("YWI=")),
            Some(b"ab".to_vec())
        );
        assert_eq!(value("variable_length_bytes", json!("")), Some(Vec::new()));
        assert_eq!(value("bytes", json!("a")), None);
        let padded = Element::of_v2(&json!("|S4"), None).unwrap();
        assert_eq!(padded.value(&json!("YWIAAA==")), Some(b"ab".to_vec()));
        assert_eq!(padded.value(&json!("ab!=")), None);
    }
}
