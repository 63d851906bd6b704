//! Arrays over Flight SQL, seen by arrow-flight's own client.

use super::support::TestResult;
use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{
    CommandGetDbSchemas, CommandGetPrimaryKeys, CommandGetTables, CommandGetXdbcTypeInfo,
    CommandStatementIngest, SqlInfo, TableDefinitionOptions, TableExistsOption,
    TableNotExistOption,
};
use arrow_flight::{FlightInfo, IpcMessage};
use azulejo::format::{ArraySchema, Datatype};
use azulejo::{ColumnBuffers, ColumnSet, Config, Context, WriteOptions};
use azulejo_sql::flight_sql::{FlightSql, Limits};
use azulejo_sql::{ArrayCatalog, TableOptions, session_of_tables, table};
use datafusion::arrow::array::{
    ArrayRef, AsArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Int64Type, Schema};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::TableReference;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::SessionConfig;
use futures_util::{StreamExt, TryStreamExt};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

const TOKEN: &str = "9f8e7d6c";
const MEMORY: usize = 64 << 20;
const STATEMENT: usize = 1 << 20;

type Client = FlightSqlServiceClient<Channel>;

/// A server within the test.
struct Serving {
    url: String,
    pool: Arc<dyn MemoryPool>,
    task: JoinHandle<Result<(), DataFusionError>>,
    _folder: tempfile::TempDir,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn limits() -> Limits {
    Limits {
        time: Duration::from_secs(60),
        queries: 4,
        statement: STATEMENT,
    }
}

/// `cells` cells: `id`, `v`, `word`.
fn make(context: &Context, uri: &str, cells: i64) -> TestResult {
    let place = context.array(uri);
    place.create(
        ArraySchema::sparse()
            .dimension("id", 0i64..=99_999_999, 100_000)
            .attribute("v", Datatype::Float64)
            .attribute("word", Datatype::StringUtf8)
            .build()?,
    )?;
    let ids = 0..cells;
    let mut writer = place.writer(WriteOptions::new())?;
    let words: Vec<String> = ids.clone().map(|id| format!("w{}", id % 7)).collect();
    writer.write(&ColumnSet::of([
        ColumnBuffers::of_values("id", ids.clone().collect::<Vec<_>>()),
        ColumnBuffers::of_values("v", ids.map(|id| id as f64 / 2.0).collect::<Vec<_>>()),
        ColumnBuffers::of_strings("word", words.iter().map(String::as_str)),
    ])?)?;
    writer.finish()?;
    Ok(())
}

/// A server of the array `Cells` in the default catalog, and of a folder as the catalog `data`.
async fn serve(of: impl FnOnce(FlightSql) -> FlightSql, limits: Limits) -> TestResult<Serving> {
    let folder = tempfile::tempdir()?;
    let context = Context::new(Config::default(), None)?;
    let data = folder.path().join("data").display().to_string();
    make(&context, &format!("{data}/cells"), 1000)?;
    make(&context, &format!("{data}/other"), 10)?;
    let pool: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(MEMORY));
    let environment = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool));
    let config = SessionConfig::new()
        .with_information_schema(true)
        .with_target_partitions(2);
    let session = session_of_tables(&context, config, environment.build_arc()?);
    session.register_table(
        TableReference::bare("Cells"),
        table(&context.array(&format!("{data}/cells")))?,
    )?;
    let catalog = ArrayCatalog::open(&context, &data, TableOptions::new())?;
    session.register_catalog("data", Arc::new(catalog));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let task = tokio::spawn(of(FlightSql::new(TOKEN, limits)).serve(session, listener));
    Ok(Serving {
        url,
        pool,
        task,
        _folder: folder,
    })
}

async fn client(serving: &Serving) -> TestResult<Client> {
    let channel = Endpoint::new(serving.url.clone())?.connect().await?;
    let mut client = Client::new(channel);
    client.set_token(TOKEN.to_owned());
    Ok(client)
}

async fn batches(client: &mut Client, info: FlightInfo) -> TestResult<Vec<RecordBatch>> {
    let announced = Schema::try_from(IpcMessage(info.schema.clone()))?;
    let mut all = Vec::new();
    for endpoint in info.endpoint {
        let ticket = endpoint.ticket.ok_or("no ticket")?;
        let stream = client.do_get(ticket).await?;
        for batch in stream.try_collect::<Vec<_>>().await? {
            assert_eq!(*batch.schema(), announced);
            all.push(batch);
        }
    }
    Ok(all)
}

