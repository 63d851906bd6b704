//! Every array of the packed corpus as a table: its rows are what the engine reads, its aggregates
//! those of DataFusion over the same rows.

use super::pack;
use super::support::{TestResult, rows_of, text};
use azulejo::format::filter::EncryptionKey;
use azulejo::storage::Storage;
use azulejo::{Config, Context};
use azulejo_sql::{ArrayTable, TableOptions, session};
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::TableProvider;
use datafusion::prelude::SessionContext;
use serde_json::Value;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_packed_array_is_a_table() -> TestResult {
    let files = pack::files();
    let memory = pack::memory(&files, "made/");
    let keys: Value = serde_json::from_slice(&files["keys.json"])?;
    let (mut arrays, mut rows, mut failures) = (0, 0, Vec::new());
    for (path, bytes) in &files {
        let name = path.strip_prefix("expected/");
        let Some(name) = name.and_then(|path| path.strip_suffix(".json")) else {
            continue;
        };
        let json: Value = serde_json::from_slice(bytes)?;
        if json["kind"] == "group" || json["readable"] == false {
            continue;
        }
        let key = keys.as_object().and_then(|keys| {
            let (_, key) = keys.iter().find(|(part, _)| name.contains(part.as_str()))?;
            EncryptionKey::from_slice(key.as_str()?.as_bytes()).ok()
        });
        let storage = Arc::clone(&memory) as Arc<dyn Storage>;
        let context = pack::context(Config::default(), key, storage);
        match same(&context, &format!("mem://{name}")).await {
            Ok(found) => {
                arrays += 1;
                rows += found;
            }
            Err(error) => {
                let error: String = error.to_string().chars().take(300).collect();
                failures.push(format!("{name}: {error}"));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} failed:\n{}",
        failures.len(),
        failures.len() + arrays,
        failures.join("\n")
    );
    assert!(
        arrays > 550 && rows > 10_000,
        "{arrays} arrays, {rows} rows"
    );
    Ok(())
}

/// Compares an array's table with its rows; how many there are.
async fn same(context: &Context, uri: &str) -> TestResult<usize> {
    let table = Arc::new(ArrayTable::open(context.array(uri), TableOptions::new())?);
    let schema = table.schema();
    let (ours, theirs) = (session(context), session(context));
    theirs.register_table("a", Arc::new(rows_of(&table)?))?;
    ours.register_table("a", table)?;
    let rows = alike(&ours, &theirs, "SELECT * FROM a").await?;
    let mut wanted = vec!["count(*) AS rows".to_owned()];
    for (i, field) in schema.fields().iter().enumerate() {
        // A field may have no name, for which SQL has no word.
        if field.name().is_empty() {
            continue;
        }
        let name = format!("\"{}\"", field.name().replace('"', "\"\""));
        wanted.push(format!("count({name}) AS c{i}"));
        let kind = field.data_type();
        if kind.is_numeric() || kind.is_temporal() || kind.is_string() {
            wanted.push(format!("min({name}) AS l{i}, max({name}) AS g{i}"));
        }
        // What wraps around does so in any order; what is rounded does not.
        if kind.is_integer() {
            wanted.push(format!("sum({name}) AS s{i}"));
        }
        if let DataType::Dictionary(..) = kind {
            wanted.push(format!("min(CAST({name} AS VARCHAR)) AS l{i}"));
        }
    }
    alike(
        &ours,
        &theirs,
        &format!("SELECT {} FROM a", wanted.join(", ")),
    )
    .await?;
    Ok(rows)
}

async fn alike(ours: &SessionContext, theirs: &SessionContext, sql: &str) -> TestResult<usize> {
    let run = async |session: &SessionContext| -> TestResult<Vec<String>> {
        let batches = session.sql(sql).await?.collect().await?;
        let mut rows = text(&batches)?;
        rows.sort();
        Ok(rows)
    };
    let (found, expected) = match (run(ours).await, run(theirs).await) {
        // Some types have no least value, over rows in memory either.
        (Err(_), Err(_)) => return Ok(0),
        (found, expected) => (found?, expected?),
    };
    match found == expected {
        true => Ok(found.len()),
        false => {
            let differ = found.iter().zip(&expected).find(|(a, b)| a != b);
            let (found, expected) = (found.len(), expected.len());
            Err(format!("{sql}: {found} rows, expected {expected}: {differ:?}").into())
        }
    }
}
