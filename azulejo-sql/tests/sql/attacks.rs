//! What a user might ask of any table, of arrays of many kinds: they answer as the same rows in memory.

use crate::support::{TestResult, beside_memory, rows, rows_of};
use azulejo::{Config, Context};
use azulejo_sql::{ArrayTable, TableOptions, sql};
use datafusion::prelude::SessionContext;
use std::sync::Arc;

/// Rows of two coordinates and some values: nulls, NaN, repeated coordinates along each dimension.
const CELLS: &str = "SELECT arrow_cast(column1, 'Int32') AS x, arrow_cast(column2, 'Int64') AS y, \
    arrow_cast(column3, 'Float64') AS f, arrow_cast(column4, 'Int64') AS n, arrow_cast(column5, 'LargeUtf8') AS s FROM (VALUES \
    (-40, -7, 'NaN', 1, 'a'), (-40, 0, '-0.0', NULL, ''), (-40, 6, '0.0', 3, NULL), (-3, -7, 'Infinity', -1, 'B'), \
    (-3, -6, NULL, 9223372036854775807, 'b'), (-1, -1, '1.5', -9223372036854775808, 'ä'), (0, 0, '1.5', 0, 'a'), \
    (0, 5, '-Infinity', 3, 'a'), (7, -7, 'NaN', NULL, NULL), (7, 6, '2', 5, 'zz'), (39, 0, '-1.5', 5, 'Z'), (39, 6, NULL, 1, 'a'))";

/// Kinds of arrays of these rows: which of them there are, and how the array looks.
const ARRAYS: &[(&str, &str, &str)] = &[
    (
        "sparse",
        "",
        "dimensions = 'x, y', \"domain.x\" = '-50..50', \"tile.x\" = '7', \"domain.y\" = '-10..10', \"tile.y\" = '4', capacity = '2'",
    ),
    ("turned", "", "dimensions = 'y, x', capacity = '3'"),
    (
        "duplicates",
        "",
        "dimensions = 'y', duplicates = 'true', capacity = '1'",
    ),
    (
        "words",
        "WHERE s IS NOT NULL AND s <> 'ä'",
        "dimensions = 's, x, y', capacity = '2'",
    ),
    (
        "reals",
        "WHERE abs(f) < 10",
        "dimensions = 'f, x, y', capacity = '2'",
    ),
    (
        "line",
        "WHERE x = -40",
        "dimensions = 'y', dense = 'true', \"domain.y\" = '-9..9', \"tile.y\" = '4'",
    ),
    ("one", "WHERE x = 0 AND y = 0", "dimensions = 'x, y'"),
    ("none", "WHERE false", "dimensions = 'x, y'"),
];

