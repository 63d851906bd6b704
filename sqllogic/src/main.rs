//! DataFusion's own SQL tests, with arrays for tables.
//!
//! Each file runs twice: as its authors run it, and with every `CREATE TABLE` turned into an array.
//! A query counts if it passes the first time (some need files that are not published) and looks at
//! an array the second time; then it must pass again. What changes rows is counted like a query, and
//! is followed by queries. `EXPLAIN` shows other plans, and is counted apart.

mod changes;
mod known;
mod tables;

use azulejo::{Config, Context};
use azulejo_sql::{AggregateRule, ChangeRule, YieldRule};
use changes::ChangesOfArrays;
use datafusion::prelude::SessionContext;
use datafusion_sqllogictest::{
    DFColumnType, DataFusion, TestContext, df_value_validator, read_dir_recursive,
    setup_scratch_dir, value_normalizer,
};
use futures_util::FutureExt;
use indicatif::ProgressBar;
use known::Why;
use sqllogictest::{Record, parse_file, strict_column_validator};
use std::collections::BTreeMap;
use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tables::{ArraysForTables, KEPT, LOOKED_UP, MADE};

/// What a query may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What became of one query or statement.
struct Ran {
    sql: String,
    /// Where it stands in its file.
    line: u32,
    error: Option<String>,
    /// Whether it looked at an array.
    arrays: bool,
}

#[derive(Default)]
struct Coverage {
    records: usize,
    /// Those that pass over tables in memory.
    sound: usize,
    /// Of these, those that look at arrays.
    counted: usize,
    passed: usize,
    plans: usize,
    /// What was asked, what went wrong, and why that is right, if it is known to be.
    differ: Vec<(String, String, Option<Why>)>,
    /// Those of which nobody knows that they differ.
    wrong: Vec<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments
        .next()
        .ok_or("which folder holds the crate with the tests?")?;
    let only = arguments.next();
    let work = std::env::temp_dir().join(format!("azulejo-sqllogic-{}", std::process::id()));
    for part in ["test_files", "data"] {
        copy(&Path::new(&folder).join(part), &work.join(part))?;
    }
    std::env::set_current_dir(&work)?;
    // A test that panics is a result, not the end.
    std::panic::set_hook(Box::new(|_| {}));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(16 << 20)
        .build()?;
    let coverage = runtime.block_on(all_files(only.as_deref()));
    runtime.shutdown_timeout(Duration::from_secs(1));
    std::env::set_current_dir("/")?;
    std::fs::remove_dir_all(&work)?;
    let coverage = coverage?;
    report(&coverage);
    match coverage.wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("answers differ that are not known to: {:?}", coverage.wrong).into()),
    }
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &to)?,
            false => drop(std::fs::copy(entry.path(), to)?),
        }
    }
    Ok(())
}

async fn all_files(only: Option<&str>) -> Result<Coverage, Box<dyn Error>> {
    let mut files: Vec<PathBuf> = read_dir_recursive("test_files")?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "slt"));
    files.retain(|file| only.is_none_or(|only| file.to_string_lossy().contains(only)));
    files.sort();
    let mut coverage = Coverage::default();
    for file in files {
        let name = file.strip_prefix("test_files")?.to_owned();
        let plain = run(&file, &name, false).await;
        let arrays = run(&file, &name, true).await;
        let (before, differ) = (coverage.counted, coverage.differ.len());
        for (plain, arrays) in plain.iter().zip(&arrays) {
            coverage.add(&name, plain, arrays);
        }
        let now = coverage.differ.len() - differ;
        println!(
            "{}: {} of {} over arrays, {now} differ{}",
            name.display(),
            coverage.counted - before,
            plain.len(),
            match now {
                0 => String::new(),
                _ => format!(" ({} known)", known(&coverage.differ[differ..])),
            }
        );
    }
    Ok(coverage)
}

impl Coverage {
    fn add(&mut self, file: &Path, plain: &Ran, arrays: &Ran) {
        self.records += 1;
        if plain.error.is_some() {
            return;
        }
        self.sound += 1;
        if !arrays.arrays {
            return;
        }
        let sql = plain.sql.trim_start().to_ascii_lowercase();
        if sql.starts_with("explain") {
            self.plans += 1;
            return;
        }
        self.counted += 1;
        match &arrays.error {
            None => self.passed += 1,
            Some(error) => {
                let known = known::reason(file, plain.line, error);
                let at = format!("{}:{}", file.display(), plain.line);
                if known.is_none() {
                    self.wrong.push(at.clone());
                }
                let sql = format!("{at}: {}", plain.sql);
                self.differ.push((sql, error.clone(), known));
            }
        }
    }
}

