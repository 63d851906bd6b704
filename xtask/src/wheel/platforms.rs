//! Wheels for the platforms that releases are made for. zig, which is on PyPI, compiles and links the C
//! for all of them, against the oldest libraries that a platform promises; Rust's part is there where
//! rustup has a target's standard library, or gets it.
//!
//! zig links an unwinder of its own in place of libgcc_s, which exceptions of C++ do not pass: where
//! `azulejo_db.as_tiledb` lends the library to an untouched `tiledb`, a callback that throws would end
//! the program (its `test_util.py::test_ls`). So wheels for glibc are told that the unwinder is
//! libgcc_s, which every such platform promises, by a library of that name without code.

use super::{MOST, made, pip, tell, told_size};
use crate::cargo::{forget_package, standard_library};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a wheel runs: Rust's name, and what pip calls it.
pub struct Platform {
    pub target: &'static str,
    pub tag: &'static str,
}

pub const PLATFORMS: [Platform; 4] = [
    Platform {
        target: "x86_64-unknown-linux-gnu",
        tag: "manylinux_2_28_x86_64",
    },
    Platform {
        target: "x86_64-unknown-linux-musl",
        tag: "musllinux_1_2_x86_64",
    },
    Platform {
        target: "aarch64-unknown-linux-gnu",
        tag: "manylinux_2_28_aarch64",
    },
    Platform {
        target: "aarch64-unknown-linux-musl",
        tag: "musllinux_1_2_aarch64",
    },
];

/// What makes and checks such wheels.
const TOOLS: [&str; 2] = ["ziglang", "auditwheel"];

/// What Rust's standard library asks of libgcc_s.
const UNWINDER: [&str; 17] = [
    "_Unwind_Backtrace",
    "_Unwind_DeleteException",
    "_Unwind_FindEnclosingFunction",
    "_Unwind_ForcedUnwind",
    "_Unwind_GetCFA",
    "_Unwind_GetDataRelBase",
    "_Unwind_GetGR",
    "_Unwind_GetIP",
    "_Unwind_GetIPInfo",
    "_Unwind_GetLanguageSpecificData",
    "_Unwind_GetRegionStart",
    "_Unwind_GetTextRelBase",
    "_Unwind_RaiseException",
    "_Unwind_Resume",
    "_Unwind_Resume_or_Rethrow",
    "_Unwind_SetGR",
    "_Unwind_SetIP",
];

/// A wheel that was built and looked at.
pub struct Made {
    pub wheel: PathBuf,
    /// Whether its library has run, though without Python.
    pub ran: bool,
}

/// Builds the wheels of all platforms whose Rust is here, or of the one that is named, into a folder;
/// says of the others why they are passed over.
pub fn build_all(
    root: &Path,
    python: &Path,
    folder: &Path,
    only: Option<&str>,
) -> Result<Vec<Made>, String> {
    pip(python, &TOOLS)?;
    let wanted: Vec<&Platform> = PLATFORMS
        .iter()
        .filter(|platform| only.is_none_or(|only| platform.target == only))
        .collect();
    if wanted.is_empty() {
        let known: Vec<&str> = PLATFORMS.iter().map(|platform| platform.target).collect();
        return Err(format!("--only takes one of {}", known.join(", ")));
    }
    let mut wheels = Vec::new();
    for platform in wanted {
        if let Err(why) = standard_library(platform.target) {
            println!("{}: passed over, as {why}", platform.tag);
            continue;
        }
        let wheel = build(root, python, folder, platform)?;
        let size = told_size(&wheel)?;
        println!("{}: {}", platform.tag, audit(python, &wheel, platform)?);
        if size > MOST {
            return Err(format!("the wheel has more than {MOST} bytes"));
        }
        let ran = run_without_python(root, python, &wheel, platform)?;
        wheels.push(Made { wheel, ran });
    }
    Ok(wheels)
}

