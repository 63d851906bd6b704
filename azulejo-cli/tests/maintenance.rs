//! `azulejo consolidate`, `vacuum` and `check` on real files.

use assert_cmd::Command;
use azulejo::{Config, Context};
use serde_json::Value;
use std::path::Path;

fn azulejo(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("azulejo").expect("the program");
    command.args(args);
    command
}

fn json(args: &[&str]) -> Value {
    let output = azulejo(args).arg("--json").output().expect("it runs");
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// An array of three fragments.
fn array(dir: &Path) -> String {
    let uri = dir.join("cells").to_str().expect("a path").to_owned();
    for (i, rows) in ["1,a\n2,b\n", "2,c\n3,d\n", "9,e\n"]
        .into_iter()
        .enumerate()
    {
        let file = dir.join(format!("{i}.csv"));
        std::fs::write(&file, format!("x,s\n{rows}")).expect("a file");
        let file = file.to_str().expect("a path");
        let args = match i {
            0 => vec!["import", file, &uri, "--dims", "x", "--sparse"],
            _ => vec!["import", file, &uri, "--append"],
        };
        azulejo(&args).assert().success();
    }
    uri
}

#[test]
fn many_fragments_become_one_and_the_old_ones_go() {
    let dir = tempfile::tempdir().expect("a folder");
    let uri = array(dir.path());
    let cells = json(&["agg", &uri, "count"]);
    let rounds = json(&["consolidate", &uri]);
    assert_eq!(rounds["rounds"][0]["old"].as_array().map(Vec::len), Some(3));
    let dry = json(&["vacuum", &uri, "--dry-run"]);
    assert_eq!(dry["folders"].as_array().map(Vec::len), Some(3));
    assert!(dry["bytes"].as_u64() > Some(1000), "{dry}");
    let wet = json(&["vacuum", &uri]);
    assert_eq!(
        (&dry["files"], &dry["folders"]),
        (&wet["files"], &wet["folders"])
    );
    assert_eq!(json(&["fragments", &uri]).as_array().map(Vec::len), Some(1));
    assert_eq!(json(&["agg", &uri, "count"]), cells);
    for mode in ["commits", "fragment-meta", "array-meta"] {
        azulejo(&["consolidate", &uri, "--mode", mode, "--vacuum"])
            .assert()
            .success();
    }
    assert_eq!(json(&["agg", &uri, "count"]), cells);
    assert_eq!(json(&["check", &uri, "--deep"])["worst"], Value::Null);
}

#[test]
fn footers_that_are_in_one_file_already_are_left_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    let uri = array(dir.path());
    let again = || json(&["consolidate", &uri, "--mode", "fragment-meta"])["written"].clone();
    assert!(again().is_string());
    assert_eq!(again(), Value::Null);
    let files = std::fs::read_dir(Path::new(&uri).join("__fragment_meta"));
    assert_eq!(files.expect("a folder").count(), 1);
}

#[test]
fn attributes_whose_names_have_commas_can_be_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("a.csv");
    std::fs::write(&file, "x,\"b,c\",d\n1,2,3\n").expect("a file");
    let uri = dir.path().join("a");
    let (file, uri) = (file.to_str().expect("a path"), uri.to_str().expect("one"));
    azulejo(&["import", file, uri, "--dims", "x", "--sparse"])
        .assert()
        .success();
    for (names, line) in [("d,b,c", "1,3,2\n"), ("x,b,c", "1,2\n"), ("d", "1,3\n")] {
        let cat = azulejo(&["cat", uri, "--format", "csv", "--attrs", names]).output();
        let text = String::from_utf8(cat.expect("it runs").stdout).expect("text");
        assert!(text.ends_with(line), "{names}: {text}");
    }
    azulejo(&["cat", uri, "--attrs", "b,d"]).assert().failure();
    let by = azulejo(&["agg", uri, "count", "--by", "d,b,c", "--json"]).output();
    let groups = String::from_utf8(by.expect("it runs").stdout).expect("text");
    assert!(groups.contains("\"b,c\""), "{groups}");
}

