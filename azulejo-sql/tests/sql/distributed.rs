//! Queries over three worker processes: the answers of one process, or an error.

use super::random_sql::{Query, check};
use super::support::{Numbers, TestResult, make, refused, rows};
use azulejo::format::filter::EncryptionKey;
use azulejo::format::{ArraySchema, Datatype};
use azulejo::{ColumnBuffers, ColumnSet, Config, Context, WriteOptions};
use azulejo_sql::distributed::{serve_worker, session_over};
use azulejo_sql::{CellsAPartition, table};
use datafusion::catalog::TableProvider;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_distributed::DistributedExec;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The variable that tells a worker where to write its address.
const ADDRESS: &str = "AZULEJO_SQL_TEST_ADDRESS";

/// The variable with a worker's encryption key.
const KEY: &str = "AZULEJO_SQL_TEST_KEY";

/// What nobody but its owner may see.
const SECRETS: [&str; 2] = [
    "an-encryption-key-of-32-letters!",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCY",
];

/// What a worker process runs: this very program, asked for this test alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a worker, which the tests below start"]
async fn worker() -> TestResult {
    let file = std::env::var(ADDRESS)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let unfinished = format!("{file}.new");
    std::fs::write(&unfinished, listener.local_addr()?.to_string())?;
    std::fs::rename(unfinished, file)?;
    let key = std::env::var(KEY)
        .ok()
        .map(|key| key_of(&key))
        .transpose()?;
    let context = Context::new(Config::default(), key)?;
    serve_worker(&context, Arc::default(), listener).await?;
    Ok(())
}

fn key_of(text: &str) -> TestResult<EncryptionKey> {
    Ok(EncryptionKey::from_slice(text.as_bytes())?)
}

/// A process, which ends with the test.
struct Worker {
    process: Child,
    address: String,
}

impl Worker {
    fn start(folder: &Path, number: usize) -> TestResult<Self> {
        Self::start_with(folder, number, |command| command)
    }

