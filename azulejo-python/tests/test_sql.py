"""SQL over arrays, and what engines ask of them: columns and rows that are not wanted are not read."""

import datetime as dt
import operator
import pickle

import numpy as np
import pytest

import azulejo_db as az

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")
pads = pytest.importorskip("pyarrow.dataset")


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """Cells of every kind that filters compare, and the same as a table."""
    rng = np.random.default_rng(5)
    n = 400
    words = np.array(["", "a", "b", "peak", "é", 'quo"te', "back\\slash", "zz"], dtype=object)
    table = pa.table({
        "id": pa.array(rng.permutation(n) - 100, pa.int64()),
        "day": pa.array(np.datetime64("2024-01-01", "D") + rng.integers(0, 90, n), pa.date32()),
        "small": pa.array(rng.integers(-5, 5, n), pa.int8(), mask=rng.random(n) < 0.2),
        "single": pa.array(rng.integers(0, 8, n) / np.float32(10), pa.float32()),
        "real": pa.array(np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(1))),
        "word": pa.array(words[rng.integers(0, len(words), n)], pa.large_string(), mask=rng.random(n) < 0.1),
        "moment": pa.array(np.datetime64("2024-01-01", "us") + rng.integers(0, 9, n) * 3600_000_000),
        "flag": pa.array(rng.random(n) < 0.5),
    })
    array = az.write(tmp_path_factory.mktemp("sql") / "cells", table, index=["id"])
    kinds = az.create(
        array.uri + "-kinds",
        az.Schema(
            [az.Dim("name", dtype=str), az.Dim("x", (0, 99), 10)],
            [az.Attr("kind", "uint8", enumeration="kinds"), az.Attr("height", "float64", nullable=True)],
            sparse=True, enumerations=[az.enumeration("kinds", ["hill", "peak"])],
        ),
    )
    kinds.write({
        "name": ["Brocken", "Zugspitze", "Feldberg"], "x": np.array([3, 50, 99]), "kind": ["hill", "peak", "hill"],
        "height": np.ma.MaskedArray([1141.0, 2962.0, 0.0], mask=[False, False, True]),
    })
    return az.open(array.uri), table, az.open(kinds.uri)


def compared(found, wanted):
    def rows(table):
        # What is not a number is equal to nothing, itself included.
        return sorted(map(repr, table.to_pylist()))

    assert rows(found) == rows(wanted)


def filters():
    f, us = pc.field, lambda text: pa.scalar(np.datetime64(text, "us"))
    for compare in (operator.lt, operator.le, operator.eq, operator.ne, operator.ge):
        yield compare(f("id"), 17)
    yield pc.scalar(17) < f("id")
    yield (f("id") > 2.5) & (f("small") < 300)
    yield ~(f("small") == 2) | (f("small") == -3)
    yield ~((f("small") > 2) & (f("word") == "a"))
    yield ~((f("small") > 2) | ~(f("word") == "a"))
    yield f("single") > 0.3
    yield ~(f("single") >= np.float32(0.5))
    yield (f("real") > 0.5) | f("real").is_nan()
    yield ~(f("real") > 0.5)
    yield f("real") != 0.5
    yield f("real") == 0.5
    yield f("real").is_null(nan_is_null=True)
    yield f("real").isin([0.5, float("nan")])
    yield f("word").isin(["a", 'quo"te', "nowhere"])
    yield ~f("word").isin(["a", "é"])
    yield f("word").isin(["a", None])
    yield f("small").is_null() & (f("word") > "b")
    yield ~f("small").is_null() & f("word").is_valid()
    yield f("word") == "back\\slash"
    yield f("word") != "é"
    yield f("moment") >= us("2024-01-01T03:00:00")
    yield f("moment") > pa.scalar(np.datetime64("2024-01-01T02:59:59.999999999", "ns"))
    yield f("day") < dt.date(2024, 2, 3)
    yield f("flag") & (f("id") < 50)
    yield f("flag") == True  # noqa: E712
    yield pc.starts_with(f("word"), "p") & (f("id") >= 0)
    yield (f("id") + 1) == 3
    yield pc.if_else(f("small").is_valid(), f("small").isin([1, 2]), pa.scalar(None, pa.bool_()))