fn text(batches: &[RecordBatch]) -> TestResult<Vec<String>> {
    let options = FormatOptions::default().with_null("null");
    let mut lines = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter();
        let columns = columns.map(|column| ArrayFormatter::try_new(column, &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let values: Vec<String> = columns.iter().map(|c| c.value(row).to_string()).collect();
            lines.push(values.join("|"));
        }
    }
    Ok(lines)
}

async fn query(client: &mut Client, sql: &str) -> TestResult<Vec<String>> {
    let info = client.execute(sql.to_owned(), None).await?;
    text(&batches(client, info).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_and_prepared_statements() -> TestResult {
    let serving = serve(|server| server, limits()).await?;
    let mut client = client(&serving).await?;
    let sql = "SELECT word, count(*) AS n, max(v) AS m FROM \"Cells\" WHERE id < 14 GROUP BY word ORDER BY word LIMIT 2";
    assert_eq!(query(&mut client, sql).await?, ["w0|2|3.5", "w1|2|4.0"]);
    let all = query(
        &mut client,
        "SELECT id FROM data.public.other ORDER BY id DESC",
    )
    .await?;
    assert_eq!((all.len(), all[0].as_str()), (10, "9"));
    // A table as it was, by its name.
    let then = "SELECT count(*) FROM Cells TIMESTAMP AS OF '2001-01-01'";
    assert_eq!(query(&mut client, then).await?, ["0"]);
    let none = query(&mut client, "SELECT v FROM Cells WHERE id = -1").await?;
    assert!(none.is_empty());

    for sql in [
        "SELECT id, word FROM Cells WHERE id > $1 AND word = $2 ORDER BY id LIMIT 2",
        "SELECT id, word FROM Cells WHERE id > ? AND word = ? ORDER BY id LIMIT 2",
    ] {
        let mut prepared = client.prepare(sql.to_owned(), None).await?;
        assert_eq!(prepared.dataset_schema()?.fields().len(), 2);
        let parameters = prepared.parameter_schema()?;
        assert_eq!(parameters.field(0).data_type(), &DataType::Int64);
        assert_eq!(parameters.fields().len(), 2);
        for (id, word, expected) in [
            (10i32, "w3", ["17|w3", "24|w3"]),
            (100, "w0", ["105|w0", "112|w0"]),
        ] {
            // Of another type than the column's.
            let values: [(&str, ArrayRef); 2] = [
                ("1", Arc::new(Int32Array::from(vec![id]))),
                ("2", Arc::new(StringArray::from(vec![word]))),
            ];
            prepared.set_parameters(RecordBatch::try_from_iter(values)?)?;
            let info = prepared.execute().await?;
            assert_eq!(text(&batches(&mut client, info).await?)?, expected);
        }
        prepared.close().await?;
    }
    // Values go by where their places stand, whatever the clauses.
    for (sql, values, expected) in [
        (
            "SELECT id FROM Cells ORDER BY id OFFSET ? LIMIT ?",
            [5i64, 2],
            ["5", "6"],
        ),
        (
            "SELECT id FROM Cells ORDER BY id LIMIT ? OFFSET ?",
            [2, 5],
            ["5", "6"],
        ),
        (
            "FROM (SELECT id FROM Cells WHERE id < ?) SELECT id + CAST(? AS BIGINT) AS n ORDER BY id",
            [2, 100],
            ["100", "101"],
        ),
    ] {
        let mut prepared = client.prepare(sql.to_owned(), None).await?;
        let columns = ["1", "2"].into_iter().zip(values);
        let columns = columns.map(|(name, value)| {
            let column: ArrayRef = Arc::new(Int64Array::from(vec![value]));
            (name, column)
        });
        prepared.set_parameters(RecordBatch::try_from_iter(columns)?)?;
        let info = prepared.execute().await?;
        assert_eq!(text(&batches(&mut client, info).await?)?, expected, "{sql}");
        prepared.close().await?;
    }
    // Without its parameters a query does not run.
    let unbound = client
        .execute("SELECT id FROM Cells WHERE id = $1".into(), None)
        .await;
    let failed = match unbound {
        Ok(info) => batches(&mut client, info).await.is_err(),
        Err(_) => true,
    };
    assert!(failed);
    for wrong in [
        "SELEC 1",
        "SELECT nothing FROM Cells",
        "SELECT 1; SELECT 2",
        "",
    ] {
        let error = query(&mut client, wrong)
            .await
            .expect_err(wrong)
            .to_string();
        assert!(!error.is_empty(), "{wrong}");
    }
    Ok(())
}

/// One row of parameters.
fn parameters<const N: usize>(values: [ArrayRef; N]) -> TestResult<RecordBatch> {
    let names = (1..=N).map(|number| number.to_string());
    Ok(RecordBatch::try_from_iter(names.zip(values))?)
}

/// Clients send what they have: Python numbers of 64 bits, moments where there are days.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_keep_their_values_whatever_the_type_of_their_places() -> TestResult {
    let serving = serve(FlightSql::writable, limits()).await?;
    let client = &mut client(&serving).await?;
    let real = |value: f64| -> ArrayRef { Arc::new(Float64Array::from(vec![value])) };
    let whole = |value: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![value])) };
    let noon: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![
        1_714_521_600_000_000 + 43_200_000_000,
    ]));
    for (sql, value, expected) in [
        ("SELECT id FROM Cells WHERE id = ?", real(1.5), vec![]),
        ("SELECT id FROM Cells WHERE id = ?", real(1.0), vec!["1"]),
        (
            "SELECT id FROM Cells WHERE id < ? ORDER BY id",
            real(1.5),
            vec!["0", "1"],
        ),
        (
            "SELECT id FROM Cells WHERE id IN (?) OR id = 3",
            real(1.5),
            vec!["3"],
        ),
        (
            "SELECT id * ? AS n FROM Cells WHERE id = 3",
            real(0.5),
            vec!["1.5"],
        ),
        ("SELECT id FROM Cells WHERE v = ?", whole(2), vec!["4"]),
        (
            "SELECT id FROM Cells WHERE id = 1 AND DATE '2024-05-01' < ?",
            noon,
            vec!["1"],
        ),
        (
            "SELECT id FROM Cells WHERE id = 1 AND CAST(id AS SMALLINT) < ?",
            whole(1 << 40),
            vec!["1"],
        ),
        (
            "SELECT id FROM Cells WHERE id = 1 AND word = ?",
            Arc::new(StringArray::from(vec!["w1"])),
            vec!["1"],
        ),
    ] {
        let mut prepared = client.prepare(sql.to_owned(), None).await?;
        prepared.set_parameters(parameters([value])?)?;
        let info = prepared.execute().await?;
        assert_eq!(text(&batches(client, info).await?)?, expected, "{sql}");
        prepared.close().await?;
    }
    let mut change = async |sql: &str, values: RecordBatch| -> TestResult<i64> {
        let mut prepared = client.prepare(sql.to_owned(), None).await?;
        prepared.set_parameters(values)?;
        Ok(prepared.execute_update().await?)
    };
    let delete = "DELETE FROM Cells WHERE id = ?";
    assert_eq!(change(delete, parameters([real(1.5)])?).await?, 0);
    assert_eq!(change(delete, parameters([real(1.0)])?).await?, 1);
    let update = "UPDATE Cells SET v = ? WHERE id < ?";
    let values = parameters([whole(7), real(2.5)])?;
    assert_eq!(change(update, values).await?, 2);
    // What is stored is what was sent, or nothing.
    let insert = "INSERT INTO Cells VALUES (?, ?, ?)";
    let word: ArrayRef = Arc::new(StringArray::from(vec!["new"]));
    let values = parameters([real(6000.5), real(0.5), Arc::clone(&word)])?;
    let error = change(insert, values).await.expect_err("half a cell");
    assert!(error.to_string().contains("6000.5 is no Int64"), "{error}");
    let values = parameters([real(6000.0), whole(5), word])?;
    assert_eq!(change(insert, values).await?, 1);
    let found = query(
        client,
        "SELECT id, v FROM Cells WHERE id < 4 OR id > 999 ORDER BY id",
    );
    assert_eq!(found.await?, ["0|7.0", "2|7.0", "3|1.5", "6000|5.0"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_there_is() -> TestResult {
    let serving = serve(|server| server, limits()).await?;
    let client = &mut client(&serving).await?;
    let info = client.get_catalogs().await?;
    assert_eq!(text(&batches(client, info).await?)?, ["azulejo", "data"]);
    let schemas = CommandGetDbSchemas {
        catalog: Some("data".into()),
        db_schema_filter_pattern: None,
    };
    let info = client.get_db_schemas(schemas).await?;
    assert_eq!(text(&batches(client, info).await?)?, ["data|public"]);
    let wanted = |name: Option<&str>, include_schema| CommandGetTables {
        catalog: None,
        db_schema_filter_pattern: None,
        table_name_filter_pattern: name.map(str::to_owned),
        table_types: Vec::new(),
        include_schema,
    };
    let info = client.get_tables(wanted(None, false)).await?;
    let all = [
        "azulejo|public|Cells|TABLE",
        "data|public|cells|TABLE",
        "data|public|other|TABLE",
    ];
    assert_eq!(text(&batches(client, info).await?)?, all);
    let info = client.get_tables(wanted(Some("%th%"), false)).await?;
    assert_eq!(text(&batches(client, info).await?)?, all[2..]);
    let info = client.get_tables(wanted(Some("Cells"), true)).await?;
    let described = batches(client, info).await?;
    let columns = described[0]
        .column_by_name("table_schema")
        .ok_or("no schema")?;
    let columns = columns.as_binary::<i32>().value(0).to_vec();
    let columns = Schema::try_from(IpcMessage(columns.into()))?;
    let names: Vec<&str> = columns.fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names, ["id", "v", "word"]);
    let info = client.get_table_types().await?;
    assert_eq!(text(&batches(client, info).await?)?, ["TABLE"]);
    let key = CommandGetPrimaryKeys {
        catalog: Some("data".into()),
        db_schema: None,
        table: "cells".into(),
    };
    let info = client.get_primary_keys(key).await?;
    assert_eq!(
        text(&batches(client, info).await?)?,
        ["data|public|cells|id|null|1"]
    );
    let server = vec![
        SqlInfo::FlightSqlServerName,
        SqlInfo::FlightSqlServerReadOnly,
    ];
    let info = client.get_sql_info(server).await?;
    assert_eq!(batches(client, info).await?[0].num_rows(), 2);
    let types = CommandGetXdbcTypeInfo { data_type: None };
    let info = client.get_xdbc_type_info(types).await?;
    assert!(batches(client, info).await?[0].num_rows() >= 15);
    Ok(())
}

/// The three kinds of statements: what changes rows, what does more, and what names places.
const CHANGES: [&str; 4] = [
    "INSERT INTO \"Cells\" VALUES (5000, 1.5, 'new')",
    "UPDATE \"Cells\" SET v = 0 WHERE id = 3",
    "DELETE FROM \"Cells\" WHERE id = 4",
    "TRUNCATE TABLE \"Cells\"",
];
const MORE: [&str; 8] = [
    "EXPLAIN ANALYZE INSERT INTO \"Cells\" VALUES (5001, 1.5, 'new')",
    "CREATE TABLE t AS SELECT 1 AS a",
    "CREATE VIEW v AS SELECT 1 AS a",
    "DROP TABLE \"Cells\"",
    "SET datafusion.execution.batch_size = 1",
    "CREATE EXTERNAL TABLE p STORED AS CSV LOCATION '/etc/passwd'",
    "CREATE EXTERNAL TABLE p STORED AS AZULEJO LOCATION 'mem://p'",
    "COPY \"Cells\" TO 'stolen.csv'",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_only_unless_it_is_writable() -> TestResult {
    let serving = serve(|server| server, limits()).await?;
    let mut reader = client(&serving).await?;
    for sql in CHANGES.iter().chain(&MORE) {
        let error = query(&mut reader, sql).await.expect_err(sql).to_string();
        assert!(error.contains("read-only"), "{sql}: {error}");
        assert!(
            reader.execute_update((*sql).into(), None).await.is_err(),
            "{sql}"
        );
        assert!(reader.prepare((*sql).into(), None).await.is_err(), "{sql}");
    }
    let sum = "SELECT count(*), sum(id) FROM \"Cells\"";
    assert_eq!(query(&mut reader, sum).await?, ["1000|499500"]);
    // Nothing but the tables: no text is taken for a place.
    let folder = serving._folder.path().display().to_string();
    std::fs::write(serving._folder.path().join("f.csv"), "a\n1\n")?;
    for sql in [
        format!("SELECT * FROM '{folder}/data/cells'"),
        format!("SELECT * FROM '{folder}/f.csv'"),
        format!("SELECT * FROM \"{folder}/f.csv\""),
        format!("SELECT * FROM azulejo('{folder}/data/cells')"),
        format!("SELECT * FROM azulejo_fragments('{folder}/data/cells')"),
    ] {
        assert!(query(&mut reader, &sql).await.is_err(), "{sql}");
    }

    let serving = serve(FlightSql::writable, limits()).await?;
    let mut writer = client(&serving).await?;
    for sql in MORE {
        assert!(query(&mut writer, sql).await.is_err(), "{sql}");
    }
    let alter = "ALTER TABLE \"Cells\" ADD COLUMN more INT";
    for client in [&mut reader, &mut writer] {
        assert!(query(client, alter).await.is_err());
    }
    let twice = "UPDATE \"Cells\" SET v = 1, v = 2";
    let error = query(&mut writer, twice).await.expect_err(twice);
    assert!(error.to_string().contains("v is set twice"), "{error}");
    assert_eq!(writer.execute_update(CHANGES[0].into(), None).await?, 1);
    assert_eq!(query(&mut writer, CHANGES[1]).await?, ["1"]);
    writer.execute_update(CHANGES[2].into(), None).await?;
    let after = "SELECT count(*), sum(id) FROM \"Cells\"";
    assert_eq!(query(&mut writer, after).await?, ["1000|504496"]);
    let zeroed = "SELECT v FROM \"Cells\" WHERE id IN (3, 5000) ORDER BY id";
    assert_eq!(query(&mut writer, zeroed).await?, ["0.0", "1.5"]);

    // All rows of parameters become one fragment.
    let insert = "INSERT INTO \"Cells\" VALUES (?, ?, ?)";
    let mut prepared = writer.prepare(insert.into(), None).await?;
    assert_eq!(prepared.dataset_schema()?.fields().len(), 0);
    let ids = (6000..6050).collect::<Vec<i64>>();
    let words: Vec<String> = ids.iter().map(|id| format!("w{id}")).collect();
    let values: [(&str, ArrayRef); 3] = [
        ("1", Arc::new(Int64Array::from(ids.clone()))),
        (
            "2",
            Arc::new(Float64Array::from_iter_values(
                ids.iter().map(|id| *id as f64),
            )),
        ),
        ("3", Arc::new(StringArray::from(words))),
    ];
    let place = Context::new(Config::default(), None)?;
    let place = place.array(&format!("{}/data/cells", serving._folder.path().display()));
    let fragments = place.open()?.fragments().len();
    prepared.set_parameters(RecordBatch::try_from_iter(values)?)?;
    assert_eq!(prepared.execute_update().await?, 50);
    assert_eq!(place.open()?.fragments().len(), fragments + 1);
    let found = query(
        &mut writer,
        "SELECT count(*), max(word) FROM \"Cells\" WHERE id >= 6000",
    )
    .await?;
    assert_eq!(found, ["50|w6049"]);
    Ok(())
}

/// Rows for the table `Cells`, appended.
fn ingest(table: &str, exists: TableExistsOption) -> CommandStatementIngest {
    CommandStatementIngest {
        table_definition_options: Some(TableDefinitionOptions {
            if_not_exist: TableNotExistOption::Create.into(),
            if_exists: exists.into(),
        }),
        table: table.into(),
        ..CommandStatementIngest::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_in_bulk() -> TestResult {
    use TableExistsOption::{Append, Fail, Replace};
    let ids = |from: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(from..from + 100)) };
    let words: ArrayRef = Arc::new(StringArray::from(vec!["sent"; 100]));
    let values: ArrayRef = Arc::new(Int32Array::from(vec![3; 100]));
    // Columns in another order, and of types that become theirs.
    let batch = |from: i64| {
        let columns = [
            ("word", words.clone()),
            ("id", ids(from)),
            ("v", values.clone()),
        ];
        RecordBatch::try_from_iter(columns)
    };
    let stream =
        |batches: Vec<Result<RecordBatch, FlightError>>| futures_util::stream::iter(batches);
    let all = "SELECT count(*), sum(v) FROM \"Cells\" WHERE word = 'sent'";

    let serving = serve(|server| server, limits()).await?;
    let mut reader = client(&serving).await?;
    let sent = reader.execute_ingest(ingest("Cells", Append), stream(vec![Ok(batch(2000)?)]));
    let error = sent.await.expect_err("read-only").to_string();
    assert!(error.contains("read-only"), "{error}");
    assert_eq!(query(&mut reader, all).await?, ["0|null"]);

    let serving = serve(FlightSql::writable, limits()).await?;
    let place = Context::new(Config::default(), None)?;
    let place = place.array(&format!("{}/data/cells", serving._folder.path().display()));
    let fragments = || place.open().map(|array| array.fragments().len());
    let before = fragments()?;
    let mut writer = client(&serving).await?;
    let batches = vec![Ok(batch(2000)?), Ok(batch(3000)?), Ok(batch(4000)?)];
    let command = ingest("Cells", Append);
    assert_eq!(writer.execute_ingest(command, stream(batches)).await?, 300);
    assert_eq!(query(&mut writer, all).await?, ["300|900.0"]);
    assert_eq!(fragments()?, before + 1);
    // A table of another catalog, by its names.
    let named = CommandStatementIngest {
        catalog: Some("data".into()),
        schema: Some("public".into()),
        ..ingest("other", Append)
    };
    let batches = vec![Ok(batch(9000)?)];
    assert_eq!(writer.execute_ingest(named, stream(batches)).await?, 100);
    let other = "SELECT count(*) FROM data.public.other";
    assert_eq!(query(&mut writer, other).await?, ["110"]);

    // What is refused, and what ends early, leaves nothing.
    let without = batch(5000)?.project(&[0, 1])?;
    let more = RecordBatch::try_from_iter([("id", ids(5000)), ("x", ids(0))])?;
    for (command, batches, reason) in [
        (ingest("Cells", Fail), vec![Ok(batch(5000)?)], "appended"),
        (ingest("Cells", Replace), vec![Ok(batch(5000)?)], "replaced"),
        (
            ingest("Cell", Append),
            vec![Ok(batch(5000)?)],
            "not made here",
        ),
        (
            ingest("Cells", Append),
            vec![Ok(without)],
            "no values for the column v",
        ),
        (ingest("Cells", Append), vec![Ok(more)], "no column x"),
        (ingest("Cells", Append), vec![Ok(batch(-100)?)], ""),
    ] {
        let error = writer.execute_ingest(command, stream(batches)).await;
        let error = error.expect_err(reason).to_string();
        assert!(error.contains(reason), "{reason}: {error}");
    }
    // A client that goes away in the middle of its rows.
    let (mut gone, first) = (client(&serving).await?, Ok(batch(5000)?));
    let endless = stream(vec![first]).chain(futures_util::stream::pending());
    let sending = tokio::spawn(async move {
        let sent = gone.execute_ingest(ingest("Cells", Append), endless);
        sent.await.map_err(|error| error.to_string())
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    sending.abort();
    assert!(sending.await.is_err_and(|error| error.is_cancelled()));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(query(&mut writer, all).await?, ["300|900.0"]);
    assert_eq!(fragments()?, before + 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_and_tls() -> TestResult {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let tls = |server: FlightSql| server.tls(certificate.as_bytes(), key.as_bytes());
    let serving = serve(tls, limits()).await?;
    let url = serving.url.replace("http://127.0.0.1", "https://localhost");
    let connect = |trusted: bool| {
        let tls = ClientTlsConfig::new();
        let tls = match trusted {
            true => tls.ca_certificate(Certificate::from_pem(&certificate)),
            false => tls,
        };
        Endpoint::new(url.clone()).and_then(|endpoint| endpoint.tls_config(tls))
    };
    let mut client = Client::new(connect(true)?.connect().await?);
    for token in [None, Some("9f8e7d6"), Some("wrong")] {
        client.clear_token();
        token
            .into_iter()
            .for_each(|token| client.set_token(token.into()));
        let error = query(&mut client, "SELECT 1")
            .await
            .expect_err("no token")
            .to_string();
        assert!(error.contains("token"), "{error}");
        assert!(client.get_catalogs().await.is_err());
        assert!(
            client
                .execute_update("SELECT 1".into(), None)
                .await
                .is_err()
        );
        assert!(client.prepare("SELECT 1".into(), None).await.is_err());
    }
    client.set_token(TOKEN.into());
    assert_eq!(
        query(&mut client, "SELECT count(*) FROM \"Cells\"").await?,
        ["1000"]
    );
    // A certificate that nobody vouches for, and a connection without TLS.
    assert!(connect(false)?.connect().await.is_err());
    let plain = Endpoint::new(serving.url.clone())?.connect().await;
    if let Ok(channel) = plain {
        let mut plain = Client::new(channel);
        plain.set_token(TOKEN.into());
        assert!(query(&mut plain, "SELECT 1").await.is_err());
    }
    Ok(())
}

/// Rows without end, made one by one.
const ENDLESS: &str =
    "SELECT count(*) FROM generate_series(1, 1000000000000) AS t(x) WHERE x % 7 = 9";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_and_nobody_is_waited_for() -> TestResult {
    let short = Limits {
        time: Duration::from_secs(2),
        queries: 1,
        statement: STATEMENT,
    };
    let serving = serve(|server| server, short).await?;
    let mut first = client(&serving).await?;
    let begun = Instant::now();
    let error = query(&mut first, ENDLESS)
        .await
        .expect_err("endless")
        .to_string();
    assert!(error.contains("within 2s"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(10));

    // One query at a time: the second one's time is over while it waits.
    let mut waiting = client(&serving).await?;
    let running = tokio::spawn(async move {
        let _ = query(&mut first, ENDLESS).await;
        first
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let begun = Instant::now();
    let found = query(&mut waiting, "SELECT 1").await;
    assert!(begun.elapsed() > Duration::from_secs(1), "{found:?}");
    drop(running.await?);

    // A client that goes away leaves nothing behind: the only place is free again, and the memory.
    let long = Limits {
        time: Duration::from_secs(3600),
        queries: 1,
        statement: STATEMENT,
    };
    let serving = serve(|server| server, long).await?;
    let mut gone = client(&serving).await?;
    let info = gone.execute(ENDLESS.to_owned(), None).await?;
    let ticket = info.endpoint[0].ticket.clone().ok_or("no ticket")?;
    let running = tokio::spawn(async move {
        let mut rows = gone.do_get(ticket).await?;
        rows.try_next().await
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    running.abort();
    let mut next = client(&serving).await?;
    let one = tokio::time::timeout(Duration::from_secs(10), query(&mut next, "SELECT 1"));
    assert_eq!(one.await??, ["1"]);
    assert_eq!(serving.pool.reserved(), 0);

    // Memory: what does not fit, and cannot go to disk, is an error.
    let much = "SELECT array_length(array_agg(x)) FROM generate_series(1, 30000000) AS t(x)";
    let error = query(&mut next, much)
        .await
        .expect_err("too much")
        .to_string();
    assert!(error.to_lowercase().contains("exhausted"), "{error}");
    assert_eq!(
        query(&mut next, "SELECT count(*) FROM data.public.other").await?,
        ["10"]
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_come_as_they_are_made() -> TestResult {
    let serving = serve(|server| server, limits()).await?;
    let mut client = client(&serving).await?;
    // 80 MB, of which the first comes long before the last is made.
    let sql = "SELECT x FROM generate_series(1, 10000000) AS t(x)";
    let info = client.execute(sql.into(), None).await?;
    let ticket = info.endpoint[0].ticket.clone().ok_or("no ticket")?;
    let mut rows = client.do_get(ticket).await?;
    let (mut count, mut sum) = (0, 0);
    while let Some(batch) = rows.try_next().await? {
        count += batch.num_rows();
        sum += batch
            .column(0)
            .as_primitive::<Int64Type>()
            .values()
            .iter()
            .sum::<i64>();
    }
    assert_eq!((count, sum), (10_000_000, 50_000_005_000_000));
    Ok(())
}

/// A join that makes years of rows of what is in memory already ends when its time is over: as many
/// as there are threads would leave none for others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_that_never_wait_leave_their_threads() -> TestResult {
    let short = Limits {
        time: Duration::from_secs(1),
        queries: 8,
        statement: STATEMENT,
    };
    let serving = serve(|server| server, short).await?;
    let mut client = client(&serving).await?;
    let numbers = "generate_series(1, 1000000)";
    for join in [
        format!("SELECT sum(a.x * b.x) FROM {numbers} AS a(x), {numbers} AS b(x)"),
        format!("SELECT count(*) FROM {numbers} AS a(x) JOIN {numbers} AS b(x) ON a.x < b.x + 7"),
        format!(
            "SELECT count(*) FROM {numbers} AS a(x) JOIN {numbers} AS b(x) ON a.x % 2 = b.x % 2"
        ),
    ] {
        let ended = tokio::time::timeout(Duration::from_secs(20), query(&mut client, &join));
        let error = ended.await?.expect_err("endless").to_string();
        assert!(error.contains("within 1s"), "{error}");
    }
    let begun = Instant::now();
    assert_eq!(query(&mut client, "SELECT 1").await?, ["1"]);
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    Ok(())
}

/// A server that ends while rows are on their way: clients get an error, never a short answer, and a
/// change counts as a whole or not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ends_gives_no_short_answer() -> TestResult {
    let folder = tempfile::tempdir()?;
    let uri = folder.path().join("cells").display().to_string();
    let context = Context::new(Config::default(), None)?;
    make(&context, &uri, 1000)?;
    for round in 0..3 {
        let server = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let session = session_of_tables(&context, SessionConfig::new(), Arc::default());
        session.register_table("t", table(&context.array(&uri))?)?;
        let std_listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        std_listener.set_nonblocking(true)?;
        let url = format!("http://{}", std_listener.local_addr()?);
        server.spawn(async move {
            let listener = TcpListener::from_std(std_listener)?;
            let serving = FlightSql::new(TOKEN, limits()).writable();
            serving.serve(session, listener).await
        });
        let channel = Endpoint::new(url)?.connect().await?;
        let mut asking = Client::new(channel);
        asking.set_token(TOKEN.to_owned());
        let mut changing = asking.clone();
        let rows = "SELECT a.id FROM t AS a CROSS JOIN t AS b CROSS JOIN t AS c LIMIT 50000000";
        let info = asking.execute(rows.into(), None).await?;
        let ticket = info.endpoint[0].ticket.clone().ok_or("no ticket")?;
        let mut rows = asking.do_get(ticket).await?;
        let mut count = rows.try_next().await?.map_or(0, |batch| batch.num_rows());
        assert!(count > 0);
        let insert = tokio::spawn(async move {
            let insert = "INSERT INTO t SELECT 1000 + a.id * 100 + b.id, 1, 'new' FROM t AS a JOIN t AS b ON b.id < 100 WHERE a.id < 1000";
            changing.execute_update(insert.into(), None).await
        });
        tokio::time::sleep(Duration::from_millis(30 * round)).await;
        server.shutdown_background();
        let end = loop {
            match rows.try_next().await {
                Ok(Some(batch)) => count += batch.num_rows(),
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        assert!(
            end.is_some() && count < 50_000_000,
            "{count} rows and no error"
        );
        let told = insert.await?;
        // What was under way when the server ended may still have been committed.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let array = context.array(&uri).open()?;
        let session = azulejo_sql::session(&context);
        let new = format!("SELECT count(*) FROM '{uri}' WHERE word = 'new'");
        let new = super::support::rows(&session, &new).await?;
        match told {
            Ok(rows) => assert_eq!((rows, new), (100_000, vec!["100000".into()])),
            Err(_) => assert!(new == ["0"] || new == ["100000"], "{new:?}"),
        }
        assert!(array.fragments().len() <= 2);
        let report = context.array(&uri).check(Default::default())?;
        assert!(report.findings.is_empty(), "{report:?}");
        context.array(&uri).delete()?;
        make(&context, &uri, 1000)?;
    }
    Ok(())
}

/// What keeps the parser busy for a minute ends with its time, and keeps nobody else waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_are_read_within_their_time_and_beside_others() -> TestResult {
    let short = Limits {
        time: Duration::from_secs(4),
        queries: 4,
        statement: 1 << 20,
    };
    let serving = serve(|server| server, short).await?;
    let wrong = format!("SELECT {}", "NOT (".repeat(24));
    let wrong = format!("{wrong}true true{}", ")".repeat(24));
    // So long that it is tried for as long as the parser goes on.
    let wrong = format!("{wrong} -- {}", "x".repeat(900_000));
    let mut busy = Vec::new();
    for _ in 0..3 {
        let (mut client, wrong) = (client(&serving).await?, wrong.clone());
        busy.push(tokio::spawn(async move {
            let begun = Instant::now();
            let failed = client.execute(wrong, None).await.is_err();
            (failed, begun.elapsed())
        }));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut other = client(&serving).await?;
    let begun = Instant::now();
    assert_eq!(query(&mut other, "SELECT 1").await?, ["1"]);
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    for asked in busy {
        let (failed, took) = asked.await?;
        assert!(failed && took < Duration::from_secs(15), "{took:?}");
    }
    let error = query(&mut other, "SELECT CAST(word AS INT) FROM \"Cells\"").await;
    let error = error.expect_err("no number").to_string();
    assert!(!error.to_lowercase().contains("internal"), "{error}");
    let long = format!("SELECT 1 -- {}", "x".repeat(1 << 20));
    let error = query(&mut other, &long)
        .await
        .expect_err("too long")
        .to_string();
    assert!(error.contains("bytes"), "{error}");
    Ok(())
}
