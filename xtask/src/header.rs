//! `cargo xtask header`: the C header of `azulejo-capi`, from its sources, and the list of
//! functions for its tests.
//!
//! Functions are found by their names, in the macros that declare them (see
//! `azulejo-capi/src/boundary.rs`) and as plain `extern "C"` functions. Types of parameters are
//! few: each has its C spelling in [`c_type`].

use crate::Outcome;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const HEADER: &str = "include/azulejo_tiledb.h";
const PRELUDE: &str = "azulejo-capi/header/prelude.h";
const LIST: &str = "azulejo-capi/tests/functions/list.rs";

/// Writes the header and the list.
pub fn write(root: &Path) -> Outcome {
    for (file, text) in files(root)? {
        let path = root.join(file);
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// Checks that the header and the list are what they would be.
pub fn check(root: &Path) -> Outcome {
    for (file, text) in files(root)? {
        let path = root.join(file);
        let there =
            std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        // A checkout may have other line ends.
        if there.replace("\r\n", "\n") != text {
            return Err(format!(
                "{file} is not up to date: run `cargo xtask header`"
            ));
        }
    }
    Ok(())
}

/// What is generated: files and their texts.
fn files(root: &Path) -> Result<[(&'static str, String); 2], String> {
    let header = make(root)?;
    let list = list(&header);
    Ok([(HEADER, header), (LIST, list)])
}

/// The functions of a header, a line each: the name, and the letters of its parameters: `c` a
/// context, `h` a handle coming in, `p` another pointer, `f` a callback, `n` a number.
fn list(header: &str) -> String {
    let mut out = String::from("// Made by `cargo xtask header`: do not edit.\nfunctions! {\n");
    for line in header.lines() {
        let Some((start, parameters)) = line
            .strip_suffix(");")
            .and_then(|line| line.split_once('('))
        else {
            continue;
        };
        let Some((_, name)) = start
            .rsplit_once([' ', '*'])
            .filter(|(_, name)| name.starts_with("tiledb_"))
        else {
            continue;
        };
        if line.starts_with("typedef") {
            continue;
        }
        let letters: String = split(parameters)
            .iter()
            .filter(|parameter| *parameter != "void")
            .map(|parameter| match parameter.matches('*').count() {
                1 if parameter.contains("tiledb_ctx_t") => 'c',
                1 if parameter.contains("const tiledb_") && !parameter.contains("range_t") => 'h',
                0 if !parameter.contains("callback") => 'n',
                0 => 'f',
                _ => 'p',
            })
            .collect();
        let status = if start.starts_with("int32_t ") {
            "status"
        } else {
            "other"
        };
        let _ = writeln!(out, "    {name} {status} \"{letters}\";");
    }
    out.push_str("}\n");
    out
}

fn make(root: &Path) -> Result<String, String> {
    let mut files = Vec::new();
    sources(&root.join("azulejo-capi/src"), &mut files);
    files.sort();
    let mut text = String::new();
    for file in &files {
        text.push_str(
            &std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?,
        );
    }
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n")
        .collect();
    let kinds = kinds(&code);
    let mut functions: BTreeMap<String, String> = BTreeMap::new();
    for (name, parameters, result) in declared(&code) {
        functions.insert(
            name.clone(),
            declaration(&name, &parameters, &result, &kinds)?,
        );
    }
    for (name, of) in freeing(&code) {
        let kind = kinds
            .get(&of)
            .ok_or_else(|| format!("{name}: {of} is no kind of handle"))?;
        functions.insert(
            name.clone(),
            format!("void {name}(tiledb_{kind}_t** handle);"),
        );
    }
    for (to, from) in names(&code) {
        functions.insert(
            to.clone(),
            format!("int32_t {to}(int32_t id, const char** str);"),
        );
        functions.insert(
            from.clone(),
            format!("int32_t {from}(const char* str, int32_t* id);"),
        );
    }
    let mut objects = String::new();
    for (symbol, get, of) in fixed(&code) {
        let kind = kinds
            .get(&of)
            .ok_or_else(|| format!("{symbol}: {of} is no kind of handle"))?;
        let _ = writeln!(objects, "extern const tiledb_{kind}_t* {symbol};");
        functions.insert(
            get.clone(),
            format!("int32_t {get}(tiledb_ctx_t* ctx, const tiledb_{kind}_t** out);"),
        );
    }
    let prelude = root.join(PRELUDE);
    let mut out = String::from("/* Made by `cargo xtask header`: do not edit. */\n");
    out.push_str(
        &std::fs::read_to_string(&prelude).map_err(|e| format!("{}: {e}", prelude.display()))?,
    );
    for kind in kinds.values() {
        let _ = writeln!(
            out,
            "typedef struct tiledb_{kind}_handle_t tiledb_{kind}_t;"
        );
    }
    let _ = write!(out, "\n{objects}\n");
    for line in functions.values() {
        let _ = writeln!(out, "{line}");
    }
    out.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    Ok(out)
}

fn sources(place: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(place) else {
        return;
    };
    for path in entries.flatten().map(|e| e.path()) {
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// Rust names of the kinds of handles and their C names.
fn kinds(code: &str) -> BTreeMap<String, String> {
    let mut kinds = BTreeMap::new();
    for part in code.split("impl Kind for ").skip(1) {
        let name: String = part.chars().take_while(|c| c.is_alphanumeric()).collect();
        if let Some(kind) = part
            .split("NAME: &'static str = \"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
        {
            kinds.insert(name, kind.to_owned());
        }
    }
    kinds
}

/// Functions with bodies: name, parameters, result.
fn declared(code: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for part in code.split("fn tiledb_").skip(1) {
        let Some(open) = part.find('(') else { continue };
        let Some(close) = closing(part, open) else {
            continue;
        };
        let after = part[close + 1..].trim_start();
        let result = match after.strip_prefix("->") {
            Some(rest) => rest.split('{').next().unwrap_or_default().trim().to_owned(),
            // The macros add what their functions return; without one there is nothing.
            None if part[..open].ends_with("version") => "void".into(),
            None => "i32".into(),
        };
        if after.starts_with(';') {
            continue;
        }
        found.push((
            format!("tiledb_{}", part[..open].trim()),
            part[open + 1..close].to_owned(),
            result,
        ));
    }
    found
}

/// Where the bracket at `open` closes.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < open) {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The functions that free handles: name and Rust name of the kind.
fn freeing(code: &str) -> Vec<(String, String)> {
    let blocks = code
        .split("capi_free! {")
        .skip(1)
        .filter_map(|part| part.split('}').next());
    let lines = blocks.flat_map(|block| block.split(';').collect::<Vec<_>>());
    lines
        .filter_map(|line| {
            let (name, of) = line.trim().strip_prefix("fn ")?.split_once('(')?;
            Some((name.to_owned(), of.trim_end_matches(')').to_owned()))
        })
        .collect()
}

/// The pairs of functions that translate the names of enumerators.
fn names(code: &str) -> Vec<(String, String)> {
    let words = |line: &str| -> Option<(String, String)> {
        let mut words = line
            .split(',')
            .map(str::trim)
            .filter(|word| word.starts_with("tiledb_"));
        let (to, from) = (words.next()?, words.next()?);
        (to.ends_with("_to_str") && from.ends_with("_from_str"))
            .then(|| (to.to_owned(), from.to_owned()))
    };
    let flat = code.replace('\n', " ");
    flat.split(';')
        .filter_map(|part| words(part.split('[').next().unwrap_or_default()))
        .collect()
}

/// Data symbols, the functions that give the same pointers, and the Rust names of their kinds.
fn fixed(code: &str) -> Vec<(String, String, String)> {
    let Some(block) = code
        .split("fixed! {")
        .nth(1)
        .and_then(|part| part.split('}').next())
    else {
        return Vec::new();
    };
    let entries = block.split(';').filter_map(|entry| {
        let (symbols, rest) = entry.split_once(':')?;
        let (symbol, get) = symbols.split_once(',')?;
        Some((
            symbol.trim().to_owned(),
            get.trim().to_owned(),
            rest.split('=').next()?.trim().to_owned(),
        ))
    });
    entries.collect()
}

fn declaration(
    name: &str,
    parameters: &str,
    result: &str,
    kinds: &BTreeMap<String, String>,
) -> Result<String, String> {
    let (parameters, error) = match parameters.split_once(';') {
        Some((parameters, error)) => (parameters, Some(error.trim())),
        None => (parameters, None),
    };
    let mut out: Vec<String> = Vec::new();
    for parameter in split(parameters) {
        let parameter = parameter.trim();
        match parameter.split_once(':') {
            _ if parameter.is_empty() => {}
            None => out.push(format!("tiledb_ctx_t* {parameter}")),
            Some((parameter, rust)) => {
                let c = c_type(rust.trim(), kinds)
                    .ok_or_else(|| format!("{name}: no C type for {rust}"))?;
                // C++ programs include the header too.
                let keyword = matches!(
                    parameter.trim(),
                    "new" | "operator" | "delete" | "this" | "class"
                );
                out.push(format!(
                    "{c} {}{}",
                    parameter.trim(),
                    if keyword { "_" } else { "" }
                ));
            }
        }
    }
    if let Some(error) = error {
        out.push(format!("tiledb_error_t** {error}"));
    }
    let result = match result {
        "void" => "void",
        "Str" => "const char*",
        other => number(other).ok_or_else(|| format!("{name}: no C type for {other}"))?,
    };
    let parameters = if out.is_empty() {
        "void".into()
    } else {
        out.join(", ")
    };
    Ok(format!("{result} {name}({parameters});"))
}

/// Splits at commas outside brackets.
fn split(parameters: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in parameters.chars() {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

fn number(rust: &str) -> Option<&'static str> {
    Some(match rust {
        "u8" => "uint8_t",
        "i32" => "int32_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        _ => return None,
    })
}

/// The C spelling of a type of `azulejo-capi`'s boundary.
fn c_type(rust: &str, kinds: &BTreeMap<String, String>) -> Option<String> {
    let rust = rust.replace("crate::boundary::", "").replace(' ', "");
    let inner = |outer: &str| {
        Some(
            rust.strip_prefix(outer)?
                .strip_prefix('<')?
                .strip_suffix('>')?
                .to_owned(),
        )
    };
    let handle = |of: &str| Some(format!("tiledb_{}_t*", kinds.get(of)?));
    if let Some(of) = inner("In") {
        let handle = handle(&of)?;
        return Some(if of == "Context" {
            handle
        } else {
            format!("const {handle}")
        });
    }
    if let Some(of) = inner("Out").or_else(|| inner("InOut")) {
        if let Some(kind) = of.strip_prefix("Ptr<").and_then(|of| of.strip_suffix('>')) {
            return Some(format!("{}*", handle(kind)?));
        }
        return Some(match of.as_str() {
            "Str" => "const char**".into(),
            "Pointer" => "const void**".into(),
            "Pointer<c_char>" => "char**".into(),
            "Pointer<c_void>" => "void**".into(),
            "Pointer<u64>" => "uint64_t**".into(),
            "CRange" => "tiledb_range_t*".into(),
            "Reason" => "tiledb_query_status_details_t*".into(),
            other => format!("{}*", number(other)?),
        });
    }
    Some(match rust.as_str() {
        "Text" => "const char*".into(),
        "Texts" => "const char**".into(),
        "Bytes" => "const void*".into(),
        "OutBytes" | "Opaque" => "void*".into(),
        "ListCallback" => "tiledb_vfs_ls_callback_t".into(),
        "RecursiveCallback" => "tiledb_ls_callback_t".into(),
        "RecursiveCallback2" => "tiledb_ls_callback_v2_t".into(),
        "Callback" => "tiledb_object_callback_t".into(),
        other => number(other)?.into(),
    })
}

#[cfg(test)]
mod tests {
    /// What is checked in is what would be generated, and the header declares all that libtiledb
    /// 2.30 exports.
    #[test]
    fn the_header_is_up_to_date() {
        let root = crate::root();
        super::check(&root).unwrap();
        let header = super::make(&root).unwrap();
        let functions = super::list(&header)
            .lines()
            .filter(|line| line.ends_with(";"))
            .count();
        let objects = header
            .lines()
            .filter(|line| line.starts_with("extern const "))
            .count();
        // Those of 2.30, and six names of 2.27 to 2.29.
        assert_eq!((functions, objects), (514 + 6, 6));
    }
}
