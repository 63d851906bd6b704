//! The commands that make and change arrays and groups, as their users meet them.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use assert_cmd::Command;
use serde_json::{Value as Json, json};
use tempfile::TempDir;

const SCHEMA: &str = r#"{
  "version": 22, "array_type": "sparse", "allows_dups": false, "tile_order": "row-major", "cell_order": "row-major",
  "capacity": 100,
  "coords_filters": { "chunk_size": 65536, "filters": [{ "filter": "zstd", "level": -1 }] },
  "offsets_filters": { "chunk_size": 65536, "filters": [] },
  "validity_filters": { "chunk_size": 65536, "filters": [] },
  "dimensions": [{ "name": "x", "datatype": "INT32", "cell_val_num": 1, "domain": [0, 99], "tile_extent": null,
    "filters": { "chunk_size": 65536, "filters": [] } }],
  "attributes": [{ "name": "a", "datatype": "INT64", "cell_val_num": 1, "nullable": false, "fill_value": 0,
    "fill_validity": false, "order": "unordered", "enumeration": null,
    "filters": { "chunk_size": 65536, "filters": [] } }],
  "enumerations": [{ "name": "words", "datatype": "STRING_UTF8", "cell_val_num": "var", "ordered": false,
    "values": ["a"] }],
  "dimension_labels": [],
  "current_domain": [[0, 9]]
}"#;

/// A folder with `schema.json` and, made from it, the array `array`.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        std::fs::write(place.0.path().join("schema.json"), SCHEMA).unwrap();
        place.run("create array --schema schema.json");
        place
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::cargo_bin("azulejo").unwrap();
        command
            .env("NO_COLOR", "1")
            .env_remove("COLUMNS")
            .current_dir(&self.0);
        for (at, part) in line.split('\'').enumerate() {
            match at % 2 {
                1 => drop(command.arg(part)),
                _ => drop(command.args(part.split_whitespace())),
            }
        }
        command
    }

    fn run(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        assert!(
            output.status.success(),
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, line: &str) -> Json {
        serde_json::from_str(&self.run(&format!("{line} --json"))).unwrap()
    }

    fn fails(&self, line: &str, code: i32, says: &str) {
        let output = self.command(line).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {stderr}");
        assert!(stderr.contains(says), "{line}: {stderr}");
    }
}

#[test]
fn arrays_are_made_from_schemas() {
    let place = Place::new();
    let mut expected: Json = serde_json::from_str(SCHEMA).unwrap();
    // A tile spans the domain where no extent is given.
    expected["dimensions"][0]["tile_extent"] = json!(100);
    assert_eq!(place.json("schema array"), expected);
    assert_eq!(
        place.json("create other --schema schema.json --dry-run"),
        expected
    );
    place.fails("info other", 3, "other");
    // Nothing was added to it: the same command finds its work done.
    place.run("create array --schema schema.json");
    place.run("meta set array k 1");
    place.fails("create array --schema schema.json", 1, "already exists");
    place.run("meta rm array k");
    place
        .command("create other --schema -")
        .write_stdin(SCHEMA)
        .assert()
        .success();
    let wrong = SCHEMA.replace("[0, 99]", "[9, 0]");
    std::fs::write(place.0.path().join("wrong.json"), wrong).unwrap();
    place.fails(
        "create wrong --schema wrong.json",
        2,
        "ends before it starts",
    );
    place.fails(
        "create wrong --schema wrong.json --dry-run",
        2,
        "ends before it starts",
    );
    place.fails("create wrong --schema nothing.json", 1, "nothing.json");
}

#[test]
fn schemas_evolve() {
    let place = Place::new();
    let before = place.json("schema array");
    let line = "evolve array --add-attr 'w INT8 nullable enum=words filters=rle,zstd:3' --extend-enum words=b,c \
                --expand x=0:19";
    let planned = place.json(&format!("{line} --dry-run"));
    assert_eq!(place.json("schema array"), before);
    assert_eq!(place.json(line)["evolved"], "array");
    let after = place.json("schema array");
    assert_eq!(after, planned);
    assert_eq!(after["attributes"][1]["enumeration"], "words");
    assert_eq!(after["enumerations"][0]["values"], json!(["a", "b", "c"]));
    assert_eq!(after["current_domain"], json!([[0, 19]]));
    place.run("evolve array --drop-attr w --drop-enum words");
    assert_eq!(place.json("schema array")["enumerations"], json!([]));
    place.fails("evolve array --drop-attr a --at 2020-01-01", 2, "later");
    place.fails("evolve array --drop-attr b", 2, "not there");
    place.fails("evolve array --expand x=0:8", 2, "only be expanded");
    place.fails("evolve array --add-attr a", 2, "a name and a type");
    place.fails("evolve array", 2, "what to change");
    assert!(
        place
            .run("upgrade array")
            .contains("already is of format version 22")
    );
    assert_eq!(place.json("upgrade array")["upgraded"], false);
}

