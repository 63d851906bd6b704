//! The shared library of `azulejo-capi`: building it, installing it, comparing its times with the
//! reference's.

use crate::cargo::{cargo, target, whole_workspace};
use crate::{Outcome, reference};
use std::path::{Path, PathBuf};
use std::process::Command;

const PKG_CONFIG: &str = "azulejo-capi/azulejo-tiledb.pc.in";
const HEADER: &str = "include/azulejo_tiledb.h";
/// What programs linked to libtiledb 2.30 look for.
const SONAME: &str = "libtiledb.so.2.30";

/// Builds the library as it is handed out and returns where it lies. `debug` builds are for trying
/// things out: they have the features that the tests of the workspace have, for which all is built
/// anyway.
pub fn build(root: &Path, debug: bool) -> Result<PathBuf, String> {
    let mut command = match debug {
        true => whole_workspace(root, "build"),
        false => cargo(),
    };
    reference::run(match debug {
        true => command.args(["--exclude=azulejo-python", "--lib"]),
        // For the library alone: what other crates link to as well is not optimised as one.
        false => command.current_dir(root).args([
            "rustc",
            "--package=azulejo-capi",
            "--profile=dist",
            "--lib",
            "--crate-type=cdylib",
        ]),
    })?;
    let target = target(root);
    let name = format!(
        "{}azulejo_capi{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    );
    Ok(target.join(if debug { "debug" } else { "dist" }).join(name))
}

/// What tasks are told that run others' programs on the library: names, and options `--from DIR`
/// (checkouts) and `--library FILE` (one that is not built first).
pub struct Told<'a> {
    /// What is run; all where there are none.
    pub names: Vec<&'a str>,
    /// Where checkouts are.
    pub from: Option<PathBuf>,
    library: Option<PathBuf>,
}

impl<'a> Told<'a> {
    /// Reads the words of a command.
    pub fn parse(options: &[&'a str]) -> Result<Self, String> {
        let (mut names, mut from, mut library) = (Vec::new(), None, None);
        let mut words = options.iter();
        while let Some(word) = words.next() {
            match *word {
                "--from" => from = Some(words.next().ok_or("--from wants a folder")?.into()),
                "--library" => library = Some(words.next().ok_or("--library wants a file")?.into()),
                name => names.push(name),
            }
        }
        Ok(Self {
            names,
            from,
            library,
        })
    }

    /// The library that was named, or else the one that is handed out.
    pub fn library(&self, root: &Path) -> Result<PathBuf, String> {
        match &self.library {
            Some(file) => Ok(file.clone()),
            None => build(root, false),
        }
    }
}

/// Where a tool of the folder beside the checkout lies: below `variable`, or below
/// `../shared/folder`.
pub fn beside(root: &Path, variable: &str, folder: &str, tool: &str) -> Result<PathBuf, String> {
    let place = std::env::var_os(variable)
        .map_or_else(|| root.join("../shared").join(folder), PathBuf::from);
    let path = place.join(tool);
    if path.is_file() {
        return Ok(path);
    }
    Err(format!(
        "{} is not there: set {variable} to the folder that holds {tool}",
        path.display()
    ))
}

/// Installs the library, its header and its pkg-config file below a prefix, stripped of symbols
/// that nobody links to.
pub fn install(root: &Path, prefix: &Path) -> Outcome {
    let library = build(root, false)?;
    let write = |path: &Path, what: &str| format!("{}: cannot be {what}", path.display());
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    let pkg_config = lib.join("pkgconfig");
    for folder in [&pkg_config, &include] {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", write(folder, "made")))?;
    }
    let copy = |from: &Path, to: &Path| {
        std::fs::copy(from, to)
            .map(|_| ())
            .map_err(|e| format!("{}: {e}", write(to, "written")))
    };
    let installed = lib.join(SONAME);
    copy(&library, &installed)?;
    // Without a `strip`, the library is only larger.
    let stripped = Command::new("strip")
        .arg("--strip-unneeded")
        .arg(&installed)
        .status();
    if !stripped.is_ok_and(|status| status.success()) {
        println!("no strip: {} keeps its symbols", installed.display());
    }
    for name in ["libtiledb.so", "libazulejo_tiledb.so"] {
        let link = lib.join(name);
        let _ = std::fs::remove_file(&link);
        #[cfg(unix)]
        std::os::unix::fs::symlink(SONAME, &link)
            .map_err(|e| format!("{}: {e}", write(&link, "made")))?;
        #[cfg(not(unix))]
        copy(&installed, &link)?;
    }
    copy(&root.join(HEADER), &include.join("azulejo_tiledb.h"))?;
    let template =
        std::fs::read_to_string(root.join(PKG_CONFIG)).map_err(|e| format!("{PKG_CONFIG}: {e}"))?;
    let absolute = std::path::absolute(prefix).map_err(|e| e.to_string())?;
    let text = template
        .replace("@PREFIX@", &absolute.display().to_string())
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    let path = pkg_config.join("azulejo-tiledb.pc");
    std::fs::write(&path, text).map_err(|e| format!("{}: {e}", write(&path, "written")))?;
    println!("installed below {}", absolute.display());
    Ok(())
}

/// Runs one C program over our library and the reference's, in turn; what follows goes to the
/// program that compares.
pub fn versus(root: &Path, reference_library: &Path, rest: &[&str]) -> Outcome {
    let compare = beside(root, "AZULEJO_BENCH", "bench", "compare")?;
    let ours = build(root, false)?;
    reference::run(
        Command::new(reference::system_python())
            .arg(compare)
            .arg(ours)
            .arg(reference_library)
            .args(rest),
    )
}

/// Draws how cost grows with cells, tiles, fragments and threads, in both libraries.
pub fn growth(root: &Path, reference_library: &Path) -> Outcome {
    let ours = build(root, false)?;
    let script = root.join("xtask/python/versus_growth.py");
    let (work, out) = (root.join("target/versus-growth"), root.join("docs/images"));
    std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let python = reference::python()?;
    reference::run(
        Command::new(python)
            .arg(script)
            .arg(ours)
            .arg(reference_library)
            .arg(work)
            .arg(out),
    )
}
