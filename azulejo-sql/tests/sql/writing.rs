//! `UPDATE`, `DELETE`, `CREATE TABLE .. AS SELECT`, `COPY .. TO`: what they change, and that they
//! change nothing else.

use super::support::{TestResult, at_once, plan, refused, rows};
use azulejo::column::ColumnType;
use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::schema::Attribute;
use azulejo::format::{ArraySchema, CellValNum, Datatype};
use azulejo::{ColumnBuffers, ColumnSet, Config, Context, WriteOptions};
use azulejo_sql::{session_in, session_with};
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures_util::StreamExt;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// A session with a table `t` of five rows, and a table `few` in memory.
async fn session(context: &Context) -> TestResult<SessionContext> {
    let session = azulejo_sql::session(context);
    for statement in [
        "CREATE EXTERNAL TABLE t (id BIGINT, v INT, s VARCHAR, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://t' OPTIONS ('domain.id' '0..99', 'tile.id' '10')",
        "INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, NULL), (4, NULL, 'd'), (5, 50, 'e')",
        "CREATE TABLE few AS VALUES (2, 200), (3, 300)",
    ] {
        rows(&session, statement).await?;
    }
    Ok(session)
}

const ALL: &str = "SELECT id, v, s FROM t ORDER BY id";

const BEFORE: [&str; 5] = ["1|10|a", "2|20|b", "3|30|∅", "4|∅|d", "5|50|e"];

#[tokio::test]
async fn updates_replace_rows_and_no_others() -> TestResult {
    for (update, changed) in [
        ("UPDATE t SET v = v + 1 WHERE id = 2", vec!["2|21|b"]),
        (
            "UPDATE t SET v = NULL, s = 'x' WHERE v > 20",
            vec!["3|∅|x", "5|∅|x"],
        ),
        (
            "UPDATE t SET s = CAST(id AS VARCHAR) WHERE s IS NULL OR v IS NULL",
            vec!["3|30|3", "4|∅|4"],
        ),
        // Nothing is true of these rows: not all rows.
        ("UPDATE t SET v = 0 WHERE false", vec![]),
        ("UPDATE t SET v = 0 WHERE NULL", vec![]),
        ("UPDATE t SET v = 0 WHERE id = 1 AND id = 2", vec![]),
        ("UPDATE t SET v = 0 WHERE id > 50", vec![]),
        (
            "UPDATE t SET v = 0 WHERE id IN (SELECT column1 FROM few WHERE column2 > 1000)",
            vec![],
        ),
        (
            "UPDATE t SET v = 7 WHERE id IN (SELECT column1 FROM few)",
            vec!["2|7|b", "3|7|∅"],
        ),
        (
            "UPDATE t SET v = (SELECT max(column2) FROM few) WHERE id % 2 = 0",
            vec!["2|300|b", "4|300|d"],
        ),
        // The same table once more, under another name.
        (
            "UPDATE t AS a JOIN t AS b ON b.id = a.id + 1 SET v = b.v",
            vec!["1|20|a", "2|30|b", "3|∅|∅", "4|50|d"],
        ),
        (
            "UPDATE t JOIN t AS b ON b.id = t.id + 3 SET s = b.s, id = t.id",
            vec!["1|10|d", "2|20|e"],
        ),
    ] {
        let context = Context::new(Config::default(), None)?;
        let session = session(&context).await?;
        let array = context.array("mem://t");
        let fragments = array.open()?.fragments().len();
        // Looking at the plan changes nothing.
        plan(&session, update).await?;
        assert_eq!(rows(&session, ALL).await?, BEFORE, "EXPLAIN {update}");
        assert_eq!(
            rows(&session, update).await?,
            [changed.len().to_string()],
            "{update}"
        );
        let id = |row: &str| row.split('|').next().map(str::to_owned);
        let expected: Vec<&str> = BEFORE
            .into_iter()
            .map(|row| {
                changed
                    .iter()
                    .copied()
                    .find(|new| id(new) == id(row))
                    .unwrap_or(row)
            })
            .collect();
        assert_eq!(rows(&session, ALL).await?, expected, "{update}");
        // One fragment, or none.
        let more = array.open()?.fragments().len() - fragments;
        assert_eq!(more, usize::from(!changed.is_empty()), "{update}");
    }
    Ok(())
}

#[tokio::test]
async fn updates_that_cannot_be_are_refused() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context).await?;
    for (update, reason) in [
        ("UPDATE t SET id = 9 WHERE id = 1", "is a dimension"),
        ("UPDATE t SET id = id + 1", "is a dimension"),
        (
            "UPDATE t AS a JOIN t AS b ON b.id = a.id + 1 SET id = b.id",
            "id is a dimension",
        ),
        (
            "UPDATE t JOIN t AS b ON b.id = t.id + 1 SET id = b.id",
            "id is a dimension",
        ),
        ("UPDATE t SET v = 'many' WHERE id = 1", "many"),
        ("UPDATE t SET w = 1", "w"),
        ("UPDATE t SET v = 1, v = v + 1", "v is set twice"),
        (
            "EXPLAIN ANALYZE UPDATE t SET v = 1, v = v + 1",
            "v is set twice",
        ),
        ("PREPARE p AS UPDATE t SET v = 1, v = $1", "v is set twice"),
    ] {
        let error = refused(&session, update).await;
        assert!(error.contains(reason), "{update}: {error}");
        assert_eq!(rows(&session, ALL).await?, BEFORE, "{update}");
    }
    rows(&session, "CREATE EXTERNAL TABLE d (id BIGINT, v INT NOT NULL, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://d' OPTIONS ('duplicates' 'true')").await?;
    rows(&session, "INSERT INTO d VALUES (1, 1), (1, 2)").await?;
    assert!(
        refused(&session, "UPDATE d SET v = 3")
            .await
            .contains("azulejo import --dims .. --unique")
    );
    rows(&session, "CREATE EXTERNAL TABLE n (id BIGINT, v INT NOT NULL, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://n'").await?;
    rows(&session, "INSERT INTO n VALUES (1, 1)").await?;
    refused(&session, "UPDATE n SET v = NULL").await;
    assert_eq!(rows(&session, "SELECT v FROM n").await?, ["1"]);
    // A past is not written to.
    let then = azulejo_sql::ArrayTable::open(
        context.array("mem://t"),
        azulejo_sql::TableOptions::new().at(u64::MAX / 2),
    )?;
    session.register_table("past", Arc::new(then))?;
    assert!(
        refused(&session, "UPDATE past SET v = 1")
            .await
            .contains("as it was")
    );
    assert!(
        refused(&session, "DELETE FROM past")
            .await
            .contains("as it was")
    );
    Ok(())
}

#[tokio::test]
async fn dense_updates_change_the_cells_that_are_named() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    rows(&session, "CREATE EXTERNAL TABLE g (y INT, x INT, v BIGINT NOT NULL, PRIMARY KEY (y, x)) STORED AS AZULEJO LOCATION 'mem://g' OPTIONS ('dense' 'true', 'domain.y' '0..9', 'domain.x' '0..9', 'tile.y' '5', 'tile.x' '5')").await?;
    rows(&session, "INSERT INTO g SELECT y, x, y * 10 + x FROM generate_series(0, 9) AS a(y), generate_series(0, 9) AS b(x)").await?;
    assert_eq!(
        rows(
            &session,
            "UPDATE g SET v = -v WHERE y BETWEEN 2 AND 3 AND x = 4"
        )
        .await?,
        ["2"]
    );
    assert_eq!(
        rows(&session, "SELECT v FROM g WHERE v < 0 ORDER BY y").await?,
        ["-24", "-34"]
    );
    // Two boxes, which are two fragments and one commit.
    let place = context.array("mem://g");
    assert_eq!(place.open()?.fragments().len(), 2);
    assert_eq!(
        rows(&session, "UPDATE g SET v = 0 WHERE v IN (11, 12, 33)").await?,
        ["3"]
    );
    assert_eq!(place.open()?.fragments().len(), 4);
    assert_eq!(
        rows(&session, "SELECT y, x FROM g WHERE v = 0 ORDER BY y, x").await?,
        ["0|0", "1|1", "1|2", "3|3"]
    );
    assert_eq!(rows(&session, "SELECT count(*) FROM g").await?, ["100"]);
    // No place outside the domain, and none twice.
    for (insert, reason) in [
        ("INSERT INTO g VALUES (1, 1, 5), (12, 3, 5)", "outside"),
        (
            "INSERT INTO g VALUES (1, 1, 5), (4, 4, 5), (1, 1, 6)",
            "same cell",
        ),
    ] {
        let error = refused(&session, insert).await;
        assert!(error.contains(reason), "{insert}: {error}");
    }
    assert_eq!(
        rows(&session, "SELECT count(*) FROM g WHERE v = 5").await?,
        ["1"]
    );
    Ok(())
}

/// Rows that lie far apart are written with the cells between them, if there are any.
#[tokio::test]
async fn scattered_updates_are_one_fragment() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    rows(&session, "CREATE EXTERNAL TABLE r (n BIGINT, v BIGINT, s VARCHAR NOT NULL, PRIMARY KEY (n)) STORED AS AZULEJO LOCATION 'mem://r' OPTIONS ('dense' 'true', 'domain.n' '0..9999', 'tile.n' '100')").await?;
    rows(&session, "INSERT INTO r SELECT n, CASE WHEN n % 5 = 0 THEN NULL ELSE n END, 'w' || n FROM generate_series(10, 1009) AS a(n)").await?;
    let place = context.array("mem://r");
    let update = "UPDATE r SET v = -1, s = s || '!' WHERE n % 7 = 0";
    assert_eq!(rows(&session, update).await?, ["143"]);
    assert_eq!(place.open()?.fragments().len(), 2);
    assert_eq!(
        rows(
            &session,
            "SELECT n, v, s FROM r WHERE n BETWEEN 19 AND 22 ORDER BY n"
        )
        .await?,
        ["19|19|w19", "20|∅|w20", "21|-1|w21!", "22|22|w22"]
    );
    assert_eq!(
        rows(&session, "SELECT count(*), count(v), sum(v), min(n), max(n) FROM r").await?,
        rows(&session, "SELECT count(*), count(v), sum(v), min(n), max(n) FROM (SELECT n, CASE WHEN n % 7 = 0 THEN -1 WHEN n % 5 = 0 THEN NULL ELSE n END AS v FROM generate_series(10, 1009) AS a(n))").await?
    );
    // Cells that nobody wrote are not made up.
    let scattered = "INSERT INTO r SELECT n * 2, 0, 'new' FROM generate_series(1000, 1999) AS a(n)";
    let error = refused(&session, scattered).await;
    assert!(
        error.contains("azulejo import --dims .. --unique"),
        "{error}"
    );
    assert_eq!(rows(&session, "SELECT count(*) FROM r").await?, ["1000"]);
    assert_eq!(place.open()?.fragments().len(), 2);
    Ok(())
}

