//! Statements beside each other, and second tries.

use crate::support::{TestResult, at_once, refused, rows, text};
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::{Config, Context, WriteOptions};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::physical_plan::common::collect;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_several_who_make_an_array_one_does() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let folder = tempfile::tempdir()?;
    let mut made = 0;
    for round in 0..20 {
        let uri = match round % 2 {
            0 => format!("mem://at_once/{round}"),
            _ => folder.path().join(round.to_string()).display().to_string(),
        };
        // Some fail when rows are on their way; columns differ, as do schemas.
        let statements = (0..4).map(|k| match k % 3 {
            0 => format!(
                "COPY (SELECT value AS id, {k} AS v FROM generate_series(1, 1000)) TO '{uri}' STORED AS AZULEJO OPTIONS (dimensions 'id')"
            ),
            1 => format!(
                "CREATE TABLE t{round}_{k} WITH (location = '{uri}', dimensions = 'id', \"tile.id\" = '10') AS SELECT value AS id, {k} AS v FROM generate_series(1, 1000)"
            ),
            _ => format!(
                "COPY (SELECT value AS id, 1 / (value - 1000) AS v, 'x' AS s FROM generate_series(1, 1000)) TO '{uri}' STORED AS AZULEJO OPTIONS (dimensions 'id')"
            ),
        });
        let found = at_once(&session, statements).await?;
        let done: Vec<usize> = (0..4).filter(|&k| found[k].is_ok()).collect();
        assert!(done.len() <= 1 && !done.contains(&2), "{found:?}");
        for error in found.iter().filter_map(|found| found.as_ref().err()) {
            assert!(
                error.contains("already") || error.contains("ivide"),
                "{error}"
            );
        }
        let Some(k) = done.first() else {
            assert!(context.array(&uri).open().is_err(), "{uri} {found:?}");
            continue;
        };
        made += 1;
        assert_eq!(
            rows(
                &session,
                &format!("SELECT count(*), min(v), max(v) FROM '{uri}'")
            )
            .await?,
            [format!("1000|{k}|{k}")]
        );
        assert_eq!(context.array(&uri).open()?.schemas().len(), 1);
    }
    assert!(made > 5, "{made}");
    Ok(())
}

/// A copy that fails takes its array away, but nothing that others have been told is in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn copies_that_fail_leave_what_others_have_written() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let place = context.array("mem://at_once/failing");
    let others = place.clone();
    session.register_udf(create_udf(
        "others_write_and_all_fails",
        vec![DataType::Int64],
        DataType::Boolean,
        Volatility::Volatile,
        Arc::new(move |_: &[ColumnarValue]| {
            let write = || -> azulejo::Result<()> {
                // Rows are made while the array is.
                let begun = Instant::now();
                while others.open().is_err() && begun.elapsed() < Duration::from_secs(20) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                let mut writer = others.writer(WriteOptions::new())?;
                writer.write(&ColumnSet::of([
                    ColumnBuffers::of_values("id", vec![7i64]),
                    ColumnBuffers::of_options("v", [Some(70i64)]),
                ])?)?;
                writer.finish().map(|_| ())
            };
            match write() {
                Ok(()) => exec_err!("no more rows"),
                Err(error) => exec_err!("the others: {error}"),
            }
        }),
    ));
    // Filters are said, so that no rows are looked at before the array is there.
    let copy = "COPY (SELECT value AS id, nullif(value, 0) AS v FROM generate_series(1, 5) WHERE others_write_and_all_fails(value)) TO 'mem://at_once/failing' STORED AS AZULEJO OPTIONS (dimensions 'id', filters 'zstd:3')";
    let error = refused(&session, copy).await;
    assert!(error.contains("no more rows"), "{error}");
    assert_eq!(
        rows(&session, "SELECT * FROM 'mem://at_once/failing'").await?,
        ["7|70"]
    );
    Ok(())
}

