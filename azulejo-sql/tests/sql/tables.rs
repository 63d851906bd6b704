//! What tables do, statement by statement.

use super::support::{TestResult, plan, refused, rows};
use azulejo::format::schema::CurrentDomain;
use azulejo::format::{ArraySchema, Datatype, NdRectangle, Range};
use azulejo::{ColumnBuffers, ColumnSet, Config, Context, WriteOptions};
use azulejo_sql::{ArrayCatalog, TableOptions, session, session_with, table};
use datafusion::prelude::SessionConfig;
use std::sync::Arc;

/// A dense array of 100 x 100 cells in tiles of 10 x 10, whose values are their places.
fn grid(context: &Context, uri: &str) -> TestResult {
    let place = context.array(uri);
    let schema = ArraySchema::dense()
        .dimension("y", 0i32..=99, 10)
        .dimension("x", 0i32..=99, 10)
        .attribute("v", Datatype::Int64)
        .build()?;
    place.create(schema)?;
    let bounds = vec![Range::of(0i32, 99), Range::of(0i32, 99)];
    let mut writer = place.writer(WriteOptions::new().subarray(NdRectangle { ranges: bounds }))?;
    let values = ColumnBuffers::of_values("v", (0..10_000i64).collect::<Vec<_>>());
    writer.write(&ColumnSet::of([values])?)?;
    writer.finish()?;
    Ok(())
}

#[tokio::test]
async fn plans_say_what_the_array_does() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    grid(&context, "mem://grid")?;
    let session = session(&context);
    session.register_table("g", table(&context.array("mem://grid"))?)?;

    let box_of = plan(
        &session,
        "SELECT v FROM g WHERE y BETWEEN 3 AND 5 AND x IN (1, 2, 9)",
    )
    .await?;
    assert!(
        box_of.contains("subarray=[y in 3..=5, x in 1..=2 or 9..=9]"),
        "{box_of}"
    );
    assert!(!box_of.contains("FilterExec"), "{box_of}");
    assert!(box_of.contains("columns=[v]"), "{box_of}");

    let value = plan(&session, "SELECT y FROM g WHERE v > 9990 OR x = 3").await?;
    assert!(
        value.contains("condition=[") && !value.contains("FilterExec"),
        "{value}"
    );

    let nothing = plan(&session, "SELECT y FROM g WHERE y > 500").await?;
    assert!(nothing.contains("nothing is selected"), "{nothing}");

    // What the array cannot tell stays with DataFusion.
    let odd = plan(&session, "SELECT y FROM g WHERE v % 2 = 1").await?;
    assert!(odd.contains("FilterExec"), "{odd}");

    let sorted = plan(&session, "SELECT y, x, v FROM g ORDER BY y, x").await?;
    assert!(
        sorted.contains("order=[y, x]") && !sorted.contains("SortExec"),
        "{sorted}"
    );
    let columns = plan(&session, "SELECT y, x, v FROM g ORDER BY x").await?;
    assert!(
        columns.contains("order=[x]") && !columns.contains("SortExec"),
        "{columns}"
    );

    let counted = plan(&session, "SELECT count(*), max(v) FROM g WHERE y < 50").await?;
    assert!(counted.contains("ArrayAggregateExec"), "{counted}");
    let found = rows(
        &session,
        "SELECT count(*), min(v), max(v), sum(v) FROM g WHERE y < 50",
    )
    .await?;
    assert_eq!(found, ["5000|0|4999|12497500"]);

    let limited = plan(&session, "SELECT v FROM g LIMIT 7").await?;
    assert!(limited.contains("limit=7"), "{limited}");
    assert_eq!(rows(&session, "SELECT v FROM g LIMIT 7").await?.len(), 7);
    assert_eq!(
        rows(&session, "SELECT v FROM g ORDER BY y, x LIMIT 3").await?,
        ["0", "1", "2"]
    );
    Ok(())
}

#[tokio::test]
async fn dense_rows_are_the_cells_that_were_written() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let place = context.array("mem://holes");
    let schema = ArraySchema::dense().dimension("x", 0i32..=99, 10);
    place.create(schema.attribute("v", Datatype::Int32).build()?)?;
    for (first, last) in [(10, 19), (15, 30), (80, 81)] {
        let ranges = vec![Range::of(first, last)];
        let mut writer = place.writer(WriteOptions::new().subarray(NdRectangle { ranges }))?;
        let values = ColumnBuffers::of_values("v", (first..=last).collect::<Vec<i32>>());
        writer.write(&ColumnSet::of([values])?)?;
        writer.finish()?;
    }
    let session = session(&context);
    session.register_table("h", table(&place)?)?;
    assert_eq!(
        rows(&session, "SELECT count(*), sum(v) FROM h").await?,
        ["23|581"]
    );
    assert_eq!(
        rows(&session, "SELECT x FROM h WHERE x > 28 ORDER BY x").await?,
        ["29", "30", "80", "81"]
    );
    for (unwritten, cells) in [
        ("true", "100"),
        ("'true'", "100"),
        ("false", "23"),
        ("'false'", "23"),
    ] {
        let all = format!("SELECT count(*) FROM azulejo('mem://holes', unwritten => {unwritten})");
        assert_eq!(rows(&session, &all).await?, [cells], "{unwritten}");
    }
    for unwritten in ["1", "'yes'", "NULL"] {
        let all = format!("SELECT count(*) FROM azulejo('mem://holes', unwritten => {unwritten})");
        let error = refused(&session, &all).await;
        assert!(error.contains("unwritten must be true or false"), "{error}");
    }
    Ok(())
}

/// A dense array may be far larger than what was ever written of it, in many places.
#[tokio::test]
async fn dense_places_are_looked_at_however_many_they_are() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context);
    rows(&session, "CREATE EXTERNAL TABLE d (y BIGINT, x BIGINT, v BIGINT NOT NULL, PRIMARY KEY (y, x)) STORED AS AZULEJO LOCATION 'mem://far' OPTIONS ('dense' 'true', 'domain.y' '0..999999999', 'domain.x' '0..999999999', 'tile.y' '10', 'tile.x' '10')").await?;
    for k in 0..65 {
        let at = k * 10_000_000;
        rows(&session, &format!("INSERT INTO d VALUES ({at}, {at}, {k})")).await?;
    }
    let all = "SELECT count(*), sum(v), max(x) FROM d";
    let planned = plan(&session, all).await?;
    let far = "x in 0..=0 or 10000000..=10000000 or 20000000..=20000000 or 62 more";
    assert!(planned.contains(far), "{planned}");
    assert_eq!(rows(&session, all).await?, ["65|2080|640000000"]);
    assert_eq!(
        rows(&session, "SELECT v FROM d WHERE v % 40 = 3 ORDER BY y").await?,
        ["3", "43"]
    );
    Ok(())
}

#[tokio::test]
async fn cells_that_nobody_wrote_meet_conditions_as_rows_do() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    for partitions in [1, 3] {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let config = config.with_extension(Arc::new(azulejo_sql::CellsAPartition(1)));
        let session = session_with(&context, config);
        let uri = format!("mem://unwritten/{partitions}");
        for statement in [
            &format!(
                "CREATE EXTERNAL TABLE d (x BIGINT, v INT NOT NULL, w INT, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION '{uri}' OPTIONS ('dense' 'true', 'domain.x' '0..9', 'tile.x' '5')"
            ),
            "INSERT INTO d VALUES (0, 1, 1), (1, 2, NULL), (2, 3, 3)",
            &format!(
                "CREATE EXTERNAL TABLE u STORED AS AZULEJO LOCATION '{uri}' OPTIONS ('unwritten' 'true')"
            ),
        ] {
            rows(&session, statement).await?;
        }
        for (query, expected) in [
            ("SELECT count(*) FROM u WHERE v < 0", "7"),
            ("SELECT count(*) FROM u WHERE v + 0 < 0", "7"),
            (
                "SELECT count(*), min(x), max(x) FROM u WHERE v = -2147483648 AND x <> 4",
                "6|3|9",
            ),
            ("SELECT count(*) FROM u WHERE x IN (1, 7, 8) AND v > 0", "1"),
            ("SELECT count(*) FROM u WHERE w IS NULL", "8"),
            ("SELECT count(*) FROM u WHERE x > 5 OR v = 2", "5"),
            (
                "SELECT count(*) FROM u JOIN (VALUES (7)) AS s(k) ON u.x = s.k",
                "1",
            ),
            (
                "SELECT count(*) FROM u JOIN (VALUES (-2147483648)) AS s(k) ON u.v = s.k",
                "7",
            ),
            ("SELECT x FROM u ORDER BY v, x LIMIT 1", "3"),
            ("SELECT min(v) FROM u WHERE x < 3", "1"),
            // As it is without them.
            ("SELECT count(*) FROM d WHERE v < 0", "0"),
            ("SELECT count(*) FROM d WHERE w IS NULL", "1"),
        ] {
            assert_eq!(
                rows(&session, query).await?,
                [expected],
                "{partitions}: {query}"
            );
        }
        let ranges = plan(&session, "SELECT v FROM u WHERE x > 5 AND v < 0").await?;
        let asked = ranges.contains("subarray=[x in 6..=9]") && !ranges.contains("condition=");
        assert!(asked, "{ranges}");
    }
    Ok(())
}

