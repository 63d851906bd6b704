//! `azulejo import`: files of every format become arrays, and come out again as they were.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use assert_cmd::Command;
use serde_json::Value as Json;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A folder, and the program run in it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
        }
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, line: &str) -> Command {
        let mut words: Vec<String> = Vec::new();
        for (at, part) in line.split('\'').enumerate() {
            if at % 2 == 1 {
                words.push(part.to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        let mut command = Command::cargo_bin("azulejo").unwrap();
        command
            .args(words)
            .env("NO_COLOR", "1")
            .env_remove("COLUMNS")
            .current_dir(&self.folder);
        command
    }

    /// What a command prints.
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

    /// Fails with this exit code and says this.
    fn fails(&self, line: &str, code: i32, says: &str) {
        let output = self.command(line).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {stderr}");
        assert!(stderr.contains(says), "{line}: {stderr}");
    }

    /// The type of a field, as the schema has it: `INT32`, with `?` if it can be null.
    fn type_of(&self, array: &str, field: &str) -> String {
        let schema = self.json(&format!("schema {array}"));
        let fields = ["dimensions", "attributes"]
            .iter()
            .flat_map(|kind| schema[kind].as_array().unwrap());
        let field = fields.into_iter().find(|f| f["name"] == field).unwrap();
        let null = if field["nullable"] == true { "?" } else { "" };
        let many = match &field["cell_val_num"] {
            Json::String(_) => "[]".to_owned(),
            number if *number == 1 => String::new(),
            number => format!("[{number}]"),
        };
        format!("{}{many}{null}", field["datatype"].as_str().unwrap())
    }
}

const AWKWARD: &str = "id,\"a \"\"name\"\"\",empty,big,when,mixed\n\
    1,\"x, y\",\"\",18446744073709551615,2024-02-29,1\n\
    -2,\"two\nlines\",,0,1969-12-31,x\n\
    3,\" spaces \",\"\",7,9999-12-31,2.5\n\
    4,é”,,8,0001-01-01,\"\"\"\"\n";

#[test]
fn awkward_text_comes_out_as_it_went_in() {
    let place = Place::new();
    place.write("a.csv", AWKWARD);
    place.run("import a.csv a");
    assert_eq!(place.run("cat a --format csv"), AWKWARD);
    let types =
        ["id", "a \"name\"", "empty", "big", "when", "mixed"].map(|f| place.type_of("a", f));
    assert_eq!(
        types,
        [
            "INT64",
            "STRING_UTF8[]",
            "STRING_UTF8[]?",
            "UINT64",
            "DATETIME_DAY",
            "STRING_UTF8[]"
        ]
    );
    // With a byte order mark, other line ends, another delimiter: the same cells.
    let text = AWKWARD.replace("two\nlines", "two lines");
    place.write("b.csv", &text);
    place.run("import b.csv b");
    let expected = place.run("cat b --format csv");
    place.write("c.csv", format!("\u{feff}{}", text.replace('\n', "\r\n")));
    place.write("d.csv", text.replace('\n', "\r"));
    place.write("e.csv", text.trim_end());
    place.write(
        "f.txt",
        text.replace("x, y", "x; y")
            .replace(',', "\t")
            .replace("; ", ", "),
    );
    for name in ["c.csv", "d.csv", "e.csv", "f.txt"] {
        place.run(&format!("import {name} {name}.array"));
        assert_eq!(
            place.run(&format!("cat {name}.array --format csv")),
            expected,
            "{name}"
        );
    }
}

#[test]
fn every_budget_and_number_of_threads_gives_the_same_cells() {
    let place = Place::new();
    let mut text = String::from("k,text,x\n");
    for i in 0..9_000u64 {
        let k = i.wrapping_mul(2_654_435_761) % 10_007;
        let quoted = if i % 3 == 0 {
            format!("\"l{i}\n,\"\"\"")
        } else {
            format!("text {i}")
        };
        text.push_str(&format!("{k},{quoted},{}\n", i as f64 / 8.0));
    }
    place.write("a.csv", &text);
    place.run("import a.csv one --dims k --threads 1");
    place.run("import a.csv many --dims k --threads 3 --memory 300k");
    let fragments = |array: &str| {
        place
            .json(&format!("fragments {array}"))
            .as_array()
            .unwrap()
            .len()
    };
    assert!(fragments("one") == 1 && fragments("many") > 1);
    let cells = |array: &str| place.run(&format!("cat {array} --format csv"));
    assert_eq!(cells("many"), cells("one"));
    assert_eq!(cells("one").lines().count(), text.lines().count());
    place.run("import a.csv rows --memory 300k --tile row=1000");
    assert!(fragments("rows") > 1);
    let same = place.run("cat rows --format csv").lines().count() == text.lines().count();
    assert!(same);
    // Lines are counted over all blocks.
    place.write("b.csv", format!("{text}x,y\n"));
    place.fails(
        "import b.csv b --memory 300k",
        1,
        "b.csv, line 12002: the record has 2 values where 3 are expected",
    );
    assert!(!place.path("b").exists());
}

#[test]
fn numbers_and_nulls_as_chosen_and_as_told() {
    let place = Place::new();
    place.write("a.csv", "i,f,b,t,n,code\n1,1.5,true,2024-01-01T10:00:00.25Z,NA,007\n2,NaN,False,2024-01-01T12:00+02:00,3,008\n");
    place.run("import a.csv a");
    let types =
        |array: &str| ["i", "f", "b", "t", "n", "code"].map(|field| place.type_of(array, field));
    assert_eq!(
        types("a"),
        [
            "INT64",
            "FLOAT64",
            "BOOL",
            "DATETIME_MS",
            "INT64?",
            "STRING_UTF8[]"
        ]
    );
    let cells = "1,1.5,true,2024-01-01T10:00:00.250,,007\n2,NaN,false,2024-01-01T10:00:00,3,008\n";
    assert!(place.run("cat a --format csv").ends_with(cells));
    place.run(
        "import a.csv b --narrow --type f=FLOAT32 --type t=DATETIME_US --type code=INT16 --nullable i --null NaN \
         --filter i=none --filter f=xor,zstd:9 --tile row=100 --domain row=0:9999",
    );
    assert_eq!(
        types("b"),
        ["INT8?", "FLOAT32?", "BOOL", "DATETIME_US", "INT8?", "INT16"]
    );
    let schema = place.json("schema b");
    assert_eq!(schema["dimensions"][0]["tile_extent"], 100);
    assert_eq!(
        schema["dimensions"][0]["domain"],
        serde_json::json!([0, 9999])
    );
    assert_eq!(
        schema["attributes"][0]["filters"]["filters"],
        serde_json::json!([])
    );
    assert_eq!(schema["attributes"][1]["filters"]["filters"][1]["level"], 9);
    assert!(
        place
            .run("cat b --format csv")
            .ends_with("2,,false,2024-01-01T10:00:00,3,8\n")
    );
    place.run("import a.csv c --columns i,n --required n --type n=FLOAT64");
    assert!(place.run("cat c --format csv").ends_with("1,NaN\n2,3.0\n"));
    place.fails(
        "import a.csv d --required n",
        1,
        "line 2, column \"n\": it is missing",
    );
    place.fails(
        "import a.csv d --type f=INT8",
        1,
        "line 2, column \"f\": \"1.5\" is not a value of INT8",
    );
}

#[test]
fn dimensions_dense_and_sparse() {
    let place = Place::new();
    place.write("a.csv", "x,y,v\n3,-1,a\n2,1,b\n3,1,c\n2,0,d\n");
    place.run("import a.csv sparse --dims x,y");
    assert_eq!(
        place.run("cat sparse --format csv"),
        "x,y,v\n2,0,d\n2,1,b\n3,-1,a\n3,1,c\n"
    );
    place.run("import a.csv dense --dims x,y --dense");
    let dense = "x,y,v\n2,-1,\"\0\"\n2,0,d\n2,1,b\n3,-1,a\n3,0,\"\0\"\n3,1,c\n";
    assert_eq!(
        place
            .run("cat dense --format csv --coords")
            .replace(",\0\n", ",\"\0\"\n"),
        dense
    );
    place.run(
        "import a.csv columns --dims y,x --cell-order col --tile-order col --tile x=1 --capacity 2",
    );
    assert_eq!(place.json("agg columns count")["count"], 4);
    place.write("twice.csv", "x,v\n1,a\n2,b\n1,c\n");
    place.fails(
        "import twice.csv d --dims x --dense",
        1,
        "line 2 and line 4 have the same coordinates",
    );
    place.run("import twice.csv t --dims x");
    assert_eq!(place.run("cat t --format csv").lines().count(), 4);
    place.fails(
        "import twice.csv u --dims x --unique",
        1,
        "line 2 and line 4 have the same coordinates",
    );
    assert!(!place.path("u").exists() && !place.path("d").exists());
    place.write("far.csv", "x,y,v\n0,0,1\n1000000000,1000000000,2\n");
    place.fails(
        "import far.csv f --dims x,y --dense",
        2,
        "1,000,000,002,000,000,001 cells for 2 rows",
    );
    place.fails(
        "import a.csv f --dims x,y --dense --domain x=5:9",
        2,
        "\"x\": the data goes from 2 to 3",
    );
    place.write("row.csv", "row,v\n7,a\n");
    place.run("import row.csv row");
    assert_eq!(
        place.run("cat row --format csv --coords"),
        "row_,row,v\n0,7,a\n"
    );
    place.run("import row.csv from --columns v --domain row=100:199");
    assert_eq!(
        place.run("cat from --format csv --coords"),
        "row,v\n100,a\n"
    );
    place.write("floats.csv", "lon,lat,v\n-9.1,38.7,1\n-8.6,41.1,2\n");
    place.run("import floats.csv floats --dims lon,lat");
    assert_eq!(place.json("schema floats")["cell_order"], "hilbert");
    assert_eq!(
        place.run("cat floats --format csv --range lat=40:"),
        "lon,lat,v\n-8.6,41.1,2\n"
    );
}

/// Every fifth coordinate below `end`, each with the value 5.
/// Data at the ends of its type leaves no room for tiles of any length.
#[test]
fn dimensions_at_the_ends_of_their_types() {
    let place = Place::new();
    // Like hashes: all over the type.
    let hash = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let rows = |of: &dyn Fn(u64) -> String| {
        let lines: String = (0..3_000).map(|i| format!("{},{i}\n", of(i))).collect();
        format!("k,a\n{lines}")
    };
    let (most, least) = (u64::MAX, i64::MIN);
    let bytes: String = (0..256).map(|i| format!("{i},{i}\n")).collect();
    let rows_of_bytes = format!("k,a\n{bytes}");
    for (name, text, options) in [
        ("unsigned", rows(&|i| hash(i + 1).to_string()), ""),
        (
            "signed",
            rows(&|i| hash(i + 1).cast_signed().to_string()),
            "",
        ),
        ("last", format!("k,a\n{most},0\n1,1\n"), ""),
        ("first", format!("k,a\n{least},0\n7,1\n"), ""),
        ("byte", "k,a\n-128,0\n127,1\n".to_owned(), "--narrow"),
        ("short", "k,a\n-128,0\n126,1\n".to_owned(), "--narrow"),
        ("stated", "k,a\n0,0\n254,1\n".to_owned(), "--type k=UINT8"),
        ("dense", rows_of_bytes, "--narrow --dense"),
    ] {
        place.write(&format!("{name}.csv"), &text);
        place.run(&format!("import {name}.csv {name} --dims k {options}"));
        place.run(&format!("check {name} --deep"));
        let mut found: Vec<String> = place
            .run(&format!("cat {name} --format csv --coords"))
            .lines()
            .map(str::to_owned)
            .collect();
        let csv = place.read(&format!("{name}.csv"));
        let mut wanted: Vec<String> = csv.lines().map(str::to_owned).collect();
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "{name}");
    }
    place.fails(
        "import byte.csv all --dims k --type k=INT8",
        2,
        "all values of its type",
    );
}

fn scattered(end: u32) -> String {
    let rows = (0..end).step_by(5).map(|x| format!("{x},5\n"));
    std::iter::once("x,v\n".to_owned()).chain(rows).collect()
}

#[test]
fn gaps_of_dense_arrays_are_no_data() {
    let place = Place::new();
    // Two boxes, of which one reaches over the edge of a tile.
    let mut rows = String::from("y,x,v\n");
    for (y, x) in (0..4).flat_map(|y| (0..3).map(move |x| (y, x))) {
        rows += &format!("{y},{x},1\n{},{},2\n", y + 8, x + 7);
    }
    place.write("two.csv", &rows);
    let told = place.json("import two.csv two --dims y,x --dense --tile y=3 --tile x=4");
    assert_eq!((&told["cells"], &told["filled"]), (&24.into(), &0.into()));
    let sums = place.json("agg two sum:v min:v mean:v");
    assert_eq!((&sums["sum:v"], &sums["min:v"]), (&36.into(), &1.into()));
    assert_eq!(sums["mean:v"], 1.5);
    assert_eq!(place.json("agg two count --where 'v < 9'")["count"], 24);
    let box_of_one = place.run("cat two --format csv --range y=8:9 --range x=6:7 --coords");
    let fill = i64::MIN;
    assert_eq!(
        box_of_one,
        format!("y,x,v\n8,6,{fill}\n8,7,2\n9,6,{fill}\n9,7,2\n")
    );
    // Too scattered, and most of it is missing.
    place.write("thin.csv", scattered(200));
    place.fails(
        "import thin.csv thin --dims x --dense",
        2,
        "156 of its 196 cells",
    );
    assert!(!place.path("thin").exists());
    let told = place.json("import thin.csv thin --dims x --dense --fill");
    assert_eq!((&told["cells"], &told["filled"]), (&40.into(), &156.into()));
    assert_eq!(place.json("agg thin count")["count"], 196);
    // Most of it is there: filled, and said.
    let most = (0..200).filter(|x| x % 5 > 0);
    let most: String = most.map(|x| format!("{x},1\n")).collect();
    place.write("most.csv", format!("x,v\n{most}"));
    let output = place
        .command("import most.csv most --dims x --dense")
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("39 cells that have no row hold fill values"),
        "{told}"
    );
    place.fails("import most.csv s --dims x --sparse --fill", 2, "--fill");
}

