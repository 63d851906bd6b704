"""Arrays as tables in the wheel ``datafusion``: of builds with the feature ``datafusion`` alone."""

import importlib.metadata
import os

import numpy as np
import pytest

import azulejo_db as az
from azulejo_db import _datafusion

if not _datafusion.AVAILABLE:
    assert "AZULEJO_FOREIGN_TABLES" not in os.environ, "this build should have the feature"
    pytest.skip("this build has no tables for datafusion", allow_module_level=True)
datafusion = pytest.importorskip("datafusion")
pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")

ROWS = 20_000


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """An array, and its cells as a table of Arrow's."""
    rng = np.random.default_rng(19)
    schema = az.Schema(
        [az.Dim("id", (-100_000, 99_999), 1_000, "int64")],
        [
            az.Attr("word", str, nullable=True), az.Attr("small", "int16", nullable=True), az.Attr("real", "float64"),
            az.Attr("moment", "datetime64[us]"), az.Attr("kind", "uint8", enumeration="kinds"),
        ],
        sparse=True, capacity=500, enumerations=[az.enumeration("kinds", ["hill", "peak"])],
    )
    ids = rng.permutation(200_000)[:ROWS] - 100_000
    words = np.array(["", "a", "é", "pqr"], dtype=object)[rng.integers(0, 4, ROWS)]
    small, missing = rng.integers(-3, 400, ROWS).astype(np.int16), rng.random(ROWS) < 0.2
    real = rng.choice([0.5, -0.0, 0.0, float("nan"), 1e300], ROWS)
    moment = np.datetime64("2024-01-01T00:00:00", "us") + rng.integers(0, 10**12, ROWS).astype("timedelta64[us]")
    kind = np.array(["hill", "peak"])[rng.integers(0, 2, ROWS)]
    array = az.create(tmp_path_factory.mktemp("foreign") / "cells", schema)
    array.write({
        "id": ids, "word": np.ma.MaskedArray(words, mask=missing), "small": np.ma.MaskedArray(small, mask=missing),
        "real": real, "moment": moment, "kind": list(kind),
    })
    table = pa.table({
        "id": ids, "word": pa.array(words, pa.large_string(), mask=missing), "small": pa.array(small, mask=missing),
        "real": real, "moment": pa.array(moment), "kind": kind,
    })
    return az.open(array.uri), table


def plain(value):
    return "NaN" if isinstance(value, float) and np.isnan(value) else value


def rows(table):
    return sorted((repr([plain(value) for value in row.values()]) for row in table.to_pylist()))


def session(**tables):
    found = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(4))
    for name, table in tables.items():
        found.register_table(name, table)
    return found


def asked(context, query):
    return context.sql(query).to_arrow_table()


QUERIES = [
    "SELECT * FROM t",
    "SELECT id, word FROM t WHERE id BETWEEN -20 AND 4000 AND small > 10",
    "SELECT id FROM t WHERE word IS NULL AND id < 0",
    "SELECT id FROM t WHERE word IN ('a', '') OR small = 5",
    "SELECT id, moment FROM t WHERE moment >= TIMESTAMP '2024-01-05T00:00:00' AND word LIKE 'p%'",
    "SELECT id FROM t WHERE real > 0.25",
    "SELECT id, real FROM t WHERE real <> 0",
    "SELECT id FROM t WHERE kind = 'peak' AND id > 90000",
    "SELECT kind, count(*) AS n, sum(small) AS s, max(id) AS most FROM t GROUP BY kind",
    "SELECT count(*) AS n, min(id) AS least FROM t",
    "SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.id + 1 WHERE b.small < 100",
    "SELECT id FROM t ORDER BY id DESC LIMIT 7",
    "SELECT upper(word) AS w, count(*) AS n FROM t WHERE abs(small) < 50 GROUP BY w",
]


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_of_arrow_tables(cells, query):
    array, table = cells
    in_memory = datafusion.SessionContext()
    in_memory.from_arrow(table, "t")
    wanted = asked(in_memory, query)
    found = asked(session(t=array), query)
    assert found.schema.names == wanted.schema.names
    assert rows(found) == rows(wanted) and wanted.num_rows


