//! `cargo xtask clients`: the tests of packages that use libtiledb, on the reference and on our C
//! library, test by test.
//!
//! Packages come from PyPI as wheels; our library lies in the place of the one that they bundle, in
//! a copy of them. Tests come out of the source package where it has them, by its version and hash,
//! and else out of a checkout that the caller has.

use crate::capi::Told;
use crate::{Outcome, as_tiledb, peer, reference, root, wheel};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a client's tests are.
enum Tests {
    /// In its source package: the folder below the package's.
    Source {
        package: &'static str,
        version: &'static str,
        sha256: &'static str,
        folder: &'static str,
    },
    /// In a checkout, `--from DIR` having it at `DIR/NAME`.
    Checkout { folder: &'static str },
}

struct Client {
    name: &'static str,
    packages: &'static [&'static str],
    tests: Tests,
}

const PYTEST: [&str; 3] = [
    "pytest==9.2.0",
    "pytest-timeout==2.4.0",
    "pytest-xdist==3.8.0",
];

const CLIENTS: [Client; 5] = [
    Client {
        name: "bioimg",
        packages: &[
            "tiledb-bioimg[full]==0.3.10",
            "tiledb==0.36.1",
            "numpy==2.4.6",
        ],
        tests: Tests::Source {
            package: "tiledb-bioimg",
            version: "0.3.10",
            sha256: "c0f8dcf2263adb667be316aceeb140c93bcb44a42911be1e48aad7143969939f",
            folder: "tests",
        },
    },
    Client {
        name: "segy",
        packages: &[
            "tiledb-segy==0.3.1",
            "tiledb==0.36.1",
            "numpy==2.4.6",
            "filelock",
        ],
        tests: Tests::Checkout { folder: "tests" },
    },
    Client {
        name: "vector-search",
        packages: &[
            "tiledb-vector-search==0.16.0",
            "tiledb==0.36.1",
            // It calls `in1d`, which later ones do not have.
            "numpy==2.2.6",
        ],
        tests: Tests::Checkout {
            folder: "apis/python/test",
        },
    },
    Client {
        name: "soma",
        packages: &[
            "tiledbsoma==2.3.0",
            "typeguard==4.4.2",
            "hypothesis",
            "psutil",
            "deepdiff",
            "sparse",
            "dask",
        ],
        tests: Tests::Checkout {
            folder: "apis/python/tests",
        },
    },
    Client {
        name: "cf",
        packages: &[
            "tiledb-cf==0.9.1",
            "tiledb==0.32.5",
            "xarray==2024.11.0",
            "numpy==2.2.6",
            "netCDF4",
            "dask",
        ],
        tests: Tests::Checkout { folder: "tests" },
    },
];

