//! The program as its users meet it, on a sample that TileDB itself wrote: see `make_sample.py`.
//!
//! Expected outputs lie in `tests/expected`; `UPDATE_EXPECTED=1 cargo test -p azulejo-cli` writes
//! them anew.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use assert_cmd::Command;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::TempDir;

/// The sample, unpacked once.
static SAMPLE: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = TempDir::new().unwrap();
    unpack(&folder.path().join("sample"));
    folder
});

fn unpack(folder: &Path) {
    for (path, data) in files(include_bytes!("sample.pack")) {
        let target = folder.join(path);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::write(&target, data).unwrap();
    }
}

/// The files of a pack: paths and bytes.
fn files(mut pack: &[u8]) -> impl Iterator<Item = (&str, &[u8])> {
    std::iter::from_fn(move || {
        let (length, rest) = pack.split_first_chunk::<2>()?;
        let (path, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)));
        let (length, rest) = rest.split_first_chunk::<4>().unwrap();
        let (data, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        pack = rest;
        Some((str::from_utf8(path).unwrap(), data))
    })
}

/// The program, run where the sample lies.
fn azulejo(words: &[&str]) -> Command {
    let mut command = Command::cargo_bin("azulejo").unwrap();
    command
        .args(words)
        .env("NO_COLOR", "1")
        .env_remove("COLUMNS");
    command
}

fn sample() -> PathBuf {
    SAMPLE.path().join("sample")
}

/// Runs a line of words in the sample's folder; `'..'` holds words together.
fn run(line: &str) -> Command {
    let mut words: Vec<String> = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = azulejo(&words);
    command.current_dir(sample());
    command
}

fn stdout(line: &str) -> String {
    let output = run(line).output().unwrap();
    assert!(
        output.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn json(line: &str) -> Json {
    serde_json::from_str(&stdout(line)).unwrap()
}

/// Fails with this exit code, and says this on standard error.
fn fails(line: &str, code: i32, says: &str) {
    let output = run(line).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{line}: {stderr}");
    assert!(stderr.contains(says), "{line}: {stderr}");
    assert!(output.stdout.is_empty(), "{line}");
}

fn expect(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/expected")
        .join(name);
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&file, text).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text, expected, "{}", file.display());
}

#[test]
fn the_tour_leaves_nothing_unless_it_is_to_be_kept() {
    let folder = TempDir::new().unwrap();
    let tour = || {
        let mut command = azulejo(&["quickstart"]);
        command.current_dir(&folder).env("TMPDIR", folder.path());
        command
    };
    let output = tour().output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "$ azulejo import orders.csv",
        "3 fragments became 1",
        "1 fragment,",
        "sum:tiles",
        "▒",
        "quickstart --keep",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "colours in spite of NO_COLOR");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    tour()
        .args(["--keep", "sample", "--quiet"])
        .assert()
        .success()
        .stderr("");
    assert!(folder.path().join("sample/day2.png").is_file());
    let again = tour().args(["--keep", "sample"]).output().unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("exists"));
}

#[test]
fn the_tour_in_json_names_commands_that_run() {
    let folder = TempDir::new().unwrap();
    let mut quickstart = azulejo(&["quickstart", "--json", "--keep", "sample"]);
    let output = quickstart.current_dir(&folder).output().unwrap();
    let tour: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(tour["sample"], "sample");
    let stops = tour["tour"].as_array().unwrap();
    let commands: Vec<&Json> = stops
        .iter()
        .flat_map(|stop| stop["commands"].as_array().unwrap())
        .collect();
    assert!(stops.len() > 5 && commands.len() > stops.len());
    for words in commands {
        let words: Vec<&str> = words
            .as_array()
            .unwrap()
            .iter()
            .map(|w| w.as_str().unwrap())
            .collect();
        azulejo(&words).current_dir(&folder).assert().success();
    }
}