#[tokio::test]
async fn tables_as_they_were() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let place = context.array("mem://levels");
    let schema = ArraySchema::sparse().dimension("x", 0i64..=9, 10);
    place.create_at(schema.attribute("v", Datatype::Int32).build()?, 1)?;
    let day = 86_400_000;
    for (time, value) in [(day, 1), (2 * day, 2)] {
        let mut writer = place.writer(WriteOptions::new().timestamp(time))?;
        writer.write(&ColumnSet::of([
            ColumnBuffers::of_values("x", vec![1i64]),
            ColumnBuffers::of_values("v", vec![value]),
        ])?)?;
        writer.finish()?;
    }
    let named = context.object("mem://levels");
    named.create_snapshot("early", Some(day))?;
    let session = session(&context);
    session.register_table("t", table(&place)?)?;
    for (from, value) in [
        ("t", "2"),
        ("'mem://levels@early'", "1"),
        ("azulejo('mem://levels@early')", "1"),
        ("t TIMESTAMP AS OF '1970-01-02'", "1"),
        ("t TIMESTAMP AS OF '1970-01-03T00:00:00Z'", "2"),
        (
            "t FOR SYSTEM_TIME AS OF TIMESTAMP '1970-01-02 12:00:00'",
            "1",
        ),
        ("'mem://levels'", "2"),
        ("'mem://levels' TIMESTAMP AS OF '1970-01-02'", "1"),
        ("azulejo('mem://levels')", "2"),
        ("azulejo('mem://levels', at => '1970-01-02')", "1"),
        ("azulejo('mem://levels', at => 86400000) AS u", "1"),
        ("azulejo('mem://levels', at => '1970-01-02 12:00')", "1"),
        (
            "azulejo('mem://levels', at => now() - INTERVAL '1 hour')",
            "2",
        ),
        (
            "t TIMESTAMP AS OF current_timestamp - INTERVAL '1 day'",
            "2",
        ),
        ("t TIMESTAMP AS OF to_timestamp(100000)", "1"),
    ] {
        let statement = format!("SELECT v FROM {from}");
        assert_eq!(rows(&session, &statement).await?, [value], "{statement}");
    }
    assert_eq!(
        rows(&session, "SELECT v FROM t TIMESTAMP AS OF 5").await?,
        [""; 0]
    );
    assert!(
        refused(&session, "SELECT v FROM t VERSION AS OF 1")
            .await
            .contains("TIMESTAMP AS OF")
    );
    assert!(
        refused(&session, "SELECT v FROM t TIMESTAMP AS OF 'soon'")
            .await
            .contains("soon")
    );
    let other = refused(
        &session,
        "CREATE TABLE m AS SELECT 1 AS a; SELECT * FROM m TIMESTAMP AS OF '1970-01-02'",
    );
    assert!(other.await.contains("no array"));
    // A query in front hides the table, and was never otherwise.
    for hidden in [
        "WITH t AS (SELECT 7 AS v) SELECT v FROM t TIMESTAMP AS OF '1970-01-02'",
        "WITH t AS (SELECT v + 5 AS v FROM t) SELECT v FROM t TIMESTAMP AS OF '1970-01-02'",
        "WITH u AS (SELECT v FROM t), t AS (SELECT 7 AS v) SELECT v FROM t TIMESTAMP AS OF '1970-01-02'",
    ] {
        let error = refused(&session, hidden).await;
        assert!(error.contains("t is a query"), "{hidden}: {error}");
    }
    for beside in [
        "WITH u AS (SELECT 7 AS v) SELECT v FROM t TIMESTAMP AS OF '1970-01-02'",
        "WITH t AS (SELECT v FROM t TIMESTAMP AS OF '1970-01-02') SELECT v FROM t",
        "SELECT (WITH t AS (SELECT 1 AS v) SELECT v FROM t) FROM t TIMESTAMP AS OF '1970-01-03'",
    ] {
        assert_eq!(rows(&session, beside).await?, ["1"], "{beside}");
    }
    let described = rows(&session, "DESCRIBE 'mem://levels'").await?;
    assert_eq!(described, ["x|Int64|NO", "v|Int32|NO"]);
    let wrong = refused(&session, "SELECT v FROM azulejo('mem://levels', when => 3)").await;
    assert!(wrong.contains("when"), "{wrong}");
    let past = "INSERT INTO past VALUES (1, 2)";
    let options = TableOptions::new().at(day);
    let then = azulejo_sql::ArrayTable::open(place.clone(), options)?;
    session.register_table("past", Arc::new(then))?;
    assert!(refused(&session, past).await.contains("as it was"));

    let fragments = rows(
        &session,
        "SELECT cells, tiles, last FROM azulejo_fragments('mem://levels') ORDER BY last",
    )
    .await?;
    assert_eq!(
        fragments,
        ["1|1|1970-01-02T00:00:00", "1|1|1970-01-03T00:00:00"]
    );
    let tiles = rows(
        &session,
        "SELECT tile, cells, bounds FROM azulejo_tiles('mem://levels')",
    )
    .await?;
    assert_eq!(tiles, ["0|1|x in 1..=1"; 2]);
    let history = rows(
        &session,
        "SELECT at, change FROM azulejo_history('mem://levels')",
    )
    .await?;
    assert_eq!(
        history,
        ["1970-01-02T00:00:00|write", "1970-01-03T00:00:00|write"]
    );
    Ok(())
}

#[tokio::test]
async fn what_is_written_is_read() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context);
    let create = "CREATE EXTERNAL TABLE t (id BIGINT, day DATE, name VARCHAR, f DOUBLE, PRIMARY KEY (id, day)) STORED AS AZULEJO LOCATION 'mem://new' OPTIONS ('domain.id' '0..999', 'tile.id' '100', 'capacity' '7')";
    rows(&session, create).await?;
    let schema = context.array("mem://new").open()?.schema().clone();
    assert_eq!(
        (
            schema.domain.ndim(),
            schema.attributes.len(),
            schema.capacity
        ),
        (2, 2, 7)
    );
    let insert = "INSERT INTO t VALUES (1, '2024-05-01', 'a', 1.5), (2, '2024-05-02', NULL, NULL), (3, '2024-05-03', 'c', 'NaN')";
    assert_eq!(rows(&session, insert).await?, ["3"]);
    assert_eq!(context.array("mem://new").open()?.fragments().len(), 1);
    // The same key again replaces; a key twice in one statement does not.
    assert_eq!(
        rows(
            &session,
            "INSERT INTO t (id, day, name) VALUES (1, '2024-05-01', 'b')"
        )
        .await?,
        ["1"]
    );
    let twice = "INSERT INTO t VALUES (5, '2024-05-01', 'a', 1), (5, '2024-05-01', 'b', 1)";
    assert!(!refused(&session, twice).await.is_empty());
    let outside = "INSERT INTO t SELECT 900 + v, DATE '2024-05-01', 'x', 1 FROM generate_series(0, 200) AS g(v)";
    assert!(!refused(&session, outside).await.is_empty());
    let all = "SELECT id, day, name, f FROM t ORDER BY id, day";
    let expected = ["1|2024-05-01|b|∅", "2|2024-05-02|∅|∅", "3|2024-05-03|c|NaN"];
    assert_eq!(rows(&session, all).await?, expected);

    assert_eq!(rows(&session, "DELETE FROM t WHERE id = 2").await?, ["1"]);
    let expected = [expected[0], expected[2]];
    // Nothing is deleted by looking at the plan.
    plan(&session, "DELETE FROM t WHERE name <> 'b'").await?;
    assert_eq!(rows(&session, all).await?, expected);
    assert_eq!(
        rows(&session, "DELETE FROM t WHERE name <> 'b'").await?,
        ["1"]
    );
    assert_eq!(rows(&session, all).await?, expected[..1]);
    for nothing in [
        "DELETE FROM t WHERE f < 3",
        "DELETE FROM t WHERE id % 2 = 0",
    ] {
        assert_eq!(rows(&session, nothing).await?, ["0"], "{nothing}");
    }
    rows(
        &session,
        "INSERT INTO t VALUES (7, '2024-05-01', 'x', 2), (8, '2024-05-01', 'y', 3)",
    )
    .await?;
    assert_eq!(
        rows(&session, "DELETE FROM t WHERE id BETWEEN 0 AND 1").await?,
        ["1"]
    );
    assert_eq!(
        rows(&session, "DELETE FROM t WHERE f = 2 OR name = 'z'").await?,
        ["1"]
    );
    assert_eq!(rows(&session, all).await?, ["8|2024-05-01|y|3.0"]);
    assert_eq!(rows(&session, "TRUNCATE TABLE t").await?, ["1"]);
    assert_eq!(rows(&session, all).await?, [""; 0]);

    let unknown = create
        .replace("'capacity' '7'", "'sieze' '7'")
        .replace("TABLE t", "TABLE u");
    assert!(refused(&session, &unknown).await.contains("sieze"));
    Ok(())
}

#[tokio::test]
async fn dense_rows_fill_boxes() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context);
    rows(&session, "CREATE EXTERNAL TABLE d (y INT, x INT, v BIGINT NOT NULL, PRIMARY KEY (y, x)) STORED AS AZULEJO LOCATION 'mem://new_dense' OPTIONS ('dense' 'true', 'domain.y' '0..9', 'domain.x' '0..9', 'tile.y' '5', 'tile.x' '5')").await?;
    let box_of = "INSERT INTO d SELECT y, x, y * 10 + x FROM generate_series(2, 4) AS a(y), generate_series(1, 3) AS b(x) ORDER BY x DESC, y";
    assert_eq!(rows(&session, box_of).await?, ["9"]);
    assert_eq!(
        rows(&session, "SELECT v FROM d ORDER BY y, x LIMIT 4").await?,
        ["21", "22", "23", "31"]
    );
    let two = "INSERT INTO d VALUES (0, 0, 1), (1, 1, 2)";
    assert_eq!(rows(&session, two).await?, ["2"]);
    assert_eq!(rows(&session, "SELECT count(*) FROM d").await?, ["11"]);
    assert!(refused(&session, "DELETE FROM d").await.contains("dense"));
    Ok(())
}

