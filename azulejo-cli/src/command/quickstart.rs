//! `azulejo quickstart`: a tour of a sample group that comes with the program.

use crate::args::{Cli, QuickstartArgs};
use crate::cells::each_batch;
use crate::error::{CliError, Result};
use crate::object;
use crate::output::picture::{Colour, Scale, append_pixels, draw};
use crate::progress::Progress;
use crate::selection::{Coordinates, select};
use crate::session::Session;
use crate::terminal::{FAINT, HEADING};
use clap::Parser;
use serde_json::json;
use std::io::Write;
use std::path::Path;

/// The sample, written by TileDB: see `assets/make_quickstart.py`.
const PACK: &[u8] = include_bytes!("../../assets/quickstart.pack");

/// Where the sample lies unless it is kept.
const MEMORY: &str = "mem://quickstart";

/// Runs the command.
pub fn run(session: &mut Session, args: &QuickstartArgs) -> Result<()> {
    let root = match &args.keep {
        Some(folder) => {
            unpack_to_folder(folder)?;
            folder.display().to_string()
        }
        None => {
            unpack_to_memory(session)?;
            MEMORY.to_owned()
        }
    };
    let group = format!("{root}/azulejo");
    let tour = tour(&group);
    if session.output.json {
        return write_json(session, args.keep.is_some().then_some(group.as_str()), &tour);
    }
    for stop in &tour {
        writeln!(session.output, "\n{}", stop.text)?;
        for words in &stop.commands {
            match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["export", uri, _, ref time @ ..] => picture(session, uri, time.get(1).copied())?,
                ref words => command(session, words)?,
            }
        }
    }

    let keep = if args.keep.is_some() {
        format!("The sample lies in {root}. Try next:")
    } else {
        "To play with the sample, keep it, and try next:".to_owned()
    };
    writeln!(session.output, "\n{keep}")?;
    let program = program();
    let (keep, group) = match args.keep {
        Some(_) => (None, group),
        None => (Some("quickstart --keep sample".to_owned()), "sample/azulejo".to_owned()),
    };
    let lines = [
        keep,
        Some(format!("export {group}/tile tile.png")),
        Some(format!("export {group}/orders orders.parquet --where 'tiles > 100'")),
        Some(format!("schema {group}/orders --json")),
        Some("--help".to_owned()),
    ];
    for line in lines.into_iter().flatten() {
        writeln!(session.output, "  {HEADING}{program} {line}{HEADING:#}")?;
    }
    Ok(())
}

/// A stop of the tour: what is to be seen, and the commands (without the program's name) that show it.
struct Stop {
    text: &'static str,
    commands: Vec<Vec<String>>,
}

fn tour(group: &str) -> Vec<Stop> {
    let (tile, orders) = (format!("{group}/tile"), format!("{group}/orders"));
    let condition = "tiles >= 200 and glaze in (\"sky\", \"cobalt\") and note is not null";
    let stop = |text, lines: &[&[&str]]| Stop {
        text,
        commands: lines.iter().map(|line| line.iter().map(|&word| word.to_owned()).collect()).collect(),
    };
    vec![
        stop("A group with two arrays, as TileDB wrote them:", &[&["tree", group]]),
        stop("`tile` is dense: a picture, painted on three days. What is it?", &[&["info", &tile]]),
        stop("Each write is a fragment with its time:", &[&["fragments", &tile]]),
        stop(
            "So the array can be opened as it was on any day. The first of May, the second, and now:",
            &[
                &["export", &tile, "tile.png", "--at", "2024-05-01"],
                &["export", &tile, "tile.png", "--at", "2024-05-02"],
                &["export", &tile, "tile.png"],
            ],
        ),
        stop(
            "A slice: two pixels of two rows, red, green and blue.",
            &[&["cat", &tile, "--range", "y=19:20", "--range", "x=19:20"]],
        ),
        stop(
            "`orders` is sparse, with a date and a town as dimensions. Some of its cells, as a table:",
            &[&["cat", &orders, "--range", "day=2024-05-01:2024-05-03"]],
        ),
        stop("Cells that meet a condition:", &[&["cat", &orders, "--where", condition, "--limit", "5"]]),
        stop(
            "Aggregates:",
            &[&["agg", &orders, "count", "sum:tiles", "mean:price", "max:price", "nulls:note"]],
        ),
    ]
}

