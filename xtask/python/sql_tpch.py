"""TPC-H's 22 queries on arrays, through `azulejo sql`, and on the same rows as Parquet files, through DuckDB.

Decimals become doubles on both sides, as arrays have none: sums are compared within 1e-9 of their size. Rows must be
the same, and those columns that ORDER BY names in the same order.

usage: sql_tpch.py PROGRAM FOLDER [--scale N] [--only NUMBER] [--keep]
"""

import argparse
import datetime
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

KEYS = {
    "region": "r_regionkey",
    "nation": "n_nationkey",
    "supplier": "s_suppkey",
    "customer": "c_custkey",
    "part": "p_partkey",
    "partsupp": "ps_partkey, ps_suppkey",
    "orders": "o_orderkey",
    "lineitem": "l_orderkey, l_linenumber",
}


def queries(scale):
    """The numbered queries of the file beside this one."""
    text = pathlib.Path(__file__).with_suffix(".sql").read_text()
    parts = re.split(r"^-- (\d+)$", text, flags=re.MULTILINE)[1:]
    fraction = f"{0.0001 / scale:.10f}"
    found = {
        int(number): query.strip().rstrip(";").replace("{fraction}", fraction)
        for number, query in zip(parts[::2], parts[1::2])
    }
    assert list(found) == list(range(1, 23)), list(found)
    return found


def columns_of(file):
    """What is selected of a file so that arrays can hold it."""
    return ", ".join(
        f"CAST({field.name} AS DOUBLE) AS {field.name}" if pa.types.is_decimal(field.type) else field.name
        for field in pq.read_schema(file)
    )


def generate(files, scale):
    generator = pathlib.Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    files.mkdir(parents=True)
    subprocess.run([generator, "parquet", "-s", str(scale), f"--output-dir={files}"], check=True)


def import_tables(program, files, arrays):
    arrays.mkdir(parents=True)
    for table, key in KEYS.items():
        file = files / f"{table}.parquet"
        text = (
            f"CREATE EXTERNAL TABLE rows STORED AS PARQUET LOCATION '{file}';"
            f"CREATE TABLE {table} WITH (location = '{arrays / table}', dimensions = '{key}')"
            f" AS SELECT {columns_of(file)} FROM rows;"
        )
        subprocess.run([program, "sql", text], check=True, stdout=subprocess.DEVNULL)


def ours(program, arrays, query):
    """The rows that arrays give: dictionaries."""
    tables = [f"--table={table}={arrays / table}" for table in KEYS]
    done = subprocess.run(
        [program, "sql", *tables, "--format", "ndjson", query], check=True, stdout=subprocess.PIPE, text=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def same(one, other):
    """Whether two values are: reals may differ by the order in which they were added."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6)
    return one == other


def same_rows(some, others):
    return len(some) == len(others) and all(
        len(one) == len(other) and all(map(same, one, other)) for one, other in zip(some, others)
    )


def shown(value):
    return value.isoformat() if isinstance(value, datetime.date) else value


def sortable(row):
    """Where a row goes when the order does not matter: reals decide last, and roughly."""
    exact = [str(value) for value in row if not isinstance(value, float)]
    return exact, [round(value, 2) for value in row if isinstance(value, float)]


def order_of(query, names):
    """The indices of the columns by which the rows are ordered."""
    found = re.search(r"\bORDER BY ([^()]+?)(?:\s+LIMIT \d+)?$", query)
    return [names.index(key.split()[0]) for key in found.group(1).split(",")] if found else []


def difference(query, names, found, expected):
    """What differs, if anything does."""
    if found and [*found[0]] != names:
        return f"columns {[*found[0]]}, not {names}"
    found = [[row[name] for name in names] for row in found]
    expected = [[shown(value) for value in row] for row in expected]
    keys = order_of(query, names)
    ordered = [[row[key] for key in keys] for row in found], [[row[key] for key in keys] for row in expected]
    if not same_rows(*ordered):
        return f"keys in order:\n  {ordered[0][:5]}\n  {ordered[1][:5]}"
    found, expected = sorted(found, key=sortable), sorted(expected, key=sortable)
    if not same_rows(found, expected):
        differ = [pair for pair in zip(found, expected) if not all(map(same, *pair))]
        return f"rows:\n  {differ[:3]}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--only", type=int)
    parser.add_argument("--keep", action="store_true", help="use the files and arrays of the run before")
    args = parser.parse_args()
    files, arrays = args.folder / "parquet", args.folder / "arrays"
    if not args.keep:
        shutil.rmtree(args.folder, ignore_errors=True)
        generate(files, args.scale)
        import_tables(args.program, files, arrays)
    theirs = duckdb.connect()
    for table in KEYS:
        file = files / f"{table}.parquet"
        theirs.execute(f"CREATE VIEW {table} AS SELECT {columns_of(file)} FROM '{file}'")
    wrong = 0
    for number, query in queries(args.scale).items():
        if args.only not in (None, number):
            continue
        result = theirs.execute(query)
        names, expected = [column[0] for column in result.description], result.fetchall()
        try:
            found = difference(query, names, ours(args.program, arrays, query), expected)
        except subprocess.CalledProcessError as error:
            found = f"ended with {error.returncode}"
        wrong += found is not None
        print(f"{number:3}  {len(expected):5} rows  {found or 'same'}", flush=True)
    if wrong:
        sys.exit(f"{wrong} queries differ")


main()
