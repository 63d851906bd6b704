//! Arrays of every age, copied to the S3 server and read there, and over plain HTTP by their
//! manifests: they hold what the reference read from them on disk.

use super::static_files::FileServer;
use super::{BUCKET, Stage, Tally, s3_uri};
use crate::support::{cells, check, pack};
use crate::{Outcome, expected};
use azulejo::storage::StorePath;
use azulejo::{Config, Context};
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Every so many arrays of the packed corpus are read.
const STEP: usize = 10;
/// Arrays of the corpus beside the project, where there is one.
const FOUND: &str = "../shared/arrays";

struct Case {
    name: String,
    json: Value,
    want: Option<Vec<cells::Cells>>,
    key: Option<azulejo::format::filter::EncryptionKey>,
}

fn cases(files: &BTreeMap<String, Bytes>) -> Result<Vec<Case>, String> {
    let keys: Value = serde_json::from_slice(&files["keys.json"]).map_err(|e| e.to_string())?;
    let mut cases = Vec::new();
    let expectations = files.iter().filter_map(|(path, bytes)| {
        Some((
            path.strip_prefix("expected/")?.strip_suffix(".json")?,
            bytes,
        ))
    });
    for (name, bytes) in expectations.step_by(STEP) {
        let json: Value = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        // Members of groups are written down with the place that the group lay at.
        if json["kind"] == "group" {
            continue;
        }
        let want = files
            .get(&format!("expected/{name}.cells"))
            .map(|bytes| cells::decode(bytes));
        cases.push(Case {
            name: name.to_owned(),
            json,
            want,
            key: check::key_of(name, &keys)?,
        });
    }
    Ok(cases)
}

/// Copies arrays, reads them over S3, makes manifests, reads them over HTTP.
pub fn run(stage: &mut Stage, tally: &mut Tally) -> Outcome {
    let files = pack::files();
    let memory = pack::memory(&files, "made/");
    let plain = stage.context()?;
    let web = FileServer::start(&stage.root)?;
    let cases = cases(&files)?;
    for (number, case) in cases.iter().enumerate() {
        let source = pack::context(Config::default(), case.key.clone(), memory.clone());
        // The memory of the pack and the bucket of the stage in one context.
        let both = source.derive(plain.config().clone(), case.key.clone());
        one(
            stage,
            tally,
            &both,
            &web,
            case,
            &format!("mem://{}", case.name),
            number,
        );
    }
    found(stage, tally, &plain, &web)?;
    tally.check("no folder was asked for over HTTP", || {
        match web.refused() {
            0 => Ok(()),
            n => Err(format!("{n} requests that a web server refuses")),
        }
    });
    println!("  {} arrays of the pack", cases.len());
    Ok(())
}

fn one(
    stage: &Stage,
    tally: &mut Tally,
    context: &Context,
    web: &FileServer,
    case: &Case,
    from: &str,
    number: usize,
) {
    // Short: the server makes file names of whole keys.
    let place = format!("c/{number}");
    let uri = s3_uri(&place);
    let readable = case.json["readable"] != false;
    tally.check(&format!("{} over S3", case.name), || {
        context
            .object(from)
            .copy_to(&uri)
            .map_err(|e| e.to_string())?;
        check::object(context, &uri, &case.json, case.want.clone())
    });
    if !readable {
        return;
    }
    tally.check(&format!("{} over HTTP", case.name), || {
        let http = format!("http://{}/{BUCKET}/{}", web.address, place);
        context
            .object(&uri)
            .write_manifests()
            .map_err(|e| e.to_string())?;
        check::object(context, &http, &case.json, case.want.clone())
    });
    let _ = std::fs::remove_dir_all(stage.root.join(BUCKET).join(&place));
}

/// Arrays that others have published, from the corpus beside the project.
fn found(stage: &Stage, tally: &mut Tally, context: &Context, web: &FileServer) -> Outcome {
    let dir = crate::root().join(FOUND);
    if !dir.join("found").is_dir() {
        println!("  no corpus beside the project: the pack stands for it");
        return Ok(());
    }
    let mut expectations = Vec::new();
    find(&dir.join("expected/found"), &mut expectations);
    expectations.sort();
    let mut count = 0;
    for file in expectations.iter().step_by(8) {
        let name = file
            .strip_prefix(dir.join("expected"))
            .map_err(|e| e.to_string())?
            .with_extension("");
        let text = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let json: Value = serde_json::from_slice(&text).map_err(|e| e.to_string())?;
        let source = dir.join(&name);
        if json["kind"] == "group" || size_of(&source) > 1 << 20 {
            continue;
        }
        let parquet = std::fs::read(file.with_extension("parquet")).ok();
        let want = parquet
            .map(|bytes| expected::parquet_cells(bytes.into()))
            .transpose()?;
        let case = Case {
            name: name.to_string_lossy().into_owned(),
            json,
            want,
            key: None,
        };
        let from = StorePath::local(&source.to_string_lossy());
        one(
            stage,
            tally,
            context,
            web,
            &case,
            from.as_str(),
            1000 + count,
        );
        count += 1;
    }
    println!("  {count} arrays that others have published");
    Ok(())
}

fn find(dir: &Path, out: &mut Vec<std::path::PathBuf>) {
    for path in std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
    {
        match path.extension() {
            _ if path.is_dir() => find(&path, out),
            Some(extension) if extension == "json" => out.push(path),
            _ => {}
        }
    }
}

fn size_of(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.path() {
        path if path.is_dir() => size_of(&path),
        path => std::fs::metadata(path).map_or(0, |m| m.len()),
    };
    entries.map(size).sum()
}
