//! What stated queries read: so many tiles of these fields, and no more.

use super::support::{TestResult, rows};
use azulejo::format::filter::Pipeline;
use azulejo::format::{ArraySchema, Datatype, NdRectangle, Range};
use azulejo::storage::{LocalStorage, MemoryStorage, Request, RequestLog, RequestLogStorage};
use azulejo::{ColumnBuffers, ColumnSet, Config, Context, WriteOptions};
use azulejo_sql::session_in;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// Cells of a tile.
const TILE: i64 = 1_000;

/// Tiles of the sparse array.
const TILES: i64 = 32;

/// Bytes before the cells of a tile: the number of its chunks, and the lengths of one.
const HEADERS: u64 = 8 + 12;

struct Logged {
    _folder: tempfile::TempDir,
    context: Context,
    log: RequestLog,
    uri: String,
}

impl Logged {
    fn new() -> TestResult<Self> {
        let folder = tempfile::tempdir()?;
        let storage = RequestLogStorage::new(Arc::new(LocalStorage::new()));
        let log = storage.log();
        let config = Config::new().decoded_cache(0).threads(2);
        let memory = Arc::new(MemoryStorage::new());
        let context = Context::with_storages(config, None, Arc::new(storage), memory)?;
        let uri = folder.path().join("array").display().to_string();
        Ok(Self {
            _folder: folder,
            context,
            log,
            uri,
        })
    }

    /// A session in which the array is the table `t`.
    fn session(&self, partitions: usize) -> TestResult<SessionContext> {
        // Partitions even of few tiles.
        let cells = azulejo_sql::CellsAPartition(4 * TILE as u64);
        let config = SessionConfig::new().with_target_partitions(partitions);
        let config = config.with_extension(Arc::new(cells));
        let session = azulejo_sql::session_with(&self.context, config);
        session.register_table("t", azulejo_sql::table(&self.context.array(&self.uri))?)?;
        Ok(session)
    }

    /// Runs a query; its rows, and what was read of each field's file: how many tiles' bytes.
    async fn run(&self, session: &SessionContext, query: &str) -> TestResult<(String, String)> {
        let _ = self.log.take();
        let found = rows(session, query).await?;
        let mut bytes: BTreeMap<String, u64> = BTreeMap::new();
        for request in self.log.take() {
            let Request::Read {
                path, bytes: read, ..
            } = request
            else {
                continue;
            };
            let path = path.to_string();
            let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
            if path.contains("__fragments") && !name.starts_with("__") {
                *bytes
                    .entry(name.trim_end_matches(".tdb").to_owned())
                    .or_default() += read;
            }
        }
        let mut text = String::new();
        for (file, bytes) in bytes {
            if !text.is_empty() {
                text.push(' ');
            }
            let tile = match file.as_str() {
                "d0" | "a1" | "a2" => TILE as u64 * 8 + HEADERS,
                "a0" => TILE as u64 * 4 + HEADERS,
                // Offsets of strings.
                "a3" => TILE as u64 * 8 + HEADERS,
                // Strings of 4 bytes.
                _ => TILE as u64 * 4 + HEADERS,
            };
            match bytes % tile {
                0 => write!(text, "{file}:{}", bytes / tile)?,
                _ => write!(text, "{file}:{bytes}B")?,
            }
        }
        let found = match found.len() {
            0..=3 => found.join(" "),
            rows => format!("{rows} rows"),
        };
        Ok((found, text))
    }

    /// Holds each query's rows and reads against what is stated, and shows all that differ.
    async fn check(&self, session: &SessionContext, stated: &[[&str; 3]]) -> TestResult {
        let mut differ = String::new();
        for [query, found, read] in stated {
            let now = self.run(session, query).await?;
            if (now.0.as_str(), now.1.as_str()) != (*found, *read) {
                writeln!(
                    differ,
                    "{query}\n  gave {:?}, stated {found:?}\n  read {:?}, stated {read:?}",
                    now.0, now.1
                )?;
            }
        }
        assert!(differ.is_empty(), "{differ}");
        Ok(())
    }
}

