//! What Tab completes: keywords, functions, tables, and the columns of tables that the statement
//! names.

use super::Queries;
use datafusion::common::TableReference;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The words of statements that arrays take.
const KEYWORDS: &[&str] = &[
    "ADD",
    "ALL",
    "ALTER",
    "ANALYZE",
    "AND",
    "AS",
    "ASC",
    "AZULEJO",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COLUMN",
    "COPY",
    "CREATE",
    "CROSS",
    "DATE",
    "DEFAULT",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "EXTERNAL",
    "FALSE",
    "FORMAT",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "IN",
    "INNER",
    "INSERT",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "KEY",
    "LEFT",
    "LIKE",
    "LIMIT",
    "LOCATION",
    "NOT",
    "NULL",
    "NULLS",
    "OF",
    "OFFSET",
    "ON",
    "OPTIONS",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "PRIMARY",
    "RIGHT",
    "SELECT",
    "SET",
    "SHOW",
    "STORED",
    "TABLE",
    "TABLES",
    "THEN",
    "TIMESTAMP",
    "TO",
    "TRUE",
    "TRUNCATE",
    "UNION",
    "UPDATE",
    "USING",
    "VALUES",
    "VERBOSE",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
];

/// Names that a statement may go on with.
#[derive(Debug, Default)]
pub struct Names {
    tables: BTreeSet<String>,
    functions: BTreeSet<String>,
    columns: BTreeSet<String>,
}

/// Completes words at the prompt.
pub struct Completion<'a> {
    queries: &'a Queries,
    /// The lines of the statement before this one.
    before: RefCell<String>,
    /// Tables' columns, for one statement: to open an array may take a while.
    columns: RefCell<BTreeMap<String, Vec<String>>>,
}

impl<'a> Completion<'a> {
    /// Completes names of a session.
    pub fn new(queries: &'a Queries) -> Self {
        Self {
            queries,
            before: RefCell::default(),
            columns: RefCell::default(),
        }
    }

    /// The lines of the statement that came before the one that is typed; none: a new statement.
    pub fn set_before(&self, lines: &str) {
        if lines.is_empty() {
            self.columns.borrow_mut().clear();
        }
        lines.clone_into(&mut self.before.borrow_mut());
    }

    fn names(&self, statement: &str) -> Names {
        let context = &self.queries.context;
        let mut names = Names {
            functions: context.state().scalar_functions().keys().cloned().collect(),
            ..Names::default()
        };
        names
            .functions
            .extend(context.state().aggregate_functions().keys().cloned());
        for catalog in context.catalog_names() {
            let Some(of_catalog) = context.catalog(&catalog) else {
                continue;
            };
            for schema in of_catalog.schema_names() {
                let Some(of_schema) = of_catalog.schema(&schema) else {
                    continue;
                };
                let tables = of_schema.table_names();
                names
                    .tables
                    .extend(tables.iter().map(|table| quoted(table)));
                names.tables.insert(quoted(&schema));
            }
            names.tables.insert(quoted(&catalog));
        }
        for table in named(statement) {
            let known = self.columns.borrow().get(&table).cloned();
            let columns = known.unwrap_or_else(|| self.columns_of(&table));
            names
                .columns
                .extend(columns.iter().map(|column| quoted(column)));
            self.columns.borrow_mut().insert(table, columns);
        }
        names
    }

    /// The columns of a table or of an array; none of what is neither.
    fn columns_of(&self, table: &str) -> Vec<String> {
        let reference = match table.strip_prefix('\'') {
            Some(uri) => TableReference::bare(uri),
            None => TableReference::parse_str_normalized(table, true),
        };
        let provider = self.queries.context.table_provider(reference);
        match self.queries.runtime.block_on(provider) {
            Ok(provider) => {
                let schema = provider.schema();
                let fields = schema.fields().iter();
                fields.map(|field| field.name().clone()).collect()
            }
            Err(_) => Vec::new(),
        }
    }
}

impl Completer for Completion<'_> {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = self.before.borrow();
        let Some(start) = word_at(&before, line, pos) else {
            return Ok((pos, Vec::new()));
        };
        let names = self.names(&format!("{before}{line}"));
        Ok((start, matching(&line[start..pos], &line[..start], &names)))
    }
}

impl Hinter for Completion<'_> {
    type Hint = String;
}

impl Highlighter for Completion<'_> {}

impl Validator for Completion<'_> {}

impl Helper for Completion<'_> {}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where the word before the cursor begins; none inside of text in quotes.
fn word_at(before: &str, line: &str, pos: usize) -> Option<usize> {
    let line = line.get(..pos)?;
    let quotes = |text: &str, quote| text.matches(quote).count();
    for quote in ['\'', '"'] {
        if (quotes(before, quote) + quotes(line, quote)) % 2 == 1 {
            return None;
        }
    }
    let word = line.chars().rev().take_while(|c| is_word(*c));
    Some(pos - word.map(char::len_utf8).sum::<usize>())
}