const QUERIES: &[&str] = &[
    // Bounds the wrong way round, at the ends of types and beyond.
    "SELECT * FROM {t} WHERE x BETWEEN 5 AND -5",
    "SELECT * FROM {t} WHERE x NOT BETWEEN 5 AND -5",
    "SELECT x, y FROM {t} WHERE x >= -2147483648 AND y <= 9223372036854775807",
    "SELECT x, y FROM {t} WHERE x < -2147483648 OR y > 9223372036854775807",
    "SELECT x, y FROM {t} WHERE y > 18446744073709551615",
    "SELECT x, y FROM {t} WHERE y < 18446744073709551615",
    "SELECT x, y FROM {t} WHERE x > 2147483648 OR x <= -2147483649",
    "SELECT x, y FROM {t} WHERE x <> 9223372036854775807",
    "SELECT x, y FROM {t} WHERE x = -0.0 OR y = 6.0",
    "SELECT x, y FROM {t} WHERE x > -2.5 AND x < 6.999999",
    "SELECT x, y FROM {t} WHERE x IN (-40.0, 0.5, 7)",
    "SELECT x, y FROM {t} WHERE x = '7'",
    "SELECT x, y FROM {t} WHERE x < 'NaN'::double",
    "SELECT x, y FROM {t} WHERE -x > 2 AND abs(y) = 7",
    "SELECT x, y FROM {t} WHERE x = y OR x + y = 6",
    // Nulls and NaN in lists.
    "SELECT x, y FROM {t} WHERE f IN ('NaN'::double, NULL)",
    "SELECT x, y FROM {t} WHERE f NOT IN ('NaN'::double, 1.5)",
    "SELECT x, y FROM {t} WHERE f NOT IN ('NaN'::double, NULL)",
    "SELECT x, y FROM {t} WHERE NOT (f IN (1.5, NULL))",
    "SELECT x, y FROM {t} WHERE (f IN (1.5, NULL)) IS NULL",
    "SELECT x, y FROM {t} WHERE x IN (7, NULL)",
    "SELECT x, y FROM {t} WHERE x NOT IN (7, NULL)",
    "SELECT x, y FROM {t} WHERE (x IN (7, NULL)) IS NOT TRUE",
    "SELECT x, y FROM {t} WHERE n NOT IN (3, 5) OR n IS NULL",
    "SELECT x, y FROM {t} WHERE s IN ('a', NULL) OR s NOT IN ('a', 'B')",
    "SELECT x, y FROM {t} WHERE NULL = x OR NULL",
    "SELECT x, y FROM {t} WHERE f <> f OR f = f",
    "SELECT x, y FROM {t} WHERE x NOT IN (SELECT n FROM {t})",
    "SELECT x, y FROM {t} WHERE x NOT IN (SELECT n FROM {t} WHERE n IS NOT NULL)",
    "SELECT x, y FROM {t} WHERE f IN (SELECT f FROM {t} WHERE y = -7)",
    // Rows in order, and parts of it.
    "SELECT x, y FROM {t} ORDER BY x, y",
    "SELECT x, y, s FROM {t} ORDER BY x DESC, y DESC",
    "SELECT y, x FROM {t} ORDER BY y DESC, x",
    "SELECT x, y FROM {t} ORDER BY x, y DESC LIMIT 5",
    "SELECT x, y FROM {t} ORDER BY x DESC, y LIMIT 3 OFFSET 2",
    "SELECT x, y FROM {t} ORDER BY y, x LIMIT 4 OFFSET 3",
    "SELECT x, y FROM {t} ORDER BY x, y LIMIT 0",
    "SELECT x, y FROM {t} ORDER BY x, y OFFSET 1000",
    "SELECT x, y FROM {t} ORDER BY x, y LIMIT 5 OFFSET 9223372036854775807",
    "SELECT x, y FROM {t} ORDER BY x, y LIMIT 9223372036854775807 OFFSET 2",
    "SELECT count(*) FROM (SELECT x FROM {t} OFFSET 4) AS q",
    "SELECT count(*) FROM (SELECT x FROM {t} LIMIT 3 OFFSET 11) AS q",
    "SELECT f, x, y FROM {t} ORDER BY f DESC NULLS LAST, x, y LIMIT 4",
    "SELECT x + 0 AS z, y FROM {t} ORDER BY z DESC, y LIMIT 3",
    "SELECT DISTINCT ON (x) x, y, n FROM {t} ORDER BY x, y DESC",
    "SELECT DISTINCT ON (y) y, x FROM {t} ORDER BY y DESC, x",
    "SELECT DISTINCT x FROM {t}",
    "SELECT DISTINCT s, x > 0 FROM {t}",
    // Windows along dimensions.
    "SELECT x, y, row_number() OVER (ORDER BY x, y) FROM {t}",
    "SELECT x, y, row_number() OVER (PARTITION BY x ORDER BY y DESC) FROM {t}",
    "SELECT x, y, sum(y) OVER (PARTITION BY x ORDER BY y ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM {t}",
    "SELECT x, y, count(*) OVER (ORDER BY x RANGE BETWEEN 3 PRECEDING AND 3 FOLLOWING) FROM {t}",
    "SELECT x, y, lag(s, 2, 'none') OVER (ORDER BY y, x), first_value(n) OVER (ORDER BY x, y) FROM {t}",
    "SELECT x, y, rank() OVER (ORDER BY x DESC), ntile(3) OVER (ORDER BY y, x) FROM {t}",
    "SELECT * FROM (SELECT x, y, max(n) OVER (PARTITION BY y) AS m FROM {t}) AS q WHERE x > 0",
    "SELECT x, y FROM (SELECT x, y, row_number() OVER (PARTITION BY y ORDER BY x DESC) AS r FROM {t}) AS q WHERE r = 1",
    // Joins on dimensions.
    "SELECT a.x, a.y, b.n FROM {t} AS a LEFT JOIN sparse AS b ON a.x = b.x AND a.y = b.y",
    "SELECT a.x, b.x, b.y FROM {t} AS a RIGHT JOIN sparse AS b ON a.x = b.x AND b.y > 0",
    "SELECT a.x, a.y, b.x, b.y FROM {t} AS a FULL JOIN sparse AS b ON a.x = b.x AND a.y = b.y AND a.n = b.n",
    "SELECT a.x, a.y, b.x FROM {t} AS a FULL JOIN {t} AS b ON a.y = b.x",
    "SELECT a.x, a.y FROM {t} AS a LEFT SEMI JOIN sparse AS b ON a.y = b.y AND b.x > 0",
    "SELECT a.x, a.y FROM {t} AS a LEFT ANTI JOIN sparse AS b ON a.y = b.y AND b.x > 0",
    "SELECT b.x, b.y FROM {t} AS a RIGHT SEMI JOIN turned AS b ON a.x = b.x",
    "SELECT b.x, b.y FROM {t} AS a RIGHT ANTI JOIN turned AS b ON a.x = b.x",
    "SELECT a.x, b.y FROM {t} AS a, turned AS b WHERE a.x = b.x AND a.y < b.y",
    "SELECT a.x, a.y, b.s FROM {t} AS a JOIN words AS b ON a.s = b.s",
    "SELECT a.x, a.f, b.x FROM {t} AS a JOIN reals AS b ON a.f = b.f",
    "SELECT a.x, a.f, b.x FROM {t} AS a LEFT JOIN reals AS b ON a.f = b.f AND b.f > 0",
    "SELECT x, y, a.n, b.n FROM {t} AS a NATURAL JOIN (SELECT x, y, n FROM sparse) AS b",
    "SELECT a.x, q.m FROM {t} AS a JOIN (SELECT x, max(y) AS m FROM sparse GROUP BY x) AS q ON a.x = q.x AND a.y = q.m",
    "SELECT a.x, b.x FROM {t} AS a JOIN sparse AS b ON a.x <= b.x AND a.y > b.y AND b.n IS NOT NULL",
    // Subqueries that look outside.
    "SELECT x, y, (SELECT max(b.y) FROM sparse AS b WHERE b.x = a.x) FROM {t} AS a",
    "SELECT x, y, (SELECT count(*) FROM {t} AS b WHERE b.x = a.x AND b.y > 0) FROM {t} AS a",
    "SELECT x, y FROM {t} AS a WHERE EXISTS (SELECT 1 FROM sparse AS b WHERE b.x = a.x AND b.y > a.y)",
    "SELECT x, y FROM {t} AS a WHERE NOT EXISTS (SELECT 1 FROM sparse AS b WHERE b.y = a.y AND b.x > a.x)",
    "SELECT x, y FROM {t} AS a WHERE y = (SELECT min(b.y) FROM {t} AS b WHERE b.x = a.x)",
    "SELECT x, y FROM {t} WHERE x > (SELECT avg(x) FROM {t}) AND y = ANY (SELECT y FROM one)",
    "SELECT (SELECT max(x) FROM {t}), (SELECT min(s) FROM {t} WHERE y > 100), (SELECT count(*) FROM none)",
    "WITH q AS (SELECT x, sum(y) AS s FROM {t} GROUP BY x) SELECT a.x, b.s FROM q AS a JOIN q AS b ON a.x = b.x WHERE a.s > 0",
    // Sets.
    "SELECT x, y FROM {t} UNION ALL SELECT x, y FROM sparse",
    "SELECT x, y FROM {t} UNION ALL SELECT y, x FROM none",
    "SELECT x FROM {t} UNION SELECT y FROM turned",
    "SELECT x, y FROM {t} INTERSECT SELECT x, y FROM sparse WHERE y > 0",
    "SELECT x, y FROM sparse EXCEPT SELECT x, y FROM {t}",
    "SELECT max(x), count(*) FROM (SELECT x FROM {t} UNION ALL SELECT x FROM one) AS q WHERE x <= 0",
    "SELECT x FROM (SELECT x FROM {t} UNION ALL SELECT x FROM sparse) AS q ORDER BY x DESC LIMIT 4",
    "SELECT x FROM (SELECT x, y FROM {t} ORDER BY x LIMIT 3) AS q UNION ALL SELECT x FROM one",
    // Groups.
    "SELECT x, count(*), sum(n), min(f) FILTER (WHERE f < 1e300), max(s) FROM {t} WHERE n < 100 AND n > -100 GROUP BY x",
    "SELECT y, avg(f), count(DISTINCT x) FROM {t} GROUP BY y HAVING min(x) < 0 ORDER BY y DESC",
    "SELECT x, y, grouping(x), count(*) FROM {t} GROUP BY GROUPING SETS ((x), (y), ())",
    "SELECT x > 0, y > 0, count(*) FROM {t} GROUP BY ROLLUP (x > 0, y > 0)",
    "SELECT x / 10, y % 3, count(*) FROM {t} GROUP BY 1, 2",
    "SELECT min(x), max(x), min(y), max(y), sum(x), count(f) FROM {t} WHERE x < 7",
    "SELECT min(x), max(x), min(y), max(y), sum(y), count(n) FROM {t} WHERE x BETWEEN -3 AND 7 AND y BETWEEN -6 AND 6",
    "SELECT count(*), min(x), sum(n) FROM {t} WHERE x BETWEEN 8 AND 38",
    "SELECT count(*) FILTER (WHERE x > 0), sum(x) FILTER (WHERE y < 0), count(*) FROM {t}",
    "SELECT array_agg(y ORDER BY y DESC) FROM {t} WHERE x = -40",
    "SELECT first_value(n ORDER BY x, y), last_value(s ORDER BY x, y) FROM {t}",
    "SELECT bool_and(x < 100), string_agg(s, ',' ORDER BY x, y) FROM {t}",
    // No columns, and columns that are repeated.
    "SELECT 1 FROM {t} WHERE y = -7",
    "SELECT x, x AS x1, y AS x2, x + 1 FROM {t} WHERE x > 0",
    "SELECT q.* FROM (SELECT y AS x, x AS y FROM {t}) AS q WHERE q.x = 0",
    "SELECT CASE WHEN x > 0 THEN 10 / x ELSE 0 END FROM {t}",
    "SELECT * FROM {t} WHERE random() > 2",
];

