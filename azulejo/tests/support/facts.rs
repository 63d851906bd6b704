//! An array's schema, fragments and metadata in the form of the corpus' expected JSON.

use azulejo::Array;
use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::schema::{
    ArraySchema, ArrayType, CurrentDomain, DataOrder, Enumeration, FieldIndex, Layout,
};
use azulejo::format::{CellValNum, Datatype, Physical, Range};
use serde_json::{Map, Value, json};

/// Bytes as the expected files show them: text, a list of numbers, or hex.
#[must_use]
pub fn scalars(datatype: Datatype, bytes: &[u8]) -> Value {
    let hex = || json!({"hex": bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()});
    match datatype {
        Datatype::Char | Datatype::StringAscii | Datatype::StringUtf8 => {
            match std::str::from_utf8(bytes) {
                Ok(text) => json!(text),
                Err(_) => hex(),
            }
        }
        _ if datatype.is_string() || datatype.is_byte() || datatype == Datatype::Any => hex(),
        _ if !bytes.len().is_multiple_of(datatype.size()) => hex(),
        _ => Value::Array(
            bytes
                .chunks_exact(datatype.size())
                .map(|b| number(datatype.physical(), b))
                .collect(),
        ),
    }
}

fn number(physical: Physical, b: &[u8]) -> Value {
    let wide: [u8; 8] = {
        let mut w = if !matches!(
            physical,
            Physical::U8 | Physical::U16 | Physical::U32 | Physical::U64
        ) && b.last().is_some_and(|x| x & 0x80 != 0)
        {
            [0xff; 8]
        } else {
            [0; 8]
        };
        w[..b.len()].copy_from_slice(b);
        w
    };
    let real = |x: f64| match x {
        x if x.is_nan() => json!("nan"),
        x if x.is_infinite() => json!(if x > 0.0 { "inf" } else { "-inf" }),
        x => json!(x),
    };
    match physical {
        Physical::F32 => real(f32::from_le_bytes([b[0], b[1], b[2], b[3]]).into()),
        Physical::F64 => real(f64::from_le_bytes(wide)),
        Physical::U8 | Physical::U16 | Physical::U32 | Physical::U64 => {
            json!(u64::from_le_bytes(wide))
        }
        _ => json!(i64::from_le_bytes(wide)),
    }
}

fn one(value: Value) -> Value {
    match value {
        Value::Array(mut v) if v.len() == 1 => v.remove(0),
        v => v,
    }
}

fn pair(datatype: Datatype, range: &Range) -> Value {
    json!([
        one(scalars(datatype, &range.start)),
        one(scalars(datatype, &range.end))
    ])
}

fn layout(layout: Layout) -> &'static str {
    match layout {
        Layout::RowMajor => "row-major",
        Layout::ColMajor => "col-major",
        Layout::Global => "global-order",
        Layout::Unordered => "unordered",
        Layout::Hilbert => "hilbert",
    }
}

/// Compared by name and by the options that matter; the reference prints options of each filter.
fn pipeline(p: &Pipeline) -> Value {
    Value::Array(
        p.filters
            .iter()
            .map(|f| match f {
                Filter::None => json!({"filter": "NOOP"}),
                Filter::Gzip { level } => json!({"filter": "GZIP", "level": level}),
                Filter::Zstd { level } => json!({"filter": "ZSTD", "level": level}),
                Filter::Lz4 { level } => json!({"filter": "LZ4", "level": level}),
                Filter::Rle { .. } => json!({"filter": "RLE"}),
                Filter::Bzip2 { level } => json!({"filter": "BZIP2", "level": level}),
                Filter::DoubleDelta { level, .. } => json!({"filter": "DOUBLE_DELTA", "level": level}),
                Filter::BitWidthReduction { max_window } => json!({"filter": "BIT_WIDTH_REDUCTION", "window": max_window}),
                Filter::Bitshuffle => json!({"filter": "BITSHUFFLE"}),
                Filter::Byteshuffle => json!({"filter": "BYTESHUFFLE"}),
                Filter::PositiveDelta { max_window } => json!({"filter": "POSITIVE_DELTA", "window": max_window}),
                Filter::ChecksumMd5 => json!({"filter": "CHECKSUM_MD5"}),
                Filter::ChecksumSha256 => json!({"filter": "CHECKSUM_SHA256"}),
                Filter::Dictionary { level } => json!({"filter": "DICTIONARY_ENCODING", "level": level}),
                Filter::FloatScale { scale, offset, byte_width } => {
                    json!({"filter": "SCALE_FLOAT", "bytewidth": byte_width, "factor": scale, "offset": offset})
                }
                Filter::Xor => json!({"filter": "XOR"}),
                Filter::Webp { quality, input_format, lossless, .. } => {
                    json!({"filter": "WEBP", "quality": quality, "format": input_format, "lossless": u8::from(*lossless)})
                }
                Filter::Delta { level, .. } => json!({"filter": "DELTA", "level": level}),
                Filter::Aes256Gcm => json!({"filter": "INTERNAL_FILTER_AES_256_GCM"}),
            })
            .collect(),
    )
}

