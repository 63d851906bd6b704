//! Few rows or none, and values at the ends of their types: arrays answer as the same rows in memory.

use crate::support::{TestResult, answer, beside_memory, rows, rows_of};
use azulejo::column::ColumnType;
use azulejo::format::schema::Dimension;
use azulejo::format::{ArraySchema, Datatype, Range};
use azulejo::{ColumnBuffers, ColumnSet, Config, Context, WriteOptions};
use datafusion::prelude::SessionContext;
use std::sync::Arc;

/// Rows with values that engines treat in their own ways, by the name of the table.
const ROWS: [(&str, &str); 4] = [
    ("many", "SELECT * FROM all_rows"),
    ("none", "SELECT * FROM all_rows WHERE id IS NULL"),
    ("one", "SELECT * FROM all_rows WHERE id = 4"),
    // Of all columns but the key there are only nulls.
    ("nulls", "SELECT * FROM all_rows WHERE v IS NULL"),
];

const ALL_ROWS: &str = "CREATE TABLE all_rows AS SELECT arrow_cast(column1, 'Int64') AS id, arrow_cast(column2, 'Int64') AS v, \
    arrow_cast(column3, 'Float64') AS f, arrow_cast(column4, 'LargeUtf8') AS s, arrow_cast(column5, 'Date32') AS d, \
    arrow_cast(column6, 'Timestamp(Nanosecond, None)') AS t, arrow_cast(column7, 'UInt64') AS u, arrow_cast(column8, 'Int32') AS i FROM (VALUES \
    (-9223372036854775807, 9223372036854775807, 'NaN', '', -2147483648, -9223372036854775807, 18446744073709551615, -2147483648), \
    (-1, 1, '-0.0', NULL, 2147483647, 9223372036854775807, 18446744073709551614, 2147483647), \
    (0, -5, '0.0', 'x', 0, 0, 0, 0), \
    (1, -9223372036854775808, 'Infinity', 'X', -1, -1, 1, -1), \
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL), \
    (3, 0, '-Infinity', 'z', 2147483646, 1, NULL, 1), \
    (4, 9223372036854775806, '1.7976931348623157e308', '', -2147483647, 9223372036854775806, 9223372036854775808, 2147483646), \
    (5, 7, '5e-324', NULL, 1, NULL, 2, NULL), \
    (9223372036854000000, 0, '-1.7976931348623157e308', 'zz', NULL, 5, 9223372036854775807, -2147483647))";