/// Queries of which one session says something else than the other; how many both can answer.
async fn differences(
    arrays: &SessionContext,
    memory: &SessionContext,
    queries: impl Iterator<Item = String>,
) -> (Vec<String>, usize) {
    let (mut wrong, mut answered) = (Vec::new(), 0);
    for query in queries {
        match beside_memory(arrays, memory, &query).await {
            Ok(both) => answered += usize::from(both),
            Err(difference) => wrong.push(difference),
        }
    }
    (wrong, answered)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arrays_of_all_kinds_answer_what_users_ask() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let (arrays, memory) = (azulejo_sql::session(&context), SessionContext::new());
    rows(&arrays, &format!("CREATE TABLE cells AS {CELLS}")).await?;
    for (name, which, options) in ARRAYS {
        let create = format!(
            "CREATE TABLE {name} WITH (location = 'mem://attacks/{name}', {options}) AS SELECT * FROM cells {which}"
        );
        rows(&arrays, &create)
            .await
            .map_err(|error| format!("{name}: {error}"))?;
        let place = context.array(&format!("mem://attacks/{name}"));
        let table = Arc::new(ArrayTable::open(place, TableOptions::new())?);
        memory.register_table(*name, Arc::new(rows_of(&table)?))?;
        // With the columns as the array has them, not as the query had.
        arrays.deregister_table(*name)?;
        arrays.register_table(*name, table)?;
    }
    let queries = ARRAYS
        .iter()
        .flat_map(|(name, ..)| QUERIES.iter().map(|query| query.replace("{t}", name)));
    let asked = QUERIES.len() * ARRAYS.len();
    let (wrong, answered) = differences(&arrays, &memory, queries).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        answered * 10 > asked * 9,
        "only {answered} of {asked} were answered"
    );
    Ok(())
}

