//! Random SQL over random arrays, compared with DataFusion on the same rows in memory.

use super::support::{
    KEEP, Numbers, TestResult, UNSIGNED, WORDS, make, plan, rows_of, shared, text,
};
use azulejo::{Config, Context};
use azulejo_sql::{ArrayTable, TableOptions};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::catalog::TableProvider;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::prelude::SessionContext;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Seeds of a usual run; `AZULEJO_SQL_SEEDS` asks for more, `AZULEJO_SQL_SEED` for one, with both so
/// many from that one.
const SEEDS: u64 = 16;

/// Queries over each array.
const QUERIES: usize = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arrays_answer_as_rows_in_memory() -> TestResult {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds = match number("AZULEJO_SQL_SEED") {
        Some(seed) => seed..seed + number("AZULEJO_SQL_SEEDS").unwrap_or(1),
        None => 0..number("AZULEJO_SQL_SEEDS").unwrap_or(SEEDS),
    };
    let kept = std::env::var_os(KEEP).map(PathBuf::from);
    let (mut pushed, mut counted, mut queries) = (0, 0, 0);
    for seed in seeds {
        let mut numbers = Numbers(seed * 7_919 + 1);
        let context = Context::new(Config::default(), None)?;
        let place = context.array("mem://random");
        make(&place, &mut numbers)?;
        let table = shared(ArrayTable::open(place, TableOptions::new())?);
        let ours = azulejo_sql::session(&context);
        let theirs = azulejo_sql::session(&context);
        theirs.register_table("a", Arc::new(rows_of(&table)?))?;
        ours.register_table("a", table.clone())?;
        let columns: Vec<(String, DataType)> = table
            .schema()
            .fields()
            .iter()
            .map(|f| (f.name().clone(), f.data_type().clone()))
            .collect();
        let kept = kept.as_ref().map(|folder| folder.join(seed.to_string()));
        let mut kept = match kept {
            Some(folder) => Some(Kept::new(folder, &theirs).await?),
            None => None,
        };
        for _ in 0..QUERIES {
            let query = Query::random(&columns, table.array().schema().domain.ndim(), &mut numbers);
            let plan = plan(&ours, &query.sql).await;
            let plan = plan.map_err(|error| format!("seed {seed}: {}\n{error}", query.sql))?;
            pushed += usize::from(plan.contains("condition=") || plan.contains("subarray="));
            counted += usize::from(plan.contains("ArrayAggregateExec"));
            queries += 1;
            check(&ours, &theirs, &query)
                .await
                .map_err(|error| format!("seed {seed}: {}\n{error}\n{plan}", query.sql))?;
            if let Some(kept) = &mut kept {
                kept.answer(&query, &ours).await?;
            }
        }
    }
    assert!(
        pushed * 3 > queries,
        "only {pushed} of {queries} queries were pushed down"
    );
    assert!(
        counted * 40 > queries,
        "only {counted} of {queries} queries were answered by metadata"
    );
    Ok(())
}

/// What a run leaves behind for an engine that is not DataFusion: an array's rows, the queries, and the
/// array's answers.
struct Kept {
    folder: PathBuf,
    queries: File,
    answers: usize,
}

impl Kept {
    /// Keeps the rows of the table `a`, in `rows.parquet`.
    async fn new(folder: PathBuf, rows: &SessionContext) -> TestResult<Self> {
        std::fs::create_dir_all(&folder)?;
        write(&folder.join("rows.parquet"), rows, "SELECT * FROM a").await?;
        Ok(Self {
            queries: File::create(folder.join("queries.ndjson"))?,
            folder,
            answers: 0,
        })
    }

    /// Keeps a query as a line of `queries.ndjson`, and its answer beside it.
    async fn answer(&mut self, query: &Query, session: &SessionContext) -> TestResult {
        let file = format!("{}.parquet", self.answers);
        write(&self.folder.join(&file), session, &query.sql).await?;
        let (sql, order, limited) = (&query.sql, query.order, query.limited);
        let line =
            serde_json::json!({"sql": sql, "answer": file, "order": order, "limited": limited});
        writeln!(self.queries, "{line}")?;
        self.answers += 1;
        Ok(())
    }
}