#[tokio::test]
async fn what_failed_is_tried_again() -> TestResult {
    let folder = tempfile::tempdir()?;
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    for (kind, uri, options) in [
        ("cells", "mem://again".to_owned(), ""),
        (
            "files",
            folder.path().join("again").display().to_string(),
            "",
        ),
        (
            "grid",
            folder.path().join("dense").display().to_string(),
            "'dense' 'true', 'tile.id' '10', ",
        ),
    ] {
        let (count, insert) = (
            format!("SELECT count(*), sum(v) FROM {kind}"),
            format!(
                "INSERT INTO {kind} SELECT value, 60 / (value - {{k}}) FROM generate_series(0, 49)"
            ),
        );
        rows(&session, &format!("CREATE EXTERNAL TABLE {kind} (id BIGINT, v BIGINT, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION '{uri}' OPTIONS ({options}'domain.id' '0..99')")).await?;
        for _ in 0..3 {
            let error = refused(&session, &insert.replace("{k}", "49")).await;
            assert!(error.contains("ivide"), "{error}");
            assert_eq!(rows(&session, &count).await?, ["0|∅"], "{kind}");
        }
        assert_eq!(rows(&session, &insert.replace("{k}", "-1")).await?, ["50"]);
        let sum: i64 = (1..=50).map(|value| 60 / value).sum();
        assert_eq!(
            rows(&session, &count).await?,
            [format!("50|{sum}")],
            "{kind}"
        );
        let place = context.array(&uri);
        assert_eq!(place.open()?.fragments().len(), 1, "{kind}");
        let report = place.check(Default::default())?;
        assert!(report.findings.is_empty(), "{kind}: {report:?}");
        // And the same for an array that its rows make.
        let copy = format!(
            "COPY (SELECT value AS id, 60 / (value - {{k}}) AS v FROM generate_series(0, 49)) TO '{uri}_copy' STORED AS AZULEJO OPTIONS ({options}dimensions 'id', 'domain.id' '0..99')"
        );
        refused(&session, &copy.replace("{k}", "49")).await;
        assert_eq!(
            rows(&session, &copy.replace("{k}", "-1")).await?,
            ["50"],
            "{kind}"
        );
    }
    Ok(())
}

/// Deletes and updates beside inserts: rows that come after a change began are none of its business,
/// and no row is lost, or changed twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn deletes_and_updates_beside_inserts() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let folder = tempfile::tempdir()?;
    for (name, uri) in [
        ("m", "mem://beside".to_owned()),
        ("l", folder.path().join("beside").display().to_string()),
    ] {
        rows(&session, &format!("CREATE EXTERNAL TABLE {name} (id BIGINT, v BIGINT NOT NULL, s VARCHAR, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION '{uri}' OPTIONS ('domain.id' '0..99999', 'capacity' '7')")).await?;
        rows(
            &session,
            &format!("INSERT INTO {name} SELECT value, 0, NULL FROM generate_series(0, 999)"),
        )
        .await?;
        for round in 0..6i64 {
            let first = 1_000 * (round + 1);
            let statements = [
                // By a condition, by coordinates (nulls), both of rows that no other changes.
                format!(
                    "DELETE FROM {name} WHERE id BETWEEN {} AND {}",
                    round * 50,
                    round * 50 + 24
                ),
                format!(
                    "DELETE FROM {name} WHERE id BETWEEN {} AND {} AND s IS NOT DISTINCT FROM NULL",
                    round * 50 + 25,
                    round * 50 + 49
                ),
                format!("UPDATE {name} SET v = v + 1 WHERE id BETWEEN 500 AND 599"),
                format!("UPDATE {name} SET s = s || 'x' WHERE id BETWEEN 600 AND 699"),
                format!(
                    "INSERT INTO {name} SELECT value, 5, 'new' FROM generate_series({first}, {})",
                    first + 99
                ),
                format!(
                    "INSERT INTO {name} SELECT value, 6, 'new' FROM generate_series({}, {})",
                    first + 100,
                    first + 199
                ),
            ];
            let found = at_once(&session, statements).await?;
            let counts = found.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
            assert_eq!(
                counts,
                ["25", "25", "100", "100", "100", "100"],
                "{name} {round}"
            );
            // They are not hidden by a delete that began before them.
            let new = format!("SELECT count(*), sum(v) FROM {name} WHERE s = 'new'");
            let rounds = round + 1;
            assert_eq!(
                rows(&session, &new).await?,
                [format!("{}|{}", 200 * rounds, 1_100 * rounds)]
            );
            let old = format!("SELECT count(*), sum(v), min(id) FROM {name} WHERE s IS NULL");
            assert_eq!(
                rows(&session, &old).await?,
                [format!(
                    "{}|{}|{}",
                    1_000 - 50 * rounds,
                    100 * rounds,
                    50 * rounds
                )]
            );
        }
        let place = context.array(&uri);
        let report = place.check(Default::default())?;
        assert!(report.findings.is_empty(), "{report:?}");
    }
    Ok(())
}