/// Changes find arrays by their URIs in quotes, as queries do; in sessions of tables neither does.
#[tokio::test]
async fn changes_find_arrays_by_their_uris() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    session(&context).await?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("an array.v1").display().to_string();
    let session = azulejo_sql::session(&context);
    let copy = "COPY (SELECT * FROM 'mem://t') TO '{}' STORED AS AZULEJO OPTIONS (dimensions 'id')";
    rows(&session, &copy.replace("{}", &path)).await?;
    rows(&session, "CREATE TABLE few AS VALUES (2, 200), (3, 300)").await?;
    for uri in ["mem://t", &path] {
        let all = format!("SELECT id, v, s FROM '{uri}' ORDER BY id");
        for (change, number) in [
            ("INSERT INTO '{}' VALUES (6, 60, 'f'), (7, 70, 'g')", "2"),
            (
                "INSERT INTO '{}' (s, id, v) SELECT 'h', id + 7, v FROM '{}' WHERE id = 1",
                "1",
            ),
            ("UPDATE '{}' SET v = v + 1 WHERE id = 2", "1"),
            (
                "UPDATE '{}' AS u SET v = 0 WHERE u.id IN (SELECT column1 FROM few) AND u.s IS NULL",
                "1",
            ),
            ("DELETE FROM '{}' WHERE id BETWEEN 4 AND 6", "3"),
        ] {
            let change = change.replace("{}", uri);
            plan(&session, &change).await?;
            assert_eq!(rows(&session, &change).await?, [number], "{change}");
        }
        let left = ["1|10|a", "2|21|b", "3|0|∅", "7|70|g", "8|10|h"];
        assert_eq!(rows(&session, &all).await?, left, "{uri}");
        // Text that is also the name of another table says too little.
        session.register_table(uri, azulejo_sql::table(&context.array("mem://t"))?)?;
        let delete = format!("DELETE FROM '{uri}' WHERE id = 1");
        assert!(
            refused(&session, &delete).await.contains("besides"),
            "{uri}"
        );
        session.deregister_table(uri)?;
        refused(&session, &format!("DELETE FROM \"{uri}\" WHERE id = 1")).await;
        let tables =
            azulejo_sql::session_of_tables(&context, Default::default(), Default::default());
        for statement in [
            &delete,
            &format!("INSERT INTO '{uri}' VALUES (9, 9, 'i')"),
            &all,
        ] {
            refused(&tables, statement).await;
        }
        assert_eq!(rows(&session, &all).await?, left, "{uri}");
    }
    assert!(
        refused(&session, "DELETE FROM 'mem://none' WHERE id = 1")
            .await
            .contains("mem://none")
    );
    Ok(())
}

#[tokio::test]
async fn deletes_take_the_rows_that_are_named() -> TestResult {
    for (delete, left) in [
        ("DELETE FROM t WHERE id = 2", vec![0, 2, 3, 4]),
        ("DELETE FROM t WHERE id BETWEEN 2 AND 4 OR id = 1", vec![4]),
        ("DELETE FROM t", vec![]),
        ("DELETE FROM t WHERE true", vec![]),
        // Nothing is true of these rows: not all rows.
        ("DELETE FROM t WHERE false", vec![0, 1, 2, 3, 4]),
        ("DELETE FROM t WHERE NULL", vec![0, 1, 2, 3, 4]),
        ("DELETE FROM t WHERE id = 1 AND id = 2", vec![0, 1, 2, 3, 4]),
        ("DELETE FROM t WHERE id > 50", vec![0, 1, 2, 3, 4]),
        ("DELETE FROM t WHERE id = 1 + 1", vec![0, 2, 3, 4]),
        // What no array can keep as a condition: rows by their coordinates.
        ("DELETE FROM t WHERE v > 20", vec![0, 1, 3]),
        ("DELETE FROM t WHERE v <> 20 OR s = 'd'", vec![1]),
        ("DELETE FROM t WHERE s IS NOT NULL", vec![2]),
        ("DELETE FROM t WHERE s IS NULL", vec![0, 1, 3, 4]),
        ("DELETE FROM t WHERE id % 2 = 0", vec![0, 2, 4]),
        (
            "DELETE FROM t WHERE id IN (SELECT column1 FROM few)",
            vec![0, 3, 4],
        ),
        (
            "DELETE FROM t WHERE id NOT IN (SELECT column1 FROM few)",
            vec![1, 2],
        ),
        (
            "DELETE FROM t WHERE EXISTS (SELECT 1 FROM few WHERE column1 = t.id)",
            vec![0, 3, 4],
        ),
        (
            "DELETE FROM t WHERE id = (SELECT max(column1) FROM few)",
            vec![0, 1, 3, 4],
        ),
        (
            "DELETE FROM t WHERE v > (SELECT avg(v) FROM t)",
            vec![0, 1, 3],
        ),
        (
            "DELETE FROM t WHERE id IN (SELECT column1 FROM few WHERE column2 > 1000)",
            vec![0, 1, 2, 3, 4],
        ),
    ] {
        let context = Context::new(Config::default(), None)?;
        let session = session(&context).await?;
        plan(&session, delete).await?;
        assert_eq!(rows(&session, ALL).await?, BEFORE, "EXPLAIN {delete}");
        let gone = BEFORE.len() - left.len();
        assert_eq!(
            rows(&session, delete).await?,
            [gone.to_string()],
            "{delete}"
        );
        let expected: Vec<&str> = left.into_iter().map(|row| BEFORE[row]).collect();
        assert_eq!(rows(&session, ALL).await?, expected, "{delete}");
    }
    let context = Context::new(Config::default(), None)?;
    let session = session(&context).await?;
    // Some row, but one.
    for (delete, left) in [
        ("DELETE FROM t LIMIT 1", "4"),
        ("DELETE FROM t WHERE id > 0 LIMIT 1", "3"),
    ] {
        assert_eq!(rows(&session, delete).await?, ["1"], "{delete}");
        let count = rows(&session, "SELECT count(*) FROM t").await?;
        assert_eq!(count, [left], "{delete}");
    }
    let before = rows(&session, ALL).await?;
    // Sessions without our rules do not delete at all.
    let plain = SessionContext::new();
    plain.register_table("t", azulejo_sql::table(&context.array("mem://t"))?)?;
    refused(&plain, "DELETE FROM t WHERE false").await;
    refused(&plain, "UPDATE t SET v = 1 WHERE false").await;
    assert_eq!(rows(&session, ALL).await?, before);
    Ok(())
}

#[tokio::test]
async fn tables_are_made_of_queries() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context).await?;
    let create = "CREATE TABLE u WITH (location = 'mem://u', dimensions = 'k', \"domain.k\" = '0..999', \"tile.k\" = '100', capacity = 3, filters = 'byteshuffle,zstd:5', \"filters.s\" = 'gzip:9') AS SELECT v, id * 10 AS k, s FROM t";
    assert_eq!(rows(&session, create).await?, [""; 0]);
    let all = "SELECT * FROM u ORDER BY k";
    let expected = ["10|10|a", "20|20|b", "30|30|∅", "∅|40|d", "50|50|e"];
    assert_eq!(rows(&session, all).await?, expected);
    let array = context.array("mem://u").open()?;
    assert_eq!((array.fragments().len(), array.schema().capacity), (1, 3));
    let filters: Vec<_> = array
        .schema()
        .attributes
        .iter()
        .map(|a| a.filters.clone())
        .collect();
    assert_eq!(
        filters,
        ["byteshuffle,zstd:5".parse::<Pipeline>()?, "gzip:9".parse()?]
    );
    // The table is there now.
    assert!(refused(&session, create).await.contains("already"));
    let again = create.replace("TABLE u", "TABLE IF NOT EXISTS u");
    rows(&session, &again).await?;
    assert!(
        refused(&session, &create.replace("TABLE u", "TABLE w"))
            .await
            .contains("mem://u")
    );
    assert_eq!(rows(&session, all).await?, expected);
    // A dense one, whatever the order of its rows.
    rows(&session, "CREATE TABLE g WITH (location = 'mem://g', dense = 'true', dimensions = 'y, x', \"domain.y\" = '0..2', \"domain.x\" = '0..3', \"tile.y\" = '2', \"tile.x\" = '2') AS SELECT x, y * 4 + x AS v, y FROM generate_series(0, 2) AS a(y), generate_series(0, 3) AS b(x) ORDER BY v DESC").await?;
    assert_eq!(
        rows(&session, "SELECT count(*), sum(v), max(v) FROM g").await?,
        ["12|66|11"]
    );
    Ok(())
}

#[tokio::test]
async fn copies_are_arrays_or_nothing() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context).await?;
    let copy = "COPY t TO 'mem://copy' STORED AS AZULEJO OPTIONS (dimensions 'id', 'tile.id' '10')";
    assert_eq!(rows(&session, copy).await?, ["5"]);
    assert_eq!(
        rows(&session, "SELECT * FROM 'mem://copy' ORDER BY id").await?,
        BEFORE
    );
    let some = "COPY (SELECT s, id FROM t WHERE v > 10) TO 'mem://some' STORED AS AZULEJO OPTIONS (dimensions 'id')";
    assert_eq!(rows(&session, some).await?, ["3"]);
    assert_eq!(
        rows(&session, "SELECT * FROM 'mem://some' ORDER BY id").await?,
        ["2|b", "3|∅", "5|e"]
    );
    // Names may have commas.
    let commas = "COPY (SELECT id AS \"a,b\", id AS c, v FROM t) TO 'mem://commas' STORED AS AZULEJO OPTIONS (dimensions 'c, a,b')";
    assert_eq!(rows(&session, commas).await?, ["5"]);
    let named = context.array("mem://commas").open()?;
    let dimensions = named.schema().domain.dimensions.iter();
    let dimensions: Vec<&str> = dimensions.map(|d| d.name.as_str()).collect();
    assert_eq!(dimensions, ["c", "a,b"]);
    for (copy, reason) in [
        (copy, "mem://copy"),
        ("COPY t TO 'mem://x' STORED AS AZULEJO", "dimensions"),
        (
            "COPY t TO 'mem://x' STORED AS AZULEJO OPTIONS (dimensions 'k')",
            "no column",
        ),
        (
            "COPY t TO 'mem://x' STORED AS AZULEJO OPTIONS (dimensions 'id', tyle 'id')",
            "tyle",
        ),
        (
            "COPY t TO 'mem://x' STORED AS AZULEJO OPTIONS (dimensions 'id', filters 'zst')",
            "zst",
        ),
        // A null coordinate, and a coordinate twice: found when rows are there already.
        (
            "COPY t TO 'mem://x' STORED AS AZULEJO OPTIONS (dimensions 'v')",
            "",
        ),
        (
            "COPY (SELECT id / 2 AS id, v FROM t) TO 'mem://x' STORED AS AZULEJO OPTIONS (dimensions 'id')",
            "",
        ),
        (
            "COPY (SELECT id, 100 / (id - 3) AS v FROM t) TO 'mem://x' STORED AS AZULEJO OPTIONS (dimensions 'id')",
            "ivide",
        ),
    ] {
        let error = refused(&session, copy).await;
        assert!(error.contains(reason), "{copy}: {error}");
        // Nothing is left of it.
        assert!(context.array("mem://x").open().is_err(), "{copy}");
    }
    assert_eq!(
        rows(&session, "SELECT count(*) FROM 'mem://copy'").await?,
        ["5"]
    );
    // Other formats stay what they are.
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("t.parquet").display().to_string();
    assert_eq!(rows(&session, &format!("COPY t TO '{file}'")).await?, ["5"]);
    assert_eq!(
        rows(&session, &format!("SELECT count(*) FROM '{file}'")).await?,
        ["5"]
    );
    Ok(())
}