/// How many of these differences are known to be right.
fn known(differ: &[(String, String, Option<Why>)]) -> usize {
    differ.iter().filter(|(.., known)| known.is_some()).count()
}

/// Runs a file, its tables in memory or arrays.
async fn run(file: &Path, name: &Path, arrays: bool) -> Vec<Ran> {
    let Some(test) = TestContext::try_new_for_test_file(name).await else {
        return Vec::new();
    };
    let mut session = test.session_ctx().clone();
    if arrays {
        match with_arrays(session) {
            Ok(with) => session = with,
            Err(error) => panic!("{error}"),
        }
    }
    if setup_scratch_dir(name).is_err() {
        return Vec::new();
    }
    let Ok(records) = parse_file::<DFColumnType>(file) else {
        return Vec::new();
    };
    let mut runner = sqllogictest::Runner::new(|| async {
        let bar = ProgressBar::hidden();
        Ok(DataFusion::new(session.clone(), name.to_owned(), bar))
    });
    runner.add_label("Datafusion");
    runner.with_column_validator(strict_column_validator);
    runner.with_normalizer(value_normalizer);
    runner.with_validator(df_value_validator);
    let mut ran = Vec::new();
    for record in records {
        let sql = match &record {
            Record::Halt { .. } => break,
            Record::Query { sql, loc, .. } | Record::Statement { sql, loc, .. } => {
                Some((sql.clone(), loc.line()))
            }
            _ => None,
        };
        let before = LOOKED_UP.load(Ordering::Relaxed);
        let running = AssertUnwindSafe(runner.run_async(record)).catch_unwind();
        let error = match tokio::time::timeout(PATIENCE, running).await {
            Err(_) => Some("took too long".into()),
            Ok(Err(_)) => Some("panicked".into()),
            Ok(Ok(Err(error))) => Some(error.to_string()),
            Ok(Ok(Ok(_))) => None,
        };
        if let Some((sql, line)) = sql {
            let arrays = LOOKED_UP.load(Ordering::Relaxed) > before;
            ran.push(Ran {
                sql,
                line,
                error,
                arrays,
            });
        }
    }
    ran
}

/// A session like another one, whose `CREATE TABLE` makes arrays.
fn with_arrays(session: SessionContext) -> datafusion::common::Result<SessionContext> {
    let context = Context::new(Config::default(), None)
        .map_err(|error| datafusion::common::DataFusionError::External(Box::new(error)))?;
    let catalog = session.catalog("datafusion");
    let rules = session
        .into_state_builder()
        .with_analyzer_rule(Arc::new(ChangesOfArrays))
        .with_analyzer_rule(Arc::new(ChangeRule))
        .with_physical_optimizer_rule(Arc::new(AggregateRule))
        .with_physical_optimizer_rule(Arc::new(YieldRule));
    if let Some(catalog) = catalog
        && let Some(schema) = catalog.schema("public")
    {
        let schema = ArraysForTables::new(schema, &context);
        catalog.register_schema("public", Arc::new(schema))?;
    }
    Ok(SessionContext::new_with_state(rules.build()))
}

fn report(coverage: &Coverage) {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for (sql, error, known) in &coverage.differ {
        let known = match known {
            Some(Why::Types) => "names the type of text",
            Some(Why::Order) => "has no ORDER BY",
            None => "not known",
        };
        println!("\n{sql}\n{known}: {error}");
        let reason = error.lines().next().unwrap_or_default();
        *reasons
            .entry(reason.chars().take(90).collect())
            .or_default() += 1;
    }
    for (reason, count) in reasons {
        println!("{count:6}  {reason}");
    }
    let number = |of: &std::sync::atomic::AtomicU64| of.load(Ordering::Relaxed);
    println!(
        "\n{} statements and queries, {} pass over tables in memory; {} tables became arrays, {} could not.\n\
         {} looked at arrays: {} pass, {} differ ({} known). {} were EXPLAIN.",
        coverage.records,
        coverage.sound,
        number(&MADE),
        number(&KEPT),
        coverage.counted,
        coverage.passed,
        coverage.differ.len(),
        known(&coverage.differ),
        coverage.plans,
    );
}