/// What is asked of each, `{t}`.
const QUERIES: &[&str] = &[
    "SELECT * FROM {t}",
    "SELECT * FROM {t} LIMIT 0",
    "SELECT id FROM {t} ORDER BY id LIMIT 0",
    "SELECT id FROM {t} ORDER BY id DESC LIMIT 0",
    "SELECT count(*) FROM (SELECT * FROM {t} LIMIT 0) AS q",
    "SELECT sum(v), min(f) FROM (SELECT * FROM {t} LIMIT 0) AS q",
    "SELECT * FROM {t} ORDER BY id OFFSET 2",
    "SELECT * FROM {t} ORDER BY id LIMIT 2 OFFSET 1",
    "SELECT * FROM {t} ORDER BY id OFFSET 100",
    "SELECT id FROM {t} ORDER BY id DESC LIMIT 2",
    "SELECT id, f FROM {t} ORDER BY f DESC, id LIMIT 3",
    "SELECT id, f FROM {t} ORDER BY f NULLS FIRST, id LIMIT 4",
    "SELECT id, s FROM {t} ORDER BY s, id LIMIT 4",
    "SELECT id, u FROM {t} ORDER BY u DESC NULLS LAST, id LIMIT 2",
    "SELECT count(*), count(v), count(f), count(s), count(d), count(t), count(u) FROM {t}",
    "SELECT min(id), max(id), min(v), max(v), min(u), max(u), min(i), max(i) FROM {t}",
    "SELECT sum(v) FROM {t}",
    "SELECT sum(u), sum(i), avg(i) FROM {t}",
    "SELECT sum(id), sum(v) FROM {t} WHERE id < 2",
    "SELECT sum(f), min(f), max(f) FROM {t}",
    "SELECT sum(f), min(f), max(f) FROM {t} WHERE id BETWEEN 2 AND 4",
    "SELECT sum(f), min(f), max(f) FROM {t} WHERE id IN (4, 9223372036854000000)",
    "SELECT min(d), max(d), min(t), max(t), min(s), max(s) FROM {t}",
    "SELECT count(*) FROM {t} WHERE id > 9223372036854775807",
    "SELECT count(*) FROM {t} WHERE id <= 9223372036854775807",
    "SELECT count(*) FROM {t} WHERE id < -9223372036854775808",
    "SELECT count(*) FROM {t} WHERE id >= -9223372036854775808",
    "SELECT id FROM {t} WHERE id BETWEEN -9223372036854775808 AND 0",
    "SELECT id FROM {t} WHERE id BETWEEN 5 AND 1",
    "SELECT id FROM {t} WHERE id NOT BETWEEN -1 AND 9223372036854775807",
    "SELECT id FROM {t} WHERE id <> 9223372036854775807 AND id <> -9223372036854775808 AND id <> 0",
    "SELECT id FROM {t} WHERE id IN (9223372036854775807, -9223372036854775808, 3)",
    "SELECT id FROM {t} WHERE id NOT IN (9223372036854775807, 1, 2)",
    "SELECT id FROM {t} WHERE id NOT IN (1, NULL)",
    "SELECT id FROM {t} WHERE id < 2.5",
    "SELECT id FROM {t} WHERE id > 1e18",
    "SELECT id FROM {t} WHERE v = 9223372036854775807 OR v = -9223372036854775808",
    "SELECT id FROM {t} WHERE u > 9223372036854775807",
    "SELECT id FROM {t} WHERE u >= 18446744073709551615",
    "SELECT id FROM {t} WHERE u < 0",
    "SELECT id FROM {t} WHERE u > -1",
    "SELECT id FROM {t} WHERE i > 2147483647 OR i < -2147483648",
    "SELECT id FROM {t} WHERE i >= 2147483646",
    "SELECT id FROM {t} WHERE NOT (v > 0)",
    "SELECT id FROM {t} WHERE (v > 0) IS NULL",
    "SELECT id FROM {t} WHERE v IS NOT DISTINCT FROM NULL",
    "SELECT id FROM {t} WHERE f = 0",
    "SELECT id FROM {t} WHERE f = '-0.0'::double",
    "SELECT id FROM {t} WHERE f < 0",
    "SELECT id FROM {t} WHERE f >= '-0.0'::double",
    "SELECT id FROM {t} WHERE f > 'Infinity'::double",
    "SELECT id FROM {t} WHERE f >= 'NaN'::double",
    "SELECT id FROM {t} WHERE f < 'NaN'::double",
    "SELECT id FROM {t} WHERE f = 'NaN'::double OR f IS NULL",
    "SELECT id FROM {t} WHERE f <> 'NaN'::double",
    "SELECT id FROM {t} WHERE f IN ('NaN'::double, 0.0)",
    "SELECT id FROM {t} WHERE f NOT IN ('NaN'::double, 0.0)",
    "SELECT id FROM {t} WHERE f BETWEEN '-Infinity'::double AND 'Infinity'::double",
    "SELECT id FROM {t} WHERE isnan(f)",
    "SELECT f, count(*) FROM {t} GROUP BY f",
    "SELECT count(DISTINCT f), count(DISTINCT s) FROM {t}",
    "SELECT id FROM {t} WHERE s = ''",
    "SELECT id FROM {t} WHERE s <> ''",
    "SELECT id FROM {t} WHERE s > ''",
    "SELECT id FROM {t} WHERE s LIKE ''",
    "SELECT id FROM {t} WHERE s LIKE '%'",
    "SELECT id FROM {t} WHERE s NOT LIKE 'z%'",
    "SELECT id FROM {t} WHERE s ILIKE 'x%'",
    "SELECT id FROM {t} WHERE s LIKE 'z_'",
    "SELECT id FROM {t} WHERE starts_with(s, '')",
    "SELECT id FROM {t} WHERE s IN ('', 'x') OR s IS NULL",
    "SELECT id FROM {t} WHERE s NOT IN ('', NULL)",
    "SELECT id FROM {t} WHERE d = arrow_cast(-2147483648, 'Date32') OR d = arrow_cast(2147483647, 'Date32')",
    "SELECT id FROM {t} WHERE d < DATE '1970-01-01'",
    "SELECT id FROM {t} WHERE d > DATE '9999-12-31'",
    "SELECT id FROM {t} WHERE d >= DATE '0001-01-01' AND d <= DATE '9999-12-31'",
    "SELECT id FROM {t} WHERE t < TIMESTAMP '1970-01-01T00:00:00'",
    "SELECT id FROM {t} WHERE t > TIMESTAMP '2262-04-11T23:47:16.854775806'",
    "SELECT id FROM {t} WHERE t IS NULL",
    "SELECT id FROM {t} WHERE id NOT IN (SELECT v FROM {t})",
    "SELECT id FROM {t} WHERE id NOT IN (SELECT v FROM {t} WHERE v IS NOT NULL)",
    "SELECT id FROM {t} WHERE v NOT IN (SELECT id FROM {t})",
    "SELECT id FROM {t} WHERE v NOT IN (SELECT id FROM {t} WHERE false)",
    "SELECT id FROM {t} WHERE NOT EXISTS (SELECT 1 FROM {t} AS o WHERE o.v = {t}.id)",
    "SELECT id FROM {t} WHERE v > ALL (SELECT id FROM {t} WHERE id < 0)",
    "SELECT id FROM {t} WHERE id = (SELECT max(id) FROM {t})",
    "SELECT id, (SELECT min(o.id) FROM {t} AS o WHERE o.v = {t}.v) FROM {t}",
    // Dimensions and attributes of other types and signs.
    "SELECT a.id, b.i FROM {t} AS a JOIN {t} AS b ON a.id = b.i",
    "SELECT a.id, b.u FROM {t} AS a JOIN {t} AS b ON a.id = b.u",
    "SELECT a.id, b.f FROM {t} AS a JOIN {t} AS b ON a.id = b.f",
    "SELECT a.id, b.id FROM {t} AS a LEFT JOIN {t} AS b ON a.id = b.i AND b.f > 0",
    "SELECT a.id, b.id FROM {t} AS a FULL JOIN {t} AS b ON a.v = b.id",
    "SELECT a.id, b.id FROM {t} AS a JOIN {t} AS b ON a.f = b.f",
    "SELECT a.id, b.id FROM {t} AS a JOIN {t} AS b ON a.s = b.s",
    "SELECT a.id, b.id FROM {t} AS a JOIN {t} AS b USING (id)",
    "SELECT count(*) FROM {t} AS a CROSS JOIN {t} AS b",
    "SELECT a.id, b.id FROM {t} AS a JOIN {t} AS b ON a.id < b.id AND a.v > b.v",
    "SELECT count(*) FROM {t} AS a JOIN many AS b ON a.id = b.id",
    "SELECT id FROM {t} EXCEPT SELECT v FROM {t}",
    "SELECT id FROM {t} INTERSECT SELECT v FROM {t}",
    "SELECT id, row_number() OVER (ORDER BY id DESC), lag(v) OVER (ORDER BY id) FROM {t}",
    "SELECT s, sum(v), min(f) FROM {t} GROUP BY s HAVING count(*) > 1",
    "SELECT count(*) FROM {t} WHERE false",
    "SELECT max(id) FROM {t} WHERE NULL",
    "SELECT 1 FROM {t} WHERE id = id",
];