fn cell_val_num(n: CellValNum) -> Value {
    match n {
        CellValNum::Var => json!("var"),
        CellValNum::Fixed(n) => json!(n),
    }
}

/// The `schema` object.
#[must_use]
pub fn schema(s: &ArraySchema) -> Value {
    let dims: Vec<Value> = s
        .domain
        .dimensions
        .iter()
        .enumerate()
        .map(|(i, d)| {
            let mut out =
                json!({"name": d.name, "type": d.datatype.name(), "var": d.cell_val_num.is_var()});
            if let Some(range) = &d.domain
                && !d.cell_val_num.is_var()
            {
                out["domain"] = pair(d.datatype, range);
                out["tile"] = d
                    .tile_extent
                    .as_ref()
                    .map_or(Value::Null, |e| one(scalars(d.datatype, e)));
            }
            out["filters"] = pipeline(s.filters_of(FieldIndex::Dimension(i)));
            out
        })
        .collect();
    let attrs: Vec<Value> = s
        .attributes
        .iter()
        .map(|a| {
            let mut out = json!({
                "name": a.name, "type": a.datatype.name(), "cell_val_num": cell_val_num(a.cell_val_num), "nullable": a.nullable,
                "fill_hex": a.fill_value.iter().map(|b| format!("{b:02x}")).collect::<String>(), "filters": pipeline(&a.filters),
            });
            if a.nullable {
                out["fill_valid"] = json!(a.fill_validity);
            }
            if let Some(e) = &a.enumeration {
                out["enumeration"] = json!(e);
            }
            out
        })
        .collect();
    let mut out = json!({
        "version": s.version.number(),
        "array_type": match s.array_type { ArrayType::Dense => "dense", ArrayType::Sparse => "sparse" },
        "cell_order": layout(s.cell_order), "tile_order": layout(s.tile_order), "capacity": s.capacity, "allows_dups": s.allows_dups,
        "coords_filters": pipeline(&s.coords_filters), "offsets_filters": pipeline(&s.offsets_filters),
        "validity_filters": pipeline(&s.validity_filters), "dims": dims, "attrs": attrs,
    });
    if !s.dimension_labels.is_empty() {
        out["dimension_labels"] = s
            .dimension_labels
            .iter()
            .map(|l| {
                json!({"name": l.name, "dim": l.dimension, "type": l.datatype.name(), "attr": l.attribute,
                    "order": match l.order { DataOrder::Unordered => "unordered", DataOrder::Increasing => "increasing", DataOrder::Decreasing => "decreasing" },
                    "uri": l.uri.rsplit('/').next()})
            })
            .collect();
    }
    if let CurrentDomain::NdRectangle(r) = &s.current_domain {
        out["current_domain"] = s
            .domain
            .dimensions
            .iter()
            .zip(&r.ranges)
            .map(|(d, r)| pair(d.datatype, r))
            .collect();
    }
    out
}

/// One entry of `enumerations`.
#[must_use]
pub fn enumeration(e: &Enumeration) -> Value {
    let values: Vec<Value> = match e.cell_val_num {
        CellValNum::Var => {
            let ends = e
                .offsets
                .iter()
                .skip(1)
                .copied()
                .chain([e.data.len() as u64]);
            e.offsets
                .iter()
                .zip(ends)
                .map(|(&a, b)| scalars(e.datatype, &e.data[a as usize..b as usize]))
                .collect()
        }
        CellValNum::Fixed(n) => e
            .data
            .chunks(n as usize * e.datatype.size())
            .map(|b| one(scalars(e.datatype, b)))
            .collect(),
    };
    json!({"type": e.datatype.name(), "cell_val_num": cell_val_num(e.cell_val_num), "ordered": e.ordered, "values": values})
}