#[tokio::test]
async fn an_insert_is_one_fragment_however_many_rows_it_has() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let create = "CREATE EXTERNAL TABLE t (id BIGINT, v DOUBLE, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://t' \
                  OPTIONS ('domain.id' '0..1000000', 'tile.id' '10000')";
    rows(&session, create).await?;
    let insert = "INSERT INTO t SELECT value, value / 2.0 FROM generate_series(1, 100000)";
    assert_eq!(rows(&session, insert).await?, ["100000"]);
    assert_eq!(context.array("mem://t").open()?.fragments().len(), 1);
    let sums = "SELECT count(*), sum(id), sum(v) FROM t";
    assert_eq!(
        rows(&session, sums).await?,
        ["100000|5000050000|2500025000.0"]
    );
    // With less memory there are more fragments, which are seen together.
    let small = Context::new(Config::default().memory_budget(4 << 20), None)?;
    let folder = tempfile::tempdir()?;
    let session = azulejo_sql::session(&small);
    let uri = folder.path().join("t").display().to_string();
    rows(&session, &create.replace("mem://t", &uri)).await?;
    rows(&session, insert).await?;
    assert_eq!(small.array(&uri).open()?.fragments().len(), 2);
    assert_eq!(
        rows(&session, sums).await?,
        ["100000|5000050000|2500025000.0"]
    );
    Ok(())
}

#[tokio::test]
async fn deletes_by_coordinates_take_no_others_along() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    for statement in [
        "CREATE EXTERNAL TABLE m (s VARCHAR, y INT, x DOUBLE, f DOUBLE, PRIMARY KEY (s, y, x)) STORED AS AZULEJO LOCATION 'mem://m' OPTIONS ('domain.y' '-5..1000', 'domain.x' '-10..10')",
        "INSERT INTO m SELECT CASE WHEN v % 3 = 0 THEN '' ELSE chr(0) || (v % 3) END, v % 10 - 5, v / 100.0 - 1.005, CASE WHEN v % 5 = 0 THEN NULL WHEN v % 7 = 0 THEN 'NaN'::double ELSE v END FROM generate_series(1, 200) AS g(v)",
        "CREATE TABLE rows AS SELECT * FROM m",
    ] {
        rows(&session, statement).await?;
    }
    let left = async |table: &str, than: &str| {
        let all = format!("SELECT * FROM {table} WHERE ({than}) IS NOT TRUE ORDER BY s, y, x");
        rows(&session, &all).await
    };
    // NaN is above all numbers, and null is nothing of the kind.
    let mut gone = vec!["false"];
    for condition in ["f < 60", "f > 180", "f = 'NaN'", "f * 2 > 300", "f IS NULL"] {
        rows(&session, &format!("DELETE FROM m WHERE {condition}")).await?;
        gone.push(condition);
        let than = gone.join(" OR ");
        assert_eq!(left("m", "false").await?, left("rows", &than).await?);
    }
    assert!(!left("m", "false").await?.is_empty());

    // Too many rows to be named, or too far apart; then nothing is deleted.
    for statement in [
        "CREATE EXTERNAL TABLE n (y INT, x INT, f DOUBLE, PRIMARY KEY (y, x)) STORED AS AZULEJO LOCATION 'mem://n'",
        "INSERT INTO n SELECT v AS y, v AS x, v AS f FROM generate_series(1, 70000) AS g(v)",
    ] {
        rows(&session, statement).await?;
    }
    let error = refused(&session, "DELETE FROM n WHERE f > 1").await;
    assert!(error.contains("nothing was deleted"), "{error}");
    let error = refused(&session, "DELETE FROM n WHERE f <= 2000").await;
    assert!(error.contains("too far apart"), "{error}");
    assert_eq!(rows(&session, "SELECT count(*) FROM n").await?, ["70000"]);
    // Coordinates of an array with duplicates name no row.
    for statement in [
        "CREATE EXTERNAL TABLE d (x INT, f DOUBLE, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://d' OPTIONS ('duplicates' 'true')",
        "INSERT INTO d VALUES (1, 1), (1, 2)",
    ] {
        rows(&session, statement).await?;
    }
    for delete in [
        "DELETE FROM d WHERE f > 1",
        "DELETE FROM d WHERE x IN (SELECT 1)",
    ] {
        refused(&session, delete).await;
    }
    assert_eq!(rows(&session, "SELECT count(*) FROM d").await?, ["2"]);
    Ok(())
}

/// Rows are written as SQL shows them: days that it cannot show would be lost.
#[tokio::test]
async fn updates_do_not_lose_days_that_sql_cannot_show() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let place = context.array("mem://far");
    let schema = ArraySchema::sparse()
        .dimension("id", 0i64..=99, 10)
        .attribute("d", Datatype::DateTimeDay)
        .attribute("v", Datatype::Int64);
    place.create(schema.build()?)?;
    let write = |id: i64, day: i64| -> TestResult {
        let of_days = ColumnType::new("d", Datatype::DateTimeDay);
        let mut writer = place.writer(WriteOptions::new())?;
        writer.write(&ColumnSet::of([
            ColumnBuffers::of_values("id", vec![id]),
            ColumnBuffers::of_raw(of_days, day.to_le_bytes().to_vec(), None, None)?,
            ColumnBuffers::of_values("v", vec![0i64]),
        ])?)?;
        writer.finish()?;
        Ok(())
    };
    write(1, 19_844)?;
    // No day.
    write(2, i64::MIN)?;
    let update = "UPDATE 'mem://far' SET v = v + 1";
    rows(&session, update).await?;
    let all = "SELECT id, d, v FROM 'mem://far' ORDER BY id";
    let before = ["1|2024-05-01|1", "2|∅|1"];
    assert_eq!(rows(&session, all).await?, before);
    for day in [1 << 40, -(1 << 40)] {
        write(3, day)?;
        let error = refused(&session, update).await;
        assert!(error.contains("cells of d hold times"), "{error}");
    }
    let both = "UPDATE 'mem://far' SET v = 7, d = DATE '2024-05-02' WHERE id = 3";
    rows(&session, both).await?;
    let after = ["1|2024-05-01|1", "2|∅|1", "3|2024-05-02|7"];
    assert_eq!(rows(&session, all).await?, after);
    rows(&session, update).await?;
    Ok(())
}

/// Null cells would fail the condition that is stored, and go.
#[tokio::test]
async fn a_delete_that_has_waited_takes_no_nulls_along() -> TestResult {
    let session = azulejo_sql::session(&Context::new(Config::default(), None)?);
    let create = "CREATE EXTERNAL TABLE t (id BIGINT, v INT, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://waited'";
    rows(&session, create).await?;
    rows(&session, "INSERT INTO t VALUES (1, 1), (2, 5)").await?;
    let delete = "DELETE FROM t WHERE v > 3";
    let frame = session.sql(delete).await?;
    let tasks = Arc::new(frame.task_ctx());
    let plan = frame.create_physical_plan().await?;
    rows(&session, "INSERT INTO t VALUES (3, NULL)").await?;
    let ended = datafusion::physical_plan::collect(plan, tasks).await;
    let error = ended.expect_err("cells are null now").to_string();
    assert!(error.contains("became null"), "{error}");
    let all = "SELECT * FROM t ORDER BY id";
    assert_eq!(rows(&session, all).await?, ["1|1", "2|5", "3|∅"]);
    // Planned anew it names the rows.
    rows(&session, delete).await?;
    assert_eq!(rows(&session, all).await?, ["1|1", "3|∅"]);
    Ok(())
}