#[tokio::test]
async fn groups_and_folders_are_catalogs() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let folder = tempfile::tempdir()?;
    let uri = |name: &str| folder.path().join(name).display().to_string();
    grid(&context, &uri("one"))?;
    context.group(&uri("inner")).create()?;
    grid(&context, &uri("inner/two"))?;
    let mut editor = context.group(&uri("inner")).edit()?;
    editor.add(azulejo::group::NewMember::relative("two"))?;
    editor.commit()?;
    let catalog = ArrayCatalog::open(
        &context,
        &folder.path().display().to_string(),
        TableOptions::new(),
    )?;
    let session = session(&context);
    session.register_catalog("f", Arc::new(catalog));
    assert_eq!(
        rows(&session, "SELECT count(*) FROM f.public.one").await?,
        ["10000"]
    );
    assert_eq!(
        rows(&session, "SELECT count(*) FROM f.\"inner\".two").await?,
        ["10000"]
    );
    // Folders that are no groups are schemas where arrays lie in them.
    grid(&context, &uri("plain/three"))?;
    std::fs::create_dir_all(folder.path().join("nothing/here"))?;
    // The schema of this name is that of the arrays beside it.
    grid(&context, &uri("public/four"))?;
    let catalog = ArrayCatalog::open(
        &context,
        &folder.path().display().to_string(),
        TableOptions::new(),
    )?;
    session.register_catalog("g", Arc::new(catalog));
    assert_eq!(
        rows(&session, "SELECT count(*) FROM g.plain.three").await?,
        ["10000"]
    );
    assert_eq!(
        rows(&session, "SELECT count(*) FROM g.public.one").await?,
        ["10000"]
    );
    let schemas = "SELECT DISTINCT table_schema FROM information_schema.tables WHERE table_catalog = 'g' AND table_schema <> 'information_schema' ORDER BY 1";
    assert_eq!(rows(&session, schemas).await?, ["inner", "plain", "public"]);
    let joined = "SELECT count(*) FROM f.public.one AS a JOIN f.\"inner\".two AS b ON a.x = b.x AND a.y = b.y WHERE b.v < 100";
    assert_eq!(rows(&session, joined).await?, ["100"]);
    // A group that cannot be read takes nothing from the others.
    for file in std::fs::read_dir(folder.path().join("inner/__group"))? {
        std::fs::write(file?.path(), "damaged")?;
    }
    let place = folder.path().display().to_string();
    let catalog = ArrayCatalog::open(&context, &place, TableOptions::new())?;
    session.register_catalog("h", Arc::new(catalog));
    let one = "SELECT count(*) FROM h.public.one";
    assert_eq!(rows(&session, one).await?, ["10000"]);
    let schemas = schemas.replace("'g'", "'h'");
    assert_eq!(rows(&session, &schemas).await?, ["plain", "public"]);
    let two = "SELECT count(*) FROM h.\"inner\".two";
    let why = refused(&session, two).await;
    assert!(why.contains("__group"), "{why}");
    Ok(())
}

/// As those of measurements in experiments are.
#[tokio::test]
async fn groups_in_groups_are_schemas() -> TestResult {
    use azulejo::group::NewMember;
    let context = Context::new(Config::default(), None)?;
    let folder = tempfile::tempdir()?;
    let uri = |name: &str| folder.path().join(name).display().to_string();
    let groups = ["e", "e/ms", "e/ms/RNA", "e/ms/RNA/X"];
    for group in groups {
        context.group(&uri(group)).create()?;
    }
    grid(&context, &uri("e/ms/var"))?;
    grid(&context, &uri("e/ms/RNA/X/data"))?;
    for (group, member) in [
        ("e", "ms"),
        ("e/ms", "var"),
        ("e/ms", "RNA"),
        ("e/ms/RNA", "X"),
        ("e/ms/RNA/X", "data"),
    ] {
        let mut editor = context.group(&uri(group)).edit()?;
        editor.add(NewMember::relative(member))?;
        editor.commit()?;
    }
    // Some lie in themselves, and some are gone.
    let mut editor = context.group(&uri("e/ms/RNA/X")).edit()?;
    editor.add(NewMember::at(uri("e/ms")).named("again"))?;
    editor.add(NewMember::relative("../../../ms").named("up"))?;
    editor.commit()?;
    context.group(&uri("gone")).create()?;
    let mut editor = context.group(&uri("e/ms/RNA")).edit()?;
    editor.add(NewMember::at(uri("gone")).named("gone"))?;
    editor.commit()?;
    std::fs::remove_dir_all(folder.path().join("gone"))?;

    let session = session(&context);
    let catalog = ArrayCatalog::open(&context, &uri("e"), TableOptions::new())?;
    session.register_catalog("e", Arc::new(catalog));
    let listed = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'e' AND table_schema <> 'information_schema' ORDER BY 1";
    assert_eq!(rows(&session, listed).await?, ["ms|var", "ms/RNA/X|data"]);
    let count = "SELECT count(*) FROM e.\"ms/RNA/X\".data WHERE v < 7";
    assert_eq!(rows(&session, count).await?, ["7"]);
    Ok(())
}

/// A group that cannot be read takes nothing away from the others.
#[tokio::test]
async fn what_cannot_be_read_is_an_error_of_its_own() -> TestResult {
    use azulejo::group::NewMember;
    let context = Context::new(Config::default(), None)?;
    let folder = tempfile::tempdir()?;
    let uri = |name: &str| folder.path().join(name).display().to_string();
    for group in ["e", "e/ms", "e/ms/RNA", "e/raw"] {
        context.group(&uri(group)).create()?;
    }
    grid(&context, &uri("e/ms/var"))?;
    for group in ["e/ms/RNA", "e/raw"] {
        grid(&context, &uri(&format!("{group}/data")))?;
        let mut editor = context.group(&uri(group)).edit()?;
        editor.add(NewMember::relative("data"))?;
        editor.commit()?;
    }
    for (group, members) in [("e/ms", ["var", "RNA"]), ("e", ["ms", "raw"])] {
        let mut editor = context.group(&uri(group)).edit()?;
        for member in members {
            editor.add(NewMember::relative(member))?;
        }
        editor.commit()?;
    }
    for group in ["e/ms/RNA", "e/raw"] {
        for file in std::fs::read_dir(folder.path().join(group).join("__group"))? {
            std::fs::write(file?.path(), "damaged")?;
        }
    }
    let session = session(&context);
    let catalog = ArrayCatalog::open(&context, &uri("e"), TableOptions::new())?;
    session.register_catalog("e", Arc::new(catalog));
    let listed = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'e' AND table_schema <> 'information_schema'";
    assert_eq!(rows(&session, listed).await?, ["ms|var"]);
    assert_eq!(
        rows(&session, "SELECT count(*) FROM e.ms.var WHERE v < 7").await?,
        ["7"]
    );
    for schema in ["\"ms/RNA\"", "raw"] {
        let error = refused(&session, &format!("SELECT * FROM e.{schema}.data")).await;
        assert!(!error.contains("not found"), "{error}");
        assert!(error.contains(schema.trim_matches('"')), "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn members_of_a_group_are_told_apart() -> TestResult {
    use azulejo::group::NewMember;
    let context = Context::new(Config::default(), None)?;
    let folder = tempfile::tempdir()?;
    let uri = |name: &str| folder.path().join(name).display().to_string();
    let session = session(&context);
    for (place, cells) in [("a", 3), ("b", 4), ("c", 5)] {
        rows(&session, &format!("COPY (SELECT value AS id FROM generate_series(1, {cells})) TO '{}' STORED AS AZULEJO OPTIONS (dimensions 'id')", uri(place))).await?;
    }
    context.group(&uri("years")).create()?;
    let mut editor = context.group(&uri("years")).edit()?;
    for (place, name) in [("a", "2023/temps"), ("b", "2024/temps"), ("c", "all/winds")] {
        editor.add(NewMember::at(uri(place)).named(name))?;
    }
    editor.commit()?;
    let catalog = ArrayCatalog::open(&context, &uri("years"), TableOptions::new())?;
    session.register_catalog("y", Arc::new(catalog));
    for (table, cells) in [
        ("\"2023/temps\"", "3"),
        ("\"2024/temps\"", "4"),
        ("winds", "5"),
    ] {
        let count = format!("SELECT count(*) FROM y.public.{table}");
        assert_eq!(rows(&session, &count).await?, [cells], "{table}");
    }

    // A group that is called as the schema of a group's own arrays is.
    context.group(&uri("open")).create()?;
    let mut editor = context.group(&uri("open")).edit()?;
    editor.add(NewMember::at(uri("years")).named("public"))?;
    editor.commit()?;
    let catalog = ArrayCatalog::open(&context, &uri("open"), TableOptions::new())?;
    session.register_catalog("o", Arc::new(catalog));
    assert_eq!(
        rows(&session, "SELECT count(*) FROM o.public.winds").await?,
        ["5"]
    );
    let mut editor = context.group(&uri("open")).edit()?;
    editor.add(NewMember::at(uri("a")).named("a"))?;
    editor.commit()?;
    let refused = ArrayCatalog::open(&context, &uri("open"), TableOptions::new());
    let error = refused.expect_err("one hides the other").to_string();
    let names_both = error.contains(&uri("years")) && error.contains(&uri("a"));
    assert!(names_both && error.contains("public"), "{error}");
    Ok(())
}

#[tokio::test]
async fn folders_may_hold_what_cannot_be_read() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let key = azulejo::format::filter::EncryptionKey::new([7; 32]);
    let with_key = Context::new(Config::default(), Some(key))?;
    let folder = tempfile::tempdir()?;
    let uri = |name: &str| folder.path().join(name).display().to_string();
    for name in ["good", "gone", "of \"odd\" name.x"] {
        grid(&context, &uri(name))?;
    }
    grid(&with_key, &uri("secret"))?;
    // A group with a member that is not there, and one without members.
    for group in ["dangling", "empty"] {
        context.group(&uri(group)).create()?;
    }
    let mut editor = context.group(&uri("dangling")).edit()?;
    let gone = azulejo::group::NewMember::relative("nothing");
    editor.add(gone.typed(azulejo::group::ObjectType::Array))?;
    editor.commit()?;
    let root = folder.path().display().to_string();
    let catalog = ArrayCatalog::open(&context, &root, TableOptions::new())?;
    let session = session(&context);
    session.register_catalog("f", Arc::new(catalog));
    context.array(&uri("gone")).delete()?;
    let listed = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'f' AND table_schema <> 'information_schema' ORDER BY 1, 2";
    assert_eq!(
        rows(&session, listed).await?,
        [
            "dangling|nothing",
            "public|gone",
            "public|good",
            "public|of \"odd\" name.x",
            "public|secret"
        ]
    );
    assert_eq!(
        rows(&session, "SELECT count(*) FROM f.public.good").await?,
        ["10000"]
    );
    assert_eq!(
        rows(
            &session,
            "SELECT max(v) FROM f.public.\"of \"\"odd\"\" name.x\""
        )
        .await?,
        ["9999"]
    );
    let other = "CREATE SCHEMA other; CREATE TABLE other.t AS SELECT 1 AS x; SELECT x FROM other.t";
    assert_eq!(rows(&session, other).await?, ["1"]);
    rows(&session, "DROP SCHEMA other CASCADE").await?;
    assert!(
        refused(&session, "SELECT x FROM other.t")
            .await
            .contains("other")
    );
    for (table, reason) in [
        ("f.public.gone", "not found"),
        ("f.dangling.nothing", "not found"),
        ("f.\"empty\".nothing", "not found"),
        ("f.public.secret", "encrypt"),
    ] {
        let error = refused(&session, &format!("SELECT * FROM {table}")).await;
        assert!(error.contains(reason), "{table}: {error}");
    }
    Ok(())
}

#[tokio::test]
async fn functions_of_tiles() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    grid(&context, "mem://functions")?;
    let session = session(&context);
    session.register_table("g", table(&context.array("mem://functions"))?)?;
    let tiles = "SELECT tile_of(y) AS t, count(*) FROM g WHERE x < 5 GROUP BY t ORDER BY t LIMIT 2";
    assert_eq!(rows(&session, tiles).await?, ["0|50", "1|50"]);
    assert_eq!(
        rows(&session, "SELECT DISTINCT extent_of(x) FROM g").await?,
        ["10.0"]
    );
    let buckets = "SELECT bucket(v, 2500) AS b, count(*) FROM g GROUP BY b ORDER BY b";
    assert_eq!(
        rows(&session, buckets).await?,
        ["0|2500", "2500|2500", "5000|2500", "7500|2500"]
    );
    assert_eq!(
        rows(&session, "SELECT bucket(-7, 5), bucket(-0.5, 0.2)").await?,
        ["-10|-0.6000000000000001"]
    );
    // However a column comes up from its array.
    for (query, expected) in [
        (
            "SELECT count(*) FROM g WHERE tile_of(y) = 3 AND tile_of(x) IN (2, 4)",
            "200",
        ),
        (
            "SELECT max(tile_of(k)) FROM (SELECT y AS k, v FROM g WHERE v < 500) AS q",
            "0",
        ),
        (
            "SELECT max(tile_of(a.y) + tile_of(b.x)) FROM g AS a JOIN g AS b ON a.v = b.v",
            "18",
        ),
        (
            "SELECT max(tile_of(q.y)) FROM (SELECT y FROM g UNION ALL SELECT y FROM g) AS q",
            "9",
        ),
        (
            "WITH w AS (SELECT DISTINCT x FROM g ORDER BY x LIMIT 15) SELECT max(tile_of(x)) FROM w",
            "1",
        ),
        (
            "SELECT count(*) FROM (SELECT y FROM g GROUP BY y HAVING tile_of(y) = 1) AS q",
            "10",
        ),
        (
            "SELECT tile_of(y) FROM (SELECT y, row_number() OVER (ORDER BY v DESC) AS n FROM g) AS q WHERE n = 1",
            "9",
        ),
        (
            "SELECT count(*) FROM g WHERE v IN (SELECT v FROM g WHERE tile_of(x) = 0)",
            "1000",
        ),
        (
            "SELECT \"tile_of(g.y)\" FROM (SELECT tile_of(y) FROM g WHERE v = 9999) AS q",
            "9",
        ),
    ] {
        assert_eq!(rows(&session, query).await?, [expected], "{query}");
    }
    for query in [
        "SELECT tile_of(v) FROM g",
        "SELECT tile_of(3)",
        "SELECT tile_of(y) FROM (SELECT y FROM g UNION ALL SELECT v FROM g) AS q",
    ] {
        let error = refused(&session, query).await;
        assert!(error.contains("dimension"), "{query}: {error}");
    }
    Ok(())
}

