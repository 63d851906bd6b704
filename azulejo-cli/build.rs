//! With the feature `view`: the viewer's files, which `cargo xtask web` has made, into the program.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
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