    fn start_with(
        folder: &Path,
        number: usize,
        with: impl FnOnce(&mut Command) -> &mut Command,
    ) -> TestResult<Self> {
        let file = folder.join(format!("worker-{number}"));
        let _ = std::fs::remove_file(&file);
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["--exact", "distributed::worker", "--ignored"])
            .env(ADDRESS, &file)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = with(&mut command).spawn()?;
        let begun = Instant::now();
        loop {
            if let Ok(address) = std::fs::read_to_string(&file) {
                return Ok(Self { process, address });
            }
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "no worker came up"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn three(folder: &Path) -> TestResult<[Self; 3]> {
        Ok([
            Self::start(folder, 0)?,
            Self::start(folder, 1)?,
            Self::start(folder, 2)?,
        ])
    }

    /// SIGKILL.
    fn kill(&mut self) -> TestResult {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// A session over workers, which divides even the smallest arrays.
fn over(context: &Context, workers: &[Worker]) -> TestResult<SessionContext> {
    let config = SessionConfig::new()
        .with_target_partitions(2)
        .with_extension(Arc::new(CellsAPartition(1)));
    let addresses: Vec<String> = workers.iter().map(|w| w.address.clone()).collect();
    Ok(session_over(context, config, Arc::default(), &addresses)?)
}

/// Whether workers share the scans of a query. (`EXPLAIN` shows the plan before it is divided.)
async fn divided(session: &SessionContext, query: &str) -> TestResult<bool> {
    let plan = session.sql(query).await?.create_physical_plan().await?;
    let shown = displayable(plan.as_ref()).indent(false).to_string();
    Ok(plan.is::<DistributedExec>() && shown.contains("DistributedLeafExec"))
}

/// An array of fragments that overlap: `id`, `k` of 100 values, `v`, `n`.
fn events(context: &Context, uri: &str, fragments: i64, cells: i64) -> TestResult {
    let place = context.array(uri);
    place.create(
        ArraySchema::sparse()
            .dimension("id", 0i64..=99_999_999, 1_000_000)
            .attribute("k", Datatype::Int32)
            .attribute("v", Datatype::Float64)
            .attribute("n", Datatype::Int64)
            .capacity(1_000)
            .build()?,
    )?;
    for fragment in 0..fragments {
        let ids: Vec<i64> = (0..cells).map(|i| i * fragments + fragment).collect();
        let k = ids.iter().map(|id| (id % 100) as i32).collect::<Vec<_>>();
        let v = ids
            .iter()
            .map(|id| (id % 1000) as f64 / 4.0)
            .collect::<Vec<_>>();
        let n = ids.iter().map(|id| id % 977).collect::<Vec<_>>();
        let mut writer = place.writer(WriteOptions::new())?;
        writer.write(&ColumnSet::of([
            ColumnBuffers::of_values("id", ids),
            ColumnBuffers::of_values("k", k),
            ColumnBuffers::of_values("v", v),
            ColumnBuffers::of_values("n", n),
        ])?)?;
        writer.finish()?;
    }
    Ok(())
}

const QUERIES: [&str; 14] = [
    "SELECT count(*), min(id), max(v), sum(n) FROM t",
    "SELECT k, count(*), sum(n), max(v) FROM t GROUP BY k ORDER BY k",
    "SELECT count(*), sum(v) FROM t WHERE n % 7 = 3",
    "SELECT * FROM t WHERE id BETWEEN 1000 AND 1010 ORDER BY id",
    "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 20",
    "SELECT id FROM t ORDER BY id LIMIT 5",
    "SELECT a.k, count(*), sum(b.n) FROM t AS a JOIN t AS b ON a.id = b.n WHERE a.id < 1000 GROUP BY a.k ORDER BY a.k",
    "SELECT tile_of(id) AS tile, bucket(k, 10) AS b, count(*) FROM t WHERE k < 35 GROUP BY tile, b ORDER BY tile, b",
    "SELECT k, n FROM t WHERE n = 5 UNION ALL SELECT k, n FROM t WHERE n = 6 ORDER BY k, n",
    "SELECT count(DISTINCT n) FROM t WHERE k IN (1, 3, 99)",
    "SELECT id FROM t WHERE v > (SELECT avg(v) * 1.9 FROM t) ORDER BY id LIMIT 10",
    "SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY id) AS r FROM t WHERE id < 500 ORDER BY k, r",
    "SELECT (SELECT count(*) FROM t WHERE id < 100), sum(n) FROM t WHERE id < 50",
    "SELECT * FROM t WHERE id < 0",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_workers_answer_as_one_process() -> TestResult {
    let folder = tempfile::tempdir()?;
    let context = Context::new(Config::default(), None)?;
    let uri = folder.path().join("events").display().to_string();
    events(&context, &uri, 60, 500)?;
    let workers = Worker::three(folder.path())?;
    let (one, many) = (azulejo_sql::session(&context), over(&context, &workers)?);
    let mut shared = 0;
    for session in [&one, &many] {
        session.register_table("t", table(&context.array(&uri))?)?;
    }
    for query in QUERIES {
        assert_eq!(
            rows(&many, query).await?,
            rows(&one, query).await?,
            "{query}"
        );
        shared += usize::from(divided(&many, query).await?);
    }
    // The coordinator keeps what metadata answers, boxes of one partition, and sorts with a limit.
    assert_eq!(shared, 8, "plans that were divided");
    // All see the snapshot that there was when the query was planned.
    let frame = many.sql("SELECT count(*) FROM t WHERE n >= 0").await?;
    let planned = frame.create_physical_plan().await?;
    rows(&one, "INSERT INTO t VALUES (99999999, 1, 1, 1)").await?;
    let batches = datafusion::physical_plan::collect(planned, many.task_ctx()).await?;
    assert_eq!(super::support::text(&batches)?, ["30000"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_queries_over_workers() -> TestResult {
    let folder = tempfile::tempdir()?;
    let workers = Worker::three(folder.path())?;
    let seeds = std::env::var("AZULEJO_SQL_SEEDS").ok();
    let seeds = seeds
        .and_then(|text| text.parse::<u64>().ok())
        .map_or(6, |seeds| seeds / 4);
    for seed in 0..seeds {
        let mut numbers = Numbers(seed * 104_729 + 7);
        let context = Context::new(Config::default(), None)?;
        let place = context.array(&folder.path().join(format!("a{seed}")).display().to_string());
        make(&place, &mut numbers)?;
        let (one, many) = (azulejo_sql::session(&context), over(&context, &workers)?);
        let array = table(&place)?;
        one.register_table("a", array.clone())?;
        many.register_table("a", array.clone())?;
        let schema = array.schema();
        let fields = schema.fields().iter();
        let columns: Vec<_> = fields
            .map(|field| (field.name().clone(), field.data_type().clone()))
            .collect();
        for _ in 0..15 {
            let ndim = array.array().schema().domain.ndim();
            let query = Query::random(&columns, ndim, &mut numbers);
            check(&many, &one, &query)
                .await
                .map_err(|error| format!("seed {seed}: {}\n{error}", query.sql))?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_makes_no_short_answer() -> TestResult {
    let folder = tempfile::tempdir()?;
    let context = Context::new(Config::default(), None)?;
    let uri = folder.path().join("events").display().to_string();
    events(&context, &uri, 20, 20_000)?;
    let query = "SELECT k, n, count(*) AS c, sum(v) AS s FROM t WHERE n % 3 <> 1 GROUP BY k, n ORDER BY k, n";
    let one = azulejo_sql::session(&context);
    one.register_table("t", table(&context.array(&uri))?)?;
    let begun = Instant::now();
    let expected = rows(&one, query).await?;
    let whole = begun.elapsed();
    let (mut failed, mut right) = (0, 0);
    // Killed before it works, while it does, and perhaps afterwards.
    for eighths in [0, 1, 2, 3, 5, 8, 16] {
        let mut workers = Worker::three(folder.path())?;
        let many = over(&context, &workers)?;
        many.register_table("t", table(&context.array(&uri))?)?;
        let running = tokio::spawn(async move {
            let found = rows(&many, query).await.map_err(|error| error.to_string());
            (found, Instant::now())
        });
        tokio::time::sleep(whole * eighths / 8).await;
        let killed = Instant::now();
        workers[1].kill()?;
        let (found, ended) = running.await?;
        match found {
            Ok(found) => {
                assert_eq!(found, expected, "killed after {eighths}/8");
                right += 1;
            }
            Err(error) => {
                let took = ended.saturating_duration_since(killed);
                assert!(took < Duration::from_secs(5), "{took:?} until {error}");
                failed += 1;
            }
        }
    }
    assert!(failed > 0, "no query failed, {right} were right");
    Ok(())
}

/// Passes connections on to an address, and keeps what clients send.
async fn listening_in(to: String, heard: Arc<Mutex<Vec<u8>>>) -> TestResult<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(worker) = TcpStream::connect(&to).await else {
                continue;
            };
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_worker, mut to_worker) = worker.into_split();
            let heard = Arc::clone(&heard);
            tokio::spawn(async move {
                let mut piece = vec![0; 1 << 16];
                while let Ok(read @ 1..) = from_client.read(&mut piece).await {
                    if let Ok(mut heard) = heard.lock() {
                        heard.extend_from_slice(&piece[..read]);
                    }
                    if to_worker.write_all(&piece[..read]).await.is_err() {
                        break;
                    }
                }
            });
            tokio::spawn(async move { tokio::io::copy(&mut from_worker, &mut to_client).await });
        }
    });
    Ok(address)
}

fn is_in(needle: &[u8], bytes: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_carry_no_credentials() -> TestResult {
    let folder = tempfile::tempdir()?;
    let mut config = Config::default();
    config.set("vfs.s3.aws_access_key_id", "AKIAIOSFODNN7EXAMPLE")?;
    config.set("vfs.s3.aws_secret_access_key", SECRETS[1])?;
    let context = Context::new(config, Some(key_of(SECRETS[0])?))?;
    let uri = folder.path().join("secret events").display().to_string();
    events(&context, &uri, 8, 500)?;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (mut workers, mut addresses) = (Vec::new(), Vec::new());
    for number in 0..3 {
        let worker = Worker::start_with(folder.path(), number, |c| c.env(KEY, SECRETS[0]))?;
        addresses.push(listening_in(worker.address.clone(), Arc::clone(&heard)).await?);
        workers.push(worker);
    }
    let config = SessionConfig::new()
        .with_target_partitions(2)
        .with_extension(Arc::new(CellsAPartition(1)));
    let many = session_over(&context, config, Arc::default(), &addresses)?;
    many.register_table("t", table(&context.array(&uri))?)?;
    let query = "SELECT k, count(*) AS c FROM t WHERE n % 7 = 3 GROUP BY k ORDER BY k";
    let one = azulejo_sql::session(&context);
    one.register_table("t", table(&context.array(&uri))?)?;
    assert_eq!(rows(&many, query).await?, rows(&one, query).await?);
    // The aggregate that answers from metadata travels as well.
    rows(&many, "SELECT count(*), max(v) FROM t WHERE id < 1000").await?;

    let heard = heard.lock().map_err(|error| error.to_string())?.clone();
    assert!(is_in(b"secret events", &heard), "no plan was heard");
    for secret in SECRETS.iter().chain(&["AKIAIOSFODNN7EXAMPLE"]) {
        let bytes = secret.as_bytes();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(!is_in(bytes, &heard), "{secret}");
        assert!(!is_in(hex.as_bytes(), &heard), "{secret}");
    }

    // Workers without the key read nothing.
    let without = Worker::three(folder.path())?;
    let many = over(&context, &without)?;
    many.register_table("t", table(&context.array(&uri))?)?;
    assert!(divided(&many, query).await?);
    assert!(rows(&many, query).await.is_err());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_with_keys_of_their_own_stay_on_one_machine() -> TestResult {
    let folder = tempfile::tempdir()?;
    let context = Context::new(Config::default(), None)?;
    let workers = Worker::three(folder.path())?;
    let (one, many) = (azulejo_sql::session(&context), over(&context, &workers)?);
    let uri = folder.path().join("secret").display().to_string();
    let create = |key: &str| {
        format!(
            "CREATE EXTERNAL TABLE t (id BIGINT, k INT, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION '{uri}' OPTIONS ('key' '{key}', 'capacity' '100')"
        )
    };
    rows(&one, &create(SECRETS[0])).await?;
    rows(
        &one,
        "INSERT INTO t SELECT value, value % 7 FROM generate_series(1, 5000)",
    )
    .await?;
    rows(&many, &create(SECRETS[0])).await?;
    let open = folder.path().join("open").display().to_string();
    events(&context, &open, 8, 500)?;
    let query = "SELECT k, count(*) AS c FROM t WHERE id % 3 = 1 GROUP BY k ORDER BY k";
    assert_eq!(rows(&one, query).await?.len(), 7);
    let joined = format!("SELECT count(*) FROM t JOIN '{open}' AS o ON t.id = o.n");
    let metadata = format!("SELECT count(*) FROM '{open}' WHERE n = (SELECT max(k) FROM t)");
    for query in [query, joined.as_str(), "SELECT max(id) FROM t", &metadata] {
        let begun = Instant::now();
        let said = refused(&many, query).await;
        assert!(begun.elapsed() < Duration::from_secs(5), "{query}");
        assert!(said.contains("read on one machine only"), "{said}");
        assert!(!said.contains(SECRETS[0]), "{said}");
    }
    // Writing needs no worker, and other tables go on.
    rows(&many, "INSERT INTO t VALUES (6000, 1)").await?;
    assert_eq!(rows(&one, "SELECT max(id) FROM t").await?, ["6000"]);
    let others = format!("SELECT k, count(*) FROM '{open}' GROUP BY k ORDER BY k");
    assert!(divided(&many, &others).await?);
    assert_eq!(rows(&many, &others).await?, rows(&one, &others).await?);
    Ok(())
}