/// 32 tiles of 1000 cells: `id` counts up, `a` is its place in the tile, `b` is `id`, `f` half of
/// it, `s` a word for each half of a tile.
fn sparse() -> TestResult<Logged> {
    let logged = Logged::new()?;
    let place = logged.context.array(&logged.uri);
    place.create(
        ArraySchema::sparse()
            .dimension("id", 0i64..=999_999, 1_000_000)
            .attribute("a", Datatype::Int32)
            .attribute("b", Datatype::Int64)
            .attribute("f", Datatype::Float64)
            .attribute("s", Datatype::StringUtf8)
            .coords_filters(Pipeline::default())
            .offsets_filters(Pipeline::default())
            .capacity(TILE as u64)
            .build()?,
    )?;
    let ids: Vec<i64> = (0..TILES * TILE).collect();
    let words = ids.iter().map(|id| format!("w{:03}", id / (TILE / 2)));
    let words: Vec<String> = words.collect();
    let mut writer = place.writer(WriteOptions::new())?;
    writer.write(&ColumnSet::of([
        ColumnBuffers::of_values("id", ids.clone()),
        ColumnBuffers::of_values(
            "a",
            ids.iter().map(|id| (id % TILE) as i32).collect::<Vec<_>>(),
        ),
        ColumnBuffers::of_values("b", ids.clone()),
        ColumnBuffers::of_values(
            "f",
            ids.iter().map(|id| *id as f64 / 2.0).collect::<Vec<_>>(),
        ),
        ColumnBuffers::of_strings("s", words.iter().map(String::as_str)),
    ])?)?;
    writer.finish()?;
    Ok(logged)
}

/// What is read does not depend on how many partitions share the work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sparse_queries_read_what_they_must() -> TestResult {
    let logged = sparse()?;
    for partitions in [1, 4] {
        let session = logged.session(partitions)?;
        logged
            .check(
                &session,
                &[
                    // From metadata alone.
                    ["SELECT count(*) FROM t", "32000", ""],
                    [
                        "SELECT min(a), max(b), sum(b), count(*) FROM t",
                        "0|31999|511984000|32000",
                        "",
                    ],
                    [
                        "SELECT sum(a), min(f), max(f), sum(f) FROM t",
                        "15984000|0.0|15999.5|255992000.0",
                        "",
                    ],
                    // The format keeps no least and greatest values of UTF-8, and `texts` asks for
                    // those of ASCII.
                    [
                        "SELECT min(s), max(s), count(s) FROM t",
                        "w000|w063|32000",
                        "a3:32 a3_var:32",
                    ],
                    // What one field needs is not read of the others.
                    [
                        "SELECT min(s), max(a), sum(b), count(*) FROM t",
                        "w000|999|511984000|32000",
                        "a3:32 a3_var:32",
                    ],
                    [
                        "SELECT max(s), sum(b), min(id) FROM t WHERE id BETWEEN 500 AND 3999",
                        "w007|7873250|500",
                        "a1:1 a3:4 a3_var:4 d0:1",
                    ],
                    ["SELECT min(id), max(id), max(a) FROM t", "0|31999|999", ""],
                    [
                        "SELECT count(*), sum(a) FROM t WHERE id BETWEEN 1000 AND 2999",
                        "2000|999000",
                        "",
                    ],
                    // The two tiles at the ends of a box, for the coordinates that decide.
                    [
                        "SELECT count(*) FROM t WHERE id BETWEEN 1500 AND 4499",
                        "3000",
                        "d0:2",
                    ],
                    // Boxes.
                    [
                        "SELECT b FROM t WHERE id BETWEEN 5500 AND 5502",
                        "5500 5501 5502",
                        "a1:1 d0:1",
                    ],
                    ["SELECT id FROM t WHERE id > 31997", "31998 31999", "d0:1"],
                    [
                        "SELECT a, b FROM t WHERE id = 7007",
                        "7|7007",
                        "a0:1 a1:1 d0:1",
                    ],
                    // Points: tiles between them stay.
                    [
                        "SELECT b FROM t WHERE id IN (3, 31999) ORDER BY id",
                        "3 31999",
                        "a1:2 d0:2",
                    ],
                    [
                        "SELECT b FROM t WHERE id IN (3, 7, 9, 999999)",
                        "3 7 9",
                        "a1:1 d0:1",
                    ],
                    ["SELECT b FROM t WHERE id IN (40000, 50000)", "", ""],
                    // Tiles left out by their statistics; what the condition leaves out of a tile is
                    // not looked at.
                    [
                        "SELECT a FROM t WHERE b > 31996",
                        "997 998 999",
                        "a0:1 a1:1",
                    ],
                    // Patterns pass over no tiles yet.
                    [
                        "SELECT id FROM t WHERE s LIKE 'w014%' AND a < 2",
                        "7000 7001",
                        "a0:32 a3:32 a3_var:32 d0:1",
                    ],
                    [
                        "SELECT id FROM t WHERE s = 'w062' AND b = 31005",
                        "31005",
                        "a1:1 a3:1 a3_var:1 d0:1",
                    ],
                    ["SELECT count(*) FROM t WHERE b < 2000", "2000", ""],
                    ["SELECT id FROM t WHERE f > 1e9", "", ""],
                    // Grouped: the fields that are named.
                    [
                        "SELECT s, count(*) FROM t WHERE id < 2000 GROUP BY s ORDER BY s",
                        "4 rows",
                        "a3:2 a3_var:2",
                    ],
                ],
            )
            .await?;
    }
    Ok(())
}