/// Moments of all units, before 1970 and at the ends of what they can be, as dimensions and attributes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moments_compare_as_in_memory() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    // Sessions of ours, both: of others, moments between two ticks are cut.
    let (arrays, memory) = (
        azulejo_sql::session(&context),
        azulejo_sql::session(&context),
    );
    let units = ["Second", "Millisecond", "Microsecond", "Nanosecond"];
    let mut queries = Vec::new();
    for (i, unit) in units.iter().enumerate() {
        let of = format!(
            "SELECT arrow_cast(arrow_cast(column1, 'Int64') * {}, 'Timestamp({unit}, None)') AS t, \
             arrow_cast(arrow_cast(column2, 'Int64') * {}, 'Timestamp({unit}, None)') AS u, arrow_cast(column2, 'Int64') AS n FROM \
             (VALUES (-9223372000, 5), (-86401, -1), (-1, NULL), (0, 0), (1, 86400), (1717200000, -86401), (9223372000, 9223372000))",
            1000i64.pow(i as u32),
            1000i64.pow(i as u32),
        );
        let name = unit.to_lowercase();
        rows(&memory, &format!("CREATE TABLE {name} AS {of}")).await?;
        let create = format!(
            "CREATE TABLE {name} WITH (location = 'mem://moments/{name}', dimensions = 't', capacity = '2') AS {of}"
        );
        rows(&arrays, &create).await?;
        for column in ["t", "u"] {
            for condition in [
                "{c} = TIMESTAMP '1970-01-01T00:00:00'",
                "{c} < TIMESTAMP '1970-01-01T00:00:00'",
                "{c} <= '1969-12-31T23:59:59'",
                "{c} > TIMESTAMP '1970-01-01T00:00:00.5'",
                "{c} >= TIMESTAMP '1969-12-31T23:59:58.999999999'",
                "{c} < TIMESTAMP '1970-01-01T00:00:00.000000001'",
                "{c} = TIMESTAMP '1970-01-01T00:00:00.000000001'",
                "{c} <> TIMESTAMP '1970-01-01T00:00:00.000000001'",
                "{c} IN (TIMESTAMP '1970-01-01T00:00:00.1', TIMESTAMP '1970-01-02T00:00:00')",
                "{c} NOT IN (TIMESTAMP '1970-01-01T00:00:00', TIMESTAMP '1970-01-01T00:00:00.1')",
                "{c} BETWEEN DATE '1969-12-30' AND DATE '1970-01-01'",
                "{c} BETWEEN DATE '1970-01-02' AND DATE '1969-12-30'",
                "{c} = DATE '1970-01-01'",
                "{c}::date = DATE '1969-12-30'",
                "CAST({c} AS date) <= DATE '1970-01-01'",
                "extract(year FROM {c}) = 2024",
                "{c} > TIMESTAMP '2200-01-01T00:00:00'",
                "{c} < now()",
                "{c} + INTERVAL '1 day' > TIMESTAMP '1970-01-01T12:00:00'",
                "{c} > TIMESTAMP '1970-01-01T00:00:00' - INTERVAL '1 day'",
                "arrow_cast({c}, 'Timestamp(Second, None)') = TIMESTAMP '1970-01-01T00:00:00'",
                "arrow_cast({c}, 'Timestamp(Millisecond, None)') >= TIMESTAMP '1969-12-31T23:59:59'",
                "arrow_cast({c}, 'Int64') > 0",
                "{c} IS NULL OR {c} > TIMESTAMP '2024-01-01T00:00:00+05:00'",
            ] {
                let condition = condition.replace("{c}", column);
                queries.push(format!("SELECT t, u FROM {name} WHERE {condition}"));
                queries.push(format!("SELECT t FROM {name} WHERE NOT ({condition})"));
                queries.push(format!(
                    "SELECT count(*), min(t), max(t) FROM {name} WHERE {condition}"
                ));
            }
        }
        for other in units {
            let other = other.to_lowercase();
            queries.push(format!(
                "SELECT a.t, b.t FROM {name} AS a JOIN {other} AS b ON a.t = b.t"
            ));
            queries.push(format!(
                "SELECT a.t, b.u FROM {name} AS a LEFT JOIN {other} AS b ON a.t = b.u"
            ));
            queries.push(format!(
                "SELECT t FROM {name} WHERE t IN (SELECT u FROM {other})"
            ));
            queries.push(format!(
                "SELECT t FROM {name} WHERE t > (SELECT min(u) FROM {other})"
            ));
        }
    }
    let (wrong, answered) = differences(&arrays, &memory, queries.into_iter()).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(answered > 500, "{answered}");
    Ok(())
}