#[tokio::test]
async fn external_tables_have_defaults_and_no_clauses_that_are_forgotten() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let create = "CREATE EXTERNAL TABLE t (x INT, v INT DEFAULT 3 + 4, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://t'";
    rows(&session, create).await?;
    rows(&session, "INSERT INTO t (x) VALUES (1)").await?;
    assert_eq!(rows(&session, "SELECT * FROM t").await?, ["1|7"]);
    for insert in [
        "INSERT INTO t VALUES (2, DEFAULT), (3, 30)",
        "INSERT INTO t (v, x) VALUES (default, 4)",
        // Of its location nobody knows a default.
        "INSERT INTO 'mem://t' VALUES (5, DEFAULT)",
    ] {
        rows(&session, insert).await?;
    }
    let all = ["1|7", "2|7", "3|30", "4|7", "5|∅"];
    assert_eq!(rows(&session, "SELECT * FROM t ORDER BY x").await?, all);
    let writes = "SELECT count(*) FROM azulejo_history('mem://t')";
    assert_eq!(rows(&session, writes).await?, ["4"]);
    for (insert, word) in [
        ("INSERT INTO t VALUES (DEFAULT, 5), (6, 6)", "null"),
        ("INSERT INTO t VALUES (DEFAULT, DEFAULT)", "nothing but"),
        ("INSERT INTO t VALUES (6, DEFAULT, 1)", "3 values for 2"),
        ("INSERT INTO t VALUES (6, \"DEFAULT\")", "DEFAULT"),
    ] {
        let error = refused(&session, insert).await;
        assert!(error.contains(word), "{error}");
    }
    assert_eq!(rows(&session, "SELECT * FROM t ORDER BY x").await?, all);
    for (clause, word) in [
        ("PARTITIONED BY (v)", "PARTITIONED BY"),
        ("WITH ORDER (v)", "WITH ORDER"),
    ] {
        let other = create
            .replace("TABLE t", "TABLE u")
            .replace("mem://t", "mem://u");
        let error = refused(
            &session,
            &other.replace(" LOCATION", &format!(" {clause} LOCATION")),
        )
        .await;
        assert!(error.contains(word), "{error}");
    }
    assert!(context.array("mem://u").open().is_err());
    let error = refused(
        &session,
        "CREATE EXTERNAL TABLE w (x INT, v DOUBLE, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://t'",
    )
    .await;
    assert!(error.contains("no column v of type"), "{error}");
    let error = refused(
        &session,
        "CREATE EXTERNAL TABLE w (x INT, v INT, PRIMARY KEY (v)) STORED AS AZULEJO LOCATION 'mem://t'",
    )
    .await;
    assert!(error.contains("has the key (x)"), "{error}");
    // Text has neither bounds nor tiles.
    for option in ["'domain.k' 'a..f'", "'tile.k' '10'"] {
        let create = format!(
            "CREATE EXTERNAL TABLE k (\"K\" VARCHAR, v INT, PRIMARY KEY (\"K\")) STORED AS AZULEJO LOCATION 'mem://k' OPTIONS ({option})"
        );
        let error = refused(&session, &create).await;
        assert!(error.contains("neither domain.K nor tile.K"), "{error}");
        assert!(context.array("mem://k").open().is_err());
    }
    Ok(())
}

/// Columns come and go by one evolution a statement.
#[tokio::test]
async fn tables_are_altered() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    for statement in [
        "CREATE EXTERNAL TABLE t (v INT, x INT, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://t'",
        "INSERT INTO t VALUES (1, 1), (2, 2)",
        "ALTER TABLE t ADD COLUMN w INT",
        "ALTER TABLE t ADD COLUMN d DOUBLE NOT NULL DEFAULT 0.5 + 1, ADD COLUMN s VARCHAR DEFAULT 'none', ADD COLUMN day DATE DEFAULT '2024-05-01', ADD COLUMN clock TIME DEFAULT '12:00:00'",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS w BIGINT",
        "INSERT INTO t (x) VALUES (3)",
        "INSERT INTO t VALUES (4, 4, 4, DEFAULT, NULL, NULL, NULL)",
    ] {
        rows(&session, statement).await?;
    }
    let all = "SELECT * FROM t ORDER BY x";
    let expected = [
        "1|1|∅|1.5|none|2024-05-01|12:00:00",
        "2|2|∅|1.5|none|2024-05-01|12:00:00",
        "∅|3|∅|1.5|none|2024-05-01|12:00:00",
        "4|4|4|1.5|∅|∅|∅",
    ];
    assert_eq!(rows(&session, all).await?, expected);
    for (condition, expected) in [
        ("s = 'none'", &["1", "2", "3"][..]),
        ("w IS NULL", &["1", "2", "3"]),
        ("d > 1 AND day < '2024-05-02'", &["1", "2", "3"]),
        ("clock > '11:00'", &["1", "2", "3"]),
    ] {
        let query = format!("SELECT x FROM t WHERE {condition} ORDER BY x");
        assert_eq!(rows(&session, &query).await?, expected, "{query}");
    }
    // The array keeps the defaults.
    rows(&session, "INSERT INTO 'mem://t' (x) VALUES (5)").await?;
    let fifth = "SELECT v, w, d, s, day FROM t WHERE x = 5";
    assert_eq!(rows(&session, fifth).await?, ["∅|∅|1.5|none|2024-05-01"]);
    // An update writes what it keeps.
    rows(&session, "UPDATE t SET w = v + 10 WHERE x < 3").await?;
    rows(
        &session,
        "ALTER TABLE t DROP COLUMN v, DROP COLUMN IF EXISTS nothing, DROP COLUMN clock, DROP COLUMN day",
    )
    .await?;
    assert_eq!(
        rows(&session, all).await?,
        [
            "1|11|1.5|none",
            "2|12|1.5|none",
            "3|∅|1.5|none",
            "4|4|1.5|∅",
            "5|∅|1.5|none"
        ]
    );
    // Older cells would show what is gone.
    let again = refused(&session, "ALTER TABLE t ADD COLUMN v INT").await;
    assert!(again.contains("another name"), "{again}");
    // By its location.
    rows(
        &session,
        "ALTER TABLE 'mem://t' ADD COLUMN v BIGINT DEFAULT -1",
    )
    .await?;
    let by_location = "SELECT x, v FROM 'mem://t' WHERE x < 3 ORDER BY x";
    assert_eq!(rows(&session, by_location).await?, ["1|-1", "2|-1"]);
    let evolutions = context.array("mem://t").open()?;
    let names = evolutions
        .schema()
        .attributes
        .iter()
        .map(|a| a.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["w", "d", "s", "v"]);
    let rest = "CREATE EXTERNAL TABLE u STORED AS AZULEJO LOCATION 'mem://t'";
    rows(&session, rest).await?;
    for (statement, word) in [
        ("ALTER TABLE u ADD COLUMN v INT", "a column v already"),
        ("ALTER TABLE u DROP COLUMN x", "x is a dimension"),
        ("ALTER TABLE u DROP COLUMN y", "no column y"),
        ("ALTER TABLE u ADD COLUMN y INT NOT NULL", "has no DEFAULT"),
        (
            "ALTER TABLE u ADD COLUMN y INT DEFAULT random()",
            "constant",
        ),
        ("ALTER TABLE u ADD COLUMN y TINYINT DEFAULT 1000", "1000"),
        (
            "ALTER TABLE u ADD COLUMN y VARCHAR DEFAULT ''",
            "empty text",
        ),
        ("ALTER TABLE u ADD COLUMN y DECIMAL(10, 2)", "DOUBLE"),
        ("ALTER TABLE u ADD COLUMN y INT UNIQUE", "UNIQUE"),
        ("ALTER TABLE u RENAME COLUMN v TO y", "UPDATE"),
        ("ALTER TABLE u RENAME TO y", "ADD COLUMN and DROP COLUMN"),
        ("ALTER TABLE nowhere ADD COLUMN y INT", "no table nowhere"),
        (
            "ALTER TABLE u ADD COLUMN y INT, DROP COLUMN x",
            "x is a dimension",
        ),
    ] {
        let error = refused(&session, statement).await;
        assert!(error.contains(word), "{statement}: {error}");
    }
    rows(&session, "ALTER TABLE IF EXISTS nowhere ADD COLUMN y INT").await?;
    let columns = "SELECT * FROM u WHERE x = 1";
    assert_eq!(rows(&session, columns).await?, ["1|11|1.5|none|-1"]);
    // Nothing would have no value.
    rows(
        &session,
        "CREATE EXTERNAL TABLE empty (x INT, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://empty'",
    )
    .await?;
    rows(&session, "ALTER TABLE empty ADD COLUMN y INT NOT NULL").await?;
    let error = refused(&session, "INSERT INTO empty (x) VALUES (1)").await;
    assert!(error.contains("y cannot be null"), "{error}");
    rows(&session, "INSERT INTO empty VALUES (1, 2)").await?;
    assert_eq!(rows(&session, "SELECT * FROM empty").await?, ["1|2"]);
    // An array cannot tell this default from none; the table can.
    for statement in [
        "ALTER TABLE empty ADD COLUMN flag BOOLEAN NOT NULL DEFAULT false",
        "INSERT INTO empty (x, y) VALUES (3, 4)",
        "ALTER TABLE empty ADD COLUMN z INT",
        "INSERT INTO empty (x, y) VALUES (5, 6)",
    ] {
        rows(&session, statement).await?;
    }
    let all = "SELECT * FROM empty ORDER BY x";
    let flagged = ["1|2|false|∅", "3|4|false|∅", "5|6|false|∅"];
    assert_eq!(rows(&session, all).await?, flagged);
    let error = refused(&session, "INSERT INTO 'mem://empty' (x, y) VALUES (7, 8)").await;
    assert!(error.contains("flag cannot be null"), "{error}");
    Ok(())
}

/// What an array has for cells that nobody wrote is what rows have that say nothing.
#[tokio::test]
async fn fill_values_are_defaults() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let number = |name: &str| Attribute::new(name, Datatype::Int32, CellValNum::ONE);
    let filled = |name: &str| number(name).fill_value(7i32.to_le_bytes());
    let mut valid = filled("c").nullable();
    valid.fill_validity = true;
    let schema = ArraySchema::sparse()
        .dimension("x", 0i32..=9, 10)
        .attribute_with(filled("a"))
        .attribute_with(filled("b").nullable())
        .attribute_with(valid);
    context.array("mem://filled").create(schema.build()?)?;
    rows(&session, "INSERT INTO 'mem://filled' (x) VALUES (1)").await?;
    let insert =
        "INSERT INTO 'mem://filled' VALUES (2, DEFAULT, DEFAULT, DEFAULT), (3, 1, 1, NULL)";
    rows(&session, insert).await?;
    let all = "SELECT * FROM 'mem://filled' ORDER BY x";
    assert_eq!(
        rows(&session, all).await?,
        ["1|7|∅|7", "2|7|∅|7", "3|1|1|∅"]
    );
    let declared = "CREATE EXTERNAL TABLE t (x INT, a INT DEFAULT 8, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://filled'";
    rows(&session, declared).await?;
    rows(&session, "INSERT INTO t (x) VALUES (4)").await?;
    let fourth = "SELECT a, b, c FROM t WHERE x = 4";
    assert_eq!(rows(&session, fourth).await?, ["8|∅|7"]);
    let reset = "UPDATE t SET a = DEFAULT, b = default, c = DEFAULT WHERE x = 3";
    rows(&session, reset).await?;
    let third = "SELECT a, b, c FROM t WHERE x = 3";
    assert_eq!(rows(&session, third).await?, ["8|∅|7"]);
    rows(
        &session,
        "UPDATE 'mem://filled' SET a = DEFAULT WHERE x = 3",
    )
    .await?;
    assert_eq!(rows(&session, third).await?, ["7|∅|7"]);
    Ok(())
}