#[test]
fn objects_are_shown() {
    expect("tree.txt", &stdout("tree azulejo"));
    expect("ls.txt", &stdout("ls azulejo"));
    expect("info_tile.txt", &stdout("info azulejo/tile"));
    expect("info_orders.txt", &stdout("info azulejo/orders"));
    expect("info_group.txt", &stdout("info azulejo"));
    expect("schema_orders.txt", &stdout("schema azulejo/orders"));
    expect("meta_tile.txt", &stdout("meta azulejo/tile"));
    assert_eq!(stdout("meta azulejo/tile title"), "Estrela, four petals\n");
    assert_eq!(json("meta azulejo/tile --json")["size_cm"]["value"], 14.0);
    assert_eq!(json("tree . --json")["children"][0]["kind"], "group");
    assert_eq!(json("ls azulejo --json").as_array().unwrap().len(), 2);
}

#[test]
fn fragments_and_time_travel() {
    let all = json("fragments azulejo/tile --json");
    assert_eq!(all.as_array().unwrap().len(), 3);
    assert_eq!(all[0]["version"], 22);
    assert_eq!(
        all[0]["non_empty_domain"],
        serde_json::json!([[0, 39], [0, 39]])
    );
    let count = |line: &str| json(line).as_array().unwrap().len();
    assert_eq!(count("fragments azulejo/tile --json --at 2024-05-01"), 1);
    assert_eq!(count("fragments azulejo/tile --json --at 2024-05-02"), 2);
    assert_eq!(
        count("fragments azulejo/tile --json --from 2024-05-02 --to 2024-05-02"),
        1
    );
    assert_eq!(
        count("fragments azulejo/tile --json --from 2024-05-03T12:00:00.001"),
        0
    );
    assert_eq!(count("fragments azulejo/tile --json --at 1714564800000"), 1);
    assert_eq!(
        json("info azulejo/tile --json --at 2024-05-02")["fragments"],
        2
    );
}

#[test]
fn a_schema_is_complete_in_json() {
    let schema = json("schema azulejo/orders --json");
    assert_eq!(
        schema["enumerations"][0]["values"],
        serde_json::json!(["white", "sky", "cobalt"])
    );
    assert_eq!(schema["attributes"][3]["nullable"], true);
    assert_eq!(schema["dimensions"][0]["datatype"], "DATETIME_DAY");
    expect("schema_tile.json", &stdout("schema azulejo/tile --json"));
}

#[test]
fn cells_of_a_sparse_array() {
    expect("orders.csv", &stdout("cat azulejo/orders"));
    expect(
        "orders_raw.ndjson",
        &stdout("cat azulejo/orders --raw --range day=2024-05-01:2024-05-04 --json"),
    );
    expect(
        "orders_may_3.txt",
        &stdout("cat azulejo/orders --range day=2024-05-03 --format table"),
    );
    expect(
        "orders_towns.csv",
        &stdout("cat azulejo/orders --range town=Porto: --attrs tiles --limit 5"),
    );
    let condition = "cat azulejo/orders --where 'glaze = \"cobalt\" and tiles > 300 and note is null' --attrs tiles,glaze";
    expect("orders_where.csv", &stdout(condition));
    assert_eq!(
        stdout("cat azulejo/orders --attrs tiles --limit 0"),
        "day,town,tiles\n"
    );
    assert_eq!(
        stdout("cat azulejo/orders --attrs tiles,town --limit 2")
            .lines()
            .next(),
        Some("tiles,town")
    );
    let all = stdout("cat azulejo/orders");
    let mut sorted: Vec<&str> = all.lines().skip(1).collect();
    sorted.sort_unstable();
    for order in ["row", "col", "global", "unordered"] {
        let other = stdout(&format!("cat azulejo/orders --order {order}"));
        let mut lines: Vec<&str> = other.lines().skip(1).collect();
        lines.sort_unstable();
        assert_eq!(lines, sorted, "{order}");
    }
}