fn build(
    root: &Path,
    python: &Path,
    folder: &Path,
    platform: &Platform,
) -> Result<PathBuf, String> {
    let kind = promise(platform);
    // zig is a module of this environment's Python, and found by its name.
    let tools = python.parent().unwrap_or(root);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(std::iter::once(tools.to_owned()).chain(std::env::split_paths(&path)))
            .map_err(|e| e.to_string())?;
    let mut command = Command::new(python.with_file_name("maturin"));
    forget_package(&mut command)
        .current_dir(root.join("azulejo-python"))
        .env("PATH", path)
        .args([
            "build",
            "--profile",
            "dist",
            "--zig",
            "--compression-level",
            "9",
        ])
        .args(["--target", platform.target, "--compatibility", kind])
        .arg("--out")
        .arg(folder);
    if platform.target.ends_with("-gnu") {
        let library = unwinder(root, python, platform)?;
        // To rustc, for the wheel's library alone.
        command.arg("--");
        command.arg(format!("-Clink-arg={}", library.display()));
    }
    tell(&mut command)?;
    made(folder, &format!("{}.whl", platform.tag))
}

/// A library that has the name of libgcc_s and its unwinder's functions, without code: where the
/// wheel runs, the platform's own is in its place.
fn unwinder(root: &Path, python: &Path, platform: &Platform) -> Result<PathBuf, String> {
    let folder = root.join("target/wheel-unwinder").join(platform.target);
    let failed = |e| format!("{}: {e}", folder.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let source = folder.join("unwinder.c");
    let text: String = UNWINDER
        .iter()
        .map(|name| format!("void {name}(void) {{}}\n"))
        .collect();
    std::fs::write(&source, text).map_err(failed)?;
    let library = folder.join("libgcc_s.so.1");
    tell(
        Command::new(python)
            .args(["-m", "ziglang", "cc", "-shared", "-nostdlib", "-target"])
            .arg(format!("{}-linux-gnu", arch(platform)))
            .args(["-Wl,-soname,libgcc_s.so.1", "-o"])
            .args([&library, &source]),
    )?;
    Ok(library)
}

/// What a tag says of libraries, without the machine.
fn promise(platform: &Platform) -> &'static str {
    let tag = platform.tag.strip_suffix(arch(platform));
    tag.unwrap_or_default().trim_end_matches('_')
}

fn arch(platform: &Platform) -> &'static str {
    platform.target.split('-').next().unwrap_or_default()
}

/// What can be seen of a wheel's libraries without running them: their machine, the libraries that they
/// need, the newest version of glibc whose symbols they use. Fails where that is not what the wheel's name
/// says; prints it otherwise.
const LOOK: &str = "\
import io, sys, zipfile
from elftools.elf.elffile import ELFFile
path, arch, newest = sys.argv[1:]
machine = {'x86_64': 'EM_X86_64', 'aarch64': 'EM_AARCH64'}[arch]
glibc = {'libc.so.6', 'libm.so.6', 'libdl.so.2', 'libpthread.so.0', 'librt.so.1', 'libgcc_s.so.1',
         'ld-linux-x86-64.so.2', 'ld-linux-aarch64.so.1'}
wheel = zipfile.ZipFile(path)
libraries = [name for name in wheel.namelist() if name.endswith('.so')]
assert libraries, 'a wheel without a library'
for name in libraries:
    elf = ELFFile(io.BytesIO(wheel.read(name)))
    assert elf['e_machine'] == machine, (name, elf['e_machine'])
    needed = [tag.needed for tag in elf.get_section_by_name('.dynamic').iter_tags() if tag.entry.d_tag == 'DT_NEEDED']
    assert set(needed) <= (glibc if newest else {'libc.so'}), (name, needed)
    section = elf.get_section_by_name('.gnu.version_r')
    versions = [entry.name for _, entries in section.iter_versions() for entry in entries] if section else []
    used = [tuple(map(int, v[6:].split('.'))) for v in versions if v.startswith('GLIBC_') and v[6:7].isdigit()]
    assert not used or (newest and max(used) <= tuple(map(int, newest.split('.')))), (name, max(used))
    print(f'  {name}: for {arch}; needs {\", \".join(sorted(needed)) or \"no library\"}', end='')
    print(f'; symbols of glibc up to {\".\".join(map(str, max(used)))}' if used else '')
