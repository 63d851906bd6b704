//! The viewer's files: built into the program with the feature `view`, or in a folder.

use super::Answer;
use std::path::Path;

#[cfg(feature = "view")]
include!(concat!(env!("OUT_DIR"), "/site.rs"));

#[cfg(not(feature = "view"))]
const FILES: &[(&str, &[u8])] = &[];

/// Whether the viewer was built in.
pub fn is_built_in() -> bool {
    !FILES.is_empty()
}

/// A file of the viewer, from the folder if there is one.
pub fn answer(folder: Option<&Path>, path: &[String]) -> Answer {
    let name = match path {
        [] => "index.html".to_owned(),
        path => path.join("/"),
    };
    let body = match folder {
        // No component leads elsewhere.
        Some(folder) => std::fs::read(folder.join(&name)).ok(),
        None => {
            let found = FILES.iter().find(|(file, _)| *file == name);
            found.map(|(_, bytes)| bytes.to_vec())
        }
    };
    match body {
        Some(body) => Answer::file(content_type(&name), body),
        None => Answer::error(404, "the viewer has no such file"),
    }
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "wasm" => "application/wasm",
        "json" => "application/json",
        _ => "application/octet-stream",
    }
}
