//! `cargo xtask peer`: TileDB-Py's own test suite on our library.
//!
//! The suite's runner lies beside the checkout (`../shared/peer`, or where `AZULEJO_PEER` says): it
//! makes an environment of its own, puts the library in the place of the one that the wheel bundles
//! and writes what each test gave. What the reference gives is in `reference.tsv` beside it.

use crate::{Outcome, capi, reference};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Builds the library, runs the suite and counts. Options: `--debug` (a debug build), `--library
/// FILE` (another one, which is not built); the rest goes to the runner (`-k EXPR`, `-n WORKERS`,
/// `--venv DIR`).
pub fn run(root: &Path, options: &[&str]) -> Outcome {
    let runner = capi::beside(root, "AZULEJO_PEER", "peer", "run-suite")?;
    let reference = read(&capi::beside(
        root,
        "AZULEJO_PEER",
        "peer",
        "reference.tsv",
    )?)?;
    let (mut rest, mut debug, mut library) = (Vec::new(), false, None);
    let mut words = options.iter();
    while let Some(word) = words.next() {
        match *word {
            "--debug" => debug = true,
            "--library" => library = Some(words.next().ok_or("--library wants a file")?),
            other => rest.push(other),
        }
    }
    let library = match library {
        Some(file) => file.into(),
        None => capi::build(root, debug)?,
    };
    let out = std::env::temp_dir().join(format!("azulejo-peer-{}.tsv", std::process::id()));
    let python = reference::system_python();
    println!("the suite runs on {} ..", library.display());
    // It fails if a test does; what counts is what it writes.
    let status = Command::new(&python)
        .arg(&runner)
        .arg(&library)
        .arg("--out")
        .arg(&out)
        .args(&rest)
        .status();
    let status = status.map_err(|e| format!("cannot start {python}: {e}"))?;
    if !out.exists() {
        return Err(format!("the suite did not run to its end ({status})"));
    }
    let got = read(&out);
    let _ = std::fs::remove_file(&out);
    let counted = count(&reference, &got?, rest.contains(&"-k"));
    println!("{counted}");
    if counted.failed == 0 && counted.missing == 0 && counted.passed > 0 {
        Ok(())
    } else {
        Err("not every test that the reference passes has passed".into())
    }
}

/// How the tests that the reference passes came out.
#[derive(Debug, PartialEq, Eq)]
pub struct Counted {
    pub passed: usize,
    pub failed: usize,
    pub missing: usize,
    pub of: usize,
}

impl std::fmt::Display for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            passed,
            failed,
            missing,
            of,
        } = self;
        write!(
            f,
            "of the {of} tests that the reference passes: {passed} passed, {failed} failed, {missing} missing"
        )
    }
}

/// Names of tests and what they gave.
fn read(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(parse(&text))
}

/// Names of tests and what they gave, a line each, with a tab between.
pub fn parse(text: &str) -> BTreeMap<String, String> {
    let rows = text.lines().filter_map(|line| line.split_once('\t'));
    rows.map(|(name, outcome)| (name.to_owned(), outcome.trim().to_owned()))
        .collect()
}

/// Counts; of a part of the suite, tests that did not run are none of it.
pub fn count(
    reference: &BTreeMap<String, String>,
    got: &BTreeMap<String, String>,
    part: bool,
) -> Counted {
    let mut counted = Counted {
        passed: 0,
        failed: 0,
        missing: 0,
        of: 0,
    };
    for name in reference
        .iter()
        .filter(|(_, outcome)| *outcome == "passed")
        .map(|(name, _)| name)
    {
        match got.get(name).map(String::as_str) {
            Some("passed") => counted.passed += 1,
            Some(_) => counted.failed += 1,
            None if part => continue,
            None => counted.missing += 1,
        }
        counted.of += 1;
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_against_the_reference() {
        let reference = parse("a\tpassed\nb\tpassed\nc\tskipped\nd\tpassed\n");
        let got = parse("a\tpassed\nb\tfailure\nc\tfailure\n");
        let all = count(&reference, &got, false);
        assert_eq!(
            all,
            Counted {
                passed: 1,
                failed: 1,
                missing: 1,
                of: 3
            }
        );
        assert_eq!(
            all.to_string(),
            "of the 3 tests that the reference passes: 1 passed, 1 failed, 1 missing"
        );
        assert_eq!(
            count(&reference, &got, true),
            Counted {
                passed: 1,
                failed: 1,
                missing: 0,
                of: 2
            }
        );
    }
}