def test_filters_and_projections_reach_the_array(cells):
    array, table = cells
    context = session(t=array)
    query = "SELECT word FROM t WHERE id > 99000 AND small = 5 AND real < 3"
    plan = "\n".join(asked(context, f"EXPLAIN FORMAT INDENT {query}")["plan"].to_pylist())
    assert "columns=[word]" in plan and "subarray=[id in 99001..=99999]" in plan, plan
    assert "small" in plan.split("condition=[")[1].split("]")[0], plan
    wanted = table.filter((pc.field("id") > 99_000) & (pc.field("small") == 5) & (pc.field("real") < 3))
    assert rows(asked(context, query)) == rows(wanted.select(["word"]))


def test_rows_are_inserted_whatever_divides_them(tmp_path):
    schema = az.Schema([az.Dim("id", (0, 10**6), 1_000, "int64")], [az.Attr("v", "float64"), az.Attr("s", str)], sparse=True)
    uri = az.create(tmp_path / "written", schema).uri
    more = pa.table({"id": np.arange(50_000), "v": np.arange(50_000) / 2, "s": [str(i % 7) for i in range(50_000)]})
    context = session(t=az.open(uri, "w"))
    parts = [more.slice(start, 5_000).to_batches() for start in range(0, 50_000, 5_000)]
    context.register_record_batches("more", parts)
    told = asked(context, "INSERT INTO t SELECT id, v, s FROM more WHERE id % 10 <> 3")
    assert told["count"].to_pylist() == [45_000]
    found = asked(context, "SELECT count(*) AS n, sum(v) AS v, count(DISTINCT s) AS s FROM t")
    wanted = more.filter(pc.not_equal(pc.subtract(more["id"], pc.multiply(pc.divide(more["id"], 10), 10)), 3))
    assert found.to_pylist() == [{"n": 45_000, "v": pc.sum(wanted["v"]).as_py(), "s": 7}]
    assert len(az.open(uri).fragments) == 1
    asked(context, "INSERT INTO t VALUES (3, 1.5, 'x')")
    assert az.open(uri).query("id = 3").to_arrow()["s"].to_pylist() == ["x"]
    # An error in the middle leaves nothing.
    with pytest.raises(Exception, match="domain"):
        asked(context, "INSERT INTO t SELECT id * 100, v, s FROM more")
    assert len(az.open(uri).fragments) == 2


def test_what_was_opened_to_be_read_stays_as_it_was(tmp_path):
    array = az.write(tmp_path / "grid", np.arange(12.0).reshape(3, 4), dims=("y", "x"), name="v")
    first = az.open(array.uri)
    context = session(t=first)
    array[0, 0] = 100.0
    assert asked(context, "SELECT v FROM t WHERE y = 0 AND x = 0")["v"].to_pylist() == [0.0]
    with pytest.raises(Exception, match="as it was at a time"):
        asked(context, "INSERT INTO t VALUES (0, 0, 1.0)")
    context.register_table("now", az.open(array.uri, "w"))
    assert asked(context, "SELECT v FROM now WHERE y = 0 AND x = 0")["v"].to_pylist() == [100.0]
    array[0, 1] = 101.0
    assert asked(context, "SELECT max(v) AS v FROM now")["v"].to_pylist() == [101.0]
    # After it is gone, too.
    del array, first
    assert asked(context, "SELECT count(*) AS n FROM t")["n"].to_pylist() == [12]


def test_schemas_and_other_threads(cells):
    from concurrent.futures import ThreadPoolExecutor

    array, table = cells
    context = datafusion.SessionContext()
    context.catalog().schema().register_table("t", array)
    with ThreadPoolExecutor(4) as threads:
        query = "SELECT sum(id) AS s FROM t WHERE small > 3"
        found = list(threads.map(lambda _: asked(context, query)["s"].to_pylist(), range(8)))
    wanted = table.filter(pc.field("small") > 3)
    assert found == [[pc.sum(wanted["id"]).as_py()]] * 8


def test_it_says_what_it_cannot(cells, monkeypatch):
    array, _ = cells
    with pytest.raises(Exception, match="all attributes"):
        session(t=array["word"])
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "54.1.0")
    with pytest.raises(Exception, match="datafusion 55, not 54.1.0"):
        session(t=array)
