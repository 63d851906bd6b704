//! `azulejo quickstart`: a tour from files to arrays and back in time. Everything that it shows, it
//! does.

mod painting;

use crate::args::{Cli, QuickstartArgs};
use crate::error::{CliError, Result};
use crate::session::Session;
use crate::terminal::{FAINT, HEADING};
use clap::Parser;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What a workshop in Porto wrote down in the spring of 2024.
const ORDERS: &str = include_str!("../../assets/orders.csv");
/// Lines of it that are shown.
const SHOWN_LINES: usize = 5;

/// Runs the command.
pub fn run(session: &mut Session, args: &QuickstartArgs) -> Result<()> {
    if session.output.json {
        if let Some(folder) = &args.keep {
            write_files(folder)?;
        }
        return write_json(session, args.keep.as_deref());
    }
    let place = Place::new(args.keep.as_deref())?;
    let toured = tour("").iter().try_for_each(|stop| visit(session, stop));
    place.leave()?;
    toured?;
    let keep = match &args.keep {
        Some(folder) => format!("The arrays lie in {}. Try next:", folder.display()),
        None => {
            "The arrays were in a temporary folder. To play with them, keep them, and try next:"
                .to_owned()
        }
    };
    writeln!(session.output, "\n{keep}")?;
    let program = program();
    let folder = args.keep.clone().unwrap_or_else(|| PathBuf::from("sample"));
    let folder = folder.display();
    let lines = [
        args.keep
            .is_none()
            .then(|| "quickstart --keep sample".to_owned()),
        Some(format!("export {folder}/tile tile.png")),
        Some(format!(
            "export {folder}/orders orders.parquet --where 'tiles > 100'"
        )),
        Some("import your.csv your_array --dry-run".to_owned()),
        Some("--help".to_owned()),
    ];
    for line in lines.into_iter().flatten() {
        writeln!(session.output, "  {HEADING}{program} {line}{HEADING:#}")?;
    }
    Ok(())
}

/// A folder with the files of the tour, in which it takes place.
struct Place {
    came_from: PathBuf,
    temporary: Option<TempDir>,
}

impl Place {
    fn new(keep: Option<&Path>) -> Result<Self> {
        let here = Path::new(".");
        let came_from = std::env::current_dir().map_err(|e| CliError::io("find", here, e))?;
        let temporary = match keep {
            Some(_) => None,
            None => Some(
                TempDir::with_prefix("azulejo-")
                    .map_err(|e| CliError::io("create a folder in", &std::env::temp_dir(), e))?,
            ),
        };
        let folder = match (&temporary, keep) {
            (Some(temporary), _) => temporary.path().join("sample"),
            (None, keep) => keep.unwrap_or(here).to_path_buf(),
        };
        write_files(&folder)?;
        // So that the commands shown are the ones that run: their paths are short.
        std::env::set_current_dir(&folder).map_err(|e| CliError::io("enter", &folder, e))?;
        Ok(Self {
            came_from,
            temporary,
        })
    }

    fn leave(self) -> Result<()> {
        std::env::set_current_dir(&self.came_from)
            .map_err(|e| CliError::io("enter", &self.came_from, e))?;
        if let Some(temporary) = self.temporary {
            let path = temporary.path().to_path_buf();
            temporary
                .close()
                .map_err(|e| CliError::io("remove", &path, e))?;
        }
        Ok(())
    }
}

/// Puts the files that are imported into a new folder.
fn write_files(folder: &Path) -> Result<()> {
    if folder.exists() {
        return Err(CliError::usage(format!(
            "{} exists; name a new folder",
            folder.display()
        )));
    }
    std::fs::create_dir_all(folder).map_err(|e| CliError::io("create", folder, e))?;
    let days = (0..3).map(|day| (format!("day{}.ndjson", day + 1), painting::day(day)));
    for (name, text) in [("orders.csv".to_owned(), ORDERS.to_owned())]
        .into_iter()
        .chain(days)
    {
        let file = folder.join(name);
        std::fs::write(&file, text).map_err(|e| CliError::io("write", &file, e))?;
    }
    Ok(())
}

/// A stop of the tour: what is to be seen, and the commands (without the program's name) that show
/// it.
struct Stop {
    text: &'static str,
    commands: Vec<Vec<String>>,
}