/// What lies between two ticks of a column is neither of them, and days are compared as far as they reach.
#[tokio::test]
async fn moments_between_two_ticks_are_neither() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let of = "SELECT arrow_cast(column1, 'Int64') AS n, arrow_cast(arrow_cast(column2, 'Int64'), 'Timestamp(Second, None)') AS t, \
         arrow_cast(arrow_cast(column3, 'Int64'), 'Timestamp(Second, None)') AS u, arrow_cast(column4, 'Date32') AS d FROM \
         (VALUES (0, -1, -1, '0001-01-01'), (1, 0, 0, '1970-01-01'), (2, 1, 1, '1970-01-02'), (3, 2, NULL, '9999-12-31'))";
    rows(&session, &format!("CREATE TABLE plain AS {of}")).await?;
    let create = "CREATE TABLE stored WITH (location = 'mem://between', dimensions = 't') AS ";
    rows(&session, &format!("{create}{of}")).await?;
    let (half, before) = (
        "TIMESTAMP '1970-01-01T00:00:00.5'",
        "TIMESTAMP '1969-12-31T23:59:59.5'",
    );
    let (one, behind) = (
        "TIMESTAMP '1970-01-01T00:00:01'",
        "TIMESTAMP '1970-01-01T00:00:01.000000001'",
    );
    let zoned = "'1970-01-01T00:00:00.5Z', 'Timestamp(Nanosecond, Some(\"+00:00\"))'";
    let cases: &[(String, &[&str])] = &[
        (format!("t < {half}"), &["0", "1"]),
        (format!("t <= {half}"), &["0", "1"]),
        (format!("t >= {half}"), &["2", "3"]),
        (format!("{half} < t"), &["2", "3"]),
        (format!("t > {before}"), &["1", "2", "3"]),
        (format!("t < {before}"), &["0"]),
        (format!("t = {half}"), &[]),
        (format!("t <> {half}"), &["0", "1", "2", "3"]),
        (format!("u <> {half}"), &["0", "1", "2"]),
        (format!("NOT (u = {half})"), &["0", "1", "2"]),
        (format!("u = {one}"), &["2"]),
        (format!("u IN ({half})"), &[]),
        (format!("u NOT IN ({half})"), &["0", "1", "2"]),
        (format!("u IN ({half}, {one})"), &["2"]),
        (format!("u NOT IN ({half}, {one})"), &["0", "1"]),
        (format!("u NOT IN ({half}, NULL)"), &[]),
        (format!("t BETWEEN {before} AND {behind}"), &["1", "2"]),
        (format!("t NOT BETWEEN {before} AND {behind}"), &["0", "3"]),
        (format!("u IS DISTINCT FROM {half}"), &["0", "1", "2", "3"]),
        (format!("u IS NOT DISTINCT FROM {half}"), &[]),
        (format!("d < {half}"), &["0", "1"]),
        (format!("d >= {half}"), &["2", "3"]),
        ("d = TIMESTAMP '1970-01-02T00:00:00'".to_owned(), &["2"]),
        (
            format!("d IN ({one}, TIMESTAMP '1970-01-02T00:00:00')"),
            &["2"],
        ),
        ("d < now()".to_owned(), &["0", "1", "2"]),
        // So do moments of a zone.
        (format!("t < arrow_cast({zoned})"), &["0", "1"]),
        (format!("u = arrow_cast({zoned})"), &[]),
        (format!("d < arrow_cast({zoned})"), &["0", "1"]),
        // Text beside days may have a time of day, too.
        ("d < '1970-01-01 12:00:00'".to_owned(), &["0", "1"]),
        ("d <= '1970-01-01T12:00:00'".to_owned(), &["0", "1"]),
        ("'1970-01-01 12:00' < d".to_owned(), &["2", "3"]),
        ("d = '1970-01-01 12:00:00'".to_owned(), &[]),
        (
            "NOT d = '1970-01-01 12:00'".to_owned(),
            &["0", "1", "2", "3"],
        ),
        ("d = '1970-01-02 00:00:00'".to_owned(), &["2"]),
        ("d = '1970-01-02 00:00'".to_owned(), &["2"]),
        (
            "d IN ('1970-01-01 12:00:00', '1970-01-02')".to_owned(),
            &["2"],
        ),
        (
            "d BETWEEN '1970-01-01 00:00' AND '1970-01-02 12:00:00'".to_owned(),
            &["1", "2"],
        ),
        (
            "d > '9999-12-30 12:00:00' OR d < '0001-01-01 00:00:01'".to_owned(),
            &["0", "3"],
        ),
        ("t < '1970-01-01 00:00'".to_owned(), &["0"]),
        ("u = '1970-01-01T00:00'".to_owned(), &["1"]),
        // So does text that is a moment.
        ("t < '1970-01-01T00:00:00.5'".to_owned(), &["0", "1"]),
        ("t = '1970-01-01T00:00:00.5'".to_owned(), &[]),
        ("'1969-12-31T23:59:59.5' < t".to_owned(), &["1", "2", "3"]),
        (
            "u NOT IN ('1970-01-01T00:00:00.5', '1970-01-01T00:00:01')".to_owned(),
            &["0", "1"],
        ),
        (
            "t BETWEEN '1969-12-31T23:59:59.5' AND '1970-01-01T00:00:01.5'".to_owned(),
            &["1", "2"],
        ),
        // Nanoseconds do not reach these.
        ("t < '9999-12-31'".to_owned(), &["0", "1", "2", "3"]),
        ("t > TIMESTAMP '9999-12-31'".to_owned(), &[]),
        ("DATE '0001-01-01' < u".to_owned(), &["0", "1", "2"]),
        ("u = '1600-01-01'".to_owned(), &[]),
        (
            "u IN ('9999-12-31', '1970-01-01T00:00:01')".to_owned(),
            &["2"],
        ),
        (
            "u NOT IN ('9999-12-31', '1970-01-01T00:00:01')".to_owned(),
            &["0", "1"],
        ),
        (
            "t BETWEEN '1970-01-01T00:00:01' AND '9999-12-31'".to_owned(),
            &["2", "3"],
        ),
        ("d >= TIMESTAMP '9999-12-31T00:00:00'".to_owned(), &["3"]),
        ("d >= TIMESTAMP '9999-12-31T00:00:01'".to_owned(), &[]),
        (
            "CAST(t AS TIMESTAMP) < '9999-12-31'".to_owned(),
            &["0", "1", "2", "3"],
        ),
    ];
    for table in ["plain", "stored"] {
        for (condition, expected) in cases {
            let query = format!("SELECT n FROM {table} WHERE {condition} ORDER BY n");
            assert_eq!(rows(&session, &query).await?, *expected, "{query}");
            let truth = format!(
                "SELECT n FROM (SELECT n, {condition} AS c FROM {table}) WHERE c ORDER BY n"
            );
            assert_eq!(rows(&session, &truth).await?, *expected, "{truth}");
        }
    }
    let none = "DELETE FROM stored WHERE d = '1970-01-01 12:00:00'";
    rows(&session, none).await?;
    rows(&session, &format!("DELETE FROM stored WHERE t = {half}")).await?;
    let count = "SELECT count(*) FROM stored";
    assert_eq!(rows(&session, count).await?, ["4"]);
    rows(&session, &format!("DELETE FROM stored WHERE t < {half}")).await?;
    assert_eq!(rows(&session, count).await?, ["2"]);
    Ok(())
}

