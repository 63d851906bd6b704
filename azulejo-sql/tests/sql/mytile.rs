//! What MyTile, TileDB's storage engine for MariaDB, tests: its tables, questions and answers where
//! these are standard SQL, in the words that arrays have here.
//!
//! Not here: types that arrays or DataFusion have not (`DECIMAL` and `YEAR` as dimensions, enumerations
//! and spatial types of MariaDB's), its plans, settings and catalog, and arrays that it brings along,
//! but for its dense one of 4 x 4 cells.

use super::support::{TestResult, rows};
use azulejo::{Config, Context};

/// A test: what makes tables, and what questions about them are answered.
type Case = (
    &'static str,
    &'static [&'static str],
    &'static [(&'static str, &'static [&'static str])],
);

const CASES: [Case; 17] = [
    (
        "2nd: text of several scripts",
        &[
            "CREATE EXTERNAL TABLE t (a VARCHAR, d INT, PRIMARY KEY (d)) STORED AS AZULEJO LOCATION 'mem://t' OPTIONS ('domain.d' '0..100', 'tile.d' '10')",
            "INSERT INTO t (a, d) VALUES ('δοκιμή', 1)",
            "INSERT INTO t (a, d) VALUES ('测试', 2)",
        ],
        &[
            ("SELECT a, d FROM t ORDER BY d", &["δοκιμή|1", "测试|2"]),
            ("SELECT a, d FROM t WHERE a = 'δοκιμή'", &["δοκιμή|1"]),
            ("SELECT a, d FROM t WHERE a = '测试'", &["测试|2"]),
        ],
    ),
    (
        "aggregates of numbers",
        &[
            "CREATE EXTERNAL TABLE t (d INT, i BIGINT NOT NULL, f REAL NOT NULL, PRIMARY KEY (d)) STORED AS AZULEJO LOCATION 'mem://t' OPTIONS ('tile.d' '10')",
            "INSERT INTO t VALUES (0, 0, 1.2), (1, 1, 1.3), (2, 2, 1.4), (3, 3, 1.5), (4, 5, 1.6), (5, 7, 1.7), (6, 1, 1.8)",
        ],
        &[
            (
                "SELECT sum(i), max(i), min(i), round(avg(i), 4), count(i) FROM t",
                &["19|7|0|2.7143|7"],
            ),
            (
                "SELECT round(sum(f), 3), max(f), min(f), round(avg(f), 3), count(f) FROM t",
                &["10.5|1.8|1.2|1.5|7"],
            ),
        ],
    ),
    (
        "aggregates of text and of nulls",
        &[
            "CREATE EXTERNAL TABLE t (d INT, s VARCHAR, PRIMARY KEY (d)) STORED AS AZULEJO LOCATION 'mem://t' OPTIONS ('domain.d' '0..100', 'tile.d' '10')",
            "INSERT INTO t VALUES (1, 'Apple'), (2, 'Orange'), (3, 'Melon'), (4, 'Strawberry')",
            "CREATE EXTERNAL TABLE n (d INT, i BIGINT, f REAL, PRIMARY KEY (d)) STORED AS AZULEJO LOCATION 'mem://n' OPTIONS ('tile.d' '10')",
            "INSERT INTO n VALUES (0, 0, 1.2), (1, NULL, 1.3), (2, 2, 1.4), (3, NULL, 1.5), (4, 14, 1.6), (5, NULL, 1.7), (6, 32, 1.8)",
        ],
        &[
            ("SELECT max(s), min(s) FROM t", &["Strawberry|Apple"]),
            (
                "SELECT sum(i), max(i), min(i), avg(i) FROM n",
                &["48|32|0|12.0"],
            ),
            (
                "SELECT round(avg(f), 3), round(sum(f), 3) FROM n",
                &["1.5|10.5"],
            ),
        ],
    ),
    (
        "aggregates, pushdown_ranges, query_conditions, join: the dense array",
        &[
            "CREATE EXTERNAL TABLE q (rows INT, cols INT, a INT NOT NULL, PRIMARY KEY (rows, cols)) STORED AS AZULEJO LOCATION 'mem://q' OPTIONS ('dense' 'true', 'domain.rows' '1..4', 'domain.cols' '1..4', 'tile.rows' '4', 'tile.cols' '4')",
            "INSERT INTO q VALUES (1, 1, 1), (1, 2, 2), (1, 3, 3), (1, 4, 4), (2, 1, 5), (2, 2, 6), (2, 3, 7), (2, 4, 8), (3, 1, 9), (3, 2, 10), (3, 3, 11), (3, 4, 12), (4, 1, 13), (4, 2, 14), (4, 3, 15), (4, 4, 16)",
        ],
        &[
            (
                "SELECT avg(a), sum(a), max(a), min(a), count(a) FROM q",
                &["8.5|136|16|1|16"],
            ),
            (
                "SELECT sum(d.cols), avg(d.cols), max(d.cols) FROM q AS d",
                &["40|2.5|4"],
            ),
            ("SELECT avg(a) FROM q WHERE cols = 4", &["10.0"]),
            (
                "SELECT * FROM q WHERE rows >= 1 AND rows < 4 AND cols >= 1 AND cols < 4 ORDER BY rows, cols",
                &[
                    "1|1|1", "1|2|2", "1|3|3", "2|1|5", "2|2|6", "2|3|7", "3|1|9", "3|2|10",
                    "3|3|11",
                ],
            ),
            (
                "SELECT * FROM q WHERE rows >= 1 AND rows > 2 AND rows < 4 AND cols >= 1 AND cols <= 2 ORDER BY rows, cols",
                &["3|1|9", "3|2|10"],
            ),
            (
                "SELECT * FROM q WHERE rows IN (1, 2, 3) AND cols >= 3 AND cols < 4 ORDER BY rows, cols",
                &["1|3|3", "2|3|7", "3|3|11"],
            ),
            ("SELECT count(*), min(a) FROM q WHERE a > 3", &["13|4"]),
            (
                "SELECT count(*), sum(l.a + r.a) FROM q AS l JOIN q AS r USING (rows, cols)",
                &["16|272"],
            ),
            (
                "SELECT * FROM q WHERE rows = 1 AND cols = 1 ORDER BY rows, cols",
                &["1|1|1"],
            ),
        ],
    ),
    (
        "pushdown_ranges, orderby, primary_key: numbers",
        &[
            "CREATE EXTERNAL TABLE t (d INT, b VARCHAR, PRIMARY KEY (d)) STORED AS AZULEJO LOCATION 'mem://t' OPTIONS ('domain.d' '0..100', 'tile.d' '10')",
            "INSERT INTO t VALUES (1, 'crunch')",
            "INSERT INTO t VALUES (3, 'value2')",
            "INSERT INTO t VALUES (5, 'value')",
        ],
        &[
            ("SELECT d, b FROM t WHERE d = 3", &["3|value2"]),
            (
                "SELECT b FROM t WHERE d IN (1, 3) ORDER BY d",
                &["crunch", "value2"],
            ),
            ("SELECT * FROM t WHERE b = 'value'", &["5|value"]),
            (
                "SELECT b FROM t ORDER BY d DESC",
                &["value", "value2", "crunch"],
            ),
        ],
    ),
    (
        "pushdown_ranges, string_dim: text",
        &[
            "CREATE EXTERNAL TABLE t (d VARCHAR, b VARCHAR, PRIMARY KEY (d)) STORED AS AZULEJO LOCATION 'mem://t'",
            "INSERT INTO t VALUES ('1', 'crunch')",
            "INSERT INTO t VALUES ('3', 'value2')",
            "INSERT INTO t VALUES ('5', 'value')",
            "CREATE EXTERNAL TABLE u (d VARCHAR, e VARCHAR, a INT, PRIMARY KEY (d, e)) STORED AS AZULEJO LOCATION 'mem://u'",
            "INSERT INTO u VALUES ('a', 'b', 1)",
            "INSERT INTO u VALUES ('a', 'c', 2)",
            "INSERT INTO u VALUES ('a', 'd', 3)",
            "INSERT INTO u VALUES ('aa', 'b', 4)",
        ],
        &[
            ("SELECT d, b FROM t WHERE d = '3'", &["3|value2"]),
            (
                "SELECT b FROM t WHERE d IN ('1', '3') ORDER BY d",
                &["crunch", "value2"],
            ),
            (
                "SELECT * FROM u ORDER BY d, e",
                &["a|b|1", "a|c|2", "a|d|3", "aa|b|4"],
            ),
            ("SELECT * FROM u WHERE d = 'aa'", &["aa|b|4"]),
        ],
    ),
    (
        "pushdown_two_predicates",
        &[
            "CREATE EXTERNAL TABLE t (d INT, e INT, a INT, PRIMARY KEY (d, e)) STORED AS AZULEJO LOCATION 'mem://t' OPTIONS ('domain.d' '1..4', 'domain.e' '1..4', 'tile.d' '4', 'tile.e' '4')",
            "INSERT INTO t SELECT x, y, (x - 1) * 4 + y FROM generate_series(1, 4) AS p (x), generate_series(1, 4) AS q (y)",
            "CREATE EXTERNAL TABLE u (x DOUBLE, y DOUBLE, a INT NOT NULL, PRIMARY KEY (x, y)) STORED AS AZULEJO LOCATION 'mem://u' OPTIONS ('domain.x' '0..120', 'domain.y' '0..120', 'tile.x' '10', 'tile.y' '10')",
            "INSERT INTO u VALUES (0, 1, 2)",
            "INSERT INTO u VALUES (1, 1, 3)",
            "INSERT INTO u VALUES (2, 1, 4)",
            "INSERT INTO u VALUES (3, 1, 5)",
        ],
        &[
            (
                "SELECT * FROM t WHERE d = 2 ORDER BY e",
                &["2|1|5", "2|2|6", "2|3|7", "2|4|8"],
            ),
            ("SELECT * FROM t WHERE d = 2 AND e = 2", &["2|2|6"]),
            (
                "SELECT * FROM u WHERE x > 0 AND a > 3 ORDER BY x",
                &["2.0|1.0|4", "3.0|1.0|5"],
            ),
        ],
    ),
    (
        "query_conditions: a later row of the same key hides an earlier one that would be met",
        &[
            "CREATE EXTERNAL TABLE t (id INT, a1 INT NOT NULL, a2 INT, a3 VARCHAR, a4 VARCHAR NOT NULL, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://t' OPTIONS ('domain.id' '-10000..100000000', 'tile.id' '1')",
            "INSERT INTO t VALUES (1, 1, 1, '1', '1'), (2, 2, NULL, NULL, '2'), (3, 300, 300, 'abc', 'def')",
            "INSERT INTO t VALUES (1, 1, 10, 'beef', 'stew'), (2, 100, NULL, 'test', 'orange'), (3, 300, 400, 'def', 'beef')",
        ],
        &[
            ("SELECT id FROM t WHERE a2 = 1", &[]),
            ("SELECT id FROM t WHERE a1 = 1", &["1"]),
            ("SELECT id FROM t WHERE a3 = '1'", &[]),
            ("SELECT id FROM t WHERE a4 = '1'", &[]),
            ("SELECT id FROM t WHERE a2 BETWEEN 1 AND 11", &["1"]),
            (
                "SELECT id FROM t WHERE a2 BETWEEN 1 AND 11 AND a3 = 'beef'",
                &["1"],
            ),
            ("SELECT id FROM t WHERE a3 = 'beef' AND a4 = 'stew'", &["1"]),
            ("SELECT id FROM t WHERE a1 != 1 ORDER BY id", &["2", "3"]),
            ("SELECT id FROM t WHERE a1 > 300", &[]),
            ("SELECT id FROM t WHERE a1 < 300 ORDER BY id", &["1", "2"]),
            (
                "SELECT id FROM t WHERE a1 <= 300 ORDER BY id",
                &["1", "2", "3"],
            ),
            ("SELECT id FROM t WHERE a1 >= 300", &["3"]),
            ("SELECT id FROM t WHERE a2 IS NULL", &["2"]),
            ("SELECT id FROM t WHERE a3 IS NULL", &[]),
            (
                "SELECT id FROM t WHERE a2 IS NULL AND a3 IS NOT NULL",
                &["2"],
            ),
            ("SELECT id FROM t WHERE a2 IS NOT NULL AND a3 IS NULL", &[]),
            (
                "SELECT id FROM t WHERE a3 = 'beef' OR a4 = 'beef' ORDER BY id",
                &["1", "3"],
            ),
            (
                "SELECT id FROM t WHERE a1 = 300 OR a3 = 'test' ORDER BY id",
                &["2", "3"],
            ),
            (
                "SELECT id FROM t WHERE a1 >= 300 OR a1 = 100 ORDER BY id",
                &["2", "3"],
            ),
        ],
    ),
    (
        "nullable_attributes: some fragments without nulls, some of nothing else",
        &[
            "CREATE EXTERNAL TABLE t (d INT, s VARCHAR, PRIMARY KEY (d)) STORED AS AZULEJO LOCATION 'mem://t' OPTIONS ('tile.d' '10')",
            "INSERT INTO t VALUES (0, NULL)",
            "INSERT INTO t VALUES (3, '0123456789'), (4, 'abcdefghij')",
            "INSERT INTO t VALUES (6, NULL), (7, NULL), (8, NULL)",
            "INSERT INTO t VALUES (9, '012'), (10, NULL), (11, '')",
        ],
        &[
            (
                "SELECT d FROM t WHERE s IS NULL ORDER BY d",
                &["0", "6", "7", "8", "10"],
            ),
            (
                "SELECT * FROM t WHERE s IS NOT NULL ORDER BY d",
                &["3|0123456789", "4|abcdefghij", "9|012", "11|"],
            ),
        ],
    ),
    (
        "heterogeneus_dimensions",
        &[
            "CREATE EXTERNAL TABLE t (f REAL, i BIGINT, a INT, PRIMARY KEY (f, i)) STORED AS AZULEJO LOCATION 'mem://t' OPTIONS ('domain.f' '1..20', 'tile.f' '5', 'domain.i' '1..30', 'tile.i' '5')",
            "INSERT INTO t VALUES (1.1, 1, 1), (1.2, 2, 2), (1.3, 3, 3), (1.4, 4, 4), (1.5, 5, 5), (1.6, 6, 6)",
        ],
        &[
            (
                "SELECT * FROM t WHERE f > CAST(1.3 AS REAL) ORDER BY f",
                &["1.4|4|4", "1.5|5|5", "1.6|6|6"],
            ),
            (
                "SELECT * FROM t WHERE f < CAST(1.3 AS REAL) ORDER BY f",
                &["1.1|1|1", "1.2|2|2"],
            ),
            ("SELECT a FROM t WHERE i > 4 ORDER BY i", &["5", "6"]),
            ("SELECT a FROM t WHERE i < 4 ORDER BY i", &["1", "2", "3"]),
        ],
    ),
    (
        "mrr_string_dim: joined with itself by all dimensions",
        &[
            "CREATE EXTERNAL TABLE t (f REAL, s VARCHAR, a INT, PRIMARY KEY (f, s)) STORED AS AZULEJO LOCATION 'mem://t' OPTIONS ('domain.f' '1..20', 'tile.f' '5')",
            "INSERT INTO t VALUES (1.1, 'a', 1), (1.2, 'b', 2), (1.3, 'c', 3)",
        ],
        &[(
            "SELECT * FROM t AS l JOIN t AS r USING (f, s) ORDER BY f, s",
            &["1.1|a|1|1", "1.2|b|2|2", "1.3|c|3|3"],
        )],
    ),
    (
        "dense_writes",
        &[
            "CREATE EXTERNAL TABLE t (d BIGINT UNSIGNED, s VARCHAR, i INT, PRIMARY KEY (d)) STORED AS AZULEJO LOCATION 'mem://t' OPTIONS ('dense' 'true', 'domain.d' '0..100', 'tile.d' '10')",
            "INSERT INTO t (d, s, i) VALUES (1, 'cell 1', 100), (2, 'cell 2', 200), (3, 'cell 3', 300)",
            "INSERT INTO t (d, s, i) VALUES (1, 'cell 10', 1000), (2, 'cell 20', 2000)",
        ],
        &[(
            "SELECT * FROM t ORDER BY d",
            &["1|cell 10|1000", "2|cell 20|2000", "3|cell 3|300"],
        )],
    ),
    (
        "duplicates",
        &[
            "CREATE EXTERNAL TABLE t (d INT, a INT, PRIMARY KEY (d)) STORED AS AZULEJO LOCATION 'mem://t' OPTIONS ('duplicates' 'true')",
            "INSERT INTO t VALUES (1, 1), (1, 2)",
            "CREATE EXTERNAL TABLE u (d INT, a INT, PRIMARY KEY (d)) STORED AS AZULEJO LOCATION 'mem://u'",
            "INSERT INTO u VALUES (1, 10)",
            "INSERT INTO u VALUES (1, 20)",
        ],
        &[
            ("SELECT * FROM t ORDER BY a", &["1|1", "1|2"]),
            ("SELECT * FROM u", &["1|20"]),
        ],
    ),
    (
        "fill_in: defaults of columns",
        &[
            "CREATE EXTERNAL TABLE t (d INT, e INT, i INT NOT NULL DEFAULT 12345, s VARCHAR DEFAULT 'abc', f DOUBLE NOT NULL DEFAULT 12.345, PRIMARY KEY (d, e)) STORED AS AZULEJO LOCATION 'mem://t'",
            "INSERT INTO t (d, e, i, s, f) VALUES (0, 1, 2, '3', 4.5)",
            "INSERT INTO t (d, e) VALUES (4, 5)",
        ],
        &[(
            "SELECT * FROM t ORDER BY d",
            &["0|1|2|3|4.5", "4|5|12345|abc|12.345"],
        )],
    ),
    (
        "datetime_pushdown: moments",
        &[
            "CREATE EXTERNAL TABLE t (d TIMESTAMP(3), s VARCHAR, PRIMARY KEY (d)) STORED AS AZULEJO LOCATION 'mem://t'",
            "INSERT INTO t VALUES ('2020-10-20T00:00:00.123', 'first')",
            "INSERT INTO t VALUES ('2020-10-21T01:00:00.456', 'second')",
            "INSERT INTO t VALUES ('2020-10-22T02:00:00.789', 'third')",
        ],
        &[
            (
                "SELECT s FROM t WHERE d = '2020-10-20 00:00:00.1230'",
                &["first"],
            ),
            (
                "SELECT s FROM t WHERE d = '2020-10-21 01:00:00.45600'",
                &["second"],
            ),
            ("SELECT s FROM t WHERE d = '2020-10-22 02:00:00.788'", &[]),
            (
                "SELECT s FROM t WHERE d IN ('2020-10-20 00:00:00.123', '2020-10-22 02:00:00.789') ORDER BY d",
                &["first", "third"],
            ),
        ],
    ),
    (
        "datetime_pushdown: days",
        &[
            "CREATE EXTERNAL TABLE t (d DATE, i INT, PRIMARY KEY (d)) STORED AS AZULEJO LOCATION 'mem://t'",
            "INSERT INTO t VALUES ('1970-12-31', 1970)",
            "INSERT INTO t VALUES ('2000-06-11', 2000)",
            "INSERT INTO t VALUES ('2020-10-23', 2020)",
        ],
        &[
            (
                "SELECT * FROM t WHERE d = '2000-06-11'",
                &["2000-06-11|2000"],
            ),
            (
                "SELECT i FROM t WHERE d IN ('1970-12-31', '2000-06-11', '2020-10-23') ORDER BY d",
                &["1970", "2000", "2020"],
            ),
        ],
    ),
    (
        "empty_records, insert_into_select",
        &[
            "CREATE EXTERNAL TABLE t (d INT, a INT, PRIMARY KEY (d)) STORED AS AZULEJO LOCATION 'mem://t' OPTIONS ('domain.d' '0..1024', 'tile.d' '100')",
            "INSERT INTO t VALUES (1, 1), (2, 2)",
            "CREATE EXTERNAL TABLE u (d INT, a INT, PRIMARY KEY (d)) STORED AS AZULEJO LOCATION 'mem://u' OPTIONS ('domain.d' '0..1024', 'tile.d' '100')",
            "INSERT INTO u (d, a) SELECT d, a FROM (SELECT * FROM t) AS q",
        ],
        &[
            ("SELECT * FROM u ORDER BY d", &["1|1", "2|2"]),
            ("SELECT * FROM u WHERE d > 2", &[]),
        ],
    ),
];

#[tokio::test]
async fn what_mytile_tests_holds_here() -> TestResult {
    for (name, statements, questions) in CASES {
        let context = Context::new(Config::default(), None)?;
        let session = azulejo_sql::session(&context);
        for statement in statements {
            let done = rows(&session, statement).await;
            done.map_err(|error| format!("{name}: {statement}: {error}"))?;
        }
        for (question, expected) in questions {
            let found = rows(&session, question).await;
            let found = found.map_err(|error| format!("{name}: {question}: {error}"))?;
            assert_eq!(found, *expected, "{name}: {question}");
        }
    }
    Ok(())
}