/// Writes the rows of a query to a Parquet file.
async fn write(file: &Path, session: &SessionContext, sql: &str) -> TestResult {
    let frame = session.sql(sql).await?;
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let mut writer = ArrowWriter::try_new(File::create(file)?, schema, None)?;
    for batch in frame.collect().await? {
        writer.write(&batch)?;
    }
    writer.close()?;
    Ok(())
}

/// A change does to an array what it would do to rows in memory, or nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_change_what_they_name() -> TestResult {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (mut done, mut changes) = (0, 0);
    for seed in 0..number("AZULEJO_SQL_SEEDS").unwrap_or(SEEDS) {
        let mut numbers = Numbers(seed * 15_485_863 + 3);
        let context = Context::new(Config::default(), None)?;
        let place = context.array("mem://changing");
        make(&place, &mut numbers)?;
        let ours = azulejo_sql::session(&context);
        ours.register_table("a", azulejo_sql::table(&place)?)?;
        let table = ArrayTable::open(place.clone(), TableOptions::new())?;
        let fields = table.schema();
        let columns: Vec<(String, DataType)> = fields
            .fields()
            .iter()
            .map(|f| (f.name().clone(), f.data_type().clone()))
            .collect();
        for _ in 0..4 {
            let before = ArrayTable::open(place.clone(), TableOptions::new())?;
            let theirs = azulejo_sql::session(&context);
            theirs.register_table("a", Arc::new(rows_of(&before)?))?;
            let condition = condition(&columns, &mut numbers, 1);
            let (change, expected) = if numbers.once_in(2) {
                let change = format!("DELETE FROM a WHERE {condition}");
                (
                    change,
                    format!("SELECT * FROM a WHERE ({condition}) IS NOT TRUE"),
                )
            } else {
                let new = *numbers.pick(&["i + 1", "NULL", "5", "-i"]);
                let text = *numbers.pick(&["'new'", "s"]);
                let value = |name: &str| match name {
                    "i" => format!("CASE WHEN ({condition}) IS TRUE THEN {new} ELSE i END AS i"),
                    "s" => format!("CASE WHEN ({condition}) IS TRUE THEN {text} ELSE s END AS s"),
                    name => name.to_owned(),
                };
                let values: Vec<String> = columns.iter().map(|(name, _)| value(name)).collect();
                let change = format!("UPDATE a SET i = {new}, s = {text} WHERE {condition}");
                (change, format!("SELECT {} FROM a", values.join(", ")))
            };
            let all = async |session: &SessionContext, sql: &str| -> TestResult<Vec<String>> {
                let mut rows = text(&session.sql(sql).await?.collect().await?)?;
                rows.sort();
                Ok(rows)
            };
            let changed = match ours.sql(&change).await {
                Ok(frame) => frame.collect().await.map(drop),
                Err(error) => Err(error),
            };
            let expected = match &changed {
                Ok(()) => all(&theirs, &expected).await?,
                Err(_) => all(&theirs, "SELECT * FROM a").await?,
            };
            assert_same(&all(&ours, "SELECT * FROM a").await?, &expected)
                .map_err(|error| format!("seed {seed}: {change}\n{changed:?}\n{error}"))?;
            done += usize::from(changed.is_ok());
            changes += 1;
        }
    }
    assert!(
        done * 4 > changes,
        "only {done} of {changes} changes were done"
    );
    Ok(())
}

/// Holds the answers of two sessions to a query against each other.
pub async fn check(ours: &SessionContext, theirs: &SessionContext, query: &Query) -> TestResult {
    let run = async |session: &SessionContext| -> TestResult<Vec<String>> {
        text(&session.sql(&query.sql).await?.collect().await?)
    };
    let (mut found, mut expected) = (run(ours).await?, run(theirs).await?);
    match query.order {
        // Rows that the order does not tell apart come in any order.
        Some(keys) => {
            let keys = |rows: &[String]| -> Vec<String> {
                let key = |row: &String| row.split('|').take(keys).collect::<Vec<_>>().join("|");
                rows.iter().map(key).collect()
            };
            assert_same(&keys(&found), &keys(&expected))?;
            if query.limited {
                return Ok(());
            }
        }
        None if query.limited => {
            return match found.len() == expected.len() {
                true => Ok(()),
                false => Err(format!("{} rows, not {}", found.len(), expected.len()).into()),
            };
        }
        None => {}
    }
    found.sort();
    expected.sort();
    assert_same(&found, &expected)
}