/// Moments in nanoseconds have years, beside those that nanoseconds do not reach too.
#[tokio::test]
async fn years_beyond_nanoseconds_compare_as_years() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    let of = "SELECT arrow_cast(column1, 'Int64') AS n, arrow_cast(arrow_cast(column2, 'Int64'), 'Timestamp(Nanosecond, None)') AS t \
         FROM (VALUES (0, -1), (1, 0), (2, 1704067200000000000), (3, NULL))";
    rows(&session, &format!("CREATE TABLE plain AS {of}")).await?;
    let create = "CREATE TABLE stored WITH (location = 'mem://years', dimensions = 'n') AS ";
    rows(&session, &format!("{create}{of}")).await?;
    let all: &[&str] = &["0", "1", "2"];
    let none: &[&str] = &[];
    let cases: &[(&str, &[&str])] = &[
        ("< 3000", all),
        ("> 1600", all),
        (">= 1677", all),
        ("<= 2262", all),
        ("<> 0", all),
        ("BETWEEN 1600 AND 3000", all),
        ("NOT BETWEEN 1600 AND 1969", &["1", "2"]),
        ("NOT IN (1969, 3000)", &["1", "2"]),
        ("IN (3000, 2024)", &["2"]),
        ("> 3000", none),
        ("= 1600", none),
        ("> 1969", &["1", "2"]),
        ("= 1969", &["0"]),
    ];
    for table in ["plain", "stored"] {
        for (condition, expected) in cases {
            let query =
                format!("SELECT n FROM {table} WHERE extract(year FROM t) {condition} ORDER BY n");
            assert_eq!(rows(&session, &query).await?, *expected, "{query}");
        }
        let query = format!("SELECT n FROM {table} WHERE 3000 > date_part('year', t) ORDER BY n");
        assert_eq!(rows(&session, &query).await?, all, "{query}");
    }
    Ok(())
}

