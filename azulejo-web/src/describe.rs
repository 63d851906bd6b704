//! What is known of arrays and groups without their cells, as JSON.

use azulejo::format::metadata::Metadata;
use azulejo::format::schema::Enumeration;
use azulejo::format::{CellValNum, Datatype};
use azulejo::fragment_info::FragmentDescription;
use azulejo::group::{Group, Member, ObjectType};
use azulejo::json::{SchemaDocument, rectangle_json, value_json};
use azulejo::read::aggregate::AggregateValue;
use azulejo::snapshots::NamedSnapshot;
use azulejo::{Array, Result};
use serde_json::{Value as Json, json};

/// The largest whole number up to which JavaScript's numbers are exact.
const EXACT: u64 = 1 << 53;

/// JSON text for JavaScript: whole numbers that its numbers would round are `{"$": "digits"}`.
#[must_use]
pub fn text(mut json: Json) -> String {
    mark_large(&mut json);
    json.to_string()
}

fn mark_large(json: &mut Json) {
    match json {
        Json::Number(number) => {
            let size = number.as_u64().or(number.as_i64().map(i64::unsigned_abs));
            if size.is_some_and(|size| size > EXACT) {
                *json = json!({ "$": number.to_string() });
            }
        }
        Json::Array(values) => values.iter_mut().for_each(mark_large),
        Json::Object(fields) => fields.values_mut().for_each(mark_large),
        _ => {}
    }
}

/// Schema, time and fragments.
///
/// # Errors
/// A domain that is none.
pub fn array(array: &Array) -> Result<Json> {
    let document = SchemaDocument {
        schema: array.schema().as_ref().clone(),
        enumerations: Vec::new(),
        label_schemas: Vec::new(),
    };
    let domain = &array.schema().domain;
    let written = array.non_empty_domain()?;
    let info = array.fragment_info();
    Ok(json!({
        "uri": array.uri().to_string(),
        "schema": document.to_json()?,
        "timeRange": [array.time_range().start, array.time_range().end],
        "listedAt": array.listed_at(),
        "nonEmptyDomain": written.map(|written| rectangle_json(domain, &written)),
        "fragments": info.fragments().map(|f| fragment(&f)).collect::<Vec<_>>(),
        "deletes": array.deletes().iter().map(|d| d.timestamp).collect::<Vec<_>>(),
        "schemas": array.schemas().len(),
    }))
}

fn fragment(fragment: &FragmentDescription<'_>) -> Json {
    let (time, footer) = (fragment.time_range(), fragment.fragment().footer());
    let files = footer
        .file_sizes
        .iter()
        .chain(&footer.file_var_sizes)
        .chain(&footer.file_validity_sizes);
    json!({
        "name": fragment.name(),
        "version": fragment.version().number(),
        "timeRange": [time.start, time.end],
        "dense": fragment.is_dense(),
        "cells": fragment.cell_num(),
        "tiles": fragment.tile_num(),
        "bytes": files.fold(0u64, |sum, size| sum.saturating_add(*size)),
        "domain": fragment
            .non_empty_domain()
            .map(|domain| rectangle_json(&fragment.schema().domain, domain)),
    })
}

/// The boxes around the tiles of a sparse fragment whose R-tree is loaded.
///
/// # Errors
/// Those of [`FragmentDescription::mbr`].
pub fn boxes(fragment: &FragmentDescription<'_>) -> Result<Json> {
    let domain = &fragment.schema().domain;
    (0..fragment.mbr_num())
        .map(|tile| Ok(json!(rectangle_json(domain, &fragment.mbr(tile)?))))
        .collect::<Result<Vec<Json>>>()
        .map(Json::Array)
}

/// Key-values by their keys.
#[must_use]
pub fn metadata(metadata: &Metadata) -> Json {
    let entry = |(key, value): (&String, &azulejo::format::metadata::MetadataValue)| {
        let shape = match value.count() {
            1 => CellValNum::ONE,
            _ => CellValNum::Var,
        };
        json!({
            "key": key,
            "datatype": value.datatype.name(),
            "count": value.count(),
            "value": value_json(value.datatype, shape, &value.data),
        })
    };
    metadata.iter().map(entry).collect()
}

/// The values of an enumeration.
#[must_use]
pub fn enumeration(enumeration: &Enumeration) -> Json {
    let Enumeration {
        name,
        datatype,
        cell_val_num,
        ordered,
        ..
    } = enumeration;
    let value = |bytes: &[u8]| value_json(*datatype, *cell_val_num, bytes);
    json!({
        "name": name,
        "datatype": datatype.name(),
        "ordered": ordered,
        "values": enumeration.values().map(value).collect::<Vec<_>>(),
    })
}

/// A group and its members.
#[must_use]
pub fn group(group: &Group) -> Json {
    let member = |member: &Member| {
        json!({
            "name": member.name,
            "uri": member.uri,
            "location": member.location,
            "relative": member.relative,
            "kind": member.object_type.map(|kind| match kind {
                ObjectType::Array => "array",
                ObjectType::Group => "group",
            }),
        })
    };
    json!({
        "uri": group.uri().to_string(),
        "timeRange": [group.time_range().start, group.time_range().end],
        "listedAt": group.listed_at(),
        "members": group.members().iter().map(member).collect::<Vec<_>>(),
    })
}

/// Named snapshots, by time.
#[must_use]
pub fn snapshots(snapshots: &[NamedSnapshot]) -> Json {
    let each = |snapshot: &NamedSnapshot| json!({"name": snapshot.name, "at": snapshot.at});
    snapshots.iter().map(each).collect()
}

/// What an aggregate came to.
#[must_use]
pub fn aggregate(value: &AggregateValue) -> Json {
    match value {
        AggregateValue::Null => Json::Null,
        AggregateValue::Unsigned(value) => json!(value),
        AggregateValue::Signed(value) => json!(value),
        AggregateValue::Real(value) => {
            value_json(Datatype::Float64, CellValNum::ONE, &value.to_le_bytes())
        }
        AggregateValue::Cell { datatype, bytes } => {
            let shape = match datatype.is_text() {
                true => CellValNum::Var,
                false => CellValNum::ONE,
            };
            value_json(*datatype, shape, bytes)
        }
        // Said in words until this knows better.
        other => format!("{other:?}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_whole_numbers_keep_their_digits() {
        let json = json!([1, EXACT, EXACT + 1, i64::MIN, {"a": u64::MAX}, 0.5]);
        let expected = r#"[1,9007199254740992,{"$":"9007199254740993"},{"$":"-9223372036854775808"},{"a":{"$":"18446744073709551615"}},0.5]"#;
        assert_eq!(text(json), expected);
    }
}