/// Arrays show bytes as views: a declaration says what they are, not how they lie.
#[tokio::test]
async fn bytes_are_declared_as_such() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context);
    for name in ["t", "u"] {
        rows(&session, &format!("CREATE EXTERNAL TABLE {name} (k INT, b BYTEA, PRIMARY KEY (k)) STORED AS AZULEJO LOCATION 'mem://bytes'")).await?;
    }
    rows(&session, "INSERT INTO t VALUES (1, 'x'), (2, NULL)").await?;
    let all = rows(&session, "SELECT k, b FROM t ORDER BY k").await?;
    assert_eq!(all, ["1|78", "2|∅"]);
    assert_eq!(
        rows(&session, "SELECT k FROM u WHERE b = 'x'").await?,
        ["1"]
    );
    let other = "CREATE EXTERNAL TABLE v (k INT, b INT, PRIMARY KEY (k)) STORED AS AZULEJO LOCATION 'mem://bytes'";
    assert!(refused(&session, other).await.contains("no column b"));
    Ok(())
}

/// Options are text, which milliseconds are too.
#[tokio::test]
async fn options_take_times_in_milliseconds() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context);
    rows(&session, "CREATE EXTERNAL TABLE t (k INT, v INT, PRIMARY KEY (k)) STORED AS AZULEJO LOCATION 'mem://at'").await?;
    rows(&session, "INSERT INTO t VALUES (1, 2)").await?;
    let at = |name: &str, time: &str| {
        format!(
            "CREATE EXTERNAL TABLE {name} STORED AS AZULEJO LOCATION 'mem://at' OPTIONS (at '{time}')"
        )
    };
    rows(&session, &at("later", "99999999999999")).await?;
    assert_eq!(rows(&session, "SELECT k, v FROM later").await?, ["1|2"]);
    let before = refused(&session, &at("before", "-1")).await;
    assert!(before.contains("no time since 1970"), "{before}");
    Ok(())
}

/// Schemas of unions and of recursive queries are compared to the letter.
#[tokio::test]
async fn dimensions_with_other_tiles_are_columns_of_one_kind() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context);
    for (name, key, options) in [
        ("a", "BIGINT", "'domain.x' '0..99', 'tile.x' '10'"),
        ("b", "BIGINT", "'domain.x' '-5..199', 'tile.x' '20'"),
        ("c", "INT", "'domain.x' '0..9', 'tile.x' '5'"),
        ("d", "DATE", "'domain.x' '0..9', 'tile.x' '2'"),
    ] {
        rows(&session, &format!("CREATE EXTERNAL TABLE {name} (x {key}, v INT, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://kinds/{name}' OPTIONS ({options})")).await?;
    }
    rows(&session, "INSERT INTO a VALUES (1, 2), (3, 4)").await?;
    rows(&session, "INSERT INTO b VALUES (3, 5), (-2, 6)").await?;
    rows(&session, "INSERT INTO c VALUES (1, 7), (3, 8)").await?;
    rows(&session, "INSERT INTO d VALUES ('1970-01-02', 7)").await?;
    for (query, expected) in [
        (
            "SELECT x FROM a UNION ALL SELECT x FROM b ORDER BY x",
            &["-2", "1", "3", "3"][..],
        ),
        (
            "SELECT x FROM a UNION SELECT x FROM b UNION SELECT x FROM c ORDER BY x",
            &["-2", "1", "3"],
        ),
        (
            "SELECT x FROM c UNION SELECT x FROM a ORDER BY 1",
            &["1", "3"],
        ),
        (
            "SELECT x FROM c UNION SELECT x FROM d ORDER BY 1",
            &["1970-01-02", "1970-01-04"],
        ),
        ("SELECT x FROM a INTERSECT SELECT x FROM b", &["3"]),
        (
            "WITH RECURSIVE r AS (SELECT x FROM a UNION ALL SELECT x + 2 AS x FROM r WHERE x < 5) SELECT x FROM r ORDER BY x",
            &["1", "3", "3", "5", "5"],
        ),
        (
            "SELECT CASE WHEN a.x > 2 THEN a.x ELSE b.x END AS k FROM a JOIN b ON a.x >= b.x ORDER BY k",
            &["-2", "3", "3"],
        ),
    ] {
        assert_eq!(rows(&session, query).await?, expected, "{query}");
    }
    Ok(())
}

/// A dimension of days has those that SQL has, if nothing else is said: so arrays are in their order.
#[tokio::test]
async fn days_need_no_domain() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context);
    for (name, options) in [("plain", ""), ("tiled", "OPTIONS ('tile.day' '365')")] {
        rows(&session, &format!("CREATE EXTERNAL TABLE {name} (day DATE, v INT, PRIMARY KEY (day)) STORED AS AZULEJO LOCATION 'mem://days/{name}' {options}")).await?;
        let insert = format!(
            "INSERT INTO {name} SELECT arrow_cast(column1, 'Date32'), column2 FROM (VALUES (2147483647, 1), (-2147483648, 2), (0, 3))"
        );
        assert_eq!(rows(&session, &insert).await?, ["3"]);
        let query = format!("SELECT v FROM {name} ORDER BY day");
        assert_eq!(rows(&session, &query).await?, ["2", "3", "1"]);
        let plan = plan(&session, &query).await?;
        assert!(!plan.contains("SortExec"), "{plan}");
    }
    Ok(())
}