/// What a word may become, behind what stands before it in the line.
fn matching(word: &str, before: &str, names: &Names) -> Vec<String> {
    let begins = |name: &&str| {
        let name = name.trim_start_matches('"');
        let mut of_name = name.chars().flat_map(char::to_lowercase);
        let mut of_word = word.chars().flat_map(char::to_lowercase);
        of_word.all(|c| of_name.next() == Some(c))
    };
    let columns = names.columns.iter().map(String::as_str);
    let tables = names.tables.iter().map(String::as_str);
    let mut found: Vec<String> = columns
        .chain(tables)
        .filter(begins)
        .map(str::to_owned)
        .collect();
    let is_part = before.ends_with('.');
    let is_command = before.trim_start().starts_with('\\');
    if !is_part && !is_command && !word.is_empty() {
        let is_lower = word.chars().all(|c| !c.is_uppercase());
        let keywords = KEYWORDS.iter().copied().filter(begins);
        found.extend(keywords.map(|keyword| match is_lower {
            true => keyword.to_lowercase(),
            false => keyword.to_owned(),
        }));
        let functions = names.functions.iter().map(String::as_str);
        found.extend(functions.filter(begins).map(|name| format!("{name}(")));
    }
    let mut seen = BTreeSet::new();
    found.retain(|name| seen.insert(name.clone()));
    found
}

/// A name as it must stand in a statement.
fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(is_word)
        && !KEYWORDS.contains(&name.to_uppercase().as_str());
    match is_plain {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// The tables that a statement names, and arrays by their URIs, which keep their first quote.
fn named(statement: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let lower = statement.to_ascii_lowercase();
    for keyword in ["from", "join", "update", "into", "table", "azulejo("] {
        for (at, _) in lower.match_indices(keyword) {
            let is_start = !lower[..at].ends_with(is_word);
            let rest = &statement[at + keyword.len()..];
            let name = rest.trim_start();
            if !is_start || (name.len() == rest.len() && !rest.starts_with('\'')) {
                continue;
            }
            let found_name = match name.strip_prefix('\'') {
                Some(uri) => uri.split_once('\'').map(|(uri, _)| format!("'{uri}")),
                None => {
                    let is_end = |c: char| !(is_word(c) || c == '.' || c == '"');
                    let name = name.split(is_end).next().unwrap_or_default();
                    (!name.is_empty()).then(|| name.to_owned())
                }
            };
            found.extend(found_name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let of = |names: &[&str]| names.iter().map(|name| quoted(name)).collect();
        Names {
            tables: of(&["weather", "Wind", "my table"]),
            functions: of(&["width_bucket"]),
            columns: of(&["day", "Weight", "end", "größe"]),
        }
    }

    fn completed(line: &str) -> Vec<String> {
        let start = word_at("", line, line.len()).unwrap();
        matching(&line[start..], &line[..start], &names())
    }

    #[test]
    fn words_become_names_and_keywords() {
        assert_eq!(
            completed("select we"),
            ["Weight", "weather"],
            "columns come first, letter case does not matter"
        );
        assert_eq!(completed("sele"), ["select"]);
        assert_eq!(completed("SELE"), ["SELECT"]);
        assert_eq!(completed("SELECT * FROM my"), ["\"my table\""]);
        assert_eq!(completed("select wid"), ["width_bucket("]);
        assert_eq!(
            completed("select t.d"),
            ["day"],
            "no keyword follows a point"
        );
        assert_eq!(completed("\\d we"), ["Weight", "weather"]);
        assert_eq!(completed("select gr"), ["größe", "group"]);
        assert_eq!(completed("select en"), ["\"end\"", "end"]);
    }

    #[test]
    fn text_is_left_alone() {
        assert_eq!(word_at("", "select 'we", 10), None);
        assert_eq!(word_at("select 'a\n", "we", 2), None);
        assert_eq!(word_at("", "select 'a' = we", 15), Some(13));
        assert_eq!(word_at("", "select größ", 13), Some(7));
    }

    #[test]
    fn statements_name_tables() {
        let of = |statement| named(statement).into_iter().collect::<Vec<_>>();
        assert_eq!(
            of("select d from weather join c.s.wind w"),
            ["c.s.wind", "weather"]
        );
        assert_eq!(of("UPDATE Wind SET "), ["Wind"]);
        assert_eq!(
            of("select  from 'mem://a' join azulejo('mem://b') "),
            ["'mem://a", "'mem://b", "azulejo"]
        );
        assert_eq!(of("select from_unixtime(x) fromage"), [""; 0]);
        assert_eq!(of("delete from"), [""; 0]);
        assert_eq!(of("insert into 'mem://unfinished"), [""; 0]);
    }
}
