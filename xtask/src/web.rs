//! The browser: the engine as WebAssembly, without a C compiler, and the package around it.

mod big;
mod demo;
mod fixtures;
mod zarr;

use crate::Outcome;
use crate::cargo::{cargo, program, standard_library};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use wasm_bindgen_cli_support::Bindgen;

const TARGET: &str = "wasm32-unknown-unknown";

/// Bytes of the compressed module, at most, with Arrow and without.
const LARGEST: usize = 1_500_000;
const LARGEST_WITHOUT_ARROW: usize = 1_000_000;

/// Random numbers come from the browser; all browsers since the spring of 2023 know vectors.
const RUSTFLAGS: &str =
    "-D warnings --cfg getrandom_backend=\"wasm_js\" -C target-feature=+simd128";

/// Builds `azulejo-web` for the target, which rustup brings where it is missing, checks that
/// nothing in it is C, and lays the package out in `azulejo-web/pkg`.
pub fn build(root: &Path) -> Outcome {
    standard_library(TARGET)?;
    no_c(root)?;
    module(root, &[])?;
    let package = package(root)?;
    println!("the package is in {}", package.display());
    let site = site(root, &package)?;
    println!("the viewer is in {}", site.display());
    Ok(())
}

/// Compiles the module with these arguments of Cargo's more.
fn module(root: &Path, more: &[&str]) -> Outcome {
    let mut command = cargo();
    command
        .current_dir(root)
        .args(["build", "--locked", "--package", "azulejo-web"])
        .args(["--profile", "web", "--target", TARGET])
        .args(more)
        .env("RUSTFLAGS", RUSTFLAGS)
        .env("CARGO_TARGET_DIR", root.join("target/web"));
    run(&mut command)
}

/// Checks how large the package is without Arrow, where size comes before speed but in the codecs.
/// Takes another build.
pub fn small(root: &Path) -> Outcome {
    standard_library(TARGET)?;
    let smallest = ["--config", "profile.web.opt-level=\"z\""];
    module(root, &[&smallest[..], &["--no-default-features"]].concat())?;
    let folder = root.join("target/web/small");
    copy_files(&root.join("azulejo-web/js"), &folder)?;
    bind(root, &folder)?;
    checked_size(&folder, LARGEST_WITHOUT_ARROW)
}

/// Times the package beside zarrita, on 1 GB of cells behind a server that takes 100 ms to answer.
pub fn bench(root: &Path) -> Outcome {
    let folder = root.join("target/web/large");
    big::write(&folder, true).map_err(|e| e.to_string())?;
    let tests = root.join("azulejo-web/test");
    run(Command::new("npm")
        .current_dir(&tests)
        .args(["ci", "--silent"]))?;
    run(Command::new("node")
        .current_dir(&tests)
        .arg("bench.mjs")
        .arg(folder))
}

/// What only compiles for the target is not seen by other lints.
fn lint(root: &Path) -> Outcome {
    standard_library(TARGET)?;
    run(cargo()
        .current_dir(root)
        .args([
            "clippy",
            "--quiet",
            "--locked",
            "--no-deps",
            "--package",
            "azulejo-web",
        ])
        .args(["--target", TARGET, "--", "-D", "warnings"])
        .env("RUSTFLAGS", RUSTFLAGS)
        .env("CARGO_TARGET_DIR", root.join("target/web")))
}

/// The viewer as a web server would have it: the files in `web/`, and the package beside them.
fn site(root: &Path, package: &Path) -> Result<PathBuf, String> {
    let site = root.join("target/web/site");
    copy_files(&root.join("web"), &site)?;
    copy_files(package, &site.join("azulejo"))?;
    Ok(site)
}

/// Copies the files of a folder into another, which is emptied first.
fn copy_files(from: &Path, to: &Path) -> Outcome {
    let failed = |path: &Path, e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    if to.exists() {
        fs::remove_dir_all(to).map_err(|e| failed(to, &e))?;
    }
    fs::create_dir_all(to).map_err(|e| failed(to, &e))?;
    for file in fs::read_dir(from).map_err(|e| failed(from, &e))? {
        let file = file.map_err(|e| failed(from, &e))?.path();
        if let (true, Some(name)) = (file.is_file(), file.file_name()) {
            fs::copy(&file, to.join(name)).map_err(|e| failed(&file, &e))?;
        }
    }
    Ok(())
}