/// NaN is above all numbers in groups, too, wherever it stands among them.
#[tokio::test]
async fn extremes_of_reals_in_groups_are_those_of_their_order() -> TestResult {
    let session = session(&Context::new(Config::default(), None)?);
    for real in ["DOUBLE", "FLOAT"] {
        let name = format!("of_{}", real.to_lowercase());
        for statement in [
            format!(
                "CREATE EXTERNAL TABLE {name} (id INT, k INT, v {real}, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://{name}'"
            ),
            format!(
                "INSERT INTO {name} VALUES (0, 1, 'NaN'), (1, 1, 1), (2, 1, 2), (3, 2, 1), (4, 2, 'NaN'), (5, 2, 2), (6, 3, 2), (7, 3, 3), (8, 3, 'NaN'), (9, 4, 'NaN'), (10, 5, 'inf'), (11, 6, '-inf'), (12, 7, NULL), (13, 8, NULL), (14, 8, -2)"
            ),
        ] {
            rows(&session, &statement).await?;
        }
        let query = format!("SELECT k, min(v), max(v) FROM {name} GROUP BY k ORDER BY k");
        let expected = [
            "1|1.0|NaN",
            "2|1.0|NaN",
            "3|2.0|NaN",
            "4|NaN|NaN",
            "5|inf|inf",
            "6|-inf|-inf",
            "7|∅|∅",
            "8|-2.0|-2.0",
        ];
        assert_eq!(rows(&session, &query).await?, expected, "{query}");
        let filtered = format!(
            "SELECT k, min(v) FILTER (WHERE id > 0), max(v) FILTER (WHERE v < 'NaN') FROM {name} WHERE k < 4 GROUP BY k ORDER BY k"
        );
        let expected = ["1|1.0|2.0", "2|1.0|2.0", "3|2.0|3.0"];
        assert_eq!(rows(&session, &filtered).await?, expected, "{filtered}");
    }
    // Those half as wide are none of an array's, but queries can make them.
    let halves = "SELECT k, CAST(min(arrow_cast(v, 'Float16')) AS DOUBLE), CAST(max(arrow_cast(v, 'Float16')) AS DOUBLE) FROM of_double WHERE k < 7 GROUP BY k ORDER BY k";
    let expected = [
        "1|1.0|NaN",
        "2|1.0|NaN",
        "3|2.0|NaN",
        "4|NaN|NaN",
        "5|inf|inf",
        "6|-inf|-inf",
    ];
    assert_eq!(rows(&session, halves).await?, expected);
    Ok(())
}

/// What follows an `IS DISTINCT FROM` is no part of it.
#[tokio::test]
async fn distinct_from_ends_before_and_and_or() -> TestResult {
    let session = session(&Context::new(Config::default(), None)?);
    for (condition, expected) in [
        (
            "a IS DISTINCT FROM 1 OR b",
            &["1|true", "2|false", "∅|false"][..],
        ),
        ("a IS DISTINCT FROM 1 AND b", &[]),
        ("b AND a IS NOT DISTINCT FROM 0 + 1 AND a < 5", &["1|true"]),
        (
            "b IS NOT DISTINCT FROM true OR a = 2",
            &["1|true", "2|false"],
        ),
        (
            "NOT (b IS NOT DISTINCT FROM true OR a IS NOT NULL)",
            &["∅|false"],
        ),
        ("a IS DISTINCT FROM 1 IS FALSE", &["1|true"]),
        ("a IS DISTINCT FROM NULL AND a IN (2)", &["2|false"]),
        // Operators on lists come first, before comparisons too.
        ("true IS NOT DISTINCT FROM [a] @> [2]", &["2|false"]),
        ("[a] @> [1] IS TRUE", &["1|true"]),
        ("[a] @> [1] = b AND a < 5", &["1|true", "2|false"]),
    ] {
        let query = format!(
            "SELECT a, b FROM (VALUES (1, true), (2, false), (NULL, false)) AS t (a, b) WHERE {condition} ORDER BY a"
        );
        assert_eq!(rows(&session, &query).await?, expected, "{condition}");
    }
    // Operators without a name bind tighter than all of these.
    for (query, expected) in [
        ("true IS DISTINCT FROM [1, 2] @> [1]", "false"),
        ("[1, 2] @> [1] = true", "true"),
        ("[1, 2] @> [3] IS NOT DISTINCT FROM false", "true"),
        ("[1, 2] @> [1] IS NULL OR [1] <@ [2]", "false"),
    ] {
        let found = rows(&session, &format!("SELECT {query}")).await?;
        assert_eq!(found, [expected], "{query}");
    }
    Ok(())
}

/// What is compared is told apart from what it is compared with, though both are called alike.
#[tokio::test]
async fn any_and_all_of_a_table_itself() -> TestResult {
    let session = session(&Context::new(Config::default(), None)?);
    for statement in [
        "CREATE EXTERNAL TABLE t (x INT, v INT, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://any'",
        "INSERT INTO t VALUES (2, 5), (5, NULL), (7, 2)",
    ] {
        rows(&session, statement).await?;
    }
    for (condition, expected) in [
        ("x > ANY (SELECT x FROM t)", &["5", "7"][..]),
        ("x = ANY (SELECT x FROM t WHERE x > 2)", &["5", "7"]),
        ("x >= ALL (SELECT x FROM t)", &["7"]),
        ("x <> ALL (SELECT x FROM t WHERE x > 2)", &["2"]),
        ("v > ALL (SELECT v FROM t WHERE v < 5)", &["2"]),
        ("v < ANY (SELECT x FROM t WHERE x > 2)", &["2", "7"]),
        (
            "x > ANY (SELECT x FROM t WHERE x > ANY (SELECT x FROM t))",
            &["7"],
        ),
        ("x <> ALL (SELECT v FROM t)", &[]),
        ("x > ALL (SELECT x FROM t WHERE false)", &["2", "5", "7"]),
        ("x < ANY (SELECT x FROM t WHERE false)", &[]),
        ("x > ALL (SELECT v FROM t)", &[]),
        ("NOT (x > ALL (SELECT v FROM t))", &["2", "5"]),
        ("(x > ALL (SELECT v FROM t)) IS NULL", &["7"]),
        ("(x > ANY (SELECT v FROM t)) IS NULL", &["2"]),
        ("(v > ANY (SELECT x FROM t)) IS NULL", &["5"]),
        (
            "(v > ALL (SELECT x FROM t WHERE false)) IS TRUE",
            &["2", "5", "7"],
        ),
        ("x = ALL (SELECT x FROM t WHERE x > 5)", &["7"]),
        ("x = ALL (SELECT x FROM t WHERE x > 2)", &[]),
        ("x <> ANY (SELECT x FROM t WHERE x > 5)", &["2", "5"]),
        ("x <> ANY (SELECT x FROM t WHERE x > 2)", &["2", "5", "7"]),
        ("x >= ALL (SELECT b.v FROM t AS b WHERE b.x = t.x)", &["7"]),
        (
            "(x >= ALL (SELECT b.v FROM t AS b WHERE b.x = t.x)) IS NULL",
            &["5"],
        ),
        (
            "x > ANY (SELECT b.v FROM t AS b WHERE b.x % 2 = t.x % 2)",
            &["5", "7"],
        ),
        (
            "x > ALL (SELECT b.v FROM t AS b WHERE b.v < t.v)",
            &["5", "7"],
        ),
        (
            "x > ANY (SELECT w FROM (VALUES (2.2, 1), (2.4, 0)) AS b(f, w) WHERE CAST(b.f AS INT) = t.x)",
            &["2"],
        ),
        ("x < ALL (SELECT count(*) FROM t AS b WHERE b.x = t.v)", &[]),
        (
            "x - 5 = ANY (SELECT count(*) FROM t AS b WHERE b.x = t.v)",
            &["5"],
        ),
        ("x <> ALL (SELECT max(v) FROM t WHERE false)", &[]),
        (
            "x > ALL (SELECT w FROM (VALUES (2, 'NaN'::DOUBLE), (2, 1.0), (5, 1.0)) AS b(k, w) WHERE b.k = t.x)",
            &["5", "7"],
        ),
    ] {
        let query = format!("SELECT x FROM t WHERE {condition} ORDER BY x");
        assert_eq!(rows(&session, &query).await?, expected, "{condition}");
    }
    let shown = "SELECT x, x > ALL (SELECT v FROM t) FROM t ORDER BY x";
    assert_eq!(rows(&session, shown).await?, ["2|false", "5|false", "7|∅"]);
    // Each with each would take hours.
    let many = "SELECT count(*) FROM generate_series(1, 400000) AS a(x) WHERE x > ALL (SELECT y FROM generate_series(1, 300000) AS b(y))";
    assert_eq!(rows(&session, many).await?, ["100000"]);
    rows(&session, "DELETE FROM t WHERE x > ANY (SELECT x FROM t)").await?;
    assert_eq!(rows(&session, "SELECT x FROM t").await?, ["2"]);
    Ok(())
}

