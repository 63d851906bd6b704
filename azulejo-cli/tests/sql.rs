//! `azulejo sql`.
#![cfg(feature = "sql")]

use assert_cmd::Command;
use std::path::Path;

fn azulejo(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("azulejo").expect("the program");
    command.current_dir(folder);
    command
}

fn output(command: &mut Command) -> (String, String) {
    let output = command.output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

/// How many streams of Arrow follow each other: each ends with a mark and a length of zero.
fn streams(bytes: &[u8]) -> usize {
    let end = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    bytes.windows(end.len()).filter(|at| *at == end).count()
}

#[test]
fn queries_over_arrays_catalogs_and_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("cells.csv"), "x,v\n1,10\n2,\n5,50\n").expect("a file");
    azulejo(folder)
        .args([
            "import",
            "cells.csv",
            "data/cells",
            "--dims",
            "x",
            "--quiet",
        ])
        .assert()
        .success();
    let run = |args: &[&str]| output(azulejo(folder).arg("sql").args(args));

    let (rows, errors) = run(&["SELECT x, v FROM 'data/cells' WHERE x > 1 ORDER BY x"]);
    assert_eq!(rows, "x,v\n2,\n5,50\n", "{errors}");
    let (rows, _) = run(&["SELECT sum(v) AS s FROM 'data/cells'", "--format", "ndjson"]);
    assert_eq!(rows, "{\"s\":60}\n");
    let (rows, _) = run(&["SELECT max(v) AS m FROM 'data/cells'", "--format", "table"]);
    assert!(
        rows.contains('m') && rows.contains("50") && !rows.contains(','),
        "{rows}"
    );
    let joined = "SELECT count(*) AS n FROM T JOIN c.public.cells AS u USING (x) JOIN 'cells.csv' AS f USING (x)";
    let (rows, errors) = run(&["--table", "T=data/cells", "--catalog", "c=data", joined]);
    assert_eq!(rows, "n\n3\n", "{errors}");
    let (arrow, _) = {
        let output = azulejo(folder)
            .args(["sql", "SELECT 1", "--format", "arrow"])
            .output();
        (output.expect("it runs").stdout, ())
    };
    assert!(arrow.starts_with(&[0xff; 4]));
    // What has no columns has no header, before which readers of streams would end.
    let view = "CREATE VIEW one AS SELECT 1 AS a; SELECT a FROM one";
    for (format, alone) in [("csv", b"a\n1\n".to_vec()), ("arrow", arrow)] {
        let output = azulejo(folder)
            .args(["sql", &view.replace("one", format), "--format", format])
            .output()
            .expect("it runs");
        match format {
            "csv" => assert_eq!(output.stdout, alone),
            _ => assert_eq!(streams(&output.stdout), streams(&alone)),
        }
    }
    std::fs::write(folder.join("bom.sql"), "\u{feff}SELECT 1 AS a;\r\n").expect("a file");
    assert_eq!(run(&["-f", "bom.sql"]).0, "a\n1\n");

    // Several statements, from a file and from standard input.
    std::fs::write(
        folder.join("q.sql"),
        "CREATE VIEW w AS SELECT x FROM 'data/cells'; SELECT count(*) AS n FROM w;",
    )
    .expect("a file");
    assert!(run(&["-f", "q.sql"]).0.ends_with("n\n3\n"));
    let (rows, _) = output(azulejo(folder).arg("sql").write_stdin("SELECT 2 AS two;\n"));
    assert_eq!(rows, "two\n2\n");

    for (query, words) in [
        ("SELECT nothing FROM 'data/cells'", "nothing"),
        ("SELEC 1", "SELEC"),
        ("SELECT * FROM 'data/none'", "none"),
    ] {
        let (rows, errors) = run(&[query]);
        assert!(
            rows.is_empty() && errors.contains(words),
            "{query}: {rows} {errors}"
        );
    }
}

/// Arrays of imports are changed by their paths; one that cannot be says how to make one that can.
#[test]
fn imports_are_changed_by_their_paths() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("cells.csv"), "x,v\n1,10\n2,20\n5,50\n9,90\n").expect("a file");
    for (array, options) in [
        ("rows", &[][..]),
        ("many", &["--dims", "x"]),
        ("one", &["--dims", "x", "--unique"]),
    ] {
        let import = ["import", "cells.csv", array, "--quiet"];
        let mut command = azulejo(folder);
        command.args(import).args(options).assert().success();
    }
    let run = |query: &str| output(azulejo(folder).args(["sql", query]));
    let all = |array: &str| run(&format!("SELECT x, v FROM '{array}' ORDER BY x")).0;
    let before = "x,v\n1,10\n2,20\n5,50\n9,90\n";
    let update = |array: &str| {
        run(&format!(
            "UPDATE '{array}' SET v = v + 1 WHERE v IN (10, 50)"
        ))
    };
    let (_, errors) = update("many");
    assert!(
        errors.contains("azulejo import --dims .. --unique"),
        "{errors}"
    );
    assert_eq!(all("many"), before);
    // Without dimensions an import is dense: two cells apart are two boxes.
    assert_eq!(update("rows").0, "count\n2\n");
    assert_eq!(all("rows"), "x,v\n1,11\n2,20\n5,51\n9,90\n");
    let path = folder.join("one").display().to_string();
    for change in [
        format!("UPDATE '{path}' SET v = v + 1 WHERE v IN (10, 50)"),
        "DELETE FROM 'one' WHERE x = 9".to_owned(),
        "INSERT INTO 'one' VALUES (3, 30)".to_owned(),
    ] {
        let (rows, errors) = run(&change);
        assert!(rows.starts_with("count\n"), "{change}: {rows}{errors}");
    }
    assert_eq!(all("one"), "x,v\n1,11\n2,20\n3,30\n5,51\n");
}

/// The join makes rows for years without ever looking whether somebody still wants them.
#[cfg(unix)]
#[test]
fn a_query_that_goes_on_for_ever_is_interrupted() {
    let query = "SELECT sum(a.value * b.value) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b";
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_azulejo"))
        .args(["sql", query])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("it runs");
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(child.try_wait().expect("it can be asked").is_none());
    let killed = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.expect("a signal").success());
    let ended = (0..600).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        child.try_wait().expect("it can be asked")
    });
    let _ = child.kill();
    assert_eq!(ended.and_then(|status| status.code()), Some(130));
}

/// A statement that keeps the parser busy for a minute is no reason not to end.
#[cfg(unix)]
#[test]
fn the_program_ends_while_a_statement_is_read() {
    use std::process::Command;
    use std::time::{Duration, Instant};
    let folder = tempfile::tempdir().expect("a folder");
    let (open, close) = ("NOT (".repeat(24), ")".repeat(24));
    let text = format!("SELECT {open}true true{close} -- {}", "x".repeat(900_000));
    std::fs::write(folder.path().join("wrong.sql"), text).expect("a file");
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("azulejo"))
        .args(["sql", "-f", "wrong.sql"])
        .current_dir(folder.path())
        .spawn()
        .expect("it starts");
    std::thread::sleep(Duration::from_secs(2));
    let begun = Instant::now();
    let told = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(told.expect("kill").success());
    let ended = child.wait().expect("it ends");
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(ended.code(), Some(130));
}
