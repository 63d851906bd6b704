import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import azulejo_db as az
from azulejo_db import col


def ids(query):
    return sorted(query.to_numpy()["id"].tolist())


def test_cells_come_back(table):
    found = table[...]
    order = np.argsort(found["id"])
    assert found["id"][order].tolist() == [3, 7, 500]
    assert found["name"][order].tolist() == ["Helgoland", "Zugspitze", "Straße"]
    assert found["height"][order].tolist() == [61.0, 2962.0, None]
    assert found["kind"][order].tolist() == ["hill", "peak", "hill"]
    assert table[0:10]["id"].tolist() == [3, 7]
    assert table.loc[7:500]["id"].tolist() == [7, 500]
    assert table["name"][3]["name"].tolist() == ["Helgoland"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (None, [3, 7, 500]),
        ("height > 100", [7]),
        (col("height") > 100, [7]),
        (col("height").is_null(), [500]),
        (~col("height").is_null() & (col("id") < 7), [3]),
        (col("name") == "Straße", [500]),
        (col("name").isin(["Zugspitze", "Helgoland"]), [3, 7]),
        ((col("id") == 3) | (col("kind") == "peak"), [3, 7]),
        (col("id").between(3, 7), [3, 7]),
        ("kind = 'hill' and id > 100", [500]),
    ],
)
def test_conditions(table, where, expected):
    assert ids(table.query(where)) == expected
    assert table.query(where).count() == len(expected)


def test_conditions_have_no_truth():
    with pytest.raises(TypeError, match="truth"):
        bool(col("a") > 3)
    with pytest.raises(TypeError):
        1 < col("a") < 3


def test_limit_fields_points(table):
    query = table.query(fields=["name"], limit=2, order="row")
    assert query.to_numpy()["name"].tolist() == ["Helgoland", "Zugspitze"]
    assert query.to_arrow()["name"].to_pylist() == ["Helgoland", "Zugspitze"]
    assert ids(table.query().points([7, 8, 500])) == [7, 500]
    assert ids(table.query().box(id=(4, 900))) == [7, 500]


def test_arrow_out(table):
    query = table.query(order="row")
    found = pa.table(query)
    assert found["id"].to_pylist() == [3, 7, 500]
    assert found["height"].to_pylist() == [61.0, 2962.0, None]
    assert found["kind"].to_pylist() == ["hill", "peak", "hill"]
    assert pa.table(query) == found, "each stream is a read of its own"
    assert query.to_pandas()["name"].tolist() == ["Helgoland", "Zugspitze", "Straße"]
    assert pl.DataFrame(query)["id"].to_list() == [3, 7, 500]


def test_arrow_in(tmp_path):
    batch = pa.table({"t": pa.array([1, 2, 9], pa.int64()), "s": ["a", None, "c"], "v": [0.5, 1.5, None]})
    array = az.write(tmp_path / "a", batch, index=["t"])
    assert pa.table(array.query(order="row")).to_pylist() == batch.to_pylist()
    array.write(pl.DataFrame({"t": [5], "s": ["p"], "v": [7.0]}))
    assert array.query(col("t") == 5).to_numpy()["s"].tolist() == ["p"]


def test_a_reader_that_fails_is_told_whatever_was_written_before(tmp_path):
    schema = az.Schema([az.Dim("i", (0, 99), 10)], [az.Attr("v", "int32")], sparse=True)
    array = az.create(tmp_path / "a", schema)

    def reader(*tables):
        return pa.RecordBatchReader.from_batches(tables[0].schema, [b for t in tables for b in t.to_batches()])

    def raising(table):
        yield table.to_batches()[0]
        raise ValueError("no more of it")

    def table(i, v, kind=pa.int32()):
        return pa.table({"i": i, "v": pa.array(v, kind)})

    good = table([1, 2], [1, 2])
    for before in (0, 2):
        for wrong in (
            reader(table([3, 100], [3, 4])), reader(good, table([3], [None])), reader(table([3], [0.5], pa.float64())),
            pa.RecordBatchReader.from_batches(good.schema, raising(good)),
        ):
            with pytest.raises(ValueError):
                array.write(wrong)
            assert array.reopen().agg("count") == before
        # From here on the handle has written, and is not opened anew for each write.
        array.write(reader(good))
    # Another one may change the schema meanwhile.
    az.open(tmp_path / "a", "w").evolve(add=[az.Attr("w", "int8")])
    array.write(reader(good.append_column("w", pa.array([1, 2], pa.int8()))))
    assert array.query(order="row").to_numpy()["w"].tolist() == [1, 2]


def test_data_frames(tmp_path):
    frame = pd.DataFrame(
        {"v": [1.5, 2.5], "s": ["x", "y"]},
        index=pd.Index(pd.to_datetime(["2024-01-02", "2024-03-04"]).astype("datetime64[ns]"), name="day"),
    )
    array = az.write(tmp_path / "a", frame)
    found = array.query(order="row").to_pandas().set_index("day")
    assert found["v"].tolist() == [1.5, 2.5]
    assert found.index[1] == pd.Timestamp("2024-03-04")
    frame.index = frame.index + pd.Timedelta(days=1)
    array.write(frame)
    assert array.agg("count") == 4