#[test]
fn cells_fragments_and_objects_are_deleted() {
    let place = Place::new();
    for (time, cells) in [(10, "x,a\n0,1\n1,2\n2,3\n"), (20, "x,a\n5,6\n")] {
        let line = format!("import - array --append --format csv --at {time}");
        place.command(&line).write_stdin(cells).assert().success();
    }
    let count = || place.json("agg array count")["count"].as_u64();
    let dry = place.json("delete array --where 'a >= 3' --dry-run");
    assert_eq!((dry["cells"].as_u64(), count()), (Some(2), Some(4)));
    assert!(
        place
            .run("delete array --where 'a >= 3'")
            .contains("deleted")
    );
    assert_eq!(count(), Some(2));
    assert_eq!(
        place.json("delete array --to 15 --dry-run")["fragments"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(count(), Some(2));
    assert_eq!(place.run("delete array --to 15"), "deleted 1 fragment\n");
    assert_eq!(count(), Some(0));
    place.fails("delete array --fragment nothing", 2, "nothing");
    place.fails("delete array --where 'b = 1'", 2, "b");
    place.fails("delete array --where 'a = 1' --yes", 2, "--yes");
    place.fails("delete array", 2, "--dry-run");
    assert_eq!(
        place.json("delete array --dry-run")["objects"][0]["kind"],
        "array"
    );
    place.run("info array");
    place.run("delete array --yes");
    place.fails("info array", 3, "array");
}

#[test]
fn metadata_is_set_and_removed() {
    let place = Place::new();
    place.run("group create group");
    for uri in ["array", "group"] {
        place.run(&format!("meta set {uri} unit mm"));
        place.run(&format!("meta set {uri} origin -0.5 2 --type FLOAT32"));
        place.run(&format!("meta set {uri} n -7 --at 2024-05-01"));
        let meta = place.json(&format!("meta {uri}"));
        assert_eq!(
            meta["unit"],
            json!({ "datatype": "STRING_UTF8", "count": 2, "value": "mm" })
        );
        assert_eq!(meta["origin"]["value"], json!([-0.5, 2.0]));
        assert_eq!(place.run(&format!("meta {uri} n --at 2024-05-01")), "-7\n");
        place.run(&format!("meta rm {uri} n unit"));
        assert_eq!(
            place
                .json(&format!("meta {uri}"))
                .as_object()
                .unwrap()
                .len(),
            1
        );
    }
    place.fails("meta set array k 1 2 --type WORD", 2, "WORD");
    place.fails("meta set array k two words", 2, "quotes");
    place.fails("meta set nothing k 1", 3, "nothing");
}

#[test]
fn groups_have_members_and_everything_can_move() {
    let place = Place::new();
    place.run("group create group");
    place.run("group create group");
    place.fails("group create array", 1, "already exists");
    place.run("copy array group/inner");
    place.run("group add group inner --relative");
    place.run("group add group array --name outside");
    place.fails("group add group array --name outside", 1, "already exists");
    place.fails("group add group nothing", 3, "nothing");
    place.run("group add group array --name outside --replace");
    assert_eq!(
        place.json("group add group later --type array --name later")["members"],
        3
    );
    assert_eq!(place.json("group rm group later")["members"], 2);
    place.run("move group moved");
    place.fails("info group", 3, "group");
    assert_eq!(place.json("ls moved").as_array().unwrap().len(), 2);
    place.run("info moved/inner");
    place.fails("copy array moved", 1, "already exists");
    place.fails("copy array array/x", 2, "lies in the other");
    let plan = place.json("delete moved --recursive --dry-run");
    assert_eq!(plan["objects"].as_array().unwrap().len(), 3);
    place.fails("delete moved --recursive", 2, "3 objects");
    place.run("delete moved --recursive --yes");
    place.fails("info array", 3, "array");
}

#[test]
fn keys_encrypt_what_is_made() {
    let place = Place::new();
    std::fs::write(
        place.0.path().join("key"),
        "0123456789abcdeF0123456789abcdeF",
    )
    .unwrap();
    place.run("create secret --schema schema.json --key-file key");
    place.run("meta set secret k 1 --key-file key");
    place.fails("meta set secret k 1", 5, "--key-file");
    place.fails("evolve secret --drop-enum words", 5, "--key-file");
    assert_eq!(place.json("meta secret --key-file key")["k"]["value"], 1);
}