/// Fill values of all kinds, as an update sets them.
#[tokio::test]
async fn updates_set_defaults_of_all_kinds() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let filled = |name: &str, datatype: Datatype, value: i64| {
        let attribute = Attribute::new(name, datatype, CellValNum::ONE);
        attribute.fill_value(value.to_le_bytes())
    };
    let bytes = Attribute::new("bytes", Datatype::Blob, CellValNum::Var).fill_value([0u8, 255]);
    let schema = ArraySchema::sparse()
        .dimension("x", 0i32..=9, 10)
        .attribute_with(filled("span", Datatype::TimeSecond, -90))
        .attribute_with(filled("day", Datatype::DateTimeDay, 19_844))
        .attribute_with(filled("time", Datatype::DateTimeMilli, 1_500))
        .attribute_with(bytes);
    context.array("mem://kinds").create(schema.build()?)?;
    rows(&session, "INSERT INTO 'mem://kinds' (x) VALUES (1)").await?;
    let insert = "INSERT INTO 'mem://kinds' VALUES (2, arrow_cast(5, 'Duration(Second)'), '2000-01-01', '2000-01-02', X'01')";
    rows(&session, insert).await?;
    let distinct = "SELECT count(DISTINCT span), count(DISTINCT day), count(DISTINCT time), count(DISTINCT bytes) FROM 'mem://kinds'";
    assert_eq!(rows(&session, distinct).await?, ["2|2|2|2"]);
    let reset = "UPDATE 'mem://kinds' SET span = DEFAULT, day = DEFAULT, time = DEFAULT, bytes = DEFAULT WHERE x = 2";
    rows(&session, reset).await?;
    assert_eq!(rows(&session, distinct).await?, ["1|1|1|1"]);
    Ok(())
}

/// Zeros that fill up a text of a fixed length, as NumPy's, are none of it.
#[tokio::test]
async fn texts_of_a_fixed_length_are_what_stands_in_them() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let schema = ArraySchema::sparse()
        .dimension("x", 0i32..=9, 10)
        .attribute_with(Attribute::new("c", Datatype::Char, CellValNum::Fixed(3)))
        .attribute_with(Attribute::new("a", Datatype::StringAscii, CellValNum::Fixed(4)).nullable())
        .attribute_with(Attribute::new("v", Datatype::Int32, CellValNum::ONE));
    let place = context.array("mem://fixed");
    place.create(schema.build()?)?;
    let mut writer = place.writer(WriteOptions::new())?;
    let nullable = ColumnType::new("a", Datatype::StringAscii)
        .with_cell_val_num(CellValNum::Fixed(4))
        .with_nulls();
    let mut a = azulejo::column::ColumnBuilder::new(nullable);
    let mut c = azulejo::column::ColumnBuilder::new(
        ColumnType::new("c", Datatype::Char).with_cell_val_num(CellValNum::Fixed(3)),
    );
    for (text, other) in [(b"ab\0", b"q\0\0\0"), (b"abc", b"four")] {
        c.append_cell(text, true);
        a.append_cell(other, true);
    }
    writer.write(&ColumnSet::of([
        ColumnBuffers::of_values("x", vec![1i32, 2]),
        c.finish(),
        a.finish(),
        ColumnBuffers::of_values("v", vec![1i32, 2]),
    ])?)?;
    writer.finish()?;
    let insert = "INSERT INTO 'mem://fixed' VALUES (3, '', NULL, 3), (4, 'z', 'zz', 4)";
    rows(&session, insert).await?;
    let all = "SELECT x, c, a, length(c) FROM 'mem://fixed' ORDER BY x";
    let expected = ["1|ab|q|2", "2|abc|four|3", "3||∅|0", "4|z|zz|1"];
    assert_eq!(rows(&session, all).await?, expected);
    for (condition, expected) in [
        ("c = 'ab'", &["1"][..]),
        ("c IN ('ab', 'z')", &["1", "4"]),
        ("c LIKE 'ab%'", &["1", "2"]),
        ("c > 'ab'", &["2", "4"]),
        ("c = ''", &["3"]),
        ("a = 'q'", &["1"]),
        ("a <> 'q'", &["2", "4"]),
        ("a >= 'q' AND a < 'r'", &["1"]),
        ("a IN ('q', 'zz')", &["1", "4"]),
        ("a NOT IN ('q', 'fourteen')", &["2", "4"]),
        ("a < 'fours'", &["2"]),
        ("a <> 'fourteen' AND a > ''", &["1", "2", "4"]),
        ("a = 'q\0'", &[]),
        ("a LIKE 'z%'", &["4"]),
        ("a IS NULL", &["3"]),
    ] {
        let query = format!("SELECT x FROM 'mem://fixed' WHERE {condition} ORDER BY x");
        assert_eq!(rows(&session, &query).await?, expected, "{query}");
    }
    let told = rows(
        &session,
        "EXPLAIN SELECT x FROM 'mem://fixed' WHERE a = 'q'",
    )
    .await?;
    assert!(!told.join(" ").contains("FilterExec"), "{told:?}");
    rows(
        &session,
        "UPDATE 'mem://fixed' SET v = v + 1, a = 'up' WHERE c = 'ab'",
    )
    .await?;
    rows(&session, "DELETE FROM 'mem://fixed' WHERE a = 'zz'").await?;
    let left = ["1|ab|up|2", "2|abc|four|3", "3||∅|0"];
    assert_eq!(rows(&session, all).await?, left);
    let error = refused(
        &session,
        "INSERT INTO 'mem://fixed' VALUES (5, 'long', 'a', 1)",
    )
    .await;
    assert!(error.contains("has 4 bytes"), "{error}");
    Ok(())
}

/// CHAR need not be text: it is bytes where that is asked for.
#[tokio::test]
async fn char_may_be_bytes() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let schema = ArraySchema::sparse()
        .dimension("x", 0i32..=9, 10)
        .attribute_with(Attribute::new("c", Datatype::Char, CellValNum::Var))
        .attribute_with(Attribute::new("f", Datatype::Char, CellValNum::Fixed(2)));
    let place = context.array("mem://char");
    place.create(schema.build()?)?;
    let var = ColumnType::new("c", Datatype::Char).with_cell_val_num(CellValNum::Var);
    let fixed = ColumnType::new("f", Datatype::Char).with_cell_val_num(CellValNum::Fixed(2));
    let mut c = azulejo::column::ColumnBuilder::new(var);
    let mut f = azulejo::column::ColumnBuilder::new(fixed);
    for (bytes, pair) in [(&b"\xff\x00"[..], b"\x80\x80"), (b"text", b"ab")] {
        c.append_cell(bytes, true);
        f.append_cell(pair, true);
    }
    let mut writer = place.writer(WriteOptions::new())?;
    writer.write(&ColumnSet::of([
        ColumnBuffers::of_values("x", vec![1i32, 2]),
        c.finish(),
        f.finish(),
    ])?)?;
    writer.finish()?;
    let error = refused(&session, "SELECT * FROM 'mem://char'").await;
    assert!(error.contains("bytes => true"), "{error}");
    let declared =
        "CREATE EXTERNAL TABLE t STORED AS AZULEJO LOCATION 'mem://char' OPTIONS (bytes 'true')";
    rows(&session, declared).await?;
    rows(&session, "INSERT INTO t VALUES (3, x'80', x'0102')").await?;
    rows(&session, "UPDATE t SET f = x'6364' WHERE x = 2").await?;
    for from in ["t", "azulejo('mem://char', bytes => true)"] {
        let all = format!("SELECT x, encode(c, 'hex'), encode(f, 'hex') FROM {from} ORDER BY x");
        let expected = ["1|ff00|8080", "2|74657874|6364", "3|80|0102"];
        assert_eq!(rows(&session, &all).await?, expected, "{all}");
        let some = format!("SELECT x FROM {from} WHERE c >= x'80' AND c <> x'80' ORDER BY x");
        assert_eq!(rows(&session, &some).await?, ["1"], "{some}");
    }
    Ok(())
}

/// What an array would not see to is refused, and what was refused is not made.
#[tokio::test]
async fn declarations_are_kept_or_refused() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let create = |columns: &str| {
        format!("CREATE EXTERNAL TABLE t ({columns}) STORED AS AZULEJO LOCATION 'mem://t'")
    };
    for (columns, word) in [
        ("x INT PRIMARY KEY, v INT UNIQUE", "UNIQUE"),
        ("x INT, v INT, PRIMARY KEY (x), UNIQUE (v)", "UNIQUE"),
        (
            "x INT PRIMARY KEY, v INT GENERATED ALWAYS AS (x * 2) STORED",
            "GENERATED",
        ),
        ("x INT PRIMARY KEY, v INT AUTO_INCREMENT", "AUTO_INCREMENT"),
        ("x INT PRIMARY KEY, v VARCHAR COLLATE \"de\"", "COLLATE"),
        ("x INT PRIMARY KEY, v INT CHECK (v > 0)", "CHECK"),
        ("x TIME PRIMARY KEY, v INT", "no type of dimensions"),
    ] {
        let error = refused(&session, &create(columns)).await;
        assert!(error.contains(word), "{columns}: {error}");
        assert!(context.array("mem://t").open().is_err(), "{columns}");
    }
    rows(
        &session,
        &create("x INT PRIMARY KEY, l INT[], m DOUBLE[] NOT NULL"),
    )
    .await?;
    rows(
        &session,
        "INSERT INTO t VALUES (1, [1, 2], [0.5]), (2, NULL, [])",
    )
    .await?;
    let all = "SELECT x, l[2], m[1], array_length(l) FROM t ORDER BY x";
    assert_eq!(rows(&session, all).await?, ["1|2|0.5|2", "2|∅|∅|∅"]);
    Ok(())
}

#[tokio::test]
async fn what_makes_an_array_is_not_explained() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    for statement in [
        "EXPLAIN COPY (SELECT 1 AS x) TO 'mem://t' STORED AS AZULEJO OPTIONS (dimensions 'x')",
        "EXPLAIN CREATE TABLE t WITH (location = 'mem://t', dimensions = 'x') AS SELECT 1 AS x",
    ] {
        let error = refused(&session, statement).await;
        assert!(error.contains("EXPLAIN the query"), "{error}");
    }
    assert!(context.array("mem://t").open().is_err());
    Ok(())
}

/// Labels become coordinates.
#[tokio::test]
async fn labels_may_be_keys() -> TestResult {
    let session = azulejo_sql::session(&Context::new(Config::default(), None)?);
    let labels = "SELECT arrow_cast(column1, 'Dictionary(Int8, Utf8)') AS k, column2 AS v FROM (VALUES ('b', 1), ('a', 2))";
    let copy =
        format!("COPY ({labels}) TO 'mem://labels' STORED AS AZULEJO OPTIONS (dimensions 'k')");
    rows(&session, &copy).await?;
    let all = "SELECT k, v FROM 'mem://labels' ORDER BY k";
    assert_eq!(rows(&session, all).await?, ["a|2", "b|1"]);
    Ok(())
}