/// What is a key of one array is none of what it is joined with.
#[tokio::test]
async fn groups_behind_a_join_are_told_apart() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    for statement in [
        "CREATE TABLE s WITH (location = 'mem://s', dimensions = 'a') AS SELECT column1 AS a, column2 AS name FROM (VALUES (1, 'x'), (2, 'y'))",
        "CREATE TABLE m WITH (location = 'mem://m', dimensions = 'id') AS SELECT column1 AS id, column2 AS s, column3 AS d \
         FROM (VALUES (1, 1, 1), (2, 1, 1), (3, 1, 2), (4, 2, 1), (5, 1, 3))",
    ] {
        rows(&session, statement).await?;
    }
    for join in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] {
        let days = format!(
            "SELECT s.a, m.d, count(*) AS n FROM m {join} s ON m.s = s.a GROUP BY s.a, m.d"
        );
        let query =
            format!("SELECT a, count(*) FROM ({days}) AS g GROUP BY a, n ORDER BY a, count(*)");
        let expected = ["1|1", "1|2", "2|1"];
        assert_eq!(rows(&session, &query).await?, expected, "{join}");
    }
    let names =
        "SELECT s.a, s.name, count(*) FROM m JOIN s ON m.s = s.a GROUP BY s.a, s.name ORDER BY s.a";
    assert_eq!(rows(&session, names).await?, ["1|x|4", "2|y|1"]);
    Ok(())
}