#[test]
fn columns_whose_names_have_commas_can_be_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("a.csv");
    std::fs::write(&file, "\"x,y\",\"b,c\",d,e\n1,u,3,4\n2,v,5,6\n").expect("a file");
    let uri = dir.path().join("a");
    let (file, uri) = (file.to_str().expect("a path"), uri.to_str().expect("one"));
    let lists = [
        ("--dims", "x,y"),
        ("--columns", "x,y,b,c,d"),
        ("--enumerate", "b,c"),
        ("--nullable", "d,b,c"),
    ];
    let lists = lists.iter().flat_map(|(option, list)| [*option, *list]);
    let line: Vec<&str> = ["import", file, uri].into_iter().chain(lists).collect();
    azulejo(&line).assert().success();
    let array = Context::new(Config::default(), None).expect("a context");
    let array = array.array(uri).open().expect("an array");
    let schema = array.schema();
    assert_eq!(schema.domain.dimensions[0].name, "x,y");
    let attributes = schema.attributes.iter();
    let attributes: Vec<_> = attributes
        .map(|a| (a.name.as_str(), a.nullable, a.enumeration.is_some()))
        .collect();
    assert_eq!(attributes, [("b,c", true, true), ("d", true, false)]);
    azulejo(&["import", file, uri, "--append", "--columns", "d,x,y,b,c"])
        .assert()
        .success();
}

#[test]
fn columns_that_no_line_has_are_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let uri = array(dir.path());
    let file = dir.path().join("more.ndjson");
    let lines = "{\"x\": 30, \"s\": \"f\", \"more\": 1}\n";
    std::fs::write(&file, lines).expect("a file");
    let file = file.to_str().expect("a path");
    let add = |columns: &str| azulejo(&["import", file, &uri, "--append", "--columns", columns]);
    add("x,s,mroe").assert().failure();
    add("x,s,more").assert().success();
    add("x,s").assert().success();
}

/// What the files before have added is told in the document, though a later one fails.
#[test]
fn files_that_were_added_before_one_failed_are_told() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| {
        let path = dir.path().join(name);
        path.to_str().expect("a path").to_owned()
    };
    // Each an array, and a table of its own.
    for (name, text) in [
        ("rows", "s,v\na,1\n"),
        ("good", "s,v\nb,2\nc,3\n"),
        ("bad", "s,v\nd,x\n"),
    ] {
        let (file, uri, table) = (
            path("rows.csv"),
            path(name),
            path(&format!("{name}.parquet")),
        );
        std::fs::write(&file, text).expect("a file");
        azulejo(&["import", &file, &uri]).assert().success();
        azulejo(&["export", &uri, &table, "--attrs", "s,v"])
            .assert()
            .success();
    }
    let (good, bad, uri) = (path("good.parquet"), path("bad.parquet"), path("rows"));
    let args = ["import", &good, &bad, &uri, "--append", "--json"];
    let output = azulejo(&args).output().expect("it runs");
    assert!(!output.status.success());
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["cells"], 2);
}

#[test]
fn check_finds_a_file_that_is_cut_and_an_orphan() {
    let dir = tempfile::tempdir().expect("a folder");
    let uri = array(dir.path());
    let fragments = Path::new(&uri).join("__fragments");
    let orphan = fragments.join("__7_7_0123456789abcdef0123456789abcdef_22");
    std::fs::create_dir(&orphan).expect("a folder");
    std::fs::write(orphan.join("a0.tdb"), b"123").expect("a file");
    azulejo(&["check", &uri, "--repair", "--dry-run"])
        .assert()
        .success();
    assert!(orphan.exists());
    azulejo(&["check", &uri, "--repair"]).assert().success();
    assert!(!orphan.exists());
    let first = std::fs::read_dir(&fragments)
        .expect("a folder")
        .next()
        .expect("a fragment")
        .expect("a name");
    let file = first.path().join("d0.tdb");
    let bytes = std::fs::read(&file).expect("bytes");
    std::fs::write(&file, &bytes[..bytes.len() - 1]).expect("a file");
    azulejo(&["check", &uri]).assert().code(4);
    azulejo(&["check", &uri, "--repair"]).assert().code(4);
    assert!(file.exists(), "nothing is removed that may still be of use");
}