/// A limit ends a scan, an order that the array has is no sort, and of the opposite one the last
/// tiles come first. What is read does not depend on how many partitions there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_read_the_tiles_of_their_rows() -> TestResult {
    let logged = sparse()?;
    for partitions in [1, 4] {
        let session = logged.session(partitions)?;
        logged
            .check(
                &session,
                &[
                    ["SELECT b FROM t LIMIT 10", "10 rows", "a1:1"],
                    [
                        "SELECT * FROM t LIMIT 1",
                        "0|0|0|0.0|w000",
                        "a0:1 a1:1 a2:1 a3:1 a3_var:1 d0:1",
                    ],
                    [
                        "SELECT b FROM t WHERE id >= 7500 LIMIT 3",
                        "7500 7501 7502",
                        "a1:1 d0:1",
                    ],
                    ["SELECT b FROM t LIMIT 2 OFFSET 1500", "1500 1501", "a1:2"],
                    [
                        "SELECT id, b FROM t ORDER BY id LIMIT 2",
                        "0|0 1|1",
                        "a1:1 d0:1",
                    ],
                    [
                        "SELECT id FROM t WHERE id > 4711 ORDER BY id LIMIT 2 OFFSET 1",
                        "4713 4714",
                        "d0:1",
                    ],
                    ["SELECT b FROM t LIMIT 0", "", ""],
                ],
            )
            .await?;
    }
    // Rows that must be searched for are searched for by all partitions.
    let session = logged.session(1)?;
    logged
        .check(
            &session,
            &[
                [
                    "SELECT b FROM t WHERE b > 20500 ORDER BY id LIMIT 2",
                    "20501 20502",
                    "a1:1 d0:1",
                ],
                // As many tiles again as were looked at before.
                [
                    "SELECT id FROM t WHERE s LIKE 'w014%' LIMIT 2",
                    "7000 7001",
                    "a3:8 a3_var:8 d0:1",
                ],
                [
                    "SELECT b FROM t ORDER BY id DESC LIMIT 2",
                    "31999 31998",
                    "a1:1 d0:1",
                ],
                [
                    "SELECT b FROM t WHERE id < 16000 ORDER BY id DESC, b LIMIT 3",
                    "15999 15998 15997",
                    "a1:1 d0:1",
                ],
                ["SELECT id FROM t ORDER BY b LIMIT 3", "0 1 2", "a1:1 d0:1"],
            ],
        )
        .await
}

/// Least and greatest values of text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_have_bounds_in_metadata() -> TestResult {
    let logged = Logged::new()?;
    let place = logged.context.array(&logged.uri);
    place.create(
        ArraySchema::sparse()
            .string_dimension("k")
            .attribute("a", Datatype::Int32)
            .attribute("b", Datatype::Int64)
            .attribute("c", Datatype::Int64)
            .attribute("s", Datatype::StringAscii)
            .coords_filters(Pipeline::default())
            .offsets_filters(Pipeline::default())
            .capacity(TILE as u64)
            .build()?,
    )?;
    let ids: Vec<i64> = (0..8 * TILE).collect();
    let keys: Vec<String> = ids.iter().map(|id| format!("k{id:04}")).collect();
    let words: Vec<String> = ids.iter().map(|id| format!("w{:03}", id / 500)).collect();
    let mut writer = place.writer(WriteOptions::new())?;
    writer.write(&ColumnSet::of([
        ColumnBuffers::of_strings("k", keys.iter().map(String::as_str)),
        ColumnBuffers::of_values("a", vec![0i32; ids.len()]),
        ColumnBuffers::of_values("b", ids.clone()),
        ColumnBuffers::of_values("c", ids),
        ColumnBuffers::of_strings("s", words.iter().map(String::as_str)),
    ])?)?;
    writer.finish()?;
    let session = logged.session(1)?;
    logged
        .check(
            &session,
            &[
                [
                    "SELECT min(k), max(k), count(k) FROM t",
                    "k0000|k7999|8000",
                    "",
                ],
                ["SELECT min(s), count(s) FROM t", "w000|8000", ""],
                // A greatest value is stored up to its first zero byte: more may follow there, in the
                // tile where that is greatest.
                ["SELECT max(s) FROM t", "w015", "a3:1 a3_var:1"],
            ],
        )
        .await
}