/// Builds the package and tests it in node, on the packed corpus behind a web server.
pub fn test(root: &Path, pictures: Option<&Path>) -> Outcome {
    lint(root)?;
    build(root)?;
    let arrays = root.join("target/web/arrays");
    fixtures::unfold(&arrays)?;
    let large = root.join("target/web/large");
    big::write(&large, false).map_err(|e| e.to_string())?;
    let program = program(root)?;
    zarr::test(root, &program, &arrays)?;
    let tests = root.join("azulejo-web/test");
    run(Command::new("npm")
        .current_dir(&tests)
        .args(["ci", "--silent"]))?;
    run(Command::new("npm")
        .current_dir(&tests)
        .args(["test"])
        .env("AZULEJO_ARRAYS", &arrays)
        .env("AZULEJO_LARGE", large)
        .env("AZULEJO_PROGRAM", program)
        .envs(pictures.map(|folder| ("AZULEJO_PICTURES", folder)))
        .env("AZULEJO_SITE", root.join("target/web/site")))
}

/// The package: the module, what wasm-bindgen makes around it, and the files in `js/`.
fn package(root: &Path) -> Result<PathBuf, String> {
    let failed = |what: &str, e: &dyn std::fmt::Display| format!("{what}: {e}");
    let sources = root.join("azulejo-web");
    let package = sources.join("pkg");
    copy_files(&sources.join("js"), &package)?;
    bind(root, &package)?;
    for name in ["package.json", "README.md"] {
        fs::copy(sources.join(name), package.join(name)).map_err(|e| failed(name, &e))?;
    }
    checked_size(&package, LARGEST)?;
    Ok(package)
}

/// What wasm-bindgen makes of the module that was compiled last.
fn bind(root: &Path, folder: &Path) -> Outcome {
    let module = root.join(format!("target/web/{TARGET}/web/azulejo_web.wasm"));
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(module)
        .typescript(false)
        .remove_name_section(true)
        .remove_producers_section(true);
    bindgen
        .web(true)
        .and_then(|bindgen| bindgen.generate(folder))
        .map_err(|e| format!("wasm-bindgen: {e:#}"))
}

/// Says how large all of a package is that a browser loads, and checks it.
fn checked_size(folder: &Path, most: usize) -> Outcome {
    let failed = |path: &Path, e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let mut size = 0;
    for file in fs::read_dir(folder).map_err(|e| failed(folder, &e))? {
        let path = file.map_err(|e| failed(folder, &e))?.path();
        if path
            .extension()
            .is_some_and(|end| end == "js" || end == "wasm")
        {
            size += compressed(&fs::read(&path).map_err(|e| failed(&path, &e))?)?;
        }
    }
    println!("the package has {size} bytes with gzip");
    match size <= most {
        true => Ok(()),
        false => Err(format!("the package has more than {most} bytes with gzip")),
    }
}

/// Size with gzip, as servers send it.
fn compressed(bytes: &[u8]) -> Result<usize, String> {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let written = gzip.write_all(bytes).and_then(|()| gzip.finish());
    written
        .map(|out| out.len())
        .map_err(|e| format!("gzip: {e}"))
}

/// Crates that compile C need `cc` to be built.
fn no_c(root: &Path) -> Outcome {
    let tree = output(
        cargo()
            .current_dir(root)
            .args(["tree", "--locked", "--package", "azulejo-web"])
            .args(["--target", TARGET, "--edges", "normal,build"])
            .args(["--prefix", "none", "--format", "{p}"]),
    )?;
    let compiles_c = |line: &&str| {
        let name = line.split(' ').next().unwrap_or_default();
        matches!(name, "cc" | "cmake") || name.ends_with("-sys") && name != "js-sys"
    };
    // Translated to Rust, in spite of its name.
    let is_rust = |line: &&str| line.starts_with("libbz2-rs-sys ");
    match tree.lines().find(|line| compiles_c(line) && !is_rust(line)) {
        Some(line) => Err(format!("{line} is in a build without C")),
        None => Ok(()),
    }
}

fn run(command: &mut Command) -> Outcome {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|e| format!("{name}: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{name} failed: {status}"))
    }
}

fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{name}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!(
            "{name} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        ))
    }
}