/// Several who change the same rows: each statement counts as a whole, whichever comes last.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_of_the_same_rows_are_whole() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let create = "CREATE EXTERNAL TABLE t (id BIGINT, v BIGINT NOT NULL, w BIGINT NOT NULL, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://whole' OPTIONS ('domain.id' '0..9999', 'capacity' '10')";
    rows(&session, create).await?;
    rows(
        &session,
        "INSERT INTO t SELECT value, 0, 0 AS w FROM generate_series(0, 199)",
    )
    .await?;
    for _ in 0..5 {
        let mut statements: Vec<String> = (1..=4)
            .map(|k| format!("UPDATE t SET v = {k}, w = {k} * 10"))
            .collect();
        statements.push("INSERT INTO t SELECT value, 9, 90 FROM generate_series(0, 199)".into());
        let asks = (0..4).map(|_| {
            "SELECT count(DISTINCT v), min(v * 10 - w), max(v * 10 - w), count(*) FROM t".to_owned()
        });
        let all = at_once(&session, statements.into_iter().chain(asks)).await?;
        let all = all.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        for answer in &all[5..] {
            assert_eq!(answer, "1|0|0|200");
        }
    }
    rows(&session, "DELETE FROM t WHERE v > 0").await?;
    assert_eq!(rows(&session, "SELECT * FROM t").await?, [""; 0]);
    assert_eq!(
        rows(&session, "INSERT INTO t VALUES (3, 1, 10)").await?,
        ["1"]
    );
    assert_eq!(rows(&session, "SELECT * FROM t").await?, ["3|1|10"]);
    Ok(())
}