#[test]
fn numbers_beyond_a_type_are_not_infinite() {
    let place = Place::new();
    place.write("far.csv", "x\n1\n2.5\n1e400\n3\n");
    let output = place.command("import far.csv far").output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("because of \"1e400\" in line 4"), "{told}");
    assert_eq!(place.run("cat far"), "x\n1\n2.5\n1e400\n3\n");
    place.fails(
        "import far.csv f --type x=FLOAT64",
        1,
        "line 4, column \"x\"",
    );
    place.write("near.csv", "x\n1\n-inf\n1e39\nNaN\n");
    place.run("import near.csv near");
    assert_eq!(place.type_of("near", "x"), "FLOAT64");
    place.fails(
        "import near.csv f --type x=FLOAT32",
        1,
        "line 4, column \"x\"",
    );
}

#[test]
fn integers_that_no_type_holds_are_not_rounded() {
    let place = Place::new();
    place.write(
        "wide.csv",
        "a,b\n18446744073709551615,18446744073709551616\n-1,2\n",
    );
    let output = place.command("import wide.csv wide").output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("\"a\" holds integers that no type"), "{told}");
    assert_eq!(place.type_of("wide", "a"), "STRING_UTF8[]");
    assert_eq!(
        place.run("cat wide"),
        "a,b\n18446744073709551615,18446744073709551616\n-1,2\n"
    );
    place.run("import wide.csv rounded --type a=FLOAT64");
    assert_eq!(place.type_of("rounded", "a"), "FLOAT64");
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    let place = Place::new();
    place.write("a.csv", "x,y\n1,a\n,b\n");
    for (line, code, says) in [
        ("import a.csv a --dims z", 2, "no column \"z\"; it has x, y"),
        (
            "import a.csv a --dims x",
            2,
            "1 values are missing, the first in row 2",
        ),
        ("import a.csv a --sparse", 2, "--dims"),
        ("import a.csv a --dims y --dense", 2, "STRING_ASCII"),
        (
            "import a.csv a --type y=DATETIME_DAY",
            1,
            "a.csv, line 2, column \"y\": \"a\" is no such value",
        ),
        ("import a.csv a --type q=INT8", 2, "no field \"q\""),
        ("import a.csv a --type x=INT", 2, "not a datatype"),
        ("import a.csv a --filter x=zip", 2, "not a filter"),
        ("import a.csv a --tile x=5", 2, "no dimension \"x\""),
        ("import a.csv a --columns x,z", 2, "no column \"z\""),
        ("import a.csv a --enumerate x", 2, "not text"),
        ("import a.csv a --delimiter ab", 2, "one ASCII character"),
        ("import missing.csv a", 1, "missing.csv"),
        ("import . a", 2, "folder"),
        ("import a.csv a --append", 3, "not found"),
        ("import a.csv a --schema a.csv", 2, "a.csv"),
        ("import a.csv a --append --dims x", 2, "--append"),
    ] {
        place.fails(line, code, says);
        assert!(!place.path("a").exists(), "{line}");
    }
    place.write("bytes.csv", b"x\nok\n\xff\xfe\n");
    place.fails("import bytes.csv a", 1, "bytes.csv, line 3, column \"x\": ");
    place.run("import bytes.csv b --type x=CHAR");
    place.write("open.csv", "x\n\"never closed\n");
    place.fails(
        "import open.csv a",
        1,
        "open.csv, line 2: a quoted value has no closing quote",
    );
    place.write("empty.csv", "");
    place.fails("import empty.csv a", 1, "empty");
    place.write("a.ndjson", "{\"x\":1}\n{\"x\":\n");
    place.fails(
        "import a.ndjson a",
        1,
        "a.ndjson, line 2: the line is not a JSON object",
    );
    place.write("a.parquet", "PAR1 and nothing more");
    place.fails("import a.parquet a", 1, "a.parquet: ");
    place.write("a.arrow", "ARROW1 and nothing more");
    place.fails("import a.arrow a", 1, "a.arrow: ");
    place.write("a.npy", "\u{93}NUMPY");
    place.fails("import a.npy a", 1, "a.npy: ");
    place.write("wide.csv", "x\n1\n");
    place.write("zip.csv", b"\x1f\x8b123");
    place.fails("import zip.csv a", 1, "compressed");
    place.run("import wide.csv there");
    place.fails("import wide.csv there", 2, "--append");
}

