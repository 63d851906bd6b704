//! What SQL costs beside the engine alone: the same columns of an array through a plan and without one, in turn, in
//! processor time (Linux).
//!
//! `cargo run --release --package azulejo-sql --features datafusion --example layer -- URI COLUMN,COLUMN [ROUNDS]`
#![expect(clippy::print_stdout, reason = "a program for a terminal")]

use azulejo::arrow::ArrowOptions;
use azulejo::{Array, Config, Context, ReadOptions};
use datafusion::prelude::SessionConfig;
use futures_util::StreamExt;
use std::error::Error;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Parts that are read side by side.
const PARTS: usize = 2;

/// Processor seconds of this process.
fn spent() -> Outcome<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no such file")?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks = ticks.map(str::parse::<f64>).sum::<Result<f64, _>>()?;
    Ok(ticks / 100.0)
}

async fn engine(array: &Array, columns: &[String]) -> Outcome<usize> {
    let mut reading = Vec::new();
    for part in array.split(&azulejo::Subarray::all(), PARTS)? {
        let options = ReadOptions::new().subarray(part).fields(columns);
        let options = options.layout(azulejo::space::Layout::Unordered);
        let stream = array.read_stream(options.matching_only());
        let mut batches = stream.record_batches(ArrowOptions::new().views(true));
        reading.push(tokio::spawn(async move {
            let mut rows = 0;
            while let Some(batch) = batches.next().await {
                rows += batch?.num_rows();
            }
            Ok::<_, azulejo::Error>(rows)
        }));
    }
    let mut rows = 0;
    for part in reading {
        rows += part.await??;
    }
    Ok(rows)
}

async fn plan(context: &Context, uri: &str, columns: &[String]) -> Outcome<usize> {
    let config = SessionConfig::new().with_target_partitions(PARTS);
    let session = azulejo_sql::session_with(context, config);
    let columns: Vec<String> = columns.iter().map(|name| format!("\"{name}\"")).collect();
    let text = format!("SELECT {} FROM '{uri}'", columns.join(", "));
    let frame = azulejo_sql::sql(&session, &text).await?.ok_or("no rows")?;
    let mut reading = Vec::new();
    for mut batches in frame.execute_stream_partitioned().await? {
        reading.push(tokio::spawn(async move {
            let mut rows = 0;
            while let Some(batch) = batches.next().await {
                rows += batch?.num_rows();
            }
            Ok::<_, datafusion::error::DataFusionError>(rows)
        }));
    }
    let mut rows = 0;
    for part in reading {
        rows += part.await??;
    }
    Ok(rows)
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome<()> {
    let mut words = std::env::args().skip(1);
    let uri = words.next().ok_or("the URI of an array")?;
    let columns = words.next().ok_or("columns")?;
    let columns: Vec<String> = columns.split(',').map(str::to_owned).collect();
    let rounds: usize = words.next().map_or(Ok(10), |text| text.parse())?;
    let context = Context::new(Config::default(), None)?;
    let array = context.array(&uri).open()?;
    let (mut alone, mut planned, mut rows) = (0.0, 0.0, 0);
    // The first round is none of them: files come into memory.
    for round in 0..=rounds {
        let begun = spent()?;
        rows = engine(&array, &columns).await?;
        let between = spent()?;
        let others = plan(&context, &uri, &columns).await?;
        let done = spent()?;
        if rows != others {
            return Err(format!("{rows} rows, and {others}").into());
        }
        if round > 0 {
            alone += between - begun;
            planned += done - between;
        }
    }
    println!(
        "{rows} rows, {rounds} times: {alone:.2} s alone, {planned:.2} s through a plan: {:.2}",
        planned / alone
    );
    Ok(())
}
