//! Encrypted arrays whose keys are their own, and that keys never show.

use super::support::{TestResult, refused, rows};
use azulejo::format::filter::EncryptionKey;
use azulejo::{Config, Context};
use azulejo_sql::session;

const ONE: &str = "0123456789abcdeF0123456789abcdeF";
const OTHER: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const THIRD: &str = "a third key that has 32 bytes!!!";

fn shows_key(text: &str) -> bool {
    // A part would be too much already.
    [&ONE[..8], &OTHER[8..24], &THIRD[..8]]
        .iter()
        .any(|part| text.contains(part))
}

#[tokio::test]
async fn each_table_has_a_key_of_its_own() -> TestResult {
    let session_key = EncryptionKey::from_slice(THIRD.as_bytes())?;
    let context = Context::new(Config::default(), Some(session_key))?;
    let session = session(&context);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("key");
    std::fs::write(&file, format!("{OTHER}\n"))?;
    let file = file.display();
    let columns = "PRIMARY KEY (id)) STORED AS AZULEJO LOCATION";
    for statement in [
        format!(
            "CREATE EXTERNAL TABLE a (id BIGINT, v INT, {columns} 'mem://a' OPTIONS ('key' '{ONE}')"
        ),
        format!(
            "CREATE EXTERNAL TABLE b (id BIGINT, w INT, {columns} 'mem://b' OPTIONS ('KEY_FILE' '{file}')"
        ),
        format!("CREATE EXTERNAL TABLE c (id BIGINT, u INT, {columns} 'mem://c'"),
        "INSERT INTO a VALUES (1, 10), (2, 20), (3, 30)".into(),
        "INSERT INTO b VALUES (2, 200), (3, 300), (4, 400)".into(),
        "INSERT INTO c VALUES (3, 3000)".into(),
        "UPDATE a SET v = (SELECT max(w) FROM b WHERE b.id = a.id) WHERE id = 2".into(),
        "DELETE FROM b WHERE w > 300".into(),
    ] {
        rows(&session, &statement).await?;
    }
    let joined = "SELECT a.id, v, w, u FROM a JOIN b USING (id) LEFT JOIN c USING (id) ORDER BY 1";
    assert_eq!(
        rows(&session, joined).await?,
        ["2|200|200|∅", "3|30|300|3000"]
    );
    let unnamed = format!(
        "SELECT count(*), sum(v), sum(w) FROM azulejo('mem://a', key => '{ONE}') x JOIN azulejo('mem://b', key => '{OTHER}') y ON x.id = y.id"
    );
    assert_eq!(rows(&session, &unnamed).await?, ["2|230|500"]);
    let by_file = format!("SELECT max(id) FROM azulejo('mem://b', key_file => '{file}')");
    assert_eq!(rows(&session, &by_file).await?, ["3"]);
    let history = format!("SELECT count(*) FROM azulejo_fragments('mem://a', key => '{ONE}')");
    assert_eq!(rows(&session, &history).await?, ["2"]);
    let then = "SELECT count(*) FROM a TIMESTAMP AS OF '1970-01-02'";
    assert_eq!(rows(&session, then).await?, ["0"]);

    // Rows that become arrays with keys.
    for statement in [
        format!(
            "CREATE TABLE d WITH (location = 'mem://d', dimensions = 'id', key = '{ONE}') AS SELECT id, v FROM a"
        ),
        format!(
            "COPY (SELECT id, w FROM b) TO 'mem://e' STORED AS AZULEJO OPTIONS (dimensions 'id', key '{OTHER}')"
        ),
    ] {
        rows(&session, &statement).await?;
    }
    assert_eq!(rows(&session, "SELECT sum(v) FROM d").await?, ["240"]);
    for (array, wrong) in [("a", OTHER), ("b", ONE), ("d", OTHER), ("e", ONE)] {
        let of_session = refused(&session, &format!("SELECT * FROM 'mem://{array}'")).await;
        assert!(of_session.contains("key"), "{of_session}");
        let wrong = format!("SELECT * FROM azulejo('mem://{array}', key => '{wrong}')");
        let wrong = refused(&session, &wrong).await;
        assert!(wrong.contains("key") && !shows_key(&wrong), "{wrong}");
    }
    let copied = format!("SELECT sum(w) FROM azulejo('mem://e', key => '{OTHER}')");
    assert_eq!(rows(&session, &copied).await?, ["500"]);
    Ok(())
}

#[tokio::test]
async fn keys_show_nowhere() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = session(&context);
    let create = format!(
        "CREATE EXTERNAL TABLE a (id BIGINT, v INT, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://a' OPTIONS ('key' '{ONE}')"
    );
    rows(&session, &create).await?;
    rows(&session, "INSERT INTO a VALUES (1, 10)").await?;
    let query = format!("SELECT v FROM azulejo('mem://a', key => '{ONE}') WHERE id > 0");
    let copy =
        format!("COPY a TO 'mem://b' STORED AS AZULEJO OPTIONS (dimensions 'id', key '{ONE}')");
    let external = create.replace("TABLE a", "TABLE b");
    for statement in [&query, &copy, &external] {
        for explain in [
            "EXPLAIN",
            "EXPLAIN VERBOSE",
            "EXPLAIN FORMAT TREE",
            "EXPLAIN FORMAT PGJSON",
            "EXPLAIN FORMAT GRAPHVIZ",
            "EXPLAIN ANALYZE",
            "EXPLAIN ANALYZE VERBOSE",
        ] {
            let statement = format!("{explain} {statement}");
            let said = match rows(&session, &statement).await {
                Ok(rows) => rows.join("\n"),
                Err(error) => error.to_string(),
            };
            assert!(!shows_key(&said), "{statement}: {said}");
        }
    }
    for shown in [
        "SHOW ALL",
        "SHOW TABLES",
        "SHOW CREATE TABLE a",
        "DESCRIBE a",
    ] {
        let said = rows(&session, shown).await?.join("\n");
        assert!(!shows_key(&said), "{shown}: {said}");
    }
    // What Rust programs may print.
    let frame = session.table("a").await?;
    let printed = format!(
        "{:?} {:?}",
        frame.logical_plan(),
        session.catalog("datafusion")
    );
    assert!(!shows_key(&printed), "{printed}");
    let physical = frame.create_physical_plan().await?;
    assert!(!shows_key(&format!("{physical:?}")));

    for (wrong, what) in [
        (
            query.replace(&format!("'{ONE}'"), &format!("k{ONE}")),
            "single quotes",
        ),
        (
            query.replace(&format!("'{ONE}'"), &format!("\"{ONE}\"")),
            "single quotes",
        ),
        (query.replace(ONE, &ONE[1..]), "32 bytes"),
        (query.replace("key =>", "kez =>"), "there is no argument"),
        (query.replace("key => ", ""), "arguments are"),
        (
            query.replace(
                "key =>",
                "key => 'a third key that has 32 bytes!!!', key =>",
            ),
            "twice",
        ),
        (query.replace("key =>", "key_file =>"), "key_file"),
        (
            copy.replace(&format!("key '{ONE}'"), &format!("key '{ONE}x'")),
            "32 bytes",
        ),
        (external.replace("'key'", "'kez'"), "there is no option"),
        (
            format!(
                "CREATE TABLE c WITH (location = 'mem://c', dimensions = 'id', key = k{ONE}) AS SELECT * FROM a"
            ),
            "key: write NAME",
        ),
    ] {
        let said = refused(&session, &wrong).await;
        assert!(said.contains(what), "{wrong}: {said}");
        assert!(!shows_key(&said), "{wrong}: {said}");
    }
    Ok(())
}
