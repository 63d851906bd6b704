//! The commit that is built, for `--version`; and with the feature `view` the viewer's files, which
//! `cargo xtask web` has made, into the program.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=AZULEJO_COMMIT");
    if env::var_os("AZULEJO_COMMIT").is_none()
        && let Some(commit) = commit()
    {
        println!("cargo::rustc-env=AZULEJO_COMMIT={commit}");
    }
    if env::var_os("CARGO_FEATURE_VIEW").is_none() {
        return Ok(());
    }
    println!("cargo::rerun-if-env-changed=AZULEJO_SITE");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let site =
        env::var_os("AZULEJO_SITE").map_or_else(|| root.join("../target/web/site"), PathBuf::from);
    println!("cargo::rerun-if-changed={}", site.display());
    let mut text = String::from("const FILES: &[(&str, &[u8])] = &[\n");
    match site.canonicalize() {
        Ok(site) => list(&site, "", &mut text)?,
        Err(e) => println!(
            "cargo::warning=no viewer in {}: {e}; run `cargo xtask web` first",
            site.display()
        ),
    }
    text.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("site.rs"), text)?;
    Ok(())
}

/// The commit of the clone that is built, if this is one. Its log of heads changes with each commit.
fn commit() -> Option<String> {
    let file = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let file = root.join(file);
    if file.exists() {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    // A clone of something around this project is none of it.
    let own = git(&["ls-files", "--error-unmatch", "build.rs"]);
    own.and_then(|_| git(&["rev-parse", "--short=12", "HEAD"]))
}

/// What git says, if it is there and content.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// One line a file: its path in the site, and where its bytes lie.
fn list(folder: &Path, prefix: &str, text: &mut String) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &format!("{name}/"), text)?;
        } else {
            text.push_str(&format!(
                "    ({name:?}, include_bytes!({:?})),\n",
                entry.path()
            ));
        }
    }
    Ok(())
}