def test_aggregates(table):
    assert table.agg("count") == 3
    found = table.agg("count", mean="height", max=["height", "name"], nulls="height")
    assert found == {
        "count": 3, "mean_height": 1511.5, "max_height": 2962.0, "max_name": "Zugspitze",
        "nulls_height": 1,
    }
    assert table.agg(sum="id", where=col("id") > 5) == 507


def test_delete(table):
    table.delete(col("id") == 7)
    assert ids(table.query()) == [3, 500]
    before = az.open(table.uri, at=table.fragments[-1]["timestamps"][1])
    assert ids(before.query()) == [3, 7, 500]


def test_evolve(table):
    table.evolve(add=[az.Attr("depth", "int32", fill=-1)], drop=["kind"])
    assert table.schema.attr_names == ["name", "height", "depth"]
    assert table.query(order="row").to_numpy()["depth"].tolist() == [-1, -1, -1]


def test_enumerations_are_extended(tmp_path):
    schema = az.Schema(
        [az.Dim("i", (0, 9), 5)],
        [az.Attr("k", "int8", enumeration="kinds"), az.Attr("n", "uint8", enumeration="tens")],
        sparse=True,
        enumerations=[az.enumeration("kinds", ["a", "b"], ordered=True), az.enumeration("tens", np.array([10, 20], "i4"))],
    )
    array = az.create(tmp_path / "a", schema)
    array.write({"i": [1], "k": ["b"], "n": [20]})
    before = array.at
    array.evolve(enumerations={"kinds": ["a", "b", "c"], "tens": [10, 20, 30], "more": ["x"]})
    array.write({"i": [2], "k": ["c"], "n": [30]})
    found = array.query(order="row").to_numpy()
    assert found["k"].tolist() == ["b", "c"] and found["n"].tolist() == [20, 30]
    assert array.schema.enumerations == {"kinds": ["a", "b", "c"], "tens": [10, 20, 30], "more": ["x"]}
    then = az.open(tmp_path / "a", at=before)
    assert then.schema.enumerations["kinds"] == ["a", "b"] and then.query("k = 'b'").count() == 1
    assert array.query("k > 'a'").count() == 2
    for wrong in (["b", "a", "c", "d"], ["a", "b"], ["a", "b", "c", "c"], [1, 2]):
        with pytest.raises((ValueError, TypeError)):
            array.evolve(enumerations={"kinds": wrong})
    assert array.reopen().schema.enumerations["kinds"] == ["a", "b", "c"]


def test_consolidate_vacuum_check(table):
    for i in range(3):
        table.write({"id": [i], "name": ["n"], "height": [1.0], "kind": ["hill"]})
    assert len(table.fragments) == 4
    done = table.consolidate()
    assert done[0]["cells"] == 5 + (3 not in range(3))
    assert len(table.fragments) == 1
    paths, size = table.vacuum(dry_run=True)
    assert paths and size > 0
    table.vacuum()
    assert table.vacuum()[0] == []
    assert [f for f in table.check(deep=True) if f[0] == "error"] == []


def test_string_dimensions(tmp_path):
    schema = az.Schema([az.Dim("chr", dtype=str), az.Dim("pos", (0, 10**9), 1000)], [az.Attr("v", "int8")], sparse=True)
    array = az.create(tmp_path / "a", schema)
    array.write({"chr": ["chr7", "chr1", "chr7"], "pos": [5, 6, 1], "v": [1, 2, 3]})
    assert array.loc["chr7", :]["pos"].tolist() == [1, 5]
    assert array.loc["chr1":"chr5"]["v"].tolist() == [2]
    assert array.query().points(["chr7", "chr1"], [1, 7]).to_numpy()["v"].tolist() == [3]


def test_wrong_columns_are_named(table):
    with pytest.raises(ValueError, match="missing.*kind"):
        table.write({"id": [1], "name": ["x"], "height": [1.0]})
    with pytest.raises(ValueError, match="no label 'lake'"):
        table.write({"id": [1], "name": ["x"], "height": [1.0], "kind": ["lake"]})
    with pytest.raises(ValueError, match="no nulls"):
        table.write({"id": [1], "name": [None], "height": [1.0], "kind": ["hill"]})
    with pytest.raises(az.ArgumentError):
        table.query("height >").to_numpy()
    with pytest.raises(az.SchemaError):
        table.query("nothing > 3").to_numpy()


def test_dates_in_conditions(tmp_path):
    schema = az.Schema([az.Dim("i", (0, 9), 10)], [az.Attr("day", "datetime64[D]")], sparse=True)
    array = az.create(tmp_path / "a", schema)
    array.write({"i": [1, 2], "day": np.array(["2024-01-01", "2025-01-01"], "datetime64[D]")})
    assert array.query(col("day") > dt.date(2024, 6, 1)).to_numpy()["i"].tolist() == [2]


def test_both_zeros_are_one_of_several(tmp_path):
    frame = pd.DataFrame({"i": range(4), "x": [0.0, -0.0, 1.0, np.nan], "n": [0, 1, 0, 2]})
    array = az.write(tmp_path / "a", frame, index="i")
    for zero in (0.0, -0.0, 0, np.float32(0)):
        assert array.query(col("x").isin([zero, 1.0]), order="row").to_numpy()["i"].tolist() == [0, 1, 2]
    assert array.query(col("n").isin([0, 2]), order="row").to_numpy()["i"].tolist() == [0, 2, 3]