";

/// Looks whether a wheel keeps what its platform promises; says who found so.
fn audit(python: &Path, wheel: &Path, platform: &Platform) -> Result<&'static str, String> {
    let newest = glibc(platform.tag, arch(platform));
    let newest = newest.map_or(String::new(), |(major, minor)| format!("{major}.{minor}"));
    tell(
        Command::new(python)
            .args(["-c", LOOK])
            .arg(wheel)
            .args([arch(platform), &newest]),
    )?;
    if platform.tag.starts_with("musllinux") {
        // auditwheel follows libraries to where they lie, which a machine of glibc does not know.
        return Ok("it asks for no library but musl");
    }
    // What it finds, not what it would repair: that it does for wheels of its own machine alone.
    let mut show = Command::new(python);
    show.args(["-m", "auditwheel", "show", "--json"]).arg(wheel);
    let shown = show.output().map_err(|e| format!("{show:?}: {e}"))?;
    if !shown.status.success() {
        let errors = String::from_utf8_lossy(&shown.stderr);
        return Err(format!("{show:?} failed: {errors}"));
    }
    let shown: serde_json::Value =
        serde_json::from_slice(&shown.stdout).map_err(|e| format!("{show:?}: {e}"))?;
    let tag = shown["overall_tag"].as_str().unwrap_or_default();
    match keeps(tag, platform) {
        true => Ok("auditwheel takes it for what its name says"),
        false => Err(format!("{}: auditwheel finds {tag}", platform.tag)),
    }
}

/// Loads a wheel's library and has it write and read an array, where musl's loader for this machine is
/// here and, as mostly, no Python that uses it. Whether it did.
fn run_without_python(
    root: &Path,
    python: &Path,
    wheel: &Path,
    platform: &Platform,
) -> Result<bool, String> {
    let arch = arch(platform);
    let loader = PathBuf::from(format!("/lib/ld-musl-{arch}.so.1"));
    if !platform.tag.starts_with("musllinux") || arch != std::env::consts::ARCH || !loader.exists()
    {
        return Ok(false);
    }
    tell(
        Command::new(python)
            .arg(root.join("xtask/python/wheel_host.py"))
            .arg(wheel)
            .arg(arch),
    )?;
    Ok(true)
}

/// Whether a wheel that needs what a tag of glibc says runs wherever its name says.
fn keeps(tag: &str, platform: &Platform) -> bool {
    let needed = glibc(tag, arch(platform));
    needed.is_some() && needed <= glibc(platform.tag, arch(platform))
}

/// The version of glibc that a tag names, if it is one of this machine.
fn glibc(tag: &str, arch: &str) -> Option<(u32, u32)> {
    let version = tag.strip_prefix("manylinux_")?.strip_suffix(arch)?;
    let (major, minor) = version.strip_suffix('_')?.split_once('_')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{PLATFORMS, arch, keeps, promise};

    #[test]
    fn tags_name_the_machines_of_their_targets() {
        for platform in &PLATFORMS {
            let (promise, arch) = (promise(platform), arch(platform));
            assert_eq!(platform.tag, format!("{promise}_{arch}"));
        }
    }

    #[test]
    fn wheels_keep_what_their_names_say() {
        let [intel, _, arm, _] = &PLATFORMS;
        for (tag, platform, kept) in [
            ("manylinux_2_28_x86_64", intel, true),
            ("manylinux_2_17_x86_64", intel, true),
            ("manylinux_2_34_x86_64", intel, false),
            ("manylinux_2_28_aarch64", intel, false),
            ("manylinux_2_5_aarch64", arm, true),
            ("manylinux_10_1_aarch64", arm, false),
            ("linux_aarch64", arm, false),
            ("", arm, false),
        ] {
            assert_eq!(keeps(tag, platform), kept, "{tag}");
        }
    }
}