fn assert_same(found: &[String], expected: &[String]) -> TestResult {
    if found == expected {
        return Ok(());
    }
    let differ = found.iter().zip(expected).find(|(a, b)| a != b);
    Err(format!(
        "{} rows, expected {}; the first that differ: {differ:?}",
        found.len(),
        expected.len()
    )
    .into())
}

/// A query, and what of its answer is certain.
pub struct Query {
    /// Its text.
    pub sql: String,
    /// The number of leading columns that the rows are ordered by.
    order: Option<usize>,
    limited: bool,
}

impl Query {
    /// A random one over the table `a`.
    pub fn random(columns: &[(String, DataType)], ndim: usize, numbers: &mut Numbers) -> Self {
        let filter = match numbers.below(6) {
            0 => String::new(),
            _ => format!(" WHERE {}", condition(columns, numbers, 2)),
        };
        let list = |columns: &[String]| columns.join(", ");
        let (mut order, mut limited) = (None, false);
        let sql = match numbers.below(19) {
            8 => {
                // The first rows by any column: what they teach narrows the scan.
                let key = &numbers.pick(columns).0;
                let direction = numbers.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
                order = Some(1);
                limited = true;
                format!(
                    "SELECT {key} FROM a{filter} ORDER BY {key}{direction} LIMIT {}",
                    numbers.below(12)
                )
            }
            9 => {
                let key = &numbers.pick(columns).0;
                let inner = condition(columns, numbers, 1);
                let not = if numbers.once_in(3) { "NOT " } else { "" };
                format!(
                    "SELECT x AS p, i AS q, {key} AS r FROM a WHERE {key} {not}IN (SELECT {key} FROM a WHERE {inner})"
                )
            }
            10 => {
                let key = &numbers.pick(&columns[..ndim]).0;
                let kind = numbers.pick(&["JOIN", "LEFT JOIN", "FULL JOIN"]);
                format!(
                    "SELECT p.x, p.i, q.s FROM (SELECT * FROM a{filter}) AS p {kind} (SELECT * FROM a WHERE {}) AS q ON p.{key} = q.{key}",
                    condition(columns, numbers, 1)
                )
            }
            11 => {
                let key = &numbers.pick(columns).0;
                format!("SELECT DISTINCT {key} FROM a{filter}")
            }
            12 => {
                let key = &numbers.pick(columns).0;
                let (op, most) = (numbers.pick(&["<", ">="]), numbers.below(6));
                format!(
                    "SELECT {key}, count(*), count(DISTINCT i), max(s) FROM a{filter} GROUP BY {key} HAVING count(*) {op} {most}"
                )
            }
            13 => {
                let (one, two) = (&numbers.pick(columns).0, &numbers.pick(columns).0);
                let inner = condition(columns, numbers, 1);
                format!(
                    "SELECT count(DISTINCT {one}), count({two}) FILTER (WHERE {inner}), min(i) FILTER (WHERE {inner}) FROM a{filter}"
                )
            }
            14 => {
                let key = &numbers.pick(columns).0;
                format!(
                    "SELECT x, i, sum(i) OVER (PARTITION BY {key}), count(*) OVER (PARTITION BY {key}) FROM a{filter}"
                )
            }
            15 => {
                let key = &numbers.pick(columns).0;
                let inner = condition(columns, numbers, 1);
                let not = if numbers.once_in(2) { "NOT " } else { "" };
                match numbers.below(2) {
                    0 => format!(
                        "SELECT p.x, p.i FROM a AS p WHERE {not}EXISTS (SELECT 1 FROM (SELECT * FROM a WHERE {inner}) AS q WHERE q.{key} = p.{key})"
                    ),
                    _ => format!(
                        "SELECT x, i FROM a WHERE {not}i = (SELECT max(i) FROM a WHERE {inner})"
                    ),
                }
            }
            16 => {
                let key = &numbers.pick(columns).0;
                let inner = condition(columns, numbers, 1);
                let both = numbers.pick(&["UNION ALL", "UNION", "INTERSECT", "EXCEPT"]);
                format!("SELECT {key} FROM a{filter} {both} SELECT {key} FROM a WHERE {inner}")
            }
            17 => {
                // Orders that no array has, or has in part.
                let mut names: Vec<String> = Vec::new();
                while names.len() < 3 {
                    let name = &numbers.pick(columns).0;
                    if !names.contains(name) {
                        names.push(name.clone());
                    }
                }
                order = Some(names.len());
                limited = true;
                let directions = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"];
                let keys: Vec<String> = names
                    .iter()
                    .map(|name| format!("{name}{}", numbers.pick(&directions)))
                    .collect();
                format!(
                    "SELECT {} FROM a{filter} ORDER BY {} LIMIT {} OFFSET {}",
                    list(&names),
                    list(&keys),
                    numbers.below(20),
                    numbers.below(8)
                )
            }
            18 => {
                // Groups of groups behind a join.
                let (key, dimension) =
                    (&numbers.pick(columns).0, &numbers.pick(&columns[..ndim]).0);
                let inner = condition(columns, numbers, 1);
                let groups = format!(
                    "SELECT p.{key} AS r, q.i AS w, count(*) AS n FROM (SELECT * FROM a{filter}) AS p JOIN (SELECT * FROM a WHERE {inner}) AS q ON p.{dimension} = q.{dimension} GROUP BY p.{key}, q.i"
                );
                format!("SELECT r, n, count(*) AS m FROM ({groups}) AS g GROUP BY r, n")
            }
            0..=2 => {
                let mut chosen: Vec<String> = Vec::new();
                for _ in 0..=numbers.below(4) {
                    let name = &numbers.pick(columns).0;
                    if !chosen.contains(name) {
                        chosen.push(name.clone());
                    }
                }
                format!("SELECT {} FROM a{filter}", list(&chosen))
            }
            3 | 4 => {
                let mut names: Vec<String> = columns[..ndim].iter().map(|c| c.0.clone()).collect();
                if numbers.once_in(3) {
                    names.reverse();
                }
                names.truncate(1 + numbers.below(ndim as u64) as usize);
                order = Some(names.len());
                let direction = if numbers.once_in(4) { " DESC" } else { "" };
                let keys: Vec<String> = names.iter().map(|n| format!("{n}{direction}")).collect();
                limited = numbers.once_in(2);
                let limit = if limited {
                    format!(" LIMIT {}", numbers.below(20))
                } else {
                    String::new()
                };
                let others = columns
                    .iter()
                    .map(|c| c.0.clone())
                    .filter(|n| !names.contains(n));
                let all: Vec<String> = names.iter().cloned().chain(others).collect();
                format!(
                    "SELECT {} FROM a{filter} ORDER BY {}{limit}",
                    list(&all),
                    list(&keys)
                )
            }
            5 => {
                limited = true;
                format!("SELECT * FROM a{filter} LIMIT {}", numbers.below(30))
            }
            6 => {
                let key = &numbers.pick(columns).0;
                format!(
                    "SELECT {key}, count(*), sum(i), min(s), max(t) FROM a{filter} GROUP BY {key}"
                )
            }
            _ => {
                let mut wanted = vec!["count(*)".to_owned()];
                for _ in 0..numbers.below(4) {
                    let (name, data_type) = numbers.pick(columns);
                    wanted.push(match numbers.below(4) {
                        0 => format!("count({name})"),
                        1 if data_type.is_integer() => format!("sum({name})"),
                        2 if *data_type != DataType::Boolean => format!("min({name})"),
                        _ if *data_type != DataType::Boolean => format!("max({name})"),
                        _ => format!("count({name})"),
                    });
                }
                wanted.dedup();
                format!(
                    "SELECT {} FROM a{filter}",
                    wanted
                        .iter()
                        .enumerate()
                        .map(|(i, w)| format!("{w} AS c{i}"))
                        .collect::<Vec<_>>()
                        .join(", ")
                )
            }
        };
        Self {
            sql,
            order,
            limited,
        }
    }
}