/// Partitions of a scan see the same rows, also where a vacuum takes the files between two of them.
#[tokio::test]
async fn a_scan_is_of_one_moment_whatever_is_merged_meanwhile() -> TestResult {
    for (changed, dense) in [
        (false, "false"),
        (true, "false"),
        (false, "true"),
        (true, "true"),
    ] {
        let config = Config::new().decoded_cache(0);
        let context = Context::new(config, None)?;
        let config = SessionConfig::new().with_target_partitions(2);
        let config = config.with_extension(Arc::new(azulejo_sql::CellsAPartition(10)));
        let session = azulejo_sql::session_with(&context, config);
        let extent = match dense {
            "true" => "'tile.id' '10'",
            _ => "'capacity' '10'",
        };
        rows(&session, &format!("CREATE EXTERNAL TABLE t (id BIGINT, v BIGINT NOT NULL, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://moment' OPTIONS ('dense' '{dense}', {extent}, 'domain.id' '0..99')")).await?;
        for first in [0, 50] {
            let last = first + 49;
            let insert =
                format!("INSERT INTO t SELECT value, 0 FROM generate_series({first}, {last})");
            rows(&session, &insert).await?;
        }
        let plan = session.sql("SELECT v FROM t").await?;
        let plan = plan.create_physical_plan().await?;
        assert_eq!(plan.output_partitioning().partition_count(), 2);
        let part = |number| {
            let stream = plan.execute(number, session.task_ctx());
            async move { text(&collect(stream?).await?) }
        };
        let mut found = part(0).await?;

        if changed {
            let later = "INSERT INTO t SELECT value, 1 FROM generate_series(0, 99)";
            rows(&session, later).await?;
        }
        let place = context.array("mem://moment");
        place.consolidate(&FragmentOptions::new())?;
        let removed = place.vacuum(Mode::Fragments, VacuumOptions::default())?;
        assert!(removed.folders.len() >= 2);

        match part(1).await {
            Ok(more) => {
                found.extend(more);
                assert_eq!(found, vec!["0"; 100], "{changed} {dense}");
            }
            // What was merged with what came later cannot tell the rows from before.
            Err(error) => assert!(changed, "{dense}: {error}"),
        }
        let now = if changed { "100|100" } else { "100|0" };
        let sums = "SELECT count(*), sum(v) FROM t";
        assert_eq!(rows(&session, sums).await?, [now]);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_table_that_is_altered_is_never_missing() -> TestResult {
    let session = azulejo_sql::session(&Context::new(Config::default(), None)?);
    for statement in [
        "CREATE EXTERNAL TABLE t (id INT, v INT, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://altered'",
        "INSERT INTO t VALUES (1, 10), (2, 20)",
    ] {
        rows(&session, statement).await?;
    }
    let queries = (0..400).map(|_| "SELECT sum(v) FROM t".to_owned());
    let (found, altered) = tokio::join!(at_once(&session, queries), add_columns(&session));
    altered?;
    for found in found? {
        match found {
            Ok(found) => assert_eq!(found, ["30"]),
            // Who looked before is told so.
            Err(error) => assert!(error.to_string().contains("has changed since"), "{error}"),
        }
    }
    assert_eq!(rows(&session, "SELECT v, c0, c29 FROM t").await?.len(), 2);
    Ok(())
}

async fn add_columns(session: &SessionContext) -> TestResult {
    for k in 0..30 {
        rows(session, &format!("ALTER TABLE t ADD COLUMN c{k} INT")).await?;
    }
    Ok(())
}

/// Each looks at what the ones before it have made.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn columns_that_come_at_once_are_all_there() -> TestResult {
    let session = azulejo_sql::session(&Context::new(Config::default(), None)?);
    for statement in [
        "CREATE EXTERNAL TABLE t (id INT, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://at_once/altered'",
        "INSERT INTO t VALUES (1)",
    ] {
        rows(&session, statement).await?;
    }
    let statements = (0..16).map(|k| match k % 2 {
        0 => format!("ALTER TABLE t ADD COLUMN c{k} INT DEFAULT {k}"),
        _ => format!("ALTER TABLE t ADD COLUMN c{k} BOOLEAN NOT NULL DEFAULT false"),
    });
    for done in at_once(&session, statements).await? {
        done?;
    }
    // The array has false for nothing: only the table knows that it is a default.
    rows(&session, "INSERT INTO t (id) VALUES (2)").await?;
    for k in 0..16 {
        let column = format!("SELECT c{k} FROM t ORDER BY id");
        let expected = if k % 2 == 0 {
            k.to_string()
        } else {
            "false".into()
        };
        assert_eq!(rows(&session, &column).await?, vec![expected; 2], "c{k}");
    }
    // Of several who add the same column one does.
    let same = (0..4).map(|_| "ALTER TABLE t ADD COLUMN once INT".to_owned());
    let done = at_once(&session, same).await?;
    assert_eq!(
        done.iter().filter(|done| done.is_ok()).count(),
        1,
        "{done:?}"
    );
    let refusals = done.iter().filter_map(|done| done.as_ref().err());
    for error in refusals {
        assert!(error.contains("a column once already"), "{error}");
    }
    Ok(())
}
