"""Random queries over random arrays: what the arrays answered, beside DuckDB on the same rows as Parquet.

The folder is what `azulejo-sql/tests/sql/random_sql.rs` leaves behind: a folder for each array, with its rows, the
queries as lines of JSON, and the array's answer to each. Both answers are read by DuckDB, so that a value has one form.

usage: sql_random.py FOLDER
"""

import argparse
import datetime
import json
import math
import pathlib
import re
import sys

import duckdb

# DataFusion's order of nulls, where a query does not say.
SETTINGS = ["SET default_null_order = 'nulls_last_on_asc_first_on_desc'", "SET threads = 1", "SET TimeZone = 'UTC'"]


def dialect(sql):
    """A query for DuckDB: its texts know no zero byte, and its `/` divides integers as reals."""

    def literal(found):
        parts = [f"'{part}'" for part in found.group(1).split("\0")]
        return f"({' || chr(0) || '.join(parts)})" if len(parts) > 1 else found.group(0)

    return re.sub(r"'((?:[^']|'')*)'", literal, sql).replace(" / 2 ", " // 2 ")


def plain(value, kind):
    """A value as it compares: NaN equals itself, sums of 64 bits wrap around; Parquet keeps seconds as numbers."""
    if kind == "BIGINT" and isinstance(value, datetime.datetime):
        return int(value.replace(tzinfo=datetime.timezone.utc).timestamp())
    if kind == "UBIGINT" and value is not None:
        return value % (1 << 64)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def rows_of(engine, sql, kinds=None):
    """The rows of a query and the types of its columns; compared as `kinds` if they are given."""
    result = engine.execute(sql)
    own = [str(column[1]) for column in result.description]
    kinds = kinds or own
    rows = [tuple(map(plain, row, kinds)) for row in result.fetchall()]
    return rows, kinds


def sortable(row):
    return [(value is None, type(value).__name__, str(value)) for value in row]


def difference(query, found, expected):
    """What differs of what is certain of the answer, if anything does."""
    if len(found) != len(expected):
        return f"{len(found)} rows, DuckDB has {len(expected)}"
    if query["order"] is not None:
        keys = [[row[: query["order"]] for row in rows] for rows in (found, expected)]
    elif query["limited"]:
        return None
    else:
        keys = [[], []]
    if query["limited"]:
        pairs = zip(*keys)
    else:
        pairs = [*zip(*keys), *zip(sorted(found, key=sortable), sorted(expected, key=sortable))]
    return next((f"{one}, DuckDB has {other}" for one, other in pairs if one != other), None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    arrays = sorted((path for path in args.folder.iterdir() if path.is_dir()), key=lambda path: int(path.name))
    queries = rows = wrong = left_out = 0
    for array in arrays:
        engine = duckdb.connect()
        for setting in SETTINGS:
            engine.execute(setting)
        try:
            # Seconds are times again.
            times = "* REPLACE (make_timestamp(h * 1000000) AS h)"
            engine.execute(f"CREATE TABLE a AS SELECT {times} FROM '{array / 'rows.parquet'}'")
        except duckdb.ConversionException:
            # Fill values of times, 2^63 ticks before 1970.
            left_out += 1
            continue
        for line in (array / "queries.ndjson").read_text().splitlines():
            query = json.loads(line)
            found, kinds = rows_of(engine, f"SELECT * FROM '{array / query['answer']}'")
            try:
                expected, _ = rows_of(engine, dialect(query["sql"]), kinds)
                differs = difference(query, found, expected)
            except duckdb.Error as error:
                differs = f"DuckDB: {error}"
            queries, rows = queries + 1, rows + len(found)
            if differs:
                wrong += 1
                print(f"seed {array.name}: {query['sql']!r}\n  {differs}", flush=True)
    print(f"{len(arrays)} arrays ({left_out} left out: DuckDB has no such times), {queries} queries, {rows} rows: {wrong} differ")
    if wrong or not queries:
        sys.exit(1)


main()