@pytest.mark.parametrize("filter", list(filters()), ids=str)
def test_filters_give_what_arrow_gives(cells, filter):
    array, table, _ = cells
    dataset = array.dataset()
    compared(dataset.to_table(filter=filter), table.filter(filter))
    columns = ["word", "id"]
    compared(dataset.to_table(columns=columns, filter=filter), table.filter(filter).select(columns))
    assert dataset.count_rows(filter=filter) == table.filter(filter).num_rows


def test_a_dataset_says_what_it_is(cells):
    array, table, kinds = cells
    dataset = pickle.loads(pickle.dumps(array.dataset()))
    assert dataset.schema.names == table.schema.names
    assert dataset.head(3).num_rows == 3
    assert dataset.count_rows() == table.num_rows
    doubled = dataset.to_table(columns={"twice": pc.field("id") * 2}, filter=pc.field("id") < -98)
    assert sorted(doubled["twice"].to_pylist()) == [-200, -198]
    assert kinds.dataset().to_table(filter=pc.field("kind") == "peak")["name"].to_pylist() == ["Zugspitze"]
    grid = az.write(array.uri + "-grid", np.arange(12.0).reshape(3, 4), dims=("y", "x"), mode="w")
    found = grid.dataset().to_table(filter=(pc.field("y") == 1) & (pc.field("value") > 5))
    assert found.to_pydict() == {"y": [1, 1], "x": [2, 3], "value": [6.0, 7.0]}
    assert grid.dataset().count_rows() == 12


def test_what_arrows_datasets_do_besides(cells):
    """Done by Arrow's own they ended the program: these know nothing of ours."""
    array, table, _ = cells
    dataset, f = array.dataset(), pc.field
    some = dataset.filter(f("id") > 5).filter(f("small") == 1)
    wanted = table.filter((f("id") > 5) & (f("small") == 1))
    compared(some.to_table(), wanted)
    compared(pickle.loads(pickle.dumps(some)).to_table(filter=f("id") > 9), wanted.filter(f("id") > 9))
    assert some.count_rows() == wanted.num_rows
    ids = sorted(table["id"].to_pylist())
    assert dataset.sort_by([("id", "descending")]).to_table()["id"].to_pylist() == ids[::-1]
    right = pa.table({"id": [3, 4, 5000], "other": ["x", "y", "z"]})
    for joined in (dataset.join(pads.dataset(right), "id", join_type="inner"), some.join(array.dataset(), "id", right_suffix="_r")):
        assert joined.count_rows() == (2 if "other" in joined.schema.names else wanted.num_rows)
    with pytest.raises(NotImplementedError):
        dataset.replace_schema(dataset.schema)
    # What asks Arrow's C++ and nothing else is told that there is nothing to be read in this way.
    with pytest.raises(FileNotFoundError, match="to_table"):
        pads.dataset(right).join(dataset, "id")
    with pytest.raises(FileNotFoundError, match="to_table"):
        pads.Scanner.from_dataset(dataset).to_table()


def test_what_is_not_wanted_is_not_read(cells, monkeypatch):
    array, _, _ = cells
    asked, boxes = [], []
    query, box = az.Array.query, az.Query.box

    def noted(self, where=None, fields=None, **options):
        asked.append((None if where is None else str(where), fields))
        return query(self, where, fields, **options)

    def boxed(self, **ranges):
        boxes.append(ranges)
        return box(self, **ranges)

    dataset = array.dataset()
    monkeypatch.setattr(az.Array, "query", noted)
    monkeypatch.setattr(az.Query, "box", boxed)
    dataset.to_table(["word"], (pc.field("id") > 3) & (pc.field("small") == 1))
    dataset.count_rows()
    dataset.to_table(["id"], (3 < pc.field("id")) & pc.starts_with(pc.field("word"), "a"))
    assert asked == [
        ("(`id` > 3) and (`small` = 1)", ["id", "small", "word"]), (None, ["small"]), ("`id` > 3", ["id", "word"]),
    ]
    assert boxes == [{"id": (3, None)}] * 2
    found = dataset.to_table(["id"], (pc.field("id") > 3) & (pc.field("id") <= 6) & (pc.field("id") < 90))
    assert sorted(found["id"].to_pylist()) == [4, 5, 6] and boxes[-1] == {"id": (3, 6)}
    assert dataset.count_rows((pc.field("id") > 8) & (pc.field("id") == 2)) == 0