/// Bounds of dimensions of time may be days and moments.
#[tokio::test]
async fn domains_are_written_as_times() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    rows(
        &session,
        "CREATE EXTERNAL TABLE t (d DATE, t TIMESTAMP(0), v INT, PRIMARY KEY (d, t)) STORED AS AZULEJO LOCATION 'mem://t' \
         OPTIONS ('domain.d' '2024-01-01..2024-12-31', 'tile.d' '31', 'domain.t' '1960-01-01..2024-12-31 23:59')",
    )
    .await?;
    let array = context.array("mem://t").open()?;
    let domains = array.schema().domain.dimensions.iter();
    let domains: Vec<_> = domains
        .filter_map(|d| Some(d.domain.as_ref()?.bounds::<i64>()))
        .collect();
    assert_eq!(domains, [(19_723, 20_088), (-315_619_200, 1_735_689_540)]);
    rows(
        &session,
        "INSERT INTO t VALUES ('2024-12-31', '2024-01-01', 1)",
    )
    .await?;
    let error = refused(
        &session,
        "INSERT INTO t VALUES ('2025-01-01', '2024-01-01', 1)",
    )
    .await;
    assert!(error.contains("domain"), "{error}");
    let wrong = "CREATE EXTERNAL TABLE u (d DATE, v INT, PRIMARY KEY (d)) STORED AS AZULEJO LOCATION 'mem://u' OPTIONS ('domain.d' '2024..x')";
    let error = refused(&session, wrong).await;
    assert!(error.contains("does not fit"), "{error}");
    Ok(())
}

#[tokio::test]
async fn decimals_are_refused_with_what_to_take() -> TestResult {
    let session = azulejo_sql::session(&Context::new(Config::default(), None)?);
    for statement in [
        "CREATE EXTERNAL TABLE t (x INT, v DECIMAL(10, 2), PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://t'",
        "CREATE TABLE t WITH (location = 'mem://t', dimensions = 'x') AS SELECT 1 AS x, CAST(1.5 AS DECIMAL(10, 2)) AS v",
    ] {
        let error = refused(&session, statement).await;
        assert!(
            error.contains("v: an array has no Decimal128(10, 2)"),
            "{error}"
        );
        assert!(error.contains("DOUBLE"), "{error}");
    }
    Ok(())
}

/// Of a dense array only what was written is looked at, however large its domain.
#[tokio::test]
async fn dense_arrays_may_reach_far() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    rows(&session, "CREATE EXTERNAL TABLE h (y BIGINT, x BIGINT, v INT NOT NULL, PRIMARY KEY (y, x)) STORED AS AZULEJO LOCATION 'mem://h' OPTIONS ('dense' 'true', 'domain.y' '-1000000000000..1000000000000', 'domain.x' '-5..5', 'tile.y' '1000', 'tile.x' '11')").await?;
    let all = "SELECT count(*), sum(v), min(y), max(x) FROM h";
    assert_eq!(rows(&session, all).await?, ["0|∅|∅|∅"]);
    assert_eq!(
        rows(&session, "SELECT * FROM h WHERE y > 3").await?,
        [""; 0]
    );
    for y in [-1_000_000_000_000i64, 999_999_999_999] {
        let insert = format!(
            "INSERT INTO h SELECT {y} + v / 2, v % 2 - 5, v FROM generate_series(0, 3) AS g(v)"
        );
        rows(&session, &insert).await?;
    }
    assert_eq!(rows(&session, all).await?, ["8|12|-1000000000000|-4"]);
    assert_eq!(
        rows(
            &session,
            "SELECT * FROM h WHERE y > 5 AND x = -5 ORDER BY y"
        )
        .await?,
        ["999999999999|-5|0", "1000000000000|-5|2"]
    );
    assert_eq!(
        rows(&session, "SELECT v FROM h ORDER BY y DESC, x DESC LIMIT 2").await?,
        ["3", "2"]
    );
    assert_eq!(
        rows(&session, "SELECT count(*) FROM h WHERE y BETWEEN -5 AND 5").await?,
        ["0"]
    );
    Ok(())
}

/// Several at a time, of which some fail when rows are on their way already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_fail_leave_nothing_beside_those_that_do_not() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let folder = tempfile::tempdir()?;
    let uri = folder.path().join("t").display().to_string();
    let create = format!(
        "CREATE EXTERNAL TABLE t (id BIGINT, v INT, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION '{uri}' OPTIONS ('domain.id' '0..9999', 'tile.id' '100')"
    );
    rows(&session, &create).await?;
    let inserts = (0..6).map(|k| {
        let (first, last) = (k * 1_000, if k % 2 == 1 { 20_000 } else { k * 1_000 + 999 });
        format!(
            "INSERT INTO t SELECT CASE WHEN value = 999 THEN {last} ELSE value + {first} END, value FROM generate_series(0, 999)"
        )
    });
    for (k, found) in at_once(&session, inserts).await?.into_iter().enumerate() {
        match found {
            Ok(found) => assert_eq!((k % 2, found), (0, vec!["1000".into()])),
            Err(error) => assert!(k % 2 == 1 && error.contains("domain"), "{k}: {error}"),
        }
    }
    let sums = "SELECT count(*), sum(id), sum(v) FROM t";
    assert_eq!(rows(&session, sums).await?, ["3000|7498500|1498500"]);
    assert_eq!(context.array(&uri).open()?.fragments().len(), 3);

    let changes = [
        "DELETE FROM t WHERE id < 500",
        "UPDATE t SET v = -1 WHERE id BETWEEN 2500 AND 2999",
        "UPDATE t SET v = 1000 / (id - 4100) WHERE id BETWEEN 4000 AND 4200",
        "INSERT INTO t VALUES (9000, 1)",
    ];
    let found = at_once(&session, changes.map(str::to_owned)).await?;
    let counts: Vec<_> = found
        .iter()
        .map(|found| found.clone().unwrap_or_default().concat())
        .collect();
    assert_eq!(counts, ["500", "500", "", "1"]);
    assert_eq!(
        rows(&session, sums).await?,
        [format!(
            "2501|{}|{}",
            7_498_500 - 124_750 + 9_000,
            1_498_500 - 124_750 - 374_750 - 500 + 1
        )]
    );
    let report = context.array(&uri).check(Default::default())?;
    assert!(report.findings.is_empty(), "{report:?}");
    Ok(())
}

/// Filters by the rows, but those that are named.
#[tokio::test]
async fn filters_of_new_arrays() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let numbers = "SELECT x, x * 1000 AS v, CAST(x % 3 AS VARCHAR) AS s FROM generate_series(1, 50000) AS g(x)";
    for (name, options) in [
        ("usual", ""),
        ("text", ", \"filters.S\" = 'zstd:3'"),
        ("said", ", filters = 'zstd:7', \"filters.v\" = 'lz4:1'"),
        (
            "balanced",
            ", optimize = 'balanced', \"filters.s\" = 'zstd:9'",
        ),
        (
            "lined",
            ", optimize = 'speed', dense = 'true', \"domain.x\" = '1..50000', \"tile.x\" = '1000'",
        ),
    ] {
        let create = format!(
            "CREATE TABLE {name} WITH (location = 'mem://filters/{name}', dimensions = 'x'{options}) AS {numbers}"
        );
        rows(&session, &create).await?;
        let found = format!("SELECT count(*), sum(x), sum(v), max(s) FROM {name}");
        assert_eq!(
            rows(&session, &found).await?,
            ["50000|1250025000|1250025000000|2"],
            "{name}"
        );
    }
    let filters = |name: &str| -> TestResult<[Pipeline; 3]> {
        let array = context.array(&format!("mem://filters/{name}")).open()?;
        let schema = array.schema();
        let [v, s] = &schema.attributes[..] else {
            return Err("two attributes".into());
        };
        let x = schema.domain.dimensions[0].filters.clone();
        Ok([x, v.filters.clone(), s.filters.clone()])
    };
    let pipeline = |text: &str| text.parse::<Pipeline>();
    let (shuffled, zstd) = (pipeline("byteshuffle,zstd:3")?, pipeline("zstd:3")?);
    let dictionary = |pipeline: &Pipeline| {
        let first = pipeline.filters.first();
        matches!(first, Some(Filter::Dictionary { .. }))
    };
    let usual = filters("usual")?;
    assert!(dictionary(&usual[2]), "{usual:?}");
    let [x, v, _] = usual.clone();
    assert_eq!(filters("text")?, [x, v, zstd]);
    // Texts of which each is another.
    let others = "COPY (SELECT x, x AS v, CAST(x * 7919 % 50021 AS VARCHAR) AS s FROM generate_series(1, 50000) AS g(x)) \
         TO 'mem://filters/others' STORED AS AZULEJO OPTIONS (dimensions 'x')";
    rows(&session, others).await?;
    assert!(!dictionary(&filters("others")?[2]));
    let [_, v, s] = filters("said")?;
    assert_eq!([v, s], [pipeline("lz4:1")?, pipeline("zstd:7")?]);
    let [_, v, s] = filters("balanced")?;
    assert_eq!(s, pipeline("zstd:9")?);
    assert_eq!(v, usual[1]);
    // Even steps: differences are smaller than what bytes give.
    assert_ne!(v, shuffled);
    assert_ne!(filters("lined")?[1], shuffled);

    for (options, reason) in [
        ("optimize = 'best'", "not a goal"),
        ("optimize = 'size', filters = 'zstd:3'", "filters says"),
    ] {
        let create = format!(
            "CREATE TABLE no WITH (location = 'mem://no', dimensions = 'x', {options}) AS {numbers}"
        );
        let said = refused(&session, &create).await;
        assert!(said.contains(reason), "{said}");
    }
    let bare = "CREATE EXTERNAL TABLE no (x BIGINT, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://no' OPTIONS ('optimize' 'size')";
    let said = refused(&session, bare).await;
    assert!(said.contains("optimize"), "{said}");
    Ok(())
}