/// The tour. Names of files and arrays begin with `folder`.
fn tour(folder: &str) -> Vec<Stop> {
    let place = |word: &str| match word.strip_prefix("./") {
        Some(name) => format!("{folder}{name}"),
        None => word.to_owned(),
    };
    let stop = |text, lines: &[&[&str]]| Stop {
        text,
        commands: lines
            .iter()
            .map(|line| line.iter().map(|&word| place(word)).collect())
            .collect(),
    };
    let condition = "tiles >= 200 and glaze in (\"sky\", \"cobalt\") and note is not null";
    vec![
        stop(
            "A workshop in Porto keeps its orders in orders.csv. They become a sparse array, by day and town; types, tile\n\
             extents and filters are chosen from the data:",
            &[
                &[
                    "import",
                    "./orders.csv",
                    "./orders",
                    "--dims",
                    "day,town",
                    "--enumerate",
                    "glaze",
                ],
                &["schema", "./orders"],
            ],
        ),
        stop(
            "A slice: three days of May. An order without a note is not an order with an empty one:",
            &[&["cat", "./orders", "--range", "day=2024-05-01:2024-05-03"]],
        ),
        stop(
            "Cells that meet a condition:",
            &[&["cat", "./orders", "--where", condition, "--limit", "5"]],
        ),
        stop(
            "Aggregates, mostly from what the tiles say of themselves:",
            &[&[
                "agg",
                "./orders",
                "count",
                "sum:tiles",
                "mean:price",
                "max:price",
                "nulls:note",
            ]],
        ),
        stop(
            "A picture is a dense array, a cell a pixel. The first of May:",
            &[
                &[
                    "import",
                    "./day1.ndjson",
                    "./tile",
                    "--dims",
                    "y,x",
                    "--dense",
                    "--type",
                    "colour=UINT8",
                    "--at",
                    "2024-05-01",
                ],
                &["export", "./tile", "./day1.png"],
            ],
        ),
        stop(
            "The second and the third of May: only the box that changes is written. What is it?",
            &[
                &[
                    "import",
                    "./day2.ndjson",
                    "./tile",
                    "--append",
                    "--overwrite",
                    "--at",
                    "2024-05-02",
                ],
                &[
                    "import",
                    "./day3.ndjson",
                    "./tile",
                    "--append",
                    "--overwrite",
                    "--at",
                    "2024-05-03",
                ],
                &["export", "./tile", "./day3.png"],
            ],
        ),
        stop(
            "Each write is a fragment with its time:",
            &[&["fragments", "./tile"]],
        ),
        stop(
            "So the array can be read as it was on any day. Back to the second of May:",
            &[&["export", "./tile", "./day2.png", "--at", "2024-05-02"]],
        ),
        stop(
            "Many small fragments make reading slow; consolidation makes one of them, and vacuum removes what it replaces,\n\
             and with it, here, the days before:",
            &[
                &["consolidate", "./tile"],
                &["vacuum", "./tile"],
                &["fragments", "./tile"],
            ],
        ),
        stop(
            "Two pixels of two rows, red, green and blue: the picture is as it was.",
            &[&["cat", "./tile", "--range", "y=19:20", "--range", "x=19:20"]],
        ),
    ]
}

/// The tour for programs: where its files lie, if they were kept, and every stop with its commands'
/// words, to be run in this order.
fn write_json(session: &mut Session, kept: Option<&Path>) -> Result<()> {
    let folder = kept.map_or_else(
        || "sample".to_owned(),
        |folder| folder.display().to_string(),
    );
    let tour = tour(&format!("{folder}/"));
    let stops: Vec<_> = tour
        .iter()
        .map(|stop| json!({ "text": stop.text, "commands": stop.commands }))
        .collect();
    session
        .output
        .write_json(&json!({ "sample": kept.map(|_| folder), "tour": stops }))
}

fn visit(session: &mut Session, stop: &Stop) -> Result<()> {
    writeln!(session.output, "\n{}", stop.text)?;
    for words in &stop.commands {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        show_line(session, &words)?;
        match words[..] {
            ["export", uri, _, ref time @ ..] => {
                command(session, &words)?;
                picture(session, uri, time.get(1).copied())?;
            }
            ["import", file, ..] => {
                if file == "orders.csv" {
                    head(session)?;
                }
                command(session, &words)?;
            }
            _ => command(session, &words)?,
        }
    }
    Ok(())
}

/// Shows a command line.
fn show_line(session: &mut Session, words: &[&str]) -> Result<()> {
    let shown: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    Ok(writeln!(
        session.output,
        "{FAINT}$ azulejo {}{FAINT:#}",
        shown.join(" ")
    )?)
}

/// Does what a command line says, in this session.
fn command(session: &mut Session, words: &[&str]) -> Result<()> {
    let mut line: Vec<&str> = vec!["azulejo"];
    line.extend(words);
    if words.first() == Some(&"cat") {
        line.extend(["--format", "table"]);
    }
    let cli = Cli::try_parse_from(line).map_err(|e| CliError::usage(e.to_string()))?;
    // What commands note goes to standard error and belongs behind what is here.
    session.output.flush()?;
    super::dispatch(session, cli.command)
}

/// The first lines of the orders.
fn head(session: &mut Session) -> Result<()> {
    for line in ORDERS.lines().take(SHOWN_LINES) {
        writeln!(session.output, "{FAINT}  {line}{FAINT:#}")?;
    }
    let more = ORDERS.lines().count() - SHOWN_LINES;
    Ok(writeln!(
        session.output,
        "{FAINT}  ... and {more} lines more{FAINT:#}"
    )?)
}

/// How this program was called: what the user can type again.
fn program() -> String {
    let called = std::env::args().next().unwrap_or_default();
    if called.contains("target/") {
        called
    } else {
        "azulejo".to_owned()
    }
}

fn quoted(word: &str) -> String {
    if word.contains([' ', '"']) {
        format!("'{word}'")
    } else {
        word.to_owned()
    }
}

/// Draws the picture that was exported with characters too.
fn picture(session: &mut Session, uri: &str, time: Option<&str>) -> Result<()> {
    let mut line = vec!["azulejo", "cat", uri, "--picture=blocks"];
    line.extend(time.iter().flat_map(|time| ["--at", time]));
    let cli = Cli::try_parse_from(line).map_err(|e| CliError::usage(e.to_string()))?;
    super::dispatch(session, cli.command)
}
