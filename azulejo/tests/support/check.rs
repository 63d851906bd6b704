//! One object of the corpus against its expectation.

use super::cells::{self, Cells};
use super::facts;
use azulejo::format::Range;
use azulejo::format::filter::EncryptionKey;
use azulejo::read::{ReadOptions, Reader};
use azulejo::space::DimSelection;
use azulejo::{Array, Config, Context, Subarray};
use serde_json::Value;

/// The encryption key of an object, where `keys.json` names a part of its path.
pub fn key_of(name: &str, keys: &Value) -> Result<Option<EncryptionKey>, String> {
    keys.as_object()
        .and_then(|k| k.iter().find(|(part, _)| name.contains(part.as_str())))
        .and_then(|(_, v)| v.as_str())
        .map(|k| EncryptionKey::from_slice(k.as_bytes()))
        .transpose()
        .map_err(|e| e.to_string())
}

/// A context with the default settings.
pub fn context(key: Option<EncryptionKey>) -> Result<Context, String> {
    Context::new(Config::default(), key).map_err(|e| e.to_string())
}

/// The array or group at `uri`: schema, fragments, metadata and cells as expected; the first
/// difference.
pub fn object(
    context: &Context,
    uri: &str,
    json: &Value,
    want: Option<Vec<Cells>>,
) -> Result<(), String> {
    if json["kind"] == "group" {
        return group(context, uri, json);
    }
    if json["readable"] == false {
        // The reference refuses it; a clear error is as good as an answer.
        let _ = context
            .array(uri)
            .open()
            .and_then(|a| a.read(ReadOptions::new())?.read_all());
        return Ok(());
    }
    let array = context.array(uri).open().map_err(|e| e.to_string())?;
    facts::compare_array(json, &array)?;
    want.map_or(Ok(()), |want| check_cells(&array, json, want))
}

/// All cells of `array` against the expected ones. Dense: over `read_box`, in row-major order.
fn check_cells(array: &Array, json: &Value, mut want: Vec<Cells>) -> Result<(), String> {
    let mut options = ReadOptions::new();
    let dense = json["schema"]["array_type"] == "dense";
    if dense && json["read_box"].is_array() {
        options = options.subarray(read_box(array, &json["read_box"])?);
    }
    let set = array
        .read(options)
        .and_then(Reader::read_all)
        .map_err(|e| e.to_string())?;
    let mut found = cells::of_columns(&set);
    for (w, f) in want.iter_mut().zip(&mut found) {
        // Parquet wants a name; the expected files give anonymous fields one.
        if f.name.is_empty() && w.name == "attr_" {
            w.name.clear();
        }
    }
    if dense {
        cells::compare(&want, &found)
    } else {
        cells::compare_unordered(&want, &found)
    }
}

fn read_box(array: &Array, json: &Value) -> Result<Subarray, String> {
    let mut dims = Vec::new();
    for (i, d) in array.schema().domain.dimensions.iter().enumerate() {
        let bound = |k: usize| -> Vec<u8> {
            let v = &json[i][k];
            let wide = v
                .as_i64()
                .map_or_else(|| v.as_u64().unwrap_or(0).to_le_bytes(), i64::to_le_bytes);
            wide[..d.datatype.size()].to_vec()
        };
        dims.push(DimSelection::Ranges(vec![Range::new(bound(0), bound(1))]));
    }
    Ok(Subarray::Box(dims))
}

fn group(context: &Context, uri: &str, json: &Value) -> Result<(), String> {
    let group = context.group(uri).open().map_err(|e| e.to_string())?;
    let mut found: Vec<Value> = group
        .members()
        .iter()
        .map(|m| {
            // The expectation calls every member below the group relative, however the group stores
            // it.
            let below = m.location.strip_prefix(&format!("{}/", group.uri()));
            let kind = m.object_type.map_or_else(|| "invalid".to_owned(), |t| t.to_string());
            let uri = below.unwrap_or(&m.location);
            serde_json::json!({"name": m.name, "type": kind, "uri": uri, "relative": below.is_some()})
        })
        .collect();
    found.sort_by_key(|m| {
        (
            m["name"].as_str().unwrap_or("").to_owned(),
            m["uri"].as_str().unwrap_or("").to_owned(),
        )
    });
    if let Some(d) = facts::difference("members", &json["members"], &Value::Array(found)) {
        return Err(d);
    }
    let metadata: Vec<Value> = group
        .metadata()
        .map_err(|e| e.to_string())?
        .iter()
        .map(|(key, v)| {
            serde_json::json!({"key": key, "type": v.datatype.name(), "num": v.count(), "value": facts::scalars(v.datatype, &v.data)})
        })
        .collect();
    facts::difference("metadata", &json["metadata"], &Value::Array(metadata)).map_or(Ok(()), Err)
}