/// What the first rows teach leaves out the tiles behind them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_rows_narrow_what_is_still_to_be_read() -> TestResult {
    let logged = Logged::new()?;
    let place = logged.context.array(&logged.uri);
    place.create(
        ArraySchema::sparse()
            .dimension("id", 0i64..=9_999_999, 10_000_000)
            .attribute("b", Datatype::Int64)
            .capacity(1 << 16)
            .build()?,
    )?;
    // Four pieces of four tiles.
    let ids: Vec<i64> = (0..1 << 20).collect();
    let mut writer = place.writer(WriteOptions::new())?;
    writer.write(&ColumnSet::of([
        ColumnBuffers::of_values("id", ids.clone()),
        ColumnBuffers::of_values("b", ids),
    ])?)?;
    writer.finish()?;
    let session = logged.session(1)?;
    let read = async |query: &str| -> TestResult<(String, u64)> {
        let _ = logged.log.take();
        let found = rows(&session, query).await?.join(" ");
        Ok((found, logged.log.bytes_read()))
    };
    let all = read("SELECT b FROM t WHERE b >= 0 AND b % 2 = 5").await?;
    let top = read("SELECT b FROM t ORDER BY b LIMIT 3").await?;
    assert_eq!(top.0, "0 1 2");
    assert!(top.1 * 3 < all.1, "{} of {} bytes", top.1, all.1);
    rows(&session, "CREATE TABLE few AS VALUES (5), (900000)").await?;
    let joined = read("SELECT t.b FROM t JOIN few ON t.id = few.column1 ORDER BY t.b").await?;
    assert_eq!(joined.0, "5 900000");
    // Two tiles of 16, of two fields.
    assert!(joined.1 * 3 < all.1, "{} of {} bytes", joined.1, all.1);
    Ok(())
}

/// Of dense arrays only the tiles of a box are read, and no coordinates.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dense_queries_read_the_tiles_of_their_box() -> TestResult {
    let logged = Logged::new()?;
    let place = logged.context.array(&logged.uri);
    // 8 x 4 tiles of 1000 cells.
    place.create(
        ArraySchema::dense()
            .dimension("y", 0i32..=399, 50)
            .dimension("x", 0i32..=79, 20)
            .attribute("i", Datatype::Int32)
            .attribute("v", Datatype::Int64)
            .build()?,
    )?;
    let ranges = vec![Range::of(0i32, 399), Range::of(0i32, 79)];
    let mut writer = place.writer(WriteOptions::new().subarray(NdRectangle { ranges }))?;
    writer.write(&ColumnSet::of([
        ColumnBuffers::of_values("i", (0..32_000i32).map(|i| i % 7).collect::<Vec<_>>()),
        ColumnBuffers::of_values("v", (0..32_000i64).collect::<Vec<_>>()),
    ])?)?;
    writer.finish()?;
    let session = logged.session(1)?;
    logged
        .check(
            &session,
            &[
                ["SELECT count(*) FROM t", "32000", ""],
                [
                    "SELECT min(i), max(v), sum(i), sum(v), count(*) FROM t",
                    "0|31999|95994|511984000|32000",
                    "",
                ],
                [
                    "SELECT max(v), count(*) FROM t WHERE y < 100",
                    "7999|8000",
                    "",
                ],
                // Parts of a tile.
                ["SELECT v FROM t LIMIT 3", "0 1 2", "a1:536B"],
                ["SELECT v FROM t ORDER BY y, x LIMIT 2", "0 1", "a1:528B"],
                [
                    "SELECT v FROM t WHERE y = 60 AND x BETWEEN 25 AND 27",
                    "4825 4826 4827",
                    // Cells that no filter has changed are read where they lie: a part of the tile.
                    "a1:536B",
                ],
                [
                    "SELECT y, x FROM t WHERE y = 399 AND x > 77",
                    "399|78 399|79",
                    "",
                ],
                [
                    "SELECT v FROM t WHERE y IN (0, 399) AND x = 0 ORDER BY v",
                    "0 31920",
                    "a1:1040B",
                ],
                [
                    "SELECT y FROM t WHERE v > 31997 ORDER BY y, x",
                    "399 399",
                    "a1:1",
                ],
            ],
        )
        .await
}