/// What a client's tests run on.
#[derive(Clone, Copy)]
enum Engine<'a> {
    /// The library that its package brings.
    Theirs,
    /// Our C library in the place of it.
    Library(&'a Path),
    /// Our wheel beside the untouched package, which gets its engine by `azulejo_db.as_tiledb`.
    Wheel(&'a Path),
}

/// Runs a client's tests, which a checkout `DIR/NAME` has, on the library that the package brings and
/// on our wheel (see [`crate::as_tiledb`]).
pub fn beside_wheel(name: &str, from: &Path, built: &Path) -> Outcome {
    let client = CLIENTS.iter().find(|client| client.name == name);
    let client = client.ok_or_else(|| format!("no client is called {name}"))?;
    let tests = client.tests(Some(from))?;
    let tests = tests.ok_or_else(|| format!("{}: no checkout in {name}", from.display()))?;
    let (line, differ) = client.compared(&tests, Engine::Wheel(built))?;
    println!("{line}");
    match differ {
        Some(0) => Ok(()),
        Some(n) => Err(format!("{n} tests pass on the reference alone")),
        None => Err("no test passes on the reference".into()),
    }
}

/// Runs the named clients, or all. Options: `--from DIR` (checkouts), `--library FILE` (one that
/// is not built first).
pub fn run(options: &[&str]) -> Outcome {
    let told = Told::parse(options)?;
    let known = |name: &&&str| !CLIENTS.iter().any(|client| client.name == **name);
    if let Some(unknown) = told.names.iter().find(known) {
        return Err(format!("no client is called {unknown}"));
    }
    let library = told.library(&root())?;
    let (mut table, mut differ, mut idle) = (String::new(), 0, false);
    for client in CLIENTS
        .iter()
        .filter(|c| told.names.is_empty() || told.names.contains(&c.name))
    {
        let line = match client.tests(told.from.as_deref())? {
            None => format!(
                "{:14} passed over: --from DIR with a checkout in DIR/{0}",
                client.name
            ),
            Some(tests) => {
                let (line, found) = client.compared(&tests, Engine::Library(&library))?;
                differ += found.unwrap_or(0);
                idle |= found.is_none();
                line
            }
        };
        println!("{line}");
        table = format!("{table}{line}\n");
    }
    println!("\n{table}");
    match differ {
        0 if idle => Err("no test of a suite passes on the reference".into()),
        0 => Ok(()),
        n => Err(format!("{n} tests pass on the reference alone")),
    }
}

impl Client {
    fn folder(&self) -> PathBuf {
        root().join("target/clients").join(self.name)
    }

    /// The folder of its tests; `None` if there is no checkout.
    fn tests(&self, from: Option<&Path>) -> Result<Option<PathBuf>, String> {
        let (package, version, sha256, folder) = match &self.tests {
            Tests::Checkout { folder } => {
                let place = from.map(|from| from.join(self.name).join(folder));
                return Ok(place.filter(|place| place.is_dir()));
            }
            Tests::Source {
                package,
                version,
                sha256,
                folder,
            } => (*package, *version, *sha256, *folder),
        };
        let place = self.folder().join("source");
        let unpacked = place.join(format!("{}-{version}", package.replace('-', "_")));
        if !unpacked.is_dir() {
            std::fs::create_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
            let wanted = place.join("wanted.txt");
            std::fs::write(
                &wanted,
                format!("{package}=={version} --hash=sha256:{sha256}\n"),
            )
            .map_err(|e| format!("{}: {e}", wanted.display()))?;
            let python = self.environment()?;
            reference::run(
                Command::new(&python)
                    .current_dir(&place)
                    .args([
                        "-m",
                        "pip",
                        "download",
                        "--quiet",
                        "--disable-pip-version-check",
                    ])
                    .args(["--no-deps", "--require-hashes", "--no-binary", package])
                    .args(["-r", "wanted.txt"]),
            )?;
            let archive = format!("{}-{version}.tar.gz", package.replace('-', "_"));
            reference::run(
                Command::new("tar")
                    .current_dir(&place)
                    .args(["xzf", &archive]),
            )?;
        }
        Ok(Some(unpacked.join(folder)))
    }

    /// The interpreter of its environment, with its packages.
    fn environment(&self) -> Result<PathBuf, String> {
        let python = wheel::environment(&self.folder().join("venv"))?;
        wheel::pip(&python, &[self.packages, PYTEST.as_slice()].concat())?;
        Ok(python)
    }

    /// Runs the tests on the bundled library and on ours: what is said of that, and how many pass on
    /// the bundled one alone; `None` if none does there.
    fn compared(&self, tests: &Path, ours: Engine<'_>) -> Result<(String, Option<usize>), String> {
        let theirs = self.suite(tests, Engine::Theirs)?;
        let ours = self.suite(tests, ours)?;
        let counted = peer::count(&theirs, &ours, false);
        let failing = (theirs.iter())
            .filter(|(name, outcome)| *outcome == "passed" && ours.get(*name) != Some(*outcome));
        let failing: String = failing.map(|(name, _)| format!("\n    {name}")).collect();
        let differ = (counted.of > 0).then_some(counted.failed + counted.missing);
        Ok((format!("{:14} {counted}{failing}", self.name), differ))
    }

    /// Runs the tests and says what came of each.
    fn suite(&self, tests: &Path, engine: Engine<'_>) -> Result<BTreeMap<String, String>, String> {
        let python = self.environment()?;
        let (on, library) = match engine {
            Engine::Theirs => ("reference", None),
            Engine::Library(library) => ("ours", Some(library)),
            Engine::Wheel(built) => {
                let built = built.display().to_string();
                wheel::pip(&python, &["--force-reinstall", "--no-deps", &built])?;
                ("as-tiledb", None)
            }
        };
        let work = self.folder().join(on);
        let _ = std::fs::remove_dir_all(&work);
        let packages = work.join("packages");
        for folder in [&packages, &work.join("tmp"), &work.join("home")] {
            std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        let site = output(Command::new(&python).args([
            "-c",
            "import sysconfig; print(sysconfig.get_path('platlib'))",
        ]))?;
        for entry in entries(Path::new(site.trim()))? {
            let name = entry
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            // TileDB-Py's tests import its examples.
            if name.starts_with("tiledb") || ["examples", "external"].contains(&name.as_str()) {
                place(&entry, &packages.join(&name), library)?;
            }
        }
        println!("{} on {on} ..", self.name);
        let report = work.join("junit.xml");
        let log = work.join("log.txt");
        let file = std::fs::File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let errors = file.try_clone().map_err(|e| e.to_string())?;
        let mut command = Command::new(&python);
        if matches!(engine, Engine::Wheel(_)) {
            command.env(as_tiledb::SWITCH, "1");
        }
        // It fails if a test does; what counts is the report.
        let status = command
            .current_dir(tests.parent().unwrap_or(tests))
            .env("PYTHONPATH", &packages)
            .env("TMPDIR", work.join("tmp"))
            .env("HOME", work.join("home"))
            .args([
                "-m",
                "pytest",
                "--quiet",
                "-p",
                "no:cacheprovider",
                "--timeout=600",
            ])
            .args(["--continue-on-collection-errors", "--maxfail=100000"])
            // One worker, so that a test that ends the process does not end the suite.
            .args(["-n", "1", "--max-worker-restart=1000"])
            .arg(format!("--junitxml={}", report.display()))
            .arg(tests)
            .stdout(file)
            .stderr(errors)
            .status()
            .map_err(|e| format!("cannot start {}: {e}", python.display()))?;
        let _ = std::fs::remove_dir_all(work.join("tmp"));
        if !report.exists() {
            return Err(format!(
                "{} did not run to its end ({status}): {}",
                self.name,
                log.display()
            ));
        }
        let script = root().join("xtask/python/outcomes.py");
        output(Command::new(&python).arg(script).arg(&report)).map(|text| peer::parse(&text))
    }
}

/// Copies a package by hard links, a library in the place of each libtiledb.
fn place(from: &Path, to: &Path, library: Option<&Path>) -> Outcome {
    let fail = |e: std::io::Error| format!("{}: {e}", to.display());
    if from.is_dir() {
        std::fs::create_dir_all(to).map_err(fail)?;
        for entry in entries(from)? {
            place(
                &entry,
                &to.join(entry.file_name().unwrap_or_default()),
                library,
            )?;
        }
        return Ok(());
    }
    let name = from.file_name().unwrap_or_default().to_string_lossy();
    match library.filter(|_| is_libtiledb(&name)) {
        Some(library) => std::fs::copy(library, to).map(|_| ()).map_err(fail),
        None => std::fs::hard_link(from, to).map_err(fail),
    }
}

/// Whether a file is libtiledb: its name may have a hash and a version.
fn is_libtiledb(name: &str) -> bool {
    let Some((stem, version)) = name.split_once(".so") else {
        return false;
    };
    let hash = stem
        .strip_prefix("libtiledb")
        .map(|rest| rest.strip_prefix('-').unwrap_or(rest));
    hash.is_some_and(|hash| hash.chars().all(|c| c.is_ascii_hexdigit()))
        && version.chars().all(|c| c == '.' || c.is_ascii_digit())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let found = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths: Vec<PathBuf> = found.filter_map(|e| e.ok().map(|e| e.path())).collect();
    paths.sort();
    Ok(paths)
}

fn output(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(format!(
            "{command:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::is_libtiledb;

    #[test]
    fn bundled_libraries_are_known_by_their_names() {
        for name in [
            "libtiledb-edd2b82f.so.2.30",
            "libtiledb.so.2.30",
            "libtiledb.so",
        ] {
            assert!(is_libtiledb(name), "{name}");
        }
        for name in [
            "libtiledb.cpython-311-x86_64-linux-gnu.so",
            "libtiledbsoma.so",
            "libtiledbsoma-782f5c19.so",
            "libtiledb.py",
        ] {
            assert!(!is_libtiledb(name), "{name}");
        }
    }
}