#[test]
fn schemas_are_shown_first_and_followed() {
    let place = Place::new();
    place.write("a.csv", "k,v\n5,a\n7,b\n");
    let dry = place.run("import a.csv a --dims k --dry-run");
    assert!(
        dry.contains("sparse array") && !place.path("a").exists(),
        "{dry}"
    );
    let mut schema = place.json("import a.csv a --dims k --dry-run");
    schema["capacity"] = 77.into();
    place.write("schema.json", schema.to_string());
    place.run("import a.csv a --schema schema.json");
    assert_eq!(place.json("schema a"), schema);
    assert_eq!(place.run("cat a --format csv"), place.read("a.csv"));
    place.write("b.csv", "k,w\n5,a\n");
    place.fails("import b.csv b --schema schema.json", 2, "a field \"v\"");
    place.write("none.ndjson", "\n");
    place.fails(
        "import none.ndjson none",
        1,
        "none.ndjson: the file is empty",
    );
    // The widest domain of 32-bit reals.
    place.write("f.csv", "x,v\n0.5,1\n-2,2\n");
    place.run("import f.csv f --dims x --type x=FLOAT32");
    assert_eq!(place.run("cat f --format csv"), "x,v\n-2.0,2\n0.5,1\n");
    // An empty table has columns all the same.
    place.write("none.csv", "x,y\n");
    place.run("import none.csv none");
    assert_eq!(
        place.json("schema none")["attributes"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn arrays_grow() {
    let place = Place::new();
    place.write(
        "a.csv",
        "day,town,glaze\n2024-01-01,Porto,sky\n2024-01-02,Braga,white\n",
    );
    place.write(
        "b.csv",
        "town,glaze,day\nÉvora,cobalt,2024-01-03\nPorto,sky,2024-01-01\n",
    );
    place.run("import a.csv rows --enumerate glaze --at 2024-05-01");
    place.run("import b.csv rows --append --at 2024-05-02");
    let rows = "day,town,glaze\n2024-01-01,Porto,sky\n2024-01-02,Braga,white\n";
    assert_eq!(place.run("cat rows --format csv --at 2024-05-01"), rows);
    let all = place.run("cat rows --format csv --coords");
    assert!(
        all.ends_with("2,2024-01-03,Évora,cobalt\n3,2024-01-01,Porto,sky\n"),
        "{all}"
    );
    place.run("import a.csv cells --dims day --enumerate glaze");
    assert_eq!(
        place.json("import b.csv cells --append --dry-run")["extended_enumerations"],
        serde_json::json!(["glaze"])
    );
    place.run("import b.csv cells --append");
    assert_eq!(place.run("cat cells --format csv").lines().count(), 5);
    // What does not fit leaves the array as it was.
    place.write("c.csv", "day,town,glaze\n2024-01-05,x,sky\nnever,x,sky\n");
    place.fails("import c.csv cells --append", 1, "line 3, column \"day\"");
    let dry = "import c.csv cells --append --dry-run";
    place.fails(dry, 1, "line 3, column \"day\"");
    assert_eq!(place.run("cat cells --format csv").lines().count(), 5);
    place.write("g.csv", "x,v\n0,1\n1,2\n2,3\n");
    place.run("import g.csv g --dims x --dense --domain x=0:9");
    place.run("import g.csv s --dims x --domain x=0:9");
    place.write("i.csv", "x,v\n3,1\n12,2\n");
    place.fails(
        "import i.csv s --append --dry-run",
        2,
        "line 3: it lies outside",
    );
    place.fails("import i.csv s --append", 2, "outside the domain");
    place.write("h.csv", "x,v\n9,1\n7,2\n");
    place.run("import h.csv g --append");
    assert_eq!(place.json("agg g sum:v")["sum:v"], 9);
    assert_eq!(place.json("agg g count --where 'v < 9'")["count"], 5);
    place.write("h.csv", scattered(10_000));
    place.run("import h.csv wide --dims x --dense --domain x=0:99999 --fill");
    place.write("h.csv", scattered(100).replace("x,v", "x,v\n70001,1"));
    place.fails("import h.csv wide --append", 2, "over cells that are there");
    place.fails("import h.csv wide --append --overwrite", 2, "do not fill");
    assert_eq!(place.json("agg wide count")["count"], 9_996);
    place.write("l.csv", "x,v\n0,a\n1,b\n");
    place.run("import l.csv l --dims x --dense --domain x=0:9 --enumerate v");
    place.write("m.csv", "x,v\n9,c\n9,a\n");
    place.fails(
        "import m.csv l --append",
        1,
        "enumeration \"v\" keeps its new labels",
    );
    assert_eq!(place.run("cat l --format csv --range x=0:1"), "v\na\nb\n");
    place.write("h.csv", "x,v\n10,1\n");
    place.fails("import h.csv g --append", 2, "\"x\"");
}

#[test]
fn few_labels_in_many_rows_become_an_enumeration() {
    let place = Place::new();
    let mut text = String::from("k,glaze,letter\n");
    for i in 0..12_000 {
        text.push_str(&format!(
            "{i},{},{}\n",
            ["white", "sky", "cobalt"][i % 3],
            ["a", "b"][i % 2]
        ));
    }
    place.write("a.csv", text);
    place.run("import a.csv a");
    let schema = place.json("schema a");
    assert_eq!(
        schema["enumerations"][0]["values"],
        serde_json::json!(["cobalt", "sky", "white"])
    );
    assert_eq!(
        (place.type_of("a", "glaze"), place.type_of("a", "letter")),
        ("UINT8".into(), "STRING_UTF8[]".into())
    );
    place.run("import a.csv b --enumerate none");
    assert_eq!(place.type_of("b", "glaze"), "STRING_UTF8[]");
    assert_eq!(
        place.run("cat a --format csv"),
        place.run("cat b --format csv")
    );
}

/// JSON lines with every kind of value.
const LINES: &str = "{\"i\":1,\"f\":0.5,\"s\":\"a\\n\\u00e9\",\"b\":true,\"d\":\"2024-05-01\",\"l\":[1,2],\"v\":[1.5],\"o\":{\"x\":1}}\n\
    {\"i\":-2,\"f\":1e300,\"s\":\"\",\"b\":null,\"d\":\"2024-05-02\",\"l\":[3,4],\"v\":[],\"o\":[[1]]}\n\
    {\"f\":7,\"s\":\"NA\",\"d\":\"2024-05-03\",\"l\":[5,6],\"v\":[2,3]}\n";

#[test]
fn json_lines_keep_kinds_of_values() {
    let place = Place::new();
    place.write("a.ndjson", LINES);
    place.run("import a.ndjson a");
    let types = ["i", "f", "s", "b", "d", "l", "v", "o"].map(|field| place.type_of("a", field));
    let expected = [
        "INT64?",
        "FLOAT64",
        "STRING_UTF8[]",
        "BOOL?",
        "DATETIME_DAY",
        "INT64[2]",
        "FLOAT64[]",
        "STRING_UTF8[]?",
    ];
    assert_eq!(types, expected);
    let lines: Vec<Json> = place
        .run("cat a --format ndjson")
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines[0]["s"], "a\né");
    assert_eq!(lines[0]["o"], "{\"x\":1}");
    assert_eq!(lines[1]["f"], 1e300);
    assert_eq!((&lines[1]["b"], &lines[2]["i"]), (&Json::Null, &Json::Null));
    assert_eq!(lines[2]["v"], serde_json::json!([2.0, 3.0]));
}

/// Exported and imported again, an array has the same cells, and in formats that state types the
/// same types.
#[test]
fn exports_come_back() {
    let place = Place::new();
    // One number is beyond what 32 bits hold.
    place.write("a.ndjson", LINES);
    place.fails(
        "import a.ndjson a --type f=FLOAT32",
        1,
        "line 2, column \"f\"",
    );
    place.write("a.ndjson", LINES.replace("1e300", "1e30"));
    place.run(
        "import a.ndjson a --type f=FLOAT32 --type i=INT16 --type l=UINT8 --columns i,f,s,b,l,v",
    );
    place.write(
        "b.csv",
        "week,month,hour,text,bytes,name,glaze\n2024-05-02,2024-05-01,10:00,abc,00ff,é,sky\n1969-12-25,1969-12-01,23:00,x,,\"\",white\n",
    );
    place.run(
        "import b.csv b --type week=DATETIME_WEEK --type month=DATETIME_MONTH --type hour=TIME_HR --type text=CHAR[3] \
         --type bytes=BLOB --enumerate glaze --dims month --columns week,month,hour,text,bytes,name,glaze",
    );
    place.write(
        "c.ndjson",
        "{\"x\":0,\"y\":0,\"p\":[1,2,3]}\n{\"x\":0,\"y\":1,\"p\":[4,5,6]}\n",
    );
    place.run("import c.ndjson c --dims x,y --dense --type p=UINT8");
    for array in ["a", "b", "c"] {
        let cells = place.run(&format!("cat {array} --format ndjson --coords --raw"));
        place.write("schema.json", place.run(&format!("schema {array} --json")));
        for ending in ["parquet", "arrow", "csv", "ndjson"] {
            let (file, again) = (
                format!("{array}.{ending}x"),
                format!("{array}.{ending}.again"),
            );
            place.run(&format!("export {array} {file} --coords --format {ending}"));
            place.run(&format!(
                "import {file} {again} --format {ending} --schema schema.json"
            ));
            assert_eq!(
                place.run(&format!("cat {again} --format ndjson --coords --raw")),
                cells,
                "{again}"
            );
            if matches!(ending, "parquet" | "arrow") && array != "c" {
                let free = format!("{again}.free");
                let dims = if array == "b" {
                    "--dims month"
                } else {
                    "--columns i,f,s,b,l,v"
                };
                place.run(&format!("import {file} {free} --format {ending} {dims}"));
                // Parquet has its own order of labels.
                let cells =
                    |array: &str| place.run(&format!("cat {array} --format ndjson --coords"));
                assert_eq!(cells(&free), cells(array), "{free}");
                let types = |array: &str| {
                    let schema = place.json(&format!("schema {array}"));
                    let attributes = schema["attributes"].as_array().unwrap().clone();
                    attributes
                        .into_iter()
                        .map(|a| (a["name"].clone(), a["datatype"].clone()))
                        .collect::<Vec<_>>()
                };
                assert_eq!(types(&free), types(array), "{free}");
            }
        }
    }
}

/// A `.npy` file of 16-bit integers counting up.
fn npy(shape: &str, cells: u16, fortran: bool, big: bool) -> Vec<u8> {
    let (order, fortran) = (
        if big { '>' } else { '<' },
        if fortran { "True" } else { "False" },
    );
    let header =
        format!("{{'descr': '{order}i2', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    for cell in 0..cells {
        bytes.extend(if big {
            [(cell >> 8) as u8, cell as u8]
        } else {
            cell.to_le_bytes()
        });
    }
    bytes
}

fn data(file: &Path) -> Vec<u8> {
    let bytes = fs::read(file).unwrap();
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[10 + header..].to_vec()
}

#[test]
fn numpy_arrays_in_either_order() {
    let place = Place::new();
    for (name, fortran, big) in [("c", false, false), ("f", true, false), ("b", false, true)] {
        place.write(
            &format!("{name}.npy"),
            npy("(30, 20, 5)", 3000, fortran, big),
        );
        for memory in ["1GiB", "20k"] {
            let array = format!("{name}.{memory}");
            place.run(&format!(
                "import {name}.npy {array} --memory {memory} --names count"
            ));
            let order = if fortran { "--order col" } else { "" };
            place.run(&format!("export {array} {array}.npy {order}"));
            let expected = npy("(30, 20, 5)", 3000, fortran, false);
            assert_eq!(
                data(&place.path(&format!("{array}.npy"))),
                expected[expected.len() - 6000..],
                "{array}"
            );
        }
    }
    let schema = place.json("schema f.1GiB");
    assert_eq!(
        (&schema["cell_order"], &schema["dimensions"][2]["name"]),
        (&"col-major".into(), &"dim_2".into())
    );
    place.run("import c.npy named --dims z,y,x --tile x=2");
    assert_eq!(
        place.json("schema named")["dimensions"][2]["tile_extent"],
        2
    );
    place.write("short.npy", npy("(30, 20, 5)", 2999, false, false));
    place.fails(
        "import short.npy s",
        1,
        "the header asks for 6000 bytes of data, the file has 5998",
    );
    place.write("scalar.npy", npy("()", 1, false, false));
    place.run("import scalar.npy scalar");
}

#[test]
fn standard_input_is_a_file_too() {
    let place = Place::new();
    let mut import = place.command("import - a --dims k --json");
    let output = import.write_stdin("k,v\n2,x\n1,y\n").output().unwrap();
    let report: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["cells"], &report["bytes_read"]),
        (&2.into(), &12.into())
    );
    assert_eq!(place.run("cat a --format csv"), "k,v\n1,y\n2,x\n");
    let mut import = place.command("import - b");
    import.write_stdin("{\"k\":1}\n").assert().success();
    assert_eq!(place.run("cat b --format csv"), "k\n1\n");
    let mut import = place.command("import - c --dims k");
    let output = import.write_stdin("k\nx\n\"\n").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("standard input, line 3"));
}