QUERIES = [
    "select count(*) as n from cells",
    "select id, word from cells where id between 10 and 20 and small > 0 order by id",
    "select word, count(*) as n, sum(small) as total, min(single) as low from cells where small in (1, 2, 3) group by word order by word",
    "select max(moment) as last from cells where day < date '2024-02-03' and word <> 'a'",
    "select id from cells where small is null and not (word = 'b') order by id",
    "select c.id, p.low from cells c join places p on c.id = p.id where c.id > 0 order by c.id limit 5",
]


@pytest.mark.parametrize("engine", ["datafusion", "duckdb"])
def test_sql(cells, engine):
    pytest.importorskip(engine)
    array, table, kinds = cells
    places = pa.table({"id": [1, 5, 9], "low": [0.5, 1.5, 2.5]})
    for query in QUERIES:
        found = az.sql(query, engine=engine, cells=array.uri, places=places)
        plain = az.sql(query, engine=engine, cells=table, places=places)
        assert found.to_pylist() == plain.to_pylist() and plain.num_rows, query
    found = az.sql("select name from kinds where kind = 'peak' and height > 1000", engine=engine, kinds=kinds)
    assert found["name"].to_pylist() == ["Zugspitze"]
    found = az.sql("select name from kinds order by name", engine=engine, kinds=kinds.query("height is null"))
    assert found["name"].to_pylist() == ["Feldberg"]
    # A view of one attribute, and a moment.
    rows = az.sql("select * from h order by name", engine=engine, h=kinds["height"])
    assert rows.column_names == ["name", "x", "height"]


def test_sql_says_what_is_wrong(cells, tmp_path, monkeypatch):
    array, _, _ = cells
    with pytest.raises(ValueError, match="engine is"):
        az.sql("select 1", engine="sqlite")
    with pytest.raises(FileNotFoundError):
        az.sql("select 1", a=tmp_path / "nothing")
    az.create_group(tmp_path / "g")
    with pytest.raises(TypeError, match="group"):
        az.sql("select 1", a=az.open(tmp_path / "g"))
    with pytest.raises(ValueError, match="simple fields"):
        array.dataset().to_table(filter=pc.field("a", "b") == 1)


def test_polars_scans_lazily(cells):
    pl = pytest.importorskip("polars")
    array, table, _ = cells
    lazy = pl.scan_pyarrow_dataset(array.dataset()).filter((pl.col("id") > 40) & (pl.col("small") == 2)).select("id")
    wanted = table.filter((pc.field("id") > 40) & (pc.field("small") == 2))["id"].to_pylist()
    assert sorted(lazy.collect()["id"].to_list()) == sorted(wanted)


def test_labels_are_not_ordered_by_their_place(tmp_path):
    """What an expression compares is text; the engine would compare where labels stand."""
    schema = az.Schema(
        [az.Dim("i", (0, 9), 10)], [az.Attr("kind", "uint8", enumeration="kinds")], sparse=True,
        enumerations=[az.enumeration("kinds", ["peak", "hill", "isle"], ordered=True)],
    )
    array = az.create(tmp_path / "a", schema)
    kinds = ["peak", "hill", "isle", "hill"]
    array.write({"i": np.arange(4), "kind": kinds})
    dataset, table = array.dataset(), pa.table({"i": range(4), "kind": kinds})
    for op in ("<", "<=", ">", ">=", "==", "!="):
        for wanted in (eval(f"pc.field('kind').cast('string') {op} 'isle'"), eval(f"~(pc.field('kind') {op} 'isle')")):
            try:
                want = table.filter(wanted)["i"].to_pylist()
                found = dataset.to_table(filter=wanted)["i"].to_pylist()
            except pa.ArrowNotImplementedError:
                continue
            assert sorted(found) == want, str(wanted)