/// A condition, up to `depth` connections deep.
fn condition(columns: &[(String, DataType)], numbers: &mut Numbers, depth: u64) -> String {
    if depth > 0 && numbers.once_in(2) {
        let joint = if numbers.once_in(2) { "AND" } else { "OR" };
        let (left, right) = (
            condition(columns, numbers, depth - 1),
            condition(columns, numbers, depth - 1),
        );
        let not = if numbers.once_in(4) { "NOT " } else { "" };
        return format!("{not}({left} {joint} {right})");
    }
    let (name, data_type) = numbers.pick(columns).clone();
    let not = if numbers.once_in(4) { "NOT " } else { "" };
    let mut value = || literal(&name, &data_type, numbers);
    let (one, two, three) = (value(), value(), value());
    let op = *numbers.pick(&["=", "<>", "<", "<=", ">", ">="]);
    let text = matches!(data_type, DataType::Utf8View);
    match numbers.below(14) {
        0 => format!("{name} IS {not}NULL"),
        1 => format!("{name} {not}IN ({one}, {two}, {three})"),
        2 => format!("{name} {not}BETWEEN {one} AND {two}"),
        3 if text => format!("{name} {not}LIKE '{}%'", numbers.pick(&WORDS)),
        4 if data_type == DataType::Boolean => format!("{not}{name}"),
        5 => format!("{one} {op} {name}"),
        6 => format!("{not}({name} {op} {one})"),
        9 if data_type == DataType::Int32 => {
            format!(
                "{name} {} {op} {one}",
                numbers.pick(&["+ 1", "% 3", "* 2", "/ 2"])
            )
        }
        10 => format!("coalesce({name}, {one}) {op} {two}"),
        11 if !data_type.is_floating() => format!("({name} IS {not}DISTINCT FROM {one})"),
        12 if text => {
            let pattern = numbers.pick(&["%b%", "_b%", "%a", "a_", "%", "", "Z_rich", "a%a"]);
            format!(
                "{name} {not}{} '{pattern}'",
                numbers.pick(&["LIKE", "ILIKE"])
            )
        }
        13 => format!("CASE WHEN {name} {op} {one} THEN i > 0 ELSE {name} <> {two} END"),
        7 if numbers.once_in(4) => format!("{name} {not}IN ({one}, NULL)"),
        _ => format!("{name} {op} {one}"),
    }
}