#[test]
fn cells_of_a_dense_array() {
    let corner = "cat azulejo/tile --range y=1:2 --range x=1:2 --coords";
    assert_eq!(
        stdout(corner),
        "y,x,colour\n1,1,\"[24, 58, 140]\"\n1,2,\"[24, 58, 140]\"\n2,1,\"[24, 58, 140]\"\n2,2,\"[244, 241, 230]\"\n"
    );
    assert_eq!(
        stdout("cat azulejo/tile --format ndjson --range y=20 --range x=20"),
        "{\"colour\":[232,180,46]}\n"
    );
    assert_eq!(
        stdout("cat azulejo/tile --at 2024-05-01 --range y=20 --range x=20 --json"),
        "{\"colour\":[244,241,230]}\n"
    );
    assert_eq!(stdout("cat azulejo/tile").lines().count(), 1601);
    assert_eq!(
        stdout("cat azulejo/tile --step y=20 --step x=13")
            .lines()
            .count(),
        1 + 2 * 4
    );
    assert_eq!(
        stdout("cat azulejo/tile --range y=0:3 --range y=36:39 --range x=5")
            .lines()
            .count(),
        1 + 8
    );
}

#[test]
fn points() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("points.csv");
    std::fs::write(&file, "x,y\n1,0\n20,20\n").unwrap();
    let line = format!("cat azulejo/tile --points {} --json", file.display());
    assert_eq!(
        stdout(&line),
        "{\"colour\":[24,58,140]}\n{\"colour\":[232,180,46]}\n"
    );
    std::fs::write(&file, "x,y\n1,zero\n").unwrap();
    fails(&line, 2, "line 2");
    fails("cat azulejo/tile --points none.csv", 1, "none.csv");
}

#[test]
fn aggregates() {
    let cells = stdout("cat azulejo/orders").lines().count() - 1;
    assert_eq!(stdout("agg azulejo/orders count"), format!("{cells}\n"));
    let all =
        json("agg azulejo/orders count sum:tiles mean:tiles min:day max:day nulls:note --json");
    let (sum, mean) = (
        all["sum:tiles"].as_f64().unwrap(),
        all["mean:tiles"].as_f64().unwrap(),
    );
    assert!((sum / cells as f64 - mean).abs() < 1e-9);
    assert_eq!(
        (&all["min:day"], &all["max:day"]),
        (&"2024-05-01".into(), &"2024-06-09".into())
    );
    let nulls = stdout("cat azulejo/orders --where 'note is null'")
        .lines()
        .count()
        - 1;
    assert_eq!(all["nulls:note"], nulls);
    assert_eq!(
        stdout("agg azulejo/orders count --where 'note is null'"),
        format!("{nulls}\n")
    );
    assert_eq!(stdout("agg azulejo/tile count --range y=0:1"), "80\n");
    assert_eq!(stdout("agg azulejo/orders max:glaze"), "cobalt\n");
    fails("agg azulejo/orders sum:town", 2, "town");
    fails("agg azulejo/orders middle:tiles", 2, "middle");
}

#[test]
fn exports() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let export = |what: &str, name: &str, options: &str| {
        run(&format!("export azulejo/{what} {} {options}", path(name)))
            .assert()
            .success();
        std::fs::read(path(name)).unwrap()
    };
    let csv = export("orders", "a.csv", "");
    assert_eq!(csv, stdout("cat azulejo/orders").as_bytes());
    assert_eq!(
        export("orders", "a.ndjson", ""),
        stdout("cat azulejo/orders --json").as_bytes()
    );
    assert!(export("orders", "a.parquet", "").starts_with(b"PAR1"));
    // In many batches, the labels stay one dictionary.
    assert!(export("orders", "a.arrow", "--memory 16kB").starts_with(b"ARROW1"));
    let npy = export("tile", "a.npy", "");
    assert!(
        String::from_utf8_lossy(&npy[10..128])
            .contains("'|u1', 'fortran_order': False, 'shape': (40, 40, 3)")
    );
    assert_eq!(
        (npy.len(), &npy[128..131]),
        (128 + 4800, &[24, 58, 140][..])
    );
    let png = png::Decoder::new(std::io::Cursor::new(export("tile", "a.png", "")))
        .read_info()
        .unwrap();
    assert_eq!(
        (png.info().width, png.info().height, png.info().color_type),
        (40, 40, png::ColorType::Rgb)
    );
    let small = png::Decoder::new(std::io::Cursor::new(export(
        "tile",
        "b.png",
        "--step x=4 --range y=10:29",
    )));
    let small = small.read_info().unwrap();
    assert_eq!((small.info().width, small.info().height), (10, 20));

    fails(
        &format!("export azulejo/orders {}", path("a.csv")),
        2,
        "--force",
    );
    run(&format!("export azulejo/tile {} --force", path("a.csv")))
        .assert()
        .success();
    fails(
        &format!("export azulejo/orders {}", path("o.npy")),
        2,
        "sparse",
    );
    fails(
        &format!("export azulejo/tile {} --limit 3", path("o.npy")),
        2,
        "--limit",
    );
    fails(
        &format!("export azulejo/tile {}", path("o.docx")),
        2,
        ".parquet",
    );
    fails(
        &format!("export azulejo/tile {}", path("no/o.csv")),
        1,
        "no",
    );
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 7, "failed exports leave nothing");
}