/// Sums of what the leaves of a plan that has run have counted.
fn counted(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let below: usize = plan
        .children()
        .iter()
        .map(|child| counted(child, name))
        .sum();
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name(name));
    below + own.map_or(0, |value| value.as_usize())
}

/// Plans that were analyzed say what scans read: as much as the storage was asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn analyzed_plans_say_what_was_read() -> TestResult {
    let logged = sparse()?;
    for partitions in [1, 4] {
        let session = logged.session(partitions)?;
        for (query, read, pruned) in [
            ("SELECT a FROM t WHERE b > 31996", 1, 31),
            ("SELECT b FROM t WHERE id BETWEEN 5500 AND 5502", 1, 0),
            ("SELECT a, s FROM t", 32, 0),
            ("SELECT a FROM t WHERE b < 0", 0, 32),
            ("SELECT id FROM t WHERE id < 2000 AND f >= 500", 1, 1),
        ] {
            let plan = session.sql(query).await?.create_physical_plan().await?;
            let _ = logged.log.take();
            datafusion::physical_plan::collect(Arc::clone(&plan), session.task_ctx()).await?;
            let asked = logged
                .log
                .take()
                .into_iter()
                .filter_map(|request| match request {
                    Request::Read { path, bytes, .. } => Some((path.to_string(), bytes)),
                    _ => None,
                });
            let asked = asked
                .filter(|(path, _)| !path.rsplit('/').next().is_some_and(|n| n.starts_with("__")));
            let asked: u64 = asked.map(|(_, bytes)| bytes).sum();
            let found =
                ["tiles_read", "tiles_pruned", "bytes_scanned"].map(|name| counted(&plan, name));
            assert_eq!(found, [read, pruned, usize::try_from(asked)?], "{query}");
            assert_eq!(counted(&plan, "requests") > 0, read > 0, "{query}");
        }
        let shown = rows(&session, "EXPLAIN ANALYZE SELECT a FROM t WHERE b > 31996").await?;
        assert!(shown.join("\n").contains("tiles_pruned=31"), "{shown:?}");
    }
    Ok(())
}

/// An aggregate that metadata does not answer ends with who waits for it, and counts as others do.
#[test]
fn aggregates_end_with_their_query_and_count_memory() -> TestResult {
    // One thread does all that blocks, in turn.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()?;
    let logged = sparse()?;
    runtime.block_on(async {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(8 << 20));
        let environment = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool));
        let config = SessionConfig::new();
        let session = session_in(&logged.context, config, environment.build_arc()?);
        let table = azulejo_sql::table(&logged.context.array(&logged.uri))?;
        session.register_table("t", table)?;
        let summed = "SELECT count(*), sum(a) FROM t WHERE b > 3";
        let expected = rows(&session, summed).await?;
        let plan = session.sql(summed).await?.create_physical_plan().await?;
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        assert!(shown.contains("ArrayAggregateExec"), "{shown}");

        let (done, is_done) = std::sync::mpsc::channel::<()>();
        let before = tokio::task::spawn_blocking(move || is_done.recv());
        let _ = logged.log.take();
        let mut running = execute_stream(Arc::clone(&plan), session.task_ctx())?;
        let waited = tokio::time::timeout(Duration::from_millis(200), running.next()).await;
        assert!(waited.is_err() && pool.reserved() > 0);
        drop(running);
        done.send(())?;
        before.await??;
        tokio::task::spawn_blocking(|| ()).await?;
        assert_eq!((logged.log.take().len(), pool.reserved()), (0, 0));

        let others = MemoryConsumer::new("others").register(&pool);
        others.try_grow(8 << 20)?;
        let error = super::support::refused(&session, summed).await;
        assert!(error.contains("array aggregates"), "{error}");
        drop(others);
        assert_eq!(rows(&session, summed).await?, expected);
        Ok(())
    })
}
