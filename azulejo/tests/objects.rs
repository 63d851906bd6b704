//! What is known about objects without reading their cells, and dimension labels, on packed arrays
//! of the reference.

mod support;

use azulejo::format::{NdRectangle, Range};
use azulejo::fragment_info::{FragmentDescription, FragmentInfo};
use azulejo::group::ObjectType;
use azulejo::storage::Storage;
use azulejo::{Array, Config, Context, Error, TimeRange};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::{check, pack};

/// What the reference's fragment-info functions say; without flags about consolidated metadata
/// where it compares whole paths, so that they turn false when an array is moved.
const EXPECTED: &str = include_str!("fixtures/fragment_info.json");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn rectangle(r: &NdRectangle) -> Value {
    r.ranges
        .iter()
        .map(|range| json!([hex(&range.start), hex(&range.end)]))
        .collect()
}

fn describe(fragment: &FragmentDescription<'_>) -> Result<Value, Error> {
    let mbrs = fragment.mbr_num();
    Ok(json!({
        "size": fragment.size()?,
        "cells": fragment.cell_num(),
        "schema": fragment.schema_name(),
        "ned": fragment.non_empty_domain().map(rectangle),
        "mbrs": mbrs,
        "first_mbr": if mbrs > 0 { rectangle(&fragment.mbr(0)?) } else { Value::Null },
        "last_mbr": if mbrs > 0 { rectangle(&fragment.mbr(mbrs - 1)?) } else { Value::Null },
        "consolidated": fragment.has_consolidated_metadata(),
    }))
}

fn compare(expected: &Value, info: &FragmentInfo) -> Result<(), String> {
    let differs = |what: &str, found: &Value, wanted: &Value| {
        (found != wanted)
            .then(|| format!("{what}: {found} instead of {wanted}"))
            .map_or(Ok(()), Err)
    };
    differs(
        "cells",
        &json!(info.total_cell_num()),
        &expected["total_cells"],
    )?;
    if let Some(unconsolidated) = expected.get("unconsolidated") {
        differs(
            "unconsolidated",
            &json!(info.unconsolidated_metadata_num()),
            unconsolidated,
        )?;
    }
    let mut to_vacuum: Vec<&str> = info.to_vacuum().iter().map(|path| path.name()).collect();
    to_vacuum.sort_unstable();
    differs("to vacuum", &json!(to_vacuum), &expected["to_vacuum"])?;
    let fragments = expected["fragments"].as_object().ok_or("no fragments")?;
    differs(
        "fragments",
        &json!(info.fragment_num()),
        &json!(fragments.len()),
    )?;
    info.preload_mbrs().map_err(|e| e.to_string())?;
    for fragment in info.fragments() {
        let wanted = fragments
            .get(fragment.name())
            .and_then(Value::as_object)
            .ok_or("another fragment")?;
        let found = describe(&fragment).map_err(|e| e.to_string())?;
        for (key, wanted) in wanted {
            // Of more than 20 MBRs the expectation does not give the last.
            if key != "last_mbr" || !wanted.is_null() {
                differs(&format!("{}, {key}", fragment.name()), &found[key], wanted)?;
            }
        }
    }
    Ok(())
}