fn literal(name: &str, data_type: &DataType, numbers: &mut Numbers) -> String {
    match data_type {
        DataType::Boolean => numbers.pick(&["true", "false"]).to_string(),
        DataType::Float64 if name == "x" => format!("{:.1}", numbers.below(60) as f64 / 2.0 - 10.0),
        DataType::Float64 => {
            let reals = [
                "0.0",
                "-0.0",
                "1.5",
                "5.0",
                "1e300",
                "'inf'::DOUBLE",
                "'NaN'::DOUBLE",
            ];
            let real = *numbers.pick(&reals);
            // In a list DataFusion tells it from 0.0, as no other engine does.
            match std::env::var_os(KEEP) {
                Some(_) if real == "-0.0" => "0.0".to_owned(),
                _ => real.to_owned(),
            }
        }
        DataType::Date32 => {
            let day = format!("1970-01-{:02}", 1 + numbers.below(28));
            match numbers.below(6) {
                0 => format!("TIMESTAMP '{day} 12:00:00'"),
                1 => format!("TIMESTAMP '{day} 00:00:00'"),
                _ => format!("DATE '{day}'"),
            }
        }
        DataType::Timestamp(TimeUnit::Second, _) => format!(
            "TIMESTAMP '1970-01-01 {:02}:{:02}:{}'",
            numbers.below(5),
            numbers.pick(&[0, 30]),
            numbers.pick(&["00", "00", "00.5"])
        ),
        DataType::Timestamp(..) => {
            format!(
                "TIMESTAMP '1970-01-01 00:00:0{}.{}'",
                numbers.below(3),
                numbers.pick(&["0", "25", "5", "2505"])
            )
        }
        DataType::Dictionary(..) => {
            format!("'{}'", numbers.pick(&["red", "green", "blue", "grey"]))
        }
        DataType::Utf8View => format!("'{}'", numbers.pick(&WORDS)),
        DataType::UInt8 => numbers.below(70).to_string(),
        DataType::UInt64 => numbers.pick(&UNSIGNED).to_string(),
        _ => (numbers.below(40) as i64 - 14).to_string(),
    }
}