/// What is given up while it waits for a thread, or between a count and a commit, leaves nothing.
#[test]
fn changes_that_are_given_up_leave_nothing() -> TestResult {
    // One thread does all that blocks, in turn.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()?;
    let context = Context::new(Config::default(), None)?;
    runtime.block_on(async {
        let session = session(&context).await?;
        let create = "CREATE EXTERNAL TABLE g (x BIGINT, v INT, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://g' OPTIONS ('dense' 'true', 'domain.x' '0..9')";
        rows(&session, create).await?;
        for change in [
            "TRUNCATE t",
            "DELETE FROM t",
            "DELETE FROM t WHERE id > 2",
            "DELETE FROM t WHERE v IS DISTINCT FROM 20",
            "UPDATE t SET v = 0",
            "INSERT INTO t VALUES (6, 60, 'f')",
            "INSERT INTO g VALUES (1, 10), (2, 20)",
            "INSERT INTO g VALUES (1, 10), (5, 50)",
        ] {
            let frame = azulejo_sql::sql(&session, change).await?.ok_or(change)?;
            let plan = frame.create_physical_plan().await?;
            let (done, is_done) = std::sync::mpsc::channel::<()>();
            let before = tokio::task::spawn_blocking(move || is_done.recv());
            let mut changing = execute_stream(plan, session.task_ctx())?;
            let waited = tokio::time::timeout(Duration::from_millis(200), changing.next()).await;
            assert!(waited.is_err(), "{change}");
            drop(changing);
            done.send(())?;
            before.await??;
            tokio::task::spawn_blocking(|| ()).await?;
            assert_eq!(rows(&session, ALL).await?, BEFORE, "{change}");
            assert_eq!(rows(&session, "SELECT * FROM g").await?, [""; 0], "{change}");
        }
        Ok(())
    })
}

/// Rows for a dense array are held until they are sorted: no more at once than memory takes.
#[tokio::test]
async fn dense_inserts_keep_within_memory() -> TestResult {
    let context = Context::new(Config::default().memory_budget(4 << 20), None)?;
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(6 << 20));
    let environment = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool));
    let session = session_in(&context, SessionConfig::new(), environment.build_arc()?);
    rows(&session, "CREATE EXTERNAL TABLE g (x BIGINT, v BIGINT NOT NULL, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://g' OPTIONS ('dense' 'true', 'domain.x' '0..9999999', 'tile.x' '1000')").await?;
    // 16 bytes a row.
    let insert = |rows: u64| {
        format!("INSERT INTO g SELECT value, value * 2 FROM generate_series(1, {rows})")
    };
    let out_of_order =
        "INSERT INTO g SELECT (value * 7) % 200003, value FROM generate_series(1, 200000)";
    let error = refused(&session, out_of_order).await;
    assert!(error.contains("sm.mem.total_budget"), "{error}");
    let twice = "INSERT INTO g SELECT value % 150000, value FROM generate_series(1, 300000)";
    let error = refused(&session, twice).await;
    assert!(error.contains("two rows are of the same cell"), "{error}");
    let others = MemoryConsumer::new("others").register(&pool);
    others.try_grow(5 << 20)?;
    let error = refused(&session, &insert(100_000)).await;
    assert!(error.contains("rows for mem://g"), "{error}");
    drop(others);
    assert_eq!(rows(&session, "SELECT count(*) FROM g").await?, ["0"]);
    assert_eq!(context.array("mem://g").open()?.fragments().len(), 0);
    assert_eq!(rows(&session, &insert(100_000)).await?, ["100000"]);
    // Rows in the order of cells are written in parts.
    assert_eq!(rows(&session, &insert(500_000)).await?, ["500000"]);
    let sums = "SELECT count(*), min(x), max(x), sum(v) FROM g";
    assert_eq!(
        rows(&session, sums).await?,
        ["500000|1|500000|250000500000"]
    );
    let array = context.array("mem://g").open()?;
    assert!(array.fragments().len() > 3, "{}", array.fragments().len());
    assert_eq!(pool.reserved(), 0);
    Ok(())
}

/// A part of rows that ends within a line of cells fills some boxes; there may be any number of parts.
#[tokio::test]
async fn dense_inserts_come_in_any_number_of_parts() -> TestResult {
    let context = Context::new(Config::default().memory_budget(4 << 20), None)?;
    let config = SessionConfig::new().with_batch_size(1024);
    let session = session_with(&context, config.with_target_partitions(1));
    rows(&session, "CREATE EXTERNAL TABLE g (y BIGINT, x BIGINT, t VARCHAR NOT NULL, PRIMARY KEY (y, x)) STORED AS AZULEJO LOCATION 'mem://lines' OPTIONS ('dense' 'true', 'domain.y' '0..356', 'tile.y' '1', 'domain.x' '0..699', 'tile.x' '700')").await?;
    // More than 200 bytes a row, 2 MiB at once: some 25 parts.
    let insert = "INSERT INTO g SELECT value / 700, value % 700, lpad(CAST(value AS VARCHAR), 200, '0') FROM generate_series(0, 249899)";
    assert_eq!(rows(&session, insert).await?, ["249900"]);
    let array = context.array("mem://lines").open()?;
    assert!(array.fragments().len() > 64, "{}", array.fragments().len());
    // As of no moment there are some of them.
    let times: HashSet<u64> = (array.fragments().iter().map(|f| f.time_range().end)).collect();
    assert_eq!(times.len(), 1);
    let right = "SELECT count(*), count(DISTINCT t) FROM g WHERE CAST(t AS BIGINT) = y * 700 + x";
    assert_eq!(rows(&session, right).await?, ["249900|249900"]);
    Ok(())
}

/// A table may have another name in a statement that changes it.
#[tokio::test]
async fn tables_that_are_changed_have_other_names() -> TestResult {
    for (change, after) in [
        ("DELETE FROM t AS u WHERE u.id = 1", &BEFORE[1..]),
        (
            "DELETE FROM t u WHERE u.v + 1 = 11 AND id < 9",
            &BEFORE[1..],
        ),
        ("DELETE FROM 'mem://t' u WHERE u.id = 1", &BEFORE[1..]),
        ("DELETE FROM t u", &[]),
        ("DELETE FROM t u WHERE false", &BEFORE),
        (
            "DELETE FROM t u WHERE EXISTS (SELECT 1 FROM t WHERE t.id < u.id) AND NOT EXISTS (SELECT 1 FROM few WHERE column1 = u.id - 1)",
            &["1|10|a", "3|30|∅", "4|∅|d"],
        ),
        (
            "PREPARE gone AS DELETE FROM t u WHERE u.id = $1; EXECUTE gone(1)",
            &BEFORE[1..],
        ),
        ("EXPLAIN DELETE FROM t u WHERE u.id = 1", &BEFORE),
        ("UPDATE t AS u SET v = 11 WHERE u.id = 1", &["1|11|a"]),
    ] {
        let session = session(&Context::new(Config::default(), None)?).await?;
        rows(&session, change).await?;
        let found = rows(&session, ALL).await?;
        match change.starts_with("UPDATE") {
            true => assert_eq!(found[..1], *after, "{change}"),
            false => assert_eq!(found, after, "{change}"),
        }
    }
    let session = session(&Context::new(Config::default(), None)?).await?;
    for (change, reason) in [
        ("DELETE FROM t u WHERE t.id = 1", "t.id"),
        ("DELETE FROM few u WHERE u.column1 = 2", "no array"),
        ("DELETE FROM nowhere u WHERE u.id = 1", "nowhere"),
    ] {
        let error = refused(&session, change).await;
        assert!(error.contains(reason), "{change}: {error}");
    }
    // What an array keeps of it is its condition.
    let stored = "DELETE FROM t u WHERE u.id = 1";
    let plan = plan(&session, stored).await?;
    assert!(plan.contains("ChangeExec"), "{plan}");
    assert_eq!(rows(&session, ALL).await?, BEFORE);
    Ok(())
}

/// Where a key may have several rows there is none to be replaced.
#[tokio::test]
async fn rows_replace_others_where_keys_tell_them_apart() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context).await?;
    for replace in [
        "REPLACE INTO t VALUES (2, 21, 'b')",
        "INSERT OR REPLACE INTO t VALUES (2, 22, 'b')",
    ] {
        rows(&session, replace).await?;
    }
    assert_eq!(rows(&session, ALL).await?[1], "2|22|b");
    let several = "CREATE TABLE several WITH (location = 'mem://several', dimensions = 'id', duplicates = 'true') AS SELECT 1 AS id, 2 AS v";
    rows(&session, several).await?;
    for replace in ["REPLACE INTO", "INSERT OR REPLACE INTO"] {
        let error = refused(&session, &format!("{replace} several VALUES (1, 3)")).await;
        assert!(error.contains("duplicates"), "{error}");
    }
    assert_eq!(rows(&session, "SELECT * FROM several").await?, ["1|2"]);
    Ok(())
}

/// Values are stored as they are: what a column has no room for is refused, unless it is said that it is
/// to be cut.
#[tokio::test]
async fn no_value_is_stored_as_another_one() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let create = "CREATE EXTERNAL TABLE t (id BIGINT, a INT, f REAL, moment TIMESTAMP(0), day DATE, flag BOOLEAN, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://exact'";
    rows(&session, create).await?;
    for statement in [
        "INSERT INTO t (id, a) VALUES (1, 1), (2, 1.7)",
        "INSERT INTO t (id, a) SELECT 1, 1.7",
        "INSERT INTO t (id, a) SELECT value, value / 2.0 FROM generate_series(1, 3)",
        "INSERT INTO t (id, a) VALUES (1, 1 + 0.5)",
        "INSERT INTO t (id, a) VALUES (1.5, 1)",
        "INSERT INTO t (id, a) VALUES (1, DEFAULT), (2, 1.7)",
        "INSERT INTO t (id, f) VALUES (1, 1e300)",
        "INSERT INTO t (id, moment) VALUES (1, '2024-05-01 12:00:00.5')",
        "INSERT INTO t (id, moment) VALUES (1, TIMESTAMP '2024-05-01 12:00:00.5')",
        "INSERT INTO t (id, day) VALUES (1, '2024-05-01 12:00:00')",
        "INSERT INTO t (id, day) VALUES (1, TIMESTAMP '2024-05-01 12:00:00')",
        "INSERT INTO t (id, flag) VALUES (1, 5)",
        "INSERT INTO t (id, a) VALUES (1, extract(epoch FROM now()))",
        "EXPLAIN INSERT INTO t (id, a) VALUES (1, 1.7)",
    ] {
        let error = refused(&session, statement).await;
        assert!(error.contains("would become"), "{statement}: {error}");
    }
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await?, ["0"]);
    for statement in [
        "INSERT INTO t VALUES (1, 2.0, 0.1, '2024-05-01 12:00:00', '2024-05-01 00:00:00', 1)",
        "INSERT INTO t (id, a, moment, day) VALUES (2, CAST(1.7 AS INT), now(), now())",
        "INSERT INTO t (id, a) SELECT 3, CAST(1.7 AS INT)",
        "INSERT INTO t (id, a, f) VALUES (4, (2.5)::INT, 'inf')",
        "INSERT INTO t (id, a) SELECT 5, round(1.7)",
    ] {
        rows(&session, statement).await?;
    }
    let all = "SELECT id, a FROM t ORDER BY id";
    assert_eq!(
        rows(&session, all).await?,
        ["1|2", "2|1", "3|1", "4|2", "5|2"]
    );
    let first = "SELECT moment, day, flag FROM t WHERE id = 1";
    assert_eq!(
        rows(&session, first).await?,
        ["2024-05-01T12:00:00|2024-05-01|true"]
    );
    let error = refused(&session, "UPDATE t SET a = a / 4.0").await;
    assert!(error.contains("a: "), "{error}");
    rows(
        &session,
        "UPDATE t SET a = CAST(a / 4.0 AS INT) WHERE id = 1",
    )
    .await?;
    rows(&session, "UPDATE t SET a = a * 4.0 WHERE id = 2").await?;
    assert_eq!(
        rows(&session, all).await?,
        ["1|0", "2|4", "3|1", "4|2", "5|2"]
    );
    Ok(())
}