#[test]
fn programs_that_append_at_the_same_time_lose_no_row() {
    const PROGRAMS: usize = 4;
    const TIMES: usize = 4;
    let place = Place::new();
    place.write("first.csv", "v\n-1\n-1\n");
    place.run("import first.csv rows");
    std::thread::scope(|scope| {
        for program in 0..PROGRAMS {
            let place = &place;
            scope.spawn(move || {
                for time in 0..TIMES {
                    let (name, value) = (format!("{program}.csv"), program * 100 + time);
                    place.write(&name, format!("v\n{value}\n{value}\n{value}\n"));
                    place.run(&format!("import {name} rows --append"));
                }
            });
        }
    });
    let found = place.run("cat rows --format csv");
    let cells: Vec<&str> = found.lines().skip(3).collect();
    let boxes: Vec<&[&str]> = cells.chunks(3).collect();
    assert!(boxes.iter().all(|cells| cells[0] == cells[2]), "{found}");
    let mut firsts: Vec<usize> = boxes
        .iter()
        .map(|cells| cells[0].parse().unwrap())
        .collect();
    firsts.sort_unstable();
    let wanted = (0..PROGRAMS).flat_map(|program| (0..TIMES).map(move |time| program * 100 + time));
    assert_eq!(firsts, wanted.collect::<Vec<_>>(), "{found}");
}