/// Equal rows count as often as they come, null beside null too.
#[tokio::test]
async fn set_operations_count_rows() -> TestResult {
    let session = session(&Context::new(Config::default(), None)?);
    for statement in [
        "CREATE EXTERNAL TABLE t (x INT, v INT, s VARCHAR, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://rows'",
        "INSERT INTO t VALUES (1, 5, 'a'), (2, 5, 'a'), (3, 5, 'a'), (4, NULL, 'b'), (5, NULL, 'b'), (6, 7, NULL)",
    ] {
        rows(&session, statement).await?;
    }
    for (query, expected) in [
        (
            "SELECT v, s FROM t EXCEPT ALL SELECT v, s FROM t WHERE x IN (1, 4)",
            &["5|a", "5|a", "7|∅", "∅|b"][..],
        ),
        (
            "SELECT v, s FROM t WHERE x < 6 INTERSECT ALL SELECT v, s FROM t WHERE x > 1",
            &["5|a", "5|a", "∅|b", "∅|b"],
        ),
        (
            "SELECT v FROM t EXCEPT ALL SELECT CAST(5 AS BIGINT) EXCEPT ALL SELECT NULL",
            &["5", "5", "7", "∅"],
        ),
        (
            "SELECT DISTINCT v FROM t EXCEPT ALL (SELECT 5 UNION ALL SELECT 5)",
            &["7", "∅"],
        ),
        ("SELECT v FROM t EXCEPT SELECT 5", &["7", "∅"]),
        (
            "SELECT v FROM t INTERSECT SELECT v FROM t",
            &["5", "7", "∅"],
        ),
        (
            "SELECT count(*) FROM (SELECT v FROM t EXCEPT ALL SELECT v FROM t WHERE x = 1)",
            &["5"],
        ),
        ("SELECT v FROM t EXCEPT ALL SELECT v FROM t", &[]),
        (
            "SELECT count(*) FROM (SELECT x FROM (VALUES (0.0), (-0.0), (0.0)) AS n(x) EXCEPT ALL SELECT 0.0)",
            &["2"],
        ),
        (
            "SELECT v FROM (SELECT v FROM t) AS a WHERE EXISTS (SELECT 1 FROM (VALUES (5), (NULL)) AS b (w) WHERE b.w IS NOT DISTINCT FROM a.v)",
            &["5", "5", "5", "∅", "∅"],
        ),
    ] {
        let mut found = rows(&session, query).await?;
        found.sort();
        assert_eq!(found, expected, "{query}");
    }
    Ok(())
}

/// What the dialect reads and DataFusion plans nothing for.
#[tokio::test]
async fn clauses_are_not_forgotten() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    grid(&context, "mem://grid")?;
    let session = session(&context);
    for (query, reason) in [
        ("SELECT count(*) FROM 'mem://grid' PREWHERE v > 5", "WHERE"),
        (
            "SELECT count(*) FROM 'mem://grid' START WITH v = 1 CONNECT BY PRIOR v = y",
            "WITH RECURSIVE",
        ),
        (
            "SELECT y, count(*) FROM 'mem://grid' GROUP BY y WITH ROLLUP",
            "GROUP BY ROLLUP",
        ),
        (
            "SELECT y, count(*) FROM 'mem://grid' GROUP BY y WITH TOTALS",
            "GROUPING SETS",
        ),
        (
            "SELECT count(*) FROM 'mem://grid' TABLESAMPLE BERNOULLI (10)",
            "random()",
        ),
        (
            "EXPLAIN SELECT 1 WHERE EXISTS (SELECT * FROM (SELECT v FROM 'mem://grid') TABLESAMPLE SYSTEM (10))",
            "random()",
        ),
        (
            "COPY (SELECT * FROM 'mem://grid' PARTITION (p)) TO 'mem://x' STORED AS AZULEJO OPTIONS (dimensions 'y, x')",
            "PARTITION",
        ),
    ] {
        let error = refused(&session, query).await;
        assert!(error.contains(reason), "{query}: {error}");
    }
    let query = "SELECT y, count(*) FROM 'mem://grid' WHERE y < 1 GROUP BY ROLLUP (y) ORDER BY y";
    assert_eq!(rows(&session, query).await?, ["0|100", "∅|100"]);
    Ok(())
}

/// Days are declared to have nulls, and as a dimension have none: what wants them first is sorted.
#[tokio::test]
async fn days_are_in_order_wherever_nulls_would_be() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let config = SessionConfig::new().with_target_partitions(4);
    let config = config.with_extension(Arc::new(azulejo_sql::CellsAPartition(1)));
    let session = session_with(&context, config);
    for statement in [
        "CREATE EXTERNAL TABLE t (day DATE, k INT, PRIMARY KEY (day, k)) STORED AS AZULEJO LOCATION 'mem://ordered' OPTIONS ('domain.day' '0..99', 'tile.day' '5', 'domain.k' '0..9', 'capacity' '4')",
        "INSERT INTO t SELECT arrow_cast(arrow_cast(value / 3, 'Int32'), 'Date32'), value % 3 FROM generate_series(0, 59)",
    ] {
        rows(&session, statement).await?;
    }
    for nulls in ["", " NULLS FIRST", " NULLS LAST"] {
        let query = format!("SELECT day, k FROM t ORDER BY day{nulls}, k{nulls} LIMIT 2 OFFSET 31");
        let expected = ["1970-01-11|1", "1970-01-11|2"];
        assert_eq!(rows(&session, &query).await?, expected, "{query}");
        let shown = plan(&session, &query).await?;
        assert!(shown.contains("SortPreservingMergeExec"), "{shown}");
        assert_eq!(
            shown.contains("SortExec"),
            nulls == " NULLS FIRST",
            "{shown}"
        );
    }
    let numbered =
        "SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY day NULLS FIRST) AS n FROM t)";
    assert_eq!(rows(&session, numbered).await?, ["60"]);
    rows(
        &session,
        "SET datafusion.optimizer.prefer_hash_join = false",
    )
    .await?;
    let joined = "SELECT count(*) FROM t AS a JOIN t AS b ON a.day = b.day";
    assert_eq!(rows(&session, joined).await?, ["180"]);
    Ok(())
}

#[tokio::test]
async fn the_current_domain_bounds_what_is_asked() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let place = context.array("mem://current");
    let schema = ArraySchema::sparse()
        .dimension("x", 0i32..=99, 10)
        .attribute("v", Datatype::Int32)
        .current_domain(vec![Range::of(0i32, 9)])
        .build()?;
    assert!(matches!(
        schema.schema.current_domain,
        CurrentDomain::NdRectangle(_)
    ));
    place.create(schema)?;
    let session = session(&context);
    session.register_table("c", table(&place)?)?;
    rows(&session, "INSERT INTO c VALUES (1, 1), (9, 9)").await?;
    assert_eq!(rows(&session, "SELECT v FROM c WHERE x > 5").await?, ["9"]);
    assert_eq!(
        rows(&session, "SELECT v FROM c WHERE x > 50").await?,
        [""; 0]
    );
    Ok(())
}

#[tokio::test]
async fn filters_of_joins_and_of_the_first_rows_reach_running_scans() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let place = context.array("mem://long");
    let schema = ArraySchema::sparse()
        .dimension("id", 0i64..=9_999_999, 10_000)
        .attribute("v", Datatype::Int64)
        .build()?;
    place.create(schema)?;
    let mut writer = place.writer(WriteOptions::new())?;
    let ids: Vec<i64> = (0..600_000).collect();
    writer.write(&ColumnSet::of([
        ColumnBuffers::of_values("id", ids.clone()),
        ColumnBuffers::of_values("v", ids),
    ])?)?;
    writer.finish()?;
    let session = session(&context);
    session.register_table("l", table(&place)?)?;
    rows(&session, "CREATE TABLE s AS VALUES (5), (500), (1000)").await?;
    let joined = "SELECT sum(l.v) FROM l JOIN s ON l.id = s.column1";
    assert_eq!(rows(&session, joined).await?, ["1505"]);
    let analyzed = rows(&session, &format!("EXPLAIN ANALYZE {joined}"))
        .await?
        .join("\n");
    assert!(analyzed.contains("dynamic=["), "{analyzed}");
    let narrowed = analyzed.contains("output_rows=3,") && analyzed.contains("pieces_read=1,");
    assert!(narrowed, "{analyzed}");
    assert_eq!(
        rows(&session, "SELECT id FROM l ORDER BY v DESC LIMIT 2").await?,
        ["599999", "599998"]
    );
    Ok(())
}