/// Moments that a query gives go to their day, or to the nearest tick: nobody wrote their digits.
#[tokio::test]
async fn moments_of_a_query_go_where_they_belong() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    for statement in [
        "CREATE EXTERNAL TABLE t (id BIGINT, fine TIMESTAMP, moment TIMESTAMP(0), day DATE, clock TIME, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://moments'",
        "INSERT INTO t (id, fine) VALUES (1, '2024-05-01 12:00:00.5'), (2, '1969-12-31 23:59:59.4'), (3, NULL)",
        "UPDATE t SET moment = fine, day = fine, clock = fine",
        "INSERT INTO t (id, moment, day) SELECT 4, now() AS a, now() AS b",
        "INSERT INTO t (id, moment, day) SELECT 10 + id, fine, fine AS b FROM t WHERE id < 3",
    ] {
        rows(&session, statement).await?;
    }
    assert_eq!(
        rows(
            &session,
            "SELECT id, moment, day, clock FROM t WHERE id <> 4 ORDER BY id"
        )
        .await?,
        [
            "1|2024-05-01T12:00:01|2024-05-01|12:00:00.500",
            "2|1969-12-31T23:59:59|1969-12-31|23:59:59.400",
            "3|∅|∅|∅",
            "11|2024-05-01T12:00:01|2024-05-01|∅",
            "12|1969-12-31T23:59:59|1969-12-31|∅",
        ]
    );
    let now = "SELECT count(moment), count(day) FROM t WHERE id = 4";
    assert_eq!(rows(&session, now).await?, ["1|1"]);
    // Of what is written there somebody should know.
    let error = refused(
        &session,
        "UPDATE t SET moment = TIMESTAMP '2024-05-01 12:00:00.5'",
    )
    .await;
    assert!(error.contains("would become"), "{error}");
    Ok(())
}

/// Whole numbers do not begin again at the other end of their type on their way into an array.
#[tokio::test]
async fn whole_numbers_of_changes_stay_within_their_type() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context).await?;
    let most = "INSERT INTO t (id, v) VALUES (6, 2147483647), (7, -2147483648)";
    rows(&session, most).await?;
    let before = rows(&session, ALL).await?;
    for change in [
        "UPDATE t SET v = v * v WHERE id = 6",
        "UPDATE t SET v = v + v",
        "UPDATE t SET v = -v",
        "UPDATE t SET v = v - CAST(1 AS INT) WHERE id = 7",
        "UPDATE t AS a JOIN t AS b ON b.id = a.id + 1 SET v = a.v - b.v WHERE a.id = 6",
        "INSERT INTO t (id, v) SELECT id + 20, v * v FROM t WHERE id = 6",
        "INSERT INTO t (id, v) VALUES (9223372036854775807 + 10, 1)",
    ] {
        let error = refused(&session, change).await;
        assert!(
            error.to_lowercase().contains("overflow"),
            "{change}: {error}"
        );
    }
    assert_eq!(rows(&session, ALL).await?, before);
    for change in [
        "UPDATE t SET v = v - v WHERE id > 5",
        "INSERT INTO t (id, v) SELECT id + 20, v * v + 1 FROM t WHERE id + 1 = 3",
        "INSERT INTO t (id, v) VALUES (30 + 1, 2 * 3)",
        "UPDATE t SET v = -v WHERE id = 31",
        "INSERT INTO t (id, v) SELECT 50 + coalesce(v + 1, 40), count(*) FROM t WHERE id < 3 GROUP BY ROLLUP (v + 1)",
    ] {
        rows(&session, change).await?;
    }
    let after = rows(&session, ALL).await?;
    assert_eq!(
        after[5..],
        [
            "6|0|∅",
            "7|0|∅",
            "22|401|∅",
            "31|-6|∅",
            "61|1|∅",
            "71|1|∅",
            "90|2|∅"
        ]
    );
    Ok(())
}

/// A parameter has the value that it is given.
#[tokio::test]
async fn parameters_keep_their_values() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context).await?;
    for prepare in [
        "PREPARE fresh AS INSERT INTO t (id, v) VALUES ($1, $2)",
        "PREPARE whole(INT) AS INSERT INTO t (id, v) VALUES (7, $1)",
        "PREPARE more AS UPDATE t SET v = v + $1 WHERE id = 1",
        "PREPARE below AS SELECT id FROM t WHERE id < $1",
        "PREPARE queried AS INSERT INTO t (id, v, s) SELECT x * 2, $1, $2 FROM (VALUES (4.5)) AS n(x)",
        "PREPARE typed(BIGINT, VARCHAR) AS INSERT INTO t (id, v, s) SELECT x * 2, $1, $2 FROM (VALUES (5.5)) AS n(x)",
        "PREPARE renamed AS UPDATE t AS U SET v = $1 WHERE U.id = 2",
        "PREPARE usual AS UPDATE t SET s = DEFAULT WHERE id = $1",
        "PREPARE mixed AS INSERT INTO t (id, v) SELECT id + $1, $2 FROM t WHERE id = 1",
        "PREPARE mixed_values AS INSERT INTO t (id, v) SELECT x + $1, $2 FROM (VALUES (2)) AS n(x)",
    ] {
        rows(&session, prepare).await?;
    }
    for execute in [
        "EXECUTE fresh(6, 1.7)",
        "EXECUTE fresh(6.5, 1)",
        "EXECUTE whole(1.7)",
        "EXECUTE more(1 + 0.5)",
        "EXECUTE below(1.5)",
        "EXECUTE queried(1.7, 'q')",
        "EXECUTE typed(1.7, 'q')",
        "EXECUTE renamed(1.7)",
        "EXECUTE mixed(10, 1.7)",
        "EXECUTE mixed_values(10.5, 1)",
    ] {
        let error = refused(&session, execute).await;
        assert!(error.contains("would become"), "{execute}: {error}");
    }
    assert_eq!(rows(&session, ALL).await?, BEFORE);
    assert_eq!(rows(&session, "EXECUTE below(2.0)").await?, ["1"]);
    for execute in [
        "EXECUTE fresh(6, 2.0)",
        "EXECUTE whole('8')",
        "EXECUTE more(1)",
        "EXECUTE queried(1, 'q')",
        "EXECUTE typed(2, 'r')",
        "EXECUTE renamed(NULL)",
        "EXECUTE usual(5)",
        "EXECUTE mixed(20, 6)",
        "EXECUTE mixed_values(20, 7)",
    ] {
        rows(&session, execute).await?;
    }
    assert_eq!(
        rows(&session, ALL).await?,
        [
            "1|11|a", "2|∅|b", "3|30|∅", "4|∅|d", "5|50|∅", "6|2|∅", "7|8|∅", "9|1|q", "11|2|r",
            "21|6|∅", "22|7|∅"
        ]
    );
    let error = refused(&session, "PREPARE few(INT) AS SELECT $1, $2").await;
    assert!(error.contains("2 parameters"), "{error}");
    rows(&session, "CREATE TABLE days (day DATE)").await?;
    rows(&session, "PREPARE today AS INSERT INTO days VALUES ($1)").await?;
    rows(&session, "EXECUTE today(now())").await?;
    let found = rows(&session, "SELECT count(day) FROM days").await?;
    assert_eq!(found, ["1"]);
    Ok(())
}

/// Other tables are no worse.
#[tokio::test]
async fn tables_in_memory_store_values_as_they_are() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context).await?;
    for insert in [
        "INSERT INTO few VALUES (4, 1.7)",
        "INSERT INTO few SELECT 4, 1.7",
    ] {
        let error = refused(&session, insert).await;
        assert!(error.contains("would become"), "{insert}: {error}");
    }
    rows(&session, "INSERT INTO few VALUES (4, 2.0)").await?;
    let found = rows(&session, "SELECT column2 FROM few WHERE column1 = 4").await?;
    assert_eq!(found, ["2"]);
    Ok(())
}

/// Rows of values within the query of an `INSERT` are not those of its target.
#[tokio::test]
async fn values_within_the_query_of_an_insert_are_its_own() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context).await?;
    rows(
        &session,
        "INSERT INTO t (id, v) SELECT x * 2, x * 4 FROM (VALUES (3.5), (4.5)) AS n(x)",
    )
    .await?;
    rows(
        &session,
        "INSERT INTO t (s, id) WITH n(x) AS (VALUES (11)) SELECT 'x', x FROM n",
    )
    .await?;
    assert_eq!(
        rows(&session, "SELECT id, v, s FROM t WHERE id > 5 ORDER BY id").await?,
        ["7|14|∅", "9|18|∅", "11|∅|x"]
    );
    Ok(())
}

/// A table may be called by a name in capitals in an update.
#[tokio::test]
async fn updates_of_a_table_by_another_name_in_capitals() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context).await?;
    for (update, expected) in [
        (
            "UPDATE t AS \"U\" SET v = \"U\".v + 1 WHERE \"U\".id = 1",
            "1|11|a",
        ),
        ("UPDATE t AS U SET s = 'z' WHERE U.id = 1", "1|11|z"),
    ] {
        rows(&session, update).await?;
        let all = rows(&session, ALL).await?;
        assert_eq!(all[0], expected, "{update}");
        assert_eq!(all[1..], BEFORE[1..], "{update}");
    }
    Ok(())
}