/// Keys of JSON lines are known only once they were looked at.
#[test]
fn keys_of_json_lines_and_given_names_may_have_commas() {
    let place = Place::new();
    place.write(
        "a.ndjson",
        "{\"x,y\":1,\"b,c\":\"u\",\"d\":3,\"e\":4}\n{\"x,y\":2,\"b,c\":\"v\",\"d\":5,\"e\":6}\n",
    );
    place.run("import a.ndjson a --columns x,y,b,c,d --dims x,y --enumerate b,c --nullable d,b,c");
    let cells = "\"x,y\",\"b,c\",d\n1,u,3\n2,v,5\n";
    assert_eq!(place.run("cat a --format csv"), cells);
    place.write("more.ndjson", "{\"x,y\":3,\"b,c\":\"u\",\"d\":7,\"e\":8}\n");
    place.run("import more.ndjson a --append --columns x,y,b,c,d");
    let more = format!("{cells}3,u,7\n");
    assert_eq!(place.run("cat a --format csv"), more);
    let refused = place
        .command("import a.ndjson b --columns x,y,q")
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(
        message.contains("no column \"q\"; it has x,y, b,c, d, e"),
        "{message}"
    );
    let strict = "import more.ndjson a --append --strict --columns x,y,b,c,d,e";
    let refused = place.command(strict).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(
        message.contains("column e of the file goes nowhere"),
        "{message}"
    );

    place.write("n.csv", "1,2,3\n");
    place.run("import n.csv n --no-header --names 'a,\"b,\"\"c\",d'");
    assert_eq!(
        place.run("cat n --format csv --attrs 'b,\"c,d'"),
        "\"b,\"\"c\",d\n2,3\n"
    );
}

#[test]
fn tab_separated_values_come_out_as_they_went_in() {
    let place = Place::new();
    let text = "a\tb\n1\t\"x\ty\"\n2\tz, 0\n";
    place.write("a.tsv", text);
    place.run("import a.tsv a");
    place.run("export a b.tsv");
    assert_eq!(place.read("b.tsv"), text);
}