/// The kinds of arrays: dimensions of other types make other ranges, tiles and orders.
const KINDS: &[(&str, &str)] = &[
    ("by id", "dimensions = 'id', capacity = '2'"),
    (
        "by id in tiles",
        "dimensions = 'id', \"tile.id\" = '1000000', capacity = '3'",
    ),
    (
        "with duplicates",
        "dimensions = 'id', duplicates = 'true', capacity = '1'",
    ),
];

#[tokio::test]
async fn few_rows_and_the_ends_of_types_answer_as_in_memory() -> TestResult {
    let mut wrong = Vec::new();
    for (number, (kind, options)) in KINDS.iter().enumerate() {
        let context = Context::new(Config::default(), None)?;
        let (arrays, memory) = (azulejo_sql::session(&context), SessionContext::new());
        for session in [&arrays, &memory] {
            rows(session, ALL_ROWS).await?;
        }
        for (name, of) in ROWS {
            rows(&memory, &format!("CREATE TABLE {name} AS {of}")).await?;
            let create = format!(
                "CREATE TABLE {name} WITH (location = 'mem://edges{number}/{name}', {options}) AS {of}"
            );
            rows(&arrays, &create).await?;
        }
        for (name, _) in ROWS {
            for query in QUERIES {
                let query = query.replace("{t}", name);
                let same = beside_memory(&arrays, &memory, &query).await;
                wrong.extend(same.err().map(|text| format!("{kind}: {text}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Types of dimensions, and the coordinates that there are of each.
const COORDINATES: [(&str, &str, &str); 9] = [
    ("i8", "Int8", "(-128), (-1), (0), (1), (126)"),
    ("u8", "UInt8", "(0), (1), (127), (200), (254)"),
    (
        "i32",
        "Int32",
        "(-2147483648), (-1), (0), (1), (200), (2147483646)",
    ),
    (
        "i64",
        "Int64",
        "(-9223372036854775807), (-1), (0), (1), (126), (2147483646), (9223372036854000000)",
    ),
    (
        "u64",
        "UInt64",
        "(0), (1), (200), (2147483646), (9223372036854000000), (9223372036854775808), (18446744073709551614)",
    ),
    (
        "f32",
        "Float32",
        "('-3.4028235e38'), (-1), ('0'), (1), (1.5), (200), ('3.4028235e38')",
    ),
    (
        "f64",
        "Float64",
        "('-1.7976931348623157e308'), (-1), ('-0.0'), (1), (1.5), (2147483646), ('1.7976931348623157e308')",
    ),
    (
        "day",
        "Date32",
        "(-2147483648), (-1), (0), (1), (19000), (2147483646)",
    ),
    (
        "text",
        "LargeUtf8",
        "(''), ('-1'), ('0'), ('1'), ('1.5'), ('200'), ('z')",
    ),
];

#[tokio::test]
async fn dimensions_of_different_types_join_as_columns_do() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let (arrays, memory) = (azulejo_sql::session(&context), SessionContext::new());
    for (name, kind, values) in COORDINATES {
        let of = format!(
            "SELECT arrow_cast(column1, '{kind}') AS x, row_number() OVER () AS n FROM (VALUES {values})"
        );
        rows(&memory, &format!("CREATE TABLE {name} AS {of}")).await?;
        let domain = match name {
            "day" => ", \"domain.x\" = '-2147483648..2147483647'",
            "i32" => ", \"domain.x\" = '-2147483648..2147483646'",
            _ => "",
        };
        let create = format!(
            "CREATE TABLE {name} WITH (location = 'mem://joins/{name}', dimensions = 'x', capacity = '2'{domain}) AS {of}"
        );
        rows(&arrays, &create).await?;
    }
    let mut wrong = Vec::new();
    for (a, ..) in COORDINATES {
        for (b, ..) in COORDINATES {
            for query in [
                "SELECT a.x, a.n, b.x, b.n FROM {a} AS a JOIN {b} AS b ON a.x = b.x",
                "SELECT a.n, b.n FROM {a} AS a JOIN {b} AS b ON a.x = b.x WHERE a.x > b.n - 2",
                "SELECT a.n FROM {a} AS a WHERE a.x IN (SELECT x FROM {b})",
                "SELECT a.n FROM {a} AS a WHERE a.x NOT IN (SELECT x FROM {b})",
                "SELECT a.n, b.n FROM {a} AS a LEFT JOIN {b} AS b ON a.x = b.x AND b.n < 4",
                "SELECT a.n, b.n FROM {a} AS a JOIN {b} AS b ON a.x < b.x",
                "SELECT a.n FROM {a} AS a WHERE a.x = (SELECT max(x) FROM {b} WHERE n < 4)",
                "SELECT x FROM {a} UNION SELECT x FROM {b}",
            ] {
                let query = query.replace("{a}", a).replace("{b}", b);
                wrong.extend(beside_memory(&arrays, &memory, &query).await.err());
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Coordinates that are different in the array, and the same in SQL, are no key: a plan that took
/// them for one would leave groups out.
#[tokio::test]
async fn coordinates_that_look_alike_are_no_key() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let (arrays, memory) = (azulejo_sql::session(&context), SessionContext::new());
    let days = Dimension {
        domain: Some(Range::of(i64::MIN + 1, i64::MAX - 1)),
        tile_extent: None,
        ..Dimension::of_type("x", Datatype::DateTimeDay)
    };
    let reals = Dimension {
        domain: Some(Range::of(-10.0f64, 10.0)),
        tile_extent: None,
        ..Dimension::of_type("x", Datatype::Float64)
    };
    let far = [i64::MAX / 2, i64::MAX / 3, 5, -7].map(i64::to_le_bytes);
    let zeros = [-0.0f64, 0.0, 1.0, 2.0].map(f64::to_le_bytes);
    for (name, dimension, cells) in [("days", days, far), ("reals", reals, zeros)] {
        let place = context.array(&format!("mem://alike/{name}"));
        let datatype = dimension.datatype;
        let schema = ArraySchema::sparse()
            .dimension_with(dimension)
            .attribute("v", Datatype::Int64);
        place.create(schema.build()?)?;
        // One write has no coordinate twice, nor both zeros.
        for (cells, values) in [(&cells[..1], &[1i64][..]), (&cells[1..], &[2, 3, 3])] {
            let column = ColumnType::new("x", datatype);
            let mut writer = place.writer(WriteOptions::new())?;
            writer.write(&ColumnSet::of([
                ColumnBuffers::of_raw(column, cells.concat(), None, None)?,
                ColumnBuffers::of_values("v", values.to_vec()),
            ])?)?;
            writer.finish()?;
        }
        let table = azulejo_sql::table(&place)?;
        memory.register_table(name, Arc::new(rows_of(&table)?))?;
        arrays.register_table(name, table)?;
    }
    for name in ["days", "reals"] {
        for query in [
            "SELECT x, count(*) FROM {t} GROUP BY x",
            "SELECT x, v FROM {t} GROUP BY x, v",
            "SELECT count(*) FROM (SELECT x, v FROM {t} GROUP BY x, v) AS q",
            "SELECT v FROM {t} GROUP BY x, v",
            "SELECT DISTINCT x FROM {t}",
            "SELECT count(DISTINCT x) FROM {t}",
            "SELECT a.v, b.v FROM {t} AS a JOIN {t} AS b ON a.x = b.x",
            "SELECT a.x, sum(b.v) FROM {t} AS a LEFT JOIN {t} AS b ON a.x = b.x GROUP BY a.x, a.v",
            "SELECT v FROM {t} ORDER BY x, v",
            "SELECT v FROM {t} ORDER BY x DESC, v DESC LIMIT 3",
            "SELECT v FROM {t} WHERE x IS NULL OR x = 0",
        ] {
            let query = query.replace("{t}", name);
            let (found, expected) = (answer(&arrays, &query).await, answer(&memory, &query).await);
            assert_eq!(found, expected, "{query}");
        }
    }
    Ok(())
}