/// The first place where two JSON values differ; numbers compare by value. Keys that only `found`
/// has do not count, nor do filter options (`reinterpret`) and long values (`hex`) that the
/// expected files give in another form.
pub fn difference(path: &str, expected: &Value, found: &Value) -> Option<String> {
    match (expected, found) {
        (Value::Object(e), Value::Object(f)) => e
            .iter()
            .filter(|(k, _)| !["reinterpret", "hex"].contains(&k.as_str()) || e.len() == 1)
            .find_map(|(k, v)| {
                difference(&format!("{path}.{k}"), v, f.get(k).unwrap_or(&Value::Null))
            }),
        (Value::Array(e), Value::Array(f)) if e.len() == f.len() => e
            .iter()
            .zip(f)
            .enumerate()
            .find_map(|(i, (e, f))| difference(&format!("{path}[{i}]"), e, f)),
        (Value::Number(e), Value::Number(f)) if e.as_f64() == f.as_f64() => None,
        (e, f) if e == f => None,
        (e, f) => Some(format!("{path}: {f} instead of {e}")),
    }
}

/// Everything but the cells that the expected JSON of an array says, compared; the first
/// difference.
pub fn compare_array(expected: &Value, array: &Array) -> Result<(), String> {
    let mut found = Map::new();
    found.insert("schema".into(), schema(array.schema()));
    let text = |e: azulejo::Error| e.to_string();
    let fragments: Vec<Value> = array
        .fragments()
        .iter()
        .map(|f| {
            let (t0, t1) = (f.time_range().start, f.time_range().end);
            Ok(json!({"name": f.name(), "version": f.footer().version.number(), "sparse": !f.is_dense(), "t": [t0, t1], "cells": f.cell_num()}))
        })
        .collect::<Result<_, String>>()?;
    found.insert("fragments".into(), Value::Array(fragments));
    let metadata: Vec<Value> = array
        .metadata()
        .map_err(text)?
        .iter()
        .map(|(key, v)| {
            json!({"key": key, "type": v.datatype.name(), "num": v.count().max(1), "value": scalars(v.datatype, &v.data)})
        })
        .collect();
    found.insert("metadata".into(), Value::Array(metadata));
    let ned = array.non_empty_domain().map_err(text)?;
    found.insert(
        "non_empty_domain".into(),
        ned.map_or(Value::Null, |r| {
            let dims = &array.schema().domain.dimensions;
            dims.iter()
                .zip(&r.ranges)
                .map(|(d, r)| json!([scalars(d.datatype, &r.start), scalars(d.datatype, &r.end)]))
                .collect()
        }),
    );
    let mut enumerations = Map::new();
    for name in array
        .schema()
        .attributes
        .iter()
        .filter_map(|a| a.enumeration.as_ref())
    {
        enumerations.insert(
            name.clone(),
            enumeration(&*array.enumeration(name).map_err(text)?),
        );
    }
    found.insert("enumerations".into(), Value::Object(enumerations));
    for key in [
        "schema",
        "fragments",
        "metadata",
        "non_empty_domain",
        "enumerations",
    ] {
        let Some(mut e) = expected.get(key).cloned() else {
            continue;
        };
        if key == "fragments" {
            // Where the order of equal timestamps is concerned, the reference has none.
            let by_name = |v: &Value| v["name"].as_str().unwrap_or_default().to_owned();
            for side in [&mut e, found.get_mut(key).ok_or("no fragments")?] {
                side.as_array_mut()
                    .ok_or("fragments are no list")?
                    .sort_by_key(by_name);
            }
            for fragment in e.as_array_mut().into_iter().flatten() {
                fragment
                    .as_object_mut()
                    .map(|f| f.remove("consolidated_metadata"));
            }
        }
        if key == "non_empty_domain" {
            // One-dimensional values of the expected file are not wrapped.
            let flat = |v: &Value| -> Value {
                v.as_array().map_or(v.clone(), |ranges| {
                    ranges
                        .iter()
                        .map(|r| {
                            r.as_array()
                                .map_or(r.clone(), |b| b.iter().cloned().map(one).collect())
                        })
                        .collect()
                })
            };
            e = flat(&e);
            let f = flat(&found[key]);
            found.insert(key.into(), f);
        }
        if let Some(d) = difference(key, &e, &found[key]) {
            return Err(d);
        }
    }
    Ok(())
}