/// What comes from above a limit leaves out rows that the limit has counted.
#[tokio::test]
async fn limits_count_rows_before_filters_that_come_from_above() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    for partitions in [1, 4] {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let config = config.with_extension(Arc::new(azulejo_sql::CellsAPartition(4096)));
        let session = session_with(&context, config);
        let place = format!("mem://below/{partitions}");
        rows(&session, &format!("CREATE EXTERNAL TABLE t (x BIGINT, v BIGINT, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION '{place}' OPTIONS ('domain.x' '0..99999', 'tile.x' '100', 'capacity' '100')")).await?;
        rows(&session, "INSERT INTO t SELECT value, CASE WHEN value < 5000 THEN value ELSE -value END FROM generate_series(0, 49999)").await?;
        let mut queries: Vec<(String, Vec<&str>)> = Vec::new();
        for first in [
            "(SELECT x FROM t ORDER BY x LIMIT 10)",
            // The array cannot tell what is asked for: the limit is that of a sort.
            "(SELECT x FROM t WHERE abs(x) >= 0 ORDER BY x LIMIT 10)",
        ] {
            queries.extend([
            (
                format!("SELECT count(*) FROM (VALUES (995), (996)) AS s(k) JOIN {first} a ON a.x = s.k"),
                vec!["0"],
            ),
            (
                format!("SELECT count(*) FROM (VALUES (5), (996)) AS s(k) JOIN {first} a ON a.x = s.k"),
                vec!["1"],
            ),
            (
                format!("SELECT k FROM (VALUES (995)) AS s(k) WHERE k IN {first}"),
                vec![],
            ),
            (
                format!("SELECT k FROM (VALUES (995)) AS s(k) WHERE k NOT IN {first}"),
                vec!["995"],
            ),
            (
                format!("SELECT k FROM (VALUES (995)) AS s(k) WHERE NOT EXISTS (SELECT 1 FROM {first} a WHERE a.x = s.k)"),
                vec!["995"],
            ),
            ]);
        }
        queries.extend([
            (
                "SELECT v FROM (SELECT x, v FROM t ORDER BY x LIMIT 5000) q ORDER BY v LIMIT 3".into(),
                vec!["0", "1", "2"],
            ),
            (
                "SELECT min(v) FROM (SELECT x, v FROM t ORDER BY x LIMIT 5000) q".into(),
                vec!["0"],
            ),
            // Which ten rows these are is open, but they are ten, and none of the others counts.
            (
                "SELECT count(*) FROM (SELECT count(*) AS n FROM (SELECT x FROM t LIMIT 10) a JOIN (SELECT value FROM generate_series(0, 49999)) s ON a.x = s.value) WHERE n = 10".into(),
                vec!["1"],
            ),
            (
                "SELECT count(*) FROM (VALUES (45000), (45001)) AS s(k) JOIN (SELECT x FROM t LIMIT 10) a ON a.x = s.k".into(),
                vec!["0"],
            ),
        ]);
        for (query, expected) in queries {
            assert_eq!(
                rows(&session, &query).await?,
                expected,
                "{partitions}: {query}"
            );
        }
        // The lesser of two limits, whichever comes first.
        for (inner, outer) in [(100, 1000), (1000, 100)] {
            for query in [
                format!("SELECT * FROM (SELECT * FROM t LIMIT {inner}) ORDER BY x LIMIT {outer}"),
                format!(
                    "SELECT * FROM (SELECT * FROM t ORDER BY x LIMIT {inner}) ORDER BY x LIMIT {outer}"
                ),
                format!(
                    "SELECT * FROM (SELECT * FROM t WHERE v <> 7 LIMIT {inner}) ORDER BY x LIMIT {outer}"
                ),
                format!("SELECT * FROM (SELECT * FROM t LIMIT {inner}) LIMIT {outer}"),
            ] {
                let found = rows(&session, &query).await?;
                assert_eq!(found.len(), 100, "{partitions}: {query}");
            }
        }
    }
    Ok(())
}

/// Filters that `min` and `max` would learn leave out rows that others beside them need.
#[tokio::test]
async fn least_and_greatest_values_are_those_of_all_rows() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let config = SessionConfig::new().with_target_partitions(4);
    let config = config.with_extension(Arc::new(azulejo_sql::CellsAPartition(4096)));
    let session = session_with(&context, config);
    rows(&session, "CREATE EXTERNAL TABLE t (x BIGINT, v BIGINT, n BIGINT, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://all' OPTIONS ('domain.x' '0..99999', 'tile.x' '100', 'capacity' '100')").await?;
    rows(&session, "INSERT INTO t SELECT value, value AS v, CASE WHEN value < 12000 THEN NULL ELSE value END FROM generate_series(0, 49999)").await?;
    for (query, expected) in [
        ("SELECT min(x), max(v + 1) FROM t", "0|50000"),
        ("SELECT max(x), min(v - 1) FROM t", "49999|-1"),
        (
            "SELECT max(x) FILTER (WHERE v = 49999), min(x) FROM t",
            "49999|0",
        ),
        (
            "SELECT min(x) FILTER (WHERE v = 0), max(x) FROM t",
            "0|49999",
        ),
        (
            "SELECT min(n), max(n) FROM t WHERE abs(x) >= 0",
            "12000|49999",
        ),
        (
            "SELECT max(n), min(n) FROM t WHERE abs(x) >= 0",
            "49999|12000",
        ),
    ] {
        assert_eq!(rows(&session, query).await?, [expected], "{query}");
    }
    Ok(())
}

/// Where doubles are too coarse to tell tiles apart, and extents are beyond what their type shows.
#[tokio::test]
async fn tiles_are_numbered_in_the_widest_domains() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context);
    for statement in [
        "CREATE EXTERNAL TABLE i (x INT, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://i'",
        "INSERT INTO i VALUES (-2147483648), (5)",
        "CREATE EXTERNAL TABLE l (x BIGINT, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://l' OPTIONS ('domain.x' '-9223372036854775807..-9223372036854770808', 'tile.x' '1000')",
        "INSERT INTO l VALUES (-9223372036854775807), (-9223372036854774808), (-9223372036854774807)",
        "CREATE EXTERNAL TABLE u (x BIGINT UNSIGNED, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://u' OPTIONS ('domain.x' '9223372036854775809..9223372036854785808', 'tile.x' '1000')",
        "INSERT INTO u VALUES (9223372036854776808), (9223372036854776809)",
    ] {
        rows(&session, statement).await?;
    }
    for (table, tiles) in [
        ("i", ["0", "0"].as_slice()),
        ("l", &["0", "0", "1"]),
        ("u", &["0", "1"]),
    ] {
        let query = format!("SELECT tile_of(x) FROM {table} ORDER BY x");
        assert_eq!(rows(&session, &query).await?, tiles, "{table}");
    }
    let extent = rows(&session, "SELECT DISTINCT extent_of(x) FROM i").await?;
    assert_eq!(extent, ["4294967295.0"]);
    Ok(())
}

#[tokio::test]
async fn buckets_hold_numbers_of_all_types() -> TestResult {
    let session = session(&Context::new(Config::default(), None)?);
    for (number, width, bucket) in [
        (
            "arrow_cast('18446744073709551615', 'UInt64')",
            "1000",
            "18446744073709551000",
        ),
        (
            "arrow_cast('9223372036854775809', 'UInt64')",
            "CAST(10 AS TINYINT)",
            "9223372036854775800",
        ),
        (
            "arrow_cast('7', 'UInt64')",
            "arrow_cast('18446744073709551615', 'UInt64')",
            "0",
        ),
        ("7", "arrow_cast('18446744073709551615', 'UInt64')", "0"),
        (
            "-7",
            "arrow_cast('9223372036854775808', 'UInt64')",
            "-9223372036854775808",
        ),
        ("-7", "arrow_cast('18446744073709551615', 'UInt64')", "∅"),
        ("-7", "5", "-10"),
        ("arrow_cast(200, 'UInt8')", "7", "196"),
        ("arrow_cast('-9223372036854775808', 'Int64')", "1000", "∅"),
        ("7", "0", "∅"),
        ("7", "NULL::INT", "∅"),
        ("7.5", "2", "6.0"),
    ] {
        let query = format!("SELECT bucket({number}, {width})");
        assert_eq!(rows(&session, &query).await?, [bucket], "{query}");
    }
    Ok(())
}

/// Whoever declares columns, or makes a table of rows, has them in that order, wherever the dimensions
/// stand among them.
#[tokio::test]
async fn columns_come_as_a_statement_says() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context);
    for statement in [
        "CREATE EXTERNAL TABLE t (a VARCHAR, y INT, b BIGINT DEFAULT 7, x INT, PRIMARY KEY (x, y)) STORED AS AZULEJO LOCATION 'mem://t' OPTIONS ('domain.x' '0..99', 'tile.x' '10', 'domain.y' '0..99', 'tile.y' '10')",
        "INSERT INTO t VALUES ('one', 1, 10, 2), ('two', 2, 20, 1)",
        "INSERT INTO t (x, y, a) VALUES (5, 6, 'three')",
    ] {
        rows(&session, statement).await?;
    }
    let all = |order: &str| format!("SELECT * FROM t ORDER BY {order}");
    let three = ["two|2|20|1", "one|1|10|2", "three|6|7|5"];
    assert_eq!(rows(&session, &all("x")).await?, three);
    assert_eq!(rows(&session, &all("x, y")).await?, three);
    let plan = plan(&session, &all("x, y")).await?;
    assert!(!plan.contains("SortExec"), "{plan}");
    for (query, answer) in [
        (
            "SELECT b, x FROM t WHERE y BETWEEN 2 AND 6 AND b < 20",
            "7|5",
        ),
        ("SELECT max(y), min(b), count(*) FROM t", "6|7|3"),
        ("SELECT a FROM t WHERE x = 1 GROUP BY x, y, a", "two"),
        (
            "SELECT l.a, r.b FROM t l JOIN t r ON l.x = r.y AND l.y = r.x WHERE l.x = 1",
            "two|10",
        ),
    ] {
        assert_eq!(rows(&session, query).await?, [answer], "{query}");
    }
    rows(&session, "UPDATE t SET b = b + y WHERE a = 'one'").await?;
    let why = refused(&session, "UPDATE t SET y = 3").await;
    assert!(why.contains("y is a dimension"), "{why}");
    rows(&session, "DELETE FROM t WHERE y = 2").await?;
    let left = ["one|1|11|2", "three|6|7|5"];
    assert_eq!(rows(&session, &all("x")).await?, left);
    let then = "SELECT * FROM t TIMESTAMP AS OF '2999-01-01' ORDER BY x";
    assert_eq!(rows(&session, then).await?, left);
    // By its location the array's own order counts.
    let own = "SELECT * FROM 'mem://t' WHERE x = 2";
    assert_eq!(rows(&session, own).await?, ["2|1|one|11"]);
    // Some columns of an array that is there, before the others.
    for statement in [
        "CREATE EXTERNAL TABLE s (b BIGINT, x INT, PRIMARY KEY (x)) STORED AS AZULEJO LOCATION 'mem://t'",
        "CREATE TABLE made WITH (location = 'mem://made', dimensions = 'x', \"domain.x\" = '0..99', \"tile.x\" = '10') AS SELECT a, x, b FROM t",
        "INSERT INTO made VALUES ('four', 4, 40)",
    ] {
        rows(&session, statement).await?;
    }
    let some = rows(&session, "SELECT * FROM s WHERE x = 2").await?;
    assert_eq!(some, ["11|2|1|one"]);
    let made = rows(&session, "SELECT * FROM made ORDER BY x").await?;
    assert_eq!(made, ["one|2|11", "four|4|40", "three|5|7"]);
    Ok(())
}

