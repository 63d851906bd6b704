//! The shell: statements line by line, with a history, and a few commands of its own.

use super::Queries;
use super::completion::Completion;
use crate::error::{CliError, Result};
use crate::interrupt;
use crate::session::Session;
use rustyline::config::CompletionType;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

const HELP: &str = "\\d          tables
\\d TABLE    the columns of a table
\\q          leave (or Ctrl-D)
Ctrl-C      ends the statement under way
Tab         completes keywords, functions, tables, and columns of tables that the
            statement names
Statements end with a semicolon and may go over several lines.
An array's URI in quotes is a table: SELECT * FROM 'my_array' LIMIT 3;
";

/// What reads lines.
type Lines<'q> = Editor<Completion<'q>, FileHistory>;

/// Reads statements until there are no more.
pub fn run(session: &mut Session, queries: &Queries) -> Result<()> {
    if !std::io::stdin().is_terminal() {
        let mut text = String::new();
        for line in std::io::stdin().lock().lines() {
            text.push_str(&line?);
            text.push('\n');
        }
        return queries.run(session, &text);
    }
    let history = history_file();
    let mut editor = editor_of(queries, &[])?;
    if let Some(file) = &history {
        // There is none before the first time.
        let _ = editor.load_history(file);
    }
    let mut entries: Vec<String> = editor.history().iter().cloned().collect();
    session.output.note("\\? shows help");
    interrupt::ends_statements_alone();
    let mut statement = String::new();
    let mut reading = Some(editor);
    loop {
        // What runs is without an editor, which takes Ctrl-C for itself as long as it lives.
        let editor = match &mut reading {
            Some(editor) => editor,
            none => none.insert(editor_of(queries, &entries)?),
        };
        let prompt = if statement.is_empty() {
            "azulejo> "
        } else {
            "      -> "
        };
        if let Some(completion) = editor.helper() {
            completion.set_before(&statement);
        }
        let line = match editor.readline(prompt) {
            Ok(line) => line,
            // Ctrl-C gives up what was typed so far.
            Err(ReadlineError::Interrupted) => {
                statement.clear();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(unreadable(&error)),
        };
        if statement.is_empty() && line.trim_start().starts_with('\\') {
            entries.push(line.clone());
            reading = None;
            interrupt::forget();
            match command(session, queries, line.trim()) {
                Ok(true) => continue,
                Ok(false) => break,
                Err(error) => {
                    complain(&error);
                    continue;
                }
            }
        }
        statement.push_str(&line);
        statement.push('\n');
        if !azulejo_sql::ends_statement(&statement) {
            continue;
        }
        let text = std::mem::take(&mut statement);
        if !names_key(&text) {
            entries.push(text.trim().to_owned());
        }
        reading = None;
        interrupt::forget();
        if let Err(error) = queries.run(session, &text) {
            complain(&error);
        }
    }
    if let Some(file) = &history {
        let _ = editor_of(queries, &entries)?.save_history(file);
    }
    Ok(())
}

/// An editor of lines that remembers what was typed before.
fn editor_of<'q>(queries: &'q Queries, entries: &[String]) -> Result<Lines<'q>> {
    let listing = Config::builder().completion_type(CompletionType::List);
    let editor = Lines::with_config(listing.build());
    let mut editor = editor.map_err(|error| unreadable(&error))?;
    editor.set_helper(Some(Completion::new(queries)));
    for entry in entries {
        let _ = editor.add_history_entry(entry);
    }
    Ok(editor)
}

/// A command of the shell's own; whether to go on.
fn command(session: &mut Session, queries: &Queries, line: &str) -> Result<bool> {
    match line.split_once(' ').map_or((line, ""), |(name, rest)| (name, rest.trim())) {
        ("\\q", _) => return Ok(false),
        ("\\d", "") => queries.run(
            session,
            "SELECT table_catalog, table_schema, table_name FROM information_schema.tables WHERE table_schema <> 'information_schema' ORDER BY 1, 2, 3",
        )?,
        ("\\d", table) => queries.run(session, &format!("DESCRIBE {table}"))?,
        ("\\?" | "\\h", _) => {
            session.output.write_all(HELP.as_bytes())?;
            session.output.flush()?;
        }
        (name, _) => return Err(CliError::usage(format!("there is no command {name}; \\? shows them"))),
    }
    Ok(true)
}

/// Whether a statement may have an encryption key in it, which is kept nowhere.
fn names_key(statement: &str) -> bool {
    let lower = statement.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let mut before = "";
    words.any(|word| {
        let is_key = word == "key" && before != "primary";
        if !word.is_empty() {
            before = word;
        }
        is_key
    })
}

fn complain(error: &CliError) {
    anstream::eprintln!("{error}");
}

fn unreadable(error: &ReadlineError) -> CliError {
    CliError::usage(format!("the terminal cannot be read: {error}"))
}

/// The file that keeps what was typed, in the user's folder.
fn history_file() -> Option<PathBuf> {
    let home = std::env::var_os(if cfg!(windows) { "USERPROFILE" } else { "HOME" })?;
    Some(PathBuf::from(home).join(".azulejo_sql_history"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_with_keys_are_not_kept() {
        assert!(names_key("SELECT * FROM azulejo('a', KEY => 'x');"));
        assert!(names_key(
            "CREATE .. PRIMARY KEY (id)) .. OPTIONS ('key' 'x');"
        ));
        assert!(!names_key(
            "CREATE .. (monkey INT, PRIMARY  KEY (id)) OPTIONS ('key_file' 'x');"
        ));
    }
}