/// Arrays of nothing but dimensions, and arrays as they were before anybody wrote to them.
#[tokio::test]
async fn no_attributes_and_no_cells_yet() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let session = azulejo_sql::session(&context);
    for statement in [
        "CREATE TABLE bare WITH (location = 'mem://bare', dimensions = 'x, y', capacity = '2') AS SELECT column1 AS x, column2 AS y FROM (VALUES (1, 1), (1, 2), (3, -1))",
        "CREATE TABLE was AS SELECT * FROM bare TIMESTAMP AS OF '2001-01-01'",
        "CREATE TABLE dense WITH (location = 'mem://dense', dimensions = 'x', dense = 'true', \"domain.x\" = '0..9') AS SELECT column1 AS x, column1 AS v FROM (VALUES (2), (3))",
    ] {
        sql(&session, statement).await?;
    }
    for (query, expected) in [
        (
            "SELECT * FROM bare ORDER BY x DESC, y",
            vec!["3|-1", "1|1", "1|2"],
        ),
        ("SELECT count(*), sum(y) FROM bare WHERE x < 3", vec!["2|3"]),
        ("SELECT x FROM bare GROUP BY x ORDER BY x", vec!["1", "3"]),
        ("SELECT 'row' FROM bare", vec!["row", "row", "row"]),
        ("SELECT count(*) FROM was", vec!["0"]),
        ("SELECT * FROM bare TIMESTAMP AS OF '2001-01-01'", vec![]),
        (
            "SELECT count(*), min(x), sum(y) FROM bare TIMESTAMP AS OF '2001-01-01'",
            vec!["0|∅|∅"],
        ),
        (
            "SELECT b.x FROM bare AS b LEFT ANTI JOIN (SELECT * FROM bare TIMESTAMP AS OF 1) AS w ON b.x = w.x WHERE y = 2",
            vec!["1"],
        ),
        (
            "SELECT * FROM azulejo('mem://dense', at => '2001-01-01')",
            vec![],
        ),
        (
            "SELECT count(*) FROM azulejo('mem://dense', at => '2001-01-01', unwritten => true)",
            vec!["10"],
        ),
        (
            "SELECT count(*), count(v) FROM azulejo('mem://dense', unwritten => true)",
            vec!["10|10"],
        ),
        (
            "SELECT x FROM azulejo('mem://dense', unwritten => true) WHERE x BETWEEN 8 AND 12 ORDER BY x DESC",
            vec!["9", "8"],
        ),
        (
            "SELECT x, v FROM dense ORDER BY x DESC LIMIT 1",
            vec!["3|3"],
        ),
    ] {
        assert_eq!(rows(&session, query).await?, expected, "{query}");
    }
    Ok(())
}