#[test]
fn errors_name_what_and_say_what_to_do() {
    fails("info nothing", 3, "nothing");
    fails("ls nothing", 3, "nothing");
    fails("tree nothing", 3, "nothing");
    fails("cat azulejo/orders --range when=1:2", 2, "day, town");
    fails("cat azulejo/orders --range day", 2, "DIM=LO:HI");
    fails("cat azulejo/orders --range day=soon", 2, "soon");
    fails("cat azulejo/tile --range y=9:3", 2, "above");
    fails("cat azulejo/tile --range y=0:99", 2, "domain");
    fails("cat azulejo/tile --step y=0", 2, "--step");
    fails("cat azulejo/orders --attrs colour", 2, "tiles");
    fails("cat azulejo/orders --where 'tiles >'", 2, "tiles");
    fails("cat azulejo/orders --memory lots", 2, "512MB");
    fails("cat azulejo/orders --memory 1kB", 1, "--memory");
    fails("cat azulejo/orders --memory 12", 2, "512MB");
    fails("cat azulejo/orders --threads 100000", 2, "1024");
    fails("cat azulejo/orders --step town=2", 2, "town");
    fails("cat azulejo/orders --at 2024-13", 2, "2024-05-01");
    fails("meta azulejo/tile colour", 2, "colour");
    fails("frobnicate", 2, "frobnicate");
    fails("info azulejo/tile --key-file none", 1, "none");
}

#[test]
fn damage_is_told_apart() {
    let folder = TempDir::new().unwrap();
    let copy = folder.path().join("sample");
    unpack(&copy);
    let schemas = copy.join("azulejo/tile/__schema");
    let schema = std::fs::read_dir(schemas)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.is_file())
        .unwrap();
    std::fs::write(schema, b"not a schema").unwrap();
    let output = azulejo(&["info", copy.join("azulejo/tile").to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(4),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_closed_pipe_is_no_error() {
    use std::io::Read;
    use std::process::{Command as Process, Stdio};
    let mut child = Process::new(assert_cmd::cargo::cargo_bin("azulejo"))
        .args(["cat", "azulejo/tile", "--order", "col", "--coords"])
        .current_dir(sample())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Closing the pipe at once leaves most of the cells unread.
    drop(child.stdout.take());
    let status = child.wait().unwrap();
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert!(status.success(), "{status}: {stderr}");
    assert_eq!(stderr, "");
}

#[test]
fn help_has_examples_and_exit_codes() {
    let help = stdout("--help");
    assert!(help.contains("Exit codes") && help.contains("azulejo cat"));
    for command in [
        "info",
        "schema",
        "ls",
        "tree",
        "fragments",
        "meta",
        "cat",
        "export",
        "agg",
    ] {
        assert!(
            stdout(&format!("{command} --help")).contains("Examples:"),
            "{command}"
        );
    }
}