/// The tour for programs: where the sample lies, if it was kept, and every stop with its commands' words.
fn write_json(session: &mut Session, sample: Option<&str>, tour: &[Stop]) -> Result<()> {
    let stops = tour.iter().map(|stop| json!({ "text": stop.text, "commands": stop.commands }));
    session.output.write_json(&json!({ "sample": sample, "tour": stops.collect::<Vec<_>>() }))
}

/// Shows a command line and does what it says, in this session.
fn command(session: &mut Session, words: &[&str]) -> Result<()> {
    let shown: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let mut line: Vec<&str> = vec!["azulejo"];
    line.extend(words);
    if words.first() == Some(&"cat") {
        line.extend(["--format", "table"]);
    }
    writeln!(session.output, "{FAINT}$ azulejo {}{FAINT:#}", shown.join(" "))?;
    let cli = Cli::try_parse_from(line).map_err(|e| CliError::usage(e.to_string()))?;
    super::dispatch(session, cli.command)
}

/// How this program was called: what the user can type again.
fn program() -> String {
    let called = std::env::args().next().unwrap_or_default();
    if called.contains("target/") { called } else { "azulejo".to_owned() }
}

fn quoted(word: &str) -> String {
    if word.contains([' ', '"']) { format!("'{word}'") } else { word.to_owned() }
}

/// Draws the array with characters.
fn picture(session: &mut Session, uri: &str, time: Option<&str>) -> Result<()> {
    let at = time.map_or_else(String::new, |time| format!(" --at {time}"));
    writeln!(session.output, "{FAINT}$ azulejo export {uri} tile.png{at}{FAINT:#}")?;
    let mut line = vec!["azulejo", "cat", uri];
    line.extend(time.iter().flat_map(|time| ["--at", time]));
    let cli = Cli::try_parse_from(line).map_err(|e| CliError::usage(e.to_string()))?;
    let crate::args::Command::Cat(args) = cli.command else { return Ok(()) };
    let array = session.open(uri, &args.time)?;
    let selection = select(&array, &args.selection, Coordinates::Never)?;
    let Some(&[_, width]) = selection.shape.as_deref() else { return Ok(()) };
    let mut pixels = Vec::new();
    let mut colour = Colour::Rgb;
    each_batch(&array, &selection, &Progress::none(), |set| {
        if let Some(cells) = set.columns.first() {
            colour = Colour::of(&cells.column_type)?;
            append_pixels(&mut pixels, cells, &[], colour, Scale::EMPTY);
        }
        Ok(())
    })?;
    let styled = session.output.has_colours();
    let drawing = draw(&pixels, usize::try_from(width).unwrap_or(0), colour, styled);
    Ok(session.output.write_all(drawing.as_bytes())?)
}

fn unpack_to_memory(session: &Session) -> Result<()> {
    for (path, data) in files(PACK) {
        let location = object::locate(&session.context, &format!("{MEMORY}/{path}"))?;
        location.storage.put(&location.path, data.to_vec().into())?;
    }
    Ok(())
}

fn unpack_to_folder(folder: &Path) -> Result<()> {
    if folder.exists() {
        return Err(CliError::usage(format!("{} exists; name a new folder", folder.display())));
    }
    for (path, data) in files(PACK) {
        let target = folder.join(path);
        let parent = target.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(|e| CliError::io("create", parent, e))?;
        std::fs::write(&target, data).map_err(|e| CliError::io("write", &target, e))?;
    }
    Ok(())
}

/// The files of a pack: paths and bytes. A pack that is cut off ends early.
fn files(mut pack: &[u8]) -> impl Iterator<Item = (&str, &[u8])> {
    std::iter::from_fn(move || {
        let (length, rest) = pack.split_first_chunk::<2>()?;
        let (path, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (data, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        pack = rest;
        Some((str::from_utf8(path).ok()?, data))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pack_is_whole() {
        let bytes: usize = files(PACK).map(|(path, data)| 6 + path.len() + data.len()).sum();
        assert_eq!(bytes, PACK.len());
        assert!(files(PACK).all(|(path, _)| path.starts_with("azulejo/") && !path.contains("..")));
        assert_eq!(files(PACK).filter(|(path, _)| path.ends_with(".wrt")).count(), 5);
    }
}
