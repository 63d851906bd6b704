//! `azulejo as-tiledb`: a program that was made for TileDB, on this library.
//!
//! The loader finds a library that is loaded already by the names that it was loaded by. So ours is
//! loaded first, by each name by which the program, or a Python package of its, asks for libtiledb.
//! No file of theirs is touched.

use crate::args::AsTiledbArgs;
use crate::error::{CliError, Result};
use crate::session::Session;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name by which programs ask for it that were built against it.
const SONAME: &str = "libtiledb.so.2.30";
/// Names of our library's file, as it is installed and as it is built.
const FILES: [&str; 3] = [SONAME, "libazulejo_tiledb.so", "libazulejo_capi.so"];
/// The variable that names the file.
const VARIABLE: &str = "AZULEJO_LIBRARY";
/// Prints the folders in which Python looks for packages.
const PYTHON_PATH: &str = "import sys; print(chr(10).join(sys.path))";

/// Runs the command.
pub fn run(_: &mut Session, args: &AsTiledbArgs) -> Result<()> {
    if !cfg!(target_os = "linux") {
        return Err(CliError::Format(
            "as-tiledb needs the loader of Linux".to_owned(),
        ));
    }
    let library = library(args.library.as_deref())?;
    let Some((program, rest)) = args.command.split_first() else {
        return Err(CliError::usage("name a program"));
    };
    let names = names_asked_for(Path::new(program));
    let folder = tempfile::Builder::new().prefix("azulejo-").tempdir();
    let folder =
        folder.map_err(|e| CliError::io("create a folder in", &std::env::temp_dir(), e))?;
    for name in &names {
        let link = folder.path().join(name);
        link_to(&library, &link).map_err(|e| CliError::io("create", &link, e))?;
    }
    let preload = names.iter().map(OsString::from).collect::<Vec<_>>();
    let mut command = Command::new(program);
    command
        .args(rest)
        .env("LD_PRELOAD", before(preload, "LD_PRELOAD"))
        .env(
            "LD_LIBRARY_PATH",
            before(vec![folder.path().into()], "LD_LIBRARY_PATH"),
        );
    let status = command
        .status()
        .map_err(|e| CliError::io("run", Path::new(program), e))?;
    match status.code() {
        Some(0) => Ok(()),
        code => Err(CliError::Ended(
            code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
        )),
    }
}

/// What comes before a variable's own value, with colons between.
fn before(mut first: Vec<OsString>, variable: &str) -> OsString {
    first.extend(std::env::var_os(variable).filter(|own| !own.is_empty()));
    first.join(OsStr::new(":"))
}

/// The library that was named, or the one that lies beside this program.
fn library(named: Option<&Path>) -> Result<PathBuf> {
    let named = named.map(Path::to_path_buf);
    if let Some(file) = named.or_else(|| std::env::var_os(VARIABLE).map(PathBuf::from)) {
        // The loader passes over in silence what is not there.
        return file
            .canonicalize()
            .map_err(|e| CliError::io("find", &file, e));
    }
    let here = std::env::current_exe().and_then(|program| program.canonicalize());
    let here = here.map_err(|e| CliError::io("find", Path::new("this program"), e))?;
    let folder = here.parent().unwrap_or(Path::new("."));
    let folders = [folder.to_path_buf(), folder.join("../lib")];
    let mut files = folders
        .iter()
        .flat_map(|folder| FILES.iter().map(move |name| folder.join(name)));
    let found = files.find_map(|file| file.canonicalize().ok());
    found.ok_or_else(|| {
        CliError::usage(format!(
            "there is no library beside {}: `cargo xtask install-capi FOLDER` makes one, --library FILE or {VARIABLE} \
             names it",
            here.display()
        ))
    })
}

/// The names by which a program may ask for libtiledb: that of the library, and those of the copies
/// that Python packages bring, `tiledb.libs/libtiledb-0123abcd.so.2.30`.
fn names_asked_for(program: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::from([SONAME.to_owned()]);
    let Some(python) = python_of(program) else {
        return names;
    };
    let Ok(output) = Command::new(python).args(["-c", PYTHON_PATH]).output() else {
        return names;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let inside = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect()
    };
    let ends = |path: &Path| path.extension().is_some_and(|end| end == "libs");
    let bundles = text.lines().map(Path::new).flat_map(inside);
    for file in bundles
        .filter(|path| ends(path))
        .flat_map(|path| inside(&path))
    {
        let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if is_libtiledb(name) {
            names.insert(name.to_owned());
        }
    }
    names
}

/// `libtiledb.so.2.30`, `libtiledb-0123abcd.so.2.30`.
fn is_libtiledb(name: &str) -> bool {
    name.strip_prefix("libtiledb").is_some_and(|rest| {
        let hash = rest.split_once(".so").map(|(hash, _)| hash);
        hash.is_some_and(|hash| {
            let digits = hash.strip_prefix('-').unwrap_or(hash);
            digits.chars().all(|c| c.is_ascii_hexdigit())
        })
    })
}

/// The interpreter that runs a program: the program itself, or what its first line names.
fn python_of(program: &Path) -> Option<OsString> {
    let is_python = |path: &Path| {
        let name = path.file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| name.starts_with("python"))
    };
    if is_python(program) {
        return Some(program.into());
    }
    let file = match program.components().count() {
        1 => std::env::split_paths(&std::env::var_os("PATH")?)
            .map(|folder| folder.join(program))
            .find(|file| file.is_file())?,
        _ => program.to_path_buf(),
    };
    let mut start = Vec::new();
    let opened = std::fs::File::open(file).ok()?;
    opened.take(256).read_to_end(&mut start).ok()?;
    let start = String::from_utf8_lossy(&start).into_owned();
    let mut words = start.strip_prefix("#!")?.lines().next()?.split_whitespace();
    let interpreter = words.next()?;
    let interpreter = match interpreter.ends_with("/env") {
        true => words.next()?,
        false => interpreter,
    };
    is_python(Path::new(interpreter)).then(|| interpreter.into())
}

#[cfg(unix)]
fn link_to(file: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(file, link)
}

#[cfg(not(unix))]
fn link_to(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_library_are_known() {
        for name in [
            "libtiledb.so",
            "libtiledb.so.2.30",
            "libtiledb-edd2b82f.so.2.30",
        ] {
            assert!(is_libtiledb(name), "{name}");
        }
        for name in ["libtiledbsoma.so", "libtiledb.a", "libtile.so", "tiledb.so"] {
            assert!(!is_libtiledb(name), "{name}");
        }
    }
}