#[tokio::test]
async fn timestamps_have_the_next_finer_unit() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context);
    let create = "CREATE EXTERNAL TABLE t (k INT, a TIMESTAMP(0), b TIMESTAMP(2), c TIMESTAMP(4), d TIMESTAMP(7), e TIMESTAMP, PRIMARY KEY (k)) STORED AS AZULEJO LOCATION 'mem://t'";
    rows(&session, create).await?;
    let time = "'2024-05-01 12:00:00.25'";
    let insert =
        format!("INSERT INTO t VALUES (1, '2024-05-01 12:00:00', {time}, {time}, {time}, {time})");
    rows(&session, &insert).await?;
    let array = context.array("mem://t").open()?;
    let types = array.schema().attributes.iter().map(|a| a.datatype);
    let expected = [
        Datatype::DateTimeSecond,
        Datatype::DateTimeMilli,
        Datatype::DateTimeMicro,
        Datatype::DateTimeNano,
        Datatype::DateTimeNano,
    ];
    assert_eq!(types.collect::<Vec<_>>(), expected);
    let same = "SELECT count(*) FROM t WHERE b = c AND c = d AND d = e AND a < b";
    assert_eq!(rows(&session, same).await?, ["1"]);
    let error = refused(&session, &create.replace("(7)", "(10)")).await;
    assert!(error.contains("TIMESTAMP"), "{error}");
    Ok(())
}

#[tokio::test]
async fn times_of_day_become_spans() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context);
    let create = "CREATE TABLE t WITH (location = 'mem://t', dimensions = 'id') AS SELECT column1 AS id, \
         arrow_cast(column2, 'Time64(Nanosecond)') AS a, arrow_cast(column2, 'Time32(Second)') AS b \
         FROM (VALUES (1, '12:30:00'), (2, NULL), (3, '00:00:01'))";
    rows(&session, create).await?;
    let array = context.array("mem://t").open()?;
    let types = array.schema().attributes.iter().map(|a| a.datatype);
    let expected = [Datatype::TimeNano, Datatype::TimeSecond];
    assert_eq!(types.collect::<Vec<_>>(), expected);
    for table in ["t", "'mem://t'"] {
        let seconds = format!(
            "SELECT id, arrow_cast(a, 'Int64') / 1000000000, arrow_cast(b, 'Int64') FROM {table} ORDER BY id"
        );
        assert_eq!(
            rows(&session, &seconds).await?,
            ["1|45000|45000", "2|∅|∅", "3|1|1"]
        );
    }
    let all = "SELECT id, a, b FROM t ORDER BY id";
    let shown = ["1|12:30:00|12:30:00", "2|∅|∅", "3|00:00:01|00:00:01"];
    assert_eq!(rows(&session, all).await?, shown);
    Ok(())
}

/// A table that is declared with times of day shows the spans of the array as such, and takes them.
#[tokio::test]
async fn times_of_day_are_declared_as_such() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context);
    let create = "CREATE EXTERNAL TABLE t (id BIGINT, v INT, a TIME DEFAULT '06:00:00', PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://t'";
    rows(&session, create).await?;
    rows(
        &session,
        "INSERT INTO t VALUES (1, 1, '12:30:00'), (2, 2, NULL), (3, 3, TIME '23:59:59.5')",
    )
    .await?;
    rows(&session, "INSERT INTO t (id, v) VALUES (4, 4)").await?;
    let array = context.array("mem://t").open()?;
    assert_eq!(array.schema().attributes[1].datatype, Datatype::TimeNano);
    let all = "SELECT id, a FROM t ORDER BY id";
    assert_eq!(
        rows(&session, all).await?,
        ["1|12:30:00", "2|∅", "3|23:59:59.500", "4|06:00:00"]
    );
    for (condition, expected) in [
        ("a > '12:00'", &["1", "3"][..]),
        ("a >= TIME '12:30:00' AND v < 3", &["1"]),
        ("a IS NULL", &["2"]),
        ("a IS NOT NULL", &["1", "3", "4"]),
        ("a NOT BETWEEN '07:00:00' AND '13:00:00'", &["3", "4"]),
        ("extract(hour FROM a) = 6", &["4"]),
    ] {
        let query = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
        assert_eq!(rows(&session, &query).await?, expected, "{query}");
    }
    let bounds = "SELECT min(a), max(a), count(a), count(*) FROM t";
    assert_eq!(rows(&session, bounds).await?, ["06:00:00|23:59:59.500|3|4"]);
    rows(&session, "UPDATE t SET a = '01:00' WHERE a IS NULL").await?;
    rows(&session, "UPDATE t SET v = v + 1").await?;
    rows(&session, "DELETE FROM t WHERE a > '20:00'").await?;
    assert_eq!(
        rows(&session, "SELECT * FROM t ORDER BY a").await?,
        ["2|3|01:00:00", "4|5|06:00:00", "1|2|12:30:00"]
    );
    // By its location it has spans, of which some are no times of day.
    let longer =
        "INSERT INTO 'mem://t' VALUES (5, 5, INTERVAL '30 hours'), (6, 6, INTERVAL '-1 hour')";
    rows(&session, longer).await?;
    assert_eq!(
        rows(&session, "SELECT id FROM t WHERE a IS NULL ORDER BY id").await?,
        ["5", "6"]
    );
    assert_eq!(rows(&session, all).await?.len(), 5);
    let error = refused(&session, "UPDATE t SET v = 0").await;
    assert!(error.contains("cells of a hold times"), "{error}");
    // Declared again, and at another time.
    let again = "CREATE EXTERNAL TABLE u (a TIME, id BIGINT, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://t'";
    rows(&session, again).await?;
    let first = "SELECT a, id FROM u WHERE id < 3 ORDER BY id";
    assert_eq!(rows(&session, first).await?, ["12:30:00|1", "01:00:00|2"]);
    let before = "SELECT count(*) FROM t TIMESTAMP AS OF '2001-01-01' WHERE a > '01:00'";
    assert_eq!(rows(&session, before).await?, ["0"]);
    Ok(())
}

#[tokio::test]
async fn text_keys_come_in_the_order_of_sql() -> TestResult {
    let session = session(&Context::new(Config::default(), None)?);
    for statement in [
        "CREATE EXTERNAL TABLE t (k VARCHAR NOT NULL, a INT, PRIMARY KEY (k)) STORED AS AZULEJO LOCATION 'mem://t'",
        "INSERT INTO t VALUES ('q', 1)",
        "INSERT INTO t VALUES ('', 2), ('é', 3), ('Kö', 4), ('Ka', 5), ('q', 6)",
        "UPDATE t SET a = a + 10",
    ] {
        rows(&session, statement).await?;
    }
    assert_eq!(
        rows(&session, "SELECT k, a FROM t ORDER BY k").await?,
        ["|12", "Ka|15", "Kö|14", "q|16", "é|13"]
    );
    assert_eq!(
        rows(&session, "SELECT k FROM t ORDER BY k DESC LIMIT 2").await?,
        ["é", "q"]
    );
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await?, ["5"]);
    Ok(())
}

/// `IN` is null beside nulls, wherever it stands; `<> ALL` is `NOT IN`.
#[tokio::test]
async fn membership_beside_nulls_is_null() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context);
    for statement in [
        "CREATE EXTERNAL TABLE t (id BIGINT, a BIGINT, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://t'",
        "INSERT INTO t VALUES (1, 1), (2, NULL), (3, 7), (5, 5)",
        "CREATE EXTERNAL TABLE u (id BIGINT, b BIGINT, g BIGINT, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://u'",
        "INSERT INTO u VALUES (1, 1, 1), (2, NULL, 2), (3, 8, 3), (4, 7, 1)",
    ] {
        rows(&session, statement).await?;
    }
    // As PostgreSQL and DuckDB have it.
    for (condition, expected) in [
        ("a NOT IN (SELECT b FROM u)", &[][..]),
        ("a NOT IN (SELECT b FROM u) OR id = 5", &["5"]),
        (
            "a NOT IN (SELECT b FROM u WHERE b IS NOT NULL) OR id = 100",
            &["5"],
        ),
        (
            "a NOT IN (SELECT b FROM u WHERE false) OR id = 100",
            &["1", "2", "3", "5"],
        ),
        ("(a IN (SELECT b FROM u)) IS NULL", &["2", "5"]),
        ("(a IN (SELECT b FROM u)) IS NOT NULL", &["1", "3"]),
        ("NOT (a IN (SELECT b FROM u) AND id > 0)", &[]),
        ("a IN (SELECT b FROM u) OR id = 5", &["1", "3", "5"]),
        (
            "CASE WHEN a IN (SELECT b FROM u) THEN false ELSE true END",
            &["2", "5"],
        ),
        ("a NOT IN (SELECT b FROM u WHERE u.g = t.id)", &["3", "5"]),
        ("a NOT IN (SELECT b FROM u WHERE u.g > t.id)", &["3", "5"]),
        ("a <> ALL (SELECT b FROM u)", &[]),
        ("a <> ALL (SELECT b FROM u WHERE b > 1)", &["1", "5"]),
        ("a = ANY (SELECT b FROM u)", &["1", "3"]),
        ("NOT (a = ANY (SELECT b FROM u WHERE b > 1))", &["1", "5"]),
    ] {
        let query = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
        assert_eq!(rows(&session, &query).await?, expected, "{condition}");
    }
    // Each with each would take hours.
    let many = "SELECT count(*) FROM generate_series(1, 400000) AS a(x) WHERE x <> ALL (SELECT 2 * y FROM generate_series(1, 400000) AS b(y))";
    assert_eq!(rows(&session, many).await?, ["200000"]);
    Ok(())
}
