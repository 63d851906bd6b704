//! `azulejo serve` and `azulejo view`: an object for programs on this machine that speak HTTP.

use crate::args::{ServeArgs, ViewArgs};
use crate::error::{CliError, Result};
use crate::serve::zarr::ZarrView;
use crate::serve::{Answer, Asked, Bound, files, site};
use crate::session::Session;
use azulejo::storage::Uri;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// How a viewer is had that was not built in.
const NO_VIEWER: &str = "this program was built without the viewer: in the sources, run `cargo xtask web`, then `cargo build \
                         --release --features view`, or give --site target/web/site";

/// Serves a dense array as Zarr, or tables over Flight SQL.
pub fn run(session: &mut Session, args: &ServeArgs) -> Result<()> {
    #[cfg(feature = "flight-sql")]
    if args.flight_sql {
        return crate::command::sql::flight::run(session, args);
    }
    let [uri] = args.uri.as_slice() else {
        return Err(CliError::usage("serve --zarr takes one array"));
    };
    let view = ZarrView::new(session.open(uri, &args.time)?)?;
    let bound = Bound::new(args.port)?;
    let url = format!("{}/zarr", bound.url());
    let arrays: Vec<(String, &str)> = view.arrays().collect();
    if session.output.json {
        let names: Vec<&String> = arrays.iter().map(|(name, _)| name).collect();
        session
            .output
            .write_json(&json!({"url": url, "arrays": names}))?;
    } else {
        writeln!(session.output, "{url}")?;
        for (name, kind) in &arrays {
            writeln!(session.output, "{url}/{name}  {kind}")?;
        }
        session.output.note("Zarr version 3, until Ctrl-C");
    }
    session.output.flush()?;
    let quiet = session.output.quiet;
    let told = Mutex::new(BTreeSet::new());
    bound.run(&|asked: &Asked| match asked.path.split_first() {
        Some((first, key)) if first == "zarr" => {
            let answer = view.answer(key);
            if !quiet {
                tell_mistaken(&view, &told);
            }
            answer
        }
        _ => Answer::error(404, "there is nothing"),
    })
}

/// Says once of each attribute that its readers take some of its cells for nulls.
fn tell_mistaken(view: &ZarrView, told: &Mutex<BTreeSet<String>>) {
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    for name in view.mistaken() {
        if told.insert(name.clone()) {
            anstream::eprintln!("{}", mistaken_note(&name));
        }
    }
}

/// What is said of an attribute of which a cell has the value that stands for null.
pub fn mistaken_note(name: &str) -> String {
    format!(
        "{name:?}: some of its cells have the value that stands for null in Zarr, and are read as null"
    )
}

/// Opens the viewer on an array or group.
pub fn view(session: &mut Session, args: &ViewArgs) -> Result<()> {
    if !site::is_built_in() && args.site.is_none() {
        return Err(CliError::usage(NO_VIEWER));
    }
    let (uri, at) = named(session, args.uri.trim_end_matches('/'))?;
    let root = session.context.locate(&Uri::parse(uri)?)?;
    let bound = Bound::new(args.port)?;
    let base = bound.url();
    let name = match root.path.name() {
        "" => "array",
        name => name,
    };
    let at = at.map_or_else(String::new, |at| format!("&at={at}"));
    let page = format!(
        "{base}/view/index.html#listing=1&url={}{at}",
        escaped(&format!("{base}/data/{}", escaped(name)))
    );
    if session.output.json {
        session.output.write_json(&json!({ "url": page }))?;
    } else {
        writeln!(session.output, "{page}")?;
        session
            .output
            .note("read-only, for this machine, until Ctrl-C");
    }
    session.output.flush()?;
    if !args.no_browser {
        open_browser(&page);
    }
    bound.run(&|asked: &Asked| match asked.path.split_first() {
        Some((first, rest)) if first == "view" => site::answer(args.site.as_deref(), rest),
        Some((first, rest)) if first == "data" => match rest.split_first() {
            Some((object, rest)) if object == name => files::answer(&root, rest, asked),
            _ => Answer::error(404, "only the object itself can be read"),
        },
        _ => Answer::error(404, "there is nothing"),
    })
}

/// The object that a URI names, and the moment where it names a snapshot (`URI@NAME`).
fn named<'u>(session: &Session, uri: &'u str) -> Result<(&'u str, Option<u64>)> {
    if session.context.object(uri).object_type()?.is_some() {
        return Ok((uri, None));
    }
    if let Some((object, name)) = uri.rsplit_once('@') {
        let place = session.context.object(object);
        if place.object_type()?.is_some() {
            return Ok((object, Some(place.snapshot_time(name)?)));
        }
    }
    Err(azulejo::Error::NotFound {
        uri: uri.to_owned(),
        what: "an array or group",
    }
    .into())
}

/// Text for a part of a URL.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Asks the system to show a page. Where it cannot, the user has the URL.
fn open_browser(url: &str) {
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let _ = Command::new(program)
        .args(arguments)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
}