#[test]
fn fragment_info_is_that_of_the_reference() {
    let files = pack::files();
    let memory: Arc<dyn Storage> = pack::memory(&files, "made/");
    let keys: Value = serde_json::from_slice(&files["keys.json"]).expect("keys");
    let expected: BTreeMap<String, Value> = serde_json::from_str(EXPECTED).expect("JSON");
    assert!(expected.len() > 80);
    let mut failures = Vec::new();
    for (name, expected) in &expected {
        let key = check::key_of(name, &keys).expect("a key");
        let context = pack::context(Config::default(), key, Arc::clone(&memory));
        let info = context
            .array(&format!("mem://{name}"))
            .open()
            .map(|array| array.fragment_info())
            .map_err(|e| e.to_string());
        if let Err(text) = info.and_then(|info| compare(expected, &info)) {
            failures.push(format!("{name}: {text}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn fragment_info_of_a_time_and_of_what_is_not_there() {
    let files = pack::files();
    let context = pack::context(
        Config::default(),
        None,
        pack::memory(&files, "made/feat/2.30.0/"),
    );
    let uri = "mem://made/feat/2.30.0/consolidate_vacuum";
    let all = context.array(uri).open().expect("an array").fragment_info();
    assert_eq!(all.fragment_num(), 4);
    for index in 0..all.fragment_num() {
        let one = all.fragment(index).expect("a fragment");
        let at = context
            .array(uri)
            .open_at(one.time_range())
            .expect("an array")
            .fragment_info();
        assert!(at.fragments().any(|f| f.name() == one.name()));
        assert!(at.fragment_num() < all.fragment_num());
        assert!(!one.schema().attributes.is_empty() && one.uri().ends_with(one.name()));
        let behind = one.mbr(one.mbr_num()).unwrap_err();
        assert!(matches!(behind, Error::InvalidArgument(_)), "{behind}");
    }
    assert!(all.fragment(4).is_none());
    let before = context
        .array(uri)
        .open_at(TimeRange::until(1))
        .expect("an array")
        .fragment_info();
    assert_eq!((before.fragment_num(), before.total_cell_num()), (0, 0));
}

#[test]
fn a_walk_finds_every_object_of_the_pack() {
    let files = pack::files();
    let context = pack::context(Config::default(), None, pack::memory(&files, "made/"));
    let mut found = BTreeMap::new();
    for entry in context
        .object("mem://made")
        .walk(usize::MAX)
        .expect("a folder")
    {
        let entry = entry.expect("readable");
        if let Some(object_type) = entry.object_type {
            let uri = entry
                .uri
                .strip_prefix("mem://")
                .expect("in memory")
                .to_owned();
            assert_eq!(entry.depth, uri.split('/').count() - 1, "{uri}");
            found.insert(uri, object_type.to_string());
        }
    }
    let mut expected = BTreeMap::new();
    for (path, bytes) in &files {
        let name = path
            .strip_prefix("expected/")
            .and_then(|path| path.strip_suffix(".json"));
        // The arrays of dimension labels are parts of theirs.
        if let Some(name) = name.filter(|name| !name.contains("__labels")) {
            let json: Value = serde_json::from_slice(bytes).expect("JSON");
            expected.insert(
                name.to_owned(),
                json["kind"].as_str().unwrap_or_default().to_owned(),
            );
        }
    }
    // Members that were removed from their group still lie in its folder.
    expected.retain(|name, _| !name.ends_with("/group/arr3"));
    found.retain(|name, _| !name.ends_with("/group/arr3"));
    assert!(expected.len() > 500);
    assert_eq!(found, expected);
    let children = context
        .object("mem://made/feat/2.30.0/group")
        .list()
        .expect("a folder");
    let children: Vec<_> = children
        .iter()
        .map(|child| (child.name.as_str(), child.object_type))
        .collect();
    let arrays = [
        ("arr1", ObjectType::Array),
        ("arr3", ObjectType::Array),
        ("sub", ObjectType::Group),
    ];
    assert_eq!(children, arrays);
}

fn labelled(context: &Context, version: &str) -> Array {
    context
        .array(&format!("mem://made/feat/{version}/dimension_labels"))
        .open()
        .expect("an array")
}

#[test]
fn labels_select_what_they_select_in_the_reference() {
    let files = pack::files();
    let context = pack::context(Config::default(), None, pack::memory(&files, "made/feat/"));
    for version in ["2.16.3", "2.19.2", "2.22.0", "2.26.2", "2.29.2", "2.30.0"] {
        let array = labelled(&context, version);
        // l1 = -3, -1.5, .. 10.5 on d1 (0 to 9); l2 = 50, 40, .. 10 on d2 (0 to 4).
        let l1 = |from: f64, to: f64| array.label_ranges("l1", &[Range::of(from, to)]);
        for ((from, to), found) in [
            ((-3.0, 0.0), (0, 2)),
            ((-2.9, 0.1), (1, 2)),
            ((-3.0, -3.0), (0, 0)),
            ((10.5, 10.5), (9, 9)),
            ((-100.0, 100.0), (0, 9)),
            ((10.4, f64::INFINITY), (9, 9)),
        ] {
            assert_eq!(
                l1(from, to).expect("values"),
                [Range::of::<i32>(found.0, found.1)],
                "{from} to {to}"
            );
        }
        for (from, to, part) in [
            (100.0, 200.0, "contains no values"),
            (-100.0, -50.0, "contains no values"),
            (0.1, 0.2, "contains no values"),
            (3.0, 0.0, "ends before it starts"),
            (f64::NAN, 0.0, "NaN"),
        ] {
            let error = l1(from, to).unwrap_err();
            assert!(
                matches!(error, Error::InvalidArgument(_)) && error.to_string().contains(part),
                "{error}"
            );
        }
        let label = array.label("l2").expect("a label");
        assert_eq!((label.name(), label.dimension()), ("l2", 1));
        let ranges = [
            Range::of(20i64, 30),
            Range::of(50i64, 99),
            Range::of(0i64, 20),
        ];
        let found = label.ranges(&ranges).expect("values");
        assert_eq!(
            found,
            [Range::of(2i32, 3), Range::of(0i32, 0), Range::of(3i32, 4)]
        );
        let narrow = label.ranges(&[Range::of(1i32, 2)]).unwrap_err();
        assert!(narrow.to_string().contains("8 bytes"), "{narrow}");
        let missing = array.label("l3").unwrap_err();
        assert!(
            matches!(&missing, Error::SchemaMismatch(text) if text.contains("\"l3\"")),
            "{missing}"
        );
        let cells = label
            .read(azulejo::space::DimSelection::All)
            .expect("labels");
        assert_eq!(cells.cell_num, 5);
        assert_eq!(cells.columns[0].values::<i32>(), Some(&[0, 1, 2, 3, 4][..]));
        assert_eq!(
            cells.columns[1].values::<i64>(),
            Some(&[50, 40, 30, 20, 10][..])
        );
    }
}

#[test]
fn labels_are_as_old_as_their_array() {
    let files = pack::files();
    let context = pack::context(
        Config::default(),
        None,
        pack::memory(&files, "made/feat/2.30.0/"),
    );
    let uri = "mem://made/feat/2.30.0/dimension_labels";
    let before = context
        .array(uri)
        .open_at(TimeRange::until(1))
        .expect("an array");
    let error = before
        .label_ranges("l1", &[Range::of(0.0f64, 1.0)])
        .unwrap_err();
    assert!(error.to_string().contains("it is empty"), "{error}");
}
