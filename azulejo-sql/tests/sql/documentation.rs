//! The queries of docs/sql.md run, and give what stands there.

use super::support::TestResult;
use azulejo::{Config, Context};
use azulejo_sql::{session, sql};
use datafusion::arrow::util::pretty::pretty_format_batches;

#[tokio::test]
async fn queries_give_what_is_printed_below_them() -> TestResult {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/sql.md"))?;
    let session = session(&Context::new(Config::default(), None)?);
    let mut blocks = text.split("```").skip(1).step_by(2).peekable();
    let (mut queries, mut results) = (0, 0);
    while let Some(block) = blocks.next() {
        let Some(query) = block.strip_prefix("sql\n") else {
            continue;
        };
        queries += 1;
        let frame = sql(&session, query)
            .await
            .map_err(|error| format!("{query}\n{error}"))?;
        let batches = match frame {
            Some(frame) => frame
                .collect()
                .await
                .map_err(|error| format!("{query}\n{error}"))?,
            None => Vec::new(),
        };
        let Some(expected) = blocks.peek().and_then(|block| block.strip_prefix("text\n")) else {
            continue;
        };
        results += 1;
        let found = pretty_format_batches(&batches)?.to_string();
        assert_eq!(found.trim(), expected.trim(), "{query}");
    }
    assert!(
        queries >= 7 && results >= 6,
        "{queries} queries, {results} results"
    );
    Ok(())
}
